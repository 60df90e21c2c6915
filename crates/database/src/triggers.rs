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
use tuple::{Format, Tuple, msgpack, update};

impl Database {
    /// The rows that a statement means, unchecked but for the key. `None`: there is nothing to do, and no trigger hears of it. May wait if the
    /// space is on disk.
    ///
    /// Errors: 22, 18, and those of operations.
    pub(crate) fn prepare_for_triggers(
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
                Ok(Some(match operation {
                    Operation::Insert { .. } => Prepared::new(old, Some(new), Mode::Insert, row_kind::INSERT),
                    _ => Prepared::new(old, Some(new), Mode::Replace, row_kind::REPLACE),
                }))
            }
            Operation::Delete { index_id, key } => {
                let old = self.row_looked_up(context, space, index_id, key)?;
                Ok(old.map(|old| Prepared::new(Some(old), None, Mode::Replace, row_kind::DELETE)))
            }
            Operation::Update { index_id, key, ops, index_base } => {
                let Some(old) = self.row_looked_up(context, space, index_id, key)? else { return Ok(None) };
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
                let mut changed = Vec::new();
                update::upsert(ops, old.data(), Some(&format), index_base, &mut changed)
                    .map_err(|error| self.update_error(error))?;
                let new = self.make_row(space, &format, &changed, || old.data().len())?;
                Ok(Some(Prepared::new(Some(old), Some(new), Mode::Replace, row_kind::REPLACE)))
            }
        }
    }

    /// Makes a row of which nothing but the primary key is known to fit. Errors: 20, 22, 18.
    fn row_with_key(&self, space: &Rc<Space>, format: &Format, row: &[u8]) -> Result<Tuple> {
        Format::any(0).check(row).map_err(|error| self.tuple_error(error, space))?;
        let primary = space.index_def(0).map(|def| Rc::clone(&def.key_def));
        if let Some(key_def) = primary {
            let mut key = Vec::new();
            key_def.extract_key(row, &mut key);
            let mut parts = msgpack::Reader::new(&key);
            let part_count = parts.read_array().unwrap_or(0);
            key_def.validate_key(parts.rest(), part_count, false).map_err(|error| self.key_error(error, space, 0))?;
        }
        self.make_row(space, format, row, || 0)
    }

    fn row_with_key_of(&self, context: &Context, space: &Rc<Space>, row: &Tuple) -> Look<Option<Tuple>> {
        self.remember_rows(context, space, None, Some(row));
        self.same_key(space, row.data())
    }

    fn row_looked_up(&self, context: &Context, space: &Rc<Space>, index_id: u32, key: &[u8]) -> Look<Option<Tuple>> {
        let key = Key::decode(key)?;
        self.check_exact_key(space, index_id, key)?;
        self.remember_key(context, space, index_id, key);
        self.row_of_key(space, index_id, key)
    }

    /// The checks that the triggers of a space came before. `is_changed`: a trigger has put another row in the place of the statement's.
    /// False: nothing is to be done.
    ///
    /// Errors: as the statement's without triggers.
    pub(crate) fn check_after_triggers(
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
            return Err(self.storage_error(StorageError::Duplicate { index_id: 0, existing }, space));
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
