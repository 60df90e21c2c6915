#!/usr/bin/env python3
"""pgbench on Lycosa and on PostgreSQL, both durable, and on a server that does nothing, by turns: transactions a second.

    python3 bench/pgbench.py --server target/release/lycosa --bench target/release/lycosa-bench

Both databases are filled by `pgbench -i` once. A round runs the statements of pgbench's TPC-B-like transaction and its SELECT alone, prepared, on each of
the three; who begins changes. The figure is the median of the rounds. What the server that does nothing gets is what the machine and the client leave to any
server of one thread. Needs PostgreSQL of Debian (`apt-get install postgresql`)."""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

from rivals import STARTS, nothing, quietly

TRANSACTIONS = {
    "tpcb": """\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
""",
    "select": """\\set aid random(1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
""",
}


def command(server, *options):
    return ["pgbench", *options, "-h", "127.0.0.1", "-p", str(server.port), "-U", server.user, server.database]


def run(server, script, options):
    turn = ["-n", "-M", "prepared", "-c", str(options.clients), "-j", "2", "-T", str(options.seconds), "-D", f"scale={options.scale}", "-f", script]
    done = subprocess.run(command(server, *turn), capture_output=True, text=True)
    found = [line for line in done.stdout.splitlines() if line.startswith("tps =")]
    if done.returncode != 0 or not found:
        sys.exit(f"pgbench.py: pgbench failed: {done.stderr.strip()}")
    return float(found[0].split()[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="target/release/lycosa", help="the binary of Lycosa")
    parser.add_argument("--bench", default="target/release/lycosa-bench", help="the binary that can do nothing")
    parser.add_argument("--scale", type=int, default=16, help="as pgbench has it: 100,000 accounts each (default: 16)")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=int, default=8, help="of a turn")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="one object on one line")
    options = parser.parse_args()
    if not shutil.which("pgbench"):
        sys.exit("pgbench.py: pgbench is not installed: apt-get install postgresql-contrib")
    say = (lambda *words: None) if options.json else (lambda *words: print(*words, flush=True))
    servers, rates = [], {}
    with tempfile.TemporaryDirectory(prefix="pgbench-") as place:
        try:
            for name in ["lycosa-postgres", "postgres"]:
                servers.append(STARTS[name](options.server))
                quietly(command(servers[-1], "-q", "-i", "-s", str(options.scale)))
                say(f"{name} is filled")
            servers.append(nothing(options.bench))
            for kind, text in TRANSACTIONS.items():
                script = os.path.join(place, f"{kind}.sql")
                with open(script, "w", encoding="utf-8") as out:
                    out.write(text)
                for number in range(options.rounds):
                    first = number % len(servers)
                    for server in servers[first:] + servers[:first]:
                        rate = run(server, script, options)
                        rates.setdefault(kind, {}).setdefault(server.name, []).append(rate)
                        say(f"{kind} {number + 1}/{options.rounds} {server.name:<16}{rate:>9.0f} transactions/s")
        finally:
            for server in servers:
                server.stop()
    figures = {kind: {name: statistics.median(all_rates) for name, all_rates in found.items()} for kind, found in rates.items()}
    if options.json:
        print(json.dumps({"medians": figures, "rounds": rates}))
    for kind, found in figures.items():
        ratios = ", ".join(f"{name} {rate:.0f} (x {rate / found['postgres']:.2f})" for name, rate in found.items())
        say(f"{kind}: median of {options.rounds} rounds, {options.clients} clients: {ratios}")


if __name__ == "__main__":
    main()
