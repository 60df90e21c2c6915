#!/usr/bin/env python3
"""WordPress, unchanged, on Lycosa: installs it, writes posts and comments, searches, uploads, looks at its administration.

    python3 examples/wordpress/try.py --server target/release/lycosa
    python3 examples/wordpress/try.py --server target/release/lycosa --keep     and leaves it there for a browser

It wants PHP with the extension mysqli, and WordPress: Debian has both (`apt-get install wordpress php-cli php-mysql`).
"""

import argparse
import base64
import http.cookiejar
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

START_MAX_S = 30
CONFIGURATION = """<?php
define('DB_NAME', 'wordpress'); define('DB_USER', 'root'); define('DB_PASSWORD', ''); define('DB_HOST', '127.0.0.1:%d');
define('DB_CHARSET', 'utf8mb4'); define('DB_COLLATE', '');
%s
$table_prefix = 'wp_';
define('WP_DEBUG', true); define('WP_DEBUG_DISPLAY', false); define('WP_DEBUG_LOG', '%s');
define('WP_HTTP_BLOCK_EXTERNAL', true); define('DISABLE_WP_CRON', true);
if (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');
require_once ABSPATH . 'wp-settings.php';
"""
KEYS = ("AUTH_KEY", "SECURE_AUTH_KEY", "LOGGED_IN_KEY", "NONCE_KEY", "AUTH_SALT", "SECURE_AUTH_SALT", "LOGGED_IN_SALT", "NONCE_SALT")
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PAGES = ("", "edit.php", "edit-comments.php", "upload.php", "users.php", "plugins.php", "themes.php", "options-general.php", "edit-tags.php?taxonomy=category")
PASSWORD = "a password of some length"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port, process, what):
    deadline = time.monotonic() + START_MAX_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{what} did not start")
            time.sleep(0.05)


class Site:
    """The pages of a site, for one visitor."""

    def __init__(self, port):
        self.base = f"http://127.0.0.1:{port}/"
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))

    def get(self, path, form=None, body=None, headers=None):
        if form is not None:
            body = urllib.parse.urlencode(form).encode()
        request = urllib.request.Request(self.base + path, data=body, headers=headers or {})
        try:
            with self.opener.open(request, timeout=60) as answer:
                return answer.read().decode(errors="replace")
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{path}: {error.code}\n{error.read().decode(errors='replace')[:2000]}") from error


def expect(part, wanted, text):
    if wanted not in text:
        raise SystemExit(f"{part}: FAILED, '{wanted}' is not in:\n{text[:2000]}")
    print(f"  {part}", flush=True)


def visit(port):
    site = Site(port)
    install = {
        "weblog_title": "Spiders", "user_name": "admin", "admin_password": PASSWORD, "admin_password2": PASSWORD, "pw_weak": "1",
        "admin_email": "admin@example.org", "Submit": "Install",
    }
    expect("installed", "Success!", site.get("wp-admin/install.php?step=2", install))
    expect("front page", "<title>Spiders", site.get(""))
    site.get("wp-login.php")
    login = {"log": "admin", "pwd": PASSWORD, "wp-submit": "Log In", "testcookie": "1"}
    expect("logged in", "Dashboard", site.get("wp-login.php", login))
    own = {"X-WP-Nonce": site.get("wp-admin/admin-ajax.php?action=rest-nonce")}
    post = {"title": "Wolf spiders", "content": "They hunt, é, and build no webs.", "status": "publish"}
    made = json.loads(site.get("?rest_route=/wp/v2/posts", post, headers=own))
    expect("post", "publish", made["status"])
    expect("category", "Lycosidae", site.get("?rest_route=/wp/v2/categories", {"name": "Lycosidae"}, headers=own))
    site.get(f"?rest_route=/wp/v2/posts/{made['id']}", {"content": "They hunt by night, é."}, headers=own)
    expect("changed post", "by night, é", site.get(f"?p={made['id']}"))
    site.get("wp-comments-post.php", {"comment": "Do they bite?", "comment_post_ID": str(made["id"])})
    expect("comment", "Do they bite?", site.get(f"?p={made['id']}"))
    expect("search", "Wolf spiders", site.get("?s=NIGHT"))
    expect("search for nothing", "nothing", site.get("?s=nosuchword").lower())
    upload = dict(own, **{"Content-Disposition": "attachment; filename=spider.png", "Content-Type": "image/png"})
    expect("picture", "spider", site.get("?rest_route=/wp/v2/media", body=base64.b64decode(PICTURE), headers=upload))
    for page in PAGES:
        expect(f"wp-admin/{page}", "Spiders", site.get(f"wp-admin/{page}"))
    site.get(f"?rest_route=/wp/v2/posts/{made['id']}&force=true", headers=dict(own, **{"X-HTTP-Method-Override": "DELETE"}), form={})
    expect("deleted post", "nothing", site.get("?s=NIGHT").lower())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--server", required=True, help="binary of the server")
    parser.add_argument("--wordpress", default="/usr/share/wordpress", help="directory of WordPress, which is copied")
    parser.add_argument("--keep", action="store_true", help="leave it running until a key is pressed")
    options = parser.parse_args()
    if not shutil.which("php") or not pathlib.Path(options.wordpress, "wp-admin").is_dir():
        raise SystemExit("PHP or WordPress is not there: apt-get install wordpress php-cli php-mysql")
    with tempfile.TemporaryDirectory(prefix="wordpress-") as place:
        place = pathlib.Path(place)
        site, log = place / "site", place / "wordpress.log"
        shutil.copytree(options.wordpress, site)
        rows, pages = free_port(), free_port()
        (site / "wp-config.php").unlink(missing_ok=True)
        keys = "".join(f"define('{key}', '{key} of a trial'); " for key in KEYS)
        (site / "wp-config.php").write_text(CONFIGURATION % (rows, keys, log))
        command = [str(pathlib.Path(options.server).resolve()), "serve", "--no-console", "--work-dir", str(place / "data")]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        server = subprocess.Popen([*command, "--listen", f"mysql://127.0.0.1:{rows}"], **quiet)
        web = subprocess.Popen(["php", "-S", f"127.0.0.1:{pages}", "-t", str(site)], cwd=site, **quiet)
        try:
            wait_for(rows, server, "the server")
            wait_for(pages, web, "PHP")
            visit(pages)
            errors = [line for line in (log.read_text() if log.exists() else "").splitlines() if "database error" in line]
            if errors:
                raise SystemExit("WordPress has met errors of the database:\n" + "\n".join(errors[:20]))
            print("  no error of the database in WordPress' log")
            if options.keep:
                input(f"http://127.0.0.1:{pages}/ (admin, '{PASSWORD}'); return ends it ")
        finally:
            web.kill()
            server.kill()
            web.wait()
            server.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
