//! Prepared statements: by number for the binary protocol, by name for PREPARE.

use super::packet::{Reader, put};
use super::serve::{Form, Work, status};
use super::startup::abilities;
use super::values::{put_binary_row, put_column, read_param, text_or_bytes};
use hashbrown::HashMap;
use sql::{Column, Condition, Dialect, Error, Granted, Prepared, Type, Value};
use std::collections::VecDeque;
use std::rc::Rc;

/// Prepared statements of a connection.
pub(crate) const STATEMENTS_MAX: usize = 10_000;
/// Bytes of the texts of prepared statements of a connection.
pub(crate) const TEXT_BYTES_MAX: usize = 64 << 20;
/// Bytes of parameters that were sent in parts, of a connection.
pub(crate) const LONG_BYTES_MAX: usize = 64 << 20;
/// Bytes of rows that a cursor keeps.
pub(crate) const CURSOR_BYTES_MAX: usize = 256 << 20;

/// Those of a connection.
#[derive(Default)]
pub(super) struct Statements {
    next: u32,
    known: HashMap<u32, Statement>,
    by_name: HashMap<String, Rc<Prepared>>,
    /// Bytes of long data of all of them, and of their texts.
    long_bytes: usize,
    text_bytes: usize,
}

struct Statement {
    prepared: Rc<Prepared>,
    /// The same for parameters of such types, where types of columns depend on them.
    typed: Option<(Vec<Type>, Rc<Prepared>)>,
    /// Types of parameters: they come once.
    kinds: Vec<(u8, bool)>,
    /// Parameters that have come in parts.
    long: HashMap<usize, Vec<u8>>,
    /// More of them has come than may be kept.
    is_too_long: bool,
    /// Rows that were found and not asked for yet, as bodies of packets.
    cursor: Option<(VecDeque<Vec<u8>>, Granted)>,
}

impl Statement {
    fn forget_long(&mut self) -> usize {
        self.is_too_long = false;
        self.long.drain().map(|(_, bytes)| bytes.len()).sum()
    }
}

impl Statements {
    pub(super) fn close(&mut self, number: u32) {
        if let Some(mut statement) = self.known.remove(&number) {
            self.long_bytes -= statement.forget_long();
            self.text_bytes -= statement.prepared.text().len();
        }
    }

    /// Errors: there are too many of them, or their texts are too long.
    fn check_room(&self, text: &str) -> Result<(), Error> {
        let count = self.known.len() + self.by_name.len();
        match count < STATEMENTS_MAX && self.text_bytes + text.len() <= TEXT_BYTES_MAX {
            true => Ok(()),
            false => Err(too_many()),
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Statements { next: self.next, ..Statements::default() };
    }
}

fn unknown(number: impl std::fmt::Display, what: &str) -> Error {
    let what = format!("Unknown prepared statement handler ({number}) given to {what}");
    Error::new(Condition::UndefinedStatement, what)
}

fn too_many() -> Error {
    let what = format!(
        "Can't create more than max_prepared_stmt_count statements (current value: {STATEMENTS_MAX}, with texts of {} MiB in all)",
        TEXT_BYTES_MAX >> 20
    );
    Error::new(Condition::LimitExceeded, what).mysql(1461)
}

impl Work<'_> {
    /// COM_STMT_PREPARE.
    pub(super) fn prepare(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let texts = sql::mysql_texts(bytes, self.session.keeps_backslashes())?;
        let [text] = texts.as_slice() else {
            return Err(match texts.is_empty() {
                true => Error::new(Condition::Empty, "Query was empty"),
                false => {
                    Error::new(Condition::Syntax, "You have an error in your SQL syntax: one statement is prepared")
                }
            });
        };
        let text = self.session.respelled(text);
        let prepared = self.sql.prepare(self.database, self.context, Dialect::Mysql, &text, &[])?;
        self.state.prepared.borrow().check_room(prepared.text())?;
        let params = prepared.params().len();
        if params > usize::from(u16::MAX) {
            let what = "Prepared statement contains too many placeholders";
            return Err(Error::new(Condition::LimitExceeded, what).mysql(1390));
        }
        let number = {
            let mut statements = self.state.prepared.borrow_mut();
            statements.next = statements.next.wrapping_add(1).max(1);
            let number = statements.next;
            let statement = Statement {
                prepared: Rc::clone(&prepared),
                typed: None,
                kinds: Vec::new(),
                long: HashMap::new(),
                is_too_long: false,
                cursor: None,
            };
            statements.known.insert(number, statement);
            statements.text_bytes += prepared.text().len();
            number
        };
        put(&mut self.out, &mut self.sequence, |out| {
            out.push(0);
            out.extend_from_slice(&number.to_le_bytes());
            out.extend_from_slice(&(prepared.columns().len() as u16).to_le_bytes());
            out.extend_from_slice(&(params as u16).to_le_bytes());
            out.extend_from_slice(&[0, 0, 0]);
        });
        let name = self.session.database_name();
        if params > 0 {
            let param = Column::named("?", Type::TEXT);
            for _ in 0..params {
                put(&mut self.out, &mut self.sequence, |out| put_column(out, &param, &name));
            }
            self.put_end(0, false);
        }
        if !prepared.columns().is_empty() {
            for column in prepared.columns() {
                let shown = sql::shown_column(column, &name);
                put(&mut self.out, &mut self.sequence, |out| put_column(out, &shown, &name));
            }
            self.put_end(0, false);
        }
        Ok(())
    }

    /// COM_STMT_EXECUTE.
    pub(super) fn execute(&mut self, body: &[u8]) -> Result<(), Error> {
        let mut reader = Reader(body);
        let number = reader.u32()?;
        let flags = reader.u8()?;
        reader.u32()?;
        let (prepared, params, kinds) = {
            let mut statements = self.state.prepared.borrow_mut();
            let statement = statements.known.get_mut(&number).ok_or_else(|| unknown(number, "mysqld_stmt_execute"))?;
            statement.cursor = None;
            if statement.is_too_long {
                let freed = statement.forget_long();
                statements.long_bytes -= freed;
                let what = format!(
                    "Parameter of prepared statement which is set through mysql_send_long_data() is longer than {LONG_BYTES_MAX} bytes"
                );
                return Err(Error::new(Condition::LimitExceeded, what).mysql(1301));
            }
            let params = read_params(&mut reader, statement);
            let kinds = statement.kinds.clone();
            let freed = statement.forget_long();
            let prepared = Rc::clone(&statement.prepared);
            statements.long_bytes -= freed;
            (prepared, params?, kinds)
        };
        // A day is none of the types that a value shows.
        let has_days = kinds.iter().any(|(kind, _)| *kind == super::values::kinds::DATE);
        let prepared = match prepared.depends_on_params() || has_days && prepared.has_rows() {
            true => self.typed(number, &prepared, &params, &kinds)?,
            false => prepared,
        };
        if flags & 1 != 0 && prepared.has_rows() && prepared.control().is_none() {
            return self.open_cursor(number, &prepared, &params);
        }
        self.run(&prepared, &params, Form::Binary, 0)
    }

    /// The statement for parameters of the types that these have.
    fn typed(
        &mut self,
        number: u32,
        prepared: &Rc<Prepared>,
        params: &[Value],
        kinds: &[(u8, bool)],
    ) -> Result<Rc<Prepared>, Error> {
        let is_unsigned = |at: usize| kinds.get(at).is_some_and(|(_, is_unsigned)| *is_unsigned);
        let type_of = |(at, value): (usize, &Value)| match value {
            Value::Int(_) if is_unsigned(at) => Type::of(sql::Base::Uint8),
            Value::Datetime(_) if kinds.get(at).is_some_and(|(kind, _)| *kind == super::values::kinds::DATE) => {
                Type::of(sql::Base::Date)
            }
            value => sql::type_of_parameter(value),
        };
        let types: Vec<Type> = params.iter().enumerate().map(type_of).collect();
        let known = self.state.prepared.borrow().known.get(&number).and_then(|statement| statement.typed.clone());
        if let Some((of, known)) = known.filter(|(_, known)| known.is_current(self.database))
            && of == types
        {
            return Ok(known);
        }
        let found = self.sql.prepare(self.database, self.context, Dialect::Mysql, prepared.text(), &types)?;
        if let Some(statement) = self.state.prepared.borrow_mut().known.get_mut(&number) {
            statement.typed = Some((types, Rc::clone(&found)));
        }
        Ok(found)
    }

    /// Finds the rows of a statement that are asked for in parts.
    fn open_cursor(&mut self, number: u32, prepared: &Rc<Prepared>, params: &[Value]) -> Result<(), Error> {
        self.before(prepared)?;
        let prepared = match prepared.is_current(self.database) {
            true => Rc::clone(prepared),
            false => self.sql.prepare(self.database, self.context, Dialect::Mysql, prepared.text(), &[])?,
        };
        let (mut rows, mut bytes) = (VecDeque::new(), 0);
        let mut granted = Granted::of(self.database);
        self.sql.run(self.database, self.context, &prepared, params, &mut |row| {
            let mut body = Vec::new();
            put_binary_row(&mut body, row, prepared.columns())?;
            let more = body.len() + size_of_val(&body);
            bytes += more;
            granted.take(more)?;
            rows.push_back(body);
            match bytes <= CURSOR_BYTES_MAX {
                true => Ok(()),
                false => {
                    let what = format!("the result has more than {} MiB", CURSOR_BYTES_MAX >> 20);
                    Err(Error::new(Condition::LimitExceeded, what).hint("Without a cursor it is streamed."))
                }
            }
        })?;
        let name = self.session.database_name();
        put(&mut self.out, &mut self.sequence, |out| super::values::put_count(out, prepared.columns().len()));
        for column in prepared.columns() {
            let shown = sql::shown_column(column, &name);
            put(&mut self.out, &mut self.sequence, |out| put_column(out, &shown, &name));
        }
        // With a cursor, the end of the definitions is always told.
        let is_short = self.can(abilities::DEPRECATE_EOF);
        self.put_end(status::CURSOR, is_short);
        if let Some(statement) = self.state.prepared.borrow_mut().known.get_mut(&number) {
            statement.cursor = Some((rows, granted));
        }
        Ok(())
    }

    /// COM_STMT_FETCH.
    pub(super) fn fetch(&mut self, body: &[u8]) -> Result<(), Error> {
        let mut reader = Reader(body);
        let (number, count) = (reader.u32()?, reader.u32()?);
        let (rows, is_last) = {
            let mut statements = self.state.prepared.borrow_mut();
            let statement = statements.known.get_mut(&number).ok_or_else(|| unknown(number, "mysqld_stmt_fetch"))?;
            let Some((cursor, _)) = &mut statement.cursor else {
                let what = format!("The statement ({number}) has no open cursor.");
                return Err(Error::new(Condition::UndefinedCursor, what).mysql(1421));
            };
            let count = (count as usize).min(cursor.len());
            let rows: Vec<Vec<u8>> = cursor.drain(..count).collect();
            let is_last = cursor.is_empty();
            if is_last {
                statement.cursor = None;
            }
            (rows, is_last)
        };
        for row in &rows {
            put(&mut self.out, &mut self.sequence, |out| out.extend_from_slice(row));
        }
        self.put_end(if is_last { status::LAST_ROW } else { status::CURSOR }, true);
        Ok(())
    }

    /// COM_STMT_RESET.
    pub(super) fn reset_statement(&mut self, body: &[u8]) -> Result<(), Error> {
        let number = Reader(body).u32()?;
        {
            let mut statements = self.state.prepared.borrow_mut();
            let statement = statements.known.get_mut(&number).ok_or_else(|| unknown(number, "mysqld_stmt_reset"))?;
            statement.cursor = None;
            let freed = statement.forget_long();
            statements.long_bytes -= freed;
        }
        self.ok();
        Ok(())
    }

    /// COM_STMT_SEND_LONG_DATA: what is wrong with it is told by the next COM_STMT_EXECUTE.
    pub(super) fn take_long_data(&mut self, body: &[u8]) {
        let mut reader = Reader(body);
        let (Ok(number), Ok(param)) = (reader.u32(), reader.u16()) else { return };
        let mut statements = self.state.prepared.borrow_mut();
        let room = LONG_BYTES_MAX - statements.long_bytes.min(LONG_BYTES_MAX);
        let Some(statement) = statements.known.get_mut(&number) else { return };
        let param = usize::from(param);
        if param >= statement.prepared.params().len() {
            return;
        }
        if reader.0.len() > room {
            statement.is_too_long = true;
            return;
        }
        statement.long.entry(param).or_default().extend_from_slice(reader.0);
        statements.long_bytes += reader.0.len();
    }

    /// PREPARE: a text under a name.
    pub(super) fn prepare_named(&mut self, name: &str, text: &str) -> Result<(), Error> {
        let text = self.session.respelled(text);
        let prepared = self.sql.prepare(self.database, self.context, Dialect::Mysql, &text, &[])?;
        let is_nested = matches!(
            prepared.control(),
            Some(sql::Control::PrepareFrom { .. } | sql::Control::ExecuteUsing { .. } | sql::Control::Deallocate(_))
        );
        if is_nested {
            let what = "This command is not supported in the prepared statement protocol yet";
            return Err(Error::new(Condition::Unsupported, what).mysql(1295));
        }
        if name.len() > super::serve::NAME_MAX {
            return Err(Error::new(Condition::Syntax, format!("Identifier name '{name}' is too long")).mysql(1059));
        }
        // A statement of the same name is gone, even if this one finds no room.
        let _ = self.deallocate(name);
        let mut statements = self.state.prepared.borrow_mut();
        statements.check_room(prepared.text())?;
        statements.text_bytes += prepared.text().len();
        statements.by_name.insert(name.to_lowercase(), prepared);
        Ok(())
    }

    pub(super) fn named(&self, name: &str) -> Result<Rc<Prepared>, Error> {
        let statements = self.state.prepared.borrow();
        statements.by_name.get(&name.to_lowercase()).cloned().ok_or_else(|| unknown(name, "EXECUTE"))
    }

    pub(super) fn deallocate(&self, name: &str) -> Result<(), Error> {
        let mut statements = self.state.prepared.borrow_mut();
        let gone = statements.by_name.remove(&name.to_lowercase());
        let gone = gone.ok_or_else(|| unknown(name, "DEALLOCATE PREPARE"))?;
        statements.text_bytes -= gone.text().len();
        Ok(())
    }
}

/// The parameters of an execution.
fn read_params(reader: &mut Reader<'_>, statement: &mut Statement) -> Result<Vec<Value>, Error> {
    let count = statement.prepared.params().len();
    if count == 0 {
        return Ok(Vec::new());
    }
    let nulls = reader.bytes(count.div_ceil(8))?;
    if reader.u8()? == 1 {
        let mut kinds = Vec::with_capacity(count);
        for _ in 0..count {
            let kind = reader.u8()?;
            kinds.push((kind, reader.u8()? & 0x80 != 0));
        }
        statement.kinds = kinds;
    }
    if statement.kinds.len() != count {
        let what = "Incorrect arguments to mysqld_stmt_execute: types of parameters were not sent";
        return Err(Error::new(Condition::InvalidArgument, what));
    }
    let mut params = Vec::with_capacity(count);
    for (number, (kind, is_unsigned)) in statement.kinds.iter().enumerate() {
        let is_null = nulls[number / 8] >> (number % 8) & 1 == 1;
        params.push(match statement.long.get(&number) {
            Some(bytes) => text_or_bytes(bytes),
            None if is_null => Value::Null,
            None => read_param(reader, *kind, *is_unsigned)?,
        });
    }
    Ok(params)
}
