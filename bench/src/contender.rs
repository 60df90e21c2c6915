//! Who is compared: Lycosa and its rivals, each with named settings, started on a free port of this machine in a directory that goes away with it.
//!
//! Settings are those of the Debian packages but for what is named here: where the files are, how much memory there may be, and what a write waits
//! for. "Relaxed" and "durable" are the two that users of the SQL servers choose between.

use crate::orphans;
use crate::results::Participant;
use crate::server::{DiskMemory, Launch, Server, free_port};
use crate::shops::{RedisShop, connect_mariadb, connect_postgres};
use load::process;
use std::fs::File;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longest start of a rival, with the making of its files.
const START_MAX: Duration = Duration::from_secs(120);
const STOP_MAX: Duration = Duration::from_secs(10);
const POLL_PAUSE: Duration = Duration::from_millis(10);
/// Memory that memcached may take.
const MEMCACHED_MEGABYTES: u32 = 4096;
/// Memory for rows of Lycosa where it stands in a rival's place.
const DOOR_MEMORY: &str = "4G";
/// Caches of the SQL servers: more than the workloads fill.
const SQL_CACHE: &str = "1GB";

/// A server and how it is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Contender {
    /// Lycosa, wal_mode fsync
    Lycosa,
    /// Lycosa, wal_mode write
    LycosaWrite,
    /// Lycosa by Redis' protocol, wal_mode fsync
    LycosaRedis,
    /// Lycosa by Redis' protocol, wal_mode write
    LycosaRedisWrite,
    /// Lycosa by memcached's protocol, wal_mode write
    LycosaMemcached,
    /// Lycosa by MySQL's protocol, wal_mode fsync
    LycosaMysql,
    /// Lycosa by MySQL's protocol, wal_mode write
    LycosaMysqlWrite,
    /// Lycosa by PostgreSQL's protocol, wal_mode fsync
    LycosaPostgres,
    /// Lycosa by PostgreSQL's protocol, wal_mode write
    LycosaPostgresWrite,
    /// Tarantool, wal_mode write, its default
    Tarantool,
    /// Tarantool, wal_mode fsync
    TarantoolFsync,
    /// Redis without persistence
    Redis,
    /// Redis, appendfsync always
    RedisAlways,
    /// memcached as installed, four threads
    Memcached,
    /// memcached with one thread
    MemcachedOne,
    /// MariaDB, innodb_flush_log_at_trx_commit = 2
    Mariadb,
    /// MariaDB, innodb_flush_log_at_trx_commit = 1
    MariadbDurable,
    /// MariaDB with tables of MyISAM
    Myisam,
    /// PostgreSQL, synchronous_commit = off
    Postgres,
    /// PostgreSQL, synchronous_commit = on
    PostgresDurable,
    /// RocksDB inside the process of its own db_bench, its log on and not synced
    Rocksdb,
    /// The device alone, by fio
    Device,
    /// This program: MySQL's protocol, and nothing done
    NothingMysql,
    /// This program: PostgreSQL's protocol, and nothing done
    NothingPostgres,
}

/// Where the binaries are and where data goes.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) lycosa: PathBuf,
    pub(crate) tarantool: PathBuf,
    /// Where data directories are made; the system's place for temporary files if `None`.
    pub(crate) parent: Option<PathBuf>,
    /// What the disk engines may take of memory.
    pub(crate) disk_memory: DiskMemory,
}

impl Contender {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Contender::Lycosa => "Lycosa fsync",
            Contender::LycosaWrite => "Lycosa write",
            Contender::LycosaRedis => "Lycosa fsync, Redis' protocol",
            Contender::LycosaRedisWrite => "Lycosa write, Redis' protocol",
            Contender::LycosaMemcached => "Lycosa write, memcached's protocol",
            Contender::LycosaMysql => "Lycosa fsync, MySQL's protocol",
            Contender::LycosaMysqlWrite => "Lycosa write, MySQL's protocol",
            Contender::LycosaPostgres => "Lycosa fsync, PostgreSQL's protocol",
            Contender::LycosaPostgresWrite => "Lycosa write, PostgreSQL's protocol",
            Contender::Tarantool => "Tarantool write",
            Contender::TarantoolFsync => "Tarantool fsync",
            Contender::Redis => "Redis",
            Contender::RedisAlways => "Redis fsync",
            Contender::Memcached => "memcached",
            Contender::MemcachedOne => "memcached, 1 thread",
            Contender::Mariadb => "MariaDB relaxed",
            Contender::MariadbDurable => "MariaDB durable",
            Contender::Myisam => "MyISAM",
            Contender::Postgres => "PostgreSQL relaxed",
            Contender::PostgresDurable => "PostgreSQL durable",
            Contender::Rocksdb => "RocksDB",
            Contender::Device => "fio",
            Contender::NothingMysql => "nothing, MySQL's protocol",
            Contender::NothingPostgres => "nothing, PostgreSQL's protocol",
        }
    }

    /// True if it is a program that measures by itself: there is no server.
    pub(crate) fn is_tool(self) -> bool {
        matches!(self, Contender::Rocksdb | Contender::Device)
    }

    /// True if it answers without doing anything: nobody asks it whether all is well.
    pub(crate) fn does_nothing(self) -> bool {
        matches!(self, Contender::NothingMysql | Contender::NothingPostgres)
    }

    pub(crate) fn is_lycosa(self) -> bool {
        matches!(self, Contender::Lycosa | Contender::LycosaWrite)
    }

    /// True if it speaks Tarantool's protocol.
    pub(crate) fn is_iproto(self) -> bool {
        self.is_lycosa() || matches!(self, Contender::Tarantool | Contender::TarantoolFsync)
    }

    /// True if it speaks Redis' protocol.
    pub(crate) fn is_redis(self) -> bool {
        use Contender::{LycosaRedis, LycosaRedisWrite, Redis, RedisAlways};
        matches!(self, Redis | RedisAlways | LycosaRedis | LycosaRedisWrite)
    }

    /// True if it speaks MySQL's protocol.
    pub(crate) fn speaks_mysql(self) -> bool {
        use Contender::{LycosaMysql, LycosaMysqlWrite, Mariadb, MariadbDurable, Myisam, NothingMysql};
        matches!(self, Mariadb | MariadbDurable | Myisam | LycosaMysql | LycosaMysqlWrite | NothingMysql)
    }

    /// True if it speaks PostgreSQL's protocol.
    pub(crate) fn speaks_postgres(self) -> bool {
        use Contender::{LycosaPostgres, LycosaPostgresWrite, NothingPostgres, Postgres, PostgresDurable};
        matches!(self, Postgres | PostgresDurable | LycosaPostgres | LycosaPostgresWrite | NothingPostgres)
    }

    /// True if it speaks memcached's protocol.
    pub(crate) fn is_memcached(self) -> bool {
        matches!(self, Contender::Memcached | Contender::MemcachedOne | Contender::LycosaMemcached)
    }

    /// What is set besides addresses and directories, in the server's own words.
    fn own_settings(self) -> Vec<String> {
        let text = match self {
            Contender::Lycosa | Contender::TarantoolFsync => "wal_mode=fsync".to_string(),
            Contender::LycosaWrite | Contender::Tarantool => "wal_mode=write".to_string(),
            Contender::LycosaRedis | Contender::LycosaMysql | Contender::LycosaPostgres => {
                format!("--wal-mode fsync --memtx-memory {DOOR_MEMORY}")
            }
            Contender::LycosaRedisWrite
            | Contender::LycosaMemcached
            | Contender::LycosaMysqlWrite
            | Contender::LycosaPostgresWrite => {
                format!("--wal-mode write --memtx-memory {DOOR_MEMORY}")
            }
            // Two spaces stand around an argument that is empty.
            Contender::Redis => "--save  --appendonly no".to_string(),
            Contender::RedisAlways => "--save  --appendonly yes --appendfsync always".to_string(),
            Contender::Memcached => format!("-m {MEMCACHED_MEGABYTES}"),
            Contender::MemcachedOne => format!("-m {MEMCACHED_MEGABYTES} -t 1"),
            Contender::Mariadb | Contender::MariadbDurable | Contender::Myisam => {
                let flush = if self == Contender::MariadbDurable { 1 } else { 2 };
                format!(
                    "--innodb-buffer-pool-size={} --innodb-flush-log-at-trx-commit={flush} --skip-name-resolve \
                     --max-connections=500",
                    SQL_CACHE.trim_end_matches('B')
                )
            }
            // What they are told differs from section to section.
            Contender::Rocksdb | Contender::Device | Contender::NothingMysql | Contender::NothingPostgres => {
                return Vec::new();
            }
            Contender::Postgres | Contender::PostgresDurable => {
                let commit = if self == Contender::PostgresDurable { "on" } else { "off" };
                format!("-c synchronous_commit={commit} -c shared_buffers={SQL_CACHE} -c max_connections=200")
            }
        };
        text.split(' ').map(ToString::to_string).collect()
    }

    fn launch(self, places: &Places) -> Launch {
        Launch {
            binary: if self.is_lycosa() { places.lycosa.clone() } else { places.tarantool.clone() },
            wal_mode: if matches!(self, Contender::Lycosa | Contender::TarantoolFsync) { "fsync" } else { "write" }
                .to_string(),
            parent: places.parent.clone(),
            disk_memory: places.disk_memory,
        }
    }

    /// The command of a rival of another protocol: its name, then its arguments.
    fn arguments(self, dir: &Path, port: u16) -> Vec<String> {
        let dir = dir.display();
        let text = match self {
            Contender::LycosaRedis | Contender::LycosaRedisWrite => {
                format!("lycosa serve --work-dir {dir}/data --listen redis://127.0.0.1:{port}")
            }
            Contender::LycosaMysql | Contender::LycosaMysqlWrite => {
                format!("lycosa serve --work-dir {dir}/data --listen mysql://127.0.0.1:{port}")
            }
            Contender::LycosaPostgres | Contender::LycosaPostgresWrite => {
                format!("lycosa serve --work-dir {dir}/data --listen postgres://127.0.0.1:{port}")
            }
            Contender::LycosaMemcached => {
                format!("lycosa serve --work-dir {dir}/data --listen memcached://127.0.0.1:{port}")
            }
            Contender::Redis | Contender::RedisAlways => {
                format!("redis-server --port {port} --bind 127.0.0.1 --dir {dir}")
            }
            Contender::Memcached | Contender::MemcachedOne => {
                format!("memcached -u root -l 127.0.0.1 -p {port} -U 0")
            }
            Contender::Mariadb | Contender::MariadbDurable | Contender::Myisam => format!(
                "mariadbd --no-defaults --user=mysql --datadir={dir}/data --socket={dir}/socket --pid-file={dir}/pid --port={port} \
                 --bind-address=127.0.0.1"
            ),
            Contender::Postgres | Contender::PostgresDurable => format!(
                "postgres -D {dir}/data -p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={dir}"
            ),
            Contender::Rocksdb => "db_bench".to_string(),
            Contender::Device => "fio".to_string(),
            Contender::NothingMysql => format!("lycosa-bench nothing --protocol mysql --port {port}"),
            Contender::NothingPostgres => format!("lycosa-bench nothing --protocol postgres --port {port}"),
            _ => unreachable!("servers of the binary protocol are started by `Server`"),
        };
        text.split(' ').map(ToString::to_string).chain(self.own_settings()).collect()
    }

    /// The user that a rival runs as when this program is root, which it refuses to be.
    fn user(self) -> Option<&'static str> {
        match self {
            Contender::Postgres | Contender::PostgresDurable => Some("postgres"),
            Contender::Mariadb | Contender::MariadbDurable | Contender::Myisam => Some("mysql"),
            _ => None,
        }
    }

    fn program(self, places: &Places) -> PathBuf {
        if self.is_iproto() {
            return self.launch(places).binary;
        }
        match self.arguments(Path::new(""), 0)[0].as_str() {
            "lycosa" => places.lycosa.clone(),
            "lycosa-bench" => std::env::current_exe().unwrap_or_else(|_| find("lycosa-bench")),
            name => find(name),
        }
    }

    /// Version and settings. Errors: it is not installed.
    pub(crate) fn describe(self, places: &Places) -> Result<Participant, String> {
        let program = self.program(places);
        let flag = if program.ends_with("memcached") { "-V" } else { "--version" };
        let told = Command::new(&program).arg(flag).stdin(Stdio::null()).output();
        let told = told.map_err(|error| format!("{}: {}: {error}", self.label(), program.display()))?;
        let version = String::from_utf8_lossy(&told.stdout).lines().next().unwrap_or("no version").trim().to_string();
        Ok(Participant { label: self.label().to_string(), version, settings: self.own_settings().join(" ") })
    }

    /// Starts it on an empty directory and waits until it answers.
    pub(crate) fn start(self, places: &Places) -> Result<Running, String> {
        if self.is_iproto() {
            let server = Server::start(&self.launch(places))?;
            let address = server.address.clone();
            return Ok(Running { contender: self, address, process: Process::Server(server) });
        }
        if self.is_tool() {
            let dir = data_dir(places).map_err(|error| format!("{}: {error}", self.label()))?;
            orphans::watch_over(dir.path(), None);
            return Ok(Running { contender: self, address: String::new(), process: Process::Tool(dir) });
        }
        let rival = Rival::start(self, places)?;
        Ok(Running { contender: self, address: rival.address.clone(), process: Process::Rival(rival) })
    }
}

/// An empty directory for a turn.
fn data_dir(places: &Places) -> std::io::Result<TempDir> {
    match &places.parent {
        Some(parent) => TempDir::with_prefix_in("lycosa-bench-", parent),
        None => TempDir::with_prefix("lycosa-bench-"),
    }
}

/// A program by its name: where the shell would find it, or where Debian puts servers.
fn find(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    dirs.push("/usr/sbin".into());
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    dirs.extend(versions.map(|entry| entry.path().join("bin")));
    let found = dirs.into_iter().map(|dir| dir.join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| PathBuf::from(name))
}

/// The numbers of a user and its group, if there is such a user.
fn user_ids(name: &str) -> Option<(u32, u32)> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
    let mut fields = line.split(':').skip(2).map(str::parse);
    Some((fields.next()?.ok()?, fields.next()?.ok()?))
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// A running contender; ended on drop.
pub(crate) struct Running {
    pub(crate) contender: Contender,
    pub(crate) address: String,
    process: Process,
}

enum Process {
    /// One of the binary protocol.
    Server(Server),
    Rival(Rival),
    /// None: there is a directory for the programs that are run by and by.
    Tool(TempDir),
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Process::Tool(dir) = &self.process {
            orphans::forget(dir.path());
        }
    }
}

impl Running {
    /// Its process; of a tool, which has none, this program.
    pub(crate) fn pid(&self) -> u32 {
        match &self.process {
            Process::Server(server) => server.pid(),
            Process::Rival(rival) => rival.child.id(),
            Process::Tool(_) => std::process::id(),
        }
    }

    /// Where all its files are.
    pub(crate) fn dir(&self) -> &Path {
        match &self.process {
            Process::Server(server) => server.dir(),
            Process::Rival(rival) => rival.dir.path(),
            Process::Tool(dir) => dir.path(),
        }
    }

    /// The server of the binary protocol.
    pub(crate) fn server(&mut self) -> Result<&mut Server, String> {
        match &mut self.process {
            Process::Server(server) => Ok(server),
            _ => Err(format!("{} speaks another protocol", self.contender.label())),
        }
    }

    /// Processor time of all its processes.
    pub(crate) fn cpu_seconds(&self) -> Result<f64, String> {
        let own = process::cpu_seconds(self.pid())?;
        if self.contender.user() != Some("postgres") {
            return Ok(own);
        }
        // The time of one that has ended is its parent's.
        Ok(own + children(self.pid()).into_iter().filter_map(|pid| process::cpu_seconds(pid).ok()).sum::<f64>())
    }
}

/// Processes that a process has started.
fn children(pid: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    pids.filter(|child| parent(*child) == Some(pid)).collect()
}

/// A running server of another protocol.
struct Rival {
    contender: Contender,
    child: Child,
    address: String,
    dir: TempDir,
}

impl Rival {
    fn start(contender: Contender, places: &Places) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", contender.label());
        let dir = data_dir(places).map_err(failed)?;
        let user = contender.user().filter(|_| is_root()).and_then(user_ids);
        if let Some((user, group)) = user {
            chown(dir.path(), Some(user), Some(group)).map_err(failed)?;
        }
        let log = dir.path().join("server.log");
        let run = |program: PathBuf, arguments: &[String]| -> Result<Command, String> {
            let log = File::options().create(true).append(true).open(&log).map_err(failed)?;
            let mut command = Command::new(program);
            command.args(&arguments[1..]).current_dir(dir.path()).stdin(Stdio::null());
            command.stdout(log.try_clone().map_err(failed)?).stderr(log);
            if let Some((user, group)) = user {
                command.uid(user).gid(group);
            }
            Ok(command)
        };
        for arguments in contender.preparations(dir.path(), user.is_some()) {
            let status =
                run(find(&arguments[0]), &arguments)?.status().map_err(|error| format!("{}: {error}", arguments[0]))?;
            if !status.success() {
                return Err(with_log(&format!("{} ended with {status}", arguments[0]), &log));
            }
        }
        let port = free_port().map_err(failed)?;
        let child = run(contender.program(places), &contender.arguments(dir.path(), port))?.spawn().map_err(failed)?;
        orphans::watch_over(dir.path(), Some(child.id()));
        let mut rival = Rival { contender, child, address: format!("127.0.0.1:{port}"), dir };
        rival.wait()?;
        Ok(rival)
    }

    /// Asks for a sign of life.
    fn probe(&self) -> Result<(), String> {
        match self.contender {
            other if other.is_redis() => RedisShop::connect(&self.address).map(|_| ()),
            other if other.speaks_mysql() => connect_mariadb(&self.address).map(|_| ()),
            other if other.speaks_postgres() => connect_postgres(&self.address).map(|_| ()),
            _ => std::net::TcpStream::connect(&self.address).map(|_| ()).map_err(|error| error.to_string()),
        }
    }

    /// Waits until it answers.
    fn wait(&mut self) -> Result<(), String> {
        let begun = Instant::now();
        let log = self.dir.path().join("server.log");
        loop {
            let Err(trouble) = self.probe() else { return Ok(()) };
            if let Some(status) = self.child.try_wait().map_err(|error| error.to_string())? {
                return Err(with_log(&format!("{} ended while it started, {status}", self.contender.label()), &log));
            }
            if begun.elapsed() > START_MAX {
                return Err(with_log(&format!("{} did not start: {trouble}", self.contender.label()), &log));
            }
            std::thread::sleep(POLL_PAUSE);
        }
    }
}

impl Contender {
    /// Commands that make the files which a server wants to find.
    fn preparations(self, dir: &Path, has_user: bool) -> Vec<Vec<String>> {
        let dir = dir.display();
        let text = match self {
            Contender::Mariadb | Contender::MariadbDurable | Contender::Myisam => {
                let user = if has_user { " --user=mysql" } else { "" };
                format!(
                    "mariadb-install-db --no-defaults --datadir={dir}/data --auth-root-authentication-method=normal \
                     --skip-test-db{user}"
                )
            }
            Contender::Postgres | Contender::PostgresDurable => {
                format!("initdb -D {dir}/data -A trust -U bench --no-sync -E UTF8 --locale=C")
            }
            _ => return Vec::new(),
        };
        vec![text.split(' ').map(ToString::to_string).collect()]
    }
}

/// A complaint with the end of a log.
fn with_log(complaint: &str, log: &Path) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    format!("{complaint}. The end of its log:\n  {}", lines[lines.len().saturating_sub(20)..].join("\n  "))
}

impl Drop for Rival {
    fn drop(&mut self) {
        // PostgreSQL's own processes outlive a parent that is killed, so it is asked first. There is nobody left to tell of a failure.
        if self.contender.user().is_some() {
            let pid = self.child.id().to_string();
            let _ = Command::new("kill").args(["-QUIT", &pid]).status();
            let begun = Instant::now();
            while begun.elapsed() < STOP_MAX && matches!(self.child.try_wait(), Ok(None)) {
                std::thread::sleep(POLL_PAUSE);
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        orphans::forget(self.dir.path());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn a_rival_is_started_with_what_is_said_of_it() {
        for contender in Contender::value_variants().iter().filter(|contender| !contender.is_iproto()) {
            let (arguments, settings) = (contender.arguments(Path::new("DIR"), 7), contender.own_settings());
            assert!(arguments.ends_with(&settings) && !settings.join(" ").contains("DIR"), "{arguments:?}");
        }
        assert!(Contender::RedisAlways.own_settings().join(" ").contains("--appendfsync always"));
        assert!(
            Contender::Redis.arguments(Path::new("DIR"), 7).contains(&String::new()),
            "an empty list of times to save"
        );
        assert!(Contender::Postgres.own_settings().contains(&"synchronous_commit=off".to_string()));
    }

    #[test]
    fn every_contender_has_a_label_of_its_own() {
        let labels: std::collections::BTreeSet<_> =
            Contender::value_variants().iter().map(|contender| contender.label()).collect();
        assert_eq!(labels.len(), Contender::value_variants().len());
    }
}
