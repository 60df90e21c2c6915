//! How many digits MySQL's exact numbers have behind the point.
//!
//! The type of an expression says with how many digits its value is *shown*; the value itself may have more: quotients keep groups of nine digits, and what is
//! calculated of them goes on with all of these (`1 / 3 * 3` is `1.0000`). A value is *settled*, which is rounded to the digits of its type, where it leaves the
//! expression: as a column of a result, as a key of a group, as text.

use super::{Binder, Bound};
use crate::arithmetic::Arithmetic;
use crate::cast::Strictness;
use crate::dialect::Dialect;
use crate::error::Result;
use crate::expr::Expr;
use crate::types::{Base, Type};
use crate::value::Value;
use sqlparser::ast::{self, UnaryOperator};
use tuple::decimal::{DIGITS_MAX, Decimal};

/// Digits that MySQL adds to a quotient and to an average.
const DIGITS_MORE: u32 = 4;
/// Digits that it adds to a sum before the point.
const DIGITS_OF_SUMS: u32 = 22;

/// Digits of a decimal that whole numbers of 64 bits hold.
pub(super) const DIGITS_OF_WHOLE: u32 = 18;

/// Digits before and behind the point.
#[derive(Clone, Copy)]
struct Digits {
    whole: u32,
    scale: u32,
}

impl Digits {
    /// Those of an exact number. None: it is another value, or nobody knows.
    fn of(ty: Type) -> Option<Self> {
        let whole = match ty.base {
            Base::Decimal if ty.length > 0 => {
                return Some(Digits { whole: ty.length.saturating_sub(ty.scale), scale: ty.scale });
            }
            Base::Unknown => 0,
            Base::Bool => 1,
            Base::Int1 | Base::Uint1 => 3,
            Base::Int2 | Base::Uint2 => 5,
            Base::Int4 | Base::Uint4 => 10,
            Base::Int8 => 19,
            Base::Uint8 | Base::Integer => 20,
            _ => return None,
        };
        Some(Digits { whole, scale: 0 })
    }

    fn ty(self) -> Type {
        let scale = self.scale.min(DIGITS_MAX - 1);
        Type { base: Base::Decimal, length: self.whole.saturating_add(scale).clamp(1, DIGITS_MAX), scale }
    }
}

/// The type of a decimal that a statement writes.
pub(super) fn literal(value: &tuple::decimal::Decimal) -> Type {
    let (digits, scale) = value.parts();
    let count = digits.unsigned_abs().checked_ilog10().map_or(1, |log| log + 1);
    let scale = u32::try_from(scale).unwrap_or(0);
    Digits { whole: count.saturating_sub(scale), scale }.ty()
}

/// The type that a value of a parameter has in MySQL; of null nothing is known.
pub fn type_of_parameter(value: &Value) -> Type {
    match value {
        Value::Null => Type::UNKNOWN,
        Value::Bool(_) | Value::Int(_) => Type::of(Base::Int8),
        Value::Uint(_) => Type::of(Base::Uint8),
        Value::Double(_) => Type::of(Base::Double),
        Value::Decimal(value) => literal(value),
        Value::Bytes(_) => Type::of(Base::Bytes),
        Value::Datetime(_) => Type::of(Base::Timestamp),
        _ => Type::TEXT,
    }
}

/// The type of a column that has exact numbers of both, one of which is a decimal. None: they are others.
pub(super) fn common(a: Type, b: Type) -> Option<Type> {
    if a.base != Base::Decimal && b.base != Base::Decimal {
        return None;
    }
    let (a, b) = (Digits::of(a)?, Digits::of(b)?);
    Some(Digits { whole: a.whole.max(b.whole), scale: a.scale.max(b.scale) }.ty())
}

/// The type that holds whole numbers of 64 bits with a sign and without.
pub(super) const MIXED: Type = Type { base: Base::Decimal, length: 20, scale: 0 };

/// Digits behind the point that a value is shown with where it becomes a double. None: those that it has.
pub(super) fn shown_digits(ty: Type) -> Option<u32> {
    match ty.base {
        Base::Double => ty.double_digits(),
        Base::Decimal if ty.length > 0 => Some(ty.scale),
        Base::Unknown | Base::Bool => Some(0),
        _ if ty.is_integer() => Some(0),
        _ => None,
    }
}

fn most_digits(a: Type, b: Type) -> Option<u32> {
    Some(shown_digits(a)?.max(shown_digits(b)?))
}

/// The type of a double that an operation gives: with as many digits as either side has, a quotient with four more.
pub(super) fn double_of(operation: Arithmetic, a: Type, b: Type) -> Type {
    let more = if operation == Arithmetic::Divide { DIGITS_MORE } else { 0 };
    Type::double(most_digits(a, b).map(|digits| digits + more))
}

/// The type of the sum or the average of doubles.
pub(super) fn sum_of_doubles(ty: Type, is_average: bool) -> Type {
    Type::double(ty.double_digits().map(|digits| if is_average { digits + DIGITS_MORE } else { digits }))
}

/// The type of a column that has doubles and other numbers. None: it has others.
pub(super) fn common_double(a: Type, b: Type) -> Option<Type> {
    let is_number = |ty: Type| ty.is_number() && ty.base != Base::Number;
    let is_double = a.base == Base::Double || b.base == Base::Double;
    if a == b || !is_double || !is_number(a) || !is_number(b) {
        return None;
    }
    let digits = Type::double(most_digits(a, b));
    Some(if a.is_float() && b.is_float() { Type { scale: digits.scale, ..Type::FLOAT } } else { digits })
}

/// True for two types of whole numbers that [`MIXED`] alone holds.
pub(super) fn is_mixed(a: Type, b: Type) -> bool {
    let is_signed = |ty: Type| ty.is_integer() && !ty.is_unsigned();
    a.base == Base::Uint8 && is_signed(b) || b.base == Base::Uint8 && is_signed(a)
}

/// The type of a number beside decimals: a whole one as a decimal of the digits that it can have, where the expression says how many.
pub(super) fn known_digits(bound: &Bound) -> Type {
    let whole = match bound.ty.base {
        Base::Int4 | Base::Int8 if bound.ty.length > 0 => Some(bound.ty.length),
        _ if bound.ty.is_integer() => digits_of_whole(&bound.expr),
        _ => None,
    };
    match (whole, Digits::of(bound.ty)) {
        (Some(whole), Some(most)) if whole < most.whole => Digits { whole: whole.max(1), scale: 0 }.ty(),
        _ => bound.ty,
    }
}

/// The digits of a whole number that an expression gives.
fn digits_of_whole(expr: &Expr) -> Option<u32> {
    fn most<'a>(exprs: impl Iterator<Item = &'a Expr>) -> Option<u32> {
        exprs.map(digits_of_whole).try_fold(0, |most, digits| Some(digits?.max(most)))
    }
    match expr {
        Expr::Const(Value::Null) => Some(0),
        Expr::Const(value) => {
            value.as_integer().map(|number| number.unsigned_abs().checked_ilog10().map_or(1, |log| log + 1))
        }
        Expr::Negate(_, inner) => digits_of_whole(inner),
        Expr::Case(branches, otherwise) => {
            most(branches.iter().map(|(_, value)| value).chain(std::iter::once(&**otherwise)))
        }
        Expr::Coalesce(values) => most(values.iter()),
        Expr::Call(function, _) => digits_of_function(function.name),
        _ => None,
    }
}

/// The digits of the whole numbers that a function of MySQL gives.
fn digits_of_function(name: &str) -> Option<u32> {
    Some(match name {
        "dayofweek" | "weekday" | "quarter" | "strcmp" | "sign" | "bit_count" => 1,
        "ascii" | "hour" | "minute" | "second" | "month" | "day" | "dayofmonth" | "week" | "field" | "find_in_set" => 2,
        "dayofyear" => 3,
        "year" => 4,
        "to_days" | "ord" => 6,
        "datediff" => 7,
        "char_length" | "character_length" | "length" | "octet_length" => 9,
        _ => return None,
    })
}

/// The type of a decimal that an operation gives.
pub(super) fn result_of(operation: Arithmetic, a: Type, b: Type) -> Type {
    let (Some(a), Some(b)) = (Digits::of(a), Digits::of(b)) else { return Type::of(Base::Decimal) };
    let (whole, scale) = match operation {
        Arithmetic::Multiply => (a.whole + b.whole, a.scale + b.scale),
        Arithmetic::Divide => (a.whole + b.scale, a.scale + DIGITS_MORE),
        Arithmetic::Remainder => (a.whole.max(b.whole), a.scale.max(b.scale)),
        _ => (a.whole.max(b.whole) + 1, a.scale.max(b.scale)),
    };
    Digits { whole, scale }.ty()
}

/// The type of the sum or the average of exact numbers.
pub(super) fn sum_of(ty: Type, is_average: bool) -> Type {
    match Digits::of(ty) {
        None => Type::of(Base::Decimal),
        Some(Digits { whole, scale }) if is_average => {
            Digits { whole: whole + DIGITS_MORE, scale: scale + DIGITS_MORE }.ty()
        }
        Some(Digits { whole, scale }) => Digits { whole: whole + DIGITS_OF_SUMS, scale }.ty(),
    }
}

/// The type of what a function makes of a decimal alone.
pub(super) fn of_call(name: &str, arguments: &[Bound], ty: Type) -> Type {
    let is_rounded = matches!(name, "round" | "truncate") && matches!(ty.base, Base::Decimal | Base::Double);
    if is_rounded && matches!(arguments, [_, Bound { expr: Expr::Const(Value::Null), .. }]) {
        return Type::of(Base::Double);
    }
    if ty.base == Base::Double {
        return double_of_call(name, arguments, ty);
    }
    let Some(of) = arguments.first().and_then(|first| Digits::of(first.ty)) else { return ty };
    if ty.base != Base::Decimal {
        return ty;
    }
    match name {
        "round" | "truncate" => match arguments.get(1).map(|digits| &digits.expr) {
            None => Digits { whole: of.whole + 1, scale: 0 }.ty(),
            Some(Expr::Const(Value::Int(digits))) => {
                Digits { whole: of.whole + 1, scale: (*digits).clamp(0, i64::from(DIGITS_MAX)) as u32 }.ty()
            }
            Some(_) => of.ty(),
        },
        "ceil" | "ceiling" | "floor" => Digits { whole: of.whole + 1, scale: 0 }.ty(),
        "abs" => of.ty(),
        _ => ty,
    }
}

fn double_of_call(name: &str, arguments: &[Bound], ty: Type) -> Type {
    let own = arguments.first().and_then(|first| shown_digits(first.ty));
    match name {
        "round" | "truncate" => Type::double(match arguments.get(1).map(|digits| &digits.expr) {
            None => Some(0),
            Some(Expr::Const(Value::Int(digits))) => u32::try_from((*digits).max(0)).ok(),
            Some(_) => own,
        }),
        "ceil" | "ceiling" | "floor" => Type::double(Some(0)),
        "abs" => Type::double(own),
        _ => ty,
    }
}

/// True for functions that calculate with all digits of a value.
pub(super) fn calculates(name: &str) -> bool {
    matches!(
        name,
        "abs"
            | "round"
            | "truncate"
            | "ceil"
            | "ceiling"
            | "floor"
            | "mod"
            | "sign"
            | "greatest"
            | "least"
            | "coalesce"
            | "ifnull"
            | "sqrt"
            | "pow"
            | "power"
            | "exp"
            | "ln"
            | "log"
            | "log2"
            | "log10"
            | "with_scale"
    )
}

/// True for functions of numbers: text that they get is one.
pub(super) fn is_of_numbers(name: &str) -> bool {
    calculates(name) && !matches!(name, "greatest" | "least" | "coalesce" | "ifnull" | "with_scale")
}

/// True for a number that a statement writes, with its signs.
fn is_written(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::Value(_) => true,
        ast::Expr::Nested(inner)
        | ast::Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr: inner } => is_written(inner),
        _ => false,
    }
}

/// True for what is computed of numbers alone, whose value is known now.
fn is_known(expr: &Expr) -> bool {
    let mut is_so = true;
    expr.walk(&mut |part| {
        is_so &= match part {
            Expr::Slot(_)
            | Expr::Param(_)
            | Expr::Subquery(_)
            | Expr::Assigned(_)
            | Expr::Keep(..)
            | Expr::Each(_)
            | Expr::Canonical(..) => false,
            Expr::Call(function, _) => !function.is_volatile && calculates(function.name),
            _ => true,
        };
    });
    is_so
}

impl Binder<'_> {
    /// A known whole number with the other sign as a decimal: MySQL has one of what is computed and below zero, and of what
    /// has no negative of 64 bits. None: it is another value.
    pub(super) fn negated_decimal(&self, written: &ast::Expr, expr: &Expr) -> Option<Bound> {
        let number = match expr {
            Expr::Const(value) => value.as_integer()?,
            _ if is_known(expr) => {
                let context = crate::condition::context_of(self.database);
                let mut run = crate::run::Run::of_row(self.database, &context, self.dialect, (0, 0, 0));
                expr.eval(&mut run).ok()?.as_integer()?
            }
            _ => return None,
        };
        let is_decimal = match is_written(written) {
            true => number > i128::from(i64::MAX) || number == i128::from(i64::MIN),
            false => number < 0 || number > i128::from(i64::MAX),
        };
        let negated = is_decimal.then(|| Decimal::new(-number, 0)).flatten()?;
        Some(Bound::new(Expr::Const(Value::decimal(negated)), literal(&negated)))
    }

    /// A null that nothing has given a type, where a number is wanted: a double without digits behind the point.
    pub(super) fn null_as_number(&self, bound: Bound) -> Result<Bound> {
        let found = self.cast_to(bound, Type::of(Base::Double), Strictness::Explicit)?;
        Ok(Bound { ty: Type::double(Some(0)), ..found })
    }

    /// The same of each beside numbers, in GREATEST and LEAST, which compare all of them as doubles then.
    pub(super) fn nulls_as_numbers(&self, values: &mut [Bound]) -> Result<()> {
        let are_others_numbers = values.iter().all(|value| value.ty.is_number() || value.ty.base == Base::Unknown);
        let has_number = values.iter().any(|value| value.ty.is_number());
        for value in values.iter_mut().filter(|_| are_others_numbers && has_number) {
            if value.ty.base == Base::Unknown {
                *value = self.null_as_number(value.clone())?;
            }
        }
        Ok(())
    }

    /// A value with the digits that its type shows.
    pub(super) fn settled(&self, bound: Bound) -> Result<Bound> {
        let is_exact = bound.ty.base == Base::Decimal && bound.ty.length > 0;
        let is_done = matches!(&bound.expr, Expr::Call(function, _) if function.name == "with_scale");
        if self.dialect != Dialect::Mysql || !is_exact || is_done {
            return Ok(bound);
        }
        let ty = bound.ty;
        if let Expr::Const(Value::Decimal(value)) = &bound.expr
            && value.parts().1 == ty.scale as i32
        {
            return Ok(bound);
        }
        let scale = Bound::new(Expr::Const(Value::Int(i64::from(ty.scale))), Type::of(Base::Int8));
        let mut found = self.call("with_scale", vec![bound, scale])?;
        found.ty = ty;
        Ok(found)
    }
}
