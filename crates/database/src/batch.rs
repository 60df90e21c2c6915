//! Several writes that are one transaction, of who gives nobody a turn between them: the short way of `statement.rs` for more rows than one.
//!
//! Each is applied at once, and its row stands in the transaction that the log has open; the end of the batch ends that. There is no transaction object,
//! since nobody could look at one: what a batch cannot hold (a row on disk, a trigger, a lock, a sequence, an eviction, something that waits) it refuses
//! before it begins, and whoever wants it takes a transaction.
//!
//! Invariant: between the first write and the end nothing else is logged.

use crate::catalog::{Space, SpaceKind};
use crate::database::Database;
use crate::error::Result;
use crate::session::Context;
use crate::statement::{Operation, encode_body};
use crate::txn::Statement;
use smallvec::SmallVec;
use std::rc::Rc;
use tuple::Tuple;

/// Writes that most batches have at most: those need no memory of their own.
const USUAL_WRITES: usize = 4;

/// See the head of this file. It ends with `commit` or `abandon`.
#[derive(Default)]
#[must_use = "what it has written is not logged before its end"]
pub struct Batch {
    statements: SmallVec<[Statement; USUAL_WRITES]>,
}

impl Database {
    /// Begins a batch of writes to some spaces, in a context whose answers wait for what it has written. None: it has to be a transaction. Whoever holds
    /// one must not wait, nor write in other ways, until it ends.
    #[inline]
    pub fn begin_batch(&self, context: &Context, spaces: &[&Rc<Space>]) -> Option<Batch> {
        let may_be = context.answers_wait && !context.is_in_txn() && !context.must_resume.get();
        let may_be = may_be && !self.locks.are_any() && self.check_writable().is_ok();
        (may_be && spaces.iter().all(|space| space.takes_batches())).then(Batch::default)
    }
}

impl Space {
    /// True if a write to it is its row and nothing else.
    #[inline]
    fn takes_batches(&self) -> bool {
        self.id >= 512
            && matches!(self.kind, SpaceKind::Memory)
            && self.memory_limit().is_none()
            && !self.has_triggers()
            && !self.has_constraints()
            && self.sequence.borrow().is_none()
            && !self.def().is_temporary
    }
}

impl Batch {
    /// Does a write; returns the row that was there. `space` is one of those that the batch was begun for.
    ///
    /// Errors: as [`Database::execute`]; the batch is as it was before.
    pub fn write(
        &mut self,
        database: &Database,
        context: &Context,
        space: &Rc<Space>,
        operation: Operation<'_>,
    ) -> Result<Option<Tuple>> {
        debug_assert!(space.takes_batches() && !context.is_in_txn(), "a batch is begun for what it can hold");
        database.check_write(context, space, operation)?;
        // What comes of it tells of the rows that are there, even if nothing is changed.
        context.see(database.written(space));
        database.statistics.count(&operation);
        let prepared = database.prepare(context, space, &operation).map_err(|halt| database.halt_error(halt))?;
        let Some(prepared) = prepared else { return Ok(None) };
        let kind = prepared.kind;
        let (change, _) = database.apply(space, prepared)?;
        let is_first = self.statements.is_empty();
        let logged = database.ledger.with_journal(|journal| {
            if is_first {
                journal.begin();
            }
            journal.row(kind, space.def().group_id, |out| encode_body(out, space, &change));
            Ok(())
        });
        if let Err(error) = logged {
            space.rows.undo(&change);
            return Err(error);
        }
        let old = change.old.clone();
        self.statements.push(Statement { space: Rc::clone(space), change, effect: None });
        Ok(old)
    }

    /// Number of its writes, for `keep`.
    pub fn len(&self) -> usize {
        self.statements.len()
    }

    /// True if nothing was written.
    pub fn is_empty(&self) -> bool {
        self.statements.is_empty()
    }

    /// Takes back what came behind the first `count` writes.
    pub fn keep(&mut self, database: &Database, count: usize) {
        if self.statements.len() <= count {
            return;
        }
        while self.statements.len() > count
            && let Some(statement) = self.statements.pop()
        {
            database.undo(statement);
        }
        // Without a log there is nothing to forget either.
        let _ = database.ledger.with_journal(|journal| {
            journal.keep_rows(count);
            Ok(())
        });
    }

    /// Ends it: what was written is one transaction, and the context's answer waits for it.
    ///
    /// Errors: `WalIo`; everything is taken back.
    pub fn commit(mut self, database: &Database, context: &Context) -> Result<()> {
        if self.statements.is_empty() {
            return Ok(());
        }
        let position = match database.ledger.with_journal(|journal| journal.commit()) {
            Ok(position) => position,
            Err(error) => {
                self.abandon(database);
                return Err(error);
            }
        };
        debug_assert!(position > database.durable(), "what is appended becomes durable later");
        database.tell_readers(&mut self.statements);
        for statement in self.statements.drain(..) {
            database.ledger.note_write(&statement.space, position);
            if database.has_row_watcher.get() {
                database.tell_row_watcher(context, &statement, position);
            }
            database.push_pending(position, statement);
        }
        context.see(position);
        Ok(())
    }

    /// Ends it: what was written is taken back.
    pub fn abandon(mut self, database: &Database) {
        self.keep(database, 0);
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        debug_assert!(
            self.statements.is_empty() || std::thread::panicking(),
            "what was written is committed or taken back"
        );
    }
}
