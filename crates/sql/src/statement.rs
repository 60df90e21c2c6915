//! Statements: prepared once, run as often as one likes.

mod explain;
mod prepare;
mod run;
mod transaction;

pub use prepare::CACHE_MAX;

use crate::accounts::Accounts;
use crate::bind::{Origin, Query, Write};
use crate::cast::display;
use crate::change::Counts;
use crate::control::Control;
use crate::dialect::Dialect;
use crate::explain::Form;
use crate::expr::{CollationOption, Expr};
use crate::mysql::Said;
use crate::plan::Plan;
use crate::selectivity::Selectivity;
use crate::session::Session;
use crate::types::{Base, Type};
use crate::value::Value;
use database::Database;
use hashbrown::HashMap;
use sqlparser::ast;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// What SQL keeps with a database: plans of texts that come again, statements that sessions have prepared.
#[derive(Default)]
pub struct Sql {
    cache: RefCell<HashMap<(Dialect, String), Rc<Prepared>>>,
    pub(crate) named: RefCell<HashMap<(u64, u32), Rc<str>>>,
    pub(crate) sessions: RefCell<HashMap<u64, Rc<Session>>>,
    /// For whom names are looked up.
    pub(crate) speaking: Cell<u64>,
    /// Temporary tables of sessions that have ended.
    pub(crate) left: RefCell<Vec<tuple::SpaceId>>,
    pub(crate) selectivity: Selectivity,
    /// Foreign keys that wait for the table that they name.
    pub(crate) waiting: RefCell<Vec<crate::constraint::Waiting>>,
    /// Types of users' own, as far as they were asked for.
    pub(crate) user_types: crate::user_types::Cache,
    /// Schemas of users' own.
    pub(crate) user_schemas: crate::schemas::Cache,
    advisory: Rc<crate::advisory::Advisory>,
    /// Bytes that the statements have which run now.
    pub(crate) memory: Rc<Cell<usize>>,
}

/// A column of a result.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// The number of the parameter that it is, from 0, if it is one and nothing else.
    pub param: Option<usize>,
    /// The column of a table that it is, if it is one and nothing else.
    pub origin: Option<Rc<Origin>>,
    /// The collation of its texts, if one compares them.
    pub collation: CollationOption,
    /// The item of the list behind SELECT that it is alone, from 0.
    pub item: Option<usize>,
}

impl Column {
    /// One that is no column of a table.
    pub fn named(name: &str, ty: Type) -> Self {
        Column { name: name.to_string(), ty, param: None, origin: None, collation: None, item: None }
    }
}

/// A statement whose names and types are known.
pub struct Prepared {
    dialect: Dialect,
    text: String,
    schema_version: u64,
    /// It is for sessions whose zone is not UTC.
    is_zoned: bool,
    work: Work,
    columns: Vec<Column>,
    /// Types of parameters that the client has given.
    declared: Vec<Type>,
    params: Vec<Type>,
    param_names: Vec<String>,
    /// Its rows are those that it would have had without its LIMIT: SQL_CALC_FOUND_ROWS.
    counted: Option<Plan>,
    /// A query that changes rows, in WITH.
    has_writes: bool,
    /// It calculates with parameters.
    calculates_with_params: bool,
    /// Columns of its rows whose values have texts, and their types.
    labels: Vec<(usize, Type)>,
    sizes: (usize, usize, usize),
}

enum Work {
    Query(Box<Query>),
    Write(Box<Write>),
    Schema(Box<ast::Statement>),
    /// EXPLAIN of a statement that has a plan.
    Explain(Box<Prepared>, Form),
    /// EXPLAIN ANALYZE: of a statement whose steps count.
    Analyze(Box<Prepared>, Form),
    Control(Control),
    Accounts(Rc<Accounts>),
    /// SET SESSION of Tarantool's dialect: a row of `_session_settings`.
    Setting(String, Value),
    Begin,
    Commit,
    Rollback,
    Savepoint(String),
    RollbackTo(String),
    Release(String),
}

/// A statement of a text.
pub struct Parsed {
    dialect: Dialect,
    text: String,
    statement: Said,
}

impl Parsed {
    /// True if it reads and writes rows, or changes the schema or rights, and does nothing else.
    pub fn is_of_a_transaction(&self) -> bool {
        use ast::Statement as S;
        match &self.statement {
            Said::Parsed(statement) => {
                matches!(statement, S::Query(_) | S::Insert(_) | S::Update(_) | S::Delete(_)) || is_of_schema(statement)
            }
            Said::Accounts(_) => true,
            _ => false,
        }
    }

    /// As [`Prepared::ends_failure`].
    pub fn ends_failure(&self) -> bool {
        use ast::Statement as S;
        matches!(
            &self.statement,
            Said::Control(Control::Commit { .. } | Control::Rollback { .. })
                | Said::Parsed(S::Rollback { .. } | S::Commit { .. })
        )
    }
}

/// What came of a statement.
#[derive(Debug)]
pub struct Outcome {
    /// What it was: `SELECT`, `INSERT`, `CREATE TABLE` and so on.
    pub tag: &'static str,
    /// Rows that were found or changed, and numbers that were given.
    pub counts: Counts,
}

impl Prepared {
    /// The columns of its rows; none if it has no rows.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// True if types of its columns, or of what it calculates, depend on what its parameters are.
    pub fn depends_on_params(&self) -> bool {
        let is_open = |column: &Column| {
            column.param.is_none() && matches!(column.ty.base, Base::Any | Base::Number | Base::Scalar)
        };
        let is_of_mysql = self.dialect == Dialect::Mysql && self.calculates_with_params;
        !self.params.is_empty() && (is_of_mysql || self.columns.iter().any(is_open))
    }

    /// The types of its parameters.
    pub fn params(&self) -> &[Type] {
        &self.params
    }

    /// Their names, with what stands before them (`:name`); empty for `?`.
    pub fn param_names(&self) -> &[String] {
        &self.param_names
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Which dialect it is in.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// What it says about the session, if it is about that: whoever holds the session does it.
    pub fn control(&self) -> Option<&Control> {
        match &self.work {
            Work::Control(control) => Some(control),
            _ => None,
        }
    }

    /// True if it may be run where a transaction has failed.
    pub fn ends_failure(&self) -> bool {
        matches!(
            self.work,
            Work::Control(Control::Commit { .. } | Control::Rollback { .. }) | Work::RollbackTo(_) | Work::Rollback
        )
    }

    /// True if it changes rows or the schema.
    pub fn writes(&self) -> bool {
        match &self.work {
            Work::Write(_) | Work::Schema(_) | Work::Accounts(_) => true,
            Work::Analyze(inner, _) => inner.writes(),
            _ => self.has_writes,
        }
    }

    /// True if it changes the schema.
    pub fn changes_schema(&self) -> bool {
        matches!(self.work, Work::Schema(_) | Work::Accounts(_))
    }

    /// What it says, if it changes the schema.
    pub(crate) fn schema(&self) -> Option<&ast::Statement> {
        match &self.work {
            Work::Schema(statement) => Some(statement),
            _ => None,
        }
    }

    /// True if it changes rows, or locks those that it finds.
    pub fn holds_rows(&self) -> bool {
        match &self.work {
            Work::Write(_) => true,
            Work::Query(query) => has_lock(&query.plan),
            _ => false,
        }
    }

    /// What it changes, if it changes rows.
    pub(crate) fn write(&self) -> Option<&Write> {
        match &self.work {
            Work::Write(write) => Some(write),
            _ => None,
        }
    }

    /// True if it looks at rows.
    pub fn is_query(&self) -> bool {
        matches!(self.work, Work::Query(_))
    }

    /// True if its plan is one of the schema as it is now.
    pub fn is_current(&self, database: &Database) -> bool {
        self.schema_version == database.catalog.schema_version()
    }

    /// True if it sets a savepoint.
    pub fn sets_savepoint(&self) -> bool {
        matches!(self.work, Work::Savepoint(_))
    }

    /// True if it gives rows.
    pub fn has_rows(&self) -> bool {
        match &self.work {
            Work::Control(control) => !control_columns(control).is_empty(),
            Work::Query(_) | Work::Explain(..) | Work::Analyze(..) => true,
            Work::Write(write) => !write.outputs().is_empty(),
            _ => false,
        }
    }
}

impl Sql {
    /// That of a database.
    pub fn of(database: &Database) -> Rc<Sql> {
        let kept = database.kept_by_sql.get_or_init(|| Rc::new(Sql::default()));
        Rc::clone(kept).downcast().unwrap_or_default()
    }

    /// Notes what a session of the database is for statements, until [`Sql::close_session`].
    pub fn open_session(&self, id: u64, session: Rc<Session>) {
        self.sessions.borrow_mut().insert(id, session);
    }

    /// That of a session of the database.
    pub fn session(&self, id: u64) -> Option<Rc<Session>> {
        self.sessions.borrow().get(&id).cloned()
    }

    /// That of a number, of PostgreSQL's clients.
    pub fn session_of_number(&self, number: u32) -> Option<Rc<Session>> {
        let sessions = self.sessions.borrow();
        sessions.values().find(|session| session.number == number && !session.is_mysql).cloned()
    }

    /// All of them.
    pub(crate) fn all_sessions(&self) -> Vec<Rc<Session>> {
        self.sessions.borrow().values().cloned().collect()
    }

    /// How many there are.
    pub(crate) fn session_count(&self) -> usize {
        self.sessions.borrow().len()
    }

    /// Locks that programs agree on.
    pub(crate) fn advisory(&self) -> Rc<crate::advisory::Advisory> {
        Rc::clone(&self.advisory)
    }

    /// It has ended. Its temporary tables wait for [`Sql::drop_left_tables`].
    pub fn close_session(&self, id: u64) {
        if let Some(session) = self.sessions.borrow_mut().remove(&id) {
            session.temporary.take().iter().for_each(|table| self.leave(table.id));
        }
        self.waiting.borrow_mut().retain(|waiting| waiting.session != id);
        self.advisory.forget(id);
    }
}

/// True for what changes the schema.
fn is_of_schema(statement: &ast::Statement) -> bool {
    use ast::Statement as S;
    matches!(
        statement,
        S::CreateTable(_)
            | S::CreateView(_)
            | S::CreateIndex(_)
            | S::AlterTable(_)
            | S::CreateSequence { .. }
            | S::AlterIndex { .. }
            | S::Comment { .. }
            | S::CreateType { .. }
            | S::AlterType(_)
            | S::DropDomain(_)
            | S::CreateSchema { .. }
            | S::AlterSchema(_)
            | S::Drop { .. }
            | S::Truncate(_)
    )
}

fn has_lock(plan: &Plan) -> bool {
    let is_here = matches!(plan, Plan::Scan(scan) if scan.lock.is_some());
    let mut has = is_here || plan.inputs().into_iter().any(has_lock);
    plan.own_expressions(&mut |expr| {
        expr.walk(&mut |part| {
            if let Expr::Subquery(subquery) = part {
                has = has || has_lock(&subquery.plan);
            }
        });
    });
    has
}

/// The columns of what a statement about the session answers.
fn control_columns(control: &Control) -> Vec<Column> {
    let column = |name: &str| Column::named(name, Type::TEXT);
    match control {
        Control::Show(Some(name)) => vec![column(name)],
        Control::Show(None) => vec![column("name"), column("setting"), column("description")],
        _ => Vec::new(),
    }
}

impl Value {
    /// The value as text, as a dialect writes it.
    pub fn display(&self, dialect: Dialect) -> String {
        display(dialect, self)
    }
}
