//! Lets clients at the server while it is to be used, and waits until they are gone.

use super::target::Addresses;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// No life of the server.
const CLOSED: u64 = u64::MAX;

/// The gate.
pub(super) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
    /// The life that may be used, or `CLOSED`: what clients look at between two operations.
    open: AtomicU64,
}

struct State {
    addresses: Addresses,
    /// Clients between `enter` and `leave`.
    inside: usize,
    /// Nobody else may enter.
    is_shut: bool,
    is_over: bool,
}

impl Gate {
    /// A closed gate.
    pub(super) fn new() -> Self {
        let state = State { addresses: Addresses::default(), inside: 0, is_shut: false, is_over: false };
        Gate { state: Mutex::new(state), changed: Condvar::new(), open: AtomicU64::new(CLOSED) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a life of the server may be used; it and its addresses. `None`: never again. Blocks.
    pub(super) fn enter(&self) -> Option<(u64, Addresses)> {
        let mut state = self.lock();
        loop {
            if state.is_over {
                return None;
            }
            let incarnation = self.open.load(Ordering::Acquire);
            if incarnation != CLOSED && !state.is_shut {
                state.inside += 1;
                return Some((incarnation, state.addresses.clone()));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A client that entered goes.
    pub(super) fn leave(&self) {
        self.lock().inside -= 1;
        self.changed.notify_all();
    }

    /// True while that life may be used.
    pub(super) fn is_open(&self, incarnation: u64) -> bool {
        self.open.load(Ordering::Acquire) == incarnation
    }

    /// Lets clients in.
    pub(super) fn open(&self, incarnation: u64, addresses: &Addresses) {
        let mut state = self.lock();
        state.addresses = addresses.clone();
        state.is_shut = false;
        self.open.store(incarnation, Ordering::Release);
        drop(state);
        self.changed.notify_all();
    }

    /// Lets nobody else in; those inside go on.
    pub(super) fn shut(&self) {
        self.lock().is_shut = true;
    }

    /// Lets nobody in; those inside finish their operation.
    pub(super) fn close(&self) {
        let state = self.lock();
        self.open.store(CLOSED, Ordering::Release);
        drop(state);
    }

    /// Waits until all are gone. Blocks.
    pub(super) fn wait_until_empty(&self) {
        let mut state = self.lock();
        while state.inside > 0 {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Closed for ever.
    pub(super) fn end(&self) {
        self.open.store(CLOSED, Ordering::Release);
        self.lock().is_over = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    #[test]
    fn a_closed_gate_empties_and_an_ended_one_lets_nobody_in() {
        let gate = Gate::new();
        let here = Addresses { main: "here".to_string(), doors: Vec::new() };
        gate.open(7, &here);
        assert_eq!(gate.enter().unwrap(), (7, here));
        assert!(gate.is_open(7));
        gate.close();
        assert!(!gate.is_open(7));
        gate.leave();
        gate.wait_until_empty();
        gate.end();
        assert!(gate.enter().is_none());
    }
}
