//! Rows of `_index`.

use super::space::{all_parts, check_name, check_rows, find_collation, make_format};
use super::{check_change, is_recovering};
use crate::access::{ObjectType, Privileges};
use crate::catalog::{IndexInfo, Space, SpaceKind};
use crate::database::{Database, Garbage};
use crate::error::{Error, ErrorCode, Result};
use crate::fields::{Fields, as_bool, as_str, as_uint, for_each_entry};
use crate::session::Context;
use crate::txn::Effect;
use std::cell::RefCell;
use std::rc::Rc;
use storage::{IndexDef, IndexKind, StorageError};
use tuple::msgpack::{Kind, Reader};
use tuple::{FieldType, KeyDef, KeyPart, Tuple};

/// Number of indexes of a space.
const INDEX_MAX: u32 = 128;
/// Largest number of parts.
const PARTS_MAX: u32 = 255;
/// Largest field number.
const FIELD_NO_MAX: u64 = 0x7fff_fffe;

/// A row of `_index`, understood.
pub(crate) struct ParsedIndex {
    pub(crate) space_id: u32,
    pub(crate) info: IndexInfo,
    kind: IndexKind,
    is_unique: bool,
}

/// Reads a row of `_index`. Errors: 14, 107, 108, 13.
pub(crate) fn parse_index(database: &Database, row: &[u8]) -> Result<ParsedIndex> {
    let mut fields = Fields::new(row)?;
    let space_id = fields.uint()?;
    let id = fields.uint()?;
    let name = fields.str()?.to_string();
    let type_name = fields.str()?;
    let opts = fields.raw()?;
    let parts = fields.raw()?;
    let space = database.space(space_id)?;
    check_name(&name)?;
    let refuse = |why: &str| Error::new(ErrorCode::ModifyIndex, &[&name, &space.name(), &why]);
    let kind = match type_name.to_ascii_lowercase().as_str() {
        "tree" => IndexKind::Tree,
        "hash" => IndexKind::Hash,
        "bitset" | "rtree" => {
            return Err(Error::new(ErrorCode::Unsupported, &[&"Lycosa", &format!("{type_name} indexes yet")]));
        }
        _ => return Err(Error::new(ErrorCode::IndexType, &[&name, &space.name()])),
    };
    if id >= INDEX_MAX {
        return Err(refuse("index id too big"));
    }
    let mut is_unique = true;
    for_each_entry(opts, |key, value| {
        let wrong = |what: String| Error::new(ErrorCode::WrongIndexOptions, &[&4, &what]);
        match key {
            "unique" => is_unique = as_bool(value).ok_or_else(|| wrong("'unique' must be boolean".into()))?,
            "func" => {
                if !matches!(as_uint(value), Some(0)) {
                    return Err(Error::new(ErrorCode::Unsupported, &[&"Lycosa", &"functional indexes yet"]));
                }
            }
            "dimension"
            | "distance"
            | "page_size"
            | "range_size"
            | "run_count_per_level"
            | "run_size_ratio"
            | "bloom_fpr"
            | "lsn"
            | "stat"
            | "hint"
            | "sql" => {}
            other => return Err(wrong(format!("unexpected option '{other}'"))),
        }
        Ok(())
    })
    .map_err(|error| error.unwrap_or_else(|| Error::new(ErrorCode::WrongIndexOptions, &[&4, &"expected a map"])))?;
    let parts = parse_parts(database, &space, parts)?;
    if parts.is_empty() {
        return Err(refuse("part count must be positive"));
    }
    for (at, part) in parts.iter().enumerate() {
        if matches!(part.field_type, FieldType::Any | FieldType::Array | FieldType::Map) {
            let why = format!("field type '{}' is not supported", part.field_type.name());
            return Err(refuse(&why));
        }
        if parts[..at].iter().any(|other| other.field_no == part.field_no) {
            return Err(refuse("same key part is indexed twice"));
        }
        if id == 0 && part.is_nullable {
            return Err(Error::new(ErrorCode::NullablePrimary, &[&space.name()]));
        }
        if kind == IndexKind::Hash && part.is_nullable {
            return Err(Error::new(ErrorCode::Unsupported, &[&"HASH", &"nullable parts"]));
        }
        if let Some(field) = space.def().fields.get(part.field_no as usize)
            && !field.field_type.is_compatible_with(part.field_type)
        {
            return Err(Error::new(
                ErrorCode::FormatMismatchIndexPart,
                &[&format_args!("'{}'", field.name), &field.field_type.name(), &part.field_type.name()],
            ));
        }
    }
    if id == 0 && !is_unique {
        return Err(refuse("primary key must be unique"));
    }
    if kind == IndexKind::Hash && !is_unique {
        return Err(refuse("HASH index must be unique"));
    }
    Ok(ParsedIndex { space_id, info: IndexInfo { id, name, parts }, kind, is_unique })
}

/// Reads the parts: `[[0, 'unsigned'], ...]` or `[{field: 0, type: 'unsigned', ...}, ...]`. Errors: 107.
fn parse_parts(database: &Database, space: &Space, parts: &[u8]) -> Result<Vec<KeyPart>> {
    let wrong = |what: &str| Error::new(ErrorCode::WrongIndexParts, &[&what]);
    let mut reader = Reader::new(parts);
    let count = reader.read_array().map_err(|_| wrong("expected an array"))?;
    if count > PARTS_MAX {
        return Err(Error::new(ErrorCode::IndexFieldCountLimit, &[&PARTS_MAX]));
    }
    let mut result = Vec::new();
    for _ in 0..count {
        let raw = reader.read_value().map_err(|_| wrong("expected an array"))?;
        let mut field_no = None;
        let mut type_name = None;
        let mut collation = None;
        let mut is_nullable = None;
        match Reader::new(raw).kind() {
            Ok(Kind::Array) => {
                let mut part = Reader::new(raw);
                let length = part.read_array().map_err(|_| wrong("expected an array"))?;
                if length < 2 {
                    return Err(wrong("expected a non-empty array"));
                }
                field_no = Some(part.read_uint().map_err(|_| wrong("field id must be an integer"))?);
                let name = part.read_str().map_err(|_| wrong("field type must be a string"))?;
                type_name = std::str::from_utf8(name).ok();
            }
            Ok(Kind::Map) => {
                for_each_entry(raw, |key, value| {
                    match key {
                        "field" => {
                            field_no = Some(as_uint(value).ok_or_else(|| wrong("field id must be an integer"))?);
                        }
                        "type" => {
                            type_name = Some(as_str(value).ok_or_else(|| wrong("field type must be a string"))?);
                        }
                        "collation" => {
                            let id = as_uint(value).ok_or_else(|| wrong("collation must be an integer"))?;
                            collation = Some(find_collation(database, id as u32)?);
                        }
                        "is_nullable" => {
                            is_nullable = Some(as_bool(value).ok_or_else(|| wrong("'is_nullable' must be boolean"))?);
                        }
                        "path" => {
                            return Err(Error::new(
                                ErrorCode::Unsupported,
                                &[&"Lycosa", &"indexes over JSON paths yet"],
                            ));
                        }
                        _ => {}
                    }
                    Ok(())
                })
                .map_err(|error| error.unwrap_or_else(|| wrong("expected a map")))?;
            }
            _ => return Err(wrong("expected an array")),
        }
        let field_no = field_no.ok_or_else(|| wrong("field id must be an integer"))?;
        if field_no > FIELD_NO_MAX {
            return Err(wrong("field id is too big"));
        }
        let declared = space.def().fields.get(field_no as usize).cloned();
        let field_type = match type_name {
            Some(name) => name.parse().map_err(|_| wrong("unknown field type"))?,
            None => declared.as_ref().map_or(FieldType::Scalar, |field| field.field_type),
        };
        let mut part = KeyPart::new(field_no as u32, field_type);
        part.is_nullable = is_nullable.unwrap_or_else(|| declared.as_ref().is_some_and(|field| field.is_nullable));
        // Not the declared field's: an index says itself how it compares.
        part.collation = collation;
        result.push(part);
    }
    Ok(result)
}

/// Key and comparison definitions of all indexes of a space, given the parts of each.
fn engine_def(parsed_kind: IndexKind, info: &IndexInfo, is_unique: bool, primary: Option<&IndexInfo>) -> IndexDef {
    let key_def = Rc::new(KeyDef::new(info.parts.clone()));
    let compare_def = match primary {
        Some(primary) if info.id != 0 && (!is_unique || key_def.is_nullable()) => {
            Rc::new(KeyDef::merge(&key_def, &KeyDef::new(primary.parts.clone())))
        }
        _ => Rc::clone(&key_def),
    };
    IndexDef { id: info.id, kind: parsed_kind, is_unique, key_def, compare_def }
}

/// Adds an index to a space whose rows it then covers. For built-in spaces at start.
pub(crate) fn define_engine_indexes(database: &Database, space: &Rc<Space>, parsed: ParsedIndex) -> Result<()> {
    let primary = if parsed.info.id == 0 { None } else { space.index(0) };
    let def = engine_def(parsed.kind, &parsed.info, parsed.is_unique, primary.as_deref());
    space.store.borrow_mut().create_index(def).map_err(|error| database.storage_error(error, space))?;
    space.set_index(parsed.info.id, Some(Rc::new(parsed.info)));
    let format = make_format(database, &space.def(), &all_parts(space))?;
    database.catalog.set_format(space, format);
    Ok(())
}

pub(super) fn on_index(
    database: &Database,
    context: &Context,
    old: Option<&Tuple>,
    new: Option<&Tuple>,
) -> Result<Option<Effect>> {
    match (old, new) {
        (None, Some(new)) => create(database, context, new),
        (Some(old), None) => drop_index(database, context, old),
        (Some(old), Some(new)) => alter(database, context, old, new),
        (None, None) => Ok(None),
    }
}

fn check_alter(database: &Database, context: &Context, space: &Space) -> Result<()> {
    check_change(database, context, Privileges::ALTER, ObjectType::Space, space.id, space.owner(), &space.name())
}

fn create(database: &Database, context: &Context, new: &Tuple) -> Result<Option<Effect>> {
    let parsed = parse_index(database, new.data())?;
    let space = database.space(parsed.space_id)?;
    let id = parsed.info.id;
    if space.has_index(id) && is_recovering(database) {
        return Ok(None);
    }
    let mut wanted = Privileges::CREATE;
    if space.owner() == context.user.get() {
        wanted = Privileges::ALTER;
    }
    check_change(database, context, wanted, ObjectType::Space, space.id, space.owner(), &space.name())?;
    if let SpaceKind::View { .. } = space.kind
        && !is_recovering(database)
    {
        return Err(Error::new(ErrorCode::Unsupported, &[&"sysview", &"create index"]));
    }
    if id != 0 && !space.has_index(0) {
        return Err(Error::new(ErrorCode::AlterSpace, &[&space.name(), &"can not add a secondary key before primary"]));
    }
    let primary = if id == 0 { None } else { space.index(0) };
    let def = engine_def(parsed.kind, &parsed.info, parsed.is_unique, primary.as_deref());
    let mut parts = all_parts(&space);
    parts.extend(parsed.info.parts.iter().cloned());
    let format = make_format(database, &space.def(), &parts)?;
    if !space.store.borrow().is_empty() && !is_recovering(database) {
        check_rows(database, &space, &format)?;
    }
    let name = parsed.info.name.clone();
    let built = space.store.borrow_mut().create_index(def);
    built.map_err(|error| match error {
        StorageError::Duplicate { .. } => {
            Error::new(ErrorCode::TupleFound, &[&name, &space.name()]).with("space", space.name()).with("index", &name)
        }
        other => database.storage_error(other, &space),
    })?;
    let old_format = space.format();
    space.set_index(id, Some(Rc::new(parsed.info)));
    database.catalog.set_format(&space, format);
    database.catalog.bump_schema_version();
    Ok(Some(Effect {
        undo: Box::new(move |database| {
            space.set_index(id, None);
            database.catalog.set_format(&space, old_format);
            // Rows that came after the index was made are undone before, so a primary index is empty again.
            if let Some(index) = space.store.borrow_mut().drop_index(id) {
                database.discard(Garbage::Index(index));
            }
            database.catalog.bump_schema_version();
        }),
        finish: None,
    }))
}

fn drop_index(database: &Database, context: &Context, old: &Tuple) -> Result<Option<Effect>> {
    let mut fields = Fields::new(old.data())?;
    let (space_id, id) = (fields.uint()?, fields.uint()?);
    let space = database.space(space_id)?;
    let wanted = if space.owner() == context.user.get() { Privileges::ALTER } else { Privileges::DROP };
    check_change(database, context, wanted, ObjectType::Space, space.id, space.owner(), &space.name())?;
    if id == 0 {
        if space.is_system() {
            return Err(Error::new(ErrorCode::LastDrop, &[&space.name()]));
        }
        if space.indexes().len() > 1 {
            return Err(Error::new(ErrorCode::DropPrimaryKey, &[&space.name()]));
        }
        if space.sequence.borrow().is_some() {
            return Err(Error::new(
                ErrorCode::AlterSpace,
                &[&space.name(), &"can not drop primary key while space sequence exists"],
            ));
        }
    }
    let info = space.set_index(id, None);
    let old_format = space.format();
    let format = make_format(database, &space.def(), &all_parts(&space))?;
    database.catalog.set_format(&space, format);
    database.catalog.bump_schema_version();
    if id == 0 {
        // The rows go with the primary index.
        let rows = space.store.borrow_mut().take_all();
        drop(space.store.borrow_mut().drop_index(0));
        let rows = Rc::new(RefCell::new(Some(rows)));
        let kept = Rc::clone(&rows);
        return Ok(Some(Effect {
            undo: Box::new(move |database| {
                space.set_index(0, info);
                database.catalog.set_format(&space, old_format);
                if let Some(rows) = rows.borrow_mut().take() {
                    *space.store.borrow_mut() = rows;
                }
                database.catalog.bump_schema_version();
            }),
            finish: Some(Box::new(move |database| {
                if let Some(rows) = kept.borrow_mut().take() {
                    database.discard(Garbage::Space(rows));
                }
            })),
        }));
    }
    let taken = Rc::new(RefCell::new(space.store.borrow_mut().drop_index(id)));
    let kept = Rc::clone(&taken);
    Ok(Some(Effect {
        undo: Box::new(move |database| {
            space.set_index(id, info);
            database.catalog.set_format(&space, old_format);
            if let Some(index) = taken.borrow_mut().take() {
                space.store.borrow_mut().restore_index(index);
            }
            database.catalog.bump_schema_version();
        }),
        finish: Some(Box::new(move |database| {
            if let Some(index) = kept.borrow_mut().take() {
                database.discard(Garbage::Index(index));
            }
        })),
    }))
}

fn alter(database: &Database, context: &Context, old: &Tuple, new: &Tuple) -> Result<Option<Effect>> {
    let parsed = parse_index(database, new.data())?;
    let space = database.space(parsed.space_id)?;
    if space.is_system() && is_recovering(database) {
        return Ok(None);
    }
    check_alter(database, context, &space)?;
    let id = parsed.info.id;
    let _ = old;
    if space.is_system() {
        return Err(Error::new(ErrorCode::LastDrop, &[&space.name()]));
    }
    let old_infos = space.indexes();
    let old_format = space.format();
    let primary = if id == 0 { None } else { space.index(0) };
    let def = engine_def(parsed.kind, &parsed.info, parsed.is_unique, primary.as_deref());
    let mut parts: Vec<KeyPart> =
        old_infos.iter().filter(|index| index.id != id).flat_map(|index| index.parts.clone()).collect();
    parts.extend(parsed.info.parts.iter().cloned());
    let format = make_format(database, &space.def(), &parts)?;
    check_rows(database, &space, &format)?;
    // All indexes are built anew beside the old ones: a changed primary key changes what the others are ordered by.
    let mut defs: Vec<IndexDef> = Vec::new();
    for other in space.store.borrow().index_defs() {
        if other.id == id {
            defs.push(def.clone());
        } else if id == 0
            && let Some(info) = space.index(other.id)
        {
            defs.push(engine_def(other.kind, &info, other.is_unique, Some(&parsed.info)));
        } else {
            defs.push(other.clone());
        }
    }
    let name = parsed.info.name.clone();
    let rebuilt = space.store.borrow().rebuilt(defs).map_err(|error| match error {
        StorageError::Duplicate { .. } => Error::new(ErrorCode::TupleFound, &[&name, &space.name()]),
        other => database.storage_error(other, &space),
    })?;
    let before = std::mem::replace(&mut *space.store.borrow_mut(), rebuilt);
    space.set_index(id, Some(Rc::new(parsed.info)));
    database.catalog.set_format(&space, format);
    database.catalog.bump_schema_version();
    let before = Rc::new(RefCell::new(Some(before)));
    let kept = Rc::clone(&before);
    Ok(Some(Effect {
        undo: Box::new(move |database| {
            for info in old_infos {
                space.set_index(info.id, Some(info));
            }
            database.catalog.set_format(&space, old_format);
            if let Some(before) = before.borrow_mut().take() {
                let rebuilt = std::mem::replace(&mut *space.store.borrow_mut(), before);
                database.discard(Garbage::Space(rebuilt));
            }
            database.catalog.bump_schema_version();
        }),
        finish: Some(Box::new(move |database| {
            if let Some(before) = kept.borrow_mut().take() {
                database.discard(Garbage::Space(before));
            }
        })),
    }))
}
