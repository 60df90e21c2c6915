#!/usr/bin/env python3
"""Writes the answers of the real PostgreSQL or MariaDB into scripts of sqllogictest's form.

    record.py --postgres postgres://postgres@127.0.0.1:5433/postgres tests/sql/slt/postgres/*.slt
    record.py --mariadb 127.0.0.1:3307 tests/sql/slt/mysql/*.slt

A block is a line `statement` or `query`, and a statement; what follows `----` is written anew. Rows without ORDER BY are sorted.
A statement that is refused has the SQLSTATE or the number of its error. Each script has a database of its own.
"""

import argparse
import re

import psycopg
import pymysql

from beside import number_of


def of_postgres(address):
    connection = psycopg.connect(address, autocommit=True)
    connection.execute("DROP SCHEMA public CASCADE")
    connection.execute("CREATE SCHEMA public")

    def run(statement):
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                if cursor.description is None:
                    return None, None
                result = cursor.pgresult
                return [[result.get_value(row, column) for column in range(result.nfields)] for row in range(result.ntuples)], None
        except psycopg.Error as error:
            return None, error.sqlstate
    return run


def of_mariadb(address):
    host, port = address.rsplit(":", 1)
    connection = pymysql.connect(host=host, port=int(port), user="root", charset="utf8mb4", autocommit=True, conv={})
    with connection.cursor() as cursor:
        for text in ("DROP DATABASE IF EXISTS logic", "CREATE DATABASE logic CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci", "USE logic", "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci"):
            cursor.execute(text)

    def run(statement):
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return (None if cursor.description is None else [list(row) for row in cursor.fetchall()]), None
        except pymysql.Error as error:
            return None, str(number_of(statement, error.args[0]))
    return run


def shown(value):
    if value is None:
        return "NULL"
    text = value.decode() if isinstance(value, bytes) else str(value)
    return text if text else "(empty)"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgres")
    parser.add_argument("--mariadb")
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    for path in arguments.files:
        run = of_postgres(arguments.postgres) if arguments.postgres else of_mariadb(arguments.mariadb)
        with open(path, encoding="utf-8") as file:
            blocks = re.split(r"\n\s*\n", file.read().strip())
        out = []
        for block in blocks:
            lines = block.split("\n")
            comments = [line for line in lines if line.startswith("#")]
            lines = [line for line in lines if not line.startswith("#")]
            if not lines:
                out.append("\n".join(comments))
                continue
            end = lines.index("----") if "----" in lines else len(lines)
            body = lines[1:end]
            rows, error = run("\n".join(body))
            if error is not None:
                head, answer = f"statement error {error}", []
            elif rows is None:
                head, answer = "statement ok", []
            else:
                texts = [" ".join(map(shown, row)) for row in rows]
                is_ordered = "order by" in " ".join(body).lower()
                head = "query " + "T" * (len(rows[0]) if rows else 1) + ("" if is_ordered else " rowsort")
                answer = ["----"] + (texts if is_ordered else sorted(texts))
            out.append("\n".join(comments + [head] + body + answer))
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n\n".join(out) + "\n")


if __name__ == "__main__":
    main()
