#!/usr/bin/env python3
"""Records the format fixtures: data directories as a server leaves them, and what is in them.

    record.py NAME SERVER      for example: record.py tarantool-2.6 tarantool

Writes NAME/*.snap and NAME/*.xlog (fill.lua run on SERVER) and NAME/list.txt (list.lua run on SERVER on a copy of them).
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def run(server, script, directory):
    environment = dict(os.environ, SERVER_LOG="server.log")
    done = subprocess.run([server, str(HERE / script)], cwd=directory, env=environment, capture_output=True, check=True)
    return done.stdout.decode()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="name of the fixture")
    parser.add_argument("server", help="binary that writes it")
    options = parser.parse_args()
    server = shutil.which(options.server)
    if server is None:
        parser.error(f"no such server: {options.server}")
    server = str(pathlib.Path(server).absolute())
    fixture = HERE / options.name
    shutil.rmtree(fixture, ignore_errors=True)
    fixture.mkdir()
    with tempfile.TemporaryDirectory() as directory:
        run(server, "fill.lua", directory)
        for path in sorted(pathlib.Path(directory).iterdir()):
            if path.suffix in (".snap", ".xlog"):
                shutil.copy(path, fixture)
        (fixture / "list.txt").write_text(run(server, "list.lua", directory), encoding="utf-8")


if __name__ == "__main__":
    main()
