//! A space to which rows are only added, each under a number that is given out once: what is there says which operations happened.

use crate::history::{Outcome, Record, Violation};
use crate::value::Value;
use std::collections::BTreeMap;

/// What clients know of the rows of a journal.
#[derive(Default)]
pub(crate) struct Journal {
    /// Rows that were to be added, with what came of it.
    asked: BTreeMap<u64, (Value, Fate)>,
    /// Rows that answers have shown.
    seen: BTreeMap<u64, Value>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Acknowledged,
    Unknown,
    Refused,
}

impl Journal {
    /// An operation that adds a row under `id`. Acknowledged only means done if the procedure did not decline.
    pub(crate) fn ask(&mut self, id: u64, row: Value, record: &Record, has_declined: bool) {
        let fate = match &record.outcome {
            Outcome::Done(_) if !has_declined => Fate::Acknowledged,
            Outcome::Unknown => Fate::Unknown,
            _ => Fate::Refused,
        };
        self.asked.insert(id, (row, fate));
    }

    /// An answer showed these rows.
    pub(crate) fn see(&mut self, rows: &[Value]) {
        for row in rows {
            self.seen.insert(row.uint_at(0).unwrap_or(u64::MAX), row.clone());
        }
    }

    /// Compares with what is there.
    pub(crate) fn check(&self, name: &str, found: &[Value]) -> Result<(), Violation> {
        let mut there: BTreeMap<u64, &Value> = BTreeMap::new();
        for row in found {
            let id = row.uint_at(0).unwrap_or(u64::MAX);
            if there.insert(id, row).is_some() {
                return Err(Violation::wrong(format!("{name}: number {id} is there twice")));
            }
            match self.asked.get(&id) {
                None => return Err(Violation::wrong(format!("{name}: {row} is there and nobody asked for it"))),
                Some((_, Fate::Refused)) => {
                    return Err(Violation::wrong(format!("{name}: {row} is there although it was refused")));
                }
                Some((asked, _)) if asked != row => {
                    return Err(Violation::wrong(format!("{name}: {row} is there, asked was {asked}")));
                }
                Some(_) => {}
            }
        }
        for (id, (row, fate)) in &self.asked {
            if *fate == Fate::Acknowledged && !there.contains_key(id) {
                return Err(Violation::lost(format!("{name}: {row} was acknowledged and is gone")));
            }
        }
        for (id, row) in &self.seen {
            match there.get(id) {
                None => return Err(Violation::lost(format!("{name}: an answer showed {row}, which is gone"))),
                Some(other) if *other != row => {
                    return Err(Violation::wrong(format!("{name}: an answer showed {row}, there is {other}")));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}
