//! One run: an engine, what is expected of it, and the dice.

use crate::rows::{
    COUNT, GROUP, ID, IndexModel, Key, NAME, Row, SpaceModel, VALUE, Value, encode_value, key_def, parts,
};
use runtime::fiber;
use runtime::{Fault, ManualClock, Notifier, Randomness, SeededRandomness, SimulatedFiles};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use storage::lsm::{
    BuildStop, DetachedTrees, DiskBuild, DiskChange, DiskKey, DiskRow, DiskScan, FileRole, LsmConfig, LsmEngine,
    LsmEnvironment, LsmSpace, Need, Stop, TreeOptions, check_directory,
};
use storage::{IndexDef, IndexKind, IteratorKind};
use tuple::{Format, msgpack};

const DIR: &str = "/db/lsm";
/// With many indexes.
const WIDE: u32 = 512;
/// With one index, by text, so that rows are written without a look.
const BLIND: u32 = 513;
/// With a primary key of two fields.
const PAIR: u32 = 514;
const SPACES: [u32; 3] = [WIDE, BLIND, PAIR];
const KINDS: [IteratorKind; 7] = [
    IteratorKind::Eq,
    IteratorKind::Req,
    IteratorKind::All,
    IteratorKind::Lt,
    IteratorKind::Le,
    IteratorKind::Ge,
    IteratorKind::Gt,
];

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

/// A statement in force.
struct Done {
    space_id: u32,
    change: DiskChange,
    old: Option<Rc<Row>>,
    new: Option<Rc<Row>>,
    logged: Logged,
}

/// A scan that goes on between other work.
struct KeptScan {
    scan: DiskScan,
    space_id: u32,
    index_id: u32,
    kind: IteratorKind,
    prefix: Vec<Value>,
    /// What is left of it, if it shows one moment.
    held: Option<VecDeque<Rc<Row>>>,
    last: Option<Key>,
}

struct Building {
    build: DiskBuild,
    space_id: u32,
    index_id: u32,
    index: IndexModel,
    was_forbidden: bool,
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
            engine.poll(shared.appended.get(), shared.durable.get());
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
            450..=649 => self.read(),
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

    /// As the database: what the open transaction has done is taken back meanwhile.
    fn wait(&mut self, need: Need) -> storage::lsm::Fetched {
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

    fn wait_for(&mut self, stop: Stop) -> storage::lsm::Fetched {
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

    // Rows.

    fn random_name(&self) -> Value {
        let letters = [0, 0, 1, b'a', 0xff];
        let length = self.pick(5);
        Value::Text((0..length).map(|_| letters[self.pick(5) as usize]).collect())
    }

    fn random_row(&self) -> Row {
        let id = self.pick(self.ids);
        let value = if self.one_in(4) { Value::Nil } else { Value::Number(self.pick(self.ids * 2)) };
        let filling = if self.one_in(60) { self.pick(3_000) } else { self.pick(60) };
        Row {
            fields: [
                Value::Number(id),
                Value::Number(self.pick(6)),
                self.random_name(),
                value,
                Value::Number(self.pick(100)),
            ],
            filling: filling as usize,
        }
    }

    fn append(&mut self, logged: Logged) -> i64 {
        let lsn = self.shared.appended.get() + 1;
        self.shared.appended.set(lsn);
        self.log.push((lsn, logged));
        lsn
    }

    // Statements.

    fn statement(&mut self) {
        let space_id = SPACES[self.pick(3) as usize];
        let row = self.random_row();
        // Sometimes a change of a row that is there, in one field.
        let row = match self.models[&space_id].same_key(&row) {
            Some(old) if self.one_in(2) => {
                let field = self.pick(5) as usize;
                let mut changed = Row::clone(old);
                changed.fields[field] = row.fields[field].clone();
                changed
            }
            _ => row,
        };
        let logged = match self.pick(10) {
            0..=4 => Logged::Put(space_id, Rc::new(row)),
            5..=7 => Logged::Delete(space_id, Rc::new(row)),
            _ => {
                let number = self.pick(10);
                Logged::Add(space_id, Rc::new(row), number)
            }
        };
        self.execute(logged, None);
    }

    /// Does a statement unless a key is in the way, as is expected then, or one of `guarded` would be touched.
    fn execute(&mut self, logged: Logged, guarded: Option<&BTreeSet<(u32, u32, Key)>>) {
        let (space_id, row) = match &logged {
            Logged::Put(space_id, row) | Logged::Delete(space_id, row) | Logged::Add(space_id, row, _) => {
                (*space_id, Rc::clone(row))
            }
            _ => panic!("not a statement"),
        };
        self.make_room();
        let model = &self.models[&space_id];
        let old = model.same_key(&row).cloned();
        let new = match &logged {
            Logged::Put(..) => Some(Rc::clone(&row)),
            Logged::Delete(..) => None,
            Logged::Add(_, _, number) => Some(match &old {
                Some(old) => {
                    let mut changed = Row::clone(old);
                    changed.fields[COUNT] = Value::Number(old.count() + number);
                    Rc::new(changed)
                }
                None => Rc::clone(&row),
            }),
            _ => None,
        };
        if let Some(guarded) = guarded {
            let keys = |row: &Rc<Row>| model.guarded(space_id, row);
            if old.iter().chain(&new).flat_map(keys).any(|key| guarded.contains(&key)) {
                return;
            }
        }
        let space = self.space(space_id);
        let is_blind = space.has_one_index() && !self.one_in(4);
        let encoded = row.encode();
        let change = match &logged {
            Logged::Put(..) if is_blind => space.put(None, Some(&encoded)),
            Logged::Delete(..) if is_blind => {
                let key = encode_key(&row.key(&model.primary().own));
                space.delete_unseen(key.key())
            }
            Logged::Add(_, _, number) if is_blind && space.takes_note(&encoded) => {
                let index_base = self.pick(2) as u32;
                space.upsert_unseen(&encoded, &addition(*number, index_base), index_base)
            }
            _ => match self.look(space_id, &row, old.as_ref(), new.as_ref(), matches!(logged, Logged::Delete(..))) {
                Some(()) if old.is_some() || new.is_some() => {
                    let (old, new) = (old.as_ref().map(|row| row.encode()), new.as_ref().map(|row| row.encode()));
                    space.put(old.as_deref(), new.as_deref())
                }
                _ => return,
            },
        };
        self.change_models(space_id, old.as_ref(), new.as_ref());
        self.txn.push(Done { space_id, change, old, new, logged });
        if !self.is_in_txn {
            self.commit();
        }
    }

    /// Looks at what a statement has to know. None: a unique index is in its way.
    fn look(
        &mut self,
        space_id: u32,
        row: &Rc<Row>,
        old: Option<&Rc<Row>>,
        new: Option<&Rc<Row>>,
        is_delete: bool,
    ) -> Option<()> {
        let space = self.space(space_id);
        let encoded = row.encode();
        let found = self.until_ready(|_| Ok(space.get_same_key(&encoded)?.map(decoded)));
        assert_eq!(found.as_ref(), old.map(|old| &**old), "seed {}: the row that is there", self.seed);
        if is_delete {
            return Some(());
        }
        let new = new?;
        let expected: Vec<u32> = self.models[&space_id]
            .indexes
            .iter()
            .filter(|(id, index)| **id != 0 && index.is_unique && is_taken(index, new, old))
            .map(|(id, _)| *id)
            .collect();
        let (old_bytes, new_bytes) = (old.map(|old| old.encode()), new.encode());
        let found = self.until_ready(|_| {
            Ok(space.conflict(&new_bytes, old_bytes.as_deref())?.map(|(index_id, row)| (index_id, decoded(row))))
        });
        match found {
            None => {
                assert!(expected.is_empty(), "seed {}: {new:?} has a key twice, of {expected:?}", self.seed);
                Some(())
            }
            Some((index_id, other)) => {
                let of_building = self.building.as_ref().filter(|building| {
                    building.space_id == space_id
                        && building.index_id == index_id
                        && is_taken(&building.index, new, old)
                });
                let is_right = expected.contains(&index_id) || of_building.is_some();
                assert!(is_right, "seed {}: {other:?} is not in the way of {new:?}", self.seed);
                None
            }
        }
    }

    fn change_models(&mut self, space_id: u32, old: Option<&Rc<Row>>, new: Option<&Rc<Row>>) {
        self.models.get_mut(&space_id).unwrap().change(old, new);
        if let Some(building) = self.building.as_mut().filter(|building| building.space_id == space_id) {
            let index = &mut building.index;
            old.iter().for_each(|row| _ = index.rows.remove(&row.key(&index.order)).unwrap());
            new.iter().for_each(|row| _ = index.rows.insert(row.key(&index.order), Rc::clone(row)));
            building.was_forbidden |= index.is_unique && new.is_some_and(|new| is_taken(index, new, Some(new)));
        }
    }

    fn commit(&mut self) {
        self.is_in_txn = false;
        for done in std::mem::take(&mut self.txn) {
            self.append(done.logged);
        }
        if self.one_in(3) {
            self.catch_up();
        }
    }

    fn take_back_last(&mut self) {
        if let Some(done) = self.txn.pop() {
            self.spaces[&done.space_id].undo(&done.change);
            self.change_models(done.space_id, done.new.as_ref(), done.old.as_ref());
        }
    }

    fn roll_back(&mut self) {
        while !self.txn.is_empty() {
            self.take_back_last();
        }
        self.is_in_txn = false;
    }

    /// Others have their turn, with the open transaction out of force.
    fn suspend(&mut self) {
        let txn = std::mem::take(&mut self.txn);
        let mut guarded = BTreeSet::new();
        for done in txn.iter().rev() {
            self.spaces[&done.space_id].undo(&done.change);
            self.change_models(done.space_id, done.new.as_ref(), done.old.as_ref());
            for row in done.old.iter().chain(&done.new) {
                guarded.extend(self.models[&done.space_id].guarded(done.space_id, row));
            }
            // A row that is not there is guarded by its key.
            if let Logged::Put(_, row) | Logged::Delete(_, row) | Logged::Add(_, row, _) = &done.logged {
                guarded.extend(self.models[&done.space_id].guarded(done.space_id, row));
            }
        }
        self.is_in_txn = false;
        for _ in 0..self.pick(6) {
            self.done += 1;
            match self.pick(8) {
                0..=3 => {
                    let space_id = SPACES[self.pick(3) as usize];
                    let row = Rc::new(self.random_row());
                    let logged =
                        if self.one_in(3) { Logged::Delete(space_id, row) } else { Logged::Put(space_id, row) };
                    self.execute(logged, Some(&guarded));
                }
                4 => self.seal_one(),
                5 => self.read(),
                _ => self.turn(),
            }
        }
        for mut done in txn {
            done.change = self.spaces[&done.space_id].redo(&done.change);
            self.change_models(done.space_id, done.old.as_ref(), done.new.as_ref());
            self.txn.push(done);
        }
        self.is_in_txn = true;
    }

    // Reading.

    fn random_index(&self) -> (u32, u32) {
        let space_id = SPACES[self.pick(3) as usize];
        let ids: Vec<u32> = self.models[&space_id].indexes.keys().copied().collect();
        (space_id, ids[self.pick(ids.len() as u64) as usize])
    }

    fn random_prefix(&self, index: &IndexModel) -> (IteratorKind, Vec<Value>) {
        let mut prefix = self.random_row().key(&index.own);
        prefix.truncate(self.pick(index.own.len() as u64 + 1) as usize);
        (KINDS[self.pick(7) as usize], prefix)
    }

    fn read(&mut self) {
        let (space_id, index_id) = self.random_index();
        let space = self.space(space_id);
        let index = &self.models[&space_id].indexes[&index_id];
        if index.is_unique && self.one_in(2) {
            let key = self.random_row().key(&index.own);
            if key.contains(&Value::Nil) {
                return;
            }
            let expected = index.with_prefix(&key).next().cloned();
            let encoded = encode_key(&key);
            let found = self.until_ready(|_| Ok(space.get(index_id, encoded.key())?.map(decoded)));
            assert_eq!(found.as_ref(), expected.as_deref(), "seed {}: get {key:?} of {index_id}", self.seed);
            return;
        }
        let (kind, prefix) = self.random_prefix(index);
        let last = if self.one_in(5) {
            let all = index.scan(kind, &prefix, None);
            all.get(self.pick(20) as usize).cloned()
        } else {
            None
        };
        let last_key = last.as_ref().map(|row| row.key(&index.order));
        let expected = index.scan(kind, &prefix, last_key.as_ref());
        let encoded = encode_key(&prefix);
        let mut scan = match &last {
            Some(last) => space.scan_after(index_id, kind, encoded.key(), &last.encode()),
            None => space.scan(index_id, kind, encoded.key()),
        };
        let count = if self.one_in(20) { usize::MAX } else { 1 + self.pick(12) as usize };
        for at in 0..count {
            let row = self.next_of(&mut scan, at % 2 == 0);
            let expected = expected.get(at).map(|row| &**row);
            assert_eq!(row.as_ref(), expected, "seed {}: {kind:?} {prefix:?} of {space_id}.{index_id}", self.seed);
            if row.is_none() {
                break;
            }
        }
        let stretch = scan.seen();
        assert!(stretch.is_some());
    }

    /// The next row of a scan that nobody else is writing under.
    fn next_of(&mut self, scan: &mut DiskScan, holds: bool) -> Option<Row> {
        let mut fetched = Vec::new();
        loop {
            match scan.next_row() {
                Ok(row) => return row.map(decoded),
                Err(stop) => {
                    let holds = holds && self.txn.is_empty();
                    if holds {
                        scan.hold();
                    }
                    fetched.push(self.wait_for(stop));
                    if !holds {
                        scan.seek_again();
                    }
                }
            }
        }
    }

    fn keep_scan(&mut self) {
        if self.kept.len() >= 6 {
            return self.drop_kept();
        }
        let (space_id, index_id) = self.random_index();
        let index = &self.models[&space_id].indexes[&index_id];
        let (kind, prefix) = self.random_prefix(index);
        let mut scan = self.space(space_id).scan(index_id, kind, encode_key(&prefix).key());
        let held = self.one_in(2).then(|| {
            scan.hold();
            index.scan(kind, &prefix, None).into()
        });
        self.kept.push(KeptScan { scan, space_id, index_id, kind, prefix, held, last: None });
        let at = self.kept.len() - 1;
        if self.kept[at].held.is_none() {
            self.go_on_with(at);
        }
    }

    fn go_on_with_kept(&mut self) {
        if !self.kept.is_empty() {
            let at = self.pick(self.kept.len() as u64) as usize;
            self.go_on_with(at);
        }
    }

    fn go_on_with(&mut self, at: usize) {
        let mut kept = self.kept.swap_remove(at);
        let count = self.pick(8);
        if let Some(mut held) = kept.held.take() {
            for _ in 0..count {
                let row = self.next_of(&mut kept.scan, true);
                let expected = held.pop_front();
                assert_eq!(row.as_ref(), expected.as_deref(), "seed {}: a scan that was kept", self.seed);
            }
            kept.held = Some(held);
            return self.kept.push(kept);
        }
        kept.scan.seek_again();
        for _ in 0..count {
            let mut fetched = Vec::new();
            // What comes in before the entry that the scan stands at may be passed.
            let mut floor = None;
            let row = loop {
                match kept.scan.next_row() {
                    Ok(row) => break row.map(decoded),
                    Err(stop) => {
                        floor = self.rest_of(&kept, floor.as_ref()).first().map(|(key, _)| key.clone()).or(floor);
                        fetched.push(self.wait_for(stop));
                        // Others were faster.
                        (0..self.pick(4)).for_each(|_| self.statement());
                        kept.scan.seek_again();
                    }
                }
            };
            let all = self.rest_of(&kept, None);
            let expected = self.rest_of(&kept, floor.as_ref());
            let latest = expected.first().map_or(all.len(), |(key, _)| all.iter().position(|(k, _)| k == key).unwrap());
            let found = row
                .as_ref()
                .map_or(all.len(), |row| all.iter().position(|(_, other)| **other == *row).unwrap_or(usize::MAX));
            assert!(
                found <= latest && (floor.is_some() || found == 0 || all.is_empty()),
                "seed {}: a scan that goes on: {row:?}, expected {expected:?}",
                self.seed
            );
            let index = self.models[&kept.space_id].indexes.get(&kept.index_id);
            let (Some(row), Some(index)) = (row, index) else {
                // At its end for good.
                return;
            };
            kept.last = Some(row.key(&index.order));
        }
        self.kept.push(kept);
    }

    /// What is left of a scan, from a key on.
    fn rest_of(&self, kept: &KeptScan, from: Option<&Key>) -> Vec<(Key, Rc<Row>)> {
        let Some(index) = self.models[&kept.space_id].indexes.get(&kept.index_id) else { return Vec::new() };
        let rows = index.scan(kept.kind, &kept.prefix, kept.last.as_ref());
        let keyed = rows.into_iter().map(|row| (row.key(&index.order), row));
        let is_before =
            |key: &Key| from.is_some_and(|from| if kept.kind.is_reverse() { key > from } else { key < from });
        keyed.skip_while(|(key, _)| is_before(key)).collect()
    }

    fn drop_kept(&mut self) {
        if !self.kept.is_empty() {
            let at = self.pick(self.kept.len() as u64) as usize;
            self.kept.swap_remove(at);
        }
    }

    /// Every index, row by row.
    fn compare_all(&mut self) {
        for space_id in SPACES {
            let indexes: Vec<u32> = self.models[&space_id].indexes.keys().copied().collect();
            for index_id in indexes {
                let kind = if self.one_in(2) { IteratorKind::All } else { IteratorKind::Le };
                let expected = self.models[&space_id].indexes[&index_id].scan(kind, &[], None);
                let mut scan = self.space(space_id).scan(index_id, kind, encode_key(&[]).key());
                for row in expected {
                    let found = self.next_of(&mut scan, true);
                    assert_eq!(found.as_ref(), Some(&*row), "seed {}: all of {space_id}.{index_id}", self.seed);
                }
                assert_eq!(self.next_of(&mut scan, true), None, "seed {}: all of {space_id}.{index_id}", self.seed);
            }
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
        gone.into_iter().for_each(|(_, space_id, trees)| self.spaces[&space_id].discard(trees, 0));
    }

    fn turn(&mut self) {
        self.catch_up();
        self.clock.advance(self.pick(4_000_000));
        self.engine().poll(self.shared.appended.get(), self.shared.durable.get());
        let statistics = self.engine().statistics();
        self.runs_max = self.runs_max.max(statistics.run_count);
        self.ranges_max = self.ranges_max.max(statistics.range_count);
        let snapshot = self.checkpoint.take_if(|(lsn, _)| {
            *lsn <= self.shared.durable.get() && self.shared.engine.borrow().as_ref().unwrap().is_dumped(*lsn)
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
            self.engine().begin_checkpoint(lsn);
            self.checkpoint = Some((lsn, self.schema()));
        }
    }

    fn seal_one(&mut self) {
        let space = self.space(SPACES[self.pick(3) as usize]);
        self.engine().seal(&[space], self.shared.appended.get());
    }

    fn truncate(&mut self) {
        let space_id = SPACES[self.pick(3) as usize];
        if self.building.as_ref().is_some_and(|building| building.space_id == space_id) {
            return;
        }
        let space = self.space(space_id);
        let old = space.truncate(|_| None).unwrap();
        if self.one_in(3) {
            // The statement fails.
            let empty = space.exchange(old);
            return space.discard(empty, 0);
        }
        let lsn = self.append(Logged::Truncate(space_id));
        space.set_created(None, lsn);
        self.detached.push((lsn, space_id, old));
        self.models.get_mut(&space_id).unwrap().indexes.values_mut().for_each(|index| index.rows.clear());
    }

    // Definitions.

    fn def(space_id: u32, index_id: u32) -> IndexDef {
        let (own, is_unique) = index_of(space_id, index_id);
        let (primary, _) = index_of(space_id, 0);
        let key_def = key_def(own);
        let order = IndexModel::new(own, primary, is_unique).order;
        IndexDef { id: index_id, kind: IndexKind::Tree, is_unique, key_def, compare_def: crate::rows::key_def(&order) }
    }

    fn index_model(&self, space_id: u32, index_id: u32) -> IndexModel {
        let (own, is_unique) = index_of(space_id, index_id);
        let mut index = IndexModel::new(own, index_of(space_id, 0).0, is_unique);
        if let Some(primary) = self.models[&space_id].indexes.get(&0) {
            index.rows = primary.rows.values().map(|row| (row.key(&index.order), Rc::clone(row))).collect();
        }
        index
    }

    fn add_index_model(&mut self, space_id: u32, index_id: u32) {
        let index = self.index_model(space_id, index_id);
        self.models.get_mut(&space_id).unwrap().indexes.insert(index_id, index);
    }

    fn begin_build(&mut self) {
        let space_id = SPACES[self.pick(3) as usize];
        let ids = first_indexes(space_id).1;
        let index_id = ids.start + self.pick(u64::from(ids.end - ids.start)) as u32;
        if self.building.is_some() || self.models[&space_id].indexes.contains_key(&index_id) {
            return;
        }
        let index = self.index_model(space_id, index_id);
        let format = Rc::new(Format::new(space_id, Vec::new(), 0, &parts()).unwrap());
        let build = self.space(space_id).begin_build(format, vec![(Self::def(space_id, index_id), self.options)]);
        let was_forbidden = index.is_unique && index.has_duplicates();
        self.building = Some(Building { build: build.unwrap(), space_id, index_id, index, was_forbidden });
    }

    fn go_on_building(&mut self) {
        if self.one_in(300) {
            // The statement is cancelled.
            self.building = None;
        }
        let max = 1 + self.pick(40) as usize;
        let Some(mut building) = self.building.take() else { return };
        match building.build.build_some(max) {
            Ok(true) | Err(BuildStop::Busy) => self.building = Some(building),
            Ok(false) => {
                assert!(!building.index.is_unique || !building.index.has_duplicates(), "seed {}: built", self.seed);
                let Building { build, space_id, index_id, index, .. } = building;
                for (_, trees) in build.end() {
                    assert!(trees.is_none());
                }
                let lsn = self.append(Logged::Create(space_id, index_id));
                let space = self.space(space_id);
                space.set_created(Some(index_id), lsn);
                self.models.get_mut(&space_id).unwrap().indexes.insert(index_id, index);
                if !space.is_empty() {
                    self.engine().seal(&[space], lsn);
                }
            }
            Err(BuildStop::Stop(stop)) => {
                drop(self.wait_for(stop));
                self.building = Some(building);
            }
            Err(BuildStop::Duplicate { index_id }) => {
                assert!(building.was_forbidden && index_id == building.index_id, "seed {}: not built", self.seed);
            }
            Err(BuildStop::Format(error)) => panic!("seed {}: {error:?}", self.seed),
        }
    }

    fn drop_index(&mut self) {
        let space_id = SPACES[self.pick(3) as usize];
        let ids = first_indexes(space_id).1;
        let is_building = self.building.as_ref().is_some_and(|building| building.space_id == space_id);
        let there = ids.into_iter().find(|id| self.models[&space_id].indexes.contains_key(id));
        let Some(index_id) = there.filter(|_| !is_building) else { return };
        let space = self.space(space_id);
        let (def, trees) = space.drop_index(index_id).unwrap();
        if self.one_in(3) {
            // The statement fails.
            assert!(space.restore_index(&def, trees).is_none());
            return;
        }
        let lsn = self.append(Logged::Drop(space_id, index_id));
        self.detached.push((lsn, space_id, trees));
        self.models.get_mut(&space_id).unwrap().indexes.remove(&index_id);
    }

    // Restarts.

    /// Ends a life and begins another; in between the directory is looked through.
    fn restart(&mut self) {
        self.roll_back();
        if self.one_in(2) {
            self.come_to_rest();
        }
        self.close();
        for report in check_directory(&self.files, Path::new(DIR)).unwrap() {
            assert!(report.damage.is_empty(), "seed {}: {report:?}", self.seed);
        }
        self.open();
        self.compare_all();
    }

    /// Without readers and with everything dumped no memory is taken, and no file is left over.
    fn come_to_rest(&mut self) {
        self.kept.clear();
        self.building = None;
        let end = self.shared.appended.get();
        self.set_durable(end);
        self.engine().begin_checkpoint(end);
        let is_at_rest = |world: &World| {
            let statistics = world.engine().statistics();
            let reports = check_directory(&world.files, Path::new(DIR)).unwrap();
            world.engine().is_dumped(end)
                && statistics.level_bytes == 0
                && reports.iter().all(|report| report.role != FileRole::Orphan)
        };
        for turn in 0.. {
            self.clock.advance(10_000_000);
            self.engine().poll(end, end);
            if turn % 50 == 0 && is_at_rest(self) {
                break;
            }
            if self.plan.is_threaded {
                self.notifier.wait(Duration::from_millis(1));
                self.notifier.clear();
            }
            assert!(
                turn < 3_000,
                "seed {}: no rest: {:?} {:?} {:?}",
                self.seed,
                self.engine().statistics(),
                self.engine().failure().map(|error| error.to_string()),
                check_directory(&self.files, Path::new(DIR)).unwrap()
            );
        }
    }

    fn close(&mut self) {
        self.kept.clear();
        self.building = None;
        self.checkpoint = None;
        self.set_durable(self.shared.appended.get());
        if let Some(engine) = self.shared.engine.take() {
            let statistics = engine.statistics();
            self.dumps += statistics.counts.dumps;
            self.compactions += statistics.counts.compactions;
            engine.close();
        }
        self.spaces.clear();
    }

    fn open(&mut self) {
        let clock = Arc::clone(&self.clock);
        let notifier = Arc::clone(&self.notifier);
        let environment =
            LsmEnvironment { files: Arc::new(self.files.clone()), clock, wake: Arc::new(move || notifier.notify()) };
        let engine = LsmEngine::open(self.config.clone(), environment).unwrap_or_else(|error| panic!("{error}"));
        *self.shared.engine.borrow_mut() = Some(Rc::clone(&engine));
        for space_id in SPACES {
            let format = Format::new(space_id, Vec::new(), 0, &parts()).unwrap();
            self.spaces.insert(space_id, LsmSpace::new(&engine, space_id, format));
        }
        let mut unbuilt = Vec::new();
        let (lsn, indexes) = self.snapshot.clone();
        for (space_id, index_id) in indexes {
            self.replay_create(space_id, index_id, lsn, false, &mut unbuilt);
        }
        for (lsn, logged) in self.log.clone() {
            self.replay(lsn, &logged, &mut unbuilt);
        }
        for (space_id, index_id) in unbuilt {
            self.build_at_once(space_id, index_id);
        }
        engine.forget_unclaimed();
        if self.plan.is_cold {
            engine.serve(Arc::clone(&self.notifier)).unwrap();
        }
    }

    fn replay_create(&self, space_id: u32, index_id: u32, lsn: i64, is_log: bool, unbuilt: &mut Vec<(u32, u32)>) {
        let space = &self.spaces[&space_id];
        let with_primary = (index_id != 0).then(|| space.primary_dumped_lsn().unwrap_or(-1));
        let state = self.engine().claim(space_id, index_id, lsn, is_log, with_primary);
        unbuilt.retain(|other| *other != (space_id, index_id));
        if state.is_none() && index_id != 0 && !space.is_empty() {
            unbuilt.push((space_id, index_id));
        }
        space.create_index(Self::def(space_id, index_id), self.options, state).unwrap();
        space.set_created(Some(index_id), lsn);
        space.begin_with_primary();
    }

    fn replay(&self, lsn: i64, logged: &Logged, unbuilt: &mut Vec<(u32, u32)>) {
        let engine = self.engine();
        match *logged {
            Logged::Create(space_id, index_id) => self.replay_create(space_id, index_id, lsn, true, unbuilt),
            Logged::Drop(space_id, index_id) => {
                unbuilt.retain(|other| *other != (space_id, index_id));
                let (_, trees) = self.spaces[&space_id].drop_index(index_id).unwrap();
                self.spaces[&space_id].discard(trees, 0);
            }
            Logged::Truncate(space_id) => {
                let space = &self.spaces[&space_id];
                let dumped_lsn = Cell::new(None);
                let claim = |index_id| {
                    let wanted = dumped_lsn.get().or((index_id != 0).then_some(-1));
                    let state = engine.claim(space_id, index_id, lsn, true, wanted)?;
                    dumped_lsn.set(Some(state.dumped_lsn));
                    Some(state)
                };
                let old = space.truncate(claim).unwrap();
                space.set_created(None, lsn);
                space.begin_with_primary();
                space.discard(old, 0);
            }
            Logged::Put(space_id, _) | Logged::Delete(space_id, _) | Logged::Add(space_id, ..)
                if lsn > self.spaces[&space_id].dumped_lsn() =>
            {
                self.replay_statement(space_id, logged);
                if engine.is_full() {
                    engine.dump_all(lsn).unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
                }
            }
            _ => {}
        }
    }

    fn replay_statement(&self, space_id: u32, logged: &Logged) {
        let space = &self.spaces[&space_id];
        let (Logged::Put(_, row) | Logged::Delete(_, row) | Logged::Add(_, row, _)) = logged else { return };
        let encoded = row.encode();
        if space.has_one_index() {
            match logged {
                Logged::Put(..) => _ = space.put(None, Some(&encoded)),
                Logged::Delete(..) => {
                    space.delete_unseen(encode_key(&row.key(index_of(space_id, 0).0)).key());
                }
                Logged::Add(_, _, number) if space.takes_note(&encoded) => {
                    space.upsert_unseen(&encoded, &addition(*number, 0), 0);
                }
                _ => self.replay_seen(space, row, logged),
            }
            return;
        }
        self.replay_seen(space, row, logged);
    }

    fn replay_seen(&self, space: &LsmSpace, row: &Row, logged: &Logged) {
        let old = match space.get_same_key(&row.encode()) {
            Ok(old) => old.map(decoded),
            Err(_) => panic!("nobody waits during a start"),
        };
        let new = match (logged, &old) {
            (Logged::Delete(..), _) => None,
            (Logged::Add(_, _, number), Some(old)) => {
                let mut changed = old.clone();
                changed.fields[COUNT] = Value::Number(old.count() + number);
                Some(changed)
            }
            _ => Some(row.clone()),
        };
        if old.is_some() || new.is_some() {
            space.put(old.map(|row| row.encode()).as_deref(), new.map(|row| row.encode()).as_deref());
        }
    }

    fn build_at_once(&self, space_id: u32, index_id: u32) {
        let space = &self.spaces[&space_id];
        let format = Rc::new(Format::new(space_id, Vec::new(), 0, &parts()).unwrap());
        let mut build = space.begin_build(format, vec![(Self::def(space_id, index_id), self.options)]).unwrap();
        loop {
            match build.build_some(100) {
                Ok(false) => break,
                Ok(true) => {}
                Err(BuildStop::Busy) => {
                    runtime::pause(100_000);
                    let end = self.shared.appended.get();
                    self.engine().poll(end, end);
                }
                Err(_) => panic!("seed {}: an index that was there cannot be built", self.seed),
            }
        }
        let created_lsn = space.created_lsn(index_id);
        for (_, trees) in build.end() {
            trees.into_iter().for_each(|trees| space.discard(trees, 0));
        }
        space.set_created(Some(index_id), created_lsn);
        space.begin_with_primary();
    }
}

/// True if another row than `old` has a key of `new` in a unique index.
fn is_taken(index: &IndexModel, new: &Rc<Row>, old: Option<&Rc<Row>>) -> bool {
    let own = new.key(&index.own);
    let primary = |row: &Row| row.key(&index.order);
    let is_kept = |row: &Rc<Row>| old.is_some_and(|old| primary(row) == primary(old));
    !own.contains(&Value::Nil) && index.with_prefix(&own).any(|row| !is_kept(row))
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
