//! How the rows of a query are found: a tree of steps, made once and run as often as the statement is.

use crate::aggregates::AggregateCall;
use crate::bind::Write;
use crate::expr::{CollationOption, Expr, Slot};
use crate::grouping::GroupingSets;
use crate::measured::Measured;
use crate::sets::SetCall;
use crate::table::Table;
use crate::views::OwnedRows;
use crate::window::WindowStep;
use std::rc::Rc;
use tuple::IndexId;

/// A step: what hands rows on, one after the other, in places of the frame.
pub(crate) enum Plan {
    /// One row without columns.
    One,
    /// None.
    Nothing,
    /// Rows of a table.
    Scan(Scan),
    /// Rows that the statement lists.
    Rows(Vec<Vec<Expr>>, Vec<Slot>),
    /// Numbers from one to another: `generate_series`.
    Series { from: Expr, to: Expr, step: Expr, slot: Slot },
    /// Those that fulfil a condition.
    Filter(Box<Plan>, Expr),
    /// Each with more columns.
    Map(Box<Plan>, Vec<(Slot, Expr)>),
    /// Each row of `outer` with those of `inner`, which is run again for each.
    Loop { outer: Box<Plan>, inner: Box<Plan>, kind: JoinKind, on: Option<Expr>, slots: Vec<Slot> },
    /// The same by a hash table of `inner`'s rows.
    Hash(Box<HashJoin>),
    /// One row for each group.
    Aggregate { input: Box<Plan>, groups: Vec<(Slot, Expr)>, calls: Vec<AggregateCall> },
    /// Each with the values of window functions.
    Window(Box<WindowStep>),
    /// One row for each group of each of several sets.
    GroupingSets(Box<GroupingSets>),
    /// No more than so many rows, and those that are equal in the order to the last one of them.
    Ties { input: Box<Plan>, keys: Vec<SortKey>, limit: Expr, offset: Option<Expr> },
    /// In an order.
    Sort { input: Box<Plan>, keys: Vec<SortKey>, slots: Vec<Slot>, limit: Option<(Expr, Option<Expr>)> },
    /// Each once: by these places.
    Distinct { input: Box<Plan>, slots: Vec<Slot> },
    /// Some of them.
    Limit { input: Box<Plan>, limit: Option<Expr>, offset: Option<Expr> },
    /// The rows of one after those of the other.
    Concat(Vec<Plan>),
    /// The rows of `left` that are, or are not, among those of `right`.
    Among { left: Box<Plan>, right: Box<Plan>, left_slots: Vec<Slot>, right_slots: Vec<Slot>, keeps: bool, all: bool },
    /// Computes a table of the statement's own, then the rows of `body`.
    With { number: usize, definition: Rc<Definition>, body: Box<Plan> },
    /// Rows that are found with the rights of another user.
    Owned(Box<OwnedRows>),
    /// Rows of a computed table: which of its columns go where.
    Virtual(&'static crate::catalog::Virtual, Vec<Slot>),
    /// The elements of an array.
    Unnest { array: Expr, slot: Slot },
    /// The rows of functions side by side, and where their number goes.
    Sets { calls: Vec<SetCall>, number: Option<Slot> },
    /// A step that counts.
    Measured(Box<Measured>),
    /// Changes rows, and hands on what it gives back of them.
    Write(Box<Write>),
    /// Rows of such a table.
    Own { number: usize, slots: Vec<Slot> },
}

/// A table of the statement's own: `WITH name AS (...)`.
pub(crate) struct Definition {
    /// Its rows; the first of them, if it builds on itself.
    pub(crate) plan: Plan,
    /// Their columns.
    pub(crate) outputs: Vec<Slot>,
    /// What builds on the rows of the step before, its columns, and whether rows that came already are dropped.
    pub(crate) step: Option<(Plan, Vec<Slot>, bool)>,
}

/// A column by which rows are ordered.
#[derive(Clone)]
pub(crate) struct SortKey {
    pub(crate) slot: Slot,
    pub(crate) is_descending: bool,
    pub(crate) nulls_first: bool,
    pub(crate) collation: CollationOption,
}

/// Which rows a join hands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinKind {
    /// Pairs.
    Inner,
    /// Pairs, and rows of the outer side that have none.
    Left,
    /// The same, and rows of the inner side that have none.
    Full,
}

/// A join by equal values.
pub(crate) struct HashJoin {
    pub(crate) outer: Plan,
    pub(crate) inner: Plan,
    pub(crate) kind: JoinKind,
    /// Equal to those of the inner side.
    pub(crate) outer_keys: Vec<Expr>,
    pub(crate) inner_keys: Vec<Expr>,
    /// What else has to hold.
    pub(crate) on: Option<Expr>,
    /// Places of the inner side, which are kept.
    pub(crate) slots: Vec<Slot>,
    /// Places of the outer side, for rows that have none.
    pub(crate) outer_slots: Vec<Slot>,
}

/// The rows of a table that one of its indexes finds.
pub(crate) struct Scan {
    pub(crate) table: Rc<Table>,
    /// Its name in the statement.
    pub(crate) alias: String,
    pub(crate) index_id: IndexId,
    pub(crate) index_name: String,
    /// How many rows there may be: one by a whole key.
    pub(crate) is_unique: bool,
    /// The first parts of the key, equal to these.
    pub(crate) equal: Vec<Expr>,
    /// The part behind them is one of these, one after the other.
    pub(crate) among: Option<Vec<Expr>>,
    /// Bounds of the part behind them, and whether they belong to it.
    pub(crate) lower: Option<(Expr, bool)>,
    pub(crate) upper: Option<(Expr, bool)>,
    /// That part may be NaN, which is above all numbers, and comes before them in an index: such rows are found apart.
    pub(crate) has_nan_apart: bool,
    /// From the last row to the first.
    pub(crate) is_reverse: bool,
    /// Which fields go where, by field.
    pub(crate) fields: Vec<(u32, Slot)>,
    /// The whole row goes here, as a document: for who changes it.
    pub(crate) row: Option<Slot>,
    /// What else has to hold.
    pub(crate) filter: Option<Expr>,
    /// Rows are locked before they are handed on.
    pub(crate) lock: Option<Lock>,
}

/// How rows are locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lock {
    /// Waits for who has it.
    Wait,
    /// Fails if somebody has it.
    NoWait,
    /// Passes over those that somebody has.
    Skip,
}

impl Plan {
    /// The steps that rows come from.
    pub(crate) fn inputs(&self) -> Vec<&Plan> {
        match self {
            Plan::Filter(input, _) | Plan::Map(input, _) => vec![&**input],
            Plan::Aggregate { input, .. }
            | Plan::Sort { input, .. }
            | Plan::Distinct { input, .. }
            | Plan::Limit { input, .. }
            | Plan::Ties { input, .. } => vec![&**input],
            Plan::Loop { outer, inner, .. } => vec![&**outer, &**inner],
            Plan::Hash(join) => vec![&join.outer, &join.inner],
            Plan::Concat(inputs) => inputs.iter().collect(),
            Plan::Among { left, right, .. } => vec![&**left, &**right],
            Plan::GroupingSets(step) => vec![&step.input],
            Plan::Window(step) => vec![&step.input],
            Plan::Owned(step) => vec![&step.input],
            Plan::Measured(step) => vec![&step.plan],
            Plan::Write(write) => vec![write.source()],
            Plan::With { definition, body, .. } => {
                let step = definition.step.as_ref().map(|(step, ..)| step);
                std::iter::once(&definition.plan).chain(step).chain([&**body]).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Hands every place that the step and those below it fill to `visit`.
    pub(crate) fn fills(&self, visit: &mut dyn FnMut(Slot)) {
        match self {
            Plan::One | Plan::Nothing => {}
            Plan::Scan(scan) => scan.fields.iter().map(|(_, slot)| *slot).chain(scan.row).for_each(visit),
            Plan::Rows(_, slots) | Plan::Own { slots, .. } => slots.iter().copied().for_each(visit),
            Plan::Series { slot, .. } | Plan::Unnest { slot, .. } => visit(*slot),
            Plan::Virtual(_, slots) => slots.iter().copied().for_each(visit),
            Plan::Sets { calls, number } => {
                calls.iter().flat_map(|call| &call.slots).chain(number).copied().for_each(visit);
            }
            Plan::Filter(input, _)
            | Plan::Limit { input, .. }
            | Plan::Ties { input, .. }
            | Plan::Sort { input, .. }
            | Plan::Distinct { input, .. } => {
                input.fills(visit);
            }
            Plan::Map(input, columns) => {
                columns.iter().for_each(|(slot, _)| visit(*slot));
                input.fills(visit);
            }
            Plan::Loop { outer, inner, .. } => {
                outer.fills(visit);
                inner.fills(visit);
            }
            Plan::Hash(join) => {
                join.outer.fills(visit);
                join.inner.fills(visit);
            }
            Plan::Aggregate { input, groups, calls } => {
                groups.iter().for_each(|(slot, _)| visit(*slot));
                calls.iter().for_each(|call| visit(call.slot));
                input.fills(visit);
            }
            Plan::Owned(step) => step.input.fills(visit),
            Plan::Measured(step) => step.plan.fills(visit),
            Plan::Write(write) => {
                write.source().fills(visit);
                if let Some(returning) = &write.returning {
                    returning.fields.iter().for_each(|(_, slot)| visit(*slot));
                    returning.columns.iter().for_each(|(slot, _)| visit(*slot));
                }
            }
            Plan::GroupingSets(step) => {
                step.groups.iter().for_each(|(slot, _)| visit(*slot));
                step.calls.iter().for_each(|call| visit(call.slot));
                visit(step.number);
                step.input.fills(visit);
            }
            Plan::Window(step) => {
                step.calls.iter().for_each(|call| visit(call.slot));
                step.input.fills(visit);
            }
            Plan::Concat(inputs) => inputs.iter().for_each(|input| input.fills(visit)),
            Plan::Among { left, right, .. } => {
                left.fills(visit);
                right.fills(visit);
            }
            Plan::With { definition, body, .. } => {
                definition.plan.fills(visit);
                if let Some((step, ..)) = &definition.step {
                    step.fills(visit);
                }
                body.fills(visit);
            }
        }
    }

    /// Hands every expression of the step and those below it to `visit`.
    pub(crate) fn expressions<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        self.own_expressions(visit);
        self.inputs().into_iter().for_each(|input| input.expressions(visit));
    }

    /// Hands every expression of the step alone to `visit`; those of a change stand with it.
    pub(crate) fn own_expressions<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        match self {
            Plan::One | Plan::Nothing | Plan::Own { .. } | Plan::Virtual(..) => {}
            Plan::Owned(_) | Plan::Measured(_) | Plan::Write(_) | Plan::Distinct { .. } => {}
            Plan::Concat(..) | Plan::Among { .. } | Plan::With { .. } => {}
            Plan::Unnest { array, .. } => visit(array),
            Plan::Sets { calls, .. } => calls.iter().flat_map(|call| &call.arguments).for_each(visit),
            Plan::Scan(scan) => {
                scan.equal.iter().chain(scan.among.iter().flatten()).chain(&scan.filter).for_each(&mut *visit);
                scan.lower.iter().chain(&scan.upper).for_each(|(bound, _)| visit(bound));
            }
            Plan::Rows(rows, _) => rows.iter().flatten().for_each(visit),
            Plan::Series { from, to, step, .. } => [from, to, step].into_iter().for_each(visit),
            Plan::Filter(_, condition) => visit(condition),
            Plan::Map(_, columns) => columns.iter().for_each(|(_, expr)| visit(expr)),
            Plan::Loop { on, .. } => on.iter().for_each(visit),
            Plan::Hash(join) => join.outer_keys.iter().chain(&join.inner_keys).chain(&join.on).for_each(visit),
            Plan::Aggregate { groups, calls, .. } => {
                groups.iter().for_each(|(_, expr)| visit(expr));
                calls.iter().for_each(|call| call.expressions(visit));
            }
            Plan::GroupingSets(step) => {
                step.groups.iter().for_each(|(_, expr)| visit(expr));
                step.calls.iter().for_each(|call| call.expressions(visit));
            }
            Plan::Ties { limit, offset, .. } => std::iter::once(limit).chain(offset).for_each(visit),
            Plan::Window(step) => step.calls.iter().flat_map(|call| call.frame.expressions()).for_each(visit),
            Plan::Sort { limit, .. } => {
                if let Some((limit, offset)) = limit {
                    std::iter::once(limit).chain(offset).for_each(visit);
                }
            }
            Plan::Limit { limit, offset, .. } => limit.iter().chain(offset).for_each(visit),
        }
    }

    /// Hands every place that the step reads and does not fill to `visit`: those of the query around it.
    pub(crate) fn reads(&self, visit: &mut dyn FnMut(Slot)) {
        let mut filled = hashbrown::HashSet::new();
        self.fills(&mut |slot| {
            filled.insert(slot);
        });
        self.expressions(&mut |expr| {
            expr.slots(&mut |slot| {
                if !filled.contains(&slot) {
                    visit(slot);
                }
            });
        });
    }
}
