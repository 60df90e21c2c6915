//! COPY from the client and to it, as text, as CSV and in binary. Source: PostgreSQL's documentation, "COPY", "File Formats".

use super::Shared;
use super::formats::{oid_of, put_plain, put_value};
use super::message::{Reader, put, put_complete, put_u16, utf8};
use super::parameters::read_value;
use super::serve::{Work, hand_on};
use runtime::fiber::{self, Wake};
use smallvec::SmallVec;
use sql::{Base, Condition, Copy, CopyFormat, Dialect, Error, LoadedRows, Loader, Modes, Prepared, Type, Value, Zone};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::rc::Rc;

/// How a file in binary begins: a mark, flags, bytes of an extension.
const BINARY_HEAD: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// Bytes of one row of the client's.
pub(crate) const LINE_MAX: usize = 64 << 20;
/// Time that rows are put in before others have a turn.
const SLICE_NS: u64 = 1_000_000;
/// Bytes of rows that are made before they are handed on.
const CHUNK_BYTES: usize = 64 << 10;

/// Bytes of rows that all connections keep until their COPY ends, so that they are put in at one go; who comes behind them puts rows in as they come.
pub(crate) const KEPT_BYTES_MAX: usize = 512 << 20;
/// Columns that most tables have at most: those need no memory of their own.
const USUAL_COLUMNS: usize = 16;
/// Bytes of rows that are put into an open transaction together.
const TOGETHER_BYTES: usize = 4 << 20;

/// COPY FROM that is under way.
pub(super) struct CopyIn {
    copy: Copy,
    forced: Forced,
    insert: Rc<Prepared>,
    /// Encodes rows, where the table allows it.
    loader: Option<Loader>,
    /// Rows that were encoded and not put in.
    rows: LoadedRows,
    /// Bytes of them that are counted in `Shared::kept_bytes`.
    kept_bytes: usize,
    shared: Rc<Shared>,
    types: Vec<Type>,
    /// What has come of a row whose rest has not.
    partial: Vec<u8>,
    /// Rows that were put in, or encoded.
    count: u64,
    /// It is a transaction of its own, which is begun when rows cannot be kept any longer.
    is_own: bool,
    /// Its first line or head has come.
    is_begun: bool,
    /// The end of the data was marked.
    is_over: bool,
    /// It came by the extended protocol: Sync follows.
    is_extended: bool,
}

impl CopyIn {
    /// The rows are put in, or given up.
    fn clear(&mut self) {
        self.rows = LoadedRows::default();
        self.shared.kept_bytes.set(self.shared.kept_bytes.get() - std::mem::take(&mut self.kept_bytes));
    }
}

impl Drop for CopyIn {
    fn drop(&mut self) {
        self.clear();
    }
}

/// What holds for columns of CSV, by their numbers; empty where nothing was said.
#[derive(Default)]
struct Forced {
    quoted: Vec<bool>,
    never_null: Vec<bool>,
    null_in_quotes: Vec<bool>,
}

/// Errors: there is no such column; it is no CSV.
fn forced_of(copy: &Copy, source: &Prepared) -> Result<Forced, Error> {
    if copy.forced.iter().all(Vec::is_empty) {
        return Ok(Forced::default());
    }
    if copy.format != CopyFormat::Csv {
        return Err(Error::new(Condition::Unsupported, "COPY force options are available only in CSV mode"));
    }
    let marks = |names: &Vec<String>| -> Result<Vec<bool>, Error> {
        let mut marks = vec![false; source.columns().len()];
        for name in names {
            let found = source.columns().iter().position(|column| column.name == *name);
            let unknown = || {
                let what = format!("column \"{name}\" referenced by COPY does not exist");
                Error::new(Condition::UndefinedColumn, what)
            };
            marks[found.ok_or_else(unknown)?] = true;
        }
        Ok(marks)
    };
    let [quoted, never_null, null_in_quotes] = &copy.forced;
    Ok(Forced { quoted: marks(quoted)?, never_null: marks(never_null)?, null_in_quotes: marks(null_in_quotes)? })
}

fn bad(what: impl Into<String>) -> Error {
    Error::new(Condition::BadCopy, what.into())
}

impl Work<'_> {
    pub(super) fn begin_copy(&mut self, copy: &Copy) -> Result<(), Error> {
        let (source, target) = copy.rows.texts(self.database, self.context)?;
        let source = self.sql.prepare(self.database, self.context, Dialect::Postgres, &source, &[])?;
        let forced = forced_of(copy, &source)?;
        let types: Vec<Type> = source.columns().iter().map(|column| column.ty).collect();
        let format = u8::from(copy.format == CopyFormat::Binary);
        let put_head = |out: &mut Vec<u8>, kind: u8| {
            put(out, kind, |out| {
                out.push(format);
                put_u16(out, types.len());
                types.iter().for_each(|_| put_u16(out, usize::from(format)));
            });
        };
        if !copy.is_from {
            put_head(&mut self.out, b'H');
            return self.copy_out(copy, &source, &types, &forced);
        }
        let places: Vec<String> = (1..=types.len()).map(|number| format!("${number}")).collect();
        let text = format!("{target} VALUES ({})", places.join(", "));
        let insert = self.sql.prepare(self.database, self.context, Dialect::Postgres, &text, &[])?;
        self.before_write()?;
        let is_own = !self.context.is_in_txn();
        let loader = Loader::of(&insert);
        if is_own && loader.is_none() {
            self.begin(Modes::default())?;
        }
        put_head(&mut self.out, b'G');
        self.flush(false);
        *self.state.copy.borrow_mut() = Some(CopyIn {
            copy: copy.clone(),
            forced,
            insert,
            loader,
            rows: LoadedRows::default(),
            kept_bytes: 0,
            shared: Rc::clone(self.shared),
            types,
            partial: Vec::new(),
            count: 0,
            is_own,
            is_begun: false,
            is_over: false,
            is_extended: self.is_extended,
        });
        Ok(())
    }

    /// A message while rows come in.
    pub(super) fn copy_message(&mut self, kind: u8, body: &[u8]) {
        let Some(mut copy) = self.state.copy.take() else { return };
        let done = match kind {
            b'd' => self.take_rows(&mut copy, body, false),
            b'c' => match self.take_rows(&mut copy, &[], true) {
                Ok(()) => return self.end_copy(copy),
                Err(error) => Err(error),
            },
            b'f' => {
                let why = Reader(body).text().unwrap_or_default();
                Err(Error::new(Condition::Cancelled, format!("COPY from stdin failed: {why}")))
            }
            b'H' | b'S' => Ok(()),
            b'X' => {
                self.connection.end();
                return;
            }
            other => {
                let what = format!("unexpected message type 0x{other:02X} during COPY from stdin");
                Err(Error::new(Condition::Protocol, what))
            }
        };
        match done {
            Ok(()) => *self.state.copy.borrow_mut() = Some(copy),
            Err(error) => {
                self.give_up(&copy);
                self.fail(&error);
                match copy.is_extended {
                    true => self.state.skips.set(true),
                    false => self.ready(),
                }
            }
        }
    }

    /// Takes back what a COPY of its own has done.
    fn give_up(&mut self, copy: &CopyIn) {
        if copy.is_own {
            if self.context.is_in_txn() {
                self.database.abandon(self.context);
            }
            self.session.end_transaction();
        }
    }

    fn end_copy(&mut self, mut copy: CopyIn) {
        let mut done = self.put_in_rest(&mut copy);
        if copy.is_own && done.is_ok() && self.context.is_in_txn() {
            done = self.database.commit(self.context).map_err(Into::into);
        }
        match done {
            Ok(()) => {
                if copy.is_own {
                    self.session.end_transaction();
                }
                self.state.is_used.set(true);
                put_complete(&mut self.out, &format!("COPY {}", copy.count));
            }
            Err(error) => {
                self.give_up(&copy);
                self.fail(&error);
            }
        }
        if !copy.is_extended {
            self.ready();
        }
    }

    /// Puts in what was kept: at one go, if nothing else has to be looked at.
    fn put_in_rest(&mut self, copy: &mut CopyIn) -> Result<(), Error> {
        let Some(loader) = &mut copy.loader else { return Ok(()) };
        if copy.is_own && !self.context.is_in_txn() {
            let before = copy.count - copy.rows.len() as u64;
            let done = loader.put_in_alone(self.database, self.context, &copy.rows);
            if done.map_err(|(number, error)| at_line(error, before + number as u64 + 1))? {
                copy.clear();
                return Ok(());
            }
        }
        self.put_in_kept(copy)
    }

    /// Puts what was kept into the transaction, which is begun for it.
    fn put_in_kept(&mut self, copy: &mut CopyIn) -> Result<(), Error> {
        if copy.is_own && !self.context.is_in_txn() {
            self.begin(Modes::default())?;
        }
        if let Some(loader) = &mut copy.loader {
            let before = copy.count - copy.rows.len() as u64;
            let done = loader.put_in(self.database, self.context, &copy.rows);
            done.map_err(|(number, error)| at_line(error, before + number as u64 + 1))?;
        }
        copy.clear();
        Ok(())
    }

    /// Takes the rows that are whole. `is_last`: nothing follows.
    fn take_rows(&mut self, copy: &mut CopyIn, bytes: &[u8], is_last: bool) -> Result<(), Error> {
        let mut kept = std::mem::take(&mut copy.partial);
        let input = match kept.is_empty() {
            true => bytes,
            false => {
                kept.extend_from_slice(bytes);
                &kept[..]
            }
        };
        let mut at = 0;
        let (mut began, mut number) = (fiber::now_ns(), 0u32);
        while !copy.is_over {
            let found = match copy.copy.format {
                CopyFormat::Text if copy.loader.is_some() && (copy.is_begun || !copy.copy.has_header) => {
                    match take_line(copy, &input[at..], is_last)? {
                        None => break,
                        Some(length) => {
                            at += length;
                            None
                        }
                    }
                }
                CopyFormat::Text => Some(text_row(&copy.copy, &input[at..], is_last)?),
                CopyFormat::Csv => Some(csv_row(&copy.copy, &copy.forced, &input[at..], is_last)?),
                CopyFormat::Binary => Some(binary_row(copy, &input[at..])?),
            };
            if let Some(found) = found {
                let Some((row, length)) = found else { break };
                at += length;
                self.take_row(copy, row)?;
            }
            number += 1;
            if number % 16 == 0 && fiber::now_ns().saturating_sub(began) > SLICE_NS {
                self.database.suspend(self.context);
                if fiber::yield_now() == Wake::Cancelled {
                    return Err(Error::new(Condition::Cancelled, "canceling statement due to user request"));
                }
                self.database.resume(self.context)?;
                began = fiber::now_ns();
            }
        }
        self.count_kept(copy)?;
        if copy.is_over {
            return Ok(());
        }
        let rest = &input[at..];
        if rest.len() > LINE_MAX {
            return Err(Error::new(Condition::LimitExceeded, format!("a row of COPY has more than {LINE_MAX} bytes")));
        }
        if is_last && !rest.is_empty() {
            return Err(bad("unexpected end of the data"));
        }
        copy.partial = match kept.is_empty() {
            true => rest.to_vec(),
            false => {
                kept.drain(..at);
                kept
            }
        };
        Ok(())
    }

    /// Counts the rows that are kept, and puts them in where there are too many.
    fn count_kept(&mut self, copy: &mut CopyIn) -> Result<(), Error> {
        if copy.loader.is_none() {
            return Ok(());
        }
        let (bytes, total) = (copy.rows.bytes(), copy.shared.kept_bytes.get());
        copy.shared.kept_bytes.set(total + bytes - copy.kept_bytes);
        copy.kept_bytes = bytes;
        let is_in_txn = self.context.is_in_txn();
        if is_in_txn && bytes >= TOGETHER_BYTES || !is_in_txn && copy.shared.kept_bytes.get() > KEPT_BYTES_MAX {
            return self.put_in_kept(copy);
        }
        Ok(())
    }

    fn take_row(&mut self, copy: &mut CopyIn, row: Row) -> Result<(), Error> {
        let line = copy.count + 1;
        match row {
            Row::End => copy.is_over = true,
            Row::Head => copy.is_begun = true,
            Row::Texts(_) if copy.copy.has_header && !copy.is_begun => copy.is_begun = true,
            Row::Texts(texts) => match &copy.loader {
                Some(loader) => {
                    check_count(copy.types.len(), texts.len()).map_err(|error| at_line(error, line))?;
                    let fields: Vec<Option<&str>> = texts.iter().map(Option::as_deref).collect();
                    loader.add(&mut copy.rows, &fields).map_err(|error| at_line(error, line))?;
                    copy.count += 1;
                }
                None => {
                    let values = values_of(copy, texts).map_err(|error| at_line(error, line))?;
                    self.put_in(copy, &values).map_err(|error| at_line(error, line))?;
                }
            },
            Row::Values(values) => match &copy.loader {
                Some(loader) => {
                    loader.add_values(&mut copy.rows, &values).map_err(|error| at_line(error, line))?;
                    copy.count += 1;
                }
                None => self.put_in(copy, &values)?,
            },
        }
        Ok(())
    }

    fn put_in(&mut self, copy: &mut CopyIn, values: &[Value]) -> Result<(), Error> {
        // Whoever changes the schema meanwhile does not end it.
        copy.insert = self.sql.renewed(self.database, self.context, &copy.insert)?;
        self.sql.load(self.database, self.context, &copy.insert, values)?;
        copy.count += 1;
        Ok(())
    }

    /// COPY TO: rows as messages.
    fn copy_out(&mut self, copy: &Copy, source: &Rc<Prepared>, types: &[Type], forced: &Forced) -> Result<(), Error> {
        if copy.format == CopyFormat::Binary {
            put(&mut self.out, b'd', |out| out.extend_from_slice(BINARY_HEAD));
        } else if copy.has_header {
            let names: Vec<Value> = source.columns().iter().map(|column| Value::text(column.name.as_str())).collect();
            let texts = vec![Type::TEXT; names.len()];
            put(&mut self.out, b'd', |out| put_line(out, copy, &names, &texts, None, &Forced::default()));
        }
        let (sql, database, context) = (Rc::clone(&self.sql), self.database, self.context);
        let (connection, out) = (self.connection, &mut self.out);
        let mut count = 0u64;
        let zone = self.state.session.borrow().zone();
        sql.run(database, context, source, &[], &mut |row| {
            count += 1;
            let mut done = Ok(());
            put(out, b'd', |out| match copy.format {
                CopyFormat::Binary => {
                    put_u16(out, row.len());
                    for (value, ty) in row.iter().zip(types) {
                        if let Err(error) = put_value(out, value, *ty, true, None) {
                            done = Err(error);
                            return;
                        }
                    }
                }
                _ => put_line(out, copy, row, types, zone.as_ref(), forced),
            });
            done?;
            if out.len() >= CHUNK_BYTES {
                hand_on(connection, context, out)?;
            }
            Ok(())
        })?;
        if copy.format == CopyFormat::Binary {
            put(&mut self.out, b'd', |out| out.extend_from_slice(&(-1i16).to_be_bytes()));
        }
        put(&mut self.out, b'c', |_| {});
        self.state.is_used.set(true);
        put_complete(&mut self.out, &format!("COPY {count}"));
        Ok(())
    }
}

/// What stands in the data.
enum Row {
    /// Columns as text; none is null.
    Texts(Vec<Option<String>>),
    /// Columns as values.
    Values(Vec<Value>),
    /// The head of a file.
    Head,
    /// No rows follow.
    End,
}

type Found = Result<Option<(Row, usize)>, Error>;

fn at_line(error: Error, line: u64) -> Error {
    error.detail(format!("At row {line} of COPY."))
}

fn check_count(wanted: usize, count: usize) -> Result<(), Error> {
    match count.cmp(&wanted) {
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(bad("extra data after last expected column")),
        Ordering::Less => Err(bad(format!("missing data for column {}", count + 1))),
    }
}

/// Takes a line of the text form straight into the rows. Returns the bytes that it takes; none if its end has not come.
fn take_line(copy: &mut CopyIn, input: &[u8], is_last: bool) -> Result<Option<usize>, Error> {
    let Some(loader) = &copy.loader else { return Ok(None) };
    let (line, length) = match input.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&input[..end], end + 1),
        None if is_last && !input.is_empty() => (input, input.len()),
        None => return Ok(None),
    };
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line == b"\\." {
        copy.is_over = true;
        return Ok(Some(length));
    }
    let number = copy.count + 1;
    let done = (|| {
        let line = utf8(line)?;
        let has_escapes = line.as_bytes().contains(&b'\\');
        let columns = copy.types.len();
        // What was escaped has to be kept while the row is made.
        let mut fields: SmallVec<[Option<Cow<'_, str>>; USUAL_COLUMNS]> = SmallVec::new();
        let mut start = 0;
        loop {
            let rest = &line.as_bytes()[start..];
            let mut end = 0;
            while end < rest.len() && rest[end] != copy.copy.delimiter {
                end += if rest[end] == b'\\' { 2 } else { 1 };
            }
            let end = start + end.min(rest.len());
            let raw = &line.as_bytes()[start..end];
            fields.push(match () {
                () if raw == copy.copy.null.as_bytes() => None,
                () if has_escapes && raw.contains(&b'\\') => Some(Cow::Owned(unescaped(raw)?)),
                // A delimiter is one byte of ASCII: what is between two is UTF-8, as the line is.
                () => Some(Cow::Borrowed(line.get(start..end).ok_or_else(|| bad("a delimiter within a character"))?)),
            });
            if end >= line.len() {
                break;
            }
            if fields.len() > columns {
                break;
            }
            start = end + 1;
        }
        check_count(columns, fields.len())?;
        let fields: SmallVec<[Option<&str>; USUAL_COLUMNS]> = fields.iter().map(Option::as_deref).collect();
        loader.add(&mut copy.rows, &fields)
    })();
    done.map_err(|error| at_line(error, number))?;
    copy.count += 1;
    Ok(Some(length))
}

fn values_of(copy: &CopyIn, texts: Vec<Option<String>>) -> Result<Vec<Value>, Error> {
    check_count(copy.types.len(), texts.len())?;
    let values = texts.into_iter().zip(&copy.types).map(|(text, ty)| match text {
        None => Ok(Value::Null),
        // Too long a text is refused by its column, not cut.
        Some(text) if ty.base == Base::Text => Ok(Value::text(text)),
        Some(text) => read_value(text.as_bytes(), 0, *ty, false),
    });
    values.collect()
}

/// A line of the text form.
fn text_row(copy: &Copy, input: &[u8], is_last: bool) -> Found {
    let (line, length) = match input.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&input[..end], end + 1),
        None if is_last && !input.is_empty() => (input, input.len()),
        None => return Ok(None),
    };
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line == b"\\." {
        return Ok(Some((Row::End, length)));
    }
    let mut columns = Vec::new();
    let mut start = 0;
    loop {
        let mut end = start;
        while end < line.len() && line[end] != copy.delimiter {
            end += if line[end] == b'\\' { 2 } else { 1 };
        }
        let end = end.min(line.len());
        let raw = &line[start..end];
        columns.push(match raw == copy.null.as_bytes() {
            true => None,
            false => Some(unescaped(raw)?),
        });
        if end >= line.len() {
            break;
        }
        start = end + 1;
    }
    Ok(Some((Row::Texts(columns), length)))
}

fn unescaped(raw: &[u8]) -> Result<String, Error> {
    if !raw.contains(&b'\\') {
        return Ok(utf8(raw)?.to_string());
    }
    let mut out = Vec::with_capacity(raw.len());
    let mut at = 0;
    while at < raw.len() {
        if raw[at] != b'\\' {
            out.push(raw[at]);
            at += 1;
            continue;
        }
        let Some(next) = raw.get(at + 1) else { return Err(bad("a line ends with a backslash")) };
        at += 2;
        out.push(match next {
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 11,
            b'x' => {
                let digits = raw[at..].iter().take(2).take_while(|byte| byte.is_ascii_hexdigit()).count();
                let value = u8::from_str_radix(utf8(&raw[at..at + digits])?, 16).unwrap_or(b'x');
                at += digits;
                value
            }
            b'0'..=b'7' => {
                let digits = 1 + raw[at..].iter().take(2).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
                let octal = utf8(&raw[at - 1..at - 1 + digits])?;
                at += digits - 1;
                (u16::from_str_radix(octal, 8).unwrap_or(0) & 0xff) as u8
            }
            other => *other,
        });
    }
    Ok(utf8(&out)?.to_string())
}

/// A row of CSV, whose columns may have ends of lines within quotes.
fn csv_row(copy: &Copy, forced: &Forced, input: &[u8], is_last: bool) -> Found {
    let (quote, escape) = copy.quote;
    let mut columns = Vec::new();
    let (mut column, mut is_quoted, mut within) = (Vec::new(), false, false);
    let mut at = 0;
    let end = loop {
        let Some(&byte) = input.get(at) else {
            match (is_last && !input.is_empty(), within) {
                (true, false) => break at,
                (true, true) => return Err(bad("unterminated CSV quoted field")),
                (false, _) => return Ok(None),
            }
        };
        at += 1;
        if within {
            match byte {
                byte if byte == escape && input.get(at).is_some_and(|next| *next == quote || *next == escape) => {
                    column.push(input[at]);
                    at += 1;
                }
                // What follows tells whether it is the end.
                byte if byte == escape && escape == quote && at == input.len() && !is_last => return Ok(None),
                byte if byte == quote => within = false,
                byte => column.push(byte),
            }
            continue;
        }
        match byte {
            byte if byte == quote => (within, is_quoted) = (true, true),
            byte if byte == copy.delimiter => {
                let (text, was_quoted) = (std::mem::take(&mut column), std::mem::take(&mut is_quoted));
                columns.push(csv_column(copy, forced, columns.len(), text, was_quoted)?);
            }
            b'\n' => break at - 1,
            byte => column.push(byte),
        }
    };
    if !is_quoted && column.last() == Some(&b'\r') {
        column.pop();
    }
    if input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]) == b"\\." {
        return Ok(Some((Row::End, at)));
    }
    columns.push(csv_column(copy, forced, columns.len(), column, is_quoted)?);
    Ok(Some((Row::Texts(columns), at)))
}

fn csv_column(
    copy: &Copy,
    forced: &Forced,
    number: usize,
    column: Vec<u8>,
    is_quoted: bool,
) -> Result<Option<String>, Error> {
    let is_marked = |marks: &[bool]| marks.get(number).copied().unwrap_or(false);
    let may_be_null = if is_quoted { is_marked(&forced.null_in_quotes) } else { !is_marked(&forced.never_null) };
    if may_be_null && column == copy.null.as_bytes() {
        return Ok(None);
    }
    Ok(Some(utf8(&column)?.to_string()))
}

/// A row of the binary form.
fn binary_row(copy: &CopyIn, input: &[u8]) -> Found {
    if !copy.is_begun {
        let Some(head) = input.get(..BINARY_HEAD.len()) else { return Ok(None) };
        if head[..11] != BINARY_HEAD[..11] {
            return Err(bad("COPY file signature not recognized"));
        }
        let more = u32::from_be_bytes([head[15], head[16], head[17], head[18]]) as usize;
        let length = BINARY_HEAD.len().saturating_add(more);
        return Ok((input.len() >= length).then_some((Row::Head, length)));
    }
    let mut reader = Reader(input);
    let Ok(count) = reader.u16() else { return Ok(None) };
    if count == u16::MAX {
        return Ok(Some((Row::End, 2)));
    }
    if usize::from(count) != copy.types.len() {
        return Err(bad(format!("row field count is {count}, expected {}", copy.types.len())));
    }
    let mut values = Vec::with_capacity(copy.types.len());
    for ty in &copy.types {
        let Ok(length) = reader.u32() else { return Ok(None) };
        if (length as i32) < 0 {
            values.push(Value::Null);
            continue;
        }
        if length as usize > LINE_MAX {
            return Err(bad("invalid field size"));
        }
        let Ok(bytes) = reader.bytes(length as usize) else { return Ok(None) };
        values.push(read_value(bytes, oid_of(*ty), *ty, true)?);
    }
    Ok(Some((Row::Values(values), input.len() - reader.0.len())))
}

/// A row as a line of text or CSV.
fn put_line(out: &mut Vec<u8>, copy: &Copy, row: &[Value], types: &[Type], zone: Option<&Zone>, forced: &Forced) {
    let (quote, escape) = copy.quote;
    let mut text = Vec::new();
    for (number, (value, ty)) in row.iter().zip(types).enumerate() {
        if number > 0 {
            out.push(copy.delimiter);
        }
        if value.is_null() {
            out.extend_from_slice(copy.null.as_bytes());
            continue;
        }
        text.clear();
        put_plain(&mut text, value, *ty, zone);
        match copy.format {
            CopyFormat::Csv => {
                let needs_quotes = forced.quoted.get(number).copied().unwrap_or(false)
                    || text == copy.null.as_bytes()
                    || text == b"\\."
                    || text.iter().any(|byte| [copy.delimiter, quote, b'\n', b'\r'].contains(byte));
                if !needs_quotes {
                    out.extend_from_slice(&text);
                    continue;
                }
                out.push(quote);
                for byte in &text {
                    if *byte == quote || *byte == escape {
                        out.push(escape);
                    }
                    out.push(*byte);
                }
                out.push(quote);
            }
            _ => {
                for byte in &text {
                    let letter = match byte {
                        8 => b'b',
                        12 => b'f',
                        b'\n' => b'n',
                        b'\r' => b'r',
                        b'\t' => b't',
                        11 => b'v',
                        b'\\' => b'\\',
                        byte if *byte == copy.delimiter => *byte,
                        byte => {
                            out.push(*byte);
                            continue;
                        }
                    };
                    out.extend_from_slice(&[b'\\', letter]);
                }
            }
        }
    }
    out.push(b'\n');
}
