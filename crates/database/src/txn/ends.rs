//! The end of a transaction: committed to the log, or rolled back.

use super::Txn;
use crate::database::Database;
use crate::disposal::Garbage;
use crate::error::{Error, ErrorCode, Result};
use crate::session::Context;
use crate::statistics::increment;
use wal::Position;

impl Database {
    /// Commits. Without an open transaction does nothing, as Tarantool does.
    ///
    /// Waits for rows on disk if it has waited before and has changed what foreign keys are about. Then waits until the transaction is durable, unless the context's answers do (`Context::for_request`) and no callback is set.
    /// Errors: `CommitInSubStmt` inside a trigger; `TransactionYield` if a yield aborted the transaction, `TransactionConflict` if a conflict did; `WalIo` if the log refuses it.
    pub fn commit(&self, context: &Context) -> Result<()> {
        if context.trigger_depth.get() > 0 && context.is_in_txn() {
            return Err(Error::new(ErrorCode::CommitInSubStmt, &[]));
        }
        self.commit_open(context)
    }

    pub(super) fn commit_open(&self, context: &Context) -> Result<()> {
        self.bring_in_slices(context);
        // A conflict has aborted the transaction: that is what the commit is refused with.
        let _ = self.bring_in_place(context);
        if context.txn.borrow().as_ref().is_some_and(|txn| txn.system_statements > 0 && txn.aborted.is_none()) {
            self.store_own_sequences(context)?;
        }
        self.settle_deferred_keys(context)?;
        self.look_at_foreign_keys_again(context)?;
        self.yield_to_locks(context);
        match self.take_txn(context) {
            Some(txn) => self.finish_commit(context, *txn),
            None => Ok(()),
        }
    }

    /// Takes the open transaction from its context, for its end.
    pub(super) fn take_txn(&self, context: &Context) -> Option<Box<Txn>> {
        let txn = context.txn.borrow_mut().take()?;
        context.must_resume.set(false);
        context.defers.set(false);
        if let Some(deadline_ns) = txn.deadline_ns.filter(|_| txn.is_watched) {
            self.isolation.timeouts.forget(deadline_ns, txn.id);
        }
        Some(txn)
    }

    pub(super) fn finish_commit(&self, context: &Context, mut txn: Txn) -> Result<()> {
        if let Some(code) = txn.aborted {
            self.run_callbacks(context, std::mem::take(&mut txn.on_rollback), &[]);
            return Err(Error::new(code, &[]));
        }
        let rows = txn.changed_rows();
        let position = match self.append(context, &mut txn) {
            Ok(position) => position,
            Err(error) => {
                txn.undo_to(self, 0, 0);
                self.run_callbacks(context, std::mem::take(&mut txn.on_rollback), &rows);
                return Err(error);
            }
        };
        self.disposal.discard(txn.schema.take_copies());
        // Whoever gets them sees what was written, and its answer waits for the log.
        self.free_locks(&mut txn);
        if txn.touches_disk {
            increment(&self.statistics.disk_commits);
        }
        context.see(position);
        let must_wait = !context.answers_wait || !txn.on_commit.is_empty();
        let on_rollback = std::mem::take(&mut txn.on_rollback);
        if must_wait && let Err(error) = self.wait_durable(position) {
            self.run_callbacks(context, on_rollback, &rows);
            return Err(error);
        }
        self.run_callbacks(context, txn.on_commit, &rows);
        Ok(())
    }

    /// Appends the rows to the log; on success the statements are pending.
    pub(super) fn append(&self, context: &Context, txn: &mut Txn) -> Result<Position> {
        assert!(!txn.is_suspended && txn.aborted.is_none(), "what is logged is applied");
        if txn.rows.is_empty() {
            self.tell_readers(&mut txn.statements);
            self.finish_many(std::mem::take(&mut txn.statements), txn.aside.take());
            return Ok(Position::default());
        }
        let position = self.ledger.with_journal(|journal| {
            journal.begin();
            let mut start = 0;
            for row in &txn.rows {
                let body = &txn.bodies[start..row.end];
                journal.row(row.kind, row.group_id, |out| out.extend_from_slice(body));
                start = row.end;
            }
            debug_assert_eq!(start, txn.bodies.len(), "every byte of the rows belongs to one");
            journal.commit()
        })?;
        debug_assert!(position > self.durable(), "what is appended becomes durable later");
        let row_count = txn.rows.len();
        self.tell_readers_of_all(&mut txn.statements, txn.aside.as_ref());
        for statement in &mut txn.statements {
            if let Some(effect) = &mut statement.effect
                && let Some(placed) = effect.placed.take()
            {
                placed(self, position.0 - (row_count - effect.rows) as i64);
            }
            self.ledger.note_write(&statement.space, position);
            if self.has_row_watcher.get() {
                self.tell_row_watcher(context, statement, position);
            }
        }
        let statements = std::mem::take(&mut txn.statements);
        match self.are_many(statements.len()) {
            true => self.ledger.push_many(position, statements, txn.aside.take()),
            false => statements.into_iter().for_each(|statement| self.push_pending(position, statement)),
        }
        Ok(position)
    }

    /// True if so many rows are handled in slices.
    pub(crate) fn are_many(&self, rows: usize) -> bool {
        rows > self.slice_rows()
    }

    /// What a transaction has locked is free: many rows one after the other.
    pub(super) fn free_locks(&self, txn: &mut Txn) {
        if let Some(held) = txn.locks.take().filter(|held| self.are_many(held.len())) {
            self.disposal.discard_first(Garbage::Locks(held));
        }
    }

    /// Rolls the open transaction back. Errors: `RollbackInSubStmt` inside a trigger.
    pub fn rollback(&self, context: &Context) -> Result<()> {
        if context.trigger_depth.get() > 0 && context.is_in_txn() {
            return Err(Error::new(ErrorCode::RollbackInSubStmt, &[]));
        }
        self.abandon(context);
        Ok(())
    }

    /// Rolls the open transaction back, whatever its state. For the end of a request.
    pub fn abandon(&self, context: &Context) {
        if let Some(mut txn) = self.take_txn(context) {
            let mut rows = txn.changed_rows();
            rows.reverse();
            if txn.touches_disk && txn.aborted.is_none() {
                increment(&self.statistics.disk_rollbacks);
            }
            txn.undo_to(self, 0, 0);
            self.free_locks(&mut txn);
            self.run_callbacks(context, std::mem::take(&mut txn.on_rollback), &rows);
        }
    }
}
