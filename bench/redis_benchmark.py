#!/usr/bin/env python3
"""redis-benchmark on Lycosa, on Redis, and on a server that does nothing, by turns: requests a second.

    python3 bench/redis_benchmark.py --server target/release/lycosa --bench target/release/lycosa-bench
    python3 bench/redis_benchmark.py --tests incr,lpush --rounds 7 --json

Lycosa runs in `write` mode, Redis without an append-only file. A round runs the tests on each of the three; who begins changes. The figure is the median of the
rounds. What the server that does nothing gets is what the machine and the client leave to any server of one thread. Needs Redis of Debian (`apt-get install
redis-server`)."""

import argparse
import csv
import json
import os
import shutil
import statistics
import subprocess
import sys

from rivals import CACHE, Server, nothing, quietly


def lycosa(binary):
    server = Server("lycosa", "redis", "", "")
    server.start([os.path.abspath(binary), "serve", "--work-dir", f"{server.directory}/data", "--no-console", "--wal-mode", "write", "--memtx-memory", CACHE,
                  "--listen", f"redis://127.0.0.1:{server.port}"])
    return server


def redis():
    server = Server("redis", "redis", "", "")
    server.start(["redis-server", "--port", str(server.port), "--save", "", "--appendonly", "no", "--dir", server.directory])
    return server


def run(server, options):
    """Requests a second by test."""
    quietly(["redis-cli", "-p", str(server.port), "flushall"])
    command = ["redis-benchmark", "-p", str(server.port), "-t", options.tests, "-P", str(options.depth), "-c", str(options.clients),
               "-r", str(options.keys), "-d", "100", "-n", str(options.requests), "--csv"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"redis_benchmark.py: redis-benchmark failed: {done.stderr.strip()}")
    return {row["test"].split()[0]: float(row["rps"]) for row in csv.DictReader(done.stdout.splitlines())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="target/release/lycosa", help="the binary of Lycosa")
    parser.add_argument("--bench", default="target/release/lycosa-bench", help="the binary that can do nothing")
    parser.add_argument("--tests", default="set,get,incr,lpush,sadd,hset,zadd", help="as redis-benchmark names them")
    parser.add_argument("--depth", type=int, default=16, help="requests in flight of a client (default: 16)")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=600_000, help="of a test")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="one object on one line")
    options = parser.parse_args()
    if not shutil.which("redis-server") or not shutil.which("redis-benchmark"):
        sys.exit("redis_benchmark.py: Redis is not installed: apt-get install redis-server")
    say = (lambda *words: None) if options.json else (lambda *words: print(*words, flush=True))
    servers, rates = [], {}
    try:
        servers += [lycosa(options.server), redis(), nothing(options.bench, "redis")]
        for number in range(options.rounds):
            first = number % len(servers)
            for server in servers[first:] + servers[:first]:
                found = run(server, options)
                for test, rate in found.items():
                    rates.setdefault(test, {}).setdefault(server.name, []).append(rate)
                said = ", ".join(f"{test} {rate / 1000:.0f}" for test, rate in found.items())
                say(f"{number + 1}/{options.rounds} {server.name:<14}{said} thousand requests/s")
    finally:
        for server in servers:
            server.stop()
    figures = {test: {name: statistics.median(all_rates) for name, all_rates in found.items()} for test, found in rates.items()}
    if options.json:
        print(json.dumps({"medians": figures, "rounds": rates}))
    for test, found in figures.items():
        ratios = ", ".join(f"{name} {rate / 1000:.0f} (x {rate / found['redis']:.2f})" for name, rate in found.items())
        say(f"{test}: median of {options.rounds} rounds, thousand requests/s: {ratios}")


if __name__ == "__main__":
    main()
