//! Numbers that everybody adds to: each addition has its own place between 0 and the sum.

use super::{clear, clients_min, texts};
use crate::doors::{Ask, Door, Doors, Tongue, counter_key};
use crate::engines::Engines;
use crate::history::{History, Outcome, Violation};
use crate::operation::Operation;
use crate::workload::{Client, Dice, View, Workload};
use std::collections::BTreeMap;

const COUNTERS: u64 = 4;
const BY_MAX: u64 = 5;

/// See the top of the file.
pub(crate) struct Counters(pub(super) Doors);

struct Player {
    dice: Dice,
    tongue: Tongue,
}

/// An addition that was answered: it took the number from `from` to `to`.
struct Addition {
    from: u64,
    to: u64,
    invoked_at: u64,
    answered_at: u64,
}

impl Workload for Counters {
    fn name(&self) -> &'static str {
        "counters"
    }

    fn about(&self) -> &'static str {
        "numbers are added to through doors: no addition is lost, done twice or done in part"
    }

    fn clients_min(&self) -> usize {
        clients_min(&self.0)
    }

    fn setup(&self, engines: Engines) -> Vec<Operation> {
        vec![clear(&self.0, engines)]
    }

    fn client(&self, number: usize, seed: u64) -> Box<dyn Client> {
        Box::new(Player { dice: Dice::new(seed, number), tongue: self.0.tongue(number) })
    }

    fn check(&self, _seed: u64, history: &History, view: &mut View<'_>) -> Result<(), Violation> {
        let is_binary = self.0.only() == Some(Door::Tyrant);
        let mut there: BTreeMap<String, u64> = BTreeMap::new();
        for (key, text) in texts(&self.0, "counter", view)? {
            let number = match is_binary {
                true => <[u8; 4]>::try_from(&text[..]).ok().map(|bytes| u64::from(u32::from_le_bytes(bytes))),
                // memcached leaves what a number has become shorter by as spaces.
                false => std::str::from_utf8(&text).ok().and_then(|text| text.trim_end().parse().ok()),
            };
            let wrong = || Violation::wrong(format!("{key} is {}", String::from_utf8_lossy(&text)));
            there.insert(key.clone(), number.ok_or_else(wrong)?);
        }
        for counter in 0..COUNTERS {
            let key = counter_key(counter);
            check_counter(&key, counter, history, there.get(&key).copied().unwrap_or(0))?;
        }
        Ok(())
    }
}

fn check_counter(key: &str, counter: u64, history: &History, sum: u64) -> Result<(), Violation> {
    let mut additions = Vec::new();
    let mut maybe = 0;
    for record in &history.records {
        let Operation::Door(Ask::Increment(of, by)) = &record.operation else { continue };
        if *of != counter {
            continue;
        }
        match (&record.outcome, record.outcome.first().and_then(|value| value.uint())) {
            (Outcome::Unknown, _) => maybe += by,
            (Outcome::Done(_), Some(to)) if to >= *by => {
                let (invoked_at, answered_at) = (record.invoked_at, record.answered_at);
                additions.push(Addition { from: to - by, to, invoked_at, answered_at });
            }
            (Outcome::Done(answer), _) => {
                return Err(Violation::wrong(format!("{key}: an addition of {by} was answered {answer}")));
            }
            (Outcome::Refused(_), _) => {}
        }
    }
    additions.sort_by_key(|one| one.to);
    for pair in additions.windows(2) {
        if pair[1].from < pair[0].to {
            let text = format!(
                "{key}: one addition took it from {} to {}, another one from {} to {}",
                pair[0].from, pair[0].to, pair[1].from, pair[1].to
            );
            return Err(Violation::order(text));
        }
    }
    let mut latest = u64::MAX;
    for one in additions.iter().rev() {
        // Nobody with a greater number was answered before this one was asked.
        if latest < one.invoked_at {
            return Err(Violation::order(format!("{key}: {} came after a greater number", one.to)));
        }
        latest = latest.min(one.answered_at);
    }
    let certain: u64 = additions.iter().map(|one| one.to - one.from).sum();
    let greatest = additions.last().map_or(0, |one| one.to);
    if sum < greatest || sum < certain {
        return Err(Violation::lost(format!("{key}: it is {sum}, {certain} were added, an answer was {greatest}")));
    }
    if sum > certain + maybe {
        return Err(Violation::wrong(format!("{key}: it is {sum}, {certain} were added and perhaps {maybe}")));
    }
    Ok(())
}

impl Client for Player {
    fn tongue(&self) -> Option<Tongue> {
        Some(self.tongue)
    }

    fn next(&mut self) -> Operation {
        Operation::Door(Ask::Increment(self.dice.below(COUNTERS), self.dice.between(1, BY_MAX)))
    }

    fn answered(&mut self, _outcome: &Outcome) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Record;
    use crate::value::Value;

    #[test]
    fn additions_that_are_lost_or_done_twice_are_seen() {
        let add = |by, to: Option<u64>, times: (u64, u64)| Record {
            client: 0,
            incarnation: 0,
            operation: Operation::Door(Ask::Increment(0, by)),
            outcome: to.map_or(Outcome::Unknown, |to| Outcome::Done(Value::numbers(&[to]))),
            invoked_at: times.0,
            answered_at: times.1,
        };
        let check = |records: Vec<Record>, sum| {
            let history = History { records, ..History::default() };
            check_counter("counter0", 0, &history, sum).err().map(|violation| violation.kind.name())
        };
        let good = || vec![add(2, Some(2), (1, 2)), add(3, Some(5), (1, 4)), add(4, None, (5, 6))];
        assert_eq!(check(good(), 5), None);
        assert_eq!(check(good(), 9), None);
        assert_eq!(check(good(), 4), Some("lost"));
        assert_eq!(check(good(), 10), Some("wrong"));
        assert_eq!(check(vec![add(2, Some(2), (1, 2)), add(2, Some(3), (1, 2))], 4), Some("order"));
        assert_eq!(check(vec![add(2, Some(4), (1, 2)), add(2, Some(2), (3, 4))], 4), Some("order"));
        assert_eq!(check(vec![add(2, Some(1), (1, 2))], 4), Some("wrong"));
    }
}
