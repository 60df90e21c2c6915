//! The inventory workload on a server that is killed again and again: nothing acknowledged may be lost, nothing done twice or by halves.
//!
//! Kills come evenly over the run, each a little earlier or later by chance. Some hit the server a second time while it reads what the first one
//! left. After the run comes one more kill, and the state is checked before and after it.

use crate::generator::Work;
use crate::inventory::{self, Outcome, Settings, check, drive};
use crate::report;
use crate::server::{Launch, Server};
use load::Random;
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Latest moment of a kill after its turn has come.
const DELAY_MAX_US: u64 = 20_000;
/// One of so many kills is followed by another one during the start.
const DOUBLE_KILL: u64 = 3;
/// Longest life of a server that is killed during its start.
const START_LIFE_MAX_US: u64 = 100_000;
const POLL_PAUSE: Duration = Duration::from_millis(1);

/// What came of it.
pub(crate) struct Verdict {
    outcome: Outcome,
    kills: u64,
    kills_during_start: u64,
    /// How the state differs after the last kill, when nobody was writing any more.
    faults_after: inventory::Faults,
}

impl Verdict {
    pub(crate) fn is_right(&self) -> bool {
        self.outcome.faults.count == 0 && self.faults_after.count == 0
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        json!({
            "is_right": self.is_right(),
            "kills": self.kills,
            "kills_during_start": self.kills_during_start,
            "run": self.outcome.json(),
            "faults_after_last_kill": self.faults_after.words,
        })
    }

    pub(crate) fn print(&self) {
        self.outcome.print();
        println!("kills        {} while it worked, {} while it started", self.kills, self.kills_during_start);
        match self.faults_after.count {
            0 => println!("last kill    exact once more after it"),
            _ => println!("last kill    {}", self.faults_after),
        }
        match self.is_right() {
            true => println!("verdict      nothing lost, nothing twice, nothing by halves"),
            false => println!("verdict      the server broke its word"),
        }
    }
}

/// Kills the server `kills` times while `done` grows to `total`. Returns how often it was hit during a start.
fn harass(
    server: &mut Server,
    kills: u64,
    total: u64,
    done: &AtomicU64,
    is_over: impl Fn() -> bool,
    random: &mut Random,
) -> Result<u64, String> {
    let mut kills_during_start = 0;
    for kill in 1..=kills {
        while done.load(Ordering::Relaxed) < total * kill / (kills + 1) {
            if is_over() {
                // The driver knows why, and says so.
                return Ok(kills_during_start);
            }
            std::thread::sleep(POLL_PAUSE);
        }
        std::thread::sleep(Duration::from_micros(random.below(DELAY_MAX_US)));
        server.kill()?;
        if random.below(DOUBLE_KILL) == 0 {
            server.start_and_kill(Duration::from_micros(random.below(START_LIFE_MAX_US)))?;
            kills_during_start += 1;
        }
        server.restart()?;
    }
    Ok(kills_during_start)
}

/// Runs the work against a server that is killed `kills` times. If anything is wrong, the server's directory is kept and named.
pub(crate) fn run(
    launch: &Launch,
    work: &Work,
    clients: u64,
    kills: u64,
    seed: u64,
    is_quiet: bool,
) -> Result<Verdict, String> {
    let mut server = Server::start(launch)?;
    let settings = Settings { address: server.address.clone(), clients, survive: true };
    let verdict = judge(&mut server, &settings, work, kills, seed, is_quiet);
    if !verdict.as_ref().is_ok_and(Verdict::is_right) {
        eprintln!("the server's data and log are kept in {}", server.keep().display());
    }
    verdict
}

fn judge(
    server: &mut Server,
    settings: &Settings,
    work: &Work,
    kills: u64,
    seed: u64,
    is_quiet: bool,
) -> Result<Verdict, String> {
    let total = work.operations.len() as u64;
    let mut random = Random::new(seed);
    let (driven, harassed) = report::with_progress("operations", total, is_quiet, |done| {
        std::thread::scope(|scope| {
            let driver = scope.spawn(|| drive(settings, work, done));
            let harassed = harass(server, kills, total, done, || driver.is_finished(), &mut random);
            (driver.join().expect("the driver does not panic"), harassed)
        })
    });
    // A server that does not come back is the cause of what the driver complains about.
    let kills_during_start = harassed?;
    let mut outcome = driven?;
    outcome.faults = check(settings, &outcome.expected)?;
    server.kill()?;
    server.restart()?;
    let faults_after = check(settings, &outcome.expected)?;
    Ok(Verdict { outcome, kills, kills_during_start, faults_after })
}
