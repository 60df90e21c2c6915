//! INSERT: where its rows come from, and what happens if a key is there already.

use super::identity::{self, Given};
use super::implied::implies;
use super::keyed::words_of;
use super::write::{Change, Changed, OnConflict, Write, is_default};
use super::{Binder, Bound, Scope};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{Expr, Slot};
use crate::plan::Plan;
use crate::table::Table;
use crate::types::Type;
use crate::value::Value;
use crate::written::written;
use sqlparser::ast;
use std::rc::Rc;
use tuple::IndexId;

impl Binder<'_> {
    /// INSERT and REPLACE. Errors: names and types that do not fit.
    pub(crate) fn bind_insert(&self, insert: &ast::Insert) -> Result<Write> {
        let ast::TableObject::TableName(name) = &insert.table else {
            return Err(Error::unsupported(format!("'INSERT INTO {}'", insert.table)));
        };
        let table = self.writable(name)?;
        self.is_lenient.set(insert.ignore);
        let mut columns = Vec::new();
        for name in &insert.columns {
            columns.push(self.column_of(&table, &self.dialect.object_name(name)?)?);
        }
        if let Some(twice) = repeated(&columns) {
            // MySQL counts the values first.
            let values = insert.source.as_ref().and_then(|query| match &*query.body {
                ast::SetExpr::Values(listed) => listed.rows.first().map(|row| row.content.len()),
                _ => None,
            });
            return Err(match values.filter(|count| self.dialect == Dialect::Mysql && *count != columns.len()) {
                Some(count) => self.wrong_count(&table, &columns, true, count),
                None => self.column_twice(&table.columns[twice].name),
            });
        }
        if columns.is_empty() {
            columns = table.visible().collect();
        }
        let mut values: Vec<Option<Expr>> = vec![None; table.columns.len()];
        let is_single;
        let passes_over = self.dialect == Dialect::Mysql && insert.ignore;
        let given = |number: usize| match table.columns[number].generated.is_some() {
            true if passes_over => Given::PassedOver,
            _ => identity::given(&table, number, insert.overriding.as_ref()),
        };
        let source = match (&insert.source, insert.assignments.is_empty()) {
            (Some(query), _) => {
                let (source, single) =
                    self.bind_source(&table, query, (&columns, !insert.columns.is_empty()), &given, &mut values)?;
                is_single = single;
                source
            }
            (None, false) => {
                let scope = Scope::new(None);
                for (number, value) in self.bind_sets(&table, &scope, &insert.assignments.iter().collect::<Vec<_>>())? {
                    if values[number].replace(value).is_some() {
                        return Err(self.column_twice(&table.columns[number].name));
                    }
                }
                is_single = true;
                Plan::One
            }
            (None, true) => {
                is_single = true;
                Plan::One
            }
        };
        let mut all = Vec::with_capacity(values.len());
        for (number, value) in values.into_iter().enumerate() {
            all.push(match value {
                Some(value) => value,
                None => self.default_of(&table, number)?,
            });
        }
        let alias =
            insert.table_alias.as_ref().map_or_else(|| table.name.clone(), |alias| self.dialect.fold(&alias.alias));
        let on_conflict = self.bind_on_conflict(insert, &table, &alias)?;
        let returning = self.bind_returning(&table, &alias, insert.returning.as_deref())?;
        Ok(Write { table, change: Change::Insert { source, values: all, on_conflict, is_single }, returning })
    }

    /// The number of values is not that of the columns.
    fn wrong_count(&self, table: &Table, columns: &[usize], are_listed: bool, count: usize) -> Error {
        let message = match self.dialect {
            Dialect::Tarantool if are_listed => format!("{count} values for {} columns", columns.len()),
            Dialect::Tarantool => {
                format!("table {} has {} columns but {count} values were supplied", table.name, columns.len())
            }
            Dialect::Mysql => "Column count doesn't match value count at row 1".to_string(),
            Dialect::Postgres if count > columns.len() => "INSERT has more expressions than target columns".to_string(),
            Dialect::Postgres => "INSERT has more target columns than expressions".to_string(),
        };
        Error::new(Condition::ColumnCount, message)
    }

    /// The rows to put in: places and casts for their columns. Returns the plan, and true if it is one row.
    fn bind_source(
        &self,
        table: &Rc<Table>,
        query: &ast::Query,
        (columns, are_listed): (&[usize], bool),
        given: &dyn Fn(usize) -> Given,
        values: &mut [Option<Expr>],
    ) -> Result<(Plan, bool)> {
        let wrong_count = |count: usize| self.wrong_count(table, columns, are_listed, count);
        if let ast::SetExpr::Values(listed) = &*query.body
            && query.with.is_none()
            && query.limit_clause.is_none()
            && query.order_by.is_none()
        {
            // Each value on its own: those of a column need not be of one type, and DEFAULT may stand there.
            let slots: Vec<Slot> = columns.iter().map(|_| self.new_slot()).collect();
            let scope = Scope::new(None);
            let mut rows = Vec::with_capacity(listed.rows.len());
            // PostgreSQL reads all literals before it looks how long and how large values are.
            let mut too_large = None;
            for row in &listed.rows {
                let row = &row.content;
                let may_be_short = match self.dialect {
                    Dialect::Postgres => !are_listed,
                    // VALUES () has the default of every column.
                    Dialect::Mysql => !are_listed && row.is_empty(),
                    Dialect::Tarantool => false,
                };
                if row.len() > columns.len() || row.len() < columns.len() && !may_be_short {
                    return Err(wrong_count(row.len()));
                }
                let mut exprs = Vec::with_capacity(columns.len());
                for (number, expr) in columns.iter().zip(row) {
                    exprs.push(match expr {
                        expr if is_default(expr)
                            || given(*number) == Given::PassedOver
                            || self.is_no_value(table, *number, expr) =>
                        {
                            self.default_of(table, *number)?
                        }
                        _ if given(*number) == Given::Refused && self.dialect == Dialect::Mysql => {
                            self.given_to_computed(table, *number)
                        }
                        _ if given(*number) == Given::Refused => return Err(self.refuse_given(table, *number)),
                        expr => match self.assigned(table, *number, self.bind(&scope, expr)?) {
                            Err(error) if self.dialect == Dialect::Postgres && is_of_size(&error) => {
                                too_large = too_large.or(Some(error));
                                Expr::Const(Value::Null)
                            }
                            assigned => {
                                let value = self.refusing_null(table, *number, assigned?);
                                self.check_generated_null(table, *number, &value)?;
                                value
                            }
                        },
                    });
                }
                for number in &columns[row.len()..] {
                    exprs.push(self.default_of(table, *number)?);
                }
                rows.push(exprs);
            }
            if let Some(error) = too_large {
                return Err(error);
            }
            for (number, slot) in columns.iter().zip(&slots) {
                values[*number] = Some(Expr::Slot(*slot));
            }
            let is_single = rows.len() == 1;
            return Ok((Plan::Rows(rows, slots), is_single));
        }
        // A literal without a type has that of its column.
        let literals = self.literals_of(&query.body);
        let query = self.bind_query(query, None)?;
        let may_be_short = self.dialect == Dialect::Postgres && !are_listed;
        if query.outputs.len() > columns.len() || query.outputs.len() < columns.len() && !may_be_short {
            return Err(wrong_count(query.outputs.len()));
        }
        for (at, (number, output)) in columns.iter().zip(&query.outputs).enumerate() {
            match given(*number) {
                Given::Taken => {}
                Given::PassedOver => continue,
                Given::Refused if self.dialect == Dialect::Mysql => {
                    values[*number] = Some(self.given_to_computed(table, *number));
                    continue;
                }
                Given::Refused => return Err(self.refuse_given(table, *number)),
            }
            let ty = if literals.get(at) == Some(&true) { Type::UNKNOWN } else { output.ty };
            values[*number] = Some(self.assigned(table, *number, Bound::new(Expr::Slot(output.slot), ty))?);
        }
        Ok((query.plan, false))
    }

    fn bind_on_conflict(&self, insert: &ast::Insert, table: &Rc<Table>, alias: &str) -> Result<OnConflict> {
        if insert.replace_into {
            return Ok(OnConflict::Replace);
        }
        let new = match &insert.insert_alias {
            Some(aliases) if aliases.col_aliases.as_ref().is_some_and(|listed| !listed.is_empty()) => {
                return Err(Error::unsupported("'AS new(columns)' of INSERT"));
            }
            Some(aliases) => self.dialect.object_name(&aliases.row_alias)?,
            None => "excluded".to_string(),
        };
        if insert.ignore {
            return Ok(OnConflict::Ignore(None));
        }
        if insert.or.is_some() && self.dialect != Dialect::Tarantool {
            return Err(Error::new(Condition::Syntax, "syntax error at or near \"OR\""));
        }
        match insert.or {
            None
            | Some(ast::SqliteOnConflict::Abort | ast::SqliteOnConflict::Fail | ast::SqliteOnConflict::Rollback) => {}
            Some(ast::SqliteOnConflict::Ignore) => return Ok(OnConflict::Ignore(None)),
            Some(ast::SqliteOnConflict::Replace) => return Ok(OnConflict::Replace),
        }
        match &insert.on {
            None => Ok(OnConflict::Refuse),
            Some(ast::OnInsert::DuplicateKeyUpdate(sets)) => self.bind_changed(table, (alias, &new), None, sets, None),
            Some(ast::OnInsert::OnConflict(on)) => {
                let index_id =
                    on.conflict_target.as_ref().map(|target| self.conflict_index(table, target)).transpose()?;
                if self.dialect == Dialect::Postgres
                    && index_id.is_none()
                    && matches!(on.action, ast::OnConflictAction::DoUpdate(_))
                {
                    let what = "ON CONFLICT DO UPDATE requires inference specification or constraint name";
                    return Err(Error::new(Condition::Syntax, what).hint("For example, ON CONFLICT (column_name)."));
                }
                match &on.action {
                    ast::OnConflictAction::DoNothing => Ok(OnConflict::Ignore(index_id)),
                    ast::OnConflictAction::DoUpdate(update) => self.bind_changed(
                        table,
                        (alias, &new),
                        index_id,
                        &update.assignments,
                        update.selection.as_ref(),
                    ),
                }
            }
            Some(_) => Err(Error::unsupported("this form of ON")),
        }
    }

    fn conflict_index(&self, table: &Rc<Table>, target: &ast::ConflictTarget) -> Result<IndexId> {
        let found = match target {
            ast::ConflictTarget::OnConstraint(name) => {
                let name = self.dialect.object_name(name)?;
                let is_it = |index: &&crate::table::Index| {
                    let is_constraint = index.is_constraint || self.dialect != Dialect::Postgres;
                    index.is_unique && is_constraint && self.dialect.is_same(&index.name, &name)
                };
                let found = table.indexes.iter().find(is_it);
                if found.is_none() && self.dialect == Dialect::Postgres {
                    let what = format!("constraint \"{name}\" for table \"{}\" does not exist", self.own_name(table));
                    return Err(Error::new(Condition::UndefinedObject, what));
                }
                found
            }
            ast::ConflictTarget::Columns { columns, predicate } => {
                let mut wanted = Vec::new();
                let mut expressions = Vec::new();
                for column in columns {
                    match column.value.strip_prefix(crate::respell::CONFLICT_KEY) {
                        Some(text) => match self.conflict_key(table, text)? {
                            Key::Column(number) => wanted.push(number),
                            Key::Expression(words) => expressions.push(words),
                        },
                        None => wanted.push(self.column_of(table, &self.dialect.fold(column))?),
                    }
                }
                wanted.sort_unstable();
                wanted.dedup();
                expressions.sort_unstable();
                expressions.dedup();
                if let Some(predicate) = predicate {
                    let (_, relation) = self.use_table(Rc::clone(table), table.name.clone());
                    let mut scope = Scope::new(None);
                    scope.relations.push(relation);
                    self.condition(&scope, predicate)?;
                }
                let is_meant = |condition: &str| {
                    let condition = self.parse_expression(condition);
                    let pair = predicate.as_ref().zip(condition.ok());
                    pair.is_some_and(|(given, condition)| implies(given, &condition))
                };
                table.indexes.iter().find(|index| {
                    let spelled = index.spelled.as_ref();
                    let mut over = Vec::new();
                    let mut fields: Vec<usize> = match spelled {
                        None => index.parts.iter().map(|part| part.0).collect(),
                        Some(spelled) => {
                            let (keys, columns): (Vec<_>, Vec<_>) =
                                spelled.keys.iter().partition(|key| key.is_expression);
                            over.extend(keys.iter().map(|key| words_of(&key.text)));
                            columns.iter().filter_map(|key| table.column(self.dialect, &key.text)).collect()
                        }
                    };
                    fields.sort_unstable();
                    fields.dedup();
                    over.sort_unstable();
                    over.dedup();
                    // One with WHERE is meant by what its own condition follows from.
                    let condition = spelled.and_then(|spelled| spelled.condition.as_ref());
                    index.is_unique
                        && fields == wanted
                        && over == expressions
                        && condition.is_none_or(|condition| is_meant(condition))
                })
            }
        };
        found.map(|index| index.id).ok_or_else(|| {
            let what = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
            Error::new(Condition::InvalidColumnReference, what)
        })
    }

    /// What an expression behind ON CONFLICT means. Errors: names and types that do not fit.
    fn conflict_key(&self, table: &Rc<Table>, text: &str) -> Result<Key> {
        let mut expr = self.parse_expression(text)?;
        while let ast::Expr::Nested(inner) = expr {
            expr = *inner;
        }
        if let ast::Expr::Identifier(column) = &expr {
            return Ok(Key::Column(self.column_of(table, &self.dialect.fold(column))?));
        }
        let (_, relation) = self.use_table(Rc::clone(table), table.name.clone());
        let mut scope = Scope::new(None);
        scope.relations.push(relation);
        self.bind(&scope, &expr)?;
        Ok(Key::Expression(words_of(&written(self.dialect, &expr))))
    }

    fn bind_changed(
        &self,
        table: &Rc<Table>,
        (alias, new_alias): (&str, &str),
        index_id: Option<IndexId>,
        sets: &[ast::Assignment],
        filter: Option<&ast::Expr>,
    ) -> Result<OnConflict> {
        let (used, relation) = self.use_table(Rc::clone(table), alias.to_string());
        let (new, mut excluded) = self.use_table(Rc::clone(table), new_alias.to_string());
        // By its name alone a column is that of the row that is there.
        excluded.columns.iter_mut().for_each(|column| column.is_hidden = true);
        if self.dialect == Dialect::Tarantool {
            excluded.alias = "EXCLUDED".to_string();
        }
        let mut scope = Scope::new(None);
        scope.relations.push(relation);
        scope.relations.push(excluded);
        let mut sets = self.bind_sets(table, &scope, &sets.iter().collect::<Vec<_>>())?;
        let implied = self.add_implied(table, &mut sets)?;
        let filter = filter.map(|filter| self.condition(&scope, filter)).transpose()?;
        let changed = Changed { index_id, fields: used.fields(), new_fields: new.fields(), sets, implied, filter };
        Ok(OnConflict::Update(Box::new(changed)))
    }

    fn column_twice(&self, column: &str) -> Error {
        let what = match self.dialect {
            Dialect::Mysql => format!("Column '{column}' specified twice"),
            _ => format!("column \"{column}\" specified more than once"),
        };
        Error::new(Condition::ColumnTwice, what)
    }
}

/// A key that ON CONFLICT means.
enum Key {
    Column(usize),
    /// Its words.
    Expression(Vec<String>),
}

/// The first column that stands twice among others.
fn repeated(columns: &[usize]) -> Option<usize> {
    columns.iter().enumerate().find(|(at, column)| columns[..*at].contains(column)).map(|(_, column)| *column)
}

/// True for values that are too long or too large for what a type says of them.
fn is_of_size(error: &Error) -> bool {
    matches!(error.condition(), Condition::NumericOutOfRange | Condition::TooLong)
}
