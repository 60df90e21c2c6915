"""A list of named checks: each is run, each is reported, the exit code tells whether all held."""

import asyncio
import inspect
import sys
import traceback

CHECKS = []


def check(function):
    """Marks a function (or coroutine) as a check; its name says what must hold."""
    CHECKS.append(function)
    return function


def equal(got, expected):
    """Fails with both values."""
    if got != expected:
        raise AssertionError(f"got {got!r}, expected {expected!r}")


def _report(function, error):
    print(f"  {'FAILED' if error else 'ok':6} {function.__name__.replace('_', ' ')}", flush=True)
    if error:
        print("".join(traceback.format_exception(error)), flush=True)


def run(*arguments):
    """Runs all checks and ends the process."""
    failures = 0
    for function in CHECKS:
        error = None
        try:
            result = function(*arguments)
            if inspect.iscoroutine(result):
                asyncio.run(result)
        except Exception as caught:  # pylint: disable=broad-except
            error = caught
        failures += error is not None
        _report(function, error)
    sys.exit(1 if failures else 0)
