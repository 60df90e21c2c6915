//! The event loop of the transaction thread: sockets, fibers, the log.
//!
//! One turn: wait for readiness; read and serve every complete packet of every ready connection; run fibers; hand the open group
//! to the log; take notice of what became durable; send everything that may leave, one write a connection.

use crate::connection::Connection;
use crate::eagerness::Eagerness;
use crate::iproto::{self, DecodeError, Packet};
use crate::sender::{Outlet, Sender};
use database::{Context, Database, Error, ErrorCode, GUEST, SessionEvent, SessionKind, State};
use hashbrown::HashMap;
use runtime::net::{Event, Poll, Registry, TcpListener, Token, Waker};
use runtime::{Notifier, fiber};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use storage::PREFETCH_MAX;

const WAKE: Token = Token(0);
const LOG: Token = Token(1);
const FIRST_LISTENER: usize = 2;
const FIRST_CONNECTION: usize = 1024;
/// Read from one connection in one turn, so that all have their turn.
const READ_BYTES_MAX: usize = 256 << 10;
/// Requests of one connection are served so long in one turn; one that has begun ends.
const SERVE_NS_MAX: u64 = 5_000_000;
/// The same where no request has taken long so far, by a clock that is some milliseconds late.
const SLOW_NS_MAX: u64 = 10_000_000;
/// Unread answers that a connection may always have.
const UNREAD_ALWAYS: usize = 64 << 10;
/// So many connections whose answers have waited for the same sync are worth waking the sender: their clients all sleep. Small answers of a turn that
/// has just read the requests are sent faster than the sender wakes up.
const HANDED_OVER_MIN: usize = 4;
/// And so many bytes of answers.
const HANDED_OVER_BYTES_MIN: usize = 8 << 10;
/// Fibers switched to in one turn.
const SWITCHES_MAX: usize = 1000;
/// Listeners that had no descriptor for a connection are asked again so often.
const ACCEPT_AGAIN_NS: u64 = 50_000_000;
/// That connections cannot be accepted is said so often.
const ACCEPT_WARNING_NS: u64 = 1_000_000_000;
/// While writers of spaces on disk are slowed down, they are looked at so often.
const PACE_NS: u64 = 500_000;
/// So long the other sides of connections that have ended may go on sending when the server stops.
const LINGER_NS: u64 = 200_000_000;
/// Longest sleep: work that nobody announces (checkpoints by time) is found in time.
const SLEEP_NS_MAX: u64 = 1_000_000_000;

/// Bounds of the network side.
#[derive(Clone, Copy, Debug)]
pub struct NetConfig {
    /// Requests in fibers over all connections; beyond it nothing is read (`net_msg_max`).
    pub requests_max: usize,
    /// Unread answers of one connection; beyond it nothing is read from it.
    pub unread_bytes_max: usize,
    /// Unread answers of all connections; beyond it only those are served that have read almost everything.
    pub unread_total_max: usize,
    /// Connections; further ones are closed at once.
    pub connections_max: usize,
    /// Longest request of a connection that has not logged in, while nothing is granted to guest.
    pub guest_request_max: usize,
    /// Bytes of incomplete requests of all connections; beyond it one that grows larger than `guest_request_max` ends its connection.
    pub input_total_max: usize,
}

impl Default for NetConfig {
    fn default() -> Self {
        NetConfig {
            requests_max: 768,
            unread_bytes_max: 16 << 20,
            unread_total_max: 256 << 20,
            connections_max: 100_000,
            guest_request_max: 16 << 10,
            input_total_max: 512 << 20,
        }
    }
}

/// Connections with something to do besides reading.
#[derive(Default)]
struct Todo {
    /// Something to send.
    dirty: RefCell<Vec<Rc<Connection>>>,
    /// Requests in fibers.
    in_flight: Cell<usize>,
}

impl Todo {
    fn mark(&self, connection: &Rc<Connection>) {
        if !connection.is_dirty.replace(true) {
            self.dirty.borrow_mut().push(Rc::clone(connection));
        }
    }
}

/// Where the loop listens: may be changed while it runs.
pub struct Listeners {
    registry: Registry,
    open: RefCell<BTreeMap<usize, TcpListener>>,
    next_token: Cell<usize>,
}

impl Listeners {
    /// Begins to accept connections of the binary protocol. Returns the address, with the port if it was 0.
    pub fn listen(&self, address: SocketAddr) -> io::Result<SocketAddr> {
        let mut listener = TcpListener::bind(address)?;
        let token = self.next_token.get();
        if token >= FIRST_CONNECTION {
            return Err(io::Error::other("listened at too many addresses"));
        }
        self.next_token.set(token + 1);
        self.registry.register_listener(&mut listener, Token(token))?;
        let local = listener.local_addr()?;
        self.open.borrow_mut().insert(token, listener);
        Ok(local)
    }

    /// Looks whether an address can be had, and leaves it. Errors: the system's.
    pub fn try_address(&self, address: SocketAddr) -> io::Result<()> {
        TcpListener::bind(address).map(drop)
    }

    /// Stops listening everywhere; open connections stay.
    pub fn close(&self) {
        for listener in self.open.take().values_mut() {
            // It is closed anyway when it is dropped.
            let _ = self.registry.deregister_listener(listener);
        }
    }

    /// Addresses listened at.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.open.borrow().values().filter_map(|listener| listener.local_addr().ok()).collect()
    }
}

/// The event loop.
pub struct EventLoop {
    poll: Poll,
    waker: Arc<Waker>,
    database: Rc<Database>,
    config: NetConfig,
    listeners: Rc<Listeners>,
    /// Called in every turn, on the transaction thread.
    on_turn: Vec<Box<dyn FnMut()>>,
    /// Tells of the log what the loop watches.
    log_notifier: Option<Arc<Notifier>>,
    connections: HashMap<usize, Rc<Connection>>,
    next_token: usize,
    /// Listeners whose last connection could not be accepted: nothing announces that it can be now.
    refusing: Vec<usize>,
    refused_at_ns: u64,
    /// When that was last said.
    warned_at_ns: Option<u64>,
    /// Connections whose sockets may have more.
    readable: Vec<Rc<Connection>>,
    /// Those that a bound holds back; looked at again in the next turn.
    held_back: Vec<Rc<Connection>>,
    todo: Rc<Todo>,
    request_events: iproto::RequestEvents,
    logins: Rc<iproto::Logins>,
    sender: Sender,
    /// Answers that sockets have not taken, of all connections.
    unsent_total: Arc<AtomicUsize>,
    /// Bytes of requests that have come in part, of all connections.
    input_total: Cell<usize>,
    /// Whether guest has been granted something, and the version of the grants when that was found out.
    guest_grants: Cell<(u64, bool)>,
    /// No request is served any more: the server is stopping.
    is_draining: bool,
    /// Bytes of answers that were made in this turn and are not in `unsent_total` yet.
    made_bytes: Cell<usize>,
    /// Scratch of `settle`.
    outlets: Vec<Arc<Outlet>>,
    /// Connections to close once their last answers are out.
    leaving: Vec<Rc<Connection>>,
    buffer: Vec<u8>,
    has_failed: bool,
    eagerness: Eagerness,
    stop: Arc<AtomicBool>,
}

/// The tokens of connections among events.
fn clients(events: &[Event]) -> impl Iterator<Item = usize> {
    events.iter().map(|event| event.token.0).filter(|token| *token >= FIRST_CONNECTION)
}

impl EventLoop {
    /// A loop over an open database. `waker` made by [`EventLoop::waker`] of `poll` is what the database's environment calls.
    pub fn new(poll: Poll, waker: Arc<Waker>, database: Rc<Database>, config: NetConfig) -> io::Result<Self> {
        let listeners = Rc::new(Listeners {
            registry: poll.registry()?,
            open: RefCell::default(),
            next_token: Cell::new(FIRST_LISTENER),
        });
        let clock = Arc::clone(&database.environment().clock);
        fiber::set_clock(Rc::new(move || clock.monotonic_ns()));
        let aborter = Rc::clone(&database);
        fiber::on_yield(Rc::new(move || {
            if let Some(context) = fiber::local::<Context>() {
                aborter.abort_by_yield(&context);
            }
        }));
        let todo = Rc::new(Todo::default());
        let for_fibers = Rc::clone(&todo);
        let finished: iproto::RequestEvents = Rc::new(move |connection, is_over| {
            let count = for_fibers.in_flight.get();
            if is_over {
                for_fibers.in_flight.set(count - 1);
                for_fibers.mark(connection);
            } else {
                for_fibers.in_flight.set(count + 1);
            }
        });
        let sender = Sender::start(Arc::clone(&waker))?;
        Ok(EventLoop {
            poll,
            waker,
            database,
            config,
            listeners,
            on_turn: Vec::new(),
            log_notifier: None,
            connections: HashMap::new(),
            next_token: FIRST_CONNECTION,
            refusing: Vec::new(),
            refused_at_ns: 0,
            warned_at_ns: None,
            readable: Vec::new(),
            held_back: Vec::new(),
            todo,
            request_events: finished,
            logins: Rc::default(),
            sender,
            unsent_total: Arc::default(),
            input_total: Cell::new(0),
            guest_grants: Cell::new((0, false)),
            is_draining: false,
            made_bytes: Cell::new(0),
            outlets: Vec::new(),
            leaving: Vec::new(),
            buffer: vec![0; READ_BYTES_MAX],
            has_failed: false,
            eagerness: Eagerness::new(runtime::processors()),
            stop: Arc::new(AtomicBool::new(false)),
        })
    }

    /// A poll and the waker that ends its sleep.
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
        let notifier = self.database.log_notifier();
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

    /// Runs until the stop flag is set or `is_done` says so.
    pub fn run(&mut self, is_done: impl Fn() -> bool) -> io::Result<()> {
        let mut events = Vec::new();
        let mut is_busy = false;
        while !self.stop.load(Ordering::Acquire) && !is_done() {
            self.watch_log()?;
            let timeout = if is_busy || !self.readable.is_empty() { Duration::ZERO } else { self.sleep_time() };
            self.wait(timeout, &mut events)?;
            let mut has_log_news = false;
            for event in events.drain(..) {
                match event.token {
                    WAKE => {}
                    LOG => has_log_news = true,
                    Token(token) if token < FIRST_CONNECTION => self.accept(token),
                    Token(token) => {
                        if let Some(connection) = self.connections.get(&token) {
                            if event.is_read_closed {
                                connection.is_read_closed.set(true);
                            }
                            if event.is_readable && !connection.is_readable.replace(true) {
                                self.readable.push(Rc::clone(connection));
                            }
                            if event.is_writable {
                                self.todo.mark(connection);
                            }
                        }
                    }
                }
            }
            self.accept_again();
            self.read();
            iproto::answer_logins(&self.database, &self.logins, |connection| self.todo.mark(connection));
            self.on_turn.iter_mut().for_each(|work| work());
            let more_fibers = fiber::run_ready(SWITCHES_MAX);
            self.database.submit();
            let more_work = self.database.turn();
            // What became durable may let the next group go.
            self.database.submit();
            self.settle(has_log_news);
            is_busy = more_fibers || more_work;
        }
        Ok(())
    }

    /// The last thing before the process ends: nobody is let in any more, every request is refused in words, those that are under way end and
    /// are answered, and connections end behind a whole answer. Returns when that is done, or at a time of the fibers' clock.
    pub fn drain(&mut self, deadline_ns: u64) -> io::Result<()> {
        self.is_draining = true;
        self.stop.store(false, Ordering::Release);
        self.listeners.close();
        if !self.answer_all(deadline_ns)? {
            // What waits for longer is told to give up.
            for connection in self.connections.values() {
                connection.is_cut_short.set(true);
            }
            for (id, ..) in fiber::list() {
                fiber::cancel(id);
            }
            self.answer_all(deadline_ns.saturating_add(LINGER_NS))?;
        }
        // The end of the stream comes behind what was sent. Who goes on asking until he sees it is read, so that the system does not take back what
        // is on its way to him.
        for connection in self.connections.values() {
            let _ = connection.outlet.stream.close_write();
        }
        let linger = fiber::now_ns().saturating_add(LINGER_NS).min(deadline_ns.saturating_add(LINGER_NS));
        let mut buffer = vec![0; 64 << 10];
        while fiber::now_ns() < linger && !self.connections.is_empty() {
            let mut events = Vec::new();
            self.poll.poll(Duration::from_millis(5), &mut events)?;
            let ended: Vec<usize> = self
                .connections
                .iter()
                .filter(|(_, connection)| {
                    loop {
                        match connection.read(&mut buffer) {
                            Ok(0) => break true,
                            Ok(_) => {}
                            Err(error) => break error.kind() != io::ErrorKind::WouldBlock,
                        }
                    }
                })
                .map(|(token, _)| *token)
                .collect();
            ended.iter().for_each(|token| _ = self.connections.remove(token));
        }
        Ok(())
    }

    /// Runs until every request that has come is answered, or until a time. Returns whether all are.
    fn answer_all(&mut self, deadline_ns: u64) -> io::Result<bool> {
        // The first turn waits for nothing: there may be nobody to answer.
        self.waker.wake()?;
        while fiber::now_ns() < deadline_ns {
            // One turn; what is said of the connections is true between turns.
            let turns = Cell::new(0);
            self.run(|| turns.replace(turns.get() + 1) > 0)?;
            let is_answered = |connection: &Rc<Connection>| {
                connection.in_flight.get() == 0
                    && connection.unsent() == 0
                    && !connection.output.borrow().has_parked()
                    && !connection.is_stalled.get()
            };
            if self.readable.is_empty() && self.connections.values().all(is_answered) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Waits for events. While one or two clients ask again as soon as they have their answers, the processor stays awake.
    fn wait(&mut self, timeout: Duration, events: &mut Vec<Event>) -> io::Result<()> {
        // The disk takes longer than it is worth.
        if timeout.is_zero() || self.database.is_log_behind() {
            self.poll.poll(timeout, events)?;
            self.eagerness.note_events(clients(events));
            return Ok(());
        }
        let waited = self.poll.poll_eagerly(self.eagerness.spin(), timeout, events)?;
        self.eagerness.note_wait(waited, clients(events).next().is_some());
        self.eagerness.note_events(clients(events));
        Ok(())
    }

    fn sleep_time(&self) -> Duration {
        let now = fiber::now_ns();
        let due = [fiber::next_deadline(), self.logins.next_due_ns()].into_iter().flatten().min();
        let until = due.map_or(SLEEP_NS_MAX, |deadline| deadline.saturating_sub(now));
        let max = if self.refusing.is_empty() { SLEEP_NS_MAX } else { ACCEPT_AGAIN_NS };
        // What is held back for the sake of the disk goes on soon.
        let pause = if self.held_back.is_empty() || !self.database.is_paced() { max } else { PACE_NS };
        Duration::from_nanos(until.min(max).min(pause))
    }

    fn note_refusal(&mut self, token: usize, error: &io::Error) {
        let now = fiber::now_ns();
        self.refused_at_ns = now;
        if !self.refusing.contains(&token) {
            self.refusing.push(token);
        }
        if self.warned_at_ns.is_none_or(|warned| now.saturating_sub(warned) >= ACCEPT_WARNING_NS) {
            self.warned_at_ns = Some(now);
            let count = self.connections.len();
            tracing::warn!(
                "a connection cannot be accepted, with {count} open: {error}; tried again when some are closed"
            );
        }
    }

    /// Asks listeners again that had no descriptor for a connection.
    fn accept_again(&mut self) {
        if !self.refusing.is_empty() && fiber::now_ns().saturating_sub(self.refused_at_ns) >= ACCEPT_AGAIN_NS {
            for token in std::mem::take(&mut self.refusing) {
                self.accept(token);
            }
        }
    }

    fn accept(&mut self, token: usize) {
        loop {
            let accepted = match self.listeners.open.borrow().get(&token) {
                Some(listener) => listener.accept(),
                None => return,
            };
            let (mut stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    // Out of descriptors, most likely: the others go on.
                    self.note_refusal(token, &error);
                    return;
                }
            };
            if self.connections.len() >= self.config.connections_max {
                tracing::warn!("connection from {peer} is refused: there are {} already", self.connections.len());
                continue;
            }
            let _ = stream.set_nodelay(true);
            let mut salt = [0; 32];
            self.database.environment().randomness.fill(&mut salt);
            let greeting = iproto::greeting(&self.database.instance_uuid(), &salt);
            let token = Token(self.next_token);
            self.next_token += 1;
            // A fresh socket takes 128 bytes at once.
            let greeted = (&stream).write_all(&greeting);
            if greeted.and_then(|()| self.listeners.registry.register_stream(&mut stream, token)).is_err() {
                continue;
            }
            let session = self.database.open_session(SessionKind::Binary, Some(peer.to_string()));
            self.database.announce(&session, SessionEvent::Connect);
            let context = Rc::new(Context::for_request(Rc::clone(&session)));
            let connection = Rc::new(Connection {
                token,
                outlet: Outlet::new(stream, Arc::clone(&self.unsent_total)),
                session,
                context,
                salt,
                logins: Rc::clone(&self.logins),
                input: RefCell::default(),
                output: RefCell::default(),
                in_flight: Cell::new(0),
                is_login_waiting: Cell::new(false),
                is_readable: Cell::new(false),
                is_read_closed: Cell::new(false),
                is_stalled: Cell::new(false),
                is_slow: Cell::new(false),
                group_began: Cell::new(0),
                is_cut_short: Cell::new(false),
                is_dirty: Cell::new(false),
                is_closing: Cell::new(false),
            });
            self.connections.insert(token.0, connection);
            database::increment(&self.database.statistics.connections);
            self.database.statistics.connections_open.set(self.connections.len() as u64);
        }
    }

    /// Reads from every connection that has something, as far as the bounds allow.
    fn read(&mut self) {
        let mut ready = std::mem::take(&mut self.readable);
        ready.append(&mut self.held_back);
        // Whose requests take long comes behind the others.
        if ready.iter().any(|connection| connection.is_slow.get()) {
            ready.sort_by_key(|connection| connection.is_slow.get());
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let is_disk_congested = !ready.is_empty() && self.database.is_disk_congested();
        for connection in ready {
            if !self.connections.contains_key(&connection.token.0) || connection.is_closing.get() {
                continue;
            }
            let is_held_back = self.todo.in_flight.get() >= self.config.requests_max
                || connection.in_flight.get() >= self.config.requests_max
                || connection.unsent() > self.unread_max()
                || self.database.is_log_congested()
                // Who only reads, or writes to memory, need not wait for the writers of rows on disk.
                || is_disk_congested && connection.session.writes_disk.get();
            if is_held_back {
                connection.outlet.await_sent();
                self.held_back.push(connection);
                continue;
            }
            if connection.is_stalled.replace(false) {
                // What was read before its answers had room comes first.
                self.serve(&connection, &[]);
                self.readable.push(connection);
                continue;
            }
            match connection.read(&mut buffer) {
                Ok(0) => {
                    connection.is_readable.set(false);
                    connection.is_closing.set(true);
                    self.todo.mark(&connection);
                }
                Ok(count) => {
                    database::add(&self.database.statistics.received_bytes, count as u64);
                    self.serve(&connection, &buffer[..count]);
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

    /// Unread answers that one connection may have now.
    fn unread_max(&self) -> usize {
        let total = self.unsent_total.load(Ordering::Acquire) + self.made_bytes.get();
        if total > self.config.unread_total_max { UNREAD_ALWAYS } else { self.config.unread_bytes_max }
    }

    /// True if no more requests of a connection may be served now: its answers must be read first.
    fn is_full(&self, connection: &Connection) -> bool {
        connection.unsent() > self.unread_max() || connection.in_flight.get() >= self.config.requests_max
    }

    /// Serves the complete packets of what was read, as far as there is room for their answers and the connection's time of this turn lasts: few
    /// bytes may ask for much work.
    fn serve(&self, connection: &Rc<Connection>, bytes: &[u8]) {
        let began = fiber::now_ns();
        connection.session.writes_disk.set(false);
        connection.group_began.set(began);
        let clock = &self.database.environment().clock;
        let coarse_began = clock.coarse_ns();
        let mut kept = connection.input.take();
        self.input_total.set(self.input_total.get() - kept.len());
        let is_joined = !kept.is_empty();
        if is_joined {
            kept.extend_from_slice(bytes);
        }
        let input = if is_joined { &kept[..] } else { bytes };
        let mut at = 0;
        let mut group = Vec::with_capacity(PREFETCH_MAX);
        while !connection.is_closing.get() {
            // Requests that are here already are decoded together, so that the rows they want are fetched together.
            let mut failure = None;
            let mut ahead = at;
            while group.len() < PREFETCH_MAX {
                match iproto::next_packet(&input[ahead..]) {
                    Ok(Packet::Incomplete) => break,
                    Ok(Packet::Complete(packet, length)) => {
                        ahead += length;
                        match iproto::decode_packet(packet) {
                            Ok(decoded) => group.push((decoded, ahead)),
                            Err(error) => failure = Some(error),
                        }
                    }
                    Err(error) => failure = Some(error),
                }
                if failure.is_some() {
                    break;
                }
            }
            if group.is_empty() && failure.is_none() {
                break;
            }
            if group.len() > 1 {
                iproto::prefetch(&self.database, group.iter().map(|(decoded, _)| decoded));
            }
            let first = group.first().map(|(decoded, _)| decoded.kind_and_sync());
            let count = group.len();
            for (number, (decoded, end)) in group.iter().enumerate() {
                if self.is_full(connection) {
                    connection.is_stalled.set(true);
                    break;
                }
                if self.is_draining {
                    iproto::refuse(&self.database, connection, decoded, &iproto::shutting_down());
                } else {
                    iproto::serve(&self.database, connection, decoded, &self.request_events);
                }
                at = *end;
                // The clock costs something, too: behind each request it is asked only where they have taken long before, and otherwise a coarse one,
                // behind some.
                let is_late = match connection.is_slow.get() {
                    true => fiber::now_ns().saturating_sub(began) >= SERVE_NS_MAX,
                    false => {
                        number % 2 == 0 && count > 1 && clock.coarse_ns().saturating_sub(coarse_began) >= SLOW_NS_MAX
                    }
                };
                if is_late {
                    connection.is_slow.set(true);
                    connection.is_stalled.set(true);
                    break;
                }
            }
            group.clear();
            let now = fiber::now_ns();
            let total = now.saturating_sub(connection.group_began.replace(now));
            if total > self.database.limits.too_long_ns.get()
                && let Some(first) = first
            {
                iproto::log_slow_group(first, count, total);
            }
            if connection.is_stalled.get() {
                break;
            }
            at = ahead;
            if let Some(error) = failure {
                self.refuse(connection, error);
            }
            if now.saturating_sub(began) >= SERVE_NS_MAX {
                connection.is_slow.set(true);
                connection.is_stalled.set(true);
                break;
            }
            connection.is_slow.set(false);
        }
        self.made_bytes.set(self.made_bytes.get() + connection.held());
        self.todo.mark(connection);
        if is_joined {
            // Nothing is copied while a large packet comes in.
            if at > 0 {
                kept.drain(..at);
            }
        } else if at < bytes.len() {
            kept = bytes[at..].to_vec();
        }
        if !connection.is_stalled.get() && !connection.is_closing.get() && self.is_too_large(connection, &kept) {
            kept = Vec::new();
        }
        self.input_total.set(self.input_total.get() + kept.len());
        *connection.input.borrow_mut() = kept;
    }

    /// True if the rest of a request that has come in part is not waited for: the client is told why, and its connection ends.
    fn is_too_large(&self, connection: &Connection, input: &[u8]) -> bool {
        let bound = self.config.guest_request_max;
        let announced = iproto::announced_bytes(input).unwrap_or(0);
        if announced <= bound as u64 {
            return false;
        }
        let error = if connection.session.user.get() == GUEST && !self.has_guest_grants() {
            let what = format_args!("a request of {announced} bytes before login (at most {bound} bytes)");
            Error::new(ErrorCode::Unsupported, &[&"Lycosa", &what])
        } else if self.input_total.get() + input.len() > self.config.input_total_max {
            let total = self.config.input_total_max;
            let what = format!("a request of {announced} bytes (all that come in parts may have {total} bytes)");
            Error::new(ErrorCode::MemoryIssue, &[&announced, &"input buffers", &what])
        } else {
            return false;
        };
        let schema_version = self.database.catalog.schema_version();
        iproto::encode_error(connection.output.borrow_mut().begin(false), 0, schema_version, &error);
        connection.is_closing.set(true);
        true
    }

    /// True if guest may do more than connect.
    fn has_guest_grants(&self) -> bool {
        let catalog = &self.database.catalog;
        let version = catalog.access_version();
        let (known, has) = self.guest_grants.get();
        if known == version {
            return has;
        }
        let has = catalog.has_more_than_a_session(GUEST);
        self.guest_grants.set((version, has));
        has
    }

    /// Tells a client that its bytes are no request. Without a length nothing behind them can be understood.
    fn refuse(&self, connection: &Rc<Connection>, error: DecodeError) {
        let reply = iproto::decode_error(error);
        let schema_version = self.database.catalog.schema_version();
        iproto::encode_error(connection.output.borrow_mut().begin(false), 0, schema_version, &reply);
        if matches!(error, DecodeError::Length(_)) {
            connection.is_closing.set(true);
        }
    }

    /// Sends what may leave, and closes what is done. If the log has news, answers of many connections may leave at once.
    fn settle(&mut self, has_log_news: bool) {
        for connection in std::mem::take(&mut self.leaving) {
            self.todo.mark(&connection);
        }
        let durable = self.database.durable();
        let state = self.database.state();
        if let (State::LogFailed(reason), false) = (&state, self.has_failed) {
            self.has_failed = true;
            let error = database::log_error(reason);
            let schema_version = self.database.catalog.schema_version();
            for connection in self.connections.values() {
                let mut output = connection.output.borrow_mut();
                output.release(durable);
                if output.has_parked() {
                    output.fail(&error, schema_version);
                    drop(output);
                    self.todo.mark(connection);
                }
            }
        }
        self.made_bytes.set(0);
        let dirty = self.todo.dirty.take();
        let mut outlets = std::mem::take(&mut self.outlets);
        for connection in &dirty {
            connection.is_dirty.set(false);
            if connection.release(&self.database) {
                outlets.push(Arc::clone(&connection.outlet));
            }
        }
        let bytes: usize = outlets.iter().map(|outlet| outlet.unsent()).sum();
        let is_burst = has_log_news && outlets.len() >= HANDED_OVER_MIN;
        if is_burst || bytes >= HANDED_OVER_BYTES_MIN {
            self.sender.send(&mut outlets);
            if bytes < HANDED_OVER_BYTES_MIN {
                // Many small answers: half of them would still wait when their clients could go on.
                while self.sender.help() {}
            }
        } else {
            outlets.drain(..).for_each(|outlet| outlet.send());
        }
        self.outlets = outlets;
        for connection in dirty {
            if connection.outlet.has_failed() {
                self.close(&connection);
                continue;
            }
            if connection.is_closing.get() && connection.in_flight.get() == 0 {
                if connection.unsent() == 0 {
                    self.close(&connection);
                } else {
                    connection.outlet.await_sent();
                    self.leaving.push(connection);
                }
                continue;
            }
            if connection.output.borrow().has_parked() {
                // Tried again when the log has news, which ends the sleep.
                self.todo.mark(&connection);
            }
        }
    }

    fn close(&mut self, connection: &Rc<Connection>) {
        connection.is_closing.set(true);
        self.database.announce(&connection.session, SessionEvent::Disconnect);
        self.database.close_session(&connection.session);
        // What had come of a request is given up.
        self.input_total.set(self.input_total.get() - connection.input.take().len());
        let stream = &connection.outlet.stream;
        let _ = self.listeners.registry.deregister_stream(stream, connection.token);
        let _ = stream.close();
        self.connections.remove(&connection.token.0);
        self.database.statistics.connections_open.set(self.connections.len() as u64);
    }
}
