//! ORDER BY: all rows, or the first of them.

use super::{Flow, Run, Sink};
use crate::aggregates::order_with_nulls;
use crate::error::Result;
use crate::expr::{Expr, Slot};
use crate::kept::Rows;
use crate::plan::{Plan, SortKey};
use crate::sort::{Entry, Hints, sort, sort_all};
use crate::value::Value;
use std::cmp::Ordering;

/// Rows that ORDER BY with LIMIT keeps without sorting them all.
const FIRST_ROWS_MAX: usize = 4096;

/// By the keys, whose places stand at these numbers of a row.
fn order_rows(keys: &[(usize, SortKey)], a: &[Value], b: &[Value]) -> Ordering {
    order_values(keys.iter().map(|(at, key)| (key, &a[*at], &b[*at])))
}

fn order_values<'v>(pairs: impl Iterator<Item = (&'v SortKey, &'v Value, &'v Value)>) -> Ordering {
    for (key, a, b) in pairs {
        let ordering = order_with_nulls(&key.collation, key.is_descending, key.nulls_first, a, b);
        if ordering != Ordering::Equal {
            return ordering;
        }
    }
    Ordering::Equal
}

pub(super) fn run_sort(
    run: &mut Run<'_>,
    input: &Plan,
    keys: &[SortKey],
    slots: &[Slot],
    limit: Option<&(Expr, Option<Expr>)>,
    sink: &mut Sink<'_>,
) -> Result<Flow> {
    let keys: Vec<(usize, SortKey)> = keys
        .iter()
        .filter_map(|key| slots.iter().position(|slot| *slot == key.slot).map(|at| (at, key.clone())))
        .collect();
    let kept_max = match limit {
        Some((limit, offset)) => {
            let limit = run.count_of(&Some(limit.clone()), "LIMIT")?;
            let offset = run.count_of(offset, "OFFSET")?.unwrap_or(0);
            limit.map(|limit| usize::try_from(limit.saturating_add(offset)).unwrap_or(usize::MAX))
        }
        None => None,
    };
    if let Some(kept_max) = kept_max.filter(|kept_max| *kept_max < FIRST_ROWS_MAX) {
        return run_first_rows(run, input, (&keys, slots), kept_max, sink);
    }
    let mut rows = Rows::new(slots.len());
    let mut entries: Vec<Entry> = Vec::new();
    let first = keys.first().map(|(at, key)| (slots[*at], key));
    let mut hints = first.map(|(_, key)| Hints::new(key.is_descending, &key.collation));
    let before = run.memory;
    input.run(run, &mut |run| {
        run.tick()?;
        let hint = match (&mut hints, first) {
            (Some(hints), Some((slot, _))) => hints.of(&run.frame[slot]),
            _ => 0,
        };
        entries.push((hint, rows.len() as u32));
        run.take(2 * size_of::<Entry>())?;
        rows.push(run, slots)?;
        Ok(Flow::On)
    })?;
    let taken = run.memory - before;
    if !hints.is_some_and(|hints| hints.are_good()) {
        for piece in entries.chunks_mut(1024) {
            piece.iter_mut().for_each(|entry| entry.0 = 0);
            run.tick_many(32)?;
        }
    }
    sort(run, &mut entries, taken, &|a, b| order_rows(&keys, rows.row(a as usize), rows.row(b as usize)))?;
    let mut flow = Flow::On;
    for (_, number) in &entries {
        run.tick()?;
        run.set_row(slots, rows.row(*number as usize));
        flow = sink(run)?;
        if flow == Flow::Stop {
            break;
        }
    }
    rows.free(run)?;
    run.give_back(taken);
    Ok(flow)
}

/// The same where few of the rows are wanted: twice as many are kept, and the worse half is dropped now and then.
fn run_first_rows(
    run: &mut Run<'_>,
    input: &Plan,
    (keys, slots): (&[(usize, SortKey)], &[Slot]),
    kept_max: usize,
    sink: &mut Sink<'_>,
) -> Result<Flow> {
    let mut rows: Vec<Vec<Value>> = Vec::new();
    // What comes and is not before the last of those that are kept is not wanted.
    let mut is_full = kept_max == 0;
    let before = run.memory;
    input.run(run, &mut |run| {
        run.tick()?;
        if is_full {
            let is_wanted = rows.get(kept_max.saturating_sub(1)).is_some_and(|last| {
                let values = keys.iter().map(|(at, key)| (key, &run.frame[slots[*at]], &last[*at]));
                order_values(values) == Ordering::Less
            });
            if !is_wanted {
                return Ok(Flow::On);
            }
        }
        let row = run.row(slots);
        if rows.len() < kept_max {
            run.take_row(&row)?;
        }
        rows.push(row);
        if rows.len() >= (kept_max * 2).max(64) {
            let bytes = run.memory - before;
            sort_all(run, &mut rows, bytes, &|a, b| order_rows(keys, a, b))?;
            rows.truncate(kept_max);
            is_full = true;
        }
        Ok(Flow::On)
    })?;
    let taken = run.memory - before;
    sort_all(run, &mut rows, taken, &|a, b| order_rows(keys, a, b))?;
    rows.truncate(kept_max);
    let mut flow = Flow::On;
    for row in &rows {
        run.tick()?;
        run.set_row(slots, row);
        flow = sink(run)?;
        if flow == Flow::Stop {
            break;
        }
    }
    run.give_back(taken);
    Ok(flow)
}
