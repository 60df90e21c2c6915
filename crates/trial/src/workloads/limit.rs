//! Rows are hoarded until the server has no memory left for them: inserts are refused, reads and deletes go on, and after deletes inserts
//! succeed again. With more memory than the hoard it is a space that fills and empties.

use crate::engines::Engines;
use crate::history::{History, Outcome, Violation};
use crate::keyed::Keyed;
use crate::operation::{Operation, Space};
use crate::value::Value;
use crate::workload::{Client, Dice, Unique, View, Workload, rows};

const SPACE: u32 = 3070;
const ROW_BYTES: u32 = 40_000;
/// A client that has so many rows gives some back without being refused.
const OWN_ROWS_MAX: usize = 500;
/// One operation of so many adds a row: the log of a test need not be longer than its reason.
const INSERT_EVERY: u64 = 6;
/// Refused for want of memory.
const MEMORY_ISSUE: u32 = 2;
const KEYED: Keyed = Keyed {
    space: Space::Id(SPACE),
    rest: |key, version| vec![Value::repeat(b'a' + ((key ^ version) % 26) as u8, ROW_BYTES)],
};

/// See the top of the file.
pub(crate) struct Limit;

struct Hoarder {
    dice: Dice,
    unique: Unique,
    /// Rows that this client has or may have.
    own: Vec<u64>,
    /// It is giving back until so many are left.
    giving_to: Option<usize>,
    asked: Asked,
}

#[derive(Clone, Copy)]
enum Asked {
    Insert(u64),
    Delete(u64),
    Read,
}

impl Workload for Limit {
    fn name(&self) -> &'static str {
        "limit"
    }

    fn about(&self) -> &'static str {
        "rows are hoarded to the limit of memory and given back"
    }

    fn setup(&self, _engines: Engines) -> Vec<Operation> {
        vec![Operation::create_space(Engines::Memory, SPACE, "trial_limit")]
    }

    fn client(&self, number: usize, seed: u64) -> Box<dyn Client> {
        Box::new(Hoarder {
            dice: Dice::new(seed, number),
            unique: Unique::new(number),
            own: Vec::new(),
            giving_to: None,
            asked: Asked::Read,
        })
    }

    fn check(&self, _seed: u64, history: &History, view: &mut View<'_>) -> Result<(), Violation> {
        for record in &history.records {
            let is_full = record.outcome.refused_code() == Some(MEMORY_ISSUE);
            if is_full && matches!(record.operation, Operation::Delete { .. } | Operation::Select { .. }) {
                return Err(Violation::order(format!("{:?} was refused for want of memory", record.operation)));
            }
        }
        let found = rows(view, Operation::select_all(KEYED.space, 0))?;
        KEYED.check(history, &found, &|_| None)
    }
}

impl Client for Hoarder {
    fn next(&mut self) -> Operation {
        if self.own.len() >= OWN_ROWS_MAX {
            self.giving_to = Some(OWN_ROWS_MAX / 2);
        }
        if self.giving_to.is_some_and(|left| self.own.len() <= left) {
            self.giving_to = None;
        }
        let some = (!self.own.is_empty()).then(|| self.own[self.dice.below(self.own.len() as u64) as usize]);
        match (some, self.giving_to) {
            (Some(key), None) if !self.dice.one_in(INSERT_EVERY) => {
                self.asked = Asked::Read;
                KEYED.get(key)
            }
            (Some(key), Some(_)) => {
                self.asked = Asked::Delete(key);
                KEYED.delete(key)
            }
            _ => {
                let key = self.unique.next();
                self.asked = Asked::Insert(key);
                KEYED.insert(key, key)
            }
        }
    }

    fn answered(&mut self, outcome: &Outcome) {
        match (self.asked, outcome) {
            (Asked::Insert(key), Outcome::Done(_) | Outcome::Unknown) => self.own.push(key),
            (Asked::Insert(_), Outcome::Refused(_)) => self.giving_to = Some(self.own.len() / 2),
            (Asked::Delete(key), Outcome::Done(_)) => self.own.retain(|other| *other != key),
            _ => {}
        }
    }
}
