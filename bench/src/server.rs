//! Starting, killing and restarting servers.
//!
//! Every server runs the same application, `app.lua` of this folder, in a directory of its own that goes away with it.

use crate::orphans;
use load::Value;
use load::{Client, ClientError};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The application, part of this program so that it runs from anywhere.
const APP: [(&str, &str); 2] = [
    ("app.lua", include_str!("../app.lua")),
    ("inventory.lua", include_str!("../../examples/inventory/inventory.lua")),
];
/// Memory for rows and indexes: more than the workloads need.
const MEMTX_MEMORY: u64 = 8 << 30;
/// Longest start, with the reading of what a killed server left.
const START_MAX: Duration = Duration::from_secs(300);
const POLL_PAUSE: Duration = Duration::from_millis(5);
/// So much of the server's log is shown if it does not start.
const LOG_LINES: usize = 20;

/// What a disk engine may take of memory, in bytes: for what is written and not on disk yet, and for what was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiskMemory {
    pub(crate) write_bytes: u64,
    pub(crate) cache_bytes: u64,
}

impl Default for DiskMemory {
    /// Tarantool's own.
    fn default() -> Self {
        DiskMemory { write_bytes: 128 << 20, cache_bytes: 128 << 20 }
    }
}

/// What to start.
#[derive(Clone)]
pub(crate) struct Launch {
    pub(crate) binary: PathBuf,
    pub(crate) wal_mode: String,
    /// Where the data directory is made; the system's place for temporary files if `None`.
    pub(crate) parent: Option<PathBuf>,
    pub(crate) disk_memory: DiskMemory,
}

/// A running server.
pub(crate) struct Server {
    launch: Launch,
    child: Child,
    pub(crate) address: String,
    dir: TempDir,
}

impl Server {
    /// Starts a server on a free port and waits until its application is there.
    pub(crate) fn start(launch: &Launch) -> Result<Self, String> {
        let dir = match &launch.parent {
            Some(parent) => TempDir::with_prefix_in("lycosa-bench-", parent),
            None => TempDir::with_prefix("lycosa-bench-"),
        };
        let dir = dir.map_err(|error| format!("a data directory: {error}"))?;
        for (name, text) in APP {
            std::fs::write(dir.path().join(name), text).map_err(|error| format!("{name}: {error}"))?;
        }
        std::fs::create_dir(dir.path().join("data")).map_err(|error| format!("a data directory: {error}"))?;
        let address = format!("127.0.0.1:{}", free_port().map_err(|error| format!("a free port: {error}"))?);
        let child = spawn(launch, dir.path(), &address)?;
        let mut server = Server { launch: launch.clone(), child, address, dir };
        server.wait()?;
        Ok(server)
    }

    /// Waits until the application answers.
    fn wait(&mut self) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            let answer = Client::connect(&self.address, None).and_then(|mut client| client.call("bench_ready", &[]));
            let trouble = match answer {
                Ok(Value::Bool(true)) => return Ok(()),
                Ok(other) => format!("bench_ready answered {other:?}"),
                Err(ClientError::Broken(error)) => format!("no connection: {error}"),
                Err(error) => error.to_string(),
            };
            if let Some(status) = self.child.try_wait().map_err(|error| error.to_string())? {
                return Err(self.with_log(&format!("ended while it started, {status}")));
            }
            if begun.elapsed() > START_MAX {
                return Err(self.with_log(&format!("did not start within {START_MAX:?}: {trouble}")));
            }
            std::thread::sleep(POLL_PAUSE);
        }
    }

    /// A complaint about this server, with the end of what it logged.
    fn with_log(&self, complaint: &str) -> String {
        let log = std::fs::read(self.dir.path().join("server.log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        let tail = lines[lines.len().saturating_sub(LOG_LINES)..].join("\n  ");
        format!("{} {complaint}. The end of its log:\n  {tail}", self.launch.binary.display())
    }

    /// Leaves the directory where it is when this server goes away, for somebody to look into; returns its place.
    pub(crate) fn keep(&mut self) -> &Path {
        self.dir.disable_cleanup(true);
        orphans::forget(self.dir.path());
        self.dir.path()
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the server as a power switch would, as far as one process goes. Errors: it had ended by itself.
    pub(crate) fn kill(&mut self) -> Result<(), String> {
        if let Some(status) = self.child.try_wait().map_err(|error| error.to_string())? {
            return Err(self.with_log(&format!("ended by itself, {status}")));
        }
        self.child.kill().and_then(|()| self.child.wait()).map_err(|error| error.to_string())?;
        orphans::watch_over(self.dir.path(), None);
        Ok(())
    }

    /// Starts a killed server on what it left and kills it again after `life`, ready or not.
    pub(crate) fn start_and_kill(&mut self, life: Duration) -> Result<(), String> {
        self.child = spawn(&self.launch, self.dir.path(), &self.address)?;
        std::thread::sleep(life);
        self.kill()
    }

    /// Starts a killed server on what it left, at the same address; returns when it is ready.
    pub(crate) fn restart(&mut self) -> Result<(), String> {
        self.child = spawn(&self.launch, self.dir.path(), &self.address)?;
        self.wait()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already; there is nobody left to tell.
        let _ = self.child.kill();
        let _ = self.child.wait();
        orphans::forget(self.dir.path());
    }
}

/// A port that nobody has. Somebody else may take it before the server does; then the server does not start and says why.
pub(crate) fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn spawn(launch: &Launch, dir: &Path, address: &str) -> Result<Child, String> {
    let named = |error: std::io::Error| format!("{}: {error}", launch.binary.display());
    let log = std::fs::File::options().create(true).append(true).open(dir.join("server.log")).map_err(named)?;
    Command::new(&launch.binary)
        .arg(dir.join("app.lua"))
        .env("LISTEN", address)
        .env("WORK_DIR", dir.join("data"))
        .env("WAL_MODE", &launch.wal_mode)
        .env("MEMTX_MEMORY", MEMTX_MEMORY.to_string())
        .env("VINYL_MEMORY", launch.disk_memory.write_bytes.to_string())
        .env("VINYL_CACHE", launch.disk_memory.cache_bytes.to_string())
        .env("LOG_LEVEL", "4")
        .stdin(Stdio::null())
        .stdout(log.try_clone().map_err(named)?)
        .stderr(log)
        .spawn()
        .map_err(named)
        .inspect(|child| orphans::watch_over(dir, Some(child.id())))
}
