//! Decimals: up to 38 digits with a scale.
//!
//! A result that has more digits, or more than 38 of them behind the point, is rounded once, half away from zero; one of 10^38 and above is
//! none. So Tarantool has it (decNumber with 38 digits and exponents from -38 to 37), and also that zero has a sign and a scale.
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
    /// The coefficient is 0 and the sign negative.
    is_minus_zero: bool,
}

/// Most digits behind the point of a result.
const SCALE_MAX: i64 = DIGITS_MAX as i64;
/// Least scale of a result: the last digit stands for 10^37 then.
const SCALE_MIN: i64 = 1 - DIGITS_MAX as i64;
/// Scales of values that come from outside. Those of Tarantool lie within -37 and 38.
const FOREIGN_SCALE_MAX: u32 = 1000;

fn power_of_ten(exponent: u32) -> Option<i128> {
    10i128.checked_pow(exponent).filter(|_| exponent <= DIGITS_MAX)
}

fn digit_count(value: i128) -> u32 {
    value.unsigned_abs().checked_ilog10().map_or(1, |log| log + 1)
}

impl Decimal {
    /// A decimal of these parts, if it has no more than 38 digits.
    pub fn new(coefficient: i128, scale: i32) -> Option<Self> {
        (digit_count(coefficient) <= DIGITS_MAX).then_some(Decimal { coefficient, scale, is_minus_zero: false })
    }

    /// As `new`, with a sign that zero keeps.
    pub fn with_sign(is_negative: bool, magnitude: u128, scale: i32) -> Option<Self> {
        let coefficient = i128::try_from(magnitude).ok()?;
        let value = Self::new(if is_negative { -coefficient } else { coefficient }, scale)?;
        Some(Decimal { is_minus_zero: is_negative && coefficient == 0, ..value })
    }

    /// The decimal next to a number of any length: `digits` (`b'0'` to `b'9'`, the first one first) with `scale` of them behind the point.
    /// `None` if it is 10^38 or more.
    pub fn rounded(is_negative: bool, digits: &[u8], scale: i64) -> Option<Self> {
        let digits = &digits[digits.iter().take_while(|digit| **digit == b'0').count()..];
        if digits.is_empty() {
            return Self::with_sign(is_negative, 0, scale.clamp(SCALE_MIN, SCALE_MAX) as i32);
        }
        let count = digits.len() as i64;
        if count - scale > SCALE_MAX {
            return None;
        }
        let dropped = (count - SCALE_MAX).max(scale - SCALE_MAX).max(0);
        let scale = scale - dropped;
        let (kept, rest) = digits.split_at(usize::try_from(count - dropped).unwrap_or(0));
        // Half of the last digit: where more is dropped than there is, the first dropped digit is a zero.
        let rounds_up = dropped <= count && rest.first().is_some_and(|digit| *digit >= b'5');
        let magnitude =
            kept.iter().fold(0u128, |sum, digit| sum * 10 + u128::from(digit - b'0')) + u128::from(rounds_up);
        match Self::with_sign(is_negative, magnitude, scale as i32) {
            Some(value) => Some(value),
            // Nines became one digit more.
            None if scale > SCALE_MIN => Self::with_sign(is_negative, magnitude / 10, scale as i32 - 1)
                .filter(|value| i64::from(digit_count(value.coefficient)) - i64::from(value.scale) <= SCALE_MAX),
            None => None,
        }
        .filter(|value| i64::from(digit_count(value.coefficient)) - i64::from(value.scale) <= SCALE_MAX)
    }

    /// Coefficient and scale.
    pub fn parts(&self) -> (i128, i32) {
        (self.coefficient, self.scale)
    }

    /// True for numbers below zero and for -0.
    pub fn is_negative(&self) -> bool {
        self.coefficient < 0 || self.is_minus_zero
    }

    /// The same number with the other sign; zero loses it.
    pub fn negated(self) -> Self {
        Decimal { coefficient: -self.coefficient, is_minus_zero: false, ..self }
    }

    /// Reads the body of extension type 1.
    pub fn decode(body: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(body);
        let scale = i32::try_from(reader.read_int().ok()?).ok()?;
        let digits = reader.rest();
        let last = *digits.last()?;
        if digits.len() > 20 || scale.unsigned_abs() > FOREIGN_SCALE_MAX {
            return None;
        }
        let mut magnitude = 0u128;
        for (at, &byte) in digits.iter().enumerate() {
            let high = byte >> 4;
            let low = byte & 0x0f;
            if high > 9 || (low > 9) != (at + 1 == digits.len()) {
                return None;
            }
            magnitude = magnitude.checked_mul(10)?.checked_add(u128::from(high))?;
            if at + 1 < digits.len() {
                magnitude = magnitude.checked_mul(10)?.checked_add(u128::from(low))?;
            }
        }
        Decimal::with_sign(matches!(last & 0x0f, 0x0d | 0x0b), magnitude, scale)
    }

    /// Appends the body of extension type 1.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode_int(out, i64::from(self.scale));
        let mut digits = self.coefficient.unsigned_abs().to_string();
        if digits.len().is_multiple_of(2) {
            digits.insert(0, '0');
        }
        let sign = if self.is_negative() { 0x0d } else { 0x0c };
        let mut nibbles = digits.bytes().map(|digit| digit - b'0').chain([sign]);
        while let (Some(high), Some(low)) = (nibbles.next(), nibbles.next()) {
            out.push(high << 4 | low);
        }
    }

    /// From a double, by its first 15 digits, as Tarantool. `None` for infinities, NaN and numbers out of range.
    pub fn from_f64(value: f64) -> Option<Self> {
        if !value.is_finite() {
            return None;
        }
        let text = format!("{:.14e}", value.abs());
        let (mantissa, exponent) = text.split_once('e')?;
        let exponent: i64 = exponent.parse().ok()?;
        let mut digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
        while digits.len() > 1 && digits.last() == Some(&b'0') {
            digits.pop();
        }
        if (0..15).contains(&exponent) {
            // Written without an exponent: zeros before the point are digits.
            digits.resize(digits.len().max(exponent as usize + 1), b'0');
        }
        let scale = digits.len() as i64 - 1 - exponent;
        Self::rounded(value.is_sign_negative(), &digits, scale)
    }

    /// The nearest double.
    pub fn to_f64(&self) -> f64 {
        format!("{}e{}", self.coefficient, -self.scale).parse().unwrap_or(f64::NAN)
    }

    /// The integer with the same value, if there is one within 128 bits.
    pub fn to_integer(&self) -> Option<i128> {
        if self.coefficient == 0 {
            return Some(0);
        }
        let factor = power_of_ten(self.scale.unsigned_abs())?;
        if self.scale <= 0 {
            return self.coefficient.checked_mul(factor);
        }
        (self.coefficient % factor == 0).then(|| self.coefficient / factor)
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

    /// Sum, rounded; `None` if it is too large.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let sum = self.aligned(other).and_then(|(a, b, scale)| Some((a.checked_add(b)?, scale)));
        let Some((sum, scale)) = sum else { return self.add_digits(other) };
        let is_negative = sum < 0 || sum == 0 && self.is_minus_zero && other.is_minus_zero;
        Self::rounded(is_negative, sum.unsigned_abs().to_string().as_bytes(), i64::from(scale))
    }

    /// `checked_add` digit by digit, for numbers so far apart that both together leave 128 bits.
    fn add_digits(self, other: Self) -> Option<Self> {
        let scale = self.scale.max(other.scale);
        let widened = |value: Decimal| {
            let mut digits: Vec<u8> = value.coefficient.unsigned_abs().to_string().bytes().map(|d| d - b'0').collect();
            digits.resize(digits.len() + (scale - value.scale) as usize, 0);
            digits.reverse();
            digits
        };
        let (mut large, mut small) = (widened(self), widened(other));
        let length = large.len().max(small.len()) + 1;
        large.resize(length, 0);
        small.resize(length, 0);
        let mut is_negative = self.is_negative();
        let is_sum = self.is_negative() == other.is_negative();
        if large.iter().rev().lt(small.iter().rev()) {
            std::mem::swap(&mut large, &mut small);
            is_negative = other.is_negative();
        }
        let mut carry = 0;
        for (digit, other) in large.iter_mut().zip(&small) {
            let other = other + carry;
            let value = if is_sum { *digit + other } else { *digit + 10 - other };
            carry = u8::from(if is_sum { value >= 10 } else { value < 10 });
            *digit = value % 10;
        }
        let digits: Vec<u8> = large.iter().rev().map(|digit| digit + b'0').collect();
        Self::rounded(is_negative, &digits, i64::from(scale))
    }

    /// Difference, rounded; `None` if it is too large.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        let negated = Decimal {
            coefficient: -other.coefficient,
            is_minus_zero: other.coefficient == 0 && !other.is_minus_zero,
            ..other
        };
        self.checked_add(negated)
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Self {
        Decimal { coefficient: i128::from(value), scale: 0, is_minus_zero: false }
    }
}

impl From<u64> for Decimal {
    fn from(value: u64) -> Self {
        Decimal { coefficient: i128::from(value), scale: 0, is_minus_zero: false }
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
        // Equal magnitudes: brought to one scale, both have as many digits as the longer of them has.
        let (a, b, _) = self.aligned(*other).expect("both have 38 digits at most then");
        a.cmp(&b)
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
        if self.is_negative() {
            f.write_str("-")?;
        }
        if self.scale <= 0 {
            f.write_str(&digits)?;
            if self.coefficient == 0 {
                return Ok(());
            }
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
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
            None => (text, 0),
        };
        let (is_negative, mantissa) = match mantissa.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = [whole, fraction].concat().into_bytes();
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            return Err(ParseDecimalError);
        }
        Self::rounded(is_negative, &digits, fraction.len() as i64 - exponent).ok_or(ParseDecimalError)
    }
}

/// What is beyond any decimal stays beyond it.
fn parse_exponent(text: &str) -> Result<i64, ParseDecimalError> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ParseDecimalError);
    }
    let magnitude = digits.parse::<u64>().map_or(i64::MAX / 4, |value| value.min(i64::MAX as u64 / 4) as i64);
    Ok(if text.starts_with('-') { -magnitude } else { magnitude })
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

    /// Texts and bytes are those of Tarantool 2.6.
    #[test]
    fn decimals_are_rounded_as_tarantool_rounds_them() {
        for (text, expected) in [
            ("1e-300", "d501260c"),
            ("-1e-300", "d501260d"),
            ("4e-39", "d501260c"),
            ("5e-39", "d501261c"),
            ("9.99e-38", "c7030126010c"),
            ("1e37", "c70301d0db1c"),
            ("-0", "d501000d"),
            ("-0.00", "d501020d"),
            ("1E2", "d501fe1c"),
            ("1.", "d501001c"),
            (".5", "d501015c"),
            ("0e100", "c70301d0db0c"),
            ("12345678901234567890123456789012345678.9", "c7150100012345678901234567890123456789012345679c"),
            ("0.123456789012345678901234567890123456789", "c7150126012345678901234567890123456789012345679c"),
        ] {
            let (mut body, mut out) = (Vec::new(), Vec::new());
            let decimal: Decimal = text.parse().expect(text);
            decimal.encode(&mut body);
            crate::msgpack::encode_ext(&mut out, 1, &body);
            let hex: String = out.iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, expected, "{text}");
            assert_eq!(Decimal::decode(&body).map(|again| again.to_string()), Some(decimal.to_string()));
        }
        for text in
            ["99999999999999999999999999999999999999.5", "1e38", "123e36", "1e", "", ".", "1_0", " 1", "inf", "1e5."]
        {
            assert_eq!(text.parse::<Decimal>(), Err(ParseDecimalError), "{text}");
        }
        for (double, text) in [
            (0.1, "0.1"),
            (1.0 / 3.0, "0.333333333333333"),
            (123_456_789.123_456_79, "123456789.123457"),
            (9_007_199_254_740_993.0, "9007199254740990"),
            (-0.0, "-0"),
            (0.1 + 0.2, "0.3"),
            (1.5e-38, "0.00000000000000000000000000000000000002"),
            (100_000.0, "100000"),
        ] {
            assert_eq!(Decimal::from_f64(double).map(|decimal| decimal.to_string()).as_deref(), Some(text));
        }
        assert_eq!(Decimal::from_f64(1e38).map(|decimal| decimal.to_string()), None);
        assert_eq!(Decimal::from_f64(1e15).map(|decimal| decimal.parts()), Some((1, -15)));
    }

    #[test]
    fn sums_are_rounded_and_keep_their_scale() {
        let decimal = |text: &str| text.parse::<Decimal>().expect("a decimal");
        let nines = "9".repeat(38);
        let sum = |a: &str, b: &str| decimal(a).checked_add(decimal(b)).map(|sum| sum.to_string());
        assert_eq!(sum(&nines, "-0.5").as_deref(), Some(&nines[..]));
        assert_eq!(sum(&nines, "0.5"), None);
        assert_eq!(sum(&nines, "1e-38").as_deref(), Some(&nines[..]));
        assert_eq!(sum(&nines, "-1e-38").as_deref(), Some(&nines[..]));
        assert_eq!(sum("1e37", "1e-38").as_deref(), Some(&format!("1{}", "0".repeat(37))[..]));
        assert_eq!(sum("1.00", "-1").as_deref(), Some("0.00"));
        assert_eq!(sum("-0", "-0").as_deref(), Some("-0"));
        assert_eq!(sum("-0.0", "0").as_deref(), Some("0.0"));
        assert_eq!(decimal("-1").checked_sub(decimal("-1")).map(|d| d.to_string()).as_deref(), Some("0"));
    }
}
