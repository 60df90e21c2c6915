//! Rows of snapshots and logs are applied again.

use crate::alter;
use crate::catalog::Space;
use crate::database::Database;
use crate::error::{Error, ErrorCode, Result};
use crate::prepare::{LOADING_RESERVE_PART, Prepared};
use crate::sequences::advance_sequence;
use crate::session::Context;
use crate::statement::{Operation, row_kind};
use std::rc::Rc;
use storage::Mode;
use tuple::msgpack;

impl Database {
    /// Applies a row of a snapshot or log: no checks of access, no triggers, nothing is logged.
    pub(crate) fn replay(&self, context: &Context, space: &Rc<Space>, operation: Operation<'_>) -> Result<()> {
        if space.rows.may_wait() {
            self.replay_disk(context, space, operation)?;
            if let Operation::Insert { tuple } | Operation::Replace { tuple } = operation {
                advance_sequence(space, tuple);
            }
            return Ok(());
        }
        let prepared = match operation {
            Operation::Insert { tuple } => Some((tuple, Mode::Insert, row_kind::INSERT)),
            Operation::Replace { tuple } => Some((tuple, Mode::Replace, row_kind::REPLACE)),
            _ => None,
        };
        let prepared = match prepared {
            Some((tuple, mode, kind)) => {
                // Reading the file has checked that the row is well-formed.
                self.check_has_primary(space)?;
                let format = space.format();
                format.check_fields(tuple).map_err(|error| self.tuple_error(error, space))?;
                let new = self.make_row(space, &format, tuple, || 0)?;
                Prepared::new(None, Some(new), mode, kind)
            }
            None => match self.prepare(context, space, &operation).map_err(|halt| self.halt_error(halt))? {
                Some(prepared) => prepared,
                None => return Ok(()),
            },
        };
        let (change, _) = match self.apply(space, prepared) {
            Err(error) if error.code() == ErrorCode::TupleFound as u32 && self.is_twin(space, operation) => {
                // Tarantool keeps both in its order of numbers; nothing is damaged, so the start goes on.
                let mut text = String::new();
                if let Operation::Insert { tuple } | Operation::Replace { tuple } = operation {
                    msgpack::format_value(tuple, &mut text);
                }
                tracing::warn!(
                    "row {text} of space '{}' is left out: {error}, by a number that is equal",
                    space.name()
                );
                return Ok(());
            }
            applied => applied?,
        };
        if space.is_system()
            && let Some(effect) = alter::on_system_row(self, context, space, change.old.as_ref(), change.new.as_ref())?
            && let Some(finish) = effect.finish
        {
            finish(self);
        }
        if let Some(new) = &change.new {
            advance_sequence(space, new.data());
        }
        Ok(())
    }

    /// True if what a row to be put in collides with has keys of other bytes in every index that both are equal in: numbers of two kinds that
    /// Lycosa takes for one. A directory of Tarantool may hold both 1 and decimal 1 in a HASH index, and in any index a decimal beside a double
    /// that differs from it behind the 15th digit.
    fn is_twin(&self, space: &Space, operation: Operation<'_>) -> bool {
        let (Operation::Insert { tuple: row } | Operation::Replace { tuple: row }) = operation else { return false };
        let Some(rows) = space.rows.memory() else { return false };
        let rows = rows.borrow();
        let mut has_twin = false;
        for def in space.index_defs().iter().filter(|def| def.is_unique) {
            let (mut key, mut other_key) = (Vec::new(), Vec::new());
            def.key_def.extract_key(row, &mut key);
            let mut parts = msgpack::Reader::new(&key);
            if parts.read_array().is_err() || def.key_def.has_null_in(row) {
                continue;
            }
            let part_count = def.key_def.part_count() as u32;
            let found = rows.get_row(def.id, parts.rest(), part_count, |other| {
                def.key_def.extract_key(other, &mut other_key);
            });
            if found.is_some() {
                if key == other_key {
                    return false;
                }
                has_twin = true;
            }
        }
        has_twin
    }

    /// Refuses a start whose rows and indexes together have come to take more than they may. Errors: `MemoryIssue`.
    pub(crate) fn check_loaded_memory(&self) -> Result<()> {
        let (limit, used) = (self.arena.limit(), self.arena.used() + self.arena.charged());
        if used <= limit + limit / LOADING_RESERVE_PART {
            return Ok(());
        }
        let what = format!("the rows and indexes of all spaces (the limit is {limit} bytes)");
        Err(Error::new(ErrorCode::MemoryIssue, &[&used, &"memtx_memory", &what]).with("limit", limit))
    }
}
