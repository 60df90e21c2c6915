//! Secondary indexes agree with the primary one: same rows, right order, under writes of every kind.

use crate::engines::Engines;
use crate::history::{History, Outcome, Violation};
use crate::keyed::Keyed;
use crate::operation::{Operation, Order, Space};
use crate::value::Value;
use crate::workload::{Client, Dice, Unique, View, Workload, rows};

const SPACE: u32 = 3004;
const KEYS: u64 = 40;
const GROUPS: u64 = 7;
/// Indexes by version (unique), by group (not unique), by text (unique, hashed).
const BY_VERSION: u32 = 1;
const BY_GROUP: u32 = 2;
const BY_TEXT: u32 = 3;

const KEYED: Keyed = Keyed {
    space: Space::Id(SPACE),
    rest: |key, version| vec![(version % GROUPS).into(), Value::text(format!("{key}/{version}").as_bytes())],
};

/// See the top of the file.
pub(crate) struct Secondary;

struct Player {
    dice: Dice,
    unique: Unique,
    /// A version that was given out: used again, it must be refused if its row is still there.
    seen: u64,
}

impl Workload for Secondary {
    fn name(&self) -> &'static str {
        "secondary"
    }

    fn about(&self) -> &'static str {
        "every index shows the same rows, in its order"
    }

    fn setup(&self, engines: Engines) -> Vec<Operation> {
        let indexes = "local space = box.space.trial_secondary\n\
                       local hash = space.engine == 'memtx' and 'hash' or 'tree'\n\
                       space:create_index('version', { id = 1, parts = { { 2, 'unsigned' } } })\n\
                       space:create_index('group', { id = 2, parts = { { 3, 'unsigned' } }, unique = false })\n\
                       space:create_index('text', { id = 3, type = hash, parts = { { 4, 'string' } } })";
        vec![Operation::create_space(engines, SPACE, "trial_secondary"), Operation::eval(indexes)]
    }

    fn client(&self, number: usize, seed: u64) -> Box<dyn Client> {
        Box::new(Player { dice: Dice::new(seed, number), unique: Unique::new(number), seen: 0 })
    }

    fn check(&self, _seed: u64, history: &History, view: &mut View<'_>) -> Result<(), Violation> {
        for record in &history.records {
            if let (Operation::Select { index: BY_GROUP, key, .. }, Outcome::Done(data)) =
                (&record.operation, &record.outcome)
            {
                let wanted = key.first().and_then(Value::uint);
                if let Some(row) = data.array().iter().find(|row| row.uint_at(2) != wanted) {
                    return Err(Violation::order(format!("group {wanted:?} was asked for and shows {row}")));
                }
            }
        }
        let found = rows(view, Operation::select_all(KEYED.space, 0))?;
        for index in [BY_VERSION, BY_GROUP, BY_TEXT] {
            let through = rows(view, Operation::select_all(KEYED.space, index))?;
            same_rows(&found, &through, index)?;
        }
        KEYED.check(history, &found, &|_| None)
    }
}

/// Fails unless an index shows the rows of the primary one, in its own order.
fn same_rows(primary: &[Value], through: &[Value], index: u32) -> Result<(), Violation> {
    let part = |row: &Value| match index {
        BY_VERSION => row.uint_at(1),
        _ => row.uint_at(2),
    };
    if index != BY_TEXT && !through.is_sorted_by_key(part) {
        return Err(Violation::wrong(format!("index {index} is out of order")));
    }
    let mut sorted: Vec<&Value> = through.iter().collect();
    sorted.sort_by_key(|row| row.uint_at(0));
    if let Some((row, other)) = primary.iter().zip(&sorted).find(|(row, other)| row != *other) {
        return Err(Violation::wrong(format!("the primary index shows {row}, index {index} shows {other}")));
    }
    if primary.len() != sorted.len() {
        let text = format!("{} rows in the primary index, {} in index {index}", primary.len(), sorted.len());
        return Err(Violation::wrong(text));
    }
    Ok(())
}

impl Client for Player {
    fn next(&mut self) -> Operation {
        let key = self.dice.below(KEYS);
        match self.dice.below(10) {
            0 => KEYED.delete(key),
            1 => KEYED.insert(key, self.unique.next()),
            // The version of another row may be taken: refused by the second index, after the first one has taken the row.
            2 => KEYED.replace((key + 1) % KEYS, self.seen),
            3 => KEYED.update(key, self.unique.next()),
            4 => {
                let group = self.dice.below(GROUPS);
                let (index, order) = (BY_GROUP, Order::Equal);
                Operation::Select { space: KEYED.space, index, order, key: vec![group.into()], limit: u32::MAX }
            }
            5 | 6 => KEYED.get(key),
            _ => KEYED.replace(key, self.unique.next()),
        }
    }

    fn answered(&mut self, outcome: &Outcome) {
        if let Some(version) = outcome.first().and_then(|row| row.uint_at(1)) {
            self.seen = version;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: u64, version: u64) -> Value {
        Value::Array(KEYED.row(key, version))
    }

    #[test]
    fn an_index_that_differs_is_seen() {
        let primary = [row(1, 10), row(2, 9)];
        let is_wrong = |through: &[Value]| same_rows(&primary, through, BY_VERSION).is_err();
        assert!(!is_wrong(&[row(2, 9), row(1, 10)]));
        assert!(is_wrong(&[row(1, 10), row(2, 9)]), "out of order");
        assert!(is_wrong(&[row(1, 10)]), "a missing row");
        assert!(is_wrong(&[row(2, 9), row(1, 10), row(1, 11)]), "a row that is no more");
        assert!(is_wrong(&[row(2, 8), row(1, 10)]), "an old row");
    }
}
