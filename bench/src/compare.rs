//! Servers, the same work, by turns.
//!
//! Each turn has a server of its own, started on an empty directory and gone afterwards, so that no turn inherits memory, files or unwritten pages
//! from another; and only one server runs at a time. Who begins changes from round to round. Others may use the machine meanwhile: a turn waits for
//! quiet before it begins, for a bounded time, and is done again if too much processor time went elsewhere; what remains of it is told.

use crate::contender::{Contender, Places, Running};
use crate::report::rounded;
use crate::results::{Better, Recorder, Results, Turn};
use crate::sections::Section;
use crate::server::DiskMemory;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

/// Processors that others may use during a turn before it is done again.
pub(crate) const DISTURBANCE_MAX: f64 = 0.35;
/// A turn is done so often at most.
const TRIES_MAX: u32 = 3;
/// How long a look at the machine takes.
const LOOK: Duration = Duration::from_millis(200);

/// How much.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    /// Turns of each contender; sections with long turns take fewer.
    pub(crate) rounds: u64,
    /// Rows of ordinary sections.
    pub(crate) rows: u32,
    /// Rows of checkpoints, index builds and starts.
    pub(crate) big_rows: u32,
    /// Rows of the section about size.
    pub(crate) huge_rows: u32,
    /// Rows of the disk engines.
    pub(crate) disk_rows: u32,
    /// Length of the section that goes on for long.
    pub(crate) sustained: Duration,
    /// Length of each measurement.
    pub(crate) time: Duration,
    /// Operations of the inventory.
    pub(crate) operations: u32,
}

/// How.
pub(crate) struct Settings {
    pub(crate) places: Places,
    /// Only these take part; all that a section names if there are none.
    pub(crate) contenders: Vec<Contender>,
    pub(crate) scale: Scale,
    pub(crate) is_quick: bool,
    pub(crate) is_quiet: bool,
    /// Longest wait for quiet before a turn.
    pub(crate) patience: Duration,
    /// Where results are kept.
    pub(crate) results: PathBuf,
}

impl Settings {
    /// So many turns at most: of a section whose turns are long. A quick run takes fewer.
    pub(crate) fn at_most(&self, full: u64, quick: u64) -> u64 {
        if self.is_quick { quick } else { full }
    }
}

/// Processor time that this program and all servers that it has started and seen end took, in seconds.
fn own_seconds() -> Result<f64, String> {
    let text = std::fs::read_to_string("/proc/self/stat").map_err(|error| format!("/proc/self/stat: {error}"))?;
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    // utime, stime and those of children, fields 14 to 17, in hundredths.
    let ticks: u64 = fields.skip(11).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(ticks as f64 / 100.0)
}

/// Watches who uses the machine.
struct Watch {
    begun: Instant,
    machine: f64,
    own: f64,
}

impl Watch {
    fn start() -> Result<Self, String> {
        Ok(Watch { begun: Instant::now(), machine: load::process::machine_seconds()?.0, own: own_seconds()? })
    }

    /// Processors that others have used since then, on average.
    fn others(&self) -> Result<f64, String> {
        let spent = load::process::machine_seconds()?.0 - self.machine - (own_seconds()? - self.own);
        Ok((spent / self.begun.elapsed().as_secs_f64().max(1e-3)).max(0.0))
    }
}

/// Waits until others leave the machine alone, or the patience ends.
fn wait_for_quiet(patience: Duration) -> Result<(), String> {
    let begun = Instant::now();
    while begun.elapsed() < patience {
        let watch = Watch::start()?;
        std::thread::sleep(LOOK);
        if watch.others()? < DISTURBANCE_MAX {
            break;
        }
    }
    Ok(())
}

/// What a turn of a section does with a server that has just been started.
pub(crate) type Work<'a> = dyn Fn(&mut Running, u64, &mut Turn) -> Result<(), String> + 'a;

/// One turn: what it found, and the processors that others used.
fn turn(settings: &Settings, contender: Contender, round: u64, work: &Work<'_>) -> Result<(Turn, f64), String> {
    // What earlier turns left to be written is written now. Without the program, turns merely disturb each other a little.
    let _ = Command::new("sync").status();
    wait_for_quiet(settings.patience)?;
    let watch = Watch::start()?;
    let mut found = Turn::default();
    let mut running = contender.start(&settings.places)?;
    work(&mut running, round, &mut found)?;
    drop(running);
    Ok((found, watch.others()?))
}

/// Runs `work` for each contender in each round. A contender that cannot be had is named in the results, and so is one that fails; it takes no
/// further part.
pub(crate) fn by_turns(
    settings: &Settings,
    recorder: &mut Recorder,
    contenders: &[Contender],
    rounds_max: u64,
    work: &Work<'_>,
) -> Result<(), String> {
    let rounds = settings.scale.rounds.min(rounds_max);
    recorder.results.rounds = recorder.results.rounds.max(rounds);
    let mut present = Vec::new();
    for contender in contenders {
        if !settings.contenders.is_empty() && !settings.contenders.contains(contender) {
            recorder.results.missing.push(format!("{}: left out by --contenders", contender.label()));
            continue;
        }
        match contender.describe(&settings.places) {
            Ok(participant) => {
                if !recorder.results.participants.iter().any(|one| one.label == participant.label) {
                    recorder.results.participants.push(participant);
                }
                present.push(*contender);
            }
            Err(error) => recorder.results.missing.push(error),
        }
    }
    let name = recorder.results.section.clone();
    // Those that failed or cannot do it.
    let mut out: Vec<Contender> = Vec::new();
    for round in 1..=rounds {
        for at in 0..present.len() {
            let contender = present[(at + round as usize - 1) % present.len()];
            if out.contains(&contender) {
                continue;
            }
            // A quick run has no time to be quick about it twice.
            let tries_max = if settings.is_quick || settings.patience.is_zero() { 1 } else { TRIES_MAX };
            let mut tries = 0;
            let outcome = loop {
                tries += 1;
                let outcome = turn(settings, contender, round, work);
                match &outcome {
                    Ok((_, disturbance)) if *disturbance >= DISTURBANCE_MAX && tries < tries_max => {
                        if !settings.is_quiet {
                            eprintln!(
                                "{name} {round}/{rounds} {}: others used {disturbance:.2} processors, once more",
                                contender.label()
                            );
                        }
                    }
                    _ => break outcome,
                }
            };
            let (found, disturbance) = match outcome {
                Ok(outcome) => outcome,
                // The others go on; the program fails at its end.
                Err(error) => {
                    let failure = format!("{name}, round {round}, {}: {error}", contender.label());
                    eprintln!("{failure}");
                    recorder.results.failures.push(failure);
                    out.push(contender);
                    continue;
                }
            };
            if let Some(absence) = &found.absence {
                recorder.results.missing.push(format!("{}: {absence}", contender.label()));
                recorder.results.participants.retain(|one| one.label != contender.label());
                out.push(contender);
                continue;
            }
            recorder.results.disturbance = recorder.results.disturbance.max(disturbance);
            if !settings.is_quiet {
                eprintln!("{name} {round}/{rounds} {:20} {}", contender.label(), found.words());
            }
            recorder.add(contender.label(), found);
        }
    }
    Ok(())
}

/// The machine, on one line.
pub(crate) fn machine() -> String {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let count = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kilobytes: u64 = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse().ok())
        .unwrap_or(0);
    let model = model.map_or("unknown", |(_, model)| model);
    format!("{count} x {model}, {} GiB, Linux {}", kilobytes >> 20, kernel.trim())
}

/// Runs one section and keeps what it found.
pub(crate) fn run(section: &Section, settings: &Settings) -> Result<Results, String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut recorder = Recorder::default();
    let Scale { rows, big_rows, huge_rows, disk_rows, time, operations, .. } = settings.scale;
    let DiskMemory { write_bytes, cache_bytes } = settings.places.disk_memory;
    let scale = if section.is_disk() {
        format!(
            "{disk_rows} rows, {} MiB for writes and {} MiB for reads, {} s for each measurement, {operations} operations",
            write_bytes >> 20,
            cache_bytes >> 20,
            time.as_secs_f64()
        )
    } else {
        format!(
            "{rows} rows, {big_rows} of the big and {huge_rows} of the huge space, {} s for each measurement, {operations} operations",
            time.as_secs_f64()
        )
    };
    recorder.results = Results {
        section: section.name.to_string(),
        machine: machine(),
        seconds_since_1970: SystemTime::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_secs()),
        command: format!("lycosa-bench {}", arguments.join(" ")),
        is_quick: settings.is_quick,
        scale,
        ..Results::default()
    };
    (section.run)(settings, &mut recorder)?;
    let results = recorder.finish();
    results.save(&settings.results)?;
    Ok(results)
}

/// Prints medians, and ratios to the first of Lycosa's.
pub(crate) fn print(results: &Results) {
    println!("\n{}: medians of {} rounds, {}", results.section, results.rounds, results.scale);
    for missing in &results.missing {
        println!("  not there: {missing}");
    }
    let labels: Vec<&str> = results.participants.iter().map(|one| one.label.as_str()).collect();
    print!("{:28} {:26} {:6}", "case", "figure", "better");
    labels.iter().for_each(|label| print!(" {label:>26}"));
    println!();
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for figure in &results.figures {
        let row = (figure.case.as_str(), figure.name.as_str());
        if seen.contains(&row) {
            continue;
        }
        seen.push(row);
        let better = if figure.better == Better::Higher { "higher" } else { "lower" };
        print!("{:28} {:26} {better:6}", row.0, format!("{}, {}", row.1, figure.unit));
        let ours = results.find(row.0, row.1, labels.first().copied().unwrap_or(""));
        for label in &labels {
            match (results.find(row.0, row.1, label), ours) {
                (None, _) => print!(" {:>26}", "-"),
                (Some(theirs), Some(ours)) if ours.contender != theirs.contender => {
                    let ratio = ours.median() / theirs.median();
                    print!(" {:>26}", format!("{} (x {ratio:.2})", rounded(theirs.median())));
                }
                (Some(figure), _) => print!(" {:>26}", rounded(figure.median())),
            }
        }
        println!();
    }
    results.failures.iter().chain(&results.notes).for_each(|note| println!("  {note}"));
    println!("  others used up to {:.2} processors during a turn", results.disturbance);
}
