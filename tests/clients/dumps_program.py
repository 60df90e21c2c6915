#!/usr/bin/env python3
"""Dumps of PostgreSQL and MariaDB against a server that speaks both protocols: `dumps_program.py HOST POSTGRES_PORT MYSQL_PORT`.

The dumps in `dumps` were made by `pg_dump` and `mysqldump` of the real servers (15 and 10.11). They are loaded, the rows are compared, the server is dumped by the real programs, and what they write
is loaded into the server again, and into the real ones where those are installed."""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import checks
from checks import check, equal

DUMPS = pathlib.Path(__file__).resolve().parent / "dumps"
PROGRAMS = "/usr/lib/postgresql/15/bin"
START_MAX_S = 60
POSTGRES_TABLES = ["authors", "books", "always", '"Odd Name"', "nokey", "pairs"]
SEQUENCES = ["lone", "authors_id_seq", "books_id_seq", "always_id_seq"]
# A BIT is a number in text here, and bytes there.
MYSQL_TABLES = {"authors": "*", "books": "id, author_id, title, body, data, HEX(cover), kind, flags, published, at, y, f, g, bits + 0", "nokey": "*", "cheap": "*"}


def program(name):
    """The path of a program of PostgreSQL."""
    return shutil.which(name) or f"{PROGRAMS}/{name}"


def run(*command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, encoding="utf-8", errors="surrogateescape", check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.stderr[-2000:]}")
    return done.stdout


def read(name):
    """A dump. Bytes that are no text stay what they are."""
    return (DUMPS / name).read_text(encoding="utf-8", errors="surrogateescape")


class Postgres:
    """One server of PostgreSQL's protocol."""

    def __init__(self, host, port):
        self.address = ["-h", host, "-p", str(port), "-U", "postgres"]

    def load(self, text):
        run(program("psql"), *self.address, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "postgres", text=text)

    def ask(self, query):
        return run(program("psql"), *self.address, "-X", "-A", "-t", "-d", "postgres", "-c", query)

    def dump(self, *options):
        return run(program("pg_dump"), *self.address, *options, "postgres")

    def rows(self):
        return {table: sorted(self.ask(f"SELECT * FROM public.{table}").splitlines()) for table in [*POSTGRES_TABLES, "cheap"]}

    def clear(self):
        self.load("DROP VIEW IF EXISTS public.cheap;" + "".join(f"DROP TABLE IF EXISTS public.{table} CASCADE;" for table in reversed(POSTGRES_TABLES)) + "".join(f"DROP SEQUENCE IF EXISTS public.{name};" for name in SEQUENCES))


class MySql:
    """One server of MySQL's protocol."""

    def __init__(self, host, port):
        self.address = ["-h", host, "-P", str(port), "-u", "root", "--protocol=tcp"]

    def load(self, text):
        run("mariadb", *self.address, "test", text=text)

    def ask(self, query):
        return run("mariadb", *self.address, "-N", "-B", "test", "-e", query)

    def dump(self, *options):
        # The last line has the time.
        return run("mysqldump", *self.address, "--skip-dump-date", *options, "test")

    def rows(self):
        return {table: sorted(self.ask(f"SELECT {columns} FROM {table}").splitlines()) for table, columns in MYSQL_TABLES.items()}

    def clear(self):
        self.load("DROP VIEW IF EXISTS cheap; SET foreign_key_checks = 0;" + "".join(f"DROP TABLE IF EXISTS {table};" for table in ("authors", "books", "nokey")))


def without_restrict(dump):
    """A dump without what differs from run to run."""
    return [line for line in dump.splitlines() if not line.startswith(("\\restrict", "\\unrestrict", "--"))]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Real:
    """The real servers, where they are installed, for as long as it takes."""

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory(prefix="dumps-")
        self.started = []

    def start(self, command, port):
        log = open(pathlib.Path(self.directory.name) / "log", "a")
        self.started.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        deadline = time.monotonic() + START_MAX_S
        while time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=5).close()
                return
            except OSError:
                time.sleep(0.1)
        raise AssertionError(f"{command[0]} does not start")

    def postgres(self):
        if not os.path.exists(f"{PROGRAMS}/initdb"):
            return None
        data, port = f"{self.directory.name}/postgres", free_port()
        prefix = []
        if os.getuid() == 0:
            # It does not run as root.
            os.mkdir(data)
            shutil.chown(data, "postgres")
            os.chmod(self.directory.name, 0o755)
            prefix = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        run(*prefix, f"{PROGRAMS}/initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        self.start([*prefix, f"{PROGRAMS}/postgres", "-D", data, "-p", str(port), "-k", data, "-c", "fsync=off", "-c", "timezone=UTC"], port)
        server = Postgres("127.0.0.1", port)
        deadline = time.monotonic() + START_MAX_S
        while time.monotonic() < deadline:
            try:
                server.ask("SELECT 1")
                break
            except AssertionError:
                time.sleep(0.1)
        return server

    def mysql(self):
        if not shutil.which("mariadbd") or not shutil.which("mariadb-install-db"):
            return None
        data, port = f"{self.directory.name}/mysql", free_port()
        run("mariadb-install-db", "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal", *(["--user=root"] if os.getuid() == 0 else []))
        self.start(["mariadbd", "--no-defaults", f"--datadir={data}", f"--port={port}", "--bind-address=127.0.0.1", f"--socket={data}/s", "--default-time-zone=+00:00", *(["--user=root"] if os.getuid() == 0 else [])], port)
        server = MySql("127.0.0.1", port)
        # Views have an owner, who must be there.
        server.load("CREATE USER mysql; GRANT ALL ON *.* TO mysql;")
        return server

    def end(self):
        for process in self.started:
            process.terminate()
            process.wait()
        self.directory.cleanup()


def there_and_back(server, real, dump, *options):
    """Loads a dump of the real server, dumps it here, and loads that here and there. Returns the rows."""
    server.clear()
    server.load(dump)
    rows = server.rows()
    first = server.dump(*options)
    server.clear()
    server.load(first)
    equal(server.rows(), rows)
    equal(without_restrict(server.dump(*options)), without_restrict(first))
    if real:
        real.clear()
        real.load(first)
        equal(real.rows(), rows)
    return rows


@check
def dumps_of_postgres_go_there_and_back(postgres, mysql, real):
    there = real.postgres()
    for name in ("postgres15.sql", "postgres15_inserts.sql"):
        dump = read(name)
        rows = there_and_back(postgres, there, dump)
        if there:
            there.clear()
            there.load(dump)
            equal(rows, there.rows())
        there_and_back(postgres, there, dump, "--inserts")
    equal(postgres.ask("INSERT INTO public.authors (name) VALUES ('next') RETURNING id"), "4\nINSERT 0 1\n")
    equal(postgres.ask("SELECT nextval('public.lone')"), "110\n")
    try:
        postgres.ask("INSERT INTO public.pairs VALUES (77, 1)")
    except AssertionError as refused:
        equal("foreign key constraint" in str(refused), True)
    else:
        raise AssertionError("the foreign key is gone")


@check
def one_table_is_dumped(postgres, mysql, real):
    before = postgres.ask("SELECT * FROM public.nokey")
    dump = postgres.dump("-t", "nokey")
    equal("authors" in dump, False)
    postgres.load("DROP TABLE public.nokey")
    postgres.load(dump)
    equal(postgres.ask("SELECT * FROM public.nokey"), before)


@check
def an_archive_is_restored(postgres, mysql, real):
    with tempfile.NamedTemporaryFile(suffix=".dump") as file:
        run(program("pg_dump"), *postgres.address, "-Fc", "-f", file.name, "postgres")
        before = postgres.rows()
        run(program("pg_restore"), *postgres.address, "--clean", "--if-exists", "--exit-on-error", "-d", "postgres", file.name)
        equal(postgres.rows(), before)


@check
def dumps_of_mysql_go_there_and_back(postgres, mysql, real):
    there = real.mysql()
    postgres.clear()
    dump = read("mariadb10.sql")
    rows = there_and_back(mysql, there, dump)
    if there:
        there.clear()
        there.load(dump)
        equal(rows, there.rows())
    there_and_back(mysql, there, dump, "--single-transaction", "--complete-insert", "--hex-blob", "--order-by-primary")
    mysql.load("INSERT INTO authors (name) VALUES ('next')")
    equal(mysql.ask("SELECT MAX(id) FROM authors"), "53\n")


@check
def tables_are_imported_and_looked_at(postgres, mysql, real):
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "nokey.txt"
        path.write_text("7\tseven\n8\t\\N\n")
        run("mysqlimport", *mysql.address, "--local", "test", str(path))
    equal(mysql.ask("SELECT a, b FROM nokey WHERE a > 6 ORDER BY a"), "7\tseven\n8\tNULL\n")
    equal("OK" in run("mysqlcheck", *mysql.address, "test"), True)


def main():
    host, postgres, mysql = sys.argv[1:]
    for name in ("psql", "pg_dump", "pg_restore"):
        if not os.path.exists(program(name)):
            sys.exit(f"{name} is not installed")
    real = Real()
    try:
        checks.run(Postgres(host, postgres), MySql(host, mysql), real)
    finally:
        real.end()


if __name__ == "__main__":
    main()
