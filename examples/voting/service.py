#!/usr/bin/env python3
"""The voting service: a database, PHP-FPM and nginx, started together in a directory of their own.

    service.py run     starts everything and prints the address; Ctrl-C stops it
    service.py load    runs wrk against it, beside the same service on Tarantool and on no database, and draws what took the time

Nothing is installed and nothing outside of the directory is touched. What is missing is said.
"""

import argparse
import glob
import json
import os
import pwd
import secrets
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TICKS = os.sysconf('SC_CLK_TCK')
PHP_CHILDREN = 16
START_SECONDS = 60

NEEDED = {
    'nginx': ('nginx', 'nginx-light'),
    'php-fpm': ('php-fpm', 'php-fpm'),
    'php': ('php', 'php-cli'),
    'wrk': ('wrk', 'wrk'),
    'tarantool': ('tarantool', 'tarantool'),
    'redis-server': ('redis-server', 'redis-server'),
}


class Missing(Exception):
    """A program that is not installed."""


def find_program(name):
    """The path of a program; those of the system's administrator are looked for, too."""
    path = os.environ.get('PATH', '') + ':/usr/sbin:/usr/local/sbin:/sbin'
    found = shutil.which(name, path=path)
    if found is None and name == 'php-fpm':
        # Debian's has its version in the name.
        versions = sorted(p for d in path.split(':') if d for p in glob.glob(os.path.join(d, 'php-fpm[0-9]*')))
        found = versions[-1] if versions else None
    return found


def need(*names):
    """Paths of programs; names all that are missing, with how to get them."""
    found = {name: find_program(name) for name in names}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        raise Missing('not installed: %s\n  on Debian: apt-get install %s' % (
            ', '.join(NEEDED[name][0] for name in missing), ' '.join(NEEDED[name][1] for name in missing)))
    return found


def find_lycosa(given=None):
    """The server's binary: the one that was named, else the one that was built."""
    for path in [given] if given else [os.path.join(ROOT, 'target', kind, 'lycosa') for kind in ('release', 'debug')]:
        if os.path.exists(path):
            return os.path.abspath(path)
    raise Missing('there is no %s: `make release` builds the server' % (given or 'target/release/lycosa'))


def has_php_redis(php):
    return 'redis' in subprocess.run([php, '-m'], capture_output=True, text=True).stdout.split()


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def cpu_seconds(pid):
    """Processor time of a process and its threads so far."""
    try:
        with open('/proc/%d/stat' % pid) as f:
            fields = f.read().rsplit(')', 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def children_of(pid):
    try:
        with open('/proc/%d/task/%d/children' % (pid, pid)) as f:
            return [int(child) for child in f.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


class Service:
    """One nginx, one PHP-FPM and one database (or none)."""

    def __init__(self, directory, database='lycosa', binary=None, store='tarantool', wal_mode='fsync', connect='kept', port=None, stickers=1024,
                 session_seconds=24 * 3600, add_sessions=0):
        programs = need('nginx', 'php-fpm')
        self.nginx, self.php_fpm = programs['nginx'], programs['php-fpm']
        self.directory = directory
        self.database = database
        self.store = 'none' if database == 'none' else store
        self.wal_mode = wal_mode
        self.connect = connect
        self.port = port or free_port()
        self.database_port = free_port()
        self.settings = {'STICKERS': stickers, 'SESSION_SECONDS': session_seconds, 'ADD_SESSIONS': add_sessions}
        self.password = '' if self.store == 'redis' and database == 'lycosa' else secrets.token_urlsafe(18)
        self.processes = {}
        self.binary = None
        if database == 'lycosa':
            self.binary = find_lycosa(binary)
        elif database == 'redis':
            self.binary = need('redis-server')['redis-server']
        elif database == 'tarantool':
            self.binary = need('tarantool')['tarantool']
        if self.store == 'redis' and not has_php_redis(need('php')['php']):
            raise Missing('PHP has no extension `redis`\n  on Debian: apt-get install php-redis')
        os.makedirs(directory, exist_ok=True)
        self.web = os.path.join(HERE, 'web')
        self.user = None
        if os.geteuid() == 0:
            # Neither nginx nor PHP serve as root, and the user that they serve as may not be able to read where this file lies.
            names = {entry.pw_name for entry in pwd.getpwall()}
            self.user = 'www-data' if 'www-data' in names else 'nobody'
            self.web = os.path.join(directory, 'web')
            shutil.rmtree(self.web, ignore_errors=True)
            shutil.copytree(os.path.join(HERE, 'web'), self.web)
            for path in [directory, self.web] + glob.glob(self.web + '/*'):
                os.chmod(path, 0o755 if os.path.isdir(path) else 0o644)
            # The directory above may be a temporary one, which is made for its owner alone.
            if os.path.dirname(directory).startswith(tempfile.gettempdir() + os.sep):
                os.chmod(os.path.dirname(directory), 0o711)
        self.address = 'http://127.0.0.1:%d' % self.port

    # Files that are made for this run.

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, text, mode=0o600):
        with open(self.path(name), 'w') as f:
            f.write(text)
        os.chmod(self.path(name), mode)
        return self.path(name)

    def write_php(self):
        user = 'user = %s\ngroup = %s\nlisten.owner = %s\n' % (self.user, self.group(), self.user) if self.user else ''
        environment = {
            'VOTING_STORE': self.store,
            'VOTING_ADDRESS': '127.0.0.1:%d' % self.database_port,
            'VOTING_PASSWORD': self.password,
            'VOTING_CONNECT': self.connect,
            'VOTING_SESSION_SECONDS': self.settings['SESSION_SECONDS'],
        }
        return self.write('php-fpm.conf', '''[global]
error_log = {log}
daemonize = no
[voting]
{user}listen = {socket}
pm = static
pm.max_children = {children}
catch_workers_output = yes
decorate_workers_output = no
clear_env = yes
php_admin_value[opcache.validate_timestamps] = {validate}
php_admin_value[redis.pconnect.echo_check_liveness] = 0
php_admin_value[display_errors] = 0
php_admin_value[log_errors] = 1
php_admin_value[memory_limit] = 32M
php_admin_value[max_execution_time] = 20
{environment}
'''.format(log=self.path('php.log'), user=user, socket=self.path('php.sock'), children=PHP_CHILDREN,
           # Whoever works on the pages sees them at once; a copy does not change.
           validate=0 if self.user else 1,
           environment='\n'.join('env[%s] = "%s"' % item for item in environment.items() if item[1] != '')))

    def group(self):
        import grp
        return grp.getgrgid(pwd.getpwnam(self.user).pw_gid).gr_name

    def write_nginx(self):
        temporary = ''.join('    %s_temp_path %s;\n' % (kind, self.path('nginx-' + kind)) for kind in (
            'client_body', 'fastcgi', 'proxy', 'uwsgi', 'scgi'))
        return self.write('nginx.conf', '''daemon off;
{user}worker_processes 1;
pid {pid};
error_log {log} warn;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    server_tokens off;
    types {{ text/css css; image/svg+xml svg; }}
{temporary}    client_max_body_size 4k;
    client_body_timeout 10s;
    client_header_timeout 10s;
    send_timeout 10s;
    keepalive_timeout 30s;
    keepalive_requests 1000000;
    gzip on;
    gzip_min_length 1024;
    server {{
        listen 127.0.0.1:{port};
        location = /style.css {{ root {web}; expires 1h; }}
        location = /icon.svg {{ root {web}; expires 1h; }}
        location / {{
            # Not kept: a child of PHP serves nobody else while somebody keeps a connection to it, and there are more visitors than children.
            fastcgi_pass unix:{socket};
            fastcgi_param SCRIPT_FILENAME {web}/index.php;
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param REQUEST_URI $request_uri;
            fastcgi_param QUERY_STRING $query_string;
            fastcgi_param CONTENT_TYPE $content_type;
            fastcgi_param CONTENT_LENGTH $content_length;
            fastcgi_param HTTPS $https if_not_empty;
        }}
    }}
}}
'''.format(user='user %s %s;\n' % (self.user, self.group()) if self.user else '', pid=self.path('nginx.pid'), log=self.path('nginx.log'),
           temporary=temporary, socket=self.path('php.sock'), port=self.port, web=self.web), 0o644)

    # Processes.

    def spawn(self, name, command, **more):
        log = open(self.path(name + '.out'), 'ab')
        self.processes[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **more)
        log.close()

    def start_database(self):
        data = self.path('data')
        os.makedirs(data, exist_ok=True)
        listen = '127.0.0.1:%d' % self.database_port
        if self.database == 'none':
            return
        if self.database == 'redis':
            self.spawn('database', [self.binary, '--port', str(self.database_port), '--bind', '127.0.0.1', '--dir', data, '--save', '',
                                    '--requirepass', self.password,
                                    '--appendonly', 'yes' if self.wal_mode == 'fsync' else 'no', '--appendfsync', 'always'])
        elif self.store == 'redis':
            # A door at this machine alone has a user of its own, without a password, who may do nothing but use its spaces.
            self.spawn('database', [self.binary, 'serve', '--listen', 'redis://' + listen, '--work-dir', data, '--wal-mode', self.wal_mode])
        else:
            environment = dict(os.environ, LISTEN=listen, WORK_DIR=data, WAL_MODE=self.wal_mode, WEB_PASSWORD=self.password, MEMTX_MEMORY=str(1 << 30),
                               **{name: str(value) for name, value in self.settings.items()})
            self.spawn('database', [self.binary, os.path.join(HERE, 'app.lua')], env=environment)
        # Sessions of nobody are added once.
        self.settings['ADD_SESSIONS'] = 0

    def start(self):
        try:
            self.start_database()
            self.spawn('php', [self.php_fpm, '--nodaemonize', '--fpm-config', self.write_php()])
            self.spawn('nginx', [self.nginx, '-p', self.directory, '-c', self.write_nginx(), '-e', self.path('nginx.log')])
            self.wait()
            if self.store == 'redis':
                php = need('php')['php']
                subprocess.run([php, os.path.join(HERE, 'add_stickers.php')], check=True, env=dict(
                    os.environ, VOTING_ADDRESS='127.0.0.1:%d' % self.database_port, VOTING_PASSWORD=self.password))
        except BaseException:
            self.stop()
            raise
        return self

    def wait(self, seconds=START_SECONDS):
        """Until the first page is there; what went wrong is said with the last lines of its log."""
        end = time.monotonic() + seconds + self.settings['ADD_SESSIONS'] / 10000
        status = 'no answer'
        while time.monotonic() < end:
            for name, process in self.processes.items():
                if process.poll() is not None:
                    raise RuntimeError('%s ended with %s\n%s' % (name, process.returncode, self.last_lines()))
            try:
                with urllib.request.urlopen(self.address + '/best', timeout=10) as answer:
                    if answer.status == 200:
                        return
            except urllib.error.HTTPError as error:
                status = error.code
            except OSError as error:
                status = error
            time.sleep(0.05)
        raise RuntimeError('the service does not come up: %s\n%s' % (status, self.last_lines()))

    def last_lines(self):
        text = ''
        for path in sorted(glob.glob(self.path('*.out')) + glob.glob(self.path('*.log'))):
            with open(path, errors='replace') as f:
                lines = f.readlines()[-8:]
            text += ''.join('%s: %s' % (os.path.basename(path), line) for line in lines)
        return text

    def kill_database(self):
        process = self.processes.pop('database')
        process.kill()
        process.wait()

    def stop(self):
        for name in ('nginx', 'php', 'database'):
            process = self.processes.pop(name, None)
            if process is None or process.poll() is not None:
                continue
            process.send_signal(signal.SIGQUIT if name == 'php' else signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def cpu(self):
        """Processor time so far of nginx, PHP and the database, in seconds."""
        used = {}
        for name, process in self.processes.items():
            used[name] = cpu_seconds(process.pid) + sum(cpu_seconds(child) for child in children_of(process.pid))
        return used

    def votes(self):
        """What the page `about` says; it may be a second old."""
        time.sleep(1.1)
        with urllib.request.urlopen(self.address + '/about', timeout=10) as answer:
            page = answer.read().decode()
        return int(page.split('<dt>votes</dt><dd>')[1].split('<')[0].replace(',', ''))


# run

def run(arguments):
    directory = arguments.directory or tempfile.mkdtemp(prefix='voting-')
    service = Service(os.path.abspath(directory), database='lycosa', binary=arguments.server, store=arguments.store, wal_mode=arguments.wal_mode,
                      port=arguments.port or None, session_seconds=arguments.session_seconds)
    service.start()
    print('The voting service is at %s' % service.address)
    print('Its files are in %s, database process %d. Try `kill -9 %d` between two votes: it is started again. Ctrl-C stops everything.' % (
        directory, service.processes['database'].pid, service.processes['database'].pid), flush=True)
    try:
        while True:
            time.sleep(0.2)
            for name, process in list(service.processes.items()):
                if process.poll() is None:
                    continue
                if name != 'database':
                    raise RuntimeError('%s ended with %s\n%s' % (name, process.returncode, service.last_lines()))
                print('the database ended (%s); starting it again' % process.returncode, flush=True)
                service.start_database()
                time.sleep(0.5)
    except KeyboardInterrupt:
        print('stopping')
    finally:
        service.stop()
        if not arguments.directory:
            shutil.rmtree(directory, ignore_errors=True)


# load

CONTENDERS = {
    'lycosa': {'database': 'lycosa'},
    'lycosa-million': {'database': 'lycosa', 'add_sessions': 1000000},
    'lycosa-redis': {'database': 'lycosa', 'store': 'redis'},
    'tarantool': {'database': 'tarantool'},
    'tarantool-million': {'database': 'tarantool', 'add_sessions': 1000000},
    'redis': {'database': 'redis', 'store': 'redis'},
    'stub': {'database': 'none'},
}


def one_run(service, seconds, connections, wrk):
    before_votes = service.votes()
    before = service.cpu()
    output = subprocess.run([wrk, '-t', str(connections), '-c', str(connections), '-d', '%ds' % seconds, '-s', os.path.join(HERE, 'load.lua'),
                             service.address], capture_output=True, text=True, timeout=seconds + 60)
    after = service.cpu()
    lines = [line for line in output.stdout.splitlines() if line.startswith('{')]
    if not lines:
        raise RuntimeError('wrk failed: %s%s' % (output.stdout, output.stderr))
    result = json.loads(lines[-1])
    if result['wrong'] or result['socket_errors']:
        raise RuntimeError('%d answers were wrong (%s), %d connections failed (%s)\n%s' % (
            result['wrong'], result['first_wrong'], result['socket_errors'], result['of_them'], service.last_lines()))
    if service.database != 'none':
        votes = service.votes() - before_votes
        # Votes whose answers wrk did not wait for at its end count as well.
        if not result['counted'] <= votes <= result['counted'] + connections:
            raise RuntimeError('%d votes were acknowledged, %d are there' % (result['counted'], votes))
    used = {name: after[name] - before[name] for name in after}
    result['per_second'] = result['requests'] / result['seconds']
    result['cpu_us'] = {name: used.get(name, 0.0) / result['requests'] * 1e6 for name in ('nginx', 'php', 'database')}
    return result


def load(arguments):
    wrk = need('wrk')['wrk']
    names = arguments.contenders.split(',')
    for name in names:
        if name not in CONTENDERS:
            raise Missing('there is no contender %s; there are %s' % (name, ', '.join(CONTENDERS)))
    directory = tempfile.mkdtemp(prefix='voting-load-')
    services = {}
    rounds = {name: [] for name in names}
    try:
        for name in names:
            say('starting %s' % name)
            services[name] = Service(os.path.join(directory, name), binary=arguments.server, wal_mode=arguments.wal_mode,
                                     connect=arguments.connect, **CONTENDERS[name])
            services[name].start()
            one_run(services[name], 1, arguments.connections, wrk)
        for number in range(arguments.rounds):
            for name in names:
                result = one_run(services[name], arguments.seconds, arguments.connections, wrk)
                rounds[name].append(result)
                say('round %d of %d: %-16s %8.0f requests/s, database %.1f us a request' % (
                    number + 1, arguments.rounds, name, result['per_second'], result['cpu_us']['database']))
    finally:
        for service in services.values():
            service.stop()
        shutil.rmtree(directory, ignore_errors=True)
    summary = {name: summarize(results) for name, results in rounds.items()}
    settings = {'connections': arguments.connections, 'seconds': arguments.seconds, 'rounds': arguments.rounds, 'wal_mode': arguments.wal_mode,
                'connect': arguments.connect, 'processors': os.cpu_count()}
    if arguments.chart:
        with open(arguments.chart, 'w') as f:
            f.write(draw(summary))
        say('wrote %s' % arguments.chart)
    if arguments.json:
        json.dump({'settings': settings, 'results': summary, 'rounds': rounds}, sys.stdout, indent=1)
        print()
        return
    print('%d connections, %d s, median of %d rounds by turns; log of Lycosa and Tarantool: %s; connections to the database: %s' % (
        arguments.connections, arguments.seconds, arguments.rounds, arguments.wal_mode, arguments.connect))
    print('%-18s %10s %8s %8s %8s  %s' % ('', 'requests/s', 'p50 ms', 'p99 ms', 'max ms', 'CPU us a request: nginx + PHP + database (share)'))
    for name, result in summary.items():
        cpu = result['cpu_us']
        print('%-18s %10.0f %8.2f %8.2f %8.2f  %6.1f + %6.1f + %6.1f (%.1f %%)' % (
            name, result['per_second'], result['p50_ms'], result['p99_ms'], result['max_ms'], cpu['nginx'], cpu['php'], cpu['database'],
            100 * result['database_share']))


def summarize(results):
    def median(value):
        return statistics.median(value(result) for result in results)
    cpu = {name: median(lambda r: r['cpu_us'][name]) for name in ('nginx', 'php', 'database')}
    return {
        'per_second': median(lambda r: r['per_second']),
        'p50_ms': median(lambda r: r['p50_ms']),
        'p99_ms': median(lambda r: r['p99_ms']),
        'max_ms': max(r['max_ms'] for r in results),
        'cpu_us': cpu,
        'database_share': cpu['database'] / (sum(cpu.values()) or 1),
    }


COLOURS = {'nginx': '#8a94a6', 'php': '#8f7bd8', 'database': '#e4572e'}


def draw(summary):
    """A bar a contender: processor time of one request, by who took it."""
    width, left, right, height = 860, 170, 230, 46
    longest = max(sum(result['cpu_us'].values()) for result in summary.values()) or 1
    scale = (width - left - right) / longest
    bars = []
    for number, (name, result) in enumerate(summary.items()):
        y = 70 + number * height
        x = float(left)
        bars.append('<text x="%d" y="%d" text-anchor="end">%s</text>' % (left - 12, y + 19, name))
        for part in ('nginx', 'php', 'database'):
            length = result['cpu_us'][part] * scale
            bars.append('<rect x="%.1f" y="%d" width="%.1f" height="28" fill="%s"><title>%s: %.1f us</title></rect>' % (
                x, y, length, COLOURS[part], part, result['cpu_us'][part]))
            x += length
        bars.append('<text x="%.1f" y="%d">%.0f requests/s</text><text x="%.1f" y="%d" class="small">database %.0f us, %.0f %%; p99 %.0f ms</text>' % (
            x + 10, y + 12, result['per_second'], x + 10, y + 28, result['cpu_us']['database'], 100 * result['database_share'], result['p99_ms']))
    legend = ''.join('<rect x="%d" y="38" width="14" height="14" fill="%s"/><text x="%d" y="50" class="small">%s</text>' % (
        left + 110 * i, COLOURS[part], left + 20 + 110 * i, {'php': 'PHP'}.get(part, part)) for i, part in enumerate(COLOURS))
    return ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="14">'
            '<style>.small{font-size:12px;fill:#666}</style><rect width="100%%" height="100%%" fill="#fff"/>'
            '<text x="%d" y="24" font-weight="bold">Processor time of one request</text>%s%s</svg>\n') % (
                width, 84 + len(summary) * height, left, legend, ''.join(bars))


def say(text):
    print(text, file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest='verb', required=True)
    verb = verbs.add_parser('run', help='starts the service and prints its address')
    verb.add_argument('--port', type=int, default=0, help='of nginx, at 127.0.0.1; any free one if not given')
    verb.add_argument('--directory', help='where all files go and stay; a temporary one if not given')
    verb.add_argument('--store', choices=('tarantool', 'redis'), default='tarantool', help='protocol between PHP and the database')
    verb.add_argument('--session-seconds', type=int, default=24 * 3600, help='how long a session lives (86400)')
    verb.set_defaults(work=run)
    verb = verbs.add_parser('load', help='measures it with wrk')
    verb.add_argument('--contenders', default='lycosa,tarantool,stub', help='of %s (lycosa,tarantool,stub)' % ', '.join(CONTENDERS))
    verb.add_argument('--connections', type=int, default=50, help='of wrk (50)')
    verb.add_argument('--seconds', type=int, default=10, help='of one run (10)')
    verb.add_argument('--rounds', type=int, default=5, help='by turns; medians are shown (5)')
    verb.add_argument('--connect', choices=('kept', 'each'), default='kept', help='whether PHP keeps its connection or makes one for each request (kept)')
    verb.add_argument('--chart', help='writes an SVG with the shares of the processor time')
    verb.add_argument('--json', action='store_true', help='results as JSON')
    verb.set_defaults(work=load)
    for verb in verbs.choices.values():
        verb.add_argument('--server', help="Lycosa's binary (target/release/lycosa)")
        verb.add_argument('--wal-mode', choices=('fsync', 'write', 'none'), default='fsync', help='of the log (fsync)')
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        arguments.work(arguments)
    except Missing as missing:
        sys.exit(str(missing))
    except RuntimeError as error:
        sys.exit('failed: %s' % error)


if __name__ == '__main__':
    main()
