#!/usr/bin/env python3
"""Puts random statements to Tarantool and to Lycosa and compares the answers.

    run.py --lycosa ../../target/debug/lycosa                      programs of every area
    run.py --areas text,notation --seed 7 --programs 50 ...        some of them
    run.py --details 3 ...                                         three examples of each cause, shortened
    run.py --record sample.json ...                                keep programs with Tarantool's answers
    run.py --replay sample.json --lycosa ...                       compare with kept answers; needs no Tarantool
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import iproto
import known
import programs


HERE = pathlib.Path(__file__).resolve().parent
RUNNER = HERE.parent / "scripts" / "runner.lua"
DIED = "<the process ended>"
HUNG = "<no answer>"


def run_program(server, area, statements, timeout_s):
    """The answers of a server, one for each statement."""
    if area == "requests":
        return iproto.answers(server, statements, timeout_s)
    with tempfile.TemporaryDirectory(prefix="differential-") as directory:
        script = pathlib.Path(directory) / "program.lua"
        script.write_text("\n\n".join(statements) + "\n", encoding="utf-8")
        try:
            done = subprocess.run([server, str(RUNNER), str(script), "vinyl" if area == "vinyl" else "memtx"], cwd=directory, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout_s)
            output, end = done.stdout, DIED
        except subprocess.TimeoutExpired as expired:
            output, end = expired.stdout or b"", HUNG
    blocks = output.decode("utf-8", "replace").rstrip("\n").split("\n\n")
    answers = []
    for statement, block in zip(statements, blocks):
        if not block.startswith(statement + "\n"):
            break
        answers.append(block[len(statement) + 1:])
    while len(answers) < len(statements):
        answers.append(end)
        end = "<not reached>"
    return answers


def normal(text):
    """An answer without what is different in every case of one cause."""
    text = re.sub(r'"(?:[^"\\]|\\.)*"', "S", text)
    text = re.sub(r"'[^']*'", "S", text)
    return re.sub(r"-?\d[\d.]*(?:e[+-]?\d+)?", "N", text)[:300]


def callee(statement):
    found = re.findall(r"[\w.]+[:.]\w+(?=[({'])|\w+(?=\()", statement)
    return found[0] if found else statement[:20]


class Difference:
    def __init__(self, area, seed, statements, at, expected, given):
        self.area, self.seed, self.statements, self.at = area, seed, statements, at
        self.expected, self.given = expected, given
        self.statement = statements[at]

    @property
    def cause(self):
        name = self.statement.split(" ")[0] if self.area == "requests" else callee(self.statement)
        return name, normal(self.expected), normal(self.given)

    def known(self):
        return known.reason(self.area, self.statement, self.expected, self.given)


def rows(answer):
    """The rows of a list of tuples as it is printed, sorted; None if it is anything else."""
    if answer == "=> {}" or answer == "=> []":
        return []
    found = re.fullmatch(r"=> \[(.*)\]", answer, re.DOTALL)
    if not found or not found[1].strip().startswith("tuple["):
        return None
    if "\n" in found[1]:
        return sorted(line.strip().rstrip(",") for line in found[1].strip().split("\n"))
    return sorted(re.split(r", (?=tuple\[)", found[1]))


class Unordered:
    """What is known of the rows of a space with a HASH index, which are in no order: all that an answer of both servers has shown."""

    def __init__(self, statements):
        self.starts = next((at for at, statement in enumerate(statements) if "type = 'hash'" in statement), len(statements))
        self.seen = set()

    def note(self, right):
        """Takes in an answer that both servers gave."""
        shown = rows(right)
        self.seen.update(shown if shown is not None else re.findall(r"^=> (tuple\[.*\])$", right))

    def is_same(self, at, statement, right, ours):
        """Whether answers that show other rows are both right."""
        if at < self.starts:
            return False
        expected, given = rows(right), rows(ours)
        if expected is not None and expected == given:
            return True
        # Which rows a limit, an offset or GT leaves is chance: their number is not, nor is that they are rows of the space.
        if expected is not None and given is not None and re.search(r"limit|offset|'(ALL|GT)'|, \{\}", statement):
            if re.search(r"'GT'", statement):
                return self.seen.issuperset(given)
            return len(expected) == len(given) and self.seen.issuperset(given)
        # The first of all, one by chance, or how many are behind a key.
        return bool(re.search(r"select\(\)\[1\]|random|count\(.*'GT'", statement))


def compare(area, seed, statements, expected, given):
    found = []
    unordered = Unordered(statements)
    for at, (right, ours) in enumerate(zip(expected, given)):
        # What follows the end of a process says nothing.
        if right in (DIED, HUNG, "<not reached>"):
            break
        if right == ours or unordered.is_same(at, statements[at], right, ours):
            unordered.note(right)
        else:
            found.append(Difference(area, seed, statements, at, right, ours))
            if ours in (DIED, HUNG):
                break
    return found


def shorten(difference, tarantool, lycosa, timeout_s):
    """The fewest statements before the one that differs with which it still does."""
    kept = list(difference.statements[: difference.at])
    last = difference.statement

    def differs(statements):
        right = run_program(tarantool, difference.area, statements + [last], timeout_s)[-1]
        ours = run_program(lycosa, difference.area, statements + [last], timeout_s)[-1]
        return right != ours and normal(right) == normal(difference.expected) and normal(ours) == normal(difference.given)

    step = max(len(kept) // 2, 1)
    while kept:
        at = 0
        while at < len(kept):
            fewer = kept[:at] + kept[at + step:]
            if differs(fewer):
                kept = fewer
            else:
                at += step
        if step == 1:
            break
        step //= 2
    return kept + [last]


def report(differences, totals, options):
    news = [difference for difference in differences if difference.known() is None]
    groups = collections.defaultdict(list)
    for difference in news:
        groups[difference.cause].append(difference)
    for cause, members in sorted(groups.items(), key=lambda item: -len(item[1])):
        print(f"\n== {len(members)} x {cause[0]}")
        for difference in members[: max(options.details, 1)]:
            print(f"   [{difference.area} {difference.seed}]")
            statements = [difference.statement]
            if options.details and options.tarantool and options.shorten:
                statements = shorten(difference, options.tarantool, options.lycosa, options.timeout)
            for statement in statements:
                print(f"   {statement[:400]}")
            print("   T " + difference.expected[:400].replace("\n", "\n     "))
            print("   L " + difference.given[:400].replace("\n", "\n     "))
    reasons = collections.Counter(difference.known() for difference in differences if difference.known())
    for reason, count in reasons.most_common():
        print(f"\naccepted {count} x: {reason}")
    for area, count in sorted(totals.items()):
        wrong = sum(difference.area == area for difference in news)
        print(f"{area:10} {wrong:6} of {count:7} answers differ")
    total = sum(totals.values())
    share = 100 * len(news) / total if total else 0
    print(f"\n{total} answers, {len(news)} differ ({share:.2f} %) in {len(groups)} ways; {sum(reasons.values())} more differ as is known")
    return share


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lycosa", required=True, help="binary to doubt")
    parser.add_argument("--tarantool", default="tarantool", help="binary to believe")
    parser.add_argument("--areas", help="comma separated (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="of the first program; the next has the next")
    parser.add_argument("--programs", type=int, default=10, help="for each area")
    parser.add_argument("--length", type=int, default=60, help="statements of a program, about")
    parser.add_argument("--details", type=int, default=0, help="examples of each cause")
    parser.add_argument("--shorten", action="store_true", help="with --details: leave out statements that are not needed")
    parser.add_argument("--record", help="file to keep programs and Tarantool's answers in")
    parser.add_argument("--replay", help="file with kept programs")
    parser.add_argument("--allowed", type=float, default=100.0, help="percent that may differ; exit status 1 above")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for one program")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    options.lycosa = str(pathlib.Path(shutil.which(options.lycosa) or sys.exit(f"run.py: no such binary: {options.lycosa}")).absolute())

    if options.replay:
        options.tarantool = None
        kept = json.loads(pathlib.Path(options.replay).read_text(encoding="utf-8"))
        work = [(item["area"], item["seed"], item["statements"], item["answers"]) for item in kept]
    else:
        options.tarantool = shutil.which(options.tarantool) or sys.exit(f"run.py: no such binary: {options.tarantool}")
        areas = options.areas.split(",") if options.areas else [*programs.AREAS, "requests"]
        work = []
        for area in areas:
            for seed in range(options.seed, options.seed + options.programs):
                make = iproto.program if area == "requests" else programs.program
                work.append((area, seed, make(area, seed, options.length), None))

    def both(item):
        area, seed, statements, expected = item
        if expected is None:
            expected = run_program(options.tarantool, area, statements, options.timeout)
        return item, expected, run_program(options.lycosa, area, statements, options.timeout)

    differences, totals, kept = [], collections.Counter(), []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for (area, seed, statements, _), expected, given in pool.map(both, work):
            totals[area] += len(statements)
            differences += compare(area, seed, statements, expected, given)
            if options.record:
                # A statement that ends Tarantool is no example of how to answer.
                end = next((at for at, answer in enumerate(expected) if answer in (DIED, HUNG)), len(expected))
                kept.append({"area": area, "seed": seed, "statements": statements[:end], "answers": expected[:end]})
    if options.record:
        pathlib.Path(options.record).write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 1 if report(differences, totals, options) > options.allowed else 0


if __name__ == "__main__":
    sys.exit(main())
