//! FOR UPDATE and its kin: which tables of a query have their rows locked, and how.

use super::from::Tree;
use super::{Binder, Scope};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::plan::Lock;
use sqlparser::ast;

/// A clause of locks.
pub(super) struct RowLocks {
    /// The tables that it is for; none: all.
    of: Option<Vec<ast::Ident>>,
    lock: Lock,
}

fn lock_of(clause: &ast::LockClause) -> Lock {
    match clause.nonblock {
        Some(ast::NonBlock::Nowait) => Lock::NoWait,
        Some(ast::NonBlock::SkipLocked) => Lock::Skip,
        None => Lock::Wait,
    }
}

impl Binder<'_> {
    pub(super) fn row_locks(&self, clauses: &[ast::LockClause]) -> Vec<RowLocks> {
        let names = |name: &ast::ObjectName| {
            // Where a list was, the parser has a name of several parts.
            name.0.iter().filter_map(ast::ObjectNamePart::as_ident).cloned().collect()
        };
        clauses.iter().map(|clause| RowLocks { of: clause.of.as_ref().map(names), lock: lock_of(clause) }).collect()
    }

    /// How the rows of what has this name in FROM are locked. Of several ways the one that waits least counts.
    pub(super) fn lock_of_relation(&self, scope: &Scope<'_>, alias: &str) -> Option<Lock> {
        let is_meant = |locks: &&RowLocks| match &locks.of {
            None => true,
            Some(names) => names.iter().any(|name| self.dialect.is_same(&self.dialect.fold(name), alias)),
        };
        scope.locks.iter().filter(is_meant).map(|locks| locks.lock).max_by_key(|lock| match lock {
            Lock::Wait => 0,
            Lock::Skip => 1,
            Lock::NoWait => 2,
        })
    }

    /// A query in FROM whose tables have their rows locked by what stands around it, as PostgreSQL has it. None: it is as it was.
    pub(super) fn locking(
        &self,
        scope: &Scope<'_>,
        alias: Option<&ast::TableAlias>,
        query: &ast::Query,
    ) -> Option<ast::Query> {
        if self.dialect != Dialect::Postgres || !query.locks.is_empty() {
            return None;
        }
        let alias = alias.map_or_else(String::new, |alias| self.dialect.fold(&alias.name));
        let nonblock = match self.lock_of_relation(scope, &alias)? {
            Lock::Wait => None,
            Lock::NoWait => Some(ast::NonBlock::Nowait),
            Lock::Skip => Some(ast::NonBlock::SkipLocked),
        };
        let lock = ast::LockClause { lock_type: ast::LockType::Update, of: None, nonblock };
        Some(ast::Query { locks: vec![lock], ..query.clone() })
    }

    /// Errors: OF names what is not in FROM.
    pub(super) fn check_locks(&self, scope: &Scope<'_>) -> Result<()> {
        for name in scope.locks.iter().filter_map(|locks| locks.of.as_ref()).flatten() {
            let wanted = self.dialect.fold(name);
            if !scope.relations.iter().any(|relation| self.dialect.is_same(&relation.alias, &wanted)) {
                return Err(match self.dialect {
                    Dialect::Mysql => {
                        let what = format!("Unresolved table name `{wanted}` in locking clause.");
                        Error::new(Condition::UndefinedTable, what).mysql(3568)
                    }
                    _ => {
                        let what = format!("relation \"{wanted}\" in FOR UPDATE clause not found in FROM clause");
                        Error::new(Condition::UndefinedTable, what).at(name.span.start)
                    }
                });
            }
        }
        Ok(())
    }
}

/// Locks the rows of all tables in a part of FROM.
pub(super) fn set_lock(tree: &Tree, lock: Lock) {
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
