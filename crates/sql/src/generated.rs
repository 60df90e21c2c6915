//! Columns whose values are computed of their rows: GENERATED ALWAYS AS.
//!
//! The format of the space has the expression, as bodies of functions have conditions: so it stays with its column, whatever becomes of the others, and
//! every protocol's rows get the value. PostgreSQL's STORED and MySQL's STORED and VIRTUAL are kept in the row alike; a VIRTUAL one is shown as such.

use crate::bind::Binder;
use crate::condition::{context_of, text_of};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{Expr, Slot};
use crate::run::Run;
use crate::table::Table;
use crate::value::Value;
use database::{Context, Database, GeneratedFields, Space};
use std::rc::Rc;
use tuple::msgpack::{self, Reader};

/// What a generated column is computed by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Generated {
    /// The expression, as bodies of functions have it.
    pub(crate) body: String,
    /// It was declared VIRTUAL.
    pub(crate) is_virtual: bool,
}

impl Generated {
    /// The expression as text, and its dialect.
    pub(crate) fn text(&self) -> (Dialect, &str) {
        text_of(&self.body)
    }

    /// The word for how it is kept.
    pub(crate) fn word(&self) -> &'static str {
        if self.is_virtual { "VIRTUAL" } else { "STORED" }
    }
}

/// One column that is computed.
struct Computed {
    field: usize,
    dialect: Dialect,
    expr: Expr,
    reads: Vec<(u32, Slot)>,
    sizes: (usize, usize, usize),
    /// Of a column that may not be null, the names of its table and of itself.
    no_null: Option<(String, String)>,
}

struct Columns {
    computed: Vec<Computed>,
    context: Rc<Context>,
}

/// What computes the generated fields of a space. Errors: an expression that means nothing.
pub(crate) fn of_space(database: &Database, space: &Rc<Space>) -> Result<Rc<dyn GeneratedFields>> {
    let table = Rc::new(Table::of(database, Rc::clone(space))?);
    let mut computed = Vec::new();
    for (field, column) in table.columns.iter().enumerate() {
        let Some(generated) = &column.generated else { continue };
        let (dialect, text) = generated.text();
        let binder = Binder::new(database, dialect);
        let (expr, reads) = binder.bind_generated(&table, field, text)?;
        let is_own = |number: usize| table.columns[number].generated.is_some();
        if let Some((read, _)) = reads.iter().find(|(read, _)| match dialect {
            Dialect::Mysql => *read as usize >= field && is_own(*read as usize),
            // Of an index: it is computed behind all that are declared.
            _ if column.is_hidden => *read as usize >= field && is_own(*read as usize),
            _ => is_own(*read as usize),
        }) {
            return Err(reads_generated(&table, dialect, field, *read as usize));
        }
        let no_null = (!column.is_nullable).then(|| (table.name.clone(), column.name.clone()));
        computed.push(Computed { field, dialect, expr, reads, sizes: binder.sizes(), no_null });
    }
    Ok(Rc::new(Columns { computed, context: context_of(database) }))
}

fn reads_generated(table: &Table, dialect: Dialect, field: usize, read: usize) -> Error {
    let (column, read) = (&table.columns[field].name, &table.columns[read].name);
    match dialect {
        Dialect::Mysql => {
            let what = "Generated column can refer only to generated columns defined prior to it.";
            Error::new(Condition::InvalidTable, what).mysql(3107)
        }
        _ => {
            let what = format!("cannot use generated column \"{read}\" in column generation expression");
            Error::new(Condition::Recursion, what)
                .detail("A generated column cannot reference another generated column.")
                .about(&table.full, Some(column), None)
        }
    }
}

impl GeneratedFields for Columns {
    fn fill(&self, database: &Database, session: u64, row: &[u8]) -> database::Result<Vec<u8>> {
        let mut reader = Reader::new(row);
        let count = reader.read_array().unwrap_or(0) as usize;
        let length = self.computed.iter().map(|column| column.field + 1).max().unwrap_or(0).max(count);
        const NIL: &[u8] = &[0xc0];
        let mut fields: Vec<&[u8]> = Vec::with_capacity(length);
        for _ in 0..count {
            match reader.read_value() {
                Ok(field) => fields.push(field),
                // Refused as a row.
                Err(_) => return Ok(row.to_vec()),
            }
        }
        fields.resize(length, NIL);
        let mut values: Vec<(usize, Vec<u8>)> = Vec::with_capacity(self.computed.len());
        for column in &self.computed {
            let mut run = Run::of_row(database, &self.context, column.dialect, column.sizes);
            if column.dialect == Dialect::Mysql {
                run.writer = crate::Sql::of(database).session(session);
            }
            for (read, slot) in &column.reads {
                let known =
                    values.iter().find(|(field, _)| *field == *read as usize).map(|(_, value)| value.as_slice());
                let field = known.or_else(|| fields.get(*read as usize).copied());
                run.frame[*slot] = field.map_or(Value::Null, Value::decode);
            }
            let mut encoded = Vec::new();
            let value = column.expr.eval(&mut run).map_err(Error::through_database)?;
            if let Some(refused) = column.no_null.as_ref().filter(|_| value.is_null()) {
                let refused = match column.dialect {
                    Dialect::Mysql => format!("Column '{}' cannot be null", refused.1),
                    _ => format!(
                        "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
                        refused.1, refused.0
                    ),
                };
                return Err(Error::new(Condition::NotNull, refused).through_database());
            }
            value.encode(&mut encoded);
            values.push((column.field, encoded));
        }
        let mut filled = Vec::with_capacity(row.len() + 16);
        msgpack::encode_array(&mut filled, length as u32);
        for (number, field) in fields.iter().enumerate() {
            let value = values.iter().find(|(field, _)| *field == number).map(|(_, value)| value.as_slice());
            filled.extend_from_slice(value.unwrap_or(field));
        }
        Ok(filled)
    }
}

/// The same in the words of MySQL's dialect.
pub(crate) fn refuse_computed(table: &str, column: &str) -> Error {
    let what = format!("The value specified for generated column '{column}' in table '{table}' is not allowed.");
    Error::new(Condition::GeneratedAlways, what).mysql(3105)
}

/// Errors: a statement gives a generated column a value of its own.
pub(crate) fn refuse_given(dialect: Dialect, table: &Table, number: usize) -> Error {
    let name = &table.columns[number].name;
    match dialect {
        Dialect::Mysql => refuse_computed(&table.name, name),
        _ => {
            Error::new(Condition::GeneratedAlways, format!("cannot insert a non-DEFAULT value into column \"{name}\""))
                .detail(format!("Column \"{name}\" is a generated column."))
        }
    }
}

/// Errors: an UPDATE sets a generated column.
pub(crate) fn refuse_set(dialect: Dialect, table: &Table, number: usize) -> Error {
    match dialect {
        Dialect::Mysql => refuse_given(dialect, table, number),
        _ => {
            let name = &table.columns[number].name;
            Error::new(Condition::GeneratedAlways, format!("column \"{name}\" can only be updated to DEFAULT"))
                .detail(format!("Column \"{name}\" is a generated column."))
        }
    }
}
