//! The C functions under `box`: statements, reads, transactions, the schema as tables. `modules/box.lua` makes the public API of them.

use crate::convert::{encode, encode_array, encode_key, is_null, push_bytes_value, tuple_at};
use crate::disk_statistics::{disk_statistics, index_statistics};
use crate::registry::{context, database, registry};
use crate::state::{Function, Raise, State};
use database::{
    ChangedRow, Context, DiskIterator, Error, ErrorCode, Key, Operation, ReplaceTrigger, Savepoint, Space, SpaceKind,
};
use mlua_sys as ffi;
use std::ffi::c_int;
use std::rc::Rc;
use storage::{IteratorKind, MemoryIterator};
use tuple::{Tuple, msgpack};

pub(crate) type Outcome = Result<c_int, Raise>;

pub(crate) fn space_at(state: State, index: c_int) -> Result<Rc<Space>, Raise> {
    let id = state.check_number(index, "space id")?;
    let space = database().space(id as u32)?;
    if space.kind == SpaceKind::Disk {
        // Whatever is done to it may have to be waited for.
        state.check_may_wait()?;
    }
    Ok(space)
}

pub(crate) fn id_at(state: State, index: c_int) -> Result<u32, Raise> {
    Ok(state.check_number(index, "id")? as u32)
}

/// For a key, a row or operations: most need no more.
fn buffer() -> Vec<u8> {
    Vec::with_capacity(128)
}

/// A row as a result; no result if there is none.
fn push_found(state: State, tuple: Option<Tuple>) -> c_int {
    match tuple {
        Some(tuple) => {
            state.push_row(tuple.into_raw());
            1
        }
        None => 0,
    }
}

/// A row as an argument; nil if there is none.
fn push_optional(state: State, tuple: Option<Tuple>) {
    if push_found(state, tuple) == 0 {
        state.push_nil();
    }
}

/// Pushes results so that a full log queue makes the procedure wait, as every write of Tarantool's does.
fn after_write(state: State) -> Result<(), Raise> {
    let database = database();
    let context = context();
    if context.answers_wait && database.is_log_congested() && !context.is_in_txn() {
        state.check_may_wait()?;
        database.submit();
        database.wait_durable(context.seen.get())?;
    }
    crate::lua::sync_schema(state);
    Ok(())
}

/// insert(space, tuple), replace(space, tuple)
fn write_row(state: State, is_insert: bool) -> Outcome {
    let space = space_at(state, 1)?;
    let mut row = buffer();
    encode_array(state, 2, &mut row)?;
    let operation = if is_insert { Operation::Insert { tuple: &row } } else { Operation::Replace { tuple: &row } };
    let result = database().execute(&context(), &space, operation)?;
    after_write(state)?;
    Ok(push_found(state, result))
}

fn insert(state: State) -> Outcome {
    write_row(state, true)
}

fn replace(state: State) -> Outcome {
    write_row(state, false)
}

/// update(space, index, key, ops)
fn update_row(state: State) -> Outcome {
    let (space, index_id) = (space_at(state, 1)?, id_at(state, 2)?);
    let (mut key, mut ops) = (buffer(), buffer());
    encode_key(state, 3, &mut key)?;
    encode_ops(state, 4, &mut ops)?;
    let operation = Operation::Update { index_id, key: &key, ops: &ops, index_base: 1 };
    let result = database().execute(&context(), &space, operation)?;
    after_write(state)?;
    Ok(push_found(state, result))
}

pub(crate) fn encode_ops(state: State, index: c_int, out: &mut Vec<u8>) -> Result<(), Raise> {
    if state.kind(index) != ffi::LUA_TTABLE {
        return Err(Error::illegal("update operations must be an array {{op,..}, {op,..}}").into());
    }
    encode(state, index, out)
}

/// upsert(space, tuple, ops)
fn upsert(state: State) -> Outcome {
    let space = space_at(state, 1)?;
    let (mut row, mut ops) = (buffer(), buffer());
    encode_array(state, 2, &mut row)?;
    encode_ops(state, 3, &mut ops)?;
    database().execute(&context(), &space, Operation::Upsert { tuple: &row, ops: &ops, index_base: 1 })?;
    after_write(state)?;
    Ok(0)
}

/// delete(space, index, key)
fn delete(state: State) -> Outcome {
    let (space, index_id) = (space_at(state, 1)?, id_at(state, 2)?);
    let mut key = buffer();
    encode_key(state, 3, &mut key)?;
    let result = database().execute(&context(), &space, Operation::Delete { index_id, key: &key })?;
    after_write(state)?;
    Ok(push_found(state, result))
}

/// get(space, index, key)
fn get(state: State) -> Outcome {
    let (space, index_id) = (space_at(state, 1)?, id_at(state, 2)?);
    let mut key = buffer();
    encode_key(state, 3, &mut key)?;
    let result = database().get(&context(), &space, index_id, Key::decode(&key)?)?;
    Ok(push_found(state, result))
}

/// An iterator's code; nil means ALL for an empty key and EQ for any other.
fn iterator_at(state: State, index: c_int, key: &Key<'_>) -> Result<IteratorKind, Raise> {
    if state.is_nil(index) {
        return Ok(if key.part_count == 0 { IteratorKind::All } else { IteratorKind::Eq });
    }
    let code = state.check_number(index, "iterator")?;
    Ok(IteratorKind::from_code(code as u64).ok_or_else(|| Error::illegal("Invalid iterator type"))?)
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
        match Tuple::new(database.arena(), format_id, row) {
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
fn select(state: State) -> Outcome {
    let (space, index_id) = (space_at(state, 1)?, id_at(state, 2)?);
    let mut key = buffer();
    encode_key(state, 4, &mut key)?;
    let key = Key::decode(&key)?;
    let kind = iterator_at(state, 3, &key)?;
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
fn iterator(state: State) -> Outcome {
    let (space, index_id) = (space_at(state, 1)?, id_at(state, 2)?);
    let mut key = buffer();
    encode_key(state, 4, &mut key)?;
    let key = Key::decode(&key)?;
    let kind = iterator_at(state, 3, &key)?;
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
    state.push_pointer(Box::into_raw(Box::new(scan)).cast());
    Ok(1)
}

#[expect(unsafe_code, reason = "handles of scans are boxed pointers kept by one Lua object each")]
fn iterator_next(state: State) -> Outcome {
    // SAFETY: the Lua side keeps the handle of `iterator` in an object and clears it when it is closed.
    let scan = unsafe { state.pointer(1).cast::<Scan>().as_mut() };
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
fn iterator_close(state: State) -> Outcome {
    let scan = state.pointer(1).cast::<Scan>();
    if !scan.is_null() {
        // SAFETY: closed once, by the finalizer of the Lua object that holds the handle.
        drop(unsafe { Box::from_raw(scan) });
    }
    Ok(0)
}

/// count(space, index, iterator, key)
fn count(state: State) -> Outcome {
    let (space, index_id) = (space_at(state, 1)?, id_at(state, 2)?);
    let mut key = buffer();
    encode_key(state, 4, &mut key)?;
    let key = Key::decode(&key)?;
    let kind = iterator_at(state, 3, &key)?;
    let count = database().count(&context(), &space, index_id, kind, key)?;
    state.push_number(count as f64);
    Ok(1)
}

/// random(space, index, seed)
fn random(state: State) -> Outcome {
    let (space, index_id) = (space_at(state, 1)?, id_at(state, 2)?);
    let seed = state.number(3).unwrap_or(0.0) as u64;
    if space.kind == SpaceKind::Disk {
        let (index, name) = (space.index_name(index_id), space.name());
        let arguments: [&dyn std::fmt::Display; 5] = [&index, &"TREE", &name, &space.def().engine, &"random()"];
        return Err(Error::new(ErrorCode::UnsupportedIndexFeature, &arguments).into());
    }
    database().check_space_access(&context(), &space, database::Privileges::READ)?;
    let context = context();
    database().resume(&context)?;
    context.see(database().written(&space));
    database().remember_all(&context, &space, index_id);
    let found = space.store.borrow().random(index_id, seed);
    Ok(push_found(state, found))
}

/// size(space) -> rows, bytes
fn size(state: State) -> Outcome {
    let space = space_at(state, 1)?;
    let context = context();
    database().check_space_access(&context, &space, database::Privileges::READ)?;
    database().resume(&context)?;
    database().remember_all(&context, &space, 0);
    // A number of rows, too, may be what a crash takes back.
    context.see(database().written(&space));
    state.push_number(space.len() as f64);
    crate::convert::push_u64(state, space.row_bytes());
    Ok(2)
}

/// index_size(space, index) -> bytes
fn index_size(state: State) -> Outcome {
    let (space, index_id) = (space_at(state, 1)?, id_at(state, 2)?);
    state.push_number(space.index_bytes(index_id) as f64);
    Ok(1)
}

fn truncate(state: State) -> Outcome {
    let space = space_at(state, 1)?;
    database().truncate(&context(), &space)?;
    Ok(0)
}

fn begin(_state: State) -> Outcome {
    database().begin(&context())?;
    Ok(0)
}

fn commit(state: State) -> Outcome {
    let context = context();
    if !context.answers_wait {
        state.check_may_wait()?;
    }
    database().commit(&context)?;
    after_write(state)?;
    Ok(0)
}

fn rollback(state: State) -> Outcome {
    database().rollback(&context())?;
    crate::lua::sync_schema(state);
    Ok(0)
}

fn is_in_txn(state: State) -> Outcome {
    state.push_bool(context().is_in_txn());
    Ok(1)
}

/// txn_id() -> number of the open transaction or nil
fn txn_id(state: State) -> Outcome {
    match database().txn_id(&context()) {
        Some(id) => state.push_number(id as f64),
        None => state.push_nil(),
    }
    Ok(1)
}

/// run_triggers(space, flag)
fn run_triggers(state: State) -> Outcome {
    space_at(state, 1)?.runs_triggers.set(state.boolean(2));
    Ok(0)
}

/// savepoint() -> handle
fn savepoint(state: State) -> Outcome {
    let savepoint = database().savepoint(&context(), None)?;
    state.push_pointer(Box::into_raw(Box::new(savepoint)).cast());
    Ok(1)
}

#[expect(unsafe_code, reason = "handles of savepoints are boxed pointers")]
fn rollback_to_savepoint(state: State) -> Outcome {
    // SAFETY: the Lua side hands over what `savepoint` gave.
    match unsafe { state.pointer(1).cast::<Savepoint>().as_ref() } {
        Some(savepoint) => {
            database().rollback_to_savepoint(&context(), savepoint)?;
            crate::lua::sync_schema(state);
            Ok(0)
        }
        None => Err(Error::new(ErrorCode::NoSuchSavepoint, &[]).into()),
    }
}

#[expect(unsafe_code, reason = "handles of savepoints are boxed pointers")]
fn savepoint_close(state: State) -> Outcome {
    let savepoint = state.pointer(1).cast::<Savepoint>();
    if !savepoint.is_null() {
        // SAFETY: closed once, by the finalizer of the object that holds the handle.
        drop(unsafe { Box::from_raw(savepoint) });
    }
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
        let thread = crate::registry::Thread::take();
        let state = thread.state;
        state.push_ref(self.reference);
        state.new_table(rows.len(), 0);
        for (at, row) in rows.iter().enumerate() {
            state.new_table(3, 0);
            state.push_number(f64::from(row.space_id));
            state.raw_set_index(3, 1);
            push_optional(state, row.old.clone());
            state.raw_set_index(3, 2);
            push_optional(state, row.new.clone());
            state.raw_set_index(3, 3);
            state.raw_set_index(2, at as c_int + 1);
        }
        if state.pcall(1, 0).is_err() {
            let error = crate::error::take_error(thread.state);
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

fn on_commit(state: State) -> Outcome {
    let callback = Callback::new(state, 1);
    database().on_commit(&context(), Box::new(move |_, rows| callback.call(rows)))?;
    Ok(0)
}

fn on_rollback(state: State) -> Outcome {
    let callback = Callback::new(state, 1);
    database().on_rollback(&context(), Box::new(move |_, rows| callback.call(rows)))?;
    Ok(0)
}

/// A replace trigger in Lua.
struct LuaTrigger {
    callback: Callback,
}

impl ReplaceTrigger for LuaTrigger {
    fn run(
        &self,
        context: &Context,
        old: Option<&Tuple>,
        new: Option<&Tuple>,
        space: &Rc<Space>,
        operation: &str,
    ) -> database::Result<Option<Tuple>> {
        let thread = crate::registry::Thread::take();
        let state = thread.state;
        let _ = context;
        state.push_ref(self.callback.reference);
        push_optional(state, old.cloned());
        push_optional(state, new.cloned());
        state.push_str(&space.name());
        state.push_str(operation);
        if state.pcall(4, ffi::LUA_MULTRET).is_err() {
            return Err(crate::error::take_error(state));
        }
        if state.top() == 0 {
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
fn set_triggers(state: State) -> Outcome {
    let space = space_at(state, 1)?;
    let is_before = state.boolean(2);
    let mut triggers: Vec<Rc<dyn ReplaceTrigger>> = Vec::new();
    for i in 1..=state.raw_length(3) {
        state.raw_get_index(3, i as c_int);
        let callback = Callback::new(state, state.top());
        state.pop(1);
        triggers.push(Rc::new(LuaTrigger { callback }));
    }
    let list = if is_before { &space.before_replace } else { &space.on_replace };
    *list.borrow_mut() = triggers;
    Ok(0)
}

/// spaces() -> list of {id, name, engine, field_count, is_local, temporary, index = {{id, name, type, unique, parts}}}
fn spaces(state: State) -> Outcome {
    let database = database();
    let spaces = database.catalog.spaces();
    state.new_table(spaces.len(), 0);
    let list = state.top();
    for (at, space) in spaces.iter().enumerate() {
        let def = space.def();
        state.new_table(0, 10);
        let table = state.top();
        state.push_number(f64::from(space.id));
        state.set_field(table, "id");
        state.push_str(&def.name);
        state.set_field(table, "name");
        state.push_str(&def.engine);
        state.set_field(table, "engine");
        state.push_number(f64::from(def.field_count));
        state.set_field(table, "field_count");
        state.push_bool(def.group_id == 1);
        state.set_field(table, "is_local");
        state.push_bool(def.is_temporary);
        state.set_field(table, "temporary");
        state.push_bool(space.has_index(0));
        state.set_field(table, "enabled");
        push_indexes(state, space);
        state.set_field(table, "indexes");
        state.raw_set_index(list, at as c_int + 1);
    }
    Ok(1)
}

fn push_disk_options(state: State, options: &storage::lsm::TreeOptions) {
    state.new_table(0, 5);
    let table = state.top();
    for (name, value) in [
        ("page_size", options.page_size as f64),
        ("range_size", options.range_size as f64),
        ("run_count_per_level", options.run_count_per_level as f64),
        ("run_size_ratio", options.run_size_ratio),
        ("bloom_fpr", options.bloom_fpr),
    ] {
        // A range size of 0 is none.
        if value != 0.0 {
            state.push_number(value);
            state.set_field(table, name);
        }
    }
}

fn push_indexes(state: State, space: &Space) {
    let indexes = space.indexes();
    state.new_table(indexes.len(), 0);
    let list = state.top();
    for (at, index) in indexes.iter().enumerate() {
        let store = space.store.borrow();
        let Some(def) = store.index_def(index.id) else { continue };
        state.new_table(0, 6);
        let table = state.top();
        state.push_number(f64::from(index.id));
        state.set_field(table, "id");
        state.push_str(&index.name);
        state.set_field(table, "name");
        state.push_str(if def.kind == storage::IndexKind::Tree { "TREE" } else { "HASH" });
        state.set_field(table, "type");
        state.push_bool(def.is_unique);
        state.set_field(table, "unique");
        state.new_table(index.parts.len(), 0);
        let parts = state.top();
        for (number, part) in index.parts.iter().enumerate() {
            state.new_table(0, 4);
            let table = state.top();
            state.push_number(f64::from(part.field_no) + 1.0);
            state.set_field(table, "fieldno");
            state.push_str(part.field_type.name());
            state.set_field(table, "type");
            state.push_bool(part.is_nullable);
            state.set_field(table, "is_nullable");
            if let Some(collation) = &part.collation {
                state.push_str(collation.name());
                state.set_field(table, "collation");
            }
            state.raw_set_index(parts, number as c_int + 1);
        }
        state.set_field(table, "parts");
        if space.disk().is_some() {
            push_disk_options(state, &index.tree);
            state.set_field(table, "options");
        }
        if let Some(sequence) = space.sequence.borrow().as_ref()
            && index.id == 0
        {
            state.push_number(f64::from(sequence.sequence.def().id));
            state.set_field(table, "sequence_id");
            state.push_number(f64::from(sequence.field_no) + 1.0);
            state.set_field(table, "sequence_fieldno");
        }
        state.raw_set_index(list, at as c_int + 1);
    }
}

fn sequence_next(state: State) -> Outcome {
    let value = database().sequence_next(&context(), id_at(state, 1)?)?;
    let mut bytes = Vec::new();
    msgpack::encode_int(&mut bytes, value);
    push_bytes_value(state, &bytes)?;
    Ok(1)
}

fn sequence_set(state: State) -> Outcome {
    let value = state.check_number(2, "value")?;
    database().sequence_set(&context(), id_at(state, 1)?, value as i64)?;
    Ok(0)
}

fn sequence_reset(state: State) -> Outcome {
    database().sequence_reset(&context(), id_at(state, 1)?)?;
    Ok(0)
}

fn sequence_current(state: State) -> Outcome {
    let id = id_at(state, 1)?;
    context().see(database().space(database::SEQUENCE_DATA_ID)?.last_write.get());
    let sequence = database().catalog.sequence(id).ok_or_else(|| Error::new(ErrorCode::NoSuchSequence, &[&id]))?;
    match sequence.value() {
        Some(value) => crate::convert::push_i64(state, value),
        None => return Err(Error::new(ErrorCode::SequenceNotStarted, &[&sequence.def().name]).into()),
    }
    Ok(1)
}

/// sequences() -> list of definitions
fn sequences(state: State) -> Outcome {
    let sequences = database().catalog.sequences();
    state.new_table(sequences.len(), 0);
    let list = state.top();
    for (at, sequence) in sequences.iter().enumerate() {
        let def = sequence.def();
        state.new_table(0, 8);
        let table = state.top();
        state.push_number(f64::from(def.id));
        state.set_field(table, "id");
        state.push_number(f64::from(def.owner));
        state.set_field(table, "uid");
        state.push_str(&def.name);
        state.set_field(table, "name");
        for (name, value) in [("step", def.step), ("min", def.min), ("max", def.max), ("start", def.start)] {
            if value.unsigned_abs() < 1 << 53 {
                state.push_number(value as f64);
            } else {
                crate::convert::push_i64(state, value);
            }
            state.set_field(table, name);
        }
        state.push_bool(def.is_cyclic);
        state.set_field(table, "cycle");
        state.push_number(0.0);
        state.set_field(table, "cache");
        state.raw_set_index(list, at as c_int + 1);
    }
    Ok(1)
}

/// functions() -> list of definitions
fn functions(state: State) -> Outcome {
    let functions = database().catalog.functions();
    state.new_table(functions.len(), 0);
    let list = state.top();
    for (at, function) in functions.iter().enumerate() {
        state.new_table(0, 8);
        let table = state.top();
        state.push_number(f64::from(function.id));
        state.set_field(table, "id");
        state.push_number(f64::from(function.owner));
        state.set_field(table, "uid");
        for (name, value) in [("name", &function.name), ("language", &function.language)] {
            state.push_str(value);
            state.set_field(table, name);
        }
        if !function.body.is_empty() {
            state.push_str(&function.body);
            state.set_field(table, "body");
        }
        for (name, value) in [
            ("setuid", function.is_setuid),
            ("is_deterministic", function.is_deterministic),
            ("is_sandboxed", function.is_sandboxed),
        ] {
            state.push_bool(value);
            state.set_field(table, name);
        }
        state.new_table(0, 2);
        let exports = state.top();
        for name in ["LUA", "SQL"] {
            state.push_bool(function.exports.iter().any(|export| export == name));
            state.set_field(exports, &name.to_lowercase());
        }
        state.set_field(table, "exports");
        state.raw_set_index(list, at as c_int + 1);
    }
    Ok(1)
}

/// check_function_access(id): raises 42 if the user may not execute it
fn check_function_access(state: State) -> Outcome {
    let id = id_at(state, 1)?;
    let database = database();
    if let Some(function) = database.catalog.function(id) {
        database.check_execute(&context(), &function.name, Some(&function))?;
    }
    Ok(0)
}

/// check_su(id): raises if the user may open no session
fn check_su(state: State) -> Outcome {
    database().check_session(id_at(state, 1)?)?;
    Ok(0)
}

fn session_exists(state: State) -> Outcome {
    let id = state.check_number(1, "id")? as u64;
    state.push_bool(database().session(id).is_some());
    Ok(1)
}

/// session_peer(id) -> address or nil
fn session_peer(state: State) -> Outcome {
    let id = state.check_number(1, "id")? as u64;
    match database().session(id) {
        None => return Err(Error::new(ErrorCode::SessionClosed, &[]).into()),
        Some(session) => match &session.peer {
            Some(peer) => state.push_str(peer),
            None => state.push_nil(),
        },
    }
    Ok(1)
}

/// set_session_triggers(name, whether there are any)
fn set_session_triggers(state: State) -> Outcome {
    let name = state.check_string(1, "name")?;
    let mut triggers = registry().session_triggers.borrow_mut();
    if state.boolean(2) {
        triggers.insert(name);
    } else {
        triggers.remove(&name);
    }
    Ok(0)
}

/// refresh_now(): `box.space` and its like show the schema
fn refresh_now(state: State) -> Outcome {
    crate::lua::sync_schema(state);
    Ok(0)
}

/// listen_address() -> text or nil
fn listen_address(state: State) -> Outcome {
    match registry().host.borrow().as_ref().and_then(|host| host.listen_address()) {
        Some(address) => state.push_str(&address),
        None => state.push_nil(),
    }
    Ok(1)
}

fn rotate_log(_state: State) -> Outcome {
    if let Some(host) = registry().host.borrow().clone() {
        host.rotate_log();
    }
    Ok(0)
}

/// recovery_report() -> {files, rows, bytes, cut_bytes}
fn recovery_report(state: State) -> Outcome {
    let Some(report) = database().recovery_report() else {
        state.push_nil();
        return Ok(1);
    };
    state.new_table(0, 4);
    let table = state.top();
    for (name, value) in [
        ("files", report.files as u64),
        ("rows", report.rows),
        ("bytes", report.bytes),
        ("cut_bytes", report.cut.map_or(0, |cut| cut.bytes)),
    ] {
        state.push_number(value as f64);
        state.set_field(table, name);
    }
    Ok(1)
}

fn reset_statistics(_state: State) -> Outcome {
    database().statistics.reset();
    if let Some(engine) = database().disk_engine() {
        engine.reset_statistics();
    }
    Ok(0)
}

fn snapshot(state: State) -> Outcome {
    state.check_may_wait()?;
    database().make_checkpoint()?;
    Ok(0)
}

/// error(code, arguments...) -> the text of a code with its holes filled
fn error_text(state: State) -> Outcome {
    let code = id_at(state, 1)?;
    let mut arguments = Vec::new();
    for index in 2..=state.top() {
        state.get_global("tostring");
        state.push_value(index);
        state.pcall(1, 1)?;
        arguments.push(state.string(-1).unwrap_or_default());
        state.pop(1);
    }
    let row = database::ERROR_TABLE.iter().find(|row| row.0 as u32 == code);
    let shown: Vec<&dyn std::fmt::Display> = arguments.iter().map(|text| text as &dyn std::fmt::Display).collect();
    match row {
        Some((_, _, text)) => state.push_str(&database::fill(text, &shown)),
        None => state.push_str("Unknown error"),
    }
    Ok(1)
}

/// error_template(code) -> the text of a code with its holes
fn error_template(state: State) -> Outcome {
    let code = id_at(state, 1)?;
    let row = database::ERROR_TABLE.iter().find(|row| row.0 as u32 == code);
    state.push_str(row.map_or("", |(_, _, text)| text));
    Ok(1)
}

/// error_codes() -> {NAME = code}
fn error_codes(state: State) -> Outcome {
    state.new_table(0, database::ERROR_TABLE.len());
    let table = state.top();
    for (code, name, _) in database::ERROR_TABLE {
        state.push_number(f64::from(*code as u32));
        state.set_field(table, name);
    }
    Ok(1)
}

/// session() -> id, user id, effective user id, kind, peer, sync
fn session(state: State) -> Outcome {
    let context = context();
    let session = &context.session;
    state.push_number(session.id as f64);
    state.push_number(f64::from(session.user.get()));
    state.push_number(f64::from(context.user.get()));
    state.push_str(session.kind.name());
    match &session.peer {
        Some(peer) => state.push_str(peer),
        None => state.push_nil(),
    }
    state.push_number(session.sync.get() as f64);
    state.push_bool(session.is_alive.get());
    Ok(7)
}

/// set_user(id, is_session): makes the context, or the whole session, another user's
fn set_user(state: State) -> Outcome {
    let id = id_at(state, 1)?;
    let context = context();
    context.user.set(id);
    if state.boolean(2) {
        context.session.user.set(id);
    }
    Ok(0)
}

/// user_by_name(name) -> id, kind; user_name(id) -> name
fn user_name(state: State) -> Outcome {
    let id = id_at(state, 1)?;
    state.push_str(&database().catalog.user_name(id));
    Ok(1)
}

fn password_hash(state: State) -> Outcome {
    use base64::Engine;
    let password = state.check_string(1, "password")?;
    let hash = database::password_hash(password.as_bytes());
    state.push_str(&base64::engine::general_purpose::STANDARD.encode(hash));
    Ok(1)
}

/// info() -> table
fn info(state: State) -> Outcome {
    let database = database();
    state.new_table(0, 16);
    let table = state.top();
    state.push_str(&database.instance_uuid());
    state.set_field(table, "uuid");
    state.push_str(&database.replicaset_uuid());
    state.set_field(table, "cluster_uuid");
    state.push_bool(database.config.borrow().read_only || database.state() != database::State::Running);
    state.set_field(table, "ro");
    state.push_number(database.vclock().get(1) as f64);
    state.set_field(table, "lsn");
    state.push_number(database.vclock().signature() as f64);
    state.set_field(table, "signature");
    state.push_number((database.uptime_ns() / 1_000_000_000) as f64);
    state.set_field(table, "uptime");
    state.push_str(match database.state() {
        database::State::Loading => "loading",
        database::State::Running => "running",
        database::State::LogFailed(_) => "log failed",
        database::State::Stopped => "stopped",
    });
    state.set_field(table, "status");
    state.push_number(database.catalog.schema_version() as f64);
    state.set_field(table, "schema_version");
    state.new_table(0, 2);
    let vclock = state.top();
    for (id, lsn) in database.vclock().components() {
        state.push_number(f64::from(id));
        state.push_number(lsn as f64);
        state.raw_set(vclock);
    }
    state.set_field(table, "vclock");
    let arena = database.arena();
    for (name, value) in [
        ("memory_used", arena.used() + arena.charged()),
        ("memory_limit", arena.limit()),
        ("memory_rows", arena.used()),
        ("memory_indexes", arena.charged()),
        ("memory_reserved", arena.reserved()),
        ("lua_kb", state.memory_kb()),
    ] {
        state.push_number(value as f64);
        state.set_field(table, name);
    }
    state.new_table(0, 10);
    let statistics = state.top();
    for (name, count) in database.statistics.all() {
        state.push_number(count as f64);
        state.set_field(statistics, name);
    }
    state.set_field(table, "statistics");
    Ok(1)
}

/// configure(options as a table of plain values) -> nil, or raises
fn configure(state: State) -> Outcome {
    let mut bytes = Vec::new();
    encode(state, 1, &mut bytes)?;
    let host = registry().host.borrow().clone();
    match host {
        Some(host) => host.configure(&bytes)?,
        None => return Err("box.cfg is not available here".into()),
    }
    Ok(0)
}

/// exit(code)
fn exit(state: State) -> Outcome {
    let code = match state.kind(1) {
        ffi::LUA_TBOOLEAN => i32::from(!state.boolean(1)),
        _ => state.number(1).unwrap_or(0.0) as i32,
    };
    let host = registry().host.borrow().clone();
    if let Some(host) = host {
        host.exit(code);
    }
    // The process ends in the next turn of the event loop; this fiber never goes on.
    loop {
        if runtime::fiber::current().is_none() {
            return Ok(0);
        }
        runtime::fiber::park();
    }
}

/// What `box.internal` offers.
pub(crate) const FUNCTIONS: &[(&str, Function)] = &[
    ("insert", insert),
    ("replace", replace),
    ("update", update_row),
    ("upsert", upsert),
    ("delete", delete),
    ("get", get),
    ("select", select),
    ("iterator", iterator),
    ("iterator_next", iterator_next),
    ("iterator_close", iterator_close),
    ("count", count),
    ("random", random),
    ("size", size),
    ("index_size", index_size),
    ("index_statistics", index_statistics),
    ("disk_statistics", disk_statistics),
    ("truncate", truncate),
    ("begin", begin),
    ("commit", commit),
    ("rollback", rollback),
    ("is_in_txn", is_in_txn),
    ("txn_id", txn_id),
    ("run_triggers", run_triggers),
    ("savepoint", savepoint),
    ("savepoint_close", savepoint_close),
    ("rollback_to_savepoint", rollback_to_savepoint),
    ("on_commit", on_commit),
    ("on_rollback", on_rollback),
    ("set_triggers", set_triggers),
    ("spaces", spaces),
    ("sequence_next", sequence_next),
    ("sequence_set", sequence_set),
    ("sequence_reset", sequence_reset),
    ("sequence_current", sequence_current),
    ("snapshot", snapshot),
    ("sequences", sequences),
    ("functions", functions),
    ("check_function_access", check_function_access),
    ("check_su", check_su),
    ("session_exists", session_exists),
    ("session_peer", session_peer),
    ("set_session_triggers", set_session_triggers),
    ("refresh_now", refresh_now),
    ("listen_address", listen_address),
    ("rotate_log", rotate_log),
    ("recovery_report", recovery_report),
    ("reset_statistics", reset_statistics),
    ("error_text", error_text),
    ("error_template", error_template),
    ("error_codes", error_codes),
    ("session", session),
    ("set_user", set_user),
    ("user_name", user_name),
    ("password_hash", password_hash),
    ("info", info),
    ("configure", configure),
    ("exit", exit),
];
