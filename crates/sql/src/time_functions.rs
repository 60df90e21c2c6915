//! Functions of TIME that PostgreSQL's and MySQL's dialects have, and those that their operators are.

use crate::clock::{self, DAY, SECOND, nanos_of, of_moment, value_of};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::functions::{Function, Returns};
use crate::run::Run;
use crate::text::parts_of;
use crate::types::{Base, Type};
use crate::value::Value;
use std::cmp::Ordering;
use std::rc::Rc;
use tuple::datetime::{ADJUST_NONE, Datetime, Interval};
use tuple::decimal::Decimal;

const TIME: Returns = Returns::Type(Base::Time);
const ZONED: Returns = Returns::Type(Base::TimeTz);
const INTERVAL: Returns = Returns::Type(Base::Interval);
const STAMP: Returns = Returns::Type(Base::Timestamp);
const DECIMAL: Returns = Returns::Type(Base::Decimal);

/// The function of a name.
pub(crate) fn find(dialect: Dialect, name: &str) -> Option<&'static Function> {
    let is_spoken = dialect != Dialect::Tarantool;
    FUNCTIONS.iter().find(|function| function.name == name).filter(|_| is_spoken)
}

fn refused() -> Error {
    Error::new(Condition::InvalidArgument, "a time is wanted")
}

fn moment(value: &Value) -> Result<&Datetime> {
    match value {
        Value::Datetime(moment) => Ok(moment),
        _ => Err(refused()),
    }
}

/// Nanoseconds of an interval's days and clock.
fn nanos_of_interval(value: &Value) -> Result<(i64, i64)> {
    match value {
        Value::Interval(interval) => {
            let (_, days, micros) = parts_of(interval);
            Ok((days, micros.saturating_mul(1000)))
        }
        _ => Err(refused()),
    }
}

/// The interval of a span.
pub(crate) fn interval_of(nanos: i64) -> Value {
    let fields = [0, 0, 0, 0, 0, 0, nanos / SECOND, nanos % SECOND];
    Value::Interval(Rc::new(Interval { fields, adjust: ADJUST_NONE }))
}

/// What a clock shows here when the statement runs, in nanoseconds since 1970.
pub(crate) fn now(run: &Run<'_>) -> i64 {
    let nanos = i64::try_from(run.now_ns).unwrap_or(0);
    let moment = Datetime { seconds: nanos.div_euclid(SECOND), ..Datetime::default() };
    let ahead = run.zone().map_or(0, |zone| zone.ahead(&moment));
    nanos.saturating_add(ahead * SECOND)
}

/// A part of what a clock shows. Errors: there is no such one.
fn time_part(unit: &Value, nanos: i64, of: &str) -> Result<Value> {
    let unit = unit.as_text().unwrap_or_default().to_ascii_lowercase();
    let micros = i128::from(nanos / 1000);
    let (digits, scale) = match unit.strip_suffix('s').unwrap_or(&unit) {
        "hour" => (micros / 3_600_000_000, 0),
        "minute" => (micros / 60_000_000 % 60, 0),
        "second" => (micros % 60_000_000, 6),
        "millisecond" => (micros % 60_000_000, 3),
        "microsecond" => (micros % 60_000_000, 0),
        "epoch" => (micros, 6),
        "year" | "month" | "day" | "week" | "quarter" | "decade" | "century" | "centurie" | "millennium" | "doy"
        | "dow" | "isodow" | "isoyear" | "julian" | "timezone" | "timezone_hour" | "timezone_minute" => {
            return Err(Error::new(Condition::Unsupported, format!("unit \"{unit}\" not supported for type {of}")));
        }
        _ => {
            let what = format!("unit \"{unit}\" not recognized for type {of}");
            return Err(Error::new(Condition::InvalidArgument, what));
        }
    };
    Decimal::new(digits, scale).map(Value::decimal).ok_or_else(refused)
}

/// True if two spans, each with a first and a last moment in any order, have a moment in common; one that begins and ends at once is that moment. None: it is
/// not known, because an end is null.
fn overlap(a: &[Value]) -> Option<bool> {
    // An end that is not known comes last.
    let span = |a: &Value, b: &Value| -> Option<(Value, Option<Value>)> {
        match (a.is_null(), b.is_null()) {
            (true, true) => None,
            (true, false) => Some((b.clone(), None)),
            (false, true) => Some((a.clone(), None)),
            (false, false) if a.order(b).is_gt() => Some((b.clone(), Some(a.clone()))),
            (false, false) => Some((a.clone(), Some(b.clone()))),
        }
    };
    let (mut first, mut second) = (span(&a[0], &a[1])?, span(&a[2], &a[3])?);
    match first.0.order(&second.0) {
        Ordering::Equal => return first.1.and(second.1).map(|_| true),
        Ordering::Greater => std::mem::swap(&mut first, &mut second),
        Ordering::Less => {}
    }
    let (Some(end), later) = (first.1, second) else { return None };
    match later.0.order(&end).is_lt() {
        true => Some(true),
        false => later.1.map(|_| false),
    }
}

/// Seconds since 1970 when the statement runs.
fn now_seconds(run: &Run<'_>) -> i64 {
    i64::try_from(run.now_ns / 1_000_000_000).unwrap_or(0)
}

/// Seconds that clocks here are ahead of UTC when the statement runs.
fn ahead_now(run: &Run<'_>) -> i64 {
    let now = Datetime { seconds: now_seconds(run), ..Datetime::default() };
    run.zone().map_or(0, |zone| zone.ahead(&now))
}

crate::functions::alike! {
    is_volatile: false;
    "clock_of" (1, 1) TIME, true => |_, a| Ok(value_of(of_moment(moment(&a[0])?)));
    "clock_of_span" (1, 1) TIME, true => |_, a| Ok(value_of(nanos_of_interval(&a[0])?.1.rem_euclid(DAY)));
    "span_of" (1, 1) INTERVAL, true => |_, a| match &a[0] {
        Value::Datetime(moment) => Ok(interval_of(nanos_of(moment))),
        other => Ok(other.clone()),
    };
    "time_moved" (3, 3) TIME, true => |_, a| {
        let sign = if a[2].as_integer() == Some(-1) { -1 } else { 1 };
        let (_, nanos) = nanos_of_interval(&a[1])?;
        Ok(value_of((nanos_of(moment(&a[0])?) + sign * (nanos % DAY)).rem_euclid(DAY)))
    };
    "times_between" (2, 2) INTERVAL, true => |_, a| Ok(interval_of(nanos_of(moment(&a[0])?) - nanos_of(moment(&a[1])?)));
    "day_and_time" (2, 2) STAMP, true => |_, a| {
        let (day, nanos) = (moment(&a[0])?, nanos_of(moment(&a[1])?));
        Ok(Value::Datetime(Rc::new(Datetime {
            seconds: day.seconds.div_euclid(86_400) * 86_400 + nanos.div_euclid(SECOND),
            nanoseconds: nanos.rem_euclid(SECOND) as i32,
            ..Datetime::default()
        })))
    };
    "make_time" (3, 3) TIME, true => |_, a| {
        let number = |at: usize| a[at].as_integer().and_then(|number| i64::try_from(number).ok()).unwrap_or(-1);
        let (hour, minute, second) = (number(0), number(1), a[2].as_double().unwrap_or(-1.0));
        let nanos = hour.saturating_mul(3600).saturating_add(minute.saturating_mul(60)).saturating_mul(SECOND);
        let nanos = nanos.saturating_add((second * 1e6).round() as i64 * 1000);
        match (0..=24).contains(&hour) && (0..60).contains(&minute) && (0.0..=60.0).contains(&second) && nanos <= DAY {
            true => Ok(value_of(nanos)),
            false => {
                let what = format!("time field value out of range: {hour}:{minute:02}:{second:02}");
                Err(Error::new(Condition::DatetimeOverflow, what))
            }
        }
    };
    "clock_now" (0, 0) TIME, true => |run, _| Ok(value_of((now(run) / 1000 * 1000).rem_euclid(DAY)));
    "span_of_clock" (1, 1) INTERVAL, true => |_, a| {
        let (_, nanos) = nanos_of_interval(&a[0])?;
        match nanos < 0 {
            true => Err(Error::new(Condition::WindowFrame, "invalid preceding or following size in window function")),
            false => Ok(interval_of(nanos)),
        }
    };
    "date_bin" (3, 3) STAMP, true => |_, a| {
        let (months, days, micros) = match &a[0] {
            Value::Interval(interval) => parts_of(interval),
            _ => return Err(refused()),
        };
        let (at, origin) = (moment(&a[1])?, moment(&a[2])?);
        if crate::moments::endless_name(at).is_some() {
            return Ok(a[1].clone());
        }
        let beyond = |what: &str| Error::new(Condition::DatetimeOverflow, format!("{what} out of range"));
        if crate::moments::endless_name(origin).is_some() {
            return Err(beyond("origin"));
        }
        if months != 0 {
            let what = "timestamps cannot be binned into intervals containing months or years";
            return Err(Error::new(Condition::Unsupported, what));
        }
        let stride = i128::from(days) * i128::from(DAY) + i128::from(micros) * 1000;
        if stride <= 0 {
            return Err(Error::new(Condition::DatetimeOverflow, "stride must be greater than zero"));
        }
        let nanos = |moment: &Datetime| i128::from(moment.seconds) * i128::from(SECOND) + i128::from(moment.nanoseconds);
        if [stride, nanos(at) - nanos(origin)].iter().any(|span| i64::try_from(span / 1000).is_err()) {
            return Err(beyond("interval"));
        }
        let start = nanos(origin) + (nanos(at) - nanos(origin)).div_euclid(stride) * stride;
        let seconds = i64::try_from(start.div_euclid(i128::from(SECOND))).map_err(|_| refused())?;
        let nanoseconds = start.rem_euclid(i128::from(SECOND)) as i32;
        let found = crate::moments::within(Datetime { seconds, nanoseconds, ..Datetime::default() });
        found.map(|moment| Value::Datetime(Rc::new(moment))).ok_or_else(|| beyond("timestamp"))
    };
    "overlaps" (4, 4) Returns::Type(Base::Bool), false => |_, a| Ok(overlap(a).map_or(Value::Null, Value::Bool));

    // Those with a zone.
    "zoned_clock" (1, 1) ZONED, true => |run, a| clock::zoned(nanos_of(moment(&a[0])?), ahead_now(run));
    "zoned_clock_of" (1, 1) ZONED, true => |run, a| {
        let at = moment(&a[0])?;
        let ahead = run.zone().map_or(0, |zone| zone.ahead(at));
        clock::zoned(of_moment(&Datetime { seconds: at.seconds + ahead, ..*at }), ahead)
    };
    "zoned_clock_of_text" (1, 1) ZONED, true => |run, a| match &a[0] {
        Value::Text(text) => clock::parse_zoned(text, run.zone().as_ref(), now_seconds(run), Type::of(Base::TimeTz)),
        other => Ok(other.clone()),
    };
    "clock_of_zoned" (1, 1) TIME, true => |_, a| Ok(value_of(clock::clock_of_zoned(moment(&a[0])?).0));
    "zoned_clock_now" (0, 0) ZONED, true => |run, _| clock::zoned((now(run) / 1000 * 1000).rem_euclid(DAY), ahead_now(run));
    "zoned_clock_moved" (3, 3) ZONED, true => |_, a| {
        let sign = if a[2].as_integer() == Some(-1) { -1 } else { 1 };
        let (clock, ahead) = clock::clock_of_zoned(moment(&a[0])?);
        let (_, nanos) = nanos_of_interval(&a[1])?;
        clock::zoned((clock + sign * (nanos % DAY)).rem_euclid(DAY), ahead)
    };
    "day_and_zoned_clock" (2, 2) Returns::Type(Base::TimestampTz), true => |_, a| {
        let (day, clock) = (moment(&a[0])?, moment(&a[1])?);
        let seconds = day.seconds.div_euclid(86_400) * 86_400 + clock.seconds;
        Ok(Value::Datetime(Rc::new(Datetime { seconds, nanoseconds: clock.nanoseconds, ..Datetime::default() })))
    };
    "zoned_clock_at" (2, 2) ZONED, true => |run, a| {
        let zone = crate::postgres_functions::zone_of(&a[1])?;
        let at = Datetime { seconds: now_seconds(run), ..Datetime::default() };
        let ahead = crate::zones::Zone::from(zone).ahead(&at);
        let clock = nanos_of(moment(&a[0])?) + ahead * SECOND;
        clock::zoned(clock.rem_euclid(DAY), ahead)
    };
    "zoned_time_part" (2, 2) DECIMAL, true => |run, a| {
        let (clock, ahead) = clock::clock_of_zoned(moment(&a[1])?);
        let number = match a[0].as_text().unwrap_or_default().to_ascii_lowercase().as_str() {
            "timezone" => ahead,
            "timezone_hour" => ahead / 3600,
            "timezone_minute" => ahead / 60 % 60,
            "epoch" => return time_part(&a[0], nanos_of(moment(&a[1])?), "time with time zone"),
            _ => return time_part(&a[0], clock, "time with time zone"),
        };
        let _ = run;
        Ok(Value::decimal(Decimal::from(number)))
    };
    "time_part" (2, 2) DECIMAL, true => |_, a| time_part(&a[0], nanos_of(moment(&a[1])?), "time without time zone");

    // Those of MySQL's.
    "today_at" (1, 1) STAMP, true => |run, a| {
        let today = now(run).div_euclid(DAY) * 86_400;
        let nanos = nanos_of(moment(&a[0])?);
        Ok(Value::Datetime(Rc::new(Datetime {
            seconds: today + nanos.div_euclid(SECOND),
            nanoseconds: nanos.rem_euclid(SECOND) as i32,
            ..Datetime::default()
        })))
    };
    "digits_of_span" (2, 2) Returns::Type(Base::Any), true => |_, a| {
        let nanos = nanos_of(moment(&a[0])?);
        let (sign, seconds) = if nanos < 0 { (-1, -nanos / SECOND) } else { (1, nanos / SECOND) };
        let whole = i128::from(seconds / 3600 * 10_000 + seconds / 60 % 60 * 100 + seconds % 60);
        let digits = a[1].as_integer().unwrap_or(0).clamp(0, 6) as u32;
        let behind = i128::from(nanos.abs() % SECOND) / 10i128.pow(9 - digits);
        match digits {
            0 => Ok(Value::Int(sign * whole as i64)),
            digits => {
                let all = i128::from(sign) * (whole * 10i128.pow(digits) + behind);
                Decimal::new(all, digits as i32).map(Value::decimal).ok_or_else(refused)
            }
        }
    };
    "span_moved" (4, 4) TIME, true => |_, a| {
        let unit = a[2].as_text().unwrap_or_default();
        let amount = crate::cast::display(Dialect::Mysql, &a[1]);
        let Some(interval) = crate::mysql::moments::interval(&amount, unit)? else { return Ok(Value::Null) };
        let [years, months, ..] = interval.fields;
        let (days, nanos) = nanos_of_interval(&Value::Interval(Rc::new(interval)))?;
        let sign = if a[3].as_integer() == Some(-1) { -1 } else { 1 };
        let moved = nanos.saturating_add(days.saturating_mul(DAY)).saturating_mul(sign).saturating_add(nanos_of(moment(&a[0])?));
        // What is longer than any is none.
        let is_one = (years, months) == (0, 0) && clock::clamped(moved / SECOND * SECOND) == moved / SECOND * SECOND;
        Ok(if is_one { value_of(moved) } else { Value::Null })
    };
}
