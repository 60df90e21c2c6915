//! Expressions: names, types, and what the dialects make of two values of different types.

use super::{Binder, Bound, Scope};
use crate::arithmetic::{Arithmetic, Manner};
use crate::cast::{Strictness, cast, from_hex, parse_number};
use crate::dialect::{Dialect, NUMBER_MARK};
use crate::error::{Condition, Error, Result};
use crate::expr::{Asked, Comparison, Expr, Like, Subquery};
use crate::types::{Base, Type};
use crate::value::Value;
use sqlparser::ast::{self, BinaryOperator, UnaryOperator};
use std::rc::Rc;
use tuple::decimal::Decimal;

/// Bytes of the stack that are left for whatever one level needs, and for running what was bound, which needs less a level.
const STACK_LEFT_MIN: usize = 400 << 10;

impl Binder<'_> {
    /// An expression. Errors: names or types that do not fit; what is not there.
    pub(super) fn bind(&self, scope: &Scope<'_>, expr: &ast::Expr) -> Result<Bound> {
        check_stack()?;
        // Operators stand in long chains: what takes little of the stack is at hand for them.
        let bound = match expr {
            ast::Expr::BinaryOp { left, op, right } if self.dialect != Dialect::Mysql => {
                self.bind_operator(scope, left, op, right)?
            }
            _ => self.bind_any(scope, expr)?,
        };
        match self.dialect {
            Dialect::Postgres => Ok(self.in_order(self.without_nulls(bound))),
            _ => Ok(bound),
        }
    }

    /// Null in place of what a null constant makes one in PostgreSQL: nothing beside it is computed there, and no row has its errors.
    #[inline(never)]
    fn without_nulls(&self, bound: Bound) -> Bound {
        let bound = self.computed(bound);
        let is_null = |expr: &Expr| matches!(expr, Expr::Const(Value::Null));
        let is_so = match &bound.expr {
            Expr::Arithmetic(_, _, _, a, b) | Expr::Concat(a, b) => is_null(a) || is_null(b),
            Expr::Call(function, arguments) => function.is_strict && arguments.iter().any(is_null),
            Expr::Cast(_, _, inner) => is_null(inner),
            _ => false,
        };
        let mut fails = false;
        if is_so {
            // An operation on constants that is still there has an error, which is found before the null is.
            bound.expr.walk(&mut |part| {
                let is_constant = |expr: &Expr| matches!(expr, Expr::Const(value) if !value.is_null());
                fails |= matches!(part, Expr::Arithmetic(_, _, _, a, b) if is_constant(a) && is_constant(b));
            });
        }
        if is_so && !fails { Bound { expr: Expr::Const(Value::Null), ..bound } } else { bound }
    }

    /// What a function of documents makes of constants, if it is no error: rows have that, if there are any.
    fn computed(&self, bound: Bound) -> Bound {
        let Expr::Call(function, arguments) = &bound.expr else { return bound };
        let is_constant = arguments.iter().all(|argument| matches!(argument, Expr::Const(_)));
        let is_it = |known: &&crate::functions::Function| std::ptr::eq(*known, *function);
        if !is_constant || crate::json::functions::find(function.name).as_ref().is_none_or(|known| !is_it(known)) {
            return bound;
        }
        let context = crate::condition::context_of(self.database);
        let mut run = crate::run::Run::new(self.database, &context, self.dialect, &[], (0, 0, 0));
        match bound.expr.eval(&mut run) {
            Ok(value) => Bound { expr: Expr::Const(value), ..bound },
            Err(_) => bound,
        }
    }

    /// With the order of documents, if it is one of PostgreSQL's `jsonb`, and without it, if it was made of one.
    #[inline(never)]
    pub(super) fn in_order(&self, bound: Bound) -> Bound {
        if self.dialect != Dialect::Postgres {
            return bound;
        }
        let is_document = bound.ty.base == Base::Json && !bound.ty.is_plain_json();
        let is_so = bound.collation.as_ref().is_some_and(|collation| collation.id() == tuple::JSON_COLLATION_ID);
        match is_document != is_so {
            true => {
                let collation =
                    is_document.then(|| self.database.catalog.collation(tuple::JSON_COLLATION_ID)).flatten();
                Bound { collation, ..bound }
            }
            false => bound,
        }
    }

    #[inline(never)]
    fn bind_any(&self, scope: &Scope<'_>, expr: &ast::Expr) -> Result<Bound> {
        use ast::Expr as E;
        if let Some(own) = self.bind_mysql(scope, expr)? {
            return Ok(own);
        }
        Ok(match expr {
            E::Nested(inner) => self.bind(scope, inner)?,
            E::Value(value) => self.bind_literal(&value.value)?,
            E::Identifier(ident) => self.bind_name(scope, ident)?,
            E::CompoundIdentifier(parts) => match parts.as_slice() {
                [scope, name] if scope.value.starts_with("@@") && self.dialect == Dialect::Mysql => {
                    let name = format!("{}.{}", scope.value, name.value);
                    self.bind_variable(&name)?.ok_or_else(|| Error::unsupported(format!("'{name}'")))?
                }
                [.., table, column] => {
                    self.resolve(scope, Some(&self.dialect.fold(table)), &self.dialect.fold(column))?
                }
                _ => return Err(Error::new(Condition::Syntax, format!("'{expr}' is no column"))),
            },
            E::IsNull(inner) => boolean(Expr::IsNull(Box::new(self.bind(scope, inner)?.expr))),
            E::IsNotNull(inner) => boolean(Expr::Not(Box::new(Expr::IsNull(Box::new(self.bind(scope, inner)?.expr))))),
            E::IsTrue(inner) => boolean(Expr::Is(Box::new(self.condition(scope, inner)?), true)),
            E::IsFalse(inner) => boolean(Expr::Is(Box::new(self.condition(scope, inner)?), false)),
            E::IsNotTrue(inner) => not(Expr::Is(Box::new(self.condition(scope, inner)?), true)),
            E::IsNotFalse(inner) => not(Expr::Is(Box::new(self.condition(scope, inner)?), false)),
            E::IsUnknown(inner) => boolean(Expr::IsNull(Box::new(self.condition(scope, inner)?))),
            E::IsNotUnknown(inner) => not(Expr::IsNull(Box::new(self.condition(scope, inner)?))),
            E::IsDistinctFrom(a, b) => not(self.same(scope, a, b)?),
            E::IsNotDistinctFrom(a, b) => boolean(self.same(scope, a, b)?),
            E::Between { expr, negated, low, high } => {
                let value = self.bind(scope, expr)?;
                let low = self.compare(Comparison::GreaterOrEqual, value.clone(), self.bind(scope, low)?)?;
                let high = self.compare(Comparison::LessOrEqual, value, self.bind(scope, high)?)?;
                negate_if(*negated, Expr::And(vec![low, high]))
            }
            E::BinaryOp { left, op, right } => self.bind_operator(scope, left, op, right)?,
            E::UnaryOp { op, expr } => self.bind_unary(scope, *op, expr)?,
            E::Like { negated, any: false, expr, pattern, escape_char } => {
                let is_folded = self.dialect == Dialect::Mysql;
                negate_if(*negated, self.bind_like(scope, expr, pattern, escape_char.as_deref(), is_folded)?)
            }
            E::ILike { negated, any: false, expr, pattern, escape_char } => {
                negate_if(*negated, self.bind_like(scope, expr, pattern, escape_char.as_deref(), true)?)
            }
            E::In { expr, target, negated, .. } => negate_if(*negated, self.bind_in(scope, expr, target)?),
            E::Exists { subquery, negated } => {
                let found = self.subquery(scope, subquery, Asked::Exists, None)?;
                negate_if(*negated, found.0)
            }
            E::Subquery(query) => {
                let (expr, ty) = self.subquery(scope, query, Asked::Scalar, Some(1))?;
                Bound::new(expr, ty)
            }
            E::AnyOp { left, compare_op, right, .. } => self.bind_quantified(scope, left, compare_op, right, false)?,
            E::AllOp { left, compare_op, right } => self.bind_quantified(scope, left, compare_op, right, true)?,
            E::Cast { expr, data_type, .. } => {
                let mut value = self.bind(scope, expr)?;
                if !super::arrays::is_number_of_object(data_type) {
                    value = self.named_object(value, expr)?;
                }
                self.bind_cast(value, data_type)?
            }
            E::TypedString(typed) => {
                let to = Type::of_ast(self.dialect, &typed.data_type)?;
                let value = self.bind_literal(&typed.value.value)?;
                self.cast_to(value, to, Strictness::Explicit)?
            }
            E::Case { operand, conditions, else_result, .. } => {
                self.bind_case(scope, operand.as_deref(), conditions, else_result.as_deref())?
            }
            E::Function(function) => self.bind_function(scope, function)?,
            E::Substring { expr, substring_from, substring_for, .. } => {
                let one = ast::Expr::Value(ast::Value::Number("1".to_string(), false).into());
                let mut arguments = vec![self.bind(scope, expr)?];
                arguments.push(self.bind(scope, substring_from.as_deref().unwrap_or(&one))?);
                if let Some(count) = substring_for {
                    arguments.push(self.bind(scope, count)?);
                }
                self.call("substr", arguments)?
            }
            E::Trim { expr, trim_where, trim_what, trim_characters } => {
                let mut arguments = vec![self.bind(scope, expr)?];
                let listed = trim_characters.as_ref().and_then(|characters| characters.first());
                if let Some(what) = trim_what.as_deref().or(listed) {
                    arguments.push(self.bind(scope, what)?);
                }
                let name = match trim_where {
                    Some(ast::TrimWhereField::Leading) => "ltrim",
                    Some(ast::TrimWhereField::Trailing) => "rtrim",
                    _ => "trim",
                };
                self.call(name, arguments)?
            }
            E::Position { expr, r#in } => {
                let arguments = vec![self.bind(scope, expr)?, self.bind(scope, r#in)?];
                self.call("position", arguments)?
            }
            E::Ceil { expr, .. } => self.call("ceil", vec![self.bind(scope, expr)?])?,
            E::Floor { expr, .. } => self.call("floor", vec![self.bind(scope, expr)?])?,
            E::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
                let mut arguments = Vec::new();
                for part in [expr, overlay_what, overlay_from].into_iter().chain(overlay_for) {
                    arguments.push(self.bind(scope, part)?);
                }
                self.call("overlay", arguments)?
            }
            E::AtTimeZone { timestamp, time_zone } => {
                let (moment, zone) = (self.bind(scope, timestamp)?, self.bind(scope, time_zone)?);
                let moment = match moment.ty.base {
                    Base::TimestampTz | Base::Timestamp => moment,
                    _ => self.cast_to(moment, Type::of(Base::TimestampTz), Strictness::Explicit)?,
                };
                let name = if moment.ty.base == Base::TimestampTz { "at_zone" } else { "of_zone" };
                self.call(name, vec![moment, zone])?
            }
            E::Extract { field, expr, .. } => {
                let unit = Bound::new(Expr::Const(Value::text(field.to_string().to_lowercase())), Type::TEXT);
                let value = self.bind(scope, expr)?;
                let value = match value.ty.base {
                    Base::Unknown => self.cast_to(value, Type::of(Base::TimestampTz), Strictness::Explicit)?,
                    _ if self.dialect == Dialect::Postgres && value.ty.is_number() => {
                        let what = format!("function pg_catalog.extract(unknown, {}) does not exist", value.ty);
                        return Err(Error::new(Condition::UndefinedFunction, what));
                    }
                    _ => value,
                };
                let name = if self.dialect == Dialect::Postgres { "extract_part" } else { "date_part" };
                self.call(name, vec![unit, value])?
            }
            E::Interval(interval) => self.bind_interval(interval)?,
            E::Array(array) => self.bind_array(scope, &array.elem)?,
            E::CompoundFieldAccess { root, access_chain } => self.bind_subscripts(scope, root, access_chain)?,
            E::Collate { expr, collation } => {
                let name = self.dialect.object_name(collation)?;
                let value = self.bind(scope, expr)?;
                let known = self
                    .database
                    .catalog
                    .collation_by_name(&name)
                    .or_else(|| self.database.catalog.collation_by_name(&name.to_lowercase()));
                match (known, name.to_ascii_lowercase().as_str()) {
                    (Some(collation), _) => Bound { collation: Some(collation).filter(|c| !c.is_binary()), ..value },
                    (None, "c" | "posix" | "default" | "binary") => Bound { collation: None, ..value },
                    (None, other) if self.dialect == Dialect::Mysql && other.starts_with("utf8") => {
                        // No constant any more, which would be compared as what is beside it.
                        let value = match value.expr {
                            Expr::Const(_) => {
                                let expr = Expr::Cast(Type::TEXT, Strictness::Explicit, Box::new(value.expr));
                                Bound::new(expr, Type::TEXT)
                            }
                            _ => value,
                        };
                        Bound { collation: self.collation_of(other), ..value }
                    }
                    (None, _) => {
                        return Err(Error::new(
                            Condition::UndefinedObject,
                            format!("collation \"{name}\" does not exist"),
                        ));
                    }
                }
            }
            other => return Err(Error::unsupported(format!("'{}'", shown(other)))),
        })
    }

    /// A condition.
    pub(super) fn condition(&self, scope: &Scope<'_>, expr: &ast::Expr) -> Result<Expr> {
        let bound = self.bind(scope, expr)?;
        self.as_condition(bound)
    }

    pub(super) fn as_condition(&self, bound: Bound) -> Result<Expr> {
        match bound.ty.base {
            Base::Bool => Ok(bound.expr),
            Base::Unknown => Ok(self.cast_to(bound, Type::BOOL, Strictness::Explicit)?.expr),
            Base::Any | Base::Scalar => Ok(bound.expr),
            _ if self.dialect == Dialect::Mysql => match bound.ty.is_number() {
                true => Ok(bound.expr),
                false => Ok(self.cast_to(bound, Type::of(Base::Double), Strictness::Explicit)?.expr),
            },
            _ => Err(Error::new(
                Condition::TypeMismatch,
                match self.dialect {
                    Dialect::Tarantool => {
                        format!("Type mismatch: can not convert {} to boolean", bound.ty.name(self.dialect))
                    }
                    _ => format!("a condition must be type boolean, not type {}", bound.ty),
                },
            )),
        }
    }

    fn bind_name(&self, scope: &Scope<'_>, ident: &ast::Ident) -> Result<Bound> {
        let name = self.dialect.fold(ident);
        if let Some(variable) = self.bind_variable(&name)? {
            return Ok(variable);
        }
        match self.resolve(scope, None, &name) {
            Err(error) if ident.quote_style.is_none() && error.condition() == Condition::UndefinedColumn => {
                // Functions that are called without parentheses.
                let lower = name.to_lowercase();
                match lower.as_str() {
                    "current_timestamp" | "current_date" | "current_user" | "session_user" | "user" => {
                        self.call(&lower, Vec::new())
                    }
                    "localtime" | "localtimestamp" | "utc_timestamp" | "utc_date" | "utc_time" | "current_time"
                        if self.dialect == Dialect::Mysql =>
                    {
                        self.call(&lower, Vec::new())
                    }
                    _ => Err(error),
                }
            }
            // In SQLite's family, what is no column but stands in double quotes is not text here: it is refused, as in Tarantool.
            found => found,
        }
    }

    pub(super) fn bind_literal(&self, value: &ast::Value) -> Result<Bound> {
        use ast::Value as V;
        let text_type = if self.dialect == Dialect::Postgres { Type::UNKNOWN } else { Type::TEXT };
        Ok(match value {
            V::Number(text, _) => self.bind_number(text)?,
            V::SingleQuotedString(text)
            | V::EscapedStringLiteral(text)
            | V::UnicodeStringLiteral(text)
            | V::NationalStringLiteral(text) => Bound::new(Expr::Const(Value::text(text.as_str())), text_type),
            V::DollarQuotedString(text) => Bound::new(Expr::Const(Value::text(text.value.as_str())), text_type),
            V::DoubleQuotedString(text) if self.dialect == Dialect::Mysql => {
                Bound::new(Expr::Const(Value::text(text.as_str())), text_type)
            }
            V::HexStringLiteral(digits) => {
                let bytes = from_hex(digits)
                    .ok_or_else(|| Error::new(Condition::Syntax, format!("'{digits}' are no hexadecimal digits")))?;
                Bound::new(Expr::Const(Value::Bytes(bytes.into())), Type::of(Base::Bytes))
            }
            V::Boolean(value) if self.dialect == Dialect::Mysql => {
                Bound::new(Expr::Const(Value::Int(i64::from(*value))), Type::of(Base::Int4))
            }
            V::Boolean(value) => Bound::new(Expr::Const(Value::Bool(*value)), Type::BOOL),
            V::Null => Bound::new(Expr::Const(Value::Null), Type::UNKNOWN),
            V::Placeholder(name) => self.bind_placeholder(name)?,
            other => return Err(Error::unsupported(format!("'{other}'"))),
        })
    }

    fn bind_number(&self, text: &str) -> Result<Bound> {
        let refused = || Error::new(Condition::NumericOutOfRange, format!("'{text}' is no number that can be held"));
        if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            let number = i128::from_str_radix(digits, 16).ok().and_then(Value::integer).ok_or_else(refused)?;
            return Ok(Bound::new(Expr::Const(number), Type::of(Base::Int8)));
        }
        let is_whole = text.bytes().all(|byte| byte.is_ascii_digit());
        if let Some(value) = text.parse::<i128>().ok().filter(|_| is_whole).and_then(Value::integer) {
            let base = match (&value, self.dialect) {
                (_, Dialect::Tarantool) => Base::Integer,
                (Value::Int(value), _) if i32::try_from(*value).is_ok() => Base::Int4,
                (Value::Int(_), _) => Base::Int8,
                _ if self.dialect == Dialect::Mysql => Base::Uint8,
                _ => Base::Decimal,
            };
            let value = match (base, &value) {
                (Base::Decimal, value) => value.as_decimal().map(Value::decimal).ok_or_else(refused)?,
                _ => value,
            };
            return Ok(Bound::new(Expr::Const(value), Type::of(base)));
        }
        let has_exponent = text.contains(['e', 'E']);
        if self.dialect == Dialect::Tarantool || self.dialect == Dialect::Mysql && has_exponent {
            return match parse_number(text) {
                Some(value) => {
                    let value = Value::Double(value.as_double().unwrap_or(0.0));
                    Ok(Bound::new(Expr::Const(value), Type::of(Base::Double)))
                }
                None => Err(refused()),
            };
        }
        match text.parse::<Decimal>() {
            Ok(value) => {
                let ty = match self.dialect {
                    Dialect::Mysql => super::exact::literal(&value),
                    _ => Type::of(Base::Decimal),
                };
                Ok(Bound::new(Expr::Const(Value::decimal(value)), ty))
            }
            // What decimals do not reach doubles may: dumps have such numbers.
            Err(_) => match text.parse::<f64>().ok().filter(|value| has_exponent && value.is_finite()) {
                Some(value) => Ok(Bound::new(Expr::Const(Value::Double(value)), Type::of(Base::Double))),
                None => Err(refused()),
            },
        }
    }

    fn bind_placeholder(&self, name: &str) -> Result<Bound> {
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
        if number >= super::PARAMETERS_MAX {
            let what = format!("there are more than {} parameters", super::PARAMETERS_MAX);
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
        Ok(Bound::new(Expr::Param(number), ty))
    }

    pub(super) fn bind_interval(&self, interval: &ast::Interval) -> Result<Bound> {
        let literal = match &*interval.value {
            ast::Expr::Value(value) => match &value.value {
                ast::Value::SingleQuotedString(text) | ast::Value::Number(text, _) => Some(text.clone()),
                _ => None,
            },
            _ => None,
        };
        let Some(mut text) = literal else {
            return Err(Error::unsupported(format!("'INTERVAL {}' with an expression", interval.value)));
        };
        if let Some(unit) = &interval.leading_field {
            text = format!("{text} {unit}");
        }
        let value = crate::moments::parse_interval(&text)?;
        Ok(Bound::new(Expr::Const(Value::Interval(Rc::new(value))), Type::of(Base::Interval)))
    }

    /// The value as one of a type.
    pub(super) fn cast_to(&self, bound: Bound, to: Type, strictness: Strictness) -> Result<Bound> {
        if let Expr::Param(number) = bound.expr
            && let Some(param) = self.params.borrow_mut().get_mut(number)
            && param.base == Base::Unknown
        {
            *param = to;
        }
        let is_shown_by_type = bound.ty.is_moment()
            || matches!(bound.ty.base, Base::Interval | Base::Array)
            || bound.ty.base == Base::Decimal && bound.ty.length > 0;
        let is_shown_by_type = match self.dialect {
            Dialect::Postgres => is_shown_by_type,
            Dialect::Mysql => bound.ty.base == Base::Date,
            Dialect::Tarantool => false,
        };
        let bound = if to.base == Base::Text { self.settled(bound)? } else { bound };
        if to.base == Base::Text && is_shown_by_type {
            let code = Bound::new(Expr::Const(Value::Int(bound.ty.code())), Type::of(Base::Int8));
            let text = self.call("text_of", vec![bound, code])?;
            return self.cast_to(text, to, strictness);
        }
        let is_new_text = to.base == Base::Text && !matches!(bound.ty.base, Base::Text | Base::Bytes);
        let collation = match bound.collation {
            None if self.dialect == Dialect::Mysql && is_new_text => self.usual_collation(),
            collation => collation,
        };
        // A decimal of MySQL may have more digits than its type says.
        let has_more = self.dialect == Dialect::Mysql && to.base == Base::Decimal;
        if bound.ty == to && !has_more && !matches!(bound.expr, Expr::Param(_)) {
            return Ok(Bound { expr: bound.expr, ty: to, collation });
        }
        let expr = match bound.expr {
            Expr::Const(value) => Expr::Const(cast(self.dialect, value, to, strictness)?),
            expr => Expr::Cast(to, strictness, Box::new(expr)),
        };
        Ok(Bound { expr, ty: to, collation })
    }

    /// Two values that are compared with each other.
    pub(super) fn unify(&self, a: Bound, b: Bound, sign: &str) -> Result<(Bound, Bound)> {
        let (of_a, of_b) = (a.ty, b.ty);
        let (a, b) = (self.beside(a, of_b)?, self.beside(b, of_a)?);
        let (a, b) = match (a.ty.base, b.ty.base) {
            (Base::Date | Base::Timestamp, _) if self.dialect == Dialect::Mysql && b.ty.is_number() => {
                (self.as_digits(a)?, b)
            }
            (_, Base::Date | Base::Timestamp) if self.dialect == Dialect::Mysql && a.ty.is_number() => {
                (a, self.as_digits(b)?)
            }
            (Base::Bool, other) if self.dialect == Dialect::Mysql && other != Base::Bool => {
                (self.cast_to(a, Type::of(Base::Int8), Strictness::Explicit)?, b)
            }
            (other, Base::Bool) if self.dialect == Dialect::Mysql && other != Base::Bool => {
                (a, self.cast_to(b, Type::of(Base::Int8), Strictness::Explicit)?)
            }
            _ => (a, b),
        };
        if a.ty.is_number() && b.ty.is_number() || a.ty.is_moment() && b.ty.is_moment() {
            return Ok((a, b));
        }
        let to = |bound: Bound, ty: Type| self.cast_to(bound, ty, Strictness::Explicit);
        let plain = |ty: Type| if ty.base == Base::Array { ty } else { Type::of(ty.base) };
        match (a.ty.base, b.ty.base) {
            (Base::Array, Base::Array)
                if self.dialect == Dialect::Postgres && !super::arrays::are_alike(a.ty, b.ty) =>
            {
                Err(self.no_operator(sign, a.ty, b.ty))
            }
            (x, y) if x == y && x != Base::Unknown => Ok((a, b)),
            (Base::Unknown, Base::Unknown) => Ok((to(a, Type::TEXT)?, to(b, Type::TEXT)?)),
            (Base::Unknown, _) => {
                let ty = plain(b.ty);
                Ok((to(a, ty)?, b))
            }
            (_, Base::Unknown) => {
                let ty = plain(a.ty);
                Ok((a, to(b, ty)?))
            }
            (Base::Any | Base::Scalar, _) | (_, Base::Any | Base::Scalar) => Ok((a, b)),
            (Base::Text, _) if b.ty.is_number() && self.dialect != Dialect::Postgres => {
                let number = if self.dialect == Dialect::Mysql { Base::Double } else { Base::Number };
                Ok((self.cast_to(a, Type::of(number), Strictness::Comparison)?, b))
            }
            (_, Base::Text) if a.ty.is_number() && self.dialect != Dialect::Postgres => {
                let number = if self.dialect == Dialect::Mysql { Base::Double } else { Base::Number };
                Ok((a, self.cast_to(b, Type::of(number), Strictness::Comparison)?))
            }
            (Base::Text, _) if b.ty.is_moment() && self.dialect != Dialect::Postgres => {
                let ty = plain(b.ty);
                Ok((to(a, ty)?, b))
            }
            (_, Base::Text) if a.ty.is_moment() && self.dialect != Dialect::Postgres => {
                let ty = plain(a.ty);
                Ok((a, to(b, ty)?))
            }
            // A document beside a number is one; beside text it is compared as one of text.
            (Base::Json, _) if self.dialect == Dialect::Mysql && b.ty.is_number() => {
                Ok((self.cast_to(a, Type::of(Base::Double), Strictness::Comparison)?, b))
            }
            (_, Base::Json) if self.dialect == Dialect::Mysql && a.ty.is_number() => {
                Ok((a, self.cast_to(b, Type::of(Base::Double), Strictness::Comparison)?))
            }
            (Base::Json, Base::Text) if self.dialect == Dialect::Mysql => Ok((a, self.as_json(b)?)),
            (Base::Text, Base::Json) if self.dialect == Dialect::Mysql => Ok((self.as_json(a)?, b)),
            (Base::Bool, _) | (_, Base::Bool)
                if self.dialect == Dialect::Mysql && (a.ty.is_number() || b.ty.is_number()) =>
            {
                Ok((to(a, Type::of(Base::Int8))?, to(b, Type::of(Base::Int8))?))
            }
            (Base::Text | Base::Bytes, Base::Text | Base::Bytes) if self.dialect == Dialect::Mysql => {
                Ok((to(a, Type::TEXT)?, to(b, Type::TEXT)?))
            }
            _ => match a.ty.common(b.ty) {
                Some(common) => Ok((to(a, common)?, to(b, common)?)),
                None => Err(self.no_operator(sign, a.ty, b.ty)),
            },
        }
    }

    pub(super) fn no_operator(&self, sign: &str, a: Type, b: Type) -> Error {
        match self.dialect {
            Dialect::Tarantool => {
                let what =
                    format!("Type mismatch: can not convert {} to {}", b.name(self.dialect), a.name(self.dialect));
                Error::new(Condition::TypeMismatch, what)
            }
            _ => Error::new(Condition::UndefinedFunction, format!("operator does not exist: {a} {sign} {b}")).hint(
                "No operator matches the given name and argument types. You might need to add explicit type casts.",
            ),
        }
    }

    /// A comparison of two values.
    pub(super) fn compare(&self, comparison: Comparison, a: Bound, b: Bound) -> Result<Expr> {
        let collation = self.compared_by(&a, &b);
        let (a, b) = self.unify(a, b, comparison.sign())?;
        if self.dialect == Dialect::Postgres
            && let (Expr::Const(Value::Null), _) | (_, Expr::Const(Value::Null)) = (&a.expr, &b.expr)
        {
            // Nothing is known, whatever the other side is: it is not looked at.
            return Ok(Expr::Const(Value::Null));
        }
        if self.dialect == Dialect::Postgres
            && let (Expr::Const(a), Expr::Const(b)) = (&a.expr, &b.expr)
        {
            return Ok(Expr::Const(Value::Bool(comparison.holds(crate::expr::order(&collation, a, b)))));
        }
        Ok(Expr::Compare(comparison, Box::new(a.expr), Box::new(b.expr), collation))
    }

    fn same(&self, scope: &Scope<'_>, a: &ast::Expr, b: &ast::Expr) -> Result<Expr> {
        let (a, b) = (self.bind(scope, a)?, self.bind(scope, b)?);
        let collation = self.compared_by(&a, &b);
        let (a, b) = self.unify(a, b, "=")?;
        Ok(Expr::Same(Box::new(a.expr), Box::new(b.expr), collation))
    }

    fn bind_operator(
        &self,
        scope: &Scope<'_>,
        left: &ast::Expr,
        op: &BinaryOperator,
        right: &ast::Expr,
    ) -> Result<Bound> {
        use BinaryOperator as B;
        match op {
            B::And | B::Or => return self.bind_logic(scope, left, op, right),
            B::Xor => {
                // As true or false: a number may be any that is not zero.
                let truth = |expr: Expr| Box::new(Expr::Not(Box::new(Expr::Not(Box::new(expr)))));
                let (a, b) = (truth(self.condition(scope, left)?), truth(self.condition(scope, right)?));
                return Ok(boolean(Expr::Compare(Comparison::NotEqual, a, b, None)));
            }
            _ => {}
        }
        if let Some(comparison) = comparison_of(op) {
            if let (ast::Expr::Tuple(a), ast::Expr::Tuple(b)) = (left, right) {
                return self.compare_tuples(scope, comparison, a, b);
            }
            let (a, b) = (self.bind(scope, left)?, self.bind(scope, right)?);
            return Ok(boolean(self.compare(comparison, a, b)?));
        }
        let arithmetic = match op {
            B::Plus => Arithmetic::Add,
            B::Minus => Arithmetic::Subtract,
            B::Multiply => Arithmetic::Multiply,
            B::Divide => Arithmetic::Divide,
            B::Modulo => Arithmetic::Remainder,
            B::MyIntegerDivide | B::DuckIntegerDivide => Arithmetic::DivideWhole,
            B::BitwiseAnd => Arithmetic::BitAnd,
            B::BitwiseOr => Arithmetic::BitOr,
            B::BitwiseXor | B::PGBitwiseXor => Arithmetic::BitXor,
            B::PGBitwiseShiftLeft => Arithmetic::ShiftLeft,
            B::PGBitwiseShiftRight => Arithmetic::ShiftRight,
            B::Spaceship => return Ok(boolean(self.same(scope, left, right)?)),
            B::StringConcat if self.dialect == Dialect::Mysql => return self.bind_logic(scope, left, &B::Or, right),
            B::StringConcat => {
                let (a, b) = (self.bind(scope, left)?, self.bind(scope, right)?);
                if self.dialect == Dialect::Postgres {
                    if let Some(found) = self.concat_arrays(&a, &b)? {
                        return Ok(found);
                    }
                    if a.ty.base == Base::Json || b.ty.base == Base::Json {
                        return self.bind_document_operator(op, a, b);
                    }
                }
                return self.concat(a, b);
            }
            B::PGLikeMatch => return Ok(boolean(self.bind_like(scope, left, right, None, false)?)),
            B::PGILikeMatch => return Ok(boolean(self.bind_like(scope, left, right, None, true)?)),
            B::PGNotLikeMatch => return Ok(not(self.bind_like(scope, left, right, None, false)?)),
            B::PGNotILikeMatch => return Ok(not(self.bind_like(scope, left, right, None, true)?)),
            other => return self.bind_match(scope, left, other, right),
        };
        let (a, b) = (self.bind(scope, left)?, self.bind(scope, right)?);
        if *op == B::Minus && a.ty.base == Base::Json && self.dialect == Dialect::Postgres {
            return self.bind_document_operator(op, a, b);
        }
        self.arithmetic(arithmetic, a, b)
    }

    fn concat(&self, a: Bound, b: Bound) -> Result<Bound> {
        let is_text = |ty: Type| matches!(ty.base, Base::Text | Base::Unknown | Base::Any | Base::Scalar);
        let are_bytes = a.ty.base == Base::Bytes && b.ty.base == Base::Bytes;
        if !are_bytes && !is_text(a.ty) && !is_text(b.ty)
            || self.dialect == Dialect::Tarantool && !are_bytes && !(is_text(a.ty) && is_text(b.ty))
        {
            return Err(match self.dialect {
                Dialect::Tarantool => {
                    let wrong = if is_text(a.ty) { b.ty } else { a.ty };
                    let name = if wrong.is_integer() { "unsigned".to_string() } else { wrong.name(self.dialect) };
                    let what = format!("Inconsistent types: expected text or varbinary got {name}");
                    Error::new(Condition::TypeMismatch, what).tarantool(database::ErrorCode::InconsistentTypes)
                }
                _ => self.no_operator("||", a.ty, b.ty),
            });
        }
        let as_text = |bound: Bound| match bound.ty.base {
            Base::Unknown => self.cast_to(bound, Type::TEXT, Strictness::Explicit),
            _ => Ok(bound),
        };
        let (a, b) = (as_text(a)?, as_text(b)?);
        let ty = if are_bytes { Type::of(Base::Bytes) } else { Type::TEXT };
        Ok(Bound {
            collation: a.collation.or(b.collation),
            ..Bound::new(Expr::Concat(Box::new(a.expr), Box::new(b.expr)), ty)
        })
    }

    /// AND and OR: long chains without recursion.
    fn bind_logic(&self, scope: &Scope<'_>, left: &ast::Expr, op: &BinaryOperator, right: &ast::Expr) -> Result<Bound> {
        let mut parts = vec![self.condition(scope, right)?];
        let mut rest = left;
        while let ast::Expr::BinaryOp { left, op: other, right } = rest
            && other == op
        {
            parts.push(self.condition(scope, right)?);
            rest = left;
        }
        parts.push(self.condition(scope, rest)?);
        parts.reverse();
        let decides = *op == BinaryOperator::Or;
        let is_decided = |part: &Expr| matches!(part, Expr::Const(Value::Bool(value)) if *value == decides);
        if self.dialect == Dialect::Postgres && parts.iter().any(is_decided) {
            return Ok(boolean(Expr::Const(Value::Bool(decides))));
        }
        Ok(boolean(if *op == BinaryOperator::And { Expr::And(parts) } else { Expr::Or(parts) }))
    }

    fn compare_tuples(
        &self,
        scope: &Scope<'_>,
        comparison: Comparison,
        a: &[ast::Expr],
        b: &[ast::Expr],
    ) -> Result<Bound> {
        if a.len() != b.len() {
            return Err(Error::new(Condition::ColumnCount, "unequal number of entries in row expressions"));
        }
        let mut pairs = Vec::with_capacity(a.len());
        for (a, b) in a.iter().zip(b) {
            pairs.push((self.bind(scope, a)?, self.bind(scope, b)?));
        }
        let of_all = |comparison: Comparison| -> Result<Vec<Expr>> {
            pairs.iter().map(|(a, b)| self.compare(comparison, a.clone(), b.clone())).collect()
        };
        Ok(boolean(match comparison {
            Comparison::Equal => Expr::And(of_all(Comparison::Equal)?),
            Comparison::NotEqual => Expr::Or(of_all(Comparison::NotEqual)?),
            // The first pair that differs decides.
            _ => {
                let strict = match comparison {
                    Comparison::Less | Comparison::LessOrEqual => Comparison::Less,
                    _ => Comparison::Greater,
                };
                let mut whole: Option<Expr> = None;
                for (a, b) in pairs.iter().rev() {
                    let last = whole.is_none();
                    let decided = self.compare(if last { comparison } else { strict }, a.clone(), b.clone())?;
                    whole = Some(match whole {
                        None => decided,
                        // Where one is null nothing more is looked at.
                        Some(rest) => {
                            let equal = self.compare(Comparison::Equal, a.clone(), b.clone())?;
                            let branches =
                                vec![(Expr::IsNull(Box::new(equal.clone())), Expr::Const(Value::Null)), (equal, rest)];
                            Expr::Case(branches, Box::new(decided))
                        }
                    });
                }
                whole.unwrap_or(Expr::Const(Value::Null))
            }
        }))
    }

    fn bind_unary(&self, scope: &Scope<'_>, op: UnaryOperator, expr: &ast::Expr) -> Result<Bound> {
        match op {
            UnaryOperator::Not | UnaryOperator::BangNot => Ok(not(self.condition(scope, expr)?)),
            UnaryOperator::Plus => self.bind(scope, expr),
            UnaryOperator::Minus => {
                // The least number of 64 bits has no positive one.
                if let ast::Expr::Value(value) = expr
                    && let ast::Value::Number(text, _) = &value.value
                    && let Some(number) = text.parse::<i128>().ok().and_then(|number| Value::integer(-number))
                {
                    let small = matches!(number, Value::Int(value) if i32::try_from(value).is_ok());
                    let base = match self.dialect {
                        Dialect::Tarantool => Base::Integer,
                        _ if small => Base::Int4,
                        _ => Base::Int8,
                    };
                    return Ok(Bound::new(Expr::Const(number), Type::of(base)));
                }
                let value = self.bind(scope, expr)?;
                let value = match value.ty.base {
                    Base::Interval => {
                        return self.arithmetic(
                            Arithmetic::Multiply,
                            value,
                            Bound::new(Expr::Const(Value::Int(-1)), Type::of(Base::Int4)),
                        );
                    }
                    Base::Unknown => self.cast_to(value, Type::of(Base::Double), Strictness::Explicit)?,
                    Base::Text if self.dialect == Dialect::Mysql => {
                        self.cast_to(value, Type::of(Base::Double), Strictness::Explicit)?
                    }
                    _ if value.ty.is_number() || matches!(value.ty.base, Base::Any | Base::Scalar) => value,
                    _ => return Err(self.no_operator("-", value.ty, value.ty)),
                };
                let ty = match value.ty.base {
                    Base::Uint8 => Type::of(Base::Integer),
                    Base::Decimal if self.dialect == Dialect::Mysql => value.ty,
                    base => Type::of(base),
                };
                if let Expr::Const(constant) = &value.expr {
                    return Ok(Bound::new(Expr::Const(crate::arithmetic::negate(ty, constant)?), ty));
                }
                Ok(Bound::new(Expr::Negate(ty, Box::new(value.expr)), ty))
            }
            UnaryOperator::BitwiseNot => {
                let value = self.bind(scope, expr)?;
                self.arithmetic(
                    Arithmetic::BitXor,
                    value,
                    Bound::new(Expr::Const(Value::Int(-1)), Type::of(Base::Int4)),
                )
            }
            other => Err(Error::unsupported(format!("operator {other}"))),
        }
    }

    /// An operation of two numbers, or of moments and spans of time.
    pub(super) fn arithmetic(&self, operation: Arithmetic, a: Bound, b: Bound) -> Result<Bound> {
        let manner =
            Manner { zero_gives_null: self.dialect.zero_gives_null(), short_quotients: self.dialect == Dialect::Mysql };
        if let Some(found) = self.arithmetic_of_time(operation, &a, &b)? {
            return Ok(found);
        }
        let as_number = |bound: Bound, other: Type| -> Result<Bound> {
            match bound.ty.base {
                Base::Unknown if other.is_number() && self.dialect != Dialect::Mysql => {
                    self.cast_to(bound, Type::of(other.base), Strictness::Explicit)
                }
                Base::Unknown => self.cast_to(bound, Type::of(Base::Double), Strictness::Explicit),
                Base::Bool if self.dialect == Dialect::Mysql => {
                    self.cast_to(bound, Type::of(Base::Int8), Strictness::Explicit)
                }
                Base::Text if self.dialect == Dialect::Mysql => {
                    self.cast_to(bound, Type::of(Base::Double), Strictness::Explicit)
                }
                Base::Json if self.dialect == Dialect::Mysql => {
                    self.cast_to(bound, Type::of(Base::Double), Strictness::Comparison)
                }
                // Days and moments are numbers of their digits.
                Base::Date | Base::Timestamp if self.dialect == Dialect::Mysql => self.as_digits(bound),
                Base::Text if self.dialect == Dialect::Tarantool => {
                    self.cast_to(bound, Type::of(Base::Number), Strictness::Explicit)
                }
                Base::Any | Base::Scalar => self.beside(bound, Type::of(Base::Number)),
                _ if bound.ty.is_number() => Ok(bound),
                _ => Err(self.no_operator(operation.sign(), bound.ty, other)),
            }
        };
        let (a_type, b_type) = (a.ty, b.ty);
        let (mut a, mut b) = (as_number(a, b_type)?, as_number(b, a_type)?);
        for side in [&mut a, &mut b] {
            // Bits are those of whole numbers.
            if operation.is_of_bits() && self.dialect == Dialect::Mysql && !side.ty.is_integer() {
                *side = self.cast_to(side.clone(), Type::of(Base::Integer), Strictness::Explicit)?;
            }
        }
        let base = self.result_of(operation, a.ty, b.ty)?;
        let ty = match (self.dialect, base) {
            (Dialect::Mysql, Base::Decimal) => super::exact::result_of(operation, a.ty, b.ty),
            _ => Type::of(base),
        };
        if let (Expr::Const(a), Expr::Const(b)) = (&a.expr, &b.expr)
            && let Ok(value) = crate::arithmetic::calculate(operation, ty, manner, a, b)
        {
            return Ok(Bound::new(Expr::Const(value), ty));
        }
        Ok(Bound::new(Expr::Arithmetic(operation, ty, manner, Box::new(a.expr), Box::new(b.expr)), ty))
    }

    fn result_of(&self, operation: Arithmetic, a: Type, b: Type) -> Result<Base> {
        let is_open = |ty: Type| matches!(ty.base, Base::Any | Base::Scalar | Base::Number);
        if operation.is_of_bits() {
            return Ok(match self.dialect {
                Dialect::Tarantool => Base::Integer,
                Dialect::Mysql => Base::Uint8,
                Dialect::Postgres if a.is_integer() && b.is_integer() => a.common(b).map_or(Base::Int8, |ty| ty.base),
                Dialect::Postgres => return Err(self.no_operator(operation.sign(), a, b)),
            });
        }
        if is_open(a) || is_open(b) {
            return Ok(if a.base == Base::Double || b.base == Base::Double { Base::Double } else { Base::Number });
        }
        if a.is_integer() && b.is_integer() {
            return Ok(match self.dialect {
                Dialect::Tarantool => Base::Integer,
                Dialect::Mysql if operation == Arithmetic::Divide && !self.dialect.divides_whole() => Base::Decimal,
                Dialect::Mysql if a.is_unsigned() || b.is_unsigned() && operation != Arithmetic::Remainder => {
                    Base::Uint8
                }
                Dialect::Mysql => Base::Int8,
                Dialect::Postgres => a.common(b).map_or(Base::Int8, |ty| ty.base),
            });
        }
        if operation == Arithmetic::DivideWhole {
            return Ok(if a.is_unsigned() || b.is_unsigned() { Base::Uint8 } else { Base::Int8 });
        }
        Ok(if a.base == Base::Double || b.base == Base::Double { Base::Double } else { Base::Decimal })
    }

    fn bind_like(
        &self,
        scope: &Scope<'_>,
        text: &ast::Expr,
        pattern: &ast::Expr,
        escape: Option<&ast::Expr>,
        ignores_case: bool,
    ) -> Result<Expr> {
        let as_text = |bound: Bound| match bound.ty.base {
            Base::Text | Base::Any | Base::Scalar | Base::Bytes => Ok(bound.expr),
            Base::Unknown => Ok(self.cast_to(bound, Type::TEXT, Strictness::Explicit)?.expr),
            _ if self.dialect == Dialect::Mysql => Ok(self.cast_to(bound, Type::TEXT, Strictness::Explicit)?.expr),
            _ if self.dialect == Dialect::Tarantool => {
                let what = format!("Inconsistent types: expected string got {}", bound.ty.name(self.dialect));
                Err(Error::new(Condition::TypeMismatch, what))
            }
            _ => Err(self.no_operator("~~", bound.ty, Type::of(Base::Unknown))),
        };
        let escape = match escape {
            Some(ast::Expr::Value(value)) => match value.clone().value.into_string() {
                Some(text) => text.chars().next(),
                None => None,
            },
            Some(other) => return Err(Error::unsupported(format!("'ESCAPE {other}'"))),
            None if self.dialect == Dialect::Tarantool => None,
            None => Some('\\'),
        };
        let (mut text, mut pattern) = (self.bind(scope, text)?, self.bind(scope, pattern)?);
        let mut ignores_case = ignores_case;
        if self.dialect == Dialect::Mysql {
            ignores_case &= !self.tells_case(&text, &pattern);
            // `LIKE BINARY 'A%'`: as it is written.
            for side in [&mut text, &mut pattern] {
                if side.ty.base == Base::Bytes && matches!(side.expr, Expr::Cast(..) | Expr::Const(_)) {
                    ignores_case = false;
                    let bytes = std::mem::replace(side, Bound::new(Expr::Const(Value::Null), Type::TEXT));
                    *side = self.cast_to(bytes, Type::TEXT, Strictness::Explicit)?;
                }
            }
        }
        let collation = match self.dialect == Dialect::Mysql && ignores_case {
            true => self.compared_by(&text, &pattern),
            false => None,
        };
        let (text, pattern) = (as_text(text)?, as_text(pattern)?);
        Ok(Expr::Like(Box::new(Like { text, pattern, escape, ignores_case, collation })))
    }

    fn bind_in(&self, scope: &Scope<'_>, expr: &ast::Expr, target: &ast::InTarget) -> Result<Expr> {
        match target {
            ast::InTarget::Subquery(query) => self.bind_among(scope, expr, query, Comparison::Equal, false),
            ast::InTarget::List(list) => {
                if let ast::Expr::Tuple(_) = expr {
                    let mut parts = Vec::with_capacity(list.len());
                    for item in list {
                        let (ast::Expr::Tuple(a), ast::Expr::Tuple(b)) = (expr, item) else {
                            return Err(Error::new(
                                Condition::ColumnCount,
                                "unequal number of entries in row expressions",
                            ));
                        };
                        parts.push(self.compare_tuples(scope, Comparison::Equal, a, b)?.expr);
                    }
                    return Ok(Expr::Or(parts));
                }
                let mut value = self.bind(scope, expr)?;
                let mut items = Vec::with_capacity(list.len());
                let mut collation = None;
                let mut bound = Vec::with_capacity(list.len() + 1);
                bound.push(value.clone());
                for item in list {
                    bound.push(self.bind(scope, item)?);
                }
                // Numbers beside texts compare as numbers, and the texts as such.
                let kind = |ty: Type| (ty.is_number() || ty.base == Base::Bool, ty.base == Base::Text);
                let is_mixed = |item: &Bound| {
                    item.ty.base != Base::Unknown
                        && bound[1..]
                            .iter()
                            .any(|other| other.ty.base != Base::Unknown && kind(other.ty) != kind(item.ty))
                };
                if self.dialect == Dialect::Mysql && value.ty.base == Base::Text && bound[1..].iter().any(is_mixed) {
                    let parts =
                        bound.into_iter().skip(1).map(|item| self.compare(Comparison::Equal, value.clone(), item));
                    return Ok(Expr::Or(parts.collect::<Result<_>>()?));
                }
                // All are compared alike in MySQL.
                let of_all = (self.dialect == Dialect::Mysql).then(|| self.collation_of_values(&bound));
                for item in bound.into_iter().skip(1) {
                    collation = match &of_all {
                        Some(of_all) => of_all.clone(),
                        None => collation.or(self.compared_by(&value, &item)),
                    };
                    let (changed, item) = self.unify(value, item, "=")?;
                    value = changed;
                    items.push(item.expr);
                }
                Ok(Expr::In(Box::new(value.expr), items, collation))
            }
            other => Err(Error::unsupported(format!("'IN {other:?}'"))),
        }
    }

    /// A value, or several, compared with the rows of a query.
    fn bind_among(
        &self,
        scope: &Scope<'_>,
        expr: &ast::Expr,
        query: &ast::Query,
        comparison: Comparison,
        all: bool,
    ) -> Result<Expr> {
        let listed: Vec<&ast::Expr> = match expr {
            ast::Expr::Tuple(parts) => parts.iter().collect(),
            one => vec![one],
        };
        let mut values = Vec::with_capacity(listed.len());
        for value in listed {
            values.push(self.bind(scope, value)?);
        }
        let source = query.to_string();
        let query = self.bind_query(query, Some(scope))?;
        self.among(values, query, comparison, all, source)
    }

    fn bind_quantified(
        &self,
        scope: &Scope<'_>,
        left: &ast::Expr,
        op: &BinaryOperator,
        right: &ast::Expr,
        all: bool,
    ) -> Result<Bound> {
        let comparison =
            comparison_of(op).ok_or_else(|| Error::unsupported(format!("operator {op} with ANY or ALL")))?;
        match right {
            ast::Expr::Subquery(query) => Ok(boolean(self.bind_among(scope, left, query, comparison, all)?)),
            ast::Expr::Nested(inner) => self.bind_quantified(scope, left, op, inner, all),
            array => Ok(boolean(self.bind_among_elements(scope, left, array, comparison, all)?)),
        }
    }

    fn subquery(
        &self,
        scope: &Scope<'_>,
        query: &ast::Query,
        asked: Asked,
        columns: Option<usize>,
    ) -> Result<(Expr, Type)> {
        let source = query.to_string();
        let query = self.bind_query(query, Some(scope))?;
        if columns.is_some_and(|wanted| wanted != query.outputs.len()) {
            return Err(Error::new(Condition::ColumnCount, "subquery must return only one column"));
        }
        let ty = query.outputs.first().map_or(Type::UNKNOWN, |output| output.ty);
        Ok((self.make_subquery(query, asked, source), ty))
    }

    /// `source`: the text of the rows, by which two of one query are known to be the same.
    pub(super) fn make_subquery(&self, query: super::Query, asked: Asked, source: String) -> Expr {
        let number = self.subqueries.get();
        self.subqueries.set(number + 1);
        let mut is_correlated = self.recursions.get() > 0;
        query.plan.reads(&mut |_| is_correlated = true);
        let outputs = query.outputs.iter().map(|output| output.slot).collect();
        Expr::Subquery(Rc::new(Subquery { number, asked, plan: query.plan, outputs, is_correlated, source }))
    }

    fn bind_case(
        &self,
        scope: &Scope<'_>,
        operand: Option<&ast::Expr>,
        conditions: &[ast::CaseWhen],
        otherwise: Option<&ast::Expr>,
    ) -> Result<Bound> {
        let operand = operand.map(|operand| self.bind(scope, operand)).transpose()?;
        let mut tests = Vec::with_capacity(conditions.len());
        let mut results = Vec::with_capacity(conditions.len() + 1);
        for when in conditions {
            tests.push(match &operand {
                Some(operand) => {
                    self.compare(Comparison::Equal, operand.clone(), self.bind(scope, &when.condition)?)?
                }
                None => self.condition(scope, &when.condition)?,
            });
            results.push(self.bind(scope, &when.result)?);
        }
        results.push(match otherwise {
            Some(otherwise) => self.bind(scope, otherwise)?,
            None => Bound::new(Expr::Const(Value::Null), Type::UNKNOWN),
        });
        let (mut results, ty) = self.alike(results, "CASE")?;
        let collation = self.collation_of_values(&results);
        let otherwise = results.pop().map_or(Expr::Const(Value::Null), |bound| bound.expr);
        let branches = tests.into_iter().zip(results.into_iter().map(|bound| bound.expr)).collect();
        Ok(Bound { collation, ..Bound::new(Expr::Case(branches, Box::new(otherwise)), ty) })
    }

    /// Values that stand in one column, brought to one type.
    pub(super) fn alike(&self, values: Vec<Bound>, what: &str) -> Result<(Vec<Bound>, Type)> {
        let mut ty = Type::UNKNOWN;
        for value in &values {
            ty = self.common(ty, value.ty).ok_or_else(|| {
                let message = format!(
                    "{what} types {} and {} cannot be matched",
                    ty.name(self.dialect),
                    value.ty.name(self.dialect)
                );
                Error::new(Condition::TypeMismatch, message)
            })?;
        }
        if ty.base == Base::Unknown && self.dialect == Dialect::Postgres {
            ty = Type::TEXT;
        }
        let is_open = matches!(ty.base, Base::Unknown | Base::Any | Base::Scalar | Base::Number);
        let values = values.into_iter().map(|value| {
            let keeps =
                is_open && value.ty.base != Base::Unknown || value.ty.base == ty.base || ty.base == Base::Integer;
            // Its digits come when it is settled.
            let to = if self.dialect == Dialect::Mysql && ty.base == Base::Decimal { Type::of(ty.base) } else { ty };
            if keeps { Ok(value) } else { self.cast_to(value, to, Strictness::Explicit) }
        });
        Ok((values.collect::<Result<Vec<_>>>()?, ty))
    }

    /// The type of one column that has values of both.
    pub(super) fn common(&self, a: Type, b: Type) -> Option<Type> {
        // A truth value beside others is a number in MySQL.
        let plain = |ty: Type, other: Type| match (self.dialect, ty.base) {
            (Dialect::Mysql, Base::Bool) if !matches!(other.base, Base::Bool | Base::Unknown) => Type::of(Base::Int4),
            _ => ty,
        };
        let (a, b) = (plain(a, b), plain(b, a));
        if self.dialect == Dialect::Mysql
            && matches!((a.base, b.base), (Base::Text, Base::Bytes) | (Base::Bytes, Base::Text))
        {
            return Some(Type::of(Base::Bytes));
        }
        let exact = if self.dialect == Dialect::Mysql { super::exact::common(a, b) } else { None };
        let exact = exact.or_else(|| match self.dialect {
            // Of 64 bits with a sign and without: neither holds both.
            Dialect::Mysql if super::exact::is_mixed(a, b) => Some(super::exact::MIXED),
            _ => None,
        });
        exact.or_else(|| a.common(b)).or(match self.dialect {
            Dialect::Mysql => Some(Type::TEXT),
            Dialect::Tarantool => Some(Type::of(Base::Scalar)),
            Dialect::Postgres => None,
        })
    }
}

/// Errors: `LimitExceeded` if the stack is nearly used up. Asked at every level of an expression and of queries.
pub(super) fn check_stack() -> Result<()> {
    let here = std::hint::black_box(0u8);
    let address = std::ptr::from_ref(&here) as usize;
    match runtime::fiber::stack_limit() {
        Some(limit) if address < limit + STACK_LEFT_MIN => {
            Err(Error::new(Condition::LimitExceeded, "the statement is nested too deep"))
        }
        _ => Ok(()),
    }
}

pub(super) fn boolean(expr: Expr) -> Bound {
    Bound::new(expr, Type::BOOL)
}

pub(super) fn not(expr: Expr) -> Bound {
    boolean(Expr::Not(Box::new(expr)))
}

fn negate_if(is_negated: bool, expr: Expr) -> Bound {
    if is_negated { not(expr) } else { boolean(expr) }
}

fn comparison_of(op: &BinaryOperator) -> Option<Comparison> {
    Some(match op {
        BinaryOperator::Eq => Comparison::Equal,
        BinaryOperator::NotEq => Comparison::NotEqual,
        BinaryOperator::Lt => Comparison::Less,
        BinaryOperator::LtEq => Comparison::LessOrEqual,
        BinaryOperator::Gt => Comparison::Greater,
        BinaryOperator::GtEq => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

/// An expression as it stands in a message.
fn shown(expr: &ast::Expr) -> String {
    let text = expr.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
