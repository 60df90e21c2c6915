//! Reads of rows that memory does not hold: from the page cache, from the device, and of keys that there are not.

use super::{
    ROUNDS_MAX, SHAPE, any_key, by_turns_on_disk, fill, make, note_rocksdb, requests, rocksdb, row, run,
    settle_or_note, timed, zipf_key,
};
use crate::cgroup::{Cgroup, forget_pages};
use crate::compare::Settings;
use crate::contender::{Contender, Running};
use crate::results::{Recorder, Turn};
use crate::sections::Section;
use crate::sections::requests::{flow, make_space, measure, run_flow};
use crate::tools::{ROCKSDB_ROW_BYTES, device_reads};
use load::{Keys, Template, process};
use std::time::Duration;

pub(crate) const SECTION: Section = Section {
    name: "disk-read",
    title: "On disk: reads",
    about: "The disk space is filled in random order and left until nothing is compacted any more. Then reads of random rows, 4 connections with 256 requests in \
            flight: all files in the page cache; keys by a zipf distribution (exponent 0.99), beside the memory engine with the same rows; and cold, in a \
            control group whose limit leaves the page cache a tenth of the data. RocksDB: `readrandom`, 4 threads, cold 64 and past the page cache. fio: random reads of \
            4 KiB past the page cache, the best of depths 32 and 256.",
    run: run_reads,
};

pub(crate) const MISSING: Section = Section {
    name: "disk-missing",
    title: "On disk: keys that do not exist",
    about: "The same space, cold: reads of rows that are there, then of keys that lie between them and are not there, each asked for once.",
    run: run_missing,
};

/// Shortest measurement: caches fill while it runs.
const TIME_MIN: Duration = Duration::from_secs(1);
/// The page cache's part of the data when reads are cold.
const PAGE_CACHE_PART: u64 = 10;
/// A cache is full when a measurement's reads make it grow by less than such a part of it.
const CACHE_STEPS: u64 = 50;
const FILL_STEPS_MAX: u64 = 60;
/// What comes on top: tables and sockets that the kernel keeps for a process, and the buffers of 1,024 reads that go to the device at once.
const SLACK_BYTES: u64 = (8 << 20) + 1024 * (16 << 10);
const ROCKSDB_THREADS: u32 = 4;
/// Reads of RocksDB block their thread, so it takes many to keep the device busy.
const ROCKSDB_THREADS_COLD: u32 = 64;

fn time_of(settings: &Settings) -> Duration {
    // A trial of this program may be shorter.
    if settings.scale.time < Duration::from_millis(100) {
        settings.scale.time
    } else {
        (4 * settings.scale.time).max(TIME_MIN)
    }
}

/// Bytes of all rows on disk, about: half of what they are on the wire.
fn data_bytes(rows: u32) -> u64 {
    u64::from(rows) * ROCKSDB_ROW_BYTES / 2
}

/// Leaves the server so much memory as it takes for itself with full caches, and a little of the page cache.
fn make_cold(settings: &Settings, server: &Running, group: &Cgroup, space: u64) -> Result<(), String> {
    let rows = settings.scale.disk_rows;
    let step_bytes = (settings.places.disk_memory.cache_bytes / CACHE_STEPS).max(1 << 20);
    // A server that grows beyond the limit later, by its caches or by the requests that wait for the device, would be killed for it.
    for step in 0..FILL_STEPS_MAX {
        let before = group.own_bytes()?;
        forget_pages(server.dir())?;
        warm(server, Template::select(space), any_key(rows, 1000 + step), time_of(settings))?;
        if group.own_bytes()?.saturating_sub(before) < step_bytes {
            break;
        }
    }
    forget_pages(server.dir())?;
    group.limit(group.own_bytes()? + step_bytes + SLACK_BYTES + data_bytes(rows) / PAGE_CACHE_PART)?;
    // What the kernel read ahead meanwhile.
    forget_pages(server.dir())
}

/// The group that a server is put into; a remark if there can be none.
fn group_of(server: &Running, rows: u32, turn: &mut Turn) -> Option<Cgroup> {
    if data_bytes(rows) < 4 * SLACK_BYTES {
        turn.notes.push("So few rows fit into what the page cache has to be left: cold reads say little.".to_string());
    }
    let group = Cgroup::new().and_then(|group| group.hold(server.pid()).map(|()| group));
    group.map_err(|error| turn.notes.push(format!("Cold reads were not measured: {error}."))).ok()
}

/// Reads for a time, and what came from the device for each; the rate.
fn read(
    server: &Running,
    turn: &mut Turn,
    case: &str,
    template: Template,
    keys: Keys,
    time: Duration,
) -> Result<f64, String> {
    let before = process::device_read_bytes(server.pid())?;
    let outcome = run(server, turn, case, template, keys, timed(time))?;
    let bytes = process::device_read_bytes(server.pid())?.saturating_sub(before);
    turn.lower(case, "read from the device", "bytes each", bytes as f64 / outcome.responses.max(1) as f64);
    let rate = outcome.per_second();
    turn.latencies(case, outcome.latencies);
    Ok(rate)
}

/// Reads that nobody looks at: caches get their content.
fn warm(server: &Running, template: Template, keys: Keys, time: Duration) -> Result<(), String> {
    run(server, &mut Turn::default(), "warm", template, keys, timed(time)).map(|_| ())
}

fn read_rocksdb(settings: &Settings, running: &Running, is_missing: bool, turn: &mut Turn) -> Result<(), String> {
    note_rocksdb(turn);
    let db = rocksdb(settings, running, settings.scale.disk_rows);
    // Every key once; `fillrandom` leaves a third of them out.
    db.run("filluniquerandom,waitforcompaction", &[])?;
    let seconds = time_of(settings).as_secs().max(1);
    let options = |threads: u32, is_direct: bool| {
        let direct = if is_direct { 1 } else { 0 };
        [
            "--use_existing_db=1".to_string(),
            format!("--use_direct_reads={direct}"),
            format!("--threads={threads}"),
            format!("--duration={seconds}"),
        ]
    };
    let mut book = |case: &str, benchmark: &str, options: &[String]| -> Result<(), String> {
        let report = db.run(benchmark, options)?;
        turn.higher(case, "requests", "1/s", report.per_second(benchmark)?);
        Ok(())
    };
    if is_missing {
        book("cold", "readrandom", &options(ROCKSDB_THREADS_COLD, true))?;
        return book("missing", "readmissing", &options(ROCKSDB_THREADS, true));
    }
    book("page cache", "readrandom", &options(ROCKSDB_THREADS, false))?;
    book("cold", "readrandom", &options(ROCKSDB_THREADS_COLD, true))?;
    book("cold, one by one", "readrandom", &options(1, true))
}

fn read_device(settings: &Settings, running: &Running, turn: &mut Turn) -> Result<(), String> {
    let bytes = data_bytes(settings.scale.disk_rows).max(64 << 20);
    let time = time_of(settings);
    turn.higher("cold, one by one", "requests", "1/s", device_reads(running.dir(), bytes, 1, time)?);
    let deep = [32, 256].map(|depth| device_reads(running.dir(), bytes, depth, time));
    let best = deep.into_iter().collect::<Result<Vec<f64>, String>>()?.into_iter().fold(0.0, f64::max);
    turn.higher("cold", "requests", "1/s", best);
    Ok(())
}

fn turn_reads(settings: &Settings, server: &mut Running, round: u64, turn: &mut Turn) -> Result<(), String> {
    let (rows, time) = (settings.scale.disk_rows, time_of(settings));
    match server.contender {
        Contender::Rocksdb => return read_rocksdb(settings, server, false, turn),
        Contender::Device => return read_device(settings, server, turn),
        _ => {}
    }
    let group = group_of(server, rows, turn);
    let space = make(server, "disk", 0)?;
    fill(server, space, rows)?;
    settle_or_note(server, turn)?;
    let select = || Template::select(space);
    warm(server, select(), any_key(rows, round + 1), time)?;
    read(server, turn, "page cache", select(), any_key(rows, round), time)?;
    warm(server, select(), zipf_key(rows, round + 1), time)?;
    let on_disk = read(server, turn, "zipf", select(), zipf_key(rows, round), time)?;
    if let Some(group) = &group {
        make_cold(settings, server, group, space)?;
        read(server, turn, "cold", select(), any_key(rows, round), time)?;
        let one = flow(&server.address, select(), (1, 1), any_key(rows, round + 2), timed(time));
        measure(server, turn, "cold, one by one", one)?;
        group.unlimit()?;
    }
    let memory = make_space(&server.address, "memory", 0)?;
    let fill = flow(&server.address, Template::replace(memory, row()), SHAPE, Keys::scattered(0), requests(rows));
    run_flow(fill)?;
    let in_memory = read(server, turn, "zipf, memory engine", Template::select(memory), zipf_key(rows, round), time)?;
    turn.higher("zipf", "of the memory engine", "share", on_disk / in_memory);
    Ok(())
}

fn turn_missing(settings: &Settings, server: &mut Running, round: u64, turn: &mut Turn) -> Result<(), String> {
    let (rows, time) = (settings.scale.disk_rows, time_of(settings));
    if server.contender == Contender::Rocksdb {
        return read_rocksdb(settings, server, true, turn);
    }
    let group = group_of(server, rows, turn);
    let space = make(server, "disk", 0)?;
    fill(server, space, rows)?;
    settle_or_note(server, turn)?;
    warm(server, Template::select(space), any_key(rows, round + 1), time)?;
    let there = match &group {
        Some(group) => {
            make_cold(settings, server, group, space)?;
            Some(read(server, turn, "cold", Template::select(space), any_key(rows, round), time)?)
        }
        None => None,
    };
    let missing = read(server, turn, "missing", Template::select_missing(space), Keys::scattered(rows), time)?;
    if let Some(there) = there {
        turn.higher("missing", "of reads that go to the device", "times", missing / there);
    }
    Ok(())
}

/// What the log is synced by does not matter to who reads.
fn run_reads(settings: &Settings, recorder: &mut Recorder) -> Result<(), String> {
    let contenders = [Contender::LycosaWrite, Contender::Tarantool, Contender::Rocksdb, Contender::Device];
    by_turns_on_disk(settings, recorder, &contenders, settings.at_most(ROUNDS_MAX, 1), &|server, round, found| {
        turn_reads(settings, server, round, found)
    })
}

fn run_missing(settings: &Settings, recorder: &mut Recorder) -> Result<(), String> {
    let contenders = [Contender::LycosaWrite, Contender::Tarantool, Contender::Rocksdb];
    by_turns_on_disk(settings, recorder, &contenders, settings.at_most(ROUNDS_MAX, 1), &|server, round, found| {
        turn_missing(settings, server, round, found)
    })
}
