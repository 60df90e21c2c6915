//! The C functions under tuple objects.

use crate::convert::{encode, encode_array, push_bytes_value, push_tuple, tuple_at};
use crate::registry::{database, registry};
use crate::scans::in_words_of_memory;
use crate::state::{Function, Raise, State};
use crate::statements::check_ops;
use mlua_sys as ffi;
use std::ffi::c_int;
use std::rc::Rc;
use tuple::{Tuple, msgpack, update};

type Outcome = Result<c_int, Raise>;

/// The format of tuples that belong to no space.
const RUNTIME_FORMAT: u32 = tuple::FORMAT_ID_MAX;

/// tuple_format(tuple) -> list of declared fields
fn tuple_format(state: State) -> Outcome {
    let tuple = tuple_argument(state, 1)?;
    state.new_table(0, 0);
    let list = state.top();
    if let Some(format) = format_of(&tuple) {
        for (at, field) in format.fields().iter().enumerate() {
            state.new_table(0, 3);
            let table = state.top();
            state.push_str(&field.name);
            state.set_field(table, "name");
            state.push_str(field.field_type.name());
            state.set_field(table, "type");
            if field.is_nullable {
                state.push_bool(true);
                state.set_field(table, "is_nullable");
            }
            state.raw_set_index(list, at as c_int + 1);
        }
    }
    Ok(1)
}

fn format_of(tuple: &Tuple) -> Option<Rc<tuple::Format>> {
    database().catalog.format(tuple.format_id())
}

fn tuple_argument(state: State, index: c_int) -> Result<Tuple, Raise> {
    tuple_at(state, index)
        .ok_or_else(|| Raise::Message(format!("Invalid argument (tuple expected, got {})", state.kind_name(index))))
}

/// tuple_new(value)
fn tuple_new(state: State) -> Outcome {
    let mut row = Vec::new();
    encode_array(state, 1, &mut row)?;
    let format = RUNTIME_FORMAT;
    let tuple = Tuple::new(database().loose_rows(), format, &row).map_err(|error| Raise::Message(error.to_string()))?;
    push_tuple(state, &tuple);
    Ok(1)
}

/// tuple_field(tuple, number) -> value, or nothing if there is no such field
fn tuple_field(state: State) -> Outcome {
    let tuple = tuple_argument(state, 1)?;
    push_numbered(state, &tuple)
}

/// The field whose number is at 2.
fn push_numbered(state: State, tuple: &Tuple) -> Outcome {
    let number = state.number(2).unwrap_or(0.0);
    match (number >= 1.0).then(|| tuple.field(number as u32 - 1)).flatten() {
        Some(field) => {
            push_bytes_value(state, field)?;
            Ok(1)
        }
        None => Ok(0),
    }
}

/// tuple_index(tuple, key): what `tuple[key]` gives. A field's name goes before a method's; by name, a null is plain nil.
fn tuple_index(state: State) -> Outcome {
    let tuple = tuple_argument(state, 1)?;
    match state.kind(2) {
        ffi::LUA_TNUMBER => return push_numbered(state, &tuple),
        ffi::LUA_TSTRING => {
            if let Some(field_no) = named_field(state, tuple.format_id()) {
                if let Some(field) = tuple.field(field_no).filter(|field| *field != [0xc0]) {
                    push_bytes_value(state, field)?;
                    return Ok(1);
                }
            } else if state.bytes(2).is_some_and(|name| name.iter().any(|byte| matches!(byte, b'.' | b'['))) {
                let name = state.string(2).unwrap_or_default();
                let count = push_path(state, &tuple, &name, format_of(&tuple).as_deref())?;
                if count > 0 {
                    return Ok(count);
                }
            }
        }
        _ => {}
    }
    state.push_ref(registry().tuple_methods.get());
    let methods = state.top();
    state.push_value(2);
    state.raw_get(methods);
    Ok(1)
}

/// The number (from 0) of the field whose name is at 2.
///
/// Names are looked up in Lua tables, one for each format: Lua's strings are equal when their addresses are, so nothing is hashed or
/// compared. The tables are made when they are first wanted and thrown away when the schema changes.
fn named_field(state: State, format_id: u32) -> Option<u32> {
    if format_id == RUNTIME_FORMAT {
        return None;
    }
    let (registry, database) = (registry(), database());
    let version = database.catalog.schema_version();
    if registry.field_numbers_version.replace(version) != version || registry.field_numbers.get() == 0 {
        if registry.field_numbers.get() != 0 {
            state.drop_ref(registry.field_numbers.get());
        }
        state.new_table(0, 0);
        registry.field_numbers.set(state.make_ref());
    }
    let top = state.top();
    state.push_ref(registry.field_numbers.get());
    state.raw_get_index(top + 1, format_id as c_int);
    if state.is_nil(-1) {
        state.pop(1);
        let Some(format) = database.catalog.format(format_id) else {
            state.set_top(top);
            return None;
        };
        state.new_table(0, format.fields().len());
        for (at, field) in format.fields().iter().enumerate() {
            state.push_number(at as f64);
            state.set_field(top + 2, &field.name);
        }
        state.push_value(top + 2);
        state.raw_set_index(top + 1, format_id as c_int);
    }
    state.push_value(2);
    state.raw_get(top + 2);
    let number = state.number(-1);
    state.set_top(top);
    number.map(|number| number as u32)
}

/// A JSON path into a tuple.
fn push_path(state: State, tuple: &Tuple, text: &str, format: Option<&tuple::Format>) -> Outcome {
    use tuple::path::Step;
    let Some(steps) = tuple::path::parse(text) else { return Ok(0) };
    let first = match &steps[0] {
        Step::Index(index) => Some(*index),
        Step::Key(name) => std::str::from_utf8(name).ok().zip(format).and_then(|(name, format)| format.field_no(name)),
        Step::Any => None,
    };
    let Some(mut value) = first.and_then(|field_no| tuple.field(field_no)) else { return Ok(0) };
    for step in &steps[1..] {
        let mut reader = msgpack::Reader::new(value);
        let found = match step {
            Step::Index(index) => reader.read_array().ok().filter(|count| index < count).and_then(|_| {
                for _ in 0..*index {
                    reader.read_value().ok()?;
                }
                reader.read_value().ok()
            }),
            Step::Key(key) => {
                let count = reader.read_map().unwrap_or(0);
                (0..count).find_map(|_| {
                    let name = reader.read_value().ok()?;
                    let inner = reader.read_value().ok()?;
                    (msgpack::Reader::new(name).read_str() == Ok(*key)).then_some(inner)
                })
            }
            Step::Any => None,
        };
        match found {
            Some(inner) => value = inner,
            None => return Ok(0),
        }
    }
    push_bytes_value(state, value)?;
    Ok(1)
}

/// tuple_table(tuple, from, to) -> table of the fields
fn tuple_table(state: State) -> Outcome {
    let tuple = tuple_argument(state, 1)?;
    push_bytes_value(state, tuple.data())?;
    Ok(1)
}

fn tuple_text(state: State) -> Outcome {
    let tuple = tuple_argument(state, 1)?;
    let mut text = String::new();
    msgpack::format_value(tuple.data(), &mut text);
    state.push_str(&text);
    Ok(1)
}

/// tuple_info(tuple) -> number of fields, bytes
fn tuple_info(state: State) -> Outcome {
    let tuple = tuple_argument(state, 1)?;
    state.push_number(f64::from(tuple.field_count()));
    state.push_number(tuple.size() as f64);
    Ok(2)
}

/// tuple_names(tuple) -> names of the declared fields, in order
fn tuple_names(state: State) -> Outcome {
    let tuple = tuple_argument(state, 1)?;
    state.new_table(0, 0);
    let table = state.top();
    if let Some(format) = format_of(&tuple) {
        for (at, field) in format.fields().iter().enumerate() {
            state.push_str(&field.name);
            state.raw_set_index(table, at as c_int + 1);
        }
    }
    Ok(1)
}

/// tuple_update(tuple, ops, is_upsert)
fn tuple_update(state: State) -> Outcome {
    let tuple = tuple_argument(state, 1)?;
    let (mut ops, mut row) = (Vec::new(), Vec::new());
    check_ops(state, 2)?;
    encode(state, 2, &mut ops).map_err(in_words_of_memory)?;
    let format = format_of(&tuple);
    let apply = if state.boolean(3) { update::upsert } else { update::apply };
    apply(&ops, tuple.data(), format.as_deref(), 1, &mut row).map_err(|error| database().update_error(error))?;
    if let Some(format) = &format {
        format.check(&row).map_err(|error| database().row_error(error))?;
    }
    let updated = Tuple::new(database().loose_rows(), tuple.format_id(), &row)
        .map_err(|error| Raise::Message(error.to_string()))?;
    push_tuple(state, &updated);
    Ok(1)
}

/// Functions of `box.internal` for tuples.
pub(crate) const FUNCTIONS: &[(&str, Function)] = &[
    ("tuple_format", tuple_format),
    ("tuple_new", tuple_new),
    ("tuple_field", tuple_field),
    ("tuple_index", tuple_index),
    ("tuple_table", tuple_table),
    ("tuple_text", tuple_text),
    ("tuple_info", tuple_info),
    ("tuple_names", tuple_names),
    ("tuple_update", tuple_update),
];
