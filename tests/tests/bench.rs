//! The load generator and the comparison, with numbers so small that only their working is tried. Rivals need not be installed.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Server, bench_binary, binary};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// What a command prints; it must succeed.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?} ended with {}\n{out}\n{error}", output.status);
    out.into_owned()
}

/// A server whose guest may do everything.
fn open_server(dir: &Path) -> Server {
    let script = dir.join("grants.lua");
    std::fs::write(&script, "box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true })").unwrap();
    Server::start_in(&dir.join("data"), &["--script", script.to_str().unwrap()])
}

#[test]
fn bench_loads_a_space_that_it_makes() {
    let dir = TempDir::new().unwrap();
    let server = open_server(dir.path());
    let bench = |arguments: &[&str]| {
        let command = ["bench", "--connect", server.address(), "--rows", "1000", "--requests", "2000", "--json"];
        output(Command::new(binary()).args(command).args(arguments))
    };
    for operation in ["select", "replace", "update", "upsert", "mixed"] {
        let shown = bench(&["--create", "--operation", operation, "--keys", "zipf"]);
        assert!(shown.contains("\"requests\":2000"), "{operation}: {shown}");
    }
    let shown = bench(&["--operation", "insert", "--rate", "20000", "--connections", "2"]);
    assert!(shown.contains("\"p9999\""), "{shown}");
    let refused = Command::new(binary())
        .args(["bench", "--connect", server.address(), "--space", "nowhere", "--requests", "1"])
        .output()
        .unwrap();
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("nowhere"));
}

#[test]
fn a_preset_writes_its_rows_and_reads_them() {
    let dir = TempDir::new().unwrap();
    let server = open_server(dir.path());
    let command = [
        "bench",
        "--connect",
        server.address(),
        "--preset",
        "pipeline",
        "--engine",
        "memtx",
        "--rows",
        "5000",
        "--json",
    ];
    let shown = output(Command::new(binary()).args(command));
    assert!(shown.starts_with("{\"read\":{") && shown.contains("\"write\":{"), "{shown}");
    assert_eq!(shown.matches("\"requests\":5000,\"seconds\"").count(), 2, "{shown}");
}

#[test]
fn every_section_runs_on_lycosa_alone() {
    let dir = TempDir::new().unwrap();
    let document = dir.path().join("benchmarks.md");
    let mut command = Command::new(bench_binary());
    command.args(["compare", "--json", "--quick", "--contenders", "lycosa,lycosa-write", "--lycosa"]).arg(binary());
    command.args(["--rounds", "1", "--rows", "500", "--big-rows", "1000", "--huge-rows", "1000"]);
    command.args(["--disk-rows", "1000", "--sustained-seconds", "0.05"]);
    command.args(["--seconds", "0.01", "--operations", "200", "--patience", "0", "--results"]).arg(dir.path());
    command.arg("--document").arg(&document);
    output(&mut command);
    let text = std::fs::read_to_string(&document).unwrap();
    assert!(!text.contains("Not run.") && text.contains("Not there: Tarantool write: left out"), "{text}");
}
