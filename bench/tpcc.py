#!/usr/bin/env python3
"""TPC-C on Lycosa by both protocols of SQL, on MariaDB and on PostgreSQL, all durable, by turns: new orders a minute without think times.

    python3 bench/tpcc.py --server target/release/lycosa
    python3 bench/tpcc.py --server target/release/lycosa --only lycosa-mysql,mariadb --terminals 32 --seconds 10

The terminals are a program in Go (bench/tpcc), built here; it needs `go`, and for the rivals MariaDB and PostgreSQL of Debian. Every server is filled once, then all take turns;
each turn is followed by the consistency conditions of the specification, which must hold. The figure is the median of the rounds.
"""

import argparse
import json
import os
import pathlib
import pwd
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parent / "tpcc"
PACKAGES = ["github.com/jackc/pgx/v5@v5.12.0", "github.com/go-sql-driver/mysql@v1.10.1"]
CACHE = "4G"
START_S = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def quietly(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}:\n{done.stdout}")


def build(directory):
    program = directory / "program"
    place = directory / "tpcc"
    place.mkdir()
    shutil.copy(SOURCE / "main.go", place / "main.go")
    quietly(["go", "mod", "init", "tpcc"], cwd=place)
    quietly(["go", "get", *PACKAGES], cwd=place)
    quietly(["go", "build", "-o", str(program), "."], cwd=place, env=dict(os.environ, GOFLAGS="-mod=mod"))
    return program


class Server:
    """A server on an empty directory. `account`: whom it runs as, where it runs as nobody else."""

    def __init__(self, name, protocol, user, database, account=None):
        self.name, self.protocol, self.user, self.database = name, protocol, user, database
        self.directory = tempfile.mkdtemp(prefix="lycosa-tpcc-")
        self.port = free_port()
        self.account = account if account and os.getuid() == 0 else None
        self.log = open(os.path.join(self.directory, "log"), "wb")
        if self.account:
            entry = pwd.getpwnam(self.account)
            os.chown(self.directory, entry.pw_uid, entry.pw_gid)
            os.chmod(self.directory, 0o755)

    def as_account(self):
        return {"user": self.account} if self.account else {}

    def start(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, cwd=self.directory, **self.as_account())
        deadline = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    sys.exit(f"{self.name} does not start: {self.directory}/log")
                time.sleep(0.05)

    def arguments(self, program):
        return [str(program), self.protocol, f"127.0.0.1:{self.port}", "-user", self.user, "-database", self.database]

    def stop(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.directory, ignore_errors=True)


def lycosa(binary, protocol):
    user, database = ("postgres", "postgres") if protocol == "postgres" else ("root", "test")
    server = Server(f"lycosa-{protocol}", protocol, user, database)
    server.start([binary, "serve", "--work-dir", server.directory, "--memtx-memory", CACHE, "--listen", f"{protocol}://127.0.0.1:{server.port}"])
    return server


def mariadb():
    server = Server("mariadb", "mysql", "root", "test", "mysql")
    data = os.path.join(server.directory, "data")
    quietly(["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal"], **server.as_account())
    server.start([
        "mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={server.directory}/socket", f"--pid-file={server.directory}/pid", f"--port={server.port}",
        "--bind-address=127.0.0.1", f"--innodb-buffer-pool-size={CACHE}", "--innodb-log-file-size=1G", "--innodb-flush-log-at-trx-commit=1", "--skip-name-resolve", "--max-connections=500",
    ])
    return server


def postgres():
    server = Server("postgres", "postgres", "bench", "postgres", "postgres")
    programs = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    if not programs:
        raise FileNotFoundError("postgres")
    data = os.path.join(server.directory, "data")
    quietly([str(programs[-1] / "initdb"), "-D", data, "-A", "trust", "-U", "bench", "--no-sync", "-E", "UTF8", "--locale=C"], **server.as_account())
    server.start([
        str(programs[-1] / "postgres"), "-D", data, "-p", str(server.port), "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={server.directory}",
        "-c", "shared_buffers=4GB", "-c", "max_connections=500", "-c", "max_wal_size=16GB",
    ])
    return server


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, help="the binary of Lycosa")
    parser.add_argument("--warehouses", type=int, default=10, help="default: 10")
    parser.add_argument("--terminals", type=int, default=32, help="connections (default: 32)")
    parser.add_argument("--seconds", type=float, default=10, help="of a turn (default: 10)")
    parser.add_argument("--rounds", type=int, default=5, help="default: 5")
    parser.add_argument("--items", type=int, default=100_000, help="the specification's: 100,000")
    parser.add_argument("--customers", type=int, default=3_000, help="of a district; the specification's: 3,000")
    parser.add_argument("--isolation", default="READ COMMITTED", help="by MySQL's protocol (default: READ COMMITTED); PostgreSQL's has READ COMMITTED")
    parser.add_argument("--only", default="lycosa-mysql,lycosa-postgres,mariadb,postgres", help="servers, with commas between")
    parser.add_argument("--json", action="store_true", help="one object on one line")
    given = parser.parse_args()
    starts = {
        "lycosa-mysql": lambda: lycosa(os.path.abspath(given.server), "mysql"),
        "lycosa-postgres": lambda: lycosa(os.path.abspath(given.server), "postgres"),
        "mariadb": mariadb,
        "postgres": postgres,
    }
    sizes = ["-warehouses", str(given.warehouses), "-items", str(given.items), "-customers", str(given.customers), "-isolation", given.isolation]
    servers, figures = [], {}
    with tempfile.TemporaryDirectory(prefix="lycosa-tpcc-") as directory:
        program = build(pathlib.Path(directory))
        try:
            for name in given.only.split(","):
                try:
                    servers.append(starts[name]())
                except FileNotFoundError as missing:
                    print(f"{name} is not installed: {missing}", file=sys.stderr)
                    continue
                begun = time.monotonic()
                quietly([*servers[-1].arguments(program), "-load", *sizes])
                print(f"{name}: filled in {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
            for number in range(given.rounds):
                for server in servers[number % len(servers) :] + servers[: number % len(servers)]:
                    command = [*server.arguments(program), "-terminals", str(given.terminals), "-seconds", str(given.seconds), *sizes]
                    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
                    if done.returncode != 0:
                        sys.exit(f"{server.name}: {done.stdout}")
                    found = json.loads(done.stdout)
                    figures.setdefault(server.name, []).append(found)
                    if not given.json:
                        print(f"{server.name:16} {found['new_orders_a_minute']:9.0f} new orders a minute, p99 {found['new_order_ms']['p99']:.1f} ms, {found['done'].get('tried_again', 0)} tried again", flush=True)
        finally:
            for server in servers:
                server.stop()
    medians = {name: statistics.median(turn["new_orders_a_minute"] for turn in turns) for name, turns in figures.items()}
    if given.json:
        print(json.dumps({"median": medians, "turns": figures}))
        return
    for name, median in medians.items():
        others = "".join(f", {median / medians[other]:.2f} times {other}" for other in ("mariadb", "postgres") if other in medians and name.startswith("lycosa"))
        print(f"{name:16} {median:9.0f} in the median{others}")


main()
