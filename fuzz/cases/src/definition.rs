//! Doubts that any row in place of a definition (space, index with its parts and options, sequence, function, user, grant, collation,
//! truncation) and any login are put in force or refused, and that a definition taken back leaves the catalog as it was.

use database::{
    COLLATION_ID, FUNC_ID, INDEX_ID, PRIV_ID, SEQUENCE_DATA_ID, SEQUENCE_ID, SPACE_ID, SPACE_SEQUENCE_ID, TRUNCATE_ID,
    USER_ID,
};
use database::{Config, Context, Database, Environment, Operation, SessionKind};
use runtime::{ManualClock, SeededRandomness, SimulatedFiles};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use tuple::{IndexId, SpaceId, msgpack};

const SPACES: [SpaceId; 10] = [
    SPACE_ID,
    INDEX_ID,
    SEQUENCE_ID,
    FUNC_ID,
    USER_ID,
    PRIV_ID,
    COLLATION_ID,
    TRUNCATE_ID,
    SPACE_SEQUENCE_ID,
    SEQUENCE_DATA_ID,
];
const MEMORY: u64 = 16 << 20;

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
    database
}

fn count(database: &Database) -> Vec<u64> {
    let spaces = database.catalog.spaces();
    let mut counts = vec![spaces.len() as u64, database.catalog.users().len() as u64];
    for space in &spaces {
        let mut rows = 0;
        if space.has_index(IndexId::PRIMARY) {
            rows = space.rows.len();
        }
        counts.push(rows);
    }
    counts
}

/// One case.
pub fn run(input: &[u8]) {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let database = open();
    let session = database.open_session(SessionKind::Background, None);
    if choice & 0x80 != 0 {
        let (name, scramble) = bytes.split_at(bytes.len() / 2);
        let name = String::from_utf8_lossy(name);
        let accepted = database.authenticate(&session, &name, scramble, &[7; 32]);
        assert!(accepted.is_err(), "nobody has a password");
        return;
    }
    if msgpack::check(bytes) != Ok(bytes.len()) || msgpack::Reader::new(bytes).read_array().is_err() {
        return;
    }
    let context = database.admin_context();
    let space = database.space(SPACES[usize::from(choice) % SPACES.len()]).expect("it is always there");
    let before = count(&database);
    let operation = if choice & 0x40 == 0 {
        Operation::Replace { tuple: bytes }
    } else {
        Operation::Delete { index_id: IndexId::PRIMARY, key: bytes }
    };
    database.begin(&context).expect("none is open");
    let result = database.execute(&context, &space, operation);
    if let Err(error) = &result {
        assert!(!error.message().is_empty());
    }
    roll_back(&database, &context);
    assert_eq!(count(&database), before, "{result:?}");
}

fn roll_back(database: &Database, context: &Context) {
    // A definition that cannot wait may have ended the transaction.
    let _ = database.rollback(context);
}
