//! Indexes are built, altered and dropped and the format changes while others write: an index shows all rows from its first moment on, and
//! what refuses one changes no row.

use crate::engines::Engines;
use crate::history::{History, Outcome, Record, Violation};
use crate::keyed::{Effect, Keyed};
use crate::linear::Action;
use crate::operation::{Operation, Space};
use crate::value::Value;
use crate::workload::{Client, Dice, Unique, View, Workload, rows};

const SPACE: u32 = 3090;
const KEYS: u64 = 60;
const GROUPS: u64 = 5;
const REINDEX: &str = "trial_reindex";
const EMPTY: &str = "trial_reindex_empty";
/// Of an index that is not there at the moment.
const NO_INDEX: u32 = 35;
const KEYED: Keyed = Keyed {
    space: Space::Id(SPACE),
    rest: |key, version| vec![(version % GROUPS).into(), Value::text(format!("{key}/{version}").as_bytes())],
};

/// See the top of the file.
pub(crate) struct Reindex;

/// Changes the schema; writes between.
struct Builder {
    dice: Dice,
    unique: Unique,
}

struct Writer {
    dice: Dice,
    unique: Unique,
    /// A version that was given out: used again, it ends the building of an index or is refused by one.
    seen: u64,
}

impl Workload for Reindex {
    fn name(&self) -> &'static str {
        "reindex"
    }

    fn about(&self) -> &'static str {
        "indexes are built and dropped and formats changed under load"
    }

    fn clients_min(&self) -> usize {
        3
    }

    fn setup(&self, engines: Engines) -> Vec<Operation> {
        // Between the building and the look nothing waits, and the look is a transaction, so no write comes between.
        let reindex = "function(what)\n\
                         local space = box.space.trial_reindexed\n\
                         local hash = space.engine == 'memtx' and 'hash' or 'tree'\n\
                         local function differs(index)\n\
                             if index == nil then return false end\n\
                             local shown, count = {}, 0\n\
                             for _, row in ipairs(index:select()) do shown[row[1]] = row[2] count = count + 1 end\n\
                             local rows = space.index.primary:select()\n\
                             for _, row in ipairs(rows) do\n\
                                 if shown[row[1]] ~= row[2] then return true end\n\
                             end\n\
                             return count ~= #rows\n\
                         end\n\
                         if what == 1 then\n\
                             if space.index.version then space.index.version:drop() end\n\
                             space:create_index('version', { id = 1, parts = { { 2, 'unsigned' } } })\n\
                         elseif what == 2 then\n\
                             if space.index.group then space.index.group:drop() end\n\
                             space:create_index('group', { id = 2, parts = { { 3, 'unsigned' } }, unique = false })\n\
                         elseif what == 3 then\n\
                             if space.index.version then space.index.version:drop() end\n\
                             space:create_index('version', { id = 1, type = hash, parts = { { 2, 'unsigned' } } })\n\
                         elseif what == 4 and space.index.version then\n\
                             space.index.version:alter({ type = 'tree', parts = { { 2, 'unsigned' }, { 1, 'unsigned' } } })\n\
                         elseif what == 5 then\n\
                             space:format({ { 'key', 'unsigned' }, { 'version', 'unsigned' }, { 'group', 'unsigned' } })\n\
                         elseif what == 6 then\n\
                             space.index.primary:alter({ parts = { { 1, 'unsigned' } } })\n\
                         end\n\
                         box.begin()\n\
                         local is_right = not differs(space.index.version) and not differs(space.index.group)\n\
                         box.commit()\n\
                         return is_right\n\
                     end";
        vec![
            Operation::create_space(engines, SPACE, "trial_reindexed"),
            Operation::define(REINDEX, reindex),
            Operation::define(EMPTY, "function() box.space.trial_reindexed:truncate() return true end"),
        ]
    }

    fn client(&self, number: usize, seed: u64) -> Box<dyn Client> {
        let (dice, unique) = (Dice::new(seed, number), Unique::new(number));
        match number {
            // Two, so that they meet.
            0 | 1 => Box::new(Builder { dice, unique }),
            _ => Box::new(Writer { dice, unique, seen: 0 }),
        }
    }

    fn check(&self, _seed: u64, history: &History, view: &mut View<'_>) -> Result<(), Violation> {
        for record in &history.records {
            if let (Operation::Call { name: REINDEX, arguments }, Outcome::Done(_)) =
                (&record.operation, &record.outcome)
                && record.outcome.first() != Some(&Value::Bool(true))
            {
                return Err(Violation::wrong(format!("after change {arguments:?} an index differed from the rows")));
            }
        }
        let found = rows(view, Operation::select_all(KEYED.space, 0))?;
        for index in [1, 2] {
            let mut through = match view(Operation::select_all(KEYED.space, index)) {
                Ok(rows) => rows.array().to_vec(),
                Err(refusal) if refusal.code == NO_INDEX => continue,
                Err(refusal) => return Err(Violation::lost(format!("index {index} cannot be read: {}", refusal.text))),
            };
            through.sort_by_key(|row| row.uint_at(0));
            if through != found {
                return Err(Violation::wrong(format!("index {index} shows other rows than the primary one")));
            }
        }
        KEYED.check(history, &found, &effect)
    }
}

fn effect(record: &Record) -> Option<Effect> {
    let is_certain = record.outcome.is_done();
    let is_empty = matches!(record.operation, Operation::Call { name: EMPTY, .. });
    (is_empty && (is_certain || record.outcome.is_unknown())).then_some(Effect {
        key: None,
        action: Action::Clear,
        is_certain,
    })
}

impl Client for Builder {
    fn next(&mut self) -> Operation {
        let key = self.dice.below(KEYS);
        match self.dice.below(16) {
            0..6 => Operation::call(REINDEX, &[self.dice.between(1, 6)]),
            6 if self.dice.one_in(4) => Operation::call(EMPTY, &[]),
            _ => KEYED.replace(key, self.unique.next()),
        }
    }

    fn answered(&mut self, _outcome: &Outcome) {}
}

impl Client for Writer {
    fn next(&mut self) -> Operation {
        let key = self.dice.below(KEYS);
        match self.dice.below(12) {
            0 => KEYED.delete(key),
            1 => KEYED.insert(key, self.unique.next()),
            2 if self.dice.one_in(6) => KEYED.replace((key + 1) % KEYS, self.seen),
            3 => KEYED.update(key, self.unique.next()),
            4 => KEYED.get(key),
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

    #[test]
    fn an_index_that_differed_when_it_was_made_is_seen() {
        let record = |answer: bool| Record {
            client: 0,
            incarnation: 0,
            operation: Operation::call(REINDEX, &[1]),
            outcome: Outcome::Done(Value::Array(vec![answer.into()])),
            invoked_at: 1,
            answered_at: 2,
        };
        let check = |answer| {
            let history = History { records: vec![record(answer)], ..History::default() };
            Reindex.check(0, &history, &mut |_| Ok(Value::Array(Vec::new())))
        };
        assert!(check(true).is_ok() && check(false).is_err());
    }
}
