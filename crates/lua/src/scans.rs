//! The C functions under `box` that read rows.

use crate::api::{Outcome, buffer, id_at, push_found, space_at};
use crate::convert::{encode_key, encode_listed_key, is_null, push_u64, tuple_at};
use crate::registry::{context, database, registry};
use crate::state::{Raise, State};
use database::{After, Cursor, Error, ErrorCode, Key, Privileges, ScanRequest, Space};
use std::ffi::c_int;
use std::rc::Rc;
use storage::IteratorKind;
use tuple::{IndexId, Tuple};

/// What a read looks up in: the space, if it is there, and the number of the index. The key is refused before the space is.
type Place = (Result<Rc<Space>, Raise>, u32);

/// Reads where to look, and the key: spaces in memory take any table as a list, the others look at what it is.
fn place_and_key(state: State, key_index: c_int, key: &mut Vec<u8>) -> Result<Place, Raise> {
    let (space, index_id) = (space_at(state, 1), id_at(state, 2)?);
    match &space {
        Ok(space) if space.rows.memory().is_none() => encode_key(state, key_index, key)?,
        _ => encode_listed_key(state, key_index, key).map_err(in_words_of_memory)?,
    }
    Ok((space, index_id))
}

/// The error of what no notation has a form for, as Tarantool words it where it encodes without a C function.
pub(crate) fn in_words_of_memory(error: Raise) -> Raise {
    match error {
        Raise::Message(text) if text.starts_with("unsupported Lua type '") && !text.contains("cdata") => {
            Raise::Message(text.replacen("unsupported Lua type", "can not encode Lua type:", 1))
        }
        other => other,
    }
}

/// check_key(space, _, key): raises what a read with this key would
pub(crate) fn check_key(state: State) -> Outcome {
    let _place = place_and_key(state, 3, &mut buffer())?;
    Ok(0)
}

/// get(space, index, key)
pub(crate) fn get(state: State) -> Outcome {
    let mut key = buffer();
    let (space, index_id) = place_and_key(state, 3, &mut key)?;
    let space = space?;
    let result = database().get(&context(), &space, IndexId(index_id), Key::decode(&key)?)?;
    Ok(push_found(state, result))
}

/// get_for_update(space, index, key, seconds to wait at most or nil)
pub(crate) fn get_for_update(state: State) -> Outcome {
    let mut key = buffer();
    let (space, index_id) = place_and_key(state, 3, &mut key)?;
    let space = space?;
    state.check_may_wait()?;
    let timeout_ns = state.number(4).map(|seconds| (seconds * 1e9) as u64);
    let key = Key::decode(&key)?;
    let result = database().get_for_update(&context(), &space, IndexId(index_id), key, timeout_ns)?;
    Ok(push_found(state, result))
}

/// An iterator's code; nil means ALL for an empty key and EQ for any other.
fn iterator_at(state: State, index: c_int, key: &Key<'_>) -> Result<IteratorKind, Raise> {
    if state.is_nil(index) {
        return Ok(if key.part_count == 0 { IteratorKind::All } else { IteratorKind::Eq });
    }
    let code = state.check_number(index, "iterator")?;
    let kind = (code >= 0.0).then(|| IteratorKind::from_code(code as u64)).flatten();
    Ok(kind.ok_or_else(|| Error::illegal("Invalid iterator type"))?)
}

/// The place behind which a page begins: a position, or a row.
fn after_at<'a>(state: State, index: c_int, row: &'a mut Vec<u8>) -> Result<Option<After<'a>>, Raise> {
    if is_null(state, index) {
        return Ok(None);
    }
    if let Some(tuple) = tuple_at(state, index) {
        row.extend_from_slice(tuple.data());
        return Ok(Some(After::Row(row)));
    }
    if let Some(position) = state.bytes(index) {
        row.extend_from_slice(position);
        return Ok(Some(After::Position(row)));
    }
    encode_listed_key(state, index, row)?;
    Ok(Some(After::Row(row)))
}

/// select_page(space, index, iterator, key, offset, limit, after) -> rows, position
pub(crate) fn select_page(state: State) -> Outcome {
    state.check_may_wait()?;
    let (mut key, mut row) = (buffer(), Vec::new());
    let (space, index_id) = place_and_key(state, 4, &mut key)?;
    let key = Key::decode(&key)?;
    let kind = iterator_at(state, 3, &key)?;
    let space = space?;
    let offset = state.number(5).unwrap_or(0.0) as u64;
    let limit = state.number(6).unwrap_or(4_294_967_295.0) as u64;
    let after = after_at(state, 7, &mut row)?;
    let request = ScanRequest { index_id: IndexId(index_id), kind, key, offset, limit };
    let (rows, position) = database().select_page(&context(), &space, &request, after)?;
    push_rows(state, rows)?;
    match position.is_empty() {
        true => state.push_nil(),
        false => state.push_bytes(&position),
    }
    Ok(2)
}

/// tuple_position(space, index, row) -> position
pub(crate) fn tuple_position(state: State) -> Outcome {
    let (space, index_id) = (space_at(state, 1)?, id_at(state, 2)?);
    let mut row = Vec::new();
    let Some(After::Row(row)) = after_at(state, 3, &mut row)? else {
        return Err("Usage: index:tuple_pos(tuple)".into());
    };
    state.push_bytes(&database().position_of(&space, IndexId(index_id), row)?);
    Ok(1)
}

/// select(space, index, iterator, key, offset, limit)
pub(crate) fn select(state: State) -> Outcome {
    let mut key = buffer();
    let (space, index_id) = place_and_key(state, 4, &mut key)?;
    let key = Key::decode(&key)?;
    let kind = iterator_at(state, 3, &key)?;
    let space = space?;
    let offset = state.number(5).unwrap_or(0.0) as u64;
    let limit = state.number(6).unwrap_or(4_294_967_295.0) as u64;
    let request = ScanRequest { index_id: IndexId(index_id), kind, key, offset, limit };
    let rows = database().select_tuples(&context(), &space, &request)?;
    push_rows(state, rows)?;
    Ok(1)
}

/// Pushes a list of rows.
fn push_rows(state: State, rows: Vec<Tuple>) -> Result<(), Raise> {
    state.new_table(rows.len(), 0);
    let table = state.top();
    for (at, row) in rows.into_iter().enumerate() {
        if at % 4096 == 4095 {
            state.check_memory()?;
        }
        state.push_row(row.into_raw());
        state.raw_set_index(table, at as c_int + 1);
    }
    Ok(())
}

/// iterator(space, index, iterator, key) -> handle
pub(crate) fn iterator(state: State) -> Outcome {
    let mut key = buffer();
    let (space, index_id) = place_and_key(state, 4, &mut key)?;
    let key = Key::decode(&key)?;
    let kind = iterator_at(state, 3, &key)?;
    let space = space?;
    let cursor = database().cursor(&context(), &space, &ScanRequest::new(IndexId(index_id), kind, key))?;
    let handle = Box::into_raw(Box::new(cursor));
    registry().scans.borrow_mut().insert(handle.addr());
    state.push_pointer(handle.cast());
    Ok(1)
}

#[expect(unsafe_code, reason = "handles of scans are boxed pointers kept by one Lua object each")]
pub(crate) fn iterator_next(state: State) -> Outcome {
    let handle = state.pointer(1).cast::<Cursor>();
    if !registry().scans.borrow().contains(&handle.addr()) {
        return Ok(0);
    }
    // SAFETY: a handle that `iterator` has given and that was not closed.
    let Some(cursor) = (unsafe { handle.as_mut() }) else { return Ok(0) };
    if cursor.may_wait() {
        state.check_may_wait()?;
    }
    let found = cursor.next(&database(), &context())?;
    Ok(push_found(state, found))
}

#[expect(unsafe_code, reason = "handles of scans are boxed pointers kept by one Lua object each")]
pub(crate) fn iterator_close(state: State) -> Outcome {
    let scan = state.pointer(1).cast::<Cursor>();
    if registry().scans.borrow_mut().remove(&scan.addr()) {
        // SAFETY: a handle that `iterator` has given and that was not closed before.
        drop(unsafe { Box::from_raw(scan) });
    }
    Ok(0)
}

/// count(space, index, iterator, key)
pub(crate) fn count(state: State) -> Outcome {
    let mut key = buffer();
    let (space, index_id) = place_and_key(state, 4, &mut key)?;
    let key = Key::decode(&key)?;
    let kind = iterator_at(state, 3, &key)?;
    let space = space?;
    let count = database().count(&context(), &space, &ScanRequest::new(IndexId(index_id), kind, key))?;
    state.push_number(count as f64);
    Ok(1)
}

/// random(space, index, seed)
pub(crate) fn random(state: State) -> Outcome {
    let (space, index_id) = (space_at(state, 1)?, id_at(state, 2)?);
    let seed = state.number(3).unwrap_or(0.0) as u64;
    if space.rows.may_wait() {
        let (index, name) = (space.index_name(IndexId(index_id)), space.name());
        let arguments: [&dyn std::fmt::Display; 5] = [&index, &"TREE", &name, &space.def().engine, &"random()"];
        return Err(Error::new(ErrorCode::UnsupportedIndexFeature, &arguments).into());
    }
    database().check_space_access(&context(), &space, Privileges::READ)?;
    let found = database().random(&context(), &space, IndexId(index_id), seed)?;
    Ok(push_found(state, found))
}

/// size(space) -> rows, bytes
pub(crate) fn size(state: State) -> Outcome {
    let space = space_at(state, 1)?;
    let context = context();
    database().check_space_access(&context, &space, Privileges::READ)?;
    database().bring_in_place(&context)?;
    database().remember_all(&context, &space, IndexId::PRIMARY);
    // A number of rows, too, may be what a crash takes back.
    context.see(database().written(&space));
    let rows = match database().is_in_view(&context) && !space.rows.may_wait() {
        true => {
            database().count(&context, &space, &ScanRequest::new(IndexId::PRIMARY, IteratorKind::All, Key::EMPTY))?
        }
        false => space.rows.len(),
    };
    state.push_number(rows as f64);
    push_u64(state, space.rows.row_bytes());
    Ok(2)
}

/// index_size(space, index) -> bytes
pub(crate) fn index_size(state: State) -> Outcome {
    let (space, index_id) = (space_at(state, 1)?, id_at(state, 2)?);
    state.push_number(space.rows.index_bytes(IndexId(index_id)) as f64);
    Ok(1)
}
