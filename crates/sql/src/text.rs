//! Values as text, as their types say: what a moment or an array is written like.

use crate::cast::display;
use crate::dialect::Dialect;
use crate::types::{Base, Type};
use crate::value::Value;
use crate::zones::Zone;
use std::fmt::Write;
use tuple::datetime::{Datetime, Interval, date_of};

/// The value of a type as text, moments in UTC.
pub fn display_as(dialect: Dialect, value: &Value, ty: Type) -> String {
    display_in(dialect, value, ty, None)
}

/// The value of a type as text, moments as PostgreSQL shows them in a zone. None: in UTC.
pub fn display_in(dialect: Dialect, value: &Value, ty: Type, zone: Option<&Zone>) -> String {
    if let (Dialect::Mysql, Value::Datetime(_), Base::Date) = (dialect, value, ty.base) {
        let mut text = display(dialect, value);
        text.truncate(text.find(' ').unwrap_or(text.len()));
        return text;
    }
    if let (Dialect::Mysql, Value::Datetime(moment), Base::Timestamp, 1..) = (dialect, value, ty.base, ty.length) {
        let mut text = crate::mysql::moments::display(&Datetime { nanoseconds: 0, ..**moment });
        let digits = (ty.length - 1).min(6) as usize;
        if digits > 0 {
            let _ = write!(text, ".{}", &format!("{:06}", moment.nanoseconds / 1000)[..digits]);
        }
        return text;
    }
    if let (Value::Datetime(moment), Base::Time) = (value, ty.base) {
        return match dialect {
            Dialect::Mysql => crate::clock::display_in_mysql(moment, ty),
            _ => crate::clock::display(moment),
        };
    }
    if let (Value::Datetime(moment), Base::TimeTz) = (value, ty.base) {
        return crate::clock::display_zoned(moment);
    }
    if let Value::Bytes(bytes) = value
        && let Some(text) = crate::net::display(bytes, ty).or_else(|| crate::range::display(bytes, ty, zone))
    {
        return text;
    }
    match (value, ty.double_digits()) {
        (Value::Double(double), Some(digits)) if double.is_finite() => {
            return crate::cast::display_fixed(*double, digits);
        }
        (Value::Double(double), _) if ty.is_float() => return crate::cast::display_float(dialect, *double),
        _ => {}
    }
    if dialect != Dialect::Postgres {
        return display(dialect, value);
    }
    let mut out = String::new();
    match value {
        Value::Datetime(moment) => put_moment(&mut out, moment, ty, zone),
        Value::Interval(interval) => put_interval(&mut out, interval),
        Value::Document(_) if ty.is_vector() => {
            let all: Vec<String> =
                crate::array::elements(value).iter().map(|element| display(dialect, element)).collect();
            out.push_str(&all.join(" "));
        }
        Value::Document(_) if ty.base == Base::Array => put_array(&mut out, value, ty, zone),
        Value::Decimal(_) if ty.base == Base::Decimal && ty.length > 0 => {
            out.push_str(&display(dialect, value));
            let behind = out.split_once('.').map_or(0, |(_, digits)| digits.len());
            if behind == 0 && ty.scale > 0 {
                out.push('.');
            }
            out.extend(std::iter::repeat_n('0', (ty.scale as usize).saturating_sub(behind)));
        }
        value => return display(dialect, value),
    }
    out
}

/// `2026-01-31 12:00:00.5`.
fn put_moment(out: &mut String, moment: &Datetime, ty: Type, zone: Option<&Zone>) {
    if let Some(name) = crate::moments::endless_name(moment) {
        return out.push_str(name);
    }
    let ahead = zone.filter(|_| ty.base == Base::TimestampTz).map_or(0, |zone| zone.ahead(moment));
    let moment = Datetime { seconds: moment.seconds.saturating_add(ahead), ..*moment };
    let (days, seconds) = (moment.seconds.div_euclid(86_400), moment.seconds.rem_euclid(86_400));
    let (year, month, day) = date_of(days);
    let (shown, is_before) = if year > 0 { (year, false) } else { (1 - year, true) };
    let _ = write!(out, "{shown:04}-{month:02}-{day:02}");
    if ty.base != Base::Date {
        let _ = write!(out, " {:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        put_fraction(out, i64::from(moment.nanoseconds) / 1000);
        if ty.base == Base::TimestampTz {
            out.push_str(&offset(ahead));
        }
    }
    if is_before {
        out.push_str(" BC");
    }
}

/// How far a zone is ahead of UTC, as it stands behind a moment.
pub fn offset(ahead: i64) -> String {
    let (sign, seconds) = if ahead < 0 { ('-', -ahead) } else { ('+', ahead) };
    let mut out = format!("{sign}{:02}", seconds / 3600);
    if seconds % 3600 != 0 {
        let _ = write!(out, ":{:02}", seconds / 60 % 60);
    }
    if seconds % 60 != 0 {
        let _ = write!(out, ":{:02}", seconds % 60);
    }
    out
}

fn put_fraction(out: &mut String, micros: i64) {
    if micros > 0 {
        let text = format!("{micros:06}");
        out.push('.');
        out.push_str(text.trim_end_matches('0'));
    }
}

/// Months, days, and microseconds of an interval.
pub(crate) fn parts_of(interval: &Interval) -> (i64, i64, i64) {
    let [years, months, weeks, days, hours, minutes, seconds, nanoseconds] = interval.fields;
    let whole = hours.wrapping_mul(3600).wrapping_add(minutes.wrapping_mul(60)).wrapping_add(seconds);
    let micros = whole.wrapping_mul(1_000_000).wrapping_add(nanoseconds / 1000);
    (years.wrapping_mul(12).wrapping_add(months), weeks.wrapping_mul(7).wrapping_add(days), micros)
}

/// `1 year 2 mons 3 days 04:05:06`.
fn put_interval(out: &mut String, interval: &Interval) {
    let (months, days, micros) = parts_of(interval);
    let mut was_negative = false;
    for (count, name) in [(months / 12, "year"), (months % 12, "mon"), (days, "day")] {
        if count != 0 {
            let space = if out.is_empty() { "" } else { " " };
            let sign = if was_negative && count > 0 { "+" } else { "" };
            let plural = if count == 1 { "" } else { "s" };
            let _ = write!(out, "{space}{sign}{count} {name}{plural}");
            was_negative = count < 0;
        }
    }
    if micros != 0 || out.is_empty() {
        let space = if out.is_empty() { "" } else { " " };
        let sign = match micros < 0 {
            true => "-",
            false if was_negative => "+",
            false => "",
        };
        let micros = micros.unsigned_abs();
        let seconds = micros / 1_000_000;
        let _ = write!(out, "{space}{sign}{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
        put_fraction(out, (micros % 1_000_000) as i64);
    }
}

/// `{1,2,"a b",NULL}`.
fn put_array(out: &mut String, array: &Value, ty: Type, zone: Option<&Zone>) {
    out.push('{');
    for (number, element) in crate::array::elements(array).iter().enumerate() {
        out.push_str(if number > 0 { "," } else { "" });
        match element {
            Value::Null => out.push_str("NULL"),
            Value::Document(bytes) if bytes.first().is_some_and(|byte| is_array(*byte)) => {
                put_array(out, element, ty, zone)
            }
            Value::Bool(value) => out.push(if *value { 't' } else { 'f' }),
            Value::Int(_) | Value::Uint(_) | Value::Double(_) => {
                out.push_str(&display_as(Dialect::Postgres, element, ty.element()));
            }
            element => {
                let text = display_in(Dialect::Postgres, element, ty.element(), zone);
                let is_plain = !text.is_empty()
                    && !text.eq_ignore_ascii_case("null")
                    && !text.contains([',', '{', '}', '"', '\\', ' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
                if is_plain {
                    out.push_str(&text);
                    continue;
                }
                out.push('"');
                for c in text.chars() {
                    if matches!(c, '"' | '\\') {
                        out.push('\\');
                    }
                    out.push(c);
                }
                out.push('"');
            }
        }
    }
    out.push('}');
}

/// True if a document of msgpack that begins so is an array.
fn is_array(first: u8) -> bool {
    matches!(first, 0x90..=0x9f | 0xdc | 0xdd)
}
