//! The inventory on servers of other protocols, in the way that fits each best: scripts over hashes for Redis, stored procedures with row locks for
//! MariaDB and PostgreSQL. One round trip for each operation, as with Lua procedures.

mod mariadb;
mod postgres;
pub(crate) mod redis;
mod statements;

use crate::generator::{Group, Item, Operation, Place, Work};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub(crate) use mariadb::{MariadbShop, connect as connect_mariadb};
pub(crate) use postgres::{PostgresShop, connect as connect_postgres};
pub(crate) use redis::RedisShop;
pub(crate) use statements::{MysqlStatements, PostgresStatements};

/// Pause of a capture that found too little, and how long it hopes.
const RETRY_PAUSE: Duration = Duration::from_millis(5);
const STARVED: Duration = Duration::from_secs(30);

/// A client of an inventory.
pub(crate) trait Shop: Send {
    /// Makes tables and procedures, and puts in the stock.
    fn prepare(&mut self, items: &[Item]) -> Result<(), String>;
    /// Takes units; warehouses and what came from each. `None`: there are too few, and nothing is taken.
    fn capture(&mut self, group: Group, count: u64) -> Result<Option<Vec<(u64, u64)>>, String>;
    /// Gives units back.
    fn release(&mut self, place: Place, count: u64) -> Result<(), String>;
    /// All rows and their units.
    fn stock(&mut self) -> Result<Vec<(Place, i64)>, String>;
}

/// What came of it.
pub(crate) struct Outcome {
    pub(crate) seconds: f64,
    pub(crate) latencies: Histogram<u64>,
}

/// Carries out the operations of the queue until it is empty.
fn run_client(
    shop: &mut dyn Shop,
    work: &Work,
    next: &AtomicUsize,
    is_failed: &AtomicBool,
) -> Result<Histogram<u64>, String> {
    let mut latencies = load::histogram();
    while let Some(operation) = work.operations.get(next.fetch_add(1, Ordering::Relaxed)) {
        let begun = Instant::now();
        match *operation {
            Operation::Release(place, count) => shop.release(place, count)?,
            Operation::Capture(group, wanted) => loop {
                if let Some(parts) = shop.capture(group, wanted)? {
                    if parts.iter().map(|(_, taken)| taken).sum::<u64>() != wanted {
                        return Err(format!("{operation:?} was answered by {parts:?}"));
                    }
                    break;
                }
                if is_failed.load(Ordering::Relaxed) {
                    return Ok(latencies);
                }
                if begun.elapsed() > STARVED {
                    return Err(format!("{operation:?} finds too little for {STARVED:?}"));
                }
                std::thread::sleep(RETRY_PAUSE);
            },
        }
        latencies.saturating_record(begun.elapsed().as_micros() as u64);
    }
    Ok(latencies)
}

/// Runs the work with clients that have connected already; the first one prepares and, if it `is_checked`, looks whether the stock is right.
pub(crate) fn run(mut shops: Vec<Box<dyn Shop>>, work: &Work, is_checked: bool) -> Result<Outcome, String> {
    shops[0].prepare(&work.items)?;
    let (next, is_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let begun = Instant::now();
    let results: Vec<Result<Histogram<u64>, String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = shops
            .iter_mut()
            .map(|shop| {
                scope.spawn(|| {
                    let result = run_client(&mut **shop, work, &next, &is_failed);
                    is_failed.fetch_or(result.is_err(), Ordering::Relaxed);
                    result
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a client does not panic")).collect()
    });
    let seconds = begun.elapsed().as_secs_f64();
    let mut latencies = load::histogram();
    for result in results {
        latencies.add(result?).expect("both histograms have the same bounds");
    }
    if is_checked {
        check(&shops[0].stock()?, work)?;
    }
    Ok(Outcome { seconds, latencies })
}

/// Nothing is oversold, and every group has the units that the generator says.
fn check(stock: &[(Place, i64)], work: &Work) -> Result<(), String> {
    let mut totals: BTreeMap<Group, i64> = BTreeMap::new();
    for (place, count) in stock {
        if *count < 0 {
            return Err(format!("oversold: {count} units at {place:?}"));
        }
        *totals.entry(place.group()).or_default() += count;
    }
    let wanted: BTreeMap<Group, i64> = work.totals.iter().map(|(group, count)| (*group, *count as i64)).collect();
    if totals != wanted {
        let wrong = wanted.iter().find(|(group, count)| totals.get(group) != Some(count));
        return Err(format!("the final stock is wrong, first at {wrong:?}"));
    }
    Ok(())
}

/// `warehouse:taken warehouse:taken`, as the SQL procedures answer.
fn parts(text: &str) -> Result<Vec<(u64, u64)>, String> {
    let part = |part: &str| {
        let (warehouse, taken) = part.split_once(':')?;
        Some((warehouse.parse().ok()?, taken.parse().ok()?))
    };
    text.split_whitespace().map(part).collect::<Option<_>>().ok_or_else(|| format!("`{text}` is no list of parts"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use crate::generator::generate;
    use std::sync::{Arc, Mutex};

    /// An inventory in this process; it may cheat.
    #[derive(Clone, Default)]
    struct Drawer {
        counts: Arc<Mutex<BTreeMap<Place, i64>>>,
        loses: bool,
    }

    impl Shop for Drawer {
        fn prepare(&mut self, items: &[Item]) -> Result<(), String> {
            *self.counts.lock().unwrap() = items.iter().map(|item| (item.place, item.count as i64)).collect();
            Ok(())
        }

        fn capture(&mut self, group: Group, count: u64) -> Result<Option<Vec<(u64, u64)>>, String> {
            let mut counts = self.counts.lock().unwrap();
            let sum: i64 = counts.iter().filter(|(place, _)| place.group() == group).map(|(_, count)| count).sum();
            if sum < count as i64 {
                return Ok(None);
            }
            let (mut missing, mut parts) = (count as i64, Vec::new());
            for (place, here) in counts.iter_mut().filter(|(place, _)| place.group() == group) {
                let part = missing.min(*here);
                if part > 0 {
                    *here -= part;
                    missing -= part;
                    parts.push((place.warehouse, part as u64));
                }
            }
            Ok(Some(parts))
        }

        fn release(&mut self, place: Place, count: u64) -> Result<(), String> {
            let lost = i64::from(self.loses && place.sku.is_multiple_of(100));
            *self.counts.lock().unwrap().entry(place).or_default() += count as i64 - lost;
            Ok(())
        }

        fn stock(&mut self) -> Result<Vec<(Place, i64)>, String> {
            Ok(self.counts.lock().unwrap().iter().map(|(place, count)| (*place, *count)).collect())
        }
    }

    #[test]
    fn a_shop_that_loses_units_is_found_out() {
        let work = generate(1000, 20_000, 1);
        let shops = |drawer: &Drawer| (0..4).map(|_| Box::new(drawer.clone()) as Box<dyn Shop>).collect();
        let honest = Drawer::default();
        assert_eq!(run(shops(&honest), &work, true).unwrap().latencies.len(), 20_000);
        let loses = Drawer { loses: true, ..Drawer::default() };
        // Either a capture starves or the final check fails; lost units may not be missed in between, so only the check is asked.
        let mut one = loses.clone();
        one.prepare(&work.items).unwrap();
        let group = work.items.iter().find(|item| item.place.sku.is_multiple_of(100)).unwrap().place;
        one.release(group, 1).unwrap();
        assert!(check(&one.stock().unwrap(), &work).is_err());
    }

    #[test]
    fn parts_are_read() {
        assert_eq!(parts("1:2 3:4 ").unwrap(), [(1, 2), (3, 4)]);
        assert!(parts("1:x").is_err() && parts("").unwrap().is_empty());
    }
}
