//! Spans of time from text, in all forms that PostgreSQL reads: `1 day 02:03`, `1-2 3 4:05:06`, `@ 1 hour ago`, `P1DT2H`.

use crate::error::{Condition, Error, Result};
use crate::moments::DAY_US;
use tuple::datetime::{ADJUST_NONE, Interval};

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
