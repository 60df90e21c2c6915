//! Schemas beside `public`: CREATE SCHEMA of PostgreSQL's dialect, `search_path`, and names with a schema before them.
//!
//! The catalog of spaces is flat. What is in schema `s` has the schema before its own name there: table `t` of it is the space `s.t`, its sequence
//! `s.t_id_seq`; what is in `public` has its plain name. The schema itself is a space without fields and indexes, as [types](crate::user_types) are, whose
//! name is `s.` and which has `sql = {schema = true}` below `checks` among its options: so a table may be named as a schema is, and whether there is a
//! schema is one look-up.
//!
//! A statement is freed of schemas before anything else is done with it ([`names`]): each name of a table, sequence, index or type, with a schema or by the
//! path of the session, becomes that of the catalog. What is kept as text, a view or a default, therefore means the same to every session.
//!
//! Doors without schemas, MySQL's and Tarantool's, know what is in one by its name in the catalog.

mod ddl;
mod names;

pub use ddl::SCHEMAS_MAX;
pub(crate) use ddl::{alter_schema, create_schema, drop_schemas, respell, set_schema, wanted_schema};
pub(crate) use names::resolve;

use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::statement::Sql;
use crate::value::Value;
use database::{Database, Space};
use hashbrown::HashMap;
use std::cell::RefCell;
use std::rc::Rc;
use tuple::SpaceId;

/// What stands between a schema and a name in the catalog, and behind the name of a schema's own space.
const SEPARATOR: char = '.';
/// Stands before a name that no schema of the path has, so that nobody finds it; messages are freed of it.
const NOWHERE: char = '\u{4}';
/// The key of the definition of a schema below `sql`.
const KEY: &str = "schema";

/// A schema of a user's.
pub(crate) struct UserSchema {
    pub(crate) space: SpaceId,
    pub(crate) name: String,
    pub(crate) owner: u32,
}

impl UserSchema {
    /// Its number in PostgreSQL's catalog.
    pub(crate) fn number(&self) -> i64 {
        crate::catalog::table_number(self.space.0)
    }

    /// The name in the catalog of what is in it.
    pub(crate) fn full(&self, name: &str) -> String {
        format!("{}{SEPARATOR}{name}", self.name)
    }
}

/// Schemas as they are under one version of the catalog.
#[derive(Default)]
pub(crate) struct Known {
    version: u64,
    schemas: Rc<Schemas>,
}

/// The schemas that there are, in the order of their names.
#[derive(Default)]
pub(crate) struct Schemas {
    listed: Vec<Rc<UserSchema>>,
    by_name: HashMap<String, Rc<UserSchema>>,
}

impl Schemas {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Rc<UserSchema>> {
        self.listed.iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.listed.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.listed.len()
    }
}

/// What is kept of schemas with a database.
pub(crate) type Cache = RefCell<Known>;

/// All of them but `public` and those of the system, by their names.
pub(crate) fn all(database: &Database) -> Rc<Schemas> {
    let sql = Sql::of(database);
    let version = database.catalog.schema_version();
    {
        let known = sql.user_schemas.borrow();
        if known.version == version {
            return Rc::clone(&known.schemas);
        }
    }
    let spaces = database.catalog.spaces();
    let mut listed: Vec<Rc<UserSchema>> =
        spaces.iter().filter_map(|space| of_space(database, space)).map(Rc::new).collect();
    listed.sort_by(|a, b| a.name.cmp(&b.name));
    let by_name = listed.iter().map(|schema| (schema.name.clone(), Rc::clone(schema))).collect();
    let schemas = Rc::new(Schemas { listed, by_name });
    *sql.user_schemas.borrow_mut() = Known { version, schemas: Rc::clone(&schemas) };
    schemas
}

/// The schema that a space is; none if it is something else.
fn of_space(database: &Database, space: &Space) -> Option<UserSchema> {
    if !space.def().fields.is_empty() || space.is_system() || !space.index_defs().is_empty() {
        return None;
    }
    let name = space.name().strip_suffix(SEPARATOR)?.to_string();
    crate::user_types::definition(database, space, KEY)?;
    Some(UserSchema { space: space.id, name, owner: space.owner() })
}

/// The schema of a name.
pub(crate) fn by_name(database: &Database, name: &str) -> Option<Rc<UserSchema>> {
    all(database).by_name.get(name).cloned()
}

/// The schema that a name of the catalog begins with, if it is in one, and the name that it has there.
pub(crate) fn split<'n>(database: &Database, name: &'n str) -> (Option<Rc<UserSchema>>, &'n str) {
    let Some((schema, local)) = name.split_once(SEPARATOR).filter(|(_, local)| !local.is_empty()) else {
        return (None, name);
    };
    match by_name(database, schema) {
        Some(schema) => (Some(schema), local),
        None => (None, name),
    }
}

/// A name of the catalog without its schema.
pub(crate) fn local<'n>(database: &Database, name: &'n str) -> &'n str {
    split(database, name).1
}

/// The name of the schema that something of the catalog is in.
pub(crate) fn schema_name(schema: Option<&UserSchema>) -> &str {
    schema.map_or("public", |schema| &schema.name)
}

/// The name in the catalog of what has this name in the schema of something else.
pub(crate) fn beside(database: &Database, other: &str, name: &str) -> String {
    match split(database, other).0 {
        Some(schema) => schema.full(name),
        None => name.to_string(),
    }
}

/// A name of the catalog as statements have it: in quotes where it needs them, behind its schema unless it is found without.
pub(crate) fn shown(database: &Database, name: &str) -> String {
    let parts: Vec<String> = shown_parts(database, name).iter().map(|part| crate::catalog::quoted(part)).collect();
    parts.join(".")
}

/// The parts of a name as statements have it: its schema, unless it is found without, and the name.
pub(crate) fn shown_parts(database: &Database, name: &str) -> Vec<String> {
    let (schema, local) = split(database, name);
    match is_visible(database, name) {
        true => vec![local.to_string()],
        false => vec![schema_name(schema.as_deref()).to_string(), local.to_string()],
    }
}

/// True if what a name of the catalog means is found without its schema by the session that speaks.
pub(crate) fn is_visible(database: &Database, name: &str) -> bool {
    let (schema, local) = split(database, name);
    let id = |place: Option<&UserSchema>| place.map(|schema| schema.space);
    let places = path(database);
    match places.iter().find(|place| holds(database, place.as_deref(), local)) {
        Some(place) => id(place.as_deref()) == id(schema.as_deref()),
        // What has no space of its own, as an index: by its schema alone.
        None => places.iter().any(|place| id(place.as_deref()) == id(schema.as_deref())),
    }
}

/// True if a schema, or `public`, has something of this name.
fn holds(database: &Database, place: Option<&UserSchema>, local: &str) -> bool {
    let name = full_name(place, local);
    database.catalog.space_by_name(&name).is_some() || database.catalog.sequence_by_name(&name).is_some()
}

fn full_name(place: Option<&UserSchema>, local: &str) -> String {
    place.map_or_else(|| local.to_string(), |schema| schema.full(local))
}

/// The schemas in which the session that speaks looks for names, in order; none stands for `public`. Those that are not there are passed over.
pub(crate) fn path(database: &Database) -> Rc<[Option<Rc<UserSchema>>]> {
    let sql = Sql::of(database);
    let Some(session) = sql.speaking_session().filter(|session| !session.is_mysql) else { return Rc::new([None]) };
    let listed = session.path();
    let known = all(database);
    if listed.is_none() && known.is_empty() {
        return Rc::new([None]);
    }
    let usual = || vec!["$user".to_string(), "public".to_string()];
    let names: Vec<String> = listed.map_or_else(usual, |listed| listed.to_vec());
    let mut places: Vec<Option<Rc<UserSchema>>> = Vec::new();
    for name in names {
        let name = if name == "$user" { session.user.borrow().clone() } else { name };
        let place = match known.by_name.get(&name) {
            Some(schema) => Some(Rc::clone(schema)),
            None if name == "public" => None,
            None => continue,
        };
        let id = |place: &Option<Rc<UserSchema>>| place.as_ref().map(|schema| schema.space);
        if !places.iter().any(|other| id(other) == id(&place)) {
            places.push(place);
        }
    }
    places.into()
}

/// The names of the schemas of the path of the session that speaks.
pub(crate) fn path_names(database: &Database) -> Vec<String> {
    path(database).iter().map(|place| schema_name(place.as_deref()).to_string()).collect()
}

/// Names in `search_path`: each name of a statement is looked for along them.
pub const PATH_MAX: usize = 100;

/// The names that `search_path` has, as the setting is written. None: it is as it is by itself.
pub(crate) fn names_of_setting(setting: &str) -> Option<Rc<[String]>> {
    let mut names = Vec::new();
    let mut rest = setting.trim();
    while !rest.is_empty() {
        let (name, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let end = quoted.find('"').unwrap_or(quoted.len());
                (quoted[..end].to_string(), quoted[end..].trim_start_matches('"'))
            }
            None => {
                let end = rest.find(',').unwrap_or(rest.len());
                (rest[..end].trim().to_string(), &rest[end..])
            }
        };
        if !name.is_empty() {
            names.push(name);
        }
        rest = after.trim_start().trim_start_matches(',').trim_start();
    }
    let is_usual = matches!(names.as_slice(), [first, second] if first == "$user" && second == "public");
    (!is_usual && names != ["public"]).then(|| names.into())
}

/// What a name may be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Tables, views and sequences.
    Relation,
    Index,
    Type,
}

/// True for the name of what no schema of the path has, whatever somebody may have called so.
pub(crate) fn is_nowhere(name: &str) -> bool {
    name.starts_with(NOWHERE)
}

fn is_there(database: &Database, kind: Kind, name: &str) -> bool {
    match kind {
        Kind::Index => space_of_index(database, name).is_some(),
        Kind::Relation => {
            crate::temporary::space_by_name(database, name).is_some()
                || database.catalog.sequence_by_name(name).is_some()
        }
        Kind::Type => crate::user_types::by_name(database, name).is_some(),
    }
}

/// The space of an index, whose name has the schema of its table before it, and the index's own name.
pub(crate) fn space_of_index<'n>(database: &Database, name: &'n str) -> Option<(Rc<Space>, &'n str)> {
    let (schema, local) = split(database, name);
    let is_of = |space: &Rc<Space>| {
        let of = split(database, &space.name()).0;
        of.map(|schema| schema.space) == schema.as_ref().map(|schema| schema.space)
    };
    let spaces = database.catalog.spaces();
    let mut fitting = spaces.into_iter().filter(|space| !space.is_system() && space.index_by_name(local).is_some());
    fitting.find(is_of).map(|space| (space, local))
}

/// The schemas whose tables have an index of this name; none stands for `public`.
fn holders_of_index(database: &Database, name: &str) -> Vec<Option<SpaceId>> {
    let spaces = database.catalog.spaces();
    let having = spaces.iter().filter(|space| !space.is_system() && space.index_by_name(name).is_some());
    having.map(|space| split(database, &space.name()).0.map(|schema| schema.space)).collect()
}

/// The name in the catalog that a name without a schema has to the session that speaks. None: it stays as it is.
pub(crate) fn along_path(database: &Database, kind: Kind, name: &str) -> Option<String> {
    let places = path(database);
    if let [None] = &*places {
        return None;
    }
    if split(database, name).0.is_some() || is_nowhere(name) {
        return None;
    }
    let sql = Sql::of(database);
    if kind != Kind::Type && sql.own_space(database, name).is_some() {
        return None;
    }
    if kind == Kind::Relation && crate::catalog::find(Dialect::Postgres, None, name).is_some() {
        return None;
    }
    let holders = if kind == Kind::Index { holders_of_index(database, name) } else { Vec::new() };
    let is_held = |place: &Option<Rc<UserSchema>>| holders.contains(&place.as_ref().map(|schema| schema.space));
    let found =
        places.iter().map(|place| (place, full_name(place.as_deref(), name))).find(|(place, name)| match kind {
            Kind::Index => is_held(place),
            _ => is_there(database, kind, name),
        });
    let found = found.map(|(_, name)| name);
    match found {
        Some(found) if found == name => None,
        Some(found) => Some(found),
        // What only `public` has is not found by a path without it.
        None if places.iter().any(Option::is_none) => None,
        None => Some(format!("{NOWHERE}{name}")),
    }
}

/// The name in the catalog of what is made without a schema. Errors: the path has none that is there.
pub(crate) fn of_new(database: &Database, name: &str) -> Result<String> {
    match path(database).first() {
        Some(place) => Ok(full_name(place.as_deref(), name)),
        None => Err(Error::new(Condition::UndefinedSchema, "no schema has been selected to create in".to_string())),
    }
}

/// The name in the catalog of what a statement names with a schema of a user's before it. None: it has none.
pub(crate) fn of_object(database: &Database, dialect: Dialect, name: &sqlparser::ast::ObjectName) -> Option<String> {
    use sqlparser::ast::ObjectNamePart::Identifier;
    match name.0.as_slice() {
        [.., Identifier(schema), Identifier(name)] if dialect == Dialect::Postgres => {
            by_name(database, &dialect.fold(schema)).map(|schema| schema.full(&dialect.fold(name)))
        }
        _ => None,
    }
}

/// The name in the catalog that a text means: in quotes where they are needed, with or without a schema. Errors: there is no such schema.
pub(crate) fn named(database: &Database, kind: Kind, text: &str) -> Result<String> {
    let parts = parts_of(text);
    let Some((name, before)) = parts.split_last() else { return Ok(String::new()) };
    let Some(schema) = before.last() else {
        return Ok(along_path(database, kind, name).unwrap_or_else(|| name.clone()));
    };
    match by_name(database, schema) {
        Some(schema) => Ok(schema.full(name)),
        None => Dialect::Postgres.check_schema(schema).map(|()| name.clone()),
    }
}

/// The parts of a name as a text has it.
fn parts_of(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut rest = text.trim().chars().peekable();
    let mut is_quoted = false;
    while let Some(c) = rest.next() {
        match c {
            '"' if is_quoted && rest.peek() == Some(&'"') => {
                rest.next();
                parts.last_mut().into_iter().for_each(|part| part.push('"'));
            }
            '"' => is_quoted = !is_quoted,
            '.' if !is_quoted => parts.push(String::new()),
            c if is_quoted => parts.last_mut().into_iter().for_each(|part| part.push(c)),
            c => parts.last_mut().into_iter().for_each(|part| part.extend(c.to_lowercase())),
        }
    }
    parts
}

/// A text of a statement in which names of the catalog stand as statements have them. Those of `public` have `prefix` before them already.
pub(crate) fn respelled(database: &Database, text: &str) -> String {
    if all(database).is_empty() || !text.contains(SEPARATOR) {
        return text.to_string();
    }
    let Ok(tokens) = Dialect::Postgres.tokens(text) else { return text.to_string() };
    let shown = tokens.iter().map(|token| match &token.token {
        sqlparser::tokenizer::Token::Word(word) if word.quote_style == Some('"') => {
            match split(database, &word.value) {
                (Some(_), _) => shown(database, &word.value),
                _ => token.token.to_string(),
            }
        }
        token => token.to_string(),
    });
    shown.collect()
}

impl Error {
    /// In the words of PostgreSQL's dialect: without the marks of names that the path does not have, and with the table that it is about apart from its
    /// schema.
    #[must_use]
    pub(crate) fn freed_of_schemas(self, database: &Database, dialect: Dialect) -> Self {
        if dialect != Dialect::Postgres {
            return self;
        }
        let body = self.body();
        let texts = [Some(&body.message), body.detail.as_ref(), body.hint.as_ref()];
        let is_marked = texts.into_iter().flatten().any(|text| text.contains(NOWHERE));
        let place = body.table.as_deref().map(|full| (full.to_string(), split(database, full).0));
        let error = if is_marked { self.reworded(|text| text.replace(NOWHERE, "")) } else { self };
        // Two tables are named there.
        let is_of_key = error.condition() == Condition::ForeignKeyViolation;
        let error = all(database).iter().filter(|_| is_of_key).fold(error, |error, schema| {
            let long = format!("table \"{}{SEPARATOR}", schema.name);
            error.reworded(|text| text.replace(&long, "table \""))
        });
        let Some((full, Some(schema))) = place else { return error };
        let local = local(database, &full).to_string();
        let (long, short) = (format!("\"{full}\""), format!("\"{local}\""));
        error.reworded(|text| text.replace(&long, &short)).of_schema(&schema.name, &local)
    }
}

/// The names of an array of text.
pub(crate) fn as_array(names: &[String]) -> Value {
    let mut out = Vec::new();
    tuple::msgpack::encode_array(&mut out, names.len() as u32);
    names.iter().for_each(|name| tuple::msgpack::encode_str(&mut out, name.as_bytes()));
    Value::Document(out.into())
}
