//! What functions ask about an object by its number or its name: `pg_get_indexdef`, `pg_get_viewdef`, `obj_description` and their like.

use super::postgres::{class_rows, description_rows};
use super::{
    INDEXES, INDEXES_PER_TABLE, SEQUENCES, TABLES, View, Virtual, all, column_number, constraint_number, index_number,
    quoted, sequence_number, table_number,
};
use crate::dialect::Dialect;
use crate::run::Run;
use crate::shown_constraints;
use crate::spelled::SpelledKey;
use crate::table::{Index, Table};
use crate::value::Value;
use database::Database;
use std::fmt::Write as _;
use tuple::SpaceId;

/// `CREATE INDEX` for an index.
pub(crate) fn index_definition(view: &View<'_>, table: &Table, at: usize) -> String {
    let index = &table.indexes[at];
    let key = |number: usize| {
        let key = index.spelled.as_ref().and_then(|spelled| spelled.keys.get(number));
        let order = key.map_or("", SpelledKey::order);
        let class = key.and_then(|key| key.class.as_deref()).filter(|class| !super::classes::is_default(class));
        let class = class.map_or_else(String::new, |class| format!(" {class}"));
        format!("{}{class}{order}", index_key(table, index, number, true))
    };
    let keys: Vec<String> = (0..key_count(index)).map(key).collect();
    let mut more = String::new();
    if let Some(spelled) = &index.spelled {
        if !spelled.included.is_empty() {
            let names: Vec<String> = spelled.included.iter().map(|name| quoted(name)).collect();
            let _ = write!(more, " INCLUDE ({})", names.join(", "));
        }
        if spelled.has_equal_nulls {
            more.push_str(" NULLS NOT DISTINCT");
        }
        if !spelled.options.is_empty() {
            let shown = |option: &String| match option.split_once('=') {
                Some((name, value)) if value.bytes().all(|byte| byte.is_ascii_digit()) => format!("{name}='{value}'"),
                _ => option.clone(),
            };
            let _ = write!(more, " WITH ({})", spelled.options.iter().map(shown).collect::<Vec<_>>().join(", "));
        }
        if let Some(condition) = &spelled.condition {
            let _ = write!(more, " WHERE ({condition})");
        }
    }
    let unique = if index.is_unique { "UNIQUE " } else { "" };
    let method = if index.is_ordered { "btree" } else { "hash" };
    format!(
        "CREATE {unique}INDEX {} ON {}.{} USING {method} ({}){more}",
        quoted(&index.name),
        quoted(&view.place(&table.full).1),
        quoted(&table.name),
        keys.join(", ")
    )
}

/// How many keys an index has, as it is said.
pub(super) fn key_count(index: &Index) -> usize {
    index.spelled.as_ref().map_or(index.parts.len(), |spelled| spelled.keys.len())
}

/// A key of an index as CREATE INDEX has it: an expression that is no call stands in parentheses.
fn index_key(table: &Table, index: &Index, number: usize, is_among_others: bool) -> String {
    match index.spelled.as_ref().and_then(|spelled| spelled.keys.get(number)) {
        Some(key) if !key.is_expression => quoted(&key.text),
        Some(key) if is_call(&key.text) => key.text.clone(),
        Some(key) if is_among_others => format!("(({}))", key.text),
        Some(key) => format!("({})", key.text),
        None => index.parts.get(number).map_or_else(String::new, |(field, ..)| quoted(&table.columns[*field].name)),
    }
}

/// True for `function(...)` with nothing behind it.
fn is_call(text: &str) -> bool {
    let name = text.split('(').next().unwrap_or_default();
    let mut depth = 0;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_.".contains(c));
    let ends_early = text.char_indices().any(|(at, c)| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ')' && depth == 0 && at + 1 < text.len()
    });
    is_name && text.ends_with(')') && !ends_early
}

/// The expressions among the keys of an index, and the condition of its rows: as `pg_index` has them.
pub(super) fn expressions_of(index: &Index) -> (Value, Value) {
    let Some(spelled) = &index.spelled else { return (Value::Null, Value::Null) };
    let texts: Vec<String> = spelled
        .keys
        .iter()
        .filter(|key| key.is_expression)
        .map(|key| if is_call(&key.text) { key.text.clone() } else { format!("({})", key.text) })
        .collect();
    let expressions = if texts.is_empty() { Value::Null } else { Value::text(texts.join(", ")) };
    (expressions, spelled.condition.as_ref().map_or(Value::Null, |text| Value::text(format!("({text})"))))
}

/// Numbers of the columns of an index; 0 for an expression. Those of INCLUDE are the last.
pub(super) fn columns_of_index(table: &Table, index: &Index) -> Vec<i64> {
    let number = |name: &String| {
        let at = table.columns.iter().position(|column| column.name == *name);
        at.map_or(0, |at| column_number(table, at))
    };
    match &index.spelled {
        None => index.parts.iter().map(|(field, ..)| column_number(table, *field)).collect(),
        Some(spelled) => {
            let keys = spelled.keys.iter().map(|key| if key.is_expression { 0 } else { number(&key.text) });
            keys.chain(spelled.included.iter().map(number)).collect()
        }
    }
}

/// `pg_get_indexdef`, `pg_get_constraintdef`, names of numbers: what functions ask for.
pub(crate) fn describe_index(run: &Run<'_>, number: i64, column: i64) -> Option<String> {
    let view = View::of(run);
    let (table, at) = view
        .indexes()
        .into_iter()
        .find(|(table, at)| index_number(table.space.id.0, u64::from(table.indexes[*at].id.0)) == number)?;
    if column == 0 {
        return Some(index_definition(&view, &table, at));
    }
    let index = &table.indexes[at];
    let number = usize::try_from(column - 1).ok()?;
    match index.spelled.as_ref().and_then(|spelled| spelled.included.get(number.checked_sub(key_count(index))?)) {
        Some(included) => Some(quoted(included)),
        None => Some(index_key(&table, index, number, false)).filter(|key| !key.is_empty()),
    }
}

/// The definition of a constraint: its number is that of its index.
pub(crate) fn describe_constraint(run: &Run<'_>, number: i64) -> Option<String> {
    let view = View::of(run);
    let other =
        view.constraints().into_iter().find(|(table, at, _)| constraint_number(table.space.id.0, *at) == number);
    if let Some((table, _, shown)) = other {
        let shown = shown_constraints::definition(Dialect::Postgres, &|name| view.shown(name), &table, &shown);
        return Some(crate::schemas::respelled(run.database, &shown));
    }
    if let Some(found) = super::user_types::describe_constraint(run.database, number) {
        return Some(found);
    }
    let (table, at) = view
        .indexes()
        .into_iter()
        .find(|(table, at)| index_number(table.space.id.0, u64::from(table.indexes[*at].id.0)) == number)?;
    let index = table.indexes.get(at).filter(|index| index.is_constraint)?;
    let columns: Vec<String> = (0..key_count(index)).map(|number| index_key(&table, index, number, true)).collect();
    let kind = match index.spelled.as_ref().is_some_and(|spelled| spelled.has_equal_nulls) {
        _ if index.id.0 == 0 => "PRIMARY KEY",
        true => "UNIQUE NULLS NOT DISTINCT",
        false => "UNIQUE",
    };
    Some(format!("{kind} ({})", columns.join(", ")))
}

/// The query of a view, by its number.
pub(crate) fn describe_view(run: &Run<'_>, number: i64) -> Option<String> {
    let view = View::of(run);
    let found = view.tables().into_iter().find(|table| table_number(table.space.id.0) == number)?;
    let saved = crate::views::of(run.database, &found.space)?;
    let query = saved.query_shown(run.database).ok()?;
    Some(format!(" {query};"))
}

/// The name of a table, an index or a sequence, behind its schema unless it is found without.
pub(crate) fn name_of(run: &Run<'_>, number: i64) -> Option<String> {
    let view = View::of(run);
    full_name_of(run, &view, number).map(|full| view.shown(&full))
}

/// True if the name of a table, an index or a sequence finds it without its schema.
pub(crate) fn is_visible(run: &Run<'_>, number: i64) -> bool {
    crate::Sql::of(run.database).speak(run.context);
    let places = crate::schemas::path(run.database);
    // Without schemas everything is seen: no table of the catalog has to be made for that.
    if crate::schemas::all(run.database).is_empty() {
        return !places.is_empty() || all().any(|table| table.number() == number);
    }
    name_in_catalog(run.database, number).is_none_or(|full| crate::schemas::is_visible(run.database, &full))
}

/// The name in the catalog of a table, an index or a sequence, whether or not the user may read it: nobody is told. It is asked for each row of `pg_class`.
fn name_in_catalog(database: &Database, number: i64) -> Option<String> {
    let space = |id: i64| database.catalog.space(SpaceId(u32::try_from(id).ok()?));
    if let Some(place) = number.checked_sub(INDEXES).filter(|place| *place >= 0) {
        let space = space(place / INDEXES_PER_TABLE)?;
        let id = u32::try_from(place % INDEXES_PER_TABLE).ok()?;
        let index = space.index_defs().iter().find(|index| index.id.0 == id).map(|index| space.index_name(index.id))?;
        return Some(crate::schemas::beside(database, &space.name(), &index));
    }
    if let Some(id) = number.checked_sub(SEQUENCES).filter(|id| *id >= 0) {
        return database.catalog.sequence(u32::try_from(id).ok()?).map(|sequence| sequence.def().name.clone());
    }
    space(number - TABLES).map(|space| crate::temporary::short_name(&space))
}

/// The name in the catalog of a table, an index or a sequence.
fn full_name_of(run: &Run<'_>, view: &View<'_>, number: i64) -> Option<String> {
    let rows = class_rows(view);
    let row = rows.iter().find(|row| row[0].as_integer() == Some(i128::from(number)))?;
    let schema = row[2].as_integer().and_then(|number| i64::try_from(number).ok());
    let schema = schema.and_then(|number| super::schema_of_number(run.database, number));
    let name = row[1].as_text()?;
    Some(match schema.as_deref().and_then(|schema| crate::schemas::by_name(run.database, schema)) {
        Some(schema) => schema.full(name),
        None => name.to_string(),
    })
}

/// The number of a table, an index or a sequence, whose name may have a schema before it.
pub(crate) fn number_of(run: &Run<'_>, name: &str) -> Option<i64> {
    let view = View::of(run);
    crate::Sql::of(run.database).speak(run.context);
    let full = crate::schemas::named(run.database, crate::schemas::Kind::Relation, name).ok()?;
    let number_in = |full: &str| {
        let (schema, _, local) = view.place(full);
        let is_it = |row: &Vec<Value>| row[1].as_text() == Some(local) && row[2].as_integer() == Some(schema.into());
        class_rows(&view).into_iter().find(is_it)
    };
    let as_index = || {
        let full = crate::schemas::named(run.database, crate::schemas::Kind::Index, name).ok()?;
        number_in(&full)
    };
    let folded = crate::schemas::local(run.database, &full).to_string();
    let found = number_in(&full).or_else(as_index);
    found
        .and_then(|row| row[0].as_integer())
        .and_then(|number| i64::try_from(number).ok())
        .or_else(|| all().find(|table| table.schema == "pg_catalog" && table.name == folded).map(Virtual::number))
}

/// Bytes of the rows of a table, which is said by its number or its name.
pub(crate) fn size_of(run: &Run<'_>, table: &Value) -> Option<i64> {
    let number = match table {
        Value::Text(name) => number_of(run, name)?,
        number => i64::try_from(number.as_integer()?).ok()?,
    };
    let tables = View::of(run).tables();
    let bytes = tables
        .iter()
        .find(|table| table_number(table.space.id.0) == number)
        .map_or(0, |table| table.space.rows.row_bytes());
    Some(i64::try_from(bytes).unwrap_or(i64::MAX))
}

/// What is said of an object by its number in `pg_class`, or of a column of it.
pub(crate) fn description(run: &Run<'_>, object: i64, column: i64, class: Option<&str>) -> Value {
    // Indexes and their constraints have one number.
    let class = match class {
        None => None,
        Some(name) => match super::postgres::class_number(name) {
            None => return Value::Null,
            found => found,
        },
    };
    let view = View { database: run.database, context: run.context };
    let rows = description_rows(&view);
    let is_it = |row: &&Vec<Value>| {
        row[0].as_integer() == Some(object.into())
            && row[2].as_integer() == Some(column.into())
            && class.is_none_or(|class| row[1].as_integer() == Some(class.into()))
    };
    rows.iter().find(is_it).map_or(Value::Null, |row| row[3].clone())
}

/// The name of the sequence of a number.
pub(crate) fn sequence_of_number(run: &Run<'_>, number: i64) -> Option<String> {
    let all = run.database.catalog.sequences();
    all.iter().map(|sequence| sequence.def()).find(|def| sequence_number(def.id) == number).map(|def| def.name.clone())
}
