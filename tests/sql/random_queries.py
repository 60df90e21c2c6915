#!/usr/bin/env python3
"""Asks a server random queries, and SQLite the same, and prints where they answer otherwise.

    random_queries.py --server target/release/lycosa --seed 7 --count 2000
    random_queries.py --server target/debug/lycosa --engine vinyl
    random_queries.py --server target/debug/lycosa --query "SELECT COUNT(*) FROM t1"

The queries use what both have: joins, subqueries that read the row around them, groups, sets, orders with limits, window functions, three-valued logic.
The exit status is 1 if an answer differs.
"""

import argparse
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile

INTEGERS = {"T1": ["ID", "A", "B"], "T2": ["ID", "A", "C"], "T3": ["X", "Y"]}
TEXTS = {"T1": ["S"], "T2": ["S"], "T3": ["Z"]}
WORDS = ["a", "b", "ab", "abc", "c", "", "zz"]
SCRIPT = """
box.cfg{{work_dir = '{dir}', log = '{dir}/log', wal_mode = '{wal_mode}'}}
local json = require('json')
for line in io.lines('{dir}/statements') do
    local result, reason = box.execute(line)
    print(json.encode(result and (result.rows or {{}}) or {{error = tostring(reason)}}))
end
os.exit(0)
"""


class Generator:
    """Makes statements of a seed."""

    def __init__(self, seed, engine):
        self.random = random.Random(seed)
        self.engine = engine

    def choice(self, *items):
        return self.random.choice(items)

    def literal(self, kind):
        if self.random.random() < 0.05:
            return "NULL"
        return str(self.random.randint(-3, 12)) if kind == "i" else "'%s'" % self.random.choice(WORDS)

    def tables(self):
        """Statements that make three tables with rows."""
        yield "CREATE TABLE t1 (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER, s TEXT)"
        yield "CREATE TABLE t2 (id INTEGER PRIMARY KEY, a INTEGER, c INTEGER, s TEXT)"
        yield "CREATE TABLE t3 (x INTEGER, y INTEGER, z TEXT, PRIMARY KEY (x, y))"
        yield "CREATE INDEX i1 ON t1 (a)"
        yield "CREATE INDEX i2 ON t1 (a, b)"
        yield "CREATE INDEX i3 ON t2 (s)"
        yield "CREATE INDEX i4 ON t2 (a, c)"
        for number in range(30):
            values = ", ".join(self.literal(kind) for kind in "iis")
            yield f"INSERT INTO t1 VALUES ({number}, {values})"
        for number in range(25):
            values = ", ".join(self.literal(kind) for kind in "iis")
            yield f"INSERT INTO t2 VALUES ({number * 2 - 10}, {values})"
        keys = {(self.random.randint(0, 5), self.random.randint(0, 8)) for _ in range(20)}
        for x, y in sorted(keys):
            yield f"INSERT INTO t3 VALUES ({x}, {y}, {self.literal('s')})"

    def column(self, scope, kind):
        alias, table = self.random.choice(scope)
        return f"{alias}.{self.random.choice((INTEGERS if kind == 'i' else TEXTS)[table])}"

    def leaf(self, scope, kind):
        return self.column(scope, kind) if self.random.random() < 0.75 else self.literal(kind)

    def expression(self, scope, kind, depth=0):
        drawn = self.random.random()
        deeper = lambda wanted: self.expression(scope, wanted, depth + 1)
        if drawn < 0.5 or depth > 2:
            return self.leaf(scope, kind)
        if kind == "s":
            if drawn < 0.8:
                return f"({deeper('s')} || {deeper('s')})"
            if drawn < 0.9:
                return f"UPPER({deeper('s')})"
            return f"SUBSTR({deeper('s')}, {self.random.randint(1, 2)}, {self.random.randint(1, 2)})"
        if drawn < 0.75:
            return f"({deeper('i')} {self.choice('+', '-', '*')} {deeper('i')})"
        if drawn < 0.80:
            return f"COALESCE({deeper('i')}, {deeper('i')})"
        if drawn < 0.85:
            return f"ABS({deeper('i')})"
        if drawn < 0.92:
            return f"CASE WHEN {self.condition(scope, depth + 1)} THEN {deeper('i')} ELSE {deeper('i')} END"
        if drawn < 0.96:
            return f"LENGTH({deeper('s')})"
        what = self.choice("COUNT(*)", "MAX(q.A)", "SUM(q.C)")
        return f"(SELECT {what} FROM t2 q WHERE {self.condition(scope + [('q', 'T2')], depth + 1)})"

    def condition(self, scope, depth=0):
        drawn, kind = self.random.random(), self.choice("i", "i", "i", "s")
        negation = self.choice("", "NOT ")
        if drawn < 0.45 or depth > 2:
            sign = self.choice("=", "=", "<", ">", "<=", ">=", "<>")
            return f"{self.expression(scope, kind, depth + 1)} {sign} {self.expression(scope, kind, depth + 1)}"
        if drawn < 0.55:
            return f"({self.condition(scope, depth + 1)} AND {self.condition(scope, depth + 1)})"
        if drawn < 0.63:
            return f"({self.condition(scope, depth + 1)} OR {self.condition(scope, depth + 1)})"
        if drawn < 0.68:
            return f"NOT {self.condition(scope, depth + 1)}"
        if drawn < 0.73:
            return f"{self.expression(scope, kind, depth + 1)} IS {negation}NULL"
        if drawn < 0.80:
            return f"{self.expression(scope, 'i', depth + 1)} {negation}BETWEEN {self.literal('i')} AND {self.literal('i')}"
        if drawn < 0.87:
            items = ", ".join(self.literal(kind) for _ in range(self.random.randint(1, 4)))
            return f"{self.expression(scope, kind, depth + 1)} {negation}IN ({items})"
        if drawn < 0.93:
            inner = self.condition(scope + [("p", "T3")], depth + 1)
            return f"{self.expression(scope, 'i', depth + 1)} {negation}IN (SELECT p.{self.choice('X', 'Y')} FROM t3 p WHERE {inner})"
        return f"{negation}EXISTS (SELECT 1 FROM t1 o WHERE {self.condition(scope + [('o', 'T1')], depth + 1)})"

    def tables_of(self):
        """FROM, and what names it gives."""
        scope, text = [], ""
        for number in range(self.choice(1, 1, 1, 2, 2, 3)):
            table, alias = self.choice("T1", "T2", "T3"), f"r{number}"
            if not scope:
                text = f"{table} {alias}"
            else:
                join = self.choice("JOIN", "JOIN", "LEFT JOIN", ",")
                on = f"{self.column([(alias, table)], 'i')} = {self.column(scope, 'i')}"
                if self.random.random() < 0.3:
                    on = self.condition(scope + [(alias, table)], 1)
                text += f", {table} {alias}" if join == "," else f" {join} {table} {alias} ON {on}"
            scope.append((alias, table))
        return scope, text

    def query(self):
        scope, tables = self.tables_of()
        where = f" WHERE {self.condition(scope)}" if self.random.random() < 0.8 else ""
        drawn = self.random.random()
        if drawn < 0.25:
            groups = [self.column(scope, self.choice("i", "s")) for _ in range(self.random.randint(1, 2))]
            having = f" HAVING COUNT(*) > {self.random.randint(0, 3)}" if self.random.random() < 0.4 else ""
            columns = ", ".join(groups + [self.aggregate(scope), self.aggregate(scope)])
            return f"SELECT {columns} FROM {tables}{where} GROUP BY {', '.join(groups)}{having}"
        if drawn < 0.35:
            return f"SELECT COUNT(*), {self.aggregate(scope)}, {self.aggregate(scope)} FROM {tables}{where}"
        if drawn < 0.5:
            columns = [self.column(scope, "i")] + [self.window(scope) for _ in range(self.random.randint(1, 3))]
            return f"SELECT {', '.join(columns)} FROM {tables}{where}"
        columns = [self.expression(scope, self.choice("i", "i", "s"), 1) for _ in range(self.random.randint(1, 4))]
        distinct = self.choice("", "", "DISTINCT ")
        text = f"SELECT {distinct}{', '.join(columns)} FROM {tables}{where}"
        if not distinct and self.random.random() < 0.5:
            # All rows differ in these, so that there is one order.
            keys = [f"{alias}.{name}{self.choice('', ' DESC')}" for alias, table in scope
                    for name in self.random.sample(INTEGERS[table], len(INTEGERS[table]))]
            text += f" ORDER BY {', '.join(keys)}"
            if self.random.random() < 0.5:
                text += f" LIMIT {self.random.randint(0, 10)}"
                text += f" OFFSET {self.random.randint(0, 5)}" if self.random.random() < 0.5 else ""
        elif self.random.random() < 0.15:
            other = ", ".join(self.literal("i") for _ in columns)
            text += f" {self.choice('UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT')} SELECT {other} FROM t3"
        return text

    def window(self, scope):
        """A window function; its window orders all rows, so that there is one answer."""
        keys = [f"{alias}.{name}{self.choice('', ' DESC')}" for alias, table in scope
                for name in self.random.sample(INTEGERS[table], len(INTEGERS[table]))]
        partition = f"PARTITION BY {self.column(scope, self.choice('i', 's'))} " if self.random.random() < 0.6 else ""
        number, offset = self.expression(scope, "i", 2), self.random.randint(0, 3)
        ranks = f"{self.choice('RANK', 'DENSE_RANK', 'PERCENT_RANK', 'CUME_DIST')}()"
        if self.random.random() < 0.25:
            # Rows that are equal in the order have the same value here.
            return f"{self.choice(ranks, f'SUM({number})', 'COUNT(*)')} OVER ({partition}ORDER BY {keys[0]})"
        function = self.choice(
            "ROW_NUMBER()", ranks, f"NTILE({offset + 1})", f"LAG({number})", f"LEAD({number}, {offset})",
            f"LAG({number}, {offset}, {self.literal('i')})")
        if self.random.random() < 0.6:
            function = self.choice(
                f"FIRST_VALUE({number})", f"LAST_VALUE({number})", f"NTH_VALUE({number}, {offset + 1})",
                f"SUM({number})", f"COUNT({number})", "COUNT(*)", f"MIN({number})",
                f"MAX({self.expression(scope, 's', 2)})", f"SUM({number}) FILTER (WHERE {self.condition(scope, 2)})")
        frame = ""
        if self.random.random() < 0.7:
            units = self.choice("ROWS", "GROUPS", "RANGE")
            bounds = ["UNBOUNDED PRECEDING", f"{offset} PRECEDING", "CURRENT ROW",
                      f"{self.random.randint(0, 3)} FOLLOWING", "UNBOUNDED FOLLOWING"]
            if units == "RANGE":
                bounds = [bounds[0], bounds[2], bounds[4]]
            start = self.random.randint(0, len(bounds) - 2)
            end = self.random.randint(max(start, 1), len(bounds) - 1)
            frame = f" {units} BETWEEN {bounds[start]} AND {bounds[end]}"
            frame += self.choice("", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES", " EXCLUDE NO OTHERS")
        elif self.random.random() < 0.3 and "SUM" in function:
            key = self.column(scope, "i")
            return (f"{function} OVER ({partition}ORDER BY {key}{self.choice('', ' DESC')} RANGE BETWEEN {offset} PRECEDING"
                    f" AND {self.choice('CURRENT ROW', '2 FOLLOWING', 'UNBOUNDED FOLLOWING')})")
        return f"{function} OVER ({partition}ORDER BY {', '.join(keys)}{frame})"

    def aggregate(self, scope):
        number = self.expression(scope, "i", 2)
        text = self.expression(scope, "s", 2)
        column = self.column(scope, "i")
        return self.choice("COUNT(*)", f"SUM({number})", f"MIN({number})", f"MAX({text})", f"COUNT(DISTINCT {column})",
                           f"SUM(DISTINCT {column})")


def ask_server(server, statements, engine):
    """The rows, or the error, of each statement."""
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "statements"), "w", encoding="utf-8") as file:
            file.writelines(statement + "\n" for statement in statements)
        script = os.path.join(directory, "ask.lua")
        wal_mode = "write" if engine == "vinyl" else "none"
        with open(script, "w", encoding="utf-8") as file:
            file.write(SCRIPT.format(dir=directory, wal_mode=wal_mode))
        done = subprocess.run([server, script], capture_output=True, text=True, check=False)
        answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(("[", "{"))]
        if len(answers) != len(statements):
            sys.exit(f"{len(answers)} answers to {len(statements)} statements: {done.stdout[-500:]}{done.stderr[-2000:]}")
        return answers


def ask_sqlite(database, statement):
    """The rows, or the error, of a statement."""
    try:
        return [list(row) for row in database.execute(statement)]
    except sqlite3.Error as error:
        return {"error": str(error)}


def plain(row):
    """A row whose doubles have the digits that both sides show."""
    shown = lambda value: float(f"{value:.10g}") if isinstance(value, float) else value
    return [int(value) if isinstance(value, float) and value == int(value) else value for value in map(shown, row)]


def is_same(statement, ours, wanted):
    """Rows without an order may come in any; both may refuse, each in its words."""
    if isinstance(ours, dict) or isinstance(wanted, dict):
        return isinstance(ours, dict) and isinstance(wanted, dict)
    ours, wanted = [plain(row) for row in ours], [plain(row) for row in wanted]
    if "ORDER BY" in statement and " OVER (" not in statement:
        return ours == wanted
    return sorted(ours, key=json.dumps) == sorted(wanted, key=json.dumps)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, help="the binary that is asked")
    parser.add_argument("--seed", type=int, default=1, help="of which the queries are made (1)")
    parser.add_argument("--count", type=int, default=1000, help="queries (1000)")
    parser.add_argument("--engine", choices=("memtx", "vinyl"), default="memtx", help="of the tables (memtx)")
    parser.add_argument("--query", action="append", help="asks this one in place of random ones")
    arguments = parser.parse_args()
    generator = Generator(arguments.seed, arguments.engine)
    setup = list(generator.tables())
    queries = arguments.query or [generator.query() for _ in range(arguments.count)]
    database = sqlite3.connect(":memory:")
    for statement in setup:
        database.execute(statement)
    suffix = " WITH (engine = 'vinyl')" if arguments.engine == "vinyl" else ""
    ours = ask_server(arguments.server, [
        statement + (suffix if statement.startswith("CREATE TABLE") else "") for statement in setup
    ] + queries, arguments.engine)
    for statement, answer in zip(setup, ours):
        if isinstance(answer, dict) and "error" in answer:
            sys.exit(f"{statement}: {answer['error']}")
    differ = 0
    for query, answer in zip(queries, ours[len(setup):]):
        wanted = ask_sqlite(database, query)
        if not is_same(query, answer, wanted):
            differ += 1
            print(f"{query}\n    server: {str(answer)[:500]}\n    SQLite: {str(wanted)[:500]}")
    print(f"{len(queries) - differ} of {len(queries)} queries are answered as by SQLite {sqlite3.sqlite_version}")
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
