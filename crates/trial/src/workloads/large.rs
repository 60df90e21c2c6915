//! Large rows beside small ones in one space.

use crate::engines::Engines;
use crate::history::{History, Outcome, Violation};
use crate::keyed::Keyed;
use crate::operation::{Operation, Space};
use crate::value::Value;
use crate::workload::{Client, Dice, Unique, View, Workload, rows};

const SPACE: u32 = 3002;
const KEYS: u64 = 24;
/// One version of so many makes a large row.
const LARGE_EVERY: u64 = 16;
const LARGE_BYTES_MIN: u64 = 10_000;
const LARGE_BYTES_MAX: u64 = 600_000;
const SMALL_BYTES_MAX: u64 = 120;

const KEYED: Keyed = Keyed {
    space: Space::Id(SPACE),
    rest: |key, version| {
        // Sizes that look random and follow from the version alone.
        let mixed = version.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let bytes = match version % LARGE_EVERY {
            0 => LARGE_BYTES_MIN + mixed % (LARGE_BYTES_MAX - LARGE_BYTES_MIN),
            _ => mixed % SMALL_BYTES_MAX,
        };
        vec![Value::repeat(b'a' + ((key + version) % 26) as u8, bytes as u32)]
    },
};

/// See the top of the file.
pub(crate) struct Large;

struct Player {
    dice: Dice,
    unique: Unique,
}

impl Workload for Large {
    fn name(&self) -> &'static str {
        "large"
    }

    fn about(&self) -> &'static str {
        "rows of up to 600 KB beside rows of a few bytes are there whole or not at all"
    }

    fn setup(&self, engines: Engines) -> Vec<Operation> {
        vec![Operation::create_space(engines, SPACE, "trial_large")]
    }

    fn client(&self, number: usize, seed: u64) -> Box<dyn Client> {
        Box::new(Player { dice: Dice::new(seed, number), unique: Unique::new(number) })
    }

    fn check(&self, _seed: u64, history: &History, view: &mut View<'_>) -> Result<(), Violation> {
        let found = rows(view, Operation::select_all(KEYED.space, 0))?;
        KEYED.check(history, &found, &|_| None)
    }
}

impl Client for Player {
    fn next(&mut self) -> Operation {
        let key = self.dice.below(KEYS);
        match self.dice.below(12) {
            0 => KEYED.delete(key),
            1 => KEYED.insert(key, self.unique.next()),
            2 => KEYED.update(key, self.unique.next()),
            3 => KEYED.upsert(key, self.unique.next()),
            4..=6 => KEYED.replace(key, self.unique.next()),
            _ => KEYED.get(key),
        }
    }

    fn answered(&mut self, _outcome: &Outcome) {}
}
