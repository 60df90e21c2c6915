"""Random requests of the binary protocol, right and wrong, put to a server one by one."""

import random
import socket
import struct
import subprocess
import tempfile
import time
import pathlib

SCRIPT = """
box.cfg{ listen = '127.0.0.1:%d', log = 'server.log', log_level = 1, wal_mode = 'none', memtx_memory = 64 * 1024 * 1024 }
box.schema.user.grant('guest', 'super')
local s = box.schema.space.create('s', { id = 600, format = { { 'f1', 'unsigned' }, { 'f2', 'string' }, { 'f3', 'any', is_nullable = true } } })
s:create_index('primary')
s:create_index('second', { parts = { 2, 'string' }, unique = false })
s:replace{ 1, 'a' } s:replace{ 2, 'b', 5 } s:replace{ 3, 'a', { 1, { 2 } } }
function echo(...) return ... end
function fail() error('failed') end
function list() return { 1, 2 }, 'x' end
"""
# Names of keys; what else a body may hold is a number.
CODES = {"SELECT": 1, "INSERT": 2, "REPLACE": 3, "UPDATE": 4, "DELETE": 5, "CALL_16": 6, "AUTH": 7, "EVAL": 8, "UPSERT": 9, "CALL": 10, "PING": 64, "NOP": 12, "99": 99}
SPACE, INDEX, LIMIT, OFFSET, ITERATOR, BASE, KEY, TUPLE, FUNCTION, EXPRESSION, OPS = 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x20, 0x21, 0x22, 0x27, 0x28
WANTED = {
    "SELECT": [SPACE, INDEX, LIMIT, OFFSET, ITERATOR, KEY], "INSERT": [SPACE, TUPLE], "REPLACE": [SPACE, TUPLE], "UPDATE": [SPACE, INDEX, KEY, TUPLE], "DELETE": [SPACE, INDEX, KEY],
    "CALL_16": [FUNCTION, TUPLE], "CALL": [FUNCTION, TUPLE], "EVAL": [EXPRESSION, TUPLE], "UPSERT": [SPACE, TUPLE, OPS], "PING": [], "NOP": [], "AUTH": [0x23, TUPLE], "99": [],
}


def pack(value):
    """Python to msgpack: numbers, text, bytes (put in as they are), lists, dictionaries."""
    if value is None:
        return b"\xc0"
    if value is True or value is False:
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, int):
        if 0 <= value < 128:
            return bytes([value])
        if -32 <= value < 0:
            return struct.pack("b", value)
        return b"\xcf" + struct.pack(">Q", value) if value > 0 else b"\xd3" + struct.pack(">q", value)
    if isinstance(value, str):
        raw = value.encode()
        return (bytes([0xA0 | len(raw)]) if len(raw) < 32 else b"\xda" + struct.pack(">H", len(raw))) + raw
    if isinstance(value, list):
        return (bytes([0x90 | len(value)]) if len(value) < 16 else b"\xdc" + struct.pack(">H", len(value))) + b"".join(map(pack, value))
    if isinstance(value, dict):
        return bytes([0x80 | len(value)]) + b"".join(pack(key) + pack(inner) for key, inner in value.items())
    return value


def unpack(raw, at=0):
    """Msgpack to Python; returns the value and the place behind it."""
    first = raw[at]
    at += 1
    if first < 0x80:
        return first, at
    if first >= 0xE0:
        return first - 256, at
    if first < 0x90:
        return unpack_map(raw, at, first & 15)
    if first < 0xA0:
        return unpack_list(raw, at, first & 15)
    if first < 0xC0:
        return unpack_text(raw, at, first & 31)
    if first in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[first], at
    sizes = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q", 0xCA: ">f", 0xCB: ">d"}
    if first in sizes:
        size = struct.calcsize(sizes[first])
        return struct.unpack(sizes[first], raw[at:at + size])[0], at + size
    lengths = {0xD9: (">B", unpack_text), 0xDA: (">H", unpack_text), 0xDB: (">I", unpack_text), 0xC4: (">B", unpack_text), 0xC5: (">H", unpack_text), 0xC6: (">I", unpack_text),
               0xDC: (">H", unpack_list), 0xDD: (">I", unpack_list), 0xDE: (">H", unpack_map), 0xDF: (">I", unpack_map)}
    if first in lengths:
        form, continue_ = lengths[first]
        size = struct.calcsize(form)
        return continue_(raw, at + size, struct.unpack(form, raw[at:at + size])[0])
    if first in (0xC7, 0xC8, 0xC9):
        form = {0xC7: ">B", 0xC8: ">H", 0xC9: ">I"}[first]
        size = struct.calcsize(form)
        length = struct.unpack(form, raw[at:at + size])[0]
        at += size
    else:
        length = 1 << (first - 0xD4)
    return f"ext {raw[at:at + 1 + length].hex()}", at + 1 + length


def unpack_text(raw, at, length):
    return raw[at:at + length].decode("utf-8", "backslashreplace"), at + length


def unpack_list(raw, at, count):
    values = []
    for _ in range(count):
        value, at = unpack(raw, at)
        values.append(value)
    return values, at


def unpack_map(raw, at, count):
    values = {}
    for _ in range(count):
        key, at = unpack(raw, at)
        value, at = unpack(raw, at)
        values[str(key)] = value
    # In one order: that of a table of Lua says nothing.
    return dict(sorted(values.items())), at


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.pick = self.random.choice

    def wrong(self):
        return self.pick([None, True, -1, 0, 5, 2**31, 2**32, 2**63, 2**64 - 1, -(2**63), 1.5, "", "a", "x" * 40, [], [1], [[1]], {}, {1: 2}, {"a": 1}, b"\xd4\x05\x01", b"\xc1", b"\xc4\x01a"])

    def scalar(self):
        return self.pick([0, 1, 2, 3, 4, 7, -1, 2**40, 1.5, "a", "b", "c", "", None, True, [1], {"a": 1}])

    def operation(self):
        name = self.pick(["=", "=", "+", "-", "&", "|", "^", "!", "#", ":", "?", "==", ""])
        field = self.pick([0, 1, 2, 3, 5, -1, -2, "f2", "f3", "f9", "[3]", "[3][1]", "f3[2]", 2**31, 1.5])
        if name == ":":
            return [name, field, self.pick([0, 1, -1, 5]), self.pick([0, 1, -1]), self.pick(["z", "", 5])]
        return [name, field, self.scalar()][: self.pick([3, 3, 3, 3, 2, 1])] + ([1] if self.random.random() < 0.05 else [])

    def field(self, name, key):
        if self.random.random() < 0.06:
            return self.wrong()
        operations = [self.operation() for _ in range(self.random.randint(0, 3))]
        return {
            SPACE: lambda: self.pick([600, 600, 600, 600, 600, 280, 281, 999, 0]), INDEX: lambda: self.pick([0, 0, 0, 1, 2]), LIMIT: lambda: self.pick([0, 1, 5, 100]),
            OFFSET: lambda: self.pick([0, 0, 1, 5]), ITERATOR: lambda: self.pick([0, 0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 99]), KEY: lambda: self.pick([[1], [2], [3], [9], [], ["a"], [1, 2], [self.scalar()]]),
            TUPLE: lambda: operations if name == "UPDATE" else self.pick([[1, "a"], [2, "b", 3], [self.random.randint(0, 9), self.pick(["a", "b"]), self.scalar()], [self.scalar(), self.scalar()], []]),
            OPS: lambda: operations, FUNCTION: lambda: self.pick(["echo", "fail", "list", "nothing", "box.space.s:get", "a.b", "", "math.abs"]),
            EXPRESSION: lambda: self.pick(["return ...", "return 1, nil, {}", "error('x')", "return box.space.s:get(1)", "syntax(", "box.error(1, 'x')", "", "return {a = 1}, box.NULL"]),
            0x23: lambda: self.pick(["guest", "admin", "nobody"]),
        }[key]()

    def request(self):
        """A line: the name of the request, then header and body as hex."""
        name = self.pick(list(WANTED) + ["SELECT", "REPLACE", "UPDATE", "UPDATE", "UPSERT", "DELETE", "INSERT"])
        body = {key: self.field(name, key) for key in WANTED[name] if self.random.random() > 0.04}
        if name == "UPDATE" and self.random.random() < 0.8:
            body[BASE] = self.pick([0, 1, 1])
        if self.random.random() < 0.04:
            body[self.pick([SPACE, KEY, TUPLE, 0x7F, 0x30, 0x2B, 0x29])] = self.wrong()
        header = {0: CODES[name], 1: 1}
        if self.random.random() < 0.03:
            header[self.pick([2, 3, 4, 5, 6, 7, 8, 9, 10, 50])] = self.wrong()
        raw_body = pack(body) if self.random.random() > 0.02 else self.pick([b"", b"\x90", b"\x81", b"\xc1", b"\x81\x10"])
        return f"{name} {pack(header).hex()} {raw_body.hex() or '-'}"


def program(_area, seed, length):
    maker = Maker(f"requests {seed}")
    return [maker.request() for _ in range(length)]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def connect(port, process, until):
    while time.monotonic() < until and process.poll() is None:
        try:
            connection = socket.create_connection(("127.0.0.1", port), timeout=5)
            greeting = b""
            while len(greeting) < 128:
                part = connection.recv(128 - len(greeting))
                if not part:
                    raise OSError("no greeting")
                greeting += part
            return connection
        except OSError:
            time.sleep(0.02)
    return None


def receive(connection):
    def exactly(count):
        got = b""
        while len(got) < count:
            part = connection.recv(count - len(got))
            if not part:
                raise ConnectionError
            got += part
        return got

    length, _ = unpack(exactly(5))
    packet = exactly(length)
    header, at = unpack(packet)
    body = unpack(packet, at)[0] if at < len(packet) else {}
    return header, body


def shown(header, body):
    code = header.get("0", 0)
    if code >= 0x8000:
        return f"!! {code & 0x7FFF}: {body.get('49')}"
    return f"=> {body.get('48', body)}"


def answers(server, lines, timeout_s):
    """What a server says to each request; a connection that it closes is made anew."""
    out = []
    with tempfile.TemporaryDirectory(prefix="differential-") as directory:
        port = free_port()
        script = pathlib.Path(directory) / "server.lua"
        script.write_text(SCRIPT % port, encoding="utf-8")
        process = subprocess.Popen([server, script.name], cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            until = time.monotonic() + timeout_s
            connection = connect(port, process, until)
            # The schema is made after the port opens.
            while connection is not None and time.monotonic() < until:
                header_body = pack({0: 8, 1: 1}) + pack({EXPRESSION: "return list ~= nil", TUPLE: []})
                connection.sendall(b"\xce" + struct.pack(">I", len(header_body)) + header_body)
                if "True" in shown(*receive(connection)):
                    break
            for line in lines:
                if connection is None:
                    out.append("<the process ended>")
                    break
                _, header, body = line.split(" ")
                content = bytes.fromhex(header) + (b"" if body == "-" else bytes.fromhex(body))
                try:
                    connection.settimeout(10)
                    connection.sendall(b"\xce" + struct.pack(">I", len(content)) + content)
                    out.append(shown(*receive(connection)))
                except TimeoutError:
                    out.append("<no answer>")
                    break
                except (OSError, IndexError, struct.error):
                    out.append("<closed>")
                    connection.close()
                    connection = connect(port, process, time.monotonic() + 5)
        finally:
            process.kill()
            process.wait()
    while len(out) < len(lines):
        out.append("<not reached>")
    return out
