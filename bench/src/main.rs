//! `lycosa-bench`: the project's workloads, against Lycosa or the real Tarantool.
//!
//! It is a client and a starter of servers. Of ours it uses the crate `load`, which knows protocols and no server, so that it measures from
//! outside and all servers alike, and of `runtime` signals and, in `floor`, the event loop. Files and threads are the standard library's:
//! nothing here is simulated.
//!
//! Reading order: `generator` and `inventory` (the workload that the project is measured on), `plain`,
//! `connect`, `memory` (other simple ones), `server`, `contender` and `orphans` (starting and killing), `crash`, `compare` with its `sections`,
//! `results`, `document` and `chart`; `tools` and `cgroup` for the disk engines; `sink` measures this program itself, `floor` and `nothing` the
//! machine.

mod cgroup;
mod chart;
mod compare;
mod connect;
mod contender;
mod crash;
mod crowd;
mod document;
mod floor;
mod generator;
mod goals;
mod inventory;
mod memory;
mod nothing;
mod orphans;
mod plain;
mod plain_postgres;
mod report;
mod results;
mod sections;
mod server;
mod shops;
mod sink;
mod tools;

use clap::{Parser, Subcommand};
use contender::{Contender, Places};
use sections::{SECTIONS, Section};
use server::{DiskMemory, Launch};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Runs the project's workloads against Lycosa or Tarantool.
///
/// Servers that are connected to run examples/inventory/app.lua; `compare` and `crash` start theirs themselves. The exit status says whether
/// everything went well and every check held.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// Print figures as JSON, without progress bars
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Captures and releases by many clients, then the check of the final state
    Inventory {
        /// Address and port of the server
        #[arg(long, default_value = "127.0.0.1:3301")]
        connect: String,
        #[command(flatten)]
        work: InventoryWork,
        /// Connect and ask again when the server goes away, so that it may be killed
        #[arg(long)]
        survive: bool,
    },
    /// Pipelined single-row requests on the space `bench`, which is filled first
    Load {
        /// Address and port of the server
        #[arg(long, default_value = "127.0.0.1:3301")]
        connect: String,
        /// What is asked
        #[arg(long, value_enum, default_value = "replace")]
        operation: plain::Kind,
        /// Connections
        #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..))]
        connections: u16,
        /// Requests in flight on each connection
        #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
        in_flight: u32,
        #[command(flatten)]
        rows: Rows,
        /// Requests in all
        #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
        requests: u64,
        /// The same seed asks for the same keys
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// The server's process, to take its processor time
        #[arg(long)]
        pid: Option<u32>,
        /// Connect by TLS, to a listener with `transport=ssl`; its certificate is not looked at
        #[arg(long)]
        tls: bool,
    },
    /// Clients that connect, log in, ask once and go, in a loop
    Connect {
        /// Address and port of the server
        #[arg(long, default_value = "127.0.0.1:3301")]
        connect: String,
        /// Clients at once
        #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
        clients: u16,
        /// For how long
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
        seconds: u64,
        /// Who logs in
        #[arg(long, default_value = "bench")]
        user: String,
        /// With which password
        #[arg(long, default_value = "bench")]
        password: String,
        /// The server's process, to take its processor time
        #[arg(long)]
        pid: Option<u32>,
    },
    /// Resident memory of a fresh server before and after filling the space `bench`
    Memory {
        /// Address and port of the server
        #[arg(long, default_value = "127.0.0.1:3301")]
        connect: String,
        /// The server's process
        #[arg(long)]
        pid: u32,
        #[command(flatten)]
        rows: Rows,
    },
    /// Start Lycosa and its rivals by turns, run the same work, print medians and ratios, keep the results and put the document together
    Compare(Box<CompareOptions>),
    /// How fast this client is: load on a thread that answers without being a database
    Sink {
        /// For how long each protocol
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
    },
    /// What the machine allows: a server that is no database under the same clients, with and without synced writes
    Floor {
        /// For how long each measurement
        #[arg(long, default_value_t = 3.0)]
        seconds: f64,
        /// Directory on the disk that is to be measured
        #[arg(long)]
        dir: Option<PathBuf>,
    },
    #[command(hide = true)]
    FloorServer(floor::ServerOptions),
    /// Serve a protocol of SQL without doing anything: what a program gets from that is the most that it could get from any server of one thread
    Nothing {
        #[arg(long, default_value = "postgres")]
        protocol: nothing::Protocol,
        /// Port of 127.0.0.1
        #[arg(long)]
        port: u16,
    },
    /// Kill a server during the inventory workload, again and again; nothing acknowledged may be lost
    Crash {
        /// The binary of the server
        #[arg(long, default_value = "target/release/lycosa")]
        server: PathBuf,
        /// How often it is killed while it works
        #[arg(long, default_value_t = 10)]
        kills: u64,
        #[command(flatten)]
        work: InventoryWork,
        /// What a write waits for; `none` shows what a verdict of guilty looks like
        #[arg(long, default_value = "fsync", value_parser = ["fsync", "write", "none"])]
        wal_mode: String,
        /// Directory for the server's data
        #[arg(long)]
        dir: Option<PathBuf>,
    },
}

#[derive(clap::Args)]
struct CompareOptions {
    /// The binary of Lycosa
    #[arg(long, default_value = "target/release/lycosa")]
    lycosa: PathBuf,
    /// The binary of Tarantool
    #[arg(long, default_value = "tarantool")]
    tarantool: PathBuf,
    /// Sections, one or several with commas; `disk` is all of those about disk engines [default: all]
    #[arg(long, alias = "workload", value_delimiter = ',')]
    only: Vec<String>,
    /// Who takes part, out of those that a section compares [default: all of them]
    #[arg(long, value_enum, value_delimiter = ',')]
    contenders: Vec<Contender>,
    /// Less of everything: all sections within ten minutes
    #[arg(long)]
    quick: bool,
    /// Turns of each contender [default: 5, quick 3]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: Option<u64>,
    /// Rows of most sections [default: 1000000, quick 200000]
    #[arg(long, value_parser = clap::value_parser!(u32).range(10..=100_000_000))]
    rows: Option<u32>,
    /// Rows of checkpoints, index builds, drops and starts [default: 5000000, quick 500000]
    #[arg(long, value_parser = clap::value_parser!(u32).range(10..=100_000_000))]
    big_rows: Option<u32>,
    /// Rows of the large space in the section `size` [default: 10000000, quick 1000000]
    #[arg(long, value_parser = clap::value_parser!(u32).range(10..=100_000_000))]
    huge_rows: Option<u32>,
    /// Rows of the sections about disk engines; they get memory in proportion, 128 MiB each for writes and reads at 10000000 [default: 10000000, quick
    /// 300000]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1000..=1_000_000_000))]
    disk_rows: Option<u32>,
    /// Length of the overwrites at a steady rate in the section `disk-sustained` [default: 600, quick 5]
    #[arg(long)]
    sustained_seconds: Option<f64>,
    /// Length of each measurement [default: 0.5, quick 0.2]
    #[arg(long)]
    seconds: Option<f64>,
    /// Operations of the inventory [default: 60000, quick 10000]
    #[arg(long, value_parser = clap::value_parser!(u32).range(10..=100_000_000))]
    operations: Option<u32>,
    /// How many seconds a turn waits for others to leave the machine alone; 0: it does not look, nor is it done again
    #[arg(long, default_value_t = 5.0)]
    patience: f64,
    /// Directory for the servers' data, on the disk that is to be measured; made if it is not there
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Where results are kept
    #[arg(long, default_value = "target/bench")]
    results: PathBuf,
    /// Write the document, with pictures beside it, from all results that are kept
    #[arg(long, value_name = "FILE.md")]
    document: Option<PathBuf>,
    /// Only that
    #[arg(long, requires = "document")]
    document_only: bool,
}

impl CompareOptions {
    fn settings(&self, is_quiet: bool) -> compare::Settings {
        let either = |given: Option<u32>, usual, quick| given.unwrap_or(if self.quick { quick } else { usual });
        let seconds = self.seconds.unwrap_or(if self.quick { 0.2 } else { 0.5 });
        let disk_rows = either(self.disk_rows, 10_000_000, 300_000);
        let sustained = self.sustained_seconds.unwrap_or(if self.quick { 5.0 } else { 600.0 });
        compare::Settings {
            places: Places {
                lycosa: self.lycosa.clone(),
                tarantool: self.tarantool.clone(),
                parent: self.dir.clone(),
                disk_memory: disk_memory(disk_rows),
            },
            contenders: self.contenders.clone(),
            scale: compare::Scale {
                rounds: self.rounds.unwrap_or(if self.quick { 3 } else { 5 }),
                rows: either(self.rows, 1_000_000, 200_000),
                big_rows: either(self.big_rows, 5_000_000, 500_000),
                huge_rows: either(self.huge_rows, 10_000_000, 1_000_000),
                disk_rows,
                sustained: Duration::from_secs_f64(sustained.clamp(0.001, 86_400.0)),
                time: Duration::from_secs_f64(seconds.clamp(0.001, 3600.0)),
                operations: either(self.operations, 60_000, 10_000),
            },
            is_quick: self.quick,
            is_quiet,
            patience: Duration::from_secs_f64(self.patience.clamp(0.0, 3600.0)),
            results: self.results.clone(),
        }
    }
}

/// Rows beyond memory whatever their number is: what 10 million have, or a part of it, down to what a server can start with.
fn disk_memory(rows: u32) -> DiskMemory {
    const LEAST: u64 = 8 << 20;
    let usual = DiskMemory::default();
    let part = |bytes: u64| (bytes / 10_000_000 * u64::from(rows)).clamp(LEAST, bytes.max(LEAST));
    DiskMemory { write_bytes: part(usual.write_bytes), cache_bytes: part(usual.cache_bytes) }
}

#[derive(clap::Args)]
struct InventoryWork {
    /// Distinct rows of stock
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=generator::ITEMS_MAX))]
    items: u64,
    /// Operations in all
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    operations: u32,
    /// Clients, each with a connection and one request in flight
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=1000))]
    clients: u64,
    /// The same seed gives the same work
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl InventoryWork {
    fn generate(&self) -> generator::Work {
        generator::generate(self.items, self.operations as usize, self.seed)
    }
}

#[derive(clap::Args)]
struct Rows {
    /// Rows in the space
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..))]
    rows: u32,
    /// Bytes of the string in each
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    row_bytes: u32,
}

impl Rows {
    /// Load that only fills, until something else is said.
    fn load(&self, address: String) -> plain::Settings {
        plain::Settings {
            address,
            kind: plain::Kind::Replace,
            connections: 1,
            in_flight: 1,
            rows: self.rows,
            row_bytes: self.row_bytes as usize,
            requests: 0,
            seed: 1,
            pid: None,
            is_sealed: false,
        }
    }
}

/// Prints an outcome, one way or the other.
fn show(is_json: bool, json: impl FnOnce() -> serde_json::Value, print: impl FnOnce()) {
    if is_json { println!("{}", json()) } else { print() }
}

fn inventory(work: &InventoryWork, settings: &inventory::Settings, is_json: bool) -> Result<(), String> {
    let generated = work.generate();
    let outcome = report::with_progress("operations", u64::from(work.operations), is_json, |done| {
        inventory::run(settings, &generated, done)
    })?;
    show(is_json, || outcome.json(), || outcome.print());
    if outcome.faults.count == 0 { Ok(()) } else { Err("the final state is wrong".to_string()) }
}

fn load(settings: &plain::Settings, is_json: bool) -> Result<(), String> {
    plain::fill(settings, is_json)?;
    let outcome = plain::run(settings, is_json)?;
    show(is_json, || outcome.json(), || outcome.print());
    Ok(())
}

/// The sections that are named, in their order; all if none is.
fn chosen(names: &[String]) -> Result<Vec<&'static Section>, String> {
    let is_named = |name: &str, section: &Section| section.name == name || name == "disk" && section.is_disk();
    if let Some(unknown) = names.iter().find(|name| !SECTIONS.iter().any(|section| is_named(name, section))) {
        let known: Vec<&str> = SECTIONS.iter().map(|section| section.name).collect();
        return Err(format!("there is no section `{unknown}`; there are {}", known.join(", ")));
    }
    let is_wanted = |section: &&Section| names.is_empty() || names.iter().any(|name| is_named(name, section));
    Ok(SECTIONS.iter().filter(is_wanted).collect())
}

fn compare(options: &CompareOptions, is_json: bool) -> Result<(), String> {
    if let Some(dir) = &options.dir {
        std::fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    }
    let sections = chosen(&options.only)?;
    let settings = options.settings(is_json);
    let mut all = Vec::new();
    for section in sections.into_iter().filter(|_| !options.document_only) {
        let results = compare::run(section, &settings)?;
        if !is_json {
            compare::print(&results);
        }
        all.push(results);
    }
    if is_json {
        println!("{}", serde_json::to_string(&all).map_err(|error| error.to_string())?);
    }
    if let Some(path) = &options.document {
        document::write(path, &settings.results)?;
    }
    let failures: Vec<&str> = all.iter().flat_map(|results| &results.failures).map(String::as_str).collect();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\nlycosa-bench: ")) }
}

fn crash(launch: &Launch, kills: u64, work: &InventoryWork, is_json: bool) -> Result<(), String> {
    let verdict = crash::run(launch, &work.generate(), work.clients, kills, work.seed, is_json)?;
    show(is_json, || verdict.json(), || verdict.print());
    if verdict.is_right() { Ok(()) } else { Err("the server broke its word".to_string()) }
}

fn run(cli: Cli) -> Result<(), String> {
    let is_json = cli.json;
    match cli.command {
        Command::Inventory { connect: address, work, survive } => {
            inventory(&work, &inventory::Settings { address, clients: work.clients, survive }, is_json)
        }
        Command::Load { connect, operation, connections, in_flight, rows, requests, seed, pid, tls } => {
            let settings = plain::Settings {
                kind: operation,
                connections: usize::from(connections),
                in_flight: in_flight as usize,
                requests,
                seed,
                pid,
                is_sealed: tls,
                ..rows.load(connect)
            };
            load(&settings, is_json)
        }
        Command::Connect { connect: address, clients, seconds, user, password, pid } => {
            let time = Duration::from_secs(seconds);
            let settings = connect::Settings { address, user, password, clients: usize::from(clients), time, pid };
            let outcome = connect::run(&settings, is_json)?;
            show(is_json, || outcome.json(), || outcome.print());
            Ok(())
        }
        Command::Memory { connect, pid, rows } => {
            let outcome = memory::run(&rows.load(connect), pid, is_json)?;
            show(is_json, || outcome.json(), || outcome.print());
            Ok(())
        }
        Command::Compare(options) => compare(&options, is_json),
        Command::Sink { seconds } => sink::run(Duration::from_secs_f64(seconds), is_json),
        Command::Floor { seconds, dir } => {
            let figures = floor::run(dir.as_deref(), Duration::from_secs_f64(seconds), is_json)?;
            if is_json {
                println!("{figures}");
            }
            Ok(())
        }
        Command::FloorServer(options) => floor::serve(&options).map_err(|error| error.to_string()),
        Command::Nothing { protocol, port } => nothing::serve(port, protocol).map_err(|error| error.to_string()),
        Command::Crash { server, kills, work, wal_mode, dir } => crash(
            &Launch { binary: server, wal_mode, parent: dir, disk_memory: DiskMemory::default() },
            kills,
            &work,
            is_json,
        ),
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match orphans::handle().and_then(|()| run(cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lycosa-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
