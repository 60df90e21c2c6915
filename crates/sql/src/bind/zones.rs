//! Moments in sessions whose zone is not UTC: where they become what a clock shows, and come of it.

use super::{Binder, Bound};
use crate::cast::Strictness;
use crate::dialect::Dialect;
use crate::error::Result;
use crate::expr::Expr;
use crate::table::Column;
use crate::types::{Base, Type};
use crate::value::Value;

/// True for a column of MySQL's TIMESTAMP, or of PostgreSQL's with a zone: moments, where others have what a clock shows.
fn is_stamp(column: &Column) -> bool {
    let is_declared = |declared: &String| declared.get(..9).is_some_and(|word| word.eq_ignore_ascii_case("timestamp"));
    column.ty.base == Base::TimestampTz
        || !column.is_declared_in_postgres && column.raw_declared.as_ref().is_some_and(is_declared)
}

impl Binder<'_> {
    fn is_zoned_in(&self, dialect: Dialect) -> bool {
        self.is_zoned && self.dialect == dialect
    }

    /// A moment with a zone as what a clock shows here, or the other way round. Err: as it is, for whoever casts all others.
    pub(super) fn cast_zoned(&self, bound: Bound, to: Type) -> Result<std::result::Result<Bound, Bound>> {
        if !self.is_zoned_in(Dialect::Postgres) {
            return Ok(Err(bound));
        }
        match (bound.ty.base, to.base) {
            (Base::TimestampTz, Base::Timestamp) => self.call("clock_here", vec![bound]).map(Ok),
            (Base::TimestampTz, Base::Date | Base::Time) => self.call("clock_here", vec![bound]).map(Err),
            (Base::Timestamp | Base::Date, Base::TimestampTz) => self.call("moment_here", vec![bound]).map(Ok),
            (Base::Text | Base::Unknown | Base::Any, Base::TimestampTz) => {
                match &bound.expr {
                    Expr::Const(Value::Text(text)) => {
                        // One that is none is refused now.
                        crate::parse_value(Dialect::Postgres, text, to)?;
                        if crate::zones::says_zone(text) {
                            return Ok(Err(bound));
                        }
                    }
                    Expr::Const(_) => return Ok(Err(bound)),
                    _ => {}
                }
                let open = Bound::new(bound.expr, Type::of(Base::Any));
                self.call("moment_of_text", vec![open]).map(Ok)
            }
            _ => Ok(Err(bound)),
        }
    }

    /// What a clock shows here at a moment with a zone; others as they are.
    pub(super) fn shown_here(&self, bound: Bound) -> Result<Bound> {
        match self.is_zoned_in(Dialect::Postgres) && bound.ty.base == Base::TimestampTz {
            true => self.call("clock_here", vec![bound]),
            false => Ok(bound),
        }
    }

    /// What a function made of what a clock shows here, as the moment that it is.
    pub(super) fn moment_here(&self, found: Bound) -> Result<Bound> {
        let found = Bound { ty: Type::of(Base::Timestamp), ..found };
        self.cast_to(found, Type::of(Base::TimestampTz), Strictness::Explicit)
            .map(|found| Bound { ty: Type::of(Base::TimestampTz), ..found })
    }

    /// Two moments that are compared: beside one with a zone the other one is one.
    pub(super) fn zoned_alike(&self, a: Bound, b: Bound) -> Result<(Bound, Bound)> {
        let to = Type::of(Base::TimestampTz);
        match (a.ty.base, b.ty.base) {
            _ if !self.is_zoned_in(Dialect::Postgres) => Ok((a, b)),
            (Base::TimestampTz, Base::TimestampTz) => Ok((a, b)),
            (Base::TimestampTz, _) => Ok((a, self.cast_to(b, to, Strictness::Explicit)?)),
            (_, Base::TimestampTz) => Ok((self.cast_to(a, to, Strictness::Explicit)?, b)),
            _ => Ok((a, b)),
        }
    }

    /// EXTRACT of a moment with a zone: which function it is, and of what.
    pub(super) fn part_here(&self, unit: &Bound, value: Bound) -> Result<(&'static str, Bound)> {
        let unit = match &unit.expr {
            Expr::Const(Value::Text(unit)) => unit.to_ascii_lowercase(),
            _ => String::new(),
        };
        let is_zoned = self.is_zoned_in(Dialect::Postgres) && value.ty.base == Base::TimestampTz;
        Ok(match (self.dialect, value.ty.base) {
            (Dialect::Postgres, Base::Time) => ("time_part", value),
            (Dialect::Postgres, Base::TimeTz) => ("zoned_time_part", value),
            (Dialect::Postgres, Base::Interval) => ("extract_part", value),
            (Dialect::Postgres, base) if unit == "julian" && base != Base::Date => {
                ("julian_part", self.shown_here(value)?)
            }
            (Dialect::Postgres, Base::Timestamp) if unit.starts_with("timezone") => ("unzoned_part", value),
            (Dialect::Postgres, _) if is_zoned && unit.starts_with("timezone") => ("zone_part", value),
            (Dialect::Postgres, _) if is_zoned && unit == "epoch" => ("extract_part", value),
            (Dialect::Postgres, _) => ("extract_part", self.shown_here(value)?),
            _ => ("date_part", value),
        })
    }

    /// A column of MySQL's TIMESTAMP as a clock shows it here.
    pub(super) fn read_stamp(&self, column: &Column, bound: Bound) -> Bound {
        if !self.is_zoned_in(Dialect::Mysql) || !is_stamp(column) {
            return bound;
        }
        match crate::zones::find(self.dialect, "clock_here") {
            Some(function) => Bound { expr: Expr::Call(function, vec![bound.expr]), ..bound },
            None => bound,
        }
    }

    /// What a clock shows here, on its way into such a column.
    pub(super) fn write_stamp(&self, column: &Column, value: Expr) -> Expr {
        let is_null = matches!(value, Expr::Const(Value::Null));
        if !self.is_zoned_in(Dialect::Mysql) || !is_stamp(column) || is_null {
            return value;
        }
        match crate::zones::find(self.dialect, "moment_here") {
            // A column that goes into another one stays what it is.
            Some(_) if is_clock_here(&value) => match value {
                Expr::Call(_, mut arguments) => arguments.pop().unwrap_or(Expr::Const(Value::Null)),
                value => value,
            },
            Some(function) => Expr::Call(function, vec![value]),
            None => value,
        }
    }

    /// Two sides of a comparison: a column of TIMESTAMP stays one, so that an index finds it, and the other side becomes a moment.
    pub(super) fn compared_stamps(&self, a: Expr, b: Expr) -> (Expr, Expr) {
        let Some(function) =
            crate::zones::find(self.dialect, "moment_here").filter(|_| self.is_zoned_in(Dialect::Mysql))
        else {
            return (a, b);
        };
        let inner = |expr: Expr| match expr {
            Expr::Call(_, mut arguments) => arguments.pop().unwrap_or(Expr::Const(Value::Null)),
            other => other,
        };
        match (is_clock_here(&a), is_clock_here(&b)) {
            (true, true) => (inner(a), inner(b)),
            (true, false) => (inner(a), Expr::Call(function, vec![b])),
            (false, true) => (Expr::Call(function, vec![a]), inner(b)),
            (false, false) => (a, b),
        }
    }
}

fn is_clock_here(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(function, _) if function.name == "clock_here")
}
