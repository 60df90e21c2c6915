//! `before_replace`: triggers that see what a statement is about to do, and may have it do something else.
//!
//! They run before the row is checked, so that they may repair it: only the key it is looked up by must be good.

use crate::catalog::Space;
use crate::database::Database;
use crate::error::Result;
use crate::prepare::{Look, Prepared};
use crate::session::Context;
use crate::statement::{Operation, row_kind};
use std::rc::Rc;
use storage::{Key, Mode, StorageError};
use tuple::{Format, IndexId, Tuple, msgpack, update};

/// What triggers make of a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Becomes {
    Replacement,
    Deletion,
}

impl Becomes {
    /// As the triggers behind it are told.
    pub(crate) fn trigger_name(self) -> &'static str {
        match self {
            Becomes::Replacement => "REPLACE",
            Becomes::Deletion => "DELETE",
        }
    }
}

impl Database {
    /// Runs one trigger, in which statements are nested.
    pub(crate) fn run_trigger<T>(&self, context: &Context, run: impl FnOnce() -> Result<T>) -> Result<T> {
        context.trigger_depth.set(context.trigger_depth.get() + 1);
        let result = run();
        context.trigger_depth.set(context.trigger_depth.get() - 1);
        result
    }

    /// What a statement of the open transaction is going to do, behind the triggers of its space that come before it, and what they have made
    /// of it if it is not what it was. `None`: there is nothing to do. May wait.
    ///
    /// Errors: as `prepare`, and those of the triggers.
    pub(crate) fn prepare_in_txn(
        &self,
        context: &Context,
        space: &Rc<Space>,
        operation: &Operation<'_>,
        has_lock: bool,
    ) -> Result<Option<(Prepared, Option<Becomes>)>> {
        let triggers = if space.runs_triggers.get() { space.before_replace.borrow().clone() } else { Vec::new() };
        if triggers.is_empty() {
            loop {
                let prepared = self.when_ready(context, space, || self.prepare(context, space, operation))?;
                match self.taken_meanwhile(context, space, prepared.as_ref()) {
                    Some((row, shown)) if !has_lock => self.lock_key(context, space, row, &shown, None)?,
                    _ => return Ok(prepared.map(|prepared| (prepared, None))),
                }
            }
        }
        let Some(mut prepared) = self.prepare_for_triggers(context, space, operation)? else { return Ok(None) };
        // If a trigger waits, what was seen here may not be true any more: that counts as something to lose.
        self.note_read(context, space);
        let mut new = prepared.new.clone();
        for trigger in triggers {
            let (old, name) = (prepared.old.as_ref(), operation.trigger_name());
            new = self.run_trigger(context, || trigger.run(context, old, new.as_ref(), space, name))?;
        }
        self.check_goes_on(context)?;
        let is_changed = match (&new, &prepared.new) {
            (Some(a), Some(b)) => !a.ptr_eq(b),
            (None, None) => false,
            _ => true,
        };
        // The triggers may have changed the row themselves: then the statement begins again, or what they want takes its place.
        let known = prepared.old.as_ref().or(prepared.new.as_ref());
        let present = match known {
            Some(row) => self.until_ready(context, || self.same_key(context, space, row.data()))?,
            None => None,
        };
        let is_same = present.as_ref().map(Tuple::data) == prepared.old.as_ref().map(Tuple::data);
        if !is_same && !is_changed {
            let again = self.when_ready(context, space, || self.prepare(context, space, operation))?;
            let Some(again) = again else { return Ok(None) };
            prepared = again;
        } else if !space.rows.may_wait() || !is_same {
            // What is read twice from a disk is two tuples: a trigger that returns the old row has returned the first.
            prepared.old = present;
        }
        let mut becomes = None;
        if is_changed {
            becomes = Some(if new.is_some() { Becomes::Replacement } else { Becomes::Deletion });
            prepared.kind = if new.is_some() { row_kind::REPLACE } else { row_kind::DELETE };
            prepared.mode = Mode::Replace;
            prepared.new = new;
        }
        let is_old = matches!((&prepared.old, &prepared.new), (Some(old), Some(new)) if is_changed && old.ptr_eq(new));
        if let Some(new) = prepared.new.as_ref().filter(|_| !is_old)
            && let Some(filled) = self.with_generated(context, space, new.data())?
        {
            let replaced_bytes = prepared.old.as_ref().map_or(0, |old| old.data().len());
            prepared.new = Some(self.make_row(space, &space.format(), &filled, || replaced_bytes)?);
        }
        self.remember_rows(context, space, prepared.old.as_ref(), prepared.new.as_ref());
        let is_kept = match (&prepared.old, &prepared.new) {
            (None, None) => true,
            (Some(old), Some(new)) => is_changed && old.ptr_eq(new),
            _ => false,
        };
        if is_kept || !self.check_after_triggers(space, operation, &prepared, is_changed)? {
            return Ok(None);
        }
        if let Some(row) = prepared.new.take() {
            let replaced_bytes = prepared.old.as_ref().map_or(0, |old| old.data().len());
            let new = match is_changed && space.rows.memory().is_some() {
                // The trigger's row is Lua's: what an index holds is in the arena whose views keep it.
                true => self.make_row(space, &space.format(), row.data(), || replaced_bytes)?,
                false => row,
            };
            self.until_ready(context, || self.check_secondaries(context, space, prepared.old.as_ref(), &new))?;
            prepared.new = Some(new);
        }
        Ok(Some((prepared, becomes)))
    }

    /// The rows that a statement means, unchecked but for the key. `None`: there is nothing to do, and no trigger hears of it. May wait if the
    /// space is on disk.
    ///
    /// Errors: `TupleNotArray`, `KeyPartType`, and those of operations.
    fn prepare_for_triggers(
        &self,
        context: &Context,
        space: &Rc<Space>,
        operation: &Operation<'_>,
    ) -> Result<Option<Prepared>> {
        self.check_has_primary(space)?;
        self.when_ready(context, space, || self.unchecked_rows(context, space, operation))
    }

    fn unchecked_rows(
        &self,
        context: &Context,
        space: &Rc<Space>,
        operation: &Operation<'_>,
    ) -> Look<Option<Prepared>> {
        context.see(self.written(space));
        let format = space.format();
        match *operation {
            Operation::Insert { tuple } | Operation::Replace { tuple } => {
                let new = self.row_with_key(space, &format, tuple)?;
                let old = self.row_with_key_of(context, space, &new)?;
                if matches!(operation, Operation::Insert { .. }) {
                    self.check_expired(context, space, old.as_ref())?;
                }
                Ok(Some(match operation {
                    Operation::Insert { .. } => Prepared::new(old, Some(new), Mode::Insert, row_kind::INSERT),
                    _ => Prepared::new(old, Some(new), Mode::Replace, row_kind::REPLACE),
                }))
            }
            Operation::Delete { index_id, key } => {
                let old = self.row_looked_up(context, space, index_id, key)?;
                let old = old.filter(|old| self.shows(context, space, old.data()));
                Ok(old.map(|old| Prepared::new(Some(old), None, Mode::Replace, row_kind::DELETE)))
            }
            Operation::Expire { key } => {
                let old = self.row_looked_up(context, space, IndexId::PRIMARY, key)?;
                let old = old.filter(|old| !self.shows(context, space, old.data()));
                Ok(old.map(|old| Prepared::new(Some(old), None, Mode::Replace, row_kind::DELETE)))
            }
            Operation::Update { index_id, key, ops, index_base } => {
                let old = self.row_looked_up(context, space, index_id, key)?;
                let Some(old) = old.filter(|old| self.shows(context, space, old.data())) else { return Ok(None) };
                let mut row = Vec::new();
                update::apply(ops, old.data(), Some(&format), index_base, &mut row)
                    .map_err(|error| self.update_error(error))?;
                let new = self.make_row(space, &format, &row, || old.data().len())?;
                Ok(Some(Prepared::new(Some(old), Some(new), Mode::Replace, row_kind::REPLACE)))
            }
            Operation::Upsert { tuple, ops, index_base } => {
                let row = self.row_with_key(space, &format, tuple)?;
                update::check_ops(ops, Some(&format), index_base).map_err(|error| self.update_error(error))?;
                let Some(old) = self.row_with_key_of(context, space, &row)? else {
                    return Ok(Some(Prepared::new(None, Some(row), Mode::Insert, row_kind::INSERT)));
                };
                self.check_expired(context, space, Some(&old))?;
                let mut changed = Vec::new();
                update::upsert(ops, old.data(), Some(&format), index_base, &mut changed)
                    .map_err(|error| self.update_error(error))?;
                let new = self.make_row(space, &format, &changed, || old.data().len())?;
                Ok(Some(Prepared::new(Some(old), Some(new), Mode::Replace, row_kind::REPLACE)))
            }
        }
    }

    /// Makes a row of which nothing but the primary key is known to fit. Errors: `InvalidMsgpack`, `TupleNotArray`, `KeyPartType`.
    fn row_with_key(&self, space: &Rc<Space>, format: &Format, row: &[u8]) -> Result<Tuple> {
        Format::any(0).check(row).map_err(|error| self.tuple_error(error, space))?;
        let primary = space.index_def(IndexId::PRIMARY).map(|def| Rc::clone(&def.key_def));
        if let Some(key_def) = primary {
            let mut key = Vec::new();
            key_def.extract_key(row, &mut key);
            let mut parts = msgpack::Reader::new(&key);
            let part_count = parts.read_array().unwrap_or(0);
            key_def
                .validate_key(parts.rest(), part_count, false)
                .map_err(|error| self.key_error(error, space, IndexId::PRIMARY))?;
        }
        self.make_row(space, format, row, || 0)
    }

    fn row_with_key_of(&self, context: &Context, space: &Rc<Space>, row: &Tuple) -> Look<Option<Tuple>> {
        self.remember_rows(context, space, None, Some(row));
        self.same_key(context, space, row.data())
    }

    fn row_looked_up(
        &self,
        context: &Context,
        space: &Rc<Space>,
        index_id: IndexId,
        key: &[u8],
    ) -> Look<Option<Tuple>> {
        let key = Key::decode(key)?;
        self.check_exact_key(space, index_id, key)?;
        self.remember_key(context, space, index_id, key);
        self.row_of_key(context, space, index_id, key)
    }

    /// The checks that the triggers of a space came before. `is_changed`: a trigger has put another row in the place of the statement's.
    /// False: nothing is to be done.
    ///
    /// Errors: as the statement's without triggers.
    fn check_after_triggers(
        &self,
        space: &Rc<Space>,
        operation: &Operation<'_>,
        prepared: &Prepared,
        is_changed: bool,
    ) -> Result<bool> {
        let Some(new) = &prepared.new else { return Ok(true) };
        self.check_row(space, &space.format(), new.data())?;
        let Some(old) = &prepared.old else { return Ok(true) };
        if prepared.mode == Mode::Insert {
            let existing = old.clone();
            return Err(self.storage_error(StorageError::Duplicate { index_id: IndexId::PRIMARY, existing }, space));
        }
        let moved = self.check_same_primary_key(space, old.data(), new.data());
        match (operation, moved) {
            (_, Ok(())) => Ok(true),
            (Operation::Upsert { .. }, Err(error)) if !is_changed => {
                // As Tarantool: an upsert that would move its row is dropped with a line in the log.
                tracing::error!("upsert is ignored: {error}");
                Ok(false)
            }
            (Operation::Update { .. }, Err(error)) if !is_changed => Err(self.name_what_is_there(space, new, error)),
            (_, Err(error)) => Err(error),
        }
    }
}
