//! Columns that are identities in INSERT and UPDATE: whether a statement may say what number a row has.

use super::Binder;
use crate::ddl::Identity;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::Expr;
use crate::table::Table;
use crate::value::Value;
use sqlparser::ast::InsertOverriding;

/// What becomes of a value that a statement gives for a column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    /// The row has it.
    Taken,
    /// The row has the next number all the same.
    PassedOver,
    /// The statement is refused.
    Refused,
}

/// What an INSERT does with the values that it gives for a column.
pub(super) fn given(table: &Table, number: usize, overriding: Option<&InsertOverriding>) -> Given {
    if table.columns[number].generated.is_some() {
        return Given::Refused;
    }
    match (table.columns[number].identity, overriding) {
        (Some(_), Some(InsertOverriding::User)) => Given::PassedOver,
        (Some(Identity::Always), None) => Given::Refused,
        _ => Given::Taken,
    }
}

/// An INSERT gives a number for a column that has its own only.
fn refuse_given(table: &Table, number: usize) -> Error {
    let name = &table.columns[number].name;
    let what = format!("cannot insert a non-DEFAULT value into column \"{name}\"");
    Error::new(Condition::GeneratedAlways, what)
        .detail(format!("Column \"{name}\" is an identity column defined as GENERATED ALWAYS."))
        .hint("Use OVERRIDING SYSTEM VALUE to override.")
}

/// Errors: an UPDATE sets a column that has numbers of its own only.
pub(super) fn check_set(table: &Table, number: usize) -> Result<()> {
    let column = &table.columns[number];
    if column.identity != Some(Identity::Always) {
        return Ok(());
    }
    let what = format!("column \"{}\" can only be updated to DEFAULT", column.name);
    Err(Error::new(Condition::GeneratedAlways, what)
        .detail(format!("Column \"{}\" is an identity column defined as GENERATED ALWAYS.", column.name)))
}

impl Binder<'_> {
    /// The error for a value that an INSERT gives for a column which has none but its own.
    pub(super) fn refuse_given(&self, table: &Table, number: usize) -> Error {
        match table.columns[number].generated {
            Some(_) => crate::generated::refuse_given(self.dialect, table, number),
            None => refuse_given(table, number),
        }
    }

    /// True for null where MySQL's dialect takes it for DEFAULT: of a generated column.
    pub(super) fn is_no_value(&self, table: &Table, number: usize, expr: &sqlparser::ast::Expr) -> bool {
        let is_null = matches!(expr, sqlparser::ast::Expr::Value(value) if value.value == sqlparser::ast::Value::Null);
        self.dialect == Dialect::Mysql && is_null && table.columns[number].generated.is_some()
    }

    /// Errors: null is given for a column that the space would fill then, where PostgreSQL refuses it.
    pub(super) fn check_generated_null(&self, table: &Table, number: usize, value: &Expr) -> Result<()> {
        let is_filled = self.dialect == Dialect::Postgres && table.generated.is_some_and(|(field, _)| field == number);
        let column = &table.columns[number];
        if !is_filled || column.is_hidden || !matches!(value, Expr::Const(Value::Null)) {
            return Ok(());
        }
        let (name, relation) = (&column.name, &table.name);
        let what = format!("null value in column \"{name}\" of relation \"{relation}\" violates not-null constraint");
        Err(Error::new(Condition::NotNull, what).about(relation, Some(name), None))
    }

    /// What DEFAULT means in an UPDATE. Where a row comes the space itself would take the next number of its sequence; here it is asked for.
    pub(super) fn default_set(&self, table: &Table, number: usize) -> Result<Expr> {
        let linked = table.generated.filter(|(field, _)| *field == number && self.dialect == Dialect::Postgres);
        let sequence = linked.and_then(|(_, id)| self.database.catalog.sequence(id));
        match sequence {
            Some(sequence) => {
                let name = crate::catalog::quoted(&sequence.def().name).replace('\'', "''");
                self.expression_of(table, number, &format!("nextval('{name}')"))
            }
            None => self.default_of(table, number),
        }
    }
}
