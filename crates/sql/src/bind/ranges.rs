//! Ranges in expressions: which function a call or an operator is, by the types that it is given.

use super::{Binder, Bound};
use crate::cast::Strictness;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::Expr;
use crate::types::{Base, Type};
use crate::value::Value;

/// The types by the names of the functions that make ranges of ends.
const MAKERS: [(&str, Base); 6] = [
    ("int4range", Base::Int4Range),
    ("int8range", Base::Int8Range),
    ("numrange", Base::NumRange),
    ("daterange", Base::DateRange),
    ("tsrange", Base::TsRange),
    ("tstzrange", Base::TstzRange),
];

fn code_of(ty: Type) -> Bound {
    Bound::new(Expr::Const(Value::Int(ty.code())), Type::of(Base::Int8))
}

/// True if a value of one type becomes one of the ends' type by itself.
fn fits(from: Type, ends: Type) -> bool {
    match ends.base {
        Base::Int4 => matches!(from.base, Base::Int2 | Base::Int4 | Base::Unknown),
        Base::Int8 => from.is_integer() || from.base == Base::Unknown,
        Base::Decimal => from.is_integer() || matches!(from.base, Base::Decimal | Base::Unknown),
        Base::Date => matches!(from.base, Base::Date | Base::Unknown),
        Base::Timestamp => matches!(from.base, Base::Date | Base::Timestamp | Base::Unknown),
        _ => from.is_moment() || from.base == Base::Unknown,
    }
}

impl Binder<'_> {
    /// A text as a range whose ends without a zone have that of the session. Err: as it is, for whoever casts all others.
    pub(super) fn cast_range(&self, bound: Bound, to: Type) -> Result<std::result::Result<Bound, Bound>> {
        let is_text = matches!(bound.ty.base, Base::Text | Base::Unknown | Base::Any);
        if to.base != Base::TstzRange || !is_text || !self.is_zoned || matches!(bound.expr, Expr::Const(Value::Null)) {
            return Ok(Err(bound));
        }
        let open = Bound::new(bound.expr, Type::of(Base::Any));
        self.call("range_of_text", vec![open, code_of(to)]).map(|found| Ok(Bound { ty: to, ..found }))
    }

    /// An operator of PostgreSQL's that has a range on a side. None: it is one of others. Errors: ranges have no such operator.
    pub(super) fn operator_of_ranges(&self, sign: &str, a: &Bound, b: &Bound) -> Result<Option<Bound>> {
        if self.dialect != Dialect::Postgres || !a.ty.is_range() && !b.ty.is_range() {
            return Ok(None);
        }
        let none = || Err(self.no_operator(sign, a.ty, b.ty));
        let ty = if a.ty.is_range() { a.ty } else { b.ty };
        let Some(ends) = ty.of_ends() else { return none() };
        let is_one = |bound: &Bound| bound.ty.base == ty.base || bound.ty.base == Base::Unknown;
        let cast = |bound: &Bound, to: Type| self.cast_to(bound.clone(), to, Strictness::Explicit);
        let call =
            |name: &str, a: &Bound, b: &Bound| self.call(name, vec![cast(a, ty)?, cast(b, ty)?, code_of(ty)]).map(Some);
        let has = |range: &Bound, value: &Bound| {
            self.call("range_has", vec![range.clone(), cast(value, ends)?, code_of(ty)]).map(Some)
        };
        if !is_one(a) || !is_one(b) {
            return match sign {
                "@>" if a.ty.is_range() && b.ty.base == ends.base => has(a, b),
                "<@" if b.ty.is_range() && a.ty.base == ends.base => has(b, a),
                _ => none(),
            };
        }
        match sign {
            "@>" => call("range_contains", a, b),
            "<@" => call("range_contains", b, a),
            "&&" => call("range_overlaps", a, b),
            "<<" => call("range_before", a, b),
            ">>" => call("range_before", b, a),
            "&<" => call("range_not_after", a, b),
            "&>" => call("range_not_before", a, b),
            "-|-" => call("range_touches", a, b),
            "+" => call("range_joined", a, b),
            "*" => call("range_shared", a, b),
            "-" => call("range_without", a, b),
            _ => none(),
        }
    }

    /// A call of a function of ranges. None: it is another one.
    pub(super) fn bind_range_call(&self, name: &str, arguments: &mut Vec<Bound>) -> Result<Option<Bound>> {
        let maker = MAKERS.iter().find(|(maker, _)| *maker == name).map(|(_, base)| Type::of(*base));
        if let Some(ty) = maker
            && let Some(ends) = ty.of_ends()
            && (1..=3).contains(&arguments.len())
        {
            let all = std::mem::take(arguments);
            if let [one] = all.as_slice() {
                return self.cast_to(one.clone(), ty, Strictness::Explicit).map(Some);
            }
            if !all[..2].iter().all(|end| fits(end.ty, ends)) {
                let types: Vec<String> = all.iter().map(|argument| argument.ty.to_string()).collect();
                let what = format!("function {name}({}) does not exist", types.join(", "));
                return Err(Error::new(Condition::UndefinedFunction, what));
            }
            let mut given = Vec::with_capacity(4);
            for end in &all[..2] {
                given.push(self.cast_to(end.clone(), ends, Strictness::Explicit)?);
            }
            given.push(match all.get(2) {
                Some(flags) => self.cast_to(flags.clone(), Type::TEXT, Strictness::Explicit)?,
                None => Bound::new(Expr::Const(Value::text("[)")), Type::TEXT),
            });
            given.push(code_of(ty));
            return self.call("range_made", given).map(|found| Some(Bound { ty, ..found }));
        }
        let Some(ty) = arguments.iter().map(|argument| argument.ty).find(|ty| ty.is_range()) else { return Ok(None) };
        let result = match (name, arguments.len()) {
            ("lower" | "upper", 1) => ty.of_ends(),
            ("isempty" | "lower_inc" | "upper_inc" | "lower_inf" | "upper_inf", 1) => Some(Type::BOOL),
            ("range_merge", 2) => Some(ty),
            _ => return Ok(None),
        };
        let mut given = Vec::with_capacity(3);
        for argument in std::mem::take(arguments) {
            given.push(match argument.ty.base == ty.base || argument.ty.base == Base::Unknown {
                true => self.cast_to(argument, ty, Strictness::Explicit)?,
                false => {
                    let what = format!("function {name}({}, {}) does not exist", ty, argument.ty);
                    return Err(Error::new(Condition::UndefinedFunction, what));
                }
            });
        }
        given.push(code_of(ty));
        let own = if name == "range_merge" { name.to_string() } else { format!("range_{name}") };
        let found = self.call(&own, given)?;
        Ok(Some(Bound { ty: result.unwrap_or(found.ty), ..found }))
    }
}
