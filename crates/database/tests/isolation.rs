//! Transactions that survive waits: whatever they do and whoever commits between, it is as if each had run alone at its commit.
#![allow(clippy::unwrap_used, reason = "a test")]

use database::{
    Config, Context, Cursor, Database, Environment, ErrorCode, INDEX_ID, Key, Operation, ReplaceTrigger, SEQUENCE_ID,
    SPACE_ID, Savepoint, ScanRequest, SessionKind, Space,
};
use runtime::{
    Clock, Fault, FileSystem, MachineConfig, ManualClock, PacedFiles, Randomness, SeededRandomness, SimulatedFiles,
    Simulation, fiber,
};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use storage::IteratorKind;
use tuple::{IndexId, SpaceId, msgpack};

/// Tree indexes: primary, unique, not unique.
const TREES: u32 = 512;
/// A hash as primary index, a unique one with nulls.
const HASHES: u32 = 513;
/// Not logged.
const TEMPORARY: u32 = 514;
/// One index, so that on disk most statements look at nothing.
const BLIND: u32 = 515;
/// Where the rows of some spaces lie.
const ENGINES: [&str; 2] = ["memtx", "vinyl"];
const CONFLICT: u32 = ErrorCode::TransactionConflict as u32;

thread_local! {
    /// Statements that a transaction may have which waits and is rolled back; what has more keeps them to itself.
    static IN_PLACE_MAX: Cell<usize> = const { Cell::new(16) };
}

fn choose_in_place_max(seed: u64) {
    IN_PLACE_MAX.set([16, 0, 2][seed as usize % 3]);
}

/// Rows in memory and on disk; transactions that are rolled back while they wait, and such that keep their writes to themselves.
fn on_each_engine(test: impl Fn(&str)) {
    for in_place_max in [16, 0, 2] {
        IN_PLACE_MAX.set(in_place_max);
        ENGINES.into_iter().for_each(&test);
    }
}

fn open(files: &SimulatedFiles) -> Rc<Database> {
    open_on(Arc::new(files.clone()), Arc::new(ManualClock::default()), Config::default().vinyl_cache)
}

fn open_on(files: Arc<dyn FileSystem>, clock: Arc<dyn Clock>, vinyl_cache: u64) -> Rc<Database> {
    let config = Config {
        vinyl_cache,
        // Without filters every run is looked into.
        vinyl_bloom_fpr: 1.0,
        wal_dir: PathBuf::from("/db"),
        memtx_dir: PathBuf::from("/db"),
        vinyl_dir: PathBuf::from("/db"),
        memtx_memory: 64 << 20,
        wal_writes_in_flight: 0,
        checkpoint_interval: 0,
        ..Config::default()
    };
    let environment =
        Environment { files, clock, randomness: Arc::new(SeededRandomness::new(1)), wake: Arc::new(|| {}) };
    let database = Database::new(config, environment).unwrap();
    database.open().unwrap();
    database.limits.in_place_max.set(IN_PLACE_MAX.get());
    database
}

fn encode(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => msgpack::encode_nil(out),
        Value::Bool(value) => msgpack::encode_bool(out, *value),
        Value::Number(value) => msgpack::encode_int(out, value.as_i64().unwrap()),
        Value::String(value) => msgpack::encode_str(out, value.as_bytes()),
        Value::Array(values) => {
            msgpack::encode_array(out, values.len() as u32);
            values.iter().for_each(|value| encode(value, out));
        }
        Value::Object(pairs) => {
            msgpack::encode_map(out, pairs.len() as u32);
            for (key, value) in pairs {
                msgpack::encode_str(out, key.as_bytes());
                encode(value, out);
            }
        }
    }
}

fn bytes(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    encode(value, &mut out);
    out
}

fn text(row: &[u8]) -> String {
    let mut text = String::new();
    msgpack::format_value(row, &mut text);
    text
}

/// What one statement does.
#[derive(Clone, Debug)]
enum Op {
    Insert(u32, Value),
    Replace(u32, Value),
    Update(u32, u32, Value, Value),
    Upsert(u32, Value, Value),
    Delete(u32, u32, Value),
    Get(u32, u32, Value),
    Select(u32, u32, IteratorKind, Value, u64, u64),
    Count(u32, u32, IteratorKind, Value),
    /// Begins a scan that goes on between other statements.
    Iterate(u32, IteratorKind, Value),
    Next,
    Savepoint,
    RollbackTo,
    Truncate(u32),
}

/// A transaction's owner.
struct Client {
    context: Rc<Context>,
    /// A scan that goes on between other statements.
    cursor: Option<Cursor>,
    savepoint: Option<Savepoint>,
}

impl Client {
    fn new(database: &Database) -> Self {
        let context = Rc::new(Context::for_request(database.open_session(SessionKind::Background, None)));
        Client { context, cursor: None, savepoint: None }
    }

    fn begin(&mut self, database: &Database) {
        database.begin(&self.context).unwrap();
        (self.cursor, self.savepoint) = (None, None);
    }

    /// Does it and tells what came of it, in words.
    fn run(&mut self, database: &Database, op: &Op) -> Result<String, u32> {
        self.try_run(database, op).map_err(|error| error.code())
    }

    fn try_run(&mut self, database: &Database, op: &Op) -> database::Result<String> {
        let context = &self.context;
        let found = |row: Option<tuple::Tuple>| row.map_or("nothing".to_string(), |row| text(row.data()));
        let execute =
            |space, operation: Operation<'_>| database.execute(context, &database.space(space)?, operation).map(found);
        match op {
            Op::Insert(space, row) => execute(SpaceId(*space), Operation::Insert { tuple: &bytes(row) }),
            Op::Replace(space, row) => execute(SpaceId(*space), Operation::Replace { tuple: &bytes(row) }),
            Op::Update(space, index_id, key, ops) => {
                let (key, ops) = (bytes(key), bytes(ops));
                execute(
                    SpaceId(*space),
                    Operation::Update { index_id: IndexId(*index_id), key: &key, ops: &ops, index_base: 0 },
                )
            }
            Op::Upsert(space, row, ops) => {
                execute(SpaceId(*space), Operation::Upsert { tuple: &bytes(row), ops: &bytes(ops), index_base: 0 })
            }
            Op::Delete(space, index_id, key) => {
                execute(SpaceId(*space), Operation::Delete { index_id: IndexId(*index_id), key: &bytes(key) })
            }
            Op::Get(space, index_id, key) => {
                let key = bytes(key);
                database
                    .get(context, &database.space(SpaceId(*space))?, IndexId(*index_id), Key::decode(&key)?)
                    .map(found)
            }
            Op::Select(space, index_id, kind, key, offset, limit) => {
                let (key, mut rows) = (bytes(key), Vec::new());
                let space = database.space(SpaceId(*space))?;
                let key = Key::decode(&key)?;
                let request =
                    ScanRequest { index_id: IndexId(*index_id), kind: *kind, key, offset: *offset, limit: *limit };
                database.select(context, &space, &request, |row| {
                    rows.push(text(row));
                    true
                })?;
                if space.id == HASHES && *index_id == 0 {
                    // In any order.
                    rows.sort();
                }
                Ok(rows.join(" "))
            }
            Op::Count(space, index_id, kind, key) => {
                let key = bytes(key);
                let request = ScanRequest::new(IndexId(*index_id), *kind, Key::decode(&key)?);
                let count = database.count(context, &database.space(SpaceId(*space))?, &request)?;
                Ok(count.to_string())
            }
            Op::Iterate(index_id, kind, key) => {
                let (space, key) = (database.space(SpaceId(TREES))?, bytes(key));
                let request = ScanRequest::new(IndexId(*index_id), *kind, Key::decode(&key)?);
                self.cursor = Some(database.cursor(context, &space, &request)?);
                Ok(String::new())
            }
            Op::Next => match &mut self.cursor {
                Some(cursor) => cursor.next(database, context).map(found),
                None => database.resume(context).map(|()| String::new()),
            },
            Op::Savepoint => {
                self.savepoint = Some(database.savepoint(context, None)?);
                Ok(String::new())
            }
            Op::Truncate(space) => {
                database.truncate(context, &database.space(SpaceId(*space))?).map(|()| String::new())
            }
            Op::RollbackTo => match self.savepoint.take() {
                Some(savepoint) => database.rollback_to_savepoint(context, &savepoint).map(|()| String::new()),
                None => database.resume(context).map(|()| String::new()),
            },
        }
    }
}

fn create_spaces(database: &Database) {
    create_spaces_in(database, "memtx");
}

/// `engine`: where the rows of two of them lie.
fn create_spaces_in(database: &Database, engine: &str) {
    let mut admin = Client::new(database);
    let mut insert = |space, row: Value| admin.run(database, &Op::Insert(space, row)).unwrap();
    for (id, name, engine, options) in [
        (TREES, "trees", engine, json!({})),
        (HASHES, "hashes", "memtx", json!({})),
        (TEMPORARY, "temporary", "memtx", json!({"temporary": true})),
        (BLIND, "blind", engine, json!({})),
    ] {
        insert(SPACE_ID.0, json!([id, 1, name, engine, 0, options, []]));
    }
    let unique = json!({"unique": true});
    insert(INDEX_ID.0, json!([TREES, 0, "primary", "tree", unique, [[0, "unsigned"]]]));
    insert(INDEX_ID.0, json!([TREES, 1, "unique", "tree", unique, [[1, "unsigned"], [2, "unsigned"]]]));
    insert(INDEX_ID.0, json!([TREES, 2, "any", "tree", {"unique": false}, [[2, "unsigned"]]]));
    insert(INDEX_ID.0, json!([HASHES, 0, "primary", "hash", unique, [[0, "string"]]]));
    let nullable = json!([{"field": 1, "type": "unsigned", "is_nullable": true}]);
    insert(INDEX_ID.0, json!([HASHES, 1, "nullable", "tree", unique, nullable]));
    insert(INDEX_ID.0, json!([TEMPORARY, 0, "primary", "tree", unique, [[0, "unsigned"]]]));
    insert(INDEX_ID.0, json!([BLIND, 0, "primary", "tree", unique, [[0, "unsigned"]]]));
}

struct Chooser(SeededRandomness);

impl Chooser {
    fn below(&self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    fn row(&self, space: u32, keys: u64) -> Value {
        match space {
            HASHES => {
                let number = if self.below(3) == 0 { Value::Null } else { json!(self.below(keys)) };
                json!([format!("k{}", self.below(keys)), number, self.below(4)])
            }
            _ => json!([self.below(keys), self.below(4), self.below(4), self.below(4)]),
        }
    }

    /// A full key of a unique index.
    fn key(&self, space: u32, keys: u64) -> (u32, Value) {
        match (space, self.below(3)) {
            (TREES, 0) => (1, json!([self.below(4), self.below(4)])),
            (HASHES, 0) => (1, json!([self.below(keys)])),
            (HASHES, _) => (0, json!([format!("k{}", self.below(keys))])),
            _ => (0, json!([self.below(keys)])),
        }
    }

    /// A scan of a tree: index, kind and key.
    fn scan(&self, keys: u64) -> (u32, IteratorKind, Value) {
        let kind = IteratorKind::from_code(self.below(7)).unwrap();
        match self.below(6) {
            0 => (0, kind, json!([self.below(keys)])),
            1 => (1, kind, json!([self.below(4)])),
            2 => (1, kind, json!([self.below(4), self.below(4)])),
            3 => (2, kind, json!([self.below(4)])),
            _ => (self.below(3) as u32, kind, json!([])),
        }
    }

    fn op(&self, keys: u64) -> Op {
        let space = [TREES, TREES, HASHES, TEMPORARY, BLIND, BLIND][self.below(6) as usize];
        match self.below(16) {
            0 | 1 => Op::Insert(space, self.row(space, keys)),
            2 | 3 => Op::Replace(space, self.row(space, keys)),
            4 | 5 => {
                let (index_id, key) = self.key(space, keys);
                let number = self.below(4);
                Op::Update(space, index_id, key, json!([["=", 1 + self.below(2), number]]))
            }
            6 => {
                // Some would make a negative number, some would move the row: what comes of it depends on the row that is there.
                let (op, field) = (["+", "-"][self.below(2) as usize], [2, 2, 0][self.below(3) as usize]);
                // Operations that are noted for later fail, if they do, without a word.
                let (op, field) = if space == BLIND { ("+", 2) } else { (op, field) };
                Op::Upsert(space, self.row(space, keys), json!([[op, field, 1]]))
            }
            7 => {
                let (index_id, key) = self.key(space, keys);
                Op::Delete(space, index_id, key)
            }
            8 => {
                let (index_id, key) = self.key(space, keys);
                Op::Get(space, index_id, key)
            }
            9 if space == HASHES => Op::Select(HASHES, 0, IteratorKind::All, json!([]), 0, 100),
            9 | 10 => {
                let (index_id, kind, key) = self.scan(keys);
                Op::Select(TREES, index_id, kind, key, self.below(2), 1 + self.below(3))
            }
            11 => {
                let (index_id, kind, key) = self.scan(keys);
                Op::Count(TREES, index_id, kind, key)
            }
            12 => {
                let (index_id, kind, key) = self.scan(keys);
                Op::Iterate(index_id, kind, key)
            }
            13 => Op::Next,
            14 => Op::Savepoint,
            _ => Op::RollbackTo,
        }
    }
}

type Outcome = Result<String, u32>;

/// Everything in all indexes, in words.
fn contents(database: &Database) -> Vec<String> {
    let mut reader = Client::new(database);
    [(TREES, 0), (TREES, 1), (TREES, 2), (HASHES, 0), (HASHES, 1), (TEMPORARY, 0), (BLIND, 0)]
        .map(|(space, index_id)| {
            let all = Op::Select(space, index_id, IteratorKind::All, json!([]), 0, 1000);
            reader.run(database, &all).unwrap()
        })
        .to_vec()
}

/// What transactions did.
#[derive(Default)]
struct History {
    /// In the order of their commits.
    committed: Vec<Vec<(Op, Outcome)>>,
    /// Those that were given up, with the number of commits before their last statement that was answered.
    abandoned: Vec<(usize, Vec<(Op, Outcome)>)>,
}

/// Runs everything alone: what has committed in the order of the commits, what was given up where it had seen the database last.
fn replay(history: &History, engine: &str) -> Rc<Database> {
    let database = open(&SimulatedFiles::default());
    create_spaces_in(&database, engine);
    let mut client = Client::new(&database);
    let run = |client: &mut Client, txn: &[(Op, Outcome)]| {
        client.begin(&database);
        for (op, outcome) in txn {
            assert_eq!(&client.run(&database, op), outcome, "{op:?} of {txn:#?}");
        }
    };
    let mut abandoned = history.abandoned.clone();
    abandoned.sort_by_key(|(at, _)| *at);
    let mut abandoned = abandoned.iter().peekable();
    for at in 0..=history.committed.len() {
        while let Some((_, txn)) = abandoned.next_if(|(before, _)| *before == at) {
            run(&mut client, txn);
            database.rollback(&client.context).unwrap();
        }
        if let Some(txn) = history.committed.get(at) {
            run(&mut client, txn);
            database.commit(&client.context).unwrap();
        }
    }
    database
}

/// Which transactions read in a view, and the number of commits that their views show.
struct Pins(Vec<(Rc<Context>, Cell<Option<usize>>)>);

impl Pins {
    fn of(contexts: impl Iterator<Item = Rc<Context>>) -> Self {
        Pins(contexts.map(|context| (context, Cell::new(None))).collect())
    }

    /// The last of so many commits is just over: who has a view since shows the state before it.
    fn note_commit(&self, database: &Database, committed: usize) {
        for (context, pin) in &self.0 {
            match database.is_in_view(context) {
                true if pin.get().is_none() => pin.set(Some(committed - 1)),
                true => {}
                false => pin.set(None),
            }
        }
    }

    /// The number of commits before what a transaction saw, which has ended; without a view `seen`.
    fn take(&self, client: usize, seen: usize) -> (usize, bool) {
        let pin = self.0[client].1.take();
        (pin.unwrap_or(seen), pin.is_some())
    }
}

/// Transactions of several clients, suspended whenever another one has its turn. Returns how many committed, how many met a conflict, and how many
/// committed what they had read in a view.
fn run_seed(seed: u64, engine: &str) -> (usize, usize, usize) {
    let chooser = Chooser(SeededRandomness::new(seed));
    choose_in_place_max(seed);
    let database = open(&SimulatedFiles::default());
    create_spaces_in(&database, engine);
    let keys = if seed.is_multiple_of(2) { 6 } else { 24 };
    // With what each has done in its transaction, and how many had committed then.
    let mut clients: [_; 4] = std::array::from_fn(|_| (Client::new(&database), Vec::new(), 0));
    let pins = Pins::of(clients.iter().map(|(client, ..)| Rc::clone(&client.context)));
    let mut history = History::default();
    let (mut conflicts, mut views) = (0, 0);
    for _ in 0..400 {
        let at = chooser.below(4) as usize;
        let (client, done, seen) = &mut clients[at];
        // A few statements in a turn.
        for _ in 0..1 + chooser.below(3) {
            if !client.context.is_in_txn() {
                done.clear();
                if chooser.below(4) == 0 {
                    // Without a transaction: the short way.
                    let truncated = [TREES, HASHES, TEMPORARY][chooser.below(3) as usize];
                    let op = if chooser.below(20) == 0 { Op::Truncate(truncated) } else { chooser.op(keys) };
                    if !matches!(op, Op::Iterate(..) | Op::Next | Op::Savepoint | Op::RollbackTo) {
                        let outcome = client.run(&database, &op);
                        history.committed.push(vec![(op, outcome)]);
                        pins.note_commit(&database, history.committed.len());
                    }
                    continue;
                }
                client.begin(&database);
                pins.take(at, 0);
            }
            match chooser.below(12) {
                0 | 1 => match database.commit(&client.context) {
                    Ok(()) => match pins.take(at, 0) {
                        // It comes where its view was.
                        (shown, true) => {
                            history.abandoned.push((shown, std::mem::take(done)));
                            views += 1;
                        }
                        _ => {
                            history.committed.push(std::mem::take(done));
                            pins.note_commit(&database, history.committed.len());
                        }
                    },
                    Err(error) => {
                        assert_eq!(error.code(), CONFLICT);
                        history.abandoned.push((pins.take(at, *seen).0, std::mem::take(done)));
                        conflicts += 1;
                    }
                },
                2 => {
                    database.rollback(&client.context).unwrap();
                    history.abandoned.push((pins.take(at, *seen).0, std::mem::take(done)));
                }
                _ => {
                    let op = chooser.op(keys);
                    let outcome = client.run(&database, &op);
                    if outcome == Err(CONFLICT) {
                        conflicts += 1;
                        let again = client.run(&database, &Op::Get(TREES, 0, json!([1])));
                        assert_eq!(again, Err(CONFLICT), "what it sees is not for use");
                        assert!(client.context.is_in_txn());
                        database.rollback(&client.context).unwrap();
                        history.abandoned.push((pins.take(at, *seen).0, std::mem::take(done)));
                    } else {
                        done.push((op, outcome));
                        *seen = history.committed.len();
                    }
                }
            }
        }
        database.suspend(&client.context);
        if chooser.below(8) == 0 {
            database.submit();
            database.turn();
        }
    }
    clients.iter().for_each(|(client, ..)| database.abandon(&client.context));
    assert_eq!(database.suspended(), 0);
    let counts = database.view_counts();
    assert_eq!((counts.open, counts.bytes, counts.ended), (0, 0, 0), "nothing is left of views");
    assert_eq!(database.statistics.conflicts.get(), conflicts as u64);
    assert_eq!(contents(&database), contents(&replay(&history, engine)), "seed {seed}");
    (history.committed.len(), conflicts, views)
}

fn run_seeds(engine: &str) {
    let (mut committed, mut conflicts, mut views) = (0, 0, 0);
    for seed in 0..150 {
        let (more, other, in_views) = run_seed(seed, engine);
        committed += more;
        conflicts += other;
        views += in_views;
    }
    assert!(committed > 2 * conflicts && conflicts > 1000, "{committed} committed, {conflicts} conflicts");
    assert!(views > 50, "{views} committed in views");
}

#[test]
fn transactions_that_wait_are_serializable_in_the_order_of_their_commits() {
    run_seeds("memtx");
}

#[test]
fn so_are_those_on_disk() {
    run_seeds("vinyl");
}

/// A client in a fiber, which waits wherever a statement does. `history` has what came of it.
fn work(database: &Rc<Database>, seed: u64, history: &RefCell<History>, pins: &RefCell<Pins>) {
    let chooser = Chooser(SeededRandomness::new(seed));
    let keys = 12;
    let mut client = Client::new(database);
    fiber::set_local(Rc::clone(&client.context) as Rc<dyn std::any::Any>);
    let at = pins.borrow().0.len();
    pins.borrow_mut().0.push((Rc::clone(&client.context), Cell::new(None)));
    let note_commit = || pins.borrow().note_commit(database, history.borrow().committed.len());
    for _ in 0..12 {
        if chooser.below(4) == 0 {
            let op = chooser.op(keys);
            // A scan outside a transaction sees the rows of the moment at which it began.
            if !matches!(
                op,
                Op::Select(..) | Op::Count(..) | Op::Iterate(..) | Op::Next | Op::Savepoint | Op::RollbackTo
            ) {
                let outcome = client.run(database, &op);
                history.borrow_mut().committed.push(vec![(op, outcome)]);
                note_commit();
            }
            continue;
        }
        client.begin(database);
        pins.borrow().take(at, 0);
        let (mut done, mut seen, mut is_doomed) = (Vec::new(), 0, false);
        for _ in 0..1 + chooser.below(6) {
            let op = chooser.op(keys);
            let outcome = client.run(database, &op);
            is_doomed = outcome == Err(CONFLICT);
            if is_doomed {
                break;
            }
            done.push((op, outcome));
            seen = history.borrow().committed.len();
            if chooser.below(2) == 0 {
                fiber::sleep(chooser.below(200_000));
            }
        }
        let is_committed = !is_doomed && chooser.below(6) > 0 && database.commit(&client.context).is_ok();
        if !is_committed {
            database.rollback(&client.context).unwrap();
        }
        match (is_committed, pins.borrow().take(at, seen)) {
            (true, (_, false)) => history.borrow_mut().committed.push(done),
            // Where its view was, if it had one.
            (_, (shown, _)) => history.borrow_mut().abandoned.push((shown, done)),
        }
        note_commit();
    }
}

/// A database whose rows lie on the disk of a simulated machine, and next to nothing of them in memory.
fn open_on_slow_disk(simulation: &Rc<Simulation>) -> Rc<Database> {
    let files = PacedFiles { files: Arc::new(SimulatedFiles::default()), is_off: Arc::new(|| false) };
    let clock = simulation.clock(Arc::default());
    let database = open_on(Arc::new(files), Arc::clone(&clock), 0);
    create_spaces_in(&database, "vinyl");
    prepare_fibers(&database);
    fiber::set_clock(Rc::new(move || clock.monotonic_ns()));
    database
}

/// Rows lie on a disk that takes as long as the seed says, and next to nothing of it in memory.
fn run_waiting_seed(seed: u64) -> (usize, u64) {
    let simulation = Simulation::new(seed, MachineConfig::default());
    choose_in_place_max(seed);
    simulation.enter(|| {
        let database = open_on_slow_disk(&simulation);
        let history = Rc::new(RefCell::new(History::default()));
        let pins = Rc::new(RefCell::new(Pins(Vec::new())));
        let left = Rc::new(Cell::new(4));
        for client in 0..left.get() {
            let (database, history, left) = (Rc::clone(&database), Rc::clone(&history), Rc::clone(&left));
            let pins = Rc::clone(&pins);
            fiber::spawn("client", move || {
                work(&database, seed * 10 + client, &history, &pins);
                left.set(left.get() - 1);
            });
        }
        let mut waited = 0;
        for turns in 0.. {
            if left.get() == 0 {
                break;
            }
            turn(&database);
            waited = waited.max(database.suspended());
            simulation.sleep(10_000);
            if turns % 15 == 5 {
                let database = Rc::clone(&database);
                // What is there comes into runs. It fails if one is being made.
                fiber::spawn("checkpoint", move || database.make_checkpoint().unwrap_or_default());
            }
            assert!(turns < 1_000_000, "somebody waits for ever");
        }
        assert_eq!(database.suspended(), 0);
        let found = Rc::new(RefCell::new(None));
        let (slot, own) = (Rc::clone(&found), Rc::clone(&database));
        fiber::spawn("reader", move || *slot.borrow_mut() = Some(contents(&own)));
        while found.borrow().is_none() {
            turn(&database);
            simulation.sleep(10_000);
        }
        let history = history.borrow();
        assert_eq!(found.take().unwrap(), contents(&replay(&history, "vinyl")), "seed {seed}");
        assert!(waited > 0, "nobody was suspended");
        (history.committed.len(), database.statistics.conflicts.get())
    })
}

#[test]
fn so_are_those_whose_reads_wait_for_the_disk() {
    let (mut committed, mut conflicts) = (0, 0);
    for seed in 0..60 {
        let (more, other) = run_waiting_seed(seed);
        committed += more;
        conflicts += other as usize;
    }
    assert!(committed > conflicts && conflicts > 100, "{committed} committed, {conflicts} conflicts");
}

/// A scan in a transaction seeks its place again whenever it has waited, and needs a block of each run there at one time; so does one outside for
/// each row that it looks up by a secondary key.
#[test]
fn a_scan_ends_though_no_memory_keeps_what_it_reads() {
    let simulation = Simulation::new(1, MachineConfig { uncached_percent: 100, ..MachineConfig::default() });
    simulation.enter(|| {
        let database = open_on_slow_disk(&simulation);
        let found = Rc::new(RefCell::new(None));
        let (slot, own) = (Rc::clone(&found), Rc::clone(&database));
        fiber::spawn("client", move || {
            let mut client = Client::new(&own);
            fiber::set_local(Rc::clone(&client.context) as Rc<dyn std::any::Any>);
            // Each checkpoint makes a run of rows that lie between those of the others.
            for run in 0..4 {
                for id in (run..40).step_by(4) {
                    client.run(&own, &Op::Insert(TREES, json!([id, id, id, 0]))).unwrap();
                }
                own.make_checkpoint().unwrap();
            }
            let all = Op::Select(TREES, 2, IteratorKind::All, json!([]), 0, 1000);
            let alone = client.run(&own, &all).unwrap();
            client.begin(&own);
            let rows = client.run(&own, &all).unwrap();
            own.commit(&client.context).unwrap();
            assert_eq!(alone, rows);
            *slot.borrow_mut() = Some(rows);
        });
        for turns in 0.. {
            if found.borrow().is_some() {
                break;
            }
            turn(&database);
            simulation.sleep(10_000);
            assert!(turns < 1_000_000, "the scan never ends");
        }
        let rows = found.take().unwrap();
        assert_eq!(rows.matches('[').count(), 40, "{rows}");
    });
}

/// A transaction does one thing and waits, somebody else does another: does the first get a conflict?
#[test]
fn a_conflict_is_what_changes_something_that_was_seen() {
    on_each_engine(in_a_conflict_is_what_changes_something_that_was_seen);
}

fn in_a_conflict_is_what_changes_something_that_was_seen(engine: &str) {
    let all = || json!([]);
    let select = |index_id, kind, key, limit| Op::Select(TREES, index_id, kind, key, 0, limit);
    let insert = |id: u64, unique: u64, any: u64| Op::Insert(TREES, json!([id, unique, any, 0]));
    let change = |id: u64| Op::Update(TREES, 0, json!([id]), json!([["+", 3, 1]]));
    let delete = |id: u64| Op::Delete(TREES, 0, json!([id]));
    use IteratorKind::{All, Eq, Ge, Gt, Le, Lt};
    // Rows 10, 20, 30 are there, with 1, 2, 3 and 0 as unique key.
    let cases = [
        (Op::Get(TREES, 0, json!([10])), change(10), true),
        (Op::Get(TREES, 0, json!([10])), change(20), false),
        (Op::Get(TREES, 0, json!([11])), insert(11, 5, 5), true),
        (Op::Get(TREES, 0, json!([11])), insert(12, 5, 5), false),
        (Op::Get(TREES, 1, json!([5, 5])), insert(11, 5, 5), true),
        (Op::Get(TREES, 1, json!([5, 5])), insert(11, 5, 6), false),
        (Op::Get(TREES, 1, json!([1, 0])), delete(10), true),
        (select(0, Ge, json!([15]), 1), insert(12, 5, 5), false),
        (select(0, Ge, json!([15]), 1), insert(15, 5, 5), true),
        (select(0, Ge, json!([15]), 1), delete(20), true),
        (select(0, Ge, json!([15]), 1), insert(21, 5, 5), false),
        (select(0, Ge, json!([15]), 9), insert(31, 5, 5), true),
        (select(0, Gt, json!([20]), 9), delete(20), false),
        (select(0, Lt, json!([20]), 9), insert(1, 5, 5), true),
        (select(0, Lt, json!([20]), 1), insert(1, 5, 5), false),
        (select(0, Le, json!([20]), 1), delete(20), true),
        (select(2, Eq, json!([0]), 9), insert(11, 5, 0), true),
        (select(2, Eq, json!([0]), 9), insert(11, 5, 1), false),
        (select(2, Eq, json!([0]), 1), insert(11, 5, 0), false),
        (select(2, All, all(), 9), insert(11, 5, 9), true),
        (Op::Count(TREES, 0, All, all()), insert(11, 5, 9), true),
        (Op::Count(TREES, 0, Ge, json!([25])), insert(11, 5, 9), false),
        // Refused: what was in the way has been seen.
        (insert(10, 9, 9), delete(10), true),
        (insert(11, 1, 0), delete(10), true),
        (insert(11, 5, 5), insert(12, 5, 5), true),
        (insert(11, 5, 5), insert(11, 6, 6), true),
        (insert(11, 5, 5), insert(12, 6, 6), false),
        // Nothing was found.
        (delete(11), insert(11, 5, 5), true),
        (Op::Update(TREES, 1, json!([5, 5]), json!([["+", 3, 1]])), insert(11, 5, 5), true),
        (Op::Replace(TREES, json!([10, 7, 7, 7])), change(10), true),
        (Op::Upsert(TREES, json!([11, 7, 7, 7]), json!([["+", 3, 1]])), insert(11, 5, 5), true),
        (Op::Insert(HASHES, json!(["a", null, 0])), Op::Insert(HASHES, json!(["b", null, 0])), false),
        (Op::Insert(HASHES, json!(["a", 1, 0])), Op::Insert(HASHES, json!(["b", 1, 0])), true),
        (Op::Select(HASHES, 0, All, all(), 0, 9), Op::Insert(HASHES, json!(["b", 1, 0])), true),
        (Op::Get(TEMPORARY, 0, json!([1])), Op::Insert(TEMPORARY, json!([1])), true),
    ];
    for (first, other, is_conflict) in cases {
        for is_short in [true, false] {
            let database = open(&SimulatedFiles::default());
            create_spaces_in(&database, engine);
            let (mut client, mut rival) = (Client::new(&database), Client::new(&database));
            for (id, unique) in [(10, 1), (20, 2), (30, 3)] {
                rival.run(&database, &insert(id, unique, 0)).unwrap();
            }
            client.begin(&database);
            let _ = client.run(&database, &first);
            database.suspend(&client.context);
            if !is_short {
                rival.begin(&database);
            }
            rival.run(&database, &other).unwrap();
            database.commit(&rival.context).unwrap();
            // Who has only read goes on in a view.
            let is_in_view = database.is_in_view(&client.context);
            let outcome = database.commit(&client.context).map_err(|error| error.code());
            assert!(!is_in_view || outcome == Ok(()));
            let outcome = if is_in_view { Err(CONFLICT) } else { outcome };
            assert_eq!(outcome, if is_conflict { Err(CONFLICT) } else { Ok(()) }, "{first:?} against {other:?}");
            assert_eq!(database.suspended(), 0);
        }
    }
}

/// A database with a row, and a transaction that has changed it and waits.
fn with_suspended(engine: &str) -> (Rc<Database>, Client) {
    let database = open(&SimulatedFiles::default());
    create_spaces_in(&database, engine);
    let mut client = Client::new(&database);
    client.run(&database, &Op::Insert(TREES, json!([1, 1, 1, 0]))).unwrap();
    client.begin(&database);
    client.run(&database, &Op::Update(TREES, 0, json!([1]), json!([["=", 3, 7]]))).unwrap();
    client.run(&database, &Op::Insert(TREES, json!([2, 2, 2, 2]))).unwrap();
    database.suspend(&client.context);
    (database, client)
}

fn trees(database: &Database) -> String {
    contents(database).swap_remove(0)
}

#[test]
fn what_a_suspended_transaction_has_done_shows_to_nobody_until_it_commits() {
    on_each_engine(in_what_a_suspended_transaction_has_done_shows_to_nobody_until_it_commits);
}

fn in_what_a_suspended_transaction_has_done_shows_to_nobody_until_it_commits(engine: &str) {
    let (database, mut client) = with_suspended(engine);
    assert_eq!(trees(&database), "[1, 1, 1, 0]");
    assert_eq!(client.run(&database, &Op::Count(TREES, 0, IteratorKind::All, json!([]))).unwrap(), "2");
    database.suspend(&client.context);
    assert_eq!(trees(&database), "[1, 1, 1, 0]");
    database.commit(&client.context).unwrap();
    assert_eq!(trees(&database), "[1, 1, 1, 7] [2, 2, 2, 2]");
}

#[test]
fn a_change_of_the_schema_dooms_who_has_touched_the_space() {
    on_each_engine(in_a_change_of_the_schema_dooms_who_has_touched_the_space);
}

fn in_a_change_of_the_schema_dooms_who_has_touched_the_space(engine: &str) {
    type Change = fn(&Database, &mut Client) -> database::Result<()>;
    let changes: [(Change, bool); 5] = [
        (|database, rival| database.truncate(&rival.context, &database.space(SpaceId(TREES))?), true),
        (
            |database, rival| {
                let row = json!([TREES, 3, "more", "tree", {"unique": false}, [[3, "unsigned"]]]);
                rival.try_run(database, &Op::Insert(INDEX_ID.0, row)).map(|_| ())
            },
            true,
        ),
        (|database, rival| rival.try_run(database, &Op::Delete(INDEX_ID.0, 0, json!([TREES, 2]))).map(|_| ()), true),
        (
            |database, rival| {
                rival.try_run(database, &Op::Update(SPACE_ID.0, 0, json!([TREES]), json!([["=", 2, "x"]]))).map(|_| ())
            },
            true,
        ),
        (|database, rival| database.truncate(&rival.context, &database.space(SpaceId(HASHES))?), false),
    ];
    for (at, (change, is_conflict)) in changes.into_iter().enumerate() {
        if at == 1 && engine == "vinyl" {
            // Looks at rows, which wants a fiber.
            continue;
        }
        let (database, client) = with_suspended(engine);
        change(&database, &mut Client::new(&database)).unwrap();
        let outcome = database.commit(&client.context).map_err(|error| error.code());
        assert_eq!(outcome, if is_conflict { Err(CONFLICT) } else { Ok(()) }, "change {at}");
    }
}

#[test]
fn who_has_changed_the_schema_is_aborted_by_a_wait() {
    let database = open(&SimulatedFiles::default());
    create_spaces(&database);
    let mut client = Client::new(&database);
    client.begin(&database);
    client.run(&database, &Op::Insert(SPACE_ID.0, json!([600, 1, "s", "memtx", 0, {}, []]))).unwrap();
    database.suspend(&client.context);
    assert!(database.space(SpaceId(600)).is_err());
    let code = database.commit(&client.context).unwrap_err().code();
    assert_eq!(code, ErrorCode::TransactionYield as u32);
    // Nothing done is nothing to lose.
    client.begin(&database);
    database.suspend(&client.context);
    assert_eq!(database.suspended(), 0);
    database.commit(&client.context).unwrap();
}

#[test]
fn savepoints_and_callbacks_are_right_while_suspended() {
    on_each_engine(in_savepoints_and_callbacks_are_right_while_suspended);
}

fn in_savepoints_and_callbacks_are_right_while_suspended(engine: &str) {
    let (database, mut client) = with_suspended(engine);
    let heard = Rc::new(RefCell::new(Vec::new()));
    let listen = |client: &Client| {
        for (name, is_commit) in [("commit", true), ("rollback", false)] {
            let heard = Rc::clone(&heard);
            let callback = Box::new(move |_: &Context, rows: &[database::ChangedRow]| {
                let words = |row: &database::ChangedRow| row.new.as_ref().map_or(String::new(), |row| text(row.data()));
                heard.borrow_mut().push(format!("{name} {}", rows.iter().map(words).collect::<Vec<_>>().join(" ")));
            });
            if is_commit {
                database.on_commit(&client.context, callback).unwrap();
            } else {
                database.on_rollback(&client.context, callback).unwrap();
            }
        }
    };
    listen(&client);
    // Rolled back while it waits: nothing of it is in force, nothing has to be taken back.
    database.rollback(&client.context).unwrap();
    assert_eq!(heard.take(), ["rollback [2, 2, 2, 2] [1, 1, 1, 7]"]);
    assert_eq!((trees(&database).as_str(), database.suspended()), ("[1, 1, 1, 0]", 0));
    // A savepoint from before a wait.
    client.begin(&database);
    listen(&client);
    client.run(&database, &Op::Insert(TREES, json!([3, 3, 3, 3]))).unwrap();
    client.run(&database, &Op::Savepoint).unwrap();
    client.run(&database, &Op::Insert(TREES, json!([4, 4, 4, 4]))).unwrap();
    database.suspend(&client.context);
    client.run(&database, &Op::RollbackTo).unwrap();
    database.suspend(&client.context);
    // Whoever commits outside of a fiber blocks until it is durable.
    database.commit(&client.context).unwrap();
    assert_eq!(heard.take(), ["commit [3, 3, 3, 3]"]);
    assert_eq!(trees(&database), "[1, 1, 1, 0] [3, 3, 3, 3]");
    // A conflict: told of at the end, once.
    client.begin(&database);
    listen(&client);
    client.run(&database, &Op::Delete(TREES, 0, json!([3]))).unwrap();
    database.suspend(&client.context);
    Client::new(&database).run(&database, &Op::Delete(TREES, 0, json!([3]))).unwrap();
    assert_eq!(client.run(&database, &Op::Savepoint), Err(CONFLICT));
    assert!(heard.borrow().is_empty());
    assert_eq!(database.commit(&client.context).unwrap_err().code(), CONFLICT);
    assert_eq!(heard.take().len(), 1);
    assert!(!client.context.is_in_txn());
}

#[test]
fn a_transaction_that_is_forgotten_while_suspended_leaves_nothing() {
    on_each_engine(in_a_transaction_that_is_forgotten_while_suspended_leaves_nothing);
}

fn in_a_transaction_that_is_forgotten_while_suspended_leaves_nothing(engine: &str) {
    let (database, client) = with_suspended(engine);
    drop(client);
    Client::new(&database).run(&database, &Op::Delete(TREES, 0, json!([1]))).unwrap();
    assert_eq!((trees(&database).as_str(), database.suspended()), ("", 0));
}

#[test]
fn a_failed_log_dooms_all() {
    on_each_engine(in_a_failed_log_dooms_all);
}

fn in_a_failed_log_dooms_all(engine: &str) {
    let files = SimulatedFiles::default();
    let database = open(&files);
    create_spaces_in(&database, engine);
    database.submit();
    database.turn();
    let (mut client, mut rival) = (Client::new(&database), Client::new(&database));
    rival.run(&database, &Op::Insert(TREES, json!([1, 1, 1, 1]))).unwrap();
    client.begin(&database);
    // It builds on what is going to be lost.
    client.run(&database, &Op::Update(TREES, 0, json!([1]), json!([["=", 3, 7]]))).unwrap();
    database.suspend(&client.context);
    files.set_fault(Fault { writes_until_error: Some(0), ..Fault::default() });
    database.submit();
    database.turn();
    assert!(database.lost_from().is_some());
    assert_eq!(client.run(&database, &Op::Get(TREES, 0, json!([1]))), Err(CONFLICT));
    database.rollback(&client.context).unwrap();
    assert_eq!(trees(&database), "");
}

#[test]
fn sequences_make_no_conflicts_and_give_no_value_twice() {
    let files = SimulatedFiles::default();
    let database = open(&files);
    create_spaces(&database);
    let mut admin = Client::new(&database);
    let sequence = json!([1, 1, "s", 1, 1, 1_000_000, 1, 0, false]);
    admin.run(&database, &Op::Insert(SEQUENCE_ID.0, sequence)).unwrap();
    admin.run(&database, &Op::Insert(database::SPACE_SEQUENCE_ID.0, json!([TREES, 1, false, 0, ""]))).unwrap();
    let mut clients = [Client::new(&database), Client::new(&database)];
    for round in 0..2 {
        for (at, client) in clients.iter_mut().enumerate() {
            if round == 0 {
                client.begin(&database);
            }
            client.run(&database, &Op::Insert(TREES, json!([null, round, at, 0]))).unwrap();
            database.suspend(&client.context);
        }
    }
    // In the other order, and one of them not at all.
    database.commit(&clients[1].context).unwrap();
    database.rollback(&clients[0].context).unwrap();
    assert_eq!(trees(&database), "[2, 0, 1, 0] [4, 1, 1, 0]");
    assert_eq!(database.sequence_next(&admin.context, 1).unwrap(), 5);
    database.submit();
    database.turn();
    drop(database);
    let database = open(&files.crash(runtime::Loss::All));
    assert_eq!(trees(&database), "[2, 0, 1, 0] [4, 1, 1, 0]");
    assert_eq!(database.sequence_next(&Client::new(&database).context, 1).unwrap(), 6);
}

type Act = Box<dyn Fn(&Database, &Context)>;

/// Waits in the statement's fiber, as one that reads from a disk does, or changes rows itself.
struct Trigger {
    database: Rc<Database>,
    run: Act,
    is_enabled: Cell<bool>,
}

impl ReplaceTrigger for Trigger {
    fn run(
        &self,
        context: &Context,
        _old: Option<&tuple::Tuple>,
        new: Option<&tuple::Tuple>,
        _space: &Rc<Space>,
        _operation: &str,
    ) -> database::Result<Option<tuple::Tuple>> {
        if self.is_enabled.replace(false) {
            (self.run)(&self.database, context);
        }
        Ok(new.cloned())
    }
}

/// Puts another row in.
struct Changer(tuple::Tuple);

impl ReplaceTrigger for Changer {
    fn run(
        &self,
        _context: &Context,
        _old: Option<&tuple::Tuple>,
        _new: Option<&tuple::Tuple>,
        _space: &Rc<Space>,
        _operation: &str,
    ) -> database::Result<Option<tuple::Tuple>> {
        Ok(Some(self.0.clone()))
    }
}

#[test]
fn a_row_that_a_trigger_puts_in_counts_too() {
    on_each_engine(in_a_row_that_a_trigger_puts_in_counts_too);
}

fn in_a_row_that_a_trigger_puts_in_counts_too(engine: &str) {
    for rival_op in [Op::Insert(TREES, json!([6, 0, 0, 0])), Op::Insert(TREES, json!([7, 5, 5, 0]))] {
        let database = open(&SimulatedFiles::default());
        create_spaces_in(&database, engine);
        let space = database.space(SpaceId(TREES)).unwrap();
        let row = tuple::Tuple::new(database.arena(), space.format().id(), &bytes(&json!([6, 5, 5, 5]))).unwrap();
        let mut client = Client::new(&database);
        client.begin(&database);
        *space.before_replace.borrow_mut() = vec![Rc::new(Changer(row))];
        client.run(&database, &Op::Replace(TREES, json!([1, 1, 1, 1]))).unwrap();
        space.before_replace.borrow_mut().clear();
        database.suspend(&client.context);
        Client::new(&database).run(&database, &rival_op).unwrap();
        let code = database.commit(&client.context).map_err(|error| error.code());
        assert_eq!(code, Err(CONFLICT), "{rival_op:?}");
    }
}

/// Gives `TREES` a trigger that does something once.
fn set_trigger(database: &Rc<Database>, is_before: bool, run: impl Fn(&Database, &Context) + 'static) {
    let trigger = Trigger { database: Rc::clone(database), run: Box::new(run), is_enabled: Cell::new(true) };
    let space = database.space(SpaceId(TREES)).unwrap();
    let triggers = if is_before { &space.before_replace } else { &space.on_replace };
    *triggers.borrow_mut() = vec![Rc::new(trigger)];
}

fn turn(database: &Database) {
    fiber::run_ready(100);
    database.submit();
    database.turn();
}

/// Fibers of other databases are gone; those of this one do when they wait what connections' do.
fn prepare_fibers(database: &Rc<Database>) {
    fiber::abandon();
    let aborter = Rc::clone(database);
    fiber::on_yield(Rc::new(move || {
        if let Some(context) = fiber::local::<Context>() {
            aborter.suspend(&context);
        }
    }));
}

/// A fiber that works in a context of its own, as those of connections do.
fn in_fiber(database: &Rc<Database>, work: impl FnOnce(&Database, &Context) + 'static) -> fiber::FiberId {
    prepare_fibers(database);
    let own = Rc::clone(database);
    fiber::spawn("worker", move || {
        let context = Client::new(&own).context;
        fiber::set_local(Rc::clone(&context) as Rc<dyn std::any::Any>);
        work(&own, &context);
        own.abandon(&context);
    })
}

#[test]
fn a_trigger_that_waits_sees_and_leaves_its_statement_whole() {
    on_each_engine(in_a_trigger_that_waits_sees_and_leaves_its_statement_whole);
}

fn in_a_trigger_that_waits_sees_and_leaves_its_statement_whole(engine: &str) {
    for is_before in [true, false] {
        for (rival_op, is_conflict) in [
            (Op::Insert(TREES, json!([9, 9, 9, 9])), false),
            (Op::Update(TREES, 0, json!([1]), json!([["=", 3, 9]])), true),
            (Op::Delete(TREES, 0, json!([1])), true),
        ] {
            let database = open(&SimulatedFiles::default());
            create_spaces_in(&database, engine);
            let mut rival = Client::new(&database);
            rival.run(&database, &Op::Insert(TREES, json!([1, 1, 1, 0]))).unwrap();
            set_trigger(&database, is_before, move |_, _| {
                fiber::park();
            });
            let outcome = Rc::new(RefCell::new(None));
            let slot = Rc::clone(&outcome);
            let id = in_fiber(&database, move |database, context| {
                let space = database.space(SpaceId(TREES)).unwrap();
                let row = bytes(&json!([1, 1, 1, 7]));
                let done = database.execute(context, &space, Operation::Replace { tuple: &row });
                *slot.borrow_mut() = Some(done.map(|_| ()).map_err(|error| error.code()));
            });
            turn(&database);
            assert!(outcome.borrow().is_none());
            assert_eq!(trees(&database), "[1, 1, 1, 0]");
            rival.run(&database, &rival_op).unwrap();
            let before = trees(&database);
            fiber::wake(id);
            turn(&database);
            let expected = if is_conflict { Err(CONFLICT) } else { Ok(()) };
            assert_eq!(outcome.take(), Some(expected), "before {is_before}, {rival_op:?}");
            let after = if expected.is_ok() { before.replace("[1, 1, 1, 0]", "[1, 1, 1, 7]") } else { before };
            assert_eq!(trees(&database), after);
            assert_eq!(database.suspended(), 0);
        }
    }
}

#[test]
fn a_trigger_may_change_the_row_of_its_statement() {
    on_each_engine(in_a_trigger_may_change_the_row_of_its_statement);
}

fn in_a_trigger_may_change_the_row_of_its_statement(engine: &str) {
    for op in [
        Op::Update(TREES, 0, json!([1]), json!([["+", 3, 2]])),
        Op::Upsert(TREES, json!([1, 1, 1, 2]), json!([["+", 3, 2]])),
        Op::Replace(TREES, json!([1, 1, 1, 7])),
        Op::Delete(TREES, 0, json!([1])),
    ] {
        for trigger_op in [Op::Replace(TREES, json!([1, 1, 1, 5])), Op::Delete(TREES, 0, json!([1]))] {
            let database = open(&SimulatedFiles::default());
            create_spaces_in(&database, engine);
            let mut client = Client::new(&database);
            client.run(&database, &Op::Insert(TREES, json!([1, 1, 1, 0]))).unwrap();
            let of_trigger = trigger_op.clone();
            set_trigger(&database, true, move |database, context| {
                let space = database.space(SpaceId(TREES)).unwrap();
                let (row, key) = (bytes(&json!([1, 1, 1, 5])), bytes(&json!([1])));
                let operation = match of_trigger {
                    Op::Replace(..) => Operation::Replace { tuple: &row },
                    _ => Operation::Delete { index_id: IndexId::PRIMARY, key: &key },
                };
                database.execute(context, &space, operation).unwrap();
            });
            database.begin(&client.context).unwrap();
            client.run(&database, &op).unwrap();
            // As if the statement came after what the trigger has done.
            let is_there = matches!(trigger_op, Op::Replace(..));
            let expected = match op {
                Op::Delete(..) => "",
                Op::Update(..) if !is_there => "",
                Op::Upsert(..) if !is_there => "[1, 1, 1, 2]",
                _ => "[1, 1, 1, 7]",
            };
            assert_eq!(trees(&database), expected, "{op:?} around {trigger_op:?}");
            database.rollback(&client.context).unwrap();
            assert_eq!(trees(&database), "[1, 1, 1, 0]", "{op:?} around {trigger_op:?}");
        }
    }
}

#[test]
fn a_trigger_does_not_make_an_insert_replace_a_row() {
    on_each_engine(in_a_trigger_does_not_make_an_insert_replace_a_row);
}

fn in_a_trigger_does_not_make_an_insert_replace_a_row(engine: &str) {
    let database = open(&SimulatedFiles::default());
    create_spaces_in(&database, engine);
    let mut client = Client::new(&database);
    client.run(&database, &Op::Insert(TREES, json!([1, 1, 1, 0]))).unwrap();
    for is_done_by_trigger in [false, true] {
        set_trigger(&database, true, move |database, context| {
            if is_done_by_trigger {
                let space = database.space(SpaceId(TREES)).unwrap();
                let row = bytes(&json!([1, 1, 1, 5]));
                database.execute(context, &space, Operation::Replace { tuple: &row }).unwrap();
            }
        });
        let outcome = client.run(&database, &Op::Insert(TREES, json!([1, 1, 1, 7])));
        assert_eq!(outcome, Err(ErrorCode::TupleFound as u32));
        assert_eq!(trees(&database), "[1, 1, 1, 0]");
    }
}

#[test]
fn a_snapshot_asked_for_in_a_transaction_has_nothing_of_it() {
    on_each_engine(in_a_snapshot_asked_for_in_a_transaction_has_nothing_of_it);
}

fn in_a_snapshot_asked_for_in_a_transaction_has_nothing_of_it(engine: &str) {
    let files = SimulatedFiles::default();
    let database = open(&files);
    create_spaces_in(&database, engine);
    let outcome = Rc::new(Cell::new(None));
    let slot = Rc::clone(&outcome);
    in_fiber(&database, move |database, context| {
        let space = database.space(SpaceId(TREES)).unwrap();
        database.begin(context).unwrap();
        database.execute(context, &space, Operation::Insert { tuple: &bytes(&json!([1, 1, 1, 1])) }).unwrap();
        database.make_checkpoint().unwrap();
        slot.set(Some(database.commit(context).is_ok()));
    });
    while outcome.get().is_none() {
        turn(&database);
        runtime::yield_thread();
    }
    assert_eq!(outcome.get(), Some(true));
    // Its row is in the log behind the snapshot or nowhere.
    let logs: Vec<_> = files.list("/db".as_ref()).unwrap().into_iter().filter(|name| name.ends_with("xlog")).collect();
    files.remove(&PathBuf::from("/db").join(logs.last().unwrap())).unwrap();
    // Nor is anything left that would miss it.
    files.remove("/db/lycosa.newest".as_ref()).unwrap();
    drop(database);
    assert_eq!(trees(&open(&files.fork())), "");
}

#[test]
fn a_cancelled_fiber_takes_its_transaction_with_it() {
    on_each_engine(in_a_cancelled_fiber_takes_its_transaction_with_it);
}

fn in_a_cancelled_fiber_takes_its_transaction_with_it(engine: &str) {
    let database = open(&SimulatedFiles::default());
    create_spaces_in(&database, engine);
    let id = in_fiber(&database, |database, context| {
        database.begin(context).unwrap();
        let space = database.space(SpaceId(TREES)).unwrap();
        database.execute(context, &space, Operation::Insert { tuple: &bytes(&json!([1, 1, 1, 1])) }).unwrap();
        assert_eq!(fiber::park(), fiber::Wake::Cancelled);
    });
    turn(&database);
    assert_eq!((trees(&database).as_str(), database.suspended()), ("", 1));
    fiber::cancel(id);
    turn(&database);
    assert_eq!((trees(&database).as_str(), database.suspended()), ("", 0));
}
