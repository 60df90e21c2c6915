//! Views in FROM: their queries in their place.

use super::from::{Tree, columns_of, conjuncts};
use super::{Binder, Relation, RelationColumn, Scope};
use crate::error::{Condition, Error, Result};
use crate::expr::Expr;
use crate::plan::Plan;
use crate::table::Table;
use crate::views::{self, DEPTH_MAX, OwnedRows, SavedView};
use sqlparser::ast;
use std::cell::RefCell;
use std::rc::Rc;

impl Binder<'_> {
    /// A view in FROM.
    pub(super) fn bind_view(
        &self,
        scope: &mut Scope<'_>,
        table: &Rc<Table>,
        view: &SavedView,
        alias: Option<&ast::TableAlias>,
    ) -> Result<Tree> {
        if view.dialect != self.dialect {
            let what = format!("reading view '{}', which was made in another dialect,", table.name);
            return Err(Error::unsupported(what));
        }
        let id = table.space.id;
        if self.views.borrow().contains(&id) {
            return Err(views::recursion(&table.name));
        }
        if self.views.borrow().len() >= DEPTH_MAX {
            let what = format!("views are nested deeper than {DEPTH_MAX}");
            return Err(Error::new(Condition::LimitExceeded, what));
        }
        let query = view.query()?;
        // Names of the statement around it mean nothing there.
        let own = std::mem::take(&mut *self.own.borrow_mut());
        self.views.borrow_mut().push(id);
        let bound = views::for_owner(self.database, &table.space, || self.bind_view_query(table, &query));
        self.views.borrow_mut().pop();
        *self.own.borrow_mut() = own;
        let (tree, columns) = bound.map_err(|error| self.of_view(&table.name, error))?;
        let mut columns = in_order(columns, &view.columns);
        for (column, name) in columns.iter_mut().zip(&view.columns) {
            column.name.clone_from(name);
        }
        let whole = self.whole_name(table, alias.is_some());
        let mut relation = Relation { alias: table.name.clone(), columns, whole };
        self.alias_of(alias, &mut relation)?;
        self.add_relation(scope, relation)?;
        Ok(tree)
    }

    /// MySQL says of a view whose tables have gone that it is the view which is no good.
    fn of_view(&self, view: &str, error: Error) -> Error {
        use Condition::{UndefinedColumn, UndefinedFunction, UndefinedTable};
        match error.condition() {
            UndefinedTable | UndefinedColumn | UndefinedFunction if self.dialect == crate::Dialect::Mysql => {
                let what = format!(
                    "View '{view}' references invalid table(s) or column(s) or function(s) or definer/invoker of view lack rights to use them"
                );
                Error::new(UndefinedTable, what).mysql(1356)
            }
            _ => error,
        }
    }

    fn bind_view_query(&self, table: &Rc<Table>, query: &ast::Query) -> Result<(Tree, Vec<RelationColumn>)> {
        if let Some(found) = self.bind_plain_view(table, query)? {
            return Ok(found);
        }
        let query = self.bind_query(query, None)?;
        let columns = columns_of(&query.outputs);
        let step = OwnedRows { input: query.plan, space: Rc::clone(&table.space) };
        Ok((Tree::Rows(Box::new(Plan::Owned(Box::new(step)))), columns))
    }

    /// A view of columns of tables and conditions, which can be planned with what stands around it. None: it is another one.
    fn bind_plain_view(&self, table: &Rc<Table>, query: &ast::Query) -> Result<Option<(Tree, Vec<RelationColumn>)>> {
        let ast::SetExpr::Select(select) = &*query.body else { return Ok(None) };
        let is_plain = query.with.is_none()
            && query.order_by.is_none()
            && query.limit_clause.is_none()
            && query.fetch.is_none()
            && query.locks.is_empty()
            && select.distinct.is_none()
            && select.having.is_none()
            && select.named_window.is_empty()
            && matches!(&select.group_by, ast::GroupByExpr::Expressions(exprs, _) if exprs.is_empty())
            && !select.from.is_empty()
            && self.check_select(select).is_ok();
        if !is_plain {
            return Ok(None);
        }
        let mut inner = Scope::new(None);
        let tree = self.bind_from(&mut inner, &select.from)?;
        let mut conditions = Vec::new();
        if let Some(selection) = &select.selection {
            conjuncts(self.condition(&inner, selection)?, &mut conditions);
        }
        inner.calls = Some(RefCell::new(Vec::new()));
        let columns = match self.bind_projection(&inner, &select.projection) {
            Ok(columns) => columns,
            // Windows and sets of rows, perhaps: those are no plain ones.
            Err(_) => return Ok(None),
        };
        let has_calls = inner.calls.as_ref().is_some_and(|calls| !calls.borrow().is_empty());
        if has_calls || !columns.iter().all(|(_, bound)| matches!(bound.expr, Expr::Slot(_))) {
            return Ok(None);
        }
        let columns = columns.into_iter().map(|(name, bound)| RelationColumn {
            name,
            ty: bound.ty,
            collation: bound.collation,
            place: super::Place::Expr(bound.expr),
            is_hidden: false,
        });
        let columns = columns.collect();
        Ok(Some((Tree::View(Box::new(tree), conditions, Rc::clone(&table.space)), columns)))
    }
}

/// The columns that a view had when it was made: by their names, if there are more by now.
fn in_order(mut columns: Vec<RelationColumn>, names: &[String]) -> Vec<RelationColumn> {
    if columns.len() == names.len() {
        return columns;
    }
    let mut found = Vec::with_capacity(names.len());
    for name in names {
        match columns.iter().position(|column| column.name == *name) {
            Some(at) => found.push(columns.remove(at)),
            None if !columns.is_empty() => found.push(columns.remove(0)),
            None => {}
        }
    }
    found
}
