//! Waiting for what is on disk.
//!
//! A statement is tried; if a block is missing its fiber waits for it, and the statement is tried again from its start. So all that a statement
//! looks at belongs to one moment, as in memory. Outside a fiber nothing can wait: [`Error::needs_fiber`] asks the caller to try again
//! in one. Writers wait, too, while memtables are full.

use crate::catalog::Space;
use crate::database::{Database, State};
use crate::error::{Error, ErrorCode, Result};
use crate::pacer::Pacer;
use crate::prepare::{Look, Prepared};
use crate::session::Context;
use crate::statement::Operation;
use runtime::fiber;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use storage::lsm::{
    Fetched, LSM_DIR, LsmConfig, LsmEngine, LsmEnvironment, LsmError, LsmSpace, Need, Stop, TreeOptions,
};
use storage::{IndexDef, NotAnArray};
use tuple::Lsn;

/// Interval at which a writer that finds memory full looks again.
const FULL_WAIT_NS: u64 = 1_000_000;
/// A log shorter than this is read in no time.
const DISK_LOG_MIN: u64 = 512 << 20;
/// The part of `vinyl_memory` that one transaction may write.
const TXN_PART: usize = 2;
/// The disk engine and what is between it and the schema.
#[derive(Default)]
pub(crate) struct DiskState {
    engine: RefCell<Option<Rc<LsmEngine>>>,
    /// Position of the row that is being read back from a file: of a snapshot, that of the snapshot.
    replayed_lsn: Cell<Lsn>,
    is_replaying_log: Cell<bool>,
    /// Indexes whose entries are in no run, to be filled when all is read.
    pub(crate) unbuilt: RefCell<Vec<(Rc<Space>, IndexDef, TreeOptions)>>,
    /// Spaces whose new indexes are to be recorded.
    pub(crate) seal_soon: RefCell<Vec<Rc<LsmSpace>>>,
    pace: Pacer,
}

/// Why a try of a statement ended without a result.
pub(crate) enum Halt {
    Wait(Need),
    Refused(Error),
    /// A block cannot be read.
    Unreadable(Rc<LsmError>),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Halt::Refused(error)
    }
}

impl From<NotAnArray> for Halt {
    fn from(error: NotAnArray) -> Self {
        Halt::Refused(error.into())
    }
}

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Wait(need) => Halt::Wait(need),
            Stop::Failed(error) => Halt::Unreadable(error),
        }
    }
}

impl Database {
    /// The disk engine, if files have been looked at.
    pub fn disk_engine(&self) -> Option<Rc<LsmEngine>> {
        self.disk.engine.borrow().clone()
    }

    /// Opens the disk engine's directory. Blocks. Errors: damage, with file and offset; it is not this instance's.
    ///
    /// `instance`: the UUID, unless the snapshot that should say it is damaged.
    pub(crate) fn open_disk(&self, instance: Option<String>) -> Result<()> {
        let config = self.config.borrow().clone();
        let environment = &self.environment;
        let engine = LsmEngine::open(
            LsmConfig {
                dir: config.vinyl_dir.join(LSM_DIR),
                memory_bytes_max: config.vinyl_memory as usize,
                cache_bytes_max: config.vinyl_cache as usize,
                is_threaded: config.wal_writes_in_flight > 0,
                compactions_max: config.vinyl_write_threads.max(1),
                manifest_bytes: config.vinyl_manifest_bytes,
                open_files_max: config.vinyl_open_files_max,
                page_cache_sampled_one_of: config.vinyl_page_cache_sampled_one_of,
                is_forced: config.force_recovery,
                instance_uuid: instance,
            },
            LsmEnvironment {
                files: environment.files.clone(),
                clock: environment.clock.clone(),
                wake: environment.wake.clone(),
            },
        )
        .map_err(Error::system)?;
        *self.disk.engine.borrow_mut() = Some(engine);
        Ok(())
    }

    /// Rows of a file come, of this position or one each.
    pub(crate) fn begin_replay(&self, lsn: Lsn, is_log: bool) {
        self.disk.replayed_lsn.set(lsn);
        self.disk.is_replaying_log.set(is_log);
    }

    pub(crate) fn replayed_lsn(&self) -> Lsn {
        self.disk.replayed_lsn.get()
    }

    /// True if rows come from a log and not from a snapshot.
    pub(crate) fn is_replaying_log(&self) -> bool {
        self.disk.is_replaying_log.get()
    }

    /// Bytes of log after which a checkpoint pays: what it spares the next start is more than it writes. Only rows on disk are written anyway.
    pub(crate) fn disk_log_max(&self) -> u64 {
        let has_spaces = self.disk_engine().is_some_and(|engine| engine.has_spaces());
        if has_spaces { DISK_LOG_MIN.max(2 * self.arena.used() as u64) } else { u64::MAX }
    }

    /// Everything is read: indexes are completed, and from now on reads do not block. `is_damaged`: rows may be missing.
    pub(crate) fn end_disk_replay(&self, context: &Context, is_damaged: bool) -> Result<()> {
        self.build_unbuilt(context)?;
        if let Some(engine) = self.disk_engine() {
            engine.forget_unclaimed(is_damaged);
        }
        Ok(())
    }

    /// The event loop runs: reads tell it when they have ended.
    pub(crate) fn serve_disk(&self) -> Result<()> {
        match (self.disk_engine(), self.log_notifier()) {
            (Some(engine), Some(notifier)) => engine.serve(notifier).map_err(Error::system),
            _ => Ok(()),
        }
    }

    /// Takes notice of what the engine's threads and reads have come to, between transactions. True if it wants to be called again soon.
    pub(crate) fn turn_disk(&self) -> bool {
        let Some(engine) = self.disk_engine() else { return false };
        let spaces = self.disk.seal_soon.take();
        if !spaces.is_empty() {
            engine.seal(&spaces, Lsn(self.appended().0));
        }
        engine.poll(Lsn(self.appended().0), Lsn(self.durable().0))
    }

    /// A part of a file cannot be read: whose it is, and where.
    pub(crate) fn read_error(&self, error: &LsmError) -> Error {
        let Some((file, offset)) = error.place() else { return Error::system(error) };
        let owner = self.disk_engine().and_then(|engine| engine.owner_of(error));
        let space = owner.and_then(|(space_id, index_id)| Some((self.catalog.space(space_id)?, index_id)));
        let named = match space {
            Some((space, index_id)) => {
                let (space_name, index_name) = (space.name(), space.index_name(index_id));
                let what = format!("index '{index_name}' of space '{space_name}': {error}");
                Error::system(what).with("space", space_name).with("index", index_name)
            }
            None => Error::system(error),
        };
        named.with("file", file.display()).with("offset", offset)
    }

    /// Tries until nothing is missing. May wait.
    pub(crate) fn until_ready<T>(&self, context: &Context, mut attempt: impl FnMut() -> Look<T>) -> Result<T> {
        // What was waited for stays in memory for the next tries, which may need all of it, however small the cache is.
        let mut fetched = Vec::new();
        loop {
            self.begin_try(context);
            let outcome = attempt();
            self.end_try(context, !matches!(outcome, Err(Halt::Wait(_))));
            match outcome {
                Ok(value) => return Ok(value),
                Err(Halt::Wait(need)) => fetched.push(self.wait_for(context, need)?),
                Err(halt) => return Err(self.halt_error(halt)),
            }
        }
    }

    /// Waits until what is needed is in memory. The open transaction is suspended meanwhile.
    ///
    /// Errors: there is no fiber that could wait; a block cannot be read; `TransactionConflict`.
    pub(crate) fn wait_for(&self, context: &Context, need: Need) -> Result<Fetched> {
        let Some(engine) = self.disk_engine() else { return Err(Error::system("the disk engine is not open")) };
        if fiber::current().is_none() && !self.is_loading() {
            return Err(Error::needs_fiber());
        }
        let fetched = engine.fetch(need).map_err(|error| self.read_error(&error))?;
        self.enter(context)?;
        assert!(!context.must_resume.get(), "whoever goes on has its changes applied");
        Ok(fetched)
    }

    /// Waits while the memory levels are full. Errors: they cannot be dumped; one transaction wants too much of them.
    fn wait_for_room(&self, context: &Context) -> Result<()> {
        let Some(engine) = self.disk_engine() else { return Ok(()) };
        context.session.writes_disk.set(true);
        let written = context.txn.borrow().as_ref().map_or(0, |txn| txn.logged_bytes());
        if written > engine.memory_bytes_max() / TXN_PART {
            let limit = engine.memory_bytes_max() / TXN_PART;
            let what = format!("one transaction on disk, which may write {limit} bytes");
            return Err(Error::new(ErrorCode::MemoryIssue, &[&written, &"vinyl_memory", &what]).with("limit", limit));
        }
        while engine.is_full() && self.state() == State::Running {
            if let Some(error) = engine.refusal() {
                let (max, dir) = (engine.memory_bytes_max(), engine.dir());
                let why = format!(
                    "memory for writes on disk is full (vinyl_memory, {max} bytes), and it cannot be written to {}: {error}",
                    dir.display()
                );
                return Err(Error::system(why).with("directory", dir.display()).with("limit", max));
            }
            if fiber::current().is_none() {
                return Err(Error::needs_fiber());
            }
            fiber::sleep(FULL_WAIT_NS);
            self.enter(context)?;
        }
        Ok(())
    }

    /// As `prepare`, for rows on disk and a statement without a transaction. May wait.
    pub(crate) fn prepare_on_disk(
        &self,
        context: &Context,
        space: &Rc<Space>,
        operation: &Operation<'_>,
    ) -> Result<Option<Prepared>> {
        self.wait_for_room(context)?;
        let prepared = self.until_ready(context, || self.prepare(context, space, operation))?;
        // The wait may have been long.
        self.check_writable()?;
        Ok(prepared)
    }

    /// Looks at what a statement of the open transaction has to know. Where rows are on disk it may wait, with the transaction suspended
    /// meanwhile.
    pub(crate) fn when_ready<T>(
        &self,
        context: &Context,
        space: &Space,
        mut attempt: impl FnMut() -> Look<T>,
    ) -> Result<T> {
        if !space.rows.may_wait() {
            return attempt().map_err(|halt| self.halt_error(halt));
        }
        self.remember_space(context, space);
        self.note_disk(context);
        self.wait_for_room(context)?;
        self.until_ready(context, attempt)
    }

    /// The error that stands for a look which cannot be repeated.
    pub(crate) fn halt_error(&self, halt: Halt) -> Error {
        match halt {
            Halt::Refused(error) => error,
            Halt::Unreadable(error) => self.read_error(&error),
            Halt::Wait(_) => Error::needs_fiber(),
        }
    }

    /// Applies a row of the log while files are read. Rows that are in runs already are passed over.
    pub(crate) fn replay_disk(&self, context: &Context, space: &Rc<Space>, operation: Operation<'_>) -> Result<()> {
        if space.disk().is_some_and(|disk| self.replayed_lsn() <= disk.dumped_lsn()) {
            return Ok(());
        }
        // What is in the log was good when it was written.
        let operation = match operation {
            Operation::Insert { tuple } => Operation::Replace { tuple },
            other => other,
        };
        self.put_moved(context, space, operation)
    }

    /// Applies a statement of files while they are read.
    pub(crate) fn put_moved(&self, context: &Context, space: &Rc<Space>, operation: Operation<'_>) -> Result<()> {
        let prepared = self.until_ready(context, || self.prepare(context, space, &operation))?;
        let Some(prepared) = prepared else { return Ok(()) };
        self.apply(space, prepared)?;
        if let Some(engine) = self.disk_engine().filter(|engine| engine.is_full()) {
            // What was read of the log is durable.
            engine.dump_all(self.replayed_lsn()).map_err(Error::system)?;
        }
        Ok(())
    }

    /// True if writers of spaces on disk are faster than dumps or merges and have to wait a little: the event loop then reads no more from
    /// connections that write there.
    pub fn is_disk_congested(&self) -> bool {
        let Some(engine) = self.disk_engine() else { return false };
        self.disk.pace.is_ahead(self.environment.clock.monotonic_ns(), engine.pace(), engine.written_bytes())
    }

    /// True while the rate of writers is limited.
    pub fn is_paced(&self) -> bool {
        self.disk_engine().is_some_and(|engine| engine.pace().is_some())
    }
}
