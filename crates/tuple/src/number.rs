//! Exact comparison of numbers of different kinds.

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

    /// An integer, if the value is one: 1, 1.0 and decimal 1.00 give the same.
    pub(crate) fn to_integer(self) -> Option<i128> {
        match self {
            Number::Integer(value) => Some(value),
            Number::Double(value) if value.fract() == 0.0 && value.abs() < 1e38 => Some(value as i128),
            Number::Double(_) => None,
            Number::Decimal(value) => value.to_integer(),
        }
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
        None => decimal.to_f64().total_cmp(&(integer as f64)),
    }
}

fn compare_decimal_double(decimal: Decimal, double: f64) -> Ordering {
    match Decimal::from_f64(double) {
        Some(other) => decimal.cmp(&other),
        None if double.is_nan() => Ordering::Greater,
        None => compare_doubles(decimal.to_f64(), double),
    }
}

/// Maps doubles to integers of the same order. NaN is lowest, -0 is 0.
pub(crate) fn ordered_bits(value: f64) -> u64 {
    if value.is_nan() {
        return 0;
    }
    let bits = if value == 0.0 { 0 } else { value.to_bits() };
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}
