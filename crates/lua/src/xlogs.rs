//! The C functions under the module `xlog`: the rows of logs and snapshots, block by block.
//!
//! Reading blocks the transaction thread, as in Tarantool: the module is for looking into files, not for serving from them.

use crate::convert::{push_bytes_value, push_tuple};
use crate::registry::{database, registry};
use crate::state::{Function, Raise, State};
use runtime::SystemFiles;
use std::cell::RefCell;
use std::ffi::c_int;
use std::path::Path;
use std::rc::Rc;
use tuple::msgpack::{Kind, Reader};
use tuple::{FORMAT_ID_MAX, Tuple};
use wal::{Row, WalError, XlogReader};
use wire::key;

type Outcome = Result<c_int, Raise>;

/// Files that Lua reads at once.
const XLOGS_MAX: usize = 256;

fn type_name(kind: u16) -> Option<&'static str> {
    Some(match kind {
        2 => "INSERT",
        3 => "REPLACE",
        4 => "UPDATE",
        5 => "DELETE",
        9 => "UPSERT",
        12 => "NOP",
        30 => "RAFT",
        31 => "PROMOTE",
        32 => "DEMOTE",
        40 => "CONFIRM",
        41 => "ROLLBACK",
        _ => return None,
    })
}

fn key_name(code: u64) -> Option<&'static str> {
    Some(match code {
        key::SPACE_ID => "space_id",
        key::INDEX_ID => "index_id",
        key::INDEX_BASE => "index_base",
        key::KEY => "key",
        key::TUPLE => "tuple",
        key::OPS => "operations",
        0x02 => "replica_id",
        0x03 => "lsn",
        0x2a => "tuple_meta",
        0x2c => "new_tuple",
        0x2d => "old_tuple",
        0x53 => "term",
        _ => return None,
    })
}

/// xlog_open(path) -> number; or nil and what is wrong
fn xlog_open(state: State) -> Outcome {
    let path = state.check_string(1, "path")?;
    if registry().xlogs.borrow().len() >= XLOGS_MAX {
        state.collect_garbage();
    }
    if registry().xlogs.borrow().len() >= XLOGS_MAX {
        return Err("too many logs are being read".into());
    }
    let reader = match XlogReader::open(&SystemFiles, Path::new(&path)) {
        Ok(reader) => reader,
        Err(error) => {
            state.push_nil();
            state.push_str(&match error {
                WalError::Io { .. } => format!("failed to open '{path}' file"),
                other => other.to_string(),
            });
            return Ok(2);
        }
    };
    let number = registry().xlogs_opened.get() + 1;
    registry().xlogs_opened.set(number);
    state.push_number(number as f64);
    state.push_str(&reader.meta.kind);
    registry().xlogs.borrow_mut().insert(number, Rc::new(RefCell::new(reader)));
    Ok(2)
}

/// xlog_close(number)
fn xlog_close(state: State) -> Outcome {
    let number = state.check_number(1, "log")? as u64;
    registry().xlogs.borrow_mut().remove(&number);
    Ok(0)
}

/// xlog_next(number, whether rows become tuples) -> list of the rows of the next block that can be read; nil at the end
fn xlog_next(state: State) -> Outcome {
    let number = state.check_number(1, "log")? as u64;
    let as_tuples = state.boolean(2);
    let found = registry().xlogs.borrow().get(&number).cloned();
    let Some(reader) = found else { return Ok(0) };
    let mut reader = reader.borrow_mut();
    state.new_table(0, 0);
    let list = state.top();
    let (mut count, mut pushed) = (0, Ok(()));
    let outcome = reader.next_rows(|row| {
        if pushed.is_ok() {
            pushed = push_row(state, row, as_tuples);
            if pushed.is_ok() {
                count += 1;
                state.raw_set_index(list, count);
            }
        }
    });
    pushed?;
    match outcome {
        Ok(true) => Ok(1),
        Ok(false) => Ok(0),
        Err(error) => Err(error.to_string().into()),
    }
}

fn push_row(state: State, row: &Row<'_>, as_tuples: bool) -> Result<(), Raise> {
    state.check_memory()?;
    if !state.reserve(16) {
        return Err("stack overflow".into());
    }
    let header = &row.header;
    state.new_table(0, 2);
    let table = state.top();
    state.new_table(0, 6);
    let head = state.top();
    match type_name(header.kind) {
        Some(name) => state.push_str(name),
        None => state.push_number(f64::from(header.kind)),
    }
    state.set_field(head, "type");
    let number = |name: &str, value: f64| {
        state.push_number(value);
        state.set_field(head, name);
    };
    number("timestamp", header.timestamp);
    for (name, value) in [("replica_id", header.replica_id), ("group_id", header.group_id)] {
        if value != 0 {
            number(name, f64::from(value));
        }
    }
    if header.lsn.0 != 0 {
        number("lsn", header.lsn.0 as f64);
    }
    // Of a transaction of one row nothing is said.
    if !header.is_commit || header.tsn != header.lsn {
        number("tsn", header.tsn.0 as f64);
        if header.is_commit {
            state.push_bool(true);
            state.set_field(head, "commit");
        }
    }
    state.set_field(table, "HEADER");
    state.new_table(0, 4);
    let body = state.top();
    let bad = |_| Raise::from("a row's body is no map");
    let mut reader = Reader::new(row.body);
    let count = if row.body.is_empty() { 0 } else { reader.read_map().map_err(bad)? };
    for _ in 0..count {
        let code = reader.read_value().map_err(bad)?;
        let value = reader.read_value().map_err(bad)?;
        let code = Reader::new(code).read_uint().unwrap_or(u64::MAX);
        match key_name(code) {
            Some(name) => state.push_str(name),
            None => state.push_number(code as f64),
        }
        let is_row = matches!(code, key::KEY | key::TUPLE) && Reader::new(value).kind() == Ok(Kind::Array);
        if is_row && as_tuples {
            let row = Tuple::new(database().loose_rows(), FORMAT_ID_MAX, value)
                .map_err(|error| Raise::Message(error.to_string()))?;
            push_tuple(state, &row);
        } else {
            push_bytes_value(state, value)?;
        }
        state.raw_set(body);
    }
    state.set_field(table, "BODY");
    Ok(())
}

/// Functions of `box.internal` for logs and snapshots.
pub(crate) const FUNCTIONS: &[(&str, Function)] =
    &[("xlog_open", xlog_open), ("xlog_close", xlog_close), ("xlog_next", xlog_next)];
