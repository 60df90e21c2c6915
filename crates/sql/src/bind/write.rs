//! INSERT, REPLACE, UPDATE, DELETE.

use super::{Binder, Bound, Output, Scope};
use crate::cast::Strictness;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{Expr, Slot};
use crate::plan::Plan;
use crate::table::Table;
use crate::types::{Base, Type};
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
    /// MERGE: the source gives pairs of rows, of which that of the table may be missing.
    Merge { source: Plan, row: Slot, clauses: Vec<super::MergeClause> },
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
    pub(super) fn writable(&self, name: &ast::ObjectName) -> Result<Rc<Table>> {
        let name = self.dialect.table_name(name)?;
        let table = self.find_table(&name)?;
        self.writable_table(&table)?;
        Ok(table)
    }

    pub(super) fn writable_table(&self, table: &Table) -> Result<()> {
        let is_view = crate::views::of(self.database, &table.space).is_some();
        if is_view || matches!(table.space.kind, database::SpaceKind::View { .. }) {
            let what = format!("cannot modify {} because it is a view", table.name);
            return Err(Error::new(Condition::NotUpdatable, what));
        }
        Ok(())
    }

    pub(super) fn column_of(&self, table: &Table, name: &str) -> Result<usize> {
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
    pub(super) fn assigned(&self, table: &Table, number: usize, bound: Bound) -> Result<Expr> {
        let ty = table.columns[number].ty;
        if self.dialect == Dialect::Mysql && ty.has_labels() {
            return Ok(self.cast_to(bound, ty, Strictness::Assignment)?.expr);
        }
        if self.dialect == Dialect::Mysql {
            let bound = self.time_for(bound, table.columns[number].ty)?;
            let value = self.assigned_in_mysql(table, number, bound);
            return Ok(self.write_stamp(&table.columns[number], value));
        }
        let column = &table.columns[number];
        if !self.may_assign(bound.ty, column.ty) {
            let what =
                format!("column \"{}\" is of type {} but expression is of type {}", column.name, column.ty, bound.ty);
            return Err(
                Error::new(Condition::TypeMismatch, what).hint("You will need to rewrite or cast the expression.")
            );
        }
        let value = self.cast_to(bound, column.ty, Strictness::Assignment)?;
        match &column.domain {
            Some(domain) => Ok(self.in_domain(value, domain)?.expr),
            None => Ok(value.expr),
        }
    }

    /// True if a value of a type becomes one of another where it is assigned.
    pub(super) fn may_assign(&self, given: Type, wanted: Type) -> bool {
        match (self.dialect, given.base, wanted.base) {
            (_, _, Base::Any | Base::Scalar) | (_, Base::Unknown | Base::Any | Base::Scalar | Base::Number, _) => true,
            (Dialect::Mysql, ..) => true,
            _ if given.is_number() && wanted.is_number() || given.is_moment() && wanted.is_moment() => true,
            (_, Base::Enum, Base::Enum) => given == wanted,
            (_, Base::Array, Base::Array) if given.has_labels() || wanted.has_labels() => given == wanted,
            (_, from, to) if from == to => true,
            (Dialect::Tarantool, ..) => true,
            (Dialect::Postgres, _, Base::Text) => true,
            (Dialect::Postgres, Base::Text, Base::Json) => true,
            (Dialect::Postgres, Base::Time, Base::Interval | Base::TimeTz) => true,
            (Dialect::Postgres, Base::TimeTz, Base::Time) | (Dialect::Postgres, Base::TimestampTz, Base::TimeTz) => {
                true
            }
            (Dialect::Postgres, Base::Timestamp | Base::TimestampTz | Base::Interval, Base::Time) => true,
            (Dialect::Postgres, Base::Inet, Base::Cidr) | (Dialect::Postgres, Base::Cidr, Base::Inet) => true,
            (Dialect::Postgres, Base::Macaddr, Base::Macaddr8) | (Dialect::Postgres, Base::Macaddr8, Base::Macaddr) => {
                true
            }
            _ => false,
        }
    }

    /// What stands in a column that a row says nothing of.
    pub(super) fn default_of(&self, table: &Table, number: usize) -> Result<Expr> {
        if table.columns[number].generated.is_some() {
            return Ok(Expr::Const(Value::Null));
        }
        let of_domain = table.columns[number].domain.as_ref().and_then(|user| user.domain()?.default.as_ref());
        let Some(text) = table.columns[number].default.as_ref().or(of_domain) else {
            return match self.dialect {
                Dialect::Mysql => self.implicit_default(table, number),
                // A domain may refuse it.
                _ if table.columns[number].domain.is_some() => {
                    self.assigned(table, number, Bound::new(Expr::Const(Value::Null), Type::UNKNOWN))
                }
                _ => Ok(Expr::Const(Value::Null)),
            };
        };
        self.expression_of(table, number, text)
    }

    /// What a text gives as a value of a column.
    pub(super) fn expression_of(&self, table: &Table, number: usize, text: &str) -> Result<Expr> {
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

    pub(super) fn bind_returning(
        &self,
        table: &Rc<Table>,
        alias: &str,
        items: Option<&[ast::SelectItem]>,
    ) -> Result<Option<Returning>> {
        let Some(items) = items else { return Ok(None) };
        let (used, mut relation) = self.use_table(Rc::clone(table), alias.to_string());
        relation.whole = self.whole_name(table, alias != table.name);
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

    /// A query as a statement of its own.
    pub(crate) fn bind_statement(&self, query: &ast::Query) -> Result<super::Query> {
        let bound = self.bind_query(query, None)?;
        match self.dialect {
            crate::dialect::Dialect::Postgres => self.show_objects(bound, &query.body),
            _ => Ok(bound),
        }
    }
}

impl Binder<'_> {
    /// INSERT, UPDATE or DELETE within a query. Errors: as of those.
    pub(super) fn bind_write(&self, statement: &ast::Statement) -> Result<Write> {
        match statement {
            ast::Statement::Insert(insert) => self.bind_insert(insert),
            ast::Statement::Update(update) => self.bind_update(update),
            ast::Statement::Delete(delete) => self.bind_delete(delete),
            ast::Statement::Merge(merge) if self.dialect == Dialect::Postgres => self.bind_merge(merge),
            other => Err(Error::unsupported(format!("'{other}' within a query"))),
        }
    }
}

impl Write {
    /// What gives the rows.
    pub(crate) fn source(&self) -> &Plan {
        match &self.change {
            Change::Insert { source, .. }
            | Change::Update { source, .. }
            | Change::Delete { source, .. }
            | Change::Merge { source, .. } => source,
        }
    }

    /// Has the rows found by another plan, which is made of the one that finds them.
    pub(crate) fn within(&mut self, around: impl FnOnce(Plan) -> Plan) {
        match &mut self.change {
            Change::Insert { source, is_single, .. } => {
                *is_single = false;
                *source = around(std::mem::replace(source, Plan::Nothing));
            }
            Change::Update { source, .. } | Change::Delete { source, .. } | Change::Merge { source, .. } => {
                *source = around(std::mem::replace(source, Plan::Nothing));
            }
        }
    }

    /// The columns of the result; none if only the number of rows is told.
    pub(crate) fn outputs(&self) -> &[Output] {
        self.returning.as_ref().map_or(&[], |returning| &returning.outputs)
    }

    /// True if a value or a condition asks for rows itself.
    fn has_subquery(&self) -> bool {
        let (source, sets): (_, &[(usize, Expr)]) = match &self.change {
            Change::Update { source, sets, .. } => (source, sets),
            Change::Insert { source, .. } | Change::Delete { source, .. } | Change::Merge { source, .. } => {
                (source, &[])
            }
        };
        let values: &[Expr] = if let Change::Insert { values, .. } = &self.change { values } else { &[] };
        let mut is_any = false;
        let mut look = |expr: &Expr| expr.walk(&mut |part| is_any |= matches!(part, Expr::Subquery(_)));
        source.expressions(&mut |expr| look(expr));
        sets.iter().map(|(_, expr)| expr).chain(values).for_each(look);
        is_any
    }

    /// True if the statement changes one row at most, and nothing can come between reading and changing it.
    pub(crate) fn is_alone(&self) -> bool {
        let space = &self.table.space;
        if space.may_wait() || self.returning.is_some() || self.has_subquery() {
            return false;
        }
        match &self.change {
            Change::Insert { is_single, on_conflict, .. } => *is_single && matches!(on_conflict, OnConflict::Refuse),
            // Between the look at a row on disk and the change of it there may be a wait.
            Change::Update { .. } | Change::Delete { .. } if space.rows.may_wait() => false,
            Change::Update { passes_over: true, .. }
            | Change::Delete { passes_over: true, .. }
            | Change::Merge { .. } => false,
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
pub(super) fn is_default(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Identifier(ident)
        if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"))
}
