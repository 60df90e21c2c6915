//! Transactions that survive waits: whatever they do and whoever commits between, it is as if each had run alone at its commit.
#![allow(clippy::unwrap_used, reason = "a test")]

use database::{
    Config, Context, Database, Environment, ErrorCode, INDEX_ID, Key, Operation, ReplaceTrigger, SEQUENCE_ID, SPACE_ID,
    Savepoint, SessionKind, Space,
};
use runtime::{Fault, ManualClock, Randomness, SeededRandomness, SimulatedFiles, fiber};
use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use storage::{IteratorKind, MemoryIterator};
use tuple::msgpack;

/// Tree indexes: primary, unique, not unique.
const TREES: u32 = 512;
/// A hash as primary index, a unique one with nulls.
const HASHES: u32 = 513;
/// Not logged.
const TEMPORARY: u32 = 514;
const CONFLICT: u32 = ErrorCode::TransactionConflict as u32;

fn open(files: &SimulatedFiles) -> Rc<Database> {
    let config = Config {
        wal_dir: PathBuf::from("/db"),
        memtx_dir: PathBuf::from("/db"),
        memtx_memory: 64 << 20,
        wal_writes_in_flight: 0,
        checkpoint_interval: 0,
        ..Config::default()
    };
    let environment = Environment {
        files: Arc::new(files.clone()),
        clock: Arc::new(ManualClock::default()),
        randomness: Arc::new(SeededRandomness::new(1)),
        wake: Arc::new(|| {}),
    };
    let database = Database::new(config, environment).unwrap();
    database.open().unwrap();
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
}

/// A transaction's owner.
struct Client {
    context: Context,
    iterator: Option<(Rc<Space>, MemoryIterator)>,
    savepoint: Option<Savepoint>,
}

impl Client {
    fn new(database: &Database) -> Self {
        let context = Context::for_request(database.open_session(SessionKind::Background, None));
        Client { context, iterator: None, savepoint: None }
    }

    fn begin(&mut self, database: &Database) {
        database.begin(&self.context).unwrap();
        database.outlive_yield(&self.context);
        (self.iterator, self.savepoint) = (None, None);
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
            Op::Insert(space, row) => execute(*space, Operation::Insert { tuple: &bytes(row) }),
            Op::Replace(space, row) => execute(*space, Operation::Replace { tuple: &bytes(row) }),
            Op::Update(space, index_id, key, ops) => {
                let (key, ops) = (bytes(key), bytes(ops));
                execute(*space, Operation::Update { index_id: *index_id, key: &key, ops: &ops, index_base: 0 })
            }
            Op::Upsert(space, row, ops) => {
                execute(*space, Operation::Upsert { tuple: &bytes(row), ops: &bytes(ops), index_base: 0 })
            }
            Op::Delete(space, index_id, key) => {
                execute(*space, Operation::Delete { index_id: *index_id, key: &bytes(key) })
            }
            Op::Get(space, index_id, key) => {
                let key = bytes(key);
                database.get(context, &database.space(*space)?, *index_id, Key::decode(&key)?).map(found)
            }
            Op::Select(space, index_id, kind, key, offset, limit) => {
                let (key, mut rows) = (bytes(key), Vec::new());
                let space = database.space(*space)?;
                database.select(context, &space, *index_id, *kind, Key::decode(&key)?, *offset, *limit, |row| {
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
                let count = database.count(context, &database.space(*space)?, *index_id, *kind, Key::decode(&key)?)?;
                Ok(count.to_string())
            }
            Op::Iterate(index_id, kind, key) => {
                let (space, key) = (database.space(TREES)?, bytes(key));
                let key = Key::decode(&key)?;
                database.check_select(context, &space, *index_id, *kind, key)?;
                self.iterator = Some((space, MemoryIterator::new(*index_id, *kind, key.parts, key.part_count)));
                Ok(String::new())
            }
            Op::Next => match &mut self.iterator {
                Some((space, iterator)) => database.next_row(context, space, iterator).map(found),
                None => Ok(String::new()),
            },
            Op::Savepoint => {
                self.savepoint = Some(database.savepoint(context, None)?);
                Ok(String::new())
            }
            Op::RollbackTo => match self.savepoint.take() {
                Some(savepoint) => database.rollback_to_savepoint(context, &savepoint).map(|()| String::new()),
                None => Ok(String::new()),
            },
        }
    }
}

fn create_spaces(database: &Database) {
    let mut admin = Client::new(database);
    let mut insert = |space, row: Value| admin.run(database, &Op::Insert(space, row)).unwrap();
    for (id, name, options) in [
        (TREES, "trees", json!({})),
        (HASHES, "hashes", json!({})),
        (TEMPORARY, "temporary", json!({"temporary": true})),
    ] {
        insert(SPACE_ID, json!([id, 1, name, "memtx", 0, options, []]));
    }
    let unique = json!({"unique": true});
    insert(INDEX_ID, json!([TREES, 0, "primary", "tree", unique, [[0, "unsigned"]]]));
    insert(INDEX_ID, json!([TREES, 1, "unique", "tree", unique, [[1, "unsigned"], [2, "unsigned"]]]));
    insert(INDEX_ID, json!([TREES, 2, "any", "tree", {"unique": false}, [[2, "unsigned"]]]));
    insert(INDEX_ID, json!([HASHES, 0, "primary", "hash", unique, [[0, "string"]]]));
    let nullable = json!([{"field": 1, "type": "unsigned", "is_nullable": true}]);
    insert(INDEX_ID, json!([HASHES, 1, "nullable", "tree", unique, nullable]));
    insert(INDEX_ID, json!([TEMPORARY, 0, "primary", "tree", unique, [[0, "unsigned"]]]));
    database.remember_reads();
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
        let space = [TREES, TREES, HASHES, TEMPORARY][self.below(4) as usize];
        match self.below(16) {
            0 | 1 => Op::Insert(space, self.row(space, keys)),
            2 | 3 => Op::Replace(space, self.row(space, keys)),
            4 | 5 => {
                let (index_id, key) = self.key(space, keys);
                let number = self.below(4);
                Op::Update(space, index_id, key, json!([["=", 1 + self.below(2), number]]))
            }
            6 => Op::Upsert(space, self.row(space, keys), json!([["+", 2, 1]])),
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
    [(TREES, 0), (TREES, 1), (TREES, 2), (HASHES, 0), (HASHES, 1), (TEMPORARY, 0)]
        .map(|(space, index_id)| {
            let all = Op::Select(space, index_id, IteratorKind::All, json!([]), 0, 1000);
            reader.run(database, &all).unwrap()
        })
        .to_vec()
}

/// Runs what has committed, alone and in the order of the commits.
fn replay(history: &[Vec<(Op, Outcome)>]) -> Rc<Database> {
    let database = open(&SimulatedFiles::default());
    create_spaces(&database);
    let mut client = Client::new(&database);
    for (at, txn) in history.iter().enumerate() {
        client.begin(&database);
        for (op, outcome) in txn {
            assert_eq!(&client.run(&database, op), outcome, "transaction {at}: {op:?} of {txn:#?}");
        }
        database.commit(&client.context).unwrap();
    }
    database
}

/// Transactions of several clients, suspended whenever another one has its turn. Returns how many committed and how many met a conflict.
fn run_seed(seed: u64) -> (usize, usize) {
    let chooser = Chooser(SeededRandomness::new(seed));
    let database = open(&SimulatedFiles::default());
    create_spaces(&database);
    let keys = if seed.is_multiple_of(2) { 6 } else { 24 };
    let mut clients: Vec<(Client, Vec<(Op, Outcome)>)> = (0..4).map(|_| (Client::new(&database), Vec::new())).collect();
    let mut history = Vec::new();
    let mut conflicts = 0;
    for _ in 0..400 {
        let (client, done) = &mut clients[chooser.below(4) as usize];
        // A few statements in a turn.
        for _ in 0..1 + chooser.below(3) {
            if !client.context.is_in_txn() {
                done.clear();
                if chooser.below(4) == 0 {
                    // Without a transaction: the short way.
                    let op = chooser.op(keys);
                    if !matches!(op, Op::Iterate(..) | Op::Next | Op::Savepoint | Op::RollbackTo) {
                        let outcome = client.run(&database, &op);
                        history.push(vec![(op, outcome)]);
                    }
                    continue;
                }
                client.begin(&database);
            }
            match chooser.below(12) {
                0 | 1 => match database.commit(&client.context) {
                    Ok(()) => history.push(std::mem::take(done)),
                    Err(error) => {
                        assert_eq!(error.code(), CONFLICT);
                        conflicts += 1;
                    }
                },
                2 => database.rollback(&client.context).unwrap(),
                _ => {
                    let op = chooser.op(keys);
                    let outcome = client.run(&database, &op);
                    if outcome == Err(CONFLICT) {
                        conflicts += 1;
                        let again = client.run(&database, &Op::Get(TREES, 0, json!([1])));
                        assert_eq!(again, Err(CONFLICT), "what it sees is not for use");
                        assert!(client.context.is_in_txn());
                        database.rollback(&client.context).unwrap();
                    } else {
                        done.push((op, outcome));
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
    clients.iter().for_each(|(client, _)| database.abandon(&client.context));
    assert_eq!(database.suspended(), 0);
    assert_eq!(contents(&database), contents(&replay(&history)), "seed {seed}");
    (history.len(), conflicts)
}

#[test]
fn transactions_that_wait_are_serializable_in_the_order_of_their_commits() {
    let (mut committed, mut conflicts) = (0, 0);
    for seed in 0..150 {
        let (more, other) = run_seed(seed);
        committed += more;
        conflicts += other;
    }
    assert!(committed > 4 * conflicts / 2 && conflicts > 1000, "{committed} committed, {conflicts} conflicts");
}
