//! FROM: what names it gives, and which tables, queries and functions it is made of.

use super::locks::set_lock;
use super::{Binder, Bound, Place, Relation, RelationColumn, Scope, TableUse};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{Comparison, Expr, Slot};
use crate::plan::{JoinKind, Plan};
use crate::types::{Base, Type};
use crate::value::Value;
use hashbrown::HashSet;
use sqlparser::ast::{self, JoinConstraint, JoinOperator, TableFactor};
use std::rc::Rc;

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

    pub(super) fn slots(&self) -> HashSet<Slot> {
        let mut slots = HashSet::new();
        self.fills(&mut slots);
        slots
    }
}

impl Binder<'_> {
    /// Binds FROM: the names go into the scope.
    pub(super) fn bind_from(&self, scope: &mut Scope<'_>, from: &[ast::TableWithJoins]) -> Result<Tree> {
        let mut trees = Vec::with_capacity(from.len());
        for item in from.iter().filter(|item| !self.is_dual(item)) {
            // Where a comma binds as strongly as JOIN, what stands before it is the left side of what follows.
            let before = match self.dialect {
                Dialect::Tarantool => trees.pop(),
                _ => None,
            };
            trees.push(self.bind_joins(scope, item, before)?);
        }
        Ok(Tree::Inner(trees, Vec::new()))
    }

    /// MySQL's FROM DUAL: no table at all.
    fn is_dual(&self, item: &ast::TableWithJoins) -> bool {
        match &item.relation {
            TableFactor::Table { name, alias: None, args: None, .. } if self.dialect == Dialect::Mysql => {
                let is_it = |name: &ast::Ident| name.quote_style.is_none() && name.value.eq_ignore_ascii_case("dual");
                item.joins.is_empty() && name.0.len() == 1 && name.0[0].as_ident().is_some_and(is_it)
            }
            _ => false,
        }
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
            .filter(|other| other.whole.is_none() || relation.whole.is_none() || other.whole == relation.whole)
            .any(|other| !other.alias.is_empty() && self.dialect.is_same(&other.alias, &relation.alias))
            && self.dialect != crate::Dialect::Tarantool
        {
            let what = format!("table name \"{}\" specified more than once", relation.alias);
            return Err(Error::new(Condition::DuplicateAlias, what));
        }
        scope.relations.push(relation);
        Ok(())
    }

    /// The name of a table with its schema, where it is known by that.
    pub(super) fn whole_name(&self, table: &crate::table::Table, has_alias: bool) -> Option<String> {
        if has_alias || self.dialect != Dialect::Postgres || table.space.def().is_session {
            return None;
        }
        let (schema, local) = crate::schemas::split(self.database, &table.full);
        Some(format!("{}.{local}", crate::schemas::schema_name(schema.as_deref())))
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
        let known = scope.relations.len();
        let tree = self.bind_unlocked(scope, factor)?;
        if let [relation] = &scope.relations[known..]
            && let Some(lock) = self.lock_of_relation(scope, &relation.alias)
        {
            set_lock(&tree, lock);
        }
        Ok(tree)
    }

    fn bind_unlocked(&self, scope: &mut Scope<'_>, factor: &TableFactor) -> Result<Tree> {
        match factor {
            TableFactor::Table { name, alias, args: None, sample: None, .. } => {
                let table_name = self.dialect.table_name(name)?;
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
                let table = self.find_table(&table_name).map_err(|error| {
                    match name.0.first().and_then(ast::ObjectNamePart::as_ident) {
                        Some(ident) => error.at(ident.span.start),
                        None => error,
                    }
                })?;
                if table.indexes.is_empty()
                    && let Some(view) = crate::views::of(self.database, &table.space)
                {
                    return self.bind_view(scope, &table, &view, alias.as_ref());
                }
                let own = if self.dialect == crate::Dialect::Postgres { table.name.clone() } else { table_name };
                let alias_name = alias.as_ref().map_or(own, |alias| self.dialect.fold(&alias.name));
                let (used, mut relation) = self.use_table(table, alias_name);
                relation.whole = self.whole_name(&used.table, alias.is_some());
                self.alias_of(alias.as_ref(), &mut relation)?;
                self.add_relation(scope, relation)?;
                Ok(Tree::Table(used))
            }
            TableFactor::Derived { lateral, subquery, alias, .. } => {
                let locking = self.locking(scope, alias.as_ref(), subquery);
                let subquery = locking.as_ref().unwrap_or(subquery);
                let query = match lateral {
                    true => self.bind_query(subquery, Some(scope))?,
                    false => self.bind_query(subquery, scope.parent)?,
                };
                let mut relation = Relation { alias: String::new(), columns: columns_of(&query.outputs), whole: None };
                self.alias_of(alias.as_ref(), &mut relation)?;
                self.note_derived(&relation);
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
                _ if *base == Base::Int8 && table.is_object_number(name) => Type::OID,
                _ => Type::of(*base),
            },
            // Names of tables alone tell case in MySQL.
            collation: if self.dialect == crate::Dialect::Mysql && *base == Base::Text && !names_table(name) {
                self.database.catalog.collation_by_name("unicode_ci")
            } else {
                None
            },
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
        Some((Plan::Virtual(table, slots), Relation { alias: table.name.to_string(), columns, whole: None }))
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
        let relation = Relation { alias: name.to_string(), columns: shown, whole: None };
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
        Some((Plan::Own { number: own.number, slots }, Relation { alias: own.name, columns, whole: None }))
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
        if self.dialect == crate::Dialect::Postgres && !name.eq_ignore_ascii_case("generate_series") && !is_numbered {
            // A function that gives one value is a table of one row: `SELECT * FROM current_schema()`.
            let name = name.to_lowercase();
            let mut bounds = Vec::with_capacity(arguments.len());
            for argument in arguments {
                let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) = argument else {
                    return Err(Error::unsupported(format!("'{argument}'")));
                };
                bounds.push(self.bind(scope, expr)?);
            }
            let bound = match self.bind_typed_call(&name, &mut bounds)? {
                Some(bound) => bound,
                None => self.call(&name, bounds)?,
            };
            let slot = self.new_slot();
            let alias_name = alias.map_or_else(|| name.clone(), |alias| self.dialect.fold(&alias.name));
            let column = RelationColumn {
                name: alias_name.clone(),
                ty: bound.ty,
                collation: None,
                place: Place::Slot(slot),
                is_hidden: false,
            };
            let mut relation = Relation { alias: alias_name, columns: vec![column], whole: None };
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
        let mut relation = Relation { alias: name, columns: vec![column], whole: None };
        self.alias_of(alias, &mut relation)?;
        self.add_relation(scope, relation)?;
        Ok(Tree::Rows(Box::new(Plan::Series { from, to, step, slot })))
    }
}

/// True for columns of MySQL's catalog that are names of tables and databases.
fn names_table(column: &str) -> bool {
    ["table_name", "_schema", "schema_name", "_catalog"].iter().any(|end| column.ends_with(end))
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
