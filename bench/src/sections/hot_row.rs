//! One row that everybody wants: its units are taken one by one, by a plain update and by a procedure that refuses to go below zero.

use super::Section;
use super::requests::{ROW, fill, flow, make_space, measure, shape_name};
use crate::compare::{Settings, by_turns};
use crate::contender::{Contender, Running};
use crate::results::{Recorder, Turn};
use load::{Client, Drive, End, FIRST_KEY, Flow, FlowOutcome, Keys, Latencies, Pace, Template, drive};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub(crate) const SECTION: Section = Section {
    name: "hot-row",
    title: "One hot row",
    about: "1, 64 and 1,000 connections take units from one row, by update and by a Lua procedure; 1,000 connections with one and with 16 requests \
            in flight. Evenness is the slowest connection's answers over the fastest one's. Beside it 5,000 selects a second of other rows, evenly, \
            with and without the hot row. At the end the server is killed under load: the units gone must be at least those acknowledged and at \
            most these and those in flight.",
    run,
};

const SHAPES: [(usize, u32); 4] = [(1, 1), (64, 1), (1000, 1), (1000, 16)];
/// Units at the start: more than any run takes.
const UNITS: u64 = 1 << 40;
/// Other rows and how they are read: rate, connections, window.
const OTHER_ROWS: u32 = 100_000;
const OTHERS: (f64, usize, u32) = (5_000.0, 2, 64);
/// What is in flight when the server is killed.
const KILLED: (usize, u32) = (64, 16);
const POLL_PAUSE: Duration = Duration::from_millis(1);

/// Puts the one row in place.
fn make_hot(address: &str) -> Result<u64, String> {
    let space = make_space(address, "hot", 0)?;
    let script = format!("box.space.hot:replace({{ {FIRST_KEY}, {UNITS}ULL }})");
    let mut client = Client::connect(address, None).map_err(|error| error.to_string())?;
    client.eval(&script, &[]).map_err(|error| error.to_string())?;
    Ok(space)
}

/// Units that the row has.
fn units(address: &str) -> Result<u64, String> {
    let mut client = Client::connect(address, None).map_err(|error| error.to_string())?;
    let script = format!("return box.space.hot:get({FIRST_KEY})[2]");
    let found = client.eval(&script, &[]).map_err(|error| error.to_string())?;
    found.unsigned().ok_or_else(|| format!("the hot row has {found:?} units"))
}

fn take(address: &str, template: Template, shape: (usize, u32), end: End) -> Flow {
    flow(address, template, shape, Keys::One(0), end)
}

/// Answers of the slowest connection over those of the fastest.
fn evenness(outcome: &FlowOutcome) -> f64 {
    let (min, max) = (outcome.of_connections.iter().min(), outcome.of_connections.iter().max());
    min.zip(max).map_or(f64::NAN, |(min, max)| *min as f64 / (*max).max(1) as f64)
}

fn beside(address: &str, hot: u64, space: u64, time: Duration, turn: &mut Turn) -> Result<(), String> {
    let end = End { requests: None, time: Some(time) };
    let others = flow(address, Template::select(space), (OTHERS.1, OTHERS.2), Keys::uniform(OTHER_ROWS, 1), end);
    let others = Flow { pace: Pace::Open { rate: OTHERS.0, depth_max: OTHERS.2 }, ..others };
    let load = take(address, Template::update(hot, "-", 1, 1), (1000, 1), End::default());
    let run = |flows: &[Flow]| {
        let outcomes = drive(flows, Drive::default()).map_err(|error| error.to_string())?;
        Ok::<_, String>(Latencies::of(&outcomes[0].latencies))
    };
    let alone = run(std::slice::from_ref(&others))?;
    // The same load on rows that nobody shares, so that only the row's heat differs.
    let spread = Flow { keys: Keys::uniform(OTHER_ROWS, 2), ..load.clone() };
    let spread = Flow { shares: flow_of_rows(space), ..spread };
    let cold = run(&[others.clone(), spread])?;
    let hot = run(&[others, load])?;
    turn.lower("other rows, alone", "latency, 99 %", "us", alone.p99 as f64);
    turn.lower("other rows, beside updates of many rows", "latency, 99 %", "us", cold.p99 as f64);
    turn.lower("other rows, beside the hot row", "latency, 99 %", "us", hot.p99 as f64);
    turn.lower("other rows", "latency, 99 %, of without the hot row", "times", hot.p99 as f64 / cold.p99.max(1) as f64);
    Ok(())
}

/// Updates of rows of `ROW`.
fn flow_of_rows(space: u64) -> Vec<load::Share> {
    vec![load::Share { weight: 1, template: Template::update(space, "+", 1, 1) }]
}

/// Kills the server under load, starts it again, and looks what is gone.
fn kill(server: &mut Running, hot: u64, turn: &mut Turn) -> Result<(), String> {
    let address = server.address.clone();
    let before = units(&address)?;
    let load = Flow { may_break: true, ..take(&address, Template::update(hot, "-", 1, 1), KILLED, End::default()) };
    let done = AtomicU64::new(0);
    let never = std::sync::atomic::AtomicBool::new(false);
    let (outcomes, killed) = std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            let begun = Instant::now();
            // Under way for sure: every connection has been answered a few times.
            while done.load(Ordering::Relaxed) < 10 * KILLED.0 as u64 * u64::from(KILLED.1) {
                if begun.elapsed() > Duration::from_secs(60) {
                    return Err("the load on the hot row does not get under way".to_string());
                }
                std::thread::sleep(POLL_PAUSE);
            }
            server.server()?.kill()
        });
        let drive = drive(&[load], Drive { stop: Some(&never), done: Some(&done), ..Drive::default() });
        (drive, killer.join().expect("the killer does not panic"))
    });
    killed?;
    let outcome = outcomes.map_err(|error| error.to_string())?.into_iter().next().expect("one flow has one outcome");
    server.server()?.restart()?;
    let gone = before.saturating_sub(units(&address)?);
    let (least, most) = (outcome.responses, outcome.responses + outcome.lost);
    if !(least..=most).contains(&gone) {
        return Err(format!("after kill -9 {gone} units are gone, {least} were acknowledged and {most} asked for"));
    }
    turn.notes.push(
        "after kill -9 of each server under load, the units gone were those acknowledged, and of those in flight some or none"
            .to_string(),
    );
    turn.lower("kill -9", "acknowledged units not gone", "units", 0.0);
    Ok(())
}

fn turn(settings: &Settings, server: &mut Running, turn: &mut Turn) -> Result<(), String> {
    let address = server.address.clone();
    let time = settings.scale.time;
    let hot = make_hot(&address)?;
    let space = make_space(&address, "requests", 0)?;
    fill(&address, space, ROW, 0, OTHER_ROWS)?;
    let mut taken = 0;
    for shape in SHAPES {
        let end = End { requests: None, time: Some(time) };
        for (name, template) in
            [("update", Template::update(hot, "-", 1, 1)), ("procedure", Template::call("bench_take"))]
        {
            let case = format!("{name} {}", shape_name(shape));
            let outcome = measure(server, turn, &case, take(&address, template, shape, end))?;
            taken += outcome.responses;
            if shape.0 > 1 {
                turn.higher(&case, "evenness", "share", evenness(&outcome));
            }
        }
    }
    if units(&address)? != UNITS - taken {
        return Err(format!("{taken} units were taken of {UNITS}, and {} are left", units(&address)?));
    }
    beside(&address, hot, space, time, turn)?;
    kill(server, hot, turn)
}

fn run(settings: &Settings, recorder: &mut Recorder) -> Result<(), String> {
    let contenders = [Contender::Lycosa, Contender::LycosaWrite, Contender::Tarantool];
    by_turns(settings, recorder, &contenders, u64::MAX, &|server, _, found| turn(settings, server, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evenness_is_of_the_slowest_to_the_fastest() {
        let outcome = FlowOutcome {
            responses: 30,
            seconds: 1.0,
            latencies: load::histogram(),
            series: Vec::new(),
            of_connections: vec![10, 20],
            lost: 0,
        };
        assert!((evenness(&outcome) - 0.5).abs() < 1e-9);
    }
}
