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
