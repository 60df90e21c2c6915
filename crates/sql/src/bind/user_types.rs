//! Types of users' own in expressions: what their names mean, casts from and to them, the conditions of domains.

use super::{Binder, Bound, Place, Relation, RelationColumn, Scope};
use crate::cast::Strictness;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{Expr, Slot};
use crate::functions::Returns;
use crate::types::{Base, Type};
use crate::user_types::{self, Domain, Resolved, UserType, shown_name};
use crate::value::Value;
use sqlparser::ast::{self, DataType};
use std::rc::Rc;
use tuple::SpaceId;

impl Binder<'_> {
    /// What the name of a type means. Errors: there is no such type.
    pub(crate) fn type_named(&self, declared: &DataType) -> Result<Resolved> {
        let found = user_types::resolve(self.database, self.dialect, declared)?;
        if let Some(user) = &found.user {
            self.types.borrow_mut().push(user.space);
        }
        Ok(found)
    }

    /// True if what was bound names a type, or gives values of it.
    pub(crate) fn uses_type(&self, id: SpaceId) -> bool {
        self.types.borrow().contains(&id)
    }

    /// With texts in the places of numbers that have some.
    pub(super) fn as_texts(&self, bound: Bound) -> Result<Bound> {
        if !bound.ty.has_labels() {
            return Ok(bound);
        }
        let ty = bound.ty.with_texts();
        let code = Bound::new(Expr::Const(Value::Int(bound.ty.code())), Type::of(Base::Int8));
        let found = self.plain_call("label_of", vec![bound.expr, code.expr])?;
        Ok(Bound::new(found, ty))
    }

    /// A cast from or to a type with texts. `Err`: it is another one. Errors: there is no way.
    pub(super) fn cast_labelled(
        &self,
        bound: Bound,
        to: Type,
        strictness: Strictness,
    ) -> Result<std::result::Result<Bound, Bound>> {
        let from = bound.ty;
        if !from.has_labels() && !to.has_labels() {
            return Ok(Err(bound));
        }
        if from == to {
            return Ok(Ok(bound));
        }
        let is_open = |ty: Type| matches!(ty.base, Base::Text | Base::Unknown | Base::Any | Base::Scalar);
        if to.has_labels() {
            let is_of_texts = from.base == Base::Array && is_open(from.element()) && to.base == Base::Array;
            if !is_open(from) && !is_of_texts {
                return Err(self.no_cast(from, to));
            }
            let expr = match bound.expr {
                Expr::Const(value) => {
                    let value = crate::cast::cast(self.dialect, value, to, strictness)?;
                    Expr::Const(user_types::numbered(self.database, value, to)?)
                }
                expr => Expr::Cast(to, strictness, Box::new(expr)),
            };
            return Ok(Ok(Bound::new(expr, to)));
        }
        let is_of_texts = from.base == Base::Array && to.base == Base::Array && is_open(to.element());
        if !is_open(to) && !is_of_texts && self.dialect == Dialect::Postgres {
            return Err(self.no_cast(from, to));
        }
        let texts = self.as_texts(bound)?;
        Ok(Ok(if to.base == Base::Unknown { texts } else { self.cast_to(texts, to, strictness)? }))
    }

    fn no_cast(&self, from: Type, to: Type) -> Error {
        let what = format!("cannot cast type {} to {}", from.name(self.dialect), to.name(self.dialect));
        Error::new(Condition::CannotCoerce, what)
    }

    /// Two values that are compared, one of which has a type with texts.
    pub(super) fn unify_labelled(&self, a: Bound, b: Bound, sign: &str) -> Result<(Bound, Bound)> {
        match (a.ty.base, b.ty.base) {
            _ if a.ty == b.ty => Ok((a, b)),
            (Base::Unknown, _) => {
                let to = b.ty;
                Ok((self.cast_to(a, to, Strictness::Explicit)?, b))
            }
            (_, Base::Unknown) => {
                let to = a.ty;
                Ok((a, self.cast_to(b, to, Strictness::Explicit)?))
            }
            _ if self.dialect == Dialect::Postgres => Err(self.no_operator(sign, a.ty, b.ty)),
            _ => self.unify(self.as_texts(a)?, self.as_texts(b)?, sign),
        }
    }

    /// Arguments of a function as it takes them: texts, but for those that hand on what they are given.
    pub(super) fn labels_as_arguments(&self, result: Returns, arguments: Vec<Bound>) -> Result<Vec<Bound>> {
        let keeps = matches!(result, Returns::First | Returns::Common | Returns::Element | Returns::FirstArray);
        if keeps || !arguments.iter().any(|argument| argument.ty.has_labels()) {
            return Ok(arguments);
        }
        arguments.into_iter().map(|argument| self.as_texts(argument)).collect()
    }

    /// `enum_first`, `enum_last` and `enum_range`: what they say is in the type of the argument. None: it is another function.
    pub(super) fn bind_enum_call(&self, name: &str, arguments: &mut Vec<Bound>) -> Result<Option<Bound>> {
        let counts = match name {
            "enum_first" | "enum_last" => 1..=1,
            "enum_range" => 1..=2,
            _ => return Ok(None),
        };
        let ty = arguments.iter().map(|argument| argument.ty).find(|ty| ty.base == Base::Enum);
        let user = ty.and_then(|ty| user_types::by_id(self.database, ty.length));
        let (Some(ty), Some(user), true) = (ty, user, counts.contains(&arguments.len())) else {
            let is_open = arguments.iter().all(|argument| argument.ty.base == Base::Unknown);
            return Err(match is_open && counts.contains(&arguments.len()) {
                true => {
                    let what = "could not determine polymorphic type because input has type unknown";
                    Error::new(Condition::TypeMismatch, what)
                }
                false => {
                    let types: Vec<String> = arguments.iter().map(|argument| argument.ty.to_string()).collect();
                    let what = format!("function {name}({}) does not exist", types.join(", "));
                    Error::new(Condition::UndefinedFunction, what)
                }
            });
        };
        let labels = user.labels().unwrap_or_default();
        if name != "enum_range" {
            let label = if name == "enum_first" { labels.first() } else { labels.last() };
            let Some(label) = label else {
                let what = format!("enum {} contains no values", shown_name(&user.name));
                return Err(Error::new(Condition::NotInState, what));
            };
            return Ok(Some(Bound::new(Expr::Const(label.number.clone()), ty)));
        }
        let null = || Expr::Const(Value::Null);
        let mut ends = Vec::new();
        for argument in arguments.drain(..) {
            ends.push(self.cast_to(argument, ty, Strictness::Explicit)?.expr);
        }
        // Of one argument it is the type that counts.
        let mut ends = if ends.len() == 2 { ends } else { vec![null(), null()] };
        ends.push(Expr::Const(Value::Int(ty.code())));
        let found = self.plain_call("enum_between", ends)?;
        Ok(Some(Bound::new(found, Type::array_of(ty))))
    }

    /// A place, and what gives the value there as one of a domain. Errors: those of the conditions' texts.
    pub(crate) fn bind_domain_value(&self, user: &Rc<UserType>, ty: Type) -> Result<(Slot, Expr)> {
        let slot = self.new_slot();
        Ok((slot, self.in_domains(Bound::new(Expr::Slot(slot), ty), user)?.expr))
    }

    /// The value as one of a domain, whose conditions it has to fulfil. Errors: those of the conditions' texts.
    pub(super) fn in_domain(&self, bound: Bound, user: &Rc<UserType>) -> Result<Bound> {
        let below = user_types::domains_below(self.database, user);
        let base = below.last().and_then(|user| Some(user.domain()?.base.as_str()));
        let bound = match base.filter(|base| base.ends_with(']')) {
            Some(base) => self.of_elements(bound, base)?,
            None => bound,
        };
        self.in_domains(bound, user)
    }

    /// An array whose elements have to fulfil the conditions of their type, if it has some: it is named as in a column's format.
    pub(super) fn of_elements(&self, bound: Bound, declared: &str) -> Result<Bound> {
        if !user_types::has_conditions(self.database, declared) {
            return Ok(bound);
        }
        let expr = self.plain_call("domain_elements", vec![bound.expr, Expr::Const(Value::text(declared))])?;
        Ok(Bound { expr, ..bound })
    }

    /// The same, elements aside.
    fn in_domains(&self, bound: Bound, user: &Rc<UserType>) -> Result<Bound> {
        let mut bound = bound;
        for user in user_types::domains_below(self.database, user).into_iter().rev() {
            if let Some(domain) = user.domain() {
                bound = self.within_conditions(bound, &shown_name(&user.name), domain)?;
            }
        }
        Ok(bound)
    }

    fn within_conditions(&self, bound: Bound, name: &str, domain: &Domain) -> Result<Bound> {
        if domain.checks.is_empty() && !domain.is_not_null {
            return Ok(bound);
        }
        let slot = self.new_slot();
        let mut arguments = vec![
            Expr::Keep(slot, Box::new(bound.expr)),
            Expr::Const(Value::text(name)),
            Expr::Const(Value::Bool(domain.is_not_null)),
        ];
        let mut scope = Scope::new(None);
        let value = RelationColumn {
            name: "value".to_string(),
            ty: bound.ty,
            collation: bound.collation.clone(),
            place: Place::Slot(slot),
            is_hidden: false,
        };
        scope.relations.push(Relation { alias: String::new(), columns: vec![value], whole: None });
        for (constraint, condition) in &domain.checks {
            let condition = self.parse_expression(condition)?;
            arguments.push(self.condition(&scope, &condition)?);
            arguments.push(Expr::Const(Value::text(constraint.as_str())));
        }
        let expr = self.plain_call("domain_value", arguments)?;
        Ok(Bound { expr, ..bound })
    }

    /// Errors: what a domain says is nothing for values of the type below it.
    pub(crate) fn check_domain(&self, domain: &Domain, ty: Type) -> Result<()> {
        let null = Bound::new(Expr::Cast(ty, Strictness::Explicit, Box::new(Expr::Const(Value::Null))), ty);
        let found = self.within_conditions(null, "", domain)?;
        let mut has_query = false;
        found.expr.walk(&mut |part| has_query |= matches!(part, Expr::Subquery(_)));
        if has_query {
            return Err(Error::new(Condition::Unsupported, "cannot use subquery in check constraint"));
        }
        domain.default.as_ref().map_or(Ok(()), |default| self.check_value(default, ty))
    }

    /// Errors: a text is no expression that gives a value of a type.
    pub(crate) fn check_value(&self, text: &str, ty: Type) -> Result<()> {
        let value = self.bind(&Scope::new(None), &self.parse_expression(text)?)?;
        self.cast_to(value, ty, Strictness::Assignment).map(drop)
    }

    /// CAST to a type that is named. Errors: there is no way.
    pub(super) fn cast_to_named(&self, value: Bound, to: &Resolved) -> Result<Bound> {
        let value = self.cast_to(value, to.ty, Strictness::Explicit)?;
        match (to.domain(), &to.declared) {
            (Some(domain), _) => self.in_domain(value, domain),
            (None, Some(declared)) => self.of_elements(value, declared),
            (None, None) => Ok(value),
        }
    }

    /// The name of the type that a cast gives a column of the result. None: it is none of a user's.
    pub(super) fn name_of_user_type(&self, declared: &ast::DataType) -> Option<String> {
        let found = user_types::resolve(self.database, self.dialect, declared).ok()?;
        found.user.map(|user| user.name.clone())
    }
}
