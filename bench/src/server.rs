//! Starting and killing servers.

use crate::client::Client;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The example's application, which both servers run.
pub(crate) fn inventory_app() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/inventory/app.lua")
}

/// A running server with a data directory of its own.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    binary: PathBuf,
    wal_mode: String,
    dir: TempDir,
}

impl Server {
    /// Starts a binary with the inventory application on a free port.
    pub(crate) fn start(binary: &Path, wal_mode: &str) -> Result<Self, String> {
        let dir = TempDir::new().map_err(|error| error.to_string())?;
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .map_err(|error| error.to_string())?
            .port();
        let address = format!("127.0.0.1:{port}");
        let child = Self::spawn(binary, wal_mode, dir.path(), &address)?;
        let mut server =
            Server { child, address, binary: binary.to_path_buf(), wal_mode: wal_mode.to_string(), dir };
        server.wait()?;
        Ok(server)
    }

    fn spawn(binary: &Path, wal_mode: &str, dir: &Path, address: &str) -> Result<Child, String> {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(dir.join("server.log"))
            .map_err(|error| error.to_string())?;
        Command::new(binary)
            .arg(inventory_app())
            .env("LISTEN", address)
            .env("WORK_DIR", dir)
            .env("WAL_MODE", wal_mode)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|error| format!("{}: {error}", binary.display()))
    }

    /// Waits until the application is there.
    fn wait(&mut self) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            if let Ok(mut client) = Client::connect(&self.address, None)
                && client.eval("return bench_clear ~= nil").is_ok_and(|value| value == crate::client::Value::Bool(true))
            {
                return Ok(());
            }
            let is_over = self.child.try_wait().map_err(|error| error.to_string())?.is_some();
            if is_over || begun.elapsed() > Duration::from_secs(60) {
                let log = std::fs::read_to_string(self.dir.path().join("server.log")).unwrap_or_default();
                return Err(format!("{} did not start:\n{log}", self.binary.display()));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the server without warning and starts it again on what it left.
    pub(crate) fn kill_and_restart(&mut self) -> Result<(), String> {
        self.kill();
        self.child = Self::spawn(&self.binary, &self.wal_mode, self.dir.path(), &self.address)?;
        self.wait()
    }

    fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
