//! Lua code that calls everything it can reach with arguments of every wrong kind gets errors; the process lives.

use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Rounds over all functions for each seed.
const ROUNDS: &str = "4";

/// Runs `tests/arguments/calls.lua`; a failure names the call that was made last.
fn calls_with_seed(seed: &str) {
    let dir = TempDir::new().expect("a temporary directory");
    // A call such as fio.rmtree('') may take away the directory that it runs in.
    let (work, log) = (dir.path().join("work"), dir.path().join("calls.log"));
    std::fs::create_dir(&work).expect("a directory in the temporary one");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("arguments/calls.lua");
    let done = Command::new(lycosa_tests::binary())
        .arg(&script)
        .args([seed, ROUNDS])
        .env("CALLS_LOG", &log)
        .current_dir(&work)
        .stdin(Stdio::null())
        .output()
        .expect("the binary starts");
    let log = std::fs::read(&log).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let last = log.lines().last().unwrap_or("no call was made");
    let complaint = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success() && last == "end",
        "seed {seed}: {}; the last call was {last}\n{complaint}",
        done.status
    );
}

#[test]
fn wrong_arguments_end_no_process_first_seed() {
    calls_with_seed("1");
}

#[test]
fn wrong_arguments_end_no_process_second_seed() {
    calls_with_seed("7");
}

#[test]
fn wrong_arguments_end_no_process_third_seed() {
    calls_with_seed("5");
}
