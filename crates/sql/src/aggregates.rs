//! Aggregates: one value of many rows.

use crate::arithmetic::{Arithmetic, Manner, calculate, rounded_to};
use crate::cast::display;
use crate::error::{Condition, Error, Result};
use crate::expr::{CollationOption, Expr, Slot, order};
use crate::run::Run;
use crate::types::{Base, Type};
use crate::value::{HashedValue, Value};
use hashbrown::HashSet;
use std::cmp::Ordering;

/// Which aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aggregate {
    /// Rows.
    CountRows,
    /// Values that are not null.
    Count,
    Sum,
    /// A sum that is 0.0 of no rows: SQLite's.
    Total,
    Average,
    Least,
    Greatest,
    /// Texts, one behind the other with something between.
    Concatenate,
    And,
    Or,
    BitAnd,
    BitOr,
    /// The first value: of columns that are the same in the whole group.
    Any,
    /// Spread of numbers: of a sample or of all, squared or not.
    Variance {
        of_sample: bool,
        squared: bool,
    },
}

/// An aggregate in a query.
pub(crate) struct AggregateCall {
    pub(crate) aggregate: Aggregate,
    pub(crate) arguments: Vec<Expr>,
    pub(crate) result: Type,
    pub(crate) is_distinct: bool,
    pub(crate) filter: Option<Expr>,
    /// In which order rows are taken, and whether that is descending.
    pub(crate) order: Vec<(Expr, bool, bool)>,
    pub(crate) collation: CollationOption,
    /// Where the result goes.
    pub(crate) slot: Slot,
}

/// The function of a name and a number of arguments; none of them: of `*`.
pub(crate) fn find(name: &str, is_star: bool) -> Option<Aggregate> {
    Some(match name {
        "count" if is_star => Aggregate::CountRows,
        "count" => Aggregate::Count,
        "sum" => Aggregate::Sum,
        "total" => Aggregate::Total,
        "avg" => Aggregate::Average,
        "min" => Aggregate::Least,
        "max" => Aggregate::Greatest,
        "group_concat" | "string_agg" => Aggregate::Concatenate,
        "bool_and" | "every" => Aggregate::And,
        "bool_or" => Aggregate::Or,
        "bit_and" => Aggregate::BitAnd,
        "bit_or" => Aggregate::BitOr,
        "any_value" => Aggregate::Any,
        "var_pop" => Aggregate::Variance { of_sample: false, squared: true },
        "variance" | "var_samp" => Aggregate::Variance { of_sample: true, squared: true },
        "stddev_pop" => Aggregate::Variance { of_sample: false, squared: false },
        "stddev" | "stddev_samp" => Aggregate::Variance { of_sample: true, squared: false },
        _ => return None,
    })
}

/// What an aggregate of one group has come to.
pub(crate) struct State {
    seen: Option<HashSet<HashedValue>>,
    count: i64,
    value: Value,
    text: String,
    mean: f64,
    spread: f64,
    /// Rows that wait for their order: by what they are ordered, then the arguments.
    waiting: Vec<(Vec<Value>, Vec<Value>)>,
}

const MANNER: Manner = Manner { zero_gives_null: false, short_quotients: false };

impl AggregateCall {
    /// Of no rows.
    pub(crate) fn begin(&self) -> State {
        State {
            seen: self.is_distinct.then(HashSet::new),
            count: 0,
            value: Value::Null,
            text: String::new(),
            mean: 0.0,
            spread: 0.0,
            waiting: Vec::new(),
        }
    }

    /// With the row that the frame holds. Errors: those of its expressions and of the sum.
    pub(crate) fn add(&self, run: &mut Run<'_>, state: &mut State) -> Result<()> {
        if let Some(filter) = &self.filter
            && !filter.is_true(run)?
        {
            return Ok(());
        }
        if self.aggregate == Aggregate::CountRows {
            state.count += 1;
            return Ok(());
        }
        if let [argument] = &self.arguments[..]
            && state.seen.is_none()
            && self.order.is_empty()
        {
            // Without a copy where the usual form allows.
            if let Expr::Slot(slot) = argument
                && let Value::Int(number) = run.frame[*slot]
                && self.add_integer(state, number)
            {
                return Ok(());
            }
            let value = argument.eval(run)?;
            return match value.is_null() && self.aggregate != Aggregate::Any {
                true => Ok(()),
                false => self.add_values(run, state, &[value]),
            };
        }
        let mut arguments = Vec::with_capacity(self.arguments.len());
        for argument in &self.arguments {
            arguments.push(argument.eval(run)?);
        }
        if arguments.iter().any(Value::is_null) && self.aggregate != Aggregate::Any {
            return Ok(());
        }
        if let Some(seen) = &mut state.seen {
            let value = match &self.collation {
                Some(collation) => run.canonical(collation, arguments[0].clone())?,
                None => arguments[0].clone(),
            };
            run.take(value.weight() + 32)?;
            if !seen.insert(HashedValue(value)) {
                return Ok(());
            }
        }
        if self.order.is_empty() {
            return self.add_values(run, state, &arguments);
        }
        let mut keys = Vec::with_capacity(self.order.len());
        for (expr, ..) in &self.order {
            keys.push(expr.eval(run)?);
        }
        run.take_row(&keys)?;
        run.take_row(&arguments)?;
        state.waiting.push((keys, arguments));
        Ok(())
    }

    /// Adds a whole number, if that is simple.
    #[inline]
    fn add_integer(&self, state: &mut State, number: i64) -> bool {
        let is_whole = matches!(self.result.base, Base::Int8 | Base::Integer | Base::Number);
        match (self.aggregate, &mut state.value) {
            (Aggregate::Count, _) => {}
            (Aggregate::Sum, Value::Int(sum)) if is_whole => match sum.checked_add(number) {
                Some(more) => *sum = more,
                None => return false,
            },
            (Aggregate::Least, Value::Int(least)) => *least = number.min(*least),
            (Aggregate::Greatest, Value::Int(greatest)) => *greatest = number.max(*greatest),
            _ => return false,
        }
        state.count += 1;
        true
    }

    fn add_values(&self, run: &mut Run<'_>, state: &mut State, arguments: &[Value]) -> Result<()> {
        let value = &arguments[0];
        state.count += 1;
        match self.aggregate {
            Aggregate::CountRows | Aggregate::Count => {}
            Aggregate::Sum | Aggregate::Total | Aggregate::Average => {
                state.value = match &state.value {
                    Value::Null if self.sum_type().base == Base::Double => {
                        value.as_double().map_or_else(|| not_a_number(value), |value| Ok(Value::Double(value)))?
                    }
                    Value::Null if value.as_double().is_none() => return not_a_number(value).map(|_| ()),
                    Value::Null => value.clone(),
                    sum => calculate(Arithmetic::Add, self.sum_type(), MANNER, sum, value)?,
                };
            }
            Aggregate::Least | Aggregate::Greatest => {
                let wanted = if self.aggregate == Aggregate::Least { Ordering::Less } else { Ordering::Greater };
                if state.value.is_null() || order(&self.collation, value, &state.value) == wanted {
                    state.value = value.clone();
                }
            }
            Aggregate::Concatenate => {
                if state.count > 1 {
                    let between = arguments.get(1).map_or_else(|| ",".to_string(), |value| display(run.dialect, value));
                    state.text.push_str(&between);
                }
                state.text.push_str(&display(run.dialect, value));
                run.check_length(state.text.len())?;
            }
            Aggregate::And | Aggregate::Or => {
                let is = matches!(value, Value::Bool(true));
                state.value = Value::Bool(match (&state.value, self.aggregate) {
                    (Value::Bool(before), Aggregate::And) => *before && is,
                    (Value::Bool(before), _) => *before || is,
                    _ => is,
                });
            }
            Aggregate::BitAnd | Aggregate::BitOr => {
                let operation =
                    if self.aggregate == Aggregate::BitAnd { Arithmetic::BitAnd } else { Arithmetic::BitOr };
                state.value = match &state.value {
                    Value::Null => value.clone(),
                    before => calculate(operation, self.result, MANNER, before, value)?,
                };
            }
            Aggregate::Any => {
                if state.count == 1 {
                    state.value = value.clone();
                }
            }
            Aggregate::Variance { .. } => {
                // Welford's way: https://doi.org/10.1080/00401706.1962.10490022
                let number = value.as_double().map_or_else(|| not_a_number(value).map(|_| 0.0), Ok)?;
                let away = number - state.mean;
                state.mean += away / state.count as f64;
                state.spread += away * (number - state.mean);
            }
        }
        Ok(())
    }

    fn sum_type(&self) -> Type {
        match (self.aggregate, self.result.base) {
            (Aggregate::Total, _) => Type::of(Base::Double),
            (_, Base::Double) => Type::of(Base::Double),
            (_, Base::Decimal) => Type::of(Base::Decimal),
            (_, base) => Type::of(base),
        }
    }

    /// The value of all rows that were added. Errors: those of the sum.
    pub(crate) fn end(&self, run: &mut Run<'_>, mut state: State) -> Result<Value> {
        if !self.order.is_empty() {
            let mut waiting = std::mem::take(&mut state.waiting);
            waiting.sort_by(|(a, _), (b, _)| self.order_of(a, b));
            for (_, arguments) in waiting {
                self.add_values(run, &mut state, &arguments)?;
            }
        }
        Ok(match self.aggregate {
            Aggregate::CountRows | Aggregate::Count => Value::Int(state.count),
            Aggregate::Total => Value::Double(state.value.as_double().unwrap_or(0.0)),
            Aggregate::Average if state.count > 0 => self.average(&state)?,
            Aggregate::Concatenate if state.count > 0 => Value::text(state.text),
            Aggregate::Concatenate => Value::Null,
            Aggregate::Variance { of_sample, squared } => {
                let count = state.count - i64::from(of_sample);
                if count <= 0 {
                    return Ok(Value::Null);
                }
                let variance = state.spread / count as f64;
                Value::Double(if squared { variance } else { variance.sqrt() })
            }
            _ => state.value,
        })
    }

    fn average(&self, state: &State) -> Result<Value> {
        let result = match self.result.base {
            Base::Number if !matches!(state.value, Value::Double(_) | Value::Decimal(_)) => {
                // As the quotient of the sum: whole numbers give a whole one only if it is exact.
                let (Some(sum), count) = (state.value.as_integer(), i128::from(state.count)) else {
                    return Ok(Value::Null);
                };
                return match sum % count {
                    0 => Ok(Value::integer(sum / count).unwrap_or_default()),
                    _ => Ok(Value::Double(state.value.as_double().unwrap_or(0.0) / state.count as f64)),
                };
            }
            Base::Number => {
                Type::of(if matches!(state.value, Value::Double(_)) { Base::Double } else { Base::Decimal })
            }
            base => Type::of(base),
        };
        let value = calculate(Arithmetic::Divide, result, MANNER, &state.value, &Value::Int(state.count))?;
        match (&value, self.result.scale) {
            (Value::Decimal(value), scale) if scale > 0 => {
                Ok(Value::decimal(rounded_to(**value, scale as i32).unwrap_or(**value)))
            }
            _ => Ok(value),
        }
    }

    fn order_of(&self, a: &[Value], b: &[Value]) -> Ordering {
        for ((_, is_descending, nulls_first), (a, b)) in self.order.iter().zip(a.iter().zip(b)) {
            let ordering = order_with_nulls(&None, *is_descending, *nulls_first, a, b);
            if ordering != Ordering::Equal {
                return ordering;
            }
        }
        Ordering::Equal
    }
}

fn not_a_number(value: &Value) -> Result<Value> {
    let what = format!("Type mismatch: can not convert {} to number", display(crate::Dialect::Tarantool, value));
    Err(Error::new(Condition::TypeMismatch, what))
}

/// The order of two values of ORDER BY.
#[inline]
pub(crate) fn order_with_nulls(
    collation: &CollationOption,
    is_descending: bool,
    nulls_first: bool,
    a: &Value,
    b: &Value,
) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) if nulls_first => Ordering::Less,
        (true, false) => Ordering::Greater,
        (false, true) if nulls_first => Ordering::Greater,
        (false, true) => Ordering::Less,
        (false, false) if is_descending => order(collation, b, a),
        (false, false) => order(collation, a, b),
    }
}
