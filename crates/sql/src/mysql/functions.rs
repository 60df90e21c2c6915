//! Functions that MySQL alone has, or has in its own way.

use super::moments::{DAY, Parts, difference, display, display_day, format, names, parse, parts, read};
use super::{schema, variables};
use crate::cast::{SMALL_DIGITS, Strictness, cast, push_hex};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::functions::{Function, Returns};
use crate::regexes;
use crate::run::Run;
use crate::table::Table;
use crate::types::{Base, Type};
use crate::value::Value;
use database::{Context, Database};
use std::fmt::Write;
use std::rc::Rc;
use tuple::datetime::{Datetime, Interval};

const MANY: usize = usize::MAX;
const TEXT: Returns = Returns::Type(Base::Text);
const INT: Returns = Returns::Type(Base::Int8);
const DOUBLE: Returns = Returns::Type(Base::Double);
const MOMENT: Returns = Returns::Type(Base::Timestamp);
const DATE: Returns = Returns::Type(Base::Date);

macro_rules! functions {
    ($($name:literal ($min:literal, $max:expr) $result:expr, $strict:literal, $volatile:literal => $call:expr;)*) => {
        /// All of them.
        static FUNCTIONS: &[Function] = &[$(Function {
            name: $name,
            arguments: ($min, $max),
            result: $result,
            is_strict: $strict,
            is_volatile: $volatile,
            call: $call,
        },)*];
    };
}

/// The function of a name, in small letters.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    let known = FUNCTIONS.iter().find(|function| function.name == name);
    known.or_else(|| super::times::find(name)).or_else(|| crate::json::functions::mysql::find(name))
}

fn text(value: &Value) -> Rc<str> {
    match value {
        Value::Text(text) => Rc::clone(text),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into(),
        Value::Datetime(moment) => display(moment).into(),
        other => other.display(Dialect::Mysql).into(),
    }
}

fn bytes(value: &Value) -> Rc<[u8]> {
    match value {
        Value::Bytes(bytes) => Rc::clone(bytes),
        other => text(other).as_bytes().into(),
    }
}

fn double(value: &Value) -> f64 {
    let cast =
        crate::cast::cast(Dialect::Mysql, value.clone(), Type::of(Base::Double), crate::cast::Strictness::Explicit);
    cast.ok().and_then(|value| value.as_double()).unwrap_or(0.0)
}

fn integer(value: &Value) -> i64 {
    match value.as_integer() {
        Some(number) => number.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64,
        None => double(value).round() as i64,
    }
}

/// A whole number as its 64 bits.
fn bits(value: &Value) -> u64 {
    let whole = match value {
        // Its digits may be more than those of a double.
        Value::Decimal(_) => cast(Dialect::Mysql, value.clone(), Type::of(Base::Integer), Strictness::Explicit).ok(),
        _ => None,
    };
    let number = whole.as_ref().unwrap_or(value).as_integer().unwrap_or_else(|| double(value).round() as i128);
    number.clamp(i128::from(i64::MIN), i128::from(u64::MAX)) as u64
}

fn moment(value: &Value) -> Option<Datetime> {
    match value {
        Value::Datetime(moment) => Some(**moment),
        Value::Text(text) => parse(text),
        Value::Int(number) => super::moments::of_number(*number),
        _ => None,
    }
}

fn of_moment(value: &Value, part: impl FnOnce(&Parts) -> i64) -> Result<Value> {
    Ok(moment(value).map_or(Value::Null, |moment| Value::Int(part(&parts(&moment)))))
}

fn datetime(moment: Datetime) -> Value {
    Value::Datetime(Rc::new(moment))
}

/// What a clock shows when the statement runs, so many nanoseconds since 1970, with so many digits of a second.
fn now_of(nanos: i128, digits: Option<&Value>) -> Result<Value> {
    let digits = digits.map_or(0, integer).clamp(0, 6) as u32;
    let unit = 10i128.pow(9 - digits);
    let ns = nanos.div_euclid(unit) * unit;
    Ok(datetime(Datetime {
        seconds: ns.div_euclid(1_000_000_000) as i64,
        nanoseconds: ns.rem_euclid(1_000_000_000) as i32,
        ..Datetime::default()
    }))
}

/// A whole number with so many digits of microseconds behind the point.
fn with_micros(whole: Value, micros: i32, digits: Option<&Value>) -> Result<Value> {
    let (Value::Int(number), Some(digits)) = (&whole, digits.map(integer)) else { return Ok(whole) };
    let digits = digits.clamp(0, 6) as u32;
    let all = i128::from(*number) * 10i128.pow(digits) + i128::from(micros) / 10i128.pow(6 - digits);
    Ok(tuple::decimal::Decimal::new(all, digits as i32).map_or(whole, Value::decimal))
}

/// Months of a period, YYMM or YYYYMM, since the year 0.
fn months_of_period(period: i64) -> i64 {
    if period == 0 {
        return 0;
    }
    let (year, month) = (period / 100, period % 100);
    let year = match year {
        0..70 => year + 2000,
        70..100 => year + 1900,
        year => year,
    };
    year.saturating_mul(12).saturating_add(month - 1)
}

/// The period of so many months.
fn period_of(months: i64) -> i64 {
    if months == 0 {
        return 0;
    }
    let year = match months / 12 {
        year @ 0..70 => year + 2000,
        year @ 70..100 => year + 1900,
        year => year,
    };
    year.saturating_mul(100).saturating_add(months % 12 + 1)
}

fn now(run: &Run<'_>, digits: Option<&Value>) -> Result<Value> {
    now_of(i128::from(crate::time_functions::now(run)), digits)
}

/// The moment of today that a span is of.
fn on_today(run: &Run<'_>, span: &Interval) -> Datetime {
    let [.., seconds, nanoseconds] = span.fields;
    let today = today(run).seconds.saturating_add(seconds).saturating_add(nanoseconds.div_euclid(1_000_000_000));
    Datetime { seconds: today, nanoseconds: nanoseconds.rem_euclid(1_000_000_000) as i32, ..Datetime::default() }
}

fn day_of(nanos: i128) -> Datetime {
    Datetime { seconds: (nanos.div_euclid(1_000_000_000) as i64).div_euclid(DAY) * DAY, ..Datetime::default() }
}

fn today(run: &Run<'_>) -> Datetime {
    day_of(i128::from(crate::time_functions::now(run)))
}

/// The last one of the year 9999.
const LAST_SECOND: i64 = 253_402_300_799;

/// A moment so much later, as MySQL gives it: text where text was given.
fn moved(value: &Value, amount: &Value, unit: &Value, sign: i64) -> Result<Value> {
    let unit = text(unit);
    let interval: Interval = match amount {
        Value::Interval(interval) => **interval,
        amount => match super::moments::interval(&text(amount), &unit)? {
            Some(interval) => interval,
            None => return Ok(Value::Null),
        },
    };
    let Some(from) = moment(value) else { return Ok(Value::Null) };
    let is_one = |found: &Datetime| found.seconds <= LAST_SECOND;
    let moved = crate::moments::moved(&from, &interval, sign).filter(is_one);
    let Some(found) = moved else { return Ok(Value::Null) };
    let is_day = |value: &Value| matches!(value, Value::Text(text) if !text.contains(':'));
    let has_clock = interval.fields[4..].iter().any(|field| *field != 0);
    Ok(match value {
        Value::Datetime(_) => datetime(found),
        value if is_day(value) && !has_clock => Value::text(display_day(&found)),
        _ => Value::text(display(&found)),
    })
}

/// A number with commas between thousands.
fn with_commas(value: &Value, digits: i64) -> String {
    let digits = digits.clamp(0, 30) as usize;
    let exact = value.as_decimal().filter(|_| !matches!(value, Value::Double(_)));
    let rounded = exact.and_then(|value| crate::arithmetic::rounded_to(value, digits as i32));
    let shown = match rounded {
        Some(value) => value.to_string(),
        None => format!("{:.digits$}", double(value)),
    };
    let (sign, shown) = shown.strip_prefix('-').map_or(("", shown.as_str()), |rest| ("-", rest));
    let (whole, fraction) = shown.split_once('.').unwrap_or((shown, ""));
    let mut out = String::from(sign);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    if digits > 0 {
        let _ = write!(out, ".{fraction:0<digits$}");
    }
    out
}

fn hex(bytes: &[u8]) -> String {
    let mut out = String::new();
    push_hex(bytes, SMALL_DIGITS, &mut out);
    out
}

fn in_base(mut number: u64, base: u64) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit((number % base) as u32, base as u32).unwrap_or('0').to_ascii_uppercase());
        number /= base;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

/// Where the n-th part of a text ends or begins that stands between marks.
fn substring_index(value: &str, mark: &str, count: i64) -> String {
    if mark.is_empty() || count == 0 {
        return String::new();
    }
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX) - 1;
    let found = match count > 0 {
        true => value.match_indices(mark).nth(wanted).map(|(at, _)| &value[..at]),
        false => value.rmatch_indices(mark).nth(wanted).map(|(at, _)| &value[at + mark.len()..]),
    };
    found.unwrap_or(value).to_string()
}

/// A text with all that a pattern finds replaced.
fn replaced(run: &mut Run<'_>, a: &[Value], flags: &str) -> Result<Value> {
    regexes::replace_mysql(run, &text(&a[0]), &text(&a[1]), &text(&a[2]), flags)
}

/// Where a part stands in a text, counted from one, at or behind a place; 0: nowhere.
fn place_of(value: &str, part: &str, from: Option<&Value>) -> Value {
    let from = from.map_or(1, integer);
    let skipped = match usize::try_from(from - 1) {
        Ok(count) if count <= value.chars().count() => count,
        _ => return Value::Int(0),
    };
    let start: usize = value.chars().take(skipped).map(char::len_utf8).sum();
    let found = value[start..].find(part).map(|at| value[..start + at].chars().count() as i64 + 1);
    Value::Int(found.unwrap_or(0))
}

functions! {
    // The session.
    "last_insert_id" (0, 1) Returns::Type(Base::Uint8), false, true => |run, a| {
        let Some(session) = &run.session else { return Ok(Value::Int(0)) };
        if let Some(value) = a.first() {
            let number = integer(value).max(0) as u64;
            session.last_insert_id.set(number);
            session.told_insert_id.set(Some(number));
        }
        Ok(Value::integer(i128::from(session.last_insert_id.get())).unwrap_or_default())
    };
    "row_count" (0, 0) INT, false, true => |run, _| Ok(Value::Int(run.session.as_ref().map_or(-1, |session| session.row_count.get())));
    "found_rows" (0, 0) INT, false, true => |run, _| Ok(Value::Int(run.session.as_ref().map_or(0, |session| session.found_rows.get() as i64)));
    "connection_id" (0, 0) INT, false, true => |run, _| Ok(Value::Int(run.session.as_ref().map_or(0, |session| i64::from(session.number))));
    "database" (0, 0) TEXT, false, true => |run, _| Ok(Value::text(schema::database(run.session.as_deref())));
    "schema" (0, 0) TEXT, false, true => |run, _| Ok(Value::text(schema::database(run.session.as_deref())));
    "user" (0, 0) TEXT, false, true => user;
    "current_user" (0, 0) TEXT, false, true => user;
    "session_user" (0, 0) TEXT, false, true => user;
    "system_user" (0, 0) TEXT, false, true => user;
    "current_role" (0, 0) TEXT, false, true => |_, _| Ok(Value::text("NONE"));
    "system_variable" (1, 1) TEXT, false, true => |run, a| variables::value_of(run.session.as_deref(), &text(&a[0]));
    "user_variable" (1, 1) Returns::Type(Base::Any), false, true => |run, a| Ok(variables::user_value(run.session.as_deref(), &text(&a[0])));
    "set_user_variable" (2, 2) Returns::Type(Base::Any), false, true => |run, a| {
        if let Some(session) = &run.session {
            variables::set_user(session, &text(&a[0]), a[1].clone())?;
        }
        Ok(a[1].clone())
    };
    "known_table" (1, 2) TEXT, true, true => |run, a| {
        let name = text(&a[0]);
        if crate::catalog::find(Dialect::Mysql, Some("information_schema"), &name).is_some() {
            return Ok(Value::Text(name));
        }
        let table = readable(run.database, run.context, &name)?;
        // Whoever asks for the columns of a view learns that there are none any more.
        if a.len() > 1 && crate::views::of(run.database, &table.space).is_some() {
            let query = format!("SELECT * FROM {}", super::statements::quoted(&table.name));
            crate::views::check_query(run.database, Dialect::Mysql, &query)?;
        }
        Ok(Value::text(table.name))
    };
    "table_definition" (1, 1) TEXT, true, true => |run, a| {
        let table = readable(run.database, run.context, &text(&a[0]))?;
        if let Some(view) = crate::views::of(run.database, &table.space) {
            let owner = run.database.catalog.user_name(table.space.owner());
            return Ok(Value::text(format!(
                "CREATE ALGORITHM=UNDEFINED DEFINER=`{owner}`@`%` SQL SECURITY DEFINER VIEW {} AS {}",
                crate::written::name(Dialect::Mysql, &table.name),
                crate::written::written(view.dialect, &view.query()?)
            )));
        }
        Ok(Value::text(schema::definition(run.database, &table)))
    };
    "implicit_default" (3, 3) Returns::Type(Base::Any), false, true => |run, a| {
        let message = format!("Field '{}' doesn't have a default value", text(&a[0]));
        if !matches!(a[1], Value::Bool(true)) && super::assign::is_strict(run.session.as_deref()) {
            return Err(Error::new(Condition::NoDefault, message));
        }
        super::assign::warn(run.session.as_deref(), Condition::NoDefault, message);
        Ok(a[2].clone())
    };
    "sleep" (1, 1) INT, true, true => |run, a| {
        let seconds = double(&a[0]);
        if !(0.0..=31_536_000.0).contains(&seconds) {
            return Err(Error::new(Condition::InvalidArgument, "Incorrect arguments to sleep."));
        }
        run.sleep((seconds * 1e9) as u64)?;
        Ok(Value::Int(0))
    };
    "uuid" (0, 0) TEXT, false, true => |run, _| {
        let mut bytes = [0; 16];
        run.database.environment().randomness.fill(&mut bytes);
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Ok(Value::text(tuple::format_uuid(&bytes)))
    };

    // Days and moments.
    "now" (0, 1) MOMENT, false, false => |run, a| now(run, a.first());
    "current_timestamp" (0, 1) MOMENT, false, false => |run, a| now(run, a.first());
    "localtime" (0, 1) MOMENT, false, false => |run, a| now(run, a.first());
    "localtimestamp" (0, 1) MOMENT, false, false => |run, a| now(run, a.first());
    "sysdate" (0, 1) MOMENT, false, true => |run, a| now(run, a.first());
    "utc_timestamp" (0, 1) MOMENT, false, false => |run, a| now_of(run.now_ns, a.first());
    "curdate" (0, 0) DATE, false, false => |run, _| Ok(datetime(today(run)));
    "current_date" (0, 0) DATE, false, false => |run, _| Ok(datetime(today(run)));
    "utc_date" (0, 0) DATE, false, false => |run, _| Ok(datetime(day_of(run.now_ns)));
    "date" (1, 1) DATE, true, false => |_, a| Ok(moment(&a[0]).map_or(Value::Null, |moment| datetime(Datetime {
        seconds: moment.seconds.div_euclid(DAY) * DAY,
        ..Datetime::default()
    })));
    "year" (1, 1) INT, true, false => |_, a| of_moment(&a[0], |parts| parts.year);
    "month" (1, 1) INT, true, false => |_, a| of_moment(&a[0], |parts| parts.month);
    "day" (1, 1) INT, true, false => |_, a| of_moment(&a[0], |parts| parts.day);
    "dayofmonth" (1, 1) INT, true, false => |_, a| of_moment(&a[0], |parts| parts.day);
    "quarter" (1, 1) INT, true, false => |_, a| of_moment(&a[0], |parts| (parts.month + 2) / 3);
    "dayofweek" (1, 1) INT, true, false => |_, a| of_moment(&a[0], |parts| (parts.weekday() + 1) % 7 + 1);
    "weekday" (1, 1) INT, true, false => |_, a| of_moment(&a[0], Parts::weekday);
    "dayofyear" (1, 1) INT, true, false => |_, a| of_moment(&a[0], Parts::day_of_year);
    "week" (1, 2) INT, true, false => |_, a| of_moment(&a[0], |parts| parts.week(a.get(1).map_or(0, integer)).0);
    "weekofyear" (1, 1) INT, true, false => |_, a| of_moment(&a[0], |parts| parts.week(3).0);
    "yearweek" (1, 2) INT, true, false => |_, a| of_moment(&a[0], |parts| {
        let (week, year) = parts.week(a.get(1).map_or(0, integer) | 2);
        year * 100 + week
    });
    "dayname" (1, 1) TEXT, true, false => |_, a| Ok(moment(&a[0]).map_or(Value::Null, |moment| Value::text(names(&moment).1)));
    "monthname" (1, 1) TEXT, true, false => |_, a| Ok(moment(&a[0]).map_or(Value::Null, |moment| Value::text(names(&moment).0)));
    "last_day" (1, 1) DATE, true, false => |_, a| Ok(moment(&a[0]).map_or(Value::Null, |moment| {
        let Parts { year, month, .. } = parts(&moment);
        super::moments::moment(year, month, super::moments::days_of(year, month.max(1)), 0, 0).map_or(Value::Null, datetime)
    }));
    "to_days" (1, 1) INT, true, false => |_, a| of_moment(&a[0], |parts| parts.number + 719_528);
    "to_seconds" (1, 1) INT, true, false => |_, a| of_moment(&a[0], |parts| (parts.number + 719_528) * DAY + parts.clock);
    "from_days" (1, 1) DATE, true, false => |_, a| Ok(datetime(Datetime { seconds: (integer(&a[0]).clamp(0, 3_652_424) - 719_528) * DAY, ..Datetime::default() }));
    "makedate" (2, 2) DATE, true, false => |_, a| {
        let (year, day) = (integer(&a[0]), integer(&a[1]));
        if day < 1 || !(0..=9999).contains(&year) || day > 1_000_000 {
            return Ok(Value::Null);
        }
        Ok(datetime(Datetime { seconds: (super::moments::day_number(year, 1, 1) + day - 1) * DAY, ..Datetime::default() }))
    };
    "datediff" (2, 2) INT, true, false => |_, a| Ok(match (moment(&a[0]), moment(&a[1])) {
        (Some(a), Some(b)) => Value::Int(a.seconds.div_euclid(DAY) - b.seconds.div_euclid(DAY)),
        _ => Value::Null,
    });
    "timestampdiff" (3, 3) INT, true, false => |_, a| Ok(match (moment(&a[1]), moment(&a[2])) {
        (Some(from), Some(to)) => difference(&text(&a[0]), &from, &to).map_or(Value::Null, Value::Int),
        _ => Value::Null,
    });
    "timestampadd" (3, 3) TEXT, true, false => |_, a| moved(&a[2], &a[1], &a[0], 1);
    "later_text" (3, 3) TEXT, true, false => |_, a| moved(&a[0], &a[1], &a[2], 1);
    "earlier_text" (3, 3) TEXT, true, false => |_, a| moved(&a[0], &a[1], &a[2], -1);
    "later" (3, 3) MOMENT, true, false => |_, a| moved(&a[0], &a[1], &a[2], 1);
    "earlier" (3, 3) MOMENT, true, false => |_, a| moved(&a[0], &a[1], &a[2], -1);
    "convert_tz" (3, 3) MOMENT, true, false => |_, a| {
        let (from, to) = (crate::zones::of_mysql(&text(&a[1])), crate::zones::of_mysql(&text(&a[2])));
        Ok(match (moment(&a[0]), from, to) {
            (Some(clock), Some(from), Some(to)) => {
                let moment = crate::postgres_functions::moment_in(&from, &clock);
                // Beyond what TIMESTAMP holds nothing is converted.
                if moment.is_some_and(|moment| !(0..=32_536_771_199).contains(&moment.seconds)) {
                    return Ok(datetime(clock));
                }
                let found = moment.and_then(|moment| crate::postgres_functions::clock_in(&to, &moment));
                found.map_or(Value::Null, datetime)
            }
            // Zones that there are none of give null.
            _ => Value::Null,
        })
    };
    "date_format" (2, 2) TEXT, true, false => |run, a| Ok(match &a[0] { Value::Interval(interval) => Some(on_today(run, interval)), value => moment(value) }.map_or(Value::Null, |moment| Value::text(format(&moment, &text(&a[1])))));
    "str_to_date" (2, 2) MOMENT, true, false => |_, a| Ok(read(&text(&a[0]), &text(&a[1])).map_or(Value::Null, |found| datetime(found.0)));
    "str_to_time" (2, 2) Returns::Type(Base::Time), true, false => |_, a| Ok(super::moments::read_time(&text(&a[0]), &text(&a[1])).map_or(Value::Null, crate::clock::value_of));
    "period_add" (2, 2) INT, true, false => |_, a| Ok(Value::Int(period_of(months_of_period(integer(&a[0])).saturating_add(i64::from(integer(&a[1]) as i32)))));
    "period_diff" (2, 2) INT, true, false => |_, a| Ok(Value::Int(months_of_period(integer(&a[0])) - months_of_period(integer(&a[1]))));
    "get_format" (2, 2) TEXT, true, false => |_, a| Ok(super::moments::format_of(&text(&a[0]), &text(&a[1])).map_or(Value::Null, Value::text));
    "unix_timestamp" (0, 2) INT, true, false => |run, a| Ok(match a.first() {
        None => Value::Int(run.now_ns.div_euclid(1_000_000_000) as i64),
        Some(value) => moment(value).map_or(Value::Null, |clock| {
            let moment = run.zone().and_then(|zone| zone.moment(&clock)).unwrap_or(clock);
            let micros = if moment.seconds < 0 { 0 } else { clock.nanoseconds / 1000 };
            with_micros(Value::Int(moment.seconds.max(0)), micros, a.get(1)).unwrap_or_default()
        }),
    });
    "from_unixtime" (1, 2) MOMENT, true, false => |run, a| {
        let value = double(&a[0]);
        if !(0.0..=32_536_771_199.0).contains(&value) {
            return Ok(Value::Null);
        }
        let micros = ((value.fract() * 1e6).round() as i32).min(999_999);
        let found = Datetime { seconds: value.trunc() as i64, nanoseconds: micros * 1000, ..Datetime::default() };
        let found = run.zone().and_then(|zone| zone.clock(&found)).unwrap_or(found);
        Ok(match a.get(1) {
            Some(pattern) => Value::text(format(&found, &text(pattern))),
            None => datetime(found),
        })
    };

    // Text.
    "mid" (2, 3) TEXT, true, false => |run, a| match crate::functions::find(Dialect::Mysql, "substr") {
        Some(function) => (function.call)(run, a),
        None => Ok(Value::Null),
    };
    "space" (1, 1) TEXT, true, false => |run, a| {
        let count = integer(&a[0]).max(0) as usize;
        run.check_length(count)?;
        Ok(Value::text(" ".repeat(count)))
    };
    "insert" (4, 4) TEXT, true, false => |_, a| {
        let (value, at, count) = (text(&a[0]), integer(&a[1]), integer(&a[2]));
        let length = value.chars().count() as i64;
        if at < 1 || at > length {
            return Ok(Value::Text(value));
        }
        let count = if count < 0 { length } else { count };
        let head: String = value.chars().take(at as usize - 1).collect();
        let tail: String = value.chars().skip((at - 1).saturating_add(count) as usize).collect();
        Ok(Value::text(format!("{head}{}{tail}", text(&a[3]))))
    };
    "substring_index" (3, 3) TEXT, true, false => |_, a| Ok(Value::text(substring_index(&text(&a[0]), &text(&a[1]), integer(&a[2]))));
    "find_in_set" (2, 2) INT, true, false => |_, a| {
        let (wanted, list) = (text(&a[0]).to_lowercase(), text(&a[1]).to_lowercase());
        let found = if list.is_empty() { None } else { list.split(',').position(|part| part == wanted) };
        Ok(Value::Int(found.map_or(0, |at| at as i64 + 1)))
    };
    "elt" (2, MANY) TEXT, false, false => |_, a| {
        // Counted with 32 bits.
        let at = bits(&a[0]) as u32 as usize;
        let found = a.get(at).filter(|_| at > 0 && !a[0].is_null());
        Ok(found.filter(|value| !value.is_null()).map_or(Value::Null, |value| Value::Text(text(value))))
    };
    "format" (2, 3) TEXT, true, false => |_, a| Ok(Value::text(with_commas(&a[0], integer(&a[1]))));
    "ord" (1, 1) INT, true, false => |_, a| {
        let value = text(&a[0]);
        let first = value.chars().next().map_or(0, char::len_utf8);
        Ok(Value::Int(value.as_bytes()[..first].iter().fold(0, |sum, byte| sum << 8 | i64::from(*byte))))
    };
    "ascii" (1, 1) INT, true, false => |_, a| Ok(Value::Int(bytes(&a[0]).first().map_or(0, |byte| i64::from(*byte))));
    "length" (1, 1) INT, true, false => |_, a| Ok(Value::Int(bytes(&a[0]).len() as i64));
    "bit_length" (1, 1) INT, true, false => |_, a| Ok(Value::Int(bytes(&a[0]).len() as i64 * 8));
    "to_base64" (1, 1) TEXT, true, false => |run, a| {
        use base64::Engine;
        let bytes = bytes(&a[0]);
        run.check_length(bytes.len().saturating_mul(2))?;
        let whole = base64::engine::general_purpose::STANDARD.encode(&bytes[..]);
        let lines: Vec<&str> = whole.as_bytes().chunks(76).filter_map(|line| std::str::from_utf8(line).ok()).collect();
        Ok(Value::text(lines.join("\n")))
    };
    "from_base64" (1, 1) Returns::Type(Base::Bytes), true, false => |_, a| {
        use base64::Engine;
        let text: String = text(&a[0]).chars().filter(|c| !c.is_whitespace()).collect();
        Ok(base64::engine::general_purpose::STANDARD.decode(text).map_or(Value::Null, |bytes| Value::Bytes(bytes.into())))
    };
    "md5" (1, 1) TEXT, true, false => |_, a| {
        use md5::Digest;
        Ok(Value::text(hex(&md5::Md5::digest(&bytes(&a[0])[..]))))
    };
    "sha1" (1, 1) TEXT, true, false => sha1;
    "sha" (1, 1) TEXT, true, false => sha1;
    "sha2" (2, 2) TEXT, true, false => |_, a| {
        use sha2::Digest;
        let bytes = bytes(&a[0]);
        Ok(match integer(&a[1]) {
            0 | 256 => Value::text(hex(&sha2::Sha256::digest(&bytes[..]))),
            224 => Value::text(hex(&sha2::Sha224::digest(&bytes[..]))),
            384 => Value::text(hex(&sha2::Sha384::digest(&bytes[..]))),
            512 => Value::text(hex(&sha2::Sha512::digest(&bytes[..]))),
            _ => Value::Null,
        })
    };
    "crc32" (1, 1) Returns::Type(Base::Uint4), true, false => |_, a| {
        let sum = bytes(&a[0]).iter().fold(!0u32, |sum, byte| {
            (0..8).fold(sum ^ u32::from(*byte), |sum, _| sum >> 1 ^ (0xedb8_8320 & (sum & 1).wrapping_neg()))
        });
        Ok(Value::Int(i64::from(!sum)))
    };
    "regexp_like" (2, 3) INT, true, false => |run, a| {
        let flags = a.get(2).map_or_else(|| "".into(), text);
        Ok(Value::Int(i64::from(regexes::is_found_mysql(run, &text(&a[0]), &text(&a[1]), &flags)?)))
    };
    "regexp_replace" (3, 3) TEXT, true, false => |run, a| replaced(run, a, "");
    "regexp_substr" (2, 2) TEXT, true, false => |run, a| {
        let found = regexes::part_mysql(run, &text(&a[0]), &text(&a[1]), "")?;
        Ok(found.map_or(Value::Null, |(found, _)| Value::text(found)))
    };
    "regexp_instr" (2, 2) INT, true, false => |run, a| {
        let found = regexes::part_mysql(run, &text(&a[0]), &text(&a[1]), "")?;
        Ok(Value::Int(found.map_or(0, |(_, before)| before as i64 + 1)))
    };
    "sign" (1, 1) INT, true, false => |_, a| {
        let value = double(&a[0]);
        Ok(Value::Int(if value > 0.0 { 1 } else { -i64::from(value < 0.0) }))
    };
    "quote" (1, 1) TEXT, false, false => |_, a| Ok(Value::text(match &a[0] {
        Value::Null => "NULL".to_string(),
        value => format!("'{}'", text(value).replace('\\', "\\\\").replace('\'', "\\'").replace('\0', "\\0").replace('\u{1a}', "\\Z")),
    }));

    // The texts of a binary collation.
    "find_in_set_exact" (2, 2) INT, true, false => |_, a| {
        let (wanted, list) = (text(&a[0]), text(&a[1]));
        let found = if list.is_empty() { None } else { list.split(',').position(|part| part == &*wanted) };
        Ok(Value::Int(found.map_or(0, |at| at as i64 + 1)))
    };
    "locate_exact" (2, 3) INT, true, false => |_, a| Ok(place_of(&text(&a[1]), &text(&a[0]), a.get(2)));
    "instr_exact" (2, 2) INT, true, false => |_, a| Ok(place_of(&text(&a[0]), &text(&a[1]), None));
    "locate" (2, 3) INT, true, false => |_, a| Ok(place_of(&text(&a[1]).to_lowercase(), &text(&a[0]).to_lowercase(), a.get(2)));
    "instr" (2, 2) INT, true, false => |_, a| Ok(place_of(&text(&a[0]).to_lowercase(), &text(&a[1]).to_lowercase(), None));
    "position" (2, 2) INT, true, false => |_, a| Ok(place_of(&text(&a[1]).to_lowercase(), &text(&a[0]).to_lowercase(), None));
    "regexp_replace_exact" (3, 3) TEXT, true, false => |run, a| replaced(run, a, "c");
    "regexp_substr_exact" (2, 2) TEXT, true, false => |run, a| {
        let found = regexes::part_mysql(run, &text(&a[0]), &text(&a[1]), "c")?;
        Ok(Value::text(found.map_or(String::new(), |(found, _)| found)))
    };
    "regexp_instr_exact" (2, 2) INT, true, false => |run, a| {
        let found = regexes::part_mysql(run, &text(&a[0]), &text(&a[1]), "c")?;
        Ok(Value::Int(found.map_or(0, |(_, before)| before as i64 + 1)))
    };

    // A day or a moment as the number of its digits.
    "digits_of_moment" (1, 1) INT, true, false => |_, a| of_moment(&a[0], |parts| (parts.year * 100 + parts.month) * 100 + parts.day);
    "digits_of_clock" (1, 2) INT, true, false => |_, a| {
        let found = of_moment(&a[0], |parts| {
            let day = (parts.year * 100 + parts.month) * 100 + parts.day;
            day * 1_000_000 + parts.clock / 3600 * 10_000 + parts.clock / 60 % 60 * 100 + parts.clock % 60
        })?;
        let micros = moment(&a[0]).map_or(0, |moment| moment.nanoseconds / 1000);
        with_micros(found, micros, a.get(1))
    };

    // Bytes as text of as many characters, for functions that count them, and back.
    "characters_of_bytes" (1, 1) TEXT, true, false => |_, a| {
        let characters = |bytes: &[u8]| Value::text(bytes.iter().map(|byte| char::from(*byte)).collect::<String>());
        Ok(match &a[0] {
            Value::Bytes(bytes) => characters(bytes),
            value => characters(text(value).as_bytes()),
        })
    };
    "bytes_of_characters" (1, 1) Returns::Type(Base::Bytes), true, false => |_, a| {
        Ok(Value::Bytes(text(&a[0]).chars().map(|c| u8::try_from(c).unwrap_or(b'?')).collect()))
    };

    // Numbers.
    "order_as_shown" (3, 3) INT, true, false => |_, a| {
        let (x, y) = (double(&a[0]), double(&a[1]));
        let nearest = 5.0 / 10f64.powi(integer(&a[2]) as i32 + 1);
        Ok(Value::Int(match x.partial_cmp(&y) {
            _ if (x - y).abs() < nearest => 0,
            Some(std::cmp::Ordering::Less) => -1,
            Some(std::cmp::Ordering::Greater) => 1,
            _ => 0,
        }))
    };
    "with_scale" (2, 2) Returns::First, true, false => |_, a| {
        let scale = integer(&a[1]).clamp(0, 38) as i32;
        let found = match &a[0] {
            Value::Int(_) | Value::Uint(_) if scale == 0 => None,
            value => value.as_decimal().and_then(|value| crate::arithmetic::rounded_to(value, scale)),
        };
        Ok(found.map_or_else(|| a[0].clone(), Value::decimal))
    };
    "number_of_choice" (2, MANY) INT, true, false => |_, a| {
        let number_of = |word: &str| {
            a[2..].iter().position(|known| matches!(known, Value::Text(known) if known.to_lowercase() == word.to_lowercase()))
        };
        let value = text(&a[0]);
        Ok(match a[1] {
            Value::Bool(true) => {
                let bits = value.split(',').filter_map(number_of).fold(0u64, |bits, at| bits | 1u64.checked_shl(at as u32).unwrap_or(0));
                Value::integer(i128::from(bits)).unwrap_or_default()
            }
            _ => Value::Int(number_of(&value).map_or(0, |at| at as i64 + 1)),
        })
    };
    "isnull" (1, 1) INT, false, false => |_, a| Ok(Value::Int(i64::from(a[0].is_null())));
    "conv" (3, 3) TEXT, true, false => |_, a| {
        let (from, to) = (integer(&a[1]).unsigned_abs(), integer(&a[2]).unsigned_abs());
        if !(2..=36).contains(&from) || !(2..=36).contains(&to) {
            return Ok(Value::Null);
        }
        let number = number_in_base(&text(&a[0]), from);
        Ok(Value::text(match integer(&a[2]) < 0 && (number as i64) < 0 {
            true => format!("-{}", in_base((number as i64).unsigned_abs(), to)),
            false => in_base(number, to),
        }))
    };
    "bin" (1, 1) TEXT, true, false => |_, a| Ok(Value::text(in_base(number_in_base(&text(&a[0]), 10), 2)));
    "oct" (1, 1) TEXT, true, false => |_, a| Ok(Value::text(in_base(number_in_base(&text(&a[0]), 10), 8)));
    "bit_count" (1, 1) INT, true, false => |_, a| Ok(Value::Int(i64::from(bits(&a[0]).count_ones())));
    "log2" (1, 1) DOUBLE, true, false => |_, a| Ok(positive(&a[0]).map_or(Value::Null, |value| Value::Double(value.log2())));
    "log10" (1, 1) DOUBLE, true, false => |_, a| Ok(positive(&a[0]).map_or(Value::Null, |value| Value::Double(value.log10())));
    "ln" (1, 1) DOUBLE, true, false => |_, a| Ok(positive(&a[0]).map_or(Value::Null, |value| Value::Double(value.ln())));
    "sqrt" (1, 1) DOUBLE, true, false => |_, a| {
        let value = double(&a[0]);
        Ok(if value < 0.0 { Value::Null } else { Value::Double(value.sqrt()) })
    };
    "degrees" (1, 1) DOUBLE, true, false => |_, a| Ok(Value::Double(double(&a[0]).to_degrees()));
    "radians" (1, 1) DOUBLE, true, false => |_, a| Ok(Value::Double(double(&a[0]).to_radians()));
    "asin" (1, 1) DOUBLE, true, false => |_, a| Ok(unit(&a[0]).map_or(Value::Null, |value| Value::Double(value.asin())));
    "acos" (1, 1) DOUBLE, true, false => |_, a| Ok(unit(&a[0]).map_or(Value::Null, |value| Value::Double(value.acos())));
    "atan2" (2, 2) DOUBLE, true, false => |_, a| Ok(Value::Double(double(&a[0]).atan2(double(&a[1]))));
    "cot" (1, 1) DOUBLE, true, false => |_, a| match 1.0 / double(&a[0]).tan() {
        value if value.is_finite() => Ok(Value::Double(value)),
        _ => Err(Error::new(Condition::NumericOutOfRange, format!("DOUBLE value is out of range in 'cot({})'", text(&a[0])))),
    };
    "inet_aton" (1, 1) INT, true, false => |_, a| Ok(address_of(&text(&a[0])).map_or(Value::Null, |address| Value::Int(i64::from(address))));
    "inet_ntoa" (1, 1) TEXT, true, false => |_, a| {
        let [a, b, c, d] = match u32::try_from(integer(&a[0])) {
            Ok(address) => address.to_be_bytes(),
            Err(_) => return Ok(Value::Null),
        };
        Ok(Value::text(format!("{a}.{b}.{c}.{d}")))
    };
    "name_const" (2, 2) Returns::Type(Base::Any), false, false => |_, a| Ok(a[1].clone());
}

/// The whole number that a text begins with, in digits of a base; 0 if it begins with none.
fn number_in_base(text: &str, base: u64) -> u64 {
    let digits = text.trim();
    let (is_negative, digits) = digits.strip_prefix('-').map_or((false, digits), |digits| (true, digits));
    let digits = digits.chars().map_while(|c| c.to_digit(base as u32));
    let number = digits.fold(0u64, |sum, digit| sum.saturating_mul(base).saturating_add(u64::from(digit)));
    if is_negative { number.wrapping_neg() } else { number }
}

/// The number of an address of four numbers.
fn address_of(text: &str) -> Option<u32> {
    let parts: Option<Vec<u8>> = text.split('.').map(|part| part.parse().ok()).collect();
    let bytes: [u8; 4] = parts?.try_into().ok()?;
    Some(u32::from_be_bytes(bytes))
}

fn positive(value: &Value) -> Option<f64> {
    Some(double(value)).filter(|value| *value > 0.0)
}

fn unit(value: &Value) -> Option<f64> {
    Some(double(value)).filter(|value| (-1.0..=1.0).contains(value))
}

fn sha1(_: &mut Run<'_>, a: &[Value]) -> Result<Value> {
    use sha1::Digest;
    Ok(Value::text(hex(&sha1::Sha1::digest(&bytes(&a[0])[..]))))
}

fn user(run: &mut Run<'_>, _: &[Value]) -> Result<Value> {
    let name = run.database.catalog.user_name(run.context.user(&run.database.catalog));
    Ok(Value::text(format!("{name}@%")))
}

/// A table that the user may read. Errors: there is none.
fn readable(database: &Database, context: &Rc<Context>, name: &str) -> Result<Table> {
    let none = || Error::new(Condition::UndefinedTable, format!("Table '{name}' doesn't exist"));
    let space = {
        crate::Sql::of(database).speak(context);
        crate::temporary::space_by_name(database, name).ok_or_else(none)?
    };
    database.check_space_access(context, &space, database::Privileges::READ)?;
    Table::of(database, space)
}
