//! The C functions under the module `key_def`: keys of rows outside of any index.
//!
//! A definition lives here and Lua has its number, so that what Lua's collector frees is one entry of a table. Parts may lead into a field by
//! a JSON path; indexes know no such parts, so the key is taken out of the row first and compared as a row of its own then.

use crate::convert::{encode_array, push_tuple, tuple_at};
use crate::registry::{database, registry};
use crate::state::{Function, Raise, State, TYPE_CDATA};
use database::{Error, ErrorCode};
use mlua_sys as ffi;
use std::ffi::c_int;
use std::rc::Rc;
use tuple::path::{self, Step};
use tuple::{FORMAT_ID_MAX, FieldType, KeyDef, KeyPart, Tuple, msgpack};

type Outcome = Result<c_int, Raise>;

/// Definitions that Lua may hold at once.
const KEY_DEFS_MAX: usize = 1 << 16;
/// Parts of one definition.
const PARTS_MAX: usize = 255;

struct Part {
    part: KeyPart,
    /// Where in the field the value is; the field itself if there is none.
    path: Option<String>,
}

/// One definition.
pub(crate) struct Definition {
    parts: Vec<Part>,
    /// Over rows.
    by_field: KeyDef,
    /// Over keys: part `n` is field `n`.
    by_part: KeyDef,
    has_paths: bool,
}

/// Who asks: the texts of what is wrong with a row differ.
#[derive(Clone, Copy, PartialEq)]
enum Asker {
    KeyDef,
    Merger,
}

impl Definition {
    fn new(parts: Vec<Part>) -> Definition {
        let by_field = KeyDef::new(parts.iter().map(|part| part.part.clone()).collect());
        let at_part = |(at, part): (usize, &Part)| KeyPart { field_no: at as u32, ..part.part.clone() };
        let by_part = KeyDef::new(parts.iter().enumerate().map(at_part).collect());
        let has_paths = parts.iter().any(|part| part.path.as_ref().is_some_and(|path| !path.is_empty()));
        Definition { parts, by_field, by_part, has_paths }
    }

    /// The value of a part in a checked row.
    fn value<'a>(&self, part: &Part, row: &'a [u8]) -> Option<&'a [u8]> {
        let field = tuple::field(row, part.part.field_no)?;
        match part.path.as_deref() {
            None | Some("") => Some(field),
            Some(path) => path::parse(path)?.iter().try_fold(field, |value, step| inner_value(value, step)),
        }
    }

    /// Errors: a part is absent or of another type.
    fn check(&self, row: &[u8], asker: Asker) -> Result<(), Raise> {
        for (at, part) in self.parts.iter().enumerate() {
            let value = self.value(part, row).filter(|value| !(part.part.is_nullable && *value == [0xc0]));
            let (number, expected) = (part.part.field_no + 1, part.part.field_type.name());
            let place = || match (&part.path, asker) {
                (Some(path), _) if !path.is_empty() => format!("[{number}]{path}"),
                (_, Asker::KeyDef) => format!("[{number}]"),
                (_, Asker::Merger) => number.to_string(),
            };
            match value {
                None if part.part.is_nullable => {}
                None => return Err(Error::new(ErrorCode::FieldMissing, &[&place()]).into()),
                Some(value) if part.part.field_type.accepts(value) => {}
                Some(_) if asker == Asker::Merger => {
                    return Err(Error::new(ErrorCode::FieldType, &[&place(), &expected]).into());
                }
                Some(_) => return Err(Error::new(ErrorCode::KeyPartType, &[&at, &expected]).into()),
            }
        }
        Ok(())
    }

    /// The key of a checked row, as an array.
    fn key(&self, row: &[u8]) -> Vec<u8> {
        let mut key = Vec::with_capacity(64);
        if !self.has_paths {
            self.by_field.extract_key(row, &mut key);
            return key;
        }
        msgpack::encode_array(&mut key, self.parts.len() as u32);
        for part in &self.parts {
            match self.value(part, row) {
                Some(value) => key.extend_from_slice(value),
                None => msgpack::encode_nil(&mut key),
            }
        }
        key
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> i32 {
        match self.has_paths {
            false => self.by_field.compare_rows(a, b) as i32,
            true => self.by_part.compare_rows(&self.key(a), &self.key(b)) as i32,
        }
    }
}

/// The value one step into another; nothing if it has none there.
fn inner_value<'a>(value: &'a [u8], step: &Step<'_>) -> Option<&'a [u8]> {
    let mut reader = msgpack::Reader::new(value);
    match step {
        Step::Index(index) => {
            let count = reader.read_array().ok()?;
            if *index >= count {
                return None;
            }
            for _ in 0..*index {
                reader.read_value().ok()?;
            }
            reader.read_value().ok()
        }
        Step::Key(wanted) => {
            let count = reader.read_map().ok()?;
            (0..count).find_map(|_| {
                let name = reader.read_value().ok()?;
                let inner = reader.read_value().ok()?;
                (msgpack::Reader::new(name).read_str() == Ok(*wanted)).then_some(inner)
            })
        }
        Step::Any => None,
    }
}

fn definition_at(state: State, index: c_int) -> Result<Rc<Definition>, Raise> {
    let number = state.check_number(index, "key definition")? as u64;
    let found = registry().key_defs.borrow().get(&number).cloned();
    found.ok_or_else(|| "no such key definition".into())
}

fn keep(state: State, definition: Definition) -> Outcome {
    if registry().key_defs.borrow().len() >= KEY_DEFS_MAX {
        state.collect_garbage();
    }
    let mut definitions = registry().key_defs.borrow_mut();
    if definitions.len() >= KEY_DEFS_MAX {
        return Err("too many key definitions".into());
    }
    // Numbers are not used twice: one that was freed cannot mean another.
    let number = registry().key_defs_made.get() + 1;
    registry().key_defs_made.set(number);
    definitions.insert(number, Rc::new(definition));
    state.push_number(number as f64);
    Ok(1)
}

/// key_def_new({{field number from 1, type, is_nullable, path, collation}...}) -> number
fn key_def_new(state: State) -> Outcome {
    let count = state.raw_length(1);
    if count > PARTS_MAX {
        return Err(format!("a key may have {PARTS_MAX} parts").into());
    }
    let mut parts = Vec::with_capacity(count);
    for at in 1..=count {
        state.raw_get_index(1, at as c_int);
        let table = state.top();
        let field = |name: &str| state.get_field(table, name);
        field("fieldno");
        let field_no = state.check_number(-1, "fieldno")? as u32 - 1;
        field("type");
        let field_type: FieldType =
            state.string(-1).and_then(|name| name.parse().ok()).ok_or("a type of fields is expected")?;
        field("is_nullable");
        let is_nullable = state.boolean(-1);
        field("path");
        let path = state.string(-1);
        field("collation");
        let collation = state.string(-1).and_then(|name| database().catalog.collation_by_name(&name));
        state.set_top(table - 1);
        parts.push(Part { part: KeyPart { field_no, field_type, is_nullable, collation }, path });
    }
    if parts.is_empty() {
        return Err("a key has a part".into());
    }
    keep(state, Definition::new(parts))
}

/// key_def_check_path(path) -> "good", "multikey" or "invalid"
fn key_def_check_path(state: State) -> Outcome {
    let path = state.bytes(1).unwrap_or_default();
    let text = std::str::from_utf8(path).ok();
    let is_good = text.is_some_and(|text| text.is_empty() || path::parse(text).is_some());
    // One that is good but for its stars leads to many values.
    let without_stars = text.map(|text| text.replace("[*]", "[1]"));
    let is_multikey = without_stars.is_some_and(|text| path::parse(&text).is_some());
    state.push_str(match (is_good, is_multikey) {
        (true, _) => "good",
        (false, true) => "multikey",
        (false, false) => "invalid",
    });
    Ok(1)
}

/// key_def_collation(name or number) -> name, number; or nothing
fn key_def_collation(state: State) -> Outcome {
    let catalog = &database().catalog;
    let found = match state.kind(1) {
        ffi::LUA_TNUMBER => catalog.collation(state.number(1).unwrap_or(-1.0) as u32),
        _ => state.string(1).and_then(|name| catalog.collation_by_name(&name)),
    };
    let Some(collation) = found else { return Ok(0) };
    state.push_str(collation.name());
    state.push_number(f64::from(collation.id()));
    Ok(2)
}

/// key_def_free(number)
fn key_def_free(state: State) -> Outcome {
    let number = state.check_number(1, "key definition")? as u64;
    registry().key_defs.borrow_mut().remove(&number);
    Ok(0)
}

/// key_def_merge(number, other number) -> number
fn key_def_merge(state: State) -> Outcome {
    let (first, second) = (definition_at(state, 1)?, definition_at(state, 2)?);
    let mut parts: Vec<Part> = Vec::new();
    for part in first.parts.iter().chain(&second.parts) {
        let collation = |part: &Part| part.part.collation.as_ref().map(|collation| collation.id());
        let is_there = parts.iter().any(|other| {
            other.part.field_no == part.part.field_no
                && other.path.as_deref().unwrap_or("") == part.path.as_deref().unwrap_or("")
                // Texts that are equal byte by byte are equal by every collation.
                && (collation(other).is_none() || collation(other) == collation(part))
        });
        if !is_there {
            parts.push(Part { part: part.part.clone(), path: part.path.clone() });
        }
    }
    if parts.len() > PARTS_MAX {
        return Err(format!("a key may have {PARTS_MAX} parts").into());
    }
    keep(state, Definition::new(parts))
}

/// key_def_parts(number) -> list of parts
fn key_def_parts(state: State) -> Outcome {
    let definition = definition_at(state, 1)?;
    state.new_table(definition.parts.len(), 0);
    let list = state.top();
    for (at, part) in definition.parts.iter().enumerate() {
        state.new_table(0, 5);
        let table = state.top();
        state.push_number(f64::from(part.part.field_no) + 1.0);
        state.set_field(table, "fieldno");
        state.push_str(part.part.field_type.name());
        state.set_field(table, "type");
        state.push_bool(part.part.is_nullable);
        state.set_field(table, "is_nullable");
        if let Some(path) = &part.path {
            state.push_str(path);
            state.set_field(table, "path");
        }
        if let Some(collation) = &part.part.collation {
            state.push_str(collation.name());
            state.set_field(table, "collation");
        }
        state.raw_set_index(list, at as c_int + 1);
    }
    Ok(1)
}

/// The bytes of a row: a tuple's own, or a table's.
enum Row {
    Tuple(Tuple),
    Table(Vec<u8>),
}

impl Row {
    fn at(state: State, index: c_int) -> Result<Row, Raise> {
        if let Some(tuple) = tuple_at(state, index) {
            return Ok(Row::Tuple(tuple));
        }
        let mut bytes = Vec::with_capacity(128);
        if !matches!(state.kind(index), ffi::LUA_TTABLE | TYPE_CDATA) {
            return Err(Error::new(ErrorCode::TupleNotArray, &[]).into());
        }
        encode_array(state, index, &mut bytes)?;
        Ok(Row::Table(bytes))
    }

    fn data(&self) -> &[u8] {
        match self {
            Row::Tuple(tuple) => tuple.data(),
            Row::Table(bytes) => bytes,
        }
    }
}

fn push_row(state: State, bytes: &[u8]) -> Outcome {
    let row =
        Tuple::new(database().loose_rows(), FORMAT_ID_MAX, bytes).map_err(|error| Raise::Message(error.to_string()))?;
    push_tuple(state, &row);
    Ok(1)
}

/// key_def_extract(number, row) -> key
fn key_def_extract(state: State) -> Outcome {
    let (definition, row) = (definition_at(state, 1)?, Row::at(state, 2)?);
    definition.check(row.data(), Asker::KeyDef)?;
    push_row(state, &definition.key(row.data()))
}

/// key_def_compare(number, row, row) -> -1, 0 or 1
fn key_def_compare(state: State) -> Outcome {
    let definition = definition_at(state, 1)?;
    let (a, b) = (Row::at(state, 2)?, Row::at(state, 3)?);
    definition.check(a.data(), Asker::KeyDef)?;
    definition.check(b.data(), Asker::KeyDef)?;
    state.push_number(f64::from(definition.compare(a.data(), b.data())));
    Ok(1)
}

/// key_def_compare_tuples(number, tuple, tuple) -> -1, 0 or 1: of rows that `key_def_check` has let pass
fn key_def_compare_tuples(state: State) -> Outcome {
    let definition = definition_at(state, 1)?;
    let (Some(a), Some(b)) = (tuple_at(state, 2), tuple_at(state, 3)) else { return Err("tuples are expected".into()) };
    state.push_number(f64::from(definition.compare(a.data(), b.data())));
    Ok(1)
}

/// key_def_check(number, row): raises what a merger says of a row that does not fit
fn key_def_check(state: State) -> Outcome {
    definition_at(state, 1)?.check(Row::at(state, 2)?.data(), Asker::Merger)?;
    Ok(0)
}

/// key_def_compare_with_key(number, row, key) -> -1, 0 or 1. Parts of the key beyond the definition's are passed over.
fn key_def_compare_with_key(state: State) -> Outcome {
    let definition = definition_at(state, 1)?;
    let (row, key) = (Row::at(state, 2)?, Row::at(state, 3)?);
    definition.check(row.data(), Asker::KeyDef)?;
    let mut reader = msgpack::Reader::new(key.data());
    let count = reader.read_array().map_err(|error| Raise::Message(error.to_string()))?;
    let count = count.min(definition.parts.len() as u32);
    let parts = reader.rest();
    for (at, part) in definition.parts.iter().enumerate().take(count as usize) {
        let value = reader.read_value().map_err(|error| Raise::Message(error.to_string()))?;
        if !(part.part.field_type.accepts(value) || part.part.is_nullable && value == [0xc0]) {
            return Err(Error::new(ErrorCode::KeyPartType, &[&at, &part.part.field_type.name()]).into());
        }
    }
    let order = match definition.has_paths {
        false => definition.by_field.compare_row_key(row.data(), parts, count),
        true => definition.by_part.compare_row_key(&definition.key(row.data()), parts, count),
    };
    state.push_number(f64::from(order as i32));
    Ok(1)
}

/// Functions of `box.internal` for key definitions.
pub(crate) const FUNCTIONS: &[(&str, Function)] = &[
    ("key_def_new", key_def_new),
    ("key_def_check_path", key_def_check_path),
    ("key_def_collation", key_def_collation),
    ("key_def_free", key_def_free),
    ("key_def_merge", key_def_merge),
    ("key_def_parts", key_def_parts),
    ("key_def_extract", key_def_extract),
    ("key_def_compare", key_def_compare),
    ("key_def_compare_tuples", key_def_compare_tuples),
    ("key_def_check", key_def_check),
    ("key_def_compare_with_key", key_def_compare_with_key),
];
