//! The N-th operation on files fails, the disk is full at the N-th byte, the N-th allocation is refused: for N = 1, 2, 3 ... until a run
//! passes untouched.
//!
//! After each error an answer is a refusal in words or the truth, never a panic. The database goes on, or its log has failed and it is
//! read-only with what was durable. Whatever the files hold then, read at once or after a power loss, is all that was acknowledged and at
//! most what was answered with an error by a failed log.

use crate::check::{Checker, Counts, Finding, Seeds, guarded};
use crate::crash_points::{WORKLOAD, workload};
use crate::histories::prepared_image;
use crate::model::Model;
use crate::report::Progress;
use crate::run::{Answers, Run, Wrap, plain};
use crate::world::{Engine, Layout};
use database::ErrorCode;
use runtime::{Fault, Loss, SimulatedFiles};
use std::collections::BTreeMap;
use std::io::ErrorKind;

/// Steps in which the place of a full disk moves.
const SPACE_STEP_BYTES: u64 = 1531;
/// Steps in which the limit of memory moves: no allocation is smaller than this apart from the next.
const MEMORY_STEP_BYTES: usize = 16;
/// After an error the files are looked at after each of so many groups of operations, and at the end.
const LOOKS: usize = 3;
/// Runs are bounded, so that a run that is never untouched ends as a finding.
const RUNS_MAX: u64 = 100_000;

/// What is made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The N-th operation on files, with an input/output error.
    Io,
    /// The N-th operation on files, for want of space.
    NoSpace,
    /// All writes behind the N-th byte, until there is space again.
    DiskFull,
    /// The N-th synced write or sync, with a disk that has forgotten what it was to carry.
    Sync,
    /// The N-th allocation.
    Memory,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 5] = [Kind::Io, Kind::NoSpace, Kind::DiskFull, Kind::Sync, Kind::Memory];

    /// In lower case, as reports print it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Io => "io",
            Kind::NoSpace => "no_space",
            Kind::DiskFull => "disk_full",
            Kind::Sync => "sync",
            Kind::Memory => "memory",
        }
    }
}

/// What to do.
#[derive(Clone, Copy)]
pub struct Options {
    /// Seeds of losses by chance, beside the named ones.
    pub seeds: Seeds,
    /// The files that the database is given.
    pub wrap: Wrap,
    /// Where rows are.
    pub engine: Engine,
}

impl Default for Options {
    fn default() -> Self {
        Options { seeds: Seeds::new(2), wrap: plain, engine: Engine::Memory }
    }
}

/// What came of it.
pub struct Outcome {
    /// Runs of each kind, the last one untouched.
    pub runs: BTreeMap<Kind, u64>,
    /// Runs that ended with a failed log.
    pub failed_logs: u64,
    /// Runs in which the start was refused.
    pub failed_starts: u64,
    /// How much was looked at.
    pub counts: Counts,
    /// The first broken promise.
    pub finding: Option<Finding>,
}

/// Where the N-th run left off.
enum Ended {
    /// Nothing failed: this was the last run.
    Untouched,
    /// Something failed; where the next run is to fail.
    Next(u64),
}

struct Errors {
    options: Options,
    checker: Checker,
    image: SimulatedFiles,
    model: Model,
    failed_logs: u64,
    failed_starts: u64,
}

/// Runs all kinds.
pub fn run(options: Options, progress: &Progress) -> Outcome {
    run_kinds(&Kind::ALL, options, progress)
}

/// Runs some kinds.
pub fn run_kinds(kinds: &[Kind], options: Options, progress: &Progress) -> Outcome {
    let checker = Checker::new(Layout::Apart, options.seeds.range());
    let mut runs = BTreeMap::new();
    progress.begin(kinds.len() as u64);
    let (image, model) = match prepared_image(Layout::Apart, options.engine) {
        Ok(prepared) => prepared,
        Err(what) => {
            let finding = Finding { work: "preparing".into(), at: "-".into(), loss: "-".into(), what };
            let counts = checker.counts;
            return Outcome { runs, failed_logs: 0, failed_starts: 0, counts, finding: Some(finding) };
        }
    };
    let mut errors = Errors { options, checker, image, model, failed_logs: 0, failed_starts: 0 };
    let finding = kinds.iter().find_map(|kind| {
        let mut nth = 0;
        let found = loop {
            let count: &mut u64 = runs.entry(*kind).or_default();
            *count += 1;
            if *count > RUNS_MAX {
                break Some("no run passes untouched".to_string());
            }
            match guarded(|| errors.run_once(*kind, nth)) {
                Ok(Ended::Untouched) => break None,
                Ok(Ended::Next(next)) => nth = next,
                Err(what) => break Some(what),
            }
        };
        progress.step();
        found.map(|what| {
            let at = format!("{} error, number {nth}", kind.name());
            Finding { work: "the workload".into(), at, loss: "-".into(), what }
        })
    });
    progress.end();
    let Errors { checker, failed_logs, failed_starts, .. } = errors;
    Outcome { runs, failed_logs, failed_starts, counts: checker.counts, finding }
}

/// The bytes that a refusal names.
fn requested(message: &str) -> usize {
    message.split(' ').find_map(|word| word.parse().ok()).unwrap_or(0)
}

/// True if the fault has not come yet.
fn is_waiting(kind: Kind, fault: Fault) -> bool {
    match kind {
        Kind::Io | Kind::NoSpace => fault.operations_until_error.is_some(),
        Kind::DiskFull => fault.space_left != Some(0),
        Kind::Sync => fault.syncs_until_error.is_some(),
        Kind::Memory => false,
    }
}

impl Errors {
    fn run_once(&mut self, kind: Kind, nth: u64) -> Result<Ended, String> {
        if kind == Kind::Memory {
            return self.run_out_of_memory(nth as usize);
        }
        let files = self.image.fork();
        let fault = match kind {
            Kind::Io => Fault { operations_until_error: Some(nth), ..Fault::default() },
            Kind::NoSpace => {
                let error_kind = Some(ErrorKind::StorageFull);
                Fault { operations_until_error: Some(nth), error_kind, ..Fault::default() }
            }
            Kind::DiskFull => Fault { space_left: Some(nth), ..Fault::default() },
            _ => Fault { syncs_until_error: Some(nth), ..Fault::default() },
        };
        files.set_fault(fault);
        let mut has_room_again = false;
        let begun = Run::begin(
            &files,
            self.options.wrap,
            (Layout::Apart, self.options.engine),
            self.model.clone(),
            Answers::MayRefuse,
            |_| {},
        );
        if let Ok(mut run) = begun {
            let mut salt = 0;
            let mut looks = 0;
            for (at, group) in workload(self.options.engine).enumerate() {
                for step in group {
                    salt += 1;
                    run.step(*step, salt)?;
                }
                run.drive().map_err(|what| format!("after operation {salt}: {what}"))?;
                let is_hit = has_room_again || !is_waiting(kind, files.fault());
                if is_hit && looks < LOOKS {
                    looks += 1;
                    self.check_files(&files, &run)?;
                }
                if kind == Kind::DiskFull && is_hit && at == WORKLOAD.len() / 2 {
                    // Somebody makes room.
                    files.set_fault(Fault::default());
                    has_room_again = true;
                }
            }
            let has_failed = !matches!(run.database.state(), database::State::Running);
            self.failed_logs += u64::from(has_failed);
            let closed = run.close();
            if closed.is_ok() && !has_failed && run.acknowledged() != *run.allowed_now().end() {
                return Err("a database that was closed in order has not written everything".to_string());
            }
            self.check_files(&files, &run)?;
        } else {
            self.failed_starts += 1;
            let expected = [self.model.digest()];
            for image in [files.fork(), files.crash(Loss::All), files.crash(Loss::None)] {
                self.checker.check_image(&image, &expected)?;
            }
        }
        let is_left = !has_room_again && is_waiting(kind, files.fault());
        let step = if kind == Kind::DiskFull { SPACE_STEP_BYTES } else { 1 };
        Ok(if is_left { Ended::Untouched } else { Ended::Next(nth + step) })
    }

    /// What is on the disk now: read by the next process, and after a power loss.
    fn check_files(&mut self, files: &SimulatedFiles, run: &Run) -> Result<(), String> {
        let allowed = run.digests(run.allowed_now()).to_vec();
        self.checker.check_image(&files.fork(), &allowed)?;
        for loss in Loss::kinds(files.unsynced(), self.options.seeds.range()) {
            self.checker.counts.states += 1;
            self.checker.check_image(&files.crash(loss), &allowed).map_err(|what| format!("{what} ({loss})"))?;
        }
        Ok(())
    }

    /// Rows and indexes may take `extra` bytes more than in the beginning, until an allocation is refused; then there is room again.
    fn run_out_of_memory(&mut self, extra: usize) -> Result<Ended, String> {
        let files = self.image.fork();
        let mut run = Run::begin(
            &files,
            self.options.wrap,
            (Layout::Apart, self.options.engine),
            self.model.clone(),
            Answers::Exact,
            |_| {},
        )
        .map_err(|error| error.to_string())?;
        let arena = run.database.arena().clone();
        let free = arena.limit();
        let taken = arena.used() + arena.charged();
        arena.set_limit(taken + extra);
        let mut next = None;
        let mut salt = 0;
        for group in workload(self.options.engine) {
            for step in group {
                salt += 1;
                let refused = run.try_step(*step, salt)?;
                if let Some(error) = refused {
                    if !error.is(ErrorCode::MemoryIssue) || next.is_some() {
                        return Err(format!("{step:?}: {error}"));
                    }
                    // A single row fits next time; of a transaction with several the limit finds each.
                    let wanted = arena.used() + arena.charged() + requested(error.message());
                    next = Some((extra + MEMORY_STEP_BYTES).max(wanted.saturating_sub(taken)));
                    arena.set_limit(free);
                }
            }
            run.drive().map_err(|what| format!("after operation {salt}: {what}"))?;
        }
        run.close().map_err(|error| error.to_string())?;
        self.check_files(&files, &run)?;
        Ok(next.map_or(Ended::Untouched, |next| Ended::Next(next as u64)))
    }
}
