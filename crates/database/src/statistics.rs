//! Counters of requests, as `box.stat` shows them.

use crate::statement::Operation;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// How often each kind of request was executed.
#[derive(Default)]
#[expect(missing_docs, reason = "each counts the requests it is named after")]
pub struct Statistics {
    pub selects: Cell<u64>,
    pub inserts: Cell<u64>,
    pub replaces: Cell<u64>,
    pub updates: Cell<u64>,
    pub upserts: Cell<u64>,
    pub deletes: Cell<u64>,
    pub calls: Cell<u64>,
    pub evals: Cell<u64>,
    pub auths: Cell<u64>,
    pub errors: Cell<u64>,
    /// Connections that were made, and those that are open.
    pub connections: Cell<u64>,
    pub connections_open: Cell<u64>,
    /// Requests of connections, and those that a fiber works on now.
    pub requests: Cell<u64>,
    /// Streams of the binary protocol with a transaction or a request under way.
    pub streams_open: Cell<u64>,
    /// Streams that were opened.
    pub streams: Cell<u64>,
    pub requests_open: Cell<u64>,
    /// Bytes that connections have received, and answers that were handed on to be sent.
    pub received_bytes: Cell<u64>,
    pub sent_bytes: Cell<u64>,
    /// Transactions that were aborted because another one had changed what they had seen.
    pub conflicts: Cell<u64>,
    /// Transactions that have touched spaces on disk and were committed.
    pub disk_commits: Cell<u64>,
    /// Transactions of many rows that were put in place a slice at a time.
    pub sliced_commits: Cell<u64>,
    /// Transactions that have touched spaces on disk and were rolled back.
    pub disk_rollbacks: Cell<u64>,
    /// Of each protocol that somebody has connected by.
    doors: RefCell<BTreeMap<&'static str, Rc<DoorStatistics>>>,
}

/// What came in by one protocol.
#[derive(Debug, Default)]
#[expect(missing_docs, reason = "each counts what it is named after")]
pub struct DoorStatistics {
    /// Connections that were made, and those that are open.
    pub connections: Cell<u64>,
    pub connections_open: Cell<u64>,
    /// Requests, and how many of them were answered with an error.
    pub requests: Cell<u64>,
    pub errors: Cell<u64>,
    /// Bytes that connections have received, and answers that were handed on to be sent.
    pub received_bytes: Cell<u64>,
    pub sent_bytes: Cell<u64>,
}

impl DoorStatistics {
    /// Names and counts, by name.
    pub fn all(&self) -> [(&'static str, u64); 6] {
        [
            ("connections", self.connections.get()),
            ("connections_open", self.connections_open.get()),
            ("errors", self.errors.get()),
            ("received_bytes", self.received_bytes.get()),
            ("requests", self.requests.get()),
            ("sent_bytes", self.sent_bytes.get()),
        ]
    }
}

/// Adds to a counter.
pub fn add(counter: &Cell<u64>, amount: u64) {
    counter.set(counter.get() + amount);
}

/// Adds one.
pub fn increment(counter: &Cell<u64>) {
    counter.set(counter.get() + 1);
}

impl Statistics {
    pub(crate) fn count(&self, operation: &Operation<'_>) {
        increment(match operation {
            Operation::Insert { .. } => &self.inserts,
            Operation::Replace { .. } => &self.replaces,
            Operation::Update { .. } => &self.updates,
            Operation::Upsert { .. } => &self.upserts,
            Operation::Delete { .. } | Operation::Expire { .. } => &self.deletes,
        });
    }

    /// Starts all counts at zero again.
    pub fn reset(&self) {
        let counters = [
            &self.selects,
            &self.inserts,
            &self.replaces,
            &self.updates,
            &self.upserts,
            &self.deletes,
            &self.calls,
            &self.evals,
            &self.auths,
            &self.errors,
            &self.connections,
            &self.requests,
            &self.received_bytes,
            &self.sent_bytes,
            &self.streams,
            &self.conflicts,
            &self.disk_commits,
            &self.disk_rollbacks,
            &self.sliced_commits,
        ];
        counters.iter().for_each(|counter| counter.set(0));
        for door in self.doors.borrow().values() {
            let counters = [&door.connections, &door.requests, &door.errors, &door.received_bytes, &door.sent_bytes];
            counters.iter().for_each(|counter| counter.set(0));
        }
    }

    /// The counts of a protocol.
    pub fn door(&self, name: &'static str) -> Rc<DoorStatistics> {
        Rc::clone(self.doors.borrow_mut().entry(name).or_default())
    }

    /// Those of all protocols that somebody has connected by.
    pub fn doors(&self) -> Vec<(&'static str, Rc<DoorStatistics>)> {
        self.doors.borrow().iter().map(|(name, door)| (*name, Rc::clone(door))).collect()
    }

    /// Names and counts of what goes over connections: all of them, and those of now.
    pub fn network(&self) -> [(&'static str, u64); 8] {
        [
            ("CONNECTIONS", self.connections.get()),
            ("connections_open", self.connections_open.get()),
            ("REQUESTS", self.requests.get()),
            ("requests_open", self.requests_open.get()),
            ("STREAMS", self.streams.get()),
            ("streams_open", self.streams_open.get()),
            ("RECEIVED", self.received_bytes.get()),
            ("SENT", self.sent_bytes.get()),
        ]
    }

    /// Names and counts, by name.
    pub fn all(&self) -> [(&'static str, u64); 10] {
        [
            ("AUTH", self.auths.get()),
            ("CALL", self.calls.get()),
            ("DELETE", self.deletes.get()),
            ("ERROR", self.errors.get()),
            ("EVAL", self.evals.get()),
            ("INSERT", self.inserts.get()),
            ("REPLACE", self.replaces.get()),
            ("SELECT", self.selects.get()),
            ("UPDATE", self.updates.get()),
            ("UPSERT", self.upserts.get()),
        ]
    }
}
