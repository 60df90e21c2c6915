#!/usr/bin/env python3
"""PyMySQL and mysql-connector-python against a server that speaks MySQL's protocol: `mysql_python.py HOST PORT`. The same passes against MariaDB."""

import datetime
import decimal
import random
import sys
import threading

import mysql.connector
import pymysql


def connect(**more):
    host, port = sys.argv[1:3]
    return pymysql.connect(host=host, port=int(port), user="root", database="test", **more)


def connect_prepared():
    host, port = sys.argv[1:3]
    return mysql.connector.connect(
        host=host, port=int(port), user="root", database="test", use_pure=True, ssl_disabled=True, charset="utf8mb4",
        collation="utf8mb4_general_ci",
    )


def ask(db, text, values=None):
    with db.cursor() as cursor:
        cursor.execute(text, values)
        return cursor.fetchall()


KINDS = (
    "CREATE TABLE kinds (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, tiny TINYINT, small SMALLINT, big BIGINT, vast BIGINT UNSIGNED, `real` DOUBLE,"
    " exact DECIMAL(20, 4), words VARCHAR(30), bytes VARBINARY(30), day DATE, moment DATETIME(6), ok TINYINT(1), kind ENUM('a', 'b'), document LONGTEXT)"
    " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
)
ROW = (
    -128, -32768, 2**63 - 1, 2**64 - 1, 0.1, decimal.Decimal("12345.6789"), "wörds", b"\0\xff'", datetime.date(1999, 12, 31),
    datetime.datetime(2024, 2, 29, 23, 59, 59, 123456), 1, "b", '{"a": [1, null]}',
)
COLUMNS = "tiny, small, big, vast, `real`, exact, words, bytes, day, moment, ok, kind, document"


def types(db):
    ask(db, "DROP TABLE IF EXISTS kinds")
    ask(db, KINDS)
    places = ", ".join(["%s"] * len(ROW))
    with db.cursor() as cursor:
        cursor.execute(f"INSERT INTO kinds ({COLUMNS}) VALUES ({places})", ROW)
        first = cursor.lastrowid
        cursor.execute(f"INSERT INTO kinds ({COLUMNS}) VALUES ({places})", [None] * len(ROW))
        assert (first, cursor.lastrowid, cursor.rowcount) == (1, 2, 1)
    assert ask(db, f"SELECT {COLUMNS} FROM kinds ORDER BY id") == (ROW, (None,) * len(ROW))
    assert ask(db, "SELECT words FROM kinds WHERE words = 'WÖRDS'") == (("wörds",),)
    db.commit()


def prepared(db):
    other = connect_prepared()
    cursor = other.cursor(prepared=True)
    places = ", ".join(["%s"] * len(ROW))
    cursor.execute(f"INSERT INTO kinds ({COLUMNS}) VALUES ({places})", ROW)
    other.commit()
    number = cursor.lastrowid
    for wanted in (number, 2, number):
        cursor.execute(f"SELECT {COLUMNS} FROM kinds WHERE id = %s", (wanted,))
        row = cursor.fetchone()
        assert cursor.fetchone() is None
        row = tuple(bytes(value) if isinstance(value, bytearray) else value for value in row)
        assert row == (ROW if wanted == number else (None,) * len(ROW)), row
    cursor.execute("UPDATE kinds SET words = %s WHERE id = %s", ("x", number))
    assert cursor.rowcount == 1
    cursor.execute("SELECT SUM(small), COUNT(*), MAX(moment) FROM kinds")
    assert cursor.fetchall() == [(decimal.Decimal(-65536), 3, ROW[9])]
    other.rollback()
    other.close()


def errors(db):
    cases = [
        ("SELECT * FROM nothing", 1146),
        ("SELECT nothing FROM kinds", 1054),
        ("SELEC 1", 1064),
        ("INSERT INTO kinds (small) VALUES (32768)", 1264),
        ("INSERT INTO kinds (words) VALUES (REPEAT('x', 31))", 1406),
        ("INSERT INTO kinds (day) VALUES ('2024-02-30')", 1292),
        ("INSERT INTO kinds (kind) VALUES ('c')", 1265),
        ("INSERT INTO kinds (id) VALUES (1)", 1062),
        ("CREATE TABLE kinds (a INT)", 1050),
        ("DROP TABLE nothing", 1051),
        ("SELECT @@nothing", 1193),
        ("SELECT words, COUNT(*) FROM kinds k JOIN kinds l GROUP BY l.id HAVING nothing > 1", (1052, 1054)),
    ]
    for statement, wanted in cases:
        try:
            ask(db, statement)
        except pymysql.MySQLError as error:
            assert error.args[0] == wanted or isinstance(wanted, tuple) and error.args[0] in wanted, (statement, error)
            continue
        raise AssertionError(statement)


def statements(db):
    ask(db, "DROP TABLE IF EXISTS counters")
    ask(db, "CREATE TABLE counters (name VARCHAR(20) PRIMARY KEY, count INT NOT NULL DEFAULT 0, changed TIMESTAMP NULL)")
    with db.cursor() as cursor:
        for wanted in (1, 2, 2):
            cursor.execute("INSERT INTO counters (name, count) VALUES ('a', 1) ON DUPLICATE KEY UPDATE count = count + VALUES(count)")
            assert cursor.rowcount == wanted
        assert cursor.execute("INSERT IGNORE INTO counters (name) VALUES ('A'), ('b')") == 1
        assert cursor.execute("REPLACE INTO counters (name, count) VALUES ('b', 7)") == 2
        assert cursor.execute("UPDATE counters SET count = 7 WHERE name = 'b'") in (0, 1)
        cursor.execute("SELECT name, count FROM counters ORDER BY name")
        assert cursor.fetchall() == (("a", 3), ("b", 7)), cursor.fetchall()
        assert cursor.execute("UPDATE counters SET count = count + 1 ORDER BY name DESC LIMIT 1") == 1
        cursor.execute("UPDATE counters a JOIN counters b ON b.name = 'b' SET a.count = b.count * 10 WHERE a.name = 'a'")
        cursor.execute("SELECT GROUP_CONCAT(CONCAT(name, '=', count) ORDER BY name SEPARATOR '; ') FROM counters")
        assert cursor.fetchall() == (("a=80; b=8",),)
        cursor.execute("SELECT count FROM counters ORDER BY name LIMIT 1, 1")
        assert cursor.fetchall() == ((8,),)
        cursor.execute("DELETE a FROM counters a JOIN counters b ON a.count > b.count")
        assert cursor.rowcount == 1
        cursor.execute("SELECT IF(1 > 2, 'a', 'b'), IFNULL(NULL, 3), 7 DIV 2, 7 % 4, 5 <=> NULL, 'a' REGEXP '^[A-C]$', FIELD('b', 'a', 'b')")
        assert cursor.fetchall() == (("b", 3, 3, 3, 0, 1, 2),)
        cursor.execute("SELECT DATE_FORMAT('2024-03-01 10:11:12', '%Y/%m/%d %H:%i'), DATE('2024-03-01 10:11:12'), LAST_DAY('2024-02-01')")
        assert cursor.fetchall() == (("2024/03/01 10:11", datetime.date(2024, 3, 1), datetime.date(2024, 2, 29)),)
        cursor.execute("SELECT DATE_ADD(DATE('2024-01-31'), INTERVAL 1 MONTH), TIMESTAMPDIFF(DAY, '2024-01-01', '2024-03-01'), MD5('a')")
        assert cursor.fetchall() == ((datetime.date(2024, 2, 29), 60, "0cc175b9c0f1b6a831c399e269772661"),)
        cursor.execute("SHOW TABLES LIKE 'coun%'")
        assert cursor.fetchall() == (("counters",),)
        cursor.execute("SHOW COLUMNS FROM counters")
        assert [row[0] for row in cursor.fetchall()] == ["name", "count", "changed"]
        cursor.execute("SELECT column_name, is_nullable FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'counters' ORDER BY ordinal_position")
        assert cursor.fetchall() == (("name", "NO"), ("count", "NO"), ("changed", "YES"))
        cursor.execute("SET @a = 5, autocommit = 0")
        cursor.execute("SET @b := @a + 1")
        cursor.execute("SELECT @a, @b, @@autocommit")
        assert cursor.fetchall() == ((5, 6, 0),)


def transactions(db):
    ask(db, "DELETE FROM counters")
    db.commit()
    ask(db, "INSERT INTO counters (name, count) VALUES ('outer', 1)")
    ask(db, "SAVEPOINT s")
    ask(db, "UPDATE counters SET count = 2")
    ask(db, "ROLLBACK TO SAVEPOINT s")
    other = connect(autocommit=True)
    assert ask(other, "SELECT * FROM counters") == ()
    try:
        ask(db, "INSERT INTO counters (name) VALUES ('outer')")
        raise AssertionError("a row twice")
    except pymysql.err.IntegrityError:
        pass
    # What was done before stands.
    db.commit()
    assert ask(other, "SELECT name, count FROM counters") == (("outer", 1),)
    ask(db, "UPDATE counters SET count = 5")
    db.rollback()
    assert ask(other, "SELECT count FROM counters") == ((1,),)
    ask(db, "SELECT * FROM counters WHERE name = 'outer' FOR UPDATE")
    try:
        ask(other, "SELECT * FROM counters WHERE name = 'outer' FOR UPDATE NOWAIT")
        raise AssertionError("a row that is locked")
    except pymysql.MySQLError as error:
        assert error.args[0] in (1205, 3572), error
    ask(other, "SET innodb_lock_wait_timeout = 1")
    try:
        ask(other, "UPDATE counters SET count = 9 WHERE name = 'outer'")
        raise AssertionError("a row that is locked")
    except pymysql.MySQLError as error:
        assert error.args[0] == 1205, error
    db.rollback()
    other.close()


def several(db):
    """Several statements in one text, and rows that come as they are asked for."""
    host, port = sys.argv[1:3]
    flags = pymysql.constants.CLIENT.MULTI_STATEMENTS
    other = pymysql.connect(host=host, port=int(port), user="root", database="test", client_flag=flags, autocommit=True)
    with other.cursor() as cursor:
        cursor.execute("SELECT 1; SELECT 2, ';'; UPDATE counters SET count = 3 WHERE name = 'nobody'; SELECT 4")
        found = [cursor.fetchall()]
        while cursor.nextset():
            found.append(cursor.fetchall())
        assert found == [((1,),), ((2, ";"),), [], ((4,),)], found
    other.close()
    db.rollback()
    ask(db, "DROP TABLE IF EXISTS many")
    ask(db, "CREATE TABLE many (id INT PRIMARY KEY, filler VARCHAR(100))")
    with db.cursor() as cursor:
        cursor.executemany("INSERT INTO many VALUES (%s, %s)", [(number, "x" * 100) for number in range(20_000)])
    db.commit()
    with db.cursor(pymysql.cursors.SSCursor) as cursor:
        cursor.execute("SELECT id FROM many ORDER BY id")
        assert sum(1 for _ in cursor) == 20_000
    ask(db, "DROP TABLE many")


def inventory(db):
    """Many clients take from few items: nothing is sold twice, nothing is left that was wanted."""
    ask(db, "DROP TABLE IF EXISTS items")
    ask(db, "CREATE TABLE items (id INT PRIMARY KEY, stock INT NOT NULL)")
    ask(db, "INSERT INTO items VALUES (1, 100), (2, 100), (3, 100)")
    db.commit()
    sold = []

    def buy(seed):
        own = connect()
        chance = random.Random(seed)
        for _ in range(60):
            item = chance.randint(1, 3)
            own.begin()
            stock = ask(own, "SELECT stock FROM items WHERE id = %s FOR UPDATE", [item])[0][0]
            if stock > 0:
                ask(own, "UPDATE items SET stock = stock - 1 WHERE id = %s", [item])
                own.commit()
                sold.append(item)
            else:
                own.rollback()
        own.close()

    threads = [threading.Thread(target=buy, args=[seed]) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    left = dict(ask(db, "SELECT id, stock FROM items"))
    assert all(left[item] == 100 - sold.count(item) and left[item] >= 0 for item in left), (left, len(sold))
    assert len(sold) == 300, len(sold)
    ask(db, "DROP TABLE items")


def main():
    db = connect()
    for part in (types, prepared, errors, statements, transactions, several, inventory):
        part(db)
        print(f"  mysql: {part.__name__}")
    for table in ("kinds", "counters"):
        ask(db, f"DROP TABLE {table}")
    db.close()


if __name__ == "__main__":
    main()
