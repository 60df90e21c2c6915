//! CREATE, ALTER and DROP of types.

use super::{KEY, Kind, LABEL_MAX, Label, UserType, VALUES_MAX, by_name, encode_kind, encode_labels, shown_name};
use crate::bind::Binder;
use crate::comments::put_below;
use crate::ddl::{Ddl, encoded_key};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::table::Table;
use crate::types::Base;
use crate::value::Value;
use database::{Operation, SPACE_ID, Space};
use sqlparser::ast::{self, AlterTypeAddValuePosition as Position, AlterTypeOperation};
use std::rc::Rc;
use tuple::{IndexId, SpaceId, msgpack};

pub(super) fn already(what: &str, name: &str) -> Error {
    Error::new(Condition::DuplicateObject, format!("{what} \"{name}\" already exists"))
}

pub(super) fn missing(name: &str) -> Error {
    Error::new(Condition::UndefinedObject, format!("type \"{name}\" does not exist"))
}

pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Errors: the text can be none of a value.
fn check_label(text: &str) -> Result<()> {
    match text.len() > LABEL_MAX {
        true => {
            let what = format!("invalid enum label \"{text}\"");
            let detail = format!("Labels must be {LABEL_MAX} bytes or less.");
            Err(Error::new(Condition::InvalidName, what).detail(detail))
        }
        false => Ok(()),
    }
}

fn check_count(count: usize) -> Result<()> {
    match count > VALUES_MAX {
        true => Err(Error::new(Condition::LimitExceeded, format!("a type has at most {VALUES_MAX} values"))),
        false => Ok(()),
    }
}

/// CREATE TYPE ... AS ENUM. Errors: the name is there; values that are none.
pub(crate) fn create_enum(ddl: &Ddl<'_>, name: &ast::ObjectName, labels: &[ast::Ident]) -> Result<u64> {
    check_count(labels.len())?;
    let mut known: Vec<Label> = Vec::with_capacity(labels.len());
    for (label, number) in labels.iter().zip(1..) {
        check_label(&label.value)?;
        known.push(Label { number: Value::Int(number), text: label.value.as_str().into() });
    }
    let mut texts: Vec<&str> = known.iter().map(|label| &*label.text).collect();
    texts.sort_unstable();
    if texts.windows(2).any(|pair| pair[0] == pair[1]) {
        let what = "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"";
        return Err(Error::new(Condition::UniqueViolation, what));
    }
    put_new(ddl, name, "enum", encode_labels(&known))
}

/// Writes a new type into the catalog. Errors: the name is there.
pub(super) fn put_new(ddl: &Ddl<'_>, name: &ast::ObjectName, kind: &str, definition: Vec<u8>) -> Result<u64> {
    let name = ddl.dialect.object_name(name)?;
    let catalog = &ddl.database.catalog;
    if catalog.space_by_name(&name).is_some() {
        return Err(already("type", crate::schemas::local(ddl.database, &name)));
    }
    put_definition(ddl, &name, ddl.context.user(catalog), kind, |out| out.extend_from_slice(&definition))
}

/// Writes a space without fields and indexes into the catalog, which is what its definition says.
pub(crate) fn put_definition(
    ddl: &Ddl<'_>,
    name: &str,
    owner: u32,
    kind: &str,
    definition: impl FnOnce(&mut Vec<u8>),
) -> Result<u64> {
    let id = ddl.as_admin(|| ddl.new_space_id())?;
    let mut encoded = Vec::new();
    definition(&mut encoded);
    let mut below = Vec::new();
    msgpack::encode_map(&mut below, 1);
    msgpack::encode_str(&mut below, KEY.as_bytes());
    below.extend_from_slice(&encode_kind(kind, encoded));
    let mut row = Vec::new();
    msgpack::encode_array(&mut row, 7);
    msgpack::encode_uint(&mut row, id);
    msgpack::encode_uint(&mut row, u64::from(owner));
    msgpack::encode_str(&mut row, name.as_bytes());
    msgpack::encode_str(&mut row, b"memtx");
    msgpack::encode_uint(&mut row, 0);
    msgpack::encode_map(&mut row, 1);
    msgpack::encode_str(&mut row, b"checks");
    row.extend_from_slice(&below);
    msgpack::encode_array(&mut row, 0);
    ddl.execute(SPACE_ID, Operation::Insert { tuple: &row })?;
    Ok(1)
}

/// The type of a name. Errors: it is not there; the user is not its owner.
pub(super) fn owned(ddl: &Ddl<'_>, name: &ast::ObjectName) -> Result<Rc<UserType>> {
    let name = ddl.dialect.object_name(name)?;
    let user = by_name(ddl.database, &name).ok_or_else(|| missing(&name))?;
    check_owner(ddl, &user)?;
    Ok(user)
}

/// Errors: the user is not the owner of the type.
pub(super) fn check_owner(ddl: &Ddl<'_>, user: &UserType) -> Result<()> {
    match user.owner == ddl.context.user(&ddl.database.catalog) || ddl.database.is_almighty(ddl.context) {
        true => Ok(()),
        false => Err(Error::new(Condition::AccessDenied, format!("must be owner of type {}", shown_name(&user.name)))),
    }
}

fn no_label(text: &str) -> Error {
    Error::new(Condition::InvalidArgument, format!("\"{text}\" is not an existing enum label"))
}

/// ALTER TYPE. Errors: it is not there; the user is not its owner; values that are there or are not.
pub(crate) fn alter(ddl: &Ddl<'_>, alter: &ast::AlterType) -> Result<u64> {
    let user = owned(ddl, &alter.name)?;
    if let AlterTypeOperation::Rename(rename) = &alter.operation {
        return self::rename(ddl, &user, &ddl.dialect.fold(&rename.new_name));
    }
    let Some(labels) = user.labels() else {
        let what = format!("\"{}\" is not an enum", user.name);
        return Err(Error::new(Condition::NotUpdatable, what));
    };
    let mut labels = labels.to_vec();
    let place = |labels: &[Label], text: &str| labels.iter().position(|label| &*label.text == text);
    match &alter.operation {
        AlterTypeOperation::AddValue(add) => {
            check_label(&add.value.value)?;
            if place(&labels, &add.value.value).is_some() {
                return if add.if_not_exists { Ok(0) } else { Err(already("enum label", &add.value.value)) };
            }
            check_count(labels.len() + 1)?;
            let at = match &add.position {
                None => labels.len(),
                Some(Position::Before(other)) => place(&labels, &other.value).ok_or_else(|| no_label(&other.value))?,
                Some(Position::After(other)) => place(&labels, &other.value).ok_or_else(|| no_label(&other.value))? + 1,
            };
            let number = number_at(&labels, at)?;
            labels.insert(at, Label { number, text: add.value.value.as_str().into() });
        }
        AlterTypeOperation::RenameValue(rename) => {
            let (from, to) = (&rename.from.value, &rename.to.value);
            check_label(to)?;
            let at = place(&labels, from).ok_or_else(|| no_label(from))?;
            if place(&labels, to).is_some() {
                return Err(already("enum label", to));
            }
            labels[at].text = to.as_str().into();
            let definition = encode_kind("enum", encode_labels(&labels));
            super::uses::rename_value(ddl, &user, (from, to), || put_below(ddl, user.space, KEY, Some(definition)))?;
            return Ok(1);
        }
        AlterTypeOperation::Rename(_) => return Ok(0),
    }
    put_below(ddl, user.space, KEY, Some(encode_kind("enum", encode_labels(&labels))))?;
    Ok(1)
}

/// The number of a value that is to stand at a place. Errors: there is none left between its neighbours.
fn number_at(labels: &[Label], at: usize) -> Result<Value> {
    let double = |at: usize| labels.get(at).and_then(|label| label.number.as_double());
    let (before, behind) = (at.checked_sub(1).and_then(double), double(at));
    let number = match (before, behind) {
        (None, None) => 1.0,
        (Some(before), None) => before.floor() + 1.0,
        (None, Some(behind)) => behind.ceil() - 1.0,
        (Some(before), Some(behind)) => before + (behind - before) / 2.0,
    };
    if Some(number) == before || Some(number) == behind {
        let what = "there is no room left for a value between these two";
        return Err(Error::new(Condition::LimitExceeded, what).hint("Make another type and change the columns to it."));
    }
    Ok(if number.fract() == 0.0 { Value::Int(number as i64) } else { Value::Double(number) })
}

/// Gives a type another name. Errors: something has it.
pub(super) fn rename(ddl: &Ddl<'_>, user: &UserType, name: &str) -> Result<u64> {
    let (shown, name) = (name, &crate::schemas::beside(ddl.database, &user.full, name));
    if ddl.database.catalog.space_by_name(name).is_some() {
        return Err(already("type", shown));
    }
    let mut value = Vec::new();
    msgpack::encode_str(&mut value, name.as_bytes());
    super::uses::rename_type(ddl, &user.full, name, || put_field(ddl, user.space, 2, &value))?;
    Ok(1)
}

/// Changes a field of the type's row in the catalog.
pub(crate) fn put_field(ddl: &Ddl<'_>, space: SpaceId, field: u64, value: &[u8]) -> Result<()> {
    let key = encoded_key(&[u64::from(space.0)]);
    let mut ops = Vec::new();
    msgpack::encode_array(&mut ops, 1);
    msgpack::encode_array(&mut ops, 3);
    msgpack::encode_str(&mut ops, b"=");
    msgpack::encode_uint(&mut ops, field);
    ops.extend_from_slice(value);
    ddl.execute(SPACE_ID, Operation::Update { index_id: IndexId::PRIMARY, key: &key, ops: &ops, index_base: 0 })
}

/// ALTER TYPE ... OWNER TO. Errors: there is no such user; the type is not the user's to give.
pub(super) fn give(ddl: &Ddl<'_>, user: &UserType, owner: &ast::Owner) -> Result<()> {
    check_owner(ddl, user)?;
    let catalog = &ddl.database.catalog;
    let owner = match owner {
        ast::Owner::Ident(name) => {
            let name = ddl.dialect.fold(name);
            let found = catalog.user_by_name(&name);
            let missing = || Error::new(Condition::UndefinedObject, format!("role \"{name}\" does not exist"));
            found.ok_or_else(missing)?.id
        }
        _ => ddl.context.user(catalog),
    };
    if owner == user.owner {
        return Ok(());
    }
    if !ddl.database.is_almighty(ddl.context) {
        let what = format!("must be member of role \"{}\"", catalog.user_name(owner));
        return Err(Error::new(Condition::AccessDenied, what));
    }
    let mut value = Vec::new();
    msgpack::encode_uint(&mut value, u64::from(owner));
    put_field(ddl, user.space, 1, &value)
}

/// Columns of a type, or of arrays of it.
pub(super) fn columns_of(ddl: &Ddl<'_>, user: &UserType) -> Vec<(Rc<Table>, usize)> {
    let declared = user.declared();
    let is_it = |text: &str| text.strip_prefix(&declared).is_some_and(|rest| rest.is_empty() || rest == "[]");
    let mut found = Vec::new();
    for space in ddl.database.catalog.spaces().into_iter().filter(|space| !space.is_system()) {
        let Ok(table) = Table::of(ddl.database, space).map(Rc::new) else { continue };
        let columns = table.columns.iter().enumerate();
        let columns = columns.filter(|(_, column)| column.raw_declared.as_deref().is_some_and(is_it));
        found.extend(columns.map(|(at, _)| (Rc::clone(&table), at)).collect::<Vec<_>>());
    }
    found
}

/// DROP TYPE. Errors: it is not there; the user is not its owner; something is of it.
pub(crate) fn drop_types(ddl: &Ddl<'_>, names: &[ast::ObjectName], if_exists: bool, cascade: bool) -> Result<u64> {
    let mut count = 0;
    for name in names {
        if if_exists && ddl.dialect.is_nowhere(name) {
            continue;
        }
        let folded = ddl.dialect.object_name(name)?;
        match by_name(ddl.database, &folded) {
            Some(_) => {}
            None if if_exists => continue,
            None => return Err(missing(&folded)),
        }
        let user = owned(ddl, name)?;
        drop_one(ddl, &user, cascade)?;
        count += 1;
    }
    Ok(count)
}

fn drop_one(ddl: &Ddl<'_>, user: &Rc<UserType>, cascade: bool) -> Result<()> {
    let name = shown_name(&user.name);
    let mut columns = columns_of(ddl, user);
    // Those of views go with the views.
    columns.retain(|(table, _)| crate::views::of(ddl.database, &table.space).is_none());
    // Those that name rows of others go before those others.
    columns.sort_by_key(|(table, _)| table.space.def().foreign_keys.is_empty());
    let declared = user.declared();
    let of_domains = super::all(ddl.database).into_iter().filter(|other| {
        let base = other.domain().map(|domain| domain.base.trim_end_matches("[]"));
        base == Some(&declared)
    });
    let domains: Vec<Rc<UserType>> = of_domains.collect();
    let views: Vec<Rc<Space>> = crate::views::of_type(ddl.database, user.space);
    let uses = super::uses::of_type(ddl, user);
    let mut dependents: Vec<String> = Vec::new();
    for (table, at) in &columns {
        let column = shown_name(&table.columns[*at].name);
        dependents.push(format!("column {column} of table {} depends on type {name}", shown_name(&table.name)));
    }
    dependents.extend(domains.iter().map(|domain| format!("type {} depends on type {name}", shown_name(&domain.name))));
    dependents.extend(views.iter().map(|view| format!("view {} depends on type {name}", shown_name(&view.name()))));
    dependents.extend(uses.iter().map(|found| format!("{} depends on type {name}", found.shown(ddl))));
    if !cascade && !dependents.is_empty() {
        let what = format!("cannot drop type {name} because other objects depend on it");
        return Err(Error::new(Condition::Dependents, what)
            .detail(dependents.join("\n"))
            .hint("Use DROP ... CASCADE to drop the dependent objects too."));
    }
    for view in &views {
        if ddl.database.catalog.space(view.id).is_some() {
            crate::views::remove_with_dependents(ddl, view)?;
        }
    }
    // Whoever drops a type drops what is made of it, whosever the tables are.
    uses.iter().try_for_each(|found| ddl.as_admin(|| found.remove(ddl)))?;
    for domain in &domains {
        drop_one(ddl, domain, true)?;
    }
    for (table, at) in &columns {
        let column = ast::Ident::with_quote('"', &table.columns[*at].name);
        ddl.as_admin(|| ddl.drop_columns(&*ddl.table_named(&table.full)?, &[column], true, true))?;
    }
    ddl.as_admin(|| ddl.drop_grants(u64::from(user.space.0)))?;
    ddl.delete(SPACE_ID, &[u64::from(user.space.0)])
}

impl Ddl<'_> {
    /// The default of a column of an enum as it is kept: the text alone of a value that is cast to the type, so that the type may get another name. Errors: it
    /// is no value.
    pub(crate) fn default_of_enum(&self, column: &mut crate::ddl::NewColumn) -> Result<()> {
        if self.dialect != Dialect::Postgres || column.ty.base != Base::Enum {
            return Ok(());
        }
        let Some(text) = &column.default else { return Ok(()) };
        let mut expr = Binder::new(self.database, self.dialect).parse_expression(text)?;
        while let ast::Expr::Nested(inner) | ast::Expr::Cast { expr: inner, .. } = expr {
            expr = *inner;
        }
        if let ast::Expr::Value(value) = expr
            && let ast::Value::SingleQuotedString(text) = value.value
        {
            super::numbered(self.database, Value::text(text.as_str()), column.ty)?;
            column.default = Some(quoted(&text));
        }
        Ok(())
    }
}

impl Kind {
    /// `e` or `d`, as `pg_type` has it.
    pub(crate) fn letter(&self) -> &'static str {
        match self {
            Kind::Enum(_) => "e",
            Kind::Domain(_) => "d",
        }
    }
}
