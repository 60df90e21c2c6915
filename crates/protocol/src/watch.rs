//! The poll of the event loop, into which a long statement may look while the loop runs its fiber.
//!
//! A statement that looks first, and gives way only if somebody waits, can look every few microseconds: another client's request hardly notices that
//! it is there, and the statement does not pay for turns in which there was nothing to do.

use runtime::net::{Event, Poll};
use std::cell::{Cell, RefCell};
use std::io;
use std::time::Duration;

/// A poll, and what was found before the loop asked for it.
pub(crate) struct Watch {
    poll: RefCell<Poll>,
    /// Found by a glance; edge triggered, so it comes once.
    found: RefCell<Vec<Event>>,
    /// Connections are left over from the last turn.
    pub(crate) has_more: Cell<bool>,
}

impl Watch {
    pub(crate) fn new(poll: Poll) -> Self {
        Watch { poll: RefCell::new(poll), found: RefCell::default(), has_more: Cell::new(false) }
    }

    /// Waits for events, at most so long, and adds them to `events`. Errors: the system's.
    pub(crate) fn poll(&self, timeout: Duration, events: &mut Vec<Event>) -> io::Result<()> {
        events.append(&mut self.found.borrow_mut());
        let timeout = if events.is_empty() { timeout } else { Duration::ZERO };
        self.poll.borrow_mut().poll(timeout, events)
    }

    /// The same, but stays awake for `spin` before it sleeps. Returns how long it took. Errors: the system's.
    pub(crate) fn poll_eagerly(
        &self,
        spin: Duration,
        timeout: Duration,
        events: &mut Vec<Event>,
    ) -> io::Result<Duration> {
        events.append(&mut self.found.borrow_mut());
        match events.is_empty() {
            true => self.poll.borrow_mut().poll_eagerly(spin, timeout, events),
            false => self.poll.borrow_mut().poll(Duration::ZERO, events).map(|()| Duration::ZERO),
        }
    }

    /// True if the loop has something to do. A simulated poll is not looked into: to look takes a turn of the simulation.
    pub(crate) fn glance(&self) -> bool {
        let mut found = self.found.borrow_mut();
        if self.has_more.get() || !found.is_empty() {
            return true;
        }
        // The loop does not poll while it runs fibers.
        let Ok(mut poll) = self.poll.try_borrow_mut() else { return false };
        if matches!(*poll, Poll::Simulated(_)) {
            return false;
        }
        // An error is met again by the loop.
        poll.poll(Duration::ZERO, &mut found).is_err() || !found.is_empty()
    }
}
