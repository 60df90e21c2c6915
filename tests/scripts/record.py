#!/usr/bin/env python3
"""Golden scripts: records the answers of Tarantool, or checks another server against them.

    record.py                                record every script on tarantool
    record.py tuple/methods.lua fiber        record one script and one area
    record.py --check                        are the kept answers still Tarantool's?
    record.py --check --server target/release/lycosa
    record.py --check --known --server target/release/lycosa          differences that are kept are no failure
    record.py --keep-differences --server target/release/lycosa       keep what differs now
    record.py --engine vinyl ...             only the runs on this engine
"""

import argparse
import concurrent.futures
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
RUNNER = HERE / "runner.lua"
ENGINES_PROBE = HERE / "engines.lua"


class Run:
    """A script on one of its engines."""

    def __init__(self, script, engine, is_first):
        self.script = script
        self.engine = engine
        self.is_first = is_first  # the script names this engine first, or none at all

    @property
    def name(self):
        name = str(self.script.relative_to(HERE))
        return name if self.is_first else f"{name} ({self.engine})"

    @property
    def own_result_path(self):
        return self.script.with_suffix(".result" if self.is_first else f".{self.engine}.result")

    @property
    def result_path(self):
        """What Tarantool answers: a file of this engine's own only if its answers are not those of the first engine."""
        own = self.own_result_path
        return own if own.exists() else self.script.with_suffix(".result")

    @property
    def own_differs_path(self):
        return self.script.with_suffix(".differs" if self.is_first else f".{self.engine}.differs")

    @property
    def differs_path(self):
        """What Lycosa answers otherwise, as a diff; there is no file if nothing differs, or as on the first engine."""
        own = self.own_differs_path
        is_shared = not own.exists() and self.result_path != self.own_result_path
        return self.script.with_suffix(".differs") if is_shared else own


class Answer:
    """What one server printed for one run."""

    def __init__(self, run, text, failure, complaint=""):
        self.run = run
        self.text = text
        self.failure = failure  # None, or why the run did not end by itself
        self.complaint = complaint  # stderr; shown beside a failure, never compared

    @property
    def name(self):
        return self.run.name


def run_script(server, run, timeout_s):
    """Runs one script in a directory of its own, which is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="golden-") as directory:
        try:
            done = subprocess.run(
                [server, str(RUNNER), str(run.script), run.engine],
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                timeout=timeout_s,
            )
        except subprocess.TimeoutExpired as error:
            text = (error.stdout or b"").decode("utf-8", "replace")
            return Answer(run, text, f"no end after {timeout_s} s")
        text = done.stdout.decode("utf-8", "replace")
        failure = None if done.returncode == 0 else f"exit status {done.returncode}"
        return Answer(run, text, failure, done.stderr.decode("utf-8", "replace"))


def engines_of(script):
    """The engines that a script names in a line `-- engines: memtx, vinyl`."""
    found = re.search(r"^-- engines: (.+)$", script.read_text(encoding="utf-8"), re.MULTILINE)
    return re.findall(r"\w+", found[1]) if found else ["memtx"]


def engines_of_server(server, engines):
    """Those of the engines that a server has; it is asked once."""
    with tempfile.TemporaryDirectory(prefix="golden-") as directory:
        done = subprocess.run(
            [server, str(ENGINES_PROBE), *engines],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    if done.returncode != 0:
        sys.exit(f"record.py: {server} does not say which engines it has:\n{done.stderr.decode('utf-8', 'replace')}")
    return set(done.stdout.decode().split())


def find_runs(server, scripts, engine):
    """Every script on each of its engines that the server has, or on one engine only."""
    runs = []
    for script in scripts:
        engines = engines_of(script)
        runs += [Run(script, name, name == engines[0]) for name in engines if engine in (None, name)]
    has = engines_of_server(server, sorted({run.engine for run in runs}))
    for missing in sorted({run.engine for run in runs} - has):
        print(f"{missing}: the server has no such engine, {sum(run.engine == missing for run in runs)} scripts are not run on it")
    return [run for run in runs if run.engine in has]


def find_scripts(names):
    """All scripts, or those named: a script, an area, with or without tests/scripts/."""
    if not names:
        return sorted(HERE.glob("*/*.lua"))
    scripts = []
    for name in names:
        path = next((p for p in (HERE / name, pathlib.Path(name).resolve()) if p.exists()), None)
        if path is None or HERE not in path.resolve().parents:
            sys.exit(f"record.py: no such script or area: {name}")
        scripts += sorted(path.glob("*.lua")) if path.is_dir() else [path.resolve()]
    return scripts


def blocks(text):
    """A statement with its answer is a block; blocks are separated by blank lines."""
    return [block for block in text.split("\n\n") if block.strip()]


def count_statements(text):
    return sum("\n=>" in block or "\n!!" in block for block in blocks(text))


def count_equal(kept, given):
    """Statements of `kept` whose whole block is the same in `given`, in order."""
    return sum(a.strip() == b.strip() for a, b in zip(blocks(kept), blocks(given)) if "\n=>" in a or "\n!!" in a)


def show_complaint(answer):
    lines = answer.text.splitlines()[-3:] + answer.complaint.splitlines()[-5:]
    print("".join(f"    {line}\n" for line in lines), end="")


def record(answer):
    if answer.failure:
        print(f"{answer.name}: {answer.failure}, not recorded")
        show_complaint(answer)
        return False
    run, own = answer.run, answer.run.own_result_path
    first = run.script.with_suffix(".result")
    if not run.is_first and first.exists() and first.read_text(encoding="utf-8") == answer.text:
        # One file says it for both engines.
        if own.exists():
            own.unlink()
            print(f"{answer.name}: as on the first engine now")
        return True
    old = own.read_text(encoding="utf-8") if own.exists() else None
    if old != answer.text:
        own.write_text(answer.text, encoding="utf-8")
        print(f"{answer.name}: {'renewed' if old is not None else 'new'}")
    return True


def difference(answer, kept):
    """The lines of a diff from the kept answers to the given ones."""
    lines = difflib.unified_diff(
        kept.splitlines(keepends=True),
        answer.text.splitlines(keepends=True),
        str(answer.run.result_path.relative_to(HERE)),
        "given",
    )
    return [line if line.endswith("\n") else line + "\n" for line in lines]


def keep_difference(answer):
    """Writes the difference beside the script, or removes the file if there is none any more."""
    if answer.failure:
        print(f"{answer.name}: {answer.failure}, not kept")
        show_complaint(answer)
        return False
    lines = difference(answer, answer.run.result_path.read_text(encoding="utf-8"))
    own = answer.run.own_differs_path
    if own.exists():
        own.unlink()
    shared = answer.run.differs_path
    is_said = shared != own and shared.exists() and shared.read_text(encoding="utf-8") == "".join(lines)
    if lines and not is_said:
        own.write_text("".join(lines), encoding="utf-8")
    return True


def check(answer, quiet, allows_known):
    if not answer.run.result_path.exists():
        print(f"{answer.name}: no kept answer, record it first")
        return False, 0, 0
    kept = answer.run.result_path.read_text(encoding="utf-8")
    statements = count_statements(kept)
    if kept == answer.text and not answer.failure:
        return True, statements, statements
    equal = count_equal(kept, answer.text)
    if allows_known and not answer.failure and answer.run.differs_path.exists():
        known = answer.run.differs_path.read_text(encoding="utf-8")
        if known == "".join(difference(answer, kept)):
            return True, equal, statements
        print(f"{answer.name}: differs otherwise than the kept difference says; see --keep-differences")
    if answer.failure:
        print(f"{answer.name}: {answer.failure}")
        show_complaint(answer)
    if quiet:
        print(f"{answer.name}: {equal} of {statements} statements agree")
    else:
        sys.stdout.writelines(difference(answer, kept))
    return False, equal, statements


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="scripts or areas (default: all)")
    parser.add_argument("--server", default="tarantool", help="binary to run (default: tarantool)")
    parser.add_argument("--check", action="store_true", help="compare with the kept answers, change nothing")
    parser.add_argument("--known", action="store_true", help="with --check: differences kept beside the scripts are no failure")
    parser.add_argument("--keep-differences", action="store_true", help="write what differs beside the scripts")
    parser.add_argument("--quiet", action="store_true", help="with --check: one line for each script, no diffs")
    parser.add_argument("--engine", help="only the runs on this engine")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="scripts run at once")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for one script (default: 60)")
    options = parser.parse_args()

    server = shutil.which(options.server)
    if server is None:
        sys.exit(f"record.py: no such server: {options.server}")
    server = str(pathlib.Path(server).absolute())
    runs = find_runs(server, find_scripts(options.names), options.engine)

    failed = equal_sum = statements_sum = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        answers = pool.map(lambda run: run_script(server, run, options.timeout), runs)
        for answer in answers:
            if options.keep_differences:
                ok = keep_difference(answer)
                equal = statements = count_statements(answer.text)
            elif options.check:
                ok, equal, statements = check(answer, options.quiet, options.known)
            else:
                ok = record(answer)
                equal = statements = count_statements(answer.text)
            failed += not ok
            equal_sum += equal
            statements_sum += statements
    if options.check:
        print(
            f"{len(runs) - failed} of {len(runs)} runs, "
            f"{equal_sum} of {statements_sum} statements agree"
        )
    else:
        verb = "compared" if options.keep_differences else "recorded"
        print(f"{len(runs) - failed} of {len(runs)} runs {verb}, {statements_sum} statements")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
