//! Calls of aggregates: their arguments, their order, and the type of their value.

use super::{Binder, Bound, Scope};
use crate::aggregates::{Aggregate, AggregateCall, OrderKey};
use crate::cast::Strictness;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::Expr;
use crate::spread::Regression;
use crate::types::{Base, Type};
use crate::value::Value;
use sqlparser::ast;

impl Binder<'_> {
    /// A call of an aggregate, and its arguments, which are not in it yet.
    pub(super) fn bind_aggregate_parts(
        &self,
        scope: &Scope<'_>,
        aggregate: Aggregate,
        name: &str,
        function: &ast::Function,
        list: Option<&ast::FunctionArgumentList>,
    ) -> Result<(AggregateCall, Vec<Bound>)> {
        let mut arguments = Vec::new();
        let mut order = Vec::new();
        let mut is_distinct = false;
        let mut separator = None;
        if let Some(list) = list {
            is_distinct = list.duplicate_treatment == Some(ast::DuplicateTreatment::Distinct);
            for argument in &list.args {
                match argument {
                    ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => arguments.push(match aggregate {
                        Aggregate::JsonArray { .. } | Aggregate::JsonObject { .. } => {
                            self.bind_for_json(scope, expr)?
                        }
                        _ => self.bind(scope, expr)?,
                    }),
                    ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard) if aggregate == Aggregate::CountRows => {}
                    other => return Err(Error::unsupported(format!("'{}({other})'", function.name))),
                }
            }
            for clause in &list.clauses {
                match clause {
                    ast::FunctionArgumentClause::OrderBy(keys) => order = self.aggregate_order(scope, keys)?,
                    ast::FunctionArgumentClause::Separator(text) => separator = Some(self.bind_literal(&text.value)?),
                    other => return Err(Error::unsupported(format!("'{other}'"))),
                }
            }
        }
        match (function.within_group.as_slice(), aggregate.is_of_ordered_set()) {
            ([], false) => {}
            ([key], true) => {
                let value = self.bind(scope, &key.expr)?;
                order = self.aggregate_order(scope, std::slice::from_ref(key))?;
                arguments.insert(0, value);
            }
            (_, true) => {
                let what = format!("WITHIN GROUP is required for ordered-set aggregate {name}");
                return Err(Error::new(Condition::TypeMismatch, what));
            }
            (_, false) => return Err(Error::unsupported(format!("WITHIN GROUP of {name}"))),
        }
        if aggregate == Aggregate::Concatenate {
            arguments = self.texts_to_join(arguments, separator)?;
        }
        if !aggregate.arguments().contains(&arguments.len()) {
            let what = match self.dialect {
                Dialect::Postgres => {
                    let types: Vec<String> = arguments.iter().map(|argument| argument.ty.to_string()).collect();
                    format!("function {name}({}) does not exist", types.join(", "))
                }
                _ => format!("Wrong number of arguments is passed to {}()", name.to_uppercase()),
            };
            return Err(Error::new(Condition::UndefinedFunction, what));
        }
        let filter = function.filter.as_ref().map(|filter| self.condition(scope, filter)).transpose()?;
        let collation = arguments.first().and_then(|argument| argument.collation.clone());
        if is_distinct {
            arguments = arguments.into_iter().map(|argument| self.settled(argument)).collect::<Result<_>>()?;
        }
        let (arguments, result) = self.aggregate_types(aggregate, name, arguments)?;
        if is_distinct && order.is_empty() && self.dialect == Dialect::Postgres && aggregate.depends_on_order() {
            // Told apart by sorting there, and programs rely on it.
            let expr = arguments[0].expr.clone();
            order = vec![OrderKey { expr, is_descending: false, nulls_first: false, collation: collation.clone() }];
        }
        let call = AggregateCall {
            aggregate,
            arguments: Vec::new(),
            result,
            is_distinct,
            filter,
            // Of others the order changes nothing.
            order: if aggregate.depends_on_order() || aggregate.is_of_ordered_set() { order } else { Vec::new() },
            collation,
            slot: 0,
        };
        Ok((call, arguments))
    }

    fn aggregate_order(&self, scope: &Scope<'_>, keys: &[ast::OrderByExpr]) -> Result<Vec<OrderKey>> {
        let mut order = Vec::with_capacity(keys.len());
        for key in keys {
            let is_descending = key.options.sort == Some(ast::OrderBySort::Desc);
            let nulls_first = key.options.nulls_first.unwrap_or(is_descending != self.dialect.has_nulls_first());
            let Bound { expr, collation, .. } = self.sorted_as_choice(self.bind(scope, &key.expr)?)?;
            order.push(OrderKey { expr, is_descending, nulls_first, collation });
        }
        Ok(order)
    }

    /// What is joined, and what stands between.
    fn texts_to_join(&self, mut arguments: Vec<Bound>, separator: Option<Bound>) -> Result<Vec<Bound>> {
        let comma = || Bound::new(Expr::Const(Value::text(",")), Type::TEXT);
        match self.dialect {
            // All that is listed is one text.
            Dialect::Mysql if !arguments.is_empty() => {
                let value = match arguments.len() {
                    1 if arguments[0].ty.is_shown_shorter()
                        || matches!(arguments[0].ty.base, Base::Date | Base::Time) =>
                    {
                        self.cast_to(arguments.remove(0), Type::TEXT, Strictness::Explicit)?
                    }
                    1 => self.settled(arguments.remove(0))?,
                    _ => self.call("concat", arguments)?,
                };
                Ok(vec![value, separator.unwrap_or_else(comma)])
            }
            Dialect::Tarantool if arguments.len() == 1 => {
                arguments.push(comma());
                Ok(arguments)
            }
            _ => Ok(arguments),
        }
    }

    fn aggregate_types(
        &self,
        aggregate: Aggregate,
        name: &str,
        mut arguments: Vec<Bound>,
    ) -> Result<(Vec<Bound>, Type)> {
        let Some(first) = arguments.first().map(|argument| argument.ty) else {
            return Ok((arguments, Type::of(Base::Int8)));
        };
        let is_open = matches!(first.base, Base::Any | Base::Scalar | Base::Number);
        let missing = |types: &[Bound]| {
            let types: Vec<String> = types.iter().map(|argument| argument.ty.to_string()).collect();
            let what = format!("function {name}({}) does not exist", types.join(", "));
            Error::new(Condition::UndefinedFunction, what)
        };
        let cast_at = |arguments: &mut Vec<Bound>, at: usize, base: Base| -> Result<()> {
            let argument = arguments.remove(at);
            arguments.insert(at, self.cast_to(argument, Type::of(base), Strictness::Explicit)?);
            Ok(())
        };
        let ty = match aggregate {
            Aggregate::CountRows | Aggregate::Count => {
                Type::of(if self.dialect == Dialect::Tarantool { Base::Integer } else { Base::Int8 })
            }
            Aggregate::Sum | Aggregate::Average
                if self.dialect == Dialect::Postgres && matches!(first.base, Base::Interval | Base::Time) =>
            {
                cast_at(&mut arguments, 0, Base::Interval)?;
                Type::of(Base::Interval)
            }
            Aggregate::Sum | Aggregate::Average | Aggregate::Total | Aggregate::Variance { .. } => {
                if !first.is_number() && !is_open {
                    match self.dialect {
                        Dialect::Mysql if first.base == Base::Bool => cast_at(&mut arguments, 0, Base::Int8)?,
                        Dialect::Mysql if first.base == Base::Unknown => {
                            let null = arguments.remove(0);
                            arguments.insert(0, self.null_as_number(null)?);
                        }
                        Dialect::Mysql
                            if matches!(first.base, Base::Date | Base::Time | Base::Timestamp)
                                && super::times::digits_of(&arguments[0]).is_some() =>
                        {
                            arguments[0] = self.as_digits(arguments[0].clone())?;
                        }
                        Dialect::Mysql if let Some(number) = self.number_of_choice(&arguments[0])? => {
                            arguments[0] = number;
                        }
                        Dialect::Postgres if first.base != Base::Unknown => return Err(missing(&arguments)),
                        Dialect::Tarantool => cast_at(&mut arguments, 0, Base::Number)?,
                        _ => cast_at(&mut arguments, 0, Base::Double)?,
                    }
                }
                let first = arguments[0].ty;
                let base = match (aggregate, self.dialect, first.base) {
                    (Aggregate::Variance { .. }, Dialect::Postgres, base) if base != Base::Double => Base::Decimal,
                    (Aggregate::Total | Aggregate::Variance { .. }, ..) => Base::Double,
                    (_, Dialect::Postgres | Dialect::Mysql, Base::Double) => Base::Double,
                    (_, Dialect::Tarantool, _) => Base::Number,
                    (Aggregate::Sum, Dialect::Postgres, Base::Int1 | Base::Int2 | Base::Int4) => Base::Int8,
                    (_, _, Base::Any | Base::Scalar | Base::Number) => Base::Number,
                    _ => Base::Decimal,
                };
                match (self.dialect, base) {
                    (Dialect::Mysql, Base::Decimal) => {
                        super::exact::sum_of(arguments[0].ty, aggregate == Aggregate::Average)
                    }
                    (Dialect::Mysql, Base::Double) if matches!(aggregate, Aggregate::Sum | Aggregate::Average) => {
                        super::exact::sum_of_doubles(first, aggregate == Aggregate::Average)
                    }
                    (Dialect::Postgres, Base::Double) if aggregate == Aggregate::Sum && first.is_float() => Type::FLOAT,
                    _ => Type::of(base),
                }
            }
            // What it is, its values say.
            Aggregate::Least | Aggregate::Greatest if self.dialect == Dialect::Tarantool => Type::of(Base::Scalar),
            Aggregate::Least | Aggregate::Greatest | Aggregate::Any | Aggregate::Mode => {
                if first.base == Base::Unknown {
                    cast_at(&mut arguments, 0, Base::Text)?;
                }
                let is_refused = matches!(first.base, Base::Bool | Base::Json | Base::Uuid)
                    || crate::net::is_mac(first)
                    || first.is_range();
                if is_refused
                    && self.dialect == Dialect::Postgres
                    && matches!(aggregate, Aggregate::Least | Aggregate::Greatest)
                {
                    return Err(missing(&arguments));
                }
                if arguments[0].ty.base == Base::Cidr && matches!(aggregate, Aggregate::Least | Aggregate::Greatest) {
                    cast_at(&mut arguments, 0, Base::Inet)?;
                }
                arguments[0].ty
            }
            Aggregate::Concatenate => {
                for at in 0..arguments.len() {
                    if arguments[at].ty.base == Base::Unknown {
                        cast_at(&mut arguments, at, Base::Text)?;
                    }
                }
                let is_text = |bound: &Bound| matches!(bound.ty.base, Base::Text | Base::Bytes | Base::Any);
                if self.dialect == Dialect::Postgres && !arguments.iter().all(is_text) {
                    return Err(missing(&arguments));
                }
                Type::TEXT
            }
            Aggregate::And | Aggregate::Or => {
                if self.dialect == Dialect::Postgres && !matches!(first.base, Base::Bool | Base::Unknown) {
                    return Err(missing(&arguments));
                }
                cast_at(&mut arguments, 0, Base::Bool)?;
                Type::BOOL
            }
            Aggregate::BitAnd | Aggregate::BitOr | Aggregate::BitXor if self.dialect == Dialect::Mysql => {
                if !first.is_integer() {
                    cast_at(&mut arguments, 0, Base::Integer)?;
                }
                Type::of(Base::Uint8)
            }
            Aggregate::BitAnd | Aggregate::BitOr | Aggregate::BitXor
                if self.dialect == Dialect::Postgres && !first.is_integer() && first.base != Base::Unknown =>
            {
                return Err(missing(&arguments));
            }
            Aggregate::BitAnd | Aggregate::BitOr | Aggregate::BitXor => Type::of(first.base),
            Aggregate::Regression(which) => {
                for at in 0..2 {
                    if self.dialect == Dialect::Postgres
                        && !arguments[at].ty.is_number()
                        && arguments[at].ty.base != Base::Unknown
                    {
                        return Err(missing(&arguments));
                    }
                    cast_at(&mut arguments, at, Base::Double)?;
                }
                Type::of(if which == Regression::Count { Base::Int8 } else { Base::Double })
            }
            Aggregate::Array => {
                if first.base == Base::Unknown {
                    cast_at(&mut arguments, 0, Base::Text)?;
                }
                Type::array_of(arguments[0].ty)
            }
            Aggregate::JsonArray { is_binary } | Aggregate::JsonObject { is_binary } => {
                let value = arguments.pop().ok_or_else(|| missing(&[]))?;
                arguments.push(self.as_json(value)?);
                if arguments.len() == 2 && arguments[0].ty.base == Base::Unknown {
                    cast_at(&mut arguments, 0, Base::Text)?;
                }
                Type::json(is_binary)
            }
            Aggregate::Percentile { is_continuous } => {
                let is_array = arguments[1].ty.base == Base::Array;
                if !is_array {
                    cast_at(&mut arguments, 1, Base::Double)?;
                }
                let of_one = match (is_continuous, first.base) {
                    (true, Base::Interval) => first,
                    (true, _) => {
                        if !first.is_number() && first.base != Base::Unknown {
                            return Err(missing(&arguments));
                        }
                        cast_at(&mut arguments, 0, Base::Double)?;
                        Type::of(Base::Double)
                    }
                    (false, Base::Unknown) => {
                        cast_at(&mut arguments, 0, Base::Text)?;
                        Type::TEXT
                    }
                    (false, _) => first,
                };
                if is_array { Type::array_of(of_one) } else { of_one }
            }
        };
        Ok((arguments, ty))
    }
}
