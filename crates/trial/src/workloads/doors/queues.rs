//! Numbers are put into lists and sets, moved between lists and taken, also by those who wait: each is taken once or is still there.

use super::{clear, clients_min, elements};
use crate::doors::{Ask, Doors, Tongue, list_key, set_key};
use crate::engines::Engines;
use crate::history::{History, Outcome, Violation};
use crate::operation::Operation;
use crate::value::Value;
use crate::workload::{Client, Dice, Unique, View, Workload};
use std::collections::{BTreeMap, BTreeSet};

/// The lists have the numbers from here on, of which other workloads have none.
const LISTS: u64 = 1 << 40;
const LIST_COUNT: u64 = 2;
const SET: u64 = 1;

/// See the top of the file.
pub(crate) struct Queues(pub(super) Doors);

struct Player {
    dice: Dice,
    unique: Unique,
    tongue: Tongue,
}

impl Workload for Queues {
    fn name(&self) -> &'static str {
        "queues"
    }

    fn about(&self) -> &'static str {
        "numbers are put into lists and sets, moved and taken: each is taken once, or is still there"
    }

    fn clients_min(&self) -> usize {
        clients_min(&self.0)
    }

    fn setup(&self, engines: Engines) -> Vec<Operation> {
        vec![clear(&self.0, engines)]
    }

    fn client(&self, number: usize, seed: u64) -> Box<dyn Client> {
        let (dice, unique, tongue) = (Dice::new(seed, number), Unique::new(number), self.0.tongue(number));
        Box::new(Player { dice, unique, tongue })
    }

    fn check(&self, _seed: u64, history: &History, view: &mut View<'_>) -> Result<(), Violation> {
        let mut there = Vec::new();
        for list in LISTS..LISTS + LIST_COUNT {
            for row in elements("redis_lists", &list_key(list), view)? {
                there.push(number_of(row.array().get(1).unwrap_or(&Value::Nil))?);
            }
        }
        check_kind(history, &there, false)?;
        let mut there = Vec::new();
        for row in elements("redis_sets", &set_key(SET), view)? {
            there.push(number_of(row.array().first().unwrap_or(&Value::Nil))?);
        }
        check_kind(history, &there, true)
    }
}

fn number_of(value: &Value) -> Result<u64, Violation> {
    let number = match value {
        Value::Str(text) => std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()),
        _ => None,
    };
    number.ok_or_else(|| Violation::wrong(format!("{value} is there, which nobody put there")))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Put,
    Maybe,
    Refused,
}

/// The numbers of the lists, or of the set.
fn check_kind(history: &History, there: &[u64], is_set: bool) -> Result<(), Violation> {
    let mut put: BTreeMap<u64, (Fate, u64)> = BTreeMap::new();
    let mut taken: BTreeMap<u64, u64> = BTreeMap::new();
    // Each that was not answered has taken one or none.
    let mut maybe_taken = 0;
    for record in &history.records {
        let Operation::Door(ask) = &record.operation else { continue };
        match ask {
            Ask::Put(_, number) | Ask::Push(_, number) if matches!(ask, Ask::Put(..)) == is_set => {
                let fate = match record.outcome {
                    Outcome::Done(_) => Fate::Put,
                    Outcome::Unknown => Fate::Maybe,
                    Outcome::Refused(_) => Fate::Refused,
                };
                put.insert(*number, (fate, record.invoked_at));
            }
            Ask::Pick(_) | Ask::Take(_) | Ask::TakeOrWait(_) if matches!(ask, Ask::Pick(_)) == is_set => {
                match (&record.outcome, record.outcome.first()) {
                    (Outcome::Unknown, _) => maybe_taken += 1,
                    (Outcome::Done(_), Some(value)) => {
                        let Some(number) = value.uint() else {
                            return Err(Violation::wrong(format!("{value} was taken, which nobody put there")));
                        };
                        if taken.insert(number, record.answered_at).is_some() {
                            return Err(Violation::order(format!("{number} was taken twice")));
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    let mut seen = BTreeSet::new();
    for number in there {
        if !seen.insert(*number) {
            return Err(Violation::wrong(format!("{number} is there twice")));
        }
        if taken.contains_key(number) {
            return Err(Violation::lost(format!("{number} was taken and is there")));
        }
    }
    for number in there.iter().chain(taken.keys()) {
        match put.get(number) {
            None | Some((Fate::Refused, _)) => {
                return Err(Violation::wrong(format!("{number} is or was there, and nobody put it there")));
            }
            Some((_, put_at)) if taken.get(number).is_some_and(|taken_at| taken_at < put_at) => {
                return Err(Violation::order(format!("{number} was taken before it was put there")));
            }
            _ => {}
        }
    }
    let is_gone = |number: &u64| !seen.contains(number) && !taken.contains_key(number);
    let gone: Vec<u64> = put
        .iter()
        .filter(|(number, (fate, _))| *fate == Fate::Put && is_gone(number))
        .map(|(number, _)| *number)
        .collect();
    if gone.len() > maybe_taken {
        let text =
            format!("{} numbers are gone, {maybe_taken} at most were taken without an answer: {gone:?}", gone.len());
        return Err(Violation::lost(text));
    }
    Ok(())
}

impl Client for Player {
    fn tongue(&self) -> Option<Tongue> {
        Some(self.tongue)
    }

    fn next(&mut self) -> Operation {
        let list = LISTS + self.dice.below(LIST_COUNT);
        Operation::Door(match self.dice.below(10) {
            0..3 => Ask::Push(list, self.unique.next()),
            3 => Ask::Take(list),
            4 | 5 => Ask::TakeOrWait(list),
            6 => Ask::Move(list, LISTS + self.dice.below(LIST_COUNT)),
            7 | 8 => Ask::Put(SET, self.unique.next()),
            _ => Ask::Pick(SET),
        })
    }

    fn answered(&mut self, _outcome: &Outcome) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Record;

    #[test]
    fn what_is_gone_or_taken_twice_is_seen() {
        let record = |ask, answer: Option<&[u64]>, times: (u64, u64)| Record {
            client: 0,
            incarnation: 0,
            operation: Operation::Door(ask),
            outcome: answer.map_or(Outcome::Unknown, |numbers| Outcome::Done(Value::numbers(numbers))),
            invoked_at: times.0,
            answered_at: times.1,
        };
        let check = |more: Vec<Record>, there: &[u64]| {
            let mut records =
                vec![record(Ask::Push(LISTS, 5), Some(&[]), (1, 2)), record(Ask::Push(LISTS, 6), Some(&[]), (3, 4))];
            records.extend(more);
            let history = History { records, ..History::default() };
            check_kind(&history, there, false).err().map(|violation| violation.kind.name())
        };
        let take = |answer| record(Ask::Take(LISTS), answer, (5, 6));
        assert_eq!(check(Vec::new(), &[5, 6]), None);
        assert_eq!(check(vec![take(Some(&[5]))], &[6]), None);
        assert_eq!(check(vec![take(Some(&[5]))], &[5, 6]), Some("lost"));
        assert_eq!(check(vec![take(Some(&[5])), take(Some(&[5]))], &[6]), Some("order"));
        assert_eq!(check(vec![take(None)], &[6]), None);
        assert_eq!(check(vec![take(Some(&[]))], &[6]), Some("lost"));
        assert_eq!(check(Vec::new(), &[5, 6, 6]), Some("wrong"));
        assert_eq!(check(Vec::new(), &[5, 6, 7]), Some("wrong"));
    }
}
