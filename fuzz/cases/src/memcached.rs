//! Doubts that bytes of a memcached client, before or behind a login, are cut into the same requests whatever follows them, that rows stay readable
//! whatever they ask for, and that the process lives.
//!
//! The input: a byte, odd for a client that has to log in; then what the client sends.

use database::{Config, Context, Database, Environment, Operation, ScanRequest};
use runtime::{ManualClock, SeededRandomness, SimulatedFiles};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use storage::{IteratorKind, Key};
use tuple::msgpack::Reader;
use tuple::{IndexId, SpaceId};

const MEMORY: u64 = 16 << 20;
const ITEMS: u32 = 512;
const SPACE: u32 = 280;
const INDEX: u32 = 288;
const KEY_BYTES_MAX: usize = 250;

pub(crate) fn open() -> Rc<Database> {
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
    let insert = |space: u32, row: serde_json::Value| {
        let mut bytes = Vec::new();
        database::encode_json(&row, &mut bytes);
        let space = database.space(SpaceId(space)).expect("it is there");
        database.execute(&admin, &space, Operation::Insert { tuple: &bytes }).expect("the administrator may do this");
    };
    let field = |name: &str, kind: &str| serde_json::json!({"name": name, "type": kind});
    let format = [field("key", "string"), field("value", "string")];
    insert(SPACE, serde_json::json!([ITEMS, 1, "items", "memtx", 0, {}, format]));
    insert(INDEX, serde_json::json!([ITEMS, 0, "primary", "tree", {"unique": true}, [[0, "string"]]]));
    database
}

/// One case.
pub fn run(input: &[u8]) {
    let Some((&first, bytes)) = input.split_first() else { return };
    let database = open();
    let admin = database.admin_context();
    let answers = protocol::memcached::serve_bytes(&database, &admin, "items", bytes, first % 2 == 1);
    check_rows(&database, &admin, KEY_BYTES_MAX);
    assert!(answers.len() <= 1 << 24, "an answer is bounded by what is asked");
}

/// All rows are items.
pub(crate) fn check_rows(database: &Rc<Database>, admin: &Context, key_bytes_max: usize) {
    let space = database.space(SpaceId(ITEMS)).expect("it is there");
    let request = ScanRequest::new(IndexId::PRIMARY, IteratorKind::All, Key::EMPTY);
    database
        .select(admin, &space, &request, |row| {
            let mut reader = Reader::new(row);
            assert!(reader.read_array().is_ok_and(|count| count == 2), "{row:?}");
            assert!(
                reader.read_str().is_ok_and(|key| key.len() <= key_bytes_max) && reader.read_str().is_ok(),
                "{row:?}"
            );
            true
        })
        .expect("the administrator may read");
}
