//! Values between Lua and msgpack, by Tarantool's rules.
//!
//! ```text
//! encode.rs  Lua -> msgpack
//! decode.rs  msgpack -> Lua
//! cdata.rs   integers, pointers and objects that LuaJIT keeps as cdata
//! ```

mod cdata;
mod decode;
mod encode;

pub(crate) use cdata::{
    cdata_number, datetime_at, decimal_at, interval_at, is_null, pointed_bytes, push_decimal, push_i64,
    push_pointer_behind, push_tuple, push_u64, tuple_at,
};
pub(crate) use decode::{push_array_metatable, push_bytes_value, push_map_metatable, push_next, push_null};
pub(crate) use encode::{
    EXT_NODE, Rules, encode, encode_array, encode_by, encode_key, encode_listed_key, encode_results, encode_signed,
    node_parts,
};

use crate::state::is_stack_low;

/// No rule lets values nest deeper: the C stack bounds them.
pub(crate) const DEPTH_HARD_MAX: usize = 2000;
/// Integers up to here are plain Lua numbers.
const PLAIN_MAX: u64 = 99_999_999_999_999;

/// True if the C stack may not hold another level. A few always fit; to look costs as much as a short string.
#[inline]
fn is_too_deep(depth: usize) -> bool {
    depth % 16 == 15 && is_stack_low()
}
