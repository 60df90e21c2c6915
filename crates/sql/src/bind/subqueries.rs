//! Queries within expressions, and values among several.

use super::expressions::boolean;
use super::operators::comparison_of;
use super::{Binder, Bound, Scope};
use crate::cast::Strictness;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{Asked, Comparison, Expr, Subquery};
use crate::types::{Base, Type};
use crate::value::Value;
use crate::written::written;
use sqlparser::ast::{self, BinaryOperator};
use std::rc::Rc;

impl Binder<'_> {
    pub(super) fn bind_in(&self, scope: &Scope<'_>, expr: &ast::Expr, target: &ast::InTarget) -> Result<Expr> {
        match target {
            ast::InTarget::Subquery(query) => self.bind_among(scope, expr, query, Comparison::Equal, false),
            ast::InTarget::List(list) => {
                if let ast::Expr::Tuple(_) = expr {
                    let mut parts = Vec::with_capacity(list.len());
                    for item in list {
                        let (ast::Expr::Tuple(a), ast::Expr::Tuple(b)) = (expr, item) else {
                            return Err(Error::new(
                                Condition::ColumnCount,
                                "unequal number of entries in row expressions",
                            ));
                        };
                        parts.push(self.compare_tuples(scope, Comparison::Equal, a, b)?.expr);
                    }
                    return Ok(Expr::Or(parts));
                }
                let mut value = self.bind_compared(scope, expr)?;
                let mut items = Vec::with_capacity(list.len());
                let mut collation = None;
                let mut bound = Vec::with_capacity(list.len() + 1);
                bound.push(value.clone());
                for item in list {
                    bound.push(self.bind(scope, item)?);
                }
                // Numbers beside texts compare as numbers, and the texts as such.
                let kind = |ty: Type| (ty.is_number() || ty.base == Base::Bool, ty.base == Base::Text);
                let is_mixed = |item: &Bound| {
                    item.ty.base != Base::Unknown
                        && bound[1..]
                            .iter()
                            .any(|other| other.ty.base != Base::Unknown && kind(other.ty) != kind(item.ty))
                };
                if self.dialect == Dialect::Mysql && value.ty.base == Base::Text && bound[1..].iter().any(is_mixed) {
                    let parts =
                        bound.into_iter().skip(1).map(|item| self.compare(Comparison::Equal, value.clone(), item));
                    return Ok(Expr::Or(parts.collect::<Result<_>>()?));
                }
                // Several constants are brought to one type with what they are compared with in PostgreSQL, one is not.
                if self.dialect == Dialect::Postgres
                    && value.ty.is_float()
                    && bound[1..].iter().filter(|item| matches!(item.expr, Expr::Const(_))).count() > 1
                {
                    let is_double = |item: &Bound| item.ty == Type::of(Base::Double);
                    let to = if bound.iter().any(is_double) { Type::of(Base::Double) } else { Type::FLOAT };
                    for item in bound[1..].iter_mut().filter(|item| item.ty.is_number()) {
                        if let Expr::Const(_) = item.expr {
                            *item = self.cast_to(item.clone(), to, Strictness::Explicit)?;
                        }
                    }
                }
                // One value alone is compared as by an operator there.
                if let [_, item] = bound.as_slice()
                    && let Some(order) = self.order_as_shown(Comparison::Equal, &value, item)?
                {
                    let zero = Box::new(Expr::Const(Value::Int(0)));
                    return Ok(Expr::Compare(Comparison::Equal, Box::new(order), zero, None));
                }
                // All are compared alike in MySQL.
                let of_all = (self.dialect == Dialect::Mysql).then(|| self.collation_of_values(&bound));
                for item in bound.into_iter().skip(1) {
                    collation = match &of_all {
                        Some(of_all) => of_all.clone(),
                        None => collation.or(self.compared_by(&value, &item)),
                    };
                    let (changed, item) = self.unify(value, item, "=")?;
                    value = changed;
                    items.push(item.expr);
                }
                Ok(Expr::In(Box::new(value.expr), items, collation))
            }
            other => Err(Error::unsupported(format!("'IN {other:?}'"))),
        }
    }

    /// A value, or several, compared with the rows of a query.
    pub(super) fn bind_among(
        &self,
        scope: &Scope<'_>,
        expr: &ast::Expr,
        query: &ast::Query,
        comparison: Comparison,
        all: bool,
    ) -> Result<Expr> {
        let listed: Vec<&ast::Expr> = match expr {
            ast::Expr::Tuple(parts) => parts.iter().collect(),
            one => vec![one],
        };
        let mut values = Vec::with_capacity(listed.len());
        for value in listed {
            values.push(self.bind(scope, value)?);
        }
        let source = written(self.dialect, query);
        let query = self.bind_query(query, Some(scope))?;
        self.among(values, query, comparison, all, source)
    }

    pub(super) fn bind_quantified(
        &self,
        scope: &Scope<'_>,
        left: &ast::Expr,
        op: &BinaryOperator,
        right: &ast::Expr,
        all: bool,
    ) -> Result<Bound> {
        let comparison =
            comparison_of(op).ok_or_else(|| Error::unsupported(format!("operator {op} with ANY or ALL")))?;
        match right {
            ast::Expr::Subquery(query) => Ok(boolean(self.bind_among(scope, left, query, comparison, all)?)),
            ast::Expr::Nested(inner) => self.bind_quantified(scope, left, op, inner, all),
            array => Ok(boolean(self.bind_among_elements(scope, left, array, comparison, all)?)),
        }
    }

    pub(super) fn subquery(
        &self,
        scope: &Scope<'_>,
        query: &ast::Query,
        asked: Asked,
        columns: Option<usize>,
    ) -> Result<(Expr, Type)> {
        let source = written(self.dialect, query);
        let query = self.bind_query(query, Some(scope))?;
        if columns.is_some_and(|wanted| wanted != query.outputs.len()) {
            return Err(Error::new(Condition::ColumnCount, "subquery must return only one column"));
        }
        let ty = query.outputs.first().map_or(Type::UNKNOWN, |output| output.ty);
        Ok((self.make_subquery(query, asked, source), ty))
    }

    /// One column of the one row of a query that has so many.
    pub(super) fn row_column(
        &self,
        scope: &Scope<'_>,
        query: &ast::Query,
        (at, wanted): (usize, usize),
    ) -> Result<Bound> {
        let source = format!("{query} column {at}");
        let mut query = self.bind_query(query, Some(scope))?;
        if query.outputs.len() != wanted {
            let what = match query.outputs.len() > wanted {
                true => "subquery has too many columns",
                false => "subquery has too few columns",
            };
            return Err(Error::new(Condition::Syntax, what).mysql(1241));
        }
        query.outputs = vec![query.outputs.swap_remove(at)];
        let (ty, collation) = (query.outputs[0].ty, query.outputs[0].collation.clone());
        let mut bound = Bound::new(self.make_subquery(query, Asked::Scalar, source), ty);
        bound.collation = collation;
        Ok(bound)
    }

    /// `source`: the text of the rows, by which two of one query are known to be the same.
    pub(super) fn make_subquery(&self, query: super::Query, asked: Asked, source: String) -> Expr {
        let number = self.subqueries.get();
        self.subqueries.set(number + 1);
        let mut is_correlated = self.recursions.get() > 0;
        query.plan.reads(&mut |_| is_correlated = true);
        let outputs = query.outputs.iter().map(|output| output.slot).collect();
        let is_lenient = self.dialect == Dialect::Mysql && self.is_lenient.get();
        Expr::Subquery(Rc::new(Subquery {
            number,
            asked,
            plan: query.plan,
            outputs,
            is_correlated,
            is_lenient,
            source,
        }))
    }
}
