//! Writes of rows: insert, replace, update, upsert, delete, truncate.
//!
//! A statement on a plain space (no triggers, no sequence, not a system space, no open transaction) takes the short way: applied
//! in place, appended to the log, pending. Everything else runs inside a transaction of its own or the open one.

use crate::access::{self, ObjectType, Privileges};
use crate::alter;
use crate::catalog::{IndexInfo, Space, SpaceKind};
use crate::database::Database;
use crate::disk::{Unseen, is_delete};
use crate::error::{Error, ErrorCode, Result};
use crate::select::Key;
use crate::session::Context;
use crate::txn::Statement;
use std::cell::RefCell;
use std::rc::Rc;
use storage::lsm::DiskChange;
use storage::{Change, Mode, StorageError};
use tuple::{Format, Tuple, msgpack, update};
use wal::Position;

/// Kinds of log rows, which are the request types of the protocol.
pub mod row_kind {
    /// INSERT.
    pub const INSERT: u16 = 2;
    /// REPLACE.
    pub const REPLACE: u16 = 3;
    /// UPDATE.
    pub const UPDATE: u16 = 4;
    /// DELETE.
    pub const DELETE: u16 = 5;
    /// UPSERT.
    pub const UPSERT: u16 = 9;
    /// NOP.
    pub const NOP: u16 = 12;
}

/// Keys of request and row bodies.
pub mod body_key {
    /// Number of the space.
    pub const SPACE_ID: u64 = 0x10;
    /// Number of the index.
    pub const INDEX_ID: u64 = 0x11;
    /// Number that the first field has in update operations.
    pub const INDEX_BASE: u64 = 0x15;
    /// Key.
    pub const KEY: u64 = 0x20;
    /// Row, or operations of an update.
    pub const TUPLE: u64 = 0x21;
    /// Operations of an upsert.
    pub const OPS: u64 = 0x28;
}

/// What a client wants done to rows of a space.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
    /// The row's key must be absent.
    Insert {
        /// The row.
        tuple: &'a [u8],
    },
    /// The row with the same key, if any, is replaced.
    Replace {
        /// The row.
        tuple: &'a [u8],
    },
    /// The row found by a unique key is changed.
    Update {
        /// Number of the index.
        index_id: u32,
        /// The key, an array.
        key: &'a [u8],
        /// The operations, an array of arrays.
        ops: &'a [u8],
        /// Number of the first field in operations: 0 or 1.
        index_base: u32,
    },
    /// The row found by a unique key is removed.
    Delete {
        /// Number of the index.
        index_id: u32,
        /// The key, an array.
        key: &'a [u8],
    },
    /// The row is inserted, or the one with its key is changed.
    Upsert {
        /// The row.
        tuple: &'a [u8],
        /// The operations, an array of arrays.
        ops: &'a [u8],
        /// Number of the first field in operations: 0 or 1.
        index_base: u32,
    },
}

impl Operation<'_> {
    fn trigger_name(&self) -> &'static str {
        match self {
            Operation::Insert { .. } => "INSERT",
            Operation::Replace { .. } => "REPLACE",
            Operation::Update { .. } => "UPDATE",
            Operation::Delete { .. } => "DELETE",
            Operation::Upsert { .. } => "UPSERT",
        }
    }
}

/// The rows that a statement means, before anything is changed.
pub(crate) struct Prepared {
    pub(crate) old: Option<Tuple>,
    pub(crate) new: Option<Tuple>,
    pub(crate) mode: Mode,
    pub(crate) kind: u16,
    /// What is done on disk without looking at what is there.
    pub(crate) unseen: Option<Unseen>,
}

impl Prepared {
    pub(crate) fn new(old: Option<Tuple>, new: Option<Tuple>, mode: Mode, kind: u16) -> Self {
        Prepared { old, new, mode, kind, unseen: None }
    }

    pub(crate) fn rows(&self) -> (Option<&Tuple>, Option<&Tuple>) {
        (self.old.as_ref(), self.new.as_ref())
    }
}

/// The part of the memory limit that is kept beyond it for what must not fail for want of memory: rows that take the place of others
/// at least as large (the old ones stay until the new ones are durable), and the system's own rows, without which nothing could
/// be truncated or dropped.
const RESERVE_PART: usize = 16;
/// The same while files are read: indexes built in another order may need more than those that were there before.
pub(crate) const LOADING_RESERVE_PART: usize = 4;

impl Database {
    /// Checks that the context's user may do `wanted` to a space.
    pub fn check_space_access(&self, context: &Context, space: &Space, wanted: u32) -> Result<()> {
        let rights = context.rights(&self.catalog);
        if rights.universe & (wanted | Privileges::USAGE) == wanted | Privileges::USAGE {
            return Ok(());
        }
        let user = context.user(&self.catalog);
        access::check(
            &rights,
            user,
            || self.catalog.user_name(user),
            wanted,
            ObjectType::Space,
            space.id,
            space.owner(),
            &space.name(),
        )
    }

    /// Executes a write after checking access. Returns the row that a client is shown: the new one, or the removed one of
    /// a delete; none for an upsert.
    ///
    /// Errors: 42, 7, 40, 3, 1xx of formats and updates. A refused statement has changed nothing.
    pub fn execute(&self, context: &Context, space: &Rc<Space>, operation: Operation<'_>) -> Result<Option<Tuple>> {
        self.check_space_access(context, space, Privileges::WRITE)?;
        if space.id == alter::SEQUENCE_DATA_ID {
            self.check_sequence_row(context, operation)?;
        }
        if space.kind == SpaceKind::Service {
            return self.change_setting(&context.session, space, operation);
        }
        self.execute_unchecked(context, space, operation)
    }

    /// Who moves a sequence by a row of `_sequence_data` needs the right to write that sequence. Errors: 42.
    #[cold]
    fn check_sequence_row(&self, context: &Context, operation: Operation<'_>) -> Result<()> {
        let list = match operation {
            Operation::Insert { tuple } | Operation::Replace { tuple } | Operation::Upsert { tuple, .. } => tuple,
            Operation::Update { key, .. } | Operation::Delete { key, .. } => key,
        };
        let mut reader = msgpack::Reader::new(list);
        let named = reader.read_array().ok().filter(|count| *count > 0).and_then(|_| reader.read_uint().ok());
        match named.and_then(|id| u32::try_from(id).ok()).and_then(|id| self.catalog.sequence(id)) {
            Some(sequence) => self.check_sequence(context, &sequence, Privileges::WRITE),
            // Refused as a row or a key.
            None => Ok(()),
        }
    }

    /// `execute` without the check of access.
    pub(crate) fn execute_unchecked(
        &self,
        context: &Context,
        space: &Rc<Space>,
        operation: Operation<'_>,
    ) -> Result<Option<Tuple>> {
        // What comes of it tells of the rows that are there, even if it is an error or nothing is changed.
        context.see(self.written(space));
        self.check_writable()?;
        self.statistics.count(&operation);
        if let SpaceKind::View { .. } = space.kind {
            return Err(Error::new(ErrorCode::ViewIsRo, &[&space.name()]));
        }
        let is_plain = space.id >= 512
            && context.answers_wait
            && space.kind == SpaceKind::Memory
            && !context.is_in_txn()
            && !space.has_triggers()
            && space.sequence.borrow().is_none();
        if is_plain {
            return self.execute_plain(context, space, operation);
        }
        if space.kind == SpaceKind::Disk {
            let is_alone = context.answers_wait
                && !context.is_in_txn()
                && !space.has_triggers()
                && space.sequence.borrow().is_none();
            if is_alone {
                return self.execute_disk(context, space, operation);
            }
        }
        self.enter(context)?;
        // Kept until the statement is in force, or refused.
        let _ready = self.make_ready(context, space, operation)?;
        let result = self.in_statement(context, || self.execute_in_txn(context, space, operation));
        // What a refused statement has left.
        drop(self.disk.ready_indexes.take());
        drop(self.disk.checked_format.take());
        result
    }

    /// The row that a statement would put in, and the one in whose place it would come. `None`: it puts in none.
    pub(crate) fn rows_of(
        &self,
        space: &Rc<Space>,
        operation: Operation<'_>,
    ) -> Result<Option<(Option<Tuple>, Tuple)>> {
        let Some(Prepared { old, new: Some(new), mode, .. }) = self.prepare(space, operation)? else {
            return Ok(None);
        };
        let old = old.or_else(|| space.store.borrow().get_same_key(new.data()));
        Ok(if mode == Mode::Insert && old.is_some() { None } else { Some((old, new)) })
    }

    /// The short way: one statement, one log row, no transaction object.
    fn execute_plain(&self, context: &Context, space: &Rc<Space>, operation: Operation<'_>) -> Result<Option<Tuple>> {
        let Some(prepared) = self.prepare(space, operation)? else {
            return Ok(None);
        };
        let kind = logged_kind(space, prepared.kind);
        let change = self.apply(space, prepared)?;
        self.doom_readers(space, &change);
        let def = space.def();
        if def.is_temporary {
            return Ok(shown(&operation, change));
        }
        let position = self
            .append_alone(context, space, kind, |out| encode_body(out, space, &change))
            .inspect_err(|_| space.store.borrow_mut().undo(&change))?;
        let answer = match shown_of(&operation, &change) {
            // A trigger turned a replacement into a deletion.
            None if !matches!(operation, Operation::Upsert { .. }) => change.old.clone(),
            shown => shown,
        };
        let disk = RefCell::default();
        self.push_pending(position, Statement { space: Rc::clone(space), change, effect: None, disk });
        Ok(answer)
    }

    /// Appends a transaction of one statement, which is in force, to the log. Errors: 40, and the statement is the caller's to take back.
    pub(crate) fn append_alone(
        &self,
        context: &Context,
        space: &Space,
        kind: u16,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Position> {
        let group_id = space.def().group_id;
        let position = self.with_journal(|journal| {
            journal.begin();
            journal.row(kind, group_id, encode);
            journal.commit()
        })?;
        self.note_write(space, position);
        context.see(position);
        Ok(position)
    }

    /// The long way: triggers, sequences, schema changes.
    pub(crate) fn execute_in_txn(
        &self,
        context: &Context,
        space: &Rc<Space>,
        operation: Operation<'_>,
    ) -> Result<Option<Tuple>> {
        let filled;
        let operation = match operation {
            Operation::Insert { tuple } => {
                filled = self.fill_sequence(context, space, tuple)?;
                Operation::Insert { tuple: filled.as_deref().unwrap_or(tuple) }
            }
            Operation::Replace { tuple } => {
                filled = self.fill_sequence(context, space, tuple)?;
                Operation::Replace { tuple: filled.as_deref().unwrap_or(tuple) }
            }
            other => other,
        };
        let before = if space.runs_triggers.get() { space.before_replace.borrow().clone() } else { Vec::new() };
        let prepared = match space.kind {
            _ if !before.is_empty() => self.prepare_for_triggers(context, space, &operation),
            SpaceKind::Disk => self.prepare_on_disk(context, space, &operation),
            _ => {
                let prepared = self.prepare(space, operation);
                let rows = prepared.as_ref().ok().and_then(|prepared| prepared.as_ref()).map(Prepared::rows);
                self.remember_statement(context, space, &operation, rows);
                prepared
            }
        };
        let Some(mut prepared) = prepared? else {
            return Ok(None);
        };
        // What the statement has become: triggers make a replacement or a deletion of it.
        let mut becomes = None;
        if !before.is_empty() {
            // If a trigger waits, what was seen here may not be true any more: that counts as something to lose.
            self.note_read(context, space);
            let name = operation.trigger_name();
            let mut new = prepared.new.clone();
            for trigger in before {
                new = self
                    .run_trigger(context, || trigger.run(context, prepared.old.as_ref(), new.as_ref(), space, name))?;
            }
            self.check_goes_on(context)?;
            let changed = match (&new, &prepared.new) {
                (Some(a), Some(b)) => !a.ptr_eq(b),
                (None, None) => false,
                _ => true,
            };
            // The triggers may have changed the row themselves: then the statement begins again, or what they want takes its place.
            let known = prepared.old.as_ref().or(prepared.new.as_ref());
            let present = match known {
                Some(row) if space.kind == SpaceKind::Disk => self.present_on_disk(context, space, row)?,
                Some(row) => space.store.borrow().get_same_key(row.data()),
                None => None,
            };
            let is_same = present.as_ref().map(Tuple::data) == prepared.old.as_ref().map(Tuple::data);
            if !is_same && !changed {
                let again = match space.kind {
                    SpaceKind::Disk => self.prepare_on_disk(context, space, &operation)?,
                    _ => self.prepare(space, operation)?,
                };
                let Some(again) = again else { return Ok(None) };
                prepared = again;
            } else if space.kind != SpaceKind::Disk || !is_same {
                // What is read twice from a disk is two tuples: a trigger that returns the old row has returned the first.
                prepared.old = present;
            }
            if changed {
                becomes = Some(if new.is_some() { "REPLACE" } else { "DELETE" });
                prepared.kind = if new.is_some() { row_kind::REPLACE } else { row_kind::DELETE };
                prepared.mode = Mode::Replace;
                prepared.new = new;
            }
            self.remember_rows(context, space, prepared.old.as_ref(), prepared.new.as_ref());
            let is_kept = match (&prepared.old, &prepared.new) {
                (None, None) => true,
                (Some(old), Some(new)) => changed && old.ptr_eq(new),
                _ => false,
            };
            if is_kept || !self.check_after_triggers(space, &operation, &prepared, changed)? {
                return Ok(None);
            }
            if changed
                && space.kind == SpaceKind::Memory
                && let Some(row) = &prepared.new
            {
                // The trigger's row is Lua's: what an index holds is in the arena whose views keep it.
                let replaced_bytes = prepared.old.as_ref().map_or(0, |old| old.data().len());
                prepared.new = Some(self.make_row(space, &space.format(), row.data(), || replaced_bytes)?);
            }
        }
        if space.kind == SpaceKind::Disk && !context.answers_wait {
            // The triggers may have taken long.
            self.check_writable()?;
        }
        let kind = logged_kind(space, prepared.kind);
        let unseen = prepared.unseen.take();
        let (change, disk) = match space.kind {
            SpaceKind::Disk => self.apply_on_disk(context, space, prepared, unseen.as_ref())?,
            _ => (self.apply(space, prepared)?, DiskChange::default()),
        };
        let def = space.def();
        let answer = match becomes {
            Some(_) => change.new.clone().or_else(|| change.old.clone()),
            None => shown_of(&operation, &change),
        };
        let is_deletion = becomes.map_or(is_delete(&operation), |kind| kind == "DELETE");
        let answer = answer.filter(|_| space.kind != SpaceKind::Disk || !is_deletion);
        let disk = RefCell::new(disk);
        let statement = Statement { space: Rc::clone(space), change: change.clone(), effect: None, disk };
        let log = (!def.is_temporary).then_some((kind, def.group_id));
        self.record(context, statement, log, |out| match &unseen {
            Some(unseen) => unseen.encode_body(out, space),
            None => encode_body(out, space, &change),
        });
        if space.is_system()
            && let Some(effect) = alter::on_system_row(self, context, space, change.old.as_ref(), change.new.as_ref())?
        {
            self.attach_effect(context, effect);
        }
        let on_replace = if space.runs_triggers.get() { space.on_replace.borrow().clone() } else { Vec::new() };
        for trigger in on_replace {
            self.run_trigger(context, || {
                let kind = becomes.unwrap_or(operation.trigger_name());
                trigger.run(context, change.old.as_ref(), change.new.as_ref(), space, kind)
            })?;
        }
        Ok(answer)
    }

    fn run_trigger<T>(&self, context: &Context, run: impl FnOnce() -> Result<T>) -> Result<T> {
        context.trigger_depth.set(context.trigger_depth.get() + 1);
        let result = run();
        context.trigger_depth.set(context.trigger_depth.get() - 1);
        result
    }

    /// Computes and checks the rows of a statement. `None`: there is nothing to do.
    pub(crate) fn prepare(&self, space: &Rc<Space>, operation: Operation<'_>) -> Result<Option<Prepared>> {
        match operation {
            Operation::Insert { tuple } => {
                let new = Some(self.new_row(space, tuple, || 0)?);
                Ok(Some(Prepared::new(None, new, Mode::Insert, row_kind::INSERT)))
            }
            Operation::Replace { tuple } => {
                let new = Some(self.new_row(space, tuple, || self.same_key_bytes(space, tuple))?);
                Ok(Some(Prepared::new(None, new, Mode::Replace, row_kind::REPLACE)))
            }
            Operation::Delete { index_id, key } => {
                let old = self.find_exact(space, index_id, key)?;
                Ok(old.map(|old| Prepared::new(Some(old), None, Mode::Replace, row_kind::DELETE)))
            }
            Operation::Update { index_id, key, ops, index_base } => {
                // As Tarantool: nobody looks at operations that have nothing to update.
                let Some(old) = self.find_exact(space, index_id, key)? else { return Ok(None) };
                let format = space.format();
                let mut row = self.scratch.take();
                row.clear();
                let updated = update::apply(ops, old.data(), Some(&format), index_base, &mut row)
                    .map_err(|error| self.update_error(error))
                    .and_then(|()| self.new_row(space, &row, || old.data().len()));
                *self.scratch.borrow_mut() = row;
                let new = updated?;
                if let Err(error) = self.check_same_primary_key(space, old.data(), new.data()) {
                    // As Tarantool: what is in the way is named first.
                    let existing = space.store.borrow().get_same_key(new.data());
                    return Err(match existing {
                        Some(existing) => self.storage_error(StorageError::Duplicate { index_id: 0, existing }, space),
                        None => error,
                    });
                }
                Ok(Some(Prepared::new(Some(old), Some(new), Mode::Replace, row_kind::REPLACE)))
            }
            Operation::Upsert { tuple, ops, index_base } => {
                let format = space.format();
                self.check_row(space, &format, tuple)?;
                update::check_ops(ops, Some(&format), index_base).map_err(|error| self.update_error(error))?;
                let old = space.store.borrow().get_same_key(tuple);
                let Some(old) = old else {
                    let new = Some(self.make_row(space, &format, tuple, || 0)?);
                    return Ok(Some(Prepared::new(None, new, Mode::Insert, row_kind::INSERT)));
                };
                let mut row = self.scratch.take();
                row.clear();
                let updated = update::upsert(ops, old.data(), Some(&format), index_base, &mut row)
                    .map_err(|error| self.update_error(error))
                    .and_then(|()| self.new_row(space, &row, || old.data().len()));
                *self.scratch.borrow_mut() = row;
                let new = updated?;
                if let Err(error) = self.check_same_primary_key(space, old.data(), new.data()) {
                    // As Tarantool: an upsert that would move its row is dropped with a line in the log.
                    tracing::error!("upsert is ignored: {error}");
                    return Ok(None);
                }
                Ok(Some(Prepared::new(Some(old), Some(new), Mode::Replace, row_kind::REPLACE)))
            }
        }
    }

    /// Puts prepared rows in force.
    pub(crate) fn apply(&self, space: &Rc<Space>, prepared: Prepared) -> Result<Change> {
        if space.kind != SpaceKind::Memory {
            return Ok(Change { old: None, new: prepared.new });
        }
        let mut store = space.store.borrow_mut();
        let applied = match (prepared.old, prepared.new) {
            (Some(old), Some(new)) => store.update(&old, new),
            (Some(old), None) => Ok(store.delete(old)),
            (None, Some(new)) => store.replace(new, prepared.mode),
            (None, None) => return Ok(Change { old: None, new: None }),
        };
        if let Some(index_id) = store.take_damage() {
            if let Ok(change) = &applied {
                store.undo(change);
                store.take_damage();
            }
            drop(store);
            return Err(self.index_damage(space, index_id));
        }
        applied.map_err(|error| self.storage_error(error, space))
    }

    /// Reports an index that does not have a row of its space.
    #[cold]
    fn index_damage(&self, space: &Space, index_id: u32) -> Error {
        let index = space.index_name(index_id);
        let error = Error::system(format_args!(
            "index '{index}' of space '{}' is damaged: a row of the space is not where its key belongs; drop the index and create it again",
            space.name()
        ));
        tracing::error!("{error}");
        error.with("space", space.name()).with("index", index)
    }

    /// Bytes of the row that has the same primary key.
    fn same_key_bytes(&self, space: &Space, row: &[u8]) -> usize {
        space.store.borrow().get_same_key(row).map_or(0, |old| old.data().len())
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

    /// Whether a row is what the format of a space and its indexes ask for. Looks at nothing else.
    pub fn check_format(&self, space: &Rc<Space>, row: &[u8]) -> Result<()> {
        space.format().check(row).map_err(|error| self.tuple_error(error, space))
    }

    /// Checks a row that a client gave.
    pub(crate) fn check_row(&self, space: &Rc<Space>, format: &Format, row: &[u8]) -> Result<()> {
        self.check_has_primary(space)?;
        format.check(row).map_err(|error| self.tuple_error(error, space))?;
        let (max, code) = match space.kind {
            SpaceKind::Disk => (self.max_disk_tuple_size.get(), ErrorCode::VinylMaxTupleSize),
            _ => (self.max_tuple_size.get(), ErrorCode::MemtxMaxTupleSize),
        };
        if row.len() > max && self.state() != crate::database::State::Loading {
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
        if space.kind != SpaceKind::Memory {
            let made = Tuple::new(&self.loose_rows, format.id(), row);
            return made.map_err(|error| {
                let what = format!("a row of space '{}' (the limit is {} bytes)", space.name(), error.limit);
                Error::new(ErrorCode::MemoryIssue, &[&error.requested, &"rows in use", &what])
            });
        }
        let made = Tuple::new(&self.arena, format.id(), row).or_else(|error| {
            if self.make_room(error.requested) {
                return Tuple::new(&self.arena, format.id(), row);
            }
            let limit = self.arena.limit();
            let reserve = if self.state() == crate::database::State::Loading {
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
        if matches!(space.kind, SpaceKind::Memory | SpaceKind::Disk) && !space.has_index(0) {
            return Err(Error::new(ErrorCode::NoSuchIndexId, &[&0, &space.name()]));
        }
        Ok(())
    }

    pub(crate) fn check_same_primary_key(&self, space: &Space, old: &[u8], new: &[u8]) -> Result<()> {
        let store = space.store.borrow();
        match store.index_def(0) {
            Some(primary) if primary.key_def.compare_rows(old, new).is_ne() => {
                Err(Error::new(ErrorCode::CantUpdatePrimaryKey, &[&space.index_name(0), &space.name()]))
            }
            _ => Ok(()),
        }
    }

    /// The row that a full key of a unique index names.
    pub(crate) fn find_exact(&self, space: &Rc<Space>, index_id: u32, key: &[u8]) -> Result<Option<Tuple>> {
        let key = Key::decode(key)?;
        self.check_exact_key(space, index_id, key)?;
        if space.kind != SpaceKind::Memory {
            return Ok(None);
        }
        Ok(space.store.borrow().get(index_id, key.parts, key.part_count))
    }

    /// Removes all rows. Logged as a change of `_truncate`, as Tarantool does.
    pub fn truncate(&self, context: &Context, space: &Rc<Space>) -> Result<()> {
        self.check_space_access(context, space, Privileges::WRITE)?;
        if space.is_system() {
            return Err(Error::new(ErrorCode::TruncateSystemSpace, &[&space.name()]));
        }
        let truncations = self.space(crate::alter::TRUNCATE_ID)?;
        let (mut tuple, mut ops) = (Vec::new(), Vec::new());
        msgpack::encode_array(&mut tuple, 2);
        msgpack::encode_uint(&mut tuple, u64::from(space.id));
        msgpack::encode_uint(&mut tuple, 1);
        msgpack::encode_array(&mut ops, 1);
        msgpack::encode_array(&mut ops, 3);
        msgpack::encode_str(&mut ops, b"+");
        msgpack::encode_uint(&mut ops, 1);
        msgpack::encode_uint(&mut ops, 1);
        let operation = Operation::Upsert { tuple: &tuple, ops: &ops, index_base: 0 };
        self.execute_unchecked(context, &truncations, operation)?;
        Ok(())
    }

    /// A refusal of the engine as a client sees it.
    pub(crate) fn storage_error(&self, error: StorageError, space: &Space) -> Error {
        match error {
            StorageError::Duplicate { index_id, existing } => {
                let mut text = String::new();
                msgpack::format_value(existing.data(), &mut text);
                Error::new(ErrorCode::TupleFound, &[&space.index_name(index_id), &space.name()])
                    .with("space", space.name())
                    .with("index", space.index_name(index_id))
                    .with("old_tuple", text)
            }
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

impl Space {
    /// True if there is an index with this number.
    pub fn has_index(&self, id: u32) -> bool {
        self.store.borrow().index_def(id).is_some()
    }
}

/// Error 36.
pub(crate) fn no_such_space(id: u32) -> Error {
    Error::new(ErrorCode::NoSuchSpace, &[&id]).with("space_id", id)
}

/// Error 35.
pub fn no_such_index(space: &Space, index_id: u32) -> Error {
    Error::new(ErrorCode::NoSuchIndexId, &[&index_id, &space.name()]).with("space", space.name())
}

/// An index by name. Errors: 148.
pub fn index_by_name(space: &Space, name: &str) -> Result<Rc<IndexInfo>> {
    space.index_by_name(name).ok_or_else(|| Error::new(ErrorCode::NoSuchIndexName, &[&name, &space.name()]))
}

/// As what a change stands in the log. Tarantool takes an INSERT into `_truncate` for a row of a snapshot and truncates nothing.
fn logged_kind(space: &Space, kind: u16) -> u16 {
    if space.id == crate::alter::TRUNCATE_ID && kind == row_kind::INSERT { row_kind::REPLACE } else { kind }
}

fn shown(operation: &Operation<'_>, change: Change) -> Option<Tuple> {
    match operation {
        Operation::Delete { .. } => change.old,
        Operation::Upsert { .. } => None,
        _ => change.new,
    }
}

#[inline]
pub(crate) fn shown_of(operation: &Operation<'_>, change: &Change) -> Option<Tuple> {
    match operation {
        Operation::Delete { .. } => change.old.clone(),
        Operation::Upsert { .. } => None,
        _ => change.new.clone(),
    }
}

/// The body of a log row: what is in force now, so that replaying it needs no operations.
pub(crate) fn encode_body(out: &mut Vec<u8>, space: &Space, change: &Change) {
    msgpack::encode_map(out, 2);
    msgpack::encode_uint(out, body_key::SPACE_ID);
    msgpack::encode_uint(out, u64::from(space.id));
    match (&change.new, &change.old) {
        (Some(new), _) => {
            msgpack::encode_uint(out, body_key::TUPLE);
            out.extend_from_slice(new.data());
        }
        (None, Some(old)) => {
            msgpack::encode_uint(out, body_key::KEY);
            let store = space.store.borrow();
            match store.index_def(0) {
                Some(primary) => primary.key_def.extract_key(old.data(), out),
                None => msgpack::encode_array(out, 0),
            }
        }
        (None, None) => {
            msgpack::encode_uint(out, body_key::KEY);
            msgpack::encode_array(out, 0);
        }
    }
}
