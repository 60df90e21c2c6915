//! Msgpack to Lua: integers beyond 10^14 become cdata, nil inside anything becomes `box.NULL`, arrays and maps get metatables that remember what
//! they were.

use super::cdata::{DatetimePayload, IntervalPayload, push_decimal, push_i64, uuid_bytes};
use super::{DEPTH_HARD_MAX, PLAIN_MAX, is_too_deep};
use crate::registry::{Registry, registry};
use crate::state::{Raise, State};
use std::ffi::c_int;
use tuple::datetime::{Datetime, Interval};
use tuple::decimal::Decimal;
use tuple::msgpack::{self, Kind, Reader};

pub(crate) fn push_null(state: State) {
    state.push_ref(registry().null.get());
}

/// Pushes the metatable of decoded arrays.
pub(crate) fn push_array_metatable(state: State) {
    state.push_ref(registry().array_metatable.get());
}

/// Pushes the metatable of decoded maps.
pub(crate) fn push_map_metatable(state: State) {
    state.push_ref(registry().map_metatable.get());
}

/// Pushes the next value of a reader over checked bytes.
pub(crate) fn push_next(state: State, reader: &mut Reader<'_>) -> Result<(), Raise> {
    push_value(state, reader, 0)
}

/// Pushes one checked value.
pub(crate) fn push_bytes_value(state: State, bytes: &[u8]) -> Result<(), Raise> {
    push_value(state, &mut Reader::new(bytes), 0)
}

fn malformed(error: msgpack::MsgpackError) -> Raise {
    Raise::Message(format!("invalid MsgPack: {error}"))
}

#[expect(unsafe_code, reason = "payloads of cdata")]
fn push_value(state: State, reader: &mut Reader<'_>, depth: usize) -> Result<(), Raise> {
    if depth > DEPTH_HARD_MAX || is_too_deep(depth) || !state.reserve(8) {
        return Err("stack overflow".into());
    }
    let registry: &Registry = registry();
    match reader.kind().map_err(malformed)? {
        Kind::Nil => {
            reader.read_nil().map_err(malformed)?;
            state.push_ref(registry.null.get());
        }
        Kind::Bool => state.push_bool(reader.read_bool().map_err(malformed)?),
        Kind::Uint => {
            let bytes = reader.rest();
            let value = reader.read_uint().map_err(malformed)?;
            if value <= PLAIN_MAX {
                state.push_number(value as f64);
            } else if bytes.first() == Some(&0xd3) {
                push_i64(state, value as i64);
            } else {
                let payload = state.push_cdata(registry.ids.get().uint64);
                // SAFETY: eight bytes.
                unsafe { payload.cast::<u64>().write_unaligned(value) };
            }
        }
        Kind::Int => {
            let value = reader.read_int().map_err(malformed)?;
            if value.unsigned_abs() <= PLAIN_MAX {
                state.push_number(value as f64);
            } else {
                let payload = state.push_cdata(registry.ids.get().int64);
                // SAFETY: eight bytes.
                unsafe { payload.cast::<i64>().write_unaligned(value) };
            }
        }
        Kind::Float | Kind::Double => state.push_number(reader.read_double().map_err(malformed)?),
        Kind::Str => state.push_bytes(reader.read_str().map_err(malformed)?),
        Kind::Bin => {
            let bytes = reader.read_bin().map_err(malformed)?;
            if registry.decodes_varbinary.get() {
                state.push_ref(registry.make_varbinary.get());
                state.push_bytes(bytes);
                return state.pcall(1, 1);
            }
            state.push_bytes(bytes);
        }
        Kind::Array => {
            let count = reader.read_array().map_err(malformed)?;
            state.new_table(count as usize, 0);
            let table = state.top();
            for i in 1..=count {
                if i % 4096 == 0 {
                    state.check_memory()?;
                }
                push_value(state, reader, depth + 1)?;
                state.raw_set_index(table, i as c_int);
            }
            state.push_ref(registry.array_metatable.get());
            state.set_metatable(table);
        }
        Kind::Map => {
            let count = reader.read_map().map_err(malformed)?;
            state.new_table(0, count as usize);
            let table = state.top();
            for _ in 0..count {
                push_value(state, reader, depth + 1)?;
                push_value(state, reader, depth + 1)?;
                state.raw_set(table);
            }
            state.push_ref(registry.map_metatable.get());
            state.set_metatable(table);
        }
        Kind::Ext => match reader.read_ext().map_err(malformed)? {
            (msgpack::EXT_UUID, body) if body.len() == 16 => {
                let payload = state.push_cdata(registry.ids.get().uuid);
                let mut bytes = [0; 16];
                bytes.copy_from_slice(body);
                // SAFETY: sixteen bytes.
                unsafe { payload.cast::<[u8; 16]>().write_unaligned(uuid_bytes(bytes)) };
            }
            (msgpack::EXT_DECIMAL, body) => match Decimal::decode(body) {
                Some(decimal) => push_decimal(state, &decimal),
                None => return Err("malformed decimal".into()),
            },
            (msgpack::EXT_DATETIME, body) => {
                let value = Datetime::decode(body).ok_or("malformed datetime")?;
                let Datetime { seconds, nanoseconds, offset, zone } = value;
                let payload = state.push_cdata(registry.ids.get().datetime);
                let value = DatetimePayload { epoch: seconds as f64, nanoseconds, offset, zone };
                // SAFETY: the payload is of that type.
                unsafe { payload.cast::<DatetimePayload>().write_unaligned(value) };
            }
            (msgpack::EXT_INTERVAL, body) => {
                let value =
                    Interval::decode(body).as_ref().and_then(IntervalPayload::of).ok_or("malformed interval")?;
                let payload = state.push_cdata(registry.ids.get().interval);
                // SAFETY: the payload is of that type.
                unsafe { payload.cast::<IntervalPayload>().write_unaligned(value) };
            }
            (msgpack::EXT_ERROR, body) => push_error_object(state, body, depth)?,
            (kind, _) => return Err(format!("Unsuported MsgPack extension type: {}", i32::from(kind) as u32).into()),
        },
    }
    Ok(())
}

/// Pushes the error object that the body of an extension stands for.
fn push_error_object(state: State, body: &[u8], depth: usize) -> Result<(), Raise> {
    let malformed = || Raise::from("malformed error object");
    if msgpack::check(body).map_err(|_| malformed())? != body.len() {
        return Err(malformed());
    }
    state.push_ref(registry().error_of_stack.get());
    push_value(state, &mut Reader::new(body), depth + 1)?;
    state.pcall(1, 1)?;
    if state.is_nil(-1) {
        return Err(malformed());
    }
    Ok(())
}
