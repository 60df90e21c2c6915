//! A wake-up between threads that an event loop can wait for.
#![expect(unsafe_code, reason = "eventfd(2)")]

use crate::simulation;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

/// Readable after `notify` until `clear`.
pub enum Notifier {
    /// An eventfd.
    System(OwnedFd),
    /// Simulated.
    Simulated(SimulatedNotifier),
}

/// The simulated half of a notifier.
pub struct SimulatedNotifier {
    key: u64,
    state: Mutex<NotifierState>,
}

#[derive(Default)]
struct NotifierState {
    is_readable: bool,
    registration: Option<(u64, usize)>,
}

impl Notifier {
    /// A notifier that is not readable. Errors: the system's.
    pub fn new() -> io::Result<Self> {
        if let Some(simulation) = simulation::current() {
            let state = Mutex::default();
            return Ok(Notifier::Simulated(SimulatedNotifier { key: simulation.new_key(), state }));
        }
        // SAFETY: no pointers are involved.
        let fd = unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a fresh descriptor that nobody else owns.
        Ok(Notifier::System(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Makes it readable. Callable from any thread.
    pub fn notify(&self) {
        match self {
            Notifier::System(fd) => {
                let one = 1u64;
                // SAFETY: eight bytes are read from `one`. A full counter is readable already, so the result does not matter.
                unsafe { libc::write(fd.as_raw_fd(), (&raw const one).cast(), 8) };
            }
            Notifier::Simulated(notifier) => {
                let registration = notifier.set(true);
                if let Some(simulation) = simulation::current() {
                    simulation.make_ready(registration, |ready| ready.readable = true);
                    simulation.wake(notifier.key, true);
                }
            }
        }
    }

    /// Makes it unreadable.
    pub fn clear(&self) {
        match self {
            Notifier::System(fd) => {
                let mut count = 0u64;
                // SAFETY: eight bytes are written to `count`. The descriptor does not block.
                unsafe { libc::read(fd.as_raw_fd(), (&raw mut count).cast(), 8) };
            }
            Notifier::Simulated(notifier) => {
                notifier.set(false);
            }
        }
    }

    /// Blocks the thread until it is notified or the time is over. Returns true if it was notified.
    pub fn wait(&self, timeout: Duration) -> bool {
        match self {
            Notifier::System(fd) => {
                let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
                let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
                // SAFETY: one descriptor is described by `poll`.
                unsafe { libc::poll(&raw mut poll, 1, timeout_ms) > 0 }
            }
            Notifier::Simulated(notifier) => {
                let is_readable = || notifier.state.lock().unwrap_or_else(PoisonError::into_inner).is_readable;
                let Some(simulation) = simulation::current() else { return false };
                let until = simulation.now_ns() + timeout.as_nanos() as u64;
                is_readable() || simulation.wait(notifier.key, Some(until))
            }
        }
    }

    /// Its descriptor, if it is one of the system's.
    pub fn raw_fd(&self) -> Option<RawFd> {
        match self {
            Notifier::System(fd) => Some(fd.as_raw_fd()),
            Notifier::Simulated(_) => None,
        }
    }

    pub(crate) fn register(&self, poll: u64, token: usize) -> io::Result<()> {
        let Notifier::Simulated(notifier) = self else {
            return Err(io::Error::other("a real notifier cannot be watched in a simulation"));
        };
        let mut state = notifier.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.registration = Some((poll, token));
        let is_readable = state.is_readable;
        drop(state);
        if is_readable {
            self.notify();
        }
        Ok(())
    }
}

impl SimulatedNotifier {
    fn set(&self, is_readable: bool) -> Option<(u64, usize)> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.is_readable = is_readable;
        state.registration
    }
}
