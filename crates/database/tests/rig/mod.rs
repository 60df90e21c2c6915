//! What tests of the whole database set up alike: one over simulated files, without threads, and rows written as JSON.

use database::{Config, Context, Database, Environment, Operation, SessionKind};
use runtime::{ManualClock, SeededRandomness, SimulatedFiles};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use tuple::SpaceId;

/// All files in one directory, nothing in a cache, nothing by itself.
pub(crate) fn config() -> Config {
    Config {
        wal_dir: PathBuf::from("/db"),
        memtx_dir: PathBuf::from("/db"),
        vinyl_dir: PathBuf::from("/db"),
        vinyl_cache: 0,
        memtx_memory: 64 << 20,
        wal_writes_in_flight: 0,
        checkpoint_interval: 0,
        ..Config::default()
    }
}

/// Opens a database that nobody is woken by: it goes on when it is driven.
pub(crate) fn open_with(files: &SimulatedFiles, config: Config) -> database::Result<Rc<Database>> {
    let environment = Environment {
        files: Arc::new(files.clone()),
        clock: Arc::new(ManualClock::default()),
        randomness: Arc::new(SeededRandomness::new(1)),
        wake: Arc::new(|| {}),
    };
    let database = Database::new(config, environment)?;
    database.open()?;
    Ok(database)
}

/// One turn.
pub(crate) fn drive(database: &Database) {
    database.submit();
    database.turn();
}

/// Whose answers wait for the log.
pub(crate) fn request(database: &Database) -> Context {
    Context::for_request(database.open_session(SessionKind::Background, None))
}

/// A value that is written as JSON.
pub(crate) fn encode(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    database::encode_json(&serde_json::from_str(text).unwrap(), &mut out);
    out
}

pub(crate) fn insert(database: &Database, context: &Context, space: u32, row: &str) -> database::Result<()> {
    let space = database.space(SpaceId(space))?;
    database.execute(context, &space, Operation::Insert { tuple: &encode(row) }).map(|_| ())
}
