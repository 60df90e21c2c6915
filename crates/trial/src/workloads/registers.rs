//! A few registers that everybody reads, writes, and compares and sets: the history of each must be linearizable.

use crate::engines::Engines;
use crate::history::{History, Outcome, Record, Violation};
use crate::keyed::{Effect, Keyed};
use crate::linear::Action;
use crate::operation::{Operation, Space};
use crate::value::Value;
use crate::workload::{Client, Dice, Unique, View, Workload, rows};

const SPACE: u32 = 3001;
/// The registers: rows of key and value.
pub const REGISTERS_SPACE: Space = Space::Id(SPACE);
const REGISTERS: u64 = 5;
const SWAP: &str = "trial_swap";
const KEYED: Keyed = Keyed { space: REGISTERS_SPACE, rest: |_, _| Vec::new() };

/// See the top of the file.
pub(crate) struct Registers;

struct Player {
    dice: Dice,
    unique: Unique,
    /// The last value seen of each register: worth comparing with.
    seen: [u64; REGISTERS as usize],
    key: u64,
}

impl Workload for Registers {
    fn name(&self) -> &'static str {
        "registers"
    }

    fn about(&self) -> &'static str {
        "reads, writes and compare-and-set of a few rows are linearizable, crashes included"
    }

    fn clients_min(&self) -> usize {
        3
    }

    fn setup(&self, engines: Engines) -> Vec<Operation> {
        let swap = "function(key, old, new)\n\
                        local space = box.space.trial_registers\n\
                        box.begin()\n\
                        local row = space:get(key)\n\
                        if row == nil or row[2] ~= old then box.commit() return false end\n\
                        space:replace({ key, new })\n\
                        box.commit()\n\
                        return true\n\
                    end";
        vec![Operation::create_space(engines, SPACE, "trial_registers"), Operation::define(SWAP, swap)]
    }

    fn client(&self, number: usize, seed: u64) -> Box<dyn Client> {
        Box::new(Player {
            dice: Dice::new(seed, number),
            unique: Unique::new(number),
            seen: [0; REGISTERS as usize],
            key: 0,
        })
    }

    fn check(&self, _seed: u64, history: &History, view: &mut View<'_>) -> Result<(), Violation> {
        let found = rows(view, Operation::select_all(KEYED.space, 0))?;
        KEYED.check(history, &found, &effect)
    }
}

fn effect(record: &Record) -> Option<Effect> {
    let Operation::Call { name: SWAP, arguments } = &record.operation else { return None };
    let [Value::Uint(key), Value::Uint(old), Value::Uint(new)] = arguments[..] else { return None };
    let action = match (&record.outcome, record.outcome.first()) {
        (Outcome::Unknown, _) | (_, Some(Value::Bool(true))) => Action::Swap(old, new),
        (_, Some(Value::Bool(false))) => Action::Differs(old),
        _ => return None,
    };
    Some(Effect { key: Some(key), action, is_certain: !record.outcome.is_unknown() })
}

impl Client for Player {
    fn next(&mut self) -> Operation {
        self.key = self.dice.below(REGISTERS);
        let seen = self.seen[self.key as usize];
        match self.dice.below(4) {
            0 => KEYED.replace(self.key, self.unique.next()),
            1 => Operation::call(SWAP, &[self.key, seen, self.unique.next()]),
            _ => KEYED.get(self.key),
        }
    }

    fn answered(&mut self, outcome: &Outcome) {
        if let Some(version) = outcome.first().and_then(|row| row.uint_at(1)) {
            self.seen[self.key as usize] = version;
        }
    }
}
