//! Commands, in a fiber for all that have come together: texts of statements, and what is answered to them.

use super::packet::{Message, Reader, put, put_counted, put_failure, put_number};
use super::startup::abilities;
use super::values::{put_binary_row, put_column, put_count, put_text_row};
use super::{Shared, State, state_of};
use crate::connection::Connection;
use crate::door::Door;
use database::{Context, Database};
use runtime::fiber;
use sql::{Base, Column, Condition, Control, Counts, Dialect, Error, Prepared, Session, Sql, Type, Value};
use std::any::Any;
use std::rc::Rc;

/// Bytes of answers that are made before they are handed on.
const CHUNK_BYTES: usize = 64 << 10;
/// Room that is made for more rows than one.
const ROWS_BYTES: usize = 8 << 10;
/// Bytes of the name of a database.
pub(crate) const NAME_MAX: usize = 64;

/// The first bytes of commands.
pub(super) mod commands {
    pub(crate) const QUIT: u8 = 0x01;
    pub(crate) const INIT_DB: u8 = 0x02;
    pub(crate) const QUERY: u8 = 0x03;
    pub(crate) const FIELD_LIST: u8 = 0x04;
    pub(crate) const REFRESH: u8 = 0x07;
    pub(crate) const STATISTICS: u8 = 0x09;
    pub(crate) const PROCESS_INFO: u8 = 0x0a;
    pub(crate) const PROCESS_KILL: u8 = 0x0c;
    pub(crate) const DEBUG: u8 = 0x0d;
    pub(crate) const PING: u8 = 0x0e;
    pub(crate) const CHANGE_USER: u8 = 0x11;
    pub(crate) const STMT_PREPARE: u8 = 0x16;
    pub(crate) const STMT_EXECUTE: u8 = 0x17;
    pub(crate) const STMT_SEND_LONG_DATA: u8 = 0x18;
    pub(crate) const STMT_CLOSE: u8 = 0x19;
    pub(crate) const STMT_RESET: u8 = 0x1a;
    pub(crate) const SET_OPTION: u8 = 0x1b;
    pub(crate) const STMT_FETCH: u8 = 0x1c;
    pub(crate) const RESET_CONNECTION: u8 = 0x1f;
}

/// Marks of the session, and of what is answered.
pub(super) mod status {
    pub(crate) const IN_TRANSACTION: u16 = 1;
    pub(crate) const AUTOCOMMIT: u16 = 2;
    pub(crate) const MORE_RESULTS: u16 = 8;
    pub(crate) const CURSOR: u16 = 64;
    pub(crate) const LAST_ROW: u16 = 128;
    /// Clients write backslashes as they are.
    pub(crate) const NO_BACKSLASH_ESCAPES: u16 = 512;
}

/// What an OK says.
#[derive(Default)]
pub(super) struct Done {
    pub(super) rows: u64,
    pub(super) last_id: u64,
    pub(super) status: u16,
    pub(super) warnings: usize,
    pub(super) about: String,
}

/// Appends an OK.
pub(super) fn put_ok(out: &mut Vec<u8>, sequence: &mut u8, done: &Done) {
    put(out, sequence, |out| put_ok_body(out, 0, done));
}

fn put_ok_body(out: &mut Vec<u8>, head: u8, done: &Done) {
    out.push(head);
    put_number(out, done.rows);
    put_number(out, done.last_id);
    let status = if done.status == 0 { status::AUTOCOMMIT } else { done.status };
    out.extend_from_slice(&status.to_le_bytes());
    out.extend_from_slice(&(done.warnings.min(usize::from(u16::MAX)) as u16).to_le_bytes());
    if !done.about.is_empty() {
        put_counted(out, done.about.as_bytes());
    }
}

/// The commands that are served together, and what they are served with.
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
    /// The number of the next packet, and of the first of the answer.
    pub(super) sequence: u8,
    first: u8,
    /// The statement at hand has begun: what is warned of now is of it.
    has_begun: bool,
}

/// How rows are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Text,
    Binary,
}

/// Serves commands that have come together.
pub(super) fn serve(shared: &Rc<Shared>, connection: &Rc<Connection>, messages: &[Message<'_>]) {
    let mut bytes = Vec::with_capacity(messages.iter().map(|message| message.bytes().len()).sum());
    let mut ends = Vec::with_capacity(messages.len());
    for message in messages {
        bytes.extend_from_slice(message.bytes());
        ends.push(bytes.len());
    }
    let (shared, connection) = (Rc::clone(shared), Rc::clone(connection));
    let begun = connection.group_began.get();
    connection.service.begin_request(&connection);
    fiber::run_now(super::Mysql::NAME, move || {
        if let Some(state) = state_of(&connection) {
            let context = state.context.get_or_init(|| Rc::new(Context::for_stream(Rc::clone(connection.session()))));
            fiber::set_local(Rc::clone(context) as Rc<dyn Any>);
            state.fiber.set(fiber::current());
            let first = ends.first().copied().unwrap_or(0);
            let describe = || super::Mysql::describe(&Message::of(&bytes[..first]));
            connection.serve_here(1, begun, describe, || {
                serve_all(&shared, &connection, state, context, &bytes, &ends);
                Ok(())
            });
            state.fiber.set(None);
            if state.is_closed.get() {
                connection.database().abandon(context);
            } else if context.is_in_txn() {
                connection.database().begin_wait(context);
            }
        }
        connection.service.end_request(&connection);
    });
}

fn serve_all(
    shared: &Rc<Shared>,
    connection: &Rc<Connection>,
    state: &State,
    context: &Rc<Context>,
    bytes: &[u8],
    ends: &[usize],
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
        sequence: 1,
        first: 1,
        has_begun: false,
    };
    let mut start = 0;
    for end in ends {
        let message = Message::of(&bytes[start..*end]);
        work.first = message.sequence.wrapping_add(1);
        work.sequence = work.first;
        work.has_begun = false;
        work.command(&message.body());
        work.flush();
        start = *end;
        if state.is_closed.get() || connection.is_closing.get() {
            break;
        }
    }
}

/// No more commands will come.
pub(super) fn close(shared: &Rc<Shared>, connection: &Rc<Connection>, state: &State) {
    if state.is_closed.replace(true) {
        return;
    }
    shared.connections.borrow_mut().remove(&state.number);
    crate::statements::close_session(connection);
    match (state.fiber.get(), state.context.get()) {
        // It ends with what is under way.
        (Some(fiber), _) => fiber::cancel(fiber),
        (None, Some(context)) if context.is_in_txn() => {
            let (connection, context) = (Rc::clone(connection), Rc::clone(context));
            // What a transaction calls back may wait.
            fiber::run_now(super::Mysql::NAME, move || {
                fiber::set_local(Rc::clone(&context) as Rc<dyn Any>);
                connection.database().abandon(&context);
            });
        }
        _ => {}
    }
}

/// What the session keeps is gone.
pub(super) fn forget(state: &State) {
    state.prepared.borrow_mut().clear();
    state.commits_alone.set(true);
    state.next_modes.take();
    state.session.borrow().reset();
}

/// Of a packet without a body of its own.
fn text_of(body: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(body).map_err(|_| Error::new(Condition::InvalidEncoding, "Invalid utf8mb4 character string"))
}

impl Work<'_> {
    /// Hands on what was answered so far.
    pub(super) fn flush(&mut self) {
        if !self.out.is_empty() {
            let bytes = std::mem::take(&mut self.out);
            let _ = self.connection.answer(self.context.awaited(), u64::from(self.first), |out| {
                out.extend_from_slice(&bytes);
                Ok(())
            });
        }
        if !self.context.is_in_txn() {
            self.context.seen.set(wal::Position::default());
        }
    }

    fn command(&mut self, body: &[u8]) {
        if self.state.load.borrow().is_some() {
            self.has_begun = true;
            if let Err(error) = self.take_file(body) {
                self.fail(&error);
            }
            return;
        }
        let Some((kind, rest)) = body.split_first() else {
            return self.fail(&Error::new(Condition::Protocol, "Malformed communication packet.").mysql(1835));
        };
        let done = match *kind {
            commands::QUIT => {
                self.connection.end();
                return;
            }
            commands::INIT_DB => text_of(rest).and_then(|name| self.use_database(name)).map(|()| self.ok()),
            commands::QUERY => self.query(rest),
            commands::FIELD_LIST => self.list_fields(rest),
            commands::REFRESH | commands::DEBUG | commands::PING => {
                self.ok();
                Ok(())
            }
            commands::STATISTICS => {
                self.statistics();
                Ok(())
            }
            commands::PROCESS_INFO => self.query(b"SHOW PROCESSLIST"),
            commands::PROCESS_KILL => {
                let number = Reader(rest).u32();
                number.and_then(|number| self.kill(number, false)).map(|()| self.ok())
            }
            commands::STMT_PREPARE => self.prepare(rest),
            commands::STMT_EXECUTE => self.execute(rest),
            // These two are not answered.
            commands::STMT_SEND_LONG_DATA => {
                self.take_long_data(rest);
                return;
            }
            commands::STMT_CLOSE => {
                if let Ok(number) = Reader(rest).u32() {
                    self.state.prepared.borrow_mut().close(number);
                }
                return;
            }
            commands::STMT_RESET => self.reset_statement(rest),
            commands::STMT_FETCH => self.fetch(rest),
            commands::SET_OPTION => self.set_option(rest),
            commands::RESET_CONNECTION => {
                if self.context.is_in_txn() {
                    self.database.abandon(self.context);
                }
                forget(self.state);
                self.sql.drop_temporary(self.database, self.context, &self.session).map(|()| self.ok())
            }
            _ => Err(Error::new(Condition::Protocol, "Unknown command")),
        };
        if let Err(error) = done {
            self.fail(&error);
        }
    }

    /// Tells an error.
    pub(super) fn fail(&mut self, error: &Error) {
        database::increment(&self.database.statistics.errors);
        database::increment(&self.connection.counts.errors);
        // It may show what was written before it, and is not durable yet.
        self.context.see(match self.database.lost_from() {
            Some(_) => wal::Position::default(),
            None => self.database.appended(),
        });
        let number = error.mysql_number();
        self.session.row_count.set(-1);
        let mut message = error.to_string();
        if let Some(hint) = &error.body().hint {
            message = format!("{message} ({hint})");
        }
        match error.condition() {
            Condition::Deadlock => {
                message = "Deadlock found when trying to get lock; try restarting transaction".to_string();
            }
            Condition::LockTimeout => {
                message = "Lock wait timeout exceeded; try restarting transaction".to_string();
            }
            _ => {}
        }
        let mut warnings = self.session.warnings.borrow_mut();
        if !self.has_begun {
            warnings.clear();
        }
        warnings.push(("Error", number, message.clone()));
        drop(warnings);
        put_failure(&mut self.out, &mut self.sequence, number, sql::mysql_state(number), &message);
        // Who has met another one begins anew.
        let is_over = matches!(error.condition(), Condition::Serialization | Condition::Deadlock);
        if is_over && self.context.is_in_txn() {
            self.database.abandon(self.context);
        }
    }

    /// Marks of the session as it is now.
    pub(super) fn status(&self) -> u16 {
        let in_transaction = if self.context.is_in_txn() { status::IN_TRANSACTION } else { 0 };
        let quotes = if self.session.keeps_backslashes() { status::NO_BACKSLASH_ESCAPES } else { 0 };
        in_transaction | quotes | if self.state.commits_alone.get() { status::AUTOCOMMIT } else { 0 }
    }

    pub(super) fn ok(&mut self) {
        self.done(0, 0, String::new(), 0);
    }

    /// Tells that a statement without rows is done.
    pub(super) fn done(&mut self, rows: u64, last_id: u64, about: String, more: u16) {
        let warnings = self.session.warnings.borrow().len();
        // 0 would be taken for a status that nobody has said.
        let status = self.status() | more;
        let done = Done { rows, last_id, status, warnings, about };
        put(&mut self.out, &mut self.sequence, |out| {
            put_ok_body(out, 0, &done);
            // No marks at all are marks, too.
            if status == 0 {
                let at = out.len() - 4 - if done.about.is_empty() { 0 } else { done.about.len() + 1 };
                out[at..at + 2].copy_from_slice(&[0, 0]);
            }
        });
    }

    pub(super) fn can(&self, ability: u32) -> bool {
        self.state.abilities.get() & ability != 0
    }

    /// The end of definitions or rows.
    pub(super) fn put_end(&mut self, more: u16, is_of_rows: bool) {
        let warnings = self.session.warnings.borrow().len().min(usize::from(u16::MAX));
        let status = self.status() | more;
        if !self.can(abilities::DEPRECATE_EOF) {
            put(&mut self.out, &mut self.sequence, |out| {
                out.push(0xfe);
                out.extend_from_slice(&(warnings as u16).to_le_bytes());
                out.extend_from_slice(&status.to_le_bytes());
            });
        } else if is_of_rows {
            put(&mut self.out, &mut self.sequence, |out| {
                out.extend_from_slice(&[0xfe, 0, 0]);
                out.extend_from_slice(&status.to_le_bytes());
                out.extend_from_slice(&(warnings as u16).to_le_bytes());
            });
        }
    }

    /// Definitions of columns.
    pub(super) fn put_columns(&mut self, columns: &[Column], more: u16) {
        let name = self.session.database_name();
        put(&mut self.out, &mut self.sequence, |out| put_count(out, columns.len()));
        for column in columns {
            let shown = sql::shown_column(column, &name);
            put(&mut self.out, &mut self.sequence, |out| put_column(out, &shown, &name));
        }
        self.put_end(more, false);
    }

    fn query(&mut self, bytes: &[u8]) -> Result<(), Error> {
        // A text that is known is one statement.
        if let Ok(text) = std::str::from_utf8(bytes)
            && let text = self.session.respelled(text)
            && let Some(prepared) = self.sql.known(self.database, self.context, Dialect::Mysql, &text)
        {
            return self.run(&prepared, &[], Form::Text, 0);
        }
        let texts = sql::mysql_texts(bytes, self.session.keeps_backslashes())?;
        if texts.is_empty() && !bytes.trim_ascii().is_empty() {
            // A comment alone.
            self.done(0, 0, String::new(), 0);
            return Ok(());
        }
        if texts.is_empty() {
            return Err(Error::new(Condition::Empty, "Query was empty"));
        }
        if texts.len() > 1 && !self.can(abilities::MULTI_STATEMENTS) {
            let near: String = texts[1].chars().take(80).collect();
            let what = format!(
                "You have an error in your SQL syntax: several statements in one text are not allowed by this client, near '{near}'"
            );
            return Err(Error::new(Condition::Syntax, what));
        }
        let texts: Vec<String> = texts.iter().map(|text| text.to_string()).collect();
        self.run_texts(&texts)
    }

    /// Runs statements that have come in one text. Errors: that of the first one that fails.
    pub(super) fn run_texts(&mut self, texts: &[String]) -> Result<(), Error> {
        for (number, text) in texts.iter().enumerate() {
            let more = if number + 1 < texts.len() { status::MORE_RESULTS } else { 0 };
            // What a statement before it says of quotes holds for it.
            let text = self.session.respelled(text);
            let prepared = self.sql.prepare(self.database, self.context, Dialect::Mysql, &text, &[])?;
            self.run(&prepared, &[], Form::Text, more)?;
            if let Some(load) = self.state.load.borrow_mut().as_mut() {
                // They go on behind the file.
                load.rest = texts[number + 1..].to_vec();
                break;
            }
        }
        Ok(())
    }

    /// What has to be before a statement: the open transaction, or none.
    pub(super) fn before(&mut self, prepared: &Prepared) -> Result<(), Error> {
        self.has_begun = !is_diagnostic(prepared.text());
        if self.has_begun {
            self.session.warnings.borrow_mut().clear();
        }
        let is_temporary = || self.sql.is_about_temporary(self.database, self.context, prepared);
        if prepared.changes_schema() && self.context.is_in_txn() && !is_temporary() {
            self.end_transaction(true)?;
        }
        if prepared.writes() {
            let is_read_only = match self.context.is_in_txn() {
                true => self.state.is_read_only.get(),
                false => self.session.variable("transaction_read_only").as_deref() == Some("1"),
            };
            if is_read_only {
                let what = "Cannot execute statement in a READ ONLY transaction.";
                return Err(Error::new(Condition::ReadOnly, what).mysql(1792));
            }
        }
        let is_of_rows = prepared.has_rows() || prepared.writes() && !prepared.changes_schema();
        let is_of_rows = is_of_rows || prepared.sets_savepoint();
        if !self.state.commits_alone.get() && !self.context.is_in_txn() && is_of_rows {
            self.begin(self.state.next_modes.take())?;
        }
        Ok(())
    }

    /// Runs a statement and answers it.
    pub(super) fn run(
        &mut self,
        prepared: &Rc<Prepared>,
        params: &[Value],
        form: Form,
        more: u16,
    ) -> Result<(), Error> {
        self.before(prepared)?;
        self.session.told_insert_id.set(None);
        if let Some(Control::Load(load)) = prepared.control() {
            return self.begin_load(load, form, more);
        }
        if let Some(control) = prepared.control() {
            return self.run_control(control, params, form, more);
        }
        // Outside of a transaction nothing is saved, and nobody is told.
        if prepared.sets_savepoint() && !self.context.is_in_txn() {
            self.done(0, 0, String::new(), more);
            return Ok(());
        }
        if !prepared.has_rows() {
            let outcome = self.sql.run(self.database, self.context, prepared, params, &mut |_| Ok(()))?;
            self.told(prepared, outcome.tag, &outcome.counts, more);
            return Ok(());
        }
        let current = match prepared.is_current(self.database) {
            true => Rc::clone(prepared),
            false => self.sql.prepare(self.database, self.context, Dialect::Mysql, prepared.text(), &[])?,
        };
        let (sql, database, context) = (Rc::clone(&self.sql), self.database, self.context);
        let (start, sequence) = (self.out.len(), self.sequence);
        let mut rows = Rows { form, more, count: 0, is_open: false, is_handed_on: false, first: None };
        let done = sql.run(database, context, &current, params, &mut |row| rows.take(self, current.columns(), row));
        match done.and_then(|_| rows.open(self, current.columns())) {
            Ok(()) => {
                self.session.row_count.set(-1);
                self.put_end(more, true);
                Ok(())
            }
            Err(error) => {
                if !rows.is_handed_on {
                    // Nobody has seen the columns.
                    self.out.truncate(start);
                    self.sequence = sequence;
                }
                Err(error)
            }
        }
    }

    /// Tells what a statement without rows has done.
    fn told(&mut self, prepared: &Prepared, tag: &str, counts: &Counts, more: u16) {
        let is_update = tag == "UPDATE";
        let rows = match is_update && self.can(abilities::FOUND_ROWS) {
            true => counts.matched,
            false => counts.rows,
        };
        let told = self.session.told_insert_id.get();
        let mut last_id = counts.generated.first().map_or(0, |id| u64::try_from(*id).unwrap_or(0));
        if last_id > 0 {
            self.session.last_insert_id.set(last_id);
        } else {
            last_id = told.or(counts.brought.and_then(|id| u64::try_from(id).ok())).unwrap_or(0);
        }
        let rows = if prepared.changes_schema() { 0 } else { rows };
        self.session.row_count.set(i64::try_from(rows).unwrap_or(i64::MAX));
        let warnings = self.session.warnings.borrow().len();
        let about = match tag {
            "UPDATE" => {
                format!("Rows matched: {}  Changed: {}  Warnings: {warnings}", counts.matched, counts.rows)
            }
            "INSERT" if counts.rows > 1 => format!("Records: {}  Duplicates: 0  Warnings: {warnings}", counts.rows),
            _ => String::new(),
        };
        self.done(rows, last_id, about, more);
    }

    fn run_control(&mut self, control: &Control, params: &[Value], form: Form, more: u16) -> Result<(), Error> {
        if let Control::ExecuteUsing { name, values } = control {
            let mut given = Vec::with_capacity(values.len());
            for value in values {
                given.push(self.sql.evaluate(self.database, self.context, value)?);
            }
            let prepared = self.named(name)?;
            if prepared.params().len() != given.len() {
                return Err(Error::new(Condition::InvalidArgument, "Incorrect arguments to EXECUTE"));
            }
            return self.run(&prepared, &given, form, more);
        }
        self.control(control, params)?;
        self.session.row_count.set(0);
        self.done(0, 0, String::new(), more);
        Ok(())
    }

    /// COM_FIELD_LIST: the columns of a table, with their defaults.
    fn list_fields(&mut self, body: &[u8]) -> Result<(), Error> {
        let table = text_of(Reader(body).until_zero())?;
        let text = format!("SELECT * FROM `{}` LIMIT 0", table.replace('`', "``"));
        let prepared = self.sql.prepare(self.database, self.context, Dialect::Mysql, &text, &[])?;
        // Whether it may be read is asked where it is read.
        self.sql.run(self.database, self.context, &prepared, &[], &mut |_| Ok(()))?;
        let name = self.session.database_name();
        for column in prepared.columns() {
            put(&mut self.out, &mut self.sequence, |out| {
                put_column(out, column, &name);
                out.push(0xfb);
            });
        }
        self.put_end(0, true);
        Ok(())
    }

    fn statistics(&mut self) {
        let statistics = &self.database.statistics;
        let text = format!(
            "Uptime: {}  Threads: {}  Questions: {}  Slow queries: 0  Opens: 0  Flush tables: 0  Open tables: {}  Queries per second avg: 0",
            self.database.uptime_ns() / 1_000_000_000,
            self.shared.connections.borrow().len(),
            statistics.requests.get(),
            self.database.catalog.spaces().len(),
        );
        put(&mut self.out, &mut self.sequence, |out| out.extend_from_slice(text.as_bytes()));
    }

    fn set_option(&mut self, body: &[u8]) -> Result<(), Error> {
        let before = self.state.abilities.get();
        self.state.abilities.set(match Reader(body).u16()? {
            0 => before | abilities::MULTI_STATEMENTS,
            1 => before & !abilities::MULTI_STATEMENTS,
            _ => return Err(Error::new(Condition::Protocol, "Unknown command")),
        });
        self.put_end(0, true);
        Ok(())
    }

    pub(super) fn use_database(&mut self, name: &str) -> Result<(), Error> {
        if name.is_empty() || !is_name(name) {
            return Err(Error::new(Condition::UndefinedObject, format!("Unknown database '{name}'")).mysql(1049));
        }
        *self.session.database.borrow_mut() = name.to_string();
        Ok(())
    }

    /// Opens a transaction.
    pub(super) fn begin(&mut self, modes: sql::Modes) -> Result<(), Error> {
        let isolation = modes.isolation.unwrap_or_else(|| self.session.isolation());
        self.sql.begin(self.database, self.context, isolation)?;
        let is_read_only = modes
            .is_read_only
            .unwrap_or_else(|| self.session.variable("transaction_read_only").as_deref() == Some("1"));
        self.state.is_read_only.set(is_read_only);
        Ok(())
    }

    /// Ends the open transaction, if there is one.
    pub(super) fn end_transaction(&mut self, commits: bool) -> Result<(), Error> {
        if !self.context.is_in_txn() {
            return Ok(());
        }
        if !commits {
            self.database.abandon(self.context);
            return self.sql.after_transaction(self.database, self.context, false);
        }
        let done = self.database.commit(self.context);
        if done.is_err() && self.context.is_in_txn() {
            self.database.abandon(self.context);
        }
        self.sql.after_transaction(self.database, self.context, done.is_ok())?;
        Ok(done?)
    }
}

/// The rows of a result on their way.
struct Rows {
    form: Form,
    more: u16,
    /// Rows that were put.
    count: u64,
    /// The columns were told.
    is_open: bool,
    is_handed_on: bool,
    /// The first row, where its values may say of which types columns are.
    first: Option<Vec<Value>>,
}

impl Rows {
    fn take(&mut self, work: &mut Work<'_>, columns: &[Column], row: &[Value]) -> Result<(), Error> {
        if !self.is_open {
            let is_untyped = columns.iter().any(|column| matches!(column.ty.base, Base::Any | Base::Number));
            if is_untyped && self.first.is_none() {
                self.first = Some(row.to_vec());
                return Ok(());
            }
            // Of several rows, one does not speak for the others.
            work.put_columns(columns, self.more);
            self.is_open = true;
            if let Some(first) = self.first.take() {
                self.put(work, columns, &first)?;
            }
        }
        self.put(work, columns, row)
    }

    fn put(&mut self, work: &mut Work<'_>, columns: &[Column], row: &[Value]) -> Result<(), Error> {
        let mut done = Ok(());
        self.count += 1;
        if self.count == 2 {
            // More will come.
            work.out.reserve(ROWS_BYTES);
        }
        put(&mut work.out, &mut work.sequence, |out| match self.form {
            Form::Text => put_text_row(out, row, columns),
            Form::Binary => done = put_binary_row(out, row, columns),
        });
        done?;
        if work.out.len() >= CHUNK_BYTES {
            self.is_handed_on = true;
            if !work.connection.hand_on(work.context, &mut work.out)? {
                return Err(Error::new(Condition::Cancelled, "Query execution was interrupted"));
            }
        }
        Ok(())
    }

    /// All rows have come: the columns are told, if they were not. One row alone says of which types its columns are.
    fn open(&mut self, work: &mut Work<'_>, columns: &[Column]) -> Result<(), Error> {
        if self.is_open {
            return Ok(());
        }
        self.is_open = true;
        let Some(first) = self.first.take() else {
            work.put_columns(columns, self.more);
            return Ok(());
        };
        let base = |(column, value): (&Column, &Value)| match (column.ty.base, value) {
            (Base::Any | Base::Number, Value::Int(_)) | (Base::Any, Value::Bool(_)) => Some(Base::Int8),
            (Base::Any | Base::Number, Value::Uint(_)) => Some(Base::Uint8),
            (Base::Any | Base::Number, Value::Double(_)) => Some(Base::Double),
            (Base::Any | Base::Number, Value::Decimal(_)) => Some(Base::Decimal),
            (Base::Any, Value::Bytes(_)) => Some(Base::Bytes),
            (Base::Any, Value::Datetime(_)) => Some(Base::Timestamp),
            _ => None,
        };
        let mut typed = std::borrow::Cow::Borrowed(columns);
        for (number, base) in columns.iter().zip(&first).map(base).enumerate() {
            if let Some(base) = base {
                typed.to_mut()[number].ty = Type::of(base);
            }
        }
        work.put_columns(&typed, self.more);
        self.put(work, &typed, &first)
    }
}

/// True if a database may have the name.
pub(super) fn is_name(name: &str) -> bool {
    name.len() <= NAME_MAX && !name.contains(char::is_control)
}

/// True for a statement that asks what was wrong with the one before it.
fn is_diagnostic(text: &str) -> bool {
    let text = text.trim_start();
    let begins = |words: &str| text.get(..words.len()).is_some_and(|start| start.eq_ignore_ascii_case(words));
    begins("show warnings")
        || begins("show errors")
        || begins("show count")
        || begins("select @@") && text.to_ascii_lowercase().contains("_count")
}
