//! Constraints as clients are shown them: of `pg_catalog`, `information_schema` and SHOW CREATE TABLE.

use crate::catalog::quoted;
use crate::condition::text_of;
use crate::dialect::Dialect;
use crate::table::Table;
use database::{Action, Database, Deferral};
use std::rc::Rc;

/// A constraint of a table that is no index.
pub(crate) enum Shown {
    Check {
        name: String,
        text: String,
        columns: Vec<usize>,
    },
    Key {
        name: String,
        columns: Vec<usize>,
        parent: Box<Parent>,
        on_delete: Action,
        on_update: Action,
        deferral: Deferral,
    },
}

/// The table that a foreign key names rows of.
pub(crate) struct Parent {
    pub(crate) table: Table,
    pub(crate) columns: Vec<usize>,
    /// The name of the unique index.
    pub(crate) index: Option<(u64, String)>,
}

impl Shown {
    pub(crate) fn name(&self) -> &str {
        match self {
            Shown::Check { name, .. } | Shown::Key { name, .. } => name,
        }
    }
}

/// The constraints of a table that are no indexes, in their order.
pub(crate) fn of(database: &Database, table: &Table) -> Vec<Shown> {
    let def = table.space.def();
    let mut shown = Vec::new();
    for check in &def.checks {
        let Some(function) = database.catalog.function(check.function_id) else { continue };
        let text = match function.language.as_str() {
            "SQL_EXPR" => text_of(&function.body).1.to_string(),
            _ => format!("{}()", function.name),
        };
        let columns = match check.field {
            Some(field) => vec![field as usize],
            None => columns_of_check(database, table, &function.body),
        };
        shown.push(Shown::Check { name: check.name.clone(), text, columns });
    }
    for key in &def.foreign_keys {
        let parent = database.catalog.space(key.space).and_then(|space| Table::of(database, space).ok());
        let Some(parent) = parent else { continue };
        let fields = &parent.space.def().fields;
        let pairs = key
            .pairs
            .iter()
            .map(|(local, foreign)| Some((local.resolve(&def.fields)? as usize, foreign.resolve(fields)? as usize)));
        let Some(pairs) = pairs.collect::<Option<Vec<(usize, usize)>>>() else { continue };
        let (columns, foreign): (Vec<usize>, Vec<usize>) = pairs.into_iter().unzip();
        let is_known = columns.iter().all(|column| *column < table.columns.len())
            && foreign.iter().all(|column| *column < parent.columns.len());
        if !is_known {
            continue;
        }
        let is_it = |index: &&crate::table::Index| {
            index.is_unique
                && index.parts.len() == foreign.len()
                && index.parts.iter().all(|(field, ..)| foreign.contains(field))
        };
        let index = parent.indexes.iter().find(is_it).map(|index| (u64::from(index.id.0), index.name.clone()));
        let parent = Box::new(Parent { table: parent, columns: foreign, index });
        let (name, on_delete, on_update) = (key.name.clone(), key.on_delete, key.on_update);
        shown.push(Shown::Key { name, columns, parent, on_delete, on_update, deferral: key.deferral });
    }
    shown
}

/// The columns that the condition of a check reads.
fn columns_of_check(database: &Database, table: &Table, body: &str) -> Vec<usize> {
    let (dialect, text) = text_of(body);
    let Ok(known) = Table::of(database, Rc::clone(&table.space)).map(Rc::new) else { return Vec::new() };
    let bound = crate::bind::Binder::new(database, dialect).bind_check(&known, text, None);
    bound.map_or_else(|_| Vec::new(), |(_, fields)| fields.iter().map(|(field, _)| *field as usize).collect())
}

/// An action in words; none for the one that is meant without a word.
pub(crate) fn words_of(action: Action) -> &'static str {
    match action {
        Action::Restrict => "RESTRICT",
        Action::NoAction => "NO ACTION",
        Action::Cascade => "CASCADE",
        Action::SetNull => "SET NULL",
        Action::SetDefault => "SET DEFAULT",
    }
}

/// What stands behind the name of a constraint in CREATE TABLE. `shown_table` gives the names of the catalog as they are shown.
pub(crate) fn definition(
    dialect: Dialect,
    shown_table: &dyn Fn(&str) -> String,
    table: &Table,
    shown: &Shown,
) -> String {
    let name = |name: &str| match dialect {
        Dialect::Mysql => crate::written::name(dialect, name),
        _ => quoted(name),
    };
    let list = |table: &Table, columns: &[usize]| {
        let names: Vec<String> = columns.iter().map(|column| name(&table.columns[*column].name)).collect();
        names.join(", ")
    };
    match shown {
        Shown::Check { text, .. } => format!("CHECK ({text})"),
        Shown::Key { columns, parent, on_delete, on_update, deferral, .. } => {
            let mut out = format!(
                "FOREIGN KEY ({}) REFERENCES {}{}({})",
                list(table, columns),
                shown_table(&parent.table.full),
                if dialect == Dialect::Mysql { " " } else { "" },
                list(&parent.table, &parent.columns)
            );
            let events = match dialect {
                Dialect::Mysql => [("DELETE", on_delete), ("UPDATE", on_update)],
                _ => [("UPDATE", on_update), ("DELETE", on_delete)],
            };
            for (event, action) in events {
                if *action != Action::NoAction {
                    out.push_str(&format!(" ON {event} {}", words_of(*action)));
                }
            }
            if dialect == Dialect::Postgres {
                out.push_str(match deferral {
                    Deferral::Never => "",
                    Deferral::Immediate => " DEFERRABLE",
                    Deferral::Deferred => " DEFERRABLE INITIALLY DEFERRED",
                });
            }
            out
        }
    }
}
