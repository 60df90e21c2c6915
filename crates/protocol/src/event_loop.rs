//! The event loop of the transaction thread: sockets, fibers, the log.
//!
//! One turn: wait for readiness; read and serve every complete request of every ready connection; run fibers; hand the open group
//! to the log; take notice of what became durable; send everything that may leave, one write a connection.
//!
//! Accepting is in `listeners`, what happens to the bytes in `serving`, the end of a turn in `settle`, the end of the loop in `drain`.

use crate::connection::Connection;
use crate::door::Doors;
use crate::eagerness::Eagerness;
use crate::handshakes::Handshakes;
use crate::listeners::{ACCEPT_AGAIN_NS, FIRST_CONNECTION, Listeners, Refusing};
use crate::occupancy::Occupancy;
use crate::sender::{Outlet, Sender};
use crate::service::{NetConfig, Service};
use crate::watch::Watch;
use database::Database;
use hashbrown::HashMap;
use runtime::net::{Event, Poll, Token, Waker};
use runtime::{Notifier, fiber, reactor};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const WAKE: Token = Token(0);
const LOG: Token = Token(1);
/// Most bytes read from one connection in a turn, so that every connection gets its turn.
const READ_BYTES_MAX: usize = 256 << 10;
/// Most switches to fibers in a turn.
const SWITCHES_MAX: usize = 1000;
/// Connections that are served before their answers leave, while others of the same turn are still to be served.
const ANSWERED_TOGETHER: usize = 2;
/// Longest sleep while writers of spaces on disk are slowed down.
const PACE_NS: u64 = 500_000;
/// Longest sleep: it bounds how late unannounced work (checkpoints by time) begins.
const SLEEP_NS_MAX: u64 = 1_000_000_000;

/// The event loop.
pub struct EventLoop {
    pub(crate) poll: Rc<Watch>,
    pub(crate) waker: Arc<Waker>,
    pub(crate) service: Rc<Service>,
    pub(crate) listeners: Rc<Listeners>,
    /// Called in every turn, on the transaction thread.
    on_turn: Vec<Box<dyn FnMut()>>,
    /// Becomes readable when the log has news; watched by the loop.
    log_notifier: Option<Arc<Notifier>>,
    pub(crate) connections: HashMap<usize, Rc<Connection>>,
    pub(crate) next_token: usize,
    pub(crate) refusing: Refusing,
    /// Listeners with more datagrams than there is time for in a turn.
    pub(crate) crowded: Vec<usize>,
    /// Connections by TLS that are not clients yet.
    pub(crate) handshakes: Handshakes,
    /// Connections whose sockets may have more.
    pub(crate) readable: Vec<Rc<Connection>>,
    /// Connections that a bound holds back; tried again in the next turn.
    pub(crate) held_back: Vec<Rc<Connection>>,
    pub(crate) sender: Sender,
    /// Scratch of `settle`.
    pub(crate) outlets: Vec<Arc<Outlet>>,
    /// Connections to close once their last answers are out.
    pub(crate) leaving: Vec<Rc<Connection>>,
    pub(crate) buffer: Vec<u8>,
    /// The log has failed, and the answers that waited for it have become errors.
    pub(crate) has_failed: bool,
    eagerness: Eagerness,
    occupancy: Occupancy,
    /// When the turn had its events.
    pub(crate) begun_ns: u64,
    pub(crate) stop: Arc<AtomicBool>,
}

/// The tokens of connections among events.
fn clients(events: &[Event]) -> impl Iterator<Item = usize> {
    let tokens = events.iter().map(|event| event.token.0);
    tokens.filter(|token| (FIRST_CONNECTION..reactor::FIRST_TOKEN).contains(token))
}

impl EventLoop {
    /// A loop over an open database, with these doors. `poll` and `waker` are those of [`EventLoop::poll`]; the database's environment calls the
    /// same waker. Errors: the system's, of the poller.
    pub fn new(
        poll: Poll,
        waker: Arc<Waker>,
        database: Rc<Database>,
        config: NetConfig,
        doors: Doors,
    ) -> io::Result<Self> {
        let listeners = Rc::new(Listeners::new(poll.registry()?, doors));
        let clock = Arc::clone(&database.environment().clock);
        fiber::set_clock(Rc::new(move || clock.monotonic_ns()));
        reactor::install(poll.registry()?, Arc::clone(&waker));
        let sender = Sender::start(Arc::clone(&waker))?;
        let poll = Rc::new(Watch::new(poll));
        let watch = Rc::clone(&poll);
        fiber::set_glance(Rc::new(move || watch.glance()));
        Ok(EventLoop {
            poll,
            waker,
            service: Service::new(database, config),
            listeners,
            on_turn: Vec::new(),
            log_notifier: None,
            connections: HashMap::new(),
            next_token: FIRST_CONNECTION,
            refusing: Refusing::default(),
            crowded: Vec::new(),
            handshakes: Handshakes::default(),
            readable: Vec::new(),
            held_back: Vec::new(),
            sender,
            outlets: Vec::new(),
            leaving: Vec::new(),
            buffer: vec![0; READ_BYTES_MAX],
            has_failed: false,
            eagerness: Eagerness::new(runtime::processors()),
            occupancy: Occupancy::default(),
            begun_ns: 0,
            stop: Arc::new(AtomicBool::new(false)),
        })
    }

    /// A poll and the waker that ends its sleep. Errors: the system's, of the poller.
    pub fn poll() -> io::Result<(Poll, Arc<Waker>)> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(&poll.registry()?, WAKE)?);
        Ok((poll, waker))
    }

    /// Ends `run` when set and woken; for signal handlers and `os.exit`.
    pub fn stop_flag(&self) -> (Arc<AtomicBool>, Arc<Waker>) {
        (Arc::clone(&self.stop), Arc::clone(&self.waker))
    }

    /// Where the loop listens.
    pub fn listeners(&self) -> Rc<Listeners> {
        Rc::clone(&self.listeners)
    }

    /// Adds a function that is called in every turn, before fibers run. Whoever gives it work wakes the loop.
    pub fn on_turn(&mut self, work: Box<dyn FnMut()>) {
        self.on_turn.push(work);
    }

    /// The log is there once the database has been opened, which a script may do late.
    fn watch_log(&mut self) -> io::Result<()> {
        let notifier = self.service.database.log_notifier();
        let is_same = match (&notifier, &self.log_notifier) {
            (Some(new), Some(watched)) => Arc::ptr_eq(new, watched),
            (None, None) => true,
            _ => false,
        };
        if !is_same {
            if let Some(notifier) = &notifier {
                self.listeners.registry.register_notifier(notifier, LOG)?;
            }
            self.log_notifier = notifier;
        }
        Ok(())
    }

    /// Number of open connections.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Runs until the stop flag is set or `is_done` says so. Errors: the system's, of the poller.
    pub fn run(&mut self, is_done: impl Fn() -> bool) -> io::Result<()> {
        let service = Rc::clone(&self.service);
        let database = &service.database;
        let mut events = Vec::new();
        let mut is_busy = false;
        while !self.stop.load(Ordering::Acquire) && !is_done() {
            self.watch_log()?;
            let has_clients = !self.readable.is_empty() || !self.crowded.is_empty() || self.handshakes.has_ready();
            let is_waited_for = is_busy || has_clients;
            let timeout = if is_waited_for { Duration::ZERO } else { self.sleep_time() };
            let waited = self.wait(timeout, &mut events)?;
            let now = fiber::now_ns();
            let last_began = std::mem::replace(&mut self.begun_ns, now);
            let is_loaded = self.occupancy.note_turn(now.saturating_sub(last_began), waited.as_nanos() as u64);
            database.note_load(is_loaded);
            let mut has_log_news = false;
            for event in events.drain(..) {
                match event.token {
                    WAKE => reactor::note_wake(),
                    LOG => has_log_news = true,
                    Token(token) if token < FIRST_CONNECTION => self.accept(token),
                    Token(token) if token >= reactor::FIRST_TOKEN => reactor::note(&event),
                    Token(token) => self.note_event(token, event),
                }
            }
            self.accept_again();
            self.shake_hands();
            self.read();
            service.logins.answer_due(|connection| {
                service.mark(connection);
                service.announce_room();
            });
            self.on_turn.iter_mut().for_each(|work| work());
            if fiber::has_patient() {
                // Who gives way to others does not keep their answers from leaving either.
                database.submit();
                self.settle(std::mem::take(&mut has_log_news));
            }
            self.poll.has_more.set(!self.readable.is_empty());
            let more_fibers = fiber::run_ready(SWITCHES_MAX);
            database.submit();
            let more_work = database.turn();
            // What became durable may let the next group go.
            database.submit();
            self.settle(has_log_news);
            let has_room = service.take_room() && !self.held_back.is_empty();
            is_busy = more_fibers || more_work || has_room;
        }
        Ok(())
    }

    fn note_event(&mut self, token: usize, event: Event) {
        let Some(connection) = self.connections.get(&token) else {
            self.handshakes.note(token);
            return;
        };
        if event.is_read_closed && !connection.is_read_closed.replace(true) && connection.is_busy() {
            // Nothing is read from it now, so nobody else would notice.
            connection.door.hang_up(connection);
        }
        if event.is_readable && !connection.is_readable.replace(true) {
            self.readable.push(Rc::clone(connection));
        }
        if event.is_writable {
            self.service.mark(connection);
        }
    }

    /// Waits for events. While a few clients ask again as soon as they are answered, the loop polls before it sleeps. Returns how long it has waited.
    fn wait(&mut self, timeout: Duration, events: &mut Vec<Event>) -> io::Result<Duration> {
        if timeout.is_zero() {
            self.poll.poll(timeout, events)?;
            self.eagerness.note_events(clients(events));
            return Ok(Duration::ZERO);
        }
        let waited = self.poll.poll_eagerly(self.eagerness.spin(), timeout, events)?;
        self.eagerness.note_wait(waited, clients(events).next().is_some());
        self.eagerness.note_events(clients(events));
        Ok(waited)
    }

    fn sleep_time(&self) -> Duration {
        let now = fiber::now_ns();
        let due = [fiber::next_deadline(), self.service.logins.next_due_ns(), self.handshakes.next_due_ns()];
        let due = due.into_iter().flatten().min();
        let until = due.map_or(SLEEP_NS_MAX, |deadline| deadline.saturating_sub(now));
        let max = if self.refusing.is_empty() { SLEEP_NS_MAX } else { ACCEPT_AGAIN_NS };
        // Writers that wait for the disk are tried again soon.
        let pause = if self.held_back.is_empty() || !self.service.database.is_paced() { max } else { PACE_NS };
        Duration::from_nanos(until.min(max).min(pause))
    }

    /// True if nothing more is read from a connection now: it has not taken its answers, or there are too many requests, or the disk is behind.
    fn is_held_back(&self, connection: &Connection, is_disk_congested: bool) -> bool {
        self.service.is_busy()
            || connection.has_no_room()
            || self.service.database.is_log_congested()
            // A connection that only reads, or writes to memory, does not wait for writers of disk spaces.
            || is_disk_congested && connection.session.writes_disk.get()
    }

    /// Reads from every connection that has something, as far as the bounds allow.
    fn read(&mut self) {
        let service = Rc::clone(&self.service);
        let database = &service.database;
        let mut ready = std::mem::take(&mut self.readable);
        ready.append(&mut self.held_back);
        // Connections with slow requests come last.
        if ready.iter().any(|connection| connection.is_slow.get()) {
            ready.sort_by_key(|connection| connection.is_slow.get());
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let is_disk_congested = !ready.is_empty() && database.is_disk_congested();
        // While commits wait for the disk and the loop for clients, each is to go on as soon as it can; else a turn's answers had better leave together.
        let answers_soon = !self.occupancy.is_busy() && database.appended() > database.durable();
        let mut served: Vec<Rc<Connection>> = Vec::new();
        for connection in ready {
            if served.len() >= ANSWERED_TOGETHER {
                served.drain(..).for_each(|connection| connection.answer_soon());
            }
            if !self.connections.contains_key(&connection.token.0) || connection.is_closing.get() {
                continue;
            }
            if self.is_held_back(&connection, is_disk_congested) {
                connection.outlet.await_sent();
                self.held_back.push(connection);
                continue;
            }
            if connection.is_stalled.replace(false) {
                // Bytes that were read before there was room for their answers come first.
                connection.door.serve_input(&connection, &[]);
                self.readable.push(connection);
                continue;
            }
            match connection.read(&mut buffer) {
                Ok(0) => {
                    connection.is_readable.set(false);
                    connection.is_closing.set(true);
                    connection.door.leave(&connection);
                    service.mark(&connection);
                }
                Ok(count) => {
                    database::add(&database.statistics.received_bytes, count as u64);
                    database::add(&connection.counts.received_bytes, count as u64);
                    connection.door.serve_input(&connection, &buffer[..count]);
                    if answers_soon && connection.is_dirty.get() {
                        served.push(Rc::clone(&connection));
                    }
                    if count == buffer.len() || connection.is_stalled.get() || connection.is_read_closed.get() {
                        self.readable.push(connection);
                    } else {
                        // The socket was emptied: the next bytes raise a new event.
                        connection.is_readable.set(false);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => connection.is_readable.set(false),
                Err(_) => self.close(&connection),
            }
        }
        self.buffer = buffer;
    }
}

impl Drop for EventLoop {
    fn drop(&mut self) {
        reactor::uninstall();
        // Connections and what they share hold each other.
        self.service.dirty.take();
    }
}
