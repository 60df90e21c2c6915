//! The same requests on a space ten times as large.

use super::Section;
use super::requests::{ROW, ROW_TWO, fill, flow, make_space, measure};
use crate::compare::{Settings, by_turns};
use crate::contender::{Contender, Running};
use crate::results::{Recorder, Turn};
use load::{End, Keys, Template};

pub(crate) const SECTION: Section = Section {
    name: "size",
    title: "Ten times as many rows",
    about: "Single rows as above, 4 connections with 256 requests in flight, on the huge space, and on one of a tenth of its rows. What is \
            kept is the throughput at the full size over that at a tenth.",
    run,
};

const SHAPE: (usize, u32) = (4, 256);
/// Turns of each contender, at most: they are long.
const ROUNDS_MAX: u64 = 2;

fn at(
    settings: &Settings,
    server: &Running,
    plain: u64,
    two: u64,
    rows: u32,
    turn: &mut Turn,
) -> Result<Vec<f64>, String> {
    let time = settings.scale.time;
    let address = server.address.as_str();
    let timed = End { requests: None, time: Some(time) };
    let mut rates = Vec::new();
    for (operation, template, keys) in [
        ("select", Template::select(plain), Keys::uniform(rows, 1)),
        ("replace", Template::replace(plain, ROW), Keys::uniform(rows, 1)),
        ("update", Template::update(plain, "+", 1, 1), Keys::uniform(rows, 1)),
        ("upsert", Template::upsert(plain, ROW, "+", 1, 1), Keys::uniform(rows, 1)),
        // Two secondary indexes.
        ("insert", Template::insert(two, ROW_TWO), Keys::Fresh { next: 0, from: rows }),
    ] {
        let case = format!("{operation}, {rows} rows");
        let is_insert = operation == "insert";
        let outcome = measure(server, turn, &case, flow(address, template, SHAPE, keys.clone(), timed))?;
        rates.push(outcome.per_second());
        if is_insert {
            let end = End { requests: Some(outcome.responses), time: None };
            measure(
                server,
                turn,
                &format!("delete, {rows} rows"),
                flow(address, Template::delete(two), SHAPE, keys, end),
            )?;
        }
    }
    Ok(rates)
}

fn turn(settings: &Settings, server: &mut Running, turn: &mut Turn) -> Result<(), String> {
    let (few, many) = ((settings.scale.huge_rows / 10).max(1), settings.scale.huge_rows);
    let address = server.address.clone();
    let (plain, two) = (make_space(&address, "requests", 0)?, make_space(&address, "two", 2)?);
    let fill_both =
        |from, to| fill(&address, plain, ROW, from, to).and_then(|()| fill(&address, two, ROW_TWO, from, to));
    fill_both(0, few)?;
    let small = at(settings, server, plain, two, few, turn)?;
    fill_both(few, many)?;
    let large = at(settings, server, plain, two, many, turn)?;
    for (operation, (small, large)) in
        ["select", "replace", "update", "upsert", "insert"].iter().zip(small.into_iter().zip(large))
    {
        turn.higher(operation, "kept", "share", large / small);
    }
    Ok(())
}

fn run(settings: &Settings, recorder: &mut Recorder) -> Result<(), String> {
    let contenders = [Contender::Lycosa, Contender::Tarantool];
    by_turns(settings, recorder, &contenders, ROUNDS_MAX, &|server, _, found| turn(settings, server, found))
}
