//! Plain load: single-row requests on the space `bench`, many in flight on a few connections. The work is done by the crate `load`.

use crate::report;
use hdrhistogram::Histogram;
use load::Value;
use load::{Client, ClientError, Door, Drive, End, Flow, Keys, Latencies, Pace, Row, Share, Template, drive, process};
use runtime::tls::{Connector, Parameters};
use serde_json::json;

/// Connections and window of a fill.
const FILL: (usize, usize) = (2, 512);

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Replace rows of random keys
    Replace,
    /// Read rows by random keys
    Select,
    /// Half of each
    Mixed,
}

/// How.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) address: String,
    pub(crate) kind: Kind,
    pub(crate) connections: usize,
    /// Requests in flight on each connection.
    pub(crate) in_flight: usize,
    /// The space holds keys 0..rows.
    pub(crate) rows: u32,
    /// Bytes of the string in a row.
    pub(crate) row_bytes: usize,
    pub(crate) requests: u64,
    pub(crate) seed: u64,
    /// The server's process, if its processor time is wanted.
    pub(crate) pid: Option<u32>,
    /// Connections are by TLS.
    pub(crate) is_sealed: bool,
}

impl Settings {
    /// What connections by TLS are made with. The server's certificate is not looked at: it is the server that is measured.
    fn connector(&self) -> Result<Option<Connector>, String> {
        let connector = self.is_sealed.then(|| Parameters::default().connector());
        connector.transpose().map_err(|error| error.to_string())
    }
}

/// What came of it.
pub(crate) struct Outcome {
    pub(crate) requests: u64,
    pub(crate) seconds: f64,
    /// Microseconds from sending a request to reading its answer.
    pub(crate) latencies: Histogram<u64>,
    /// Processor time of the server for each request, in microseconds.
    pub(crate) server_us: Option<f64>,
}

impl Outcome {
    pub(crate) fn per_second(&self) -> f64 {
        self.requests as f64 / self.seconds
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        json!({
            "requests": self.requests,
            "seconds": self.seconds,
            "per_second": self.per_second(),
            "latency_us": Latencies::of(&self.latencies).json(),
            "server_cpu_us": self.server_us,
        })
    }

    pub(crate) fn print(&self) {
        println!("requests     {} in {:.1} s: {:.0} a second", self.requests, self.seconds, self.per_second());
        println!("latency      {}", Latencies::of(&self.latencies));
        if let Some(server_us) = self.server_us {
            println!("server       {server_us:.2} us of processor time for each");
        }
    }
}

fn flow(settings: &Settings, space: u64, keys: Keys, requests: u64) -> Flow {
    let replace = Share { weight: 1, template: Template::replace(space, Row::text(settings.row_bytes)) };
    let select = Share { weight: 1, template: Template::select(space) };
    Flow {
        door: Door::Iproto,
        address: settings.address.clone(),
        login: None,
        connections: settings.connections,
        pace: Pace::Closed { depth: settings.in_flight as u32 },
        shares: match settings.kind {
            Kind::Replace => vec![replace],
            Kind::Select => vec![select],
            Kind::Mixed => vec![replace, select],
        },
        keys,
        end: End { requests: Some(requests), time: None },
        may_break: false,
    }
}

/// True if the space seems to hold the rows that are wanted: a fill goes from key 0 up, so the largest key says whether it was finished.
fn is_filled(last_row: Option<&Value>, settings: &Settings) -> bool {
    match last_row.map(Value::array) {
        Some([key, Value::Str(text)]) => {
            key.unsigned() == Some(u64::from(load::FIRST_KEY) + u64::from(settings.rows) - 1)
                && text.len() == settings.row_bytes
        }
        _ => false,
    }
}

/// Sees to it that the space holds keys 0..rows: empties and fills it if it does not. True if it had to.
pub(crate) fn fill(settings: &Settings, is_quiet: bool) -> Result<bool, String> {
    let failed = |error: ClientError| format!("filling the space `bench`: {error}");
    let connector = settings.connector()?;
    let mut client = Client::connect_by(&settings.address, connector.as_ref(), None).map_err(failed)?;
    let space = client.space_id("bench").map_err(failed)?;
    if is_filled(client.last_row(space).map_err(failed)?.as_ref(), settings) {
        return Ok(false);
    }
    client.call("bench_clear", &[]).map_err(failed)?;
    let count = u64::from(settings.rows);
    let settings = Settings { kind: Kind::Replace, connections: FILL.0, in_flight: FILL.1, ..settings.clone() };
    report::with_progress("filling", count, is_quiet, |done| {
        let flow = flow(&settings, space, Keys::Sequential { next: 0, count: settings.rows }, count);
        drive(&[flow], Drive { done: Some(done), connector: connector.clone(), ..Drive::default() })
            .map(|_| true)
            .map_err(failed)
    })
}

/// Runs a load over a filled space.
pub(crate) fn run(settings: &Settings, is_quiet: bool) -> Result<Outcome, String> {
    let failed = |error: ClientError| error.to_string();
    let connector = settings.connector()?;
    let space =
        Client::connect_by(&settings.address, connector.as_ref(), None).and_then(|mut client| client.space_id("bench"));
    let flow = flow(settings, space.map_err(failed)?, Keys::uniform(settings.rows, settings.seed), settings.requests);
    let cpu_seconds = || settings.pid.map(process::cpu_seconds).transpose();
    let before = cpu_seconds()?;
    let outcomes = report::with_progress("requests", settings.requests, is_quiet, |done| {
        drive(&[flow], Drive { done: Some(done), connector: connector.clone(), ..Drive::default() }).map_err(failed)
    })?;
    let outcome = outcomes.into_iter().next().expect("one flow has one outcome");
    let server_us = before.zip(cpu_seconds()?).map(|(before, after)| (after - before) * 1e6 / outcome.responses as f64);
    Ok(Outcome { requests: outcome.responses, seconds: outcome.seconds, latencies: outcome.latencies, server_us })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_fill_is_no_fill() {
        let settings = Settings {
            address: String::new(),
            kind: Kind::Select,
            connections: 1,
            in_flight: 1,
            rows: 10,
            row_bytes: 1,
            requests: 1,
            seed: 1,
            pid: None,
            is_sealed: false,
        };
        let row = |key: i128, text: &str| Value::Array(vec![Value::Int(65_536 + key), Value::Str(text.into())]);
        assert!(is_filled(Some(&row(9, "x")), &settings));
        assert!(!is_filled(Some(&row(8, "x")), &settings));
        assert!(!is_filled(Some(&row(9, "xx")), &settings));
        assert!(!is_filled(None, &settings));
    }
}
