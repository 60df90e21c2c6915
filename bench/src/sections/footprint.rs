//! Memory that rows take.

use super::Section;
use super::requests::{fill, make_space};
use crate::compare::{Settings, by_turns};
use crate::contender::{Contender, Running};
use crate::results::{Recorder, Turn};
use load::{Row, process};

pub(crate) const SECTION: Section = Section {
    name: "memory",
    title: "Memory for a row",
    about: "Resident memory of the process before and after a space is filled, for each row: a key, a number for each secondary index, and a string \
            of 20, 100 or 1,000 bytes. One server, one space after the other.",
    run,
};

const TEXT_BYTES: [usize; 3] = [20, 100, 1000];
const SECONDARIES: [u32; 3] = [0, 1, 3];
/// Rows of 1,000 bytes are so many times fewer.
const LONG_ROWS_PART: u32 = 4;
/// Turns of each contender, at most: figures hardly differ from turn to turn.
const ROUNDS_MAX: u64 = 3;

fn turn(settings: &Settings, server: &mut Running, turn: &mut Turn) -> Result<(), String> {
    let address = server.address.clone();
    // Buffers of connections and the log are there before the first measurement.
    let warm = make_space(&address, "warm", 0)?;
    fill(&address, warm, Row::text(100), 0, (settings.scale.rows / 10).max(1))?;
    for text_bytes in TEXT_BYTES {
        let rows = settings.scale.rows / if text_bytes == 1000 { LONG_ROWS_PART } else { 1 };
        for secondaries in SECONDARIES {
            let before = process::resident_bytes(server.pid())?;
            let space = make_space(&address, &format!("rows_{text_bytes}_{secondaries}"), secondaries)?;
            let row = Row { numbers: secondaries, text_bytes: Some(text_bytes), letters: 0 };
            fill(&address, space, row, 0, rows.max(1))?;
            let after = process::resident_bytes(server.pid())?;
            let case = format!("{text_bytes} bytes, {secondaries} secondaries");
            turn.lower(&case, "memory", "bytes each", (after as f64 - before as f64) / f64::from(rows.max(1)));
        }
    }
    Ok(())
}

fn run(settings: &Settings, recorder: &mut Recorder) -> Result<(), String> {
    let contenders = [Contender::Lycosa, Contender::Tarantool];
    by_turns(settings, recorder, &contenders, settings.at_most(ROUNDS_MAX, 1), &|server, _, found| {
        turn(settings, server, found)
    })
}
