//! Statements: prepared once, run as often as one likes.

use crate::accounts::Accounts;
use crate::bind::{Binder, Origin, Query, Write};
use crate::cast::display;
use crate::change::{Counts, may_try_again};
use crate::control::{self, Control, Isolation};
use crate::ddl::Ddl;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::explain::Form;
use crate::expr::CollationOption;
use crate::measured::measured;
use crate::mysql::Said;
use crate::plan::Plan;
use crate::run::{Flow, Run};
use crate::selectivity::Selectivity;
use crate::session::Session;
use crate::shown_plans::Viewer;
use crate::types::{Base, Type};
use crate::value::Value;
use database::{Context, Database, TxnIsolation, TxnOptions};
use hashbrown::HashMap;
use sqlparser::ast;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Plans that are kept for texts that come again.
pub const CACHE_MAX: usize = 1000;
/// Bytes of a text whose plan is kept.
const CACHED_TEXT_MAX: usize = 16 << 10;
/// How often a statement that is a transaction of its own is tried.
const TRIES_MAX: u32 = 20;

/// Rows that are handed over when it is sure that they stand.
type Rows = Vec<Vec<Value>>;

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
    advisory: Rc<crate::advisory::Advisory>,
}

/// A text that may be in the cache, without a copy of it.
#[derive(Hash)]
struct Wanted<'a>(Dialect, &'a str);

impl hashbrown::Equivalent<(Dialect, String)> for Wanted<'_> {
    fn equivalent(&self, key: &(Dialect, String)) -> bool {
        self.0 == key.0 && self.1 == key.1
    }
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

    /// Finds out what a text says that is one statement. `types` are those of its parameters, as far as they are known.
    ///
    /// Errors: `Syntax`, `Empty`; names and types that do not fit; what is not there.
    pub fn prepare(
        &self,
        database: &Database,
        context: &Context,
        dialect: Dialect,
        text: &str,
        types: &[Type],
    ) -> Result<Rc<Prepared>> {
        self.speak(context);
        if types.is_empty()
            && let Some(known) = self.known(database, context, dialect, text)
        {
            return Ok(known);
        }
        let key = (dialect, text.to_string());
        let mut statements = dialect.statements(text)?;
        let statement = match statements.len() {
            0 => return Err(Error::new(Condition::Empty, "Failed to execute an empty SQL statement")),
            1 => statements.remove(0),
            _ => {
                let what = "a text of several statements is prepared one by one";
                return Err(Error::new(Condition::Syntax, what));
            }
        };
        let prepared = Rc::new(self.bind(database, dialect, text, statement, types)?);
        if types.is_empty()
            && text.len() <= CACHED_TEXT_MAX
            && !matches!(prepared.work, Work::Schema(_) | Work::Accounts(_) | Work::Analyze(..))
            && !self.has_own_tables()
        {
            self.keep(key, &prepared);
        }
        Ok(prepared)
    }

    fn bind(&self, database: &Database, dialect: Dialect, text: &str, said: Said, types: &[Type]) -> Result<Prepared> {
        let binder = Binder::new(database, dialect);
        binder.declare_params(types);
        let mut columns = Vec::new();
        let mut counted = None;
        let (mut explained_params, mut about_accounts) = (None, None);
        let (statement, control) = match (said, dialect) {
            (Said::Parsed(statement), Dialect::Postgres) => {
                let control = control::of(dialect, &statement)?;
                (statement, control)
            }
            (Said::Parsed(statement), _) => (statement, None),
            (Said::Counted(statement), _) => {
                if let ast::Statement::Query(query) = &statement {
                    let mut all = query.clone();
                    (all.limit_clause, all.order_by) = (None, None);
                    counted = Some(binder.bind_statement(&all)?.plan);
                }
                (statement, None)
            }
            (Said::Accounts(accounts), _) => {
                about_accounts = Some(accounts);
                (ast::Statement::Commit { chain: false, end: false, modifier: None }, None)
            }
            (Said::Control(control), _) => {
                (ast::Statement::Commit { chain: false, end: false, modifier: None }, Some(control))
            }
        };
        if let Some(Control::Assign(assignments)) = &control {
            for value in assignments.iter().filter_map(|assignment| assignment.value.as_ref()) {
                binder.bind_alone(value)?;
            }
        }
        if let Some(Control::Declare { query, .. }) = &control {
            // For its parameters.
            binder.bind_statement(query)?;
        }
        if let Some(control) = &control {
            columns = control_columns(control);
        }
        let work = match statement {
            _ if let Some(control) = control => Work::Control(control),
            _ if let Some(accounts) = about_accounts => Work::Accounts(accounts),
            ast::Statement::Query(query) if let Some(write) = binder.bind_with_write(&query)? => {
                Work::Write(Box::new(write))
            }
            ast::Statement::Query(query) => {
                let query = binder.bind_statement(&query)?;
                columns = query.outputs.iter().map(|output| column_of(&binder, output, &query.plan)).collect();
                Work::Query(Box::new(query))
            }
            ast::Statement::Insert(insert) => Work::Write(Box::new(binder.bind_insert(&insert)?)),
            ast::Statement::Update(update) => Work::Write(Box::new(binder.bind_update(&update)?)),
            ast::Statement::Delete(delete) => Work::Write(Box::new(binder.bind_delete(&delete)?)),
            ast::Statement::Explain { statement, analyze, format, options, .. } => {
                let (analyze, form) = explain_form(dialect, analyze, format.as_ref(), options.as_deref())?;
                let inner = self.bind(database, dialect, text, Said::Parsed(*statement), types)?;
                columns = explain_columns(dialect, form);
                // Its parameters are those of what it explains.
                explained_params = Some((inner.params.clone(), inner.param_names.clone()));
                inner.planned()?;
                match analyze {
                    true => Work::Analyze(Box::new(inner.measured()?), form),
                    false => Work::Explain(Box::new(inner), form),
                }
            }
            ast::Statement::Set(ast::Set::SingleAssignment {
                scope: Some(ast::ContextModifier::Session),
                variable,
                values,
                ..
            }) => match values.as_slice() {
                [ast::Expr::Value(value)] => {
                    Work::Setting(dialect.object_name(&variable)?, crate::execute::setting_of(&value.value)?)
                }
                _ => return Err(Error::new(Condition::Syntax, "a setting takes one literal")),
            },
            ast::Statement::StartTransaction { .. } => Work::Begin,
            ast::Statement::Commit { .. } => Work::Commit,
            ast::Statement::Rollback { savepoint: None, .. } => Work::Rollback,
            ast::Statement::Rollback { savepoint: Some(name), .. } => Work::RollbackTo(dialect.fold(&name)),
            ast::Statement::Savepoint { name } => Work::Savepoint(dialect.fold(&name)),
            ast::Statement::ReleaseSavepoint { name } => Work::Release(dialect.fold(&name)),
            schema if is_of_schema(&schema) => Work::Schema(Box::new(schema)),
            other => {
                let words: Vec<String> = other.to_string().split_whitespace().take(2).map(str::to_string).collect();
                return Err(Error::unsupported(format!("the statement '{} ...'", words.join(" "))));
            }
        };
        if let Work::Write(write) = &work {
            columns = write.outputs().iter().map(|output| column_of(&binder, output, &Plan::One)).collect();
        }
        let (params, param_names) = explained_params.unwrap_or_else(|| binder.params());
        let schema_version = database.catalog.schema_version();
        Ok(Prepared {
            dialect,
            text: text.to_string(),
            schema_version,
            work,
            columns,
            declared: types.to_vec(),
            params,
            param_names,
            counted,
            has_writes: binder.writes.get(),
            calculates_with_params: binder.calculates_with_params.get(),
            sizes: binder.sizes(),
        })
    }

    /// Runs a statement; its rows go to `sink`, one after the other. One that is in no transaction is a transaction of its own.
    ///
    /// May wait. Errors: those of its work; nothing of it stands then. A transaction around it goes on.
    pub fn run(
        &self,
        database: &Database,
        context: &Rc<Context>,
        prepared: &Rc<Prepared>,
        params: &[Value],
        sink: &mut dyn FnMut(&[Value]) -> Result<()>,
    ) -> Result<Outcome> {
        let again;
        let prepared = match prepared.schema_version == database.catalog.schema_version() {
            true => prepared,
            false => {
                again = self.prepare(database, context, prepared.dialect, &prepared.text, &prepared.declared)?;
                &again
            }
        };
        if params.len() < prepared.params.len() && prepared.dialect != Dialect::Tarantool {
            let what = format!("the statement has {} parameters, {} were given", prepared.params.len(), params.len());
            return Err(Error::new(Condition::InvalidArgument, what));
        }
        let padded: Vec<Value>;
        let params = match params.len() < prepared.params.len() {
            true => {
                // What is not given is null.
                padded =
                    params.iter().cloned().chain(std::iter::repeat(Value::Null)).take(prepared.params.len()).collect();
                &padded
            }
            false => params,
        };
        match &prepared.work {
            Work::Query(query) if prepared.has_writes => {
                let slots: Vec<usize> = query.outputs.iter().map(|output| output.slot).collect();
                let find = |run: &mut Run<'_>, rows: &mut Vec<Vec<Value>>| {
                    query.plan.run(run, &mut |run| {
                        let row = run.row(&slots);
                        run.take_row(&row)?;
                        rows.push(row);
                        Ok(Flow::On)
                    })?;
                    Ok(Counts { rows: rows.len() as u64, ..Counts::default() })
                };
                let counts = self.run_changes(database, context, prepared, params, false, &find, sink)?;
                Ok(Outcome { tag: "SELECT", counts })
            }
            Work::Query(query) => {
                let (is_short, has_lock) = (is_short(&query.plan), has_lock(&query.plan));
                let mut run = || self.run_query(database, context, prepared, query, params, sink);
                let rows = match context.is_in_txn() {
                    true if is_short || has_lock => run(),
                    true => database.at_one_moment(context, run),
                    false if is_short && !has_lock => run(),
                    false => self.in_txn(database, context, run),
                }?;
                Ok(Outcome { tag: "SELECT", counts: Counts { rows, ..Counts::default() } })
            }
            Work::Write(write) => self.run_write(database, context, prepared, write, params, sink),
            Work::Explain(inner, form) => {
                inner.check_viewer(database, context)?;
                let rows = inner.explained(*form, None)?;
                for row in &rows {
                    sink(row)?;
                }
                Ok(Outcome { tag: "EXPLAIN", counts: Counts { rows: rows.len() as u64, ..Counts::default() } })
            }
            Work::Analyze(inner, form) => {
                // A step that is not reached is shown, too.
                inner.check_viewer(database, context)?;
                let clock = &database.environment().clock;
                let start = clock.monotonic_ns();
                let mut nowhere = |_: &[Value]| Ok(());
                match &inner.work {
                    Work::Query(query) if !inner.has_writes => {
                        match context.is_in_txn() {
                            true => self.run_query(database, context, inner, query, params, &mut nowhere)?,
                            false => self.in_txn(database, context, || {
                                self.run_query(database, context, inner, query, params, &mut nowhere)
                            })?,
                        };
                    }
                    Work::Write(write) => {
                        self.run_write(database, context, inner, write, params, &mut nowhere)?;
                    }
                    _ => return Err(Error::unsupported("EXPLAIN ANALYZE of this statement")),
                }
                let rows = inner.explained(*form, Some(clock.monotonic_ns().saturating_sub(start)))?;
                for row in &rows {
                    sink(row)?;
                }
                Ok(Outcome { tag: "EXPLAIN", counts: Counts { rows: rows.len() as u64, ..Counts::default() } })
            }
            Work::Schema(statement) => {
                let ddl = Ddl { database, context, dialect: prepared.dialect };
                let is_temporary = self.is_temporary(database, context, prepared.dialect, statement);
                let hidden = match is_temporary && context.is_in_txn() {
                    true => self.hide(database, prepared.dialect, statement)?,
                    false => None,
                };
                let rows = match context.is_in_txn() {
                    // Its rows are found by the transaction that is open.
                    true if is_temporary && Ddl::makes_of_query(statement) => crate::views::run(&ddl, statement)?,
                    true if hidden.is_some() => hidden.unwrap_or_default(),
                    true if is_temporary => database
                        .beside(context, || self.in_txn(database, context, || crate::views::run(&ddl, statement)))?,
                    true => {
                        let run = Run::new(database, context, prepared.dialect, params, prepared.sizes);
                        database.lock_schema(context, run.lock_timeout_ns)?;
                        let was_at_once = context.look_at_once(true);
                        let done = self.in_savepoint(database, context, || crate::views::run(&ddl, statement));
                        context.look_at_once(was_at_once);
                        if done.is_err() {
                            // Who may change nothing keeps nobody from it.
                            database.unlock_schema(context);
                        }
                        done?
                    }
                    // Steps that look at all rows give others a turn, which no transaction does that has done something before.
                    false if Ddl::goes_in_steps(statement) => crate::views::run(&ddl, statement)?,
                    false => match self.in_txn(database, context, || {
                        if !is_temporary && database.has_locks() {
                            let run = Run::new(database, context, prepared.dialect, params, prepared.sizes);
                            database.lock_schema(context, run.lock_timeout_ns)?;
                        }
                        crate::views::run(&ddl, statement)
                    }) {
                        // Several changes, one of which has to look at more rows than it may at one go.
                        Err(error) if goes_beyond(&error, statement) => crate::views::run(&ddl, statement)?,
                        done => done?,
                    },
                };
                Ok(Outcome { tag: schema_tag(statement), counts: Counts { rows, ..Counts::default() } })
            }
            Work::Accounts(accounts) => {
                let run = || {
                    let session = self.session(context.session.id);
                    crate::accounts::run(accounts, database, context, prepared.dialect, session.as_deref())
                };
                match context.is_in_txn() {
                    true => self.in_savepoint(database, context, run)?,
                    false => self.in_txn(database, context, run)?,
                }
                Ok(Outcome { tag: accounts.tag, counts: Counts::default() })
            }
            Work::Setting(name, value) => {
                crate::execute::set(database, context, name, value)?;
                Ok(Outcome { tag: "SET", counts: Counts { rows: 1, ..Counts::default() } })
            }
            Work::Control(_) => Err(Error::unsupported("this statement where no session runs it")),
            control => self.run_control(database, context, control),
        }
    }

    /// Takes a text apart into statements, which are prepared and run one after the other: the second may need what the first has made. Errors: `Syntax`.
    pub fn parse(&self, dialect: Dialect, text: &str) -> Result<Vec<Parsed>> {
        let mut statements = dialect.statements(text)?;
        let count = statements.len();
        let parsed = statements.drain(..).map(|statement| {
            // A statement of several is prepared again by its own text.
            let text = match &statement {
                Said::Parsed(statement) if count > 1 => statement.to_string(),
                Said::Accounts(accounts) if count > 1 => accounts.text.clone(),
                Said::Control(Control::Fetch { name, step, is_move }) => crate::cursors::text_of(name, *step, *is_move),
                _ => text.to_string(),
            };
            Parsed { dialect, text, statement }
        });
        Ok(parsed.collect())
    }

    /// The plan that is kept for a text, if it is still good.
    pub fn known(&self, database: &Database, context: &Context, dialect: Dialect, text: &str) -> Option<Rc<Prepared>> {
        self.speak(context);
        if self.has_own_tables() {
            // Names may mean something else.
            return None;
        }
        let cache = self.cache.borrow();
        let known = cache.get(&Wanted(dialect, text))?;
        (known.schema_version == database.catalog.schema_version()).then(|| Rc::clone(known))
    }

    /// Prepares one of them. Errors: as [`Sql::prepare`].
    pub fn prepare_parsed(
        &self,
        database: &Database,
        context: &Context,
        parsed: Parsed,
        types: &[Type],
    ) -> Result<Rc<Prepared>> {
        self.speak(context);
        let Parsed { dialect, text, statement } = parsed;
        let prepared = Rc::new(self.bind(database, dialect, &text, statement, types)?);
        if types.is_empty()
            && text.len() <= CACHED_TEXT_MAX
            && !matches!(prepared.work, Work::Schema(_) | Work::Accounts(_) | Work::Analyze(..))
            && !self.has_own_tables()
        {
            self.keep((dialect, text), &prepared);
        }
        Ok(prepared)
    }

    fn keep(&self, key: (Dialect, String), prepared: &Rc<Prepared>) {
        let mut cache = self.cache.borrow_mut();
        if cache.len() >= CACHE_MAX {
            cache.clear();
        }
        cache.insert(key, Rc::clone(prepared));
    }

    /// Runs an INSERT of a transaction that is taken back as a whole if it fails: rows that a client loads. Returns how many rows it has
    /// changed. Errors: as [`Sql::run`].
    pub fn load(
        &self,
        database: &Database,
        context: &Rc<Context>,
        prepared: &Rc<Prepared>,
        params: &[Value],
    ) -> Result<u64> {
        let Work::Write(write) = &prepared.work else { return Err(Error::unsupported("loading by this statement")) };
        if !prepared.is_current(database) {
            return Err(Error::new(Condition::Serialization, "the table was changed while rows were loaded"));
        }
        let mut run = Run::new(database, context, prepared.dialect, params, prepared.sizes);
        write.run(&mut run, &mut |_| Ok(Flow::On)).map(|counts| counts.rows)
    }

    /// Carries out SET of MySQL's dialect. Returns the names of the system variables that have changed. Errors: those of the values; a variable that is not
    /// there or cannot be changed.
    pub fn assign(
        &self,
        database: &Database,
        context: &Rc<Context>,
        session: &Session,
        assignments: &[control::Assignment],
        params: &[Value],
    ) -> Result<Vec<String>> {
        let mut changed = Vec::new();
        for assignment in assignments {
            let value = match &assignment.value {
                Some(expr) => Some(self.evaluate_with(database, context, expr, params)?),
                None => None,
            };
            changed.extend(crate::mysql::variables::assign(session, assignment, value)?);
        }
        if changed.iter().any(|name| name == "foreign_key_checks") {
            context.skip_foreign_keys(
                session.changed_to("foreign_key_checks").is_some_and(|value| value == "OFF" || value == "0"),
            );
        }
        Ok(changed)
    }

    /// The value of an expression of MySQL's dialect without rows. Errors: those of the expression.
    pub fn evaluate(&self, database: &Database, context: &Rc<Context>, expr: &ast::Expr) -> Result<Value> {
        self.evaluate_with(database, context, expr, &[])
    }

    fn evaluate_with(
        &self,
        database: &Database,
        context: &Rc<Context>,
        expr: &ast::Expr,
        params: &[Value],
    ) -> Result<Value> {
        self.speak(context);
        let binder = Binder::new(database, Dialect::Mysql);
        let expr = binder.bind_alone(expr)?;
        let mut run = Run::new(database, context, Dialect::Mysql, params, binder.sizes());
        expr.eval(&mut run)
    }

    /// Opens a transaction of a client. Errors: one is open.
    pub fn begin(&self, database: &Database, context: &Rc<Context>, isolation: Isolation) -> Result<()> {
        let options = match isolation {
            Isolation::ReadCommitted => {
                TxnOptions { isolation: TxnIsolation::ReadCommitted, forgets_reads: true, ..TxnOptions::default() }
            }
            Isolation::Serializable => TxnOptions::default(),
        };
        Ok(database.begin_with(context, options)?)
    }

    fn run_control(&self, database: &Database, context: &Rc<Context>, control: &Work) -> Result<Outcome> {
        let none =
            |what: &str| Error::new(Condition::TransactionState, format!("cannot {what} - no transaction is active"));
        let tag = match control {
            Work::Begin if context.is_in_txn() => {
                let what = "cannot start a transaction within a transaction";
                return Err(Error::new(Condition::TransactionState, what));
            }
            Work::Begin => {
                database.begin(context)?;
                "BEGIN"
            }
            Work::Commit => {
                if !context.is_in_txn() {
                    return Err(none("commit"));
                }
                database.commit(context)?;
                "COMMIT"
            }
            Work::Rollback => {
                if !context.is_in_txn() {
                    return Err(none("rollback"));
                }
                database.rollback(context)?;
                "ROLLBACK"
            }
            Work::Savepoint(name) => {
                if !context.is_in_txn() {
                    return Err(none("set a savepoint"));
                }
                database.savepoint(context, Some(name))?;
                "SAVEPOINT"
            }
            Work::RollbackTo(name) => {
                let savepoint = database.named_savepoint(context, name);
                let Some(savepoint) = savepoint else {
                    return Err(Error::new(Condition::UndefinedSavepoint, format!("no such savepoint: {name}")));
                };
                database.rollback_to_savepoint(context, &savepoint)?;
                database.forget_behind(context, name);
                "ROLLBACK"
            }
            Work::Release(name) => {
                if !database.release_savepoint(context, name) {
                    return Err(Error::new(Condition::UndefinedSavepoint, format!("no such savepoint: {name}")));
                }
                "RELEASE"
            }
            _ => "",
        };
        Ok(Outcome { tag, counts: Counts::default() })
    }

    /// Runs work in a transaction of its own: all of it stands in the end, or nothing.
    pub(crate) fn in_txn<T>(
        &self,
        database: &Database,
        context: &Rc<Context>,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        database.begin(context)?;
        let done = work();
        match done {
            Ok(done) => {
                if let Err(error) = database.commit(context) {
                    if context.is_in_txn() {
                        database.abandon(context);
                    }
                    return Err(error.into());
                }
                Ok(done)
            }
            Err(error) => {
                database.abandon(context);
                Err(error)
            }
        }
    }

    /// Runs work in the open transaction: if it fails, what it did is taken back.
    fn in_savepoint<T>(
        &self,
        database: &Database,
        context: &Rc<Context>,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let savepoint = database.savepoint(context, None)?;
        let done = work();
        if done.is_err() && context.is_in_txn() {
            // A transaction that another one has ended has nothing to be taken back.
            let _ = database.rollback_to_savepoint(context, &savepoint);
        }
        done
    }

    fn run_query(
        &self,
        database: &Database,
        context: &Rc<Context>,
        prepared: &Prepared,
        query: &Query,
        params: &[Value],
        sink: &mut dyn FnMut(&[Value]) -> Result<()>,
    ) -> Result<u64> {
        let mut run = Run::new(database, context, prepared.dialect, params, prepared.sizes);
        let slots: Vec<usize> = query.outputs.iter().map(|output| output.slot).collect();
        let mut row = Vec::with_capacity(slots.len());
        let mut count = 0;
        query.plan.run(&mut run, &mut |run| {
            row.clear();
            row.extend(slots.iter().map(|slot| run.frame[*slot].clone()));
            count += 1;
            sink(&row)?;
            Ok(Flow::On)
        })?;
        if let Some(session) = run.session.clone().filter(|session| session.is_mysql) {
            session.found_rows.set(match &prepared.counted {
                None => count,
                Some(plan) => {
                    let mut found = 0;
                    plan.run(&mut run, &mut |_| {
                        found += 1;
                        Ok(Flow::On)
                    })?;
                    found
                }
            });
        }
        Ok(count)
    }

    fn run_write(
        &self,
        database: &Database,
        context: &Rc<Context>,
        prepared: &Prepared,
        write: &Write,
        params: &[Value],
        sink: &mut dyn FnMut(&[Value]) -> Result<()>,
    ) -> Result<Outcome> {
        let tag = match &write.change {
            crate::bind::Change::Insert { .. } => "INSERT",
            crate::bind::Change::Update { .. } => "UPDATE",
            crate::bind::Change::Delete { .. } => "DELETE",
        };
        let slots: Vec<usize> = write.outputs().iter().map(|output| output.slot).collect();
        let change = |run: &mut Run<'_>, rows: &mut Vec<Vec<Value>>| {
            write.run(run, &mut |run| {
                let row = run.row(&slots);
                run.take_row(&row)?;
                rows.push(row);
                Ok(Flow::On)
            })
        };
        let counts = self.run_changes(database, context, prepared, params, write.is_alone(), &change, sink)?;
        Ok(Outcome { tag, counts })
    }

    /// Runs what changes rows and gives some: all of it stands in the end, or nothing. `is_alone` says that it is one change of one row.
    #[expect(clippy::too_many_arguments, reason = "what every statement is run with")]
    fn run_changes(
        &self,
        database: &Database,
        context: &Rc<Context>,
        prepared: &Prepared,
        params: &[Value],
        is_alone: bool,
        change: &dyn Fn(&mut Run<'_>, &mut Rows) -> Result<Counts>,
        sink: &mut dyn FnMut(&[Value]) -> Result<()>,
    ) -> Result<Counts> {
        // A transaction of the client's own goes on, and others with it.
        let is_theirs = context.is_in_txn();
        let attempt = |rows: &mut Vec<Vec<Value>>| {
            let mut run = Run::new(database, context, prepared.dialect, params, prepared.sizes);
            run.locks_changed =
                prepared.dialect != Dialect::Tarantool && context.is_in_txn() && (is_theirs || database.has_locks());
            change(&mut run, rows)
        };
        // Rows are handed over when it is sure that they stand.
        let mut rows = Vec::new();
        let counts = if context.is_in_txn() {
            self.in_savepoint(database, context, || attempt(&mut rows))?
        } else if is_alone && !database.has_locks() {
            attempt(&mut rows)?
        } else {
            let mut tries = 0;
            loop {
                rows.clear();
                match self.in_txn(database, context, || attempt(&mut rows)) {
                    Err(error) if may_try_again(&error) && tries < TRIES_MAX => tries += 1,
                    done => break done?,
                }
            }
        };
        for row in &rows {
            sink(row)?;
        }
        Ok(counts)
    }
}

fn column_of(binder: &Binder<'_>, output: &crate::bind::Output, plan: &Plan) -> Column {
    let mut param = None;
    if output.ty.base == Base::Any
        && let Plan::Map(_, columns) = plan
        && let Some((_, crate::expr::Expr::Param(number))) = columns.iter().find(|(slot, _)| *slot == output.slot)
    {
        param = Some(*number);
    }
    let (collation, item) = (output.collation.clone(), output.item);
    Column { name: output.name.clone(), ty: output.ty, param, origin: binder.origin_of(output), collation, item }
}

/// True if the rows of a plan are found at one go: one by its key, or none of a table.
fn is_short(plan: &Plan) -> bool {
    match plan {
        Plan::One | Plan::Nothing | Plan::Rows(..) => true,
        Plan::Scan(scan) => scan.is_unique && !scan.table.space.rows.may_wait(),
        Plan::Map(input, _) | Plan::Filter(input, _) | Plan::Limit { input, .. } => is_short(input),
        _ => false,
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
            | S::Drop { .. }
            | S::Truncate(_)
    )
}

fn goes_beyond(error: &Error, statement: &ast::Statement) -> bool {
    let is_refused =
        error.body().source.as_ref().is_some_and(|source| source.is(database::ErrorCode::MultistatementTransaction));
    is_refused && matches!(statement, ast::Statement::AlterTable(_))
}

fn has_lock(plan: &Plan) -> bool {
    match plan {
        Plan::Scan(scan) => scan.lock.is_some(),
        Plan::Map(input, _) | Plan::Filter(input, _) | Plan::Limit { input, .. } => has_lock(input),
        plan => plan.inputs().into_iter().any(has_lock),
    }
}

fn schema_tag(statement: &ast::Statement) -> &'static str {
    match statement {
        ast::Statement::CreateTable(_) => "CREATE TABLE",
        ast::Statement::CreateView(_) => "CREATE VIEW",
        ast::Statement::CreateIndex(_) => "CREATE INDEX",
        ast::Statement::AlterTable(alter) if crate::ddl::is_alter_sequence(alter) => "ALTER SEQUENCE",
        ast::Statement::AlterTable(_) => "ALTER TABLE",
        ast::Statement::Truncate(_) => "TRUNCATE TABLE",
        ast::Statement::CreateSequence { .. } => "CREATE SEQUENCE",
        ast::Statement::AlterIndex { .. } => "ALTER INDEX",
        ast::Statement::Comment { .. } => "COMMENT",
        ast::Statement::Drop { object_type: ast::ObjectType::Sequence, .. } => "DROP SEQUENCE",
        ast::Statement::Drop { object_type: ast::ObjectType::Index, .. } => "DROP INDEX",
        ast::Statement::Drop { object_type: ast::ObjectType::View, .. } => "DROP VIEW",
        _ => "DROP TABLE",
    }
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

/// What EXPLAIN is asked for: whether to run the statement, and the form of the answer. Errors: another form.
fn explain_form(
    dialect: Dialect,
    analyze: bool,
    format: Option<&ast::AnalyzeFormatKind>,
    options: Option<&[ast::UtilityOption]>,
) -> Result<(bool, Form)> {
    let mut analyze = analyze;
    let mut name = format.map(|format| match format {
        ast::AnalyzeFormatKind::Keyword(format) | ast::AnalyzeFormatKind::Assignment(format) => format.to_string(),
    });
    for option in options.unwrap_or_default() {
        let value = option.arg.as_ref().map(|arg| arg.to_string().trim_matches('\'').to_lowercase());
        let is_on = !matches!(value.as_deref(), Some("false" | "off" | "0"));
        match option.name.value.to_ascii_lowercase().as_str() {
            "analyze" => analyze = is_on,
            "format" => name = value,
            "verbose" | "costs" | "settings" | "buffers" | "wal" | "timing" | "summary" => {}
            other => {
                let what = format!("unrecognized EXPLAIN option \"{other}\"");
                return Err(Error::new(Condition::Syntax, what));
            }
        }
    }
    let form = match (name.map(|name| name.to_ascii_lowercase()).as_deref(), dialect) {
        (Some("json"), _) => Form::Json,
        (Some("tree"), Dialect::Mysql) => Form::Tree,
        (Some("text"), Dialect::Postgres) => Form::Text,
        (None, Dialect::Mysql) if analyze => Form::Tree,
        (None | Some("traditional"), Dialect::Mysql) => Form::Table,
        (None, _) => Form::Text,
        (Some(other), _) => return Err(Error::unsupported(format!("EXPLAIN in the form '{other}'"))),
    };
    Ok((analyze, form))
}

fn explain_columns(dialect: Dialect, form: Form) -> Vec<Column> {
    let column = |name: &str, base: Base| Column::named(name, Type::of(base));
    match dialect {
        Dialect::Tarantool => vec![
            column("selectid", Base::Integer),
            column("order", Base::Integer),
            column("from", Base::Integer),
            column("detail", Base::Text),
        ],
        Dialect::Mysql if form == Form::Table => {
            crate::explain::TABLE_COLUMNS.iter().map(|(name, base)| column(name, *base)).collect()
        }
        Dialect::Mysql => vec![column("EXPLAIN", Base::Text)],
        Dialect::Postgres if form == Form::Json => {
            vec![Column::named("QUERY PLAN", Type::json(false))]
        }
        Dialect::Postgres => vec![column("QUERY PLAN", Base::Text)],
    }
}

impl Prepared {
    /// Its plan. Errors: it has none.
    fn planned(&self) -> Result<&Plan> {
        match &self.work {
            Work::Query(query) => Ok(&query.plan),
            Work::Write(write) => Ok(write.source()),
            _ => Err(Error::unsupported("EXPLAIN of a statement without a plan")),
        }
    }

    /// Checks that its plan may be shown. Errors: `AccessDenied`.
    fn check_viewer(&self, database: &Database, context: &Context) -> Result<()> {
        let viewer = Viewer { database, context };
        match &self.work {
            Work::Write(write) => viewer.check_write(write),
            _ => viewer.check_plan(self.planned()?),
        }
    }

    /// The rows of EXPLAIN. Errors: a statement that has no plan.
    fn explained(&self, form: Form, total_ns: Option<u64>) -> Result<Vec<Vec<Value>>> {
        let plan = self.planned()?;
        if form == Form::Table {
            return Ok(crate::explain::as_table(plan));
        }
        let lines = crate::explain::explain(plan);
        if self.dialect == Dialect::Tarantool {
            let row = |(number, line): (usize, crate::explain::Line)| {
                vec![Value::Int(0), Value::Int(number as i64), Value::Int(line.depth as i64), Value::text(line.text)]
            };
            return Ok(lines.into_iter().enumerate().map(row).collect());
        }
        if form == Form::Json {
            return Ok(vec![vec![Value::text(crate::explain::as_json(&lines, total_ns))]]);
        }
        let texts = crate::explain::as_text(&lines, form, total_ns);
        if self.dialect == Dialect::Mysql {
            return Ok(vec![vec![Value::text(texts.join("\n"))]]);
        }
        Ok(texts.into_iter().map(|text| vec![Value::text(text)]).collect())
    }

    /// The same statement with steps that count. Errors: it has none.
    fn measured(mut self) -> Result<Prepared> {
        match &mut self.work {
            Work::Query(query) => {
                query.plan = measured(std::mem::replace(&mut query.plan, Plan::Nothing));
            }
            Work::Write(write) => write.within(measured),
            _ => return Err(Error::unsupported("EXPLAIN ANALYZE of a statement without a plan")),
        }
        Ok(self)
    }
}

impl Value {
    /// The value as text, as a dialect writes it.
    pub fn display(&self, dialect: Dialect) -> String {
        display(dialect, self)
    }
}
