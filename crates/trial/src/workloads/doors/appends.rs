//! Numbers are put behind others, in texts and in lists, and read, some in one transaction: some order explains all reads.

use super::{clear, clients_min, elements, texts};
use crate::cycles::{Fate, Phenomenon, Promise, Step, Transaction, anomalies};
use crate::doors::{Ask, Door, Doors, Tongue, list_key, numbers_of};
use crate::engines::Engines;
use crate::history::{History, Outcome, Violation};
use crate::operation::Operation;
use crate::value::Value;
use crate::workload::{Client, Dice, Unique, View, Workload};
use std::collections::BTreeSet;

/// Keys that are in use at a time. With an odd number they are lists where there are such.
const KEYS: u64 = 4;
/// Numbers under a key that is left for a new one.
const FULL: usize = 40;
/// Steps of one transaction.
const STEPS: u64 = 4;

/// See the top of the file.
pub(crate) struct Appends(pub(super) Doors);

struct Player {
    dice: Dice,
    unique: Unique,
    tongue: Tongue,
    has_lists: bool,
    /// The first of the keys in use.
    base: u64,
}

impl Workload for Appends {
    fn name(&self) -> &'static str {
        "appends"
    }

    fn about(&self) -> &'static str {
        "values and lists grow through doors, in transactions where there are some; some order explains all reads"
    }

    fn clients_min(&self) -> usize {
        clients_min(&self.0)
    }

    fn setup(&self, engines: Engines) -> Vec<Operation> {
        vec![clear(&self.0, engines)]
    }

    fn client(&self, number: usize, seed: u64) -> Box<dyn Client> {
        let has_lists = self.0.only() == Some(Door::Redis);
        let (dice, unique, tongue) = (Dice::new(seed, number), Unique::new(number), self.0.tongue(number));
        Box::new(Player { dice, unique, tongue, has_lists, base: 0 })
    }

    fn check(&self, _seed: u64, history: &History, view: &mut View<'_>) -> Result<(), Violation> {
        let mut transactions = Vec::with_capacity(history.records.len() + 1);
        // A command inside of a transaction of Redis' may be refused, for want of memory for instance, and the others stand.
        let refuses_single = history.records.iter().any(|record| match (&record.operation, &record.outcome) {
            (Operation::Door(Ask::Together(_)), Outcome::Done(answer)) => answer.array().contains(&Value::Nil),
            _ => false,
        });
        for record in &history.records {
            let Operation::Door(ask) = &record.operation else { continue };
            let (fate, answer) = match &record.outcome {
                Outcome::Done(answer) => (Fate::Committed, Some(answer.array())),
                Outcome::Refused(_) => (Fate::Aborted, None),
                Outcome::Unknown => (Fate::Unknown, None),
            };
            let (invoked_at, answered_at) = (record.invoked_at, history.decided_at(record));
            let mut steps = Vec::new();
            match ask {
                Ask::Together(asks) if fate == Fate::Unknown && refuses_single => {
                    // Which of them were refused nobody was told.
                    let alone = asks.iter().filter_map(|ask| step(ask, None));
                    let alone = alone.map(|step| Transaction { steps: vec![step], fate, invoked_at, answered_at });
                    transactions.extend(alone);
                    continue;
                }
                Ask::Together(asks) => {
                    for (at, ask) in asks.iter().enumerate() {
                        if answer.and_then(|answers| answers.get(at)) == Some(&Value::Nil) {
                            continue;
                        }
                        steps.extend(step(ask, answer.and_then(|answers| answers.get(at)).map(Value::array)));
                    }
                }
                ask => steps.extend(step(ask, answer)),
            }
            transactions.push(Transaction { steps, fate, invoked_at, answered_at });
        }
        let last = transactions.len();
        transactions.push(self.last_look(&transactions, view)?);
        let Some(anomaly) = anomalies(&transactions, Promise::Strict).into_iter().next() else { return Ok(()) };
        let text = format!("T{last} is what is there now; {anomaly}");
        Err(match anomaly.phenomenon {
            Phenomenon::Unwritten | Phenomenon::Duplicate | Phenomenon::G1a => Violation::wrong(text),
            _ if anomaly.transactions.contains(&last) => Violation::lost(text),
            _ => Violation::order(text),
        })
    }
}

/// What one request says.
fn step(ask: &Ask, answer: Option<&[Value]>) -> Option<Step> {
    match ask {
        Ask::Append(key, value) | Ask::Push(key, value) => Some(Step::Append { key: *key, value: *value }),
        Ask::Numbers(key) | Ask::List(key) => {
            let values = answer?.first().map_or(&[][..], Value::array);
            // What is no number was written by nobody.
            let values = values.iter().map(|value| value.uint().unwrap_or(u64::MAX)).collect();
            Some(Step::List { key: *key, values, by_range: false })
        }
        _ => None,
    }
}

impl Appends {
    /// What is there now, as a transaction that reads all keys that anybody asked for.
    fn last_look(&self, transactions: &[Transaction], view: &mut View<'_>) -> Result<Transaction, Violation> {
        let keys: BTreeSet<u64> = transactions
            .iter()
            .flat_map(|one| &one.steps)
            .map(|step| match step {
                Step::Append { key, .. } | Step::List { key, .. } => *key,
                Step::Write { key, .. } | Step::Register { key, .. } => *key,
            })
            .collect();
        let there = texts(&self.0, "numbers", view)?;
        let mut steps = Vec::new();
        for key in keys {
            let values = if is_list(self.0.only() == Some(Door::Redis), key) {
                let found = elements("redis_lists", &list_key(key), view)?;
                let number = |row: &Value| match row.array().get(1) {
                    Some(Value::Str(text)) => std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()),
                    _ => None,
                };
                found.iter().map(|row| number(row).unwrap_or(u64::MAX)).collect()
            } else {
                let name = crate::doors::numbers_key(key);
                let text = there.iter().find(|(there, _)| *there == name).map_or(&[][..], |(_, text)| text);
                let wrong = || Violation::wrong(format!("{name} is {}", String::from_utf8_lossy(text)));
                numbers_of(text).ok_or_else(wrong)?
            };
            steps.push(Step::List { key, values, by_range: false });
        }
        Ok(Transaction { steps, fate: Fate::Committed, invoked_at: u64::MAX - 1, answered_at: u64::MAX })
    }
}

fn is_list(has_lists: bool, key: u64) -> bool {
    has_lists && key % 2 == 1
}

impl Player {
    fn one(&mut self) -> Ask {
        let key = self.base + self.dice.below(KEYS);
        match (is_list(self.has_lists, key), self.dice.one_in(2)) {
            (true, true) => Ask::List(key),
            (true, false) => Ask::Push(key, self.unique.next()),
            (false, true) => Ask::Numbers(key),
            (false, false) => Ask::Append(key, self.unique.next()),
        }
    }
}

impl Client for Player {
    fn tongue(&self) -> Option<Tongue> {
        Some(self.tongue)
    }

    fn next(&mut self) -> Operation {
        let has_transactions = self.tongue.door == Door::Redis || self.tongue.door.is_sql();
        if has_transactions && self.dice.one_in(2) {
            let count = 1 + self.dice.below(STEPS);
            return Operation::Door(Ask::Together((0..count).map(|_| self.one()).collect()));
        }
        Operation::Door(self.one())
    }

    fn answered(&mut self, outcome: &Outcome) {
        let Outcome::Done(answer) = outcome else { return };
        // Of a transaction the answers are one deeper.
        let is_full = |values: &Value| {
            values.array().len() >= FULL || values.array().iter().any(|inner| inner.array().len() >= FULL)
        };
        if answer.array().iter().any(is_full) {
            self.base += KEYS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Record;

    #[test]
    fn a_transaction_nobody_heard_of_is_there_as_a_whole_unless_its_commands_may_be_refused() {
        let together = |asks: Vec<Ask>, outcome, times: (u64, u64)| Record {
            client: 0,
            incarnation: 0,
            operation: Operation::Door(Ask::Together(asks)),
            outcome,
            invoked_at: times.0,
            answered_at: times.1,
        };
        let check = |is_refusing: bool| {
            let refused =
                Outcome::Done(Value::Array(vec![if is_refusing { Value::Nil } else { Value::Array(Vec::new()) }]));
            let lists = vec![Ask::Append(4, 1)];
            let both = vec![Ask::Append(0, 2), Ask::Append(2, 3)];
            let records = vec![together(lists, refused, (1, 2)), together(both, Outcome::Unknown, (3, 4))];
            let history = History { records, ..History::default() };
            let row = |name: &str, text: &str| Value::Array(vec![name.into(), text.into()]);
            let mut rows = vec![row("numbers2", "3,")];
            rows.extend((!is_refusing).then(|| row("numbers4", "1,")));
            let mut view = |_: Operation| Ok(Value::Array(vec![Value::Array(rows.clone())]));
            let outcome = Appends(Doors::new(vec![Door::Redis])).check(0, &history, &mut view);
            outcome.err().map(|violation| violation.kind.name())
        };
        assert_eq!(check(true), None);
        assert_eq!(check(false), Some("lost"));
    }

    #[test]
    fn a_number_that_is_gone_or_there_twice_is_seen() {
        let append = |value, times: (u64, u64)| Record {
            client: 0,
            incarnation: 0,
            operation: Operation::Door(Ask::Append(0, value)),
            outcome: Outcome::Done(Value::Array(Vec::new())),
            invoked_at: times.0,
            answered_at: times.1,
        };
        let check = |there: &str| {
            let history = History { records: vec![append(1, (1, 2)), append(2, (3, 4))], ..History::default() };
            let row = Value::Array(vec!["numbers0".into(), there.into()]);
            let mut view = |_: Operation| Ok(Value::Array(vec![Value::Array(vec![row.clone()])]));
            let outcome = Appends(Doors::new(vec![Door::Tyrant])).check(0, &history, &mut view);
            outcome.err().map(|violation| violation.kind.name())
        };
        assert_eq!(check("1,2,"), None);
        assert_eq!(check("1,"), Some("lost"));
        assert!(check("2,1,").is_some());
        assert_eq!(check("1,2,2,"), Some("wrong"));
        assert_eq!(check("1,2"), Some("wrong"));
    }
}
