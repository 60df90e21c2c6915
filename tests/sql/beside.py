"""What the comparisons with PostgreSQL and MariaDB share: both are asked, answers are compared, differences are printed."""

import os
import re
import time
import unicodedata

SLOW_SECONDS = 1.0
GROUPS = re.compile(r"\b(GROUP BY|UNION|INTERSECT|EXCEPT|DISTINCT)\b", re.I)
ZERO = re.compile(r"-?0(\.0+)?")
# Numbers of errors that MariaDB has where MySQL has others.
NUMBERS = {4025: 3819, 4015: 3593, 4092: 1051, 1005: 3780}


def number_of(statement, number):
    """The number that MySQL has for an error of MariaDB."""
    if number == 1451 and statement.lower().startswith("drop"):
        return 3730
    return NUMBERS.get(number, number)


def explained(path):
    """Differences with a reason: a regular expression over the statement and the answers a line; `#` begins the reason above it."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [re.compile(line.strip(), re.I) for line in file if line.strip() and not line.startswith("#")]


class Double(float):
    """A double, and how many digits behind the point it came with."""

    def __new__(cls, text):
        double = super().__new__(cls, text)
        double.digits = len(text.split(".")[1]) if "." in text and "e" not in text.lower() else 0
        return double


def is_same_value(ours, theirs):
    """Doubles are the same with the digits that both have: some of MariaDB's (STDDEV, PERCENT_RANK, what is divided) are shown with few."""
    if ours == theirs:
        return True
    if isinstance(ours, Double) != isinstance(theirs, Double) and ours is not None and theirs is not None:
        # Of another type, but the same number.
        try:
            return abs(float(ours) - float(theirs)) <= abs(float(theirs)) * 1e-12
        except ValueError:
            return False
    if isinstance(ours, str) and isinstance(theirs, str) and ZERO.fullmatch(ours) and theirs.lstrip("-") == ours.lstrip("-"):
        return True
    if isinstance(ours, Double) and isinstance(theirs, Double):
        return abs(ours - theirs) <= max(abs(theirs) * 1e-12, 0.500001 * 10 ** -theirs.digits if theirs.digits else 0)
    return False


def is_same_row(ours, theirs):
    return len(ours) == len(theirs) and all(is_same_value(a, b) for a, b in zip(ours, theirs))


def are_same_rows(ours, theirs):
    return len(ours) == len(theirs) and all(is_same_row(a, b) for a, b in zip(ours, theirs))


def is_ordered(statement):
    return " order by " in statement.lower()


def is_same(statement, ours, theirs, folds_groups=False):
    """Rows in the same order where the statement wants one, in any order else; errors by their code."""
    if isinstance(ours, dict) or isinstance(theirs, dict):
        return isinstance(ours, dict) and isinstance(theirs, dict) and ours["error"] == theirs["error"]
    if are_same_rows(ours, theirs):
        return True
    key = lambda row: [f"{value:.4g}" if isinstance(value, Double) else str(value) for value in row]
    if folds_groups and GROUPS.search(statement):
        # Which of several spellings stands for a group nobody says.
        plain = lambda text: "".join(letter for letter in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(letter))
        fold = lambda rows: [[plain(value) if isinstance(value, str) else value for value in row] for row in rows]
        ours, theirs = fold(ours), fold(theirs)
    is_loose = not is_ordered(statement) or " group by " in statement.lower()
    return is_loose and are_same_rows(sorted(ours, key=key), sorted(theirs, key=key))


class Comparison:
    """Counts what is asked, and keeps what differs."""

    def __init__(self, server, rival, reasons, only_errors=False, folds_groups=False):
        self.folds_groups = folds_groups
        self.server, self.rival, self.reasons, self.only_errors = server, rival, reasons, only_errors
        self.asked = self.differ = self.explained = 0
        self.refused = {}

    def ask(self, statement):
        """What the real server says, and whether the other one says otherwise."""
        self.asked += 1
        begin = time.monotonic()
        found = self.server(statement)
        middle = time.monotonic()
        wanted = self.rival(statement)
        taken, usual = middle - begin, time.monotonic() - middle
        is_slow = taken > SLOW_SECONDS and taken > 4 * usual
        if is_same(statement, found, wanted, self.folds_groups) and not is_slow:
            return wanted, False
        line = f"{statement} -- {found} -- {wanted}"
        if any(reason.search(line) for reason in self.reasons):
            self.explained += 1
            return wanted, True
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
            pairs = [(a, b) for a, b in zip(found, wanted) if not is_same_row(a, b)][:3] if len(found) == len(wanted) else [(len(found), len(wanted)), (found[:5], wanted[:5])]
            print(f"{statement}\n    " + "\n    ".join(f"{a}  |  {b}" for a, b in pairs))
        return wanted, True

    def ask_all(self, statements, learns=False):
        """Statements, of a generator that learns what came of each if it wants to."""
        statements = iter(statements)
        answer = None
        while True:
            try:
                statement = statements.send(answer) if learns else next(statements)
            except StopIteration:
                return
            answer = self.ask(statement)

    def close(self):
        for text, those in sorted(self.refused.items(), key=lambda item: -len(item[1])):
            print(f"{len(those):5} {text}\n      {min(those, key=len)[:300]}")
        print(f"{self.asked} statements, {self.differ} differ, {self.explained} differ for a known reason")
        return 1 if self.differ else 0
