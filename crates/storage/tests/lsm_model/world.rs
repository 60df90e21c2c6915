//! One run: an engine, what is expected of it, and the dice. What is done is in the files below, one for each kind of work.

mod definitions;
mod reading;
mod restarts;
mod statements;

use crate::rows::{COUNT, GROUP, ID, NAME, Row, SpaceModel, VALUE, Value, encode_value};
use definitions::Building;
use reading::{KeptScan, KeptView};
use runtime::fiber;
use runtime::{Fault, ManualClock, Notifier, Randomness, SeededRandomness, SimulatedFiles};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use storage::lsm::{
    DetachedTrees, DiskChange, DiskKey, DiskRow, Fetched, LsmConfig, LsmEngine, LsmSpace, Need, Stop, TreeOptions,
};
use tuple::{Lsn, msgpack};

const DIR: &str = "/db/lsm";
/// With many indexes.
const WIDE: u32 = 512;
/// With one index, by text, so that rows are written without a look.
const BLIND: u32 = 513;
/// With a primary key of two fields.
const PAIR: u32 = 514;
const SPACES: [u32; 3] = [WIDE, BLIND, PAIR];

/// Fields of an index, and whether it is unique.
fn index_of(space_id: u32, index_id: u32) -> (&'static [usize], bool) {
    match (space_id, index_id) {
        (WIDE, 0) => (&[ID], true),
        (WIDE, 1) => (&[GROUP], false),
        (WIDE, 2) => (&[VALUE], true),
        (WIDE, 3) => (&[NAME, GROUP], false),
        // These come and go.
        (WIDE, 4) => (&[GROUP, VALUE], false),
        (WIDE, _) => (&[NAME, ID], true),
        (BLIND, 0) => (&[NAME], true),
        // Comes and goes, and often cannot be built.
        (BLIND, _) => (&[GROUP, VALUE], true),
        (PAIR, 0) => (&[GROUP, NAME], true),
        (PAIR, 1) => (&[ID], true),
        (_, _) => (&[NAME], false),
    }
}

/// Those that are there from the beginning, and the ones that come and go.
fn first_indexes(space_id: u32) -> (std::ops::Range<u32>, std::ops::Range<u32>) {
    match space_id {
        WIDE => (0..4, 4..6),
        BLIND => (0..1, 1..2),
        _ => (0..2, 2..3),
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) operations: u64,
    pub(crate) is_threaded: bool,
    /// Blocks that are not in the cache are waited for.
    pub(crate) is_cold: bool,
}

/// A row of the log.
#[derive(Clone, Debug)]
enum Logged {
    Put(u32, Rc<Row>),
    Delete(u32, Rc<Row>),
    Add(u32, Rc<Row>, u64),
    Truncate(u32),
    Create(u32, u32),
    Drop(u32, u32),
}

/// A statement that is applied.
struct Done {
    space_id: u32,
    change: DiskChange,
    old: Option<Rc<Row>>,
    new: Option<Rc<Row>>,
    logged: Logged,
}

/// What the event loop needs to know.
#[derive(Default)]
struct Shared {
    engine: RefCell<Option<Rc<LsmEngine>>>,
    appended: Cell<i64>,
    durable: Cell<i64>,
    is_over: Cell<bool>,
}

struct World {
    plan: Plan,
    seed: u64,
    random: SeededRandomness,
    files: SimulatedFiles,
    clock: Arc<ManualClock>,
    config: LsmConfig,
    options: TreeOptions,
    ids: u64,
    shared: Rc<Shared>,
    notifier: Arc<Notifier>,
    spaces: BTreeMap<u32, Rc<LsmSpace>>,
    models: BTreeMap<u32, SpaceModel>,
    log: Vec<(i64, Logged)>,
    /// Position of the newest snapshot, and the indexes that it names.
    snapshot: (i64, Vec<(u32, u32)>),
    checkpoint: Option<(i64, Vec<(u32, u32)>)>,
    txn: Vec<Done>,
    is_in_txn: bool,
    kept: Vec<KeptScan>,
    views: Vec<KeptView>,
    building: Option<Building>,
    /// Trees that go when this position is durable.
    detached: Vec<(i64, u32, DetachedTrees)>,
    done: u64,
    dumps: u64,
    compactions: u64,
    runs_max: u64,
    ranges_max: u64,
}

/// Runs a seed to its end.
pub(crate) fn run(seed: u64, plan: Plan) {
    let shared = Rc::new(Shared::default());
    let there = Rc::clone(&shared);
    let notifier = Arc::new(Notifier::new().unwrap());
    let notifier_there = Arc::clone(&notifier);
    fiber::run_now("model", move || {
        World::new(seed, plan, &there, notifier_there).work();
        there.is_over.set(true);
    });
    let mut idle = 0;
    while !shared.is_over.get() {
        fiber::run_ready(100);
        let engine = shared.engine.borrow().clone();
        if let Some(engine) = engine {
            notifier.clear();
            engine.poll(Lsn(shared.appended.get()), Lsn(shared.durable.get()));
        }
        if fiber::next_deadline() != Some(0) && !shared.is_over.get() {
            idle += 1;
            assert!(fiber::list().iter().any(|(_, name, _)| name == "model"), "seed {seed} failed, see above");
            assert!(idle < 60_000_000, "seed {seed} hangs");
            notifier.wait(Duration::from_millis(1));
        }
    }
}

impl World {
    fn new(seed: u64, plan: Plan, shared: &Rc<Shared>, notifier: Arc<Notifier>) -> World {
        let random = SeededRandomness::new(seed);
        let pick = |bound: u64| random.next_u64() % bound;
        let files = SimulatedFiles::default();
        files.set_fault(Fault { is_cache_cold: plan.is_cold, ..Fault::default() });
        let is_uncached = seed % 200 >= 100 && !plan.is_cold;
        let config = LsmConfig {
            dir: PathBuf::from(DIR),
            memory_bytes_max: 60_000 + pick(600_000) as usize,
            cache_bytes_max: if is_uncached { 0 } else { 2_000 + pick(200_000) as usize },
            is_threaded: plan.is_threaded,
            compactions_max: 1 + pick(3) as usize,
            manifest_bytes: 1_000 + pick(100_000),
            open_files_max: 1 + pick(40) as usize,
            page_cache_sampled_one_of: 16,
            is_forced: false,
            instance_uuid: None,
        };
        let options = TreeOptions {
            page_size: 60 + pick(1_500) as usize,
            range_size: 2_000 + pick(30_000),
            run_count_per_level: 1 + pick(4) as usize,
            run_size_ratio: 1.5 + pick(30) as f64 / 10.0,
            bloom_fpr: [0.01, 0.1, 0.5, 1.0][pick(4) as usize],
        };
        let ids = if seed % 8 == 4 { 2_000 } else { 20 + pick(500) };
        World {
            plan,
            seed,
            random,
            files,
            clock: Arc::new(ManualClock::default()),
            config,
            options,
            ids,
            shared: Rc::clone(shared),
            notifier,
            spaces: BTreeMap::new(),
            models: SPACES.iter().map(|&id| (id, SpaceModel::default())).collect(),
            log: Vec::new(),
            snapshot: (0, Vec::new()),
            checkpoint: None,
            txn: Vec::new(),
            is_in_txn: false,
            kept: Vec::new(),
            views: Vec::new(),
            building: None,
            detached: Vec::new(),
            done: 0,
            dumps: 0,
            compactions: 0,
            runs_max: 0,
            ranges_max: 0,
        }
    }

    fn pick(&self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    fn one_in(&self, times: u64) -> bool {
        self.pick(times) == 0
    }

    fn engine(&self) -> Rc<LsmEngine> {
        self.shared.engine.borrow().clone().unwrap()
    }

    fn space(&self, id: u32) -> Rc<LsmSpace> {
        Rc::clone(&self.spaces[&id])
    }

    fn work(mut self) {
        for space_id in SPACES {
            for index_id in first_indexes(space_id).0 {
                let lsn = self.append(Logged::Create(space_id, index_id));
                assert!(lsn > 0);
                self.add_index_model(space_id, index_id);
            }
        }
        self.open();
        while self.done < self.plan.operations {
            self.step();
        }
        self.restart();
        self.close();
        let has_worked = self.dumps > 0 && self.compactions > 0 && self.runs_max > 1;
        assert!(has_worked || self.plan.operations < 10_000, "seed {}: nothing was dumped or merged", self.seed);
        println!(
            "seed {}: {} operations, {} dumps, {} compactions, at most {} runs and {} ranges",
            self.seed, self.done, self.dumps, self.compactions, self.runs_max, self.ranges_max
        );
    }

    fn step(&mut self) {
        self.done += 1;
        if self.is_in_txn {
            match self.pick(40) {
                0..=21 => self.statement(),
                22..=27 => self.read(),
                28..=30 => self.suspend(),
                31..=32 => self.take_back_last(),
                33 => self.roll_back(),
                _ => self.commit(),
            }
            return;
        }
        match self.pick(1_000) {
            0..=429 => self.statement(),
            430..=449 => self.is_in_txn = true,
            450..=599 => self.read(),
            600..=609 => self.keep_view(),
            610..=649 => self.read_view(),
            650..=699 => self.keep_scan(),
            700..=849 => self.go_on_with_kept(),
            850..=859 => self.drop_kept(),
            860..=939 => self.turn(),
            940..=944 => self.begin_checkpoint(),
            945..=949 => self.seal_one(),
            950 if self.one_in(3) => self.truncate(),
            951..=953 => self.begin_build(),
            954..=995 => self.go_on_building(),
            996 => self.drop_index(),
            997 if self.one_in(4) => self.compare_all(),
            998 if self.one_in(10) => self.restart(),
            _ => self.statement(),
        }
    }

    // Waiting.

    /// As the database: what the open transaction has done is rolled back meanwhile.
    fn wait(&mut self, need: Need) -> Fetched {
        self.withdraw();
        let fetched = self.engine().fetch(need).unwrap_or_else(|error| panic!("a read failed: {error}"));
        self.reinstate();
        fetched
    }

    fn until_ready<T>(&mut self, mut attempt: impl FnMut(&Self) -> Result<T, Stop>) -> T {
        let mut fetched = Vec::new();
        loop {
            match attempt(self) {
                Ok(value) => return value,
                Err(stop) => fetched.push(self.wait_for(stop)),
            }
        }
    }

    fn wait_for(&mut self, stop: Stop) -> Fetched {
        match stop {
            Stop::Wait(need) => self.wait(need),
            Stop::Failed(error) => panic!("seed {}: {error}", self.seed),
        }
    }

    fn withdraw(&mut self) {
        for done in self.txn.iter().rev() {
            self.spaces[&done.space_id].undo(&done.change);
        }
    }

    fn reinstate(&mut self) {
        for done in &mut self.txn {
            done.change = self.spaces[&done.space_id].redo(&done.change);
        }
    }

    // What happens beside.

    fn catch_up(&mut self) {
        let (durable, appended) = (self.shared.durable.get(), self.shared.appended.get());
        self.set_durable(durable + self.pick((appended - durable) as u64 + 1) as i64);
    }

    fn set_durable(&mut self, durable: i64) {
        self.shared.durable.set(durable);
        let (gone, waiting) = std::mem::take(&mut self.detached).into_iter().partition(|(lsn, ..)| *lsn <= durable);
        self.detached = waiting;
        let gone: Vec<(i64, u32, DetachedTrees)> = gone;
        gone.into_iter().for_each(|(_, space_id, trees)| self.spaces[&space_id].discard(trees, Lsn(0)));
    }

    fn turn(&mut self) {
        self.catch_up();
        self.clock.advance(self.pick(4_000_000));
        self.engine().poll(Lsn(self.shared.appended.get()), Lsn(self.shared.durable.get()));
        let statistics = self.engine().statistics();
        self.runs_max = self.runs_max.max(statistics.run_count);
        self.ranges_max = self.ranges_max.max(statistics.range_count);
        let snapshot = self.checkpoint.take_if(|(lsn, _)| {
            *lsn <= self.shared.durable.get() && self.shared.engine.borrow().as_ref().unwrap().is_dumped(Lsn(*lsn))
        });
        if let Some(snapshot) = snapshot {
            self.log.retain(|(lsn, _)| *lsn > snapshot.0);
            self.snapshot = snapshot;
        }
    }

    /// A writer waits while memory is full.
    fn make_room(&mut self) {
        if !self.engine().is_full() {
            return;
        }
        let is_in_txn = std::mem::take(&mut self.is_in_txn);
        self.withdraw();
        let txn = std::mem::take(&mut self.txn);
        let mut turns = 0u64;
        while self.engine().is_full() {
            self.set_durable(self.shared.appended.get());
            self.turn();
            turns += 1;
            if self.plan.is_threaded {
                self.notifier.wait(Duration::from_millis(1));
                self.notifier.clear();
            }
            if turns > 5_000 && self.building.is_some() {
                // What a build keeps in memory goes with it.
                self.building = None;
            }
            assert!(turns < 20_000, "seed {}: memory stays full: {:?}", self.seed, self.engine().statistics());
        }
        self.txn = txn;
        self.is_in_txn = is_in_txn;
        self.reinstate();
    }

    fn schema(&self) -> Vec<(u32, u32)> {
        let of = |(&space_id, model): (&u32, &SpaceModel)| {
            model.indexes.keys().map(move |&index_id| (space_id, index_id)).collect::<Vec<_>>()
        };
        self.models.iter().flat_map(of).collect()
    }

    fn begin_checkpoint(&mut self) {
        if self.checkpoint.is_none() {
            let lsn = self.shared.appended.get();
            self.engine().begin_checkpoint(Lsn(lsn));
            self.checkpoint = Some((lsn, self.schema()));
        }
    }

    fn seal_one(&mut self) {
        let space = self.space(SPACES[self.pick(3) as usize]);
        self.engine().seal(&[space], Lsn(self.shared.appended.get()));
    }
}

struct EncodedKey {
    parts: Vec<u8>,
    part_count: u32,
}

impl EncodedKey {
    fn key(&self) -> DiskKey<'_> {
        DiskKey { parts: &self.parts, part_count: self.part_count }
    }
}

fn encode_key(key: &[Value]) -> EncodedKey {
    let mut parts = Vec::new();
    key.iter().for_each(|value| encode_value(&mut parts, value));
    EncodedKey { parts, part_count: key.len() as u32 }
}

/// An operation that adds to the count.
fn addition(number: u64, index_base: u32) -> Vec<u8> {
    let mut operations = Vec::new();
    msgpack::encode_array(&mut operations, 1);
    msgpack::encode_array(&mut operations, 3);
    msgpack::encode_str(&mut operations, b"+");
    msgpack::encode_uint(&mut operations, COUNT as u64 + u64::from(index_base));
    msgpack::encode_uint(&mut operations, number);
    operations
}

fn decoded(row: DiskRow) -> Row {
    row.with(Row::decode)
}
