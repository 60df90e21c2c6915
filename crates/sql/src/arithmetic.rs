//! `+ - * / %` over numbers of all kinds, with the overflows that the dialects have.

use crate::error::{Condition, Error, Result};
use crate::types::{Base, Type};
use crate::value::Value;
use dashu_int::IBig;
use tuple::decimal::{DIGITS_MAX, Decimal};

/// An operation of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    /// A quotient without what is behind the point: MySQL's DIV.
    DivideWhole,
    Remainder,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
}

impl Arithmetic {
    /// As it is written.
    pub(crate) fn sign(self) -> &'static str {
        match self {
            Arithmetic::Add => "+",
            Arithmetic::Subtract => "-",
            Arithmetic::Multiply => "*",
            Arithmetic::Divide => "/",
            Arithmetic::DivideWhole => "DIV",
            Arithmetic::Remainder => "%",
            Arithmetic::BitAnd => "&",
            Arithmetic::BitOr => "|",
            Arithmetic::BitXor => "#",
            Arithmetic::ShiftLeft => "<<",
            Arithmetic::ShiftRight => ">>",
        }
    }

    /// True for those that only whole numbers have.
    pub(crate) fn is_of_bits(self) -> bool {
        use Arithmetic::{BitAnd, BitOr, BitXor, ShiftLeft, ShiftRight};
        matches!(self, BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight)
    }
}

/// Digits behind the point that a quotient has at least, as PostgreSQL.
const QUOTIENT_DIGITS_MIN: i32 = 16;
/// Digits that MySQL adds to a quotient.
const QUOTIENT_DIGITS_MORE: i32 = 4;
/// Digits that MySQL keeps in one word of a decimal.
const GROUP_DIGITS: i32 = 9;

fn out_of_range(result: Type) -> Error {
    Error::new(
        Condition::ResultOutOfRange,
        match result.base {
            Base::Integer | Base::Uint8 | Base::Number => "integer is overflowed".to_string(),
            _ => format!("{result} out of range"),
        },
    )
}

/// What dialects do differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Manner {
    /// A division by zero is null.
    pub(crate) zero_gives_null: bool,
    /// A quotient of decimals has four digits more than what is divided, and not sixteen at least.
    pub(crate) short_quotients: bool,
}

/// The result of an operation, of the type that was found for it. Nulls give null.
///
/// Errors: `ResultOutOfRange`, `DivisionByZero`.
pub(crate) fn calculate(operation: Arithmetic, result: Type, manner: Manner, a: &Value, b: &Value) -> Result<Value> {
    if let (Value::Int(a), Value::Int(b)) = (a, b)
        && let Some(value) = short_way(operation, *a, *b)
        && (result.base == Base::Int8 || result.base == Base::Integer || result.base == Base::Number)
    {
        return Ok(Value::Int(value));
    }
    if a.is_null() || b.is_null() {
        return Ok(Value::Null);
    }
    let divides = matches!(operation, Arithmetic::Divide | Arithmetic::DivideWhole | Arithmetic::Remainder);
    if divides && is_zero(b) {
        return match manner.zero_gives_null {
            true => Ok(Value::Null),
            false => Err(Error::new(Condition::DivisionByZero, "division by zero")),
        };
    }
    match result.base {
        Base::Double if result.is_float() => {
            of_doubles(operation, a, b).and_then(|value| short(operation, value, a, b))
        }
        Base::Double => of_doubles(operation, a, b),
        Base::Decimal => of_decimals(operation, manner, result.length > 0, a, b),
        // The values say what it is.
        Base::Number | Base::Scalar | Base::Any => match (a, b) {
            (Value::Double(_), _) | (_, Value::Double(_)) => of_doubles(operation, a, b),
            (Value::Decimal(_), _) | (_, Value::Decimal(_)) => of_decimals(operation, manner, false, a, b),
            _ => of_integers(operation, result, a, b),
        },
        _ if operation == Arithmetic::DivideWhole && (a.as_integer().is_none() || b.as_integer().is_none()) => {
            whole_quotient(result, a, b)
        }
        _ => of_integers(operation, result, a, b),
    }
}

/// MySQL's DIV of numbers that are not whole.
fn whole_quotient(result: Type, a: &Value, b: &Value) -> Result<Value> {
    let (Some(a), Some(b)) = (a.as_decimal(), b.as_decimal()) else {
        return Err(Error::new(Condition::TypeMismatch, "numbers are wanted"));
    };
    let whole = from_big(&quotient(&a, &b, 0), 0).and_then(|value| value.to_integer());
    let (least, greatest) = result.range().unwrap_or((i128::from(i64::MIN), i128::from(i64::MAX)));
    whole
        .filter(|whole| (least..=greatest).contains(whole))
        .and_then(Value::integer)
        .ok_or_else(|| out_of_range(result))
}

#[inline]
fn short_way(operation: Arithmetic, a: i64, b: i64) -> Option<i64> {
    match operation {
        Arithmetic::Add => a.checked_add(b),
        Arithmetic::Subtract => a.checked_sub(b),
        Arithmetic::Multiply => a.checked_mul(b),
        _ => None,
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Int(value) => *value == 0,
        Value::Double(value) => *value == 0.0,
        Value::Decimal(value) => value.parts().0 == 0,
        _ => false,
    }
}

fn of_integers(operation: Arithmetic, result: Type, a: &Value, b: &Value) -> Result<Value> {
    let (Some(a), Some(b)) = (a.as_integer(), b.as_integer()) else {
        return Err(Error::new(Condition::TypeMismatch, "whole numbers are wanted"));
    };
    if result.base == Base::Uint8 && operation.is_of_bits() {
        let value = of_unsigned_bits(operation, a as u64, b as u64);
        return Value::integer(i128::from(value)).ok_or_else(|| out_of_range(result));
    }
    let value = match operation {
        Arithmetic::Add => a + b,
        Arithmetic::Subtract => a - b,
        Arithmetic::Multiply => a.checked_mul(b).ok_or_else(|| out_of_range(result))?,
        Arithmetic::Divide | Arithmetic::DivideWhole => a / b,
        Arithmetic::Remainder => a % b,
        Arithmetic::BitAnd => a & b,
        Arithmetic::BitOr => a | b,
        Arithmetic::BitXor => a ^ b,
        Arithmetic::ShiftLeft => shift(a, b),
        Arithmetic::ShiftRight => shift(a, -b),
    };
    let (least, greatest) = result.range().unwrap_or((i128::from(i64::MIN), i128::from(u64::MAX)));
    match (least..=greatest).contains(&value) {
        true => Value::integer(value).ok_or_else(|| out_of_range(result)),
        false => Err(out_of_range(result)),
    }
}

/// MySQL's operations of bits: numbers have no sign there, and a shift by 64 or more leaves nothing.
fn of_unsigned_bits(operation: Arithmetic, a: u64, b: u64) -> u64 {
    let by = u32::try_from(b).unwrap_or(u32::MAX);
    match operation {
        Arithmetic::BitAnd => a & b,
        Arithmetic::BitOr => a | b,
        Arithmetic::BitXor => a ^ b,
        Arithmetic::ShiftLeft => a.checked_shl(by).unwrap_or(0),
        _ => a.checked_shr(by).unwrap_or(0),
    }
}

fn shift(value: i128, by: i128) -> i128 {
    let value = value as i64;
    i128::from(match by {
        64.. => 0,
        0..=63 => value.wrapping_shl(by as u32),
        -63..=-1 => value.wrapping_shr(-by as u32),
        _ if value < 0 => -1,
        _ => 0,
    })
}

fn of_doubles(operation: Arithmetic, a: &Value, b: &Value) -> Result<Value> {
    let (Some(x), Some(y)) = (a.as_double(), b.as_double()) else {
        return Err(Error::new(Condition::TypeMismatch, "numbers are wanted"));
    };
    let value = match operation {
        Arithmetic::Add => x + y,
        Arithmetic::Subtract => x - y,
        Arithmetic::Multiply => x * y,
        Arithmetic::Divide => x / y,
        Arithmetic::DivideWhole => (x / y).trunc(),
        Arithmetic::Remainder => x % y,
        _ => return Err(Error::new(Condition::TypeMismatch, "whole numbers are wanted")),
    };
    match value.is_finite() || !x.is_finite() || !y.is_finite() {
        true => Ok(Value::Double(value)),
        false => Err(Error::new(Condition::ResultOutOfRange, "double precision out of range")),
    }
}

/// What an operation of two doubles of four bytes gives, as one of these.
fn short(operation: Arithmetic, value: Value, a: &Value, b: &Value) -> Result<Value> {
    let Value::Double(double) = value else { return Ok(value) };
    let is_lost = double == 0.0
        && !is_zero(a)
        && match operation {
            Arithmetic::Multiply => !is_zero(b),
            Arithmetic::Divide => b.as_double().is_some_and(f64::is_finite),
            _ => false,
        };
    let rounded = crate::cast::to_float(double).filter(|_| !is_lost);
    rounded.map(Value::Double).ok_or_else(|| out_of_range(Type::FLOAT))
}

/// `keeps_digits`: a short quotient is not rounded to the digits that it shows: what is calculated of it goes on with all that it has.
fn of_decimals(operation: Arithmetic, manner: Manner, keeps_digits: bool, a: &Value, b: &Value) -> Result<Value> {
    let too_large = || Error::new(Condition::ResultOutOfRange, "decimal out of range");
    let (Some(x), Some(y)) = (a.as_decimal(), b.as_decimal()) else {
        return Err(Error::new(Condition::TypeMismatch, "numbers are wanted"));
    };
    let ((x_digits, x_scale), (y_digits, y_scale)) = (x.parts(), y.parts());
    let value = match operation {
        Arithmetic::Add => x.checked_add(y),
        Arithmetic::Subtract => x.checked_sub(y),
        Arithmetic::Multiply => from_big(&(IBig::from(x_digits) * IBig::from(y_digits)), x_scale + y_scale),
        // Nothing has no digits behind the point there, and what is calculated of it has none from it.
        Arithmetic::Divide | Arithmetic::Remainder if manner.short_quotients && keeps_digits && x_digits == 0 => {
            Some(Decimal::from(0i64))
        }
        Arithmetic::Divide if manner.short_quotients && keeps_digits => {
            let scale = scale_in_groups(x_scale, y_scale);
            from_big(&quotient(&x, &y, scale), scale)
        }
        Arithmetic::Divide => {
            let scale = match manner.short_quotients {
                true => x_scale.max(0) + QUOTIENT_DIGITS_MORE,
                false => quotient_scale(&x, &y),
            };
            // One digit more, by which the last one is rounded.
            from_big(&quotient(&x, &y, scale + 1), scale + 1).and_then(|value| rounded_to(value, scale))
        }
        Arithmetic::DivideWhole => from_big(&quotient(&x, &y, 0), 0),
        Arithmetic::Remainder => {
            let scale = x_scale.max(y_scale).max(0);
            let at_scale = |digits: i128, of: i32| IBig::from(digits) * power_of_ten(scale - of);
            from_big(&(at_scale(x_digits, x_scale) % at_scale(y_digits, y_scale)), scale)
        }
        _ => return Err(Error::new(Condition::TypeMismatch, "whole numbers are wanted")),
    };
    value.map(Value::decimal).ok_or_else(too_large)
}

/// Digits behind the point that a quotient has within an expression of MySQL: groups of nine, as many as both sides fill and four digits more need.
fn scale_in_groups(x_scale: i32, y_scale: i32) -> i32 {
    let in_groups = |scale: i32| (scale.max(0) + GROUP_DIGITS - 1) / GROUP_DIGITS * GROUP_DIGITS;
    let (x, y) = (in_groups(x_scale), in_groups(y_scale));
    let more = QUOTIENT_DIGITS_MORE - (x - x_scale.max(0)) - (y - y_scale.max(0));
    in_groups(x + y + more.max(0))
}

/// As many digits behind the point as PostgreSQL gives a quotient: sixteen that count, and no fewer than either side has.
fn quotient_scale(x: &Decimal, y: &Decimal) -> i32 {
    let weight = |value: &Decimal| {
        let (digits, scale) = value.parts();
        if digits == 0 {
            return (0, 0);
        }
        let count = digits.unsigned_abs().checked_ilog10().map_or(0, |log| log as i32 + 1);
        // In groups of four digits, and what the first group is.
        let top = count - scale;
        let group = (top - 1).div_euclid(4);
        let shift = (top - 1).rem_euclid(4) + 1 - count;
        let first = match shift < 0 {
            true => digits.unsigned_abs() / 10u128.pow((-shift) as u32),
            false => digits.unsigned_abs() * 10u128.pow(shift as u32),
        };
        (group, first)
    };
    let ((x_group, x_first), (y_group, y_first)) = (weight(x), weight(y));
    let group = x_group - y_group - i32::from(x_first <= y_first);
    let scale = QUOTIENT_DIGITS_MIN - group * 4;
    scale.max(x.parts().1).max(y.parts().1).max(0).min(DIGITS_MAX as i32)
}

fn power_of_ten(exponent: i32) -> IBig {
    IBig::from(10).pow(usize::try_from(exponent.max(0)).unwrap_or(0))
}

/// x / y with `scale` digits behind the point, cut.
fn quotient(x: &Decimal, y: &Decimal, scale: i32) -> IBig {
    let ((x_digits, x_scale), (y_digits, y_scale)) = (x.parts(), y.parts());
    let shift = scale - x_scale + y_scale;
    match shift >= 0 {
        true => IBig::from(x_digits) * power_of_ten(shift) / IBig::from(y_digits),
        false => IBig::from(x_digits) / (IBig::from(y_digits) * power_of_ten(-shift)),
    }
}

fn from_big(value: &IBig, scale: i32) -> Option<Decimal> {
    let text = value.to_string();
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.as_str()),
    };
    Decimal::rounded(is_negative, digits.as_bytes(), i64::from(scale))
}

/// The decimal with so many digits behind the point, rounded half away from zero. None: it is too large.
pub(crate) fn rounded_to(value: Decimal, scale: i32) -> Option<Decimal> {
    let (digits, has) = value.parts();
    if has == scale {
        return Some(value);
    }
    if has < scale {
        return from_big(&(IBig::from(digits) * power_of_ten(scale - has)), scale)
            .filter(|value| value.parts().1 == scale);
    }
    let unit = power_of_ten(has - scale);
    let digits = IBig::from(digits);
    let half = &unit / IBig::from(2);
    let moved = if digits < IBig::ZERO { digits - half } else { digits + half };
    from_big(&(moved / unit), scale)
}

/// The root of a decimal, with as many digits behind the point. None: it has none.
pub(crate) fn root_of(value: Decimal) -> Option<Decimal> {
    let (digits, scale) = value.parts();
    let digits = u128::try_from(digits).ok()?;
    // One digit more, by which the last one is rounded.
    let shift = usize::try_from(scale + 2).ok()?;
    let whole = dashu_int::UBig::from(digits) * dashu_int::UBig::from(10u8).pow(shift);
    let root = dashu_int::ops::SquareRoot::sqrt(&whole);
    from_big(&IBig::from(root), scale + 1).and_then(|root| rounded_to(root, scale))
}

/// The number with the other sign. Errors: `ResultOutOfRange`.
pub(crate) fn negate(result: Type, value: &Value) -> Result<Value> {
    match value {
        Value::Double(value) => Ok(Value::Double(-value)),
        Value::Decimal(value) => Ok(Value::decimal(value.negated())),
        Value::Null => Ok(Value::Null),
        value => {
            let manner = Manner { zero_gives_null: false, short_quotients: false };
            calculate(Arithmetic::Subtract, result, manner, &Value::Int(0), value)
        }
    }
}
