//! Names and words for what was found.

use super::graph::{Edge, Kind};
use super::transaction::Transaction;
use std::fmt::{self, Write};

/// So many steps of a transaction are told.
const STEPS_TOLD: usize = 30;

/// What is wrong, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phenomenon {
    /// A value was written twice: the fault of whoever made the history.
    Unusable,
    /// A read returned what nobody wrote.
    Unwritten,
    /// A list holds a value twice that was appended once.
    Duplicate,
    /// Two reads of a list contradict each other about the order of its values.
    IncompatibleOrder,
    /// A read contradicts what its own transaction did or saw before.
    Internal,
    /// Dirty write: a cycle of writes.
    G0,
    /// A read of a write that was rolled back.
    G1a,
    /// A read of a write that its own transaction wrote over.
    G1b,
    /// A cycle of writes and reads of them.
    G1c,
    /// Two read one version and both wrote over it.
    LostUpdate,
    /// Read skew: a cycle with one read that a write came after.
    GSingle,
    /// A cycle with several such reads of rows; write skew.
    G2Item,
    /// The same with a read of a range; a phantom.
    G2,
}

impl Phenomenon {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Phenomenon::Unusable => "a history that cannot be judged",
            Phenomenon::Unwritten => "a value that nobody wrote",
            Phenomenon::Duplicate => "a value that is there twice",
            Phenomenon::IncompatibleOrder => "two orders of one list",
            Phenomenon::Internal => "a transaction that contradicts itself",
            Phenomenon::G0 => "G0 (dirty write)",
            Phenomenon::G1a => "G1a (read of a write that was rolled back)",
            Phenomenon::G1b => "G1b (read of an intermediate write)",
            Phenomenon::G1c => "G1c (circular information flow)",
            Phenomenon::LostUpdate => "lost update",
            Phenomenon::GSingle => "G-single (read skew)",
            Phenomenon::G2Item => "G2-item (write skew)",
            Phenomenon::G2 => "G2 (write skew over a range)",
        }
    }
}

/// Something that no serial order explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// What kind.
    pub phenomenon: Phenomenon,
    /// Only the order of asking and answering makes it wrong.
    pub needs_real_time: bool,
    /// Those concerned, by their numbers in the history; of a cycle in its order.
    pub transactions: Vec<usize>,
    /// In words, with the steps of those concerned.
    pub text: String,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = if self.needs_real_time { ", seen by the order of asking and answering" } else { "" };
        write!(f, "{}{when}: {}", self.phenomenon.name(), self.text)
    }
}

impl Anomaly {
    /// One without a cycle; `what` says it of the first of these transactions, and of the second if there is one.
    pub(super) fn new(phenomenon: Phenomenon, numbers: &[usize], what: String, transactions: &[Transaction]) -> Self {
        let text = format!("{what}{}", told(numbers, transactions));
        Anomaly { phenomenon, needs_real_time: false, transactions: numbers.to_vec(), text }
    }
}

/// Names a cycle and tells it.
pub(super) fn describe(cycle: &[Edge], transactions: &[Transaction]) -> Anomaly {
    let is_transaction = |node: u32| (node as usize) < transactions.len();
    let numbers: Vec<usize> =
        cycle.iter().filter(|edge| is_transaction(edge.from)).map(|edge| edge.from as usize).collect();
    let mut text = format!("{} transactions of which each comes before the next", numbers.len());
    // A way over moments has one beginning and one end.
    let mut left = None;
    let mut cycle = cycle.to_vec();
    let first = cycle.iter().position(|edge| is_transaction(edge.from)).unwrap_or(0);
    cycle.rotate_left(first);
    for edge in &cycle {
        if is_transaction(edge.from) {
            left = Some(edge.from);
        }
        if let (true, Some(from)) = (is_transaction(edge.to), left) {
            write!(text, "\n    {}", because(from as usize, edge, transactions)).expect("a string takes all");
        }
    }
    text.push_str(&told(&numbers, transactions));
    Anomaly {
        phenomenon: name(&cycle, transactions),
        needs_real_time: has(&cycle, Kind::Time),
        transactions: numbers,
        text,
    }
}

fn has(cycle: &[Edge], kind: Kind) -> bool {
    cycle.iter().any(|edge| edge.kind == kind)
}

fn name(cycle: &[Edge], transactions: &[Transaction]) -> Phenomenon {
    let reads: Vec<&Edge> = cycle.iter().filter(|edge| edge.kind == Kind::ReadWrite).collect();
    let key = cycle[0].key;
    let is_one_key = cycle.iter().all(|edge| edge.kind != Kind::Time && edge.key == key);
    let is_written_by_all = || cycle.iter().all(|edge| transactions[edge.from as usize].writes(key));
    match reads.len() {
        0 if has(cycle, Kind::WriteRead) => Phenomenon::G1c,
        0 => Phenomenon::G0,
        _ if is_one_key && !has(cycle, Kind::WriteRead) && is_written_by_all() => Phenomenon::LostUpdate,
        1 => Phenomenon::GSingle,
        _ if reads.iter().any(|edge| edge.by_range) => Phenomenon::G2,
        _ => Phenomenon::G2Item,
    }
}

/// Why one comes before the other.
fn because(from: usize, edge: &Edge, transactions: &[Transaction]) -> String {
    let (to, key, value) = (edge.to as usize, edge.key, edge.value);
    match edge.kind {
        Kind::WriteWrite => format!("T{from} wrote to {key} before T{to} wrote {value} there"),
        Kind::WriteRead => format!("T{from} wrote {value} to {key}, which T{to} read"),
        Kind::ReadWrite => {
            let how = if edge.by_range { "scanned a range with" } else { "read" };
            format!("T{from} {how} {key} and did not see {value}, which T{to} wrote")
        }
        Kind::Time => {
            let (answered, asked) = (transactions[from].answered_at, transactions[to].invoked_at);
            format!("T{from} was answered at {answered}, before T{to} was asked at {asked}")
        }
    }
}

/// The steps of transactions.
fn told(numbers: &[usize], transactions: &[Transaction]) -> String {
    let mut text = String::new();
    let mut before = None;
    for number in numbers {
        // A transaction may concern itself.
        if before.replace(number) == Some(number) {
            continue;
        }
        let one = &transactions[*number];
        let end = if one.answered_at == u64::MAX { "?".to_string() } else { one.answered_at.to_string() };
        write!(text, "\n  T{number} ({:?}, {}..{end}):", one.fate, one.invoked_at).expect("a string takes all");
        for step in one.steps.iter().take(STEPS_TOLD) {
            write!(text, " {step};").expect("a string takes all");
        }
        if one.steps.len() > STEPS_TOLD {
            write!(text, " and {} more", one.steps.len() - STEPS_TOLD).expect("a string takes all");
        }
    }
    text
}
