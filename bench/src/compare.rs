//! Two servers, the same work, by turns.
//!
//! Each turn has a server of its own, started on an empty directory and gone afterwards, so that no turn inherits memory, files or unwritten pages
//! from another; and only one server runs at a time. Who begins changes from round to round.

use crate::connect;
use crate::generator;
use crate::inventory;
use crate::memory;
use crate::plain::{self, Kind};
use crate::report::{median, rounded, with_progress};
use crate::server::{Launch, Server};
use load::Latencies;
use load::process;
use serde_json::json;
use std::process::Command;
use std::time::{Duration, SystemTime};

const ROW_BYTES: usize = 100;
const ITEMS: u64 = 1000;
const CLIENTS: u64 = 16;
const CONNECTIONS: usize = 4;
const IN_FLIGHT: usize = 256;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Workload {
    /// Captures and releases, 16 clients
    Inventory,
    /// Pipelined replaces of single rows
    Replace,
    /// Pipelined selects of single rows
    Select,
    /// Connect, log in, ask once, go
    Connect,
    /// Resident memory before and after a fill
    Memory,
    /// All of these
    All,
}

impl Workload {
    fn name(self) -> &'static str {
        match self {
            Workload::Inventory => "inventory",
            Workload::Replace => "replace",
            Workload::Select => "select",
            Workload::Connect => "connect",
            Workload::Memory => "memory",
            Workload::All => "all",
        }
    }

    /// `All` spelled out, everything once.
    fn expand(workloads: &[Workload]) -> Vec<Workload> {
        let every = [Workload::Inventory, Workload::Replace, Workload::Select, Workload::Connect, Workload::Memory];
        every.into_iter().filter(|one| workloads.contains(one) || workloads.contains(&Workload::All)).collect()
    }
}

/// How.
pub(crate) struct Settings {
    pub(crate) lycosa: Launch,
    pub(crate) tarantool: Launch,
    pub(crate) rounds: u64,
    /// Operations of the inventory and requests of the load, in one turn.
    pub(crate) operations: u64,
    /// Rows of load and memory.
    pub(crate) rows: u32,
    /// Length of a turn of the connecting clients.
    pub(crate) time: Duration,
    pub(crate) is_quiet: bool,
}

/// Which way a figure gets better.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Better {
    Higher,
    Lower,
}

/// One figure of a turn. The first of a turn is what the workload is about.
struct Figure {
    name: &'static str,
    unit: &'static str,
    better: Better,
    value: f64,
}

impl Figure {
    fn higher(name: &'static str, unit: &'static str, value: f64) -> Self {
        Figure { name, unit, better: Better::Higher, value }
    }

    fn lower(name: &'static str, unit: &'static str, value: f64) -> Self {
        Figure { name, unit, better: Better::Lower, value }
    }
}

/// The same figure of all turns of both servers.
pub(crate) struct Comparison {
    pub(crate) workload: &'static str,
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    better: Better,
    lycosa: Vec<f64>,
    tarantool: Vec<f64>,
    /// It is what the workload is about.
    pub(crate) is_main: bool,
}

impl Comparison {
    pub(crate) fn medians(&self) -> (f64, f64) {
        (median(&self.lycosa), median(&self.tarantool))
    }

    pub(crate) fn ratio(&self) -> f64 {
        let (lycosa, tarantool) = self.medians();
        lycosa / tarantool
    }

    pub(crate) fn better(&self) -> &'static str {
        match self.better {
            Better::Higher => "higher",
            Better::Lower => "lower",
        }
    }

    fn json(&self) -> serde_json::Value {
        let (lycosa, tarantool) = self.medians();
        json!({
            "workload": self.workload,
            "figure": self.name,
            "unit": self.unit,
            "better": self.better(),
            "lycosa": {"median": lycosa, "rounds": self.lycosa},
            "tarantool": {"median": tarantool, "rounds": self.tarantool},
            // A ratio to nothing is no number, which JSON has no word for.
            "ratio": self.ratio().is_finite().then_some(self.ratio()),
        })
    }
}

fn latency_figures(latencies: &Latencies) -> [Figure; 2] {
    [
        Figure::lower("latency, median", "us", latencies.median as f64),
        Figure::lower("latency, 99 %", "us", latencies.p99 as f64),
    ]
}

/// One turn of the inventory. Each round has a seed of its own, the same for both servers.
fn inventory_turn(settings: &Settings, server: &Server, round: u64) -> Result<Vec<Figure>, String> {
    let own = inventory::Settings { address: server.address.clone(), clients: CLIENTS, survive: false };
    let work = generator::generate(ITEMS, settings.operations as usize, round);
    let before = process::cpu_seconds(server.pid())?;
    let outcome =
        with_progress("operations", settings.operations, settings.is_quiet, |done| inventory::run(&own, &work, done))?;
    let server_us = (process::cpu_seconds(server.pid())? - before) * 1e6 / settings.operations as f64;
    if outcome.faults.count > 0 {
        return Err(format!("the final state is {}", outcome.faults));
    }
    let mut figures = vec![Figure::higher("operations", "1/s", outcome.per_second())];
    figures.extend(latency_figures(&Latencies::of(&outcome.latencies)));
    figures.push(Figure::lower("server CPU each", "us", server_us));
    Ok(figures)
}

fn load_settings(settings: &Settings, server: &Server, kind: Kind, round: u64) -> plain::Settings {
    plain::Settings {
        address: server.address.clone(),
        kind,
        connections: CONNECTIONS,
        in_flight: IN_FLIGHT,
        rows: settings.rows,
        row_bytes: ROW_BYTES,
        requests: settings.operations,
        seed: round,
        pid: Some(server.pid()),
    }
}

fn load_turn(settings: &Settings, server: &Server, kind: Kind, round: u64) -> Result<Vec<Figure>, String> {
    let own = load_settings(settings, server, kind, round);
    plain::fill(&own, settings.is_quiet)?;
    let outcome = plain::run(&own, settings.is_quiet)?;
    let mut figures = vec![Figure::higher("requests", "1/s", outcome.per_second())];
    figures.extend(latency_figures(&Latencies::of(&outcome.latencies)));
    figures.extend(outcome.server_us.map(|server_us| Figure::lower("server CPU each", "us", server_us)));
    Ok(figures)
}

fn connect_turn(settings: &Settings, server: &Server) -> Result<Vec<Figure>, String> {
    let own = connect::Settings {
        address: server.address.clone(),
        user: "bench".to_string(),
        password: "bench".to_string(),
        clients: CLIENTS as usize,
        time: settings.time,
        pid: Some(server.pid()),
    };
    let outcome = connect::run(&own, settings.is_quiet)?;
    // Clients and server share the machine, so the server's part says more than what both did together.
    let mut figures: Vec<Figure> =
        outcome.server_us.map(|server_us| Figure::lower("server CPU each", "us", server_us)).into_iter().collect();
    figures.push(Figure::higher("connections", "1/s", outcome.per_second()));
    figures.extend(latency_figures(&Latencies::of(&outcome.latencies)));
    Ok(figures)
}

fn memory_turn(settings: &Settings, server: &Server) -> Result<Vec<Figure>, String> {
    let own = load_settings(settings, server, Kind::Replace, 1);
    let outcome = memory::run(&own, server.pid(), settings.is_quiet)?;
    Ok(vec![
        Figure::lower("memory for a row", "bytes", outcome.row_bytes()),
        Figure::lower("resident after", "MiB", outcome.after as f64 / 1024.0 / 1024.0),
    ])
}

/// Starts a server, runs a workload on it once, and ends it.
fn turn(settings: &Settings, workload: Workload, launch: &Launch, round: u64) -> Result<Vec<Figure>, String> {
    // What earlier turns left to be written is written now. Without the program, turns merely disturb each other a little.
    let _ = Command::new("sync").status();
    let server = Server::start(launch)?;
    match workload {
        Workload::Inventory => inventory_turn(settings, &server, round),
        Workload::Replace => load_turn(settings, &server, Kind::Replace, round),
        Workload::Select => load_turn(settings, &server, Kind::Select, round),
        Workload::Connect => connect_turn(settings, &server),
        Workload::Memory => memory_turn(settings, &server),
        Workload::All => Err("`all` is no workload of its own".to_string()),
    }
}

/// All rounds of one workload.
fn compare(settings: &Settings, workload: Workload) -> Result<Vec<Comparison>, String> {
    let mut comparisons: Vec<Comparison> = Vec::new();
    for round in 1..=settings.rounds {
        for is_lycosa in [round % 2 == 1, round % 2 == 0] {
            let (name, launch) =
                if is_lycosa { ("lycosa", &settings.lycosa) } else { ("tarantool", &settings.tarantool) };
            let figures = turn(settings, workload, launch, round)
                .map_err(|error| format!("{}, round {round}, {name}: {error}", workload.name()))?;
            if !settings.is_quiet {
                let words: Vec<String> = figures
                    .iter()
                    .map(|figure| format!("{} {} {}", figure.name, rounded(figure.value), figure.unit))
                    .collect();
                eprintln!("{} {round}/{} {name:9} {}", workload.name(), settings.rounds, words.join(", "));
            }
            for (at, figure) in figures.into_iter().enumerate() {
                if comparisons.len() == at {
                    comparisons.push(Comparison {
                        workload: workload.name(),
                        name: figure.name,
                        unit: figure.unit,
                        better: figure.better,
                        lycosa: Vec::new(),
                        tarantool: Vec::new(),
                        is_main: at == 0,
                    });
                }
                let own = &mut comparisons[at];
                if is_lycosa { own.lycosa.push(figure.value) } else { own.tarantool.push(figure.value) }
            }
        }
    }
    Ok(comparisons)
}

/// What a reader must know to do it again, or to doubt it.
pub(crate) struct Circumstances {
    pub(crate) machine: String,
    seconds_since_1970: u64,
    pub(crate) lycosa: String,
    pub(crate) tarantool: String,
    command: String,
}

impl Circumstances {
    fn find(settings: &Settings) -> Result<Self, String> {
        let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let count = std::thread::available_parallelism().map_or(0, usize::from);
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let describe =
            |launch: &Launch| launch.version().map(|version| format!("{version}, wal_mode={}", launch.wal_mode));
        Ok(Circumstances {
            machine: format!("{count} x {}, Linux {}", model.map_or("unknown", |(_, model)| model), kernel.trim()),
            seconds_since_1970: SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_secs()),
            lycosa: describe(&settings.lycosa)?,
            tarantool: describe(&settings.tarantool)?,
            command: format!("lycosa-bench {}", arguments.join(" ")),
        })
    }
}

/// The whole comparison.
pub(crate) struct Outcome {
    pub(crate) circumstances: Circumstances,
    rounds: u64,
    pub(crate) comparisons: Vec<Comparison>,
}

impl Outcome {
    pub(crate) fn json(&self) -> serde_json::Value {
        let Circumstances { machine, seconds_since_1970, lycosa, tarantool, command } = &self.circumstances;
        json!({
            "machine": machine,
            "seconds_since_1970": seconds_since_1970,
            "lycosa": lycosa,
            "tarantool": tarantool,
            "command": command,
            "rounds": self.rounds,
            "results": self.comparisons.iter().map(Comparison::json).collect::<Vec<_>>(),
        })
    }

    pub(crate) fn print(&self) {
        let Circumstances { machine, lycosa, tarantool, .. } = &self.circumstances;
        println!("{machine}\nlycosa:    {lycosa}\ntarantool: {tarantool}\nmedians of {} rounds\n", self.rounds);
        let row = |cells: [&str; 6]| {
            let [workload, figure, better, lycosa, tarantool, ratio] = cells;
            println!("{workload:10} {figure:24} {better:7} {lycosa:>12} {tarantool:>12} {ratio:>7}");
        };
        row(["workload", "figure", "better", "lycosa", "tarantool", "ratio"]);
        for one in &self.comparisons {
            let (lycosa, tarantool) = one.medians();
            let name = format!("{}, {}", one.name, one.unit);
            let workload = if one.is_main { one.workload } else { "" };
            row([workload, &name, one.better(), &rounded(lycosa), &rounded(tarantool), &format!("{:.2}", one.ratio())]);
        }
    }
}

/// Compares both servers in the workloads.
pub(crate) fn run(workloads: &[Workload], settings: &Settings) -> Result<Outcome, String> {
    let circumstances = Circumstances::find(settings)?;
    let mut comparisons = Vec::new();
    for workload in Workload::expand(workloads) {
        comparisons.extend(compare(settings, workload)?);
    }
    Ok(Outcome { circumstances, rounds: settings.rounds, comparisons })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_means_every_workload_once() {
        assert_eq!(Workload::expand(&[Workload::All, Workload::Select]).len(), 5);
        assert_eq!(Workload::expand(&[Workload::Select, Workload::Select]), [Workload::Select]);
    }

    #[test]
    fn a_ratio_is_of_medians() {
        let one = Comparison {
            workload: "select",
            name: "requests",
            unit: "1/s",
            better: Better::Higher,
            lycosa: vec![1.0, 30.0, 3.0],
            tarantool: vec![2.0],
            is_main: true,
        };
        assert!((one.ratio() - 1.5).abs() < 1e-9);
        assert_eq!(one.json()["lycosa"]["median"], 3.0);
    }
}
