//! Messages of statements: the simple and the extended protocol, in a fiber for all messages that have come together.

use super::formats::{modifier_of, oid_of, put_value, read_value, size_of, type_of};
use super::message::{Message, Reader, Report, put, put_complete, put_error, put_ready, put_text, put_u16, put_u32};
use super::session::no_such_statement;
use super::{PORTALS_MAX, Portal, READY_TAG, Shared, State, Statement, state_of};
use crate::connection::Connection;
use crate::door::Door;
use database::{Context, Database};
use runtime::fiber;
use sql::{Column, Condition, Control, Dialect, Error, Modes, Parsed, Prepared, Session, Sql, Value};
use std::any::Any;
use std::collections::VecDeque;
use std::rc::Rc;

/// Bytes of answers that are made before they are handed on.
pub(super) const CHUNK_BYTES: usize = 64 << 10;
/// Bytes of rows that a portal keeps for a client that takes them in parts.
pub(crate) const PORTAL_BYTES_MAX: usize = 256 << 20;

/// Rows that were found and not asked for yet, as messages.
pub(super) struct Rest {
    rows: VecDeque<Vec<u8>>,
    tag: &'static str,
}

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

fn has_failed() -> Error {
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
        put_ready(&mut self.out, status);
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
        if self.state.is_implicit.replace(false) {
            self.database.abandon(self.context);
            self.session.end_transaction();
            self.state.notices.borrow_mut().clear();
            self.end_cursors(false);
            let _ = self.sql.after_transaction(self.database, self.context, false);
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
    fn begin_implicit(&mut self, prepared: &Prepared) -> Result<(), Error> {
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
        self.session.end_transaction();
        if let Err(error) = self.database.commit(self.context) {
            if self.context.is_in_txn() {
                self.database.abandon(self.context);
            }
            self.state.notices.borrow_mut().clear();
            self.end_cursors(false);
            return Err(error.into());
        }
        self.end_cursors(true);
        self.send_notices();
        self.sql.after_transaction(self.database, self.context, true)
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
                    self.database.abandon(self.context);
                    self.session.end_transaction();
                    self.state.notices.borrow_mut().clear();
                    self.end_cursors(false);
                }
                return Err(error);
            }
        }
        if is_one {
            self.session.end_transaction();
            if let Err(error) = self.database.commit(self.context) {
                self.database.abandon(self.context);
                self.end_cursors(false);
                return Err(error.into());
            }
            self.end_cursors(true);
            self.send_notices();
        }
        Ok(())
    }

    fn run_simple(&mut self, prepared: &Rc<Prepared>) -> Result<(), Error> {
        self.check_not_failed(prepared)?;
        match prepared.control() {
            Some(Control::Copy(copy)) => return self.begin_copy(copy),
            Some(Control::Execute { name, values }) => return self.execute_named(name, values.as_deref()),
            _ => {}
        }
        self.put_columns_of(prepared, &[])?;
        let tag = self.run(prepared, &[], &[])?;
        put_complete(&mut self.out, &tag);
        Ok(())
    }

    /// The columns of a statement, if it gives rows. Returns whether it does.
    fn put_columns_of(&mut self, prepared: &Prepared, formats: &[bool]) -> Result<bool, Error> {
        match prepared.control() {
            Some(Control::Fetch { name, is_move: false, .. }) => {
                let (columns, form) = self.cursor_columns(name)?;
                put_columns(&mut self.out, &columns, if formats.is_empty() { form } else { formats });
            }
            _ if prepared.has_rows() => put_columns(&mut self.out, prepared.columns(), formats),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// EXECUTE of a statement that was prepared by name.
    fn execute_named(&mut self, name: &str, values: Option<&str>) -> Result<(), Error> {
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
            if let Value::Text(text) = &*param {
                *param = sql::parse_value(Dialect::Postgres, text, *ty)?;
            }
        }
        if prepared.has_rows() {
            put_columns(&mut self.out, prepared.columns(), &[]);
        }
        let tag = self.run(prepared, &params, &[])?;
        put_complete(&mut self.out, &tag);
        Ok(())
    }

    fn check_not_failed(&self, prepared: &Prepared) -> Result<(), Error> {
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
                    put_row(&mut self.out, row, prepared.columns(), formats)?;
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
        let outcome = sql.run(database, context, prepared, params, &mut |row| {
            put_row(out, row, prepared.columns(), formats)?;
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

    // The extended protocol.

    fn parse(&mut self, body: &[u8]) -> Result<(), Error> {
        let mut reader = Reader(body);
        let (name, text, count) = (reader.text()?, reader.text()?, reader.u16()?);
        let (mut oids, mut types) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let oid = reader.u32()?;
            types.push(type_of(oid)?);
            oids.push(oid);
        }
        if oids.iter().all(|oid| *oid == 0) {
            types.clear();
        }
        if name.is_empty() {
            self.state.statements.borrow_mut().remove("");
        }
        if self.state.has_failed.get() {
            let parsed = self.sql.parse(Dialect::Postgres, text)?;
            if parsed.first().is_some_and(|parsed| !parsed.ends_failure()) {
                return Err(has_failed());
            }
        }
        let prepared = match self.sql.prepare(self.database, self.context, Dialect::Postgres, text, &types) {
            Ok(prepared) => {
                self.check_not_failed(&prepared)?;
                Some(prepared)
            }
            Err(error) if error.condition() == Condition::Empty => None,
            Err(error) => return Err(error),
        };
        let count = prepared.as_ref().map_or(0, |prepared| prepared.params().len());
        oids.resize(count.max(oids.len()), 0);
        self.keep(name, Statement { prepared, oids, types })?;
        put(&mut self.out, b'1', |_| {});
        Ok(())
    }

    /// The statement as it is under the schema of now.
    fn current(&self, name: &str, statement: &Rc<Statement>) -> Result<Rc<Statement>, Error> {
        let Some(prepared) = &statement.prepared else { return Ok(Rc::clone(statement)) };
        if prepared.is_current(self.database) {
            return Ok(Rc::clone(statement));
        }
        let again =
            self.sql.prepare(self.database, self.context, Dialect::Postgres, prepared.text(), &statement.types)?;
        let shape = |prepared: &Prepared| prepared.columns().iter().map(|column| column.ty).collect::<Vec<_>>();
        if shape(&again) != shape(prepared) {
            let what = "cached plan must not change result type";
            return Err(
                Error::new(Condition::Unsupported, what).hint("Prepare the statement again: its table was changed.")
            );
        }
        let new =
            Rc::new(Statement { prepared: Some(again), oids: statement.oids.clone(), types: statement.types.clone() });
        self.state.statements.borrow_mut().insert(name.to_string(), Rc::clone(&new));
        Ok(new)
    }

    fn bind(&mut self, body: &[u8]) -> Result<(), Error> {
        let mut reader = Reader(body);
        let (portal, name) = (reader.text()?, reader.text()?);
        let statement = self.state.statements.borrow().get(name).cloned().ok_or_else(|| no_such_statement(name))?;
        let statement = self.current(name, &statement)?;
        let formats = read_formats(&mut reader)?;
        let count = reader.u16()? as usize;
        let wanted: &[sql::Type] = statement.prepared.as_ref().map_or(&[], |prepared| prepared.params());
        if count != wanted.len() {
            let what = format!(
                "bind message supplies {count} parameters, but prepared statement \"{name}\" requires {}",
                wanted.len()
            );
            return Err(Error::new(Condition::Protocol, what));
        }
        if formats.len() > 1 && formats.len() != count {
            let what = format!("bind message has {} parameter formats but {count} parameters", formats.len());
            return Err(Error::new(Condition::Protocol, what));
        }
        let mut params = Vec::with_capacity(count);
        for (number, ty) in wanted.iter().enumerate() {
            let length = reader.u32()? as i32;
            if length < 0 {
                params.push(Value::Null);
                continue;
            }
            let bytes = reader.bytes(length as usize)?;
            let is_binary = formats.get(number).or(formats.first()).copied().unwrap_or(false);
            let oid = statement.oids.get(number).copied().unwrap_or(0);
            params.push(read_value(bytes, oid, *ty, is_binary)?);
        }
        let formats = read_formats(&mut reader)?;
        let columns = match &statement.prepared {
            None => 0,
            Some(prepared) => match prepared.control() {
                Some(Control::Fetch { name, is_move: false, .. }) => self.cursor_columns(name)?.0.len(),
                _ => prepared.columns().len(),
            },
        };
        if formats.len() > 1 && formats.len() != columns {
            let what = format!("bind message has {} result formats but query has {columns} columns", formats.len());
            return Err(Error::new(Condition::Protocol, what));
        }
        let mut portals = self.state.portals.borrow_mut();
        if !portal.is_empty() && portals.contains_key(portal) {
            let what = format!("portal \"{portal}\" already exists");
            return Err(Error::new(Condition::DuplicateCursor, what));
        }
        if portals.len() >= PORTALS_MAX {
            let what = format!("the session has {PORTALS_MAX} portals already");
            return Err(Error::new(Condition::LimitExceeded, what));
        }
        portals.insert(portal.to_string(), Portal { statement, params, formats, rest: None, is_done: false });
        drop(portals);
        put(&mut self.out, b'2', |_| {});
        Ok(())
    }

    fn describe(&mut self, body: &[u8]) -> Result<(), Error> {
        let mut reader = Reader(body);
        let (kind, name) = (reader.byte()?, reader.text()?);
        let (statement, formats) = match kind {
            b'S' => {
                let statement =
                    self.state.statements.borrow().get(name).cloned().ok_or_else(|| no_such_statement(name))?;
                let statement = self.current(name, &statement)?;
                let types: &[sql::Type] = statement.prepared.as_ref().map_or(&[], |prepared| prepared.params());
                put(&mut self.out, b't', |out| {
                    put_u16(out, types.len());
                    for (number, ty) in types.iter().enumerate() {
                        let given = statement.oids.get(number).copied().filter(|oid| *oid != 0);
                        put_u32(out, given.unwrap_or_else(|| oid_of(*ty)));
                    }
                });
                (statement, Vec::new())
            }
            // A cursor is a portal, too.
            b'P' if self.is_cursor(name) => {
                let (columns, _) = self.cursor_columns(name)?;
                put_columns(&mut self.out, &columns, &[]);
                return Ok(());
            }
            b'P' => {
                let portals = self.state.portals.borrow();
                let portal = portals.get(name).ok_or_else(|| no_such_portal(name))?;
                (Rc::clone(&portal.statement), portal.formats.clone())
            }
            other => {
                let what = format!("invalid DESCRIBE message subtype {other}");
                return Err(Error::new(Condition::Protocol, what));
            }
        };
        let has_rows = match &statement.prepared {
            Some(prepared) => self.put_columns_of(prepared, &formats)?,
            None => false,
        };
        if !has_rows {
            put(&mut self.out, b'n', |_| {});
        }
        Ok(())
    }

    fn execute(&mut self, body: &[u8]) -> Result<(), Error> {
        let mut reader = Reader(body);
        let (name, limit) = (reader.text()?, reader.u32()?);
        let limit = usize::try_from(limit as i32).ok().filter(|limit| *limit > 0);
        if self.is_cursor(name) {
            let step = sql::Step::Forward(limit.map_or(i64::MAX, |limit| limit as i64));
            let count = self.fetch(name, step, false, &[])?;
            match limit {
                Some(limit) if count == limit => put(&mut self.out, b's', |_| {}),
                _ => put_complete(&mut self.out, &format!("SELECT {count}")),
            }
            return Ok(());
        }
        let taken = {
            let mut portals = self.state.portals.borrow_mut();
            let portal = portals.get_mut(name).ok_or_else(|| no_such_portal(name))?;
            let has_more = portal.rest.is_some();
            let is_done = std::mem::replace(&mut portal.is_done, true);
            let params = if is_done { Vec::new() } else { std::mem::take(&mut portal.params) };
            (Rc::clone(&portal.statement), params, portal.formats.clone(), has_more, is_done)
        };
        let (statement, params, formats, has_more, is_done) = taken;
        if has_more {
            return self.hand_out(name, limit);
        }
        let Some(prepared) = &statement.prepared else {
            put(&mut self.out, b'I', |_| {});
            return Ok(());
        };
        if is_done {
            let tag = if prepared.has_rows() { "SELECT 0" } else { "SELECT" };
            put_complete(&mut self.out, tag);
            return Ok(());
        }
        self.check_not_failed(prepared)?;
        match prepared.control() {
            Some(Control::Copy(copy)) => return self.begin_copy(copy),
            Some(Control::Execute { name, values }) => return self.execute_named(name, values.as_deref()),
            _ => {}
        }
        self.begin_implicit(prepared)?;
        match limit {
            Some(_) if prepared.has_rows() && prepared.control().is_none() => {
                let rest = self.collect(prepared, &params, &formats)?;
                if let Some(portal) = self.state.portals.borrow_mut().get_mut(name) {
                    portal.rest = Some(rest);
                }
                self.hand_out(name, limit)
            }
            _ => {
                let tag = self.run(prepared, &params, &formats)?;
                put_complete(&mut self.out, &tag);
                Ok(())
            }
        }
    }

    /// Runs a statement whose rows are taken in parts.
    fn collect(&mut self, prepared: &Rc<Prepared>, params: &[Value], formats: &[bool]) -> Result<Rest, Error> {
        if prepared.writes() {
            self.before_write()?;
        }
        let (mut rows, mut bytes) = (VecDeque::new(), 0);
        let outcome = self.sql.run(self.database, self.context, prepared, params, &mut |row| {
            let mut message = Vec::new();
            put_row(&mut message, row, prepared.columns(), formats)?;
            bytes += message.len() + size_of_val(&message);
            rows.push_back(message);
            match bytes <= PORTAL_BYTES_MAX {
                true => Ok(()),
                false => {
                    let what = format!("the result has more than {} MiB", PORTAL_BYTES_MAX >> 20);
                    Err(Error::new(Condition::LimitExceeded, what).hint("Without a limit of rows it is streamed."))
                }
            }
        })?;
        self.after(prepared);
        Ok(Rest { rows, tag: outcome.tag })
    }

    /// Answers rows of a portal that were found before.
    fn hand_out(&mut self, name: &str, limit: Option<usize>) -> Result<(), Error> {
        let mut portals = self.state.portals.borrow_mut();
        let portal = portals.get_mut(name).ok_or_else(|| no_such_portal(name))?;
        let Some(rest) = &mut portal.rest else { return Ok(()) };
        let count = limit.unwrap_or(usize::MAX).min(rest.rows.len());
        rest.rows.drain(..count).for_each(|row| self.out.extend_from_slice(&row));
        if rest.rows.is_empty() && limit.is_none_or(|limit| count < limit) {
            let tag = tag_of(rest.tag, count as u64);
            portal.rest = None;
            put_complete(&mut self.out, &tag);
        } else {
            put(&mut self.out, b's', |_| {});
        }
        Ok(())
    }

    fn close_named(&mut self, body: &[u8]) -> Result<(), Error> {
        let mut reader = Reader(body);
        let (kind, name) = (reader.byte()?, reader.text()?);
        match kind {
            b'S' => _ = self.state.statements.borrow_mut().remove(name),
            b'P' => {
                self.state.portals.borrow_mut().remove(name);
                self.state.cursors.borrow_mut().remove(name);
            }
            other => {
                let what = format!("invalid CLOSE message subtype {other}");
                return Err(Error::new(Condition::Protocol, what));
            }
        }
        put(&mut self.out, b'3', |_| {});
        Ok(())
    }
}

fn no_such_portal(name: &str) -> Error {
    Error::new(Condition::UndefinedCursor, format!("portal \"{name}\" does not exist"))
}

/// Formats of parameters or columns: whether each is binary.
fn read_formats(reader: &mut Reader<'_>) -> Result<Vec<bool>, Error> {
    let count = reader.u16()?;
    let mut formats = Vec::new();
    for _ in 0..count {
        formats.push(match reader.u16()? {
            0 => false,
            1 => true,
            other => return Err(Error::new(Condition::Protocol, format!("unsupported format code: {other}"))),
        });
    }
    Ok(formats)
}

/// What `CommandComplete` says of a statement.
fn tag_of(tag: &'static str, rows: u64) -> String {
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

/// `RowDescription`.
fn put_columns(out: &mut Vec<u8>, columns: &[Column], formats: &[bool]) {
    put(out, b'T', |out| {
        put_u16(out, columns.len());
        for (number, column) in columns.iter().enumerate() {
            put_text(out, &column.name);
            let origin = column.origin.as_ref().map(|origin| (origin.table_number, origin.number));
            let (table, number_there) = origin.unwrap_or((0, 0));
            put_u32(out, table);
            put_u16(out, usize::from(number_there));
            put_u32(out, oid_of(column.ty));
            out.extend_from_slice(&size_of(column.ty).to_be_bytes());
            out.extend_from_slice(&modifier_of(column.ty).to_be_bytes());
            put_u16(out, usize::from(is_binary(formats, number)));
        }
    });
}

fn is_binary(formats: &[bool], number: usize) -> bool {
    match formats {
        [all] => *all,
        formats => formats.get(number).copied().unwrap_or(false),
    }
}

/// `DataRow`.
pub(super) fn put_row(out: &mut Vec<u8>, row: &[Value], columns: &[Column], formats: &[bool]) -> Result<(), Error> {
    let start = out.len();
    let mut done = Ok(());
    put(out, b'D', |out| {
        put_u16(out, row.len());
        for (number, value) in row.iter().enumerate() {
            let ty = columns.get(number).map_or(sql::Type::TEXT, |column| column.ty);
            if let Err(error) = put_value(out, value, ty, is_binary(formats, number)) {
                done = Err(error);
                break;
            }
        }
    });
    if done.is_err() {
        out.truncate(start);
    }
    done
}
