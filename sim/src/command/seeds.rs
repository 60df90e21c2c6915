//! `sim seeds`, `sim replay`, `sim minimise`: the whole server on a simulated machine.

use clap::Args;
use serde_json::json;
use sim::machine::branch::Branch;
use sim::machine::limits::{Engine, Hazard, Limits};
use sim::machine::runs::{self, Choice, Finding, Options, Totals};
use sim::machine::trace_so_far;
use sim::planted::Bug;
use sim::report::Progress;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use trial::{Door, Doors};

/// What all these commands may be told.
#[derive(Args)]
pub(crate) struct ChoiceArgs {
    /// Only these workloads, all at once, instead of one or two by the seed's choice
    #[arg(long, value_delimiter = ',', value_parser = parse_workload)]
    workload: Vec<String>,
    /// Most clients of a workload
    #[arg(long)]
    clients: Option<usize>,
    /// Most lives of the server that are ended
    #[arg(long)]
    lives: Option<u64>,
    /// Longest work in a life, in simulated microseconds
    #[arg(long)]
    load_us: Option<u64>,
    /// Faults that are left out
    #[arg(long, value_delimiter = ',', value_parser = parse_hazard)]
    without: Vec<Hazard>,
    /// Rows in memory, on disk, or some spaces of each (mixed) [default: the seed's choice]
    #[arg(long, value_parser = parse_engine)]
    engine: Option<Engine>,
    /// A bug to put in, as of `sim planted`
    #[arg(long, hide = true, value_parser = parse_bug)]
    bug: Option<Bug>,
}

fn parse_workload(name: &str) -> Result<String, String> {
    let through = [Door::Redis, Door::Postgres].map(|door| trial::through_doors(&Doors::new(vec![door])));
    let all = trial::all();
    let mut known: Vec<&str> = all.iter().chain(through.iter().flatten()).map(|workload| workload.name()).collect();
    known.sort_unstable();
    known.dedup();
    if known.contains(&name) {
        return Ok(name.to_string());
    }
    Err(format!("there are {}", known.join(", ")))
}

fn parse_hazard(name: &str) -> Result<Hazard, String> {
    let known: Vec<&str> = Hazard::ALL.iter().map(|hazard| hazard.name()).collect();
    Hazard::named(name).ok_or_else(|| format!("there are {}", known.join(", ")))
}

fn parse_engine(name: &str) -> Result<Engine, String> {
    let known: Vec<&str> = Engine::ALL.iter().map(|engine| engine.name()).collect();
    Engine::named(name).ok_or_else(|| format!("there are {}", known.join(", ")))
}

fn parse_bug(name: &str) -> Result<Bug, String> {
    let known: Vec<&str> = Bug::ALL.iter().map(|bug| bug.name()).collect();
    Bug::named(name).ok_or_else(|| format!("there are {}", known.join(", ")))
}

impl From<ChoiceArgs> for Choice {
    fn from(arguments: ChoiceArgs) -> Self {
        let ChoiceArgs { workload, clients, lives, load_us, without, engine, bug } = arguments;
        let without = without.into_iter().collect::<BTreeSet<_>>();
        let limits = Limits { clients_max: clients, lives_max: lives, load_us_max: load_us, without, engine };
        Choice { workloads: workload, limits, bug }
    }
}

/// Processors of this machine.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get())
}

/// The command that runs a seed again.
fn replay_command(seed: u64, choice: &Choice) -> String {
    let mut words = vec!["sim replay".to_string(), seed.to_string()];
    words.extend(choice.arguments());
    words.push("--trace".to_string());
    words.join(" ")
}

/// Seeds that are run.
#[derive(Args)]
pub(crate) struct SeedsArgs {
    /// Seeds
    #[arg(long, default_value_t = 1000)]
    count: u64,
    /// The first of them
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Processes at a time; as many as there are cores by itself
    #[arg(long)]
    jobs: Option<usize>,
    /// Stop behind the first finding
    #[arg(long)]
    until_found: bool,
    #[command(flatten)]
    choice: ChoiceArgs,
}

/// `sim seeds`. True if nothing was found.
pub(crate) fn seeds(arguments: SeedsArgs, is_json: bool, progress: &Progress) -> io::Result<bool> {
    let options = Options {
        program: std::env::current_exe()?,
        first: arguments.first,
        count: arguments.count,
        jobs: arguments.jobs.unwrap_or_else(cores),
        choice: arguments.choice.into(),
        until_found: arguments.until_found,
    };
    let totals = runs::run(&options, progress)?;
    if is_json {
        println!("{}", totals_json(&totals, &options.choice));
    } else {
        print(&totals, &options.choice);
    }
    Ok(totals.findings.is_empty())
}

fn totals_json(totals: &Totals, choice: &Choice) -> serde_json::Value {
    let replay = |finding: &Finding| replay_command(finding.seed, choice);
    let mut figures = json!(totals);
    figures["seeds_per_second"] = per_second(totals).into();
    figures["gaps"] = json!(totals.gaps());
    figures["replay"] = totals.findings.iter().map(replay).collect();
    figures
}

fn per_second(totals: &Totals) -> f64 {
    totals.seeds as f64 * 1000.0 / totals.elapsed_ms.max(1) as f64
}

fn print(totals: &Totals, choice: &Choice) {
    let line = |name: &str, value: String| println!("{name:<24}{value}");
    let share = |count: u64| format!("{:>6.1} %  {count}", count as f64 * 100.0 / totals.seeds.max(1) as f64);
    line("seeds", totals.seeds.to_string());
    line("seeds a second", format!("{:.1}", per_second(totals)));
    line("simulated seconds", format!("{:.0}", totals.simulated_ns as f64 / 1e9));
    line("operations", totals.operations.to_string());
    line("  acknowledged", totals.acknowledged.to_string());
    line("  refused", totals.refused.to_string());
    line("  without an answer", totals.unknown.to_string());
    line("hash", format!("{:016x}", totals.hash));
    println!("\nseeds with a workload");
    for (name, count) in &totals.workloads {
        println!("  {name:<46}{}", share(*count));
    }
    println!("\nseeds that reached");
    for branch in Branch::ALL {
        if let Some(count) = totals.reached.get(branch.name()) {
            println!("  {:<46}{}", branch.name(), share(*count));
        }
    }
    for name in totals.gaps() {
        println!("  {name:<46} NEVER");
    }
    println!();
    for finding in &totals.findings {
        println!("BROKEN: {finding}\n  {}", replay_command(finding.seed, choice));
    }
    if totals.findings.is_empty() {
        line("verdict", "every promise was kept".to_string());
    } else {
        line("verdict", format!("{} of {} seeds broke a promise", totals.findings.len(), totals.seeds));
    }
}

/// A part of the seeds, run in this process.
#[derive(Args)]
pub(crate) struct RunSeedsArgs {
    #[arg(long)]
    first: u64,
    #[arg(long)]
    count: u64,
    #[command(flatten)]
    choice: ChoiceArgs,
}

/// What a child of `sim seeds` does. Always true: the parent judges.
pub(crate) fn run_seeds(arguments: RunSeedsArgs) -> io::Result<bool> {
    runs::serve(arguments.first, arguments.count, &arguments.choice.into(), &mut io::stdout().lock())?;
    Ok(true)
}

/// One seed, looked at closely.
#[derive(Args)]
pub(crate) struct ReplayArgs {
    seed: u64,
    /// Print the last lines of what happened
    #[arg(long)]
    trace: bool,
    /// How many
    #[arg(long, default_value_t = 200)]
    lines: usize,
    /// Write the files that are on the disk at the end into this directory
    #[arg(long)]
    dump: Option<PathBuf>,
    #[command(flatten)]
    choice: ChoiceArgs,
}

/// `sim replay`. True if every promise was kept.
pub(crate) fn replay(arguments: ReplayArgs, is_json: bool) -> io::Result<bool> {
    let ReplayArgs { seed, trace, lines, dump, choice } = arguments;
    let choice = Choice::from(choice);
    if trace {
        print_trace_at_panic(lines);
    }
    let verdict = choice.run(seed, trace || dump.is_some());
    if trace {
        print_end(&verdict.trace, lines);
    }
    if let Some(dir) = dump {
        verdict.files.iter().try_for_each(|(path, bytes)| write_under(&dir, path, bytes))?;
    }
    let figures = json!({
        "seed": seed,
        "workloads": verdict.workloads,
        "operations": verdict.operations,
        "acknowledged": verdict.acknowledged,
        "refused": verdict.refused,
        "unknown": verdict.unknown,
        "steps": verdict.steps,
        "simulated_ns": verdict.simulated_ns,
        "hash": format!("{:016x}", verdict.hash),
        "reached": verdict.reached,
        "violation": verdict.violation,
    });
    if is_json {
        println!("{figures}");
    } else {
        println!("{figures:#}");
        match &verdict.violation {
            None => println!("{:<24}every promise was kept", "verdict"),
            Some((workload, text)) => println!("{:<24}BROKEN: {workload}: {text}", "verdict"),
        }
    }
    Ok(verdict.violation.is_none())
}

fn print_end(trace: &[String], lines: usize) {
    trace.iter().skip(trace.len().saturating_sub(lines)).for_each(|line| println!("{line}"));
}

/// A panic ends the replay: what came before it is what one wants to see.
fn print_trace_at_panic(lines: usize) {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        print_end(&trace_so_far(), lines);
        before(info);
    }));
}

fn write_under(dir: &Path, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = dir.join(path.strip_prefix("/").unwrap_or(path));
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    std::fs::write(path, bytes)
}

/// A seed to be made smaller.
#[derive(Args)]
pub(crate) struct MinimiseArgs {
    seed: u64,
    /// Seeds behind this one that may stand for it once something is left out
    #[arg(long, default_value_t = 40)]
    neighbours: u64,
    #[command(flatten)]
    choice: ChoiceArgs,
}

/// `sim minimise`. True if the seed breaks nothing.
pub(crate) fn minimise(arguments: MinimiseArgs, is_json: bool, progress: &Progress) -> io::Result<bool> {
    let options = Options {
        program: std::env::current_exe()?,
        first: arguments.seed,
        count: 1,
        jobs: cores(),
        choice: arguments.choice.into(),
        until_found: true,
    };
    let Some(smallest) = runs::minimise(&options, arguments.neighbours, progress)? else {
        match is_json {
            true => println!("{}", json!({ "seed": arguments.seed, "violation": null })),
            false => println!("seed {} keeps every promise", arguments.seed),
        }
        return Ok(true);
    };
    let command = replay_command(smallest.line.seed, &smallest.choice);
    let (workload, text) = smallest.line.violation.clone().unwrap_or_default();
    if is_json {
        let figures = json!({
            "seed": smallest.line.seed,
            "violation": [workload, text],
            "tried": smallest.tried,
            "replay": command,
        });
        println!("{figures}");
    } else {
        println!("the smallest of {} runs\nBROKEN: seed {}: {workload}: {text}", smallest.tried, smallest.line.seed);
        println!("  {command}");
    }
    Ok(false)
}
