"""What the comparisons with PostgreSQL and MariaDB share: both are asked, answers are compared, differences are printed."""

import os
import re
import time

SLOW_SECONDS = 1.0


def explained(path):
    """Differences with a reason: a regular expression over the statement and the answers a line; `#` begins the reason above it."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [re.compile(line.strip(), re.I) for line in file if line.strip() and not line.startswith("#")]


def is_ordered(statement):
    return " order by " in statement.lower()


def is_same(statement, ours, theirs):
    """Rows in the same order where the statement wants one, in any order else; errors by their code."""
    if isinstance(ours, dict) or isinstance(theirs, dict):
        return isinstance(ours, dict) and isinstance(theirs, dict) and ours["error"] == theirs["error"]
    if ours == theirs:
        return True
    key = lambda row: [str(value) for value in row]
    is_loose = not is_ordered(statement) or " group by " in statement.lower()
    return is_loose and sorted(ours, key=key) == sorted(theirs, key=key)


class Comparison:
    """Counts what is asked, and keeps what differs."""

    def __init__(self, server, rival, reasons, only_errors=False):
        self.server, self.rival, self.reasons, self.only_errors = server, rival, reasons, only_errors
        self.asked = self.differ = self.explained = 0
        self.refused = {}

    def ask(self, statement):
        self.asked += 1
        begin = time.monotonic()
        found = self.server(statement)
        middle = time.monotonic()
        wanted = self.rival(statement)
        taken, usual = middle - begin, time.monotonic() - middle
        is_slow = taken > SLOW_SECONDS and taken > 4 * usual
        if is_same(statement, found, wanted) and not is_slow:
            return
        line = f"{statement} -- {found} -- {wanted}"
        if any(reason.search(line) for reason in self.reasons):
            self.explained += 1
            return
        self.differ += 1
        if is_slow:
            print(f"{statement}\n    slow: {taken:.2f} s, {usual:.2f} s by the other")
        elif isinstance(found, dict) and not isinstance(wanted, dict) and self.only_errors:
            self.refused.setdefault(found["text"][:90], []).append(statement)
        elif isinstance(found, dict) or isinstance(wanted, dict):
            print(f"{statement}\n    server: {str(found)[:300]}\n    real:   {str(wanted)[:300]}")
        else:
            if not is_ordered(statement):
                found, wanted = sorted(found, key=str), sorted(wanted, key=str)
            pairs = [(a, b) for a, b in zip(found, wanted) if a != b][:3] if len(found) == len(wanted) else [(len(found), len(wanted)), (found[:5], wanted[:5])]
            print(f"{statement}\n    " + "\n    ".join(f"{a}  |  {b}" for a, b in pairs))

    def close(self):
        for text, those in sorted(self.refused.items(), key=lambda item: -len(item[1])):
            print(f"{len(those):5} {text}\n      {min(those, key=len)[:300]}")
        print(f"{self.asked} statements, {self.differ} differ, {self.explained} differ for a known reason")
        return 1 if self.differ else 0
