//! `lycosa torture` as a user runs it, briefly.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::binary;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

fn torture(arguments: &[&str]) -> Output {
    Command::new(binary()).arg("torture").args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// The number behind a name of the report.
fn number(report: &str, name: &str) -> u64 {
    let start = report.find(&format!("\"{name}\":")).unwrap_or_else(|| panic!("no {name} in {report}"));
    let rest = &report[start + name.len() + 3..];
    rest.split([',', '}']).next().unwrap().parse().unwrap()
}

#[test]
fn a_short_torture_kills_the_server_and_finds_nothing_lost() {
    let dir = TempDir::new().unwrap();
    let place = dir.path().display().to_string();
    let output = torture(&["--seconds", "5", "--kills", "2", "--json", "--seed", "7", "--dir", &place]);
    let (report, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{report}\n{errors}");
    assert_eq!((number(&report, "lost"), number(&report, "violations")), (0, 0), "{report}");
    assert!((1..=20).contains(&number(&report, "kills")), "{report}");
    assert!(number(&report, "acknowledged") > 0 && number(&report, "checks") > 0, "{report}");
    assert!(report.contains("\"seed\":7"), "{report}");
}

#[test]
fn a_target_that_does_not_start_is_an_error_and_no_verdict() {
    let output = torture(&["--target", "redis", "--binary", "/nowhere/redis-server", "--seconds", "1"]);
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nowhere/redis-server"), "{output:?}");
}

#[test]
fn a_workload_that_does_not_exist_is_named_together_with_those_that_do() {
    let output = torture(&["--workload", "none"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("none") && said.contains("registers"), "{said}");
    assert!(String::from_utf8_lossy(&torture(&["--workload", "list"]).stdout).contains("bank"));
}

#[test]
fn a_short_torture_through_doors_finds_nothing_lost() {
    for doors in [
        &["--door", "redis", "--door", "memcached", "--engine", "mixed"][..],
        &["--door", "tyrant"],
        &["--door", "postgres", "--door", "mysql"],
    ] {
        let dir = TempDir::new().unwrap();
        let place = dir.path().display().to_string();
        let mut arguments =
            vec!["--seconds", "4", "--kills", "2", "--clients", "12", "--json", "--seed", "7", "--dir", &place];
        arguments.extend(doors);
        let output = torture(&arguments);
        let (report, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{report}\n{errors}");
        assert!(number(&report, "acknowledged") > 0 && report.contains(doors[1]), "{report}");
    }
    let list = torture(&["--workload", "list"]);
    assert!(String::from_utf8_lossy(&list.stdout).contains("queues"));
    let output = torture(&["--door", "redis", "--target", "tarantool"]);
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
}
