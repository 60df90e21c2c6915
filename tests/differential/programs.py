"""Random Lua programs: lists of statements, one line each, for `tests/scripts/runner.lua`."""

import random
import re

NUMBERS = [
    "0", "1", "2", "3", "5", "10", "-1", "-2", "0.5", "-0.5", "1.5", "2.5", "1e10", "1e15", "1e16", "2^31", "2^32", "2^53", "2^63",
    "-2^63", "2^64", "1e300", "-1e300", "1e-200", "1e308", "math.huge", "-math.huge", "5LL", "-5LL", "18446744073709551615ULL",
    "9223372036854775807LL", "0.1", "123456.789", "-0.0", "1/3",
]
STRINGS = [
    "''", "'a'", "'b'", "'abc'", "'ABC'", "'a b'", "' a '", "'1'", "'-1'", "'1.5'", "'1e3'", "'0x10'", "'true'", "'null'", "'~'", "'yes'",
    "'no'", "'nan'", "'.inf'", "'-'", "'- a'", "'a: b'", "'#'", "'a\\nb'", "'a\\n'", "'\\t'", "'\\0'", "'a\\0b'", "'\\255'", "'a\\255b'",
    "'\\195\\169'", "'\\208\\159\\209\\128'", "'\\240\\159\\152\\128'", "'\\237\\160\\128'", "'\\226\\130'", "'%d'", "'%'", "'\"'", "'\\\\'",
    "'/'", "'\\127'", "'\\1'", "'[1]'", "'{}'", "('x'):rep(20)", "'EQ'", "'unsigned'", "'string'", "'primary'", "'f1'", "'f2'", "'[1]'",
    "'a.b'", "'a,b,c'", "','", "'aXbX'", "'X'", "'ß'", "'İ'", "'ǆ'",
]
OTHERS = ["nil", "box.NULL", "true", "false", "{}", "{1, 2, 3}", "{a = 1}", "{1, nil, 3}", "{{1}, {2}}", "{a = {b = {1, 2}}}", "{[5] = 1}",
          "{[20] = 1}", "{[1.5] = 1}", "setmetatable({1}, {__serialize = 'map'})", "setmetatable({}, {__serialize = 'map'})",
          "setmetatable({a = 1}, {__serialize = function() return 'text' end})", "print", "function() end"]
OBJECTS = ["decimal.new('1.50')", "decimal.new('-3')", "uuid.fromstr('01234567-89ab-cdef-0123-456789abcdef')", "uuid.NULL",
           "box.tuple.new{1, 'a', {2}}", "box.tuple.new{}", "box.error.new(1, 'x')"]
SETUP = ["json, yaml, msgpack = require('json'), require('yaml'), require('msgpack')",
         "decimal, uuid, uri, digest = require('decimal'), require('uuid'), require('uri'), require('digest')",
         "utf8, fun, ffi = require('utf8'), require('fun'), require('ffi')",
         "function hex(s) if type(s) ~= 'string' then return s end return (s:gsub('.', function(c) return ('%02x'):format(c:byte()) end)) end"]


class Source:
    """Values and pieces of code from one seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.pick = self.random.choice

    def chance(self, probability):
        return self.random.random() < probability

    def number(self):
        return self.pick(NUMBERS)

    def small(self):
        return str(self.random.randint(-3, 8))

    def string(self):
        if self.chance(0.3):
            alphabet = ["a", "b", "Z", " ", "1", ".", "\\195\\169", "\\255", "\\n", ":", "-", ",", "%", "\\0", "\\226\\130\\172"]
            return "'" + "".join(self.pick(alphabet) for _ in range(self.random.randint(0, 6))) + "'"
        return self.pick(STRINGS)

    def scalar(self):
        return self.pick([self.number, self.string, lambda: self.pick(["true", "false", "box.NULL"])])()

    def value(self, depth=0):
        roll = self.random.random()
        if roll < 0.35:
            return self.number()
        if roll < 0.6:
            return self.string()
        if roll < 0.75:
            return self.pick(OTHERS)
        if roll < 0.82:
            return self.pick(OBJECTS)
        if depth > 2:
            return "{}"
        count = self.random.randint(0, 3)
        if self.chance(0.5):
            return "{" + ", ".join(self.value(depth + 1) for _ in range(count)) + "}"
        # One pair: the order of more is another in each server.
        return "{" + ", ".join(f"{self.pick(['a', 'bc', '[1]', '[2]', '[-1]'])} = {self.value(depth + 1)}" for _ in range(min(count, 1))) + "}"

    def arguments(self, *makers, wrong=0.12):
        """Arguments as they should be, or one of them missing, too many, or of a wrong kind."""
        made = [maker() for maker in makers]
        if made and self.chance(wrong):
            change = self.random.randint(0, 2)
            if change == 0:
                made[self.random.randrange(len(made))] = self.value()
            elif change == 1:
                made.pop()
            else:
                made.append(self.value())
        return ", ".join(made)


def json_text(s, depth=0):
    """Text that is nearly JSON."""
    roll = s.random.random()
    if roll < 0.3 or depth > 3:
        return s.pick(["1", "-1", "0", "1.5", "1e5", "1E+2", "-0", "01", "1.", ".5", "1e400", "-1e400", "0x1F", "18446744073709551615",
                       "18446744073709551616", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "nan", "inf", "-inf",
                       "NaN", "Infinity", "true", "false", "null", "nul", "True", "1e", "+1", "--1", "123456789012345678901234567890"])
    if roll < 0.55:
        return s.pick(['""', '"a"', '"a b"', '"\\n"', '"\\u00e9"', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\x"', '"\\u12"', '"\t"', '"\x01"',
                       '"a', "'a'", '"\\/"', '"\\u0000"', '"é"', '"\\\\"', '"\\""', '"\x7f"'])
    count = s.random.randint(0, 3)
    if roll < 0.8:
        return s.pick(["[", "[", "[ "]) + s.pick([",", ",", ", ", ",,"]).join(json_text(s, depth + 1) for _ in range(count)) + s.pick(["]", "]", "]", "", ",]", "}"])
    key = s.pick(['"a"', '"b"', "1", "a", "null"]) + s.pick([":", ":", ": ", ""])
    pairs = [key + json_text(s, depth + 1) for _ in range(min(count, 1))]
    return "{" + ",".join(pairs) + s.pick(["}", "}", "}", "", ",}"])


YAML_TEXTS = [
    "", "---", "--- ", "null", "~", "true", "True", "yes", "no", "on", "010", "0x1F", "1_000", "1e3", ".5", "1.", "18446744073709551616", "-9223372036854775809",
    "inf", "nan", ".inf", ".nan", "-.inf", "'5'", '"5"', '"a\\nb"', "!!str 5", "!!int 5", "!!int x", "!!float 1", "!!bool yes", "!!binary aGVsbG8=", "!!null x",
    "!foo 5", "[a, b", "{a: 1", "a: b: c", "a: 1\na: 2", "- 1\n- 2\n---\n- 3", "--- 1\n--- 2", "[&a {x: 1}, *a]", "[*b]", "? a\n: b", "{1: 2}", "{null: 1}",
    "|\n a\n b\n", ">\n a\n b\n\n c", "|-\n a", '"\\x41\\u00e9"', "'it''s'", "a #c", "# only", "%YAML 1.1\n---\n5", "%FOO\n---\n5", "\xff", "[1, 2, ]", "[,]", "{a, b}",
    "- - 1\n  - 2", "1 2 3", "1:2", "12:30:45", "2001-12-14", "@a", "`a", "{a:1}", '"a":1', "&x 5", "- &x 5\n- *x", "a\r\nb", "a: 1\n b: 2", "- a\n b", "- [1, {a: 2}]",
    '{"a":1,"b":[true,null,1.5]}', "a: |\n  x\n  y\nb: 1", "- !!str 1\n- 2", "\t- a", "''", '""', "-", "?", ":", "- ", "a:", "[]", "{}", "[[]]",
]


def quote(text):
    """A Python string (of bytes as latin-1, or characters) as a Lua literal in one line."""
    raw = text.encode("utf-8", "surrogateescape") if any(ord(c) > 255 for c in text) else text.encode("latin-1")
    return "'" + "".join(chr(b) if 32 <= b < 127 and b not in (39, 92) else f"\\{b:03d}" for b in raw) + "'"


def notation(s):
    options = s.pick(["encode_max_depth = 2", "encode_deep_as_nil = true", "encode_invalid_numbers = false", "encode_invalid_as_nil = true",
                      "encode_use_tostring = true", "encode_sparse_convert = false", "encode_sparse_ratio = 1", "encode_load_metatables = false",
                      "encode_number_precision = 3", "decode_save_metatables = false", "decode_max_depth = 2", "decode_invalid_numbers = false"])
    which = s.pick(["json", "yaml", "msgpack"])
    kind = s.random.randint(0, 9)
    if kind < 3:
        encode = f"{which}.encode({s.arguments(s.value)})"
        return [f"hex({encode})" if which == "msgpack" else encode]
    if kind < 5:
        return [f"json.decode({s.arguments(lambda: quote(json_text(s)))})"]
    if kind < 7:
        return [f"yaml.decode({s.arguments(lambda: quote(s.pick(YAML_TEXTS)))})"]
    if kind < 8:
        raw = bytes(s.pick([0x91, 0x92, 0x81, 0x01, 0xff, 0xc0, 0xc1, 0xc2, 0xcc, 0xcd, 0xcf, 0xd3, 0xcb, 0xca, 0xa1, 0x61, 0xd9, 0xdc, 0xd4, 0xc7, 0x00, 0x7f, 0x05])
                    for _ in range(s.random.randint(0, 12)))
        return [f"msgpack.decode({s.arguments(lambda: quote(raw.decode('latin-1')))})"]
    if kind < 9:
        return [f"n = {which}.new() n.cfg{{{options}}}", f"hex(n.encode({s.value()}))", "n.decode(n.encode({1, {2, {3}}}))"]
    return [f"{which}.decode({which}.encode({s.value()}))"]


def text(s):
    calls = [
        ("utf8.len", s.string, s.small, s.small), ("utf8.len", s.string), ("utf8.sub", s.string, s.small, s.small), ("utf8.next", s.string, s.small),
        ("utf8.char", lambda: s.pick(["65", "233", "8364", "128512", "1114112", "-1", "0", "55296"]), s.small), ("utf8.upper", s.string),
        ("utf8.lower", s.string), ("utf8.cmp", s.string, s.string), ("utf8.casecmp", s.string, s.string), ("utf8.isalpha", s.string),
        ("utf8.isdigit", s.string), ("utf8.islower", s.string), ("utf8.isupper", s.string), ("utf8.isupper", s.number),
        ("string.split", s.string, s.string), ("string.split", s.string, s.string, s.small), ("string.strip", s.string), ("string.strip", s.string, s.string),
        ("string.lstrip", s.string, s.string), ("string.rstrip", s.string, s.string), ("string.ljust", s.string, s.small, s.string),
        ("string.rjust", s.string, s.small, s.string), ("string.center", s.string, s.small, s.string), ("string.startswith", s.string, s.string, s.small, s.small),
        ("string.endswith", s.string, s.string, s.small, s.small), ("string.startswith", s.string, s.string), ("string.hex", s.string),
        ("string.fromhex", lambda: s.pick(["'61'", "'616'", "'zz'", "''", "'ABCDEF'"])), ("tonumber64", s.string), ("tonumber64", s.number),
        ("tonumber64", lambda: s.pick(["'ff'", "'0x1F'", "'777'", "'1e3'", "'0ULL'", "'5LL'", "' 7 '", "'18446744073709551616'", "'-9223372036854775809'", "'zz'"]),
         lambda: s.pick(["10", "16", "8", "2", "36", "37", "1"])),
        ("uri.parse", lambda: quote(s.pick(["localhost", "localhost:3301", ":3301", "3301", "user@host:1", "user:pass@host:1", "unix/:/tmp/a.sock", "/tmp/a.sock", "[::1]:5", "::1",
                                            "http://a.b/c?d=e#f", "http://", "a:b:c", "user:@h", "@h", "a/b", "?q", "#f", "", " ", "127.0.0.1:80", "host:port", "http://[::1]:80/x",
                                            "user:pa%20ss@h", "a@b@c", "scheme:path", "1.2.3", "host:99999", "-", "unix/:", "mailto:x@y"]))),
        ("uri.format", lambda: "uri.parse('user:pass@host:1/p?q#f')", lambda: s.pick(["true", "false", "nil"])),
        ("digest.crc32", s.string), ("digest.md5_hex", s.string), ("digest.sha1_hex", s.string), ("digest.base64_encode", s.string),
        ("digest.base64_encode", s.string, lambda: s.pick(["{nopad = true}", "{nowrap = true}", "{urlsafe = true}"])),
        ("digest.base64_decode", lambda: s.pick(["'YQ=='", "'YQ'", "'$$'", "''", "'YWJj ZGVm'", "'-_8='"])), ("digest.guava", s.number, s.small),
        ("digest.crc32_update", s.number, s.string), ("digest.pbkdf2_hex", s.string, s.string, lambda: "2", s.small),
        ("string.format", lambda: s.pick(["'%d'", "'%5.2f'", "'%g'", "'%e'", "'%.3f'", "'%.14g'", "'%x'", "'%q'", "'%s'", "'%10s|'", "'%-5d|'", "'%c'", "'%i'", "'%a'", "'%5'", "'%.20f'"]), s.scalar),
        ("tostring", s.value), ("tonumber", s.string), ("tonumber", s.string, s.small),
        ("table.copy", s.value), ("table.deepcopy", s.value), ("table.equals", s.value, s.value), ("table.concat", s.value, s.string),
        ("uuid.fromstr", lambda: s.pick(["'01234567-89ab-cdef-0123-456789abcdef'", "'x'", "''", "'01234567-89AB-cdef-0123-456789abcdef'", "'01234567-89ab-cdef-c123-456789abcdeg'"])),
        ("uuid.is_uuid", s.value), ("uuid.frombin", s.string), ("tostring", lambda: s.pick(OBJECTS)),
    ]
    call = s.pick(calls)
    return [f"{call[0]}({s.arguments(*call[1:])})"]


def decimals(s):
    def operand():
        return s.pick(["decimal.new('1.5')", "decimal.new(3)", "decimal.new('-0.001')", "decimal.new('1e20')", "decimal.new('99999999999999999999999999999999999999')",
                       "decimal.new('0')", "decimal.new('-7.25')", "decimal.new(0.1)", "2", "'1.25'", "-3", "5ULL", "0.5", s.scalar()])
    kind = s.random.randint(0, 4)
    if kind == 0:
        return [f"decimal.new({s.arguments(s.scalar)})"]
    if kind == 1:
        return [f"{operand()} {s.pick(['+', '-', '*', '/', '%', '==', '<', '<=', '>'])} {operand()}"]
    if kind == 2:
        return [f"decimal.{s.pick(['abs', 'sqrt', 'ln', 'log10', 'precision', 'scale', 'trim', 'is_decimal'])}({s.arguments(operand)})"]
    if kind == 3:
        return [f"decimal.{s.pick(['round', 'rescale'])}({s.arguments(operand, s.small)})"]
    return [f"hex(msgpack.encode({operand()}))"]


def errors_and_box(s):
    calls = [
        ("box.error.new", lambda: s.pick(["1", "5", "54", "0", "999", "'Type'", "{code = 5, reason = 'r'}", "{type = 'T', reason = 'r'}", "{reason = 'r'}", "{}"]), s.string),
        ("box.error", lambda: s.pick(["1", "5", "0", "999", "'Type'", "{code = 5, reason = 'r'}", "{type = 'T', reason = 'r'}", "box.error.new(1, 'x')"]), s.string),
        ("box.error.is", s.value), ("box.tuple.new", s.value), ("box.tuple.new", s.value, s.value), ("box.tuple.is", s.value),
        ("box.session.su", lambda: s.pick(["'guest'", "'admin'", "'nobody'"])), ("box.schema.user.exists", s.string), ("box.schema.role.exists", s.string),
        ("box.schema.func.exists", s.string), ("box.space._space:get", lambda: s.pick(["280", "512", "281"])), ("box.session.exists", s.small),
    ]
    call = s.pick(calls)
    name, rest = call[0], s.arguments(*call[1:])
    if name == "box.session.su":
        return ["box.session.user()"]
    if name == "box.error.new":
        return [f"box.error.new({rest}):unpack().message"]
    return [f"{name}({rest})"]


def tuples(s):
    tuple_ = s.pick(["box.tuple.new{1, 'a', {2, 3}, {k = 'v'}, box.NULL}", "box.tuple.new{1, 2, 3, 4}", "box.tuple.new{}"])
    path = s.pick(["'[3][1]'", "'[4].k'", "1", "2", "0", "-1", "7", "'[3]'", "'[9]'", "'f1'", "'[4][\"k\"]'", "'[3'", "''"])
    return [f"{tuple_}{s.pick([f'[{path}]', f':find({s.value()})', ':totable()', ':unpack()', f':slice({s.small()})', f':slice(1, {s.small()})', f':next({s.small()})', f':transform(1, {s.small()}, {s.scalar()})', f':update({{{operation(s)}}})', f':upsert({{{operation(s)}}})', ':tomap()', f':findall({s.scalar()})', ':bsize()'])}"]


def operation(s):
    name = s.pick(["'='", "'='", "'+'", "'-'", "'&'", "'|'", "'^'", "'!'", "'#'", "':'", "'?'"])
    field = s.pick(["1", "2", "3", "4", "5", "-1", "-2", "0", "9", "'f1'", "'f2'", "'f3'", "'f9'", "'[2]'", "'[3][1]'", "'f3[1]'", "'f3.a'"])
    if name == "':'":
        return f"{{':', {field}, {s.small()}, {s.small()}, {s.string()}}}"
    return "{" + ", ".join([name, field, s.scalar() if s.chance(0.9) else s.value()]) + "}"


TYPES = ["unsigned", "string", "number", "integer", "boolean", "scalar", "double", "decimal", "uuid", "any", "array", "map", "varbinary"]


def typed(s, kind):
    if s.chance(0.12):
        return s.value()
    return {
        "unsigned": lambda: s.pick(["0", "1", "2", "3", "5", "10", "2^53", "18446744073709551615ULL"]), "integer": lambda: s.pick(["-1", "0", "1", "-2^60", "7"]),
        # Tarantool's comparison of an infinite number with a decimal is no order.
        "number": lambda: s.pick([number for number in NUMBERS if "huge" not in number]), "string": lambda: s.pick(["'a'", "'b'", "'c'", "''", "'A'", "'ab'"]), "boolean": lambda: s.pick(["true", "false"]), "scalar": s.scalar,
        "double": lambda: s.pick(["0.5", "1.5", "ffi.cast('double', 1)"]), "decimal": lambda: "decimal.new('1.5')", "uuid": lambda: "uuid.fromstr('01234567-89ab-cdef-0123-456789abcdef')",
        "array": lambda: s.pick(["{}", "{1, 2}"]), "map": lambda: "{a = 1}",
    }.get(kind, s.value)()


def spaces(s, engine, count):
    """A space with one or two indexes, and statements on it."""
    first = s.pick(["unsigned", "unsigned", "string", "integer", "number", "scalar"])
    second = s.pick(TYPES[:8])
    out = [f"s = box.schema.space.create('s', {{engine = '{engine}'}})"]
    has_format = s.chance(0.6)
    if has_format:
        out.append(f"s:format({{{{'f1', '{first}'}}, {{name = 'f2', type = '{second}', is_nullable = {s.pick(['true', 'false'])}}}, {{'f3', 'any', is_nullable = true}}}})")
    kind = "tree" if engine == "vinyl" or s.chance(0.8) else "hash"
    out.append(f"p = s:create_index('primary', {{type = '{kind}', parts = {{{{1, '{first}'}}}}}})")
    has_second = s.chance(0.6) and second != "any"
    if has_second:
        nullable = ", is_nullable = true" if s.chance(0.4) else ""
        out.append(f"i = s:create_index('second', {{unique = {s.pick(['true', 'false'])}, parts = {{{{2, '{second}'{nullable}}}}}}})")

    def row():
        fields = [typed(s, first), typed(s, second)] + [s.value() for _ in range(s.random.randint(0, 2))]
        if s.chance(0.06):
            fields.pop(0)
        return "{" + ", ".join(fields[:s.random.randint(1, 4) if s.chance(0.2) else 4]) + "}"

    def key(kind):
        return s.pick([lambda: typed(s, kind), lambda: "{" + typed(s, kind) + "}", lambda: "{}", lambda: "nil", s.value] if s.chance(0.25) else [lambda: typed(s, kind)])()

    def options():
        iterator = s.pick(["'EQ'", "'GE'", "'GT'", "'LE'", "'LT'", "'ALL'", "'REQ'", "box.index.GE", "'eq'", "'XX'", "77"])
        return s.pick(["", "", f", {{iterator = {iterator}}}", f", {iterator}", f", {{limit = {s.small()}}}", f", {{iterator = {iterator}, offset = {s.small()}, limit = {s.small()}}}", f", {s.value()}"])

    for _ in range(count):
        roll = s.random.randint(0, 21)
        operations = "{" + ", ".join(operation(s) for _ in range(s.random.randint(0, 3))) + "}"
        index, kind_ = ("i", second) if has_second and s.chance(0.3) else ("p", first)
        if roll < 4:
            out.append(f"s:{s.pick(['insert', 'replace', 'replace', 'put'])}({row()})")
        elif roll < 6:
            out.append(f"{s.pick(['s', index])}:update({key(kind_)}, {operations})")
        elif roll < 8:
            out.append(f"s:upsert({row()}, {operations})")
        elif roll < 9:
            out.append(f"{s.pick(['s', index])}:delete({key(kind_)})")
        elif roll < 12:
            out.append(f"{index}:{s.pick(['get', 'select', 'select', 'count'])}({key(kind_)}{options()})")
        elif roll < 13:
            out.append(f"(function() local r = {{}} for _, t in {index}:pairs({key(kind_)}{options()}) do r[#r + 1] = t end return r end)()")
        elif roll < 14:
            out.append(f"{index}:{s.pick(['min', 'max'])}({s.pick(['', key(kind_)])})")
        elif roll < 15:
            out.append(s.pick(["s:len()", "s:count()", "p:len()", "s:select()", "s:select{}", "#s:select()", "s:bsize()"]))
        elif roll < 16:
            # Whether a space on disk is empty depends on what was merged already.
            alter_primary = f"p:alter({{parts = {{{{1, '{s.pick(TYPES)}'}}}}}})" if engine == "memtx" else "p:alter({})"
            out.append(s.pick([f"s:format({{{{'f1', '{s.pick(TYPES)}'}}}})", "s:format()", "s:format({})", f"s:format({s.value()})", "s:truncate()", "s:rename('t')", "s:rename('s')",
                               f"s:create_index('extra', {{parts = {{{s.small()}, '{s.pick(TYPES)}'}}}})", "s.index.extra:drop()", f"s:create_index({s.value()}, {s.value()})",
                               alter_primary, "p:rename('q')", f"s:frommap({s.value()})", "s:frommap({f1 = 1, f2 = 'a'})",
                               f"s:auto_increment{{{s.value()}}}", f"s:alter({s.value()})", "s:drop()"]))
        elif roll < 17:
            out.append(s.pick(["box.begin()", "box.commit()", "box.rollback()", "box.is_in_txn()", "sp = box.savepoint()", "box.rollback_to_savepoint(sp)", "box.begin() s:replace" + f"({row()}) box.commit()",
                               "box.begin() s:replace" + f"({row()}) box.rollback()"]) if engine == "memtx" else f"s:get({key(first)})")
        elif roll < 18:
            out.append(f"s:{s.pick(['get', 'select', 'insert', 'replace', 'delete', 'update', 'upsert'])}({s.arguments(s.value, s.value, wrong=0.4)})")
        elif roll < 19 and has_format:
            out.append(f"(function() local t = s:select()[1] return t and {{t.f1, t.f2, t['f3'], t.f9, t:tomap{{names_only = true}}}} end)()")
        elif roll < 20:
            out.append(f"s:on_replace(function(old, new) return {s.pick(['nil', '5', 'new', 'old'])} end)" if s.chance(0.2) else "s:select()")
        else:
            out.append(f"s:{s.pick(['get', 'delete'])}({key(first)})")
    return out


def schema(s):
    name = s.pick(["'u'", "'v'", "'guest'", "'admin'", "'super'", "'public'", "'nobody'", "''", "'r'"])
    thing = s.pick(["'space'", "'universe'", "'function'", "'sequence'", "'user'", "'role'", "nil", "'nothing'"])
    right = s.pick(["'read'", "'write'", "'read,write'", "'execute'", "'create'", "'drop'", "'alter'", "'usage'", "'session'", "'nothing'", "'super'", "''"])
    target = s.pick(["'_space'", "'s'", "'f'", "'q'", "nil", "'nothing'", "''", "1"])
    options = s.pick(["", ", {if_not_exists = true}", ", {if_exists = true}", ", {zzz = 1}", ", 5"])
    return [s.pick([
        f"box.schema.user.create({name}{options})", f"box.schema.user.drop({name}{options})", f"box.schema.role.create({name}{options})", f"box.schema.role.drop({name}{options})",
        f"box.schema.user.grant({name}, {right}, {thing}, {target}{options})", f"box.schema.user.revoke({name}, {right}, {thing}, {target}{options})",
        f"box.schema.role.grant({name}, {right}, {thing}, {target}{options})", f"box.schema.user.grant({name}, 'super')", f"box.schema.user.info({name})",
        f"box.schema.user.passwd({name}, 'x')", f"box.schema.func.create('f'{options})", f"box.schema.func.drop('f'{options})",
        f"box.schema.func.create('g', {{{s.pick(['language', 'setuid', 'body', 'is_deterministic', 'is_sandboxed', 'zzz', 'returns', 'exports', 'param_list'])} = {s.value()}}})",
        f"box.schema.sequence.create('q', {{{s.pick(['start', 'min', 'max', 'step', 'cycle', 'cache', 'if_not_exists', 'zzz'])} = {s.value()}}})", "box.schema.sequence.create('q')",
        f"box.sequence.q:{s.pick(['next()', 'next()', 'current()', f'set({s.number()})', 'reset()', 'drop()', f'alter{{step = {s.small()}}}', f'alter{{max = {s.number()}}}'])}",
        f"box.schema.space.create('s'{options})", f"box.schema.space.create({s.value()}, {s.value()})",
        f"box.schema.space.create('s', {{{s.pick(['id', 'engine', 'format', 'field_count', 'temporary', 'is_local', 'user', 'if_not_exists', 'zzz'])} = {s.value()}}})",
        "box.space.s:drop()", f"box.space.s:create_index('primary', {{{s.pick(['type', 'parts', 'unique', 'id', 'sequence', 'if_not_exists', 'dimension', 'zzz', 'func'])} = {s.value()}}})",
        "box.space.s:create_index('primary', {sequence = true})", "box.space.s:create_index('primary')", f"box.space.s:insert{{{s.scalar()}, {s.scalar()}}}",
        "box.space.s.index.primary.parts", "box.space.s:format()", "box.sequence.q", f"box.space.s.index.primary:{s.pick(['drop()', 'alter{unique = false}', 'rename(5)', 'alter{}', 'stat()'])}",
        f"box.schema.index.create(512, 'x', {s.value()})", f"box.schema.space.rename({s.small()}, {s.string()})",
    ])]


def modules(s):
    """One call of a module that has no area of its own."""
    numbers = lambda: "{" + ", ".join(s.small() for _ in range(s.random.randint(0, 5))) + "}"
    step = lambda: s.pick([":map(function(x) return x * 2 end)", ":filter(function(x) return x % 2 == 0 end)", f":take({s.small()})", f":drop_n({s.small()})", ":take_while(function(x) return x < 3 end)",
                           ":drop_while(function(x) return x < 3 end)", ":enumerate()", f":chain({numbers()})", f":zip({numbers()})", f":intersperse({s.small()})", ":tail()", f":grep({s.small()})", ":cycle():take(5)"])
    end = lambda: s.pick([":totable()", ":sum()", ":product()", ":min()", ":max()", ":length()", ":head()", ":nth(2)", ":foldl(function(a, x) return a + x end, 0)", f":index({s.small()})", f":any(function(x) return x == {s.small()} end)",
                          ":all(function(x) return x > 0 end)", ":is_null()", ":minimum_by(function(a, b) return a < b and a or b end)", ":tomap()", f":is_prefix_of({numbers()})", f":indexes({s.small()}):totable()"])
    path = lambda: quote(s.pick(["/a/b/c.lua", "a/b", "/", "", "a", "a.b.c", "//a//b/", "../x", "./x/.", "a/", ".", "..", "/a/../b"]))
    roll = s.random.randint(0, 9)
    if roll < 3:
        start = s.pick([f"fun.iter({numbers()})", f"fun.range({s.small()})", f"fun.range({s.small()}, {s.small()})", f"fun.range({s.small()}, {s.small()}, {s.pick(['1', '2', '-1', '0'])})", "fun.iter('abc')", f"fun.iter({s.value()})",
                        f"fun.duplicate({s.small()}):take(3)", "fun.tabulate(function(x) return x end):take(4)", "fun.ones():take(2)"])
        return [start + "".join(step() for _ in range(s.random.randint(0, 2))) + end()]
    if roll < 5:
        return [f"fio.{s.pick(['basename', 'dirname', 'abspath'])}({s.arguments(path)})" if s.chance(0.6) else s.pick([f"fio.pathjoin({path()}, {path()})", f"fio.basename({path()}, {s.string()})", f"fio.stat({path()})", f"fio.path.exists({path()})",
                f"fio.path.is_dir({path()})", f"fio.listdir('nothing')", "fio.open('nothing')", f"fio.open('nothing', {s.value()})", f"fio.unlink({s.arguments(lambda: quote('nothing'))})", "fio.mkdir('/')", "fio.rmdir('nothing')",
                f"fio.readlink({path()})", f"fio.rename('nothing', {s.value()})", f"fio.umask({s.value()})" if s.chance(0.1) else "fio.umask()"])]
    if roll < 6:
        return [s.pick([f"errno.strerror({s.arguments(s.small)})", f"errno({s.small()})", "errno()", "errno.ENOENT", "errno.EXXX", f"type(clock.{s.pick(['time', 'monotonic', 'proc', 'thread', 'realtime', 'time64', 'monotonic64', 'nothing'])})",
                        f"type(fiber.{s.pick(['time', 'clock', 'time64', 'id', 'name', 'nothing'])})", "fiber.self():status()", f"fiber.name({s.arguments(s.string)})", f"fiber.sleep({s.pick(['0', '-1', 'nil', s.value()])})", f"fiber.find({s.pick(['0', '9999', s.value()])})",
                        f"fiber.status({s.pick(['9999', s.value()])})", f"fiber.cancel({s.pick(['9999', 'nil'])})", f"fiber.create({s.value()})", "fiber.channel():size()", f"fiber.channel({s.pick(['0', '1', '5', '-1', s.value()])}):size()",
                        f"(function() local c = fiber.channel(1) return c:put({s.value()}, 0), c:is_empty(), c:count(), c:get(0) end)()", "(function() local c = fiber.channel() c:close() return c:is_closed(), c:get(), c:put(1) end)()",
                        f"(function() local f = fiber.new(function() return {s.value()} end) f:set_joinable(true) return f:join() end)()", f"(function() local f = fiber.new(function() error({s.value()}) end) f:set_joinable(true) return f:join() end)()"])]
    if roll < 8:
        option = s.pick(["memtx_memory", "memtx_min_tuple_size", "slab_alloc_factor", "work_dir", "wal_dir", "log_level", "log_format", "readahead", "too_long_threshold", "net_msg_max", "read_only", "checkpoint_interval", "checkpoint_count",
                         "wal_mode", "rows_per_wal", "wal_max_size", "snap_io_rate_limit", "listen", "replication_timeout", "vinyl_memory", "vinyl_bloom_fpr", "vinyl_page_size", "force_recovery", "background", "custom_proc_title", "zzz"])
        if option == "listen" or option == "work_dir":
            return [f"type(box.cfg.{option})"]
        return [f"box.cfg.{option}" if s.chance(0.2) else f"box.cfg{{{option} = {s.pick(['-1', chr(39) + 'x' + chr(39), '{}', 'true', 'nil', 'box.NULL'])}}}"]
    if roll < 9:
        return [s.pick(["box.session.type()", "box.session.sync()", "box.session.user()", "box.session.euid()", "box.session.peer()", f"box.session.peer({s.value()})", "box.session.fd()", f"box.session.su({s.value()})" if s.chance(0.05) else "box.session.uid()",
                        f"box.session.push({s.value()})", f"box.session.on_connect({s.value()})", f"box.session.storage.x", "box.session.settings.zzz", "box.session.settings.sql_full_metadata", f"box.session.settings.sql_full_metadata = {s.value()}",
                        f"box.once({s.arguments(s.string, lambda: 'function() end')})", f"box.commit({s.value()})", f"box.rollback_to_savepoint({s.value()})", f"box.on_commit({s.value()})", "box.info.ro", "box.info.status", "box.info.zzz", "type(box.info.uptime)",
                        "box.stat.INSERT.zzz", "type(box.stat.net.SENT.total)", "box.slab.zzz", "box.schema.SPACE_ID", "box.schema.zzz", "box.error.PROC_LUA", "box.error.ZZZ", "box.index.GE", f"box.internal.zzz"])]
    return [s.pick([f"table.sort({numbers()}, {s.value()})", f"table.insert({numbers()}, {s.arguments(s.small, s.scalar)})", f"table.remove({numbers()}, {s.small()})", f"table.maxn({s.value()})", f"table.concat({numbers()}, {s.string()}, {s.small()}, {s.small()})",
                    f"table.move({numbers()}, {s.small()}, {s.small()}, {s.small()})", f"select({s.small()}, 1, 2, 3)", f"unpack({numbers()}, {s.small()}, {s.small()})", f"next({numbers()}, {s.small()})", f"rawequal({s.value()}, {s.value()})", f"string.rep('ab', {s.small()}, {s.string()})",
                    f"string.find({s.string()}, {s.string()}, {s.small()}, true)", f"string.byte({s.string()}, {s.small()}, {s.small()})", f"string.sub({s.string()}, {s.small()}, {s.small()})", f"math.fmod({s.number()}, {s.number()})", f"math.ldexp(0.5, {s.small()})",
                    f"bit.band({s.arguments(s.number, s.number)})", f"bit.lshift({s.number()}, {s.small()})", f"bit.tohex({s.number()}, {s.small()})", f"tonumber({s.string()}, 16)", f"dostring({s.string()})", f"loadstring({s.string()})", f"pcall({s.value()})", f"assert({s.value()}, {s.string()})",
                    f"error({s.value()}, {s.small()})", f"setmetatable({s.value()}, {s.value()})", f"type({s.value()})", f"ipairs({s.value()})", f"package.search({s.string()})", f"os.getenv({s.string()})", f"os.setenv('X', {s.string()})", f"os.date('!%Y', {s.small()})"])]


def indexes(s, count):
    """A space of many typed fields, and indexes of several parts on it, with collations and nullable parts."""
    kinds = [s.pick(["unsigned", "string", "integer", "number", "scalar", "boolean", "string", "uuid", "decimal", "double", "varbinary"]) for _ in range(4)]
    nullable = [False] + [s.chance(0.4) for _ in kinds[1:]]
    fields = ", ".join(f"{{name = 'f{at + 1}', type = '{kind}'{', is_nullable = true' if nullable[at] else ''}}}" for at, kind in enumerate(kinds))
    out = [f"s = box.schema.space.create('s', {{format = {{{fields}}}}})", f"p = s:create_index('primary', {{parts = {{1{s.pick(['', ', 2']) if not nullable[1] else ''}}}}})"]

    def part(at):
        collation = f", collation = '{s.pick(['unicode', 'unicode_ci', 'none', 'binary', 'zzz', 'unicode_de_s2', 'UNICODE'])}'" if kinds[at] in ("string", "scalar") and s.chance(0.5) else ""
        hole = ", is_nullable = true" if nullable[at] or s.chance(0.1) else ""
        return f"{{{s.pick([str(at + 1), chr(39) + f'f{at + 1}' + chr(39)])}, '{kinds[at] if s.chance(0.9) else s.pick(TYPES)}'{hole}{collation}}}"

    def some_parts():
        places = s.random.sample(range(4), s.random.randint(1, 3))
        return "{" + ", ".join(part(at) for at in places) + "}"

    out.append(f"i = s:create_index('second', {{unique = {s.pick(['true', 'false'])}, parts = {some_parts()}}})")
    value = lambda at: "box.NULL" if nullable[at] and s.chance(0.2) else typed(s, kinds[at])
    row = lambda: "{" + ", ".join(value(at) for at in range(4 if s.chance(0.9) else s.random.randint(1, 3))) + "}"
    for _ in range(count):
        roll = s.random.randint(0, 13)
        length = s.random.randint(0, 3)
        key = "{" + ", ".join(s.pick([value(at), s.scalar()]) if s.chance(0.2) else value(at) for at in range(length)) + "}"
        index = s.pick(["p", "i", "i", "s.index.second"])
        operations = "{" + ", ".join(operation(s) for _ in range(s.random.randint(0, 2))) + "}"
        iterator = s.pick(["'EQ'", "'GE'", "'GT'", "'LE'", "'LT'", "'ALL'", "'REQ'"])
        if roll < 5:
            out.append(f"s:{s.pick(['insert', 'replace', 'replace'])}({row()})")
        elif roll < 8:
            out.append(f"{index}:{s.pick(['select', 'count', 'select'])}({key}, {{iterator = {iterator}}})")
        elif roll < 9:
            out.append(f"{index}:{s.pick(['get', 'min', 'max', 'delete', 'get'])}({key})")
        elif roll < 10:
            out.append(f"{index}:{s.pick(['pairs', 'pairs'])}({key}, {iterator}):{s.pick(['totable()', 'length()', 'take(2):totable()', 'map(function(t) return t[1] end):totable()'])}")
        elif roll < 11:
            out.append(s.pick([f"s:update({key}, {operations})", f"s:upsert({row()}, {operations})", f"i:update({key}, {operations})"]))
        elif roll < 12:
            out.append(s.pick([f"i:alter({{parts = {some_parts()}}})", "i:alter({unique = true})", "i:alter({unique = false})", f"s:create_index('third', {{parts = {some_parts()}}})", "s.index.third:drop()", "i.parts", "s:format()", "s:truncate()",
                               f"s:format({{{{name = 'f1', type = '{s.pick(TYPES)}'}}}})", "i:len()", "i.unique", "s.index.third and s.index.third.parts", "i:rename('other')", "i:rename('second')"]))
        elif roll < 13:
            out.append(s.pick(["box.begin()", "box.commit()", "box.rollback()", "sp = box.savepoint()", "box.rollback_to_savepoint(sp)"]))
        else:
            out.append("s:select()")
    return out


AREAS = {
    "notation": lambda s, n: SETUP + [line for _ in range(n) for line in notation(s)],
    "text": lambda s, n: SETUP + [line for _ in range(n) for line in text(s)],
    "decimal": lambda s, n: SETUP + [line for _ in range(n) for line in decimals(s)],
    "box": lambda s, n: SETUP + [line for _ in range(n) for line in s.pick([errors_and_box, tuples])(s)],
    "memtx": lambda s, n: SETUP + spaces(s, "memtx", n),
    "vinyl": lambda s, n: SETUP + spaces(s, "vinyl", n),
    "modules": lambda s, n: SETUP + ["fio, errno, clock, fiber = require('fio'), require('errno'), require('clock'), require('fiber')"] + [line for _ in range(n) for line in modules(s)],
    "indexes": lambda s, n: SETUP + indexes(s, n),
    "schema": lambda s, n: SETUP + [line for _ in range(n) for line in schema(s)],
}


def program(area, seed, length):
    """The statements of one program."""
    statements = [statement.replace("\n", "\\n") for statement in AREAS[area](Source(f"{area} {seed}"), length)]
    # Who sleeps for ever, or for years, answers nothing, and the statements behind are not compared.
    return [statement for statement in statements if not re.match(r"fiber\.sleep\((math\.huge|[12]\^|\d*1?e\d|\d{4,})", statement)]
