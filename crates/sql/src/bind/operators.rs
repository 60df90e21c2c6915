//! Operators: which types they take, and of which type the result is.

use super::expressions::{boolean, not};
use super::{Binder, Bound, Scope};
use crate::arithmetic::{Arithmetic, Manner};
use crate::cast::Strictness;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{Comparison, Expr, Like};
use crate::types::{Base, Type};
use crate::value::Value;
use sqlparser::ast::{self, BinaryOperator, UnaryOperator};

impl Binder<'_> {
    pub(super) fn bind_operator(
        &self,
        scope: &Scope<'_>,
        left: &ast::Expr,
        op: &BinaryOperator,
        right: &ast::Expr,
    ) -> Result<Bound> {
        use BinaryOperator as B;
        match op {
            B::And | B::Or => return self.bind_logic(scope, left, op, right),
            B::Overlaps if self.dialect == Dialect::Postgres => return self.bind_overlaps(scope, left, right),
            B::Xor => {
                // As true or false: a number may be any that is not zero.
                let truth = |expr: Expr| Box::new(Expr::Not(Box::new(Expr::Not(Box::new(expr)))));
                let (a, b) = (truth(self.condition(scope, left)?), truth(self.condition(scope, right)?));
                return Ok(boolean(Expr::Compare(Comparison::NotEqual, a, b, None)));
            }
            _ => {}
        }
        if let Some(comparison) = comparison_of(op) {
            if let (ast::Expr::Tuple(a), ast::Expr::Tuple(b)) = (left, right) {
                return self.compare_tuples(scope, comparison, a, b);
            }
            match (left, right) {
                (ast::Expr::Tuple(values), ast::Expr::Subquery(query)) => {
                    return self.compare_with_row(scope, comparison, values, query, false);
                }
                (ast::Expr::Subquery(query), ast::Expr::Tuple(values)) if self.dialect != Dialect::Postgres => {
                    return self.compare_with_row(scope, comparison, values, query, true);
                }
                _ => {}
            }
            let (a, b) = (self.bind_compared(scope, left)?, self.bind_compared(scope, right)?);
            let (a, b) = self.beside_truths(scope, (a, left), (b, right))?;
            return Ok(boolean(self.compare_shown(comparison, a, b)?));
        }
        if *op == B::PGExp {
            return self.call("power", vec![self.bind(scope, left)?, self.bind(scope, right)?]);
        }
        let arithmetic = match op {
            B::Plus => Arithmetic::Add,
            B::Minus => Arithmetic::Subtract,
            B::Multiply => Arithmetic::Multiply,
            B::Divide => Arithmetic::Divide,
            B::Modulo => Arithmetic::Remainder,
            B::MyIntegerDivide | B::DuckIntegerDivide => Arithmetic::DivideWhole,
            B::BitwiseAnd => Arithmetic::BitAnd,
            B::BitwiseOr => Arithmetic::BitOr,
            B::BitwiseXor | B::PGBitwiseXor => Arithmetic::BitXor,
            B::PGBitwiseShiftLeft => Arithmetic::ShiftLeft,
            B::PGBitwiseShiftRight => Arithmetic::ShiftRight,
            B::Spaceship => return Ok(boolean(self.same(scope, left, right)?)),
            B::StringConcat if self.dialect == Dialect::Mysql => return self.bind_logic(scope, left, &B::Or, right),
            B::StringConcat => {
                let (a, b) = (self.bind(scope, left)?, self.bind(scope, right)?);
                if self.dialect == Dialect::Postgres {
                    if let Some(found) = self.concat_arrays(&a, &b)? {
                        return Ok(found);
                    }
                    if a.ty.base == Base::Json || b.ty.base == Base::Json {
                        return self.bind_document_operator(op, a, b);
                    }
                }
                return self.concat(a, b);
            }
            B::PGLikeMatch => return Ok(boolean(self.bind_like(scope, left, right, None, false)?)),
            B::PGILikeMatch => return Ok(boolean(self.bind_like(scope, left, right, None, true)?)),
            B::PGNotLikeMatch => return Ok(not(self.bind_like(scope, left, right, None, false)?)),
            B::PGNotILikeMatch => return Ok(not(self.bind_like(scope, left, right, None, true)?)),
            other => return self.bind_match(scope, left, other, right),
        };
        let (a, b) = (self.bind(scope, left)?, self.bind(scope, right)?);
        if *op == B::Minus && a.ty.base == Base::Json && self.dialect == Dialect::Postgres {
            return self.bind_document_operator(op, a, b);
        }
        self.arithmetic(arithmetic, a, b)
    }

    pub(super) fn concat(&self, a: Bound, b: Bound) -> Result<Bound> {
        let is_text = |ty: Type| matches!(ty.base, Base::Text | Base::Unknown | Base::Any | Base::Scalar);
        let are_bytes = a.ty.base == Base::Bytes && b.ty.base == Base::Bytes;
        if !are_bytes && !is_text(a.ty) && !is_text(b.ty)
            || self.dialect == Dialect::Tarantool && !are_bytes && !(is_text(a.ty) && is_text(b.ty))
        {
            return Err(match self.dialect {
                Dialect::Tarantool => {
                    let wrong = if is_text(a.ty) { b.ty } else { a.ty };
                    let name = if wrong.is_integer() { "unsigned".to_string() } else { wrong.name(self.dialect) };
                    let what = format!("Inconsistent types: expected text or varbinary got {name}");
                    Error::new(Condition::TypeMismatch, what).tarantool(database::ErrorCode::InconsistentTypes)
                }
                _ => self.no_operator("||", a.ty, b.ty),
            });
        }
        let as_text = |bound: Bound| match bound.ty.base {
            Base::Unknown => self.cast_to(bound, Type::TEXT, Strictness::Explicit),
            _ if bound.ty.is_float() || bound.ty.is_coded() || bound.ty.has_labels() => {
                self.cast_to(bound, Type::TEXT, Strictness::Explicit)
            }
            _ => Ok(bound),
        };
        let (a, b) = (as_text(a)?, as_text(b)?);
        let ty = if are_bytes { Type::of(Base::Bytes) } else { Type::TEXT };
        Ok(Bound {
            collation: a.collation.or(b.collation),
            ..Bound::new(Expr::Concat(Box::new(a.expr), Box::new(b.expr)), ty)
        })
    }

    /// AND and OR: long chains without recursion.
    pub(super) fn bind_logic(
        &self,
        scope: &Scope<'_>,
        left: &ast::Expr,
        op: &BinaryOperator,
        right: &ast::Expr,
    ) -> Result<Bound> {
        let mut parts = vec![self.condition(scope, right)?];
        let mut rest = left;
        while let ast::Expr::BinaryOp { left, op: other, right } = rest
            && other == op
        {
            parts.push(self.condition(scope, right)?);
            rest = left;
        }
        parts.push(self.condition(scope, rest)?);
        parts.reverse();
        let decides = *op == BinaryOperator::Or;
        let is_decided = |part: &Expr| matches!(part, Expr::Const(Value::Bool(value)) if *value == decides);
        if self.dialect == Dialect::Postgres && parts.iter().any(is_decided) {
            return Ok(boolean(Expr::Const(Value::Bool(decides))));
        }
        Ok(boolean(if *op == BinaryOperator::And { Expr::And(parts) } else { Expr::Or(parts) }))
    }

    /// A comparison as an operator: MySQL takes doubles that are shown with few digits for equal where these are.
    pub(super) fn compare_shown(&self, comparison: Comparison, a: Bound, b: Bound) -> Result<Expr> {
        match self.order_as_shown(comparison, &a, &b)? {
            Some(order) => {
                let zero = Box::new(Expr::Const(Value::Int(0)));
                Ok(Expr::Compare(comparison, Box::new(order), zero, None))
            }
            None => self.compare(comparison, a, b),
        }
    }

    /// Where two doubles of few digits stand to each other: below zero, zero or above it. None: they are others.
    pub(super) fn order_as_shown(&self, comparison: Comparison, a: &Bound, b: &Bound) -> Result<Option<Expr>> {
        // What an index may find stays: a column that is equal to something, or beside what no row changes.
        let is_found = |column: &Bound, other: &Bound| {
            let mut is_fixed = true;
            other.expr.slots(&mut |_| is_fixed = false);
            let asks_equal = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
            matches!(column.expr, Expr::Slot(_)) && (asks_equal || is_fixed)
        };
        let digits = match (super::exact::shown_digits(a.ty), super::exact::shown_digits(b.ty)) {
            (Some(a), Some(b)) => a.max(b),
            _ => return Ok(None),
        };
        let is_double = a.ty.base == Base::Double || b.ty.base == Base::Double;
        let are_numbers = a.ty.is_number() && b.ty.is_number();
        if self.dialect != Dialect::Mysql
            || !is_double
            || !are_numbers
            || digits == 0
            || is_found(a, b)
            || is_found(b, a)
        {
            return Ok(None);
        }
        let digits = Bound::new(Expr::Const(Value::Int(i64::from(digits))), Type::of(Base::Int8));
        Ok(Some(self.call("order_as_shown", vec![a.clone(), b.clone(), digits])?.expr))
    }

    pub(super) fn compare_tuples(
        &self,
        scope: &Scope<'_>,
        comparison: Comparison,
        a: &[ast::Expr],
        b: &[ast::Expr],
    ) -> Result<Bound> {
        if a.len() != b.len() {
            return Err(Error::new(Condition::ColumnCount, "unequal number of entries in row expressions"));
        }
        let mut pairs = Vec::with_capacity(a.len());
        for (a, b) in a.iter().zip(b) {
            pairs.push((self.bind(scope, a)?, self.bind(scope, b)?));
        }
        self.compare_pairs(comparison, &pairs)
    }

    /// Several values compared with those of the one row of a query; null if it has none.
    fn compare_with_row(
        &self,
        scope: &Scope<'_>,
        comparison: Comparison,
        values: &[ast::Expr],
        query: &ast::Query,
        is_turned: bool,
    ) -> Result<Bound> {
        let mut pairs = Vec::with_capacity(values.len());
        for (at, value) in values.iter().enumerate() {
            let value = self.bind(scope, value)?;
            let column = self.row_column(scope, query, (at, values.len()))?;
            pairs.push(if is_turned { (column, value) } else { (value, column) });
        }
        self.compare_pairs(comparison, &pairs)
    }

    /// Pairs of values, of which the first that differ decide.
    fn compare_pairs(&self, comparison: Comparison, pairs: &[(Bound, Bound)]) -> Result<Bound> {
        let of_all = |comparison: Comparison| -> Result<Vec<Expr>> {
            pairs.iter().map(|(a, b)| self.compare_shown(comparison, a.clone(), b.clone())).collect()
        };
        Ok(boolean(match comparison {
            Comparison::Equal => Expr::And(of_all(Comparison::Equal)?),
            Comparison::NotEqual => Expr::Or(of_all(Comparison::NotEqual)?),
            // The first pair that differs decides.
            _ => {
                let strict = match comparison {
                    Comparison::Less | Comparison::LessOrEqual => Comparison::Less,
                    _ => Comparison::Greater,
                };
                let mut whole: Option<Expr> = None;
                for (a, b) in pairs.iter().rev() {
                    let last = whole.is_none();
                    let decided = self.compare(if last { comparison } else { strict }, a.clone(), b.clone())?;
                    whole = Some(match whole {
                        None => decided,
                        // Where one is null nothing more is looked at.
                        Some(rest) => {
                            let equal = self.compare(Comparison::Equal, a.clone(), b.clone())?;
                            let branches =
                                vec![(Expr::IsNull(Box::new(equal.clone())), Expr::Const(Value::Null)), (equal, rest)];
                            Expr::Case(branches, Box::new(decided))
                        }
                    });
                }
                whole.unwrap_or(Expr::Const(Value::Null))
            }
        }))
    }

    pub(super) fn bind_unary(&self, scope: &Scope<'_>, op: UnaryOperator, expr: &ast::Expr) -> Result<Bound> {
        match op {
            UnaryOperator::Not | UnaryOperator::BangNot => Ok(not(self.condition(scope, expr)?)),
            UnaryOperator::Plus => self.bind(scope, expr),
            UnaryOperator::Minus => {
                // The least number of 64 bits has no positive one.
                if let ast::Expr::Value(value) = expr
                    && let ast::Value::Number(text, _) = &value.value
                    && let Some(number) = text.parse::<i128>().ok().and_then(|number| Value::integer(-number))
                {
                    let small = matches!(number, Value::Int(value) if i32::try_from(value).is_ok());
                    let base = match self.dialect {
                        Dialect::Tarantool => Base::Integer,
                        _ if small => Base::Int4,
                        _ => Base::Int8,
                    };
                    return Ok(Bound::new(Expr::Const(number), Type::of(base)));
                }
                let value = self.bind(scope, expr)?;
                let value = match value.ty.base {
                    Base::Interval => {
                        return self.arithmetic(
                            Arithmetic::Multiply,
                            value,
                            Bound::new(Expr::Const(Value::Int(-1)), Type::of(Base::Int4)),
                        );
                    }
                    Base::Unknown if self.dialect == Dialect::Mysql => self.null_as_number(value)?,
                    Base::Unknown => self.cast_to(value, Type::of(Base::Double), Strictness::Explicit)?,
                    Base::Text | Base::Json if self.dialect == Dialect::Mysql => {
                        self.cast_to(value, Type::of(Base::Double), Strictness::Explicit)?
                    }
                    Base::Bytes if self.dialect == Dialect::Mysql => match number_of_bytes(&value) {
                        Some(number) => number,
                        None => self.cast_to(value, Type::of(Base::Double), Strictness::Explicit)?,
                    },
                    _ if value.ty.is_number() || matches!(value.ty.base, Base::Any | Base::Scalar) => value,
                    _ => return Err(self.no_operator("-", value.ty, value.ty)),
                };
                if self.dialect == Dialect::Mysql
                    && value.ty.is_integer()
                    && let Some(number) = self.negated_decimal(expr, &value.expr)
                {
                    return Ok(number);
                }
                let ty = match value.ty.base {
                    Base::Uint8 => Type::of(Base::Integer),
                    Base::Decimal if self.dialect == Dialect::Mysql => value.ty,
                    Base::Double if self.dialect == Dialect::Postgres => value.ty,
                    Base::Double if self.dialect == Dialect::Mysql => Type::double(value.ty.double_digits()),
                    base => Type::of(base),
                };
                if let Expr::Const(constant) = &value.expr {
                    return Ok(Bound::new(Expr::Const(crate::arithmetic::negate(ty, constant)?), ty));
                }
                Ok(Bound::new(Expr::Negate(ty, Box::new(value.expr)), ty))
            }
            UnaryOperator::BitwiseNot => {
                let value = self.bind(scope, expr)?;
                if value.ty.is_address() {
                    return self.call(if crate::net::is_mac(value.ty) { "mac_not" } else { "net_not" }, vec![value]);
                }
                self.arithmetic(
                    Arithmetic::BitXor,
                    value,
                    Bound::new(Expr::Const(Value::Int(-1)), Type::of(Base::Int4)),
                )
            }
            other => Err(Error::unsupported(format!("operator {other}"))),
        }
    }

    /// An operation of two numbers, or of moments and spans of time.
    pub(super) fn arithmetic(&self, operation: Arithmetic, a: Bound, b: Bound) -> Result<Bound> {
        let manner =
            Manner { zero_gives_null: self.dialect.zero_gives_null(), short_quotients: self.dialect == Dialect::Mysql };
        if let Some(found) = self.operator_of_nets(operation.sign(), &a, &b)? {
            return Ok(found);
        }
        if let Some(found) = self.operator_of_ranges(operation.sign(), &a, &b)? {
            return Ok(found);
        }
        if let Some(found) = self.arithmetic_of_time(operation, &a, &b)? {
            return Ok(found);
        }
        let as_number = |bound: Bound, other: Type| -> Result<Bound> {
            if let Expr::Param(_) = bound.expr {
                self.calculates_with_params.set(true);
            }
            match bound.ty.base {
                Base::Unknown if other.is_number() && self.dialect != Dialect::Mysql => {
                    self.cast_to(bound, other.without_length(), Strictness::Explicit)
                }
                Base::Unknown => self.cast_to(bound, Type::of(Base::Double), Strictness::Explicit),
                Base::Bool if self.dialect == Dialect::Mysql => {
                    self.cast_to(bound, Type::of(Base::Int8), Strictness::Explicit)
                }
                Base::Bytes if self.dialect == Dialect::Mysql && number_of_bytes(&bound).is_some() => {
                    Ok(number_of_bytes(&bound).unwrap_or(bound))
                }
                Base::Text | Base::Bytes if self.dialect == Dialect::Mysql => {
                    self.cast_to(bound, Type::of(Base::Double), Strictness::Explicit)
                }
                Base::Json if self.dialect == Dialect::Mysql => self.double_of_document(bound),
                // Days and moments are numbers of their digits.
                Base::Date | Base::Timestamp | Base::Time if self.dialect == Dialect::Mysql => self.as_digits(bound),
                Base::Text if self.dialect == Dialect::Tarantool => {
                    self.cast_to(bound, Type::of(Base::Number), Strictness::Explicit)
                }
                Base::Any | Base::Scalar => self.beside(bound, Type::of(Base::Number)),
                _ if bound.ty.is_number() => Ok(bound),
                _ => Err(self.no_operator(operation.sign(), bound.ty, other)),
            }
        };
        let (a_type, b_type) = (a.ty, b.ty);
        let (mut a, mut b) = (as_number(a, b_type)?, as_number(b, a_type)?);
        for side in [&mut a, &mut b] {
            // Bits are those of whole numbers.
            if operation.is_of_bits() && self.dialect == Dialect::Mysql && !side.ty.is_integer() {
                *side = self.cast_to(side.clone(), Type::of(Base::Integer), Strictness::Explicit)?;
            }
        }
        if operation == Arithmetic::Remainder
            && self.dialect == Dialect::Postgres
            && (a.ty.base == Base::Double || b.ty.base == Base::Double)
        {
            return Err(self.no_operator(operation.sign(), a.ty, b.ty));
        }
        let base = self.result_of(operation, a.ty, b.ty)?;
        let ty = match (self.dialect, base) {
            (Dialect::Mysql, Base::Decimal) => {
                super::exact::result_of(operation, super::exact::known_digits(&a), super::exact::known_digits(&b))
            }
            (Dialect::Postgres, Base::Double) if a.ty.is_float() && b.ty.is_float() => Type::FLOAT,
            (Dialect::Mysql, Base::Double) => super::exact::double_of(operation, a_type, b_type),
            _ => Type::of(base),
        };
        if let (Expr::Const(a), Expr::Const(b)) = (&a.expr, &b.expr)
            && let Ok(value) = crate::arithmetic::calculate(operation, ty, manner, a, b)
            // A division by zero counts where it is computed.
            && (!value.is_null() || a.is_null() || b.is_null())
        {
            return Ok(Bound::new(Expr::Const(value), ty));
        }
        Ok(Bound::new(Expr::Arithmetic(operation, ty, manner, Box::new(a.expr), Box::new(b.expr)), ty))
    }

    pub(super) fn result_of(&self, operation: Arithmetic, a: Type, b: Type) -> Result<Base> {
        let is_open = |ty: Type| matches!(ty.base, Base::Any | Base::Scalar | Base::Number);
        if operation.is_of_bits() {
            return Ok(match self.dialect {
                Dialect::Tarantool => Base::Integer,
                Dialect::Mysql => Base::Uint8,
                Dialect::Postgres if a.is_integer() && b.is_integer() => a.common(b).map_or(Base::Int8, |ty| ty.base),
                Dialect::Postgres => return Err(self.no_operator(operation.sign(), a, b)),
            });
        }
        if is_open(a) || is_open(b) {
            return Ok(if a.base == Base::Double || b.base == Base::Double { Base::Double } else { Base::Number });
        }
        if a.is_integer() && b.is_integer() {
            return Ok(match self.dialect {
                Dialect::Tarantool => Base::Integer,
                Dialect::Mysql if operation == Arithmetic::Divide && !self.dialect.divides_whole() => Base::Decimal,
                Dialect::Mysql if a.is_unsigned() || b.is_unsigned() && operation != Arithmetic::Remainder => {
                    Base::Uint8
                }
                Dialect::Mysql => Base::Int8,
                Dialect::Postgres => a.common(b).map_or(Base::Int8, |ty| ty.base),
            });
        }
        if operation == Arithmetic::DivideWhole {
            return Ok(if a.is_unsigned() || b.is_unsigned() { Base::Uint8 } else { Base::Int8 });
        }
        Ok(if a.base == Base::Double || b.base == Base::Double { Base::Double } else { Base::Decimal })
    }

    pub(super) fn bind_like(
        &self,
        scope: &Scope<'_>,
        text: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::Expr>,
        ignores_case: bool,
    ) -> Result<Expr> {
        let as_text = |bound: Bound| match bound.ty.base {
            Base::Text | Base::Any | Base::Scalar | Base::Bytes => Ok(bound.expr),
            Base::Unknown => Ok(self.cast_to(bound, Type::TEXT, Strictness::Explicit)?.expr),
            _ if self.dialect == Dialect::Mysql => Ok(self.cast_to(bound, Type::TEXT, Strictness::Explicit)?.expr),
            _ if self.dialect == Dialect::Tarantool => {
                let what = format!("Inconsistent types: expected string got {}", bound.ty.name(self.dialect));
                Err(Error::new(Condition::TypeMismatch, what))
            }
            _ => Err(self.no_operator("~~", bound.ty, Type::of(Base::Unknown))),
        };
        let escape = match escape {
            Some(ast::Expr::Value(value)) => match value.clone().value.into_string() {
                Some(text) => text.chars().next(),
                None => None,
            },
            Some(other) => return Err(Error::unsupported(format!("'ESCAPE {other}'"))),
            None if self.dialect == Dialect::Tarantool => None,
            None => Some('\\'),
        };
        let (mut text, mut pattern) = (self.bind(scope, text)?, self.bind(scope, pattern)?);
        let mut ignores_case = ignores_case;
        if self.dialect == Dialect::Mysql {
            ignores_case &= !self.tells_case(&text, &pattern);
            // `LIKE BINARY 'A%'`: as it is written.
            for side in [&mut text, &mut pattern] {
                ignores_case &= side.ty.base != Base::Bytes;
                if side.ty.base == Base::Bytes && matches!(side.expr, Expr::Cast(..) | Expr::Const(_)) {
                    let bytes = std::mem::replace(side, Bound::new(Expr::Const(Value::Null), Type::TEXT));
                    *side = self.cast_to(bytes, Type::TEXT, Strictness::Explicit)?;
                }
            }
        }
        let collation = match self.dialect == Dialect::Mysql && ignores_case {
            true => self.compared_by(&text, &pattern),
            false => None,
        };
        let (text, pattern) = (as_text(text)?, as_text(pattern)?);
        Ok(Expr::Like(Box::new(Like { text, pattern, escape, ignores_case, collation })))
    }
}

pub(super) fn comparison_of(op: &BinaryOperator) -> Option<Comparison> {
    Some(match op {
        BinaryOperator::Eq => Comparison::Equal,
        BinaryOperator::NotEq => Comparison::NotEqual,
        BinaryOperator::Lt => Comparison::Less,
        BinaryOperator::LtEq => Comparison::LessOrEqual,
        BinaryOperator::Gt => Comparison::Greater,
        BinaryOperator::GtEq => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

/// A literal of MySQL's that is written by its bytes (`0x41`), as the number that it is beside others. None: it is something else.
pub(super) fn number_of_bytes(bound: &Bound) -> Option<Bound> {
    match &bound.expr {
        Expr::Const(Value::Bytes(bytes)) if bytes.len() <= 8 => {
            let number = bytes.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
            let number = Value::integer(i128::from(number))?;
            Some(Bound::new(Expr::Const(number), Type::of(Base::Uint8)))
        }
        _ => None,
    }
}
