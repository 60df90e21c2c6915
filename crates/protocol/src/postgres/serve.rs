//! Messages of statements, in a fiber for all messages that have come together: the simple protocol, and the transactions around messages.

use super::message::{Message, Reader, Report, put, put_complete, put_error, put_ready};
use super::rows::{put_columns, put_row};
use super::session::no_such_statement;
use super::{READY_TAG, Shared, State, state_of};
use crate::connection::Connection;
use crate::door::Door;
use database::{Context, Database};
use runtime::fiber;
use sql::{Condition, Control, Dialect, Error, Modes, Parsed, Prepared, Session, Sql, Value};
use std::any::Any;
use std::rc::Rc;

/// Bytes of answers that are made before they are handed on.
pub(super) const CHUNK_BYTES: usize = 64 << 10;

/// The messages that are served together, and what they are served with.
pub(super) struct Work<'a> {
    pub(super) shared: &'a Rc<Shared>,
    pub(super) connection: &'a Rc<Connection>,
    pub(super) state: &'a State,
    pub(super) database: &'a Rc<Database>,
    pub(super) context: &'a Rc<Context>,
    pub(super) sql: Rc<Sql>,
    pub(super) session: Rc<Session>,
    /// Answers that were not handed on yet.
    pub(super) out: Vec<u8>,
    /// The message at hand is one of the extended protocol.
    pub(super) is_extended: bool,
    /// A Sync follows it: nothing else belongs to its transaction.
    is_last: bool,
}

/// Serves messages that have come together.
pub(super) fn serve(shared: &Rc<Shared>, connection: &Rc<Connection>, messages: &[Message<'_>]) {
    let mut bytes = Vec::with_capacity(messages.iter().map(|message| message.body.len()).sum());
    let mut parts = Vec::with_capacity(messages.len());
    for message in messages {
        bytes.extend_from_slice(message.body);
        parts.push((message.kind, bytes.len()));
    }
    let (shared, connection) = (Rc::clone(shared), Rc::clone(connection));
    let begun = connection.group_began.get();
    connection.service.begin_request(&connection);
    fiber::run_now(super::Postgres::NAME, move || {
        if let Some(state) = state_of(&connection) {
            let context = state.context.get_or_init(|| Rc::new(Context::for_stream(Rc::clone(connection.session()))));
            fiber::set_local(Rc::clone(context) as Rc<dyn Any>);
            state.fiber.set(fiber::current());
            let describe = || {
                let first = parts.first().map_or(Message { kind: b'Q', body: &[] }, |(kind, end)| Message {
                    kind: *kind,
                    body: &bytes[..*end],
                });
                super::Postgres::describe(&first)
            };
            connection.serve_here(0, begun, describe, || {
                serve_all(&shared, &connection, state, context, &bytes, &parts);
                Ok(())
            });
            state.fiber.set(None);
            if state.is_closed.get() {
                connection.database().abandon(context);
            } else if context.is_in_txn() {
                connection.database().begin_wait(context);
                watch_idleness(&connection, state, context);
            }
        }
        connection.service.end_request(&connection);
    });
}

pub(super) fn has_failed() -> Error {
    let what = "current transaction is aborted, commands ignored until end of transaction block";
    Error::new(Condition::FailedTransaction, what)
}

/// Ends the connection of a client that leaves its transaction alone for longer than its session says.
fn watch_idleness(connection: &Rc<Connection>, state: &State, context: &Rc<Context>) {
    let limit_ms = state.session.borrow().milliseconds("idle_in_transaction_session_timeout");
    if limit_ms == 0 {
        return;
    }
    state.idle_since_ns.set(fiber::now_ns());
    if state.is_idleness_watched.get() {
        return;
    }
    let (weak, context) = (Rc::downgrade(connection), Rc::clone(context));
    // Without a fiber for it the next pause tries again.
    let made = fiber::try_spawn("idle transaction", move || {
        let limit_ns = limit_ms.saturating_mul(1_000_000);
        let mut pause_ns = limit_ns;
        let connection = loop {
            if fiber::sleep(pause_ns) == fiber::Wake::Cancelled {
                return;
            }
            let Some(connection) = weak.upgrade() else { return };
            let Some(state) = state_of(&connection) else { return };
            if state.fiber.get().is_some() || state.is_closed.get() || !context.is_in_txn() {
                // The next pause is watched anew.
                state.is_idleness_watched.set(false);
                return;
            }
            let idle_ns = fiber::now_ns().saturating_sub(state.idle_since_ns.get());
            if idle_ns >= limit_ns {
                break connection;
            }
            pause_ns = limit_ns - idle_ns;
        };
        fiber::set_local(Rc::clone(&context) as Rc<dyn Any>);
        connection.database().abandon(&context);
        let message = "terminating connection due to idle-in-transaction timeout";
        let _ = connection.answer(wal::Position::default(), 0, |out| {
            Report { severity: "FATAL", state: "25P03", message, detail: None, hint: None, names: &[] }.put(out, b'E');
            Ok(())
        });
        connection.end();
        connection.service.mark(&connection);
    });
    state.is_idleness_watched.set(made.is_ok());
}

fn serve_all(
    shared: &Rc<Shared>,
    connection: &Rc<Connection>,
    state: &State,
    context: &Rc<Context>,
    bytes: &[u8],
    parts: &[(u8, usize)],
) {
    let database = connection.database();
    database.act_for_session(context);
    let mut work = Work {
        shared,
        connection,
        state,
        database,
        context,
        sql: Sql::of(database),
        session: Rc::clone(&state.session.borrow()),
        out: Vec::new(),
        is_extended: false,
        is_last: false,
    };
    let mut start = 0;
    for (number, (kind, end)) in parts.iter().enumerate() {
        // Portals and statements that are closed before it change no rows.
        work.is_last =
            parts[number + 1..].iter().find(|(kind, _)| *kind != b'C').is_some_and(|(kind, _)| *kind == b'S');
        work.message(*kind, &bytes[start..*end]);
        start = *end;
        if state.is_closed.get() || connection.is_closing.get() {
            break;
        }
    }
    work.flush(false);
}

/// No more messages will come.
pub(super) fn close(shared: &Rc<Shared>, connection: &Rc<Connection>, state: &State) {
    if state.is_closed.replace(true) {
        return;
    }
    shared.connections.borrow_mut().remove(&state.number);
    let channels: Vec<String> = state.channels.borrow_mut().drain().collect();
    shared.forget(state.number, &channels);
    crate::statements::close_session(connection);
    match (state.fiber.get(), state.context.get()) {
        // It ends with what is under way.
        (Some(fiber), _) => fiber::cancel(fiber),
        (None, Some(context)) if context.is_in_txn() => {
            let (connection, context) = (Rc::clone(connection), Rc::clone(context));
            // What a transaction calls back may wait.
            fiber::run_now(super::Postgres::NAME, move || {
                fiber::set_local(Rc::clone(&context) as Rc<dyn Any>);
                connection.database().abandon(&context);
            });
        }
        _ => {}
    }
}

impl Work<'_> {
    /// Hands on what was answered so far. `is_ready`: it ends with `ReadyForQuery`.
    pub(super) fn flush(&mut self, is_ready: bool) {
        if self.out.is_empty() {
            return;
        }
        let tag = if is_ready { READY_TAG } else { 0 };
        let bytes = std::mem::take(&mut self.out);
        let _ = self.connection.answer(self.context.awaited(), tag, |out| {
            out.extend_from_slice(&bytes);
            Ok(())
        });
        if !self.context.is_in_txn() {
            self.context.seen.set(wal::Position::default());
        }
    }

    fn message(&mut self, kind: u8, body: &[u8]) {
        if self.state.copy.borrow().is_some() {
            self.copy_message(kind, body);
            return;
        }
        if self.state.skips.get() && !matches!(kind, b'S' | b'X') {
            return;
        }
        self.is_extended = kind != b'Q';
        let done = match kind {
            b'Q' => {
                let ended = self.end_implicit();
                let done = ended.and_then(|()| Reader(body).text()).and_then(|text| self.simple(text));
                if let Err(error) = done {
                    self.fail(&error);
                }
                if self.state.copy.borrow().is_none() {
                    self.ready();
                }
                return;
            }
            b'P' => self.parse(body),
            b'B' => self.bind(body),
            b'D' => self.describe(body),
            b'E' => self.execute(body),
            b'C' => self.close_named(body),
            b'H' => {
                self.flush(false);
                Ok(())
            }
            b'S' => {
                self.state.skips.set(false);
                if let Err(error) = self.end_implicit() {
                    self.fail(&error);
                }
                self.ready();
                return;
            }
            b'X' => {
                self.connection.end();
                return;
            }
            b'F' => Err(Error::new(Condition::Unsupported, "the function call protocol is not supported")),
            // What was sent for a COPY that has failed.
            b'd' | b'c' | b'f' => Ok(()),
            other => {
                let what = format!("invalid frontend message type {other}");
                Report { severity: "FATAL", state: "08P01", message: &what, detail: None, hint: None, names: &[] }
                    .put(&mut self.out, b'E');
                self.connection.end();
                return;
            }
        };
        if let Err(error) = done {
            self.fail(&error);
            self.state.skips.set(true);
        }
    }

    /// Tells that everything up to here is done.
    pub(super) fn ready(&mut self) {
        if !self.context.is_in_txn() && !self.state.has_failed.get() {
            self.state.portals.borrow_mut().clear();
        }
        let status = match (self.state.has_failed.get(), self.context.is_in_txn()) {
            (true, _) => b'E',
            (false, true) => b'T',
            (false, false) => b'I',
        };
        if !self.state.is_terminated.get() {
            self.tell_settings();
            put_ready(&mut self.out, status);
        }
        self.flush(true);
    }

    /// Tells an error, and notes that the transaction has failed.
    pub(super) fn fail(&mut self, error: &Error) {
        database::increment(&self.database.statistics.errors);
        database::increment(&self.connection.counts.errors);
        // It may show what was written before it, and is not durable yet.
        self.context.see(match self.database.lost_from() {
            Some(_) => wal::Position::default(),
            None => self.database.appended(),
        });
        put_error(&mut self.out, error);
        if error.condition() == Condition::Terminated {
            self.state.is_terminated.set(true);
            self.connection.end();
        }
        if self.state.is_implicit.replace(false) {
            self.undo();
            return;
        }
        if !self.context.is_in_txn() {
            return;
        }
        self.state.has_failed.set(true);
        if !self.state.has_savepoints.get() {
            // Nobody can come back to it: what it has locked is free for others.
            self.database.abandon(self.context);
        }
    }

    /// Statements up to a Sync are one transaction: opens it, unless the one at hand is alone. What only reads one committed state after the other
    /// needs none.
    pub(super) fn begin_implicit(&mut self, prepared: &Prepared) -> Result<(), Error> {
        let is_meant = prepared.holds_rows()
            || prepared.changes_schema()
            || prepared.is_query() && self.state.isolation.get() == sql::Isolation::Serializable;
        if !is_meant || self.is_last || self.is_in_block() || self.context.is_in_txn() {
            return Ok(());
        }
        self.begin(Modes::default())?;
        self.state.is_implicit.set(true);
        Ok(())
    }

    /// Commits what such a transaction has done. Errors: nothing of it stands.
    pub(super) fn end_implicit(&mut self) -> Result<(), Error> {
        if !self.state.is_implicit.replace(false) {
            return Ok(());
        }
        self.commit_together()
    }

    /// A text of statements, whose rows are answered as text.
    fn simple(&mut self, text: &str) -> Result<(), Error> {
        self.state.statements.borrow_mut().remove("");
        self.state.portals.borrow_mut().remove("");
        if let Some(prepared) = self.sql.known(self.database, self.context, Dialect::Postgres, text) {
            return self.run_simple(&prepared);
        }
        let parsed = self.sql.parse(Dialect::Postgres, text)?;
        if parsed.is_empty() {
            put(&mut self.out, b'I', |_| {});
            return Ok(());
        }
        // Before anything is made of its names and values.
        if self.state.has_failed.get() && !parsed[0].ends_failure() {
            return Err(has_failed());
        }
        // Several together are a transaction, unless they say something else.
        let is_one = parsed.len() > 1 && !self.is_in_block() && parsed.iter().all(Parsed::is_of_a_transaction);
        if is_one {
            self.begin(Modes::default())?;
        }
        for statement in parsed {
            let prepared = self.sql.prepare_parsed(self.database, self.context, statement, &[]);
            if let Err(error) = prepared.and_then(|prepared| self.run_simple(&prepared)) {
                if is_one {
                    self.undo();
                }
                return Err(error.located(text));
            }
        }
        if is_one { self.commit_together() } else { Ok(()) }
    }

    /// Commits statements that are one transaction without having said so. Errors: nothing of it stands.
    fn commit_together(&mut self) -> Result<(), Error> {
        if let Err(error) = self.database.commit(self.context) {
            self.undo();
            return Err(error.into());
        }
        self.session.end_transaction();
        self.end_cursors(true);
        self.send_notices();
        self.sql.after_transaction(self.database, self.context, true)
    }

    /// Takes back what such statements have done.
    fn undo(&mut self) {
        if self.context.is_in_txn() {
            self.database.abandon(self.context);
        }
        self.session.end_transaction();
        self.state.notices.borrow_mut().clear();
        self.end_cursors(false);
        let _ = self.sql.after_transaction(self.database, self.context, false);
    }

    fn run_simple(&mut self, prepared: &Rc<Prepared>) -> Result<(), Error> {
        self.check_not_failed(prepared)?;
        match prepared.control() {
            Some(Control::Copy(copy)) => return self.begin_copy(copy),
            Some(Control::Execute { name, values }) => return self.execute_named(name, values.as_deref(), None),
            _ => {}
        }
        self.put_columns_of(prepared, &[])?;
        let tag = self.run(prepared, &[], &[])?;
        put_complete(&mut self.out, &tag);
        Ok(())
    }

    /// The columns of a statement, if it gives rows. Returns whether it does.
    pub(super) fn put_columns_of(&mut self, prepared: &Prepared, formats: &[bool]) -> Result<bool, Error> {
        match prepared.control() {
            // It may be described before its cursor is there.
            Some(Control::Fetch { name, is_move: false, .. }) if !self.state.cursors.borrow().contains_key(name) => {
                return Ok(false);
            }
            Some(Control::Fetch { name, is_move: false, .. }) => {
                let (columns, form) = self.cursor_columns(name)?;
                put_columns(&mut self.out, &columns, if formats.is_empty() { form } else { formats });
            }
            // What EXECUTE gives is what the statement of that name gives.
            Some(Control::Execute { name, .. }) => {
                let statement = self.state.statements.borrow().get(name).cloned();
                let Some(of) = statement.and_then(|statement| statement.prepared.clone()) else { return Ok(false) };
                if !of.has_rows() {
                    return Ok(false);
                }
                put_columns(&mut self.out, of.columns(), formats);
            }
            _ if prepared.has_rows() => put_columns(&mut self.out, prepared.columns(), formats),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// EXECUTE of a statement that was prepared by name. `formats`: those of the extended protocol, by which the columns were described.
    pub(super) fn execute_named(
        &mut self,
        name: &str,
        values: Option<&str>,
        formats: Option<&[bool]>,
    ) -> Result<(), Error> {
        let statement = self.state.statements.borrow().get(name).cloned().ok_or_else(|| no_such_statement(name))?;
        let Some(prepared) = &statement.prepared else { return Err(no_such_statement(name)) };
        let mut params = Vec::new();
        if let Some(values) = values {
            let query = self.sql.prepare(self.database, self.context, Dialect::Postgres, values, &[])?;
            self.sql.run(self.database, self.context, &query, &[], &mut |row| {
                params = row.to_vec();
                Ok(())
            })?;
        }
        for (param, ty) in params.iter_mut().zip(prepared.params()) {
            // A moment without a zone is one of the session's, and read when the statement runs.
            let is_open = ty.is_zoned() && self.state.session.borrow().zone().is_some();
            if let Value::Text(text) = &*param
                && !is_open
            {
                *param = sql::parse_value(Dialect::Postgres, text, *ty)?;
            }
        }
        if prepared.has_rows() && formats.is_none() {
            put_columns(&mut self.out, prepared.columns(), &[]);
        }
        let tag = self.run(prepared, &params, formats.unwrap_or_default())?;
        put_complete(&mut self.out, &tag);
        Ok(())
    }

    pub(super) fn check_not_failed(&self, prepared: &Prepared) -> Result<(), Error> {
        match self.state.has_failed.get() && !prepared.ends_failure() {
            true => Err(has_failed()),
            false => Ok(()),
        }
    }

    /// Runs a statement; its rows are answered. Returns what `CommandComplete` says.
    pub(super) fn run(&mut self, prepared: &Rc<Prepared>, params: &[Value], formats: &[bool]) -> Result<String, Error> {
        if let Some(control) = prepared.control() {
            if let Control::Show(name) = control {
                let rows = self.show(name.as_deref())?;
                for row in &rows {
                    put_row(&mut self.out, row, prepared.columns(), formats, None)?;
                }
                return Ok("SHOW".to_string());
            }
            return self.control(control, prepared, params, formats);
        }
        if prepared.writes() {
            self.before_write()?;
        }
        let (sql, database, context) = (Rc::clone(&self.sql), self.database, self.context);
        let (connection, out) = (self.connection, &mut self.out);
        let zone = self.state.session.borrow().zone();
        let outcome = sql.run(database, context, prepared, params, &mut |row| {
            put_row(out, row, prepared.columns(), formats, zone.as_ref())?;
            if out.len() >= CHUNK_BYTES {
                hand_on(connection, context, out)?;
            }
            Ok(())
        })?;
        if let Some(number) = outcome.counts.generated.last() {
            // `lastval()` tells it.
            self.session.last_insert_id.set(*number as u64);
        }
        self.after(prepared);
        Ok(tag_of(outcome.tag, outcome.counts.rows))
    }

    /// Errors: the transaction may only read.
    pub(super) fn before_write(&mut self) -> Result<(), Error> {
        let is_read_only = match self.context.is_in_txn() {
            true => self.state.is_read_only.get(),
            false => self.session.get("default_transaction_read_only").as_deref() == Some("on"),
        };
        if is_read_only {
            return Err(Error::new(Condition::ReadOnly, "cannot execute this statement in a read-only transaction"));
        }
        Ok(())
    }

    /// A statement has been run.
    pub(super) fn after(&mut self, prepared: &Prepared) {
        self.state.is_used.set(true);
        if prepared.sets_savepoint() {
            self.state.has_savepoints.set(true);
        }
        if prepared.ends_failure() {
            self.state.has_failed.set(false);
        }
        if !self.context.is_in_txn() && prepared.writes() {
            // What cannot be emptied now is at the next commit.
            let _ = self.sql.after_transaction(self.database, self.context, true);
        }
    }
}

/// What `CommandComplete` says of a statement.
pub(super) fn tag_of(tag: &'static str, rows: u64) -> String {
    match tag {
        "SELECT" | "UPDATE" | "DELETE" => format!("{tag} {rows}"),
        "INSERT" => format!("INSERT 0 {rows}"),
        other => other.to_string(),
    }
}

/// Hands on a part of an answer, and waits while the client has not taken what came before.
pub(super) fn hand_on(connection: &Rc<Connection>, context: &Rc<Context>, out: &mut Vec<u8>) -> Result<(), Error> {
    match connection.hand_on(context, out)? {
        true => Ok(()),
        false => Err(Error::new(Condition::Cancelled, "canceling statement due to user request")),
    }
}
