#!/usr/bin/env python3
"""Sends random commands to two servers, memcached and another one, and compares what they answer.

    python3 tests/memcached/compare.py 11211 11311 [SEED]

What differs by nature is made alike: numbers that are a cas, seconds that are left. Prints the command and both answers where they differ.
"""

import random
import re
import socket
import sys

RUNS, COMMANDS = 60, 100


def ask(connection, command):
    connection.sendall(command + b"mn\r\n")
    answer = b""
    while not answer.endswith(b"MN\r\n"):
        part = connection.recv(1 << 20)
        if not part:
            return answer + b"<closed>"
        answer += part
    answer = re.sub(rb"(VALUE \S+ \d+ \d+) \d+\r", rb"\1 CAS\r", answer)
    return re.sub(rb" ([ctl])\d+(?= |\r)", rb" \1N", answer)


def make(source):
    pick = source.choice
    key = pick(["a", "b", "c", "d", "YQ==", ""])
    value = pick(["1", "20", "text", "", "9" * 19, "-3", " 7", "x" * 50])
    number = pick(["0", "1", "5", "100", "-1", "99999", "x", "", "18446744073709551615", "4294967296"])
    quiet = pick([""] * 5 + [" noreply"])

    def flags(known):
        return " ".join(source.sample(known, min(len(known), source.randrange(5))))

    return pick([
        f"{pick(['set', 'add', 'replace'])} {key} {number} {pick(['0', '0', '100', '-1', 'x'])} {len(value)}{quiet}\r\n{value}\r\n",
        f"{pick(['append', 'prepend'])} {key} 0 0 {len(value)}{quiet}\r\n{value}\r\n",
        f"{pick(['get', 'gets'])} {' '.join(pick('abcd') for _ in range(source.randrange(4)))}\r\n",
        f"{pick(['incr', 'decr'])} {key} {number}{quiet}\r\n",
        f"delete {key}{pick(['', ' 0', ' 1'])}{quiet}\r\n",
        f"touch {key} {number}{quiet}\r\n",
        f"{pick(['gat', 'gats'])} {pick(['0', '100', '-1', 'x'])} {key} a\r\n",
        f"mg {key} {flags(['v', 't', 's', 'f', 'k', 'q', 'Oab', 'c', 'N30', 'R30', 'T100', 'b', 'u', 'P1', 'Lx', 'z'])}\r\n",
        f"ms {key} {len(value)} {flags(['T100', 'F5', 'k', 'q', 'Oab', 'c', 'ME', 'MR', 'b', 'I', 'C5', 'T0', 'M'])}\r\n{value}\r\n",
        f"md {key} {flags(['q', 'k', 'Oab', 'I', 'T30', 'C5', 'b'])}\r\n",
        f"ma {key} {flags(['v', 't', 'q', 'k', 'N30', 'J7', 'D3', 'MD', 'MI', 'T50', 'b', 'c', 'C5'])}\r\n",
    ]).encode()


def main():
    ports = [int(port) for port in sys.argv[1:3]]
    source = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    differences = 0
    for _ in range(RUNS):
        connections = [socket.create_connection(("127.0.0.1", port), timeout=10) for port in ports]
        for connection in connections:
            ask(connection, b"flush_all\r\n")
        for _ in range(COMMANDS):
            command = make(source)
            first, second = (ask(connection, command) for connection in connections)
            if first != second:
                differences += 1
                print(command, first[:200], second[:200])
                break
        for connection in connections:
            connection.close()
    print(f"{differences} of {RUNS} runs differ")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
