//! Rows of `_space`, `_truncate` and `_collation`.

use super::build::{Work, check_not_building};
use super::{SEQUENCE_ID, check_change, check_given_owner, constraints, disk, is_almighty};
use crate::access::{ObjectType, Privileges, denied};
use crate::catalog::constraints::{parse_actions, parse_checks, parse_foreign_keys};
use crate::catalog::{
    CheckDef, ForeignKeyDef, GeneratedDef, MemoryLimit, SchemaObject, Space, SpaceDef, SpaceKind, Ttl,
};
use crate::database::Database;
use crate::disposal::Garbage;
use crate::error::{Error, ErrorCode, Result};
use crate::fields::{Fields, as_bool, as_str, as_uint, for_each_entry};
use crate::session::{Context, NOBODY, Origin};
use crate::session_spaces::is_of_session;
use crate::txn::{Effect, Turn};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use storage::{IteratorKind, MemorySpace, Rows};
use tuple::msgpack::{Kind, Reader};
use tuple::{Collation, FieldDef, FieldType, Format, IndexId, KeyPart, SpaceId, Tuple};

/// Longest name of an object.
const NAME_MAX: usize = 65_000;

/// Longest name of an engine, in bytes.
const ENGINE_NAME_MAX: usize = 16;

/// A name may hold any printable characters. Errors: `Identifier`.
pub(super) fn check_name(name: &str) -> Result<()> {
    let is_good = !name.is_empty() && name.len() <= NAME_MAX && !name.chars().any(char::is_control);
    if is_good { Ok(()) } else { Err(Error::new(ErrorCode::Identifier, &[&name])) }
}

/// Reads a row of `_space`. Errors: `CreateSpace` naming the space, `WrongSpaceFormat`, `WrongSpaceOptions`, `NoSuchEngine`.
pub(crate) fn parse_space(database: &Database, origin: Origin, row: &[u8], failure: ErrorCode) -> Result<SpaceDef> {
    let mut fields = Fields::new(row)?;
    let id = fields.uint()?;
    let owner = fields.uint()?;
    let name = fields.str()?.to_string();
    let engine = fields.str()?.to_string();
    let field_count = fields.uint()?;
    let opts = fields.raw()?;
    let format = if fields.has_more() { fields.raw()? } else { &[0x90] };
    check_name(&name)?;
    if id == 0 || id > i32::MAX as u32 {
        return Err(Error::new(failure, &[&name, &"space id is too big"]));
    }
    if engine.len() > ENGINE_NAME_MAX {
        return Err(Error::new(failure, &[&name, &"space engine name is too long"]));
    }
    check_name(&engine)?;
    if database.catalog.user(owner).is_none() && !origin.is_replay() {
        return Err(Error::new(ErrorCode::NoSuchUser, &[&owner]));
    }
    let (mut group_id, mut is_temporary, mut is_view, mut own) = (0, false, false, None);
    let mut given = Constraints {
        own: SpaceId(id),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        generated: Vec::new(),
        has_domains: false,
    };
    for_each_entry(opts, |key, value| {
        let wrong = |what: &str| Error::new(ErrorCode::WrongSpaceOptions, &[&5, &what]);
        match key {
            "group_id" => {
                group_id = as_uint(value).ok_or_else(|| wrong("'group_id' must be unsigned"))? as u32;
                if group_id > 1 {
                    return Err(Error::new(ErrorCode::NoSuchGroup, &[&group_id]));
                }
            }
            "temporary" => {
                is_temporary = as_bool(value).ok_or_else(|| wrong("'temporary' must be boolean"))?;
            }
            "is_sync" => {
                if as_bool(value).ok_or_else(|| wrong("'is_sync' must be boolean"))? && !origin.is_replay() {
                    return Err(Error::new(ErrorCode::Unsupported, &[&"Lycosa", &"synchronous spaces"]));
                }
            }
            "constraint" => given.read(key, value, None).map_err(|why| wrong(&why))?,
            "foreign_key" => given.read(key, value, None).map_err(|why| wrong(&why))?,
            // What Tarantool has no option for stands below one that it passes over.
            "checks" => own = Some(value),
            "view" => is_view = as_bool(value) == Some(true),
            "sql" | "defer_deletes" => {}
            other => return Err(wrong(&format!("unexpected option '{other}'"))),
        }
        Ok(())
    })
    .map_err(|error| error.unwrap_or_else(|| Error::new(ErrorCode::WrongSpaceOptions, &[&5, &"expected a map"])))?;
    let fields = parse_format(database, origin, format, &name, failure, &mut given)?;
    if field_count != 0 && (field_count as usize) < fields.len() {
        return Err(Error::new(failure, &[&name, &"exact_field_count must be either 0 or >= formatted field count"]));
    }
    match engine.as_str() {
        // What stands behind these is known by their numbers.
        "sysview" | "service"
            if !origin.is_replay()
                && database.catalog.space(SpaceId(id)).is_none_or(|space| space.def().engine != engine) =>
        {
            let why = format!("spaces of the engine '{engine}' are the server's own");
            return Err(Error::new(failure, &[&name, &why]));
        }
        "memtx" | "sysview" | "blackhole" | "service" => {}
        "vinyl" if is_temporary => {
            return Err(Error::new(ErrorCode::AlterSpace, &[&name, &"engine does not support temporary flag"]));
        }
        "vinyl" => {}
        other => return Err(Error::new(ErrorCode::NoSuchEngine, &[&other])),
    }
    let Constraints { checks, mut foreign_keys, generated, has_domains, .. } = given;
    let own = own.map_or_else(|| Ok(OwnOptions::default()), |own| parse_own_options(own, &fields, &mut foreign_keys));
    let OwnOptions { ttl, memory_limit } = match own {
        Ok(own) => own,
        // What was good enough when it was written is not questioned.
        Err(why) if origin.is_replay() => {
            tracing::warn!("options of space '{name}' are passed over: {why}");
            OwnOptions::default()
        }
        Err(why) => return Err(Error::new(ErrorCode::WrongSpaceOptions, &[&5, &why])),
    };
    let keeps_rows = matches!(engine.as_str(), "memtx" | "vinyl");
    let is_constrained = !checks.is_empty() || !foreign_keys.is_empty() || !generated.is_empty();
    if is_constrained && (!keeps_rows || (256..512).contains(&id)) && !origin.is_replay() {
        let why = "constraints are for spaces of memtx and vinyl with rows of clients";
        return Err(Error::new(ErrorCode::WrongSpaceOptions, &[&5, &why]));
    }
    if ttl.is_some() && (!keeps_rows || (256..512).contains(&id)) {
        return Err(Error::new(
            ErrorCode::WrongSpaceOptions,
            &[&5, &"'ttl' is for spaces of memtx and vinyl with rows of clients"],
        ));
    }
    if memory_limit.is_some() && (engine != "memtx" || (256..512).contains(&id)) {
        let why = "'memory_limit' is for spaces of memtx with rows of clients";
        return Err(Error::new(ErrorCode::WrongSpaceOptions, &[&5, &why]));
    }
    let is_session = is_of_session(id, &name);
    if is_session && !is_temporary && !origin.is_replay() {
        return Err(Error::new(failure, &[&name, &"the name and the number are those of temporary tables"]));
    }
    let is_session = is_session && is_temporary;
    let id = SpaceId(id);
    Ok(SpaceDef {
        id,
        owner,
        name,
        engine,
        field_count,
        fields,
        group_id,
        is_temporary,
        is_session,
        is_view,
        ttl,
        memory_limit,
        checks,
        foreign_keys,
        generated,
        has_domains: has_domains && keeps_rows,
    })
}

/// The constraints of a definition, as they are read.
struct Constraints {
    own: SpaceId,
    checks: Vec<CheckDef>,
    foreign_keys: Vec<ForeignKeyDef>,
    generated: Vec<GeneratedDef>,
    has_domains: bool,
}

impl Constraints {
    fn read(&mut self, key: &str, value: &[u8], field: Option<u32>) -> std::result::Result<(), String> {
        match key {
            "constraint" => parse_checks(value, field, &mut self.checks),
            _ => parse_foreign_keys(value, field, self.own, &mut self.foreign_keys),
        }
    }
}

/// The options that Tarantool does not have, understood.
#[derive(Default)]
struct OwnOptions {
    ttl: Option<Ttl>,
    memory_limit: Option<MemoryLimit>,
}

/// The options that Tarantool does not have. It takes anything below the name of one that it had once, and so do its other readers: what
/// it wrote there itself is an array. Errors: what is wrong, in words.
fn parse_own_options(
    own: &[u8],
    fields: &[FieldDef],
    foreign_keys: &mut [ForeignKeyDef],
) -> std::result::Result<OwnOptions, String> {
    let mut reader = Reader::new(own);
    let mut found = OwnOptions::default();
    let Ok(count) = reader.read_map() else { return Ok(found) };
    let (mut bytes, mut evicts) = (0, None);
    for _ in 0..count {
        let malformed = |_| "an option is malformed".to_string();
        let key = reader.read_str().map_err(malformed)?;
        let value = reader.read_value().map_err(malformed)?;
        match key {
            b"ttl" => found.ttl = Some(Ttl::parse(value, fields)?),
            b"memory_limit" => {
                bytes = as_uint(value).ok_or_else(|| "'memory_limit' must be a number of bytes".to_string())?;
            }
            b"foreign_key" => parse_actions(value, foreign_keys)?,
            // What programs say of a space, who understand it.
            b"comment" | b"comments" | b"sql" | b"unique_index" | b"made_index" | b"index_text" => {}
            b"eviction" => {
                evicts = match as_str(value) {
                    Some("clock") => Some(true),
                    Some("none") => Some(false),
                    _ => return Err("'eviction' must be 'clock' or 'none'".to_string()),
                };
            }
            other => return Err(format!("unexpected option '{}'", String::from_utf8_lossy(other))),
        }
    }
    if bytes == 0 && evicts.is_some() {
        return Err("'eviction' needs 'memory_limit'".to_string());
    }
    found.memory_limit = (bytes > 0).then_some(MemoryLimit { bytes, evicts: evicts.unwrap_or(true) });
    Ok(found)
}

/// Reads the format of a space. Errors: `failure`, `WrongSpaceFormat`, `SpaceFieldIsDuplicate`.
fn parse_format(
    database: &Database,
    origin: Origin,
    format: &[u8],
    space: &str,
    failure: ErrorCode,
    constraints: &mut Constraints,
) -> Result<Vec<FieldDef>> {
    let mut reader = Reader::new(format);
    let count =
        reader.read_array().map_err(|_| Error::new(ErrorCode::WrongSpaceFormat, &[&1, &"expected an array"]))?;
    let mut fields: Vec<FieldDef> = Vec::new();
    for number in 1..=count {
        let wrong = |what: &str| Error::new(ErrorCode::WrongSpaceFormat, &[&number, &what]);
        let refuse = |what: &str| Error::new(failure, &[&space, &format_args!("field {number} {what}")]);
        let raw = reader.read_value().map_err(|_| wrong("not msgpack"))?;
        if !has_text_keys(raw) {
            return Err(refuse("format is not map with string keys"));
        }
        let mut name = None;
        let mut field = FieldDef::new(String::new(), FieldType::Any);
        for_each_entry(raw, |key, value| {
            match key {
                "name" => name = Some(as_str(value).ok_or_else(|| wrong("field name is not string"))?.to_string()),
                "type" => {
                    let text = as_str(value).unwrap_or("");
                    field.field_type = type_of_name(origin, text).ok_or_else(|| refuse("has unknown field type"))?;
                }
                "is_nullable" => {
                    field.is_nullable = as_bool(value).ok_or_else(|| wrong("'is_nullable' must be boolean"))?;
                }
                "collation" => {
                    let id = as_uint(value).ok_or_else(|| wrong("'collation' must be unsigned"))? as u32;
                    field.collation = Some(find_collation(database, id)?);
                }
                "constraint" | "foreign_key" => {
                    constraints.read(key, value, Some(number - 1)).map_err(|why| wrong(&why))?;
                }
                "generated" => {
                    let body = as_str(value).ok_or_else(|| wrong("'generated' must be string"))?.to_string();
                    constraints.generated.push(GeneratedDef { field: number - 1, body });
                }
                "sql_domain" => constraints.has_domains |= as_bool(value) == Some(true),
                _ => {}
            }
            Ok(())
        })
        .map_err(|error| error.unwrap_or_else(|| refuse("format is not map with string keys")))?;
        let Some(name) = name.filter(|name: &String| !name.is_empty()) else {
            return Err(refuse("name is not specified"));
        };
        check_name(&name)?;
        if fields.iter().any(|other| other.name == name) {
            return Err(Error::new(ErrorCode::SpaceFieldIsDuplicate, &[&name]));
        }
        let may_collate = matches!(field.field_type, FieldType::String | FieldType::Scalar | FieldType::Any);
        if field.collation.is_some() && !may_collate && !origin.is_replay() {
            let why = "collation is reasonable only for string, scalar and any fields";
            return Err(Error::new(failure, &[&space, &why]));
        }
        field.name = name;
        fields.push(field);
    }
    Ok(fields)
}

/// Whether a value is a map all of whose keys are strings.
fn has_text_keys(raw: &[u8]) -> bool {
    let mut reader = Reader::new(raw);
    let Ok(count) = reader.read_map() else { return false };
    (0..count).all(|_| {
        let is_text = reader.kind().ok() == Some(Kind::Str);
        is_text && reader.read_value().is_ok() && reader.read_value().is_ok()
    })
}

/// A type by its name, or by one that definitions which exist may have.
pub(super) fn type_of_name(origin: Origin, text: &str) -> Option<FieldType> {
    let old = || FieldType::of_old_name(text).filter(|_| origin.is_replay());
    text.parse().ok().or_else(old)
}

pub(super) fn find_collation(database: &Database, id: u32) -> Result<Arc<Collation>> {
    database.catalog.collation(id).ok_or_else(|| Error::new(ErrorCode::NoSuchCollation, &[&id]))
}

/// The format of a space: its declared fields and what its indexes require.
pub(crate) fn make_format(database: &Database, def: &SpaceDef, parts: &[KeyPart]) -> Result<Rc<Format>> {
    let mut result = Ok(());
    let format = database.catalog.add_format(|id| match Format::new(id, def.fields.clone(), def.field_count, parts) {
        Ok(format) => format,
        Err(error) => {
            result = Err(database.format_error(error));
            Format::any(id)
        }
    });
    result.map(|()| format)
}

/// What the rows of a space must be like, before it has a number for it.
pub(super) fn rows_format(
    database: &Database,
    origin: Origin,
    def: &SpaceDef,
    parts: &[KeyPart],
) -> Result<Rc<Format>> {
    // What was good enough when it was written is not looked at again.
    if origin.is_replay() {
        return Ok(Rc::new(Format::any(0)));
    }
    let format = Format::new(0, def.fields.clone(), def.field_count, parts);
    format.map(Rc::new).map_err(|error| database.format_error(error))
}

/// The space that a view shows. `_vsequence` is the one that does not stand right behind its space.
pub(crate) fn view_base(view: SpaceId) -> SpaceId {
    if view == SEQUENCE_ID.0 + 2 { SEQUENCE_ID } else { SpaceId(view.0 - 1) }
}

/// How the rows of a space are kept, by its engine.
pub(crate) fn kind_of(def: &SpaceDef) -> SpaceKind {
    match def.engine.as_str() {
        "sysview" => SpaceKind::View { base: view_base(def.id) },
        "blackhole" => SpaceKind::Blackhole,
        "service" => SpaceKind::Service,
        "vinyl" => SpaceKind::Disk,
        _ => SpaceKind::Memory,
    }
}

/// No rows yet, where those of such a space belong.
pub(crate) fn rows_of_kind(database: &Database, kind: SpaceKind, id: SpaceId, format: &Format) -> Result<Rows> {
    Ok(match kind {
        SpaceKind::Memory => Rows::Memory(RefCell::new(MemorySpace::new(&database.arena))),
        SpaceKind::Disk => Rows::Disk(disk::open_space(database, id, format)?, database.loose_rows.clone()),
        SpaceKind::View { .. } | SpaceKind::Blackhole | SpaceKind::Service => Rows::Nowhere,
    })
}

pub(super) fn on_space(
    database: &Database,
    context: &Context,
    old: Option<&Tuple>,
    new: Option<&Tuple>,
) -> Result<Option<Effect>> {
    match (old, new) {
        (None, Some(new)) => create(database, context, new),
        (Some(old), None) => drop_space(database, context, old),
        (Some(old), Some(new)) => alter(database, context, old, new),
        (None, None) => Ok(None),
    }
}

/// A view reads with the rights of its owner: nobody makes one in the name of somebody else, gives one away, or changes what another one's reads. Errors:
/// `AccessDenied`.
fn check_owner_of_view(database: &Database, context: &Context, old: Option<&SpaceDef>, def: &SpaceDef) -> Result<()> {
    let user = context.user(&database.catalog);
    let is_own = def.owner == user && old.is_none_or(|old| old.owner == user);
    if !def.is_view || is_own || context.origin.is_replay() || is_almighty(database, context) {
        return Ok(());
    }
    let wanted = if old.is_none() { Privileges::CREATE } else { Privileges::ALTER };
    Err(denied(wanted, ObjectType::Space, &def.name, &database.catalog.user_name(user)))
}

fn create(database: &Database, context: &Context, new: &Tuple) -> Result<Option<Effect>> {
    let def = parse_space(database, context.origin, new.data(), ErrorCode::CreateSpace)?;
    if database.catalog.space(def.id).is_some() && context.origin.is_replay() {
        // The built-in definition of a system space: its row has come.
        return alter_in_place(database, &def).map(|()| None);
    }
    check_change(database, context, Privileges::CREATE, ObjectType::Space, def.id.0, def.owner, &def.name)?;
    check_owner_of_view(database, context, None, &def)?;
    constraints::check_def(database, context, None, &def)?;
    let format = make_format(database, &def, &[])?;
    let id = def.id;
    let kind = kind_of(&def);
    let rows = rows_of_kind(database, kind, id, &format)?;
    let space = Rc::new(Space::new(kind, def, format, rows));
    database.watch_expiry(&space);
    database.catalog.add_space(Rc::clone(&space));
    constraints::check_meaning(database, context, &space).inspect_err(|_| {
        database.catalog.remove_space(id);
    })?;
    Ok(Some(Effect::new(move |database, turn| match turn {
        Turn::Back => {
            database.catalog.remove_space(id);
            space.is_dropped.set(true);
        }
        Turn::Forth => {
            space.is_dropped.set(false);
            database.watch_expiry(&space);
            database.catalog.add_space(Rc::clone(&space));
        }
        Turn::GiveUp => {
            // Rows that only the transaction knew.
            if let Some(rows) = space.rows.memory().filter(|rows| !rows.borrow().is_empty()) {
                database.discard(Garbage::Space(rows.borrow_mut().take_all()));
            }
        }
    })))
}

fn drop_space(database: &Database, context: &Context, old: &Tuple) -> Result<Option<Effect>> {
    let id = Fields::new(old.data())?.uint()?;
    let space = database.space(SpaceId(id))?;
    let name = space.name();
    check_change(database, context, Privileges::DROP, ObjectType::Space, id, space.owner(), &name)?;
    let refuse = |why: &str| Err(Error::new(ErrorCode::DropSpace, &[&name, &why]));
    if space.is_system() {
        return refuse("the space is a system space");
    }
    if !context.origin.is_replay() {
        database.check_not_referenced(&space, false, true)?;
    }
    if !space.indexes().is_empty() {
        return refuse("the space has indexes");
    }
    if database.catalog.has_grants(ObjectType::Space, id) {
        return refuse("the space has grants");
    }
    if has_row(database, super::TRUNCATE_ID, IndexId::PRIMARY, id)? {
        return refuse("the space has truncate record");
    }
    if space.sequence.borrow().is_some() {
        return refuse("the space has attached sequence");
    }
    database.catalog.remove_space(SpaceId(id));
    space.is_dropped.set(true);
    let gone = Rc::clone(&space);
    let back = move |database: &Database| {
        space.is_dropped.set(false);
        database.watch_expiry(&space);
        database.catalog.add_space(Rc::clone(&space));
    };
    let forth = move |database: &Database| {
        database.catalog.remove_space(gone.id);
        gone.is_dropped.set(true);
    };
    Ok(Some(Effect::of(back, forth)))
}

/// True if a system space has a row with `id` as the first part of an index.
pub(super) fn has_row(database: &Database, space_id: SpaceId, index_id: IndexId, id: u32) -> Result<bool> {
    let mut key = Vec::new();
    tuple::msgpack::encode_uint(&mut key, u64::from(id));
    let space = database.space(space_id)?;
    let rows = space.rows.memory();
    Ok(rows.is_some_and(|rows| rows.borrow().count(index_id, IteratorKind::Eq, &key, 1) > 0))
}

/// The look at all rows that another format needs.
pub(super) fn plan_work(
    database: &Database,
    context: &Context,
    old: Option<&Tuple>,
    new: &Tuple,
) -> Result<Option<Work>> {
    let Some(old) = old else { return Ok(None) };
    plan_alter(database, context, old, new).map(|(_, work)| Some(work))
}

fn plan_alter(database: &Database, context: &Context, old: &Tuple, new: &Tuple) -> Result<(SpaceDef, Work)> {
    let id = Fields::new(old.data())?.uint()?;
    let space = database.space(SpaceId(id))?;
    let old_def = space.def();
    let def = parse_space(database, context.origin, new.data(), ErrorCode::AlterSpace)?;
    check_change(database, context, Privileges::ALTER, ObjectType::Space, id, old_def.owner, &old_def.name)?;
    check_given_owner(
        database,
        context,
        Some(old_def.owner),
        def.owner,
        Privileges::ALTER,
        ObjectType::Space,
        &def.name,
    )?;
    check_owner_of_view(database, context, Some(&old_def), &def)?;
    let refuse = |why: &str| Err(Error::new(ErrorCode::AlterSpace, &[&old_def.name, &why]));
    if def.engine != old_def.engine {
        return refuse("can not change space engine");
    }
    if def.is_session != old_def.is_session {
        return refuse("a space of a session stays one");
    }
    if def.group_id != old_def.group_id {
        return refuse("replication group is immutable");
    }
    if def.is_temporary != old_def.is_temporary && !space.rows.is_empty() {
        return refuse("can not switch temporary flag on a non-empty space");
    }
    if def.field_count != old_def.field_count
        && def.field_count != 0
        && !space.rows.is_empty()
        && old_def.field_count != 0
    {
        return refuse("can not change field count on a non-empty space");
    }
    if space.is_system() && def.name != old_def.name && !context.origin.is_replay() {
        return refuse("the space is a system space");
    }
    constraints::check_def(database, context, Some(&space), &def)?;
    let format = rows_format(database, context.origin, &def, &all_parts(&space))?;
    let work = Work { space, format, defs: Vec::new(), name: String::new(), what: "space format check" };
    Ok((def, work))
}

fn alter(database: &Database, context: &Context, old: &Tuple, new: &Tuple) -> Result<Option<Effect>> {
    let (def, work) = plan_alter(database, context, old, new)?;
    let space = Rc::clone(&work.space);
    let format = make_format(database, &def, &all_parts(&space))?;
    disk::check_format(database, context.origin, &space, &format, new)?;
    constraints::check_rows(database, context, &space, &def, new)?;
    database.apply_build(context, work, new)?;
    let work_space = Rc::clone(&space);
    let (old, new) = ((space.def(), space.format()), (Rc::new(def), format));
    let apply = move |database: &Database, (def, format): &(Rc<SpaceDef>, Rc<Format>)| {
        apply_def(database, &space, Rc::clone(def), Rc::clone(format));
    };
    apply(database, &new);
    constraints::check_meaning(database, context, &work_space).inspect_err(|_| apply(database, &old))?;
    Ok(Some(Effect::new(move |database, turn| match turn {
        Turn::Back => apply(database, &old),
        Turn::Forth => apply(database, &new),
        Turn::GiveUp => {}
    })))
}

/// The row of a space that exists already (a built-in one) came from a snapshot.
fn alter_in_place(database: &Database, def: &SpaceDef) -> Result<()> {
    let space = database.space(def.id)?;
    let format = make_format(database, def, &all_parts(&space))?;
    apply_def(database, &space, Rc::new(def.clone()), format);
    Ok(())
}

fn apply_def(database: &Database, space: &Rc<Space>, def: Rc<SpaceDef>, format: Rc<Format>) {
    let old_name = space.name();
    if old_name != def.name {
        database.catalog.rename_space(&old_name, &def.name, space.id);
    }
    let (old_keys, new_keys) = (space.def(), Rc::clone(&def));
    space.set_def(def);
    database.catalog.remove_references(space.id, &old_keys.foreign_keys);
    database.catalog.add_references(space.id, &new_keys.foreign_keys);
    database.watch_expiry(space);
    database.catalog.set_format(space, format);
    database.catalog.note_change(SchemaObject::Space(space.id));
}

/// The parts of all indexes of a space.
pub(super) fn all_parts(space: &Space) -> Vec<KeyPart> {
    space.indexes().iter().flat_map(|index| index.parts.clone()).collect()
}

pub(super) fn on_truncate(
    database: &Database,
    context: &Context,
    old: Option<&Tuple>,
    new: Option<&Tuple>,
) -> Result<Option<Effect>> {
    // Everybody may write to this space: what matters is the right on the one that it names.
    if let Some(row) = new.or(old)
        && let Some(named) = database.catalog.space(SpaceId(Fields::new(row.data())?.uint()?))
        && !context.origin.is_replay()
    {
        database.check_space_access(context, &named, Privileges::WRITE)?;
    }
    let Some(new) = new else {
        return Ok(None);
    };
    let mut fields = Fields::new(new.data())?;
    let id = fields.uint()?;
    let Some(space) = database.catalog.space(SpaceId(id)) else {
        // A truncation that a snapshot remembers of a space that is created later in it.
        return if context.origin.is_replay() { Ok(None) } else { Err(Error::new(ErrorCode::NoSuchSpace, &[&id])) };
    };
    if space.is_system() && !context.origin.is_replay() {
        return Err(Error::new(ErrorCode::TruncateSystemSpace, &[&space.name()]));
    }
    check_not_building(&space)?;
    if !context.origin.is_replay() && !context.skips_foreign_keys.get() {
        database.check_not_referenced(&space, false, false)?;
    }
    let Some(rows) = space.rows.memory() else { return disk::truncate(database, context.origin, &space) };
    let taken = Rc::new(RefCell::new(Some(rows.borrow_mut().take_all())));
    let kept = Rc::clone(&taken);
    Ok(Some(
        Effect::new(move |database, turn| {
            let mut other = taken.borrow_mut();
            match (turn, space.rows.memory()) {
                (Turn::Back | Turn::Forth, Some(rows)) => {
                    rows.borrow_mut().lose_fork();
                    *other = other.take().map(|there| std::mem::replace(&mut *rows.borrow_mut(), there));
                }
                (Turn::GiveUp, _) => other.take().into_iter().for_each(|rows| database.discard(Garbage::Space(rows))),
                _ => {}
            }
        })
        .and_finish(move |database| {
            if let Some(rows) = kept.borrow_mut().take() {
                database.discard(Garbage::Space(rows));
            }
        }),
    ))
}

pub(super) fn on_collation(
    database: &Database,
    context: &Context,
    old: Option<&Tuple>,
    new: Option<&Tuple>,
) -> Result<Option<Effect>> {
    if let Some(old) = old {
        let mut fields = Fields::new(old.data())?;
        let (id, name) = (fields.uint()?, fields.str()?.to_string());
        check_change(database, context, Privileges::DROP, ObjectType::Collation, id, NOBODY, &name)?;
        if new.is_none() {
            let is_used = database.catalog.spaces().iter().any(|space| {
                let uses = |collation: &Option<Arc<Collation>>| collation.as_ref().is_some_and(|c| c.id() == id);
                space.def().fields.iter().any(|field| uses(&field.collation))
                    || all_parts(space).iter().any(|part| uses(&part.collation))
            });
            if is_used {
                return Err(Error::new(ErrorCode::DropCollation, &[&name, &"it is used by a space"]));
            }
            let gone = database.catalog.set_collation(id, None);
            let back = move |database: &Database| drop(database.catalog.set_collation(id, gone.clone()));
            return Ok(Some(Effect::of(back, move |database| drop(database.catalog.set_collation(id, None)))));
        }
        return Err(Error::new(ErrorCode::Unsupported, &[&"collation", &"alter"]));
    }
    let Some(new) = new else {
        return Ok(None);
    };
    let mut fields = Fields::new(new.data())?;
    let id = fields.uint()?;
    let name = fields.str()?.to_string();
    let _owner = fields.uint()?;
    let kind = fields.str()?.to_string();
    let locale = fields.str()?.to_string();
    let options = fields.raw()?;
    check_change(database, context, Privileges::CREATE, ObjectType::Collation, id, NOBODY, &name)?;
    let collation = Collation::from_row(id, &name, &kind, &locale, options)
        .map_err(|error| Error::new(ErrorCode::CantCreateCollation, &[&error]))?;
    let made = Some(Arc::new(collation));
    let before = database.catalog.set_collation(id, made.clone());
    let back = move |database: &Database| drop(database.catalog.set_collation(id, before.clone()));
    Ok(Some(Effect::of(back, move |database| drop(database.catalog.set_collation(id, made.clone())))))
}
