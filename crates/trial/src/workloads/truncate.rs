//! A space is emptied, and dropped and made anew, while others write to it: what was there before is gone, what came after stays.

use crate::engines::Engines;
use crate::history::{History, Outcome, Record, Violation};
use crate::keyed::{Effect, Keyed};
use crate::linear::Action;
use crate::operation::{Operation, Space};
use crate::value::Value;
use crate::workload::{Client, Dice, Unique, View, Workload};
use tuple::SpaceId;

const SPACE: u32 = 3040;
const KEYS: u64 = 25;
const EMPTY: &str = "trial_empty";
const RENEW: &str = "trial_renew";
/// There is no such index, no such space: what a client hears between drop and create.
const MISSING: [u32; 2] = [35, 36];
const KEYED: Keyed = Keyed { space: Space::Id(SPACE), rest: |key, version| vec![(key + version).into()] };

/// See the top of the file.
pub(crate) struct Truncate;

/// Empties and renews; between two of these it writes, so that there is something to lose.
struct Sweeper {
    dice: Dice,
    unique: Unique,
}

struct Writer {
    dice: Dice,
    unique: Unique,
}

impl Workload for Truncate {
    fn name(&self) -> &'static str {
        "truncate"
    }

    fn about(&self) -> &'static str {
        "a space is truncated, dropped and made again under load"
    }

    fn setup(&self, engines: Engines) -> Vec<Operation> {
        // Each step may be the last one before a crash, so each looks at what is there.
        let engine = engines.of(SpaceId(SPACE));
        let renew = format!(
            "function()\n\
                         local space = box.space.trial_truncated\n\
                         if space ~= nil then space:drop() end\n\
                         space = box.schema.space.create('trial_truncated', {{ id = 3040, engine = '{engine}' }})\n\
                         space:create_index('primary', {{ parts = {{ {{ 1, 'unsigned' }} }} }})\n\
                         space:create_index('version', {{ parts = {{ {{ 2, 'unsigned' }} }} }})\n\
                         return true\n\
                     end"
        );
        vec![
            Operation::create_space(engines, SPACE, "trial_truncated"),
            Operation::define(EMPTY, "function() box.space.trial_truncated:truncate() return true end"),
            Operation::define(RENEW, &renew),
            Operation::call(RENEW, &[]),
        ]
    }

    fn client(&self, number: usize, seed: u64) -> Box<dyn Client> {
        let (dice, unique) = (Dice::new(seed, number), Unique::new(number));
        match number {
            0 => Box::new(Sweeper { dice, unique }),
            _ => Box::new(Writer { dice, unique }),
        }
    }

    fn check(&self, _seed: u64, history: &History, view: &mut View<'_>) -> Result<(), Violation> {
        let found = match view(Operation::select_all(KEYED.space, 0)) {
            Ok(Value::Array(rows)) => rows,
            Ok(other) => return Err(Violation::wrong(format!("a select was answered by {other}"))),
            // A crash between drop and create. The keys must then be explained as cleared.
            Err(refusal) if MISSING.contains(&refusal.code) => Vec::new(),
            Err(refusal) => return Err(Violation::lost(format!("the space cannot be read: {}", refusal.text))),
        };
        KEYED.check(history, &found, &effect)
    }
}

fn effect(record: &Record) -> Option<Effect> {
    let is_certain = record.outcome.is_done();
    let may_have_begun = match &record.operation {
        Operation::Call { name: EMPTY, .. } => is_certain || record.outcome.is_unknown(),
        // Not one transaction: refused, it may have dropped the space all the same.
        Operation::Call { name: RENEW, .. } => true,
        _ => false,
    };
    may_have_begun.then_some(Effect { key: None, action: Action::Clear, is_certain })
}

fn write(dice: &mut Dice, unique: &mut Unique) -> Operation {
    let key = dice.below(KEYS);
    match dice.below(6) {
        0 => KEYED.delete(key),
        1 => KEYED.insert(key, unique.next()),
        2 => KEYED.get(key),
        3 => KEYED.update(key, unique.next()),
        _ => KEYED.replace(key, unique.next()),
    }
}

impl Client for Sweeper {
    fn next(&mut self) -> Operation {
        match self.dice.below(60) {
            0 => Operation::call(RENEW, &[]),
            1 | 2 => Operation::call(EMPTY, &[]),
            _ => write(&mut self.dice, &mut self.unique),
        }
    }

    fn answered(&mut self, _outcome: &Outcome) {}
}

impl Client for Writer {
    fn next(&mut self) -> Operation {
        write(&mut self.dice, &mut self.unique)
    }

    fn answered(&mut self, _outcome: &Outcome) {}
}
