//! Rows that expire: what is seen against a model, on both engines, while time passes, slices remove, transactions are open and the machine crashes.
#![allow(clippy::unwrap_used, reason = "a test")]

use database::{
    Config, Context, Database, Environment, ErrorCode, INDEX_ID, Key, Operation, ReplaceTrigger, SPACE_ID, ScanRequest,
    SessionKind, Space, Sweeper,
};
use runtime::{Clock, Loss, SeededRandomness, SimulatedFiles, fiber};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use storage::IteratorKind;
use tuple::{IndexId, SpaceId, Tuple, msgpack};

const SPACE: u32 = 512;
const ENGINES: [&str; 2] = ["memtx", "vinyl"];

/// Two clocks that are moved one by one.
#[derive(Default)]
struct Clocks {
    monotonic_ns: AtomicU64,
    wall_ms: AtomicU64,
}

impl Clocks {
    fn pass(&self, ms: u64) {
        self.monotonic_ns.fetch_add(ms * 1_000_000, Ordering::Relaxed);
        self.wall_ms.fetch_add(ms, Ordering::Relaxed);
    }

    fn ms(&self) -> u64 {
        self.wall_ms.load(Ordering::Relaxed)
    }
}

impl Clock for Clocks {
    fn monotonic_ns(&self) -> u64 {
        self.monotonic_ns.load(Ordering::Relaxed)
    }

    fn wall_ns(&self) -> u64 {
        self.ms() * 1_000_000
    }
}

struct World {
    files: SimulatedFiles,
    clocks: Arc<Clocks>,
    database: Rc<Database>,
}

fn open(files: &SimulatedFiles, clocks: &Arc<Clocks>) -> Rc<Database> {
    let config = Config {
        wal_dir: PathBuf::from("/db"),
        memtx_dir: PathBuf::from("/db"),
        vinyl_dir: PathBuf::from("/db"),
        vinyl_cache: 0,
        memtx_memory: 64 << 20,
        wal_writes_in_flight: 0,
        checkpoint_interval: 0,
        ..Config::default()
    };
    let environment = Environment {
        files: Arc::new(files.clone()),
        clock: Arc::clone(clocks) as Arc<dyn Clock>,
        randomness: Arc::new(SeededRandomness::new(1)),
        wake: Arc::new(|| {}),
    };
    let database = Database::new(config, environment).unwrap();
    database.open().unwrap();
    database
}

impl World {
    /// An empty database whose clock shows 1000 s.
    fn new() -> Self {
        let (files, clocks) = (SimulatedFiles::default(), Arc::<Clocks>::default());
        clocks.pass(1_000_000);
        let time = Cell::new(0);
        fiber::set_clock(Rc::new(move || {
            time.set(time.get() + 1);
            time.get()
        }));
        let database = open(&files, &clocks);
        World { files, clocks, database }
    }

    /// With a space `[id, value, expires in ms or nothing]` that has a unique index by value.
    fn with_space(engine: &str, has_index: bool) -> Self {
        let world = World::new();
        let format = r#"[{"name":"id","type":"unsigned"},{"name":"value","type":"unsigned"},{"name":"at","type":"number","is_nullable":true}]"#;
        let options = r#"{"checks":{"ttl":{"field":"at","unit":"ms","walk_rows_per_second":1000000}}}"#;
        world.insert(SPACE_ID.0, &format!(r#"[{SPACE},1,"s","{engine}",0,{options},{format}]"#)).unwrap();
        world.insert(INDEX_ID.0, &format!(r#"[{SPACE},0,"pk","tree",{{"unique":true}},[[0,"unsigned"]]]"#)).unwrap();
        world.insert(INDEX_ID.0, &format!(r#"[{SPACE},1,"value","tree",{{"unique":true}},[[1,"unsigned"]]]"#)).unwrap();
        if has_index {
            let part = r#"{"field":2,"type":"number","is_nullable":true}"#;
            world.insert(INDEX_ID.0, &format!(r#"[{SPACE},2,"at","tree",{{"unique":false}},[{part}]]"#)).unwrap();
        }
        world
    }

    fn insert(&self, space: u32, row: &str) -> database::Result<()> {
        let row = encode_text(row);
        self.work(move |database| {
            let context = request(database);
            let space = database.space(SpaceId(space))?;
            database.execute(&context, &space, Operation::Insert { tuple: &row }).map(|_| ())
        })
    }

    fn space(&self) -> Rc<Space> {
        self.database.space(SpaceId(SPACE)).unwrap()
    }

    /// Does what may wait.
    fn work<T: 'static>(&self, work: impl FnOnce(&Rc<Database>) -> T + 'static) -> T {
        in_fiber(&self.database, work)
    }

    /// The process dies, with what was not synced, and starts again.
    fn crash(&mut self) {
        self.files = self.files.crash(Loss::All);
        self.database = open(&self.files, &self.clocks);
    }
}

fn turn(database: &Database) {
    fiber::run_ready(1000);
    database.submit();
    database.turn();
}

fn in_fiber<T: 'static>(database: &Rc<Database>, work: impl FnOnce(&Rc<Database>) -> T + 'static) -> T {
    let result = Rc::new(RefCell::new(None));
    let (slot, there) = (Rc::clone(&result), Rc::clone(database));
    fiber::spawn("client", move || {
        let done = work(&there);
        *slot.borrow_mut() = Some(done);
    });
    for _ in 0..100_000 {
        if let Some(done) = result.take() {
            return done;
        }
        turn(database);
    }
    panic!("the work does not end");
}

fn request(database: &Database) -> Context {
    Context::for_request(database.open_session(SessionKind::Background, None))
}

fn encode_text(text: &str) -> Vec<u8> {
    encode(&serde_json::from_str(text).unwrap())
}

fn encode(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    database::encode_json(value, &mut out);
    out
}

fn shown(row: &[u8]) -> String {
    let mut text = String::new();
    msgpack::format_value(row, &mut text);
    text
}

fn select(database: &Database, context: &Context, index_id: u32, kind: IteratorKind, key: &Value) -> Vec<String> {
    let space = database.space(SpaceId(SPACE)).unwrap();
    let key = encode(key);
    let mut rows = Vec::new();
    let request = ScanRequest::new(IndexId(index_id), kind, Key::decode(&key).unwrap());
    database
        .select(context, &space, &request, |row| {
            rows.push(shown(row));
            true
        })
        .unwrap();
    rows
}

/// Every way to read all rows tells the same: those are returned.
fn all(database: &Database, context: &Context) -> Vec<String> {
    let space = database.space(SpaceId(SPACE)).unwrap();
    let rows = select(database, context, 0, IteratorKind::All, &json!([]));
    let everything = ScanRequest::new(IndexId::PRIMARY, IteratorKind::All, Key::EMPTY);
    let tuples = database.select_tuples(context, &space, &everything).unwrap();
    assert_eq!(tuples.iter().map(|row| shown(row.data())).collect::<Vec<_>>(), rows);
    assert_eq!(database.count(context, &space, &everything).unwrap(), rows.len() as u64);
    let mut cursor = database.cursor(context, &space, &everything).unwrap();
    let mut stepped = Vec::new();
    while let Some(row) = cursor.next(database, context).unwrap() {
        stepped.push(shown(row.data()));
    }
    assert_eq!(stepped, rows);
    let mut by_value = select(database, context, 1, IteratorKind::All, &json!([]));
    by_value.sort();
    let mut sorted = rows.clone();
    sorted.sort();
    assert_eq!(by_value, sorted);
    let last = ScanRequest { limit: 1, ..ScanRequest::new(IndexId::PRIMARY, IteratorKind::Req, Key::EMPTY) };
    let mut highest = None;
    database
        .select(context, &space, &last, |row| {
            highest = Some(shown(row));
            true
        })
        .unwrap();
    assert_eq!(highest.as_ref(), rows.last());
    let offset = ScanRequest { offset: 1, limit: 2, ..everything };
    let some = database.select_tuples(context, &space, &offset).unwrap();
    let expected: Vec<_> = rows.iter().skip(1).take(2).cloned().collect();
    assert_eq!(some.iter().map(|row| shown(row.data())).collect::<Vec<_>>(), expected);
    for id in 0..KEYS {
        let key = encode(&json!([id]));
        let key = Key::decode(&key).unwrap();
        let got = database.get(context, &space, IndexId::PRIMARY, key).unwrap().map(|row| shown(row.data()));
        let expected = rows.iter().find(|row| row.starts_with(&format!("[{id},")));
        assert_eq!(got.as_ref(), expected, "key {id}");
    }
    rows
}

// --- The model ---

const KEYS: u64 = 6;
const VALUES: u64 = 8;

#[derive(Clone, Debug, Default)]
struct Model {
    rows: BTreeMap<u64, (u64, Option<u64>)>,
}

impl Model {
    /// Time has come to a moment.
    fn pass(&mut self, now_ms: u64) {
        self.rows.retain(|_, (_, at)| at.is_none_or(|at| at > now_ms));
    }

    fn has_value(&self, value: u64, but: u64) -> bool {
        self.rows.iter().any(|(id, row)| *id != but && row.0 == value)
    }

    /// What an operation answers: the row, nothing, or that a key is taken.
    fn apply(&mut self, op: &Op) -> bool {
        match *op {
            Op::Insert(id, value, at) => {
                let fits = !self.rows.contains_key(&id) && !self.has_value(value, id);
                if fits {
                    self.rows.insert(id, (value, at));
                }
                fits
            }
            Op::Replace(id, value, at) => {
                let fits = !self.has_value(value, id);
                if fits {
                    self.rows.insert(id, (value, at));
                }
                fits
            }
            Op::Update(id, value) | Op::Upsert(id, value, _) if self.rows.contains_key(&id) => {
                let fits = !self.has_value(value, id);
                if let Some(row) = self.rows.get_mut(&id).filter(|_| fits) {
                    row.0 = value;
                }
                fits
            }
            Op::Update(..) => true,
            Op::Upsert(id, value, at) => self.apply(&Op::Insert(id, value, at)),
            Op::Delete(id) => {
                self.rows.remove(&id);
                true
            }
            Op::DeleteByValue(value) => {
                self.rows.retain(|_, row| row.0 != value);
                true
            }
        }
    }

    fn shown(&self) -> Vec<String> {
        let text = |(id, (value, at)): (&u64, &(u64, Option<u64>))| shown(&encode(&json!([id, value, at])));
        self.rows.iter().map(text).collect()
    }
}

#[derive(Clone, Debug)]
enum Op {
    Insert(u64, u64, Option<u64>),
    Replace(u64, u64, Option<u64>),
    /// Of the value.
    Update(u64, u64),
    Upsert(u64, u64, Option<u64>),
    Delete(u64),
    DeleteByValue(u64),
}

fn run(database: &Database, context: &Context, op: &Op) -> bool {
    let space = database.space(SpaceId(SPACE)).unwrap();
    let row = |id, value, at: Option<u64>| encode(&json!([id, value, at]));
    let (primary, by_value) = (IndexId::PRIMARY, IndexId(1));
    let ops = |value| encode(&json!([["=", 1, value]]));
    let result = match *op {
        Op::Insert(id, value, at) => {
            database.execute(context, &space, Operation::Insert { tuple: &row(id, value, at) })
        }
        Op::Replace(id, value, at) => {
            database.execute(context, &space, Operation::Replace { tuple: &row(id, value, at) })
        }
        Op::Update(id, value) => {
            let (key, ops) = (encode(&json!([id])), ops(value));
            let update = Operation::Update { index_id: primary, key: &key, ops: &ops, index_base: 0 };
            database.execute(context, &space, update)
        }
        Op::Upsert(id, value, at) => {
            let (tuple, ops) = (row(id, value, at), ops(value));
            database.execute(context, &space, Operation::Upsert { tuple: &tuple, ops: &ops, index_base: 0 })
        }
        Op::Delete(id) => {
            let key = encode(&json!([id]));
            database.execute(context, &space, Operation::Delete { index_id: primary, key: &key })
        }
        Op::DeleteByValue(value) => {
            let key = encode(&json!([value]));
            database.execute(context, &space, Operation::Delete { index_id: by_value, key: &key })
        }
    };
    match result {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.code(), ErrorCode::TupleFound as u32, "{error}");
            false
        }
    }
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn op(&mut self, now_ms: u64) -> Op {
        let (id, value) = (self.below(KEYS), self.below(VALUES));
        let at = match self.below(4) {
            0 => None,
            _ => Some(now_ms + self.below(40)),
        };
        match self.below(7) {
            0 | 1 => Op::Insert(id, value, at),
            2 => Op::Replace(id, value, at),
            3 => Op::Update(id, value),
            4 => Op::Upsert(id, value, at),
            5 => Op::Delete(id),
            _ => Op::DeleteByValue(value),
        }
    }
}

fn history(engine: &str, has_index: bool, seed: u64) {
    let mut world = World::with_space(engine, has_index);
    let (mut model, mut dice) = (Model::default(), Dice(seed));
    let mut sweeper = None;
    for step in 0..250 {
        let clocks = Arc::clone(&world.clocks);
        match dice.below(12) {
            0..5 => {
                let op = dice.op(clocks.ms());
                model.pass(clocks.ms());
                let expected = model.apply(&op);
                let done = op.clone();
                let found = world.work(move |database| run(database, &request(database), &done));
                assert_eq!(found, expected, "step {step} of seed {seed}: {op:?}");
            }
            5 => clocks.pass(dice.below(25)),
            6 => {
                // What is removed in slices is not missed, and what is not is not seen.
                let mut mine: Sweeper = sweeper.take().unwrap_or_else(|| Sweeper::new(&world.database));
                clocks.pass(dice.below(200));
                sweeper = Some(world.work(move |database| {
                    mine.sweep(database);
                    mine
                }));
            }
            7 => {
                let database = Rc::clone(&world.database);
                world.work(move |_| database.make_checkpoint()).unwrap();
            }
            8 => {
                sweeper = None;
                world.crash();
            }
            9 | 10 => {
                // In a transaction the moment is one.
                let begun_ms = clocks.ms();
                model.pass(begun_ms);
                let before = model.clone();
                let ops: Vec<_> = (0..1 + dice.below(5)).map(|_| dice.op(begun_ms + 5)).collect();
                let answers: Vec<_> = ops.iter().map(|op| model.apply(op)).collect();
                let (expected, commits, passes) = (model.shown(), dice.below(3) > 0, dice.below(30));
                let label = format!("step {step} of seed {seed}: {ops:?}");
                // Rows that the transaction itself lets expire by its own moment are gone at once: none, all are later.
                world.work(move |database| {
                    let context = request(database);
                    database.begin(&context).unwrap();
                    database.moment_ms(&context);
                    for (op, expected) in ops.iter().zip(answers) {
                        clocks.pass(passes);
                        assert_eq!(run(database, &context, op), expected, "{label}: {op:?}");
                    }
                    clocks.pass(passes);
                    assert_eq!(all(database, &context), expected, "{label}");
                    match commits {
                        true => database.commit(&context).unwrap(),
                        false => database.rollback(&context).unwrap(),
                    }
                });
                if !commits {
                    model = before;
                }
            }
            _ => {
                let at = Some(world.clocks.ms() + dice.below(20));
                let op = Op::Replace(dice.below(KEYS), dice.below(VALUES), at);
                model.pass(clocks.ms());
                let expected = model.apply(&op);
                assert_eq!(world.work(move |database| run(database, &request(database), &op)), expected);
            }
        }
        let expected = {
            model.pass(world.clocks.ms());
            model.shown()
        };
        let found = world.work(|database| all(database, &request(database)));
        assert_eq!(found, expected, "behind step {step} of seed {seed} on {engine}");
    }
}

#[test]
fn a_row_is_seen_until_its_moment_and_never_after() {
    for engine in ENGINES {
        for seed in 0..12 {
            history(engine, seed % 2 == 0, seed);
        }
    }
}

// --- Removal ---

#[test]
fn what_expires_is_removed_with_deletes_in_the_log() {
    for (engine, has_index) in [("memtx", true), ("memtx", false), ("vinyl", true), ("vinyl", false)] {
        let mut world = World::with_space(engine, has_index);
        for id in 0..300u64 {
            let at = if id % 3 == 0 { "null".to_string() } else { (1_000_000 + id).to_string() };
            world.insert(SPACE, &format!("[{id},{id},{at}]")).unwrap();
        }
        world.clocks.pass(5_000);
        for _ in 0..100 {
            world.clocks.pass(100);
            let database = Rc::clone(&world.database);
            world.work(move |_| {
                let mut sweeper = Sweeper::new(&database);
                while sweeper.sweep(&database) {}
            });
        }
        assert_eq!(world.database.expiry_counts().removed, 200, "{engine} {has_index}");
        if engine == "memtx" {
            assert_eq!(world.space().rows.len(), 100, "{has_index}");
        }
        let found = world.work(|database| all(database, &request(database)).len());
        assert_eq!(found, 100);
        // The clock of the next life is wrong: what was removed stays so.
        world.clocks.wall_ms.store(0, Ordering::Relaxed);
        world.crash();
        let found = world.work(|database| all(database, &request(database)).len());
        assert_eq!(found, 100, "{engine} {has_index}");
    }
}

/// Counted in rows and not in time: what one slice may do is bounded, however much has expired.
#[test]
fn a_hundred_thousand_rows_that_expire_at_once_stall_nobody() {
    let world = World::with_space("memtx", true);
    const ROWS: u64 = 100_000;
    let (context, space) = (request(&world.database), world.space());
    for id in 0..ROWS {
        let row = encode(&json!([id, id, 1_000_500]));
        world.database.execute(&context, &space, Operation::Replace { tuple: &row }).unwrap();
        if id % 1000 == 0 {
            turn(&world.database);
        }
    }
    turn(&world.database);
    world.clocks.pass(1_000);
    let mut sweeper = Sweeper::new(&world.database);
    let (mut slices, mut before) = (0, 0);
    let slice_rows = world.database.config.borrow().slice_rows as u64;
    loop {
        let has_more = sweeper.sweep(&world.database);
        let removed = world.database.expiry_counts().removed;
        assert!(removed - before <= slice_rows, "{} rows in one slice of {slice_rows}", removed - before);
        (slices, before) = (slices + 1, removed);
        turn(&world.database);
        if !has_more {
            break;
        }
    }
    assert_eq!(before, ROWS);
    assert!(slices as u64 >= ROWS / slice_rows);
    assert_eq!(space.rows.len(), 0);
}

#[test]
fn nothing_is_removed_while_nothing_may_be_written() {
    let world = World::with_space("memtx", false);
    world.insert(SPACE, "[1,1,1000100]").unwrap();
    world.clocks.pass(1_000);
    world.database.reconfigure(|config| config.read_only = true);
    let mut sweeper = Sweeper::new(&world.database);
    assert!(!sweeper.sweep(&world.database));
    assert_eq!(world.space().rows.len(), 1);
    assert!(world.work(|database| all(database, &request(database))).is_empty());
    world.database.reconfigure(|config| config.read_only = false);
    sweeper.sweep(&world.database);
    assert_eq!(world.space().rows.len(), 0);
}

/// The loop of the server removes by itself, and ends when no space asks for it.
#[test]
fn turns_remove_what_has_expired() {
    let world = World::with_space("memtx", true);
    world.insert(SPACE, "[1,1,1000100]").unwrap();
    world.insert(SPACE, "[2,2,null]").unwrap();
    world.clocks.pass(10_000);
    let now = Rc::new(Cell::new(0u64));
    let time = Rc::clone(&now);
    fiber::set_clock(Rc::new(move || time.get()));
    for _ in 0..20 {
        now.set(now.get() + 1_000_000_000);
        world.clocks.pass(1_000);
        turn(&world.database);
    }
    assert_eq!(world.space().rows.len(), 1);
    assert_eq!(world.database.expiry_counts().removed, 1);
}

/// The fiber that removes waits in the middle of a walk, and the database goes.
#[test]
fn a_walk_that_is_under_way_outlives_its_database() {
    let world = World::with_space("memtx", false);
    world.insert(SPACE, "[1,1,1000100]").unwrap();
    let now = Rc::new(Cell::new(0u64));
    let time = Rc::clone(&now);
    fiber::set_clock(Rc::new(move || time.get()));
    for id in 2..200 {
        world.insert(SPACE, &format!("[{id},{id},null]")).unwrap();
        turn(&world.database);
    }
    let space = Rc::downgrade(&world.space());
    drop(world);
    now.set(u64::MAX / 2);
    fiber::run_ready(1000);
    assert!(space.upgrade().is_none());
}

// --- Clocks ---

#[test]
fn a_clock_that_is_set_back_shows_nothing_again() {
    let world = World::with_space("memtx", false);
    world.insert(SPACE, "[1,1,1000100]").unwrap();
    let seen = || world.work(|database| all(database, &request(database)).len());
    assert_eq!(seen(), 1);
    world.clocks.pass(200);
    assert_eq!(seen(), 0);
    world.clocks.wall_ms.fetch_sub(100_000, Ordering::Relaxed);
    assert_eq!(seen(), 0);
    // Time goes on, at half its pace until the clocks meet.
    let before = world.database.now_ms();
    world.clocks.pass(1_000);
    assert_eq!(world.database.now_ms(), before + 500);
    world.clocks.pass(1_000);
    assert_eq!(world.database.now_ms(), before + 1_000);
    world.clocks.pass(1_000_000);
    assert_eq!(world.database.now_ms(), world.clocks.ms());
}

// --- Triggers, transactions ---

struct Watch(RefCell<Vec<String>>);

impl ReplaceTrigger for Watch {
    fn run(
        &self,
        _: &Context,
        old: Option<&Tuple>,
        new: Option<&Tuple>,
        _: &Rc<Space>,
        operation: &str,
    ) -> database::Result<Option<Tuple>> {
        let text = |row: Option<&Tuple>| row.map_or("-".to_string(), |row| shown(row.data()));
        self.0.borrow_mut().push(format!("{operation} {} {}", text(old), text(new)));
        Ok(new.cloned())
    }
}

#[test]
fn triggers_see_a_row_go_that_has_expired() {
    for engine in ENGINES {
        for is_before in [false, true] {
            let world = World::with_space(engine, false);
            let watch = Rc::new(Watch(RefCell::default()));
            let space = world.space();
            let triggers = if is_before { &space.before_replace } else { &space.on_replace };
            triggers.borrow_mut().push(Rc::clone(&watch) as Rc<dyn ReplaceTrigger>);
            world.insert(SPACE, "[1,1,1000100]").unwrap();
            world.insert(SPACE, "[2,2,1000100]").unwrap();
            watch.0.take();
            world.clocks.pass(200);
            world.insert(SPACE, "[1,3,null]").unwrap();
            let seen = watch.0.take();
            assert_eq!(seen, ["DELETE [1, 1, 1000100] -", "INSERT - [1, 3, null]"], "{engine} {is_before}");
            world.work(|database| run(database, &request(database), &Op::Upsert(2, 9, None)));
            let seen = watch.0.take();
            assert_eq!(seen, ["DELETE [2, 2, 1000100] -", "UPSERT - [2, 9, null]"]);
            world.insert(SPACE, "[4,4,1000300]").unwrap();
            world.clocks.pass(500);
            watch.0.take();
            world.work(|database| {
                let mut sweeper = Sweeper::new(database);
                while sweeper.sweep(database) {}
            });
            assert_eq!(watch.0.take(), ["DELETE [4, 4, 1000300] -"], "{engine} {is_before}");
        }
    }
}

/// A transaction that has waited and read keeps what it has seen, though others remove it.
#[test]
fn a_reader_keeps_its_rows_while_they_are_removed() {
    for engine in ENGINES {
        let world = World::with_space(engine, false);
        world.insert(SPACE, "[1,1,1000100]").unwrap();
        let (database, clocks) = (Rc::clone(&world.database), Arc::clone(&world.clocks));
        world.work(move |_| {
            let context = Rc::new(request(&database));
            fiber::set_local(Rc::clone(&context) as Rc<dyn std::any::Any>);
            database.begin(&context).unwrap();
            assert_eq!(all(&database, &context).len(), 1);
            clocks.pass(1_000);
            let other = Rc::clone(&database);
            let remover = fiber::spawn("remover", move || {
                let mut sweeper = Sweeper::new(&other);
                while sweeper.sweep(&other) {}
                assert!(all(&other, &request(&other)).is_empty());
            });
            fiber::join(remover);
            assert_eq!(all(&database, &context).len(), 1, "{engine}");
            database.commit(&context).unwrap();
            assert!(all(&database, &context).is_empty());
        });
    }
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let world = World::new();
    let format = r#"[{"name":"id","type":"unsigned"},{"name":"text","type":"string"}]"#;
    for (engine, ttl, what) in [
        ("memtx", r#"{"field":"gone"}"#, "field 'gone', which the format"),
        ("memtx", r#"{"field":"text"}"#, "of type string"),
        ("memtx", "7", "must be a map"),
        ("blackhole", r#"{"field":"id"}"#, "memtx and vinyl"),
    ] {
        let options = format!(r#"{{"checks":{{"ttl":{ttl}}}}}"#);
        let error =
            world.insert(SPACE_ID.0, &format!(r#"[{SPACE},1,"s","{engine}",0,{options},{format}]"#)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::WrongSpaceOptions as u32);
        assert!(error.to_string().contains(what), "{error}");
    }
    let error = world
        .insert(SPACE_ID.0, &format!(r#"[{SPACE},1,"s","memtx",0,{{"checks":{{"other":1}}}},{format}]"#))
        .unwrap_err();
    assert!(error.to_string().contains("unexpected option 'other'"), "{error}");
    // What versions of Tarantool wrote that had such an option.
    world.insert(SPACE_ID.0, &format!(r#"[{SPACE},1,"s","memtx",0,{{"checks":[{{"expr":"x"}}]}},{format}]"#)).unwrap();
}
