#!/usr/bin/env python3
"""Rocks, unmodified, on a server: each script here is the try of the rock of its name.

    run.py --rocks /path/to/rocks                       every rock that lies there, on target/release/lycosa
    run.py --rocks /path/to/rocks --server tarantool queue
    run.py                                              what needs no rock

Nothing is fetched: a rock is a directory or a file of its name in the directory that --rocks names, as `require` finds it there, its half in
C compiled beside it. A rock that is not there is not tried, and that is said.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# What is no rock's try.
OWN = {"shards", "cluster", "vshard_storage", "crud_storage"}
TIMEOUT_S = 180


def is_there(rocks, name):
    return rocks is not None and any((rocks / file).exists() for file in (f"{name}.lua", f"{name}/init.lua", f"{name}/server.lua"))


def run_rock(server, rocks, name):
    """Runs one script in a directory of its own. Returns what failed, or nothing."""
    with tempfile.TemporaryDirectory(prefix="rocks-", ignore_cleanup_errors=True) as directory:
        preload = (
            f"package.path = '{rocks}/?.lua;{rocks}/?/init.lua;' .. package.path "
            f"package.cpath = '{rocks}/?.so;' .. package.cpath "
            f"dofile('{HERE / (name + '.lua')}')"
        )
        script = pathlib.Path(directory) / "start.lua"
        script.write_text(preload, encoding="utf-8")
        try:
            done = subprocess.run(
                [server, str(script)], cwd=directory, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S
            )
        except subprocess.TimeoutExpired:
            return f"no end after {TIMEOUT_S} s"
        text = done.stdout.decode("utf-8", "replace")
        if done.returncode != 0:
            return text + done.stderr.decode("utf-8", "replace")
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rocks", type=pathlib.Path, help="the directory that the rocks lie in")
    parser.add_argument("--server", default=str(ROOT / "target/release/lycosa"))
    parser.add_argument("names", nargs="*", help="rocks; all that there is a script for, if none is named")
    arguments = parser.parse_args()
    rocks = arguments.rocks and arguments.rocks.resolve()
    names = arguments.names or sorted(path.stem for path in HERE.glob("*.lua") if path.stem not in OWN)
    failed = 0
    for name in names:
        if not is_there(rocks, name):
            print(f"{name}: not there, not tried")
            continue
        failure = run_rock(arguments.server, rocks, name)
        print(f"{name}: {'works' if failure is None else 'fails'}")
        if failure is not None:
            failed += 1
            print(failure)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
