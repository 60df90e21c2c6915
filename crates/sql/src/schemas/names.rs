//! Frees a statement of schemas: names become those of the catalog.
//!
//! ```text
//! SELECT s.t.a FROM s.t            SELECT t.a FROM "s.t"
//! SET search_path = s; SELECT t    "s.t" if there is one, else t of public if the path has that
//! CREATE TABLE s.t (id serial)     CREATE TABLE "s.t" (id serial)
//! nextval('s.q')                   nextval('"s.q"')
//! ```
//!
//! What a WITH names hides tables where it is seen: in its query, and in the queries of the same WITH behind it.

use super::{Kind, all, along_path, by_name, named, of_new, path, split};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use database::Database;
use hashbrown::{HashMap, HashSet};
use sqlparser::ast::{self, Expr, Ident, ObjectName, ObjectNamePart, ObjectType, VisitMut, VisitorMut};
use std::ops::ControlFlow;

/// Frees a statement of schemas, for the session that speaks. Errors: no schema to make something in; no memory.
pub(crate) fn resolve(database: &Database, statement: &mut ast::Statement) -> Result<()> {
    if !is_needed(database) {
        return Ok(());
    }
    on_large_stack(|| {
        let mut names = TableNames::default();
        let _ = ast::Visit::visit(&*statement, &mut names);
        let mut resolver =
            Resolver { database, scopes: Vec::new(), done: HashSet::new(), is_call: false, doubled: names.doubled };
        match statement.visit(&mut resolver) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(error),
        }
    })
}

fn on_large_stack<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    let no_memory = |error| Error::new(Condition::OutOfMemory, format!("no memory for a stack: {error}"));
    runtime::on_large_stack(work).map_err(no_memory)?
}

/// False if names mean what they say: there are no schemas, and the path is the usual one.
fn is_needed(database: &Database) -> bool {
    !all(database).is_empty() || !matches!(*path(database), [None])
}

/// What a WITH names.
struct Scope {
    /// Their places in the list.
    names: HashMap<String, usize>,
    queries: Vec<*const ast::Query>,
    /// How many of its queries have begun.
    begun: usize,
    /// Of the names, those that are seen now.
    seen: usize,
    is_recursive: bool,
    query: *const ast::Query,
}

/// The tables of a statement that have no alias.
#[derive(Default)]
struct TableNames {
    /// By their own names, the first one with its schema.
    known: HashMap<String, Vec<String>>,
    doubled: HashSet<String>,
}

impl ast::Visitor for TableNames {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &ast::TableFactor) -> ControlFlow<()> {
        if let ast::TableFactor::Table { name, alias: None, args: None, .. } = factor
            && let Some(listed) = parts(name)
            && let Some(local) = listed.last().cloned()
        {
            let first = self.known.entry(local.clone()).or_insert_with(|| listed.clone());
            if *first != listed {
                self.doubled.insert(local);
            }
        }
        ControlFlow::Continue(())
    }
}

struct Resolver<'d> {
    database: &'d Database,
    scopes: Vec<Scope>,
    /// Names that are as they have to be already, by where they are.
    done: HashSet<*const ObjectName>,
    /// The next name is that of a function.
    is_call: bool,
    /// Names that tables of several schemas have without an alias: there a column keeps the schema before it, as a part of one name.
    doubled: HashSet<String>,
}

type Flow = ControlFlow<Error>;

fn flow(done: Result<()>) -> Flow {
    match done {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

/// The parts of a name, folded. None: it has others.
fn parts(name: &ObjectName) -> Option<Vec<String>> {
    name.0.iter().map(|part| Some(Dialect::Postgres.fold(part.as_ident()?))).collect()
}

/// The name has another last part, and none before it; where it stands is kept.
fn put(name: &mut ObjectName, full: String) {
    let span = name.0.first().and_then(ObjectNamePart::as_ident).map(|ident| ident.span);
    let mut ident = Ident::with_quote('"', full);
    if let Some(span) = span {
        ident.span = span;
    }
    *name = ObjectName(vec![ObjectNamePart::Identifier(ident)]);
}

impl Resolver<'_> {
    /// The name stays as it is.
    fn pass(&mut self, name: &ObjectName) {
        self.done.insert(std::ptr::from_ref(name));
    }

    /// A name of what is there, which is visited later.
    fn find(&mut self, kind: Kind, name: &mut ObjectName) {
        self.replace(kind, name);
        self.pass(name);
    }

    /// A name of what is there.
    fn replace(&self, kind: Kind, name: &mut ObjectName) {
        let Some(listed) = parts(name) else { return };
        let full = match listed.as_slice() {
            [name] => along_path(self.database, kind, name),
            [.., schema, name] => by_name(self.database, schema).map(|schema| schema.full(name)),
            [] => None,
        };
        if let Some(full) = full {
            put(name, full);
        }
    }

    /// A name of what is to be.
    fn make(&mut self, name: &mut ObjectName) -> Result<()> {
        let Some(listed) = parts(name) else { return Ok(()) };
        let full = match listed.as_slice() {
            // One that a statement of ours has made of another.
            [name] if split(self.database, name).0.is_some() => None,
            [name] => Some(of_new(self.database, name)?).filter(|full| full != name),
            [.., schema, name] => by_name(self.database, schema).map(|schema| schema.full(name)),
            [] => None,
        };
        if let Some(full) = full {
            put(name, full);
        }
        self.pass(name);
        Ok(())
    }

    /// A name behind a word that marks what the statement is.
    fn behind_mark(
        &mut self,
        name: &mut ObjectName,
        work: impl FnOnce(&mut Self, &mut ObjectName) -> Result<()>,
    ) -> Result<()> {
        let mut rest = ObjectName(name.0.split_off(1));
        let done = work(self, &mut rest);
        name.0.append(&mut rest.0);
        self.pass(name);
        done
    }

    /// A new name of something: it stays in its schema.
    fn rename(&self, from: &ObjectName, to: &mut ObjectName) {
        let (Some(from), Some(listed)) = (parts(from), parts(to)) else { return };
        if let ([from], [to_name]) = (from.as_slice(), listed.as_slice())
            && let (Some(schema), _) = split(self.database, from)
        {
            put(to, schema.full(to_name));
        }
    }

    fn is_with(&self, name: &ObjectName) -> bool {
        let Some(listed) = parts(name) else { return false };
        let [name] = listed.as_slice() else { return false };
        self.scopes.iter().any(|scope| scope.names.get(name).is_some_and(|place| *place < scope.seen))
    }

    fn column_type(&self, ty: &mut ast::DataType) {
        match ty {
            ast::DataType::Array(
                ast::ArrayElemTypeDef::SquareBracket(element, _)
                | ast::ArrayElemTypeDef::AngleBracket(element)
                | ast::ArrayElemTypeDef::Parenthesis(element),
            ) => self.column_type(element),
            ast::DataType::Custom(name, modifiers) if modifiers.is_empty() => {
                let before = name.clone();
                self.replace(Kind::Type, name);
                // A type of the system's own is found by nobody here.
                if matches!(parts(name).as_deref(), Some([only]) if only.starts_with(super::NOWHERE)) {
                    *name = before;
                }
            }
            _ => {}
        }
    }

    fn column(&self, column: &mut ast::ColumnDef) {
        self.column_type(&mut column.data_type);
        for option in &mut column.options {
            if let ast::ColumnOption::ForeignKey(key) = &mut option.option {
                self.replace(Kind::Relation, &mut key.foreign_table);
            }
        }
    }

    fn constraint(&self, constraint: &mut ast::TableConstraint) {
        if let ast::TableConstraint::ForeignKey(key) = constraint {
            self.replace(Kind::Relation, &mut key.foreign_table);
        }
    }

    fn create_table(&mut self, create: &mut ast::CreateTable) -> Result<()> {
        if crate::user_types::is_domain(create) {
            self.behind_mark(&mut create.name, |all, name| all.make(name))?;
        } else if create.temporary {
            self.pass(&create.name);
        } else {
            self.make(&mut create.name)?;
        }
        create.columns.iter_mut().for_each(|column| self.column(column));
        create.constraints.iter_mut().for_each(|constraint| self.constraint(constraint));
        if let Some(ast::CreateTableLikeKind::Plain(like) | ast::CreateTableLikeKind::Parenthesized(like)) =
            &mut create.like
        {
            match like.name.0.first().and_then(ObjectNamePart::as_ident) {
                Some(mark) if mark.value.starts_with(crate::ddl::likes::MARK) => {
                    self.behind_mark(&mut like.name, |all, name| {
                        all.find(Kind::Relation, name);
                        Ok(())
                    })?;
                }
                _ => self.find(Kind::Relation, &mut like.name),
            }
        }
        Ok(())
    }

    fn alter_table(&mut self, alter: &mut ast::AlterTable) -> Result<()> {
        if crate::user_types::altered(alter).is_some() {
            return self.behind_mark(&mut alter.name, |all, name| {
                all.find(Kind::Type, name);
                Ok(())
            });
        }
        self.find(Kind::Relation, &mut alter.name);
        for operation in &mut alter.operations {
            match operation {
                ast::AlterTableOperation::RenameTable {
                    table_name: ast::RenameTableNameKind::As(new) | ast::RenameTableNameKind::To(new),
                } => self.rename(&alter.name, new),
                ast::AlterTableOperation::AddConstraint { constraint, .. } => self.constraint(constraint),
                ast::AlterTableOperation::AddColumn { column_def, .. } => self.column(column_def),
                ast::AlterTableOperation::AlterColumn {
                    op: ast::AlterColumnOperation::SetDataType { data_type, .. },
                    ..
                } => self.column_type(data_type),
                _ => {}
            }
        }
        Ok(())
    }

    fn dropped(&mut self, object_type: ObjectType, names: &mut [ObjectName]) {
        let kind = match object_type {
            ObjectType::Table | ObjectType::View | ObjectType::Sequence => Kind::Relation,
            ObjectType::Index => Kind::Index,
            ObjectType::Type => Kind::Type,
            _ => return,
        };
        names.iter_mut().for_each(|name| self.find(kind, name));
    }

    /// The name of a table before that of a column of it.
    fn before_column(&mut self, name: &mut ObjectName) {
        let Some(column) = name.0.pop() else { return };
        if !name.0.is_empty() {
            self.find(Kind::Relation, name);
        }
        name.0.push(column);
    }

    fn statement(&mut self, statement: &mut ast::Statement) -> Result<()> {
        match statement {
            ast::Statement::CreateTable(create) => self.create_table(create)?,
            ast::Statement::CreateView(create) if create.temporary => self.pass(&create.name),
            ast::Statement::CreateView(create) => self.make(&mut create.name)?,
            ast::Statement::CreateSequence { name, .. } | ast::Statement::CreateType { name, .. } => self.make(name)?,
            ast::Statement::AlterTable(alter) => self.alter_table(alter)?,
            ast::Statement::AlterIndex { name, .. } => self.find(Kind::Index, name),
            ast::Statement::AlterType(alter) => self.find(Kind::Type, &mut alter.name),
            ast::Statement::DropDomain(drop) => self.find(Kind::Type, &mut drop.name),
            ast::Statement::Drop { object_type, names, .. } => self.dropped(*object_type, names),
            ast::Statement::Comment { object_type: ast::CommentObject::Column, object_name, .. } => {
                self.before_column(object_name);
            }
            ast::Statement::Comment { object_type, object_name, .. } => match object_type {
                ast::CommentObject::Table | ast::CommentObject::View | ast::CommentObject::Sequence => {
                    self.find(Kind::Relation, object_name);
                }
                ast::CommentObject::Index => self.find(Kind::Index, object_name),
                ast::CommentObject::Type | ast::CommentObject::Domain => self.find(Kind::Type, object_name),
                ast::CommentObject::Collation if object_name.0.len() > 1 => {
                    self.behind_mark(object_name, |all, name| {
                        all.find(Kind::Relation, name);
                        Ok(())
                    })?;
                }
                _ => {}
            },
            ast::Statement::Copy { source: ast::CopySource::Table { table_name, .. }, .. } => {
                self.find(Kind::Relation, table_name);
            }
            _ => {}
        }
        Ok(())
    }

    /// `nextval('q')` and its kin: what the text means now, it means whoever runs it.
    fn call(&self, call: &mut ast::Function) -> Result<()> {
        let name = call.name.to_string().to_lowercase();
        if !matches!(name.trim_start_matches("pg_catalog."), "nextval" | "currval" | "setval") {
            return Ok(());
        }
        let ast::FunctionArguments::List(list) = &mut call.args else { return Ok(()) };
        let Some(ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(first))) = list.args.first_mut() else {
            return Ok(());
        };
        let value = match first {
            Expr::Cast { expr, data_type, .. } if data_type.to_string().eq_ignore_ascii_case("regclass") => &mut **expr,
            other => other,
        };
        if let Expr::Value(ast::ValueWithSpan { value: ast::Value::SingleQuotedString(text), .. }) = value {
            let full = named(self.database, Kind::Relation, text)?;
            if split(self.database, &full).0.is_some() {
                *text = format!("\"{}\"", full.replace('"', "\"\""));
            }
        }
        Ok(())
    }

    /// True if columns of the table keep their schema: it is put into the name of the table.
    fn keep_schema(&self, parts: &mut Vec<Ident>) -> bool {
        let [.., schema, table, _] = parts.as_slice() else { return false };
        let (schema_name, table_name) = (Dialect::Postgres.fold(schema), Dialect::Postgres.fold(table));
        let is_it = self.doubled.contains(&table_name) && (schema_name == "public" || self.is_schema(schema));
        if is_it {
            let at = parts.len() - 3;
            let mut whole = Ident::with_quote('"', format!("{schema_name}.{table_name}"));
            whole.span = schema.span;
            parts.splice(at..at + 2, [whole]);
        }
        is_it
    }

    /// True for the name of a schema of a user's.
    fn is_schema(&self, ident: &Ident) -> bool {
        by_name(self.database, &Dialect::Postgres.fold(ident)).is_some()
    }
}

impl VisitorMut for Resolver<'_> {
    type Break = Error;

    fn pre_visit_statement(&mut self, statement: &mut ast::Statement) -> Flow {
        flow(self.statement(statement))
    }

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> Flow {
        let this: *const ast::Query = query;
        if let Some(scope) = self.scopes.last_mut()
            && scope.queries.get(scope.begun).is_some_and(|next| std::ptr::eq(*next, this))
        {
            scope.seen = if scope.is_recursive { scope.queries.len() } else { scope.begun };
            scope.begun += 1;
        }
        if let Some(with) = &query.with {
            let names = with.cte_tables.iter().map(|table| Dialect::Postgres.fold(&table.alias.name));
            self.scopes.push(Scope {
                names: names.zip(0..).collect(),
                queries: with.cte_tables.iter().map(|table| std::ptr::from_ref(&*table.query)).collect(),
                begun: 0,
                seen: 0,
                is_recursive: with.recursive,
                query: this,
            });
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut ast::Query) -> Flow {
        let this: *const ast::Query = query;
        if self.scopes.last().is_some_and(|scope| std::ptr::eq(scope.query, this)) {
            self.scopes.pop();
        }
        // The one that has ended is seen from now on.
        if let Some(scope) = self.scopes.last_mut()
            && scope.begun > 0
            && std::ptr::eq(scope.queries[scope.begun - 1], this)
        {
            scope.seen = scope.seen.max(scope.begun);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut ast::TableFactor) -> Flow {
        if let ast::TableFactor::Table { args, .. } = factor {
            self.is_call = args.is_some();
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &mut ObjectName) -> Flow {
        let is_call = std::mem::take(&mut self.is_call);
        let is_done = self.done.contains(&std::ptr::from_ref(name));
        if !is_call && !is_done && !self.is_with(name) {
            self.replace(Kind::Relation, name);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> Flow {
        for item in &mut select.projection {
            if let ast::SelectItem::QualifiedWildcard(ast::SelectItemQualifiedWildcardKind::ObjectName(name), _) = item
                && let Some(listed) = parts(name)
                && let [schema, table] = listed.as_slice()
                && self.doubled.contains(table)
            {
                put(name, format!("{schema}.{table}"));
                continue;
            }
            if let ast::SelectItem::QualifiedWildcard(ast::SelectItemQualifiedWildcardKind::ObjectName(name), _) = item
                && let [ObjectNamePart::Identifier(schema), _] = name.0.as_slice()
                && self.is_schema(schema)
            {
                name.0.remove(0);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> Flow {
        match expr {
            Expr::CompoundIdentifier(parts) if parts.len() > 2 => {
                let is_kept = self.keep_schema(parts);
                if !is_kept && self.is_schema(&parts[0]) {
                    parts.remove(0);
                }
            }
            Expr::Cast { data_type, .. } => self.column_type(data_type),
            Expr::Function(call) => return flow(self.call(call)),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
