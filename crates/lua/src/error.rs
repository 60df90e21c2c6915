//! Errors into Lua as objects, and out of Lua as codes and texts.

use crate::registry::registry;
use crate::state::{Raise, State, TYPE_CDATA};
use database::{Error, ErrorCode, ErrorKind, Place};
use mlua_sys as ffi;

/// Named details of errors, in the order in which a client is told them.
const FIELD_NAMES: &[&str] = &["object_type", "object_name", "access_type", "space", "index", "field", "user", "limit"];
/// Number of causes of an error that a client is told.
const CAUSES_MAX: u32 = 64;

/// Pushes the value that is raised.
pub(crate) fn push_raise(state: State, raise: Raise) {
    match raise {
        Raise::OnStack => {}
        Raise::Cancelled => {
            state.push_ref(registry().make_error.get());
            state.push_number(0.0);
            state.push_str("FiberIsCancelled");
            state.push_str("fiber is cancelled");
            if state.pcall(3, 1).is_err() {
                state.pop(1);
                state.push_str("fiber is cancelled");
            }
        }
        Raise::Message(message) => state.push_str(&message),
        Raise::Database(error) => push_error(state, &error),
    }
}

/// Pushes an error object.
pub(crate) fn push_error(state: State, error: &Error) {
    let body = error.body();
    state.reserve(10);
    state.push_ref(registry().make_error.get());
    if state.is_nil(-1) {
        state.pop(1);
        return state.push_str(&body.message);
    }
    state.push_number(f64::from(body.code));
    state.push_str(error.kind_name());
    state.push_str(&body.message);
    state.new_table(0, body.fields.len());
    let fields = state.top();
    for (name, value) in &body.fields {
        state.push_str(value);
        state.set_field(fields, name);
    }
    let mut arguments = 4;
    if let Some(previous) = &body.previous {
        push_error(state, previous);
        arguments = 5;
    }
    if state.pcall(arguments, 1).is_err() {
        state.pop(1);
        state.push_str(&body.message);
    }
}

/// Takes the error value on top of the stack.
pub(crate) fn take_error(state: State) -> Error {
    let error = error_at_top(state, 0);
    state.pop(1);
    error
}

fn error_at_top(state: State, depth: u32) -> Error {
    let top = state.top();
    let lua_error = |text: String| Error::raw(ErrorCode::ProcLua as u32, ErrorKind::Lua, text);
    match state.kind(top) {
        ffi::LUA_TSTRING => lua_error(state.string(top).unwrap_or_default()),
        TYPE_CDATA if state.cdata(top).is_some_and(|(_, id)| id == registry().ids.get().error) => {
            state.push_ref(registry().error_parts.get());
            state.push_value(top);
            if state.pcall(1, 8).is_err() {
                state.set_top(top);
                return lua_error("an error object that cannot be read".to_string());
            }
            let code = state.number(top + 1).unwrap_or(0.0) as u32;
            let kind = match state.string(top + 2).unwrap_or_default().as_str() {
                "ClientError" => ErrorKind::Client,
                "AccessDeniedError" => ErrorKind::AccessDenied,
                "OutOfMemory" => ErrorKind::OutOfMemory,
                "SystemError" => ErrorKind::System,
                "XlogError" => ErrorKind::Xlog,
                "CustomError" => ErrorKind::Custom,
                _ => ErrorKind::Lua,
            };
            let message = state.string(top + 3).unwrap_or_default();
            let mut error = Error::raw(code, kind, message);
            if let Some(custom_type) = state.string(top + 5) {
                error = error.with("custom_type", custom_type);
            }
            if state.kind(top + 6) == ffi::LUA_TTABLE && state.reserve(4) {
                for name in FIELD_NAMES {
                    state.get_field(top + 6, name);
                    if let Some(value) = state.string(-1) {
                        error = error.with(name, value);
                    }
                    state.pop(1);
                }
            }
            if let Some(file) = state.string(top + 7) {
                error.body_mut().place = Place::Script(file, state.number(top + 8).unwrap_or(0.0) as u32);
            }
            state.set_top(top + 4);
            if state.is_nil(-1) || depth >= CAUSES_MAX || !state.reserve(10) {
                state.set_top(top);
                return error;
            }
            let previous = error_at_top(state, depth + 1);
            state.set_top(top);
            error.caused_by(previous)
        }
        _ => {
            state.push_ref(registry().to_text.get());
            state.push_value(top);
            let text = match state.pcall(1, 1) {
                Ok(()) => state.string(-1).unwrap_or_else(|| "unknown error".to_string()),
                Err(_) => "unknown error".to_string(),
            };
            state.set_top(top);
            lua_error(text)
        }
    }
}
