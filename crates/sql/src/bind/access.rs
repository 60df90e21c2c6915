//! Access paths: by which index, and from where to where, the rows of a table are found; and in which order an index gives them.

use super::TableUse;
use super::joins::all_of;
use crate::expr::{Asked, Comparison, Expr, Slot};
use crate::plan::{JoinKind, Plan, Scan, SortKey};
use crate::table::{Index, Table};
use crate::types::Base;
use hashbrown::HashSet;
use std::rc::Rc;
use tuple::IndexId;

pub(super) fn slots_of(expr: &Expr) -> HashSet<Slot> {
    let mut slots = HashSet::new();
    expr.slots(&mut |slot| {
        slots.insert(slot);
    });
    slots
}

/// What the parts of a key can be found by.
struct Match {
    equal: Vec<(Expr, usize)>,
    among: Option<(Vec<Expr>, usize)>,
    lower: Option<(Expr, bool, usize)>,
    upper: Option<(Expr, bool, usize)>,
}

/// The best way to the rows of a table that fulfil the conditions, whether an index has a key for them, and how many rows are expected. `is_known` says
/// which places have values when the scan begins, its own aside.
pub(super) fn best_scan(
    used: &Rc<TableUse>,
    conditions: Vec<Expr>,
    own: &HashSet<Slot>,
    is_known: &dyn Fn(Slot) -> bool,
) -> (Scan, bool, f64) {
    let table = &used.table;
    let total = (table.row_count() as f64).max(1.0);
    let mut best: Option<(f64, &Index, Match)> = None;
    for index in &table.indexes {
        let found = match_index(used, index, &conditions, own, is_known);
        let is_whole = found.equal.len() == index.parts.len();
        if !index.is_ordered && !is_whole {
            continue;
        }
        let rows = match (is_whole && index.is_unique, found.equal.len()) {
            (true, _) => 1.0,
            (false, 0) => total,
            (false, count) => match &index.alike {
                Some(alike) => alike.get(count - 1).map_or(1.0, |alike| alike.min(total)),
                None => (total / 10f64.powi(count as i32 * 2)).max(1.0),
            },
        };
        let rows = match (&found.among, &found.lower, &found.upper) {
            (Some((list, _)), ..) => {
                let is_last = found.equal.len() + 1 == index.parts.len() && index.is_unique;
                if is_last { list.len() as f64 } else { (rows / 10.0).max(1.0) * list.len() as f64 }
            }
            (None, Some(_), Some(_)) => (rows / 9.0).max(1.0),
            (None, None, None) => rows,
            _ => (rows / 3.0).max(1.0),
        };
        if best.as_ref().is_none_or(|(least, ..)| rows < *least) {
            best = Some((rows, index, found));
        }
    }
    let mut scan = Scan {
        table: Rc::clone(table),
        alias: used.alias.clone(),
        index_id: IndexId::PRIMARY,
        index_name: table.indexes.first().map_or_else(String::new, |index| index.name.clone()),
        is_unique: false,
        equal: Vec::new(),
        among: None,
        lower: None,
        upper: None,
        has_nan_apart: false,
        is_reverse: false,
        fields: used.fields(),
        row: used.row.get(),
        filter: None,
        lock: used.lock.get(),
    };
    let mut taken = HashSet::new();
    let mut is_keyed = false;
    let mut rows = total;
    if let Some((expected, index, found)) = best {
        (scan.index_id, scan.index_name, rows) = (index.id, index.name.clone(), expected);
        is_keyed = !found.equal.is_empty() || found.among.is_some() || found.lower.is_some() || found.upper.is_some();
        scan.is_unique = index.is_unique && found.equal.len() == index.parts.len();
        taken.extend(found.equal.iter().map(|(_, number)| *number));
        taken.extend(found.among.iter().map(|(_, number)| *number));
        taken.extend(found.lower.iter().chain(&found.upper).map(|(.., number)| *number));
        let is_bounded = found.lower.is_some() || found.upper.is_some();
        scan.has_nan_apart = is_bounded && may_be_nan(table, index, found.equal.len());
        scan.equal = found.equal.into_iter().map(|(expr, _)| expr).collect();
        scan.among = found.among.map(|(list, _)| list);
        scan.lower = found.lower.map(|(expr, is_within, _)| (expr, is_within));
        scan.upper = found.upper.map(|(expr, is_within, _)| (expr, is_within));
    }
    let rest: Vec<Expr> = conditions
        .into_iter()
        .enumerate()
        .filter(|(number, _)| !taken.contains(number))
        .map(|(_, expr)| expr)
        .collect();
    rows = rest.iter().fold(rows, |rows, condition| rows * share_of(condition)).max(1.0);
    scan.filter = all_of(rest);
    (scan, is_keyed, rows)
}

/// The share of rows that fulfil a condition, which nothing is known of but its form.
fn share_of(condition: &Expr) -> f64 {
    match condition {
        Expr::Compare(Comparison::Equal, ..) => 0.05,
        Expr::Compare(Comparison::NotEqual, ..) => 0.95,
        Expr::Compare(..) => 0.35,
        Expr::IsNull(_) => 0.1,
        Expr::Like(_) => 0.25,
        Expr::In(_, list, _) => (0.05 * list.len() as f64).min(0.9),
        _ => 0.5,
    }
}

fn match_index(
    used: &TableUse,
    index: &Index,
    conditions: &[Expr],
    own: &HashSet<Slot>,
    is_known: &dyn Fn(Slot) -> bool,
) -> Match {
    let slots = used.slots.borrow();
    let mut found = Match { equal: Vec::new(), among: None, lower: None, upper: None };
    let is_given = |expr: &Expr| {
        let mut is_given = true;
        expr.walk(&mut |part| {
            if let Expr::Subquery(subquery) = part {
                is_given &= !subquery.is_correlated && matches!(subquery.asked, Asked::Scalar);
            }
        });
        is_given && slots_of(expr).iter().all(|slot| !own.contains(slot) && is_known(*slot))
    };
    let same = |a: &crate::expr::CollationOption, b: &crate::expr::CollationOption| {
        a.as_ref().map(|collation| collation.id()) == b.as_ref().map(|collation| collation.id())
    };
    for (field, _, collation) in &index.parts {
        let Some(slot) = slots.get(*field).copied().flatten() else { break };
        let is_column = |expr: &Expr| matches!(expr, Expr::Slot(other) if *other == slot);
        let mut equal = None;
        let (mut among, mut lower, mut upper) = (None, None, None);
        for (number, condition) in conditions.iter().enumerate() {
            match condition {
                Expr::Compare(comparison, a, b, by) if same(by, collation) => {
                    let (comparison, other) = match () {
                        () if is_column(a) && is_given(b) => (*comparison, b),
                        () if is_column(b) && is_given(a) => (comparison.flipped(), a),
                        () => continue,
                    };
                    let other = (**other).clone();
                    match comparison {
                        Comparison::Equal => equal = equal.or(Some((other, number))),
                        Comparison::Greater => lower = lower.or(Some((other, false, number))),
                        Comparison::GreaterOrEqual => lower = lower.or(Some((other, true, number))),
                        Comparison::Less => upper = upper.or(Some((other, false, number))),
                        Comparison::LessOrEqual => upper = upper.or(Some((other, true, number))),
                        Comparison::NotEqual => {}
                    }
                }
                Expr::In(value, list, by)
                    if same(by, collation) && collation.is_none() && is_column(value) && list.iter().all(is_given) =>
                {
                    among = among.or(Some((list.clone(), number)));
                }
                _ => {}
            }
        }
        if let Some(equal) = equal {
            found.equal.push(equal);
            continue;
        }
        match among {
            Some(among) => found.among = Some(among),
            None => (found.lower, found.upper) = (lower, upper),
        }
        break;
    }
    found
}

/// True for a part of an index that may be NaN.
fn may_be_nan(table: &Table, index: &Index, part: usize) -> bool {
    index.parts.get(part).is_some_and(|(field, ..)| table.columns[*field].ty.base == Base::Double)
}

/// Has the rows of a plan come in an order, if an index of the table that is gone through first can give it. True: they do.
pub(super) fn take_order(plan: &mut Plan, keys: &[SortKey]) -> bool {
    match plan {
        Plan::One => true,
        Plan::Filter(input, _) | Plan::Map(input, _) => take_order(input, keys),
        Plan::Loop { outer, .. } => take_order(outer, keys),
        Plan::Hash(join) if join.kind != JoinKind::Full => take_order(&mut join.outer, keys),
        Plan::Scan(scan) => scan_order(scan, keys),
        _ => false,
    }
}

fn scan_order(scan: &mut Scan, keys: &[SortKey]) -> bool {
    if scan.is_unique && scan.among.is_none() {
        // At most one row; keys of other tables stand behind it.
        return keys.iter().all(|key| scan.fields.iter().any(|(_, slot)| *slot == key.slot));
    }
    let is_whole = scan.equal.is_empty() && scan.among.is_none() && scan.lower.is_none() && scan.upper.is_none();
    if scan.among.is_some() {
        return false;
    }
    let table = Rc::clone(&scan.table);
    let usable = table.indexes.iter().filter(|index| {
        index.is_ordered
            && (index.id == scan.index_id || is_whole && (!table.space.rows.may_wait() || index.id == IndexId::PRIMARY))
    });
    for index in usable {
        let mut direction = None;
        let mut parts = index.parts.iter().enumerate();
        let fits = keys.iter().all(|key| {
            let Some((field, _)) = scan.fields.iter().find(|(_, slot)| *slot == key.slot) else { return false };
            let fixed = index.parts.iter().take(scan.equal.len()).any(|part| part.0 == *field as usize);
            if fixed && index.id == scan.index_id {
                return true;
            }
            for (number, (part, is_nullable, collation)) in parts.by_ref() {
                if number < scan.equal.len() && index.id == scan.index_id {
                    continue;
                }
                let same_collation = collation.as_ref().map(|c| c.id()) == key.collation.as_ref().map(|c| c.id());
                let nulls_fit = !is_nullable || key.nulls_first != key.is_descending;
                // NaN of the first of them is found apart.
                let nan_fits = number == scan.equal.len() || !may_be_nan(&table, index, number);
                let is_it = *part == *field as usize && same_collation && nulls_fit && nan_fits;
                return is_it && *direction.get_or_insert(key.is_descending) == key.is_descending;
            }
            false
        });
        if fits {
            if index.id != scan.index_id {
                (scan.index_id, scan.index_name) = (index.id, index.name.clone());
            }
            scan.is_reverse = direction == Some(true);
            scan.has_nan_apart |= direction.is_some() && may_be_nan(&table, index, scan.equal.len());
            return true;
        }
    }
    false
}
