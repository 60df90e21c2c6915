//! Conditions of rows, and defaults of columns, alone.

use super::{Binder, Bound, Scope, TableUse};
use crate::cast::Strictness;
use crate::condition::{check_is_fixed, check_is_of_row};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{Expr, Slot};
use crate::table::Table;
use crate::types::{Base, Type};
use sqlparser::ast;
use std::rc::Rc;

impl Binder<'_> {
    /// A condition over the columns of a table, or over one field; and which fields it reads, with their places.
    ///
    /// Errors: names and types that do not fit; it depends on more than the row.
    pub(crate) fn bind_check(
        &self,
        table: &Rc<Table>,
        text: &str,
        field: Option<u32>,
    ) -> Result<(Expr, Vec<(u32, Slot)>)> {
        let expr = self.parse_expression(text)?;
        let (used, mut relation) = self.use_table(Rc::clone(table), self.own_name(table));
        if let Some(field) = field {
            let mut number = 0;
            relation.columns.retain(|_| {
                number += 1;
                number == field + 1
            });
        }
        let mut scope = Scope::new(None);
        scope.relations.push(relation);
        let expr = self.condition(&scope, &expr)?;
        check_is_of_row(&expr)?;
        Ok((expr, used.fields()))
    }

    /// What a text is over the columns of a table, and what it uses of that.
    fn bind_of_row(&self, table: &Rc<Table>, text: &str) -> Result<(Bound, Rc<TableUse>)> {
        let expr = self.parse_expression(text)?;
        let (used, relation) = self.use_table(Rc::clone(table), self.own_name(table));
        let mut scope = Scope::new(None);
        scope.relations.push(relation);
        Ok((self.bind(&scope, &expr)?, used))
    }

    /// A value over the columns of a table, in a type; and which fields it reads, with their places. Errors: names and types that do not fit.
    pub(crate) fn bind_value(
        &self,
        table: &Rc<Table>,
        text: &str,
        ty: Type,
        strictness: Strictness,
    ) -> Result<(Expr, Vec<(u32, Slot)>)> {
        let (bound, used) = self.bind_of_row(table, text)?;
        let expr = self.cast_to(bound, ty, strictness)?.expr;
        Ok((expr, used.fields()))
    }

    /// What a generated column is computed by, and which fields it reads, with their places. Errors: as of `bind_value`; it depends on more than the row.
    pub(crate) fn bind_generated(
        &self,
        table: &Rc<Table>,
        number: usize,
        text: &str,
    ) -> Result<(Expr, Vec<(u32, Slot)>)> {
        let (bound, used) = self.bind_of_row(table, text)?;
        self.check_needs_no_zone(table, &bound.expr, &used.fields())?;
        self.check_array_needs_no_zone(table, bound.ty, &used.fields())?;
        let expr = self.assigned(table, number, bound)?;
        check_is_fixed(self.dialect, &table.columns[number].name, &expr)?;
        Ok((expr, used.fields()))
    }

    /// The type of a key of an index, and the number of its collation. Errors: as of `bind_generated`.
    pub(crate) fn bind_key(&self, table: &Rc<Table>, text: &str) -> Result<(Type, Option<u32>)> {
        let (bound, used) = self.bind_of_row(table, text)?;
        check_is_fixed(self.dialect, "", &bound.expr)?;
        self.check_needs_no_zone(table, &bound.expr, &used.fields())?;
        let ty = if bound.ty.base == Base::Unknown { Type::TEXT } else { bound.ty };
        let collation = bound.collation.filter(|_| ty.base == Base::Text);
        Ok((ty, collation.map(|collation| collation.id())))
    }

    /// Errors: what an expression of PostgreSQL's dialect comes to may depend on the zone of time of a session: it makes a moment with a zone of something
    /// else, or something else of one than by `AT TIME ZONE` of a zone that it names. `fields`: what it reads, and where that is.
    pub(crate) fn check_needs_no_zone(&self, table: &Table, expr: &Expr, fields: &[(u32, Slot)]) -> Result<()> {
        if self.dialect != Dialect::Postgres {
            return Ok(());
        }
        let is_one = |ty: Type| matches!(ty.base, Base::TimestampTz | Base::TimeTz);
        let is_zoned = |ty: Type| is_one(ty) || ty.base == Base::Array && is_one(ty.element());
        let is_moment = |part: &Expr| match part {
            Expr::Slot(slot) => {
                fields.iter().any(|(field, at)| at == slot && is_zoned(table.columns[*field as usize].ty))
            }
            _ => false,
        };
        let is_plain = |part: &Expr| matches!(part, Expr::Const(_) | Expr::Slot(_));
        // As often as they stand anywhere, they have to stand where no zone is asked for.
        let (mut all, mut good, mut makes_one) = (0, usize::from(is_moment(expr)), false);
        expr.walk(&mut |part| {
            all += usize::from(is_moment(part));
            match part {
                Expr::Cast(to, _, inner) => {
                    makes_one |= (is_zoned(*to) || to.is_zoned()) && !matches!(**inner, Expr::Const(_))
                }
                Expr::Call(function, given) => {
                    makes_one |=
                        function.name == "make_timestamptz" || function.name == "to_timestamp" && given.len() > 1;
                    let names_zone = matches!(function.name, "at_zone" | "zoned_clock_at")
                        && given.get(1).is_some_and(|zone| matches!(zone, Expr::Const(_)));
                    // What is asked of an array as one.
                    if function.name.starts_with("array_") && function.name != "array_text"
                        || function.name == "cardinality"
                    {
                        good += given.iter().filter(|part| is_moment(part)).count();
                    }
                    if names_zone {
                        good += given.iter().filter(|part| is_moment(part)).count();
                    }
                }
                Expr::Coalesce(parts) => good += parts.iter().filter(|part| is_moment(part)).count(),
                Expr::IsNull(inner) => good += usize::from(is_moment(inner)),
                Expr::Compare(_, a, b, _) if is_plain(a) && is_plain(b) => {
                    good += usize::from(is_moment(a)) + usize::from(is_moment(b));
                }
                Expr::Case(branches, otherwise) => {
                    let results = branches.iter().map(|(_, result)| result).chain([&**otherwise]);
                    good += results.filter(|result| is_moment(result)).count();
                }
                _ => {}
            }
        });
        match makes_one || good < all {
            true => Err(Error::new(Condition::Recursion, "generation expression is not immutable")),
            false => Ok(()),
        }
    }

    /// Errors: an array of moments with a zone is made of one of others, as that of a session's zone.
    fn check_array_needs_no_zone(&self, table: &Table, ty: Type, fields: &[(u32, Slot)]) -> Result<()> {
        let is_of = |ty: Type, base: Base| ty.base == Base::Array && ty.element().base == base;
        let reads = fields.iter().any(|(field, _)| {
            let read = table.columns[*field as usize].ty;
            is_of(read, Base::Timestamp) || is_of(read, Base::Date) || is_of(read, Base::Text)
        });
        match self.dialect == Dialect::Postgres && is_of(ty, Base::TimestampTz) && reads {
            true => Err(Error::new(Condition::Recursion, "generation expression is not immutable")),
            false => Ok(()),
        }
    }

    /// What stands in a column that a row says nothing of. Errors: those of its expression.
    pub(crate) fn bind_default(&self, table: &Table, number: usize) -> Result<Expr> {
        self.default_of(table, number)
    }

    /// The expression that a text is.
    pub(crate) fn parse_expression(&self, text: &str) -> Result<ast::Expr> {
        let none = || Error::new(Condition::Syntax, format!("'{text}' is no expression"));
        let parsed = self.dialect.parse(&format!("SELECT {text}"))?;
        let Some(ast::Statement::Query(query)) = parsed.into_iter().next() else { return Err(none()) };
        let ast::SetExpr::Select(select) = *query.body else { return Err(none()) };
        match (select.projection.into_iter().next(), select.from.is_empty()) {
            (Some(ast::SelectItem::UnnamedExpr(expr)), true) => Ok(expr),
            _ => Err(none()),
        }
    }
}
