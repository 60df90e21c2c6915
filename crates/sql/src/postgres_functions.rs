//! Functions of daily use for text and moments that PostgreSQL has in its own way.

use crate::cast::{SMALL_DIGITS, display, from_hex, push_hex};
use crate::error::{Condition, Error, Result};
use crate::formats;
use crate::functions::{Function, Returns};
use crate::run::Run;
use crate::text::parts_of;
use crate::types::{Base, Type};
use crate::value::Value;
use base64::Engine;
use hashbrown::HashMap;
use std::fmt::Write;
use std::rc::Rc;
use tuple::datetime::{ADJUST_NONE, Datetime, Interval};
use tuple::decimal::Decimal;

const TEXT: Returns = Returns::Type(Base::Text);
const BYTES: Returns = Returns::Type(Base::Bytes);
const INTERVAL: Returns = Returns::Type(Base::Interval);
const DECIMAL: Returns = Returns::Type(Base::Decimal);
const STAMP: Returns = Returns::Type(Base::Timestamp);
const MOMENT: Returns = Returns::Type(Base::TimestampTz);
const DATE: Returns = Returns::Type(Base::Date);
const INT: Returns = Returns::Type(Base::Int4);
const BOOL: Returns = Returns::Type(Base::Bool);
const MANY: usize = usize::MAX;

fn text(value: &Value) -> Rc<str> {
    match value {
        Value::Text(text) => Rc::clone(text),
        other => display(crate::Dialect::Postgres, other).into(),
    }
}

fn int(value: &Value) -> i64 {
    let whole = value.as_integer().or_else(|| value.as_double().map(|double| double as i128));
    whole.map_or(0, |whole| i64::try_from(whole).unwrap_or(if whole > 0 { i64::MAX } else { i64::MIN }))
}

fn bytes(value: &Value) -> Rc<[u8]> {
    match value {
        Value::Bytes(bytes) => Rc::clone(bytes),
        other => text(other).as_bytes().into(),
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut out = String::new();
    push_hex(bytes, SMALL_DIGITS, &mut out);
    out
}

fn refused(what: impl Into<String>) -> Error {
    Error::new(Condition::InvalidArgument, what)
}

fn out_of_range(what: &str) -> Error {
    Error::new(Condition::NumericOutOfRange, format!("{what} out of range"))
}

/// The moment of a value. Errors: it is none.
fn moment(value: &Value) -> Result<Rc<Datetime>> {
    match value {
        Value::Datetime(moment) => Ok(Rc::clone(moment)),
        _ => Err(refused("a day or a moment is wanted")),
    }
}

fn interval(value: &Value) -> Result<Rc<Interval>> {
    match value {
        Value::Interval(interval) => Ok(Rc::clone(interval)),
        _ => Err(refused("an interval is wanted")),
    }
}

/// Seconds from 1970 to 2000, where PostgreSQL's clock begins.
const EPOCH_SECONDS: i64 = 946_684_800;

/// An interval of months, days and microseconds. Errors: `DatetimeOverflow`.
pub(crate) fn interval_of(months: i64, days: i64, micros: i128) -> Result<Value> {
    let beyond = || Error::new(Condition::DatetimeOverflow, "interval out of range");
    let micros = i64::try_from(micros).map_err(|_| beyond())?;
    if i32::try_from(months).is_err() || i32::try_from(days).is_err() {
        return Err(beyond());
    }
    let fields = [0, months, 0, days, 0, 0, micros / 1_000_000, micros % 1_000_000 * 1000];
    Ok(Value::Interval(Rc::new(Interval { fields, adjust: ADJUST_NONE })))
}

fn micros_of(moment: &Datetime) -> i128 {
    i128::from(moment.seconds) * 1_000_000 + i128::from(moment.nanoseconds / 1000)
}

/// What lies between two moments in years, months, days and so on, as one counts by the calendar.
fn age(later: &Datetime, earlier: &Datetime) -> Result<Value> {
    let (sign, later, earlier) =
        if micros_of(later) >= micros_of(earlier) { (1, later, earlier) } else { (-1, earlier, later) };
    let parts = |moment: &Datetime| {
        let (year, month, day) = tuple::datetime::date_of(moment.seconds.div_euclid(86_400));
        let micros = i128::from(moment.seconds.rem_euclid(86_400)) * 1_000_000 + i128::from(moment.nanoseconds / 1000);
        (year * 12 + i64::from(month) - 1, i64::from(day), micros)
    };
    let ((mut months, mut days, mut micros), (from_months, from_days, from_micros)) = (parts(later), parts(earlier));
    months -= from_months;
    days -= from_days;
    micros -= from_micros;
    if micros < 0 {
        micros += 86_400_000_000;
        days -= 1;
    }
    if days < 0 {
        // As many days as the month of the earlier one has.
        let (year, month) = (from_months.div_euclid(12), from_months.rem_euclid(12) + 1);
        days += crate::moments::length_of(year, month).unwrap_or(30);
        months -= 1;
    }
    interval_of(sign * months, sign * days, i128::from(sign) * micros)
}

fn civil(year: i64, month: i64, day: i64) -> Result<Datetime> {
    let wrong = || {
        Error::new(Condition::DatetimeOverflow, format!("date field value out of range: {year}-{month:02}-{day:02}"))
    };
    // Years before Christ are below zero, and none is zero.
    let counted = match year {
        0 => return Err(wrong()),
        year => year + i64::from(year < 0),
    };
    crate::moments::midnight(counted, month, day).and_then(crate::moments::day_within).ok_or_else(wrong)
}

/// A zone of time by its name or its offset. Errors: there is none.
///
/// PostgreSQL takes `+02` as POSIX does: for what is west of Greenwich.
pub(crate) fn zone(name: &str, is_posix: bool) -> Result<jiff::tz::TimeZone> {
    let trimmed = name.trim();
    // `<+05:30>-05:30`: a distance, and what it is called.
    if let Some((_, distance)) = trimmed.strip_prefix('<').and_then(|rest| rest.split_once('>'))
        && distance.starts_with(['+', '-'])
    {
        return zone(distance, true);
    }
    let unsigned = trimmed.strip_prefix(['+', '-']);
    if unsigned.is_some() || is_posix && trimmed.starts_with(|c: char| c.is_ascii_digit()) {
        let digits = unsigned.unwrap_or(trimmed);
        let sign = if trimmed.starts_with('-') != is_posix { -1 } else { 1 };
        let mut parts = digits.splitn(3, ':');
        let mut next = || parts.next().map_or(Some(0), |part| part.parse::<i32>().ok());
        if let (Some(hours), Some(minutes), Some(seconds)) = (next(), next(), next())
            && (0..26).contains(&hours)
            && (0..60).contains(&minutes)
            && (0..60).contains(&seconds)
            && let Ok(offset) = jiff::tz::Offset::from_seconds(sign * (hours * 3600 + minutes * 60 + seconds))
        {
            return Ok(jiff::tz::TimeZone::fixed(offset));
        }
    }
    let known = match trimmed.to_ascii_uppercase().as_str() {
        "UTC" | "GMT" | "Z" | "ZULU" | "SYSTEM" => Some(jiff::tz::TimeZone::UTC),
        _ => jiff::tz::TimeZone::get(trimmed).or_else(|_| jiff::tz::TimeZone::posix(trimmed)).ok(),
    };
    known.ok_or_else(|| refused(format!("time zone \"{name}\" not recognized")))
}

/// The zone that AT TIME ZONE names: also by an interval. Errors: there is none.
pub(crate) fn zone_of(value: &Value) -> Result<jiff::tz::TimeZone> {
    let Value::Interval(interval) = value else { return zone(&text(value), true) };
    let (months, days, micros) = parts_of(interval);
    let seconds = i32::try_from(micros / 1_000_000).ok().filter(|_| (months, days) == (0, 0));
    let offset = seconds.and_then(|seconds| jiff::tz::Offset::from_seconds(seconds).ok());
    offset.map(jiff::tz::TimeZone::fixed).ok_or_else(|| match (months, days) {
        (0, 0) => Error::new(Condition::ZoneDisplacement, "time zone displacement out of range"),
        _ => refused("interval time zone must not include months or days"),
    })
}

/// What a clock in a zone shows at a moment.
pub(crate) fn clock_in(zone: &jiff::tz::TimeZone, moment: &Datetime) -> Option<Datetime> {
    if crate::moments::endless_name(moment).is_some() {
        return Some(*moment);
    }
    let offset = crate::zones::offset_at(zone, moment.seconds);
    crate::moments::within(Datetime { seconds: moment.seconds.checked_add(offset)?, ..*moment })
}

/// When a clock in a zone shows a time.
pub(crate) fn moment_in(zone: &jiff::tz::TimeZone, clock: &Datetime) -> Option<Datetime> {
    if crate::moments::endless_name(clock).is_some() {
        return Some(*clock);
    }
    let Ok(shown) = jiff::Timestamp::from_second(clock.seconds) else {
        let seconds = clock.seconds - crate::zones::offset_at(zone, clock.seconds);
        return crate::moments::within(Datetime { seconds, ..*clock });
    };
    let civil = jiff::tz::TimeZone::UTC.to_datetime(shown);
    let found = zone.to_ambiguous_timestamp(civil);
    let found = match found.offset() {
        // An hour that comes twice is the second one.
        jiff::tz::AmbiguousOffset::Fold { .. } => found.later(),
        _ => found.compatible(),
    };
    let found = found.ok()?;
    Some(Datetime { seconds: found.as_second(), ..*clock })
}

fn encode(bytes: &[u8], form: &str) -> Result<String> {
    Ok(match form.to_ascii_lowercase().as_str() {
        "hex" => hex(bytes),
        "base64" => {
            let whole = base64::engine::general_purpose::STANDARD.encode(bytes);
            // In lines of 76 characters.
            let lines: Vec<&str> =
                whole.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap_or_default()).collect();
            lines.join("\n")
        }
        "escape" => {
            let mut out = String::new();
            for byte in bytes {
                match byte {
                    b'\\' => out.push_str("\\\\"),
                    0 | 0x80.. => _ = write!(out, "\\{byte:03o}"),
                    byte => out.push(*byte as char),
                }
            }
            out
        }
        other => return Err(refused(format!("unrecognized encoding: \"{other}\""))),
    })
}

fn decode(text: &str, form: &str) -> Result<Vec<u8>> {
    let spaces = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    match form.to_ascii_lowercase().as_str() {
        "hex" => from_hex(&spaces(text)).ok_or_else(|| refused("invalid hexadecimal data")),
        "base64" => base64::engine::general_purpose::STANDARD
            .decode(spaces(text))
            .map_err(|_| refused("invalid base64 end sequence")),
        "escape" => {
            let mut out = Vec::new();
            let mut rest = text.as_bytes();
            while let Some((byte, behind)) = rest.split_first() {
                rest = behind;
                if *byte != b'\\' {
                    out.push(*byte);
                    continue;
                }
                if rest.first() == Some(&b'\\') {
                    out.push(b'\\');
                    rest = &rest[1..];
                    continue;
                }
                let digits = rest.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
                let byte = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
                out.push(byte.ok_or_else(|| refused("invalid input syntax for type bytea"))?);
                rest = &rest[3..];
            }
            Ok(out)
        }
        other => Err(refused(format!("unrecognized encoding: \"{other}\""))),
    }
}

/// `format('%s %I %L', ...)`. The values are texts already.
fn formatted(run: &Run<'_>, a: &[Value]) -> Result<Value> {
    let pattern = text(&a[0]);
    let mut out = String::new();
    let mut next = 1;
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        if chars.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let mut digits = String::new();
        while let Some(digit) = chars.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        let mut at = next;
        let mut is_left = false;
        if !digits.is_empty() && chars.next_if_eq(&'$').is_some() {
            at = digits.parse::<usize>().map_err(|_| refused("format specifies an argument that there is not"))?;
            if at == 0 {
                return Err(refused("format specifies argument 0, but arguments are numbered from 1"));
            }
            digits.clear();
        }
        if chars.next_if_eq(&'-').is_some() {
            is_left = true;
        }
        while let Some(digit) = chars.next_if(char::is_ascii_digit) {
            digits.push(digit);
        }
        let width: usize = if digits.is_empty() { 0 } else { digits.parse().unwrap_or(usize::MAX) };
        run.check_length(width)?;
        next = at + 1;
        let kind = chars.next().ok_or_else(|| refused("unterminated format() type specifier"))?;
        let value = a.get(at).ok_or_else(|| refused("too few arguments for format()"))?;
        let shown = match kind {
            's' if value.is_null() => String::new(),
            's' => text(value).to_string(),
            'I' if value.is_null() => return Err(refused("null values cannot be formatted as an SQL identifier")),
            'I' => crate::catalog::quoted(&text(value)),
            'L' if value.is_null() => "NULL".to_string(),
            'L' => literal(&text(value)),
            other => return Err(refused(format!("unrecognized format() type specifier \"{other}\""))),
        };
        let has = shown.chars().count();
        let padding = " ".repeat(width.saturating_sub(has));
        out.push_str(&if is_left { shown + &padding } else { padding + &shown });
        run.check_length(out.len())?;
    }
    Ok(Value::text(out))
}

fn literal(text: &str) -> String {
    match text.contains('\\') {
        true => format!(" E'{}'", text.replace('\\', "\\\\").replace('\'', "''")).trim_start().to_string(),
        false => format!("'{}'", text.replace('\'', "''")),
    }
}

/// A part of a moment or an interval as an exact number, as EXTRACT gives it.
fn part(unit: &str, value: &Value) -> Result<Value> {
    let unit = unit.to_ascii_lowercase();
    let exact = |digits: i128, scale: i32| {
        Decimal::new(digits, scale).map(Value::decimal).ok_or_else(|| out_of_range("numeric"))
    };
    if let Value::Interval(interval) = value {
        let (months, days, micros) = parts_of(interval);
        let micros = i128::from(micros);
        return match unit.as_str() {
            "year" | "years" => exact(i128::from(months / 12), 0),
            "month" | "months" => exact(i128::from(months % 12), 0),
            "quarter" => exact(i128::from(months % 12 / 3 + 1), 0),
            "day" | "days" => exact(i128::from(days), 0),
            "hour" | "hours" => exact(micros / 3_600_000_000, 0),
            "minute" | "minutes" => exact(micros / 60_000_000 % 60, 0),
            "second" | "seconds" => exact(micros % 60_000_000, 6),
            "milliseconds" => exact(micros % 60_000_000, 3),
            "microseconds" => exact(micros % 60_000_000, 0),
            "epoch" => {
                // A year has 365.25 days, a month 30.
                let days = i128::from(months / 12) * 365 * 4 + i128::from(months / 12);
                let seconds = days * 21_600 + (i128::from(months % 12) * 30 + i128::from(days_of(interval))) * 86_400;
                exact(seconds * 1_000_000 + micros, 6)
            }
            "decade" | "decades" => exact(i128::from(months / 120), 0),
            "century" | "centuries" => exact(i128::from(months / 1200), 0),
            "millennium" | "millennia" => exact(i128::from(months / 12_000), 0),
            "week" | "dow" | "isodow" | "doy" | "isoyear" | "julian" | "timezone" | "timezone_hour"
            | "timezone_minute" => Err(Error::unsupported(format!("unit \"{unit}\" for type interval"))),
            other => Err(refused(format!("unit \"{other}\" not recognized for type interval"))),
        };
    }
    let moment = moment(value)?;
    if crate::moments::endless_name(&moment).is_some() {
        let has_end =
            !matches!(unit.as_str(), "epoch" | "year" | "century" | "decade" | "millennium" | "julian" | "isoyear");
        return if has_end { Ok(Value::Null) } else { Err(out_of_range("numeric")) };
    }
    let micros = i128::from(moment.seconds.rem_euclid(60)) * 1_000_000 + i128::from(moment.nanoseconds / 1000);
    match unit.as_str() {
        "second" | "seconds" => exact(micros, 6),
        "millisecond" | "milliseconds" => exact(micros, 3),
        "microsecond" | "microseconds" => exact(micros, 0),
        "epoch" => exact(micros_of(&moment), 6),
        "week" | "isoyear" => {
            let pattern = if unit == "week" { "IW" } else { "IYYY" };
            let shown = formats::moment_to_text(&moment, pattern)?;
            exact(shown.parse::<i128>().unwrap_or(0), 0)
        }
        "julian" => exact(i128::from(moment.seconds.div_euclid(86_400)) + 2_440_588, 0),
        // Of a moment, with the part of the day that is over.
        "julian_now" => {
            use crate::arithmetic::{Arithmetic, Manner, calculate};
            let number = |number: i64| Value::decimal(Decimal::from(number));
            let (day, second) = (moment.seconds.div_euclid(86_400), moment.seconds.rem_euclid(86_400));
            let micros = second * 1_000_000 + i64::from(moment.nanoseconds / 1000);
            let ty = crate::Type::of(Base::Decimal);
            let manner = Manner { zero_gives_null: false, short_quotients: false };
            let part = calculate(Arithmetic::Divide, ty, manner, &number(micros), &number(86_400_000_000))?;
            calculate(Arithmetic::Add, ty, manner, &number(day + 2_440_588), &part)
        }
        "millennium" => {
            exact((i128::from(tuple::datetime::date_of(moment.seconds.div_euclid(86_400)).0) + 999) / 1000, 0)
        }
        "timezone" | "timezone_hour" | "timezone_minute" => exact(0, 0),
        other => {
            let singular =
                other.strip_suffix('s').filter(|short| !short.is_empty() && other != "dows").unwrap_or(other);
            let found = crate::functions::date_part(singular, value)?;
            exact(found.as_double().unwrap_or(0.0) as i128, 0)
        }
    }
}

/// `date_trunc` of an interval.
fn interval_trunc(unit: &str, span: &Interval) -> Result<Value> {
    let (months, days, micros) = parts_of(span);
    let years = |count: i64| interval_of(months / (12 * count) * (12 * count), 0, 0);
    let clock = |unit: i64| interval_of(months, days, i128::from(micros / unit * unit));
    let unit = unit.to_ascii_lowercase();
    match unit.strip_suffix('s').unwrap_or(&unit) {
        "millennium" => years(1000),
        "century" => years(100),
        "decade" => years(10),
        "year" => years(1),
        "quarter" => interval_of(months / 3 * 3, 0, 0),
        "month" => interval_of(months, 0, 0),
        "day" => interval_of(months, days, 0),
        "hour" => clock(3_600_000_000),
        "minute" => clock(60_000_000),
        "second" => clock(1_000_000),
        "millisecond" => clock(1000),
        "microsecond" => clock(1),
        "week" => Err(Error::unsupported(format!("unit \"{unit}\" for type interval"))),
        _ => Err(refused(format!("unit \"{unit}\" not recognized for type interval"))),
    }
}

/// Two parts of a span, of which the greater has so many of the less: with one sign.
fn of_one_sign(great: i64, less: i64, unit: i64) -> (i64, i64) {
    match () {
        () if great > 0 && less < 0 => (great - 1, less + unit),
        () if great < 0 && less > 0 => (great + 1, less - unit),
        () => (great, less),
    }
}

/// Months, days and microseconds, each changed in one way: what is no whole month goes to days, and no whole day to the clock. Errors: `NumericOutOfRange`.
pub(crate) fn scaled(parts: (i64, i64, i64), times: impl Fn(f64) -> f64) -> Result<Value> {
    let (months, days, micros) = parts;
    let of_months = times(months as f64);
    let of_days = times(days as f64);
    let to_micros = |value: f64| (value * 1e6).round_ties_even() / 1e6;
    let left_days = to_micros(of_months.fract() * 30.0);
    let left_seconds = to_micros((of_days.fract() + left_days.fract()) * 86_400.0);
    let more_days = (left_seconds / 86_400.0).trunc();
    let left_seconds = left_seconds - more_days * 86_400.0;
    let whole_days = of_days.trunc() + left_days.trunc() + more_days;
    let clock = times(micros as f64) + left_seconds * 1e6;
    if !clock.is_finite() || clock.abs() > 9e18 || of_months.abs() > 2e9 || whole_days.abs() > 2e9 {
        return Err(Error::new(Condition::DatetimeOverflow, "interval out of range"));
    }
    interval_of(of_months.trunc() as i64, whole_days as i64, clock.round_ties_even() as i128)
}

fn days_of(interval: &Interval) -> i64 {
    parts_of(interval).1
}

crate::functions::alike! {
    is_volatile: false;
    "md5" (1, 1) TEXT, true => |_, a| {
        use md5::Digest;
        Ok(Value::text(hex(&md5::Md5::digest(&bytes(&a[0])[..]))))
    };
    // Of the extension pgcrypto.
    "digest" (2, 2) BYTES, true => |_, a| {
        use sha2::Digest;
        let data = bytes(&a[0]);
        Ok(Value::Bytes(match text(&a[1]).to_ascii_lowercase().as_str() {
            "md5" => md5::Md5::digest(&data[..])[..].into(),
            "sha1" => sha1::Sha1::digest(&data[..])[..].into(),
            "sha224" => sha2::Sha224::digest(&data[..])[..].into(),
            "sha256" => sha2::Sha256::digest(&data[..])[..].into(),
            "sha384" => sha2::Sha384::digest(&data[..])[..].into(),
            "sha512" => sha2::Sha512::digest(&data[..])[..].into(),
            other => return Err(refused(format!("Cannot use \"{other}\": No such hash algorithm"))),
        }))
    };
    "sha224" (1, 1) BYTES, true => |_, a| {
        use sha2::Digest;
        Ok(Value::Bytes(sha2::Sha224::digest(&bytes(&a[0])[..])[..].into()))
    };
    "sha256" (1, 1) BYTES, true => |_, a| {
        use sha2::Digest;
        Ok(Value::Bytes(sha2::Sha256::digest(&bytes(&a[0])[..])[..].into()))
    };
    "sha384" (1, 1) BYTES, true => |_, a| {
        use sha2::Digest;
        Ok(Value::Bytes(sha2::Sha384::digest(&bytes(&a[0])[..])[..].into()))
    };
    "sha512" (1, 1) BYTES, true => |_, a| {
        use sha2::Digest;
        Ok(Value::Bytes(sha2::Sha512::digest(&bytes(&a[0])[..])[..].into()))
    };
    "encode" (2, 2) TEXT, true => |run, a| {
        let found = encode(&bytes(&a[0]), &text(&a[1]))?;
        run.check_length(found.len())?;
        Ok(Value::text(found))
    };
    "decode" (2, 2) BYTES, true => |_, a| Ok(Value::Bytes(decode(&text(&a[0]), &text(&a[1]))?.into()));
    "convert_from" (2, 2) TEXT, true => |_, a| match std::str::from_utf8(&bytes(&a[0])) {
        Ok(text) => Ok(Value::text(text)),
        Err(_) => Err(Error::new(Condition::InvalidEncoding, "invalid byte sequence for encoding \"UTF8\"")),
    };
    "convert_to" (2, 2) BYTES, true => |_, a| Ok(Value::Bytes(bytes(&a[0])));
    "initcap" (1, 1) TEXT, true => |_, a| {
        let mut out = String::new();
        let mut is_within = false;
        for c in text(&a[0]).chars() {
            match is_within {
                true => out.extend(c.to_lowercase()),
                false => out.extend(c.to_uppercase()),
            }
            is_within = c.is_alphanumeric();
        }
        Ok(Value::text(out))
    };
    "translate" (3, 3) TEXT, true => |_, a| {
        let (from, to): (Vec<char>, Vec<char>) = (text(&a[1]).chars().collect(), text(&a[2]).chars().collect());
        let mut places: HashMap<char, Option<char>> = HashMap::new();
        for (at, c) in from.into_iter().enumerate() {
            // The first place of a character counts.
            places.entry(c).or_insert_with(|| to.get(at).copied());
        }
        let changed = |c: char| places.get(&c).copied().unwrap_or(Some(c));
        Ok(Value::text(text(&a[0]).chars().filter_map(changed).collect::<String>()))
    };
    "overlay" (3, 4) TEXT, true => |run, a| {
        let (whole, new, from) = (text(&a[0]), text(&a[1]), int(&a[2]));
        if from < 1 {
            return Err(Error::new(Condition::InvalidSubstring, "negative substring length not allowed"));
        }
        let count = a.get(3).map_or(new.chars().count() as i64, int);
        let skipped = from - 1;
        let start: String = whole.chars().take(skipped as usize).collect();
        let behind: String = whole.chars().skip(usize::try_from(skipped.saturating_add(count).max(0)).unwrap_or(usize::MAX)).collect();
        run.check_length(start.len() + new.len() + behind.len())?;
        Ok(Value::text(format!("{start}{new}{behind}")))
    };
    "format" (1, MANY) TEXT, false => |run, a| if a[0].is_null() { Ok(Value::Null) } else { formatted(run, a) };
    "quote_literal" (1, 1) TEXT, true => |_, a| Ok(Value::text(literal(&text(&a[0]))));
    "quote_nullable" (1, 1) TEXT, false => |_, a| Ok(Value::text(if a[0].is_null() { "NULL".to_string() } else { literal(&text(&a[0])) }));
    "bit_length" (1, 1) INT, true => |_, a| Ok(Value::Int(bytes(&a[0]).len() as i64 * 8));
    "to_hex" (1, 1) TEXT, true => |_, a| Ok(Value::text(match int(&a[0]) {
        number if i32::try_from(number).is_ok() && number < 0 => format!("{:x}", number as i32),
        number => format!("{number:x}"),
    }));
    "to_ascii" (1, 1) TEXT, true => |_, a| Ok(Value::Text(text(&a[0])));
    "unistr" (1, 1) TEXT, true => |_, a| Ok(Value::Text(text(&a[0])));
    "div" (2, 2) DECIMAL, true => |_, a| {
        let manner = crate::arithmetic::Manner { zero_gives_null: false, short_quotients: false };
        crate::arithmetic::calculate(crate::arithmetic::Arithmetic::DivideWhole, Type::of(Base::Decimal), manner, &a[0], &a[1])
    };
    "gcd" (2, 2) Returns::Common, true => |_, a| {
        let (mut x, mut y) = (a[0].as_integer().unwrap_or(0).abs(), a[1].as_integer().unwrap_or(0).abs());
        while y != 0 {
            (x, y) = (y, x % y);
        }
        Ok(Value::integer(x).unwrap_or_default())
    };
    "lcm" (2, 2) Returns::Common, true => |_, a| {
        let (x, y) = (a[0].as_integer().unwrap_or(0).abs(), a[1].as_integer().unwrap_or(0).abs());
        let (mut p, mut q) = (x, y);
        while q != 0 {
            (p, q) = (q, p % q);
        }
        Value::integer(if p == 0 { 0 } else { x / p * y }).ok_or_else(|| out_of_range("integer"))
    };
    "width_bucket" (4, 4) INT, true => |_, a| {
        let number = |at: usize| a[at].as_double().unwrap_or(0.0);
        let (value, low, high, count) = (number(0), number(1), number(2), int(&a[3]));
        if count <= 0 || low == high {
            return Err(refused("count must be greater than zero"));
        }
        let share = (value - low) / (high - low);
        Ok(Value::Int(if share < 0.0 { 0 } else if share >= 1.0 { count + 1 } else { (share * count as f64) as i64 + 1 }))
    };
    "num_nulls" (1, MANY) INT, false => |_, a| Ok(Value::Int(a.iter().filter(|value| value.is_null()).count() as i64));
    "num_nonnulls" (1, MANY) INT, false => |_, a| Ok(Value::Int(a.iter().filter(|value| !value.is_null()).count() as i64));
    "to_char_here" (2, 2) TEXT, true => |run, a| {
        let moment = moment(&a[0])?;
        let (name, ahead) = run.zone().map_or_else(|| ("UTC".to_string(), 0), |zone| (zone.abbreviation(&moment), zone.ahead(&moment)));
        let clock = Datetime { seconds: moment.seconds.saturating_add(ahead), ..*moment };
        Ok(Value::text(formats::moment_to_text_in(&clock, &text(&a[1]), &name, ahead)?))
    };
    "to_char_moment" (2, 2) TEXT, true => |_, a| Ok(Value::text(formats::moment_to_text(&*moment(&a[0])?, &text(&a[1]))?));
    "to_char_interval" (2, 2) TEXT, true => |_, a| {
        Ok(Value::text(formats::span_to_text(parts_of(&*interval(&a[0])?), &text(&a[1]))?))
    };
    "to_char_number" (2, 2) TEXT, true => |_, a| {
        let value = a[0].as_decimal().ok_or_else(|| out_of_range("numeric"))?;
        Ok(Value::text(formats::number_to_text(value, &text(&a[1]))?))
    };
    "to_date" (2, 2) DATE, true => |_, a| {
        let found = formats::moment_of_text(&text(&a[0]), &text(&a[1]))?;
        let seconds = found.seconds.div_euclid(86_400) * 86_400;
        Ok(Value::Datetime(Rc::new(Datetime { seconds, ..Datetime::default() })))
    };
    "to_timestamp" (1, 2) MOMENT, true => |_, a| match a.get(1) {
        Some(pattern) => Ok(Value::Datetime(Rc::new(formats::moment_of_text(&text(&a[0]), &text(pattern))?))),
        None => {
            let seconds = a[0].as_double().or_else(|| text(&a[0]).parse().ok()).ok_or_else(|| refused("a number is wanted"))?;
            if seconds.is_nan() {
                return Err(Error::new(Condition::DatetimeOverflow, "timestamp cannot be NaN"));
            }
            if seconds.is_infinite() {
                return Ok(Value::Datetime(Rc::new(crate::moments::endless(seconds > 0.0))));
            }
            // Rounded as seconds from 2000 on.
            let micros = ((seconds - EPOCH_SECONDS as f64) * 1e6).round_ties_even() as i64;
            let found = crate::moments::within(Datetime {
                seconds: micros.div_euclid(1_000_000).saturating_add(EPOCH_SECONDS),
                nanoseconds: (micros.rem_euclid(1_000_000) * 1000) as i32,
                ..Datetime::default()
            });
            let beyond = || Error::new(Condition::DatetimeOverflow, format!("timestamp out of range: \"{seconds}\""));
            found.map(|moment| Value::Datetime(Rc::new(moment))).ok_or_else(beyond)
        }
    };
    "to_number" (2, 2) DECIMAL, true => |_, a| Ok(Value::decimal(formats::number_of_text(&text(&a[0]))?));
    "age" (1, 2) INTERVAL, true => |run, a| match a.get(1) {
        Some(earlier) => age(&*moment(&a[0])?, &*moment(earlier)?),
        None => {
            let today = crate::time_functions::now(run).div_euclid(crate::clock::DAY) * 86_400;
            age(&Datetime { seconds: today, ..Datetime::default() }, &*moment(&a[0])?)
        }
    };
    "moments_between" (2, 2) INTERVAL, true => |_, a| {
        for value in a {
            if crate::moments::endless_name(&*moment(value)?).is_some() {
                return Err(Error::new(Condition::DatetimeOverflow, "cannot subtract infinite timestamps"));
            }
        }
        let micros = micros_of(&*moment(&a[0])?) - micros_of(&*moment(&a[1])?);
        interval_of(0, (micros / 86_400_000_000) as i64, micros % 86_400_000_000)
    };
    "days_later" (3, 3) DATE, true => |_, a| {
        let days = int(&a[1]).checked_mul(int(&a[2])).and_then(|days| days.checked_mul(86_400));
        let day = moment(&a[0])?;
        if crate::moments::endless_name(&day).is_some() {
            return Ok(a[0].clone());
        }
        let seconds = days.and_then(|days| day.seconds.checked_add(days));
        let found = seconds.and_then(|seconds| crate::moments::day_within(Datetime { seconds, ..*day }));
        let beyond = || Error::new(Condition::DatetimeOverflow, "date out of range");
        found.map(|day| Value::Datetime(Rc::new(day))).ok_or_else(beyond)
    };
    "intervals_added" (3, 3) INTERVAL, true => |_, a| {
        let ((m, d, t), (n, e, u)) = (parts_of(&*interval(&a[0])?), parts_of(&*interval(&a[1])?));
        let sign = int(&a[2]);
        interval_of(m.saturating_add(n.saturating_mul(sign)), d.saturating_add(e.saturating_mul(sign)), i128::from(t) + i128::from(sign) * i128::from(u))
    };
    "interval_times" (3, 3) INTERVAL, true => |_, a| {
        let (months, days, micros) = parts_of(&*interval(&a[0])?);
        let factor = a[1].as_double().unwrap_or(0.0);
        let is_quotient = int(&a[2]) < 0;
        if is_quotient && factor == 0.0 {
            return Err(Error::new(Condition::DivisionByZero, "division by zero"));
        }
        let times = |value: f64| if is_quotient { value / factor } else { value * factor };
        scaled((months, days, micros), times)
    };
    "justify_hours" (1, 1) INTERVAL, true => |_, a| {
        let (months, days, micros) = parts_of(&*interval(&a[0])?);
        let (days, micros) = of_one_sign(days.saturating_add(micros / 86_400_000_000), micros % 86_400_000_000, 86_400_000_000);
        interval_of(months, days, i128::from(micros))
    };
    "justify_days" (1, 1) INTERVAL, true => |_, a| {
        let (months, days, micros) = parts_of(&*interval(&a[0])?);
        let (months, days) = of_one_sign(months.saturating_add(days / 30), days % 30, 30);
        interval_of(months, days, i128::from(micros))
    };
    "justify_interval" (1, 1) INTERVAL, true => |_, a| {
        let (months, days, micros) = parts_of(&*interval(&a[0])?);
        let (days, micros) = (days.saturating_add(micros / 86_400_000_000), micros % 86_400_000_000);
        let (mut months, mut days) = (months.saturating_add(days / 30), days % 30);
        if months > 0 && (days < 0 || days == 0 && micros < 0) {
            (months, days) = (months - 1, days + 30);
        } else if months < 0 && (days > 0 || days == 0 && micros > 0) {
            (months, days) = (months + 1, days - 30);
        }
        let (days, micros) = of_one_sign(days, micros, 86_400_000_000);
        interval_of(months, days, i128::from(micros))
    };
    "interval_trunc" (2, 2) INTERVAL, true => |_, a| interval_trunc(&text(&a[0]), &*interval(&a[1])?);
    "make_date" (3, 3) DATE, true => |_, a| Ok(Value::Datetime(Rc::new(civil(int(&a[0]), int(&a[1]), int(&a[2]))?)));
    "make_timestamp" (6, 6) STAMP, true => make_timestamp;
    "make_timestamptz" (6, 6) MOMENT, true => make_timestamp;
    "make_interval" (0, 7) INTERVAL, true => |_, a| {
        let part = |at: usize| a.get(at).map_or(0, int);
        let seconds = a.get(6).and_then(Value::as_double).unwrap_or(0.0);
        let clock = i128::from(part(4)) * 3_600_000_000 + i128::from(part(5)) * 60_000_000 + (seconds * 1e6).round() as i128;
        interval_of(part(0).saturating_mul(12).saturating_add(part(1)), part(2).saturating_mul(7).saturating_add(part(3)), clock)
    };
    "part_of_day" (2, 2) DECIMAL, true => |_, a| match &*text(&a[0]) {
        "epoch" => Ok(Value::decimal(Decimal::from(moment(&a[1])?.seconds))),
        unit => Err(Error::new(Condition::Unsupported, format!("unit \"{unit}\" not supported for type date"))),
    };
    "julian_part" (2, 2) DECIMAL, true => |_, a| part("julian_now", &a[1]);
    "unzoned_part" (2, 2) DECIMAL, true => |_, a| match crate::moments::endless_name(&*moment(&a[1])?) {
        Some(_) => Ok(Value::Null),
        None => Err(Error::unsupported(format!("unit \"{}\" for type timestamp without time zone", text(&a[0])))),
    };
    "extract_part" (2, 2) DECIMAL, true => |_, a| part(&text(&a[0]), &a[1]);
    "at_zone" (2, 2) STAMP, true => |_, a| {
        let shown = clock_in(&zone_of(&a[1])?, &*moment(&a[0])?);
        shown.map(|moment| Value::Datetime(Rc::new(moment))).ok_or_else(|| Error::new(Condition::DatetimeOverflow, "timestamp out of range"))
    };
    "of_zone" (2, 2) MOMENT, true => |_, a| {
        let found = moment_in(&zone_of(&a[1])?, &*moment(&a[0])?);
        found.map(|moment| Value::Datetime(Rc::new(moment))).ok_or_else(|| Error::new(Condition::DatetimeOverflow, "timestamp out of range"))
    };
    "of_said_zone" (2, 2) MOMENT, true => |_, a| {
        let found = moment_in(&zone(&text(&a[1]), false)?, &*moment(&a[0])?);
        found.map(|moment| Value::Datetime(Rc::new(moment))).ok_or_else(|| Error::new(Condition::DatetimeOverflow, "timestamp out of range"))
    };
    "isfinite" (1, 1) BOOL, true => |_, a| Ok(Value::Bool(match &a[0] {
        Value::Datetime(moment) => crate::moments::endless_name(moment).is_none(),
        _ => true,
    }));
}

fn make_timestamp(_: &mut Run<'_>, a: &[Value]) -> Result<Value> {
    let day = civil(int(&a[0]), int(&a[1]), int(&a[2]))?;
    let (hour, minute, seconds) = (int(&a[3]), int(&a[4]), a[5].as_double().unwrap_or(0.0));
    if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0.0..60.0).contains(&seconds) {
        let what = format!("time field value out of range: {hour}:{minute:02}:{seconds}");
        return Err(Error::new(Condition::DatetimeOverflow, what));
    }
    let micros = (seconds * 1e6).round() as i64;
    let found = crate::moments::within(Datetime {
        seconds: day.seconds + hour * 3600 + minute * 60 + micros / 1_000_000,
        nanoseconds: (micros % 1_000_000 * 1000) as i32,
        ..Datetime::default()
    });
    let beyond = || Error::new(Condition::DatetimeOverflow, "timestamp out of range");
    found.map(|moment| Value::Datetime(Rc::new(moment))).ok_or_else(beyond)
}

/// The function of a name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}
