//! The share of the simulator's work that every change has to pass. The rest: `make sim-crash`, `make sim-histories`, `make sim-errors`.

use runtime::{FileOperation, OperationKind};
use sim::check::Seeds;
use sim::report::Progress;
use sim::world::{Engine, Layout};
use sim::{crash_points, errors, histories, planted};

#[test]
fn the_power_may_go_at_every_change_and_again_in_every_recovery() {
    let outcome =
        crash_points::run(crash_points::Options { seeds: Seeds::new(2), ..Default::default() }, &Progress::hidden());
    assert!(outcome.finding.is_none(), "{}", outcome.finding.map(|finding| finding.to_string()).unwrap_or_default());
    let counts = outcome.counts;
    assert_eq!(
        counts.points.values().sum::<u64>(),
        outcome.operations.iter().filter(|o| is_change(o.kind)).count() as u64
    );
    for kind in OperationKind::CHANGES {
        // Files are made under new names, so none is emptied. Snapshots are too short to be sent to the disk in parts.
        let is_unused = [OperationKind::Truncate, OperationKind::WriteBehind].contains(&kind);
        let is_met = counts.points.contains_key(&kind) || is_unused;
        assert!(is_met, "the workload never came to {}", kind.name());
    }
    assert!(counts.points.values().sum::<u64>() > 150 && counts.recovery_points.values().sum::<u64>() > 1000);
}

fn is_change(kind: OperationKind) -> bool {
    OperationKind::CHANGES.contains(&kind)
}

#[test]
fn the_power_may_go_with_log_and_snapshots_in_one_directory() {
    let options =
        crash_points::Options { layout: Layout::Together, again: false, seeds: Seeds::new(8), ..Default::default() };
    let outcome = crash_points::run(options, &Progress::hidden());
    assert!(outcome.finding.is_none(), "{}", outcome.finding.map(|finding| finding.to_string()).unwrap_or_default());
}

#[test]
fn the_power_may_go_at_every_change_of_what_is_on_disk() {
    let options =
        crash_points::Options { engine: Engine::Disk, again: false, seeds: Seeds::new(2), ..Default::default() };
    let outcome = crash_points::run(options, &Progress::hidden());
    assert!(outcome.finding.is_none(), "{}", outcome.finding.map(|finding| finding.to_string()).unwrap_or_default());
    let (dumps, compactions) = outcome.disk_jobs;
    assert!(dumps > 8 && compactions > 8, "{dumps} dumps, {compactions} compactions");
    let manifests = |operation: &&FileOperation| {
        operation.kind == OperationKind::Rename && operation.path.to_string_lossy().contains("/manifest-")
    };
    assert!(outcome.operations.iter().filter(manifests).count() > 2, "manifests that took the place of others");
}

#[test]
fn every_nth_error_loses_nothing_that_is_on_disk() {
    // The other kinds take minutes: `make sim-errors`.
    let options = errors::Options { engine: Engine::Disk, seeds: Seeds::new(0), ..Default::default() };
    let outcome = errors::run_kinds(&[errors::Kind::Sync], options, &Progress::hidden());
    assert!(outcome.finding.is_none(), "{}", outcome.finding.map(|finding| finding.to_string()).unwrap_or_default());
    assert!(outcome.runs[&errors::Kind::Sync] > 100 && outcome.failed_logs > 0);
}

#[test]
fn every_history_of_one_or_two_operations_survives_every_power_loss() {
    let outcome = histories::run(histories::Options::default(), &Progress::hidden());
    assert!(outcome.finding.is_none(), "{}", outcome.finding.map(|finding| finding.to_string()).unwrap_or_default());
    assert_eq!(outcome.histories, 15 + 15 * 15);
    assert!(outcome.counts.states > 5000, "{}", outcome.counts.states);
}

#[test]
fn every_nth_error_is_answered_and_loses_nothing() {
    let outcome = errors::run(errors::Options { seeds: Seeds::new(1), ..Default::default() }, &Progress::hidden());
    assert!(outcome.finding.is_none(), "{}", outcome.finding.map(|finding| finding.to_string()).unwrap_or_default());
    assert!(outcome.runs[&errors::Kind::Io] > 200 && outcome.runs[&errors::Kind::Memory] > 50);
    assert!(outcome.failed_logs > 0 && outcome.failed_starts > 0, "both ways to fail were met");
}

#[test]
fn planted_bugs_are_found() {
    for &bug in planted::Bug::ALL.iter().filter(|bug| !bug.needs_seeds()) {
        let found = planted::find(bug, &Progress::hidden());
        let found = found.unwrap_or_else(|| panic!("{bug:?} was not found"));
        println!("{bug:?}: found by {} after {} states: {}", found.tool, found.states, found.finding);
    }
}
