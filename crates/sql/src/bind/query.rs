//! Queries: what stands around blocks of SELECT (WITH, ORDER BY, LIMIT), and what combines them.

use super::select::canonical;
use super::{Binder, Bound, Output, Own, Query, Scope};
use crate::cast::Strictness;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{Expr, Slot};
use crate::plan::{Definition, Plan, SortKey};
use crate::types::{Base, Type};
use sqlparser::ast::{self, SetExpr, SetOperator, SetQuantifier};
use std::rc::Rc;

/// ORDER BY, LIMIT, OFFSET and FOR UPDATE of a query.
pub(super) struct Tail<'q> {
    pub(super) order_by: &'q [ast::OrderByExpr],
    pub(super) limit: Option<Expr>,
    pub(super) offset: Option<Expr>,
    pub(super) locks: &'q [ast::LockClause],
    /// FETCH ... WITH TIES.
    pub(super) has_ties: bool,
}

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
        let locks = &query.locks;
        let has_ties = query.fetch.as_ref().is_some_and(|fetch| fetch.with_ties);
        if has_ties && order_by.is_empty() {
            return Err(Error::new(Condition::Syntax, "WITH TIES cannot be specified without ORDER BY clause"));
        }
        let mut found = self.bind_set(&query.body, parent, Tail { order_by, limit, offset, locks, has_ties })?;
        for (number, definition) in definitions.into_iter().rev() {
            found.plan = Plan::With { number, definition: Rc::new(definition), body: Box::new(found.plan) };
        }
        self.own.borrow_mut().truncate(known);
        Ok(found)
    }

    /// `WITH ... INSERT`, and its like. None: the query is one.
    pub(crate) fn bind_with_write(&self, query: &ast::Query) -> Result<Option<super::Write>> {
        let (SetExpr::Insert(statement)
        | SetExpr::Update(statement)
        | SetExpr::Delete(statement)
        | SetExpr::Merge(statement)) = &*query.body
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
                // An expression was moved to where LIMIT has it.
                None if limit.is_some() => limit,
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
        if number >= super::WITHS_MAX {
            let what = format!("WITH names more than {} tables in one statement", super::WITHS_MAX);
            return Err(Error::new(Condition::LimitExceeded, what));
        }
        self.tables.set(number + 1);
        let names: Vec<String> = cte.alias.columns.iter().map(|column| self.dialect.fold(&column.name)).collect();
        if is_recursive
            && let SetExpr::SetOperation { op: SetOperator::Union, left, right, set_quantifier } = &*cte.query.body
            && mentions(right, &cte.alias.name.value)
        {
            let first = self.bind_set(
                left,
                parent,
                Tail { order_by: &[], limit: None, offset: None, locks: &[], has_ties: false },
            )?;
            let columns = own_columns(&first.outputs, &names, &name)?;
            let slots = first.outputs.iter().map(|output| output.slot).collect();
            self.own.borrow_mut().push(Own { name: name.clone(), number, columns: columns.clone(), slots });
            self.recursions.set(self.recursions.get() + 1);
            let step = self.bind_set(
                right,
                parent,
                Tail { order_by: &[], limit: None, offset: None, locks: &[], has_ties: false },
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
            // Doubles of few digits keep no more of them in sets.
            let is_rounded = ty.double_digits().is_some() && output.ty != *ty;
            if !is_rescaled && !is_rounded && (output.ty.base == ty.base || is_open && output.ty.base != Base::Unknown)
            {
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
        self.check_stack()?;
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
            SetExpr::SetOperation { .. } => {
                let query = self.bind_chain(body, parent)?;
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

    /// A chain of set operations is a tree as deep as it is long: it is gone through without recursion. Its plan, which is run by recursion, is no deeper for
    /// one UNION or UNION ALL of many; for what else there is, stack is kept back while the parts are bound, which are below it in the plan.
    fn bind_chain(&self, body: &SetExpr, parent: Option<&Scope<'_>>) -> Result<Query> {
        let (mut first, mut chain) = (body, Vec::new());
        while let SetExpr::SetOperation { left, op, set_quantifier, right } = first {
            chain.push((&**left, *op, *set_quantifier, &**right));
            first = left;
        }
        let is_one = chain.iter().all(|(_, op, quantifier, _)| *op == SetOperator::Union && *quantifier == chain[0].2);
        let mut levels = match chain.len() - 1 {
            further if is_one && further > super::SET_LEVELS_MAX => LEVELS_OF_UNION,
            further => further,
        };
        if levels > super::SET_LEVELS_MAX {
            return Err(too_many_levels());
        }
        let outer = self.set_levels.replace(self.set_levels.get() + levels);
        let bound = self.bind_operand(first, parent).and_then(|mut query| {
            for (left, op, quantifier, right) in chain.into_iter().rev() {
                query = self.bind_operation((query, left), op, quantifier, right, (parent, &mut levels))?;
            }
            Ok(query)
        });
        self.set_levels.set(outer);
        bound
    }

    fn bind_operand(&self, body: &SetExpr, parent: Option<&Scope<'_>>) -> Result<Query> {
        self.is_operand.set(self.dialect == Dialect::Mysql && matches!(body, SetExpr::Select(_)));
        self.bind_set(body, parent, Tail { order_by: &[], limit: None, offset: None, locks: &[], has_ties: false })
    }

    fn bind_operation(
        &self,
        (mut left, left_body): (Query, &SetExpr),
        op: SetOperator,
        quantifier: SetQuantifier,
        right: &SetExpr,
        (parent, levels): (Option<&Scope<'_>>, &mut usize),
    ) -> Result<Query> {
        let literals = [self.literals_of(left_body), self.literals_of(right)];
        let mut right = self.bind_operand(right, parent)?;
        if left.outputs.len() != right.outputs.len() {
            return Err(self.unequal(&op.to_string()));
        }
        let mut types = Vec::new();
        for (number, (a, b)) in left.outputs.iter().zip(&right.outputs).enumerate() {
            // A literal without a type has that of the other side.
            let is_literal = |side: usize| literals[side].get(number) == Some(&true);
            let common = match (is_literal(0), is_literal(1)) {
                (true, false) => Some(b.ty),
                (false, true) => Some(a.ty),
                _ => self.common(a.ty, b.ty),
            };
            types.push(common.ok_or_else(|| {
                Error::new(Condition::TypeMismatch, format!("{op} types {} and {} cannot be matched", a.ty, b.ty))
            })?);
        }
        let number = |collation: &crate::expr::CollationOption| collation.as_ref().map(|collation| collation.id());
        let before: Vec<_> = left.outputs.iter().map(|output| number(&output.collation)).collect();
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
        let is_as_before =
            before.iter().zip(&left.outputs).all(|(before, output)| *before == number(&output.collation));
        let goes_on = op == SetOperator::Union && is_as_before && may_go_on(&left, all);
        if !goes_on && matches!(left_body, SetExpr::SetOperation { .. }) {
            // The plan gets deeper.
            *levels = levels.checked_sub(1).ok_or_else(too_many_levels)?;
        }
        if !(all && op == SetOperator::Union) {
            if !goes_on {
                self.canonical_outputs(&mut left);
            }
            self.canonical_outputs(&mut right);
        }
        let left_slots: Vec<Slot> = left.outputs.iter().map(|output| output.slot).collect();
        let right_slots: Vec<Slot> = right.outputs.iter().map(|output| output.slot).collect();
        let plan = match op {
            SetOperator::Union if goes_on => {
                let columns = left_slots.iter().zip(&right_slots).map(|(slot, from)| (*slot, Expr::Slot(*from)));
                let further = Plan::Map(Box::new(right.plan), columns.collect());
                let mut plan = left.plan;
                let chain = match &mut plan {
                    Plan::Distinct { input, .. } => &mut **input,
                    chain => chain,
                };
                if let Plan::Concat(inputs) = chain {
                    inputs.push(further);
                }
                plan
            }
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
                let both = Plan::Concat(vec![left_plan, right_plan]);
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

    /// Which columns of a SELECT are literals without a type, in PostgreSQL's dialect; empty if it is none that lists its columns.
    pub(super) fn literals_of(&self, body: &SetExpr) -> Vec<bool> {
        let SetExpr::Select(select) = body else { return Vec::new() };
        let is_listed = select
            .projection
            .iter()
            .all(|item| matches!(item, ast::SelectItem::UnnamedExpr(_) | ast::SelectItem::ExprWithAlias { .. }));
        if self.dialect != Dialect::Postgres || !is_listed {
            return Vec::new();
        }
        let is_literal = |item: &ast::SelectItem| match item {
            ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => matches!(
                unnested(expr),
                ast::Expr::Value(value) if matches!(value.value, ast::Value::Null | ast::Value::SingleQuotedString(_))
            ),
            _ => false,
        };
        select.projection.iter().map(is_literal).collect()
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
                        whole: None,
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

    pub(super) fn sort_key(
        &self,
        slot: Slot,
        key: &ast::OrderByExpr,
        collation: crate::expr::CollationOption,
    ) -> SortKey {
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
}

/// What stands within parentheses.
pub(crate) fn unnested(mut expr: &ast::Expr) -> &ast::Expr {
    while let ast::Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

pub(super) fn sorted(plan: Plan, keys: Vec<SortKey>, mut slots: Vec<Slot>, tail: &Tail<'_>) -> Plan {
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

pub(super) fn limited(plan: Plan, keys: Vec<SortKey>, tail: Tail<'_>) -> Plan {
    match (tail.limit, tail.offset) {
        (Some(limit), offset) if tail.has_ties => Plan::Ties { input: Box::new(plan), keys, limit, offset },
        (None, None) => plan,
        (limit, offset) => Plan::Limit { input: Box::new(plan), limit, offset },
    }
}

/// Levels that a long UNION may have, whose queries have other types than those before them.
const LEVELS_OF_UNION: usize = 8;

fn too_many_levels() -> Error {
    let what = format!(
        "more than {} queries are combined by UNION, EXCEPT and INTERSECT in turns, or have other types than those before them",
        super::SET_LEVELS_MAX
    );
    Error::new(Condition::LimitExceeded, what)
}

/// True if the rows of one more query can be among those of a UNION as they are, `all` of them or each once: so a long chain is no deep tree.
fn may_go_on(query: &Query, all: bool) -> bool {
    let outputs: Vec<Slot> = query.outputs.iter().map(|output| output.slot).collect();
    let is_once = outputs.iter().enumerate().all(|(at, slot)| !outputs[..at].contains(slot));
    let is_chain = match &query.plan {
        Plan::Concat(_) => all,
        Plan::Distinct { input, slots } => !all && *slots == outputs && matches!(**input, Plan::Concat(_)),
        _ => false,
    };
    is_chain && is_once
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
