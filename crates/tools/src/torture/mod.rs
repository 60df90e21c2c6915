//! `lycosa torture`: breaks a real server on this machine and its disk, again and again, and looks whether it kept its word.
//!
//! Clients of all workloads of `trial` work, something happens to the server, it is killed, started again, and every workload's history is checked
//! against what is there. [`target`] knows how each server is started and asked, [`driver`] does the work, [`report`] says what came of it.

mod driver;
mod gate;
mod iproto;
mod redis;
mod report;
mod target;

use clap::{Args, ValueEnum};
use std::path::PathBuf;
use target::{Kind, Launch};
use trial::{Door, Doors, Engines};

/// Memory for rows, with and without the fault `memory`.
const MEMORY_BYTES: u64 = 1 << 30;
const LOW_MEMORY_BYTES: u64 = 64 << 20;

/// What happens to the server besides load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fault {
    /// SIGKILL at a random moment, also while it reads its files at the start
    Kill,
    /// SIGSTOP, and SIGCONT after up to half a second
    Pause,
    /// Files cannot grow: some lives run under RLIMIT_FSIZE, so that writes fail as on a full disk (EFBIG instead of ENOSPC). Unlike a file system of
    /// its own, that needs no privileges
    Disk,
    /// 64 MiB for rows, which the workload `limit` fills; without that one there is enough
    Memory,
}

/// Where rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// In memory
    #[value(alias = "memtx")]
    Memory,
    /// On disk
    #[value(alias = "vinyl")]
    Disk,
    /// Some spaces of each, by the seed's choice
    Mixed,
}

impl Engine {
    fn engines(self, seed: u64) -> Engines {
        match self {
            Engine::Memory => Engines::Memory,
            Engine::Disk => Engines::Disk,
            Engine::Mixed => Engines::Mixed(seed),
        }
    }
}

/// A protocol besides the binary one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DoorName {
    /// That of Redis
    Redis,
    /// Those of memcached
    Memcached,
    /// Those of Tokyo Tyrant
    Tyrant,
    /// That of PostgreSQL
    Postgres,
    /// That of MySQL
    Mysql,
}

impl DoorName {
    fn door(self) -> Door {
        match self {
            DoorName::Redis => Door::Redis,
            DoorName::Memcached => Door::Memcached,
            DoorName::Tyrant => Door::Tyrant,
            DoorName::Postgres => Door::Postgres,
            DoorName::Mysql => Door::Mysql,
        }
    }
}

/// Options of `torture`.
#[derive(Args, Debug)]
pub struct Options {
    /// Server to torture
    #[arg(long, value_enum, default_value_t = Kind::Lycosa)]
    target: Kind,
    /// Binary of the server [default: this one; tarantool; redis-server]
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Directory for its files, on the disk to be tested; created if it does not exist [default: a temporary one, removed at the end unless something went wrong]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Duration in seconds
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Number of kills after which to end [default: when the time is over]
    #[arg(long)]
    kills: Option<u64>,
    /// Clients, each with a connection and a thread; every workload gets as many as it needs
    #[arg(long, default_value_t = 32)]
    clients: usize,
    /// Faults to inject. Clock jumps are not among them: only a privileged process can set the clock, and that is the clock of the whole machine
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Fault::Kill, Fault::Pause, Fault::Disk, Fault::Memory])]
    faults: Vec<Fault>,
    /// Workloads by name, with commas between, or all that the server can express; `list` lists them
    #[arg(long, default_value = "all")]
    workload: String,
    /// Other protocol by which clients come, with workloads of its own; given several times, clients come by each of them, over the same rows
    #[arg(long, value_enum, value_delimiter = ',')]
    door: Vec<DoorName>,
    /// Where the rows are; on disk the server gets options that cause many dumps and merges
    #[arg(long, value_enum, default_value_t = Engine::Memory)]
    engine: Engine,
    /// Seed of all random choices, which do not include the scheduling of threads [default: random, and shown]
    #[arg(long)]
    seed: Option<u64>,
    /// wal_mode of Lycosa or Tarantool [default: the target's own]
    #[arg(long, value_parser = ["fsync", "write", "none"])]
    wal_mode: Option<String>,
    /// appendfsync of Redis
    #[arg(long, default_value = "everysec", value_parser = ["always", "everysec", "no"])]
    appendfsync: String,
    /// Continue after a broken promise, and count them
    #[arg(long)]
    keep_going: bool,
    /// Print the report as JSON, without a progress bar
    #[arg(long)]
    json: bool,
}

impl Options {
    fn doors(&self) -> Doors {
        Doors::new(self.door.iter().map(|name| name.door()).collect())
    }

    fn workloads(&self) -> Result<Vec<&'static str>, String> {
        let names = |all: Vec<Box<dyn trial::Workload>>| all.iter().map(|workload| workload.name()).collect();
        let (plain, through): (Vec<&'static str>, Vec<&'static str>) =
            (names(trial::all()), names(trial::through_doors(&self.doors())));
        // Who names a door wants to see what comes through it.
        let all = match (through.is_empty(), self.workload == "all") {
            (true, _) => plain,
            (false, true) => through,
            (false, false) => [plain, through].concat(),
        };
        let can = |name: &&str| self.target.can_express(name);
        if self.workload == "all" {
            return Ok(all.into_iter().filter(can).collect());
        }
        let find = |name: &str| match all.iter().find(|known| **known == name) {
            Some(known) if can(known) => Ok(*known),
            Some(_) => Err(format!("{name} cannot be expressed in this target's commands")),
            None => Err(format!("there is no workload {name}, but {}", all.join(", "))),
        };
        self.workload.split(',').map(find).collect()
    }
}

/// Tortures. Returns the exit code: 1 if a promise was broken. Errors: why no server could be tortured, as text.
pub fn run(options: &Options) -> Result<i32, String> {
    if options.workload == "list" {
        for workload in trial::all() {
            println!("{:12} {}", workload.name(), workload.about());
        }
        println!("with --door:");
        let (redis, sql) = (Doors::new(vec![Door::Redis]), Doors::new(vec![Door::Postgres]));
        let is_new = |workload: &Box<dyn trial::Workload>| {
            trial::through_doors(&redis).iter().all(|other| other.name() != workload.name())
        };
        let of_sql = trial::through_doors(&sql).into_iter().filter(is_new);
        for workload in trial::through_doors(&redis).into_iter().chain(of_sql) {
            println!("{:12} {}", workload.name(), workload.about());
        }
        return Ok(0);
    }
    let workloads = options.workloads()?;
    if options.engine != Engine::Memory && options.target != Kind::Lycosa {
        // Tarantool has no transactions across both, and aborts those that wait.
        return Err("rows on disk are for Lycosa only".to_string());
    }
    if !options.door.is_empty() && options.target != Kind::Lycosa {
        return Err("only Lycosa has doors".to_string());
    }
    let seed = options.seed.unwrap_or_else(|| runtime::Randomness::next_u64(&runtime::SystemRandomness));
    let place = target::Place::new(options.dir.clone()).map_err(|error| format!("the directory: {error}"))?;
    // Without that workload little memory would only make fewer sizes of rows.
    let is_low = options.faults.contains(&Fault::Memory) && workloads.contains(&"limit");
    let launch = Launch {
        kind: options.target,
        program: options.binary.clone().map_or_else(|| options.target.program(), Ok)?,
        dir: place.path().to_path_buf(),
        wal_mode: options.wal_mode.clone(),
        appendfsync: options.appendfsync.clone(),
        listeners: target::listeners(&options.doors(), options.engine.engines(seed)),
        has_disk: options.engine != Engine::Memory,
        memory_bytes: if is_low { LOW_MEMORY_BYTES } else { MEMORY_BYTES },
    };
    launch.prepare().map_err(|error| format!("{}: {error}", place.path().display()))?;
    let report = driver::run(&driver::Plan {
        launch,
        workloads,
        doors: options.doors(),
        engines: options.engine.engines(seed),
        faults: options.faults.clone(),
        clients: options.clients,
        seconds: options.seconds,
        kills_max: options.kills.unwrap_or(u64::MAX),
        seed,
        keep_going: options.keep_going,
        is_quiet: options.json,
    })?;
    match options.json {
        true => println!("{}", report.json()),
        false => report.print(),
    }
    if !report.is_right() {
        eprintln!("files of the server are in {}", place.keep().display());
        return Ok(1);
    }
    place.remove();
    Ok(0)
}
