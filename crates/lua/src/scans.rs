//! The C functions under `box` that read rows.

use crate::api::{Outcome, buffer, id_at, push_found, space_at};
use crate::convert::{encode_key, encode_listed_key, push_u64};
use crate::registry::{context, database, registry};
use crate::state::{Raise, State};
use database::{Context, DiskIterator, Error, ErrorCode, Key, Privileges, Space, SpaceKind};
use std::ffi::c_int;
use std::rc::Rc;
use storage::{IteratorKind, MemoryIterator};
use tuple::Tuple;

/// What a read looks up in: the space, if it is there, and the number of the index. The key is refused before the space is.
type Place = (Result<Rc<Space>, Raise>, u32);

/// Reads where to look, and the key: spaces in memory take any table as a list, the others look at what it is.
fn place_and_key(state: State, key_index: c_int, key: &mut Vec<u8>) -> Result<Place, Raise> {
    let (space, index_id) = (space_at(state, 1), id_at(state, 2)?);
    match &space {
        Ok(space) if space.kind != SpaceKind::Memory => encode_key(state, key_index, key)?,
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
    let result = database().get(&context(), &space, index_id, Key::decode(&key)?)?;
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

/// Rows of a scan as tuples. Views have rows of no arena: they are copied.
fn collect(
    context: &Context,
    space: &Rc<Space>,
    index_id: u32,
    kind: IteratorKind,
    key: Key<'_>,
    offset: u64,
    limit: u64,
) -> Result<Vec<Tuple>, Raise> {
    let database = database();
    let mut rows = Vec::new();
    let mut failed = None;
    let format_id = space.format().id();
    if space.kind == SpaceKind::Memory {
        database.check_select(context, space, index_id, kind, key)?;
        if limit == 0 {
            return Ok(rows);
        }
        let (mut skip, mut left) = (offset, limit);
        space.store.borrow().scan_tuples(index_id, kind, key.parts, key.part_count, |row| {
            if skip > 0 {
                skip -= 1;
                return true;
            }
            rows.push(row);
            left -= 1;
            left > 0
        });
        let last = rows.last().filter(|_| left == 0);
        database.remember_scan(context, space, index_id, kind, key, last.map(Tuple::data));
        return Ok(rows);
    }
    database.select(context, space, index_id, kind, key, offset, limit, |row| {
        match Tuple::new(database.loose_rows(), format_id, row) {
            Ok(row) => rows.push(row),
            Err(error) => failed = Some(error),
        }
        failed.is_none()
    })?;
    match failed {
        Some(error) => Err(Raise::Message(error.to_string())),
        None => Ok(rows),
    }
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
    let rows = collect(&context(), &space, index_id, kind, key, offset, limit)?;
    state.new_table(rows.len(), 0);
    let table = state.top();
    for (at, row) in rows.into_iter().enumerate() {
        if at % 4096 == 4095 {
            state.check_memory()?;
        }
        state.push_row(row.into_raw());
        state.raw_set_index(table, at as c_int + 1);
    }
    Ok(1)
}

/// A suspended scan of `pairs`.
enum Scan {
    Memory(Rc<Space>, Box<MemoryIterator>),
    Disk(Box<DiskIterator>),
    Copied(std::vec::IntoIter<Tuple>),
}

/// iterator(space, index, iterator, key) -> handle
pub(crate) fn iterator(state: State) -> Outcome {
    let mut key = buffer();
    let (space, index_id) = place_and_key(state, 4, &mut key)?;
    let key = Key::decode(&key)?;
    let kind = iterator_at(state, 3, &key)?;
    let space = space?;
    let context = context();
    let scan = if space.kind == SpaceKind::Memory {
        database().check_select(&context, &space, index_id, kind, key)?;
        let iterator = MemoryIterator::new(index_id, kind, key.parts, key.part_count);
        Scan::Memory(space, Box::new(iterator))
    } else if space.kind == SpaceKind::Disk {
        database().check_select(&context, &space, index_id, kind, key)?;
        Scan::Disk(Box::new(DiskIterator::new(space, index_id, kind, key)))
    } else {
        Scan::Copied(collect(&context, &space, index_id, kind, key, 0, u64::MAX)?.into_iter())
    };
    let handle = Box::into_raw(Box::new(scan));
    registry().scans.borrow_mut().insert(handle.addr());
    state.push_pointer(handle.cast());
    Ok(1)
}

#[expect(unsafe_code, reason = "handles of scans are boxed pointers kept by one Lua object each")]
pub(crate) fn iterator_next(state: State) -> Outcome {
    let handle = state.pointer(1).cast::<Scan>();
    if !registry().scans.borrow().contains(&handle.addr()) {
        return Ok(0);
    }
    // SAFETY: a handle that `iterator` has given and that was not closed.
    let scan = unsafe { handle.as_mut() };
    let found = match scan {
        Some(Scan::Memory(space, iterator)) => database().next_row(&context(), space, iterator)?,
        Some(Scan::Disk(iterator)) => {
            state.check_may_wait()?;
            iterator.next(&database(), &context())?
        }
        Some(Scan::Copied(rows)) => rows.next(),
        None => None,
    };
    Ok(push_found(state, found))
}

#[expect(unsafe_code, reason = "handles of scans are boxed pointers kept by one Lua object each")]
pub(crate) fn iterator_close(state: State) -> Outcome {
    let scan = state.pointer(1).cast::<Scan>();
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
    let count = database().count(&context(), &space, index_id, kind, key)?;
    state.push_number(count as f64);
    Ok(1)
}

/// random(space, index, seed)
pub(crate) fn random(state: State) -> Outcome {
    let (space, index_id) = (space_at(state, 1)?, id_at(state, 2)?);
    let seed = state.number(3).unwrap_or(0.0) as u64;
    if space.kind == SpaceKind::Disk {
        let (index, name) = (space.index_name(index_id), space.name());
        let arguments: [&dyn std::fmt::Display; 5] = [&index, &"TREE", &name, &space.def().engine, &"random()"];
        return Err(Error::new(ErrorCode::UnsupportedIndexFeature, &arguments).into());
    }
    database().check_space_access(&context(), &space, Privileges::READ)?;
    let context = context();
    database().resume(&context)?;
    context.see(database().written(&space));
    database().remember_all(&context, &space, index_id);
    let found = space.store.borrow().random(index_id, seed);
    Ok(push_found(state, found))
}

/// size(space) -> rows, bytes
pub(crate) fn size(state: State) -> Outcome {
    let space = space_at(state, 1)?;
    let context = context();
    database().check_space_access(&context, &space, Privileges::READ)?;
    database().resume(&context)?;
    database().remember_all(&context, &space, 0);
    // A number of rows, too, may be what a crash takes back.
    context.see(database().written(&space));
    state.push_number(space.len() as f64);
    push_u64(state, space.row_bytes());
    Ok(2)
}

/// index_size(space, index) -> bytes
pub(crate) fn index_size(state: State) -> Outcome {
    let (space, index_id) = (space_at(state, 1)?, id_at(state, 2)?);
    state.push_number(space.index_bytes(index_id) as f64);
    Ok(1)
}
