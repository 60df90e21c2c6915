//! A few names that everybody wants: a unique secondary index gives each to one at a time.

use crate::engines::Engines;
use crate::history::{History, Outcome, Violation};
use crate::keyed::DUPLICATE;
use crate::linear::{Action, Single, first_impossible};
use crate::operation::{Operation, Order, Space};
use crate::value::Value;
use crate::workload::{Client, Dice, Unique, View, Workload, rows};
use std::collections::BTreeMap;

const SPACE: u32 = 3050;
const CLAIMS: Space = Space::Id(SPACE);
const NAMES: u64 = 6;
const BY_NAME: u32 = 1;

/// See the top of the file.
pub(crate) struct UniqueKeys;

struct Player {
    dice: Dice,
    unique: Unique,
    /// The claim that this client has, or may have.
    claim: Option<u64>,
    /// What was asked last.
    asked: Asked,
}

#[derive(Clone, Copy)]
enum Asked {
    Claim(u64),
    Release,
    Read,
}

impl Workload for UniqueKeys {
    fn name(&self) -> &'static str {
        "unique"
    }

    fn about(&self) -> &'static str {
        "a unique key has one owner at a time"
    }

    fn clients_min(&self) -> usize {
        3
    }

    fn setup(&self, engines: Engines) -> Vec<Operation> {
        let index = "box.space.trial_claims:create_index('name', { id = 1, parts = { { 2, 'unsigned' } } })";
        vec![Operation::create_space(engines, SPACE, "trial_claims"), Operation::eval(index)]
    }

    fn client(&self, number: usize, seed: u64) -> Box<dyn Client> {
        Box::new(Player { dice: Dice::new(seed, number), unique: Unique::new(number), claim: None, asked: Asked::Read })
    }

    fn check(&self, _seed: u64, history: &History, view: &mut View<'_>) -> Result<(), Violation> {
        let found = rows(view, Operation::select_all(CLAIMS, 0))?;
        let by_name = rows(view, Operation::select_all(CLAIMS, BY_NAME))?;
        let mut sorted: Vec<&Value> = by_name.iter().collect();
        sorted.sort_by_key(|row| row.uint_at(0));
        if !found.iter().eq(sorted) {
            return Err(Violation::wrong("the indexes show different claims"));
        }
        check_owners(history, &found)
    }
}

/// The history of each name: who had it is one number that is given and taken.
fn check_owners(history: &History, found: &[Value]) -> Result<(), Violation> {
    let mut names: BTreeMap<u64, u64> = BTreeMap::new();
    let mut by_name: BTreeMap<u64, Vec<Single>> = (0..NAMES).map(|name| (name, Vec::new())).collect();
    let mut now = history.crashes.values().copied().max().unwrap_or(0);
    for record in &history.records {
        now = now.max(record.answered_at);
        let single = |action| Single {
            action,
            invoked_at: record.invoked_at,
            decided_at: history.decided_at(record),
            is_answered: !record.outcome.is_unknown(),
        };
        match (&record.operation, &record.outcome) {
            (Operation::Insert { row, .. }, outcome) => {
                let [Value::Uint(id), Value::Uint(name)] = row[..] else { continue };
                names.insert(id, name);
                let action = match outcome {
                    Outcome::Refused(refusal) if refusal.code == DUPLICATE => Action::Occupied,
                    Outcome::Refused(_) => continue,
                    _ => Action::Insert(id),
                };
                by_name.entry(name).or_default().push(single(action));
            }
            (Operation::Delete { key, .. }, outcome) => {
                let Some(id) = key.first().and_then(Value::uint) else { continue };
                let Some(name) = names.get(&id) else { continue };
                let action = match outcome {
                    Outcome::Refused(_) => continue,
                    Outcome::Unknown => Action::Remove(id),
                    Outcome::Done(_) if history.engines.hides_deleted(CLAIMS) => Action::Without(id),
                    Outcome::Done(data) if data.array().is_empty() => Action::Differs(id),
                    Outcome::Done(_) => Action::Removed(Some(id)),
                };
                by_name.entry(*name).or_default().push(single(action));
            }
            (Operation::Select { key, .. }, Outcome::Done(data)) => {
                let Some(name) = key.first().and_then(Value::uint) else { continue };
                let owner = data.array().first().and_then(|row| row.uint_at(0));
                by_name.entry(name).or_default().push(single(Action::Read(owner)));
            }
            _ => {}
        }
    }
    let mut owners: BTreeMap<u64, u64> = BTreeMap::new();
    for row in found {
        let (id, name) = (row.uint_at(0).unwrap_or(0), row.uint_at(1).unwrap_or(u64::MAX));
        if names.get(&id) != Some(&name) {
            return Err(Violation::wrong(format!("{row} is there and nobody asked for it")));
        }
        if owners.insert(name, id).is_some() {
            return Err(Violation::wrong(format!("name {name} has two owners")));
        }
    }
    for (name, mut operations) in by_name {
        let owner = Action::Read(owners.get(&name).copied());
        operations.push(Single { action: owner, invoked_at: now + 1, decided_at: now + 2, is_answered: true });
        if let Some(at) = first_impossible(None, &operations) {
            let text = format!("name {name}: no order of claims and releases explains {:?}", operations[at]);
            return Err(match at + 1 == operations.len() {
                true => Violation::lost(text),
                false => Violation::order(text),
            });
        }
    }
    Ok(())
}

impl Client for Player {
    fn next(&mut self) -> Operation {
        let name = self.dice.below(NAMES);
        if self.dice.one_in(3) {
            self.asked = Asked::Read;
            let key = vec![name.into()];
            return Operation::Select { space: CLAIMS, index: BY_NAME, order: Order::Equal, key, limit: 1 };
        }
        match self.claim {
            Some(id) => {
                self.asked = Asked::Release;
                Operation::Delete { space: CLAIMS, index: 0, key: vec![id.into()] }
            }
            None => {
                let id = self.unique.next();
                self.asked = Asked::Claim(id);
                Operation::Insert { space: CLAIMS, row: vec![id.into(), name.into()] }
            }
        }
    }

    fn answered(&mut self, outcome: &Outcome) {
        match (self.asked, outcome) {
            (Asked::Claim(id), Outcome::Done(_) | Outcome::Unknown) => self.claim = Some(id),
            (Asked::Release, Outcome::Done(_)) => self.claim = None,
            _ => {}
        }
    }
}
