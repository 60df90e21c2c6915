//! Values on the wire: numbers of types, text and binary forms. Sources: PostgreSQL's documentation, chapters 8 and 55; `pg_type.dat`.

use sql::{Base, Condition, Dialect, Error, Type, Value, Zone};
use std::io::Write;
use tuple::datetime::{Datetime, Interval, date_of};
use tuple::decimal::Decimal;

/// Seconds from 1970 to 2000, where PostgreSQL's clock begins.
pub(super) const EPOCH_SECONDS: i64 = 946_684_800;

/// The number of a type.
pub(super) fn oid_of(ty: Type) -> u32 {
    match ty.base {
        Base::Bool => 16,
        Base::Bytes => 17,
        Base::Int1 | Base::Uint1 | Base::Int2 => 21,
        Base::Int4 | Base::Uint2 => 23,
        Base::Int8 if ty.is_oid() => 26,
        Base::Int8 | Base::Integer | Base::Uint8 | Base::Uint4 => 20,
        Base::Double if ty.is_float() => 700,
        Base::Double => 701,
        Base::Decimal | Base::Number => 1700,
        Base::Text if ty.length > 0 => 1043,
        Base::Text if ty.is_name() => 19,
        Base::Text | Base::Unknown | Base::Any | Base::Scalar => 25,
        Base::Uuid => 2950,
        Base::Date => 1082,
        Base::Timestamp => 1114,
        Base::TimestampTz => 1184,
        Base::Interval => 1186,
        Base::Time => 1083,
        Base::TimeTz => 1266,
        Base::Inet => 869,
        Base::Cidr => 650,
        Base::Macaddr => 829,
        Base::Macaddr8 => 774,
        Base::Int4Range => 3904,
        Base::Int8Range => 3926,
        Base::NumRange => 3906,
        Base::DateRange => 3912,
        Base::TsRange => 3908,
        Base::TstzRange => 3910,
        Base::Json if ty.is_plain_json() => 114,
        Base::Json => 3802,
        Base::Array if ty.is_vector() => 22,
        Base::Enum => ty.user_number(),
        Base::Array if ty.has_labels() => ty.user_number(),
        Base::Array => array_of(oid_of(ty.element())),
        Base::Map => 3802,
    }
}

/// Bytes of a type's values; -1: they differ.
pub(super) fn size_of(ty: Type) -> i16 {
    match oid_of(ty) {
        16 => 1,
        21 => 2,
        23 | 26 | 700 | 1082 => 4,
        _ if ty.base == Base::Enum => 4,
        20 | 701 | 1083 | 1114 | 1184 => 8,
        1266 => 12,
        829 => 6,
        774 => 8,
        2950 | 1186 => 16,
        19 => 64,
        _ => -1,
    }
}

/// What a type has beside its number: length of text, digits of a number.
pub(super) fn modifier_of(ty: Type) -> i32 {
    match ty.base {
        Base::Text if ty.length > 0 => ty.length as i32 + 4,
        Base::Decimal if ty.length > 0 => ((ty.length << 16 | ty.scale) + 4) as i32,
        Base::Time | Base::TimeTz | Base::Timestamp | Base::TimestampTz if ty.length > 0 => ty.length as i32 - 1,
        _ => -1,
    }
}

/// The type of a number; `Unknown` for 0. Errors: it is none that is known.
pub(super) fn type_of(oid: u32) -> Result<Type, Error> {
    Ok(Type::of(match oid {
        0 | 705 => Base::Unknown,
        16 => Base::Bool,
        17 => Base::Bytes,
        21 => Base::Int2,
        26 => return Ok(Type::OID),
        23 => Base::Int4,
        20 => Base::Int8,
        700 => return Ok(Type::FLOAT),
        701 => Base::Double,
        1700 => Base::Decimal,
        18 | 19 | 25 | 1042 | 1043 | 2205 => Base::Text,
        2950 => Base::Uuid,
        1082 => Base::Date,
        1083 => Base::Time,
        1266 => Base::TimeTz,
        869 => Base::Inet,
        650 => Base::Cidr,
        829 => Base::Macaddr,
        774 => Base::Macaddr8,
        3904 => Base::Int4Range,
        3906 => Base::NumRange,
        3908 => Base::TsRange,
        3910 => Base::TstzRange,
        3912 => Base::DateRange,
        3926 => Base::Int8Range,
        1114 => Base::Timestamp,
        1184 => Base::TimestampTz,
        1186 => Base::Interval,
        114 => return Ok(Type::json(false)),
        3802 => Base::Json,
        oid if let Some(ty) = Type::of_user_number(oid) => return Ok(ty),
        oid if let Some(element) = element_of(oid) => return type_of(element).map(Type::array_of),
        oid => {
            return Err(Error::new(Condition::UndefinedObject, format!("type with OID {oid} does not exist")));
        }
    }))
}

/// The type of arrays of a type.
fn array_of(element: u32) -> u32 {
    match element {
        16 => 1000,
        17 => 1001,
        19 => 1003,
        21 => 1005,
        23 => 1007,
        26 => 1028,
        20 => 1016,
        700 => 1021,
        701 => 1022,
        1700 => 1231,
        1043 => 1015,
        2950 => 2951,
        1082 => 1182,
        1083 => 1183,
        1266 => 1270,
        869 => 1041,
        650 => 651,
        829 => 1040,
        774 => 775,
        3904 | 3906 | 3908 | 3910 | 3912 | 3926 => element + 1,
        1114 => 1115,
        1184 => 1185,
        1186 => 1187,
        114 => 199,
        3802 => 3807,
        _ => 1009,
    }
}

/// The type of an array's elements.
pub(super) fn element_of(oid: u32) -> Option<u32> {
    Some(match oid {
        1000 => 16,
        1001 => 17,
        1005 => 21,
        1007 => 23,
        1016 => 20,
        1021 => 700,
        1022 => 701,
        1231 => 1700,
        1009 | 1003 => 25,
        1014 | 1015 => 1043,
        2951 => 2950,
        1182 => 1082,
        1183 => 1083,
        1270 => 1266,
        1041 => 869,
        651 => 650,
        1040 => 829,
        775 => 774,
        3905 | 3907 | 3909 | 3911 | 3913 | 3927 => oid - 1,
        1115 => 1114,
        1185 => 1184,
        1187 => 1186,
        1028 => 26,
        199 => 114,
        3807 => 3802,
        oid => return Type::of_user_number(oid).filter(|ty| ty.base == Base::Array).map(|ty| oid_of(ty.element())),
    })
}

/// Appends a value with its length; null is -1.
///
/// A moment is shown in a zone. None: in UTC.
pub(super) fn put_value(
    out: &mut Vec<u8>,
    value: &Value,
    ty: Type,
    is_binary: bool,
    zone: Option<&Zone>,
) -> Result<(), Error> {
    if value.is_null() {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return Ok(());
    }
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    match is_binary {
        true => put_binary(out, value, ty)?,
        false => put_plain(out, value, ty, zone),
    }
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Appends the text of a value, a moment as it is in a zone.
pub(super) fn put_plain(out: &mut Vec<u8>, value: &Value, ty: Type, zone: Option<&Zone>) {
    let mut buffer = itoa::Buffer::new();
    match value {
        Value::Null => {}
        Value::Bool(value) => out.push(if *value { b't' } else { b'f' }),
        Value::Int(value) => out.extend_from_slice(buffer.format(*value).as_bytes()),
        Value::Uint(value) => out.extend_from_slice(buffer.format(*value).as_bytes()),
        Value::Text(text) => out.extend_from_slice(text.as_bytes()),
        Value::Decimal(value) => put_decimal(out, value, ty),
        Value::Datetime(_) if ty.is_clock() => {
            out.extend_from_slice(sql::display_as(Dialect::Postgres, value, ty).as_bytes());
        }
        Value::Datetime(moment) => put_moment(out, moment, ty, zone),
        Value::Interval(_) | Value::Bytes(_) => {
            out.extend_from_slice(sql::display_in(Dialect::Postgres, value, ty, zone).as_bytes());
        }
        Value::Double(_) if ty.is_float() => {
            out.extend_from_slice(sql::display_as(Dialect::Postgres, value, ty).as_bytes());
        }
        Value::Document(_) if ty.base == Base::Array => {
            out.extend_from_slice(sql::display_in(Dialect::Postgres, value, ty, zone).as_bytes());
        }
        other => out.extend_from_slice(other.display(Dialect::Postgres).as_bytes()),
    }
}

/// A decimal, with as many digits behind the point as its column has.
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

fn put_moment(out: &mut Vec<u8>, moment: &Datetime, ty: Type, zone: Option<&Zone>) {
    if let Some(name) = sql::endless_name(moment) {
        return out.extend_from_slice(name.as_bytes());
    }
    let ahead = zone.filter(|_| ty.base == Base::TimestampTz).map_or(0, |zone| zone.ahead(moment));
    let moment = Datetime { seconds: moment.seconds.saturating_add(ahead), ..*moment };
    let (days, seconds) = (moment.seconds.div_euclid(86_400), moment.seconds.rem_euclid(86_400));
    let (year, month, day) = date_of(days);
    let (shown, is_before) = if year > 0 { (year, false) } else { (1 - year, true) };
    let _ = write!(out, "{shown:04}-{month:02}-{day:02}");
    if ty.base != Base::Date {
        let _ = write!(out, " {:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        let micros = moment.nanoseconds / 1000;
        if micros > 0 {
            let text = format!("{micros:06}");
            out.push(b'.');
            out.extend_from_slice(text.trim_end_matches('0').as_bytes());
        }
        if ty.base == Base::TimestampTz {
            match ahead {
                0 => out.extend_from_slice(b"+00"),
                ahead => out.extend_from_slice(sql::offset(ahead).as_bytes()),
            }
        }
    }
    if is_before {
        out.extend_from_slice(b" BC");
    }
}

/// Months, days, and microseconds of an interval.
fn parts_of(interval: &Interval) -> (i64, i64, i64) {
    let [years, months, weeks, days, hours, minutes, seconds, nanoseconds] = interval.fields;
    let whole = hours.wrapping_mul(3600).wrapping_add(minutes.wrapping_mul(60)).wrapping_add(seconds);
    let micros = whole.wrapping_mul(1_000_000).wrapping_add(nanoseconds / 1000);
    (years.wrapping_mul(12).wrapping_add(months), weeks.wrapping_mul(7).wrapping_add(days), micros)
}

fn put_binary(out: &mut Vec<u8>, value: &Value, ty: Type) -> Result<(), Error> {
    let out_of_range = || Error::new(Condition::NumericOutOfRange, format!("{ty} out of range"));
    match (oid_of(ty), value) {
        (16, Value::Bool(value)) => out.push(u8::from(*value)),
        (21, value) if value.as_integer().is_some() => {
            let number = value.as_integer().and_then(|value| i16::try_from(value).ok()).ok_or_else(out_of_range)?;
            out.extend_from_slice(&number.to_be_bytes());
        }
        (23, value) if value.as_integer().is_some() => {
            let number = value.as_integer().and_then(|value| i32::try_from(value).ok()).ok_or_else(out_of_range)?;
            out.extend_from_slice(&number.to_be_bytes());
        }
        (26, value) if value.as_integer().is_some() => {
            let number = value.as_integer().and_then(|value| u32::try_from(value).ok()).ok_or_else(out_of_range)?;
            out.extend_from_slice(&number.to_be_bytes());
        }
        (20, value) if value.as_integer().is_some() => {
            let number = value.as_integer().and_then(|value| i64::try_from(value).ok()).ok_or_else(out_of_range)?;
            out.extend_from_slice(&number.to_be_bytes());
        }
        (700, value) if value.as_double().is_some() => {
            out.extend_from_slice(&(value.as_double().unwrap_or_default() as f32).to_be_bytes());
        }
        (701, value) if value.as_double().is_some() => {
            out.extend_from_slice(&value.as_double().unwrap_or_default().to_be_bytes());
        }
        (1700, value) if value.as_decimal().is_some() => {
            put_numeric(out, &value.as_decimal().unwrap_or_else(|| Decimal::from(0i64)), ty)
        }
        (17, Value::Bytes(bytes)) => out.extend_from_slice(bytes),
        (650 | 774 | 829 | 869, value) if let Some(sent) = sql::network_to_wire(value, ty) => {
            out.extend_from_slice(&sent);
        }
        (2950, Value::Uuid(bytes)) => out.extend_from_slice(&bytes[..]),
        (1082, Value::Datetime(moment)) if let Some(name) = sql::endless_name(moment) => {
            let days = if name.starts_with('-') { i32::MIN } else { i32::MAX };
            out.extend_from_slice(&days.to_be_bytes());
        }
        (1114 | 1184, Value::Datetime(moment)) if let Some(name) = sql::endless_name(moment) => {
            let micros = if name.starts_with('-') { i64::MIN } else { i64::MAX };
            out.extend_from_slice(&micros.to_be_bytes());
        }
        (1082, Value::Datetime(moment)) => {
            let days = (moment.seconds - EPOCH_SECONDS).div_euclid(86_400);
            out.extend_from_slice(&i32::try_from(days).map_err(|_| out_of_range())?.to_be_bytes());
        }
        (1083, Value::Datetime(moment)) => {
            let micros = moment.seconds.saturating_mul(1_000_000).saturating_add(i64::from(moment.nanoseconds) / 1000);
            out.extend_from_slice(&micros.to_be_bytes());
        }
        (1266, Value::Datetime(moment)) => {
            // What the clock shows, and how far its zone is behind UTC.
            let ahead = i64::from(moment.offset) * 60;
            let micros = (moment.seconds + ahead).saturating_mul(1_000_000);
            let micros = micros.saturating_add(i64::from(moment.nanoseconds) / 1000);
            out.extend_from_slice(&micros.to_be_bytes());
            out.extend_from_slice(&(-(ahead as i32)).to_be_bytes());
        }
        (1114 | 1184, Value::Datetime(moment)) => {
            let micros = (moment.seconds - EPOCH_SECONDS).checked_mul(1_000_000);
            let micros = micros.map(|micros| micros + i64::from(moment.nanoseconds) / 1000).ok_or_else(out_of_range)?;
            out.extend_from_slice(&micros.to_be_bytes());
        }
        (1186, Value::Interval(interval)) => {
            let (months, days, micros) = parts_of(interval);
            out.extend_from_slice(&micros.to_be_bytes());
            out.extend_from_slice(&i32::try_from(days).map_err(|_| out_of_range())?.to_be_bytes());
            out.extend_from_slice(&i32::try_from(months).map_err(|_| out_of_range())?.to_be_bytes());
        }
        (_, value) if let (Some((flags, ends)), Some(of)) = (sql::range_parts(value, ty), ty.of_ends()) => {
            out.push(flags);
            for end in &ends {
                put_value(out, end, of, true, None)?;
            }
        }
        (3802, value) => {
            out.push(1);
            put_plain(out, value, ty, None);
        }
        (19 | 25 | 114 | 1043, value) => put_plain(out, value, ty, None),
        (_, value) if ty.base == Base::Enum => put_plain(out, value, ty, None),
        (_, Value::Document(_)) if ty.base == Base::Array => put_binary_array(out, value, ty)?,
        _ => {
            let what = format!("a value of the column is no {ty}: {}", value.display(Dialect::Postgres));
            return Err(Error::new(Condition::TypeMismatch, what).hint("Ask for the column as text, or cast it."));
        }
    }
    Ok(())
}

/// An array: its dimensions, whether it has nulls, the type of its elements, how many they are, and they.
fn put_binary_array(out: &mut Vec<u8>, array: &Value, ty: Type) -> Result<(), Error> {
    let mut lengths: Vec<usize> = Vec::new();
    let mut flat = vec![array.clone()];
    // Arrays of arrays have elements of one length.
    while let Some(Value::Document(_)) = flat.first()
        && lengths.len() < 6
    {
        let next: Vec<Value> = flat.iter().flat_map(sql::elements).collect();
        lengths.push(next.len() / flat.len());
        flat = next;
    }
    let element = match ty.element().base {
        Base::Any => Type::TEXT,
        _ => ty.element(),
    };
    let dimensions = if flat.is_empty() { &[] } else { &lengths[..] };
    out.extend_from_slice(&(dimensions.len() as u32).to_be_bytes());
    out.extend_from_slice(&u32::from(flat.iter().any(Value::is_null)).to_be_bytes());
    out.extend_from_slice(&oid_of(element).to_be_bytes());
    for length in dimensions {
        out.extend_from_slice(&(*length as u32).to_be_bytes());
        out.extend_from_slice(&1u32.to_be_bytes());
    }
    for value in &flat {
        put_value(out, value, element, true, None)?;
    }
    Ok(())
}

/// A number in groups of four digits: how many, the weight of the first, sign, digits behind the point, the groups.
fn put_numeric(out: &mut Vec<u8>, value: &Decimal, ty: Type) {
    let mut text = Vec::new();
    put_decimal(&mut text, value, ty);
    let text = String::from_utf8_lossy(&text).into_owned();
    let (is_negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.as_str()),
    };
    let (whole, behind) = text.split_once('.').unwrap_or((text, ""));
    let whole = whole.trim_start_matches('0');
    let padded = format!("{}{whole}", "0".repeat((4 - whole.len() % 4) % 4));
    let fraction = format!("{behind}{}", "0".repeat((4 - behind.len() % 4) % 4));
    let groups: Vec<u16> = [padded.as_bytes(), fraction.as_bytes()]
        .iter()
        .flat_map(|digits| digits.chunks(4))
        .map(|group| group.iter().fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0')))
        .collect();
    let first = groups.iter().position(|group| *group != 0).unwrap_or(groups.len());
    let last = groups.iter().rposition(|group| *group != 0).map_or(first, |last| last + 1);
    let weight = (padded.len() / 4) as i16 - 1 - first as i16;
    let shown = &groups[first..last.max(first)];
    out.extend_from_slice(&(shown.len() as u16).to_be_bytes());
    out.extend_from_slice(&(if shown.is_empty() { 0 } else { weight }).to_be_bytes());
    out.extend_from_slice(&(if is_negative && !shown.is_empty() { 0x4000u16 } else { 0 }).to_be_bytes());
    out.extend_from_slice(&(behind.len() as u16).to_be_bytes());
    shown.iter().for_each(|group| out.extend_from_slice(&group.to_be_bytes()));
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::super::parameters::read_value;
    use super::*;
    use proptest::prelude::*;
    use std::rc::Rc;

    fn plain(value: &Value, base: Base) -> String {
        let mut out = Vec::new();
        put_plain(&mut out, value, Type::of(base), None);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn moments_are_shown_as_their_types_are() {
        let moment = Value::Datetime(Rc::new(Datetime {
            seconds: 951_782_399,
            nanoseconds: 120_000_000,
            ..Datetime::default()
        }));
        assert_eq!(plain(&moment, Base::Date), "2000-02-28");
        assert_eq!(plain(&moment, Base::Timestamp), "2000-02-28 23:59:59.12");
        assert_eq!(plain(&moment, Base::TimestampTz), "2000-02-28 23:59:59.12+00");
        let interval = Interval { fields: [1, 2, 0, 3, 4, 5, 6, 700_000_000], ..Interval::default() };
        assert_eq!(plain(&Value::Interval(Rc::new(interval)), Base::Interval), "1 year 2 mons 3 days 04:05:06.7");
    }

    #[test]
    fn numbers_of_four_bytes_are_sent_in_four_bytes() {
        let value = Value::Double(f64::from(1_234_567.9f32));
        let mut out = Vec::new();
        put_value(&mut out, &value, Type::FLOAT, true, None).unwrap();
        assert_eq!((out.len(), oid_of(Type::FLOAT), size_of(Type::FLOAT)), (8, 700, 4));
        let again = read_value(&out[4..], 700, Type::FLOAT, true).unwrap();
        assert_eq!(again.order(&value), std::cmp::Ordering::Equal);
        out.clear();
        put_value(&mut out, &value, Type::FLOAT, false, None).unwrap();
        assert_eq!(&out[4..], b"1.2345679e+06");
        assert_eq!(oid_of(Type::array_of(Type::FLOAT)), 1021);
    }

    #[test]
    fn addresses_and_ranges_have_the_binary_form_of_postgresql() {
        for (base, text, sent) in [
            (Base::Inet, "192.168.0.1/24", &[2, 24, 0, 4, 192, 168, 0, 1][..]),
            (Base::Cidr, "10.0.0.0/8", &[2, 8, 1, 4, 10, 0, 0, 0]),
            (Base::Inet, "::1", &[3, 128, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
            (Base::Macaddr, "08:00:2b:01:02:03", &[8, 0, 43, 1, 2, 3]),
            (Base::Int4Range, "[1,5)", &[2, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 5]),
            (Base::Int8Range, "(,5)", &[8, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 5]),
            (Base::DateRange, "[2000-01-02,)", &[18, 0, 0, 0, 4, 0, 0, 0, 1]),
            (Base::NumRange, "(,)", &[24]),
            (Base::TsRange, "empty", &[1]),
        ] {
            let ty = Type::of(base);
            let value = read_value(text.as_bytes(), oid_of(ty), ty, false).unwrap();
            let mut out = Vec::new();
            put_value(&mut out, &value, ty, true, None).unwrap();
            assert_eq!(&out[4..], sent, "{text}");
            let again = read_value(sent, oid_of(ty), ty, true).unwrap();
            assert_eq!((again.order(&value), plain(&again, base)), (std::cmp::Ordering::Equal, text.to_string()));
        }
        // A network with bits behind its mask, an address of another length, ends that are missing or too many.
        for (base, sent) in [
            (Base::Cidr, &[2, 8, 1, 4, 10, 1, 0, 0][..]),
            (Base::Inet, &[2, 33, 0, 4, 10, 1, 0, 0]),
            (Base::Inet, &[3, 33, 0, 4, 10, 1, 0, 0]),
            (Base::Macaddr, &[8, 0, 43, 1, 2]),
            (Base::Int4Range, &[2, 0, 0, 0, 4, 0, 0, 0, 1]),
            (Base::Int4Range, &[1, 0]),
            (Base::Int4Range, &[2, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 4, 0, 0, 0, 1]),
        ] {
            let ty = Type::of(base);
            assert!(read_value(sent, oid_of(ty), ty, true).is_err(), "{sent:?}");
        }
    }

    #[test]
    fn arrays_are_read_as_they_are_written() {
        for (text, oid) in
            [("{}", 1007), ("{1,2,NULL}", 1007), ("{{1,2},{3,4}}", 1007), (r#"{"a b",c,"q\"\\","NULL"}"#, 1009)]
        {
            let value = read_value(text.as_bytes(), oid, Type::UNKNOWN, false).unwrap();
            assert_eq!(plain(&value, Base::Array), text);
        }
        for text in ["", "{", "{1,}", "{1}}", "{{1}", "1,2"] {
            assert!(read_value(text.as_bytes(), 1007, Type::UNKNOWN, false).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn binary_values_are_read_as_they_are_written(coefficient in any::<i64>(), scale in 0i32..20, number in any::<i64>(), double in any::<f64>()) {
            let decimal = Value::decimal(Decimal::new(i128::from(coefficient), scale).unwrap());
            for (value, base) in [
                (decimal, Base::Decimal),
                (Value::Int(number), Base::Int8),
                (Value::Double(double), Base::Double),
                (Value::text(number.to_string()), Base::Text),
                (Value::Bool(number > 0), Base::Bool),
                (Value::Datetime(Rc::new(Datetime { seconds: number % 100_000_000_000, nanoseconds: 1000, ..Datetime::default() })), Base::Timestamp),
            ] {
                let ty = Type::of(base);
                let mut out = Vec::new();
                put_value(&mut out, &value, ty, true, None).unwrap();
                let again = read_value(&out[4..], oid_of(ty), ty, true).unwrap();
                prop_assert_eq!(plain(&again, base), plain(&value, base));
            }
        }

        #[test]
        fn bytes_that_are_no_value_are_refused_and_nothing_else(bytes in proptest::collection::vec(any::<u8>(), 0..40), oid in prop::sample::select(vec![16u32, 17, 650, 774, 829, 869, 1041, 3904, 3906, 3910, 3912, 3926, 20, 21, 23, 25, 114, 700, 701, 1007, 1009, 1016, 1082, 1114, 1184, 1186, 1700, 2950, 3802])) {
            let _ = read_value(&bytes, oid, Type::UNKNOWN, true);
            let _ = read_value(&bytes, oid, Type::UNKNOWN, false);
        }
    }
}
