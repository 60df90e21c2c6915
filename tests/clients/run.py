#!/usr/bin/env python3
"""Runs the test programs of real connectors against a server.

    python3 tests/clients/run.py --server target/debug/lycosa
    python3 tests/clients/run.py --server /usr/bin/tarantool --only tarantool-python

The server is started as `PATH app.lua` on a free port in a directory of its own; once for each connector. The connectors' packages are
installed below $LYCOSA_CLIENTS_DIR, or the target directory, by their usual clients and kept there. A connector that cannot be
installed is passed over, said so, and is no failure unless --require is given.
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

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# Pinned: a new version is tried on purpose.
PYTHON_PACKAGES = {"tarantool-python": "tarantool==1.3.0", "asynctnt": "asynctnt==2.4.0"}
GO_PACKAGES = {"go-tarantool": "github.com/tarantool/go-tarantool/v2@v2.4.2"}
JAVA_PACKAGES = {"cartridge-driver": "io.tarantool:cartridge-driver:0.13.0"}
NODE_PACKAGES = {"tarantool-driver": "tarantool-driver@3.1.0"}
PROGRAMS = {
    "tarantool-python": "tarantool_python.py",
    "asynctnt": "asynctnt_program.py",
    "tarantool-driver": "tarantool_driver.js",
    "go-tarantool": "go_tarantool.go",
    "cartridge-driver": "CartridgeDriver.java",
}

START_MAX_S = 60
PROGRAM_MAX_S = 120


class CannotInstall(Exception):
    """The package is not to be had here."""


def clients_dir():
    given = os.environ.get("LYCOSA_CLIENTS_DIR")
    if given:
        return pathlib.Path(given)
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "clients"


def quietly(command, **options):
    """Runs a command; its output is shown only if it fails."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    except OSError as error:
        raise CannotInstall(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        raise CannotInstall(f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}")


def install_python(directory, package):
    """A virtual environment with one package. Returns the command that runs a program in it."""
    environment = directory / package.replace("==", "-")
    python = environment / "bin" / "python"
    done = environment / "installed"
    if not done.exists():
        quietly([sys.executable, "-m", "venv", "--clear", str(environment)])
        quietly([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package])
        done.touch()
    return [str(python)], {}


def install_node(directory, package):
    """A directory of node modules with one package. Returns the command that runs a program with it."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        raise CannotInstall("node and npm are not installed")
    modules = directory / package.replace("@", "-")
    done = modules / "installed"
    if not done.exists():
        modules.mkdir(parents=True, exist_ok=True)
        quietly([npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(modules), package])
        done.touch()
    return [node], {"NODE_PATH": str(modules / "node_modules")}


def install_go(directory, package, program):
    """A program built with one package. Returns the command that runs it."""
    if not shutil.which("go"):
        raise CannotInstall("go is not installed")
    place = directory / package.replace("/", "-").replace("@", "-")
    place.mkdir(parents=True, exist_ok=True)
    source, built = place / "main.go", place / "program"
    if not built.exists() or source.read_bytes() != (HERE / program).read_bytes():
        built.unlink(missing_ok=True)
        shutil.copy(HERE / program, source)
        if not (place / "go.mod").exists():
            quietly(["go", "mod", "init", "clients"], cwd=place)
            quietly(["go", "get", package], cwd=place)
        quietly(["go", "build", "-o", str(built), "."], cwd=place, env=dict(os.environ, GOFLAGS="-mod=mod"))
    return [str(built)], {}


def maven_jars(place, packages):
    """Puts packages of Maven, and what they need, into a directory `jars`."""
    if not shutil.which("java") or not shutil.which("mvn"):
        raise CannotInstall("java and mvn are not installed")
    line = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
    needed = "".join(line.format(*package.split(":")) for package in packages)
    head = "<modelVersion>4.0.0</modelVersion><groupId>clients</groupId><artifactId>clients</artifactId><version>1</version>"
    (place / "pom.xml").write_text(f"<project>{head}<dependencies>{needed}</dependencies></project>")
    quietly(["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=jars"], cwd=place)


def install_java(directory, package):
    """A directory of jars with one package. Returns the command that runs a program with it."""
    place = directory / package.replace(":", "-")
    done = place / "installed"
    if not done.exists():
        place.mkdir(parents=True, exist_ok=True)
        maven_jars(place, [package])
        done.touch()
    return ["java", "-cp", str(place / "jars/*")], {}


class Server:
    """A server with the application, on a free port."""

    def __init__(self, binary):
        self.binary = str(pathlib.Path(binary).resolve())
        self.directory = tempfile.TemporaryDirectory(prefix="clients-")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.log = open(pathlib.Path(self.directory.name) / "server.log", "w+")
        self.process = None

    def __enter__(self):
        environment = dict(os.environ, LISTEN=f"127.0.0.1:{self.port}", WORK_DIR=self.directory.name)
        self.process = subprocess.Popen(
            [self.binary, str(HERE / "app.lua")],
            env=environment,
            cwd=self.directory.name,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
        )
        deadline = time.monotonic() + START_MAX_S
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                code = self.process.poll()
                self.__exit__()
                raise SystemExit(f"the server did not start (exit code {code}):\n{self.text}")
        return self

    def is_ready(self):
        """Asks whether the application is there; waits for the answer only."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=5) as connection:
                connection.recv(128, socket.MSG_WAITALL)
                # CALL is_ready with no arguments.
                body = b"\x82\x00\x0a\x01\x01" + b"\x82\x22\xa8is_ready\x21\x90"
                connection.sendall(bytes([len(body)]) + body)
                answer = connection.recv(12, socket.MSG_WAITALL)
                return len(answer) == 12 and answer[8:12] == b"\0\0\0\0"
        except OSError:
            if self.process.poll() is None:
                # Nobody listens yet.
                try:
                    self.process.wait(0.02)
                except subprocess.TimeoutExpired:
                    pass
            return False

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.log.flush()
        self.log.seek(0)
        self.text = self.log.read()
        self.log.close()
        self.directory.cleanup()


def run_program(name, command, environment, binary):
    """Returns True if all checks of a program held."""
    with Server(binary) as server:
        program = [] if name in GO_PACKAGES else [str(HERE / PROGRAMS[name])]
        command = [*command, *program, "127.0.0.1", str(server.port)]
        try:
            done = subprocess.run(command, env=dict(os.environ, **environment), timeout=PROGRAM_MAX_S)
            code = done.returncode
        except subprocess.TimeoutExpired:
            code = f"none within {PROGRAM_MAX_S} s"
        ended = server.process.poll()
    if ended is not None:
        print(f"{name}: the server ended by itself with exit code {ended}")
    if code != 0 or ended is not None:
        print(f"{name}: FAILED (exit code {code}); the server's log:\n{server.text[-4000:]}")
        return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--server", required=True, help="binary that is started as PATH app.lua")
    parser.add_argument("--only", action="append", choices=sorted(PROGRAMS), help="this connector (may be repeated)")
    parser.add_argument("--require", action="store_true", help="a connector that cannot be installed is a failure")
    options = parser.parse_args()
    directory = clients_dir()
    directory.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in options.only or PROGRAMS:
        try:
            if name in PYTHON_PACKAGES:
                command, environment = install_python(directory, PYTHON_PACKAGES[name])
            elif name in GO_PACKAGES:
                command, environment = install_go(directory, GO_PACKAGES[name], PROGRAMS[name])
            elif name in JAVA_PACKAGES:
                command, environment = install_java(directory, JAVA_PACKAGES[name])
            else:
                command, environment = install_node(directory, NODE_PACKAGES[name])
        except CannotInstall as reason:
            print(f"{name}: SKIPPED, it cannot be installed: {reason}", flush=True)
            if options.require:
                failed.append(name)
            continue
        print(f"{name}:", flush=True)
        if not run_program(name, command, environment, options.server):
            failed.append(name)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
