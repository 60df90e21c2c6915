"""What the comparisons with PostgreSQL and MariaDB share: both are asked, answers are compared, differences are printed."""

import os
import re
import time
import unicodedata

SLOW_SECONDS = 1.0
GROUPS = re.compile(r"\b(GROUP BY|UNION|INTERSECT|EXCEPT|DISTINCT)\b", re.I)
ZERO = re.compile(r"-?0(\.0+)?")
# Numbers of errors that MariaDB has where MySQL has others.
NUMBERS = {4025: 3819, 4015: 3593, 4092: 1051, 1005: 3780, 1901: 3102, 1906: 3105, 4029: 3107}


def number_of(statement, number):
    """The number that MySQL has for an error of MariaDB."""
    if number == 1451 and statement.lower().startswith("drop"):
        return 3730
    return NUMBERS.get(number, number)


def are_near(ours, theirs, most):
    """True for rows whose numbers differ by no more and whose texts by case and accents alone, in any order."""
    def is_near(a, b):
        if isinstance(a, str) and isinstance(b, str) and folded(a) == folded(b):
            return True
        try:
            return is_same_value(a, b) or abs(float(a) - float(b)) <= max(most, 1e-9 * abs(float(b)))
        except (TypeError, ValueError):
            return False
    left = list(theirs)
    for row in ours:
        at = next((at for at, other in enumerate(left) if len(row) == len(other) and all(map(is_near, row, other))), None)
        if at is None:
            return False
        left.pop(at)
    return not left


def are_near_as_sets(ours, theirs, most):
    """The same where rows that are near each other count once."""
    has = lambda rows, row: any(are_near([row], [other], most) for other in rows)
    return all(has(theirs, row) for row in ours) and all(has(ours, row) for row in theirs)


def folded(text):
    """A text without regard to case and accents."""
    return "".join(letter for letter in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(letter))


def are_alike_by_letters(ours, theirs):
    """The same where rows whose letters differ by their case alone count once."""
    keys = lambda rows: {tuple(folded(value) if isinstance(value, str) else value for value in row) for row in rows}
    return keys(ours) == keys(theirs)


class Reason:
    """A difference that is known: a regular expression over the statement and the answers.

    A query of its groups has to find a row in the real server, if there is one. Another statement of them has to be answered there as the first one was here.
    How answers may differ, if that is said.
    """

    def __init__(self, pattern):
        self.pattern, self.query, self.instead, self.holds, self.times = re.compile(pattern, re.I), None, None, None, 0

    def explains(self, line, ours, theirs, rival):
        found = self.pattern.search(line)
        if not found:
            return False
        if self.holds is not None and (isinstance(ours, dict) or isinstance(theirs, dict) or not self.holds(ours, theirs)):
            return False
        if self.instead:
            statement = self.instead.format(**found.groupdict())
            if not is_same(statement, ours, rival(statement)):
                return False
        rows = rival(self.query.format(**found.groupdict())) if self.query else True
        is_it = bool(rows) and not isinstance(rows, dict)
        self.times += is_it
        return is_it


def near_by(compare, most):
    return lambda ours, theirs: compare(ours, theirs, most)


def explained(path):
    """Differences with a reason, a line each; `#` begins the reason above it. Below it `?` begins a query, `=` another statement, `~` how far numbers may differ, `~~` the same where
    rows that are near count once, and `^^` says that letters differ by their case alone."""
    reasons = []
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            for line in map(str.strip, file):
                if line.startswith("?"):
                    reasons[-1].query = line[1:].strip()
                elif line.startswith("="):
                    reasons[-1].instead = line[1:].strip()
                elif line.startswith("~"):
                    reasons[-1].holds = near_by(are_near_as_sets if line.startswith("~~") else are_near, float(line.lstrip("~")))
                elif line == "^^":
                    reasons[-1].holds = are_alike_by_letters
                elif line and not line.startswith("#"):
                    reasons.append(Reason(line))
    return reasons


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
    # By what is no double first: doubles may differ in their last digits.
    key = lambda row: ([str(value) for value in row if not isinstance(value, Double)], [value for value in row if isinstance(value, Double)])
    if folds_groups and GROUPS.search(statement):
        # Which of several spellings stands for a group nobody says.
        fold = lambda rows: [[folded(value) if isinstance(value, str) else value for value in row] for row in rows]
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
        if is_slow and statement.startswith("SELECT"):
            # The machine may have been busy with something else.
            begin = time.monotonic()
            found = self.server(statement)
            is_slow = time.monotonic() - begin > SLOW_SECONDS
        if is_same(statement, found, wanted, self.folds_groups) and not is_slow:
            return wanted, False
        line = f"{statement} -- {found} -- {wanted}"
        if any(reason.explains(line, found, wanted, self.rival) for reason in self.reasons):
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
        for reason in sorted((reason for reason in self.reasons if reason.times), key=lambda reason: -reason.times):
            print(f"{reason.times:5} {reason.pattern.pattern}")
        print(f"{self.asked} statements, {self.differ} differ, {self.explained} differ for a known reason")
        return 1 if self.differ else 0
