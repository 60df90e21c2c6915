//! The C functions under the module `fiber`.

use crate::registry::{Thread, context, database};
use crate::state::{Function, Raise, State};
use database::Context;
use mlua_sys as ffi;
use runtime::fiber::{self, FiberId, TooManyFibers, Wake};
use std::any::Any;
use std::ffi::c_int;
use std::rc::Rc;

type Outcome = Result<c_int, Raise>;

fn fiber_at(state: State, index: c_int) -> Result<FiberId, Raise> {
    Ok(FiberId(state.check_number(index, "fiber id")? as u64))
}

/// fiber_spawn(is_new, function, arguments...) -> id
fn fiber_spawn(state: State) -> Outcome {
    if state.top() < 2 {
        return Err("a function is expected".into());
    }
    let thread = Thread::take();
    let count = state.top() - 1;
    if !thread.state.reserve(count + 4) {
        return Err("stack overflow".into());
    }
    let is_new = state.boolean(1);
    for index in 2..=count + 1 {
        state.push_value(index);
    }
    state.move_to(thread.state, count);
    let creator = context();
    let new_context = Rc::new(Context::for_background(Rc::clone(&creator.session)));
    new_context.act_again(creator.acting());
    let made = fiber::try_spawn("lua", move || {
        // The whole of it, so that the thread goes back when the fiber ends and not before.
        let thread: Thread = thread;
        fiber::set_local(Rc::clone(&new_context) as Rc<dyn Any>);
        crate::lua::sync_schema(thread.state);
        let outcome = thread.state.call_root(count - 1, ffi::LUA_MULTRET);
        // It may have gone over to a session of its own meanwhile.
        let last_context = context();
        if last_context.is_in_txn() {
            database().abandon(&last_context);
        }
        // What the fiber returned goes to who joins it.
        let arguments = thread.state.top();
        if !thread.state.reserve(arguments + 4) {
            tracing::error!("fiber: too many results");
            return;
        }
        thread.state.push_ref(crate::registry::registry().fiber_ended.get());
        thread.state.push_number(fiber::current().map_or(0.0, |id| id.0 as f64));
        thread.state.push_bool(outcome.is_ok());
        for index in 1..=arguments {
            thread.state.push_value(index);
        }
        if thread.state.pcall(arguments + 2, 0).is_err() {
            let error = crate::error::take_error(thread.state);
            tracing::error!("fiber: {error}");
        }
    });
    let id = made.map_err(|TooManyFibers { count, stack_bytes }| {
        let what = format!("a fiber: there are {count}, and `fibers_max` is {}", fiber::max());
        database::Error::new(database::ErrorCode::MemoryIssue, &[&stack_bytes, &"stacks", &what])
    })?;
    state.push_number(id.0 as f64);
    if !is_new && fiber::current().is_some() {
        state.check_may_wait()?;
        // `fiber.create` runs the new fiber first.
        fiber::switch_to(id);
        crate::lua::sync_schema(state);
    }
    Ok(1)
}

fn outcome_of(wake: Wake) -> Result<(), Raise> {
    if wake == Wake::Cancelled { Err(Raise::Cancelled) } else { Ok(()) }
}

/// fiber_sleep(seconds)
fn fiber_sleep(state: State) -> Outcome {
    state.check_may_wait()?;
    let seconds = state.number(1).unwrap_or(0.0).clamp(0.0, 1e9);
    let wake = fiber::sleep((seconds * 1e9) as u64);
    crate::lua::sync_schema(state);
    outcome_of(wake)?;
    Ok(0)
}

/// fiber_park(seconds or nil) -> true if woken, false on timeout
fn fiber_park(state: State) -> Outcome {
    state.check_may_wait()?;
    let deadline = state
        .number(1)
        .filter(|seconds| *seconds < 1e9)
        .map(|seconds| fiber::now_ns().saturating_add((seconds.max(0.0) * 1e9) as u64));
    let wake = fiber::park_until(deadline);
    crate::lua::sync_schema(state);
    outcome_of(wake)?;
    state.push_bool(wake == Wake::Woken);
    Ok(1)
}

fn fiber_self(state: State) -> Outcome {
    state.push_number(fiber::current().map_or(1.0, |id| id.0 as f64));
    Ok(1)
}

fn fiber_wake(state: State) -> Outcome {
    fiber::wake(fiber_at(state, 1)?);
    Ok(0)
}

fn fiber_cancel(state: State) -> Outcome {
    fiber::cancel(fiber_at(state, 1)?);
    Ok(0)
}

fn fiber_is_cancelled(state: State) -> Outcome {
    state.push_bool(fiber::is_cancelled());
    Ok(1)
}

/// fiber_status(id) -> text
fn fiber_status(state: State) -> Outcome {
    state.push_str(match fiber::status(fiber_at(state, 1)?) {
        fiber::Status::Running => "running",
        fiber::Status::Suspended => "suspended",
        fiber::Status::Dead => "dead",
    });
    Ok(1)
}

/// fiber_name(id, new name or nil) -> name
fn fiber_name(state: State) -> Outcome {
    let id = fiber_at(state, 1)?;
    if let Some(name) = state.string(2) {
        fiber::set_name(id, &name);
    }
    match fiber::name(id) {
        Some(name) => state.push_str(&name),
        None => state.push_nil(),
    }
    Ok(1)
}

/// fiber_list() -> {{id, name, switches}}
fn fiber_list(state: State) -> Outcome {
    let fibers = fiber::list();
    state.new_table(fibers.len(), 0);
    let list = state.top();
    for (at, (id, name, switches)) in fibers.iter().enumerate() {
        state.new_table(3, 0);
        let table = state.top();
        state.push_number(id.0 as f64);
        state.raw_set_index(table, 1);
        state.push_str(name);
        state.raw_set_index(table, 2);
        state.push_number(*switches as f64);
        state.raw_set_index(table, 3);
        state.raw_set_index(list, at as c_int + 1);
    }
    Ok(1)
}

/// Functions of `box.internal` for fibers.
pub(crate) const FUNCTIONS: &[(&str, Function)] = &[
    ("fiber_spawn", fiber_spawn),
    ("fiber_sleep", fiber_sleep),
    ("fiber_park", fiber_park),
    ("fiber_self", fiber_self),
    ("fiber_wake", fiber_wake),
    ("fiber_cancel", fiber_cancel),
    ("fiber_is_cancelled", fiber_is_cancelled),
    ("fiber_status", fiber_status),
    ("fiber_name", fiber_name),
    ("fiber_list", fiber_list),
];
