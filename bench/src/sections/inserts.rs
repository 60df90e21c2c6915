//! Random inserts with two secondary indexes, one by one, and readers beside them. Pauses count, not the mean.

use super::Section;
use super::disk::{ENGINE, by_turns_on_disk};
use super::requests::{fill, flow, make_space_in};
use crate::compare::{Settings, by_turns};
use crate::contender::{Contender, Running};
use crate::report::median;
use crate::results::{Recorder, Turn};
use crate::shops::connect_mariadb;
use hdrhistogram::Histogram;
use load::{Drive, End, Keys, Latencies, Row, Template, drive};
use mysql::prelude::Queryable;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub(crate) const SECTION: Section = Section {
    name: "inserts",
    title: "Random inserts with two secondary indexes",
    about: "Rows of three integers, two of them indexed, in random order: by one client, by one client with two readers of random rows beside it, and \
            by 32 clients, each with one request in flight; then reads of random rows by one client. The table has its rows already when they begin. The worst pause \
            is the slowest request.",
    run,
};

pub(crate) const DISK: Section = Section {
    name: "disk-random-inserts",
    title: "On disk: random inserts with two secondary indexes",
    about: "The same rows in the disk engines: by one client, by 32 clients, and by 32 clients with 2, 32 and 256 readers of random rows beside them, \
            each with one request in flight. The table has a fifth of the rows of the disk space when they begin. The worst second is compared with the median one.",
    run: run_on_disk,
};

const CONTENDERS: [Contender; 9] = [
    Contender::Lycosa,
    Contender::LycosaWrite,
    Contender::LycosaMysql,
    Contender::LycosaMysqlWrite,
    Contender::Tarantool,
    Contender::Mariadb,
    Contender::MariadbDurable,
    Contender::Myisam,
    Contender::NothingMysql,
];
const ROW: Row = Row { numbers: 2, text_bytes: None, letters: 0 };
/// Rows of one statement while a table is filled.
const FILL_ROWS: u32 = 1000;
/// Writers, readers, name.
const CASES: [(usize, usize, &str); 4] = [
    (1, 0, "insert, 1 client"),
    (1, 2, "insert, 2 readers beside"),
    (32, 0, "insert, 32 clients"),
    (0, 1, "read, 1 client"),
];
/// The same for the disk engines.
const DISK_CASES: [(usize, usize, &str); 5] = [
    (1, 0, "insert, 1 client"),
    (32, 0, "insert, 32 clients"),
    (32, 2, "insert, 32 clients, 2 readers"),
    (32, 32, "insert, 32 clients, 32 readers"),
    (32, 256, "insert, 32 clients, 256 readers"),
];
/// Shortest measurements. Dumps and compactions of disk engines come only so often.
const TIME_MIN: Duration = Duration::from_secs(3);
const DISK_TIME_MIN: Duration = Duration::from_secs(15);
/// Turns of each contender, at most.
const ROUNDS_MAX: u64 = 3;

/// What came of the writers, or of the readers where nobody writes.
struct Found {
    count: u64,
    seconds: f64,
    latencies: Histogram<u64>,
    /// Answers of each second that was whole.
    seconds_whole: Vec<f64>,
    /// Answers to readers beside writers; `None` if there were not both.
    read_beside: Option<u64>,
}

fn book(case: &str, found: &Found, turn: &mut Turn) {
    let rate = found.count as f64 / found.seconds;
    let latencies = Latencies::of(&found.latencies);
    turn.higher(case, "requests", "1/s", rate);
    let normal = if found.seconds_whole.is_empty() { rate } else { median(&found.seconds_whole) };
    let worst = found.seconds_whole.iter().copied().fold(f64::MAX, f64::min).min(normal);
    turn.higher(case, "worst second", "1/s", worst);
    if let Some(count) = found.read_beside {
        turn.higher(case, "reads beside", "1/s", count as f64 / found.seconds);
    }
    turn.higher(case, "worst second, of the median", "share", worst / normal);
    turn.lower(case, "latency, median", "us", latencies.median as f64);
    turn.lower(case, "latency, 99 %", "us", latencies.p99 as f64);
    turn.lower(case, "worst pause", "ms", latencies.max as f64 / 1000.0);
}

/// Over the binary protocol. `next` is the first key that is fresh.
fn over_iproto(
    address: &str,
    space: u64,
    rows: u32,
    (writers, readers): (usize, usize),
    keys: Keys,
    time: Duration,
) -> Result<Found, String> {
    let end = End { requests: None, time: Some(time) };
    let mut flows = Vec::new();
    if writers > 0 {
        flows.push(flow(address, Template::insert(space, ROW), (writers, 1), keys, end));
    }
    if readers > 0 {
        flows.push(flow(address, Template::select(space), (readers, 1), Keys::uniform(rows, 1), end));
    }
    let outcomes = drive(&flows, Drive::default()).map_err(|error| error.to_string())?;
    let read_beside = outcomes.get(1).map(|readers| readers.responses);
    let outcome = outcomes.into_iter().next().expect("there is a writer or a reader");
    let whole = outcome.series.iter().filter(|second| f64::from(second.at) + 1.0 <= outcome.seconds);
    let seconds_whole = whole.map(|second| second.responses as f64).collect();
    Ok(Found {
        count: outcome.responses,
        seconds: outcome.seconds,
        latencies: outcome.latencies,
        seconds_whole,
        read_beside,
    })
}

/// A client of MariaDB until the time is over; its latencies. `count` has an entry for each second.
fn sql_client(
    address: &str,
    statement: &str,
    mut values: impl FnMut() -> Vec<u64>,
    begun: Instant,
    time: Duration,
    seconds: &[AtomicU64],
    is_failed: &AtomicBool,
) -> Result<Histogram<u64>, String> {
    let failed = |error: mysql::Error| format!("mariadb: {error}");
    let mut connection = connect_mariadb(address)?;
    let statement = connection.prep(statement).map_err(failed)?;
    let mut latencies = load::histogram();
    while begun.elapsed() < time && !is_failed.load(Ordering::Relaxed) {
        let asked = Instant::now();
        let found: Vec<mysql::Row> = connection.exec(&statement, values()).map_err(failed)?;
        let is_read = connection.affected_rows() == 0;
        if is_read && found.len() != 1 {
            return Err(format!("mariadb: {} rows instead of one", found.len()));
        }
        latencies.saturating_record(asked.elapsed().as_micros() as u64);
        if let Some(second) = seconds.get(begun.elapsed().as_secs() as usize) {
            second.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(latencies)
}

/// The numbers of a row by its key: in no order, each once.
fn numbers(key: u32) -> [u64; 2] {
    [1, 2].map(|position: u32| u64::from((key ^ position.wrapping_mul(0x9e37_79b9)).wrapping_mul(0x85eb_ca6b)))
}

fn over_sql(
    address: &str,
    rows: u32,
    (writers, readers): (usize, usize),
    first: u32,
    time: Duration,
) -> Result<(Found, u32), String> {
    let whole_seconds = time.as_secs() as usize;
    let seconds: Vec<AtomicU64> = (0..whole_seconds).map(|_| AtomicU64::new(0)).collect();
    let nobody: Vec<AtomicU64> = Vec::new();
    let next = AtomicU64::new(u64::from(first));
    let is_failed = AtomicBool::new(false);
    let begun = Instant::now();
    let results: Vec<(bool, Result<Histogram<u64>, String>)> = std::thread::scope(|scope| {
        let (next, is_failed, seconds, nobody) = (&next, &is_failed, &seconds, &nobody);
        let threads: Vec<_> = (0..writers + readers)
            .map(|client| {
                let is_writer = client < writers;
                scope.spawn(move || {
                    let result = if is_writer {
                        let fresh = || {
                            let number = next.fetch_add(1, Ordering::Relaxed) as u32;
                            let key = Keys::Fresh { next: number, from: 0 }.draw();
                            let [a, b] = numbers(key);
                            // Keys above those that the table was filled with.
                            vec![u64::from(key) + u64::from(rows), a, b]
                        };
                        sql_client(
                            address,
                            "INSERT INTO inserts VALUES (?, ?, ?)",
                            fresh,
                            begun,
                            time,
                            seconds,
                            is_failed,
                        )
                    } else {
                        let mut keys = Keys::uniform(rows, client as u64);
                        let any = move || vec![u64::from(keys.draw())];
                        let counted = if writers == 0 { seconds } else { nobody };
                        let read = "SELECT a, b, c FROM inserts WHERE a = ?";
                        sql_client(address, read, any, begun, time, counted, is_failed)
                    };
                    is_failed.fetch_or(result.is_err(), Ordering::Relaxed);
                    (is_writer, result)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a client does not panic")).collect()
    });
    let elapsed = begun.elapsed().as_secs_f64();
    let mut latencies = load::histogram();
    let mut read_beside = (writers > 0 && readers > 0).then_some(0);
    for (is_writer, result) in results {
        let found = result?;
        if let (false, Some(count)) = (is_writer, &mut read_beside) {
            *count += found.len();
        }
        if is_writer || writers == 0 {
            latencies.add(found).expect("both histograms have the same bounds");
        }
    }
    let seconds_whole = seconds.iter().map(|second| second.load(Ordering::Relaxed) as f64).collect();
    let found = Found { count: latencies.len(), seconds: elapsed, latencies, seconds_whole, read_beside };
    Ok((found, next.into_inner() as u32))
}

fn make_table(address: &str, engine: &str, rows: u32) -> Result<(), String> {
    let failed = |error: mysql::Error| format!("mariadb: {error}");
    let mut connection = connect_mariadb(address)?;
    connection.query_drop("DROP TABLE IF EXISTS inserts").map_err(failed)?;
    connection
        .query_drop(format!(
            "CREATE TABLE inserts (a BIGINT UNSIGNED PRIMARY KEY, b BIGINT UNSIGNED NOT NULL, c BIGINT UNSIGNED NOT NULL, KEY (b), \
             KEY (c)) ENGINE={engine}"
        ))
        .map_err(failed)?;
    for first in (0..rows).step_by(FILL_ROWS as usize) {
        let values: Vec<String> = (first..rows.min(first + FILL_ROWS))
            .map(|key| {
                let [b, c] = numbers(key);
                format!("({key},{b},{c})")
            })
            .collect();
        connection.query_drop(format!("INSERT INTO inserts VALUES {}", values.join(","))).map_err(failed)?;
    }
    Ok(())
}

/// Seconds are compared, so there should be some; a quick run has no time for it.
fn time_of(settings: &Settings, least: Duration) -> Duration {
    (settings.scale.time * 2).max(if settings.is_quick { Duration::ZERO } else { least })
}

fn turn(
    engine: &str,
    rows: u32,
    (cases, time): (&[(usize, usize, &str)], Duration),
    server: &mut Running,
    turn: &mut Turn,
) -> Result<(), String> {
    let address = server.address.clone();
    if server.contender.is_iproto() {
        let space = make_space_in(&address, engine, "inserts", 2)?;
        fill(&address, space, ROW, 0, rows)?;
        let mut next = 0;
        for (writers, readers, case) in cases {
            let keys = Keys::Fresh { next, from: rows };
            let found = over_iproto(&address, space, rows, (*writers, *readers), keys, time)?;
            // Draws that were below `rows` were passed over: no more than all draws of the run, so the next ones are fresh for sure.
            next += 1 << 28;
            book(case, &found, turn);
        }
        return Ok(());
    }
    let engine = if server.contender == Contender::Myisam { "MyISAM" } else { "InnoDB" };
    make_table(&address, engine, rows)?;
    let mut next = 0;
    for (writers, readers, case) in cases {
        let (found, after) = over_sql(&address, rows, (*writers, *readers), next, time)?;
        next = after;
        book(case, &found, turn);
    }
    Ok(())
}

fn run(settings: &Settings, recorder: &mut Recorder) -> Result<(), String> {
    by_turns(settings, recorder, &CONTENDERS, settings.at_most(ROUNDS_MAX, 2), &|server, _, found| {
        turn("memtx", settings.scale.rows / 2, (&CASES, time_of(settings, TIME_MIN)), server, found)
    })
}

fn run_on_disk(settings: &Settings, recorder: &mut Recorder) -> Result<(), String> {
    use Contender::{Lycosa, LycosaWrite, Mariadb, MariadbDurable, Tarantool};
    let contenders = [Lycosa, LycosaWrite, Tarantool, Mariadb, MariadbDurable];
    by_turns_on_disk(settings, recorder, &contenders, settings.at_most(ROUNDS_MAX, 1), &|server, _, found| {
        let time = time_of(settings, DISK_TIME_MIN);
        turn(ENGINE, settings.scale.disk_rows / 5, (&DISK_CASES, time), server, found)
    })
}
