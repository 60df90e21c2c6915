//! A database and a Lua state in a test, without a server.

use database::{Config, Database, Environment};
use lua::{Host, Lua, LuaConfig};
use runtime::{Clock, ManualClock, SeededRandomness, SimulatedFiles, fiber};
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

struct NoHost;

impl Host for NoHost {
    fn configure(&self, _options: &[u8]) -> database::Result<()> {
        Ok(())
    }

    fn exit(&self, _code: i32) {}

    fn listen_addresses(&self) -> Vec<String> {
        Vec::new()
    }

    fn rotate_log(&self) {}
}

/// Runs a script to its end.
pub(crate) fn run(database: &Rc<Database>, source: &str) {
    run_while(database, source, || {});
}

/// Runs a script to its end; `pass` lets time pass between turns.
pub(crate) fn run_while(database: &Rc<Database>, source: &str, pass: impl Fn()) {
    let outcome = Rc::new(RefCell::new(None));
    let slot = Rc::clone(&outcome);
    Lua::run_script("=test", source.as_bytes().to_vec(), Vec::new(), move |result| *slot.borrow_mut() = Some(result));
    for _ in 0..100_000 {
        if let Some(result) = outcome.take() {
            return result.unwrap();
        }
        fiber::run_ready(100);
        pass();
        database.submit();
        database.turn();
    }
    panic!("the script does not end");
}

/// An empty database that this thread's fibers work on.
pub(crate) fn open(clock: &Arc<ManualClock>) -> Rc<Database> {
    let config = Config {
        wal_dir: PathBuf::from("/db"),
        memtx_dir: PathBuf::from("/db"),
        memtx_memory: 64 << 20,
        wal_writes_in_flight: 0,
        checkpoint_interval: 0,
        ..Config::default()
    };
    let environment = Environment {
        files: Arc::new(SimulatedFiles::default()),
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        randomness: Arc::new(SeededRandomness::new(1)),
        wake: Arc::new(|| {}),
    };
    let database = Database::new(config, environment).unwrap();
    Lua::start(&database, Rc::new(NoHost), LuaConfig { memory: 256 << 20, slice_max_ms: 0 }).unwrap();
    database.open().unwrap();
    Lua::opened(&[0x80]);
    database
}
