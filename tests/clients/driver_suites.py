#!/usr/bin/env python3
"""Runs the own test suites of drivers for PostgreSQL and MySQL against a server's doors.

    python3 tests/clients/driver_suites.py --server target/debug/lycosa
    python3 tests/clients/driver_suites.py --server target/release/lycosa --postgres 127.0.0.1:5433 --mysql 127.0.0.1:3307 --only pgx
    python3 tests/clients/driver_suites.py --server target/debug/lycosa --only asyncpg --filter copy --json

The suites come with the releases: those of pgx, lib/pq and Go-MySQL-Driver from the Go module proxy, the others as source archives from PyPI.
They are kept below $LYCOSA_CLIENTS_DIR, or the target directory. Releases of psycopg 3, PyMySQL and the packages of npm contain no suites.

With --postgres and --mysql the suites run against these servers, too, and only tests that those pass count. There are databases made and
dropped: nothing of value belongs there. Roles `postgres` and `root` have to be let in without a password. The exit status is 1 if a test fails
that passes there and is not expected to fail (EXPECTED says why).
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

import suites
from run import CannotInstall, clients_dir, quietly
from suites import counts, environment, run_group, say, unpacked

# Pinned: a new version is tried on purpose.
GO_MODULES = {"pgx": "github.com/jackc/pgx/v5@v5.12.0", "pq": "github.com/lib/pq@v1.12.3", "go-mysql": "github.com/go-sql-driver/mysql@v1.10.1"}
ARCHIVES = {"asyncpg": "asyncpg==0.32.0", "psycopg2": "psycopg2==2.9.13", "pg8000": "pg8000==1.31.6", "aiomysql": "aiomysql==0.3.2"}
# What is tested comes as it is installed; of the archives only the tests are taken.
INSTALLED = ["asyncpg==0.32.0", "psycopg2-binary==2.9.13", "pg8000==1.31.6", "aiomysql==0.3.2", "PyMySQL==1.2.4"]
HELPERS = ["pytest==9.2.0", "pytest-timeout==2.4.0", "pytest-benchmark", "pytest-mock", "uvloop", "pytz", "python-dateutil", "cryptography", "distro",
           "SQLAlchemy==1.3.24"]
TESTS_OF = {"asyncpg": "tests", "psycopg2": "tests", "pg8000": "test", "aiomysql": "tests"}
MYSQL = ["go-mysql", "aiomysql"]
ALL = [*GO_MODULES, *ARCHIVES]

TEST_MAX_S = 60
PACKAGE_MAX_S = 240
START_MAX_S = 60

# What the suites want to find.
PREPARED_POSTGRES = [
    "CREATE DATABASE pgx_test", "CREATE DATABASE pqgo", "CREATE DATABASE psycopg2_test", "CREATE ROLE pqgo SUPERUSER LOGIN",
    "CREATE ROLE pqgopassword LOGIN PASSWORD 'wordpass'", "CREATE ROLE pqgoscram LOGIN PASSWORD 'wordpass'",
]
PREPARED_PGX = ["CREATE EXTENSION IF NOT EXISTS hstore", "CREATE EXTENSION IF NOT EXISTS ltree", "CREATE DOMAIN uint64 AS numeric(20,0)"]
PREPARED_MYSQL = [f"CREATE DATABASE IF NOT EXISTS {name}" for name in ("gotest", "test_pymysql", "test_pymysql2")]

# Why tests fail here that pass elsewhere, by what they say.
KNOWN_WORDS = [
    (r'type "(_?(inet|cidr|macaddr8?|point|line|lseg|box|path|polygon|circle|tsvector|tsquery|xml|hstore|ltree|tid|xid8|aclitem|cstring|unknown'
     r'|bit|varbit|record|anyarray|jsonpath|money)\b|\w*range|uint64|point3d|mycomplex)', "there is no such type"),
    (r"type with OID \d+ does not exist|OID \d+", "there is no such type"),
    (r"function (\w*range|point|row|hstore|to_tsvector|lo_\w+)\(|of function lo_open|xmlparse", "there is no such type"),
    (r"(CREATE|DROP|ALTER) (TYPE|DOMAIN|EXTENSION|SCHEMA|FUNCTION|OR|RULE|PROCEDURE|DATABASE|TRIGGER)\b", "not a statement here: types, schemas, functions"),
    (r"near \"(do|DO|\$\$|\$proc\$)", "there are no blocks of PL/pgSQL"),
    (r"parameter \"(client_encoding|standard_conforming_strings)\"|encoding is UTF8", "encodings but UTF-8"),
    (r'relation "pg_(prepared_statements|prepared_xacts|locks|user)"', "that part of the catalog is not there"),
    (r"arrays of several dimensions|malformed array literal", "arrays in binary have one dimension, and their bounds begin at 1"),
    (r"(?i)\brow\(|'\([^']*,[^']*\)' is not supported|\('int2'", "rows are no values here"),
    (r"NaN|-?Infinity\\?\"|for type 1700|invalid input syntax for type numeric", "a decimal has 38 digits and is a number"),
]
# The same by suite and name of the test.
ONE_DATABASE = "there is one database, whatever it is called, and nobody is asked for a password from this machine"
EXPECTED = {
    "pgx": [(r"LargeObject", "there are no large objects"),
            (r"TestConnectInvalidUser", ONE_DATABASE), (r"TimeoutBetweenParseAndDescribe", "LOCK TABLE keeps nobody waiting"),
            (r"MultipleQueriesError", "a constant that fails does so when a row wants it"), (r"Hstore|Multirange|Domain|LoadType", "there is no such type"),
            (r"BPChar", "character(n) is varchar(n)"), (r"TypesChange", "a column of the primary key is kept"),
            (r"TestConnPing", "there is no such setting"), (r"LargeDigitCount", "a decimal has 38 digits and is a number"),
            (r"TooManyParams", "a statement with more than 65,535 parameters is refused when it is prepared")],
    "pq": [(r"StartupClosesConn|ErrorDuringStartup|TestAuth", ONE_DATABASE), (r"hstore", "there is no such type"),
           (r"TestError/", "a syntax error has a detail, errors of values have no place, and a view may be copied")],
    "asyncpg": [(r"ExecuteMany|execute_many", "rows of a table with a key come in its order; the tests behind it find its table"),
                (r"TestConnectionGC", "depends on when Python frees a connection"), (r"large_rows", "a row has 1 MiB unless an option says more"),
                (r"table_where", "COPY has no WHERE"), (r"test_cursor_0|test_timeout_06", "portals are no cursors of SQL, and find their rows at once"),
                (r"transactionality|command_result", "a constant that fails does so when a row wants it; the test behind it finds its table"),
                (r"test_void", "void is an empty text"), (r"concurrent_calls|as_composite", "rows are no values here"),
                (r"14_explain", "plans are in words of their own"), (r"relacl", "grants on somebody else's table")],
    "psycopg2": [(r"test_lobject", "there are no large objects"), (r"test_notices", "nothing is told of sequences and indexes that a table brings with it"),
                 (r"pgconn_ptr", "depends on libpq, which the test does not find"), (r"test_leak|test_url_leak|failed_init|pickle_connection", ONE_DATABASE),
                 (r"connection_error_message", ONE_DATABASE),
                 (r"isolation_level_serializable", "levels above READ COMMITTED are serializable"), (r"deferrable", "DEFERRABLE is read and not kept"),
                 (r"encrypt_server", "there is no such setting"), (r"stolen", "that part of the catalog is not there"),
                 (r"iso_8601", "that style of spans is refused"), (r"[gG]reedy", "rows of a cursor are found at once"),
                 (r"flush_on_write", "a statement has 16 MiB at most"), (r"test_deadlock", "LOCK TABLE keeps nobody waiting"),
                 (r"NestedEmpty", "an array of empty arrays is taken for one"), (r"from_tables|none_in_record", "rows are no values here")],
    "pg8000": [(r"\.auth\.|[dD]atabase_?([mM]issing|[nN]ame)|[dD]atabaseMissing|[pP]assword|[mM]d5", ONE_DATABASE),
               (r"interval_in_", "that style of spans is refused"), (r"char_out|::char\(", "character(n) is varchar(n)"),
               (r"enum_|tpc|value_fail", "not a statement here: types, schemas, functions"), (r"copy_from_with_error", "words of an error"),
               (r"parameter_statuses", "SET SESSION AUTHORIZATION takes the session's own user")],
    "go-mysql": [(r"TestInt/", "numbers of ZEROFILL columns come without the zeros"), (r"TestRowsColumnTypes", "VARBINARY is told as BLOB, YEAR as SMALLINT"),
                 (r"TestCollation", "a session compares by utf8mb4_unicode_ci"), (r"MultiResult|InterruptBySignal", "there are no procedures"),
                 (r"TestConcurrent", "wants a server of few connections"),
                 (r"LongData|PreparedManyCols", "a statement has 16 MiB and a query 2,000 columns at most")],
    "aiomysql": [(r"largedata", "a statement has 16 MiB and a query 2,000 columns at most"), (r"max_execution_time", "MariaDB's variable of that name"),
                 (r"issue_6|tls_connect", "there is no database `mysql` with its tables"), (r"gone_away|if_timedout|issue_792", "wait_timeout ends nobody"),
                 (r"escape_string|sql_mode|init_param", "SQL modes but strictness have no effect"),
                 (r"plugin_renegotiation", "listeners of this machine ask for no password")],
}


def python_of(directory):
    """A virtual environment with the drivers for Python and what their tests need."""
    return environment(directory, "driver-suites-python", "the drivers for Python", [*INSTALLED, *HELPERS])


def fetch_archive(directory, python, name):
    """The tests of a release on PyPI, without the driver itself, so that the installed one is tested."""
    suite = directory / f"suite-{name}"
    if not (suite / "fetched").exists():
        shutil.rmtree(suite, ignore_errors=True)
        suite.mkdir(parents=True)
        with tempfile.TemporaryDirectory() as scratch:
            shutil.copytree(unpacked(python, ARCHIVES[name], name, scratch) / TESTS_OF[name], suite / TESTS_OF[name])
        (suite / "fetched").touch()
    return suite


class Server:
    """A server with both doors, everybody an administrator, on free ports; the last of them is PostgreSQL's for who prepares it."""

    def __init__(self, binary, certificates):
        self.directory = tempfile.TemporaryDirectory(prefix="driver-suites-")
        self.ports = [free_port() for _ in range(3)]
        certificate, key = certificates
        tls = f"?transport=ssl&ssl=optional&ssl_cert_file={certificate}&ssl_key_file={key}"
        command = [str(pathlib.Path(binary).resolve()), "serve", "--no-console", "--work-dir", self.directory.name, "--wal-mode", "write"]
        for door, port in zip(("postgres://", "mysql://admin@", "postgres://admin@"), self.ports):
            command += ["--listen", f"{door}127.0.0.1:{port}{tls}"]
        self.log = open(pathlib.Path(self.directory.name) / "server.log", "w+", encoding="utf-8")
        self.process = subprocess.Popen(command, cwd=self.directory.name, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        deadline = time.monotonic() + START_MAX_S
        while not all(map(is_open, self.ports)):
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise SystemExit(f"the server did not start:\n{self.text}")
            time.sleep(0.05)

    def addresses(self):
        """Of both doors, PostgreSQL's first."""
        return [f"127.0.0.1:{port}" for port in self.ports[:2]]

    def close(self):
        """Ends it; returns how it ended by itself, None if it did not."""
        ended = self.process.poll()
        if ended is None:
            self.process.kill()
        self.process.wait()
        self.log.seek(0)
        self.text = self.log.read()[-4000:]
        self.log.close()
        self.directory.cleanup()
        return ended


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_open(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return True
    except OSError:
        return False


def run_statements(python, door, address, work):
    """Runs statements, database by database, whatever becomes of them."""
    program = (
        "import sys, json\n"
        "host, port, door, work = sys.argv[1], int(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4])\n"
        "for database, texts in work:\n"
        "    if door == 'mysql':\n"
        "        import pymysql\n"
        "        c = pymysql.connect(host=host, port=port, user='root', autocommit=True)\n"
        "    else:\n"
        "        import psycopg2\n"
        "        c = psycopg2.connect(host=host, port=port, user='postgres', dbname=database)\n"
        "        c.autocommit = True\n"
        "    for text in texts:\n"
        "        try:\n"
        "            c.cursor().execute(text)\n"
        "        except Exception as error:\n"
        "            print(text, '->', str(error).strip())\n"
    )
    host, port = address.rsplit(":", 1)
    quietly([str(python), "-c", program, host, port, door, json.dumps(work)])


def prepare(python, name, address):
    """Makes what a suite wants to find; what is there, or cannot be made, stays as it is."""
    door = "mysql" if name in MYSQL else "postgres"
    work = [["mysql", PREPARED_MYSQL]] if door == "mysql" else [["postgres", PREPARED_POSTGRES], ["pgx_test", PREPARED_PGX if name == "pgx" else []]]
    run_statements(python, door, address, work)


def environment_of(name, address):
    """The variables by which a suite finds the server."""
    host, port = address.rsplit(":", 1)
    given = {key: value for key, value in os.environ.items() if not key.startswith(("PG", "MYSQL", "PSYCOPG"))}
    postgres = {"PGHOST": host, "PGPORT": port, "PGUSER": "postgres"}
    user = f"host={host} port={port} user=postgres dbname=pgx_test sslmode="
    own = {
        "pgx": {"PGX_TEST_DATABASE": f"{user}disable", "PGX_TEST_TCP_CONN_STRING": f"{user}disable"},
        "pq": {"PGHOST": host, "PGPORT": port},
        "go-mysql": {"MYSQL_TEST_ADDR": address, "MYSQL_TEST_USER": "root"},
        "asyncpg": dict(postgres, PGDATABASE="postgres"),
        "psycopg2": dict(postgres, PSYCOPG2_TESTDB_USER="postgres"),
        "pg8000": dict(postgres, PGPASSWORD="pw"),
        "aiomysql": {},
    }
    return dict(given, **own[name])


def run_python(name, suite, python, address, test_filter):
    """Runs a suite of pytest. Returns outcome and text by test."""
    with tempfile.TemporaryDirectory(prefix="suite-") as scratch:
        # In a copy: the tests of pg8000 are a package beside which others stand.
        work = pathlib.Path(scratch) / "work"
        shutil.copytree(suite, work)
        if name == "aiomysql":
            # It makes its databases; they are there, and here there is one.
            conftest = work / "tests" / "conftest.py"
            text = conftest.read_text(encoding="utf-8")
            conftest.write_text(re.sub(r"cursor\.execute\('(?:DROP|CREATE) DATABASE[^)]*\)", "None", text), encoding="utf-8")
        report = pathlib.Path(scratch) / "report.xml"
        command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--timeout={TEST_MAX_S}", f"--junitxml={report}"]
        command += ["--benchmark-disable", "--tb=native", "--assert=plain", TESTS_OF[name]]
        command += ["--import-mode=importlib" if name == "asyncpg" else "--import-mode=prepend"]
        command += ["--mysql-address", address] if name == "aiomysql" else []
        command += ["--ignore=tests/sa"] if name == "aiomysql" else []
        command += ["-k", test_filter] if test_filter else []
        with open(pathlib.Path(scratch) / "log", "w+", encoding="utf-8") as log:
            run_group(command, environment_of(name, address), work, log)
            log.seek(0)
            text = log.read()
        if not report.exists():
            return {f"{name} as a whole": ("failed", text[-2000:])}
        results = {}
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            test = f"{case.get('classname')}.{case.get('name')}"
            trouble = case.find("failure") if case.find("failure") is not None else case.find("error")
            if trouble is not None:
                results[test] = ("failed", trouble.text or trouble.get("message") or "")
            else:
                results.setdefault(test, ("skipped" if case.find("skipped") is not None else "passed", ""))
        return results


def run_go(name, suite, address, test_filter):
    """Runs the packages of a module, each for itself, so that one that hangs ends alone. Returns outcome and text by test."""
    environment = dict(environment_of(name, address), GOFLAGS="-mod=mod")
    listed = subprocess.run(["go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}", "./..."], cwd=suite, env=environment,
                            capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        raise CannotInstall(listed.stderr)
    results = {}
    for package in sorted(filter(None, listed.stdout.split("\n"))):
        place = os.path.relpath(package, suite).removeprefix(".")
        if place.startswith("examples"):
            continue
        command = ["go", "test", "-json", "-count=1", "-vet=off", f"-timeout={PACKAGE_MAX_S}s", "-skip", "^(Fuzz|Example|TestConnectorReturnsTimeout)"]
        command += ["-run", test_filter] if test_filter else []
        with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
            run_group([*command, package], environment, suite, output)
            output.seek(0)
            found = suites.go_outcomes(output, place)
        results.update(found)
    # Names without directories of one run.
    results = {re.sub(r"/tmp/\w+/\d+/", "", test): outcome for test, outcome in results.items()}
    # Who has subtests is counted by them.
    above = {test.rsplit("/", depth)[0] for test in results for depth in range(1, test.count("/"))}
    return {test: outcome for test, outcome in results.items() if test not in above or outcome[0] == "failed"}


def run_suite(name, address, directory, python, options):
    """Runs a suite against a server. Returns outcome and text by test."""
    begun = time.monotonic()
    prepare(python, name, address)
    if name in GO_MODULES:
        results = run_go(name, suites.fetch_go_module(directory, name, GO_MODULES[name]), address, options.filter)
    else:
        results = run_python(name, fetch_archive(directory, python, name), python, address, options.filter)
    say(f"{name} at {address}: {counts(results)} in {time.monotonic() - begun:.0f} s")
    return results


def reason_of(name, test, text):
    """Why a test is expected to fail here; None if it is not."""
    by_name = (reason for pattern, reason in EXPECTED[name] if re.search(pattern, test))
    by_words = (reason for pattern, reason in KNOWN_WORDS if re.search(pattern, text))
    return next(by_name, None) or next(by_words, None)


def certificates_of(directory, python):
    """A certificate and its key, from the authority that aiomysql's suite trusts; its own one is of X.509's first version."""
    ssl = fetch_archive(directory, python, "aiomysql") / "tests" / "ssl_resources" / "ssl"
    request, certificate, key = (directory / f"driver-suites.{end}" for end in ("csr", "crt", "key"))
    if not certificate.exists():
        quietly(["openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                 "-keyout", str(key), "-out", str(request)])
        quietly(["openssl", "x509", "-req", "-in", str(request), "-CA", str(ssl / "ca.pem"), "-CAkey", str(ssl / "ca-key.pem"), "-set_serial", "7",
                 "-days", "3650", "-copy_extensions", "copy", "-out", str(certificate)])
    return certificate, key


def run_here(name, directory, python, options):
    """Runs a suite against a server of its own, or one that is there."""
    if options.at:
        return run_suite(name, options.at[name in MYSQL], directory, python, options)
    server = Server(options.server, certificates_of(directory, python))
    try:
        run_statements(python, "postgres", f"127.0.0.1:{server.ports[2]}", [["postgres", ["GRANT super TO postgres"]]])
        results = run_suite(name, server.addresses()[name in MYSQL], directory, python, options)
    finally:
        ended = server.close()
    if ended is not None:
        results[f"{name}: the server ended by itself"] = ("failed", server.text)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", help="the binary that is tried")
    parser.add_argument("--at", nargs=2, metavar=("POSTGRES", "MYSQL"), help="host:port of both doors of a server that runs already, in place of --server")
    parser.add_argument("--postgres", help="host:port of a real PostgreSQL to compare with")
    parser.add_argument("--mysql", help="host:port of a real MariaDB or MySQL to compare with")
    parser.add_argument("--known", action="append", help="what --json wrote: the outcomes there are taken from it, not found anew (may be repeated)")
    parser.add_argument("--only", action="append", choices=ALL, help="this suite (may be repeated)")
    parser.add_argument("--filter", help="only tests whose names match, in the words of `go test -run` or `pytest -k`")
    parser.add_argument("--json", action="store_true", help="the outcome of every test as JSON instead of the summary")
    options = parser.parse_args()
    if not options.server and not options.at:
        parser.error("--server or --at is needed")
    directory = clients_dir()
    directory.mkdir(parents=True, exist_ok=True)
    known = {}
    for path in options.known or []:
        for name, suite in json.loads(pathlib.Path(path).read_text(encoding="utf-8")).items():
            known[name] = {test: (case["against"], "") for test, case in suite["tests"].items() if case["against"] not in (None, "absent")}
    unexpected, document = 0, {}
    for name in options.only or ALL:
        address = options.mysql if name in MYSQL else options.postgres
        try:
            python = python_of(directory)
            there = known.get(name) or (run_suite(name, address, directory, python, options) if address else None)
            here = run_here(name, directory, python, options)
        except CannotInstall as reason:
            print(f"{name}: SKIPPED, it cannot be installed: {reason}", flush=True)
            continue
        names = there or here
        above = {test.rsplit("/", depth)[0] for test in names for depth in range(1, test.count("/"))} if name in GO_MODULES else set()
        wanted = [test for test, (outcome, _) in names.items() if (outcome == "passed" or not there) and test not in above]
        failed = [test for test in wanted if here.get(test, ("absent",))[0] in ("failed", "absent")]
        # What was not reached has the reason of the test that it is a part of.
        text_of = lambda test: here.get(test) or here.get(test.rsplit("/", 1)[0]) or ("", "")  # noqa: E731
        reasons = {test: reason_of(name, test, text_of(test)[1]) for test in failed}
        document[name] = {
            "server": counts(here), "against": there and counts(there), "wanted": len(wanted), "failed": len(failed),
            "tests": {test: {"server": here.get(test, ("absent", ""))[0], "against": there and there.get(test, ("absent", ""))[0],
                             "expected": reasons.get(test), "text": here.get(test, ("", ""))[1][-3000:]}
                      for test in sorted({*here, *(there or {})})},
        }
        if not options.json:
            print(f"{name}: of {len(wanted)} {'that pass there' if there else 'tests'}, {len(failed)} fail", flush=True)
            for test in sorted(failed, key=lambda test: (reasons[test] or "", test)):
                print(f"  {'expected: ' + reasons[test] if reasons[test] else 'FAILED'}: {test}")
                if not reasons[test]:
                    print("    " + here.get(test, ("", "it was not reached"))[1].strip()[-1500:].replace("\n", "\n    "))
        unexpected += sum(reason is None for reason in reasons.values())
    if options.json:
        print(json.dumps(document, indent=1))
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main())
