//! The real binary as a child process.

use crate::client::Client;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A server that has not announced itself by then never will.
const START_MAX: Duration = Duration::from_secs(60);
/// Lines of the log that are kept for the message of a failed test.
const LOG_LINES_MAX: usize = 200;
/// What the start-up line has in front of the address.
const READY: &str = "ready: connect to ";

/// The server under test: `LYCOSA_BIN`, or the one of this workspace, built beside this test.
pub fn binary() -> PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    let build = || build("lycosa").join("lycosa");
    BINARY.get_or_init(|| std::env::var_os("LYCOSA_BIN").map_or_else(build, PathBuf::from)).clone()
}

/// Runs a script with the binary, in a directory of its own; returns what it printed.
pub fn printed(script: &str) -> String {
    let dir = TempDir::new().expect("a temporary directory");
    let path = dir.path().join("script.lua");
    std::fs::write(&path, script).expect("the script can be written");
    let done = Command::new(binary())
        .arg(&path)
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .output()
        .expect("the binary starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// The comparison program, built beside this test.
pub fn bench_binary() -> PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| build("lycosa-bench").join("lycosa-bench")).clone()
}

/// Builds a program with the profile and the target directory of the running test; where the programs are.
///
/// In the workspace, and with a test: the features of the libraries are then those with which the tests were built, so that nothing is built twice.
fn build(program: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a running test has a path");
    // TARGET/PROFILE/deps/TEST-HASH
    let profile = test.ancestors().nth(2).expect("tests run in TARGET/PROFILE/deps");
    let target = profile.parent().expect("tests run in TARGET/PROFILE/deps");
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(["build", "--workspace", "--bin", program, "--test", "tidy", "--target-dir"])
        .arg(target)
        .current_dir(crate::root());
    if profile.ends_with("release") {
        command.arg("--release");
    }
    if cfg!(feature = "planted-bugs") {
        command.args(["--features", "sim/planted-bugs,storage/planted-bugs,lycosa-tests/planted-bugs"]);
    }
    // What cargo tells the test of its own package: scripts of builds that look at it would run again, and all that depends on them.
    for (name, _) in std::env::vars_os() {
        let of_package = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_", "CARGO_BIN_", "CARGO_PRIMARY_", "OUT_DIR"];
        if of_package.iter().any(|start| name.to_string_lossy().starts_with(start)) {
            command.env_remove(name);
        }
    }
    let status = command.status().expect("cargo can be started");
    assert!(status.success(), "{program} cannot be built");
    profile.to_path_buf()
}

/// A running server. Killed on drop.
pub struct Server {
    child: Child,
    address: String,
    log: Arc<Mutex<VecDeque<String>>>,
    _dir: Option<TempDir>,
}

impl Server {
    /// `lycosa serve` in a fresh directory on a free port.
    pub fn start() -> Self {
        let dir = TempDir::new().expect("a temporary directory");
        let mut server = Self::start_in(dir.path(), &[]);
        server._dir = Some(dir);
        server
    }

    /// `lycosa serve` in a directory, with further options.
    pub fn start_in(dir: &Path, options: &[&str]) -> Self {
        let mut command = Command::new(binary());
        command.args(["serve", "--listen", "127.0.0.1:0", "--work-dir"]).arg(dir).args(options);
        Self::spawn(command).unwrap_or_else(|log| panic!("the server did not start:\n{log}"))
    }

    /// `lycosa serve` in a directory where it must refuse to start. Returns what it said.
    pub fn refused_in(dir: &Path, options: &[&str]) -> String {
        let mut command = Command::new(binary());
        command.args(["serve", "--listen", "127.0.0.1:0", "--work-dir"]).arg(dir).args(options);
        match Self::spawn(command) {
            Ok(server) => panic!("the server started at {}", server.address),
            Err(log) => log,
        }
    }

    /// Starts a command that serves, and waits for the line that tells its address. Errors: its log, if it ends first.
    pub fn spawn(mut command: Command) -> Result<Self, String> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", binary().display()));
        let log = Arc::new(Mutex::new(VecDeque::new()));
        let stderr = child.stderr.take().expect("it was asked for");
        let address = watch(stderr, Arc::clone(&log));
        let found = address.recv_timeout(START_MAX);
        let mut server = Server { child, address: String::new(), log, _dir: None };
        match found {
            Ok(address) => {
                server.address = address;
                Ok(server)
            }
            Err(RecvTimeoutError::Disconnected) => Err(server.log()),
            Err(RecvTimeoutError::Timeout) => {
                Err(format!("no start-up line in {} s\n{}", START_MAX.as_secs(), server.log()))
            }
        }
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A new connection, greeted.
    pub fn connect(&self) -> Client {
        Client::connect(&self.address).unwrap_or_else(|error| panic!("cannot connect: {error}\n{}", self.log()))
    }

    /// The end of its log.
    pub fn log(&self) -> String {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.iter().map(|line| format!("  {line}\n")).collect()
    }

    /// Resident memory of the process, in bytes.
    pub fn memory(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}\n{}", self.log()));
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the kernel tells VmRSS");
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number of kB");
        kib * 1024
    }

    /// Open descriptors of the process.
    pub fn descriptors(&self) -> usize {
        let path = format!("/proc/{}/fd", self.child.id());
        std::fs::read_dir(&path).unwrap_or_else(|error| panic!("{path}: {error}\n{}", self.log())).count()
    }

    /// Open sockets of the process. Files of the log come and go beside the clients.
    pub fn sockets(&self) -> usize {
        let path = format!("/proc/{}/fd", self.child.id());
        let all = std::fs::read_dir(&path).unwrap_or_else(|error| panic!("{path}: {error}\n{}", self.log()));
        let targets = all.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
        targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
    }

    /// Serves requests on `client` until `condition` holds or the time is over. Returns whether it held.
    pub fn wait(&self, client: &mut Client, time_max: Duration, condition: impl Fn(&Self) -> bool) -> bool {
        let begun = Instant::now();
        while !condition(self) {
            if begun.elapsed() > time_max {
                return false;
            }
            client.ping();
        }
        true
    }

    /// Asks the process to end, as a service manager does.
    pub fn terminate(&self) {
        self.signal("TERM");
    }

    /// Sends the process a signal by its short name.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status();
        assert!(status.expect("kill(1) is there").success(), "the process has ended before");
    }

    /// Waits for the process to end; what it ended with.
    pub fn ended(&mut self) -> std::process::ExitStatus {
        self.child.wait().expect("it is our child")
    }

    /// Ends the process without warning, as a crash does.
    pub fn kill(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("the server's log:\n{}", self.log());
        }
    }
}

/// Collects the log as long as the process lives; the address comes through the channel.
fn watch(stderr: ChildStderr, log: Arc<Mutex<VecDeque<String>>>) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines() {
            let Ok(line) = line else { break };
            let address = line.split_once(READY).and_then(|(_, rest)| rest.split_whitespace().next());
            if let Some(address) = address {
                // Only the first one is waited for.
                let _ = sender.send(address.to_string());
            }
            let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
            if log.len() == LOG_LINES_MAX {
                log.pop_front();
            }
            log.push_back(line);
        }
    });
    receiver
}
