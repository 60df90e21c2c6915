//! Tuples: their bytes, their fields, references to them.
#![expect(unsafe_code, reason = "the boundary to modules in C: pointers and lengths that they give")]

use super::{RUNTIME_FORMAT, beyond_limit, give, row, value};
use crate::convert::{push_tuple, tuple_at};
use crate::registry::{database, registry};
use crate::state::{State, lua_State};
use database::{Error, ErrorCode};
use std::ffi::{c_char, c_int, c_void};
use tuple::{Tuple, msgpack};

#[unsafe(no_mangle)]
unsafe extern "C" fn lycosa_tuple_at(state: *mut lua_State, index: c_int) -> *mut c_void {
    // The object on the Lua stack keeps the row alive.
    tuple_at(State(state), index).map_or(std::ptr::null_mut(), |row| row.as_raw() as *mut c_void)
}

/// Pushes a tuple object.
#[unsafe(no_mangle)]
unsafe extern "C" fn luaT_pushtuple(state: *mut lua_State, tuple: *mut c_void) {
    // SAFETY: a row of the module.
    let tuple = unsafe { row(tuple) };
    beyond_limit(|| push_tuple(State(state), &tuple));
}

/// The main Lua thread.
#[unsafe(no_mangle)]
extern "C" fn luaT_state() -> *mut lua_State {
    registry().main.get().map_or(std::ptr::null_mut(), |state| state.0)
}

/// The format of tuples that belong to no space. It is no pointer to anything.
#[unsafe(no_mangle)]
extern "C" fn box_tuple_format_default() -> *mut c_void {
    std::ptr::without_provenance_mut(RUNTIME_FORMAT as usize)
}

/// A tuple of msgpack.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_tuple_new(_: *mut c_void, start: *const c_char, end: *const c_char) -> *mut c_void {
    // SAFETY: the module's bytes.
    let made = unsafe { value(start, end) }.and_then(|bytes| {
        if msgpack::Reader::new(bytes).kind() != Ok(msgpack::Kind::Array) {
            return Err(Error::new(ErrorCode::TupleNotArray, &[]));
        }
        Tuple::new(database().loose_rows(), RUNTIME_FORMAT, bytes)
            .map_err(|_| Error::new(ErrorCode::MemoryIssue, &[&bytes.len(), &"arena", &"a tuple"]))
    });
    let mut result = std::ptr::null_mut();
    give(made.map(Some), &raw mut result);
    result
}

/// Takes a reference.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_tuple_ref(tuple: *mut c_void) -> c_int {
    // SAFETY: a row of the module.
    unsafe { row(tuple) }.into_raw();
    0
}

/// Gives a reference back.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_tuple_unref(tuple: *mut c_void) {
    // SAFETY: a reference that the module has taken.
    drop(unsafe { Tuple::from_raw(tuple as u64) });
}

/// Number of fields.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_tuple_field_count(tuple: *mut c_void) -> u32 {
    // SAFETY: a row of the module.
    unsafe { row(tuple) }.field_count()
}

/// Number of bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_tuple_bsize(tuple: *mut c_void) -> usize {
    // SAFETY: a row of the module.
    unsafe { row(tuple) }.size()
}

/// Copies the bytes, if there is room; returns how many there are.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_tuple_to_buf(tuple: *mut c_void, out: *mut c_char, room: usize) -> isize {
    // SAFETY: a row of the module.
    let row = unsafe { row(tuple) };
    let bytes = row.data();
    if bytes.len() <= room {
        // SAFETY: the module's room.
        unsafe { out.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
    bytes.len() as isize
}

/// The bytes of a field, counted from 0; no pointer if there is none.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_tuple_field(tuple: *mut c_void, number: u32) -> *const c_char {
    // SAFETY: a row of the module, which outlives the pointer.
    unsafe { row(tuple) }.field(number).map_or(std::ptr::null(), |field| field.as_ptr().cast())
}

/// A walk over fields.
struct Fields {
    row: Tuple,
    position: u32,
}

impl Fields {
    fn seek(&mut self, number: u32) -> *const c_char {
        self.position = number;
        match self.row.field(number) {
            Some(field) => {
                self.position += 1;
                field.as_ptr().cast()
            }
            None => std::ptr::null(),
        }
    }
}

/// Begins a walk over the fields.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_tuple_iterator(tuple: *mut c_void) -> *mut c_void {
    // SAFETY: a row of the module.
    Box::into_raw(Box::new(Fields { row: unsafe { row(tuple) }, position: 0 })).cast()
}

/// Ends the walk.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_tuple_iterator_free(fields: *mut c_void) {
    // SAFETY: what `box_tuple_iterator` gave.
    drop(unsafe { Box::from_raw(fields.cast::<Fields>()) });
}

/// The number of the next field.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_tuple_position(fields: *mut c_void) -> u32 {
    // SAFETY: what `box_tuple_iterator` gave.
    unsafe { &*fields.cast::<Fields>() }.position
}

/// Goes back to the first field.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_tuple_rewind(fields: *mut c_void) {
    // SAFETY: what `box_tuple_iterator` gave.
    unsafe { &mut *fields.cast::<Fields>() }.position = 0;
}

/// The field with a number; the walk goes on behind it.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_tuple_seek(fields: *mut c_void, number: u32) -> *const c_char {
    // SAFETY: what `box_tuple_iterator` gave.
    unsafe { &mut *fields.cast::<Fields>() }.seek(number)
}

/// The next field.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_tuple_next(fields: *mut c_void) -> *const c_char {
    // SAFETY: what `box_tuple_iterator` gave.
    let fields = unsafe { &mut *fields.cast::<Fields>() };
    fields.seek(fields.position)
}
