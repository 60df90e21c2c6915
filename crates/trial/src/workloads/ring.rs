//! A ring of rows, each naming the next one: a procedure turns a piece of it round, and it must stay one cycle through all rows.

use crate::engines::Engines;
use crate::history::{History, Outcome, Violation};
use crate::operation::{Operation, Space};
use crate::value::Value;
use crate::workload::{Client, Dice, View, Workload, rows};
use std::collections::BTreeMap;

const SPACE: u32 = 3020;
const RING: Space = Space::Id(SPACE);
const ROWS: u64 = 30;
const SWAP: &str = "trial_ring_swap";
const WALK: &str = "trial_ring_walk";

/// See the top of the file.
pub(crate) struct Ring;

struct Player {
    dice: Dice,
}

impl Workload for Ring {
    fn name(&self) -> &'static str {
        "ring"
    }

    fn about(&self) -> &'static str {
        "successors are swapped; the rows stay one cycle"
    }

    fn setup(&self, engines: Engines) -> Vec<Operation> {
        // a -> b -> c -> d becomes a -> c -> b -> d. Each row counts how often it was changed.
        let swap = "function(first)\n\
                        local ring = box.space.trial_ring\n\
                        box.begin()\n\
                        local a = ring:get(first)\n\
                        local b = ring:get(a[2])\n\
                        local c = ring:get(b[2])\n\
                        local d = c[2]\n\
                        local one = ring:update(a[1], { { '=', 2, c[1] }, { '+', 3, 1 } })\n\
                        local two = ring:update(c[1], { { '=', 2, b[1] }, { '+', 3, 1 } })\n\
                        local three = ring:update(b[1], { { '=', 2, d }, { '+', 3, 1 } })\n\
                        box.commit()\n\
                        return one, two, three\n\
                    end";
        let walk = "function(limit)\n\
                        local ring = box.space.trial_ring\n\
                        local steps, here = 0, 0\n\
                        box.begin()\n\
                        repeat\n\
                            here = ring:get(here)[2]\n\
                            steps = steps + 1\n\
                        until here == 0 or steps > limit\n\
                        box.commit()\n\
                        return steps\n\
                    end";
        let fill = "local rows = ...\n\
                    for id = 0, rows - 1 do box.space.trial_ring:insert({ id, (id + 1) % rows, 0 }) end";
        vec![
            Operation::create_space(engines, SPACE, "trial_ring"),
            Operation::define(SWAP, swap),
            Operation::define(WALK, walk),
            Operation::Eval { source: fill, arguments: vec![ROWS.into()] },
        ]
    }

    fn client(&self, number: usize, seed: u64) -> Box<dyn Client> {
        Box::new(Player { dice: Dice::new(seed, number) })
    }

    fn check(&self, _seed: u64, history: &History, view: &mut View<'_>) -> Result<(), Violation> {
        let mut seen: BTreeMap<u64, u64> = BTreeMap::new();
        let (mut acknowledged, mut unknown) = (0, 0);
        for record in &history.records {
            match (&record.operation, &record.outcome) {
                (Operation::Call { name: SWAP, .. }, Outcome::Unknown) => unknown += 1,
                (Operation::Call { name: SWAP, .. }, Outcome::Done(data)) => {
                    acknowledged += 1;
                    note(&mut seen, data.array());
                }
                (Operation::Call { name: WALK, .. }, Outcome::Done(data)) if data.uint_at(0) != Some(ROWS) => {
                    return Err(Violation::order(format!("a walk round the ring took {data} steps instead of {ROWS}")));
                }
                (Operation::Select { .. }, Outcome::Done(data)) if data.array().len() > 1 => {
                    check_cycle(data.array())?;
                    note(&mut seen, data.array());
                }
                _ => {}
            }
        }
        let found = rows(view, Operation::select_all(RING, 0))?;
        check_cycle(&found)?;
        check_counts(&found, &seen, acknowledged, unknown)
    }
}

/// Remembers how often each row had been changed when an answer showed it.
fn note(seen: &mut BTreeMap<u64, u64>, rows: &[Value]) {
    for row in rows {
        if let (Some(id), Some(changes)) = (row.uint_at(0), row.uint_at(2)) {
            let most = seen.entry(id).or_default();
            *most = changes.max(*most);
        }
    }
}

/// From row 0 all rows are met once before 0 comes again.
fn check_cycle(rows: &[Value]) -> Result<(), Violation> {
    let next: BTreeMap<u64, u64> = rows.iter().filter_map(|row| Some((row.uint_at(0)?, row.uint_at(1)?))).collect();
    let mut here = 0;
    for step in 1..=ROWS {
        here = *next.get(&here).ok_or_else(|| Violation::lost(format!("row {here} of the ring is gone")))?;
        if here == 0 && step < ROWS {
            return Err(Violation::order(format!("the ring closes after {step} rows of {ROWS}")));
        }
    }
    match here {
        0 if rows.len() as u64 == ROWS => Ok(()),
        _ => Err(Violation::order(format!("the ring of {} rows does not close", rows.len()))),
    }
}

/// Each acknowledged swap changed three rows, one without an answer three or none, and no row goes back.
fn check_counts(found: &[Value], seen: &BTreeMap<u64, u64>, acknowledged: u64, unknown: u64) -> Result<(), Violation> {
    let changes: u64 = found.iter().filter_map(|row| row.uint_at(2)).sum();
    for row in found {
        let id = row.uint_at(0).unwrap_or(u64::MAX);
        let most = seen.get(&id).copied().unwrap_or(0);
        if row.uint_at(2).unwrap_or(0) < most {
            return Err(Violation::lost(format!("{row} was shown with {most} changes")));
        }
    }
    if changes < 3 * acknowledged {
        return Err(Violation::lost(format!("{acknowledged} swaps were acknowledged, {changes} changes are there")));
    }
    if changes > 3 * (acknowledged + unknown) || !changes.is_multiple_of(3) {
        let text = format!("{changes} changes by {acknowledged} acknowledged swaps and {unknown} without an answer");
        return Err(Violation::wrong(text));
    }
    Ok(())
}

impl Client for Player {
    fn next(&mut self) -> Operation {
        match self.dice.below(6) {
            0 => Operation::call(WALK, &[ROWS * 2]),
            1 => Operation::select_all(RING, 0),
            2 => Operation::get(RING, self.dice.below(ROWS)),
            _ => Operation::call(SWAP, &[self.dice.below(ROWS)]),
        }
    }

    fn answered(&mut self, _outcome: &Outcome) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring() -> Vec<Value> {
        (0..ROWS).map(|id| Value::numbers(&[id, (id + 1) % ROWS, 1])).collect()
    }

    #[test]
    fn a_broken_ring_is_seen() {
        assert!(check_cycle(&ring()).is_ok());
        let mut broken = ring();
        broken[4] = Value::numbers(&[4, 0, 1]);
        assert!(check_cycle(&broken).is_err(), "two cycles, or a tail");
        broken[4] = Value::numbers(&[4, 4, 1]);
        assert!(check_cycle(&broken).is_err(), "a row that leads to itself");
        assert!(check_cycle(&ring()[..ROWS as usize - 1]).is_err(), "a row that is gone");
    }

    #[test]
    fn a_lost_swap_is_seen() {
        let seen = BTreeMap::from([(0, 1)]);
        assert!(check_counts(&ring(), &seen, ROWS / 3, 0).is_ok());
        assert!(check_counts(&ring(), &seen, ROWS / 3 - 1, 1).is_ok());
        assert!(check_counts(&ring(), &seen, ROWS / 3 + 1, 0).is_err(), "one is gone");
        assert!(check_counts(&ring(), &seen, ROWS / 3 - 2, 1).is_err(), "one too many");
        assert!(check_counts(&ring(), &BTreeMap::from([(0, 2)]), ROWS / 3, 0).is_err(), "a row went back");
        let mut half = ring();
        half[0] = Value::numbers(&[0, 1, 2]);
        assert!(check_counts(&half, &seen, ROWS / 3, 1).is_err(), "a third of a swap");
    }
}
