//! FROM: what names it gives, and in which order its tables are gone through.
//!
//! Inner joins are one list of tables and one list of conditions, whatever way they are written. The next table is always the one of which the fewest rows
//! are expected, given those that are there: found by an index whose key the tables before give; else by a hash table. The outer side of a join is never
//! kept, so that the order of the first table's index is the order of the result.

use super::{Binder, Bound, Place, Relation, RelationColumn, Scope, TableUse};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{Asked, Comparison, Expr, Slot};
use crate::plan::{HashJoin, JoinKind, Plan, Scan, SortKey};
use crate::table::Index;
use crate::types::{Base, Type};
use crate::value::Value;
use crate::views::OwnedRows;
use hashbrown::HashSet;
use sqlparser::ast::{self, JoinConstraint, JoinOperator, TableFactor};
use std::rc::Rc;
use tuple::IndexId;

/// What FROM says.
pub(super) enum Tree {
    Table(Rc<TableUse>),
    /// Rows of a query, of VALUES, of a function.
    Rows(Box<Plan>),
    /// All of these, as far as the conditions hold.
    Inner(Vec<Tree>, Vec<Expr>),
    /// A view whose tables are planned with the conditions around it.
    View(Box<Tree>, Vec<Expr>, Rc<database::Space>),
    /// Those of the first, with those of the second or nulls.
    Outer(Box<Tree>, Box<Tree>, Vec<Expr>, JoinKind),
}

/// Takes an expression apart into conditions that all have to hold.
pub(super) fn conjuncts(expr: Expr, out: &mut Vec<Expr>) {
    match expr {
        Expr::And(parts) => parts.into_iter().for_each(|part| conjuncts(part, out)),
        other => out.push(other),
    }
}

fn all_of(mut parts: Vec<Expr>) -> Option<Expr> {
    match parts.len() {
        0 => None,
        1 => parts.pop(),
        _ => Some(Expr::And(parts)),
    }
}

impl Tree {
    fn fills(&self, out: &mut HashSet<Slot>) {
        match self {
            Tree::Table(used) => {
                out.extend(used.slots.borrow().iter().flatten());
                out.extend(used.row.get());
            }
            Tree::Rows(plan) => plan.fills(&mut |slot| {
                out.insert(slot);
            }),
            Tree::View(tree, ..) => tree.fills(out),
            Tree::Inner(trees, _) => trees.iter().for_each(|tree| tree.fills(out)),
            Tree::Outer(left, right, ..) => {
                left.fills(out);
                right.fills(out);
            }
        }
    }

    fn slots(&self) -> HashSet<Slot> {
        let mut slots = HashSet::new();
        self.fills(&mut slots);
        slots
    }
}

fn slots_of(expr: &Expr) -> HashSet<Slot> {
    let mut slots = HashSet::new();
    expr.slots(&mut |slot| {
        slots.insert(slot);
    });
    slots
}

impl Binder<'_> {
    /// Binds FROM: the names go into the scope.
    pub(super) fn bind_from(&self, scope: &mut Scope<'_>, from: &[ast::TableWithJoins]) -> Result<Tree> {
        let mut trees = Vec::with_capacity(from.len());
        for item in from {
            // Where a comma binds as strongly as JOIN, what stands before it is the left side of what follows.
            let before = match self.dialect {
                Dialect::Tarantool => trees.pop(),
                _ => None,
            };
            trees.push(self.bind_joins(scope, item, before)?);
        }
        Ok(Tree::Inner(trees, Vec::new()))
    }

    fn bind_joins(&self, scope: &mut Scope<'_>, item: &ast::TableWithJoins, before: Option<Tree>) -> Result<Tree> {
        let first = if before.is_some() { 0 } else { scope.relations.len() };
        let mut tree = self.bind_factor(scope, &item.relation)?;
        if let Some(before) = before {
            tree = Tree::Inner(vec![before, tree], Vec::new());
        }
        for join in &item.joins {
            let middle = scope.relations.len();
            let right = self.bind_factor(scope, &join.relation)?;
            let (kind, constraint) = match &join.join_operator {
                JoinOperator::Join(constraint)
                | JoinOperator::Inner(constraint)
                | JoinOperator::CrossJoin(constraint)
                | JoinOperator::StraightJoin(constraint) => ("inner", constraint),
                JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => ("left", constraint),
                JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => ("right", constraint),
                JoinOperator::FullOuter(constraint) => ("full", constraint),
                other => return Err(Error::unsupported(format!("join '{other:?}'"))),
            };
            let on = self.bind_constraint(scope, (first, middle), constraint, kind)?;
            if matches!(kind, "left" | "full") {
                self.note_outer(&scope.relations[middle..]);
            }
            if matches!(kind, "right" | "full") {
                self.note_outer(&scope.relations[first..middle]);
            }
            tree = match kind {
                "inner" => Tree::Inner(vec![tree, right], on),
                "left" => Tree::Outer(Box::new(tree), Box::new(right), on, JoinKind::Left),
                "right" => Tree::Outer(Box::new(right), Box::new(tree), on, JoinKind::Left),
                _ => Tree::Outer(Box::new(tree), Box::new(right), on, JoinKind::Full),
            };
        }
        Ok(tree)
    }

    /// ON, USING, NATURAL: relations from `first` on are joined with those from `middle` on.
    fn bind_constraint(
        &self,
        scope: &mut Scope<'_>,
        (first, middle): (usize, usize),
        constraint: &JoinConstraint,
        kind: &str,
    ) -> Result<Vec<Expr>> {
        let names: Vec<String> = match constraint {
            JoinConstraint::None => return Ok(Vec::new()),
            JoinConstraint::On(condition) => {
                let mut parts = Vec::new();
                scope.first.set(first);
                let condition = self.condition(scope, condition);
                scope.first.set(0);
                conjuncts(condition?, &mut parts);
                return Ok(parts);
            }
            JoinConstraint::Using(names) => {
                names.iter().map(|name| self.dialect.object_name(name)).collect::<Result<_>>()?
            }
            JoinConstraint::Natural => {
                let names = |range: &[Relation]| -> Vec<String> {
                    let visible =
                        range.iter().flat_map(|relation| relation.columns.iter()).filter(|column| !column.is_hidden);
                    visible.map(|column| column.name.clone()).collect()
                };
                let right = names(&scope.relations[middle..]);
                names(&scope.relations[first..middle])
                    .into_iter()
                    .filter(|name| right.iter().any(|other| self.dialect.is_same(name, other)))
                    .collect()
            }
            other => return Err(Error::unsupported(format!("'{other:?}'"))),
        };
        let mut on = Vec::new();
        for name in names {
            let at = |range: std::ops::Range<usize>| -> Result<(usize, usize)> {
                let found = range.clone().find_map(|relation| {
                    let columns = &scope.relations[relation].columns;
                    let is_it =
                        |column: &RelationColumn| !column.is_hidden && self.dialect.is_same(&column.name, &name);
                    columns.iter().position(is_it).map(|column| (relation, column))
                });
                found.ok_or_else(|| self.no_such_column(scope, None, &name))
            };
            let (left_at, right_at) = (at(first..middle)?, at(middle..scope.relations.len())?);
            let left = self.at(&scope.relations[left_at.0].columns[left_at.1]);
            let right = self.at(&scope.relations[right_at.0].columns[right_at.1]);
            on.push(self.compare(Comparison::Equal, left.clone(), right.clone())?);
            // One column stands for both.
            let merged = match kind {
                "inner" | "left" => None,
                "right" => Some(right),
                _ => Some(self.call("coalesce", vec![left, right])?),
            };
            scope.relations[right_at.0].columns[right_at.1].is_hidden = true;
            if let Some(Bound { expr, ty, collation }) = merged {
                let column = &mut scope.relations[left_at.0].columns[left_at.1];
                (column.place, column.ty, column.collation) = (Place::Expr(expr), ty, collation);
            }
        }
        Ok(on)
    }

    pub(super) fn add_relation(&self, scope: &mut Scope<'_>, relation: Relation) -> Result<()> {
        if scope.relations.len() >= super::RELATIONS_MAX {
            let what = format!("there are more than {} tables in FROM", super::RELATIONS_MAX);
            return Err(Error::new(Condition::LimitExceeded, what));
        }
        if scope
            .relations
            .iter()
            .any(|other| !other.alias.is_empty() && self.dialect.is_same(&other.alias, &relation.alias))
            && self.dialect != crate::Dialect::Tarantool
        {
            let what = format!("table name \"{}\" specified more than once", relation.alias);
            return Err(Error::new(Condition::DuplicateAlias, what));
        }
        scope.relations.push(relation);
        Ok(())
    }

    pub(super) fn alias_of(&self, alias: Option<&ast::TableAlias>, relation: &mut Relation) -> Result<()> {
        let Some(alias) = alias else { return Ok(()) };
        relation.alias = self.dialect.fold(&alias.name);
        if alias.columns.len() > relation.columns.len() {
            let what = format!(
                "table \"{}\" has {} columns available but {} columns specified",
                relation.alias,
                relation.columns.len(),
                alias.columns.len()
            );
            return Err(Error::new(Condition::ColumnCount, what));
        }
        for (column, name) in relation.columns.iter_mut().zip(&alias.columns) {
            column.name = self.dialect.fold(&name.name);
        }
        Ok(())
    }

    fn bind_factor(&self, scope: &mut Scope<'_>, factor: &TableFactor) -> Result<Tree> {
        match factor {
            TableFactor::Table { name, alias, args: None, sample: None, .. } => {
                let table_name = self.dialect.object_name(name)?;
                if let Some((plan, mut relation)) = self.own_table(&table_name) {
                    self.alias_of(alias.as_ref(), &mut relation)?;
                    self.add_relation(scope, relation)?;
                    return Ok(Tree::Rows(Box::new(plan)));
                }
                if let Some((plan, mut relation)) = self.computed_table(name, &table_name) {
                    self.alias_of(alias.as_ref(), &mut relation)?;
                    self.add_relation(scope, relation)?;
                    return Ok(Tree::Rows(Box::new(plan)));
                }
                if let Some((plan, mut relation)) = self.sequence_as_table(&table_name)? {
                    self.alias_of(alias.as_ref(), &mut relation)?;
                    self.add_relation(scope, relation)?;
                    return Ok(Tree::Rows(Box::new(plan)));
                }
                let table = self.find_table(&table_name)?;
                if table.indexes.is_empty()
                    && let Some(view) = crate::views::of(self.database, &table.space)
                {
                    return self.bind_view(scope, &table, &view, alias.as_ref());
                }
                let alias_name = alias.as_ref().map_or(table_name, |alias| self.dialect.fold(&alias.name));
                let (used, mut relation) = self.use_table(table, alias_name);
                self.alias_of(alias.as_ref(), &mut relation)?;
                self.add_relation(scope, relation)?;
                Ok(Tree::Table(used))
            }
            TableFactor::Derived { lateral, subquery, alias, .. } => {
                let query = match lateral {
                    true => self.bind_query(subquery, Some(scope))?,
                    false => self.bind_query(subquery, scope.parent)?,
                };
                let mut relation = Relation { alias: String::new(), columns: columns_of(&query.outputs) };
                self.alias_of(alias.as_ref(), &mut relation)?;
                self.add_relation(scope, relation)?;
                Ok(Tree::Rows(Box::new(query.plan)))
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => self.bind_joins(scope, table_with_joins, None),
            TableFactor::Table { name, alias, args: Some(args), with_ordinality, .. } => {
                let name = self.dialect.object_name(name)?;
                self.bind_table_function(scope, &name, &args.args, alias.as_ref(), *with_ordinality)
            }
            TableFactor::Function { name, args, alias, with_ordinality, .. } => {
                let name = self.dialect.object_name(name)?;
                self.bind_table_function(scope, &name, args, alias.as_ref(), *with_ordinality)
            }
            TableFactor::UNNEST { alias, array_exprs, with_ordinality, .. } => {
                let calls: Vec<Vec<&ast::Expr>> = array_exprs.iter().map(|expr| vec![expr]).collect();
                self.bind_sets_in_from(scope, "unnest", &calls, alias.as_ref(), *with_ordinality)
            }
            TableFactor::Table { sample: Some(_), .. } => Err(Error::unsupported("TABLESAMPLE")),
            other => Err(Error::unsupported(format!("'FROM {other}'"))),
        }
    }

    /// A table of `pg_catalog` or `information_schema`.
    fn computed_table(&self, full: &ast::ObjectName, name: &str) -> Option<(Plan, Relation)> {
        if self.dialect == Dialect::Tarantool {
            return None;
        }
        let schema = match full.0.as_slice() {
            [.., ast::ObjectNamePart::Identifier(schema), _] => Some(self.dialect.fold(schema)),
            _ => None,
        };
        if schema.is_none() && crate::temporary::space_by_name(self.database, name).is_some() {
            return None;
        }
        let table = crate::catalog::find(self.dialect, schema.as_deref(), name)?;
        let mut slots: Vec<Slot> = table.columns.iter().map(|_| self.new_slot()).collect();
        let columns = table.columns.iter().zip(&slots).map(|((name, base), slot)| RelationColumn {
            // MySQL shows them in capital letters; whoever names them is shown what they have written.
            name: if self.dialect == crate::Dialect::Mysql { name.to_uppercase() } else { (*name).to_string() },
            ty: match *name {
                "indkey" | "indoption" | "indclass" | "indcollation" => Type::vector(),
                "conkey" | "confkey" => Type::array_of(Type::of(Base::Int2)),
                _ if *base == Base::Text && table.is_name(name) => Type::NAME,
                _ => Type::of(*base),
            },
            collation: None,
            place: Place::Slot(*slot),
            is_hidden: false,
        });
        let mut columns: Vec<RelationColumn> = columns.collect();
        if table.has_table_number() {
            let slot = self.new_slot();
            slots.push(slot);
            columns.push(RelationColumn {
                name: "tableoid".to_string(),
                ty: Type::of(Base::Int8),
                collation: None,
                place: Place::Slot(slot),
                is_hidden: true,
            });
        }
        Some((Plan::Virtual(table, slots), Relation { alias: table.name.to_string(), columns }))
    }

    /// A sequence as a table of one row: where it stands.
    fn sequence_as_table(&self, name: &str) -> Result<Option<(Plan, Relation)>> {
        let catalog = &self.database.catalog;
        let is_one = self.dialect == crate::Dialect::Postgres
            && catalog.space_by_name(name).is_none()
            && catalog.sequence_by_name(name).is_some();
        if !is_one {
            return Ok(None);
        }
        let named = || vec![Bound::new(Expr::Const(Value::text(name)), Type::TEXT)];
        let columns = [
            ("last_value", self.call("sequence_last_value", named())?),
            ("log_cnt", Bound::new(Expr::Const(Value::Int(0)), Type::of(Base::Int8))),
            ("is_called", self.call("sequence_is_called", named())?),
        ];
        let mut computed = Vec::new();
        let mut shown = Vec::new();
        for (column, bound) in columns {
            let slot = self.new_slot();
            computed.push((slot, bound.expr));
            shown.push(RelationColumn {
                name: column.to_string(),
                ty: bound.ty,
                collation: None,
                place: Place::Slot(slot),
                is_hidden: false,
            });
        }
        let relation = Relation { alias: name.to_string(), columns: shown };
        Ok(Some((Plan::Map(Box::new(Plan::One), computed), relation)))
    }

    fn own_table(&self, name: &str) -> Option<(Plan, Relation)> {
        let own = self.own.borrow().iter().rev().find(|own| self.dialect.is_same(&own.name, name)).cloned()?;
        let mut slots = Vec::with_capacity(own.columns.len());
        let columns = own
            .columns
            .into_iter()
            .zip(own.slots)
            .map(|((name, ty, collation), of)| {
                let slot = self.new_slot();
                self.note_same(of, slot);
                slots.push(slot);
                RelationColumn { name, ty, collation, place: Place::Slot(slot), is_hidden: false }
            })
            .collect();
        Some((Plan::Own { number: own.number, slots }, Relation { alias: own.name, columns }))
    }

    fn bind_table_function(
        &self,
        scope: &mut Scope<'_>,
        name: &str,
        arguments: &[ast::FunctionArg],
        alias: Option<&ast::TableAlias>,
        is_numbered: bool,
    ) -> Result<Tree> {
        if super::sets::is_set(self.dialect, &name.to_lowercase()) {
            let mut exprs = Vec::with_capacity(arguments.len());
            for argument in arguments {
                let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) = argument else {
                    return Err(Error::unsupported(format!("'{argument}'")));
                };
                exprs.push(expr);
            }
            let calls = match name.eq_ignore_ascii_case("unnest") {
                true => exprs.into_iter().map(|expr| vec![expr]).collect(),
                false => vec![exprs],
            };
            return self.bind_sets_in_from(scope, name, &calls, alias, is_numbered);
        }
        if self.dialect == crate::Dialect::Postgres && arguments.is_empty() && !is_numbered {
            // A function that gives one value is a table of one row: `SELECT * FROM current_schema()`.
            let name = name.to_lowercase();
            let bound = self.call(&name, Vec::new())?;
            let slot = self.new_slot();
            let alias_name = alias.map_or_else(|| name.clone(), |alias| self.dialect.fold(&alias.name));
            let column = RelationColumn {
                name: alias_name.clone(),
                ty: bound.ty,
                collation: None,
                place: Place::Slot(slot),
                is_hidden: false,
            };
            let mut relation = Relation { alias: alias_name, columns: vec![column] };
            self.alias_of(alias, &mut relation)?;
            self.add_relation(scope, relation)?;
            return Ok(Tree::Rows(Box::new(Plan::Map(Box::new(Plan::One), vec![(slot, bound.expr)]))));
        }
        if !name.eq_ignore_ascii_case("generate_series") || !(2..=3).contains(&arguments.len()) {
            let what = format!("function {name} in FROM does not exist");
            return Err(Error::new(Condition::UndefinedFunction, what));
        }
        let mut bounds = Vec::new();
        for argument in arguments {
            let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) = argument else {
                return Err(Error::unsupported(format!("'{argument}'")));
            };
            bounds.push(self.bind(scope, expr)?);
        }
        let ty = bounds[0].ty;
        let mut bounds = bounds.into_iter().map(|bound| match bound.ty.base {
            Base::Unknown => {
                self.cast_to(bound, Type::of(Base::Int8), crate::cast::Strictness::Explicit).map(|bound| bound.expr)
            }
            _ => Ok(bound.expr),
        });
        let mut next = || bounds.next().unwrap_or(Ok(Expr::Const(Value::Int(1))));
        let (from, to, step) = (next()?, next()?, next()?);
        let slot = self.new_slot();
        let ty = if ty.base == Base::Unknown { Type::of(Base::Int8) } else { ty };
        let name = alias.map_or_else(|| name.to_lowercase(), |alias| self.dialect.fold(&alias.name));
        let column =
            RelationColumn { name: name.clone(), ty, collation: None, place: Place::Slot(slot), is_hidden: false };
        let mut relation = Relation { alias: name, columns: vec![column] };
        self.alias_of(alias, &mut relation)?;
        self.add_relation(scope, relation)?;
        Ok(Tree::Rows(Box::new(Plan::Series { from, to, step, slot })))
    }

    /// The rows of FROM that fulfil all conditions, and how many are expected.
    pub(super) fn plan_tree(&self, tree: Tree, mut conditions: Vec<Expr>) -> (Plan, f64) {
        match tree {
            Tree::Table(used) => {
                let own = Tree::Table(Rc::clone(&used)).slots();
                let (scan, _, rows) = best_scan(&used, conditions, &own, &|_| true);
                (Plan::Scan(scan), rows)
            }
            Tree::Rows(plan) => (filtered(*plan, conditions), 1000.0),
            Tree::Inner(trees, on) => {
                conditions.extend(on);
                let mut items = Vec::new();
                flatten(trees, &mut items, &mut conditions);
                self.plan_inner(items, conditions)
            }
            Tree::View(tree, own, space) => {
                // What may have an effect, or reads, does so with the rights of the reader.
                let is_plain = |condition: &Expr| {
                    let mut is_plain = true;
                    condition.walk(&mut |part| match part {
                        Expr::Subquery(_) => is_plain = false,
                        Expr::Call(function, _) => is_plain &= !function.is_volatile,
                        _ => {}
                    });
                    is_plain
                };
                let (within, around): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(is_plain);
                let (input, rows) = self.plan_tree(*tree, own.into_iter().chain(within).collect());
                (filtered(Plan::Owned(Box::new(OwnedRows { input, space })), around), rows)
            }
            Tree::Outer(left, right, on, kind) => self.plan_outer(*left, *right, on, kind, conditions),
        }
    }

    fn plan_inner(&self, mut items: Vec<Tree>, mut pending: Vec<Expr>) -> (Plan, f64) {
        let all: HashSet<Slot> = items.iter().flat_map(|item| item.slots()).collect();
        let mut placed: HashSet<Slot> = HashSet::new();
        let mut done: Option<(Plan, f64)> = None;
        while !items.is_empty() {
            let number = self.next_item(&items, &pending, &placed, &all, done.is_some());
            let item = items.remove(number);
            let own = item.slots();
            // What can be looked at once this item is there.
            let is_ready = |expr: &Expr| {
                slots_of(expr).iter().all(|slot| !all.contains(slot) || placed.contains(slot) || own.contains(slot))
            };
            let (ready, rest): (Vec<Expr>, Vec<Expr>) = std::mem::take(&mut pending).into_iter().partition(is_ready);
            pending = rest;
            done = Some(match done {
                None => self.plan_tree(item, ready),
                Some(before) => self.join(before, item, own.clone(), ready, JoinKind::Inner, &placed),
            });
            placed.extend(own);
        }
        let (plan, rows) = done.unwrap_or((Plan::One, 1.0));
        (filtered(plan, pending), rows)
    }

    /// The item of which the fewest rows are expected, among those that have what they need.
    fn next_item(
        &self,
        items: &[Tree],
        pending: &[Expr],
        placed: &HashSet<Slot>,
        all: &HashSet<Slot>,
        has_any: bool,
    ) -> usize {
        let mut best = (f64::INFINITY, 0);
        for (number, item) in items.iter().enumerate() {
            let own = item.slots();
            let is_known = |slot: &Slot| !all.contains(slot) || placed.contains(slot);
            let ready: Vec<Expr> = pending
                .iter()
                .filter(|expr| slots_of(expr).iter().all(|slot| is_known(slot) || own.contains(slot)))
                .cloned()
                .collect();
            let is_connected = ready.iter().any(|expr| {
                let slots = slots_of(expr);
                slots.iter().any(|slot| own.contains(slot)) && slots.iter().any(|slot| placed.contains(slot))
            });
            let mut rows = match item {
                Tree::Table(used) => best_scan(used, ready, &own, &|slot| is_known(&slot)).2,
                Tree::Rows(plan) => {
                    let mut waits = false;
                    plan.reads(&mut |slot| waits |= all.contains(&slot) && !placed.contains(&slot));
                    if waits { f64::INFINITY } else { 1000.0 }
                }
                _ => 10_000.0,
            };
            if has_any && !is_connected {
                rows = rows * 1000.0 + 1000.0;
            }
            if rows < best.0 {
                best = (rows, number);
            }
        }
        best.1
    }

    /// Joins an item to what is there.
    fn join(
        &self,
        (outer, outer_rows): (Plan, f64),
        item: Tree,
        own: HashSet<Slot>,
        on: Vec<Expr>,
        kind: JoinKind,
        placed: &HashSet<Slot>,
    ) -> (Plan, f64) {
        if let Tree::Table(used) = &item
            && kind != JoinKind::Full
        {
            let (scan, is_keyed, rows) = best_scan(used, on.clone(), &own, &|_| true);
            let total = used.table.row_count() as f64;
            // A look by the index for each outer row, unless one pass over all of them is less work.
            if is_keyed && outer_rows * rows.max(1.0) <= total * 4.0 + 100.0 {
                let slots = own.into_iter().collect();
                let plan =
                    Plan::Loop { outer: Box::new(outer), inner: Box::new(Plan::Scan(scan)), kind, on: None, slots };
                return (plan, outer_rows * rows.max(0.1));
            }
        }
        let mut reads_outer = false;
        if let Tree::Rows(plan) = &item {
            plan.reads(&mut |slot| reads_outer |= placed.contains(&slot));
        }
        let is_own = |expr: &Expr| {
            let slots = slots_of(expr);
            !slots.is_empty() && slots.iter().all(|slot| own.contains(slot))
        };
        let is_others = |expr: &Expr| {
            let slots = slots_of(expr);
            !slots.is_empty() && slots.iter().all(|slot| !own.contains(slot))
        };
        let (mut inner_only, mut outer_keys, mut inner_keys, mut rest) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for expr in on {
            match expr {
                expr if is_own(&expr) && kind != JoinKind::Full => inner_only.push(expr),
                Expr::Compare(Comparison::Equal, a, b, None) if is_own(&a) && is_others(&b) => {
                    inner_keys.push(*a);
                    outer_keys.push(*b);
                }
                Expr::Compare(Comparison::Equal, a, b, None) if is_own(&b) && is_others(&a) => {
                    inner_keys.push(*b);
                    outer_keys.push(*a);
                }
                expr => rest.push(expr),
            }
        }
        let slots: Vec<Slot> = own.into_iter().collect();
        let (inner, inner_rows) = self.plan_tree(item, inner_only);
        if reads_outer {
            rest.extend(
                outer_keys
                    .into_iter()
                    .zip(inner_keys)
                    .map(|(a, b)| Expr::Compare(Comparison::Equal, Box::new(a), Box::new(b), None)),
            );
            let plan = Plan::Loop { outer: Box::new(outer), inner: Box::new(inner), kind, on: all_of(rest), slots };
            return (plan, outer_rows * 10.0);
        }
        let rows = if outer_keys.is_empty() { outer_rows * inner_rows } else { outer_rows.max(inner_rows) };
        let outer_slots = placed.iter().copied().collect();
        let join = HashJoin { outer, inner, kind, outer_keys, inner_keys, on: all_of(rest), slots, outer_slots };
        (Plan::Hash(Box::new(join)), rows)
    }

    fn plan_outer(&self, left: Tree, right: Tree, on: Vec<Expr>, kind: JoinKind, conditions: Vec<Expr>) -> (Plan, f64) {
        let (left_slots, right_slots) = (left.slots(), right.slots());
        // What only concerns the side that is kept whole can be looked at before.
        let is_left = |expr: &Expr| {
            kind == JoinKind::Left
                && slots_of(expr).iter().all(|slot| !right_slots.contains(slot))
                && !matches!(expr, Expr::Subquery(_))
        };
        let (before, after): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(is_left);
        let outer = self.plan_tree(left, before);
        let (plan, rows) = self.join(outer, right, right_slots, on, kind, &left_slots);
        (filtered(plan, after), rows)
    }
}

fn flatten(trees: Vec<Tree>, items: &mut Vec<Tree>, conditions: &mut Vec<Expr>) {
    for tree in trees {
        match tree {
            Tree::Inner(inner, on) => {
                conditions.extend(on);
                flatten(inner, items, conditions);
            }
            other => items.push(other),
        }
    }
}

fn filtered(plan: Plan, conditions: Vec<Expr>) -> Plan {
    match (all_of(conditions), plan) {
        (None, plan) => plan,
        (Some(condition), Plan::Scan(mut scan)) => {
            scan.filter = all_of(scan.filter.take().into_iter().chain([condition]).collect());
            Plan::Scan(scan)
        }
        (Some(condition), plan) => Plan::Filter(Box::new(plan), condition),
    }
}

/// Columns of a query as those of a relation.
pub(super) fn columns_of(outputs: &[super::Output]) -> Vec<RelationColumn> {
    outputs
        .iter()
        .map(|output| RelationColumn {
            name: output.name.clone(),
            ty: output.ty,
            collation: output.collation.clone(),
            place: Place::Slot(output.slot),
            is_hidden: false,
        })
        .collect()
}

/// What the parts of a key can be found by.
struct Match {
    equal: Vec<(Expr, usize)>,
    among: Option<(Vec<Expr>, usize)>,
    lower: Option<(Expr, bool, usize)>,
    upper: Option<(Expr, bool, usize)>,
}

/// The best way to the rows of a table that fulfil the conditions, whether an index has a key for them, and how many rows are expected. `is_known` says
/// which places have values when the scan begins, its own aside.
fn best_scan(
    used: &Rc<TableUse>,
    conditions: Vec<Expr>,
    own: &HashSet<Slot>,
    is_known: &dyn Fn(Slot) -> bool,
) -> (Scan, bool, f64) {
    let table = &used.table;
    let total = (table.row_count() as f64).max(1.0);
    let mut best: Option<(f64, &Index, Match)> = None;
    for index in &table.indexes {
        let found = match_index(used, index, &conditions, own, is_known);
        let is_whole = found.equal.len() == index.parts.len();
        if !index.is_ordered && !is_whole {
            continue;
        }
        let rows = match (is_whole && index.is_unique, found.equal.len()) {
            (true, _) => 1.0,
            (false, 0) => total,
            (false, count) => match &index.alike {
                Some(alike) => alike.get(count - 1).map_or(1.0, |alike| alike.min(total)),
                None => (total / 10f64.powi(count as i32 * 2)).max(1.0),
            },
        };
        let rows = match (&found.among, &found.lower, &found.upper) {
            (Some((list, _)), ..) => {
                let is_last = found.equal.len() + 1 == index.parts.len() && index.is_unique;
                if is_last { list.len() as f64 } else { (rows / 10.0).max(1.0) * list.len() as f64 }
            }
            (None, Some(_), Some(_)) => (rows / 9.0).max(1.0),
            (None, None, None) => rows,
            _ => (rows / 3.0).max(1.0),
        };
        if best.as_ref().is_none_or(|(least, ..)| rows < *least) {
            best = Some((rows, index, found));
        }
    }
    let mut scan = Scan {
        table: Rc::clone(table),
        alias: used.alias.clone(),
        index_id: IndexId::PRIMARY,
        index_name: table.indexes.first().map_or_else(String::new, |index| index.name.clone()),
        is_unique: false,
        equal: Vec::new(),
        among: None,
        lower: None,
        upper: None,
        is_reverse: false,
        fields: used.fields(),
        row: used.row.get(),
        filter: None,
        lock: used.lock.get(),
    };
    let mut taken = HashSet::new();
    let mut is_keyed = false;
    let mut rows = total;
    if let Some((expected, index, found)) = best {
        (scan.index_id, scan.index_name, rows) = (index.id, index.name.clone(), expected);
        is_keyed = !found.equal.is_empty() || found.among.is_some() || found.lower.is_some() || found.upper.is_some();
        scan.is_unique = index.is_unique && found.equal.len() == index.parts.len();
        taken.extend(found.equal.iter().map(|(_, number)| *number));
        taken.extend(found.among.iter().map(|(_, number)| *number));
        taken.extend(found.lower.iter().chain(&found.upper).map(|(.., number)| *number));
        scan.equal = found.equal.into_iter().map(|(expr, _)| expr).collect();
        scan.among = found.among.map(|(list, _)| list);
        scan.lower = found.lower.map(|(expr, is_within, _)| (expr, is_within));
        scan.upper = found.upper.map(|(expr, is_within, _)| (expr, is_within));
    }
    let rest: Vec<Expr> = conditions
        .into_iter()
        .enumerate()
        .filter(|(number, _)| !taken.contains(number))
        .map(|(_, expr)| expr)
        .collect();
    rows = rest.iter().fold(rows, |rows, condition| rows * share_of(condition)).max(1.0);
    scan.filter = all_of(rest);
    (scan, is_keyed, rows)
}

/// The share of rows that fulfil a condition, which nothing is known of but its form.
fn share_of(condition: &Expr) -> f64 {
    match condition {
        Expr::Compare(Comparison::Equal, ..) => 0.05,
        Expr::Compare(Comparison::NotEqual, ..) => 0.95,
        Expr::Compare(..) => 0.35,
        Expr::IsNull(_) => 0.1,
        Expr::Like(_) => 0.25,
        Expr::In(_, list, _) => (0.05 * list.len() as f64).min(0.9),
        _ => 0.5,
    }
}

fn match_index(
    used: &TableUse,
    index: &Index,
    conditions: &[Expr],
    own: &HashSet<Slot>,
    is_known: &dyn Fn(Slot) -> bool,
) -> Match {
    let slots = used.slots.borrow();
    let mut found = Match { equal: Vec::new(), among: None, lower: None, upper: None };
    let is_given = |expr: &Expr| {
        let mut is_given = true;
        expr.walk(&mut |part| {
            if let Expr::Subquery(subquery) = part {
                is_given &= !subquery.is_correlated && matches!(subquery.asked, Asked::Scalar);
            }
        });
        is_given && slots_of(expr).iter().all(|slot| !own.contains(slot) && is_known(*slot))
    };
    let same = |a: &crate::expr::CollationOption, b: &crate::expr::CollationOption| {
        a.as_ref().map(|collation| collation.id()) == b.as_ref().map(|collation| collation.id())
    };
    for (field, _, collation) in &index.parts {
        let Some(slot) = slots.get(*field).copied().flatten() else { break };
        let is_column = |expr: &Expr| matches!(expr, Expr::Slot(other) if *other == slot);
        let mut equal = None;
        let (mut among, mut lower, mut upper) = (None, None, None);
        for (number, condition) in conditions.iter().enumerate() {
            match condition {
                Expr::Compare(comparison, a, b, by) if same(by, collation) => {
                    let (comparison, other) = match () {
                        () if is_column(a) && is_given(b) => (*comparison, b),
                        () if is_column(b) && is_given(a) => (comparison.flipped(), a),
                        () => continue,
                    };
                    let other = (**other).clone();
                    match comparison {
                        Comparison::Equal => equal = equal.or(Some((other, number))),
                        Comparison::Greater => lower = lower.or(Some((other, false, number))),
                        Comparison::GreaterOrEqual => lower = lower.or(Some((other, true, number))),
                        Comparison::Less => upper = upper.or(Some((other, false, number))),
                        Comparison::LessOrEqual => upper = upper.or(Some((other, true, number))),
                        Comparison::NotEqual => {}
                    }
                }
                Expr::In(value, list, by)
                    if same(by, collation) && collation.is_none() && is_column(value) && list.iter().all(is_given) =>
                {
                    among = among.or(Some((list.clone(), number)));
                }
                _ => {}
            }
        }
        if let Some(equal) = equal {
            found.equal.push(equal);
            continue;
        }
        match among {
            Some(among) => found.among = Some(among),
            None => (found.lower, found.upper) = (lower, upper),
        }
        break;
    }
    found
}

/// Has the rows of a plan come in an order, if an index of the table that is gone through first can give it. True: they do.
pub(super) fn take_order(plan: &mut Plan, keys: &[SortKey]) -> bool {
    match plan {
        Plan::One => true,
        Plan::Filter(input, _) | Plan::Map(input, _) => take_order(input, keys),
        Plan::Loop { outer, .. } => take_order(outer, keys),
        Plan::Hash(join) if join.kind != JoinKind::Full => take_order(&mut join.outer, keys),
        Plan::Scan(scan) => scan_order(scan, keys),
        _ => false,
    }
}

fn scan_order(scan: &mut Scan, keys: &[SortKey]) -> bool {
    if scan.is_unique && scan.among.is_none() {
        // At most one row; keys of other tables stand behind it.
        return keys.iter().all(|key| scan.fields.iter().any(|(_, slot)| *slot == key.slot));
    }
    let is_whole = scan.equal.is_empty() && scan.among.is_none() && scan.lower.is_none() && scan.upper.is_none();
    if scan.among.is_some() {
        return false;
    }
    let table = Rc::clone(&scan.table);
    let usable = table.indexes.iter().filter(|index| {
        index.is_ordered
            && (index.id == scan.index_id || is_whole && (!table.space.rows.may_wait() || index.id == IndexId::PRIMARY))
    });
    for index in usable {
        let mut direction = None;
        let mut parts = index.parts.iter().enumerate();
        let fits = keys.iter().all(|key| {
            let Some((field, _)) = scan.fields.iter().find(|(_, slot)| *slot == key.slot) else { return false };
            let fixed = index.parts.iter().take(scan.equal.len()).any(|part| part.0 == *field as usize);
            if fixed && index.id == scan.index_id {
                return true;
            }
            for (number, (part, is_nullable, collation)) in parts.by_ref() {
                if number < scan.equal.len() && index.id == scan.index_id {
                    continue;
                }
                let same_collation = collation.as_ref().map(|c| c.id()) == key.collation.as_ref().map(|c| c.id());
                let nulls_fit = !is_nullable || key.nulls_first != key.is_descending;
                let is_it = *part == *field as usize && same_collation && nulls_fit;
                return is_it && *direction.get_or_insert(key.is_descending) == key.is_descending;
            }
            false
        });
        if fits {
            if index.id != scan.index_id {
                (scan.index_id, scan.index_name) = (index.id, index.name.clone());
            }
            scan.is_reverse = direction == Some(true);
            return true;
        }
    }
    false
}
