//! A database over simulated files, on one thread.

use crate::removed::{Misread, RemovedFiles};
use database::{Config, Context, Database, Environment, SessionKind};
use runtime::{Clock, FileSystem, ManualClock, SeededRandomness, fiber};
use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// A log file larger than this is followed by another.
pub const WAL_MAX_SIZE: u64 = 48 << 10;
/// Little, so that a directory is small and power losses are many a second.
const PREPARE_BYTES: u64 = 16 << 10;
/// Memory for rows unless a tool limits it.
const MEMORY: u64 = 64 << 20;

/// In so many turns everything that was begun has come to its end, unless it fails again and again.
const TURNS_MAX: usize = 200;
/// So much time passes from one look at the clock to the next: what failed is tried again within some turns.
const LOOK_NS: u64 = 20_000_000;

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

/// Time that goes on, while the time of day stays: files that are made alike are alike.
#[derive(Default)]
struct SteppingClock(ManualClock);

impl Clock for SteppingClock {
    fn monotonic_ns(&self) -> u64 {
        self.0.advance(LOOK_NS);
        self.0.monotonic_ns()
    }

    fn wall_ns(&self) -> u64 {
        ManualClock::default().wall_ns()
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
        // Every block comes from its file.
        vinyl_cache: 0,
        vinyl_open_files_max: 4,
        memtx_memory: MEMORY,
        wal_writes_in_flight: 0,
        wal_max_size: WAL_MAX_SIZE,
        wal_prepare_bytes: PREPARE_BYTES,
        wal_rewrite_bytes: 1,
        checkpoint_interval: 0,
        ..Config::default()
    };
    change(&mut config);
    let environment = Environment {
        files: Arc::new(RemovedFiles::new(files, Misread::default())),
        clock: Arc::new(SteppingClock::default()),
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

/// Turns of the event loop: what is appended is written, what is written is noticed, and what follows from it comes to its end: a
/// finished checkpoint is published; on disk levels are dumped, recorded and merged.
pub fn drive(database: &Database) {
    database.submit();
    for _ in 0..TURNS_MAX {
        let has_more = database.turn();
        if !has_more && database.is_at_rest() {
            return;
        }
    }
}

/// Does what may take several turns of the event loop.
pub(crate) fn in_fiber<T: 'static>(database: &Rc<Database>, work: impl FnOnce(&Rc<Database>) -> T + 'static) -> T {
    let result = Rc::new(RefCell::new(None));
    let (slot, there) = (Rc::clone(&result), Rc::clone(database));
    let now = Rc::new(Cell::new(0));
    let clock = Rc::clone(&now);
    fiber::set_clock(Rc::new(move || clock.get()));
    fiber::run_now("step", move || {
        let done = work(&there);
        *slot.borrow_mut() = Some(done);
    });
    loop {
        if let Some(done) = result.take() {
            return done;
        }
        drive(database);
        // Whoever waits for a time has it at once.
        now.set(fiber::next_deadline().unwrap_or(0).max(now.get()));
        fiber::run_ready(usize::MAX);
    }
}
