//! Functions of MySQL that take spans of time or give them. A span among their arguments is an interval, so that it is told from a moment.

use super::moments::{DAY, format, parse};
use crate::cast::{Strictness, cast};
use crate::clock::{self, SECOND, clamped, of_moment, value_of};
use crate::dialect::Dialect;
use crate::functions::Returns;
use crate::time_functions::now;
use crate::types::{Base, Type};
use crate::value::Value;
use std::rc::Rc;
use tuple::datetime::Datetime;

const TEXT: Returns = Returns::Type(Base::Text);
const INT: Returns = Returns::Type(Base::Int8);
const TIME: Returns = Returns::Type(Base::Time);
const STAMP: Returns = Returns::Type(Base::Timestamp);

/// A moment, or a span.
enum Either {
    Moment(Datetime),
    Span(i64),
}

fn has_day(text: &str) -> bool {
    let text = text.trim();
    let marks = text.bytes().filter(|byte| matches!(byte, b'-' | b'/')).count();
    marks == 2 && text.starts_with(|c: char| c.is_ascii_digit())
}

fn either(value: &Value) -> Option<Either> {
    match value {
        Value::Datetime(moment) => Some(Either::Moment(**moment)),
        Value::Text(text) if has_day(text) => parse(text).map(Either::Moment),
        value => span(value).map(Either::Span),
    }
}

/// A value as a span: of a moment its clock.
fn span(value: &Value) -> Option<i64> {
    match value {
        Value::Interval(interval) => {
            let [.., seconds, nanoseconds] = interval.fields;
            Some(seconds.saturating_mul(SECOND).saturating_add(nanoseconds))
        }
        Value::Datetime(moment) => Some(of_moment(moment)),
        Value::Text(text) => clock::parse_in_mysql(text).map(clamped),
        Value::Bytes(bytes) => clock::parse_in_mysql(&String::from_utf8_lossy(bytes)).map(clamped),
        value => clock::of_number(value).map(clamped),
    }
}

fn double(value: &Value) -> f64 {
    let double = cast(Dialect::Mysql, value.clone(), Type::of(Base::Double), Strictness::Explicit);
    double.ok().and_then(|value| value.as_double()).unwrap_or(0.0)
}

fn integer(value: &Value) -> i64 {
    value.as_integer().map_or_else(|| double(value).round() as i64, |number| i64::try_from(number).unwrap_or(i64::MAX))
}

fn of_span(value: &Value, part: impl FnOnce(i64) -> i64) -> Value {
    span(value).map_or(Value::Null, |nanos| Value::Int(part(nanos)))
}

fn clock_at(nanos: i64, digits: Option<&Value>) -> Value {
    let digits = digits.map_or(0, integer).clamp(0, 6) as u32;
    let unit = 10i64.pow(9 - digits);
    value_of((nanos / unit * unit).rem_euclid(clock::DAY))
}

fn text_of(found: Either) -> Value {
    match found {
        Either::Moment(moment) => {
            let mut text = super::moments::display(&Datetime { nanoseconds: 0, ..moment });
            if moment.nanoseconds != 0 {
                text.push_str(&format!(".{:06}", moment.nanoseconds / 1000));
            }
            Value::text(text)
        }
        Either::Span(nanos) => match value_of(nanos) {
            Value::Datetime(moment) => Value::text(clock::display_in_mysql(&moment, Type::of(Base::Time))),
            _ => Value::Null,
        },
    }
}

fn moment_of(nanos: i128) -> Option<Datetime> {
    let seconds = i64::try_from(nanos.div_euclid(i128::from(SECOND))).ok()?;
    let found = Datetime { seconds, nanoseconds: nanos.rem_euclid(i128::from(SECOND)) as i32, ..Datetime::default() };
    // Days are those of the years 0 to 9999.
    (-62_167_219_200..253_402_300_800).contains(&seconds).then_some(found)
}

/// ADDTIME and SUBTIME.
fn added(a: &[Value], sign: i64) -> Option<Either> {
    let Either::Span(by) = either(&a[1])? else { return None };
    Some(match either(&a[0])? {
        Either::Moment(moment) => {
            let nanos = i128::from(moment.seconds) * i128::from(SECOND) + i128::from(moment.nanoseconds);
            Either::Moment(moment_of(nanos + i128::from(sign) * i128::from(by))?)
        }
        Either::Span(nanos) => Either::Span(clamped(nanos.saturating_add(sign * by))),
    })
}

fn as_value(found: Option<Either>) -> Value {
    match found {
        Some(Either::Moment(moment)) => Value::Datetime(Rc::new(moment)),
        Some(Either::Span(nanos)) => value_of(nanos),
        None => Value::Null,
    }
}

crate::functions::alike! {
    is_volatile: false;
    "curtime" (0, 1) TIME, false => |run, a| Ok(clock_at(now(run), a.first()));
    "current_time" (0, 1) TIME, false => |run, a| Ok(clock_at(now(run), a.first()));
    "utc_time" (0, 1) TIME, false => |run, a| Ok(clock_at(i64::try_from(run.now_ns).unwrap_or(0), a.first()));
    "time" (1, 1) TIME, true => |_, a| Ok(span(&a[0]).map_or(Value::Null, value_of));
    "maketime" (3, 3) TIME, true => |_, a| {
        let (hour, minute, second) = (integer(&a[0]), integer(&a[1]), double(&a[2]));
        if !(0..60).contains(&minute) || !(0.0..60.0).contains(&second) {
            return Ok(Value::Null);
        }
        let nanos = (hour.unsigned_abs().min(1_000_000) as i64 * 3600 + minute * 60) * SECOND + (second * 1e6).round() as i64 * 1000;
        Ok(value_of(clamped(if hour < 0 { -nanos } else { nanos })))
    };
    "time_to_sec" (1, 1) INT, true => |_, a| Ok(of_span(&a[0], |nanos| nanos / SECOND));
    "sec_to_time" (1, 1) TIME, true => |_, a| {
        let seconds = double(&a[0]).clamp(-4e6, 4e6);
        Ok(value_of(clamped((seconds * 1e6).round() as i64 * 1000)))
    };
    "timediff" (2, 2) TIME, true => |_, a| Ok(match (either(&a[0]), either(&a[1])) {
        (Some(Either::Moment(a)), Some(Either::Moment(b))) => {
            let seconds = (a.seconds - b.seconds).clamp(-clock::LONGEST_SECONDS - 1, clock::LONGEST_SECONDS + 1);
            value_of(clamped(seconds * SECOND + i64::from(a.nanoseconds) - i64::from(b.nanoseconds)))
        }
        (Some(Either::Span(a)), Some(Either::Span(b))) => value_of(clamped(a - b)),
        _ => Value::Null,
    });
    "addtime" (2, 2) TEXT, true => |_, a| Ok(added(a, 1).map_or(Value::Null, text_of));
    "subtime" (2, 2) TEXT, true => |_, a| Ok(added(a, -1).map_or(Value::Null, text_of));
    "moment_and_span" (3, 3) STAMP, true => |_, a| Ok(as_value(added(a, integer(&a[2]))));
    "spans_added" (3, 3) TIME, true => |_, a| Ok(as_value(added(a, integer(&a[2]))));
    "hour" (1, 1) INT, true => |_, a| Ok(of_span(&a[0], |nanos| nanos.abs() / (3600 * SECOND)));
    "minute" (1, 1) INT, true => |_, a| Ok(of_span(&a[0], |nanos| nanos.abs() / (60 * SECOND) % 60));
    "second" (1, 1) INT, true => |_, a| Ok(of_span(&a[0], |nanos| nanos.abs() / SECOND % 60));
    "microsecond" (1, 1) INT, true => |_, a| Ok(of_span(&a[0], |nanos| nanos.abs() % SECOND / 1000));
    "extract_parts" (2, 2) INT, true => |_, a| {
        let unit = a[0].as_text().unwrap_or_default();
        let found = match either(&a[1]) {
            Some(Either::Moment(moment)) => {
                let parts = super::moments::parts(&moment);
                Some((1, parts.year * 100 + parts.month, parts.day, parts.clock, parts.micros))
            }
            Some(Either::Span(nanos)) => {
                let sign = if nanos < 0 { -1 } else { 1 };
                Some((sign, 0, 0, nanos.abs() / SECOND, nanos.abs() % SECOND / 1000))
            }
            None => None,
        };
        Ok(found.map_or(Value::Null, |(sign, month, day, clock, micros)| {
            let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
            let (head, tail) = unit.split_once('_').unwrap_or((unit, unit));
            // From the first part on to the last one, each with two digits, microseconds with six.
            let place = |wanted: &str| {
                ["DAY", "HOUR", "MINUTE", "SECOND", "MICROSECOND"].iter().position(|part| *part == wanted).unwrap_or(0)
            };
            let (from, to) = (place(head), place(tail));
            let number = match tail {
                "MONTH" => month,
                _ => [(day, 1), (hour, 100), (minute, 100), (second, 100), (micros, 1_000_000)][from..=to.max(from)]
                    .iter()
                    .fold(0, |sum, (part, width)| sum * width + part),
            };
            Value::Int(sign * number)
        }))
    };
    "time_format" (2, 2) TEXT, true => |_, a| {
        let pattern = crate::cast::display(Dialect::Mysql, &a[1]);
        Ok(span(&a[0]).map_or(Value::Null, |nanos| {
            let hours = nanos.abs() / (3600 * SECOND);
            let shown = match value_of(nanos.abs() % (DAY * SECOND)) {
                Value::Datetime(moment) => *moment,
                _ => Datetime::default(),
            };
            // Hours beyond a day are those of the span.
            let pattern = match hours < 24 {
                true => pattern,
                false => pattern.replace("%T", "%H:%i:%s").replace("%H", &format!("{hours:02}")).replace("%k", &hours.to_string()),
            };
            let sign = if nanos < 0 { "-" } else { "" };
            Value::text(format!("{sign}{}", format(&shown, &pattern)))
        }))
    };
    "timestamp" (1, 2) STAMP, true => |_, a| {
        let moment = match &a[0] {
            Value::Datetime(moment) => Some(**moment),
            Value::Text(text) => parse(text),
            value => value.as_integer().and_then(|number| i64::try_from(number).ok()).and_then(super::moments::of_number),
        };
        let by = a.get(1).map_or(Some(0), span);
        Ok(match (moment, by) {
            (Some(moment), Some(by)) => {
                let nanos = i128::from(moment.seconds) * i128::from(SECOND) + i128::from(moment.nanoseconds);
                moment_of(nanos + i128::from(by)).map_or(Value::Null, |moment| Value::Datetime(Rc::new(moment)))
            }
            _ => Value::Null,
        })
    };
}

/// True for functions that take spans as they are.
pub(crate) fn takes_spans(name: &str) -> bool {
    let is_own = FUNCTIONS.iter().any(|function| function.name == name);
    is_own || name == "date_format"
}

/// The function of a name.
pub(super) fn find(name: &str) -> Option<&'static crate::functions::Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}
