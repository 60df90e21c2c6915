//! A wake-up between threads that an event loop can wait for.
#![expect(unsafe_code, reason = "eventfd(2)")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// An eventfd: readable after `notify` until `clear`.
pub struct Notifier {
    fd: OwnedFd,
}

impl Notifier {
    /// A notifier that is not readable.
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers are involved.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a fresh descriptor that nobody else owns.
        Ok(Notifier { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Makes the descriptor readable. Callable from any thread.
    pub fn notify(&self) {
        let one = 1u64;
        // SAFETY: eight bytes are read from `one`. A full counter is readable already, so the result does not matter.
        unsafe { libc::write(self.fd.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Makes the descriptor unreadable.
    pub fn clear(&self) {
        let mut count = 0u64;
        // SAFETY: eight bytes are written to `count`. The descriptor does not block.
        unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut count).cast(), 8) };
    }

    /// Blocks the thread until it is notified or the time is over. Returns true if it was notified.
    pub fn wait(&self, timeout: Duration) -> bool {
        let mut poll = libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: one descriptor is described by `poll`.
        unsafe { libc::poll(&raw mut poll, 1, timeout_ms) > 0 }
    }
}

impl AsRawFd for Notifier {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}
