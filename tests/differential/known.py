"""Differences that are meant, and why. What is not here is a fault or a debt."""

import re

# Each: pattern of the area, of the statement, of Tarantool's answer, of Lycosa's answer; the reason.
ACCEPTED = [
    (r"", r"", r"function: builtin", r"", "LuaJIT's own functions have other numbers"),
    (r"", r"", r"table: 0x", r"table: 0x", "addresses"),
    (r"", r"table\.equals|uuid\.is_uuid|box\.error\.is\(|s:alter", r"attempt to call (field|method)", r"", "of later versions of Tarantool, as the version that Lycosa reports"),
    (r"vinyl", r"box\.backup|:alter|create_index", r"", r"^!! error \d+ ClientError: Lycosa does not support", "absent, and says so"),
    (r"vinyl", r"^(s|p|i):(len|bsize)\(\)$", r"^=> \d+(ULL)?$", r"^=> \d+(ULL)?$", "entries and their bytes, which each server merges at other times"),
    (r"requests", r"^AUTH .* 8\d23a66e6f626f6479", r"^!! 45: User 'nobody' is not found$", r"^!! (20|47): ", "nobody learns by a login which users there are"),
    (r"requests", r" 8\w*?1[015]cf(?!00000000)[0-9a-f]{16}", r"", r"^!! 20: Invalid MsgPack - packet body$", "numbers of spaces and indexes above 32 bits are refused, not cut"),
    (r"", r"uuid\.NULL", r"^!! error: (unsupported Lua type 'cdata'|cannot convert 'string' to 'ctype')$", r"", "taken since 2.7"),
    (r"text", r"^tonumber\('\s*-\w+', \d+\)$", r"^=> 1\.8446744073\d+e\+19$|^=> 0$", r"^=> -\d+$", "a negative number is one; LuaJIT's fault of 2020"),
    (r"text", r"^uuid\.fromstr\('[^']*[g-z][^']*'\)$", r"^=> uuid", r"^=> nil$", "what has a letter that is no digit is no uuid"),
    (r"text", r"^tostring\((print|function\(\) end)\)$", r'^=> "function: ', r'^=> "function: ', "addresses, and numbers of LuaJIT's own functions"),
]


def reason(area, statement, expected, given):
    """Why a difference is accepted; None if it is not."""
    for area_, statement_, expected_, given_, why in ACCEPTED:
        if re.search(area_, area) and re.search(statement_, statement) and re.search(expected_, expected) and re.search(given_, given):
            return why
    return None
