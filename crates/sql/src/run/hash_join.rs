//! Joins by a hash table of the inner rows.

use super::{Flow, Run, Sink, is_true};
use crate::error::Result;
use crate::expr::Expr;
use crate::kept::{Keys, Rows};
use crate::plan::{HashJoin, JoinKind};
use crate::value::HashedValue;

impl HashJoin {
    pub(super) fn run(&self, run: &mut Run<'_>, sink: &mut Sink<'_>) -> Result<Flow> {
        const NONE: u32 = u32::MAX;
        let mut rows = Rows::new(self.slots.len());
        let mut keys = Keys::new(self.inner_keys.len());
        // By key, its first row and its last one; by row, the next one of the same key.
        let mut ends: Vec<(u32, u32)> = Vec::new();
        let mut next: Vec<u32> = Vec::new();
        let keeps_all = self.kind == JoinKind::Full;
        let mut key = Vec::with_capacity(self.inner_keys.len());
        let before = run.memory;
        self.inner.run(run, &mut |run| {
            run.tick()?;
            let has_key = read_key(run, &self.inner_keys, &mut key)?;
            if !has_key && !keeps_all {
                return Ok(Flow::On);
            }
            let number = rows.len() as u32;
            rows.push(run, &self.slots)?;
            run.take(12)?;
            next.push(NONE);
            if has_key {
                match keys.number(run, &mut key)? {
                    (_, true) => ends.push((number, number)),
                    (known, false) => {
                        next[ends[known].1 as usize] = number;
                        ends[known].1 = number;
                    }
                }
            }
            Ok(Flow::On)
        })?;
        let taken = run.memory - before;
        let mut is_met = vec![false; if keeps_all { rows.len() } else { 0 }];
        let flow = self.outer.run(run, &mut |run| {
            run.tick()?;
            let found = if read_key(run, &self.outer_keys, &mut key)? { keys.find(&key) } else { None };
            let mut at = found.map_or(NONE, |number| ends[number].0);
            let mut is_any = false;
            while at != NONE {
                run.set_row(&self.slots, rows.row(at as usize));
                if is_true(&self.on, run)? {
                    is_any = true;
                    if keeps_all {
                        is_met[at as usize] = true;
                    }
                    if sink(run)? == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                }
                at = next[at as usize];
                if at != NONE {
                    run.tick()?;
                }
            }
            if !is_any && self.kind != JoinKind::Inner {
                run.set_null(&self.slots);
                return sink(run);
            }
            Ok(Flow::On)
        })?;
        let mut last = flow;
        if keeps_all && flow == Flow::On {
            run.set_null(&self.outer_slots);
            for number in (0..rows.len()).filter(|number| !is_met[*number]) {
                run.tick()?;
                run.set_row(&self.slots, rows.row(number));
                if sink(run)? == Flow::Stop {
                    last = Flow::Stop;
                    break;
                }
            }
        }
        rows.free(run)?;
        keys.free(run)?;
        run.give_back(taken);
        Ok(last)
    }
}

/// Reads the values that a row is found by. False: one of them is null, which equals nothing.
fn read_key(run: &mut Run<'_>, exprs: &[Expr], key: &mut Vec<HashedValue>) -> Result<bool> {
    key.clear();
    for expr in exprs {
        let value = expr.eval(run)?;
        if value.is_null() {
            return Ok(false);
        }
        key.push(HashedValue(value));
    }
    Ok(true)
}
