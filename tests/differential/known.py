"""Differences that are meant, and why. What is not here is a fault or a debt."""

import re

# Each: pattern of the area, of the statement, of Tarantool's answer, of Lycosa's answer; the reason.
ACCEPTED = [
    (r"", r"", r"function: builtin", r"", "LuaJIT's own functions have other numbers"),
    (r"", r"", r"table: 0x", r"table: 0x", "addresses"),
    (r"", r"table\.equals|uuid\.is_uuid|box\.error\.is\(|s:alter", r"attempt to call (field|method)", r"", "of later versions of Tarantool, as the version that Lycosa reports"),
    (r"vinyl", r"", r"", r"Lycosa does not support", "absent, and says so"),
]


def reason(area, statement, expected, given):
    """Why a difference is accepted; None if it is not."""
    for area_, statement_, expected_, given_, why in ACCEPTED:
        if re.search(area_, area) and re.search(statement_, statement) and re.search(expected_, expected) and re.search(given_, given):
            return why
    return None
