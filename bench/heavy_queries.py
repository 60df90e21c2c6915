#!/usr/bin/env python3
"""Joins, sorts and groups over a million rows: Lycosa by PostgreSQL's protocol beside SQLite's own tables in memory, by turns; and the point reads
of another client meanwhile.

    python3 bench/heavy_queries.py --server target/release/lycosa

Needs psycopg 3 (`pip install "psycopg[binary]"`). The figure is the median of the rounds; a ratio above 1 says that Lycosa takes longer. Both give the
same rows, or the program fails.
"""

import argparse
import json
import multiprocessing
import os
import random
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import psycopg
except ImportError:
    sys.exit('psycopg is missing: pip install "psycopg[binary]"')

TABLES = """
CREATE TABLE items (id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, price INTEGER NOT NULL, name TEXT NOT NULL);
CREATE TABLE sales (id INTEGER PRIMARY KEY, item INTEGER NOT NULL, amount INTEGER NOT NULL, customer INTEGER NOT NULL);
"""
INDEX = "CREATE INDEX by_item ON sales (item)"

QUERIES = {
    "count and sum": "SELECT count(*), sum(amount) FROM sales",
    "filter": "SELECT count(*) FROM sales WHERE amount > 50 AND customer % 7 = 3",
    "group, 100": "SELECT amount, count(*), sum(customer) FROM sales GROUP BY amount ORDER BY amount",
    "group, 100,000": "SELECT count(*) FROM (SELECT customer, count(*) AS n, max(amount) AS m FROM sales GROUP BY customer) AS g WHERE n > 10",
    "group by text": "SELECT name, count(*) FROM items GROUP BY name ORDER BY name LIMIT 5",
    "distinct": "SELECT count(*) FROM (SELECT DISTINCT customer, amount % 10 AS d FROM sales) AS d",
    "sort, first 10": "SELECT id, amount, customer FROM sales ORDER BY customer, amount DESC, id LIMIT 10",
    "sort, whole": "SELECT sum(x) FROM (SELECT id % 10 AS x FROM sales ORDER BY customer, id LIMIT 1000000 OFFSET 1) AS s",
    "sort by text": "SELECT name, id FROM items ORDER BY name, id LIMIT 1 OFFSET 99999",
    "join by primary key": "SELECT count(*), sum(s.amount * i.price) FROM sales s JOIN items i ON i.id = s.item",
    "join by index": "SELECT count(*), sum(s.amount) FROM items i JOIN sales s ON s.item = i.id WHERE i.kind = 3",
    "join without index": "SELECT count(*) FROM sales a JOIN items b ON a.customer = b.price",
    "join and group": "SELECT i.kind, count(*), sum(s.amount) FROM sales s JOIN items i ON i.id = s.item GROUP BY i.kind ORDER BY i.kind",
    "range by key": "SELECT sum(amount) FROM sales WHERE id BETWEEN 100000 AND 300000",
}


def rows(count, seed):
    numbers = random.Random(seed)
    items = [(i, numbers.randrange(100), numbers.randrange(100_000), "name %06d" % numbers.randrange(50_000)) for i in range(count // 10)]
    sales = [(i, numbers.randrange(count // 10), numbers.randrange(100), numbers.randrange(100_000)) for i in range(count)]
    return items, sales


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Lycosa:
    def __init__(self, binary, engine):
        self.directory = tempfile.TemporaryDirectory(prefix="lycosa-bench-")
        self.port = free_port()
        command = [binary, "serve", "--work-dir", self.directory.name, "--wal-mode", "write", "--memtx-memory", "4G",
                   "--listen", "postgres://127.0.0.1:%d" % self.port]
        self.log = open(os.path.join(self.directory.name, "log"), "wb")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.engine = engine
        self.connection = self.connect()

    def connect(self):
        deadline = time.monotonic() + 60
        while True:
            try:
                return psycopg.connect(host="127.0.0.1", port=self.port, user="postgres", dbname="bench", autocommit=True)
            except psycopg.OperationalError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise
                time.sleep(0.05)

    def fill(self, items, sales):
        with self.connection.cursor() as cursor:
            for statement in TABLES.split(";"):
                if statement.strip():
                    cursor.execute(statement + (" WITH (engine = 'vinyl')" if self.engine == "vinyl" else ""))
            for table, values in (("items", items), ("sales", sales)):
                with cursor.copy("COPY %s FROM STDIN" % table) as copy:
                    for row in values:
                        copy.write_row(row)
            cursor.execute(INDEX)

    def query(self, text):
        with self.connection.cursor() as cursor:
            return cursor.execute(text).fetchall()

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.log.close()
        self.directory.cleanup()


def sqlite(items, sales):
    connection = sqlite3.connect(":memory:")
    connection.executescript(TABLES)
    connection.executemany("INSERT INTO items VALUES (?, ?, ?, ?)", items)
    connection.executemany("INSERT INTO sales VALUES (?, ?, ?, ?)", sales)
    connection.execute(INDEX)
    connection.commit()
    return connection


def timed(work):
    begun = time.perf_counter()
    found = work()
    return time.perf_counter() - begun, found


def point_reads(server, count, stop, rates):
    """Puts into `rates` how many a second, until `stop` is set. Runs in a process of its own: threads of Python wait for each other."""
    numbers = random.Random(1)
    done, begun = 0, time.perf_counter()
    with server.connect() as connection, connection.cursor() as cursor:
        while not stop.is_set():
            cursor.execute("SELECT amount FROM sales WHERE id = %s", (numbers.randrange(count),), prepare=True).fetchall()
            done += 1
    rates.put(done / (time.perf_counter() - begun))


def reads_beside(server, count, text, seconds):
    """Rates of another client's reads: alone, and while the query runs again and again."""
    rates = []
    for query in (None, text):
        stop, found = multiprocessing.Event(), multiprocessing.Queue()
        reader = multiprocessing.Process(target=point_reads, args=(server, count, stop, found))
        reader.start()
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if query is None:
                time.sleep(0.05)
            else:
                server.query(query)
        stop.set()
        rates.append(found.get())
        reader.join()
    return rates


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, help="the binary of Lycosa")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the larger table (default: 1,000,000)")
    parser.add_argument("--rounds", type=int, default=5, help="default: 5")
    parser.add_argument("--engine", choices=("memtx", "vinyl"), default="memtx", help="engine of Lycosa's tables (default: memtx)")
    parser.add_argument("--only", default="", help="queries whose names have this in them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one object on one line")
    given = parser.parse_args()

    items, sales = rows(given.rows, given.seed)
    server = Lycosa(given.server, given.engine)
    try:
        server.fill(items, sales)
        other = sqlite(items, sales)
        figures = {}
        for name, text in QUERIES.items():
            if given.only not in name:
                continue
            times = ([], [])
            for _ in range(given.rounds):
                ours, found = timed(lambda: server.query(text))
                theirs, wanted = timed(lambda: other.execute(text).fetchall())
                if [tuple(map(str, row)) for row in found] != [tuple(map(str, row)) for row in wanted]:
                    sys.exit("%s: %s, SQLite has %s" % (name, found[:3], wanted[:3]))
                times[0].append(ours)
                times[1].append(theirs)
            ours, theirs = map(statistics.median, times)
            figures[name] = {"lycosa_ms": round(ours * 1000, 1), "sqlite_ms": round(theirs * 1000, 1), "ratio": round(ours / theirs, 2)}
            if not given.json:
                print("%-22s Lycosa %8.1f ms   SQLite %8.1f ms   x %.2f" % (name, ours * 1000, theirs * 1000, ours / theirs), flush=True)
        if not given.only:
            for name in ("join by primary key", "sort, whole", "group, 100,000"):
                alone, beside = reads_beside(server, given.rows, QUERIES[name], 5)
                figures["reads beside: " + name] = {"alone": round(alone), "beside": round(beside), "share": round(beside / alone, 2)}
                if not given.json:
                    print("%-22s point reads %.0f/s alone, %.0f/s beside: %.2f" % (name, alone, beside, beside / alone), flush=True)
        if given.json:
            print(json.dumps(figures))
    finally:
        server.stop()


main()
