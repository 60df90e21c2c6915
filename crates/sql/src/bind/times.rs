//! TIME in expressions: what becomes of it beside other types, and how many digits of a second what is made of it has.

use super::{Binder, Bound};
use crate::arithmetic::Arithmetic;
use crate::cast::Strictness;
use crate::dialect::Dialect;
use crate::error::Result;
use crate::expr::Expr;
use crate::types::{Base, Type};
use crate::value::Value;

fn number(value: i64) -> Bound {
    Bound::new(Expr::Const(Value::Int(value)), Type::of(Base::Int4))
}

fn constant(text: &str) -> Bound {
    Bound::new(Expr::Const(Value::text(text)), Type::TEXT)
}

/// Digits of a second that a value of MySQL's has. None: nobody knows before it is there.
pub(super) fn digits_of(bound: &Bound) -> Option<u32> {
    match (bound.ty.base, &bound.expr) {
        (Base::Time | Base::Timestamp, _) if bound.ty.length > 0 => Some(bound.ty.length - 1),
        (Base::Date, _) | (_, Expr::Const(Value::Null)) => Some(0),
        (Base::Decimal, _) => Some(bound.ty.scale.min(6)),
        (Base::Text, Expr::Const(Value::Text(text))) => {
            Some(text.split_once('.').map_or(0, |(_, digits)| digits.len().min(6) as u32))
        }
        _ if bound.ty.is_integer() => Some(0),
        _ => None,
    }
}

pub(super) fn type_of(digits: Option<u32>) -> Type {
    digits.map_or(Type::of(Base::Time), crate::clock::type_of)
}

/// The type of moments with so many digits of a second.
pub(super) fn moment_of(digits: Option<u32>) -> Type {
    Type { base: Base::Timestamp, ..type_of(digits) }
}

/// The digits that values of both have. None: nobody knows.
fn most(a: &Bound, b: &Bound) -> Option<u32> {
    digits_of(a).zip(digits_of(b)).map(|(a, b)| a.max(b))
}

/// Digits of a second of what is moved by so much of a unit. None: nobody knows.
fn moved_digits(value: &Bound, amount: &Bound, unit: &str) -> Option<u32> {
    let more = match unit.to_ascii_uppercase() {
        unit if unit.contains("MICROSECOND") => Some(6),
        unit if unit.ends_with("SECOND") => digits_of(amount),
        _ => Some(0),
    };
    digits_of(value).zip(more).map(|(own, more)| own.max(more))
}

impl Binder<'_> {
    /// A time as a value of another type, or another value as a time. Err: as it is, for whoever casts all others.
    pub(super) fn cast_time(&self, bound: Bound, to: Type) -> Result<std::result::Result<Bound, Bound>> {
        let is_mysql = self.dialect == Dialect::Mysql;
        let own = match (bound.ty.base, to.base) {
            (Base::Time, Base::Interval) => "span_of",
            (Base::Time, Base::Text) => return Ok(Err(bound)),
            (Base::Time, Base::Json) if is_mysql => {
                let text = self.cast_to(bound, Type::TEXT, Strictness::Explicit)?;
                return Ok(Err(text));
            }
            (Base::Time, _) if is_mysql && (to.is_number() || to.base == Base::Bool) => {
                let digits = self.time_as_digits(bound)?;
                return self.cast_to(digits, to, Strictness::Explicit).map(Ok);
            }
            (Base::Time, _) if is_mysql && to.is_moment() => "today_at",
            (Base::Time, Base::TimeTz) => "zoned_clock",
            (Base::TimestampTz, Base::TimeTz) => "zoned_clock_of",
            (Base::TimeTz, Base::Time) => "clock_of_zoned",
            (Base::Text | Base::Unknown | Base::Any, Base::TimeTz) if self.is_zoned => {
                let open = Bound::new(bound.expr, Type::of(Base::Any));
                return self.call("zoned_clock_of_text", vec![open]).map(|found| match found.ty == to {
                    true => Ok(found),
                    false => Err(found),
                });
            }
            (Base::Interval, Base::Time) => "clock_of_span",
            (_, Base::Time) if bound.ty.is_moment() => "clock_of",
            _ => return Ok(Err(bound)),
        };
        let found = self.call(own, vec![bound])?;
        match found.ty == to {
            true => Ok(Ok(found)),
            false => Ok(Err(found)),
        }
    }

    /// The type of a literal with the name of a type before it: in MySQL's dialect it has the digits of a second that are written.
    pub(super) fn type_of_literal(&self, to: Type, value: &Bound) -> Type {
        match (self.dialect, to.base, digits_of(value)) {
            (Dialect::Mysql, Base::Time | Base::Timestamp, Some(digits)) => Type { length: digits + 1, ..to },
            _ => to,
        }
    }

    /// A time as the number of its digits: 123456 for `12:34:56`.
    pub(super) fn time_as_digits(&self, bound: Bound) -> Result<Bound> {
        let digits = digits_of(&bound).unwrap_or(6);
        let mut found = self.call("digits_of_span", vec![bound, number(i64::from(digits))])?;
        found.ty = match digits {
            0 => Type::of(Base::Int8),
            digits => Type { base: Base::Decimal, length: 7 + digits, scale: digits },
        };
        Ok(found)
    }

    /// A value for a column of MySQL's: times and moments become each other, and other things, in their own way.
    pub(super) fn time_for(&self, bound: Bound, to: Type) -> Result<Bound> {
        let is_one = bound.ty.base == Base::Time && to.base != Base::Time;
        match is_one || bound.ty.is_moment() && to.base == Base::Time {
            true => self.cast_to(bound, to.without_length(), Strictness::Explicit),
            false => Ok(bound),
        }
    }

    /// An argument of a function of MySQL's that is a time: a span, or the text that it is shown as.
    pub(super) fn time_as_argument(&self, name: &str, argument: Bound, keeps: bool) -> Result<Bound> {
        let is_own = matches!(
            name,
            "text_of"
                | "span_of"
                | "clock_of"
                | "digits_of_span"
                | "span_moved"
                | "today_at"
                | "json_of"
                | "implicit_default"
        );
        match () {
            () if argument.ty.base != Base::Time || is_own || keeps => Ok(argument),
            () if crate::mysql::times::takes_spans(name) => self.call("span_of", vec![argument]),
            () => self.cast_to(argument, Type::TEXT, Strictness::Explicit),
        }
    }

    /// A call of MySQL's that gives a time, with its digits. None: it is another one.
    pub(super) fn bind_time_call(&self, name: &str, arguments: &mut Vec<Bound>) -> Result<Option<Bound>> {
        if self.dialect != Dialect::Mysql {
            return Ok(None);
        }
        let (name, digits) = match (name, arguments.as_slice()) {
            ("curtime" | "current_time" | "utc_time", []) => (name, Some(0)),
            ("curtime" | "current_time" | "utc_time", [Bound { expr: Expr::Const(Value::Int(digits)), .. }]) => {
                (name, u32::try_from(*digits).ok().map(|digits| digits.min(6)))
            }
            ("time" | "sec_to_time", [value]) => (name, digits_of(value)),
            ("maketime", [_, _, second]) => (name, digits_of(second)),
            ("timediff", [a, b]) => (name, digits_of(a).zip(digits_of(b)).map(|(a, b)| a.max(b))),
            ("addtime" | "subtime", [a, b]) => {
                let digits = digits_of(a).zip(digits_of(b)).map(|(a, b)| a.max(b));
                let (own, base) = match a.ty.base {
                    Base::Time => ("spans_added", Base::Time),
                    _ if a.ty.is_moment() => ("moment_and_span", Base::Timestamp),
                    _ => return Ok(None),
                };
                let mut all = std::mem::take(arguments);
                all.push(number(if name == "addtime" { 1 } else { -1 }));
                let mut found = self.call(own, all)?;
                found.ty = Type { base, ..type_of(digits) };
                return Ok(Some(found));
            }
            // Moments.
            ("convert_tz", [value, _, _]) | ("from_unixtime" | "timestamp", [value]) => {
                let ty = moment_of(digits_of(value));
                return self.call(name, std::mem::take(arguments)).map(|found| Some(Bound { ty, ..found }));
            }
            ("timestamp", [a, b]) => {
                let ty = moment_of(most(a, b));
                return self.call(name, std::mem::take(arguments)).map(|found| Some(Bound { ty, ..found }));
            }
            ("unix_timestamp", [value]) if let Some(digits @ 1..) = digits_of(value) => {
                let mut all = std::mem::take(arguments);
                all.push(number(i64::from(digits)));
                let ty = Type { base: Base::Decimal, length: 11 + digits, scale: digits };
                return self.call(name, all).map(|found| Some(Bound { ty, ..found }));
            }
            _ => return Ok(None),
        };
        let mut found = self.call(name, std::mem::take(arguments))?;
        found.ty = type_of(digits);
        Ok(Some(found))
    }

    /// The type of a moment that is moved by so much of a unit.
    pub(super) fn moved_type(&self, value: &Bound, amount: &Bound, unit: &str) -> Type {
        moment_of(moved_digits(value, amount, unit))
    }

    /// A time so much of a unit later, or earlier.
    pub(super) fn move_time(&self, value: Bound, amount: Bound, unit: &str, is_later: bool) -> Result<Bound> {
        let digits = moved_digits(&value, &amount, unit);
        let sign = number(if is_later { 1 } else { -1 });
        let mut found = self.call("span_moved", vec![value, amount, constant(unit), sign])?;
        found.ty = type_of(digits);
        Ok(found)
    }

    /// An operation of PostgreSQL's one of whose sides is a time. None: it is another one.
    pub(super) fn arithmetic_of_clocks(&self, operation: Arithmetic, a: &Bound, b: &Bound) -> Result<Option<Bound>> {
        let sign = match operation {
            Arithmetic::Add => 1,
            Arithmetic::Subtract => -1,
            _ => return Ok(None),
        };
        if self.dialect != Dialect::Postgres {
            return Ok(None);
        }
        Ok(Some(match (a.ty.base, b.ty.base) {
            (Base::Time, Base::Interval) => self.call("time_moved", vec![a.clone(), b.clone(), number(sign)])?,
            (Base::Interval, Base::Time) if sign > 0 => {
                self.call("time_moved", vec![b.clone(), a.clone(), number(1)])?
            }
            (Base::Interval, Base::Time) => {
                let span = self.cast_to(b.clone(), Type::of(Base::Interval), Strictness::Explicit)?;
                self.call("intervals_added", vec![a.clone(), span, number(sign)])?
            }
            (Base::Time, Base::Time) if sign < 0 => self.call("times_between", vec![a.clone(), b.clone()])?,
            (Base::Date, Base::Time) if sign > 0 => self.call("day_and_time", vec![a.clone(), b.clone()])?,
            (Base::Time, Base::Date) if sign > 0 => self.call("day_and_time", vec![b.clone(), a.clone()])?,
            (Base::TimeTz, Base::Interval) => {
                self.call("zoned_clock_moved", vec![a.clone(), b.clone(), number(sign)])?
            }
            (Base::Interval, Base::TimeTz) if sign > 0 => {
                self.call("zoned_clock_moved", vec![b.clone(), a.clone(), number(1)])?
            }
            (Base::Date, Base::TimeTz) if sign > 0 => self.call("day_and_zoned_clock", vec![a.clone(), b.clone()])?,
            (Base::TimeTz, Base::Date) if sign > 0 => self.call("day_and_zoned_clock", vec![b.clone(), a.clone()])?,
            (Base::Time, Base::Unknown) => {
                let to = if sign < 0 { Base::Time } else { Base::Interval };
                let literal = self.cast_to(b.clone(), Type::of(to), Strictness::Explicit)?;
                return self.arithmetic_of_clocks(operation, a, &literal);
            }
            (Base::Unknown, Base::Time) => {
                let to = if sign < 0 { Base::Time } else { Base::Interval };
                let literal = self.cast_to(a.clone(), Type::of(to), Strictness::Explicit)?;
                return self.arithmetic_of_clocks(operation, &literal, b);
            }
            _ => return Ok(None),
        }))
    }
}
