"""One server under test: started in a folder of its own, stopped by its number."""

import contextlib
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import typing

START_MAX_S = 20


class Result(typing.NamedTuple):
    passed: list
    failed: list
    skipped: list
    note: str = ""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(command, port, log):
    """Runs `command`, whose `{folder}` is an empty folder, until its port answers and then for the block."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="suite-server-"))
    with open(log, "wb") as out:
        process = subprocess.Popen([part.replace("{folder}", str(folder)) for part in command], stdout=out, stderr=out, stdin=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + START_MAX_S
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{command[0]} does not listen at {port}, see {log}")
            time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)
