//! Functions of one row.

use crate::arithmetic::rounded_to;
use crate::cast::{CAPITAL_DIGITS, display, from_hex, push_hex};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::moments;
use crate::run::Run;
use crate::types::{Base, Type};
use crate::value::Value;
use hashbrown::HashSet;
use std::fmt::Write;
use std::rc::Rc;
use tuple::datetime::Datetime;

/// A function.
pub(crate) struct Function {
    /// Its name, in small letters.
    pub(crate) name: &'static str,
    /// Fewest and most arguments.
    pub(crate) arguments: (usize, usize),
    /// The type of its result.
    pub(crate) result: Returns,
    /// Null as soon as an argument is.
    pub(crate) is_strict: bool,
    /// Another value each time, or an effect.
    pub(crate) is_volatile: bool,
    /// Computes it.
    pub(crate) call: fn(&mut Run<'_>, &[Value]) -> Result<Value>,
}

/// The type of a function's result.
#[derive(Clone, Copy)]
pub(crate) enum Returns {
    /// Always this.
    Type(Base),
    /// That of the first argument.
    First,
    /// One that all arguments have in common.
    Common,
    /// That of the elements of the first argument.
    Element,
    /// Arrays of this.
    ArrayOf(Base),
    /// That of the first array among the arguments.
    FirstArray,
}

macro_rules! functions {
    ($($name:literal ($min:literal, $max:expr) $result:expr, $strict:literal, $volatile:literal => $call:expr;)*) => {
        /// All of them.
        pub(crate) static FUNCTIONS: &[Function] = &[$(Function {
            name: $name,
            arguments: ($min, $max),
            result: $result,
            is_strict: $strict,
            is_volatile: $volatile,
            call: $call,
        },)*];
    };
}

/// The same of functions that are alike in whether they may answer otherwise each time.
macro_rules! alike {
    (is_volatile: $volatile:literal; $($name:literal ($min:literal, $max:expr) $result:expr, $strict:literal => $call:expr;)*) => {
        /// All of them.
        pub(crate) static FUNCTIONS: &[$crate::functions::Function] = &[$($crate::functions::Function {
            name: $name,
            arguments: ($min, $max),
            result: $result,
            is_strict: $strict,
            is_volatile: $volatile,
            call: $call,
        },)*];
    };
}
pub(crate) use alike;

const MANY: usize = usize::MAX;
const TEXT: Returns = Returns::Type(Base::Text);
const INT: Returns = Returns::Type(Base::Int4);
const DOUBLE: Returns = Returns::Type(Base::Double);
const BOOL: Returns = Returns::Type(Base::Bool);
const BYTES: Returns = Returns::Type(Base::Bytes);
const MOMENT: Returns = Returns::Type(Base::TimestampTz);

functions! {
    "abs" (1, 1) Returns::First, true, false => |_, a| match &a[0] {
        Value::Int(value) => Value::integer(i128::from(*value).abs()).ok_or_else(overflow),
        Value::Double(value) => Ok(Value::Double(value.abs())),
        Value::Decimal(value) if value.is_negative() => Ok(Value::decimal(value.negated())),
        other => number(other),
    };
    "sign" (1, 1) Returns::First, true, false => |_, a| {
        let value = double(&a[0])?;
        Ok(match &a[0] {
            Value::Double(_) => Value::Double(if value == 0.0 { 0.0 } else { value.signum() }),
            Value::Decimal(_) => {
                Value::decimal(tuple::decimal::Decimal::from(if value == 0.0 { 0 } else { value.signum() as i64 }))
            }
            _ => Value::Int(if value == 0.0 { 0 } else { value.signum() as i64 }),
        })
    };
    "ceil" (1, 1) Returns::First, true, false => |_, a| whole(&a[0], f64::ceil);
    "ceiling" (1, 1) Returns::First, true, false => |_, a| whole(&a[0], f64::ceil);
    "floor" (1, 1) Returns::First, true, false => |_, a| whole(&a[0], f64::floor);
    "round" (1, 2) Returns::First, true, false => round;
    "trunc" (1, 2) Returns::First, true, false => truncate;
    "truncate" (2, 2) Returns::First, true, false => truncate;
    "mod" (2, 2) Returns::Common, true, false => |run, a| {
        let kind = match (&a[0], &a[1]) {
            (Value::Double(_), _) | (_, Value::Double(_)) => Base::Double,
            (Value::Decimal(_), _) | (_, Value::Decimal(_)) => Base::Decimal,
            _ => Base::Integer,
        };
        let zero_gives_null = run.dialect.zero_gives_null() && !run.refuses_zero;
        let manner = crate::arithmetic::Manner { zero_gives_null, short_quotients: false };
        crate::arithmetic::calculate(crate::arithmetic::Arithmetic::Remainder, Type::of(kind), manner, &a[0], &a[1])
    };
    "power" (2, 2) DOUBLE, true, false => power;
    "pow" (2, 2) DOUBLE, true, false => power;
    "sqrt" (1, 1) DOUBLE, true, false => |_, a| of_double(double(&a[0])?.sqrt());
    "exp" (1, 1) DOUBLE, true, false => |_, a| of_double(double(&a[0])?.exp());
    "ln" (1, 1) DOUBLE, true, false => |_, a| of_double(double(&a[0])?.ln());
    "log10" (1, 1) DOUBLE, true, false => |_, a| of_double(double(&a[0])?.log10());
    "log" (1, 2) DOUBLE, true, false => |run, a| match (a.get(1), run.dialect) {
        (Some(of), _) => of_double(double(of)?.ln() / double(&a[0])?.ln()),
        (None, Dialect::Postgres) => of_double(double(&a[0])?.log10()),
        (None, _) => of_double(double(&a[0])?.ln()),
    };
    "sin" (1, 1) DOUBLE, true, false => |_, a| of_double(double(&a[0])?.sin());
    "cos" (1, 1) DOUBLE, true, false => |_, a| of_double(double(&a[0])?.cos());
    "tan" (1, 1) DOUBLE, true, false => |_, a| of_double(double(&a[0])?.tan());
    "atan" (1, 1) DOUBLE, true, false => |_, a| of_double(double(&a[0])?.atan());
    "pi" (0, 0) DOUBLE, true, false => |_, _| Ok(Value::Double(std::f64::consts::PI));
    "random" (0, 0) DOUBLE, true, true => |run, _| {
        let bits = random(run);
        Ok(match run.dialect {
            Dialect::Tarantool => Value::Int(bits as i64),
            _ => Value::Double((bits >> 11) as f64 / (1u64 << 53) as f64),
        })
    };
    "rand" (0, 1) DOUBLE, true, true => |run, _| Ok(Value::Double((random(run) >> 11) as f64 / (1u64 << 53) as f64));
    "randomblob" (1, 1) BYTES, true, true => |run, a| {
        let count = count_of(run, &a[0])?;
        let mut bytes = Vec::with_capacity(count + 8);
        while bytes.len() < count {
            bytes.extend_from_slice(&random(run).to_le_bytes());
        }
        bytes.truncate(count);
        Ok(Value::Bytes(bytes.into()))
    };
    "zeroblob" (1, 1) BYTES, true, false => |run, a| Ok(Value::Bytes(vec![0; count_of(run, &a[0])?].into()));
    "length" (1, 1) INT, true, false => |run, a| Ok(Value::Int(match &a[0] {
        Value::Bytes(bytes) => bytes.len() as i64,
        Value::Text(text) if run.dialect == Dialect::Mysql => text.len() as i64,
        other => display(run.dialect, other).chars().count() as i64,
    }));
    "char_length" (1, 1) INT, true, false => |run, a| Ok(Value::Int(count_letters(run, &a[0])));
    "character_length" (1, 1) INT, true, false => |run, a| Ok(Value::Int(count_letters(run, &a[0])));
    "octet_length" (1, 1) INT, true, false => |run, a| Ok(Value::Int(match &a[0] {
        Value::Bytes(bytes) => bytes.len() as i64,
        other => text(run, other).len() as i64,
    }));
    "upper" (1, 1) TEXT, true, false => |run, a| Ok(Value::text(text(run, &a[0]).to_uppercase()));
    "ucase" (1, 1) TEXT, true, false => |run, a| Ok(Value::text(text(run, &a[0]).to_uppercase()));
    "lower" (1, 1) TEXT, true, false => |run, a| Ok(Value::text(text(run, &a[0]).to_lowercase()));
    "lcase" (1, 1) TEXT, true, false => |run, a| Ok(Value::text(text(run, &a[0]).to_lowercase()));
    "trim" (1, 2) TEXT, true, false => |run, a| trim(run, a, true, true);
    "btrim" (1, 2) TEXT, true, false => |run, a| trim(run, a, true, true);
    "ltrim" (1, 2) TEXT, true, false => |run, a| trim(run, a, true, false);
    "rtrim" (1, 2) TEXT, true, false => |run, a| trim(run, a, false, true);
    "substr" (2, 3) Returns::First, true, false => substring;
    "substring" (2, 3) Returns::First, true, false => substring;
    "left" (2, 2) TEXT, true, false => |run, a| {
        let value = text(run, &a[0]);
        let count = value.chars().count() as i128;
        let wanted = integer(&a[1])?;
        let kept = kept_of(run, count, wanted);
        Ok(Value::text(value.chars().take(kept as usize).collect::<String>()))
    };
    "right" (2, 2) TEXT, true, false => |run, a| {
        let value = text(run, &a[0]);
        let count = value.chars().count() as i128;
        let wanted = integer(&a[1])?;
        let kept = kept_of(run, count, wanted);
        Ok(Value::text(value.chars().skip((count - kept) as usize).collect::<String>()))
    };
    "lpad" (2, 3) TEXT, true, false => |run, a| pad(run, a, true);
    "rpad" (2, 3) TEXT, true, false => |run, a| pad(run, a, false);
    "repeat" (2, 2) TEXT, true, false => |run, a| {
        let value = text(run, &a[0]);
        let times = usize::try_from(integer(&a[1])?.max(0)).unwrap_or(usize::MAX);
        run.check_length(value.len().saturating_mul(times))?;
        Ok(Value::text(value.repeat(times)))
    };
    "replace" (3, 3) TEXT, true, false => |run, a| {
        let (value, from, to) = (text(run, &a[0]), text(run, &a[1]), text(run, &a[2]));
        if from.is_empty() {
            return Ok(Value::text(value));
        }
        let count = value.matches(from.as_str()).count();
        run.check_length(count.saturating_mul(to.len()) + value.len() - count * from.len())?;
        Ok(Value::text(value.replace(from.as_str(), &to)))
    };
    "reverse" (1, 1) TEXT, true, false => |run, a| Ok(Value::text(text(run, &a[0]).chars().rev().collect::<String>()));
    "strpos" (2, 2) INT, true, false => |run, a| Ok(position(&text(run, &a[0]), &text(run, &a[1])));
    "instr" (2, 2) INT, true, false => |run, a| Ok(position(&text(run, &a[0]), &text(run, &a[1])));
    "locate" (2, 2) INT, true, false => |run, a| Ok(position(&text(run, &a[1]), &text(run, &a[0])));
    "position" (2, 2) INT, true, false => |run, a| Ok(position(&text(run, &a[1]), &text(run, &a[0])));
    "split_part" (3, 3) TEXT, true, false => |run, a| {
        let (value, by, number) = (text(run, &a[0]), text(run, &a[1]), integer(&a[2])?);
        let parts: Vec<&str> = if by.is_empty() { vec![&value] } else { value.split(by.as_str()).collect() };
        let at = if number < 0 { parts.len() as i128 + number } else { number - 1 };
        Ok(Value::text(usize::try_from(at).ok().and_then(|at| parts.get(at)).copied().unwrap_or("")))
    };
    "starts_with" (2, 2) BOOL, true, false => |run, a| Ok(Value::Bool(text(run, &a[0]).starts_with(&text(run, &a[1]))));
    "ascii" (1, 1) INT, true, false => |run, a| Ok(Value::Int(text(run, &a[0]).chars().next().map_or(0, |c| i64::from(c as u32))));
    "unicode" (1, 1) INT, true, false => |run, a| Ok(Value::Int(text(run, &a[0]).chars().next().map_or(0, |c| i64::from(c as u32))));
    "chr" (1, 1) TEXT, true, false => |_, a| {
        let c = u32::try_from(integer(&a[0])?).ok().and_then(char::from_u32).filter(|c| *c != '\0');
        c.map(|c| Value::text(c.to_string())).ok_or_else(|| refused("requested character is none"))
    };
    "char" (0, MANY) TEXT, false, false => |_, a| {
        let chars = a.iter().map(|value| {
            value.as_integer().and_then(|code| u32::try_from(code).ok()).and_then(char::from_u32).unwrap_or('\u{fffd}')
        });
        Ok(Value::text(chars.collect::<String>()))
    };
    "concat" (0, MANY) TEXT, false, false => |run, a| {
        let mut all = String::new();
        for value in a {
            match value {
                Value::Null if run.dialect == Dialect::Mysql => return Ok(Value::Null),
                Value::Null => {}
                value => all.push_str(&text(run, value)),
            }
            run.check_length(all.len())?;
        }
        Ok(Value::text(all))
    };
    "concat_ws" (1, MANY) TEXT, false, false => |run, a| {
        if a[0].is_null() {
            return Ok(Value::Null);
        }
        let between = text(run, &a[0]);
        let mut all = String::new();
        for (number, value) in a[1..].iter().filter(|value| !value.is_null()).enumerate() {
            all.push_str(if number == 0 { "" } else { &between });
            all.push_str(&text(run, value));
            run.check_length(all.len())?;
        }
        Ok(Value::text(all))
    };
    "hex" (1, 1) TEXT, true, false => |run, a| {
        let mut all = String::new();
        match (&a[0], run.dialect) {
            (Value::Bytes(bytes), _) => push_hex(bytes, CAPITAL_DIGITS, &mut all),
            (Value::Int(value), Dialect::Mysql) => _ = write!(all, "{value:X}"),
            (Value::Uint(value), Dialect::Mysql) => _ = write!(all, "{value:X}"),
            (value @ (Value::Decimal(_) | Value::Double(_)), Dialect::Mysql) => {
                _ = write!(all, "{:X}", nearest_bits(value.as_double().unwrap_or(0.0)));
            }
            (other, _) => push_hex(text(run, other).as_bytes(), CAPITAL_DIGITS, &mut all),
        }
        Ok(Value::text(all))
    };
    "unhex" (1, 1) BYTES, true, false => |run, a| {
        Ok(from_hex(&text(run, &a[0])).map_or(Value::Null, |bytes| Value::Bytes(bytes.into())))
    };
    "quote" (1, 1) TEXT, false, false => |run, a| Ok(match &a[0] {
        Value::Null => Value::text("NULL"),
        value @ (Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Decimal(_)) => Value::text(display(run.dialect, value)),
        Value::Bytes(bytes) => {
            let mut shown = String::from("X'");
            push_hex(bytes, CAPITAL_DIGITS, &mut shown);
            shown.push('\'');
            Value::text(shown)
        }
        value => Value::text(format!("'{}'", text(run, value).replace('\'', "''"))),
    });
    "quote_literal" (1, 1) TEXT, true, false => |run, a| Ok(Value::text(format!("'{}'", text(run, &a[0]).replace('\'', "''"))));
    "quote_ident" (1, 1) TEXT, true, false => |run, a| {
        let name = text(run, &a[0]);
        let is_plain = name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
            && name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
        Ok(Value::text(if is_plain { name } else { format!("\"{}\"", name.replace('"', "\"\"")) }))
    };
    "soundex" (1, 1) TEXT, true, false => |run, a| Ok(Value::text(match run.dialect {
        Dialect::Mysql => long_soundex(&text(run, &a[0])),
        _ => soundex(&text(run, &a[0])),
    }));
    "coalesce" (1, MANY) Returns::Common, false, false => |_, a| Ok(a.iter().find(|value| !value.is_null()).cloned().unwrap_or_default());
    "ifnull" (2, 2) Returns::Common, false, false => |_, a| Ok(a.iter().find(|value| !value.is_null()).cloned().unwrap_or_default());
    "nullif" (2, 2) Returns::First, false, false => |_, a| {
        let is_same = !a[0].is_null() && a[0].order(&a[1]) == std::cmp::Ordering::Equal;
        Ok(if is_same { Value::Null } else { a[0].clone() })
    };
    "greatest" (1, MANY) Returns::Common, false, false => |run, a| extreme(run, a, std::cmp::Ordering::Greater);
    "least" (1, MANY) Returns::Common, false, false => |run, a| extreme(run, a, std::cmp::Ordering::Less);
    "likely" (1, 1) Returns::First, false, false => |_, a| Ok(a[0].clone());
    "unlikely" (1, 1) Returns::First, false, false => |_, a| Ok(a[0].clone());
    "likelihood" (2, 2) Returns::First, false, false => |_, a| Ok(a[0].clone());
    "grouping" (1, 31) INT, false, false => |_, _| {
        Err(Error::new(Condition::Grouping, "arguments to GROUPING must be grouping expressions of the associated query level"))
    };
    "six_digits" (1, 1) Returns::Type(Base::Decimal), true, false => |run, a| {
        let text = crate::text::display_as(Dialect::Mysql, &a[0], Type::FLOAT);
        crate::cast::cast(run.dialect, Value::text(text), Type::of(Base::Decimal), crate::cast::Strictness::Explicit)
    };
    "text_of" (2, 2) TEXT, true, false => |run, a| {
        let ty = Type::of_code(a[1].as_integer().and_then(|code| i64::try_from(code).ok()).unwrap_or(0));
        let text = crate::text::display_in(run.dialect, &a[0], ty, run.zone().as_ref());
        run.check_length(text.len())?;
        Ok(Value::text(text))
    };
    "typeof" (1, 1) TEXT, false, false => |_, a| Ok(Value::text(match &a[0] {
        Value::Null | Value::Bool(_) => "boolean",
        Value::Int(_) | Value::Uint(_) => "integer",
        Value::Double(_) => "double",
        Value::Decimal(_) => "decimal",
        Value::Text(_) => "string",
        Value::Bytes(_) => "varbinary",
        Value::Uuid(_) => "uuid",
        Value::Datetime(_) => "datetime",
        Value::Interval(_) => "interval",
        Value::Document(_) => "array",
    }));
    "version" (0, 0) TEXT, true, false => |run, _| Ok(Value::text(match run.dialect {
        Dialect::Tarantool => "2.11.0".to_string(),
        // Programs look for the version whose protocol and functions they find.
        Dialect::Postgres => format!("PostgreSQL 15.8 (Lycosa {})", env!("CARGO_PKG_VERSION")),
        Dialect::Mysql => format!("8.0.36-lycosa-{}", env!("CARGO_PKG_VERSION")),
    }));
    "uuid" (0, 1) Returns::Type(Base::Uuid), true, true => |run, _| Ok(Value::Uuid(Rc::new(uuid(run))));
    // Of the extension uuid-ossp.
    "uuid_generate_v4" (0, 0) Returns::Type(Base::Uuid), true, true => |run, _| Ok(Value::Uuid(Rc::new(uuid(run))));
    "gen_random_uuid" (0, 0) Returns::Type(Base::Uuid), true, true => |run, _| Ok(Value::Uuid(Rc::new(uuid(run))));
    "now" (0, 1) MOMENT, true, false => |run, _| Ok(now(run));
    "current_timestamp" (0, 1) MOMENT, true, false => |run, _| Ok(now(run));
    "statement_timestamp" (0, 0) MOMENT, true, false => |run, _| Ok(now(run));
    "transaction_timestamp" (0, 0) MOMENT, true, false => |run, _| Ok(now(run));
    "current_date" (0, 0) Returns::Type(Base::Date), true, false => |run, _| Ok(match now(run) {
        Value::Datetime(moment) => {
            let shown = run.zone().and_then(|zone| zone.clock(&moment)).unwrap_or(*moment);
            let seconds = shown.seconds.div_euclid(86_400) * 86_400;
            Value::Datetime(Rc::new(Datetime { seconds, ..Datetime::default() }))
        }
        other => other,
    });
    "date_part" (2, 2) DOUBLE, true, false => |run, a| date_part(&text(run, &a[0]), &a[1]);
    "date_trunc" (2, 2) Returns::Type(Base::Timestamp), true, false => |run, a| date_trunc(&text(run, &a[0]), &a[1]);
    "year" (1, 1) INT, true, false => |_, a| whole_part("year", &a[0]);
    "month" (1, 1) INT, true, false => |_, a| whole_part("month", &a[0]);
    "day" (1, 1) INT, true, false => |_, a| whole_part("day", &a[0]);
    "hour" (1, 1) INT, true, false => |_, a| whole_part("hour", &a[0]);
    "minute" (1, 1) INT, true, false => |_, a| whole_part("minute", &a[0]);
    "second" (1, 1) INT, true, false => |_, a| whole_part("second", &a[0]);
    "date" (1, 1) Returns::Type(Base::Date), true, false => |run, a| {
        crate::cast::cast(run.dialect, a[0].clone(), Type::of(Base::Date), crate::cast::Strictness::Explicit)
    };
    "moved" (3, 3) Returns::First, true, false => |_, a| match (&a[0], &a[1], &a[2]) {
        (Value::Datetime(moment), Value::Interval(interval), Value::Int(sign)) => {
            let moved = moments::moved(moment, interval, *sign);
            moved.map(|moment| Value::Datetime(Rc::new(moment))).ok_or_else(|| Error::new(Condition::DatetimeOverflow, "timestamp out of range"))
        }
        _ => Err(refused("a moment and an interval are wanted")),
    };
    "days_between" (2, 2) INT, true, false => |_, a| match (&a[0], &a[1]) {
        (Value::Datetime(a), Value::Datetime(b))
            if moments::endless_name(a).is_some() || moments::endless_name(b).is_some() =>
        {
            Err(Error::new(Condition::DatetimeOverflow, "cannot subtract infinite dates"))
        }
        (Value::Datetime(a), Value::Datetime(b)) => Ok(Value::Int(a.seconds.div_euclid(86_400) - b.seconds.div_euclid(86_400))),
        _ => Err(refused("days are wanted")),
    };
    "database" (0, 0) TEXT, true, false => |_, _| Ok(Value::text("lycosa"));
}

/// The function of a name, in small letters.
pub(crate) fn find(dialect: Dialect, name: &str) -> Option<&'static Function> {
    if let Some(own) = crate::advisory::find(dialect, name) {
        return Some(own);
    }
    if dialect == Dialect::Mysql
        && let Some(own) = crate::mysql::functions::find(name)
    {
        return Some(own);
    }
    let of_clocks = crate::time_functions::find(dialect, name).or_else(|| crate::zones::find(dialect, name));
    if let Some(own) = of_clocks {
        return Some(own);
    }
    if dialect == Dialect::Postgres
        && let Some(own) = crate::postgres_functions::find(name)
            .or_else(|| crate::angles::find(name))
            .or_else(|| crate::net::functions::find(name))
            .or_else(|| crate::range::functions::find(name))
    {
        return Some(own);
    }
    let known = FUNCTIONS.iter().find(|function| function.name == name);
    known
        .or_else(|| crate::json::functions::find(name))
        .or_else(|| crate::array::functions::find(name))
        .or_else(|| crate::system_functions::find(name))
        .or_else(|| crate::user_types::find_function(name))
}

fn refused(what: &str) -> Error {
    Error::new(Condition::InvalidArgument, what)
}

fn overflow() -> Error {
    Error::new(Condition::NumericOutOfRange, "integer is overflowed")
}

/// How many characters of so many are kept; a negative number leaves off the end, and in MySQL all.
fn kept_of(run: &Run<'_>, count: i128, wanted: i128) -> i128 {
    match wanted < 0 {
        true if run.dialect == Dialect::Mysql => 0,
        true => (count + wanted).max(0),
        false => wanted.min(count),
    }
}

fn text(run: &Run<'_>, value: &Value) -> String {
    match value {
        Value::Text(text) => text.to_string(),
        Value::Bytes(bytes) if run.dialect == Dialect::Mysql => String::from_utf8_lossy(bytes).into_owned(),
        other => display(run.dialect, other),
    }
}

/// How many letters a text has. Bytes of MySQL's dialect count as letters.
fn count_letters(run: &Run<'_>, value: &Value) -> i64 {
    match value {
        Value::Bytes(bytes) if run.dialect == Dialect::Mysql => bytes.len() as i64,
        value => text(run, value).chars().count() as i64,
    }
}

fn double(value: &Value) -> Result<f64> {
    value.as_double().ok_or_else(|| Error::new(Condition::TypeMismatch, "a number is wanted"))
}

fn integer(value: &Value) -> Result<i128> {
    let whole = value.as_integer().or_else(|| value.as_double().map(|value| value.trunc() as i128));
    whole.ok_or_else(|| Error::new(Condition::TypeMismatch, "a whole number is wanted"))
}

fn number(value: &Value) -> Result<Value> {
    double(value).map(|_| value.clone())
}

fn power(run: &mut Run<'_>, a: &[Value]) -> Result<Value> {
    let (base, exponent) = (double(&a[0])?, double(&a[1])?);
    let value = base.powf(exponent);
    if value.is_infinite() && base.is_finite() && exponent.is_finite() {
        return Err(match run.dialect {
            Dialect::Mysql => {
                Error::new(Condition::NumericOutOfRange, "DOUBLE value is out of range in 'pow'").mysql(1690)
            }
            _ if base == 0.0 => Error::new(Condition::InvalidPower, "zero raised to a negative power is undefined"),
            _ => Error::new(Condition::NumericOutOfRange, "value out of range: overflow"),
        });
    }
    of_double(value)
}

fn of_double(value: f64) -> Result<Value> {
    match value.is_nan() {
        false => Ok(Value::Double(value)),
        true => Err(Error::new(Condition::NumericOutOfRange, "the result is no number")),
    }
}

fn count_of(run: &Run<'_>, value: &Value) -> Result<usize> {
    let count = usize::try_from(integer(value)?.max(0)).unwrap_or(usize::MAX);
    run.check_length(count)?;
    Ok(count)
}

fn whole(value: &Value, change: fn(f64) -> f64) -> Result<Value> {
    match value {
        Value::Double(value) => Ok(Value::Double(change(*value))),
        Value::Decimal(decimal) => {
            let (digits, scale) = decimal.parts();
            let Some(unit) = 10i128.checked_pow(scale.max(0) as u32).filter(|_| scale > 0) else {
                return Ok(value.clone());
            };
            let floor = digits.div_euclid(unit);
            let is_up = change(0.5) > 0.5 && digits.rem_euclid(unit) != 0;
            let whole = tuple::decimal::Decimal::new(floor + i128::from(is_up), 0);
            whole.map(Value::decimal).ok_or_else(overflow)
        }
        other => number(other),
    }
}

fn round(run: &mut Run<'_>, a: &[Value]) -> Result<Value> {
    let digits = a.get(1).map_or(Ok(0), integer)?.clamp(-38, 38) as i32;
    match &a[0] {
        Value::Double(value) if digits.abs() > 15 => Ok(Value::Double(*value)),
        Value::Double(value) => {
            let unit = 10f64.powi(digits);
            // PostgreSQL and MySQL round halves to even numbers; a zero of MySQL has no sign.
            let rounded = match run.dialect {
                Dialect::Tarantool => (value * unit).round() / unit,
                Dialect::Postgres => (value * unit).round_ties_even() / unit,
                Dialect::Mysql => (value * unit).round_ties_even() / unit + 0.0,
            };
            Ok(Value::Double(rounded))
        }
        Value::Decimal(value) => rounded_to(**value, digits).map(Value::decimal).ok_or_else(overflow),
        Value::Int(_) | Value::Uint(_) if digits >= 0 => Ok(a[0].clone()),
        other => {
            let value = other.as_decimal().and_then(|value| rounded_to(value, digits));
            let whole = value.and_then(|value| value.to_integer()).and_then(Value::integer);
            whole.ok_or_else(overflow)
        }
    }
}

fn truncate(run: &mut Run<'_>, a: &[Value]) -> Result<Value> {
    let digits = a.get(1).map_or(Ok(0), integer)?.clamp(-38, 38) as i32;
    match &a[0] {
        Value::Double(value) => {
            let unit = 10f64.powi(digits.clamp(-15, 15));
            Ok(Value::Double((value * unit).trunc() / unit))
        }
        Value::Decimal(value) => {
            let (coefficient, scale) = value.parts();
            if scale <= digits {
                // PostgreSQL shows the digits that were asked for.
                let shown = (run.dialect == Dialect::Postgres)
                    .then(|| crate::arithmetic::rounded_to(**value, digits))
                    .flatten();
                return Ok(shown.map_or_else(|| a[0].clone(), Value::decimal));
            }
            let unit = 10i128.checked_pow((scale - digits) as u32).unwrap_or(i128::MAX);
            tuple::decimal::Decimal::new(coefficient / unit, digits).map(Value::decimal).ok_or_else(overflow)
        }
        Value::Int(value) if digits < 0 => {
            let unit = 10i64.checked_pow(digits.unsigned_abs());
            Ok(Value::Int(unit.map_or(0, |unit| value / unit * unit)))
        }
        other => number(other),
    }
}

/// The bits of the whole number nearest to a double, as MySQL's HEX has them: all are set of what 64 bits do not hold.
fn nearest_bits(value: f64) -> u64 {
    if value <= i64::MIN as f64 || value >= u64::MAX as f64 {
        return u64::MAX;
    }
    value.round() as i128 as u64
}

fn trim(run: &mut Run<'_>, a: &[Value], left: bool, right: bool) -> Result<Value> {
    if let Value::Bytes(bytes) = &a[0] {
        let mut rest = &bytes[..];
        while left && rest.first() == Some(&0) {
            rest = &rest[1..];
        }
        while right && rest.last() == Some(&0) {
            rest = &rest[..rest.len() - 1];
        }
        return Ok(Value::Bytes(rest.into()));
    }
    let value = text(run, &a[0]);
    let set: HashSet<char> = a.get(1).map_or_else(|| [' '].into(), |set| text(run, set).chars().collect());
    let is_in = |c: char| set.contains(&c);
    let mut rest = value.as_str();
    if left {
        rest = rest.trim_start_matches(is_in);
    }
    if right {
        rest = rest.trim_end_matches(is_in);
    }
    Ok(Value::text(rest))
}

fn substring(run: &mut Run<'_>, a: &[Value]) -> Result<Value> {
    let from = integer(&a[1])?;
    let count = a.get(2).map(integer).transpose()?;
    if count.is_some_and(|count| count < 0) && run.dialect == Dialect::Postgres {
        return Err(refused("negative substring length not allowed"));
    }
    let slice = |length: i128| {
        // From behind, but in PostgreSQL's dialect, where there is something before the first character.
        let start = match run.dialect {
            Dialect::Postgres => from - 1,
            // Farther than the first character: nothing.
            Dialect::Mysql if from < -length => return (0, 0),
            _ if from < 0 => length + from,
            Dialect::Mysql if from == 0 => length,
            _ => from - 1,
        };
        let end = count.map_or(length, |count| start.saturating_add(count));
        let (start, end) = if end < start { (end, start) } else { (start, end) };
        (start.clamp(0, length) as usize, end.clamp(0, length) as usize)
    };
    if let Value::Bytes(bytes) = &a[0] {
        let (start, end) = slice(bytes.len() as i128);
        return Ok(Value::Bytes(bytes[start..end].into()));
    }
    let value = text(run, &a[0]);
    let (start, end) = slice(value.chars().count() as i128);
    Ok(Value::text(value.chars().skip(start).take(end - start).collect::<String>()))
}

fn pad(run: &mut Run<'_>, a: &[Value], left: bool) -> Result<Value> {
    let value = text(run, &a[0]);
    let wanted = count_of(run, &a[1])?;
    let fill: Vec<char> = a.get(2).map_or_else(|| vec![' '], |fill| text(run, fill).chars().collect());
    let has = value.chars().count();
    if wanted <= has || fill.is_empty() {
        return Ok(Value::text(value.chars().take(wanted).collect::<String>()));
    }
    let padding: String = fill.iter().cycle().take(wanted - has).collect();
    Ok(Value::text(if left { padding + &value } else { value + &padding }))
}

fn position(value: &str, wanted: &str) -> Value {
    let found = value.find(wanted).map_or(0, |at| value[..at].chars().count() + 1);
    Value::Int(found as i64)
}

fn extreme(run: &mut Run<'_>, a: &[Value], wanted: std::cmp::Ordering) -> Result<Value> {
    if run.dialect != Dialect::Postgres && a.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let known = a.iter().filter(|value| !value.is_null());
    Ok(known.reduce(|best, value| if value.order(best) == wanted { value } else { best }).cloned().unwrap_or_default())
}

/// MySQL's is as long as it gets, and letters of others stand for themselves at the beginning.
fn long_soundex(text: &str) -> String {
    let code = |c: char| match c.to_ascii_uppercase() {
        'B' | 'F' | 'P' | 'V' => '1',
        'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => '2',
        'D' | 'T' => '3',
        'L' => '4',
        'M' | 'N' => '5',
        'R' => '6',
        _ => '0',
    };
    let mut letters = text.chars().filter(|c| c.is_alphabetic());
    let Some(first) = letters.next() else { return String::new() };
    let (mut found, mut last) = (String::from(first.to_ascii_uppercase()), code(first));
    for digit in letters.map(code) {
        if digit != '0' && digit != last {
            found.push(digit);
            last = digit;
        }
    }
    while found.chars().count() < 4 {
        found.push('0');
    }
    found
}

fn soundex(text: &str) -> String {
    let code = |c: char| match c.to_ascii_uppercase() {
        'B' | 'F' | 'P' | 'V' => b'1',
        'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => b'2',
        'D' | 'T' => b'3',
        'L' => b'4',
        'M' | 'N' => b'5',
        'R' => b'6',
        _ => 0,
    };
    let mut letters = text.chars().filter(char::is_ascii_alphabetic);
    let Some(first) = letters.next() else { return "?000".to_string() };
    let mut found = String::from(first.to_ascii_uppercase());
    let mut last = code(first);
    for letter in letters {
        let digit = code(letter);
        if digit != 0 && digit != last && found.len() < 4 {
            found.push(digit as char);
        }
        last = digit;
    }
    while found.len() < 4 {
        found.push('0');
    }
    found
}

fn random(run: &Run<'_>) -> u64 {
    let mut bytes = [0; 8];
    run.database.environment().randomness.fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

fn uuid(run: &Run<'_>) -> [u8; 16] {
    let mut bytes = [0; 16];
    run.database.environment().randomness.fill(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes
}

fn now(run: &Run<'_>) -> Value {
    let seconds = run.now_ns.div_euclid(1_000_000_000) as i64;
    let nanoseconds = (run.now_ns.rem_euclid(1_000_000_000) / 1000 * 1000) as i32;
    Value::Datetime(Rc::new(Datetime { seconds, nanoseconds, ..Datetime::default() }))
}

fn whole_part(unit: &str, value: &Value) -> Result<Value> {
    date_part(unit, value).map(|value| Value::Int(value.as_double().unwrap_or(0.0) as i64))
}

pub(crate) fn date_part(unit: &str, value: &Value) -> Result<Value> {
    let Value::Datetime(moment) = value else { return Err(refused("a day or a moment is wanted")) };
    let day = moment.seconds.div_euclid(86_400);
    let rest = moment.seconds.rem_euclid(86_400);
    let (year, month, date) = tuple::datetime::date_of(day);
    let first_of = |year: i64| moments::midnight(year, 1, 1).map_or(0, |moment| moment.seconds.div_euclid(86_400));
    let found = match unit.to_ascii_lowercase().as_str() {
        "year" => year as f64,
        "month" => f64::from(month),
        "day" => f64::from(date),
        "quarter" => f64::from(month.div_ceil(3)),
        "hour" => (rest / 3600) as f64,
        "minute" => (rest / 60 % 60) as f64,
        "second" => (rest % 60) as f64 + f64::from(moment.nanoseconds) / 1e9,
        "milliseconds" => (rest % 60) as f64 * 1e3 + f64::from(moment.nanoseconds) / 1e6,
        "microseconds" => (rest % 60) as f64 * 1e6 + f64::from(moment.nanoseconds) / 1e3,
        "epoch" => moment.seconds as f64 + f64::from(moment.nanoseconds) / 1e9,
        "dow" => (day + 4).rem_euclid(7) as f64,
        "isodow" => ((day + 3).rem_euclid(7) + 1) as f64,
        "doy" => (day - first_of(year) + 1) as f64,
        "century" => ((year + 99) / 100) as f64,
        "decade" => (year / 10) as f64,
        other => return Err(refused(&format!("unit \"{other}\" not recognized"))),
    };
    Ok(Value::Double(found))
}

fn date_trunc(unit: &str, value: &Value) -> Result<Value> {
    let Value::Datetime(moment) = value else { return Err(refused("a day or a moment is wanted")) };
    if moments::endless_name(moment).is_some() {
        return Ok(value.clone());
    }
    let day = moment.seconds.div_euclid(86_400);
    let (year, month, _) = tuple::datetime::date_of(day);
    let start_of =
        |year: i64, month: u32| moments::midnight(year, i64::from(month), 1).map_or(0, |found| found.seconds);
    let seconds = match unit.to_ascii_lowercase().as_str() {
        "millisecond" | "milliseconds" | "microsecond" | "microseconds" => {
            let unit = if unit.to_ascii_lowercase().starts_with("milli") { 1_000_000 } else { 1000 };
            let nanoseconds = moment.nanoseconds / unit * unit;
            return Ok(Value::Datetime(Rc::new(Datetime { nanoseconds, ..**moment })));
        }
        "second" => moment.seconds,
        "minute" => moment.seconds.div_euclid(60) * 60,
        "hour" => moment.seconds.div_euclid(3600) * 3600,
        "day" => day * 86_400,
        "week" => (day - (day + 3).rem_euclid(7)) * 86_400,
        "month" => start_of(year, month),
        "quarter" => start_of(year, (month - 1) / 3 * 3 + 1),
        "year" => start_of(year, 1),
        "decade" if year > 0 => start_of(year / 10 * 10, 1),
        "century" if year > 0 => start_of((year + 99) / 100 * 100 - 99, 1),
        "millennium" if year > 0 => start_of((year + 999) / 1000 * 1000 - 999, 1),
        other => return Err(refused(&format!("unit \"{other}\" not recognized"))),
    };
    Ok(Value::Datetime(Rc::new(Datetime { seconds, nanoseconds: 0, ..**moment })))
}
