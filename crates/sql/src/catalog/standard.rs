//! `information_schema`, as far as both dialects have it alike.

use super::postgres::{database_name, shown_sequences};
use super::types::{PG_TYPES, format_type, type_number};
use super::user_types::{catalog_name, type_of_column};
use super::{View, columns_of, default_of, int, text};
use crate::shown_constraints::{Shown, words_of};
use crate::table::Table;
use crate::types::Base;
use crate::value::Value;
use std::rc::Rc;

pub(super) fn standard_views(view: &View<'_>) -> Vec<Vec<Value>> {
    let catalog = database_name(view);
    let row = |(table, query): (Rc<Table>, String)| {
        vec![
            text(&catalog),
            schema_of(view, &table),
            text(&table.name),
            text(&query),
            text("NONE"),
            text("NO"),
            text("NO"),
        ]
    };
    view.views().into_iter().map(row).collect()
}

/// The name of the schema of a table.
fn schema_of(view: &View<'_>, table: &Table) -> Value {
    text(&view.place(&table.full).1)
}

pub(super) fn standard_tables(view: &View<'_>) -> Vec<Vec<Value>> {
    let catalog = database_name(view);
    let row = |table: Rc<Table>| {
        vec![
            text(&catalog),
            schema_of(view, &table),
            text(&table.name),
            text(if view.is_view(&table) { "VIEW" } else { "BASE TABLE" }),
            text(""),
            text(if view.is_view(&table) { "NO" } else { "YES" }),
            text("NO"),
            int(table.row_count() as i64),
            text("utf8mb4_general_ci"),
            text(""),
            Value::Null,
        ]
    };
    view.tables().into_iter().map(row).collect()
}

pub(super) fn standard_columns(view: &View<'_>) -> Vec<Vec<Value>> {
    let catalog = database_name(view);
    let mut rows = Vec::new();
    for table in view.tables() {
        for (number, at) in columns_of(&table) {
            let column = &table.columns[at];
            let of_type = match column.domain {
                Some(_) => type_number(column.ty),
                None => type_of_column(column),
            };
            let shown = match column.ty.base {
                Base::Array => "ARRAY".to_string(),
                Base::Enum => "USER-DEFINED".to_string(),
                _ => format_type(of_type, -1).to_string(),
            };
            let own = catalog_name(view.database, of_type);
            let own_schema = super::user_types::schema_of_type(view, of_type);
            let udt = PG_TYPES.iter().find(|known| known.0 == of_type).map_or("", |known| known.1);
            let udt = own.as_deref().unwrap_or(udt);
            let (precision, scale) = match column.ty.base {
                Base::Int2 | Base::Int1 => (int(16), int(0)),
                Base::Int4 => (int(32), int(0)),
                Base::Int8 | Base::Integer | Base::Uint8 => (int(64), int(0)),
                Base::Double if column.ty.is_float() => (int(24), Value::Null),
                Base::Double => (int(53), Value::Null),
                Base::Decimal if column.ty.length > 0 => {
                    (int(i64::from(column.ty.length)), int(i64::from(column.ty.scale)))
                }
                _ => (Value::Null, Value::Null),
            };
            let radix = match column.ty.base {
                Base::Decimal => int(10),
                _ if precision.is_null() => Value::Null,
                _ => int(2),
            };
            let length = match (column.ty.base, column.ty.length) {
                (Base::Text, length) if length > 0 => int(i64::from(length)),
                _ => Value::Null,
            };
            let is_key = |unique: bool| {
                table.indexes.iter().any(|index| {
                    index.parts.first().is_some_and(|(field, ..)| *field == at)
                        && (index.id.0 == 0) != unique
                        && index.is_unique
                })
            };
            let key = if is_key(false) {
                "PRI"
            } else if is_key(true) {
                "UNI"
            } else {
                ""
            };
            let identity = column.identity.and_then(|how| {
                let sequence = super::sequence_of_column(view.database, &table, at)?;
                Some((how, sequence.def()))
            });
            let of_identity = |show: &dyn Fn(&database::SequenceDef) -> String| {
                identity.as_ref().map_or(Value::Null, |(_, def)| text(&show(def)))
            };
            rows.push(vec![
                text(&catalog),
                schema_of(view, &table),
                text(&table.name),
                text(&column.name),
                int(number),
                default_of(view, &table, at)
                    .filter(|_| column.generated.is_none())
                    .map_or(Value::Null, |default| text(&default)),
                text(if column.is_nullable { "YES" } else { "NO" }),
                text(&shown),
                length.clone(),
                length,
                precision,
                radix,
                scale,
                match column.ty.base {
                    Base::Time | Base::TimeTz | Base::Interval | Base::Timestamp | Base::TimestampTz
                        if column.ty.length > 0 =>
                    {
                        int(i64::from(column.ty.length) - 1)
                    }
                    Base::Date => int(0),
                    Base::Time | Base::TimeTz | Base::Interval | Base::Timestamp | Base::TimestampTz => int(6),
                    _ => Value::Null,
                },
                Value::Null,
                text(udt),
                text(if identity.is_some() { "YES" } else { "NO" }),
                identity.as_ref().map_or(Value::Null, |(how, _)| text(&how.word().to_uppercase())),
                text(if column.generated.is_some() { "ALWAYS" } else { "NEVER" }),
                text("YES"),
                text(&shown),
                text(key),
                text(""),
                text(""),
                Value::Null,
                default_of(view, &table, at)
                    .filter(|_| column.generated.is_some())
                    .map_or(Value::Null, |expression| text(&expression)),
                text(&catalog),
                match own_schema {
                    Some(schema) => text(&schema),
                    None => text("pg_catalog"),
                },
                of_identity(&|def| def.start.to_string()),
                of_identity(&|def| def.step.to_string()),
                of_identity(&|def| def.max.to_string()),
                of_identity(&|def| def.min.to_string()),
                text(if identity.as_ref().is_some_and(|(_, def)| def.is_cyclic) { "YES" } else { "NO" }),
                column.domain.as_ref().map_or(Value::Null, |_| text(&catalog)),
                column.domain.as_ref().map_or(Value::Null, |domain| text(&view.place(&domain.full).1)),
                column.domain.as_ref().map_or(Value::Null, |domain| text(&domain.name)),
                Value::Null,
                Value::Null,
                crate::spans::type_words(column.ty).map_or(Value::Null, |words| text(&words)),
                text(&number.to_string()),
                text("NO"),
            ]);
        }
    }
    rows
}

pub(super) fn standard_schemas(view: &View<'_>) -> Vec<Vec<Value>> {
    let catalog = database_name(view);
    let row = |name: &str, owner: &str| {
        vec![text(&catalog), text(name), text(owner), text("utf8mb4"), text("utf8mb4_general_ci")]
    };
    let known = ["information_schema", "pg_catalog", "public"].iter().map(|name| row(name, "postgres"));
    let own = crate::schemas::all(view.database);
    let own = own.iter().map(|schema| row(&schema.name, &view.database.catalog.user_name(schema.owner)));
    known.chain(own).collect()
}

pub(super) fn standard_constraints(view: &View<'_>) -> Vec<Vec<Value>> {
    let catalog = database_name(view);
    let unique = view.indexes().into_iter().filter(|(table, at)| table.indexes[*at].is_constraint);
    let row = |(table, at): (Rc<Table>, usize)| {
        let index = &table.indexes[at];
        let kind = if index.id.0 == 0 { "PRIMARY KEY" } else { "UNIQUE" };
        vec![
            text(&catalog),
            schema_of(view, &table),
            text(&index.name),
            text(&catalog),
            schema_of(view, &table),
            text(&table.name),
            text(kind),
            text("NO"),
            text("NO"),
            text("YES"),
        ]
    };
    let mut rows: Vec<Vec<Value>> = unique.map(row).collect();
    for (table, _, shown) in view.constraints() {
        let kind = if matches!(shown, Shown::Check { .. }) { "CHECK" } else { "FOREIGN KEY" };
        let mut row =
            vec![text(&catalog), schema_of(view, &table), text(shown.name()), text(&catalog), schema_of(view, &table)];
        let deferral = match shown {
            Shown::Key { deferral, .. } => deferral,
            Shown::Check { .. } => database::Deferral::Never,
        };
        let yes_or_no = |is_so: bool| text(if is_so { "YES" } else { "NO" });
        row.extend([text(&table.name), text(kind), yes_or_no(deferral != database::Deferral::Never)]);
        row.extend([yes_or_no(deferral == database::Deferral::Deferred), text("YES")]);
        rows.push(row);
    }
    rows
}

/// `referential_constraints`.
pub(crate) fn references(view: &View<'_>, catalog: &str, schema: &dyn Fn(&Table) -> Value) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for (table, _, shown) in view.constraints() {
        let Shown::Key { name, parent, on_delete, on_update, .. } = &shown else { continue };
        let index = parent.index.as_ref().map_or(Value::Null, |(_, name)| text(name));
        rows.push(vec![
            text(catalog),
            schema(&table),
            text(name),
            text(catalog),
            schema(&parent.table),
            index,
            text("NONE"),
            text(words_of(*on_update)),
            text(words_of(*on_delete)),
            text(&table.name),
            text(&parent.table.name),
        ]);
    }
    rows
}

/// The rows of `key_column_usage` that foreign keys have.
pub(crate) fn key_usage(view: &View<'_>, catalog: &str, schema: &dyn Fn(&Table) -> Value) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for (table, _, shown) in view.constraints() {
        let Shown::Key { name, columns, parent, .. } = &shown else { continue };
        for ((column, foreign), number) in columns.iter().zip(&parent.columns).zip(1..) {
            rows.push(vec![
                text(catalog),
                schema(&table),
                text(name),
                text(catalog),
                schema(&table),
                text(&table.name),
                text(&table.columns[*column].name),
                int(number),
                int(number),
                schema(&parent.table),
                text(&parent.table.name),
                text(&parent.table.columns[*foreign].name),
            ]);
        }
    }
    rows
}

/// `check_constraints`.
pub(crate) fn check_clauses(view: &View<'_>, catalog: &str, schema: &dyn Fn(&Table) -> Value) -> Vec<Vec<Value>> {
    let checks = view.constraints().into_iter().filter_map(|(table, _, shown)| match shown {
        Shown::Check { name, text: clause, .. } => {
            Some(vec![text(catalog), schema(&table), text(&name), text(&format!("({clause})"))])
        }
        Shown::Key { .. } => None,
    });
    checks.collect()
}

pub(super) fn standard_references(view: &View<'_>) -> Vec<Vec<Value>> {
    let catalog = database_name(view);
    references(view, &catalog, &|table| schema_of(view, table))
}

pub(super) fn standard_checks(view: &View<'_>) -> Vec<Vec<Value>> {
    let catalog = database_name(view);
    check_clauses(view, &catalog, &|table| schema_of(view, table))
}

pub(super) fn standard_keys(view: &View<'_>) -> Vec<Vec<Value>> {
    let catalog = database_name(view);
    let mut rows = Vec::new();
    for (table, at) in view.indexes().into_iter().filter(|(table, at)| table.indexes[*at].is_constraint) {
        let index = &table.indexes[at];
        for ((field, ..), number) in index.parts.iter().zip(1..) {
            rows.push(vec![
                text(&catalog),
                schema_of(view, &table),
                text(&index.name),
                text(&catalog),
                schema_of(view, &table),
                text(&table.name),
                text(&table.columns[*field].name),
                int(number),
                Value::Null,
                Value::Null,
                Value::Null,
                Value::Null,
            ]);
        }
    }
    rows.extend(key_usage(view, &catalog, &|table| schema_of(view, table)));
    rows
}

/// The columns that constraints are about: of a foreign key those that it names.
pub(super) fn standard_usage(view: &View<'_>) -> Vec<Vec<Value>> {
    let catalog = database_name(view);
    let row = |table: &Table, field: usize, name: &str| {
        let column = &table.columns[field].name;
        vec![
            text(&catalog),
            schema_of(view, table),
            text(&table.name),
            text(column),
            text(&catalog),
            schema_of(view, table),
            text(name),
        ]
    };
    let mut rows = Vec::new();
    for (table, at) in view.indexes().into_iter().filter(|(table, at)| table.indexes[*at].is_constraint) {
        let index = &table.indexes[at];
        rows.extend(index.parts.iter().map(|(field, ..)| row(&table, *field, &index.name)));
    }
    for (table, _, shown) in view.constraints() {
        match &shown {
            Shown::Check { name, columns, .. } => {
                let known = columns.iter().filter(|field| **field < table.columns.len());
                rows.extend(known.map(|field| row(&table, *field, name)));
            }
            Shown::Key { name, parent, .. } => {
                rows.extend(parent.columns.iter().map(|field| row(&parent.table, *field, name)));
            }
        }
    }
    rows
}

pub(super) fn standard_sequences(view: &View<'_>) -> Vec<Vec<Value>> {
    let catalog = database_name(view);
    let row = |def: Rc<database::SequenceDef>| {
        vec![
            text(&catalog),
            text(&view.place(&def.name).1),
            text(view.place(&def.name).2),
            text("bigint"),
            text(&def.start.to_string()),
            text(&def.min.to_string()),
            text(&def.max.to_string()),
            text(&def.step.to_string()),
            text(if def.is_cyclic { "YES" } else { "NO" }),
        ]
    };
    shown_sequences(view).into_iter().map(row).collect()
}
