//! The first row behind many that were deleted.

use super::{ROUNDS_MAX, SNAPSHOT, by_turns_on_disk, eval, make, row, settle_or_note};
use crate::compare::Settings;
use crate::contender::{Contender, Running};
use crate::results::{Recorder, Turn};
use crate::sections::Section;
use crate::sections::requests;
use load::Client;
use load::Value;
use std::time::{Duration, Instant};

pub(crate) const SECTION: Section = Section {
    name: "disk-deleted",
    title: "On disk: the first row behind deleted ones",
    about: "The disk space is filled in the order of its keys and left until nothing is compacted; then its first rows are deleted, a million or half of all, a \
            thousand in a transaction. The first row that is left is asked for at once, again, and after a snapshot has brought the deletes to disk. Who \
            does not answer in time is not asked again.",
    run: run_section,
};

/// Most rows that are deleted.
const DELETED_MAX: u32 = 1_000_000;

/// Longest wait for one row.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// Books the milliseconds until the first row was there. False if it did not come in time.
fn book_first_row(server: &Running, turn: &mut Turn, case: &str, left: u32) -> Result<bool, String> {
    let begun = Instant::now();
    let mut client = Client::connect(&server.address, None).map_err(|error| error.to_string())?;
    client.wait_at_most(ANSWER_MAX).map_err(|error| error.to_string())?;
    let found = match client.eval("return box.space.disk:select({}, { limit = 1 })[1][1]", &[]) {
        Ok(found) => found,
        Err(_) if begun.elapsed() >= ANSWER_MAX => {
            let (label, seconds) = (server.contender.label(), ANSWER_MAX.as_secs());
            turn.notes.push(format!("{label} did not answer within {seconds} s ({case})."));
            return Ok(false);
        }
        Err(error) => return Err(format!("the first row: {error}")),
    };
    let took = begun.elapsed().as_secs_f64() * 1000.0;
    let wanted = u64::from(load::FIRST_KEY) + u64::from(left);
    if found.unsigned() != Some(wanted) {
        return Err(format!("the first row has the key {wanted}; {found:?} was answered"));
    }
    turn.lower(case, "first row", "ms", took);
    Ok(true)
}

fn turn(settings: &Settings, server: &mut Running, turn: &mut Turn) -> Result<(), String> {
    let rows = settings.scale.disk_rows;
    let deleted = DELETED_MAX.min(rows / 2);
    let space = make(server, "disk", 0)?;
    requests::fill(&server.address, space, row(), 0, rows)?;
    settle_or_note(server, turn)?;
    let begun = Instant::now();
    eval(server, &format!("bench_delete_first('disk', {deleted})"))?;
    turn.higher("deleted one by one", "rows", "1/s", f64::from(deleted) / begun.elapsed().as_secs_f64());
    if !book_first_row(server, turn, "at once", deleted)? || !book_first_row(server, turn, "again", deleted)? {
        return Ok(());
    }
    eval(server, SNAPSHOT)?;
    if !book_first_row(server, turn, "after a snapshot", deleted)? {
        return Ok(());
    }
    match eval(server, "return box.space.disk:count()")? {
        Value::Int(count) if count == i128::from(rows - deleted) => Ok(()),
        other => Err(format!("{} rows are left; {other:?} were counted", rows - deleted)),
    }
}

fn run_section(settings: &Settings, recorder: &mut Recorder) -> Result<(), String> {
    let contenders = [Contender::Lycosa, Contender::Tarantool];
    by_turns_on_disk(settings, recorder, &contenders, settings.at_most(ROUNDS_MAX, 1), &|server, _, found| {
        turn(settings, server, found)
    })
}
