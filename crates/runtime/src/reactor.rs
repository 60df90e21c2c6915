//! Waiting for sockets and descriptors in fibers.
//!
//! A fiber that finds nothing to read waits here, and others run meanwhile; the event loop of its thread tells the reactor of the events that its
//! poll has found. The poll reports changes only, so whoever waits has tried before: a source keeps what it was last told until somebody has tried
//! in vain.
//!
//! ```text
//! fiber --read--> WouldBlock --forget "readable", park--.      event loop --poll--> event --note--> "readable", wake
//!          ^--------------------------------------------'<-------------------------------------------'
//! ```
//!
//! Names are resolved by threads, since the system's resolver blocks; a fiber that is cancelled or out of time leaves its thread to itself.
//!
//! Everything here yields, and may be called in fibers only. Deadlines are by the clock of the fibers. The simulated half is that of the sockets
//! and threads below.

use crate::fiber::{self, FiberId, Wake};
use crate::net::{Address, Event, Registry, Stream, Token, Waker};
use crate::notify::Notifier;
use crate::{simulation, spawn_thread};
use hashbrown::HashMap;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::RawFd;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

/// Tokens from here on are the reactor's.
pub const FIRST_TOKEN: usize = 1 << 40;
/// Threads that resolve names at the same time; further fibers wait for one.
const RESOLVERS_MAX: usize = 16;

/// Which way something is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// There is something to read, or the end.
    Readable,
    /// There is room to write.
    Writable,
}

/// What is known of a registered source, and who waits for it.
#[derive(Default)]
struct Source {
    is_readable: Cell<bool>,
    is_writable: Cell<bool>,
    waiting: RefCell<Vec<FiberId>>,
}

impl Source {
    fn flag(&self, interest: Interest) -> &Cell<bool> {
        match interest {
            Interest::Readable => &self.is_readable,
            Interest::Writable => &self.is_writable,
        }
    }

    /// Parks the running fiber until the next event of this source, or its deadline. Errors: as those of `park`.
    fn park(&self, deadline_ns: Option<u64>) -> io::Result<()> {
        let own = fiber::current();
        self.waiting.borrow_mut().extend(own);
        let parked = park(deadline_ns);
        self.waiting.borrow_mut().retain(|id| Some(*id) != own);
        parked
    }
}

/// A descriptor in the poll: any number of fibers may wait for it.
struct Watch {
    token: usize,
    source: Rc<Source>,
    waiters: usize,
}

/// Ways in which something is waited for, or is ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// There is something to read, or the end.
    pub is_readable: bool,
    /// There is room to write.
    pub is_writable: bool,
}

/// The reactor of a thread.
struct Reactor {
    registry: Registry,
    waker: Arc<Waker>,
    sources: RefCell<HashMap<usize, Rc<Source>>>,
    /// Descriptors that fibers wait for.
    descriptors: RefCell<HashMap<RawFd, Watch>>,
    next_token: Cell<usize>,
    /// Threads that resolve names.
    resolvers: Cell<usize>,
    /// Fibers that wait until there are fewer.
    queue: RefCell<VecDeque<FiberId>>,
    /// Fibers whose names are resolved, filled by those threads.
    resolved: Arc<Mutex<Vec<FiberId>>>,
}

thread_local! {
    static REACTOR: RefCell<Option<Rc<Reactor>>> = const { RefCell::new(None) };
}

/// Lets the fibers of this thread wait for what the poll of a registry finds. `waker` ends its sleep.
pub fn install(registry: Registry, waker: Arc<Waker>) {
    let reactor = Reactor {
        registry,
        waker,
        sources: RefCell::default(),
        descriptors: RefCell::default(),
        next_token: Cell::new(FIRST_TOKEN),
        resolvers: Cell::new(0),
        queue: RefCell::default(),
        resolved: Arc::default(),
    };
    REACTOR.with(|slot| *slot.borrow_mut() = Some(Rc::new(reactor)));
}

/// The poll is gone.
pub fn uninstall() {
    REACTOR.with(|slot| slot.borrow_mut().take());
}

fn installed() -> io::Result<Rc<Reactor>> {
    let reactor = REACTOR.with(|slot| slot.borrow().clone());
    reactor.ok_or_else(|| io::Error::other("no event loop runs on this thread"))
}

/// Takes notice of an event whose token is [`FIRST_TOKEN`] or above. Called by the event loop.
pub fn note(event: &Event) {
    let Ok(reactor) = installed() else { return };
    let Some(source) = reactor.sources.borrow().get(&event.token.0).cloned() else { return };
    if event.is_readable || event.is_read_closed {
        source.is_readable.set(true);
    }
    // An error alone is found by trying, either way.
    let is_error = !(event.is_readable || event.is_read_closed || event.is_writable);
    if event.is_writable || is_error {
        source.is_writable.set(true);
    }
    if is_error {
        source.is_readable.set(true);
    }
    for id in source.waiting.take() {
        fiber::wake(id);
    }
}

/// Wakes fibers whose names are resolved. Called by the event loop when it was woken.
pub fn note_wake() {
    let Ok(reactor) = installed() else { return };
    let resolved = std::mem::take(&mut *reactor.resolved.lock().unwrap_or_else(PoisonError::into_inner));
    for id in resolved {
        let left = reactor.resolvers.get().checked_sub(1).expect("a thread that ends was counted");
        reactor.resolvers.set(left);
        fiber::wake(id);
        if let Some(next) = reactor.queue.borrow_mut().pop_front() {
            fiber::wake(next);
        }
    }
}

/// Parks the running fiber. Errors: `TimedOut`; it was cancelled; it is none.
fn park(deadline_ns: Option<u64>) -> io::Result<()> {
    if fiber::current().is_none() {
        return Err(io::Error::other("only a fiber can wait here"));
    }
    match fiber::park_until(deadline_ns) {
        Wake::Woken => Ok(()),
        Wake::Timeout => Err(ErrorKind::TimedOut.into()),
        Wake::Cancelled => Err(io::Error::other("the fiber was cancelled")),
    }
}

impl Reactor {
    fn add(&self) -> (usize, Rc<Source>) {
        let token = self.next_token.get();
        self.next_token.set(token + 1);
        let source = Rc::new(Source::default());
        self.sources.borrow_mut().insert(token, Rc::clone(&source));
        (token, source)
    }

    fn forget(&self, token: usize) {
        let source = self.sources.borrow_mut().remove(&token);
        // Whoever still waits finds the source gone.
        source.into_iter().flat_map(|source| source.waiting.take()).for_each(fiber::wake);
    }

    /// Puts a descriptor into the poll, or has the poll say anew what it is ready for.
    fn watch(&self, fd: RawFd) -> io::Result<(usize, Rc<Source>)> {
        if let Some(watch) = self.descriptors.borrow_mut().get_mut(&fd) {
            // Forgotten before the poll looks again: what is still so is an event again.
            watch.source.is_readable.set(false);
            watch.source.is_writable.set(false);
            if self.registry.renew_descriptor(fd, Token(watch.token)).is_ok() {
                watch.waiters += 1;
                return Ok((watch.token, Rc::clone(&watch.source)));
            }
        }
        // Closed behind our back, and the number given to another one: who waited for that finds out by trying.
        if let Some(watch) = self.descriptors.borrow_mut().remove(&fd) {
            self.give_up(&watch);
        }
        let (token, source) = self.add();
        if let Err(error) = self.registry.register_descriptor(fd, Token(token)) {
            self.forget(token);
            return Err(error);
        }
        let watch = Watch { token, source: Rc::clone(&source), waiters: 1 };
        self.descriptors.borrow_mut().insert(fd, watch);
        Ok((token, source))
    }

    /// A fiber waits no longer; the last one takes the descriptor out of the poll.
    fn unwatch(&self, fd: RawFd, token: usize) {
        let mut descriptors = self.descriptors.borrow_mut();
        let Some(watch) = descriptors.get_mut(&fd).filter(|watch| watch.token == token) else { return };
        watch.waiters -= 1;
        if watch.waiters > 0 {
            return;
        }
        descriptors.remove(&fd);
        drop(descriptors);
        // It may be closed by now, which ends the watch as well.
        let _ = self.registry.deregister_descriptor(fd);
        self.forget(token);
    }

    /// Lets everybody who waits for a descriptor try.
    fn give_up(&self, watch: &Watch) {
        watch.source.is_readable.set(true);
        watch.source.is_writable.set(true);
        self.forget(watch.token);
    }

    /// Waits for an event of a source that was registered just now, which the poll reports if it is ready already.
    fn wait_once(&self, token: usize, source: &Source, interest: Interest, deadline_ns: Option<u64>) -> io::Result<()> {
        let waited = wait(source, interest, deadline_ns);
        self.forget(token);
        waited
    }
}

/// Waits until a source is ready as far as is known.
fn wait(source: &Source, interest: Interest, deadline_ns: Option<u64>) -> io::Result<()> {
    while !source.flag(interest).get() {
        source.park(deadline_ns)?;
    }
    Ok(())
}

/// Waits until a descriptor is ready in one of the wanted ways, and says in which. Several fibers may wait for the same descriptor. Yields.
///
/// Errors: `TimedOut`; the fiber was cancelled; the descriptor cannot be watched, as those of files; inside a simulation, which has none.
pub fn wait_descriptor(fd: RawFd, wanted: Readiness, deadline_ns: Option<u64>) -> io::Result<Readiness> {
    let reactor = installed()?;
    let (token, source) = reactor.watch(fd)?;
    let found = loop {
        let found = Readiness {
            is_readable: wanted.is_readable && source.is_readable.get(),
            is_writable: wanted.is_writable && source.is_writable.get(),
        };
        if found.is_readable || found.is_writable {
            break Ok(found);
        }
        if let Err(error) = source.park(deadline_ns) {
            break Err(error);
        }
    };
    reactor.unwatch(fd, token);
    found
}

/// Ends all waits for a descriptor, which is about to be closed: each says that it is ready.
pub fn forget_descriptor(fd: RawFd) {
    let Ok(reactor) = installed() else { return };
    let Some(watch) = reactor.descriptors.borrow_mut().remove(&fd) else { return };
    let _ = reactor.registry.deregister_descriptor(fd);
    reactor.give_up(&watch);
}

/// Number of descriptors that fibers wait for.
pub fn watched_descriptors() -> usize {
    installed().map_or(0, |reactor| reactor.descriptors.borrow().len())
}

/// Waits until a notifier is readable. A notifier is watched for good. Yields. Errors: as those of [`wait_descriptor`].
pub fn wait_notified(notifier: &Notifier, deadline_ns: Option<u64>) -> io::Result<()> {
    if let Some(fd) = notifier.raw_fd() {
        let wanted = Readiness { is_readable: true, is_writable: false };
        return wait_descriptor(fd, wanted, deadline_ns).map(|_| ());
    }
    let reactor = installed()?;
    let (token, source) = reactor.add();
    if let Err(error) = reactor.registry.register_notifier(notifier, Token(token)) {
        reactor.forget(token);
        return Err(error);
    }
    reactor.wait_once(token, &source, Interest::Readable, deadline_ns)
}

/// A connection whose reader and writer are fibers. As `Read` and `Write` it waits at most `timeout_ns` each time.
pub struct Socket {
    stream: Stream,
    token: usize,
    source: Rc<Source>,
    reactor: Rc<Reactor>,
    /// Bound of each wait, if there is one.
    timeout_ns: Cell<Option<u64>>,
}

impl Socket {
    /// A connection that never blocks. Errors: no event loop runs on this thread; it cannot be watched.
    pub fn new(mut stream: Stream) -> io::Result<Self> {
        let reactor = installed()?;
        let (token, source) = reactor.add();
        if let Err(error) = reactor.registry.register_stream(&mut stream, Token(token)) {
            reactor.forget(token);
            return Err(error);
        }
        Ok(Socket { stream, token, source, reactor, timeout_ns: Cell::new(None) })
    }

    /// Connects. Yields. Errors: `TimedOut`; the fiber was cancelled; the system's.
    pub fn connect(address: &Address, timeout_ns: u64) -> io::Result<Self> {
        let deadline = fiber::now_ns().saturating_add(timeout_ns);
        let socket = Socket::new(Stream::connect(address)?)?;
        loop {
            wait(&socket.source, Interest::Writable, Some(deadline))?;
            if socket.stream.finish_connect()? {
                let _ = socket.stream.set_nodelay(true);
                return Ok(socket);
            }
            socket.source.is_writable.set(false);
        }
    }

    /// Bounds each wait from now on; none: no bound.
    pub fn set_timeout_ns(&self, timeout_ns: Option<u64>) {
        self.timeout_ns.set(timeout_ns);
    }

    /// The connection.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Tries until there is an outcome, and waits in between.
    fn wait_for<T>(&self, interest: Interest, mut attempt: impl FnMut(&Stream) -> io::Result<T>) -> io::Result<T> {
        let deadline = self.timeout_ns.get().map(|timeout| fiber::now_ns().saturating_add(timeout));
        loop {
            // Forgotten before the attempt: what comes behind it is an event again.
            self.source.flag(interest).set(false);
            match attempt(&self.stream) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => wait(&self.source, interest, deadline)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }
}

impl Read for Socket {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.wait_for(Interest::Readable, |mut stream| stream.read(out))
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait_for(Interest::Writable, |mut stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = self.reactor.registry.deregister_stream(&self.stream, Token(self.token));
        self.reactor.forget(self.token);
    }
}

/// Addresses that a text stands for, as [`Address::resolve`] has them, without blocking the thread. Yields.
///
/// Errors: `TimedOut`; the fiber was cancelled; the text is no address, or nobody knows the name.
pub fn resolve(text: &str, deadline_ns: Option<u64>) -> io::Result<Vec<Address>> {
    let is_name =
        Address::unix_path(text).is_none() && text.parse::<u16>().is_err() && text.parse::<SocketAddr>().is_err();
    if !is_name {
        return Address::resolve(text);
    }
    let reactor = installed()?;
    let id = fiber::current().ok_or_else(|| io::Error::other("only a fiber can wait here"))?;
    while reactor.resolvers.get() >= RESOLVERS_MAX {
        reactor.queue.borrow_mut().push_back(id);
        let parked = park(deadline_ns);
        reactor.queue.borrow_mut().retain(|other| *other != id);
        parked?;
    }
    let result = Arc::new(Mutex::new(None));
    let (slot, text) = (Arc::clone(&result), text.to_string());
    let (resolved, waker) = (Arc::clone(&reactor.resolved), Arc::clone(&reactor.waker));
    reactor.resolvers.set(reactor.resolvers.get() + 1);
    let spawned = spawn_thread("resolve", move || {
        let found = look_up(&text);
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        resolved.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        // A loop that cannot be woken has ended.
        let _ = waker.wake();
    });
    if let Err(error) = spawned {
        reactor.resolvers.set(reactor.resolvers.get() - 1);
        return Err(error);
    }
    loop {
        if let Some(found) = result.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return found;
        }
        park(deadline_ns)?;
    }
}

/// What the system says of a name. A simulated machine knows its own.
fn look_up(text: &str) -> io::Result<Vec<Address>> {
    let Some(simulation) = simulation::current() else { return Address::resolve(text) };
    simulation.sleep(simulation.between(simulation.config().net_delay_ns));
    match text.rsplit_once(':').map(|(host, port)| (host, port.parse::<u16>())) {
        Some(("localhost", Ok(port))) => Ok(vec![Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))]),
        _ => Err(io::Error::new(ErrorKind::NotFound, format!("nobody knows '{text}'"))),
    }
}
