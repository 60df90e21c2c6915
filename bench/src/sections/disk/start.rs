//! Starts on data that is on disk already.

use super::{ROUNDS_MAX, any_key, by_turns_on_disk, eval, fill, make, requests, run, settle_or_note};
use crate::compare::Settings;
use crate::contender::{Contender, Running};
use crate::results::{Recorder, Turn};
use crate::sections::Section;
use load::Template;
use load::Value;
use std::time::Instant;

pub(crate) const SECTION: Section = Section {
    name: "disk-start",
    title: "On disk: starts",
    about: "The disk space is filled, the server killed and started again: at once, when the last writes are in the log alone, and after a snapshot. \
            The time is from starting the process to the first answer of its application; the files are in the page cache.",
    run: run_section,
};

/// Rows that are looked for after a start.
const LOOKED_FOR: u32 = 1000;

fn restart(server: &mut Running, space: u64, rows: u32, case: &str, turn: &mut Turn) -> Result<(), String> {
    server.server()?.kill()?;
    let begun = Instant::now();
    server.server()?.restart()?;
    turn.lower(case, "start", "s", begun.elapsed().as_secs_f64());
    // All answers are checked: these rows are there.
    run(server, &mut Turn::default(), case, Template::select(space), any_key(rows, 1), requests(LOOKED_FOR))?;
    match eval(server, "return box.space.disk:len()")? {
        Value::Int(count) if count >= i128::from(rows) => Ok(()),
        other => Err(format!("{case}: {rows} rows were written, {other:?} are there")),
    }
}

fn turn(settings: &Settings, server: &mut Running, turn: &mut Turn) -> Result<(), String> {
    let rows = settings.scale.disk_rows;
    let space = make(server, "disk", 0)?;
    fill(server, space, rows)?;
    restart(server, space, rows, "after the fill", turn)?;
    settle_or_note(server, turn)?;
    restart(server, space, rows, "after a snapshot", turn)
}

fn run_section(settings: &Settings, recorder: &mut Recorder) -> Result<(), String> {
    let contenders = [Contender::LycosaWrite, Contender::Tarantool];
    by_turns_on_disk(settings, recorder, &contenders, settings.at_most(ROUNDS_MAX, 1), &|server, _, found| {
        turn(settings, server, found)
    })
}
