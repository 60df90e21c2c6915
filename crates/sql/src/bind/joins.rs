//! In which order the tables of FROM are gone through.
//!
//! Inner joins are one list of tables and one list of conditions, whatever way they are written. The next table is always the one of which the fewest rows
//! are expected, given those that are there: found by an index whose key the tables before give; else by a hash table. The outer side of a join is never
//! kept, so that the order of the first table's index is the order of the result.

use super::Binder;
use super::access::{best_scan, slots_of};
use super::from::Tree;
use crate::expr::{Comparison, Expr, Slot};
use crate::plan::{HashJoin, JoinKind, Plan};
use crate::views::OwnedRows;
use hashbrown::HashSet;
use std::rc::Rc;

pub(super) fn all_of(mut parts: Vec<Expr>) -> Option<Expr> {
    match parts.len() {
        0 => None,
        1 => parts.pop(),
        _ => Some(Expr::And(parts)),
    }
}

impl Binder<'_> {
    /// The rows of FROM that fulfil all conditions, and how many are expected.
    pub(super) fn plan_tree(&self, tree: Tree, mut conditions: Vec<Expr>) -> (Plan, f64) {
        match tree {
            Tree::Table(used) => {
                let own = Tree::Table(Rc::clone(&used)).slots();
                let (scan, _, rows) = best_scan(&used, conditions, &own, &|_| true);
                (Plan::Scan(scan), rows)
            }
            Tree::Rows(plan) => (filtered(*plan, conditions), 1000.0),
            Tree::Inner(trees, on) => {
                conditions.extend(on);
                let mut items = Vec::new();
                flatten(trees, &mut items, &mut conditions);
                self.plan_inner(items, conditions)
            }
            Tree::View(tree, own, space) => {
                // What may have an effect, or reads, does so with the rights of the reader.
                let is_plain = |condition: &Expr| {
                    let mut is_plain = true;
                    condition.walk(&mut |part| match part {
                        Expr::Subquery(_) => is_plain = false,
                        Expr::Call(function, _) => is_plain &= !function.is_volatile,
                        _ => {}
                    });
                    is_plain
                };
                let (within, around): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(is_plain);
                let (input, rows) = self.plan_tree(*tree, own.into_iter().chain(within).collect());
                (filtered(Plan::Owned(Box::new(OwnedRows { input, space })), around), rows)
            }
            Tree::Outer(left, right, on, kind) => self.plan_outer(*left, *right, on, kind, conditions),
        }
    }

    fn plan_inner(&self, mut items: Vec<Tree>, mut pending: Vec<Expr>) -> (Plan, f64) {
        let all: HashSet<Slot> = items.iter().flat_map(|item| item.slots()).collect();
        let mut placed: HashSet<Slot> = HashSet::new();
        let mut done: Option<(Plan, f64)> = None;
        while !items.is_empty() {
            let number = self.next_item(&items, &pending, &placed, &all, done.is_some());
            let item = items.remove(number);
            let own = item.slots();
            // What can be looked at once this item is there.
            let is_ready = |expr: &Expr| {
                slots_of(expr).iter().all(|slot| !all.contains(slot) || placed.contains(slot) || own.contains(slot))
            };
            let (ready, rest): (Vec<Expr>, Vec<Expr>) = std::mem::take(&mut pending).into_iter().partition(is_ready);
            pending = rest;
            done = Some(match done {
                None => self.plan_tree(item, ready),
                Some(before) => self.join(before, item, own.clone(), ready, JoinKind::Inner, &placed),
            });
            placed.extend(own);
        }
        let (plan, rows) = done.unwrap_or((Plan::One, 1.0));
        (filtered(plan, pending), rows)
    }

    /// The item of which the fewest rows are expected, among those that have what they need.
    fn next_item(
        &self,
        items: &[Tree],
        pending: &[Expr],
        placed: &HashSet<Slot>,
        all: &HashSet<Slot>,
        has_any: bool,
    ) -> usize {
        let mut best = (f64::INFINITY, 0);
        for (number, item) in items.iter().enumerate() {
            let own = item.slots();
            let is_known = |slot: &Slot| !all.contains(slot) || placed.contains(slot);
            let ready: Vec<Expr> = pending
                .iter()
                .filter(|expr| slots_of(expr).iter().all(|slot| is_known(slot) || own.contains(slot)))
                .cloned()
                .collect();
            let is_connected = ready.iter().any(|expr| {
                let slots = slots_of(expr);
                slots.iter().any(|slot| own.contains(slot)) && slots.iter().any(|slot| placed.contains(slot))
            });
            let mut rows = match item {
                Tree::Table(used) => best_scan(used, ready, &own, &|slot| is_known(&slot)).2,
                Tree::Rows(plan) => {
                    let mut waits = false;
                    plan.reads(&mut |slot| waits |= all.contains(&slot) && !placed.contains(&slot));
                    if waits { f64::INFINITY } else { 1000.0 }
                }
                _ => 10_000.0,
            };
            if has_any && !is_connected {
                rows = rows * 1000.0 + 1000.0;
            }
            if rows < best.0 {
                best = (rows, number);
            }
        }
        best.1
    }

    /// Joins an item to what is there.
    fn join(
        &self,
        (outer, outer_rows): (Plan, f64),
        item: Tree,
        own: HashSet<Slot>,
        on: Vec<Expr>,
        kind: JoinKind,
        placed: &HashSet<Slot>,
    ) -> (Plan, f64) {
        if let Tree::Table(used) = &item
            && kind != JoinKind::Full
        {
            let (scan, is_keyed, rows) = best_scan(used, on.clone(), &own, &|_| true);
            let total = used.table.row_count() as f64;
            // A look by the index for each outer row, unless one pass over all of them is less work.
            if is_keyed && outer_rows * rows.max(1.0) <= total * 4.0 + 100.0 {
                let slots = own.into_iter().collect();
                let plan =
                    Plan::Loop { outer: Box::new(outer), inner: Box::new(Plan::Scan(scan)), kind, on: None, slots };
                return (plan, outer_rows * rows.max(0.1));
            }
        }
        let mut reads_outer = false;
        if let Tree::Rows(plan) = &item {
            plan.reads(&mut |slot| reads_outer |= placed.contains(&slot));
        }
        let is_own = |expr: &Expr| {
            let slots = slots_of(expr);
            !slots.is_empty() && slots.iter().all(|slot| own.contains(slot))
        };
        let is_others = |expr: &Expr| {
            let slots = slots_of(expr);
            !slots.is_empty() && slots.iter().all(|slot| !own.contains(slot))
        };
        let (mut inner_only, mut outer_keys, mut inner_keys, mut rest) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for expr in on {
            match expr {
                expr if is_own(&expr) && kind != JoinKind::Full => inner_only.push(expr),
                Expr::Compare(Comparison::Equal, a, b, None) if is_own(&a) && is_others(&b) => {
                    inner_keys.push(*a);
                    outer_keys.push(*b);
                }
                Expr::Compare(Comparison::Equal, a, b, None) if is_own(&b) && is_others(&a) => {
                    inner_keys.push(*b);
                    outer_keys.push(*a);
                }
                expr => rest.push(expr),
            }
        }
        let slots: Vec<Slot> = own.into_iter().collect();
        let (inner, inner_rows) = self.plan_tree(item, inner_only);
        if reads_outer {
            rest.extend(
                outer_keys
                    .into_iter()
                    .zip(inner_keys)
                    .map(|(a, b)| Expr::Compare(Comparison::Equal, Box::new(a), Box::new(b), None)),
            );
            let plan = Plan::Loop { outer: Box::new(outer), inner: Box::new(inner), kind, on: all_of(rest), slots };
            return (plan, outer_rows * 10.0);
        }
        let rows = if outer_keys.is_empty() { outer_rows * inner_rows } else { outer_rows.max(inner_rows) };
        let outer_slots = placed.iter().copied().collect();
        let join = HashJoin { outer, inner, kind, outer_keys, inner_keys, on: all_of(rest), slots, outer_slots };
        (Plan::Hash(Box::new(join)), rows)
    }

    fn plan_outer(&self, left: Tree, right: Tree, on: Vec<Expr>, kind: JoinKind, conditions: Vec<Expr>) -> (Plan, f64) {
        let (left_slots, right_slots) = (left.slots(), right.slots());
        // What only concerns the side that is kept whole can be looked at before.
        let is_left = |expr: &Expr| {
            kind == JoinKind::Left
                && slots_of(expr).iter().all(|slot| !right_slots.contains(slot))
                && !matches!(expr, Expr::Subquery(_))
        };
        let (before, after): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(is_left);
        let outer = self.plan_tree(left, before);
        let (plan, rows) = self.join(outer, right, right_slots, on, kind, &left_slots);
        (filtered(plan, after), rows)
    }
}

fn flatten(trees: Vec<Tree>, items: &mut Vec<Tree>, conditions: &mut Vec<Expr>) {
    for tree in trees {
        match tree {
            Tree::Inner(inner, on) => {
                conditions.extend(on);
                flatten(inner, items, conditions);
            }
            other => items.push(other),
        }
    }
}

fn filtered(plan: Plan, conditions: Vec<Expr>) -> Plan {
    match (all_of(conditions), plan) {
        (None, plan) => plan,
        (Some(condition), Plan::Scan(mut scan)) => {
            scan.filter = all_of(scan.filter.take().into_iter().chain([condition]).collect());
            Plan::Scan(scan)
        }
        (Some(condition), plan) => Plan::Filter(Box::new(plan), condition),
    }
}
