//! Ranges of PostgreSQL: `int4range`, `int8range`, `numrange`, `daterange`, `tsrange`, `tstzrange`.
//!
//! A row keeps them as bytes whose order is PostgreSQL's order of the values, as it keeps [addresses](crate::net):
//!
//! ```text
//! empty:  0
//! other:  1 | lower: 0 where it has no end, or 1, the key, and 0 if the end is within, 1 if not
//!           | upper: 1 where it has no end, or 0, the key, and 1 if the end is within, 0 if not
//! ```
//!
//! The key of an end has a fixed length and the order of the ends: whole numbers in 8 bytes with the sign turned; moments as seconds so and nanoseconds in 4
//! bytes; decimals as sign, exponent and 38 digits, so that what ends they have is kept without the zeros behind them.
//!
//! Sources: PostgreSQL's documentation, chapters 8.17 and 9.20, and what PostgreSQL 15 answers.

pub(crate) mod functions;
mod text;

pub(crate) use text::{display, parse};

use crate::error::{Condition, Error, Result};
use crate::types::{Base, Type};
use crate::value::Value;
use std::cmp::Ordering;
use std::rc::Rc;
use tuple::datetime::Datetime;
use tuple::decimal::{DIGITS_MAX, Decimal};

/// The sign of a whole number, turned.
const SIGN: u64 = 1 << 63;

impl Type {
    /// The type of a range's ends. None: it is no range.
    pub fn of_ends(self) -> Option<Type> {
        Some(Type::of(match self.base {
            Base::Int4Range => Base::Int4,
            Base::Int8Range => Base::Int8,
            Base::NumRange => Base::Decimal,
            Base::DateRange => Base::Date,
            Base::TsRange => Base::Timestamp,
            Base::TstzRange => Base::TimestampTz,
            _ => return None,
        }))
    }

    /// True for ranges, which are kept as bytes and shown as text.
    pub fn is_range(self) -> bool {
        self.of_ends().is_some()
    }
}

/// An end of a range.
#[derive(Clone, Debug)]
pub(crate) struct End {
    /// None: there is no end.
    pub(crate) value: Option<Value>,
    /// Whether the range has it.
    pub(crate) is_in: bool,
}

/// A range.
#[derive(Clone, Debug)]
pub(crate) enum Range {
    /// Without any value.
    Empty,
    /// All from one end to the other.
    Of(End, End),
}

fn invalid(what: &str) -> Error {
    Error::new(Condition::DataException, what)
}

/// Where two lower ends stand.
fn order_lower(a: &End, b: &End) -> Ordering {
    match (&a.value, &b.value) {
        (None, None) => Ordering::Equal,
        (None, _) => Ordering::Less,
        (_, None) => Ordering::Greater,
        (Some(x), Some(y)) => x.order(y).then(b.is_in.cmp(&a.is_in)),
    }
}

/// Where two upper ends stand.
fn order_upper(a: &End, b: &End) -> Ordering {
    match (&a.value, &b.value) {
        (None, None) => Ordering::Equal,
        (None, _) => Ordering::Greater,
        (_, None) => Ordering::Less,
        (Some(x), Some(y)) => x.order(y).then(a.is_in.cmp(&b.is_in)),
    }
}

/// True if nothing lies within an upper and a lower end.
fn is_before(upper: &End, lower: &End) -> bool {
    match (&upper.value, &lower.value) {
        (Some(upper_value), Some(lower_value)) => match upper_value.order(lower_value) {
            Ordering::Less => true,
            Ordering::Equal => !(upper.is_in && lower.is_in),
            Ordering::Greater => false,
        },
        _ => false,
    }
}

/// True if a range that ends so goes on as one that begins so, without a gap and without a value in both.
fn touches(upper: &End, lower: &End) -> bool {
    match (&upper.value, &lower.value) {
        (Some(a), Some(b)) => a.order(b) == Ordering::Equal && upper.is_in != lower.is_in,
        _ => false,
    }
}

fn lesser(a: &End, b: &End) -> End {
    if order_lower(a, b) == Ordering::Greater { b.clone() } else { a.clone() }
}

fn greater(a: &End, b: &End) -> End {
    if order_upper(a, b) == Ordering::Less { b.clone() } else { a.clone() }
}

/// The end on the other side of it.
fn turned(end: &End) -> End {
    End { value: end.value.clone(), is_in: !end.is_in }
}

impl Range {
    /// The range of two ends, as its type has it: ranges of whole numbers and days begin with a value within and end with one that is not. Errors: the lower
    /// end is the greater one; there is no next value.
    pub(crate) fn of_ends(lower: End, upper: End, ty: Type) -> Result<Range> {
        let open = |end: End| End { is_in: end.is_in && end.value.is_some(), ..end };
        let (mut lower, mut upper) = (open(lower), open(upper));
        if let (Some(a), Some(b)) = (&lower.value, &upper.value) {
            match a.order(b) {
                Ordering::Greater => {
                    return Err(invalid("range lower bound must be less than or equal to range upper bound"));
                }
                Ordering::Equal if !(lower.is_in && upper.is_in) => return Ok(Range::Empty),
                _ => {}
            }
        }
        if matches!(ty.base, Base::Int4Range | Base::Int8Range | Base::DateRange) {
            if let Some(value) = lower.value.as_ref().filter(|_| !lower.is_in)
                && let Some(value) = next(value, ty)?
            {
                lower = End { value: Some(value), is_in: true };
            }
            if let Some(value) = upper.value.as_ref().filter(|_| upper.is_in)
                && let Some(value) = next(value, ty)?
            {
                upper = End { value: Some(value), is_in: false };
            }
            if let (Some(a), Some(b)) = (&lower.value, &upper.value)
                && a.order(b) != Ordering::Less
                && !(lower.is_in && upper.is_in)
            {
                return Ok(Range::Empty);
            }
        }
        Ok(Range::Of(lower, upper))
    }

    /// The value that a row keeps.
    pub(crate) fn value(&self) -> Value {
        let Range::Of(lower, upper) = self else { return Value::Bytes([0][..].into()) };
        let mut out = vec![1];
        match &lower.value {
            None => out.push(0),
            Some(value) => {
                out.push(1);
                put_key(&mut out, value);
                out.push(u8::from(!lower.is_in));
            }
        }
        match &upper.value {
            None => out.push(1),
            Some(value) => {
                out.push(0);
                put_key(&mut out, value);
                out.push(u8::from(upper.is_in));
            }
        }
        Value::Bytes(out.into())
    }

    /// The one that a row keeps as these bytes. None: it is none of this type.
    pub(crate) fn of_bytes(bytes: &[u8], ty: Type) -> Option<Range> {
        let ends = ty.of_ends()?;
        let rest = match bytes {
            [0] => return Some(Range::Empty),
            [1, rest @ ..] => rest,
            _ => return None,
        };
        let (has_lower, rest) = rest.split_first()?;
        let (lower, rest) = take_end(rest, *has_lower == 1, ends)?;
        let (has_no_upper, rest) = rest.split_first()?;
        let (upper, rest) = take_end(rest, *has_no_upper == 0, ends)?;
        // A flag that is set stands for the later one of two ends.
        let lower = End { is_in: lower.value.is_some() && !lower.is_in, ..lower };
        let is_plain = rest.is_empty() && *has_lower < 2 && *has_no_upper < 2;
        let found = Range::of_ends(lower, upper, ty).ok().filter(|_| is_plain)?;
        // Two forms of one value would be two keys of an index.
        matches!(found.value(), Value::Bytes(again) if *again == *bytes).then_some(found)
    }

    /// The one of a value.
    pub(crate) fn of(value: &Value, ty: Type) -> Option<Range> {
        match value {
            Value::Bytes(bytes) => Range::of_bytes(bytes, ty),
            _ => None,
        }
    }

    fn contains(&self, other: &Range) -> bool {
        match (self, other) {
            (_, Range::Empty) => true,
            (Range::Empty, _) => false,
            (Range::Of(a, b), Range::Of(c, d)) => {
                order_lower(a, c) != Ordering::Greater && order_upper(b, d) != Ordering::Less
            }
        }
    }

    fn overlaps(&self, other: &Range) -> bool {
        match (self, other) {
            (Range::Of(a, b), Range::Of(c, d)) => !is_before(b, c) && !is_before(d, a),
            _ => false,
        }
    }

    fn is_before(&self, other: &Range) -> bool {
        matches!((self, other), (Range::Of(_, upper), Range::Of(lower, _)) if is_before(upper, lower))
    }

    fn ends_no_later(&self, other: &Range) -> bool {
        matches!((self, other), (Range::Of(_, a), Range::Of(_, b)) if order_upper(a, b) != Ordering::Greater)
    }

    fn begins_no_earlier(&self, other: &Range) -> bool {
        matches!((self, other), (Range::Of(a, _), Range::Of(b, _)) if order_lower(a, b) != Ordering::Less)
    }

    fn touches(&self, other: &Range) -> bool {
        match (self, other) {
            (Range::Of(a, b), Range::Of(c, d)) => touches(b, c) || touches(d, a),
            _ => false,
        }
    }

    /// All from the first value of both to the last. Errors: there is a gap.
    fn joined(&self, other: &Range, may_have_gap: bool) -> Result<Range> {
        match (self, other) {
            (Range::Empty, range) | (range, Range::Empty) => Ok(range.clone()),
            (Range::Of(a, b), Range::Of(c, d)) => match may_have_gap || self.overlaps(other) || self.touches(other) {
                true => Ok(Range::Of(lesser(a, c), greater(b, d))),
                false => Err(invalid("result of range union would not be contiguous")),
            },
        }
    }

    fn shared(&self, other: &Range) -> Range {
        match (self, other) {
            (Range::Of(a, b), Range::Of(c, d)) if self.overlaps(other) => {
                let lower = if order_lower(a, c) == Ordering::Less { c } else { a };
                let upper = if order_upper(b, d) == Ordering::Greater { d } else { b };
                Range::Of(lower.clone(), upper.clone())
            }
            _ => Range::Empty,
        }
    }

    /// What is in this one only. Errors: these are two ranges.
    fn without(&self, other: &Range, ty: Type) -> Result<Range> {
        let (Range::Of(a, b), Range::Of(c, d)) = (self, other) else { return Ok(self.clone()) };
        if !self.overlaps(other) {
            return Ok(self.clone());
        }
        match (order_lower(a, c) == Ordering::Less, order_upper(b, d) == Ordering::Greater) {
            (true, true) => Err(invalid("result of range difference would not be contiguous")),
            (true, false) => Range::of_ends(a.clone(), turned(c), ty),
            (false, true) => Range::of_ends(turned(d), b.clone(), ty),
            (false, false) => Ok(Range::Empty),
        }
    }
}

/// The whole number or the day behind one. None: it stays as it is. Errors: there is none.
fn next(value: &Value, ty: Type) -> Result<Option<Value>> {
    let out_of_range = |what: &str| Error::new(Condition::NumericOutOfRange, format!("{what} out of range"));
    match (value, ty.base) {
        (Value::Int(value), Base::Int4Range) => {
            let next = i32::try_from(value + 1).map_err(|_| out_of_range("integer"))?;
            Ok(Some(Value::Int(i64::from(next))))
        }
        (Value::Int(value), _) => {
            value.checked_add(1).map(|next| Some(Value::Int(next))).ok_or_else(|| out_of_range("bigint"))
        }
        (Value::Datetime(day), _) if crate::moments::endless_name(day).is_some() => Ok(None),
        (Value::Datetime(day), _) => {
            Ok(Some(Value::Datetime(Rc::new(Datetime { seconds: day.seconds.saturating_add(86_400), ..**day }))))
        }
        _ => Ok(None),
    }
}

fn put_key(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Datetime(moment) => {
            out.extend_from_slice(&(moment.seconds as u64 ^ SIGN).to_be_bytes());
            out.extend_from_slice(&(moment.nanoseconds.max(0) as u32).to_be_bytes());
        }
        Value::Decimal(decimal) => put_decimal(out, decimal),
        value => {
            let number = value.as_integer().and_then(|value| i64::try_from(value).ok()).unwrap_or(0);
            out.extend_from_slice(&(number as u64 ^ SIGN).to_be_bytes());
        }
    }
}

/// Sign, exponent, digits; those of a number below zero turned, so that the greater one is the lesser.
fn put_decimal(out: &mut Vec<u8>, decimal: &Decimal) {
    let (coefficient, scale) = decimal.parts();
    let magnitude = coefficient.unsigned_abs();
    let Some(last) = magnitude.checked_ilog10() else {
        out.push(1);
        out.extend_from_slice(&[0; 18]);
        return;
    };
    let digits = last + 1;
    let exponent = (digits as i32 - scale + (1 << 15)) as u16;
    let mantissa = magnitude * 10u128.pow(DIGITS_MAX - digits);
    let flip = |byte: u8| if coefficient < 0 { !byte } else { byte };
    out.push(if coefficient < 0 { 0 } else { 2 });
    out.extend(exponent.to_be_bytes().map(flip));
    out.extend(mantissa.to_be_bytes().map(flip));
}

fn read_decimal(bytes: &[u8]) -> Option<Decimal> {
    let (sign, rest) = bytes.split_first()?;
    let is_negative = match sign {
        0 => true,
        1 => return rest.iter().all(|byte| *byte == 0).then(|| Decimal::from(0i64)),
        2 => false,
        _ => return None,
    };
    let flip = |byte: &u8| u128::from(if is_negative { !byte } else { *byte });
    let exponent = rest.get(..2)?.iter().fold(0, |number, byte| number << 8 | flip(byte)) as i32 - (1 << 15);
    let mut mantissa = rest.get(2..18)?.iter().fold(0u128, |number, byte| number << 8 | flip(byte));
    let mut scale = DIGITS_MAX as i32 - exponent;
    if mantissa >= 10u128.pow(DIGITS_MAX) {
        return None;
    }
    while mantissa > 0 && mantissa % 10 == 0 && scale > 0 {
        mantissa /= 10;
        scale -= 1;
    }
    Decimal::with_sign(is_negative, mantissa, scale)
}

/// An end, whose flag is as it is written, and what is behind it.
fn take_end(rest: &[u8], is_there: bool, ty: Type) -> Option<(End, &[u8])> {
    if !is_there {
        return Some((End { value: None, is_in: false }, rest));
    }
    let size = match ty.base {
        Base::Int4 | Base::Int8 => 8,
        Base::Decimal => 19,
        _ => 12,
    };
    let (key, rest) = rest.split_at_checked(size)?;
    let (flag, rest) = rest.split_first().filter(|(flag, _)| **flag < 2)?;
    let whole = |bytes: &[u8]| bytes.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
    let value = match ty.base {
        Base::Int4 | Base::Int8 => Value::Int((whole(key) ^ SIGN) as i64),
        Base::Decimal => Value::decimal(read_decimal(key)?),
        _ => {
            let (seconds, nanoseconds) = key.split_at_checked(8)?;
            let seconds = (whole(seconds) ^ SIGN) as i64;
            let nanoseconds = i32::try_from(whole(nanoseconds)).ok().filter(|nanos| *nanos < 1_000_000_000)?;
            let moment = Datetime { seconds, nanoseconds, ..Datetime::default() };
            Value::Datetime(Rc::new(Some(moment).filter(Datetime::is_good)?))
        }
    };
    Some((End { value: Some(value), is_in: *flag == 1 }, rest))
}

/// The flags that a range has on PostgreSQL's wire, and those ends of it that there are. None: it is no range.
pub fn range_parts(value: &Value, ty: Type) -> Option<(u8, Vec<Value>)> {
    Some(match Range::of(value, ty)? {
        Range::Empty => (1, Vec::new()),
        Range::Of(lower, upper) => {
            let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
            let flags = flag(lower.is_in, 2)
                | flag(upper.is_in, 4)
                | flag(lower.value.is_none(), 8)
                | flag(upper.value.is_none(), 16);
            (flags, [lower.value, upper.value].into_iter().flatten().collect())
        }
    })
}

/// The range of such flags and ends. Errors: its lower end is the greater one.
pub fn range_of_parts(flags: u8, ends: Vec<Value>, ty: Type) -> Result<Value> {
    if flags & 1 != 0 {
        return Ok(Range::Empty.value());
    }
    let mut ends = ends.into_iter();
    let lower = if flags & 8 != 0 { None } else { ends.next() };
    let upper = if flags & 16 != 0 { None } else { ends.next() };
    let (lower, upper) = (End { value: lower, is_in: flags & 2 != 0 }, End { value: upper, is_in: flags & 4 != 0 });
    Ok(Range::of_ends(lower, upper, ty)?.value())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use proptest::prelude::*;

    const TYPES: [Base; 6] =
        [Base::Int4Range, Base::Int8Range, Base::NumRange, Base::DateRange, Base::TsRange, Base::TstzRange];

    fn end(number: Option<i32>, is_in: bool, scale: u8, ty: Type) -> End {
        let value = number.map(|number| match ty.of_ends().unwrap().base {
            Base::Int4 | Base::Int8 => Value::Int(i64::from(number)),
            Base::Decimal => Value::decimal(Decimal::new(i128::from(number), i32::from(scale % 12)).unwrap()),
            Base::Date => {
                Value::Datetime(Rc::new(Datetime { seconds: i64::from(number / 512) * 86_400, ..Datetime::default() }))
            }
            _ => Value::Datetime(Rc::new(Datetime {
                seconds: i64::from(number / 4),
                nanoseconds: i32::from(scale) * 1000,
                ..Datetime::default()
            })),
        });
        End { value, is_in }
    }

    type Parts = (Option<i32>, bool, u8, Option<i32>, bool, u8);

    fn few() -> impl Strategy<Value = Option<i32>> {
        prop_oneof![Just(None), (-9i32..9).prop_map(Some), (-1_000_000_000i32..1_000_000_000).prop_map(Some)]
    }

    fn any_parts() -> impl Strategy<Value = Parts> {
        (few(), any::<bool>(), any::<u8>(), few(), any::<bool>(), any::<u8>())
    }

    fn range_of(parts: Parts, ty: Type) -> Range {
        let (a, is_a_in, x, b, is_b_in, y) = parts;
        Range::of_ends(end(a, is_a_in, x, ty), end(b, is_b_in, y, ty), ty).unwrap_or(Range::Empty)
    }

    proptest! {
        #[test]
        fn bytes_are_in_the_order_of_the_values(a in any_parts(), b in any_parts(), at in 0usize..6) {
            let ty = Type::of(TYPES[at]);
            let (a, b) = (range_of(a, ty), range_of(b, ty));
            let wanted = match (&a, &b) {
                (Range::Empty, Range::Empty) => Ordering::Equal,
                (Range::Empty, _) => Ordering::Less,
                (_, Range::Empty) => Ordering::Greater,
                (Range::Of(a, b), Range::Of(c, d)) => order_lower(a, c).then(order_upper(b, d)),
            };
            prop_assert_eq!(a.value().order(&b.value()), wanted);
        }

        #[test]
        fn a_value_is_read_as_it_is_kept_shown_and_sent(parts in any_parts(), at in 0usize..6) {
            let ty = Type::of(TYPES[at]);
            let value = range_of(parts, ty).value();
            let Value::Bytes(bytes) = &value else { panic!("bytes") };
            let shown = display(bytes, ty, None).unwrap();
            prop_assert_eq!(parse(&shown, ty, None).unwrap().order(&value), Ordering::Equal, "{}", shown);
            let (flags, ends) = range_parts(&value, ty).unwrap();
            prop_assert_eq!(range_of_parts(flags, ends, ty).unwrap().order(&value), Ordering::Equal, "{}", shown);
        }

        #[test]
        fn bytes_that_are_no_value_are_none(bytes in proptest::collection::vec(any::<u8>(), 0..50), text in "[\\[(\"\\\\,0-9 \\])a]{0,9}") {
            for ty in TYPES.map(Type::of) {
                if let Some(found) = Range::of_bytes(&bytes, ty) {
                    prop_assert_eq!(found.value().order(&Value::Bytes(bytes.clone().into())), Ordering::Equal);
                }
                let _ = parse(&text, ty, None);
            }
        }
    }
}
