//! The thin layer over LuaJIT's C API: functions that Lua calls, errors that cross the boundary, memory and time limits.
//!
//! Rules (each was found by measurement, see the project's notes on LuaJIT): a Lua error must not cross `catch_unwind`, a panic must not
//! cross Lua frames, and only a C function may wait. So functions here return `Result`, the trampoline turns an error into
//! `lua_error` outside of everything that has a destructor, and inside only calls are made that cannot raise.
#![expect(unsafe_code, reason = "the boundary to C")]

use crate::registry::registry;
use database::Error;
use mlua_sys as ffi;
use std::cell::Cell;
use std::ffi::{CString, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use ffi::lua_State;

unsafe extern "C" {
    fn ljshim_to_cdata(state: *mut lua_State, index: c_int, type_id: *mut u32) -> *mut c_void;
    fn ljshim_array_length(state: *mut lua_State, index: c_int, ratio: c_int, safe: c_int) -> c_int;
    fn ljshim_yield_blocked(state: *mut lua_State) -> c_int;
    fn ljshim_set_stopping(is_stopping: c_int);
    fn ljshim_leave_hook(state: *mut lua_State) -> c_int;
    fn ljshim_enter_hook(state: *mut lua_State, vmstate: c_int);
    fn ljshim_next(state: *mut lua_State, index: c_int) -> c_int;
    fn ljshim_set_tuple_type(type_id: u32);
    fn ljshim_cdata_size(state: *mut lua_State, index: c_int) -> usize;
}
unsafe extern "C-unwind" {
    fn ljshim_push_cdata(state: *mut lua_State, type_id: u32) -> *mut c_void;
    fn ljshim_push_tuple(state: *mut lua_State, address: u64);
}

/// LuaJIT's type of cdata.
pub(crate) const TYPE_CDATA: c_int = 10;

/// An error on its way into Lua.
#[derive(Debug)]
pub(crate) enum Raise {
    /// A plain message.
    Message(String),
    /// An error object.
    Database(Error),
    /// The fiber was cancelled.
    Cancelled,
    /// The value is on top of the stack already.
    OnStack,
}

impl From<Error> for Raise {
    fn from(error: Error) -> Self {
        Raise::Database(error)
    }
}

impl From<storage::NotAnArray> for Raise {
    fn from(error: storage::NotAnArray) -> Self {
        Raise::Database(error.into())
    }
}

impl From<String> for Raise {
    fn from(message: String) -> Self {
        Raise::Message(message)
    }
}

impl From<&str> for Raise {
    fn from(message: &str) -> Self {
        Raise::Message(message.to_string())
    }
}

/// A Lua thread. Copies mean the same one.
#[derive(Clone, Copy)]
pub(crate) struct State(pub(crate) *mut lua_State);

/// A function that Lua calls: returns the number of results on the stack.
pub(crate) type Function = fn(State) -> Result<c_int, Raise>;

/// Runs the function and leaves an error value on the stack instead of raising it.
///
/// While it runs memory may be had beyond the limit: an error for lack of it would have to cross frames with destructors. What
/// was taken too much is found here, behind those frames.
#[inline(never)]
fn call_inner(state: State, function: Function) -> c_int {
    let memory = registry().memory();
    let depth = memory.exempt.replace(memory.exempt.get() + 1);
    let count = call_caught(state, function);
    memory.exempt.set(depth);
    if depth == 0 && memory.is_exceeded() && count >= 0 {
        state.collect_garbage();
        if memory.is_exceeded() {
            state.set_top(0);
            state.push_str("not enough memory");
            return -1;
        }
    }
    count
}

fn call_caught(state: State, function: Function) -> c_int {
    match catch_unwind(AssertUnwindSafe(|| function(state))) {
        Ok(Ok(count)) => count,
        Ok(Err(raise)) => {
            crate::error::push_raise(state, raise);
            -1
        }
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map_or("panic", String::as_str);
            tracing::error!("a function called by Lua panicked: {text}");
            state.push_str("internal error, see the server's log");
            -1
        }
    }
}

/// The C function of every Rust function: the pointer is its upvalue.
unsafe extern "C-unwind" fn trampoline(raw: *mut lua_State) -> c_int {
    // SAFETY: the first upvalue is a light userdata made of a `Function` by `push_function`.
    let count = unsafe {
        let pointer = ffi::lua_touserdata(raw, ffi::lua_upvalueindex(1));
        call_inner(State(raw), std::mem::transmute::<*mut c_void, Function>(pointer))
    };
    if count < 0 {
        // SAFETY: the error value is on top and nothing with a destructor is alive in this frame.
        unsafe { ffi::lua_error(raw) };
    }
    count
}

// SAFETY of all methods: the pointer is a live Lua thread of this OS thread, and only functions are called that raise at most on
// lack of memory.
impl State {
    pub(crate) fn top(self) -> c_int {
        // SAFETY: see above.
        unsafe { ffi::lua_gettop(self.0) }
    }

    pub(crate) fn set_top(self, top: c_int) {
        // SAFETY: see above.
        unsafe { ffi::lua_settop(self.0, top) }
    }

    pub(crate) fn pop(self, count: c_int) {
        self.set_top(-count - 1);
    }

    /// Makes room; false if the Lua stack cannot grow.
    pub(crate) fn reserve(self, count: c_int) -> bool {
        // SAFETY: see above.
        unsafe { ffi::lua_checkstack(self.0, count) != 0 }
    }

    pub(crate) fn kind(self, index: c_int) -> c_int {
        // SAFETY: see above.
        unsafe { ffi::lua_type(self.0, index) }
    }

    pub(crate) fn kind_name(self, index: c_int) -> &'static str {
        match self.kind(index) {
            ffi::LUA_TNIL => "nil",
            ffi::LUA_TBOOLEAN => "boolean",
            ffi::LUA_TNUMBER => "number",
            ffi::LUA_TSTRING => "string",
            ffi::LUA_TTABLE => "table",
            ffi::LUA_TFUNCTION => "function",
            ffi::LUA_TTHREAD => "thread",
            TYPE_CDATA => "cdata",
            ffi::LUA_TNONE => "no value",
            _ => "userdata",
        }
    }

    pub(crate) fn is_nil(self, index: c_int) -> bool {
        matches!(self.kind(index), ffi::LUA_TNIL | ffi::LUA_TNONE)
    }

    pub(crate) fn boolean(self, index: c_int) -> bool {
        // SAFETY: see above.
        unsafe { ffi::lua_toboolean(self.0, index) != 0 }
    }

    pub(crate) fn number(self, index: c_int) -> Option<f64> {
        match self.kind(index) {
            // SAFETY: see above.
            ffi::LUA_TNUMBER => Some(unsafe { ffi::lua_tonumber(self.0, index) }),
            TYPE_CDATA => crate::convert::cdata_number(self, index),
            _ => None,
        }
    }

    /// The bytes of a string. They live as long as the string is on the stack.
    pub(crate) fn bytes<'a>(self, index: c_int) -> Option<&'a [u8]> {
        if self.kind(index) != ffi::LUA_TSTRING {
            return None;
        }
        let mut length = 0;
        // SAFETY: the value is a string, so it is not converted in place; it stays on the stack while its slice is used.
        unsafe {
            let start = ffi::lua_tolstring(self.0, index, &raw mut length);
            Some(std::slice::from_raw_parts(start.cast(), length))
        }
    }

    pub(crate) fn string(self, index: c_int) -> Option<String> {
        self.bytes(index).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// A string argument. Errors: a message that says what was given.
    pub(crate) fn check_string(self, index: c_int, what: &str) -> Result<String, Raise> {
        self.string(index)
            .ok_or_else(|| Raise::Message(format!("{what} must be a string, got {}", self.kind_name(index))))
    }

    /// The bytes of a string argument; they live as long as it is on the stack.
    pub(crate) fn check_string_bytes<'a>(self, index: c_int) -> Result<&'a [u8], Raise> {
        let kind = || format!("bad argument #{index} (string expected, got {})", self.kind_name(index));
        self.bytes(index).ok_or_else(|| Raise::Message(kind()))
    }

    /// A number argument.
    pub(crate) fn check_number(self, index: c_int, what: &str) -> Result<f64, Raise> {
        self.number(index)
            .ok_or_else(|| Raise::Message(format!("{what} must be a number, got {}", self.kind_name(index))))
    }

    pub(crate) fn push_nil(self) {
        // SAFETY: see above.
        unsafe { ffi::lua_pushnil(self.0) }
    }

    pub(crate) fn push_bool(self, value: bool) {
        // SAFETY: see above.
        unsafe { ffi::lua_pushboolean(self.0, c_int::from(value)) }
    }

    pub(crate) fn push_number(self, value: f64) {
        // SAFETY: see above.
        unsafe { ffi::lua_pushnumber(self.0, value) }
    }

    pub(crate) fn push_bytes(self, value: &[u8]) {
        // SAFETY: pointer and length describe the slice.
        unsafe { ffi::lua_pushlstring_(self.0, value.as_ptr().cast(), value.len()) }
    }

    pub(crate) fn push_str(self, value: &str) {
        self.push_bytes(value.as_bytes());
    }

    pub(crate) fn push_value(self, index: c_int) {
        // SAFETY: see above.
        unsafe { ffi::lua_pushvalue(self.0, index) }
    }

    pub(crate) fn push_pointer(self, pointer: *mut c_void) {
        // SAFETY: see above.
        unsafe { ffi::lua_pushlightuserdata(self.0, pointer) }
    }

    pub(crate) fn pointer(self, index: c_int) -> *mut c_void {
        // SAFETY: see above.
        unsafe { ffi::lua_touserdata(self.0, index) }
    }

    /// Where a table is: two places with the same address hold the same one.
    pub(crate) fn address(self, index: c_int) -> usize {
        // SAFETY: see above.
        unsafe { ffi::lua_topointer(self.0, index) as usize }
    }

    /// Moves the value on top to a place from the bottom and drops everything that was there and above.
    pub(crate) fn replace(self, index: c_int) {
        // SAFETY: see above.
        unsafe { ffi::lua_replace(self.0, index) };
        self.set_top(index);
    }

    /// Moves the value on top to a place from the bottom that has one, and leaves the rest.
    pub(crate) fn put(self, index: c_int) {
        // SAFETY: see above.
        unsafe { ffi::lua_replace(self.0, index) };
    }

    pub(crate) fn new_table(self, array: usize, hash: usize) {
        // SAFETY: see above.
        unsafe { ffi::lua_createtable(self.0, array.min(1 << 20) as c_int, hash.min(1 << 20) as c_int) }
    }

    pub(crate) fn push_function(self, function: Function) {
        self.push_pointer(function as *mut c_void);
        // SAFETY: one upvalue is on the stack.
        unsafe { ffi::lua_pushcclosure(self.0, trampoline, 1) }
    }

    fn is_table(self, index: c_int) -> bool {
        self.kind(index) == ffi::LUA_TTABLE
    }

    /// Sets `t[key] = top` without metamethods and pops the value. `table` counts from the bottom.
    pub(crate) fn set_field(self, table: c_int, key: &str) {
        if !self.is_table(table) {
            return self.pop(1);
        }
        self.push_str(key);
        // SAFETY: a key and a value are above the table.
        unsafe {
            ffi::lua_insert(self.0, -2);
            ffi::lua_rawset(self.0, table);
        }
    }

    /// Pushes `t[key]` without metamethods; nil if there is no table at the place.
    pub(crate) fn get_field(self, table: c_int, key: &str) {
        if !self.is_table(table) {
            return self.push_nil();
        }
        self.push_str(key);
        // SAFETY: a key is above the table.
        unsafe { ffi::lua_rawget_(self.0, table) }
    }

    /// Sets `t[k] = v` for the two values on top and pops them. What cannot be a key is left out.
    pub(crate) fn raw_set(self, table: c_int) {
        let is_nan = self.kind(-2) == ffi::LUA_TNUMBER && self.number(-2).is_some_and(f64::is_nan);
        if is_nan || self.is_nil(-2) || !self.is_table(table) {
            return self.pop(2);
        }
        // SAFETY: key and value are above the table; the key is neither nil nor NaN.
        unsafe { ffi::lua_rawset(self.0, table) }
    }

    /// Replaces the key on top by `t[key]`, without metamethods. `table` counts from the bottom.
    pub(crate) fn raw_get(self, table: c_int) {
        if !self.is_table(table) {
            self.pop(1);
            return self.push_nil();
        }
        // SAFETY: a key is above the table.
        unsafe { ffi::lua_rawget_(self.0, table) }
    }

    pub(crate) fn raw_get_index(self, table: c_int, index: c_int) {
        if !self.is_table(table) {
            return self.push_nil();
        }
        // SAFETY: see above.
        unsafe { ffi::lua_rawgeti_(self.0, table, index) }
    }

    /// As `raw_get_index`, for loops over what is known to be a table.
    pub(crate) fn element(self, table: c_int, index: c_int) {
        debug_assert!(self.is_table(table));
        // SAFETY: see above; the caller has seen the table at this place of the stack, which nobody else changes.
        unsafe { ffi::lua_rawgeti_(self.0, table, index) }
    }

    pub(crate) fn raw_set_index(self, table: c_int, index: c_int) {
        if !self.is_table(table) {
            return self.pop(1);
        }
        // SAFETY: see above.
        unsafe { ffi::lua_rawseti_(self.0, table, index) }
    }

    pub(crate) fn raw_length(self, index: c_int) -> usize {
        // SAFETY: see above.
        unsafe { ffi::lua_objlen(self.0, index) }
    }

    /// Replaces the key on top by the next key and value; false (and the key is gone) at the end. A walk during which the table was
    /// changed may end early: Lua's own function would raise an error.
    pub(crate) fn next(self, table: c_int) -> bool {
        if !self.is_table(table) {
            self.pop(1);
            return false;
        }
        // SAFETY: there is a table at the positive index, a key on top and room for a value.
        unsafe { ljshim_next(self.0, table) != 0 }
    }

    pub(crate) fn get_metatable(self, index: c_int) -> bool {
        // SAFETY: see above.
        unsafe { ffi::lua_getmetatable(self.0, index) != 0 }
    }

    pub(crate) fn set_metatable(self, index: c_int) {
        if !self.is_table(-1) && !self.is_nil(-1) {
            return self.pop(1);
        }
        // SAFETY: a table or nil is on top.
        unsafe { ffi::lua_setmetatable(self.0, index) };
    }

    /// Ends the state: finalizers run, everything is freed. Nothing may use it afterwards.
    pub(crate) fn close(self) {
        // SAFETY: this is the main thread of a state that nobody runs code in.
        unsafe { ffi::lua_close(self.0) };
    }

    /// Keeps the value on top in the registry and pops it.
    pub(crate) fn make_ref(self) -> c_int {
        // SAFETY: see above.
        unsafe { ffi::luaL_ref(self.0, ffi::LUA_REGISTRYINDEX) }
    }

    pub(crate) fn push_ref(self, reference: c_int) {
        self.raw_get_index(ffi::LUA_REGISTRYINDEX, reference);
    }

    pub(crate) fn drop_ref(self, reference: c_int) {
        // SAFETY: see above.
        unsafe { ffi::luaL_unref(self.0, ffi::LUA_REGISTRYINDEX, reference) }
    }

    pub(crate) fn move_to(self, other: State, count: c_int) {
        // SAFETY: both are threads of one Lua state.
        unsafe { ffi::lua_xmove(self.0, other.0, count) }
    }

    /// Pushes a new thread.
    pub(crate) fn new_thread(self) -> State {
        // SAFETY: see above.
        State(unsafe { ffi::lua_newthread(self.0) })
    }

    /// Calls a function below its arguments. On failure the error value is on top.
    pub(crate) fn pcall(self, arguments: c_int, results: c_int) -> Result<(), Raise> {
        if is_stack_low() {
            self.pop(arguments + 1);
            self.push_str("C stack overflow");
            return Err(Raise::OnStack);
        }
        // Inside the call the limit of memory holds again: an error stops at it.
        let memory = registry().memory();
        let depth = memory.exempt.replace(0);
        // SAFETY: function and arguments are on the stack. Errors stop at this call.
        let status = unsafe { ffi::lua_pcall(self.0, arguments, results, 0) };
        registry().memory().exempt.set(depth);
        if status == 0 { Ok(()) } else { Err(Raise::OnStack) }
    }

    /// As `pcall`, for the outermost call of a fiber: it also takes an interruption back.
    pub(crate) fn call_root(self, arguments: c_int, results: c_int) -> Result<(), Raise> {
        let result = self.pcall(arguments, results);
        clear_interrupt(self.0);
        result
    }

    /// Errors: Lua holds more than it may. For loops in functions that make many values.
    pub(crate) fn check_memory(self) -> Result<(), Raise> {
        let memory = registry().memory();
        if memory.is_exceeded() {
            self.collect_garbage();
            if memory.is_exceeded() {
                return Err("not enough memory".into());
            }
        }
        Ok(())
    }

    /// Errors: a result of so many bytes is more than Lua may have.
    pub(crate) fn check_room(self, bytes: usize) -> Result<(), Raise> {
        let memory = registry().memory();
        if bytes > memory.limit.get() { Err("not enough memory".into()) } else { Ok(()) }
    }

    /// Compiles source text; the function or the error message is on top.
    pub(crate) fn load(self, source: &[u8], name: &str) -> Result<(), Raise> {
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: pointers and length describe the arguments.
        let status = unsafe { ffi::luaL_loadbuffer(self.0, source.as_ptr().cast(), source.len(), name.as_ptr()) };
        if status == 0 { Ok(()) } else { Err(Raise::OnStack) }
    }

    /// The payload and type of a cdata.
    pub(crate) fn cdata(self, index: c_int) -> Option<(*mut c_void, u32)> {
        let index = if index < 0 { self.top() + index + 1 } else { index };
        let mut type_id = 0;
        // SAFETY: the index is positive.
        let payload = unsafe { ljshim_to_cdata(self.0, index, &raw mut type_id) };
        (!payload.is_null()).then_some((payload, type_id))
    }

    /// The bytes of the payload of a cdata. They live as long as it is on the stack.
    pub(crate) fn cdata_bytes<'a>(self, index: c_int) -> Option<&'a [u8]> {
        let index = if index < 0 { self.top() + index + 1 } else { index };
        let (payload, _) = self.cdata(index)?;
        // SAFETY: there is a cdata at the positive index, and its payload has that many bytes.
        Some(unsafe { std::slice::from_raw_parts(payload.cast(), ljshim_cdata_size(self.0, index)) })
    }

    /// The length of the table at a positive index if it is to be an array, by its keys alone.
    pub(crate) fn array_length(self, index: c_int, ratio: c_int, safe: c_int) -> Option<usize> {
        // SAFETY: callers have seen that the value is a table.
        usize::try_from(unsafe { ljshim_array_length(self.0, index, ratio, safe) }).ok()
    }

    pub(crate) fn push_cdata(self, type_id: u32) -> *mut c_void {
        // SAFETY: ffi is loaded at start and the id came from it.
        unsafe { ljshim_push_cdata(self.0, type_id) }
    }

    /// Pushes a tuple object that owns one reference to a row, given as [`tuple::Tuple::into_raw`] gives it.
    pub(crate) fn push_row(self, address: u64) {
        // SAFETY: the type of tuple objects was set when ffi was loaded.
        unsafe { ljshim_push_tuple(self.0, address) }
    }

    /// Errors: waiting is not possible here (inside an ffi call, a finalizer, a hook or the function of a constraint).
    pub(crate) fn check_may_wait(self) -> Result<(), Raise> {
        if registry().is_checking.get() {
            return Err("a fiber cannot wait inside a constraint".into());
        }
        // SAFETY: see above.
        match unsafe { ljshim_yield_blocked(self.0) } {
            0 => Ok(()),
            1 => Err("a fiber cannot wait inside an ffi call".into()),
            _ => Err("a fiber cannot wait inside a finalizer".into()),
        }
    }

    /// Runs a garbage collection.
    pub(crate) fn collect_garbage(self) {
        // SAFETY: see above.
        unsafe { ffi::lua_gc(self.0, ffi::LUA_GCCOLLECT, 0) };
    }

    /// Kilobytes in use.
    pub(crate) fn memory_kb(self) -> usize {
        // SAFETY: see above.
        unsafe { ffi::lua_gc(self.0, ffi::LUA_GCCOUNT, 0) as usize }
    }
}

/// Left for what a C function needs, a message included.
const STACK_RESERVE: usize = 160 << 10;

/// True when the C stack of the running fiber is nearly used up.
pub(crate) fn is_stack_low() -> bool {
    let here = 0u8;
    let at = std::ptr::from_ref(&here) as usize;
    runtime::fiber::stack_limit().is_some_and(|limit| at < limit + STACK_RESERVE)
}

/// Memory that Lua may use: the allocator refuses more.
#[derive(Default)]
pub(crate) struct Memory {
    pub(crate) used: Cell<usize>,
    pub(crate) limit: Cell<usize>,
    /// Above zero while functions of ours run: the limit is checked when they return.
    pub(crate) exempt: Cell<u32>,
}

impl Memory {
    /// True when little is left: garbage should go before the next request wants some.
    pub(crate) fn is_scarce(&self) -> bool {
        self.used.get() > self.limit.get() / 8 * 7
    }

    fn is_exceeded(&self) -> bool {
        self.used.get() > self.limit.get()
    }
}

/// Tells LuaJIT's collector which cdata are tuple objects.
pub(crate) fn set_tuple_type(type_id: u32) {
    // SAFETY: sets a number that is read when tuple objects are made or freed.
    unsafe { ljshim_set_tuple_type(type_id) }
}

/// LuaJIT wants no more: what needs more it aligns itself.
const ALIGNMENT: usize = 8;

/// The allocator: the system's with a limit.
unsafe extern "C" fn allocate(data: *mut c_void, block: *mut c_void, old: usize, new: usize) -> *mut c_void {
    use std::alloc::{Layout, alloc, dealloc, realloc};
    // SAFETY: `data` is the leaked `Memory` of this state.
    let memory = unsafe { &*data.cast::<Memory>() };
    let layout = |size| Layout::from_size_align(size, ALIGNMENT).ok();
    let used = memory.used.get();
    if new == 0 {
        if let (false, Some(layout)) = (block.is_null() || old == 0, layout(old)) {
            memory.used.set(used - old);
            // SAFETY: made below with this size.
            unsafe { dealloc(block.cast(), layout) };
        }
        return std::ptr::null_mut();
    }
    let old = if block.is_null() { 0 } else { old };
    if new > old && used + (new - old) > memory.limit.get() && memory.exempt.get() == 0 {
        return std::ptr::null_mut();
    }
    let Some(new_layout) = layout(new) else { return std::ptr::null_mut() };
    // SAFETY: sizes are not zero; `block` was made here with the old size.
    let result = unsafe {
        match layout(old) {
            Some(old_layout) if old > 0 => realloc(block.cast(), old_layout, new),
            _ => alloc(new_layout),
        }
    };
    if !result.is_null() {
        memory.used.set(used - old + new);
    }
    result.cast()
}

/// A new Lua state with the standard libraries and a limit of memory in bytes. Lives until the process ends.
pub(crate) fn new_state(limit: usize) -> Option<(State, &'static Memory)> {
    let memory: &'static Memory = Box::leak(Box::new(Memory { limit: Cell::new(limit), ..Memory::default() }));
    // SAFETY: the allocator keeps to the contract of lua_Alloc; its data lives for ever.
    unsafe {
        let raw = ffi::lua_newstate(allocate, std::ptr::from_ref(memory).cast_mut().cast());
        if raw.is_null() {
            return None;
        }
        ffi::luaL_openlibs(raw);
        Some((State(raw), memory))
    }
}

/// True from `interrupt` to `clear_interrupt`.
static IS_STOPPING: AtomicBool = AtomicBool::new(false);

const TOO_LONG: &str = "fiber slice is exceeded: the code ran too long without waiting";

/// Errors: the running code is to end. For functions of ours that may loop for long.
pub(crate) fn check_stopping() -> Result<(), Raise> {
    if IS_STOPPING.load(Ordering::Relaxed) { Err(TOO_LONG.into()) } else { Ok(()) }
}

/// Ends the Lua code that runs too long: from the next check of hooks on, every instruction raises an error until the outermost call of
/// the fiber has returned, so that no `pcall` can go on. Called by a signal handler on the transaction thread.
pub(crate) fn interrupt(raw: *mut lua_State) {
    IS_STOPPING.store(true, Ordering::Relaxed);
    // SAFETY: a store to an integer.
    unsafe { ljshim_set_stopping(1) };
    // SAFETY: LuaJIT documents lua_sethook as usable from signal handlers. The state lives until the process ends.
    unsafe { ffi::lua_sethook(raw, Some(stop_hook), ffi::LUA_MASKCOUNT | ffi::LUA_MASKCALL | ffi::LUA_MASKRET, 1) };
}

/// Has the Lua code that runs call `pause_hook` at its next instruction. Called by a signal handler on the transaction thread.
pub(crate) fn interrupt_briefly(raw: *mut lua_State) {
    if !IS_STOPPING.load(Ordering::Relaxed) {
        // SAFETY: as `interrupt`.
        unsafe { ffi::lua_sethook(raw, Some(pause_hook), ffi::LUA_MASKCOUNT, 1) };
    }
}

/// A script of another protocol has had the thread for long: others have their turn, and it goes on or is ended.
unsafe extern "C-unwind" fn pause_hook(raw: *mut lua_State, _activation: *mut ffi::lua_Debug) {
    // SAFETY: as `interrupt`; from here on the code runs as fast as before.
    unsafe { ffi::lua_sethook(raw, None, 0, 0) };
    // SAFETY: the state is the one that runs. Until `ljshim_enter_hook` nothing here raises an error, and others have their hooks.
    let vmstate = unsafe { ljshim_leave_hook(raw) };
    let is_over = State(raw).check_may_wait().is_ok() && crate::scripts::give_way();
    // SAFETY: as above.
    unsafe { ljshim_enter_hook(raw, vmstate) };
    if is_over {
        crate::watchdog::doom_running_slice();
        interrupt(raw);
        State(raw).push_str(TOO_LONG);
        // SAFETY: the message is on top; no destructor is alive.
        unsafe { ffi::lua_error(raw) };
    }
}

/// Takes an interruption back.
pub(crate) fn clear_interrupt(raw: *mut lua_State) {
    // SAFETY: as `interrupt`.
    unsafe {
        // Asked at the end of every call from outside: a look costs nothing, an exchange does.
        if IS_STOPPING.load(Ordering::Relaxed) {
            IS_STOPPING.store(false, Ordering::Relaxed);
            ljshim_set_stopping(0);
        }
        if ffi::lua_gethookmask(raw) != 0 {
            ffi::lua_sethook(raw, None, 0, 0);
        }
    }
}

/// Takes an interruption back that was meant for a slice which is over: it may have come while no Lua code ran in it any more.
pub(crate) fn clear_stale_interrupt(raw: *mut lua_State) {
    if IS_STOPPING.load(Ordering::Relaxed) && !crate::watchdog::is_doomed() {
        clear_interrupt(raw);
    }
}

unsafe extern "C-unwind" fn stop_hook(raw: *mut lua_State, _activation: *mut ffi::lua_Debug) {
    State(raw).push_str(TOO_LONG);
    // SAFETY: the message is on top; no destructor is alive.
    unsafe { ffi::lua_error(raw) };
}
