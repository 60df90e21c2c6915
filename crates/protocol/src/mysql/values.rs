//! Values on the wire: columns, text and binary rows, parameters.

use super::packet::{Reader, put_counted, put_number};
use sql::{Base, Column, Condition, Dialect, Error, Origin, PartOf, Type, Value};
use std::io::Write;
use std::rc::Rc;
use tuple::datetime::{Datetime, date_of};
use tuple::decimal::Decimal;

/// The numbers of types.
pub(super) mod kinds {
    pub(crate) const DECIMAL: u8 = 0;
    pub(crate) const TINY: u8 = 1;
    pub(crate) const SHORT: u8 = 2;
    pub(crate) const LONG: u8 = 3;
    pub(crate) const FLOAT: u8 = 4;
    pub(crate) const DOUBLE: u8 = 5;
    pub(crate) const NULL: u8 = 6;
    pub(crate) const TIMESTAMP: u8 = 7;
    pub(crate) const LONGLONG: u8 = 8;
    pub(crate) const INT24: u8 = 9;
    pub(crate) const DATE: u8 = 10;
    pub(crate) const TIME: u8 = 11;
    pub(crate) const DATETIME: u8 = 12;
    pub(crate) const YEAR: u8 = 13;
    pub(crate) const JSON: u8 = 245;
    pub(crate) const NEWDECIMAL: u8 = 246;
    pub(crate) const BLOB: u8 = 252;
    pub(crate) const VAR_STRING: u8 = 253;
}

const NOT_NULL: u16 = 1;
const PRIMARY_KEY: u16 = 2;
const UNIQUE_KEY: u16 = 4;
const MULTIPLE_KEY: u16 = 8;
const BLOB: u16 = 16;
const UNSIGNED: u16 = 32;
const BINARY: u16 = 128;
const AUTO_INCREMENT: u16 = 512;
const NO_DEFAULT: u16 = 4096;
const PART_OF_KEY: u16 = 16384;
/// The character sets of text and of bytes.
const UTF8MB4: u16 = 255;
const BYTES: u16 = 63;
/// Seconds of the moment that is shown as `0000-00-00`.
const ZERO_SECONDS: i64 = -62_167_219_200;

/// Number, flags, length and digits behind the point of a type.
fn kind_of(ty: Type) -> (u8, u16, u32, u8) {
    match ty.base {
        Base::Bool => (kinds::LONGLONG, BINARY, 1, 0),
        Base::Int1 if ty.length == 1 => (kinds::TINY, 0, 1, 0),
        Base::Int1 => (kinds::TINY, 0, 4, 0),
        Base::Uint1 => (kinds::TINY, UNSIGNED, 3, 0),
        Base::Int2 => (kinds::SHORT, 0, 6, 0),
        Base::Uint2 => (kinds::SHORT, UNSIGNED, 5, 0),
        Base::Int4 => (kinds::LONG, 0, 11, 0),
        Base::Uint4 => (kinds::LONG, UNSIGNED, 10, 0),
        Base::Int8 | Base::Integer => (kinds::LONGLONG, 0, 20, 0),
        Base::Uint8 => (kinds::LONGLONG, UNSIGNED, 20, 0),
        Base::Double if ty.is_float() => (kinds::FLOAT, 0, 12, ty.double_digits().unwrap_or(31) as u8),
        Base::Double | Base::Number => (kinds::DOUBLE, 0, 22, ty.double_digits().unwrap_or(31) as u8),
        Base::Decimal => (kinds::NEWDECIMAL, 0, ty.length.max(10) + 2, ty.scale.min(30) as u8),
        Base::Date => (kinds::DATE, BINARY, 10, 0),
        Base::Timestamp | Base::TimestampTz => {
            let digits = if ty.length == 0 { 6 } else { ty.length - 1 };
            (kinds::DATETIME, BINARY, 19 + if digits > 0 { digits + 1 } else { 0 }, digits as u8)
        }
        Base::Time | Base::TimeTz => {
            let digits = if ty.length == 0 { 6 } else { ty.length - 1 };
            (kinds::TIME, BINARY, 10 + if digits > 0 { digits + 1 } else { 0 }, digits as u8)
        }
        Base::Json | Base::Array | Base::Map => (kinds::JSON, BINARY, u32::MAX, 0),
        Base::Bytes => (kinds::BLOB, BINARY, u32::MAX, 0),
        Base::Unknown => (kinds::NULL, BINARY, 0, 0),
        Base::Text if ty.length > 0 => (kinds::VAR_STRING, 0, ty.length.saturating_mul(4), 0),
        Base::Inet | Base::Cidr | Base::Macaddr | Base::Macaddr8 => (kinds::VAR_STRING, 0, 172, 31),
        Base::Int4Range | Base::Int8Range | Base::NumRange => (kinds::VAR_STRING, 0, 1020, 31),
        Base::DateRange | Base::TsRange | Base::TstzRange => (kinds::VAR_STRING, 0, 1020, 31),
        Base::Text | Base::Uuid | Base::Interval | Base::Scalar | Base::Any | Base::Enum => {
            (kinds::VAR_STRING, 0, 262_140, 31)
        }
    }
}

fn flags_of(origin: &Origin) -> u16 {
    let key = match origin.key {
        PartOf::Nothing => 0,
        PartOf::Index => MULTIPLE_KEY,
        PartOf::Unique => UNIQUE_KEY,
        PartOf::Primary => PRIMARY_KEY,
    };
    let flag = |is_set: bool, flag: u16| if is_set { flag } else { 0 };
    key | flag(origin.is_required, NOT_NULL)
        | flag(origin.is_generated, AUTO_INCREMENT)
        | flag(!origin.has_default, NO_DEFAULT)
        | flag(key != 0, PART_OF_KEY)
}

/// The definition of a column, or of a parameter.
pub(super) fn put_column(out: &mut Vec<u8>, column: &Column, database: &str) {
    let (mut kind, mut flags, length, decimals) = kind_of(column.ty);
    let charset = match column.ty.base {
        Base::Text | Base::Uuid | Base::Interval | Base::Scalar | Base::Any | Base::Enum => UTF8MB4,
        _ if column.ty.is_coded() => UTF8MB4,
        _ => BYTES,
    };
    put_counted(out, b"def");
    match &column.origin {
        None => {
            put_counted(out, b"");
            put_counted(out, b"");
            put_counted(out, b"");
            put_counted(out, column.name.as_bytes());
            put_counted(out, b"");
        }
        Some(origin) if origin.table.is_empty() => {
            put_counted(out, b"");
            put_counted(out, origin.alias.as_bytes());
            put_counted(out, b"");
            put_counted(out, column.name.as_bytes());
            put_counted(out, b"");
        }
        Some(origin) => {
            put_counted(out, database.as_bytes());
            put_counted(out, origin.alias.as_bytes());
            put_counted(out, origin.table.as_bytes());
            put_counted(out, column.name.as_bytes());
            put_counted(out, origin.column.as_bytes());
            flags |= flags_of(origin);
            if column.ty == Type::TEXT {
                kind = kinds::BLOB;
                flags |= BLOB;
            }
        }
    }
    out.push(0x0c);
    out.extend_from_slice(&charset.to_le_bytes());
    out.extend_from_slice(&length.to_le_bytes());
    out.push(kind);
    out.extend_from_slice(&flags.to_le_bytes());
    out.push(decimals);
    out.extend_from_slice(&[0, 0]);
}

/// A row as text.
pub(super) fn put_text_row(out: &mut Vec<u8>, row: &[Value], columns: &[Column]) {
    let mut text = Vec::new();
    for (value, column) in row.iter().zip(columns) {
        match value {
            Value::Null => out.push(0xfb),
            Value::Text(text) => put_counted(out, text.as_bytes()),
            Value::Bytes(bytes) if !column.ty.is_coded() => put_counted(out, bytes),
            value => {
                text.clear();
                put_plain(&mut text, value, column.ty);
                put_counted(out, &text);
            }
        }
    }
}

/// Appends the text of a value.
fn put_plain(out: &mut Vec<u8>, value: &Value, ty: Type) {
    let mut buffer = itoa::Buffer::new();
    match value {
        Value::Null => {}
        Value::Bool(value) => out.push(if *value { b'1' } else { b'0' }),
        Value::Int(value) => out.extend_from_slice(buffer.format(*value).as_bytes()),
        Value::Uint(value) => out.extend_from_slice(buffer.format(*value).as_bytes()),
        Value::Text(text) => out.extend_from_slice(text.as_bytes()),
        Value::Bytes(bytes) if !ty.is_coded() => out.extend_from_slice(bytes),
        // Most doubles are shown without an exponent.
        Value::Double(value) if !ty.is_shown_shorter() && (1e-4..1e15).contains(&value.abs()) => {
            let _ = write!(out, "{value}");
        }
        Value::Decimal(value) => put_decimal(out, value, ty),
        Value::Datetime(_) if ty.is_clock() => {
            out.extend_from_slice(sql::display_as(Dialect::Mysql, value, ty).as_bytes());
        }
        Value::Datetime(moment) => put_moment(out, moment, ty),
        other => out.extend_from_slice(sql::display_as(Dialect::Mysql, other, ty).as_bytes()),
    }
}

fn put_decimal(out: &mut Vec<u8>, value: &Decimal, ty: Type) {
    let text = value.to_string();
    out.extend_from_slice(text.as_bytes());
    if ty.base != Base::Decimal || ty.length == 0 {
        return;
    }
    let behind = text.split_once('.').map_or(0, |(_, digits)| digits.len());
    if behind == 0 && ty.scale > 0 {
        out.push(b'.');
    }
    out.extend(std::iter::repeat_n(b'0', (ty.scale as usize).saturating_sub(behind)));
}

/// Year, month, day, seconds of the day, microseconds.
fn parts_of(moment: &Datetime) -> (u16, u8, u8, u32, u32) {
    let (days, seconds) = (moment.seconds.div_euclid(86_400), moment.seconds.rem_euclid(86_400));
    let micros = (moment.nanoseconds / 1000).max(0) as u32;
    if moment.seconds == ZERO_SECONDS && micros == 0 {
        return (0, 0, 0, 0, 0);
    }
    let (year, month, day) = date_of(days);
    (year.clamp(0, 9999) as u16, month as u8, day as u8, seconds as u32, micros)
}

fn put_moment(out: &mut Vec<u8>, moment: &Datetime, ty: Type) {
    let (year, month, day, seconds, micros) = parts_of(moment);
    let _ = write!(out, "{year:04}-{month:02}-{day:02}");
    if ty.base == Base::Date {
        return;
    }
    let _ = write!(out, " {:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    let digits = match ty.length {
        0 if micros == 0 => 0,
        0 => 6,
        length => (length - 1).min(6) as usize,
    };
    if digits > 0 {
        let text = format!("{micros:06}");
        out.push(b'.');
        out.extend_from_slice(&text.as_bytes()[..digits]);
    }
}

/// A row in binary, without the head of its packet. Errors: a value is none of its column's type.
pub(super) fn put_binary_row(out: &mut Vec<u8>, row: &[Value], columns: &[Column]) -> Result<(), Error> {
    out.push(0);
    let nulls = out.len();
    out.resize(nulls + (columns.len() + 9) / 8, 0);
    for (number, (value, column)) in row.iter().zip(columns).enumerate() {
        if value.is_null() {
            out[nulls + (number + 2) / 8] |= 1 << ((number + 2) % 8);
            continue;
        }
        put_binary(out, value, column.ty)?;
    }
    Ok(())
}

fn put_binary(out: &mut Vec<u8>, value: &Value, ty: Type) -> Result<(), Error> {
    let whole = || {
        let number = match value {
            Value::Bool(value) => Some(i128::from(*value)),
            Value::Double(value) => Some(*value as i128),
            Value::Decimal(value) => value.to_integer(),
            value => value.as_integer(),
        };
        number.ok_or_else(|| Error::new(Condition::TypeMismatch, format!("a whole number is wanted, not {value:?}")))
    };
    match kind_of(ty).0 {
        kinds::TINY => out.push(whole()? as u8),
        kinds::SHORT => out.extend_from_slice(&(whole()? as u16).to_le_bytes()),
        kinds::LONG => out.extend_from_slice(&(whole()? as u32).to_le_bytes()),
        kinds::LONGLONG => out.extend_from_slice(&(whole()? as u64).to_le_bytes()),
        kind @ (kinds::FLOAT | kinds::DOUBLE) => {
            let number = value.as_double().ok_or_else(|| Error::new(Condition::TypeMismatch, "a number is wanted"))?;
            match kind {
                kinds::FLOAT => out.extend_from_slice(&(number as f32).to_le_bytes()),
                _ => out.extend_from_slice(&number.to_le_bytes()),
            }
        }
        kinds::DATE | kinds::DATETIME => {
            let Value::Datetime(moment) = value else {
                return Err(Error::new(Condition::TypeMismatch, "a moment is wanted"));
            };
            let (year, month, day, seconds, micros) = parts_of(moment);
            let length = match (seconds, micros) {
                _ if (year, month, day) == (0, 0, 0) => 0,
                _ if ty.base == Base::Date => 4,
                (0, 0) => 4,
                (_, 0) => 7,
                _ => 11,
            };
            out.push(length);
            if length >= 4 {
                out.extend_from_slice(&year.to_le_bytes());
                out.extend_from_slice(&[month, day]);
            }
            if length >= 7 {
                out.extend_from_slice(&[(seconds / 3600) as u8, (seconds / 60 % 60) as u8, (seconds % 60) as u8]);
            }
            if length >= 11 {
                out.extend_from_slice(&micros.to_le_bytes());
            }
        }
        kinds::TIME => {
            let Value::Datetime(span) = value else {
                return Err(Error::new(Condition::TypeMismatch, "a time is wanted"));
            };
            put_time(out, span);
        }
        kinds::NULL => {}
        _ => {
            let mut text = Vec::new();
            put_plain(&mut text, value, ty);
            put_counted(out, &text);
        }
    }
    Ok(())
}

/// A span: its sign, days, hours, minutes, seconds and microseconds; nothing of what is zero.
fn put_time(out: &mut Vec<u8>, span: &Datetime) {
    let micros = span.seconds.saturating_mul(1_000_000).saturating_add(i64::from(span.nanoseconds) / 1000);
    let (is_negative, seconds, micros) =
        (micros < 0, micros.unsigned_abs() / 1_000_000, (micros.unsigned_abs() % 1_000_000) as u32);
    let length = match (seconds, micros) {
        (0, 0) => 0,
        (_, 0) => 8,
        _ => 12,
    };
    out.push(length);
    if length >= 8 {
        out.push(u8::from(is_negative));
        out.extend_from_slice(&((seconds / 86_400) as u32).to_le_bytes());
        let seconds = seconds % 86_400;
        out.extend_from_slice(&[(seconds / 3600) as u8, (seconds / 60 % 60) as u8, (seconds % 60) as u8]);
    }
    if length >= 12 {
        out.extend_from_slice(&micros.to_le_bytes());
    }
}

/// Text as text, and what is none as bytes.
pub(super) fn text_or_bytes(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::text(text),
        Err(_) => Value::Bytes(bytes.into()),
    }
}

/// A parameter. Errors: a type that is not known; bytes that are none of the type.
pub(super) fn read_param(reader: &mut Reader<'_>, kind: u8, is_unsigned: bool) -> Result<Value, Error> {
    let signed = |value: i64, unsigned: u64| match is_unsigned {
        true => Value::integer(i128::from(unsigned)).unwrap_or_default(),
        false => Value::Int(value),
    };
    Ok(match kind {
        kinds::NULL => Value::Null,
        kinds::TINY => {
            let byte = reader.u8()?;
            signed(i64::from(byte as i8), u64::from(byte))
        }
        kinds::SHORT | kinds::YEAR => {
            let number = reader.u16()?;
            signed(i64::from(number as i16), u64::from(number))
        }
        kinds::LONG | kinds::INT24 => {
            let number = reader.u32()?;
            signed(i64::from(number as i32), u64::from(number))
        }
        kinds::LONGLONG => {
            let number = reader.u64()?;
            signed(number as i64, number)
        }
        kinds::FLOAT => Value::Double(f64::from(f32::from_bits(reader.u32()?))),
        kinds::DOUBLE => Value::Double(f64::from_bits(reader.u64()?)),
        kinds::DECIMAL | kinds::NEWDECIMAL => {
            let text = String::from_utf8_lossy(reader.counted()?).into_owned();
            let wrong = |_| Error::new(Condition::InvalidBinary, format!("Incorrect DECIMAL value: '{text}'"));
            Value::Decimal(Rc::new(text.trim().parse::<Decimal>().map_err(wrong)?))
        }
        kinds::DATE | kinds::DATETIME | kinds::TIMESTAMP => read_moment(reader.counted()?)?,
        kinds::TIME => read_time(reader.counted()?)?,
        // Text, bytes, JSON, BIT, ENUM and SET are the same on the wire.
        15 | 16 | 245 | 247..=255 => text_or_bytes(reader.counted()?),
        other => {
            return Err(Error::new(Condition::InvalidBinary, format!("a parameter of type {other} is not known")));
        }
    })
}

fn read_moment(bytes: &[u8]) -> Result<Value, Error> {
    let wrong = || Error::new(Condition::InvalidBinary, "Incorrect datetime value in a parameter");
    let mut parts = [0u8; 11];
    if !matches!(bytes.len(), 0 | 4 | 7 | 11) {
        return Err(wrong());
    }
    parts[..bytes.len()].copy_from_slice(bytes);
    let [y, z, month, day, hour, minute, second, a, b, c, d] = parts;
    let micros = u32::from_le_bytes([a, b, c, d]);
    let text =
        format!("{:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06}", u16::from_le_bytes([y, z]));
    sql::parse_value(Dialect::Mysql, &text, Type::of(Base::Timestamp)).map_err(|_| wrong())
}

fn read_time(bytes: &[u8]) -> Result<Value, Error> {
    let wrong = || Error::new(Condition::InvalidBinary, "Incorrect time value in a parameter");
    let mut parts = [0u8; 12];
    if !matches!(bytes.len(), 0 | 8 | 12) {
        return Err(wrong());
    }
    parts[..bytes.len()].copy_from_slice(bytes);
    let [sign, a, b, c, d, hours, minutes, seconds, e, f, g, h] = parts;
    let days = u32::from_le_bytes([a, b, c, d]);
    if days > 34 || hours > 23 || minutes > 59 || seconds > 59 {
        return Err(wrong());
    }
    let micros = u32::from_le_bytes([e, f, g, h]);
    let sign = if sign == 1 { "-" } else { "" };
    let mut text = format!("{sign}{:02}:{minutes:02}:{seconds:02}", days * 24 + u32::from(hours));
    if micros > 0 {
        text.push_str(&format!(".{micros:06}"));
    }
    Ok(Value::text(text))
}

/// The number of columns or parameters that stands before their definitions.
pub(super) fn put_count(out: &mut Vec<u8>, count: usize) {
    put_number(out, count as u64);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    fn column(ty: Type) -> Column {
        Column::named("c", ty)
    }

    #[test]
    fn moments_go_and_come_back() {
        for (text, length) in
            [("2024-02-29 01:02:03.000004", 11), ("2024-02-29 01:02:03", 7), ("2024-02-29", 4), ("0000-00-00", 0)]
        {
            let ty = Type::of(Base::Timestamp);
            let value = sql::parse_value(Dialect::Mysql, text, ty).unwrap();
            let mut out = Vec::new();
            put_binary(&mut out, &value, ty).unwrap();
            assert_eq!(out[0], length, "{text}");
            let back = read_param(&mut Reader(&out), kinds::DATETIME, false).unwrap();
            assert_eq!(back.order(&value), std::cmp::Ordering::Equal, "{text}");
        }
        assert!(read_moment(&[1, 2, 3]).is_err() && read_moment(&[0xe8, 7, 13, 1]).is_err());
    }

    #[test]
    fn times_go_and_come_back() {
        let ty = Type { length: 7, ..Type::of(Base::Time) };
        for (text, length) in
            [("00:00:00", 0), ("12:34:56", 8), ("-838:59:59", 8), ("100:00:00.000005", 12), ("-00:00:00.5", 12)]
        {
            let value = sql::parse_value(Dialect::Mysql, text, ty).unwrap();
            let mut out = Vec::new();
            put_binary(&mut out, &value, ty).unwrap();
            assert_eq!(out[0], length, "{text}");
            let back = read_param(&mut Reader(&out), kinds::TIME, false).unwrap();
            let back = sql::parse_value(Dialect::Mysql, back.as_text().unwrap(), ty).unwrap();
            assert_eq!(back.order(&value), std::cmp::Ordering::Equal, "{text}");
        }
    }

    #[test]
    fn rows_have_their_nulls_first() {
        let columns = [column(Type::of(Base::Int4)), column(Type::TEXT), column(Type::of(Base::Uint8))];
        let mut out = Vec::new();
        put_binary_row(&mut out, &[Value::Int(-1), Value::Null, Value::Uint(u64::MAX)], &columns).unwrap();
        assert_eq!(out, [&[0, 0b1000][..], &[0xff; 4], &[0xff; 8]].concat());
        out.clear();
        put_text_row(&mut out, &[Value::Int(-1), Value::Null, Value::text("é")], &columns);
        assert_eq!(out, b"\x02-1\xfb\x02\xc3\xa9");
    }

    #[test]
    fn numbers_of_four_bytes_are_shown_with_six_digits_and_sent_in_four_bytes() {
        let value = Value::Double(f64::from(75.24f32));
        let mut out = Vec::new();
        put_text_row(&mut out, std::slice::from_ref(&value), &[column(Type::FLOAT)]);
        assert_eq!(out, b"\x0575.24");
        out.clear();
        put_binary(&mut out, &value, Type::FLOAT).unwrap();
        assert_eq!(out, 75.24f32.to_le_bytes());
        let back = read_param(&mut Reader(&out), kinds::FLOAT, false).unwrap();
        assert_eq!(back.order(&value), std::cmp::Ordering::Equal);
        for (digits, text) in [(None, "1.5"), (Some(0), "2"), (Some(2), "1.50")] {
            out.clear();
            put_plain(&mut out, &Value::Double(1.5), Type::double(digits));
            assert_eq!(String::from_utf8_lossy(&out), text);
        }
    }

    #[test]
    fn parameters_that_cannot_be_are_refused() {
        for (kind, bytes) in
            [(kinds::LONG, &[1u8, 2][..]), (kinds::NEWDECIMAL, b"\x01x"), (14, b""), (kinds::TIME, &[1, 0])]
        {
            assert!(read_param(&mut Reader(bytes), kind, false).is_err(), "{kind}");
        }
        let big = read_param(&mut Reader(&[0xff; 8]), kinds::LONGLONG, true).unwrap();
        assert!(matches!(big, Value::Uint(u64::MAX)));
    }
}
