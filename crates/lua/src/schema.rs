//! The schema as Lua tables, from which `modules/schema.lua` makes `box.space` and its like, and sequences.

use crate::api::{Outcome, id_at};
use crate::convert::{push_bytes_value, push_i64};
use crate::registry::{context, database};
use crate::state::State;
use database::{Action, Error, ErrorCode, FieldRef, Function, Sequence, Space, SpaceDef};
use std::ffi::c_int;
use tuple::{IndexId, SpaceId, msgpack};

/// spaces() -> list of definitions
pub(crate) fn spaces(state: State) -> Outcome {
    let spaces = database().catalog.spaces();
    state.new_table(spaces.len(), 0);
    let list = state.top();
    for (at, space) in spaces.iter().enumerate() {
        push_space(state, space);
        state.raw_set_index(list, at as c_int + 1);
    }
    Ok(1)
}

/// space_definition(id) -> definition, or nil if there is none
pub(crate) fn space_definition(state: State) -> Outcome {
    match database().catalog.space(SpaceId(id_at(state, 1)?)) {
        Some(space) => push_space(state, &space),
        None => state.push_nil(),
    }
    Ok(1)
}

fn push_space(state: State, space: &Space) {
    let def = space.def();
    state.new_table(0, 10);
    let table = state.top();
    state.push_number(f64::from(space.id.0));
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
    state.push_bool(space.has_index(IndexId::PRIMARY));
    state.set_field(table, "enabled");
    push_indexes(state, space);
    state.set_field(table, "indexes");
    push_constraints(state, &def);
}

/// The constraints among the options of a space, in fields of the table at the top.
fn push_constraints(state: State, def: &SpaceDef) {
    let table = state.top();
    let checks: Vec<_> = def.checks.iter().filter(|check| check.field.is_none()).collect();
    if !checks.is_empty() {
        state.new_table(0, checks.len());
        let map = state.top();
        for check in checks {
            state.push_number(f64::from(check.function_id));
            state.set_field(map, &check.name);
        }
        state.set_field(table, "constraint");
    }
    let keys: Vec<_> = def.foreign_keys.iter().filter(|key| key.field.is_none()).collect();
    if keys.is_empty() {
        return;
    }
    state.new_table(0, keys.len());
    let map = state.top();
    for key in keys {
        state.new_table(0, 4);
        let one = state.top();
        state.push_number(f64::from(key.space.0));
        state.set_field(one, "space");
        state.new_table(0, key.pairs.len());
        let pairs = state.top();
        for (local, foreign) in &key.pairs {
            match foreign {
                FieldRef::Number(number) => state.push_number(f64::from(*number) + 1.0),
                FieldRef::Name(name) => state.push_str(name),
            }
            match local {
                FieldRef::Number(number) => state.raw_set_index(pairs, *number as c_int + 1),
                FieldRef::Name(name) => state.set_field(pairs, name),
            }
        }
        state.set_field(one, "field");
        for (name, action) in [("on_delete", key.on_delete), ("on_update", key.on_update)] {
            if action != Action::Restrict {
                state.push_str(action.name());
                state.set_field(one, name);
            }
        }
        state.set_field(map, &key.name);
    }
    state.set_field(table, "foreign_key");
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
        let Some(def) = space.index_def(index.id) else { continue };
        state.new_table(0, 6);
        let table = state.top();
        state.push_number(f64::from(index.id.0));
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

pub(crate) fn sequence_next(state: State) -> Outcome {
    let value = database().sequence_next(&context(), id_at(state, 1)?)?;
    let mut bytes = Vec::new();
    msgpack::encode_int(&mut bytes, value);
    push_bytes_value(state, &bytes)?;
    Ok(1)
}

pub(crate) fn sequence_set(state: State) -> Outcome {
    let value = state.check_number(2, "value")?;
    database().sequence_set(&context(), id_at(state, 1)?, value as i64)?;
    Ok(0)
}

pub(crate) fn sequence_reset(state: State) -> Outcome {
    database().sequence_reset(&context(), id_at(state, 1)?)?;
    Ok(0)
}

pub(crate) fn sequence_current(state: State) -> Outcome {
    let id = id_at(state, 1)?;
    context().see(database().space(database::SEQUENCE_DATA_ID)?.last_write.get());
    let sequence = database().catalog.sequence(id).ok_or_else(|| Error::new(ErrorCode::NoSuchSequence, &[&id]))?;
    match sequence.value() {
        Some(value) => push_i64(state, value),
        None => return Err(Error::new(ErrorCode::SequenceNotStarted, &[&sequence.def().name]).into()),
    }
    Ok(1)
}

/// sequences() -> list of definitions
pub(crate) fn sequences(state: State) -> Outcome {
    let sequences = database().catalog.sequences();
    state.new_table(sequences.len(), 0);
    let list = state.top();
    for (at, sequence) in sequences.iter().enumerate() {
        push_sequence(state, sequence);
        state.raw_set_index(list, at as c_int + 1);
    }
    Ok(1)
}

/// sequence_definition(id) -> definition, or nil if there is none
pub(crate) fn sequence_definition(state: State) -> Outcome {
    match database().catalog.sequence(id_at(state, 1)?) {
        Some(sequence) => push_sequence(state, &sequence),
        None => state.push_nil(),
    }
    Ok(1)
}

fn push_sequence(state: State, sequence: &Sequence) {
    let def = sequence.def();
    state.new_table(0, 8);
    let table = state.top();
    state.push_number(f64::from(def.id));
    state.set_field(table, "id");
    state.push_number(f64::from(def.owner));
    state.set_field(table, "uid");
    state.push_str(&def.name);
    state.set_field(table, "name");
    for (name, value) in
        [("step", def.step), ("min", def.min), ("max", def.max), ("start", def.start), ("cache", def.cache)]
    {
        if value.unsigned_abs() < 1 << 53 {
            state.push_number(value as f64);
        } else {
            push_i64(state, value);
        }
        state.set_field(table, name);
    }
    state.push_bool(def.is_cyclic);
    state.set_field(table, "cycle");
}

/// functions() -> list of definitions
pub(crate) fn functions(state: State) -> Outcome {
    let functions = database().catalog.functions();
    state.new_table(functions.len(), 0);
    let list = state.top();
    for (at, function) in functions.iter().enumerate() {
        push_function(state, function);
        state.raw_set_index(list, at as c_int + 1);
    }
    Ok(1)
}

/// function_definition(id) -> definition, or nil if there is none
pub(crate) fn function_definition(state: State) -> Outcome {
    match database().catalog.function(id_at(state, 1)?) {
        Some(function) => push_function(state, &function),
        None => state.push_nil(),
    }
    Ok(1)
}

fn push_function(state: State, function: &Function) {
    state.new_table(0, 8);
    let table = state.top();
    state.push_number(f64::from(function.id));
    state.set_field(table, "id");
    state.push_number(f64::from(function.owner));
    state.set_field(table, "uid");
    for (name, value) in [
        ("name", &function.name),
        ("language", &function.language),
        ("returns", &function.returns),
        ("aggregate", &function.aggregate),
    ] {
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
        ("is_multikey", function.is_multikey),
    ] {
        state.push_bool(value);
        state.set_field(table, name);
    }
    if !function.body.is_empty() {
        state.push_bool(function.is_sandboxed);
        state.set_field(table, "is_sandboxed");
    }
    state.new_table(0, 2);
    let exports = state.top();
    for name in ["LUA", "SQL"] {
        state.push_bool(function.exports.iter().any(|export| export == name));
        state.set_field(exports, &name.to_lowercase());
    }
    state.set_field(table, "exports");
}
