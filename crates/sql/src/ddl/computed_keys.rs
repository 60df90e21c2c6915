//! CREATE INDEX over expressions, in PostgreSQL's dialect with WHERE and INCLUDE as well, and what becomes of such indexes.

use super::alter::set_name;
use super::{Ddl, NewColumn, NewIndex};
use crate::bind::Binder;
use crate::catalog::index_definition;
use crate::condition::{body_of, check_is_fixed};
use crate::dialect::{Dialect, is_plain_collation};
use crate::error::{Condition, Error, Result};
use crate::generated::Generated;
use crate::spelled::{Spelled, SpelledKey};
use crate::table::{Column, Index, Table};
use crate::types::{Base, Type};
use crate::written::written;
use sqlparser::ast;
use std::rc::Rc;

/// What is said of an index that is over more than columns.
pub(super) struct Wanted<'s> {
    pub(super) keys: &'s [ast::IndexColumn],
    pub(super) predicate: Option<&'s ast::Expr>,
    pub(super) include: &'s [ast::Ident],
    /// WITH.
    pub(super) options: &'s [ast::Expr],
    pub(super) is_unique: bool,
    /// Nulls are equal to each other.
    pub(super) has_equal_nulls: bool,
}

impl<'s> Wanted<'s> {
    pub(super) fn of(create: &'s ast::CreateIndex) -> Self {
        Wanted {
            keys: &create.columns,
            predicate: create.predicate.as_ref(),
            include: &create.include,
            options: &create.with,
            is_unique: create.unique,
            has_equal_nulls: create.unique && create.nulls_distinct == Some(false),
        }
    }
}

impl Ddl<'_> {
    /// True for an index that is over more than columns.
    pub(super) fn is_computed(&self, create: &ast::CreateIndex) -> bool {
        if self.dialect == Dialect::Mysql {
            // An expression stands in parentheses there.
            return create.columns.iter().any(|column| matches!(column.column.expr, ast::Expr::Nested(_)));
        }
        let is_column = |column: &ast::IndexColumn| {
            let is_plain = !is_descending(&column.column)
                && column.column.options.nulls_first != Some(true)
                && column.operator_class.is_none();
            is_plain && matches!(self.bare(&column.column.expr), ast::Expr::Identifier(_))
        };
        self.dialect == Dialect::Postgres
            && (create.predicate.is_some()
                || !create.include.is_empty()
                || !create.with.is_empty()
                || create.unique && create.nulls_distinct == Some(false)
                || !create.columns.iter().all(is_column))
    }

    /// Makes such an index, which is a constraint or none. Errors: what is not there; expressions that depend on more than the row; rows that are equal.
    pub(super) fn create_computed(
        &self,
        wanted: &Wanted<'_>,
        table: &Table,
        name: &str,
        is_constraint: bool,
    ) -> Result<()> {
        let spelled = self.spelled_of(wanted, table)?;
        let shape_before = Rc::new(Table::of(self.database, Rc::clone(&table.space))?);
        if let Some(condition) = &spelled.condition {
            let binder = Binder::new(self.database, self.dialect);
            let what = "functions in index predicate must be marked IMMUTABLE";
            let bound = binder.bind_check(&shape_before, condition, None);
            let fixed = bound.and_then(|(expr, fields)| {
                check_is_fixed(self.dialect, "", &expr)?;
                binder.check_needs_no_zone(&shape_before, &expr, &fields)
            });
            fixed.map_err(|error| not_fixed(error, what))?;
        }
        let hides_all = wanted.is_unique && spelled.condition.is_some() || wanted.has_equal_nulls;
        let mut shape = self.shape_of(table)?;
        let mut fields = Vec::with_capacity(spelled.keys.len());
        let free = |name: String| self.free_column_name(table, name);
        for (number, key) in (1..).zip(&spelled.keys) {
            let text = match key.is_expression {
                false if !hides_all => {
                    fields.push(self.column_at(table, &key.text)?);
                    continue;
                }
                false => format!("\"{}\"", key.text.replace('"', "\"\"")),
                true => key.text.clone(),
            };
            // What stands in a row that the index is not about is null, and so equal to no other.
            let within = |text: String| match &spelled.condition {
                Some(condition) if hides_all => format!("CASE WHEN {condition} THEN {text} END"),
                _ => text,
            };
            let binder = Binder::new(self.database, self.dialect);
            let what = "functions in index expression must be marked IMMUTABLE";
            let (ty, collation) = binder.bind_key(&shape_before, &text).map_err(|error| not_fixed(error, what))?;
            let mut add = |name: String, ty: Type, text: String| {
                fields.push(shape.columns.len());
                shape.columns.push(NewColumn {
                    name,
                    ty,
                    declared: match ty.has_labels() {
                        true => crate::user_types::declared_of(ty),
                        false => ty.name(self.dialect),
                    },
                    is_nullable: true,
                    default: None,
                    collation: match self.dialect {
                        Dialect::Mysql => collation,
                        _ => self.order_of_documents(ty),
                    },
                    on_update: None,
                    comment: None,
                    is_hidden: true,
                    identity: None,
                    generated: Some(Generated { body: body_of(self.dialect, &within(text)), is_virtual: false }),
                });
                shape.formats.push(None);
                shape.sources.push(crate::alter::Source::Expression(None, None));
            };
            if matches!(ty.base, Base::Array | Base::Any | Base::Interval | Base::Unknown) {
                return Err(Error::unsupported(format!("an index over '{text}', which is of type {ty},")));
            }
            match wanted.has_equal_nulls {
                false => add(free(format!("__{name}_{number}")), ty, text),
                // Some value in place of null, and beside it whether that is so.
                true => {
                    let Some(instead) = self.instead_of_null(ty) else {
                        return Err(Error::unsupported(format!("NULLS NOT DISTINCT of type {ty}")));
                    };
                    let name = free(format!("__{name}_{number}"));
                    add(free(format!("{name}_null")), Type::of(Base::Bool), format!("({text}) IS NULL"));
                    add(name, ty, format!("coalesce({text}, {instead})"));
                }
            }
        }
        let next = table.indexes.iter().map(|index| u64::from(index.id.0)).max().map_or(0, |last| last + 1);
        let index = NewIndex { name: name.to_string(), is_unique: wanted.is_unique, fields };
        let said = || {
            self.set_spelled(table.space.id, name, Some(&spelled))?;
            self.set_constraint(table.space.id, name, is_constraint)
        };
        if shape.columns.len() == table.columns.len() {
            self.put_index(u64::from(table.space.id.0), next, name, &index, &shape.columns)?;
            return self.keep_of_index(table, name, said);
        }
        shape.indexes.push((next, index));
        self.in_one_go(|| self.reshape(table, shape).and_then(|()| said()))
    }

    /// Does work whole or not at all, with its looks at all rows in one go: the rows that may be given another shape are no more than may be looked at so.
    fn in_one_go(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let before = self.context.look_at_once(true);
        let done = self.at_once(work);
        self.context.look_at_once(before);
        done
    }

    /// The first name that begins so and that no column of the table has.
    fn free_column_name(&self, table: &Table, name: String) -> String {
        let is_free = |name: &String| !table.columns.iter().any(|known| self.dialect.is_same(&known.name, name));
        let numbered = (1..).map(|number| format!("{name}_{number}"));
        std::iter::once(name.clone()).chain(numbered).find(is_free).unwrap_or_default()
    }

    /// The key of an index that has the name which a column is to get, if there is one, gets another. Returns the table.
    pub(super) fn make_way(&self, table: Rc<Table>, name: &ast::Ident) -> Result<Rc<Table>> {
        let name = self.dialect.fold(name);
        let is_it = |column: &Column| column.is_key() && self.dialect.is_same(&column.name, &name);
        let Some(at) = table.columns.iter().position(is_it) else { return Ok(table) };
        let other = self.free_column_name(&table, name);
        let format = self.changed_format(&table, |format| {
            if let Some(column) = format.get_mut(at) {
                set_name(column, &other);
            }
        })?;
        self.update_space(&table, 6, |out| out.extend_from_slice(&format), None)?;
        self.table_named(&table.full)
    }

    /// An expression without parentheses around it, and without the collation that text has here anyway.
    pub(super) fn bare<'e>(&self, expr: &'e ast::Expr) -> &'e ast::Expr {
        match expr {
            ast::Expr::Nested(inner) => self.bare(inner),
            ast::Expr::Collate { expr, collation } if is_plain_collation(self.dialect, collation) => self.bare(expr),
            expr => expr,
        }
    }

    /// What the statement says of the index.
    fn spelled_of(&self, wanted: &Wanted<'_>, table: &Table) -> Result<Spelled> {
        let column = |ident: &ast::Ident| {
            let name = self.dialect.fold(ident);
            self.column_at(table, &name)
                .map(|at| table.columns[at].name.clone())
                .map_err(|_| Error::new(Condition::UndefinedColumn, format!("column \"{name}\" does not exist")))
        };
        let mut keys = Vec::with_capacity(wanted.keys.len());
        for key in wanted.keys {
            let expr = self.bare(&key.column.expr);
            let (text, is_expression) = match expr {
                ast::Expr::Identifier(ident) => (column(ident)?, false),
                ast::Expr::Function(function)
                    if self.dialect == Dialect::Mysql && !matches!(key.column.expr, ast::Expr::Nested(_)) =>
                {
                    // A number of characters that the index looks at: it looks at all of them.
                    match function.name.0.last() {
                        Some(ast::ObjectNamePart::Identifier(ident)) => (column(ident)?, false),
                        _ => return Err(Error::unsupported(format!("an index over '{expr}'"))),
                    }
                }
                expr => (written(self.dialect, expr), true),
            };
            let is_descending = is_descending(&key.column);
            let puts_nulls_first = key.column.options.nulls_first.unwrap_or(is_descending);
            let class = key.operator_class.as_ref().filter(|_| self.dialect == Dialect::Postgres);
            let class = class.map(|class| self.dialect.object_name(class)).transpose()?;
            class.as_deref().map_or(Ok(()), crate::catalog::check_class)?;
            keys.push(SpelledKey { text, is_expression, is_descending, puts_nulls_first, class });
        }
        let mut predicate = wanted.predicate;
        while let Some(ast::Expr::Nested(inner)) = predicate {
            predicate = Some(inner);
        }
        Ok(Spelled {
            keys,
            condition: predicate.map(|predicate| written(self.dialect, predicate)),
            has_equal_nulls: wanted.has_equal_nulls,
            included: wanted.include.iter().map(column).collect::<Result<_>>()?,
            options: wanted.options.iter().map(option_of_index).collect::<Result<_>>()?,
        })
    }

    /// The name of an index that has none: of its columns and the functions among its keys.
    pub(super) fn name_of_keys(&self, create: &ast::CreateIndex, table: &Table) -> String {
        let mut names: Vec<String> = Vec::new();
        for key in &create.columns {
            let expr = self.bare(&key.column.expr);
            let name = match expr {
                ast::Expr::Identifier(ident) => self.dialect.fold(ident),
                ast::Expr::Function(function) => {
                    function.name.0.last().map_or_else(String::new, |part| part.to_string().to_lowercase())
                }
                _ => "expr".to_string(),
            };
            let numbered = (1..).map(|number| format!("{name}{number}"));
            let free = std::iter::once(name.clone()).chain(numbered).find(|name| !names.contains(name));
            names.push(free.unwrap_or(name));
        }
        let included = create.include.iter().map(|ident| self.dialect.fold(ident));
        let names: Vec<String> = names.into_iter().chain(included).collect();
        let first = format!("{}_{}_idx", table.name, names.join("_"));
        let is_free = |name: &String| {
            let name = crate::schemas::beside(self.database, &table.full, name);
            let is_index = crate::schemas::space_of_index(self.database, &name).is_some();
            !is_index && self.database.catalog.space_by_name(&name).is_none()
        };
        let numbered = (1..).map(|number| format!("{first}{number}"));
        std::iter::once(first.clone()).chain(numbered).find(is_free).unwrap_or(first)
    }

    /// An index goes, with the columns that nobody sees but it. False: it has none.
    pub(super) fn remove_computed(&self, table: &Table, index: &Index) -> Result<bool> {
        let mut hidden = hidden_fields(table, index);
        if hidden.is_empty() {
            return Ok(false);
        }
        hidden.sort_unstable();
        let mut shape = self.shape_of(table)?;
        shape.indexes.retain(|(id, _)| *id != u64::from(index.id.0));
        for at in hidden.into_iter().rev() {
            self.remove_column(table, &mut shape, at)?;
        }
        self.reshape(table, shape)?;
        Ok(true)
    }

    /// The indexes that speak of a column in other ways than as a key of theirs go: PostgreSQL drops them with the column.
    pub(super) fn drop_computed_of(&self, table: &Table, at: usize) -> Result<()> {
        for name in self.computed_of(table, at) {
            self.remove_named(table, &name)?;
        }
        Ok(())
    }

    /// Names of the indexes that speak of a column in other ways than as a key of theirs.
    pub(super) fn computed_of(&self, table: &Table, at: usize) -> Vec<String> {
        let name = &table.columns[at].name;
        let hidden = self.generated_of(table, at);
        let speaks = |index: &&Index| {
            let parts = hidden_fields(table, index);
            let spelled = index.spelled.as_ref();
            parts.iter().any(|field| hidden.contains(field))
                || spelled.is_some_and(|spelled| spelled.included.contains(name))
                || spelled.and_then(|spelled| spelled.condition.as_ref()).is_some_and(|condition| {
                    crate::constraint::with_column_renamed(self.dialect, condition, name, name).is_some()
                })
        };
        table.indexes.iter().filter(speaks).map(|index| index.name.clone()).collect()
    }

    fn remove_named(&self, table: &Table, name: &str) -> Result<()> {
        let table = self.table_named(&table.full)?;
        match table.indexes.iter().find(|index| index.name == name) {
            Some(index) => self.remove_index(&table, index),
            None => Ok(()),
        }
    }

    /// Changes a table while these indexes are not there: they are made anew, as they were declared. Errors: those of the change; what they are over means
    /// nothing any more.
    pub(super) fn remaking(&self, table: &Table, names: &[String], change: impl FnOnce() -> Result<()>) -> Result<()> {
        let known = |(_, index): &(usize, &Index)| names.contains(&index.name);
        let said = |(at, index): (usize, &Index)| {
            let view = crate::catalog::View { database: self.database, context: self.context };
            let text = index_definition(&view, table, at);
            (index.name.clone(), index.is_constraint, text)
        };
        let all: Vec<_> = table.indexes.iter().enumerate().filter(known).map(said).collect();
        self.in_one_go(|| {
            names.iter().try_for_each(|name| self.remove_named(table, name))?;
            change()?;
            for (name, is_constraint, text) in &all {
                for statement in self.dialect.parse(text)? {
                    let ast::Statement::CreateIndex(create) = statement else { continue };
                    let table = self.table_named(&table.full)?;
                    self.create_computed(&Wanted::of(&create), &table, name, *is_constraint)?;
                }
            }
            Ok(())
        })
    }
}

fn is_descending(key: &ast::OrderByExpr) -> bool {
    key.options.sort == Some(ast::OrderBySort::Desc)
}

/// The columns of an index that nobody sees.
pub(crate) fn hidden_fields(table: &Table, index: &Index) -> Vec<usize> {
    let fields = index.parts.iter().map(|(field, ..)| *field);
    fields.filter(|field| table.columns[*field].is_hidden && table.columns[*field].generated.is_some()).collect()
}

/// Functions that give something else another time, in PostgreSQL's words for indexes.
fn not_fixed(error: Error, what: &str) -> Error {
    match error.condition() {
        Condition::Recursion => Error::new(Condition::Recursion, what),
        Condition::Unsupported if error.to_string().contains("disallowed function") => {
            Error::new(Condition::Recursion, what)
        }
        _ => error,
    }
}

impl Ddl<'_> {
    /// Some value of a type, as text. None: it has none that are kept in indexes.
    fn instead_of_null(&self, ty: Type) -> Option<String> {
        if ty.base == Base::Enum {
            let user = crate::user_types::by_id(self.database, ty.length)?;
            let first = user.labels()?.first()?;
            return Some(format!("'{}'", first.text.replace('\'', "''")));
        }
        some_value(ty).map(str::to_string)
    }
}

/// A value of a type, as text.
fn some_value(ty: Type) -> Option<&'static str> {
    match ty.base {
        _ if ty.is_number() => Some("0"),
        Base::Text => Some("''"),
        Base::Bool => Some("false"),
        Base::Bytes => Some("'\\x'"),
        Base::Time | Base::TimeTz => Some("'00:00'"),
        Base::Json if !ty.is_plain_json() => Some("'null'"),
        Base::Date | Base::Timestamp | Base::TimestampTz => Some("'2000-01-01'"),
        Base::Inet | Base::Cidr => Some("'0.0.0.0/0'"),
        Base::Macaddr | Base::Macaddr8 => Some("'00:00:00:00:00:00'"),
        _ if ty.is_range() => Some("'empty'"),
        Base::Uuid => Some("'00000000-0000-0000-0000-000000000000'"),
        _ => None,
    }
}

/// What WITH says of an index, as PostgreSQL keeps it. Errors: it has no such parameter.
fn option_of_index(option: &ast::Expr) -> Result<String> {
    let text = option.to_string();
    let (name, value) = text.split_once(" = ").unwrap_or((&text, "true"));
    match name {
        "fillfactor"
        | "deduplicate_items"
        | "buffering"
        | "fastupdate"
        | "gin_pending_list_limit"
        | "pages_per_range"
        | "autosummarize" => Ok(format!("{name}={}", value.trim_matches('\''))),
        _ => {
            let what = format!("unrecognized parameter \"{name}\"");
            Err(Error::new(Condition::InvalidArgument, what))
        }
    }
}
