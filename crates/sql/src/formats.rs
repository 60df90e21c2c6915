//! Values as text by a pattern, and back: `to_char`, `to_date`, `to_timestamp`, `to_number` of PostgreSQL.

use crate::arithmetic::rounded_to;
use crate::error::{Condition, Error, Result};
use jiff::civil::Date;
use std::fmt::Write;
use tuple::datetime::Datetime;
use tuple::decimal::Decimal;

/// Bytes of a pattern.
const PATTERN_MAX: usize = 4096;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// What a pattern has names for, longer ones before those that they begin with.
const FIELDS: &[&str] = &[
    "Y,YYY", "YYYY", "IYYY", "YYY", "IYY", "YY", "IY", "MONTH", "Month", "month", "MON", "Mon", "mon", "MM", "MI",
    "MS", "HH24", "HH12", "HH", "SSSSS", "SSSS", "SS", "US", "DDD", "DD", "DAY", "Day", "day", "DY", "Dy", "dy",
    "IDDD", "ID", "IW", "WW", "CC", "Q", "J", "A.M.", "P.M.", "a.m.", "p.m.", "AM", "PM", "am", "pm", "TZH", "TZM",
    "TZ", "tz", "OF", "D", "W", "Y", "I",
];

/// A part of a pattern.
enum Part<'p> {
    /// Which field, whether it is filled up, and what letters stand behind a number.
    Field(&'static str, bool, Option<&'p str>),
    Literal(char),
}

/// Takes a pattern apart. Errors: `LimitExceeded`.
fn parts(pattern: &str) -> Result<Vec<Part<'_>>> {
    if pattern.len() > PATTERN_MAX {
        return Err(Error::new(Condition::LimitExceeded, format!("a pattern has at most {PATTERN_MAX} bytes")));
    }
    let mut found = Vec::new();
    let mut rest = pattern;
    let mut is_filled = true;
    while let Some(c) = rest.chars().next() {
        if let Some(behind) = rest.strip_prefix("FM").or_else(|| rest.strip_prefix("fm")) {
            (rest, is_filled) = (behind, false);
            continue;
        }
        if c == '"' {
            let inner = &rest[1..];
            let end = inner.find('"').unwrap_or(inner.len());
            found.extend(inner[..end].chars().map(Part::Literal));
            rest = inner.get(end + 1..).unwrap_or("");
            continue;
        }
        let is_it = |field: &&&str| {
            let start = rest.get(..field.len());
            start == Some(**field) || start.is_some_and(|start| is_plain(field) && start.eq_ignore_ascii_case(field))
        };
        match FIELDS.iter().find(is_it) {
            Some(field) => {
                rest = &rest[field.len()..];
                let suffix = rest.get(..2).filter(|suffix| suffix.eq_ignore_ascii_case("th"));
                if suffix.is_some() {
                    rest = &rest[2..];
                }
                found.push(Part::Field(field, is_filled, suffix));
                is_filled = true;
            }
            None => {
                found.push(Part::Literal(c));
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    Ok(found)
}

/// True for fields whose letters may be large or small.
fn is_plain(field: &str) -> bool {
    !matches!(
        field.to_ascii_uppercase().as_str(),
        "MONTH" | "MON" | "DAY" | "DY" | "AM" | "PM" | "A.M." | "P.M." | "TZ"
    )
}

fn ordinal(number: i64) -> &'static str {
    match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

/// A number of a pattern: filled up to a width, and with the letters of an ordinal, if that is asked for.
fn put_number(out: &mut String, number: i64, width: Option<usize>, suffix: Option<&str>) {
    let width = width.unwrap_or(0);
    _ = write!(out, "{number:0width$}");
    if let Some(suffix) = suffix {
        let letters = ordinal(number);
        out.push_str(&if suffix == "TH" { letters.to_uppercase() } else { letters.to_string() });
    }
}

/// A span of months, days and microseconds by a pattern. Errors: `InvalidDatetime`, a part that spans have not; `LimitExceeded`.
pub(crate) fn span_to_text((months, days, micros): (i64, i64, i64), pattern: &str) -> Result<String> {
    let (year, month, seconds) = (months / 12, months % 12, micros / 1_000_000);
    let (hour, minute, second, part) = (seconds / 3600, seconds / 60 % 60, seconds % 60, micros % 1_000_000);
    let of_year = months * 30 + days;
    let hour12 = if hour % 12 == 0 { 12 } else { hour % 12 };
    let is_late = hour % 24 >= 12;
    let half = |late: &str, early: &str| Some(if is_late { late } else { early }.to_string());
    // Signs stand in a place of their own.
    let wide = |number: i64, width: usize| (number, width + usize::from(number < 0));
    let mut out = String::new();
    for part_of_pattern in parts(pattern)? {
        let (field, is_filled, suffix) = match part_of_pattern {
            Part::Literal(c) => {
                out.push(c);
                continue;
            }
            Part::Field(field, is_filled, suffix) => (field, is_filled, suffix),
        };
        let word = match field {
            "AM" | "PM" => half("PM", "AM"),
            "am" | "pm" => half("pm", "am"),
            "A.M." | "P.M." => half("P.M.", "A.M."),
            "a.m." | "p.m." => half("p.m.", "a.m."),
            "Y,YYY" => Some(format!("{},{:03}", year / 1000, year % 1000)),
            "Q" if month == 0 => Some(String::new()),
            _ => None,
        };
        if let Some(word) = word {
            out.push_str(&word);
            continue;
        }
        let (number, width) = match field {
            "YYYY" => wide(year, 4),
            "YYY" => wide(year % 1000, 3),
            "YY" => wide(year % 100, 2),
            "Y" => (year % 10, 1),
            "MM" => wide(month, 2),
            "DD" => (days, 2),
            "DDD" => (of_year, 3),
            "HH24" => wide(hour, 2),
            "HH12" | "HH" => wide(hour12, 2),
            "MI" => wide(minute, 2),
            "SS" => wide(second, 2),
            "SSSS" | "SSSSS" => (seconds, 1),
            "MS" => (part / 1000, 3),
            "US" => (part, 6),
            "CC" => (year / 100, 2),
            "Q" => ((month - 1) / 3 + 1, 1),
            "W" => ((days - 1) / 7 + 1, 1),
            "WW" => ((of_year - 1) / 7 + 1, 2),
            "J" => (julian_of(year, month, days), 1),
            _ => {
                let what = "invalid format specification for an interval value";
                return Err(Error::new(Condition::InvalidDatetime, what)
                    .hint("Intervals are not tied to specific calendar dates."));
            }
        };
        put_number(&mut out, number, is_filled.then_some(width), suffix);
    }
    Ok(out)
}

/// The Julian day of what may be no day, as PostgreSQL counts it.
fn julian_of(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year + 4800, month + 1) } else { (year + 4799, month + 13) };
    let century = year / 100;
    year * 365 - 32_167 + year / 4 - century + century / 4 + 7834 * month / 256 + day
}

/// A moment by a pattern. Errors: `LimitExceeded`.
pub(crate) fn moment_to_text(moment: &Datetime, pattern: &str) -> Result<String> {
    moment_to_text_in(moment, pattern, "", 0)
}

/// What a clock shows by a pattern, in a zone of a name that is so many seconds ahead. Errors: `LimitExceeded`.
pub(crate) fn moment_to_text_in(moment: &Datetime, pattern: &str, zone: &str, ahead: i64) -> Result<String> {
    let sign = if ahead < 0 { '-' } else { '+' };
    let (hours_ahead, minutes_ahead) = (ahead.abs() / 3600, ahead.abs() / 60 % 60);
    let day = moment.seconds.div_euclid(86_400);
    let clock = moment.seconds.rem_euclid(86_400);
    let (year, month, date) = tuple::datetime::date_of(day);
    let (month_name, weekday) = (MONTHS[(month as usize - 1) % 12], (day + 4).rem_euclid(7));
    let day_name = DAYS[weekday as usize];
    let day_of_year = |day: i64, year: i64| {
        crate::moments::midnight(year, 1, 1).map_or(1, |first| day - first.seconds.div_euclid(86_400) + 1)
    };
    let of_year = day_of_year(day, year);
    let iso_day = if weekday == 0 { 7 } else { weekday };
    // A week belongs to the year of its Thursday.
    let thursday = day + 4 - iso_day;
    let iso_year = tuple::datetime::date_of(thursday).0;
    let iso_week = (day_of_year(thursday, iso_year) + 6) / 7;
    let hour = clock / 3600;
    let hour12 = if hour % 12 == 0 { 12 } else { hour % 12 };
    let micros = i64::from(moment.nanoseconds) / 1000;
    let shown_year = if year > 0 { year } else { 1 - year };
    let mut out = String::new();
    for part in parts(pattern)? {
        let (field, is_filled, suffix) = match part {
            Part::Literal(c) => {
                out.push(c);
                continue;
            }
            Part::Field(field, is_filled, suffix) => (field, is_filled, suffix),
        };
        let (number, width) = match field {
            "YYYY" => (shown_year, 4),
            "YYY" => (shown_year % 1000, 3),
            "YY" => (shown_year % 100, 2),
            "Y" => (shown_year % 10, 1),
            "IYYY" => (iso_year, 4),
            "IYY" => (iso_year % 1000, 3),
            "IY" => (iso_year % 100, 2),
            "I" => (iso_year % 10, 1),
            "MM" => (i64::from(month), 2),
            "DD" => (i64::from(date), 2),
            "DDD" => (of_year, 3),
            "IDDD" => ((iso_week - 1) * 7 + iso_day, 3),
            "D" => (weekday + 1, 1),
            "ID" => (iso_day, 1),
            "HH24" => (hour, 2),
            "HH12" | "HH" => (hour12, 2),
            "MI" => (clock / 60 % 60, 2),
            "SS" => (clock % 60, 2),
            "SSSS" | "SSSSS" => (clock, 1),
            "MS" => (micros / 1000, 3),
            "US" => (micros, 6),
            "IW" => (iso_week, 2),
            "WW" => ((of_year - 1) / 7 + 1, 2),
            "W" => ((i64::from(date) - 1) / 7 + 1, 1),
            "CC" => ((shown_year - 1) / 100 + 1, 2),
            "Q" => ((i64::from(month) - 1) / 3 + 1, 1),
            "J" => (day + 2_440_588, 1),
            "Y,YYY" => {
                let _ = write!(out, "{},{:03}", shown_year / 1000, shown_year % 1000);
                continue;
            }
            name => {
                let padded = |text: String| if is_filled { format!("{text:<9}") } else { text };
                out.push_str(&match name {
                    "MONTH" => padded(month_name.to_uppercase()),
                    "Month" => padded(month_name.to_string()),
                    "month" => padded(month_name.to_lowercase()),
                    "MON" => month_name[..3].to_uppercase(),
                    "Mon" => month_name[..3].to_string(),
                    "mon" => month_name[..3].to_lowercase(),
                    "DAY" => padded(day_name.to_uppercase()),
                    "Day" => padded(day_name.to_string()),
                    "day" => padded(day_name.to_lowercase()),
                    "DY" => day_name[..3].to_uppercase(),
                    "Dy" => day_name[..3].to_string(),
                    "dy" => day_name[..3].to_lowercase(),
                    "AM" | "PM" => (if hour < 12 { "AM" } else { "PM" }).to_string(),
                    "am" | "pm" => (if hour < 12 { "am" } else { "pm" }).to_string(),
                    "A.M." | "P.M." => (if hour < 12 { "A.M." } else { "P.M." }).to_string(),
                    "a.m." | "p.m." => (if hour < 12 { "a.m." } else { "p.m." }).to_string(),
                    "TZ" => zone.to_string(),
                    "tz" => zone.to_lowercase(),
                    "OF" if minutes_ahead != 0 => format!("{sign}{hours_ahead:02}:{minutes_ahead:02}"),
                    "OF" | "TZH" => format!("{sign}{hours_ahead:02}"),
                    _ => format!("{minutes_ahead:02}"),
                });
                continue;
            }
        };
        put_number(&mut out, number, is_filled.then_some(width), suffix);
    }
    Ok(out)
}

/// A moment from text by a pattern. Errors: the text is none.
pub(crate) fn moment_of_text(text: &str, pattern: &str) -> Result<Datetime> {
    let wrong = |what: String| Error::new(Condition::InvalidDatetime, what);
    let (mut year, mut month, mut date, mut of_year) = (None, 1i64, 1i64, None);
    let (mut hour, mut minute, mut second, mut micros) = (0i64, 0i64, 0i64, 0i64);
    let mut is_later: Option<bool> = None;
    let mut rest = text.trim_start();
    let number = |rest: &mut &str, width: usize, field: &str| -> Result<i64> {
        *rest = rest.trim_start();
        let sign = if rest.starts_with('-') { 1 } else { 0 };
        let count = rest[sign..].bytes().take(width).take_while(u8::is_ascii_digit).count();
        let found = rest[..sign + count].parse::<i64>();
        let found = found.map_err(|_| {
            let shown: String = rest.chars().take(width).collect();
            wrong(format!("invalid value \"{shown}\" for \"{field}\""))
        })?;
        *rest = &rest[sign + count..];
        Ok(found)
    };
    let name = |rest: &mut &str, names: &[&str], is_short: bool, field: &str| -> Result<i64> {
        for (at, name) in names.iter().enumerate() {
            for name in [*name, &name[..3]] {
                if rest.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
                    && !(is_short && name.len() > 3)
                {
                    *rest = &rest[name.len()..];
                    return Ok(at as i64);
                }
            }
        }
        Err(wrong(format!("invalid value \"{}\" for \"{field}\"", rest.chars().take(9).collect::<String>())))
    };
    for part in parts(pattern)? {
        match part {
            Part::Literal(c) if c.is_whitespace() => rest = rest.trim_start(),
            Part::Literal(c) => {
                // Whatever parts the text there, parts it.
                let next = rest.chars().next();
                if next.is_some_and(|next| next == c || !next.is_alphanumeric()) {
                    rest = &rest[next.map_or(0, char::len_utf8)..];
                }
            }
            Part::Field(field, ..) => match field {
                "YYYY" | "IYYY" => year = Some(number(&mut rest, 4, field)?),
                "YYY" | "YY" | "Y" => {
                    let found = number(&mut rest, field.len(), field)?;
                    year = Some(if found < 70 { found + 2000 } else { found + 1900 });
                }
                "MM" => month = number(&mut rest, 2, field)?,
                "MONTH" | "Month" | "month" => month = name(&mut rest, &MONTHS, false, field)? + 1,
                "MON" | "Mon" | "mon" => month = name(&mut rest, &MONTHS, true, field)? + 1,
                "DAY" | "Day" | "day" => _ = name(&mut rest, &DAYS, false, field)?,
                "DY" | "Dy" | "dy" => _ = name(&mut rest, &DAYS, true, field)?,
                "DD" => date = number(&mut rest, 2, field)?,
                "DDD" => of_year = Some(number(&mut rest, 3, field)?),
                "HH24" => hour = number(&mut rest, 2, field)?,
                "HH12" | "HH" => {
                    hour = number(&mut rest, 2, field)?;
                    is_later = is_later.or(Some(false));
                }
                "MI" => minute = number(&mut rest, 2, field)?,
                "SS" => second = number(&mut rest, 2, field)?,
                "MS" | "US" => {
                    let width = if field == "MS" { 3 } else { 6 };
                    let before = rest.len();
                    let found = number(&mut rest, width, field)?;
                    let digits = (before - rest.len()).min(6) as u32;
                    micros = found * 10i64.pow(6 - digits);
                }
                "AM" | "PM" | "am" | "pm" | "A.M." | "P.M." | "a.m." | "p.m." => {
                    is_later = Some(rest.starts_with(['p', 'P']));
                    let width = if field.contains('.') { 4 } else { 2 };
                    rest = rest.get(width..).unwrap_or("");
                }
                _ => return Err(Error::unsupported(format!("\"{field}\" in a pattern that text is read by"))),
            },
        }
    }
    match is_later {
        Some(true) if hour < 12 => hour += 12,
        Some(false) if hour == 12 => hour = 0,
        _ => {}
    }
    let out_of_range =
        || Error::new(Condition::DatetimeOverflow, format!("date/time field value out of range: \"{text}\""));
    let year = i16::try_from(year.unwrap_or(1)).map_err(|_| out_of_range())?;
    let civil = match of_year {
        Some(days) => Date::new(year, 1, 1).and_then(|first| first.checked_add(jiff::Span::new().try_days(days - 1)?)),
        None => Date::new(year, i8::try_from(month).unwrap_or(0), i8::try_from(date).unwrap_or(0)),
    };
    let civil = civil.map_err(|_| out_of_range())?;
    if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..61).contains(&second) {
        return Err(out_of_range());
    }
    let days = civil.to_zoned(jiff::tz::TimeZone::UTC).map_err(|_| out_of_range())?.timestamp().as_second();
    Ok(Datetime {
        seconds: days + hour * 3600 + minute * 60 + second,
        nanoseconds: (micros * 1000) as i32,
        ..Datetime::default()
    })
}

/// A number by a pattern. Errors: `LimitExceeded`; what is not there.
pub(crate) fn number_to_text(value: Decimal, pattern: &str) -> Result<String> {
    if pattern.len() > PATTERN_MAX {
        return Err(Error::new(Condition::LimitExceeded, format!("a pattern has at most {PATTERN_MAX} bytes")));
    }
    let upper = pattern.to_ascii_uppercase();
    if ["EEEE", "RN", "TH", "V"].iter().any(|unknown| upper.contains(unknown)) {
        return Err(Error::unsupported(format!("the pattern \"{pattern}\" for numbers")));
    }
    let is_filled = !upper.contains("FM");
    let mut rest = upper.replace("FM", "");
    let has = |rest: &mut String, mark: &str| {
        let found = rest.contains(mark);
        *rest = rest.replacen(mark, "", 1);
        found
    };
    let (in_brackets, has_minus, has_plus) = (has(&mut rest, "PR"), has(&mut rest, "MI"), has(&mut rest, "PL"));
    let sign_first = rest.starts_with('S');
    let has_sign = has(&mut rest, "S");
    let (whole, behind) = match rest.find(['.', 'D']) {
        Some(at) => (rest[..at].to_string(), rest[at + 1..].to_string()),
        None => (rest.clone(), String::new()),
    };
    let has_point = rest.contains(['.', 'D']);
    let places = behind.bytes().filter(|byte| matches!(byte, b'9' | b'0')).count();
    let rounded = rounded_to(value, places as i32)
        .ok_or_else(|| Error::new(Condition::NumericOutOfRange, "decimal out of range"))?;
    let is_negative = rounded.is_negative() && rounded.parts().0 != 0;
    let text = rounded.to_string();
    let text = text.trim_start_matches('-');
    let (digits, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = if digits == "0" { "" } else { digits };
    let room = whole.bytes().filter(|byte| matches!(byte, b'9' | b'0')).count();
    let is_too_long = digits.len() > room;
    let mut out = String::new();
    // From where on digits stand, zeros that the pattern asks for among them.
    let first_zero = whole.bytes().filter(|byte| matches!(byte, b'9' | b'0')).position(|byte| byte == b'0');
    let start = room.saturating_sub(digits.len()).min(first_zero.unwrap_or(usize::MAX));
    let mut at = 0;
    let padded: Vec<u8> = std::iter::repeat_n(b'0', room.saturating_sub(digits.len())).chain(digits.bytes()).collect();
    for mark in whole.chars() {
        match mark {
            '9' | '0' => {
                let is_last_of_zero = digits.is_empty() && !has_point && at + 1 == room;
                match () {
                    () if is_too_long => out.push('#'),
                    () if at >= start || is_last_of_zero => out.push(padded[at] as char),
                    () => out.push(' '),
                }
                at += 1;
            }
            ',' | 'G' if at > start || is_too_long => out.push(','),
            ',' | 'G' => out.push(' '),
            '$' => out.push('$'),
            'L' => out.push(' '),
            other => out.push(other),
        }
    }
    if has_point {
        out.push('.');
        let mut number = 0;
        let kept = if is_filled {
            places
        } else {
            fraction.trim_end_matches('0').len().max(behind.rfind('0').map_or(0, |at| at + 1))
        };
        for mark in behind.chars() {
            match mark {
                '9' | '0' => {
                    match () {
                        () if is_too_long => out.push('#'),
                        () if number < kept => {
                            out.push(fraction.as_bytes().get(number).map_or('0', |digit| *digit as char))
                        }
                        () => {}
                    }
                    number += 1;
                }
                other => out.push(other),
            }
        }
    }
    // The sign stands before the first digit.
    let lead = out.len() - out.trim_start_matches(' ').len();
    let body = out.split_off(lead);
    let padding = if is_filled { out } else { String::new() };
    let sign = match (is_negative, has_sign && sign_first) {
        (true, _) => "-",
        (false, true) => "+",
        (false, false) => " ",
    };
    Ok(match () {
        () if in_brackets && is_negative => format!("{padding}<{body}>"),
        () if in_brackets && is_filled => format!(" {padding}{body} "),
        () if in_brackets => body,
        () if has_minus => {
            let mark = if is_negative {
                "-"
            } else if is_filled {
                " "
            } else {
                ""
            };
            format!("{padding}{body}{mark}")
        }
        () if has_plus => {
            format!("{}{padding}{body}{}", if is_negative { "-" } else { " " }, if is_negative { " " } else { "+" })
        }
        () if has_sign && !sign_first => format!("{padding}{body}{}", if is_negative { "-" } else { "+" }),
        () if !is_filled && sign == " " => body,
        () => format!("{padding}{sign}{body}"),
    })
}

/// A number from text, whatever stands between its digits. Errors: there is none.
pub(crate) fn number_of_text(text: &str) -> Result<Decimal> {
    let is_negative = text.contains('-') || text.contains('<');
    let digits: String = text.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
    let signed = if is_negative { format!("-{digits}") } else { digits };
    signed
        .parse()
        .map_err(|_| Error::new(Condition::InvalidText, format!("invalid input syntax for type numeric: \"{text}\"")))
}
