//! Statements and reads of spaces on disk.
//!
//! What is not in memory is waited for: a statement is tried; if a block is missing its fiber waits for it, and the statement is tried again from its
//! start. So all that a statement looks at belongs to one moment, as in memory. Outside a fiber nothing can wait: [`Error::needs_fiber`] asks
//! the caller to try again in one.
//!
//! A statement looks only if it must: a space with one index and without triggers takes REPLACE and DELETE by primary key without knowing what
//! was there, and UPSERT if what was there is not in memory.

use crate::access::Privileges;
use crate::alter::ReadyIndexes;
use crate::catalog::Space;
use crate::database::{Database, State};
use crate::error::{Error, ErrorCode, Result};
use crate::pacer::Pacer;
use crate::select::Key;
use crate::session::Context;
use crate::statement::{Operation, Prepared, body_key, encode_body, no_such_space, row_kind, shown_of};
use crate::statistics::increment;
use crate::txn::Statement;
use runtime::fiber;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use storage::lsm::{
    DiskChange, DiskKey, DiskRow, DiskScan, Fetched, LSM_DIR, LsmConfig, LsmEngine, LsmEnvironment, LsmError, LsmSpace,
    Need, Stop, TreeOptions,
};
use storage::{Change, IndexDef, IteratorKind, Mode};
use tuple::{Format, Tuple, msgpack, update};

/// A writer that finds memory full looks again after so long.
const FULL_WAIT_NS: u64 = 1_000_000;
/// A log shorter than this is read in no time.
const DISK_LOG_MIN: u64 = 512 << 20;
/// The part of `vinyl_memory` that one transaction may write.
const TXN_PART: usize = 2;
/// More blocks than a look at one place of an index needs.
const FETCHED_MAX: usize = 128;

/// The disk engine and what is between it and the schema.
#[derive(Default)]
pub(crate) struct DiskState {
    engine: RefCell<Option<Rc<LsmEngine>>>,
    /// Position of the row that is being read back from a file: of a snapshot, that of the snapshot.
    replayed_lsn: Cell<i64>,
    is_replaying_log: Cell<bool>,
    /// Indexes whose entries are in no run, to be filled when all is read.
    pub(crate) unbuilt: RefCell<Vec<(Rc<Space>, IndexDef, TreeOptions)>>,
    /// Spaces whose new indexes are to be recorded.
    pub(crate) seal_soon: RefCell<Vec<Rc<LsmSpace>>>,
    /// The row of `_space` whose format all rows of a space were found to fit, for the statement that is about to put it in force.
    pub(crate) checked_format: RefCell<Option<Tuple>>,
    /// Indexes that wait for the statement that puts them in their places, which comes at once.
    pub(crate) ready_indexes: RefCell<Option<ReadyIndexes>>,
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

impl From<Stop> for Halt {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Wait(need) => Halt::Wait(need),
            Stop::Failed(error) => Halt::Unreadable(error),
        }
    }
}

/// A statement that does not look at what is there. It is never refused for what is.
pub(crate) enum Unseen {
    /// The row with this primary key goes, if it is there.
    Delete { key: Vec<u8> },
    /// Operations for a row; it is put in if it is not there.
    Upsert { row: Tuple, operations: Vec<u8>, index_base: u32 },
}

impl Unseen {
    fn kind(&self) -> u16 {
        match self {
            Unseen::Delete { .. } => row_kind::DELETE,
            Unseen::Upsert { .. } => row_kind::UPSERT,
        }
    }

    fn prepared(self) -> Prepared {
        Prepared { old: None, new: None, mode: Mode::Replace, kind: self.kind(), unseen: Some(self) }
    }

    /// The body of its log row.
    pub(crate) fn encode_body(&self, out: &mut Vec<u8>, space: &Space) {
        let index_base = match self {
            Unseen::Upsert { index_base, .. } => *index_base,
            Unseen::Delete { .. } => 0,
        };
        let fields = match self {
            Unseen::Delete { .. } => 2,
            Unseen::Upsert { .. } => 3 + u32::from(index_base != 0),
        };
        msgpack::encode_map(out, fields);
        msgpack::encode_uint(out, body_key::SPACE_ID);
        msgpack::encode_uint(out, u64::from(space.id));
        if index_base != 0 {
            msgpack::encode_uint(out, body_key::INDEX_BASE);
            msgpack::encode_uint(out, u64::from(index_base));
        }
        match self {
            Unseen::Delete { key } => {
                msgpack::encode_uint(out, body_key::KEY);
                out.extend_from_slice(key);
            }
            Unseen::Upsert { row, operations, .. } => {
                msgpack::encode_uint(out, body_key::TUPLE);
                out.extend_from_slice(row.data());
                msgpack::encode_uint(out, body_key::OPS);
                out.extend_from_slice(operations);
            }
        }
    }
}

impl Space {
    /// The rows, if they are on disk.
    pub fn disk(&self) -> Option<&Rc<LsmSpace>> {
        self.disk.as_ref()
    }

    /// True if there is no row for sure.
    pub fn has_no_rows(&self) -> bool {
        match &self.disk {
            Some(disk) => disk.is_empty(),
            None => self.store.borrow().is_empty(),
        }
    }

    /// Number of rows; of a space on disk about.
    pub fn len(&self) -> u64 {
        match &self.disk {
            Some(disk) => disk.len_estimate(),
            None => self.store.borrow().len() as u64,
        }
    }

    /// Bytes of all rows; on disk, of the primary index.
    pub fn row_bytes(&self) -> u64 {
        match &self.disk {
            Some(disk) => disk.index_bytes(0),
            None => self.store.borrow().row_bytes() as u64,
        }
    }

    /// Bytes of one index.
    pub fn index_bytes(&self, index_id: u32) -> u64 {
        match &self.disk {
            Some(disk) => disk.index_bytes(index_id),
            None => self.store.borrow().index_bytes(index_id) as u64,
        }
    }

    /// True if `len` is nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// As Tarantool's disk engine, which may not know what it deletes, a delete shows nothing.
pub(crate) fn is_delete(operation: &Operation<'_>) -> bool {
    matches!(operation, Operation::Delete { .. })
}

/// Keeps what a scan was waited for. One that seeks again begins behind its last key, and needs a block of each run for that, and perhaps of another index,
/// all at one time: there may be no cache that has them. One that goes on where it is needs the last alone.
fn keep(fetched: &mut Vec<Fetched>, seeks_again: bool, block: Fetched) {
    if !seeks_again {
        fetched.clear();
    } else if fetched.len() >= FETCHED_MAX {
        fetched.remove(0);
    }
    fetched.push(block);
}

fn key_of<'a>(key: Key<'a>) -> DiskKey<'a> {
    DiskKey { parts: key.parts, part_count: key.part_count }
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
    pub(crate) fn begin_replay(&self, lsn: i64, is_log: bool) {
        self.disk.replayed_lsn.set(lsn);
        self.disk.is_replaying_log.set(is_log);
    }

    pub(crate) fn replayed_lsn(&self) -> i64 {
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
            engine.seal(&spaces, self.appended().0);
        }
        engine.poll(self.appended().0, self.durable().0)
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

    pub(crate) fn disk_of<'a>(&self, space: &'a Space) -> Result<&'a Rc<LsmSpace>> {
        space.disk().ok_or_else(|| Error::new(ErrorCode::Unsupported, &[&space.def().engine, &"rows"]))
    }

    /// Tries until nothing is missing. May wait.
    pub(crate) fn until_ready<T>(
        &self,
        context: &Context,
        mut attempt: impl FnMut() -> std::result::Result<T, Halt>,
    ) -> Result<T> {
        // What was waited for stays in memory for the next tries, which may need all of it, however small the cache is.
        let mut fetched = Vec::new();
        loop {
            self.begin_try(context);
            let outcome = attempt();
            self.end_try(context, !matches!(outcome, Err(Halt::Wait(_))));
            match outcome {
                Ok(value) => return Ok(value),
                Err(Halt::Refused(error)) => return Err(error),
                Err(Halt::Unreadable(error)) => return Err(self.read_error(&error)),
                Err(Halt::Wait(need)) => fetched.push(self.wait_for(context, need)?),
            }
        }
    }

    /// Waits until what is needed is in memory. The open transaction is suspended meanwhile.
    ///
    /// Errors: there is no fiber that could wait; a block cannot be read; 97.
    pub(crate) fn wait_for(&self, context: &Context, need: Need) -> Result<Fetched> {
        let Some(engine) = self.disk_engine() else { return Err(Error::system("the disk engine is not open")) };
        if fiber::current().is_none() && self.state() != State::Loading {
            return Err(Error::needs_fiber());
        }
        let fetched = engine.fetch(need).map_err(|error| self.read_error(&error))?;
        self.enter(context)?;
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

    /// A write without triggers, sequences and transactions: one statement, one log row.
    pub(crate) fn execute_disk(
        &self,
        context: &Context,
        space: &Rc<Space>,
        operation: Operation<'_>,
    ) -> Result<Option<Tuple>> {
        self.wait_for_room(context)?;
        let prepared = self.until_ready(context, || self.prepare_disk(context, space, &operation))?;
        let Some(mut prepared) = prepared else { return Ok(None) };
        // The wait may have been long.
        self.check_writable()?;
        let kind = prepared.kind;
        let unseen = prepared.unseen.take();
        let (change, disk) = self.put_on_disk(space, prepared, unseen.as_ref())?;
        let encode = |out: &mut Vec<u8>| match &unseen {
            Some(unseen) => unseen.encode_body(out, space),
            None => encode_body(out, space, &change),
        };
        let position = match self.append_alone(context, space, kind, encode) {
            Ok(position) => position,
            Err(error) => {
                self.disk_of(space)?.undo(&disk);
                return Err(error);
            }
        };
        increment(&self.statistics.disk_commits);
        let answer = shown_of(&operation, &change).filter(|_| !is_delete(&operation));
        let statement = Statement { space: Rc::clone(space), change, effect: None, disk: RefCell::new(disk) };
        self.doom_readers_of_statement(&statement);
        self.push_pending(position, statement);
        Ok(answer)
    }

    /// As `prepare` of spaces in memory. May wait, with the open transaction suspended meanwhile.
    pub(crate) fn prepare_on_disk(
        &self,
        context: &Context,
        space: &Rc<Space>,
        operation: &Operation<'_>,
    ) -> Result<Option<Prepared>> {
        self.on_disk(context, space, || self.prepare_disk(context, space, operation))
    }

    /// Looks at what a statement has to know. May wait, with the open transaction suspended meanwhile.
    pub(crate) fn on_disk<T>(
        &self,
        context: &Context,
        space: &Rc<Space>,
        attempt: impl FnMut() -> std::result::Result<T, Halt>,
    ) -> Result<T> {
        self.outlive_yield(context);
        self.remember_space(context, space);
        self.wait_for_room(context)?;
        self.until_ready(context, attempt)
    }

    /// As `apply` of spaces in memory, for what `prepare_on_disk` made and triggers may have changed. May wait before it does anything.
    pub(crate) fn apply_on_disk(
        &self,
        context: &Context,
        space: &Rc<Space>,
        prepared: Prepared,
        unseen: Option<&Unseen>,
    ) -> Result<(Change, DiskChange)> {
        if space.has_triggers()
            && let Some(new) = &prepared.new
        {
            let disk = self.disk_of(space)?;
            self.until_ready(context, || self.check_conflict(space, disk, prepared.old.as_ref(), new))?;
        }
        self.put_on_disk(space, prepared, unseen)
    }

    fn put_on_disk(
        &self,
        space: &Rc<Space>,
        prepared: Prepared,
        unseen: Option<&Unseen>,
    ) -> Result<(Change, DiskChange)> {
        let disk = self.disk_of(space)?;
        let done = match unseen {
            None => disk.put(prepared.old.as_ref().map(Tuple::data), prepared.new.as_ref().map(Tuple::data)),
            Some(Unseen::Delete { key }) => disk.delete_unseen(key_of(Key::decode(key)?)),
            Some(Unseen::Upsert { row, operations, index_base }) => {
                disk.upsert_unseen(row.data(), operations, *index_base)
            }
        };
        Ok((Change { old: prepared.old, new: prepared.new }, done))
    }

    /// Looks at what a statement has to know, and makes its rows. `None`: there is nothing to do.
    pub(crate) fn prepare_disk(
        &self,
        context: &Context,
        space: &Rc<Space>,
        operation: &Operation<'_>,
    ) -> std::result::Result<Option<Prepared>, Halt> {
        if space.is_dropped.get() {
            // While it was waited for.
            return Err(no_such_space(space.id).into());
        }
        // Also an error, or that there is nothing to do, tells of the rows that are there.
        context.see(self.written(space));
        let disk = self.disk_of(space)?;
        let is_blind = disk.has_one_index() && !space.has_triggers();
        let put = |old, new, kind| Ok(Some(Prepared { old, new, mode: Mode::Replace, kind, unseen: None }));
        match *operation {
            Operation::Insert { tuple } => {
                let new = self.new_row(space, tuple, || 0)?;
                self.remember_rows(context, space, None, Some(&new));
                if let Some(existing) = disk.get_same_key(tuple)? {
                    return Err(self.duplicate(space, 0, &existing).into());
                }
                self.check_conflict(space, disk, None, &new)?;
                put(None, Some(new), row_kind::INSERT)
            }
            Operation::Replace { tuple } => {
                let new = self.new_row(space, tuple, || 0)?;
                if is_blind {
                    return put(None, Some(new), row_kind::REPLACE);
                }
                self.remember_rows(context, space, None, Some(&new));
                let old = disk.get_same_key(tuple)?;
                let old = old.map(|old| self.tuple_of(space, &old)).transpose()?;
                self.check_conflict(space, disk, old.as_ref(), &new)?;
                put(old, Some(new), row_kind::REPLACE)
            }
            Operation::Delete { index_id, key } => {
                let found_by = Key::decode(key)?;
                self.check_exact_key(space, index_id, found_by)?;
                if is_blind {
                    return Ok(Some(Unseen::Delete { key: key.to_vec() }.prepared()));
                }
                self.remember_key(context, space, index_id, found_by);
                match disk.get(index_id, key_of(found_by))? {
                    Some(old) => put(Some(self.tuple_of(space, &old)?), None, row_kind::DELETE),
                    None => Ok(None),
                }
            }
            Operation::Update { index_id, key, ops, index_base } => {
                let found_by = Key::decode(key)?;
                self.check_exact_key(space, index_id, found_by)?;
                self.remember_key(context, space, index_id, found_by);
                let Some(old) = disk.get(index_id, key_of(found_by))? else { return Ok(None) };
                let old = self.tuple_of(space, &old)?;
                let mut row = Vec::new();
                update::apply(ops, old.data(), Some(&space.format()), index_base, &mut row)
                    .map_err(|error| self.update_error(error))?;
                let new = self.new_row(space, &row, || old.data().len())?;
                self.check_same_primary_key(space, old.data(), new.data())?;
                self.remember_rows(context, space, Some(&old), Some(&new));
                self.check_conflict(space, disk, Some(&old), &new)?;
                put(Some(old), Some(new), row_kind::REPLACE)
            }
            Operation::Upsert { tuple, ops, index_base } => {
                self.prepare_disk_upsert(context, space, tuple, ops, index_base, is_blind)
            }
        }
    }

    fn prepare_disk_upsert(
        &self,
        context: &Context,
        space: &Rc<Space>,
        tuple: &[u8],
        ops: &[u8],
        index_base: u32,
        is_blind: bool,
    ) -> std::result::Result<Option<Prepared>, Halt> {
        let disk = self.disk_of(space)?;
        let put =
            |old, new| Ok(Some(Prepared { old, new, mode: Mode::Replace, kind: row_kind::REPLACE, unseen: None }));
        let format = space.format();
        // In this order, other than in memory: as Tarantool's disk engine.
        update::check_ops(ops, Some(&format), index_base).map_err(|error| self.update_error(error))?;
        self.check_row(space, &format, tuple)?;
        let old = match disk.get_same_key(tuple) {
            Err(Stop::Wait(_)) if is_blind && disk.takes_note(tuple) => {
                let row = self.make_row(space, &format, tuple, || 0)?;
                // What is noted is noted on top of what is there.
                self.remember_rows(context, space, Some(&row), None);
                return Ok(Some(Unseen::Upsert { row, operations: ops.to_vec(), index_base }.prepared()));
            }
            found => found?,
        };
        let Some(old) = old else {
            let new = self.make_row(space, &format, tuple, || 0)?;
            self.remember_rows(context, space, None, Some(&new));
            self.check_conflict(space, disk, None, &new)?;
            return put(None, Some(new));
        };
        let old = self.tuple_of(space, &old)?;
        self.remember_rows(context, space, Some(&old), None);
        let mut row = Vec::new();
        update::upsert(ops, old.data(), Some(&format), index_base, &mut row)
            .map_err(|error| self.update_error(error))?;
        if self.state() == State::Loading
            && let Err(error) = format.check(&row)
        {
            // It was only noted when it was written, and whatever meets the note passes over it, too.
            let error = self.tuple_error(error, space);
            tracing::warn!(
                "an upsert of the log that makes a row which space '{}' cannot hold is ignored: {error}",
                space.name()
            );
            return Ok(None);
        }
        let new = self.new_row(space, &row, || old.data().len())?;
        if let Err(error) = self.check_same_primary_key(space, old.data(), new.data()) {
            // As Tarantool: an upsert that would move its row is dropped with a line in the log.
            tracing::error!("upsert is ignored: {error}");
            return Ok(None);
        }
        self.remember_rows(context, space, None, Some(&new));
        self.check_conflict(space, disk, Some(&old), &new)?;
        put(Some(old), Some(new))
    }

    /// The row that has the primary key of another. May wait.
    pub(crate) fn present_on_disk(&self, context: &Context, space: &Rc<Space>, row: &Tuple) -> Result<Option<Tuple>> {
        let disk = self.disk_of(space)?;
        self.until_ready(context, || {
            let found = disk.get_same_key(row.data())?;
            Ok(found.map(|row| self.tuple_of(space, &row)).transpose()?)
        })
    }

    /// Errors: 3 if another row has a key of `new` in a unique secondary index.
    fn check_conflict(
        &self,
        space: &Rc<Space>,
        disk: &Rc<LsmSpace>,
        old: Option<&Tuple>,
        new: &Tuple,
    ) -> std::result::Result<(), Halt> {
        match disk.conflict(new.data(), old.map(Tuple::data))? {
            Some((index_id, existing)) => Err(self.duplicate(space, index_id, &existing).into()),
            None => Ok(()),
        }
    }

    fn duplicate(&self, space: &Rc<Space>, index_id: u32, existing: &DiskRow) -> Error {
        let made = existing.with(|row| Tuple::new(&self.loose_rows, space.format().id(), row));
        match made {
            Ok(existing) => self.storage_error(storage::StorageError::Duplicate { index_id, existing }, space),
            Err(error) => self.storage_error(error.into(), space),
        }
    }

    /// A row of the disk as a tuple.
    pub(crate) fn tuple_of(&self, space: &Space, row: &DiskRow) -> Result<Tuple> {
        let format: Rc<Format> = space.format();
        row.with(|row| self.make_row(space, &format, row, || 0))
    }

    /// Applies a row of the log while files are read. Rows that are in runs already are passed over.
    pub(crate) fn replay_disk(&self, context: &Context, space: &Rc<Space>, operation: Operation<'_>) -> Result<()> {
        let disk = self.disk_of(space)?;
        let lsn = self.replayed_lsn();
        if lsn <= disk.dumped_lsn() {
            return Ok(());
        }
        // What is in the log was good when it was written.
        let operation = match operation {
            Operation::Insert { tuple } => Operation::Replace { tuple },
            other => other,
        };
        let prepared = self.until_ready(context, || self.prepare_disk(context, space, &operation))?;
        let Some(mut prepared) = prepared else { return Ok(()) };
        let unseen = prepared.unseen.take();
        self.put_on_disk(space, prepared, unseen.as_ref())?;
        if let Some(engine) = self.disk_engine().filter(|engine| engine.is_full()) {
            // What was read of the log is durable.
            engine.dump_all(lsn).map_err(Error::system)?;
        }
        Ok(())
    }

    /// Puts a statement of Tarantool's files in force, for the start.
    pub(crate) fn put_moved(&self, context: &Context, space: &Rc<Space>, operation: Operation<'_>) -> Result<()> {
        let prepared = self.until_ready(context, || self.prepare_disk(context, space, &operation))?;
        let Some(mut prepared) = prepared else { return Ok(()) };
        let unseen = prepared.unseen.take();
        self.put_on_disk(space, prepared, unseen.as_ref())?;
        if let Some(engine) = self.disk_engine().filter(|engine| engine.is_full()) {
            engine.dump_all(self.replayed_lsn()).map_err(Error::system)?;
        }
        Ok(())
    }

    /// The row that a full key of a unique index names. May wait.
    pub(crate) fn get_disk(
        &self,
        context: &Context,
        space: &Rc<Space>,
        index_id: u32,
        key: Key<'_>,
    ) -> Result<Option<Tuple>> {
        let disk = self.disk_of(space)?;
        self.outlive_yield(context);
        self.until_ready(context, || {
            self.remember_key(context, space, index_id, key);
            context.see(self.written(space));
            let found = disk.get(index_id, key_of(key))?;
            Ok(found.map(|row| self.tuple_of(space, &row)).transpose()?)
        })
    }

    /// Hands the rows of a scan to `visit` until it returns false. May wait.
    pub(crate) fn scan_disk(
        &self,
        context: &Context,
        space: &Rc<Space>,
        index_id: u32,
        kind: IteratorKind,
        key: Key<'_>,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        let disk = self.disk_of(space)?;
        self.outlive_yield(context);
        context.see(self.written(space));
        let is_point = index_id == 0
            && kind == IteratorKind::Eq
            && space.store.borrow().index_def(0).is_some_and(|def| def.key_def.part_count() as u32 == key.part_count);
        if is_point {
            return self.until_ready(context, || {
                self.remember_key(context, space, index_id, key);
                context.see(self.written(space));
                if let Some(row) = disk.get(index_id, key_of(key))? {
                    row.with(|row| visit(row));
                }
                Ok(())
            });
        }
        let mut scan = disk.scan(index_id, kind, key_of(key));
        let mut fetched = Vec::new();
        loop {
            match scan.next_row() {
                Ok(Some(row)) => {
                    fetched.clear();
                    if !row.with(&mut visit) {
                        break;
                    }
                }
                Ok(None) => break,
                Err(Stop::Failed(error)) => return Err(self.read_error(&error)),
                Err(Stop::Wait(need)) => {
                    let is_in_txn = context.is_in_txn();
                    if is_in_txn {
                        self.remember_disk(context, space, index_id, &scan);
                    } else {
                        scan.hold();
                    }
                    // The row of a secondary key is looked for from the newest run on each time.
                    keep(&mut fetched, is_in_txn || index_id != 0, self.wait_for(context, need)?);
                    if is_in_txn {
                        scan.seek_again();
                    }
                }
            }
        }
        self.remember_disk(context, space, index_id, &scan);
        Ok(())
    }

    /// The open transaction depends on what a scan has passed.
    fn remember_disk(&self, context: &Context, space: &Space, index_id: u32, scan: &DiskScan) {
        if self.remembers(context, space)
            && let Some(seen) = scan.seen()
        {
            self.remember_range(context, space, index_id, seen);
        }
    }

    /// The next rows of a scan behind `last`, at most `max`, for an iterator that goes on between other work. May wait.
    #[expect(clippy::too_many_arguments, reason = "as select, and where to go on")]
    fn next_disk_rows(
        &self,
        context: &Context,
        space: &Rc<Space>,
        index_id: u32,
        kind: IteratorKind,
        key: Key<'_>,
        last: Option<&[u8]>,
        max: usize,
    ) -> Result<Vec<Tuple>> {
        self.enter(context)?;
        self.check_space_access(context, space, Privileges::READ)?;
        let disk = self.disk_of(space)?;
        self.outlive_yield(context);
        let mut scan = match last {
            Some(last) => disk.scan_after(index_id, kind, key_of(key), last),
            None => disk.scan(index_id, kind, key_of(key)),
        };
        context.see(self.written(space));
        let mut rows = Vec::new();
        let mut fetched = Vec::new();
        while rows.len() < max {
            match scan.next_row() {
                Ok(Some(row)) => rows.push(self.tuple_of(space, &row)?),
                Ok(None) => break,
                Err(Stop::Failed(error)) => return Err(self.read_error(&error)),
                // What there is will do.
                Err(Stop::Wait(_)) if !rows.is_empty() => break,
                Err(Stop::Wait(need)) => {
                    self.remember_disk(context, space, index_id, &scan);
                    keep(&mut fetched, true, self.wait_for(context, need)?);
                    context.see(self.written(space));
                    scan.seek_again();
                }
            }
        }
        self.remember_disk(context, space, index_id, &scan);
        Ok(rows)
    }

    /// True if writers of spaces on disk are faster than dumps and have to wait a little: connections that write there should not be read on.
    pub fn is_disk_congested(&self) -> bool {
        let Some(engine) = self.disk_engine() else { return false };
        self.disk.pace.is_ahead(self.environment.clock.monotonic_ns(), engine.pace(), engine.written_bytes())
    }

    /// True while writers are let write only so much at a time.
    pub fn is_paced(&self) -> bool {
        self.disk_engine().is_some_and(|engine| engine.pace().is_some())
    }
}

/// A scan of a space on disk that goes on between other work: behind the last row that it gave, in what is there by then.
pub struct DiskIterator {
    space: Rc<Space>,
    index_id: u32,
    kind: IteratorKind,
    key: Vec<u8>,
    part_count: u32,
    last: Option<Tuple>,
    /// Rows that were read ahead, the next one last. Good while the space is not written to, for the transaction that remembers them.
    ahead: Vec<Tuple>,
    version: u64,
    txn_id: Option<u64>,
    /// How many are read at once next time.
    batch: usize,
    is_done: bool,
}

impl DiskIterator {
    /// Rows that are read ahead at most.
    const BATCH_MAX: usize = 64;

    /// A scan of an index; nothing is read yet.
    pub fn new(space: Rc<Space>, index_id: u32, kind: IteratorKind, key: Key<'_>) -> Self {
        let (part_count, key) = (key.part_count, key.parts.to_vec());
        let (last, ahead, version, txn_id, batch, is_done) = (None, Vec::new(), 0, None, 1, false);
        DiskIterator { space, index_id, kind, key, part_count, last, ahead, version, txn_id, batch, is_done }
    }

    /// The next row, `None` at the end. May wait. Errors: as a select's; 97.
    pub fn next(&mut self, database: &Database, context: &Context) -> Result<Option<Tuple>> {
        let disk = database.disk_of(&self.space)?;
        // A transaction may have been taken back meanwhile, with what it had written.
        database.enter(context)?;
        if self.is_done {
            return Ok(None);
        }
        let txn_id = database.txn_id(context);
        if disk.version() != self.version || txn_id != self.txn_id {
            self.ahead.clear();
        }
        if self.ahead.is_empty() {
            let key = Key { parts: &self.key, part_count: self.part_count };
            let last = self.last.as_ref().map(Tuple::data);
            let (index_id, kind) = (self.index_id, self.kind);
            self.ahead = database.next_disk_rows(context, &self.space, index_id, kind, key, last, self.batch)?;
            self.ahead.reverse();
            (self.version, self.txn_id) = (disk.version(), txn_id);
            self.batch = (self.batch * 2).min(Self::BATCH_MAX);
        }
        context.see(database.written(&self.space));
        self.last = self.ahead.pop();
        self.is_done = self.last.is_none();
        Ok(self.last.clone())
    }
}
