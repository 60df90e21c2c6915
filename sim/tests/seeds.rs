//! The share of the seeds that every build runs; `make sim` runs as many as are wanted.
#![allow(clippy::unwrap_used, reason = "a test")]

use sim::machine::runs::{self, Choice, Options};
use sim::planted::Bug;
use sim::report::Progress;
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_sim");

fn options(count: u64, choice: Choice) -> Options {
    let jobs = std::thread::available_parallelism().map_or(1, |count| count.get());
    Options { program: PROGRAM.into(), first: 0, count, jobs, choice, until_found: false }
}

/// Runs a seed in this process: the line of its verdict, with the hash of everything that happened.
fn here(seed: u64) -> String {
    let mut out = Vec::new();
    runs::serve(seed, 1, &Choice::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The same in a process of its own.
fn elsewhere(seed: u64) -> String {
    let seed = seed.to_string();
    let output = Command::new(PROGRAM).args(["run-seeds", "--count", "1", "--first", &seed]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_seed_is_one_history_whatever_ran_before_it_and_wherever_it_runs() {
    // The last three have rows on disk.
    for seed in [2, 11, 17, 20, 211, 251] {
        let first = here(seed);
        assert_eq!(first, here(seed), "the same seed again");
        let other = here(seed + 1);
        assert_ne!(first, other, "another seed");
        assert_eq!(first, here(seed), "with another seed between");
        for _ in 0..3 {
            assert_eq!(first, elsewhere(seed), "in another process");
        }
    }
}

#[test]
fn every_promise_is_kept_in_some_hundred_seeds() {
    let totals = runs::run(&options(400, Choice::default()), &Progress::hidden()).unwrap();
    let findings: Vec<String> = totals.findings.iter().map(ToString::to_string).collect();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    assert_eq!(totals.seeds, 400);
    assert!(totals.strangers().is_empty(), "without a name in Branch: {:?}", totals.strangers());
    assert!(totals.gaps().len() <= 5, "rare branches that were never reached: {:?}", totals.gaps());
}

#[test]
fn promises_are_kept_through_every_door_and_through_several_over_the_same_rows() {
    for workload in ["items", "appends", "counters", "queues", "statements", "families"] {
        let choice = Choice { workloads: vec![workload.to_string()], ..Choice::default() };
        let totals = runs::run(&options(50, choice), &Progress::hidden()).unwrap();
        let findings: Vec<String> = totals.findings.iter().map(ToString::to_string).collect();
        assert!(findings.is_empty(), "{}", findings.join("\n"));
        assert!(totals.seeds == 50 && totals.acknowledged > 1000, "{totals:?}");
    }
}

#[test]
fn planted_bugs_are_found_by_seeds() {
    for &bug in Bug::ALL {
        let found = runs::find_planted(&options(1000, Choice::of(bug)), &Progress::hidden()).unwrap();
        let found = found.unwrap_or_else(|| panic!("{bug:?} was not found"));
        println!("{bug:?}: found by {} seeds: {found}", found.seed + 1);
    }
}

#[test]
fn a_process_that_dies_is_the_finding_of_its_seed() {
    // A workload that does not exist ends the child before its first seed.
    let choice = Choice { workloads: vec!["none".to_string()], ..Choice::default() };
    let totals = runs::run(&options(2, choice), &Progress::hidden()).unwrap();
    let seeds: Vec<u64> = totals.findings.iter().map(|finding| finding.seed).collect();
    assert_eq!(seeds, [0, 1]);
    assert!(totals.findings.iter().all(|finding| finding.workload == "process" && finding.text.contains("there are")));
}

#[test]
fn a_process_that_dies_behind_its_last_line_is_the_finding_of_its_last_seed() {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/dies_late.sh").into();
    let totals = runs::run(&Options { program, ..options(50, Choice::default()) }, &Progress::hidden()).unwrap();
    assert_eq!(totals.seeds, 50, "all of them have run");
    let seeds: Vec<u64> = totals.findings.iter().map(|finding| finding.seed).collect();
    assert_eq!(seeds, [39, 49]);
    let is_told = |text: &str| text.contains("signal: 6") && text.contains("last words");
    assert!(totals.findings.iter().all(|finding| finding.workload == "process" && is_told(&finding.text)));
}
