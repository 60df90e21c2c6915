"""Differences that are meant, and why. What is not here is a fault or a debt."""

import re

# Each: pattern of the area, of the statement, of Tarantool's answer, of Lycosa's answer; the reason.
ACCEPTED = [
    (r"", r"", r"function: builtin", r"", "LuaJIT's own functions have other numbers"),
]


def reason(area, statement, expected, given):
    """Why a difference is accepted; None if it is not."""
    for area_, statement_, expected_, given_, why in ACCEPTED:
        if re.search(area_, area) and re.search(statement_, statement) and re.search(expected_, expected) and re.search(given_, given):
            return why
    return None
