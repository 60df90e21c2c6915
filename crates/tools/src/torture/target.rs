//! The servers that can be tortured: how each is started, asked and killed.

use super::iproto::{self, ADMIN};
use super::redis;
use clap::ValueEnum;
use runtime::net::{self, BlockingStream};
use runtime::{Clock, FileSystem, SystemClock, SystemFiles};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use trial::{Door, Doors, Engines, Operation, Outcome, Refusal, Speaker, Tongue, User};

/// A server that is not ready by then never will be.
const START_MAX: Duration = Duration::from_secs(60);
const POLL_NS: u64 = 1_000_000;
/// A connection to a door that takes longer is given up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Lines of the server's log that are kept.
const LOG_LINES_MAX: usize = 40;
/// What the line that tells the address has in front of it.
const READY: &str = "ready: connect to ";
/// What the start script does on both servers that run Lua.
const MAKE_ADMIN: &str = "box.schema.user.create('trial_admin', { password = 'torture', if_not_exists = true })\n\
                          box.schema.user.grant('trial_admin', 'super', nil, nil, { if_not_exists = true })\n";

/// Options under which little load makes many dumps, merges and reads that wait.
const SMALL_DISK: [&str; 4] = ["--vinyl-memory", "1MiB", "--vinyl-cache", "64KiB"];

/// What is tortured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// This server
    Lycosa,
    /// An installed tarantool
    Tarantool,
    /// An installed redis-server, with the workloads that its commands can express
    Redis,
}

impl Kind {
    /// True if a workload can be expressed.
    pub(super) fn can_express(self, workload: &str) -> bool {
        self != Kind::Redis || matches!(workload, "registers" | "inventory")
    }

    /// The binary, if none is named. Errors: the system does not say where this one is.
    pub(super) fn program(self) -> Result<PathBuf, String> {
        match self {
            Kind::Lycosa => std::env::current_exe().map_err(|error| format!("where this binary is: {error}")),
            Kind::Tarantool => Ok(PathBuf::from("tarantool")),
            Kind::Redis => Ok(PathBuf::from("redis-server")),
        }
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Lycosa => "lycosa",
            Kind::Tarantool => "tarantool",
            Kind::Redis => "redis",
        }
    }
}

/// The directory: one that was named, or a temporary one.
pub(super) struct Place {
    path: PathBuf,
    is_temporary: bool,
}

impl Place {
    /// Makes the directory. Errors: it cannot be made.
    pub(super) fn new(named: Option<PathBuf>) -> std::io::Result<Self> {
        let is_temporary = named.is_none();
        let fresh = || std::env::temp_dir().join(format!("lycosa-torture-{}", std::process::id()));
        let path = named.unwrap_or_else(fresh);
        SystemFiles.create_dir_all(&path.join("data"))?;
        Ok(Place { path: std::path::absolute(path)?, is_temporary })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the directory to whoever wants to look into it.
    pub(super) fn keep(&self) -> &Path {
        &self.path
    }

    /// Removes a temporary directory.
    pub(super) fn remove(self) {
        if self.is_temporary {
            // What cannot be removed from a temporary place does no harm there.
            let _ = Command::new("rm").arg("-rf").arg(&self.path).status();
        }
    }
}

/// Where clients find a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Addresses {
    /// Of the binary protocol, or of the target's own.
    pub(super) main: String,
    /// Of each door.
    pub(super) doors: Vec<(Door, String)>,
}

/// The addresses at which the doors are to listen, any free port each.
pub(super) fn listeners(doors: &Doors, engines: Engines) -> Vec<(Door, String)> {
    let listener = |door: &Door| {
        let (user, terms) = doors.terms(*door, engines, ADMIN.0);
        let user = user.map_or(String::new(), |user| format!("{user}@"));
        let terms: Vec<String> = terms.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let terms = if terms.is_empty() { String::new() } else { format!("?{}", terms.join("&")) };
        (*door, format!("{}://{user}127.0.0.1:0{terms}", door.name()))
    };
    doors.all().iter().map(listener).collect()
}

/// How to start a server.
pub(super) struct Launch {
    pub(super) kind: Kind,
    pub(super) program: PathBuf,
    pub(super) dir: PathBuf,
    /// Of Lycosa and Tarantool.
    pub(super) wal_mode: Option<String>,
    /// Of Redis.
    pub(super) appendfsync: String,
    /// For rows.
    pub(super) memory_bytes: u64,
    /// Doors and where they listen.
    pub(super) listeners: Vec<(Door, String)>,
    /// There are rows on disk.
    pub(super) has_disk: bool,
}

/// Why there is no server.
#[derive(Debug)]
pub(super) struct NotStarted(pub(super) String);

impl Launch {
    /// Writes what the server needs beside its data. Errors: it cannot be written.
    pub(super) fn prepare(&self) -> std::io::Result<()> {
        let script = match self.kind {
            Kind::Lycosa => MAKE_ADMIN.to_string(),
            // It listens last, so that nobody is answered before everything is there.
            Kind::Tarantool => format!(
                "box.cfg{{ work_dir = {:?}, memtx_memory = {}, memtx_max_tuple_size = 2 * 1024 * 1024, log_level = 4, wal_mode = {} }}\n\
                 {MAKE_ADMIN}\
                 box.cfg{{ listen = '127.0.0.1:0' }}\n\
                 io.stderr:write({READY:?} .. box.info.listen .. '\\n')\n",
                self.dir.join("data"),
                self.memory_bytes,
                self.wal_mode.as_ref().map_or("nil".to_string(), |mode| format!("{mode:?}")),
            ),
            Kind::Redis => return Ok(()),
        };
        runtime::write_file(&self.dir.join("init.lua"), script.as_bytes())
    }

    /// What runs, as the report shows it.
    pub(super) fn describe(&self) -> String {
        let setting = match (self.kind, &self.wal_mode) {
            (Kind::Redis, _) => format!("appendonly yes, appendfsync {}", self.appendfsync),
            (_, Some(mode)) => format!("wal_mode {mode}"),
            (Kind::Lycosa, None) => "wal_mode fsync (its default)".to_string(),
            (Kind::Tarantool, None) => "wal_mode write (its default)".to_string(),
        };
        let through: String = self.listeners.iter().map(|(_, address)| format!(", {address}")).collect();
        format!("{}, {setting}{through}", self.kind.name())
    }

    fn arguments(&self, port: u16) -> Vec<String> {
        let data = self.dir.join("data").display().to_string();
        let script = self.dir.join("init.lua").display().to_string();
        let (memory, port) = (self.memory_bytes.to_string(), port.to_string());
        let arguments: Vec<&str> = match self.kind {
            Kind::Lycosa => {
                let mut arguments = vec!["serve", "--listen", "127.0.0.1:0", "--work-dir", &data, "--script", &script];
                self.listeners.iter().for_each(|(_, address)| arguments.extend(["--listen", address]));
                arguments.extend(["--memtx-memory", &memory, "--memtx-max-tuple-size", "2MiB"]);
                if self.has_disk {
                    arguments.extend(SMALL_DISK);
                }
                if let Some(mode) = &self.wal_mode {
                    arguments.extend(["--wal-mode", mode]);
                }
                arguments
            }
            Kind::Tarantool => vec![&script],
            Kind::Redis => {
                let mut arguments = vec!["--bind", "127.0.0.1", "--port", &port, "--dir", &data, "--save", ""];
                arguments.extend(["--appendonly", "yes", "--appendfsync", &self.appendfsync]);
                arguments.extend(["--maxmemory", &memory, "--maxmemory-policy", "noeviction"]);
                arguments
            }
        };
        arguments.into_iter().map(ToString::to_string).collect()
    }

    /// Starts the process. With `file_bytes_max` its files cannot grow beyond that. Errors: why there is no server, in its own words.
    pub(super) fn spawn(&self, file_bytes_max: Option<u64>) -> Result<Process, NotStarted> {
        let port = match self.kind {
            Kind::Redis => free_port().map_err(|error| NotStarted(format!("no port: {error}")))?,
            _ => 0,
        };
        let mut command = match file_bytes_max {
            None => Command::new(&self.program),
            Some(bytes) => {
                // The shell sets the limit and becomes the server. The signal that a write beyond the limit raises would end it.
                let mut shell = Command::new("sh");
                let script = "trap '' XFSZ; ulimit -f \"$0\" && exec \"$@\"";
                shell.args(["-c", script, &(bytes / 512).to_string()]).arg(&self.program);
                shell
            }
        };
        command.args(self.arguments(port)).env_remove("LYCOSA_CONFIG").stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let named = |error: std::io::Error| NotStarted(format!("{}: {error}", self.program.display()));
        let mut child = command.spawn().map_err(named)?;
        let log = Arc::new(Mutex::new(Log::default()));
        let outputs: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|output| Box::new(output) as Box<dyn Read + Send>),
            child.stderr.take().map(|output| Box::new(output) as Box<dyn Read + Send>),
        ];
        for output in outputs.into_iter().flatten() {
            let log = Arc::clone(&log);
            runtime::spawn_thread("log", move || collect(output, &log)).map_err(named)?;
        }
        let address = (self.kind == Kind::Redis).then(|| format!("127.0.0.1:{port}"));
        let doors = self.listeners.iter().map(|(door, _)| *door).collect();
        Ok(Process { kind: self.kind, child, log, address, doors })
    }
}

/// A port that nobody has. If somebody takes it before the server does, the server does not start and says why.
fn free_port() -> std::io::Result<u16> {
    let any = net::SocketAddr::from(([127, 0, 0, 1], 0));
    let local = net::Listener::bind(&any.into())?.local_address()?;
    local.port().ok_or_else(|| std::io::Error::other("no port"))
}

/// The end of what the server printed.
#[derive(Default)]
struct Log {
    lines: VecDeque<String>,
    /// In the order in which they were given.
    addresses: Vec<String>,
}

/// Reads what the server prints until it ends.
fn collect(output: impl Read, log: &Mutex<Log>) {
    for line in BufReader::new(output).lines() {
        let Ok(line) = line else { return };
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(address) = line.split_once(READY).and_then(|(_, rest)| rest.split_whitespace().next()) {
            log.addresses.push(address.to_string());
        }
        if log.lines.len() == LOG_LINES_MAX {
            log.lines.pop_front();
        }
        log.lines.push_back(line);
    }
}

/// A server's process. Killed on drop.
pub(super) struct Process {
    kind: Kind,
    child: Child,
    log: Arc<Mutex<Log>>,
    address: Option<String>,
    doors: Vec<Door>,
}

impl Process {
    /// Waits until clients may come. Errors: it ended, with the end of its log.
    pub(super) fn wait_until_ready(&mut self) -> Result<Addresses, NotStarted> {
        let clock = SystemClock::default();
        while clock.monotonic_ns() < START_MAX.as_nanos() as u64 {
            if let Some(how) = self.ended() {
                return Err(NotStarted(how));
            }
            let announced = match self.kind {
                Kind::Redis => self.address.clone().into_iter().collect(),
                _ => self.log.lock().unwrap_or_else(PoisonError::into_inner).addresses.clone(),
            };
            let is_ready = |address: &str| {
                self.kind != Kind::Redis
                    || redis::Connection::open(address).is_ok_and(|mut connection| connection.is_ready())
            };
            if let [main, others @ ..] = &announced[..]
                && others.len() == self.doors.len()
                && is_ready(main)
            {
                let doors = self.doors.iter().copied().zip(others.iter().cloned()).collect();
                return Ok(Addresses { main: main.clone(), doors });
            }
            runtime::pause(POLL_NS);
        }
        Err(NotStarted(format!("it was not ready within {} s{}", START_MAX.as_secs(), self.log_text())))
    }

    /// How the process ended by itself, if it did.
    pub(super) fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(format!("it ended by itself, {status}{}", self.log_text()))
    }

    /// The end of its log, to be put behind a sentence.
    pub(super) fn log_text(&self) -> String {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<&str> = log.lines.iter().map(String::as_str).collect();
        format!(". The end of its log:\n    {}", lines.join("\n    "))
    }

    /// Ends it without warning and waits until it is gone.
    pub(super) fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends a signal by name.
    pub(super) fn signal(&self, name: &str) {
        let _ = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A client's connection to a target.
pub(super) enum Connection {
    Iproto(iproto::Connection),
    Redis(redis::Connection),
    Door(Box<Speaker<BlockingStream>>),
}

impl Connection {
    /// Connects and logs in. Errors: in words.
    pub(super) fn open(kind: Kind, addresses: &Addresses, user: User) -> Result<Self, String> {
        match kind {
            Kind::Redis => redis::Connection::open(&addresses.main).map(Connection::Redis),
            _ => iproto::Connection::open(&addresses.main, user).map(Connection::Iproto),
        }
    }

    /// Connects to a door. Errors: in words.
    pub(super) fn enter(addresses: &Addresses, tongue: Tongue) -> Result<Self, String> {
        let listener = addresses.doors.iter().find(|(door, _)| *door == tongue.door);
        let (door, address) = listener.ok_or("nobody listens there")?;
        let stream = net::connect(address, CONNECT_TIMEOUT).map_err(|error| format!("{address}: {error}"))?;
        let speaker = Speaker::new(stream, tongue).ok_or_else(|| format!("{} does not greet", door.name()))?;
        Ok(Connection::Door(Box::new(speaker)))
    }

    /// Makes room for spaces of the same names, where a setup cannot do that itself. Errors: in words.
    pub(super) fn clear(&mut self) -> Result<(), String> {
        match self {
            Connection::Iproto(_) | Connection::Door(_) => Ok(()),
            Connection::Redis(connection) => connection.clear(),
        }
    }

    /// Performs an operation and waits for its answer.
    pub(super) fn perform(&mut self, operation: &Operation) -> Outcome {
        match self {
            Connection::Iproto(connection) => connection.perform(operation),
            Connection::Redis(connection) => connection.perform(operation),
            Connection::Door(speaker) => match operation {
                Operation::Door(ask) => speaker.perform(ask),
                other => Outcome::Refused(Refusal { code: 0, text: format!("{other:?} is nothing for a door") }),
            },
        }
    }
}
