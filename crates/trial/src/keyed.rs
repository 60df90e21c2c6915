//! A space of rows that are overwritten: each row is its key, a version that is given out once, and fields that follow from both. So a
//! row that is there in part, or put together from two, is seen at once, and the history of a key is that of one number.

use crate::engines::Engines;
use crate::history::{History, Kind, Outcome, Record, Violation};
use crate::linear::{Action, Single, first_impossible};
use crate::operation::{Operation, Order, Space};
use crate::value::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Error number of an insert that finds its key taken.
pub(crate) const DUPLICATE: u32 = 3;
/// So many operations of a key are told before the one that cannot be.
const TOLD_BEFORE: usize = 12;

/// What an operation that is no statement on the space does to a key; without a key to all of them.
pub(crate) struct Effect {
    pub(crate) key: Option<u64>,
    pub(crate) action: Action,
    /// It happened; otherwise it may be left out.
    pub(crate) is_certain: bool,
}

/// A space of such rows.
pub(crate) struct Keyed {
    pub(crate) space: Space,
    /// The fields after key and version.
    pub(crate) rest: fn(key: u64, version: u64) -> Vec<Value>,
}

impl Keyed {
    /// The row of a key in a version.
    pub(crate) fn row(&self, key: u64, version: u64) -> Vec<Value> {
        let mut row = vec![key.into(), version.into()];
        row.extend((self.rest)(key, version));
        row
    }

    pub(crate) fn insert(&self, key: u64, version: u64) -> Operation {
        Operation::Insert { space: self.space, row: self.row(key, version) }
    }

    pub(crate) fn replace(&self, key: u64, version: u64) -> Operation {
        Operation::Replace { space: self.space, row: self.row(key, version) }
    }

    pub(crate) fn update(&self, key: u64, version: u64) -> Operation {
        let row = self.row(key, version);
        let set = |(at, value): (usize, Value)| Value::Array(vec!["=".into(), (at as u64).into(), value]);
        let changes = row.into_iter().enumerate().skip(1).map(set).collect();
        Operation::Update { space: self.space, index: 0, key: vec![key.into()], changes }
    }

    pub(crate) fn upsert(&self, key: u64, version: u64) -> Operation {
        let Operation::Update { changes, .. } = self.update(key, version) else { unreachable!("it was just made") };
        Operation::Upsert { space: self.space, row: self.row(key, version), changes }
    }

    pub(crate) fn delete(&self, key: u64) -> Operation {
        Operation::Delete { space: self.space, index: 0, key: vec![key.into()] }
    }

    pub(crate) fn get(&self, key: u64) -> Operation {
        Operation::get(self.space, key)
    }

    /// Key and version of a row. Errors: it is no row of this space as anybody wrote it.
    fn read(&self, row: &Value) -> Result<(u64, u64), Violation> {
        let (Some(key), Some(version)) = (row.uint_at(0), row.uint_at(1)) else {
            return Err(Violation::wrong(format!("{row} is no row of {:?}", self.space)));
        };
        if row.array() != self.row(key, version) {
            return Err(Violation::wrong(format!(
                "{row} is not whole: of key {key}, version {version} has other fields"
            )));
        }
        Ok((key, version))
    }

    /// The one row of an answer, if there is one.
    fn read_one(&self, data: &Value) -> Result<Option<(u64, u64)>, Violation> {
        data.array().first().filter(|row| **row != Value::Nil).map(|row| self.read(row)).transpose()
    }

    /// What a statement says of keys.
    fn actions(&self, record: &Record, engines: Engines) -> Result<Vec<(Option<u64>, Action)>, Violation> {
        let key_of = |values: &[Value]| values.first().and_then(Value::uint).unwrap_or(u64::MAX);
        let version_of = |row: &[Value]| row.get(1).and_then(Value::uint).unwrap_or(u64::MAX);
        let is_mine = |space: &Space| *space == self.space;
        let answer = match &record.outcome {
            Outcome::Done(data) => Some(data),
            _ => None,
        };
        let is_refused = answer.is_none() && !record.outcome.is_unknown();
        Ok(match &record.operation {
            Operation::Insert { space, row } if is_mine(space) && record.outcome.refused_code() == Some(DUPLICATE) => {
                vec![(Some(key_of(row)), Action::Occupied)]
            }
            _ if is_refused => Vec::new(),
            Operation::Insert { space, row } | Operation::Replace { space, row } if is_mine(space) => {
                if let Some(answer) = answer
                    && answer.array().first().is_some_and(|shown| shown.array() != *row)
                {
                    let text = format!("{} was written, the answer shows {answer}", Value::Array(row.clone()));
                    return Err(Violation::wrong(text));
                }
                let action = match &record.operation {
                    Operation::Insert { .. } => Action::Insert(version_of(row)),
                    _ => Action::Write(version_of(row)),
                };
                vec![(Some(key_of(row)), action)]
            }
            Operation::Upsert { space, row, .. } if is_mine(space) => {
                vec![(Some(key_of(row)), Action::Write(version_of(row)))]
            }
            Operation::Update { space, key, changes, .. } if is_mine(space) => {
                let version = changes.first().and_then(|change| change.uint_at(2)).unwrap_or(u64::MAX);
                let action = match answer.map(|answer| self.read_one(answer)).transpose()? {
                    Some(None) => Action::Read(None),
                    _ => Action::Change(version),
                };
                vec![(Some(key_of(key)), action)]
            }
            Operation::Delete { space, key, .. } if is_mine(space) => {
                let shown = answer.filter(|_| !engines.hides_deleted(self.space));
                let action = match shown.map(|answer| self.read_one(answer)).transpose()? {
                    Some(removed) => Action::Removed(removed.map(|(_, version)| version)),
                    None => Action::Clear,
                };
                vec![(Some(key_of(key)), action)]
            }
            Operation::Select { space, index, order, key, .. } if is_mine(space) => {
                let Some(answer) = answer else { return Ok(Vec::new()) };
                let rows = answer.array().iter().map(|row| self.read(row)).collect::<Result<Vec<_>, _>>()?;
                let mut seen: Vec<(Option<u64>, Action)> =
                    rows.iter().map(|(key, version)| (Some(*key), Action::Read(Some(*version)))).collect();
                if rows.is_empty() && *index == 0 && *order == Order::Equal {
                    seen.push((Some(key_of(key)), Action::Read(None)));
                }
                seen
            }
            _ => Vec::new(),
        })
    }

    /// Checks the history of each key together with the rows that are there now. `effects` tells what procedures do.
    pub(crate) fn check(
        &self,
        history: &History,
        found: &[Value],
        effects: &dyn Fn(&Record) -> Option<Effect>,
    ) -> Result<(), Violation> {
        let mut all = Singles::default();
        for (at, record) in history.records.iter().enumerate() {
            all.last_at = all.last_at.max(record.answered_at);
            let is_certain = !record.outcome.is_unknown();
            let statement = self.actions(record, history.engines)?.into_iter().map(|(key, action)| Effect {
                key,
                action,
                is_certain,
            });
            statement.chain(effects(record)).for_each(|effect| all.add(effect, history, at));
        }
        let there: BTreeMap<u64, u64> = found.iter().map(|row| self.read(row)).collect::<Result<_, _>>()?;
        all.check(&there, history, &|key| format!("{:?}, key {key}", self.space))
    }
}

/// What happened to keys, each with its place in the history.
#[derive(Default)]
pub(crate) struct Singles {
    by_key: BTreeMap<u64, Vec<(Single, Option<usize>)>>,
    for_all: Vec<(Single, Option<usize>)>,
    /// The last moment of an answer.
    last_at: u64,
}

impl Singles {
    /// Adds an effect of a record.
    pub(crate) fn add(&mut self, effect: Effect, history: &History, at: usize) {
        let Effect { key, action, is_certain } = effect;
        let record = &history.records[at];
        self.last_at = self.last_at.max(record.answered_at);
        let (invoked_at, decided_at) = (record.invoked_at, history.decided_at(record));
        let single = Single { action, invoked_at, decided_at, is_answered: is_certain };
        match key {
            Some(key) => self.by_key.entry(key).or_default().push((single, Some(at))),
            None => self.for_all.push((single, Some(at))),
        }
    }

    /// Looks for an order that explains the history of each key, together with the values that are there now. `name` says which key it is.
    pub(crate) fn check(
        mut self,
        there: &BTreeMap<u64, u64>,
        history: &History,
        name: &dyn Fn(u64) -> String,
    ) -> Result<(), Violation> {
        // The view comes after everything that the history knows.
        let now = history.crashes.values().copied().fold(self.last_at, u64::max) + 1;
        let keys: BTreeSet<u64> = self.by_key.keys().chain(there.keys()).copied().collect();
        for key in keys {
            let mut singles = self.by_key.remove(&key).unwrap_or_default();
            singles.extend(&self.for_all);
            let action = Action::Read(there.get(&key).copied());
            singles.push((Single { action, invoked_at: now, decided_at: now + 1, is_answered: true }, None));
            let operations: Vec<Single> = singles.iter().map(|(single, _)| *single).collect();
            if let Some(impossible) = first_impossible(None, &operations) {
                return Err(violation(&name(key), &singles, impossible, history));
            }
        }
        Ok(())
    }
}

fn violation(key: &str, all: &[(Single, Option<usize>)], last: usize, history: &History) -> Violation {
    let (single, source) = all[last];
    let mut before: Vec<_> = all.iter().filter(|(one, _)| one.invoked_at < single.decided_at).collect();
    before.sort_by_key(|(one, _)| one.invoked_at);
    let told: Vec<String> = before[before.len().saturating_sub(TOLD_BEFORE)..]
        .iter()
        .map(|(one, source)| {
            let end = if one.decided_at == u64::MAX { "?".to_string() } else { one.decided_at.to_string() };
            let who = source.map_or("now".to_string(), |at| {
                let record = &history.records[at];
                format!("client {} in life {}", record.client, record.incarnation)
            });
            let mark = if one.is_answered { "" } else { ", no answer" };
            format!("    {}..{end} {:?} ({who}{mark})", one.invoked_at, one.action)
        })
        .collect();
    let kind = if source.is_none() { Kind::Lost } else { Kind::Order };
    let text =
        format!("{key}: no order of the operations explains {:?}; before it:\n{}", single.action, told.join("\n"));
    Violation { kind, text }
}
