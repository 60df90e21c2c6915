//! Functions of values whose types are users' own. Most of them stand in no statement: the binder calls them.

use super::{by_id, labelled};
use crate::error::{Condition, Error, Result};
use crate::functions::{Function, Returns, alike};
use crate::types::{Base, Type};
use crate::value::Value;

fn type_of(value: &Value) -> Type {
    Type::of_code(value.as_integer().and_then(|code| i64::try_from(code).ok()).unwrap_or(0))
}

fn text_of(value: &Value) -> &str {
    value.as_text().unwrap_or_default()
}

/// The value, which is one of a domain: its name, whether it may be null, and for each condition whether it holds and its name stand behind it.
fn domain_value(a: &[Value]) -> Result<Value> {
    let (name, refuses_null) = (text_of(&a[1]), matches!(a[2], Value::Bool(true)));
    if refuses_null && a[0].is_null() {
        return Err(Error::new(Condition::NotNull, format!("domain {name} does not allow null values")));
    }
    match a[3..].chunks(2).find(|pair| matches!(pair[0], Value::Bool(false))) {
        Some(pair) => {
            let what = format!("value for domain {name} violates check constraint \"{}\"", text_of(&pair[1]));
            Err(Error::new(Condition::CheckViolation, what).about("", None, Some(text_of(&pair[1]))))
        }
        None => Ok(a[0].clone()),
    }
}

alike! {
    is_volatile: false;
    "label_of" (2, 2) Returns::Type(Base::Text), true => |run, a| Ok(labelled(run.database, a[0].clone(), type_of(&a[1])));
    "enum_between" (3, 3) Returns::Type(Base::Array), false => |run, a| {
        let user = by_id(run.database, type_of(&a[2]).length);
        let labels = user.as_ref().and_then(|user| user.labels()).unwrap_or_default();
        let is_from = |number: &Value| a[0].is_null() || a[0].order(number).is_le();
        let is_to = |number: &Value| a[1].is_null() || a[1].order(number).is_ge();
        let within: Vec<Value> =
            labels.iter().map(|label| label.number.clone()).filter(|number| is_from(number) && is_to(number)).collect();
        let mut out = Vec::new();
        crate::scan::encode_row(&within, &mut out);
        Ok(Value::Document(out.into()))
    };
    "domain_elements" (2, 2) Returns::First, true => |run, a| {
        super::check(run.database, text_of(&a[1]), &a[0])?;
        Ok(a[0].clone())
    };
    "domain_value" (3, usize::MAX) Returns::First, false => |_, a| domain_value(a);
}

/// The function of a name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}
