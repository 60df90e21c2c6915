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
    (r"modules", r"^fio\.abspath|^fio\.stat|^errno\(\)|^type\(clock\.", r"", r"", "directories and times of the run; functions of clock are functions; fio.stat has less"),
    (r"modules", r"^fun\.", r"attempt to call local 'fun'|attempt to perform arithmetic on local|attempt to index a function value", r"", "names of locals; fun.range(0) is no iterator in Tarantool"),
    (r"modules", r"^fun\.\w+\(.*box\.tuple\.new|^fun\.iter\(box\.tuple\.new", r"^!! error: object .* is not iterable$", r"", "rows are iterable"),
    (r"modules", r"^i?pairs\(box\.tuple\.new", r"tuple_iterator", r"", "what ipairs of a row keeps its place in"),
    (r"modules", r"^fiber\.(create|new|self|find)\(", r"^=> userdata$", r"^=> \{number__: ", "fibers are tables"),
    (r"modules", r"^fio\..*\\0", r"SystemError", r"unexpected NUL byte", "a name with a zero byte is refused, not cut"),
    (r"modules", r"^fun\.range\(0\)", r"", r"", "fun.range(0) is no iterator in Tarantool"),
    (r"modules", r"^box\.cfg\.(vinyl_page_size|vinyl_bloom_fpr|log_level|checkpoint_interval)$", r"", r"", "other defaults; negative values are refused"),
    (r"modules", r"^box\.cfg\{(checkpoint_interval|snap_io_rate_limit|log_level) = -1\}$", r"", r"", "negative values are refused"),
    (r"", r"uuid\.NULL|box\.error\.new", r"^!! error: cannot convert 'string' to 'ctype'$", r"", "a fault of Tarantool's own encoder of keys for spaces in memory"),
    (r"memtx|schema", r"\(\{?2\^64|user = (2\^64|1e300|-?2\^63)", r"", r"", "the same encoder cuts whole numbers of 2^64 to 10^64 to 64 bits: another key is looked up"),
    (r"", r":on_replace\(", r"^!! error: C\+\+ exception$", r"^!! error 36 ", "of a space that is gone"),
    (r"", r":frommap\(", r"^=> nil\n=> \"Unknown field", r"^=> nil\n=> \"Unknown field", "of several unknown names the first of `pairs` is named: another in each server"),
    (r"schema", r"(id|field_count) = (0\.5|1\.5|2\.5|1/3|0\.1|123456\.789|2\^53|1e10|1e15|1e16|2\^6[34]|-?1e300|1e308)", r"", r"", "numbers of spaces above 32 bits are refused, not cut"),
    (r"text", r"^string\.format\('%[^']*'\)$|^string\.format\('%-?\d*d\|?', -?\d+U?LL\)$", r"^!! error: bad argument #2", r"", "LuaJIT's later words; 64-bit integers are taken"),
    (r"text", r"^string\.startswith\(.*, -\d", r"^=> false$", r"^=> true$", "Tarantool compares with what stands before the text in memory"),
    (r"notation", r"msgpack\.decode\('[^']*\\193", r"", r"", "the byte 0xc1 begins no value: Tarantool reads it as an extension"),
    (r"notation", r", (uuid\.NULL|uuid\.fromstr[^)]*\)|decimal\.new[^)]*\)|box\.error\.new[^)]*\))\)$", r"^!! error: 'struct |^!! error: attempt to index", r"^!! error: ", "the text about options that are no table"),
    (r"vinyl", r"p:pairs\(\{\[|p:pairs\(setmetatable", r"", r"error 22 ", "a map as key of pairs on disk is read as if it were a list in Tarantool"),
    (r"schema", r"func = ", r"", r"Lycosa does not support functional indexes yet", "absent, and says so"),
    (r"decimal", r"", r"decimal 0+$", r"decimal 0$", "a zero that Tarantool shows with two digits"),
    (r"memtx|vinyl", r"^s:(pairs|select|get|count|delete|update)\(|^p:|^i:", r"no member named 'iterator'$", r"no member named 'iterator'$", "names of C structures"),
    (r"text", r"^tonumber\('\s*-\w+', \d+\)$", r"^=> 1\.8446744073\d+e\+19$|^=> 0$", r"^=> -\d+$", "a negative number is one; LuaJIT's fault of 2020"),
    (r"text", r"^uuid\.fromstr\('[^']*[g-z][^']*'", r"^=> uuid", r"^=> nil$", "what has a letter that is no digit is no uuid"),
    (r"text", r"^tostring\((print|function\(\) end)\)$", r'^=> "function: ', r'^=> "function: ', "addresses, and numbers of LuaJIT's own functions"),
]


def reason(area, statement, expected, given):
    """Why a difference is accepted; None if it is not."""
    for area_, statement_, expected_, given_, why in ACCEPTED:
        if re.search(area_, area) and re.search(statement_, statement) and re.search(expected_, expected) and re.search(given_, given):
            return why
    return None
