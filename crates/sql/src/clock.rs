//! TIME: what a clock shows, and in MySQL's dialect spans of up to 838 hours.
//!
//! A value is the moment that lies so far from the first one of 1970, so spaces keep, order and index it as they do moments, and Lua sees a `datetime`. What
//! it is shown as, its type says.

use crate::error::{Condition, Error, Result};
use crate::types::{Base, Type};
use crate::value::Value;
use crate::zones::Zone;
use std::fmt::Write;
use std::rc::Rc;
use tuple::datetime::Datetime;

/// Nanoseconds of a second, and of a day.
pub(crate) const SECOND: i64 = 1_000_000_000;
pub(crate) const DAY: i64 = 86_400 * SECOND;
/// The longest span of MySQL's, without parts of a second.
pub(crate) const LONGEST_SECONDS: i64 = 838 * 3600 + 59 * 60 + 59;

/// The value of a span of nanoseconds.
pub(crate) fn value_of(nanos: i64) -> Value {
    Value::Datetime(Rc::new(Datetime {
        seconds: nanos.div_euclid(SECOND),
        nanoseconds: nanos.rem_euclid(SECOND) as i32,
        ..Datetime::default()
    }))
}

/// The span that a value is, in nanoseconds.
pub(crate) fn nanos_of(moment: &Datetime) -> i64 {
    moment.seconds.saturating_mul(SECOND).saturating_add(i64::from(moment.nanoseconds))
}

/// What the clock shows at a moment.
pub(crate) fn of_moment(moment: &Datetime) -> i64 {
    moment.seconds.rem_euclid(86_400) * SECOND + i64::from(moment.nanoseconds)
}

/// The span with as many digits of a second as its type has.
pub(crate) fn rounded(nanos: i64, to: Type) -> i64 {
    let digits = if to.length == 0 { 6 } else { (to.length - 1).min(6) };
    let unit = 10i64.pow(9 - digits);
    // Away from nothing, on both sides of it.
    let half = if nanos < 0 { -unit / 2 } else { unit / 2 };
    (nanos + half) / unit * unit
}

/// `12:34:56.5`, as PostgreSQL writes it.
pub(crate) fn display(moment: &Datetime) -> String {
    let nanos = nanos_of(moment);
    let mut out = spelled(nanos);
    let micros = (nanos.abs() % SECOND) / 1000;
    if micros > 0 {
        let digits = format!("{micros:06}");
        let _ = write!(out, ".{}", digits.trim_end_matches('0'));
    }
    out
}

/// The same as MySQL writes it: with as many digits of a second as the type says, or six if there are some and nothing is said.
pub(crate) fn display_in_mysql(moment: &Datetime, ty: Type) -> String {
    let nanos = nanos_of(moment);
    let mut out = spelled(nanos);
    let micros = (nanos.abs() % SECOND) / 1000;
    let digits = match ty.length {
        0 if micros == 0 => 0,
        0 => 6,
        length => (length - 1).min(6) as usize,
    };
    if digits > 0 {
        let _ = write!(out, ".{}", &format!("{micros:06}")[..digits]);
    }
    out
}

fn spelled(nanos: i64) -> String {
    let (sign, seconds) = if nanos < 0 { ("-", -nanos / SECOND) } else { ("", nanos / SECOND) };
    format!("{sign}{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// A text of PostgreSQL's: `12:34`, `123456.5`, `4:05 PM`, a moment whose day is passed over. Errors: `InvalidDatetime`, `DatetimeOverflow`.
pub(crate) fn parse(text: &str) -> Result<i64> {
    let invalid = || Error::new(Condition::InvalidDatetime, format!("invalid input syntax for type time: \"{text}\""));
    let overflow =
        || Error::new(Condition::DatetimeOverflow, format!("date/time field value out of range: \"{text}\""));
    let mut clock = None;
    let mut is_afternoon = None;
    let lower = text.trim().to_ascii_lowercase();
    for word in lower.split_whitespace() {
        match word {
            "allballs" => clock = Some(0),
            "am" => is_afternoon = Some(false),
            "pm" => is_afternoon = Some(true),
            "z" | "utc" | "gmt" => {}
            // A day.
            day if clock.is_none()
                && !day.contains(':')
                && day.matches(['-', '/']).count() == 2
                && !day.contains('t') => {}
            word => {
                if clock.is_some() {
                    // Of a zone nothing is kept.
                    match word.starts_with(['+', '-']) {
                        true => continue,
                        false => return Err(invalid()),
                    }
                }
                let word = word
                    .split_once('t')
                    .filter(|(day, _)| day.matches('-').count() == 2 || day.is_empty())
                    .map_or(word, |(_, rest)| rest);
                let (word, half) = match (word.strip_suffix("am"), word.strip_suffix("pm")) {
                    (Some(rest), _) => (rest, Some(false)),
                    (_, Some(rest)) => (rest, Some(true)),
                    _ => (word, None),
                };
                is_afternoon = is_afternoon.or(half);
                let end = word.find(['+', '-', 'z']).filter(|end| *end > 0).unwrap_or(word.len());
                clock = Some(parts(&word[..end]).ok_or_else(invalid)?.ok_or_else(overflow)?);
            }
        }
    }
    let nanos = clock.ok_or_else(invalid)?;
    let hour = nanos / (3600 * SECOND);
    match is_afternoon {
        Some(_) if !(1..=12).contains(&hour) => Err(overflow()),
        Some(true) if hour < 12 => Ok(nanos + 12 * 3600 * SECOND),
        Some(false) if hour == 12 => Ok(nanos - 12 * 3600 * SECOND),
        _ => Ok(nanos),
    }
}

/// The value of what a clock shows whose zone is so many seconds ahead. Errors: no zone is so far away that a row can hold it.
pub(crate) fn zoned(nanos: i64, ahead: i64) -> Result<Value> {
    let moment = Datetime {
        seconds: nanos.div_euclid(SECOND) - ahead,
        nanoseconds: nanos.rem_euclid(SECOND) as i32,
        offset: i16::try_from(ahead / 60).unwrap_or(i16::MAX),
        zone: 0,
    };
    match ahead % 60 == 0 && moment.is_good() {
        true => Ok(Value::Datetime(Rc::new(moment))),
        false => Err(Error::new(Condition::ZoneDisplacement, "time zone displacement out of range")),
    }
}

/// What the clock shows, in nanoseconds, and the seconds that its zone is ahead.
pub(crate) fn clock_of_zoned(moment: &Datetime) -> (i64, i64) {
    let ahead = i64::from(moment.offset) * 60;
    (nanos_of(moment).saturating_add(ahead * SECOND), ahead)
}

/// The same with as many digits of a second as its type has.
pub(crate) fn rounded_zoned(moment: Datetime, to: Type) -> Value {
    let nanos = rounded(nanos_of(&moment), to);
    let (seconds, nanoseconds) = (nanos.div_euclid(SECOND), nanos.rem_euclid(SECOND) as i32);
    Value::Datetime(Rc::new(Datetime { seconds, nanoseconds, ..moment }))
}

/// `12:34:56.5+02`.
pub(crate) fn display_zoned(moment: &Datetime) -> String {
    let (nanos, ahead) = clock_of_zoned(moment);
    match value_of(nanos) {
        Value::Datetime(clock) => display(&clock) + &crate::text::offset(ahead),
        _ => String::new(),
    }
}

/// A text of PostgreSQL's `timetz`; one without a zone has that of the session, as it is at a moment. Errors: as [`parse`].
pub(crate) fn parse_zoned(text: &str, here: Option<&Zone>, now_seconds: i64, to: Type) -> Result<Value> {
    let invalid = || {
        let what = format!("invalid input syntax for type time with time zone: \"{text}\"");
        Error::new(Condition::InvalidDatetime, what)
    };
    let now = Datetime { seconds: now_seconds, ..Datetime::default() };
    let clock_at = text.find(':').ok_or_else(invalid)?;
    let end = text[clock_at..]
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, ':' | '.')))
        .map_or(text.len(), |at| clock_at + at);
    let (head, mut rest) = (&text[..end], text[end..].trim());
    let mut clock = head.to_string();
    if let Some(half) = rest.get(..2).filter(|half| half.eq_ignore_ascii_case("am") || half.eq_ignore_ascii_case("pm"))
    {
        clock = format!("{head} {half}");
        rest = rest[2..].trim();
    }
    let nanos = parse(&clock).map_err(|error| match error.condition() {
        Condition::InvalidDatetime => invalid(),
        _ => error,
    })?;
    let ahead = match rest {
        "" => here.map_or(0, |zone| zone.ahead(&now)),
        "Z" | "z" => 0,
        name => {
            if crate::moments::is_far(text) {
                let what = format!("time zone displacement out of range: \"{text}\"");
                return Err(Error::new(Condition::ZoneDisplacement, what));
            }
            let zone = crate::postgres_functions::zone(name, false).map_err(|_| invalid())?;
            match (zone.to_fixed_offset(), crate::moments::parse(text, false)) {
                (Ok(offset), _) => i64::from(offset.seconds()),
                // With a day it is known how far that is.
                (Err(_), Some(moment)) => Zone::from(zone).ahead(&moment),
                _ => return Err(invalid()),
            }
        }
    };
    match zoned(nanos, ahead)? {
        Value::Datetime(moment) => Ok(rounded_zoned(*moment, to)),
        other => Ok(other),
    }
}

/// A clock from `h:m[:s[.f]]` or digits. None: it is none; None within: it is one that no clock shows.
fn parts(text: &str) -> Option<Option<i64>> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number =
        |digits: &str| !digits.is_empty() && digits.len() <= 9 && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !fraction.is_empty() && !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fields: Vec<&str> = whole.split(':').collect();
    if !fields.iter().all(|field| is_number(field)) {
        return None;
    }
    let number = |field: &str| field.parse::<i64>().unwrap_or(i64::MAX);
    let (hour, minute, second) = match fields.as_slice() {
        [digits] if digits.len() == 6 => (number(&digits[..2]), number(&digits[2..4]), number(&digits[4..])),
        [digits] if digits.len() == 4 => (number(&digits[..2]), number(&digits[2..]), 0),
        [hour, minute] => (number(hour), number(minute), 0),
        [hour, minute, second] => (number(hour), number(minute), number(second)),
        _ => return None,
    };
    let micros = (format!("0.{fraction}0").parse::<f64>().unwrap_or(0.0) * 1e6).round() as i64;
    let is_one = (0..=24).contains(&hour) && (0..60).contains(&minute) && (0..=60).contains(&second);
    let nanos = || (hour * 3600 + minute * 60 + second) * SECOND + micros * 1000;
    Some(is_one.then(nanos).filter(|nanos| *nanos <= DAY))
}

/// A text of MySQL's: `-12:34:56.7`, `3 04:05:06`, `123456`, a moment whose day is passed over. None: it is none. What is too long is not cut yet.
pub(crate) fn parse_in_mysql(text: &str) -> Option<i64> {
    let text = text.trim();
    let (sign, rest) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    if sign > 0
        && rest.bytes().filter(|byte| matches!(byte, b'-' | b'/')).count() == 2
        && rest.starts_with(|c: char| c.is_ascii_digit())
    {
        return crate::mysql::moments::parse(rest).map(|moment| of_moment(&moment));
    }
    let (days, rest) = match rest.split_once(' ') {
        Some((days, rest)) => {
            (days.parse::<i64>().ok().filter(|days| (0..1_000_000).contains(days))?, rest.trim_start())
        }
        None => (0, rest),
    };
    let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let padded: String = fraction.chars().chain("000000".chars()).take(6).collect();
    let micros: i64 = padded.parse().ok()?;
    let micros = micros + i64::from(fraction.as_bytes().get(6).is_some_and(|digit| *digit >= b'5'));
    let fields: Vec<&str> = whole.split(':').collect();
    let number = |field: &str| {
        let is_one = !field.is_empty() && field.len() <= 9 && field.bytes().all(|byte| byte.is_ascii_digit());
        is_one.then(|| field.parse::<i64>().ok()).flatten()
    };
    let (hours, minutes, seconds) = match fields.as_slice() {
        [digits] if rest.len() < text.len() - usize::from(sign < 0) => (number(digits)?, 0, 0),
        [digits] if digits.len() >= 12 && sign > 0 => {
            return crate::mysql::moments::parse(rest).map(|moment| of_moment(&moment));
        }
        [digits] => {
            let digits = number(digits)?;
            (digits / 10_000, digits / 100 % 100, digits % 100)
        }
        [hours, minutes] => (number(hours)?, number(minutes)?, 0),
        [hours, minutes, seconds] => (number(hours)?, number(minutes)?, number(seconds)?),
        _ => return None,
    };
    if minutes > 59 || seconds > 59 {
        return None;
    }
    let seconds = (days * 24 + hours).checked_mul(3600)?.checked_add(minutes * 60 + seconds)?;
    Some(sign * (seconds.min(i64::MAX / SECOND / 2) * SECOND + micros * 1000))
}

/// A number whose digits are those of a span: 123456 is `12:34:56`. None: it is none.
pub(crate) fn of_number(value: &Value) -> Option<i64> {
    let text = match value {
        Value::Double(number) => format!("{number:.6}"),
        value => value.display(crate::Dialect::Mysql),
    };
    parse_in_mysql(&text)
}

/// The span that is nearest among those that MySQL has.
pub(crate) fn clamped(nanos: i64) -> i64 {
    nanos.clamp(-LONGEST_SECONDS * SECOND, LONGEST_SECONDS * SECOND)
}

/// The type of spans with so many digits of a second.
pub(crate) const fn type_of(digits: u32) -> Type {
    Type { base: Base::Time, length: digits + 1, scale: 0 }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    fn moment(nanos: i64) -> Datetime {
        match value_of(nanos) {
            Value::Datetime(moment) => *moment,
            _ => Datetime::default(),
        }
    }

    #[test]
    fn clocks_of_postgresql_are_read_and_written() {
        for (text, wanted) in [
            ("12:34", "12:34:00"),
            ("1:02:03.5", "01:02:03.5"),
            ("123456", "12:34:56"),
            ("0405", "04:05:00"),
            ("24:00:00", "24:00:00"),
            ("23:59:60", "24:00:00"),
            ("4:05 PM", "16:05:00"),
            ("12:05am", "00:05:00"),
            ("04:05:06+02", "04:05:06"),
            ("2024-02-29 04:05:06", "04:05:06"),
            ("allballs", "00:00:00"),
            ("04:05:06.1234567", "04:05:06.123457"),
        ] {
            assert_eq!(parse(text).map(|nanos| display(&moment(nanos))).ok().as_deref(), Some(wanted), "{text}");
        }
        for text in ["", "x", "25:00", "24:00:01", "12:60", "13:00 PM", "12", "1:2:3:4", "12:34 x"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn spans_of_mysql_are_read_and_written() {
        let shown =
            |text: &str| parse_in_mysql(text).map(|nanos| display_in_mysql(&moment(nanos), Type::of(Base::Time)));
        for (text, wanted) in [
            ("12:34:56", "12:34:56"),
            ("-838:59:59", "-838:59:59"),
            ("3 04:05:06", "76:05:06"),
            ("2 10", "58:00:00"),
            ("11:12", "11:12:00"),
            ("1112", "00:11:12"),
            ("12", "00:00:12"),
            ("101112.5", "10:11:12.500000"),
            ("2024-02-29 01:02:03", "01:02:03"),
            ("20240229010203", "01:02:03"),
            ("-00:00:00.5", "-00:00:00.500000"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(wanted), "{text}");
        }
        for text in ["", "x", "12:60:00", "1:2:3:4", "12:34:56x"] {
            assert!(shown(text).is_none(), "{text}");
        }
        assert_eq!(display_in_mysql(&moment(rounded(-1_500_000_000, type_of(0))), type_of(0)), "-00:00:02");
        assert_eq!(display_in_mysql(&moment(rounded(1_250_000_000, type_of(1))), type_of(1)), "00:00:01.3");
    }
}
