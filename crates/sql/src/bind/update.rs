//! UPDATE and DELETE: which rows of which tables are changed, and what their columns are set to.

use super::from::conjuncts;
use super::write::{Change, OtherUpdate, PASSES_OVER, Write, is_default};
use super::{Binder, Scope, TableUse};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{Expr, Slot};
use crate::plan::Plan;
use crate::table::Table;
use crate::value::Value;
use sqlparser::ast;
use std::rc::Rc;

impl Binder<'_> {
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
                let (used, mut relation) = self.use_table(Rc::clone(&table), alias.clone());
                relation.whole = self.whole_name(&table, has_alias(&update.table));
                scope.relations.push(relation);
                let tree = super::from::Tree::Table(Rc::clone(&used));
                (table, alias, tree, vec![(used, update.assignments.iter().collect())])
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
    fn updated_tables<'u>(
        &self,
        scope: &Scope<'_>,
        sets: &'u [ast::Assignment],
    ) -> Result<Vec<(Rc<TableUse>, Vec<&'u ast::Assignment>)>> {
        // Values may be long chains, which are copied by recursion: nobody copies them here.
        let mut found: Vec<(Rc<TableUse>, Vec<&ast::Assignment>)> = Vec::new();
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
                is_named && relation.columns.iter().any(|known| known.is_named(self.dialect, &column))
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
                Some((_, sets)) => sets.push(set),
                None => found.push((used, vec![set])),
            }
        }
        Ok(found)
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

    pub(super) fn bind_sets(
        &self,
        table: &Rc<Table>,
        scope: &Scope<'_>,
        sets: &[&ast::Assignment],
    ) -> Result<Vec<(usize, Expr)>> {
        let mut found: Vec<(usize, Expr)> = Vec::with_capacity(sets.len());
        // Columns that parts of are assigned to.
        let mut parted = Vec::new();
        let mut add = |name: &ast::ObjectName, value: &ast::Expr| -> Result<()> {
            let number = self.column_of(table, &self.dialect.object_name(name)?)?;
            let known = found.iter().position(|(other, _)| *other == number);
            let part = match self.dialect {
                Dialect::Postgres => super::parts::of_value(value),
                _ => None,
            };
            let is_further = part.is_some() && parted.contains(&number);
            if known.is_some() && !is_further && self.dialect != Dialect::Mysql {
                let what = format!("multiple assignments to same column \"{}\"", table.columns[number].name);
                let condition =
                    if self.dialect == Dialect::Postgres { Condition::Syntax } else { Condition::DuplicateColumn };
                return Err(Error::new(condition, what));
            }
            if table.columns[number].generated.is_some() {
                // What it is set to is what it is.
                if !is_default(value) && !self.is_no_value(table, number, value) {
                    return Err(crate::generated::refuse_set(self.dialect, table, number));
                }
                return Ok(());
            }
            if let Some((chain, value)) = &part {
                let before = known.map(|at| found.remove(at).1);
                let value = self.assigned_to_part(table, number, scope, before, (chain, value.as_slice()))?;
                super::identity::check_set(table, number)?;
                parted.push(number);
                found.push((number, value));
                return Ok(());
            }
            let value = match is_default(value) {
                true => self.default_set(table, number)?,
                false if self.dialect == Dialect::Postgres => {
                    let value = self.assigned(table, number, self.bind(scope, value)?)?;
                    super::identity::check_set(table, number)?;
                    value
                }
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
    pub(super) fn add_implied(&self, table: &Rc<Table>, sets: &mut Vec<(usize, Expr)>) -> Result<usize> {
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

    /// The table that a relation is. Errors: it is none.
    pub(super) fn table_of(&self, relation: &super::Relation) -> Result<Rc<TableUse>> {
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
        let (used, mut relation) = self.use_table(Rc::clone(&table), alias.clone());
        relation.whole = self.whole_name(&table, has_alias(target));
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

    /// Errors: MySQL's UPDATE sets a column to the DEFAULT that it has not; whether a row gets it is not asked.
    fn check_defaults(&self, table: &Table, sets: &[&ast::Assignment]) -> Result<()> {
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
}

fn has_alias(target: &ast::TableWithJoins) -> bool {
    matches!(&target.relation, ast::TableFactor::Table { alias: Some(_), .. })
}

fn table_name(factor: &ast::TableFactor) -> Option<ast::ObjectName> {
    match factor {
        ast::TableFactor::Table { name, .. } => Some(name.clone()),
        _ => None,
    }
}
