//! Checkpoints all the time: one client makes them, the others write.

use crate::engines::Engines;
use crate::history::{History, Outcome, Violation};
use crate::keyed::Keyed;
use crate::operation::{Operation, Space};
use crate::workload::{Client, Dice, Unique, View, Workload, rows};

const SPACE: u32 = 3003;
const KEYS: u64 = 300;
const KEYED: Keyed = Keyed { space: Space::Id(SPACE), rest: |key, version| vec![(key ^ version).into()] };

/// See the top of the file.
pub(crate) struct Checkpoints;

/// Asks for one checkpoint after the other.
struct Maker;

struct Writer {
    dice: Dice,
    unique: Unique,
}

impl Workload for Checkpoints {
    fn name(&self) -> &'static str {
        "checkpoints"
    }

    fn about(&self) -> &'static str {
        "nothing is lost while snapshots are made without pause"
    }

    fn setup(&self, engines: Engines) -> Vec<Operation> {
        vec![Operation::create_space(engines, SPACE, "trial_checkpoints")]
    }

    fn client(&self, number: usize, seed: u64) -> Box<dyn Client> {
        match number {
            0 => Box::new(Maker),
            _ => Box::new(Writer { dice: Dice::new(seed, number), unique: Unique::new(number) }),
        }
    }

    fn check(&self, _seed: u64, history: &History, view: &mut View<'_>) -> Result<(), Violation> {
        let found = rows(view, Operation::select_all(KEYED.space, 0))?;
        KEYED.check(history, &found, &|_| None)
    }
}

impl Client for Maker {
    fn next(&mut self) -> Operation {
        Operation::eval("box.snapshot()")
    }

    fn answered(&mut self, _outcome: &Outcome) {}
}

impl Client for Writer {
    fn next(&mut self) -> Operation {
        let key = self.dice.below(KEYS);
        match self.dice.below(6) {
            0 => KEYED.delete(key),
            1 => KEYED.update(key, self.unique.next()),
            2 => KEYED.get(key),
            _ => KEYED.replace(key, self.unique.next()),
        }
    }

    fn answered(&mut self, _outcome: &Outcome) {}
}
