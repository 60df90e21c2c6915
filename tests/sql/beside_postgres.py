#!/usr/bin/env python3
"""Puts statements to a server and to the real PostgreSQL, and prints where they answer otherwise.

    beside_postgres.py --server postgres://postgres@127.0.0.1:5432/x --rival postgres://postgres@127.0.0.1:5433/postgres --count 2000
    beside_postgres.py --server ... --rival ... --file statements.sql

A file has one statement a line; `#` begins a comment. Random statements are made of a seed: functions and operators of all types over literals and two tables.
`--families` makes those in the manner of SQLite's sqllogictest files, `--shapes` changes of tables and transactions.
Errors are compared by their SQLSTATE. The exit status is 1 if an answer differs for no reason that `explained_postgres.txt` has.
"""

import argparse
import os
import random
import re
import sys

import psycopg

from beside import Comparison, Double, explained
from families import Families
from shapes import Shapes

SETUP = [
    "SET TIME ZONE 'UTC'", "DROP TABLE IF EXISTS r1", "DROP TABLE IF EXISTS r2",
    "CREATE TABLE r1 (id int PRIMARY KEY, a int, b bigint, n numeric(10, 2), f float8, g real, t text, d date, ts timestamp, x boolean, j jsonb, l int[], "
    "tm time, tz timestamptz, iv interval)",
    "CREATE TABLE r2 (id int PRIMARY KEY, a int, t text)",
]
WORDS = ["a", "b", "ab", "", "Hello World", "x,y,z", "äöü", "12", "zz", "The quick brown fox"]
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/St_Johns", "+03", "-04:30", "EST5EDT", "Etc/GMT-7"]
SPANS = ["1 day", "2 hours", "1 month 3 days", "90 minutes", "1 year", "-1 day 02:03:04.5", "1 year 2 mons -3 days", "1.5 hours", "-00:00:00.25", "35 days 30:00", "1-2", "P1DT2H", "0"]
PARTS = ["year", "month", "day", "hour", "minute", "second", "milliseconds", "microseconds", "epoch", "dow", "isodow", "doy", "week", "isoyear", "quarter", "decade", "century", "millennium", "julian"]
DOCUMENTS = ['{"a": 1, "b": [1, 2, {"c": "x"}]}', "[1, 2, 3]", '"text"', "12.50", "null", "true", '{"k": {"deep": [true, null]}, "a": "b"}', "[]"]
PART = re.compile("\0(\\w+)\0")


class Generator:
    """Makes statements of a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def choice(self, *items):
        return self.random.choice(items)

    def rows(self):
        """Statements that fill the tables."""
        for number in range(25):
            values = [str(number)] + [self.literal(kind) for kind in ("int", "bigint", "numeric", "float", "real", "text", "date", "timestamp", "bool", "json", "array", "time", "timestamptz", "interval")]
            yield f"INSERT INTO r1 VALUES ({', '.join(values)})"
        for number in range(12):
            yield f"INSERT INTO r2 VALUES ({number * 2}, {self.literal('int')}, {self.literal('text')})"

    def literal(self, kind):
        draw = self.random
        if draw.random() < 0.06:
            return "NULL"
        if kind == "int":
            return str(draw.randint(-5, 20))
        if kind == "bigint":
            return str(draw.choice([0, 7, -3, 10_000_000_000, draw.randint(-1000, 1000)])) + "::bigint"
        if kind == "numeric":
            return f"{draw.choice(['0', '1.5', '-2.25', '100.00', '3', '0.1'])}::numeric"
        if kind == "float":
            return f"{draw.choice(['0', '1.5', '-2.25', '1e10', '0.1'])}::float8"
        if kind == "real":
            return f"{draw.choice(['0', '1.5', '-2.25', '75.24', '1e10', '0.1', '1234567', '1e-7'])}::real"
        if kind == "text":
            return "'%s'::text" % draw.choice(WORDS)
        if kind == "bool":
            return draw.choice(["true", "false"])
        if kind == "date":
            return f"date '20{draw.randint(10, 29)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}'"
        if kind == "timestamp":
            return f"timestamp '2024-{draw.randint(1, 12):02}-{draw.randint(1, 28):02} {draw.randint(0, 23):02}:{draw.randint(0, 59):02}:07'"
        if kind == "interval":
            return f"interval '{draw.choice(SPANS)}'"
        if kind == "time":
            return f"time '{draw.randint(0, 23):02}:{draw.randint(0, 59):02}:{draw.randint(0, 59):02}{draw.choice(['', '', '.5', '.123456'])}'"
        if kind == "timestamptz":
            return f"timestamptz '2024-{draw.randint(1, 12):02}-{draw.randint(1, 28):02} {draw.randint(0, 23):02}:{draw.randint(0, 59):02}:07{draw.choice(['', '.25'])}{draw.choice(['', '', '+02', '-05:30', 'Z', ' Europe/Berlin'])}'"
        if kind == "json":
            return f"'{draw.choice(DOCUMENTS)}'::jsonb"
        items = ", ".join(self.choice("NULL", *map(str, range(6))) for _ in range(draw.randint(1, 4)))
        return f"array[{items}]::int[]"

    COLUMNS = {"int": ["id", "a"], "bigint": ["b"], "numeric": ["n"], "float": ["f", "g"], "real": ["g"], "text": ["t"], "date": ["d"], "timestamp": ["ts"], "bool": ["x"],
               "json": ["j"], "array": ["l"], "time": ["tm"], "timestamptz": ["tz"], "interval": ["iv"]}

    def expr(self, kind, depth=0):
        draw = self.random.random()
        if depth > 2 or draw < 0.3:
            columns = self.COLUMNS.get(kind)
            return f"r1.{self.random.choice(columns)}" if columns and self.random.random() < 0.6 else self.literal(kind)
        # Only the form that is taken gets its parts: all forms are written out here.
        e = "\0{}\0".format
        number = self.choice("int", "bigint", "numeric")
        zone, part, clock = self.random.choice(ZONES), self.random.choice(PARTS), self.choice("timestamp", "timestamptz", "time", "interval")
        day = self.choice("'2024-03-05', 'YYYY-MM-DD'", "'05 Mar 2024', 'DD Mon YYYY'", "'20240305', 'YYYYMMDD'")
        there = self.choice("", f", '{zone}'")
        moment, truncated = self.choice("timestamp", "timestamptz", "date"), self.choice("microseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year", "decade")
        pattern = self.choice("YYYY-MM-DD HH24:MI:SS.US", "HH12:MI AM", "IYYY-IW-ID", "Day DD Month", "FMMonth FMDD", "Q J DDD WW", "MS US SSSSS", "HH24:MI TZH", "Dy, DD Mon YY", "YYYY,Y,CC")
        forms = {
            "int": lambda: self.choice(
                f"({e('int')} {self.choice('+', '-', '*')} {e('int')})", f"length({e('text')})", f"abs({e('int')})", f"position({e('text')} in {e('text')})",
                f"coalesce({e('int')}, {e('int')})", f"array_length({e('array')}, 1)", f"cardinality({e('array')})", f"({e('array')})[{self.choice(1, 2, 3)}]",
                f"case when {e('bool')} then {e('int')} else {e('int')} end", f"array_position({e('array')}, {e('int')})", f"ascii({e('text')})",
                f"greatest({e('int')}, {e('int')})", f"nullif({e('int')}, {e('int')})", f"extract(year from {e('date')})::int", f"({e('date')} - {e('date')})",
                f"(select max(r2.a) from r2 where r2.id < {e('int')})", f"strpos({e('text')}, {e('text')})"),
            "bigint": lambda: self.choice(f"({e('bigint')} {self.choice('+', '-')} {e('int')})", f"({e('int')})::bigint", f"coalesce({e('bigint')}, {e('int')})"),
            "numeric": lambda: self.choice(
                f"({e('numeric')} {self.choice('+', '-', '*')} {e(number)})", f"round({e('numeric')}, {self.choice(0, 1, 2)})", f"abs({e('numeric')})",
                f"trunc({e('numeric')})", f"({e(number)})::numeric", f"ceil({e('numeric')})", f"floor({e('numeric')})", f"sign({e('numeric')})",
                f"({e('numeric')} / nullif({e('int')}, 0))", f"mod({e('numeric')}, 3)",
                f"extract({part if clock != 'time' or self.random.random() < 0.05 else self.choice(*PARTS[3:9])} from {e(clock)})", f"extract({part} from {e(moment)})", f"extract({self.choice('timezone', 'timezone_hour', 'timezone_minute')} from {e('timestamptz')})"),
            "float": lambda: self.choice(f"({e('float')} {self.choice('+', '-')} {e('float')})", f"({e('int')})::float8", f"abs({e('float')})", f"round({e('float')})", f"({e('real')} {self.choice('+', '-', '*')} {e('float')})", f"({e('real')})::float8",
                                         f"date_part('{part if clock != 'time' or self.random.random() < 0.05 else self.choice(*PARTS[3:9])}', {e(clock)})", f"date_part('{part}', {e(moment)})"),
            "real": lambda: self.choice(f"({e('real')} {self.choice('+', '-', '*')} {e('real')})", f"abs({e('real')})", f"(-{e('real')})", f"coalesce({e('real')}, {e('int')})", f"({e(number)})::real", f"greatest({e('real')}, {e('real')})"),
            "text": lambda: self.choice(
                f"({e('text')} || {e('text')})", f"upper({e('text')})", f"lower({e('text')})", f"substr({e('text')}, {self.choice(1, 2, 3)}, 2)",
                f"replace({e('text')}, 'a', 'bb')", f"left({e('text')}, {self.choice(2, -1)})", f"right({e('text')}, 2)", f"lpad({e('text')}, 5, '*')",
                f"trim({e('text')})", f"reverse({e('text')})", f"split_part({e('text')}, ',', 2)", f"({e('int')})::text", f"({e('numeric')})::text", f"({e('real')})::text", f"concat({e('real')}, {e('text')})",
                f"({e('date')})::text", f"({e('timestamp')})::text", f"({e('bool')})::text", f"({e('array')})::text", f"({e('json')})::text", f"initcap({e('text')})",
                f"array_to_string({e('array')}, '-')", f"array_to_string({e('array')}, '-', 'n')", f"({e('json')} ->> 'a')", f"concat({e('text')}, {e('int')}, {e('bool')})",
                f"concat_ws(',', {e('text')}, {e('int')})", f"regexp_replace({e('text')}, '[aeiou]', 'X', 'g')", f"translate({e('text')}, 'abc', 'xy')", f"md5({e('text')})",
                f"format('%s-%L-%I', {e('int')}, {e('text')}, 'a b')", f"to_char({e('timestamp')}, 'YYYY-MM-DD HH24:MI:SS')", f"jsonb_typeof({e('json')})",
                f"overlay({e('text')} placing 'ZZ' from 2 for 1)", f"repeat({e('text')}, 2)", f"quote_literal({e('text')})", f"to_char({e('int')}, '999')", f"chr(65)",
                f"encode({e('text')}::bytea, 'hex')", f"to_char({e('numeric')}, 'FM990.00')", f"({e('interval')})::text", f"({e('time')})::text", f"({e('timestamptz')})::text", f"to_char({e(clock)}, '{pattern if clock != 'interval' else self.choice('HH24:MI:SS', 'DD MM YYYY', 'SSSS US')}')",
                f"concat({e(clock)}, {e(clock)})", f"to_char({e('timestamptz')}, '{self.choice('TZ', 'OF', 'TZH:TZM', 'YYYY-MM-DD HH24:MI:SSOF')}')", f"btrim({e('text')}, 'ab')"),
            "bool": lambda: self.choice(
                f"({e('int')} {self.choice('=', '<', '>', '<>', '<=')} {e('int')})", f"({e('text')} {self.choice('=', '<', 'like', '||')} {e('text')})"
                if self.random.random() < 0 else f"({e('text')} {self.choice('=', '<', 'like')} {e('text')})", f"({e('bool')} {self.choice('and', 'or')} {e('bool')})",
                f"(not {e('bool')})", f"({e('int')} is {self.choice('', 'not ')}null)", f"({e('int')} = any({e('array')}))", f"({e('int')} <> all({e('array')}))",
                f"({e('array')} {self.choice('@>', '<@', '&&', '=', '<')} {e('array')})", f"({e('json')} {self.choice('@>', '<@', '=')} {e('json')})",
                f"({e('json')} ? 'a')", f"({e('int')} between {e('int')} and {e('int')})", f"({e('int')} in (1, 2, {e('int')}))", f"({e('real')} {self.choice('=', '<', '>=')} {e(self.choice('real', 'float', 'numeric', 'int'))})", f"(r1.g {self.choice('= 75.24', 'in (75.24, 0.1)', '= 0.5', '< 1.5')})", f"({e('date')} < {e('date')})",
                f"({e('int')} is distinct from {e('int')})", f"(({e('int')}, {e('text')}) < ({e('int')}, {e('text')}))", f"({e('text')} ~ '^[a-c]')",
                f"exists (select 1 from r2 where r2.a = {e('int')})", f"starts_with({e('text')}, 'a')", f"({e('timestamp')} > {e('timestamp')})",
                f"({e('time')} {self.choice('=', '<', '>=', '<>')} {e('time')})", f"({e('timestamptz')} {self.choice('=', '<', '>=')} {e(self.choice('timestamptz', 'timestamp', 'date'))})",
                f"({e('interval')} {self.choice('=', '<', '>=', '<>')} {e('interval')})", f"({e('time')} between {e('time')} and {e('time')})", f"isfinite({e(moment)})",
                f"(({e('timestamp')}, {e('timestamp')}) overlaps ({e('timestamp')}, {e('timestamp')}))", f"(({e('time')}, {e('interval')}) overlaps ({e('time')}, {e('time')}))",
                f"({e('timestamptz')} is distinct from {e('timestamptz')})", f"({e('time')} in ('10:00', {e('time')}))", f"({e('timestamptz')} > '2024-06-01 12:00')", f"({e('time')} < '12:30')"),
            "date": lambda: self.choice(f"({e('date')} + {self.choice(1, 30)})", f"({e('timestamp')})::date", f"({e('date')} - {e('int')})", f"({e('timestamptz')})::date", f"make_date(2024, {self.choice(2, 12)}, {self.choice(1, 28, 29)})",
                                        f"to_date({day})"),
            "timestamp": lambda: self.choice(
                f"({e('timestamptz')})::timestamp", f"({e('timestamptz')} at time zone '{zone}')", f"({e('date')} + {e('time')})", f"date_trunc('{truncated}', {e('timestamp')})",
                f"date_bin('{self.choice('15 minutes', '1 day', '7 hours')}', {e('timestamp')}, timestamp '2001-01-01 00:05')", f"make_timestamp(2024, {self.choice(1, 12)}, 15, {self.choice(0, 23)}, 30, 5.25)",
                f"({e('timestamp')})::timestamp({self.choice(0, 1, 3)})", f"greatest({e('timestamp')}, {e('date')})", f"coalesce({e('timestamp')}, {e('timestamp')})", f"timezone('{zone}', {e('timestamptz')})",
                f"({e('timestamp')} {self.choice('+', '-')} {e('interval')})", f"date_trunc('{self.choice('month', 'hour', 'day', 'week')}', {e('timestamp')})",
                f"({e('date')})::timestamp", f"({e('date')} + {e('interval')})"),
            "interval": lambda: self.choice(f"({e('timestamp')} - {e('timestamp')})", f"({e('interval')} + {e('interval')})", f"({e('interval')} * 2)", f"age({e('timestamp')}, {e('timestamp')})",
                                            f"({e('time')} - {e('time')})", f"({e('timestamptz')} - {e(self.choice('timestamptz', 'timestamp'))})", f"justify_{self.choice('hours', 'days', 'interval')}({e('interval')})", f"({e('time')})::interval",
                                            f"make_interval({self.choice('years', 'months', 'weeks', 'days', 'hours', 'mins')} => {e('int')})", f"make_interval(secs => {e('numeric')})", f"date_trunc('{truncated}', {e('interval')})", f"(-{e('interval')})",
                                            f"({e('interval')} - {e('interval')})", f"({e('interval')} / {self.choice('2', '3', '-1.5', '7')})", f"({e('interval')} * {e(self.choice('int', 'float'))})", f"age({e('timestamptz')}, {e('timestamptz')})", f"greatest({e('interval')}, {e('interval')})",
                                            f"({e('timestamptz')} - {e('date')})", f"({e('interval')})::interval({self.choice(0, 2)})"),
            "time": lambda: self.choice(
                f"({e('time')} {self.choice('+', '-')} {e('interval')})", f"({e('interval')} + {e('time')})", f"({e('timestamp')})::time", f"({e('timestamptz')})::time", f"({e('interval')})::time", f"make_time({self.choice(0, 8, 23)}, {self.choice(0, 59)}, {self.choice(0, '7.5')})",
                f"coalesce({e('time')}, {e('time')})", f"{self.choice('greatest', 'least')}({e('time')}, {e('time')})", f"({e('time')})::time({self.choice(0, 2)})", f"case when {e('bool')} then {e('time')} else {e('time')} end", f"nullif({e('time')}, {e('time')})",
                f"(({e('time')})::text)::time", f"(select max(r1x.tm) from r1 r1x where r1x.id < {e('int')})"),
            "timestamptz": lambda: self.choice(
                f"({e('timestamp')})::timestamptz", f"({e('timestamp')} at time zone '{zone}')", f"date_trunc('{truncated}', {e('timestamptz')})", f"date_trunc('{truncated}', {e('timestamptz')}, '{zone}')", f"({e('timestamptz')} {self.choice('+', '-')} {e('interval')})",
                f"to_timestamp({e('float')})" if self.random.random() < 0.3 else f"to_timestamp({self.choice(1700000000, '1712345678.25', 0)})", f"make_timestamptz(2024, {self.choice(3, 10)}, 27, {self.choice(2, 14)}, 30, 5.5{there})", f"({e('date')})::timestamptz",
                f"coalesce({e('timestamptz')}, {e(self.choice('timestamptz', 'timestamp'))})", f"greatest({e('timestamptz')}, {e('timestamptz')})", f"(({e('timestamptz')})::text)::timestamptz", f"case when {e('bool')} then {e('timestamptz')} else {e('timestamp')} end",
                f"date_bin('{self.choice('15 minutes', '1 day')}', {e('timestamptz')}, timestamptz '2001-01-01 00:05Z')", f"({e('timestamptz')})::timestamptz({self.choice(0, 1)})", f"to_timestamp('2024-0{self.choice(3, 7)}-01 0{self.choice(1, 9)}:30', 'YYYY-MM-DD HH24:MI')"),
            "json": lambda: self.choice(
                f"({e('json')} -> '{self.choice('a', 'b', 'k')}')", f"({e('json')} -> {self.choice(0, 1, -1)})", f"({e('json')} #> '{{b,2}}')",
                f"jsonb_build_object('x', {e('int')}, 'y', {e('text')})", f"jsonb_build_array({e('int')}, {e('bool')})", f"to_jsonb({e('text')})", f"to_jsonb({e('array')})",
                f"({e('json')} || {e('json')})", f"jsonb_set('{{\"a\": {{\"b\": 1}}}}', '{{a,b}}', {e('json')})", f"({e('json')} - 'a')", f"jsonb_strip_nulls({e('json')})",
                f"to_jsonb({e('date')})", f"to_jsonb({e(clock)})", f"jsonb_build_array({e('time')}, {e('timestamptz')})", f"to_jsonb({e('numeric')})", f"jsonb_path_query_array({e('json')}, '$.b[*]')", f"({e('json')} #- '{{a}}')"),
            "array": lambda: self.choice(
                f"({e('array')} || {e('array')})", f"({e('array')} || {e('int')})", f"array_append({e('array')}, {e('int')})", f"array_remove({e('array')}, {e('int')})",
                f"({e('array')})[{self.choice(1, 2)}:{self.choice(2, 3)}]", f"array(select r2.a from r2 where r2.id < {e('int')} order by r2.id)",
                f"array[{e('int')}, {e('int')}]", f"array_prepend({e('int')}, {e('array')})", f"array_replace({e('array')}, 1, 9)"),
        }
        return PART.sub(lambda part: self.expr(part[1], depth + 1), forms[kind]())

    def aggregate(self):
        i = self.expr("int", 2)
        return self.choice(
            "count(*)", f"sum({i})", f"avg({i})", f"min({self.expr('text', 2)})", f"max({self.expr('date', 2)})", f"array_agg({i} order by r1.id)", f"bool_or({self.expr('bool', 2)})",
            f"string_agg({self.expr('text', 2)}, ',' order by r1.id)", f"count(distinct {i})", f"sum({self.expr('numeric', 2)})", f"avg({self.expr('numeric', 2)})",
            f"jsonb_agg({i} order by r1.id)", f"{self.choice('min', 'avg', 'max')}({self.expr('real', 2)})", f"sum({i}) filter (where {self.expr('bool', 2)})", f"array_agg(distinct {i})", f"stddev({i})", f"variance({self.expr('numeric', 2)})",
            f"percentile_cont(0.5) within group (order by {i})", f"percentile_disc(0.4) within group (order by {i})", f"mode() within group (order by {i})", f"bit_and({i})",
            f"jsonb_object_agg(r1.id, {self.expr('text', 2)})", f"json_agg({self.expr('text', 2)} order by r1.id)", f"every({self.expr('bool', 2)})", f"sum({self.expr('interval', 2)})",
            f"avg({self.expr('interval', 2)})", f"{self.choice('min', 'max')}({self.expr(self.choice('time', 'timestamptz', 'interval', 'timestamp'), 2)})", f"array_agg({self.expr('timestamptz', 2)} order by r1.id)", f"array_agg({self.expr('time', 2)} order by r1.id)",
            f"sum({self.expr('time', 2)})", f"count(distinct {self.expr('time', 2)})", f"jsonb_agg({self.expr('timestamptz', 2)} order by r1.id)", f"percentile_cont(0.5) within group (order by {self.expr('interval', 2)})")

    def window(self):
        function = self.choice("row_number()", "rank()", f"lag({self.expr('int', 2)}) ", f"lead({self.expr('text', 2)}, 2, 'none')", f"sum({self.expr('int', 2)})", "count(*)",
                               f"first_value({self.expr('date', 2)})", f"avg({self.expr('numeric', 2)})", "ntile(3)", "cume_dist()", f"array_agg({self.expr('int', 2)})", f"max({self.expr('time', 2)})", f"sum({self.expr('interval', 2)})", f"lag({self.expr('timestamptz', 2)})")
        if self.random.random() < 0.1:
            by = self.choice("tm", "tz", "ts", "d")
            return f"{self.choice('count(*)', 'sum(r1.a)')} over (order by r1.{by} range between interval '{self.choice('1 day', '2 hours', '1 month')}' preceding and interval '{self.choice('3 hours', '10 days')}' following)"
        frame = self.choice("", "", " rows between 2 preceding and current row", " range between 3 preceding and 2 following", " groups between 1 preceding and 1 following exclude current row")
        partition = self.choice("", "partition by r1.x ")
        return f"{function} over ({partition}order by r1.id{frame})"

    def statement(self):
        draw = self.random.random()
        if self.random.random() < 0.02:
            return f"set time zone '{self.random.choice(ZONES)}'"
        kinds = ["int", "bigint", "numeric", "float", "real", "text", "bool", "date", "timestamp", "interval", "json", "array"] + ["time", "timestamptz", "timestamp", "interval"] * 2
        if draw < 0.2:
            group = self.expr(self.choice("int", "bool", "text", "time", "timestamptz", "interval"), 2)
            key = self.choice(f"{group}", f"rollup ({group}, r1.x)", f"cube ({group}, r1.x)", f"grouping sets (({group}), ())")
            return f"select {group}, {self.aggregate()}, {self.aggregate()} from r1 group by {key}"
        if draw < 0.3:
            return f"select {self.aggregate()}, {self.aggregate()} from r1 where {self.expr('bool')}"
        if draw < 0.42:
            return f"select r1.id, {self.window()}, {self.window()} from r1 order by r1.id"
        if draw < 0.5:
            return f"select distinct on (r1.x) r1.x, r1.id, {self.expr('int')} from r1 order by r1.x, r1.id desc"
        if draw < 0.56:
            return f"select r1.id, u.v, u.n from r1, unnest(r1.l) with ordinality as u(v, n) where {self.expr('bool')} order by 1, 3"
        if draw < 0.62:
            return f"select r1.id, q.m from r1, lateral (select {self.expr('int')} as m) q order by 1 fetch first {self.choice(2, 3)} rows with ties"
        columns = ", ".join(self.expr(self.random.choice(kinds)) for _ in range(self.random.randint(1, 3)))
        return f"select r1.id, {columns} from r1 where {self.expr('bool')} order by r1.id"


def ask(connection, statement):
    """The rows as text, or the SQLSTATE of the error."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement)
            if cursor.description is None:
                return [[cursor.statusmessage]]
            kinds = [column.type_code for column in cursor.description]
            pgresult = cursor.pgresult
            rows = []
            for row in range(pgresult.ntuples):
                values = [pgresult.get_value(row, column) for column in range(pgresult.nfields)]
                rows.append([shown(value, kind) for value, kind in zip(values, kinds)])
            return rows
    except psycopg.Error as error:
        return {"error": error.sqlstate, "text": str(error).splitlines()[0] if str(error) else ""}


def shown(value, kind):
    """A value as text; a double with the digits that both sides agree on."""
    if value is None:
        return None
    text = value.decode()
    if kind in (700, 701):
        return Double(text)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, help="the server that is doubted")
    parser.add_argument("--rival", required=True, help="the real PostgreSQL")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--families", action="store_true", help="statements in the manner of sqllogictest's files")
    parser.add_argument("--shapes", action="store_true", help="changes of tables and transactions")
    parser.add_argument("--file", help="statements, one a line, in place of random ones")
    parser.add_argument("--errors", action="store_true", help="counts those that only the server refuses, by its words")
    arguments = parser.parse_args()
    ours, theirs = (psycopg.connect(address, autocommit=True, prepare_threshold=None) for address in (arguments.server, arguments.rival))
    reasons = explained(os.path.join(os.path.dirname(os.path.abspath(__file__)), "explained_postgres.txt"))
    comparison = Comparison(lambda statement: ask(ours, statement), lambda statement: ask(theirs, statement), reasons, arguments.errors)
    generator = Generator(arguments.seed)
    if arguments.shapes:
        statements = Shapes(arguments.seed, "postgresql").all(arguments.count)
    elif arguments.families:
        statements = Families(arguments.seed, "postgresql").all(arguments.count)
    else:
        for statement in SETUP + list(Generator(arguments.seed).rows()):
            comparison.ask(statement)
        if arguments.file:
            with open(arguments.file, encoding="utf-8") as file:
                statements = [line.strip() for line in file if line.strip() and not line.startswith("#")]
        else:
            statements = (generator.statement() for _ in range(arguments.count))
    comparison.ask_all(statements, arguments.shapes)
    sys.exit(comparison.close())


if __name__ == "__main__":
    main()
