//! Days, moments and spans of time as text.

use crate::error::{Condition, Error, Result};
use jiff::civil::{Date, DateTime, Time};
use tuple::datetime::{Datetime, Interval};

/// The first and the last second that there are moments of: those of the years -9999 and 9999.
const FIRST_SECOND: i64 = -377_705_116_800;
const LAST_SECOND: i64 = 253_402_300_799;

/// The moment that a civil time is, in UTC.
fn moment_of(time: DateTime) -> Option<Datetime> {
    let zoned = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    let stamp = zoned.timestamp();
    let nanoseconds = stamp.as_nanosecond().rem_euclid(1_000_000_000);
    let seconds = stamp.as_nanosecond().div_euclid(1_000_000_000);
    Some(Datetime {
        seconds: i64::try_from(seconds).ok()?,
        nanoseconds: i32::try_from(nanoseconds).ok()?,
        ..Datetime::default()
    })
}

/// A moment from text: a day, a day and a time, with an offset or without one (UTC then).
pub(crate) fn parse(text: &str, is_date: bool) -> Option<Datetime> {
    let text = text.trim();
    let (day, rest) = match text.find([' ', 'T', 't']) {
        Some(at) => (&text[..at], text[at + 1..].trim()),
        None => (text, ""),
    };
    let date = parse_date(day)?;
    if is_date || rest.is_empty() {
        return moment_of(date.at(0, 0, 0, 0));
    }
    let (clock, offset) = split_offset(rest)?;
    let mut moment = moment_of(DateTime::from_parts(date, clock))?;
    moment.seconds -= i64::from(offset) * 60;
    Some(moment)
}

/// True if a text has the form of a day and perhaps a clock, even if its numbers are too large.
pub(crate) fn has_form(text: &str) -> bool {
    let text = text.trim();
    let day = &text[..text.find([' ', 'T', 't']).unwrap_or(text.len())];
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_day = day.split(['-', '/']).filter(is_number).count() == 3;
    // Digits alone: a year, a month and a day, or a month that is none.
    if is_number(&text) {
        return matches!(text.len(), 6 | 8) || text.len() == 2 && !("01".."13").contains(&text);
    }
    is_day && text[day.len()..].bytes().all(|byte| byte.is_ascii_digit() || b" Tt:.+-Zz".contains(&byte))
}

fn parse_date(text: &str) -> Option<Date> {
    let mut parts = text.splitn(3, ['-', '/']);
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    Date::new(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?).ok()
}

/// A time of day and the minutes that it is ahead of UTC.
fn split_offset(text: &str) -> Option<(Time, i32)> {
    let (clock, zone) = match text.find(['+', '-', 'Z', 'z', ' ']) {
        Some(at) => (&text[..at], text[at..].trim()),
        None => (text, ""),
    };
    let offset = match zone {
        "" | "Z" | "z" | "UTC" => 0,
        zone => {
            let sign = if zone.starts_with('-') { -1 } else { 1 };
            let digits = zone.strip_prefix(['+', '-'])?;
            let (hours, minutes) = match digits.split_once(':') {
                Some((hours, minutes)) => (hours.parse::<i32>().ok()?, minutes.parse::<i32>().ok()?),
                None if digits.len() == 4 => (digits[..2].parse().ok()?, digits[2..].parse().ok()?),
                None => (digits.parse().ok()?, 0),
            };
            sign * (hours * 60 + minutes)
        }
    };
    let mut parts = clock.splitn(3, ':');
    let hour = parts.next()?.parse().ok()?;
    let minute = parts.next().unwrap_or("0").parse().ok()?;
    let seconds = parts.next().unwrap_or("0");
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let time = Time::new(hour, minute, whole.parse().ok()?, digits.parse().ok()?).ok()?;
    Some((time, offset))
}

/// As PostgreSQL and MySQL write it; a day alone if it has no time.
pub(crate) fn display(moment: &Datetime) -> String {
    let day = moment.seconds.div_euclid(86_400);
    let (year, month, date) = tuple::datetime::date_of(day);
    let rest = moment.seconds.rem_euclid(86_400);
    let mut text = format!("{year:04}-{month:02}-{date:02}");
    text.push_str(&format!(" {:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60));
    if moment.nanoseconds != 0 {
        let micros = format!("{:06}", moment.nanoseconds / 1000);
        text.push('.');
        text.push_str(micros.trim_end_matches('0'));
    }
    text
}

/// A span from text: numbers and units, and `hours:minutes:seconds`. Errors: `InvalidDatetime`.
pub(crate) fn parse_interval(text: &str) -> Result<Interval> {
    let refused =
        || Error::new(Condition::InvalidDatetime, format!("invalid input syntax for type interval: \"{text}\""));
    let mut interval = Interval { adjust: tuple::datetime::ADJUST_NONE, ..Interval::default() };
    let mut words = text.split_whitespace().peekable();
    let mut is_any = false;
    while let Some(word) = words.next() {
        is_any = true;
        if word.contains(':') {
            let is_negative = word.starts_with('-');
            let parts = clock_of_span(word.trim_start_matches(['-', '+'])).ok_or_else(refused)?;
            let sign = if is_negative { -1 } else { 1 };
            for (field, part) in interval.fields[4..].iter_mut().zip(parts) {
                *field += sign * part;
            }
            continue;
        }
        let split = word.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(word.len());
        let number: f64 = word[..split].parse().map_err(|_| refused())?;
        let unit = if split < word.len() { &word[split..] } else { words.next().ok_or_else(refused)? };
        add_unit(&mut interval, number, unit).ok_or_else(refused)?;
    }
    if is_any { Ok(interval) } else { Err(refused()) }
}

/// Hours, minutes, seconds and nanoseconds of `hours:minutes:seconds`; of hours there may be more than a day has.
fn clock_of_span(text: &str) -> Option<[i64; 4]> {
    let mut parts = text.splitn(3, ':');
    let number = |digits: &str| {
        let is_one = !digits.is_empty() && digits.len() <= 12 && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_one.then(|| digits.parse::<i64>().ok()).flatten()
    };
    let (hours, minutes) = (number(parts.next()?)?, number(parts.next()?)?);
    let (whole, fraction) = parts.next().map_or(("0", ""), |seconds| seconds.split_once('.').unwrap_or((seconds, "")));
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let (seconds, nanoseconds) = (number(whole)?, number(&digits)?);
    (minutes < 60 && seconds < 61 && hours < 1 << 31).then_some([hours, minutes, seconds, nanoseconds])
}

/// Adds so many of a unit to an interval. None: there is no such unit.
pub(crate) fn add_unit(interval: &mut Interval, number: f64, unit: &str) -> Option<()> {
    let (field, factor) = match unit.to_ascii_lowercase().trim_end_matches('s') {
        "year" | "y" | "yr" => (0, 1.0),
        "quarter" => (1, 3.0),
        "month" | "mon" => (1, 1.0),
        "week" | "w" => (2, 1.0),
        "day" | "d" => (3, 1.0),
        "hour" | "h" => (4, 1.0),
        "minute" | "min" | "m" => (5, 1.0),
        "second" | "sec" | "" => (6, 1.0),
        "millisecond" | "m_" => (7, 1e6),
        "microsecond" => (7, 1e3),
        _ => return None,
    };
    let amount = number * factor;
    interval.fields[field] = interval.fields[field].saturating_add(amount.trunc() as i64);
    if field == 6 {
        interval.fields[7] = interval.fields[7].saturating_add((amount.fract() * 1e9).round() as i64);
    }
    Some(())
}

/// The moment so much later, or earlier: months first, whose last day is kept within the month. None: beyond all moments.
pub(crate) fn moved(moment: &Datetime, interval: &Interval, sign: i64) -> Option<Datetime> {
    // Wide enough for whatever fields there are.
    let fields = interval.fields.map(|field| i128::from(field) * i128::from(sign));
    let [years, months, weeks, days, hours, minutes, seconds, nanoseconds] = fields;
    let day = moment.seconds.div_euclid(86_400);
    let (year, month, date) = tuple::datetime::date_of(day);
    let months = i128::from(year) * 12 + i128::from(month) - 1 + years * 12 + months;
    let (year, month) = (i16::try_from(months.div_euclid(12)).ok()?, i8::try_from(months.rem_euclid(12) + 1).ok()?);
    let first = Date::new(year, month, 1).ok()?;
    let date = Date::new(year, month, i8::try_from(date).ok()?.min(first.days_in_month())).ok()?;
    let midnight = moment_of(date.at(0, 0, 0, 0))?;
    let nanoseconds = i128::from(moment.nanoseconds) + nanoseconds;
    let clock = i128::from(moment.seconds.rem_euclid(86_400))
        + (weeks * 7 + days) * 86_400
        + hours * 3600
        + minutes * 60
        + seconds;
    let seconds = i128::from(midnight.seconds) + clock + nanoseconds.div_euclid(1_000_000_000);
    Some(Datetime {
        seconds: i64::try_from(seconds).ok().filter(|seconds| (FIRST_SECOND..=LAST_SECOND).contains(seconds))?,
        nanoseconds: nanoseconds.rem_euclid(1_000_000_000) as i32,
        ..*moment
    })
}
