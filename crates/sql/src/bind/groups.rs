//! GROUP BY: its keys, and sets of them.

use super::select::Groups;
use super::{Binder, Bound, Output, Scope};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{Comparison, Expr, Slot};
use crate::grouping::SETS_MAX;
use sqlparser::ast;

impl Binder<'_> {
    pub(super) fn bind_groups(
        &self,
        scope: &Scope<'_>,
        group_by: &ast::GroupByExpr,
        columns: &[(String, Bound)],
    ) -> Result<Groups> {
        let (exprs, is_rollup) = match group_by {
            ast::GroupByExpr::Expressions(exprs, modifiers) => match modifiers.as_slice() {
                [] => (exprs, false),
                [ast::GroupByWithModifier::Rollup] => (exprs, true),
                _ => return Err(Error::unsupported("modifiers of GROUP BY but ROLLUP")),
            },
            ast::GroupByExpr::All(_) => return Err(Error::unsupported("GROUP BY ALL")),
        };
        let outputs: Vec<Output> = columns
            .iter()
            .map(|(name, bound)| Output { name: name.clone(), slot: 0, ty: bound.ty, collation: None, item: None })
            .collect();
        let mut groups: Vec<Bound> = Vec::with_capacity(exprs.len());
        // Sets of numbers of groups.
        let mut sets: Vec<Vec<usize>> = vec![Vec::new()];
        let mut has_sets = is_rollup;
        let bind_one = |expr: &ast::Expr| -> Result<Bound> {
            if let (Dialect::Postgres, ast::Expr::Value(value)) = (self.dialect, expr)
                && !matches!(value.value, ast::Value::Number(..) | ast::Value::Placeholder(_))
            {
                return Err(Error::new(Condition::Syntax, "non-integer constant in GROUP BY"));
            }
            if let (Dialect::Postgres, ast::Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr: inner }) =
                (self.dialect, expr)
                && let ast::Expr::Value(value) = &**inner
                && let ast::Value::Number(text, _) = &value.value
                && text.bytes().all(|byte| byte.is_ascii_digit())
            {
                let what = format!("GROUP BY position -{text} is not in select list");
                return Err(Error::new(Condition::InvalidColumnReference, what));
            }
            // The name of a column of FROM goes before that of the result.
            let found = match expr {
                ast::Expr::Identifier(_) => match self.bind(scope, expr) {
                    Ok(bound) => Some(bound),
                    Err(error) if error.condition() == Condition::UndefinedColumn => None,
                    Err(error) => return Err(error),
                },
                _ => None,
            };
            match (found, self.output_number(&outputs, expr)?) {
                (Some(bound), _) => Ok(bound),
                (None, Some(number)) if self.has_aggregate(scope, &columns[number].1.expr) => Err(match self.dialect {
                    Dialect::Mysql => {
                        Error::new(Condition::Grouping, format!("Can't group on '{}'", columns[number].0)).mysql(1056)
                    }
                    _ => Error::new(Condition::Grouping, "aggregate functions are not allowed in GROUP BY"),
                }),
                (None, Some(number)) => Ok(columns[number].1.clone()),
                (None, None) => self.bind_column(scope, expr),
            }
        };
        let mut numbers_of = |exprs: &[ast::Expr]| -> Result<Vec<usize>> {
            let mut numbers = Vec::with_capacity(exprs.len());
            for expr in exprs {
                let bound = bind_one(expr)?;
                let known = groups.iter().position(|group| group.expr.is_like(&bound.expr));
                numbers.push(known.unwrap_or_else(|| {
                    groups.push(bound);
                    groups.len() - 1
                }));
            }
            Ok(numbers)
        };
        for expr in exprs {
            let parts: Vec<Vec<usize>> = match expr {
                ast::Expr::Rollup(lists) | ast::Expr::Cube(lists) | ast::Expr::GroupingSets(lists) => {
                    has_sets = true;
                    let lists = lists.iter().map(|list| numbers_of(list)).collect::<Result<Vec<_>>>()?;
                    match expr {
                        ast::Expr::GroupingSets(_) => lists,
                        ast::Expr::Rollup(_) => (0..=lists.len()).rev().map(|count| lists[..count].concat()).collect(),
                        _ if lists.len() > 12 => {
                            return Err(Error::new(Condition::LimitExceeded, "CUBE is limited to 12 elements"));
                        }
                        _ => {
                            let chosen = |mask: usize| {
                                let is_in = |at: &usize| mask >> (lists.len() - 1 - at) & 1 == 1;
                                (0..lists.len()).filter(is_in).flat_map(|at| lists[at].clone()).collect()
                            };
                            (0..1usize << lists.len()).rev().map(chosen).collect()
                        }
                    }
                }
                ast::Expr::Tuple(items) => vec![numbers_of(items)?],
                expr => vec![numbers_of(std::slice::from_ref(expr))?],
            };
            if sets.len().saturating_mul(parts.len()) > SETS_MAX {
                let what = format!("too many grouping sets present (maximum {SETS_MAX})");
                return Err(Error::new(Condition::LimitExceeded, what));
            }
            sets = sets.iter().flat_map(|set| parts.iter().map(|part| [&set[..], part].concat())).collect();
        }
        if is_rollup {
            sets = (0..=groups.len()).rev().map(|count| (0..count).collect()).collect();
        }
        let count = groups.len();
        let sets = has_sets.then(|| {
            let members = |set: &Vec<usize>| (0..count).map(|number| set.contains(&number)).collect();
            (sets.iter().map(members).collect(), self.new_slot())
        });
        Ok(Groups { all: groups, sets })
    }

    /// True if an expression reads the value of an aggregate of its own query.
    fn has_aggregate(&self, scope: &Scope<'_>, expr: &Expr) -> bool {
        let Some(calls) = &scope.calls else { return false };
        let calls = calls.borrow();
        let mut found = false;
        expr.walk(&mut |part| found |= matches!(part, Expr::Slot(slot) if calls.iter().any(|call| call.slot == *slot)));
        found
    }

    /// GROUPING(a, b): bits that are set where a group's set lacks what it is asked for.
    pub(super) fn grouping_of(
        &self,
        arguments: &[Expr],
        groups: &[(Slot, Expr)],
        sets: &Option<(Vec<Vec<bool>>, Slot)>,
    ) -> Option<Expr> {
        let mut numbers = Vec::with_capacity(arguments.len());
        for argument in arguments {
            numbers.push(groups.iter().position(|(_, group)| group.is_like(argument))?);
        }
        let none = || Expr::Const(crate::Value::Int(0));
        let Some((sets, slot)) = sets else { return Some(none()) };
        let branch = |(number, set): (usize, &Vec<bool>)| {
            let bits = numbers.iter().fold(0, |bits, at| bits << 1 | i64::from(!set[*at]));
            let is_it = Expr::Compare(
                Comparison::Equal,
                Box::new(Expr::Slot(*slot)),
                Box::new(Expr::Const(crate::Value::Int(number as i64))),
                None,
            );
            (is_it, Expr::Const(crate::Value::Int(bits)))
        };
        Some(Expr::Case(sets.iter().enumerate().map(branch).collect(), Box::new(none())))
    }
}
