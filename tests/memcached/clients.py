#!/usr/bin/env python3
"""Real clients of memcached against a server: its text protocol and the binary one.

    python3 tests/memcached/clients.py 11211 [--login USER PASSWORD]

The clients are installed below $LYCOSA_CLIENTS_DIR, or the target directory, by pip and kept there. What cannot be installed is passed over, and said so.
With a login only the client that can log in is run. The same passes against memcached itself.
"""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
# Pinned: a new version is tried on purpose.
PACKAGES = {"pymemcache": "pymemcache==4.0.0", "bmemcached": "python-binary-memcached==0.31.4"}


def with_pymemcache(port):
    from pymemcache.client.base import Client
    from pymemcache.exceptions import MemcacheClientError, MemcacheServerError

    client = Client(("127.0.0.1", port), default_noreply=False, timeout=10)
    client.flush_all()
    assert client.set("a", b"one") and client.get("a") == b"one"
    assert client.set("flags", b"x", flags=7, expire=1000)
    assert client.add("a", b"two") is False and client.replace("a", b"two")
    assert client.append("a", b"!") and client.prepend("a", b"?") and client.get("a") == b"?two!"
    value, cas = client.gets("a")
    assert client.cas("a", b"three", cas) is True and client.cas("a", b"four", cas) is False
    assert client.cas("none", b"four", cas) is None
    assert client.set_many({f"k{i}": str(i).encode() for i in range(500)}) == []
    assert client.get_many([f"k{i}" for i in range(501)]) == {f"k{i}": str(i).encode() for i in range(500)}
    assert client.delete("k0") and not client.delete("k0") and client.delete_many(["k1", "k2"])
    assert client.incr("k5", 10) == 15 and client.decr("k5", 100) == 0 and client.incr("none", 1) is None
    assert client.touch("a", 100) and not client.touch("none", 100)
    big = bytes(range(256)) * 4000
    assert client.set("big", big) and client.get("big") == big
    try:
        client.set("big", b"x" * (2 << 20))
        raise AssertionError("it is too large")
    except MemcacheServerError:
        pass
    try:
        client.incr("a", 1)
        raise AssertionError("it is no number")
    except MemcacheClientError:
        pass
    assert client.version() == b"1.6.18" and client.stats()[b"threads"] >= 1
    client.set("quiet", b"1", noreply=True)
    client.incr("quiet", 1, noreply=True)
    assert client.get("quiet") == b"2"
    assert client.flush_all() and client.get("a") is None
    client.quit()


def with_bmemcached(port, user=None, password=None):
    import bmemcached

    client = bmemcached.Client((f"127.0.0.1:{port}",), user, password, socket_timeout=10)
    assert client.flush_all()
    assert client.set("a", "one") and client.get("a") == "one"
    assert client.add("a", "two") is False and client.replace("a", "two") and client.replace("none", "x") is False
    value, cas = client.gets("a")
    assert value == "two" and client.cas("a", "three", cas) is True and client.cas("a", "four", cas) is False
    assert client.set_multi({f"k{i}": str(i) for i in range(200)}) == []
    assert client.get_multi([f"k{i}" for i in range(201)]) == {f"k{i}": str(i) for i in range(200)}
    assert client.incr("n", 5, default=10) == 10 and client.incr("n", 5) == 15 and client.decr("n", 100) == 0
    assert client.delete("a") and client.get("a") is None
    assert client.set("compressed", "x" * 100000, compress_level=9) and client.get("compressed") == "x" * 100000
    assert client.delete_multi(["k1", "k2"]) and client.get("k1") is None
    assert list(client.stats().values())[0]
    client.disconnect_all()


def main():
    port, login = sys.argv[1], sys.argv[3:5]
    if os.environ.get("LYCOSA_CLIENT"):
        name = os.environ["LYCOSA_CLIENT"]
        with_pymemcache(int(port)) if name == "pymemcache" else with_bmemcached(int(port), *login)
        print(f"{name}: ok")
        return 0
    root = os.environ.get("LYCOSA_CLIENTS_DIR") or pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or HERE.parent.parent / "target") / "clients"
    failed = 0
    for name, package in PACKAGES.items():
        if login and name != "bmemcached":
            continue
        environment = pathlib.Path(root) / package.replace("==", "-")
        python = environment / "bin" / "python"
        if not (environment / "installed").exists():
            try:
                subprocess.run([sys.executable, "-m", "venv", "--clear", environment], check=True, capture_output=True)
                install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]
                subprocess.run(install, check=True, capture_output=True)
                (environment / "installed").touch()
            except (OSError, subprocess.CalledProcessError) as error:
                print(f"{name}: SKIPPED, it cannot be installed: {error}")
                continue
        done = subprocess.run([python, __file__, *sys.argv[1:]], env=dict(os.environ, LYCOSA_CLIENT=name), timeout=120)
        failed += done.returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
