//! Views: queries with a name.
//!
//! As Tarantool keeps them: a space without indexes whose options say `view = true` and `sql = 'CREATE VIEW ...'`; its format has the columns as they were
//! when the view was made. The dialect stands before the text, as a comment. A statement that names a view gets its query in its place. Who reads it needs
//! the right to read the view; what the view reads, it reads with the rights of its owner ([`OwnedRows`]).

use crate::bind::Binder;
use crate::ddl::Ddl;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::plan::Plan;
use crate::run::{Flow, Run, Sink};
use crate::table::Table;
use crate::types::{Base, Type};
use crate::written::written;
use database::{Database, Operation, Privileges, SPACE_ID, Space};
use sqlparser::ast::{self, VisitMut, VisitorMut};
use std::ops::ControlFlow;
use std::rc::Rc;
use tuple::IndexId;
use tuple::msgpack::{self, Reader};

/// Views within views.
pub const DEPTH_MAX: usize = 32;

/// What is kept of a view.
pub(crate) struct SavedView {
    pub(crate) dialect: Dialect,
    /// `CREATE VIEW ...`, in its dialect.
    pub(crate) text: String,
    /// The names of its columns.
    pub(crate) columns: Vec<String>,
}

/// The mark of a dialect before a view's text.
fn mark_of(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Tarantool => "",
        Dialect::Postgres => "/* postgres */ ",
        Dialect::Mysql => "/* mysql */ ",
    }
}

/// The text of a view as it is kept.
pub(crate) fn marked(dialect: Dialect, text: &str) -> String {
    format!("{}{text}", mark_of(dialect))
}

/// The view that a space is; none if it is something else.
pub(crate) fn of(database: &Database, space: &Space) -> Option<SavedView> {
    // Whatever has rows has a primary index.
    if !space.index_defs().is_empty() || space.is_system() {
        return None;
    }
    let mut key = Vec::new();
    msgpack::encode_uint(&mut key, u64::from(space.id.0));
    let spaces = database.space(SPACE_ID).ok()?;
    let row = spaces.rows.memory()?.borrow().get(IndexId::PRIMARY, &key, 1)?;
    let mut options = Reader::new(row.field(5)?);
    let (mut is_view, mut text) = (false, None);
    for _ in 0..options.read_map().ok()? {
        let name = options.read_str().ok()?;
        let value = options.read_value().ok()?;
        match name {
            b"view" => is_view = Reader::new(value).read_bool() == Ok(true),
            b"sql" => text = Reader::new(value).read_str().ok().and_then(|text| std::str::from_utf8(text).ok()),
            _ => {}
        }
    }
    let text = text.filter(|_| is_view)?;
    let marked = [Dialect::Postgres, Dialect::Mysql]
        .into_iter()
        .find_map(|dialect| text.strip_prefix(mark_of(dialect)).map(|text| (dialect, text)));
    let (dialect, text) = marked.unwrap_or((Dialect::Tarantool, text));
    let columns = space.def().fields.iter().map(|field| field.name.clone()).collect();
    Some(SavedView { dialect, text: text.to_string(), columns })
}

impl SavedView {
    /// Its query. Errors: the text is none.
    pub(crate) fn query(&self) -> Result<ast::Query> {
        match self.dialect.parse(&self.text)?.into_iter().next() {
            Some(ast::Statement::CreateView(create)) => Ok(*create.query),
            _ => Err(Error::new(Condition::Syntax, "the text of the view is no CREATE VIEW")),
        }
    }
}

impl SavedView {
    /// Its query, with schemas before the names of tables and views that are not found without to the session that speaks. Errors: the text is none.
    pub(crate) fn query_shown(&self, database: &Database) -> Result<String> {
        let mut query = self.query()?;
        let is_plain =
            crate::schemas::all(database).is_empty() && crate::schemas::path(database).iter().any(Option::is_none);
        if !is_plain && self.dialect == Dialect::Postgres {
            let own = query.with.iter().flat_map(|with| &with.cte_tables);
            let own = own.map(|table| self.dialect.fold(&table.alias.name)).collect();
            let mut qualified = Qualified { database, dialect: self.dialect, own };
            let visit = || {
                let _ = VisitMut::visit(&mut query, &mut qualified);
            };
            let no_memory = |error| Error::new(Condition::OutOfMemory, format!("no memory for a stack: {error}"));
            runtime::on_large_stack(visit).map_err(no_memory)?;
        }
        Ok(written(self.dialect, &query))
    }
}

/// Puts a schema before the names of tables that have none.
struct Qualified<'a> {
    database: &'a Database,
    dialect: Dialect,
    /// The tables of WITH, which have none.
    own: Vec<String>,
}

impl Qualified<'_> {
    /// The schema that stands in a name before a column, which only one has that tells two tables of one name apart.
    fn schema_of(&self, name: &str) -> Option<(String, String)> {
        if let Some(local) = name.strip_prefix("public.") {
            return Some(("public".to_string(), local.to_string()));
        }
        let (schema, local) = crate::schemas::split(self.database, name);
        Some((schema?.name.clone(), local.to_string()))
    }

    /// A name of the catalog as it is shown.
    fn show(&self, name: &mut ast::ObjectName) {
        let [ast::ObjectNamePart::Identifier(ident)] = name.0.as_slice() else { return };
        let folded = self.dialect.fold(ident);
        let is_of_schema = crate::schemas::split(self.database, &folded).0.is_some();
        if is_of_schema || !self.own.contains(&folded) && self.database.catalog.space_by_name(&folded).is_some() {
            let part = |name: String| {
                let style = (crate::catalog::quoted(&name) != name).then_some('"');
                ast::ObjectNamePart::Identifier(ast::Ident { quote_style: style, ..ast::Ident::new(name) })
            };
            name.0 = crate::schemas::shown_parts(self.database, &folded).into_iter().map(part).collect();
        }
    }
}

impl VisitorMut for Qualified<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &mut ast::TableFactor) -> ControlFlow<()> {
        if let ast::TableFactor::Table { name, args: None, .. } = table {
            self.show(name);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        if let ast::Expr::CompoundIdentifier(parts) = expr
            && let [table, _] = parts.as_slice()
            && let Some((schema, local)) = self.schema_of(&table.value)
        {
            parts.splice(0..1, [ast::Ident::with_quote('"', schema), ast::Ident::with_quote('"', local)]);
        }
        if let ast::Expr::Cast { data_type: ast::DataType::Custom(name, _), .. } = expr {
            self.show(name);
        }
        ControlFlow::Continue(())
    }
}

/// A step whose rows are found with the rights of another user: the owner of a view.
pub(crate) struct OwnedRows {
    pub(crate) input: Plan,
    /// The view, which is asked whether it may be read.
    pub(crate) space: Rc<Space>,
}

impl OwnedRows {
    /// Hands the rows on, to steps with the rights of whoever runs the statement. Errors: `AccessDenied`; those of the input.
    pub(crate) fn run(&self, run: &mut Run<'_>, sink: &mut Sink<'_>) -> Result<Flow> {
        run.database.check_space_access(run.context, &self.space, Privileges::READ)?;
        let owner = self.space.owner();
        if run.context.user(&run.database.catalog) == owner {
            return self.input.run(run, sink);
        }
        let reader = run.context.act_as(owner, &run.database.catalog);
        let flow = self.input.run(run, &mut |run| {
            run.context.act_again(reader);
            let flow = sink(run);
            run.context.act_as(owner, &run.database.catalog);
            flow
        });
        run.context.act_again(reader);
        flow
    }
}

/// Looks names up as a view does: a temporary one knows the tables of its session, others know those that everybody sees.
pub(crate) fn for_owner<T>(database: &Database, view: &Space, work: impl FnOnce() -> T) -> T {
    match view.def().is_session {
        true => work(),
        false => crate::Sql::of(database).for_nobody(work),
    }
}

/// The views that read a space, those that read it through others among them.
fn dependents(database: &Database, space: &Space) -> Vec<Rc<Space>> {
    let mut found = Vec::new();
    for other in database.catalog.spaces() {
        if !crate::Sql::of(database).may_name(&other) {
            continue;
        }
        let Some(view) = of(database, &other) else { continue };
        let Ok(query) = view.query() else { continue };
        let binder = Binder::new(database, view.dialect);
        // One whose tables are gone depends on nothing.
        let is_bound = for_owner(database, &other, || binder.bind_statement(&query)).is_ok();
        if is_bound && other.id != space.id && binder.uses(space.id) {
            found.push(other);
        }
    }
    found.sort_by_key(|space| std::cmp::Reverse(space.id.0));
    found
}

/// Carries out a change of the schema: of views here, else as [`Ddl::run`]. Errors: as there; what depends on a table that is to go.
pub(crate) fn run(ddl: &Ddl<'_>, statement: &ast::Statement) -> Result<u64> {
    match statement {
        ast::Statement::CreateView(create) => create_view(ddl, create),
        ast::Statement::Drop { object_type: ast::ObjectType::View, if_exists, names, cascade, .. } => {
            let mut count = 0;
            for name in names {
                if *if_exists && ddl.dialect.is_nowhere(name) {
                    continue;
                }
                count += drop_view(ddl, name, *if_exists, *cascade)?;
            }
            Ok(count)
        }
        ast::Statement::Drop { object_type: ast::ObjectType::Table, if_exists, names, cascade, .. } => {
            for name in names {
                if *if_exists && ddl.dialect.is_nowhere(name) {
                    continue;
                }
                let name = ddl.dialect.object_name(name)?;
                crate::Sql::of(ddl.database).speak(ddl.context);
                let Some(space) = crate::temporary::space_by_name(ddl.database, &name) else { continue };
                if of(ddl.database, &space).is_some() {
                    if *if_exists && ddl.dialect == Dialect::Mysql {
                        // There is no table of the name: the view stays.
                        continue;
                    }
                    let what = match ddl.dialect {
                        Dialect::Mysql => format!("Unknown table '{name}'"),
                        _ => format!("\"{name}\" is not a table"),
                    };
                    return Err(Error::new(Condition::NotUpdatable, what).mysql(1051));
                }
                drop_dependents(ddl, &space, "table", *cascade)?;
            }
            ddl.run(statement)
        }
        _ => ddl.run(statement),
    }
}

/// The views that name a type of a user's, or have columns of it.
pub(crate) fn of_type(database: &Database, id: tuple::SpaceId) -> Vec<Rc<Space>> {
    let mut found = Vec::new();
    for space in database.catalog.spaces() {
        let Some(view) = of(database, &space) else { continue };
        let Ok(query) = view.query() else { continue };
        let binder = Binder::new(database, view.dialect);
        let bound = for_owner(database, &space, || binder.bind_statement(&query));
        let has_it = |ty: Type| ty.has_labels() && crate::user_types::id_of(ty) == id;
        let gives = bound.is_ok_and(|bound| bound.outputs.iter().any(|output| has_it(output.ty)));
        if gives || binder.uses_type(id) {
            found.push(space);
        }
    }
    found
}

/// Removes a view, and those that read it.
pub(crate) fn remove_with_dependents(ddl: &Ddl<'_>, space: &Space) -> Result<()> {
    drop_dependents(ddl, space, "view", true)?;
    remove(ddl, space)
}

/// Removes the views that read a space, if that is wanted. Errors: it is not, and there are some.
fn drop_dependents(ddl: &Ddl<'_>, space: &Space, kind: &str, cascade: bool) -> Result<()> {
    // In MySQL a view stays and finds nothing.
    if ddl.dialect == Dialect::Mysql {
        return Ok(());
    }
    let found = dependents(ddl.database, space);
    if let Some(first) = found.first()
        && !cascade
    {
        let (view, name) = (crate::temporary::short_name(first), crate::temporary::short_name(space));
        let what = match ddl.dialect {
            Dialect::Tarantool => format!("Can't drop space '{name}': other views depend on this space"),
            _ => format!("cannot drop {kind} {name} because other objects depend on it"),
        };
        return Err(Error::new(Condition::Dependents, what)
            .detail(format!("view {view} depends on {kind} {name}"))
            .hint("Use DROP ... CASCADE to drop the dependent objects too."));
    }
    found.iter().try_for_each(|view| remove(ddl, view))
}

fn remove(ddl: &Ddl<'_>, space: &Space) -> Result<()> {
    let id = u64::from(space.id.0);
    ddl.as_admin(|| ddl.drop_grants(id))?;
    let mut key = Vec::new();
    msgpack::encode_array(&mut key, 1);
    msgpack::encode_uint(&mut key, id);
    let spaces = ddl.database.space(SPACE_ID)?;
    ddl.database.execute(ddl.context, &spaces, Operation::Delete { index_id: IndexId::PRIMARY, key: &key })?;
    Ok(())
}

fn not_there(dialect: Dialect, name: &str) -> Error {
    let what = match dialect {
        Dialect::Tarantool => format!("Space '{name}' does not exist"),
        Dialect::Mysql => format!("Unknown table '{name}'"),
        Dialect::Postgres => format!("view \"{name}\" does not exist"),
    };
    Error::new(Condition::UndefinedTable, what).mysql(1051)
}

fn no_view(dialect: Dialect, name: &str) -> Error {
    let what = match dialect {
        Dialect::Mysql => format!("'{name}' is not VIEW"),
        _ => format!("\"{name}\" is not a view"),
    };
    Error::new(Condition::NotUpdatable, what).mysql(1347)
}

fn drop_view(ddl: &Ddl<'_>, name: &ast::ObjectName, if_exists: bool, cascade: bool) -> Result<u64> {
    let name = ddl.dialect.object_name(name)?;
    crate::Sql::of(ddl.database).speak(ddl.context);
    let Some(space) = crate::temporary::space_by_name(ddl.database, &name) else {
        return if if_exists { Ok(0) } else { Err(not_there(ddl.dialect, &name)) };
    };
    if of(ddl.database, &space).is_none() {
        return Err(no_view(ddl.dialect, &name));
    }
    drop_dependents(ddl, &space, "view", cascade)?;
    remove(ddl, &space)?;
    Ok(1)
}

/// Errors: a query names what is not there.
pub(crate) fn check_query(database: &Database, dialect: Dialect, text: &str) -> Result<()> {
    match dialect.parse(text)?.into_iter().next() {
        Some(ast::Statement::Query(query)) => Binder::new(database, dialect).bind_statement(&query).map(drop),
        _ => Ok(()),
    }
}

fn create_view(ddl: &Ddl<'_>, create: &ast::CreateView) -> Result<u64> {
    if create.materialized {
        return Err(Error::unsupported("materialized views"));
    }
    if create.temporary && ddl.dialect != Dialect::Postgres {
        return Err(Error::unsupported("temporary views"));
    }
    if create.if_not_exists && ddl.dialect == Dialect::Postgres {
        return Err(Error::new(Condition::Syntax, "syntax error at or near \"NOT\""));
    }
    ddl.dialect.check_new(&create.name)?;
    let name = ddl.dialect.object_name(&create.name)?;
    let sql = crate::Sql::of(ddl.database);
    sql.speak(ddl.context);
    let is_temporary = is_temporary(ddl.database, ddl.dialect, create);
    let known = match is_temporary {
        true => sql.own_space(ddl.database, &name),
        false => ddl.database.catalog.space_by_name(&name),
    };
    if let Some(known) = &known {
        if create.if_not_exists {
            return Ok(0);
        }
        if !create.or_replace {
            let what = match ddl.dialect {
                Dialect::Tarantool => format!("Space '{name}' already exists"),
                Dialect::Mysql => format!("Table '{name}' already exists"),
                Dialect::Postgres => format!("relation \"{}\" already exists", ddl.local(&name)),
            };
            return Err(Error::new(Condition::DuplicateTable, what));
        }
        if of(ddl.database, known).is_none() {
            return Err(no_view(ddl.dialect, &name));
        }
    }
    let binder = Binder::new(ddl.database, ddl.dialect);
    let query = binder.bind_statement(&create.query)?;
    if binder.uses_temporary() && !is_temporary {
        return Err(Error::unsupported("a view of temporary tables"));
    }
    if !binder.params().0.is_empty() {
        return Err(Error::new(Condition::Unsupported, "views must not contain parameters").mysql(1351));
    }
    if let Some(known) = &known
        && binder.uses(known.id)
    {
        return Err(recursion(&name));
    }
    if create.columns.len() > query.outputs.len() {
        let what = "CREATE VIEW specifies more column names than columns";
        return Err(Error::new(Condition::Syntax, what).mysql(1353));
    }
    let mut columns: Vec<(String, Type, Option<String>)> = Vec::with_capacity(query.outputs.len());
    for (number, output) in query.outputs.iter().enumerate() {
        let column = match create.columns.get(number) {
            Some(column) => ddl.dialect.fold(&column.name),
            None => output.name.clone(),
        };
        if columns.iter().any(|(other, ..)| ddl.dialect.is_same(other, &column)) {
            let what = match ddl.dialect {
                Dialect::Mysql => format!("Duplicate column name '{column}'"),
                Dialect::Tarantool => format!("Space field '{column}' is duplicate"),
                Dialect::Postgres => format!("column \"{column}\" specified more than once"),
            };
            return Err(Error::new(Condition::DuplicateColumn, what));
        }
        // MySQL's clients are shown the type that the column behind it was declared with.
        let shown = (ddl.dialect == Dialect::Mysql)
            .then(|| {
                binder.column_of_slot(output.slot, |column| {
                    column.raw_declared.clone().filter(|_| !column.is_declared_in_postgres && !column.is_key())
                })
            })
            .flatten();
        columns.push((column, output.ty, shown));
    }
    if let Some(known) = &known
        && ddl.dialect == Dialect::Postgres
    {
        check_replaced(ddl, known, &columns)?;
    }
    if is_temporary && known.is_none() {
        ddl.own_session()?;
    }
    let plain = ast::CreateView { or_replace: false, if_not_exists: false, temporary: false, ..create.clone() };
    let text = marked(ddl.dialect, &written(ddl.dialect, &plain));
    let (id, owner) = match &known {
        Some(known) => (u64::from(known.id.0), known.owner()),
        None => (ddl.new_table_id(is_temporary)?, ddl.context.user(&ddl.database.catalog)),
    };
    let mut row = Vec::new();
    msgpack::encode_array(&mut row, 7);
    msgpack::encode_uint(&mut row, id);
    msgpack::encode_uint(&mut row, u64::from(owner));
    msgpack::encode_str(&mut row, ddl.full_name(&name, is_temporary).as_bytes());
    msgpack::encode_str(&mut row, b"memtx");
    msgpack::encode_uint(&mut row, columns.len() as u64);
    msgpack::encode_map(&mut row, 2 + u32::from(is_temporary));
    if is_temporary {
        msgpack::encode_str(&mut row, b"temporary");
        msgpack::encode_bool(&mut row, true);
    }
    msgpack::encode_str(&mut row, b"sql");
    msgpack::encode_str(&mut row, text.as_bytes());
    msgpack::encode_str(&mut row, b"view");
    msgpack::encode_bool(&mut row, true);
    msgpack::encode_array(&mut row, columns.len() as u32);
    for (column, ty, shown) in &columns {
        let declared = match shown {
            Some(shown) => Some(("mysql_type", shown.clone())),
            None => declared(ddl.dialect, *ty).map(|declared| ("sql_type", declared)),
        };
        msgpack::encode_map(&mut row, 3 + u32::from(declared.is_some()));
        for (key, value) in [("name", column.as_str()), ("type", ty.field_name())] {
            msgpack::encode_str(&mut row, key.as_bytes());
            msgpack::encode_str(&mut row, value.as_bytes());
        }
        msgpack::encode_str(&mut row, b"is_nullable");
        msgpack::encode_bool(&mut row, true);
        if let Some((key, declared)) = declared {
            msgpack::encode_str(&mut row, key.as_bytes());
            msgpack::encode_str(&mut row, declared.as_bytes());
        }
    }
    let spaces = ddl.database.space(SPACE_ID)?;
    let is_new = known.is_none();
    let comment = known.as_ref().and_then(|known| crate::comments::of(ddl.database, known));
    let operation = match known {
        Some(_) => Operation::Replace { tuple: &row },
        None => Operation::Insert { tuple: &row },
    };
    ddl.database.execute(ddl.context, &spaces, operation)?;
    if comment.is_some() {
        crate::comments::put(ddl, id, comment.as_deref())?;
    }
    if is_temporary && is_new {
        ddl.own(id, None)?;
    }
    Ok(1)
}

/// Errors: a view that takes the place of another one lacks a column of it, or has another one in its place.
fn check_replaced(ddl: &Ddl<'_>, known: &Rc<Space>, columns: &[(String, Type, Option<String>)]) -> Result<()> {
    let refused = |what: String| Error::new(Condition::InvalidTable, what);
    let old = Table::of(ddl.database, Rc::clone(known))?;
    if columns.len() < old.columns.len() {
        return Err(refused("cannot drop columns from view".to_string()));
    }
    for (old, (name, ty, _)) in old.columns.iter().zip(columns) {
        if old.name != *name {
            let what = format!("cannot change name of view column \"{}\" to \"{name}\"", old.name);
            let hint = "Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.";
            return Err(refused(what).hint(hint));
        }
        let kept = |ty: Type| (ty.field_name(), declared(ddl.dialect, ty));
        let is_open = |ty: Type| matches!(ty.base, Base::Any | Base::Scalar | Base::Unknown | Base::Map | Base::Number);
        if kept(old.ty) != kept(*ty) && !is_open(old.ty) && !is_open(*ty) {
            let shown = |ty: Type| match declared(ddl.dialect, ty) {
                Some(declared) if !ty.has_labels() => {
                    declared.replace("varchar", "character varying").replace(", ", ",")
                }
                _ => ty.to_string(),
            };
            let (from, to) = (shown(old.ty), shown(*ty));
            return Err(refused(format!("cannot change data type of view column \"{name}\" from {from} to {to}")));
        }
    }
    Ok(())
}

/// True for a view of one session: it is said to be one, or reads tables of one.
pub(crate) fn is_temporary(database: &Database, dialect: Dialect, create: &ast::CreateView) -> bool {
    let reads_some = || {
        let binder = Binder::new(database, dialect);
        binder.bind_statement(&create.query).is_ok() && binder.uses_temporary()
    };
    dialect == Dialect::Postgres && (create.temporary || crate::Sql::of(database).has_own_tables() && reads_some())
}

/// The type of a column in words, where the type of the field does not say it.
fn declared(dialect: Dialect, ty: Type) -> Option<String> {
    if ty.has_labels() {
        return Some(crate::user_types::declared_of(ty));
    }
    if dialect != Dialect::Postgres || matches!(ty.base, Base::Any | Base::Scalar | Base::Unknown | Base::Map) {
        return None;
    }
    let name = ty.name(dialect);
    Some(match (ty.base, ty.length) {
        (Base::Text, 0) => return None,
        (Base::Text, length) => format!("varchar({length})"),
        (Base::Decimal, length) if length > 0 => format!("numeric({length}, {})", ty.scale),
        (Base::Array, _) if ty.element().base == Base::Any => return None,
        _ => name,
    })
}

/// A view that reads itself, through others perhaps.
pub(crate) fn recursion(name: &str) -> Error {
    let what = format!("infinite recursion detected in rules for relation \"{name}\"");
    Error::new(Condition::Recursion, what)
}
