//! `sim`: the tools of this package on the command line. The exit status says whether every promise held.

mod command;

use clap::{Parser, Subcommand};
use command::seeds::{self, MinimiseArgs, ReplayArgs, RunSeedsArgs, SeedsArgs};
use serde_json::{Map, Value, json};
use sim::check::{Finding, Seeds};
use sim::report::Progress;
use sim::world::{Engine, Layout};
use sim::{crash_points, errors, histories};
use std::io;
use std::process::ExitCode;

/// Breaks a database over simulated files in every way, and checks that it keeps its word.
#[derive(Parser)]
#[command(version)]
struct Cli {
    /// Print figures as JSON, without progress bars
    #[arg(long, global = true)]
    json: bool,
    /// Losses by chance at every change, beside the named ones
    #[arg(long, global = true)]
    seeds: Option<u64>,
    /// Rows on disk instead of in memory
    #[arg(long, global = true)]
    disk: bool,
    /// The seed of the first of them
    #[arg(long, global = true, default_value_t = 0)]
    seed: u64,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// One workload with everything in it: the power goes at every change of a file, and again at every change of the recovery
    CrashPoints {
        /// Log and snapshots in one directory
        #[arg(long)]
        one_directory: bool,
        /// The power goes once only
        #[arg(long)]
        once: bool,
        /// Print every operation that the workload asks of the files
        #[arg(long)]
        trace: bool,
    },
    /// Every sequence of a few operations, the power gone at every change of each
    Histories {
        /// Operations of the longest sequence
        #[arg(long, default_value_t = 2)]
        length: usize,
        /// The power goes again at every change of the recovery
        #[arg(long)]
        again: bool,
    },
    /// The N-th operation on files fails, the disk is full at the N-th byte, the N-th allocation is refused, for every N
    Errors,
    /// Bugs put in on purpose, each of which must be found
    Planted,
    /// The whole server, its clients, faults and crashes, from many seeds
    Seeds(SeedsArgs),
    /// One of these seeds again, with everything that happened
    Replay(ReplayArgs),
    /// Looks for the smallest run that still breaks what a seed breaks
    Minimise(MinimiseArgs),
    #[command(hide = true)]
    RunSeeds(RunSeedsArgs),
}

fn finding_json(finding: Option<&Finding>) -> Value {
    finding.map_or(
        Value::Null,
        |finding| json!({ "what": finding.what, "work": finding.work, "at": finding.at, "loss": finding.loss }),
    )
}

/// Prints the verdict; true if there is no finding.
fn end(is_json: bool, mut figures: Value, finding: Option<&Finding>) -> bool {
    if is_json {
        figures["finding"] = finding_json(finding);
        println!("{figures}");
    } else {
        match finding {
            None => println!("{:<24}nothing lost, nothing by halves, nothing that was not submitted", "verdict"),
            Some(finding) => println!("{:<24}BROKEN: {finding}", "verdict"),
        }
    }
    finding.is_none()
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let progress = |what| if cli.json { Progress::hidden() } else { Progress::visible(what) };
    let engine = if cli.disk { Engine::Disk } else { Engine::Memory };
    let is_right = match cli.command {
        Command::CrashPoints { one_directory, once, trace } => {
            let layout = if one_directory { Layout::Together } else { Layout::Apart };
            let default = crash_points::Options::default();
            let seeds = Seeds { first: cli.seed, count: cli.seeds.unwrap_or(default.seeds.count) };
            let options = crash_points::Options { layout, seeds, again: !once, engine, ..default };
            let outcome = crash_points::run(options, &progress("crash points"));
            if trace {
                outcome.operations.iter().for_each(|operation| println!("{operation}"));
            }
            if !cli.json {
                outcome.counts.print();
            }
            end(cli.json, outcome.counts.json(), outcome.finding.as_ref())
        }
        Command::Histories { length, again } => {
            let default = histories::Options::default();
            let seeds = Seeds { first: cli.seed, count: cli.seeds.unwrap_or(default.seeds.count) };
            let options = histories::Options { length, seeds, again, engine, ..default };
            let outcome = histories::run(options, &progress("histories"));
            let mut figures = outcome.counts.json();
            figures["histories"] = outcome.histories.into();
            if !cli.json {
                println!("{:<24}{}", "histories", outcome.histories);
                outcome.counts.print();
            }
            end(cli.json, figures, outcome.finding.as_ref())
        }
        Command::Errors => {
            let default = errors::Options::default();
            let seeds = Seeds { first: cli.seed, count: cli.seeds.unwrap_or(default.seeds.count) };
            let options = errors::Options { seeds, engine, ..default };
            let outcome = errors::run(options, &progress("errors"));
            let runs: Map<String, Value> =
                outcome.runs.iter().map(|(kind, count)| (kind.name().to_string(), (*count).into())).collect();
            if !cli.json {
                let runs: Vec<String> = outcome.runs.iter().map(|(kind, n)| format!("{} {n}", kind.name())).collect();
                println!("{:<24}{}", "runs", runs.join(", "));
                println!("{:<24}{}", "failed logs", outcome.failed_logs);
                println!("{:<24}{}", "refused starts", outcome.failed_starts);
                println!("{:<24}{}", "states", outcome.counts.states);
                println!("{:<24}{}", "images recovered", outcome.counts.images);
            }
            let figures = json!({
                "runs": runs,
                "failed_logs": outcome.failed_logs,
                "refused_starts": outcome.failed_starts,
                "states": outcome.counts.states,
                "images_recovered": outcome.counts.images,
            });
            end(cli.json, figures, outcome.finding.as_ref())
        }
        Command::Planted => or_exit(command::planted::run(cli.json, progress)),
        Command::Seeds(arguments) => or_exit(seeds::seeds(arguments, cli.json, &progress("seeds"))),
        Command::Replay(arguments) => or_exit(seeds::replay(arguments, cli.json)),
        Command::Minimise(arguments) => or_exit(seeds::minimise(arguments, cli.json, &progress("minimise"))),
        Command::RunSeeds(arguments) => or_exit(seeds::run_seeds(arguments)),
    };
    if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The machine failed, not the product.
fn or_exit(result: io::Result<bool>) -> bool {
    result.unwrap_or_else(|error| {
        eprintln!("sim: {error}");
        std::process::exit(2)
    })
}
