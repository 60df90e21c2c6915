//! Connecting, logging in, one request, and going again.

use super::Section;
use crate::compare::{Settings, by_turns};
use crate::connect;
use crate::contender::{Contender, Running};
use crate::results::{Recorder, Turn};
use load::Latencies;

pub(crate) const SECTION: Section = Section {
    name: "connect",
    title: "Connections",
    about: "16 clients that connect, log in with a password, ask for one sign of life and go, again and again: what a web page without a \
            pool of connections does.",
    run,
};

const CLIENTS: usize = 16;
const CASE: &str = "connect, log in, ask";

fn turn(settings: &Settings, server: &mut Running, turn: &mut Turn) -> Result<(), String> {
    let own = connect::Settings {
        address: server.address.clone(),
        user: "bench".to_string(),
        password: "bench".to_string(),
        clients: CLIENTS,
        time: settings.scale.time,
        pid: Some(server.pid()),
    };
    let outcome = connect::run(&own, true)?;
    turn.higher(CASE, "connections", "1/s", outcome.per_second());
    let latencies = Latencies::of(&outcome.latencies);
    turn.lower(CASE, "latency, median", "us", latencies.median as f64);
    turn.lower(CASE, "latency, 99 %", "us", latencies.p99 as f64);
    turn.lower(CASE, "server CPU", "us each", outcome.server_us.unwrap_or(f64::NAN));
    Ok(())
}

fn run(settings: &Settings, recorder: &mut Recorder) -> Result<(), String> {
    let contenders = [Contender::Lycosa, Contender::Tarantool];
    by_turns(settings, recorder, &contenders, u64::MAX, &|server, _, found| turn(settings, server, found))
}
