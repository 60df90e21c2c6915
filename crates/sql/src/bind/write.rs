//! INSERT, REPLACE, UPDATE, DELETE.

use super::from::conjuncts;
use super::{Binder, Bound, Output, Scope, TableUse};
use crate::cast::Strictness;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{Expr, Slot};
use crate::plan::Plan;
use crate::table::Table;
use crate::types::Base;
use crate::value::Value;
use sqlparser::ast;
use std::rc::Rc;
use tuple::IndexId;

/// The hint that says IGNORE in a DELETE of MySQL's; no text has it, for there is a space in it.
pub(crate) const PASSES_OVER: &str = "passes over";

/// A statement that changes rows of a table.
pub(crate) struct Write {
    pub(crate) table: Rc<Table>,
    pub(crate) change: Change,
    /// RETURNING: columns of the new or removed rows, what is computed of them, and the result's columns.
    pub(crate) returning: Option<Returning>,
}

/// What is handed back of each changed row.
pub(crate) struct Returning {
    pub(crate) fields: Vec<(u32, Slot)>,
    pub(crate) columns: Vec<(Slot, Expr)>,
    pub(crate) outputs: Vec<Output>,
}

/// What becomes of the rows.
pub(crate) enum Change {
    Insert {
        /// Gives the rows; `values` are computed of each, one for each column.
        source: Plan,
        values: Vec<Expr>,
        on_conflict: OnConflict,
        /// At most one row.
        is_single: bool,
    },
    Update {
        source: Plan,
        /// Where the whole old row is.
        row: Slot,
        sets: Vec<(usize, Expr)>,
        /// So many of them, the last, nobody has said: they are of rows that change otherwise.
        implied: usize,
        /// A row may come several times, and is changed once.
        is_joined: bool,
        /// UPDATE IGNORE: rows stay as they are that would break a rule.
        passes_over: bool,
        /// Rows of other tables that are changed with it.
        others: Vec<OtherUpdate>,
    },
    Delete {
        source: Plan,
        row: Slot,
        /// Rows of other tables that go with it.
        others: Vec<(Rc<Table>, Slot)>,
        /// DELETE IGNORE: rows stay that others name.
        passes_over: bool,
    },
}

/// Rows of one more table of an UPDATE: as of [`Change::Update`].
pub(crate) struct OtherUpdate {
    pub(crate) table: Rc<Table>,
    pub(crate) row: Slot,
    pub(crate) sets: Vec<(usize, Expr)>,
    pub(crate) implied: usize,
}

/// What happens if a key of a new row is there already.
pub(crate) enum OnConflict {
    /// The statement is refused.
    Refuse,
    /// The row is left out. None: whatever the key is.
    Ignore(Option<IndexId>),
    /// The rows that have them leave.
    Replace,
    /// The row that is there is changed.
    Update(Box<Changed>),
}

impl OnConflict {
    /// True for INSERT IGNORE of MySQL: rows that would break a rule are left out.
    pub(crate) fn is_lenient(&self, dialect: Dialect) -> bool {
        dialect == Dialect::Mysql && matches!(self, OnConflict::Ignore(None))
    }
}

/// The row that is there already, and what becomes of it.
pub(crate) struct Changed {
    pub(crate) index_id: Option<IndexId>,
    /// Places of the row that is there.
    pub(crate) fields: Vec<(u32, Slot)>,
    /// Places of the one that would have come.
    pub(crate) new_fields: Vec<(u32, Slot)>,
    pub(crate) sets: Vec<(usize, Expr)>,
    /// As of [`Change::Update`].
    pub(crate) implied: usize,
    pub(crate) filter: Option<Expr>,
}

impl Binder<'_> {
    fn writable(&self, name: &ast::ObjectName) -> Result<Rc<Table>> {
        let name = self.dialect.object_name(name)?;
        let table = self.find_table(&name)?;
        self.writable_table(&table)?;
        Ok(table)
    }

    fn writable_table(&self, table: &Table) -> Result<()> {
        let is_view = crate::views::of(self.database, &table.space).is_some();
        if is_view || matches!(table.space.kind, database::SpaceKind::View { .. }) {
            let what = format!("cannot modify {} because it is a view", table.name);
            return Err(Error::new(Condition::NotUpdatable, what));
        }
        Ok(())
    }

    fn column_of(&self, table: &Table, name: &str) -> Result<usize> {
        table.column(self.dialect, name).ok_or_else(|| {
            let message = match self.dialect {
                Dialect::Tarantool => format!("Field '{name}' was not found in space '{}' format", table.name),
                Dialect::Mysql => format!("Unknown column '{name}' in 'field list'"),
                Dialect::Postgres => format!("column \"{name}\" of relation \"{}\" does not exist", table.name),
            };
            Error::new(Condition::UndefinedColumn, message).tarantool(database::ErrorCode::NoSuchFieldNameInSpace)
        })
    }

    /// The value as one that the column takes.
    fn assigned(&self, table: &Table, number: usize, bound: Bound) -> Result<Expr> {
        if self.dialect == Dialect::Mysql {
            return Ok(self.assigned_in_mysql(table, number, bound));
        }
        let column = &table.columns[number];
        let fits = match (self.dialect, bound.ty.base, column.ty.base) {
            (_, _, Base::Any | Base::Scalar) | (_, Base::Unknown | Base::Any | Base::Scalar | Base::Number, _) => true,
            (Dialect::Mysql, ..) => true,
            _ if bound.ty.is_number() && column.ty.is_number() || bound.ty.is_moment() && column.ty.is_moment() => true,
            (_, from, to) if from == to => true,
            (Dialect::Tarantool, ..) => true,
            (Dialect::Postgres, _, Base::Text) => true,
            (Dialect::Postgres, Base::Text, Base::Json) => true,
            _ => false,
        };
        if !fits {
            let what =
                format!("column \"{}\" is of type {} but expression is of type {}", column.name, column.ty, bound.ty);
            return Err(
                Error::new(Condition::TypeMismatch, what).hint("You will need to rewrite or cast the expression.")
            );
        }
        Ok(self.cast_to(bound, column.ty, Strictness::Assignment)?.expr)
    }

    /// What stands in a column that a row says nothing of.
    pub(super) fn default_of(&self, table: &Table, number: usize) -> Result<Expr> {
        let Some(text) = &table.columns[number].default else {
            return match self.dialect {
                Dialect::Mysql => self.implicit_default(table, number),
                _ => Ok(Expr::Const(Value::Null)),
            };
        };
        self.expression_of(table, number, text)
    }

    /// What a text gives as a value of a column.
    fn expression_of(&self, table: &Table, number: usize, text: &str) -> Result<Expr> {
        let parsed = self.dialect.parse(&format!("SELECT {text}"))?;
        let Some(ast::Statement::Query(query)) = parsed.into_iter().next() else {
            return Err(Error::new(Condition::Syntax, format!("the default '{text}' is no expression")));
        };
        let ast::SetExpr::Select(select) = *query.body else {
            return Err(Error::new(Condition::Syntax, format!("the default '{text}' is no expression")));
        };
        match select.projection.into_iter().next() {
            Some(ast::SelectItem::UnnamedExpr(expr)) => {
                let bound = self.bind(&Scope::new(None), &expr)?;
                // Whoever makes the table would read with the rights of whoever writes to it.
                let mut has_query = false;
                bound.expr.walk(&mut |part| has_query |= matches!(part, Expr::Subquery(_)));
                if has_query {
                    let what =
                        format!("cannot use a query in the default of column \"{}\"", table.columns[number].name);
                    return Err(Error::new(Condition::Unsupported, what));
                }
                self.assigned(table, number, bound)
            }
            _ => Err(Error::new(Condition::Syntax, format!("the default '{text}' is no expression"))),
        }
    }

    fn bind_returning(
        &self,
        table: &Rc<Table>,
        alias: &str,
        items: Option<&[ast::SelectItem]>,
    ) -> Result<Option<Returning>> {
        let Some(items) = items else { return Ok(None) };
        let (used, relation) = self.use_table(Rc::clone(table), alias.to_string());
        let mut scope = Scope::new(None);
        scope.relations.push(relation);
        let mut columns = Vec::new();
        let mut outputs = Vec::new();
        for (name, bound) in self.bind_projection(&scope, items)? {
            let slot = self.new_slot();
            if let crate::expr::Expr::Slot(of) = bound.expr {
                self.note_copy(of, slot);
            }
            columns.push((slot, bound.expr));
            outputs.push(Output { name, slot, ty: bound.ty, collation: bound.collation, item: None });
        }
        Ok(Some(Returning { fields: used.fields(), columns, outputs }))
    }

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
        let source = match (&insert.source, insert.assignments.is_empty()) {
            (Some(query), _) => {
                let (source, single) =
                    self.bind_source(&table, query, &columns, !insert.columns.is_empty(), &mut values)?;
                is_single = single;
                source
            }
            (None, false) => {
                let scope = Scope::new(None);
                for (number, value) in self.bind_sets(&table, &scope, &insert.assignments)? {
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

    fn column_twice(&self, column: &str) -> Error {
        let what = match self.dialect {
            Dialect::Mysql => format!("Column '{column}' specified twice"),
            _ => format!("column \"{column}\" specified more than once"),
        };
        Error::new(Condition::ColumnTwice, what)
    }

    /// Errors: MySQL's UPDATE sets a column to the DEFAULT that it has not; whether a row gets it is not asked.
    fn check_defaults(&self, table: &Table, sets: &[ast::Assignment]) -> Result<()> {
        for set in sets.iter().filter(|set| self.dialect == Dialect::Mysql && is_default(&set.value)) {
            let ast::AssignmentTarget::ColumnName(name) = &set.target else { continue };
            let number = self.column_of(table, &self.dialect.object_name(name)?)?;
            let column = &table.columns[number];
            let is_generated = table.generated.is_some_and(|(field, _)| field == number);
            if column.default.is_none() && !column.is_nullable && !is_generated {
                let what = format!("Field '{}' doesn't have a default value", column.name);
                return Err(Error::new(Condition::NoDefault, what));
            }
        }
        Ok(())
    }

    /// The rows to put in: places and casts for their columns. Returns the plan, and true if it is one row.
    fn bind_source(
        &self,
        table: &Rc<Table>,
        query: &ast::Query,
        columns: &[usize],
        are_listed: bool,
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
                let may_be_short = self.dialect == Dialect::Postgres && !are_listed;
                if row.len() > columns.len() || row.len() < columns.len() && !may_be_short {
                    return Err(wrong_count(row.len()));
                }
                let mut exprs = Vec::with_capacity(columns.len());
                for (number, expr) in columns.iter().zip(row) {
                    exprs.push(match expr {
                        expr if is_default(expr) => self.default_of(table, *number)?,
                        expr => match self.assigned(table, *number, self.bind(&scope, expr)?) {
                            Err(error) if self.dialect == Dialect::Postgres && is_of_size(&error) => {
                                too_large = too_large.or(Some(error));
                                Expr::Const(Value::Null)
                            }
                            assigned => self.refusing_null(table, *number, assigned?),
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
        let query = self.bind_query(query, None)?;
        let may_be_short = self.dialect == Dialect::Postgres && !are_listed;
        if query.outputs.len() > columns.len() || query.outputs.len() < columns.len() && !may_be_short {
            return Err(wrong_count(query.outputs.len()));
        }
        for (number, output) in columns.iter().zip(&query.outputs) {
            values[*number] = Some(self.assigned(table, *number, Bound::new(Expr::Slot(output.slot), output.ty))?);
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

    fn conflict_index(&self, table: &Table, target: &ast::ConflictTarget) -> Result<IndexId> {
        let found = match target {
            ast::ConflictTarget::OnConstraint(name) => {
                let name = self.dialect.object_name(name)?;
                table.indexes.iter().find(|index| index.is_unique && self.dialect.is_same(&index.name, &name))
            }
            ast::ConflictTarget::Columns { columns, .. } => {
                let mut wanted = Vec::new();
                for column in columns {
                    wanted.push(self.column_of(table, &self.dialect.fold(column))?);
                }
                wanted.sort_unstable();
                table.indexes.iter().find(|index| {
                    let mut fields: Vec<usize> = index.parts.iter().map(|part| part.0).collect();
                    fields.sort_unstable();
                    index.is_unique && fields == wanted
                })
            }
        };
        found.map(|index| index.id).ok_or_else(|| {
            let what = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
            Error::new(Condition::InvalidTable, what)
        })
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
        let mut sets = self.bind_sets(table, &scope, sets)?;
        let implied = self.add_implied(table, &mut sets)?;
        let filter = filter.map(|filter| self.condition(&scope, filter)).transpose()?;
        let changed = Changed { index_id, fields: used.fields(), new_fields: new.fields(), sets, implied, filter };
        Ok(OnConflict::Update(Box::new(changed)))
    }

    fn bind_sets(&self, table: &Rc<Table>, scope: &Scope<'_>, sets: &[ast::Assignment]) -> Result<Vec<(usize, Expr)>> {
        let mut found: Vec<(usize, Expr)> = Vec::with_capacity(sets.len());
        let mut add = |name: &ast::ObjectName, value: &ast::Expr| -> Result<()> {
            let number = self.column_of(table, &self.dialect.object_name(name)?)?;
            if found.iter().any(|(other, _)| *other == number) && self.dialect != Dialect::Mysql {
                let what = format!("multiple assignments to same column \"{}\"", table.columns[number].name);
                let condition =
                    if self.dialect == Dialect::Postgres { Condition::Syntax } else { Condition::DuplicateColumn };
                return Err(Error::new(condition, what));
            }
            let value = match is_default(value) {
                true => self.default_of(table, number)?,
                false => self.assigned(table, number, self.bind(scope, value)?)?,
            };
            found.push((number, value));
            Ok(())
        };
        for set in sets {
            match (&set.target, &set.value) {
                (ast::AssignmentTarget::ColumnName(name), value) => add(name, value)?,
                (ast::AssignmentTarget::Tuple(names), ast::Expr::Tuple(values)) if names.len() == values.len() => {
                    for (name, value) in names.iter().zip(values) {
                        add(name, value)?;
                    }
                }
                (ast::AssignmentTarget::Tuple(_), _) => return Err(Error::unsupported(format!("'SET {set}'"))),
            }
        }
        if self.dialect == Dialect::Mysql && found.len() > 1 {
            self.set_in_turn(table, scope, &mut found);
        }
        Ok(found)
    }

    /// MySQL sets columns one behind the other: who reads one that was set before gets what it was set to.
    fn set_in_turn(&self, table: &Rc<Table>, scope: &Scope<'_>, sets: &mut [(usize, Expr)]) {
        let used =
            scope.relations.iter().flat_map(|relation| relation.columns.first()).find_map(|column| {
                match &column.place {
                    super::Place::Field(used, _) if Rc::ptr_eq(&used.table, table) => Some(used),
                    _ => None,
                }
            });
        let Some(used) = used else { return };
        // Where each column that was set stands now.
        let mut places: Vec<(usize, Slot)> = Vec::new();
        for at in 0..sets.len() - 1 {
            let number = sets[at].0;
            let known = places.iter().rev().find(|(other, _)| *other == number).map(|(_, slot)| *slot);
            let Some(old) = known.or(used.slots.borrow()[number]) else { continue };
            let mut is_read = false;
            for (_, later) in &sets[at + 1..] {
                later.walk(&mut |part| is_read |= matches!(part, Expr::Slot(slot) if *slot == old));
            }
            if !is_read {
                continue;
            }
            let new = self.new_slot();
            places.push((number, new));
            let value = std::mem::replace(&mut sets[at].1, Expr::Const(Value::Null));
            sets[at].1 = Expr::Keep(new, Box::new(value));
            for (_, later) in &mut sets[at + 1..] {
                let value = std::mem::replace(later, Expr::Const(Value::Null));
                *later = value.replaced(&mut |part| match part {
                    Expr::Slot(slot) if *slot == old => Some(Expr::Slot(new)),
                    _ => None,
                });
            }
        }
    }

    /// Adds what ON UPDATE of columns says that are not set. Returns how many they are.
    fn add_implied(&self, table: &Rc<Table>, sets: &mut Vec<(usize, Expr)>) -> Result<usize> {
        let before = sets.len();
        for (number, column) in table.columns.iter().enumerate() {
            if let Some(text) = &column.on_update
                && !sets[..before].iter().any(|(set, _)| *set == number)
            {
                sets.push((number, self.expression_of(table, number, text)?));
            }
        }
        Ok(sets.len() - before)
    }

    /// The scan of UPDATE and DELETE: rows of the tables that fulfil the condition, and where the whole rows of those go that are changed.
    fn bind_target(
        &self,
        mut scope: Scope<'_>,
        (tree, targets): (super::from::Tree, &[Rc<TableUse>]),
        more: &[ast::TableWithJoins],
        selection: Option<&ast::Expr>,
        (order_by, limit): (&[ast::OrderByExpr], Option<&ast::Expr>),
        sets: &mut dyn FnMut(&Scope<'_>) -> Result<()>,
    ) -> Result<Plan> {
        let is_limited = !order_by.is_empty() || limit.is_some();
        if is_limited && self.dialect == Dialect::Postgres {
            return Err(Error::new(Condition::Syntax, "ORDER BY and LIMIT of UPDATE and DELETE"));
        }
        for target in targets {
            target.row.set(Some(self.new_slot()));
        }
        let others = self.bind_from(&mut scope, more)?;
        let mut conditions = Vec::new();
        if let Some(selection) = selection {
            conjuncts(self.condition(&scope, selection)?, &mut conditions);
        }
        sets(&scope)?;
        let mut keys = Vec::new();
        for key in order_by {
            let bound = self.bind(&scope, &key.expr)?;
            let is_descending = key.options.sort == Some(ast::OrderBySort::Desc);
            keys.push((bound, is_descending));
        }
        let limit = limit.map(|limit| self.bind(&scope, limit)).transpose()?;
        let tree = super::from::Tree::Inner(vec![tree, others], Vec::new());
        let plan = self.plan_tree(tree, conditions).0;
        Ok(self.ordered(plan, keys, limit.map(|limit| limit.expr)))
    }

    /// UPDATE. Errors: names and types that do not fit.
    pub(crate) fn bind_update(&self, update: &ast::Update) -> Result<Write> {
        let passes_over = match &update.or {
            None | Some(ast::SqliteOnConflict::Abort) => false,
            Some(ast::SqliteOnConflict::Ignore) => true,
            Some(other) => return Err(Error::unsupported(format!("UPDATE OR {other}"))),
        };
        self.is_lenient.set(passes_over);
        let more: &[ast::TableWithJoins] = match &update.from {
            None => &[],
            Some(ast::UpdateTableFromKind::BeforeSet(from) | ast::UpdateTableFromKind::AfterSet(from)) => from,
        };
        let is_joined = !update.table.joins.is_empty();
        let mut scope = Scope::new(None);
        let (table, alias, tree, mut targets) = match is_joined {
            false => {
                let (table, alias) = self.target_of(&update.table)?;
                let (used, relation) = self.use_table(Rc::clone(&table), alias.clone());
                scope.relations.push(relation);
                let tree = super::from::Tree::Table(Rc::clone(&used));
                (table, alias, tree, vec![(used, update.assignments.clone())])
            }
            true => {
                let tree = self.bind_from(&mut scope, std::slice::from_ref(&update.table))?;
                let targets = self.updated_tables(&scope, &update.assignments)?;
                let Some((used, _)) = targets.first() else {
                    return Err(Error::new(Condition::Syntax, "an UPDATE sets something"));
                };
                (Rc::clone(&used.table), used.alias.clone(), tree, targets)
            }
        };
        let rows: Vec<Rc<TableUse>> = targets.iter().map(|(used, _)| Rc::clone(used)).collect();
        let mut all_sets = Vec::with_capacity(targets.len());
        let source = self.bind_target(
            scope,
            (tree, &rows),
            more,
            update.selection.as_ref(),
            (&update.order_by, update.limit.as_ref()),
            &mut |scope| {
                for (used, sets) in &targets {
                    self.check_defaults(&used.table, sets)?;
                    let mut sets = self.bind_sets(&used.table, scope, sets)?;
                    let implied = self.add_implied(&used.table, &mut sets)?;
                    all_sets.push((sets, implied));
                }
                Ok(())
            },
        )?;
        let returning = self.bind_returning(&table, &alias, update.returning.as_deref())?;
        let is_joined = is_joined || !more.is_empty();
        let mut all_sets = all_sets.into_iter();
        let (sets, implied) = all_sets.next().unwrap_or_default();
        let row_of = |used: &TableUse| used.row.get().unwrap_or_default();
        let row = row_of(&rows[0]);
        let others = targets.drain(1..).zip(all_sets).map(|((used, _), (sets, implied))| OtherUpdate {
            table: Rc::clone(&used.table),
            row: row_of(&used),
            sets,
            implied,
        });
        let others = others.collect();
        let change = Change::Update { source, row, sets, implied, is_joined, passes_over, others };
        Ok(Write { table, change, returning })
    }

    /// The tables whose columns are set, and what is set of each. Errors: a column that none has, or several.
    fn updated_tables(
        &self,
        scope: &Scope<'_>,
        sets: &[ast::Assignment],
    ) -> Result<Vec<(Rc<TableUse>, Vec<ast::Assignment>)>> {
        let mut found: Vec<(Rc<TableUse>, Vec<ast::Assignment>)> = Vec::new();
        for set in sets {
            let ast::AssignmentTarget::ColumnName(name) = &set.target else {
                return Err(Error::unsupported(format!("'SET {set}'")));
            };
            let column = self.dialect.object_name(name)?;
            let qualifier = match name.0.as_slice() {
                [.., ast::ObjectNamePart::Identifier(table), _] => Some(self.dialect.fold(table)),
                _ => None,
            };
            let fits = |relation: &&super::Relation| {
                let is_named = qualifier.as_ref().is_none_or(|name| self.dialect.is_same(&relation.alias, name));
                is_named && relation.columns.iter().any(|known| self.dialect.is_same(&known.name, &column))
            };
            let mut relations = scope.relations.iter().filter(fits);
            let Some(relation) = relations.next() else {
                return Err(self.no_such_column(scope, qualifier.as_deref(), &column));
            };
            if relations.next().is_some() {
                return Err(self.ambiguous(&column));
            }
            let used = self.table_of(relation)?;
            match found.iter_mut().find(|(other, _)| Rc::ptr_eq(other, &used)) {
                Some((_, sets)) => sets.push(set.clone()),
                None => found.push((used, vec![set.clone()])),
            }
        }
        Ok(found)
    }

    /// The table that a relation is. Errors: it is none.
    fn table_of(&self, relation: &super::Relation) -> Result<Rc<TableUse>> {
        match relation.columns.first().map(|column| &column.place) {
            Some(super::Place::Field(used, _)) => {
                self.writable_table(&used.table)?;
                Ok(Rc::clone(used))
            }
            _ => Err(Error::new(
                Condition::NotUpdatable,
                format!("The target table {} of the UPDATE is not updatable", relation.alias),
            )),
        }
    }

    fn target_of(&self, target: &ast::TableWithJoins) -> Result<(Rc<Table>, String)> {
        match &target.relation {
            ast::TableFactor::Table { name, alias, args: None, .. } if target.joins.is_empty() => {
                let table = self.writable(name)?;
                let alias = alias.as_ref().map_or_else(|| table.name.clone(), |alias| self.dialect.fold(&alias.name));
                Ok((table, alias))
            }
            _ => Err(Error::unsupported(format!("changing '{target}'"))),
        }
    }

    /// DELETE. Errors: names and types that do not fit.
    pub(crate) fn bind_delete(&self, delete: &ast::Delete) -> Result<Write> {
        let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) = &delete.from;
        let order = (delete.order_by.as_slice(), delete.limit.as_ref());
        let passes_over = delete.optimizer_hints.iter().any(|hint| hint.prefix == PASSES_OVER);
        self.is_lenient.set(passes_over);
        // `DELETE a, b FROM ...` and `DELETE FROM a, b USING ...` name tables of a join.
        let is_mysql = self.dialect == Dialect::Mysql;
        let named: Vec<ast::ObjectName> = match (&delete.using, delete.tables.is_empty()) {
            (Some(_), _) if is_mysql => from.iter().filter_map(|item| table_name(&item.relation)).collect(),
            (None, false) if is_mysql => delete.tables.clone(),
            _ => Vec::new(),
        };
        if !named.is_empty() {
            let from = delete.using.as_deref().unwrap_or(from);
            return self.bind_joined_delete(&named, from, delete.selection.as_ref(), order, passes_over);
        }
        let [target] = from.as_slice() else { return Err(Error::unsupported("DELETE from several tables")) };
        if !delete.tables.is_empty() {
            return Err(Error::unsupported("DELETE from several tables"));
        }
        let (table, alias) = self.target_of(target)?;
        let (used, relation) = self.use_table(Rc::clone(&table), alias.clone());
        let mut scope = Scope::new(None);
        scope.relations.push(relation);
        let more: &[ast::TableWithJoins] = delete.using.as_deref().unwrap_or(&[]);
        let tree = super::from::Tree::Table(Rc::clone(&used));
        let targets = [Rc::clone(&used)];
        let selection = delete.selection.as_ref();
        let source = self.bind_target(scope, (tree, &targets), more, selection, order, &mut |_| Ok(()))?;
        let returning = self.bind_returning(&table, &alias, delete.returning.as_deref())?;
        let row = used.row.get().unwrap_or_default();
        Ok(Write { table, change: Change::Delete { source, row, others: Vec::new(), passes_over }, returning })
    }

    fn bind_joined_delete(
        &self,
        named: &[ast::ObjectName],
        from: &[ast::TableWithJoins],
        selection: Option<&ast::Expr>,
        order: (&[ast::OrderByExpr], Option<&ast::Expr>),
        passes_over: bool,
    ) -> Result<Write> {
        let mut scope = Scope::new(None);
        let tree = self.bind_from(&mut scope, from)?;
        let mut targets: Vec<Rc<TableUse>> = Vec::new();
        for name in named {
            let name = self.dialect.object_name(name)?;
            let relation = scope.relations.iter().find(|relation| self.dialect.is_same(&relation.alias, &name));
            let relation = relation.ok_or_else(|| {
                Error::new(Condition::UnknownTable, format!("Unknown table '{name}' in MULTI DELETE"))
            })?;
            targets.push(self.table_of(relation)?);
        }
        let source = self.bind_target(scope, (tree, &targets), &[], selection, order, &mut |_| Ok(()))?;
        let mut rows = targets.iter().map(|used| (Rc::clone(&used.table), used.row.get().unwrap_or_default()));
        let Some((table, row)) = rows.next() else { return Err(Error::new(Condition::Syntax, "a table is wanted")) };
        let others = rows.collect();
        Ok(Write { table, change: Change::Delete { source, row, others, passes_over }, returning: None })
    }

    /// A query as a statement of its own.
    pub(crate) fn bind_statement(&self, query: &ast::Query) -> Result<super::Query> {
        let bound = self.bind_query(query, None)?;
        match self.dialect {
            crate::dialect::Dialect::Postgres => self.show_objects(bound, &query.body),
            _ => Ok(bound),
        }
    }
}

fn table_name(factor: &ast::TableFactor) -> Option<ast::ObjectName> {
    match factor {
        ast::TableFactor::Table { name, .. } => Some(name.clone()),
        _ => None,
    }
}

impl Binder<'_> {
    /// INSERT, UPDATE or DELETE within a query. Errors: as of those.
    pub(super) fn bind_write(&self, statement: &ast::Statement) -> Result<Write> {
        match statement {
            ast::Statement::Insert(insert) => self.bind_insert(insert),
            ast::Statement::Update(update) => self.bind_update(update),
            ast::Statement::Delete(delete) => self.bind_delete(delete),
            other => Err(Error::unsupported(format!("'{other}' within a query"))),
        }
    }
}

impl Write {
    /// What gives the rows.
    pub(crate) fn source(&self) -> &Plan {
        match &self.change {
            Change::Insert { source, .. } | Change::Update { source, .. } | Change::Delete { source, .. } => source,
        }
    }

    /// Has the rows found by another plan, which is made of the one that finds them.
    pub(crate) fn within(&mut self, around: impl FnOnce(Plan) -> Plan) {
        match &mut self.change {
            Change::Insert { source, is_single, .. } => {
                *is_single = false;
                *source = around(std::mem::replace(source, Plan::Nothing));
            }
            Change::Update { source, .. } | Change::Delete { source, .. } => {
                *source = around(std::mem::replace(source, Plan::Nothing));
            }
        }
    }

    /// The columns of the result; none if only the number of rows is told.
    pub(crate) fn outputs(&self) -> &[Output] {
        self.returning.as_ref().map_or(&[], |returning| &returning.outputs)
    }

    /// True if the statement changes one row at most, and nothing can come between reading and changing it.
    pub(crate) fn is_alone(&self) -> bool {
        if self.table.space.may_wait() || self.returning.is_some() || self.table.space.has_triggers() {
            return false;
        }
        match &self.change {
            Change::Insert { is_single, on_conflict, .. } => *is_single && matches!(on_conflict, OnConflict::Refuse),
            Change::Update { passes_over: true, .. } | Change::Delete { passes_over: true, .. } => false,
            Change::Update { source, sets, .. } => {
                let key = self.table.primary_key();
                let keeps_key = !sets.iter().any(|(number, _)| key.iter().any(|(field, ..)| field == number));
                keeps_key && matches!(source, Plan::Scan(scan) if scan.is_unique)
            }
            Change::Delete { source, others, .. } => {
                others.is_empty() && matches!(source, Plan::Scan(scan) if scan.is_unique)
            }
        }
    }
}

/// True for the word DEFAULT in the place of a value.
fn is_default(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Identifier(ident)
        if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"))
}

/// The first column that stands twice among others.
fn repeated(columns: &[usize]) -> Option<usize> {
    columns.iter().enumerate().find(|(at, column)| columns[..*at].contains(column)).map(|(_, column)| *column)
}

/// True for values that are too long or too large for what a type says of them.
fn is_of_size(error: &Error) -> bool {
    matches!(error.condition(), Condition::NumericOutOfRange | Condition::TooLong)
}
