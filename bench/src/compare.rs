//! Two servers, the same work, round by round; and one server that is killed again and again.

use crate::inventory;
use crate::load::{self, Kind};
use crate::report::median;
use crate::server::Server;
use serde_json::json;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Workload {
    /// Captures and releases, 16 clients.
    Inventory,
    /// Pipelined replaces.
    Replace,
    /// Pipelined selects.
    Select,
    /// Connect, log in, ask once: processor time of the server (smaller is better).
    Connect,
    /// Resident memory after a million rows (smaller is better).
    Memory,
}

/// How.
pub(crate) struct Settings {
    pub(crate) lycosa: PathBuf,
    pub(crate) tarantool: PathBuf,
    pub(crate) lycosa_wal_mode: String,
    pub(crate) rounds: usize,
    pub(crate) operations: usize,
    pub(crate) rows: u64,
    pub(crate) is_json: bool,
}

const ROW_BYTES: usize = 100;

fn measure(workload: Workload, server: &Server, settings: &Settings, round: usize) -> Result<f64, String> {
    let done = AtomicUsize::new(0);
    match workload {
        Workload::Inventory => {
            let own = inventory::Settings {
                address: server.address.clone(),
                items: 1000,
                operations: settings.operations,
                clients: 16,
                seed: round as u64 + 1,
                survive: false,
            };
            let work = inventory::generate(own.items, own.operations, own.seed);
            let outcome = inventory::run(&own, &work, &done)?;
            match outcome.wrong.first() {
                None => Ok(outcome.per_second()),
                Some(wrong) => Err(format!("the final state is wrong: {wrong}")),
            }
        }
        Workload::Replace | Workload::Select => {
            let kind = if workload == Workload::Replace { Kind::Replace } else { Kind::Select };
            let own = load::Settings {
                address: server.address.clone(),
                kind,
                connections: 4,
                in_flight: 256,
                rows: settings.rows,
                row_bytes: ROW_BYTES,
                requests: settings.operations,
            };
            Ok(load::run(&own, &done)?.per_second())
        }
        Workload::Connect => {
            let time = Duration::from_secs(2);
            let outcome = load::connects(&server.address, ("bench", "bench"), 16, time, server.pid())?;
            Ok(outcome.server_us)
        }
        Workload::Memory => Ok(load::resident_bytes(server.pid())? as f64),
    }
}

/// Runs both servers alternately and prints medians and their ratio.
pub(crate) fn run(workloads: &[Workload], settings: &Settings) -> Result<(), String> {
    let mut results = Vec::new();
    for &workload in workloads {
        let lycosa = Server::start(&settings.lycosa, &settings.lycosa_wal_mode)?;
        let tarantool = Server::start(&settings.tarantool, "write")?;
        if matches!(workload, Workload::Replace | Workload::Select | Workload::Memory) {
            for server in [&lycosa, &tarantool] {
                load::fill(&server.address, settings.rows, ROW_BYTES)?;
            }
        }
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..settings.rounds {
            for turn in 0..2 {
                let is_lycosa = (round + turn) % 2 == 0;
                let server = if is_lycosa { &lycosa } else { &tarantool };
                let figure = measure(workload, server, settings, round)?;
                if !settings.is_json {
                    let name = if is_lycosa { "lycosa" } else { "tarantool" };
                    eprintln!("{workload:?} round {}: {name} {figure:.0}", round + 1);
                }
                if is_lycosa { ours.push(figure) } else { theirs.push(figure) }
            }
        }
        let (a, b) = (median(&ours), median(&theirs));
        results.push(json!({
            "workload": format!("{workload:?}").to_lowercase(),
            "lycosa": a,
            "tarantool": b,
            "ratio": a / b,
            "lycosa_wal_mode": settings.lycosa_wal_mode,
            "rounds": settings.rounds,
        }));
        if !settings.is_json {
            println!("{workload:?}: lycosa ({}) {a:.0}, tarantool (write) {b:.0}, ratio {:.2}", settings.lycosa_wal_mode, a / b);
        }
    }
    if settings.is_json {
        println!("{}", serde_json::Value::Array(results));
    }
    Ok(())
}

/// Kills a server during the inventory workload, again and again, and checks that nothing acknowledged is lost and nothing half done.
pub(crate) fn crash(binary: PathBuf, kills: usize, operations: usize, clients: usize, seed: u64, is_quiet: bool) -> Result<inventory::Outcome, String> {
    let mut server = Server::start(&binary, "fsync")?;
    let settings = inventory::Settings {
        address: server.address.clone(),
        items: 1000,
        operations,
        clients,
        seed,
        survive: true,
    };
    let work = inventory::generate(settings.items, operations, seed);
    let done = AtomicUsize::new(0);
    crate::report::with_progress(operations, is_quiet, &done, || {
        std::thread::scope(|scope| {
            let run = scope.spawn(|| inventory::run(&settings, &work, &done));
            for kill in 1..=kills {
                // Evenly over the run.
                while done.load(Ordering::Relaxed) < operations * kill / (kills + 1) && !run.is_finished() {
                    std::thread::sleep(Duration::from_millis(2));
                }
                if run.is_finished() {
                    break;
                }
                server.kill_and_restart()?;
            }
            run.join().map_err(|_| "the driver panicked".to_string())?
        })
    })
}
