//! Many clients in one thread, each a fiber that waits for its answers while the others go on. A thread for each would spend more on waking than the
//! servers on the requests, and the figure would be about the clients.

use runtime::fiber;
use runtime::net::{Address, Event, Poll, Token, Waker};
use runtime::reactor::{self, Socket};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest wait for an answer.
const WAIT_NS_MAX: u64 = 60_000_000_000;
/// How long a client without an answer looks before it sleeps.
const LOOKING: Duration = Duration::from_micros(200);
const WAKE: Token = Token(0);
const SWITCHES_MAX: usize = 1000;

/// What one client does once all are connected.
pub(crate) type Work<T> = Box<dyn FnOnce() -> Result<T, String>>;

/// Connects so many clients by `connect`, then lets all of them work. What they found, and the seconds between the last connection and the last answer.
///
/// Errors: the first of a client.
pub(crate) fn run<T: Send + 'static>(
    clients: u64,
    connect: impl Fn(u64) -> Result<Work<T>, String> + Send + 'static,
) -> Result<(Vec<T>, f64), String> {
    let thread = std::thread::spawn(move || all(clients, Rc::new(connect)).map_err(|error| error.to_string())?);
    thread.join().map_err(|_| "a client panicked".to_string())?
}

/// One client: its answer, once there is one.
type Slot<T> = Rc<RefCell<Option<Result<T, String>>>>;

fn all<T: 'static>(
    clients: u64,
    connect: Rc<dyn Fn(u64) -> Result<Work<T>, String>>,
) -> std::io::Result<Result<(Vec<T>, f64), String>> {
    let mut poll = Poll::new()?;
    reactor::install(poll.registry()?, Arc::new(Waker::new(&poll.registry()?, WAKE)?));
    let start = Instant::now();
    fiber::set_clock(Rc::new(move || start.elapsed().as_nanos() as u64));
    let connected = Rc::new(Cell::new(0));
    let begun = Rc::new(Cell::new(None));
    let slots: Vec<Slot<T>> = (0..clients).map(|_| Rc::default()).collect();
    for (id, slot) in (0..clients).zip(&slots) {
        let (connect, slot) = (Rc::clone(&connect), Rc::clone(slot));
        let (connected, begun) = (Rc::clone(&connected), Rc::clone(&begun));
        fiber::spawn("client", move || {
            let work = connect(id);
            connected.set(connected.get() + 1);
            while connected.get() < clients {
                fiber::sleep(100_000);
            }
            if begun.get().is_none() {
                begun.set(Some(Instant::now()));
            }
            let found = work.and_then(|work| work());
            *slot.borrow_mut() = Some(found);
        });
    }
    let mut events = Vec::new();
    let mut is_busy = true;
    while slots.iter().any(|slot| slot.borrow().is_none()) {
        let due = fiber::next_deadline().map_or(u64::MAX, |due| due.saturating_sub(fiber::now_ns()));
        let wait = if is_busy { 0 } else { due.min(1_000_000_000) };
        wait_for(&mut poll, wait, &mut events)?;
        events.drain(..).for_each(|event| match event.token {
            WAKE => reactor::note_wake(),
            _ => reactor::note(&event),
        });
        is_busy = fiber::run_ready(SWITCHES_MAX);
    }
    let seconds = begun.get().map_or(0.0, |begun: Instant| begun.elapsed().as_secs_f64());
    while fiber::run_ready(SWITCHES_MAX) {}
    reactor::uninstall();
    let found = slots.iter().filter_map(|slot| slot.borrow_mut().take()).collect::<Result<Vec<_>, _>>();
    Ok(found.map(|found| (found, seconds)))
}

/// Waits for events, and looks for a while before it sleeps: what a processor takes to wake up is not what is measured. Who else wants to run may.
fn wait_for(poll: &mut Poll, wait_ns: u64, events: &mut Vec<Event>) -> std::io::Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < LOOKING.min(Duration::from_nanos(wait_ns)) {
        poll.poll(Duration::ZERO, events)?;
        if !events.is_empty() {
            return Ok(());
        }
        std::thread::yield_now();
    }
    poll.poll(Duration::from_nanos(wait_ns), events)
}

/// A connection of the calling fiber. Errors: nobody listens there.
pub(crate) fn dial(address: &str) -> std::io::Result<Socket> {
    let addresses = Address::resolve(address)?;
    let first = addresses.first().ok_or_else(|| std::io::Error::other("no such address"))?;
    let socket = Socket::connect(first, WAIT_NS_MAX)?;
    socket.set_timeout_ns(Some(WAIT_NS_MAX));
    Ok(socket)
}
