//! The C functions under the module `socket`: waiting for descriptors, resolving names; and the sessions of consoles.
//!
//! Everything that does not wait is done by the module itself, through ffi.

use crate::registry::{context, database};
use crate::state::{Function, Raise, State};
use database::{Context, SessionKind};
use runtime::fiber;
use runtime::net::Address;
use runtime::reactor::{self, Readiness};
use std::any::Any;
use std::ffi::c_int;
use std::io::ErrorKind;
use std::rc::Rc;

type Outcome = Result<c_int, Raise>;

/// Bits of events, as the module has them.
const READ: u32 = 1;
const WRITE: u32 = 2;
/// Longer waits have no end.
const FOREVER_S: f64 = 1e9;

/// The deadline of a time-out in seconds.
fn deadline_at(state: State, index: c_int) -> Option<u64> {
    let seconds = state.number(index).filter(|seconds| *seconds < FOREVER_S)?;
    Some(fiber::now_ns().saturating_add((seconds.max(0.0) * 1e9) as u64))
}

/// What a wait in the reactor has come to: nothing if it was out of time.
fn waited<T>(state: State, outcome: std::io::Result<T>) -> Result<Option<T>, Raise> {
    crate::lua::sync_schema(state);
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(_) if fiber::is_cancelled() => Err(Raise::Cancelled),
        Err(error) if error.kind() == ErrorKind::TimedOut => Ok(None),
        Err(error) => Err(Raise::Message(error.to_string())),
    }
}

/// descriptor_wait(fd, events, seconds or nil) -> events that came, 0 if none in time
fn descriptor_wait(state: State) -> Outcome {
    state.check_may_wait()?;
    let fd = state.check_number(1, "descriptor")? as c_int;
    let events = state.check_number(2, "events")? as u32;
    let wanted = Readiness { is_readable: events & READ != 0, is_writable: events & WRITE != 0 };
    let outcome = reactor::wait_descriptor(fd, wanted, deadline_at(state, 3));
    let found = waited(state, outcome)?.unwrap_or_default();
    let found = if found.is_readable { READ } else { 0 } | if found.is_writable { WRITE } else { 0 };
    state.push_number(f64::from(found));
    Ok(1)
}

/// descriptor_forget(fd): it is about to be closed
fn descriptor_forget(state: State) -> Outcome {
    reactor::forget_descriptor(state.check_number(1, "descriptor")? as c_int);
    Ok(0)
}

/// resolve(name, seconds or nil) -> {address...}, or nil if it was out of time, or nil and what is wrong
fn resolve(state: State) -> Outcome {
    state.check_may_wait()?;
    let name = state.check_string(1, "name")?;
    let outcome = reactor::resolve(&format!("{name}:0"), deadline_at(state, 2));
    match waited(state, outcome) {
        Ok(Some(addresses)) => {
            state.new_table(addresses.len(), 0);
            let table = state.top();
            let addresses = addresses.iter().filter_map(|address| match address {
                Address::Tcp(address) => Some(address.ip().to_string()),
                _ => None,
            });
            for (at, address) in addresses.enumerate() {
                state.push_str(&address);
                state.raw_set_index(table, at as c_int + 1);
            }
            Ok(1)
        }
        Ok(None) => {
            state.push_nil();
            Ok(1)
        }
        Err(Raise::Message(text)) => {
            state.push_nil();
            state.push_str(&text);
            Ok(2)
        }
        Err(raise) => Err(raise),
    }
}

/// session_begin(peer or nil) -> id: the running fiber goes over to a console's session of its own, as the administrator
fn session_begin(state: State) -> Outcome {
    if fiber::current().is_none() || context().is_in_txn() {
        return Err("a session cannot begin here".into());
    }
    let session = database().open_session(SessionKind::Console, state.string(1));
    state.push_number(session.id as f64);
    fiber::set_local(Rc::new(Context::for_background(session)) as Rc<dyn Any>);
    Ok(1)
}

/// session_end(): nobody finds the session of the running fiber any more
fn session_end(_: State) -> Outcome {
    let context = context();
    if context.is_in_txn() {
        database().abandon(&context);
    }
    database().close_session(&context.session);
    Ok(0)
}

/// Functions of `box.internal` for sockets and consoles.
pub(crate) const FUNCTIONS: &[(&str, Function)] = &[
    ("descriptor_wait", descriptor_wait),
    ("descriptor_forget", descriptor_forget),
    ("resolve", resolve),
    ("session_begin", session_begin),
    ("session_end", session_end),
];
