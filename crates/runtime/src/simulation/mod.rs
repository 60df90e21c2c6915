//! A whole machine in one thread: time, threads, sockets and the pace of files, all from one seed.
//!
//! The idea. While a [`Simulation`] is entered, this crate's threads, sockets, notifiers and pauses are simulated ones; code above cannot
//! tell. The code that entered it is the *main* thread: the transaction thread of a server. Every other thread is a coroutine. A thread
//! runs until it waits for a file, a condition, a socket or a sleep. Then the seed chooses the next one among the threads that can run; if
//! none can, time moves to the next moment at which one can. So every hand-over is a choice of the seed, and the same seed
//! gives the same history to the byte.
//!
//! ```text
//! main waits (poll, file, join) --> step: a due event | a ready thread | time moves on --> main goes on when its wait is over
//! ```
//!
//! Refused: real threads that pass a token (a hand-over costs fifty times as much), and threads as state machines (the code above would be
//! written for the simulation).
//!
//! Rules. A simulated thread must not wait while it holds a lock of the standard library. One simulation is entered by one real thread;
//! others may run beside it.
#![expect(unsafe_code, reason = "a thread reaches its yielder through a pointer kept while it runs")]

mod files;
mod net;

pub use files::PacedFiles;
pub(crate) use net::{Listener, Stream};

use crate::clock::Clock;
use crate::random::{Randomness, SeededRandomness};
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};
use net::Net;
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const STACK_BYTES: usize = 256 << 10;
/// Lines of the trace that are kept.
const TRACE_LINES_MAX: usize = 1_000_000;
/// Steps without the main thread going on: more means that nobody ever will.
const STEPS_MAX: u64 = 5_000_000;

/// How the machine behaves. All times in nanoseconds; ranges are chosen from uniformly.
#[derive(Clone, Copy, Debug)]
pub struct MachineConfig {
    /// Time that a byte stream takes, each time that something is sent.
    pub net_delay_ns: (u64, u64),
    /// One delivery in this many is cut at some byte, and its connection with it; 0 for none.
    pub cut_one_in: u64,
    /// Time that an operation on a file takes.
    pub file_delay_ns: (u64, u64),
    /// One file operation in this many takes a hundred times as long; 0 for none.
    pub slow_file_one_in: u64,
    /// Percentage of looks into the page cache that find nothing.
    pub uncached_percent: u64,
    /// One file in this many cannot be opened past the page cache; 0 for none.
    pub direct_refused_one_in: u64,
    /// One read past the page cache in this many fails, as on file systems that support it in some places only; 0 for none.
    pub direct_read_fails_one_in: u64,
    /// Most bytes that wait in one direction of a connection.
    pub socket_bytes_max: usize,
}

impl Default for MachineConfig {
    fn default() -> Self {
        MachineConfig {
            net_delay_ns: (5_000, 200_000),
            cut_one_in: 0,
            file_delay_ns: (1_000, 150_000),
            slow_file_one_in: 50,
            uncached_percent: 50,
            direct_refused_one_in: 0,
            direct_read_fails_one_in: 0,
            socket_bytes_max: 64 << 10,
        }
    }
}

type Routine = Coroutine<(), (), (), DefaultStack>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// Can go on.
    Nothing,
    /// For a key, at most until a time.
    Key(u64, Option<u64>),
    Time(u64),
}

struct Thread {
    name: String,
    waiting: Cell<Waiting>,
    /// The last wait ended because its key was woken.
    was_woken: Cell<bool>,
    routine: RefCell<Option<Routine>>,
    yielder: Cell<*const Yielder<(), ()>>,
    /// Woken when the thread ends.
    ended_key: u64,
    /// It belongs to the process of the main thread.
    is_main: bool,
}

enum Event {
    Net(net::Delivery),
    Call(Box<dyn FnOnce()>),
}

struct Timed {
    at: (u64, u64),
    event: Event,
}

impl PartialEq for Timed {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}
impl Eq for Timed {}
impl PartialOrd for Timed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Timed {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}

/// What was readable or writable since the last poll.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ready {
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    pub(crate) read_closed: bool,
}

/// See the head of this file.
pub struct Simulation {
    config: Cell<MachineConfig>,
    now_ns: Arc<AtomicU64>,
    random: SeededRandomness,
    threads: RefCell<BTreeMap<u64, Rc<Thread>>>,
    current: RefCell<Option<Rc<Thread>>>,
    /// What the main thread waits for, and whether it was woken.
    main: Cell<Waiting>,
    main_woken: Cell<bool>,
    events: RefCell<BinaryHeap<Reverse<Timed>>>,
    next_id: Cell<u64>,
    net: RefCell<Net>,
    polls: RefCell<BTreeMap<u64, BTreeMap<usize, Ready>>>,
    is_killed: Cell<bool>,
    steps: Cell<u64>,
    hash: Cell<u64>,
    trace: RefCell<Option<VecDeque<String>>>,
    counts: RefCell<BTreeMap<&'static str, u64>>,
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<Simulation>>> = const { RefCell::new(None) };
}

/// The simulation that this thread has entered.
pub(crate) fn current() -> Option<Rc<Simulation>> {
    CURRENT.with(|current| current.borrow().clone())
}

struct SimulatedClock {
    now_ns: Arc<AtomicU64>,
    /// Largest error of the time of day.
    wall_offset_ns: Arc<AtomicU64>,
}

impl Clock for SimulatedClock {
    fn monotonic_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    fn wall_ns(&self) -> u64 {
        // Some moment in 2026, so that times look like times.
        let start = 1_790_000_000_000_000_000u64;
        start.wrapping_add(self.monotonic_ns()).wrapping_add(self.wall_offset_ns.load(Ordering::Relaxed))
    }
}

impl Simulation {
    /// A machine at time 0.
    pub fn new(seed: u64, config: MachineConfig) -> Rc<Self> {
        Rc::new(Simulation {
            config: Cell::new(config),
            now_ns: Arc::new(AtomicU64::new(0)),
            random: SeededRandomness::new(seed),
            threads: RefCell::default(),
            current: RefCell::default(),
            main: Cell::new(Waiting::Nothing),
            main_woken: Cell::new(false),
            events: RefCell::default(),
            next_id: Cell::new(1),
            net: RefCell::default(),
            polls: RefCell::default(),
            is_killed: Cell::new(false),
            steps: Cell::new(0),
            hash: Cell::new(seed),
            trace: RefCell::default(),
            counts: RefCell::default(),
        })
    }

    /// Runs `work` as the main thread of this machine.
    pub fn enter<T>(self: &Rc<Self>, work: impl FnOnce() -> T) -> T {
        struct Leave(Option<Rc<Simulation>>);
        impl Drop for Leave {
            fn drop(&mut self) {
                let before = self.0.take();
                CURRENT.with(|current| *current.borrow_mut() = before);
            }
        }
        let before = CURRENT.with(|current| current.borrow_mut().replace(Rc::clone(self)));
        let _leave = Leave(before);
        work()
    }

    /// How the machine behaves from now on.
    pub fn set_config(&self, config: MachineConfig) {
        self.config.set(config);
    }

    /// The machine's behaviour.
    pub fn config(&self) -> MachineConfig {
        self.config.get()
    }

    /// The machine's clocks. `wall_offset_ns` is added to the time of day and may be changed at any time.
    pub fn clock(&self, wall_offset_ns: Arc<AtomicU64>) -> Arc<dyn Clock> {
        Arc::new(SimulatedClock { now_ns: Arc::clone(&self.now_ns), wall_offset_ns })
    }

    /// Nanoseconds since the machine was made.
    pub fn now_ns(&self) -> u64 {
        self.now_ns.load(Ordering::Relaxed)
    }

    /// A number that the seed and everything so far determine.
    pub fn random(&self) -> u64 {
        self.random.next_u64()
    }

    /// A number from `range.0` to `range.1`.
    pub fn between(&self, range: (u64, u64)) -> u64 {
        range.0 + self.random() % (range.1 - range.0 + 1)
    }

    /// True once in `times`; never if that is 0.
    pub fn one_in(&self, times: u64) -> bool {
        times > 0 && self.random().is_multiple_of(times)
    }

    /// Counts that something rare was reached.
    pub fn count(&self, what: &'static str) {
        *self.counts.borrow_mut().entry(what).or_default() += 1;
    }

    /// How often each was reached.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.counts.borrow().clone()
    }

    /// Steps so far.
    pub fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// A number that stands for everything that has happened: equal for equal histories.
    pub fn hash(&self) -> u64 {
        self.hash.get()
    }

    /// From now on keeps the last lines of what happens.
    pub fn keep_trace(&self) {
        *self.trace.borrow_mut() = Some(VecDeque::new());
    }

    /// The lines kept.
    pub fn trace(&self) -> Vec<String> {
        self.trace.borrow().iter().flatten().cloned().collect()
    }

    /// Takes note of something that happened: `value` goes into the hash, the line into the trace if there is one.
    pub fn note(&self, value: u64, line: impl FnOnce() -> String) {
        let mut hash = self.hash.get() ^ value.wrapping_add(self.now_ns());
        hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.hash.set(hash ^ (hash >> 29));
        if let Some(trace) = self.trace.borrow_mut().as_mut() {
            if trace.len() == TRACE_LINES_MAX {
                trace.pop_front();
            }
            trace.push_back(format!("{:>12.3} us  {}", self.now_ns() as f64 / 1000.0, line()));
        }
    }

    fn new_id(&self) -> u64 {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        id
    }

    /// Something that can be waited for.
    pub(crate) fn new_key(&self) -> u64 {
        self.new_id()
    }

    fn at(&self, delay_ns: u64, event: Event) {
        self.at_time(self.now_ns() + delay_ns, event);
    }

    fn at_time(&self, time_ns: u64, event: Event) {
        let timed = Timed { at: (time_ns, self.new_id()), event };
        self.events.borrow_mut().push(Reverse(timed));
    }

    /// Calls `work` at a time, between two steps. It must not wait.
    pub fn call_at(&self, time_ns: u64, work: impl FnOnce() + 'static) {
        self.at_time(time_ns, Event::Call(Box::new(work)));
    }

    /// The process of the main thread is dead: its poll ends with an error, what it sends goes nowhere.
    pub fn kill(&self) {
        self.is_killed.set(true);
        self.note(1, || "killed".to_string());
    }

    /// True from `kill` to `revive`.
    pub fn is_killed(&self) -> bool {
        self.is_killed.get()
    }

    /// The main thread will be another process. `drop_silently`: its sockets' other ends hear nothing, as after a power loss.
    pub fn revive(&self, drop_silently: bool) {
        let all = std::mem::take(&mut *self.threads.borrow_mut());
        let (dead, alive) = all.into_iter().partition(|(_, thread)| thread.is_main);
        *self.threads.borrow_mut() = alive;
        leave(dead);
        self.net.borrow_mut().end_process(self, drop_silently);
        self.polls.borrow_mut().clear();
        self.is_killed.set(false);
    }

    // Threads.

    pub(crate) fn spawn(self: &Rc<Self>, name: &str, is_main: bool, work: Box<dyn FnOnce()>) -> u64 {
        let id = self.new_id();
        let stack = DefaultStack::new(STACK_BYTES).expect("address space for a stack is there");
        let thread = Rc::new(Thread {
            name: name.to_string(),
            waiting: Cell::new(Waiting::Nothing),
            was_woken: Cell::new(false),
            routine: RefCell::new(None),
            yielder: Cell::new(std::ptr::null()),
            ended_key: self.new_id(),
            is_main,
        });
        let own = Rc::clone(&thread);
        let routine = Coroutine::with_stack(stack, move |yielder, ()| {
            own.yielder.set(yielder);
            drop(own);
            work();
        });
        *thread.routine.borrow_mut() = Some(routine);
        self.threads.borrow_mut().insert(id, thread);
        id
    }

    /// Starts a simulated thread, for those around the main one: clients.
    pub fn spawn_thread(self: &Rc<Self>, name: &str, work: impl FnOnce() + 'static) {
        self.spawn(name, false, Box::new(work));
    }

    /// Threads that have not ended.
    pub fn threads(&self) -> usize {
        self.threads.borrow().len()
    }

    /// Waits until a thread has ended.
    pub(crate) fn join(&self, id: u64) {
        loop {
            let Some(key) = self.threads.borrow().get(&id).map(|thread| thread.ended_key) else { return };
            self.wait(key, None);
        }
    }

    fn suspend(&self, thread: &Thread, waiting: Waiting) {
        thread.waiting.set(waiting);
        thread.was_woken.set(false);
        // SAFETY: the thread is the running one, so its yielder is on its own stack and alive.
        unsafe { (*thread.yielder.get()).suspend(()) };
    }

    /// Waits for a key. True if it was woken, false if the time came first. Any thread.
    pub(crate) fn wait(&self, key: u64, until_ns: Option<u64>) -> bool {
        let own = self.current.borrow().clone();
        if let Some(thread) = own {
            self.suspend(&thread, Waiting::Key(key, until_ns));
            return thread.was_woken.get();
        }
        let before = (self.main.replace(Waiting::Key(key, until_ns)), self.main_woken.replace(false));
        let mut steps = 0;
        while !self.main_woken.get() && until_ns.is_none_or(|until| self.now_ns() < until) {
            if !self.step(until_ns) {
                panic!("nobody can go on: the main thread waits for what never comes");
            }
            steps += 1;
            assert!(steps < STEPS_MAX, "the main thread waits while others run in circles");
        }
        let was_woken = self.main_woken.get();
        self.main.set(before.0);
        self.main_woken.set(before.1);
        was_woken
    }

    /// Wakes those that wait for a key: all, or one that the seed chooses.
    pub(crate) fn wake(&self, key: u64, all: bool) {
        let threads = self.threads.borrow();
        let waits = |thread: &Rc<Thread>| matches!(thread.waiting.get(), Waiting::Key(other, _) if other == key);
        let waiting: Vec<&Rc<Thread>> = threads.values().filter(|thread| waits(thread)).collect();
        let main_waits = matches!(self.main.get(), Waiting::Key(other, _) if other == key);
        let count = waiting.len() + usize::from(main_waits);
        if count == 0 {
            return;
        }
        let chosen = if all { None } else { Some(self.random() as usize % count) };
        for (at, thread) in waiting.iter().enumerate() {
            if chosen.is_none_or(|chosen| chosen == at) {
                thread.waiting.set(Waiting::Nothing);
                thread.was_woken.set(true);
            }
        }
        if main_waits && chosen.is_none_or(|chosen| chosen == waiting.len()) {
            self.main_woken.set(true);
        }
    }

    /// Lets time pass for the calling thread; others go on meanwhile.
    pub fn sleep(&self, ns: u64) {
        let until = self.now_ns() + ns;
        let own = self.current.borrow().clone();
        match own {
            Some(thread) => self.suspend(&thread, Waiting::Time(until)),
            None => {
                // A key that nobody knows.
                self.wait(u64::MAX, Some(until));
            }
        }
    }

    /// One step of another thread than main, or time moves on, at most to `until_ns`. False if nothing can ever happen.
    fn step(&self, until_ns: Option<u64>) -> bool {
        self.steps.set(self.steps.get() + 1);
        let now = self.now_ns();
        let mut next = until_ns;
        let mut sooner = |time: u64| next = Some(next.map_or(time, |next: u64| next.min(time)));
        let mut ready = Vec::new();
        for (id, thread) in self.threads.borrow().iter() {
            match thread.waiting.get() {
                Waiting::Nothing => ready.push(*id),
                Waiting::Key(_, Some(until)) | Waiting::Time(until) if until <= now => ready.push(*id),
                Waiting::Key(_, Some(until)) | Waiting::Time(until) => sooner(until),
                Waiting::Key(_, None) => {}
            }
        }
        let event_time = self.events.borrow().peek().map(|Reverse(timed)| timed.at.0);
        let is_event_due = event_time.is_some_and(|time| time <= now);
        let choices = ready.len() + usize::from(is_event_due);
        if choices == 0 {
            if let Some(time) = event_time {
                sooner(time);
            }
            let Some(next) = next else { return false };
            self.now_ns.store(next.max(now), Ordering::Relaxed);
            return true;
        }
        let chosen = if choices == 1 { 0 } else { self.random() as usize % choices };
        match ready.get(chosen) {
            Some(id) => self.resume(*id),
            None => self.happen(),
        }
        true
    }

    fn happen(&self) {
        let Some(Reverse(timed)) = self.events.borrow_mut().pop() else { return };
        match timed.event {
            Event::Net(delivery) => net::deliver(self, delivery),
            Event::Call(work) => work(),
        }
    }

    fn resume(&self, id: u64) {
        let Some(thread) = self.threads.borrow().get(&id).cloned() else { return };
        let Some(mut routine) = thread.routine.borrow_mut().take() else { return };
        self.note(id, || format!("thread {}", thread.name));
        thread.waiting.set(Waiting::Nothing);
        let before = self.current.borrow_mut().replace(Rc::clone(&thread));
        let result = routine.resume(());
        *self.current.borrow_mut() = before;
        match result {
            CoroutineResult::Yield(()) => *thread.routine.borrow_mut() = Some(routine),
            CoroutineResult::Return(()) => {
                self.threads.borrow_mut().remove(&id);
                self.wake(thread.ended_key, true);
            }
        }
    }

    // Readiness.

    pub(crate) fn new_poll(&self) -> u64 {
        let id = self.new_id();
        self.polls.borrow_mut().insert(id, BTreeMap::new());
        id
    }

    pub(crate) fn make_ready(&self, registration: Option<(u64, usize)>, set: impl FnOnce(&mut Ready)) {
        let Some((poll, token)) = registration else { return };
        if let Some(ready) = self.polls.borrow_mut().get_mut(&poll) {
            set(ready.entry(token).or_default());
        }
        self.wake(poll, true);
    }

    pub(crate) fn forget_token(&self, poll: u64, token: usize) {
        if let Some(ready) = self.polls.borrow_mut().get_mut(&poll) {
            ready.remove(&token);
        }
    }

    /// What became ready, after waiting for it. Errors: the process was killed.
    pub(crate) fn poll(&self, poll: u64, timeout_ns: Option<u64>) -> std::io::Result<Vec<(usize, Ready)>> {
        let killed = || std::io::Error::other("the simulated process was killed");
        // A turn of a loop takes time, too, and others may come first.
        self.sleep(self.between((200, 3_000)));
        let until = timeout_ns.map(|timeout| self.now_ns() + timeout);
        loop {
            if self.is_killed() {
                return Err(killed());
            }
            let taken = self.polls.borrow_mut().get_mut(&poll).map(std::mem::take).unwrap_or_default();
            if !taken.is_empty() {
                let mut taken: Vec<(usize, Ready)> = taken.into_iter().collect();
                // In any order.
                for at in (1..taken.len()).rev() {
                    taken.swap(at, self.random() as usize % (at + 1));
                }
                return Ok(taken);
            }
            if until.is_some_and(|until| self.now_ns() >= until) {
                return Ok(Vec::new());
            }
            self.wait(poll, until);
        }
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        leave(std::mem::take(&mut *self.threads.borrow_mut()));
    }
}

/// Threads that never end are left as they are: what they hold may belong to those that are gone.
fn leave(threads: BTreeMap<u64, Rc<Thread>>) {
    for (_, thread) in threads {
        if let Some(routine) = thread.routine.borrow_mut().take() {
            std::mem::forget(routine);
        }
    }
}
