//! One seed: some workloads, some clients, some lives of the server, some faults, and the verdict.
//!
//! ```text
//! start -> make the spaces -> clients work -> the end of a life -> what survives -> start -> check everything -> clients work ...
//! ```

use super::branch::Branch;
use super::client::{Connection, PATIENCE, view};
use super::limits::{Hazard, Limits};
use super::process::{DiskSettings, Process, Settings, address};
use super::watch::{self, WatchedFiles};
use crate::removed::{Misread, RemovedFiles};
use runtime::{
    Fault, FileSystem, Loss, MachineConfig, OpenMode, PacedFiles, Randomness, SeededRandomness, SimulatedFiles,
    Simulation,
};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use trial::{Client, Dice, Doors, Engines, History, Outcome, Record, Violation, Workload};

/// Pause of a client that finds nobody to connect to, or that was refused for a reason that lasts.
const RETRY_NS: u64 = 500_000;
/// A life that cannot be brought to its end in this time hangs. So does a server that leaves the checker without an answer for as long:
/// with slow files a read of one block may take 1.5 s, and a select of all rows needs many, one after the other.
const HANG_NS: u64 = 240_000_000_000;
/// Refusals that belong to the workloads: a duplicate key, access denied, a conflict.
const ORDINARY_REFUSALS: [u32; 3] = [3, 42, 97];
/// Lives of the server that a seed ends at most.
pub(super) const LIVES_MAX: u64 = 3;
/// Longest work of the clients in a life.
pub(super) const LOAD_US_MAX: u64 = 60_000;
/// Starts that a seed may spoil in a row.
const SPOILED_STARTS_MAX: u32 = 3;
/// Before one start of so many a bit of a log or a snapshot flips.
const FLIP_ONE_IN: u64 = 6;
/// The same in the files of the disk engine, which not all seeds have.
const DISK_FLIP_ONE_IN: u64 = 3;
/// Stirred into the seed of what chooses the bit, which has no other influence on the seed's choices.
const FLIPS: u64 = 0x6662_6974;
/// The same for what chooses the engines and their options.
const ENGINES: u64 = 0x656e_6769;
/// The same for what chooses the page cache.
const PAGE_CACHE: u64 = 0x7061_6765;
/// The same for what chooses the doors.
const DOORS: u64 = 0x646f_6f72;
/// Where the disk engine has its files.
pub(super) const DISK_DIR: &str = "/disk/lsm";

/// Puts something between the server and its disk: a planted bug.
pub type Wrap = dyn Fn(SimulatedFiles) -> Arc<dyn FileSystem>;

/// What a run is to be.
pub struct Plan<'a> {
    /// Determines everything.
    pub seed: u64,
    /// Only these workloads; all if empty.
    pub workloads: &'a [String],
    /// Keep the last lines of what happens.
    pub is_traced: bool,
    /// Between the server and its disk.
    pub wrap: Option<&'a Wrap>,
    /// What is left out of the seed's choices.
    pub limits: Limits,
}

/// What a seed came to.
#[derive(Debug, Default)]
pub struct Verdict {
    /// The first broken promise, with the workload it was seen in.
    pub violation: Option<(String, String)>,
    /// Workloads that ran.
    pub workloads: Vec<String>,
    /// Operations that were asked for.
    pub operations: u64,
    /// Of these, acknowledged.
    pub acknowledged: u64,
    /// Refused.
    pub refused: u64,
    /// Without an answer.
    pub unknown: u64,
    /// How often each fault and each rare branch was met; a state that lasts counts each time that it is looked at.
    pub reached: BTreeMap<&'static str, u64>,
    /// Equal for equal histories.
    pub hash: u64,
    /// Steps of the simulation.
    pub steps: u64,
    /// Simulated time.
    pub simulated_ns: u64,
    /// The last lines of what happened, if they were wanted.
    pub trace: Vec<String>,
    /// What is on the disk at the end, if the trace was wanted.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

/// A workload under way.
pub(super) struct Trial {
    pub(super) workload: Box<dyn Workload>,
    pub(super) history: RefCell<History>,
}

/// What clients share.
pub(super) struct Shared {
    simulation: Rc<Simulation>,
    pub(super) trials: Vec<Trial>,
    is_open: Cell<bool>,
    is_over: Cell<bool>,
    incarnation: Cell<u64>,
    moment: Cell<u64>,
    /// Clients between two looks at the gate.
    at_work: Cell<usize>,
    answered: Cell<u64>,
}

impl Shared {
    fn tick(&self) -> u64 {
        self.moment.set(self.moment.get() + 1);
        self.moment.get()
    }
}

fn run_client(shared: &Shared, trial: usize, number: usize, mut client: Box<dyn Client>) {
    let simulation = &shared.simulation;
    // A life of the server whose log has failed: more writes of unknown fate would only make the search for their order endless.
    let mut given_up = None;
    while !shared.is_over.get() {
        if !shared.is_open.get() || given_up == Some(shared.incarnation.get()) {
            simulation.sleep(simulation.between((50_000, RETRY_NS)));
            continue;
        }
        shared.at_work.set(shared.at_work.get() + 1);
        let connection = match client.tongue() {
            None => Connection::open(address(), client.user(), PATIENCE),
            Some(tongue) => Connection::enter(tongue, PATIENCE),
        };
        match connection {
            Some(mut connection) => {
                let incarnation = shared.incarnation.get();
                work(shared, trial, number, client.as_mut(), &mut connection);
                given_up = connection.has_log_failed.then_some(incarnation);
            }
            None => {
                watch::count(Branch::ConnectionRefused);
                simulation.sleep(RETRY_NS);
            }
        }
        shared.at_work.set(shared.at_work.get() - 1);
    }
}

/// Asks until the gate closes or the connection dies.
fn work(shared: &Shared, trial: usize, number: usize, client: &mut dyn Client, connection: &mut Connection) {
    let simulation = &shared.simulation;
    let incarnation = shared.incarnation.get();
    while shared.is_open.get() && shared.incarnation.get() == incarnation {
        let operation = client.next();
        let invoked_at = shared.tick();
        simulation.note(invoked_at, || format!("client {trial}.{number} asks {operation:?}"));
        let outcome = connection.perform(&operation);
        let answered_at = shared.tick();
        simulation.note(answered_at, || format!("client {trial}.{number} hears {outcome:?}"));
        client.answered(&outcome);
        outcome.refused_code().and_then(Branch::of_refusal).into_iter().for_each(watch::count);
        let is_dead = outcome.is_unknown();
        let is_stuck = outcome.refused_code().is_some_and(|code| !ORDINARY_REFUSALS.contains(&code));
        let record = Record { client: number, incarnation, operation, outcome, invoked_at, answered_at };
        shared.trials[trial].history.borrow_mut().records.push(record);
        if is_dead {
            return;
        }
        shared.answered.set(shared.answered.get() + 1);
        if is_stuck {
            simulation.sleep(RETRY_NS);
        }
    }
}

/// Engines and their options, as a seed chooses them.
fn choose_engines(seed: u64) -> (Engines, DiskSettings) {
    let mut dice = Dice::new(seed ^ ENGINES, 0);
    let engines = match dice.below(8) {
        0 | 1 => Engines::Memory,
        2..5 => Engines::Disk,
        _ => Engines::Mixed(seed),
    };
    let page_size = dice.between(40, 800);
    let disk = DiskSettings {
        memory: dice.between(30 << 10, 400 << 10),
        cache: if dice.one_in(3) { 0 } else { dice.below(100 << 10) },
        page_size,
        // A range is no smaller than a block.
        range_size: page_size + dice.below(1_200),
        run_count_per_level: dice.between(1, 4),
        bloom_fpr: dice.between(1, 60) as f64 / 100.0,
        write_threads: dice.between(1, 3) as usize,
        manifest_bytes: dice.between(1, 40_000),
        open_files_max: dice.between(1, 60) as usize,
        // All, so that the few reads of a life are a verdict.
        page_cache_sampled_one_of: 1,
    };
    (engines, disk)
}

/// Sets of doors over the same rows.
fn sets_of_doors() -> Vec<Doors> {
    use trial::Door::{Memcached, Mysql, Postgres, Redis, Tyrant};
    let sets: [&[trial::Door]; 14] = [
        &[Redis],
        &[Redis],
        &[Memcached],
        &[Tyrant],
        &[Redis, Memcached],
        &[Memcached, Tyrant],
        &[Redis, Memcached, Tyrant],
        &[Postgres],
        &[Mysql],
        &[Postgres, Mysql],
        &[Redis, Postgres],
        &[Memcached, Mysql],
        &[Memcached, Postgres],
        &[Redis, Memcached, Postgres, Mysql],
    ];
    sets.iter().map(|set| Doors::new(set.to_vec())).collect()
}

/// The doors by which clients of these workloads come: any that can express all of them. None if the binary protocol does for all.
fn choose_doors(seed: u64, names: &[String]) -> Doors {
    let through: Vec<&String> = names.iter().filter(|name| trial::named(name).is_none()).collect();
    if through.is_empty() {
        return Doors::default();
    }
    let can = |doors: &Doors| {
        let known: Vec<&str> = trial::through_doors(doors).iter().map(|workload| workload.name()).collect();
        through.iter().all(|name| known.contains(&name.as_str()))
    };
    let fitting: Vec<Doors> = sets_of_doors().into_iter().filter(can).collect();
    match fitting.is_empty() {
        true => Doors::default(),
        false => fitting[Dice::new(seed ^ DOORS, 0).below(fitting.len() as u64) as usize].clone(),
    }
}

/// What the machine keeps of its files in memory, and whether they can be read past it.
fn choose_page_cache(seed: u64, config: &mut MachineConfig) {
    let mut dice = Dice::new(seed ^ PAGE_CACHE, 0);
    config.uncached_percent = match dice.below(4) {
        0 => 100,
        1 => dice.between(80, 99),
        _ => 50,
    };
    config.direct_refused_one_in = if dice.one_in(3) { dice.between(1, 3) } else { 0 };
    config.direct_read_fails_one_in = if dice.one_in(3) { dice.between(1, 9) } else { 0 };
}

/// Every file and its bytes.
pub(super) fn all_files(disk: &SimulatedFiles) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for dir in ["/log", "/snapshots", DISK_DIR].map(Path::new) {
        for name in disk.list(dir).unwrap_or_default() {
            let path = dir.join(name);
            let Ok(file) = disk.open(&path, OpenMode::READ) else { continue };
            let mut bytes = vec![0; file.len().unwrap_or(0) as usize];
            // What cannot be read stays zero: somebody wants to look at the rest.
            let _ = file.read_full_at(&mut bytes, 0);
            found.push((path, bytes));
        }
    }
    found
}

/// The run of one seed.
pub(super) struct Run<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) simulation: Rc<Simulation>,
    pub(super) shared: Rc<Shared>,
    pub(super) disk: SimulatedFiles,
    engines: Engines,
    pub(super) settings: Settings,
    /// Chooses flipped bits.
    pub(super) dice: SeededRandomness,
    misread: Misread,
    pub(super) violation: Option<(String, String)>,
}

/// How a life ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The machine loses power.
    PowerLoss,
    /// The process is killed; the machine goes on.
    Kill,
    /// The process is asked to stop.
    Stop,
}

/// Runs a seed.
pub fn run(plan: &Plan<'_>) -> Verdict {
    let simulation = Simulation::new(plan.seed, MachineConfig::default());
    if plan.is_traced {
        simulation.keep_trace();
    }
    let work = || {
        let mut run = Run::new(plan, &simulation);
        run.lives();
        run.verdict()
    };
    simulation.enter(|| watch::enter(&simulation, work))
}

impl<'a> Run<'a> {
    fn new(plan: &'a Plan<'a>, simulation: &Rc<Simulation>) -> Self {
        let choose = |range| simulation.between(range);
        let mut config = MachineConfig::default();
        if simulation.one_in(3) {
            config.cut_one_in = choose((50, 2000));
        }
        if simulation.one_in(4) {
            config.file_delay_ns = (1_000, choose((200_000, 3_000_000)));
        }
        if simulation.one_in(4) {
            config.socket_bytes_max = choose((200, 4000)) as usize;
        }
        if !plan.limits.allow(Hazard::Cut) {
            config.cut_one_in = 0;
        }
        if !plan.limits.allow(Hazard::SlowDisk) {
            let default = MachineConfig::default();
            (config.file_delay_ns, config.slow_file_one_in) = (default.file_delay_ns, 0);
        }
        if !plan.limits.allow(Hazard::NarrowSocket) {
            config.socket_bytes_max = MachineConfig::default().socket_bytes_max;
        }
        choose_page_cache(plan.seed, &mut config);
        simulation.set_config(config);
        let doors = choose_doors(plan.seed, plan.workloads);
        let all = trial::all().into_iter().chain(trial::through_doors(&doors));
        let mut wanted: Vec<Box<dyn Workload>> = all
            .filter(|workload| plan.workloads.is_empty() || plan.workloads.iter().any(|name| name == workload.name()))
            .collect();
        if plan.workloads.is_empty() {
            for _ in 0..choose((1, 2)) {
                let at = simulation.random() as usize % wanted.len();
                let last = wanted.len() - 1;
                wanted.swap(at, last);
                let chosen = wanted.pop().expect("there are more workloads than are chosen");
                wanted.insert(0, chosen);
            }
            let count = choose((1, 2)) as usize;
            wanted.truncate(count);
        }
        let (chosen, disk) = choose_engines(plan.seed);
        let engines = plan.limits.engine.map_or(chosen, |engine| engine.engines(plan.seed));
        let history = || RefCell::new(History { engines, ..History::default() });
        let trials = wanted.into_iter().map(|workload| Trial { workload, history: history() }).collect();
        let settings = Settings {
            writes_in_flight: choose((1, 6)) as usize,
            wal_max_size: choose((48 << 10, 512 << 10)),
            checkpoint_wal_threshold: if simulation.one_in(2) { choose((30 << 10, 400 << 10)) } else { 1 << 50 },
            checkpoint_count: choose((1, 3)) as usize,
            memory: {
                let memory = choose((24 << 20, 64 << 20));
                // So little that the rows of a few milliseconds fill it.
                if memory.is_multiple_of(4) { memory / 24 } else { memory }
            },
            // Few, so that small spaces take several slices, and commits of short transactions too.
            slice_rows: [1, 2, 4, 3 + plan.seed as usize % 23][plan.seed as usize / 3 % 4],
            // So long that others commit meanwhile.
            slice_pause_ns: [300_000, 1][plan.seed as usize / 12 % 2],
            // The clock stands still while a statement runs: it would never have to let others go first.
            statement_slice_ns: [0, 1_000_000][plan.seed as usize / 24 % 2],
            // Few, so that short transactions have private writes, too.
            in_place_max: [16, 0, 2][plan.seed as usize % 3],
            wall_offset_ns: Arc::new(AtomicU64::new(0)),
            disk,
            doors,
            engines,
        };
        let shared = Rc::new(Shared {
            simulation: Rc::clone(simulation),
            trials,
            is_open: Cell::new(false),
            is_over: Cell::new(false),
            incarnation: Cell::new(0),
            moment: Cell::new(0),
            at_work: Cell::new(0),
            answered: Cell::new(0),
        });
        Run {
            plan,
            simulation: Rc::clone(simulation),
            shared,
            engines,
            disk: SimulatedFiles::default(),
            settings,
            dice: SeededRandomness::new(plan.seed ^ FLIPS),
            misread: Misread::default(),
            violation: None,
        }
    }

    pub(super) fn fail(&mut self, workload: &str, what: String) {
        let life = self.shared.incarnation.get();
        self.simulation.note(2, || format!("VIOLATION {workload}: {what}"));
        if self.violation.is_none() {
            self.violation = Some((workload.to_string(), format!("{what} (life {life} of the server)")));
        }
    }

    /// The disk as the server sees it.
    pub(super) fn files(&self) -> Arc<dyn FileSystem> {
        let disk = self.disk.clone();
        let files = match self.plan.wrap {
            Some(wrap) => wrap(self.disk.clone()),
            None => Arc::new(self.disk.clone()) as Arc<dyn FileSystem>,
        };
        let off = Arc::new(move || disk.is_off());
        let files = Arc::new(WatchedFiles::new(Arc::new(RemovedFiles::new(files, self.misread.clone()))));
        Arc::new(PacedFiles { files, is_off: off })
    }

    fn lives(&mut self) {
        let Some(first) = self.start() else { return };
        let Some(mut process) = self.set_up(first) else { return };
        self.start_clients();
        let lives = self.simulation.between((1, LIVES_MAX)).min(self.plan.limits.lives_max.unwrap_or(u64::MAX));
        for _ in 0..lives {
            let end = self.load(&mut process);
            self.check_reads();
            if self.violation.is_some() {
                break;
            }
            self.end(process, end);
            match self.recover() {
                Some(started) => process = started,
                None => {
                    self.shared.is_over.set(true);
                    return;
                }
            }
            let Some(checked) = self.check(process) else { break };
            process = checked;
            if self.violation.is_some() {
                break;
            }
        }
        self.shared.is_over.set(true);
    }

    /// Starts the server on an intact machine.
    fn start(&mut self) -> Option<Process> {
        match Process::start(&self.simulation, self.files(), &self.settings) {
            Ok(process) => Some(process),
            Err(error) => {
                self.fail("start", error);
                None
            }
        }
    }

    /// Runs work of a client to its end while the server serves. None if the server died meanwhile.
    pub(super) fn beside<T: 'static>(
        &mut self,
        process: &mut Process,
        work: impl FnOnce(&mut Connection) -> T + 'static,
    ) -> Option<T> {
        let slot = Rc::new(RefCell::new(None));
        let is_done = Rc::new(Cell::new(false));
        let (result, done) = (Rc::clone(&slot), Rc::clone(&is_done));
        let quiet = MachineConfig { cut_one_in: 0, ..self.simulation.config() };
        let before = self.simulation.config();
        self.simulation.set_config(quiet);
        self.simulation.spawn_thread("checker", move || {
            let patience = Duration::from_nanos(HANG_NS);
            if let Some(mut connection) = Connection::open(address(), trial::User::Admin, patience) {
                *result.borrow_mut() = Some(work(&mut connection));
            }
            done.set(true);
        });
        let deadline = self.simulation.now_ns() + HANG_NS;
        let simulation = Rc::clone(&self.simulation);
        let ran = process.run(|| is_done.get() || simulation.now_ns() > deadline);
        simulation.note(4, || format!("beside ended: {ran:?} {} {}", is_done.get(), slot.borrow().is_some()));
        self.simulation.set_config(before);
        // A loop that nothing wakes ends only when the checker gives up, which is later than the deadline.
        if ran.is_ok() && (!is_done.get() || self.simulation.now_ns() > deadline) {
            self.fail("server", "it does not answer".to_string());
        }
        slot.take()
    }

    fn set_up(&mut self, mut process: Process) -> Option<Process> {
        let (shared, engines) = (Rc::clone(&self.shared), self.engines);
        let made = self.beside(&mut process, move |connection| {
            for trial in &shared.trials {
                for operation in trial.workload.setup(engines) {
                    let outcome = connection.perform(&operation);
                    if !outcome.is_done() {
                        return Err(format!("{}: {operation:?} came to {outcome:?}", trial.workload.name()));
                    }
                }
            }
            Ok(())
        });
        match made {
            Some(Ok(())) => Some(process),
            Some(Err(text)) => {
                self.fail("set-up", text);
                None
            }
            None => {
                self.fail("set-up", "nobody answered".to_string());
                None
            }
        }
    }

    fn start_clients(&self) {
        for (at, trial) in self.shared.trials.iter().enumerate() {
            let count = trial.workload.clients_min() + self.simulation.random() as usize % 4;
            let count = count.min(self.plan.limits.clients_max.unwrap_or(usize::MAX));
            for number in 0..count {
                let client = trial.workload.client(number, self.plan.seed);
                let shared = Rc::clone(&self.shared);
                self.simulation.spawn_thread(&format!("client {at}.{number}"), move || {
                    run_client(&shared, at, number, client);
                });
            }
        }
    }

    /// Lets clients work; sees to it that the life will end. Returns how.
    fn load(&mut self, process: &mut Process) -> End {
        let simulation = Rc::clone(&self.simulation);
        let now = simulation.now_ns();
        let load_ns = simulation.between((2_000_000, LOAD_US_MAX * 1000));
        let limits = &self.plan.limits;
        let until = now + load_ns.min(limits.load_us_max.map_or(u64::MAX, |us| us * 1000));
        let end = match simulation.random() % 10 {
            0 => End::Stop,
            1..4 => End::Kill,
            _ if !limits.allow(Hazard::PowerLoss) => End::Kill,
            _ => End::PowerLoss,
        };
        let mut fault = Fault::default();
        match simulation.random() % 12 {
            0 if limits.allow(Hazard::SyncFails) => {
                watch::count(Branch::SyncFails);
                fault.syncs_until_error = Some(simulation.random() % 100);
            }
            1 if limits.allow(Hazard::WriteFails) => {
                watch::count(Branch::WriteFails);
                fault.writes_until_error = Some(simulation.random() % 100);
            }
            2 if limits.allow(Hazard::DiskFull) => {
                watch::count(Branch::DiskFull);
                fault.space_left = Some(simulation.random() % (300 << 10));
                let disk = self.disk.clone();
                // Until somebody makes room.
                simulation.call_at(simulation.between((now, until)), move || {
                    disk.set_fault(Fault { space_left: None, ..disk.fault() });
                });
            }
            3 if limits.allow(Hazard::ClockJump) => {
                watch::count(Branch::ClockJump);
                let offset = Arc::clone(&self.settings.wall_offset_ns);
                let jump = simulation.random() % 7_200_000_000_000;
                simulation.call_at(simulation.between((now, until)), move || {
                    offset.store(jump.wrapping_sub(3_600_000_000_000), Ordering::Relaxed);
                });
            }
            4 if limits.allow(Hazard::WriteBehindFails) => {
                watch::count(Branch::WriteBehindFails);
                fault.writes_behind_until_error = Some(simulation.random() % 4);
            }
            _ => {}
        }
        if end != End::Stop && limits.allow(Hazard::PowerLoss) && simulation.one_in(2) {
            // The end comes with some change of a file.
            fault.changes_until_off = Some(simulation.random() % 400);
        }
        self.disk.set_fault(fault);
        self.shared.is_open.set(true);
        let answered = self.shared.answered.get();
        let ran = process.run(|| simulation.now_ns() >= until);
        self.shared.is_open.set(false);
        if ran.is_ok() && self.shared.answered.get() == answered && fault.changes_until_off.is_none() {
            watch::count(Branch::NobodyAnswered);
        }
        if simulation.is_killed() || end != End::Stop {
            if self.disk.is_off() {
                watch::count(Branch::PowerLossAtChange);
            }
            return if end == End::Stop { End::PowerLoss } else { end };
        }
        end
    }

    /// Ends a life. The disk becomes what the next one finds.
    fn end(&mut self, mut process: Process, end: End) {
        let simulation = Rc::clone(&self.simulation);
        if end == End::Stop {
            watch::count(Branch::CleanStop);
            let (shared, deadline) = (Rc::clone(&self.shared), simulation.now_ns() + HANG_NS);
            // Clients hear their last answers.
            let _ = process.run(|| shared.at_work.get() == 0 || simulation.now_ns() > deadline);
            if process.stop().is_err() {
                watch::count(Branch::UncleanStop);
            }
            simulation.kill();
        } else {
            simulation.kill();
            self.disk.set_fault(Fault { changes_until_off: Some(0), ..Fault::default() });
            process.end();
        }
        self.after_death(end);
    }

    fn after_death(&mut self, end: End) {
        let simulation = Rc::clone(&self.simulation);
        let is_silent = end == End::PowerLoss && simulation.one_in(2) && self.plan.limits.allow(Hazard::SilentEnd);
        if is_silent {
            watch::count(Branch::SilentEnd);
        }
        let loss = match end {
            End::PowerLoss => {
                watch::count(Branch::PowerLoss);
                match simulation.random() % 6 {
                    0 => Loss::All,
                    1 => Loss::Contents,
                    2 => Loss::Names,
                    _ => Loss::Seed(simulation.random()),
                }
            }
            End::Kill => {
                watch::count(Branch::Kill);
                Loss::None
            }
            End::Stop => Loss::None,
        };
        self.disk = self.disk.crash(loss);
        simulation.note(3, || format!("the end of life {}: {end:?}, {loss}", self.shared.incarnation.get()));
        simulation.revive(is_silent);
        while self.shared.at_work.get() > 0 {
            simulation.sleep(1_000_000);
        }
        let moment = self.shared.tick();
        let incarnation = self.shared.incarnation.get();
        for trial in &self.shared.trials {
            trial.history.borrow_mut().crashes.insert(incarnation, moment);
        }
        self.shared.incarnation.set(incarnation + 1);
    }

    /// Starts the next life, now and then after another power loss in the middle of it.
    fn recover(&mut self) -> Option<Process> {
        let simulation = Rc::clone(&self.simulation);
        let mut spoiled = 0;
        for (is_of_disk, one_in) in [(false, FLIP_ONE_IN), (true, DISK_FLIP_ONE_IN)] {
            let is_chosen = self.dice.next_u64().is_multiple_of(one_in);
            if is_chosen && self.plan.limits.allow(Hazard::BitFlip) && !self.survives_flip(is_of_disk) {
                return None;
            }
        }
        let is_chosen = self.dice.next_u64().is_multiple_of(FLIP_ONE_IN);
        if is_chosen && self.plan.limits.allow(Hazard::BitFlip) && !self.survives_missing_file() {
            return None;
        }
        let may_spoil = self.plan.limits.allow(Hazard::SpoiledStart);
        while may_spoil && spoiled < SPOILED_STARTS_MAX && simulation.one_in(4) {
            spoiled += 1;
            self.disk.set_fault(Fault { changes_until_off: Some(simulation.random() % 12), ..Fault::default() });
            match Process::start(&simulation, self.files(), &self.settings) {
                Ok(process) => {
                    self.disk.set_fault(Fault::default());
                    if !self.disk.is_off() && !simulation.is_killed() {
                        return Some(process);
                    }
                    simulation.kill();
                    process.end();
                }
                Err(_) if self.disk.is_off() => {}
                Err(error) => {
                    self.fail("start", error);
                    return None;
                }
            }
            watch::count(Branch::PowerLossAtStart);
            simulation.kill();
            self.disk = self.disk.crash(Loss::Seed(simulation.random()));
            simulation.revive(false);
        }
        self.start()
    }

    /// A run is there as long as anybody reads it, and nothing panics.
    pub(super) fn check_reads(&mut self) {
        if let Some(what) = watch::take_panic() {
            self.fail("server", what);
        }
        if let Some(what) = self.misread.take() {
            self.fail("reads", what);
        }
    }

    /// Holds what is there against every history.
    fn check(&mut self, mut process: Process) -> Option<Process> {
        let (shared, seed) = (Rc::clone(&self.shared), self.plan.seed);
        let found = self.beside(&mut process, move |connection| {
            for trial in &shared.trials {
                let history = trial.history.borrow();
                let mut view = |operation| view(connection, &operation);
                trial
                    .workload
                    .check(seed, &history, &mut view)
                    .map_err(|violation: Violation| (trial.workload.name(), violation))?;
            }
            Ok::<(), (&'static str, Violation)>(())
        });
        self.check_reads();
        match found {
            Some(Ok(())) => Some(process),
            Some(Err((workload, violation))) => {
                self.fail(workload, violation.to_string());
                Some(process)
            }
            None => {
                self.fail("server", "the checker was not answered".to_string());
                None
            }
        }
    }

    fn verdict(&mut self) -> Verdict {
        let mut verdict = Verdict {
            violation: self.violation.take(),
            reached: self.simulation.counts(),
            hash: self.simulation.hash(),
            steps: self.simulation.steps(),
            simulated_ns: self.simulation.now_ns(),
            trace: self.simulation.trace(),
            files: if self.plan.is_traced { all_files(&self.disk) } else { Vec::new() },
            ..Verdict::default()
        };
        for trial in &self.shared.trials {
            verdict.workloads.push(trial.workload.name().to_string());
            for record in &trial.history.borrow().records {
                verdict.operations += 1;
                match record.outcome {
                    Outcome::Done(_) => verdict.acknowledged += 1,
                    Outcome::Refused(_) => verdict.refused += 1,
                    Outcome::Unknown => verdict.unknown += 1,
                }
            }
        }
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trial::Operation;

    /// What the checker hears of a procedure, and what the run finds wrong with that.
    fn checked(source: &'static str) -> (Option<Outcome>, Option<String>) {
        let workloads = ["checkpoints".to_string()];
        let plan = Plan { seed: 1, workloads: &workloads, is_traced: false, wrap: None, limits: Limits::default() };
        let simulation = Simulation::new(plan.seed, MachineConfig::default());
        let work = || {
            let mut run = Run::new(&plan, &simulation);
            let mut process = run.start().expect("an empty disk");
            let outcome = run.beside(&mut process, move |connection| connection.perform(&Operation::eval(source)));
            simulation.kill();
            process.end();
            (outcome, run.violation.take().map(|(_, what)| what))
        };
        simulation.enter(|| watch::enter(&simulation, work))
    }

    #[test]
    fn the_checker_waits_for_an_answer_that_takes_its_time() {
        let (outcome, violation) = checked("require('fiber').sleep(20)");
        assert!(outcome.is_some_and(|outcome| outcome.is_done()));
        assert_eq!(violation, None);
    }

    #[test]
    fn a_server_that_does_not_answer_the_checker_is_found() {
        let (outcome, violation) = checked("require('fiber').sleep(400)");
        assert!(outcome.is_none_or(|outcome| outcome.is_unknown()));
        assert!(violation.is_some_and(|what| what.contains("it does not answer")));
    }
}
