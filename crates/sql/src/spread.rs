//! How numbers are spread and how they go together: what statistical aggregates compute.

use crate::arithmetic::{Arithmetic, Manner, calculate, root_of};
use crate::error::{Condition, Error, Result};
use crate::expr::{CollationOption, order};
use crate::kept::Rows;
use crate::run::Run;
use crate::text::parts_of;
use crate::types::{Base, Type};
use crate::value::Value;
use std::cmp::Ordering;
use tuple::datetime::Interval;

/// Which of the numbers that say how pairs go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Regression {
    Correlation,
    CovarianceOfAll,
    CovarianceOfSample,
    AverageX,
    AverageY,
    Count,
    Intercept,
    Fit,
    Slope,
    SpreadX,
    SpreadXY,
    SpreadY,
}

impl Regression {
    /// The one of a name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "corr" => Regression::Correlation,
            "covar_pop" => Regression::CovarianceOfAll,
            "covar_samp" => Regression::CovarianceOfSample,
            "regr_avgx" => Regression::AverageX,
            "regr_avgy" => Regression::AverageY,
            "regr_count" => Regression::Count,
            "regr_intercept" => Regression::Intercept,
            "regr_r2" => Regression::Fit,
            "regr_slope" => Regression::Slope,
            "regr_sxx" => Regression::SpreadX,
            "regr_sxy" => Regression::SpreadXY,
            "regr_syy" => Regression::SpreadY,
            _ => return None,
        })
    }
}

/// Pairs of numbers: how many, their means, and the sums of what they are away from them, squared and multiplied.
///
/// Youngs' and Cramer's way, which PostgreSQL has too: https://doi.org/10.1080/00401706.1971.10488826
#[derive(Clone, Copy, Default)]
pub(crate) struct Pairs {
    count: f64,
    sum_x: f64,
    sum_y: f64,
    pub(crate) spread_x: f64,
    spread_y: f64,
    spread_xy: f64,
}

impl Pairs {
    /// With one more.
    pub(crate) fn add(&mut self, x: f64, y: f64) {
        self.count += 1.0;
        self.sum_x += x;
        self.sum_y += y;
        if self.count > 1.0 {
            let (away_x, away_y) = (x * self.count - self.sum_x, y * self.count - self.sum_y);
            let scale = 1.0 / (self.count * (self.count - 1.0));
            self.spread_x += away_x * away_x * scale;
            self.spread_y += away_y * away_y * scale;
            self.spread_xy += away_x * away_y * scale;
        }
    }

    /// What they say; null where they are too few.
    pub(crate) fn value(&self, which: Regression) -> Value {
        let Pairs { count, sum_x, sum_y, spread_x, spread_y, spread_xy } = *self;
        if which == Regression::Count {
            return Value::Int(count as i64);
        }
        let is_known = match which {
            Regression::CovarianceOfSample => count > 1.0,
            Regression::Correlation => count > 0.0 && spread_x != 0.0 && spread_y != 0.0,
            Regression::Intercept | Regression::Fit | Regression::Slope => count > 0.0 && spread_x != 0.0,
            _ => count > 0.0,
        };
        if !is_known {
            return Value::Null;
        }
        Value::Double(match which {
            Regression::Correlation => spread_xy / (spread_x * spread_y).sqrt(),
            Regression::CovarianceOfAll => spread_xy / count,
            Regression::CovarianceOfSample => spread_xy / (count - 1.0),
            Regression::AverageX => sum_x / count,
            Regression::AverageY => sum_y / count,
            Regression::Intercept => (sum_y - sum_x * spread_xy / spread_x) / count,
            Regression::Fit if spread_y == 0.0 => 1.0,
            Regression::Fit => spread_xy * spread_xy / (spread_x * spread_y),
            Regression::Slope => spread_xy / spread_x,
            Regression::SpreadX => spread_x,
            Regression::SpreadXY => spread_xy,
            Regression::SpreadY => spread_y,
            Regression::Count => count,
        })
    }
}

const DECIMAL: Type = Type::of(Base::Decimal);
const MANNER: Manner = Manner { zero_gives_null: false, short_quotients: false };

/// The variance of exact numbers, or its root, of their sum and that of their squares. Errors: `NumericOutOfRange`.
pub(crate) fn exact(sum: &Value, squares: &Value, (count, divisor): (i64, i64), squared: bool) -> Result<Value> {
    let of = |operation, a: &Value, b: &Value| calculate(operation, DECIMAL, MANNER, a, b);
    let count = Value::Int(count);
    let above =
        of(Arithmetic::Subtract, &of(Arithmetic::Multiply, &count, squares)?, &of(Arithmetic::Multiply, sum, sum)?)?;
    // What the last digits of squares lose is nothing.
    let whole = of(Arithmetic::Multiply, &count, squares)?.as_double().unwrap_or(0.0);
    if above.as_double().is_some_and(|above| above <= whole.abs() * 1e-34) {
        return Ok(Value::decimal(tuple::decimal::Decimal::from(0i64)));
    }
    let below = of(Arithmetic::Multiply, &count, &Value::Int(divisor))?;
    let variance = of(Arithmetic::Divide, &above, &below)?;
    match (squared, &variance) {
        (false, Value::Decimal(variance)) => root_of(**variance)
            .map(Value::decimal)
            .ok_or_else(|| Error::new(Condition::NumericOutOfRange, "decimal out of range")),
        _ => Ok(variance),
    }
}

/// The value that is there most often; the first of them, where several are.
///
/// May wait. Errors: as [`Run::tick`].
pub(crate) fn mode(run: &mut Run<'_>, collation: &CollationOption, values: &Rows) -> Result<Value> {
    let (mut best, mut most, mut start) = (0, 0, 0);
    for at in 0..values.len() {
        run.tick()?;
        if order(collation, &values.row(start)[0], &values.row(at)[0]) != Ordering::Equal {
            start = at;
        }
        if at + 1 - start > most {
            (best, most) = (start, at + 1 - start);
        }
    }
    Ok(if most == 0 { Value::Null } else { values.row(best)[0].clone() })
}

/// The value at a part of the values, which are in order; at each of several, if the parts are an array. Errors: a part that is none.
pub(crate) fn percentiles(values: &Rows, parts: &Value, is_continuous: bool) -> Result<Value> {
    if values.len() == 0 {
        return Ok(Value::Null);
    }
    if let Value::Document(_) = parts {
        let mut found = Vec::new();
        for part in crate::array::elements(parts) {
            found.push(percentile(values, &part, is_continuous)?);
        }
        let mut out = Vec::new();
        crate::scan::encode_row(&found, &mut out);
        return Ok(Value::Document(out.into()));
    }
    percentile(values, parts, is_continuous)
}

fn percentile(values: &Rows, part: &Value, is_continuous: bool) -> Result<Value> {
    if part.is_null() {
        return Ok(Value::Null);
    }
    let part = part
        .as_double()
        .filter(|part| (0.0..=1.0).contains(part))
        .ok_or_else(|| Error::new(Condition::NumericOutOfRange, "percentile value is not between 0 and 1"))?;
    let count = values.len();
    if !is_continuous {
        let at = ((part * count as f64).ceil() as usize).clamp(1, count) - 1;
        return Ok(values.row(at)[0].clone());
    }
    let place = part * (count - 1) as f64;
    let (low, high) = (place.floor() as usize, (place.ceil() as usize).min(count - 1));
    let share = place - low as f64;
    match (&values.row(low)[0], &values.row(high)[0]) {
        (low, _) if share == 0.0 && low.as_double().is_some() => Ok(Value::Double(low.as_double().unwrap_or(0.0))),
        (low @ Value::Interval(_), _) if share == 0.0 => Ok(low.clone()),
        (Value::Interval(a), Value::Interval(b)) => {
            let ((months, days, micros), (to_months, to_days, to_micros)) = (parts_of(a), parts_of(b));
            let between = (to_months - months, to_days - days, to_micros - micros);
            match crate::postgres_functions::scaled(between, |part| part * share)? {
                Value::Interval(more) => sum_of(a, &more),
                other => Ok(other),
            }
        }
        (low, high) => match (low.as_double(), high.as_double()) {
            (Some(low), Some(high)) => Ok(Value::Double(low + share * (high - low))),
            _ => Err(Error::new(Condition::UndefinedFunction, "percentile_cont takes numbers and intervals")),
        },
    }
}

/// Two intervals together. Errors: `DatetimeOverflow`.
pub(crate) fn sum_of(a: &Interval, b: &Interval) -> Result<Value> {
    let ((months, days, micros), (more_months, more_days, more_micros)) = (parts_of(a), parts_of(b));
    crate::postgres_functions::interval_of(
        months.saturating_add(more_months),
        days.saturating_add(more_days),
        i128::from(micros) + i128::from(more_micros),
    )
}

/// One of so many equal parts of an interval: what is left of months goes to days, and so on. Errors: `NumericOutOfRange`.
pub(crate) fn part_of(interval: &Interval, count: i64) -> Result<Value> {
    crate::postgres_functions::scaled(parts_of(interval), |part| part / count.max(1) as f64)
}
