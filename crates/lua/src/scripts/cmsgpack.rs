//! `cmsgpack` as Redis' scripts have it.
//!
//! Source: the documentation of lua-cmsgpack 0.4, and answers of Redis 7.0.

use crate::state::{Raise, State, check_stopping, is_stack_low};
use mlua_sys as ffi;
use std::ffi::c_int;
use tuple::msgpack::{self, Kind, Reader};

type Outcome = Result<c_int, Raise>;

/// Tables that nest deeper are packed as nil.
const DEPTH_MAX: usize = 16;
/// Depth of what is unpacked.
const UNPACKED_DEPTH_MAX: usize = 1000;

/// cmsgpack.pack(values...) -> text
pub(super) fn pack(state: State) -> Outcome {
    let count = state.top();
    if count == 0 {
        return Err("bad argument #0 to 'pack' (MessagePack pack needs input.)".into());
    }
    let mut out = Vec::new();
    for index in 1..=count {
        write(state, index, &mut out, 0)?;
    }
    state.check_room(out.len())?;
    state.push_bytes(&out);
    Ok(1)
}

fn write(state: State, index: c_int, out: &mut Vec<u8>, depth: usize) -> Result<(), Raise> {
    match state.kind(index) {
        ffi::LUA_TSTRING => msgpack::encode_str(out, state.bytes(index).unwrap_or_default()),
        ffi::LUA_TBOOLEAN => msgpack::encode_bool(out, state.boolean(index)),
        ffi::LUA_TNUMBER => {
            let value = state.number(index).unwrap_or(0.0);
            if value == value.trunc() && value.abs() < 9e18 {
                crate::convert::encode_signed(out, value as i64);
            } else if f64::from(value as f32) == value {
                msgpack::encode_f32(out, value as f32);
            } else {
                msgpack::encode_f64(out, value);
            }
        }
        ffi::LUA_TTABLE if depth < DEPTH_MAX && state.reserve(10) => write_table(state, index, out, depth)?,
        _ => msgpack::encode_nil(out),
    }
    Ok(())
}

/// The length of a table whose keys are 1..n.
fn list_length(state: State, index: c_int) -> Option<u32> {
    let top = state.top();
    let (mut largest, mut count) = (0.0, 0);
    state.push_nil();
    while state.next(index) {
        let key = if state.kind(top + 1) == ffi::LUA_TNUMBER { state.number(top + 1) } else { None };
        match key {
            Some(key) if key >= 1.0 && key == key.trunc() => largest = f64::max(largest, key),
            _ => {
                state.set_top(top);
                return None;
            }
        }
        count += 1;
        state.pop(1);
    }
    (largest == f64::from(count)).then_some(count)
}

fn write_table(state: State, index: c_int, out: &mut Vec<u8>, depth: usize) -> Result<(), Raise> {
    let top = state.top();
    check_stopping()?;
    if let Some(length) = list_length(state, index) {
        msgpack::encode_array(out, length);
        for at in 1..=length {
            state.element(index, at as c_int);
            write(state, top + 1, out, depth + 1)?;
            state.set_top(top);
        }
        return Ok(());
    }
    let mut count = 0;
    state.push_nil();
    while state.next(index) {
        count += 1;
        state.pop(1);
    }
    msgpack::encode_map(out, count);
    state.push_nil();
    while state.next(index) {
        write(state, top + 1, out, depth + 1)?;
        write(state, top + 2, out, depth + 1)?;
        state.set_top(top + 1);
    }
    Ok(())
}

/// cmsgpack.unpack(text) -> values...
pub(super) fn unpack(state: State) -> Outcome {
    unpack_some(state, None, 0)
}

/// cmsgpack.unpack_one(text, offset) -> next offset, value
pub(super) fn unpack_one(state: State) -> Outcome {
    let offset = state.number(2).unwrap_or(0.0);
    unpack_some(state, Some(1.0), offset as i64)
}

/// cmsgpack.unpack_limit(text, limit, offset) -> next offset, values...
pub(super) fn unpack_limit(state: State) -> Outcome {
    let limit = state.check_number(2, "limit")?;
    let offset = state.number(3).unwrap_or(0.0);
    unpack_some(state, Some(limit), offset as i64)
}

/// Without a limit everything is unpacked, and no offset is returned; 0 means no limit, too.
fn unpack_some(state: State, limit: Option<f64>, offset: i64) -> Outcome {
    let text = state.check_string_bytes(1)?;
    let is_limited = limit.is_some();
    let limit = limit.unwrap_or(0.0) as i64;
    if offset < 0 || limit < 0 {
        return Err(format!("Invalid request to unpack with offset of {offset} and limit of {}.", text.len()).into());
    }
    let offset = offset as usize;
    if offset > text.len() {
        return Err(format!("Start offset {offset} greater than input length {}.", text.len()).into());
    }
    let begin = state.top() + 1;
    // The place of the next offset.
    if is_limited {
        state.push_nil();
    }
    let mut at = offset;
    let mut count = 0;
    while at < text.len() && (limit == 0 || count < limit) {
        if !state.reserve(20) || state.top() > 8000 {
            return Err("too many results to unpack".into());
        }
        let length = msgpack::check(&text[at..]).map_err(|error| match error.what {
            "truncated value" | "length is beyond the data" => "Missing bytes in input.",
            _ => "Bad data format in input.",
        })?;
        push(state, &mut Reader::new(&text[at..at + length]), 0)?;
        at += length;
        count += 1;
    }
    if is_limited {
        state.push_number(if at < text.len() { at as f64 } else { -1.0 });
        state.put(begin);
    }
    Ok(state.top() - begin + 1)
}

fn push(state: State, reader: &mut Reader<'_>, depth: usize) -> Result<(), Raise> {
    let bad = |_| Raise::from("Bad data format in input.");
    if depth > UNPACKED_DEPTH_MAX || is_stack_low() || !state.reserve(10) {
        return Err("the data nest too deep".into());
    }
    match reader.kind().map_err(bad)? {
        Kind::Nil => {
            reader.read_nil().map_err(bad)?;
            state.push_nil();
        }
        Kind::Bool => state.push_bool(reader.read_bool().map_err(bad)?),
        Kind::Uint | Kind::Int => state.push_number(reader.read_i128().map_err(bad)? as f64),
        Kind::Float | Kind::Double => state.push_number(reader.read_double().map_err(bad)?),
        Kind::Str | Kind::Bin => state.push_bytes(reader.read_str_or_bin().map_err(bad)?),
        Kind::Array => {
            let count = reader.read_array().map_err(bad)?;
            state.new_table(count.min(1 << 16) as usize, 0);
            let table = state.top();
            for at in 1..=count {
                push(state, reader, depth + 1)?;
                state.raw_set_index(table, at as c_int);
            }
            check_stopping()?;
            state.check_memory()?;
        }
        Kind::Map => {
            let count = reader.read_map().map_err(bad)?;
            state.new_table(0, count.min(1 << 16) as usize);
            let table = state.top();
            for _ in 0..count {
                push(state, reader, depth + 1)?;
                push(state, reader, depth + 1)?;
                state.raw_set(table);
            }
            check_stopping()?;
            state.check_memory()?;
        }
        Kind::Ext => return Err("Bad data format in input.".into()),
    }
    Ok(())
}
