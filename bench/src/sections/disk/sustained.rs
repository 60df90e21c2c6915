//! Overwrites that go on for long, and what they cost the disk.

use super::{
    LOOK, ROW_BYTES, SNAPSHOT, any_key, book_evenness, by_turns_on_disk, eval, fill, make, note_rocksdb, requests, row,
    rows_bytes, run, settle_or_note, timed, zipf_key,
};
use crate::compare::Settings;
use crate::contender::{Contender, Running};
use crate::results::{Recorder, Turn};
use crate::sections::Section;
use crate::sections::requests::{flow, measure};
use crate::tools::RocksDb;
use load::{Flow, Pace, Template, process};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

pub(crate) const SECTION: Section = Section {
    name: "disk-sustained",
    title: "On disk: overwrites for long",
    about: "The disk space is filled and compacted. Then five times as many overwrites of uniformly chosen rows as there are rows; overwrites by a zipf distribution \
            (exponent 0.99) as fast as they go for a third of the time, which gives the peak; and the same evenly at 80 % of that, with latency from when each was due. Write amplification \
            is what the process had written to the device, log included, for each byte of rows put in. Space amplification is the most that the files \
            with rows took at a time over what they took when everything was compacted. RocksDB runs at its defaults, uniformly, as fast as it goes.",
    run: run_section,
};

/// Shortest measurement of the peak.
const PEAK_MIN: Duration = Duration::from_secs(2);
/// Part of the peak that is asked for steadily.
const STEADY: f64 = 0.8;
/// Turns of each contender, at most.
const ROUNDS_MAX: u64 = 1;
/// Uniform overwrites for each row: as many as bring files to the shape that they keep.
const OVERWRITES: u32 = 5;
/// Connections and window of the steady load.
const WINDOW: (usize, u32) = (4, 4096);

/// Runs some work while somebody looks at the size of the files; the most that was seen.
fn watched<T>(server: &Running, work: impl FnOnce() -> Result<T, String>) -> Result<(T, u64), String> {
    let (is_over, most) = (AtomicBool::new(false), AtomicU64::new(rows_bytes(server)));
    let done = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                most.fetch_max(rows_bytes(server), Ordering::Relaxed);
                std::thread::sleep(LOOK);
            }
        });
        let done = work();
        is_over.store(true, Ordering::Relaxed);
        done
    });
    Ok((done?, most.into_inner()))
}

fn turn_rocksdb(settings: &Settings, running: &Running, turn: &mut Turn) -> Result<(), String> {
    note_rocksdb(turn);
    let rows = settings.scale.disk_rows;
    let db = RocksDb { dir: running.dir(), rows: u64::from(rows), memory: None };
    db.run("filluniquerandom,compact", &[])?;
    let compacted = rows_bytes(running);
    let writes = format!("--writes={}", rows.saturating_mul(OVERWRITES));
    let again = ["--use_existing_db=1".to_string(), "--histogram=1".to_string(), writes];
    let (report, most) = watched(running, || db.run("overwrite,flush,waitforcompaction,stats", &again))?;
    turn.higher("uniform", "requests", "1/s", report.per_second("overwrite")?);
    if let Some(amplification) = report.write_amplification() {
        turn.lower("uniform", "write amplification", "times", amplification);
    }
    turn.lower("uniform", "space amplification", "times", most as f64 / compacted.max(1) as f64);
    if let Some(us) = report.percentile("P99.9") {
        turn.lower("uniform", "latency, 99.9 %", "ms", us / 1000.0);
    }
    Ok(())
}

/// Books what a run of overwrites did to the disk.
fn book_disk(turn: &mut Turn, case: &str, written: u64, count: u64, most: u64, compacted: u64) {
    turn.lower(case, "write amplification", "times", written as f64 / (count.max(1) * ROW_BYTES) as f64);
    turn.lower(case, "space amplification", "times", most as f64 / compacted.max(1) as f64);
}

fn turn(settings: &Settings, server: &mut Running, round: u64, turn: &mut Turn) -> Result<(), String> {
    if server.contender == Contender::Rocksdb {
        return turn_rocksdb(settings, server, turn);
    }
    let rows = settings.scale.disk_rows;
    let space = make(server, "disk", 0)?;
    fill(server, space, rows)?;
    eval(server, SNAPSHOT)?;
    eval(server, "box.space.disk.index.primary:compact()")?;
    settle_or_note(server, turn)?;
    // Files that only an older checkpoint wants are not live data.
    eval(server, SNAPSHOT)?;
    eval(server, SNAPSHOT)?;
    let compacted = rows_bytes(server);
    let replace = || Template::replace(space, row());
    let server = &*server;

    let before = process::written_bytes(server.pid())?;
    let (outcome, most) = watched(server, || {
        let outcome =
            run(server, turn, "uniform", replace(), any_key(rows, round), requests(rows.saturating_mul(OVERWRITES)))?;
        // What was put off is part of the price.
        settle_or_note(server, turn)?;
        Ok(outcome)
    })?;
    let written = process::written_bytes(server.pid())?.saturating_sub(before);
    book_disk(turn, "uniform", written, outcome.responses, most, compacted);
    book_evenness(turn, "uniform", &outcome);

    let is_trial = settings.scale.time < Duration::from_millis(100);
    let peak_time = if is_trial { settings.scale.time } else { (settings.scale.sustained / 3).max(PEAK_MIN) };
    let peak = run(server, turn, "peak", replace(), zipf_key(rows, round), timed(peak_time))?.per_second();
    let steady = flow(&server.address, replace(), WINDOW, zipf_key(rows, round + 1), timed(settings.scale.sustained));
    let steady = Flow { pace: Pace::Open { rate: STEADY * peak, depth_max: WINDOW.1 }, ..steady };
    let before = process::written_bytes(server.pid())?;
    let (outcome, most) = watched(server, || measure(server, turn, "steady", steady))?;
    let written = process::written_bytes(server.pid())?.saturating_sub(before);
    book_disk(turn, "steady", written, outcome.responses, most, compacted);
    book_evenness(turn, "steady", &outcome);
    turn.latencies("steady", outcome.latencies);
    Ok(())
}

fn run_section(settings: &Settings, recorder: &mut Recorder) -> Result<(), String> {
    let contenders = [Contender::Lycosa, Contender::LycosaWrite, Contender::Tarantool, Contender::Rocksdb];
    by_turns_on_disk(settings, recorder, &contenders, settings.at_most(ROUNDS_MAX, 1), &|server, round, found| {
        turn(settings, server, round, found)
    })
}
