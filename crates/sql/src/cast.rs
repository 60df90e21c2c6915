//! Values of one type as values of another: CAST, and what happens on the way into a column.

use crate::arithmetic::rounded_to;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::moments;
use crate::types::{Base, Type};
use crate::value::Value;
use std::rc::Rc;
use tuple::decimal::{DIGITS_MAX, Decimal};

/// How much is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strictness {
    /// CAST: text is cut to its length.
    Explicit,
    /// Into a column: text that is too long is refused.
    Assignment,
    /// To be compared with a number: text that is none stays text.
    Comparison,
}

/// The value as one of a type. Errors: it cannot be one.
pub(crate) fn cast(dialect: Dialect, value: Value, to: Type, strictness: Strictness) -> Result<Value> {
    let is_bits = to.base == Base::Uint8 && to.length > 0;
    let value = match (to.base, value) {
        (_, Value::Null) => return Ok(Value::Null),
        // Bytes are read as text; a column of bits takes them as they are.
        (_, Value::Bytes(bytes))
            if dialect == Dialect::Mysql && (to.is_number() && !is_bits || to.is_moment() || to.base == Base::Bool) =>
        {
            return cast(dialect, Value::text(String::from_utf8_lossy(&bytes)), to, strictness);
        }
        (Base::Unknown | Base::Any, value) => return Ok(value),
        // Which number a text stands for, is looked up where the type is known by more than its number.
        (Base::Enum, value) => return Ok(value),
        (Base::Scalar, value @ Value::Document(_)) => return Err(mismatch(dialect, &value, to)),
        (Base::Scalar, value) => return Ok(value),
        (Base::Bool, value) => to_bool(dialect, value)?,
        (Base::Number, value) => to_number(dialect, value, to, strictness)?,
        (Base::Double, value) => to_double(dialect, value, to, strictness)?,
        (Base::Decimal, value) => to_decimal(dialect, value, to, strictness)?,
        (Base::Text, value) => return to_text(dialect, value, to, strictness),
        (Base::Bytes, value) => to_bytes(dialect, value, to)?,
        (Base::Uuid, value) => to_uuid(dialect, value, to)?,
        (Base::Date | Base::Timestamp | Base::TimestampTz, value) => to_moment(dialect, value, to)?,
        (Base::Time, value) => to_time(dialect, value, to, strictness)?,
        (Base::TimeTz, Value::Text(text)) => crate::clock::parse_zoned(&text, None, 0, to)?,
        (Base::TimeTz, Value::Datetime(moment)) => crate::clock::rounded_zoned(*moment, to),
        (Base::Interval, Value::Text(text)) => crate::spans::typed(&crate::spans::parse_typed(&text, to)?, to),
        (Base::Interval, Value::Interval(interval)) if to != Type::of(Base::Interval) => {
            crate::spans::typed(&interval, to)
        }
        (Base::Interval, value @ Value::Interval(_)) => value,
        (Base::Inet | Base::Cidr | Base::Macaddr | Base::Macaddr8, value) => to_net(dialect, value, to)?,
        (_, Value::Text(text)) if to.is_range() => crate::range::parse(&text, to, None)?,
        (_, Value::Bytes(bytes)) if to.is_range() && crate::range::display(&bytes, to, None).is_some() => {
            Value::Bytes(bytes)
        }
        (Base::Json, Value::Text(text)) => to_json(dialect, &text, to)?,
        (Base::Json, value) => Value::text(display(dialect, &value)),
        (Base::Array, value @ Value::Document(_)) if to.element().base != Base::Any => {
            cast_elements(dialect, &value, to.element())?
        }
        (Base::Array | Base::Map, value @ Value::Document(_)) => value,
        (Base::Array, Value::Text(text)) if dialect == Dialect::Postgres => {
            crate::array::parse_array(&text, to.element())?
        }
        (_, value) if to.is_integer() => to_integer(dialect, value, to, strictness)?,
        (_, value) => return Err(mismatch(dialect, &value, to)),
    };
    Ok(value)
}

/// The elements of an array, each as a value of a type.
fn cast_elements(dialect: Dialect, array: &Value, to: Type) -> Result<Value> {
    let mut all = Vec::new();
    for element in crate::array::elements(array) {
        all.push(match element {
            Value::Document(_) if to.base != Base::Map => cast_elements(dialect, &element, to)?,
            element => cast(dialect, element, to, Strictness::Explicit)?,
        });
    }
    let mut out = Vec::new();
    crate::scan::encode_row(&all, &mut out);
    Ok(Value::Document(out.into()))
}

fn mismatch(dialect: Dialect, value: &Value, to: Type) -> Error {
    let message = match dialect {
        Dialect::Tarantool => {
            let name = if to.base == Base::Number { "numeric".to_string() } else { to.name(dialect) };
            format!("Type mismatch: can not convert {} to {name}", display(dialect, value))
        }
        _ => format!("cannot convert {} to {}", display(dialect, value), to.name(dialect)),
    };
    Error::new(Condition::TypeMismatch, message)
}

fn invalid(dialect: Dialect, text: &str, to: Type) -> Error {
    match dialect {
        Dialect::Tarantool => mismatch(dialect, &Value::text(text), to),
        _ => {
            let message = format!("invalid input syntax for type {}: \"{text}\"", to.name(dialect));
            Error::new(Condition::InvalidText, message)
        }
    }
}

fn too_large(dialect: Dialect, value: &Value, to: Type) -> Error {
    match dialect {
        Dialect::Tarantool => mismatch(dialect, value, to),
        _ => Error::new(Condition::NumericOutOfRange, format!("{} out of range", to.name(dialect))),
    }
}

fn to_bool(dialect: Dialect, value: Value) -> Result<Value> {
    Ok(Value::Bool(match &value {
        Value::Bool(value) => *value,
        Value::Int(value) => *value != 0,
        Value::Double(value) if dialect != Dialect::Postgres => *value != 0.0,
        Value::Text(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" => true,
            "false" => false,
            "t" | "yes" | "y" | "on" | "1" if dialect != Dialect::Tarantool => true,
            "f" | "no" | "n" | "off" | "0" if dialect != Dialect::Tarantool => false,
            _ => return Err(invalid(dialect, text, Type::BOOL)),
        },
        value => return Err(mismatch(dialect, value, Type::BOOL)),
    }))
}

fn to_integer(dialect: Dialect, value: Value, to: Type, strictness: Strictness) -> Result<Value> {
    let (least, greatest) = to.range().unwrap_or((i128::from(i64::MIN), i128::from(u64::MAX)));
    let is_bits = dialect == Dialect::Mysql && to.base == Base::Uint8 && to.length > 0;
    let number = match &value {
        // Text is bits as they are written: so dumps have them.
        Value::Text(text) if is_bits && strictness == Strictness::Assignment => bits_of(text.as_bytes()),
        Value::Bytes(bytes) if is_bits => bits_of(bytes),
        // CAST(x AS SIGNED) keeps the bits.
        Value::Uint(number)
            if dialect == Dialect::Mysql && strictness == Strictness::Explicit && to.base == Base::Int8 =>
        {
            Some(i128::from(*number as i64))
        }
        Value::Int(_) | Value::Uint(_) => value.as_integer(),
        Value::Bool(value) if strictness == Strictness::Explicit || dialect == Dialect::Mysql => {
            Some(i128::from(*value))
        }
        Value::Double(double) => {
            let whole = match dialect {
                Dialect::Tarantool => double.trunc(),
                // Bits are those of the number that decimals would have.
                Dialect::Mysql if to.base == Base::Integer => double.round(),
                Dialect::Postgres | Dialect::Mysql => double.round_ties_even(),
            };
            // A column of whole numbers takes none that is not.
            if dialect == Dialect::Tarantool && strictness == Strictness::Assignment && whole != *double {
                return Err(mismatch(dialect, &value, to));
            }
            (whole.abs() < 2e19).then_some(whole as i128)
        }
        Value::Decimal(decimal) => match dialect {
            Dialect::Tarantool => decimal.to_integer(),
            _ => rounded_to(**decimal, 0).and_then(|value| value.to_integer()),
        },
        Value::Text(text) => match (text.trim().parse::<i128>(), dialect) {
            (Ok(number), _) if dialect != Dialect::Mysql || strictness != Strictness::Explicit => Some(number),
            // Up to the point; into a column it is rounded.
            (_, Dialect::Mysql) if strictness == Strictness::Explicit => {
                let digits = whole_part(text);
                let beyond = if digits.starts_with('-') { i128::MIN } else { i128::MAX };
                let is_none = digits.trim_start_matches(['+', '-']).is_empty();
                let number = if is_none { 0 } else { digits.parse::<i128>().unwrap_or(beyond) };
                // What goes too far is the last number of 64 bits, whose bits are read with a sign.
                let number = number.clamp(i128::from(i64::MIN), i128::from(u64::MAX));
                Some(if to.base == Base::Int8 { i128::from(number as i64) } else { number })
            }
            (_, Dialect::Mysql) => {
                let number = leading_double(text).round();
                return to_integer(dialect, Value::Double(number), to, strictness);
            }
            _ => return Err(invalid(dialect, text, to)),
        },
        _ => return Err(mismatch(dialect, &value, to)),
    };
    // CAST of what is no whole number ends at the last ones.
    let ends = dialect == Dialect::Mysql && strictness == Strictness::Explicit;
    let number = match &value {
        Value::Decimal(decimal) if ends && number.is_none() => {
            Some(if decimal.to_f64() < 0.0 { least } else { greatest })
        }
        Value::Double(double) if ends && number.is_none() => Some(if *double < 0.0 { least } else { greatest }),
        Value::Decimal(_) | Value::Double(_) if ends && matches!(to.base, Base::Int8 | Base::Integer) => {
            number.map(|number| number.clamp(least, greatest))
        }
        _ => number,
    };
    // CAST(-1 AS UNSIGNED) keeps the bits, of what is no whole number it ends at nothing.
    let number = match number {
        Some(..0) if ends && to.base == Base::Uint8 && matches!(value, Value::Decimal(_) | Value::Double(_)) => Some(0),
        Some(below @ ..0)
            if dialect == Dialect::Mysql && strictness == Strictness::Explicit && to.base == Base::Uint8 =>
        {
            i64::try_from(below).ok().map(|below| i128::from(below as u64))
        }
        number => number,
    };
    number
        .filter(|number| (least..=greatest).contains(number))
        .and_then(Value::integer)
        .ok_or_else(|| too_large(dialect, &value, to))
}

/// The bytes of BIT as a number.
fn bits_of(bytes: &[u8]) -> Option<i128> {
    (bytes.len() <= 8).then(|| bytes.iter().fold(0, |number, byte| number << 8 | i128::from(*byte)))
}

/// What of a text MySQL takes for a number.
fn leading_number(text: &str) -> &str {
    let text = text.trim_start();
    let mut has_point = false;
    let mut has_exponent = false;
    let bytes = text.as_bytes();
    let mut end = 0;
    while let Some(&byte) = bytes.get(end) {
        match byte {
            b'0'..=b'9' => {}
            b'+' | b'-' if end == 0 || matches!(bytes[end - 1], b'e' | b'E') => {}
            b'.' if !has_point && !has_exponent => has_point = true,
            b'e' | b'E' if end > 0 && !has_exponent => has_exponent = true,
            _ => break,
        }
        end += 1;
    }
    text[..end].trim_end_matches(['e', 'E', '+', '-'])
}

/// The digits that a text begins with, and their sign.
fn whole_part(text: &str) -> &str {
    let text = text.trim_start();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    &text[..text.len() - digits.len() + count]
}

fn to_number(dialect: Dialect, value: Value, to: Type, strictness: Strictness) -> Result<Value> {
    match &value {
        Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Decimal(_) => Ok(value),
        Value::Bool(value) if dialect == Dialect::Mysql => Ok(Value::Int(i64::from(*value))),
        Value::Text(text) => match parse_number(text) {
            Some(number) => Ok(number),
            None if strictness == Strictness::Comparison => Ok(value),
            None => Err(invalid(dialect, text, to)),
        },
        value => Err(mismatch(dialect, value, to)),
    }
}

/// A number as text has it: a whole one if it is one, else a double.
pub(crate) fn parse_number(text: &str) -> Option<Value> {
    let text = text.trim();
    match text.parse::<i128>().ok().and_then(Value::integer) {
        Some(value) => Some(value),
        None => parse_double(text).map(Value::Double),
    }
}

fn parse_double(text: &str) -> Option<f64> {
    match text.trim().to_ascii_lowercase().as_str() {
        "nan" => Some(f64::NAN),
        "infinity" | "inf" | "+infinity" => Some(f64::INFINITY),
        "-infinity" | "-inf" => Some(f64::NEG_INFINITY),
        other if other.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => other.parse().ok(),
        _ => None,
    }
}

/// The number that MySQL takes a text for: infinite, if it is beyond all doubles.
pub(crate) fn leading_double(text: &str) -> f64 {
    leading_number(text).parse().unwrap_or(0.0)
}

/// The double with so many digits behind the point.
fn rounded_double(value: f64, digits: u32) -> f64 {
    let unit = 10f64.powi(digits as i32);
    let moved = (value * unit).round_ties_even();
    if moved.abs() < 9e15 { moved / unit } else { value }
}

/// The nearest number of four bytes. None: it is beyond them, or so small that nothing of it is left.
pub(crate) fn to_float(value: f64) -> Option<f64> {
    let rounded = f64::from(value as f32);
    let is_kept = rounded.is_finite() == value.is_finite() && (rounded == 0.0) == (value == 0.0);
    is_kept.then_some(rounded)
}

fn to_double(dialect: Dialect, value: Value, to: Type, strictness: Strictness) -> Result<Value> {
    if to.is_float() {
        let double = match (dialect, &value) {
            // From the text at once: by way of a double the last digit may be rounded twice.
            (Dialect::Postgres, Value::Text(text)) if let Ok(single) = text.trim().parse::<f32>() => {
                let double = parse_double(text).ok_or_else(|| invalid(dialect, text, to))?;
                Some(double).filter(|double| to_float(*double).is_some()).map(|_| f64::from(single))
            }
            _ => match to_double(dialect, value.clone(), Type::of(Base::Double), strictness)? {
                Value::Double(double) if dialect == Dialect::Mysql => {
                    // What is too small is nothing, and CAST ends at the last ones.
                    let most = f64::from(f32::MAX);
                    let is_beyond = double.abs() > most && !(double as f32).is_finite();
                    match strictness {
                        Strictness::Assignment if is_beyond => None,
                        _ => Some(f64::from(double.clamp(-most, most) as f32)),
                    }
                }
                Value::Double(double) => to_float(double),
                value => return Ok(value),
            },
        };
        return double.map(Value::Double).ok_or_else(|| too_large(dialect, &value, to));
    }
    if let Some(digits) = to.double_digits() {
        let found = to_double(dialect, value, Type::of(Base::Double), strictness)?;
        return Ok(found.as_double().map_or(found, |double| Value::Double(rounded_double(double, digits))));
    }
    match &value {
        Value::Text(text) if dialect == Dialect::Mysql => {
            Ok(Value::Double(leading_double(text).clamp(-f64::MAX, f64::MAX)))
        }
        Value::Text(text) => parse_double(text).map(Value::Double).ok_or_else(|| invalid(dialect, text, to)),
        Value::Bool(value) if dialect == Dialect::Mysql => Ok(Value::Double(f64::from(u8::from(*value)))),
        other => other.as_double().map(Value::Double).ok_or_else(|| mismatch(dialect, other, to)),
    }
}

fn to_decimal(dialect: Dialect, value: Value, to: Type, strictness: Strictness) -> Result<Value> {
    let decimal = match &value {
        Value::Bool(value) if dialect == Dialect::Mysql => Some(Decimal::from(i64::from(*value))),
        Value::Text(text) => match (text.trim().parse::<Decimal>(), dialect) {
            (Ok(value), _) => Some(value),
            (Err(_), Dialect::Mysql) => Some(leading_number(text).parse().unwrap_or_else(|_| {
                // Beyond all decimals: the greatest that there is.
                let greatest = 10i128.pow(DIGITS_MAX) - 1;
                let nearest = match leading_double(text) {
                    beyond if beyond >= 1e38 => Decimal::new(greatest, 0),
                    beyond if beyond <= -1e38 => Decimal::new(-greatest, 0),
                    _ => None,
                };
                nearest.unwrap_or_else(|| 0i64.into())
            })),
            (Err(_), _) => return Err(invalid(dialect, text, to)),
        },
        other => other.as_decimal(),
    };
    let decimal = decimal.ok_or_else(|| mismatch(dialect, &value, to))?;
    if to.length == 0 {
        return Ok(Value::decimal(decimal));
    }
    let rounded = rounded_to(decimal, to.scale as i32).filter(|value| {
        let digits = value.parts().0.unsigned_abs().checked_ilog10().map_or(0, |log| log + 1);
        digits <= to.length
    });
    if rounded.is_none() && dialect == Dialect::Mysql && strictness == Strictness::Explicit {
        // The greatest that there is.
        let nines = 10i128.checked_pow(to.length.min(DIGITS_MAX)).map_or(i128::MAX, |unit| unit - 1);
        let greatest = Decimal::new(if decimal.parts().0 < 0 { -nines } else { nines }, to.scale as i32);
        return greatest.map(Value::decimal).ok_or_else(|| too_large(dialect, &value, to));
    }
    rounded.map(Value::decimal).ok_or_else(|| {
        Error::new(Condition::NumericOutOfRange, "numeric field overflow").detail(format!(
            "A field with precision {}, scale {} must round to an absolute value less than 10^{}.",
            to.length,
            to.scale,
            to.length - to.scale
        ))
    })
}

fn to_text(dialect: Dialect, value: Value, to: Type, strictness: Strictness) -> Result<Value> {
    let text = match value {
        Value::Text(text) => text,
        Value::Bytes(bytes) => match std::str::from_utf8(&bytes) {
            Ok(text) if dialect != Dialect::Postgres => text.into(),
            Ok(_) => display(dialect, &Value::Bytes(bytes)).into(),
            Err(_) => return Err(Error::new(Condition::InvalidEncoding, "the bytes are no UTF-8")),
        },
        // Into a column, Tarantool takes no number for text.
        value
            if dialect == Dialect::Tarantool
                && strictness == Strictness::Assignment
                && !matches!(value, Value::Uuid(_)) =>
        {
            return Err(mismatch(dialect, &value, to));
        }
        value => display(dialect, &value).into(),
    };
    if dialect == Dialect::Mysql
        && strictness == Strictness::Assignment
        && to.length > 0
        && text.chars().count() > to.length as usize
    {
        let kept: usize = text.char_indices().nth(to.length as usize).map_or(text.len(), |(end, _)| end);
        if text[kept..].trim_end_matches(' ').is_empty() {
            return Ok(Value::text(&text[..kept]));
        }
        return Err(Error::new(Condition::TooLong, "Data too long"));
    }
    if to.length == 0 || text.len() <= to.length as usize {
        return Ok(Value::Text(text));
    }
    match text.char_indices().nth(to.length as usize) {
        None => Ok(Value::Text(text)),
        Some((end, _)) if strictness == Strictness::Explicit || text[end..].trim_end_matches(' ').is_empty() => {
            Ok(Value::text(&text[..end]))
        }
        Some(_) => {
            Err(Error::new(Condition::TooLong, format!("value too long for type character varying({})", to.length)))
        }
    }
}

fn to_bytes(dialect: Dialect, value: Value, to: Type) -> Result<Value> {
    match &value {
        Value::Bytes(_) => Ok(value),
        Value::Text(text) => match (text.strip_prefix("\\x"), dialect) {
            (Some(digits), Dialect::Postgres) => {
                from_hex(digits).map(|bytes| Value::Bytes(bytes.into())).ok_or_else(|| invalid(dialect, text, to))
            }
            (None, Dialect::Postgres) if text.contains('\\') => {
                from_escapes(text).map(|bytes| Value::Bytes(bytes.into())).ok_or_else(|| invalid(dialect, text, to))
            }
            _ => Ok(Value::Bytes(text.as_bytes().into())),
        },
        Value::Uuid(bytes) => Ok(Value::Bytes(bytes[..].into())),
        value if dialect == Dialect::Mysql => Ok(Value::Bytes(display(dialect, value).as_bytes().into())),
        value => Err(mismatch(dialect, value, to)),
    }
}

/// Bytes of PostgreSQL's older form: three octal digits behind a backslash, or another backslash.
fn from_escapes(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, behind)) = rest.split_first() {
        rest = match (byte, behind) {
            (b'\\', [b'\\', behind @ ..]) => {
                out.push(b'\\');
                behind
            }
            (b'\\', [high @ b'0'..=b'3', middle @ b'0'..=b'7', low @ b'0'..=b'7', behind @ ..]) => {
                out.push((high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'));
                behind
            }
            (b'\\', _) => return None,
            (byte, behind) => {
                out.push(*byte);
                behind
            }
        };
    }
    Some(out)
}

/// Digits of bytes as they are written in small letters.
pub(crate) const SMALL_DIGITS: &[u8; 16] = b"0123456789abcdef";
/// The same in capital letters.
pub(crate) const CAPITAL_DIGITS: &[u8; 16] = b"0123456789ABCDEF";

/// Appends bytes as pairs of hexadecimal digits.
pub(crate) fn push_hex(bytes: &[u8], digits: &[u8; 16], out: &mut String) {
    out.reserve(bytes.len() * 2);
    for byte in bytes {
        out.push(char::from(digits[usize::from(byte >> 4)]));
        out.push(char::from(digits[usize::from(byte & 15)]));
    }
}

/// Bytes of binary digits, of which the last ones are those of the last byte.
pub(crate) fn from_bits(digits: &str) -> Option<Vec<u8>> {
    let of_byte = |byte: &[u8]| {
        byte.iter().try_fold(0, |sum: u8, digit| match digit {
            b'0' | b'1' => Some(sum << 1 | (digit - b'0')),
            _ => None,
        })
    };
    let mut bytes = digits.as_bytes().rchunks(8).map(of_byte).collect::<Option<Vec<u8>>>()?;
    bytes.reverse();
    Some(bytes)
}

/// Bytes from pairs of hexadecimal digits.
pub(crate) fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    let nibble = |byte: u8| (byte as char).to_digit(16);
    let pairs = digits.chunks(2).map(|pair| Some((nibble(pair[0])? << 4 | nibble(*pair.get(1)?)?) as u8));
    pairs.collect()
}

fn to_uuid(dialect: Dialect, value: Value, to: Type) -> Result<Value> {
    match &value {
        Value::Uuid(_) => Ok(value),
        Value::Bytes(bytes) => {
            let bytes: Option<[u8; 16]> = bytes[..].try_into().ok();
            bytes.map(|bytes| Value::Uuid(Rc::new(bytes))).ok_or_else(|| mismatch(dialect, &value, to))
        }
        Value::Text(text) => {
            let digits: String = text.trim().trim_matches(['{', '}']).chars().filter(|c| *c != '-').collect();
            let bytes = from_hex(&digits).and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
            bytes.map(|bytes| Value::Uuid(Rc::new(bytes))).ok_or_else(|| invalid(dialect, text, to))
        }
        value => Err(mismatch(dialect, value, to)),
    }
}

fn to_net(dialect: Dialect, value: Value, to: Type) -> Result<Value> {
    match &value {
        Value::Text(text) => match to.base {
            Base::Macaddr => crate::net::parse_mac(text, 6),
            Base::Macaddr8 => crate::net::parse_mac(text, 8),
            base => crate::net::parse(text, base == Base::Cidr).map(|found| found.value()),
        },
        Value::Bytes(bytes) if crate::net::display(bytes, to).is_some() => Ok(value),
        value => Err(mismatch(dialect, value, to)),
    }
}

fn to_moment(dialect: Dialect, value: Value, to: Type) -> Result<Value> {
    match &value {
        Value::Datetime(moment) if to.base == Base::Date => {
            let mut day = **moment;
            day.seconds = day.seconds.div_euclid(86_400) * 86_400;
            day.nanoseconds = 0;
            Ok(Value::Datetime(Rc::new(day)))
        }
        Value::Datetime(moment) if dialect == Dialect::Mysql => Ok(rounded_moment(**moment, to)),
        Value::Datetime(moment) if dialect == Dialect::Postgres && moments::within(**moment).is_none() => {
            Err(Error::new(Condition::DatetimeOverflow, "date out of range for timestamp"))
        }
        Value::Datetime(moment) if dialect == Dialect::Postgres && to.length > 0 => Ok(with_digits(**moment, to)),
        Value::Datetime(_) => Ok(value),
        Value::Text(_) | Value::Int(_) | Value::Decimal(_) | Value::Double(_) if dialect == Dialect::Mysql => {
            let text = display(dialect, &value);
            let moment = match &value {
                Value::Int(number) => crate::mysql::moments::of_number(*number),
                // Parts of seconds are cut.
                Value::Decimal(_) | Value::Double(_) => {
                    let whole = value.as_double().unwrap_or(0.0).trunc();
                    (whole.abs() < 1e15).then(|| crate::mysql::moments::of_number(whole as i64)).flatten()
                }
                _ => crate::mysql::moments::parse(&text),
            };
            let refused = || {
                let kind = if to.base == Base::Date { "DATE" } else { "DATETIME" };
                Error::new(Condition::InvalidDatetime, format!("Incorrect {kind} value: '{text}'"))
            };
            let mut moment = moment.ok_or_else(refused)?;
            if to.base == Base::Date {
                moment.seconds = moment.seconds.div_euclid(86_400) * 86_400;
                moment.nanoseconds = 0;
            }
            Ok(rounded_moment(moment, to))
        }
        Value::Text(text) => {
            let named = if dialect == Dialect::Postgres { moments::named(text) } else { None };
            let moment = named.or_else(|| moments::parse(text, to.base == Base::Date));
            moment.map(|moment| with_digits(moment, to)).ok_or_else(|| match dialect {
                Dialect::Tarantool => invalid(dialect, text, to),
                Dialect::Postgres if to.base != Base::Date && moments::is_far(text) => {
                    let what = format!("time zone displacement out of range: \"{text}\"");
                    Error::new(Condition::ZoneDisplacement, what)
                }
                // It has the form of one.
                _ if moments::has_form(text) => {
                    Error::new(Condition::DatetimeOverflow, format!("date/time field value out of range: \"{text}\""))
                }
                _ => Error::new(
                    Condition::InvalidDatetime,
                    format!("invalid input syntax for type {}: \"{text}\"", to.name(dialect)),
                ),
            })
        }
        value => Err(mismatch(dialect, value, to)),
    }
}

/// The moment with as many digits of a second as its type has in PostgreSQL: rounded away from the beginning of the year 2000.
fn with_digits(moment: tuple::datetime::Datetime, to: Type) -> Value {
    const EPOCH_SECONDS: i64 = 946_684_800;
    if to.length == 0 || to.base == Base::Date || moments::endless_name(&moment).is_some() {
        return Value::Datetime(Rc::new(moment));
    }
    let unit = 10i64.pow(9 - (to.length - 1).min(6));
    let nanos = i64::from(moment.nanoseconds);
    let half = if moment.seconds < EPOCH_SECONDS { (unit - 1) / 2 } else { unit / 2 };
    let rounded = (nanos + half) / unit * unit;
    Value::Datetime(Rc::new(tuple::datetime::Datetime {
        seconds: moment.seconds + rounded.div_euclid(1_000_000_000),
        nanoseconds: rounded.rem_euclid(1_000_000_000) as i32,
        ..moment
    }))
}

fn to_time(dialect: Dialect, value: Value, to: Type, strictness: Strictness) -> Result<Value> {
    let nanos = match (&value, dialect) {
        (Value::Datetime(moment), _) => {
            let nanos = crate::clock::nanos_of(moment);
            // One that is no span is a moment that nothing has told a type of.
            if nanos.unsigned_abs() / crate::clock::SECOND as u64 <= crate::clock::LONGEST_SECONDS as u64 {
                nanos
            } else {
                crate::clock::of_moment(moment)
            }
        }
        (Value::Text(text), Dialect::Postgres) => crate::clock::parse(text)?,
        (_, Dialect::Mysql) => {
            let found = match &value {
                Value::Text(text) => crate::clock::parse_in_mysql(text),
                Value::Bytes(bytes) => crate::clock::parse_in_mysql(&String::from_utf8_lossy(bytes)),
                Value::Bool(value) => Some(i64::from(*value) * crate::clock::SECOND),
                value => crate::clock::of_number(value),
            };
            let refused = || {
                let what = format!("Incorrect time value: '{}'", display(dialect, &value));
                Error::new(Condition::InvalidDatetime, what)
            };
            match found {
                None if strictness == Strictness::Explicit => return Ok(Value::Null),
                None => return Err(refused()),
                Some(nanos) => {
                    let kept = crate::clock::clamped(nanos);
                    if kept != nanos && strictness == Strictness::Assignment {
                        return Err(refused());
                    }
                    kept
                }
            }
        }
        _ => return Err(mismatch(dialect, &value, to)),
    };
    Ok(crate::clock::value_of(crate::clock::rounded(nanos, to)))
}

/// The moment with as many digits of a second as its type has in MySQL.
fn rounded_moment(mut moment: tuple::datetime::Datetime, to: Type) -> Value {
    if to.base == Base::Timestamp && to.length > 0 {
        let unit = 10i64.pow(9 - (to.length - 1).min(6));
        let rounded = (i64::from(moment.nanoseconds) + unit / 2) / unit * unit;
        moment.seconds += rounded.div_euclid(1_000_000_000);
        moment.nanoseconds = rounded.rem_euclid(1_000_000_000) as i32;
    }
    Value::Datetime(Rc::new(moment))
}

fn to_json(dialect: Dialect, text: &str, to: Type) -> Result<Value> {
    let is_plain = to.is_plain_json() || dialect == Dialect::Tarantool;
    let refused = || {
        Error::new(Condition::InvalidText, "invalid input syntax for type json")
            .detail(format!("\"{}\" is no JSON.", text.chars().take(60).collect::<String>()))
    };
    match crate::json::check(text) {
        true if is_plain => Ok(Value::text(text)),
        true => {
            let json = crate::json::Json::parse_or(text, refused)?;
            if dialect == Dialect::Postgres && text.contains("\\u0000") && json.has_zero() {
                let error = Error::new(Condition::Untranslatable, "unsupported Unicode escape sequence");
                return Err(error.detail("\\u0000 cannot be converted to text."));
            }
            Ok(Value::text(json.to_string()))
        }
        false => Err(refused()),
    }
}

/// The value as text.
pub(crate) fn display(dialect: Dialect, value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_string(),
        Value::Bool(value) if dialect == Dialect::Tarantool => (if *value { "TRUE" } else { "FALSE" }).to_string(),
        Value::Bool(value) if dialect == Dialect::Mysql => u8::from(*value).to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => display_double(dialect, *value),
        Value::Decimal(value) => value.to_string(),
        Value::Text(text) => text.to_string(),
        Value::Bytes(bytes) => {
            let mut text = String::from(if dialect == Dialect::Postgres { "\\x" } else { "" });
            push_hex(bytes, SMALL_DIGITS, &mut text);
            text
        }
        Value::Uuid(bytes) => tuple::format_uuid(&bytes[..]),
        Value::Datetime(moment) => match dialect {
            Dialect::Tarantool => moment.to_string(),
            Dialect::Mysql => crate::mysql::moments::display(moment),
            Dialect::Postgres => moments::display(moment),
        },
        Value::Interval(interval) => interval.to_string(),
        Value::Document(bytes)
            if dialect == Dialect::Postgres && matches!(bytes.first(), Some(0x90..=0x9f | 0xdc | 0xdd)) =>
        {
            crate::text::display_as(dialect, value, Type::of(Base::Array))
        }
        Value::Document(bytes) => crate::json::from_msgpack(bytes),
    }
}

fn display_double(dialect: Dialect, value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_string();
    }
    if value.is_infinite() {
        return (if value > 0.0 { "Infinity" } else { "-Infinity" }).to_string();
    }
    if dialect == Dialect::Tarantool {
        let text = tuple::format_double(value);
        return if value == value.trunc() && !text.contains(['.', 'e']) { format!("{text}.0") } else { text };
    }
    if value == 0.0 || (1e-4..1e15).contains(&value.abs()) {
        return value.to_string();
    }
    in_short_form(&format!("{value:e}"), dialect, 15)
}

/// A double of four bytes: six digits in MySQL, as many as tell it from others in PostgreSQL.
pub(crate) fn display_float(dialect: Dialect, value: f64) -> String {
    if !value.is_finite() {
        return display_double(dialect, value);
    }
    match dialect {
        Dialect::Mysql => in_short_form(&format!("{value:.5e}"), dialect, 15),
        _ => in_short_form(&shortest_float(value as f32), dialect, 6),
    }
}

/// The fewest digits that are nearer to a number of four bytes than to any other one. What lies in the middle of two counts for neither, as in PostgreSQL.
fn shortest_float(value: f32) -> String {
    let exact = f64::from(value);
    let beside = |bits: u32| f64::midpoint(exact, f64::from(f32::from_bits(bits)));
    let bits = value.to_bits();
    let (inner, outer) = (beside(bits.saturating_sub(1)), beside(bits.saturating_add(1)));
    let is_own = |text: &String| {
        let read = text.parse::<f64>().unwrap_or(f64::NAN);
        read == exact || inner.abs() < read.abs() && read.abs() < outer.abs()
    };
    (0..9).map(|digits| format!("{value:.digits$e}")).find(is_own).unwrap_or_else(|| format!("{value:e}"))
}

/// A double with so many digits behind the point: those that tell it from others, and zeros.
pub(crate) fn display_fixed(value: f64, digits: u32) -> String {
    let plain = value.to_string();
    let has = plain.split_once('.').map_or(0, |(_, behind)| behind.len());
    match digits as usize {
        0 if has == 0 => plain,
        digits if has == 0 => format!("{plain}.{}", "0".repeat(digits)),
        digits if has <= digits => format!("{plain}{}", "0".repeat(digits - has)),
        digits => format!("{value:.digits$}"),
    }
}

/// A number with an exponent as it is shown: without one where the point is near enough, and zeros at the end are left out.
fn in_short_form(text: &str, dialect: Dialect, whole_max: i32) -> String {
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let digits = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
    let least = if dialect == Dialect::Mysql { -15 } else { -4 };
    if !(least..whole_max).contains(&exponent) {
        return match dialect {
            Dialect::Mysql => format!("{sign}{digits}e{exponent}"),
            // An exponent of two digits at least.
            _ => format!("{sign}{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs()),
        };
    }
    let plain: String = digits.chars().filter(char::is_ascii_digit).collect();
    let Ok(before) = usize::try_from(exponent + 1) else {
        return format!("{sign}0.{}{plain}", "0".repeat(exponent.unsigned_abs() as usize - 1));
    };
    match plain.split_at_checked(before) {
        Some((whole, "")) => format!("{sign}{whole}"),
        Some(("", behind)) => format!("{sign}0.{behind}"),
        Some((whole, behind)) => format!("{sign}{whole}.{behind}"),
        None => format!("{sign}{plain}{}", "0".repeat(before - plain.len())),
    }
}
