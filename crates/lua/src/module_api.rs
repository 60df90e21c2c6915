//! The functions that modules in C call (Tarantool's `module.h`), as far as they need rows, fibers or the log; `module_api.c` is the other half.
//!
//! The binary exports them by name (`exports.txt`), so that a `.so` that `require` loads finds them. They work on the transaction thread, for the
//! user of the running fiber, under the same rights as Lua. None raises: what fails returns -1 or no pointer and leaves an error behind, which
//! [`box_error_last`] gives and `luaT_error` raises. What they are given is the module's promise: pointers that point to what they say.
//!
//! A tuple that a function returns lives until the next one returns another, unless the module takes a reference (`box_tuple_ref`).
#![expect(unsafe_code, reason = "the boundary to modules in C: pointers and lengths that they give")]

use crate::convert::{push_tuple, tuple_at};
use crate::error::{push_error, take_error};
use crate::registry::{context, database, registry};
use crate::state::{State, lua_State};
use database::{Cursor, Error, ErrorCode, ErrorKind, Key, Operation, Place, Result, ScanRequest, Space};
use runtime::fiber::{self, FiberId, Wake};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::rc::Rc;
use storage::IteratorKind;
use tuple::{IndexId, SpaceId, Tuple, msgpack};

/// What looking up a name gives if there is none.
const ID_NIL: u32 = 2_147_483_647;
/// The spaces and the indexes that a user may see, and the index of their names in both.
const VSPACE_ID: u32 = 281;
const VINDEX_ID: u32 = 289;
const INDEX_OF_NAMES: IndexId = IndexId(2);
/// Rows of modules belong to no space.
const RUNTIME_FORMAT: u32 = tuple::FORMAT_ID_MAX;

/// An error with its texts as C reads them.
struct LastError {
    error: Error,
    kind: CString,
    message: CString,
}

/// A fiber of a module: what it runs, and what becomes of it.
#[derive(Default)]
struct ModuleFiber {
    /// Arguments of `fiber_start`, once it was called; null if it was woken instead.
    started: Cell<Option<*mut c_void>>,
    is_joinable: Cell<bool>,
    /// What its function returned.
    result: Cell<Option<c_int>>,
}

#[derive(Default)]
struct Module {
    last_error: RefCell<Option<Box<LastError>>>,
    /// The tuple returned last.
    last_tuple: RefCell<Option<Tuple>>,
    fibers: RefCell<HashMap<FiberId, Rc<ModuleFiber>>>,
}

thread_local! {
    static MODULE: Module = Module::default();
}

fn c_text(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}

fn set_last(error: Error) {
    let last = LastError { kind: c_text(error.kind_name()), message: c_text(error.message()), error };
    MODULE.with(|module| *module.last_error.borrow_mut() = Some(Box::new(last)));
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
        let before = MODULE.with(|module| module.last_tuple.replace(Some(row)));
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

// Errors --------------------------------------------------------------------------------------------------------------------------

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
    let error = MODULE.with(|module| module.last_error.borrow().as_ref().map(|last| last.error.clone()));
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
    MODULE.with(|module| match module.last_error.borrow().as_ref() {
        Some(last) => std::ptr::from_ref::<LastError>(last).cast_mut().cast(),
        None => std::ptr::null_mut(),
    })
}

/// Forgets the last error.
#[unsafe(no_mangle)]
extern "C" fn box_error_clear() {
    MODULE.with(|module| module.last_error.take());
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

// Tuples --------------------------------------------------------------------------------------------------------------------------

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

// Spaces --------------------------------------------------------------------------------------------------------------------------

/// The number in a field of the row of a view that its index of names finds: who asks finds what it may see.
fn number_in(view_id: u32, key: &[u8], field_no: u32) -> u32 {
    let find = || database().get(&context(), &space(view_id)?, INDEX_OF_NAMES, Key::decode(key)?);
    let number = find().ok().flatten().and_then(|row| msgpack::Reader::new(row.field(field_no)?).read_uint().ok());
    number.and_then(|number| u32::try_from(number).ok()).unwrap_or(ID_NIL)
}

/// The number of a space.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_space_id_by_name(name: *const c_char, length: u32) -> u32 {
    let mut key = vec![0x91];
    msgpack::encode_str(&mut key, text(name, length).as_bytes());
    number_in(VSPACE_ID, &key, 0)
}

/// The number of an index.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_index_id_by_name(space_id: u32, name: *const c_char, length: u32) -> u32 {
    let mut key = vec![0x92];
    msgpack::encode_uint(&mut key, u64::from(space_id));
    msgpack::encode_str(&mut key, text(name, length).as_bytes());
    number_in(VINDEX_ID, &key, 1)
}

/// Inserts a row.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_insert(id: u32, start: *const c_char, end: *const c_char, result: *mut *mut c_void) -> c_int {
    // SAFETY: the module's bytes.
    give(unsafe { value(start, end) }.and_then(|tuple| execute(id, Operation::Insert { tuple })), result)
}

/// Replaces a row.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_replace(id: u32, start: *const c_char, end: *const c_char, result: *mut *mut c_void) -> c_int {
    // SAFETY: the module's bytes.
    give(unsafe { value(start, end) }.and_then(|tuple| execute(id, Operation::Replace { tuple })), result)
}

/// Deletes a row.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_delete(
    id: u32,
    index_id: u32,
    key: *const c_char,
    key_end: *const c_char,
    result: *mut *mut c_void,
) -> c_int {
    // SAFETY: the module's bytes.
    let key = unsafe { value(key, key_end) };
    give(key.and_then(|key| execute(id, Operation::Delete { index_id: IndexId(index_id), key })), result)
}

/// Updates a row.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_update(
    id: u32,
    index_id: u32,
    key: *const c_char,
    key_end: *const c_char,
    ops: *const c_char,
    ops_end: *const c_char,
    index_base: c_int,
    result: *mut *mut c_void,
) -> c_int {
    // SAFETY: the module's bytes.
    let (key, ops) = unsafe { (value(key, key_end), value(ops, ops_end)) };
    let outcome = key.and_then(|key| {
        execute(
            id,
            Operation::Update {
                index_id: IndexId(index_id),
                key,
                ops: ops?,
                index_base: index_base.clamp(0, 1) as u32,
            },
        )
    });
    give(outcome, result)
}

/// Inserts or updates a row.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_upsert(
    id: u32,
    _index_id: u32,
    tuple: *const c_char,
    tuple_end: *const c_char,
    ops: *const c_char,
    ops_end: *const c_char,
    index_base: c_int,
    result: *mut *mut c_void,
) -> c_int {
    // SAFETY: the module's bytes.
    let (tuple, ops) = unsafe { (value(tuple, tuple_end), value(ops, ops_end)) };
    give(
        tuple.and_then(|tuple| {
            execute(id, Operation::Upsert { tuple, ops: ops?, index_base: index_base.clamp(0, 1) as u32 })
        }),
        result,
    )
}

/// Empties a space.
#[unsafe(no_mangle)]
extern "C" fn box_truncate(id: u32) -> c_int {
    status(space(id).and_then(|space| database().truncate(&context(), &space)))
}

/// Finds a row by its whole key.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_index_get(
    id: u32,
    index_id: u32,
    key: *const c_char,
    key_end: *const c_char,
    result: *mut *mut c_void,
) -> c_int {
    // SAFETY: the module's bytes.
    let key = unsafe { value(key, key_end) };
    let found = key.and_then(|key| database().get(&context(), &space(id)?, IndexId(index_id), Key::decode(key)?));
    give(found, result)
}

/// Begins a scan.
fn scan(id: u32, index_id: u32, kind: IteratorKind, key: &[u8]) -> Result<Cursor> {
    let request = ScanRequest::new(IndexId(index_id), kind, Key::decode(key)?);
    database().cursor(&context(), &space(id)?, &request)
}

/// The first row of a scan.
fn first(id: u32, index_id: u32, kind: IteratorKind, key: Result<&[u8]>, result: *mut *mut c_void) -> c_int {
    let found = key.and_then(|key| scan(id, index_id, kind, key)?.next(&database(), &context()));
    give(found, result)
}

/// The first row.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_index_min(
    id: u32,
    index_id: u32,
    key: *const c_char,
    key_end: *const c_char,
    result: *mut *mut c_void,
) -> c_int {
    // SAFETY: the module's bytes.
    first(id, index_id, IteratorKind::Ge, unsafe { value(key, key_end) }, result)
}

/// The last row.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_index_max(
    id: u32,
    index_id: u32,
    key: *const c_char,
    key_end: *const c_char,
    result: *mut *mut c_void,
) -> c_int {
    // SAFETY: the module's bytes.
    first(id, index_id, IteratorKind::Le, unsafe { value(key, key_end) }, result)
}

fn iterator_kind(code: c_int) -> Result<IteratorKind> {
    let kind = u64::try_from(code).ok().and_then(IteratorKind::from_code);
    kind.ok_or_else(|| Error::illegal("Invalid iterator type"))
}

/// Number of rows of a scan; -1 with an error.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_index_count(
    id: u32,
    index_id: u32,
    kind: c_int,
    key: *const c_char,
    key_end: *const c_char,
) -> isize {
    // SAFETY: the module's bytes.
    let key = unsafe { value(key, key_end) };
    let count = key.and_then(|key| {
        let request = ScanRequest::new(IndexId(index_id), iterator_kind(kind)?, Key::decode(key)?);
        database().count(&context(), &space(id)?, &request)
    });
    match count {
        Ok(count) => count as isize,
        Err(error) => status(Err(error)) as isize,
    }
}

/// Number of rows of a space; -1 with an error.
#[unsafe(no_mangle)]
extern "C" fn box_index_len(id: u32, index_id: u32) -> isize {
    let request = ScanRequest::new(IndexId(index_id), IteratorKind::All, Key::EMPTY);
    match space(id).and_then(|space| database().count(&context(), &space, &request)) {
        Ok(count) => count as isize,
        Err(error) => status(Err(error)) as isize,
    }
}

/// Begins a scan; no pointer with an error.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_index_iterator(
    id: u32,
    index_id: u32,
    kind: c_int,
    key: *const c_char,
    key_end: *const c_char,
) -> *mut c_void {
    // SAFETY: the module's bytes.
    let key = unsafe { value(key, key_end) };
    match key.and_then(|key| scan(id, index_id, iterator_kind(kind)?, key)) {
        Ok(cursor) => Box::into_raw(Box::new(cursor)).cast(),
        Err(error) => {
            set_last(error);
            std::ptr::null_mut()
        }
    }
}

/// The next row of a scan; no pointer at its end.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_iterator_next(iterator: *mut c_void, result: *mut *mut c_void) -> c_int {
    // SAFETY: what `box_index_iterator` gave.
    let cursor = unsafe { &mut *iterator.cast::<Cursor>() };
    give(cursor.next(&database(), &context()), result)
}

/// Ends a scan.
#[unsafe(no_mangle)]
unsafe extern "C" fn box_iterator_free(iterator: *mut c_void) {
    if !iterator.is_null() {
        // SAFETY: what `box_index_iterator` gave.
        drop(unsafe { Box::from_raw(iterator.cast::<Cursor>()) });
    }
}

// Transactions --------------------------------------------------------------------------------------------------------------------

/// True inside a transaction.
#[unsafe(no_mangle)]
extern "C" fn box_txn() -> bool {
    context().is_in_txn()
}

/// The number of the open transaction; -1 without one.
#[unsafe(no_mangle)]
extern "C" fn box_txn_id() -> i64 {
    database().txn_id(&context()).map_or(-1, |id| id as i64)
}

/// Begins a transaction.
#[unsafe(no_mangle)]
extern "C" fn box_txn_begin() -> c_int {
    status(database().begin(&context()))
}

/// Commits. May wait.
#[unsafe(no_mangle)]
extern "C" fn box_txn_commit() -> c_int {
    status(database().commit(&context()))
}

/// Rolls back.
#[unsafe(no_mangle)]
extern "C" fn box_txn_rollback() -> c_int {
    status(database().rollback(&context()))
}

// Fibers: a pointer to one is its number. -----------------------------------------------------------------------------------------

unsafe extern "C" {
    fn lycosa_call_fiber(function: *mut c_void, arguments: *mut c_void) -> c_int;
}

fn fiber_of(pointer: *mut c_void) -> FiberId {
    FiberId(pointer.addr() as u64)
}

fn module_fiber(id: FiberId) -> Option<Rc<ModuleFiber>> {
    MODULE.with(|module| module.fibers.borrow().get(&id).cloned())
}

/// The running fiber.
#[unsafe(no_mangle)]
extern "C" fn fiber_self() -> *mut c_void {
    std::ptr::without_provenance_mut(fiber::current().map_or(1, |id| id.0 as usize))
}

/// A fiber that waits until it is started; no pointer if there are too many.
#[unsafe(no_mangle)]
unsafe extern "C" fn fiber_new(name: *const c_char, function: *mut c_void) -> *mut c_void {
    let own = Rc::new(ModuleFiber::default());
    let creator = context();
    let new_context = Rc::new(database::Context::for_background(Rc::clone(&creator.session)));
    new_context.act_again(creator.acting());
    let inner = Rc::clone(&own);
    let function = function.expose_provenance();
    let made = fiber::try_spawn(&c_str(name), move || {
        fiber::set_local(Rc::clone(&new_context) as Rc<dyn Any>);
        while inner.started.get().is_none() && !fiber::is_cancelled() {
            if fiber::park() == Wake::Woken && inner.started.get().is_none() {
                inner.started.set(Some(std::ptr::null_mut()));
            }
        }
        let arguments = inner.started.get().unwrap_or(std::ptr::null_mut());
        // SAFETY: the module's function, and the arguments of a `fiber_start` that has not returned yet.
        let result = unsafe { lycosa_call_fiber(std::ptr::with_exposed_provenance_mut(function), arguments) };
        inner.result.set(Some(result));
        if new_context.is_in_txn() {
            database().abandon(&new_context);
        }
        if let (Some(id), false) = (fiber::current(), inner.is_joinable.get()) {
            MODULE.with(|module| module.fibers.borrow_mut().remove(&id));
        }
    });
    match made {
        Ok(id) => {
            MODULE.with(|module| module.fibers.borrow_mut().insert(id, own));
            std::ptr::without_provenance_mut(id.0 as usize)
        }
        Err(many) => {
            set_last(Error::new(ErrorCode::MemoryIssue, &[&many.stack_bytes, &"stacks", &"a fiber"]));
            std::ptr::null_mut()
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn lycosa_fiber_start(pointer: *mut c_void, arguments: *mut c_void) {
    let id = fiber_of(pointer);
    if let Some(own) = module_fiber(id) {
        own.started.set(Some(arguments));
    }
    fiber::wake(id);
    fiber::switch_to(id);
}

/// Lets the others run; goes on when woken.
#[unsafe(no_mangle)]
extern "C" fn fiber_yield() {
    fiber::park();
}

/// Lets the others run once.
#[unsafe(no_mangle)]
extern "C" fn fiber_reschedule() {
    fiber::yield_now();
}

/// Wakes a fiber.
#[unsafe(no_mangle)]
extern "C" fn fiber_wakeup(pointer: *mut c_void) {
    fiber::wake(fiber_of(pointer));
}

/// Cancels a fiber.
#[unsafe(no_mangle)]
extern "C" fn fiber_cancel(pointer: *mut c_void) {
    fiber::cancel(fiber_of(pointer));
}

/// True if the running fiber is cancelled.
#[unsafe(no_mangle)]
extern "C" fn fiber_is_cancelled() -> bool {
    fiber::is_cancelled()
}

/// Accepted without effect: a fiber here can always be cancelled.
#[unsafe(no_mangle)]
extern "C" fn fiber_set_cancellable(_: bool) -> bool {
    true
}

/// Whether somebody will wait for the end of a fiber.
#[unsafe(no_mangle)]
extern "C" fn fiber_set_joinable(pointer: *mut c_void, is_joinable: bool) {
    if let Some(own) = module_fiber(fiber_of(pointer)) {
        own.is_joinable.set(is_joinable);
    }
}

/// Waits for the end of a fiber; what its function returned.
#[unsafe(no_mangle)]
extern "C" fn fiber_join(pointer: *mut c_void) -> c_int {
    let id = fiber_of(pointer);
    let own = module_fiber(id);
    while fiber::status(id) != fiber::Status::Dead {
        if fiber::join(id) == Wake::Cancelled {
            break;
        }
    }
    MODULE.with(|module| module.fibers.borrow_mut().remove(&id));
    own.and_then(|own| own.result.get()).unwrap_or(-1)
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds.clamp(0.0, 1e9) * 1e9) as u64
}

/// Waits for a time.
#[unsafe(no_mangle)]
extern "C" fn fiber_sleep(seconds: f64) {
    fiber::sleep(nanoseconds(seconds));
}

/// Seconds of the steady clock.
#[unsafe(no_mangle)]
extern "C" fn fiber_clock() -> f64 {
    fiber::now_ns() as f64 / 1e9
}

/// Microseconds of the steady clock.
#[unsafe(no_mangle)]
extern "C" fn fiber_clock64() -> u64 {
    fiber::now_ns() / 1000
}

/// Fibers that wait for something.
#[derive(Default)]
struct Waiting(RefCell<VecDeque<FiberId>>);

/// A condition.
#[unsafe(no_mangle)]
extern "C" fn fiber_cond_new() -> *mut c_void {
    Box::into_raw(Box::<Waiting>::default()).cast()
}

/// Ends a condition that nobody waits for.
#[unsafe(no_mangle)]
unsafe extern "C" fn fiber_cond_delete(cond: *mut c_void) {
    // SAFETY: what `fiber_cond_new` gave.
    drop(unsafe { Box::from_raw(cond.cast::<Waiting>()) });
}

/// Wakes one who waits.
#[unsafe(no_mangle)]
unsafe extern "C" fn fiber_cond_signal(cond: *mut c_void) {
    // SAFETY: what `fiber_cond_new` gave.
    let first = unsafe { &*cond.cast::<Waiting>() }.0.borrow_mut().pop_front();
    if let Some(id) = first {
        fiber::wake(id);
    }
}

/// Wakes all who wait.
#[unsafe(no_mangle)]
unsafe extern "C" fn fiber_cond_broadcast(cond: *mut c_void) {
    // SAFETY: what `fiber_cond_new` gave.
    let waiting = unsafe { &*cond.cast::<Waiting>() }.0.take();
    waiting.into_iter().for_each(fiber::wake);
}

/// Waits for a condition; -1 if the time is over or the fiber is cancelled.
#[unsafe(no_mangle)]
unsafe extern "C" fn fiber_cond_wait_timeout(cond: *mut c_void, seconds: f64) -> c_int {
    // SAFETY: what `fiber_cond_new` gave.
    let waiting = unsafe { &*cond.cast::<Waiting>() };
    let Some(id) = fiber::current() else { return -1 };
    waiting.0.borrow_mut().push_back(id);
    let wake = fiber::park_until((seconds < 1e9).then(|| fiber::now_ns().saturating_add(nanoseconds(seconds))));
    if wake == Wake::Woken {
        return 0;
    }
    waiting.0.borrow_mut().retain(|other| *other != id);
    status(Err(match wake {
        Wake::Cancelled => Error::raw(0, ErrorKind::Lua, "fiber is cancelled"),
        _ => Error::new(ErrorCode::Timeout, &[]),
    }))
}

/// Waits for a condition.
#[unsafe(no_mangle)]
unsafe extern "C" fn fiber_cond_wait(cond: *mut c_void) -> c_int {
    // SAFETY: as above.
    unsafe { fiber_cond_wait_timeout(cond, f64::INFINITY) }
}

// Descriptors and the log ---------------------------------------------------------------------------------------------------------

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
