#!/usr/bin/env python3
"""Puts prepared statements with parameters of all types, as text and in binary, to a server and to the real PostgreSQL or MariaDB, and prints where they answer otherwise.

    prepared.py --dialect postgresql --server postgres://postgres@127.0.0.1:5432/x --rival postgres://postgres@127.0.0.1:5433/postgres --count 2000
    prepared.py --dialect mysql --server 127.0.0.1:3306 --rival 127.0.0.1:3307 --count 2000

Values are compared as the client has them (psycopg, mysql-connector). The exit status is 1 if an answer differs for no reason that the dialect's file of reasons has.
"""

import argparse
import datetime
import decimal
import os
import random
import sys
import uuid

from beside import Comparison, explained, number_of

DAY = datetime.date(2024, 2, 29)


class Statements:
    """Statements and their parameters, of a seed."""

    def __init__(self, seed, dialect):
        self.random = random.Random(seed)
        self.is_mysql = dialect == "mysql"

    def choice(self, *items):
        return self.random.choice(items)

    def value(self, kind):
        draw = self.random
        if draw.random() < 0.12:
            return None
        return {
            "int": lambda: draw.choice([0, 1, -1, 7, 2147483647, -2147483648, draw.randint(-99, 99)]),
            "bigint": lambda: draw.choice([0, 9223372036854775807, -9223372036854775808, draw.randint(-(10 ** 12), 10 ** 12)]),
            "numeric": lambda: decimal.Decimal(draw.choice(["0", "1.5", "-2.25", "100.00", "12345.678", "-0.01"])),
            "double": lambda: draw.choice([0.0, 1.5, -2.25, 1e10, 0.1, 1e-7]),
            "float": lambda: draw.choice([0.0, 1.5, 75.24, 1e10, 0.1, 1e-7]),
            "text": lambda: draw.choice(["a", "b", "", "Hello", "äöü", "12", "it's", "x" * 300]),
            "bool": lambda: draw.choice([True, False]),
            "date": lambda: DAY + datetime.timedelta(days=draw.randint(-9000, 9000)),
            "timestamp": lambda: datetime.datetime(2024, draw.randint(1, 12), draw.randint(1, 28), draw.randint(0, 23), draw.randint(0, 59), draw.randint(0, 59), 0 if self.is_mysql else draw.choice([0, 250000])),
            "bytes": lambda: bytes(draw.choice([b"", b"\0\1\xff", b"abc"])),
            "uuid": lambda: uuid.UUID(int=draw.getrandbits(64)),
            "json": lambda: draw.choice(['{"a": 1}', "[1, null, \"x\"]", "3", "\"t\""]),
            "array": lambda: draw.choice([[1, 2, 3], [7], [0, -5]]),
        }[kind]()

    def kinds(self):
        own = [] if self.is_mysql else ["bool", "uuid", "json", "array"]
        return ["int", "bigint", "numeric", "double", "float", "text", "date", "timestamp", "bytes"] + own

    TYPES = {
        True: {"int": "INT", "bigint": "BIGINT", "numeric": "DECIMAL(12,3)", "double": "DOUBLE", "float": "FLOAT", "text": "VARCHAR(400)", "date": "DATE", "timestamp": "DATETIME", "bytes": "VARBINARY(20)"},
        False: {"int": "int", "bigint": "bigint", "numeric": "numeric(12,3)", "double": "float8", "float": "real", "text": "text", "date": "date", "timestamp": "timestamp", "bytes": "bytea", "bool": "boolean", "uuid": "uuid",
                "json": "jsonb", "array": "int[]"},
    }

    def cast(self, kind):
        if self.is_mysql:
            return "%s"
        return f"%s::{self.TYPES[False][kind]}"

    def all(self, count):
        types = self.TYPES[self.is_mysql]
        columns = ", ".join(f"c_{kind} {types[kind]}" for kind in self.kinds())
        yield "DROP TABLE IF EXISTS prep", ()
        yield f"CREATE TABLE prep (id int PRIMARY KEY, {columns})", ()
        key = 0
        for _ in range(count):
            draw = self.random.random()
            if draw < 0.25:
                key += 1
                yield f"INSERT INTO prep VALUES (%s, {', '.join(map(self.cast, self.kinds()))})", (key,) + tuple(self.value(kind) for kind in self.kinds())
                yield "SELECT * FROM prep WHERE id = %s", (key,)
                continue
            kind = self.random.choice(self.kinds())
            at = f"c_{kind}"
            compare = self.choice("=", "<", ">=", "<>") if kind != "json" else "="
            if draw < 0.45:
                yield f"SELECT id FROM prep WHERE {at} {compare} {self.cast(kind)} ORDER BY id LIMIT 5", (self.value(kind),)
            elif draw < 0.55:
                yield f"SELECT id, {at} FROM prep WHERE {at} IN ({self.cast(kind)}, {self.cast(kind)}) OR id < %s ORDER BY id LIMIT 7", (self.value(kind), self.value(kind), self.random.randint(0, max(key, 1)))
            elif draw < 0.65:
                yield f"UPDATE prep SET {at} = {self.cast(kind)} WHERE id = %s", (self.value(kind), self.random.randint(0, max(key, 1)))
            elif draw < 0.72:
                yield f"SELECT id, COALESCE({at}, {self.cast(kind)}) FROM prep WHERE id BETWEEN %s AND %s ORDER BY id", (self.value(kind), key - 3, key)
            elif draw < 0.82:
                number = self.choice("int", "bigint", "numeric", "double")
                what = f"c_{number} {self.choice('+', '-')} {self.cast(self.choice('int', 'numeric') if number != 'double' else 'double')}"
                if self.is_mysql and number != "double":
                    # In one row: the client waits for ever for what follows an error (1690) behind a row.
                    yield f"SELECT GROUP_CONCAT({what} ORDER BY id) FROM prep WHERE id > %s", (self.choice(0, 1, -5, 100), key - 3)
                else:
                    yield f"SELECT id, {what} FROM prep WHERE id > %s ORDER BY id", (self.choice(0, 1, 5, 100), key - 3)
            elif draw < 0.87:
                yield f"SELECT COUNT(*), MIN({at if kind not in ('bytes', 'json', 'bool', 'uuid', 'array') else 'id'}), MAX(id) FROM prep WHERE id > %s AND c_text LIKE %s", (self.random.randint(0, max(key, 1)), self.choice("%a%", "_", "%", "äöü"))
            elif draw < 0.92 and not self.is_mysql:
                yield "SELECT id FROM prep WHERE id = ANY(%s) AND c_array && %s::int[] ORDER BY id", ([1, 2, key], self.value("array") or [1])
            elif draw < 0.96:
                yield f"DELETE FROM prep WHERE id = %s AND {at} {compare} {self.cast(kind)}", (self.random.randint(0, max(key, 1)), self.value(kind))
            else:
                kinds = [self.random.choice(self.kinds()) for _ in range(3)]
                if self.is_mysql:
                    kinds = ["int", "text", "bigint"]
                yield f"SELECT {', '.join(self.cast(kind) for kind in kinds)}", tuple(self.value(kind) for kind in kinds)


def plain(value):
    """A value that compares, whatever the form in which it came."""
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, float):
        return f"{value:.12g}"
    return repr(value)


def of_postgres(address, is_binary):
    import psycopg
    connection = psycopg.connect(address, autocommit=True)

    def ask(statement):
        text, params = statement
        try:
            with connection.cursor(binary=is_binary) as cursor:
                marked = text.replace("%s", "%b") if is_binary else text
                cursor.execute(marked, params, prepare=True)
                return [[cursor.statusmessage]] if cursor.description is None else [[plain(value) for value in row] for row in cursor.fetchall()]
        except psycopg.Error as error:
            return {"error": error.sqlstate, "text": str(error).splitlines()[0] if str(error) else ""}
    return ask


def of_mariadb(address, is_rival):
    import mysql.connector
    host, port = address.rsplit(":", 1)
    connection = mysql.connector.connect(host=host, port=int(port), user="root", autocommit=True, use_pure=True, charset="utf8mb4", collation="utf8mb4_unicode_ci")
    setup = connection.cursor()
    setup.execute("CREATE DATABASE IF NOT EXISTS prepared")
    setup.execute("USE prepared")

    def ask(statement):
        text, params = statement
        cursor = connection.cursor(prepared=True)
        try:
            cursor.execute(text, params)
            return [[cursor.rowcount]] if cursor.description is None else [[plain(value) for value in row] for row in cursor.fetchall()]
        except mysql.connector.Error as error:
            return {"error": number_of(text, error.errno) if is_rival else error.errno, "text": str(error.msg)}
        finally:
            cursor.close()
    return ask


class Shown(tuple):
    """A statement and its parameters, as one text."""

    def __str__(self):
        return f"{self[0]} {self[1]!r}"

    def lower(self):
        return str(self).lower()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dialect", choices=("postgresql", "mysql"), required=True)
    parser.add_argument("--server", required=True, help="the server that is doubted")
    parser.add_argument("--rival", required=True, help="the real one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    arguments = parser.parse_args()
    is_mysql = arguments.dialect == "mysql"
    name = "explained_mariadb.txt" if is_mysql else "explained_postgres.txt"
    reasons = explained(os.path.join(os.path.dirname(os.path.abspath(__file__)), name))
    result = 0
    for is_binary in (False,) if is_mysql else (False, True):
        if is_mysql:
            ours, theirs = of_mariadb(arguments.server, False), of_mariadb(arguments.rival, True)
        else:
            ours, theirs = of_postgres(arguments.server, is_binary), of_postgres(arguments.rival, is_binary)
        comparison = Comparison(ours, theirs, reasons)
        comparison.ask_all(map(Shown, Statements(arguments.seed, arguments.dialect).all(arguments.count)))
        result |= comparison.close()
    sys.exit(result)


if __name__ == "__main__":
    main()
