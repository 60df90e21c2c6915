//! What a write is going to do: the row that goes, the row that comes, and whether both are as the space asks.
//!
//! One way for both engines. Where rows are on disk a look may stop because something is not in memory ([`Halt::Wait`]); it is then repeated from
//! its start, so that all it has seen belongs to one moment. What is looked at is remembered for the open transaction before it can refuse
//! the write: that, too, was seen.

use crate::blind_write::BlindWrite;
use crate::catalog::Space;
use crate::database::Database;
use crate::disk::Halt;
use crate::error::{Error, ErrorCode, Result};
use crate::session::Context;
use crate::statement::{Operation, no_such_space, row_kind};
use std::rc::Rc;
use storage::{Change, Key, Mode, Refusal, StorageError, Write};
use tuple::update::{self, UpdateError};
use tuple::{Format, IndexId, Tuple, msgpack};

/// The part of the memory limit that is kept beyond it for what must not fail for want of memory: rows that take the place of others
/// at least as large (the old ones stay until the new ones are durable), and the system's own rows, without which nothing could
/// be truncated or dropped.
const RESERVE_PART: usize = 16;
/// The same while files are read: indexes built in another order may need more than those that were there before.
pub(crate) const LOADING_RESERVE_PART: usize = 4;

/// What a result is that may have to be waited for.
pub(crate) type Look<T> = std::result::Result<T, Halt>;

/// The rows that a statement means, before anything is changed.
pub(crate) struct Prepared {
    pub(crate) old: Option<Tuple>,
    pub(crate) new: Option<Tuple>,
    pub(crate) mode: Mode,
    /// Kind of its log row.
    pub(crate) kind: u16,
    /// What is written without a look at what is there, in place of the rows.
    pub(crate) blind: Option<Box<BlindWrite>>,
}

impl Prepared {
    pub(crate) fn new(old: Option<Tuple>, new: Option<Tuple>, mode: Mode, kind: u16) -> Self {
        Prepared { old, new, mode, kind, blind: None }
    }

    fn blind(write: BlindWrite) -> Self {
        let kind = write.kind();
        Prepared { old: None, new: None, mode: Mode::Replace, kind, blind: Some(Box::new(write)) }
    }
}

impl Database {
    /// Computes and checks the rows of a statement. `None`: there is nothing to do.
    ///
    /// Errors: `NoSuchSpace`, `TupleNotArray`, `KeyPartType`, `ExactMatch`, `MoreThanOneTuple`; those of formats and updates; `TupleFound` if rows are on disk, for in memory `apply` looks at that.
    pub(crate) fn prepare(
        &self,
        context: &Context,
        space: &Rc<Space>,
        operation: &Operation<'_>,
    ) -> Look<Option<Prepared>> {
        if space.rows.may_wait() {
            // What was waited for may have taken long.
            if space.is_dropped.get() {
                return Err(no_such_space(space.id).into());
            }
            // Also an error, or that there is nothing to do, tells of the rows that are there.
            context.see(self.written_before(context, space, operation));
        }
        let is_private = self.is_private(context);
        let is_blind = space.rows.is_blind() && !space.has_triggers() && !space.has_constraints() && !is_private;
        match *operation {
            Operation::Insert { tuple } => {
                let filled = self.with_generated(context, space, tuple)?;
                let new = self.new_row(space, filled.as_deref().unwrap_or(tuple), || 0)?;
                self.remember_looked_at(context, space, None, Some(&new));
                self.check_unique(context, space, Mode::Insert, None, &new)?;
                Ok(Some(Prepared::new(None, Some(new), Mode::Insert, row_kind::INSERT)))
            }
            Operation::Replace { tuple } => {
                let filled = self.with_generated(context, space, tuple)?;
                let tuple = filled.as_deref().unwrap_or(tuple);
                let new = self.new_row(space, tuple, || self.same_key_bytes(space, tuple))?;
                if is_blind {
                    return Ok(Some(Prepared::new(None, Some(new), Mode::Replace, row_kind::REPLACE)));
                }
                self.remember_looked_at(context, space, None, Some(&new));
                let mut old = None;
                if space.rows.may_wait() || is_private {
                    old = self.same_key(context, space, tuple)?;
                    self.check_unique(context, space, Mode::Replace, old.as_ref(), &new)?;
                }
                Ok(Some(Prepared::new(old, Some(new), Mode::Replace, row_kind::REPLACE)))
            }
            Operation::Delete { index_id, key } => {
                let found_by = Key::decode(key)?;
                self.check_exact_key(space, index_id, found_by)?;
                if is_blind {
                    return Ok(Some(Prepared::blind(BlindWrite::Delete { key: key.to_vec() })));
                }
                self.remember_key(context, space, index_id, found_by);
                let old = self.row_of_key(context, space, index_id, found_by)?;
                let old = old.filter(|old| self.shows(context, space, old.data()));
                old.iter().for_each(|old| self.remember_looked_at(context, space, Some(old), None));
                Ok(old.map(|old| Prepared::new(Some(old), None, Mode::Replace, row_kind::DELETE)))
            }
            Operation::Expire { key } => {
                let found_by = Key::decode(key)?;
                self.remember_key(context, space, IndexId::PRIMARY, found_by);
                let old = self.row_of_key(context, space, IndexId::PRIMARY, found_by)?;
                let old = old.filter(|old| !self.shows(context, space, old.data()));
                old.iter().for_each(|old| self.remember_looked_at(context, space, Some(old), None));
                Ok(old.map(|old| Prepared::new(Some(old), None, Mode::Replace, row_kind::DELETE)))
            }
            Operation::Update { index_id, key, ops, index_base } => {
                let found_by = Key::decode(key)?;
                self.check_exact_key(space, index_id, found_by)?;
                self.remember_key(context, space, index_id, found_by);
                // As Tarantool: nobody looks at operations that have nothing to update.
                let old = self.row_of_key(context, space, index_id, found_by)?;
                let Some(old) = old.filter(|old| self.shows(context, space, old.data())) else { return Ok(None) };
                let format = space.format();
                let new = self.computed_row(context, space, &old, |row| {
                    update::apply(ops, old.data(), Some(&format), index_base, row)
                })?;
                self.remember_looked_at(context, space, Some(&old), Some(&new));
                if let Err(error) = self.check_same_primary_key(space, old.data(), new.data()) {
                    return Err(self.name_what_is_there(space, &new, error).into());
                }
                self.check_unique(context, space, Mode::Replace, Some(&old), &new)?;
                Ok(Some(Prepared::new(Some(old), Some(new), Mode::Replace, row_kind::REPLACE)))
            }
            Operation::Upsert { tuple, ops, index_base } => {
                self.prepare_upsert(context, space, tuple, ops, index_base, is_blind)
            }
        }
    }

    fn prepare_upsert(
        &self,
        context: &Context,
        space: &Rc<Space>,
        tuple: &[u8],
        ops: &[u8],
        index_base: u32,
        is_blind: bool,
    ) -> Look<Option<Prepared>> {
        let filled = self.with_generated(context, space, tuple)?;
        let tuple = filled.as_deref().unwrap_or(tuple);
        let format = space.format();
        let check_ops = || update::check_ops(ops, Some(&format), index_base).map_err(|error| self.update_error(error));
        // Each engine of Tarantool has its own order of these two.
        let is_on_disk = space.rows.may_wait();
        if is_on_disk {
            check_ops()?;
        }
        self.check_row(space, &format, tuple)?;
        if is_on_disk {
            self.remember_key_of(context, space, tuple);
        } else {
            check_ops()?;
        }
        let old = match self.same_key(context, space, tuple) {
            // The operations must not come upon a row that has expired.
            Err(Halt::Wait(_)) if is_blind && space.ttl().is_none() && space.rows.takes_blind_upsert(tuple) => {
                let row = self.make_row(space, &format, tuple, || 0)?;
                let operations = ops.to_vec();
                return Ok(Some(Prepared::blind(BlindWrite::Upsert { row, operations, index_base })));
            }
            found => found?,
        };
        let Some(old) = old else {
            let new = self.make_row(space, &format, tuple, || 0)?;
            self.remember_looked_at(context, space, None, Some(&new));
            self.check_unique(context, space, Mode::Replace, None, &new)?;
            let kind = if is_on_disk { row_kind::REPLACE } else { row_kind::INSERT };
            return Ok(Some(Prepared::new(None, Some(new), Mode::Insert, kind)));
        };
        self.check_expired(context, space, Some(&old))?;
        let mut misfit = None;
        let new = self.computed_row(context, space, &old, |row| {
            update::upsert(ops, old.data(), Some(&format), index_base, row)?;
            if is_on_disk && context.origin.is_replay() {
                misfit = format.check(row).err();
            }
            Ok(())
        });
        if let Some(error) = misfit {
            // It was written blindly, and whatever meets it on disk passes over it, too.
            let (error, name) = (self.tuple_error(error, space), space.name());
            tracing::warn!(
                "an upsert of the log that makes a row which space '{name}' cannot hold is ignored: {error}"
            );
            return Ok(None);
        }
        let new = new.inspect_err(|_| self.remember_key_of(context, space, tuple))?;
        if let Err(error) = self.check_same_primary_key(space, old.data(), new.data()) {
            self.remember_key_of(context, space, tuple);
            // As Tarantool: an upsert that would move its row is dropped with a line in the log.
            tracing::error!("upsert is ignored: {error}");
            return Ok(None);
        }
        self.remember_looked_at(context, space, None, Some(&new));
        self.check_unique(context, space, Mode::Replace, Some(&old), &new)?;
        Ok(Some(Prepared::new(Some(old), Some(new), Mode::Replace, row_kind::REPLACE)))
    }

    /// Makes a row out of another one by what `compute` writes, and checks it.
    fn computed_row(
        &self,
        context: &Context,
        space: &Rc<Space>,
        old: &Tuple,
        compute: impl FnOnce(&mut Vec<u8>) -> std::result::Result<(), UpdateError>,
    ) -> Result<Tuple> {
        let mut row = self.scratch.take();
        row.clear();
        let new = compute(&mut row)
            .map_err(|error| self.update_error(error))
            .and_then(|()| self.with_generated(context, space, &row))
            .and_then(|filled| self.new_row(space, filled.as_deref().unwrap_or(&row), || old.data().len()));
        *self.scratch.borrow_mut() = row;
        new
    }

    // --- Looks at rows ---

    /// What is looked at on disk to be written is remembered at once, also by who forgets what it reads. A change in memory says by itself what it has seen,
    /// once it is applied.
    #[inline]
    fn remember_looked_at(&self, context: &Context, space: &Space, old: Option<&Tuple>, new: Option<&Tuple>) {
        if space.rows.may_wait() || self.is_private(context) {
            self.remember_rows(context, space, old, new);
        }
    }

    /// The row of a unique index with this key.
    #[inline]
    pub(crate) fn row_of_key(
        &self,
        context: &Context,
        space: &Space,
        index_id: IndexId,
        key: Key<'_>,
    ) -> Look<Option<Tuple>> {
        let below = || {
            let found = match self.disk_view(context, space) {
                Some(view) => space.rows.get_in_view(&view, index_id, key, space.format().id()),
                None => space.rows.get(index_id, key, space.format().id()),
            };
            found.map_err(|refusal| self.halt(refusal, space))
        };
        match self.layer(context, space) {
            Some(layer) => self.get_through(space, &layer, index_id, key, below),
            None => below(),
        }
    }

    /// The row with the primary key of `row`.
    #[inline]
    pub(crate) fn same_key(&self, context: &Context, space: &Space, row: &[u8]) -> Look<Option<Tuple>> {
        let below = || space.rows.same_key(row, space.format().id()).map_err(|refusal| self.halt(refusal, space));
        match self.layer(context, space) {
            Some(layer) => self.same_key_through(space, &layer, row, below),
            None => below(),
        }
    }

    /// Whether other rows than `old` have unique keys of `new`, as far as `apply` does not look at that. Errors: `TupleFound`.
    #[inline]
    fn check_unique(&self, context: &Context, space: &Space, mode: Mode, old: Option<&Tuple>, new: &Tuple) -> Look<()> {
        if self.is_private(context) {
            return self.check_unique_privately(context, space, mode, new);
        }
        if !space.rows.may_wait() {
            return Ok(());
        }
        space.rows.check(mode, old, new, space.format().id()).map_err(|refusal| self.halt(refusal, space))
    }

    /// The same of secondary indexes alone, for rows that triggers have changed. Errors: `TupleFound`.
    pub(crate) fn check_secondaries(
        &self,
        context: &Context,
        space: &Space,
        old: Option<&Tuple>,
        new: &Tuple,
    ) -> Look<()> {
        if self.is_private(context) {
            return self.check_unique_privately(context, space, Mode::Replace, new);
        }
        space.rows.check(Mode::Replace, old, new, space.format().id()).map_err(|refusal| self.halt(refusal, space))
    }

    pub(crate) fn halt(&self, refusal: Refusal, space: &Space) -> Halt {
        match refusal {
            Refusal::Stop(stop) => stop.into(),
            Refusal::Storage(error) => self.storage_error(error, space).into(),
        }
    }

    /// An update would move a row. As Tarantool: in memory, what is where it would go is named first.
    pub(crate) fn name_what_is_there(&self, space: &Space, new: &Tuple, error: Error) -> Error {
        match space.rows.same_key_in_memory(new.data()) {
            Some(existing) => {
                self.storage_error(StorageError::Duplicate { index_id: IndexId::PRIMARY, existing }, space)
            }
            None => error,
        }
    }

    /// Applies what was prepared, in all indexes.
    ///
    /// Errors: `TupleFound`; `MemoryIssue` without memory; an index is damaged.
    #[inline]
    pub(crate) fn apply(&self, space: &Space, prepared: Prepared) -> Result<(Change, Option<Box<BlindWrite>>)> {
        let Prepared { old, new, mode, blind, .. } = prepared;
        debug_assert!(
            blind.is_none() || old.is_none() && new.is_none() && space.rows.is_blind(),
            "a blind write knows no row"
        );
        debug_assert!(mode == Mode::Replace || new.is_some(), "what is inserted is a row");
        let write = match blind.as_deref() {
            None => Write::Put { old, new, mode },
            Some(BlindWrite::Delete { key }) => Write::BlindDelete { key: Key::decode(key)? },
            Some(BlindWrite::Upsert { row, operations, index_base }) => {
                Write::BlindUpsert { row: row.data(), operations, index_base: *index_base }
            }
        };
        let change = space.rows.apply(write).map_err(|error| self.storage_error(error, space))?;
        Ok((change, blind))
    }

    // --- Rows that clients give ---

    /// Bytes of the row that has the same primary key.
    fn same_key_bytes(&self, space: &Space, row: &[u8]) -> usize {
        space.rows.same_key_in_memory(row).map_or(0, |old| old.data().len())
    }

    /// Checks a row against the format and makes it. `replaced_bytes` tells, if memory is short, how large the row is that goes for it.
    pub(crate) fn new_row(
        &self,
        space: &Rc<Space>,
        row: &[u8],
        replaced_bytes: impl FnOnce() -> usize,
    ) -> Result<Tuple> {
        let format = space.format();
        self.check_row(space, &format, row)?;
        self.make_row(space, &format, row, replaced_bytes)
    }

    /// Checks a row against the format of a space and its indexes, and nothing else. Errors: those of formats.
    pub fn check_format(&self, space: &Rc<Space>, row: &[u8]) -> Result<()> {
        space.format().check(row).map_err(|error| self.tuple_error(error, space))
    }

    /// Checks a row that a client gave.
    pub(crate) fn check_row(&self, space: &Rc<Space>, format: &Format, row: &[u8]) -> Result<()> {
        self.check_has_primary(space)?;
        format.check(row).map_err(|error| self.tuple_error(error, space))?;
        let (max, code) = match space.rows.may_wait() {
            true => (self.limits.disk_tuple_bytes.get(), ErrorCode::VinylMaxTupleSize),
            false => (self.limits.tuple_bytes.get(), ErrorCode::MemtxMaxTupleSize),
        };
        if row.len() > max && !self.is_loading() {
            return Err(Error::new(code, &[&row.len()]).with("space", space.name()).with("limit", max));
        }
        Ok(())
    }

    /// Copies a checked row to where rows of its space are.
    pub(crate) fn make_row(
        &self,
        space: &Space,
        format: &Format,
        row: &[u8],
        replaced_bytes: impl FnOnce() -> usize,
    ) -> Result<Tuple> {
        if space.rows.memory().is_none() {
            let made = Tuple::new(&self.loose_rows, format.id(), row);
            return made.map_err(|error| self.storage_error(error.into(), space));
        }
        let made = Tuple::new(&self.arena, format.id(), row).or_else(|error| {
            if self.make_room(error.requested) {
                return Tuple::new(&self.arena, format.id(), row);
            }
            let limit = self.arena.limit();
            let reserve = if self.is_loading() {
                limit / LOADING_RESERVE_PART
            } else if space.is_system() || row.len() <= replaced_bytes() {
                limit / RESERVE_PART
            } else {
                return Err(error);
            };
            self.arena.set_limit(limit + reserve);
            let made = Tuple::new(&self.arena, format.id(), row);
            self.arena.set_limit(limit);
            made
        });
        made.map_err(|error| self.storage_error(error.into(), space))
    }

    pub(crate) fn check_has_primary(&self, space: &Space) -> Result<()> {
        if space.has_rows() && !space.has_index(IndexId::PRIMARY) {
            return Err(Error::new(ErrorCode::NoSuchIndexId, &[&0, &space.name()]));
        }
        Ok(())
    }

    pub(crate) fn check_same_primary_key(&self, space: &Space, old: &[u8], new: &[u8]) -> Result<()> {
        match space.index_def(IndexId::PRIMARY) {
            Some(primary) if primary.key_def.compare_rows(old, new).is_ne() => {
                Err(Error::new(ErrorCode::CantUpdatePrimaryKey, &[&space.index_name(IndexId::PRIMARY), &space.name()]))
            }
            _ => Ok(()),
        }
    }

    /// Reports an index that does not have a row of its space.
    #[cold]
    fn index_damage(&self, space: &Space, index_id: IndexId) -> Error {
        let index = space.index_name(index_id);
        let error = Error::system(format_args!(
            "index '{index}' of space '{}' is damaged: a row of the space is not where its key belongs; drop the index and create it again",
            space.name()
        ));
        tracing::error!("{error}");
        error.with("space", space.name()).with("index", index)
    }

    /// A refusal of the engine as a client sees it.
    pub(crate) fn storage_error(&self, error: StorageError, space: &Space) -> Error {
        match error {
            StorageError::Duplicate { index_id, existing } => {
                if space.ttl().is_some() {
                    self.expiry.is_in_the_way(space.id, &existing);
                }
                let mut text = String::new();
                msgpack::format_value(existing.data(), &mut text);
                Error::new(ErrorCode::TupleFound, &[&space.index_name(index_id), &space.name()])
                    .with("space", space.name())
                    .with("index", space.index_name(index_id))
                    .with("old_tuple", text)
            }
            StorageError::OutOfMemory(error) if space.rows.memory().is_none() => {
                let what = format!("a row of space '{}' (the limit is {} bytes)", space.name(), error.limit);
                Error::new(ErrorCode::MemoryIssue, &[&error.requested, &"rows in use", &what])
            }
            StorageError::Damaged { index_id } => self.index_damage(space, index_id),
            StorageError::OutOfMemory(error) => {
                let limit = self.arena.limit();
                let what = format!("a row of space '{}' (the limit is {limit} bytes)", space.name());
                Error::new(ErrorCode::MemoryIssue, &[&error.requested, &"memtx_memory", &what])
                    .with("space", space.name())
                    .with("limit", limit)
            }
        }
    }
}
