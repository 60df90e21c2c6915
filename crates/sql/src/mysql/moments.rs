//! Days and moments as MySQL writes them: patterns of DATE_FORMAT and STR_TO_DATE, weeks, differences.
//!
//! The day `0000-00-00`, which some programs write for "none", is the first day of the year 0, which nothing else can be.

use crate::error::{Condition, Error, Result};
use crate::moments;
use std::fmt::Write;
use tuple::datetime::{Datetime, Interval, date_of};

/// Seconds of a day.
pub(crate) const DAY: i64 = 86_400;
/// The day that means none, in seconds.
pub(crate) const ZERO_SECONDS: i64 = -62_167_219_200;

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
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// A moment in parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    /// Seconds of the day.
    pub(crate) clock: i64,
    pub(crate) micros: i64,
    /// Days since 1970.
    pub(crate) number: i64,
}

/// The parts of a moment.
pub(crate) fn parts(moment: &Datetime) -> Parts {
    let number = moment.seconds.div_euclid(DAY);
    let (year, month, day) = date_of(number);
    let micros = i64::from(moment.nanoseconds / 1000);
    let clock = moment.seconds.rem_euclid(DAY);
    if moment.seconds == ZERO_SECONDS && micros == 0 {
        return Parts { year: 0, month: 0, day: 0, clock, micros, number };
    }
    Parts { year, month: i64::from(month), day: i64::from(day), clock, micros, number }
}

impl Parts {
    /// The day of the week: 0 is Monday.
    pub(crate) fn weekday(&self) -> i64 {
        (self.number + 3).rem_euclid(7)
    }

    /// The day of the year, from 1.
    pub(crate) fn day_of_year(&self) -> i64 {
        self.number - day_number(self.year, 1, 1) + 1
    }

    /// The week of the year and the year that it is of, by the mode of WEEK().
    pub(crate) fn week(&self, mode: i64) -> (i64, i64) {
        let begins_monday = mode & 1 != 0;
        let from_one = mode & 2 != 0;
        // The first week has four days of the year, or begins with the day that weeks begin with.
        let needs_four = begins_monday == (mode & 4 == 0);
        let first_of = |year: i64| {
            let first = day_number(year, 1, 1);
            let weekday = if begins_monday { (first + 3).rem_euclid(7) } else { (first + 4).rem_euclid(7) };
            match needs_four {
                true if weekday <= 3 => first - weekday,
                true => first + 7 - weekday,
                false => first + (7 - weekday) % 7,
            }
        };
        let mut year = self.year;
        let mut first = first_of(year);
        if self.number < first {
            if !from_one {
                return (0, year);
            }
            year -= 1;
            first = first_of(year);
        } else if from_one && self.number >= first_of(year + 1) {
            return (1, year + 1);
        }
        ((self.number - first) / 7 + 1, year)
    }
}

/// Seconds that a zone is before UTC: `UTC`, `SYSTEM`, `+05:30`. None: another one.
pub(crate) fn zone_seconds(zone: &str) -> Option<i64> {
    if ["utc", "gmt", "system", "etc/utc"].iter().any(|name| zone.eq_ignore_ascii_case(name)) {
        return Some(0);
    }
    let (sign, rest) = match zone.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let number =
        |digits: &str| digits.parse::<i64>().ok().filter(|_| digits.len() <= 2 && !digits.starts_with(['+', '-']));
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours <= 14 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Days from 1970 to a day.
pub(crate) fn day_number(year: i64, month: i64, day: i64) -> i64 {
    // By eras of 400 years, whose years begin in March.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Days that a month has.
pub(crate) fn days_of(year: i64, month: i64) -> i64 {
    let next = if month == 12 { day_number(year + 1, 1, 1) } else { day_number(year, month + 1, 1) };
    next - day_number(year, month, 1)
}

/// The moment of parts. None: there is no such day.
pub(crate) fn moment(year: i64, month: i64, day: i64, clock: i64, micros: i64) -> Option<Datetime> {
    if (year, month, day, clock, micros) == (0, 0, 0, 0, 0) {
        return Some(Datetime { seconds: ZERO_SECONDS, ..Datetime::default() });
    }
    let is_one = (0..=9999).contains(&year) && (1..=12).contains(&month) && day >= 1 && day <= days_of(year, month);
    (is_one && (0..DAY).contains(&clock) && (0..1_000_000).contains(&micros)).then(|| Datetime {
        seconds: day_number(year, month, day) * DAY + clock,
        nanoseconds: (micros * 1000) as i32,
        ..Datetime::default()
    })
}

/// A moment from text in the ways that MySQL reads: any marks between numbers, or digits alone. None: there is none.
pub(crate) fn parse(text: &str) -> Option<Datetime> {
    let text = text.trim();
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return parse_digits(text);
    }
    if let Some((digits, fraction)) = text.split_once('.')
        && digits.len() >= 12
        && digits.bytes().all(|byte| byte.is_ascii_digit())
    {
        let mut moment = parse_digits(digits)?;
        moment.nanoseconds = micros_of(fraction)? as i32 * 1000;
        return Some(moment);
    }
    let mut numbers = [0i64; 6];
    let (mut at, mut rest, mut micros, mut length) = (0, text, 0, 0);
    while at < 6 {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        if end == 0 || end > 4 {
            return None;
        }
        if at == 0 {
            length = end;
        }
        numbers[at] = rest[..end].parse().ok()?;
        at += 1;
        rest = &rest[end..];
        let Some(mark) = rest.chars().next() else { break };
        if mark == '.' && at == 6 {
            let end = rest[1..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |end| end + 1);
            micros = micros_of(&rest[1..end])?;
            rest = &rest[end..];
            break;
        }
        if mark.is_ascii_alphanumeric() && !(mark == 'T' && at == 3) || !mark.is_ascii() {
            break;
        }
        if at == 6 || matches!(mark, '+' | 'Z') && at > 3 {
            break;
        }
        rest = rest[1..].trim_start();
    }
    if at < 3 || at == 4 && !rest.is_empty() {
        return None;
    }
    let year = match (length, numbers[0]) {
        (1 | 2, year @ 0..=69) => year + 2000,
        (1 | 2, year) => year + 1900,
        (_, year) => year,
    };
    let [_, month, day, hour, minute, second] = numbers;
    let year = if month == 0 && day == 0 && numbers[0] == 0 { 0 } else { year };
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut found = moment(year, month, day, hour * 3600 + minute * 60 + second, micros)?;
    match rest.trim() {
        "" => {}
        "Z" | "z" => {}
        offset if at >= 5 && offset.starts_with(['+', '-']) => {
            let (hours, minutes) = offset[1..].split_once(':')?;
            let minutes = i64::from(hours.parse::<u8>().ok()?) * 60 + i64::from(minutes.parse::<u8>().ok()?);
            found.seconds -= if offset.starts_with('-') { -minutes * 60 } else { minutes * 60 };
        }
        _ => return None,
    }
    Some(found)
}

/// Microseconds from the digits behind a point; the seventh digit rounds.
fn micros_of(digits: &str) -> Option<i64> {
    let padded: String = digits.chars().chain("000000".chars()).take(6).collect();
    let micros: i64 = padded.parse().ok()?;
    let is_up = digits.as_bytes().get(6).is_some_and(|digit| *digit >= b'5');
    Some((micros + i64::from(is_up)).min(999_999))
}

/// A number whose digits are those of a moment: the first ones of a year of two may be zeros. None: it is another one.
pub(crate) fn of_number(number: i64) -> Option<Datetime> {
    match number {
        101..=99_999 => parse_digits(&format!("{number:06}")),
        101_000_000..=99_999_999_999 => parse_digits(&format!("{number:012}")),
        number => parse(&number.to_string()),
    }
}

fn parse_digits(digits: &str) -> Option<Datetime> {
    let (year, rest) = match digits.len() {
        8 | 14 => (digits[..4].parse::<i64>().ok()?, &digits[4..]),
        6 | 12 => {
            let year: i64 = digits[..2].parse().ok()?;
            (if year < 70 { year + 2000 } else { year + 1900 }, &digits[2..])
        }
        _ => return None,
    };
    let number = |at: usize| rest.get(at..at + 2).map_or(Some(0), |text| text.parse::<i64>().ok());
    let (month, day) = (number(0)?, number(2)?);
    let (hour, minute, second) = (number(4)?, number(6)?, number(8)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let year = if month == 0 && day == 0 && digits.starts_with("0000") { 0 } else { year };
    moment(year, month, day, hour * 3600 + minute * 60 + second, 0)
}

/// The moment as text, with as many digits of a second as it has.
pub(crate) fn display(moment: &Datetime) -> String {
    if moment.seconds == ZERO_SECONDS && moment.nanoseconds == 0 {
        return "0000-00-00 00:00:00".to_string();
    }
    moments::display(moment)
}

/// A day as text.
pub(crate) fn display_day(moment: &Datetime) -> String {
    let Parts { year, month, day, .. } = parts(moment);
    format!("{year:04}-{month:02}-{day:02}")
}

fn suffix(day: i64) -> &'static str {
    match day {
        11..=13 => "th",
        day => match day % 10 {
            1 => "st",
            2 => "nd",
            3 => "rd",
            _ => "th",
        },
    }
}

/// DATE_FORMAT.
pub(crate) fn format(moment: &Datetime, pattern: &str) -> String {
    let parts = parts(moment);
    let (hour, minute, second) = (parts.clock / 3600, parts.clock / 60 % 60, parts.clock % 60);
    let hour12 = if hour % 12 == 0 { 12 } else { hour % 12 };
    let month_name = |month: i64| usize::try_from(month - 1).ok().and_then(|at| MONTHS.get(at)).copied().unwrap_or("");
    let day_name = DAYS[parts.weekday() as usize];
    let mut out = String::new();
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let _ = match rest.next() {
            Some('Y') => write!(out, "{:04}", parts.year),
            Some('y') => write!(out, "{:02}", parts.year % 100),
            Some('m') => write!(out, "{:02}", parts.month),
            Some('c') => write!(out, "{}", parts.month),
            Some('M') => write!(out, "{}", month_name(parts.month)),
            Some('b') => write!(out, "{}", month_name(parts.month).get(..3).unwrap_or("")),
            Some('d') => write!(out, "{:02}", parts.day),
            Some('e') => write!(out, "{}", parts.day),
            Some('D') => write!(out, "{}{}", parts.day, suffix(parts.day)),
            Some('j') => write!(out, "{:03}", parts.day_of_year()),
            Some('H') => write!(out, "{hour:02}"),
            Some('k') => write!(out, "{hour}"),
            Some('h' | 'I') => write!(out, "{hour12:02}"),
            Some('l') => write!(out, "{hour12}"),
            Some('i') => write!(out, "{minute:02}"),
            Some('s' | 'S') => write!(out, "{second:02}"),
            Some('f') => write!(out, "{:06}", parts.micros),
            Some('p') => write!(out, "{}", if hour < 12 { "AM" } else { "PM" }),
            Some('r') => write!(out, "{hour12:02}:{minute:02}:{second:02} {}", if hour < 12 { "AM" } else { "PM" }),
            Some('T') => write!(out, "{hour:02}:{minute:02}:{second:02}"),
            Some('W') => write!(out, "{day_name}"),
            Some('a') => write!(out, "{}", &day_name[..3]),
            Some('w') => write!(out, "{}", (parts.weekday() + 1) % 7),
            Some('U') => write!(out, "{:02}", parts.week(0).0),
            Some('u') => write!(out, "{:02}", parts.week(1).0),
            Some('V') => write!(out, "{:02}", parts.week(2).0),
            Some('v') => write!(out, "{:02}", parts.week(3).0),
            Some('X') => write!(out, "{:04}", parts.week(2).1),
            Some('x') => write!(out, "{:04}", parts.week(3).1),
            Some(other) => {
                out.push(other);
                Ok(())
            }
            None => Ok(()),
        };
    }
    out
}

/// STR_TO_DATE. None: the text is not as the pattern says.
pub(crate) fn read(text: &str, pattern: &str) -> Option<(Datetime, bool)> {
    let Read { day: (year, month, day), clock, micros, has_time } = read_parts(text, pattern)?;
    moment(year, month, day, clock, micros).map(|moment| (moment, has_time))
}

/// STR_TO_DATE of a clock alone, in nanoseconds.
pub(crate) fn read_time(text: &str, pattern: &str) -> Option<i64> {
    let Read { clock, micros, .. } = read_parts(text, pattern)?;
    Some((clock * 1_000_000 + micros) * 1000)
}

/// The pattern that GET_FORMAT gives.
pub(crate) fn format_of(kind: &str, form: &str) -> Option<&'static str> {
    let forms = match kind {
        "date" => ["%m.%d.%Y", "%Y-%m-%d", "%d.%m.%Y", "%Y%m%d"],
        "time" => ["%h:%i:%s %p", "%H:%i:%s", "%H.%i.%s", "%H%i%s"],
        "datetime" | "timestamp" => ["%Y-%m-%d %H.%i.%s", "%Y-%m-%d %H:%i:%s", "%Y-%m-%d %H.%i.%s", "%Y%m%d%H%i%s"],
        _ => return None,
    };
    let at = match form.to_ascii_uppercase().as_str() {
        "USA" => 0,
        "ISO" | "JIS" => 1,
        "EUR" => 2,
        "INTERNAL" => 3,
        _ => return None,
    };
    Some(forms[at])
}

/// What STR_TO_DATE finds in a text.
struct Read {
    /// Year, month and day.
    day: (i64, i64, i64),
    /// Seconds of the day.
    clock: i64,
    micros: i64,
    /// The pattern has a clock.
    has_time: bool,
}

fn read_parts(text: &str, pattern: &str) -> Option<Read> {
    let mut of_year = 0;
    let (mut year, mut month, mut day) = (0, 0, 0);
    let (mut hour, mut minute, mut second, mut micros) = (0, 0, 0, 0);
    let (mut is_pm, mut has_time) = (None, false);
    let mut rest = text;
    fn digits(rest: &mut &str, most: usize) -> Option<i64> {
        let end = rest.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let number = rest.get(..end)?.parse().ok()?;
        *rest = &rest[end..];
        Some(number)
    }
    let name = |rest: &mut &str, names: &[&str], is_short: bool| -> Option<i64> {
        let at = names.iter().position(|name| {
            let wanted = if is_short { &name[..3] } else { name };
            rest.get(..wanted.len()).is_some_and(|text| text.eq_ignore_ascii_case(wanted))
        })?;
        *rest = &rest[if is_short { 3 } else { names[at].len() }..];
        Some(at as i64 + 1)
    };
    fn half(rest: &mut &str) -> Option<bool> {
        let word = rest.get(..2)?;
        let is_pm = word.eq_ignore_ascii_case("pm");
        let is_half = is_pm || word.eq_ignore_ascii_case("am");
        *rest = &rest[2..];
        is_half.then_some(is_pm)
    }
    let pattern = pattern.replace("%T", "%H:%i:%S").replace("%r", "%I:%i:%S %p");
    let mut wanted = pattern.chars().peekable();
    while let Some(c) = wanted.next() {
        if c.is_whitespace() {
            rest = rest.trim_start();
            continue;
        }
        // What the text ends before is not asked for.
        if rest.trim_start().is_empty() {
            break;
        }
        if c != '%' {
            rest = rest.strip_prefix(c)?;
            continue;
        }
        let kind = wanted.next()?;
        rest = if kind == '%' { rest } else { rest.trim_start() };
        has_time |= "HkhIlisSfpTr".contains(kind);
        match kind {
            'Y' => year = digits(&mut rest, 4)?,
            'y' => {
                let short = digits(&mut rest, 2)?;
                year = if short < 70 { short + 2000 } else { short + 1900 };
            }
            'm' | 'c' => month = digits(&mut rest, 2)?,
            'M' => month = name(&mut rest, &MONTHS, false)?,
            'b' => month = name(&mut rest, &MONTHS, true)?,
            'd' | 'e' => day = digits(&mut rest, 2)?,
            'D' => {
                day = digits(&mut rest, 2)?;
                rest = rest.get(2..)?;
            }
            'H' | 'k' => hour = digits(&mut rest, 2)?,
            'h' | 'I' | 'l' => hour = digits(&mut rest, 2)? % 12,
            'i' => minute = digits(&mut rest, 2)?,
            's' | 'S' => second = digits(&mut rest, 2)?,
            'f' => {
                let end = rest.bytes().take(6).take_while(u8::is_ascii_digit).count();
                micros = micros_of(&rest[..end])?;
                rest = &rest[end..];
            }
            'p' => {
                is_pm = Some(half(&mut rest)?);
            }
            'j' => of_year = digits(&mut rest, 3)?,
            'W' => _ = name(&mut rest, &DAYS, false)?,
            'a' => _ = name(&mut rest, &DAYS, true)?,
            '%' => rest = rest.strip_prefix('%')?,
            _ => return None,
        }
    }
    if is_pm == Some(true) {
        hour += 12;
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    if of_year > 0 {
        let days = if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) { 366 } else { 365 };
        let (_, at_month, at_day) = date_of(day_number(year, 1, 1) + Some(of_year - 1).filter(|_| of_year <= days)?);
        (month, day) = (i64::from(at_month), i64::from(at_day));
    }
    let clock = hour * 3600 + minute * 60 + second;
    Some(Read { day: (year, month, day), clock, micros, has_time })
}

/// The names of a month and a weekday.
pub(crate) fn names(moment: &Datetime) -> (&'static str, &'static str) {
    let parts = parts(moment);
    let month = usize::try_from(parts.month - 1).ok().and_then(|at| MONTHS.get(at)).copied().unwrap_or("");
    (month, DAYS[parts.weekday() as usize])
}

/// An interval of so many of a unit: `1 DAY`, `'1:30' MINUTE_SECOND`. None: more numbers than the unit has parts. Errors: there is no such unit.
pub(crate) fn interval(amount: &str, unit: &str) -> Result<Option<Interval>> {
    let mut found = Interval { adjust: tuple::datetime::ADJUST_NONE, ..Interval::default() };
    let unit = unit.to_ascii_uppercase();
    let Some((_, _)) = unit.split_once('_') else {
        let number: f64 = amount.trim().parse().unwrap_or_else(|_| {
            let end = amount.trim().find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(amount.trim().len());
            amount.trim()[..end].parse().unwrap_or(0.0)
        });
        let number = if unit == "SECOND" { number } else { number.round() };
        moments::add_unit(&mut found, number, &unit)
            .ok_or_else(|| Error::new(Condition::Syntax, format!("'{unit}' is no unit of time")))?;
        return Ok(Some(found));
    };
    const UNITS: [&str; 7] = ["YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "MICROSECOND"];
    let (first, last) = unit.split_once('_').unwrap_or((&unit, &unit));
    let place = |unit: &str| UNITS.iter().position(|known| *known == unit);
    let (Some(first), Some(last)) = (place(first), place(last)) else {
        return Err(Error::new(Condition::Syntax, format!("'{unit}' is no unit of time")));
    };
    let sign = if amount.trim_start().starts_with('-') { -1.0 } else { 1.0 };
    // Microseconds are the digits behind a point: 5 is half a second.
    let amount = match amount.rfind(|c: char| !c.is_ascii_digit()) {
        _ if UNITS[last] != "MICROSECOND" => amount.to_string(),
        Some(at) => format!("{}{:0<6.6}", &amount[..=at], &amount[at + 1..]),
        None => format!("{:0<6.6}", amount),
    };
    let numbers: Vec<f64> = amount
        .split(|c: char| !c.is_ascii_digit())
        .filter(|digits| !digits.is_empty())
        .map(|digits| digits.parse().unwrap_or(0.0))
        .collect();
    let wanted = last + 1 - first.min(last);
    if numbers.len() > wanted {
        return Ok(None);
    }
    // What is not said is missing at the front.
    for (number, unit) in numbers.iter().rev().take(wanted).zip(UNITS[first..=last].iter().rev()) {
        let _ = moments::add_unit(&mut found, sign * number, unit);
    }
    Ok(Some(found))
}

/// How many whole units lie between two moments.
pub(crate) fn difference(unit: &str, from: &Datetime, to: &Datetime) -> Option<i64> {
    let nanos = |moment: &Datetime| i128::from(moment.seconds) * 1_000_000_000 + i128::from(moment.nanoseconds);
    let between = nanos(to) - nanos(from);
    let whole = |unit: i128| i64::try_from(between / unit).ok();
    let months = || {
        let (a, b) = (parts(from), parts(to));
        let mut months = (b.year - a.year) * 12 + b.month - a.month;
        let key = |parts: &Parts| (parts.day, parts.clock, parts.micros);
        if months > 0 && key(&b) < key(&a) {
            months -= 1;
        } else if months < 0 && key(&b) > key(&a) {
            months += 1;
        }
        months
    };
    match unit.to_ascii_uppercase().trim_start_matches("SQL_TSI_") {
        "MICROSECOND" => whole(1000),
        "SECOND" => whole(1_000_000_000),
        "MINUTE" => whole(60_000_000_000),
        "HOUR" => whole(3_600_000_000_000),
        "DAY" => whole(86_400_000_000_000),
        "WEEK" => whole(7 * 86_400_000_000_000),
        "MONTH" => Some(months()),
        "QUARTER" => Some(months() / 3),
        "YEAR" => Some(months() / 12),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    #[test]
    fn moments_are_read_and_written() {
        let shown = |text: &str| parse(text).map(|moment| display(&moment));
        for (text, wanted) in [
            ("2024-02-29", "2024-02-29 00:00:00"),
            ("2024-2-9 1:02:03.5", "2024-02-09 01:02:03.5"),
            ("20240229", "2024-02-29 00:00:00"),
            ("20240229010203", "2024-02-29 01:02:03"),
            ("99/12/31", "1999-12-31 00:00:00"),
            ("0000-00-00", "0000-00-00 00:00:00"),
            ("0000-00-00 00:00:00", "0000-00-00 00:00:00"),
            ("2024-02-29T01:02:03Z", "2024-02-29 01:02:03"),
            ("2024-02-29 01:02:03+02:00", "2024-02-28 23:02:03"),
        ] {
            assert_eq!(shown(text).as_deref(), Some(wanted), "{text}");
        }
        for text in ["", "x", "2024-02-30", "2024-13-01", "2024-01-01 25:00:00", "2024", "2024-01-01 x"] {
            assert!(shown(text).is_none(), "{text}");
        }
    }

    #[test]
    fn formats_are_those_of_mysql() {
        let moment = parse("2009-10-04 22:23:00").unwrap();
        assert_eq!(format(&moment, "%W %M %Y"), "Sunday October 2009");
        assert_eq!(format(&parse("2007-10-04 22:23:00").unwrap(), "%H:%i:%s"), "22:23:00");
        assert_eq!(format(&parse("1900-10-04 22:23:00").unwrap(), "%D %y %a %d %m %b %j"), "4th 00 Thu 04 10 Oct 277");
        assert_eq!(
            format(&parse("1997-10-04 22:23:00").unwrap(), "%H %k %I %r %T %S %w"),
            "22 22 10 10:23:00 PM 22:23:00 00 6"
        );
        assert_eq!(format(&parse("1999-01-01").unwrap(), "%X %V"), "1998 52");
        assert_eq!(
            read("01,5,2013", "%d,%m,%Y").map(|found| display(&found.0)).as_deref(),
            Some("2013-05-01 00:00:00")
        );
        assert!(read("abc", "%d").is_none());
    }

    #[test]
    fn weeks_are_those_of_mysql() {
        let week = |text: &str, mode| parts(&parse(text).unwrap()).week(mode).0;
        assert_eq!((week("2008-02-20", 0), week("2008-02-20", 1), week("2008-12-31", 1)), (7, 8, 53));
        assert_eq!((week("2000-01-01", 0), week("2000-01-01", 2), week("2024-12-30", 3)), (0, 52, 1));
    }

    #[test]
    fn spans_are_counted() {
        let between = |unit: &str, a: &str, b: &str| difference(unit, &parse(a).unwrap(), &parse(b).unwrap());
        assert_eq!(between("MONTH", "2003-02-01", "2003-05-01"), Some(3));
        assert_eq!(between("YEAR", "2002-05-01", "2001-01-01"), Some(-1));
        assert_eq!(between("MINUTE", "2003-02-01", "2003-05-01 12:05:55"), Some(128_885));
        let moved = |amount: &str, unit: &str| {
            moments::moved(&parse("2024-01-31").unwrap(), &interval(amount, unit).unwrap().unwrap(), 1)
                .map(|moment| display(&moment))
        };
        assert_eq!(moved("1", "MONTH").as_deref(), Some("2024-02-29 00:00:00"));
        assert_eq!(moved("1:30", "MINUTE_SECOND").as_deref(), Some("2024-01-31 00:01:30"));
        assert_eq!(moved("1 2", "DAY_HOUR").as_deref(), Some("2024-02-01 02:00:00"));
    }
}
