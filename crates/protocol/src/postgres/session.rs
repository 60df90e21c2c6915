//! Statements about the session: transactions, settings, prepared statements by name, notifications.

use super::cursors::Kind;
use super::message::{Report, put, put_parameter, put_text, put_u32};
use super::serve::Work;
use super::{CHANNELS_MAX, SHORT_TEXT_BYTES, STATEMENTS_MAX, Statement, TEXT_BYTES_MAX, state_of};
use sql::{Condition, Control, Dialect, Error, Isolation, Modes, Prepared, Session, Value};
use std::rc::Rc;
use wal::Position;

/// Settings whose changes a client is told.
const REPORTED: [&str; 8] = [
    "application_name",
    "client_encoding",
    "datestyle",
    "default_transaction_read_only",
    "intervalstyle",
    "session_authorization",
    "standard_conforming_strings",
    "timezone",
];

/// What a client was told of them.
#[derive(Default)]
pub(super) struct Told {
    /// The changes of settings that were looked at.
    changes: u64,
    values: [String; REPORTED.len()],
}

impl Told {
    /// What it is told when it is let in.
    pub(super) fn of(session: &Session) -> Self {
        Told {
            changes: session.settings_changes.get(),
            values: REPORTED.map(|name| session.get(name).unwrap_or_default()),
        }
    }
}
/// Bytes of a notification.
const PAYLOAD_MAX: usize = 8000;

impl Work<'_> {
    /// Carries out a statement about the session. Returns what it was, for `CommandComplete`.
    pub(super) fn control(
        &mut self,
        control: &Control,
        prepared: &Prepared,
        params: &[Value],
        formats: &[bool],
    ) -> Result<String, Error> {
        Ok(match control {
            Control::Begin(modes) => {
                if self.state.is_implicit.replace(false) {
                    // What came before it since the last Sync belongs to it.
                } else if self.is_in_block() {
                    self.warn("25001", "there is already a transaction in progress");
                } else {
                    self.begin(*modes)?;
                }
                "BEGIN".to_string()
            }
            Control::Commit { is_chained } => self.end(true, *is_chained)?,
            Control::Rollback { is_chained } => self.end(false, *is_chained)?,
            Control::SetTransaction { modes, is_session } => {
                self.set_transaction(*modes, *is_session)?;
                "SET".to_string()
            }
            Control::Set { name, value, is_local } => {
                self.set(name, value.as_deref(), *is_local)?;
                (if value.is_none() { "RESET" } else { "SET" }).to_string()
            }
            Control::Show(_) => return Err(Error::new(Condition::Other, "SHOW gives rows")),
            Control::Deallocate(Some(name)) => {
                if self.state.statements.borrow_mut().remove(name).is_none() {
                    return Err(no_such_statement(name));
                }
                "DEALLOCATE".to_string()
            }
            Control::Deallocate(None) => {
                self.state.statements.borrow_mut().retain(|name, _| name.is_empty());
                "DEALLOCATE ALL".to_string()
            }
            Control::Prepare { name, text, types } => {
                let prepared = self.sql.prepare(self.database, self.context, Dialect::Postgres, text, types)?;
                let count = prepared.params().len();
                let types = prepared.params().to_vec();
                self.keep(name, Statement { prepared: Some(prepared), oids: vec![0; count], types })?;
                "PREPARE".to_string()
            }
            Control::Declare { name, text, is_held, is_forward_only, is_binary, .. } => {
                let kind = Kind { is_held: *is_held, is_forward_only: *is_forward_only, is_binary: *is_binary };
                self.declare(name, text, kind, params, prepared)?;
                "DECLARE CURSOR".to_string()
            }
            Control::Fetch { name, step, is_move } => {
                let count = self.fetch(name, *step, *is_move, formats)?;
                format!("{} {count}", if *is_move { "MOVE" } else { "FETCH" })
            }
            Control::Close(name) => {
                self.close_cursors(name.as_deref())?;
                (if name.is_some() { "CLOSE CURSOR" } else { "CLOSE CURSOR ALL" }).to_string()
            }
            Control::Execute { .. }
            | Control::Copy(_)
            | Control::Load(_)
            | Control::Assign(_)
            | Control::Use(_)
            | Control::Kill { .. }
            | Control::PrepareFrom { .. }
            | Control::ExecuteUsing { .. } => return Err(Error::new(Condition::Other, "not run here")),
            Control::Discard => {
                if self.is_in_block() {
                    let what = "DISCARD ALL cannot run inside a transaction block";
                    return Err(Error::new(Condition::ActiveTransaction, what));
                }
                self.state.statements.borrow_mut().clear();
                self.state.portals.borrow_mut().clear();
                self.state.cursors.borrow_mut().clear();
                self.unlisten(None);
                self.session.set("all", None, false)?;
                self.sql.drop_temporary(self.database, self.context, &self.session)?;
                "DISCARD ALL".to_string()
            }
            Control::Listen(channel) => {
                self.listen(channel)?;
                "LISTEN".to_string()
            }
            Control::Unlisten(channel) => {
                self.unlisten(channel.as_deref());
                "UNLISTEN".to_string()
            }
            Control::Notify { channel, payload } => {
                if payload.len() >= PAYLOAD_MAX {
                    return Err(Error::new(Condition::InvalidArgument, "payload string too long"));
                }
                self.state.notices.borrow_mut().push((channel.clone(), payload.clone()));
                if !self.context.is_in_txn() {
                    self.send_notices();
                }
                "NOTIFY".to_string()
            }
            Control::Nothing(tag) => (*tag).to_string(),
            Control::DeferKeys { names, waits } => {
                if let Some(names) = names {
                    sql::check_deferrable(self.database, names)?;
                }
                if !self.is_in_block() {
                    self.warn("25P01", "SET CONSTRAINTS can only be used in transaction blocks");
                }
                self.database.defer_foreign_keys(self.context, names.as_deref(), *waits)?;
                "SET CONSTRAINTS".to_string()
            }
        })
    }

    /// True between BEGIN and its end, failed or not.
    pub(super) fn is_in_block(&self) -> bool {
        self.context.is_in_txn() && !self.state.is_implicit.get() || self.state.has_failed.get()
    }

    pub(super) fn warn(&mut self, state: &str, message: &str) {
        Report { severity: "WARNING", state, message, detail: None, hint: None, names: &[] }.put(&mut self.out, b'N');
    }

    pub(super) fn begin(&mut self, modes: Modes) -> Result<(), Error> {
        let isolation = modes.isolation.unwrap_or_else(|| self.state.isolation.get());
        let level = match modes.level {
            Some(level) => level.to_string(),
            None => self.session.get("default_transaction_isolation").unwrap_or_default(),
        };
        self.sql.begin(self.database, self.context, isolation)?;
        let is_read_only = modes
            .is_read_only
            .unwrap_or_else(|| self.session.get("default_transaction_read_only").as_deref() == Some("on"));
        self.state.is_read_only.set(is_read_only);
        self.state.has_savepoints.set(false);
        self.state.is_used.set(false);
        self.session.note_transaction(&level, is_read_only);
        Ok(())
    }

    fn end(&mut self, commits: bool, is_chained: bool) -> Result<String, Error> {
        let has_failed = self.state.has_failed.replace(false);
        self.state.portals.borrow_mut().clear();
        if self.state.is_implicit.replace(false) {
            self.warn("25P01", "there is no transaction in progress");
        }
        let tag = match (self.context.is_in_txn(), commits) {
            (false, _) if !has_failed => {
                self.warn("25P01", "there is no transaction in progress");
                if commits { "COMMIT" } else { "ROLLBACK" }
            }
            (false, _) => {
                self.state.notices.borrow_mut().clear();
                self.session.end_transaction();
                "ROLLBACK"
            }
            (true, true) if !has_failed => {
                let done = self.database.commit(self.context);
                if done.is_err() {
                    self.database.abandon(self.context);
                    self.state.notices.borrow_mut().clear();
                }
                self.session.end_transaction();
                if done.is_err() {
                    self.end_cursors(false);
                }
                done?;
                self.send_notices();
                "COMMIT"
            }
            (true, _) => {
                self.database.abandon(self.context);
                self.state.notices.borrow_mut().clear();
                self.session.end_transaction();
                "ROLLBACK"
            }
        };
        self.end_cursors(tag == "COMMIT");
        self.sql.after_transaction(self.database, self.context, tag == "COMMIT")?;
        if is_chained {
            self.begin(Modes::default())?;
        }
        Ok(tag.to_string())
    }

    fn set_transaction(&mut self, modes: Modes, is_session: bool) -> Result<(), Error> {
        if is_session {
            if let Some(isolation) = modes.isolation {
                self.session.set("default_transaction_isolation", modes.level, false)?;
                self.state.isolation.set(isolation);
            }
            if let Some(is_read_only) = modes.is_read_only {
                let value = if is_read_only { "on" } else { "off" };
                self.session.set("default_transaction_read_only", Some(value), false)?;
            }
            return Ok(());
        }
        if !self.context.is_in_txn() {
            self.warn("25P01", "SET TRANSACTION can only be used in transaction blocks");
            return Ok(());
        }
        if modes.isolation.is_some() {
            if self.state.is_used.get() {
                let what = "SET TRANSACTION ISOLATION LEVEL must be called before any query";
                return Err(Error::new(Condition::ActiveTransaction, what));
            }
            self.database.abandon(self.context);
            let is_read_only = modes.is_read_only.or(Some(self.state.is_read_only.get()));
            return self.begin(Modes { is_read_only, ..modes });
        }
        if let Some(is_read_only) = modes.is_read_only {
            self.state.is_read_only.set(is_read_only);
        }
        Ok(())
    }

    /// Tells which of the settings have changed that a client wants to know: by SET, `set_config`, or the end of a transaction.
    pub(super) fn tell_settings(&mut self) {
        let mut told = self.state.told.borrow_mut();
        let changes = self.session.settings_changes.get();
        if told.changes == changes {
            return;
        }
        told.changes = changes;
        for (name, known) in REPORTED.iter().zip(&mut told.values) {
            let value = self.session.get(name).unwrap_or_default();
            if *known != value {
                put_parameter(&mut self.out, Session::shown_name(name), &value);
                *known = value;
            }
        }
    }

    fn set(&mut self, name: &str, value: Option<&str>, is_local: bool) -> Result<(), Error> {
        if name == "transaction_isolation" {
            let (isolation, level) = match value {
                Some("serializable") => (Isolation::Serializable, "serializable"),
                Some("repeatable read") => (Isolation::Serializable, "repeatable read"),
                Some("read uncommitted") => (Isolation::ReadCommitted, "read uncommitted"),
                _ => (Isolation::ReadCommitted, "read committed"),
            };
            let modes = Modes { isolation: Some(isolation), level: Some(level), is_read_only: None };
            return self.set_transaction(modes, false);
        }
        if is_local && !self.context.is_in_txn() {
            self.warn("25P01", "SET LOCAL can only be used in transaction blocks");
            return Ok(());
        }
        if matches!(name, "session_authorization" | "role") {
            let user = self.session.user.borrow().clone();
            return match value {
                None | Some("none") => Ok(()),
                Some(value) if value == user => Ok(()),
                Some(value) if self.database.catalog.user_by_name(value).is_none() => {
                    Err(Error::new(Condition::InvalidArgument, format!("role \"{value}\" does not exist")))
                }
                Some(value) => {
                    let what = format!("permission denied to set {name} \"{value}\"");
                    Err(Error::new(Condition::AccessDenied, what))
                }
            };
        }
        self.session.set(name, value, is_local)?;
        if name == "default_transaction_isolation" || name == "all" {
            self.state.isolation.set(self.session.isolation());
        }
        Ok(())
    }

    /// Keeps a prepared statement. Errors: there is one of the name; there are too many.
    pub(super) fn keep(&self, name: &str, statement: Statement) -> Result<(), Error> {
        let mut statements = self.state.statements.borrow_mut();
        if !name.is_empty() && statements.contains_key(name) {
            let what = format!("prepared statement \"{name}\" already exists");
            return Err(Error::new(Condition::DuplicateStatement, what));
        }
        if statements.len() >= STATEMENTS_MAX {
            let what = format!("the session has {STATEMENTS_MAX} prepared statements already");
            return Err(Error::new(Condition::LimitExceeded, what));
        }
        let length = |statement: &Statement| {
            let length = statement.prepared.as_ref().map_or(0, |prepared| prepared.text().len());
            if length > SHORT_TEXT_BYTES { length } else { 0 }
        };
        let own = length(&statement);
        if own > 0 && statements.values().map(|known| length(known)).sum::<usize>() + own > TEXT_BYTES_MAX {
            let what =
                format!("the texts of the session's prepared statements have {} MiB already", TEXT_BYTES_MAX >> 20);
            return Err(Error::new(Condition::LimitExceeded, what));
        }
        statements.insert(name.to_string(), Rc::new(statement));
        Ok(())
    }

    /// The rows of SHOW.
    pub(super) fn show(&self, name: Option<&str>) -> Result<Vec<Vec<Value>>, Error> {
        let Some(name) = name else {
            let all = self.session.all().into_iter();
            return Ok(all
                .map(|(name, value, about)| vec![Value::text(name), Value::text(value), Value::text(about)])
                .collect());
        };
        // Outside of a transaction it is what the next one will be.
        let name = match name {
            "transaction_isolation" if !self.context.is_in_txn() => "default_transaction_isolation",
            "transaction_read_only" if !self.context.is_in_txn() => "default_transaction_read_only",
            name => name,
        };
        match self.session.get(name) {
            Some(value) => Ok(vec![vec![Value::text(value)]]),
            None => {
                let what = format!("unrecognized configuration parameter \"{name}\"");
                Err(Error::new(Condition::UndefinedObject, what))
            }
        }
    }

    fn listen(&self, channel: &str) -> Result<(), Error> {
        let mut channels = self.state.channels.borrow_mut();
        if channels.len() >= CHANNELS_MAX {
            let what = format!("a session listens to at most {CHANNELS_MAX} channels");
            return Err(Error::new(Condition::LimitExceeded, what));
        }
        if channels.insert(channel.to_string()) {
            let mut listeners = self.shared.listeners.borrow_mut();
            listeners.entry(channel.to_string()).or_default().insert(self.state.number);
        }
        Ok(())
    }

    fn unlisten(&self, channel: Option<&str>) {
        let mut channels = self.state.channels.borrow_mut();
        let gone: Vec<String> = match channel {
            Some(channel) => channels.take(channel).into_iter().collect(),
            None => channels.drain().collect(),
        };
        self.shared.forget(self.state.number, &gone);
    }

    /// Sends what the transaction has to say to those who listen.
    pub(super) fn send_notices(&mut self) {
        let notices = self.state.notices.take();
        for (channel, payload) in notices {
            let numbers: Vec<u32> = self
                .shared
                .listeners
                .borrow()
                .get(&channel)
                .map(|numbers| numbers.iter().copied().collect())
                .unwrap_or_default();
            let mut message = Vec::new();
            put(&mut message, b'A', |out| {
                put_u32(out, self.state.number);
                put_text(out, &channel);
                put_text(out, &payload);
            });
            for number in numbers {
                if number == self.state.number {
                    self.out.extend_from_slice(&message);
                    continue;
                }
                let connection = self.shared.connections.borrow().get(&number).and_then(std::rc::Weak::upgrade);
                let Some(connection) = connection.filter(|connection| state_of(connection).is_some()) else { continue };
                if connection.unsent() > connection.service.unread_max() {
                    // Who does not read what he has asked for is told no more.
                    tracing::warn!("a client that listens to '{channel}' and does not read is disconnected");
                    connection.end();
                } else {
                    // It shows what is committed: it waits for the log as the answer to the commit does.
                    let position = self.context.awaited().max(Position::default());
                    let _ = connection.answer(position, 0, |out| {
                        out.extend_from_slice(&message);
                        Ok(())
                    });
                }
                connection.service.mark(&connection);
            }
        }
    }
}

impl super::Shared {
    /// A connection listens to these channels no more.
    pub(super) fn forget(&self, number: u32, channels: &[String]) {
        let mut listeners = self.listeners.borrow_mut();
        for channel in channels {
            if let Some(numbers) = listeners.get_mut(channel) {
                numbers.remove(&number);
                if numbers.is_empty() {
                    listeners.remove(channel);
                }
            }
        }
    }
}

pub(super) fn no_such_statement(name: &str) -> Error {
    let what = match name {
        "" => "unnamed prepared statement does not exist".to_string(),
        name => format!("prepared statement \"{name}\" does not exist"),
    };
    Error::new(Condition::UndefinedStatement, what)
}
