//! The inventory workload: who wants what, in an order in which everything can be had, and the driver that runs it from many clients.

use crate::client::{Client, ClientError, Value};
use crate::report::{self, Latencies};
use hdrhistogram::Histogram;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A small generator of numbers: the same seed gives the same work everywhere (xorshift64*, Marsaglia and Vigna).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number of `low..=high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }
}

/// A row of stock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    sku: u64,
    warehouse: u64,
    condition: u64,
    source: u64,
    price: u64,
    count: u64,
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Capture { sku: u64, condition: u64, source: u64, n: u64 },
    Release { sku: u64, warehouse: u64, condition: u64, source: u64, n: u64 },
}

/// The work and its outcome.
pub(crate) struct Work {
    pub(crate) items: Vec<Item>,
    pub(crate) operations: Vec<Operation>,
    /// Units per (sku, condition, source) once everything is done.
    pub(crate) totals: BTreeMap<(u64, u64, u64), u64>,
}

/// Makes the work of a seed. Every operation can be carried out when they run in order.
pub(crate) fn generate(items: usize, operations: usize, seed: u64) -> Work {
    let mut random = Random::new(seed);
    let mut stock = Vec::with_capacity(items);
    let mut places = BTreeSet::new();
    let skus = items.max(1000) as u64;
    while stock.len() < items {
        let place = (random.between(1, skus), random.between(1, 3), random.between(1, 3), random.between(1, 3));
        if places.insert(place) {
            let (price, count) = (random.between(400, 1500), random.between(0, 10));
            let (sku, warehouse, condition, source) = place;
            stock.push(Item { sku, warehouse, condition, source, price, count });
        }
    }
    let mut counts: Vec<u64> = stock.iter().map(|item| item.count).collect();
    // Items that have units, so that one can be picked at once; `position` finds an item in it.
    let mut filled: Vec<usize> = (0..items).filter(|&at| counts[at] > 0).collect();
    let mut position = vec![usize::MAX; items];
    filled.iter().enumerate().for_each(|(at, &item)| position[item] = at);
    let mut work = Vec::with_capacity(operations);
    for _ in 0..operations {
        if random.next() & 1 == 0 && !filled.is_empty() {
            let at = filled[random.between(0, filled.len() as u64 - 1) as usize];
            let n = random.between(1, counts[at].min(3));
            counts[at] -= n;
            if counts[at] == 0 {
                let hole = position[at];
                filled.swap_remove(hole);
                if let Some(&moved) = filled.get(hole) {
                    position[moved] = hole;
                }
                position[at] = usize::MAX;
            }
            let Item { sku, condition, source, .. } = stock[at];
            work.push(Operation::Capture { sku, condition, source, n });
        } else {
            let at = random.between(0, items as u64 - 1) as usize;
            let n = random.between(1, 3);
            if counts[at] == 0 {
                position[at] = filled.len();
                filled.push(at);
            }
            counts[at] += n;
            let Item { sku, warehouse, condition, source, .. } = stock[at];
            work.push(Operation::Release { sku, warehouse, condition, source, n });
        }
    }
    let mut totals = BTreeMap::new();
    for (item, count) in stock.iter().zip(&counts) {
        *totals.entry((item.sku, item.condition, item.source)).or_default() += count;
    }
    Work { items: stock, operations: work, totals }
}

/// How to run.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) address: String,
    pub(crate) items: usize,
    pub(crate) operations: usize,
    pub(crate) clients: usize,
    pub(crate) seed: u64,
    /// Clients outlive the server: they connect again and ask again under the same operation number.
    pub(crate) survive: bool,
}

/// What came of it.
pub(crate) struct Outcome {
    pub(crate) operations: usize,
    pub(crate) seconds: f64,
    pub(crate) retries: usize,
    pub(crate) reconnects: usize,
    pub(crate) latencies: Histogram<u64>,
    /// Empty if the final state is exactly the generator's.
    pub(crate) wrong: Vec<String>,
}

impl Outcome {
    pub(crate) fn per_second(&self) -> f64 {
        self.operations as f64 / self.seconds
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        json!({
            "operations": self.operations,
            "seconds": self.seconds,
            "per_second": self.per_second(),
            "retries": self.retries,
            "reconnects": self.reconnects,
            "latency_us": Latencies::of(&self.latencies).json(),
            "wrong": self.wrong,
        })
    }

    pub(crate) fn print(&self) {
        println!("operations   {} in {:.1} s: {:.0} a second", self.operations, self.seconds, self.per_second());
        println!("latency      {}", Latencies::of(&self.latencies));
        println!("retries      {} (captures that found too little and tried again)", self.retries);
        if self.reconnects > 0 {
            println!("reconnects   {}", self.reconnects);
        }
        match self.wrong.len() {
            0 => println!("final state  exact, nothing oversold"),
            count => {
                println!("final state  WRONG in {count} places:");
                self.wrong.iter().take(20).for_each(|line| println!("  {line}"));
            }
        }
    }
}

/// What all clients share.
struct Shared<'a> {
    settings: &'a Settings,
    work: &'a Work,
    next: AtomicUsize,
    done: &'a AtomicUsize,
    retries: AtomicUsize,
    reconnects: AtomicUsize,
    stop: AtomicBool,
    failures: Mutex<Vec<String>>,
    latencies: Mutex<Histogram<u64>>,
}

/// Connects, waiting for a server that is being restarted.
fn connect(shared: &Shared<'_>) -> Result<Client, ClientError> {
    let begun = Instant::now();
    loop {
        match Client::connect(&shared.settings.address, None) {
            Ok(client) => return Ok(client),
            Err(error) if !shared.settings.survive || begun.elapsed() > Duration::from_secs(60) => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn ask(client: &mut Client, operation: Operation, identity: Option<(u64, u64)>) -> Result<Value, ClientError> {
    match (operation, identity) {
        (Operation::Capture { sku, condition, source, n }, None) => {
            client.call("inventory.capture", &[sku, condition, source, n])
        }
        (Operation::Release { sku, warehouse, condition, source, n }, None) => {
            client.call("inventory.release", &[sku, warehouse, condition, source, n])
        }
        (Operation::Capture { sku, condition, source, n }, Some((client_id, number))) => {
            client.call("inventory.capture_once", &[client_id, number, sku, condition, source, n])
        }
        (Operation::Release { sku, warehouse, condition, source, n }, Some((client_id, number))) => {
            client.call("inventory.release_once", &[client_id, number, sku, warehouse, condition, source, n])
        }
    }
}

/// True if a restarted server may still answer this one: it refuses while it reads its files.
fn is_passing(error: &ClientError) -> bool {
    match error {
        ClientError::Broken(_) => true,
        ClientError::Refused(text) => text.contains("(code 116)") || text.contains("is not defined"),
    }
}

fn run_client(shared: &Shared<'_>, id: u64) -> Result<(), ClientError> {
    let mut latencies = report::histogram();
    let mut client = connect(shared)?;
    let mut done = 0;
    'next: loop {
        let at = shared.next.fetch_add(1, Ordering::Relaxed);
        let Some(&operation) = shared.work.operations.get(at) else { break };
        let identity = shared.settings.survive.then_some((id, at as u64 + 1));
        let begun = Instant::now();
        loop {
            if shared.stop.load(Ordering::Relaxed) {
                break 'next;
            }
            match ask(&mut client, operation, identity) {
                Ok(Value::Bool(false)) => {
                    shared.retries.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(5));
                }
                Ok(Value::Array(taken)) => {
                    let wanted = match operation {
                        Operation::Capture { n, .. } => n as i64,
                        Operation::Release { .. } => -1,
                    };
                    let sum: i64 = taken.iter().filter_map(|one| one.array().get(4)?.int()).sum();
                    if sum != wanted {
                        return Err(ClientError::Refused(format!("asked for {wanted}, got {sum}: {taken:?}")));
                    }
                    break;
                }
                Ok(Value::Bool(true)) => break,
                Ok(other) => return Err(ClientError::Refused(format!("an answer that makes no sense: {other:?}"))),
                Err(error) if shared.settings.survive && is_passing(&error) => {
                    shared.reconnects.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(20));
                    client = connect(shared)?;
                }
                Err(error) => return Err(error),
            }
        }
        latencies.saturating_record(begun.elapsed().as_micros() as u64);
        done += 1;
        if done == 64 {
            shared.done.fetch_add(done, Ordering::Relaxed);
            done = 0;
        }
    }
    shared.done.fetch_add(done, Ordering::Relaxed);
    let mut all = shared.latencies.lock().unwrap_or_else(PoisonError::into_inner);
    // Both histograms have the same bounds.
    let _ = all.add(&latencies);
    Ok(())
}

/// Loads the initial stock, in statements of many rows.
fn load(settings: &Settings, work: &Work) -> Result<(), ClientError> {
    let mut client = Client::connect(&settings.address, None)?;
    client.call("inventory.clear", &[])?;
    for items in work.items.chunks(500) {
        let rows: Vec<String> = items
            .iter()
            .map(|i| format!("{{{},{},{},{},{},{}}}", i.sku, i.warehouse, i.condition, i.source, i.price, i.count))
            .collect();
        client.eval(&format!("for _, r in ipairs({{{}}}) do inventory.add(unpack(r)) end", rows.join(",")))?;
    }
    Ok(())
}

/// Compares the server's stock with the generator's.
fn check(settings: &Settings, work: &Work) -> Result<Vec<String>, ClientError> {
    let mut client = Client::connect(&settings.address, None)?;
    let mut wrong = Vec::new();
    let totals = client.call("inventory.totals", &[])?;
    let mut found = BTreeMap::new();
    for row in totals.array() {
        let numbers: Vec<i64> = row.array().iter().filter_map(Value::int).collect();
        if let [sku, condition, source, count] = numbers[..] {
            if count < 0 {
                wrong.push(format!("oversold: {numbers:?}"));
            }
            found.insert((sku as u64, condition as u64, source as u64), count as u64);
        }
    }
    for (key, wanted) in &work.totals {
        match found.get(key) {
            Some(count) if count == wanted => {}
            other => wrong.push(format!("(sku, condition, source) {key:?}: {other:?} instead of {wanted}")),
        }
    }
    let (sum, wanted): (u64, u64) = (found.values().sum(), work.totals.values().sum());
    if sum != wanted {
        wrong.push(format!("{sum} units in all instead of {wanted}"));
    }
    if found.len() != work.totals.len() {
        wrong.push(format!("{} items instead of {}", found.len(), work.totals.len()));
    }
    Ok(wrong)
}

/// Runs the whole workload. `done` counts operations as they are done, for whoever watches.
pub(crate) fn run(settings: &Settings, work: &Work, done: &AtomicUsize) -> Result<Outcome, String> {
    load(settings, work).map_err(|error| format!("loading the stock: {error}"))?;
    let shared = Shared {
        settings,
        work,
        next: AtomicUsize::new(0),
        done,
        retries: AtomicUsize::new(0),
        reconnects: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        failures: Mutex::default(),
        latencies: Mutex::new(report::histogram()),
    };
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for id in 0..settings.clients {
            let shared = &shared;
            scope.spawn(move || {
                if let Err(error) = run_client(shared, id as u64 + 1) {
                    shared.stop.store(true, Ordering::Relaxed);
                    shared.failures.lock().unwrap_or_else(PoisonError::into_inner).push(error.to_string());
                }
            });
        }
    });
    let seconds = begun.elapsed().as_secs_f64();
    let failures = shared.failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(first) = failures.first() {
        return Err(format!("{} of {} clients failed: {first}", failures.len(), settings.clients));
    }
    let wrong = check(settings, work).map_err(|error| format!("checking the stock: {error}"))?;
    Ok(Outcome {
        operations: work.operations.len(),
        seconds,
        retries: shared.retries.into_inner(),
        reconnects: shared.reconnects.into_inner(),
        latencies: shared.latencies.into_inner().unwrap_or_else(PoisonError::into_inner),
        wrong,
    })
}

/// As `run`, with a progress bar unless `is_quiet`.
pub(crate) fn run_shown(settings: &Settings, work: &Work, is_quiet: bool) -> Result<Outcome, String> {
    let done = AtomicUsize::new(0);
    report::with_progress(work.operations.len(), is_quiet, &done, || run(settings, work, &done))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_work() {
        let (a, b, c) = (generate(100, 1000, 1), generate(100, 1000, 1), generate(100, 1000, 2));
        assert_eq!((&a.items, &a.operations, &a.totals), (&b.items, &b.operations, &b.totals));
        assert_ne!(a.operations, c.operations);
    }

    #[test]
    fn in_order_every_operation_can_be_carried_out() {
        let work = generate(200, 20_000, 7);
        let mut stock: BTreeMap<(u64, u64, u64), u64> = BTreeMap::new();
        for item in &work.items {
            *stock.entry((item.sku, item.condition, item.source)).or_default() += item.count;
        }
        let mut captures = 0;
        for operation in &work.operations {
            match *operation {
                Operation::Capture { sku, condition, source, n } => {
                    captures += 1;
                    let left = stock.get_mut(&(sku, condition, source)).expect("an item");
                    *left = left.checked_sub(n).expect("there are enough");
                }
                Operation::Release { sku, condition, source, n, .. } => {
                    *stock.get_mut(&(sku, condition, source)).expect("an item") += n;
                }
            }
        }
        assert_eq!(stock, work.totals);
        assert!((8_000..12_000).contains(&captures), "{captures} of 20000 are captures");
    }
}
