"""Random Lua programs: lists of statements, one line each, for `tests/scripts/runner.lua`."""

import random

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


AREAS = {
    "notation": lambda s, n: SETUP + [line for _ in range(n) for line in notation(s)],
    "text": lambda s, n: SETUP + [line for _ in range(n) for line in text(s)],
    "decimal": lambda s, n: SETUP + [line for _ in range(n) for line in decimals(s)],
    "box": lambda s, n: SETUP + [line for _ in range(n) for line in s.pick([errors_and_box, tuples])(s)],
    "memtx": lambda s, n: SETUP + spaces(s, "memtx", n),
    "vinyl": lambda s, n: SETUP + spaces(s, "vinyl", n),
    "schema": lambda s, n: SETUP + [line for _ in range(n) for line in schema(s)],
}


def program(area, seed, length):
    """The statements of one program."""
    return [statement.replace("\n", "\\n") for statement in AREAS[area](Source(f"{area} {seed}"), length)]
