//! What went wrong last, for each fiber.
#![expect(unsafe_code, reason = "the boundary to modules in C: pointers and lengths that they give")]

use super::{beyond_limit, c_str};
use crate::error::{push_error, take_error};
use crate::state::{State, lua_State};
use database::{Error, ErrorKind, Place};
use runtime::fiber::{self, FiberId};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CString, c_char, c_void};

/// An error with its texts as C reads them.
struct LastError {
    error: Error,
    kind: CString,
    message: CString,
}

thread_local! {
    /// A fiber that waits finds its own error again.
    static LAST_ERRORS: RefCell<HashMap<Option<FiberId>, Box<LastError>>> = RefCell::default();
}

fn c_text(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}

pub(super) fn set_last(error: Error) {
    let last = LastError { kind: c_text(error.kind_name()), message: c_text(error.message()), error };
    LAST_ERRORS.with_borrow_mut(|errors| {
        // Those of fibers that have ended go whenever there are twice as many.
        if errors.len() >= 64 && errors.len().is_power_of_two() {
            errors.retain(|id, _| id.is_none_or(|id| fiber::status(id) != fiber::Status::Dead));
        }
        errors.insert(fiber::current(), Box::new(last));
    });
}

/// The last error of the running fiber, which has none from then on.
pub(super) fn take_last() -> Option<Error> {
    LAST_ERRORS.with_borrow_mut(|errors| errors.remove(&fiber::current())).map(|last| last.error)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn lycosa_note_lua_error(state: *mut lua_State) {
    let state = State(state);
    beyond_limit(|| {
        state.push_value(state.top());
        set_last(take_error(state));
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn lycosa_push_last_error(state: *mut lua_State) {
    let error = LAST_ERRORS.with_borrow(|errors| errors.get(&fiber::current()).map(|last| last.error.clone()));
    beyond_limit(|| match error {
        Some(error) => push_error(State(state), &error),
        None => State(state).push_str("unknown error"),
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn lycosa_set_error(file: *const c_char, line: u32, code: u32, message: *const c_char) {
    let mut error = Error::raw(code, ErrorKind::Client, c_str(message));
    error.body_mut().place = Place::Script(c_str(file).into_owned(), line);
    set_last(error);
}

/// The last error of these functions; no pointer if there is none.
#[unsafe(no_mangle)]
extern "C" fn box_error_last() -> *mut c_void {
    LAST_ERRORS.with_borrow(|errors| match errors.get(&fiber::current()) {
        Some(last) => std::ptr::from_ref::<LastError>(last).cast_mut().cast(),
        None => std::ptr::null_mut(),
    })
}

/// Forgets the last error.
#[unsafe(no_mangle)]
extern "C" fn box_error_clear() {
    take_last();
}

/// The class of an error.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_error_type(error: *const c_void) -> *const c_char {
    // SAFETY: what `box_error_last` gave.
    unsafe { &*error.cast::<LastError>() }.kind.as_ptr()
}

/// The number of an error.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_error_code(error: *const c_void) -> u32 {
    // SAFETY: what `box_error_last` gave.
    unsafe { &*error.cast::<LastError>() }.error.code()
}

/// The text of an error.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_error_message(error: *const c_void) -> *const c_char {
    // SAFETY: what `box_error_last` gave.
    unsafe { &*error.cast::<LastError>() }.message.as_ptr()
}

/// Pushes an error object.
#[unsafe(no_mangle)]
unsafe extern "C" fn luaT_pusherror(state: *mut lua_State, error: *const c_void) {
    // SAFETY: what `box_error_last` gave.
    let error = unsafe { &*error.cast::<LastError>() };
    beyond_limit(|| push_error(State(state), &error.error));
}
