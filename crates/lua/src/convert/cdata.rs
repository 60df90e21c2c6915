//! What LuaJIT keeps as cdata: 64-bit integers, pointers, NULL, and objects of ours, whose payloads are laid out as the scripts declare them.

use crate::registry::registry;
use crate::state::State;
use mlua_sys as ffi;
use std::ffi::c_int;
use tuple::datetime::{Datetime, Interval};
use tuple::{Tuple, decimal::Decimal};

/// Reads eight bytes of a cdata.
#[expect(unsafe_code, reason = "payloads of cdata")]
pub(super) fn read_u64(payload: *mut std::ffi::c_void) -> u64 {
    // SAFETY: callers know from the type id that the payload has eight bytes.
    unsafe { payload.cast::<u64>().read_unaligned() }
}

/// The number in a 64-bit integer cdata.
pub(crate) fn cdata_number(state: State, index: c_int) -> Option<f64> {
    let (payload, id) = state.cdata(index)?;
    let ids = registry().ids.get();
    match id {
        id if id == ids.int64 => Some(read_u64(payload) as i64 as f64),
        id if id == ids.uint64 => Some(read_u64(payload) as f64),
        _ => None,
    }
}

/// True for nil and for `box.NULL`.
pub(crate) fn is_null(state: State, index: c_int) -> bool {
    if state.is_nil(index) {
        return true;
    }
    state.cdata(index).is_some_and(|(payload, id)| id == registry().ids.get().null && read_u64(payload) == 0)
}

/// Bytes that Lua points to with a cdata `char *` or `const char *`, as `msgpack.decode` takes them.
///
/// None if the value is no such pointer, or one to nothing. That as many bytes are there as `size` says is the caller's word; who reads
/// them goes no further than what they say themselves.
#[expect(unsafe_code, reason = "bytes that Lua points to")]
pub(crate) fn pointed_bytes<'a>(state: State, index: c_int, size: usize) -> Option<&'a [u8]> {
    /// What lies below is never mapped.
    const LOWEST_ADDRESS: u64 = 1 << 16;
    let (payload, id) = state.cdata(index)?;
    let ids = registry().ids.get();
    if id != ids.bytes && id != ids.const_bytes {
        return None;
    }
    let address = read_u64(payload);
    let size = size.min(isize::MAX as usize - 1).min((i64::MAX as u64).checked_sub(address)? as usize);
    // SAFETY: not null; the rest is the promise of the Lua code, which could read any memory through ffi anyway.
    (address >= LOWEST_ADDRESS).then(|| unsafe { std::slice::from_raw_parts(address as *const u8, size) })
}

/// Pushes a pointer `skipped` bytes behind the one at an index, of the same type.
#[expect(unsafe_code, reason = "payloads of cdata")]
pub(crate) fn push_pointer_behind(state: State, index: c_int, skipped: usize) {
    let Some((payload, id)) = state.cdata(index) else { return state.push_nil() };
    let address = read_u64(payload) + skipped as u64;
    let payload = state.push_cdata(id);
    // SAFETY: the type is that of a pointer.
    unsafe { payload.cast::<u64>().write_unaligned(address) };
}

/// The row behind a tuple object.
pub(crate) fn tuple_at(state: State, index: c_int) -> Option<Tuple> {
    let (payload, id) = state.cdata(index)?;
    if id != registry().ids.get().tuple {
        return None;
    }
    Some(tuple_from_address(read_u64(payload)))
}

#[expect(unsafe_code, reason = "tuple objects hold a counted address")]
pub(super) fn tuple_from_address(address: u64) -> Tuple {
    // SAFETY: a tuple object holds one reference until its finalizer runs, so the row is alive; the clone is ours and the object's
    // reference is left to it.
    let held = unsafe { Tuple::from_raw(address) };
    let tuple = held.clone();
    std::mem::forget(held);
    tuple
}

/// Pushes a tuple object that holds its own reference.
pub(crate) fn push_tuple(state: State, tuple: &Tuple) {
    state.push_row(tuple.clone().into_raw());
}

/// Called by LuaJIT's collector for each tuple object that it frees.
#[expect(unsafe_code, reason = "gives a counted address back")]
#[unsafe(no_mangle)]
extern "C" fn lycosa_release_row(address: u64) {
    // SAFETY: the object was made by `State::push_row`, held one reference and is freed once, on its thread.
    drop(unsafe { Tuple::from_raw(address) });
}

/// `struct datetime`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct DatetimePayload {
    pub(super) epoch: f64,
    pub(super) nanoseconds: i32,
    pub(super) offset: i16,
    pub(super) zone: i16,
}

impl DatetimePayload {
    /// None: a program has written nonsense into it.
    pub(super) fn datetime(self) -> Option<Datetime> {
        let DatetimePayload { epoch, nanoseconds, offset, zone } = self;
        let value = Datetime { seconds: epoch as i64, nanoseconds, offset, zone };
        value.is_good().then_some(value)
    }
}

/// `struct interval`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct IntervalPayload {
    second: f64,
    minute: f64,
    hour: f64,
    day: f64,
    week: i32,
    month: i32,
    year: i32,
    nanosecond: i32,
    adjust: i32,
}

impl IntervalPayload {
    pub(super) fn interval(self) -> Interval {
        let wide = i64::from;
        let fields = [
            wide(self.year),
            wide(self.month),
            wide(self.week),
            self.day as i64,
            self.hour as i64,
            self.minute as i64,
            self.second as i64,
            wide(self.nanosecond),
        ];
        Interval { fields, adjust: wide(self.adjust.clamp(0, 2)) }
    }

    /// None: another one does not fit the type.
    pub(super) fn of(interval: &Interval) -> Option<Self> {
        let [year, month, week, day, hour, minute, second, nanosecond] = interval.fields;
        let small = |value: i64| i32::try_from(value).ok();
        Some(IntervalPayload {
            second: second as f64,
            minute: minute as f64,
            hour: hour as f64,
            day: day as f64,
            week: small(week)?,
            month: small(month)?,
            year: small(year)?,
            nanosecond: small(nanosecond)?,
            adjust: small(interval.adjust)?,
        })
    }
}

/// The moment at an index.
#[expect(unsafe_code, reason = "payloads of cdata")]
pub(crate) fn datetime_at(state: State, index: c_int) -> Option<Datetime> {
    let (payload, id) = state.cdata(index)?;
    // SAFETY: the type id tells that the payload is one.
    (id == registry().ids.get().datetime)
        .then(|| unsafe { payload.cast::<DatetimePayload>().read_unaligned() })?
        .datetime()
}

/// The interval at an index.
#[expect(unsafe_code, reason = "payloads of cdata")]
pub(crate) fn interval_at(state: State, index: c_int) -> Option<Interval> {
    let (payload, id) = state.cdata(index)?;
    // SAFETY: the type id tells that the payload is one.
    (id == registry().ids.get().interval)
        .then(|| unsafe { payload.cast::<IntervalPayload>().read_unaligned() }.interval())
}

/// `struct lycosa_decimal`: the coefficient in two halves, the scale, and 1 for a zero with a minus.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct DecimalPayload {
    low: u64,
    high: i64,
    scale: i32,
    is_minus_zero: i32,
}

impl DecimalPayload {
    pub(super) fn decimal(self) -> Option<Decimal> {
        let coefficient = i128::from(self.high) << 64 | i128::from(self.low);
        Decimal::with_sign(coefficient < 0 || self.is_minus_zero != 0, coefficient.unsigned_abs(), self.scale)
    }
}

/// `struct tt_uuid` keeps the first three parts in the machine's byte order; on the wire all are big endian.
pub(super) fn uuid_bytes(mut bytes: [u8; 16]) -> [u8; 16] {
    if cfg!(target_endian = "little") {
        bytes[0..4].reverse();
        bytes[4..6].reverse();
        bytes[6..8].reverse();
    }
    bytes
}

/// Pushes an unsigned 64-bit cdata, whatever the value.
#[expect(unsafe_code, reason = "payloads of cdata")]
pub(crate) fn push_u64(state: State, value: u64) {
    let payload = state.push_cdata(registry().ids.get().uint64);
    // SAFETY: eight bytes.
    unsafe { payload.cast::<u64>().write_unaligned(value) };
}

/// Pushes a signed 64-bit cdata, whatever the value.
#[expect(unsafe_code, reason = "payloads of cdata")]
pub(crate) fn push_i64(state: State, value: i64) {
    let payload = state.push_cdata(registry().ids.get().int64);
    // SAFETY: eight bytes.
    unsafe { payload.cast::<i64>().write_unaligned(value) };
}

/// Pushes a decimal object.
#[expect(unsafe_code, reason = "payloads of cdata")]
pub(crate) fn push_decimal(state: State, decimal: &Decimal) {
    let (coefficient, scale) = decimal.parts();
    let payload = state.push_cdata(registry().ids.get().decimal);
    let is_minus_zero = i32::from(coefficient == 0 && decimal.is_negative());
    let value = DecimalPayload { low: coefficient as u64, high: (coefficient >> 64) as i64, scale, is_minus_zero };
    // SAFETY: the payload is a `struct lycosa_decimal`.
    unsafe { payload.cast::<DecimalPayload>().write_unaligned(value) };
}

/// The decimal at an index: a decimal object, a number or a string.
#[expect(unsafe_code, reason = "payloads of cdata")]
pub(crate) fn decimal_at(state: State, index: c_int) -> Option<Decimal> {
    if let Some((payload, id)) = state.cdata(index) {
        let ids = registry().ids.get();
        return match id {
            id if id == ids.decimal => {
                // SAFETY: the payload is a `struct lycosa_decimal`.
                unsafe { payload.cast::<DecimalPayload>().read_unaligned() }.decimal()
            }
            id if id == ids.int64 => Some(Decimal::from(read_u64(payload) as i64)),
            id if id == ids.uint64 => Some(Decimal::from(read_u64(payload))),
            _ => None,
        };
    }
    match state.kind(index) {
        ffi::LUA_TNUMBER => Decimal::from_f64(state.number(index)?),
        // A text for C ends at its first zero.
        ffi::LUA_TSTRING => state.string(index)?.split('\0').next()?.parse().ok(),
        _ => None,
    }
}
