//! Functions that give rows: in FROM, and among the columns of a result.

use super::from::Tree;
use super::{Binder, Bound, Place, Relation, RelationColumn, Scope};
use crate::cast::Strictness;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::{Expr, Slot};
use crate::plan::Plan;
use crate::sets::{SetCall, SetFunction};
use crate::types::{Base, Type};
use sqlparser::ast;

/// The function of a name: how many arguments it takes, and what its columns are called.
fn find(name: &str) -> Option<(SetFunction, std::ops::RangeInclusive<usize>, &'static [&'static str])> {
    use SetFunction as F;
    Some(match name {
        "unnest" => (F::Unnest, 1..=1, &["unnest"]),
        "generate_series" => (F::Series, 2..=3, &["generate_series"]),
        "generate_subscripts" => (F::Subscripts { first: 1 }, 2..=2, &["generate_subscripts"]),
        "json_array_elements" | "jsonb_array_elements" => (F::JsonElements { as_text: false }, 1..=1, &["value"]),
        "json_array_elements_text" | "jsonb_array_elements_text" => {
            (F::JsonElements { as_text: true }, 1..=1, &["value"])
        }
        "json_each" | "jsonb_each" => (F::JsonMembers { as_text: false }, 1..=1, &["key", "value"]),
        "json_each_text" | "jsonb_each_text" => (F::JsonMembers { as_text: true }, 1..=1, &["key", "value"]),
        "json_object_keys" | "jsonb_object_keys" => (F::JsonKeys, 1..=1, &["json_object_keys"]),
        "jsonb_path_query" => (F::JsonPath, 2..=3, &["jsonb_path_query"]),
        "string_to_table" => (F::TextParts, 2..=3, &["string_to_table"]),
        "regexp_split_to_table" => (F::RegexParts, 2..=3, &["regexp_split_to_table"]),
        "regexp_matches" => (F::RegexMatches, 2..=3, &["regexp_matches"]),
        "pg_options_to_table" => (F::Options, 1..=1, &["option_name", "option_value"]),
        "pg_partition_ancestors" => (F::Itself, 1..=1, &["relid"]),
        _ => return None,
    })
}

/// True for functions that give rows.
pub(super) fn is_set(dialect: Dialect, name: &str) -> bool {
    match dialect {
        Dialect::Postgres => find(name).is_some(),
        _ => false,
    }
}

impl Binder<'_> {
    /// A call, and the types of its columns.
    fn bind_set_call(
        &self,
        scope: &Scope<'_>,
        name: &str,
        exprs: &[&ast::Expr],
    ) -> Result<(SetCall, Vec<(String, Type)>)> {
        let name = name.to_lowercase();
        let mut arguments = Vec::with_capacity(exprs.len());
        for expr in exprs {
            arguments.push(self.bind(scope, expr)?);
        }
        let found = find(&name).filter(|(_, wanted, _)| wanted.contains(&arguments.len()));
        let Some((mut function, _, columns)) = found else {
            let types: Vec<String> = arguments.iter().map(|argument| argument.ty.to_string()).collect();
            let what = format!("function {name}({}) does not exist", types.join(", "));
            return Err(Error::new(Condition::UndefinedFunction, what));
        };
        let cast = |bound: Bound, ty: Type| self.cast_to(bound, ty, Strictness::Explicit);
        let types: Vec<Type> = match function {
            SetFunction::Unnest | SetFunction::Subscripts { .. } => {
                let array = arguments.remove(0);
                if let SetFunction::Subscripts { first } = &mut function {
                    *first = i64::from(!array.ty.is_vector());
                }
                arguments.insert(0, self.as_array(array)?);
                match function {
                    SetFunction::Unnest => vec![arguments[0].ty.element()],
                    _ => vec![Type::of(Base::Int4)],
                }
            }
            SetFunction::Itself => {
                let number = cast(arguments.remove(0), Type::of(Base::Int8))?;
                arguments.push(number);
                vec![Type::of(Base::Int8)]
            }
            SetFunction::Options => vec![Type::TEXT, Type::TEXT],
            SetFunction::Series => {
                let known = arguments.iter().find(|bound| !matches!(bound.ty.base, Base::Unknown | Base::Interval));
                let mut ty = known.map_or(Type::of(Base::Int4), |bound| bound.ty);
                if !ty.is_moment() {
                    for bound in arguments.iter().filter(|bound| bound.ty.base != Base::Unknown) {
                        ty = ty.common(bound.ty).unwrap_or(ty);
                    }
                }
                if ty.base == Base::Date {
                    ty = Type::of(Base::TimestampTz);
                }
                let count = arguments.len();
                let mut cast_all = Vec::with_capacity(count);
                for (number, bound) in arguments.into_iter().enumerate() {
                    cast_all.push(match number {
                        2 if ty.is_moment() => cast(bound, Type::of(Base::Interval))?,
                        _ if bound.ty.base == Base::Any => bound,
                        _ => cast(bound, Type::of(ty.base))?,
                    });
                }
                arguments = cast_all;
                vec![Type::of(ty.base)]
            }
            SetFunction::JsonElements { as_text } | SetFunction::JsonMembers { as_text } => {
                let document = cast(arguments.remove(0), Type::json(name.starts_with("jsonb")))?;
                let value = if as_text { Type::TEXT } else { document.ty };
                arguments.push(document);
                match columns.len() {
                    2 => vec![Type::TEXT, value],
                    _ => vec![value],
                }
            }
            SetFunction::JsonKeys => {
                let document = cast(arguments.remove(0), Type::json(name.starts_with("jsonb")))?;
                arguments.push(document);
                vec![Type::TEXT]
            }
            SetFunction::JsonPath => {
                let mut cast_all = Vec::new();
                for (number, bound) in arguments.into_iter().enumerate() {
                    cast_all.push(cast(bound, if number == 1 { Type::TEXT } else { Type::json(true) })?);
                }
                arguments = cast_all;
                vec![Type::json(true)]
            }
            SetFunction::TextParts | SetFunction::RegexParts | SetFunction::RegexMatches => {
                let all: Result<Vec<Bound>> = arguments.into_iter().map(|bound| cast(bound, Type::TEXT)).collect();
                arguments = all?;
                match function {
                    SetFunction::RegexMatches => vec![Type::array_of(Type::TEXT)],
                    _ => vec![Type::TEXT],
                }
            }
        };
        let slots = types.iter().map(|_| self.new_slot()).collect();
        let arguments = arguments.into_iter().map(|bound| bound.expr).collect();
        let named = |(column, ty): (&&str, Type)| {
            (if *column == "json_object_keys" { name.clone() } else { (*column).to_string() }, ty)
        };
        let columns = columns.iter().zip(types).map(named).collect();
        Ok((SetCall { function, arguments, slots }, columns))
    }

    /// Such functions in FROM: one, or arrays side by side.
    pub(super) fn bind_sets_in_from(
        &self,
        scope: &mut Scope<'_>,
        name: &str,
        calls: &[Vec<&ast::Expr>],
        alias: Option<&ast::TableAlias>,
        is_numbered: bool,
    ) -> Result<Tree> {
        let mut bound = Vec::with_capacity(calls.len());
        let mut columns: Vec<(String, Type, Slot)> = Vec::new();
        for exprs in calls {
            let (call, named) = self.bind_set_call(scope, name, exprs)?;
            columns.extend(named.into_iter().zip(&call.slots).map(|((name, ty), slot)| (name, ty, *slot)));
            bound.push(call);
        }
        let number = is_numbered.then(|| self.new_slot());
        let table = alias.map_or_else(|| name.to_lowercase(), |alias| self.dialect.fold(&alias.name));
        if let ([column], true) = (&mut columns[..], alias.is_some())
            && !matches!(column.0.as_str(), "key" | "value")
        {
            // One column has the name of its table.
            column.0.clone_from(&table);
        }
        columns.extend(number.map(|slot| ("ordinality".to_string(), Type::of(Base::Int8), slot)));
        let columns = columns.into_iter().map(|(name, ty, slot)| RelationColumn {
            name,
            ty,
            collation: None,
            place: Place::Slot(slot),
            is_hidden: false,
        });
        let mut relation = Relation { alias: table, columns: columns.collect(), whole: None };
        self.alias_of(alias, &mut relation)?;
        self.add_relation(scope, relation)?;
        Ok(Tree::Rows(Box::new(Plan::Sets { calls: bound, number })))
    }

    /// Such a function among the columns of a result: the place where its value will be.
    pub(super) fn bind_set_in_projection(
        &self,
        scope: &Scope<'_>,
        name: &str,
        given: &[ast::FunctionArg],
    ) -> Result<Bound> {
        let Some(sets) = &scope.sets else {
            return Err(Error::new(Condition::Unsupported, "set-returning functions are not allowed here"));
        };
        let mut exprs = Vec::with_capacity(given.len());
        for argument in given {
            let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) = argument else {
                return Err(Error::unsupported(format!("'{name}({argument})'")));
            };
            exprs.push(expr);
        }
        let (call, columns) = self.bind_set_call(scope, name, &exprs)?;
        let ([slot], [(_, ty)]) = (call.slots.as_slice(), columns.as_slice()) else {
            return Err(Error::unsupported(format!("{name}() outside of FROM")));
        };
        let bound = Bound::new(Expr::Slot(*slot), *ty);
        sets.borrow_mut().push(call);
        Ok(bound)
    }
}
