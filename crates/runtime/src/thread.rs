//! Threads, and how one waits for another.

use crate::simulation;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// Starts a named thread.
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
