#!/usr/bin/env python3
"""psycopg against a server that speaks PostgreSQL's protocol: `postgres_python.py HOST PORT`. The same passes against PostgreSQL 15."""

import datetime
import decimal
import random
import sys
import threading
import uuid

import psycopg
from psycopg.rows import dict_row


def connect(**more):
    host, port = sys.argv[1:3]
    return psycopg.connect(host=host, port=port, user="postgres", dbname="postgres", sslmode="disable", **more)


def types(db):
    db.execute("DROP TABLE IF EXISTS kinds")
    db.execute(
        "CREATE TABLE kinds (id SERIAL PRIMARY KEY, small SMALLINT, big BIGINT, real DOUBLE PRECISION, exact NUMERIC(20, 4), words VARCHAR(30),"
        " bytes BYTEA, day DATE, moment TIMESTAMP, zoned TIMESTAMPTZ, ok BOOLEAN, own UUID, document JSONB)"
    )
    zoned = datetime.datetime(2024, 2, 29, 23, 59, 59, 123456, tzinfo=datetime.timezone.utc)
    row = (
        -32768, 2**63 - 1, 0.1, decimal.Decimal("12345.6789"), "wörds", b"\0\xff", datetime.date(1999, 12, 31),
        datetime.datetime(1970, 1, 1, 0, 0, 1), zoned, True, uuid.UUID(int=7), psycopg.types.json.Jsonb({"a": [1, None]}),
    )
    insert = "INSERT INTO kinds (small, big, real, exact, words, bytes, day, moment, zoned, ok, own, document)"
    places = ", ".join(["%s"] * len(row))
    first = db.execute(f"{insert} VALUES ({places}) RETURNING id", row).fetchone()[0]
    nulls = db.execute(f"{insert} VALUES ({places}) RETURNING id", [None] * len(row)).fetchone()[0]
    for is_binary in (False, True):
        found = db.execute("SELECT * FROM kinds WHERE id = %s", [first], binary=is_binary).fetchone()
        assert found[1:12] == row[:11], found
        assert found[12] == {"a": [1, None]}, found
        assert db.execute("SELECT * FROM kinds WHERE id = %s", [nulls], binary=is_binary).fetchone()[1:] == (None,) * 12
    with db.cursor(row_factory=dict_row) as cursor:
        cursor.execute("SELECT small, exact * 2 AS twice FROM kinds WHERE id = ANY(%s)", [[first, -1]])
        assert cursor.fetchall() == [{"small": -32768, "twice": decimal.Decimal("24691.3578")}]
        assert [column.name for column in cursor.description] == ["small", "twice"]


def errors(db):
    cases = [
        ("SELECT * FROM nothing", psycopg.errors.UndefinedTable),
        ("SELECT nothing FROM kinds", psycopg.errors.UndefinedColumn),
        ("SELEC 1", psycopg.errors.SyntaxError),
        ("SELECT 1 / 0", psycopg.errors.DivisionByZero),
        ("SELECT 'x'::int", psycopg.errors.InvalidTextRepresentation),
        ("INSERT INTO kinds (small) VALUES (32768)", psycopg.errors.NumericValueOutOfRange),
        ("INSERT INTO kinds (words) VALUES (repeat('x', 31))", psycopg.errors.StringDataRightTruncation),
    ]
    for statement, wanted in cases:
        try:
            db.execute(statement)
            raise AssertionError(statement)
        except wanted:
            pass
    try:
        with db.transaction():
            db.execute("INSERT INTO kinds (id) VALUES (1000)")
            db.execute("INSERT INTO kinds (id) VALUES (1000)")
    except psycopg.errors.UniqueViolation as error:
        assert error.diag.constraint_name == "kinds_pkey" and error.diag.table_name == "kinds"
    assert db.execute("SELECT count(*) FROM kinds WHERE id = 1000").fetchone() == (0,)


def transactions(db):
    with db.transaction():
        db.execute("INSERT INTO kinds (id, words) VALUES (2000, 'outer')")
        try:
            with db.transaction():
                db.execute("INSERT INTO kinds (id) VALUES (2000)")
        except psycopg.errors.UniqueViolation:
            pass
    assert db.execute("SELECT words FROM kinds WHERE id = 2000").fetchone() == ("outer",)
    with connect() as other:
        other.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
        assert other.execute("SELECT words FROM kinds WHERE id = 2000").fetchone() == ("outer",)
        db.execute("UPDATE kinds SET words = 'changed' WHERE id = 2000")
        try:
            other.execute("UPDATE kinds SET words = 'lost' WHERE id = 2000")
            other.commit()
            raise AssertionError("it has seen another row")
        except psycopg.errors.SerializationFailure:
            other.rollback()


def copies(db):
    db.execute("DROP TABLE IF EXISTS copied")
    db.execute("CREATE TABLE copied (a INT, b TEXT)")
    with db.cursor().copy("COPY copied FROM STDIN") as copy:
        for number in range(5000):
            copy.write_row((number, None if number % 3 else f"line\t{number}\n"))
    with db.cursor().copy("COPY (SELECT a, b FROM copied WHERE a < 4 ORDER BY a) TO STDOUT") as copy:
        assert [row for row in copy.rows()] == [("0", "line\t0\n"), ("1", None), ("2", None), ("3", "line\t3\n")]
    assert db.execute("SELECT count(*), count(b) FROM copied").fetchone() == (5000, 1667)


def inventory(db):
    """Capture and release of stock by locked rows: nothing is oversold, and nothing is lost."""
    db.execute("DROP TABLE IF EXISTS stock")
    db.execute("CREATE TABLE stock (id SERIAL PRIMARY KEY, sku INT NOT NULL, warehouse INT NOT NULL, count INT NOT NULL, UNIQUE (sku, warehouse))")
    db.execute("CREATE INDEX stock_sku ON stock (sku)")
    for sku in range(5):
        for warehouse in range(3):
            db.execute("INSERT INTO stock (sku, warehouse, count) VALUES (%s, %s, 20)", (sku, warehouse))
    totals, failures = [], []

    def work(seed):
        chance, changed = random.Random(seed), 0
        try:
            with connect() as own:
                for _ in range(100):
                    sku, wanted = chance.randrange(5), chance.randint(1, 3)
                    if chance.random() < 0.3:
                        own.execute("UPDATE stock SET count = count + %s WHERE sku = %s AND warehouse = 0", (wanted, sku))
                        changed += wanted
                    else:
                        rows = own.execute("SELECT id, count FROM stock WHERE sku = %s AND count > 0 ORDER BY id FOR UPDATE", [sku]).fetchall()
                        left = wanted if sum(count for _, count in rows) >= wanted else 0
                        for row, count in rows:
                            taken = min(count, left)
                            if taken:
                                own.execute("UPDATE stock SET count = count - %s WHERE id = %s", (taken, row))
                                left, changed = left - taken, changed - taken
                    own.commit()
            totals.append(changed)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=[seed]) for seed in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures, failures
    found, least = db.execute("SELECT sum(count), min(count) FROM stock").fetchone()
    assert found == 300 + sum(totals) and least >= 0, (found, totals, least)


def main():
    with connect(autocommit=True) as db:
        for part in (types, errors, transactions, copies, inventory):
            part(db)
            print(f"  psycopg: {part.__name__}")


main()
