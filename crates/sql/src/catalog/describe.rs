//! What functions ask about an object by its number or its name: `pg_get_indexdef`, `pg_get_viewdef`, `obj_description` and their like.

use super::postgres::{class_rows, description_rows};
use super::{View, Virtual, all, constraint_number, index_number, quoted, sequence_number, table_number};
use crate::dialect::Dialect;
use crate::run::Run;
use crate::shown_constraints;
use crate::table::Table;
use crate::value::Value;

/// `CREATE INDEX` for an index.
pub(super) fn index_definition(table: &Table, at: usize) -> String {
    let index = &table.indexes[at];
    let columns: Vec<&str> = index.parts.iter().map(|(field, ..)| table.columns[*field].name.as_str()).collect();
    let unique = if index.is_unique { "UNIQUE " } else { "" };
    let method = if index.is_ordered { "btree" } else { "hash" };
    format!(
        "CREATE {unique}INDEX {} ON public.{} USING {method} ({})",
        quoted(&index.name),
        quoted(&table.name),
        columns.iter().map(|column| quoted(column)).collect::<Vec<_>>().join(", ")
    )
}

/// `pg_get_indexdef`, `pg_get_constraintdef`, names of numbers: what functions ask for.
pub(crate) fn describe_index(run: &Run<'_>, number: i64, column: i64) -> Option<String> {
    let view = View::of(run);
    let (table, at) = view
        .indexes()
        .into_iter()
        .find(|(table, at)| index_number(table.space.id.0, u64::from(table.indexes[*at].id.0)) == number)?;
    if column == 0 {
        return Some(index_definition(&table, at));
    }
    let (field, ..) = table.indexes[at].parts.get(usize::try_from(column - 1).ok()?)?;
    Some(quoted(&table.columns[*field].name))
}

/// The definition of a constraint: its number is that of its index.
pub(crate) fn describe_constraint(run: &Run<'_>, number: i64) -> Option<String> {
    let view = View::of(run);
    let other =
        view.constraints().into_iter().find(|(table, at, _)| constraint_number(table.space.id.0, *at) == number);
    if let Some((table, _, shown)) = other {
        return Some(shown_constraints::definition(Dialect::Postgres, view.prefix(), &table, &shown));
    }
    let (table, at) = view
        .indexes()
        .into_iter()
        .find(|(table, at)| index_number(table.space.id.0, u64::from(table.indexes[*at].id.0)) == number)?;
    let index = table.indexes.get(at).filter(|index| index.is_constraint)?;
    let columns: Vec<String> = index.parts.iter().map(|(field, ..)| quoted(&table.columns[*field].name)).collect();
    let kind = if index.id.0 == 0 { "PRIMARY KEY" } else { "UNIQUE" };
    Some(format!("{kind} ({})", columns.join(", ")))
}

/// The query of a view, by its number.
pub(crate) fn describe_view(run: &Run<'_>, number: i64) -> Option<String> {
    let view = View::of(run);
    let found = view.tables().into_iter().find(|table| table_number(table.space.id.0) == number)?;
    let saved = crate::views::of(run.database, &found.space)?;
    let query = saved.query_with_schema(run.database, view.prefix()).ok()?;
    Some(format!(" {query};"))
}

/// The name of a table, an index or a sequence.
pub(crate) fn name_of(run: &Run<'_>, number: i64) -> Option<String> {
    let view = View::of(run);
    class_rows(&view)
        .into_iter()
        .find(|row| row[0].as_integer() == Some(i128::from(number)))
        .and_then(|row| row[1].as_text().map(str::to_string))
}

/// The number of a table, an index or a sequence, whose name may have a schema before it.
pub(crate) fn number_of(run: &Run<'_>, name: &str) -> Option<i64> {
    let last = name.rsplit('.').next().unwrap_or(name);
    let folded = match last.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inner) => inner.replace("\"\"", "\""),
        None => last.to_lowercase(),
    };
    let view = View::of(run);
    let found = class_rows(&view).into_iter().find(|row| row[1].as_text() == Some(&folded));
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
pub(crate) fn description(run: &Run<'_>, object: i64, column: i64) -> Value {
    let view = View { database: run.database, context: run.context };
    let rows = description_rows(&view);
    let is_it =
        |row: &&Vec<Value>| row[0].as_integer() == Some(object.into()) && row[2].as_integer() == Some(column.into());
    rows.iter().find(is_it).map_or(Value::Null, |row| row[3].clone())
}

/// The name of the sequence of a number.
pub(crate) fn sequence_of_number(run: &Run<'_>, number: i64) -> Option<String> {
    let all = run.database.catalog.sequences();
    all.iter().map(|sequence| sequence.def()).find(|def| sequence_number(def.id) == number).map(|def| def.name.clone())
}
