//! Statements and transactions: those that open and end one, and work that stands as a whole or not at all.

use super::{Outcome, Sql, Work};
use crate::change::Counts;
use crate::control::Isolation;
use crate::error::{Condition, Error, Result};
use database::{Context, Database, TxnIsolation, TxnOptions};
use std::rc::Rc;

fn options_of(isolation: Isolation) -> TxnOptions {
    match isolation {
        Isolation::ReadCommitted => {
            TxnOptions { isolation: TxnIsolation::ReadCommitted, forgets_reads: true, ..TxnOptions::default() }
        }
        Isolation::Serializable => TxnOptions::default(),
    }
}

impl Sql {
    /// Opens a transaction of a client. Errors: one is open.
    pub fn begin(&self, database: &Database, context: &Rc<Context>, isolation: Isolation) -> Result<()> {
        Ok(database.begin_with(context, options_of(isolation))?)
    }

    pub(super) fn run_control(&self, database: &Database, context: &Rc<Context>, control: &Work) -> Result<Outcome> {
        let none =
            |what: &str| Error::new(Condition::TransactionState, format!("cannot {what} - no transaction is active"));
        let tag = match control {
            Work::Begin if context.is_in_txn() => {
                let what = "cannot start a transaction within a transaction";
                return Err(Error::new(Condition::TransactionState, what));
            }
            Work::Begin => {
                database.begin(context)?;
                "BEGIN"
            }
            Work::Commit => {
                if !context.is_in_txn() {
                    return Err(none("commit"));
                }
                database.commit(context)?;
                "COMMIT"
            }
            Work::Rollback => {
                if !context.is_in_txn() {
                    return Err(none("rollback"));
                }
                database.rollback(context)?;
                "ROLLBACK"
            }
            Work::Savepoint(name) => {
                if !context.is_in_txn() {
                    return Err(none("set a savepoint"));
                }
                database.savepoint(context, Some(name))?;
                "SAVEPOINT"
            }
            Work::RollbackTo(name) => {
                let savepoint = database.named_savepoint(context, name);
                let Some(savepoint) = savepoint else {
                    return Err(Error::new(Condition::UndefinedSavepoint, format!("no such savepoint: {name}")));
                };
                database.rollback_to_savepoint(context, &savepoint)?;
                database.forget_behind(context, name);
                "ROLLBACK"
            }
            Work::Release(name) => {
                if !database.release_savepoint(context, name) {
                    return Err(Error::new(Condition::UndefinedSavepoint, format!("no such savepoint: {name}")));
                }
                "RELEASE"
            }
            _ => "",
        };
        Ok(Outcome { tag, counts: Counts::default() })
    }

    /// Runs work in a transaction of its own: all of it stands in the end, or nothing.
    pub(crate) fn in_txn<T>(
        &self,
        database: &Database,
        context: &Rc<Context>,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        self.in_txn_of(database, context, Isolation::Serializable, work)
    }

    /// The same at a level.
    pub(super) fn in_txn_of<T>(
        &self,
        database: &Database,
        context: &Rc<Context>,
        isolation: Isolation,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        self.begin(database, context, isolation)?;
        let done = work();
        match done {
            Ok(done) => {
                if let Err(error) = database.commit(context) {
                    if context.is_in_txn() {
                        database.abandon(context);
                    }
                    return Err(error.into());
                }
                Ok(done)
            }
            Err(error) => {
                database.abandon(context);
                Err(error)
            }
        }
    }

    /// Runs work in the open transaction: if it fails, what it did is taken back.
    pub(super) fn in_savepoint<T>(
        &self,
        database: &Database,
        context: &Rc<Context>,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let savepoint = database.savepoint(context, None)?;
        let done = work();
        if done.is_err() && context.is_in_txn() {
            // A transaction that another one has ended has nothing to be taken back.
            let _ = database.rollback_to_savepoint(context, &savepoint);
        }
        done
    }
}
