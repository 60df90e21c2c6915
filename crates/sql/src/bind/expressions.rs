//! Expressions: names, types, and what the dialects make of two values of different types.

use super::{Binder, Bound, Scope};
use crate::cast::{Strictness, cast, from_bits, from_hex, parse_number};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{Asked, Comparison, Expr};
use crate::types::{Base, Type};
use crate::value::Value;
use sqlparser::ast;
use tuple::decimal::Decimal;

impl Binder<'_> {
    /// An expression. Errors: names or types that do not fit; what is not there.
    pub(super) fn bind(&self, scope: &Scope<'_>, expr: &ast::Expr) -> Result<Bound> {
        self.check_stack()?;
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
        let mut run = crate::run::Run::of_row(self.database, &context, self.dialect, (0, 0, 0));
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
                let named = self.type_named(&typed.data_type)?;
                let to = named.ty;
                let value = self.bind_literal(&typed.value.value)?;
                if named.user.is_some() {
                    return self.cast_to_named(value, &named);
                }
                let to = self.type_of_literal(to, &value);
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
                    Base::TimestampTz | Base::Timestamp | Base::TimeTz => moment,
                    Base::Time => self.cast_to(moment, Type::of(Base::TimeTz), Strictness::Explicit)?,
                    _ => self.cast_to(moment, Type::of(Base::TimestampTz), Strictness::Explicit)?,
                };
                let name = super::moments::at_zone_of(moment.ty);
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
                let unit_name = field.to_string().to_lowercase();
                if self.dialect == Dialect::Postgres
                    && value.ty.base == Base::Date
                    && super::moments::is_no_part_of_days(&unit_name)
                {
                    return self.call("part_of_day", vec![unit, value]);
                }
                let (name, value) = self.part_here(&unit, value)?;
                self.call(name, vec![unit, value])?
            }
            E::Interval(interval) => self.bind_interval(interval)?,
            E::Array(array) => self.bind_array(scope, &array.elem)?,
            E::CompoundFieldAccess { root, access_chain } => self.bind_subscripts(scope, root, access_chain)?,
            E::Collate { expr, collation } => {
                let name = self.dialect.object_name(collation)?;
                let value = self.bind(scope, expr)?;
                let known = crate::collations::find(self.database, self.dialect, &name);
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
                        match self.bind_time_call(&lower, &mut Vec::new())? {
                            Some(time) => Ok(time),
                            None => self.call(&lower, Vec::new()),
                        }
                    }
                    "localtime" | "localtimestamp" | "current_time" if self.dialect == Dialect::Postgres => {
                        self.bind_local(&lower)
                    }
                    _ => Err(error.at(ident.span.start)),
                }
            }
            Err(error) => Err(error.at(ident.span.start)),
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
                // `0x1` has half a byte.
                let padded = if self.dialect == Dialect::Mysql { format!("0{digits}") } else { String::new() };
                let digits = if digits.len() % 2 == 1 && !padded.is_empty() { &padded } else { digits };
                let bytes = from_hex(digits)
                    .ok_or_else(|| Error::new(Condition::Syntax, format!("'{digits}' are no hexadecimal digits")))?;
                Bound::new(Expr::Const(Value::Bytes(bytes.into())), Type::of(Base::Bytes))
            }
            V::SingleQuotedByteStringLiteral(bits) if self.dialect == Dialect::Mysql => {
                let bytes = from_bits(bits)
                    .ok_or_else(|| Error::new(Condition::Syntax, format!("'{bits}' are no binary digits")))?;
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

    /// The value as one of a type.
    pub(super) fn cast_to(&self, bound: Bound, to: Type, strictness: Strictness) -> Result<Bound> {
        if let Expr::Param(number) = bound.expr
            && let Some(param) = self.params.borrow_mut().get_mut(number)
            && param.base == Base::Unknown
        {
            *param = to;
        }
        let bound = match self.cast_labelled(bound, to, strictness)? {
            Ok(done) => return Ok(done),
            Err(bound) => bound,
        };
        if to.is_number()
            && let Some(number) = self.number_of_choice(&bound)?
        {
            return self.cast_to(number, to, strictness);
        }
        let bound = self.number_of_document(bound, to, strictness)?;
        let bound = match self.cast_zoned(bound, to)? {
            Ok(done) if to.length > 0 => Bound { ty: Type::of(to.base), ..done },
            Ok(done) => return Ok(done),
            Err(bound) => bound,
        };
        let bound = match self.cast_elements(bound, to, strictness)? {
            Ok(done) => return Ok(done),
            Err(bound) => bound,
        };
        let bound = match bound.ty.is_clock() || to.is_clock() {
            true if bound.ty.base != to.base => match self.cast_time(bound, to)? {
                Ok(done) => return Ok(done),
                Err(bound) => bound,
            },
            _ => bound,
        };
        let bound = match bound.ty.is_address() && bound.ty.base != to.base {
            true => match self.cast_net(bound, to, strictness)? {
                Ok(done) => return Ok(done),
                Err(bound) => bound,
            },
            false => bound,
        };
        let bound = match self.cast_range(bound, to)? {
            Ok(done) => return Ok(done),
            Err(bound) => bound,
        };
        let is_shown_by_type = bound.ty.is_moment()
            || bound.ty.is_range()
            || matches!(bound.ty.base, Base::Interval | Base::Array | Base::Time | Base::TimeTz)
            || bound.ty.base == Base::Decimal && bound.ty.length > 0;
        let is_shown_by_type = match self.dialect {
            Dialect::Postgres => is_shown_by_type || bound.ty.is_float(),
            Dialect::Mysql => {
                let is_moment = bound.ty.base == Base::Timestamp && bound.ty.length > 1;
                is_moment || matches!(bound.ty.base, Base::Date | Base::Time) || bound.ty.is_shown_shorter()
            }
            Dialect::Tarantool => false,
        };
        if bound.ty.is_float() && to.base == Base::Decimal && self.dialect == Dialect::Postgres {
            // PostgreSQL takes the six digits that four bytes surely hold.
            let digits = self.call("six_digits", vec![bound])?;
            return self.cast_to(digits, to, strictness);
        }
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
        // Bytes that a literal of MySQL's writes are a number beside numbers; what becomes bytes is text there.
        let is_made = self.dialect == Dialect::Mysql && to.base == Base::Bytes && bound.ty.base != Base::Bytes;
        let expr = match bound.expr {
            Expr::Const(value) if !is_made => Expr::Const(cast(self.dialect, value, to, strictness)?),
            expr => Expr::Cast(to, strictness, Box::new(expr)),
        };
        Ok(Bound { expr, ty: to, collation })
    }

    /// Two values that are compared with each other.
    pub(super) fn unify(&self, a: Bound, b: Bound, sign: &str) -> Result<(Bound, Bound)> {
        let (of_a, of_b) = (a.ty, b.ty);
        if of_a.has_labels() || of_b.has_labels() {
            return self.unify_labelled(a, b, sign);
        }
        let (a, b) = (self.beside(a, of_b)?, self.beside(b, of_a)?);
        let (a, b) = match (a.ty.base, b.ty.base) {
            (Base::Date | Base::Timestamp | Base::Time, _) if self.dialect == Dialect::Mysql && b.ty.is_number() => {
                (self.as_digits(a)?, b)
            }
            (_, Base::Date | Base::Timestamp | Base::Time) if self.dialect == Dialect::Mysql && a.ty.is_number() => {
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
        if a.ty.is_number() && b.ty.is_number() {
            return self.as_doubles(a, b);
        }
        if a.ty.is_moment() && b.ty.is_moment() {
            return self.zoned_alike(a, b);
        }
        let to = |bound: Bound, ty: Type| self.cast_to(bound, ty, Strictness::Explicit);
        let plain = |ty: Type| if ty.base == Base::Array { ty } else { ty.without_length() };
        match (a.ty.base, b.ty.base) {
            (Base::Array, Base::Array)
                if self.dialect == Dialect::Postgres && !super::arrays::are_alike(a.ty, b.ty) =>
            {
                Err(self.no_operator(sign, a.ty, b.ty))
            }
            (x, y) if x == y && x != Base::Unknown => Ok((a, b)),
            // They are kept alike.
            (Base::Inet, Base::Cidr) | (Base::Cidr, Base::Inet) => Ok((a, b)),
            // A time is the span since midnight beside one.
            (Base::Time, Base::Interval) if self.dialect == Dialect::Postgres => {
                Ok((to(a, Type::of(Base::Interval))?, b))
            }
            (Base::Interval, Base::Time) if self.dialect == Dialect::Postgres => {
                Ok((a, to(b, Type::of(Base::Interval))?))
            }
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
            (Base::Bytes, _) if self.dialect == Dialect::Mysql && b.ty.is_number() => {
                let number = super::operators::number_of_bytes(&a);
                Ok((number.map_or_else(|| self.cast_to(a, Type::of(Base::Double), Strictness::Comparison), Ok)?, b))
            }
            (_, Base::Bytes) if self.dialect == Dialect::Mysql && a.ty.is_number() => {
                let number = super::operators::number_of_bytes(&b);
                Ok((a, number.map_or_else(|| self.cast_to(b, Type::of(Base::Double), Strictness::Comparison), Ok)?))
            }
            (Base::Bytes, _) if self.dialect == Dialect::Mysql && b.ty.is_moment() => Ok((to(a, plain(b.ty))?, b)),
            (_, Base::Bytes) if self.dialect == Dialect::Mysql && a.ty.is_moment() => {
                let ty = plain(a.ty);
                Ok((a, to(b, ty)?))
            }
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
            (Base::Text | Base::Bytes, Base::Time) if self.dialect == Dialect::Mysql => Ok((to(a, plain(b.ty))?, b)),
            (Base::Time, Base::Text | Base::Bytes) if self.dialect == Dialect::Mysql => {
                let ty = plain(a.ty);
                Ok((a, to(b, ty)?))
            }
            (Base::Time, _) if self.dialect == Dialect::Mysql && b.ty.is_moment() => {
                Ok((to(a, Type::of(Base::Timestamp))?, b))
            }
            (_, Base::Time) if self.dialect == Dialect::Mysql && a.ty.is_moment() => {
                Ok((a, to(b, Type::of(Base::Timestamp))?))
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

    /// Two numbers that are compared: beside a double MySQL makes one of what may have more digits than that holds. Columns stay what an index has of them.
    fn as_doubles(&self, a: Bound, b: Bound) -> Result<(Bound, Bound)> {
        let is_long = |bound: &Bound| {
            matches!(bound.ty.base, Base::Int8 | Base::Uint8 | Base::Decimal) && !matches!(bound.expr, Expr::Slot(_))
        };
        let to_double = |bound: Bound| self.cast_to(bound, Type::of(Base::Double), Strictness::Explicit);
        match (a.ty.base, b.ty.base) {
            _ if self.dialect != Dialect::Mysql => Ok((a, b)),
            (_, Base::Double) if is_long(&a) => Ok((to_double(a)?, b)),
            (Base::Double, _) if is_long(&b) => Ok((a, to_double(b)?)),
            _ => Ok((a, b)),
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
        let (a, b) = self.compared_stamps(a.expr, b.expr);
        Ok(Expr::Compare(comparison, Box::new(a), Box::new(b), collation))
    }

    pub(super) fn same(&self, scope: &Scope<'_>, a: &ast::Expr, b: &ast::Expr) -> Result<Expr> {
        let (a, b) = self.beside_truths(scope, (self.bind(scope, a)?, a), (self.bind(scope, b)?, b))?;
        if let Some(order) = self.order_as_shown(Comparison::Equal, &a, &b)? {
            let are_null = Expr::And(vec![Expr::IsNull(Box::new(a.expr)), Expr::IsNull(Box::new(b.expr))]);
            return Ok(Expr::Case(
                vec![(are_null, Expr::Const(Value::Bool(true)))],
                Box::new(Expr::Same(Box::new(order), Box::new(Expr::Const(Value::Int(0))), None)),
            ));
        }
        let collation = self.compared_by(&a, &b);
        let (a, b) = self.unify(a, b, "=")?;
        Ok(Expr::Same(Box::new(a.expr), Box::new(b.expr), collation))
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
                    let value = self.bind(scope, &when.condition)?;
                    let (operand, value) = self.beside_documents(operand.clone(), value)?;
                    self.compare(Comparison::Equal, operand, value)?
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
        if self.dialect == Dialect::Mysql && values.iter().any(|value| value.ty.base == Base::Decimal) {
            let least = Type { length: 1, ..Type::of(Base::Decimal) };
            let mut types = values.iter().map(super::exact::known_digits);
            let exact = types.try_fold(least, super::exact::common);
            ty = exact.filter(|_| ty.base == Base::Decimal && ty.length > 0).unwrap_or(ty);
        }
        let is_open = matches!(ty.base, Base::Unknown | Base::Any | Base::Scalar | Base::Number);
        let values = values.into_iter().map(|value| {
            let keeps =
                is_open && value.ty.base != Base::Unknown || value.ty.base == ty.base || ty.base == Base::Integer;
            // Its digits come when it is settled.
            let has_own_digits = self.dialect == Dialect::Mysql && matches!(ty.base, Base::Decimal | Base::Double);
            let to = if has_own_digits { Type::of(ty.base) } else { ty };
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
        if self.dialect == Dialect::Postgres && (a.is_float() && b.is_number() || b.is_float() && a.is_number()) {
            let is_double = |ty: Type| ty == Type::of(Base::Double);
            return Some(if is_double(a) || is_double(b) { Type::of(Base::Double) } else { Type::FLOAT });
        }
        if let Some(double) = super::exact::common_double(a, b).filter(|_| self.dialect == Dialect::Mysql) {
            return Some(double);
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

pub(super) fn boolean(expr: Expr) -> Bound {
    Bound::new(expr, Type::BOOL)
}

pub(super) fn not(expr: Expr) -> Bound {
    boolean(Expr::Not(Box::new(expr)))
}

fn negate_if(is_negated: bool, expr: Expr) -> Bound {
    if is_negated { not(expr) } else { boolean(expr) }
}

/// An expression as it stands in a message.
fn shown(expr: &ast::Expr) -> String {
    let text = expr.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
