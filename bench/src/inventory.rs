//! The inventory workload: many clients capture and release, each with a connection of its own and one request in flight.
//!
//! With `survive`, clients outlive the server. An operation whose answer did not arrive may or may not have been carried out; the client asks again
//! under the same number, and the procedures of examples/inventory answer a number that they have seen without doing it again. So after any number
//! of crashes exactly the same state is expected as without: one that is off by a unit has lost or doubled something.
//!
//! No client can wait for ever. An operation that finds too little waits for releases that came before it in the queue, and those always succeed;
//! what other captures took early, they gave up taking later. So a wait that lasts means lost units, and is an error after `STARVED`.

use crate::generator::{Group, Item, Operation, Place, Work};
use hdrhistogram::Histogram;
use load::Latencies;
use load::Value;
use load::{Client, ClientError};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Pause of a capture that found too little.
const RETRY_PAUSE: Duration = Duration::from_millis(5);
/// After so long a capture gives up hope.
const STARVED: Duration = Duration::from_secs(30);
/// Longest time without a server that answers.
const ABSENCE_MAX: Duration = Duration::from_secs(60);
/// Pause between attempts to connect.
const CONNECT_PAUSE: Duration = Duration::from_millis(10);
/// What a server says while it starts: read-only, no such procedure, no such space, no access, not loaded yet.
const STARTING: [u32; 5] = [7, 33, 36, 42, 116];
/// Transaction has been aborted by conflict.
const COLLISION: u32 = 97;
/// So many faults of the final state are kept in words.
const FAULTS_MAX: usize = 20;

/// How to run.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) address: String,
    pub(crate) clients: u64,
    /// Clients connect again when the server goes away, and ask again under the same operation number.
    pub(crate) survive: bool,
}

/// What came of it.
pub(crate) struct Outcome {
    pub(crate) operations: usize,
    pub(crate) seconds: f64,
    /// Captures that found too little, and operations that collided with others, and were tried again.
    pub(crate) retries: u64,
    /// Connections made anew.
    pub(crate) reconnects: u64,
    /// Microseconds from asking for an operation to its success, with all retries.
    pub(crate) latencies: Histogram<u64>,
    /// What a right server holds now.
    pub(crate) expected: Expected,
    /// How the server's state differs from that; nothing if all is well.
    pub(crate) faults: Faults,
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
            "latency_us": Latencies::of(&self.latencies).json(),
            "retries": self.retries,
            "reconnects": self.reconnects,
            "is_exact": self.faults.count == 0,
            "faults": self.faults.words,
        })
    }

    pub(crate) fn print(&self) {
        println!("operations   {} in {:.1} s: {:.0} a second", self.operations, self.seconds, self.per_second());
        println!("latency      {}", Latencies::of(&self.latencies));
        println!("retries      {} operations found too little or collided, and were tried again", self.retries);
        if self.reconnects > 0 {
            println!("reconnects   {}", self.reconnects);
        }
        match self.faults.count {
            0 => println!("final state  exact: every unit is where it should be, nothing oversold"),
            _ => println!("final state  {}", self.faults),
        }
    }
}

/// Differences between what is and what should be: their number, and the first few in words.
#[derive(Default)]
pub(crate) struct Faults {
    pub(crate) count: usize,
    pub(crate) words: Vec<String>,
}

impl Faults {
    fn add(&mut self, fault: String) {
        self.count += 1;
        if self.words.len() < FAULTS_MAX {
            self.words.push(fault);
        }
    }
}

impl std::fmt::Display for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WRONG in {} places:", self.count)?;
        self.words.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
    }
}

/// What a server that lost and doubled nothing holds, from the generator and from the answers that clients got.
#[derive(Clone)]
pub(crate) struct Expected {
    /// Units in all warehouses, by the generator: the same in whatever order the operations ran.
    totals: BTreeMap<Group, u64>,
    /// Units at each place, by the answers: captures said which warehouses they took from.
    counts: BTreeMap<Place, i64>,
    /// The last operation of each client and its answer, kept by the server with `survive`.
    last: BTreeMap<u64, (u64, Value)>,
}

impl Expected {
    fn new(work: &Work) -> Self {
        let counts = work.items.iter().map(|item| (item.place, item.count as i64)).collect();
        Expected { totals: work.totals.clone(), counts, last: BTreeMap::new() }
    }

    fn add(&mut self, client: ClientOutcome) {
        for (place, change) in client.changes {
            *self.counts.entry(place).or_default() += change;
        }
        if let Some(last) = client.last {
            self.last.insert(client.id, last);
        }
    }
}

/// What one client did.
struct ClientOutcome {
    id: u64,
    latencies: Histogram<u64>,
    /// Units that answers put to places or took away.
    changes: BTreeMap<Place, i64>,
    /// Number and answer of the last operation, if they are numbered.
    last: Option<(u64, Value)>,
}

/// What all clients share.
struct Shared<'a> {
    settings: &'a Settings,
    work: &'a Work,
    /// The queue: the next operation that nobody has taken.
    next: AtomicUsize,
    /// Operations that succeeded, for whoever watches.
    done: &'a AtomicU64,
    retries: AtomicU64,
    reconnects: AtomicU64,
    /// Somebody failed: the others need not go on.
    is_failed: AtomicBool,
}

fn is_starting(error: &ClientError) -> bool {
    match error {
        ClientError::Broken(_) => true,
        ClientError::Refused { code, .. } => STARTING.contains(code),
        ClientError::Absurd(_) => false,
    }
}

/// Connects, and with `survive` waits for a server that is being restarted.
fn connect(shared: &Shared<'_>) -> Result<Client, ClientError> {
    let begun = Instant::now();
    loop {
        match Client::connect(&shared.settings.address, None) {
            Err(error)
                if shared.settings.survive
                    && is_starting(&error)
                    && begun.elapsed() < ABSENCE_MAX
                    && !shared.is_failed.load(Ordering::Relaxed) =>
            {
                std::thread::sleep(CONNECT_PAUSE);
            }
            result => return result,
        }
    }
}

/// Asks for an operation. `identity` is the client and the operation's number.
fn ask(client: &mut Client, operation: Operation, identity: Option<(u64, u64)>) -> Result<Value, ClientError> {
    match (operation, identity) {
        (Operation::Capture(Group { sku, condition, source }, n), None) => {
            client.call("inventory.capture", &[sku, condition, source, n])
        }
        (Operation::Release(Place { sku, warehouse, condition, source }, n), None) => {
            client.call("inventory.release", &[sku, warehouse, condition, source, n])
        }
        (Operation::Capture(Group { sku, condition, source }, n), Some((id, number))) => {
            client.call("inventory.capture_once", &[id, number, sku, condition, source, n])
        }
        (Operation::Release(Place { sku, warehouse, condition, source }, n), Some((id, number))) => {
            client.call("inventory.release_once", &[id, number, sku, warehouse, condition, source, n])
        }
    }
}

/// A captured part, `{sku, warehouse, condition, source, taken}`.
fn part(value: &Value) -> Option<(Place, u64)> {
    let [sku, warehouse, condition, source, taken] = value.array() else { return None };
    let place = Place {
        sku: sku.unsigned()?,
        warehouse: warehouse.unsigned()?,
        condition: condition.unsigned()?,
        source: source.unsigned()?,
    };
    Some((place, taken.unsigned()?))
}

/// Checks an answer and books what it says. `Ok(false)`: there was too little.
fn book(operation: Operation, answer: &Value, changes: &mut BTreeMap<Place, i64>) -> Result<bool, ClientError> {
    let absurd = || Err(ClientError::Absurd(format!("{operation:?} was answered by {answer:?}")));
    match (operation, answer) {
        (Operation::Capture(..), Value::Bool(false)) => Ok(false),
        (Operation::Capture(group, wanted), Value::Array(parts)) => {
            let Some(parts) = parts.iter().map(part).collect::<Option<Vec<_>>>() else { return absurd() };
            let is_right = parts.iter().all(|(place, taken)| place.group() == group && *taken > 0);
            if !is_right || parts.iter().map(|(_, taken)| taken).sum::<u64>() != wanted {
                return absurd();
            }
            for (place, taken) in parts {
                *changes.entry(place).or_default() -= taken as i64;
            }
            Ok(true)
        }
        (Operation::Release(place, given), Value::Bool(true)) => {
            *changes.entry(place).or_default() += given as i64;
            Ok(true)
        }
        _ => absurd(),
    }
}

fn run_client(shared: &Shared<'_>, id: u64) -> Result<ClientOutcome, ClientError> {
    let survive = shared.settings.survive;
    let mut outcome = ClientOutcome { id, latencies: load::histogram(), changes: BTreeMap::new(), last: None };
    let mut client = connect(shared)?;
    let mut number = 0;
    while let Some(&operation) = shared.work.operations.get(shared.next.fetch_add(1, Ordering::Relaxed)) {
        number += 1;
        let begun = Instant::now();
        // When the server was last seen to work, and since when a capture has been waiting while it does.
        let (mut seen, mut waiting_since) = (begun, begun);
        loop {
            if shared.is_failed.load(Ordering::Relaxed) {
                return Ok(outcome);
            }
            match ask(&mut client, operation, survive.then_some((id, number))) {
                Ok(answer) => {
                    if book(operation, &answer, &mut outcome.changes)? {
                        outcome.last = survive.then_some((number, answer));
                        break;
                    }
                    if waiting_since.elapsed() > STARVED {
                        return Err(ClientError::Absurd(format!("{operation:?} finds too little for {STARVED:?}")));
                    }
                    seen = Instant::now();
                    shared.retries.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(RETRY_PAUSE);
                }
                // Disk engines may find that two of them collide; who is told of it has changed nothing.
                Err(ClientError::Refused { code: COLLISION, .. }) if waiting_since.elapsed() < STARVED => {
                    shared.retries.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) if survive && is_starting(&error) && seen.elapsed() < ABSENCE_MAX => {
                    shared.reconnects.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(CONNECT_PAUSE);
                    client = connect(shared)?;
                    waiting_since = Instant::now();
                }
                Err(error) => return Err(error),
            }
        }
        outcome.latencies.saturating_record(begun.elapsed().as_micros() as u64);
        shared.done.fetch_add(1, Ordering::Relaxed);
    }
    Ok(outcome)
}

/// Empties the server and loads the initial stock.
fn load(settings: &Settings, work: &Work) -> Result<(), ClientError> {
    let mut client = Client::connect(&settings.address, None)?;
    client.call("inventory.clear", &[])?;
    let arguments =
        |Item { place: p, price, count }: &Item| [p.sku, p.warehouse, p.condition, p.source, *price, *count];
    client.call_each("inventory.add", work.items.iter().map(arguments))
}

/// A row of stock, as the server holds it.
fn stock_row(row: &Value) -> Option<(Place, i64)> {
    let [_, sku, warehouse, condition, source, _, count] = row.array() else { return None };
    let place = Place {
        sku: sku.unsigned()?,
        warehouse: warehouse.unsigned()?,
        condition: condition.unsigned()?,
        source: source.unsigned()?,
    };
    let Value::Int(count) = count else { return None };
    Some((place, i64::try_from(*count).ok()?))
}

/// Compares the rows of the stock with what is expected.
fn compare_stock(rows: &[Value], expected: &Expected, faults: &mut Faults) {
    let mut counts = BTreeMap::new();
    for row in rows {
        match stock_row(row) {
            None => faults.add(format!("a row that is no stock: {row:?}")),
            Some((place, count)) => {
                if count < 0 {
                    faults.add(format!("oversold: {count} units at {place:?}"));
                }
                if counts.insert(place, count).is_some() {
                    faults.add(format!("two rows for {place:?}"));
                }
            }
        }
    }
    let mut totals: BTreeMap<Group, i64> = BTreeMap::new();
    for (place, count) in &counts {
        *totals.entry(place.group()).or_default() += count;
    }
    for (group, wanted) in &expected.totals {
        let found = totals.get(group).copied().unwrap_or(0);
        if found != *wanted as i64 {
            faults.add(format!("{found} units instead of {wanted} of {group:?}"));
        }
    }
    let (found, wanted) = (totals.values().sum::<i64>(), expected.totals.values().sum::<u64>());
    if found != wanted as i64 {
        faults.add(format!("{found} units instead of {wanted} in all"));
    }
    for (place, wanted) in &expected.counts {
        match counts.remove(place) {
            Some(found) if found == *wanted => {}
            Some(found) => faults.add(format!("{found} units instead of {wanted} at {place:?}")),
            None => faults.add(format!("no row for {place:?}")),
        }
    }
    for place in counts.keys() {
        faults.add(format!("a row for {place:?}, which nobody made"));
    }
}

/// Compares the last operations that the server remembers with those that were acknowledged.
fn compare_last(rows: &[Value], expected: &Expected, faults: &mut Faults) {
    let mut found: BTreeMap<u64, (u64, Value)> = BTreeMap::new();
    for row in rows {
        match row.array() {
            [Value::Int(client), Value::Int(number), answer] => {
                found.insert(*client as u64, (*number as u64, answer.clone()));
            }
            _ => faults.add(format!("a row that is no client: {row:?}")),
        }
    }
    for (client, wanted) in &expected.last {
        if found.get(client) != Some(wanted) {
            faults.add(format!("client {client} ended with {wanted:?}, the server remembers {:?}", found.get(client)));
        }
    }
}

/// Compares the server's state with what is expected.
pub(crate) fn check(settings: &Settings, expected: &Expected) -> Result<Faults, String> {
    let read = || {
        let mut client = Client::connect(&settings.address, None)?;
        let (stock, clients) = (client.space_id("stock")?, client.space_id("clients")?);
        Ok((client.select_all(stock)?, client.select_all(clients)?))
    };
    let (stock, clients) = read().map_err(|error: ClientError| format!("reading the final state: {error}"))?;
    let mut faults = Faults::default();
    compare_stock(&stock, expected, &mut faults);
    compare_last(&clients, expected, &mut faults);
    Ok(faults)
}

/// Runs the whole workload and checks the state that it leaves.
pub(crate) fn run(settings: &Settings, work: &Work, done: &AtomicU64) -> Result<Outcome, String> {
    let mut outcome = drive(settings, work, done)?;
    outcome.faults = check(settings, &outcome.expected)?;
    Ok(outcome)
}

/// Loads the stock and runs all operations, without the check at the end. `done` counts operations as they succeed, for whoever watches.
pub(crate) fn drive(settings: &Settings, work: &Work, done: &AtomicU64) -> Result<Outcome, String> {
    load(settings, work).map_err(|error| format!("loading the stock: {error}"))?;
    let shared = Shared {
        settings,
        work,
        next: AtomicUsize::new(0),
        done,
        retries: AtomicU64::new(0),
        reconnects: AtomicU64::new(0),
        is_failed: AtomicBool::new(false),
    };
    let begun = Instant::now();
    let clients: Vec<Result<ClientOutcome, ClientError>> = std::thread::scope(|scope| {
        let run = |id| {
            let shared = &shared;
            scope.spawn(move || {
                let result = run_client(shared, id);
                if result.is_err() {
                    shared.is_failed.store(true, Ordering::Relaxed);
                }
                result
            })
        };
        let threads: Vec<_> = (1..=settings.clients).map(run).collect();
        threads.into_iter().map(|thread| thread.join().expect("a client does not panic")).collect()
    });
    let seconds = begun.elapsed().as_secs_f64();
    let mut expected = Expected::new(work);
    let mut latencies = load::histogram();
    for (client, number) in clients.into_iter().zip(1..) {
        let client = client.map_err(|error| format!("client {number}: {error}"))?;
        latencies.add(&client.latencies).expect("both histograms have the same bounds");
        expected.add(client);
    }
    Ok(Outcome {
        operations: work.operations.len(),
        seconds,
        retries: shared.retries.into_inner(),
        reconnects: shared.reconnects.into_inner(),
        latencies,
        expected,
        faults: Faults::default(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use crate::generator::generate;

    const PLACE: Place = Place { sku: 7, warehouse: 2, condition: 1, source: 3 };

    fn row(numbers: &[i128]) -> Value {
        Value::Array(numbers.iter().map(|number| Value::Int(*number)).collect())
    }

    #[test]
    fn an_answer_is_booked_only_if_it_is_what_was_asked() {
        let mut changes = BTreeMap::new();
        let capture = Operation::Capture(PLACE.group(), 3);
        let other = Place { warehouse: 1, ..PLACE };
        let taken = Value::Array(vec![row(&[7, 2, 1, 3, 1]), row(&[7, 1, 1, 3, 2])]);
        assert!(book(capture, &taken, &mut changes).unwrap());
        assert!(book(Operation::Release(PLACE, 5), &Value::Bool(true), &mut changes).unwrap());
        assert!(!book(capture, &Value::Bool(false), &mut changes).unwrap());
        assert_eq!(changes, BTreeMap::from([(PLACE, 4), (other, -2)]));
        for absurd in [row(&[]), Value::Nil, Value::Array(vec![row(&[7, 2, 1, 3, 2])]), Value::Bool(true)] {
            assert!(book(capture, &absurd, &mut changes).is_err(), "{absurd:?}");
        }
        let other_group = Value::Array(vec![row(&[8, 2, 1, 3, 3])]);
        assert!(book(capture, &other_group, &mut changes).is_err());
        assert!(book(Operation::Release(PLACE, 5), &Value::Bool(false), &mut changes).is_err());
    }

    #[test]
    fn a_unit_that_is_lost_moved_or_doubled_is_seen() {
        let work = generate(50, 0, 1);
        let expected = Expected::new(&work);
        let rows: Vec<Value> = work
            .items
            .iter()
            .map(|Item { place: p, price, count }| {
                row(&[1, p.sku, p.warehouse, p.condition, p.source, *price, *count].map(i128::from))
            })
            .collect();
        let count = |rows: &[Value]| {
            let mut faults = Faults::default();
            compare_stock(rows, &expected, &mut faults);
            faults.count
        };
        assert_eq!(count(&rows), 0);
        let mut doubled = rows.clone();
        let Value::Array(fields) = &mut doubled[0] else { panic!("a row") };
        fields[6] = Value::Int(99);
        // Of its group, in all, and at its place.
        assert_eq!(count(&doubled), 3);
        assert!(count(&rows[1..]) > 0 && count(&[rows.clone(), vec![rows[0].clone()]].concat()) > 0);
        fields_negative(&mut doubled[0]);
        assert!(count(&doubled) > 0);
    }

    fn fields_negative(row: &mut Value) {
        let Value::Array(fields) = row else { panic!("a row") };
        fields[6] = Value::Int(-1);
    }

    #[test]
    fn a_forgotten_operation_is_seen() {
        let mut expected = Expected::new(&generate(1, 0, 1));
        expected.last.insert(1, (5, Value::Bool(true)));
        let count = |rows: &[Value]| {
            let mut faults = Faults::default();
            compare_last(rows, &expected, &mut faults);
            faults.count
        };
        let remembered = |number| Value::Array(vec![Value::Int(1), Value::Int(number), Value::Bool(true)]);
        assert_eq!((count(&[remembered(5)]), count(&[remembered(4)]), count(&[])), (0, 1, 1));
    }
}
