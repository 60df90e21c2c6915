//! Decimals: up to 38 digits with a scale, exact.
//!
//! Encoding (extension type 1, Tarantool): the scale as a msgpack integer, then the digits as packed BCD whose last nibble is the
//! sign (`0x0d` or `0x0b` negative, else positive).

use crate::msgpack::{Reader, encode_int};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// Most digits of a decimal.
pub const DIGITS_MAX: u32 = 38;

/// `coefficient * 10^-scale`, with at most 38 digits.
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    coefficient: i128,
    scale: i32,
}

fn power_of_ten(exponent: u32) -> Option<i128> {
    10i128.checked_pow(exponent).filter(|_| exponent <= DIGITS_MAX)
}

fn digit_count(value: i128) -> u32 {
    value.unsigned_abs().checked_ilog10().map_or(1, |log| log + 1)
}

impl Decimal {
    /// A decimal of these parts, if it has no more than 38 digits.
    pub fn new(coefficient: i128, scale: i32) -> Option<Self> {
        (digit_count(coefficient) <= DIGITS_MAX).then_some(Decimal { coefficient, scale })
    }

    /// Coefficient and scale.
    pub fn parts(&self) -> (i128, i32) {
        (self.coefficient, self.scale)
    }

    /// Reads the body of extension type 1.
    pub fn decode(body: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(body);
        let scale = i32::try_from(reader.read_int().ok()?).ok()?;
        let digits = reader.rest();
        let last = *digits.last()?;
        if digits.len() > 20 || scale.unsigned_abs() > 1000 {
            return None;
        }
        let mut coefficient = 0i128;
        for (at, &byte) in digits.iter().enumerate() {
            let high = byte >> 4;
            let low = byte & 0x0f;
            if high > 9 || (low > 9) != (at + 1 == digits.len()) {
                return None;
            }
            coefficient = coefficient.checked_mul(10)?.checked_add(i128::from(high))?;
            if at + 1 < digits.len() {
                coefficient = coefficient.checked_mul(10)?.checked_add(i128::from(low))?;
            }
        }
        if matches!(last & 0x0f, 0x0d | 0x0b) {
            coefficient = -coefficient;
        }
        Decimal::new(coefficient, scale)
    }

    /// Appends the body of extension type 1.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode_int(out, i64::from(self.scale));
        let mut digits = self.coefficient.unsigned_abs().to_string();
        if digits.len().is_multiple_of(2) {
            digits.insert(0, '0');
        }
        let sign = if self.coefficient < 0 { 0x0d } else { 0x0c };
        let mut nibbles = digits.bytes().map(|digit| digit - b'0').chain([sign]);
        while let (Some(high), Some(low)) = (nibbles.next(), nibbles.next()) {
            out.push(high << 4 | low);
        }
    }

    /// From a double, by its shortest text. `None` for infinities, NaN and numbers out of range.
    pub fn from_f64(value: f64) -> Option<Self> {
        if !value.is_finite() {
            return None;
        }
        format!("{value:e}").parse().ok()
    }

    /// The nearest double.
    pub fn to_f64(&self) -> f64 {
        format!("{}e{}", self.coefficient, -self.scale).parse().unwrap_or(f64::NAN)
    }

    /// The integer with the same value, if there is one within 128 bits.
    pub fn to_integer(&self) -> Option<i128> {
        if self.scale <= 0 {
            return self.coefficient.checked_mul(power_of_ten(self.scale.unsigned_abs())?);
        }
        if self.coefficient == 0 {
            return Some(0);
        }
        let divisor = power_of_ten(self.scale.unsigned_abs())?;
        (self.coefficient % divisor == 0).then(|| self.coefficient / divisor)
    }

    /// The same value without zeros at the end of the fraction.
    pub fn normalized(mut self) -> Self {
        while self.scale > 0 && self.coefficient % 10 == 0 {
            self.coefficient /= 10;
            self.scale -= 1;
        }
        self
    }

    /// The decimal whose scale is the larger of both, if the digits fit.
    fn aligned(self, other: Self) -> Option<(i128, i128, i32)> {
        let scale = self.scale.max(other.scale);
        let widen = |value: Decimal| {
            power_of_ten((scale - value.scale) as u32).and_then(|factor| value.coefficient.checked_mul(factor))
        };
        Some((widen(self)?, widen(other)?, scale))
    }

    /// Drops digits behind the point until at most 38 are left.
    fn fitted(mut coefficient: i128, mut scale: i32) -> Option<Self> {
        while digit_count(coefficient) > DIGITS_MAX && scale > 0 {
            coefficient = (coefficient + 5 * coefficient.signum()) / 10;
            scale -= 1;
        }
        Decimal::new(coefficient, scale)
    }

    /// Sum; `None` if it has too many digits.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let (a, b, scale) = self.aligned(other)?;
        Self::fitted(a.checked_add(b)?, scale)
    }

    /// Difference; `None` if it has too many digits.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.checked_add(Decimal { coefficient: -other.coefficient, scale: other.scale })
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Self {
        Decimal { coefficient: i128::from(value), scale: 0 }
    }
}

impl From<u64> for Decimal {
    fn from(value: u64) -> Self {
        Decimal { coefficient: i128::from(value), scale: 0 }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = self.coefficient.signum().cmp(&other.coefficient.signum());
        if sign.is_ne() || self.coefficient == 0 {
            return sign;
        }
        // Position of the first digit relative to the point.
        let magnitude = |value: &Decimal| i64::from(digit_count(value.coefficient)) - i64::from(value.scale);
        let by_magnitude = magnitude(self).cmp(&magnitude(other));
        if by_magnitude.is_ne() {
            return if self.coefficient > 0 { by_magnitude } else { by_magnitude.reverse() };
        }
        // Equal magnitudes: scales differ by less than 38, but the wider product may still leave 128 bits.
        match self.aligned(*other) {
            Some((a, b, _)) => a.cmp(&b),
            None => self.to_f64().total_cmp(&other.to_f64()),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Decimal {}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.coefficient.unsigned_abs().to_string();
        if self.coefficient < 0 {
            f.write_str("-")?;
        }
        if self.scale <= 0 {
            f.write_str(&digits)?;
            return (self.scale..0).try_for_each(|_| f.write_str("0"));
        }
        let scale = self.scale as usize;
        if digits.len() > scale {
            write!(f, "{}.{}", &digits[..digits.len() - scale], &digits[digits.len() - scale..])
        } else {
            write!(f, "0.{}{digits}", "0".repeat(scale - digits.len()))
        }
    }
}

/// The text is no decimal, or one with too many digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a decimal of at most 38 digits")]
pub struct ParseDecimalError;

impl FromStr for Decimal {
    type Err = ParseDecimalError;

    fn from_str(text: &str) -> Result<Self, ParseDecimalError> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().map_err(|_| ParseDecimalError)?),
            None => (text, 0),
        };
        let (sign, mantissa) = match mantissa.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, mantissa.strip_prefix('+').unwrap_or(mantissa)),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.is_empty() && fraction.is_empty() || exponent.abs() > 1000 {
            return Err(ParseDecimalError);
        }
        let mut coefficient = 0i128;
        let mut scale = fraction.len() as i32 - exponent;
        for digit in whole.bytes().chain(fraction.bytes()) {
            if !digit.is_ascii_digit() {
                return Err(ParseDecimalError);
            }
            coefficient = coefficient
                .checked_mul(10)
                .and_then(|value| value.checked_add(i128::from(digit - b'0')))
                .ok_or(ParseDecimalError)?;
        }
        if scale < 0 {
            let factor = power_of_ten(scale.unsigned_abs()).ok_or(ParseDecimalError)?;
            coefficient = coefficient.checked_mul(factor).ok_or(ParseDecimalError)?;
            scale = 0;
        }
        Self::fitted(sign * coefficient, scale).ok_or(ParseDecimalError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_encoding_of_a_negative_decimal() {
        let decimal: Decimal = "-12.345".parse().expect("a decimal");
        let mut body = Vec::new();
        decimal.encode(&mut body);
        assert_eq!(body, [0x03, 0x12, 0x34, 0x5d]);
        assert_eq!(Decimal::decode(&body).map(|d| d.to_string()).as_deref(), Some("-12.345"));
    }

    #[test]
    fn decimals_compare_by_value() {
        let decimal = |text: &str| text.parse::<Decimal>().expect("a decimal");
        assert_eq!(decimal("1.50"), decimal("1.5"));
        assert!(decimal("-2") < decimal("-1.999"));
        assert!(decimal("1e30") > decimal("0.00000001"));
        assert_eq!(decimal("0.1").checked_add(decimal("0.2")), Some(decimal("0.3")));
    }
}
