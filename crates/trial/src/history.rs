//! What was asked and answered, and what was wrong with it.

use crate::engines::Engines;
use crate::operation::Operation;
use crate::value::Value;
use std::collections::BTreeMap;

/// A refusal in the server's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Number of the error.
    pub code: u32,
    /// Its text.
    pub text: String,
}

/// What a client learned of an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Acknowledged, with an array: the rows, or the values that a procedure returned.
    Done(Value),
    /// Refused: it must not have happened.
    Refused(Refusal),
    /// The connection died: it happened wholly or not at all, before the end of that life of the server.
    Unknown,
}

impl Outcome {
    /// The first row or value of an acknowledged operation.
    pub fn first(&self) -> Option<&Value> {
        match self {
            Outcome::Done(data) => data.array().first(),
            _ => None,
        }
    }

    /// True if it was acknowledged.
    pub fn is_done(&self) -> bool {
        matches!(self, Outcome::Done(_))
    }

    /// True if nobody knows.
    pub fn is_unknown(&self) -> bool {
        *self == Outcome::Unknown
    }

    /// The code of a refusal.
    pub fn refused_code(&self) -> Option<u32> {
        match self {
            Outcome::Refused(refusal) => Some(refusal.code),
            _ => None,
        }
    }
}

/// One operation of one client.
#[derive(Clone, Debug)]
pub struct Record {
    /// Who asked.
    pub client: usize,
    /// Which life of the server was asked, from 0.
    pub incarnation: u64,
    /// What was asked.
    pub operation: Operation,
    /// What came of it.
    pub outcome: Outcome,
    /// The moment before it was sent, by a counter that all clients share.
    pub invoked_at: u64,
    /// The moment after the answer came or the connection was found dead, by the same counter.
    pub answered_at: u64,
}

/// All that happened to one workload since its spaces were made.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// In the order of asking.
    pub records: Vec<Record>,
    /// Lives of the server that ended, and when, by the counter of the records: what was under way then has no effect later.
    pub crashes: BTreeMap<u64, u64>,
    /// Where the rows of its spaces are.
    pub engines: Engines,
}

impl History {
    /// The moment by which an operation has happened if it ever does.
    pub fn decided_at(&self, record: &Record) -> u64 {
        match (&record.outcome, self.crashes.get(&record.incarnation)) {
            (Outcome::Unknown, Some(crashed_at)) => record.answered_at.max(*crashed_at),
            // The server lives and may still get to it.
            (Outcome::Unknown, None) => u64::MAX,
            _ => record.answered_at,
        }
    }
}

/// What kind of promise was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An acknowledged operation, or one that an answer has shown, is gone.
    Lost,
    /// Something is there that nobody asked for, that was refused, or that is there only in part or twice.
    Wrong,
    /// Answers that no order of the operations explains, or that contradict what must always hold.
    Order,
}

impl Kind {
    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Lost => "lost",
            Kind::Wrong => "wrong",
            Kind::Order => "order",
        }
    }
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What kind.
    pub kind: Kind,
    /// In words, with the rows concerned.
    pub text: String,
}

impl Violation {
    /// Something that was promised is gone.
    pub fn lost(text: impl Into<String>) -> Self {
        Violation { kind: Kind::Lost, text: text.into() }
    }

    /// Something that must not be there is.
    pub fn wrong(text: impl Into<String>) -> Self {
        Violation { kind: Kind::Wrong, text: text.into() }
    }

    /// An answer that cannot be.
    pub fn order(text: impl Into<String>) -> Self {
        Violation { kind: Kind::Order, text: text.into() }
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.text)
    }
}
