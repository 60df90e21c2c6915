//! The C functions under `box` that change rows, and transactions.

use crate::api::{Outcome, buffer, id_at, push_found, space_at};
use crate::convert::{encode_array, encode_key, tuple_at};
use crate::lua::sync_schema;
use crate::registry::{context, database, registry};
use crate::state::{Raise, State};
use database::{Context, Database, Error, ErrorCode, Operation, Savepoint, TxnIsolation, TxnOptions};
use mlua_sys as ffi;
use std::ffi::c_int;
use tuple::IndexId;

fn is_congested(database: &Database, context: &Context) -> bool {
    database.is_log_congested() || context.session.writes_disk.get() && database.is_disk_congested()
}

/// Pushes results so that a full log queue makes the procedure wait, as every write of Tarantool's does.
fn after_write(state: State, context: &Context) -> Result<(), Raise> {
    let database = database();
    if context.answers_wait && is_congested(&database, context) && !context.is_in_txn() {
        state.check_may_wait()?;
        database.submit();
        database.wait_durable(context.seen.get())?;
    }
    sync_schema(state);
    Ok(())
}

/// insert(space, tuple), replace(space, tuple)
fn write_row(state: State, is_insert: bool) -> Outcome {
    let mut row = buffer();
    encode_array(state, 2, &mut row)?;
    let space = space_at(state, 1)?;
    let operation = if is_insert { Operation::Insert { tuple: &row } } else { Operation::Replace { tuple: &row } };
    let context = context();
    let result = database().execute(&context, &space, operation)?;
    after_write(state, &context)?;
    Ok(push_found(state, result))
}

pub(crate) fn insert(state: State) -> Outcome {
    write_row(state, true)
}

pub(crate) fn replace(state: State) -> Outcome {
    write_row(state, false)
}

/// update(space, index, key, ops)
pub(crate) fn update_row(state: State) -> Outcome {
    let (mut key, mut ops) = (buffer(), buffer());
    encode_key(state, 3, &mut key)?;
    encode_ops(state, 4, &mut ops)?;
    let (space, index_id) = (space_at(state, 1)?, id_at(state, 2)?);
    let operation = Operation::Update { index_id: IndexId(index_id), key: &key, ops: &ops, index_base: 1 };
    let context = context();
    let result = database().execute(&context, &space, operation)?;
    after_write(state, &context)?;
    Ok(push_found(state, result))
}

/// Operations are a table or a tuple.
pub(crate) fn check_ops(state: State, index: c_int) -> Result<(), Raise> {
    if state.kind(index) != ffi::LUA_TTABLE && tuple_at(state, index).is_none() {
        return Err(Error::illegal("update operations must be an array {{op,..}, {op,..}}").into());
    }
    Ok(())
}

fn encode_ops(state: State, index: c_int, out: &mut Vec<u8>) -> Result<(), Raise> {
    check_ops(state, index)?;
    encode_array(state, index, out)
}

/// upsert(space, tuple, ops)
pub(crate) fn upsert(state: State) -> Outcome {
    let (mut row, mut ops) = (buffer(), buffer());
    encode_array(state, 2, &mut row)?;
    encode_ops(state, 3, &mut ops)?;
    let space = space_at(state, 1)?;
    let context = context();
    let result = database().execute(&context, &space, Operation::Upsert { tuple: &row, ops: &ops, index_base: 1 })?;
    after_write(state, &context)?;
    // There is one if a trigger has made a replacement of it.
    Ok(result.map_or(0, |row| push_found(state, Some(row))))
}

/// check_row(space, row) -> why the space would not take it, nil if it would
pub(crate) fn check_row(state: State) -> Outcome {
    let mut row = buffer();
    encode_array(state, 2, &mut row)?;
    match database().check_format(&space_at(state, 1)?, &row) {
        Ok(()) => state.push_nil(),
        Err(error) => state.push_str(error.message()),
    }
    Ok(1)
}

/// delete(space, index, key)
pub(crate) fn delete(state: State) -> Outcome {
    let mut key = buffer();
    encode_key(state, 3, &mut key)?;
    let (space, index_id) = (space_at(state, 1)?, id_at(state, 2)?);
    let context = context();
    let result = database().execute(&context, &space, Operation::Delete { index_id: IndexId(index_id), key: &key })?;
    after_write(state, &context)?;
    Ok(push_found(state, result))
}

pub(crate) fn truncate(state: State) -> Outcome {
    let space = space_at(state, 1)?;
    let context = context();
    database().truncate(&context, &space)?;
    Ok(0)
}

/// begin(timeout in seconds or nil, isolation level by name or number or nil)
pub(crate) fn begin(state: State) -> Outcome {
    let timeout_ns = state.number(1).map(|seconds| (seconds * 1e9) as u64);
    let named = state.string(2).map(|name| TxnIsolation::from_name(&name));
    let isolation = named.or_else(|| state.number(2).map(|code| TxnIsolation::from_code(code as u64)));
    let Some(isolation) = isolation.unwrap_or(Some(TxnIsolation::Default)) else {
        return Err(Error::illegal("txn_isolation must be one of box.txn_isolation_level (keys or values)").into());
    };
    database().begin_with(&context(), TxnOptions { timeout_ns, isolation, ..TxnOptions::default() })?;
    Ok(0)
}

pub(crate) fn commit(state: State) -> Outcome {
    let context = context();
    if !context.answers_wait {
        state.check_may_wait()?;
    }
    database().commit(&context)?;
    after_write(state, &context)?;
    Ok(0)
}

pub(crate) fn rollback(state: State) -> Outcome {
    database().rollback(&context())?;
    sync_schema(state);
    Ok(0)
}

pub(crate) fn is_in_txn(state: State) -> Outcome {
    state.push_bool(context().is_in_txn());
    Ok(1)
}

/// txn_id() -> number of the open transaction or nil
pub(crate) fn txn_id(state: State) -> Outcome {
    match database().txn_id(&context()) {
        Some(id) => state.push_number(id as f64),
        None => state.push_nil(),
    }
    Ok(1)
}

/// savepoint() -> handle
pub(crate) fn savepoint(state: State) -> Outcome {
    let savepoint = database().savepoint(&context(), None)?;
    let handle = Box::into_raw(Box::new(savepoint));
    registry().savepoints.borrow_mut().insert(handle.addr());
    state.push_pointer(handle.cast());
    Ok(1)
}

#[expect(unsafe_code, reason = "handles of savepoints are boxed pointers")]
pub(crate) fn rollback_to_savepoint(state: State) -> Outcome {
    let handle = state.pointer(1).cast::<Savepoint>();
    if !registry().savepoints.borrow().contains(&handle.addr()) {
        return Err(Error::new(ErrorCode::NoSuchSavepoint, &[]).into());
    }
    // SAFETY: a handle that `savepoint` has given and that was not closed.
    match unsafe { handle.as_ref() } {
        Some(savepoint) => {
            database().rollback_to_savepoint(&context(), savepoint)?;
            sync_schema(state);
            Ok(0)
        }
        None => Err(Error::new(ErrorCode::NoSuchSavepoint, &[]).into()),
    }
}

#[expect(unsafe_code, reason = "handles of savepoints are boxed pointers")]
pub(crate) fn savepoint_close(state: State) -> Outcome {
    let savepoint = state.pointer(1).cast::<Savepoint>();
    if registry().savepoints.borrow_mut().remove(&savepoint.addr()) {
        // SAFETY: a handle that `savepoint` has given and that was not closed before.
        drop(unsafe { Box::from_raw(savepoint) });
    }
    Ok(0)
}
