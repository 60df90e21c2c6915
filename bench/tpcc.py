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
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from rivals import STARTS, quietly

SOURCE = pathlib.Path(__file__).resolve().parent / "tpcc"
PACKAGES = ["github.com/jackc/pgx/v5@v5.12.0", "github.com/go-sql-driver/mysql@v1.10.1"]


def build(directory):
    program = directory / "program"
    place = directory / "tpcc"
    place.mkdir()
    shutil.copy(SOURCE / "main.go", place / "main.go")
    quietly(["go", "mod", "init", "tpcc"], cwd=place)
    quietly(["go", "get", *PACKAGES], cwd=place)
    quietly(["go", "build", "-o", str(program), "."], cwd=place, env=dict(os.environ, GOFLAGS="-mod=mod"))
    return program


def arguments(server, program):
    return [str(program), server.protocol, f"127.0.0.1:{server.port}", "-user", server.user, "-database", server.database]


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
    sizes = ["-warehouses", str(given.warehouses), "-items", str(given.items), "-customers", str(given.customers), "-isolation", given.isolation]
    servers, figures = [], {}
    with tempfile.TemporaryDirectory(prefix="lycosa-tpcc-") as directory:
        program = build(pathlib.Path(directory))
        try:
            for name in given.only.split(","):
                try:
                    servers.append(STARTS[name](given.server))
                except FileNotFoundError as missing:
                    print(f"{name} is not installed: {missing}", file=sys.stderr)
                    continue
                begun = time.monotonic()
                quietly([*arguments(servers[-1], program), "-load", *sizes])
                print(f"{name}: filled in {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
            for number in range(given.rounds):
                for server in servers[number % len(servers) :] + servers[: number % len(servers)]:
                    command = [*arguments(server, program), "-terminals", str(given.terminals), "-seconds", str(given.seconds), *sizes]
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
