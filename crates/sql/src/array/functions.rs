//! Functions of arrays. Indexes begin at 1; arrays within arrays have elements of one length.

use super::{ELEMENTS_MAX, elements};
use crate::error::{Condition, Error, Result};
use crate::functions::{Function, Returns};
use crate::run::Run;
use crate::text::display_as;
use crate::types::{Base, Type};
use crate::value::{HashedValue, Value};
use hashbrown::HashSet;
use std::cmp::Ordering;

const INT: Returns = Returns::Type(Base::Int4);
const BOOL: Returns = Returns::Type(Base::Bool);
const TEXT: Returns = Returns::Type(Base::Text);
const ARRAY: Returns = Returns::FirstArray;

fn int(value: &Value) -> i64 {
    value.as_integer().and_then(|value| i64::try_from(value).ok()).unwrap_or(0)
}

/// Errors: `LimitExceeded` if an array has so many elements.
pub(crate) fn check_elements(count: usize) -> Result<()> {
    if count <= ELEMENTS_MAX {
        return Ok(());
    }
    Err(Error::new(Condition::LimitExceeded, format!("an array has at most {ELEMENTS_MAX} elements")))
}

/// An array of values. Errors: `LimitExceeded`.
pub(crate) fn array(run: &Run<'_>, values: &[Value]) -> Result<Value> {
    check_elements(values.len())?;
    run.check_length(values.iter().fold(0, |sum: usize, value| sum.saturating_add(value.weight())))?;
    let mut out = Vec::new();
    crate::scan::encode_row(values, &mut out);
    run.check_length(out.len())?;
    Ok(Value::Document(out.into()))
}

/// How many elements an array has in each of its dimensions.
pub(super) fn lengths(array: &Value) -> Vec<usize> {
    let mut lengths = Vec::new();
    let mut here = elements(array);
    while !here.is_empty() && lengths.len() < 6 {
        lengths.push(here.len());
        here = match &here[0] {
            first @ Value::Document(_) => elements(first),
            _ => Vec::new(),
        };
    }
    lengths
}

fn same(a: &Value, b: &Value) -> bool {
    a.order(b) == Ordering::Equal
}

/// All elements, those of arrays within it among them.
pub(crate) fn flat(array: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    for element in elements(array) {
        match &element {
            Value::Document(_) => all.extend(flat(&element)),
            _ => all.push(element),
        }
    }
    all
}

/// The elements that the second array has and the first lacks, if any; nulls equal nothing.
fn contains(whole: &Value, part: &Value) -> bool {
    let known: HashSet<HashedValue> = flat(whole).into_iter().filter(|v| !v.is_null()).map(HashedValue).collect();
    flat(part).into_iter().all(|value| !value.is_null() && known.contains(&HashedValue(value)))
}

fn place(number: i64, count: usize) -> Option<usize> {
    usize::try_from(number - 1).ok().filter(|at| *at < count)
}

crate::functions::alike! {
    is_volatile: false;
    "make_array" (0, usize::MAX) ARRAY, false => |run, a| array(run, a);
    "array_element" (2, usize::MAX) Returns::Element, true => |_, a| {
        let mut here = a[0].clone();
        for number in &a[1..] {
            if !matches!(here, Value::Document(_)) {
                return Ok(Value::Null);
            }
            let all = elements(&here);
            here = match place(int(number), all.len()) {
                Some(at) => all[at].clone(),
                None => return Ok(Value::Null),
            };
        }
        // A part of an array of arrays is none of its elements.
        Ok(if matches!(here, Value::Document(_)) { Value::Null } else { here })
    };
    "array_slice" (3, usize::MAX) ARRAY, false => |run, a| {
        if a[0].is_null() {
            return Ok(Value::Null);
        }
        fn slice(run: &Run<'_>, value: &Value, bounds: &[Value]) -> Result<Value> {
            let [from, to, rest @ ..] = bounds else { return Ok(value.clone()) };
            let all = elements(value);
            let from = if from.is_null() { 1 } else { int(from).max(1) };
            let to = if to.is_null() { all.len() as i64 } else { int(to).min(all.len() as i64) };
            let mut kept = Vec::new();
            for number in from..=to {
                if let Some(at) = place(number, all.len()) {
                    kept.push(slice(run, &all[at], rest)?);
                }
            }
            array(run, &kept)
        }
        slice(run, &a[0], &a[1..])
    };
    "array_assigned" (4, usize::MAX) ARRAY, false => |run, a| super::assign::assigned(run, a);
    "array_length" (2, 2) INT, true => |_, a| {
        let length = place(int(&a[1]), 6).and_then(|at| lengths(&a[0]).get(at).copied());
        Ok(length.map_or(Value::Null, |length| Value::Int(length as i64)))
    };
    "array_upper" (2, 2) INT, true => |_, a| {
        let length = place(int(&a[1]), 6).and_then(|at| lengths(&a[0]).get(at).copied());
        Ok(length.map_or(Value::Null, |length| Value::Int(length as i64)))
    };
    "array_lower" (2, 2) INT, true => |_, a| {
        let length = place(int(&a[1]), 6).and_then(|at| lengths(&a[0]).get(at).copied());
        Ok(length.map_or(Value::Null, |_| Value::Int(1)))
    };
    "array_ndims" (1, 1) INT, true => |_, a| Ok(match lengths(&a[0]).len() {
        0 => Value::Null,
        count => Value::Int(count as i64),
    });
    "array_dims" (1, 1) TEXT, true => |_, a| Ok(match lengths(&a[0]) {
        lengths if lengths.is_empty() => Value::Null,
        lengths => Value::text(lengths.iter().map(|length| format!("[1:{length}]")).collect::<String>()),
    });
    "cardinality" (1, 1) INT, true => |_, a| Ok(Value::Int(flat(&a[0]).len() as i64));
    "array_append" (2, 2) ARRAY, false => |run, a| {
        let mut all = elements(&a[0]);
        all.push(a[1].clone());
        array(run, &all)
    };
    "array_prepend" (2, 2) ARRAY, false => |run, a| {
        let mut all = elements(&a[1]);
        all.insert(0, a[0].clone());
        array(run, &all)
    };
    "array_cat" (2, 2) ARRAY, false => |run, a| match (&a[0], &a[1]) {
        (Value::Null, other) | (other, Value::Null) => Ok(other.clone()),
        (left, right) => {
            let (deep, other) = (lengths(left).len(), lengths(right).len());
            let (mut all, mut behind) = (elements(left), elements(right));
            match (deep, other) {
                // A row more for an array of arrays.
                (a, b) if a == b + 1 && b > 0 => behind = vec![right.clone()],
                (a, b) if b == a + 1 && a > 0 => all = vec![left.clone()],
                _ => {}
            }
            all.append(&mut behind);
            array(run, &all)
        }
    };
    "array_remove" (2, 2) ARRAY, false => |run, a| match a[0].is_null() {
        true => Ok(Value::Null),
        false => {
            let kept: Vec<Value> = elements(&a[0]).into_iter().filter(|value| !same(value, &a[1])).collect();
            array(run, &kept)
        }
    };
    "array_replace" (3, 3) ARRAY, false => |run, a| match a[0].is_null() {
        true => Ok(Value::Null),
        false => {
            let changed = elements(&a[0]).into_iter().map(|value| if same(&value, &a[1]) { a[2].clone() } else { value });
            array(run, &changed.collect::<Vec<_>>())
        }
    };
    "array_position" (2, 3) INT, false => |_, a| {
        if a[0].is_null() {
            return Ok(Value::Null);
        }
        let from = usize::try_from(a.get(2).map_or(1, int).max(1) - 1).unwrap_or(usize::MAX);
        let found = elements(&a[0]).iter().enumerate().skip(from).find(|(_, value)| same(value, &a[1])).map(|(at, _)| at);
        Ok(found.map_or(Value::Null, |at| Value::Int(at as i64 + 1)))
    };
    "array_positions" (2, 2) Returns::ArrayOf(Base::Int4), false => |run, a| {
        if a[0].is_null() {
            return Ok(Value::Null);
        }
        let all = elements(&a[0]);
        let found = all.iter().enumerate().filter(|(_, value)| same(value, &a[1]));
        let found: Vec<Value> = found.map(|(at, _)| Value::Int(at as i64 + 1)).collect();
        array(run, &found)
    };
    "array_contains" (2, 2) BOOL, true => |_, a| Ok(Value::Bool(contains(&a[0], &a[1])));
    "array_overlaps" (2, 2) BOOL, true => |_, a| {
        let known: HashSet<HashedValue> = flat(&a[0]).into_iter().filter(|v| !v.is_null()).map(HashedValue).collect();
        Ok(Value::Bool(flat(&a[1]).into_iter().any(|value| known.contains(&HashedValue(value)))))
    };
    "array_fill" (2, 2) ARRAY, false => |run, a| {
        let mut whole: Option<Value> = None;
        let mut product = 1usize;
        for length in elements(&a[1]).iter().rev() {
            let length = usize::try_from(int(length)).unwrap_or(0);
            product = product.saturating_mul(length);
            if product > ELEMENTS_MAX {
                return Err(Error::new(Condition::LimitExceeded, format!("an array has at most {ELEMENTS_MAX} elements")));
            }
            let one = whole.take().unwrap_or_else(|| a[0].clone());
            whole = Some(array(run, &vec![one; length])?);
        }
        match whole {
            Some(whole) => Ok(whole),
            None => array(run, &[]),
        }
    };
    "trim_array" (2, 2) ARRAY, true => |run, a| {
        let all = elements(&a[0]);
        match usize::try_from(int(&a[1])).ok().filter(|count| *count <= all.len()) {
            Some(count) => array(run, &all[..all.len() - count]),
            None => Err(Error::new(Condition::SubscriptError, format!("number of elements to trim must be between 0 and {}", all.len()))),
        }
    };
    "array_text" (3, 4) TEXT, false => |run, a| {
        // The array, what stands between, the type of the array, what stands for null.
        if a[0].is_null() || a[1].is_null() {
            return Ok(Value::Null);
        }
        let ty = Type::of_code(int(&a[2])).element();
        let null = a.get(3).filter(|text| !text.is_null()).and_then(Value::as_text);
        let mut text = String::new();
        let mut is_first = true;
        for element in flat(&a[0]) {
            let shown = match (&element, null) {
                (Value::Null, None) => continue,
                (Value::Null, Some(null)) => null.to_string(),
                (Value::Bool(value), _) => (if *value { "t" } else { "f" }).to_string(),
                (element, _) => display_as(run.dialect, element, ty),
            };
            if !is_first {
                text.push_str(a[1].as_text().unwrap_or_default());
            }
            is_first = false;
            text.push_str(&shown);
            run.check_length(text.len())?;
        }
        Ok(Value::text(text))
    };
    "string_to_array" (2, 3) Returns::ArrayOf(Base::Text), false => |run, a| match a[0].is_null() {
        true => Ok(Value::Null),
        false => array(run, &parts_of(a)?),
    };
    "regexp_split_to_array" (2, 3) Returns::ArrayOf(Base::Text), true => |run, a| {
        let parts = crate::regexes::parts(run, a)?;
        array(run, &parts)
    };
    "regexp_match" (2, 3) Returns::ArrayOf(Base::Text), true => |run, a| crate::regexes::first_match(run, a);
    "regexp_replace" (3, 4) TEXT, true => |run, a| crate::regexes::replace(run, a);
    "regexp_like" (2, 2) BOOL, true => |run, a| crate::regexes::is_found(run, a, "");
    "regexp_like_folded" (2, 2) BOOL, true => |run, a| crate::regexes::is_found(run, a, "i");
    "regexp_count" (2, 2) INT, true => |run, a| crate::regexes::count(run, a);
    "regexp_substr" (2, 2) TEXT, true => |run, a| crate::regexes::part(run, a);
}

/// The parts of a text between another one, and which of them stand for null. Errors: more than an array has.
pub(crate) fn parts_of(a: &[Value]) -> Result<Vec<Value>> {
    let Some(text) = a[0].as_text() else { return Ok(Vec::new()) };
    let null = a.get(2).and_then(Value::as_text);
    let most = ELEMENTS_MAX + 1;
    let parts: Vec<&str> = match a[1].as_text() {
        _ if text.is_empty() => Vec::new(),
        None => text.split("").filter(|part| !part.is_empty()).take(most).collect(),
        Some("") => vec![text],
        Some(between) => text.split(between).take(most).collect(),
    };
    check_elements(parts.len())?;
    let shown = |part: &str| if Some(part) == null { Value::Null } else { Value::text(part) };
    Ok(parts.into_iter().map(shown).collect())
}

/// The function of a name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}
