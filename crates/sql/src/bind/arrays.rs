//! Arrays in expressions, and the types that stand for objects of the catalog.

use super::expressions::not;
use super::from::Tree;
use super::{Binder, Bound, Output, Place, Relation, RelationColumn, Scope};
use crate::cast::Strictness;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{Asked, Comparison, Expr};
use crate::plan::Plan;
use crate::types::{Base, Type};
use sqlparser::ast::{self, BinaryOperator};

impl Binder<'_> {
    /// `unnest(array)` in FROM.
    pub(super) fn bind_unnest(
        &self,
        scope: &mut Scope<'_>,
        argument: &ast::FunctionArg,
        alias: Option<&ast::TableAlias>,
    ) -> Result<Tree> {
        let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) = argument else {
            return Err(Error::unsupported(format!("'unnest({argument})'")));
        };
        let array = self.as_array(self.bind(scope, expr)?)?.expr;
        let slot = self.new_slot();
        let name = alias.map_or_else(|| "unnest".to_string(), |alias| self.dialect.fold(&alias.name));
        let column = RelationColumn {
            name: name.clone(),
            ty: Type::of(Base::Any),
            collation: None,
            place: Place::Slot(slot),
            is_hidden: false,
        };
        let mut relation = Relation { alias: name, columns: vec![column] };
        self.alias_of(alias, &mut relation)?;
        self.add_relation(scope, relation)?;
        Ok(Tree::Rows(Box::new(Plan::Unnest { array, slot })))
    }

    /// An expression as an array. A parameter of which nothing is known is one.
    fn as_array(&self, bound: Bound) -> Result<Bound> {
        match bound.ty.base {
            Base::Array | Base::Any => Ok(bound),
            Base::Unknown => self.cast_to(bound, Type::of(Base::Array), Strictness::Explicit),
            _ => Err(Error::unsupported("an operator for arrays on what is none")),
        }
    }

    /// The elements of an array as a query of one column, whose values are of a type.
    pub(super) fn elements_of(&self, scope: &Scope<'_>, array: &ast::Expr, ty: Type) -> Result<super::Query> {
        let array = self.bind(scope, array)?;
        let array = match array.ty.base {
            Base::Unknown => self.cast_to(array, Type::array_of(ty.base), Strictness::Explicit)?.expr,
            _ => self.as_array(array)?.expr,
        };
        let (slot, output) = (self.new_slot(), self.new_slot());
        let element = Expr::Cast(Type::of(ty.base), Strictness::Explicit, Box::new(Expr::Slot(slot)));
        let plan = Plan::Map(Box::new(Plan::Unnest { array, slot }), vec![(output, element)]);
        let outputs = vec![Output { name: "element".to_string(), slot: output, ty, collation: None }];
        Ok(super::Query { plan, outputs })
    }

    /// A cast to a type that stands for an object of the catalog: `'t'::regclass`, `oid::regclass`. None: it is another type.
    pub(super) fn cast_to_object(
        &self,
        value: Bound,
        declared: &ast::DataType,
    ) -> Result<std::result::Result<Bound, Bound>> {
        let name = declared.to_string().to_ascii_lowercase();
        let name = name.trim_start_matches("pg_catalog.");
        let is_text = matches!(value.ty.base, Base::Text | Base::Unknown);
        let function = match (name, is_text) {
            ("regclass", true) => "regclass_number",
            ("regclass", false) => "regclass_name",
            ("regtype", true) => "regtype_number",
            ("regtype", false) => "regtype_name",
            ("regproc" | "regprocedure" | "regnamespace" | "regrole", _) => {
                return Ok(Ok(self.cast_to(value, Type::TEXT, Strictness::Explicit)?));
            }
            ("oid" | "xid", _) => return Ok(Ok(self.cast_to(value, Type::of(Base::Int8), Strictness::Explicit)?)),
            ("\"char\"" | "name" | "cstring", _) => {
                return Ok(Ok(self.cast_to(value, Type::TEXT, Strictness::Explicit)?));
            }
            (name, _) if name.ends_with("[]") || name == "int2vector" || name == "oidvector" => {
                return Ok(Ok(self.as_array(value)?));
            }
            _ => return Ok(Err(value)),
        };
        Ok(Ok(self.call(function, vec![value])?))
    }

    /// A comparison of values with each row of a query, or with any.
    pub(super) fn among(
        &self,
        values: Vec<Bound>,
        mut query: super::Query,
        comparison: Comparison,
        all: bool,
    ) -> Result<Expr> {
        if query.outputs.len() != values.len() {
            let what = format!("the subquery has {} columns, {} wanted", query.outputs.len(), values.len());
            return Err(Error::new(Condition::ColumnCount, what));
        }
        let mut collation = None;
        let mut wanted = Vec::with_capacity(values.len());
        for (value, output) in values.into_iter().zip(&mut query.outputs) {
            let column =
                Bound { collation: output.collation.clone(), ..Bound::new(Expr::Slot(output.slot), output.ty) };
            let (value, column) = self.unify(value, column, comparison.sign())?;
            if !matches!(column.expr, Expr::Slot(_)) {
                let slot = self.new_slot();
                let plan = std::mem::replace(&mut query.plan, crate::plan::Plan::Nothing);
                query.plan = crate::plan::Plan::Map(Box::new(plan), vec![(slot, column.expr)]);
                output.slot = slot;
            }
            collation = value.collation.or(column.collation);
            wanted.push(value.expr);
        }
        let asked = Asked::Quantified { values: wanted, comparison, all, collation };
        Ok(self.make_subquery(query, asked))
    }

    /// The same with each element of an array.
    pub(super) fn bind_among_elements(
        &self,
        scope: &Scope<'_>,
        left: &ast::Expr,
        array: &ast::Expr,
        comparison: Comparison,
        all: bool,
    ) -> Result<Expr> {
        let value = self.bind(scope, left)?;
        let query = self.elements_of(scope, array, value.ty)?;
        self.among(vec![value], query, comparison, all)
    }

    /// CAST.
    pub(super) fn bind_cast(&self, value: Bound, declared: &ast::DataType) -> Result<Bound> {
        let value = match self.dialect {
            Dialect::Postgres => match self.cast_to_object(value, declared)? {
                Ok(done) => return Ok(done),
                Err(value) => value,
            },
            _ => value,
        };
        self.cast_to(value, Type::of_ast(self.dialect, declared)?, Strictness::Explicit)
    }

    /// Operators that compare with regular expressions.
    pub(super) fn bind_match(
        &self,
        scope: &Scope<'_>,
        left: &ast::Expr,
        op: &BinaryOperator,
        right: &ast::Expr,
    ) -> Result<Bound> {
        let name = match op {
            BinaryOperator::PGRegexMatch | BinaryOperator::Regexp => "~",
            BinaryOperator::PGRegexIMatch => "~*",
            BinaryOperator::PGRegexNotMatch => "!~",
            BinaryOperator::PGRegexNotIMatch => "!~*",
            BinaryOperator::PGCustomBinaryOperator(parts) => parts.last().map_or("", String::as_str),
            _ => "",
        };
        let (is_negated, folds_case) = match name {
            "~" => (false, self.dialect == Dialect::Mysql),
            "~*" => (false, true),
            "!~" => (true, false),
            "!~*" => (true, true),
            "=" => {
                return self.bind(
                    scope,
                    &ast::Expr::BinaryOp {
                        left: Box::new(left.clone()),
                        op: BinaryOperator::Eq,
                        right: Box::new(right.clone()),
                    },
                );
            }
            _ => return Err(Error::unsupported(format!("operator {op}"))),
        };
        let function = if folds_case { "regexp_like_folded" } else { "regexp_like" };
        let matched = self.call(function, vec![self.bind(scope, left)?, self.bind(scope, right)?])?;
        Ok(if is_negated { not(matched.expr) } else { matched })
    }
}
