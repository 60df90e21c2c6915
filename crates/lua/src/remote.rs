//! The C functions under the module `net.box`: packets of requests from Lua values, and Lua values from answers.

use crate::convert::{self, encode, encode_array, encode_key};
use crate::registry::database;
use crate::state::{Function, Raise, State};
use mlua_sys as ffi;
use std::ffi::c_int;
use tuple::{FORMAT_ID_MAX, Tuple};

use tuple::msgpack::{self, Kind, Reader};
use wire::{SALT_BYTES, announced_bytes, key};

type Outcome = Result<c_int, Raise>;

/// Bytes of a salt that proofs of passwords use.
const PROOF_SALT_BYTES: usize = 20;
const _: () = assert!(PROOF_SALT_BYTES <= SALT_BYTES);

/// remote_packet(type, sync, stream or nil, key, value, ...) -> packet. Keys and rows may be single values or tuples.
fn remote_packet(state: State) -> Outcome {
    let number = |index, what: &str| state.check_number(index, what).map(|number| number as u64);
    let (request_type, sync) = (number(1, "request type")?, number(2, "sync")?);
    let mut out = Vec::with_capacity(128);
    out.extend_from_slice(&[0xce, 0, 0, 0, 0]);
    let start = out.len();
    let stream = state.number(3).map(|number| number as u64);
    msgpack::encode_map(&mut out, 2 + u32::from(stream.is_some()));
    msgpack::encode_uint(&mut out, key::REQUEST_TYPE);
    msgpack::encode_uint(&mut out, request_type);
    msgpack::encode_uint(&mut out, key::SYNC);
    msgpack::encode_uint(&mut out, sync);
    if let Some(stream) = stream {
        msgpack::encode_uint(&mut out, key::STREAM_ID);
        msgpack::encode_uint(&mut out, stream);
    }
    let pairs = (state.top() - 3).max(0) / 2;
    msgpack::encode_map(&mut out, pairs as u32);
    for at in 0..pairs {
        let (name, index) = (number(4 + at * 2, "key")?, 5 + at * 2);
        msgpack::encode_uint(&mut out, name);
        match name {
            key::KEY => encode_key(state, index, &mut out)?,
            // Of updates the operations, of calls the arguments, else a row.
            key::TUPLE | key::OPS => encode_array(state, index, &mut out)?,
            _ => encode(state, index, &mut out)?,
        }
    }
    let length = out.len() - start;
    if length as u64 > wire::PACKET_BYTES_MAX {
        return Err("a request is longer than the protocol allows".into());
    }
    out[1..start].copy_from_slice(&(length as u32).to_be_bytes());
    state.push_bytes(&out);
    Ok(1)
}

/// remote_announced(char *, bytes) -> bytes of the first packet with its length; nil if too few have come. Raises if that is no packet.
fn remote_announced(state: State) -> Outcome {
    let size = state.number(2).unwrap_or(0.0).max(0.0) as usize;
    let bytes = convert::pointed_bytes(state, 1, size).unwrap_or_default();
    if bytes.is_empty() {
        return Ok(0);
    }
    let is_length = matches!(bytes[0], 0..=0x7f | 0xcc..=0xcf);
    match announced_bytes(bytes) {
        _ if !is_length => Err("Invalid MsgPack - packet length".into()),
        None => Ok(0),
        Some(total) if total > wire::PACKET_BYTES_MAX => Err("Invalid MsgPack - packet length".into()),
        Some(total) => {
            state.push_number(total as f64);
            Ok(1)
        }
    }
}

/// The value of a key of a body; nothing if it is not there.
fn part_of<'a>(body: &'a [u8], wanted: u64) -> Result<Option<&'a [u8]>, Raise> {
    let bad = |_| Raise::from("Invalid MsgPack - packet body");
    let mut reader = Reader::new(body);
    for _ in 0..reader.read_map().map_err(bad)? {
        let name = reader.read_uint().map_err(bad)?;
        let value = reader.read_value().map_err(bad)?;
        if name == wanted {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

/// remote_data(char *, bytes, form) -> what a body has under DATA: `rows` as tuples, `values` as they are, `raw` as text; nil if nothing is there.
fn remote_data(state: State) -> Outcome {
    let size = state.number(2).unwrap_or(0.0).max(0.0) as usize;
    let bytes = convert::pointed_bytes(state, 1, size).ok_or("Invalid MsgPack - packet body")?;
    let length = msgpack::check(bytes).map_err(|_| "Invalid MsgPack - packet body")?;
    let Some(data) = part_of(&bytes[..length], key::DATA)? else { return Ok(0) };
    let form = state.string(3).unwrap_or_default();
    if form == "raw" {
        state.push_bytes(data);
        return Ok(1);
    }
    let mut reader = Reader::new(data);
    if form != "rows" || reader.kind().map_err(|_| "Invalid MsgPack - packet body")? != Kind::Array {
        convert::push_next(state, &mut reader)?;
        return Ok(1);
    }
    let bad = |_| Raise::from("Invalid MsgPack - packet body");
    let count = reader.read_array().map_err(bad)?;
    // Each row has a byte at least.
    state.new_table((count as usize).min(data.len()), 0);
    let table = state.top();
    for at in 1..=count {
        let is_row = reader.kind().map_err(bad)? == Kind::Array;
        if is_row {
            let row = reader.read_value().map_err(bad)?;
            let row = Tuple::new(database().loose_rows(), FORMAT_ID_MAX, row)
                .map_err(|error| Raise::Message(error.to_string()))?;
            convert::push_tuple(state, &row);
        } else {
            convert::push_next(state, &mut reader)?;
        }
        state.raw_set_index(table, at as c_int);
    }
    Ok(1)
}

/// remote_proof(password, salt) -> what proves that the password is known
fn remote_proof(state: State) -> Outcome {
    let (password, salt) = (state.bytes(1).unwrap_or_default(), state.bytes(2).unwrap_or_default());
    let salt = salt.first_chunk::<PROOF_SALT_BYTES>().ok_or("Invalid greeting")?;
    if state.kind(1) == ffi::LUA_TNIL {
        return Err("a password is expected".into());
    }
    state.push_bytes(&wire::scramble(password, salt));
    Ok(1)
}

/// Functions of `box.internal` for `net.box`.
pub(crate) const FUNCTIONS: &[(&str, Function)] = &[
    ("remote_packet", remote_packet),
    ("remote_announced", remote_announced),
    ("remote_data", remote_data),
    ("remote_proof", remote_proof),
];
