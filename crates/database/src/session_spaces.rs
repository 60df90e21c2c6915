//! Spaces of one session: temporary tables. Nothing of them is in the log or in a snapshot, not even their definition, so a crash leaves nothing.
//!
//! Such a space is known by its row of `_space`: it is temporary, its number is [`SESSION_ID_MIN`] or above, and its name begins with [`SESSION_PREFIX`]. What belongs
//! to it (its sequence, the functions of its checks) has a number from the same range and a name that begins alike.

use crate::alter::{FUNC_ID, INDEX_ID, SEQUENCE_DATA_ID, SEQUENCE_ID, SPACE_ID, SPACE_SEQUENCE_ID, TRUNCATE_ID};
use crate::catalog::Space;
use crate::database::Database;
use crate::fields::Fields;
use crate::session::Context;
use hashbrown::HashSet;
use tuple::{SpaceId, Tuple};

/// Numbers of what belongs to one session begin here.
pub const SESSION_ID_MIN: u32 = 1 << 30;
/// Names of what belongs to one session begin so.
pub const SESSION_PREFIX: &str = "pg_temp_";

/// True for the number and name of an object of one session.
pub(crate) fn is_of_session(id: u32, name: &str) -> bool {
    id >= SESSION_ID_MIN && name.starts_with(SESSION_PREFIX)
}

/// Rows of system spaces that are about objects of sessions, by their first field.
#[derive(Default)]
pub(crate) struct SessionRows(HashSet<(SpaceId, u32)>);

impl SessionRows {
    /// Those that there are now.
    pub(crate) fn of(database: &Database) -> Self {
        let mut found = HashSet::new();
        for space in database.catalog.spaces().iter().filter(|space| space.def().is_session) {
            for system in [SPACE_ID, INDEX_ID, TRUNCATE_ID, SPACE_SEQUENCE_ID] {
                found.insert((system, space.id.0));
            }
        }
        for sequence in database.catalog.sequences() {
            let def = sequence.def();
            if is_of_session(def.id, &def.name) {
                found.insert((SEQUENCE_ID, def.id));
                found.insert((SEQUENCE_DATA_ID, def.id));
            }
        }
        for function in database.catalog.functions() {
            if is_of_session(function.id, &function.name) {
                found.insert((FUNC_ID, function.id));
            }
        }
        SessionRows(found)
    }

    /// True if a row is one of them.
    pub(crate) fn has(&self, space: SpaceId, row: &[u8]) -> bool {
        !self.0.is_empty()
            && Fields::new(row).and_then(|mut fields| fields.uint()).is_ok_and(|id| self.0.contains(&(space, id)))
    }
}

impl Database {
    /// True if a change of a system space is about an object of a session, and so is not logged.
    pub(crate) fn is_about_session(&self, space: &Space, old: Option<&Tuple>, new: Option<&Tuple>) -> bool {
        let Some(row) = new.or(old) else { return false };
        let Ok(mut fields) = Fields::new(row.data()) else { return false };
        let Ok(id) = fields.uint() else { return false };
        if id < SESSION_ID_MIN {
            return false;
        }
        match space.id {
            SPACE_ID | SEQUENCE_ID | FUNC_ID => {
                let name = fields.uint().and_then(|_| fields.str());
                name.is_ok_and(|name| is_of_session(id, name))
            }
            INDEX_ID | TRUNCATE_ID | SPACE_SEQUENCE_ID => {
                self.catalog.space(SpaceId(id)).is_some_and(|space| space.def().is_session)
            }
            SEQUENCE_DATA_ID => {
                self.catalog.sequence(id).is_some_and(|sequence| is_of_session(id, &sequence.def().name))
            }
            _ => false,
        }
    }

    /// Runs work beside the open transaction, which is as if another session did it. Without one it just runs it.
    ///
    /// May wait. Errors: those of the work.
    pub fn beside<T>(&self, context: &Context, work: impl FnOnce() -> T) -> T {
        self.suspend(context);
        let open = context.txn.borrow_mut().take();
        let must_resume = context.must_resume.replace(false);
        let defers = context.defers.replace(false);
        let done = work();
        if context.is_in_txn() {
            self.abandon(context);
        }
        *context.txn.borrow_mut() = open;
        context.must_resume.set(must_resume);
        context.defers.set(defers);
        done
    }

    /// A free number for a space, a sequence or a function of a session.
    pub fn next_session_id(&self) -> u32 {
        loop {
            let id = self.last_session_id.get().max(SESSION_ID_MIN - 1) + 1;
            self.last_session_id.set(if id >= i32::MAX as u32 { 0 } else { id });
            let is_taken = self.catalog.space(SpaceId(id)).is_some()
                || self.catalog.sequence(id).is_some()
                || self.catalog.function(id).is_some();
            if !is_taken {
                return id;
            }
        }
    }

    /// The next number for a sequence that everybody may see.
    pub fn next_sequence_id(&self) -> u32 {
        let ids = self.catalog.sequences().into_iter().map(|sequence| sequence.def().id);
        ids.filter(|id| *id < SESSION_ID_MIN).max().unwrap_or(0) + 1
    }

    /// The next number for a function that everybody may see.
    pub fn next_function_id(&self) -> u32 {
        let ids = self.catalog.functions().into_iter().map(|function| function.id);
        ids.filter(|id| *id < SESSION_ID_MIN).max().unwrap_or(0) + 1
    }
}
