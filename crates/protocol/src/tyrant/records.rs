//! Records of a database of Tokyo Tyrant as rows of a space, and what its commands do to them.

use super::request::Put;
use database::{Context, Database, Error, ErrorCode, Key, Operation, Result, ScanRequest, Space};
use std::rc::Rc;
use storage::IteratorKind;
use tuple::msgpack::{self, Kind as Value, Reader};
use tuple::{IndexId, Tuple};
use wal::Position;

/// Attempts of a transaction that others get in the way of.
const TRANSACTIONS_MAX: u32 = 1000;
/// Bytes of a value of a database of fixed length.
const FIXED_BYTES_MAX: usize = 255;
/// Rows that are looked at in a scan before others have their turn.
pub(super) const ROWS_AT_ONCE: usize = 256;

/// What kind of database a space stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Hash,
    Tree,
    Fixed,
    Table,
}

impl Kind {
    /// The kind that a name stands for: `*`, `+`, or a file with its ending and options.
    pub(super) fn of(name: &str) -> Option<Self> {
        let name = name.split('#').next().unwrap_or(name);
        Some(match name {
            "*" => Kind::Hash,
            "+" => Kind::Tree,
            name if name.ends_with(".tch") => Kind::Hash,
            name if name.ends_with(".tcb") => Kind::Tree,
            name if name.ends_with(".tcf") => Kind::Fixed,
            name if name.ends_with(".tct") => Kind::Table,
            _ => return None,
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Hash => "hash",
            Kind::Tree => "tree",
            Kind::Fixed => "fixed",
            Kind::Table => "table",
        }
    }
}

/// A space, and what it stands for.
pub(super) struct Bound {
    pub(super) schema_version: u64,
    pub(super) space: Rc<Space>,
}

/// One request at work.
pub(super) struct Work<'a> {
    pub(super) database: &'a Rc<Database>,
    pub(super) context: &'a Context,
    pub(super) bound: &'a Bound,
    pub(super) kind: Kind,
    /// It may wait, and others come between.
    pub(super) is_in_fiber: bool,
}

/// Names and values of a table's record, in their order.
pub(super) type Columns = Vec<(Vec<u8>, Vec<u8>)>;

/// Columns as they are sent: names and values by turns, with zero bytes between.
pub(super) fn join_columns(columns: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut joined = Vec::new();
    for (at, (name, value)) in columns.iter().enumerate() {
        if at > 0 {
            joined.push(0);
        }
        joined.extend_from_slice(name);
        joined.push(0);
        joined.extend_from_slice(value);
    }
    joined
}

/// The same back. A name without a value is passed over; of two values of one name the later one counts.
pub(super) fn split_columns(joined: &[u8]) -> Columns {
    let parts: Vec<&[u8]> = joined.split(|byte| *byte == 0).collect();
    columns_of(&parts)
}

pub(super) fn columns_of(parts: &[&[u8]]) -> Columns {
    let mut columns = Columns::new();
    for pair in parts.chunks_exact(2) {
        set_column(&mut columns, pair[0], pair[1]);
    }
    columns
}

pub(super) fn set_column(columns: &mut Columns, name: &[u8], value: &[u8]) {
    match columns.iter_mut().find(|(known, _)| known == name) {
        Some((_, old)) => *old = value.to_vec(),
        None => columns.push((name.to_vec(), value.to_vec())),
    }
}

fn text_of(value: &[u8]) -> Option<Vec<u8>> {
    let mut reader = Reader::new(value);
    Some(match reader.kind().ok()? {
        Value::Uint => reader.read_uint().ok()?.to_string().into_bytes(),
        Value::Int => reader.read_int().ok()?.to_string().into_bytes(),
        Value::Float | Value::Double => reader.read_double().ok()?.to_string().into_bytes(),
        _ => reader.read_str_or_bin().ok()?.to_vec(),
    })
}

fn no_record() -> Error {
    Error::illegal("the row under this key is no record of its kind of database")
}

impl Work<'_> {
    /// A key as a row begins with it. None: no record can have it.
    fn encode_key(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut encoded = vec![0x91];
        if self.kind != Kind::Fixed {
            msgpack::encode_str(&mut encoded, key);
            return Ok(Some(encoded));
        }
        let number = match key {
            b"min" => self.end_number(IteratorKind::Ge)?,
            b"max" => self.end_number(IteratorKind::Le)?,
            b"prev" => self.end_number(IteratorKind::Ge)?.and_then(|number| number.checked_sub(1)),
            b"next" => Some(self.end_number(IteratorKind::Le)?.map_or(1, |number| number.saturating_add(1))),
            digits => std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()),
        };
        Ok(number.filter(|number| *number > 0).map(|number: u64| {
            msgpack::encode_uint(&mut encoded, number);
            encoded
        }))
    }

    /// The first or the last number of a database of fixed length.
    fn end_number(&self, kind: IteratorKind) -> Result<Option<u64>> {
        let request = ScanRequest { limit: 1, ..ScanRequest::new(IndexId::PRIMARY, kind, Key::EMPTY) };
        let mut found = None;
        self.database.select(self.context, &self.bound.space, &request, |row| {
            let mut reader = Reader::new(row);
            found = reader.read_array().and_then(|_| reader.read_uint()).ok();
            false
        })?;
        Ok(found)
    }

    /// The position that an answer depends on which tells of a key.
    pub(super) fn written(&self, key: &[u8]) -> Result<Position> {
        let written = self.database.written(&self.bound.space);
        if written <= self.database.durable() {
            return Ok(written);
        }
        let Some(key) = self.encode_key(key)? else { return Ok(written) };
        let request = ScanRequest::new(IndexId::PRIMARY, IteratorKind::Eq, Key { parts: &key[1..], part_count: 1 });
        Ok(self.database.written_of(&self.bound.space, &request))
    }

    pub(super) fn row(&self, key: &[u8]) -> Result<Option<Tuple>> {
        let Some(key) = self.encode_key(key)? else { return Ok(None) };
        let key = Key { parts: &key[1..], part_count: 1 };
        self.database.get(self.context, &self.bound.space, IndexId::PRIMARY, key)
    }

    /// Key and value of a row, as they are sent.
    pub(super) fn read(&self, row: &[u8]) -> Result<(Vec<u8>, Vec<u8>)> {
        let (key, value) = self.split_row(row).ok_or_else(no_record)?;
        let key = text_of(key).ok_or_else(no_record)?;
        match self.kind {
            Kind::Table => Ok((key, join_columns(&self.read_columns(value).ok_or_else(no_record)?))),
            _ => Ok((key, text_of(value).ok_or_else(no_record)?)),
        }
    }

    fn split_row<'a>(&self, row: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let mut reader = Reader::new(row);
        let count = reader.read_array().ok()?;
        if count < 2 {
            return None;
        }
        Some((reader.read_value().ok()?, reader.read_value().ok()?))
    }

    fn read_columns(&self, value: &[u8]) -> Option<Columns> {
        let mut reader = Reader::new(value);
        let mut columns = Columns::new();
        for _ in 0..reader.read_map().ok()? {
            let name = text_of(reader.read_value().ok()?)?;
            // What is no text or number in a map of somebody else's is not shown.
            if let Some(value) = text_of(reader.read_value().ok()?) {
                columns.push((name, value));
            }
        }
        Some(columns)
    }

    /// Key and columns of a row of a table.
    pub(super) fn read_record(&self, row: &[u8]) -> Result<(Vec<u8>, Columns)> {
        let (key, value) = self.split_row(row).ok_or_else(no_record)?;
        let columns = self.read_columns(value).ok_or_else(no_record)?;
        Ok((text_of(key).ok_or_else(no_record)?, columns))
    }

    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.row(key)? {
            Some(row) => self.read(row.data()).map(|(_, value)| Some(value)),
            None => Ok(None),
        }
    }

    fn encode(&self, key: &[u8], value: &[u8]) -> Vec<u8> {
        let mut row = Vec::with_capacity(key.len() + value.len() + 16);
        row.push(0x92);
        row.extend_from_slice(&key[1..]);
        match self.kind {
            Kind::Table => {
                let columns = split_columns(value);
                msgpack::encode_map(&mut row, columns.len() as u32);
                for (name, value) in &columns {
                    msgpack::encode_str(&mut row, name);
                    msgpack::encode_str(&mut row, value);
                }
            }
            Kind::Fixed => msgpack::encode_str(&mut row, &value[..value.len().min(FIXED_BYTES_MAX)]),
            _ => msgpack::encode_str(&mut row, value),
        }
        row
    }

    /// Puts a value as it is. False: no record can have this key.
    pub(super) fn set(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        let Some(key) = self.encode_key(key)? else { return Ok(false) };
        let row = self.encode(&key, value);
        self.database.execute(self.context, &self.bound.space, Operation::Replace { tuple: &row })?;
        Ok(true)
    }

    /// Puts a value. False: it was not put.
    pub(super) fn put(&self, how: Put, key: &[u8], value: &[u8]) -> Result<bool> {
        if how == Put::Set && self.kind != Kind::Fixed {
            return self.set(key, value);
        }
        self.atomically(|| {
            let old = if how == Put::Set { None } else { self.get(key)? };
            match (how, old) {
                (Put::Set, _) | (_, None) => self.set(key, value),
                (Put::Keep, Some(_)) => Ok(false),
                (_, Some(old)) if self.kind == Kind::Table => {
                    let mut columns = split_columns(&old);
                    for (name, value) in split_columns(value) {
                        if !columns.iter().any(|(known, _)| *known == name) {
                            columns.push((name, value));
                        }
                    }
                    self.set(key, &join_columns(&columns))
                }
                (Put::Append, Some(old)) => self.set(key, &[&old[..], value].concat()),
                (Put::Shift(width), Some(old)) => {
                    let joined = [&old[..], value].concat();
                    self.set(key, &joined[joined.len().saturating_sub(width as usize)..])
                }
            }
        })
    }

    /// Removes a record. False: there is none.
    pub(super) fn out(&self, key: &[u8]) -> Result<bool> {
        let Some(encoded) = self.encode_key(key)? else { return Ok(false) };
        self.atomically(|| {
            if self.row(key)?.is_none() {
                return Ok(false);
            }
            let operation = Operation::Delete { index_id: IndexId::PRIMARY, key: &encoded };
            self.database.execute(self.context, &self.bound.space, operation).map(|_| true)
        })
    }

    /// Adds to a number that is kept as the machine keeps it. None: what is there is none.
    pub(super) fn add_int(&self, key: &[u8], number: i32) -> Result<Option<i32>> {
        self.atomically(|| {
            let old = match self.get(key)? {
                None => 0,
                Some(bytes) => match <[u8; 4]>::try_from(&bytes[..]) {
                    Ok(bytes) => i32::from_le_bytes(bytes),
                    Err(_) => return Ok(None),
                },
            };
            let sum = old.wrapping_add(number);
            Ok(self.set(key, &sum.to_le_bytes())?.then_some(sum))
        })
    }

    /// The same with a fractional one.
    pub(super) fn add_double(&self, key: &[u8], number: f64) -> Result<Option<f64>> {
        self.atomically(|| {
            let old = match self.get(key)? {
                None => 0.0,
                Some(bytes) => match <[u8; 8]>::try_from(&bytes[..]) {
                    Ok(bytes) => f64::from_le_bytes(bytes),
                    Err(_) => return Ok(None),
                },
            };
            let sum = old + number;
            Ok(self.set(key, &sum.to_le_bytes())?.then_some(sum))
        })
    }

    /// Does what looks at rows and writes them as one. `work` may run several times.
    pub(super) fn atomically<T>(&self, work: impl Fn() -> Result<T>) -> Result<T> {
        if !self.is_in_fiber || self.context.is_in_txn() {
            return work();
        }
        let mut attempts = 0;
        loop {
            self.database.begin(self.context)?;
            let done = work().and_then(|value| self.database.commit(self.context).map(|()| value));
            let Err(error) = done else { return done };
            self.database.abandon(self.context);
            attempts += 1;
            if !error.is(ErrorCode::TransactionConflict) || attempts == TRANSACTIONS_MAX {
                return Err(error);
            }
        }
    }

    /// The first rows behind a place, which is the key of a row or, in a hash, a number; and the place behind them. None: there are no more.
    pub(super) fn rows_behind(&self, place: &Place, count: usize) -> Result<(Vec<Tuple>, Option<Place>)> {
        let (database, space) = (self.database, &self.bound.space);
        let mut rows = Vec::new();
        if let Place::Start | Place::Number(_) = place {
            let from = if let Place::Number(from) = place { *from } else { 0 };
            let found = database.select_some(self.context, space, (from, count), |row| rows.push(row))?;
            match found {
                Some(0) => return Ok((rows, None)),
                Some(next) => return Ok((rows, Some(Place::Number(next)))),
                None => rows.clear(),
            }
        }
        let (kind, key) = match place {
            Place::Behind(key) => (IteratorKind::Gt, &key[..]),
            Place::From(key) => (IteratorKind::Ge, &key[..]),
            _ => (IteratorKind::Ge, &[][..]),
        };
        let key = Key { parts: key, part_count: u32::from(!key.is_empty()) };
        let request = ScanRequest { limit: count as u64, ..ScanRequest::new(IndexId::PRIMARY, kind, key) };
        let mut copies = Vec::new();
        database.select(self.context, space, &request, |row| {
            copies.push(row.to_vec());
            true
        })?;
        let next = match copies.last() {
            Some(row) if copies.len() == count => self.split_row(row).map(|(key, _)| Place::Behind(key.to_vec())),
            _ => None,
        };
        for row in copies {
            rows.push(
                Tuple::new(database.loose_rows(), 0, &row)
                    .map_err(|_| Error::new(ErrorCode::MemoryIssue, &[&row.len(), &"rows", &"a scan"]))?,
            );
        }
        Ok((rows, next))
    }

    /// The place of the first key that begins with a prefix, or behind it.
    pub(super) fn place_of(&self, key: &[u8]) -> Result<Place> {
        Ok(match self.encode_key(key)? {
            Some(key) if self.is_ordered() => Place::From(key[1..].to_vec()),
            _ => Place::Start,
        })
    }

    /// True if rows come in the order of their keys.
    pub(super) fn is_ordered(&self) -> bool {
        let defs = self.bound.space.index_defs();
        defs.first().is_some_and(|def| def.kind == storage::IndexKind::Tree)
    }
}

/// How far an iteration has come.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Place {
    #[default]
    Start,
    /// In a hash.
    Number(u64),
    /// Behind a row with this encoded key.
    Behind(Vec<u8>),
    /// At this encoded key, or what follows it.
    From(Vec<u8>),
}
