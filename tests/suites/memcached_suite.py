"""memcached's suite: each test starts servers by their path, so a script in that place starts Lycosa with options of the same meaning."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from server import Result

TOOLS = ["perl"]
LAUNCHER = pathlib.Path(__file__).resolve().parent / "memcached_launcher.py"

# Every test gives an option that only a build with confined privileges has: one with its default stands there.
REAL = """#!/bin/sh
for part; do
    shift
    test "$part" = relaxed_privileges && part=slab_automove_ratio=0.8
    set -- "$@" "$part"
done
exec {} "$@"
"""


def is_source(source):
    return (source / "t/lib/MemcachedTest.pm").is_file()


def files(source):
    return sorted(file.stem for file in (source / "t").glob("*.t"))


def write_script(path, text):
    path.write_text(text)
    path.chmod(0o755)


def run(source, file, server, real, output, timeout_s):
    """In a folder of its own, in which the tests look for what they start."""
    with tempfile.TemporaryDirectory(prefix="suite-memcached-") as folder:
        folder = pathlib.Path(folder)
        shutil.copytree(source / "t", folder / "t")
        launched = f'"{sys.executable}" "{LAUNCHER}" --server "{server}" --folders "{folder}"'
        write_script(folder / "memcached-debug", REAL.format(real) if real else f'#!/bin/sh\nexec {launched} "$@"\n')
        # The release compiles this one; the time of a test is bounded here.
        write_script(folder / "timedrun", '#!/bin/sh\nshift\nexec "$@"\n')
        with open(output, "wb") as out:
            test = subprocess.Popen(["perl", f"t/{file}.t"], cwd=folder, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True)
            try:
                test.wait(timeout_s)
            except subprocess.TimeoutExpired:
                out.write(b"\n# ended: it took too long\n")
            finally:
                # Servers that a test leaves behind are of its session.
                try:
                    os.killpg(test.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                test.wait()
    return read(output)


def read(output, note=""):
    """Cases by their numbers in the file: their names are often values."""
    text = output.read_text(errors="replace")
    passed, failed, skipped = [], [], []
    for is_bad, number, rest in re.findall(r"^(not )?ok (\d+)(.*)$", text, re.MULTILINE):
        if re.search(r"# (skip|todo)", rest, re.IGNORECASE):
            skipped.append(number)
        else:
            (failed if is_bad else passed).append(number)
    planned = re.search(r"^1\.\.(\d+)", text, re.MULTILINE)
    reached = {int(number) for number in passed + failed + skipped}
    if planned:
        failed += [str(number) for number in range(1, int(planned[1]) + 1) if number not in reached]
    if "ended: it took too long" in text:
        note = "ended: it took too long"
    elif re.search(r"^1\.\.0 # skip", text, re.MULTILINE | re.IGNORECASE):
        note = "skipped as a whole"
    return Result(passed, failed, skipped, note)
