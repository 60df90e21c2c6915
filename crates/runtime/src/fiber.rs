//! Fibers: stackful coroutines that a thread runs one at a time.
//!
//! A fiber is straight-line code that may wait: `park` leaves the thread to others until somebody wakes it. Nothing is
//! preempted, so between two waits the state of the thread may be trusted. There is one scheduler per thread; the event loop
//! calls `run_ready` in every turn and sleeps no longer than `next_deadline`.
//!
//! Rules of the stacks underneath: a suspended coroutine is never dropped (that would unwind it by a panic); a fiber ends by
//! returning. Cancelling sets a flag and wakes the fiber; its waits report it. At the end of the process fibers
//! are simply left.
#![expect(unsafe_code, reason = "a fiber reaches its yielder through a pointer kept while it runs")]

use corosensei::stack::{DefaultStack, Stack};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use hashbrown::HashMap;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Address space of one stack. Memory is used only as far as the stack is. A tree of the longest statement of SQL, two thousand levels deep, is copied by
/// recursion with about a KiB for each.
const STACK_BYTES: usize = 4 << 20;
/// Numbers below are left for the system's, as Tarantool does.
const FIRST_ID: u64 = 101;
/// Stacks kept for reuse, of which each has a page or two of memory. Mapping and unmapping one costs four system calls. Enough are kept for the
/// disk reads of a few connections that pipeline many requests.
const POOL_MAX: usize = 1024;

/// Names a fiber; never used twice in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FiberId(pub u64);

/// Time that fibers get in one turn of the loop; one that runs longer is the last of its turn.
const TURN_NS: u64 = 5_000_000;

/// Fibers that there may be at once if nobody says otherwise. Each stack is two areas of address space with guards, of which a Linux process has
/// 65,530 by default.
pub const FIBERS_MAX_DEFAULT: usize = 25_000;
/// Beyond the bound: for those that the process itself needs, whose number has bounds of their own.
pub const FIBERS_RESERVED: usize = 4_000;

const _: () = assert!(2 * (FIBERS_MAX_DEFAULT + FIBERS_RESERVED) < 60_000);

/// A fiber that was asked for cannot be had: there are as many as there may be, or no memory for another stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyFibers {
    /// Fibers there are.
    pub count: usize,
    /// Bytes of address space that one takes.
    pub stack_bytes: usize,
}

impl std::fmt::Display for TooManyFibers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "there are {} fibers, and no more can be had", self.count)
    }
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Somebody called `wake`.
    Woken,
    /// The deadline came.
    Timeout,
    /// The fiber was cancelled, now or before.
    Cancelled,
}

/// What a fiber is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// On the processor.
    Running,
    /// Waiting or ready.
    Suspended,
    /// Ended.
    Dead,
}

type Work = Coroutine<(), (), (), DefaultStack>;

struct Fiber {
    name: RefCell<String>,
    coroutine: RefCell<Option<Work>>,
    yielder: Cell<*const Yielder<(), ()>>,
    stack_limit: Cell<usize>,
    is_parked: Cell<bool>,
    is_cancelled: Cell<bool>,
    wake: Cell<Wake>,
    /// Tells the timer of this wait from those of earlier ones.
    wait: Cell<u64>,
    switches: Cell<u64>,
    /// Time that it has waited, in all.
    waited_ns: Cell<u64>,
    /// Long slices of this fiber are reported by `running_slice`.
    is_slice_bounded: Cell<bool>,
    local: RefCell<Option<Rc<dyn Any>>>,
    joiners: RefCell<Vec<FiberId>>,
}

struct Scheduler {
    fibers: RefCell<HashMap<FiberId, Rc<Fiber>>>,
    ready: RefCell<VecDeque<FiberId>>,
    /// Ready in the next turn of the loop.
    next_turn: RefCell<VecDeque<FiberId>>,
    /// Those of this turn: they come behind all others that are ready, but one of them in each turn whatever others do.
    patient: RefCell<VecDeque<FiberId>>,
    timers: RefCell<BinaryHeap<Reverse<(u64, u64, FiberId)>>>,
    current: Cell<Option<FiberId>>,
    running: RefCell<Option<Rc<Fiber>>>,
    pool: RefCell<Vec<DefaultStack>>,
    clock: RefCell<Rc<dyn Fn() -> u64>>,
    /// Says whether what runs the fibers has something else to do.
    glance: RefCell<Option<Rc<dyn Fn() -> bool>>>,
    on_yield: RefCell<Option<Rc<dyn Fn()>>>,
    after_yield: RefCell<Option<Rc<dyn Fn()>>>,
    calls_after_yield: Cell<bool>,
    next_id: Cell<u64>,
    /// Fibers that `try_spawn` makes at most.
    max: Cell<usize>,
    /// When a fiber began to wait last.
    last_wait_ns: Cell<u64>,
}

impl Scheduler {
    fn has_ready(&self) -> bool {
        !self.ready.borrow().is_empty() || !self.patient.borrow().is_empty() || !self.next_turn.borrow().is_empty()
    }
}

/// Set in the number of a slice that is not bounded.
pub const UNBOUNDED_SLICE: u64 = 1 << 63;

/// The slice that the thread with fibers is in, for a watchdog; 0 outside of fibers.
static RUNNING_SLICE: AtomicU64 = AtomicU64::new(0);
static NEXT_SLICE: AtomicU64 = AtomicU64::new(1);

/// Numbers the time between two waits of the running fiber; 0 if no fiber runs. With [`UNBOUNDED_SLICE`] if it may take as long as it likes.
/// Any thread may ask; it makes sense if one thread has fibers.
pub fn running_slice() -> u64 {
    RUNNING_SLICE.load(Ordering::Relaxed)
}

fn next_slice(is_bounded: bool) -> u64 {
    NEXT_SLICE.fetch_add(1, Ordering::Relaxed) | if is_bounded { 0 } else { UNBOUNDED_SLICE }
}

/// Begins a new slice of the running fiber: after long work that was not its fault.
pub fn restart_slice() {
    let slice = running_slice();
    if slice != 0 {
        RUNNING_SLICE.store(next_slice(slice & UNBOUNDED_SLICE == 0), Ordering::Relaxed);
    }
}

/// Says whether the running fiber's slices count.
pub fn set_slice_bounded(is_bounded: bool) {
    if let Some(fiber) = running() {
        fiber.is_slice_bounded.set(is_bounded);
        RUNNING_SLICE.store(next_slice(is_bounded), Ordering::Relaxed);
    }
}

thread_local! {
    static SCHEDULER: Scheduler = Scheduler {
        fibers: RefCell::default(),
        ready: RefCell::default(),
        next_turn: RefCell::default(),
        patient: RefCell::default(),
        timers: RefCell::default(),
        current: Cell::new(None),
        running: RefCell::default(),
        pool: RefCell::default(),
        clock: RefCell::new(Rc::new(|| 0)),
        glance: RefCell::default(),
        on_yield: RefCell::default(),
        after_yield: RefCell::default(),
        calls_after_yield: Cell::new(false),
        next_id: Cell::new(FIRST_ID),
        max: Cell::new(FIBERS_MAX_DEFAULT),
        last_wait_ns: Cell::new(0),
    };
}

fn with<T>(work: impl FnOnce(&Scheduler) -> T) -> T {
    SCHEDULER.with(work)
}

/// Sets the clock that deadlines are compared with: nanoseconds that only grow.
pub fn set_clock(clock: Rc<dyn Fn() -> u64>) {
    with(|scheduler| *scheduler.clock.borrow_mut() = clock);
}

/// The scheduler's time in nanoseconds.
pub fn now_ns() -> u64 {
    let clock = with(|scheduler| Rc::clone(&scheduler.clock.borrow()));
    clock()
}

/// Sets the function that tells a running fiber whether what runs the fibers has something else to do.
pub fn set_glance(glance: Rc<dyn Fn() -> bool>) {
    with(|scheduler| *scheduler.glance.borrow_mut() = Some(glance));
}

/// True if somebody waits for the running fiber to give way: another fiber is ready that has not [given way](yield_turn) itself, or a request has come.
/// Costs about half a microsecond.
pub fn is_awaited() -> bool {
    let glance = with(|scheduler| match scheduler.ready.borrow().is_empty() {
        false => Err(()),
        true => Ok(scheduler.glance.borrow().clone()),
    });
    match glance {
        Err(()) => true,
        Ok(glance) => glance.is_some_and(|glance| glance()),
    }
}

/// Sets the function that is called in a fiber just before it waits.
pub fn on_yield(hook: Rc<dyn Fn()>) {
    with(|scheduler| *scheduler.on_yield.borrow_mut() = Some(hook));
}

/// Sets the function that is called in a fiber just after it has waited, while [`call_after_yield`] wants it.
pub fn after_yield(hook: Rc<dyn Fn()>) {
    with(|scheduler| *scheduler.after_yield.borrow_mut() = Some(hook));
}

/// Whether the function of [`after_yield`] is called.
pub fn call_after_yield(is_wanted: bool) {
    with(|scheduler| scheduler.calls_after_yield.set(is_wanted));
}

/// Sets how many fibers `try_spawn` makes at most.
pub fn set_max(max: usize) {
    with(|scheduler| scheduler.max.set(max));
}

/// How many fibers `try_spawn` makes at most.
pub fn max() -> usize {
    with(|scheduler| scheduler.max.get())
}

/// Makes a fiber for whoever may ask for any number of them; it starts when the scheduler runs. Errors: there are too many, also those that
/// were not made here.
pub fn try_spawn(name: &str, work: impl FnOnce() + 'static) -> Result<FiberId, TooManyFibers> {
    let count = with(|scheduler| scheduler.fibers.borrow().len());
    if count >= max() {
        return Err(TooManyFibers { count, stack_bytes: STACK_BYTES });
    }
    let (id, _) = create(name, work)?;
    with(|scheduler| scheduler.ready.borrow_mut().push_back(id));
    Ok(id)
}

/// Makes a fiber that the process itself needs; it starts when the scheduler runs. The caller bounds how many there are.
pub fn spawn(name: &str, work: impl FnOnce() + 'static) -> FiberId {
    let (id, _) = create(name, work).expect(RESERVE_IS_THERE);
    with(|scheduler| scheduler.ready.borrow_mut().push_back(id));
    id
}

/// Makes a fiber that the process itself needs and runs it until its first wait or its end. Inside a fiber it only becomes ready.
pub fn run_now(name: &str, work: impl FnOnce() + 'static) -> FiberId {
    if current().is_some() {
        return spawn(name, work);
    }
    let (id, fiber) = create(name, work).expect(RESERVE_IS_THERE);
    resume(id, &fiber);
    id
}

/// Why a fiber of the process's own can be had.
const RESERVE_IS_THERE: &str = "address space for a stack is left: others may have `max` fibers, these are few";

fn create(name: &str, work: impl FnOnce() + 'static) -> Result<(FiberId, Rc<Fiber>), TooManyFibers> {
    with(|scheduler| {
        let pooled = scheduler.pool.borrow_mut().pop();
        let stack = match pooled {
            Some(stack) => stack,
            None => DefaultStack::new(STACK_BYTES)
                .map_err(|_| TooManyFibers { count: scheduler.fibers.borrow().len(), stack_bytes: STACK_BYTES })?,
        };
        let id = FiberId(scheduler.next_id.get());
        scheduler.next_id.set(id.0 + 1);
        let stack_limit = stack.limit().get();
        let fiber = Rc::new(Fiber {
            name: RefCell::new(name.to_string()),
            coroutine: RefCell::new(None),
            yielder: Cell::new(std::ptr::null()),
            stack_limit: Cell::new(stack_limit),
            is_parked: Cell::new(false),
            is_cancelled: Cell::new(false),
            wake: Cell::new(Wake::Woken),
            wait: Cell::new(0),
            switches: Cell::new(0),
            waited_ns: Cell::new(0),
            is_slice_bounded: Cell::new(true),
            local: RefCell::default(),
            joiners: RefCell::default(),
        });
        let own = Rc::clone(&fiber);
        let coroutine = Coroutine::with_stack(stack, move |yielder, ()| {
            own.yielder.set(yielder);
            drop(own);
            if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
                let text = panic
                    .downcast_ref::<String>()
                    .map(String::as_str)
                    .or_else(|| panic.downcast_ref::<&str>().copied());
                tracing::error!("a fiber panicked: {}", text.unwrap_or("no message"));
            }
        });
        *fiber.coroutine.borrow_mut() = Some(coroutine);
        scheduler.fibers.borrow_mut().insert(id, Rc::clone(&fiber));
        Ok((id, fiber))
    })
}

/// Runs a fiber until it waits or ends. Called by the loop only.
fn resume(id: FiberId, fiber: &Rc<Fiber>) {
    let Some(mut coroutine) = fiber.coroutine.borrow_mut().take() else {
        return;
    };
    fiber.switches.set(fiber.switches.get() + 1);
    with(|scheduler| {
        scheduler.current.set(Some(id));
        *scheduler.running.borrow_mut() = Some(Rc::clone(fiber));
    });
    RUNNING_SLICE.store(next_slice(fiber.is_slice_bounded.get()), Ordering::Relaxed);
    let result = coroutine.resume(());
    RUNNING_SLICE.store(0, Ordering::Relaxed);
    with(|scheduler| {
        scheduler.current.set(None);
        *scheduler.running.borrow_mut() = None;
    });
    match result {
        CoroutineResult::Yield(()) => *fiber.coroutine.borrow_mut() = Some(coroutine),
        CoroutineResult::Return(()) => {
            with(|scheduler| {
                scheduler.fibers.borrow_mut().remove(&id);
                let mut pool = scheduler.pool.borrow_mut();
                if pool.len() < POOL_MAX {
                    pool.push(coroutine.into_stack());
                }
            });
            let joiners = fiber.joiners.take();
            // Its destructor may call back here.
            let local = fiber.local.take();
            drop(local);
            for joiner in joiners {
                wake(joiner);
            }
        }
    }
}

/// Leaves all fibers of this thread as they are, for ever, and begins anew: the simulated process that they belonged to has died. What
/// is on their stacks is leaked. Not to be called in a fiber.
pub fn abandon() {
    assert!(current().is_none(), "a fiber cannot abandon itself");
    let fibers = with(|scheduler| {
        scheduler.ready.borrow_mut().clear();
        scheduler.next_turn.borrow_mut().clear();
        scheduler.patient.borrow_mut().clear();
        scheduler.timers.borrow_mut().clear();
        scheduler.on_yield.take();
        scheduler.after_yield.take();
        scheduler.calls_after_yield.set(false);
        scheduler.glance.take();
        scheduler.next_id.set(FIRST_ID);
        scheduler.fibers.take()
    });
    let mut fibers: Vec<_> = fibers.into_iter().collect();
    fibers.sort_unstable_by_key(|(id, _)| *id);
    for (_, fiber) in fibers {
        std::mem::forget(fiber.coroutine.borrow_mut().take());
        drop(fiber.local.take());
    }
}

/// Runs fibers that are ready, at most `max` switches and for about 5 ms: others than fibers have their turn, too. Returns true if more are
/// ready. Called by the loop.
pub fn run_ready(max: usize) -> bool {
    let begun = now_ns();
    expire_timers(begun);
    with(|scheduler| scheduler.patient.borrow_mut().append(&mut scheduler.next_turn.borrow_mut()));
    let (mut has_time, mut owes_patient) = (true, with(|scheduler| !scheduler.patient.borrow().is_empty()));
    for number in 1..=max {
        let is_for_patient = owes_patient && (!has_time || number == max);
        let next = match is_for_patient {
            false => with(|scheduler| scheduler.ready.borrow_mut().pop_front()),
            true => None,
        };
        let next = next.or_else(|| {
            owes_patient = false;
            with(|scheduler| scheduler.patient.borrow_mut().pop_front())
        });
        let Some(id) = next else { break };
        let Some(fiber) = find(id) else { continue };
        resume(id, &fiber);
        // Who waits has asked for the time.
        let is_over = fiber.coroutine.borrow().is_none();
        let now = if is_over { now_ns() } else { with(|scheduler| scheduler.last_wait_ns.get()) };
        has_time = now.saturating_sub(begun) <= TURN_NS;
        if !has_time && !owes_patient {
            break;
        }
    }
    with(Scheduler::has_ready)
}

fn expire_timers(now: u64) {
    loop {
        let expired = with(|scheduler| {
            let mut timers = scheduler.timers.borrow_mut();
            match timers.peek() {
                Some(Reverse((deadline, ..))) if *deadline <= now => timers.pop(),
                _ => None,
            }
        });
        let Some(Reverse((_, wait, id))) = expired else {
            return;
        };
        let fiber = with(|scheduler| scheduler.fibers.borrow().get(&id).cloned());
        if let Some(fiber) = fiber
            && fiber.wait.get() == wait
        {
            make_ready(id, &fiber, Wake::Timeout);
        }
    }
}

/// When the next timed wait ends, in the clock's nanoseconds; 0 if a fiber is ready now.
pub fn next_deadline() -> Option<u64> {
    with(|scheduler| {
        if scheduler.has_ready() {
            return Some(0);
        }
        scheduler.timers.borrow().peek().map(|Reverse((deadline, ..))| *deadline)
    })
}

fn make_ready(id: FiberId, fiber: &Fiber, reason: Wake) {
    if fiber.is_parked.replace(false) {
        fiber.wake.set(reason);
        fiber.wait.set(fiber.wait.get() + 1);
        with(|scheduler| scheduler.ready.borrow_mut().push_back(id));
    }
}

fn running() -> Option<Rc<Fiber>> {
    with(|scheduler| scheduler.running.borrow().clone())
}

fn find(id: FiberId) -> Option<Rc<Fiber>> {
    with(|scheduler| scheduler.fibers.borrow().get(&id).cloned())
}

/// The fiber that calls, if it is one.
pub fn current() -> Option<FiberId> {
    with(|scheduler| scheduler.current.get())
}

/// Waits until woken. Yields; outside a fiber returns at once.
pub fn park() -> Wake {
    park_until(None)
}

/// Waits until woken or until a deadline of the scheduler's clock. Yields; outside a fiber returns at once.
pub fn park_until(deadline_ns: Option<u64>) -> Wake {
    let (Some(fiber), Some(id)) = (running(), current()) else {
        return Wake::Woken;
    };
    if let Some(deadline) = deadline_ns {
        let timer = Reverse((deadline, fiber.wait.get(), id));
        with(|scheduler| scheduler.timers.borrow_mut().push(timer));
    }
    fiber.is_parked.set(true);
    suspend(&fiber);
    if fiber.is_cancelled.get() { Wake::Cancelled } else { fiber.wake.get() }
}

/// Lets the other ready fibers run. Yields.
pub fn yield_now() -> Wake {
    let (Some(fiber), Some(id)) = (running(), current()) else {
        return Wake::Woken;
    };
    with(|scheduler| scheduler.ready.borrow_mut().push_back(id));
    suspend(&fiber);
    if fiber.is_cancelled.get() { Wake::Cancelled } else { Wake::Woken }
}

/// Lets everybody else run: the other ready fibers, and what the loop does between them, above all requests that have come meanwhile. For long work, a slice of
/// it in each turn of the loop: those who do so wait for each other's slices to end, and not to be cut short. Yields.
pub fn yield_turn() -> Wake {
    let (Some(fiber), Some(id)) = (running(), current()) else {
        return Wake::Woken;
    };
    with(|scheduler| scheduler.next_turn.borrow_mut().push_back(id));
    suspend(&fiber);
    if fiber.is_cancelled.get() { Wake::Cancelled } else { Wake::Woken }
}

/// True if some fiber has given way to what the loop does: [`yield_turn`].
pub fn has_patient() -> bool {
    with(|scheduler| !scheduler.next_turn.borrow().is_empty())
}

/// Runs another ready fiber next and the calling one right after it, before all others. Yields.
pub fn switch_to(id: FiberId) -> Wake {
    let (Some(fiber), Some(own)) = (running(), current()) else {
        return Wake::Woken;
    };
    with(|scheduler| {
        let mut ready = scheduler.ready.borrow_mut();
        ready.retain(|other| *other != id);
        ready.push_front(own);
        ready.push_front(id);
    });
    suspend(&fiber);
    if fiber.is_cancelled.get() { Wake::Cancelled } else { Wake::Woken }
}

/// Waits for a time. Yields.
pub fn sleep(ns: u64) -> Wake {
    if ns == 0 {
        return yield_now();
    }
    park_until(Some(now_ns().saturating_add(ns)))
}

fn suspend(fiber: &Rc<Fiber>) {
    let hook = with(|scheduler| scheduler.on_yield.borrow().clone());
    if let Some(hook) = hook {
        hook();
    }
    // SAFETY: the yielder lives on this fiber's own stack for as long as its work runs, and this is that fiber: it is the running one.
    let yielder = unsafe { &*fiber.yielder.get() };
    let begun = now_ns();
    with(|scheduler| scheduler.last_wait_ns.set(begun));
    yielder.suspend(());
    fiber.waited_ns.set(fiber.waited_ns.get() + now_ns().saturating_sub(begun));
    let hook = with(|scheduler| match scheduler.calls_after_yield.get() {
        true => scheduler.after_yield.borrow().clone(),
        false => None,
    });
    if let Some(hook) = hook {
        hook();
    }
}

/// Time that the running fiber has waited since it began; 0 outside of fibers.
pub fn waited_ns() -> u64 {
    running().map_or(0, |fiber| fiber.waited_ns.get())
}

/// Makes a waiting fiber ready; does nothing if it is not waiting.
pub fn wake(id: FiberId) {
    if let Some(fiber) = find(id) {
        make_ready(id, &fiber, Wake::Woken);
    }
}

/// Marks a fiber as cancelled and ends its wait.
pub fn cancel(id: FiberId) {
    if let Some(fiber) = find(id) {
        fiber.is_cancelled.set(true);
        make_ready(id, &fiber, Wake::Cancelled);
    }
}

/// True if the running fiber was cancelled.
pub fn is_cancelled() -> bool {
    running().is_some_and(|fiber| fiber.is_cancelled.get())
}

/// Waits until another fiber has ended. Yields.
pub fn join(id: FiberId) -> Wake {
    while let Some(fiber) = find(id) {
        let Some(own) = current() else {
            return Wake::Woken;
        };
        fiber.joiners.borrow_mut().push(own);
        if park() == Wake::Cancelled {
            return Wake::Cancelled;
        }
    }
    Wake::Woken
}

/// What a fiber is doing.
pub fn status(id: FiberId) -> Status {
    match find(id) {
        None => Status::Dead,
        Some(_) if current() == Some(id) => Status::Running,
        Some(_) => Status::Suspended,
    }
}

/// Name of a living fiber.
pub fn name(id: FiberId) -> Option<String> {
    find(id).map(|fiber| fiber.name.borrow().clone())
}

/// Renames a living fiber.
pub fn set_name(id: FiberId, name: &str) {
    if let Some(fiber) = find(id) {
        *fiber.name.borrow_mut() = name.to_string();
    }
}

/// Living fibers, the oldest first: number, name, times it was switched to.
pub fn list() -> Vec<(FiberId, String, u64)> {
    with(|scheduler| {
        let fibers = scheduler.fibers.borrow();
        let mut list: Vec<_> =
            fibers.iter().map(|(&id, fiber)| (id, fiber.name.borrow().clone(), fiber.switches.get())).collect();
        list.sort_unstable_by_key(|(id, ..)| *id);
        list
    })
}

/// The lowest address that the running fiber's stack may reach.
pub fn stack_limit() -> Option<usize> {
    with(|scheduler| scheduler.running.borrow().as_ref().map(|fiber| fiber.stack_limit.get()))
}

/// The value kept with the running fiber, if it has this type.
#[inline]
pub fn local<T: 'static>() -> Option<Rc<T>> {
    with(|scheduler| {
        let running = scheduler.running.borrow();
        let local = running.as_ref()?.local.borrow();
        Rc::clone(local.as_ref()?).downcast().ok()
    })
}

/// Keeps a value with the running fiber in place of the one before; it is dropped when the fiber ends.
pub fn set_local(value: Rc<dyn Any>) {
    if let Some(fiber) = running() {
        *fiber.local.borrow_mut() = Some(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fibers_wait_and_are_woken_in_order() {
        let now = Rc::new(Cell::new(0));
        let clock = Rc::clone(&now);
        set_clock(Rc::new(move || clock.get()));
        let log = Rc::new(RefCell::new(Vec::new()));
        let sleeper = {
            let log = Rc::clone(&log);
            run_now("sleeper", move || {
                log.borrow_mut().push(format!("{:?}", sleep(100)));
                log.borrow_mut().push(format!("{:?}", park()));
                log.borrow_mut().push(format!("{:?}", park()));
            })
        };
        let joiner = Rc::clone(&log);
        spawn("joiner", move || {
            join(sleeper);
            joiner.borrow_mut().push("joined".to_string());
        });
        assert!(!run_ready(10));
        assert_eq!(next_deadline(), Some(100));
        now.set(100);
        run_ready(10);
        wake(sleeper);
        run_ready(10);
        cancel(sleeper);
        run_ready(10);
        assert_eq!(*log.borrow(), ["Timeout", "Woken", "Cancelled", "joined"]);
        assert_eq!(status(sleeper), Status::Dead);
        assert!(list().is_empty());
    }

    #[test]
    fn who_asks_for_too_many_fibers_is_refused_and_the_process_has_its_own() {
        set_max(3);
        let made: Vec<_> = (0..5).map(|_| try_spawn("asked for", || _ = park())).collect();
        assert_eq!(made.iter().filter(|made| made.is_ok()).count(), 3);
        assert_eq!(made[4], Err(TooManyFibers { count: 3, stack_bytes: STACK_BYTES }));
        let own = run_now("own", || {});
        assert_eq!(status(own), Status::Dead);
        run_ready(10);
        made.into_iter().flatten().for_each(cancel);
        run_ready(10);
        assert!(try_spawn("again", || {}).is_ok());
        run_ready(10);
        set_max(FIBERS_MAX_DEFAULT);
    }

    #[test]
    fn a_fiber_that_runs_long_is_the_last_of_its_turn() {
        let now = Rc::new(Cell::new(0u64));
        let clock = Rc::clone(&now);
        set_clock(Rc::new(move || clock.get()));
        for is_waiting in [false, true] {
            let now = Rc::clone(&now);
            spawn("long", move || {
                now.set(now.get() + 2 * TURN_NS);
                if is_waiting {
                    yield_now();
                }
            });
        }
        spawn("short", || {});
        assert!(run_ready(10));
        assert_eq!(list().len(), 2);
        assert!(run_ready(10));
        assert_eq!(list().len(), 2);
        assert!(!run_ready(10));
        assert!(list().is_empty());
    }

    #[test]
    fn a_fiber_is_awaited_by_others_and_by_what_runs_them() {
        let has_work = Rc::new(Cell::new(false));
        let asked = Rc::clone(&has_work);
        set_glance(Rc::new(move || asked.get()));
        let found = Rc::new(RefCell::new(Vec::new()));
        let list = Rc::clone(&found);
        run_now("long", move || {
            list.borrow_mut().push(is_awaited());
            has_work.set(true);
            list.borrow_mut().push(is_awaited());
            has_work.set(false);
            spawn("other", || {});
            list.borrow_mut().push(is_awaited());
        });
        assert_eq!(*found.borrow(), [false, true, true]);
        assert!(!run_ready(10));
    }

    #[test]
    fn a_fiber_that_yields_its_turn_is_not_run_twice_in_one() {
        let rounds = Rc::new(Cell::new(0));
        let counted = Rc::clone(&rounds);
        spawn("patient", move || {
            for _ in 0..3 {
                counted.set(counted.get() + 1);
                yield_turn();
            }
        });
        for round in 1..=3 {
            assert!(run_ready(100));
            assert_eq!((rounds.get(), next_deadline()), (round, Some(0)));
        }
        assert!(!run_ready(100));
        assert!(list().is_empty());
    }

    #[test]
    fn who_gives_way_has_one_slice_in_each_turn_whatever_others_do() {
        let now = Rc::new(Cell::new(0u64));
        let clock = Rc::clone(&now);
        set_clock(Rc::new(move || clock.get()));
        let (slices, awaited) = (Rc::new(RefCell::new([0; 2])), Rc::new(RefCell::new(Vec::new())));
        for number in 0..2 {
            let (now, slices, awaited) = (Rc::clone(&now), Rc::clone(&slices), Rc::clone(&awaited));
            spawn("patient", move || {
                loop {
                    slices.borrow_mut()[number] += 1;
                    now.set(now.get() + 1);
                    awaited.borrow_mut().push(is_awaited());
                    if yield_turn() == Wake::Cancelled {
                        return;
                    }
                }
            });
        }
        // The first turn is that of all that are new.
        (0..4).for_each(|_| assert!(run_ready(100)));
        assert_eq!(*slices.borrow(), [4, 4]);
        // Then those that give way wait for no end of each other's slices.
        assert!(awaited.take()[2..].iter().all(|is_awaited| !is_awaited));
        let slice = Rc::new(Cell::new(1));
        let long = Rc::clone(&slice);
        let eager = spawn("eager", move || {
            loop {
                now.set(now.get() + long.get());
                if yield_now() == Wake::Cancelled {
                    return;
                }
            }
        });
        // Whether the turn ends by its switches or by its time.
        for ns in [1, TURN_NS] {
            slice.set(ns);
            let before: u32 = slices.borrow().iter().sum();
            (0..4).for_each(|_| assert!(run_ready(10)));
            assert_eq!(slices.borrow().iter().sum::<u32>(), before + 4, "slices of {ns} ns");
        }
        let all: Vec<FiberId> = list().into_iter().map(|(id, ..)| id).collect();
        assert!(all.contains(&eager));
        all.into_iter().for_each(cancel);
        while run_ready(10) {}
        assert!(list().is_empty());
    }

    #[test]
    fn a_panic_stays_in_its_fiber() {
        let id = run_now("bad", || panic!("oops"));
        assert_eq!(status(id), Status::Dead);
        let done = Rc::new(Cell::new(0));
        for _ in 0..1000 {
            let done = Rc::clone(&done);
            spawn("many", move || {
                yield_now();
                done.set(done.get() + 1);
            });
        }
        while run_ready(100) {}
        assert_eq!(done.get(), 1000);
    }
}
