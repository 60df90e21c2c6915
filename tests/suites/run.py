#!/usr/bin/env python3
"""Runs the published test suites of Redis 7.0 and memcached 1.6 against a server, and counts their cases.

    apt-get source redis-server memcached       # the folders redis-7.0.15 and memcached-1.6.18
    python3 tests/suites/run.py redis --source redis-7.0.15 --server target/release/lycosa --real redis-server
    python3 tests/suites/run.py memcached --source memcached-1.6.18 --server target/release/lycosa --real memcached
    python3 tests/suites/run.py redis --source redis-7.0.15 --server target/release/lycosa --only unit/type/list unit/sort

With --real the same files run against the real server, too, and a case counts only if that one passes it. Cases that are known
not to pass are listed with their reasons in expected_redis.txt and expected_memcached.txt; --real is what shows whether a list is
still right. The exit status is 1 if a case fails that is not listed, 2 if the suite could not be run.

Redis' suite needs tclsh, memcached's needs perl. Sources and results stay outside of the repository: results go to a temporary
folder, or to --output, one file for each file of the suite; what the real server has answered is taken from there if it is there.
"""

import argparse
import collections
import pathlib
import shutil
import sys
import tempfile

import memcached_suite
import redis_suite

HERE = pathlib.Path(__file__).resolve().parent
SUITES = {"redis": redis_suite, "memcached": memcached_suite}


def expected(suite):
    """What is known not to pass: (file, case) to reason. A case of `*` stands for all of its file."""
    known = {}
    for line in (HERE / f"expected_{suite}.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            file, case, reason = line.split(" | ")
            known[file, case] = reason
    return known


def missing(passed, judge):
    """The cases of `judge` that are not in `passed`; a name that stands several times counts as often."""
    return list((collections.Counter(judge) - collections.Counter(passed)).elements())


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("suite", choices=sorted(SUITES))
    arguments.add_argument("--source", type=pathlib.Path, required=True, help="folder of the release's sources")
    arguments.add_argument("--server", type=pathlib.Path, required=True, help="binary of lycosa")
    arguments.add_argument("--real", help="binary of redis-server or memcached, which judges what can pass")
    arguments.add_argument("--only", nargs="+", metavar="FILE", help="names of files, as unit/sort or cas")
    arguments.add_argument("--timeout", type=int, default=300, metavar="SECONDS", help="for one file (default: 300)")
    arguments.add_argument("--output", type=pathlib.Path, help="folder for what the suite prints")
    chosen = arguments.parse_args()

    suite, known = SUITES[chosen.suite], expected(chosen.suite)
    source, server = chosen.source.resolve(), chosen.server.resolve()
    if not server.is_file() or not suite.is_source(source):
        print(f"{server} is no binary, or {source} not the sources of {chosen.suite}", file=sys.stderr)
        return 2
    for tool in suite.TOOLS + ([chosen.real] if chosen.real else []):
        if not shutil.which(tool):
            print(f"{tool} is not installed", file=sys.stderr)
            return 2
    output = chosen.output or pathlib.Path(tempfile.mkdtemp(prefix="suites-"))
    output.mkdir(parents=True, exist_ok=True)
    files = chosen.only or suite.files(source)
    print(f"{len(files)} files; what they print is in {output}", flush=True)

    total, surprises, listed = collections.Counter(), [], []
    for number, file in enumerate(files, 1):
        name = file.replace("/", "_")
        ours = suite.run(source, file, server, None, output / f"{name}.ours", chosen.timeout)
        judged = output / f"{name}.real"
        if chosen.real and not judged.exists():
            suite.run(source, file, None, shutil.which(chosen.real), output / f"{name}.part", chosen.timeout)
            (output / f"{name}.part").rename(judged)
        real = suite.read(judged) if chosen.real else None
        failed = missing(ours.passed, real.passed) if real else ours.failed
        wanted = len(real.passed) if real else len(ours.passed) + len(ours.failed)
        total.update(wanted=wanted, passed=wanted - len(failed), skipped=len(real.skipped if real else ours.skipped), files=1,
                     whole=int(not failed and wanted > 0))
        said = f"{wanted - len(failed)} of {wanted}" + (f", {ours.note}" if ours.note else "")
        print(f"[{number}/{len(files)}] {file}: {said}", flush=True)
        for case in failed:
            reason = known.get((file, case)) or known.get((file, "*"))
            (listed if reason else surprises).append((file, case))
            print(f"    {'listed' if reason else 'FAILED'}: {case}{f' ({reason})' if reason else ''}", flush=True)

    share = total["passed"] / total["wanted"] if total["wanted"] else 0
    print(f"\n{total['passed']} of {total['wanted']} cases{' that the real one passes' if chosen.real else ''} ({share:.1%}), "
          f"{total['whole']} of {total['files']} files whole, {total['skipped']} cases skipped by the suite")
    if not total["wanted"]:
        print("nothing was run", file=sys.stderr)
        return 2
    print(f"not passed: {len(listed)} listed with their reasons, {len(surprises)} not listed")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
