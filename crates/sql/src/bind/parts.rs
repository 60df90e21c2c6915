//! What SET gives parts of arrays: `a[1] = value`, `a[1:2] = value`.

use super::{Binder, Bound, Place, Scope};
use crate::cast::Strictness;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::Expr;
use crate::respell::PART;
use crate::table::Table;
use crate::types::{Base, Type};
use crate::value::Value;
use sqlparser::ast::{self, AccessExpr, BinaryOperator, Subscript};
use std::rc::Rc;

/// The subscripts of what is assigned to, and the value: parts that OR joins, or one alone. None: it is assigned to the whole column.
pub(super) fn of_value(value: &ast::Expr) -> Option<(&[AccessExpr], Vec<&ast::Expr>)> {
    let (mut here, mut rights) = (value, Vec::new());
    while let ast::Expr::BinaryOp { left, op: BinaryOperator::Or, right } = here {
        rights.push(&**right);
        here = left;
    }
    let ast::Expr::Function(call) = here else { return None };
    let name = call.name.0.last().and_then(ast::ObjectNamePart::as_ident)?;
    let ast::FunctionArguments::List(list) = &call.args else { return None };
    let [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::CompoundFieldAccess { access_chain, .. }))] =
        list.args.as_slice()
    else {
        return None;
    };
    if name.value != PART {
        return None;
    }
    rights.reverse();
    (!rights.is_empty()).then_some((access_chain.as_slice(), rights))
}

impl Binder<'_> {
    /// The column with another value in a part of it. `before` is what is assigned to it already. Errors: it has no parts; what does not fit.
    pub(super) fn assigned_to_part(
        &self,
        table: &Rc<Table>,
        number: usize,
        scope: &Scope<'_>,
        before: Option<Expr>,
        (chain, parts): (&[AccessExpr], &[&ast::Expr]),
    ) -> Result<Expr> {
        let column = &table.columns[number];
        if column.ty.base == Base::Json {
            return Err(Error::unsupported("assignment to parts of documents"));
        }
        if column.ty.base != Base::Array {
            let what = format!("cannot subscript type {} because it does not support subscripting", column.ty);
            return Err(Error::new(Condition::TypeMismatch, what));
        }
        if parts.iter().any(|part| super::write::is_default(part)) {
            return Err(Error::new(Condition::Unsupported, "cannot set an array element to DEFAULT"));
        }
        let old = scope.relations.iter().flat_map(|relation| &relation.columns).find(|known| match &known.place {
            Place::Field(used, field) => Rc::ptr_eq(&used.table, table) && *field == number,
            _ => false,
        });
        let whole = match (before, old) {
            (Some(before), _) => Bound::new(before, column.ty),
            (None, Some(old)) => self.at(old),
            (None, None) => Bound::new(Expr::Const(Value::Null), column.ty),
        };
        crate::array::check_dimensions(chain.len())?;
        let is_slice = chain.iter().any(|part| matches!(part, AccessExpr::Subscript(Subscript::Slice { .. })));
        let wanted = if is_slice { column.ty } else { column.ty.element() };
        let value = match parts {
            [value] => self.bind(scope, value)?,
            parts => {
                let parts = parts.iter().map(|part| self.condition(scope, part)).collect::<Result<_>>()?;
                Bound::new(Expr::Or(parts), Type::BOOL)
            }
        };
        if self.dialect == Dialect::Postgres && !self.may_assign(value.ty, wanted) {
            let what = format!(
                "subscripted assignment to \"{}\" requires type {wanted} but expression is of type {}",
                column.name, value.ty
            );
            let hint = "You will need to rewrite or cast the expression.";
            return Err(Error::new(Condition::TypeMismatch, what).hint(hint));
        }
        let value = self.cast_to(value, wanted, Strictness::Assignment)?;
        let flag = |flag: bool| Bound::new(Expr::Const(Value::Bool(flag)), Type::of(Base::Bool));
        let int = |number: i64| Bound::new(Expr::Const(Value::Int(number)), Type::of(Base::Int4));
        let subscript = |expr: &ast::Expr| -> Result<Bound> {
            let bound = self.bind(scope, expr)?;
            if !bound.ty.is_number() && !matches!(bound.ty.base, Base::Unknown | Base::Any) {
                return Err(Error::new(Condition::TypeMismatch, "array subscript must have type integer"));
            }
            self.cast_to(bound, Type::of(Base::Int4), Strictness::Assignment)
        };
        let bound_of = |expr: Option<&ast::Expr>| expr.map_or_else(|| Ok(flag(false)), subscript);
        let mut arguments = vec![whole, value, flag(is_slice)];
        for part in chain {
            match part {
                AccessExpr::Subscript(Subscript::Index { index }) => {
                    arguments.extend(is_slice.then(|| int(1)));
                    arguments.push(subscript(index)?);
                }
                AccessExpr::Subscript(Subscript::Slice { lower_bound, upper_bound, stride: None }) => {
                    arguments.push(bound_of(lower_bound.as_ref())?);
                    arguments.push(bound_of(upper_bound.as_ref())?);
                }
                other => return Err(Error::unsupported(format!("assignment to '{other}'"))),
            }
        }
        let mut changed = self.call("array_assigned", arguments)?;
        changed.ty = column.ty;
        match &column.domain {
            Some(domain) => Ok(self.in_domain(changed, domain)?.expr),
            None => Ok(changed.expr),
        }
    }
}
