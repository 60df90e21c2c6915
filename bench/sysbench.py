#!/usr/bin/env python3
"""sysbench's OLTP by both of its drivers: Lycosa beside MariaDB and beside PostgreSQL, all durable, by turns: transactions a second.

    python3 bench/sysbench.py --server target/release/lycosa
    python3 bench/sysbench.py --server target/release/lycosa --only mysql --tests oltp_point_select --seconds 5

Every server is filled by `sysbench prepare` once. A round runs each test on both servers of a driver; who begins changes. The figure is the median of the rounds.
A server that does nothing takes part: what it gets is what the machine and the client leave to any server of one thread.
Needs sysbench, MariaDB and PostgreSQL of Debian (`apt-get install sysbench mariadb-server postgresql`).
"""

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys

from rivals import STARTS, nothing, quietly

# By driver: the server that is measured and the one it is held against.
PAIRS = {"mysql": ("lycosa-mysql", "mariadb"), "pgsql": ("lycosa-postgres", "postgres")}


def command(driver, server, test, given):
    options = [f"--db-driver={driver}", f"--{driver}-host=127.0.0.1", f"--{driver}-port={server.port}", f"--{driver}-user={server.user}", f"--{driver}-db={server.database}"]
    return ["sysbench", test, *options, f"--tables={given.tables}", f"--table-size={given.rows}"]


def run(driver, server, test, given):
    done = subprocess.run([*command(driver, server, test, given), f"--threads={given.threads}", f"--time={given.seconds}", "run"], capture_output=True, text=True)
    rate = re.search(r"transactions:\s+\d+\s+\(([0-9.]+) per sec", done.stdout)
    slow = re.search(r"95th percentile:\s+([0-9.]+)", done.stdout)
    if done.returncode != 0 or not rate or not slow:
        sys.exit(f"{server.name}: {test}: {done.stdout}{done.stderr}")
    return {"transactions": float(rate.group(1)), "p95_ms": float(slow.group(1))}


def beside(driver, given, say):
    """The turns of both servers of this driver, by test and server's name."""
    servers, turns = [], {}
    try:
        for name in PAIRS[driver]:
            servers.append(STARTS[name](given.server))
            quietly([*command(driver, servers[-1], "oltp_read_write", given), "prepare"])
            say(f"{name} is filled")
        servers.append(nothing(given.bench, servers[0].protocol))
        for test in given.tests.split(","):
            for number in range(given.rounds):
                first = number % len(servers)
                for server in servers[first:] + servers[:first]:
                    found = run(driver, server, test, given)
                    turns.setdefault(test, {}).setdefault(server.name, []).append(found)
                    say(f"{test} {number + 1}/{given.rounds} {server.name:16}{found['transactions']:9.0f} a second, 95 % within {found['p95_ms']:.1f} ms")
    finally:
        for server in servers:
            server.stop()
    return turns


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="target/release/lycosa", help="the binary of Lycosa")
    parser.add_argument("--bench", default="target/release/lycosa-bench", help="the binary that can do nothing")
    parser.add_argument("--only", default="mysql,pgsql", help="drivers, with commas between")
    parser.add_argument("--tests", default="oltp_point_select,oltp_read_write", help="sysbench's names, with commas between")
    parser.add_argument("--tables", type=int, default=4)
    parser.add_argument("--rows", type=int, default=250_000, help="of each table (default: 250,000)")
    parser.add_argument("--threads", type=int, default=16, help="clients (default: 16)")
    parser.add_argument("--seconds", type=int, default=8, help="of a turn (default: 8)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="one object on one line")
    given = parser.parse_args()
    if not shutil.which("sysbench"):
        sys.exit("sysbench.py: sysbench is not installed: apt-get install sysbench")
    say = (lambda *words: None) if given.json else (lambda *words: print(*words, flush=True))
    turns = {}
    for driver in given.only.split(","):
        if driver not in PAIRS:
            sys.exit(f"sysbench.py: no driver {driver}: mysql, pgsql")
        turns[driver] = beside(driver, given, say)
    figures = {
        driver: {test: {name: statistics.median(turn["transactions"] for turn in those) for name, those in found.items()} for test, found in tests.items()}
        for driver, tests in turns.items()
    }
    if given.json:
        print(json.dumps({"medians": figures, "rounds": turns}))
    for driver, tests in figures.items():
        other = PAIRS[driver][1]
        for test, found in tests.items():
            ratios = ", ".join(f"{name} {rate:.0f} (x {rate / found[other]:.2f})" for name, rate in found.items())
            say(f"{driver}, {test}: median of {given.rounds} rounds, {given.threads} clients: {ratios}")


if __name__ == "__main__":
    main()
