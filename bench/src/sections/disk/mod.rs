//! The engines whose rows are on disk, on data that is larger than the memory that they may take.
//!
//! Rows have a key and a string of 100 bytes that compresses to about a half, as the values of `db_bench` do. Keys are put anywhere among all numbers, so that
//! their order is no help, and a key that does not exist lies between others.

pub(crate) mod deleted;
pub(crate) mod read;
pub(crate) mod start;
pub(crate) mod sustained;
pub(crate) mod write;

use super::requests::{flow, make_space_in, measure};
use super::stalls::EVENT_MAX;
use crate::cgroup::files_below;
use crate::compare::{Settings, Work, by_turns};
use crate::contender::{Contender, Running};
use crate::report::median;
use crate::results::{Recorder, Turn};
use crate::tools::{RocksDb, RocksDbMemory};
use load::Value;
use load::{Client, End, FlowOutcome, Keys, Latencies, Row, Second, Template, process};
use std::time::{Duration, Instant};

/// The engine's name in Tarantool and, for those who come from there, in Lycosa.
pub(crate) const ENGINE: &str = "vinyl";
/// Connections and requests in flight on each.
const SHAPE: (usize, u32) = (4, 256);
/// Turns of each contender, at most: they are long.
const ROUNDS_MAX: u64 = 3;
/// How often somebody looks whether something is over.
const LOOK: Duration = Duration::from_millis(200);
/// Longest wait for dumps and compactions to end.
const IDLE_MAX: Duration = Duration::from_secs(600);
/// An engine between two pieces of work is not idle: it has been so often in a row.
const IDLE_LOOKS: u32 = 5;
/// Part of a processor that somebody idle takes at most; processor time comes in steps of 10 ms.
const IDLE_PART: f64 = 0.1;
/// Bytes of the string of a row.
const TEXT_BYTES: usize = 100;

fn row() -> Row {
    Row::dense(TEXT_BYTES)
}

/// Bytes of a row on the wire: array, key, head of the string, string.
const ROW_BYTES: u64 = 1 + 5 + 2 + TEXT_BYTES as u64;

/// Turns of servers that have an engine for rows on disk, and of tools; who has none is named as missing.
pub(crate) fn by_turns_on_disk(
    settings: &Settings,
    recorder: &mut Recorder,
    contenders: &[Contender],
    rounds_max: u64,
    work: &Work<'_>,
) -> Result<(), String> {
    by_turns(settings, recorder, contenders, rounds_max, &|server, round, turn| {
        if server.contender.is_iproto()
            && eval(server, &format!("return bench_has_engine('{ENGINE}')"))? != Value::Bool(true)
        {
            turn.absence = Some(format!("it has no engine {ENGINE}"));
            return Ok(());
        }
        work(server, round, turn)
    })
}

/// A space on disk, empty.
fn make(server: &Running, name: &str, secondaries: u32) -> Result<u64, String> {
    make_space_in(&server.address, ENGINE, name, secondaries)
}

/// Any of the keys that a fill with `rows` rows has put in.
fn any_key(rows: u32, seed: u64) -> Keys {
    Keys::Scattered(Box::new(Keys::uniform(rows, seed)))
}

fn zipf_key(rows: u32, seed: u64) -> Keys {
    Keys::Scattered(Box::new(Keys::zipf(rows, 0.99, seed)))
}

/// Answers of whole seconds.
fn whole_seconds(series: &[Second], seconds: f64) -> Vec<f64> {
    series.iter().filter(|second| f64::from(second.at) + 1.0 <= seconds).map(|second| second.responses as f64).collect()
}

/// Books how evenly a run went.
fn book_evenness(turn: &mut Turn, case: &str, outcome: &FlowOutcome) {
    let seconds = whole_seconds(&outcome.series, outcome.seconds);
    if !seconds.is_empty() {
        let normal = median(&seconds);
        let worst = seconds.iter().copied().fold(f64::MAX, f64::min);
        turn.higher(case, "worst second", "1/s", worst);
        turn.higher(case, "worst second, of the median", "share", worst / normal);
    }
    let latencies = Latencies::of(&outcome.latencies);
    turn.lower(case, "latency, 99.9 %", "ms", latencies.p999 as f64 / 1000.0);
    turn.lower(case, "slowest request", "ms", latencies.max as f64 / 1000.0);
    turn.lower(case, "slowest request, of the median", "times", latencies.max as f64 / latencies.median.max(1) as f64);
    turn.series(case, "requests a second", seconds, None);
}

/// So many requests of one kind, over all connections.
fn run(
    server: &Running,
    turn: &mut Turn,
    case: &str,
    template: Template,
    keys: Keys,
    end: End,
) -> Result<FlowOutcome, String> {
    measure(server, turn, case, flow(&server.address, template, SHAPE, keys, end))
}

fn requests(count: u32) -> End {
    End { requests: Some(u64::from(count.max(1))), time: None }
}

fn timed(time: Duration) -> End {
    End { requests: None, time: Some(time) }
}

/// Puts in the first `rows` of the scattered keys.
fn fill(server: &Running, space: u64, rows: u32) -> Result<(), String> {
    let mut unseen = Turn::default();
    run(server, &mut unseen, "fill", Template::replace(space, row()), Keys::scattered(0), requests(rows)).map(|_| ())
}

/// Evaluates something that may take its time.
fn eval(server: &Running, script: &str) -> Result<Value, String> {
    Client::connect(&server.address, None)
        .and_then(|mut client| client.wait_at_most(EVENT_MAX).and_then(|()| client.eval(script, &[])))
        .map_err(|error| format!("{script}: {error}"))
}

/// Makes a checkpoint, after the one that a server may be making on its own.
pub(crate) const SNAPSHOT: &str = "while not pcall(box.snapshot) do require('fiber').sleep(0.01) end";

/// Brings what is in memory to disk and waits until dumps and compactions are over: until the server takes hardly any processor time and writes
/// nothing. False if they did not end in time.
fn settle(server: &Running) -> Result<bool, String> {
    eval(server, SNAPSHOT)?;
    let begun = Instant::now();
    let done = || Ok::<_, String>((server.cpu_seconds()?, process::written_bytes(server.pid())?));
    let (mut before, mut idle_looks) = (done()?, 0);
    while idle_looks < IDLE_LOOKS {
        if begun.elapsed() > IDLE_MAX {
            return Ok(false);
        }
        std::thread::sleep(LOOK);
        let now = done()?;
        let is_idle = now.0 - before.0 <= IDLE_PART * LOOK.as_secs_f64() && now.1 == before.1;
        idle_looks = if is_idle { idle_looks + 1 } else { 0 };
        before = now;
    }
    Ok(true)
}

/// The same, with a remark if they did not.
fn settle_or_note(server: &Running, turn: &mut Turn) -> Result<(), String> {
    if !settle(server)? {
        turn.notes.push(format!("{} was still compacting after {} s.", server.contender.label(), IDLE_MAX.as_secs()));
    }
    Ok(())
}

/// Bytes of the files that hold rows: logs and snapshots of the memory engine are none of these.
fn rows_bytes(server: &Running) -> u64 {
    let is_log =
        |name: &str| [".xlog", ".snap", ".log"].iter().any(|end| name.trim_end_matches(".inprogress").ends_with(end));
    let files = files_below(server.dir());
    // A file may go away between its name and its length.
    files
        .iter()
        .filter(|file| !is_log(&file.to_string_lossy()))
        .filter_map(|file| file.metadata().ok())
        .map(|file| file.len())
        .sum()
}

/// RocksDB with as much memory as the others.
fn rocksdb<'a>(settings: &Settings, running: &'a Running, rows: u32) -> RocksDb<'a> {
    let memory = settings.places.disk_memory;
    let memory = RocksDbMemory { write_bytes: memory.write_bytes, cache_bytes: memory.cache_bytes };
    RocksDb { dir: running.dir(), rows: u64::from(rows), memory: Some(memory) }
}

/// What must be said beside figures of RocksDB.
fn note_rocksdb(turn: &mut Turn) {
    turn.notes.push(
        "RocksDB is called in its own process, without a network, by the `db_bench` of the Debian package, which is built with assertions and \
         says of itself that they slow it down."
            .to_string(),
    );
}
