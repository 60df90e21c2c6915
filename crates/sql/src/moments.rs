//! Days, moments and spans of time as text.

use tuple::datetime::{Datetime, Interval};

/// The seconds that there are moments of, as in PostgreSQL: from November of the year 4714 BC to the end of 294276.
const SECONDS: std::ops::Range<i64> = -210_866_803_200..9_224_318_016_000;
/// The days that there are, as days since 1970: to the end of the year 5874897.
const DAYS: std::ops::RangeInclusive<i64> = -2_440_588..=2_145_042_905;
/// Years that are worth looking at.
const YEARS: std::ops::RangeInclusive<i64> = -4713..=5_874_897;
/// Hours that a zone is ahead of UTC at most, or behind.
const ZONE_HOURS: i64 = 15;
/// Nanoseconds of a day.
const DAY_NS: i64 = 86_400 * 1_000_000_000;
/// Microseconds of a day.
pub(crate) const DAY_US: i64 = 86_400 * 1_000_000;

/// Later than all moments, PostgreSQL's `infinity`: the last one that a row can hold.
pub(crate) const INFINITY: Datetime = Datetime { seconds: 2_146_764_484 * 86_400, nanoseconds: 0, offset: 0, zone: 0 };
/// Earlier than all moments, PostgreSQL's `-infinity`: the first one.
pub(crate) const MINUS_INFINITY: Datetime =
    Datetime { seconds: -2_148_202_811 * 86_400, nanoseconds: 0, offset: 0, zone: 0 };

/// What PostgreSQL writes for a moment that is none: `infinity`.
pub fn endless_name(moment: &Datetime) -> Option<&'static str> {
    match moment.seconds {
        seconds if seconds == INFINITY.seconds => Some("infinity"),
        seconds if seconds == MINUS_INFINITY.seconds => Some("-infinity"),
        _ => None,
    }
}

/// Later than all moments, or earlier.
pub const fn endless(is_late: bool) -> Datetime {
    if is_late { INFINITY } else { MINUS_INFINITY }
}

/// A word of PostgreSQL for a moment.
pub(crate) fn named(text: &str) -> Option<Datetime> {
    match text.trim().to_ascii_lowercase().as_str() {
        "infinity" | "+infinity" => Some(INFINITY),
        "-infinity" => Some(MINUS_INFINITY),
        "epoch" => Some(Datetime::default()),
        _ => None,
    }
}

/// The moment, if it is one that PostgreSQL has.
pub(crate) fn within(moment: Datetime) -> Option<Datetime> {
    (SECONDS.contains(&moment.seconds) || endless_name(&moment).is_some()).then_some(moment)
}

/// The day that begins at a moment, if it is one that PostgreSQL has.
pub(crate) fn day_within(moment: Datetime) -> Option<Datetime> {
    let is_one = DAYS.contains(&moment.seconds.div_euclid(86_400)) || endless_name(&moment).is_some();
    is_one.then_some(moment)
}

/// Days of a month; none: there is no such month.
pub(crate) fn length_of(year: i64, month: i64) -> Option<i64> {
    let is_leap = year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0);
    match month {
        2 if is_leap => Some(29),
        2 => Some(28),
        4 | 6 | 9 | 11 => Some(30),
        1..=12 => Some(31),
        _ => None,
    }
}

/// The midnight that a day begins with, in UTC. None: there is no such day.
pub(crate) fn midnight(year: i64, month: i64, day: i64) -> Option<Datetime> {
    let last = length_of(year, month)?;
    if !YEARS.contains(&year) || !(1..=last).contains(&day) {
        return None;
    }
    // Years begin in March, so the day that some have more is their last: the way back from `date_of`.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_era = year.rem_euclid(400);
    let day_of_era = of_era * 365 + of_era / 4 - of_era / 100 + (153 * month + 2) / 5 + day - 1;
    let days = year.div_euclid(400) * 146_097 + day_of_era - 719_468;
    Some(Datetime { seconds: days * 86_400, ..Datetime::default() })
}

/// A moment from text: a day, a day and a time, with an offset, the name of a zone or without one (UTC then), of the years before Christ with `BC`.
pub(crate) fn parse(text: &str, is_date: bool) -> Option<Datetime> {
    let text = text.trim();
    let (text, is_before) = match text.strip_suffix("BC").or_else(|| text.strip_suffix("bc")) {
        Some(rest) => (rest.trim_end(), true),
        None => (text.strip_suffix("AD").map_or(text, str::trim_end), false),
    };
    let (day, rest) = match text.find([' ', 'T', 't']) {
        Some(at) => (&text[..at], text[at + 1..].trim()),
        None => (text, ""),
    };
    let (year, month, day) = parse_date(day)?;
    // The year before the first one is the first before Christ.
    let year = if is_before { Some(1 - year).filter(|year| *year < 1)? } else { year };
    let mut moment = midnight(year, month, day)?;
    if is_date {
        return day_within(moment);
    }
    if rest.is_empty() {
        return within(moment);
    }
    let clock = parse_clock(rest)?;
    moment.seconds += clock.nanoseconds / 1_000_000_000;
    moment.nanoseconds = (clock.nanoseconds % 1_000_000_000) as i32;
    match clock.zone {
        Zone::Offset(seconds) => moment.seconds -= seconds,
        Zone::Named(name) => {
            let zone = crate::postgres_functions::zone(name, false).ok()?;
            moment = crate::postgres_functions::moment_in(&zone, &moment)?;
        }
    }
    within(moment)
}

/// True if the zone of a text is further from UTC than any.
pub(crate) fn is_far(text: &str) -> bool {
    let at = text.find(':').unwrap_or(text.len());
    let Some(zone) = text[at..].split(['+', '-']).nth(1) else { return false };
    let digits = zone.split([':', ' ']).next().unwrap_or_default();
    let hours = if digits.len() == 4 { &digits[..2] } else { digits };
    hours.parse::<i64>().is_ok_and(|hours| hours > ZONE_HOURS)
}

/// True if a text has the form of a day and perhaps a clock, even if its numbers are too large.
pub(crate) fn has_form(text: &str) -> bool {
    let text = text.trim();
    let era = ["BC", "bc", "AD", "ad"].into_iter().find_map(|era| text.strip_suffix(era));
    let text = era.map_or(text, str::trim_end);
    let day = &text[..text.find([' ', 'T', 't']).unwrap_or(text.len())];
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_day = day.split(['-', '/']).filter(is_number).count() == 3;
    // Digits alone: a year, a month and a day, or a month that is none.
    if is_number(&text) {
        return matches!(text.len(), 6 | 8) || text.len() == 2 && !("01".."13").contains(&text);
    }
    is_day && text[day.len()..].bytes().all(|byte| byte.is_ascii_digit() || b" Tt:.+-Zz".contains(&byte))
}

/// Year, month and day of a text.
fn parse_date(text: &str) -> Option<(i64, i64, i64)> {
    let mut parts = text.splitn(3, ['-', '/']).map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??, parts.next()??))
}

/// A time of day.
struct Clock<'a> {
    /// Since midnight; up to a whole day.
    nanoseconds: i64,
    zone: Zone<'a>,
}

/// What stands behind a time of day.
enum Zone<'a> {
    /// Seconds that it is ahead of UTC.
    Offset(i64),
    /// The name of one.
    Named(&'a str),
}

fn parse_clock(text: &str) -> Option<Clock<'_>> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, ':' | '.'))).unwrap_or(text.len());
    let (clock, mut rest) = (&text[..end], text[end..].trim());
    let mut parts = clock.splitn(3, ':');
    let mut hour: i64 = parts.next()?.parse().ok()?;
    let minute: i64 = parts.next().unwrap_or("0").parse().ok()?;
    let seconds = parts.next().unwrap_or("0");
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let (second, part): (i64, i64) = (whole.parse().ok()?, digits.parse().ok()?);
    let first = &rest[..rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len())];
    if let Some(half) = Some(first).filter(|half| half.eq_ignore_ascii_case("am") || half.eq_ignore_ascii_case("pm")) {
        if !(1..=12).contains(&hour) {
            return None;
        }
        hour = hour % 12 + if half.eq_ignore_ascii_case("pm") { 12 } else { 0 };
        rest = rest[2..].trim();
    }
    let zone = match rest {
        "" | "Z" | "z" | "UTC" => Zone::Offset(0),
        zone => match zone.strip_prefix(['+', '-']) {
            Some(digits) => Zone::Offset(if zone.starts_with('-') { -1 } else { 1 } * parse_offset(digits)?),
            None => Zone::Named(zone),
        },
    };
    let nanoseconds = ((hour * 60 + minute) * 60 + second) * 1_000_000_000 + part;
    let is_good = (0..=24).contains(&hour) && minute < 60 && second <= 60 && nanoseconds <= DAY_NS;
    is_good.then_some(Clock { nanoseconds, zone })
}

/// Seconds of `05`, `05:30`, `0530` or `05:30:15`.
fn parse_offset(digits: &str) -> Option<i64> {
    let number = |text: &str| text.parse::<i64>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    let mut parts = digits.splitn(3, ':');
    let first = parts.next()?;
    let (hours, minutes) = match parts.next() {
        Some(minutes) => (number(first)?, number(minutes)?),
        None if first.len() == 4 => (number(&first[..2])?, number(&first[2..])?),
        None => (number(first)?, 0),
    };
    let seconds = parts.next().map_or(Some(0), number)?;
    (hours <= ZONE_HOURS && minutes < 60 && seconds < 60).then_some(hours * 3600 + minutes * 60 + seconds)
}

/// As PostgreSQL and MySQL write it; a day alone if it has no time.
pub(crate) fn display(moment: &Datetime) -> String {
    if let Some(name) = endless_name(moment) {
        return name.to_string();
    }
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
    if endless_name(moment).is_some() {
        return Some(*moment);
    }
    // Wide enough for whatever fields there are.
    let fields = interval.fields.map(|field| i128::from(field) * i128::from(sign));
    let [years, months, weeks, days, hours, minutes, seconds, nanoseconds] = fields;
    let day = moment.seconds.div_euclid(86_400);
    let (year, month, date) = tuple::datetime::date_of(day);
    let months = i128::from(year) * 12 + i128::from(month) - 1 + years * 12 + months;
    let (year, month) = (i64::try_from(months.div_euclid(12)).ok()?, months.rem_euclid(12) as i64 + 1);
    let midnight = midnight(year, month, i64::from(date).min(length_of(year, month)?))?;
    let nanoseconds = i128::from(moment.nanoseconds) + nanoseconds;
    let clock = i128::from(moment.seconds.rem_euclid(86_400))
        + (weeks * 7 + days) * 86_400
        + hours * 3600
        + minutes * 60
        + seconds;
    let seconds = i128::from(midnight.seconds) + clock + nanoseconds.div_euclid(1_000_000_000);
    Some(Datetime {
        seconds: i64::try_from(seconds).ok().filter(|seconds| SECONDS.contains(seconds))?,
        nanoseconds: nanoseconds.rem_euclid(1_000_000_000) as i32,
        ..*moment
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_moments_are_the_outermost_that_a_row_holds() {
        let second = |moment: Datetime, by: i64| Datetime { seconds: moment.seconds + by, ..moment };
        assert!(INFINITY.is_good() && !second(INFINITY, 86_400).is_good());
        assert!(MINUS_INFINITY.is_good() && !second(MINUS_INFINITY, -1).is_good());
        assert_eq!(named(" Infinity").map(|moment| display(&moment)).as_deref(), Some("infinity"));
        assert_eq!(
            moved(&MINUS_INFINITY, &Interval { fields: [0, 0, 0, 5, 0, 0, 0, 0], adjust: 1 }, 1),
            Some(MINUS_INFINITY)
        );
    }

    #[test]
    fn moments_are_read_as_postgres_reads_them() {
        let shown = |text: &str| parse(text, false).map(|moment| display(&moment));
        for (text, wanted) in [
            ("2020-03-04 24:00:00", "2020-03-05 00:00:00"),
            ("2001-02-03 04:05:06+07:30:09", "2001-02-02 20:34:57"),
            ("2001-02-03T12:13:14 Asia/Makassar", "2001-02-03 04:13:14"),
            ("2001-02-03 04:05:06.5 PM", "2001-02-03 16:05:06.500"),
            ("2001-02-03 04:05-0130", "2001-02-03 05:35:00"),
            ("2001-02-03 04:05:06 America/Edmonton", "2001-02-03 11:05:06"),
        ] {
            assert_eq!(
                shown(text).map(|text| text.trim_end_matches('0').to_string()),
                Some(wanted.trim_end_matches('0').to_string()),
                "{text}"
            );
        }
        for text in
            ["2001-02-03 25:00", "2001-02-03 24:00:01", "2001-02-03 04:60", "2001-02-03 nowhere", "0000-01-01 BC"]
        {
            assert_eq!(shown(text), None, "{text}");
        }
        assert_eq!(parse("0001-12-31 BC", true).map(|moment| moment.seconds), Some(-62_167_219_200 + 365 * 86_400));
    }
}
