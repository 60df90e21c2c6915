//! `lycosa-bench`: the project's workloads, against Lycosa or the real Tarantool.

mod client;
mod compare;
mod inventory;
mod load;
mod report;
mod server;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

/// Runs the project's workloads. The servers run examples/inventory/app.lua.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// Machine-readable figures, no progress bars
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Captures and releases against a running server, then the check of the final state
    Inventory {
        /// host:port
        #[arg(long, default_value = "127.0.0.1:3301")]
        connect: String,
        /// Distinct rows of stock
        #[arg(long, default_value_t = 1000)]
        items: usize,
        /// Operations in all
        #[arg(long, default_value_t = 1_000_000)]
        operations: usize,
        /// Connections, each with one request in flight
        #[arg(long, default_value_t = 16)]
        clients: usize,
        /// The same seed gives the same work
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Connect again and ask again when the server is restarted
        #[arg(long)]
        survive: bool,
    },
    /// Pipelined single-row requests against a running server
    Load {
        /// host:port
        #[arg(long, default_value = "127.0.0.1:3301")]
        connect: String,
        /// What is asked
        #[arg(long, value_enum, default_value = "replace")]
        operation: load::Kind,
        /// Connections
        #[arg(long, default_value_t = 4)]
        connections: usize,
        /// Requests in flight on each
        #[arg(long, default_value_t = 256)]
        in_flight: usize,
        /// Rows in the space, which is filled first
        #[arg(long, default_value_t = 1_000_000)]
        rows: u64,
        /// Bytes of the string in each
        #[arg(long, default_value_t = 100)]
        row_bytes: usize,
        /// Requests in all
        #[arg(long, default_value_t = 2_000_000)]
        requests: usize,
    },
    /// Connect, log in, ask once, close, in a loop
    Connect {
        /// host:port
        #[arg(long, default_value = "127.0.0.1:3301")]
        connect: String,
        /// Clients at once
        #[arg(long, default_value_t = 16)]
        clients: usize,
        /// For how long
        #[arg(long, default_value_t = 5)]
        seconds: u64,
        /// Number of the server's process, whose processor time is taken
        #[arg(long)]
        pid: u32,
        /// Who logs in
        #[arg(long, default_value = "bench")]
        user: String,
        /// With which password
        #[arg(long, default_value = "bench")]
        password: String,
    },
    /// Starts Lycosa and Tarantool, runs the same work on both by turns, prints medians and ratios
    Compare {
        /// The binary of Lycosa
        #[arg(long, default_value = "target/release/lycosa")]
        lycosa: PathBuf,
        /// The binary of Tarantool
        #[arg(long, default_value = "tarantool")]
        tarantool: PathBuf,
        /// What Lycosa waits for; Tarantool runs in its default, write
        #[arg(long, default_value = "fsync", value_parser = ["fsync", "write", "none"])]
        lycosa_wal_mode: String,
        /// Rounds, each in both orders by turns
        #[arg(long, default_value_t = 5)]
        rounds: usize,
        /// Which work
        #[arg(long, value_enum, value_delimiter = ',', default_value = "inventory,replace,select,connect,memory")]
        workload: Vec<compare::Workload>,
        /// Operations of one round
        #[arg(long, default_value_t = 200_000)]
        operations: usize,
        /// Rows for load and memory
        #[arg(long, default_value_t = 1_000_000)]
        rows: u64,
    },
    /// Kills the server during the inventory workload, again and again; nothing acknowledged may be lost
    Crash {
        /// The binary
        #[arg(long, default_value = "target/release/lycosa")]
        server: PathBuf,
        /// How often it is killed
        #[arg(long, default_value_t = 10)]
        kills: usize,
        /// Operations in all
        #[arg(long, default_value_t = 1_000_000)]
        operations: usize,
        /// Connections
        #[arg(long, default_value_t = 16)]
        clients: usize,
        /// The same seed gives the same work
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

fn show(outcome: &inventory::Outcome, is_json: bool) -> Result<(), String> {
    if is_json {
        println!("{}", outcome.json());
    } else {
        outcome.print();
    }
    match outcome.wrong.is_empty() {
        true => Ok(()),
        false => Err("the final state is wrong".to_string()),
    }
}

fn run(cli: Cli) -> Result<(), String> {
    let is_json = cli.json;
    match cli.command {
        Command::Inventory { connect, items, operations, clients, seed, survive } => {
            let settings = inventory::Settings { address: connect, items, operations, clients, seed, survive };
            let work = inventory::generate(items, operations, seed);
            show(&inventory::run_shown(&settings, &work, is_json)?, is_json)
        }
        Command::Load { connect, operation, connections, in_flight, rows, row_bytes, requests } => {
            load::fill(&connect, rows, row_bytes)?;
            let settings =
                load::Settings { address: connect, kind: operation, connections, in_flight, rows, row_bytes, requests };
            let done = AtomicUsize::new(0);
            let outcome = report::with_progress(requests, is_json, &done, || load::run(&settings, &done))?;
            if is_json {
                println!("{}", outcome.json());
            } else {
                outcome.print();
            }
            Ok(())
        }
        Command::Connect { connect, clients, seconds, pid, user, password } => {
            let time = Duration::from_secs(seconds);
            let outcome = load::connects(&connect, (&user, &password), clients, time, pid)?;
            if is_json {
                println!("{}", outcome.json());
            } else {
                outcome.print();
            }
            Ok(())
        }
        Command::Compare { lycosa, tarantool, lycosa_wal_mode, rounds, workload, operations, rows } => {
            let settings = compare::Settings {
                lycosa,
                tarantool,
                lycosa_wal_mode,
                rounds,
                operations,
                rows,
                is_json,
            };
            compare::run(&workload, &settings)
        }
        Command::Crash { server, kills, operations, clients, seed } => {
            show(&compare::crash(server, kills, operations, clients, seed, is_json)?, is_json)
        }
    }
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lycosa-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
