//! Moments and spans of time in expressions, and calls whose functions have to know the types of their arguments.

use super::{Binder, Bound};
use crate::arithmetic::Arithmetic;
use crate::cast::Strictness;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::Expr;
use crate::types::{Base, Type};
use crate::value::Value;
use sqlparser::ast;
use std::rc::Rc;

/// True for parts that EXTRACT finds in a moment and not in a day, or in another way.
pub(super) fn is_no_part_of_days(unit: &str) -> bool {
    let singular = unit.strip_suffix('s').unwrap_or(unit);
    let is_of_clock = matches!(singular, "hour" | "minute" | "second" | "millisecond" | "microsecond");
    is_of_clock || singular == "epoch" || singular.starts_with("timezone")
}

/// The function that AT TIME ZONE is.
pub(super) fn at_zone_of(ty: Type) -> &'static str {
    match ty.base {
        Base::TimestampTz => "at_zone",
        Base::TimeTz | Base::Time => "zoned_clock_at",
        _ => "of_zone",
    }
}

impl Binder<'_> {
    /// An operation of moments and spans. None: it is one of others.
    pub(super) fn arithmetic_of_time(&self, operation: Arithmetic, a: &Bound, b: &Bound) -> Result<Option<Bound>> {
        if a.ty.is_clock() || b.ty.is_clock() {
            return self.arithmetic_of_clocks(operation, a, b);
        }
        if self.dialect == Dialect::Mysql && a.ty.base != Base::Interval && b.ty.base != Base::Interval {
            // Days are numbers there.
            return Ok(None);
        }
        let number = |value: i64| Bound::new(Expr::Const(Value::Int(value)), Type::of(Base::Int4));
        let sign = match operation {
            Arithmetic::Add => 1,
            Arithmetic::Subtract => -1,
            Arithmetic::Multiply | Arithmetic::Divide if self.dialect == Dialect::Postgres => {
                let (interval, factor) = match (a.ty.base, b.ty.base) {
                    (Base::Interval, _) if b.ty.is_number() || b.ty.base == Base::Unknown => (a, b),
                    (_, Base::Interval) if operation == Arithmetic::Multiply && a.ty.is_number() => (b, a),
                    _ => return Ok(None),
                };
                let factor = self.cast_to(factor.clone(), Type::of(Base::Double), Strictness::Explicit)?;
                let how = number(if operation == Arithmetic::Divide { -1 } else { 1 });
                return self.call("interval_times", vec![interval.clone(), factor, how]).map(Some);
            }
            _ => return Ok(None),
        };
        let call = |moment: &Bound, interval: Bound, result: Type| -> Result<Bound> {
            let is_here = self.is_zoned && moment.ty.base == Base::TimestampTz && self.dialect == Dialect::Postgres;
            let name = if is_here { "moved_here" } else { "moved" };
            let mut found = self.call(name, vec![moment.clone(), interval, number(sign)])?;
            found.ty = result;
            Ok(found)
        };
        // Of a literal's or a column's digits of a second nothing holds for the sum.
        let after = |ty: Type| Type::of(if ty.base == Base::Date { Base::Timestamp } else { ty.base });
        let is_postgres = self.dialect == Dialect::Postgres;
        if is_postgres && (a.ty.base == Base::Unknown) != (b.ty.base == Base::Unknown) {
            // A literal beside a day is a day or a number of days, beside others what they are, or an interval.
            let (known, literal) = if a.ty.base == Base::Unknown { (b, a) } else { (a, b) };
            let is_first = a.ty.base == Base::Unknown;
            let to = match known.ty.base {
                Base::Date if sign < 0 => Base::Date,
                Base::Date => Base::Int4,
                Base::Timestamp | Base::TimestampTz if sign < 0 => known.ty.base,
                Base::Timestamp | Base::TimestampTz | Base::Interval => Base::Interval,
                _ => return Ok(None),
            };
            let cast = self.cast_to(literal.clone(), Type::of(to), Strictness::Explicit)?;
            let (a, b) = if is_first { (cast, b.clone()) } else { (a.clone(), cast) };
            return self.arithmetic_of_time(operation, &a, &b);
        }
        Ok(Some(match (a.ty.base, b.ty.base) {
            (_, Base::Interval) if a.ty.is_moment() => call(a, b.clone(), after(a.ty))?,
            (Base::Interval, _) if b.ty.is_moment() && sign > 0 => call(b, a.clone(), after(b.ty))?,
            (Base::Interval, Base::Interval) if is_postgres => {
                self.call("intervals_added", vec![a.clone(), b.clone(), number(sign)])?
            }
            (Base::Date, Base::Date) if sign < 0 => self.call("days_between", vec![a.clone(), b.clone()])?,
            (_, _) if is_postgres && sign < 0 && a.ty.is_moment() && b.ty.is_moment() => {
                let (a, b) = self.zoned_alike(a.clone(), b.clone())?;
                self.call("moments_between", vec![a, b])?
            }
            (Base::Date, _) if is_postgres && b.ty.is_integer() && b.ty.base != Base::Int8 => {
                self.call("days_later", vec![a.clone(), b.clone(), number(sign)])?
            }
            (_, Base::Date) if is_postgres && a.ty.is_integer() && a.ty.base != Base::Int8 && sign > 0 => {
                self.call("days_later", vec![b.clone(), a.clone(), number(1)])?
            }
            (Base::Date, _) if !is_postgres && b.ty.is_integer() => {
                let Expr::Const(Value::Int(days)) = b.expr else {
                    return Err(Error::unsupported("a day and a number of days that is no constant"));
                };
                let interval = crate::spans::parse_interval(&format!("{days} days"))?;
                call(a, Bound::new(Expr::Const(Value::Interval(Rc::new(interval))), Type::of(Base::Interval)), a.ty)?
            }
            _ => return Ok(None),
        }))
    }

    /// `(a, b) OVERLAPS (c, d)`; an interval at an end says how long the span is.
    pub(super) fn bind_overlaps(&self, scope: &super::Scope<'_>, left: &ast::Expr, right: &ast::Expr) -> Result<Bound> {
        let span = |expr: &ast::Expr| -> Result<(Bound, Bound)> {
            let ast::Expr::Tuple(ends) = expr else {
                return Err(Error::new(
                    Condition::Syntax,
                    "wrong number of parameters on one side of OVERLAPS expression",
                ));
            };
            let [first, last] = ends.as_slice() else {
                return Err(Error::new(
                    Condition::Syntax,
                    "wrong number of parameters on one side of OVERLAPS expression",
                ));
            };
            Ok((self.bind(scope, first)?, self.bind(scope, last)?))
        };
        let ((a, b), (c, d)) = (span(left)?, span(right)?);
        let mut all = vec![a, b, c, d];
        let is_open = |base: Base| base == Base::Unknown || base == Base::Interval;
        let beside = all.iter().map(|bound| bound.ty).find(|ty| !is_open(ty.base));
        for at in [0, 2] {
            if all[at + 1].ty.base != Base::Interval {
                continue;
            }
            if let (Base::Unknown, Some(ty)) = (all[at].ty.base, beside) {
                all[at] = self.cast_to(all[at].clone(), ty, Strictness::Explicit)?;
            }
            all[at + 1] = match self.arithmetic_of_time(Arithmetic::Add, &all[at], &all[at + 1])? {
                Some(end) => end,
                None => return Err(self.no_operator("overlaps", all[at].ty, all[at + 1].ty)),
            };
        }
        let known = all.iter().map(|bound| bound.ty.base).filter(|base| *base != Base::Unknown);
        let rank = |base: &Base| match base {
            Base::Time => 1,
            Base::TimeTz => 2,
            Base::Date => 3,
            Base::Timestamp => 4,
            Base::TimestampTz => 5,
            _ => 6,
        };
        let to = known.max_by_key(rank).unwrap_or(Base::TimestampTz);
        let is_mixed = all.iter().any(|bound| bound.ty.is_clock()) && all.iter().any(|bound| bound.ty.is_moment());
        if rank(&to) > 5 || is_mixed {
            return Err(self.no_operator("overlaps", all[0].ty, all[2].ty));
        }
        for bound in &mut all {
            *bound = self.cast_to(bound.clone(), Type::of(to), Strictness::Explicit)?;
        }
        self.call("overlaps", all)
    }

    pub(super) fn bind_interval(&self, interval: &ast::Interval) -> Result<Bound> {
        let literal = match &*interval.value {
            ast::Expr::Value(value) => match &value.value {
                ast::Value::SingleQuotedString(text) | ast::Value::Number(text, _) => Some(text.clone()),
                _ => None,
            },
            _ => None,
        };
        let Some(text) = literal else {
            return Err(Error::unsupported(format!("'INTERVAL {}' with an expression", interval.value)));
        };
        let fields = [&interval.leading_field, &interval.last_field].into_iter().flatten();
        let fields = fields.map(ToString::to_string).collect::<Vec<_>>().join(" to ");
        let digits = interval.fractional_seconds_precision.or(interval.leading_precision);
        let length = digits.map_or(0, |digits| u32::try_from(digits.min(6)).unwrap_or(6) + 1);
        let scale = if self.dialect == Dialect::Postgres { crate::spans::scale_of(&fields) } else { 0 };
        let ty = Type { length, scale, ..Type::of(Base::Interval) };
        // Units that no type keeps to: `weeks`.
        let text = if scale == 0 { format!("{text} {fields}") } else { text };
        let value = crate::spans::typed(&crate::spans::parse_typed(&text, ty)?, ty);
        Ok(Bound::new(Expr::Const(value), Type::of(Base::Interval)))
    }

    /// LOCALTIME and LOCALTIMESTAMP: what a clock shows here and now.
    pub(super) fn bind_local(&self, name: &str) -> Result<Bound> {
        match name {
            "localtime" => self.call("clock_now", Vec::new()),
            "current_time" => self.call("zoned_clock_now", Vec::new()),
            _ => {
                let now = self.call("now", Vec::new())?;
                self.cast_to(now, Type::of(Base::Timestamp), Strictness::Explicit)
            }
        }
    }

    /// A call of PostgreSQL's dialect that depends on the types of its arguments. None: it is another one.
    pub(super) fn bind_typed_call(&self, name: &str, arguments: &mut Vec<Bound>) -> Result<Option<Bound>> {
        if let Some(found) = self.bind_net_call(name, arguments)? {
            return Ok(Some(found));
        }
        if let Some(found) = self.bind_range_call(name, arguments)? {
            return Ok(Some(found));
        }
        match name {
            "to_char" if arguments.len() == 2 && arguments[0].ty.base == Base::TimestampTz => {
                return self.call("to_char_here", std::mem::take(arguments)).map(Some);
            }
            "to_char" if arguments.len() == 2 => {
                arguments[0] = self.shown_here(arguments[0].clone())?;
                if arguments[0].ty.base == Base::Time {
                    arguments[0] =
                        self.cast_to(arguments[0].clone(), Type::of(Base::Interval), Strictness::Explicit)?;
                }
                let own = match arguments[0].ty.base {
                    Base::Interval => "to_char_interval",
                    _ if arguments[0].ty.is_moment() || arguments[0].ty.is_clock() => "to_char_moment",
                    _ if arguments[0].ty.is_number() => "to_char_number",
                    _ => return self.call(name, std::mem::take(arguments)).map(Some),
                };
                return self.call(own, std::mem::take(arguments)).map(Some);
            }
            "date_trunc" if arguments.len() == 3 => {
                let (zone, value, unit) = (arguments.remove(2), arguments.remove(1), arguments.remove(0));
                let value = self.cast_to(value, Type::of(Base::TimestampTz), Strictness::Explicit)?;
                let clock = self.call("at_zone", vec![value, zone.clone()])?;
                let found = self.call("date_trunc", vec![unit, clock])?;
                let found = Bound { ty: Type::of(Base::Timestamp), ..found };
                return self.call("of_zone", vec![found, zone]).map(Some);
            }
            "date_bin" if arguments.len() == 3 => {
                let is_open = |bound: &Bound| bound.ty.base == Base::Unknown;
                let is_clock = |bound: &Bound| bound.ty.base == Base::Timestamp;
                if !arguments[1].ty.is_moment() && !is_open(&arguments[1]) {
                    let types: Vec<String> = arguments.iter().map(|argument| argument.ty.to_string()).collect();
                    let what = format!("function date_bin({}) does not exist", types.join(", "));
                    return Err(Error::new(Condition::UndefinedFunction, what));
                }
                let is_zoned = arguments[1..].iter().any(|bound| bound.ty.base == Base::TimestampTz);
                let of_clock = !is_zoned && arguments[1..].iter().any(is_clock);
                let to = Type::of(if of_clock { Base::Timestamp } else { Base::TimestampTz });
                let (origin, value, stride) = (arguments.remove(2), arguments.remove(1), arguments.remove(0));
                let arguments = vec![
                    self.cast_to(stride, Type::of(Base::Interval), Strictness::Explicit)?,
                    self.cast_to(value, to, Strictness::Explicit)?,
                    self.cast_to(origin, to, Strictness::Explicit)?,
                ];
                return self.call(name, arguments).map(|found| Some(Bound { ty: to, ..found }));
            }
            "make_timestamptz" if arguments.len() == 7 => {
                let zone = arguments.remove(6);
                let clock = self.call(name, std::mem::take(arguments))?;
                return self.call("of_said_zone", vec![clock, zone]).map(Some);
            }
            "date_trunc" if arguments.len() == 2 => {
                let ty = match arguments[1].ty.base {
                    Base::Interval | Base::Time => {
                        let value = arguments.remove(1);
                        arguments.push(self.cast_to(value, Type::of(Base::Interval), Strictness::Explicit)?);
                        return self.call("interval_trunc", std::mem::take(arguments)).map(Some);
                    }
                    Base::Timestamp => Base::Timestamp,
                    _ => Base::TimestampTz,
                };
                let value = arguments.remove(1);
                if value.ty.base == Base::Unknown && matches!(value.expr, Expr::Const(_)) {
                    let what = "function date_trunc(unknown, unknown) is not unique";
                    let hint = "Could not choose a best candidate function. You might need to add explicit type casts.";
                    return Err(Error::new(Condition::AmbiguousFunction, what).hint(hint));
                }
                let value = if value.ty.base == Base::Unknown {
                    self.cast_to(value, Type::of(ty), Strictness::Explicit)?
                } else {
                    value
                };
                let is_here = self.is_zoned && ty == Base::TimestampTz;
                arguments.push(match is_here {
                    true => self.cast_to(value, Type::of(Base::Timestamp), Strictness::Explicit)?,
                    false => value,
                });
                let mut found = self.call("date_trunc", std::mem::take(arguments))?;
                found.ty = Type::of(ty);
                return match is_here {
                    true => self.moment_here(found).map(Some),
                    false => Ok(Some(found)),
                };
            }
            "age" => {
                let cast = |bound: Bound| match bound.ty.is_moment() {
                    true => Ok(bound),
                    false if !matches!(bound.ty.base, Base::Unknown | Base::Any) => {
                        let what = format!("function age({}) does not exist", bound.ty);
                        Err(Error::new(Condition::UndefinedFunction, what))
                    }
                    false => self.cast_to(bound, Type::of(Base::TimestampTz), Strictness::Explicit),
                };
                let arguments: Vec<Bound> = std::mem::take(arguments).into_iter().map(cast).collect::<Result<_>>()?;
                let arguments = arguments.into_iter().map(|bound| self.shown_here(bound)).collect::<Result<_>>()?;
                return self.call("age", arguments).map(Some);
            }
            "pg_terminate_backend" | "pg_cancel_backend" if !arguments.is_empty() => {
                let number = self.cast_to(arguments[0].clone(), Type::of(Base::Int4), Strictness::Explicit)?;
                return self.call(name, vec![number]).map(Some);
            }
            "timezone" if arguments.len() == 2 => {
                let (moment, zone) = (arguments.remove(1), arguments.remove(0));
                let own = at_zone_of(moment.ty);
                return self.call(own, vec![moment, zone]).map(Some);
            }
            "localtime" | "localtimestamp" | "current_time" if arguments.is_empty() => {
                return self.bind_local(name).map(Some);
            }
            "date_part" if arguments.len() == 2 => {
                let mut value = arguments.remove(1);
                // Of a day it is that of its first moment, unlike EXTRACT.
                if self.dialect == Dialect::Postgres && value.ty.base == Base::Date {
                    value = self.cast_to(value, Type::of(Base::Timestamp), Strictness::Explicit)?;
                }
                let (name, value) = self.part_here(&arguments[0], value)?;
                arguments.push(value);
                let found = self.call(name, std::mem::take(arguments))?;
                return self.cast_to(found, Type::of(Base::Double), Strictness::Explicit).map(Some);
            }
            "make_timestamptz" | "to_timestamp" if self.is_zoned && matches!(arguments.len(), 2 | 6) => {
                let found = self.call(name, std::mem::take(arguments))?;
                return self.moment_here(found).map(Some);
            }
            "date" if arguments.len() == 1 => {
                let value = self.shown_here(arguments.remove(0))?;
                return self.call(name, vec![value]).map(Some);
            }
            // What is shown as its type says has to know it.
            "format" | "concat" | "concat_ws" | "quote_literal" | "quote_nullable" => {
                let as_text = |bound: Bound| match bound.ty.base {
                    Base::Text | Base::Unknown => Ok(bound),
                    _ if bound.ty.is_address() && !name.starts_with("quote") => self.shown_net(bound),
                    Base::Bool if name != "quote_literal" => {
                        let branches = vec![
                            (bound.expr.clone(), Expr::Const(Value::text("t"))),
                            (Expr::Not(Box::new(bound.expr)), Expr::Const(Value::text("f"))),
                        ];
                        Ok(Bound::new(Expr::Case(branches, Box::new(Expr::Const(Value::Null))), Type::TEXT))
                    }
                    _ => self.cast_to(bound, Type::TEXT, Strictness::Explicit),
                };
                let arguments = std::mem::take(arguments).into_iter().map(as_text).collect::<Result<_>>()?;
                return self.call(name, arguments).map(Some);
            }
            _ => {}
        }
        Ok(None)
    }
}
