//! Rows of `_index`.

use super::build::{Work, check_not_building};
use super::constraints;
use super::space::{all_parts, check_name, find_collation, make_format, rows_format, type_of_name};
use super::{check_change, disk};
use crate::access::{ObjectType, Privileges};
use crate::catalog::{IndexInfo, SchemaObject, Space, SpaceKind};
use crate::database::Database;
use crate::disposal::Garbage;
use crate::error::{Error, ErrorCode, Result};
use crate::fields::{Fields, as_bool, as_str, as_uint, for_each_entry};
use crate::session::{Context, Origin};
use crate::statement::no_such_index;
use crate::txn::{Effect, Turn};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use storage::{DetachedIndex, IndexDef, IndexKind, KeySource, MemorySpace};
use tuple::msgpack::{Kind, Reader};
use tuple::{Collation, FieldType, IndexId, KeyDef, KeyPart, SpaceId, Tuple};

/// Number of indexes of a space.
const INDEX_MAX: u32 = 128;
/// Largest number of parts.
const PARTS_MAX: u32 = 255;
/// Largest field number, from 0: a format knows something of every field up to the last one that is indexed.
const FIELD_NO_MAX: u32 = 0x7fff;

/// A row of `_index`, understood.
pub(crate) struct ParsedIndex {
    pub(crate) space_id: SpaceId,
    pub(crate) info: IndexInfo,
    pub(super) kind: IndexKind,
    pub(super) is_unique: bool,
}

/// Reads a row of `_index`. Errors: `ModifyIndex`, `WrongIndexParts`, `WrongIndexOptions`, `IndexType`.
pub(crate) fn parse_index(database: &Database, origin: Origin, row: &[u8]) -> Result<ParsedIndex> {
    let mut fields = Fields::new(row)?;
    let space_id = fields.uint()?;
    let id = fields.uint()?;
    let name = fields.str()?.to_string();
    let type_name = fields.str()?;
    let opts = fields.raw()?;
    let parts = fields.raw()?;
    let space = database.space(SpaceId(space_id))?;
    check_name(&name)?;
    let refuse = |why: &str| Error::new(ErrorCode::ModifyIndex, &[&name, &space.name(), &why]);
    let kind = match type_name.to_ascii_lowercase().as_str() {
        "tree" => IndexKind::Tree,
        "hash" if space.disk().is_none() => IndexKind::Hash,
        "bitset" | "rtree" if space.disk().is_none() => {
            return Err(Error::new(ErrorCode::Unsupported, &[&"Lycosa", &format!("{type_name} indexes yet")]));
        }
        _ => return Err(Error::new(ErrorCode::IndexType, &[&name, &space.name()])),
    };
    if id >= INDEX_MAX {
        return Err(refuse("index id too big"));
    }
    let mut is_unique = true;
    let mut tree = disk::default_options(database);
    for_each_entry(opts, |key, value| {
        let wrong = |what: String| Error::new(ErrorCode::WrongIndexOptions, &[&4, &what]);
        match key {
            "unique" => is_unique = as_bool(value).ok_or_else(|| wrong("'unique' must be boolean".into()))?,
            "func" => {
                if !matches!(as_uint(value), Some(0)) {
                    return Err(Error::new(ErrorCode::Unsupported, &[&"Lycosa", &"functional indexes yet"]));
                }
            }
            "page_size" | "range_size" | "run_count_per_level" | "run_size_ratio" | "bloom_fpr" => {
                disk::read_option(&mut tree, key, value).map_err(|what| wrong(what.to_string()))?;
            }
            "dimension" | "distance" | "lsn" | "stat" | "hint" | "sql" => {}
            other => return Err(wrong(format!("unexpected option '{other}'"))),
        }
        Ok(())
    })
    .map_err(|error| error.unwrap_or_else(|| Error::new(ErrorCode::WrongIndexOptions, &[&4, &"expected a map"])))?;
    disk::check_options(&tree).map_err(|what| Error::new(ErrorCode::WrongIndexOptions, &[&4, &what]))?;
    let parts = parse_parts(database, origin, &space, parts)?;
    if parts.is_empty() {
        return Err(refuse("part count must be positive"));
    }
    for (at, part) in parts.iter().enumerate() {
        if part.field_no > FIELD_NO_MAX {
            return Err(refuse("field no is too big"));
        }
        if matches!(part.field_type, FieldType::Any | FieldType::Interval | FieldType::Array | FieldType::Map) {
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
            // An index before this one says what the field is; else the format does.
            let is_known =
                |other: &Rc<IndexInfo>| other.id < id && other.parts.iter().any(|one| one.field_no == part.field_no);
            let code = match space.indexes().iter().any(is_known) {
                true => ErrorCode::IndexPartTypeMismatch,
                false => ErrorCode::FormatMismatchIndexPart,
            };
            let number = part.field_no + 1;
            return Err(Error::new(code, &[&number, &field.field_type.name(), &part.field_type.name()]));
        }
    }
    if id == 0 && !is_unique {
        return Err(refuse("primary key must be unique"));
    }
    if kind == IndexKind::Hash && !is_unique {
        return Err(refuse("HASH index must be unique"));
    }
    if space.disk().is_some() {
        disk::check_index(&space, &name, kind, &parts)?;
    }
    Ok(ParsedIndex {
        space_id: SpaceId(space_id),
        info: IndexInfo { id: IndexId(id), name, parts, tree },
        kind,
        is_unique,
    })
}

/// Reads the parts: `[[0, 'unsigned'], ...]` or `[{field: 0, type: 'unsigned', ...}, ...]`. Errors: `WrongIndexParts`,
/// `WrongIndexOptions`, `IndexFieldCountLimit`.
fn parse_parts(database: &Database, origin: Origin, space: &Space, parts: &[u8]) -> Result<Vec<KeyPart>> {
    let mut reader = Reader::new(parts);
    let count = reader.read_array().map_err(|_| wrong_parts("expected an array"))?;
    if count > PARTS_MAX {
        return Err(Error::new(ErrorCode::IndexFieldCountLimit, &[&PARTS_MAX]));
    }
    (1..=count)
        .map(|number| {
            let raw = reader.read_value().map_err(|_| wrong_parts("expected an array"))?;
            let given = match Reader::new(raw).kind() {
                Ok(Kind::Array) => part_of_array(raw)?,
                Ok(Kind::Map) => part_of_map(database, raw)?,
                _ => return Err(wrong_parts("expected an array")),
            };
            complete_part(origin, space, number, given)
        })
        .collect()
}

fn wrong_parts(what: &str) -> Error {
    Error::new(ErrorCode::WrongIndexParts, &[&what])
}

/// What a row of `_index` says of one part.
#[derive(Default)]
struct GivenPart {
    field_no: Option<u64>,
    type_name: Option<String>,
    collation: Option<Arc<Collation>>,
    is_nullable: bool,
}

fn part_of_array(raw: &[u8]) -> Result<GivenPart> {
    let mut part = Reader::new(raw);
    let length = part.read_array().map_err(|_| wrong_parts("expected an array"))?;
    if length < 2 {
        return Err(wrong_parts("expected a non-empty array"));
    }
    let field_no = part.read_uint().map_err(|_| wrong_parts("field id must be an integer"))?;
    let name = part.read_str().map_err(|_| wrong_parts("field type must be a string"))?;
    let type_name = std::str::from_utf8(name).ok().map(str::to_string);
    Ok(GivenPart { field_no: Some(field_no), type_name, ..GivenPart::default() })
}

fn part_of_map(database: &Database, raw: &[u8]) -> Result<GivenPart> {
    let mut part = GivenPart::default();
    for_each_entry(raw, |key, value| {
        match key {
            "field" => {
                part.field_no = Some(as_uint(value).ok_or_else(|| wrong_parts("field id must be an integer"))?);
            }
            "type" => {
                let name = as_str(value).ok_or_else(|| wrong_parts("field type must be a string"))?;
                part.type_name = Some(name.to_string());
            }
            "collation" => {
                let id = as_uint(value).ok_or_else(|| wrong_parts("collation must be an integer"))?;
                part.collation = Some(find_collation(database, id as u32)?);
            }
            "is_nullable" => {
                part.is_nullable = as_bool(value).ok_or_else(|| wrong_parts("'is_nullable' must be boolean"))?;
            }
            "path" => {
                return Err(Error::new(ErrorCode::Unsupported, &[&"Lycosa", &"indexes over JSON paths yet"]));
            }
            _ => {}
        }
        Ok(())
    })
    .map_err(|error| error.unwrap_or_else(|| wrong_parts("expected a map")))?;
    Ok(part)
}

/// A part as an index has it. What the field is declared as counts for the type alone: an index says itself how it compares, and whoever makes it by
/// names has taken over before whether it is nullable.
fn complete_part(origin: Origin, space: &Space, number: u32, given: GivenPart) -> Result<KeyPart> {
    let field_no = given.field_no.ok_or_else(|| wrong_parts("field id must be an integer"))?;
    // What is too large for a number of fields is refused later, with the name of the index.
    let field_no = u32::try_from(field_no).unwrap_or(u32::MAX);
    let field_type = match given.type_name {
        Some(name) => type_of_name(origin, &name).ok_or_else(|| wrong_parts("unknown field type"))?,
        None => space.def().fields.get(field_no as usize).map_or(FieldType::Scalar, |field| field.field_type),
    };
    let may_collate = matches!(field_type, FieldType::String | FieldType::Scalar);
    if given.collation.is_some() && !may_collate && !origin.is_replay() {
        let why = "collation is reasonable only for string and scalar parts";
        return Err(Error::new(ErrorCode::WrongIndexOptions, &[&number, &why]));
    }
    let mut part = KeyPart::new(field_no, field_type);
    part.is_nullable = given.is_nullable;
    part.collation = given.collation;
    Ok(part)
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
    IndexDef { id: info.id, kind: parsed_kind, is_unique, key_def, compare_def, source: KeySource::Fields }
}

/// Adds an index to a space whose rows it then covers. For built-in spaces at start.
pub(crate) fn define_engine_indexes(database: &Database, space: &Rc<Space>, parsed: ParsedIndex) -> Result<()> {
    let primary = if parsed.info.id == 0 { None } else { space.index(IndexId::PRIMARY) };
    let def = engine_def(parsed.kind, &parsed.info, parsed.is_unique, primary.as_deref());
    if let Some(rows) = space.rows.memory() {
        rows.borrow_mut().create_index(def.clone());
    }
    space.put_index_def(def);
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
        (Some(_), Some(new)) => alter(database, context, new),
        (None, None) => Ok(None),
    }
}

fn check_alter(database: &Database, context: &Context, space: &Space) -> Result<()> {
    check_change(database, context, Privileges::ALTER, ObjectType::Space, space.id.0, space.owner(), &space.name())
}

/// The look at all rows that a new or changed index needs.
pub(super) fn plan_work(
    database: &Database,
    context: &Context,
    old: Option<&Tuple>,
    new: &Tuple,
) -> Result<Option<Work>> {
    let parsed = parse_index(database, context.origin, new.data())?;
    let space = database.space(parsed.space_id)?;
    match old {
        None => plan_create(database, context, &space, &parsed),
        Some(_) => plan_alter(database, context, &space, &parsed),
    }
    .map(Some)
}

fn plan_create(database: &Database, context: &Context, space: &Rc<Space>, parsed: &ParsedIndex) -> Result<Work> {
    let id = parsed.info.id;
    let mut wanted = Privileges::CREATE;
    if space.owner() == context.user(&database.catalog) {
        wanted = Privileges::ALTER;
    }
    check_change(database, context, wanted, ObjectType::Space, space.id.0, space.owner(), &space.name())?;
    // Who may make spaces may not refuse the rows of others by a unique index on theirs.
    check_change(database, context, Privileges::ALTER, ObjectType::Space, space.id.0, space.owner(), &space.name())?;
    if let SpaceKind::View { .. } = space.kind
        && !context.origin.is_replay()
    {
        return Err(Error::new(ErrorCode::Unsupported, &[&"sysview", &"create index"]));
    }
    if id != 0 && !space.has_index(IndexId::PRIMARY) {
        return Err(Error::new(ErrorCode::AlterSpace, &[&space.name(), &"can not add a secondary key before primary"]));
    }
    let primary = if id == 0 { None } else { space.index(IndexId::PRIMARY) };
    let def = engine_def(parsed.kind, &parsed.info, parsed.is_unique, primary.as_deref());
    let format = rows_format(database, context.origin, &space.def(), &parts_with(space, &parsed.info))?;
    let name = parsed.info.name.clone();
    Ok(Work { space: Rc::clone(space), format, defs: vec![def], name, what: "index build" })
}

/// The parts of all indexes of a space when it has one as `info` says.
fn parts_with(space: &Space, info: &IndexInfo) -> Vec<KeyPart> {
    let indexes = space.indexes();
    let others = indexes.iter().filter(|index| index.id != info.id).flat_map(|index| index.parts.clone());
    others.chain(info.parts.iter().cloned()).collect()
}

fn create(database: &Database, context: &Context, new: &Tuple) -> Result<Option<Effect>> {
    let parsed = parse_index(database, context.origin, new.data())?;
    let space = database.space(parsed.space_id)?;
    let id = parsed.info.id;
    if space.has_index(id) && context.origin.is_replay() {
        return Ok(None);
    }
    let work = plan_create(database, context, &space, &parsed)?;
    let format = make_format(database, &space.def(), &parts_with(&space, &parsed.info))?;
    let placed = disk::create_index(database, context.origin, &space, &work, parsed.info.tree, new)?;
    let defs = work.defs.clone();
    let replaced = database.apply_build(context, work, new)?;
    assert!(replaced.is_empty(), "a new index takes nobody's place");
    let replaced = put_defs(&space, defs);
    assert!(replaced.is_empty(), "a new index takes nobody's place");
    let old_format = space.format();
    let info = Rc::new(parsed.info);
    space.set_index(id, Some(Rc::clone(&info)));
    database.catalog.set_format(&space, Rc::clone(&format));
    database.catalog.note_change(SchemaObject::Space(space.id));
    // What is kept of it while it is taken back. Rows that came after it was made are undone before, so a primary index is empty then.
    let (mut def, mut taken) = (None, None);
    let trees = disk::Detached::default();
    Ok(Some(
        Effect::new(move |database, turn| {
            match turn {
                Turn::Back => {
                    space.set_index(id, None);
                    def = space.remove_index_def(id);
                    database.catalog.set_format(&space, Rc::clone(&old_format));
                    taken = space.rows.memory().and_then(|rows| Taken::from(&mut rows.borrow_mut(), id));
                    trees.replace(disk::detach_index(&space, id).take());
                }
                Turn::Forth => {
                    space.set_index(id, Some(Rc::clone(&info)));
                    put_defs(&space, def.take());
                    database.catalog.set_format(&space, Rc::clone(&format));
                    if let (Some(taken), Some(rows)) = (taken.take(), space.rows.memory()) {
                        taken.put_back(&mut rows.borrow_mut());
                    }
                    disk::exchange_indexes(&space, &trees);
                }
                Turn::GiveUp => {
                    database.disposal.discard(taken.take().map(Taken::garbage));
                    return disk::discard(&space, &trees);
                }
            }
            database.catalog.note_change(SchemaObject::Space(space.id));
        })
        .and_placed(placed),
    ))
}

fn drop_index(database: &Database, context: &Context, old: &Tuple) -> Result<Option<Effect>> {
    let mut fields = Fields::new(old.data())?;
    let (space_id, id) = (fields.uint()?, fields.uint()?);
    let space = database.space(SpaceId(space_id))?;
    let wanted = if space.owner() == context.user(&database.catalog) { Privileges::ALTER } else { Privileges::DROP };
    check_change(database, context, wanted, ObjectType::Space, space.id.0, space.owner(), &space.name())?;
    check_not_building(&space)?;
    if !context.origin.is_replay() && !context.skips_foreign_keys.get() {
        constraints::check_index_unused(database, &space, IndexId(id), None)?;
    }
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
    let (info, def) = (space.set_index(IndexId(id), None), space.remove_index_def(IndexId(id)));
    let detached = disk::detach_index(&space, IndexId(id));
    let (kept_trees, owner) = (Rc::clone(&detached), Rc::clone(&space));
    let old_format = space.format();
    let format = make_format(database, &space.def(), &all_parts(&space))?;
    database.catalog.set_format(&space, Rc::clone(&format));
    database.catalog.note_change(SchemaObject::Space(space.id));
    let taken =
        Rc::new(RefCell::new(space.rows.memory().and_then(|rows| Taken::from(&mut rows.borrow_mut(), IndexId(id)))));
    let kept = Rc::clone(&taken);
    Ok(Some(
        Effect::new(move |database, turn| {
            match turn {
                Turn::Back => {
                    space.set_index(IndexId(id), info.clone());
                    put_defs(&space, def.clone());
                    disk::exchange_indexes(&space, &detached);
                    database.catalog.set_format(&space, Rc::clone(&old_format));
                    if let (Some(taken), Some(rows)) = (taken.borrow_mut().take(), space.rows.memory()) {
                        taken.put_back(&mut rows.borrow_mut());
                    }
                }
                Turn::Forth => {
                    space.set_index(IndexId(id), None);
                    space.remove_index_def(IndexId(id));
                    detached.replace(disk::detach_index(&space, IndexId(id)).take());
                    database.catalog.set_format(&space, Rc::clone(&format));
                    let rows = space.rows.memory();
                    *taken.borrow_mut() = rows.and_then(|rows| Taken::from(&mut rows.borrow_mut(), IndexId(id)));
                }
                Turn::GiveUp => return disk::discard(&space, &detached),
            }
            database.catalog.note_change(SchemaObject::Space(space.id));
        })
        .and_finish(move |database| {
            disk::discard(&owner, &kept_trees);
            database.disposal.discard(kept.borrow_mut().take().map(Taken::garbage));
        }),
    ))
}

/// What a dropped index leaves in memory until the drop is durable.
enum Taken {
    /// The rows, which go with the primary index.
    Rows(MemorySpace),
    /// A secondary index.
    Index(DetachedIndex),
}

impl Taken {
    fn from(rows: &mut MemorySpace, index_id: IndexId) -> Option<Self> {
        if index_id != 0 {
            return rows.drop_index(index_id).map(Taken::Index);
        }
        let taken = rows.take_all();
        drop(rows.drop_index(IndexId::PRIMARY));
        Some(Taken::Rows(taken))
    }

    fn put_back(self, rows: &mut MemorySpace) {
        match self {
            Taken::Rows(taken) => *rows = taken,
            Taken::Index(index) => drop(rows.exchange_indexes(vec![index])),
        }
    }

    fn garbage(self) -> Garbage {
        match self {
            Taken::Rows(rows) => Garbage::Space(rows),
            Taken::Index(index) => Garbage::Index(Box::new(index)),
        }
    }
}

/// Puts definitions in the places of those of the same numbers, which are returned.
fn put_defs(space: &Space, defs: impl IntoIterator<Item = IndexDef>) -> Vec<IndexDef> {
    defs.into_iter().filter_map(|def| space.put_index_def(def)).collect()
}

/// An altered index is built anew beside the old one. A changed primary key changes what the others are ordered by, too.
fn plan_alter(database: &Database, context: &Context, space: &Rc<Space>, parsed: &ParsedIndex) -> Result<Work> {
    check_alter(database, context, space)?;
    if space.is_system() {
        return Err(Error::new(ErrorCode::LastDrop, &[&space.name()]));
    }
    let id = parsed.info.id;
    if !context.origin.is_replay() && !context.skips_foreign_keys.get() {
        constraints::check_index_unused(database, space, id, Some((&parsed.info.parts, parsed.is_unique)))?;
    }
    let primary = if id == 0 { None } else { space.index(IndexId::PRIMARY) };
    let mut defs = vec![engine_def(parsed.kind, &parsed.info, parsed.is_unique, primary.as_deref())];
    if id == 0 {
        for other in space.index_defs().iter().filter(|other| other.id != 0) {
            let info = space.index(other.id).ok_or_else(|| no_such_index(space, other.id))?;
            defs.push(engine_def(other.kind, &info, other.is_unique, Some(&parsed.info)));
        }
    }
    let format = rows_format(database, context.origin, &space.def(), &parts_with(space, &parsed.info))?;
    let name = parsed.info.name.clone();
    Ok(Work { space: Rc::clone(space), format, defs, name, what: "index build" })
}

fn alter(database: &Database, context: &Context, new: &Tuple) -> Result<Option<Effect>> {
    let parsed = parse_index(database, context.origin, new.data())?;
    let space = database.space(parsed.space_id)?;
    if space.is_system() && context.origin.is_replay() {
        return Ok(None);
    }
    let work = plan_alter(database, context, &space, &parsed)?;
    let format = make_format(database, &space.def(), &parts_with(&space, &parsed.info))?;
    let (replaced_trees, placed) = disk::alter_index(database, context.origin, &space, &work, parsed.info.tree, new)?;
    disk::set_options(&space, parsed.info.id, parsed.info.tree);
    let (kept_trees, owner) = (Rc::clone(&replaced_trees), Rc::clone(&space));
    let defs = work.defs.clone();
    let replaced = database.apply_build(context, work, new)?;
    let old_defs = put_defs(&space, defs);
    let (id, old_format) = (parsed.info.id, space.format());
    let new_info = Some(Rc::new(parsed.info));
    let old_info = space.set_index(id, new_info.clone());
    database.catalog.set_format(&space, Rc::clone(&format));
    database.catalog.note_change(SchemaObject::Space(space.id));
    let replaced = Rc::new(RefCell::new(replaced));
    let kept = Rc::clone(&replaced);
    let (old, new, mut other_defs) = ((old_info, old_format), (new_info, format), old_defs);
    Ok(Some(
        Effect::new(move |database, turn| {
            let (info, format) = match turn {
                Turn::Back => &old,
                Turn::Forth => &new,
                Turn::GiveUp => {
                    database.discard_indexes(replaced.take());
                    return disk::discard(&space, &replaced_trees);
                }
            };
            disk::exchange_indexes(&space, &replaced_trees);
            if let Some(info) = info {
                disk::set_options(&space, id, info.tree);
            }
            space.set_index(id, info.clone());
            other_defs = put_defs(&space, std::mem::take(&mut other_defs));
            database.catalog.set_format(&space, Rc::clone(format));
            // They hold the rows that there were then, and what came later is undone before.
            if let Some(rows) = space.rows.memory() {
                let others = rows.borrow_mut().exchange_indexes(replaced.take());
                replaced.replace(others);
            }
            database.catalog.note_change(SchemaObject::Space(space.id));
        })
        .and_finish(move |database| {
            disk::discard(&owner, &kept_trees);
            database.discard_indexes(kept.take());
        })
        .and_placed(placed),
    ))
}
