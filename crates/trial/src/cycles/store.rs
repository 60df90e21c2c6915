//! A store of versions that keeps its promise or breaks it in a chosen way, for doubting the checker.

use super::transaction::{Fate, Key, Step, Transaction};
use crate::workload::Dice;
use std::collections::BTreeMap;

/// What the store does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nothing: first to commit wins, reads and ranges are remembered, readers have a view.
    None,
    /// A commit looks only at what others wrote to the same keys: snapshot isolation.
    ReadsForgotten,
    /// Reads of ranges are not remembered.
    RangesForgotten,
    /// The later reads of a reader see a later moment.
    ViewMoves,
    /// A reader sees a moment before its beginning.
    ViewIsOld,
    /// Two may write over the same version.
    LockGivenToTwo,
    /// One of the first writes of a transaction is gone when it goes on.
    PrivateWriteLost,
    /// Reads see what others have not committed.
    DirtyReads,
    /// Each write is there at once, for all.
    NoIsolation,
    /// A transaction without an answer happens in part.
    HalfACommit,
}

/// What the transactions look like.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) transactions: usize,
    /// At work at the same time.
    pub(super) live: usize,
    pub(super) steps: u64,
    /// Keys that transactions of about the same time use.
    pub(super) keys: u64,
    pub(super) has_ranges: bool,
    pub(super) has_registers: bool,
    /// The last transaction reads everything.
    pub(super) has_last_reader: bool,
}

/// A version of a key and the moment of its commit.
type Versions = Vec<(u64, u64)>;

struct Live {
    number: usize,
    began_at: u64,
    steps_left: u64,
    is_reader: bool,
    writes: Vec<(Key, u64)>,
    reads: Vec<(Key, bool)>,
    steps: Vec<Step>,
    invoked_at: u64,
}

struct Store {
    fault: Fault,
    shape: Shape,
    dice: Dice,
    committed: BTreeMap<Key, Versions>,
    live: Vec<Live>,
    moment: u64,
    clock: u64,
    next_value: u64,
    history: Vec<(usize, Transaction)>,
}

/// A history of such a store.
pub(super) fn history(fault: Fault, shape: Shape, seed: u64) -> Vec<Transaction> {
    let mut store = Store {
        fault,
        shape,
        dice: Dice::new(seed, 0),
        committed: BTreeMap::new(),
        live: Vec::new(),
        moment: 0,
        clock: 0,
        next_value: 0,
        history: Vec::new(),
    };
    let mut begun = 0;
    while begun < shape.transactions || !store.live.is_empty() {
        if begun < shape.transactions && store.live.len() < shape.live {
            store.begin(begun);
            begun += 1;
        }
        let at = store.dice.below(store.live.len() as u64) as usize;
        if store.live[at].steps_left == 0 {
            let one = store.live.swap_remove(at);
            store.end(one);
        } else {
            store.step(at);
        }
    }
    if shape.has_last_reader {
        store.read_all(begun);
    }
    store.history.sort_by_key(|(number, _)| *number);
    store.history.into_iter().map(|(_, transaction)| transaction).collect()
}

impl Store {
    fn now(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn begin(&mut self, number: usize) {
        let is_reader = self.dice.one_in(4);
        let began_at = match self.fault {
            Fault::ViewIsOld if is_reader => self.moment.saturating_sub(6),
            _ => self.moment,
        };
        let invoked_at = self.now();
        let steps_left = 1 + self.dice.below(self.shape.steps);
        let (writes, reads, steps) = (Vec::new(), Vec::new(), Vec::new());
        self.live.push(Live { number, began_at, steps_left, is_reader, writes, reads, steps, invoked_at });
    }

    fn step(&mut self, at: usize) {
        let one = &self.live[at];
        let base = (one.number / 60) as u64 * 100;
        let number = base + self.dice.below(self.shape.keys);
        let is_reader = one.is_reader;
        self.live[at].steps_left -= 1;
        self.clock += 1;
        if self.fault == Fault::PrivateWriteLost && self.dice.one_in(20) && !self.live[at].writes.is_empty() {
            self.live[at].writes.remove(0);
        }
        match self.dice.below(4) {
            0 if self.shape.has_ranges => {
                (base..base + self.shape.keys).for_each(|number| self.read(at, Key::list(number), true));
            }
            0 | 1 => self.read(at, Key::list(number), false),
            2 if self.shape.has_registers => {
                let key = Key::register(number);
                self.read(at, key, false);
                if !is_reader {
                    self.write(at, key);
                }
            }
            _ if is_reader => self.read(at, Key::list(number), false),
            _ => self.write(at, Key::list(number)),
        }
    }

    fn write(&mut self, at: usize, key: Key) {
        self.next_value += 1;
        let value = self.next_value;
        if self.fault == Fault::NoIsolation {
            self.moment += 1;
            self.committed.entry(key).or_default().push((self.moment, value));
        } else {
            self.live[at].writes.push((key, value));
        }
        let number = key.number;
        let step = if key.is_list { Step::Append { key: number, value } } else { Step::Write { key: number, value } };
        self.live[at].steps.push(step);
    }

    fn read(&mut self, at: usize, key: Key, by_range: bool) {
        let one = &self.live[at];
        let until = match self.fault {
            Fault::ViewMoves if one.is_reader => self.moment,
            Fault::NoIsolation => self.moment,
            _ => one.began_at,
        };
        let mut values = self.values(key, until);
        if self.fault == Fault::DirtyReads {
            let others = self.live.iter().filter(|other| other.number != one.number);
            values.extend(
                others.flat_map(|other| &other.writes).filter(|(other, _)| *other == key).map(|(_, value)| *value),
            );
        }
        values.extend(one.writes.iter().filter(|(other, _)| *other == key).map(|(_, value)| *value));
        let one = &mut self.live[at];
        one.reads.push((key, by_range));
        one.steps.push(read_step(key, values, by_range));
    }

    fn values(&self, key: Key, until: u64) -> Vec<u64> {
        let versions = self.committed.get(&key).into_iter().flatten();
        versions.take_while(|(moment, _)| *moment <= until).map(|(_, value)| *value).collect()
    }

    /// True if somebody committed a write to the key since.
    fn has_changed(&self, key: Key, since: u64) -> bool {
        self.committed.get(&key).and_then(|versions| versions.last()).is_some_and(|(moment, _)| *moment > since)
    }

    fn end(&mut self, mut one: Live) {
        let is_overwritten = one.writes.iter().any(|(key, _)| self.has_changed(*key, one.began_at));
        let is_outdated = |by_range: bool| {
            one.reads.iter().any(|(key, range)| *range == by_range && self.has_changed(*key, one.began_at))
        };
        let is_refused = !one.writes.is_empty()
            && match self.fault {
                Fault::LockGivenToTwo | Fault::DirtyReads | Fault::NoIsolation => false,
                Fault::ReadsForgotten => is_overwritten,
                Fault::RangesForgotten => is_overwritten || is_outdated(false),
                _ => is_overwritten || is_outdated(false) || is_outdated(true),
            };
        let is_committed = self.fault == Fault::NoIsolation || !is_refused && !self.dice.one_in(10);
        let is_unknown = self.dice.one_in(10);
        if is_committed {
            self.moment += 1;
            if is_unknown && self.fault == Fault::HalfACommit && one.writes.len() > 1 {
                one.writes.pop();
            }
            for (key, value) in one.writes {
                self.committed.entry(key).or_default().push((self.moment, value));
            }
        }
        let fate = match (is_unknown, is_committed) {
            (true, _) => Fate::Unknown,
            (false, true) => Fate::Committed,
            (false, false) => Fate::Aborted,
        };
        let now = self.now();
        let answered_at = if is_unknown { u64::MAX } else { now };
        let mut steps = one.steps;
        if is_unknown {
            steps.retain(|step| step.written().is_some());
        }
        self.history.push((one.number, Transaction { steps, fate, invoked_at: one.invoked_at, answered_at }));
    }

    fn read_all(&mut self, number: usize) {
        let keys: Vec<Key> = self.committed.keys().copied().collect();
        let steps = keys.into_iter().map(|key| read_step(key, self.values(key, u64::MAX), false)).collect();
        let (invoked_at, answered_at) = (self.now(), self.now());
        self.history.push((number, Transaction { steps, fate: Fate::Committed, invoked_at, answered_at }));
    }
}

fn read_step(key: Key, values: Vec<u64>, by_range: bool) -> Step {
    let number = key.number;
    match key.is_list {
        true => Step::List { key: number, values, by_range },
        false => Step::Register { key: number, value: values.last().copied(), by_range },
    }
}
