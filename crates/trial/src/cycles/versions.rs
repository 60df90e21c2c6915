//! From what transactions read to the order of versions: edges, and what is wrong without a cycle.

use super::anomaly::{Anomaly, Phenomenon};
use super::graph::{Edge, Kind};
use super::transaction::{Fate, Key, Step, Transaction};
use std::ops::Range;

/// What is broken is broken in many places; so many of one kind are told.
const TOLD: usize = 5;
/// An order that is broken in many places at once needs no edge between all of them.
const PAIRED: usize = 100;

/// What a history says.
pub(super) struct Findings {
    pub(super) edges: Vec<Edge>,
    pub(super) anomalies: Vec<Anomaly>,
    /// By transaction: it was acknowledged, or another one has seen that it happened.
    pub(super) is_committed: Vec<bool>,
}

/// One write.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Write {
    key: Key,
    value: u64,
    by: u32,
    /// Its transaction does not write the key again.
    is_last: bool,
}

/// What a transaction found in a list before it appended to it itself.
struct ListRead<'a> {
    key: Key,
    by: u32,
    values: &'a [u64],
    by_range: bool,
}

/// What a transaction found in a register before it wrote to it itself.
#[derive(Clone, Copy)]
struct RegisterRead {
    key: Key,
    by: u32,
    value: Option<u64>,
    by_range: bool,
    /// The transaction's last write to the register, which wrote over what it had read.
    overwrites: Option<u64>,
}

/// A state of the look through the history.
struct Comparison<'a> {
    transactions: &'a [Transaction],
    /// Sorted.
    writes: Vec<Write>,
    lists: Vec<ListRead<'a>>,
    registers: Vec<RegisterRead>,
    edges: Vec<Edge>,
    anomalies: Vec<Anomaly>,
    is_committed: Vec<bool>,
}

/// See the head of this file.
pub(super) fn compare(transactions: &[Transaction]) -> Findings {
    assert!(u32::try_from(transactions.len() * 2).is_ok(), "transactions are numbered with 32 bits");
    let is_committed = transactions.iter().map(|one| one.fate == Fate::Committed).collect();
    let mut comparison = Comparison {
        transactions,
        writes: writes_of(transactions),
        lists: Vec::new(),
        registers: Vec::new(),
        edges: Vec::new(),
        anomalies: Vec::new(),
        is_committed,
    };
    comparison.find_repeated_writes();
    for (by, transaction) in transactions.iter().enumerate() {
        if transaction.fate == Fate::Committed {
            comparison.read_steps(by as u32, &transaction.steps);
        }
    }
    comparison.find_committed();
    comparison.order_lists();
    comparison.order_registers();
    let Comparison { edges, anomalies, is_committed, .. } = comparison;
    Findings { edges, anomalies, is_committed }
}

/// Adds that whoever was answered comes before whoever was asked later. Returns how many nodes this needs after those of the transactions.
pub(super) fn add_real_time(transactions: &[Transaction], is_committed: &[bool], edges: &mut Vec<Edge>) -> usize {
    let is_there = |at: &u32| is_committed[*at as usize];
    let all = || (0..transactions.len() as u32).filter(is_there);
    let mut answered: Vec<u32> = all().filter(|at| transactions[*at as usize].answered_at < u64::MAX).collect();
    answered.sort_by_key(|at| transactions[*at as usize].answered_at);
    let edge = |from, to| Edge { from, to, kind: Kind::Time, by_range: false, key: Key::list(0), value: 0 };
    let first = transactions.len() as u32;
    for (moment, transaction) in answered.iter().enumerate() {
        let moment = first + moment as u32;
        edges.push(edge(*transaction, moment));
        if moment > first {
            edges.push(edge(moment - 1, moment));
        }
    }
    for at in all() {
        let asked_at = transactions[at as usize].invoked_at;
        let before = answered.partition_point(|other| transactions[*other as usize].answered_at < asked_at);
        if before > 0 {
            edges.push(edge(first + before as u32 - 1, at));
        }
    }
    answered.len()
}

fn writes_of(transactions: &[Transaction]) -> Vec<Write> {
    let mut writes = Vec::new();
    for (by, transaction) in transactions.iter().enumerate() {
        for (at, step) in transaction.steps.iter().enumerate() {
            let Some((key, value)) = step.written() else { continue };
            let later = transaction.steps[at + 1..].iter().filter_map(Step::written);
            let is_last = !later.into_iter().any(|(other, _)| other == key);
            writes.push(Write { key, value, by: by as u32, is_last });
        }
    }
    writes.sort_unstable();
    writes
}

/// The pieces of a sorted slice that have one key.
fn by_key<T>(sorted: &[T], key: impl Fn(&T) -> Key) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut from = 0;
    for piece in sorted.chunk_by(|one, other| key(one) == key(other)) {
        pieces.push(from..from + piece.len());
        from += piece.len();
    }
    pieces
}

impl<'a> Comparison<'a> {
    fn report(&mut self, phenomenon: Phenomenon, transactions: &[u32], text: String) {
        if self.anomalies.iter().filter(|one| one.phenomenon == phenomenon).count() < TOLD {
            let numbers: Vec<usize> = transactions.iter().map(|at| *at as usize).collect();
            self.anomalies.push(Anomaly::new(phenomenon, &numbers, text, self.transactions));
        }
    }

    /// Who wrote a value.
    fn writer(&self, key: Key, value: u64) -> Option<Write> {
        let at = self.writes.partition_point(|write| (write.key, write.value) < (key, value));
        self.writes.get(at).copied().filter(|write| write.key == key && write.value == value)
    }

    fn is_committed(&self, at: u32) -> bool {
        self.is_committed[at as usize]
    }

    /// Nothing can be said of a value that was written twice.
    fn find_repeated_writes(&mut self) {
        let repeated =
            self.writes.windows(2).filter(|pair| pair[0].key == pair[1].key && pair[0].value == pair[1].value);
        let repeated: Vec<(Write, u32)> = repeated.map(|pair| (pair[0], pair[1].by)).take(TOLD).collect();
        for (write, other) in repeated {
            let text = format!("{} was written twice to {}, which makes the history useless", write.value, write.key);
            self.report(Phenomenon::Unusable, &[write.by, other], text);
        }
    }

    /// Compares each read with what its own transaction did before, and keeps the first one of each key.
    fn read_steps(&mut self, by: u32, steps: &'a [Step]) {
        for (at, step) in steps.iter().enumerate() {
            match step {
                Step::List { key, values, by_range } => self.read_list(by, steps, at, *key, values, *by_range),
                Step::Register { key, value, by_range } => self.read_register(by, steps, at, *key, *value, *by_range),
                Step::Append { .. } | Step::Write { .. } => {}
            }
        }
    }

    fn read_list(&mut self, by: u32, steps: &'a [Step], at: usize, key: u64, values: &'a [u64], by_range: bool) {
        // What this transaction must see after the last read of the list: that, and what it appended since.
        let mut expected: Vec<u64> = Vec::new();
        let mut has_read = false;
        for step in &steps[..at] {
            match step {
                Step::List { key: other, values, .. } if *other == key => {
                    has_read = true;
                    expected.clone_from(values);
                }
                Step::Append { key: other, value } if *other == key => expected.push(*value),
                _ => {}
            }
        }
        let is_kept = if has_read { *values == expected } else { values.ends_with(&expected) };
        if !is_kept {
            let must = if has_read { "must be" } else { "must end with" };
            let text = format!("read list {key} as {values:?}; after its own steps it {must} {expected:?}");
            self.report(Phenomenon::Internal, &[by], text);
        } else if !has_read {
            let values = &values[..values.len() - expected.len()];
            self.lists.push(ListRead { key: Key::list(key), by, values, by_range });
        }
    }

    fn read_register(&mut self, by: u32, steps: &[Step], at: usize, key: u64, value: Option<u64>, by_range: bool) {
        let mut expected = None;
        for step in &steps[..at] {
            match step {
                Step::Register { key: other, value, .. } if *other == key => expected = Some(*value),
                Step::Write { key: other, value } if *other == key => expected = Some(Some(*value)),
                _ => {}
            }
        }
        match expected {
            Some(expected) if expected != value => {
                let text = format!("read register {key} as {value:?}; after its own steps it must be {expected:?}");
                self.report(Phenomenon::Internal, &[by], text);
            }
            Some(_) => {}
            None => {
                let key = Key::register(key);
                let overwrites = steps.iter().filter_map(Step::written).rev().find(|(other, _)| *other == key);
                let overwrites = overwrites.map(|(_, value)| value);
                self.registers.push(RegisterRead { key, by, value, by_range, overwrites });
            }
        }
    }

    /// Whoever was not answered and was read has happened.
    fn find_committed(&mut self) {
        let mut seen = Vec::new();
        for read in &self.lists {
            // What is further to the front is the end of somebody else's read, or in the longest one, which is looked at as a whole.
            seen.extend(read.values.last().and_then(|value| self.writer(read.key, *value)));
        }
        for piece in self.longest_reads() {
            let read = &self.lists[piece];
            seen.extend(read.values.iter().filter_map(|value| self.writer(read.key, *value)));
        }
        seen.extend(self.registers.iter().filter_map(|read| self.writer(read.key, read.value?)));
        for write in seen {
            let is_there = &mut self.is_committed[write.by as usize];
            *is_there |= self.transactions[write.by as usize].fate == Fate::Unknown;
        }
    }

    /// The longest read of each list. Sorts the reads by list and length.
    fn longest_reads(&mut self) -> Vec<usize> {
        self.lists.sort_by_key(|read| (read.key, read.values.len()));
        by_key(&self.lists, |read| read.key).into_iter().map(|piece| piece.end - 1).collect()
    }

    /// Checks the version that a read returned, and says who comes before its reader.
    fn check_version(&mut self, key: Key, value: u64, by: u32, by_range: bool) {
        let Some(write) = self.writer(key, value) else {
            let text = format!("read {value} in {key}, which nobody wrote");
            return self.report(Phenomenon::Unwritten, &[by], text);
        };
        if write.by == by {
            let text = format!("read {value} in {key} before it wrote it itself");
            self.report(Phenomenon::Internal, &[by], text);
        } else if !self.is_committed(write.by) {
            let text = format!("the first read {value} in {key}, written by the second, which was rolled back");
            self.report(Phenomenon::G1a, &[by, write.by], text);
        } else {
            if !write.is_last {
                let text = format!("the first read {value} in {key}, which the second wrote over before it committed");
                self.report(Phenomenon::G1b, &[by, write.by], text);
            }
            let kind = Kind::WriteRead;
            self.edges.push(Edge { from: write.by, to: by, kind, by_range, key, value });
        }
    }

    /// Writes that one version follows another.
    fn follow(&mut self, from: u32, to: u32, kind: Kind, key: Key, value: u64, by_range: bool) {
        if from != to {
            self.edges.push(Edge { from, to, kind, by_range, key, value });
        }
    }

    fn order_lists(&mut self) {
        for piece in by_key(&self.lists, |read| read.key) {
            let key = self.lists[piece.start].key;
            let order = self.lists[piece.end - 1].values;
            self.check_order(key, order, self.lists[piece.end - 1].by);
            let unseen = self.unseen(key, order);
            let mut paired = 0;
            for at in piece {
                let ListRead { by, values, by_range, .. } = self.lists[at];
                if !order.starts_with(values) {
                    let text =
                        format!("{key} was read as {values:?} and as {order:?}; neither is a beginning of the other");
                    let longest = self.lists.iter().rfind(|read| read.key == key).map_or(by, |read| read.by);
                    self.report(Phenomenon::IncompatibleOrder, &[by, longest], text);
                    continue;
                }
                if let Some(last) = values.last() {
                    self.check_version(key, *last, by, by_range);
                }
                let next = order[values.len()..]
                    .iter()
                    .find_map(|value| self.writer(key, *value).filter(|write| self.is_committed(write.by)));
                match next {
                    Some(write) => self.follow(by, write.by, Kind::ReadWrite, key, write.value, by_range),
                    None if paired < PAIRED => {
                        paired += 1;
                        for write in &unseen {
                            self.follow(by, write.by, Kind::ReadWrite, key, write.value, by_range);
                        }
                    }
                    None => {}
                }
            }
        }
    }

    /// Looks through the longest read of a list: every value was written, once, by somebody who committed.
    fn check_order(&mut self, key: Key, order: &[u64], by: u32) {
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            self.report(Phenomenon::Duplicate, &[by], format!("{} is in {key} twice: {order:?}", pair[0]));
        }
        let mut before: Option<Write> = None;
        for (at, value) in order.iter().enumerate() {
            let Some(write) = self.writer(key, *value) else {
                // The last one is looked at as the end of a read.
                if at + 1 < order.len() {
                    self.report(Phenomenon::Unwritten, &[by], format!("read {value} in {key}, which nobody wrote"));
                }
                continue;
            };
            if !self.is_committed(write.by) {
                if at + 1 < order.len() {
                    let text = format!("the first read {value} in {key}, written by the second, which was rolled back");
                    self.report(Phenomenon::G1a, &[by, write.by], text);
                }
                continue;
            }
            if let Some(before) = before {
                self.follow(before.by, write.by, Kind::WriteWrite, key, *value, false);
            }
            before = Some(write);
        }
    }

    /// Committed appends to a list that are not in its longest read, so whoever read that came before them.
    fn unseen(&self, key: Key, order: &[u64]) -> Vec<Write> {
        let from = self.writes.partition_point(|write| write.key < key);
        let all = self.writes[from..].iter().take_while(|write| write.key == key);
        let mut seen = order.to_vec();
        seen.sort_unstable();
        let is_unseen = |write: &&Write| self.is_committed(write.by) && seen.binary_search(&write.value).is_err();
        all.filter(is_unseen).take(PAIRED).copied().collect()
    }

    fn order_registers(&mut self) {
        self.registers.sort_by_key(|read| (read.key, read.value, read.by));
        for piece in by_key(&self.registers, |read| read.key) {
            let readers_of = |one: &RegisterRead, other: &RegisterRead| one.value == other.value;
            let versions: Vec<Vec<RegisterRead>> =
                self.registers[piece].chunk_by(readers_of).map(<[RegisterRead]>::to_vec).collect();
            for readers in versions {
                self.order_version(&readers);
            }
        }
    }

    /// What those who read one version of a register say about it and about the next one.
    fn order_version(&mut self, readers: &[RegisterRead]) {
        let writers: Vec<(u32, u64)> =
            readers.iter().filter_map(|read| Some((read.by, read.overwrites?))).take(PAIRED).collect();
        for read in readers {
            let key = read.key;
            if let Some(value) = read.value {
                self.check_version(key, value, read.by, read.by_range);
                let before = self.writer(key, value).filter(|write| self.is_committed(write.by));
                if let (Some(before), Some(next)) = (before, read.overwrites) {
                    self.follow(before.by, read.by, Kind::WriteWrite, key, next, false);
                }
            }
            for (next, value) in &writers {
                self.follow(read.by, *next, Kind::ReadWrite, key, *value, read.by_range);
            }
        }
    }
}
