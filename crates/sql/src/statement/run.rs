//! Running a prepared statement: rows that are found, changed or loaded, changes of the schema, SET of MySQL's dialect.

use super::{Outcome, Prepared, Sql, Work, has_lock};
use crate::bind::{Binder, Query, Write};
use crate::change::{Counts, may_try_again};
use crate::control::{self, Isolation};
use crate::ddl::Ddl;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::plan::Plan;
use crate::run::{Flow, Run};
use crate::session::Session;
use crate::value::Value;
use database::{Context, Database};
use sqlparser::ast;
use std::rc::Rc;

/// How often a statement that is a transaction of its own is tried.
const TRIES_MAX: u32 = 20;

/// Rows that are handed over when it is sure that they stand.
type Rows = Vec<Vec<Value>>;

impl Sql {
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
        self.run_prepared(database, context, prepared, params, sink)
            .map_err(|error| error.with_type_names(database).freed_of_schemas(database, prepared.dialect))
    }

    fn run_prepared(
        &self,
        database: &Database,
        context: &Rc<Context>,
        prepared: &Rc<Prepared>,
        params: &[Value],
        sink: &mut dyn FnMut(&[Value]) -> Result<()>,
    ) -> Result<Outcome> {
        let again;
        self.speak(context);
        let is_current = prepared.schema_version == database.catalog.schema_version()
            && (prepared.dialect == Dialect::Tarantool || prepared.is_zoned == self.is_zoned());
        let prepared = match is_current {
            true => prepared,
            false => {
                again = self.prepare(database, context, prepared.dialect, &prepared.text, &prepared.declared)?;
                &again
            }
        };
        let mut with_texts = |row: &[Value]| {
            let mut row = row.to_vec();
            for (at, ty) in &prepared.labels {
                let value = std::mem::take(&mut row[*at]);
                row[*at] = crate::user_types::labelled(database, value, *ty);
            }
            sink(&row)
        };
        let sink: &mut dyn FnMut(&[Value]) -> Result<()> = match prepared.labels.is_empty() {
            true => sink,
            false => &mut with_texts,
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
                let run = Run::new(database, context, prepared.dialect, params, prepared.sizes);
                context.set_deadline(run.deadline_ns());
                let rows = self.run_schema(database, context, prepared, statement, run.lock_timeout_ns);
                context.set_deadline(None);
                Ok(Outcome { tag: schema_tag(statement), counts: Counts { rows: rows?, ..Counts::default() } })
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

    /// Carries out a change of the schema. Returns the number of objects that were changed. Errors: those of its work.
    fn run_schema(
        &self,
        database: &Database,
        context: &Rc<Context>,
        prepared: &Prepared,
        statement: &ast::Statement,
        lock_timeout_ns: Option<u64>,
    ) -> Result<u64> {
        let ddl = Ddl { database, context, dialect: prepared.dialect };
        let is_temporary = self.is_temporary(database, context, prepared.dialect, statement);
        let hidden = match is_temporary && context.is_in_txn() {
            true => self.hide(database, prepared.dialect, statement)?,
            false => None,
        };
        Ok(match context.is_in_txn() {
            // Its rows are found by the transaction that is open.
            true if is_temporary && Ddl::makes_of_query(statement) => crate::views::run(&ddl, statement)?,
            true if hidden.is_some() => hidden.unwrap_or_default(),
            true if is_temporary => {
                database.beside(context, || self.in_txn(database, context, || crate::views::run(&ddl, statement)))?
            }
            true => {
                database.lock_schema(context, lock_timeout_ns)?;
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
                    database.lock_schema(context, lock_timeout_ns)?;
                }
                crate::views::run(&ddl, statement)
            }) {
                // Several changes, one of which has to look at more rows than it may at one go.
                Err(error) if goes_beyond(&error, statement) => crate::views::run(&ddl, statement)?,
                done => done?,
            },
        })
    }

    /// Runs an INSERT of a transaction that is taken back as a whole if it fails: rows that a client loads. Returns how many rows it has
    /// changed. Errors: as [`Sql::run`]; the schema is another one than that of the plan.
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
            // A value may stand in it many times; whoever takes it makes copies.
            let before = run.held();
            run.hold(row.iter().map(Value::weight).sum::<usize>() * 2)?;
            sink(&row)?;
            run.hold_again(before);
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
            crate::bind::Change::Merge { .. } => "MERGE",
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

    /// True if a statement by itself may see what others commit while it runs.
    fn reads_what_is_committed(&self, prepared: &Prepared, context: &Context) -> bool {
        let session = self.session(context.session.id);
        prepared.dialect != Dialect::Tarantool
            && session.is_none_or(|session| session.isolation() == Isolation::ReadCommitted)
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
        let attempt = |rows: &mut Vec<Vec<Value>>, has_met_others: bool| {
            let mut run = Run::new(database, context, prepared.dialect, params, prepared.sizes);
            let is_locking = is_theirs || has_met_others || database.has_locks();
            run.locks_changed = prepared.dialect != Dialect::Tarantool && context.is_in_txn() && is_locking;
            change(&mut run, rows)
        };
        // Rows are handed over when it is sure that they stand.
        let mut rows = Vec::new();
        let mut alone = None;
        if is_alone && !is_theirs && !database.has_locks() {
            let mut run = Run::new(database, context, prepared.dialect, params, prepared.sizes).without_txn();
            match change(&mut run, &mut rows) {
                Err(_) if run.wants_txn() => {}
                done => alone = Some(done?),
            }
        }
        let counts = if context.is_in_txn() {
            self.in_savepoint(database, context, || attempt(&mut rows, false))?
        } else if let Some(counts) = alone {
            counts
        } else {
            let mut tries = 0;
            loop {
                rows.clear();
                // One that looks at many rows would meet those who change some of them each time: it locks its rows from its second try on, and has them wait.
                let has_met_others = tries > 0 && self.reads_what_is_committed(prepared, context);
                let level = if has_met_others { Isolation::ReadCommitted } else { Isolation::Serializable };
                match self.in_txn_of(database, context, level, || attempt(&mut rows, has_met_others)) {
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

/// True if the rows of a plan are found at one go: one by its key, or none of a table.
fn is_short(plan: &Plan) -> bool {
    match plan {
        Plan::One | Plan::Nothing | Plan::Rows(..) => true,
        Plan::Scan(scan) => scan.is_unique && !scan.table.space.rows.may_wait(),
        Plan::Map(input, _) | Plan::Filter(input, _) | Plan::Limit { input, .. } => is_short(input),
        _ => false,
    }
}

fn goes_beyond(error: &Error, statement: &ast::Statement) -> bool {
    let is_refused =
        error.body().source.as_ref().is_some_and(|source| source.is(database::ErrorCode::MultistatementTransaction));
    is_refused && matches!(statement, ast::Statement::AlterTable(_) | ast::Statement::CreateIndex(_))
}

fn schema_tag(statement: &ast::Statement) -> &'static str {
    match statement {
        ast::Statement::CreateTable(create) if crate::user_types::is_domain(create) => "CREATE DOMAIN",
        ast::Statement::CreateTable(_) => "CREATE TABLE",
        ast::Statement::CreateType { .. } => "CREATE TYPE",
        ast::Statement::AlterType(_) => "ALTER TYPE",
        ast::Statement::DropDomain(_) => "DROP DOMAIN",
        ast::Statement::Drop { object_type: ast::ObjectType::Type, .. } => "DROP TYPE",
        ast::Statement::CreateSchema { .. } => "CREATE SCHEMA",
        ast::Statement::AlterSchema(_) => "ALTER SCHEMA",
        ast::Statement::Drop { object_type: ast::ObjectType::Schema, .. } => "DROP SCHEMA",
        ast::Statement::CreateView(_) => "CREATE VIEW",
        ast::Statement::CreateIndex(_) => "CREATE INDEX",
        ast::Statement::AlterTable(alter) if crate::ddl::is_alter_sequence(alter) => "ALTER SEQUENCE",
        ast::Statement::AlterTable(alter) => crate::user_types::altered(alter).unwrap_or("ALTER TABLE"),
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
