"""Lycosa by each protocol of SQL, MariaDB and PostgreSQL, started durable and alike for programs that measure them by turns.

`STARTS[name](binary)` starts the server of that name on an empty directory and a free port; `Server.stop` ends it and removes the directory. The rivals are those of
Debian (`apt-get install mariadb-server postgresql`); one that is not installed is a `FileNotFoundError`."""

import os
import pathlib
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

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


class Server:
    """A server on an empty directory. `account`: whom it runs as, where it runs as nobody else."""

    def __init__(self, name, protocol, user, database, account=None):
        self.name, self.protocol, self.user, self.database = name, protocol, user, database
        self.directory = tempfile.mkdtemp(prefix="lycosa-bench-")
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


def nothing(bench, protocol="postgres"):
    """A protocol from a server that does nothing: what the machine and the client leave to any server of one thread."""
    user, database = ("postgres", "postgres") if protocol == "postgres" else ("root", "test")
    server = Server("nothing", protocol, user, database)
    server.start([os.path.abspath(bench), "nothing", "--protocol", protocol, "--port", str(server.port)])
    return server


STARTS = {
    "lycosa-mysql": lambda binary: lycosa(os.path.abspath(binary), "mysql"),
    "lycosa-postgres": lambda binary: lycosa(os.path.abspath(binary), "postgres"),
    "mariadb": lambda _: mariadb(),
    "postgres": lambda _: postgres(),
}
