//! Queries: blocks of SELECT, what stands around them, and what combines them.

use super::from::{Tree, conjuncts, take_order};
use super::windows::Windows;
use super::{Binder, Bound, Output, Own, Query, Scope};
use crate::aggregates::{Aggregate, AggregateCall};
use crate::cast::Strictness;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{Expr, Slot};
use crate::grouping::GroupingSets;
use crate::plan::{Definition, JoinKind, Lock, Plan, SortKey};
use crate::types::{Base, Type};
use sqlparser::ast::{self, SelectItem, SetExpr, SetOperator, SetQuantifier};
use std::cell::RefCell;
use std::rc::Rc;

/// ORDER BY, LIMIT, OFFSET and FOR UPDATE of a query.
struct Tail<'q> {
    order_by: &'q [ast::OrderByExpr],
    limit: Option<Expr>,
    offset: Option<Expr>,
    lock: Option<Lock>,
    /// FETCH ... WITH TIES.
    has_ties: bool,
}

/// What stands behind GROUP BY and reads the values of groups.
struct Behind<'b> {
    columns: &'b mut [(String, Bound)],
    having: &'b mut Option<Expr>,
    order: &'b mut [Bound],
    windows: &'b mut [super::windows::Window],
    sets: &'b mut [crate::sets::SetCall],
}

/// What GROUP BY says.
pub(super) struct Groups {
    pub(super) all: Vec<Bound>,
    /// GROUPING SETS and the like: by set, which of them it has, and where its number will be.
    pub(super) sets: Option<(Vec<Vec<bool>>, Slot)>,
}

/// Places, and what is computed for each.
type Computed = Vec<(Slot, Expr)>;

impl Binder<'_> {
    /// A query, inside of another one perhaps.
    pub(super) fn bind_query(&self, query: &ast::Query, parent: Option<&Scope<'_>>) -> Result<Query> {
        let known = self.own.borrow().len();
        let mut definitions = Vec::new();
        if let Some(with) = &query.with {
            for cte in &with.cte_tables {
                definitions.push(self.bind_own(cte, with.recursive, parent)?);
            }
        }
        let order_by: &[ast::OrderByExpr] = match &query.order_by {
            None => &[],
            Some(ast::OrderBy { kind: ast::OrderByKind::Expressions(keys), .. }) => keys,
            Some(_) => return Err(Error::unsupported("ORDER BY ALL")),
        };
        let (limit, offset) = self.bind_limit(query)?;
        let lock = query.locks.first().map(|lock| match lock.nonblock {
            Some(ast::NonBlock::Nowait) => Lock::NoWait,
            Some(ast::NonBlock::SkipLocked) => Lock::Skip,
            None => Lock::Wait,
        });
        let has_ties = query.fetch.as_ref().is_some_and(|fetch| fetch.with_ties);
        if has_ties && order_by.is_empty() {
            return Err(Error::new(Condition::Syntax, "WITH TIES cannot be specified without ORDER BY clause"));
        }
        let mut found = self.bind_set(&query.body, parent, Tail { order_by, limit, offset, lock, has_ties })?;
        for (number, definition) in definitions.into_iter().rev() {
            found.plan = Plan::With { number, definition: Rc::new(definition), body: Box::new(found.plan) };
        }
        self.own.borrow_mut().truncate(known);
        Ok(found)
    }

    /// `WITH ... INSERT`, and its like. None: the query is one.
    pub(crate) fn bind_with_write(&self, query: &ast::Query) -> Result<Option<super::Write>> {
        let (SetExpr::Insert(statement) | SetExpr::Update(statement) | SetExpr::Delete(statement)) = &*query.body
        else {
            return Ok(None);
        };
        let mut definitions = Vec::new();
        if let Some(with) = &query.with {
            for cte in &with.cte_tables {
                definitions.push(self.bind_own(cte, with.recursive, None)?);
            }
        }
        let mut write = self.bind_write(statement)?;
        for (number, definition) in definitions.into_iter().rev() {
            write.within(|body| Plan::With { number, definition: Rc::new(definition), body: Box::new(body) });
        }
        self.own.borrow_mut().clear();
        Ok(Some(write))
    }

    fn bind_limit(&self, query: &ast::Query) -> Result<(Option<Expr>, Option<Expr>)> {
        let scope = Scope::new(None);
        let count = |expr: &ast::Expr| -> Result<Expr> {
            let bound = self.bind(&scope, expr)?;
            Ok(match bound.ty.base {
                Base::Unknown => self.cast_to(bound, Type::of(Base::Int8), Strictness::Explicit)?.expr,
                _ => bound.expr,
            })
        };
        let (mut limit, mut offset) = match &query.limit_clause {
            None => (None, None),
            Some(ast::LimitClause::LimitOffset { limit, offset, .. }) => (
                limit.as_ref().map(&count).transpose()?,
                offset.as_ref().map(|offset| count(&offset.value)).transpose()?,
            ),
            Some(ast::LimitClause::OffsetCommaLimit { offset, limit }) => (Some(count(limit)?), Some(count(offset)?)),
        };
        if let Some(fetch) = &query.fetch {
            if fetch.percent {
                return Err(Error::unsupported("FETCH ... PERCENT"));
            }
            limit = match &fetch.quantity {
                Some(quantity) => Some(count(quantity)?),
                None => Some(Expr::Const(crate::Value::Int(1))),
            };
        }
        let is_null = |expr: &Option<Expr>| expr.as_ref().and_then(Expr::constant).is_some_and(crate::Value::is_null);
        if is_null(&limit) {
            limit = None;
        }
        if is_null(&offset) {
            offset = None;
        }
        Ok((limit, offset))
    }

    /// `name AS (query)`: from here on the name means its rows.
    fn bind_own(&self, cte: &ast::Cte, is_recursive: bool, parent: Option<&Scope<'_>>) -> Result<(usize, Definition)> {
        let name = self.dialect.fold(&cte.alias.name);
        let number = self.tables.get();
        self.tables.set(number + 1);
        let names: Vec<String> = cte.alias.columns.iter().map(|column| self.dialect.fold(&column.name)).collect();
        if is_recursive
            && let SetExpr::SetOperation { op: SetOperator::Union, left, right, set_quantifier } = &*cte.query.body
            && mentions(right, &cte.alias.name.value)
        {
            let first = self.bind_set(
                left,
                parent,
                Tail { order_by: &[], limit: None, offset: None, lock: None, has_ties: false },
            )?;
            let columns = own_columns(&first.outputs, &names, &name)?;
            let slots = first.outputs.iter().map(|output| output.slot).collect();
            self.own.borrow_mut().push(Own { name: name.clone(), number, columns: columns.clone(), slots });
            self.recursions.set(self.recursions.get() + 1);
            let step = self.bind_set(
                right,
                parent,
                Tail { order_by: &[], limit: None, offset: None, lock: None, has_ties: false },
            );
            self.recursions.set(self.recursions.get() - 1);
            let mut step = step?;
            if step.outputs.len() != columns.len() {
                return Err(self.unequal("UNION"));
            }
            self.cast_outputs(&mut step, &columns.iter().map(|(_, ty, _)| *ty).collect::<Vec<_>>())?;
            let drops = *set_quantifier != SetQuantifier::All;
            let step_slots = step.outputs.iter().map(|output| output.slot).collect();
            let outputs = first.outputs.iter().map(|output| output.slot).collect();
            return Ok((number, Definition { plan: first.plan, outputs, step: Some((step.plan, step_slots, drops)) }));
        }
        if let SetExpr::Insert(statement) | SetExpr::Update(statement) | SetExpr::Delete(statement) = &*cte.query.body {
            if parent.is_some() || !self.views.borrow().is_empty() {
                let what = "WITH clause containing a data-modifying statement must be at the top level";
                return Err(Error::new(Condition::Unsupported, what));
            }
            let write = self.bind_write(statement)?;
            self.writes.set(true);
            let columns = own_columns(write.outputs(), &names, &name)?;
            let outputs: Vec<Slot> = write.outputs().iter().map(|output| output.slot).collect();
            self.own.borrow_mut().push(Own { name, number, columns, slots: outputs.clone() });
            return Ok((number, Definition { plan: Plan::Write(Box::new(write)), outputs, step: None }));
        }
        let query = self.bind_query(&cte.query, parent)?;
        let columns = own_columns(&query.outputs, &names, &name)?;
        let outputs: Vec<Slot> = query.outputs.iter().map(|output| output.slot).collect();
        self.own.borrow_mut().push(Own { name, number, columns, slots: outputs.clone() });
        Ok((number, Definition { plan: query.plan, outputs, step: None }))
    }

    fn unequal(&self, what: &str) -> Error {
        let message = match self.dialect {
            Dialect::Postgres => format!("each {what} query must have the same number of columns"),
            Dialect::Mysql => "The used SELECT statements have a different number of columns".to_string(),
            Dialect::Tarantool => {
                format!("SELECTs to the left and right of {what} do not have the same number of result columns")
            }
        };
        Error::new(Condition::ColumnCount, message).mysql(1222)
    }

    fn cast_outputs(&self, query: &mut Query, types: &[Type]) -> Result<()> {
        let mut columns = Vec::new();
        for (output, ty) in query.outputs.iter_mut().zip(types) {
            let is_open = matches!(ty.base, Base::Any | Base::Scalar | Base::Number | Base::Unknown | Base::Integer);
            let is_rescaled = self.dialect == Dialect::Mysql && ty.base == Base::Decimal;
            if !is_rescaled && (output.ty.base == ty.base || is_open && output.ty.base != Base::Unknown) {
                continue;
            }
            let bound = Bound::new(Expr::Slot(output.slot), output.ty);
            let bound = match is_rescaled && output.ty.is_number() {
                true => self.settled(Bound { ty: *ty, ..bound })?,
                false => self.cast_to(bound, *ty, Strictness::Explicit)?,
            };
            if ty.base == Base::Text {
                output.collation = bound.collation;
            }
            let slot = self.new_slot();
            columns.push((slot, bound.expr));
            (output.slot, output.ty) = (slot, *ty);
        }
        if !columns.is_empty() {
            let plan = std::mem::replace(&mut query.plan, Plan::Nothing);
            query.plan = Plan::Map(Box::new(plan), columns);
        }
        Ok(())
    }

    fn bind_set(&self, body: &SetExpr, parent: Option<&Scope<'_>>, tail: Tail<'_>) -> Result<Query> {
        super::expressions::check_stack()?;
        match body {
            SetExpr::Select(select) => {
                let outer = self.keeps_digits.replace(self.is_operand.take());
                let bound = self.bind_select(select, parent, tail);
                self.keeps_digits.set(outer);
                bound
            }
            SetExpr::Query(query) => {
                let query = self.bind_query(query, parent)?;
                self.finish(query, tail)
            }
            SetExpr::Values(values) => {
                let query = self.bind_values(values, parent)?;
                self.finish(query, tail)
            }
            SetExpr::SetOperation { left, op, set_quantifier, right } => {
                let query = self.bind_operation(left, *op, *set_quantifier, right, parent)?;
                self.finish(query, tail)
            }
            SetExpr::Table(table) => {
                let name = table.table_name.as_ref().map_or_else(String::new, ToString::to_string);
                let text = format!("SELECT * FROM {name}");
                match self.dialect.parse(&text)?.into_iter().next() {
                    Some(ast::Statement::Query(query)) => {
                        let query = self.bind_query(&query, parent)?;
                        self.finish(query, tail)
                    }
                    _ => Err(Error::new(Condition::Syntax, format!("'TABLE {name}' names no table"))),
                }
            }
            other => Err(Error::unsupported(format!("'{other}' within a query"))),
        }
    }

    fn bind_operation(
        &self,
        left: &SetExpr,
        op: SetOperator,
        quantifier: SetQuantifier,
        right: &SetExpr,
        parent: Option<&Scope<'_>>,
    ) -> Result<Query> {
        let nothing = || Tail { order_by: &[], limit: None, offset: None, lock: None, has_ties: false };
        let operand = |body: &SetExpr| {
            self.is_operand.set(self.dialect == Dialect::Mysql && matches!(body, SetExpr::Select(_)));
            self.bind_set(body, parent, nothing())
        };
        let (mut left, mut right) = (operand(left)?, operand(right)?);
        if left.outputs.len() != right.outputs.len() {
            return Err(self.unequal(&op.to_string()));
        }
        let mut types = Vec::new();
        for (a, b) in left.outputs.iter().zip(&right.outputs) {
            types.push(self.common(a.ty, b.ty).ok_or_else(|| {
                Error::new(Condition::TypeMismatch, format!("{op} types {} and {} cannot be matched", a.ty, b.ty))
            })?);
        }
        self.cast_outputs(&mut left, &types)?;
        self.cast_outputs(&mut right, &types)?;
        for (output, ty) in left.outputs.iter_mut().zip(&types) {
            output.ty = *ty;
        }
        for output in left.outputs.iter_mut().chain(&mut right.outputs) {
            let bound = Bound { collation: output.collation.take(), ..Bound::new(Expr::Slot(output.slot), output.ty) };
            output.collation = self.in_order(bound).collation;
        }
        for (a, b) in left.outputs.iter_mut().zip(&mut right.outputs) {
            // A collation that tells case goes before one that does not.
            if self.dialect == Dialect::Mysql && a.ty.base == Base::Text {
                a.collation = a.collation.take().filter(|_| b.collation.is_some());
                b.collation.clone_from(&a.collation);
            }
        }
        let all = quantifier == SetQuantifier::All;
        if !(all && op == SetOperator::Union) {
            self.canonical_outputs(&mut left);
            self.canonical_outputs(&mut right);
        }
        let left_slots: Vec<Slot> = left.outputs.iter().map(|output| output.slot).collect();
        let right_slots: Vec<Slot> = right.outputs.iter().map(|output| output.slot).collect();
        let plan = match op {
            SetOperator::Union => {
                // Both sides fill new places: those of one side may be in use within it.
                let slots: Vec<Slot> = left_slots.iter().map(|_| self.new_slot()).collect();
                let to = |from: &[Slot]| slots.iter().copied().zip(from.iter().map(|slot| Expr::Slot(*slot))).collect();
                let left_plan = Plan::Map(Box::new(left.plan), to(&left_slots));
                let right_plan = Plan::Map(Box::new(right.plan), to(&right_slots));
                for (output, slot) in left.outputs.iter_mut().zip(&slots) {
                    self.note_same(output.slot, *slot);
                    output.slot = *slot;
                }
                let both = Plan::Concat(Box::new(left_plan), Box::new(right_plan));
                match all {
                    true => both,
                    false => Plan::Distinct { input: Box::new(both), slots },
                }
            }
            SetOperator::Intersect | SetOperator::Except | SetOperator::Minus => Plan::Among {
                left: Box::new(left.plan),
                right: Box::new(right.plan),
                left_slots,
                right_slots,
                keeps: op == SetOperator::Intersect,
                all,
            },
        };
        Ok(Query { plan, outputs: left.outputs })
    }

    /// Columns whose texts a collation compares get those by which rows are told apart.
    fn canonical_outputs(&self, query: &mut Query) {
        let mut columns = Vec::new();
        for output in query.outputs.iter_mut().filter(|output| output.collation.is_some()) {
            let slot = self.new_slot();
            columns.push((slot, canonical(Expr::Slot(output.slot), &output.collation)));
            self.note_same(output.slot, slot);
            output.slot = slot;
        }
        if !columns.is_empty() {
            let plan = std::mem::replace(&mut query.plan, Plan::Nothing);
            query.plan = Plan::Map(Box::new(plan), columns);
        }
    }

    fn bind_values(&self, values: &ast::Values, parent: Option<&Scope<'_>>) -> Result<Query> {
        let scope = Scope::new(parent);
        let width = values.rows.first().map_or(0, |row| row.content.len());
        let mut columns: Vec<Vec<Bound>> = (0..width).map(|_| Vec::with_capacity(values.rows.len())).collect();
        for row in &values.rows {
            if row.content.len() != width {
                return Err(Error::new(Condition::ColumnCount, "VALUES lists must all be the same length"));
            }
            for (column, expr) in columns.iter_mut().zip(&row.content) {
                column.push(self.bind(&scope, expr)?);
            }
        }
        let mut rows: Vec<Vec<Expr>> = (0..values.rows.len()).map(|_| Vec::with_capacity(width)).collect();
        let mut outputs = Vec::with_capacity(width);
        for (number, column) in columns.into_iter().enumerate() {
            let (column, ty) = self.alike(column, "VALUES")?;
            for (row, bound) in rows.iter_mut().zip(column) {
                row.push(bound.expr);
            }
            let name = match self.dialect {
                Dialect::Tarantool => format!("COLUMN_{}", number + 1),
                Dialect::Mysql => format!("column_{number}"),
                Dialect::Postgres => format!("column{}", number + 1),
            };
            outputs.push(Output { name, slot: self.new_slot(), ty, collation: None, item: None });
        }
        let slots = outputs.iter().map(|output| output.slot).collect();
        Ok(Query { plan: Plan::Rows(rows, slots), outputs })
    }

    /// ORDER BY of columns that are there, and LIMIT.
    fn finish(&self, mut query: Query, tail: Tail<'_>) -> Result<Query> {
        let mut keys = Vec::new();
        for key in tail.order_by {
            let at = match self.output_number(&query.outputs, &key.expr)? {
                Some(at) => at,
                None => {
                    // An expression of the columns.
                    let mut scope = Scope::new(None);
                    scope.relations.push(super::Relation {
                        alias: String::new(),
                        columns: super::from::columns_of(&query.outputs),
                    });
                    let bound = self.bind(&scope, &key.expr)?;
                    let slot = self.new_slot();
                    let plan = std::mem::replace(&mut query.plan, Plan::Nothing);
                    query.plan = Plan::Map(Box::new(plan), vec![(slot, bound.expr)]);
                    keys.push(self.sort_key(slot, key, bound.collation));
                    continue;
                }
            };
            keys.push(self.sort_key(query.outputs[at].slot, key, query.outputs[at].collation.clone()));
        }
        let slots = query.outputs.iter().map(|output| output.slot).collect();
        query.plan = limited(sorted(query.plan, keys.clone(), slots, &tail), keys, tail);
        Ok(query)
    }

    fn sort_key(&self, slot: Slot, key: &ast::OrderByExpr, collation: crate::expr::CollationOption) -> SortKey {
        let is_descending = key.options.sort == Some(ast::OrderBySort::Desc);
        let nulls_first = key.options.nulls_first.unwrap_or(is_descending != self.dialect.has_nulls_first());
        SortKey { slot, is_descending, nulls_first, collation }
    }

    /// The column that ORDER BY or GROUP BY means by a number or an alias.
    pub(super) fn output_number(&self, outputs: &[Output], expr: &ast::Expr) -> Result<Option<usize>> {
        match expr {
            ast::Expr::Value(value) => match &value.value {
                ast::Value::Number(text, _) => match text.parse::<usize>() {
                    Ok(number) if (1..=outputs.len()).contains(&number) => Ok(Some(number - 1)),
                    Ok(number) => Err(Error::new(
                        match self.dialect {
                            Dialect::Postgres => Condition::InvalidColumnReference,
                            _ => Condition::UndefinedColumn,
                        },
                        match self.dialect {
                            Dialect::Tarantool => format!(
                                "Error at ORDER BY in place 1: term out of range - should be between 1 and {}",
                                outputs.len()
                            ),
                            Dialect::Mysql => format!("Unknown column '{number}' in 'order clause'"),
                            Dialect::Postgres => format!("ORDER BY position {number} is not in select list"),
                        },
                    )),
                    Err(_) => Ok(None),
                },
                _ => Ok(None),
            },
            ast::Expr::Identifier(ident) => {
                let name = self.dialect.fold(ident);
                Ok(outputs.iter().position(|output| self.dialect.is_same(&output.name, &name)))
            }
            _ => Ok(None),
        }
    }

    fn bind_select(&self, select: &ast::Select, parent: Option<&Scope<'_>>, tail: Tail<'_>) -> Result<Query> {
        self.check_select(select)?;
        let mut scope = Scope::new(parent);
        let tree = self.bind_from(&mut scope, &select.from)?;
        if let Some(lock) = tail.lock {
            set_lock(&tree, lock);
        }
        let mut conditions = Vec::new();
        if let Some(selection) = &select.selection {
            conjuncts(self.condition(&scope, selection)?, &mut conditions);
        }
        // Aggregates may stand in what follows.
        scope.calls = Some(RefCell::new(Vec::new()));
        scope.windows = Some(Windows::new(self.dialect, &select.named_window)?);
        scope.sets = Some(RefCell::new(Vec::new()));
        let mut columns = self.bind_projection(&scope, &select.projection)?;
        let mut sets = scope.sets.take().map(RefCell::into_inner).unwrap_or_default();
        if columns.len() > super::COLUMNS_MAX {
            return Err(Error::new(
                Condition::LimitExceeded,
                format!("a query has at most {} columns", super::COLUMNS_MAX),
            ));
        }
        let allow_windows =
            |is_allowed: bool| scope.windows.iter().for_each(|windows| windows.is_allowed.set(is_allowed));
        allow_windows(false);
        let groups = self.bind_groups(&scope, &select.group_by, &columns)?;
        let having = select.having.as_ref().map(|having| self.condition(&scope, having)).transpose()?;
        allow_windows(true);
        let mut order = self.bind_order(&scope, tail.order_by, &columns)?;
        let mut on = match &select.distinct {
            Some(ast::Distinct::On(exprs)) => self.bind_distinct_on(&scope, exprs, &columns)?,
            _ => Vec::new(),
        };
        let mut having = having;
        let calls = scope.calls.take().map(RefCell::into_inner).unwrap_or_default();
        let mut windows = scope.windows.take().map(Windows::into_found).unwrap_or_default();
        let is_grouped = !calls.is_empty() || !groups.all.is_empty() || groups.sets.is_some() || having.is_some();
        let mut calls = calls;
        let (mut group_slots, mut kept) = (Vec::new(), Vec::new());
        if is_grouped {
            let keys = order.len();
            order.append(&mut on);
            let behind = Behind {
                columns: &mut columns,
                having: &mut having,
                order: &mut order,
                windows: &mut windows,
                sets: &mut sets,
            };
            (group_slots, kept) = self.group(&tree, &groups, &mut calls, behind)?;
            on = order.split_off(keys);
        }
        let (mut plan, _) = self.plan_tree(tree, conditions);
        if is_grouped {
            plan = match groups.sets {
                None => Plan::Aggregate { input: Box::new(plan), groups: group_slots, calls },
                Some((sets, number)) => Plan::GroupingSets(Box::new(GroupingSets {
                    input: plan,
                    groups: group_slots,
                    sets,
                    number,
                    calls,
                    is_ordered: self.dialect == Dialect::Mysql,
                })),
            };
            if !kept.is_empty() {
                plan = Plan::Map(Box::new(plan), kept);
            }
            if let Some(having) = having {
                plan = Plan::Filter(Box::new(plan), having);
            }
        }
        if !windows.is_empty() {
            if tail.lock.is_some() && self.dialect == Dialect::Postgres {
                return Err(Error::unsupported("FOR UPDATE with window functions"));
            }
            let reads =
                columns.iter().map(|(_, bound)| &bound.expr).chain(order.iter().chain(&on).map(|bound| &bound.expr));
            let reads = reads.chain(sets.iter().flat_map(|call| &call.arguments));
            plan = self.plan_windows(plan, windows, reads);
        }
        let is_grouped = is_grouped || !sets.is_empty();
        if !sets.is_empty() {
            let slots = sets.iter().flat_map(|call| call.slots.iter().copied()).collect();
            let inner = Box::new(Plan::Sets { calls: sets, number: None });
            plan = Plan::Loop { outer: Box::new(plan), inner, kind: JoinKind::Inner, on: None, slots };
        }
        let items = match self.dialect {
            Dialect::Tarantool => self.items_of(&scope, &select.projection)?,
            _ => Vec::new(),
        };
        let mut query = self.project(select, plan, columns, (order, on), tail, is_grouped)?;
        for (output, item) in query.outputs.iter_mut().zip(items) {
            output.item = item;
        }
        Ok(query)
    }

    pub(super) fn check_select(&self, select: &ast::Select) -> Result<()> {
        let what = match select {
            ast::Select { into: Some(_), .. } => "SELECT INTO",
            ast::Select { qualify: Some(_), .. } => "QUALIFY",
            ast::Select { top: Some(_), .. } => "TOP",
            _ if !select.lateral_views.is_empty() => "LATERAL VIEW",
            _ => return Ok(()),
        };
        Err(Error::unsupported(what))
    }

    /// By the columns of a result: the items that they are alone. Errors: as [`Binder::bind_projection`].
    fn items_of(&self, scope: &Scope<'_>, items: &[SelectItem]) -> Result<Vec<Option<usize>>> {
        let mut columns = Vec::new();
        for (number, item) in items.iter().enumerate() {
            match item {
                SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. } => columns.push(Some(number)),
                several => {
                    let stands_for = self.bind_projection(scope, std::slice::from_ref(several))?;
                    columns.extend(stands_for.iter().map(|_| None));
                }
            }
        }
        Ok(columns)
    }

    /// The columns of the result: names and expressions.
    pub(super) fn bind_projection(&self, scope: &Scope<'_>, items: &[SelectItem]) -> Result<Vec<(String, Bound)>> {
        let mut columns = Vec::new();
        // Of columns without a name, in the dialect that numbers them.
        let mut unnamed = 0;
        for item in items {
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    let name = self.column_name(expr, unnamed);
                    unnamed += usize::from(self.dialect == Dialect::Tarantool && !is_column(unnested(expr)));
                    columns.push((name, self.bind_column(scope, expr)?));
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    let mut name = self.dialect.fold(alias);
                    if let Some((shown, table)) = name.split_once(crate::mysql::statements::TABLE_MARK) {
                        name = self.shown_as(shown, table);
                    }
                    columns.push((name, self.bind_column(scope, expr)?))
                }
                SelectItem::Wildcard(_) => {
                    if scope.relations.is_empty() {
                        return Err(Error::new(
                            Condition::Syntax,
                            "Failed to expand '*' in SELECT statement without FROM clause",
                        ));
                    }
                    for relation in &scope.relations {
                        let visible = relation.columns.iter().filter(|column| !column.is_hidden);
                        columns.extend(visible.map(|column| (column.name.clone(), self.at(column))));
                    }
                }
                SelectItem::QualifiedWildcard(ast::SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    let alias = self.dialect.object_name(name)?;
                    let relation =
                        scope.relations.iter().find(|relation| self.dialect.is_same(&relation.alias, &alias));
                    let relation = relation.ok_or_else(|| {
                        Error::new(
                            Condition::UndefinedTable,
                            format!("missing FROM-clause entry for table \"{alias}\""),
                        )
                    })?;
                    columns.extend(relation.columns.iter().map(|column| (column.name.clone(), self.at(column))));
                }
                other => return Err(Error::unsupported(format!("'{other}'"))),
            }
        }
        Ok(columns)
    }

    /// The expression of a column of a result, with the digits that it shows.
    pub(super) fn bind_column(&self, scope: &Scope<'_>, expr: &ast::Expr) -> Result<Bound> {
        let mut bound = self.bind(scope, expr)?;
        if self.dialect != Dialect::Mysql || is_column(expr) {
            return Ok(bound);
        }
        // A text that the statement says is told apart from others as those that functions make.
        if bound.ty.base == Base::Text && matches!(bound.expr, Expr::Const(_)) && bound.collation.is_none() {
            bound.collation = self.usual_collation();
        }
        // Sides of a set operation have the digits of the column that both are.
        if self.keeps_digits.get() { Ok(bound) } else { self.settled(bound) }
    }

    /// What a column is called that has no alias.
    fn column_name(&self, expr: &ast::Expr, number: usize) -> String {
        let shown = if self.dialect == Dialect::Tarantool { unnested(expr) } else { expr };
        match (shown, self.dialect) {
            (ast::Expr::Identifier(ident), _) => self.dialect.fold(ident),
            (ast::Expr::CompoundIdentifier(parts), _) => {
                parts.last().map_or_else(String::new, |ident| self.dialect.fold(ident))
            }
            (_, Dialect::Tarantool) => format!("COLUMN_{}", number + 1),
            (ast::Expr::Value(value), Dialect::Mysql) => match value.value.clone().into_string() {
                Some(text) => text,
                None => crate::dialect::without_numbers(&expr.to_string()),
            },
            (_, Dialect::Mysql) => crate::dialect::without_numbers(&expr.to_string()),
            (ast::Expr::Nested(inner), _) => self.column_name(inner, number),
            (ast::Expr::Function(function), _) => function.name.to_string().to_lowercase(),
            (ast::Expr::Cast { data_type, expr, .. }, _) => match self.column_name(expr, number) {
                name if name == "?column?" => {
                    Type::of_ast(self.dialect, data_type).map_or(name, |ty| catalog_name(ty).to_string())
                }
                name => name,
            },
            (ast::Expr::Case { .. }, _) => "case".to_string(),
            (ast::Expr::Exists { .. }, _) => "exists".to_string(),
            (ast::Expr::Extract { .. }, _) => "extract".to_string(),
            _ => "?column?".to_string(),
        }
    }

    /// ORDER BY: columns of the result by number or alias, else expressions of FROM.
    fn bind_order(
        &self,
        scope: &Scope<'_>,
        keys: &[ast::OrderByExpr],
        columns: &[(String, Bound)],
    ) -> Result<Vec<Bound>> {
        let outputs: Vec<Output> = columns
            .iter()
            .map(|(name, bound)| Output { name: name.clone(), slot: 0, ty: bound.ty, collation: None, item: None })
            .collect();
        let mut order = Vec::with_capacity(keys.len());
        for key in keys {
            order.push(match self.output_number(&outputs, &key.expr)? {
                Some(number) => columns[number].1.clone(),
                None => self.bind(scope, &key.expr)?,
            });
        }
        Ok(order)
    }

    /// DISTINCT ON: as ORDER BY.
    fn bind_distinct_on(
        &self,
        scope: &Scope<'_>,
        exprs: &[ast::Expr],
        columns: &[(String, Bound)],
    ) -> Result<Vec<Bound>> {
        let outputs: Vec<Output> = columns
            .iter()
            .map(|(name, bound)| Output { name: name.clone(), slot: 0, ty: bound.ty, collation: None, item: None })
            .collect();
        let mut on = Vec::with_capacity(exprs.len());
        for expr in exprs {
            on.push(match self.output_number(&outputs, expr)? {
                Some(number) => columns[number].1.clone(),
                None => self.bind(scope, expr)?,
            });
        }
        Ok(on)
    }

    /// Has what stands behind GROUP BY read the groups' values in place of the rows'. Returns the places of the groups' values, and what places of the rows get
    /// once more for each group: subqueries behind GROUP BY read them where they were.
    fn group(
        &self,
        tree: &Tree,
        grouped: &Groups,
        calls: &mut Vec<AggregateCall>,
        Behind { columns, having, order, windows, sets }: Behind<'_>,
    ) -> Result<(Computed, Computed)> {
        let groups = &grouped.all;
        let group_slots: Vec<(Slot, Expr)> = groups.iter().map(|group| (self.new_slot(), group.expr.clone())).collect();
        if grouped.sets.is_none() {
            for (to, expr) in &group_slots {
                if let Expr::Slot(of) = expr {
                    self.note_copy(*of, *to);
                }
            }
        }
        let rows = match tree {
            Tree::Inner(..) => slots_of_tree(tree),
            _ => hashbrown::HashSet::new(),
        };
        let mut asked: Vec<Slot> = Vec::new();
        {
            let behind = columns.iter().map(|(_, bound)| &bound.expr).chain(order.iter().map(|bound| &bound.expr));
            let mut within = Vec::new();
            for expr in behind.chain(having.iter()) {
                expr.walk(&mut |part| {
                    if let Expr::Subquery(subquery) = part {
                        subquery.plan.reads(&mut |slot| within.push(slot));
                    }
                });
            }
            if !within.is_empty() {
                let of_rows = slots_of_tree(tree);
                asked.extend(within.into_iter().filter(|slot| of_rows.contains(slot)));
                asked.sort_unstable();
                asked.dedup();
            }
        }
        let kept: Vec<(Slot, Expr)> = asked
            .into_iter()
            .map(|slot| {
                let of_group = groups
                    .iter()
                    .zip(&group_slots)
                    .find(|(group, _)| matches!(group.expr, Expr::Slot(of) if of == slot));
                let from = of_group.map_or_else(
                    || {
                        let to = self.new_slot();
                        calls.push(AggregateCall::any_of(slot, to));
                        to
                    },
                    |(_, (group, _))| *group,
                );
                (slot, Expr::Slot(from))
            })
            .collect();
        let mut stray: Option<Slot> = None;
        let mut replace = |expr: Expr| {
            expr.replaced(&mut |part| {
                if let Some((slot, _)) = group_slots.iter().find(|(_, group)| group.is_like(part)) {
                    return Some(Expr::Slot(*slot));
                }
                if let Expr::Call(function, arguments) = part
                    && function.name == "grouping"
                {
                    return self.grouping_of(arguments, &group_slots, &grouped.sets);
                }
                let Expr::Slot(slot) = part else { return None };
                if !rows.contains(slot) {
                    return None;
                }
                if self.dialect == Dialect::Postgres && !self.is_given_by(tree, *slot, groups) {
                    stray = stray.or(Some(*slot));
                    return None;
                }
                // The same in the whole group, or any will do.
                let known = calls.iter().find(|call| {
                    call.aggregate == Aggregate::Any
                        && matches!(call.arguments.as_slice(), [Expr::Slot(other)] if other == slot)
                });
                let known = known.map(|call| call.slot);
                Some(Expr::Slot(known.unwrap_or_else(|| {
                    let to = self.new_slot();
                    self.note_same(*slot, to);
                    calls.push(AggregateCall::any_of(*slot, to));
                    to
                })))
            })
        };
        let none = || Expr::Const(crate::Value::Null);
        for (_, bound) in columns.iter_mut() {
            bound.expr = replace(std::mem::replace(&mut bound.expr, none()));
        }
        for bound in order.iter_mut() {
            bound.expr = replace(std::mem::replace(&mut bound.expr, none()));
        }
        windows.iter_mut().for_each(|window| window.replace(&mut replace));
        for argument in sets.iter_mut().flat_map(|call| &mut call.arguments) {
            *argument = replace(std::mem::replace(argument, none()));
        }
        *having = having.take().map(&mut replace);
        if let Some(slot) = stray {
            let name = name_of_slot(tree, slot).unwrap_or_default();
            let what =
                format!("column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function");
            return Err(Error::new(Condition::Grouping, what));
        }
        let of_group =
            |(number, (slot, expr)): (usize, (Slot, Expr))| (slot, canonical(expr, &groups[number].collation));
        Ok((group_slots.into_iter().enumerate().map(of_group).collect(), kept))
    }

    /// True if the column of a place is the same for all rows of a group, since the primary key of its table is.
    fn is_given_by(&self, tree: &Tree, slot: Slot, groups: &[Bound]) -> bool {
        match tree {
            Tree::Table(used) => {
                let slots = used.slots.borrow();
                let key = used.table.primary_key();
                slots.contains(&Some(slot))
                    && !key.is_empty()
                    && key.iter().all(|(field, ..)| {
                        groups.iter().any(|group| matches!(group.expr, Expr::Slot(of) if slots[*field] == Some(of)))
                    })
            }
            Tree::Rows(_) | Tree::View(..) => false,
            Tree::Inner(trees, _) => trees.iter().any(|tree| self.is_given_by(tree, slot, groups)),
            Tree::Outer(left, right, ..) => {
                self.is_given_by(left, slot, groups) || self.is_given_by(right, slot, groups)
            }
        }
    }

    fn project(
        &self,
        select: &ast::Select,
        mut plan: Plan,
        columns: Vec<(String, Bound)>,
        (order, on): (Vec<Bound>, Vec<Bound>),
        tail: Tail<'_>,
        is_grouped: bool,
    ) -> Result<Query> {
        let mut computed = Vec::new();
        let mut place = |bound: &Bound| match bound.expr {
            Expr::Slot(slot) => slot,
            _ => {
                let known = computed.iter().find(|(_, expr): &&(Slot, Expr)| expr.is_like(&bound.expr));
                match known {
                    Some((slot, _)) => *slot,
                    None => {
                        let slot = self.new_slot();
                        computed.push((slot, bound.expr.clone()));
                        slot
                    }
                }
            }
        };
        let mut outputs = Vec::with_capacity(columns.len());
        for (name, bound) in &columns {
            let slot = place(bound);
            outputs.push(Output {
                name: name.clone(),
                slot,
                ty: bound.ty,
                collation: bound.collation.clone(),
                item: None,
            });
        }
        let mut keys: Vec<SortKey> = tail
            .order_by
            .iter()
            .zip(&order)
            .map(|(key, bound)| self.sort_key(place(bound), key, bound.collation.clone()))
            .collect();
        let mut first_by = Vec::new();
        for bound in &on {
            first_by.push(place(bound));
        }
        if self.dialect == Dialect::Postgres {
            for (output, (_, bound)) in outputs.iter_mut().zip(&columns) {
                // A literal that nothing has given a type is text.
                if output.ty.base == Base::Unknown {
                    let text = self.cast_to(bound.clone(), Type::TEXT, Strictness::Explicit)?;
                    let slot = self.new_slot();
                    computed.push((slot, text.expr));
                    (output.slot, output.ty) = (slot, Type::TEXT);
                }
            }
        }
        let distinct_on = matches!(&select.distinct, Some(ast::Distinct::Distinct));
        if distinct_on {
            for output in outputs.iter_mut().filter(|output| output.collation.is_some()) {
                let known = computed.iter().find(|(slot, _)| *slot == output.slot).map(|(_, expr)| expr.clone());
                let slot = self.new_slot();
                computed.push((slot, canonical(known.unwrap_or(Expr::Slot(output.slot)), &output.collation)));
                self.note_copy(output.slot, slot);
                keys.iter_mut().filter(|key| key.slot == output.slot).for_each(|key| key.slot = slot);
                output.slot = slot;
            }
        }
        let is_in_order = !keys.is_empty() && !is_grouped && take_order(&mut plan, &keys);
        if !computed.is_empty() {
            plan = Plan::Map(Box::new(plan), computed);
        }
        let mut slots: Vec<Slot> = outputs.iter().map(|output| output.slot).collect();
        if distinct_on {
            // MySQL takes those of the first row of those that are one.
            if self.dialect != Dialect::Mysql && keys.iter().any(|key| !slots.contains(&key.slot)) {
                let what = "for SELECT DISTINCT, ORDER BY expressions must appear in select list";
                return Err(Error::new(Condition::Grouping, what));
            }
            plan = Plan::Distinct { input: Box::new(plan), slots: slots.clone() };
        }
        if !first_by.is_empty() {
            // The first row of each, in the order.
            let is_first_by = |slot: &Slot| first_by.contains(slot);
            let fits = keys.iter().map(|key| &key.slot).take(first_by.len()).all(is_first_by);
            if !fits {
                let what = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions";
                return Err(Error::new(Condition::InvalidColumnReference, what));
            }
            slots.extend(keys.iter().map(|key| key.slot).chain(first_by.iter().copied()));
            let whole = Tail { order_by: tail.order_by, limit: None, offset: None, lock: None, has_ties: false };
            plan = Plan::Distinct { input: Box::new(sorted(plan, keys.clone(), slots, &whole)), slots: first_by };
        } else if !is_in_order {
            slots.extend(keys.iter().map(|key| key.slot));
            slots.sort_unstable();
            slots.dedup();
            plan = sorted(plan, keys.clone(), slots, &tail);
        }
        Ok(Query { plan: limited(plan, keys, tail), outputs })
    }
}

/// True for the name of a column.
pub(crate) fn is_column(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_))
}

/// What stands within parentheses.
pub(crate) fn unnested(mut expr: &ast::Expr) -> &ast::Expr {
    while let ast::Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

/// The expression, so that texts that are equal by a collation are the same text.
pub(super) fn canonical(expr: Expr, collation: &crate::expr::CollationOption) -> Expr {
    match collation {
        Some(collation) => Expr::Canonical(std::sync::Arc::clone(collation), Box::new(expr)),
        None => expr,
    }
}

/// Names of PostgreSQL's catalog, which its columns get from casts.
fn catalog_name(ty: Type) -> &'static str {
    match ty.base {
        Base::Bool => "bool",
        Base::Int1 | Base::Int2 => "int2",
        Base::Int4 => "int4",
        Base::Int8 | Base::Integer | Base::Uint8 => "int8",
        Base::Double => "float8",
        Base::Decimal | Base::Number => "numeric",
        Base::Date => "date",
        Base::Timestamp => "timestamp",
        Base::TimestampTz => "timestamptz",
        Base::Interval => "interval",
        Base::Bytes => "bytea",
        Base::Uuid => "uuid",
        Base::Json => "json",
        _ => "text",
    }
}

fn sorted(plan: Plan, keys: Vec<SortKey>, mut slots: Vec<Slot>, tail: &Tail<'_>) -> Plan {
    if keys.is_empty() {
        return plan;
    }
    slots.extend(keys.iter().map(|key| key.slot));
    slots.sort_unstable();
    slots.dedup();
    let limit = tail.limit.clone().filter(|_| !tail.has_ties).map(|limit| (limit, tail.offset.clone()));
    Plan::Sort { input: Box::new(plan), keys, slots, limit }
}

impl Binder<'_> {
    /// Rows that are to be changed, in an order and no more than a limit.
    pub(super) fn ordered(&self, mut plan: Plan, keys: Vec<(Bound, bool)>, limit: Option<Expr>) -> Plan {
        if !keys.is_empty() {
            let (mut columns, mut sort_keys) = (Vec::new(), Vec::new());
            for (bound, is_descending) in keys {
                let slot = self.new_slot();
                columns.push((slot, bound.expr));
                sort_keys.push(SortKey {
                    slot,
                    is_descending,
                    nulls_first: self.dialect.has_nulls_first() != is_descending,
                    collation: bound.collation,
                });
            }
            plan = Plan::Map(Box::new(plan), columns);
            let mut slots = Vec::new();
            plan.fills(&mut |slot| slots.push(slot));
            slots.sort_unstable();
            slots.dedup();
            let limit = limit.clone().map(|limit| (limit, None));
            plan = Plan::Sort { input: Box::new(plan), keys: sort_keys, slots, limit };
        }
        match limit {
            Some(limit) => Plan::Limit { input: Box::new(plan), limit: Some(limit), offset: None },
            None => plan,
        }
    }
}

fn limited(plan: Plan, keys: Vec<SortKey>, tail: Tail<'_>) -> Plan {
    match (tail.limit, tail.offset) {
        (Some(limit), offset) if tail.has_ties => Plan::Ties { input: Box::new(plan), keys, limit, offset },
        (None, None) => plan,
        (limit, offset) => Plan::Limit { input: Box::new(plan), limit, offset },
    }
}

fn own_columns(
    outputs: &[Output],
    names: &[String],
    table: &str,
) -> Result<Vec<(String, Type, crate::expr::CollationOption)>> {
    if names.len() > outputs.len() {
        let what = format!("table {table} has {} values for {} columns", outputs.len(), names.len());
        return Err(Error::new(Condition::ColumnCount, what));
    }
    let named = outputs.iter().enumerate().map(|(number, output)| {
        let name = names.get(number).unwrap_or(&output.name).clone();
        (name, output.ty, output.collation.clone())
    });
    Ok(named.collect())
}

/// True if a query block names a table.
fn mentions(body: &SetExpr, name: &str) -> bool {
    let factor = |factor: &ast::TableFactor| match factor {
        ast::TableFactor::Table { name: found, .. } => {
            found.to_string().trim_matches(['"', '`']).eq_ignore_ascii_case(name)
        }
        ast::TableFactor::Derived { subquery, .. } => mentions(&subquery.body, name),
        _ => false,
    };
    match body {
        SetExpr::Select(select) => select
            .from
            .iter()
            .any(|item| factor(&item.relation) || item.joins.iter().any(|join| factor(&join.relation))),
        SetExpr::Query(query) => mentions(&query.body, name),
        SetExpr::SetOperation { left, right, .. } => mentions(left, name) || mentions(right, name),
        _ => false,
    }
}

fn set_lock(tree: &Tree, lock: Lock) {
    match tree {
        Tree::Table(used) => used.lock.set(Some(lock)),
        Tree::Rows(_) => {}
        Tree::View(tree, ..) => set_lock(tree, lock),
        Tree::Inner(trees, _) => trees.iter().for_each(|tree| set_lock(tree, lock)),
        Tree::Outer(left, right, ..) => {
            set_lock(left, lock);
            set_lock(right, lock);
        }
    }
}

fn slots_of_tree(tree: &Tree) -> hashbrown::HashSet<Slot> {
    let mut slots = hashbrown::HashSet::new();
    match tree {
        Tree::Table(used) => slots.extend(used.slots.borrow().iter().flatten()),
        Tree::Rows(plan) => plan.fills(&mut |slot| {
            slots.insert(slot);
        }),
        Tree::View(tree, ..) => slots.extend(slots_of_tree(tree)),
        Tree::Inner(trees, _) => trees.iter().for_each(|tree| slots.extend(slots_of_tree(tree))),
        Tree::Outer(left, right, ..) => {
            slots.extend(slots_of_tree(left));
            slots.extend(slots_of_tree(right));
        }
    }
    slots
}

fn name_of_slot(tree: &Tree, slot: Slot) -> Option<String> {
    match tree {
        Tree::Table(used) => {
            let number = used.slots.borrow().iter().position(|found| *found == Some(slot))?;
            Some(format!("{}.{}", used.alias, used.table.columns[number].name))
        }
        Tree::Rows(_) | Tree::View(..) => None,
        Tree::Inner(trees, _) => trees.iter().find_map(|tree| name_of_slot(tree, slot)),
        Tree::Outer(left, right, ..) => name_of_slot(left, slot).or_else(|| name_of_slot(right, slot)),
    }
}
