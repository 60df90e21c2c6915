#!/usr/bin/env python3
"""Puts statements to a server and to the real MariaDB, and prints where they answer otherwise.

    beside_mariadb.py --server 127.0.0.1:3306 --rival 127.0.0.1:3307 --count 2000
    beside_mariadb.py --server ... --rival ... --families --count 2000
    beside_mariadb.py --server ... --rival ... --file statements.sql

A file has one statement a line; `#` begins a comment. Random statements are made of a seed: functions and operators of all types over literals and two tables, and changes of these;
`--families` makes those in the manner of SQLite's sqllogictest files. Values are compared as the text that the protocol has, errors by their number.
The exit status is 1 if an answer differs for no reason that `explained_mariadb.txt` has.
"""

import argparse
import os
import random
import re
import sys

import pymysql

from beside import Comparison, Double, explained, number_of
from families import Families
from shapes import Shapes

SETUP = [
    "SET time_zone = '+00:00'", "DROP TABLE IF EXISTS r1", "DROP TABLE IF EXISTS r2", "DROP TABLE IF EXISTS w",
    "CREATE TABLE r1 (id INT PRIMARY KEY, a INT, b BIGINT, u INT UNSIGNED, ti TINYINT, n DECIMAL(10, 2), f DOUBLE, g FLOAT, t VARCHAR(40), c VARCHAR(40) COLLATE utf8mb4_bin, d DATE, ts DATETIME, x BOOLEAN, "
    "tm TIME, tf TIME(3), st TIMESTAMP NULL, dt DATETIME(6))",
    "CREATE TABLE r2 (id INT PRIMARY KEY, a INT, t VARCHAR(40), KEY (a))",
    "CREATE TABLE w (id INT PRIMARY KEY, a INT, s SMALLINT, u TINYINT UNSIGNED NOT NULL DEFAULT 3, t VARCHAR(5), n DECIMAL(5, 2), d DATE, g FLOAT, tm TIME, tf TIME(2), ts DATETIME(1), st TIMESTAMP NULL, UNIQUE KEY wa (a))",
]
WORDS = ["a", "b", "ab", "", "Hello World", "x,y,z", "äöü", "12", "zz", "The quick fox", "B", "3.5abc"]
ZONES = ["+00:00", "+02:00", "-05:30", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]
FORMATS = ["%Y-%m-%d %H:%i:%s", "%H:%i:%s.%f", "%h:%i %p", "%r", "%T", "%D %M %y", "%U %u %V %v %X %x", "%w %a %W", "%c/%e/%Y %k %l", "%j%%x"]
UNITS = ["MICROSECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR", "MINUTE_SECOND", "HOUR_MINUTE", "HOUR_SECOND", "DAY_HOUR", "DAY_MINUTE", "DAY_SECOND", "YEAR_MONTH", "SECOND_MICROSECOND", "DAY_MICROSECOND"]
PART = re.compile("\0(\\w+)\0")


class Generator:
    """Makes statements of a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def choice(self, *items):
        return self.random.choice(items)

    def rows(self):
        kinds = ("int", "bigint", "unsigned", "tiny", "decimal", "double", "float", "text", "text", "date", "datetime", "bool", "time", "time", "datetime", "moment")
        for number in range(25):
            yield f"INSERT INTO r1 VALUES ({', '.join([str(number)] + [self.literal(kind) for kind in kinds])})"
        for number in range(12):
            yield f"INSERT INTO r2 VALUES ({number * 2}, {self.literal('int')}, {self.literal('text')})"

    def literal(self, kind):
        draw = self.random
        if draw.random() < 0.06:
            return "NULL"
        if kind == "int":
            return str(draw.randint(-5, 20))
        if kind == "bigint":
            return str(draw.choice([0, 7, -3, 10_000_000_000, draw.randint(-1000, 1000)]))
        if kind == "unsigned":
            return str(draw.choice([0, 1, 4294967295, draw.randint(0, 100)]))
        if kind == "tiny":
            return str(draw.choice([0, 1, -128, 127, draw.randint(-20, 20)]))
        if kind == "decimal":
            return draw.choice(["0.0", "1.5", "-2.25", "100.00", "3.0", "0.1"])
        if kind == "double":
            return draw.choice(["0e0", "1.5e0", "-2.25e0", "1e10", "1e-1"])
        if kind == "float":
            return draw.choice(["0", "1.5", "-2.25", "75.24", "0.1", "1234567", "1e10", "1e-7"])
        if kind == "text":
            return "'%s'" % draw.choice(WORDS)
        if kind == "bool":
            return draw.choice(["true", "false"])
        if kind == "date":
            return f"date '20{draw.randint(10, 29)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}'"
        if kind == "time":
            return f"TIME '{draw.choice(['', '', '', '-'])}{draw.choice([draw.randint(0, 23), draw.randint(0, 23), draw.randint(24, 200)]):02}:{draw.randint(0, 59):02}:{draw.randint(0, 58):02}{draw.choice(['', '', '.5', '.123456'])}'"
        if kind == "moment":
            return f"TIMESTAMP'2024-{draw.randint(1, 12):02}-{draw.randint(1, 28):02} {draw.randint(0, 23):02}:{draw.randint(0, 59):02}:07.{draw.choice(['5', '123456', '000001'])}'"
        return f"timestamp '2024-{draw.randint(1, 12):02}-{draw.randint(1, 28):02} {draw.randint(0, 23):02}:{draw.randint(0, 59):02}:07'"

    COLUMNS = {"int": ["id", "a", "ti", "u"], "bigint": ["b"], "decimal": ["n"], "double": ["f", "g"], "text": ["t", "c"], "date": ["d"], "datetime": ["ts", "st"], "moment": ["dt"], "time": ["tm", "tf"], "bool": ["x"]}

    def expr(self, kind, depth=0):
        draw = self.random.random()
        if depth > 2 or draw < 0.3:
            columns = self.COLUMNS.get(kind)
            return f"r1.{self.random.choice(columns)}" if columns and self.random.random() < 0.6 else self.literal(kind)
        # Only the form that is taken gets its parts: all forms are written out here.
        e = "\0{}\0".format
        number = self.choice("int", "bigint", "decimal")
        unit = self.choice("DAY", "MONTH", "HOUR", "YEAR", "MINUTE", "WEEK")
        pattern, zone, other, wide, any_clock = self.random.choice(FORMATS), self.random.choice(ZONES), self.random.choice(ZONES), self.random.choice(UNITS), self.choice("time", "datetime", "moment", "date")
        amount = self.random.choice(["1", "-3", "'1:2'", "'1 2:3'", "'5'", "90"]) if "_" in wide else self.random.choice(["1", "-3", "90"])
        forms = {
            "int": lambda: self.choice(
                f"({e('int')} {self.choice('+', '-', '*', '%', 'DIV')} {e('int')})", f"CHAR_LENGTH({e('text')})", f"ABS({e('int')})", f"LOCATE({e('text')}, {e('text')})", f"LENGTH({e('text')})",
                f"COALESCE({e('int')}, {e('int')})", f"CASE WHEN {e('bool')} THEN {e('int')} ELSE {e('int')} END", f"ASCII({e('text')})", f"GREATEST({e('int')}, {e('int')})",
                f"NULLIF({e('int')}, {e('int')})", f"YEAR({e('date')})", f"DATEDIFF({e('date')}, {e('date')})", f"(SELECT MAX(r2.a) FROM r2 WHERE r2.id < {e('int')})", f"IF({e('bool')}, {e('int')}, {e('int')})",
                f"IFNULL({e('int')}, {e('int')})", f"SIGN({e('int')})", f"FIELD({e('text')}, {e('text')}, {e('text')})", f"FIND_IN_SET({e('text')}, 'a,b,ab')", f"MONTH({e('date')})", f"DAYOFWEEK({e('date')})",
                f"WEEKDAY({e('date')})", f"QUARTER({e('date')})", f"DAYOFYEAR({e('date')})", f"WEEK({e('date')})", f"HOUR({e('datetime')})", f"TIMESTAMPDIFF({unit}, {e('datetime')}, {e('datetime')})",
                f"CAST({e('text')} AS SIGNED)", f"CAST({e(number)} AS SIGNED)", f"({e('int')} {self.choice('&', '|', '^')} 7)", f"INTERVAL(3, 1, 5)", f"STRCMP({e('text')}, {e('text')})", f"TO_DAYS({e('date')})",
                f"({e('bool')} + 1)", f"BIT_COUNT({e('int')})", f"CRC32({e('text')})", f"UNIX_TIMESTAMP({e('datetime')})", f"(LAST_DAY({e('date')}) IS NULL)", f"MOD({e('int')}, 4)",
                f"{self.choice('HOUR', 'MINUTE', 'SECOND', 'MICROSECOND')}({e(self.choice('time', 'moment', 'datetime'))})", f"TRUNCATE(TIME_TO_SEC({e('time')}), 0)", f"EXTRACT({wide} FROM {e('moment' if 'Y' in wide or 'DAY' in wide or 'HOUR_' in wide or wide in ('WEEK', 'MONTH', 'QUARTER', 'HOUR') else self.choice('time', 'moment'))})", f"WEEK({e('date')}, {self.choice(0, 1, 2, 3, 4, 5, 6, 7)})",
                f"YEARWEEK({e('date')}{self.choice('', ', 1', ', 3')})", f"TO_SECONDS({e('datetime')})", f"TIMESTAMPDIFF({unit}, {e(self.choice('date', 'moment'))}, {e('datetime')})", f"PERIOD_ADD(2024{self.choice('01', '12')}, {self.choice('r1.id', 'r1.a', '3', '-14')})", f"PERIOD_DIFF(202403, 20{self.choice('2212', '2406')})",
                "CAST(r1.tm AS SIGNED)", f"WEEKOFYEAR({e('date')})", f"DAY({e('datetime')})"),
            "bigint": lambda: self.choice(f"({e('bigint')} {self.choice('+', '-')} {e('int')})", f"CAST({e('int')} AS SIGNED)", f"COALESCE({e('bigint')}, {e('int')})", f"CAST({e('text')} AS UNSIGNED)"),
            "decimal": lambda: self.choice(
                f"({e('decimal')} {self.choice('+', '-', '*')} {e(number)})", f"ROUND({e('decimal')}, {self.choice(0, 1, 2, -1)})", f"ABS({e('decimal')})", f"TRUNCATE({e('decimal')}, {self.choice(0, 1, -1)})",
                f"CAST({e(number)} AS DECIMAL({self.choice('10,2', '8,3', '5')}))", f"CEIL({e('decimal')})", f"FLOOR({e('decimal')})", f"({e('decimal')} / {e('int')})", f"({e('int')} / {e('int')})", f"MOD({e('decimal')}, 3)",
                f"({e('decimal')} DIV {e('int')})", f"IFNULL({e('decimal')}, {e('int')})", f"GREATEST({e('decimal')}, {e('int')})", f"IF({e('bool')}, {e('decimal')}, {e('int')})", f"-{e('decimal')}", f"({e('time')} + 0)", f"({e('moment')} + 0)", f"UNIX_TIMESTAMP({e('moment')})", f"CAST({e('time')} AS DECIMAL(12,3))"),
            "double": lambda: self.choice(f"({e('double')} {self.choice('+', '-', '*')} {e('double')})", f"ABS({e('double')})", f"ROUND({e('double')})", f"ROUND({e('double')}, 2)", f"SQRT(ABS({e('int')}))",
                                          f"({e('text')} + {e('int')})", f"POW({e('int')}, 2)", f"({e('double')} / {e('int')})", f"({e('double')} * {e('decimal')})"),
            "text": lambda: self.choice(
                f"CONCAT({e('text')}, {e('text')})", f"UPPER({e('text')})", f"LOWER({e('text')})", f"SUBSTR({e('text')}, {self.choice(1, 2, 3, -2)}, 2)", f"REPLACE({e('text')}, 'a', 'bb')",
                f"LEFT({e('text')}, {self.choice(2, -1)})", f"RIGHT({e('text')}, 2)", f"LPAD({e('text')}, 5, '*')", f"RPAD({e('text')}, 3, 'xy')", f"TRIM({e('text')})", f"REVERSE({e('text')})",
                f"SUBSTRING_INDEX({e('text')}, ',', {self.choice(1, 2, -1)})", f"CAST({e(number)} AS CHAR)", f"CAST({e('date')} AS CHAR)", f"CAST({e('datetime')} AS CHAR)", f"CONCAT({e(number)}, {e('bool')})", f"CONCAT(r1.g, {e('text')})", f"CAST(r1.g AS CHAR)",
                f"CONCAT_WS(',', {e('text')}, {e('int')})", f"REGEXP_REPLACE({e('text')}, '[aeiou]', 'X')", f"MD5({e('text')})", f"DATE_FORMAT({e('datetime')}, '%Y-%m-%d %H:%i:%s %W %j %a %b')", f"HEX({e('text')})", f"HEX({e('int')})",
                f"REPEAT({e('text')}, 2)", f"QUOTE({e('text')})", f"ELT({e('int')}, 'x', 'y', 'z')", f"FORMAT({e('decimal')}, 2)", f"INSERT({e('text')}, 2, 1, 'ZZ')", f"IF({e('bool')}, {e('text')}, {e('int')})",
                f"COALESCE({e('text')}, {e('int')})", f"DAYNAME({e('date')})", f"MONTHNAME({e('date')})", f"SHA1({e('text')})", f"BIN({e('int')})", f"CONV({e('int')}, 10, 16)", f"CONCAT('<', SPACE(2), '>')", f"HEX(CHAR(65, 66 USING utf8mb4))", f"NULLIF({e('text')}, 'a')",
                f"CASE {e('int')} WHEN 1 THEN {e('text')} WHEN 2 THEN {e('decimal')} ELSE {e('int')} END", f"TIME_FORMAT('10:11:12', '%H %i')", f"SOUNDEX({e('text')})", f"TO_BASE64({e('text')})", f"LTRIM({e('text')})", f"CAST({e('time')} AS CHAR)", f"CONCAT({e(any_clock)}, '')", f"DATE_FORMAT({e(any_clock if any_clock != 'time' else 'moment')}, '{pattern}')", f"TIME_FORMAT({e('time')}, '{self.choice('%H:%i:%s', '%k %l %h', '%T', '%p %I')}')", f"CONCAT_WS('/', {e('time')}, {e('moment')})",
                f"CAST(JSON_ARRAY({e('date')}) AS CHAR)", f"IF({e('bool')}, {e('time')}, {e('text')})", f"GET_FORMAT({self.choice('DATE', 'TIME', 'DATETIME')}, '{self.choice('USA', 'ISO', 'EUR')}')", f"COALESCE({e('time')}, {e('text')})",
                f"CAST(JSON_EXTRACT('{{\"a\": [1, {{\"b\": 2}}]}}', '$.a[{self.choice(0, 1, 2)}]') AS CHAR)", f"CAST(JSON_OBJECT('k', {e('int')}, 't', {e('text')}) AS CHAR)", f"CAST(JSON_ARRAY({e('int')}, {e('text')}, NULL) AS CHAR)", f"JSON_UNQUOTE(JSON_EXTRACT('{{\"a\": \"q\"}}', '$.a'))"),
            "bool": lambda: self.choice(
                f"({e('int')} {self.choice('=', '<', '>', '<>', '<=', '<=>')} {e('int')})", f"({e('text')} {self.choice('=', '<', 'LIKE', '<=>')} {e('text')})", f"({e('bool')} {self.choice('AND', 'OR', 'XOR')} {e('bool')})",
                f"(NOT {e('bool')})", f"({e('int')} IS {self.choice('', 'NOT ')}NULL)", f"({e('int')} BETWEEN {e('int')} AND {e('int')})", f"({e('int')} IN (1, 2, {e('int')}))", f"({e('date')} < {e('date')})",
                f"(({e('int')}, {e('text')}) = ({e('int')}, {e('text')}))", f"({e('text')} REGEXP '^[a-c]')", f"EXISTS (SELECT 1 FROM r2 WHERE r2.a = {e('int')})", f"({e('datetime')} > {e('datetime')})", f"({e('text')} = {e('int')})",
                f"({e('time')} {self.choice('=', '<', '>=', '<>', '<=>')} {e('time')})", f"({e('moment')} {self.choice('=', '<', '<=>')} {e(self.choice('datetime', 'date'))})", f"({e('time')} BETWEEN {e('time')} AND {e('time')})", f"({e('time')} > '10:30')", f"({e('time')} IN ('10:00', {e('time')}))",
                f"(r1.tm {self.choice('<', '>=')} {self.choice(101112, 93000)})", f"({e('moment')} >= '2024-06-01 12:00:00.5')", f"(r1.st {self.choice('<', '=', '>=')} {e('datetime')})",
                f"({e('decimal')} {self.choice('=', '<')} {e('double')})", f"(r1.g {self.choice('=', '<', '>', '<=>')} {e('double')})", f"(r1.g = {self.choice('75.24', '0.1', '1.5', '1234567')})", f"({e('date')} = {e('datetime')})", f"({e('bool')} IS {self.choice('TRUE', 'FALSE', 'NOT TRUE', 'UNKNOWN')})", f"({e('text')} LIKE '%{self.choice('a', 'B', 'l_o')}%')",
                # MariaDB finds 0 beside nulls for what the column cannot hold.
                f"({self.choice('r1.a', 'r1.ti', 'r1.id', '3')} IN (SELECT r2.a FROM r2 WHERE r2.id < {e('int')}))", f"({e('int')} IN (SELECT r2.a FROM r2 WHERE r2.a IS NOT NULL AND r2.id < {e('int')}))", f"({e('text')} IN ('A', {e('text')}))", f"({e('date')} > '2020-01-01')"),
            "date": lambda: self.choice(f"({e('date')} + INTERVAL {self.choice(1, 30, -5)} {self.choice('DAY', 'MONTH', 'YEAR')})", f"DATE({e('datetime')})", f"LAST_DAY({e('date')})", f"DATE_SUB({e('date')}, INTERVAL 1 MONTH)",
                                        f"STR_TO_DATE('2024-02-{self.choice('10', '29', '1')}', '%Y-%m-%d')", f"CAST({e('datetime')} AS DATE)", f"MAKEDATE(2024, {self.choice(1, 60, 366)})", f"GREATEST({e('date')}, {e('date')})", f"FROM_DAYS(738000)", f"DATE({e('moment')})", f"STR_TO_DATE('{self.choice('05 March 2024', '3rd Feb 24', '2024/60')}', '{self.choice('%d %M %Y', '%D %b %y', '%Y/%j')}')", f"CAST({e('moment')} AS DATE)", f"COALESCE({e('date')}, {e('date')})", f"IF({e('bool')}, {e('date')}, {e('date')})"),
            "time": lambda: self.choice(
                f"TIMEDIFF({e('time')}, {e('time')})", f"TIMEDIFF(r1.dt, r1.dt {self.choice('+', '-')} INTERVAL {amount} {self.choice('MINUTE', 'HOUR', 'SECOND')})", f"TIMEDIFF(r1.ts + INTERVAL {self.choice(1, 90)} HOUR, r1.ts)", f"ADDTIME({e('time')}, {e('time')})", f"SUBTIME({e('time')}, {e('time')})", f"SEC_TO_TIME({self.choice('r1.id * 997', 'r1.n', 'r1.a', 'r1.n * 3.25')})", f"SEC_TO_TIME({self.choice(3661, '90061.25', -5, 86400)})",
                f"MAKETIME({self.choice('r1.id', 'r1.a', 3, -5)}, {self.choice(0, 30, 59, 60)}, {self.choice(0, 7, '7.25', -1)})", f"TIME({e(self.choice('datetime', 'moment', 'time'))})", f"CAST({e(self.choice('datetime', 'moment', 'time'))} AS TIME{self.choice('', '(3)', '(6)')})", f"({e('time')} {self.choice('+', '-')} INTERVAL {self.choice(1, 90)} {self.choice('SECOND', 'MINUTE', 'HOUR', 'MICROSECOND')})",
                f"DATE_ADD({e('time')}, INTERVAL {self.choice('1', '2.5')} {self.choice('SECOND', 'MINUTE')})", f"COALESCE({e('time')}, {e('time')})", f"IF({e('bool')}, {e('time')}, {e('time')})", f"{self.choice('GREATEST', 'LEAST')}({e('time')}, {e('time')})", f"NULLIF({e('time')}, {e('time')})",
                f"STR_TO_DATE('{self.choice('10:11:12', '11:12', '10:11 PM')}', '{self.choice('%H:%i:%s', '%H:%i', '%h:%i %p', '%T')}')", f"CAST('{self.choice('10:11:12.5', '1 2:3:4', '-5:6', '101112', '7')}' AS TIME{self.choice('', '(1)')})", f"TIME('{self.choice('2024-01-02 03:04:05.5', '11:12', '-1:2:3')}')"),
            "moment": lambda: self.choice(
                f"ADDTIME({e(self.choice('datetime', 'moment'))}, {e('time')})", f"SUBTIME({e('moment')}, {e('time')})", f"TIMESTAMP({e('date')}, {e('time')})", f"({e('moment')} {self.choice('+', '-')} INTERVAL {amount} {wide})", f"({e('datetime')} + INTERVAL {amount} {wide})", f"CAST({e(self.choice('moment', 'datetime'))} AS DATETIME({self.choice(0, 2, 6)}))",
                f"CONVERT_TZ({e(self.choice('datetime', 'moment'))}, '{zone}', '{other}')", f"FROM_UNIXTIME({self.choice('1700000000.5', '1712345678.123456', 1720000000)})", f"STR_TO_DATE('2024-02-03 10:11:12.5', '%Y-%m-%d %H:%i:%s.%f')", f"GREATEST({e('moment')}, {e('datetime')})", f"COALESCE({e('moment')}, {e('datetime')})",
                f"CAST('{self.choice('2024-02-03 04:05:06.789', '20240203040506', '2024-2-3', '24-02-03 1:2:3', '2024-02-03T04:05:06')}' AS DATETIME{self.choice('', '(2)')})", f"IF({e('bool')}, {e('moment')}, {e('datetime')})"),
            "datetime": lambda: self.choice(f"({e('datetime')} {self.choice('+', '-')} INTERVAL {self.choice(1, 90)} {unit})", f"CAST({e('date')} AS DATETIME)", f"DATE_ADD({e('datetime')}, INTERVAL '1 2' DAY_HOUR)",
                                            f"TIMESTAMP({e('date')})", f"TIMESTAMPADD({unit}, 3, {e('datetime')})", f"COALESCE({e('datetime')}, {e('date')})", f"FROM_UNIXTIME(1700000000 + {self.choice(0, 86400)})"),
        }
        return PART.sub(lambda part: self.expr(part[1], depth + 1), forms[kind]())

    def aggregate(self):
        i = self.expr("int", 2)
        return self.choice(
            "COUNT(*)", f"SUM({i})", f"AVG({i})", f"MIN({self.expr('text', 2)})", f"MAX({self.expr('date', 2)})", f"GROUP_CONCAT({i} ORDER BY r1.id)", f"BIT_OR({i})", f"COUNT(DISTINCT {i})",
            f"GROUP_CONCAT(DISTINCT {self.expr('text', 2)} ORDER BY 1 SEPARATOR '-')" if self.random.random() < 0 else f"GROUP_CONCAT({self.expr('text', 2)} ORDER BY r1.id DESC SEPARATOR '-')",
            f"SUM({self.expr('decimal', 2)})", f"AVG({self.expr('decimal', 2)})", f"STDDEV({i})", f"VAR_SAMP({i})", f"BIT_AND({i})", f"SUM(DISTINCT {i})", f"MAX({self.expr('decimal', 2)})", f"SUM({self.expr('double', 2)})", f"{self.choice('SUM', 'AVG', 'MIN', 'MAX', 'COUNT')}({self.choice('', 'DISTINCT ')}r1.g)",
            f"AVG(DISTINCT {i})", f"SUM({self.expr('text', 2)})", f"COUNT(DISTINCT r1.a, r1.x)", f"MIN({self.expr('datetime', 2)})", f"SUM({self.expr('bool', 2)})", f"{self.choice('MIN', 'MAX')}({self.expr(self.choice('time', 'moment'), 2)})", f"{self.choice('SUM', 'AVG')}({self.expr('time', 2)})", f"COUNT(DISTINCT {self.expr('time', 2)})", f"GROUP_CONCAT({self.expr('time', 2)} ORDER BY r1.id)")

    def window(self):
        function = self.choice("ROW_NUMBER()", "RANK()", f"LAG({self.expr('int', 2)})", f"LEAD({self.expr('text', 2)}, 2)", f"SUM({self.expr('int', 2)})", "COUNT(*)", f"FIRST_VALUE({self.expr('int', 2)})", "DENSE_RANK()",
                               f"AVG({self.expr('decimal', 2)})", "NTILE(3)", "CUME_DIST()", "PERCENT_RANK()", f"MAX({self.expr('int', 2)})", "SUM(r1.g)", "LAG(r1.g)", "MAX(r1.g)", f"LAG({self.expr('time', 2)})", f"LEAD({self.expr('moment', 2)})")
        # From sums of doubles MariaDB takes away what leaves a frame, and what was rounded stays.
        is_framed = function != "SUM(r1.g)" and function.split("(")[0] in ("SUM", "COUNT", "AVG", "FIRST_VALUE", "MAX")
        frame = self.choice("", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING") if is_framed else ""
        return f"{function} OVER ({self.choice('', 'PARTITION BY r1.x ')}ORDER BY r1.id{frame})"

    def change(self):
        key, value = self.random.randint(0, 30), self.choice("7", "NULL", "-1", "100", "300", "70000", "'12'", "'x'", "3.7", "a + 1", "id * 2")
        column = self.choice("a", "s", "u", "t", "n", "d", "g")
        text = self.choice("'abc'", "'abcdef'", "'2024-02-30'", "'2024-02-29'", "NULL", "12", "'0.555'", "1234.5", "-3")
        plain = self.choice("7", "NULL", "-1", "100", "300", "70000", "'12'", "'x'", "3.7")
        if column == "d":
            # Of numbers that are days, those that name one: MariaDB takes 300 for a day of March 2000 that has no number.
            value, plain = (self.choice("NULL", "'2024-02-29'", "'x'", "20240131", "3.7") for _ in range(2))
        if self.random.random() < 0.2:
            column = self.choice("tm", "tf", "ts", "st")
            kinds = ["time"] if column in ("tm", "tf") else ["datetime", "moment"]
            some = self.choice("'10:11:12.345'", "101112", "'1 2:3'", "'-7:8:9'", "'900:00:00'", "NULL", "'x'", "'12:60'") if kinds == ["time"] else self.choice("'2024-02-29 1:2:3.456'", "20240229010203", "'2024-02-30 00:00:00'", "NULL", "'x'", "'2024-03-31 02:30:00'")
            draw = self.literal(self.random.choice(kinds))
            return self.choice(f"INSERT INTO w (id, {column}) VALUES ({key}, {some})", f"UPDATE w SET {column} = {some} WHERE id = {key}", f"UPDATE w SET {column} = {draw} WHERE id < {key}", f"INSERT INTO w (id, {column}) SELECT id + 200, {draw} FROM r2 WHERE id = {key}",
                               f"UPDATE w SET {column} = {column} + INTERVAL 1 {self.choice('SECOND', 'MINUTE', 'HOUR')} WHERE id > {key}", f"SELECT id, {column} FROM w WHERE {column} {self.choice('<', '>=', '=')} {draw} ORDER BY id", f"UPDATE w SET {self.choice('tm', 'tf', 'ts', 'st', 't', 'd')} = {column} WHERE id = {key}")
        return self.choice(
            f"INSERT INTO w (id, {column}) VALUES ({key}, {self.choice(plain, text)})", f"INSERT INTO w (id, a, t) VALUES ({key}, {plain}, {text}), ({key + 1}, {self.random.randint(0, 30)}, 'z')",
            f"INSERT IGNORE INTO w (id, a, {self.choice('s', 't', 'n', 'd')}) VALUES ({key}, {self.random.randint(0, 30)}, {text})", f"REPLACE INTO w (id, a) VALUES ({key}, {self.random.randint(0, 30)})",
            f"INSERT INTO w (id, a) VALUES ({key}, {self.random.randint(0, 30)}) ON DUPLICATE KEY UPDATE s = COALESCE(s, 0) + 1, t = VALUES(a)", f"UPDATE w SET {column} = {value} WHERE id = {key}",
            f"UPDATE w SET s = s + 1, n = n * 2 WHERE id < {key}", f"UPDATE w SET a = a + 1 WHERE id > {key} ORDER BY a DESC LIMIT 2", f"DELETE FROM w WHERE id = {key}", f"DELETE FROM w WHERE a > {key} ORDER BY id LIMIT 1",
            f"INSERT INTO w (id, a, n) SELECT id + 100, a + 100, a FROM r2 WHERE id = {key}", f"DELETE w FROM w JOIN r2 ON w.id = r2.id WHERE r2.a > {key}", f"UPDATE w JOIN r2 ON w.id = r2.id SET w.t = r2.a WHERE r2.a < {key}",
            f"INSERT INTO w SET id = {key}, u = {plain}", "SELECT * FROM w ORDER BY id", "SELECT * FROM w ORDER BY id", f"INSERT INTO w (id, u) VALUES ({key}, DEFAULT)")

    def statement(self):
        draw = self.random.random()
        if self.random.random() < 0.02:
            return f"SET time_zone = '{self.random.choice(ZONES)}'"
        kinds = ["int", "bigint", "decimal", "double", "text", "bool", "date", "datetime"] + ["time", "moment"] * 3
        if draw < 0.15:
            group = self.expr(self.choice("int", "bool", "text", "time"), 2)
            # MariaDB repeats the last value of some expressions where MySQL and the standard have null.
            rollup = self.choice("", " WITH ROLLUP") if group in ("r1.id", "r1.a", "r1.x", "r1.u", "r1.c") else ""
            return f"SELECT {group}, {self.aggregate()}, {self.aggregate()} FROM r1 GROUP BY {group}{rollup}"
        if draw < 0.25:
            return f"SELECT {self.aggregate()}, {self.aggregate()} FROM r1 WHERE {self.expr('bool')}"
        if draw < 0.34:
            return f"SELECT r1.id, {self.window()}, {self.window()} FROM r1 ORDER BY r1.id"
        if draw < 0.42:
            return f"SELECT r1.id, r2.id, {self.expr('int', 2)} FROM r1 {self.choice('', 'LEFT ', 'RIGHT ')}JOIN r2 ON {self.choice('r1.id = r2.id', 'r1.a = r2.a', 'r1.t = r2.t', 'r1.id = r2.a AND r1.x')} ORDER BY r1.id, r2.id"
        if draw < 0.48:
            kind = self.choice("int", "text", "decimal")
            return f"SELECT {self.expr(kind, 1)} FROM r1 {self.choice('UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT')} SELECT {self.expr(kind, 1)} FROM r1"
        if draw < 0.65:
            return self.change()
        columns = ", ".join(self.expr(self.random.choice(kinds)) for _ in range(self.random.randint(1, 3)))
        return f"SELECT r1.id, {columns} FROM r1 WHERE {self.expr('bool')} ORDER BY r1.id"


def connect(address, is_rival=False):
    host, port = address.rsplit(":", 1)
    connection = pymysql.connect(host=host, port=int(port), user="root", charset="utf8mb4", autocommit=True, conv={}, read_timeout=60)
    # Parts of seconds that a column does not hold are rounded, as in MySQL.
    more = ",TIME_ROUND_FRACTIONAL" if is_rival else ""
    with connection.cursor() as cursor:
        for text in ("CREATE DATABASE IF NOT EXISTS beside CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci", "USE beside", "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci", "SET time_zone = '+00:00'", f"SET sql_mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION{more}'"):
            try:
                cursor.execute(text)
            except pymysql.Error as error:
                print(f"{text}: {error}")

    def ask(statement):
        """The rows as text, the number of those that were changed, or the number of the error."""
        try:
            with connection.cursor() as cursor:
                changed = cursor.execute(statement)
                if cursor.description is None:
                    # How many rows a change of a table has copied is its own affair.
                    return [["done" if statement.split(" ", 1)[0] in ("ALTER", "CREATE", "DROP") else changed]]
                kinds = [column[1] for column in cursor.description]
                return [[shown(value, kind) for value, kind in zip(row, kinds)] for row in cursor.fetchall()]
        except pymysql.Error as error:
            number, text = (list(error.args) + ["", ""])[:2]
            if number in (0, 2006, 2013, 2014):
                sys.exit(f"{address} is gone at {statement}: {error}")
            return {"error": number_of(statement, number) if is_rival else number, "text": str(text)}
    return ask


def shown(value, kind):
    """A value as text; a double with the digits that both sides agree on."""
    if value is None:
        return None
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    if kind in (4, 5):
        return Double(text)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, help="the server that is doubted")
    parser.add_argument("--rival", required=True, help="the real MariaDB")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--families", action="store_true", help="statements in the manner of sqllogictest's files")
    parser.add_argument("--shapes", action="store_true", help="changes of tables and transactions")
    parser.add_argument("--file", help="statements, one a line, in place of random ones")
    parser.add_argument("--errors", action="store_true", help="counts those that only the server refuses, by its words")
    arguments = parser.parse_args()
    reasons = explained(os.path.join(os.path.dirname(os.path.abspath(__file__)), "explained_mariadb.txt"))
    comparison = Comparison(connect(arguments.server), connect(arguments.rival, True), reasons, arguments.errors, folds_groups=True)
    generator = Generator(arguments.seed)
    if arguments.shapes:
        statements = Shapes(arguments.seed, "mysql").all(arguments.count)
    elif arguments.families:
        statements = Families(arguments.seed, "mysql").all(arguments.count)
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
