#!/usr/bin/env python3
"""Starts Lycosa by memcached's command line: in the place of its binary for memcached's own tests.

    memcached_launcher.py --server lycosa --folders DIR [memcached's options]

What has a meaning here is translated, what has none is passed over. The process becomes the server, so signals reach it. Data is kept below
DIR, in a new folder each time; with -e in one that belongs to the path given there. An address that other machines reach is opened for clients of
this one only, as nobody has to log in to memcached.
"""

import getopt
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

HELP = """lycosa in the place of memcached
-p, --port=<num>          TCP port to listen on
-U, --udp-port=<num>      UDP port to listen on
-s, --unix-socket=<file>  UNIX socket to listen on
-A, --enable-shutdown     enable ascii "shutdown" command
-l, --listen=<addr>       interface to listen on
-u, --user=<user>         passed over
-m, --memory-limit=<num>  item memory in megabytes
-M, --disable-evictions   return error on memory exhausted
-c, --conn-limit=<num>    max simultaneous connections
-b, --listen-backlog=<num> connections that wait to be accepted
-R, --max-reqs-per-event=<num> requests of one connection in one turn
-C, --disable-cas         items have no cas
-I, --max-item-size=<num> largest item
-F, --disable-flush-all   disable flush_all command
-X, --disable-dumping     disable stats cachedump and lru_crawler metadump
-W, --disable-watch       disable watch commands
-Y, --auth-file=<file>    users and passwords for the text protocol
-e, --memory-file=<file>  data survives a restart
-d, --daemon              run in the background
-P, --pidfile=<file>      file for the number of the process
-o idle_timeout=<num>     close connections that say nothing
"""
TAKEN = "p:U:s:Aa:l:u:m:Mc:I:FXWY:e:o:B:t:b:R:CLvn:f:krhidSP:VD:Z"


def fail(text):
    print(text, file=sys.stderr)
    sys.exit(64)


def main():
    arguments = sys.argv[1:]
    server, folders, arguments = arguments[1], pathlib.Path(arguments[3]), arguments[4:]
    try:
        options, _ = getopt.gnu_getopt(arguments, TAKEN)
    except getopt.GetoptError as error:
        fail(str(error))
    # Defaults of memcached that its tests count on.
    terms = {"memory": "64m", "connections": "1024", "listen": "127.0.0.1"}
    port, udp_port = None, "0"
    users, folder, pid_file, is_daemon, is_kept = None, None, None, False, False
    memory_mb, item_bytes = 64, 1 << 20
    for name, value in options:
        match name:
            case "-h":
                print(HELP)
                return
            case "-p":
                port = value
            case "-U":
                udp_port = value
            case "-l":
                terms["listen"] = value
            case "-s":
                terms["path"] = value
            case "-m":
                memory_mb = int(value)
                terms["memory"] = f"{value}m"
            case "-M":
                terms["eviction"] = "none"
            case "-c":
                if int(value) <= 0:
                    fail("Maximum connections must be greater than 0")
                terms["connections"] = value
            case "-b":
                terms["backlog"] = value
            case "-R":
                terms["requests_per_turn"] = value
            case "-C":
                terms["cas_enabled"] = "no"
            case "-t":
                if int(value) <= 0:
                    fail("Number of threads must be greater than 0")
            case "-B":
                if value not in ("auto", "ascii", "binary"):
                    fail(f"Invalid value for binding protocol: {value}")
                terms["protocol"] = value.replace("ascii", "text")
            case "-I":
                terms["item_size_max"] = value
                item_bytes = int(value.rstrip("kKmM")) << {"k": 10, "m": 20}.get(value[-1].lower(), 0)
            case "-A":
                terms["shutdown"] = "yes"
            case "-F":
                terms["flush"] = "no"
            case "-X":
                terms["dump"] = "no"
            case "-W":
                terms["watch"] = "no"
            case "-Y":
                users = [line.split(":", 1) for line in pathlib.Path(value).read_text().split() if ":" in line]
                terms["auth"] = "required"
            case "-d":
                is_daemon = True
            case "-P":
                pid_file = value
            case "-e":
                is_kept = True
                folder = folders / ("kept-" + value.replace("/", "_"))
            case "-o":
                for option in value.split(","):
                    if option.startswith("idle_timeout="):
                        terms["idle_timeout"] = option.split("=")[1]
    if item_bytes > memory_mb << 19:
        fail("Cannot set item size limit higher than 1/2 of memory max.")
    host, path = terms.pop("listen"), terms.pop("path", None)
    # Who says only a port of UDP means both.
    port = port or (udp_port if udp_port != "0" else "11211")
    port, udp_port = (str(free_port(kind)) if given == "-1" else given
                      for kind, given in ((socket.SOCK_STREAM, port), (socket.SOCK_DGRAM, udp_port)))
    if not host.startswith("127.") and not path:
        terms["local_login"] = "no"
        users = users or [("somebody", os.urandom(16).hex())]
    addresses = [(f"unix/:{path}", {})] if path else []
    if not path and port != "0":
        addresses.append((f"{host}:{port}", {}))
    if not path and udp_port != "0":
        addresses.append((f"{host}:{udp_port}", {"transport": "udp"}))
    folder = folder or pathlib.Path(tempfile.mkdtemp(dir=folders, prefix="data-"))
    command = [server, "serve", "--no-console", "--work-dir", str(folder), "--wal-mode", "write", "--log-level", "warn"]
    for address, more in addresses:
        said = "&".join(f"{name}={value}" for name, value in (terms | more).items())
        command += ["--listen", f"memcached://{address}?{said}"]
    if not addresses:
        command += ["--listen", "127.0.0.1:0"]
    # Virtual memory: what is not used costs nothing.
    command += ["--memtx-memory", f"{memory_mb + 1024}MiB", "--memtx-max-tuple-size", "300MiB"]
    if users is not None:
        script = folder.with_suffix(".lua")
        made = [f"box.schema.user.create({user!r}, {{password = {password!r}, if_not_exists = true}}) "
                f"box.schema.user.grant({user!r}, 'read,write', 'universe', nil, {{if_not_exists = true}})" for user, password in users]
        script.write_text("\n".join(made) + "\n")
        command += ["--script", str(script)]
    if "MEMCACHED_PORT_FILENAME" in os.environ and not path and not os.fork():
        tell_ports(os.environ["MEMCACHED_PORT_FILENAME"], host, int(port), int(udp_port))
        return
    if pid_file:
        command += ["--pid-file", pid_file]
    if is_daemon and os.fork():
        return
    if is_kept:
        run_until_told(command)
    os.execv(server, command)


def free_port(kind):
    with socket.socket(type=kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def tell_ports(file, host, port, udp_port):
    """Writes where clients come in, as memcached does, once they can."""
    deadline = time.monotonic() + 10
    while port and time.monotonic() < deadline:
        try:
            socket.create_connection((host, port), timeout=1).close()
            break
        except OSError:
            time.sleep(0.02)
    lines = [f"{kind} INET: {number}\n" for kind, number in (("TCP", port), ("UDP", udp_port)) if number]
    pathlib.Path(file + ".lock").write_text("".join(lines))
    os.rename(file + ".lock", file)


def run_until_told(command):
    """With -e, SIGUSR1 asks for an orderly end; here every end is one."""
    child = subprocess.Popen(command)
    for number in (signal.SIGUSR1, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: child.terminate())
    sys.exit(child.wait())


if __name__ == "__main__":
    main()
