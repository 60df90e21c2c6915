//! Writes of rows that memory does not hold.

use super::{ROUNDS_MAX, any_key, book_evenness, by_turns_on_disk, make, note_rocksdb, requests, rocksdb, row, run};
use crate::compare::Settings;
use crate::contender::{Contender, Running};
use crate::results::{Recorder, Turn};
use crate::sections::Section;
use load::{FlowOutcome, Keys, Template, process};

pub(crate) const SECTION: Section = Section {
    name: "disk-write",
    title: "On disk: writes",
    about: "Rows of a key and 100 bytes, 4 connections with 256 requests in flight: writes (replaces) of as many distinct keys as the disk space has rows, in \
            random order, into an empty space; then half as many replaces of random ones of them, then a quarter of that of inserts, which look whether the key \
            is there. RocksDB: `db_bench fillrandom` and `overwrite`, its log on and not synced, in one thread.",
    run: run_section,
};

fn book(
    server: &Running,
    turn: &mut Turn,
    case: &str,
    outcome: FlowOutcome,
    written_before: u64,
) -> Result<(), String> {
    let written = process::written_bytes(server.pid())?.saturating_sub(written_before);
    turn.lower(case, "written to the device", "bytes each", written as f64 / outcome.responses.max(1) as f64);
    book_evenness(turn, case, &outcome);
    turn.latencies(case, outcome.latencies);
    Ok(())
}

fn turn(settings: &Settings, server: &mut Running, round: u64, turn: &mut Turn) -> Result<(), String> {
    let rows = settings.scale.disk_rows;
    if server.contender == Contender::Rocksdb {
        note_rocksdb(turn);
        let db = rocksdb(settings, server, rows);
        let report = db.run("fillrandom", &[])?;
        turn.higher("write", "requests", "1/s", report.per_second("fillrandom")?);
        let again = ["--use_existing_db=1".to_string(), format!("--writes={}", rows / 2)];
        let report = db.run("overwrite", &again)?;
        turn.higher("overwrite", "requests", "1/s", report.per_second("overwrite")?);
        return Ok(());
    }
    let space = make(server, "disk", 0)?;
    for (case, template, keys, count) in [
        ("write", Template::replace(space, row()), Keys::scattered(0), rows),
        ("overwrite", Template::replace(space, row()), any_key(rows, round), rows / 2),
        ("insert", Template::insert(space, row()), Keys::scattered(rows), rows / 8),
    ] {
        let written = process::written_bytes(server.pid())?;
        let outcome = run(server, turn, case, template, keys, requests(count))?;
        book(server, turn, case, outcome, written)?;
    }
    Ok(())
}

fn run_section(settings: &Settings, recorder: &mut Recorder) -> Result<(), String> {
    let contenders = [Contender::Lycosa, Contender::LycosaWrite, Contender::Tarantool, Contender::Rocksdb];
    by_turns_on_disk(settings, recorder, &contenders, settings.at_most(ROUNDS_MAX, 1), &|server, round, found| {
        turn(settings, server, round, found)
    })
}
