//! What depends on what: `pg_depend`, and `pg_rewrite`, by whose rows a view depends on what it reads. `pg_dump` orders what it writes by them.

use super::postgres::default_number;
use super::{
    INDEXES, Value, View, columns_of, default_of, int, sequence_named_by, sequence_number, table_number, text,
};
use crate::bind::Binder;
use crate::views;

const PG_TYPE: i64 = 1247;
const PG_CLASS: i64 = 1259;
const PG_ATTRDEF: i64 = 2604;
const PG_REWRITE: i64 = 2618;
/// Where the numbers of rules begin.
const RULES: i64 = INDEXES - (1 << 24);

fn rule_number(space: u32) -> i64 {
    RULES + i64::from(space)
}

/// The rules that views are, as PostgreSQL has them.
pub(super) fn rules(view: &View<'_>) -> Vec<Vec<Value>> {
    let row = |space: u32| {
        vec![
            int(rule_number(space)),
            text("_RETURN"),
            int(table_number(space)),
            text("1"),
            text("O"),
            Value::Bool(true),
            Value::Null,
            Value::Null,
        ]
    };
    view.tables().iter().filter(|table| view.is_view(table)).map(|table| row(table.space.id.0)).collect()
}

/// The rows of `pg_depend`: sequences belong to columns, defaults take numbers of sequences, views read tables.
pub(super) fn rows(view: &View<'_>) -> Vec<Vec<Value>> {
    let row = |(class, object): (i64, i64), (other_class, other, column): (i64, i64, i64), kind: &str| {
        vec![int(class), int(object), int(0), int(other_class), int(other), int(column), text(kind)]
    };
    let mut rows = Vec::new();
    for (domain, below) in super::user_types::dependencies(view) {
        rows.push(row((PG_TYPE, domain), (PG_TYPE, below, 0), "n"));
    }
    let tables = view.tables();
    for table in &tables {
        let relation = table_number(table.space.id.0);
        for (number, at) in columns_of(table).filter(|(_, at)| !table.columns[*at].is_hidden) {
            if table.columns[at].identity.is_some() {
                // Its sequence is a part of it.
                if let Some(sequence) = super::sequence_of_column(view.database, table, at) {
                    rows.push(row((PG_CLASS, sequence_number(sequence.def().id)), (PG_CLASS, relation, number), "i"));
                }
                continue;
            }
            if default_of(view, table, at).is_none() {
                continue;
            }
            let own = (PG_ATTRDEF, default_number(relation, number));
            rows.push(row(own, (PG_CLASS, relation, number), "a"));
            let generated = table.generated.filter(|(field, _)| *field == at).map(|(_, sequence)| sequence);
            if let Some(sequence) = generated {
                rows.push(row((PG_CLASS, sequence_number(sequence)), (PG_CLASS, relation, number), "a"));
            }
            let named = generated.is_none().then_some(table.columns[at].default.as_ref()).flatten();
            let named = named.and_then(|default| sequence_named_by(view.database, default));
            let found = named.as_ref().and_then(|name| Some(view.database.catalog.sequence_by_name(name)?.def().id));
            // What SERIAL has made goes with the column: its name says so.
            let serial = || format!("{}_{}_seq", table.space.name(), table.columns[at].name);
            if let Some(sequence) = found.filter(|_| named == Some(serial())) {
                rows.push(row((PG_CLASS, sequence_number(sequence)), (PG_CLASS, relation, number), "a"));
            }
            if let Some(sequence) = generated.or(found) {
                rows.push(row(own, (PG_CLASS, sequence_number(sequence), 0), "n"));
            }
        }
    }
    for table in &tables {
        let Some(saved) = views::of(view.database, &table.space) else { continue };
        let Ok(query) = saved.query() else { continue };
        let binder = Binder::new(view.database, saved.dialect);
        if binder.bind_statement(&query).is_err() {
            continue;
        }
        let rule = (PG_REWRITE, rule_number(table.space.id.0));
        rows.push(row(rule, (PG_CLASS, table_number(table.space.id.0), 0), "i"));
        for other in tables.iter().filter(|other| other.space.id != table.space.id && binder.uses(other.space.id)) {
            rows.push(row(rule, (PG_CLASS, table_number(other.space.id.0), 0), "n"));
        }
    }
    rows
}
