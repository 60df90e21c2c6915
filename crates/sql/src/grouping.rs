//! GROUPING SETS, ROLLUP and CUBE: each row counts in a group of each set.

use crate::aggregates::{AggregateCall, State};
use crate::error::Result;
use crate::expr::{Expr, Slot};
use crate::plan::Plan;
use crate::run::{Flow, Run, Sink};
use crate::value::{HashedValue, Value};
use hashbrown::HashMap;
use std::cmp::Ordering;

/// Sets of one query.
pub(crate) const SETS_MAX: usize = 4096;

/// A step that gives one row for each group of each set.
pub(crate) struct GroupingSets {
    pub(crate) input: Plan,
    /// All that rows are grouped by, in any set.
    pub(crate) groups: Vec<(Slot, Expr)>,
    /// By set, which of them it has.
    pub(crate) sets: Vec<Vec<bool>>,
    /// Where the number of a group's set goes.
    pub(crate) number: Slot,
    pub(crate) calls: Vec<AggregateCall>,
    /// Groups come in the order of their values, those of fewer behind.
    pub(crate) is_ordered: bool,
}

struct Group {
    set: usize,
    values: Vec<Value>,
    states: Vec<State>,
}

impl GroupingSets {
    /// Hands on a row for each group. Errors: those of the expressions; `LimitExceeded`.
    pub(crate) fn run(&self, run: &mut Run<'_>, sink: &mut Sink<'_>) -> Result<Flow> {
        let mut numbers: HashMap<(usize, Vec<HashedValue>), usize> = HashMap::new();
        let mut groups: Vec<Group> = Vec::new();
        let begin = || self.calls.iter().map(AggregateCall::begin).collect::<Vec<State>>();
        for (number, set) in self.sets.iter().enumerate() {
            // All rows are one group, even if there are none.
            if !set.contains(&true) {
                let values = vec![Value::Null; self.groups.len()];
                let key = values.iter().cloned().map(HashedValue).collect();
                numbers.insert((number, key), groups.len());
                groups.push(Group { set: number, values, states: begin() });
            }
        }
        let before = run.memory_taken();
        self.input.run(run, &mut |run| {
            let mut row = Vec::with_capacity(self.groups.len());
            for (_, expr) in &self.groups {
                row.push(expr.eval(run)?);
            }
            for (number, set) in self.sets.iter().enumerate() {
                run.tick()?;
                let of_set = row.iter().zip(set).map(|(value, is)| if *is { value.clone() } else { Value::Null });
                let values: Vec<Value> = of_set.collect();
                let key: Vec<HashedValue> = values.iter().cloned().map(HashedValue).collect();
                let at = match numbers.get(&(number, key)) {
                    Some(at) => *at,
                    None => {
                        run.take_row(&values)?;
                        run.take(128 + self.calls.len() * size_of::<State>())?;
                        let key = values.iter().cloned().map(HashedValue).collect();
                        numbers.insert((number, key), groups.len());
                        groups.push(Group { set: number, values, states: begin() });
                        groups.len() - 1
                    }
                };
                for (call, state) in self.calls.iter().zip(&mut groups[at].states) {
                    call.add(run, state)?;
                }
            }
            Ok(Flow::On)
        })?;
        if self.is_ordered {
            let bytes = run.memory_taken() - before;
            crate::sort::sort_all(run, &mut groups, bytes, &|a, b| self.order(a, b))?;
        }
        for group in groups {
            run.tick()?;
            for ((slot, _), value) in self.groups.iter().zip(group.values) {
                run.frame[*slot] = value;
            }
            run.frame[self.number] = Value::Int(group.set as i64);
            for (call, state) in self.calls.iter().zip(group.states) {
                run.frame[call.slot] = call.end(run, state)?;
            }
            if sink(run)? == Flow::Stop {
                run.give_back_to(before);
                return Ok(Flow::Stop);
            }
        }
        run.give_back_to(before);
        Ok(Flow::On)
    }

    fn order(&self, a: &Group, b: &Group) -> Ordering {
        for at in 0..self.groups.len() {
            let order = match (self.sets[a.set][at], self.sets[b.set][at]) {
                (true, true) => a.values[at].order(&b.values[at]),
                (true, false) => Ordering::Less,
                (false, true) => Ordering::Greater,
                (false, false) => Ordering::Equal,
            };
            if order != Ordering::Equal {
                return order;
            }
        }
        Ordering::Equal
    }
}
