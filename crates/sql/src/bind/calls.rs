//! Calls of functions and aggregates: which one a name means, and what type and collation its value has.

use super::{Binder, Bound, Scope};
use crate::aggregates::{self, Aggregate};
use crate::arithmetic::Arithmetic;
use crate::cast::Strictness;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{Comparison, Expr};
use crate::functions::{self, Returns};
use crate::types::{Base, Type};
use crate::value::Value;
use sqlparser::ast;

/// Arguments of a function of PostgreSQL's dialect.
const ARGUMENTS_MAX: usize = 100;

/// True for what looks like a function and takes as many values as one likes.
fn is_form(name: &str) -> bool {
    matches!(name, "coalesce" | "greatest" | "least" | "row" | "grouping")
}

impl Binder<'_> {
    /// A name of a sequence that is known when the statement runs is looked for then, along the path.
    fn name_sequence(&self, arguments: &mut [Bound]) -> Result<()> {
        let Some(first) = arguments.first_mut() else { return Ok(()) };
        if matches!(first.expr, Expr::Const(_)) || !matches!(first.ty.base, Base::Text | Base::Unknown) {
            return Ok(());
        }
        let text = self.cast_to(first.clone(), Type::TEXT, Strictness::Explicit)?;
        *first = self.call("name_along_path", vec![text])?;
        Ok(())
    }

    pub(super) fn bind_function(&self, scope: &Scope<'_>, function: &ast::Function) -> Result<Bound> {
        let name = match function.name.0.last() {
            Some(ast::ObjectNamePart::Identifier(ident)) => ident.value.to_lowercase(),
            _ => return Err(Error::unsupported(format!("'{}'", function.name))),
        };
        if let Some(over) = &function.over {
            return self.bind_window(scope, &name, function, over);
        }
        let empty = Vec::new();
        let (given, list) = match &function.args {
            ast::FunctionArguments::None => (&empty, None),
            ast::FunctionArguments::List(list) => (&list.args, Some(list)),
            ast::FunctionArguments::Subquery(query) if name == "array" => {
                return self.bind_array_of_query(scope, query);
            }
            ast::FunctionArguments::Subquery(_) => return Err(Error::unsupported(format!("{name}(SELECT ...)"))),
        };
        if self.dialect == Dialect::Postgres && given.len() > ARGUMENTS_MAX && !is_form(&name) {
            let what = format!("cannot pass more than {ARGUMENTS_MAX} arguments to a function");
            return Err(Error::new(Condition::TooManyArguments, what));
        }
        let is_star = matches!(given.as_slice(), [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard)]);
        let is_extreme =
            matches!(name.as_str(), "min" | "max") && given.len() > 1 && self.dialect == Dialect::Tarantool;
        let counts_nothing = name == "count" && given.is_empty() && self.dialect == Dialect::Tarantool;
        if let Some(aggregate) =
            aggregates::find(self.dialect, &name, is_star || counts_nothing).filter(|_| !is_extreme)
        {
            return self.bind_aggregate(scope, aggregate, &name, function, list);
        }
        if let Some(own) = self.bind_own_call(scope, &name, given)? {
            return Ok(own);
        }
        if super::sets::is_set(self.dialect, &name) {
            return self.bind_set_in_projection(scope, &name, given);
        }
        if let Some(own) = self.bind_json_call(scope, &name, given)? {
            return Ok(own);
        }
        let named = if self.dialect == Dialect::Postgres { parts_by_name(&name, given) } else { None };
        let given = named.as_deref().unwrap_or(given);
        let mut arguments = Vec::with_capacity(given.len());
        for argument in given {
            let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) = argument else {
                let is_named = !matches!(argument, ast::FunctionArg::Unnamed(_));
                return Err(match is_named && self.dialect == Dialect::Postgres {
                    true => {
                        let what = format!("function {name}({argument}) does not exist");
                        Error::new(Condition::UndefinedFunction, what)
                    }
                    false => Error::unsupported(format!("'{name}({argument})'")),
                });
            };
            arguments.push(self.bind(scope, expr)?);
        }
        if self.dialect == Dialect::Postgres && matches!(name.as_str(), "nextval" | "currval" | "setval") {
            self.name_sequence(&mut arguments)?;
        }
        if self.dialect == Dialect::Postgres
            && let Some(own) = match self.bind_array_call(&name, &mut arguments)? {
                Some(own) => Some(own),
                None => match self.bind_enum_call(&name, &mut arguments)? {
                    Some(own) => Some(own),
                    None => self.bind_typed_call(&name, &mut arguments)?,
                },
            }
        {
            return Ok(own);
        }
        if let Some(own) = self.bind_time_call(&name, &mut arguments)? {
            return Ok(own);
        }
        if name == "find_in_set"
            && let Some(own) = self.place_in_set(&arguments)?
        {
            return Ok(own);
        }
        match name.as_str() {
            "if" | "iif" if arguments.len() == 3 => {
                let otherwise = arguments.pop();
                let result = arguments.pop();
                let condition = arguments.pop();
                let (Some(condition), Some(result), Some(otherwise)) = (condition, result, otherwise) else {
                    return Err(Error::unsupported(name));
                };
                let condition = self.as_condition(condition)?;
                let (values, ty) = self.alike(vec![result, otherwise], "IF")?;
                let collation = self.collation_of_values(&values);
                let mut values = values.into_iter().map(|bound| bound.expr);
                let (Some(result), Some(otherwise)) = (values.next(), values.next()) else {
                    return Err(Error::unsupported(name));
                };
                return Ok(Bound {
                    collation,
                    ..Bound::new(Expr::Case(vec![(condition, result)], Box::new(otherwise)), ty)
                });
            }
            "str_to_date" if self.dialect == Dialect::Mysql => {
                let format = arguments.get(1).map_or(Expr::Const(Value::Null), |format| format.expr.clone());
                let digits = super::mysql::digits_of_format(&format);
                if super::mysql::is_format_of_times(&format) {
                    let found = self.call("str_to_time", arguments)?;
                    return Ok(Bound { ty: super::times::type_of(digits), ..found });
                }
                let found = self.call(&name, arguments)?;
                return match super::mysql::is_format_of_days(&format) {
                    true => self.cast_to(found, Type::of(Base::Date), Strictness::Explicit),
                    false => Ok(Bound { ty: super::times::moment_of(digits), ..found }),
                };
            }
            "nullif" if arguments.len() == 2 && self.dialect == Dialect::Mysql => {
                let (Some(other), Some(value)) = (arguments.pop(), arguments.pop()) else {
                    return Err(Error::unsupported(name));
                };
                let (compared, other) = match other.ty.base {
                    Base::Text => (value.clone(), other),
                    _ => self.beside_documents(value.clone(), other)?,
                };
                let is_same = self.compare(Comparison::Equal, compared, other)?;
                let null = Expr::Const(Value::Null);
                let collation = self.collation_of_values(std::slice::from_ref(&value));
                let expr = Expr::Case(vec![(is_same, null)], Box::new(value.expr));
                return Ok(Bound { collation, ..Bound::new(expr, value.ty) });
            }
            "nullif" if arguments.len() == 2 && self.dialect == Dialect::Postgres => {
                let (Some(other), Some(value)) = (arguments.pop(), arguments.pop()) else {
                    return Err(Error::unsupported(name));
                };
                let (value, other) = self.unify(value, other, "=")?;
                let Some(_) = &value.collation else { return self.call(&name, vec![value, other]) };
                let is_same = self.compare(Comparison::Equal, value.clone(), other)?;
                let branches = vec![(is_same, Expr::Const(Value::Null))];
                return Ok(Bound { expr: Expr::Case(branches, Box::new(value.expr)), ..value });
            }
            // NULL has no letters of a language, and what is made of it has none: it keeps its case.
            "quote"
                if self.dialect == Dialect::Mysql
                    && matches!(arguments.as_slice(), [Bound { expr: Expr::Const(Value::Null), .. }]) =>
            {
                let text = Box::new(Expr::Const(Value::text("NULL")));
                let ty = Type::of(Base::Bytes);
                return Ok(Bound::new(Expr::Cast(ty, Strictness::Explicit, text), ty));
            }
            "lower" | "upper" | "lcase" | "ucase"
                if self.dialect == Dialect::Mysql
                    && matches!(arguments.as_slice(), [Bound { ty: Type { base: Base::Bytes, .. }, .. }]) =>
            {
                return Ok(arguments.remove(0));
            }
            "mod" if arguments.len() == 2 && self.dialect == Dialect::Mysql => {
                let (Some(b), Some(a)) = (arguments.pop(), arguments.pop()) else {
                    return Err(Error::unsupported(name));
                };
                return self.arithmetic(Arithmetic::Remainder, a, b);
            }
            "pg_typeof" if arguments.len() == 1 && self.dialect == Dialect::Postgres => {
                let name = match arguments[0].ty.base {
                    Base::Unknown => "unknown".to_string(),
                    _ => crate::user_types::with_names(self.database, &arguments[0].ty.to_string()).into_owned(),
                };
                return Ok(Bound::new(Expr::Const(Value::text(name)), Type::TEXT));
            }
            "field" | "strcmp" if self.dialect == Dialect::Mysql => return self.compared_call(&name, arguments),
            "regexp_replace" | "regexp_substr" | "regexp_instr" | "find_in_set" | "locate" | "instr"
                if self.dialect == Dialect::Mysql
                    && arguments.len() >= 2
                    && !self.tells_case(&arguments[0], &arguments[1]) => {}
            "regexp_replace" | "regexp_substr" | "regexp_instr" | "find_in_set" | "locate" | "instr"
                if self.dialect == Dialect::Mysql =>
            {
                return self.call(&format!("{name}_exact"), arguments);
            }
            "min" => return self.call("least", arguments),
            "max" => return self.call("greatest", arguments),
            _ => {}
        }
        self.call(&name, arguments)
    }

    /// A call of a function. Errors: `UndefinedFunction`.
    pub(super) fn call(&self, name: &str, arguments: Vec<Bound>) -> Result<Bound> {
        let Some(function) = functions::find(self.dialect, name) else {
            let message = match self.dialect {
                Dialect::Tarantool => format!("Function '{}' does not exist", name.to_uppercase()),
                Dialect::Mysql => format!("FUNCTION {name} does not exist"),
                Dialect::Postgres => {
                    let types: Vec<String> = arguments.iter().map(|argument| argument.ty.to_string()).collect();
                    format!("function {name}({}) does not exist", types.join(", "))
                }
            };
            return Err(Error::new(Condition::UndefinedFunction, message));
        };
        let (least, most) = function.arguments;
        if !(least..=most).contains(&arguments.len()) {
            let wanted = if least == most { least.to_string() } else { format!("{least} or more") };
            let message = format!(
                "Wrong number of arguments is passed to {}(): expected {wanted}, got {}",
                name.to_uppercase(),
                arguments.len()
            );
            return Err(Error::new(Condition::UndefinedFunction, message));
        }
        let mut arguments = self.labels_as_arguments(function.result, arguments)?;
        if self.dialect == Dialect::Postgres {
            self.check_kinds(name, &arguments)?;
        }
        if self.dialect == Dialect::Mysql && arguments.iter().any(|argument| argument.ty.base == Base::Time) {
            let keeps = matches!(function.result, Returns::Common | Returns::First);
            arguments = arguments
                .into_iter()
                .map(|argument| self.time_as_argument(name, argument, keeps))
                .collect::<Result<_>>()?;
        }
        let is_numeric = super::exact::calculates(name) || matches!(name, "hex" | "bin" | "oct" | "conv" | "trunc");
        let count = arguments.len();
        for (at, argument) in arguments.iter_mut().enumerate().filter(|_| is_numeric) {
            let to = match (self.dialect, argument.ty.base) {
                (Dialect::Mysql, Base::Bool) => Base::Int8,
                (Dialect::Mysql, Base::Unknown) if super::exact::is_of_numbers(name) => {
                    *argument = self.null_as_number(argument.clone())?;
                    continue;
                }
                (Dialect::Mysql, Base::Text | Base::Bytes | Base::Json) if super::exact::is_of_numbers(name) => {
                    Base::Double
                }
                // A literal that nothing has given a type is a double there.
                (Dialect::Postgres, Base::Unknown) if name == "round" && count > 1 => Base::Decimal,
                (Dialect::Postgres, Base::Unknown) if matches!(function.result, Returns::First) => Base::Double,
                // PostgreSQL has these of doubles and of decimals, and prefers doubles.
                (Dialect::Postgres, _) if argument.ty.is_integer() && rounds(name, count) => Base::Double,
                (Dialect::Postgres, _) if argument.ty.is_integer() && at == 0 && rounds(name, 1) => Base::Decimal,
                _ => continue,
            };
            *argument = self.cast_to(argument.clone(), Type::of(to), Strictness::Explicit)?;
        }
        let are_bytes = self.dialect == Dialect::Mysql
            && super::mysql::keeps_bytes(name)
            && arguments.iter().any(|argument| argument.ty.base == Base::Bytes);
        if are_bytes {
            // A byte is a character then, and the result is bytes again.
            for argument in arguments.iter_mut().filter(|argument| !argument.ty.is_number()) {
                let characters = self.plain_call("characters_of_bytes", vec![argument.expr.clone()])?;
                *argument = Bound::new(characters, Type::TEXT);
            }
            let found = self.call(name, arguments)?;
            let bytes = self.plain_call("bytes_of_characters", vec![found.expr])?;
            return Ok(Bound::new(bytes, Type::of(Base::Bytes)));
        }
        if let ("substr" | "substring" | "mid", Dialect::Mysql, Some(first)) =
            (name, self.dialect, arguments.first_mut())
            && !matches!(first.ty.base, Base::Text | Base::Bytes)
        {
            // A part of a number is text.
            *first = self.cast_to(first.clone(), Type::TEXT, Strictness::Explicit)?;
        }
        let (arguments, ty) = match function.result {
            Returns::Type(base) => (arguments, Type::of(base)),
            Returns::First => {
                let first = arguments.first().map_or(Type::UNKNOWN, |argument| argument.ty);
                // Others give what is as exact as a double.
                let is_kept = match self.dialect {
                    Dialect::Postgres => matches!(name, "abs" | "nullif"),
                    _ => matches!(name, "nullif"),
                };
                (arguments, if is_kept { first.without_length() } else { Type::of(first.base) })
            }
            Returns::Common => {
                if self.dialect == Dialect::Mysql && matches!(name, "greatest" | "least") {
                    self.nulls_as_numbers(&mut arguments)?;
                }
                self.alike(arguments, &name.to_uppercase())?
            }
            Returns::ArrayOf(base) => (arguments, Type::array_of(Type::of(base))),
            Returns::Element => {
                let ty = arguments.first().map_or(Type::UNKNOWN, |argument| argument.ty.element());
                (arguments, ty)
            }
            Returns::FirstArray => {
                let ty = arguments.iter().find(|argument| argument.ty.base == Base::Array).map(|argument| argument.ty);
                (arguments, ty.unwrap_or_else(|| Type::of(Base::Array)))
            }
        };
        let ty = match self.dialect {
            Dialect::Mysql => super::exact::of_call(name, &arguments, ty),
            _ => ty,
        };
        let is_exact_alone = name == "mod" || name == "round" && arguments.len() == 2;
        if is_exact_alone && self.dialect == Dialect::Postgres && ty.base == Base::Double {
            let what = format!("function {name}(double precision, integer) does not exist");
            return Err(Error::new(Condition::UndefinedFunction, what));
        }
        let collation = match function.result {
            Returns::Type(Base::Text) if self.dialect == Dialect::Mysql && super::mysql::makes_own_text(name) => {
                self.usual_collation()
            }
            // Its letters are told apart by their case.
            Returns::Type(Base::Text) if self.dialect == Dialect::Mysql && name == super::mysql::WEAK => None,
            Returns::Type(Base::Text) if self.dialect == Dialect::Mysql => self.collation_of_text(&arguments),
            // Another spelling of its first argument.
            Returns::Type(Base::Text) if self.dialect == Dialect::Tarantool && keeps_collation(name) => {
                arguments.first().and_then(|text| text.collation.clone())
            }
            Returns::Type(_) | Returns::ArrayOf(_) => None,
            _ => self.collation_of_values(&arguments),
        };
        let mut exprs = Vec::with_capacity(arguments.len());
        for argument in arguments {
            exprs.push(match argument.ty.base {
                Base::Timestamp
                    if self.dialect == Dialect::Mysql && argument.ty.length > 1 && super::mysql::reads_text(name) =>
                {
                    self.cast_to(argument, Type::TEXT, Strictness::Explicit)?.expr
                }
                Base::Date if self.dialect == Dialect::Mysql && super::mysql::reads_text(name) => {
                    self.cast_to(argument, Type::TEXT, Strictness::Explicit)?.expr
                }
                // Text of a number of four bytes has the digits that it is shown with.
                Base::Double if argument.ty.is_shown_shorter() && shows_text(self.dialect, name) => {
                    self.cast_to(argument, Type::TEXT, Strictness::Explicit)?.expr
                }
                Base::Decimal if !super::exact::calculates(name) => self.settled(argument)?.expr,
                Base::Unknown if !matches!(function.result, Returns::Common) => {
                    self.cast_to(argument, Type::TEXT, Strictness::Explicit)?.expr
                }
                _ => argument.expr,
            });
        }
        let expr = match name {
            "coalesce" | "ifnull" => Expr::Coalesce(exprs),
            _ => Expr::Call(function, exprs),
        };
        let found = Bound { collation, ..Bound::new(expr, ty) };
        let is_whole = matches!(name, "ceil" | "ceiling" | "floor") && ty.base == Base::Decimal;
        match self.dialect == Dialect::Mysql && is_whole && (1..=super::exact::DIGITS_OF_WHOLE).contains(&ty.length) {
            true => {
                let whole = self.cast_to(found, Type::of(Base::Int8), Strictness::Explicit)?;
                Ok(Bound { ty: Type { length: ty.length, ..whole.ty }, ..whole })
            }
            false => Ok(found),
        }
    }

    /// A call of a function of our own. Errors: there is none.
    pub(super) fn plain_call(&self, name: &str, arguments: Vec<Expr>) -> Result<Expr> {
        let function = functions::find(self.dialect, name).ok_or_else(|| Error::unsupported(name))?;
        Ok(Expr::Call(function, arguments))
    }

    /// Functions of numbers take numbers. Errors: `UndefinedFunction`.
    fn check_kinds(&self, name: &str, arguments: &[Bound]) -> Result<()> {
        let is_of_numbers = rounds(name, 1)
            || matches!(name, "abs" | "mod" | "sqrt" | "power" | "pow" | "exp" | "ln")
            || self.dialect == Dialect::Postgres && crate::angles::find(name).is_some();
        let is_open = |ty: Type| matches!(ty.base, Base::Unknown | Base::Any | Base::Scalar | Base::Number);
        let is_wrong = |argument: &Bound| !is_open(argument.ty) && !argument.ty.is_number();
        let is_no_moment = |argument: &Bound| argument.ty.is_number() || argument.ty.base == Base::Bool;
        let truncates = name == "date_trunc" && arguments.get(1).is_some_and(is_no_moment);
        let is_text_of_address = takes_text(name) && arguments.iter().any(|argument| argument.ty.is_coded());
        match truncates || is_text_of_address || is_of_numbers && arguments.iter().any(is_wrong) {
            true => {
                let types: Vec<String> = arguments.iter().map(|argument| argument.ty.to_string()).collect();
                let what = format!("function {name}({}) does not exist", types.join(", "));
                Err(Error::new(Condition::UndefinedFunction, what))
            }
            false => Ok(()),
        }
    }

    fn bind_aggregate(
        &self,
        scope: &Scope<'_>,
        aggregate: Aggregate,
        name: &str,
        function: &ast::Function,
        list: Option<&ast::FunctionArgumentList>,
    ) -> Result<Bound> {
        let misused = |what: &str| Error::new(Condition::Grouping, what.to_string());
        let Some(calls) = &scope.calls else {
            let what = match self.dialect {
                Dialect::Tarantool => format!("misuse of aggregate function {}()", name.to_uppercase()),
                Dialect::Mysql => "Invalid use of group function".to_string(),
                Dialect::Postgres => "aggregate functions are not allowed here".to_string(),
            };
            return Err(misused(&what).mysql(1111));
        };
        if scope.in_aggregate.get() {
            return Err(misused("aggregate function calls cannot be nested"));
        }
        scope.in_aggregate.set(true);
        let bound = self.bind_aggregate_parts(scope, aggregate, name, function, list);
        scope.in_aggregate.set(false);
        let (mut call, arguments) = bound?;
        call.arguments = arguments.into_iter().map(|argument| argument.expr).collect();
        // The same aggregate twice is computed once.
        let mut calls = calls.borrow_mut();
        let known = calls.iter().find(|other| {
            other.aggregate == call.aggregate
                && other.is_distinct == call.is_distinct
                && other.arguments.len() == call.arguments.len()
                && other.arguments.iter().zip(&call.arguments).all(|(a, b)| a.is_like(b))
                && other.filter.is_none()
                && call.filter.is_none()
                && other.order.is_empty()
                && call.order.is_empty()
        });
        let (ty, collation) = (call.result, call.collation.clone());
        if let Some(known) = known {
            return Ok(Bound { collation, ..Bound::new(Expr::Slot(known.slot), ty) });
        }
        call.slot = self.new_slot();
        let slot = call.slot;
        calls.push(call);
        Ok(Bound { collation, ..Bound::new(Expr::Slot(slot), ty) })
    }
}

/// True for functions that take a number as the text that it is shown as.
fn shows_text(dialect: Dialect, name: &str) -> bool {
    match dialect {
        Dialect::Mysql => {
            super::mysql::reads_text(name) && name != "hex"
                || matches!(name, "ascii" | "ord" | "bit_length" | "soundex" | "to_base64" | "find_in_set" | "elt")
                || matches!(name, "regexp_substr" | "regexp_instr")
        }
        Dialect::Postgres => matches!(name, "concat" | "concat_ws" | "format" | "quote_literal" | "quote_nullable"),
        Dialect::Tarantool => false,
    }
}

/// True for functions that make whole numbers of others, if they get so many arguments.
fn rounds(name: &str, count: usize) -> bool {
    count == 1 && matches!(name, "round" | "trunc" | "ceil" | "ceiling" | "floor" | "sign")
}

/// True for functions of PostgreSQL that take no address and no range for the text that it is shown as.
fn takes_text(name: &str) -> bool {
    const NAMES: [&str; 20] = [
        "upper",
        "lower",
        "initcap",
        "length",
        "char_length",
        "octet_length",
        "bit_length",
        "substr",
        "substring",
        "trim",
        "btrim",
        "ltrim",
        "rtrim",
        "replace",
        "left",
        "right",
        "md5",
        "reverse",
        "split_part",
        "encode",
    ];
    NAMES.contains(&name)
}

/// True for functions of Tarantool whose result has the collation of their first argument.
pub(crate) fn keeps_collation(name: &str) -> bool {
    matches!(name, "upper" | "lower" | "trim" | "replace" | "substr")
}

/// The arguments of `make_interval`, some of which are named, in their order. None: it is another call, or none is named, or a name means nothing.
fn parts_by_name(name: &str, given: &[ast::FunctionArg]) -> Option<Vec<ast::FunctionArg>> {
    const PARTS: [&str; 7] = ["years", "months", "weeks", "days", "hours", "mins", "secs"];
    if name != "make_interval" || given.iter().all(|argument| matches!(argument, ast::FunctionArg::Unnamed(_))) {
        return None;
    }
    let zero = ast::Expr::Value(ast::Value::Number("0".to_string(), false).into());
    let mut parts = vec![ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(zero)); PARTS.len()];
    for (at, argument) in given.iter().enumerate() {
        let (place, value) = match argument {
            ast::FunctionArg::Unnamed(value) => (at, value),
            ast::FunctionArg::Named { name, arg, .. } => {
                (PARTS.iter().position(|part| name.value.eq_ignore_ascii_case(part))?, arg)
            }
            ast::FunctionArg::ExprNamed { name: ast::Expr::Identifier(name), arg, .. } => {
                (PARTS.iter().position(|part| name.value.eq_ignore_ascii_case(part))?, arg)
            }
            ast::FunctionArg::ExprNamed { .. } => return None,
        };
        *parts.get_mut(place)? = ast::FunctionArg::Unnamed(value.clone());
    }
    Some(parts)
}
