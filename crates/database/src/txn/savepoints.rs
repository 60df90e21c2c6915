//! Places in a transaction that it can be rolled back to.

use crate::database::Database;
use crate::error::{Error, ErrorCode, Result};
use crate::session::Context;

/// Names a place in a transaction.
#[derive(Clone, Debug)]
pub struct Savepoint {
    txn_id: u64,
    statement_count: usize,
    row_count: usize,
}

impl Database {
    /// Marks a place to roll back to. Errors: `NoTransaction` without a transaction.
    pub fn savepoint(&self, context: &Context, name: Option<&str>) -> Result<Savepoint> {
        self.enter(context)?;
        let mut txn = context.txn.borrow_mut();
        let Some(txn) = txn.as_mut() else {
            return Err(Error::new(ErrorCode::NoTransaction, &[]));
        };
        let savepoint = Savepoint { txn_id: txn.id, statement_count: txn.statements.len(), row_count: txn.rows.len() };
        if let Some(name) = name {
            txn.savepoints.retain(|(other, ..)| other != name);
            txn.savepoints.push((name.to_string(), savepoint.statement_count, savepoint.row_count));
        }
        Ok(savepoint)
    }

    /// Rolls back what came after the savepoint. Errors: `NoTransaction` without a transaction, `NoSuchSavepoint` if the savepoint is of another one or gone.
    pub fn rollback_to_savepoint(&self, context: &Context, savepoint: &Savepoint) -> Result<()> {
        self.enter(context)?;
        let taken = context.txn.borrow_mut().take();
        let Some(mut txn) = taken else {
            return Err(Error::new(ErrorCode::NoTransaction, &[]));
        };
        let is_good = txn.id == savepoint.txn_id && savepoint.statement_count <= txn.statements.len();
        if is_good {
            self.remember_undone(&mut txn);
            txn.undo_to(self, savepoint.statement_count, savepoint.row_count);
            txn.savepoints.retain(|(_, count, _)| *count <= savepoint.statement_count);
        }
        *context.txn.borrow_mut() = Some(txn);
        if is_good { Ok(()) } else { Err(Error::new(ErrorCode::NoSuchSavepoint, &[])) }
    }

    /// The place that was marked with a name, if it is still there.
    pub fn named_savepoint(&self, context: &Context, name: &str) -> Option<Savepoint> {
        let txn = context.txn.borrow();
        let txn = txn.as_ref()?;
        let (_, statement_count, row_count) = txn.savepoints.iter().rev().find(|(other, ..)| other == name)?;
        Some(Savepoint { txn_id: txn.id, statement_count: *statement_count, row_count: *row_count })
    }

    /// Forgets the place that was marked with a name, and those behind it; what was done since stays. Returns whether there was one.
    pub fn release_savepoint(&self, context: &Context, name: &str) -> bool {
        let mut txn = context.txn.borrow_mut();
        let Some(txn) = txn.as_mut() else { return false };
        let found = txn.savepoints.iter().rposition(|(other, ..)| other == name);
        if let Some(at) = found {
            txn.savepoints.truncate(at);
        }
        found.is_some()
    }

    /// Forgets the places that were marked behind one of a name.
    pub fn forget_behind(&self, context: &Context, name: &str) {
        let mut txn = context.txn.borrow_mut();
        let Some(txn) = txn.as_mut() else { return };
        if let Some(at) = txn.savepoints.iter().rposition(|(other, ..)| other == name) {
            txn.savepoints.truncate(at + 1);
        }
    }
}
