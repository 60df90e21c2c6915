#!/usr/bin/env python3
"""TPC-C against a server that speaks PostgreSQL's and MySQL's protocols: `tpcc.py HOST POSTGRES_PORT MYSQL_PORT [--seconds N] [--warehouses N] [--threads N] [--full]`.

The five transactions of the specification in its mix, without its think times, by several clients at once; behind them its consistency conditions 3.3.2.1 to 3.3.2.4. Tables have
the specification's columns and, with --full, its sizes; else a hundredth of them. Says how many new orders a minute there were and how long each statement took."""

import argparse
import collections
import datetime
import random
import sys
import threading
import time

TABLES = """
CREATE TABLE warehouse (w_id INT PRIMARY KEY, w_name VARCHAR(10), w_street_1 VARCHAR(20), w_city VARCHAR(20), w_state CHAR(2), w_zip CHAR(9), w_tax DECIMAL(4, 4), w_ytd DECIMAL(12, 2));
CREATE TABLE district (d_w_id INT NOT NULL, d_id INT NOT NULL, d_name VARCHAR(10), d_tax DECIMAL(4, 4), d_ytd DECIMAL(12, 2), d_next_o_id INT, PRIMARY KEY (d_w_id, d_id), FOREIGN KEY (d_w_id) REFERENCES warehouse (w_id));
CREATE TABLE customer (c_w_id INT NOT NULL, c_d_id INT NOT NULL, c_id INT NOT NULL, c_first VARCHAR(16), c_middle CHAR(2), c_last VARCHAR(16), c_credit CHAR(2), c_credit_lim DECIMAL(12, 2), c_discount DECIMAL(4, 4), c_balance DECIMAL(12, 2), c_ytd_payment DECIMAL(12, 2), c_payment_cnt INT, c_delivery_cnt INT, c_data VARCHAR(500), PRIMARY KEY (c_w_id, c_d_id, c_id), FOREIGN KEY (c_w_id, c_d_id) REFERENCES district (d_w_id, d_id));
CREATE INDEX customer_last ON customer (c_w_id, c_d_id, c_last, c_first);
CREATE TABLE history (h_c_id INT, h_c_d_id INT, h_c_w_id INT, h_d_id INT, h_w_id INT, h_date TIMESTAMP, h_amount DECIMAL(6, 2), h_data VARCHAR(24));
CREATE TABLE orders (o_w_id INT NOT NULL, o_d_id INT NOT NULL, o_id INT NOT NULL, o_c_id INT, o_entry_d TIMESTAMP, o_carrier_id INT, o_ol_cnt INT, o_all_local INT, PRIMARY KEY (o_w_id, o_d_id, o_id));
CREATE INDEX orders_customer ON orders (o_w_id, o_d_id, o_c_id, o_id);
CREATE TABLE new_order (no_w_id INT NOT NULL, no_d_id INT NOT NULL, no_o_id INT NOT NULL, PRIMARY KEY (no_w_id, no_d_id, no_o_id), FOREIGN KEY (no_w_id, no_d_id, no_o_id) REFERENCES orders (o_w_id, o_d_id, o_id));
CREATE TABLE item (i_id INT PRIMARY KEY, i_name VARCHAR(24), i_price DECIMAL(5, 2), i_data VARCHAR(50));
CREATE TABLE stock (s_w_id INT NOT NULL, s_i_id INT NOT NULL, s_quantity INT, s_dist CHAR(24), s_ytd INT, s_order_cnt INT, s_remote_cnt INT, s_data VARCHAR(50), PRIMARY KEY (s_w_id, s_i_id));
CREATE TABLE order_line (ol_w_id INT NOT NULL, ol_d_id INT NOT NULL, ol_o_id INT NOT NULL, ol_number INT NOT NULL, ol_i_id INT, ol_supply_w_id INT, ol_delivery_d TIMESTAMP NULL, ol_quantity INT, ol_amount DECIMAL(6, 2), ol_dist_info CHAR(24), PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number));
"""
NAMES = ["warehouse", "district", "customer", "history", "orders", "new_order", "item", "stock", "order_line"]
SYLLABLES = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"]
DISTRICTS = 10
TRIES_MAX = 100


class RolledBack(Exception):
    """A new order of an item that there is none of: one in a hundred, as specified."""


def last_name(number):
    return "".join(SYLLABLES[int(digit)] for digit in f"{number % 1000:03}")


def connector(kind, host, port):
    """How to connect, and the codes of errors behind which a transaction is tried again."""
    if kind == "postgres":
        import psycopg

        def again(error):
            return isinstance(error, psycopg.Error) and error.sqlstate in ("40001", "40P01")

        return lambda: psycopg.connect(host=host, port=port, user="postgres", dbname="postgres"), again
    import pymysql

    def again(error):
        return isinstance(error, pymysql.err.MySQLError) and error.args[0] in (1205, 1213)

    return lambda: pymysql.connect(host=host, port=int(port), user="root", database="test", autocommit=False), again


class Client:
    """One connection and what its statements took."""

    def __init__(self, connect, sizes, seed):
        self.connection = connect()
        self.cursor = self.connection.cursor()
        self.sizes, self.random = sizes, random.Random(seed)
        self.times = collections.defaultdict(list)
        self.done = collections.Counter()

    def run(self, sql, *values):
        begun = time.perf_counter()
        self.cursor.execute(sql, values)
        self.times[sql].append(time.perf_counter() - begun)
        return self.cursor

    def one(self, sql, *values):
        return self.run(sql, *values).fetchone()

    def nurand(self, a, most):
        return ((self.random.randint(0, a) | self.random.randint(1, most)) + 123) % most + 1

    def warehouse(self):
        return self.random.randint(1, self.sizes.warehouses)

    def customer(self, w, d):
        """The number of a customer: six in ten are known by their last name."""
        if self.random.random() < 0.6:
            rows = self.run("SELECT c_id FROM customer WHERE c_w_id = %s AND c_d_id = %s AND c_last = %s ORDER BY c_first", w, d, last_name(self.nurand(255, min(self.sizes.customers, 1000)) - 1)).fetchall()
            if rows:
                return rows[len(rows) // 2][0]
        return self.nurand(1023, self.sizes.customers)

    def new_order(self):
        w, d, c = self.warehouse(), self.random.randint(1, DISTRICTS), self.nurand(1023, self.sizes.customers)
        lines = sorted((self.nurand(8191, self.sizes.items), self.warehouse() if self.random.random() < 0.01 else w, self.random.randint(1, 10)) for _ in range(self.random.randint(5, 15)))
        is_wrong = self.random.random() < 0.01
        discount, w_tax = self.one("SELECT c_discount, w_tax FROM customer, warehouse WHERE w_id = %s AND c_w_id = w_id AND c_d_id = %s AND c_id = %s", w, d, c)
        number, d_tax = self.one("SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = %s AND d_id = %s FOR UPDATE", w, d)
        self.run("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = %s AND d_id = %s", w, d)
        local = int(all(supply == w for _, supply, _ in lines))
        self.run("INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) VALUES (%s, %s, %s, %s, %s, %s, %s)", w, d, number, c, now(), len(lines), local)
        self.run("INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (%s, %s, %s)", w, d, number)
        for at, (item, supply, quantity) in enumerate(lines, 1):
            found = self.one("SELECT i_price, i_name, i_data FROM item WHERE i_id = %s", -1 if is_wrong and at == len(lines) else item)
            if found is None:
                raise RolledBack
            left, dist = self.one("SELECT s_quantity, s_dist FROM stock WHERE s_w_id = %s AND s_i_id = %s FOR UPDATE", supply, item)
            left = left - quantity if left >= quantity + 10 else left - quantity + 91
            self.run("UPDATE stock SET s_quantity = %s, s_ytd = s_ytd + %s, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + %s WHERE s_w_id = %s AND s_i_id = %s", left, quantity, int(supply != w), supply, item)
            amount = round(found[0] * quantity * (1 + w_tax + d_tax) * (1 - discount), 2)
            self.run("INSERT INTO order_line VALUES (%s, %s, %s, %s, %s, %s, NULL, %s, %s, %s)", w, d, number, at, item, supply, quantity, amount, dist)

    def payment(self):
        w, d, amount = self.warehouse(), self.random.randint(1, DISTRICTS), self.random.randint(100, 500000) / 100
        self.run("UPDATE warehouse SET w_ytd = w_ytd + %s WHERE w_id = %s", amount, w)
        self.run("UPDATE district SET d_ytd = d_ytd + %s WHERE d_w_id = %s AND d_id = %s", amount, w, d)
        c = self.customer(w, d)
        credit, data = self.one("SELECT c_credit, c_data FROM customer WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s FOR UPDATE", w, d, c)
        data = f"{c} {d} {w} {amount}|{data}"[:500] if credit == "BC" else data
        self.run("UPDATE customer SET c_balance = c_balance - %s, c_ytd_payment = c_ytd_payment + %s, c_payment_cnt = c_payment_cnt + 1, c_data = %s WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s", amount, amount, data, w, d, c)
        self.run("INSERT INTO history VALUES (%s, %s, %s, %s, %s, %s, %s, %s)", c, d, w, d, w, now(), amount, "paid")

    def order_status(self):
        w, d = self.warehouse(), self.random.randint(1, DISTRICTS)
        c = self.customer(w, d)
        self.one("SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s", w, d, c)
        order = self.one("SELECT o_id, o_carrier_id, o_entry_d FROM orders WHERE o_w_id = %s AND o_d_id = %s AND o_c_id = %s ORDER BY o_id DESC LIMIT 1", w, d, c)
        if order:
            self.run("SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line WHERE ol_w_id = %s AND ol_d_id = %s AND ol_o_id = %s", w, d, order[0]).fetchall()

    def delivery(self):
        w, carrier = self.warehouse(), self.random.randint(1, 10)
        for d in range(1, DISTRICTS + 1):
            order = self.one("SELECT no_o_id FROM new_order WHERE no_w_id = %s AND no_d_id = %s ORDER BY no_o_id LIMIT 1 FOR UPDATE", w, d)
            if order is None:
                continue
            self.run("DELETE FROM new_order WHERE no_w_id = %s AND no_d_id = %s AND no_o_id = %s", w, d, order[0])
            (c,) = self.one("SELECT o_c_id FROM orders WHERE o_w_id = %s AND o_d_id = %s AND o_id = %s", w, d, order[0])
            self.run("UPDATE orders SET o_carrier_id = %s WHERE o_w_id = %s AND o_d_id = %s AND o_id = %s", carrier, w, d, order[0])
            self.run("UPDATE order_line SET ol_delivery_d = %s WHERE ol_w_id = %s AND ol_d_id = %s AND ol_o_id = %s", now(), w, d, order[0])
            (total,) = self.one("SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = %s AND ol_d_id = %s AND ol_o_id = %s", w, d, order[0])
            self.run("UPDATE customer SET c_balance = c_balance + %s, c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s", total, w, d, c)

    def stock_level(self):
        w, d, threshold = self.warehouse(), self.random.randint(1, DISTRICTS), self.random.randint(10, 20)
        (number,) = self.one("SELECT d_next_o_id FROM district WHERE d_w_id = %s AND d_id = %s", w, d)
        self.one("SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = %s AND ol_d_id = %s AND ol_o_id < %s AND ol_o_id >= %s AND s_w_id = %s AND s_i_id = ol_i_id AND s_quantity < %s", w, d, number, number - 20, w, threshold)

    def work(self, until, again):
        kinds = [self.new_order] * 45 + [self.payment] * 43 + [self.order_status] * 4 + [self.delivery] * 4 + [self.stock_level] * 4
        while time.monotonic() < until:
            kind = self.random.choice(kinds)
            for _ in range(TRIES_MAX):
                try:
                    kind()
                    self.connection.commit()
                    self.done[kind.__name__] += 1
                    break
                except RolledBack:
                    self.connection.rollback()
                    self.done["rolled_back"] += 1
                    break
                except Exception as error:
                    self.connection.rollback()
                    if not again(error):
                        raise
                    self.done["tried_again"] += 1
            else:
                raise AssertionError(f"{kind.__name__} came to no end in {TRIES_MAX} tries")


def now():
    return datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None, microsecond=0)


def load(connect, sizes):
    connection = connect()
    cursor = connection.cursor()
    for name in reversed(NAMES):
        cursor.execute(f"DROP TABLE IF EXISTS {name}")
    for name in ("order_line", "new_order"):
        cursor.execute(f"DROP TABLE IF EXISTS {name}")
    for statement in TABLES.split(";"):
        if statement.strip():
            cursor.execute(statement)
    connection.commit()
    chance = random.Random(1)

    def put(table, rows, at_once=500):
        for start in range(0, len(rows), at_once):
            part = rows[start : start + at_once]
            line = "(" + ", ".join(["%s"] * len(part[0])) + ")"
            cursor.execute(f"INSERT INTO {table} VALUES " + ", ".join([line] * len(part)), [value for row in part for value in row])
            connection.commit()

    put("item", [(n, f"item {n}", chance.randint(100, 10000) / 100, "ORIGINAL" if n % 10 == 0 else "data") for n in range(1, sizes.items + 1)])
    orders = sizes.customers
    for w in range(1, sizes.warehouses + 1):
        put("warehouse", [(w, f"w{w}", "street", "city", "st", "123411111", chance.randint(0, 2000) / 10000, 300000)])
        put("stock", [(w, n, chance.randint(10, 100), "d" * 24, 0, 0, 0, "data") for n in range(1, sizes.items + 1)])
        put("district", [(w, d, f"d{d}", chance.randint(0, 2000) / 10000, 30000, orders + 1) for d in range(1, DISTRICTS + 1)])
        for d in range(1, DISTRICTS + 1):
            put("customer", [(w, d, c, f"first{c}", "OE", last_name(c - 1), "BC" if c % 10 == 0 else "GC", 50000, chance.randint(0, 5000) / 10000, -10, 10, 1, 0, "x" * 300) for c in range(1, sizes.customers + 1)])
            customers = list(range(1, orders + 1))
            chance.shuffle(customers)
            delivered = orders * 7 // 10
            counts = [chance.randint(5, 15) for _ in customers]
            put("orders", [(w, d, o, c, now(), chance.randint(1, 10) if o <= delivered else None, n, 1) for o, (c, n) in enumerate(zip(customers, counts), 1)])
            put("new_order", [(w, d, o) for o in range(delivered + 1, orders + 1)])
            put("order_line", [(w, d, o, at, chance.randint(1, sizes.items), w, now() if o <= delivered else None, 5, 0 if o <= delivered else chance.randint(1, 999999) / 100, "d" * 24) for o, n in enumerate(counts, 1) for at in range(1, n + 1)])
    connection.close()


CONDITIONS = {
    "3.3.2.1: a warehouse has taken what its districts have": "SELECT w_id, w_ytd, SUM(d_ytd) FROM warehouse JOIN district ON d_w_id = w_id GROUP BY w_id, w_ytd HAVING w_ytd <> SUM(d_ytd)",
    "3.3.2.2: the next order of a district follows its last one": "SELECT d_w_id, d_id FROM district WHERE d_next_o_id - 1 <> (SELECT MAX(o_id) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id) OR d_next_o_id - 1 <> (SELECT MAX(no_o_id) FROM new_order WHERE no_w_id = d_w_id AND no_d_id = d_id)",
    "3.3.2.3: new orders have no gaps": "SELECT no_w_id, no_d_id FROM new_order GROUP BY no_w_id, no_d_id HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)",
    "3.3.2.4: orders have as many lines as they say": "SELECT o_w_id, o_d_id, SUM(o_ol_cnt) FROM orders GROUP BY o_w_id, o_d_id HAVING SUM(o_ol_cnt) <> (SELECT COUNT(*) FROM order_line WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id)",
}


def run(kind, host, port, sizes):
    connect, again = connector(kind, host, port)
    load(connect, sizes)
    clients = [Client(connect, sizes, seed) for seed in range(sizes.threads)]
    failures = []

    def work(client, until):
        try:
            client.work(until, again)
        except BaseException as error:
            failures.append(error)
            raise

    begun = time.monotonic()
    threads = [threading.Thread(target=work, args=(client, begun + sizes.seconds)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - begun
    done, times = collections.Counter(), collections.defaultdict(list)
    for client in clients:
        done += client.done
        for sql, spans in client.times.items():
            times[sql] += spans
        client.connection.close()
    print(f"  {kind}: {done['new_order'] / took * 60:.0f} new orders a minute; {dict(done)}")
    slowest = sorted(times.items(), key=lambda entry: -sum(entry[1]) / len(entry[1]))
    for sql, spans in slowest[: sizes.show]:
        print(f"    {1e6 * sum(spans) / len(spans):8.0f} us mean, {1e6 * max(spans):8.0f} us most, {len(spans):6} times  {sql[:110]}")
    connection = connect()
    cursor = connection.cursor()
    for name, sql in CONDITIONS.items():
        begun = time.perf_counter()
        cursor.execute(sql)
        wrong = cursor.fetchall()
        print(f"  {'FAILED' if wrong else 'ok':6} {kind}: {name} ({1e3 * (time.perf_counter() - begun):.0f} ms)")
        if wrong:
            failures.append(f"{name}: {wrong[:5]}")
    connection.close()
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("host")
    parser.add_argument("postgres")
    parser.add_argument("mysql")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--warehouses", type=int, default=1)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--show", type=int, default=0, help="the slowest statements, so many")
    parser.add_argument("--full", action="store_true", help="the sizes of the specification")
    parser.add_argument("--only", choices=("postgres", "mysql"))
    sizes = parser.parse_args()
    sizes.items, sizes.customers = (100_000, 3000) if sizes.full else (1000, 60)
    failures = []
    for kind, port in (("postgres", sizes.postgres), ("mysql", sizes.mysql)):
        if sizes.only in (None, kind):
            failures += run(kind, sizes.host, port, sizes)
    for failure in failures:
        print(f"FAILED: {failure!r}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
