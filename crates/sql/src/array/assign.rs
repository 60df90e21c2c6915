//! Assignment to elements and slices of arrays: `SET a[3] = ...`, `SET a[1:2] = ...`.

use super::functions::{array, check_elements, flat, lengths};
use crate::error::{Condition, Error, Result};
use crate::run::Run;
use crate::value::Value;

/// Dimensions that an array has at most.
const DIMENSIONS_MAX: usize = 6;

/// Errors: an array has fewer dimensions than that.
pub(crate) fn check_dimensions(wanted: usize) -> Result<()> {
    if wanted <= DIMENSIONS_MAX {
        return Ok(());
    }
    let what = format!("number of array dimensions ({wanted}) exceeds the maximum allowed ({DIMENSIONS_MAX})");
    Err(Error::new(Condition::LimitExceeded, what))
}

fn wrong(what: &str) -> Error {
    Error::new(Condition::SubscriptError, what.to_string())
}

fn other_bounds() -> Error {
    Error::unsupported("arrays whose bounds do not begin at 1")
}

fn int(value: &Value) -> Option<i64> {
    value.as_integer().and_then(|value| i64::try_from(value).ok())
}

/// An array with another value in it. The arguments are the array, the value, whether it is a slice, and the subscripts: of a slice two for each
/// dimension, false for a bound that is left out. Errors: a subscript that is null or out of range; too few elements.
pub(super) fn assigned(run: &Run<'_>, arguments: &[Value]) -> Result<Value> {
    let [whole, value, is_slice, subscripts @ ..] = arguments else { return Ok(Value::Null) };
    let dimensions =
        if matches!(is_slice, Value::Bool(true)) { subscripts.len().div_ceil(2) } else { subscripts.len() };
    check_dimensions(dimensions)?;
    if subscripts.iter().any(Value::is_null) {
        return Err(Error::new(Condition::NullNotAllowed, "array subscript in assignment must not be null"));
    }
    match is_slice {
        Value::Bool(true) => slice(run, whole, value, subscripts),
        _ => element(run, whole, value, subscripts),
    }
}

fn element(run: &Run<'_>, whole: &Value, value: &Value, subscripts: &[Value]) -> Result<Value> {
    let (mut dims, mut values) = (lengths(whole), flat(whole));
    let wanted: Vec<i64> = subscripts.iter().filter_map(int).collect();
    if dims.is_empty() {
        return match wanted.iter().all(|at| *at == 1) {
            true => nested(run, &vec![1; wanted.len()], std::slice::from_ref(value)),
            false => Err(other_bounds()),
        };
    }
    if dims.len() != wanted.len() {
        return Err(wrong("wrong number of array subscripts"));
    }
    if let ([length], [at]) = (dims.as_mut_slice(), wanted.as_slice()) {
        let at = usize::try_from(*at).ok().filter(|at| *at > 0).ok_or_else(other_bounds)?;
        check_elements(at)?;
        *length = at.max(*length);
        values.resize(*length, Value::Null);
        values[at - 1] = value.clone();
        return array(run, &values);
    }
    let mut place = 0;
    for (at, length) in wanted.iter().zip(&dims) {
        let at = usize::try_from(at.saturating_sub(1)).ok().filter(|at| at < length);
        place = place * length + at.ok_or_else(|| wrong("array subscript out of range"))?;
    }
    if let Some(old) = values.get_mut(place) {
        *old = value.clone();
    }
    nested(run, &dims, &values)
}

fn slice(run: &Run<'_>, whole: &Value, source: &Value, subscripts: &[Value]) -> Result<Value> {
    // Nothing that is assigned changes nothing.
    if source.is_null() {
        return Ok(if whole.is_null() { array(run, &[])? } else { whole.clone() });
    }
    let (mut dims, mut values, new) = (lengths(whole), flat(whole), flat(source));
    let given: Vec<(Option<i64>, Option<i64>)> =
        subscripts.chunks(2).map(|pair| (int(&pair[0]), pair.get(1).and_then(int))).collect();
    let too_small = || wrong("source array too small");
    if dims.is_empty() {
        for (lower, upper) in &given {
            let (Some(lower), Some(upper)) = (lower, upper) else {
                let detail =
                    "When assigning to a slice of an empty array value, slice boundaries must be fully specified.";
                return Err(wrong("array slice subscript must provide both boundaries").detail(detail.to_string()));
            };
            let length = usize::try_from(upper.saturating_sub(*lower).saturating_add(1));
            let length = length.map_err(|_| {
                Error::new(Condition::LimitExceeded, "array size exceeds the maximum allowed (134217727)")
            })?;
            if length > 0 && *lower != 1 {
                return Err(other_bounds());
            }
            dims.push(length);
        }
        let count = dims.iter().fold(1usize, |count, length| count.saturating_mul(*length));
        return match count {
            0 => array(run, &[]),
            count => nested(run, &dims, new.get(..count).ok_or_else(too_small)?),
        };
    }
    if dims.len() < given.len() {
        return Err(wrong("wrong number of array subscripts"));
    }
    let is_flat = dims.len() == 1;
    let mut ranges = Vec::with_capacity(dims.len());
    for (at, length) in dims.iter_mut().enumerate() {
        let (lower, upper) = given.get(at).copied().unwrap_or((None, None));
        if let (Some(lower), Some(upper)) = (lower, upper)
            && lower > upper
        {
            return Err(wrong("upper bound cannot be less than lower bound"));
        }
        let (lower, upper) = (lower.unwrap_or(1), upper.unwrap_or(*length as i64));
        if !is_flat && (lower < 1 || upper > *length as i64) {
            return Err(wrong("array subscript out of range"));
        }
        let from = usize::try_from(lower.saturating_sub(1)).map_err(|_| other_bounds())?;
        let to = usize::try_from(upper.max(lower.saturating_sub(1))).map_err(|_| other_bounds())?;
        if to > *length {
            check_elements(to)?;
            *length = to;
        }
        ranges.push(from..to);
    }
    let count = ranges.iter().fold(1usize, |count, range| count.saturating_mul(range.len()));
    if new.len() < count {
        return Err(too_small());
    }
    if is_flat {
        values.resize(dims[0], Value::Null);
    }
    for (number, value) in new.into_iter().take(count).enumerate() {
        // Which element of the slice it is, in each dimension from the last one.
        let (mut rest, mut place, mut size) = (number, 0, 1);
        for (range, length) in ranges.iter().zip(&dims).rev() {
            place += (range.start + rest % range.len()) * size;
            (rest, size) = (rest / range.len(), size * length);
        }
        if let Some(old) = values.get_mut(place) {
            *old = value;
        }
    }
    nested(run, &dims, &values)
}

/// Values as an array of so many dimensions. Errors: as of `array`.
fn nested(run: &Run<'_>, dims: &[usize], values: &[Value]) -> Result<Value> {
    match dims {
        [length, rest @ ..] if !rest.is_empty() && *length > 0 => {
            let rows = values.chunks((values.len() / length).max(1)).map(|part| nested(run, rest, part));
            array(run, &rows.collect::<Result<Vec<Value>>>()?)
        }
        _ => array(run, values),
    }
}
