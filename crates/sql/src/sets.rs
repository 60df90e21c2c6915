//! Functions that give rows: the elements of an array, the members of a document, a series.
//!
//! Several go side by side, row by row; those that have no more give nulls until the last one has ended.

use crate::array::{elements, functions::flat};
use crate::error::{Condition, Error, Result};
use crate::expr::{Expr, Slot};
use crate::json::{Json, path};
use crate::moments;
use crate::run::{Flow, Run, Sink};
use crate::value::Value;
use std::rc::Rc;

/// A call of such a function.
pub(crate) struct SetCall {
    pub(crate) function: SetFunction,
    pub(crate) arguments: Vec<Expr>,
    /// Where the columns of its rows go.
    pub(crate) slots: Vec<Slot>,
}

/// Which function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetFunction {
    Unnest,
    Series,
    /// The first one is 0 for vectors of the catalog, and 1 for arrays.
    Subscripts {
        first: i64,
    },
    JsonElements {
        as_text: bool,
    },
    JsonMembers {
        as_text: bool,
    },
    JsonKeys,
    JsonPath,
    TextParts,
    RegexParts,
    RegexMatches,
    /// Its argument: who stands above a table that is no part of another one.
    Itself,
    /// Options as `name=value`.
    Options,
}

/// The rows of a call that are left.
type Rows = Box<dyn Iterator<Item = Vec<Value>>>;

impl SetCall {
    fn rows(&self, run: &mut Run<'_>) -> Result<Rows> {
        let mut a = Vec::with_capacity(self.arguments.len());
        for argument in &self.arguments {
            a.push(argument.eval(run)?);
        }
        let none = || -> Result<Rows> { Ok(Box::new(std::iter::empty())) };
        let is_strict = !matches!(self.function, SetFunction::TextParts);
        if is_strict && a.iter().any(Value::is_null) {
            return none();
        }
        let one = |value: Value| vec![value];
        let plain = |json: &Json, as_text: bool| match as_text {
            true => json.plain().map_or(Value::Null, Value::text),
            false => Value::text(json.to_string()),
        };
        Ok(match self.function {
            SetFunction::Unnest => Box::new(flat(&a[0]).into_iter().map(one)),
            SetFunction::Subscripts { first } => {
                let count = elements(&a[0]).len() as i64;
                Box::new((first..first + count).map(|number| vec![Value::Int(number)]))
            }
            SetFunction::Series => series(&a)?,
            SetFunction::Options => {
                let parts = |option: Value| {
                    let text = option.as_text().unwrap_or_default();
                    let (name, value) = text.split_once('=').unwrap_or((text, ""));
                    vec![Value::text(name), Value::text(value)]
                };
                Box::new(elements(&a[0]).into_iter().map(parts))
            }
            SetFunction::Itself => Box::new(a.into_iter().take(1).map(one)),
            SetFunction::JsonElements { as_text } => match document(&a[0])? {
                Json::Array(elements) => Box::new(elements.into_iter().map(move |json| vec![plain(&json, as_text)])),
                Json::Object(_) => return Err(refused("cannot extract elements from an object")),
                _ => return Err(refused("cannot extract elements from a scalar")),
            },
            SetFunction::JsonMembers { as_text } => match document(&a[0])? {
                Json::Object(members) => Box::new(
                    members.into_iter().map(move |(name, json)| vec![Value::text(name), plain(&json, as_text)]),
                ),
                _ => return Err(refused("cannot call json_each on a non-object")),
            },
            SetFunction::JsonKeys => match document(&a[0])? {
                Json::Object(members) => Box::new(members.into_iter().map(|(name, _)| vec![Value::text(name)])),
                Json::Array(_) => return Err(refused("cannot call json_object_keys on an array")),
                _ => return Err(refused("cannot call json_object_keys on a scalar")),
            },
            SetFunction::JsonPath => {
                let wanted = path::Path::parse(a[1].as_text().unwrap_or_default())?;
                let variables = a.get(2).map(document).transpose()?;
                let found = wanted.find(run, &document(&a[0])?, variables.as_ref())?;
                Box::new(found.into_iter().map(|json| vec![Value::text(json.to_string())]))
            }
            SetFunction::TextParts => {
                if a[0].is_null() {
                    return none();
                }
                let parts = crate::array::functions::parts_of(&a)?;
                Box::new(parts.into_iter().map(one))
            }
            SetFunction::RegexParts => Box::new(crate::regexes::parts(run, &a)?.into_iter().map(one)),
            SetFunction::RegexMatches => {
                let found = crate::regexes::all_matches(run, &a)?;
                Box::new(found.into_iter().map(one))
            }
        })
    }
}

fn refused(what: &str) -> Error {
    Error::new(Condition::InvalidArgument, what)
}

/// A value as a document. Errors: it is none.
pub(crate) fn document(value: &Value) -> Result<Json> {
    let text = value.as_text().unwrap_or("null");
    Json::parse_or(text, || Error::new(Condition::InvalidText, "invalid input syntax for type json"))
}

/// From one value to another, in steps: whole numbers, decimals, moments.
fn series(a: &[Value]) -> Result<Rows> {
    let no_step = || Error::new(Condition::InvalidArgument, "step size cannot equal zero");
    if let (Value::Datetime(from), Value::Datetime(to), Some(Value::Interval(step))) = (&a[0], &a[1], a.get(2)) {
        let (to, step) = (**to, **step);
        let next = moments::moved(from, &step, 1);
        let after = |a: &tuple::datetime::Datetime, b: &tuple::datetime::Datetime| {
            (a.seconds, a.nanoseconds).cmp(&(b.seconds, b.nanoseconds))
        };
        let is_up = match next.map(|next| after(&next, from)) {
            Some(std::cmp::Ordering::Equal) => return Err(no_step()),
            Some(order) => order == std::cmp::Ordering::Greater,
            None => true,
        };
        let is_within = move |moment: &tuple::datetime::Datetime| match is_up {
            true => after(moment, &to) != std::cmp::Ordering::Greater,
            false => after(moment, &to) != std::cmp::Ordering::Less,
        };
        let all = std::iter::successors(Some(**from), move |moment| moments::moved(moment, &step, 1));
        return Ok(Box::new(all.take_while(is_within).map(|moment| vec![Value::Datetime(Rc::new(moment))])));
    }
    let one = Value::Int(1);
    let step = a.get(2).unwrap_or(&one);
    if let (Some(from), Some(to), Some(step)) = (a[0].as_integer(), a[1].as_integer(), step.as_integer()) {
        if step == 0 {
            return Err(no_step());
        }
        let all = std::iter::successors(Some(from), move |number| number.checked_add(step));
        let is_within = move |number: &i128| if step > 0 { *number <= to } else { *number >= to };
        return Ok(Box::new(all.take_while(is_within).map(|number| vec![Value::integer(number).unwrap_or_default()])));
    }
    let (Some(from), Some(to), Some(step)) = (a[0].as_decimal(), a[1].as_decimal(), step.as_decimal()) else {
        return Err(Error::new(Condition::TypeMismatch, "generate_series takes numbers or moments and an interval"));
    };
    if step.parts().0 == 0 {
        return Err(no_step());
    }
    let is_up = !step.is_negative();
    let all = std::iter::successors(Some(from), move |number| number.checked_add(step));
    let is_within = move |number: &tuple::decimal::Decimal| if is_up { number <= &to } else { number >= &to };
    Ok(Box::new(all.take_while(is_within).map(|number| vec![Value::decimal(number)])))
}

/// Hands on the rows of calls side by side, with their number if that has a place.
pub(crate) fn run_sets(
    run: &mut Run<'_>,
    calls: &[SetCall],
    number: Option<Slot>,
    sink: &mut Sink<'_>,
) -> Result<Flow> {
    let mut rows = Vec::with_capacity(calls.len());
    for call in calls {
        rows.push(Some(call.rows(run)?));
    }
    for count in 1.. {
        run.tick()?;
        let mut is_any = false;
        for (call, rows) in calls.iter().zip(&mut rows) {
            match rows.as_mut().and_then(Iterator::next) {
                Some(row) => {
                    is_any = true;
                    run.set_row(&call.slots, &row);
                }
                None => {
                    *rows = None;
                    call.slots.iter().for_each(|slot| run.frame[*slot] = Value::Null);
                }
            }
        }
        if !is_any {
            break;
        }
        if let Some(slot) = number {
            run.frame[slot] = Value::Int(count);
        }
        if sink(run)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::On)
}
