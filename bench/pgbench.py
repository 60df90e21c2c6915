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
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

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


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def wait_for(port, process):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if process.poll() is not None:
            sys.exit(f"pgbench.py: a server ended with status {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit("pgbench.py: a server does not start")


def postgres_programs():
    for version in range(30, 9, -1):
        place = f"/usr/lib/postgresql/{version}/bin"
        if os.path.exists(f"{place}/postgres"):
            return place
    found = shutil.which("postgres")
    if not found:
        sys.exit("pgbench.py: PostgreSQL is not installed: apt-get install postgresql")
    return os.path.dirname(found)


def start_lycosa(binary, place):
    port, own = free_port(), free_port()
    command = [binary, "serve", "--work-dir", place, "--listen", f"127.0.0.1:{own}", "--listen", f"postgres://admin@127.0.0.1:{port}"]
    process = subprocess.Popen(command + ["--wal-mode", "fsync", "--memtx-memory", "4G"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return port, process


def start_postgres(place):
    programs, port = postgres_programs(), free_port()
    as_them = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
    if as_them:
        shutil.chown(place, "postgres")
    # A server that is root's may not be started; its directory's parents have to be open to it.
    subprocess.run(as_them + [f"{programs}/initdb", "-D", f"{place}/data", "-A", "trust", "-U", "postgres"], check=True, stdout=subprocess.DEVNULL, cwd="/")
    options = ["-c", "shared_buffers=1GB", "-c", "max_wal_size=8GB", "-c", f"unix_socket_directories={place}", "-p", str(port)]
    command = as_them + [f"{programs}/postgres", "-D", f"{place}/data"] + options
    return port, subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")


def start_nothing(binary):
    port = free_port()
    return port, subprocess.Popen([binary, "nothing", "--port", str(port)])


def run(port, script, options):
    command = ["pgbench", "-n", "-M", "prepared", "-c", str(options.clients), "-j", "2", "-T", str(options.seconds), "-D", f"scale={options.scale}"]
    command += ["-f", script, "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "postgres"]
    done = subprocess.run(command, capture_output=True, text=True)
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
    place = tempfile.mkdtemp(prefix="pgbench-")
    os.chmod(place, 0o755)
    processes = []
    try:
        servers = {}
        for name, start in [
            ("lycosa", lambda where: start_lycosa(options.server, where)),
            ("postgresql", start_postgres),
            ("nothing", lambda where: start_nothing(options.bench)),
        ]:
            where = os.path.join(place, name)
            os.mkdir(where)
            port, process = start(where)
            processes.append(process)
            wait_for(port, process)
            servers[name] = port
            if name != "nothing":
                say(f"{name} is filled")
                fill = ["pgbench", "-q", "-i", "-s", str(options.scale), "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "postgres"]
                for attempt in range(30):
                    done = subprocess.run(fill, capture_output=True, text=True)
                    if done.returncode == 0 or "starting up" not in done.stderr:
                        break
                    time.sleep(0.2)
                if done.returncode != 0:
                    sys.exit(f"pgbench.py: {name} cannot be filled: {done.stderr.strip()}")
        rates = {kind: {name: [] for name in servers} for kind in TRANSACTIONS}
        for kind, text in TRANSACTIONS.items():
            script = os.path.join(place, f"{kind}.sql")
            with open(script, "w", encoding="utf-8") as out:
                out.write(text)
            for number in range(options.rounds):
                names = list(servers)
                for name in names[number % 3:] + names[:number % 3]:
                    rate = run(servers[name], script, options)
                    rates[kind][name].append(rate)
                    say(f"{kind} {number + 1}/{options.rounds} {name:<11}{rate:>9.0f} transactions/s")
        figures = {kind: {name: statistics.median(all_rates) for name, all_rates in found.items()} for kind, found in rates.items()}
        if options.json:
            print(json.dumps({"medians": figures, "rounds": rates}))
        for kind, found in figures.items():
            ratios = ", ".join(f"{name} {rate:.0f} (x {rate / found['postgresql']:.2f})" for name, rate in found.items())
            say(f"{kind}: median of {options.rounds} rounds, {options.clients} clients: {ratios}")
    finally:
        for process in processes:
            process.send_signal(signal.SIGINT)
        for process in processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
