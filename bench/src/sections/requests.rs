//! Single-row requests on the memory engine, at six shapes of load.

use super::Section;
use crate::compare::{Settings, by_turns};
use crate::contender::{Contender, Running};
use crate::results::{Recorder, Turn};
use load::{Client, Door, Drive, End, Flow, FlowOutcome, Keys, Latencies, Pace, Row, Share, Template, drive, process};

pub(crate) const SECTION: Section = Section {
    name: "requests",
    title: "Single rows in memory",
    about: "Rows of an unsigned key, a number and a string of 100 bytes. Keys of select, replace, update (a number \
            is added to) and upsert are random ones out of those that are there; insert adds rows in random order, with no \
            secondary index or with two, and delete takes the same rows away again; call is a Lua procedure that reads a row.",
    run,
};

/// Connections and requests in flight on each.
pub(crate) const SHAPES: [(usize, u32); 6] = [(1, 1), (16, 1), (64, 1), (1, 32), (16, 32), (4, 256)];
/// Those of a quick run.
const QUICK_SHAPES: [(usize, u32); 3] = [(1, 1), (16, 1), (4, 256)];
/// Connections and window while rows are put in.
const FILL: (usize, u32) = (2, 512);

/// The rows that most sections work on.
pub(crate) const ROW: Row = Row { numbers: 1, text_bytes: Some(100), letters: 0 };
/// Rows with two numbers to index.
pub(crate) const ROW_TWO: Row = Row { numbers: 2, text_bytes: Some(100), letters: 0 };

/// `4 x 256`.
pub(crate) fn shape_name((connections, depth): (usize, u32)) -> String {
    format!("{connections} x {depth}")
}

/// One kind of request in a closed loop over the binary protocol.
pub(crate) fn flow(
    address: &str,
    template: Template,
    (connections, depth): (usize, u32),
    keys: Keys,
    end: End,
) -> Flow {
    Flow {
        door: Door::Iproto,
        address: address.to_string(),
        login: None,
        connections,
        pace: Pace::Closed { depth },
        shares: vec![Share { weight: 1, template }],
        keys,
        end,
        may_break: false,
    }
}

/// Drives one flow.
pub(crate) fn run_flow(flow: Flow) -> Result<FlowOutcome, String> {
    let outcomes = drive(&[flow], Drive::default()).map_err(|error| error.to_string())?;
    Ok(outcomes.into_iter().next().expect("one flow has one outcome"))
}

/// Makes a space in memory with so many secondary indexes; its number.
pub(crate) fn make_space(address: &str, name: &str, secondaries: u32) -> Result<u64, String> {
    make_space_in(address, "memtx", name, secondaries)
}

/// Makes a space in an engine.
pub(crate) fn make_space_in(address: &str, engine: &str, name: &str, secondaries: u32) -> Result<u64, String> {
    let failed = |error: load::ClientError| format!("making the space `{name}`: {error}");
    let mut client = Client::connect(address, None).map_err(failed)?;
    let made = client.eval(&format!("return bench_make('{name}', {secondaries}, '{engine}')"), &[]).map_err(failed)?;
    made.unsigned().ok_or_else(|| format!("making the space `{name}` was answered by {made:?}"))
}

/// Puts in the rows `from..to`.
pub(crate) fn fill(address: &str, space: u64, row: Row, from: u32, to: u32) -> Result<(), String> {
    let end = End { requests: Some(u64::from(to - from)), time: None };
    let keys = Keys::Sequential { next: from, count: u32::MAX };
    run_flow(flow(address, Template::replace(space, row), FILL, keys, end))
        .map(|_| ())
        .map_err(|error| format!("filling: {error}"))
}

/// Drives a flow and books throughput, latency and processor time.
pub(crate) fn measure(server: &Running, turn: &mut Turn, case: &str, flow: Flow) -> Result<FlowOutcome, String> {
    let own = std::process::id();
    let (before, own_before) = (server.cpu_seconds()?, process::cpu_seconds(own)?);
    let outcome = run_flow(flow).map_err(|error| format!("{case}: {error}"))?;
    let (after, own_after) = (server.cpu_seconds()?, process::cpu_seconds(own)?);
    // Seconds for a million are microseconds for one.
    let each = |seconds: f64| seconds * 1e6 / outcome.responses.max(1) as f64;
    turn.higher(case, "requests", "1/s", outcome.per_second());
    let latencies = Latencies::of(&outcome.latencies);
    turn.lower(case, "latency, median", "us", latencies.median as f64);
    turn.lower(case, "latency, 99 %", "us", latencies.p99 as f64);
    turn.lower(case, "server CPU", "us each", each(after - before));
    turn.lower(case, "client CPU", "us each", each(own_after - own_before));
    Ok(outcome)
}

/// What is measured with Tarantool syncing: there only writes differ.
fn is_wanted(contender: Contender, operation: &str) -> bool {
    contender != Contender::TarantoolFsync || operation == "replace"
}

fn turn(settings: &Settings, server: &mut Running, round: u64, turn: &mut Turn) -> Result<(), String> {
    let (rows, time) = (settings.scale.rows, settings.scale.time);
    let address = server.address.clone();
    let plain = make_space(&address, "requests", 0)?;
    let two = make_space(&address, "two", 2)?;
    fill(&address, plain, ROW, 0, rows)?;
    if is_wanted(server.contender, "insert") {
        fill(&address, two, ROW_TWO, 0, rows)?;
    }
    let timed = End { requests: None, time: Some(time) };
    let shapes: &[(usize, u32)] = if settings.is_quick { &QUICK_SHAPES } else { &SHAPES };
    for shape in shapes {
        let keys = || Keys::uniform(rows, round);
        for (operation, template) in [
            ("select", Template::select(plain)),
            ("replace", Template::replace(plain, ROW)),
            ("update", Template::update(plain, "+", 1, 1)),
            ("upsert", Template::upsert(plain, ROW, "+", 1, 1)),
            ("call", Template::call("bench_get")),
        ] {
            if is_wanted(server.contender, operation) {
                let case = format!("{operation} {}", shape_name(*shape));
                let outcome = measure(server, turn, &case, flow(&address, template, *shape, keys(), timed))?;
                if matches!(operation, "select" | "replace") {
                    turn.latencies(&case, outcome.latencies);
                }
            }
        }
        for (space, row, insert, delete) in
            [(plain, ROW, "insert", "delete"), (two, ROW_TWO, "insert, 2 secondaries", "delete, 2 secondaries")]
        {
            if !is_wanted(server.contender, insert) {
                continue;
            }
            // Keys that are not there yet, in no order; afterwards all is as before.
            let keys = Keys::Fresh { next: 0, from: rows };
            let case = format!("{insert} {}", shape_name(*shape));
            let load = flow(&address, Template::insert(space, row), *shape, keys.clone(), timed);
            let added = measure(server, turn, &case, load)?.responses;
            let case = format!("{delete} {}", shape_name(*shape));
            let end = End { requests: Some(added), time: None };
            measure(server, turn, &case, flow(&address, Template::delete(space), *shape, keys, end))?;
        }
    }
    Ok(())
}

fn run(settings: &Settings, recorder: &mut Recorder) -> Result<(), String> {
    use Contender::{Lycosa, LycosaWrite, Tarantool, TarantoolFsync};
    let contenders = [Lycosa, LycosaWrite, Tarantool, TarantoolFsync];
    by_turns(settings, recorder, &contenders, u64::MAX, &|server, round, found| turn(settings, server, round, found))
}
