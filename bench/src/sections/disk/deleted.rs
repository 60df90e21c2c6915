//! The first row behind many that were deleted.

use super::{ROUNDS_MAX, SNAPSHOT, by_turns_on_disk, eval, make, row, settle_or_note};
use crate::compare::Settings;
use crate::contender::{Contender, Running};
use crate::results::{Recorder, Turn};
use crate::sections::Section;
use crate::sections::requests;
use load::wire::Value;
use std::time::Instant;

pub(crate) const SECTION: Section = Section {
    name: "disk-deleted",
    title: "On disk: the first row behind deleted ones",
    about: "The disk space is filled in the order of its keys and left until nothing is compacted; then its first rows are deleted, a million or half of all, a \
            thousand in a transaction. The first row that is left is asked for at once, again, and after a snapshot has brought the deletes to disk.",
    run: run_section,
};

/// Most rows that are deleted.
const DELETED_MAX: u32 = 1_000_000;

/// Milliseconds until the first row was there.
fn first_row(server: &Running, left: u32) -> Result<f64, String> {
    let begun = Instant::now();
    let found = eval(server, "return box.space.disk:select({}, { limit = 1 })[1][1]")?;
    let took = begun.elapsed().as_secs_f64() * 1000.0;
    let wanted = u64::from(load::FIRST_KEY) + u64::from(left);
    if found.unsigned() != Some(wanted) {
        return Err(format!("the first row has the key {wanted}; {found:?} was answered"));
    }
    Ok(took)
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
    turn.lower("at once", "first row", "ms", first_row(server, deleted)?);
    turn.lower("again", "first row", "ms", first_row(server, deleted)?);
    eval(server, SNAPSHOT)?;
    turn.lower("after a snapshot", "first row", "ms", first_row(server, deleted)?);
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
