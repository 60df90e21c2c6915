//! The C functions under the module `msgpack`.

use crate::convert::{self, Rules, push_next};
use crate::registry::database;
use crate::state::{Function, Raise, State};
use std::ffi::c_int;
use tuple::msgpack::{Kind, Reader};

type Outcome = Result<c_int, Raise>;

/// msgpack_encode(value, options or nil) -> text
fn msgpack_encode(state: State) -> Outcome {
    let mut out = Vec::new();
    convert::encode_by(state, 1, &mut out, &Rules::at(state, 2))?;
    state.push_bytes(&out);
    Ok(1)
}

/// msgpack_decode(text, from 1) -> value, position behind it
fn msgpack_decode(state: State) -> Outcome {
    let bytes = state.bytes(1).ok_or("msgpack.decode: a Lua string or 'char *' expected")?;
    let from = state.number(2).unwrap_or(1.0);
    if !state.is_nil(2) && !(1.0..=bytes.len() as f64).contains(&from) {
        return Err("msgpack.decode: offset is out of bounds".into());
    }
    let from = from as usize - 1;
    let rest = &bytes[from..];
    let length = tuple::msgpack::check(rest).map_err(|_| "msgpack.decode: invalid MsgPack")?;
    push_next(state, &mut Reader::new(rest))?;
    state.push_number((from + length + 1) as f64);
    Ok(2)
}

/// msgpack_decode_pointer(char *, bytes) -> value, pointer behind it
fn msgpack_decode_pointer(state: State) -> Outcome {
    let size = state.number(2).unwrap_or(0.0).max(0.0) as usize;
    let bytes = convert::pointed_bytes(state, 1, size).ok_or("msgpack.decode: invalid MsgPack")?;
    let length = tuple::msgpack::check(bytes).map_err(|_| "msgpack.decode: invalid MsgPack")?;
    push_next(state, &mut Reader::new(&bytes[..length]))?;
    convert::push_pointer_behind(state, 1, length);
    Ok(2)
}

/// msgpack_header(char *, bytes, is_map) -> number of elements, pointer behind the header; or nil and what is wrong
fn msgpack_header(state: State) -> Outcome {
    let size = state.number(2).unwrap_or(0.0).max(0.0) as usize;
    let bytes = convert::pointed_bytes(state, 1, size).ok_or("unexpected end of buffer")?;
    let mut reader = Reader::new(bytes);
    let (wanted, is_map) = if state.boolean(3) { (Kind::Map, true) } else { (Kind::Array, false) };
    if reader.kind().map_err(|_| "unexpected end of buffer")? != wanted {
        return Err("unexpected msgpack type".into());
    }
    let count = if is_map { reader.read_map() } else { reader.read_array() };
    state.push_number(f64::from(count.map_err(|_| "unexpected end of buffer")?));
    convert::push_pointer_behind(state, 1, reader.position());
    Ok(2)
}

/// msgpack_tuple(char *, bytes) -> tuple, pointer behind it
fn msgpack_tuple(state: State) -> Outcome {
    let size = state.number(2).unwrap_or(0.0).max(0.0) as usize;
    let bytes = convert::pointed_bytes(state, 1, size).ok_or("unexpected end of buffer")?;
    let length = tuple::msgpack::check(bytes).map_err(|_| "invalid MsgPack")?;
    if Reader::new(bytes).kind() != Ok(Kind::Array) {
        return Err(database::Error::new(database::ErrorCode::TupleNotArray, &[]).into());
    }
    let row = tuple::Tuple::new(database().loose_rows(), tuple::FORMAT_ID_MAX, &bytes[..length])
        .map_err(|error| Raise::Message(error.to_string()))?;
    convert::push_tuple(state, &row);
    convert::push_pointer_behind(state, 1, length);
    Ok(2)
}

/// Functions of `box.internal` for MessagePack.
pub(crate) const FUNCTIONS: &[(&str, Function)] = &[
    ("msgpack_encode", msgpack_encode),
    ("msgpack_decode", msgpack_decode),
    ("msgpack_decode_pointer", msgpack_decode_pointer),
    ("msgpack_header", msgpack_header),
    ("msgpack_tuple", msgpack_tuple),
];
