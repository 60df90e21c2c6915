//! How long a start takes: with a snapshot, and with a log alone.

use super::Section;
use super::requests::{ROW, fill, make_space};
use super::stalls::EVENT_MAX;
use crate::compare::{Settings, by_turns};
use crate::contender::{Contender, Running};
use crate::results::{Recorder, Turn};
use load::Client;
use std::time::Instant;

pub(crate) const SECTION: Section = Section {
    name: "recovery",
    title: "Starts",
    about: "The big space is filled, the server killed and started again: once with nothing but its log, once with a snapshot of everything. \
            The time is from starting the process to the first answer of its application; the files are in the page cache.",
    run,
};

/// Turns of each contender, at most: they are long.
const ROUNDS_MAX: u64 = 2;

fn restart(server: &mut Running, rows: u32, case: &str, turn: &mut Turn) -> Result<(), String> {
    server.server()?.kill()?;
    let begun = Instant::now();
    server.server()?.restart()?;
    let seconds = begun.elapsed().as_secs_f64();
    turn.higher(case, "rows", "1/s", f64::from(rows) / seconds);
    turn.lower(case, "start", "s", seconds);
    let count = Client::connect(&server.address, None)
        .and_then(|mut client| client.eval("return box.space.big:len()", &[]))
        .map_err(|error| error.to_string())?;
    if count.unsigned() != Some(u64::from(rows)) {
        return Err(format!("{case}: {rows} rows were written, {count:?} are there"));
    }
    Ok(())
}

fn turn(settings: &Settings, server: &mut Running, turn: &mut Turn) -> Result<(), String> {
    let rows = settings.scale.big_rows;
    let space = make_space(&server.address, "big", 0)?;
    fill(&server.address, space, ROW, 0, rows)?;
    restart(server, rows, "from the log", turn)?;
    let begun = Instant::now();
    Client::connect(&server.address, None)
        .and_then(|mut client| client.wait_at_most(EVENT_MAX).and_then(|()| client.eval("box.snapshot()", &[])))
        .map_err(|error| error.to_string())?;
    turn.higher("snapshot", "rows", "1/s", f64::from(rows) / begun.elapsed().as_secs_f64());
    restart(server, rows, "from the snapshot", turn)
}

fn run(settings: &Settings, recorder: &mut Recorder) -> Result<(), String> {
    // What the log is synced by does not matter to who reads it.
    let contenders = [Contender::LycosaWrite, Contender::Tarantool];
    by_turns(settings, recorder, &contenders, settings.at_most(ROUNDS_MAX, 1), &|server, _, found| {
        turn(settings, server, found)
    })
}
