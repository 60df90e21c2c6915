//! What the functions and operators of ranges compute. The last argument of each says the type of the range, as a number.

use super::{End, Range, text};
use crate::error::{Condition, Error, Result};
use crate::functions::{Function, Returns};
use crate::run::Run;
use crate::types::{Base, Type};
use crate::value::Value;

const BOOL: Returns = Returns::Type(Base::Bool);
const FIRST: Returns = Returns::First;
const ANY: Returns = Returns::Type(Base::Any);

/// The function of a name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}

fn type_of(code: Option<&Value>) -> Type {
    let code = code.and_then(Value::as_integer).and_then(|code| i64::try_from(code).ok());
    Type::of_code(code.unwrap_or(0))
}

/// The range that is the first argument.
fn one(a: &[Value]) -> Result<(Range, Type)> {
    let ty = type_of(a.last());
    let no_range = || Error::new(Condition::InvalidArgument, "the value of the column is no range");
    Ok((Range::of(&a[0], ty).ok_or_else(no_range)?, ty))
}

/// Those that are the first two.
fn two(a: &[Value]) -> Result<(Range, Range, Type)> {
    let (first, ty) = one(a)?;
    let (second, _) = one(&a[1..])?;
    Ok((first, second, ty))
}

fn truth(a: &[Value], holds: fn(&Range, &Range) -> bool) -> Result<Value> {
    let (first, second, _) = two(a)?;
    Ok(Value::Bool(holds(&first, &second)))
}

/// What holds for the ends of a range; of an empty one nothing does.
fn of_ends(a: &[Value], holds: fn(&End, &End) -> bool) -> Result<Value> {
    Ok(Value::Bool(matches!(one(a)?.0, Range::Of(lower, upper) if holds(&lower, &upper))))
}

fn made(_: &mut Run<'_>, a: &[Value]) -> Result<Value> {
    let ty = type_of(a.last());
    let flags_error =
        |what: &str| Error::new(Condition::Syntax, what).hint("Valid values are \"[]\", \"[)\", \"(]\", and \"()\".");
    let (is_lower_in, is_upper_in) = match a[2].as_text() {
        None => return Err(Error::new(Condition::DataException, "range constructor flags argument must not be null")),
        Some("[]") => (true, true),
        Some("[)") => (true, false),
        Some("(]") => (false, true),
        Some("()") => (false, false),
        Some(_) => return Err(flags_error("invalid range bound flags")),
    };
    let value = |value: &Value| Some(value.clone()).filter(|value| !value.is_null());
    let lower = End { value: value(&a[0]), is_in: is_lower_in };
    let upper = End { value: value(&a[1]), is_in: is_upper_in };
    Ok(Range::of_ends(lower, upper, ty)?.value())
}

crate::functions::alike! {
    is_volatile: false;
    "range_of_text" (2, 2) ANY, true => |run, a| match &a[0] {
        Value::Text(given) => text::parse(given, type_of(a.last()), run.zone().as_ref()),
        value => Ok(value.clone()),
    };
    "range_made" (4, 4) ANY, false => made;
    "range_lower" (2, 2) ANY, true => |_, a| match one(a)?.0 {
        Range::Of(End { value: Some(value), .. }, _) => Ok(value),
        _ => Ok(Value::Null),
    };
    "range_upper" (2, 2) ANY, true => |_, a| match one(a)?.0 {
        Range::Of(_, End { value: Some(value), .. }) => Ok(value),
        _ => Ok(Value::Null),
    };
    "range_isempty" (2, 2) BOOL, true => |_, a| Ok(Value::Bool(matches!(one(a)?.0, Range::Empty)));
    "range_lower_inc" (2, 2) BOOL, true => |_, a| of_ends(a, |lower, _| lower.is_in);
    "range_upper_inc" (2, 2) BOOL, true => |_, a| of_ends(a, |_, upper| upper.is_in);
    "range_lower_inf" (2, 2) BOOL, true => |_, a| of_ends(a, |lower, _| lower.value.is_none());
    "range_upper_inf" (2, 2) BOOL, true => |_, a| of_ends(a, |_, upper| upper.value.is_none());
    "range_contains" (3, 3) BOOL, true => |_, a| truth(a, Range::contains);
    "range_has" (3, 3) BOOL, true => |_, a| {
        let (range, _) = one(&[a[0].clone(), a[2].clone()])?;
        let end = End { value: Some(a[1].clone()), is_in: true };
        Ok(Value::Bool(range.contains(&Range::Of(end.clone(), end))))
    };
    "range_overlaps" (3, 3) BOOL, true => |_, a| truth(a, Range::overlaps);
    "range_before" (3, 3) BOOL, true => |_, a| truth(a, Range::is_before);
    "range_touches" (3, 3) BOOL, true => |_, a| truth(a, Range::touches);
    "range_not_after" (3, 3) BOOL, true => |_, a| truth(a, Range::ends_no_later);
    "range_not_before" (3, 3) BOOL, true => |_, a| truth(a, Range::begins_no_earlier);
    "range_joined" (3, 3) FIRST, true => |_, a| {
        let (first, second, _) = two(a)?;
        Ok(first.joined(&second, false)?.value())
    };
    "range_merge" (3, 3) FIRST, true => |_, a| {
        let (first, second, _) = two(a)?;
        Ok(first.joined(&second, true)?.value())
    };
    "range_shared" (3, 3) FIRST, true => |_, a| {
        let (first, second, _) = two(a)?;
        Ok(first.shared(&second).value())
    };
    "range_without" (3, 3) FIRST, true => |_, a| {
        let (first, second, ty) = two(a)?;
        Ok(first.without(&second, ty)?.value())
    };
}
