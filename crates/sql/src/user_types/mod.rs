//! Types that users make: `CREATE TYPE ... AS ENUM` and `CREATE DOMAIN` of PostgreSQL's dialect.
//!
//! Where a definition is: a type is a space without fields and indexes, which therefore has no rows; its definition stands among the options of the space
//! below `checks`, where Tarantool passes it over: `sql = {enum = ...}` or `sql = {domain = ...}`. So a type has an owner, a number that no other type gets again, and a name that no
//! table has beside it, as in PostgreSQL; it is logged, taken back and found after a restart as tables are.
//!
//! How a value of an enum is kept: as the number of its place, in a field of type `number`. The values that CREATE TYPE lists are 1, 2, 3 and so on; one that
//! is added behind all others is the next whole number, one between two others is the number half way, one before all others is one less than the first.
//!
//! ```text
//! CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')        sad 1   ok 2   happy 3
//! ALTER TYPE mood ADD VALUE 'fine' BEFORE 'happy'        sad 1   ok 2   fine 2.5   happy 3
//! ```
//!
//! So rows and indexes stay as they are whatever is added or renamed, and the order of an index is that of the type: numbers are compared, which every door
//! does alike. Text would be in the order of its letters, and numbers without gaps would have to be given anew. What it costs: doors without SQL see the
//! numbers, and can write one that stands for nothing. PostgreSQL keeps the same number (`enumsortorder`) beside the text of each value.
//!
//! In statements: an expression of the type has the number, and what leaves the statement has the text ([`labelled`]); text becomes a number where it is
//! cast ([`numbered`]). A column of a domain is one of the type below it; a cast goes through the domain's conditions
//! (`bind/user_types.rs`), and so does each row that is written, whatever protocol writes it ([`conditions`]).

mod conditions;
mod ddl;
mod domains;
mod functions;
mod uses;

pub(crate) use conditions::{check, has_conditions, of_space as conditions_of_space};
pub(crate) use ddl::{alter, create_enum, drop_types, put_definition, put_field};
pub(crate) use domains::{alter_domain, altered, create_domain, drop_domain, is_domain, respell};
pub(crate) use functions::find as find_function;

use crate::array::elements;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::statement::Sql;
use crate::types::{Base, Type};
use crate::value::Value;
use database::{Database, Space};
use hashbrown::HashMap;
use sqlparser::ast::{self, DataType};
use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use tuple::SpaceId;
use tuple::msgpack::{self, Reader};

/// Values of one type.
pub const VALUES_MAX: usize = 65_536;
/// Bytes of a value's text, as in PostgreSQL.
pub(crate) const LABEL_MAX: usize = 63;
/// Domains that are made of each other.
const DOMAINS_MAX: usize = 32;

/// Where the numbers begin that types of users have in PostgreSQL's catalog: two for each, its own and that of arrays of it.
const NUMBERS: u32 = 1 << 29;
/// Above them are those of sequences.
const NUMBERS_END: u32 = 1 << 30;

/// Stands around the number of a type in a message, until the type's name takes its place.
const MARK: char = '\u{3}';

/// A type of a user's.
pub(crate) struct UserType {
    pub(crate) space: SpaceId,
    pub(crate) name: String,
    /// Its name in the catalog, which has its schema before it if it is not in `public`.
    pub(crate) full: String,
    pub(crate) owner: u32,
    pub(crate) kind: Kind,
}

/// What it is.
pub(crate) enum Kind {
    /// One of some values, in their order.
    Enum(Vec<Label>),
    Domain(Domain),
}

/// A value of an enum.
#[derive(Clone)]
pub(crate) struct Label {
    /// By which it is kept and compared.
    pub(crate) number: Value,
    pub(crate) text: Rc<str>,
}

/// Another type and what holds for its values.
#[derive(Clone)]
pub(crate) struct Domain {
    /// That type, as a column's format has it.
    pub(crate) base: String,
    pub(crate) default: Option<String>,
    pub(crate) is_not_null: bool,
    /// Names and conditions over VALUE.
    pub(crate) checks: Vec<(String, String)>,
}

impl UserType {
    /// Its number in PostgreSQL's catalog.
    pub(crate) fn number(&self) -> i64 {
        i64::from(NUMBERS + 2 * self.space.0)
    }

    /// The values, if it lists some.
    pub(crate) fn labels(&self) -> Option<&[Label]> {
        match &self.kind {
            Kind::Enum(labels) => Some(labels),
            Kind::Domain(_) => None,
        }
    }

    /// What it is beyond another type.
    pub(crate) fn domain(&self) -> Option<&Domain> {
        match &self.kind {
            Kind::Enum(_) => None,
            Kind::Domain(domain) => Some(domain),
        }
    }

    /// How a column's format names it.
    pub(crate) fn declared(&self) -> String {
        format!("{DECLARED}{}", self.space.0)
    }

    fn number_of(&self, text: &str) -> Option<Value> {
        let labels = self.labels()?;
        labels.iter().find(|label| &*label.text == text).map(|label| label.number.clone())
    }

    fn label_of(&self, number: &Value) -> Option<Value> {
        let labels = self.labels()?;
        let at = labels.binary_search_by(|label| label.number.order(number)).ok()?;
        Some(Value::Text(Rc::clone(&labels[at].text)))
    }
}

/// The key of a definition below `checks`.
const KEY: &str = "sql";

/// What stands before a type's number in a column's format; behind it `[]` for arrays.
const DECLARED: &str = "type ";

/// Types as they are under one version of the schema.
#[derive(Default)]
pub(crate) struct Known {
    version: u64,
    types: HashMap<u32, Option<Rc<UserType>>>,
    conditions: HashMap<u32, Rc<conditions::Conditions>>,
}

/// The type of a number.
pub(crate) fn by_id(database: &Database, id: u32) -> Option<Rc<UserType>> {
    let sql = Sql::of(database);
    let version = database.catalog.schema_version();
    {
        let known = sql.user_types.borrow();
        if known.version == version
            && let Some(found) = known.types.get(&id)
        {
            return found.clone();
        }
    }
    let found = database.catalog.space(SpaceId(id)).and_then(|space| of_space(database, &space)).map(Rc::new);
    let mut known = sql.user_types.borrow_mut();
    if known.version != version {
        *known = Known { version, ..Known::default() };
    }
    known.types.insert(id, found.clone());
    found
}

/// The type of a name.
pub(crate) fn by_name(database: &Database, name: &str) -> Option<Rc<UserType>> {
    let space = database.catalog.space_by_name(name)?;
    by_id(database, space.id.0)
}

/// All of them, by their names.
pub(crate) fn all(database: &Database) -> Vec<Rc<UserType>> {
    let spaces = database.catalog.spaces();
    let mut found: Vec<Rc<UserType>> =
        spaces.iter().filter(|space| may_be_type(space)).filter_map(|space| by_id(database, space.id.0)).collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    found
}

fn may_be_type(space: &Space) -> bool {
    space.def().fields.is_empty() && !space.is_system() && space.index_defs().is_empty()
}

/// The type that a space is; none if it is something else.
fn of_space(database: &Database, space: &Space) -> Option<UserType> {
    if !may_be_type(space) {
        return None;
    }
    let kind = match definition(database, space, "enum") {
        Some(labels) => decode_labels(&labels).map(Kind::Enum)?,
        None => decode_domain(&definition(database, space, "domain")?).map(Kind::Domain)?,
    };
    let full = space.name();
    let name = crate::schemas::local(database, &full).to_string();
    Some(UserType { space: space.id, name, full, owner: space.owner(), kind })
}

/// The definition of a kind that a space without fields and indexes has among its options.
pub(crate) fn definition(database: &Database, space: &Space, kind: &str) -> Option<Vec<u8>> {
    let said = crate::comments::below(database, space.id).into_iter().find(|(key, _)| key == KEY)?.1;
    let found = crate::constraint::raw_entries(&said).into_iter().find(|(key, _)| key == kind);
    found.map(|(_, definition)| definition)
}

fn decode_labels(bytes: &[u8]) -> Option<Vec<Label>> {
    let mut reader = Reader::new(bytes);
    let mut labels = Vec::new();
    for _ in 0..reader.read_array().ok()? {
        if reader.read_array().ok()? != 2 {
            return None;
        }
        let text = String::from_utf8(reader.read_str().ok()?.to_vec()).ok()?;
        labels.push(Label { text: text.into(), number: Value::decode(reader.read_value().ok()?) });
    }
    labels.sort_by(|a, b| a.number.order(&b.number));
    Some(labels)
}

/// What stands below `checks` for a definition.
fn encode_kind(kind: &str, definition: Vec<u8>) -> Vec<u8> {
    crate::constraint::encode_entries(&[(kind.to_string(), definition)])
}

fn encode_labels(labels: &[Label]) -> Vec<u8> {
    let mut out = Vec::new();
    msgpack::encode_array(&mut out, labels.len() as u32);
    for label in labels {
        msgpack::encode_array(&mut out, 2);
        msgpack::encode_str(&mut out, label.text.as_bytes());
        label.number.encode(&mut out);
    }
    out
}

fn decode_domain(bytes: &[u8]) -> Option<Domain> {
    let text = |reader: &mut Reader<'_>| String::from_utf8(reader.read_str().ok()?.to_vec()).ok();
    let mut domain = Domain { base: String::new(), default: None, is_not_null: false, checks: Vec::new() };
    let mut reader = Reader::new(bytes);
    for _ in 0..reader.read_map().ok()? {
        match reader.read_str().ok()? {
            b"type" => domain.base = text(&mut reader)?,
            b"default" => domain.default = Some(text(&mut reader)?),
            b"not_null" => domain.is_not_null = reader.read_bool().ok()?,
            b"checks" => {
                for _ in 0..reader.read_array().ok()? {
                    reader.read_array().ok().filter(|count| *count == 2)?;
                    domain.checks.push((text(&mut reader)?, text(&mut reader)?));
                }
            }
            _ => drop(reader.read_value().ok()?),
        }
    }
    Some(domain)
}

fn encode_domain(domain: &Domain) -> Vec<u8> {
    let mut out = Vec::new();
    msgpack::encode_map(&mut out, 3 + u32::from(domain.default.is_some()));
    msgpack::encode_str(&mut out, b"type");
    msgpack::encode_str(&mut out, domain.base.as_bytes());
    if let Some(default) = &domain.default {
        msgpack::encode_str(&mut out, b"default");
        msgpack::encode_str(&mut out, default.as_bytes());
    }
    msgpack::encode_str(&mut out, b"not_null");
    msgpack::encode_bool(&mut out, domain.is_not_null);
    msgpack::encode_str(&mut out, b"checks");
    msgpack::encode_array(&mut out, domain.checks.len() as u32);
    for (name, condition) in &domain.checks {
        msgpack::encode_array(&mut out, 2);
        msgpack::encode_str(&mut out, name.as_bytes());
        msgpack::encode_str(&mut out, condition.as_bytes());
    }
    out
}

/// What a name of a type means.
pub(crate) struct Resolved {
    /// What its values are: of a domain the type below it.
    pub(crate) ty: Type,
    /// The type of a user's that it is, or that elements of its arrays are.
    pub(crate) user: Option<Rc<UserType>>,
    /// How a column's format names it, if it is of a user's.
    pub(crate) declared: Option<String>,
}

impl Resolved {
    /// As a client says the type of a parameter: a domain as itself, and not as the type below it.
    pub(crate) fn of_parameter(&self) -> Type {
        let number = self.declared.as_deref().and_then(number_of_declared);
        number.and_then(|number| Type::of_user_number(u32::try_from(number).ok()?)).unwrap_or(self.ty)
    }

    /// The domain that it is: not one of the elements of arrays.
    pub(crate) fn domain(&self) -> Option<&Rc<UserType>> {
        self.user.as_ref().filter(|user| user.domain().is_some() && self.declared.as_deref() == Some(&user.declared()))
    }
}

/// What the name of a type in a statement means. Errors: there is no such type.
pub(crate) fn resolve(database: &Database, dialect: Dialect, declared: &DataType) -> Result<Resolved> {
    let known = Type::of_ast(dialect, declared);
    let error = match known {
        Ok(ty) => return Ok(Resolved { ty, user: None, declared: None }),
        Err(error) if dialect != Dialect::Postgres || error.condition() != Condition::UndefinedObject => {
            return Err(error);
        }
        // A name of the catalog stands in quotes there.
        Err(error) => error.reworded(|text| text.replace("\"\"", "\"")),
    };
    match find(database, dialect, declared) {
        Some((user, is_array)) => {
            let brackets = if is_array { "[]" } else { "" };
            of_declared(database, &format!("{}{brackets}", user.declared())).ok_or(error)
        }
        None => Err(error),
    }
}

/// The type that is named, and whether arrays of it are meant.
fn find(database: &Database, dialect: Dialect, declared: &DataType) -> Option<(Rc<UserType>, bool)> {
    match declared {
        DataType::Array(
            ast::ArrayElemTypeDef::SquareBracket(element, _)
            | ast::ArrayElemTypeDef::AngleBracket(element)
            | ast::ArrayElemTypeDef::Parenthesis(element),
        ) => find(database, dialect, element).map(|(user, _)| (user, true)),
        DataType::Custom(name, modifiers) if modifiers.is_empty() => {
            let name = match crate::schemas::of_object(database, dialect, name) {
                Some(full) => full,
                None => dialect.object_name(name).ok()?,
            };
            let along = |name: &str| {
                let full = crate::schemas::along_path(database, crate::schemas::Kind::Type, name);
                by_name(database, full.as_deref().unwrap_or(name))
            };
            match along(&name) {
                Some(user) => Some((user, false)),
                // The catalog's names of arrays.
                None => {
                    let (schema, local) = crate::schemas::split(database, &name);
                    let element = local.strip_prefix('_')?;
                    let element = schema.map_or_else(|| element.to_string(), |schema| schema.full(element));
                    along(&element).map(|user| (user, true))
                }
            }
        }
        // A name that is a word of the parser's.
        other => by_name(database, &other.to_string().to_lowercase()).map(|user| (user, false)),
    }
}

/// True for the type in a column's format if it is one of a user's.
pub(crate) fn is_declared(declared: &str) -> bool {
    declared.starts_with(DECLARED)
}

/// The number in PostgreSQL's catalog of the type in a column's format, if it is one of a user's.
pub(crate) fn number_of_declared(declared: &str) -> Option<i64> {
    let rest = declared.strip_prefix(DECLARED)?;
    let (number, is_array) = match rest.strip_suffix("[]") {
        Some(number) => (number, true),
        None => (rest, false),
    };
    Some(i64::from(NUMBERS) + 2 * number.parse::<i64>().ok()? + i64::from(is_array))
}

/// What the type in a column's format means, if it is one of a user's.
pub(crate) fn of_declared(database: &Database, declared: &str) -> Option<Resolved> {
    of_declared_within(database, declared, DOMAINS_MAX)
}

fn of_declared_within(database: &Database, declared: &str, levels: usize) -> Option<Resolved> {
    let rest = declared.strip_prefix(DECLARED)?;
    let (number, is_array) = match rest.strip_suffix("[]") {
        Some(number) => (number, true),
        None => (rest, false),
    };
    let user = by_id(database, number.parse().ok()?)?;
    let ty = match &user.kind {
        Kind::Enum(_) => Type { length: user.space.0, ..Type::of(Base::Enum) },
        Kind::Domain(domain) => match of_declared_within(database, &domain.base, levels.checked_sub(1)?) {
            Some(below) => below.ty,
            None => crate::table::read_type(Dialect::Postgres, &domain.base)?,
        },
    };
    let ty = if is_array { Type::array_of(ty) } else { ty };
    Some(Resolved { ty, user: Some(user), declared: Some(declared.to_string()) })
}

/// The domains that a value of one has to fulfil: itself, and those that it is made of.
pub(crate) fn domains_below(database: &Database, user: &Rc<UserType>) -> Vec<Rc<UserType>> {
    let mut found = vec![Rc::clone(user)];
    while let Some(next) = found
        .last()
        .and_then(|user| user.domain())
        .and_then(|domain| domain.base.strip_prefix(DECLARED)?.parse().ok())
        .and_then(|id| by_id(database, id))
        .filter(|next| next.domain().is_some() && found.len() < DOMAINS_MAX)
    {
        found.push(next);
    }
    found
}

impl Type {
    /// The number in PostgreSQL's catalog of a type of a user's, or of arrays of one; 0 for others.
    pub fn user_number(self) -> u32 {
        match (self.base, self.element().base) {
            (Base::Enum, _) => NUMBERS + 2 * self.length,
            (Base::Array, Base::Enum) => NUMBERS + 2 * self.element().length + 1,
            _ => 0,
        }
    }

    /// The type of a user's that has such a number, or that of arrays of it. Whether it is there is looked at where it is used.
    pub fn of_user_number(number: u32) -> Option<Type> {
        let place = number.checked_sub(NUMBERS).filter(|_| number < NUMBERS_END)?;
        let ty = Type { length: place / 2, ..Type::of(Base::Enum) };
        Some(if place % 2 == 1 { Type::array_of(ty) } else { ty })
    }

    /// True for types of users whose values have texts, and for arrays of them.
    pub fn has_labels(self) -> bool {
        self.base == Base::Enum || self.base == Base::Array && self.element().base == Base::Enum
    }

    /// The type with texts in the places of values that have some.
    pub(crate) fn with_texts(self) -> Type {
        match self.base {
            Base::Enum => Type::TEXT,
            _ if self.has_labels() => Type::array_of(Type::TEXT),
            _ => self,
        }
    }
}

/// The type that a number means which a client gives a parameter: that below a domain.
pub(crate) fn of_parameter(database: &Database, ty: Type) -> Type {
    let element = if ty.base == Base::Array { ty.element() } else { ty };
    let domain = (element.base == Base::Enum).then(|| by_id(database, element.length)).flatten();
    match domain.filter(|user| user.domain().is_some()).and_then(|user| of_declared(database, &user.declared())) {
        Some(below) if ty.base == Base::Array => Type::array_of(below.ty),
        Some(below) => below.ty,
        None => ty,
    }
}

/// The value of a type as it is kept: numbers in the places of texts. Errors: a text is none of the type's.
pub(crate) fn numbered(database: &Database, value: Value, ty: Type) -> Result<Value> {
    if !ty.has_labels() {
        return Ok(value);
    }
    let element = if ty.base == Base::Array { ty.element() } else { ty };
    replaced(value, &mut |value| match &value {
        Value::Text(text) => {
            let user = by_id(database, element.length).ok_or_else(|| gone(element.length))?;
            user.number_of(text).ok_or_else(|| {
                let what = format!("invalid input value for enum {}: \"{text}\"", shown_name(&user.name));
                Error::new(Condition::InvalidText, what)
            })
        }
        _ => Ok(value),
    })
}

/// The value of a type as it is shown: texts in the places of numbers. A number that stands for nothing stays.
pub(crate) fn labelled(database: &Database, value: Value, ty: Type) -> Value {
    if !ty.has_labels() || value.is_null() {
        return value;
    }
    let element = if ty.base == Base::Array { ty.element() } else { ty };
    let Some(user) = by_id(database, element.length) else { return value };
    let known = value.clone();
    replaced(value, &mut |value| Ok(user.label_of(&value).unwrap_or(value))).unwrap_or(known)
}

/// The value, or the elements of an array, replaced.
fn replaced(value: Value, change: &mut dyn FnMut(Value) -> Result<Value>) -> Result<Value> {
    match &value {
        Value::Null => Ok(value),
        Value::Document(_) => {
            let mut out = Vec::new();
            let all = elements(&value).into_iter().map(|element| replaced(element, change));
            crate::scan::encode_row(&all.collect::<Result<Vec<_>>>()?, &mut out);
            Ok(Value::Document(out.into()))
        }
        _ => change(value),
    }
}

fn gone(id: u32) -> Error {
    Error::new(Condition::UndefinedObject, format!("type {id} does not exist"))
}

/// A name as messages and the catalog show it.
pub(crate) fn shown_name(name: &str) -> String {
    crate::catalog::quoted(name)
}

/// What stands in a message for the name of a type.
pub(crate) fn marked(id: u32) -> String {
    format!("{MARK}{id}{MARK}")
}

/// A text with names in the places of numbers of types.
pub(crate) fn with_names<'t>(database: &Database, text: &'t str) -> Cow<'t, str> {
    if !text.contains(MARK) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for (at, part) in text.split(MARK).enumerate() {
        match part.parse().ok().filter(|_| at % 2 == 1).and_then(|id| by_id(database, id)) {
            Some(user) => out.push_str(&shown_name(&user.name)),
            None => out.push_str(part),
        }
    }
    Cow::Owned(out)
}

impl Error {
    /// With names in the places of numbers of types.
    #[must_use]
    pub(crate) fn with_type_names(self, database: &Database) -> Self {
        let body = self.body();
        let is_marked = [Some(&body.message), body.detail.as_ref(), body.hint.as_ref()]
            .into_iter()
            .flatten()
            .any(|text| text.contains(MARK));
        if is_marked { self.reworded(|text| with_names(database, text).into_owned()) } else { self }
    }
}

/// How a column's format names a type with texts.
pub(crate) fn declared_of(ty: Type) -> String {
    let brackets = if ty.base == Base::Array { "[]" } else { "" };
    format!("{DECLARED}{}{brackets}", id_of(ty).0)
}

/// The number of the space of a type with texts.
pub(crate) fn id_of(ty: Type) -> SpaceId {
    SpaceId(if ty.base == Base::Array { ty.element().length } else { ty.length })
}

/// What is kept of types with a database.
pub(crate) type Cache = RefCell<Known>;
