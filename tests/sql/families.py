"""Statements in the manner of SQLite's own sqllogictest files, made of a seed: each family is named after the files that it follows.

A family yields statements; what begins with SELECT is a query, all else changes something. Dialects are "mysql" and "postgresql".
"""

import random


class Families:
    def __init__(self, seed, dialect):
        self.random = random.Random(seed)
        self.dialect = dialect
        self.is_mysql = dialect == "mysql"

    def choice(self, *items):
        return self.random.choice(items)

    def all(self, count):
        """Statements of every family, about `count` of them."""
        names = ["select1", "select4", "expr", "aggregates", "groupby", "select", "index", "evidence"]
        for name in names:
            yield from getattr(self, name)(max(count // len(names), 20))

    # select1 to select3: one table, nulls, CASE, correlated subqueries.

    def select1(self, count):
        yield "DROP TABLE IF EXISTS t1"
        yield "CREATE TABLE t1(a INTEGER, b INTEGER, c INTEGER, d INTEGER, e INTEGER)"
        number = 100
        for _ in range(30):
            five = list(range(number, number + 5))
            self.random.shuffle(five)
            values = [str(one) if self.random.random() > 0.08 else "NULL" for one in five]
            yield f"INSERT INTO t1(e,c,b,d,a) VALUES({','.join(values)})"
            number += 5
        items = ["a", "b", "c", "d", "e", "a-b", "b-c", "c-d", "d-e", "a+b*2", "a+b*2+c*3", "a+b*2+c*3+d*4", "a+b*2+c*3+d*4+e*5", "(a+b+c+d+e)/5", "abs(a)", "abs(b-c)",
                 "(SELECT count(*) FROM t1 AS x WHERE x.b<t1.b)", "(SELECT count(*) FROM t1 AS x WHERE x.c>x.c AND x.d<t1.d)",
                 "CASE WHEN c>(SELECT avg(c) FROM t1) THEN a*2 ELSE b*10 END", "CASE WHEN a<b-3 THEN 111 WHEN a<=b THEN 222 WHEN a<b+3 THEN 333 ELSE 444 END",
                 "CASE a+1 WHEN b THEN 111 WHEN c THEN 222 WHEN d THEN 333 WHEN e THEN 444 ELSE 555 END", "coalesce(a,b,c,d,e)"]
        conditions = ["a>b", "b>c", "c>d", "d>e", "c BETWEEN b-2 AND d+2", "d NOT BETWEEN 110 AND 150", "e+d BETWEEN a+b-10 AND c+130", "(a>b-2 AND a<b+2)", "(e>c OR e<d)",
                      "(e>a AND e<b)", "(c<=d-2 OR c>=d+2)", "EXISTS(SELECT 1 FROM t1 AS x WHERE x.b<t1.b)", "a IS NULL", "b IS NOT NULL", "coalesce(a,b,c,d,e)<>0",
                      "(a>b OR b IS NULL)", "NOT (a>b)"]
        for _ in range(count):
            columns = self.random.sample(items, self.random.randint(1, 7))
            where = self.random.sample(conditions, self.random.randint(0, 4))
            text = f"SELECT {', '.join(columns)} FROM t1"
            if where:
                text += f" WHERE {self.choice(' AND ', ' OR ').join(where)}"
            numbers = list(range(1, len(columns) + 1))
            self.random.shuffle(numbers)
            yield f"{text} ORDER BY {','.join(map(str, numbers))}"

    # select4 and select5: joins of dozens of tables, and sets of their rows.

    def select4(self, count):
        tables = 16
        for table in range(1, tables + 1):
            yield f"DROP TABLE IF EXISTS t{table}"
            yield f"CREATE TABLE t{table}(a{table} INTEGER PRIMARY KEY, b{table} INTEGER, x{table} VARCHAR(40))"
            for row in self.random.sample(range(1, 11), 10):
                yield f"INSERT INTO t{table} VALUES({row},{self.random.randint(1, 10)},'table t{table} row {row}')"
        for number in range(count):
            some = self.random.sample(range(1, tables + 1), self.random.randint(2, tables))
            conditions = [self.choice(f"a{x}=b{y}", f"b{y}=a{x}") for x, y in zip(some, some[1:])]
            conditions.append(f"a{some[-1]}={self.random.randint(1, 10)}" if self.random.random() < 0.5 else f"{self.random.randint(1, 10)}=b{some[0]}")
            self.random.shuffle(conditions)
            names = [f"t{one}" for one in some]
            self.random.shuffle(names)
            columns = [f"x{one}" for one in some]
            if number % 3:
                yield f"SELECT {','.join(columns)} FROM {','.join(names)} WHERE {' AND '.join(conditions)}"
                continue
            one, two = some[0], some[1]
            parts = [f"SELECT {self.choice('a', 'b')}{one} FROM t{one} WHERE b{one} in ({','.join(str(self.random.randint(1, 10)) for _ in range(3))}) OR (a{one}={self.random.randint(1, 10)})"
                     for one in (one, two, one, two)]
            yield " ".join(part + (" " + self.choice("UNION", "UNION ALL", "EXCEPT", "INTERSECT") if index < 3 else "") for index, part in enumerate(parts))

    # random/expr, random/select, random/aggregates, random/groupby: tab0 to tab2 of whole numbers.

    def tabs(self):
        rows = {"tab0": [(97, 1, 99), (15, 81, 47), (87, 21, 10)], "tab1": [(51, 14, 96), (85, 5, 59), (91, 47, 68)], "tab2": [(64, 77, 40), (75, 67, 58), (46, 51, 23)]}
        for name, those in rows.items():
            yield f"DROP TABLE IF EXISTS {name}"
            yield f"CREATE TABLE {name}(col0 INTEGER, col1 INTEGER, col2 INTEGER)"
            for row in those:
                yield f"INSERT INTO {name} VALUES({row[0]},{row[1]},{row[2]})"

    def null(self):
        return "CAST( NULL AS SIGNED )" if self.is_mysql else "CAST ( NULL AS INTEGER )"

    def divide(self, a, b):
        return f"{a} {'DIV' if self.is_mysql else '/'} {b}"

    def number(self, columns, depth=0):
        draw = self.random.random()
        if depth > 3 or draw < 0.35:
            leaf = self.random.choice(columns) if columns and self.random.random() < 0.55 else str(self.random.randint(0, 99))
            return f"{self.choice('', '', '+ ', '- ', '- + ', '+ - ', '- - ', '- ( - ')}{leaf}".replace("( - " + leaf, f"( - {leaf} )")
        e = lambda: self.number(columns, depth + 1)
        return self.choice(
            lambda: f"{e()} {self.choice('+', '-', '*')} {e()}", lambda: f"{e()} {self.choice('+', '-', '*')} {e()}", lambda: self.divide(e(), self.random.randint(1, 99)),
            lambda: f"( {e()} )", lambda: f"- ( {e()} )", lambda: f"CASE {e()} WHEN {e()} THEN {e()} WHEN {e()} THEN {self.null()} ELSE {e()} END",
            lambda: f"CASE WHEN {self.condition(columns, depth + 1)} THEN {e()} ELSE {self.choice(e(), 'NULL')} END", lambda: f"COALESCE ( {self.null()}, {e()}, {e()} )",
            lambda: f"NULLIF ( {e()}, {e()} )", lambda: f"ABS ( {e()} )", lambda: f"{self.null()}", lambda: f"CAST( {e()} AS {'SIGNED' if self.is_mysql else 'INTEGER'} )")()

    def condition(self, columns, depth=0):
        e = lambda: self.number(columns, depth + 1)
        c = lambda: self.condition(columns, depth + 1)
        if depth > 3:
            return f"{e()} {self.choice('<', '>', '=', '<>', '<=', '>=')} {e()}"
        return self.choice(
            lambda: f"{e()} {self.choice('<', '>', '=', '<>', '<=', '>=')} {e()}", lambda: f"{e()} {self.choice('', 'NOT ')}BETWEEN {e()} AND {e()}",
            lambda: f"NOT {e()} {self.choice('', 'NOT ')}BETWEEN {e()} AND {e()}", lambda: f"{e()} IS {self.choice('', 'NOT ')}NULL", lambda: f"( NULL ) IS {self.choice('', 'NOT ')}NULL",
            lambda: f"NOT ( NULL ) IS {self.choice('', 'NOT ')}NULL", lambda: f"{e()} {self.choice('', 'NOT ')}IN ( {e()}, {e()} )", lambda: f"( {c()} ) {self.choice('AND', 'OR')} ( {c()} )",
            lambda: f"NOT ( {c()} )", lambda: f"( {e()} ) {self.choice('=', '<', '>')} ( NULL )")()

    def of(self, alias=None):
        table = self.choice("tab0", "tab1", "tab2")
        name = alias or table
        return table, [f"{name}.col{n}" if alias or self.random.random() < 0.3 else f"col{n}" for n in range(3)]

    def expr(self, count):
        yield from self.tabs()
        for _ in range(count):
            yield f"SELECT {self.choice('', 'ALL ', 'DISTINCT ')}{self.number([])}{self.choice('', ' AS col0', ' col1')}"

    def aggregate(self, columns):
        e = self.number(columns, 2)
        return self.choice("COUNT ( * )", f"COUNT( {self.choice('', 'ALL ', 'DISTINCT ')}{e} )", f"SUM( {self.choice('', 'ALL ', 'DISTINCT ')}{e} )", f"MIN( {self.choice('', 'DISTINCT ')}{e} )",
                           f"MAX ( {self.choice('', 'ALL ')}{e} )".replace("MAX (", "MAX("), f"- COUNT( * ) + {self.random.randint(0, 99)}", f"COALESCE( {self.null()}, - SUM( {e} ) )",
                           f"NULLIF( COUNT( * ), {self.random.randint(1, 4)} )", f"AVG( {e} )")

    def aggregates(self, count):
        yield from self.tabs()
        for _ in range(count):
            table, columns = self.of("cor0" if self.random.random() < 0.6 else None)
            alias = " AS cor0" if columns[0].startswith("cor0") else ""
            join = f" {self.choice('CROSS JOIN', ',')} {self.choice('tab0', 'tab1', 'tab2')} AS cor1" if alias and self.random.random() < 0.3 else ""
            where = f" WHERE {self.condition(columns, 1)}" if self.random.random() < 0.5 else ""
            yield f"SELECT {self.choice('', 'ALL ', 'DISTINCT ')}{self.aggregate(columns)}{self.choice('', ' AS col1', ' col2')} FROM {table}{alias}{join}{where}".replace("COUNT (", "COUNT(" if self.is_mysql else "COUNT (")

    def groupby(self, count):
        yield from self.tabs()
        for _ in range(count):
            table, _ = self.of()
            columns = [f"cor0.col{n}" for n in range(3)]
            keys = self.random.sample(columns, self.random.randint(1, 3))
            having = f" HAVING {self.choice('NOT ', '')}{self.condition(keys, 2)}" if self.random.random() < 0.4 else ""
            item = self.number(keys, 1) if self.random.random() < 0.6 else self.aggregate(columns)
            where = f" WHERE {self.condition(columns, 2)}" if self.random.random() < 0.3 else ""
            yield f"SELECT {self.choice('', 'ALL ', 'DISTINCT ')}{item} AS col1 FROM {table} AS cor0{where} GROUP BY {', '.join(keys)}{having}".replace("COUNT (", "COUNT(")

    def select(self, count):
        yield from self.tabs()
        for _ in range(count):
            table, columns = self.of("cor0" if self.random.random() < 0.5 else None)
            alias = self.choice(" AS cor0", " cor0") if columns[0].startswith("cor0") else ""
            if not alias:
                columns = [f"{table}.{one}" if "." not in one and self.random.random() < 0.3 else one.replace("tab0", table).replace("tab1", table).replace("tab2", table) for one in columns]
            join = "".join(f" {self.choice('CROSS JOIN ', ', ')}{self.choice('tab0', 'tab1', 'tab2')} AS cor{n}" for n in range(1, self.random.randint(1, 3))) if alias else ""
            if alias and self.random.random() < 0.2:
                join = f" {self.choice('', 'INNER ', 'LEFT ', 'LEFT OUTER ', 'RIGHT ')}JOIN tab1 AS cor1 ON {self.condition(['cor0.col0', 'cor1.col1'], 2)}"
            items = ", ".join(self.number(columns, 1) + self.choice("", f" AS c{n}", f" c{n}") for n in range(self.random.randint(1, 3)))
            if self.random.random() < 0.1:
                items = "*"
            yield f"SELECT {self.choice('', 'ALL ', 'DISTINCT ')}{items} FROM {table}{alias}{join}" + (f" WHERE {self.condition(columns, 1)}" if self.random.random() < 0.6 else "")

    # index/*: the same questions over tables with and without indexes, views, deletes.

    def index(self, count):
        kinds = "col0 INTEGER, col1 FLOAT, col2 VARCHAR(40), col3 INTEGER, col4 FLOAT, col5 VARCHAR(40)"
        rows = [(pk, self.random.randint(0, 999), round(self.random.uniform(0, 999), 2), "".join(self.random.choices("abcdefghij", k=5)), self.random.randint(0, 999),
                 round(self.random.uniform(0, 999), 2), "".join(self.random.choices("abcdefghij", k=5))) for pk in range(30)]
        for table in range(5):
            yield f"DROP TABLE IF EXISTS i{table} CASCADE"
            yield f"CREATE TABLE i{table}(pk INTEGER PRIMARY KEY, {kinds})"
            unique = self.choice("", "UNIQUE ") if table > 1 else ""
            if table:
                columns = self.random.sample(["col0", "col1", "col3", "col4"], self.random.randint(1, 4))
                order = [f"{one}{self.choice('', ' ASC', ' DESC')}" for one in columns]
                unique = unique if "pk" in columns else ""
                yield f"CREATE {unique}INDEX idx_i{table}_0 ON i{table} ({', '.join(order)})"
            for row in rows:
                yield f"INSERT INTO i{table} VALUES({','.join(repr(value) for value in row)})"
        for view in range(3):
            yield f"DROP VIEW IF EXISTS view_{view}"
            yield f"CREATE VIEW view_{view} AS SELECT pk, {self.choice('col0', 'col3')} FROM i{view} WHERE {self.indexed(2)}"
        for number in range(count):
            table = f"i{number % 5}"
            draw = self.random.random()
            if draw < 0.6:
                yield f"SELECT pk FROM {table} WHERE {self.indexed()}"
            elif draw < 0.7:
                yield f"SELECT pk FROM {table} WHERE {self.indexed()} ORDER BY {self.choice('1 DESC', '1', 'pk')}"
            elif draw < 0.75:
                yield f"SELECT pk, col0 FROM {table} WHERE {self.indexed()} ORDER BY {self.choice('2,1 DESC', '2,1', '1 DESC')}"
            elif draw < 0.8:
                yield f"SELECT * FROM view_{number % 3}"
            elif draw < 0.85:
                yield f"SELECT pk, col2, col5, col4 FROM {table} WHERE {self.indexed()}"
            elif draw < 0.92:
                yield f"DELETE FROM {table} WHERE pk = {self.random.randint(0, 40)} AND {self.indexed(1)}"
            else:
                yield f"UPDATE {table} SET col{self.choice(0, 3)} = {self.choice(f'{self.random.randint(0, 999)}', 'col0 + 1', 'col3')} WHERE {self.indexed(1)}"

    def indexed(self, depth=0):
        whole, real = self.choice("col0", "col3"), self.choice("col1", "col4")
        n = lambda: str(self.random.randint(0, 999))
        f = lambda: f"{self.random.uniform(0, 999):.2f}"
        c = lambda: self.indexed(depth + 1)
        leaf = self.choice(
            lambda: f"{whole} {self.choice('<', '>', '<=', '>=', '=')} {n()}", lambda: f"{real} {self.choice('<', '>', '<=', '>=', '=')} {f()}",
            lambda: f"{whole} BETWEEN {n()} AND {n()}", lambda: f"({real} BETWEEN {f()} AND {f()})", lambda: f"({whole} IN ({','.join(n() for _ in range(self.random.randint(1, 6)))}))",
            lambda: f"{whole} IS NULL", lambda: f"{real} IS NULL", lambda: f"{whole} IN (SELECT {whole} FROM i{self.choice(0, 1, 2)} WHERE {self.indexed(3)})",
            lambda: f"{real} IN (SELECT {self.choice('col1', 'col4')} FROM i0 WHERE {self.indexed(3)})")
        if depth > 2:
            return f"{whole} {self.choice('<', '>', '<=', '>=', '=')} {n()}"
        if self.random.random() < 0.5:
            return leaf()
        return self.choice(lambda: f"({c()})", lambda: f"{c()} AND {c()}", lambda: f"{c()} OR {c()}", lambda: f"(({c()}) OR {c()})", lambda: f"({c()} AND ({c()}))")()

    # evidence/*: statements of SQLite's documentation; what a dialect does not know, it has to refuse.

    def evidence(self, count):
        my = self.is_mysql
        yield from ["DROP TABLE IF EXISTS t1", "CREATE TABLE t1( x INTEGER, y VARCHAR(8) )", "INSERT INTO t1 VALUES(1,'true')", "INSERT INTO t1 VALUES(0,'false')", "INSERT INTO t1 VALUES(NULL,'NULL')"]
        # in1, in2
        for text in ["1 IN ()", "1 NOT IN ()", "null IN ()", "1 IN (2)", "1 IN (2,3,4,5,6,7,8,9)", "1 IN (1)", "1 NOT IN (2,3,4,5,6,7,8,9)", "null IN (1)", "null NOT IN (1,2)",
                     "1 IN (SELECT x FROM t1)", "1 NOT IN (SELECT x FROM t1 WHERE x IS NOT NULL)", "2 IN (SELECT x FROM t1)", "2 NOT IN (SELECT x FROM t1)", "null IN (SELECT x FROM t1 WHERE x > 5)",
                     "null NOT IN (SELECT x FROM t1 WHERE x > 5)", "1 IN t1", "1 NOT IN t1", "'a' IN ('a', 'b')", "'x' NOT IN ('a', NULL)", "1.0 IN (1, 2)", "1 IN (1, NULL)", "3 IN (1, NULL)", "1 IN (NULL)"]:
            yield f"SELECT {text}"
            yield f"SELECT 1 FROM t1 WHERE {text}"
        yield from ["DROP TABLE IF EXISTS t4n", "CREATE TABLE t4(a INTEGER UNIQUE)", "CREATE TABLE t5(a INTEGER PRIMARY KEY)", "CREATE TABLE t6(a INTEGER)", "INSERT INTO t6 VALUES(NULL)",
                    "CREATE TABLE t7( a VARCHAR(9) UNIQUE )", "CREATE TABLE t7n( a VARCHAR(9) UNIQUE )", "INSERT INTO t7n VALUES('b')", "INSERT INTO t7n VALUES(NULL)", "CREATE TABLE t8(c VARCHAR(9))", "INSERT INTO t8 VALUES('b')",
                    "SELECT null IN (SELECT a FROM t6)", "SELECT 'b' IN (SELECT a FROM t7n)", "SELECT 'c' IN (SELECT a FROM t7n)", "SELECT 'c' NOT IN (SELECT a FROM t7n)", "SELECT 'b' NOT IN (SELECT c FROM t8)",
                    "DROP TABLE t4", "DROP TABLE t5", "DROP TABLE t6", "DROP TABLE t7", "DROP TABLE t7n", "DROP TABLE t8"]
        # slt_lang_*
        yield from [
            "CREATE INDEX t1i1 ON t1(x)", "CREATE INDEX t1i1 ON t1(x)", "CREATE UNIQUE INDEX t1u ON t1(x)", "CREATE INDEX t1i2 ON t1(x DESC, y ASC)", "CREATE INDEX tmissing ON nothere(x)",
            "DROP INDEX t1i2" + (" ON t1" if my else ""), "DROP INDEX t1i2" + (" ON t1" if my else ""), "REINDEX", "REINDEX t1i1", "REINDEX TABLE t1", "REINDEX tXiX",
            "DROP TABLE missing", "DROP TABLE IF EXISTS missing", "CREATE TABLE t1( x INTEGER )", "CREATE TABLE IF NOT EXISTS t1(x INTEGER)",
            "CREATE VIEW view1 AS SELECT x FROM t1 WHERE x>0", "CREATE VIEW view1 AS SELECT x FROM t1 WHERE x>0", "SELECT x FROM view1", "CREATE VIEW IF NOT EXISTS view1 AS SELECT 1",
            "CREATE TEMP VIEW view2 AS SELECT x FROM t1 WHERE x>0", "CREATE TEMPORARY VIEW view3 AS SELECT x FROM t1 WHERE x>0", "DROP VIEW IF EXISTS view2", "DROP VIEW IF EXISTS view3",
            "DROP VIEW view1", "CREATE TABLE t1v( x INTEGER )", "INSERT INTO t1v VALUES(1)", "CREATE VIEW view1 AS SELECT x FROM t1v WHERE x>0",
            "DELETE FROM view1", "DELETE FROM view1 WHERE x>0", "INSERT INTO view1 VALUES(2)", "UPDATE view1 SET x=2", "DROP VIEW view1", "DROP TABLE t1v", "DROP VIEW view1", "DROP VIEW IF EXISTS view1", "DROP VIEW t1", "DROP TABLE view1",
            "REPLACE INTO t1 VALUES(2,'two')", "INSERT OR REPLACE INTO t1 VALUES(3,'x')", "SELECT x, y FROM t1 WHERE x=2",
            "UPDATE t1 SET x=1 WHERE x>0", "UPDATE t1 SET x=2", "UPDATE t1 SET x=3, x=4", "UPDATE t1 SET z='foo'", "UPDATE t1 SET z='foo' WHERE x=5", "UPDATE t1 SET x=3 WHERE x=2", "SELECT count(*) FROM t1 WHERE x=3",
            "UPDATE t1 SET x=1, x=x+1", "INSERT INTO t1 (x) VALUES (9, 9)", "INSERT INTO t1 (nope) VALUES (9)", "DELETE FROM t1 WHERE x = 9", "DELETE FROM missing",
            "SELECT count(*) FROM t1", "SELECT count(x) FROM t1", "SELECT count(DISTINCT x) FROM t1", "SELECT avg(x), sum(x), min(x), max(x) FROM t1", "SELECT avg(DISTINCT x) FROM t1", "SELECT sum(x) FROM t1 WHERE x > 100",
            "SELECT total(x) FROM t1", "SELECT group_concat(x ORDER BY x) FROM t1", "SELECT group_concat(y, ':') FROM t1", "SELECT sum(y) FROM t1", "SELECT avg(y) FROM t1", "SELECT min(y), max(y) FROM t1",
            "SELECT x FROM t1 GROUP BY x HAVING count(*) > 1", "SELECT nope FROM t1", "SELECT * FROM nope", "SELECT x x FROM t1 ORDER BY y", "SELECT 1 WHERE 1 = 0", "SELECT count(*) FROM t1 WHERE NULL",
            "CREATE TRIGGER t1r1 UPDATE ON t1 BEGIN SELECT 1; END", "CREATE TRIGGER t1r1 DELETE ON t1 BEGIN SELECT 1; END", "DROP TRIGGER t1r1", "DROP TRIGGER IF EXISTS t1r1", "DROP TRIGGER tX",
            "SELECT 5 / 2, -5 / 2, 5 % 3, -5 % 3, 5.0 / 2", "SELECT 9223372036854775807", "SELECT -9223372036854775808", "SELECT 9223372036854775807 + 1", "SELECT 2147483647 + 1", "SELECT -2147483648 - 1",
            "SELECT 100000 * 100000", "SELECT 1 / 0", "SELECT 1.0 / 0", "SELECT 1 % 0", "SELECT 'a' || 'b'", "SELECT 1 = 1", "SELECT NOT 1", "SELECT 1 AND 0", "SELECT NULL OR TRUE", "SELECT TRUE AND NULL", "SELECT 1 + NULL",
            "SELECT 'abc' LIKE 'A%'", "SELECT 1 LIMIT 0", "SELECT 1 UNION SELECT 2 ORDER BY 1 DESC LIMIT 1", "SELECT CAST('12' AS DECIMAL(5,2))", "SELECT CAST(1.5 AS CHAR(3))", "SELECT CAST(2.5 AS INTEGER)",
            "SELECT 1e300 * 1e300", "SELECT 0.1 + 0.2", "SELECT .5", "SELECT 1.", "SELECT 1e2", "SELECT 3 BETWEEN 1 AND 2 OR 1", "SELECT CASE WHEN NULL THEN 1 END", "SELECT COALESCE(NULL, NULL)", "SELECT NULLIF(1, 1)", "SELECT - - 1", "SELECT +-+1",
            "DROP TABLE t1",
        ]
