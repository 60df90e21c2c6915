//! Triggers in Lua: of spaces, and of the end of transactions.

use crate::api::{Outcome, push_found, space_at};
use crate::convert::{is_null, tuple_at};
use crate::error::take_error;
use crate::registry::{Thread, context, database, registry};
use crate::state::State;
use database::{ChangedRow, Context, Error, ErrorCode, ReplaceTrigger, Space};
use mlua_sys as ffi;
use std::ffi::c_int;
use std::rc::Rc;
use tuple::Tuple;

/// A row as an argument; nil if there is none.
fn push_optional(state: State, tuple: Option<Tuple>) {
    if push_found(state, tuple) == 0 {
        state.push_nil();
    }
}

/// run_triggers(space, flag)
pub(crate) fn run_triggers(state: State) -> Outcome {
    space_at(state, 1)?.runs_triggers.set(state.boolean(2));
    Ok(0)
}

/// A Lua function kept by reference and called later.
struct Callback {
    reference: c_int,
}

impl Callback {
    fn new(state: State, index: c_int) -> Callback {
        state.push_value(index);
        Callback { reference: state.make_ref() }
    }

    /// Calls with the rows that a transaction changed: {{space id, old, new}}
    fn call(&self, rows: &[ChangedRow]) {
        let thread = Thread::take();
        let state = thread.state;
        state.push_ref(self.reference);
        state.new_table(rows.len(), 0);
        for (at, row) in rows.iter().enumerate() {
            state.new_table(3, 0);
            state.push_number(f64::from(row.space_id.0));
            state.raw_set_index(3, 1);
            push_optional(state, row.old.clone());
            state.raw_set_index(3, 2);
            push_optional(state, row.new.clone());
            state.raw_set_index(3, 3);
            state.raw_set_index(2, at as c_int + 1);
        }
        if state.pcall(1, 0).is_err() {
            let error = take_error(thread.state);
            tracing::error!("a transaction trigger failed: {error}");
        }
    }
}

impl Drop for Callback {
    fn drop(&mut self) {
        if let Some(main) = registry().main.get() {
            main.drop_ref(self.reference);
        }
    }
}

pub(crate) fn on_commit(state: State) -> Outcome {
    let callback = Callback::new(state, 1);
    database().on_commit(&context(), Box::new(move |_, rows| callback.call(rows)))?;
    Ok(0)
}

pub(crate) fn on_rollback(state: State) -> Outcome {
    let callback = Callback::new(state, 1);
    database().on_rollback(&context(), Box::new(move |_, rows| callback.call(rows)))?;
    Ok(0)
}

/// A replace trigger in Lua.
struct LuaTrigger {
    callback: Callback,
    /// What it returns takes the place of the row.
    is_before: bool,
}

impl ReplaceTrigger for LuaTrigger {
    fn run(
        &self,
        _context: &Context,
        old: Option<&Tuple>,
        new: Option<&Tuple>,
        space: &Rc<Space>,
        operation: &str,
    ) -> database::Result<Option<Tuple>> {
        let thread = Thread::take();
        let state = thread.state;
        state.push_ref(self.callback.reference);
        push_optional(state, old.cloned());
        push_optional(state, new.cloned());
        state.push_str(&space.name());
        state.push_str(operation);
        if state.pcall(4, ffi::LUA_MULTRET).is_err() {
            return Err(take_error(state));
        }
        if state.top() == 0 || !self.is_before {
            // A trigger that returns nothing changes nothing.
            return Ok(new.cloned());
        }
        if is_null(state, 1) {
            return Ok(None);
        }
        if let Some(tuple) = tuple_at(state, 1) {
            return Ok(Some(tuple));
        }
        Err(Error::new(ErrorCode::BeforeReplaceRet, &[&state.kind_name(1)]))
    }
}

/// set_triggers(space, is_before, list of functions)
pub(crate) fn set_triggers(state: State) -> Outcome {
    let space = space_at(state, 1)?;
    let is_before = state.boolean(2);
    let mut triggers: Vec<Rc<dyn ReplaceTrigger>> = Vec::new();
    for i in 1..=state.raw_length(3) {
        state.raw_get_index(3, i as c_int);
        let callback = Callback::new(state, state.top());
        state.pop(1);
        triggers.push(Rc::new(LuaTrigger { callback, is_before }));
    }
    let list = if is_before { &space.before_replace } else { &space.on_replace };
    *list.borrow_mut() = triggers;
    Ok(0)
}
