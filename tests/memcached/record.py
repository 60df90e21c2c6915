#!/usr/bin/env python3
"""Asks a memcached what the cases are answered, and writes it behind them.

    memcached -p 11311 -U 0 -u nobody & python3 tests/memcached/record.py 11311           # rewrites cases.txt
    python3 tests/memcached/record.py 11312 --compare                                     # another server against what stands there

A case begins with `# what it is about`. Each line of it is sent as it stands, with Python's escapes and {x*1000} for a thousand x; behind it
`mn` (or the binary noop) is sent, so that the end of the answers can be told. What came stands below, one line of answer each, behind `< `. A number
that is a cas is written as <c1>, <c2>, in the order they come up within a case, and may be used in lines as {c1}. <closed>: the server has closed the
connection. Seconds that are left are rounded up to tens.
"""

import argparse
import pathlib
import re
import socket
import sys

HERE = pathlib.Path(__file__).resolve().parent
NOOP = bytes.fromhex("800a00000000000000000000deadbeef0000000000000000")
NOOP_ANSWER = bytes.fromhex("810a00000000000000000000deadbeef0000000000000000")
CAS = [re.compile(rb"VALUE \S+ \d+ \d+ (\d{1,20})(?=\r\n)"), re.compile(rb"(?:HD|VA \d+|EN|NS|EX|NF)(?: [^\r\n]*)? c(\d+)(?= |\r\n)"),
       re.compile(rb" cas=(\d+)")]


def parse(text):
    cases = []
    for block in text.split("\n# ")[0:]:
        block = block[2:] if block.startswith("# ") else block
        name, *lines = block.split("\n")
        steps = [line for line in lines if line and not line.startswith("< ")]
        answers = [line[2:] for line in lines if line.startswith("< ")]
        cases.append((name, steps, answers))
    return cases


def bytes_of(step, cas):
    step = re.sub(r"\{c(\d+)\}", lambda found: str(cas[int(found[1]) - 1]) if int(found[1]) <= len(cas) else "0", step)
    step = re.sub(r"\{(.)\*(\d+)\}", lambda found: found[1] * int(found[2]), step)
    return step.encode().decode("unicode_escape").encode("latin-1")


def receive(connection, end):
    answer = b""
    while not answer.endswith(end):
        try:
            part = connection.recv(1 << 20)
        except (ConnectionResetError, socket.timeout):
            part = b""
        if not part:
            return answer, True
        answer += part
    return answer[: -len(end)], False


def show(answer, cas, is_binary):
    if is_binary:
        while answer:
            length = 24 + int.from_bytes(answer[8:12], "big")
            packet, answer = answer[:length], answer[length:]
            number = int.from_bytes(packet[16:24], "big")
            if number and number not in cas:
                cas.append(number)
            mark = f"<c{cas.index(number) + 1}>" if number else "0"
            yield f"{packet[:16].hex()} {mark} {packet[24:]!r}"
        return
    for line in answer.split(b"\n"):
        if not line:
            continue
        line += b"\n"
        for pattern in CAS:
            found = pattern.search(line)
            if found:
                number = int(found[1])
                if number not in cas:
                    cas.append(number)
                line = line[: found.start(1)] + b"<c%d>" % (cas.index(number) + 1) + line[found.end(1) :]
        # A second may have passed since it was set: shown as the next multiple of ten.
        line = re.sub(rb" t(\d+)(?= |\r\n)", lambda found: b" t%d" % (-(-int(found[1]) // 10) * 10), line)
        text = repr(line)[2:-1].replace('\\"', '"')
        yield text if len(text) <= 300 else f"{text[:100]}... {len(line)} bytes"


def play(port, steps):
    connection = socket.create_connection(("127.0.0.1", port), timeout=10)
    cas, shown = [], []
    with connection:
        is_binary = steps[0].startswith("\\x80")
        if not is_binary:
            connection.sendall(b"flush_all\r\nmn\r\n")
            receive(connection, b"MN\r\n")
        else:
            other = socket.create_connection(("127.0.0.1", port), timeout=10)
            with other:
                other.sendall(b"flush_all\r\nmn\r\n")
                receive(other, b"MN\r\n")
        for step in steps:
            try:
                connection.sendall(bytes_of(step, cas) + (NOOP if is_binary else b"mn\r\n"))
            except (BrokenPipeError, ConnectionResetError):
                pass
            answer, is_closed = receive(connection, NOOP_ANSWER if is_binary else b"MN\r\n")
            shown.extend(show(answer, cas, is_binary))
            if is_closed:
                shown.append("<closed>")
                break
    return shown


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--compare", action="store_true")
    arguments = parser.parse_args()
    path = HERE / "cases.txt"
    out, failed = [], 0
    for name, steps, answers in parse(path.read_text()):
        shown = play(arguments.port, steps)
        if shown != answers:
            failed += 1
            if arguments.compare:
                print(f"# {name}")
                for step in steps:
                    print(f"  {step[:120]}")
                print("  expected", *answers, sep="\n    ")
                print("  got", *shown, sep="\n    ")
        out.append("\n".join([f"# {name}", *steps, *(f"< {line}" for line in shown)]))
    if not arguments.compare:
        path.write_text("\n\n".join(out) + "\n")
    print(f"{failed} of {len(out)} cases differ")
    return 1 if failed and arguments.compare else 0


if __name__ == "__main__":
    sys.exit(main())
