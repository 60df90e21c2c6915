//! The C functions under the module `popen`: starting programs and learning of their end.

use crate::state::{Function, Raise, State};
use mlua_sys as ffi;
use runtime::process::{self, Ended, Program, StandardStream};
use std::ffi::{CString, c_int};
use std::os::fd::IntoRawFd;

type Outcome = Result<c_int, Raise>;

/// A list of texts at an index.
fn texts(state: State, index: c_int) -> Result<Vec<CString>, Raise> {
    let mut list = Vec::new();
    for at in 1..=state.raw_length(index) {
        state.raw_get_index(index, at as c_int);
        let text = CString::new(state.bytes(-1).unwrap_or_default());
        state.pop(1);
        list.push(text.map_err(|_| "an argument of a program has a zero byte")?);
    }
    Ok(list)
}

fn stream(state: State, index: c_int) -> StandardStream {
    match state.string(index).as_deref() {
        Some("pipe") => StandardStream::Pipe,
        Some("devnull") => StandardStream::Null,
        Some("close") => StandardStream::Closed,
        _ => StandardStream::Inherit,
    }
}

/// process_start(path, arguments, environment or nil, stdin, stdout, stderr, leads_session, closes_others, restores_signals)
/// -> pid, watch, stdin or nil, stdout or nil, stderr or nil; nil and the system's number if it does not start
fn process_start(state: State) -> Outcome {
    let path = CString::new(state.bytes(1).unwrap_or_default()).map_err(|_| "the path of a program has a zero byte")?;
    let environment = if state.kind(3) == ffi::LUA_TTABLE { Some(texts(state, 3)?) } else { None };
    let program = Program {
        path,
        arguments: texts(state, 2)?,
        environment,
        streams: [stream(state, 4), stream(state, 5), stream(state, 6)],
        leads_session: state.boolean(7),
        closes_others: state.boolean(8),
        restores_signals: state.boolean(9),
    };
    match process::start(&program) {
        Ok(running) => {
            state.push_number(f64::from(running.pid));
            state.push_number(f64::from(running.watch.into_raw_fd()));
            for pipe in running.pipes {
                match pipe {
                    Some(pipe) => state.push_number(f64::from(pipe.into_raw_fd())),
                    None => state.push_nil(),
                }
            }
            Ok(5)
        }
        Err(error) => failed(state, &error),
    }
}

/// process_look(pid) -> nothing while it runs; exit code, nil; or nil, signal
fn process_look(state: State) -> Outcome {
    let pid = state.check_number(1, "pid")? as i32;
    match process::look(pid) {
        Ok(None) => return Ok(0),
        Ok(Some(Ended::Exited(code))) => {
            state.push_number(f64::from(code));
            state.push_nil();
        }
        Ok(Some(Ended::Signaled(signal))) => {
            state.push_nil();
            state.push_number(f64::from(signal));
        }
        // Somebody else has waited for it.
        Err(_) => {
            state.push_number(0.0);
            state.push_nil();
        }
    }
    Ok(2)
}

/// process_signal(pid, signal, to_group) -> true; nil and the system's number
fn process_signal(state: State) -> Outcome {
    let (pid, signal) = (state.check_number(1, "pid")? as i32, state.check_number(2, "signal")? as i32);
    match process::send_signal(pid, signal, state.boolean(3)) {
        Ok(()) => {
            state.push_bool(true);
            Ok(1)
        }
        Err(error) => failed(state, &error),
    }
}

fn failed(state: State, error: &std::io::Error) -> Outcome {
    state.push_nil();
    state.push_number(f64::from(error.raw_os_error().unwrap_or(0)));
    Ok(2)
}

/// Functions of `box.internal` for programs.
pub(crate) const FUNCTIONS: &[(&str, Function)] =
    &[("process_start", process_start), ("process_look", process_look), ("process_signal", process_signal)];
