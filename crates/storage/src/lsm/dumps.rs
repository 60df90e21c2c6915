//! Memtables become runs.
//!
//! At a moment between transactions (`seal`) the active memtables of some spaces are closed. A thread makes a run of each. When the log is
//! durable up to that moment the runs are recorded in the manifest, and only then do they take the place of their memtables: so runs never hold
//! what a crash could take back, and after a crash the log has whatever no recorded run holds.

use super::engine::{LsmEngine, run_options};
use super::error::LsmError;
use super::index_statistics::{Amount, Volume};
use super::jobs::{self, Job, MemtableDump, RunJob};
use super::manifest::Edit;
use super::memtable::Memtable;
use super::records::tree_edit;
use super::run::Run;
use super::space::LsmSpace;
use super::tree::{LsmTree, Range, Ranges};
use runtime::{lower_priority, pause};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::Arc;
use tuple::Lsn;

/// The part of `vinyl_memory` at which memtables are dumped: the rest is written meanwhile.
const DUMP_PART: f64 = 0.4;
/// A memtable becomes so many runs where it reaches over as many ranges: what is merged of one place need not wait for another until its file goes.
pub(super) const RUNS_OF_DUMP: usize = 8;
/// Smaller dumps than one part of so many of `vinyl_memory` say nothing of how fast dumps are: they mostly wait for syncs.
const RATED_PART: u64 = 32;
/// Interval at which a start checks whether a dump has ended.
const WAIT_NS: u64 = 200_000;
/// Interval between looks for memtables to dump.
const LOOK_NS: u64 = 2_000_000;
/// More entries of deletes than this in one memtable, and more than half of it, make it worth a dump of its own.
const DELETES_MAX: u64 = 25_000;

/// Memtables of one moment, on their way to runs.
pub(super) struct Dump {
    pub(super) lsn: Lsn,
    pub(super) trees: Vec<(Rc<LsmTree>, Option<Rc<Memtable>>)>,
    /// None while it waits its turn or has ended.
    pub(super) job: Option<Job<DumpOutcome>>,
    runs: Option<Vec<Vec<Arc<Run>>>>,
    is_recording: bool,
    began_ns: u64,
}

pub(super) struct DumpOutcome {
    pub(super) memtables: Vec<MemtableDump>,
    runs: Result<Vec<Vec<Run>>, LsmError>,
}

impl LsmEngine {
    /// Bytes of memtables at which one is dumped.
    pub(super) fn dump_watermark(&self) -> usize {
        (self.memtable_bytes_max() as f64 * DUMP_PART) as usize
    }

    /// Seals the largest space when memory is short of room for what comes during a dump.
    pub(super) fn seal_due(&self, appended: Lsn) {
        let now = self.environment.clock.monotonic_ns();
        if now < self.look_at_ns.get() || !self.dump_retry.is_due(now) || !self.dumps.borrow().is_empty() {
            return;
        }
        self.look_at_ns.set(now + LOOK_NS);
        self.write_rate.look(now, self.written_bytes());
        let is_short = self.memtable_bytes.get() >= self.dump_watermark();
        let has_deletes = self.entered_deletes.get() >= DELETES_MAX;
        if !is_short && !has_deletes {
            return;
        }
        let spaces = self.spaces();
        let largest = spaces.iter().max_by_key(|space| space.active_bytes()).filter(|_| is_short);
        let deleted = || spaces.iter().find(|space| space.active_deletes() >= DELETES_MAX);
        if let Some(space) = largest.or_else(deleted)
            && space.active_bytes() > 0
        {
            self.seal(&[Rc::clone(space)], appended);
        } else if has_deletes {
            // They are spread over many spaces, or among other rows: looked for when there are as many again.
            self.entered_deletes.set(0);
        }
    }

    /// Closes the active memtables of spaces; they become runs in time. Between transactions only. Those of indexes that are being built wait until
    /// these have their places.
    pub fn seal(&self, spaces: &[Rc<LsmSpace>], lsn: Lsn) {
        let mut trees = Vec::new();
        for space in spaces {
            for tree in space.trees() {
                let memtable = tree.seal();
                trees.push((tree, memtable));
            }
        }
        if trees.is_empty() {
            return;
        }
        let last = self.dumps.borrow().back().map(|dump| dump.lsn);
        debug_assert!(last.is_none_or(|last| last <= lsn), "dumps stand in the order of their positions");
        let began_ns = self.environment.clock.monotonic_ns();
        self.dumps.borrow_mut().push_back(Dump { lsn, trees, job: None, runs: None, is_recording: false, began_ns });
    }

    /// Closes the active memtables of all spaces that a checkpoint at this position is to cover. `is_dumped` tells when it does.
    pub fn begin_checkpoint(&self, lsn: Lsn) {
        self.seal(&self.behind(lsn), lsn);
        self.begin_dump();
    }

    /// Spaces that do not have everything up to this position in runs.
    fn behind(&self, lsn: Lsn) -> Vec<Rc<LsmSpace>> {
        self.spaces().into_iter().filter(|space| space.dumped_lsn() < lsn).collect()
    }

    /// True if everything up to this position is in runs.
    pub fn is_dumped(&self, lsn: Lsn) -> bool {
        self.dumps.borrow().iter().all(|dump| dump.lsn > lsn)
    }

    /// Why dumps do not work at present.
    pub fn failure(&self) -> Option<Rc<LsmError>> {
        self.failure.borrow().clone()
    }

    /// Dumps everything and waits for it. For the start: `lsn` and what is before it is durable. A space may be in runs beyond it already, from the
    /// life before, and then has nothing in memory.
    ///
    /// Errors: it cannot be written.
    pub fn dump_all(&self, lsn: Lsn) -> Result<(), Rc<LsmError>> {
        self.seal(&self.behind(lsn), lsn);
        while !self.dumps.borrow().is_empty() {
            self.begin_dump();
            self.poll_dumps(lsn);
            self.begin_record();
            self.poll_record();
            if let Some(error) = self.failure.borrow().clone() {
                return Err(error);
            }
            pause(WAIT_NS);
        }
        while self.free_some() {}
        Ok(())
    }

    pub(super) fn begin_dump(&self) {
        let mut dumps = self.dumps.borrow_mut();
        let Some(dump) = dumps.front_mut() else { return };
        let now = self.environment.clock.monotonic_ns();
        if dump.job.is_some() || dump.runs.is_some() || !self.dump_retry.is_due(now) {
            return;
        }
        dump.began_ns = now;
        let mut memtables = Vec::new();
        for (tree, memtable) in &dump.trees {
            let Some(memtable) = memtable.as_ref().filter(|_| tree.is_to_record()) else { continue };
            let is_lowest = tree.sealed().last().is_some_and(|last| Rc::ptr_eq(last, memtable));
            let is_bottom = is_lowest && tree.ranges().list.iter().all(|range| range.slices.is_empty());
            #[cfg(feature = "planted-bugs")]
            let is_bottom = is_bottom || runtime::planted::is_planted(runtime::planted::Plant::DropTombstones);
            memtables.push(MemtableDump {
                tree_id: tree.id,
                memtable: memtable.share(),
                options: run_options(tree),
                is_bottom,
                cuts: cuts(&tree.ranges()),
                upserter: Arc::clone(&tree.upserter.borrow()),
            });
        }
        let place = self.place.clone();
        dump.job = Some(self.run_job("dump", lower_priority, move || {
            let runs = jobs::dump(&place, &memtables);
            DumpOutcome { memtables, runs }
        }));
    }

    /// Writes a memtable that belongs to nobody as runs.
    pub(crate) fn write_memtable(&self, tree: &LsmTree, memtable: &Memtable) -> RunJob {
        let dump = MemtableDump {
            tree_id: tree.id,
            memtable: memtable.share(),
            options: run_options(tree),
            is_bottom: false,
            cuts: Vec::new(),
            upserter: Arc::clone(&tree.upserter.borrow()),
        };
        let place = self.place.clone();
        self.run_job("dump", lower_priority, move || {
            let runs = jobs::dump_memtable(&place, &dump);
            (dump, runs)
        })
    }

    /// A build is given up while this memtable of its is being written.
    pub(crate) fn give_up(&self, job: RunJob, memtable: Rc<Memtable>) {
        self.unwanted.borrow_mut().push((job, memtable));
    }

    pub(super) fn poll_unwanted(&self) {
        let mut obsolete = self.obsolete.borrow_mut();
        self.unwanted.borrow_mut().retain_mut(|(job, memtable)| {
            let Some((dump, result)) = job.poll() else { return true };
            memtable.unshare(dump.memtable);
            // What could not be written needs no removal.
            obsolete.extend(result.into_iter().flatten().map(Arc::new));
            false
        });
    }

    /// Trees that never came to their places.
    pub(crate) fn discard_unplaced(&self, trees: impl Iterator<Item = Rc<LsmTree>>, runs: &[Vec<Arc<Run>>]) {
        let trees: Vec<_> = trees.collect();
        // Their runs are among those that are given.
        trees.iter().for_each(|tree| tree.set_ranges(self.empty_ranges()));
        self.drop_trees(trees, Lsn(0));
        let mut obsolete = self.obsolete.borrow_mut();
        obsolete.extend(runs.iter().flatten().cloned());
        obsolete.sort_by_key(|run| run.id());
        obsolete.dedup_by_key(|run| run.id());
    }

    pub(super) fn poll_dumps(&self, durable: Lsn) {
        let ended = {
            let mut dumps = self.dumps.borrow_mut();
            let Some(dump) = dumps.front_mut() else { return };
            let outcome = dump.job.as_mut().and_then(Job::poll);
            if outcome.is_some() {
                dump.job = None;
            }
            outcome
        };
        if let Some(outcome) = ended {
            self.take_dump(outcome);
        }
        let is_ready = {
            let mut dumps = self.dumps.borrow_mut();
            dumps.front_mut().is_some_and(|dump| {
                let is_ready = dump.runs.is_some() && !dump.is_recording && dump.lsn <= durable;
                dump.is_recording |= is_ready;
                is_ready
            })
        };
        if is_ready {
            self.record_dump();
        }
    }

    fn take_dump(&self, outcome: DumpOutcome) {
        let mut dumps = self.dumps.borrow_mut();
        let Some(dump) = dumps.front_mut() else { return };
        let mut memtables = outcome.memtables.into_iter().peekable();
        let mut made = match outcome.runs {
            Ok(runs) => Some(runs.into_iter()),
            Err(error) => {
                self.fail("a dump", &self.dump_retry, error);
                None
            }
        };
        let mut runs = Vec::new();
        for (tree, memtable) in &dump.trees {
            let is_next = memtables.peek().is_some_and(|next| next.tree_id == tree.id);
            let (Some(memtable), true) = (memtable, is_next) else {
                runs.push(Vec::new());
                continue;
            };
            if let Some(shared) = memtables.next() {
                memtable.unshare(shared.memtable);
            }
            let of_memtable = made.as_mut().and_then(Iterator::next).unwrap_or_default();
            runs.push(of_memtable.into_iter().map(Arc::new).collect());
        }
        assert!(memtables.next().is_none(), "every memtable that was shared is given back");
        if let Some(mut made) = made {
            assert!(made.next().is_none(), "every run has its tree");
            dump.runs = Some(runs);
        }
    }

    fn record_dump(&self) {
        let plan = {
            let dumps = self.dumps.borrow();
            let Some(Dump { lsn, trees, runs: Some(runs), .. }) = dumps.front() else { return };
            let plan: Vec<_> = trees.iter().map(|(tree, _)| Rc::clone(tree)).zip(runs.iter().cloned()).collect();
            (*lsn, plan)
        };
        let (lsn, plan) = plan;
        // A tree that is dropped from then on is in the record all the same: the record that forgets it comes later.
        let recorded = Rc::new(RefCell::new(BTreeSet::new()));
        let recorded_there = Rc::clone(&recorded);
        let make = move || {
            let mut edits = Vec::new();
            for (tree, runs) in plan.iter().filter(|(tree, _)| tree.is_to_record()) {
                recorded_there.borrow_mut().insert(tree.id);
                edits.extend(tree_edit(tree));
                let ranges = tree.ranges();
                let tree_id = tree.id;
                let dumped = |run_id, ranges| Edit::Dumped { tree_id, dumped_lsn: lsn, run_id, ranges };
                if runs.is_empty() {
                    edits.push(dumped(None, Vec::new()));
                }
                for run in runs {
                    let ids = ranges.list[touched(&ranges, run)].iter().map(|range| range.id).collect();
                    edits.push(dumped(Some(run.id()), ids));
                }
            }
            edits
        };
        self.record(Box::new(make), Box::new(move |engine, result| engine.install_dump(result, &recorded.borrow())));
    }

    fn install_dump(&self, result: Result<(), Rc<LsmError>>, recorded: &BTreeSet<u64>) {
        if result.is_err() {
            if let Some(dump) = self.dumps.borrow_mut().front_mut() {
                dump.is_recording = false;
            }
            return;
        }
        let Some(Dump { lsn, trees, runs: Some(runs), began_ns, .. }) = self.dumps.borrow_mut().pop_front() else {
            return;
        };
        assert_eq!(trees.len(), runs.len(), "each tree has its runs, if only none");
        let took_ns = self.environment.clock.monotonic_ns().saturating_sub(began_ns).max(1);
        let (mut bytes, mut run_bytes) = (0, 0);
        for ((tree, memtable), runs) in trees.iter().zip(runs) {
            if let Some(memtable) = memtable {
                tree.remove_sealed(memtable);
                self.discharge(memtable);
                self.garbage.borrow_mut().push_back(Rc::clone(memtable));
            }
            tree.set_dumped(lsn);
            if !recorded.contains(&tree.id) {
                self.obsolete.borrow_mut().extend(runs);
                continue;
            }
            tree.is_recorded.set(true);
            if let Some(memtable) = memtable {
                let input = Amount { rows: memtable.len() as u64, bytes: memtable.written_bytes() };
                bytes += input.bytes;
                self.note_dump(tree, input, &runs, took_ns);
            }
            if runs.is_empty() {
                continue;
            }
            let ranges = tree.ranges();
            let mut list = ranges.list.clone();
            for run in &runs {
                run_bytes += run.data_bytes();
                for range in &mut list[touched(&ranges, run)] {
                    let slices = std::iter::once(run).chain(&range.slices).cloned().collect();
                    *range = Rc::new(Range { id: range.id, begin: range.begin.clone(), slices });
                }
            }
            tree.set_ranges(list);
        }
        self.check_sum();
        if bytes >= self.memory_bytes_max() as u64 / RATED_PART {
            let rate = bytes as f64 * 1e9 / took_ns as f64;
            let before = self.dump_rate.get();
            self.dump_rate.set(if before == 0.0 { rate } else { 0.7 * before + 0.3 * rate });
        }
        self.debt.note_dump(bytes, run_bytes);
        self.measure_debt();
        let mut totals = self.totals.borrow_mut();
        totals.counts.dumps += 1;
        totals.counts.dump_ns += took_ns;
        totals.jobs_completed += 1;
        drop(totals);
        self.has_news.set(true);
        self.dump_retry.succeed();
        if self.failure.borrow_mut().take().is_some() {
            tracing::info!("dumps work again");
        }
        tracing::debug!("a dump up to position {lsn}: {bytes} bytes of keys and values in {} ms", took_ns / 1_000_000);
    }

    /// A memtable of a tree is in runs.
    fn note_dump(&self, tree: &LsmTree, input: Amount, runs: &[Arc<Run>], took_ns: u64) {
        let mut output = Volume::default();
        runs.iter().for_each(|run| output += Volume::of(run));
        let mut of_tree = tree.counts.borrow_mut();
        of_tree.dumps += 1;
        of_tree.dump_ns += took_ns;
        for counts in [&mut *of_tree, &mut self.totals.borrow_mut().counts] {
            counts.dump_input.rows += input.rows;
            counts.dump_input.bytes += input.bytes;
            counts.dump_output += output;
        }
    }
}

/// Ranges that a run has something in.
fn touched(ranges: &Ranges, run: &Run) -> RangeInclusive<usize> {
    ranges.find(run.min_key())..=ranges.find(run.max_key())
}

/// Keys at which the runs of a dump end: about the same number of ranges lies between any two.
fn cuts(ranges: &Ranges) -> Vec<Vec<u8>> {
    let (count, parts) = (ranges.list.len(), RUNS_OF_DUMP.min(ranges.list.len()));
    (1..parts).map(|part| ranges.list[part * count / parts].begin.clone()).collect()
}
