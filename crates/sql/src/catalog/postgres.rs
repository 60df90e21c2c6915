//! `pg_catalog`: rows of the tables that PostgreSQL alone has.

use super::describe::{columns_of_index, expressions_of, index_definition, key_count};
use super::types::{PG_TYPES, modifier, storage_of, type_number};
use super::{
    ADMIN_NUMBER, DATABASE_OWNER, INFORMATION_SCHEMA, PG_CATALOG, PUBLIC, View, column_number, columns_of,
    constraint_number, default_of, index_number, int, is_hidden, numbers, sequence_number, table_number, text, texts,
    type_of_column,
};
use crate::ddl::Identity;
use crate::shown_constraints::{self, Shown};
use crate::table::Table;
use crate::types::Base;
use crate::value::Value;
use std::rc::Rc;

pub(super) fn class_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let row =
        |(number, schema, name): (i64, i64, &str), kind: &str, owner: i64, columns: i64, rows: f64, has_index: bool| {
            vec![
                int(number),
                text(name),
                int(schema),
                int(0),
                int(0),
                int(owner),
                int(if kind == "i" { 403 } else { 2 }),
                int(number),
                int(0),
                int((rows / 100.0).ceil() as i64),
                Value::Double(rows),
                int(0),
                int(0),
                Value::Bool(has_index),
                Value::Bool(false),
                text("p"),
                text(kind),
                int(columns),
                int(0),
                Value::Bool(false),
                Value::Bool(false),
                Value::Bool(false),
                Value::Bool(false),
                Value::Bool(false),
                Value::Bool(true),
                text("d"),
                Value::Bool(false),
                int(0),
                Value::Null,
                Value::Null,
                Value::Null,
                int(0),
                int(0),
            ]
        };
    let mut rows = Vec::new();
    for table in view.tables() {
        let count = columns_of(&table).count() as i64;
        let has_index = (0..table.indexes.len()).any(|at| !is_hidden(&table, at));
        let owner = view.owner(&table);
        let number = table_number(table.space.id.0);
        let kind = if view.is_view(&table) { "v" } else { "r" };
        let schema = view.place(&table.full).0;
        let mut class = row((number, schema, &table.name), kind, owner, count, table.row_count() as f64, has_index);
        if table.space.def().is_session {
            class[15] = text("t");
        }
        if table.space.has_constraints() {
            let shown = shown_constraints::of(view.database, &table);
            class[18] = int(shown.iter().filter(|one| matches!(one, Shown::Check { .. })).count() as i64);
            // Triggers keep foreign keys there: clients ask for keys where there are some.
            class[20] = Value::Bool(true);
        }
        rows.push(class);
        for (at, index) in table.indexes.iter().enumerate().filter(|(at, _)| !is_hidden(&table, *at)) {
            let number = index_number(table.space.id.0, u64::from(index.id.0));
            let parts = table.indexes[at].parts.len() as i64;
            let mut class = row((number, schema, &index.name), "i", owner, parts, 0.0, false);
            if let Some(spelled) = index.spelled.as_ref().filter(|spelled| !spelled.options.is_empty()) {
                class[29] = texts(&spelled.options);
            }
            rows.push(class);
        }
    }
    for def in shown_sequences(view) {
        let owner = i64::from(def.owner) + 10;
        let (schema, _, name) = view.place(&def.name);
        rows.push(row((sequence_number(def.id), schema, name), "S", owner, 3, 1.0, false));
    }
    rows
}

/// Classes of objects that have comments, by the tables of the catalog that they are in.
const CLASSES: [(&str, i64); 4] =
    [("pg_class", 1259), ("pg_type", 1247), ("pg_constraint", 2606), ("pg_namespace", 2615)];

/// The number of a class that a function names.
pub(super) fn class_number(name: &str) -> Option<i64> {
    CLASSES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

/// Comments of all that has one, and that of the schema.
pub(super) fn description_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    use crate::comments::{Part, Parts, of, of_number, of_sequence};
    let mut rows = vec![vec![int(PUBLIC), int(2615), int(0), text("standard public schema")]];
    let mut add = |object: i64, class: i64, at: i64, comment: Option<String>| {
        rows.extend(comment.map(|comment| vec![int(object), int(class), int(at), Value::text(comment)]));
    };
    let tables = view.tables();
    for table in &tables {
        let number = table_number(table.space.id.0);
        add(number, 1259, 0, of(view.database, &table.space));
        for (column, at) in columns_of(table) {
            add(number, 1259, column, table.columns[at].comment.clone());
        }
        let parts = Parts::of(view.database, table.space.id);
        for index in &table.indexes {
            let number = index_number(table.space.id.0, u64::from(index.id.0));
            add(number, 1259, 0, parts.get(Part::Index, &index.name));
            if index.is_constraint {
                add(number, 2606, 0, parts.get(Part::Constraint, &index.name));
            }
        }
    }
    for (table, at, shown) in view.constraints() {
        let comment = Parts::of(view.database, table.space.id).get(Part::Constraint, shown.name());
        add(constraint_number(table.space.id.0, at), 2606, 0, comment);
    }
    for def in shown_sequences(view) {
        add(sequence_number(def.id), 1259, 0, of_sequence(view.database, def.id));
    }
    for user in crate::user_types::all(view.database) {
        add(user.number(), 1247, 0, of_number(view.database, user.space));
    }
    for schema in crate::schemas::all(view.database).iter() {
        add(schema.number(), 2615, 0, of_number(view.database, schema.space));
    }
    rows
}

/// Sequences, but those that fill keys nobody has declared.
pub(super) fn shown_sequences(view: &View<'_>) -> Vec<Rc<database::SequenceDef>> {
    let spaces = view.database.catalog.spaces().into_iter().filter(|space| !space.is_system() && space.has_rows());
    let hidden: Vec<u32> = spaces
        .filter(|space| space.sequence.borrow().is_some())
        .filter_map(|space| Table::of(view.database, space).ok())
        .filter_map(|table| table.generated.filter(|(field, _)| table.columns[*field].is_hidden))
        .map(|(_, sequence)| sequence)
        .collect();
    let all = view.database.catalog.sequences();
    // Those that the user may read, and those of tables that the user may read.
    let tables = view.tables();
    let mut filled: Vec<u32> = Vec::new();
    for table in &tables {
        let found = (0..table.columns.len()).filter_map(|at| super::sequence_of_column(view.database, table, at));
        filled.extend(found.map(|sequence| sequence.def().id));
    }
    let may_read = |sequence: &&Rc<database::Sequence>| {
        let read = database::Privileges::READ;
        filled.contains(&sequence.def().id) || view.database.check_sequence(view.context, sequence, read).is_ok()
    };
    let shown = all.iter().filter(may_read).map(|sequence| sequence.def());
    shown.filter(|def| !hidden.contains(&def.id) && def.id < database::SESSION_ID_MIN).collect()
}

pub(super) fn collation_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let rows = crate::collations::rows(view.database).into_iter();
    rows.map(|(number, name, provider)| {
        let namespace = int(PG_CATALOG);
        vec![int(number), text(&name), namespace, int(10), text(provider), int(-1), Value::Bool(true)]
    })
    .collect()
}

pub(super) fn attribute_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    let mut add = |relation: i64, table: &Table, at: usize, number: i64| {
        let column = &table.columns[at];
        let number_of_type = type_of_column(column);
        let number_below = type_number(column.ty);
        let size = match column.ty.base {
            Base::Enum => 4,
            _ => PG_TYPES.iter().find(|known| known.0 == number_below).map_or(-1, |known| known.2),
        };
        rows.push(vec![
            int(relation),
            text(&column.name),
            int(number_of_type),
            int(-1),
            int(size),
            int(number),
            int(0),
            int(-1),
            int(if column.domain.is_some() { -1 } else { modifier(column.ty) }),
            Value::Bool(size > 0 && size <= 8),
            text(storage_of(size)),
            text(""),
            text("i"),
            Value::Bool(!column.is_nullable),
            Value::Bool(default_of(view, table, at).is_some()),
            Value::Bool(false),
            text(Identity::letter(column.identity)),
            text(if column.generated.is_some() { "s" } else { "" }),
            Value::Bool(false),
            Value::Bool(true),
            int(0),
            int(match column.ty.base {
                Base::Text => crate::collations::number_in_postgres(column.collation.as_deref()),
                _ => 0,
            }),
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
        ]);
    };
    for table in view.tables() {
        for (number, at) in columns_of(&table) {
            add(table_number(table.space.id.0), &table, at, number);
        }
        for (at, index) in table.indexes.iter().enumerate().filter(|(at, _)| !is_hidden(&table, *at)) {
            let relation = index_number(table.space.id.0, u64::from(index.id.0));
            for ((field, ..), number) in table.indexes[at].parts.iter().zip(1..) {
                add(relation, &table, *field, number);
            }
        }
    }
    rows
}

pub(super) fn index_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let row = |(table, at): (Rc<Table>, usize)| {
        let index = &table.indexes[at];
        let is_primary = index.id.0 == 0;
        let keys = columns_of_index(&table, index);
        let (expressions, condition) = expressions_of(index);
        let classes = (0..key_count(index)).map(|number| super::classes::class_of(&table, index, number));
        let order = |number: usize| {
            let key = index.spelled.as_ref().and_then(|spelled| spelled.keys.get(number));
            key.map_or(0, |key| i64::from(key.is_descending) + 2 * i64::from(key.puts_nulls_first))
        };
        vec![
            int(index_number(table.space.id.0, u64::from(index.id.0))),
            int(table_number(table.space.id.0)),
            int(keys.len() as i64),
            int(key_count(index) as i64),
            Value::Bool(index.is_unique),
            Value::Bool(index.spelled.as_ref().is_some_and(|spelled| spelled.has_equal_nulls)),
            Value::Bool(is_primary),
            Value::Bool(false),
            Value::Bool(true),
            Value::Bool(false),
            Value::Bool(true),
            Value::Bool(false),
            Value::Bool(true),
            Value::Bool(true),
            Value::Bool(false),
            numbers(keys.iter().copied()),
            numbers(keys.iter().map(|_| 0)),
            numbers(classes),
            numbers((0..key_count(index)).map(order)),
            expressions,
            condition,
        ]
    };
    view.indexes().into_iter().map(row).collect()
}

pub(super) fn constraint_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let unique = view.indexes().into_iter().filter(|(table, at)| table.indexes[*at].is_constraint);
    let row = |(table, at): (Rc<Table>, usize)| {
        let index = &table.indexes[at];
        let number = index_number(table.space.id.0, u64::from(index.id.0));
        vec![
            int(number),
            text(&index.name),
            int(view.place(&table.full).0),
            text(if index.id.0 == 0 { "p" } else { "u" }),
            Value::Bool(false),
            Value::Bool(false),
            Value::Bool(true),
            int(table_number(table.space.id.0)),
            int(0),
            int(number),
            int(0),
            int(0),
            text(" "),
            text(" "),
            text(" "),
            Value::Bool(true),
            int(0),
            Value::Bool(true),
            numbers(columns_of_index(&table, index)),
            Value::Null,
            Value::Null,
        ]
    };
    let mut rows: Vec<Vec<Value>> = unique.map(row).collect();
    for (table, at, shown) in view.constraints() {
        let letter = |action: database::Action| match action {
            database::Action::NoAction => "a",
            database::Action::Restrict => "r",
            database::Action::Cascade => "c",
            database::Action::SetNull => "n",
            database::Action::SetDefault => "d",
        };
        let number_of = |table: &Table, fields: &[usize]| {
            numbers(fields.iter().map(|field| column_number(table, *field)).collect::<Vec<_>>())
        };
        let (kind, columns, foreign) = match &shown {
            Shown::Check { columns, .. } => ("c", columns, None),
            Shown::Key { columns, parent, on_delete, on_update, .. } => {
                ("f", columns, Some((parent, on_delete, on_update)))
            }
        };
        let deferral = match &shown {
            Shown::Key { deferral, .. } => *deferral,
            Shown::Check { .. } => database::Deferral::Never,
        };
        let index = foreign
            .and_then(|(parent, ..)| parent.index.as_ref().map(|(id, _)| index_number(parent.table.space.id.0, *id)));
        rows.push(vec![
            int(constraint_number(table.space.id.0, at)),
            text(shown.name()),
            int(view.place(&table.full).0),
            text(kind),
            Value::Bool(deferral != database::Deferral::Never),
            Value::Bool(deferral == database::Deferral::Deferred),
            Value::Bool(true),
            int(table_number(table.space.id.0)),
            int(0),
            int(index.unwrap_or(0)),
            int(0),
            int(foreign.map_or(0, |(parent, ..)| table_number(parent.table.space.id.0))),
            text(foreign.map_or(" ", |(_, _, on_update)| letter(*on_update))),
            text(foreign.map_or(" ", |(_, on_delete, _)| letter(*on_delete))),
            text(if kind == "f" { "s" } else { " " }),
            Value::Bool(true),
            int(0),
            Value::Bool(kind == "f"),
            number_of(&table, columns),
            foreign.map_or(Value::Null, |(parent, ..)| number_of(&parent.table, &parent.columns)),
            Value::Null,
        ]);
    }
    rows.extend(super::user_types::constraint_rows(view));
    rows
}

pub(super) fn namespace_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let schemas = [
        (PG_CATALOG, "pg_catalog", ADMIN_NUMBER),
        (PUBLIC, "public", DATABASE_OWNER),
        (INFORMATION_SCHEMA, "information_schema", ADMIN_NUMBER),
    ];
    let row = |number: i64, name: &str, owner: i64| vec![int(number), text(name), int(owner), Value::Null];
    let known = schemas.iter().map(|(number, name, owner)| row(*number, name, *owner));
    let own = crate::schemas::all(view.database);
    let own = own.iter().map(|schema| row(schema.number(), &schema.name, i64::from(schema.owner) + 10));
    known.chain(own).collect()
}

/// The number of a column's default.
pub(super) fn default_number(relation: i64, column: i64) -> i64 {
    relation * 2000 + column
}

pub(super) fn default_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for table in view.tables() {
        for (number, at) in columns_of(&table) {
            if let Some(default) = default_of(view, &table, at) {
                let relation = table_number(table.space.id.0);
                rows.push(vec![int(default_number(relation, number)), int(relation), int(number), text(&default)]);
            }
        }
    }
    rows
}

pub(super) fn database_name(view: &View<'_>) -> String {
    let session = crate::Sql::of(view.database).session(view.context.session.id);
    session.map_or_else(|| "lycosa".to_string(), |session| session.database.borrow().clone())
}

pub(super) fn database_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    vec![vec![
        int(1),
        text(&database_name(view)),
        int(ADMIN_NUMBER),
        int(6),
        text("c"),
        Value::Bool(false),
        Value::Bool(true),
        int(-1),
        int(1663),
        text("C.UTF-8"),
        text("C.UTF-8"),
        Value::Null,
        Value::Null,
        Value::Null,
        int(0),
        int(0),
    ]]
}

/// All rights that can be granted on everything.
pub(crate) const EVERYTHING: u32 = 0x1fff;

pub(super) fn role_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let users = view.database.catalog.users();
    let row = |user: &Rc<database::User>| {
        let rights = view.database.catalog.rights_of(user.id);
        let is_admin = user.id == database::ADMIN || rights.universe & EVERYTHING == EVERYTHING;
        vec![
            text(&user.name),
            Value::Bool(is_admin),
            Value::Bool(true),
            Value::Bool(is_admin),
            Value::Bool(is_admin),
            Value::Bool(user.kind == database::UserKind::User),
            Value::Bool(false),
            int(-1),
            Value::Null,
            Value::Null,
            Value::Bool(is_admin),
            Value::Null,
            int(i64::from(user.id) + 10),
        ]
    };
    let mut rows: Vec<Vec<Value>> = users.iter().map(row).collect();
    let mut owner = vec![text("pg_database_owner"), Value::Bool(false), Value::Bool(true)];
    owner.extend((0..4).map(|_| Value::Bool(false)));
    owner.extend([int(-1), Value::Null, Value::Null, Value::Bool(false), Value::Null, int(DATABASE_OWNER)]);
    rows.push(owner);
    rows
}

pub(super) fn setting_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let session = crate::Sql::of(view.database).session(view.context.session.id);
    let all = session.map(|session| session.all()).unwrap_or_default();
    all.into_iter()
        .map(|(name, value, about)| {
            let value = text(&value);
            let rest = [text(&about), text("user"), text("string"), text("default"), value.clone(), value.clone()];
            [vec![text(&name), value, Value::Null, text("Settings")], rest.to_vec()].concat()
        })
        .collect()
}

pub(super) fn pg_tables_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let row = |table: Rc<Table>| {
        let has_index = (0..table.indexes.len()).any(|at| !is_hidden(&table, at));
        let owner = view.database.catalog.user_name(table.space.owner());
        vec![
            text(&view.place(&table.full).1),
            text(&table.name),
            text(&owner),
            Value::Null,
            Value::Bool(has_index),
            Value::Bool(false),
            Value::Bool(false),
            Value::Bool(false),
        ]
    };
    view.tables().into_iter().filter(|table| !view.is_view(table)).map(row).collect()
}

pub(super) fn pg_views_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let row = |(table, query): (Rc<Table>, String)| {
        let owner = view.database.catalog.user_name(table.space.owner());
        vec![text(&view.place(&table.full).1), text(&table.name), text(&owner), text(&query)]
    };
    view.views().into_iter().map(row).collect()
}

pub(super) fn pg_indexes_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let row = |(table, at): (Rc<Table>, usize)| {
        vec![
            text(&view.place(&table.full).1),
            text(&table.name),
            text(&table.indexes[at].name),
            Value::Null,
            text(&index_definition(view, &table, at)),
        ]
    };
    view.indexes().into_iter().map(row).collect()
}

/// Sequences as `pg_sequences` has them.
pub(super) fn pg_sequences_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let row = |def: Rc<database::SequenceDef>| {
        let last = view.database.catalog.sequence(def.id).and_then(|sequence| sequence.value());
        let ty = match (def.max, def.min) {
            (32_767, 1 | -32_768) => "smallint",
            (2_147_483_647, 1 | -2_147_483_648) => "integer",
            _ => "bigint",
        };
        vec![
            text(&view.place(&def.name).1),
            text(view.place(&def.name).2),
            text(&view.database.catalog.user_name(def.owner)),
            text(ty),
            int(def.start),
            int(def.min),
            int(def.max),
            int(def.step),
            Value::Bool(def.is_cyclic),
            int(def.cache.max(1)),
            last.map_or(Value::Null, int),
        ]
    };
    shown_sequences(view).into_iter().map(row).collect()
}

pub(super) fn sequence_rows(view: &View<'_>) -> Vec<Vec<Value>> {
    shown_sequences(view)
        .into_iter()
        .map(|def| {
            vec![
                int(sequence_number(def.id)),
                // Of the type whose greatest number is its.
                int(match (def.max, def.min) {
                    (32_767, 1 | -32_768) => 21,
                    (2_147_483_647, 1 | -2_147_483_648) => 23,
                    _ => 20,
                }),
                int(def.start),
                int(def.step),
                int(def.max),
                int(def.min),
                int(def.cache.max(1)),
                Value::Bool(def.is_cyclic),
            ]
        })
        .collect()
}

pub(super) fn access_method_rows(_: &View<'_>) -> Vec<Vec<Value>> {
    [(2, "heap", "t"), (403, "btree", "i"), (405, "hash", "i")]
        .iter()
        .map(|(number, name, kind)| vec![int(*number), text(name), text(""), text(kind)])
        .collect()
}

/// Tables as `pg_statio_all_tables` and its like have them.
pub(super) fn table_statistics(view: &View<'_>) -> Vec<Vec<Value>> {
    let row = |table: &Rc<Table>| {
        let rows = i64::try_from(table.row_count()).unwrap_or(i64::MAX);
        vec![int(table_number(table.space.id.0)), text(&view.place(&table.full).1), text(&table.name), int(rows)]
    };
    view.tables().iter().filter(|table| !view.is_view(table)).map(row).collect()
}
