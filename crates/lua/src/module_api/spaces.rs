//! Spaces: names, writes, reads, scans; and transactions over them.
#![expect(unsafe_code, reason = "the boundary to modules in C: pointers and lengths that they give")]

use super::errors::set_last;
use super::{execute, give, space, status, text, value};
use crate::registry::{context, database};
use database::{Cursor, Error, Key, Operation, Result, ScanRequest};
use std::ffi::{c_char, c_int, c_void};
use storage::IteratorKind;
use tuple::{IndexId, msgpack};

/// What looking up a name gives if there is none.
const ID_NIL: u32 = 2_147_483_647;
/// The spaces and the indexes that a user may see, and the index of their names in both.
const VSPACE_ID: u32 = 281;
const VINDEX_ID: u32 = 289;
const INDEX_OF_NAMES: IndexId = IndexId(2);

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
