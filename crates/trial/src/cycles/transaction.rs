//! What a history says of a transaction.

use std::fmt;

/// One step, with what it returned. Values are never written twice to one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Put a value at the end of a list; a list that is not there is empty.
    Append {
        /// Which list.
        key: u64,
        /// What.
        value: u64,
    },
    /// Read a list.
    List {
        /// Which list.
        key: u64,
        /// What was there.
        values: Vec<u64>,
        /// A scan of a range that this key belongs to, whether or not it had a row.
        by_range: bool,
    },
    /// Put a value into a register.
    Write {
        /// Which register.
        key: u64,
        /// What.
        value: u64,
    },
    /// Read a register.
    Register {
        /// Which register.
        key: u64,
        /// What was there.
        value: Option<u64>,
        /// A scan of a range that this key belongs to, whether or not it had a row.
        by_range: bool,
    },
}

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was acknowledged.
    Committed,
    /// It was refused or rolled back: it must not have happened.
    Aborted,
    /// Nobody knows. It counts as committed once another transaction has read one of its writes.
    Unknown,
}

/// One transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Its steps in their order. Of one that is not `Committed` the reads are not looked at.
    pub steps: Vec<Step>,
    /// How it ended.
    pub fate: Fate,
    /// The moment before it began.
    pub invoked_at: u64,
    /// The moment after which it has no effect any more; `u64::MAX` if there is none.
    pub answered_at: u64,
}

/// A list or a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) number: u64,
    pub(super) is_list: bool,
}

impl Key {
    pub(super) fn list(number: u64) -> Self {
        Key { number, is_list: true }
    }

    pub(super) fn register(number: u64) -> Self {
        Key { number, is_list: false }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", if self.is_list { "list" } else { "register" }, self.number)
    }
}

impl Step {
    /// The key and value of a write.
    pub(super) fn written(&self) -> Option<(Key, u64)> {
        match self {
            Step::Append { key, value } => Some((Key::list(*key), *value)),
            Step::Write { key, value } => Some((Key::register(*key), *value)),
            Step::List { .. } | Step::Register { .. } => None,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Append { key, value } => write!(f, "append {value} to list {key}"),
            Step::List { key, values, .. } => write!(f, "read list {key}: {values:?}"),
            Step::Write { key, value } => write!(f, "write {value} to register {key}"),
            Step::Register { key, value: Some(value), .. } => write!(f, "read register {key}: {value}"),
            Step::Register { key, value: None, .. } => write!(f, "read register {key}: nothing"),
        }
    }
}

impl Transaction {
    /// True if it writes the key.
    pub(super) fn writes(&self, key: Key) -> bool {
        self.steps.iter().filter_map(Step::written).any(|(written, _)| written == key)
    }
}
