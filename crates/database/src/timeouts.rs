//! Transactions that are open for too long.
//!
//! A transaction that waits and has a time-out is watched by its deadline. One fiber sleeps until the earliest of them; it is there only while
//! something is watched. A transaction whose time has come is rolled back, and every statement tried in it says so
//! (`TransactionTimeout`). Who runs without waiting is not interrupted: it is ended at its next wait.

use crate::database::Database;
use crate::error::ErrorCode;
use crate::session::Context;
use runtime::fiber::{self, FiberId};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

/// Open transactions by deadline (nanoseconds of the monotonic clock) and number.
#[derive(Default)]
pub(crate) struct Timeouts {
    watched: RefCell<BTreeMap<(u64, u64), Weak<Context>>>,
    fiber: Cell<Option<FiberId>>,
}

impl Timeouts {
    pub(crate) fn forget(&self, deadline_ns: u64, txn_id: u64) {
        self.watched.borrow_mut().remove(&(deadline_ns, txn_id));
    }

    fn first_deadline(&self) -> Option<u64> {
        self.watched.borrow().first_key_value().map(|(&(deadline, _), _)| deadline)
    }
}

impl Database {
    /// The work of a context is about to wait, or its stream has no request: its transaction is suspended, and ended when its time is up.
    pub fn begin_wait(self: &Rc<Self>, context: &Rc<Context>) {
        self.suspend(context);
        let deadline = context.txn.borrow_mut().as_mut().and_then(|txn| txn.watch());
        let Some((deadline_ns, txn_id)) = deadline else { return };
        let timeouts = &self.isolation.timeouts;
        let is_first = timeouts.first_deadline().is_none_or(|first| deadline_ns < first);
        timeouts.watched.borrow_mut().insert((deadline_ns, txn_id), Rc::downgrade(context));
        match timeouts.fiber.get() {
            Some(id) if is_first => fiber::wake(id),
            Some(_) => {}
            None => self.watch_timeouts(),
        }
    }

    /// Starts the fiber that ends transactions. Without one, for want of fibers, the next wait tries again.
    fn watch_timeouts(self: &Rc<Self>) {
        let database = Rc::downgrade(self);
        let made = fiber::try_spawn("transaction time-outs", move || {
            while let Some(database) = database.upgrade() {
                let now = database.environment.clock.monotonic_ns();
                match database.isolation.timeouts.first_deadline() {
                    Some(deadline) if deadline <= now => database.end_timed_out(now),
                    Some(deadline) => {
                        drop(database);
                        fiber::sleep(deadline - now);
                    }
                    None => {
                        database.isolation.timeouts.fiber.set(None);
                        return;
                    }
                }
            }
        });
        self.isolation.timeouts.fiber.set(made.ok());
    }

    fn end_timed_out(&self, now_ns: u64) {
        let later = self.isolation.timeouts.watched.borrow_mut().split_off(&(now_ns + 1, 0));
        let ended = self.isolation.timeouts.watched.replace(later);
        for ((_, txn_id), context) in ended {
            if let Some(context) = context.upgrade().filter(|context| self.txn_id(context) == Some(txn_id)) {
                self.abort_txn(&context, ErrorCode::TransactionTimeout);
                self.locks.wake(txn_id);
            }
        }
    }
}
