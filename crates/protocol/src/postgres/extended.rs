//! The extended protocol: statements that are parsed, bound to values as portals, described and executed one message at a time.

use super::formats::{oid_of, type_of};
use super::message::{Reader, put, put_complete, put_u16, put_u32};
use super::parameters::read_value;
use super::rows::{put_columns, put_row};
use super::serve::{Work, has_failed, tag_of};
use super::session::no_such_statement;
use super::{PORTALS_MAX, Portal, Statement};
use sql::{Condition, Control, Dialect, Error, Prepared, Value};
use std::collections::VecDeque;
use std::rc::Rc;

/// Bytes of rows that a portal keeps for a client that takes them in parts.
pub(crate) const PORTAL_BYTES_MAX: usize = 256 << 20;

/// The table of a prepared statement has other columns now.
pub(super) const STALE: &str = "cached plan must not change result type";

/// Rows that were found and not asked for yet, as messages.
pub(super) struct Rest {
    rows: VecDeque<Vec<u8>>,
    tag: &'static str,
}

impl Work<'_> {
    pub(super) fn parse(&mut self, body: &[u8]) -> Result<(), Error> {
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
            return Err(
                Error::new(Condition::Unsupported, STALE).hint("Prepare the statement again: its table was changed.")
            );
        }
        let new =
            Rc::new(Statement { prepared: Some(again), oids: statement.oids.clone(), types: statement.types.clone() });
        self.state.statements.borrow_mut().insert(name.to_string(), Rc::clone(&new));
        Ok(new)
    }

    pub(super) fn bind(&mut self, body: &[u8]) -> Result<(), Error> {
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
        let is_zoned = self.state.session.borrow().zone().is_some();
        for (number, ty) in wanted.iter().enumerate() {
            let length = reader.u32()? as i32;
            if length < 0 {
                params.push(Value::Null);
                continue;
            }
            let bytes = reader.bytes(length as usize)?;
            let is_binary = formats.get(number).or(formats.first()).copied().unwrap_or(false);
            let oid = statement.oids.get(number).copied().unwrap_or(0);
            // A moment without a zone is one of the session's, and read when the statement runs.
            let is_open = is_zoned && !is_binary && ty.is_zoned();
            let ty = if is_open { sql::Type::TEXT } else { *ty };
            params.push(read_value(bytes, oid, ty, is_binary)?);
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

    pub(super) fn describe(&mut self, body: &[u8]) -> Result<(), Error> {
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

    pub(super) fn execute(&mut self, body: &[u8]) -> Result<(), Error> {
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
            Some(Control::Execute { name, values }) => {
                return self.execute_named(name, values.as_deref(), Some(&formats));
            }
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
        let zone = self.state.session.borrow().zone();
        let outcome = self.sql.run(self.database, self.context, prepared, params, &mut |row| {
            let mut message = Vec::new();
            put_row(&mut message, row, prepared.columns(), formats, zone.as_ref())?;
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

    pub(super) fn close_named(&mut self, body: &[u8]) -> Result<(), Error> {
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
