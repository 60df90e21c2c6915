//! `box.watch`, `box.watch_once` and `box.broadcast`.

use crate::convert::{encode, push_bytes_value};
use crate::error::{push_raise, take_error};
use crate::registry::{Thread, context, database, registry};
use crate::state::{Function, Raise, State};
use database::{Acting, Context, Session, Watcher};
use runtime::fiber;
use std::any::Any;
use std::cell::Cell;
use std::ffi::c_int;
use std::rc::{Rc, Weak};

type Outcome = Result<c_int, Raise>;

/// A Lua function that is called with each new value of a key, one call at a time, as the user who has made it.
pub(crate) struct LuaWatcher {
    this: Weak<LuaWatcher>,
    key: Vec<u8>,
    /// Reference to the function.
    callback: c_int,
    session: Rc<Session>,
    acting: Acting,
    /// Of the last value that the function was called with.
    version: Cell<Option<u64>>,
    /// A fiber calls it.
    is_running: Cell<bool>,
    is_gone: Cell<bool>,
}

impl Drop for LuaWatcher {
    fn drop(&mut self) {
        if let Some(main) = registry().main.get() {
            main.drop_ref(self.callback);
        }
    }
}

impl Watcher for LuaWatcher {
    fn notify(&self) {
        let Some(this) = self.this.upgrade().filter(|this| !this.is_running.get()) else { return };
        let context = Rc::new(Context::for_background(Rc::clone(&self.session)));
        context.act_again(self.acting);
        self.is_running.set(true);
        let made = fiber::try_spawn("watcher", move || {
            fiber::set_local(Rc::clone(&context) as Rc<dyn Any>);
            this.call_with_news();
            this.is_running.set(false);
            if context.is_in_txn() {
                database().abandon(&context);
            }
        });
        if let Err(error) = made {
            self.is_running.set(false);
            tracing::error!("a watcher of {} is not called: {error}", String::from_utf8_lossy(&self.key));
        }
    }
}

impl LuaWatcher {
    fn call_with_news(&self) {
        while !self.is_gone.get() {
            let event = database().event(&self.key);
            if self.version.replace(Some(event.version)) == Some(event.version) {
                return;
            }
            let thread = Thread::take();
            let state = thread.state;
            crate::lua::sync_schema(state);
            let call = || -> Result<(), Raise> {
                state.push_ref(self.callback);
                state.push_bytes(&self.key);
                match &event.value {
                    Some(value) => push_bytes_value(state, value)?,
                    None => state.push_nil(),
                }
                state.call_root(2, 0)
            };
            if let Err(raise) = call() {
                push_raise(state, raise);
                tracing::error!("box.watch: {}", take_error(state));
            }
        }
    }
}

fn key_at(state: State) -> Result<Vec<u8>, Raise> {
    Ok(state.bytes(1).ok_or("a key is expected")?.to_vec())
}

/// watch(key, function) -> number
fn watch(state: State) -> Outcome {
    let key = key_at(state)?;
    let creator = context();
    state.push_value(2);
    let callback = state.make_ref();
    let watcher = Rc::new_cyclic(|this: &Weak<LuaWatcher>| LuaWatcher {
        this: this.clone(),
        key: key.clone(),
        callback,
        session: Rc::clone(&creator.session),
        acting: creator.acting(),
        version: Cell::new(None),
        is_running: Cell::new(false),
        is_gone: Cell::new(false),
    });
    let weak = Rc::downgrade(&watcher);
    let number = database().watch(&key, weak)?;
    registry().watchers.borrow_mut().insert(number, Rc::clone(&watcher));
    watcher.notify();
    state.push_number(number as f64);
    Ok(1)
}

/// unwatch(number) -> whether there was such a watcher
fn unwatch(state: State) -> Outcome {
    let number = state.check_number(1, "watcher")? as u64;
    let watcher = registry().watchers.borrow_mut().remove(&number);
    if let Some(watcher) = &watcher {
        watcher.is_gone.set(true);
        database().unwatch(&watcher.key, number);
    }
    state.push_bool(watcher.is_some());
    Ok(1)
}

/// broadcast(key, value)
fn broadcast(state: State) -> Outcome {
    let key = key_at(state)?;
    if state.top() < 2 || state.is_nil(2) {
        database().broadcast(&key, None)?;
        return Ok(0);
    }
    let mut value = Vec::new();
    encode(state, 2, &mut value)?;
    database().broadcast(&key, Some(&value))?;
    Ok(0)
}

/// event(key) -> value
fn event(state: State) -> Outcome {
    let event = database().event(&key_at(state)?);
    context().see(event.seen);
    match &event.value {
        Some(value) => push_bytes_value(state, value)?,
        None => state.push_nil(),
    }
    Ok(1)
}

/// watchers() -> how many there are, of connections and functions
fn watchers(state: State) -> Outcome {
    state.push_number(database().watchers() as f64);
    Ok(1)
}

/// Functions of `box.internal` for watchers.
pub(crate) const FUNCTIONS: &[(&str, Function)] =
    &[("watch", watch), ("unwatch", unwatch), ("broadcast", broadcast), ("event", event), ("watchers", watchers)];
