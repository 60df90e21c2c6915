//! The functions that modules in C call (Tarantool's `module.h`), as far as they need rows, fibers or the log; `module_api.c` is the other half.
//!
//! [`functions`] runs stored functions in C, [`tuples`], [`spaces`] and [`fibers`] hold what they and modules that `require` loads call, [`errors`] what they
//! leave behind.
//!
//! The binary exports them by name (`exports.txt`), so that a `.so` that `require` loads finds them. They work on the transaction thread, for the
//! user of the running fiber, under the same rights as Lua. None raises: what fails returns -1 or no pointer and leaves an error behind, which
//! [`box_error_last`] gives and `luaT_error` raises. What they are given is the module's promise: pointers that point to what they say.
//!
//! A tuple that a function returns lives until the next one returns another, unless the module takes a reference (`box_tuple_ref`).
#![expect(unsafe_code, reason = "the boundary to modules in C: pointers and lengths that they give")]

mod errors;
mod fibers;
pub(crate) mod functions;
mod spaces;
mod tuples;

use crate::registry::{context, database, registry};
use database::{Error, ErrorCode, Operation, Result, Space};
use errors::set_last;
use fibers::nanoseconds;
use runtime::fiber;
use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::rc::Rc;
use tuple::{SpaceId, Tuple, msgpack};

/// Rows of modules belong to no space.
const RUNTIME_FORMAT: u32 = tuple::FORMAT_ID_MAX;

thread_local! {
    /// The tuple returned last.
    static LAST_TUPLE: RefCell<Option<Tuple>> = const { RefCell::new(None) };
}

/// 0, or -1 with the error left behind.
fn status(outcome: Result<()>) -> c_int {
    match outcome {
        Ok(()) => 0,
        Err(error) => {
            set_last(error);
            -1
        }
    }
}

/// Writes the row, or no pointer, where the module wants it.
fn give(outcome: Result<Option<Tuple>>, result: *mut *mut c_void) -> c_int {
    status(outcome.map(|row| {
        if !result.is_null() {
            let address = row.as_ref().map_or(std::ptr::null_mut(), |row| row.as_raw() as *mut c_void);
            // SAFETY: the module's pointer to a place for the result.
            unsafe { result.write(address) };
        }
        keep(row);
    }))
}

/// Keeps a row alive until the next one is returned.
fn keep(row: Option<Tuple>) {
    if let Some(row) = row {
        let before = LAST_TUPLE.with(|last| last.replace(Some(row)));
        drop(before);
    }
}

/// The bytes between two pointers, if they are one whole msgpack value.
unsafe fn value<'a>(start: *const c_char, end: *const c_char) -> Result<&'a [u8]> {
    let malformed = || Error::new(ErrorCode::InvalidMsgpack, &[&"a value of a module in C"]);
    let length = (end as usize).checked_sub(start as usize).filter(|_| !start.is_null()).ok_or_else(malformed)?;
    // SAFETY: the module says that the bytes between its pointers are its own.
    let bytes = unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length) };
    match msgpack::check(bytes) {
        Ok(checked) if checked == length => Ok(bytes),
        _ => Err(malformed()),
    }
}

/// The row behind a pointer; the module's reference stays the module's.
unsafe fn row(tuple: *mut c_void) -> Tuple {
    // SAFETY: the module holds a reference, or the row is the one that was returned last.
    let held = unsafe { Tuple::from_raw(tuple as u64) };
    let row = held.clone();
    std::mem::forget(held);
    row
}

fn space(id: u32) -> Result<Rc<Space>> {
    database().space(SpaceId(id))
}

fn execute(id: u32, operation: Operation<'_>) -> Result<Option<Tuple>> {
    let (space, database, context) = (space(id)?, database(), context());
    let row = database.execute(&context, &space, operation)?;
    // A full log queue makes the module wait, as it does Lua.
    if context.answers_wait && !context.is_in_txn() && database.is_log_congested() {
        database.submit();
        database.wait_durable(context.seen.get())?;
    }
    Ok(row)
}

fn text<'a>(name: *const c_char, length: u32) -> std::borrow::Cow<'a, str> {
    // SAFETY: the module's name of that length.
    let bytes = unsafe { std::slice::from_raw_parts(name.cast::<u8>(), length as usize) };
    String::from_utf8_lossy(bytes)
}

fn c_str<'a>(text: *const c_char) -> std::borrow::Cow<'a, str> {
    if text.is_null() {
        return "".into();
    }
    // SAFETY: a text of C, ended by a zero.
    unsafe { CStr::from_ptr(text) }.to_string_lossy()
}

/// Runs what pushes values: an error for lack of Lua's memory would have to cross frames with destructors, so memory is had beyond the limit.
fn beyond_limit<R>(work: impl FnOnce() -> R) -> R {
    let memory = registry().memory();
    let depth = memory.exempt.replace(memory.exempt.get() + 1);
    let result = work();
    memory.exempt.set(depth);
    result
}

/// Waits until a descriptor is readable (1), writable (2) or either (3); 0 if the time is over.
#[unsafe(no_mangle)]
extern "C" fn coio_wait(descriptor: c_int, wanted: c_int, seconds: f64) -> c_int {
    let wanted = runtime::reactor::Readiness { is_readable: wanted & 1 != 0, is_writable: wanted & 2 != 0 };
    let deadline = (seconds < 1e9).then(|| fiber::now_ns().saturating_add(nanoseconds(seconds)));
    match runtime::reactor::wait_descriptor(descriptor, wanted, deadline) {
        Ok(ready) => c_int::from(ready.is_readable) | c_int::from(ready.is_writable) << 1,
        Err(_) => 0,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn lycosa_say(
    level: c_int,
    file: *const c_char,
    line: c_int,
    error: *const c_char,
    text: *const c_char,
) {
    let (file, text) = (c_str(file), c_str(text));
    let text = if error.is_null() { text.into_owned() } else { format!("{text}: {}", c_str(error)) };
    match level {
        ..=3 => tracing::error!("{text} ({file}:{line})"),
        4 => tracing::warn!("{text} ({file}:{line})"),
        5 | 6 => tracing::info!("{text}"),
        _ => tracing::debug!("{text}"),
    }
}
