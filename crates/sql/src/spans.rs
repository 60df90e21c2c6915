//! Spans of time from text, in all forms that PostgreSQL reads: `1 day 02:03`, `1-2 3 4:05:06`, `@ 1 hour ago`, `P1DT2H`.

use crate::error::{Condition, Error, Result};
use crate::moments::DAY_US;
use crate::types::Type;
use crate::value::Value;
use std::rc::Rc;
use tuple::datetime::{ADJUST_NONE, Interval};

/// The fields that a type may keep to, `interval day to hour`: their words, and the bits of each that PostgreSQL's numbers of such types have. The scale of
/// a type is the place here, from one.
const KEPT: [(&str, i64); 13] = [
    ("year", YEAR),
    ("month", MONTH),
    ("day", DAY),
    ("hour", HOUR),
    ("minute", MINUTE),
    ("second", SECOND),
    ("year to month", YEAR | MONTH),
    ("day to hour", DAY | HOUR),
    ("day to minute", DAY | HOUR | MINUTE),
    ("day to second", DAY | HOUR | MINUTE | SECOND),
    ("hour to minute", HOUR | MINUTE),
    ("hour to second", HOUR | MINUTE | SECOND),
    ("minute to second", MINUTE | SECOND),
];
const MONTH: i64 = 1 << 1;
const YEAR: i64 = 1 << 2;
const DAY: i64 = 1 << 3;
const HOUR: i64 = 1 << 10;
const MINUTE: i64 = 1 << 11;
const SECOND: i64 = 1 << 12;
/// The bits of a type that keeps all fields, and the digits of one that says nothing of them.
const ALL: i64 = 0x7fff;
const ANY_DIGITS: i64 = 0xffff;

/// The scale of the type that keeps to these fields.
pub(crate) fn scale_of(fields: &str) -> u32 {
    let at = KEPT.iter().position(|(words, _)| words.eq_ignore_ascii_case(fields));
    at.and_then(|at| u32::try_from(at + 1).ok()).unwrap_or(0)
}

fn kept(ty: Type) -> Option<&'static (&'static str, i64)> {
    KEPT.get((ty.scale as usize).checked_sub(1)?)
}

/// The words for what a type keeps to, as `information_schema` has them. None: it keeps all.
pub(crate) fn type_words(ty: Type) -> Option<String> {
    let (words, _) = kept(ty)?;
    let digits = if ty.length > 0 { format!("({})", ty.length - 1) } else { String::new() };
    Some(words.to_uppercase() + &digits)
}

/// What PostgreSQL has beside the number of the type: fields in the upper half, digits of a second in the lower one.
pub(crate) fn modifier(ty: Type) -> i64 {
    let fields = kept(ty).map_or(ALL, |(_, bits)| *bits);
    let digits = if ty.length > 0 { i64::from(ty.length) - 1 } else { ANY_DIGITS };
    if (fields, digits) == (ALL, ANY_DIGITS) { -1 } else { fields << 16 | digits }
}

/// What `format_type` says of that behind the name of the type.
pub(crate) fn shown(modifier: i64) -> String {
    let words = KEPT.iter().find(|(_, bits)| *bits == modifier >> 16);
    let mut out = words.map_or_else(String::new, |(words, _)| format!(" {words}"));
    let digits = modifier & ANY_DIGITS;
    if modifier >= 0 && digits != ANY_DIGITS {
        out.push_str(&format!("({digits})"));
    }
    out
}

/// A span from text, for a type: a number without a unit counts the last field that the type keeps. Errors: `InvalidDatetime`, `DatetimeOverflow`.
pub(crate) fn parse_typed(text: &str, to: Type) -> Result<Interval> {
    let Some((words, bits)) = kept(to) else { return parse_interval(text) };
    let unit = words.rsplit(' ').next().unwrap_or_default();
    let last = text.split_whitespace().next_back().unwrap_or_default();
    let (_, digits) = sign_of(last);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match () {
        () if is_number && bits & SECOND == 0 => parse_interval(&format!("{text} {unit}")),
        // Of two numbers the first one is minutes.
        () if words == &"minute to second" && digits.matches(':').count() == 1 => {
            let before = &text[..text.rfind(last).unwrap_or(0)];
            let sign = if last.starts_with('-') { "-" } else { "" };
            parse_interval(&format!("{before}{sign}00:{digits}"))
        }
        () => parse_interval(text),
    }
}

/// A span as a type keeps it: without what is smaller than its last field, and with as many digits of a second as it has.
pub(crate) fn typed(interval: &Interval, to: Type) -> Value {
    let mut fields = interval.fields;
    let bits = kept(to).map_or(ALL, |(_, bits)| *bits);
    let keeps = |units: i64| bits & units != 0;
    let first_cut = match () {
        () if keeps(SECOND) => 8,
        () if keeps(MINUTE) => 6,
        () if keeps(HOUR) => 5,
        () if keeps(DAY) => 4,
        () if keeps(MONTH) => 2,
        () => 1,
    };
    if first_cut < 8 {
        // Each field may have more than is one of the next.
        let months = fields[0] * 12 + fields[1];
        (fields[0], fields[1]) = (months / 12, months % 12);
        let seconds = i128::from(fields[4]) * 3600 + i128::from(fields[5]) * 60 + i128::from(fields[6]);
        let whole = i64::try_from(seconds).unwrap_or(i64::MAX);
        fields[4..7].copy_from_slice(&[whole / 3600, whole / 60 % 60, whole % 60]);
        fields[first_cut..].fill(0);
    }
    if to.length > 0 {
        let unit = 10i64.pow(9 - (to.length - 1).min(6));
        let [.., hours, minutes, seconds, nanos] = fields;
        let all = i128::from(hours) * 3600 + i128::from(minutes) * 60 + i128::from(seconds);
        let all = all * 1_000_000_000 + i128::from(nanos);
        let half = i128::from(if all < 0 { -unit / 2 } else { unit / 2 });
        let all = (all + half) / i128::from(unit) * i128::from(unit);
        let whole = i64::try_from(all / 1_000_000_000).unwrap_or(i64::MAX);
        fields[4..].copy_from_slice(&[whole / 3600, whole / 60 % 60, whole % 60, (all % 1_000_000_000) as i64]);
    }
    Value::Interval(Rc::new(Interval { fields, adjust: interval.adjust }))
}

/// What a span is made of.
#[derive(Clone, Copy, Default)]
struct Parts {
    months: i64,
    days: i64,
    micros: i64,
}

/// A unit of a span.
#[derive(Clone, Copy)]
enum Unit {
    Micros(i64),
    Days(i64),
    Months(i64),
}

/// A span from text. Errors: `InvalidDatetime`, `DatetimeOverflow`.
pub(crate) fn parse_interval(text: &str) -> Result<Interval> {
    let refused =
        || Error::new(Condition::InvalidDatetime, format!("invalid input syntax for type interval: \"{text}\""));
    let parts = match text.trim().strip_prefix(['P', 'p']) {
        Some(rest) => parse_iso(rest),
        None => parse_words(text),
    };
    let parts = parts.ok_or_else(refused)?;
    if i32::try_from(parts.months).is_err() || i32::try_from(parts.days).is_err() {
        let what = format!("interval field value out of range: \"{text}\"");
        return Err(Error::new(Condition::DatetimeOverflow, what));
    }
    let (seconds, micros) = (parts.micros / 1_000_000, parts.micros % 1_000_000);
    let (years, months) = (parts.months / 12, parts.months % 12);
    let fields = [years, months, 0, parts.days, seconds / 3600, seconds / 60 % 60, seconds % 60, micros * 1000];
    Ok(Interval { fields, adjust: ADJUST_NONE })
}

/// Numbers with units, clocks, years and months as `1-2`; a number before a clock counts days, the last one seconds.
fn parse_words(text: &str) -> Option<Parts> {
    let mut parts = Parts::default();
    // Letters and numbers may stand together: `1h30m`.
    let mut apart = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_digit() && apart.ends_with(|last: char| last.is_ascii_alphabetic()) {
            apart.push(' ');
        }
        apart.push(c);
    }
    let mut words = apart.split_whitespace().peekable();
    words.next_if_eq(&"@");
    let mut is_any = false;
    while let Some(word) = words.next() {
        if word.eq_ignore_ascii_case("ago") && is_any {
            let negated = Parts { months: -parts.months, days: -parts.days, micros: -parts.micros };
            return words.next().is_none().then_some(negated);
        }
        is_any = true;
        if word.contains(':') {
            parts.micros = parts.micros.checked_add(parse_clock(word)?)?;
            continue;
        }
        let (sign, digits) = sign_of(word);
        if let Some((years, months)) = digits.split_once('-') {
            let (years, months) = (whole(years)?, whole(months).filter(|months| *months < 12)?);
            parts.months = parts.months.checked_add(sign * years.checked_mul(12)?.checked_add(months)?)?;
            continue;
        }
        let split = word.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(word.len());
        let unit = match (split < word.len(), words.peek()) {
            (true, _) => unit_of(&word[split..])?,
            (false, Some(next)) if next.contains(':') => Unit::Days(1),
            (false, Some(next)) if next.starts_with(|c: char| c.is_ascii_alphabetic()) => unit_of(words.next()?)?,
            (false, None) => Unit::Micros(1_000_000),
            (false, Some(_)) => return None,
        };
        parts.add(&word[..split], unit)?;
    }
    is_any.then_some(parts)
}

/// What stands behind the P of ISO 8601.
fn parse_iso(text: &str) -> Option<Parts> {
    let mut parts = Parts::default();
    let (mut rest, mut is_clock, mut is_any) = (text, false, false);
    while !rest.is_empty() {
        if let Some(clock) = rest.strip_prefix(['T', 't']) {
            if is_clock {
                return None;
            }
            (rest, is_clock) = (clock, true);
            continue;
        }
        let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let unit = match (rest.as_bytes()[end].to_ascii_uppercase(), is_clock) {
            (b'Y', false) => Unit::Months(12),
            (b'M', false) => Unit::Months(1),
            (b'W', false) => Unit::Days(7),
            (b'D', false) => Unit::Days(1),
            (b'H', true) => Unit::Micros(3_600_000_000),
            (b'M', true) => Unit::Micros(60_000_000),
            (b'S', true) => Unit::Micros(1_000_000),
            _ => return None,
        };
        parts.add(&rest[..end], unit)?;
        (rest, is_any) = (&rest[end + 1..], true);
    }
    is_any.then_some(parts)
}

/// Microseconds of `[-]hours:minutes[:seconds]`, with any number of hours.
fn parse_clock(word: &str) -> Option<i64> {
    let (sign, clock) = sign_of(word);
    let mut fields = clock.splitn(3, ':');
    let (hours, minutes) = (whole(fields.next()?)?, whole(fields.next()?).filter(|minutes| *minutes < 60)?);
    let (seconds, part) = fraction_of(fields.next().unwrap_or("0"))?;
    let seconds =
        hours.checked_mul(3600)?.checked_add(minutes * 60 + Some(seconds).filter(|seconds| *seconds < 61)?)?;
    seconds.checked_mul(1_000_000)?.checked_add((part * 1e6).round_ties_even() as i64)?.checked_mul(sign)
}

fn sign_of(word: &str) -> (i64, &str) {
    match word.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, word.strip_prefix('+').unwrap_or(word)),
    }
}

fn whole(digits: &str) -> Option<i64> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

/// The whole part of a number without a sign, and the rest.
fn fraction_of(digits: &str) -> Option<(i64, f64)> {
    let (before, behind) = digits.split_once('.').unwrap_or((digits, ""));
    if before.is_empty() && behind.is_empty() || !behind.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = if behind.is_empty() { 0.0 } else { format!("0.{behind}").parse().ok()? };
    Some((if before.is_empty() { 0 } else { whole(before)? }, part))
}

impl Parts {
    /// Adds so many of a unit: what is no whole month goes to days, and no whole day to the clock.
    fn add(&mut self, number: &str, unit: Unit) -> Option<()> {
        let (sign, digits) = sign_of(number);
        let (count, part) = fraction_of(digits)?;
        let (count, part) = (sign * count, sign as f64 * part);
        let mut of_days = 0.0;
        match unit {
            Unit::Micros(size) => {
                let more = count.checked_mul(size)?.checked_add((part * size as f64).round_ties_even() as i64)?;
                self.micros = self.micros.checked_add(more)?;
            }
            Unit::Days(size) => {
                self.days = self.days.checked_add(count.checked_mul(size)?)?;
                of_days = part * size as f64;
            }
            Unit::Months(1) => {
                self.months = self.months.checked_add(count)?;
                of_days = part * 30.0;
            }
            Unit::Months(size) => {
                let more = (part * size as f64).round_ties_even() as i64;
                self.months = self.months.checked_add(count.checked_mul(size)?)?.checked_add(more)?;
            }
        }
        self.days = self.days.checked_add(of_days.trunc() as i64)?;
        self.micros = self.micros.checked_add((of_days.fract() * DAY_US as f64).round_ties_even() as i64)?;
        Some(())
    }
}

fn unit_of(name: &str) -> Option<Unit> {
    let lower = name.to_ascii_lowercase();
    Some(match lower.as_str() {
        "us" | "usec" | "usecs" | "useconds" | "microsecond" | "microseconds" | "microsecon" => Unit::Micros(1),
        "ms" | "msec" | "msecs" | "mseconds" | "millisecond" | "milliseconds" | "millisecon" => Unit::Micros(1000),
        "s" | "sec" | "secs" | "second" | "seconds" => Unit::Micros(1_000_000),
        "m" | "min" | "mins" | "minute" | "minutes" => Unit::Micros(60_000_000),
        "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Micros(3_600_000_000),
        "d" | "day" | "days" => Unit::Days(1),
        "w" | "week" | "weeks" => Unit::Days(7),
        "mon" | "mons" | "month" | "months" => Unit::Months(1),
        "quarter" => Unit::Months(3),
        "y" | "yr" | "yrs" | "year" | "years" => Unit::Months(12),
        "dec" | "decs" | "decade" | "decades" => Unit::Months(120),
        "c" | "cent" | "century" | "centuries" => Unit::Months(1200),
        "mil" | "mils" | "millennium" | "millennia" => Unit::Months(12_000),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_postgres_reads_them() {
        let parts = |text: &str| {
            let interval = parse_interval(text).map_err(|error| error.body().message.clone())?;
            let (months, days, micros) = crate::text::parts_of(&interval);
            Ok::<_, String>((months, days, micros))
        };
        let second = 1_000_000;
        let four = 4 * 3600 * second + 5 * 60 * second + 6 * second;
        for (text, wanted) in [
            ("1 year 2 mons 3 days 04:05:06", (14, 3, four)),
            ("1-2 3 4:05:06", (14, 3, four)),
            ("-1-2 +3 -4:05:06", (-14, 3, -four)),
            ("3 4:05:06", (0, 3, four)),
            ("1-2", (14, 0, 0)),
            ("@ 1 year 2 mons -3 days 4 hours 5 mins 6 secs ago", (-14, 3, -four)),
            ("P-1Y-2M3DT-4H-5M-6S", (-14, 3, -four)),
            ("P12DT30S", (0, 12, 30 * second)),
            ("PT0.5S", (0, 0, 500_000)),
            ("P1.5W", (0, 10, 12 * 3600 * second)),
            ("0.1", (0, 0, 100_000)),
            ("5", (0, 0, 5 * second)),
            ("999999:00:00", (0, 0, 999_999 * 3600 * second)),
            ("1.5 days", (0, 1, 12 * 3600 * second)),
            ("1.5 months", (1, 15, 0)),
            ("1.5 years", (18, 0, 0)),
            ("-1.5 weeks", (0, -10, -12 * 3600 * second)),
            ("1h30m", (0, 0, 5400 * second)),
        ] {
            assert_eq!(parts(text), Ok(wanted), "{text}");
        }
        for text in ["", "@", "day", "1 2", "P", "PT", "1-13", "1:60", "ago", "1 day ago 2 days", "1 fortnight", "P1H"]
        {
            assert!(parts(text).is_err(), "{text}");
        }
        assert!(parts("200000000 years").is_err_and(|error| error.contains("out of range")));
    }
}
