//! What else a server does while it is under load: a checkpoint, an index that is built, a large space that is dropped. The figure is not the mean but
//! the worst second and the slowest requests.

use super::Section;
use super::requests::{ROW, ROW_TWO, fill, flow, make_space};
use crate::compare::{Settings, by_turns};
use crate::contender::{Contender, Running};
use crate::report::median;
use crate::results::{Recorder, Turn};
use load::{Client, Drive, End, Flow, FlowOutcome, Keys, Latencies, Pace, Second, Template, drive, process};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub(crate) const CHECKPOINT: Section = Section {
    name: "checkpoint",
    title: "A checkpoint under full write load",
    about: "Replaces of random rows, 4 connections with 256 requests in flight, on the big space; first alone, then with `box.snapshot()` in between. \
            The worst second is compared with the median second of the run before, the 99.9th percentile with that of the run before.",
    run: |settings, recorder| run(settings, recorder, Event::Checkpoint),
};

pub(crate) const INDEX: Section = Section {
    name: "index",
    title: "A secondary index built under full write load",
    about: "The same with `create_index` on a number of the big space.",
    run: |settings, recorder| run(settings, recorder, Event::Index),
};

pub(crate) const DROP: Section = Section {
    name: "drop",
    title: "A big space dropped under load",
    about: "20,000 replaces a second of another space, evenly, with latency from when each was due, while the big space is dropped.",
    run: |settings, recorder| run(settings, recorder, Event::Drop),
};

/// Connections and window of the full load.
const FULL: (usize, u32) = (4, 256);
/// The steady load beside a drop: requests a second, connections, window.
const STEADY: (f64, usize, u32) = (20_000.0, 4, 256);
/// Rows of the space that is worked on while another one is dropped.
const SMALL_ROWS: u32 = 100_000;
/// Turns of each contender, at most: they are long.
const ROUNDS_MAX: u64 = 2;
/// Longest event.
pub(crate) const EVENT_MAX: Duration = Duration::from_secs(600);
/// Shorter measurements are for trying this program.
const TRIAL: Duration = Duration::from_millis(100);
/// How often memory is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// What happens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    Checkpoint,
    Index,
    Drop,
}

impl Event {
    fn lua(self) -> &'static str {
        match self {
            Event::Checkpoint => "box.snapshot()",
            Event::Index => "box.space.big:create_index('number1', { parts = { { 2, 'unsigned' } }, unique = false })",
            Event::Drop => "box.space.big:drop()",
        }
    }
}

/// Where an event lay in a run, in seconds from its start, and the most memory that the server took.
#[derive(Clone, Copy)]
struct Span {
    from: f64,
    to: f64,
    resident_max: u64,
}

/// Waits until `done`, or a time; looks at memory meanwhile. What `on_look` makes of it is its own affair.
fn watch(time_max: Duration, done: impl Fn() -> bool, mut on_look: impl FnMut()) {
    let begun = Instant::now();
    while begun.elapsed() < time_max && !done() {
        on_look();
        std::thread::sleep(LOOK);
    }
}

/// Drives a flow with an event in its middle: a lead of `calm`, the event, as much behind it.
fn with_event(server: &Running, flow: Flow, event: Event, calm: Duration) -> Result<(FlowOutcome, Span), String> {
    let (stop, is_over, resident_max) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    let span = Mutex::new(None);
    let pid = server.pid();
    let client = Client::connect(&server.address, None);
    let mut client = client
        .and_then(|mut client| client.wait_at_most(EVENT_MAX).map(|()| client))
        .map_err(|error| error.to_string())?;
    let begun = Instant::now();
    let (outcomes, happened) = std::thread::scope(|scope| {
        let actor = scope.spawn(|| {
            watch(calm, || is_over.load(Ordering::Relaxed), || {});
            let from = begun.elapsed().as_secs_f64();
            let result = client.eval(event.lua(), &[]);
            *span.lock().unwrap_or_else(std::sync::PoisonError::into_inner) =
                Some((from, begun.elapsed().as_secs_f64()));
            watch(calm, || is_over.load(Ordering::Relaxed), || {});
            stop.store(true, Ordering::Relaxed);
            result.map(|_| ()).map_err(|error| format!("{}: {error}", event.lua()))
        });
        scope.spawn(|| {
            watch(
                Duration::MAX,
                || is_over.load(Ordering::Relaxed),
                || {
                    resident_max.fetch_max(process::resident_bytes(pid).unwrap_or(0), Ordering::Relaxed);
                },
            );
        });
        let outcomes = drive(&[flow], Drive { stop: Some(&stop), ..Drive::default() });
        is_over.store(true, Ordering::Relaxed);
        (outcomes, actor.join().expect("the actor does not panic"))
    });
    let outcome = outcomes.map_err(|error| error.to_string())?.into_iter().next().expect("one flow has one outcome");
    happened?;
    let span = span.lock().unwrap_or_else(std::sync::PoisonError::into_inner).expect("the event has happened");
    Ok((outcome, Span { from: span.0, to: span.1, resident_max: resident_max.into_inner() }))
}

/// Answers of whole seconds.
fn whole_seconds(series: &[Second], seconds: f64) -> Vec<f64> {
    series.iter().filter(|second| f64::from(second.at) + 1.0 <= seconds).map(|second| second.responses as f64).collect()
}

fn turn(settings: &Settings, event: Event, server: &mut Running, turn: &mut Turn) -> Result<(), String> {
    let address = server.address.clone();
    let big = make_space(&address, "big", 0)?;
    fill(&address, big, ROW, 0, settings.scale.big_rows)?;
    // Whole seconds are compared, so there should be some; a run that is shorter only tries whether all of this works.
    let least = Duration::from_secs(if settings.is_quick { 1 } else { 2 });
    let calm = if settings.scale.time < TRIAL { settings.scale.time } else { settings.scale.time.max(least) };
    let end = |time: Option<Duration>| End { requests: None, time };
    let (case, load) = match event {
        Event::Drop => {
            let small = make_space(&address, "small", 2)?;
            fill(&address, small, ROW_TWO, 0, SMALL_ROWS)?;
            let keys = Keys::uniform(SMALL_ROWS, 1);
            let load = flow(&address, Template::replace(small, ROW_TWO), (STEADY.1, STEADY.2), keys, End::default());
            ("drop", Flow { pace: Pace::Open { rate: STEADY.0, depth_max: STEADY.2 }, ..load })
        }
        _ => {
            let keys = Keys::uniform(settings.scale.big_rows, 1);
            let name = if event == Event::Index { "index" } else { "checkpoint" };
            (name, flow(&address, Template::replace(big, ROW), FULL, keys, End::default()))
        }
    };
    // What the fill left to do is done, and the load has settled.
    let before_load = Flow { end: end(Some(calm)), ..load.clone() };
    drive(&[before_load], Drive::default()).map_err(|error| error.to_string())?;
    let alone = drive(&[Flow { end: end(Some(2 * calm)), ..load.clone() }], Drive::default());
    let alone = alone.map_err(|error| error.to_string())?.into_iter().next().expect("one flow has one outcome");
    let resident = process::resident_bytes(server.pid())?;
    let (beside, span) = with_event(server, load, event, calm)?;
    let (calm_seconds, seconds) =
        (whole_seconds(&alone.series, alone.seconds), whole_seconds(&beside.series, beside.seconds));
    let normal = if calm_seconds.is_empty() { alone.per_second() } else { median(&calm_seconds) };
    // Seconds that the event lay in; one that is shorter than a second lay in one or two.
    let touched: Vec<f64> = seconds
        .iter()
        .enumerate()
        .filter(|(at, _)| (*at as f64) < span.to && (*at as f64) + 1.0 > span.from)
        .map(|(_, count)| *count)
        .collect();
    let worst = touched.iter().copied().fold(f64::MAX, f64::min).min(beside.responses as f64);
    let (before, during) = (Latencies::of(&alone.latencies), Latencies::of(&beside.latencies));
    turn.lower(case, "takes", "s", span.to - span.from);
    turn.higher(case, "requests before", "1/s", normal);
    turn.higher(case, "worst second", "share", worst / normal);
    turn.lower(case, "latency before, 99.9 %", "us", before.p999 as f64);
    turn.lower(case, "latency, 99.9 %", "us", during.p999 as f64);
    turn.lower(case, "latency, 99.9 %, of before", "times", during.p999 as f64 / before.p999.max(1) as f64);
    turn.lower(case, "slowest request before", "ms", before.max as f64 / 1000.0);
    turn.lower(case, "slowest request", "ms", during.max as f64 / 1000.0);
    let grown = span.resident_max.saturating_sub(resident) as f64;
    turn.lower(case, "memory grew by", "share", grown / resident as f64);
    let points: Vec<f64> = calm_seconds.iter().chain(&seconds).copied().collect();
    let shift = calm_seconds.len() as f64;
    turn.series(case, "requests a second", points, Some((shift + span.from, shift + span.to)));
    turn.latencies(case, beside.latencies);
    turn.latencies(&format!("{case}, before"), alone.latencies);
    Ok(())
}

fn run(settings: &Settings, recorder: &mut Recorder, event: Event) -> Result<(), String> {
    let contenders = [Contender::Lycosa, Contender::LycosaWrite, Contender::Tarantool];
    by_turns(settings, recorder, &contenders, settings.at_most(ROUNDS_MAX, 1), &|server, _, found| {
        turn(settings, event, server, found)
    })
}
