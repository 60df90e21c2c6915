//! The work: rounds of load, faults, kills, recoveries and checks.
//!
//! A round makes all spaces anew, starts the clients and then, some times over: lets them work for a moment, kills the server, starts it
//! again (and now and then kills it once more while it reads its files), and checks every workload's history since the beginning of the round
//! while the clients wait. Rounds are short, so that a history stays small enough to be kept and checked as a whole.

use super::Fault;
use super::gate::Gate;
use super::report::Report;
use super::target::{Addresses, Connection, Launch, Process};
use indicatif::{ProgressBar, ProgressStyle};
use runtime::{Clock, SystemClock};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use trial::{
    Client, Dice, Doors, Engines, History, Operation, Outcome, Record, Refusal, User, Value, Violation, Workload,
};

/// Lives of the server in a round.
const LIVES_IN_ROUND: u64 = 5;
/// A round ends early when its history is so long.
const RECORDS_MAX: usize = 400_000;
/// How long clients work before a kill.
const LOAD_US: (u64, u64) = (150_000, 2_200_000);
/// One kill of so many is followed by another one during recovery.
const KILL_DURING_RECOVERY: u64 = 3;
/// Longest life of a server that is killed during its start, until a start has been seen.
const RECOVERY_GUESS_US: u64 = 100_000;
/// One life of so many is paused, and for how long.
const PAUSE: u64 = 3;
const PAUSE_US: (u64, u64) = (5_000, 500_000);
/// One life of so many cannot let files grow beyond some size.
const FULL_DISK: u64 = 4;
const FILE_BYTES: (u64, u64) = (256 << 10, 6 << 20);
/// One life of so many is also checked before it is killed.
const CHECK_ALIVE: u64 = 4;
/// Pause of a client that was refused for a reason that lasts, or that cannot connect.
const REFUSED_PAUSE_NS: u64 = 2_000_000;
/// A refusal that does not last: another transaction was first.
const CONFLICT: u32 = 97;
/// Another one: a duplicate key.
const DUPLICATE: u32 = 3;
const POLL_NS: u64 = 2_000_000;

/// What to do.
pub(super) struct Plan {
    pub(super) launch: Launch,
    pub(super) workloads: Vec<&'static str>,
    /// By which clients come besides the binary protocol.
    pub(super) doors: Doors,
    pub(super) engines: Engines,
    pub(super) faults: Vec<Fault>,
    pub(super) clients: usize,
    pub(super) seconds: u64,
    pub(super) kills_max: u64,
    pub(super) seed: u64,
    pub(super) keep_going: bool,
    pub(super) is_quiet: bool,
}

/// A workload under way.
struct Trial {
    workload: Box<dyn Workload>,
    /// What its clients did since the last time that they were gathered, in any order.
    records: Mutex<Vec<Record>>,
}

/// What clients share.
struct Shared {
    gate: Gate,
    trials: Vec<Trial>,
    /// The order of all that happens.
    moment: AtomicU64,
    answered: AtomicU64,
    kind: super::target::Kind,
}

impl Shared {
    fn tick(&self) -> u64 {
        self.moment.fetch_add(1, Ordering::SeqCst)
    }
}

/// One client's life: works whenever the gate is open.
fn run_client(shared: &Shared, at: usize, number: usize, mut client: Box<dyn Client>) {
    while let Some((incarnation, addresses)) = shared.gate.enter() {
        let connection = match client.tongue() {
            None => Connection::open(shared.kind, &addresses, client.user()),
            Some(tongue) => Connection::enter(&addresses, tongue),
        };
        match connection {
            Ok(connection) => work(shared, at, number, client.as_mut(), connection, incarnation),
            // Killed, or so full that it takes no connection.
            Err(_) => runtime::pause(REFUSED_PAUSE_NS),
        }
        shared.gate.leave();
    }
}

/// Asks until the gate closes or the connection dies.
fn work(
    shared: &Shared,
    at: usize,
    number: usize,
    client: &mut dyn Client,
    mut connection: Connection,
    incarnation: u64,
) {
    while shared.gate.is_open(incarnation) {
        let operation = client.next();
        let invoked_at = shared.tick();
        let outcome = connection.perform(&operation);
        let answered_at = shared.tick();
        client.answered(&outcome);
        let is_dead = outcome.is_unknown();
        let is_stuck = outcome.refused_code().is_some_and(|code| ![DUPLICATE, CONFLICT].contains(&code));
        let record = Record { client: number, incarnation, operation, outcome, invoked_at, answered_at };
        shared.trials[at].records.lock().unwrap_or_else(PoisonError::into_inner).push(record);
        if is_dead {
            return;
        }
        shared.answered.fetch_add(1, Ordering::Relaxed);
        if is_stuck {
            runtime::pause(REFUSED_PAUSE_NS);
        }
    }
}

/// The run.
struct Driver<'a> {
    plan: &'a Plan,
    clock: SystemClock,
    dice: Dice,
    report: Report,
    bar: ProgressBar,
    /// The life of the server, counted from 0.
    incarnation: u64,
}

/// A server that can be used.
struct Server {
    process: Process,
    addresses: Addresses,
    /// Its files cannot grow.
    is_full: bool,
}

/// Runs the plan. Errors: the target cannot be used at all.
pub(super) fn run(plan: &Plan) -> Result<Report, String> {
    let bar = if plan.is_quiet { ProgressBar::hidden() } else { ProgressBar::new(plan.seconds) };
    let style =
        ProgressStyle::with_template("{elapsed_precise} [{wide_bar}] {msg}").map_err(|error| error.to_string())?;
    bar.set_style(style.progress_chars("=> "));
    let report = Report {
        target: plan.launch.describe(),
        workloads: plan.workloads.clone(),
        faults: plan.faults.clone(),
        seed: plan.seed,
        ..Report::default()
    };
    let clock = SystemClock::default();
    let mut driver =
        Driver { plan, clock, dice: Dice::new(plan.seed, usize::from(u16::MAX)), report, bar, incarnation: 0 };
    let mut server = driver.first_start()?;
    while !driver.is_over() {
        server = match driver.round(server) {
            Ok(server) => server,
            // What made it impossible to go on is in the report.
            Err(_) if !driver.report.is_right() => break,
            Err(error) => return Err(error),
        };
    }
    driver.report.seconds = driver.elapsed_s();
    driver.bar.finish_and_clear();
    Ok(driver.report)
}

impl Driver<'_> {
    fn elapsed_s(&self) -> f64 {
        self.clock.monotonic_ns() as f64 / 1e9
    }

    fn is_over(&self) -> bool {
        let is_broken = !self.report.violations.is_empty() && !self.plan.keep_going;
        is_broken || self.elapsed_s() >= self.plan.seconds as f64 || self.report.kills >= self.plan.kills_max
    }

    fn has(&self, fault: Fault) -> bool {
        self.plan.faults.contains(&fault)
    }

    fn show(&self) {
        self.bar.set_position((self.elapsed_s() as u64).min(self.plan.seconds));
        self.bar.set_message(format!(
            "{} operations, {} kills, {} violations",
            self.report.operations,
            self.report.kills,
            self.report.violations.len()
        ));
    }

    fn violation(&mut self, workload: &str, violation: &Violation) {
        let text = format!("{} (life {} of the server)", violation.text, self.incarnation);
        self.report.violations.push((workload.to_string(), violation.kind.name(), text));
    }

    fn first_start(&mut self) -> Result<Server, String> {
        let mut process = self.plan.launch.spawn(None).map_err(|error| error.0)?;
        let addresses = process.wait_until_ready().map_err(|error| error.0)?;
        Ok(Server { process, addresses, is_full: false })
    }

    /// A round. Returns the server that lives at its end.
    fn round(&mut self, server: Server) -> Result<Server, String> {
        self.report.rounds += 1;
        let seed = self.plan.seed.wrapping_add(self.report.rounds);
        let trial = |name: &&str| {
            let mut all = trial::all().into_iter().chain(trial::through_doors(&self.plan.doors));
            let workload = all.find(|workload| workload.name() == *name);
            let workload = workload.ok_or_else(|| format!("there is no workload {name}"))?;
            Ok(Trial { workload, records: Mutex::new(Vec::new()) })
        };
        let trials = self.plan.workloads.iter().map(trial).collect::<Result<Vec<_>, String>>()?;
        let shared = Arc::new(Shared {
            gate: Gate::new(),
            trials,
            moment: AtomicU64::new(1),
            answered: AtomicU64::new(0),
            kind: self.plan.launch.kind,
        });
        self.set_up(&shared, &server.addresses)?;
        let clients = self.start_clients(&shared, seed)?;
        let mut histories: Vec<History> = shared.trials.iter().map(|_| self.history()).collect();
        let outcome = self.lives(&shared, server, seed, &mut histories);
        shared.gate.end();
        // Ends when the last client has dropped its end of the channel.
        clients.iter().for_each(drop);
        outcome
    }

    fn history(&self) -> History {
        History { engines: self.plan.engines, ..History::default() }
    }

    /// Makes the spaces, functions and users of all workloads.
    fn set_up(&self, shared: &Shared, addresses: &Addresses) -> Result<(), String> {
        let mut connection = Connection::open(shared.kind, addresses, User::Admin)?;
        connection.clear()?;
        let mut make = |trial: &Trial| {
            for operation in trial.workload.setup(self.plan.engines) {
                if let outcome @ (Outcome::Refused(_) | Outcome::Unknown) = connection.perform(&operation) {
                    return Err(format!("{}: {operation:?} came to {outcome:?}", trial.workload.name()));
                }
            }
            Ok(())
        };
        // The rows of the last round may leave no memory for new ones until their own space is made anew.
        let failed: Vec<&Trial> = shared.trials.iter().filter(|trial| make(trial).is_err()).collect();
        failed.into_iter().try_for_each(make)
    }

    /// Starts the clients; each says through the channel that it has ended.
    fn start_clients(&self, shared: &Arc<Shared>, seed: u64) -> Result<Receiver<()>, String> {
        let (ended, all_ended) = channel::<()>();
        for (at, trial) in shared.trials.iter().enumerate() {
            let count = (self.plan.clients / shared.trials.len()).max(trial.workload.clients_min());
            for number in 0..count {
                let client = trial.workload.client(number, seed);
                let shared = Arc::clone(shared);
                let ended = ended.clone();
                let live = move || {
                    run_client(&shared, at, number, client);
                    // Nobody listens any more if the run was given up.
                    let _ = ended.send(());
                };
                runtime::spawn_thread("client", live).map_err(|error| format!("a thread for a client: {error}"))?;
            }
        }
        Ok(all_ended)
    }

    /// The lives of the server in a round.
    fn lives(
        &mut self,
        shared: &Shared,
        mut server: Server,
        seed: u64,
        histories: &mut [History],
    ) -> Result<Server, String> {
        let broken_before = self.report.violations.len();
        for _ in 0..LIVES_IN_ROUND {
            shared.gate.open(self.incarnation, &server.addresses);
            let answered = shared.answered.load(Ordering::Relaxed);
            self.load(&mut server);
            if shared.answered.load(Ordering::Relaxed) == answered {
                let text = format!("nobody was answered{}", server.process.log_text());
                self.violation("server", &Violation::order(text));
            }
            if self.dice.one_in(CHECK_ALIVE) || !self.has(Fault::Kill) {
                shared.gate.close();
                shared.gate.wait_until_empty();
                self.gather(shared, histories, None);
                self.check(shared, &server.addresses, seed, histories);
                shared.gate.open(self.incarnation, &server.addresses);
            }
            if self.has(Fault::Kill) || server.is_full {
                server = self.kill_and_recover(shared, server, histories)?;
                self.check(shared, &server.addresses, seed, histories);
            }
            self.show();
            // What is lost stays lost: a later check would find it again.
            let is_broken = self.report.violations.len() > broken_before;
            if is_broken
                || self.is_over()
                || histories.iter().map(|history| history.records.len()).sum::<usize>() > RECORDS_MAX
            {
                break;
            }
        }
        // The next round needs a server that can do everything.
        while server.is_full {
            server = self.kill_and_recover(shared, server, histories)?;
            if self.report.violations.len() == broken_before {
                self.check(shared, &server.addresses, seed, histories);
            }
        }
        Ok(server)
    }

    /// Lets clients work for a moment, with a pause of the server in between if that is a fault.
    fn load(&mut self, server: &mut Server) {
        let mut left_us = self.dice.between(LOAD_US.0, LOAD_US.1);
        if self.has(Fault::Pause) && self.dice.one_in(PAUSE) {
            let before_us = self.dice.below(left_us);
            self.wait(before_us, server);
            left_us -= before_us;
            server.process.signal("STOP");
            runtime::pause(self.dice.between(PAUSE_US.0, PAUSE_US.1) * 1000);
            server.process.signal("CONT");
            self.report.pauses += 1;
        }
        self.wait(left_us, server);
    }

    /// Waits, unless the server ends.
    fn wait(&mut self, us: u64, server: &mut Server) {
        let end_ns = self.clock.monotonic_ns() + us * 1000;
        loop {
            if let Some(how) = server.process.ended() {
                match server.is_full {
                    true => self.report.ended_when_full += 1,
                    false => self.violation("server", &Violation::wrong(how)),
                }
                return;
            }
            let now_ns = self.clock.monotonic_ns();
            if now_ns >= end_ns {
                return;
            }
            runtime::pause(POLL_NS.min(end_ns - now_ns));
            self.show();
        }
    }

    /// Kills the server and starts it on what it left, with further kills on the way.
    fn kill_and_recover(
        &mut self,
        shared: &Shared,
        mut server: Server,
        histories: &mut [History],
    ) -> Result<Server, String> {
        // Those at work are hit in the middle of it, nobody tries to come back.
        shared.gate.shut();
        server.process.kill();
        shared.gate.close();
        self.report.kills += 1;
        let crashed_at = shared.tick();
        shared.gate.wait_until_empty();
        self.gather(shared, histories, Some(crashed_at));
        drop(server);
        let typical_us = self.report.recoveries_us.last().copied().unwrap_or(RECOVERY_GUESS_US);
        while self.has(Fault::Kill) && self.dice.one_in(KILL_DURING_RECOVERY) {
            let mut process = self.plan.launch.spawn(None).map_err(|error| error.0)?;
            self.incarnation += 1;
            runtime::pause(self.dice.below(typical_us) * 1000);
            if let Some(how) = process.ended() {
                self.violation("server", &Violation::lost(format!("it does not start after a crash: {how}")));
                return Err(how);
            }
            process.kill();
            self.report.kills += 1;
            self.report.kills_during_recovery += 1;
        }
        self.start()
    }

    /// Starts a killed server; in some lives its files cannot grow.
    fn start(&mut self) -> Result<Server, String> {
        if self.has(Fault::Disk) && self.dice.one_in(FULL_DISK) && !self.is_over() {
            let limit = self.dice.between(FILE_BYTES.0, FILE_BYTES.1);
            let mut process = self.plan.launch.spawn(Some(limit)).map_err(|error| error.0)?;
            self.incarnation += 1;
            self.report.full_disks += 1;
            if let Ok(addresses) = process.wait_until_ready() {
                return Ok(Server { process, addresses, is_full: true });
            }
            // With a full disk it may refuse to start; without, it has to.
            self.report.refused_starts += 1;
        }
        let begun_ns = self.clock.monotonic_ns();
        let mut process = self.plan.launch.spawn(None).map_err(|error| error.0)?;
        self.incarnation += 1;
        match process.wait_until_ready() {
            Ok(addresses) => {
                self.report.recoveries_us.push((self.clock.monotonic_ns() - begun_ns) / 1000);
                Ok(Server { process, addresses, is_full: false })
            }
            Err(error) => {
                self.violation("server", &Violation::lost(format!("it does not start after a crash: {}", error.0)));
                Err(error.0)
            }
        }
    }

    /// Puts what clients did into the histories, in order, and counts it.
    fn gather(&mut self, shared: &Shared, histories: &mut [History], crashed_at: Option<u64>) {
        for (trial, history) in shared.trials.iter().zip(histories) {
            let mut new = std::mem::take(&mut *trial.records.lock().unwrap_or_else(PoisonError::into_inner));
            new.sort_unstable_by_key(|record| record.invoked_at);
            for record in &new {
                self.report.operations += 1;
                match &record.outcome {
                    Outcome::Done(_) => self.report.acknowledged += 1,
                    Outcome::Unknown => self.report.unknown += 1,
                    Outcome::Refused(refusal) => {
                        self.report.refused += 1;
                        let refusals = self.report.refusals.entry(refusal.code).or_default();
                        refusals.count += 1;
                        refusals.text.clone_from(&refusal.text);
                    }
                }
            }
            history.records.extend(new);
            if let Some(crashed_at) = crashed_at {
                history.crashes.insert(self.incarnation, crashed_at);
            }
        }
    }

    /// Compares every history with what is there. A broken promise is noted.
    fn check(&mut self, shared: &Shared, addresses: &Addresses, seed: u64, histories: &[History]) {
        let mut connection = match Connection::open(shared.kind, addresses, User::Admin) {
            Ok(connection) => connection,
            Err(error) => return self.violation("server", &Violation::lost(format!("it cannot be asked: {error}"))),
        };
        let mut found: BTreeMap<&'static str, Violation> = BTreeMap::new();
        for (trial, history) in shared.trials.iter().zip(histories) {
            let mut view = |operation: Operation| -> Result<Value, Refusal> {
                match connection.perform(&operation) {
                    Outcome::Done(value) => Ok(value),
                    Outcome::Refused(refusal) => Err(refusal),
                    Outcome::Unknown => Err(Refusal { code: 0, text: "the connection died".to_string() }),
                }
            };
            self.report.checks += 1;
            if let Err(violation) = trial.workload.check(seed, history, &mut view) {
                found.insert(trial.workload.name(), violation);
            }
        }
        for (name, violation) in found {
            self.violation(name, &violation);
        }
    }
}
