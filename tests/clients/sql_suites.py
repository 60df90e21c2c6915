#!/usr/bin/env python3
"""Runs the own tests of programs against the doors of PostgreSQL and MySQL: SQLAlchemy's suite for dialects, and Django's tests that use a database.

    python3 tests/clients/sql_suites.py --server target/release/lycosa
    python3 tests/clients/sql_suites.py --server target/debug/lycosa --only django-mysql --filter transactions --filter queries
    python3 tests/clients/sql_suites.py --server target/release/lycosa --postgres 127.0.0.1:5432 --mysql 127.0.0.1:3306 --json

The suites come with the source archives of the releases on PyPI, through psycopg 3 and PyMySQL, and are kept below $LYCOSA_CLIENTS_DIR, or the target
directory. The server is started anew for each suite of SQLAlchemy, and for each folder of Django's tests, twice: for `default` and `other`.

With --postgres and --mysql they run against real servers, too, which let `postgres` and `root` in without a password (PostgreSQL may have
max_prepared_transactions, and MariaDB has to have utf8mb4 as its character set): only what passes there is counted then. What fails here and passes there is
grouped by its error, the most frequent first; the exit status is 1 if there is any.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

import doors
from run import CannotInstall, clients_dir, quietly
from suites import counts, environment, run_group, say, unpacked

# Pinned: a new version is tried on purpose.
ARCHIVES = {"sqlalchemy": "SQLAlchemy==2.0.44", "django": "Django==5.2.8"}
HELPERS = ["psycopg[binary]==3.2.12", "PyMySQL==1.1.2", "cryptography", "pytest==9.2.0"]
KINDS = {"postgres": "PostgreSQL's door", "mysql": "MySQL's door"}

# Eleven thousand tests on PostgreSQL's door: minutes on an idle machine.
SQLALCHEMY_MAX_S = 3600
SQLALCHEMY_TESTS = {
    "postgres": ["test/dialect/test_suite.py", "test/dialect/postgresql"],
    "mysql": ["test/dialect/test_suite.py", "test/dialect/mysql"],
}
# What the suite takes for granted of every server and is not there here: databases beside the usual one in MySQL's dialect, two extensions, transactions in
# two phases; and materialized views, without which no test of reflection could begin.
SQLALCHEMY_EDITS = [
    (
        "test/requirements.py",
        r"(def (?:schemas|schema_create_delete|cross_schema_fk_reflection)\(self\):\n(?:\s*\"\"\".*?\"\"\")?\s*)return [^\n]*",
        r"\1return only_on(['postgresql'])",
    ),
    (
        "test/requirements.py",
        r"(def materialized_views\(self\):\n(?:\s*\"\"\".*?\"\"\")?\s*)return [^\n]*",
        r"\1return exclusions.closed()",
    ),
    ("test/requirements.py", r"(def pg_prepared_transaction\(config\):\n)", r"\1            return False\n"),
    ("lib/sqlalchemy/dialects/postgresql/provision.py", r"\n    \(\"(?:citext|hstore)\", \(13,\)\),", ""),
]
DJANGO_TESTS = """aggregation aggregation_regress annotations backends basic bulk_create composite_pk constraints custom_columns custom_lookups
custom_managers custom_methods custom_pk datatypes dates datetimes db_functions db_typecasts db_utils defer defer_regress delete
delete_regress distinct_on_fields empty expressions expressions_case expressions_window extra_regress field_defaults filtered_relation
fixtures fixtures_regress force_insert_update foreign_object from_db_value generic_relations generic_relations_regress
get_earliest_or_latest get_object_or_404 get_or_create indexes inspectdb introspection known_related_objects lookup m2m_and_m2o
m2m_intermediary m2m_multiple m2m_recursive m2m_regress m2m_signals m2m_through m2m_through_regress m2o_recursive many_to_many many_to_one
many_to_one_null max_lengths migrations model_fields model_inheritance model_inheritance_regress model_regress multiple_database
mutually_referential nested_foreign_keys null_fk null_fk_ordering null_queries one_to_one or_lookups order_with_respect_to ordering
prefetch_related proxy_models queries raw_query reserved_names reverse_lookup save_delete_hooks schema select_for_update select_related
select_related_onetoone select_related_regress serializers sessions_tests string_lookup timezones transaction_hooks transactions
unmanaged_models update update_only_fields xor_lookups""".split()

DJANGO_SETTINGS = """
import json, os, unittest
from django.test.runner import DiscoverRunner

DATABASES = json.loads(os.environ["SUITE_DATABASES"])
if "mysql" in DATABASES["default"]["ENGINE"]:
    import pymysql
    pymysql.version_info = (2, 2, 1, "final", 0)
    pymysql.install_as_MySQLdb()
SECRET_KEY = "x"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
TIME_ZONE = os.environ["SUITE_TIME_ZONE"]
TEST_RUNNER = "suite_settings.Runner"


class Result(unittest.TextTestResult):
    outcomes = {}

    def note(self, test, outcome, text=""):
        if self.outcomes.get(test.id(), ("passed",))[0] == "passed":
            self.outcomes[test.id()] = (outcome, text)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.note(test, "passed")

    def addError(self, test, error):
        super().addError(test, error)
        self.note(test, "failed", self._exc_info_to_string(error, test))

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.note(test, "failed", self._exc_info_to_string(error, test))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skipped", reason)

    def addExpectedFailure(self, test, error):
        super().addExpectedFailure(test, error)
        self.note(test, "skipped")

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.note(test, "passed")

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self.note(test, "failed", self._exc_info_to_string(error, test))

    def stopTestRun(self):
        super().stopTestRun()
        with open(os.environ["SUITE_REPORT"], "w") as report:
            json.dump(self.outcomes, report)


class Runner(DiscoverRunner):
    def get_resultclass(self):
        return Result
"""


def python_of(directory):
    """A virtual environment with the programs and the drivers."""
    return environment(directory, "sql-suites-python", "SQLAlchemy and Django", [*ARCHIVES.values(), *HELPERS])


def fetch(directory, python, program):
    """The source of a release on PyPI, with its tests."""
    suite = directory / f"sql-suite-{program}"
    # What was edited in another way is fetched anew.
    mark = repr((ARCHIVES[program], SQLALCHEMY_EDITS if program == "sqlalchemy" else DJANGO_SETTINGS))
    if not (suite / "fetched").exists() or (suite / "fetched").read_text() != mark:
        shutil.rmtree(suite, ignore_errors=True)
        with tempfile.TemporaryDirectory() as scratch:
            shutil.copytree(unpacked(python, ARCHIVES[program], ":all:", scratch), suite)
        if program == "sqlalchemy":
            for path, pattern, put in SQLALCHEMY_EDITS:
                text = (suite / path).read_text()
                edited, count = re.subn(pattern, put, text, flags=re.DOTALL)
                if count == 0:
                    raise CannotInstall(f"{path} has no {pattern}")
                (suite / path).write_text(edited)
        else:
            (suite / "tests" / "suite_settings.py").write_text(DJANGO_SETTINGS)
        (suite / "fetched").write_text(mark)
    return suite


class Ours:
    """Addresses of servers that are started anew."""

    def __init__(self, binary, kind, count):
        self.servers = [doors.Server(binary) for _ in range(count)]
        self.addresses = [("127.0.0.1", server.ports[2 if kind == "postgres" else 3]) for server in self.servers]

    def __enter__(self):
        return self.addresses

    def __exit__(self, *_):
        for server in self.servers:
            server.end()


class Theirs:
    """The address of a real server, with empty databases."""

    def __init__(self, python, kind, address):
        host, port = address.rsplit(":", 1)
        self.addresses = [(host, int(port))] * 2
        statements = {
            "postgres": "import sys, psycopg; c = psycopg.connect(host=sys.argv[1], port=sys.argv[2], user='postgres', autocommit=True);"
            "[c.execute(text) for text in ('DROP DATABASE IF EXISTS suites', 'CREATE DATABASE suites')]",
            "mysql": "import sys, pymysql; c = pymysql.connect(host=sys.argv[1], port=int(sys.argv[2]), user='root').cursor();"
            "[c.execute(text) for text in ('DROP DATABASE IF EXISTS suites', 'CREATE DATABASE suites')]",
        }
        quietly([str(python), "-c", statements[kind], host, port])

    def __enter__(self):
        return self.addresses

    def __exit__(self, *_):
        pass


def run_sqlalchemy(suite, python, kind, addresses, test_filter):
    """Returns outcome and text by test."""
    host, port = addresses[0]
    if kind == "postgres":
        # The suite does not make them by itself.
        statements = "import sys, psycopg; c = psycopg.connect(host=sys.argv[1], port=sys.argv[2], user='postgres', dbname='suites', autocommit=True);" \
            "[c.execute('CREATE SCHEMA IF NOT EXISTS ' + name) for name in ('test_schema', 'test_schema_2')]"
        quietly([str(python), "-c", statements, host, str(port)])
    url = f"postgresql+psycopg://postgres@{host}:{port}/suites" if kind == "postgres" else f"mysql+pymysql://root@{host}:{port}/suites?charset=utf8mb4"
    with tempfile.TemporaryDirectory(prefix="suite-") as scratch:
        report = pathlib.Path(scratch) / "report.xml"
        # Traces in pytest's own style cost a second each: it reads the whole source of every function in them.
        command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--dropfirst", "--tb=native", "--maxfail=100000"]
        command += [f"--junitxml={report}", f"--dburi={url}"]
        command += SQLALCHEMY_TESTS[kind] + (["-k", " or ".join(test_filter)] if test_filter else [])
        with open(pathlib.Path(scratch) / "log", "w+", encoding="utf-8") as log:
            run_group(command, dict(os.environ, PYTHONDONTWRITEBYTECODE="1"), suite, log, SQLALCHEMY_MAX_S)
            log.seek(0)
            text = log.read()
        if not report.exists():
            return {"as a whole": ("failed", text[-2000:])}
        results = {}
        for case in xml.etree.ElementTree.parse(report).iter("testcase"):
            # The name of a test has the version of the server in it.
            test = re.sub(r"(postgresql|mysql|mariadb)\+\w+?_[\d_]+", "server", f"{case.get('classname')}.{case.get('name')}")
            trouble = case.find("failure") if case.find("failure") is not None else case.find("error")
            if trouble is not None:
                results[test] = ("failed", trouble.text or "")
            else:
                results.setdefault(test, ("skipped" if case.find("skipped") is not None else "passed", ""))
        return results


def run_django(suite, python, kind, addresses, folder, is_kept):
    """Runs one folder of the tests. Returns outcome and text by test."""
    engine = {"postgres": "postgresql", "mysql": "mysql"}[kind]
    databases = {}
    for alias, (host, port) in zip(("default", "other"), addresses):
        # With --keepdb the database of the tests may be the one that there is.
        name = "postgres" if is_kept and kind == "postgres" else f"suite_{alias}"
        databases[alias] = {
            "ENGINE": f"django.db.backends.{engine}", "HOST": host, "PORT": port, "USER": "postgres" if kind == "postgres" else "root",
            "NAME": "postgres" if kind == "postgres" else "suites", "TEST": {"NAME": name, "CHARSET": "utf8mb4" if kind == "mysql" else None},
        }
    with tempfile.TemporaryDirectory(prefix="suite-") as scratch:
        report = pathlib.Path(scratch) / "report.json"
        environment = dict(
            os.environ, SUITE_DATABASES=json.dumps(databases), SUITE_REPORT=str(report), PYTHONDONTWRITEBYTECODE="1", PYTHONWARNINGS="ignore",
            SUITE_TIME_ZONE="UTC" if kind == "postgres" else "America/Chicago",
        )
        command = [str(python), "runtests.py", "--settings=suite_settings", "--parallel=1", "--noinput", *(["--keepdb"] if is_kept else []), folder]
        with open(pathlib.Path(scratch) / "log", "w+", encoding="utf-8") as log:
            run_group(command, environment, suite / "tests", log)
            log.seek(0)
            text = log.read()
        if not report.exists():
            return {f"{folder} as a whole": ("failed", text[-3000:])}
        return {test: tuple(outcome) for test, outcome in json.loads(report.read_text()).items()}


def run_suite(program, kind, python, directory, options, address):
    """Runs a suite against the server, or against a real one that is at an address. Returns outcome and text by test."""
    suite = fetch(directory, python, program)
    servers = (lambda count: Theirs(python, kind, address)) if address else (lambda count: Ours(options.server, kind, count))
    begun, results = time.monotonic(), {}
    if program == "sqlalchemy":
        with servers(1) as addresses:
            results = run_sqlalchemy(suite, python, kind, addresses, options.filter)
    else:
        for folder in options.filter or DJANGO_TESTS:
            with servers(2) as addresses:
                found = run_django(suite, python, kind, addresses, folder, is_kept=not address)
            say(f"  {folder}: {counts(found)}")
            results.update(found)
    say(f"{program}-{kind} against {address or options.server}: {counts(results)} in {time.monotonic() - begun:.0f} s")
    return results


def cause_of(text):
    """The last line of a trace that names an error."""
    found = re.findall(r"^(?:E +)?([\w.]+(?:Error|Exception|Violation|Warning|Failed)\b[^\n]*)", text, re.MULTILINE)
    return (found[-1] if found else (text.strip().splitlines() or [""])[-1])[:200]


def main():
    names = [f"{program}-{kind}" for program in ARCHIVES for kind in KINDS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", required=True, help="the binary of the server")
    parser.add_argument("--postgres", metavar="HOST:PORT", help="a real PostgreSQL to compare with")
    parser.add_argument("--mysql", metavar="HOST:PORT", help="a real MariaDB or MySQL to compare with")
    parser.add_argument("--only", action="append", choices=names, help="this suite (may be repeated)")
    parser.add_argument("--filter", action="append", help="only these tests: words of `pytest -k`, or folders of Django's tests (may be repeated)")
    parser.add_argument("--json", action="store_true", help="the outcome of every test as JSON instead of the summary")
    options = parser.parse_args()
    directory = clients_dir()
    directory.mkdir(parents=True, exist_ok=True)
    document, is_worse = {}, False
    for name in options.only or names:
        program, kind = name.split("-")
        address = {"postgres": options.postgres, "mysql": options.mysql}[kind]
        try:
            python = python_of(directory)
            here = run_suite(program, kind, python, directory, options, None)
            there = run_suite(program, kind, python, directory, options, address) if address else None
        except CannotInstall as reason:
            print(f"{name}: SKIPPED, it cannot be installed: {reason}", flush=True)
            continue
        wanted = [test for test in sorted({*here, *(there or {})}) if there is None or there.get(test, ("absent",))[0] == "passed"]
        counted = {test: here.get(test, ("absent", "")) for test in wanted}
        failed = {test: text for test, (outcome, text) in counted.items() if outcome == "failed"}
        is_worse |= bool(failed)
        document[name] = {
            "server": counts(here), "real": there and counts(there),
            "tests": {
                test: {"server": here.get(test, ("absent",))[0], "real": there and there.get(test, ("absent",))[0]}
                for test in sorted({*here, *(there or {})})
            },
        }
        if options.json:
            continue
        passed = counts(counted)["passed"]
        print(f"{name}: {passed} of {passed + len(failed)}" + (f" that pass there ({counts(there)})" if there else "") + f"; all: {counts(here)}")
        causes = collections.defaultdict(list)
        for test, text in failed.items():
            causes[cause_of(text)].append(test)
        for cause, tests in sorted(causes.items(), key=lambda item: -len(item[1])):
            print(f"  {len(tests)}: {cause}\n      {tests[0]}")
    if options.json:
        print(json.dumps(document, indent=1))
    return 1 if is_worse else 0


if __name__ == "__main__":
    sys.exit(main())
