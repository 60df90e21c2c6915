//! Lua to msgpack: numbers without a fraction become integers; a table is an array if its keys are 1..n (or nearly), or as its metatable's
//! `__serialize` says ('ordered' is our own word: a map in a fixed order); cdata are 64-bit integers, NULL, tuples, uuids, decimals.

use super::cdata::{
    DatetimePayload, DecimalPayload, IntervalPayload, is_null, read_u64, tuple_at, tuple_from_address, uuid_bytes,
};
use super::{DEPTH_HARD_MAX, PLAIN_MAX, is_too_deep};
use crate::registry::{CtypeIds, registry};
use crate::state::{Raise, State, TYPE_CDATA, check_stopping, is_stack_low};
use mlua_sys as ffi;
use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::c_int;
use tuple::msgpack::{self, Kind, Reader};

/// How deep values may nest.
const DEPTH_MAX: usize = 128;
/// A result below this fits whatever Lua may have.
const ROOM_UNCHECKED: usize = 64 << 10;
/// Elements of one list.
const LIST_MAX: usize = 1 << 27;

/// Largest ratio of an array's places to its values ...
const SPARSE_RATIO: c_int = 2;
/// ... if it has more places than this; otherwise it is a map.
const SPARSE_SAFE: c_int = 10;

/// How Lua values become msgpack: the options of a notation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<'a> {
    /// How deep tables may nest, the outermost one counted.
    pub(crate) depth_max: usize,
    /// Deeper tables become nil instead of an error.
    pub(crate) is_deep_nil: bool,
    /// The error about too many levels says how many.
    pub(crate) names_depth: bool,
    /// NaN and infinities are taken.
    pub(crate) takes_invalid_numbers: bool,
    /// What cannot be encoded becomes nil.
    pub(crate) is_invalid_nil: bool,
    /// What cannot be encoded becomes its text.
    pub(crate) is_invalid_text: bool,
    /// `__serialize` is obeyed.
    pub(crate) obeys_metatables: bool,
    /// Lists with too many holes become maps instead of an error.
    pub(crate) is_sparse_map: bool,
    pub(crate) sparse_ratio: c_int,
    pub(crate) sparse_safe: c_int,
    /// Error objects become their text, not msgpack's extension for them.
    pub(crate) errors_as_text: bool,
    /// For YAML: the tables met so far, by address, with a number for each. Tables and tuples are marked with [`EXT_NODE`] then.
    pub(crate) tables: Option<&'a RefCell<HashMap<usize, u32>>>,
}

impl<'a> Rules<'a> {
    pub(crate) const DEFAULT: Rules<'static> = Rules {
        depth_max: DEPTH_MAX,
        is_deep_nil: false,
        names_depth: true,
        takes_invalid_numbers: true,
        is_invalid_nil: false,
        is_invalid_text: false,
        obeys_metatables: true,
        is_sparse_map: true,
        sparse_ratio: SPARSE_RATIO,
        sparse_safe: SPARSE_SAFE,
        errors_as_text: false,
        tables: None,
    };

    /// The options in the table at an index; the defaults if there is none.
    pub(crate) fn at(state: State, index: c_int) -> Rules<'a> {
        let mut rules: Rules<'a> = Rules::DEFAULT;
        if state.kind(index) != ffi::LUA_TTABLE {
            return rules;
        }
        let flag = |name: &str| {
            state.get_field(index, name);
            let value = state.boolean(-1);
            state.pop(1);
            value
        };
        let number = |name: &str| {
            state.get_field(index, name);
            let value = state.number(-1).unwrap_or(0.0);
            state.pop(1);
            value as c_int
        };
        rules.depth_max = usize::try_from(number("encode_max_depth")).unwrap_or(0).min(DEPTH_HARD_MAX);
        rules.is_deep_nil = flag("encode_deep_as_nil");
        rules.takes_invalid_numbers = flag("encode_invalid_numbers");
        rules.is_invalid_nil = flag("encode_invalid_as_nil");
        rules.is_invalid_text = flag("encode_use_tostring");
        rules.obeys_metatables = flag("encode_load_metatables");
        rules.is_sparse_map = flag("encode_sparse_convert");
        rules.sparse_ratio = number("encode_sparse_ratio");
        rules.sparse_safe = number("encode_sparse_safe");
        state.get_field(index, "encode_error_as_ext");
        rules.errors_as_text = state.kind(-1) == ffi::LUA_TBOOLEAN && !state.boolean(-1);
        state.pop(1);
        rules
    }
}

fn absolute(state: State, index: c_int) -> c_int {
    if index < 0 && index > ffi::LUA_REGISTRYINDEX { state.top() + index + 1 } else { index }
}

/// Appends the value at `index`.
pub(crate) fn encode(state: State, index: c_int, out: &mut Vec<u8>) -> Result<(), Raise> {
    encode_value::<true>(state, absolute(state, index), out, 0, &Rules::DEFAULT)
}

/// Appends the value at `index` by the rules of a notation.
pub(crate) fn encode_by(state: State, index: c_int, out: &mut Vec<u8>, rules: &Rules<'_>) -> Result<(), Raise> {
    encode_value::<false>(state, absolute(state, index), out, 0, rules)
}

/// Appends the value at `index`, which must be a table or tuple, as an array.
pub(crate) fn encode_array(state: State, index: c_int, out: &mut Vec<u8>) -> Result<(), Raise> {
    let start = out.len();
    encode(state, index, out)?;
    match Reader::new(&out[start..]).kind() {
        Ok(Kind::Array) => Ok(()),
        _ => Err(database::Error::new(database::ErrorCode::TupleNotArray, &[]).into()),
    }
}

/// Appends the key at `index`: a scalar stands for an array of one, nil for an empty one.
pub(crate) fn encode_key(state: State, index: c_int, out: &mut Vec<u8>) -> Result<(), Raise> {
    match state.kind(index) {
        ffi::LUA_TNIL | ffi::LUA_TNONE => out.push(0x90),
        TYPE_CDATA if is_null(state, index) => out.push(0x90),
        ffi::LUA_TTABLE => return encode_array(state, index, out),
        TYPE_CDATA if tuple_at(state, index).is_some() => return encode(state, index, out),
        _ => {
            out.push(0x91);
            encode(state, index, out)?;
        }
    }
    Ok(())
}

/// Appends the key of a read as Tarantool reads it where it needs no C function: of a table it is the elements `1..=#key`,
/// whatever else is in there.
pub(crate) fn encode_listed_key(state: State, index: c_int, out: &mut Vec<u8>) -> Result<(), Raise> {
    if state.kind(index) != ffi::LUA_TTABLE {
        return encode_key(state, index, out);
    }
    let count = state.raw_length(index);
    let count = u32::try_from(count).map_err(|_| "too many key parts")?;
    msgpack::encode_array(out, count);
    for at in 1..=count {
        state.raw_get_index(index, at as c_int);
        let encoded = encode(state, state.top(), out);
        state.pop(1);
        encoded?;
    }
    Ok(())
}

fn encode_number(value: f64, out: &mut Vec<u8>) {
    if value.fract() == 0.0 && value.is_finite() {
        if (0.0..18_446_744_073_709_551_616.0).contains(&value) {
            return msgpack::encode_uint(out, value as u64);
        }
        if (-9_223_372_036_854_775_808.0..0.0).contains(&value) {
            return msgpack::encode_int(out, value as i64);
        }
    }
    msgpack::encode_f64(out, value);
}

/// `PLAIN`: the rules are the default ones, whatever `rules` holds, and cost nothing then.
fn encode_value<const PLAIN: bool>(
    state: State,
    index: c_int,
    out: &mut Vec<u8>,
    depth: usize,
    rules: &Rules<'_>,
) -> Result<(), Raise> {
    let rules = if PLAIN { &Rules::DEFAULT } else { rules };
    match state.kind(index) {
        ffi::LUA_TNIL | ffi::LUA_TNONE => msgpack::encode_nil(out),
        ffi::LUA_TBOOLEAN => msgpack::encode_bool(out, state.boolean(index)),
        ffi::LUA_TNUMBER => {
            let value = state.number(index).unwrap_or(0.0);
            if value.is_finite() || rules.takes_invalid_numbers {
                encode_number(value, out);
            } else if rules.is_invalid_nil {
                msgpack::encode_nil(out);
            } else {
                let text = "number must not be NaN or Inf";
                return Err(
                    database::Error::raw(database::ErrorCode::ProcLua as u32, database::ErrorKind::Lua, text).into()
                );
            }
        }
        ffi::LUA_TSTRING => msgpack::encode_str(out, state.bytes(index).unwrap_or(b"")),
        ffi::LUA_TTABLE => {
            if depth >= rules.depth_max || is_too_deep(depth) {
                if rules.is_deep_nil {
                    msgpack::encode_nil(out);
                    return Ok(());
                }
                return Err(match rules.names_depth {
                    true => format!("Too high nest level - {}", depth + 1).into(),
                    false => "Too high nest level".into(),
                });
            }
            return encode_table::<PLAIN>(state, index, out, depth, rules);
        }
        ffi::LUA_TLIGHTUSERDATA if state.pointer(index).is_null() => msgpack::encode_nil(out),
        TYPE_CDATA => return encode_cdata::<PLAIN>(state, index, out, rules),
        _ => return encode_unsupported(state, index, out, rules),
    }
    Ok(())
}

/// A value of a kind that msgpack does not know.
fn encode_unsupported(state: State, index: c_int, out: &mut Vec<u8>, rules: &Rules<'_>) -> Result<(), Raise> {
    if rules.is_invalid_text {
        state.push_ref(registry().to_text.get());
        state.push_value(index);
        state.pcall(1, 1)?;
        msgpack::encode_str(out, state.bytes(-1).unwrap_or(b""));
        state.pop(1);
        return Ok(());
    }
    if rules.is_invalid_nil {
        msgpack::encode_nil(out);
        return Ok(());
    }
    let what = state.kind_name(index);
    Err(format!("unsupported Lua type '{what}'").into())
}

#[expect(unsafe_code, reason = "payloads of cdata")]
fn encode_cdata<const PLAIN: bool>(
    state: State,
    index: c_int,
    out: &mut Vec<u8>,
    rules: &Rules<'_>,
) -> Result<(), Raise> {
    let rules = if PLAIN { &Rules::DEFAULT } else { rules };
    let ids: CtypeIds = registry().ids.get();
    let Some((payload, id)) = state.cdata(index) else {
        return Err("unsupported Lua type 'cdata'".into());
    };
    // SAFETY: the type ids tell how many bytes the payloads have.
    unsafe {
        match id {
            id if id == ids.int64 => msgpack::encode_int(out, payload.cast::<i64>().read_unaligned()),
            id if id == ids.uint64 => msgpack::encode_uint(out, payload.cast::<u64>().read_unaligned()),
            id if id == ids.null && read_u64(payload) == 0 => msgpack::encode_nil(out),
            id if id == ids.float => {
                out.push(0xca);
                out.extend_from_slice(&payload.cast::<f32>().read_unaligned().to_be_bytes());
            }
            id if id == ids.double => msgpack::encode_f64(out, payload.cast::<f64>().read_unaligned()),
            id if id == ids.tuple => {
                let start = out.len();
                out.extend_from_slice(tuple_from_address(read_u64(payload)).data());
                mark_node(out, start, u32::MAX, true, rules);
            }
            id if id == ids.uuid => {
                let bytes = uuid_bytes(payload.cast::<[u8; 16]>().read_unaligned());
                msgpack::encode_ext(out, msgpack::EXT_UUID, &bytes);
            }
            id if id == ids.varbinary => msgpack::encode_bin(out, state.cdata_bytes(index).unwrap_or_default()),
            id if id == ids.decimal => {
                let mut body = Vec::new();
                if let Some(decimal) = payload.cast::<DecimalPayload>().read_unaligned().decimal() {
                    decimal.encode(&mut body);
                }
                msgpack::encode_ext(out, msgpack::EXT_DECIMAL, &body);
            }
            id if id == ids.datetime => {
                let payload = payload.cast::<DatetimePayload>().read_unaligned();
                payload.datetime().ok_or("the datetime is out of its range")?.encode(out);
            }
            id if id == ids.interval => payload.cast::<IntervalPayload>().read_unaligned().interval().encode(out),
            id if id == ids.error && !rules.errors_as_text && !(PLAIN && registry().errors_as_text.get()) => {
                return encode_error_object(state, index, out);
            }
            _ => {
                // Other integer types and error objects: what Lua makes of them.
                state.push_ref(registry().to_plain.get());
                state.push_value(index);
                state.pcall(1, 1)?;
                if state.kind(-1) == TYPE_CDATA && state.cdata(state.top()).is_none_or(|(_, other)| other == id) {
                    state.pop(1);
                    return encode_unsupported(state, index, out, rules);
                }
                if is_stack_low() {
                    return Err("stack overflow".into());
                }
                let result = encode_value::<PLAIN>(state, state.top(), out, 0, rules);
                state.pop(1);
                return result;
            }
        }
    }
    Ok(())
}

/// An error object and its causes, as msgpack's extension for errors.
fn encode_error_object(state: State, index: c_int, out: &mut Vec<u8>) -> Result<(), Raise> {
    if !state.reserve(4) || is_stack_low() {
        return Err("stack overflow".into());
    }
    state.push_ref(registry().error_stack.get());
    state.push_value(index);
    state.pcall(1, 1)?;
    let mut body = Vec::new();
    let encoded = encode_value::<true>(state, state.top(), &mut body, 0, &Rules::DEFAULT);
    state.pop(1);
    encoded?;
    let errors = &registry().errors_encoded;
    errors.set(errors.get().wrapping_add(1));
    msgpack::encode_ext(out, msgpack::EXT_ERROR, &body);
    Ok(())
}

/// A private extension type for a table on the way to YAML. It never leaves this crate.
///
/// Its body: the number of the table in four bytes (`u32::MAX` for what is no table), 1 if it is to stand in one line, then the table as
/// msgpack; nothing more if it is one that was met before.
pub(crate) const EXT_NODE: i8 = 0x7e;

/// The number, whether it stands in one line, and the msgpack of a marked table.
pub(crate) fn node_parts(marked: &[u8]) -> Option<(u32, bool, &[u8])> {
    let (number, rest) = marked.split_first_chunk::<4>()?;
    let (is_in_line, body) = rest.split_first()?;
    Some((u32::from_be_bytes(*number), *is_in_line != 0, body))
}

/// Marks what was appended since `start`, if marks are wanted.
#[inline]
fn mark_node(out: &mut Vec<u8>, start: usize, number: u32, is_in_line: bool, rules: &Rules<'_>) {
    if rules.tables.is_some() {
        wrap_node(out, start, number, is_in_line);
    }
}

fn wrap_node(out: &mut Vec<u8>, start: usize, number: u32, is_in_line: bool) {
    let mut marked = Vec::with_capacity(out.len() - start + 5);
    marked.extend_from_slice(&number.to_be_bytes());
    marked.push(u8::from(is_in_line));
    marked.extend_from_slice(&out[start..]);
    out.truncate(start);
    msgpack::encode_ext(out, EXT_NODE, &marked);
}

/// What a table is to become.
enum Shape {
    Array(usize),
    Map,
}

fn encode_table<const PLAIN: bool>(
    state: State,
    index: c_int,
    out: &mut Vec<u8>,
    depth: usize,
    rules: &Rules<'_>,
) -> Result<(), Raise> {
    let rules = if PLAIN { &Rules::DEFAULT } else { rules };
    if !state.reserve(8) {
        return Err("stack overflow".into());
    }
    // Tables that hold one another many times can make more than any memory has.
    if out.len() > ROOM_UNCHECKED {
        state.check_room(out.len())?;
    }
    check_stopping()?;
    let begin = out.len();
    let mut number = u32::MAX;
    if let Some(tables) = rules.tables {
        let mut tables = tables.borrow_mut();
        let next = tables.len() as u32;
        match tables.entry(state.address(index)) {
            Entry::Occupied(known) => {
                mark_node(out, begin, *known.get(), false, rules);
                return Ok(());
            }
            Entry::Vacant(place) => number = *place.insert(next),
        }
    }
    let mut hint = None;
    let mut is_in_line = false;
    let mut is_ordered = false;
    if rules.obeys_metatables && state.get_metatable(index) {
        let metatable = state.top();
        state.get_field(metatable, "__serialize");
        match state.kind(-1) {
            ffi::LUA_TSTRING => {
                let name = state.bytes(-1).unwrap_or(b"");
                is_in_line = matches!(name, b"seq" | b"map");
                hint = match name {
                    b"seq" | b"sequence" | b"array" => Some(true),
                    b"map" | b"mapping" => Some(false),
                    b"ordered" => {
                        is_ordered = true;
                        Some(false)
                    }
                    _ => return Err("invalid __serialize value".into()),
                };
            }
            ffi::LUA_TFUNCTION => {
                state.push_value(index);
                state.pcall(1, 1)?;
                let is_same = state.kind(-1) == ffi::LUA_TTABLE && state.get_metatable(state.top()) && {
                    state.pop(1);
                    true
                };
                let result = if is_same && depth > 16 {
                    Err("__serialize returns tables that serialize themselves without end".into())
                } else {
                    encode_value::<PLAIN>(state, state.top(), out, depth + 1, rules)
                };
                if number != u32::MAX && out.get(begin).is_some() && is_collection(&out[begin..]) {
                    mark_node(out, begin, number, false, rules);
                }
                state.pop(2);
                return result;
            }
            ffi::LUA_TNIL => {}
            _ => return Err("invalid __serialize value".into()),
        }
        state.pop(2);
    }
    let shape = match hint {
        None if PLAIN => state.array_length(index, SPARSE_RATIO, SPARSE_SAFE).map_or(Shape::Map, Shape::Array),
        _ => shape_of(state, index, hint, rules)?,
    };
    match shape {
        Shape::Array(length) => {
            if length > LIST_MAX {
                return Err("excessively sparse array".into());
            }
            msgpack::encode_array(out, length as u32);
            for i in 1..=length {
                state.element(index, i as c_int);
                let result = encode_value::<PLAIN>(state, state.top(), out, depth + 1, rules);
                if result.is_err() && matches!(result, Err(Raise::OnStack)) {
                    return result;
                }
                state.pop(1);
                result?;
            }
        }
        Shape::Map => {
            // The number of pairs is not known before they are walked: room for the longest header.
            let start = out.len();
            out.extend_from_slice(&[0xdf, 0, 0, 0, 0]);
            let mut count = 0u32;
            state.push_nil();
            while state.next(index) {
                let value = state.top();
                encode_value::<PLAIN>(state, value - 1, out, depth + 1, rules)?;
                encode_value::<PLAIN>(state, value, out, depth + 1, rules)?;
                state.pop(1);
                count += 1;
            }
            if count < 16 {
                out[start] = 0x80 | count as u8;
                out.drain(start + 1..start + 5);
            } else {
                out[start + 1..start + 5].copy_from_slice(&count.to_be_bytes());
            }
            if is_ordered {
                sort_pairs(&mut out[start..]);
            }
        }
    }
    mark_node(out, begin, number, is_in_line, rules);
    Ok(())
}

/// True if msgpack begins with an array or a map that is not marked.
fn is_collection(bytes: &[u8]) -> bool {
    matches!(Reader::new(bytes).kind(), Ok(Kind::Array | Kind::Map))
}

/// Puts the pairs of a map in the order of their encoded keys: short names first. As the table is walked their order is another in each process.
fn sort_pairs(map: &mut [u8]) {
    let mut reader = Reader::new(map);
    let Ok(count) = reader.read_map() else { return };
    let first = reader.position();
    let mut pairs = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let (Ok(key), Ok(value)) = (reader.read_value(), reader.read_value()) else { return };
        pairs.push((key, value));
    }
    pairs.sort_unstable();
    let sorted: Vec<u8> = pairs.iter().flat_map(|(key, value)| [*key, *value]).flatten().copied().collect();
    map[first..].copy_from_slice(&sorted);
}

fn shape_of(state: State, index: c_int, hint: Option<bool>, rules: &Rules<'_>) -> Result<Shape, Raise> {
    match hint {
        Some(true) => {
            let mut max = 0;
            state.push_nil();
            while state.next(index) {
                state.pop(1);
                if let Some(key) = state.number(-1)
                    && key.fract() == 0.0
                    && key >= 1.0
                {
                    max = max.max(key as usize);
                }
            }
            return Ok(Shape::Array(max.min(i32::MAX as usize)));
        }
        Some(false) => return Ok(Shape::Map),
        None => {}
    }
    // 0: an array, however many holes it has; no ratio bounds those.
    let (ratio, safe) = match rules.sparse_ratio {
        ratio if ratio > 0 => (ratio, rules.sparse_safe),
        _ => (1, c_int::MAX),
    };
    match state.array_length(index, ratio, safe) {
        Some(length) => Ok(Shape::Array(length)),
        None if rules.is_sparse_map || state.array_length(index, 1, c_int::MAX).is_none() => Ok(Shape::Map),
        None => {
            let text = "excessively sparse array";
            Err(database::Error::raw(database::ErrorCode::ProcLua as u32, database::ErrorKind::Lua, text).into())
        }
    }
}

/// Appends a whole number of a text: beyond the plain ones it comes out as a signed cdata, which msgpack's own shortest form would not say.
pub(crate) fn encode_signed(out: &mut Vec<u8>, value: i64) {
    if value <= PLAIN_MAX as i64 {
        return msgpack::encode_int(out, value);
    }
    out.push(0xd3);
    out.extend_from_slice(&value.to_be_bytes());
}

/// Encodes the results of a procedure: values `first..=top`. Returns how many there are.
///
/// `errors_as_text`: the client does not know error objects.
/// `is_old_style` (CALL_16): each value becomes a tuple, and a single list of tuples or tables is spread.
pub(crate) fn encode_results(
    state: State,
    first: c_int,
    is_old_style: bool,
    errors_as_text: bool,
    out: &mut Vec<u8>,
) -> Result<u32, Raise> {
    let (start, errors) = (out.len(), registry().errors_encoded.get());
    let count = encode_results_by::<true>(state, first, is_old_style, out, &Rules::DEFAULT)?;
    // Rare: so the usual result pays nothing for the choice.
    if errors_as_text && registry().errors_encoded.get() != errors {
        out.truncate(start);
        return encode_results_by::<false>(
            state,
            first,
            is_old_style,
            out,
            &Rules { errors_as_text, ..Rules::DEFAULT },
        );
    }
    Ok(count)
}

fn encode_results_by<const PLAIN: bool>(
    state: State,
    first: c_int,
    is_old_style: bool,
    out: &mut Vec<u8>,
    rules: &Rules<'_>,
) -> Result<u32, Raise> {
    let top = state.top();
    if !is_old_style {
        for index in first..=top {
            encode_value::<PLAIN>(state, index, out, 0, rules)?;
        }
        return Ok((top - first + 1) as u32);
    }
    if top == first && state.kind(first) == ffi::LUA_TTABLE {
        state.raw_get_index(first, 1);
        let first_kind = state.kind(-1);
        let is_list =
            first_kind == ffi::LUA_TTABLE || first_kind == TYPE_CDATA && tuple_at(state, state.top()).is_some();
        state.pop(1);
        if is_list {
            let length = state.raw_length(first);
            for i in 1..=length {
                state.raw_get_index(first, i as c_int);
                encode_tuple::<PLAIN>(state, state.top(), out, rules)?;
                state.pop(1);
            }
            return Ok(length as u32);
        }
    }
    for index in first..=top {
        encode_tuple::<PLAIN>(state, index, out, rules)?;
    }
    Ok((top - first + 1) as u32)
}

/// A value as a tuple: arrays as they are, everything else in an array of one.
fn encode_tuple<const PLAIN: bool>(
    state: State,
    index: c_int,
    out: &mut Vec<u8>,
    rules: &Rules<'_>,
) -> Result<(), Raise> {
    let start = out.len();
    encode_value::<PLAIN>(state, index, out, 0, rules)?;
    if Reader::new(&out[start..]).kind() != Ok(Kind::Array) {
        out.insert(start, 0x91);
    }
    Ok(())
}
