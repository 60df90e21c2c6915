#!/usr/bin/env python3
"""Runs the own test suites of connectors against a server under the name `tarantool`.

    python3 tests/clients/suites.py --server target/debug/lycosa
    python3 tests/clients/suites.py --server target/release/lycosa --against /usr/bin/tarantool
    python3 tests/clients/suites.py --server target/debug/lycosa --only asynctnt --filter stream --json

The suites come with the releases: go-tarantool from the Go module proxy, tarantool-python and asynctnt as source archives from PyPI. They are
kept below $LYCOSA_CLIENTS_DIR, or the target directory. They want ports 3011 to 3022 of this machine, so run one at a time.

With --against the suites run against that server, too, and every test that it passes and the first one does not is printed: the exit status
is 1 if there is one that is not expected (EXPECTED says why). Without it the exit status tells whether anything else failed.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import xml.etree.ElementTree

from run import HERE, CannotInstall, clients_dir, quietly

# Pinned: a new version is tried on purpose.
GO_MODULE = "github.com/tarantool/go-tarantool/v2@v2.4.2"
ARCHIVES = {"asynctnt": "asynctnt==2.4.0", "tarantool-python": "tarantool==1.3.0"}
HELPERS = ["pytest==9.2.0", "pyyaml==6.0.3", "python-dateutil", "pytz", "dbapi-compliance==1.15.0"]

SUITE_MAX_S = 1200
# What is kept of a test's output, from its end.
TEXT_MAX = 20_000
# Packages of go-tarantool, in the order of `go test ./...`. Each is a process of its own: a panic ends the package only.
GO_PACKAGES = [".", "./arrow", "./box", "./crud", "./datetime", "./decimal", "./pool", "./queue", "./settings", "./test_helpers", "./uuid"]

REPLICATION = "needs replication"
VERSION = "expects that a server of version 2.11 has no feature of 3.0; this one announces what works"
# Tests that pass on Tarantool 2.6 or ask for what a later version has, and fail here for a reason that is known: pattern and reason.
EXPECTED = {
    "go-tarantool": [
        (r"/(queue|crud)/as a whole", "needs the rock of that name"),
        (r"/settings/TestSQLRecursiveTriggersSetting$", "needs triggers of SQL"),
        (r"/settings/TestSQLReverseUnorderedSelectsSetting$", "that setting is kept and changes nothing"),
        (r"/pool/TestConn_no_execute_unsupported$", VERSION),
        (r"/pool/TestConnectionHandler", "depends on the time: on a busy machine it fails against Tarantool, too"),
    ],
    "asynctnt": [
        (r"err_loading|waiting_for_spaces_no_reconnect", REPLICATION + ": the server waits for a replica that does not exist"),
        (r"test__features$", VERSION),
        (r"test__push_read_all_error", "a stop lets requests under way end, and sends what they push"),
        (r"test__select_all_by_hash_index", "the order of a HASH index is another one"),
    ],
    "tarantool-python": [],
}


def say(text):
    """Progress: not part of what is asked for."""
    print(text, file=sys.stderr, flush=True)


def environment(directory, name, what, packages):
    """A virtual environment with these packages, made if it is not there yet: its Python."""
    place = directory / name
    python = place / "bin" / "python"
    done = place / "installed"
    if not done.exists():
        say(f"installing {what}")
        quietly([sys.executable, "-m", "venv", "--clear", str(place)])
        quietly([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages])
        done.touch()
    return python


def unpacked(python, release, without_binary, scratch):
    """The source of a release on PyPI, unpacked in a directory. `without_binary`: packages that come as source, `:all:` for each."""
    say(f"fetching {release}")
    download = ["download", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-binary", without_binary, "--dest", scratch]
    quietly([str(python), "-m", "pip", *download, release])
    archive = next(pathlib.Path(scratch).glob("*.tar.gz"))
    with tarfile.open(archive) as content:
        content.extractall(scratch, filter="data")
    return archive.with_name(archive.name[: -len(".tar.gz")])


def python_of(directory):
    """A virtual environment with both connectors and what their tests need."""
    return environment(directory, "suites-python", "the connectors for Python", [*ARCHIVES.values(), *HELPERS])


def fetch_archive(directory, python, name):
    """The tests of a release on PyPI, without the connector itself, so that the installed one is tested."""
    suite = directory / f"suite-{name}"
    if not (suite / "fetched").exists():
        shutil.rmtree(suite, ignore_errors=True)
        suite.mkdir(parents=True)
        folder = "test" if name == "tarantool-python" else "tests"
        with tempfile.TemporaryDirectory() as scratch:
            shutil.copytree(unpacked(python, ARCHIVES[name], ":all:", scratch) / folder, suite / folder)
        if name == "asynctnt":
            # The release does not contain it.
            (suite / "tests" / "files").mkdir(exist_ok=True)
        (suite / "fetched").touch()
    if name == "asynctnt":
        shutil.copy(HERE / "asynctnt_app.lua", suite / "tests" / "files" / "app.lua")
    return suite


def fetch_go_module(directory, name, module):
    """A copy of a module of Go that may be written to, with its tests."""
    suite = directory / f"suite-{name}"
    if not shutil.which("go"):
        raise CannotInstall("go is not installed")
    if not (suite / "fetched").exists():
        say(f"fetching {module}")
        shutil.rmtree(suite, ignore_errors=True)
        done = subprocess.run(["go", "mod", "download", "-json", module], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise CannotInstall(done.stdout + done.stderr)
        shutil.copytree(json.loads(done.stdout)["Dir"], suite)
        for path in [suite, *suite.rglob("*")]:
            path.chmod(path.stat().st_mode | 0o200)
        (suite / "fetched").touch()
    return suite


def run_group(command, environment, directory, output, seconds_max=SUITE_MAX_S):
    """Runs a command and whatever it starts; nothing of it is left behind. Returns False if it took too long."""
    with subprocess.Popen(command, env=environment, cwd=directory, stdin=subprocess.DEVNULL, stdout=output,
                          stderr=subprocess.STDOUT, start_new_session=True) as process:
        try:
            process.wait(seconds_max)
            return True
        except subprocess.TimeoutExpired:
            return False
        finally:
            # Servers that a test has left.
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def run_python(name, suite, python, environment, test_filter):
    """Runs a suite of pytest. Returns outcome and text by test."""
    with tempfile.TemporaryDirectory(prefix="suite-") as scratch:
        # In a copy: tests make their servers' directories where they are.
        work = pathlib.Path(scratch) / "work"
        shutil.copytree(suite, work)
        report = pathlib.Path(scratch) / "report.xml"
        command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
        command += ["test/suites" if name == "tarantool-python" else "tests"]
        if test_filter:
            command += ["-k", test_filter]
        with open(pathlib.Path(scratch) / "log", "w+", encoding="utf-8") as log:
            run_group(command, dict(environment, TEST_PURE_INSTALL="true"), work, log)
            log.seek(0)
            text = log.read()
        if not report.exists():
            return {f"{name} as a whole": ("failed", text[-2000:])}
        results = {}
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            test = f"{case.get('classname')}.{case.get('name')}"
            trouble = case.find("failure") if case.find("failure") is not None else case.find("error")
            if trouble is not None:
                results[test] = ("failed", trouble.get("message") or trouble.text or "")
            else:
                results[test] = ("skipped" if case.find("skipped") is not None else "passed", "")
        return results


def go_outcomes(lines, place):
    """Outcome and text by test of what `go test -json` wrote about the package at a place of its module."""
    texts, results = {}, {}
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        test = event.get("Test")
        name = f"/{place}/{test}" if place else f"/{test}"
        if event["Action"] in ("output", "build-output"):
            texts[name] = (texts.get(name, "") + event["Output"])[-TEXT_MAX:]
        elif event["Action"] in ("pass", "fail", "skip") and test:
            results[name] = ({"pass": "passed", "fail": "failed", "skip": "skipped"}[event["Action"]], texts.get(name, ""))
        elif event["Action"] == "fail" and not results:
            results[f"{name.removesuffix('None')}as a whole"] = ("failed", texts.get(name, "")[-2000:])
    return results


def run_go(suite, environment, test_filter):
    """Runs the packages of go-tarantool, each for itself. Returns outcome and text by test."""
    results = {}
    for package in GO_PACKAGES:
        command = ["go", "test", "-json", "-count=1", "-p", "1"]
        command += ["-run", test_filter] if test_filter else []
        with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
            run_group([*command, package], dict(environment, GOFLAGS="-mod=mod"), suite, output)
            output.seek(0)
            results.update(go_outcomes(output, package.strip("./")))
    return results


def run_suite(name, server, directory, python, options):
    """Runs a suite against a server. Returns outcome and text by test."""
    with tempfile.TemporaryDirectory(prefix="bin-") as path:
        (pathlib.Path(path) / "tarantool").symlink_to(pathlib.Path(server).resolve())
        environment = dict(os.environ, PATH=f"{path}{os.pathsep}{os.environ['PATH']}")
        environment.pop("TARANTOOL_BIN", None)
        begun = time.monotonic()
        if name == "go-tarantool":
            results = run_go(fetch_go_module(directory, name, GO_MODULE), environment, options.filter)
        else:
            results = run_python(name, fetch_archive(directory, python, name), python, environment, options.filter)
    say(f"{name} against {server}: {counts(results)} in {time.monotonic() - begun:.0f} s")
    return results


def counts(results):
    """The numbers of outcomes."""
    found = [outcome for outcome, _ in results.values()]
    return {outcome: found.count(outcome) for outcome in ("passed", "failed", "skipped")}


def reason_of(name, test):
    """Why a test is expected to fail here; None if it is not."""
    return next((reason for pattern, reason in EXPECTED[name] if re.search(pattern, test)), None)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, help="the binary that is run as `tarantool`")
    parser.add_argument("--against", help="another one, to compare with")
    parser.add_argument("--only", action="append", choices=["go-tarantool", *ARCHIVES], help="this suite (may be repeated)")
    parser.add_argument("--filter", help="only tests whose names match, in the words of `go test -run` or `pytest -k`")
    parser.add_argument("--json", action="store_true", help="the outcome of every test as JSON instead of the summary")
    options = parser.parse_args()
    directory = clients_dir()
    directory.mkdir(parents=True, exist_ok=True)
    unexpected, document = 0, {}
    for name in options.only or ["go-tarantool", *ARCHIVES]:
        try:
            python = python_of(directory) if name in ARCHIVES else None
            here = run_suite(name, options.server, directory, python, options)
            there = run_suite(name, options.against, directory, python, options) if options.against else None
        except CannotInstall as reason:
            print(f"{name}: SKIPPED, it cannot be installed: {reason}", flush=True)
            continue
        failed = [test for test, (outcome, _) in here.items() if outcome == "failed"]
        reasons = {test: reason_of(name, test) for test in failed}
        document[name] = {
            "server": counts(here), "against": there and counts(there),
            "tests": {test: {"server": here.get(test, ("absent", ""))[0], "against": there and there.get(test, ("absent", ""))[0],
                             "expected": reasons.get(test)} for test in sorted({*here, *(there or {})})},
        }
        if not options.json:
            print(f"{name}: {counts(here)}" + (f"; against: {counts(there)}" if there else ""))
            for test in sorted(failed, key=lambda test: (reasons[test] or "", test)):
                beside = f" [against: {there.get(test, ('absent', ''))[0]}]" if there else ""
                print(f"  {'expected: ' + reasons[test] if reasons[test] else 'FAILED'}: {test}{beside}")
                if not reasons[test]:
                    print("    " + here[test][1].strip()[:1500].replace("\n", "\n    "))
        unexpected += sum(reasons[test] is None and (there is None or there.get(test, ("absent",))[0] != "failed") for test in failed)
    if options.json:
        print(json.dumps(document, indent=1))
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
