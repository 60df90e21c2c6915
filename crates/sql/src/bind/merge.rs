//! MERGE of PostgreSQL's dialect: rows of a source are joined with those of a table, and each pair, or each row that finds none, is what the first WHEN says
//! that fits.

use super::identity::{self, Given};
use super::write::{Change, Write, is_default};
use super::{Binder, Scope};
use crate::error::{Condition, Error, Result};
use crate::expr::Expr;
use crate::table::Table;
use crate::value::Value;
use sqlparser::ast::{self, MergeClauseKind};
use std::rc::Rc;

/// One WHEN.
pub(crate) struct MergeClause {
    /// It is about rows of the source that have found one, or about those that have not.
    pub(crate) is_matched: bool,
    pub(crate) condition: Option<Expr>,
    pub(crate) action: MergeAction,
}

/// What becomes of a pair of rows.
pub(crate) enum MergeAction {
    Nothing,
    Delete,
    /// What columns are set to; so many of them, the last, nobody has said.
    Update {
        sets: Vec<(usize, Expr)>,
        implied: usize,
    },
    /// A value for each column.
    Insert(Vec<Expr>),
}

impl Binder<'_> {
    /// MERGE. Errors: names and types that do not fit; a WHEN that no row comes to.
    pub(crate) fn bind_merge(&self, merge: &ast::Merge) -> Result<Write> {
        if merge.output.is_some() {
            return Err(Error::new(Condition::Syntax, "syntax error at or near \"RETURNING\""));
        }
        let target = ast::Join {
            relation: merge.table.clone(),
            global: false,
            join_operator: ast::JoinOperator::LeftOuter(ast::JoinConstraint::On((*merge.on).clone())),
        };
        let from = ast::TableWithJoins { relation: merge.source.clone(), joins: vec![target] };
        let mut scope = Scope::new(None);
        let tree = self.bind_from(&mut scope, std::slice::from_ref(&from))?;
        let used = match scope.relations.last() {
            Some(relation) => self.table_of(relation)?,
            None => return Err(Error::new(Condition::Syntax, "MERGE is of a table")),
        };
        let table = Rc::clone(&used.table);
        let row = self.new_slot();
        used.row.set(Some(row));
        let mut clauses: Vec<MergeClause> = Vec::with_capacity(merge.clauses.len());
        for clause in &merge.clauses {
            let is_matched = match clause.clause_kind {
                MergeClauseKind::Matched => true,
                MergeClauseKind::NotMatched => false,
                MergeClauseKind::NotMatchedByTarget | MergeClauseKind::NotMatchedBySource => {
                    return Err(Error::new(Condition::Syntax, "syntax error at or near \"BY\""));
                }
            };
            let is_behind_all = |known: &MergeClause| known.is_matched == is_matched && known.condition.is_none();
            if clauses.iter().any(is_behind_all) {
                let what = "unreachable WHEN clause specified after unconditional WHEN clause";
                return Err(Error::new(Condition::Syntax, what));
            }
            // Where no row was found there is none to speak of.
            let hidden = if is_matched { None } else { scope.relations.pop() };
            let bound = self.bind_merge_clause(&table, &scope, clause);
            scope.relations.extend(hidden);
            let (condition, action) = bound?;
            clauses.push(MergeClause { is_matched, condition, action });
        }
        let source = self.plan_tree(tree, Vec::new()).0;
        Ok(Write { table, change: Change::Merge { source, row, clauses }, returning: None })
    }

    fn bind_merge_clause(
        &self,
        table: &Rc<Table>,
        scope: &Scope<'_>,
        clause: &ast::MergeClause,
    ) -> Result<(Option<Expr>, MergeAction)> {
        let condition = clause.predicate.as_ref().map(|predicate| self.condition(scope, predicate)).transpose()?;
        let action = match &clause.action {
            ast::MergeAction::DoNothing { .. } => MergeAction::Nothing,
            ast::MergeAction::Delete { .. } => MergeAction::Delete,
            ast::MergeAction::Update(update) => {
                let ast::MergeUpdateKind::Set(sets) = &update.kind else {
                    return Err(Error::new(Condition::Syntax, "syntax error at or near \"*\""));
                };
                if update.update_predicate.is_some() || update.delete_predicate.is_some() {
                    return Err(Error::new(Condition::Syntax, "syntax error at or near \"WHERE\""));
                }
                let mut sets = self.bind_sets(table, scope, &sets.iter().collect::<Vec<_>>())?;
                let implied = self.add_implied(table, &mut sets)?;
                MergeAction::Update { sets, implied }
            }
            ast::MergeAction::Insert(insert) => self.bind_merge_insert(table, scope, insert)?,
        };
        Ok((condition, action))
    }

    fn bind_merge_insert(
        &self,
        table: &Table,
        scope: &Scope<'_>,
        insert: &ast::MergeInsertExpr,
    ) -> Result<MergeAction> {
        let row = match &insert.kind {
            ast::MergeInsertKind::Values(values) if values.rows.len() == 1 && insert.insert_predicate.is_none() => {
                &values.rows[0].content
            }
            _ => return Err(Error::new(Condition::Syntax, "INSERT of MERGE has one row of values")),
        };
        let mut columns = Vec::new();
        for name in &insert.columns {
            columns.push(self.column_of(table, &self.dialect.object_name(name)?)?);
        }
        let are_listed = !columns.is_empty();
        if !are_listed {
            columns = table.visible().collect();
        }
        if row.len() > columns.len() || are_listed && row.len() < columns.len() {
            let what = match row.len() > columns.len() {
                true => "INSERT has more expressions than target columns",
                false => "INSERT has more target columns than expressions",
            };
            return Err(Error::new(Condition::ColumnCount, what));
        }
        let mut values: Vec<Option<Expr>> = vec![None; table.columns.len()];
        for (number, expr) in columns.iter().zip(row) {
            if is_default(expr) {
                continue;
            }
            if identity::given(table, *number, None) == Given::Refused {
                return Err(self.refuse_given(table, *number));
            }
            let value = self.assigned(table, *number, self.bind(scope, expr)?)?;
            self.check_generated_null(table, *number, &value)?;
            if values[*number].replace(value).is_some() {
                let what = format!("column \"{}\" specified more than once", table.columns[*number].name);
                return Err(Error::new(Condition::ColumnTwice, what));
            }
        }
        let all = values.into_iter().enumerate().map(|(number, value)| match value {
            Some(value) => Ok(value),
            None => self.default_of(table, number),
        });
        Ok(MergeAction::Insert(all.collect::<Result<_>>()?))
    }
}

/// A row of the table comes to a second change. Errors: that.
pub(crate) fn refuse_twice() -> Error {
    Error::new(Condition::Cardinality, "MERGE command cannot affect row a second time")
        .hint("Ensure that not more than one source row matches any one target row.")
}

/// What a row of MERGE is to be.
pub(crate) enum Merged {
    Deleted(Value),
    /// The number of the clause, the row that is there, and what its columns are set to.
    Updated(usize, Value, Vec<Value>),
    Inserted(Vec<Value>),
}
