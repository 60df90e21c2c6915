//! Expressions that rows are checked by, for the database: bodies of functions of the language `SQL_EXPR`.
//!
//! The body is the text of a condition in Tarantool's dialect, unless a comment before it names another one: `/* dialect: postgres */ price > 0`. So it
//! stays what Tarantool takes for an expression.

use crate::bind::Binder;
use crate::dialect::Dialect;
use crate::error::{Condition, Error};
use crate::expr::{Expr, Slot};
use crate::run::Run;
use crate::table::Table;
use crate::value::Value;
use database::{Context, Database, Expressions, GeneratedFields, RowCondition, SessionKind, Space};
use std::rc::Rc;

const MARK: &str = "/* dialect: ";

/// A condition as the body of a function.
pub(crate) fn body_of(dialect: Dialect, text: &str) -> String {
    match dialect {
        Dialect::Tarantool => text.to_string(),
        Dialect::Postgres => format!("{MARK}postgres */ {text}"),
        Dialect::Mysql => format!("{MARK}mysql */ {text}"),
    }
}

/// The dialect of a body, and its text.
pub(crate) fn text_of(body: &str) -> (Dialect, &str) {
    let marked = body.strip_prefix(MARK).and_then(|rest| rest.split_once(" */ "));
    match marked {
        Some(("postgres", text)) => (Dialect::Postgres, text),
        Some(("mysql", text)) => (Dialect::Mysql, text),
        _ => (Dialect::Tarantool, body),
    }
}

/// Functions of no row that give the same all through a statement, and something else in another one.
const OF_THE_SESSION: [&str; 33] = [
    "now",
    "current_timestamp",
    "current_date",
    "current_time",
    "localtime",
    "localtimestamp",
    "transaction_timestamp",
    "statement_timestamp",
    "clock_timestamp",
    "utc_timestamp",
    "utc_date",
    "utc_time",
    "curdate",
    "curtime",
    "sysdate",
    "unix_timestamp",
    "current_user",
    "session_user",
    "system_user",
    "user",
    "database",
    "schema",
    "version",
    "connection_id",
    "current_schema",
    "current_database",
    "current_setting",
    "last_insert_id",
    "row_count",
    "found_rows",
    "pg_backend_pid",
    "lastval",
    "currval",
];

/// What a database needs to understand expressions.
#[derive(Default)]
struct Hook;

/// Has a database understand expressions of SQL.
pub fn serve_expressions(database: &Database) {
    database.set_expressions(Rc::new(Hook));
}

/// The context of expressions that look at nothing but a row.
pub(crate) fn context_of(database: &Database) -> Rc<Context> {
    let session = database.open_session(SessionKind::Background, None);
    database.close_session(&session);
    Rc::new(Context::for_background(session))
}

struct RowExpression {
    dialect: Dialect,
    /// True unless it is known that the row does not satisfy it.
    expr: Expr,
    fields: Vec<(u32, Slot)>,
    sizes: (usize, usize, usize),
    context: Rc<Context>,
}

impl Expressions for Hook {
    fn condition(
        &self,
        database: &Database,
        space: &Rc<Space>,
        body: &str,
        field: Option<u32>,
    ) -> database::Result<Rc<dyn RowCondition>> {
        let (dialect, text) = text_of(body);
        let table = Rc::new(Table::of(database, Rc::clone(space)).map_err(Error::into_database)?);
        let binder = Binder::new(database, dialect);
        let (expr, fields) = binder.bind_check(&table, text, field).map_err(Error::through_database)?;
        let expr = Expr::Not(Box::new(Expr::Is(Box::new(expr), false)));
        Ok(Rc::new(RowExpression { dialect, expr, fields, sizes: binder.sizes(), context: context_of(database) }))
    }

    fn default_value(&self, database: &Database, space: &Rc<Space>, field: u32) -> database::Result<Vec<u8>> {
        let work = || {
            let table = Table::of(database, Rc::clone(space))?;
            let column = table.columns.get(field as usize);
            let dialect = match column.and_then(|column| column.declared.as_ref()) {
                Some(_) => Dialect::Mysql,
                None if column.is_some_and(|column| column.is_declared_in_postgres) => Dialect::Postgres,
                None => Dialect::Tarantool,
            };
            let mut encoded = Vec::new();
            let value = match column {
                Some(column) if column.default.is_some() => {
                    let binder = Binder::new(database, dialect);
                    let expr = binder.bind_default(&table, field as usize)?;
                    let context = context_of(database);
                    expr.eval(&mut Run::of_row(database, &context, dialect, binder.sizes()))?
                }
                _ => Value::Null,
            };
            value.encode(&mut encoded);
            Ok(encoded)
        };
        work().map_err(Error::into_database)
    }

    fn generated_fields(&self, database: &Database, space: &Rc<Space>) -> database::Result<Rc<dyn GeneratedFields>> {
        crate::generated::of_space(database, space).map_err(Error::through_database)
    }

    fn domains(&self, database: &Database, space: &Rc<Space>) -> database::Result<Rc<dyn RowCondition>> {
        crate::user_types::conditions_of_space(database, space).map_err(Error::through_database)
    }
}

impl RowCondition for RowExpression {
    fn holds(&self, database: &Database, row: &[u8]) -> database::Result<bool> {
        let mut run = Run::of_row(database, &self.context, self.dialect, self.sizes);
        for (field, slot) in &self.fields {
            run.frame[*slot] = tuple::field(row, *field).map_or(Value::Null, Value::decode);
        }
        self.expr.is_true(&mut run).map_err(Error::through_database)
    }
}

/// Errors: the value of a generated column would not be the same for the same row.
pub(crate) fn check_is_fixed(dialect: Dialect, column: &str, expr: &Expr) -> crate::error::Result<()> {
    let mut refused = None;
    let mut refuse = |postgres: Condition, what: &str, function: &str| {
        refused = Some(match dialect {
            Dialect::Mysql => {
                let what =
                    format!("Expression of generated column '{column}' contains a disallowed function: {function}.");
                Error::new(Condition::InvalidTable, what).mysql(3102)
            }
            _ => Error::new(postgres, what),
        });
    };
    expr.walk(&mut |part| match part {
        Expr::Subquery(_) => {
            refuse(Condition::Unsupported, "cannot use subquery in column generation expression", "subquery");
        }
        Expr::Param(_) => {
            refuse(Condition::Unsupported, "cannot use a parameter in column generation expression", "parameter");
        }
        Expr::Call(function, _) if function.is_volatile || OF_THE_SESSION.contains(&function.name) => {
            refuse(Condition::Recursion, "generation expression is not immutable", function.name);
        }
        _ => {}
    });
    refused.map_or(Ok(()), Err)
}

/// Errors: the expression does not depend on the row alone.
pub(crate) fn check_is_of_row(expr: &Expr) -> crate::error::Result<()> {
    let mut refused = None;
    expr.walk(&mut |part| match part {
        Expr::Subquery(_) => refused = Some("cannot use subquery in check constraint".to_string()),
        Expr::Param(_) => refused = Some("cannot use a parameter in check constraint".to_string()),
        Expr::Call(function, _) if function.is_volatile => {
            refused =
                Some(format!("an expression of a check constraint contains disallowed function: {}", function.name));
        }
        _ => {}
    });
    match refused {
        Some(what) => Err(Error::new(Condition::Unsupported, what)),
        None => Ok(()),
    }
}
