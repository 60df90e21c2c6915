//! A database over simulated files, on one thread.

use database::{Config, Context, Database, Environment, SessionKind};
use runtime::{FileSystem, ManualClock, SeededRandomness};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// A log file larger than this is followed by another.
pub const WAL_MAX_SIZE: u64 = 48 << 10;
/// Little, so that a directory is small and power losses are many a second.
const PREPARE_BYTES: u64 = 16 << 10;
/// Memory for rows unless a tool limits it.
const MEMORY: u64 = 64 << 20;

/// In so many turns everything that was begun has come to its end.
const TURNS: usize = 8;

/// Where rows are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// In memory.
    #[default]
    Memory,
    /// On disk.
    Disk,
}

impl Engine {
    /// As an option of a space.
    pub(crate) fn name(self) -> &'static [u8] {
        match self {
            Engine::Memory => b"memtx",
            Engine::Disk => b"vinyl",
        }
    }
}

/// Where log and snapshots lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// In one directory.
    Together,
    /// Each in a directory of its own: neither is synced with the other.
    Apart,
}

impl Layout {
    /// Of the log, the snapshots and the disk engine.
    fn dirs(self) -> (PathBuf, PathBuf, PathBuf) {
        match self {
            Layout::Together => (PathBuf::from("/db"), PathBuf::from("/db"), PathBuf::from("/db")),
            Layout::Apart => (PathBuf::from("/log"), PathBuf::from("/snapshots"), PathBuf::from("/disk")),
        }
    }
}

/// Opens the database of a simulated machine, or makes it. Errors: as a server says that refuses to start.
pub fn open(files: Arc<dyn FileSystem>, layout: Layout) -> database::Result<Rc<Database>> {
    open_with(files, layout, |_| {})
}

/// As `open`, with changed options.
pub fn open_with(
    files: Arc<dyn FileSystem>,
    layout: Layout,
    change: impl FnOnce(&mut Config),
) -> database::Result<Rc<Database>> {
    let (wal_dir, memtx_dir, vinyl_dir) = layout.dirs();
    let mut config = Config {
        wal_dir,
        memtx_dir,
        vinyl_dir,
        // So little that a few rows make ranges split, runs merge and manifests switch.
        vinyl_page_size: 100,
        vinyl_range_size: 300,
        vinyl_run_count_per_level: 1,
        vinyl_manifest_bytes: 1000,
        memtx_memory: MEMORY,
        wal_writes_in_flight: 0,
        wal_max_size: WAL_MAX_SIZE,
        wal_prepare_bytes: PREPARE_BYTES,
        checkpoint_interval: 0,
        ..Config::default()
    };
    change(&mut config);
    let environment = Environment {
        files,
        clock: Arc::new(ManualClock::default()),
        randomness: Arc::new(SeededRandomness::new(1)),
        wake: Arc::new(|| {}),
    };
    let database = Database::new(config, environment)?;
    database.open()?;
    Ok(database)
}

/// A context whose answers wait for the log, as those of a connection do.
pub fn request(database: &Database) -> Context {
    Context::for_request(database.open_session(SessionKind::Background, None))
}

/// A turn of the event loop: what is appended is written, what is written is noticed.
pub fn drive(database: &Database) {
    database.submit();
    // A finished checkpoint is published by the next turn; on disk levels are dumped, recorded and merged before.
    for _ in 0..TURNS {
        database.turn();
    }
}
