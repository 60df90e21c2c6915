//! A few values that everybody reads, writes, and compares and sets, through all doors: the history of each is linearizable. Redis' clients have some of
//! them in hashes and sorted sets.

use super::{clear, clients_min, elements, texts};
use crate::doors::{Ask, Door, Doors, Place, Spot, Tongue, number_of, value_of};
use crate::engines::Engines;
use crate::history::{History, Outcome, Record, Violation};
use crate::keyed::{Effect, Singles};
use crate::linear::Action;
use crate::operation::Operation;
use crate::value::Value;
use crate::workload::{Client, Dice, Unique, View, Workload};
use std::collections::BTreeMap;

/// In each place.
const ITEMS: u64 = 3;

/// See the top of the file.
pub(crate) struct Items(pub(super) Doors);

struct Player {
    dice: Dice,
    unique: Unique,
    tongue: Tongue,
    places: &'static [Place],
    /// The last value seen of each text: worth comparing with.
    seen: [u64; ITEMS as usize],
    asked: Option<u64>,
}

impl Workload for Items {
    fn name(&self) -> &'static str {
        "items"
    }

    fn about(&self) -> &'static str {
        "reads, writes and compare-and-set of a few items through doors are linearizable, crashes included"
    }

    fn clients_min(&self) -> usize {
        clients_min(&self.0)
    }

    fn setup(&self, engines: Engines) -> Vec<Operation> {
        vec![clear(&self.0, engines)]
    }

    fn client(&self, number: usize, seed: u64) -> Box<dyn Client> {
        let tongue = self.0.tongue(number);
        let places: &[Place] = match tongue.door {
            Door::Redis => &[Place::Text, Place::Text, Place::Hash, Place::SortedSet],
            _ => &[Place::Text],
        };
        let (dice, unique) = (Dice::new(seed, number), Unique::new(number));
        Box::new(Player { dice, unique, tongue, places, seen: [0; ITEMS as usize], asked: None })
    }

    fn check(&self, _seed: u64, history: &History, view: &mut View<'_>) -> Result<(), Violation> {
        let mut all = Singles::default();
        for (at, record) in history.records.iter().enumerate() {
            for effect in effects(record)? {
                all.add(effect, history, at);
            }
        }
        let mut there = BTreeMap::new();
        let mut add = |place, name: &[u8], value: Option<u64>| {
            let number = number_of(name).filter(|number| *number < ITEMS);
            let (Some(number), Some(value)) = (number, value) else {
                let name = String::from_utf8_lossy(name).into_owned();
                return Err(Violation::wrong(format!("{name} is there as nobody wrote it")));
            };
            there.insert(key_of(Spot { place, number }), value);
            Ok(())
        };
        for (key, text) in texts(&self.0, "item", view)? {
            add(Place::Text, key.as_bytes(), value_of(&text))?;
        }
        if self.0.all().contains(&Door::Redis) {
            for (place, space) in [(Place::Hash, "redis_hashes"), (Place::SortedSet, "redis_sorted_sets")] {
                for row in elements(space, place.key(), view)? {
                    let [Value::Str(name), value] = row.array() else {
                        return Err(Violation::wrong(format!("{row} is no element")));
                    };
                    let value = match value {
                        Value::Str(text) => value_of(text),
                        Value::Double(score) => Some(*score as u64),
                        number => number.uint(),
                    };
                    add(place, name, value)?;
                }
            }
        }
        all.check(&there, history, &|key| format!("item {} of {:?}", key % ITEMS, place_of(key)))
    }
}

/// One number for places and items.
fn key_of(spot: Spot) -> u64 {
    spot.place as u64 * ITEMS + spot.number
}

fn place_of(key: u64) -> Place {
    [Place::Text, Place::Hash, Place::SortedSet][(key / ITEMS) as usize % 3]
}

/// What a record says of items. Errors: an answer shows what nobody wrote.
fn effects(record: &Record) -> Result<Vec<Effect>, Violation> {
    let Operation::Door(ask) = &record.operation else { return Ok(Vec::new()) };
    let answer = match &record.outcome {
        Outcome::Done(answer) => Some(answer.array()),
        Outcome::Refused(_) => return Ok(Vec::new()),
        Outcome::Unknown => None,
    };
    let is_certain = answer.is_some();
    let number = |value: &Value| {
        let wrong = || Violation::wrong(format!("{ask:?} was answered by {value}, which nobody wrote"));
        value.uint().ok_or_else(wrong)
    };
    let flag = || match answer {
        Some([Value::Bool(flag)]) => Ok(Some(*flag)),
        Some(other) => Err(Violation::wrong(format!("{ask:?} was answered by {other:?}"))),
        None => Ok(None),
    };
    let one = |spot: &Spot, action| Ok(vec![Effect { key: Some(key_of(*spot)), action, is_certain }]);
    match ask {
        Ask::Get(spot) => match answer {
            Some([]) => one(spot, Action::Read(None)),
            Some([value]) => one(spot, Action::Read(Some(number(value)?))),
            _ => Ok(Vec::new()),
        },
        Ask::All(place, numbers) => {
            let Some(answer) = answer else { return Ok(Vec::new()) };
            let mut found = BTreeMap::new();
            for pair in answer {
                let [at, value] = pair.array() else { return Err(Violation::wrong(format!("{pair} is no pair"))) };
                found.insert(number(at)?, number(value)?);
            }
            let effect = |at: &u64| Effect {
                key: Some(key_of(Spot { place: *place, number: *at })),
                action: Action::Read(found.get(at).copied()),
                is_certain,
            };
            Ok(numbers.iter().map(effect).collect())
        }
        Ask::Set(spot, value) => one(spot, Action::Write(*value)),
        Ask::SetAll(pairs) => {
            let effect = |(number, value): &(u64, u64)| Effect {
                key: Some(key_of(Spot::text(*number))),
                action: Action::Write(*value),
                is_certain,
            };
            Ok(pairs.iter().map(effect).collect())
        }
        Ask::Add(spot, value) => match flag()? {
            Some(false) => one(spot, Action::Occupied),
            _ => one(spot, Action::Insert(*value)),
        },
        Ask::Change(spot, value) => match flag()? {
            Some(false) => one(spot, Action::Read(None)),
            _ => one(spot, Action::Change(*value)),
        },
        Ask::Remove(spot) => match flag()? {
            Some(false) => one(spot, Action::Read(None)),
            // It was there, and which one it was is not told.
            Some(true) => one(spot, Action::Emptied),
            None => one(spot, Action::Clear),
        },
        Ask::RemoveAll(place) => {
            let all = (0..ITEMS).map(|number| Spot { place: *place, number });
            Ok(all.map(|spot| Effect { key: Some(key_of(spot)), action: Action::Clear, is_certain }).collect())
        }
        Ask::Swap(at, old, new) => match answer {
            Some([Value::Bool(false)]) => one(&Spot::text(*at), Action::Differs(*old)),
            Some([Value::Bool(true)]) | None => one(&Spot::text(*at), Action::Swap(*old, *new)),
            // Somebody else was faster.
            Some(_) => Ok(Vec::new()),
        },
        _ => Ok(Vec::new()),
    }
}

impl Client for Player {
    fn tongue(&self) -> Option<Tongue> {
        Some(self.tongue)
    }

    fn next(&mut self) -> Operation {
        let place = self.places[self.dice.below(self.places.len() as u64) as usize];
        let number = self.dice.below(ITEMS);
        let (spot, value) = (Spot { place, number }, self.unique.next());
        self.asked = (place == Place::Text).then_some(number);
        let can_compare = self.tongue.door.can_compare();
        let has_all = match self.tongue.door {
            Door::Redis | Door::Postgres | Door::Mysql => true,
            Door::Memcached => self.tongue.dialect.is_multiple_of(3),
            Door::Tyrant => self.tongue.dialect % 3 != 2,
        };
        Operation::Door(match self.dice.below(12) {
            0 | 1 => Ask::Set(spot, value),
            2 => Ask::Add(spot, value),
            3 if can_compare && place != Place::Hash => Ask::Change(spot, value),
            4 if self.dice.one_in(2) => Ask::Remove(spot),
            5 | 6 if can_compare && place == Place::Text => Ask::Swap(number, self.seen[number as usize], value),
            7 if has_all => {
                self.asked = None;
                Ask::All(place, (0..ITEMS).collect())
            }
            8 if (self.tongue.door == Door::Redis || self.tongue.door.is_sql()) && place == Place::Text => {
                Ask::SetAll((0..ITEMS).map(|number| (number, self.unique.next())).collect())
            }
            9 if place != Place::Text && self.dice.one_in(4) => Ask::RemoveAll(place),
            _ => Ask::Get(spot),
        })
    }

    fn answered(&mut self, outcome: &Outcome) {
        if let (Some(number), Some(value)) = (self.asked, outcome.first().and_then(Value::uint)) {
            self.seen[number as usize] = value;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use crate::doors::text_of;

    fn record(times: (u64, u64), ask: Ask, answer: Option<&[Value]>) -> Record {
        let outcome = answer.map_or(Outcome::Unknown, |answer| Outcome::Done(Value::Array(answer.to_vec())));
        let (invoked_at, answered_at) = times;
        Record { client: 0, incarnation: 0, operation: Operation::Door(ask), outcome, invoked_at, answered_at }
    }

    fn check(records: Vec<Record>, there: &[(&str, u64)]) -> Option<&'static str> {
        let history = History { records, ..History::default() };
        let row = |(key, value): &(&str, u64)| Value::Array(vec![(*key).into(), text_of(*value).as_str().into()]);
        let found = Value::Array(vec![Value::Array(there.iter().map(row).collect())]);
        let mut view = |_: Operation| Ok(found.clone());
        let outcome = Items(Doors::new(vec![Door::Memcached])).check(0, &history, &mut view);
        outcome.err().map(|violation| violation.kind.name())
    }

    #[test]
    fn what_is_lost_old_or_half_is_seen() {
        let item = Spot::text(1);
        let set = |value| record((1, 2), Ask::Set(item, value), Some(&[]));
        assert_eq!(check(vec![set(5)], &[("item1", 5)]), None);
        assert_eq!(check(vec![set(5)], &[]), Some("lost"));
        let stale = record((3, 4), Ask::Get(item), Some(&[]));
        assert_eq!(check(vec![set(5), stale], &[("item1", 5)]), Some("order"));
        let torn = record((3, 4), Ask::Get(item), Some(&["5.".into()]));
        assert_eq!(check(vec![set(5), torn], &[("item1", 5)]), Some("wrong"));
        let swap = |old, flag| record((3, 4), Ask::Swap(1, old, 7), Some(&[Value::Bool(flag)]));
        assert_eq!(check(vec![set(5), swap(5, true)], &[("item1", 7)]), None);
        assert_eq!(check(vec![set(5), swap(6, true)], &[("item1", 7)]), Some("order"));
        let unknown = record((3, 4), Ask::Remove(item), None);
        assert_eq!(check(vec![set(5), unknown.clone()], &[("item1", 5)]), None);
        assert_eq!(check(vec![set(5), unknown], &[]), None);
        let removed = |flag| record((3, 4), Ask::Remove(item), Some(&[Value::Bool(flag)]));
        assert_eq!(check(vec![set(5), removed(true)], &[]), None);
        assert_eq!(check(vec![set(5), removed(false)], &[("item1", 5)]), Some("order"));
        assert_eq!(check(vec![removed(true)], &[]), Some("order"));
    }
}
