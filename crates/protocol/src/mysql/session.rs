//! Statements about the session: transactions, variables, other sessions.

use super::serve::{Work, forget};
use super::state_of;
use runtime::fiber;
use sql::{Condition, Control, Error, Modes, Value};

impl Work<'_> {
    /// Carries out a statement about the session.
    pub(super) fn control(&mut self, control: &Control, params: &[Value]) -> Result<(), Error> {
        match control {
            Control::Begin(modes) => {
                // An open transaction is committed, and the locks of tables end.
                self.session.has_locked_tables.set(false);
                self.end_transaction(true)?;
                let next = self.state.next_modes.take();
                let modes = Modes {
                    isolation: modes.isolation.or(next.isolation),
                    level: None,
                    is_read_only: modes.is_read_only.or(next.is_read_only),
                };
                self.begin(modes)
            }
            Control::Commit { is_chained } => self.end(true, *is_chained),
            Control::Rollback { is_chained } => self.end(false, *is_chained),
            Control::SetTransaction { modes, is_session } => self.set_transaction(*modes, *is_session),
            Control::Assign(assignments) => {
                let changed = self.sql.assign(self.database, self.context, &self.session, assignments, params)?;
                self.after_assigned(&changed)
            }
            Control::Use(name) => self.use_database(name),
            Control::Kill { number, is_query } => self.kill(*number, *is_query),
            Control::PrepareFrom { name, text } => {
                let text = self.sql.evaluate(self.database, self.context, text)?;
                let text = text.as_text().unwrap_or("NULL").to_string();
                self.prepare_named(name, &text)
            }
            Control::Deallocate(Some(name)) => self.deallocate(name),
            Control::Deallocate(None) => {
                forget(self.state);
                Ok(())
            }
            Control::Nothing("LOCK TABLES") => {
                self.session.has_locked_tables.set(true);
                self.end_transaction(true)
            }
            // Without LOCK TABLES before it, it leaves a transaction alone: `mysqldump --single-transaction` begins with both.
            Control::Nothing("UNLOCK TABLES") if self.session.has_locked_tables.take() => self.end_transaction(true),
            Control::Nothing(_) => Ok(()),
            _ => Err(Error::new(Condition::Unsupported, "This statement is not supported")),
        }
    }

    fn end(&mut self, commits: bool, is_chained: bool) -> Result<(), Error> {
        self.end_transaction(commits)?;
        if is_chained { self.begin(Modes::default()) } else { Ok(()) }
    }

    fn set_transaction(&mut self, modes: Modes, is_session: bool) -> Result<(), Error> {
        if is_session {
            if let Some(name) = modes.level {
                self.session.set_variable("transaction_isolation", Value::text(name.replace(' ', "-")))?;
            }
            if let Some(is_read_only) = modes.is_read_only {
                self.session.set_variable("transaction_read_only", Value::Int(i64::from(is_read_only)))?;
            }
            return Ok(());
        }
        if self.context.is_in_txn() {
            let what = "Transaction characteristics can't be changed while a transaction is in progress";
            return Err(Error::new(Condition::ActiveTransaction, what));
        }
        self.state.next_modes.set(modes);
        Ok(())
    }

    /// Some variables have effects.
    fn after_assigned(&mut self, changed: &[String]) -> Result<(), Error> {
        if changed.iter().any(|name| name == "autocommit") {
            let commits_alone = self.session.variable("autocommit").as_deref() != Some("0");
            let before = self.state.commits_alone.replace(commits_alone);
            if commits_alone && !before {
                self.end_transaction(true)?;
            }
        }
        Ok(())
    }

    /// Ends another session, or what it does. Errors: there is none of the number; it is somebody else's.
    pub(super) fn kill(&mut self, number: u32, is_query: bool) -> Result<(), Error> {
        let found = self.shared.connections.borrow().get(&number).and_then(std::rc::Weak::upgrade);
        let unknown = || Error::new(Condition::UndefinedObject, format!("Unknown thread id: {number}")).mysql(1094);
        let connection = found.ok_or_else(unknown)?;
        let state = state_of(&connection).ok_or_else(unknown)?;
        let me = self.context.user(&self.database.catalog);
        if me != database::ADMIN && self.database.user_of(connection.session()) != me {
            let what = format!("You are not owner of thread {number}");
            return Err(Error::new(Condition::AccessDenied, what).mysql(1095));
        }
        if let Some(fiber) = state.fiber.get() {
            fiber::cancel(fiber);
        }
        if !is_query {
            connection.end();
            connection.service.mark(&connection);
        }
        Ok(())
    }
}
