//! Numbers of a sequence are never given out twice, also not after a crash.

use crate::engines::Engines;
use crate::history::{History, Outcome, Record, Violation};
use crate::operation::{Operation, Space};
use crate::value::Value;
use crate::workload::{Client, Dice, Unique, View, Workload, rows};
use std::collections::BTreeMap;
use tuple::SpaceId;

const SPACE: u32 = 3030;
const NUMBERED: Space = Space::Id(SPACE);
const NEXT: &str = "trial_next";

/// See the top of the file.
pub(crate) struct Sequences;

struct Player {
    dice: Dice,
    unique: Unique,
}

impl Workload for Sequences {
    fn name(&self) -> &'static str {
        "sequences"
    }

    fn about(&self) -> &'static str {
        "a number that was given out never comes again"
    }

    fn setup(&self, engines: Engines) -> Vec<Operation> {
        let sequences = "if box.space.trial_numbered ~= nil then box.space.trial_numbered:drop() end\n\
                         for _, name in ipairs({ 'trial_row', 'trial_bare' }) do\n\
                             if box.sequence[name] ~= nil then box.sequence[name]:drop() end\n\
                             box.schema.sequence.create(name)\n\
                         end\n\
                         local id, engine = ...\n\
                         local space = box.schema.space.create('trial_numbered', { id = id, engine = engine })\n\
                         space:create_index('primary', { parts = { { 1, 'unsigned' } }, sequence = 'trial_row' })";
        vec![
            Operation::Eval {
                source: sequences,
                arguments: vec![u64::from(SPACE).into(), engines.of(SpaceId(SPACE)).into()],
            },
            Operation::define(NEXT, "function() return box.sequence.trial_bare:next() end"),
        ]
    }

    fn client(&self, number: usize, seed: u64) -> Box<dyn Client> {
        Box::new(Player { dice: Dice::new(seed, number), unique: Unique::new(number) })
    }

    fn check(&self, _seed: u64, history: &History, view: &mut View<'_>) -> Result<(), Violation> {
        let is_row = |record: &&Record| matches!(record.operation, Operation::Insert { .. });
        let is_bare = |record: &&Record| matches!(record.operation, Operation::Call { .. });
        let row_number = |record: &Record| record.outcome.first()?.uint_at(0);
        let bare_number = |record: &Record| record.outcome.first()?.uint();
        check_order("the sequence of rows", history.records.iter().filter(is_row), row_number)?;
        check_order("the bare sequence", history.records.iter().filter(is_bare), bare_number)?;
        check_rows(history, &rows(view, Operation::select_all(NUMBERED, 0))?)
    }
}

/// No number twice, and none that is smaller than one given out before it was asked for.
fn check_order<'a>(
    name: &str,
    records: impl Iterator<Item = &'a Record>,
    number_of: impl Fn(&Record) -> Option<u64>,
) -> Result<(), Violation> {
    let mut events: Vec<(u64, u64, bool)> = Vec::new();
    let mut given: BTreeMap<u64, u64> = BTreeMap::new();
    for record in records {
        let Some(number) = number_of(record) else { continue };
        if given.insert(number, record.invoked_at).is_some() {
            return Err(Violation::wrong(format!("{name} gave out {number} twice")));
        }
        events.push((record.invoked_at, number, false));
        events.push((record.answered_at, number, true));
    }
    events.sort_unstable();
    let mut largest = 0;
    let mut asked: BTreeMap<u64, u64> = BTreeMap::new();
    for (_, number, is_answer) in events {
        if !is_answer {
            asked.insert(number, largest);
            continue;
        }
        let before = asked.remove(&number).unwrap_or(0);
        if number < before {
            return Err(Violation::order(format!("{name} gave out {number} after {before}")));
        }
        largest = largest.max(number);
    }
    Ok(())
}

/// Acknowledged rows are there under their number, and nothing else is but what had no answer.
fn check_rows(history: &History, found: &[Value]) -> Result<(), Violation> {
    let mut there: BTreeMap<u64, &Value> = found.iter().map(|row| (row.uint_at(1).unwrap_or(u64::MAX), row)).collect();
    if there.len() != found.len() {
        return Err(Violation::wrong("one insert is there under two numbers"));
    }
    for record in &history.records {
        let Operation::Insert { row, .. } = &record.operation else { continue };
        let mark = row.get(1).and_then(Value::uint).unwrap_or(0);
        let row = there.remove(&mark);
        match (&record.outcome, row) {
            (Outcome::Done(data), row) if data.array().first() != row => {
                return Err(Violation::lost(format!("acknowledged was {data}, there is {row:?}")));
            }
            (Outcome::Refused(refusal), Some(row)) => {
                return Err(Violation::wrong(format!("{row} is there, refused was it: {}", refusal.text)));
            }
            _ => {}
        }
    }
    match there.first_key_value() {
        Some((_, row)) => Err(Violation::wrong(format!("{row} is there and nobody asked for it"))),
        None => Ok(()),
    }
}

impl Client for Player {
    fn next(&mut self) -> Operation {
        match self.dice.below(3) {
            0 => Operation::call(NEXT, &[]),
            _ => Operation::Insert { space: NUMBERED, row: vec![Value::Nil, self.unique.next().into()] },
        }
    }

    fn answered(&mut self, _outcome: &Outcome) {}
}
