//! From a text to a prepared statement, and plans that are kept for texts that come again.

use super::explain::{explain_columns, explain_form};
use super::{Column, Parsed, Prepared, Sql, Work, control_columns, is_of_schema};
use crate::bind::Binder;
use crate::control::{self, Control};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::mysql::Said;
use crate::plan::Plan;
use crate::session::Session;
use crate::types::{Base, Type};
use crate::written::written;
use database::{Context, Database};
use sqlparser::ast;
use std::borrow::Cow;
use std::rc::Rc;

/// Plans that are kept for texts that come again.
pub const CACHE_MAX: usize = 1000;
/// Bytes of a text whose plan is kept.
const CACHED_TEXT_MAX: usize = 16 << 10;

/// A text that may be in the cache, without a copy of it.
#[derive(Hash)]
struct Wanted<'a>(Dialect, &'a str);

impl hashbrown::Equivalent<(Dialect, String)> for Wanted<'_> {
    fn equivalent(&self, key: &(Dialect, String)) -> bool {
        self.0 == key.0 && self.1 == key.1
    }
}

impl Sql {
    /// Takes a text apart into statements, which are prepared and run one after the other: the second may need what the first has made. Errors: `Syntax`.
    pub fn parse(&self, dialect: Dialect, text: &str) -> Result<Vec<Parsed>> {
        let mut statements = dialect.statements(text).map_err(|error| error.located(text))?;
        let count = statements.len();
        let parsed = statements.drain(..).map(|statement| {
            // A statement of several is prepared again by its own text.
            let text = match &statement {
                Said::Parsed(statement) if count > 1 => written(dialect, statement),
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
        let text = self.key_of(database, text);
        let known = cache.get(&Wanted(dialect, &text))?;
        (known.schema_version == database.catalog.schema_version()).then(|| Rc::clone(known))
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
        let key = (dialect, self.key_of(database, text).into_owned());
        let mut statements = dialect.statements(text).map_err(|error| error.located(text))?;
        let statement = match statements.len() {
            0 => return Err(Error::new(Condition::Empty, "Failed to execute an empty SQL statement")),
            1 => statements.remove(0),
            _ => {
                let what = "cannot insert multiple commands into a prepared statement";
                return Err(Error::new(Condition::Syntax, what));
            }
        };
        let bound = self.bind(database, dialect, text, statement, types);
        let prepared = Rc::new(
            bound.map_err(|error| error.located(text).with_type_names(database).freed_of_schemas(database, dialect))?,
        );
        if types.is_empty()
            && text.len() <= CACHED_TEXT_MAX
            && !matches!(prepared.work, Work::Schema(_) | Work::Accounts(_) | Work::Analyze(..))
            && !self.has_own_tables()
        {
            self.keep(key, &prepared);
        }
        Ok(prepared)
    }

    /// The statement with a plan of the schema as it is now. Errors: as [`Sql::prepare`].
    pub fn renewed(&self, database: &Database, context: &Context, prepared: &Rc<Prepared>) -> Result<Rc<Prepared>> {
        match prepared.is_current(database) {
            true => Ok(Rc::clone(prepared)),
            false => self.prepare(database, context, prepared.dialect, &prepared.text, &prepared.declared),
        }
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
        let bound = self.bind(database, dialect, &text, statement, types);
        let prepared =
            Rc::new(bound.map_err(|error| error.with_type_names(database).freed_of_schemas(database, dialect))?);
        if types.is_empty()
            && text.len() <= CACHED_TEXT_MAX
            && !matches!(prepared.work, Work::Schema(_) | Work::Accounts(_) | Work::Analyze(..))
            && !self.has_own_tables()
        {
            let key = self.key_of(database, &text).into_owned();
            self.keep((dialect, key), &prepared);
        }
        Ok(prepared)
    }

    /// What the plan of a text is kept by: those of sessions that are not in UTC are other ones, and so are those of another path.
    fn key_of<'t>(&self, database: &Database, text: &'t str) -> Cow<'t, str> {
        let Some(session) = self.speaking_session() else { return Cow::Borrowed(text) };
        match (session.is_zoned(), self.path_of(database, &session)) {
            (false, None) => Cow::Borrowed(text),
            (true, None) => Cow::Owned(format!("\0{text}")),
            (is_zoned, Some(path)) => Cow::Owned(format!("{path}\0{}\0{text}", u8::from(is_zoned))),
        }
    }

    /// What names mean to a session beside others. None: what they mean to most.
    fn path_of(&self, database: &Database, session: &Session) -> Option<String> {
        session.path_setting().or_else(|| {
            // Its own schema comes first, if there is one.
            let known = crate::schemas::all(database);
            if known.is_empty() || session.is_mysql {
                return None;
            }
            let user = session.user.borrow();
            known.iter().any(|schema| schema.name == *user).then(|| format!("$user {user}"))
        })
    }

    fn keep(&self, key: (Dialect, String), prepared: &Rc<Prepared>) {
        // A long path makes it longer.
        if key.1.len() > 2 * CACHED_TEXT_MAX {
            return;
        }
        let mut cache = self.cache.borrow_mut();
        if cache.len() >= CACHE_MAX {
            cache.clear();
        }
        cache.insert(key, Rc::clone(prepared));
    }

    fn bind(&self, database: &Database, dialect: Dialect, text: &str, said: Said, types: &[Type]) -> Result<Prepared> {
        let said = match said {
            Said::Parsed(mut statement) if dialect == Dialect::Postgres => {
                crate::schemas::resolve(database, &mut statement)?;
                Said::Parsed(statement)
            }
            other => other,
        };
        let binder = Binder::new(database, dialect);
        binder.declare_params(types);
        let mut columns = Vec::new();
        let mut counted = None;
        let (mut explained_params, mut about_accounts) = (None, None);
        let (statement, control) = match (said, dialect) {
            (Said::Parsed(statement), Dialect::Postgres) => {
                let control = control::of(database, dialect, &statement)?;
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
            ast::Statement::Merge(merge) if dialect == Dialect::Postgres => {
                Work::Write(Box::new(binder.bind_merge(&merge)?))
            }
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
        let labels = match &work {
            Work::Query(query) => &query.outputs[..],
            Work::Write(write) => write.outputs(),
            _ => &[],
        };
        let labels = labels.iter().enumerate().filter(|(_, output)| output.ty.has_labels());
        let labels = labels.map(|(at, output)| (at, output.ty)).collect();
        let (params, param_names) = explained_params.unwrap_or_else(|| binder.params());
        let schema_version = database.catalog.schema_version();
        Ok(Prepared {
            dialect,
            text: text.to_string(),
            schema_version,
            is_zoned: binder.is_zoned,
            work,
            columns,
            declared: types.to_vec(),
            params,
            param_names,
            counted,
            has_writes: binder.writes.get(),
            calculates_with_params: binder.calculates_with_params.get(),
            labels,
            sizes: binder.sizes(),
        })
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
    let ty = if binder.dialect == Dialect::Postgres { output.ty } else { output.ty.with_texts() };
    Column { name: output.name.clone(), ty, param, origin: binder.origin_of(output), collation, item }
}
