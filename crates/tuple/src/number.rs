//! Comparison of numbers of different kinds, in one total order.
//!
//! Every number stands for one decimal number, and those are compared exactly:
//!
//! * integers and decimals for themselves;
//! * doubles and floats that are whole, up to 2^64, for themselves, since integers lie between them;
//! * other doubles for the shortest text that reads back as the same double: 0.1 is decimal 0.1, and not the number behind its bits, which
//!   has 55 digits. (Tarantool takes 15 digits, so that doubles which differ behind them equal the same decimal.)
//!
//! What a double stands for lies nearer to it than to any other, so larger doubles stand for larger numbers, and rounding to doubles keeps
//! the order: hints, hashes and [`crate::KeyDef::ordered_of_row`] rely on both. NaN is below everything and equal to itself, -0 equals 0.

use crate::decimal::Decimal;
use crate::msgpack::{EXT_DECIMAL, Kind, Reader};
use std::cmp::Ordering;

#[derive(Clone, Copy)]
pub(crate) enum Number {
    Integer(i128),
    Double(f64),
    Decimal(Decimal),
}

impl Number {
    /// Reads a number; `None` if the value is of another kind.
    pub(crate) fn read(value: &[u8]) -> Option<Number> {
        let mut reader = Reader::new(value);
        match reader.kind().ok()? {
            Kind::Uint | Kind::Int => reader.read_i128().ok().map(Number::Integer),
            Kind::Float | Kind::Double => reader.read_double().ok().map(Number::Double),
            Kind::Ext => match reader.read_ext().ok()? {
                (EXT_DECIMAL, body) => Decimal::decode(body).map(Number::Decimal),
                _ => None,
            },
            _ => None,
        }
    }

    pub(crate) fn to_f64(self) -> f64 {
        match self {
            Number::Integer(value) => value as f64,
            Number::Double(value) => value,
            Number::Decimal(value) => value.to_f64(),
        }
    }

    /// An integer, if the value is one of up to 2^64: 1, 1.0 and decimal 1.00 give the same.
    pub(crate) fn to_integer(self) -> Option<i128> {
        let integer = match self {
            Number::Integer(value) => Some(value),
            Number::Double(value) if stands_for_itself(value) => Some(value as i128),
            Number::Double(_) => None,
            Number::Decimal(value) => value.to_integer(),
        };
        integer.filter(|integer| integer.unsigned_abs() <= WHOLE_DOUBLE_MAX as u128)
    }

    pub(crate) fn compare(self, other: Number) -> Ordering {
        match (self, other) {
            (Number::Integer(a), Number::Integer(b)) => a.cmp(&b),
            (Number::Double(a), Number::Double(b)) => compare_doubles(a, b),
            (Number::Integer(a), Number::Double(b)) => compare_mixed(a, b),
            (Number::Double(a), Number::Integer(b)) => compare_mixed(b, a).reverse(),
            (Number::Decimal(a), Number::Decimal(b)) => a.cmp(&b),
            (Number::Decimal(a), Number::Integer(b)) => compare_decimal(a, b),
            (Number::Integer(a), Number::Decimal(b)) => compare_decimal(b, a).reverse(),
            (Number::Decimal(a), Number::Double(b)) => compare_decimal_double(a, b),
            (Number::Double(a), Number::Decimal(b)) => compare_decimal_double(b, a).reverse(),
        }
    }
}

/// NaN is below everything and equal to itself; -0 equals 0.
fn compare_doubles(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

fn compare_mixed(integer: i128, double: f64) -> Ordering {
    if double.is_nan() {
        return Ordering::Greater;
    }
    if double.abs() >= 1e30 {
        return if double > 0.0 { Ordering::Less } else { Ordering::Greater };
    }
    let whole = double.trunc();
    integer.cmp(&(whole as i128)).then_with(|| compare_doubles(0.0, double - whole))
}

fn compare_decimal(decimal: Decimal, integer: i128) -> Ordering {
    match Decimal::new(integer, 0) {
        Some(other) => decimal.cmp(&other),
        // No integer of msgpack has so many digits.
        None => 0.cmp(&integer),
    }
}

fn compare_decimal_double(decimal: Decimal, double: f64) -> Ordering {
    // Rounding keeps the order: only a tie needs all digits.
    let by_rounded = compare_doubles(decimal.to_f64(), double);
    if by_rounded.is_ne() {
        return by_rounded;
    }
    match stands_for(double) {
        Some((coefficient, scale)) => {
            let coefficient = coefficient as i128;
            let coefficient = if double < 0.0 { -coefficient } else { coefficient };
            Decimal::new(coefficient, scale).map_or(Ordering::Equal, |other| decimal.cmp(&other))
        }
        // Beyond all doubles, and still below infinity.
        None => 0.0f64.total_cmp(&double),
    }
}

/// Whole doubles up to here stand for themselves.
const WHOLE_DOUBLE_MAX: f64 = 18_446_744_073_709_551_616.0;

fn stands_for_itself(value: f64) -> bool {
    value.fract() == 0.0 && value.abs() <= WHOLE_DOUBLE_MAX
}

/// Coefficient and scale of the decimal number that the magnitude of a double stands for. `None` for infinities and NaN.
pub(crate) fn stands_for(value: f64) -> Option<(u128, i32)> {
    if !value.is_finite() {
        return None;
    }
    let value = value.abs();
    if stands_for_itself(value) {
        return Some((value as u128, 0));
    }
    // At most 17 digits.
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let fraction = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let digits = mantissa.bytes().filter(u8::is_ascii_digit);
    let coefficient = digits.fold(0, |sum, digit| sum * 10 + u128::from(digit - b'0'));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    Some((coefficient, fraction as i32 - exponent))
}

/// Maps doubles to integers of the same order. NaN is lowest, -0 is 0.
pub(crate) fn ordered_bits(value: f64) -> u64 {
    if value.is_nan() {
        return 0;
    }
    let bits = if value == 0.0 { 0 } else { value.to_bits() };
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}
