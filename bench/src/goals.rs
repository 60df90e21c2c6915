//! What Lycosa is meant to reach beside its rivals, and whether the kept results say that it does.

use crate::results::{Figure, Results};

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wanted {
    /// Ours over theirs.
    RatioAtLeast(f64),
    RatioAtMost(f64),
    /// The figure itself.
    AtLeast(f64),
    AtMost(f64),
}

/// One goal.
struct Goal {
    /// Its number in the list of goals, of which the disk engine has one of its own.
    line: u8,
    section: &'static str,
    case: &'static str,
    figure: &'static str,
    ours: &'static str,
    /// The rival; empty where the figure stands for itself.
    theirs: &'static str,
    wanted: Wanted,
}

/// A goal beside what was measured.
pub(crate) struct Verdict {
    /// The goal's number; that of a disk engine has a `D` before it.
    pub(crate) line: String,
    pub(crate) what: String,
    pub(crate) wanted: String,
    /// `None`: it was not measured.
    pub(crate) measured: Option<String>,
    pub(crate) is_reached: bool,
}

const F: &str = "Lycosa fsync";
const W: &str = "Lycosa write";
const T: &str = "Tarantool write";
const TF: &str = "Tarantool fsync";
const R: &str = "RocksDB";
const DEVICE: &str = "fio";
const M: &str = "MariaDB relaxed";

const fn ratio(
    line: u8,
    section: &'static str,
    case: &'static str,
    figure: &'static str,
    pair: (&'static str, &'static str),
    wanted: Wanted,
) -> Goal {
    Goal { line, section, case, figure, ours: pair.0, theirs: pair.1, wanted }
}

/// A figure of Lycosa at `wal_mode = write` that stands for itself: reads do not care what the log is synced by.
const fn own_read(line: u8, section: &'static str, case: &'static str, figure: &'static str, wanted: Wanted) -> Goal {
    Goal { line, section, case, figure, ours: W, theirs: "", wanted }
}

const fn own(line: u8, section: &'static str, case: &'static str, figure: &'static str, wanted: Wanted) -> Goal {
    Goal { line, section, case, figure, ours: F, theirs: "", wanted }
}

use Wanted::{AtLeast, AtMost, RatioAtLeast, RatioAtMost};

const GOALS: &[Goal] = &[
    ratio(1, "requests", "replace 4 x 256", "requests", (F, T), RatioAtLeast(3.0)),
    ratio(1, "requests", "insert, 2 secondaries 4 x 256", "requests", (F, T), RatioAtLeast(3.0)),
    ratio(1, "requests", "select 4 x 256", "requests", (F, T), RatioAtLeast(3.0)),
    ratio(1, "requests", "update 4 x 256", "requests", (F, T), RatioAtLeast(3.0)),
    ratio(1, "requests", "upsert 4 x 256", "requests", (F, T), RatioAtLeast(3.0)),
    ratio(2, "requests", "select 16 x 1", "requests", (F, T), RatioAtLeast(2.0)),
    ratio(2, "requests", "replace 16 x 1", "requests", (W, T), RatioAtLeast(2.0)),
    ratio(2, "requests", "replace 16 x 1", "requests", (F, T), RatioAtLeast(1.2)),
    ratio(2, "requests", "replace 16 x 1", "requests", (F, TF), RatioAtLeast(3.0)),
    ratio(2, "requests", "select 1 x 1", "requests", (F, T), RatioAtLeast(1.5)),
    ratio(2, "requests", "replace 1 x 1", "requests", (W, T), RatioAtLeast(1.5)),
    ratio(3, "inventory", "capture and release", "operations", (W, T), RatioAtLeast(2.0)),
    ratio(3, "inventory", "capture and release", "operations", (W, "Redis"), RatioAtLeast(1.5)),
    ratio(3, "inventory", "capture and release", "operations", (W, "MariaDB relaxed"), RatioAtLeast(6.0)),
    ratio(3, "inventory", "capture and release", "operations", (W, "PostgreSQL relaxed"), RatioAtLeast(6.0)),
    ratio(3, "inventory", "capture and release", "operations", (F, T), RatioAtLeast(1.2)),
    ratio(3, "inventory", "capture and release", "operations", (F, TF), RatioAtLeast(3.0)),
    ratio(3, "inventory", "capture and release", "operations", (F, "Redis fsync"), RatioAtLeast(3.0)),
    ratio(3, "inventory", "capture and release", "operations", (F, "MariaDB durable"), RatioAtLeast(3.0)),
    ratio(3, "inventory", "capture and release", "operations", (F, "PostgreSQL durable"), RatioAtLeast(3.0)),
    ratio(4, "requests", "select 4 x 256", "server CPU", (F, T), RatioAtMost(1.0 / 3.0)),
    ratio(4, "requests", "replace 4 x 256", "server CPU", (F, T), RatioAtMost(1.0 / 3.0)),
    ratio(4, "requests", "select 16 x 1", "server CPU", (F, T), RatioAtMost(0.5)),
    ratio(4, "requests", "replace 16 x 1", "server CPU", (F, T), RatioAtMost(0.5)),
    ratio(4, "connect", "connect, log in, ask", "server CPU", (F, T), RatioAtMost(0.25)),
    own(5, "size", "select", "kept", AtLeast(0.7)),
    own(5, "size", "replace", "kept", AtLeast(0.7)),
    own(5, "size", "update", "kept", AtLeast(0.7)),
    own(5, "size", "upsert", "kept", AtLeast(0.7)),
    own(5, "size", "insert", "kept", AtLeast(0.7)),
    own(6, "checkpoint", "checkpoint", "worst second", AtLeast(0.8)),
    own(6, "checkpoint", "checkpoint", "latency, 99.9 %, of before", AtMost(2.0)),
    own(6, "index", "index", "worst second", AtLeast(0.8)),
    own(6, "index", "index", "latency, 99.9 %, of before", AtMost(2.0)),
    own(6, "drop", "drop", "slowest request", AtMost(10.0)),
    ratio(7, "recovery", "from the snapshot", "rows", (W, T), RatioAtLeast(3.0)),
    ratio(7, "recovery", "from the log", "rows", (W, T), RatioAtLeast(3.0)),
    ratio(7, "memory", "20 bytes, 0 secondaries", "memory", (F, T), RatioAtMost(0.9)),
    ratio(7, "memory", "100 bytes, 0 secondaries", "memory", (F, T), RatioAtMost(0.9)),
    ratio(8, "key-value", "set 4 x 256", "requests", (W, "Redis"), RatioAtLeast(2.0)),
    ratio(8, "key-value", "get 4 x 256", "requests", (W, "Redis"), RatioAtLeast(2.0)),
    ratio(8, "key-value", "set 4 x 256", "requests", (W, "memcached, 1 thread"), RatioAtLeast(2.0)),
    ratio(8, "key-value", "get 4 x 256", "requests", (W, "memcached, 1 thread"), RatioAtLeast(2.0)),
    ratio(8, "key-value", "set 16 x 1", "requests", (W, "Redis"), RatioAtLeast(1.0)),
    ratio(8, "key-value", "get 16 x 1", "requests", (W, "Redis"), RatioAtLeast(1.0)),
    ratio(8, "key-value", "set 16 x 1", "requests", (W, "memcached, 1 thread"), RatioAtLeast(1.0)),
    ratio(8, "key-value", "get 16 x 1", "requests", (W, "memcached, 1 thread"), RatioAtLeast(1.0)),
    own(9, "hot-row", "update 1000 x 16", "requests", AtLeast(500_000.0)),
    own(9, "hot-row", "procedure 1000 x 16", "requests", AtLeast(300_000.0)),
    own(9, "hot-row", "other rows", "latency, 99 %, of without the hot row", AtMost(1.5)),
    own(9, "hot-row", "kill -9", "acknowledged units not gone", AtMost(0.0)),
    ratio(1, "disk-write", "write", "requests", (F, T), RatioAtLeast(2.0)),
    ratio(1, "disk-write", "write", "requests", (F, R), RatioAtLeast(1.0)),
    own(1, "disk-write", "write", "worst second, of the median", AtLeast(0.7)),
    own(1, "disk-write", "write", "slowest request, of the median", AtMost(4.0)),
    own(2, "disk-sustained", "steady", "latency, 99.9 %", AtMost(20.0)),
    own(2, "disk-sustained", "steady", "worst second, of the median", AtLeast(0.7)),
    own(2, "disk-sustained", "steady", "space amplification", AtMost(1.5)),
    own(2, "disk-sustained", "uniform", "space amplification", AtMost(1.5)),
    ratio(2, "disk-sustained", "uniform", "write amplification", (F, R), RatioAtMost(1.0)),
    ratio(3, "disk-read", "page cache", "requests", (W, T), RatioAtLeast(2.5)),
    ratio(3, "disk-read", "cold", "requests", (W, T), RatioAtLeast(2.0)),
    ratio(3, "disk-read", "cold", "requests", (W, DEVICE), RatioAtLeast(0.8)),
    own_read(3, "disk-read", "zipf", "of the memory engine", AtLeast(0.5)),
    own_read(4, "disk-missing", "missing", "of reads that go to the device", AtLeast(10.0)),
    own(5, "disk-deleted", "at once", "first row", AtMost(10.0)),
    own(5, "disk-deleted", "after a snapshot", "first row", AtMost(10.0)),
    ratio(6, "disk-random-inserts", "insert, 1 client", "requests", (W, M), RatioAtLeast(2.0)),
    ratio(6, "disk-random-inserts", "insert, 1 client", "requests", (W, T), RatioAtLeast(2.0)),
    ratio(6, "disk-random-inserts", "insert, 32 clients", "requests", (F, M), RatioAtLeast(1.0)),
    ratio(6, "disk-random-inserts", "insert, 32 clients", "requests", (F, "MariaDB durable"), RatioAtLeast(3.0)),
    own(6, "disk-random-inserts", "insert, 32 clients", "worst second, of the median", AtLeast(0.7)),
    own(6, "disk-random-inserts", "insert, 32 clients, 2 readers", "worst second, of the median", AtLeast(0.7)),
    own(6, "disk-random-inserts", "insert, 32 clients, 32 readers", "worst second, of the median", AtLeast(0.7)),
    own(6, "disk-random-inserts", "insert, 32 clients, 256 readers", "worst second, of the median", AtLeast(0.7)),
    ratio(7, "disk-inventory", "capture and release", "operations", (W, T), RatioAtLeast(1.5)),
    own_read(8, "disk-start", "after the fill", "start", AtMost(2.0)),
    own_read(8, "disk-start", "after a snapshot", "start", AtMost(2.0)),
];

/// As many digits as tell it from what is wanted.
fn shown(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

impl Goal {
    fn judge(&self, results: Option<&Results>) -> Verdict {
        let find =
            |label: &str| results.and_then(|found| found.find(self.case, self.figure, label)).map(Figure::median);
        let measured = match self.theirs {
            "" => find(self.ours),
            theirs => find(self.ours).zip(find(theirs)).map(|(ours, theirs)| ours / theirs),
        };
        let measured = measured.filter(|value| value.is_finite());
        let (wanted, is_reached) = match self.wanted {
            RatioAtLeast(least) => (format!("at least {} times", shown(least)), measured.map(|value| value >= least)),
            AtLeast(least) => (format!("at least {}", shown(least)), measured.map(|value| value >= least)),
            RatioAtMost(most) => (format!("at most {} times", shown(most)), measured.map(|value| value <= most)),
            AtMost(most) => (format!("at most {}", shown(most)), measured.map(|value| value <= most)),
        };
        let against = if self.theirs.is_empty() { String::new() } else { format!(" against {}", self.theirs) };
        Verdict {
            line: if self.section.starts_with("disk-") { format!("D{}", self.line) } else { self.line.to_string() },
            what: format!("{}, {}: {}{against}", self.case, self.figure, self.ours),
            wanted,
            measured: measured.map(shown),
            is_reached: is_reached.unwrap_or(false),
        }
    }
}

/// All goals beside what is kept of their sections.
pub(crate) fn judge<'a>(find: impl Fn(&str) -> Option<&'a Results>) -> Vec<Verdict> {
    GOALS.iter().map(|goal| goal.judge(find(goal.section))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::Contender;
    use crate::results::{Recorder, Turn};
    use crate::sections::SECTIONS;
    use clap::ValueEnum;

    #[test]
    fn goals_are_about_sections_and_contenders_that_there_are() {
        let labels: Vec<&str> = Contender::value_variants().iter().map(|one| one.label()).collect();
        for goal in GOALS {
            assert!(SECTIONS.iter().any(|section| section.name == goal.section), "{}", goal.section);
            assert!(labels.contains(&goal.ours) && (goal.theirs.is_empty() || labels.contains(&goal.theirs)));
        }
    }

    #[test]
    fn a_goal_is_reached_by_the_ratio_of_medians() {
        let goal = ratio(1, "s", "c", "requests", (F, T), RatioAtLeast(3.0));
        let mut recorder = Recorder::default();
        for (label, value) in [(F, 10.0), (T, 5.0), (F, 16.0), (F, 30.0)] {
            let mut turn = Turn::default();
            turn.higher("c", "requests", "1/s", value);
            recorder.add(label, turn);
        }
        let results = recorder.finish();
        let verdict = goal.judge(Some(&results));
        assert_eq!((verdict.measured.as_deref(), verdict.is_reached), (Some("3.20"), true));
        let verdict = goal.judge(None);
        assert!(verdict.measured.is_none() && !verdict.is_reached);
    }
}
