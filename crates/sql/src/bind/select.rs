//! One block of SELECT: FROM and WHERE, groups and what stands behind them, its columns, DISTINCT and the order of its rows.

use super::access::take_order;
use super::from::{Tree, conjuncts};
use super::query::{Tail, limited, sorted, unnested};
use super::windows::Windows;
use super::{Binder, Bound, Output, Query, Scope};
use crate::aggregates::{Aggregate, AggregateCall};
use crate::cast::Strictness;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{Asked, Expr, Slot};
use crate::grouping::GroupingSets;
use crate::plan::{JoinKind, Plan, SortKey};
use crate::types::{Base, Type};
use sqlparser::ast::{self, SelectItem};
use std::cell::RefCell;

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
    pub(super) fn bind_select(
        &self,
        select: &ast::Select,
        parent: Option<&Scope<'_>>,
        tail: Tail<'_>,
    ) -> Result<Query> {
        self.check_select(select)?;
        let mut scope = Scope::new(parent);
        scope.locks = self.row_locks(tail.locks);
        let tree = self.bind_from(&mut scope, &select.from)?;
        self.check_locks(&scope)?;
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
        if self.dialect == Dialect::Mysql && select.having.is_some() {
            // What is grouped by is meant before what is shown.
            let grouped = names_of_groups(self.dialect, &select.group_by);
            let is_grouped = |name: &str| grouped.iter().any(|known| self.dialect.is_same(known, name));
            let of_from = |name: &str| {
                let mut known = scope.relations.iter().flat_map(|relation| &relation.columns);
                known.any(|column| column.is_named(self.dialect, name))
            };
            let results = columns.iter().filter(|(name, _)| !(is_grouped(name) && of_from(name)));
            scope.results = results.cloned().collect();
        }
        let having = select.having.as_ref().map(|having| self.condition(&scope, having)).transpose()?;
        scope.results = Vec::new();
        allow_windows(true);
        let mut order = self.bind_order(&scope, tail.order_by, &columns)?;
        let mut on = match &select.distinct {
            Some(ast::Distinct::On(exprs)) => self.bind_distinct_on(&scope, exprs, &columns)?,
            _ => Vec::new(),
        };
        let mut having = having;
        let calls = scope.calls.take().map(RefCell::into_inner).unwrap_or_default();
        let mut windows = scope.windows.take().map(Windows::into_found).unwrap_or_default();
        let has_groups = !calls.is_empty() || !groups.all.is_empty() || groups.sets.is_some();
        // Where nothing is grouped HAVING is one more WHERE in MySQL.
        let is_grouped = has_groups || having.is_some() && self.dialect != Dialect::Mysql;
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
        }
        if let Some(having) = having {
            plan = Plan::Filter(Box::new(plan), having);
        }
        if !windows.is_empty() {
            if !tail.locks.is_empty() && self.dialect == Dialect::Postgres {
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
                    if let Some((shown, table)) = name.split_once(crate::mysql::show::TABLE_MARK) {
                        name = self.shown_as(shown, table);
                    }
                    columns.push((name, self.bind_column(scope, expr)?))
                }
                SelectItem::Wildcard(_) => {
                    if scope.relations.is_empty() {
                        return Err(Error::new(
                            Condition::Syntax,
                            "Failed to expand '*' in SELECT statement without FROM clause",
                        )
                        .mysql(1096)
                        .words_of_mysql(self.dialect, "No tables used".to_string()));
                    }
                    for relation in &scope.relations {
                        let visible = relation.columns.iter().filter(|column| !column.is_hidden);
                        columns.extend(visible.map(|column| (column.name.clone(), self.at(column))));
                    }
                }
                SelectItem::QualifiedWildcard(ast::SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                    let alias = self.dialect.object_name(name)?;
                    let relation = scope.relations.iter().find(|relation| self.is_called(relation, &alias));
                    if self.dialect == Dialect::Postgres
                        && let Some(error) = self.ambiguous_table(scope, &alias)
                    {
                        return Err(error);
                    }
                    let relation = relation.ok_or_else(|| {
                        Error::new(
                            Condition::UndefinedTable,
                            format!("missing FROM-clause entry for table \"{alias}\""),
                        )
                    })?;
                    // One that USING has merged into another is there all the same.
                    let is_own = |column: &&super::RelationColumn| match &column.place {
                        super::Place::Field(used, number) => used.table.columns[*number].is_hidden,
                        _ => false,
                    };
                    let visible = relation.columns.iter().filter(|column| !is_own(column));
                    columns.extend(visible.map(|column| (column.name.clone(), self.at(column))));
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
                name if name == "?column?" => match Type::of_ast(self.dialect, data_type) {
                    Ok(ty) => catalog_name(ty).to_string(),
                    Err(_) => self.name_of_user_type(data_type).unwrap_or(name),
                },
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
                Some(number) => self.sorted_as_choice(columns[number].1.clone())?,
                None => self.sorted_as_choice(self.bind(scope, &key.expr)?)?,
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
                        if let Asked::Quantified { values, .. } = &subquery.asked {
                            values.iter().for_each(|value| value.slots(&mut |slot| within.push(slot)));
                        }
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
            let whole = Tail { order_by: tail.order_by, limit: None, offset: None, locks: &[], has_ties: false };
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
        Base::Double if ty.is_float() => "float4",
        Base::Double => "float8",
        Base::Decimal | Base::Number => "numeric",
        Base::Date => "date",
        Base::Timestamp => "timestamp",
        Base::TimestampTz => "timestamptz",
        Base::Interval => "interval",
        Base::Time => "time",
        Base::TimeTz => "timetz",
        Base::Inet => "inet",
        Base::Cidr => "cidr",
        Base::Macaddr => "macaddr",
        Base::Macaddr8 => "macaddr8",
        Base::Int4Range => "int4range",
        Base::Int8Range => "int8range",
        Base::NumRange => "numrange",
        Base::DateRange => "daterange",
        Base::TsRange => "tsrange",
        Base::TstzRange => "tstzrange",
        Base::Bytes => "bytea",
        Base::Uuid => "uuid",
        Base::Json if ty.is_plain_json() => "json",
        Base::Json => "jsonb",
        _ => "text",
    }
}

/// Names that stand alone in GROUP BY.
fn names_of_groups(dialect: Dialect, group_by: &ast::GroupByExpr) -> Vec<String> {
    let ast::GroupByExpr::Expressions(exprs, _) = group_by else { return Vec::new() };
    let name = |expr: &ast::Expr| match expr {
        ast::Expr::Identifier(ident) => Some(dialect.fold(ident)),
        ast::Expr::CompoundIdentifier(parts) => parts.last().map(|ident| dialect.fold(ident)),
        _ => None,
    };
    exprs.iter().filter_map(name).collect()
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
