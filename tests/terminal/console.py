"""The console in a real terminal: each function is a session that a person may have. Run: console.py BINARY"""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import termios
import time

LYCOSA = sys.argv[1]
# A session that has not got so far by then never will.
WAIT_MAX = 60


class Terminal:
    """A process with a terminal of its own."""

    def __init__(self, arguments, directory, environment=None, in_background=False):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(directory)
            os.environ['HOME'] = directory
            os.environ['TERM'] = 'xterm'
            os.environ.update(environment or {})
            if in_background:
                # As a shell does for `lycosa ... &`: a process group that the terminal does not belong to.
                child = os.fork()
                if child != 0:
                    os.waitpid(child, os.WUNTRACED)
                    os._exit(7)
                os.setpgid(0, 0)
            os.execv(LYCOSA, [LYCOSA] + arguments)
        started.add(self.pid)
        self.text = ''
        self.seen = 0

    def expect(self, pattern):
        """Waits for a text behind what was expected last."""
        deadline = time.monotonic() + WAIT_MAX
        while True:
            found = re.search(pattern, self.text[self.seen:], re.S)
            if found:
                self.seen += found.end()
                return found
            left = deadline - time.monotonic()
            readable = left > 0 and select.select([self.fd], [], [], left)[0]
            try:
                data = os.read(self.fd, 65536) if readable else b''
            except OSError:
                data = b''
            if not data:
                raise AssertionError(f'expected {pattern!r} in:\n{self.text[self.seen:]!r}\nall:\n{self.text}')
            self.text += data.decode('utf-8', 'replace')

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self):
        """Waits for the end of the process; its status."""
        while True:
            try:
                if not os.read(self.fd, 65536):
                    break
            except OSError:
                break
        status = os.waitpid(self.pid, 0)[1]
        started.discard(self.pid)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)


# Processes that a session has started; those that live at its end are ended.
started = set()


def serve(directory, *more, **how):
    terminal = Terminal(['serve', '--listen', '127.0.0.1:0', '--work-dir', 'data', *more], directory, **how)
    port = terminal.expect(r'connect to 127\.0\.0\.1:(\d+)').group(1)
    return terminal, port


def leave(terminal):
    """Ctrl-D where a line is read: the kernel makes something else of one that is typed ahead."""
    terminal.expect(r'\.\.\..*> ')
    terminal.type('\x04')


def lines_run_one_after_the_other(directory):
    terminal, _ = serve(directory)
    terminal.expect('lycosa> ')
    # Pasted as if typed, before anything of it has run.
    terminal.type("a = 20\nb = 3\na + b\nfor i = 1, 2 do\n  a = a + i\nend\na * 1000\n")
    terminal.expect(r'- 23\b')
    terminal.expect(r'- 23000\b')
    # Pasted in brackets: runs with the next Enter.
    terminal.type('\x1b[200~c = 7\nc + 4\nfunction f()\n  return c * 111\nend\nf()\x1b[201~\n')
    terminal.expect(r'- 11\b')
    terminal.expect(r'- 777\b')
    # Typed while something runs.
    terminal.type("require('fiber').sleep(0.2) return 'slept'\n")
    terminal.type("'typed ' .. 'ahead'\n")
    terminal.expect('- slept')
    terminal.expect('- typed ahead')
    terminal.type('print\n')
    terminal.expect(r"function: (builtin|0x)")
    terminal.type('return {f = f}\n')
    terminal.expect(r"function: 0x")
    terminal.type("error('oops')\n")
    terminal.expect('error.*oops')
    leave(terminal)
    assert terminal.end() == 0, terminal.text


def interrupts_end_nothing(directory):
    terminal, _ = serve(directory)
    terminal.expect('lycosa> ')
    terminal.type('not to be run\x03')
    terminal.expect('lycosa> ')
    terminal.type("print('sleep' .. 'ing') require('fiber').sleep(1e6)\n")
    terminal.expect('sleeping')
    # The terminal's own key, as nothing reads lines now.
    terminal.type('\x03')
    terminal.expect('cancelled')
    terminal.type('6 * 7\n')
    terminal.expect(r'- 42\b')
    terminal.expect('lycosa> ')
    # Bytes that are no text.
    os.write(terminal.fd, b'\xff\xfe\n')
    terminal.expect('lycosa> ')
    terminal.type('6 * 8\n')
    terminal.expect(r'- 48\b')
    terminal.type('\\q\n')
    assert terminal.end() == 0, terminal.text


def help_forms_and_names(directory):
    terminal, _ = serve(directory)
    terminal.expect('lycosa> ')
    for word in ['\\help', 'help', '?']:
        terminal.type(word + '\n')
        terminal.expect('Tab completes')
    terminal.type("s = box.schema.space.create('wolves', {format = {{'id', 'unsigned'}, {'name', 'string'}}})\n")
    terminal.type("s:create_index('primary') s:insert{1, 'grey'} s:insert{2, 'red'} return s:count()\n")
    terminal.expect(r'- 2\b')
    # The names of one's own spaces, in every form, and without those of the system.
    terminal.type('\\spaces\n')
    terminal.expect(r'---\s+- - wolves\s+\.\.\.')
    terminal.type('\\set output lua\n\\spaces\n')
    terminal.expect(r'\{"wolves"\};')
    terminal.type('\\set output table\nbox.space.wo\t:sel\t)\n')
    terminal.expect(r'\| id \| name \|')
    terminal.expect(r'\| 1 +\| grey \|')
    terminal.type('\\set output lua\n{1, a = "b"}\n')
    terminal.expect(r'\{1, a = "b"\};')
    terminal.type('\\set output yaml\n1 + 1\n')
    terminal.expect(r'- 2\b')
    terminal.type("box.schema.user.create('me', {password = 'hidden word'})\n")
    terminal.expect('hidden word')
    leave(terminal)
    assert terminal.end() == 0, terminal.text
    with open(os.path.join(directory, '.lycosa_history')) as history:
        text = history.read()
    assert 'wolves' in text and 'hidden word' not in text, text


def in_the_background_it_serves(directory):
    terminal, port = serve(directory, '--pid-file', 'pid', in_background=True)
    answer = run(['console', port, '--json', '-e', 'return 1'], directory)
    # Guest may not evaluate: what matters is that somebody answers.
    assert answer.returncode == 1 and 'denied' in answer.stderr, answer
    with open(os.path.join(directory, 'pid')) as file:
        pid = int(file.read())
    os.kill(pid, signal.SIGTERM)
    assert terminal.end() == 7, terminal.text
    assert not os.path.exists(os.path.join(directory, 'pid'))


def over_the_network(directory):
    with open(os.path.join(directory, 'init.lua'), 'w') as script:
        script.write("box.schema.user.create('me', {password = 'a b@c', if_not_exists = true})\n"
                     "box.schema.user.grant('me', 'read,write,execute', 'universe', nil, {if_not_exists = true})\n")
    server, port = serve(directory, '--script', 'init.lua', '--no-console')
    # The password is asked for and not shown.
    terminal = Terminal(['console', f'tcp://me@127.0.0.1:{port}'], directory)
    terminal.expect('password of me: ')
    hide(terminal)
    terminal.type('a b@c\n')
    terminal.expect('> ')
    assert 'a b@c' not in terminal.text
    terminal.type("print('x') require('fiber').sleep(1e6)\n")
    terminal.expect('sleep')
    wait_for_run(port, directory)
    terminal.type('\x03')
    terminal.expect('cancelled')
    terminal.type('x = 41\nx + 1\n')
    terminal.expect(r'- 42\b')
    # The server goes and comes again at the same place.
    server.type('\x03')
    server.expect('stopped')
    assert server.end() == 0
    server = Terminal(['serve', '--listen', f'127.0.0.1:{port}', '--work-dir', 'data', '--no-console'], directory)
    server.expect('connect to')
    terminal.type('x, 2 * 3\n')
    terminal.expect('again')
    terminal.expect(r'- 6\b')
    leave(terminal)
    assert terminal.end() == 0
    scripts(port, directory)
    server.type('\x03')
    assert server.end() == 0


def hide(terminal):
    """Waits until what is typed is not shown."""
    deadline = time.monotonic() + WAIT_MAX
    while termios.tcgetattr(terminal.fd)[3] & termios.ECHO:
        assert time.monotonic() < deadline, terminal.text


def wait_for_run(port, directory):
    """Waits until the sleeping statement of the console runs in the server."""
    deadline = time.monotonic() + WAIT_MAX
    source = "local n = 0 for _, f in pairs(require('fiber').info()) do if f.name == 'iproto' then n = n + 1 end end return n"
    while True:
        answer = run(['console', f'me:a%20b%40c@127.0.0.1:{port}', '--json', '-e', source], directory)
        if answer.stdout.strip() == '2':
            return
        assert time.monotonic() < deadline, answer


def run(arguments, directory, text='', password=None):
    environment = dict(os.environ, HOME=directory)
    environment.pop('LYCOSA_PASSWORD', None)
    if password:
        environment['LYCOSA_PASSWORD'] = password
    return subprocess.run([LYCOSA] + arguments, cwd=directory, input=text, capture_output=True, text=True, env=environment,
                          timeout=WAIT_MAX)


def scripts(port, directory):
    me = f'me@127.0.0.1:{port}'

    def check(arguments, stdout, code=0, text=''):
        answer = run(['console', me] + arguments, directory, text, 'a b@c')
        assert (answer.stdout, answer.returncode) == (stdout, code), (arguments, answer)
        return answer.stderr

    with open(os.path.join(directory, 'sum.lua'), 'w') as script:
        script.write("local a = 1\nlocal b = 2\nreturn a + b\n")
    check(['-e', 'y = 5', '-e', 'return y'], '---\n...\n---\n- 5\n...\n')
    check(['--json', '-f', 'sum.lua', '-e', 'return {a = 1}'], '3\n{"a":1}\n')
    check(['--csv', '-e', "return {{1, 'a,b'}, {2, 'say \"x\"'}}"], 'col1,col2\n1,"a,b"\n2,"say ""x"""\n')
    assert 'bad' in check(['--json', '-e', "error('bad')", '-e', 'return 1'], '', 1)
    check(['--json'], '1\n5\n', text='return 1\nif true then\n return 5\nend\n')
    check(['--json', '-f', '-'], '9\n', text='#!shell\nlocal x = 9\nreturn x\n')
    wrong = run(['console', me, '-e', '1'], directory, password='no')
    assert wrong.returncode == 1 and 'credentials' in wrong.stderr, wrong


def nobody_answers(directory):
    """Somebody accepts and says nothing: the console does not wait for ever."""
    import socket
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        listener.listen()
        port = listener.getsockname()[1]
        answer = run(['console', str(port), '--timeout', '0.3', '-e', '1'], directory)
        assert answer.returncode == 1 and 'no answer within 0.3 s' in answer.stderr, answer


def main():
    for session in [lines_run_one_after_the_other, interrupts_end_nothing, help_forms_and_names, in_the_background_it_serves,
                    over_the_network, nobody_answers]:
        with tempfile.TemporaryDirectory() as directory:
            try:
                session(directory)
            finally:
                for pid in started:
                    os.kill(pid, signal.SIGKILL)
        print(f'{session.__name__}: good', flush=True)


main()
