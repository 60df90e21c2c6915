//! Parameters of statements.

use super::{Binder, Bound, PARAMETERS_MAX};
use crate::cast::Strictness;
use crate::dialect::{Dialect, NUMBER_MARK};
use crate::error::{Condition, Error, Result};
use crate::expr::Expr;
use crate::types::{Base, Type};
use crate::user_types;

impl Binder<'_> {
    /// What stands for a value that comes when the statement is run. Errors: its number is none.
    pub(super) fn bind_placeholder(&self, name: &str) -> Result<Bound> {
        let mut params = self.params.borrow_mut();
        let number = match (name.strip_prefix('$'), name) {
            (Some(digits), _) if digits.bytes().all(|byte| byte.is_ascii_digit()) && !digits.is_empty() => {
                let number: usize = digits.parse().unwrap_or(0);
                number.checked_sub(1).ok_or_else(|| Error::new(Condition::Syntax, "there is no parameter $0"))?
            }
            // By place, or by name, which is the same one each time.
            (_, marked) => match marked.split_once(NUMBER_MARK) {
                Some((_, number)) => number.parse().unwrap_or(usize::MAX),
                None => {
                    let mut names = self.names.borrow_mut();
                    let known = names.iter().position(|known| known == marked);
                    known.unwrap_or_else(|| {
                        names.push(marked.to_string());
                        names.len() - 1
                    })
                }
            },
        };
        if number >= PARAMETERS_MAX {
            let what = format!("there are more than {} parameters", PARAMETERS_MAX);
            return Err(Error::new(Condition::LimitExceeded, what));
        }
        if let Some((name, _)) = name.split_once(NUMBER_MARK) {
            let mut names = self.names.borrow_mut();
            if names.len() <= number {
                names.resize(number + 1, String::new());
            }
            if name != "?" {
                names[number] = name.to_string();
            }
        }
        if params.len() <= number {
            params.resize(number + 1, Type::UNKNOWN);
        }
        let ty = match self.dialect {
            // The values say what they are.
            Dialect::Tarantool => Type::of(Base::Any),
            Dialect::Mysql if number >= self.declared.get() => Type::of(Base::Any),
            Dialect::Mysql | Dialect::Postgres => params[number],
        };
        let bound = match ty.has_labels() {
            // What the client gives is the text.
            true => Bound::new(Expr::Cast(ty, Strictness::Explicit, Box::new(Expr::Param(number))), ty),
            false => Bound::new(Expr::Param(number), ty),
        };
        drop(params);
        self.given_in_domain(number, bound)
    }

    /// A parameter, which has to fulfil the conditions of the domain that the client has said it is of. Errors: those of the conditions' texts.
    fn given_in_domain(&self, number: usize, bound: Bound) -> Result<Bound> {
        let Some(given) = self.given_types.borrow().get(number).copied().filter(|ty| ty.has_labels()) else {
            return Ok(bound);
        };
        match user_types::by_id(self.database, user_types::id_of(given).0).filter(|user| user.domain().is_some()) {
            Some(user) if given.base == Base::Array => self.of_elements(bound, &format!("{}[]", user.declared())),
            Some(user) => self.in_domain(bound, &user),
            None => Ok(bound),
        }
    }
}
