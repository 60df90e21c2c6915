#!/usr/bin/env python3
"""Runs programs of real clients of Redis, memcached, PostgreSQL and MySQL against the doors of a server.

    python3 tests/clients/doors.py --server target/debug/lycosa
    python3 tests/clients/doors.py --ports 6379 11211 5432 3306 --only go

With --ports they run against servers that are there: Redis 7, memcached 1.6.18, PostgreSQL 15 and MariaDB 10.11 pass, too. What cannot be installed is passed over, said so, and
is no failure unless --require is given. A server is started for each program, and must be alive behind it.
"""

import argparse
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import run
from run import HERE, CannotInstall, quietly

# Pinned: a new version is tried on purpose.
PACKAGES = {
    "python": ["redis==5.2.1", "rq==1.16.2"],
    "ioredis": ["ioredis@5.4.1"],
    "memjs": ["memjs@1.3.2"],
    "go": ["github.com/redis/go-redis/v9@v9.7.0", "github.com/bradfitz/gomemcache@v0.0.0-20230905024940-24af94b03874"],
    "java": ["redis.clients:jedis:5.2.0", "net.spy:spymemcached:2.12.3"],
    "php": [],
    "psycopg": ["psycopg[binary]==3.3.9"],
    "pymysql": ["PyMySQL==1.2.4", "mysql-connector-python==9.5.0"],
    "sql-go": ["github.com/jackc/pgx/v5@v5.12.0", "github.com/go-sql-driver/mysql@v1.10.1"],
    "sql-node": ["pg@8.23.1", "mysql2@3.24.6"],
    "sql-java": ["org.postgresql:postgresql:42.7.4", "com.mysql:mysql-connector-j:9.1.0", "org.mariadb.jdbc:mariadb-java-client:3.5.1"],
    "sql-pdo": [],
    "django": ["Django==5.2.19", "psycopg[binary]==3.3.9", "PyMySQL==1.2.4"],
    "alembic": ["alembic==1.20.1", "SQLAlchemy==2.1.9", "psycopg[binary]==3.3.9", "PyMySQL==1.2.4"],
    "stored-dumps": [],
    "gorm": ["gorm.io/gorm@v1.31.2", "gorm.io/driver/postgres@v1.6.3", "gorm.io/driver/mysql@v1.6.0"],
    "orm-node": ["sequelize@6.37.8", "knex@3.3.0", "typeorm@1.1.1", "pg@8.23.1", "mysql2@3.24.6", "reflect-metadata@0.2.2"],
    "tpcc": ["psycopg[binary]==3.3.9", "PyMySQL==1.2.4"],
    "sqlalchemy": ["SQLAlchemy==2.1.9", "psycopg[binary]==3.3.9", "PyMySQL==1.2.4"],
}
PYTHON_PROGRAMS = {
    "psycopg": ("postgres_python.py", "p"),
    "pymysql": ("mysql_python.py", "y"),
    "sqlalchemy": ("sqlalchemy_program.py", "py"),
    "django": ("django_program.py", "py"),
    "tpcc": ("tpcc.py", "py"),
    "alembic": ("alembic_program.py", "py"),
}
GO_PROGRAMS = {"go": ("doors_go.go", "rm"), "sql-go": ("sql_go.go", "py"), "gorm": ("gorm_go.go", "py")}
NODE_PROGRAMS = {"ioredis": ("redis_node.js", "r"), "memjs": ("memcached_node.js", "m"), "sql-node": ("sql_node.js", "py"), "orm-node": ("orm_node.js", "py")}
JAVA_PROGRAMS = {"java": ("Doors.java", "rm"), "sql-java": ("SqlDrivers.java", "py")}
PHP_PROGRAMS = {"php": ("redis_php.php", "r", ["redis"]), "sql-pdo": ("sql_pdo.php", "py", ["pdo_pgsql", "pdo_mysql"])}


def place_of(directory, name):
    place = directory / f"doors-{name}"
    place.mkdir(parents=True, exist_ok=True)
    return place, place / "installed"


def install(name, directory):
    """Returns the command of a program without its addresses, what is in its environment, and which doors it speaks to."""
    place, done = place_of(directory, name)
    packages = PACKAGES[name]
    wanted = "\n".join(packages)
    is_new = not done.exists() or done.read_text() != wanted
    if name == "python":
        if is_new:
            quietly([sys.executable, "-m", "venv", "--clear", str(place)])
            quietly([str(place / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages])
        found = [str(place / "bin/python"), str(HERE / "redis_python.py")], {}, "r"
    elif name == "stored-dumps":
        if not all(shutil.which(program) for program in ("psql", "pg_dump", "pg_restore", "mariadb", "mysqldump", "mysqlimport", "mysqlcheck")):
            raise CannotInstall("the clients of PostgreSQL and MariaDB are not installed")
        found = [sys.executable, str(HERE / "dumps_program.py")], {}, "py"
    elif name in PYTHON_PROGRAMS:
        if is_new:
            quietly([sys.executable, "-m", "venv", "--clear", str(place)])
            quietly([str(place / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages])
        program, door = PYTHON_PROGRAMS[name]
        found = [str(place / "bin/python"), str(HERE / program)], {}, door
    elif name in NODE_PROGRAMS:
        if not shutil.which("npm"):
            raise CannotInstall("node and npm are not installed")
        if is_new:
            quietly(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(place), *packages])
        program, doors = NODE_PROGRAMS[name]
        found = ["node", str(HERE / program)], {"NODE_PATH": str(place / "node_modules")}, doors
    elif name in GO_PROGRAMS:
        if not shutil.which("go"):
            raise CannotInstall("go is not installed")
        program, doors = GO_PROGRAMS[name]
        shutil.copy(HERE / program, place / "main.go")
        if is_new:
            (place / "go.mod").unlink(missing_ok=True)
            quietly(["go", "mod", "init", "doors"], cwd=place)
            quietly(["go", "get", *packages], cwd=place)
        quietly(["go", "build", "-o", "program", "."], cwd=place, env=dict(os.environ, GOFLAGS="-mod=mod"))
        found = [str(place / "program")], {}, doors
    elif name in JAVA_PROGRAMS:
        if is_new:
            run.maven_jars(place, packages)
        program, doors = JAVA_PROGRAMS[name]
        found = ["java", "-cp", str(place / "jars/*"), str(HERE / program)], {}, doors
    else:
        modules = subprocess.run(["php", "-m"], capture_output=True, text=True).stdout if shutil.which("php") else ""
        program, doors, extensions = PHP_PROGRAMS[name]
        if not set(extensions) <= set(modules.split()):
            raise CannotInstall(f"PHP is not installed, or not its extension {' or '.join(extensions)}")
        found = ["php", str(HERE / program)], {}, doors
    done.write_text(wanted)
    return found


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server with all doors, in an empty directory."""

    def __init__(self, binary):
        self.directory = tempfile.TemporaryDirectory(prefix="doors-")
        self.ports = [free_port() for _ in range(4)]
        self.log = open(pathlib.Path(self.directory.name) / "server.log", "w+")
        protocols = ("redis", "memcached", "postgres", "mysql")
        listeners = [f"{protocol}://127.0.0.1:{port}" for protocol, port in zip(protocols, self.ports)]
        arguments = [argument for listener in listeners for argument in ("--listen", listener)]
        command = [str(pathlib.Path(binary).resolve()), "serve", "--no-console", "--work-dir", "data", "--wal-mode", "write"]
        self.process = subprocess.Popen(
            [*command, *arguments], cwd=self.directory.name, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log
        )
        deadline = time.monotonic() + run.START_MAX_S
        while not all(self.answers(port) for port in self.ports):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the server did not start:\n{self.end()}")
            time.sleep(0.05)

    def answers(self, port):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return True
        except OSError:
            return False

    def end(self):
        """Returns its log."""
        self.process.kill()
        self.process.wait()
        self.log.seek(0)
        text = self.log.read()
        self.log.close()
        self.directory.cleanup()
        return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--server", help="binary of the server")
    parser.add_argument("--ports", nargs=4, help="of Redis, memcached, PostgreSQL and MySQL that are there")
    parser.add_argument("--only", action="append", choices=sorted(PACKAGES), help="this program (may be repeated)")
    parser.add_argument("--require", action="store_true", help="a client that cannot be installed is a failure")
    options = parser.parse_args()
    directory = run.clients_dir()
    failed = []
    for name in options.only or PACKAGES:
        try:
            command, environment, doors = install(name, directory)
        except CannotInstall as reason:
            print(f"{name}: SKIPPED, it cannot be installed: {reason}", flush=True)
            failed += [name] if options.require else []
            continue
        print(f"{name}:", flush=True)
        server = Server(options.server) if options.server else None
        ports = [str(port) for port in (server.ports if server else options.ports)]
        # Whoever makes the same tables by both doors of SQL has a server for each: a table belongs to the user of its door.
        other = Server(options.server) if options.server and doors == "py" else None
        ports[3] = str(other.ports[3]) if other else ports[3]
        arguments = ["127.0.0.1", *(ports["rmpy".index(door)] for door in doors)]
        try:
            done = subprocess.run(
                [*command, *arguments],
                env=dict(os.environ, **environment),
                timeout=run.PROGRAM_MAX_S,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            code, text = done.returncode, done.stdout
        except subprocess.TimeoutExpired as late:
            code, text = f"none within {run.PROGRAM_MAX_S} s", str(late.stdout)
        ends = [one.process.poll() for one in (server, other) if one]
        ended = next((code for code in ends if code is not None), None)
        log = "".join(one.end() for one in (server, other) if one)
        if code != 0 or ended is not None:
            print(f"{text}\n{name}: FAILED (exit code {code}, the server's {ended}); its log:\n{log[-4000:]}")
            failed.append(name)
        else:
            print("".join(f"{line}\n" for line in text.splitlines() if line.startswith("  ") and ": " in line), end="")
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
