//! Doubts that a request of a user with few rights changes or shows nothing that he has no right to, whatever space it names and whatever row,
//! key or operations it brings; and that the process lives.
//!
//! The input: kind of request, space, index and iterator, a byte each; then a row or key, and operations, as msgpack.

use database::{Config, Context, Database, Environment, ErrorCode, Key, Operation, ScanRequest, SessionKind, Space};
use runtime::{ManualClock, SeededRandomness, SimulatedFiles};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use storage::IteratorKind;
use tuple::msgpack::{self, Reader};
use tuple::{IndexId, SpaceId};

const MEMORY: u64 = 16 << 20;
/// The user with few rights.
const FEW: u32 = 32;
/// What he has no right on, may read, may read and write, and has made.
const SECRET: u32 = 512;
const SHOWN: u32 = 513;
const OPEN: u32 = 514;
const OWN: u32 = 515;
const SPACE: u32 = 280;
const INDEX: u32 = 288;
const USER: u32 = 304;
const PRIV: u32 = 312;
const TRUNCATE: u32 = 330;

fn insert(database: &Database, context: &Context, space: u32, row: &serde_json::Value) {
    let mut bytes = Vec::new();
    database::encode_json(row, &mut bytes);
    let space = database.space(SpaceId(space)).expect("it is there");
    database.execute(context, &space, Operation::Insert { tuple: &bytes }).expect("the administrator may do this");
}

fn open() -> Rc<Database> {
    let dir = PathBuf::from("/db");
    let config = Config {
        wal_dir: dir.clone(),
        memtx_dir: dir,
        memtx_memory: MEMORY,
        wal_mode: wal::WalMode::None,
        wal_writes_in_flight: 0,
        checkpoint_interval: 0,
        ..Config::default()
    };
    let environment = Environment {
        files: Arc::new(SimulatedFiles::default()),
        clock: Arc::new(ManualClock::default()),
        randomness: Arc::new(SeededRandomness::new(1)),
        wake: Arc::new(|| {}),
    };
    let database = Database::new(config, environment).expect("nothing is asked for that is not there");
    database.open().expect("the directory is empty");
    let admin = database.admin_context();
    let row = |space, row| insert(&database, &admin, space, &row);
    row(USER, serde_json::json!([FEW, 1, "few", "user", {}]));
    row(PRIV, serde_json::json!([1, FEW, "role", 2, 4]));
    row(PRIV, serde_json::json!([1, FEW, "universe", 0, 24]));
    for (id, name, owner) in [(SECRET, "secret", 1), (SHOWN, "shown", 1), (OPEN, "open", 1), (OWN, "own", FEW)] {
        row(SPACE, serde_json::json!([id, owner, name, "memtx", 0, {}, []]));
        row(INDEX, serde_json::json!([id, 0, "pk", "tree", {"unique": true}, [[0, "unsigned"]]]));
        row(id, serde_json::json!([1, "first"]));
        row(id, serde_json::json!([2, "second", [1, 2, 3]]));
    }
    row(PRIV, serde_json::json!([1, FEW, "space", SHOWN, 1]));
    row(PRIV, serde_json::json!([1, FEW, "space", OPEN, 3]));
    database
}

/// The rows of every space, but for those that the user may write.
fn contents(database: &Database) -> BTreeMap<u32, Vec<Vec<u8>>> {
    let mut all = BTreeMap::new();
    for space in database.catalog.spaces() {
        if matches!(space.id.0, OPEN | OWN) || !space.has_index(IndexId::PRIMARY) {
            continue;
        }
        let mut rows = Vec::new();
        let Some(kept) = space.rows.memory() else { continue };
        kept.borrow().scan(IndexId::PRIMARY, IteratorKind::All, &[], 0, |row| {
            // He may empty his own space, and the one that he may write to.
            let named = Reader::new(row).read_array().ok().and_then(|_| Reader::new(&row[1..]).read_uint().ok());
            if space.id != TRUNCATE || !matches!(named, Some(514 | 515)) {
                rows.push(row.to_vec());
            }
            true
        });
        all.insert(space.id.0, rows);
    }
    all
}

fn write(database: &Database, context: &Context, space: &Rc<Space>, kind: u8, index_id: u32, row: &[u8], ops: &[u8]) {
    let index_base = u32::from(kind & 8 != 0);
    let operation = match kind % 5 {
        0 => Operation::Insert { tuple: row },
        1 => Operation::Replace { tuple: row },
        2 => Operation::Update { index_id: IndexId(index_id), key: row, ops, index_base },
        3 => Operation::Delete { index_id: IndexId(index_id), key: row },
        _ => Operation::Upsert { tuple: row, ops, index_base },
    };
    if let Err(error) = database.execute(context, space, operation) {
        assert!(!error.message().is_empty());
    }
}

fn read(database: &Database, context: &Context, space: &Rc<Space>, index_id: u32, iterator: u8, key: &[u8]) {
    let (Ok(key), Some(kind)) = (Key::decode(key), IteratorKind::from_code(u64::from(iterator) % 8)) else { return };
    let mut shown = 0;
    let request = ScanRequest { index_id: IndexId(index_id), kind, key, offset: 0, limit: 100 };
    let result = database.select(context, space, &request, |_| {
        shown += 1;
        true
    });
    if space.id == SECRET {
        let code = result.expect_err("he may not read it").code();
        assert_eq!((code, shown), (ErrorCode::AccessDenied as u32, 0));
    }
}

/// One case.
pub fn run(input: &[u8]) {
    let Some((&[kind, space, index, iterator], values)) = input.split_first_chunk::<4>() else { return };
    let Ok(length) = msgpack::check(values) else { return };
    let (row, ops) = values.split_at(length);
    let ops = if msgpack::check(ops) == Ok(ops.len()) { ops } else { &[0x90] };
    if Reader::new(row).read_array().is_err() || Reader::new(ops).read_array().is_err() {
        return;
    }
    let database = open();
    let before = contents(&database);
    let spaces = database.catalog.spaces();
    let space = &spaces[usize::from(space) % spaces.len()];
    let session = database.open_session(SessionKind::Binary, None);
    database.log_in(&session, FEW).expect("he may open sessions");
    let context = Context::for_request(session);
    if kind & 0x80 == 0 {
        write(&database, &context, space, kind, u32::from(index % 4), row, ops);
    } else {
        read(&database, &context, space, u32::from(index % 4), iterator, row);
    }
    assert!(contents(&database) == before, "rows that he has no right to have changed");
    assert!(database.check_execute_universe(&context).is_err());
    assert!(database.call(&Rc::new(context), "LUA", row, false, &mut Vec::new()).is_err());
}
