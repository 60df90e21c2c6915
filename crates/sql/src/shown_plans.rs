//! Who may see a plan: whoever may run the statement.
//!
//! A plan says which tables there are, their indexes and how many rows are expected. It is made when a statement is prepared, may be kept and is then
//! anybody's; so rights are looked at each time that it is shown.

use crate::bind::{Change, MergeAction, OnConflict, Write};
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::{Plan, Scan};
use database::{Context, Database, Privileges, Space};

/// Whose rights a plan is looked at with.
pub(crate) struct Viewer<'a> {
    pub(crate) database: &'a Database,
    pub(crate) context: &'a Context,
}

impl Viewer<'_> {
    /// Checks the rights that running the steps takes. Never yields. Errors: `AccessDenied`.
    pub(crate) fn check_plan(&self, plan: &Plan) -> Result<()> {
        let mut checked = Ok(());
        plan.own_expressions(&mut |expr| {
            if checked.is_ok() {
                checked = self.check_expression(expr);
            }
        });
        checked?;
        match plan {
            Plan::Scan(scan) => self.check_scan(scan),
            Plan::Write(write) => self.check_write(write),
            Plan::Owned(step) => {
                self.check(&step.space, Privileges::READ)?;
                let reader = self.context.act_as(step.space.owner(), &self.database.catalog);
                let checked = self.check_plan(&step.input);
                self.context.act_again(reader);
                checked
            }
            plan => plan.inputs().into_iter().try_for_each(|input| self.check_plan(input)),
        }
    }

    /// The same for a change, and what it computes. Errors: `AccessDenied`.
    pub(crate) fn check_write(&self, write: &Write) -> Result<()> {
        use Privileges as P;
        self.check_plan(write.source())?;
        let mut exprs: Vec<&Expr> = Vec::new();
        match &write.change {
            Change::Insert { values, on_conflict, .. } => {
                let wanted = match on_conflict {
                    OnConflict::Refuse | OnConflict::Ignore(_) => P::INSERT,
                    OnConflict::Replace => P::INSERT | P::DELETE,
                    OnConflict::Update(_) => P::INSERT | P::UPDATE,
                };
                self.check_change(&write.table.space, &[wanted])?;
                exprs.extend(values);
                if let OnConflict::Update(changed) = on_conflict {
                    exprs.extend(changed.sets.iter().map(|(_, expr)| expr).chain(&changed.filter));
                }
            }
            Change::Update { sets, others, .. } => {
                self.check_change(&write.table.space, &[P::UPDATE])?;
                exprs.extend(sets.iter().map(|(_, expr)| expr));
                for other in others {
                    self.check_change(&other.table.space, &[P::UPDATE])?;
                    exprs.extend(other.sets.iter().map(|(_, expr)| expr));
                }
            }
            Change::Merge { clauses, .. } => {
                for clause in clauses {
                    exprs.extend(&clause.condition);
                    match &clause.action {
                        MergeAction::Nothing => {}
                        MergeAction::Delete => self.check_change(&write.table.space, &[P::DELETE])?,
                        MergeAction::Update { sets, .. } => {
                            self.check_change(&write.table.space, &[P::UPDATE])?;
                            exprs.extend(sets.iter().map(|(_, expr)| expr));
                        }
                        MergeAction::Insert(values) => {
                            self.check_change(&write.table.space, &[P::INSERT])?;
                            exprs.extend(values);
                        }
                    }
                }
            }
            Change::Delete { others, .. } => {
                self.check_change(&write.table.space, &[P::DELETE])?;
                others.iter().try_for_each(|(table, _)| self.check_change(&table.space, &[P::DELETE]))?;
            }
        }
        if let Some(returning) = &write.returning {
            exprs.extend(returning.columns.iter().map(|(_, expr)| expr));
        }
        exprs.into_iter().try_for_each(|expr| self.check_expression(expr))
    }

    fn check_scan(&self, scan: &Scan) -> Result<()> {
        let space = &scan.table.space;
        self.check(space, Privileges::READ)?;
        match scan.lock {
            Some(_) => self.check_change(space, &[Privileges::UPDATE, Privileges::DELETE]),
            None => Ok(()),
        }
    }

    fn check_expression(&self, expr: &Expr) -> Result<()> {
        let mut checked = Ok(());
        expr.walk(&mut |part| {
            if checked.is_ok()
                && let Expr::Subquery(subquery) = part
            {
                checked = self.check_plan(&subquery.plan);
            }
        });
        checked
    }

    fn check(&self, space: &Space, wanted: u32) -> Result<()> {
        Ok(self.database.check_space_access(self.context, space, wanted)?)
    }

    /// Changing takes the right to write, or one of the finer ones.
    fn check_change(&self, space: &Space, finer: &[u32]) -> Result<()> {
        match self.check(space, Privileges::WRITE) {
            Err(_) if finer.iter().any(|right| self.check(space, *right).is_ok()) => Ok(()),
            checked => checked,
        }
    }
}
