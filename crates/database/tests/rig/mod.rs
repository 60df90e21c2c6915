//! What tests of the whole database set up alike: one over simulated files, without threads, and rows written as JSON.

use database::{Config, Context, Database, Environment, Operation, SessionKind};
use runtime::{ManualClock, SeededRandomness, SimulatedFiles};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
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

/// Does `work`. If that takes minutes the process ends and says what it was about: a case that never ends says nothing by itself.
#[allow(dead_code, reason = "not every test has cases that nobody chose")]
pub(crate) fn unless_stuck<T>(what: &str, work: impl FnOnce() -> T) -> T {
    const SECONDS: u32 = 300;
    let (is_over, over) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // By seconds: a machine that stood still has worked for none of them.
            let is_stuck =
                (0..SECONDS).all(|_| over.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout));
            if is_stuck {
                eprintln!("not done after {SECONDS} seconds: {what}");
                std::process::abort();
            }
        });
        let _is_over = is_over;
        work()
    })
}
