"""Redis' suite, in the form that it has for servers that it did not start (`runtest --host`)."""

import os
import random
import re
import signal
import subprocess

from server import Result, free_port, running

TOOLS = ["tclsh"]
# What is left out as a whole: replication, clusters and modules; files that start and stop servers of their own.
LEFT_OUT = {"unit/aofrw", "unit/cluster", "unit/cluster-scripting", "unit/oom-score-adj", "unit/shutdown", "unit/tls"}
# --durable: an error inside of a case ends that case and not the file.
OPTIONS = ["--no-latency", "--durable", "--clients", "1", "--tags", "-needs:repl", "--timeout", "120"]


def is_source(source):
    return (source / "tests/test_helper.tcl").is_file()


def files(source):
    """In the order of the suite's own list."""
    listed = re.search(r"set ::all_tests \{(.*?)\}", (source / "tests/test_helper.tcl").read_text(), re.DOTALL)
    return [file for file in listed[1].split() if file.startswith("unit/") and "cluster/" not in file and file not in LEFT_OUT]


def command(server, real, port):
    if real:
        # As the suite configures those that it starts.
        allowed = ["--enable-debug-command", "yes", "--enable-protected-configs", "yes", "--enable-module-command", "yes"]
        return [real, "--port", str(port), "--save", "", "--dir", "{folder}", *allowed]
    # The suite makes users (ACL SETUSER) and sets options: its connections act for who may.
    return [str(server), "serve", "--work-dir", "{folder}", "--listen", f"redis://admin@127.0.0.1:{port}", "--wal-mode", "write", "--log-level", "warn"]


def run(source, file, server, real, output, timeout_s):
    port = free_port()
    with running(command(server, real, port), port, f"{output}.log"), open(output, "wb") as out:
        suite = subprocess.Popen(
            ["tclsh", "tests/test_helper.tcl", "--host", "127.0.0.1", "--port", str(port), "--single", file, "--baseport", str(random.randrange(21000, 29000)), *OPTIONS],
            cwd=source, stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True,
        )
        note = ""
        try:
            suite.wait(timeout_s)
        except subprocess.TimeoutExpired:
            note = f"ended after {timeout_s} s"
        finally:
            if suite.poll() is None:
                os.killpg(suite.pid, signal.SIGKILL)
                suite.wait()
    return read(output, note)


def read(output, note=""):
    text = re.sub(r"\x1b\[[0-9;]*m", "", output.read_text(errors="replace"))
    passed = re.findall(r"^\[ok\]: (.*?)(?: \(\d+ ms\))?$", text, re.MULTILINE)
    failed = [re.sub(r" in tests/\S+\.tcl$", "", case) for case in re.findall(r"^\[(?:err|exception|timeout)\]: (.*)$", text, re.MULTILINE)]
    skipped = re.findall(r"^\[(?:ignore|skip)\]: (.*)$", text, re.MULTILINE)
    if "[exception]" in text or "[TIMEOUT]" in text:
        note = note or "ended early"
    elif "The End" not in text:
        note = note or "THE SUITE DID NOT RUN"
    return Result(passed, failed, skipped, note)
