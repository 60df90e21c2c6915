//! Values as JSON, and the operators and functions of JSON.

use super::{Binder, Bound, Scope};
use crate::cast::Strictness;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::Expr;
use crate::types::{Base, Type};
use crate::value::Value;
use sqlparser::ast::{self, BinaryOperator};

impl Binder<'_> {
    /// A value as JSON; null stays null.
    pub(super) fn as_json(&self, bound: Bound) -> Result<Bound> {
        let bound = self.as_texts(bound)?;
        let bound = match bound.ty.base {
            Base::Json => return Ok(bound),
            Base::Unknown => self.cast_to(bound, Type::TEXT, Strictness::Explicit)?,
            _ => bound,
        };
        let code = Bound::new(Expr::Const(Value::Int(bound.ty.code())), Type::of(Base::Int8));
        let mut found = self.call("json_of", vec![bound, code])?;
        found.ty = Type::json(self.dialect == Dialect::Mysql);
        Ok(found)
    }

    /// What a document is where MySQL wants a number: a true one is 1, a text the number that it begins with. Others stay as they are, and all beside an operator.
    pub(super) fn number_of_document(&self, bound: Bound, to: Type, strictness: Strictness) -> Result<Bound> {
        let is_one = self.dialect == Dialect::Mysql && bound.ty.base == Base::Json && to.is_number();
        match is_one && strictness != Strictness::Comparison {
            true => self.call("number_of_document", vec![bound]),
            false => Ok(bound),
        }
    }

    pub(super) fn double_of_document(&self, bound: Bound) -> Result<Bound> {
        let text = self.call("number_of_document", vec![bound])?;
        self.cast_to(text, Type::of(Base::Double), Strictness::Comparison)
    }

    /// What CASE and NULLIF compare: in MySQL a document is its text beside text, and a number beside numbers and truth values, unlike for the operator.
    pub(super) fn beside_documents(&self, operand: Bound, value: Bound) -> Result<(Bound, Bound)> {
        let is_number = |bound: &Bound| bound.ty.is_number() || bound.ty.base == Base::Bool;
        Ok(match (self.dialect, operand.ty.base, value.ty.base) {
            (Dialect::Mysql, Base::Json, Base::Text) => {
                (self.cast_to(operand, Type::TEXT, Strictness::Explicit)?, value)
            }
            (Dialect::Mysql, Base::Json, _) if is_number(&value) => (self.double_of_document(operand)?, value),
            (Dialect::Mysql, _, Base::Json) if is_number(&operand) => (operand, self.double_of_document(value)?),
            _ => (operand, value),
        })
    }

    /// Two sides of a comparison: TRUE and FALSE as they are written are those of JSON beside a document of MySQL's.
    pub(super) fn beside_truths(
        &self,
        scope: &Scope<'_>,
        (a, left): (Bound, &ast::Expr),
        (b, right): (Bound, &ast::Expr),
    ) -> Result<(Bound, Bound)> {
        Ok(match (self.dialect, a.ty.base, b.ty.base) {
            (Dialect::Mysql, Base::Json, _) if is_truth(right) => (a, self.as_json(self.bind_for_json(scope, right)?)?),
            (Dialect::Mysql, _, Base::Json) if is_truth(left) => (self.as_json(self.bind_for_json(scope, left)?)?, b),
            _ => (a, b),
        })
    }

    /// An argument that is to become JSON: a row of a table too, by the name of the table.
    pub(super) fn bind_for_json(&self, scope: &Scope<'_>, expr: &ast::Expr) -> Result<Bound> {
        if let ast::Expr::Value(value) = expr
            && let ast::Value::Boolean(value) = value.value
        {
            return Ok(Bound::new(Expr::Const(Value::Bool(value)), Type::BOOL));
        }
        let ast::Expr::Identifier(ident) = expr else { return self.bind(scope, expr) };
        match self.bind(scope, expr) {
            Err(error) if error.condition() == Condition::UndefinedColumn && self.dialect == Dialect::Postgres => {
                let name = self.dialect.fold(ident);
                let mut here = Some(scope);
                while let Some(scope) = here {
                    if let Some(relation) = scope.relations.iter().find(|relation| relation.alias == name) {
                        let mut arguments = Vec::new();
                        for column in relation.columns.iter().filter(|column| !column.is_hidden) {
                            let value = self.known_type(self.at(column))?;
                            arguments.push(Bound::new(Expr::Const(Value::text(column.name.as_str())), Type::TEXT));
                            arguments.push(self.as_json(value)?);
                        }
                        let mut row = self.call("json_row", arguments)?;
                        row.ty = Type::json(false);
                        return Ok(row);
                    }
                    here = scope.parent;
                }
                Err(error)
            }
            found => found,
        }
    }

    /// `->` and `->>`, and subscripts.
    pub(super) fn json_member(&self, document: Bound, step: Bound, as_text: bool) -> Result<Bound> {
        let ty = if as_text { Type::TEXT } else { document.ty };
        let step = match step.ty.base {
            Base::Unknown => self.cast_to(step, Type::TEXT, Strictness::Explicit)?,
            _ => step,
        };
        let name = if as_text { "json_member_text" } else { "json_member" };
        let mut found = self.call(name, vec![document, step])?;
        found.ty = ty;
        Ok(found)
    }

    /// Operators of documents and of arrays. Errors: there is no such operator.
    pub(super) fn bind_document_operator(&self, op: &BinaryOperator, a: Bound, b: Bound) -> Result<Bound> {
        use BinaryOperator as B;
        let as_document = |bound: Bound| match bound.ty.base {
            Base::Json => Ok(bound),
            Base::Unknown | Base::Any => self.cast_to(bound, Type::json(true), Strictness::Explicit),
            Base::Text if self.dialect == Dialect::Mysql => self.cast_to(bound, Type::json(true), Strictness::Explicit),
            _ => Err(self.no_operator(&op.to_string(), bound.ty, Type::json(true))),
        };
        let texts = |bound: Bound| match bound.ty.base {
            Base::Array => Ok(bound),
            _ => self.cast_to(bound, Type::array_of(Type::TEXT), Strictness::Explicit),
        };
        if self.dialect == Dialect::Mysql {
            return match op {
                B::Arrow | B::LongArrow => {
                    let path = self.cast_to(b, Type::TEXT, Strictness::Explicit)?;
                    let found = self.call("json_extract", vec![a, path])?;
                    if *op == B::LongArrow { self.call("json_unquote", vec![found]) } else { Ok(found) }
                }
                _ => Err(Error::unsupported(format!("operator {op}"))),
            };
        }
        if let Some(found) = self.operator_of_nets(&op.to_string(), &a, &b)? {
            return Ok(found);
        }
        if let Some(found) = self.operator_of_ranges(&op.to_string(), &a, &b)? {
            return Ok(found);
        }
        if let B::AtArrow | B::ArrowAt | B::PGOverlap = op
            && let Some(found) = self.compare_arrays(&op.to_string(), &a, &b)?
        {
            return Ok(found);
        }
        match op {
            B::Arrow => self.json_member(as_document(a)?, b, false),
            B::LongArrow => self.json_member(as_document(a)?, b, true),
            B::HashArrow | B::HashLongArrow => {
                let document = as_document(a)?;
                let ty = if *op == B::HashArrow { document.ty } else { Type::TEXT };
                let name = if *op == B::HashArrow { "json_at" } else { "json_at_text" };
                let mut found = self.call(name, vec![document, texts(b)?])?;
                found.ty = ty;
                Ok(found)
            }
            B::AtArrow => self.call("json_includes", vec![as_document(a)?, as_document(b)?]),
            B::ArrowAt => self.call("json_includes", vec![as_document(b)?, as_document(a)?]),
            B::Question => {
                let b = self.cast_to(b, Type::TEXT, Strictness::Explicit)?;
                self.call("json_has", vec![as_document(a)?, b])
            }
            B::QuestionPipe => self.call("json_has_any", vec![as_document(a)?, texts(b)?]),
            B::QuestionAnd => self.call("json_has_all", vec![as_document(a)?, texts(b)?]),
            B::StringConcat => self.call("json_joined", vec![as_document(a)?, as_document(b)?]),
            B::HashMinus => self.call("json_without_path", vec![as_document(a)?, texts(b)?]),
            B::Minus => {
                let b = match b.ty.base {
                    Base::Unknown => self.cast_to(b, Type::TEXT, Strictness::Explicit)?,
                    _ => b,
                };
                self.call("json_without", vec![as_document(a)?, b])
            }
            B::AtQuestion | B::AtAt => {
                let path = self.cast_to(b, Type::TEXT, Strictness::Explicit)?;
                let name = if *op == B::AtQuestion { "jsonb_path_exists" } else { "jsonb_path_match" };
                self.call(name, vec![as_document(a)?, path])
            }
            _ => match a.ty.base == Base::Unknown && b.ty.base == Base::Unknown {
                true => Err(Error::unsupported(format!("operator {op}"))),
                false => Err(self.no_operator(&op.to_string(), a.ty, b.ty)),
            },
        }
    }

    /// Calls of functions of JSON, whose arguments become JSON. None: it is another one.
    pub(super) fn bind_json_call(
        &self,
        scope: &Scope<'_>,
        name: &str,
        given: &[ast::FunctionArg],
    ) -> Result<Option<Bound>> {
        if self.dialect == Dialect::Tarantool || !(name.contains("json") || name == "member_of") {
            return Ok(None);
        }
        let is_mysql = self.dialect == Dialect::Mysql;
        let mut exprs = Vec::with_capacity(given.len());
        for argument in given {
            match argument {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => exprs.push(expr),
                other => return Err(Error::unsupported(format!("'{name}({other})'"))),
            }
        }
        let json = |expr: &ast::Expr| self.as_json(self.bind_for_json(scope, expr)?);
        let as_type = |expr: &ast::Expr, ty: Type| {
            let bound = self.bind(scope, expr)?;
            match bound.ty.base {
                base if base == ty.base => Ok(bound),
                _ => self.cast_to(bound, ty, Strictness::Explicit),
            }
        };
        let document = |expr: &ast::Expr| -> Result<Bound> {
            let bound = self.bind(scope, expr)?;
            match bound.ty.base {
                Base::Json => Ok(bound),
                // Text that is none is refused when it is looked at, in words of the function.
                _ if is_mysql => self.cast_to(bound, Type::TEXT, Strictness::Explicit),
                base if !matches!(base, Base::Unknown | Base::Any | Base::Scalar) => {
                    let what = format!("function {name}({}) does not exist", bound.ty);
                    Err(Error::new(Condition::UndefinedFunction, what))
                }
                _ => self.cast_to(bound, Type::json(name.starts_with("jsonb")), Strictness::Explicit),
            }
        };
        let text = |expr: &ast::Expr| as_type(expr, Type::TEXT);
        let texts = |expr: &ast::Expr| as_type(expr, Type::array_of(Type::TEXT));
        let count = exprs.len();
        let wrong_count = || {
            Error::new(
                Condition::UndefinedFunction,
                format!("Incorrect parameter count in the call to native function '{name}'"),
            )
            .mysql(1582)
        };
        let mut arguments = Vec::with_capacity(count);
        if is_mysql {
            match name {
                "json_object" => {
                    if count % 2 != 0 {
                        return Err(wrong_count());
                    }
                    for (number, expr) in exprs.iter().enumerate() {
                        arguments.push(if number % 2 == 0 { text(expr)? } else { json(expr)? });
                    }
                }
                "json_array" => {
                    for expr in exprs {
                        arguments.push(json(expr)?);
                    }
                }
                "json_quote" | "json_unquote" | "json_valid" => {
                    for expr in exprs {
                        arguments.push(self.bind(scope, expr)?);
                    }
                }
                "json_set" | "json_insert" | "json_replace" | "json_array_append" | "json_array_insert" => {
                    if count < 3 || count % 2 == 0 {
                        return Err(wrong_count());
                    }
                    for (number, expr) in exprs.iter().enumerate() {
                        arguments.push(match number {
                            0 => document(expr)?,
                            _ if number % 2 == 1 => text(expr)?,
                            _ => json(expr)?,
                        });
                    }
                }
                "json_contains" | "json_merge_patch" | "json_merge_preserve" | "json_merge" | "json_overlaps" => {
                    for (number, expr) in exprs.iter().enumerate() {
                        let is_path = name == "json_contains" && number == 2;
                        arguments.push(if is_path { text(expr)? } else { document(expr)? });
                    }
                }
                "member_of" => {
                    for (number, expr) in exprs.iter().enumerate() {
                        arguments.push(if number == 0 { json(expr)? } else { document(expr)? });
                    }
                }
                _ => {
                    for (number, expr) in exprs.iter().enumerate() {
                        arguments.push(if number == 0 { document(expr)? } else { text(expr)? });
                    }
                }
            }
            return self.call(name, arguments).map(Some);
        }
        let ty = Type::json(name.starts_with("jsonb"));
        match (name, exprs.as_slice()) {
            ("to_json" | "to_jsonb" | "row_to_json" | "array_to_json", [value, ..]) => {
                let ty = Type::json(name == "to_jsonb");
                let bound = self.bind_for_json(scope, value)?;
                if matches!(bound.expr, Expr::Const(Value::Null)) {
                    return Ok(Some(Bound::new(bound.expr, ty)));
                }
                let bound = self.as_json(bound)?;
                return self.cast_to(bound, ty, Strictness::Explicit).map(Some);
            }
            ("json_build_object" | "jsonb_build_object", _) => {
                if count % 2 != 0 {
                    let what = "argument list must have even number of elements";
                    return Err(Error::new(Condition::InvalidArgument, what));
                }
                for (number, expr) in exprs.iter().enumerate() {
                    arguments.push(if number % 2 == 0 { text(expr)? } else { json(expr)? });
                }
            }
            ("json_build_array" | "jsonb_build_array", _) => {
                for expr in exprs {
                    arguments.push(json(expr)?);
                }
            }
            ("json_object" | "jsonb_object", _) => {
                for expr in exprs {
                    arguments.push(texts(expr)?);
                }
            }
            (
                "json_extract_path" | "jsonb_extract_path" | "json_extract_path_text" | "jsonb_extract_path_text",
                [first, steps @ ..],
            ) => {
                arguments.push(document(first)?);
                let mut listed = Vec::new();
                for step in steps {
                    listed.push(text(step)?);
                }
                let mut path = self.call("make_array", listed)?;
                path.ty = Type::array_of(Type::TEXT);
                let as_text = name.ends_with("_text");
                let mut found =
                    self.call(if as_text { "json_at_text" } else { "json_at" }, vec![arguments.remove(0), path])?;
                found.ty = if as_text { Type::TEXT } else { ty };
                return Ok(Some(found));
            }
            ("jsonb_set" | "jsonb_insert" | "jsonb_set_lax", [first, path, value, more @ ..]) => {
                arguments = vec![document(first)?, texts(path)?, document(value)?];
                for flag in more {
                    arguments.push(as_type(flag, Type::BOOL)?);
                }
            }
            ("jsonb_path_exists" | "jsonb_path_match" | "jsonb_path_query_array" | "jsonb_path_query_first", _) => {
                for (number, expr) in exprs.iter().enumerate() {
                    arguments.push(if number == 1 { text(expr)? } else { document(expr)? });
                }
            }
            (_, [first]) => arguments.push(document(first)?),
            _ => {
                for expr in exprs {
                    arguments.push(self.bind(scope, expr)?);
                }
            }
        }
        let mut found = self.call(name, arguments)?;
        if found.ty.base == Base::Json {
            found.ty = ty;
        }
        Ok(Some(found))
    }
}

fn is_truth(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Value(value) if matches!(value.value, ast::Value::Boolean(_)))
}
