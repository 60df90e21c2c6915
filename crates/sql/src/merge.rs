//! Running MERGE: what becomes of each pair of rows is found out first, then it is done, row by row.

use crate::bind::{MergeAction, MergeClause, Merged, OnConflict, Write, refuse_twice};
use crate::change::{Counts, OwnRows};
use crate::error::Result;
use crate::expr::Slot;
use crate::kept::Pieces;
use crate::plan::Plan;
use crate::run::{Flow, Run, Sink};
use crate::value::Value;
use hashbrown::HashSet;
use std::rc::Rc;

impl Write {
    /// Errors: as of [`Write::run`]; a row of the table that would be changed twice.
    pub(crate) fn merge(
        &self,
        run: &mut Run<'_>,
        (source, row, clauses): (&Plan, Slot, &[MergeClause]),
        counts: &mut Counts,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let mut seen: HashSet<Rc<[u8]>> = HashSet::new();
        let mut found: Pieces<Merged> = Pieces::default();
        source.run(run, &mut |run| {
            let old = run.frame[row].clone();
            for (number, clause) in clauses.iter().enumerate() {
                if clause.is_matched == old.is_null() {
                    continue;
                }
                if let Some(condition) = &clause.condition
                    && !condition.is_true(run)?
                {
                    continue;
                }
                let merged = match &clause.action {
                    MergeAction::Nothing => break,
                    MergeAction::Delete => Merged::Deleted(old.clone()),
                    MergeAction::Update { sets, .. } => {
                        let mut values = Vec::with_capacity(sets.len());
                        for (_, expr) in sets {
                            values.push(expr.eval(run)?);
                        }
                        Merged::Updated(number, old.clone(), values)
                    }
                    MergeAction::Insert(exprs) => {
                        let mut values = Vec::with_capacity(exprs.len());
                        for expr in exprs {
                            values.push(expr.eval(run)?);
                        }
                        run.take_row(&values)?;
                        Merged::Inserted(values)
                    }
                };
                if let Value::Document(bytes) = &old {
                    run.take(bytes.len() * 2 + 128)?;
                    if !seen.insert(Rc::clone(bytes)) {
                        return Err(refuse_twice());
                    }
                }
                found.push(merged);
                break;
            }
            Ok(Flow::On)
        })?;
        for merged in found {
            run.tick()?;
            match merged {
                Merged::Deleted(Value::Document(old)) => {
                    self.remove(run, &old)?;
                    counts.rows += 1;
                }
                Merged::Updated(number, old, values) => {
                    if let MergeAction::Update { sets, implied } = &clauses[number].action {
                        self.update_all(run, (sets, *implied), &Pieces::of((old, values)), counts, sink)?;
                    }
                }
                Merged::Inserted(row) => {
                    self.insert(run, &row, (&OnConflict::Refuse, &mut OwnRows::default()), counts, sink)?;
                }
                Merged::Deleted(_) => {}
            }
        }
        Ok(())
    }
}
