//! Steps that count, for EXPLAIN ANALYZE: how many rows they hand on, how often they are run, and how long they take with what is below them.

use crate::error::Result;
use crate::plan::Plan;
use crate::run::{Flow, Run, Sink};
use std::cell::Cell;

/// A step and what it has come to.
pub(crate) struct Measured {
    pub(crate) plan: Plan,
    pub(crate) rows: Cell<u64>,
    pub(crate) loops: Cell<u64>,
    /// Without what those have taken that were handed the rows.
    pub(crate) nanoseconds: Cell<u64>,
}

impl Measured {
    /// As the step. Errors: as of the step.
    pub(crate) fn run(&self, run: &mut Run<'_>, sink: &mut Sink<'_>) -> Result<Flow> {
        let now = |run: &Run<'_>| run.database.environment().clock.monotonic_ns();
        self.loops.set(self.loops.get() + 1);
        let start = now(run);
        let mut of_others = 0;
        let flow = self.plan.run(run, &mut |run| {
            self.rows.set(self.rows.get() + 1);
            let start = now(run);
            let flow = sink(run);
            of_others += now(run).saturating_sub(start);
            flow
        });
        let taken = now(run).saturating_sub(start).saturating_sub(of_others);
        self.nanoseconds.set(self.nanoseconds.get() + taken);
        flow
    }
}

/// The plan with each of its steps counting.
pub(crate) fn measured(mut plan: Plan) -> Plan {
    plan.change_inputs(&mut measured);
    match plan {
        // They have no line of their own.
        Plan::Map(..) | Plan::Measured(_) => plan,
        plan => Plan::Measured(Box::new(Measured {
            plan,
            rows: Cell::new(0),
            loops: Cell::new(0),
            nanoseconds: Cell::new(0),
        })),
    }
}

impl Plan {
    /// Replaces each step that rows come from.
    fn change_inputs(&mut self, change: &mut dyn FnMut(Plan) -> Plan) {
        let mut one = |input: &mut Plan| *input = change(std::mem::replace(input, Plan::Nothing));
        match self {
            Plan::One
            | Plan::Nothing
            | Plan::Scan(_)
            | Plan::Rows(..)
            | Plan::Series { .. }
            | Plan::Virtual(..)
            | Plan::Unnest { .. }
            | Plan::Sets { .. }
            | Plan::Own { .. }
            | Plan::Measured(_) => {}
            Plan::Filter(input, _) | Plan::Map(input, _) => one(input),
            Plan::Aggregate { input, .. }
            | Plan::Sort { input, .. }
            | Plan::Distinct { input, .. }
            | Plan::Limit { input, .. }
            | Plan::Ties { input, .. } => one(input),
            Plan::Loop { outer, inner, .. } => {
                one(outer);
                one(inner);
            }
            Plan::Hash(join) => {
                one(&mut join.outer);
                one(&mut join.inner);
            }
            Plan::Concat(inputs) => inputs.iter_mut().for_each(one),
            Plan::Among { left, right, .. } => {
                one(left);
                one(right);
            }
            Plan::GroupingSets(step) => one(&mut step.input),
            Plan::Window(step) => one(&mut step.input),
            Plan::Owned(step) => one(&mut step.input),
            Plan::Write(write) => write.within(change),
            Plan::With { definition, body, .. } => {
                if let Some(definition) = std::rc::Rc::get_mut(definition) {
                    one(&mut definition.plan);
                    if let Some((step, ..)) = &mut definition.step {
                        one(step);
                    }
                }
                one(body);
            }
        }
    }
}
