//! The disk engine: what all its spaces share. Memory, caches, manifest, and the work of other threads.
//!
//! A dump. At a moment between transactions (`seal`) the active levels of some spaces are closed. A thread makes a run of each. When the log
//! is durable up to that moment the runs are recorded in the manifest, and only then do they take the place of their levels: so runs never
//! hold what a crash could take back, and after a crash the log has whatever no recorded run holds.
//!
//! A compaction takes some runs of a range and gives back one or more; its record names the range's new runs, after which readers that come
//! see those.
//!
//! Everything here happens on the transaction thread but the jobs (`jobs`), which know nothing of it, and the writing of records.

use super::error::LsmError;
use super::jobs::{self, Compaction, LevelDump, Workplace};
use super::level::Level;
use super::manifest::{Edit, Manifest, RangeState, TreeState, remove_orphans};
use super::policy::{self, Choice, SliceSize};
use super::reads::{BlockReader, Fetched, Need};
use super::run::{Run, RunOptions, run_name};
use super::space::LsmSpace;
use super::tree::{LsmTree, Range, add};
use runtime::{Clock, FileSystem, JoinHandle, Notifier, pause, spawn_thread, yield_priority};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// The part of `vinyl_memory` at which levels are dumped: the rest is written meanwhile.
const DUMP_PART: f64 = 0.4;
/// A failed job is tried again after so long.
const RETRY_NS: u64 = 1_000_000_000;
/// The start looks so often whether a dump has ended.
const WAIT_NS: u64 = 200_000;
/// Levels are looked at so often.
const LOOK_NS: u64 = 2_000_000;
/// Bytes of a range, unless told.
const RANGE_BYTES: u64 = 128 << 20;
/// A run that a compaction makes becomes another when it is larger than its range should be by this.
const SPLIT_RATIO: f64 = 1.0;
/// More entries of deletes than this in one level, and more than half of it, make it worth a dump of its own.
const DELETES_MAX: u64 = 25_000;
/// Number of the range that a new tree has in the manifest.
const FIRST_RANGE: u64 = 0;
/// Compactions use one part of so many of the time while others are busy, as long as they are not overdue.
const LEISURELY_SHARE: u32 = 2;
/// From this urgency on they use all of it.
const OVERDUE: f64 = 1.5;

/// What the engine is told.
#[derive(Clone, Debug)]
pub struct LsmConfig {
    /// Directory of its files.
    pub dir: PathBuf,
    /// Bytes of the memory levels of all spaces.
    pub memory_bytes_max: usize,
    /// Bytes of cached blocks and rows.
    pub cache_bytes_max: usize,
    /// Work is done on threads; without, on the calling one (tests).
    pub is_threaded: bool,
    /// Compactions at once.
    pub compactions_max: usize,
    /// A manifest that has come to so many bytes gives way to a new one.
    pub manifest_bytes: u64,
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

/// A level that is being written, and what came of it.
pub(crate) type RunJob = Job<(LevelDump, Result<Option<Run>, LsmError>)>;

/// A result that a thread will send.
pub(crate) struct Job<T> {
    outcome: Receiver<T>,
    worker: Option<JoinHandle<()>>,
}

impl<T> Job<T> {
    pub(crate) fn poll(&mut self) -> Option<T> {
        self.outcome.try_recv().ok()
    }

    fn wait(mut self) -> Option<T> {
        self.worker.take().map(JoinHandle::join);
        self.outcome.recv().ok()
    }
}

/// Levels of one moment, on their way to runs.
struct Dump {
    lsn: i64,
    trees: Vec<(Rc<LsmTree>, Option<Rc<Level>>)>,
    /// None while it waits its turn or has ended.
    job: Option<Job<DumpOutcome>>,
    runs: Option<Vec<Option<Arc<Run>>>>,
    is_recording: bool,
    began_ns: u64,
}

struct DumpOutcome {
    levels: Vec<LevelDump>,
    runs: Result<Vec<Option<Run>>, LsmError>,
}

struct RunningCompaction {
    tree: Rc<LsmTree>,
    range_id: u64,
    /// The part of the range that is merged.
    from: Vec<u8>,
    to: Option<Vec<u8>>,
    runs: Vec<Arc<Run>>,
    job: Job<Result<Vec<Run>, LsmError>>,
    began_ns: u64,
}

/// A record that is being written, and what follows.
type Recording = (Job<Result<(), LsmError>>, Then);
type Making = Box<dyn FnOnce() -> Vec<Edit>>;
type Then = Box<dyn FnOnce(&LsmEngine, Result<(), Rc<LsmError>>)>;

/// Counters of the whole engine, for statistics.
#[derive(Clone, Copy, Debug, Default)]
pub struct LsmStatistics {
    /// Bytes of memory levels, and their bound.
    pub level_bytes: u64,
    /// See `level_bytes`.
    pub level_bytes_max: u64,
    /// Bytes of cached blocks and rows, and their bound.
    pub cache_bytes: u64,
    /// See `cache_bytes`.
    pub cache_bytes_max: u64,
    /// Bytes of fence keys and filters.
    pub metadata_bytes: u64,
    /// Blocks found in the cache.
    pub cache_hits: u64,
    /// Blocks not found in it.
    pub cache_misses: u64,
    /// Rows found in the cache.
    pub row_hits: u64,
    /// Blocks that the page cache of the machine had.
    pub passing_reads: u64,
    /// Blocks that were waited for.
    pub waited_reads: u64,
    /// Blocks that are waited for now.
    pub reads_in_flight: u64,
    /// Bytes read of runs by statements.
    pub read_bytes: u64,
    /// Bytes of keys and values written by statements.
    pub written_bytes: u64,
    /// Dumps that have ended.
    pub dumps: u64,
    /// Bytes of the runs they made.
    pub dumped_bytes: u64,
    /// Nanoseconds they took.
    pub dump_ns: u64,
    /// Compactions that have ended.
    pub compactions: u64,
    /// Bytes they read.
    pub compaction_read_bytes: u64,
    /// Bytes they wrote.
    pub compaction_written_bytes: u64,
    /// Nanoseconds they took.
    pub compaction_ns: u64,
    /// Bytes of runs that wait to be merged.
    pub debt_bytes: u64,
    /// Bytes of all runs.
    pub disk_bytes: u64,
    /// Number of runs.
    pub runs: u64,
    /// Number of ranges.
    pub ranges: u64,
    /// Bytes a second that writers are let write; 0: as many as they like.
    pub pace_bytes_per_s: u64,
}

/// See the head of this file.
pub struct LsmEngine {
    pub(crate) place: Workplace,
    config: RefCell<LsmConfig>,
    environment: LsmEnvironment,
    pub(crate) reader: BlockReader,
    manifest: Arc<Mutex<Manifest>>,
    /// Trees of the manifest that no index has claimed yet.
    recovered: RefCell<Vec<TreeState>>,
    spaces: RefCell<BTreeMap<u32, Weak<LsmSpace>>>,
    dumps: RefCell<VecDeque<Dump>>,
    compactions: RefCell<Vec<RunningCompaction>>,
    /// Records that wait for their turn.
    records: RefCell<VecDeque<(Making, Then)>>,
    recording: RefCell<Option<Recording>>,
    /// Runs that nothing names any more; removed when no reader has them.
    obsolete: RefCell<Vec<Arc<Run>>>,
    /// The last record failed: until the next one is on disk a start may find it all the same, with runs that are obsolete here.
    is_doubtful: Cell<bool>,
    /// Levels that are being written for a build that was given up.
    unwanted: RefCell<Vec<(RunJob, Rc<Level>)>>,
    /// Levels that are in runs by now, being freed.
    garbage: RefCell<VecDeque<Rc<Level>>>,
    pub(crate) level_bytes: Cell<usize>,
    /// Bytes that were ever written to levels.
    pub(crate) entered_bytes: Cell<u64>,
    /// Why dumps do not work at present.
    failure: RefCell<Option<Rc<LsmError>>>,
    retry_at_ns: Cell<u64>,
    /// Bytes a second that dumps have reached, a running mean.
    dump_rate: Cell<f64>,
    is_lagging: Cell<bool>,
    /// When levels are looked at next.
    look_at_ns: Cell<u64>,
    /// Runs have changed since compactions were looked for.
    has_news: Cell<bool>,
    totals: RefCell<LsmStatistics>,
}

impl LsmEngine {
    /// Opens the directory, or makes one. Blocks.
    ///
    /// Errors: the manifest is damaged (file and offset).
    pub fn open(config: LsmConfig, environment: LsmEnvironment) -> Result<Rc<Self>, LsmError> {
        let io = |what: &str, source| LsmError::Io { what: format!("{what} {}", config.dir.display()), source };
        environment.files.create_dir_all(&config.dir).map_err(|source| io("making", source))?;
        let (mut manifest, trees) = Manifest::open(environment.files.clone(), &config.dir)?;
        manifest.set_switch_bytes(config.manifest_bytes);
        for name in remove_orphans(&*environment.files, &config.dir, &trees)? {
            tracing::info!("removed {name}, which no index on disk names");
        }
        // No other start is given numbers in the billions behind this one.
        let ids = Arc::new(AtomicU64::new(manifest.next_id()));
        let is_stopped = Arc::new(AtomicBool::new(false));
        let place = Workplace { files: environment.files.clone(), dir: config.dir.clone(), ids, is_stopped };
        Ok(Rc::new(LsmEngine {
            reader: BlockReader::new(config.cache_bytes_max),
            place,
            config: RefCell::new(config),
            environment,
            manifest: Arc::new(Mutex::new(manifest)),
            recovered: RefCell::new(trees),
            spaces: RefCell::default(),
            dumps: RefCell::default(),
            compactions: RefCell::default(),
            records: RefCell::default(),
            recording: RefCell::new(None),
            obsolete: RefCell::default(),
            is_doubtful: Cell::new(false),
            unwanted: RefCell::default(),
            garbage: RefCell::default(),
            level_bytes: Cell::new(0),
            entered_bytes: Cell::new(0),
            failure: RefCell::new(None),
            retry_at_ns: Cell::new(0),
            dump_rate: Cell::new(0.0),
            is_lagging: Cell::new(false),
            look_at_ns: Cell::new(0),
            has_news: Cell::new(true),
            totals: RefCell::default(),
        }))
    }

    /// From now on reads do not block the thread; `notifier` tells the event loop when one has ended.
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
        self.spaces.borrow_mut().insert(space.id(), Rc::downgrade(space));
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
        space_id: u32,
        index_id: u32,
        lsn: i64,
        is_made_then: bool,
        dumped_lsn: Option<i64>,
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

    /// The start is over: trees that no index has claimed are not needed any more.
    pub fn forget_unclaimed(&self) {
        let unclaimed = self.recovered.take();
        if unclaimed.is_empty() {
            return;
        }
        let ids: Vec<u64> = unclaimed.iter().map(|tree| tree.tree_id).collect();
        let runs: Vec<u64> = unclaimed
            .iter()
            .flat_map(|tree| tree.ranges.iter().flat_map(|range| range.slices.iter().copied()))
            .collect();
        let place = self.place.clone();
        self.record(
            Box::new(move || ids.iter().flat_map(|&tree_id| forget(tree_id, 0)).collect()),
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

    /// Bytes that memory levels may take.
    pub fn memory_bytes_max(&self) -> usize {
        self.config.borrow().memory_bytes_max
    }

    /// Bytes of keys and values that were ever written to levels.
    pub fn written_bytes(&self) -> u64 {
        self.entered_bytes.get()
    }

    /// Why nothing can be written at present: memory is at its bound, and what there is cannot be dumped.
    pub fn refusal(&self) -> Option<Rc<LsmError>> {
        if self.level_bytes.get() < self.memory_bytes_max() {
            return None;
        }
        self.failure.borrow().clone()
    }

    /// True if writers have to wait until a dump has freed memory.
    pub fn is_full(&self) -> bool {
        self.level_bytes.get() >= self.memory_bytes_max()
    }

    fn run_job<T: Send + 'static>(&self, name: &str, work: impl FnOnce() -> T + Send + 'static) -> Option<Job<T>> {
        let (sender, outcome) = channel();
        if !self.config.borrow().is_threaded {
            let _ = sender.send(work());
            return Some(Job { outcome, worker: None });
        }
        let wake = self.environment.wake.clone();
        let work = move || {
            // Nobody listens if the process is stopping.
            let _ = sender.send(work());
            wake();
        };
        match spawn_thread(name, work) {
            Ok(worker) => Some(Job { outcome, worker: Some(worker) }),
            Err(error) => {
                tracing::error!("no thread for a {name}: {error}");
                None
            }
        }
    }

    /// Takes notice of what has ended and begins what is due. `appended`: position of the newest transaction, all of which is in the levels;
    /// `durable`: what a crash cannot take back. Called in every turn of the event loop, between transactions. Returns true if it wants to be called
    /// again soon.
    pub fn poll(&self, appended: i64, durable: i64) -> bool {
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

    // --- Dumps ---

    /// Seals the largest space when memory is short of room for what comes during a dump.
    fn seal_due(&self, appended: i64) {
        let now = self.environment.clock.monotonic_ns();
        if now < self.look_at_ns.get() || now < self.retry_at_ns.get() || !self.dumps.borrow().is_empty() {
            return;
        }
        self.look_at_ns.set(now + LOOK_NS);
        let max = self.memory_bytes_max() as f64 * DUMP_PART;
        let is_short = self.level_bytes.get() as f64 >= max;
        let spaces = self.spaces();
        let largest = spaces.iter().max_by_key(|space| space.active_bytes()).filter(|_| is_short);
        let deleted = || spaces.iter().find(|space| space.active_deletes() >= DELETES_MAX);
        if let Some(space) = largest.or_else(deleted)
            && space.active_bytes() > 0
        {
            self.seal(&[Rc::clone(space)], appended);
        }
    }

    /// Closes the active levels of spaces; they become runs in time. Between transactions only.
    pub fn seal(&self, spaces: &[Rc<LsmSpace>], lsn: i64) {
        let mut trees = Vec::new();
        for space in spaces {
            for tree in space.trees() {
                let level = tree.seal();
                trees.push((tree, level));
            }
        }
        if trees.is_empty() {
            return;
        }
        let began_ns = self.environment.clock.monotonic_ns();
        self.dumps.borrow_mut().push_back(Dump { lsn, trees, job: None, runs: None, is_recording: false, began_ns });
    }

    /// Closes the active levels of all spaces that a checkpoint at this position is to cover. `is_dumped` tells when it does.
    pub fn begin_checkpoint(&self, lsn: i64) {
        let behind: Vec<_> = self.spaces().into_iter().filter(|space| space.dumped_lsn() < lsn).collect();
        self.seal(&behind, lsn);
        self.begin_dump();
    }

    /// True if everything up to this position is in runs.
    pub fn is_dumped(&self, lsn: i64) -> bool {
        self.dumps.borrow().iter().all(|dump| dump.lsn > lsn)
    }

    /// Why dumps do not work at present.
    pub fn failure(&self) -> Option<Rc<LsmError>> {
        self.failure.borrow().clone()
    }

    /// Dumps everything and waits for it. For the start: `lsn` and what is before it is durable.
    ///
    /// Errors: it cannot be written.
    pub fn dump_all(&self, lsn: i64) -> Result<(), Rc<LsmError>> {
        self.seal(&self.spaces(), lsn);
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

    fn begin_dump(&self) {
        let mut dumps = self.dumps.borrow_mut();
        let Some(dump) = dumps.front_mut() else { return };
        let now = self.environment.clock.monotonic_ns();
        if dump.job.is_some() || dump.runs.is_some() || now < self.retry_at_ns.get() {
            return;
        }
        dump.began_ns = now;
        let mut levels = Vec::new();
        for (tree, level) in &dump.trees {
            let Some(level) = level.as_ref().filter(|_| !tree.is_dropped.get()) else { continue };
            let is_lowest = tree.sealed().last().is_some_and(|last| Rc::ptr_eq(last, level));
            let is_bottom = is_lowest && tree.ranges().list.iter().all(|range| range.slices.is_empty());
            #[cfg(feature = "planted-bugs")]
            let is_bottom = is_bottom || runtime::planted::is_planted(runtime::planted::Plant::DropTombstones);
            levels.push(LevelDump {
                tree_id: tree.id,
                level: level.share(),
                options: run_options(tree),
                is_bottom,
                upserter: Arc::clone(&tree.upserter.borrow()),
            });
        }
        let place = self.place.clone();
        dump.job = self.run_job("dump", move || {
            let runs = jobs::dump(&place, &levels);
            DumpOutcome { levels, runs }
        });
    }

    /// Writes a level that belongs to nobody as a run.
    pub(crate) fn write_level(&self, tree: &LsmTree, level: &Level) -> Option<RunJob> {
        let dump = LevelDump {
            tree_id: tree.id,
            level: level.share(),
            options: run_options(tree),
            is_bottom: false,
            upserter: Arc::clone(&tree.upserter.borrow()),
        };
        let place = self.place.clone();
        self.run_job("dump", move || {
            let run = jobs::dump_level(&place, &dump);
            (dump, run)
        })
    }

    /// A build is given up while this level of its is being written.
    pub(crate) fn give_up(&self, job: RunJob, level: Rc<Level>) {
        self.unwanted.borrow_mut().push((job, level));
    }

    fn poll_unwanted(&self) {
        let mut obsolete = self.obsolete.borrow_mut();
        self.unwanted.borrow_mut().retain_mut(|(job, level)| {
            let Some((dump, result)) = job.poll() else { return true };
            level.unshare(dump.level);
            // What could not be written needs no removal.
            obsolete.extend(result.ok().flatten().map(Arc::new));
            false
        });
    }

    /// Trees that never came to their places.
    pub(crate) fn discard_unplaced(&self, trees: impl Iterator<Item = Rc<LsmTree>>, runs: &[Vec<Arc<Run>>]) {
        let trees: Vec<_> = trees.collect();
        // Their runs are among those that are given.
        let empty = || self.empty_ranges().into_iter().map(Rc::new).collect();
        trees.iter().for_each(|tree| tree.set_ranges(empty()));
        self.drop_trees(trees, 0);
        let mut obsolete = self.obsolete.borrow_mut();
        obsolete.extend(runs.iter().flatten().cloned());
        obsolete.sort_by_key(|run| run.id());
        obsolete.dedup_by_key(|run| run.id());
    }

    fn poll_dumps(&self, durable: i64) {
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
        let mut levels = outcome.levels.into_iter().peekable();
        let mut made = match outcome.runs {
            Ok(runs) => Some(runs.into_iter()),
            Err(error) => {
                self.fail("a dump", error);
                None
            }
        };
        let mut runs = Vec::new();
        for (tree, level) in &dump.trees {
            let is_next = levels.peek().is_some_and(|next| next.tree_id == tree.id);
            let (Some(level), true) = (level, is_next) else {
                runs.push(None);
                continue;
            };
            if let Some(shared) = levels.next() {
                level.unshare(shared.level);
            }
            runs.push(made.as_mut().and_then(Iterator::next).flatten().map(Arc::new));
        }
        if made.is_some() {
            dump.runs = Some(runs);
        }
    }

    /// A job did not come to its end. It is tried again later.
    fn fail(&self, what: &str, error: LsmError) {
        tracing::error!("{what} failed: {error}; it is tried again");
        self.retry_at_ns.set(self.environment.clock.monotonic_ns() + RETRY_NS);
        *self.failure.borrow_mut() = Some(Rc::new(error));
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
            for (tree, run) in plan.iter().filter(|(tree, _)| !tree.is_dropped.get()) {
                recorded_there.borrow_mut().insert(tree.id);
                edits.extend(tree_edit(tree));
                let ranges = run.as_ref().map_or(Vec::new(), |run| touched(tree, run));
                let (tree_id, run_id) = (tree.id, run.as_ref().map(|run| run.id()));
                edits.push(Edit::Dumped { tree_id, dumped_lsn: lsn, run_id, ranges });
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
        let mut bytes = 0;
        for ((tree, level), run) in trees.iter().zip(runs) {
            if let Some(level) = level {
                tree.remove_sealed(level);
                self.level_bytes.set(self.level_bytes.get() - level.charged());
                self.garbage.borrow_mut().push_back(Rc::clone(level));
            }
            if !recorded.contains(&tree.id) {
                self.obsolete.borrow_mut().extend(run);
                continue;
            }
            tree.is_recorded.set(true);
            tree.dumped_lsn.set(lsn);
            let Some(run) = run else { continue };
            bytes += run.bytes();
            add(&tree.counters.dumps, 1);
            add(&tree.counters.dumped_bytes, run.bytes());
            let touched = touched(tree, &run);
            let ranges = tree.ranges();
            let list = ranges.list.iter().map(|range| {
                if !touched.contains(&range.id) {
                    return Rc::clone(range);
                }
                let slices = std::iter::once(&run).chain(&range.slices).cloned().collect();
                Rc::new(Range { id: range.id, begin: range.begin.clone(), slices })
            });
            tree.set_ranges(list.collect());
        }
        let took_ns = self.environment.clock.monotonic_ns().saturating_sub(began_ns).max(1);
        if bytes > 0 {
            let rate = bytes as f64 * 1e9 / took_ns as f64;
            let before = self.dump_rate.get();
            self.dump_rate.set(if before == 0.0 { rate } else { 0.7 * before + 0.3 * rate });
            let mut totals = self.totals.borrow_mut();
            totals.dumps += 1;
            totals.dumped_bytes += bytes;
            totals.dump_ns += took_ns;
        }
        self.has_news.set(true);
        *self.failure.borrow_mut() = None;
        tracing::debug!("a dump up to position {lsn}: {bytes} bytes in {} ms", took_ns / 1_000_000);
    }

    // --- Compactions ---

    fn begin_compactions(&self) {
        let max = self.config.borrow().compactions_max;
        while self.compactions.borrow().len() < max {
            let now = self.environment.clock.monotonic_ns();
            if !self.has_news.get() || now < self.retry_at_ns.get() {
                return;
            }
            let Some((tree, wanted)) = self.choose() else {
                if self.compactions.borrow().is_empty() {
                    self.is_lagging.set(false);
                }
                self.has_news.set(false);
                return;
            };
            self.is_lagging.set(self.is_lagging.get() || wanted.choice.urgency > OVERDUE && wanted.is_whole);
            if !self.begin_compaction(&tree, wanted) {
                return;
            }
        }
    }

    /// The most wanted compaction of all trees.
    fn choose(&self) -> Option<(Rc<LsmTree>, Wanted)> {
        let mut best: Option<(Rc<LsmTree>, Wanted)> = None;
        for space in self.spaces() {
            for tree in space.trees() {
                if tree.is_compacting.get() || tree.is_dropped.get() || !tree.is_recorded.get() {
                    continue;
                }
                for (at, sizes) in slice_sizes(&tree).into_iter().enumerate() {
                    let options = &tree.options;
                    let (count, ratio) = (options.run_count_per_level, options.run_size_ratio);
                    let stretch = deleted_stretch(&tree, at);
                    let choice = match &stretch {
                        Some(stretch) => Some(stretch.choice),
                        None => policy::choose(&sizes, count, ratio, self.is_lagging.get()),
                    };
                    let Some(choice) = choice else { continue };
                    if best.as_ref().is_none_or(|(_, other)| choice.urgency > other.choice.urgency) {
                        let wanted = stretch.unwrap_or_else(|| Wanted::whole(&tree, at, choice));
                        best = Some((Rc::clone(&tree), wanted));
                    }
                }
            }
        }
        best
    }

    fn begin_compaction(&self, tree: &Rc<LsmTree>, wanted: Wanted) -> bool {
        let Wanted { range_at, choice, from, to, .. } = wanted;
        let ranges = tree.ranges();
        let range = &ranges.list[range_at];
        let runs: Vec<_> = range.slices[choice.first..choice.first + choice.count].to_vec();
        let is_bottom = choice.first + choice.count == range.slices.len();
        let range_bytes = if tree.options.range_size == 0 { RANGE_BYTES } else { tree.options.range_size };
        let job = Compaction {
            runs: runs.clone(),
            from: from.clone(),
            to: to.clone(),
            is_bottom,
            split_bytes: is_bottom.then_some((range_bytes as f64 * SPLIT_RATIO) as u64),
            filter_parts: (!tree.is_primary).then_some(tree.own_parts),
            options: run_options(tree),
            upserter: Arc::clone(&tree.upserter.borrow()),
            pace_share: if choice.urgency > OVERDUE { 1 } else { LEISURELY_SHARE },
        };
        #[cfg(feature = "planted-bugs")]
        let job = match runtime::planted::is_planted(runtime::planted::Plant::DropTombstones) {
            true => Compaction { is_bottom: true, ..job },
            false => job,
        };
        let place = self.place.clone();
        let has_time = job.pace_share > 1;
        let Some(job) = self.run_job("compaction", move || {
            if has_time {
                yield_priority();
            }
            jobs::compact(&place, &job)
        }) else {
            return false;
        };
        tree.is_compacting.set(true);
        let began_ns = self.environment.clock.monotonic_ns();
        let running = RunningCompaction { tree: Rc::clone(tree), range_id: range.id, from, to, runs, job, began_ns };
        self.compactions.borrow_mut().push(running);
        true
    }

    fn poll_compactions(&self) {
        let mut at = 0;
        loop {
            let ended = {
                let mut compactions = self.compactions.borrow_mut();
                let Some(running) = compactions.get_mut(at) else { return };
                running.job.poll().map(|result| (compactions.swap_remove(at), result))
            };
            match ended {
                Some((running, result)) => self.take_compaction(running, result),
                None => at += 1,
            }
        }
    }

    fn take_compaction(&self, ended: RunningCompaction, result: Result<Vec<Run>, LsmError>) {
        let tree = Rc::clone(&ended.tree);
        let made: Vec<Arc<Run>> = match result {
            Ok(runs) => runs.into_iter().map(Arc::new).collect(),
            Err(error) => {
                tree.is_compacting.set(false);
                self.has_news.set(true);
                if !self.place.is_stopped.load(Ordering::Relaxed) {
                    self.fail("a compaction", error);
                }
                return;
            }
        };
        let took_ns = self.environment.clock.monotonic_ns().saturating_sub(ended.began_ns);
        let read: u64 = ended.runs.iter().map(|run| run.estimate(&ended.from, ended.to.as_deref()).0).sum();
        let written: u64 = made.iter().map(|run| run.bytes()).sum();
        tracing::debug!(
            "a compaction of {} runs into {}: {read} bytes read, {written} written in {} ms",
            ended.runs.len(),
            made.len(),
            took_ns / 1_000_000
        );
        add(&tree.counters.compactions, 1);
        add(&tree.counters.compaction_read_bytes, read);
        add(&tree.counters.compaction_written_bytes, written);
        {
            let mut totals = self.totals.borrow_mut();
            totals.compactions += 1;
            totals.compaction_read_bytes += read;
            totals.compaction_written_bytes += written;
            totals.compaction_ns += took_ns;
        }
        let (RunningCompaction { range_id, from, to, runs, .. }, place) = (ended, self.place.clone());
        let result_of = Rc::new(RefCell::new(Vec::new()));
        let made_there = Rc::clone(&result_of);
        let (tree_there, made_for_edit) = (Rc::clone(&tree), made.clone());
        let runs_there = runs.clone();
        let make = move || {
            if tree_there.is_dropped.get() {
                return Vec::new();
            }
            let add =
                replace_slices(&tree_there, range_id, (&from, to.as_deref()), &runs_there, &made_for_edit, &place);
            let edits = vec![Edit::SetRanges {
                tree_id: tree_there.id,
                remove: vec![range_id],
                add: add.iter().map(range_state).collect(),
            }];
            *made_there.borrow_mut() = add;
            edits
        };
        let then = move |engine: &LsmEngine, result: Result<(), Rc<LsmError>>| {
            tree.is_compacting.set(false);
            engine.has_news.set(true);
            let new = result_of.take();
            // If it was recorded it counts, even if the tree has been dropped since: the record that forgets it comes later.
            if result.is_err() || new.is_empty() {
                engine.obsolete.borrow_mut().extend(made);
                return;
            }
            let mut list = Vec::new();
            for range in &tree.ranges().list {
                if range.id == range_id {
                    list.extend(new.iter().cloned().map(Rc::new));
                } else {
                    list.push(Rc::clone(range));
                }
            }
            tree.set_ranges(list);
            let named = tree.runs();
            #[cfg(feature = "planted-bugs")]
            let named = match runtime::planted::is_planted(runtime::planted::Plant::RemoveRunInUse) {
                true => Vec::new(),
                false => named,
            };
            let gone = runs.into_iter().filter(|run| !named.iter().any(|other| other.id() == run.id()));
            engine.obsolete.borrow_mut().extend(gone);
            if !tree.is_dropped.get() {
                engine.join_ranges(&tree);
            }
        };
        self.record(Box::new(make), Box::new(then));
    }

    /// Joins neighbouring ranges that have become small, as far as none of their runs reaches beyond them.
    fn join_ranges(&self, tree: &Rc<LsmTree>) {
        let ranges = tree.ranges();
        let max = if tree.options.range_size == 0 { RANGE_BYTES } else { tree.options.range_size } / 4;
        let size = |at: usize| -> u64 {
            let range = &ranges.list[at];
            range.slices.iter().map(|run| run.estimate(&range.begin, ranges.end(at)).0).sum()
        };
        let is_own = |at: usize| {
            let (range, end) = (&ranges.list[at], ranges.end(at));
            range
                .slices
                .iter()
                .all(|run| run.min_key() >= range.begin.as_slice() && end.is_none_or(|end| run.max_key() < end))
        };
        let found = (1..ranges.list.len()).find(|&at| is_own(at - 1) && is_own(at) && size(at - 1) + size(at) < max);
        let Some(at) = found else { return };
        let (left, right) = (Rc::clone(&ranges.list[at - 1]), Rc::clone(&ranges.list[at]));
        let tree = Rc::clone(tree);
        tree.is_compacting.set(true);
        let id = self.place.next_id();
        let joined = move |tree: &LsmTree| {
            // A dump may have given them more runs meanwhile, which then reach over both.
            let find = |id: u64| tree.ranges().list.iter().find(|range| range.id == id).cloned();
            let (left, right) = (find(left.id)?, find(right.id)?);
            let shares = left.slices.iter().any(|run| right.slices.iter().any(|other| other.id() == run.id()));
            if shares {
                return None;
            }
            let slices = left.slices.iter().chain(&right.slices).cloned().collect();
            Some((left.id, right.id, Range { id, begin: left.begin.clone(), slices }))
        };
        let made = Rc::new(RefCell::new(None));
        let (tree_there, made_there) = (Rc::clone(&tree), Rc::clone(&made));
        let make = move || {
            *made_there.borrow_mut() = joined(&tree_there);
            match &*made_there.borrow() {
                Some((left, right, range)) => vec![Edit::SetRanges {
                    tree_id: tree_there.id,
                    remove: vec![*left, *right],
                    add: vec![range_state(range)],
                }],
                None => Vec::new(),
            }
        };
        let then = move |_: &LsmEngine, result: Result<(), Rc<LsmError>>| {
            tree.is_compacting.set(false);
            let Some((left, right, range)) = made.take().filter(|_| result.is_ok()) else { return };
            tracing::debug!("two ranges are joined");
            let mut list = Vec::new();
            for other in &tree.ranges().list {
                if other.id == left {
                    list.push(Rc::new(range.clone()));
                } else if other.id != right {
                    list.push(Rc::clone(other));
                }
            }
            tree.set_ranges(list);
        };
        self.record(Box::new(make), Box::new(then));
    }

    // --- Records ---

    /// Puts a change of the manifest in the queue. `make` is called when it is its turn, `then` when it is on disk.
    pub(crate) fn record(&self, make: Making, then: Then) {
        self.records.borrow_mut().push_back((make, then));
    }

    fn begin_record(&self) {
        while self.recording.borrow().is_none() {
            if self.environment.clock.monotonic_ns() < self.retry_at_ns.get() {
                return;
            }
            let Some((make, then)) = self.records.borrow_mut().pop_front() else { return };
            let edits = make();
            if edits.is_empty() {
                then(self, Ok(()));
                continue;
            }
            let manifest = Arc::clone(&self.manifest);
            let job = self
                .run_job("manifest", move || manifest.lock().unwrap_or_else(PoisonError::into_inner).append(&edits));
            match job {
                Some(job) => *self.recording.borrow_mut() = Some((job, then)),
                None => then(self, Err(Rc::new(no_thread()))),
            }
            self.poll_record();
        }
    }

    fn poll_record(&self) {
        let ended = {
            let mut recording = self.recording.borrow_mut();
            let result = recording.as_mut().and_then(|(job, _)| job.poll());
            result.and_then(|result| recording.take().map(|(_, then)| (then, result)))
        };
        let Some((then, result)) = ended else { return };
        self.is_doubtful.set(result.is_err());
        match result {
            Ok(()) => then(self, Ok(())),
            Err(error) => {
                self.fail("a record of the manifest", error);
                let error = self.failure.borrow().clone().unwrap_or_else(|| Rc::new(no_thread()));
                then(self, Err(error));
            }
        }
    }

    // --- Trees ---

    /// A tree as the manifest knows it, with its runs. Blocks.
    pub(crate) fn open_ranges(&self, state: &TreeState) -> Result<Vec<Range>, LsmError> {
        let mut open: BTreeMap<u64, Arc<Run>> = BTreeMap::new();
        let mut ranges = Vec::new();
        for range in &state.ranges {
            let mut slices = Vec::new();
            for &run_id in &range.slices {
                let run = match open.get(&run_id) {
                    Some(run) => Arc::clone(run),
                    None => Arc::new(Run::open(&*self.place.files, &self.place.dir, run_id)?),
                };
                open.insert(run_id, Arc::clone(&run));
                slices.push(run);
            }
            ranges.push(Range { id: range.range_id, begin: range.begin.clone(), slices });
        }
        Ok(ranges)
    }

    /// The ranges of a tree without rows, as the manifest has them.
    pub(crate) fn empty_ranges(&self) -> Vec<Range> {
        vec![Range { id: FIRST_RANGE, begin: Vec::new(), slices: Vec::new() }]
    }

    /// Trees are out of use for good: at `lsn` they were dropped or truncated, and that is durable. One record forgets them all.
    pub(crate) fn drop_trees(&self, trees: Vec<Rc<LsmTree>>, lsn: i64) {
        for tree in &trees {
            tree.is_dropped.set(true);
            for level in tree.levels() {
                if !self.is_being_dumped(&level) {
                    self.level_bytes.set(self.level_bytes.get() - level.charged());
                    self.garbage.borrow_mut().push_back(level);
                }
            }
        }
        self.forget_trees(trees, lsn);
    }

    fn forget_trees(&self, trees: Vec<Rc<LsmTree>>, lsn: i64) {
        let there = trees.clone();
        let make = move || {
            let recorded = there.iter().filter(|tree| tree.is_recorded.get());
            recorded.flat_map(|tree| forget(tree.id, lsn)).collect()
        };
        let then = move |engine: &LsmEngine, result: Result<(), Rc<LsmError>>| match result {
            Ok(()) => {
                for tree in trees {
                    engine.obsolete.borrow_mut().extend(tree.runs());
                    tree.set_ranges(engine.empty_ranges().into_iter().map(Rc::new).collect());
                }
            }
            Err(_) => engine.forget_trees(trees, lsn),
        };
        self.record(Box::new(make), Box::new(then));
    }

    fn is_being_dumped(&self, level: &Rc<Level>) -> bool {
        let is_it = |other: &Option<Rc<Level>>| other.as_ref().is_some_and(|other| Rc::ptr_eq(other, level));
        self.dumps.borrow().iter().any(|dump| dump.trees.iter().any(|(_, level)| is_it(level)))
    }

    // --- What is left over ---

    fn remove_obsolete(&self) {
        let mut obsolete = self.obsolete.borrow_mut();
        if obsolete.is_empty() || self.is_doubtful.get() {
            return;
        }
        let mut gone = Vec::new();
        obsolete.retain(|run| {
            // A reader may still be on its way through it.
            let is_read = Arc::strong_count(run) > 1;
            #[cfg(feature = "planted-bugs")]
            let is_read = is_read && !runtime::planted::is_planted(runtime::planted::Plant::RemoveRunInUse);
            if !is_read {
                gone.push(run.path().to_path_buf());
            }
            is_read
        });
        if gone.is_empty() {
            return;
        }
        let files = self.place.files.clone();
        // What stays is an orphan that the next start removes.
        self.run_job("removal", move || gone.iter().for_each(|path| drop(files.remove(path))));
    }

    /// Frees a slice of what is not needed. Returns true while there is more.
    fn free_some(&self) -> bool {
        let mut garbage = self.garbage.borrow_mut();
        let Some(level) = garbage.front() else { return false };
        if Rc::strong_count(level) > 1 {
            // A reader has it: behind the others.
            garbage.rotate_left(1);
            return false;
        }
        if !level.release_some() {
            garbage.pop_front();
        }
        true
    }

    /// Bytes a second that writers should keep to now; none: as many as they like.
    pub fn pace(&self) -> Option<f64> {
        let used = self.level_bytes.get() as f64 / self.memory_bytes_max().max(1) as f64;
        // Up to here a dump that begins now ends in time at any usual rate.
        const FREE_PART: f64 = 0.7;
        if used < FREE_PART || self.dump_rate.get() == 0.0 {
            return None;
        }
        // Straight down from twice what dumps reach to half of it where memory ends.
        let left = ((1.0 - used) / (1.0 - FREE_PART)).max(0.0);
        Some(self.dump_rate.get() * (0.5 + 1.5 * left))
    }

    /// Everything there is to know, for those who look.
    pub fn statistics(&self) -> LsmStatistics {
        let mut all = *self.totals.borrow();
        let cache = self.reader.cache.borrow();
        all.level_bytes = self.level_bytes.get() as u64;
        all.level_bytes_max = self.memory_bytes_max() as u64;
        all.cache_bytes = cache.bytes() as u64;
        all.cache_bytes_max = cache.bytes_max() as u64;
        all.cache_hits = cache.hits;
        all.cache_misses = cache.misses;
        all.row_hits = cache.row_hits;
        all.passing_reads = self.reader.passing_reads.get();
        all.waited_reads = self.reader.waited_reads.get();
        all.reads_in_flight = self.reader.in_flight() as u64;
        all.read_bytes = self.reader.read_bytes.get();
        all.pace_bytes_per_s = self.pace().unwrap_or(0.0) as u64;
        for space in self.spaces() {
            for tree in space.trees() {
                all.written_bytes += tree.counters.written_bytes.get() + tree.active().written_bytes();
                for run in tree.runs() {
                    all.disk_bytes += run.bytes();
                    all.metadata_bytes += run.memory() as u64;
                    all.runs += 1;
                }
                all.ranges += tree.ranges().list.len() as u64;
                all.debt_bytes += debt(&tree);
            }
        }
        all
    }

    /// Ends all work on other threads and waits for it. What was not recorded is not dumped.
    pub fn close(&self) {
        self.place.is_stopped.store(true, Ordering::Relaxed);
        for running in self.compactions.take() {
            running.job.wait();
        }
        // They stay: a checkpoint that waits for them must not count as covered.
        for dump in self.dumps.borrow_mut().iter_mut() {
            let Some(outcome) = dump.job.take().and_then(Job::wait) else { continue };
            for LevelDump { tree_id, level: shared, .. } in outcome.levels {
                if let Some((_, Some(level))) = dump.trees.iter().find(|(tree, _)| tree.id == tree_id) {
                    level.unshare(shared);
                }
            }
        }
        for (job, level) in self.unwanted.take() {
            if let Some((dump, _)) = job.wait() {
                level.unshare(dump.level);
            }
        }
        if let Some((job, _)) = self.recording.take() {
            job.wait();
        }
    }
}

fn no_thread() -> LsmError {
    LsmError::Io { what: "starting a thread".to_string(), source: std::io::ErrorKind::WouldBlock.into() }
}

fn run_options(tree: &LsmTree) -> RunOptions {
    RunOptions { page_size: tree.options.page_size, bloom_fpr: tree.options.bloom_fpr }
}

fn range_state(range: &Range) -> RangeState {
    let slices = range.slices.iter().map(|run| run.id()).collect();
    RangeState { range_id: range.id, begin: range.begin.clone(), slices }
}

/// What the manifest has to be told of a tree that it does not know.
fn tree_edit(tree: &LsmTree) -> Vec<Edit> {
    if tree.is_recorded.get() {
        return Vec::new();
    }
    let (tree_id, space_id, index_id) = (tree.id, tree.space_id, tree.index_id);
    let mut edits = vec![Edit::CreateTree { tree_id, space_id, index_id, created_lsn: tree.created_lsn.get() }];
    let ranges = tree.ranges();
    if ranges.list.len() > 1 || ranges.list.iter().any(|range| !range.slices.is_empty()) {
        let add = ranges.list.iter().map(|range| range_state(range)).collect();
        edits.push(Edit::SetRanges { tree_id, remove: vec![FIRST_RANGE], add });
    }
    edits
}

/// A tree ends and leaves nothing. Nobody asks for it again: a start that reads the log from before makes an empty one in its place, and
/// empties it at the same row.
fn forget(tree_id: u64, lsn: i64) -> Vec<Edit> {
    vec![Edit::DropTree { tree_id, dropped_lsn: lsn }, Edit::ForgetTree { tree_id }]
}

/// Ranges that a run has something in.
fn touched(tree: &LsmTree, run: &Run) -> Vec<u64> {
    let ranges = tree.ranges();
    let (first, last) = (ranges.find(run.min_key()), ranges.find(run.max_key()));
    ranges.list[first..=last].iter().map(|range| range.id).collect()
}

/// A compaction: of which range, of which of its slices, and of which part of its keys.
struct Wanted {
    range_at: usize,
    choice: Choice,
    from: Vec<u8>,
    to: Option<Vec<u8>>,
    is_whole: bool,
}

impl Wanted {
    fn whole(tree: &LsmTree, range_at: usize, choice: Choice) -> Self {
        let ranges = tree.ranges();
        let (from, to) = (ranges.list[range_at].begin.clone(), ranges.end(range_at).map(<[u8]>::to_vec));
        Wanted { range_at, choice, from, to, is_whole: true }
    }
}

/// A part of a range whose rows were deleted one after the other: what says so is merged with them, which reads and writes no others.
fn deleted_stretch(tree: &LsmTree, range_at: usize) -> Option<Wanted> {
    let ranges = tree.ranges();
    let range = &ranges.list[range_at];
    let end = ranges.end(range_at);
    // One that holds other rows, too, may reach far beyond the deleted ones.
    let is_of_deletes =
        |run: &&Arc<Run>| run.deletes() >= policy::DELETED_MIN && run.deletes() * 10 > run.entries() * 9;
    let mut from: Option<&[u8]> = None;
    let mut last: Option<&[u8]> = None;
    for run in range.slices.iter().filter(is_of_deletes) {
        from = Some(from.map_or(run.min_key(), |from| from.min(run.min_key())));
        last = Some(last.map_or(run.max_key(), |last| last.max(run.max_key())));
    }
    let from = from?.max(&range.begin).to_vec();
    // Behind the last key, unless the range ends before.
    let behind = [last?, &[0]].concat();
    let to = match end {
        Some(end) if end <= behind.as_slice() => Some(end.to_vec()),
        _ => Some(behind),
    };
    let estimate = |run: &Arc<Run>| run.estimate(&from, to.as_deref());
    let (mut entries, mut deletes) = (0, 0);
    for run in &range.slices {
        let here = estimate(run).1;
        entries += here;
        deletes += (run.deletes() as f64 * here as f64 / run.entries().max(1) as f64) as u64;
    }
    let is_dense = deletes >= policy::DELETED_MIN && deletes as f64 > entries as f64 * policy::DELETED_SHARE;
    let urgency = 2.0 + deletes as f64 / entries.max(1) as f64;
    is_dense.then(|| Wanted {
        range_at,
        choice: Choice { first: 0, count: range.slices.len(), urgency },
        is_whole: from == range.begin && to.as_deref() == end,
        from,
        to,
    })
}

/// The range as it is with other runs in the place of some, in a part of its keys: one range, or several if that is a part or there are several new
/// runs.
fn replace_slices(
    tree: &LsmTree,
    range_id: u64,
    (from, to): (&[u8], Option<&[u8]>),
    runs: &[Arc<Run>],
    made: &[Arc<Run>],
    place: &Workplace,
) -> Vec<Range> {
    let ranges = tree.ranges();
    let Some(at) = ranges.list.iter().position(|range| range.id == range_id) else { return Vec::new() };
    let (range, end) = (&ranges.list[at], ranges.end(at));
    let is_replaced = |run: &Arc<Run>| runs.iter().any(|other| other.id() == run.id());
    let first = range.slices.iter().position(is_replaced).unwrap_or(0);
    let newer = &range.slices[..first];
    let older = &range.slices[first + runs.len()..];
    assert!(made.len() < 2 || older.is_empty(), "only a merge with the oldest run is split");
    let mut new = Vec::new();
    let mut push = |begin: &[u8], end: Option<&[u8]>, slices: &mut dyn Iterator<Item = &Arc<Run>>| {
        let is_here = |run: &&Arc<Run>| run.max_key() >= begin && end.is_none_or(|end| run.min_key() < end);
        let slices = slices.filter(is_here).cloned().collect();
        new.push(Range { id: place.next_id(), begin: begin.to_vec(), slices });
    };
    if from > range.begin.as_slice() {
        push(&range.begin, Some(from), &mut range.slices.iter());
    }
    for number in 0..made.len().max(1) {
        let begin = if number == 0 { from } else { made[number].min_key() };
        let end = made.get(number + 1).map(|next| next.min_key()).or(to);
        push(begin, end, &mut newer.iter().chain(made.get(number)).chain(older));
    }
    if let Some(to) = to.filter(|to| end != Some(*to)) {
        push(to, end, &mut range.slices.iter());
    }
    new
}

/// How large the slices of each range are.
fn slice_sizes(tree: &LsmTree) -> Vec<Vec<SliceSize>> {
    let ranges = tree.ranges();
    let size = |run: &Arc<Run>, at: usize| {
        let (bytes, entries) = run.estimate(&ranges.list[at].begin, ranges.end(at));
        let deletes = run.deletes() as f64 * entries as f64 / run.entries().max(1) as f64;
        SliceSize { bytes, entries, deletes: deletes as u64 }
    };
    let of_range = |at: usize| ranges.list[at].slices.iter().map(|run| size(run, at)).collect();
    (0..ranges.list.len()).map(of_range).collect()
}

/// Bytes above the oldest run of each range.
fn debt(tree: &LsmTree) -> u64 {
    let younger = |sizes: Vec<SliceSize>| -> u64 {
        sizes.split_last().map_or(0, |(_, younger)| younger.iter().map(|slice| slice.bytes).sum())
    };
    slice_sizes(tree).into_iter().map(younger).sum()
}
