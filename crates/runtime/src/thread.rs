//! Threads, and how one waits for another.

#![expect(unsafe_code, reason = "setpriority(2), sched_setscheduler(2), sysconf(3)")]

use crate::simulation;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Of a thread whose work may take its time. Threads of usual priority get some seventy times as much of a processor that is not enough for all.
const LOWEST_PRIORITY: libc::c_int = 19;
/// Of a thread whose work must be done in time: one of usual priority gets some three times as much.
const LOWER_PRIORITY: libc::c_int = 5;

/// Waits for the end of a thread.
pub enum JoinHandle<T> {
    /// Of the system's thread.
    System(std::thread::JoinHandle<T>),
    /// Of a simulated thread: its name, and where its result will be.
    Simulated(u64, Arc<Mutex<Option<T>>>),
}

impl<T> JoinHandle<T> {
    /// Blocks until the thread has ended. Its result, or none if it panicked.
    pub fn join(self) -> Option<T> {
        match self {
            JoinHandle::System(handle) => handle.join().ok(),
            JoinHandle::Simulated(thread, result) => {
                simulation::current()?.join(thread);
                result.lock().unwrap_or_else(PoisonError::into_inner).take()
            }
        }
    }
}

/// Starts a named thread. Errors: the system has no room for another thread.
pub fn spawn_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let Some(simulation) = simulation::current() else {
        return std::thread::Builder::new().name(name.to_string()).spawn(work).map(JoinHandle::System);
    };
    let result = Arc::new(Mutex::new(None));
    let slot = Arc::clone(&result);
    let work = move || {
        let value = work();
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
    };
    Ok(JoinHandle::Simulated(simulation.spawn(name, true, Box::new(work)), result))
}

/// Name of the calling thread.
pub fn thread_name() -> String {
    std::thread::current().name().unwrap_or("thread").to_string()
}

/// Processors that the process may use; one where the system does not say.
pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Bytes of memory that the machine has; no bound where the system does not say.
pub fn physical_memory() -> u64 {
    // SAFETY: no pointers are involved.
    let (pages, page_bytes) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    match (u64::try_from(pages), u64::try_from(page_bytes)) {
        (Ok(pages), Ok(page_bytes)) if pages > 0 => pages.saturating_mul(page_bytes),
        _ => u64::MAX,
    }
}

/// Lets the calling thread have the processor only as far as others leave it, for good. For workers that have time.
pub fn yield_priority() {
    set_priority(LOWEST_PRIORITY);
}

/// Has the calling thread run only where a processor would be idle, or nearly so, for good: whoever else wakes up has the processor at once,
/// which the lowest priority alone does not bring about. For workers whose work may take as long as it will.
pub fn idle_priority() {
    set_priority(LOWEST_PRIORITY);
    if simulation::current().is_none() {
        let parameters = libc::sched_param { sched_priority: 0 };
        // SAFETY: the pointer is to a local. Where it is refused the thread stays as it was.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
    }
}

/// Has others go before the calling thread where a processor is not enough for all, without leaving it nothing, for good. For work that others wait
/// for in the end.
pub fn lower_priority() {
    set_priority(LOWER_PRIORITY);
}

fn set_priority(priority: libc::c_int) {
    if simulation::current().is_none() {
        // SAFETY: a system call without pointers. Where it is refused the thread stays as it was, which is slower for others and not wrong.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, libc::syscall(libc::SYS_gettid) as libc::id_t, priority) };
    }
}

/// Keeps a worker to a part of the time while other threads of the process are busy. That a worker's processor is free does not mean that its work
/// is: cores share memory and caches.
pub struct Pace {
    /// Stretch of work between two rests.
    stretch_ns: u64,
    /// How long it rests for 100 ns of work.
    rest_ns: u64,
    /// When the present stretch of work began: by the clock, and the processor time of the process and of the thread.
    began: [u64; 3],
}

impl Pace {
    /// Others who come to this thread's processor wait no longer: the kernel may leave it to one thread until its next tick, 4 ms later.
    const STRETCH_NS: u64 = 250_000;
    /// Rests for 100 ns of work of a worker that should be done soon.
    const BRISK_REST_NS: u64 = 30;
    /// The same for one that others wait for, which has longer stretches: enough to let go of the processor.
    const URGENT_STRETCH_NS: u64 = 1_000_000;
    const URGENT_REST_NS: u64 = 5;
    /// Others count as busy if they use one part in this many of a processor.
    const BUSY_PART: u64 = 4;

    /// For the calling thread, which is to work one part in `share` of the time.
    pub fn new(share: u32) -> Self {
        let rest_ns = 100 * u64::from(share.max(1) - 1);
        Pace { stretch_ns: Self::STRETCH_NS, rest_ns, began: Self::times() }
    }

    /// For the calling thread, which works most of the time but lets go of the processor again and again.
    pub fn brisk() -> Self {
        Pace { stretch_ns: Self::STRETCH_NS, rest_ns: Self::BRISK_REST_NS, began: Self::times() }
    }

    /// For the calling thread, which others wait for: it hardly rests.
    pub fn urgent() -> Self {
        Pace { stretch_ns: Self::URGENT_STRETCH_NS, rest_ns: Self::URGENT_REST_NS, began: Self::times() }
    }

    fn times() -> [u64; 3] {
        [libc::CLOCK_MONOTONIC, libc::CLOCK_PROCESS_CPUTIME_ID, libc::CLOCK_THREAD_CPUTIME_ID].map(Self::time)
    }

    fn time(clock: libc::clockid_t) -> u64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the pointer is to a local.
        unsafe { libc::clock_gettime(clock, &raw mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    /// Rests if it is time to. To be called between small pieces of work.
    pub fn rest(&mut self) {
        if simulation::current().is_some() || Self::time(libc::CLOCK_MONOTONIC) - self.began[0] < self.stretch_ns {
            return;
        }
        let now = Self::times();
        let [elapsed, process, own] = std::array::from_fn(|at| now[at].saturating_sub(self.began[at]));
        // One that had to wait for a processor is not to leave it at once.
        if own < self.stretch_ns {
            return;
        }
        // The next look is at the rest and the stretch after it.
        self.began = now;
        if process.saturating_sub(own) * Self::BUSY_PART > elapsed {
            pause(own * self.rest_ns / 100);
        }
    }
}

/// Stops the calling thread for a time. For worker threads that keep to a rate; never on the transaction thread.
pub fn pause(ns: u64) {
    match simulation::current() {
        Some(simulation) => simulation.sleep(ns),
        None => std::thread::sleep(std::time::Duration::from_nanos(ns)),
    }
}

/// Lets other threads go first.
pub fn yield_thread() {
    match simulation::current() {
        Some(simulation) => simulation.sleep(1_000),
        None => std::thread::yield_now(),
    }
}

/// A condition that threads wait for, beside a lock.
pub enum Condvar {
    /// The system's.
    System(std::sync::Condvar),
    /// Simulated; its key.
    Simulated(u64),
}

impl Default for Condvar {
    fn default() -> Self {
        Self::new()
    }
}

impl Condvar {
    /// A condition that nobody waits for.
    pub fn new() -> Self {
        match simulation::current() {
            Some(simulation) => Condvar::Simulated(simulation.new_key()),
            None => Condvar::System(std::sync::Condvar::new()),
        }
    }

    /// Gives up the lock until it is woken. Blocks.
    pub fn wait<'a, T>(&self, mutex: &'a Mutex<T>, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        match self {
            Condvar::System(condvar) => condvar.wait(guard).unwrap_or_else(PoisonError::into_inner),
            Condvar::Simulated(key) => {
                drop(guard);
                if let Some(simulation) = simulation::current() {
                    simulation.wait(*key, None);
                }
                mutex.lock().unwrap_or_else(PoisonError::into_inner)
            }
        }
    }

    /// Gives up the lock until it is woken or the time is over. Blocks.
    pub fn wait_for<'a, T>(&self, mutex: &'a Mutex<T>, guard: MutexGuard<'a, T>, ns: u64) -> MutexGuard<'a, T> {
        match self {
            Condvar::System(condvar) => {
                let waited = condvar.wait_timeout(guard, std::time::Duration::from_nanos(ns));
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            Condvar::Simulated(key) => {
                drop(guard);
                if let Some(simulation) = simulation::current() {
                    let until = simulation.now_ns() + ns;
                    simulation.wait(*key, Some(until));
                }
                mutex.lock().unwrap_or_else(PoisonError::into_inner)
            }
        }
    }

    /// Wakes one thread.
    pub fn notify_one(&self) {
        self.notify(false);
    }

    /// Wakes all threads.
    pub fn notify_all(&self) {
        self.notify(true);
    }

    fn notify(&self, all: bool) {
        match self {
            Condvar::System(condvar) if all => condvar.notify_all(),
            Condvar::System(condvar) => condvar.notify_one(),
            Condvar::Simulated(key) => {
                if let Some(simulation) = simulation::current() {
                    simulation.wake(*key, all);
                }
            }
        }
    }
}
