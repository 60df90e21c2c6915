//! The disk engine: what all its spaces share. Memory, caches, manifest, and the work of other threads.
//!
//! Its work is split into parts, each with its own part of `impl LsmEngine`: how memtables become runs (`dumps`), how runs become fewer (`compactions`) and
//! who hurries or waits for that (`debt`), how the manifest learns of it (`records`).
//!
//! Everything happens on the transaction thread but the jobs (`jobs`), which know nothing of it, and the writing of records.

use super::compactions::RunningCompaction;
use super::debt::Debt;
use super::dumps::Dump;
use super::error::LsmError;
use super::jobs::{Job, LOCK_WAIT_NS, RunJob, Workplace, remove_slowly};
use super::manifest::{Manifest, TreeState, announce, highest_run, remove_orphans};
use super::memtable::Memtable;
use super::reads::{BlockReader, Fetched, Need};
use super::records::{Making, Recording, Then, forget};
use super::retry::Retry;
use super::run::{OpenFiles, Run, RunOptions, run_name};
use super::space::LsmSpace;
use super::statistics::{LsmStatistics, WriteRate};
use super::tree::{LsmTree, Range};
use runtime::{Clock, FileSystem, Notifier, lower_priority, pause, spawn_thread};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, TryLockError};
use tuple::{IndexId, Lsn, SpaceId};

/// Longest time before a failed dump or record is tried again: writers may be waiting.
const RETRY_MAX_NS: u64 = 4_000_000_000;
/// Number of the range that a new tree has in the manifest.
pub(super) const FIRST_RANGE: u64 = 0;

/// Options of the engine.
#[derive(Clone, Debug)]
pub struct LsmConfig {
    /// Directory of its files.
    pub dir: PathBuf,
    /// Bytes of the memtables of all spaces.
    pub memory_bytes_max: usize,
    /// Bytes of cached blocks and rows.
    pub cache_bytes_max: usize,
    /// Work is done on threads; without, on the calling one (tests).
    pub is_threaded: bool,
    /// Compactions at once.
    pub compactions_max: usize,
    /// Size at which the manifest is replaced by a new one.
    pub manifest_bytes: u64,
    /// Files of runs that are open at once.
    pub open_files_max: usize,
    /// One block of so many, 1 to 16, tells whether the machine's page cache keeps what is read through it.
    pub page_cache_sampled_one_of: u64,
    /// A damaged or missing manifest is reported and passed over instead of refused.
    pub is_forced: bool,
    /// The UUID of the instance whose files these must be; `None`: anybody's.
    pub instance_uuid: Option<String>,
}

/// What the engine needs of the machine.
#[derive(Clone)]
pub struct LsmEnvironment {
    /// Files.
    pub files: Arc<dyn FileSystem>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Makes the event loop run a turn; callable from any thread.
    pub wake: Arc<dyn Fn() + Send + Sync>,
}

/// See the head of this file.
pub struct LsmEngine {
    pub(crate) place: Workplace,
    pub(super) config: RefCell<LsmConfig>,
    pub(super) environment: LsmEnvironment,
    pub(crate) reader: BlockReader,
    pub(super) manifest: Arc<Mutex<Manifest>>,
    /// Trees of the manifest that no index has claimed yet.
    pub(super) recovered: RefCell<Vec<TreeState>>,
    pub(super) spaces: RefCell<BTreeMap<SpaceId, Weak<LsmSpace>>>,
    pub(super) dumps: RefCell<VecDeque<Dump>>,
    pub(super) compactions: RefCell<Vec<RunningCompaction>>,
    /// Records that wait for their turn.
    pub(super) records: RefCell<VecDeque<(Making, Then)>>,
    pub(super) recording: RefCell<Option<Recording>>,
    /// Runs that nothing names any more; removed when no reader has them.
    pub(super) obsolete: RefCell<Vec<Arc<Run>>>,
    /// They stay because files are being copied.
    is_backed_up: Cell<bool>,
    /// Memtables that are being written for a build that was given up.
    pub(super) unwanted: RefCell<Vec<(RunJob, Rc<Memtable>)>>,
    /// Memtables that are in runs by now, being freed.
    pub(super) garbage: RefCell<VecDeque<Rc<Memtable>>>,
    pub(crate) memtable_bytes: Cell<usize>,
    /// Memtables that count there no more, since the start.
    discharged: Cell<u64>,
    /// Bytes that builds of indexes have collected, which memtables cannot have meanwhile.
    pub(crate) build_bytes: Cell<usize>,
    /// Bytes that were ever written to memtables.
    pub(crate) entered_bytes: Cell<u64>,
    /// Deletes written to memtables since the last search for the memtable that has most of them.
    pub(crate) entered_deletes: Cell<u64>,
    /// Why dumps do not work at present.
    pub(super) failure: RefCell<Option<Rc<LsmError>>>,
    pub(super) dump_retry: Retry,
    pub(super) record_retry: Retry,
    /// When a compaction that has failed is due again.
    pub(super) merge_at_ns: Cell<u64>,
    /// Bytes of keys and values a second that dumps have reached, a running mean.
    pub(super) dump_rate: Cell<f64>,
    pub(super) debt: Debt,
    /// New rows come faster than merges.
    pub(super) is_lagging: Cell<bool>,
    /// When memtables are looked at next.
    pub(super) look_at_ns: Cell<u64>,
    /// Runs have changed since compactions were looked for.
    pub(super) has_news: Cell<bool>,
    pub(super) totals: RefCell<LsmStatistics>,
    pub(super) write_rate: WriteRate,
}

impl LsmEngine {
    /// Opens the directory, or makes one. Blocks.
    ///
    /// Errors: the manifest is damaged or missing (file and offset, and what force would lose).
    pub fn open(config: LsmConfig, environment: LsmEnvironment) -> Result<Rc<Self>, LsmError> {
        let io = |what: &str, source| LsmError::Io { what: format!("{what} {}", config.dir.display()), source };
        environment.files.create_dir_all(&config.dir).map_err(|source| io("making", source))?;
        let (mut manifest, trees) = open_manifest(&config, &environment.files)?;
        manifest.set_switch_bytes(config.manifest_bytes);
        for name in remove_orphans(&*environment.files, &config.dir, &trees)? {
            tracing::info!("removed {name}, which no index on disk names");
        }
        // No other start is given numbers in the billions behind this one.
        let highest = highest_run(&*environment.files, &config.dir)?;
        let ids = Arc::new(AtomicU64::new(manifest.next_id().max(highest.saturating_add(1))));
        let is_stopped = Arc::new(AtomicBool::new(false));
        let (files, dir) = (environment.files.clone(), config.dir.clone());
        let open_files = OpenFiles::new(files.clone(), config.open_files_max);
        let manifest = Arc::new(Mutex::new(manifest));
        let has_manifest = Arc::new(AtomicBool::new(false));
        let place =
            Workplace { files, dir, ids, open_files, is_stopped, manifest: Arc::clone(&manifest), has_manifest };
        Ok(Rc::new(LsmEngine {
            reader: BlockReader::new(config.cache_bytes_max, config.page_cache_sampled_one_of),
            place,
            config: RefCell::new(config),
            environment,
            manifest,
            recovered: RefCell::new(trees),
            spaces: RefCell::default(),
            dumps: RefCell::default(),
            compactions: RefCell::default(),
            records: RefCell::default(),
            recording: RefCell::new(None),
            obsolete: RefCell::default(),
            is_backed_up: Cell::new(false),
            unwanted: RefCell::default(),
            garbage: RefCell::default(),
            memtable_bytes: Cell::new(0),
            discharged: Cell::new(0),
            build_bytes: Cell::new(0),
            entered_bytes: Cell::new(0),
            entered_deletes: Cell::new(0),
            failure: RefCell::new(None),
            dump_retry: Retry::default(),
            record_retry: Retry::default(),
            merge_at_ns: Cell::new(u64::MAX),
            dump_rate: Cell::new(0.0),
            debt: Debt::default(),
            is_lagging: Cell::new(false),
            look_at_ns: Cell::new(0),
            has_news: Cell::new(true),
            totals: RefCell::default(),
            write_rate: WriteRate::default(),
        }))
    }

    /// From now on reads do not block the thread; `notifier` tells the event loop when one has ended.
    ///
    /// Errors: the notifier cannot be waited for, or there is no thread to read on.
    pub fn serve(&self, notifier: Arc<Notifier>) -> std::io::Result<()> {
        self.reader.set_notifier(notifier)
    }

    /// Waits until what a statement needs is in memory. Yields.
    ///
    /// Errors: a block cannot be read, or is damaged.
    pub fn fetch(&self, need: Need) -> Result<Fetched, Rc<LsmError>> {
        self.reader.fetch(need)
    }

    /// Changes bounds while running.
    pub fn reconfigure(&self, memory_bytes_max: usize, cache_bytes_max: usize) {
        let mut config = self.config.borrow_mut();
        config.memory_bytes_max = memory_bytes_max;
        if config.cache_bytes_max != cache_bytes_max {
            config.cache_bytes_max = cache_bytes_max;
            self.reader.cache.borrow_mut().set_bytes_max(cache_bytes_max);
        }
    }

    pub(crate) fn register(&self, space: &Rc<LsmSpace>) {
        let mut spaces = self.spaces.borrow_mut();
        spaces.retain(|_, space| space.strong_count() > 0);
        spaces.insert(space.id(), Rc::downgrade(space));
    }

    /// True if there are spaces on disk.
    pub fn has_spaces(&self) -> bool {
        self.spaces.borrow().values().any(|space| space.strong_count() > 0)
    }

    pub(crate) fn spaces(&self) -> Vec<Rc<LsmSpace>> {
        self.spaces.borrow().values().filter_map(Weak::upgrade).collect()
    }

    /// The tree of an index as it was at a position, if the manifest knows it: the newest one made not later, and exactly then if
    /// `is_made_then`. `dumped_lsn`: up to where the primary index has everything in runs, if this is another one. All indexes of a space are
    /// dumped together; one that is elsewhere belongs to rows that were on their way out.
    pub fn claim(
        &self,
        space_id: SpaceId,
        index_id: IndexId,
        lsn: Lsn,
        is_made_then: bool,
        dumped_lsn: Option<Lsn>,
    ) -> Option<TreeState> {
        let mut recovered = self.recovered.borrow_mut();
        let fits = |tree: &TreeState| {
            tree.space_id == space_id
                && tree.index_id == index_id
                && dumped_lsn.is_none_or(|dumped_lsn| tree.dumped_lsn == dumped_lsn)
                && if is_made_then { tree.created_lsn == lsn } else { tree.created_lsn <= lsn }
        };
        let fitting = recovered.iter().enumerate().filter(|(_, tree)| fits(tree));
        let (at, _) = fitting.max_by_key(|(_, tree)| tree.created_lsn)?;
        Some(recovered.swap_remove(at))
    }

    /// The start is over: trees that no index has claimed are not needed any more. They stay for now if `may_be_missed`: the rows that tell of
    /// their spaces may be among those that were lost.
    pub fn forget_unclaimed(&self, may_be_missed: bool) {
        let unclaimed = self.recovered.take();
        if unclaimed.is_empty() {
            return;
        }
        if may_be_missed {
            let of: Vec<String> = unclaimed.iter().map(|tree| format!("{}/{}", tree.space_id, tree.index_id)).collect();
            let of = of.join(", ");
            tracing::warn!(
                "nothing that could be read needs the files of these indexes on disk (space/index): {of}. The next start without damage \
                 removes them; copy {} before, if they are missed",
                self.place.dir.display()
            );
            return;
        }
        let ids: Vec<u64> = unclaimed.iter().map(|tree| tree.tree_id).collect();
        let runs: Vec<u64> = unclaimed
            .iter()
            .flat_map(|tree| tree.ranges.iter().flat_map(|range| range.slices.iter().copied()))
            .collect();
        let place = self.place.clone();
        self.record(
            Box::new(move || ids.iter().flat_map(|&tree_id| forget(tree_id, Lsn(0))).collect()),
            Box::new(move |_, result| {
                if result.is_ok() {
                    for run_id in runs {
                        // What stays is an orphan that the next start removes.
                        let _ = place.files.remove(&place.dir.join(run_name(run_id)));
                    }
                }
            }),
        );
    }

    /// The files that say and hold what is recorded now. They stay as they are until `end_backup`. Blocks for as long as a record takes.
    ///
    /// Errors: a new manifest cannot be begun.
    pub fn begin_backup(&self) -> Result<Vec<PathBuf>, LsmError> {
        let begun = self.with_manifest(Manifest::begin_backup)?;
        let Some((path, runs)) = begun else { return Ok(Vec::new()) };
        self.is_backed_up.set(true);
        let runs = runs.into_iter().map(|run_id| self.place.dir.join(run_name(run_id)));
        Ok(std::iter::once(path).chain(runs).collect())
    }

    /// Files that are not needed may go again.
    pub fn end_backup(&self) {
        if self.is_backed_up.replace(false) {
            self.with_manifest(Manifest::end_backup);
        }
    }

    /// Waits for whoever writes to the manifest.
    fn with_manifest<T>(&self, work: impl FnOnce(&mut Manifest) -> T) -> T {
        loop {
            match self.manifest.try_lock() {
                Ok(mut manifest) => return work(&mut manifest),
                Err(TryLockError::Poisoned(poisoned)) => return work(&mut poisoned.into_inner()),
                // Asked for again and again, so that a simulation can go on.
                Err(TryLockError::WouldBlock) => pause(LOCK_WAIT_NS),
            }
        }
    }

    /// Directory of the files.
    pub fn dir(&self) -> &Path {
        &self.place.dir
    }

    /// Bytes that memtables may take.
    pub fn memory_bytes_max(&self) -> usize {
        self.config.borrow().memory_bytes_max
    }

    /// Bytes that memtables may take beside what is collected for new indexes, which never comes to more than half.
    pub(super) fn memtable_bytes_max(&self) -> usize {
        let max = self.memory_bytes_max();
        max - self.build_bytes.get().min(max / 2)
    }

    /// Bytes of keys and values that were ever written to memtables.
    pub fn written_bytes(&self) -> u64 {
        self.entered_bytes.get()
    }

    /// Why nothing can be written at present: memory is at its bound, and what there is cannot be dumped.
    pub fn refusal(&self) -> Option<Rc<LsmError>> {
        if !self.is_full() {
            return None;
        }
        self.failure.borrow().clone()
    }

    /// True if writers have to wait until a dump has freed memory.
    pub fn is_full(&self) -> bool {
        self.memtable_bytes.get() >= self.memtable_bytes_max()
    }

    /// Has a thread do some work, which begins with `set_priority`.
    pub(super) fn run_job<T: Send + 'static>(
        &self,
        name: &str,
        set_priority: fn(),
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Job<T> {
        let (sender, outcome) = channel();
        if !self.config.borrow().is_threaded {
            let _ = sender.send(work());
            return Job { outcome, worker: None };
        }
        let wake = self.environment.wake.clone();
        let work = move || {
            // Nobody listens if the process is stopping.
            let _ = sender.send(work());
            wake();
        };
        // The thread gets its work when it is there: what the work holds must not be lost with one that cannot be started.
        let (hand_over, handed_over) = channel();
        let started = spawn_thread(name, move || {
            set_priority();
            if let Ok(work) = handed_over.recv() {
                let work: Box<dyn FnOnce() + Send> = work;
                work();
            }
        });
        let work: Box<dyn FnOnce() + Send> = Box::new(work);
        match started {
            Ok(worker) => {
                // It waits for nothing else.
                let _ = hand_over.send(work);
                Job { outcome, worker: Some(worker) }
            }
            Err(error) => {
                tracing::warn!("no thread for a {name}: {error}; everybody waits for it");
                work();
                Job { outcome, worker: None }
            }
        }
    }

    /// Collects finished work and begins what is due. `appended`: position of the newest transaction, all of which is in the memtables;
    /// `durable`: what a crash cannot take back. Called in every turn of the event loop, between transactions. Returns true if it wants to be called
    /// again soon.
    pub fn poll(&self, appended: Lsn, durable: Lsn) -> bool {
        self.reader.poll();
        self.poll_record();
        self.poll_dumps(durable);
        self.poll_compactions();
        self.poll_unwanted();
        self.seal_due(appended);
        self.begin_dump();
        self.begin_compactions();
        self.begin_record();
        self.remove_obsolete();
        self.free_some()
    }

    /// True if no job is under way, due or waiting for its turn.
    pub fn is_at_rest(&self) -> bool {
        let is_recorded = self.records.borrow().is_empty() && self.recording.borrow().is_none();
        let is_merged = self.compactions.borrow().is_empty() && !self.has_news.get();
        is_recorded && is_merged && self.dumps.borrow().is_empty()
    }

    /// A dump or a record failed. It is tried again later; an error that repeats is logged once.
    pub(super) fn fail(&self, what: &str, retry: &Retry, error: LsmError) -> Rc<LsmError> {
        let text = error.to_string();
        let is_news = self.failure.borrow().as_ref().is_none_or(|last| last.to_string() != text);
        if is_news {
            tracing::error!("{what} failed: {text}; it is tried again");
        } else {
            tracing::debug!("{what} failed: {text}, as before");
        }
        self.totals.borrow_mut().jobs_failed += 1;
        retry.fail(self.now_ns(), RETRY_MAX_NS);
        let error = Rc::new(error);
        *self.failure.borrow_mut() = Some(Rc::clone(&error));
        error
    }

    /// Space and index whose file cannot be read.
    pub fn owner_of(&self, error: &LsmError) -> Option<(SpaceId, IndexId)> {
        let (file, _) = error.place()?;
        let trees = self.spaces().into_iter().flat_map(|space| space.trees());
        let names = |tree: &Rc<LsmTree>| tree.runs().iter().any(|run| run.path() == file);
        trees.into_iter().find(names).map(|tree| (tree.space_id, tree.index_id))
    }

    // --- Trees ---

    /// A tree as the manifest knows it, with its runs. Blocks.
    pub(crate) fn open_ranges(&self, state: &TreeState) -> Result<Vec<Rc<Range>>, LsmError> {
        let mut open: BTreeMap<u64, Arc<Run>> = BTreeMap::new();
        let mut ranges = Vec::new();
        for range in &state.ranges {
            let mut slices = Vec::new();
            for &run_id in &range.slices {
                let run = match open.get(&run_id) {
                    Some(run) => Arc::clone(run),
                    None => Arc::new(self.place.open(run_id)?),
                };
                open.insert(run_id, Arc::clone(&run));
                slices.push(run);
            }
            ranges.push(Rc::new(Range { id: range.range_id, begin: range.begin.clone(), slices }));
        }
        Ok(ranges)
    }

    /// The ranges of a tree without rows, as the manifest has them.
    pub(crate) fn empty_ranges(&self) -> Vec<Rc<Range>> {
        vec![Rc::new(Range { id: FIRST_RANGE, begin: Vec::new(), slices: Vec::new() })]
    }

    /// Trees are out of use for good: at `lsn` they were dropped or truncated, and that is durable. One record forgets them all.
    pub(crate) fn drop_trees(&self, trees: Vec<Rc<LsmTree>>, lsn: Lsn) {
        for tree in &trees {
            tree.is_dropped.set(true);
            for memtable in tree.memtables() {
                if !self.is_being_dumped(&memtable) {
                    self.discharge(&memtable);
                    self.garbage.borrow_mut().push_back(memtable);
                }
            }
        }
        self.forget_trees(trees, lsn);
    }

    fn forget_trees(&self, trees: Vec<Rc<LsmTree>>, lsn: Lsn) {
        let there = trees.clone();
        let make = move || {
            let recorded = there.iter().filter(|tree| tree.is_recorded.get());
            recorded.flat_map(|tree| forget(tree.id, lsn)).collect()
        };
        let then = move |engine: &LsmEngine, result: Result<(), Rc<LsmError>>| match result {
            Ok(()) => {
                for tree in trees {
                    engine.obsolete.borrow_mut().extend(tree.runs());
                    // A scan may still be on its way through it.
                    tree.set_ranges(engine.empty_ranges());
                }
            }
            Err(_) => engine.forget_trees(trees, lsn),
        };
        self.record(Box::new(make), Box::new(then));
    }

    /// How many memtables have come to runs since the start: those that views keep may be more by now.
    pub fn discharged(&self) -> u64 {
        self.discharged.get()
    }

    /// A memtable counts no more.
    pub(super) fn discharge(&self, memtable: &Memtable) {
        let bytes = self.memtable_bytes.get().checked_sub(memtable.charged());
        self.memtable_bytes.set(bytes.expect("what a memtable was charged is part of the sum"));
        memtable.set_discharged();
        self.discharged.set(self.discharged.get() + 1);
    }

    /// The sum that is kept is no less than what the memtables of all spaces were charged. (Trees that were detached count, too, until they are
    /// dropped.)
    pub(super) fn check_sum(&self) {
        if cfg!(debug_assertions) {
            let of_tree = |tree: Rc<LsmTree>| tree.memtables().iter().map(|memtable| memtable.charged()).sum::<usize>();
            let counted: usize = self.spaces().iter().flat_map(|space| space.trees()).map(of_tree).sum();
            assert!(
                counted <= self.memtable_bytes.get(),
                "{counted} bytes are counted as {}",
                self.memtable_bytes.get()
            );
        }
    }

    fn is_being_dumped(&self, memtable: &Rc<Memtable>) -> bool {
        let is_it = |other: &Option<Rc<Memtable>>| other.as_ref().is_some_and(|other| Rc::ptr_eq(other, memtable));
        self.dumps.borrow().iter().any(|dump| dump.trees.iter().any(|(_, memtable)| is_it(memtable)))
    }

    // --- What is left over ---

    fn remove_obsolete(&self) {
        let mut obsolete = self.obsolete.borrow_mut();
        if obsolete.is_empty() || self.is_backed_up.get() {
            return;
        }
        // A crash may find a record applied that was neither written for sure nor removed: it names runs that are obsolete here. The lock
        // is held while a record is written.
        let is_settled = self.manifest.try_lock().is_ok_and(|manifest| manifest.is_settled());
        if !is_settled {
            return;
        }
        let mut gone = Vec::new();
        obsolete.retain(|run| {
            // A reader may still be on its way through it.
            let is_read = Arc::strong_count(run) > 1;
            #[cfg(feature = "planted-bugs")]
            let is_read = is_read
                && !runtime::planted::is_planted(runtime::planted::Plant::RemoveRunThatIsRead)
                && !runtime::planted::is_planted(runtime::planted::Plant::RemoveRunThatIsNamed);
            if !is_read {
                gone.push(run.path().to_path_buf());
            }
            is_read
        });
        if gone.is_empty() {
            return;
        }
        let files = self.place.files.clone();
        self.run_job("removal", lower_priority, move || gone.iter().for_each(|path| remove_slowly(&*files, path)));
    }

    /// Frees a slice of what is not needed. Returns true while there is more.
    pub(super) fn free_some(&self) -> bool {
        let mut garbage = self.garbage.borrow_mut();
        let Some(memtable) = garbage.front() else { return false };
        if Rc::strong_count(memtable) > 1 {
            // A reader has it: behind the others.
            garbage.rotate_left(1);
            return false;
        }
        if let Some(chunks) = memtable.take_chunks() {
            // Whether a thread does it, or nobody could be found and it happens here.
            self.run_job("memory", lower_priority, move || drop(chunks));
        }
        if !memtable.release_some() {
            garbage.pop_front();
        }
        true
    }

    /// Bytes a second that writers should keep to now; none: as many as they like.
    pub fn pace(&self) -> Option<f64> {
        let for_merges = self.debt.pace_of_merges(self.config.borrow().compactions_max, self.memtable_bytes.get());
        [self.pace_of_memory(), for_merges].into_iter().flatten().reduce(f64::min)
    }

    fn pace_of_memory(&self) -> Option<f64> {
        let used = self.memtable_bytes.get() as f64 / self.memtable_bytes_max().max(1) as f64;
        // Up to here a dump that begins now ends in time at any usual rate.
        const FREE_PART: f64 = 0.7;
        if used < FREE_PART || self.dump_rate.get() == 0.0 {
            return None;
        }
        // Straight down from twice what dumps reach to half of it where memory ends.
        let left = ((1.0 - used) / (1.0 - FREE_PART)).max(0.0);
        Some(self.dump_rate.get() * (0.5 + 1.5 * left))
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.environment.clock.monotonic_ns()
    }

    /// Dumps and compactions under way.
    pub(super) fn jobs_running(&self) -> usize {
        self.compactions.borrow().len() + self.dumps.borrow().iter().filter(|dump| dump.job.is_some()).count()
    }

    /// Ends all work on other threads and waits for it. What was not recorded is not dumped.
    pub fn close(&self) {
        self.place.is_stopped.store(true, Ordering::Relaxed);
        for running in self.compactions.take() {
            running.job.wait();
        }
        // They stay: a checkpoint that waits for them must not count as covered.
        for dump in self.dumps.borrow_mut().iter_mut() {
            let memtables = dump.job.take().and_then(Job::wait).map_or(Vec::new(), |outcome| outcome.memtables);
            // A tree may have been dropped since its memtable was shared.
            for shared in memtables {
                let of_tree = dump.trees.iter().find(|(tree, _)| tree.id == shared.tree_id);
                if let Some((_, Some(memtable))) = of_tree {
                    memtable.unshare(shared.memtable);
                }
            }
        }
        for (job, memtable) in self.unwanted.take() {
            if let Some((dump, _)) = job.wait() {
                memtable.unshare(dump.memtable);
            }
        }
        if let Some((job, _)) = self.recording.take() {
            job.wait();
        }
    }
}

fn open_manifest(config: &LsmConfig, files: &Arc<dyn FileSystem>) -> Result<(Manifest, Vec<TreeState>), LsmError> {
    let instance = config.instance_uuid.as_deref();
    if config.is_forced {
        let (manifest, trees, lost) = Manifest::open_by_force(Arc::clone(files), &config.dir, instance)?;
        if let Some(lost) = lost {
            tracing::warn!("PASSED OVER damage: {lost}");
        }
        return Ok((manifest, trees));
    }
    Manifest::open_of(Arc::clone(files), &config.dir, instance).map_err(|error| match error {
        LsmError::Corrupt { file, offset, what } => {
            let announced = announce(&**files, &config.dir);
            LsmError::Corrupt { file, offset, what: [what, announced].join("; ") }
        }
        other => other,
    })
}

pub(super) fn run_options(tree: &LsmTree) -> RunOptions {
    RunOptions { page_size: tree.options.get().page_size, bloom_fpr: tree.options.get().bloom_fpr }
}
