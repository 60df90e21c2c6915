//! GROUP BY: groups in the order of their first rows, and what is computed of each.

use super::{Flow, Run, Sink};
use crate::aggregates::State;
use crate::error::Result;
use crate::expr::{Expr, Slot};
use crate::kept::Keys;
use crate::plan::Plan;
use crate::value::HashedValue;

pub(super) fn run_groups(
    run: &mut Run<'_>,
    input: &Plan,
    groups: &[(Slot, Expr)],
    calls: &[crate::aggregates::AggregateCall],
    sink: &mut Sink<'_>,
) -> Result<Flow> {
    /// Groups of one piece of their states.
    const PIECE: usize = 256;
    // In order of their first rows.
    let mut numbers = Keys::new(groups.len());
    let mut states: Vec<Vec<State>> = Vec::new();
    let mut count = 0;
    let begin = |states: &mut Vec<Vec<State>>, number: usize| {
        if number.is_multiple_of(PIECE) {
            states.push(Vec::with_capacity(calls.len() * if number == 0 { 1 } else { PIECE }));
        }
        if let Some(piece) = states.last_mut() {
            piece.extend(calls.iter().map(|call| call.begin()));
        }
    };
    if groups.is_empty() {
        begin(&mut states, 0);
        count = 1;
    }
    let mut key = Vec::with_capacity(groups.len());
    let before = run.memory;
    input.run(run, &mut |run| {
        run.tick()?;
        let mut number = 0;
        if !groups.is_empty() {
            key.clear();
            for (_, expr) in groups {
                key.push(HashedValue(expr.eval(run)?));
            }
            let is_new;
            (number, is_new) = numbers.number(run, &mut key)?;
            if is_new {
                run.take(calls.len() * size_of::<State>())?;
                begin(&mut states, number);
                count += 1;
            }
        }
        let at = number % PIECE * calls.len();
        for (call, state) in calls.iter().zip(&mut states[number / PIECE][at..]) {
            call.add(run, state)?;
        }
        Ok(Flow::On)
    })?;
    let taken = run.memory - before;
    let mut flow = Flow::On;
    let mut states = states.into_iter().flatten();
    for number in 0..count {
        run.tick()?;
        if !groups.is_empty() {
            for ((slot, _), value) in groups.iter().zip(numbers.key(number)) {
                run.frame[*slot] = value.clone();
            }
        }
        for (call, state) in calls.iter().zip(&mut states) {
            run.frame[call.slot] = call.end(run, state)?;
        }
        flow = sink(run)?;
        if flow == Flow::Stop {
            break;
        }
    }
    numbers.free(run)?;
    run.give_back(taken);
    Ok(flow)
}
