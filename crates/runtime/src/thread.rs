//! Threads.

use std::io;
use std::thread::JoinHandle;

/// Starts a named thread.
pub fn spawn_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name.to_string()).spawn(work)
}

/// Stops the calling thread for a time. For worker threads that keep to a rate; never on the transaction thread.
pub fn pause(ns: u64) {
    std::thread::sleep(std::time::Duration::from_nanos(ns));
}
