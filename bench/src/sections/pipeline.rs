//! Tens of thousands of requests in flight on one connection.

use super::Section;
use super::requests::{flow, make_space, measure};
use crate::compare::{Settings, by_turns};
use crate::contender::{Contender, Running};
use crate::results::{Recorder, Turn};
use load::{End, Keys, Row, Template};

pub(crate) const SECTION: Section = Section {
    name: "pipeline",
    title: "One connection, 36,000 requests in flight",
    about: "As many writes of distinct keys as the big space has rows, in order, then reads of random keys, all over one connection.",
    run,
};

const SHAPE: (usize, u32) = (1, 36_000);
/// Turns of each contender, at most.
const ROUNDS_MAX: u64 = 3;

fn turn(settings: &Settings, server: &mut Running, round: u64, turn: &mut Turn) -> Result<(), String> {
    let rows = settings.scale.big_rows;
    let space = make_space(&server.address, "pipeline", 0)?;
    let all = End { requests: Some(u64::from(rows)), time: None };
    let keys = Keys::Sequential { next: 0, count: rows };
    let write = flow(&server.address, Template::replace(space, Row::text(100)), SHAPE, keys, all);
    measure(server, turn, "write", write)?;
    let read = flow(&server.address, Template::select(space), SHAPE, Keys::uniform(rows, round), all);
    measure(server, turn, "read", read)?;
    Ok(())
}

fn run(settings: &Settings, recorder: &mut Recorder) -> Result<(), String> {
    let contenders = [Contender::Lycosa, Contender::LycosaWrite, Contender::Tarantool];
    by_turns(settings, recorder, &contenders, ROUNDS_MAX, &|server, round, found| turn(settings, server, round, found))
}
