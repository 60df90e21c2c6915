//! Arrays whose elements are cast one by one, where the cast of one takes more than its value: the zone of the session, the type that it is shown by.

use crate::error::Result;
use crate::expr::{Expr, Slot};
use crate::run::Run;
use crate::types::Type;
use crate::value::Value;

/// An array whose elements become something else.
#[derive(Clone)]
pub(crate) struct Each {
    pub(crate) array: Expr,
    /// The types of an element before and after. Invariant: they say what `element` does.
    pub(crate) of: Type,
    pub(crate) to: Type,
    /// Where an element is for `element`, which reads no other place.
    pub(crate) slot: Slot,
    pub(crate) element: Expr,
}

impl Each {
    /// Nulls stay what they are. May wait. Errors: those of the casts.
    pub(crate) fn eval(&self, run: &mut Run<'_>) -> Result<Value> {
        match self.array.eval(run)? {
            array @ Value::Document(_) => self.elements(run, &array),
            other => Ok(other),
        }
    }

    fn elements(&self, run: &mut Run<'_>, array: &Value) -> Result<Value> {
        let mut changed = Vec::new();
        for element in super::elements(array) {
            run.tick()?;
            changed.push(match element {
                Value::Null => Value::Null,
                inner @ Value::Document(_) => self.elements(run, &inner)?,
                element => {
                    run.frame[self.slot] = element;
                    self.element.eval(run)?
                }
            });
        }
        let mut out = Vec::new();
        crate::scan::encode_row(&changed, &mut out);
        Ok(Value::Document(out.into()))
    }
}
