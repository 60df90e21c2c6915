//! Clients that connect, log in, ask once and go: what a web page without a connection pool does to a database.

use crate::report;
use hdrhistogram::Histogram;
use load::Latencies;
use load::process;
use load::{Client, ClientError};
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How.
pub(crate) struct Settings {
    pub(crate) address: String,
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) clients: usize,
    pub(crate) time: Duration,
    /// The server's process, if its processor time is wanted.
    pub(crate) pid: Option<u32>,
}

/// What came of it.
pub(crate) struct Outcome {
    connections: u64,
    seconds: f64,
    /// Microseconds from connecting to the answer.
    pub(crate) latencies: Histogram<u64>,
    /// Processor time of the server for each, in microseconds.
    pub(crate) server_us: Option<f64>,
}

impl Outcome {
    pub(crate) fn per_second(&self) -> f64 {
        self.connections as f64 / self.seconds
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        json!({
            "connections": self.connections,
            "seconds": self.seconds,
            "per_second": self.per_second(),
            "latency_us": Latencies::of(&self.latencies).json(),
            "server_cpu_us": self.server_us,
        })
    }

    pub(crate) fn print(&self) {
        println!("connections  {} in {:.1} s: {:.0} a second", self.connections, self.seconds, self.per_second());
        println!("latency      {}", Latencies::of(&self.latencies));
        if let Some(server_us) = self.server_us {
            println!("server       {server_us:.1} us of processor time for each");
        }
    }
}

/// Connects in a loop until the time is over.
fn run_client(settings: &Settings, begun: Instant, done: &AtomicU64) -> Result<Histogram<u64>, ClientError> {
    let mut latencies = load::histogram();
    while begun.elapsed() < settings.time {
        let started = Instant::now();
        Client::connect(&settings.address, Some((&settings.user, &settings.password)))?.ping()?;
        latencies.saturating_record(started.elapsed().as_micros() as u64);
        done.fetch_max(begun.elapsed().as_millis() as u64, Ordering::Relaxed);
    }
    Ok(latencies)
}

/// Runs all clients. The bar counts milliseconds: how many connections there will be is not known.
pub(crate) fn run(settings: &Settings, is_quiet: bool) -> Result<Outcome, String> {
    let cpu_seconds = || settings.pid.map(process::cpu_seconds).transpose();
    let before = cpu_seconds()?;
    let begun = Instant::now();
    let results: Vec<Result<_, ClientError>> =
        report::with_progress("connecting, ms", settings.time.as_millis() as u64, is_quiet, |done| {
            std::thread::scope(|scope| {
                let threads: Vec<_> =
                    (0..settings.clients).map(|_| scope.spawn(|| run_client(settings, begun, done))).collect();
                threads.into_iter().map(|thread| thread.join().expect("a client does not panic")).collect()
            })
        });
    let seconds = begun.elapsed().as_secs_f64();
    let mut latencies = load::histogram();
    for result in results {
        let client = result.map_err(|error| error.to_string())?;
        latencies.add(client).expect("both histograms have the same bounds");
    }
    let connections = latencies.len();
    let server_us =
        before.zip(cpu_seconds()?).map(|(before, after)| (after - before) * 1e6 / connections.max(1) as f64);
    Ok(Outcome { connections, seconds, latencies, server_us })
}
