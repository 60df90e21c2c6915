#!/usr/bin/env python3
"""Tests of the voting service: pages, forged and repeated votes, sessions that end, a database that is killed; then all of it as a person sees it, in
Chromium. What cannot be tested here for want of a program is said at the end.

    tests.py [--server BINARY] [name of a test ...]
"""

import argparse
import http.client
import json
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import service

SERVER = None
SKIPPED = []


def missing(*names):
    """What is not there of these, as a text; empty if all are."""
    absent = [name for name in names if service.find_program(name) is None]
    return ', '.join(absent)


class Visitor:
    """A browser without a screen: keeps its cookie, reads the forms."""

    def __init__(self, running, cookie=None):
        self.running = running
        self.cookie = cookie
        self.token = None
        self.status = None
        self.headers = {}
        self.body = ''

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection('127.0.0.1', self.running.port, timeout=30)
        sent = {'Cookie': self.cookie} if self.cookie else {}
        if body is not None:
            sent['Content-Type'] = 'application/x-www-form-urlencoded'
        sent.update(headers or {})
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        self.status, self.headers, self.body = answer.status, dict(answer.getheaders()), answer.read().decode()
        connection.close()
        if 'Set-Cookie' in self.headers:
            self.cookie = self.headers['Set-Cookie'].split(';')[0]
        found = re.search('name="token" value="([^"]*)"', self.body)
        if found:
            self.token = found.group(1)
        return self.status

    def page(self, path='/'):
        return self.ask('GET', path)

    def vote(self, choice=1, token=None, **more):
        """What the answer says of the vote, or its status."""
        self.ask('POST', '/vote', 'token=%s&choice=%s' % (token or self.token, choice), **more)
        return self.headers['Location'].split('said=')[1] if self.status == 303 else self.status

    def stickers(self):
        """Names of the two on the page."""
        return re.findall(r'<span>([^<]*)</span></button>', self.body)


def votes_of(running):
    return running.votes()


class Pages(unittest.TestCase):
    """What the service promises, through HTTP. Subclasses run it on other databases."""

    database = 'lycosa'
    store = 'tarantool'
    needs = ('nginx', 'php-fpm')

    @classmethod
    def setUpClass(cls):
        absent = missing(*cls.needs)
        if absent:
            SKIPPED.append('%s: there is no %s' % (cls.__name__, absent))
            raise unittest.SkipTest('there is no ' + absent)
        cls.directory = tempfile.mkdtemp(prefix='voting-test-')
        try:
            cls.running = cls.start('first')
        except service.Missing as absent:
            SKIPPED.append('%s: %s' % (cls.__name__, absent))
            raise unittest.SkipTest(str(absent))

    @classmethod
    def start(cls, name, **more):
        return service.Service(os.path.join(cls.directory, name), database=cls.database, store=cls.store, binary=SERVER, **more).start()

    @classmethod
    def tearDownClass(cls):
        cls.running.stop()
        shutil.rmtree(cls.directory, ignore_errors=True)

    def visitor(self):
        visitor = Visitor(self.running)
        self.assertEqual(visitor.page(), 200)
        return visitor

    def test_a_vote_counts_once(self):
        before = votes_of(self.running)
        visitor = self.visitor()
        token = visitor.token
        self.assertEqual(visitor.vote(), 'counted')
        self.assertEqual(visitor.vote(token=token), 'before')
        self.assertEqual(visitor.vote(choice=2, token=token), 'before')
        self.assertEqual(votes_of(self.running), before + 1)

    def test_a_vote_that_is_sent_by_many_at_once_counts_once(self):
        visitor = self.visitor()
        results = []
        threads = [threading.Thread(target=lambda: results.append(Visitor(self.running, visitor.cookie).vote(token=visitor.token)))
                   for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(results), ['before'] * 11 + ['counted'])

    def test_what_is_forged_does_not_count(self):
        before = votes_of(self.running)
        visitor, other = self.visitor(), self.visitor()
        self.assertEqual(visitor.vote(token='A' * 22), 'old')
        self.assertEqual(visitor.vote(token=other.token), 'old')
        self.assertEqual(Visitor(self.running).vote(token=visitor.token), 'session')
        number, secret = visitor.cookie.split('=')[1].split('-', 1)
        for cookie in ('%s-%s' % (number, 'A' * 22), '%d-%s' % (int(number) + 1, secret), '-1-' + secret, number, '%s-' % number, '9' * 30 + '-' + secret,
                       number + '-' + secret + 'x', '', "1'--" + secret):
            self.assertEqual(Visitor(self.running, 'voter=' + cookie).vote(token=visitor.token), 'session', cookie)
        # A cookie that is none begins another session and takes nobody's.
        guess = Visitor(self.running, 'voter=%s-%s' % (number, 'A' * 22))
        guess.page()
        self.assertNotEqual(guess.cookie.split('=')[1].split('-')[0], number)
        self.assertEqual(votes_of(self.running), before)
        self.assertEqual(visitor.vote(), 'counted')

    def test_requests_that_no_page_sends_are_refused(self):
        before = votes_of(self.running)
        visitor = self.visitor()
        self.assertEqual(visitor.ask('GET', '/vote'), 405)
        self.assertEqual(visitor.ask('DELETE', '/'), 405)
        token = visitor.token
        for body in ('', 'token=' + token, 'choice=1', 'token=%s&choice=3' % token, 'token=%s&choice=01' % token, 'token[]=%s&choice=1' % token,
                     'token=%s&choice[]=1' % token, 'token=%s%%0a&choice=1' % token, 'token=%s&choice=1' % ('x' * 500), '\0' * 100):
            self.assertEqual(visitor.ask('POST', '/vote', body), 400, body)
        self.assertEqual(visitor.ask('POST', '/vote', 'x' * 100000), 413)
        # Another site's page, whoever looks at it.
        self.assertEqual(visitor.vote(token=token, headers={'Origin': 'https://elsewhere.example'}), 400)
        self.assertEqual(visitor.vote(token=token, headers={'Sec-Fetch-Site': 'cross-site'}), 400)
        self.assertEqual(votes_of(self.running), before)
        self.assertEqual(visitor.vote(token=token, headers={'Origin': self.running.address}), 'counted')

    def test_nothing_from_outside_is_drawn_as_it_is(self):
        visitor = self.visitor()
        for path in ('/?said=<script>', '/?said[]=1', '/best?<script>', '/<script>', '//', '/?' + 'x' * 2000, '/index.php', '/../web/store.php'):
            visitor.page(path)
            self.assertIn(visitor.status, (200, 400, 404), path)
            self.assertNotIn('<script', visitor.body, path)
            self.assertNotIn('<?php', visitor.body, path)
        self.assertEqual(visitor.page('/nothing'), 404)
        visitor.page()
        self.assertIn("default-src 'none'", visitor.headers['Content-Security-Policy'])
        cookie = self.visitor().headers['Set-Cookie']
        self.assertIn('HttpOnly', cookie)
        self.assertIn('SameSite=Lax', cookie)

    def test_pages_say_what_was_voted(self):
        visitor = self.visitor()
        for _ in range(30):
            visitor.page()
            self.assertEqual(len(set(visitor.stickers())), 2)
            winner = visitor.stickers()[0]
            self.assertEqual(visitor.vote(1), 'counted')
        for path, better in (('/best', lambda a, b: a >= b), ('/worst', lambda a, b: a <= b)):
            self.assertEqual(visitor.page(path), 200)
            ratings = [int(text.replace('−', '-')) for text in re.findall(r'class="rating">([+−]?\d+)', visitor.body)]
            self.assertEqual(len(ratings), 20)
            self.assertTrue(all(better(a, b) for a, b in zip(ratings, ratings[1:])), ratings)
            for rating, plus, minus in zip(ratings, re.findall(r'(\d+) for', visitor.body), re.findall(r'(\d+) against', visitor.body)):
                self.assertEqual(rating, int(plus) - int(minus))
        self.assertTrue(winner)

    def test_pages_in_several_tabs_have_ballots_of_their_own(self):
        visitor = self.visitor()
        tokens = [visitor.token]
        for _ in range(7):
            visitor.page()
            tokens.append(visitor.token)
        for token in tokens:
            self.assertEqual(visitor.vote(token=token), 'counted')
        # The ninth takes the place of the first.
        visitor.page()
        self.assertEqual(visitor.vote(token=tokens[0]), 'old')
        self.assertEqual(visitor.vote(token=tokens[1]), 'before')

    def test_sessions_end(self):
        running = self.start('short', session_seconds=2)
        try:
            visitor = Visitor(running)
            visitor.page()
            first = visitor.cookie
            self.assertEqual(visitor.vote(), 'counted')
            visitor.page()
            deadline = time.monotonic() + 30
            # Asking for pages would keep it alive: only the vote is tried.
            time.sleep(3.1)
            self.assertEqual(visitor.vote(), 'session')
            while True:
                visitor.page()
                self.assertNotEqual(visitor.cookie, first)
                if visitor.vote() == 'counted':
                    break
                self.assertLess(time.monotonic(), deadline)
        finally:
            running.stop()

    def test_no_vote_is_lost_or_doubled_when_the_database_is_killed(self):
        if self.database == 'tarantool':
            self.skipTest('is about our own')
        running = self.start('killed')
        stop = threading.Event()
        counted = []
        failures = []

        def vote_on():
            visitor = Visitor(running)
            mine = 0
            try:
                while not stop.is_set():
                    if visitor.page() != 200:
                        continue
                    token, cookie = visitor.token, visitor.cookie
                    while True:
                        said = visitor.vote(token=token)
                        if said in ('counted', 'before'):
                            mine += 1
                            break
                        if said != 503:
                            failures.append((said, cookie, visitor.body[-300:]))
                            break
            except Exception as error:  # pylint: disable=broad-except
                failures.append(error)
            counted.append(mine)

        threads = [threading.Thread(target=vote_on) for _ in range(8)]
        try:
            for thread in threads:
                thread.start()
            for _ in range(3):
                time.sleep(1)
                running.kill_database()
                running.start_database()
                running.wait()
            time.sleep(0.5)
            stop.set()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])
            self.assertGreater(sum(counted), 0)
            self.assertEqual(votes_of(running), sum(counted))
        finally:
            stop.set()
            running.stop()

    def test_a_database_that_is_away_is_said_and_the_vote_can_be_sent_again(self):
        running = self.start('away')
        try:
            visitor = Visitor(running)
            visitor.page()
            token = visitor.token
            running.kill_database()
            self.assertEqual(Visitor(running).page(), 503)
            self.assertEqual(visitor.vote(choice=2), 503)
            self.assertIn('Send the vote again', visitor.body)
            self.assertEqual(visitor.token, token)
            self.assertIn('value="2"', visitor.body)
            self.assertEqual(visitor.page('/style.css'), 200)
            running.start_database()
            running.wait()
            self.assertEqual(visitor.vote(choice=2, token=token), 'counted')
            self.assertEqual(votes_of(running), 1)
        finally:
            running.stop()


class PagesOnTarantool(Pages):
    """The same procedures on the real Tarantool."""
    database = 'tarantool'
    needs = ('nginx', 'php-fpm', 'tarantool')

    test_a_database_that_is_away_is_said_and_the_vote_can_be_sent_again = None


class PagesThroughRedis(Pages):
    """The version that talks Redis' protocol, with Lycosa behind it."""
    store = 'redis'
    needs = ('nginx', 'php-fpm', 'php')


class PagesOnRedis(Pages):
    """And with the real Redis."""
    database = 'redis'
    store = 'redis'
    needs = ('nginx', 'php-fpm', 'php', 'redis-server')


class Browser:
    """Chromium without a window, through its DevTools protocol over a pipe."""

    def __init__(self, program):
        self.directory = tempfile.mkdtemp(prefix='voting-browser-')
        from_us, to_us = os.pipe(), os.pipe()

        def arrange():
            # The browser reads from descriptor 3 and writes to 4.
            reading, writing = os.dup(from_us[0]), os.dup(to_us[1])
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        flags = ['--no-sandbox'] if os.geteuid() == 0 else []
        self.process = subprocess.Popen(
            [program, '--headless=new', '--remote-debugging-pipe', '--disable-gpu', '--no-first-run', '--disable-background-networking',
             '--user-data-dir=' + self.directory] + flags + ['about:blank'],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=arrange, start_new_session=True)
        os.close(from_us[0])
        os.close(to_us[1])
        self.out, self.inn = from_us[1], to_us[0]
        self.number = 0
        self.pending = b''
        self.events = []

    def receive(self, seconds=60):
        while b'\0' not in self.pending:
            if not select.select([self.inn], [], [], seconds)[0]:
                raise TimeoutError('the browser does not answer')
            more = os.read(self.inn, 1 << 20)
            if not more:
                raise EOFError('the browser has ended')
            self.pending += more
        message, self.pending = self.pending.split(b'\0', 1)
        return json.loads(message)

    def call(self, method, session=None, **params):
        self.number += 1
        message = {'id': self.number, 'method': method, 'params': params}
        if session:
            message['sessionId'] = session
        os.write(self.out, json.dumps(message).encode() + b'\0')
        while True:
            answer = self.receive()
            if answer.get('id') == self.number:
                if 'error' in answer:
                    raise RuntimeError('%s: %s' % (method, answer['error']))
                return answer['result']
            self.events.append(answer)

    def tab(self, context=None):
        more = {'browserContextId': context} if context else {}
        target = self.call('Target.createTarget', url='about:blank', **more)['targetId']
        session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        self.call('Page.enable', session)
        return Tab(self, session)

    def person(self):
        """Somebody with cookies of his own; gives his first tab."""
        self.context = self.call('Target.createBrowserContext')['browserContextId']
        return self.tab(self.context)

    def close(self):
        os.close(self.out)
        os.close(self.inn)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)
            self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


class Tab:
    """One page that a person looks at."""

    def __init__(self, browser, session):
        self.browser, self.session = browser, session

    def wait_for_load(self, action):
        """Does something that leads to another page, and waits until that is there."""
        self.browser.events = []
        action()
        end = time.monotonic() + 60
        while time.monotonic() < end:
            for event in self.browser.events:
                if event.get('sessionId') == self.session and event.get('method') in ('Page.loadEventFired', 'Page.frameStoppedLoading'):
                    self.browser.events = []
                    return
            self.browser.events = [self.browser.receive()]
        raise TimeoutError('no page came')

    def go(self, address):
        self.wait_for_load(lambda: self.browser.call('Page.navigate', self.session, url=address))

    def run(self, script):
        result = self.browser.call('Runtime.evaluate', self.session, expression=script, returnByValue=True)
        if 'exceptionDetails' in result:
            raise RuntimeError(json.dumps(result['exceptionDetails']))
        return result['result'].get('value')

    def click(self, selector):
        """A real click of the mouse into the middle of it."""
        place = self.run('''(() => { const e = document.querySelector(%s); e.scrollIntoView({block: 'center'});
            const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()''' % json.dumps(selector))

        def press():
            for kind in ('mousePressed', 'mouseReleased'):
                self.browser.call('Input.dispatchMouseEvent', self.session, type=kind, x=place[0], y=place[1], button='left', clickCount=1)
        self.wait_for_load(press)

    def back(self):
        history = self.browser.call('Page.getNavigationHistory', self.session)
        entry = history['entries'][history['currentIndex'] - 1]['id']
        self.wait_for_load(lambda: self.browser.call('Page.navigateToHistoryEntry', self.session, entryId=entry))

    def text(self):
        return self.run('document.body.innerText')

    def token(self):
        return self.run('document.querySelector("input[name=token]").value')


class InABrowser(unittest.TestCase):
    """A person with Chromium."""

    @classmethod
    def setUpClass(cls):
        programs = [service.find_program(name) for name in ('chromium', 'chromium-browser', 'google-chrome')]
        program = next((path for path in programs if path), None)
        absent = missing('nginx', 'php-fpm') or ('' if program else 'chromium')
        if absent:
            SKIPPED.append('%s: there is no %s' % (cls.__name__, absent))
            raise unittest.SkipTest('there is no ' + absent)
        cls.directory = tempfile.mkdtemp(prefix='voting-test-')
        cls.running = service.Service(os.path.join(cls.directory, 'first'), binary=SERVER, session_seconds=8).start()
        cls.browser = Browser(program)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.running.stop()
        shutil.rmtree(cls.directory, ignore_errors=True)

    def setUp(self):
        self.before = votes_of(self.running)
        self.tab = self.browser.person()
        self.tab.go(self.running.address)

    def counted(self):
        return votes_of(self.running) - self.before

    def test_a_vote(self):
        self.assertIn('Which one?', self.tab.text())
        self.tab.click('.pair button')
        self.assertIn('Your vote is counted', self.tab.text())
        # A reload of the page after it sends nothing again.
        self.tab.wait_for_load(lambda: self.tab.browser.call('Page.reload', self.tab.session))
        self.assertEqual(self.counted(), 1)

    def test_the_back_button(self):
        token = self.tab.token()
        self.tab.click('.pair button')
        self.tab.back()
        if self.tab.token() == token:
            # The browser shows the page as it was left: voting on it again does not count.
            self.tab.click('.pair button:nth-of-type(2)')
            self.assertIn('counted already', self.tab.text())
            self.assertEqual(self.counted(), 1)
        else:
            self.tab.click('.pair button')
            self.assertIn('Your vote is counted', self.tab.text())
            self.assertEqual(self.counted(), 2)

    def test_two_tabs(self):
        other = self.browser.tab(self.browser.context)
        other.go(self.running.address)
        self.tab.click('.pair button')
        other.click('.pair button')
        self.assertIn('Your vote is counted', self.tab.text())
        self.assertIn('Your vote is counted', other.text())
        self.assertEqual(self.counted(), 2)

    def test_a_session_that_has_ended(self):
        time.sleep(9)
        self.tab.click('.pair button')
        self.assertIn('Your session had ended', self.tab.text())
        self.assertEqual(self.counted(), 0)
        self.tab.click('.pair button')
        self.assertIn('Your vote is counted', self.tab.text())

    def test_a_database_that_is_killed(self):
        self.running.kill_database()
        self.tab.click('.pair button')
        self.assertIn('your vote is kept here', self.tab.text())
        self.tab.click('main button')
        self.assertIn('your vote is kept here', self.tab.text())
        self.running.start_database()
        self.running.wait()
        self.tab.click('main button')
        self.assertIn('Your vote is counted', self.tab.text())
        self.assertEqual(self.counted(), 1)

    def test_nothing_is_cut_off_on_a_phone(self):
        for width, height in ((320, 640), (390, 844), (1280, 800)):
            self.tab.browser.call('Emulation.setDeviceMetricsOverride', self.tab.session, width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
            for path in ('/', '/best', '/about'):
                self.tab.go(self.running.address + path)
                self.assertLessEqual(self.tab.run('document.documentElement.scrollWidth'), width, path)
            self.tab.go(self.running.address)
            bottom = self.tab.run('document.querySelector(".pair").getBoundingClientRect().bottom')
            self.assertLessEqual(bottom, height, 'both stickers are seen without scrolling')


def main():
    global SERVER  # pylint: disable=global-statement
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--server', help="Lycosa's binary (target/release/lycosa or target/debug/lycosa)")
    parser.add_argument('tests', nargs='*', help='such as Pages or Pages.test_a_vote_counts_once; all if not given')
    arguments = parser.parse_args()
    try:
        SERVER = service.find_lycosa(arguments.server)
    except service.Missing as absent:
        sys.exit(str(absent))
    program = unittest.main(argv=[sys.argv[0]] + arguments.tests, exit=False, verbosity=2)
    for text in SKIPPED:
        print('SKIPPED: ' + text)
    sys.exit(0 if program.result.wasSuccessful() else 1)


if __name__ == '__main__':
    main()
