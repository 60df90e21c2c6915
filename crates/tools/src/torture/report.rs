//! What came of it.

use super::Fault;
use serde_json::json;
use std::collections::BTreeMap;

/// So many broken promises are told in words.
const TOLD_MAX: usize = 10;

/// Clock jumps cannot be had without harm to others.
pub(super) const CLOCK: &str = "not possible here: setting the clock needs CAP_SYS_TIME and moves that of the whole machine, \
                                and a time namespace does not move the time of day";
/// How the disk is made full.
pub(super) const DISK: &str =
    "RLIMIT_FSIZE: writes beyond it fail with EFBIG; a full file system of its own would need the right to mount one";

/// Refusals with one number.
#[derive(Default)]
pub(super) struct Refusals {
    pub(super) count: u64,
    /// What the last one said.
    pub(super) text: String,
}

/// The report.
#[derive(Default)]
pub(super) struct Report {
    /// What ran, and how.
    pub(super) target: String,
    pub(super) workloads: Vec<&'static str>,
    pub(super) faults: Vec<Fault>,
    pub(super) seed: u64,
    pub(super) seconds: f64,
    /// Operations asked for, and what came of them.
    pub(super) operations: u64,
    pub(super) acknowledged: u64,
    pub(super) unknown: u64,
    pub(super) refused: u64,
    /// Refusals by the number of their error.
    pub(super) refusals: BTreeMap<u32, Refusals>,
    /// Times that all spaces were made anew.
    pub(super) rounds: u64,
    pub(super) kills: u64,
    /// Of the kills, those before the server was ready.
    pub(super) kills_during_recovery: u64,
    pub(super) pauses: u64,
    /// Lives in which files could not grow.
    pub(super) full_disks: u64,
    /// Of these, starts that the server refused.
    pub(super) refused_starts: u64,
    /// Of these, lives that the server ended by itself.
    pub(super) ended_when_full: u64,
    /// Microseconds from the start of the process until clients may come.
    pub(super) recoveries_us: Vec<u64>,
    /// Times that a workload's history was compared with what is there.
    pub(super) checks: u64,
    /// Broken promises: the workload, the kind, in words.
    pub(super) violations: Vec<(String, &'static str, String)>,
}

impl Report {
    /// True if every promise was kept.
    pub(super) fn is_right(&self) -> bool {
        self.violations.is_empty()
    }

    fn lost(&self) -> usize {
        self.violations.iter().filter(|(_, kind, _)| *kind == "lost").count()
    }

    fn recovery_us(&self) -> (u64, u64) {
        let mut sorted = self.recoveries_us.clone();
        sorted.sort_unstable();
        (sorted.get(sorted.len() / 2).copied().unwrap_or(0), sorted.last().copied().unwrap_or(0))
    }

    fn fault_names(&self) -> Vec<String> {
        self.faults.iter().map(|fault| format!("{fault:?}").to_lowercase()).collect()
    }

    /// As JSON.
    pub(super) fn json(&self) -> serde_json::Value {
        let (median_us, worst_us) = self.recovery_us();
        let told = self.violations.iter().take(TOLD_MAX);
        let refusals: BTreeMap<String, u64> =
            self.refusals.iter().map(|(code, refusals)| (code.to_string(), refusals.count)).collect();
        let texts: BTreeMap<String, &str> =
            self.refusals.iter().map(|(code, refusals)| (code.to_string(), refusals.text.as_str())).collect();
        json!({
            "is_right": self.is_right(),
            "target": self.target,
            "workloads": self.workloads,
            "faults": self.fault_names(),
            "disk": DISK,
            "clock": CLOCK,
            "seed": self.seed,
            "seconds": self.seconds,
            "rounds": self.rounds,
            "operations": self.operations,
            "acknowledged": self.acknowledged,
            "unknown": self.unknown,
            "refused": self.refused,
            "refused_by_code": refusals,
            "refused_last_texts": texts,
            "kills": self.kills,
            "kills_during_recovery": self.kills_during_recovery,
            "pauses": self.pauses,
            "full_disks": self.full_disks,
            "refused_starts": self.refused_starts,
            "ended_when_full": self.ended_when_full,
            "recoveries": self.recoveries_us.len(),
            "recovery_median_us": median_us,
            "recovery_worst_us": worst_us,
            "checks": self.checks,
            "lost": self.lost(),
            "violations": self.violations.len(),
            "violations_told": told.map(|(workload, kind, text)| json!({
                "workload": workload, "kind": kind, "text": text,
            })).collect::<Vec<_>>(),
        })
    }

    /// For people.
    pub(super) fn print(&self) {
        let (median_us, worst_us) = self.recovery_us();
        let milliseconds = |us: u64| us as f64 / 1e3;
        println!("target       {}", self.target);
        println!("workloads    {}", self.workloads.join(", "));
        println!("faults       {} (seed {})", self.fault_names().join(", "), self.seed);
        println!("disk full    {DISK}");
        println!("clock jumps  {CLOCK}");
        println!("time         {:.1} s, {} rounds", self.seconds, self.rounds);
        println!(
            "operations   {}: {} acknowledged, {} refused, {} without an answer",
            self.operations, self.acknowledged, self.refused, self.unknown
        );
        for (code, Refusals { count, text }) in &self.refusals {
            println!("refusals     {count} of error {code}, the last one: {text}");
        }
        println!("kills        {}, {} of them during recovery", self.kills, self.kills_during_recovery);
        println!("pauses       {}", self.pauses);
        println!(
            "full disks   {} lives; {} starts refused, {} ended by the server itself",
            self.full_disks, self.refused_starts, self.ended_when_full
        );
        println!(
            "recoveries   {}: median {:.1} ms, worst {:.1} ms",
            self.recoveries_us.len(),
            milliseconds(median_us),
            milliseconds(worst_us)
        );
        println!("checks       {}", self.checks);
        println!("lost         {}", self.lost());
        println!("violations   {}", self.violations.len());
        for (workload, kind, text) in self.violations.iter().take(TOLD_MAX) {
            println!("  {workload}, {kind}: {text}");
        }
    }
}
