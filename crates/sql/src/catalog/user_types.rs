//! Types of users' own in PostgreSQL's catalog: rows of `pg_type`, `pg_enum` and `pg_constraint`, and the names of their numbers.

use super::types::{PG_TYPES, modifier, storage_of, type_number};
use super::{View, constraint_number, int, numbers, text};
use crate::dialect::Dialect;
use crate::table::Column;
use crate::types::Type;
use crate::user_types::{self, Kind, UserType};
use crate::value::Value;
use database::Database;

/// Where the numbers of values of enums begin.
const VALUES: i64 = 1 << 28;

/// The number of the type of a column: that of a domain, if it is of one.
pub(crate) fn type_of_column(column: &Column) -> i64 {
    let own = column.raw_declared.as_deref().and_then(user_types::number_of_declared);
    own.unwrap_or_else(|| type_number(column.ty))
}

/// The type below a domain, and its number.
fn base_of(database: &Database, user: &UserType) -> Option<(Type, i64)> {
    let base = &user.domain()?.base;
    let ty = match user_types::of_declared(database, base) {
        Some(below) => below.ty,
        None => crate::table::read_type(crate::dialect::Dialect::Postgres, base)?,
    };
    Some((ty, user_types::number_of_declared(base).unwrap_or_else(|| type_number(ty))))
}

/// Their rows of `pg_type`, and those of their arrays.
pub(super) fn type_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for user in user_types::all(view.database) {
        let base = base_of(view.database, &user);
        let of_base = base.and_then(|(ty, _)| PG_TYPES.iter().find(|known| known.0 == type_number(ty)));
        let domain = user.domain();
        let (size, category) = match (&user.kind, of_base) {
            (Kind::Enum(_), _) => (4, "E"),
            (Kind::Domain(_), Some(known)) => (known.2, known.3),
            (Kind::Domain(_), None) if base.is_some_and(|(ty, _)| ty.base == crate::types::Base::Enum) => (4, "E"),
            (Kind::Domain(_), None) => (-1, "A"),
        };
        let owner = i64::from(user.owner) + 10;
        let row = |number: i64, name: &str, size: i64, kind: &str, category: &str| {
            let is_array = kind == "b";
            vec![
                int(number),
                text(name),
                int(view.place(&user.full).0),
                int(owner),
                int(size),
                Value::Bool(size > 0 && size <= 8),
                text(kind),
                text(category),
                Value::Bool(false),
                Value::Bool(true),
                text(","),
                int(0),
                int(0),
                int(if is_array { user.number() } else { 0 }),
                int(if is_array { 0 } else { user.number() + 1 }),
                text(match kind {
                    "e" => "enum_in",
                    "d" => "domain_in",
                    _ => "array_in",
                }),
                Value::Bool(!is_array && domain.is_some_and(|domain| domain.is_not_null)),
                int(base.filter(|_| !is_array).map_or(0, |(_, number)| number)),
                int(base.filter(|_| !is_array).map_or(-1, |(ty, _)| modifier(ty))),
                int(0),
                int(if category == "S" { 100 } else { 0 }),
                domain.filter(|_| !is_array).and_then(|domain| domain.default.as_deref()).map_or(Value::Null, text),
                Value::Null,
                text(storage_of(size)),
                domain.filter(|_| !is_array).and_then(|domain| domain.default.as_deref()).map_or(Value::Null, text),
            ]
        };
        rows.push(row(user.number(), &user.name, size, user.kind.letter(), category));
        rows.push(row(user.number() + 1, &format!("_{}", user.name), -1, "b", "A"));
    }
    rows
}

/// The values of all enums.
pub(super) fn enum_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for user in user_types::all(view.database) {
        for label in user.labels().unwrap_or_default() {
            let number = VALUES + rows.len() as i64;
            let order = Value::Double(label.number.as_double().unwrap_or_default());
            rows.push(vec![int(number), int(user.number()), order, text(&label.text)]);
        }
    }
    rows
}

/// The numbers of domains, and of the types of users below them.
pub(super) fn dependencies(view: &View<'_>) -> Vec<(i64, i64)> {
    let all = user_types::all(view.database).into_iter();
    let pairs = all.filter_map(|user| {
        let below = user_types::number_of_declared(&user.domain()?.base)?;
        Some((user.number(), below))
    });
    pairs.collect()
}

/// The conditions of domains, as rows of `pg_constraint`.
pub(super) fn constraint_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for user in user_types::all(view.database) {
        let checks = user.domain().map_or(&[][..], |domain| &domain.checks);
        for (at, (name, condition)) in checks.iter().enumerate() {
            rows.push(vec![
                int(constraint_number(user.space.0, at)),
                text(name),
                int(view.place(&user.full).0),
                text("c"),
                Value::Bool(false),
                Value::Bool(false),
                Value::Bool(true),
                int(0),
                int(user.number()),
                int(0),
                int(0),
                int(0),
                text(" "),
                text(" "),
                text(" "),
                Value::Bool(true),
                int(0),
                Value::Bool(false),
                numbers([]),
                Value::Null,
                text(condition),
            ]);
        }
    }
    rows
}

/// The definition of a domain's condition, by its number.
pub(super) fn describe_constraint(database: &Database, number: i64) -> Option<String> {
    for user in user_types::all(database) {
        let checks = user.domain().map_or(&[][..], |domain| &domain.checks);
        let mut checks = checks.iter().enumerate();
        if let Some((_, (_, condition))) = checks.find(|(at, _)| constraint_number(user.space.0, *at) == number) {
            return Some(format!("CHECK (({}))", with_value(condition)));
        }
    }
    None
}

/// VALUE is written in large letters there.
fn with_value(condition: &str) -> String {
    let is_it = |word: &sqlparser::ast::Ident| word.quote_style.is_none() && word.value.eq_ignore_ascii_case("value");
    crate::written::with_words(Dialect::Postgres, condition, |word| is_it(word).then(|| "VALUE".to_string()))
        .unwrap_or_else(|| condition.to_string())
}

/// The name of a type of a number, and of arrays of it. None: it is none of a user's.
pub(crate) fn name_of_number(database: &Database, number: i64) -> Option<String> {
    let ty = Type::of_user_number(u32::try_from(number).ok()?)?;
    let user = user_types::by_id(database, user_types::id_of(ty).0)?;
    let brackets = if ty.base == crate::types::Base::Array { "[]" } else { "" };
    Some(format!("{}{brackets}", crate::schemas::shown(database, &user.full)))
}

/// What `udt_name` of the standard's tables has.
pub(super) fn catalog_name(database: &Database, number: i64) -> Option<String> {
    let ty = Type::of_user_number(u32::try_from(number).ok()?)?;
    let user = user_types::by_id(database, user_types::id_of(ty).0)?;
    Some(if ty.base == crate::types::Base::Array { format!("_{}", user.name) } else { user.name.clone() })
}

/// The schema of a type of a user's, by its number.
pub(super) fn schema_of_type(view: &View<'_>, number: i64) -> Option<String> {
    let ty = Type::of_user_number(u32::try_from(number).ok()?)?;
    let user = user_types::by_id(view.database, user_types::id_of(ty).0)?;
    Some(view.place(&user.full).1)
}

/// The number of the type of a name, as a statement writes it: in quotes, with a schema before it, with brackets behind it.
pub(crate) fn number_of_name(database: &Database, name: &str) -> Option<i64> {
    let parsed = crate::dialect::Dialect::Postgres.parse(&format!("SELECT NULL::{name}")).ok()?;
    let sqlparser::ast::Statement::Query(query) = parsed.into_iter().next()? else { return None };
    let sqlparser::ast::SetExpr::Select(select) = *query.body else { return None };
    let sqlparser::ast::SelectItem::UnnamedExpr(sqlparser::ast::Expr::Cast { data_type, .. }) =
        select.projection.into_iter().next()?
    else {
        return None;
    };
    let found = user_types::resolve(database, crate::dialect::Dialect::Postgres, &data_type).ok()?;
    user_types::number_of_declared(found.declared.as_deref()?)
}
