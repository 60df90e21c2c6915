//! ENUM and SET of MySQL's dialect: text, but a number where one is wanted, which is that of the word or the bits of the words.

use super::{Binder, Bound};
use crate::dialect::Dialect;
use crate::error::Result;
use crate::expr::Expr;
use crate::mysql::assign::Choices;
use crate::types::{Base, Type};
use crate::value::Value;

impl Binder<'_> {
    /// The words that a column allows. None: it is another value.
    pub(super) fn choices_of(&self, bound: &Bound) -> Option<Choices> {
        let Expr::Slot(slot) = bound.expr else { return None };
        if self.dialect != Dialect::Mysql || bound.ty.base != Base::Text {
            return None;
        }
        self.column_of_slot(slot, |column| {
            column.raw_declared.as_deref().filter(|_| !column.is_declared_in_postgres).and_then(Choices::of)
        })
    }

    /// The number of such a value. None: it is another one.
    pub(super) fn number_of_choice(&self, bound: &Bound) -> Result<Option<Bound>> {
        let Some(choices) = self.choices_of(bound) else { return Ok(None) };
        let constant = |value: Value, ty: Type| Bound::new(Expr::Const(value), ty);
        let mut arguments = vec![bound.clone(), constant(Value::Bool(choices.is_set()), Type::BOOL)];
        arguments.extend(choices.words().iter().map(|word| constant(Value::text(word.as_str()), Type::TEXT)));
        self.call("number_of_choice", arguments).map(Some)
    }

    /// FIND_IN_SET of a word among those of a column of SET: its place among all that the column allows, if it is there. None: it is another call.
    pub(super) fn place_in_set(&self, arguments: &[Bound]) -> Result<Option<Bound>> {
        let [Bound { expr: Expr::Const(Value::Text(word)), .. }, value] = arguments else { return Ok(None) };
        let Some(choices) = self.choices_of(value).filter(Choices::is_set) else { return Ok(None) };
        let place = choices.words().iter().position(|known| known.to_lowercase() == word.to_lowercase());
        let number = |value: i64| Bound::new(Expr::Const(Value::Int(value)), Type::of(Base::Int8));
        let found = self.call("find_in_set", arguments.to_vec())?;
        let Some(place) = place else { return Ok(Some(found)) };
        let is_there = self.compare(crate::expr::Comparison::Greater, found.clone(), number(0))?;
        let branches = vec![(is_there, number(place as i64 + 1).expr)];
        Ok(Some(Bound { expr: Expr::Case(branches, Box::new(found.expr)), ..found }))
    }

    /// What rows are sorted by: words by their numbers.
    pub(super) fn sorted_as_choice(&self, bound: Bound) -> Result<Bound> {
        Ok(self.number_of_choice(&bound)?.unwrap_or(bound))
    }
}
