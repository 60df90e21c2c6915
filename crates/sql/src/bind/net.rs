//! Addresses of networks in expressions: which function a call or an operator is, by the types that it is given.

use super::{Binder, Bound};
use crate::cast::Strictness;
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::expr::Expr;
use crate::net::{is_mac, is_network};
use crate::types::{Base, Type};
use crate::value::Value;

/// True if a value of one type may be cast to the other, one of which is an address or a range.
pub(super) fn casts(from: Type, to: Type) -> bool {
    let is_open = |ty: Type| matches!(ty.base, Base::Text | Base::Unknown | Base::Any);
    is_open(from)
        || from.base == to.base
        || to.base == Base::Text
        || is_network(from) && is_network(to)
        || is_mac(from) && is_mac(to)
        || to.base == Base::Any
}

fn number(value: i64) -> Bound {
    Bound::new(Expr::Const(Value::Int(value)), Type::of(Base::Int4))
}

impl Binder<'_> {
    /// An address as a value of another type. Err: as it is, for whoever casts all others.
    pub(super) fn cast_net(
        &self,
        bound: Bound,
        to: Type,
        strictness: Strictness,
    ) -> Result<std::result::Result<Bound, Bound>> {
        let own = match (bound.ty.base, to.base) {
            (Base::Cidr, Base::Inet) => "net_inet",
            (Base::Inet, Base::Cidr) => "net_network",
            (Base::Macaddr, Base::Macaddr8) => "mac_widened",
            (Base::Macaddr8, Base::Macaddr) => "mac_narrowed",
            // As text an address has its mask always, unlike as it is shown.
            (Base::Inet | Base::Cidr, Base::Text) if self.dialect == Dialect::Postgres => {
                let text = self.call("net_text", vec![bound])?;
                return self.cast_to(text, to, strictness).map(Ok);
            }
            (_, Base::Text) => {
                let text = self.shown_net(bound)?;
                return self.cast_to(text, to, strictness).map(Ok);
            }
            _ => return Ok(Err(bound)),
        };
        if self.dialect != Dialect::Postgres {
            return Ok(Err(bound));
        }
        self.call(own, vec![bound]).map(Ok)
    }

    /// An address as the text that it is shown as.
    pub(super) fn shown_net(&self, bound: Bound) -> Result<Bound> {
        let code = Bound::new(Expr::Const(Value::Int(bound.ty.code())), Type::of(Base::Int8));
        self.call("text_of", vec![bound, code])
    }

    /// An operator of PostgreSQL's that has an address on a side. None: it is one of others. Errors: addresses have no such operator.
    pub(super) fn operator_of_nets(&self, sign: &str, a: &Bound, b: &Bound) -> Result<Option<Bound>> {
        if self.dialect != Dialect::Postgres || !a.ty.is_address() && !b.ty.is_address() {
            return Ok(None);
        }
        let cast = |bound: &Bound, to: Base| self.cast_to(bound.clone(), Type::of(to), Strictness::Explicit);
        let is_open = |bound: &Bound| bound.ty.base == Base::Unknown;
        let is_whole = |bound: &Bound| bound.ty.is_integer();
        let none = || Err(self.no_operator(sign, a.ty, b.ty));
        if is_mac(a.ty) || is_mac(b.ty) {
            let to = if is_mac(a.ty) { a.ty } else { b.ty };
            let is_one = |bound: &Bound| bound.ty == to || is_open(bound);
            let own = match sign {
                "&" => "mac_and",
                "|" => "mac_or",
                _ => return none(),
            };
            if !is_one(a) || !is_one(b) {
                return none();
            }
            return self.call(own, vec![cast(a, to.base)?, cast(b, to.base)?]).map(Some);
        }
        let is_one = |bound: &Bound| is_network(bound.ty) || is_open(bound);
        let own = match sign {
            "+" if is_network(a.ty) && (is_whole(b) || is_open(b)) => {
                return self.call("net_moved", vec![a.clone(), cast(b, Base::Int8)?, number(1)]).map(Some);
            }
            "+" if is_network(b.ty) && (is_whole(a) || is_open(a)) => {
                return self.call("net_moved", vec![b.clone(), cast(a, Base::Int8)?, number(1)]).map(Some);
            }
            "-" if is_network(a.ty) && is_whole(b) => {
                return self.call("net_moved", vec![a.clone(), cast(b, Base::Int8)?, number(-1)]).map(Some);
            }
            _ if !is_one(a) || !is_one(b) => return none(),
            "-" => "net_between",
            "&" => "net_and",
            "|" => "net_or",
            "&&" => "net_overlaps",
            "<<" => "net_within",
            "<<=" => "net_within_or_equal",
            ">>" => return self.call("net_within", vec![cast(b, Base::Inet)?, cast(a, Base::Inet)?]).map(Some),
            ">>=" => {
                return self.call("net_within_or_equal", vec![cast(b, Base::Inet)?, cast(a, Base::Inet)?]).map(Some);
            }
            _ => return none(),
        };
        self.call(own, vec![cast(a, Base::Inet)?, cast(b, Base::Inet)?]).map(Some)
    }

    /// A call of a function of addresses. None: it is another one.
    pub(super) fn bind_net_call(&self, name: &str, arguments: &mut Vec<Bound>) -> Result<Option<Bound>> {
        let first = match arguments.first() {
            Some(first) => first.ty,
            None => return Ok(None),
        };
        let is_open = first.base == Base::Unknown;
        let own = match (name, arguments.len()) {
            ("text", 1) if first.is_address() => {
                return self.cast_to(arguments.remove(0), Type::TEXT, Strictness::Explicit).map(Some);
            }
            ("inet" | "cidr", 1) if is_network(first) || is_open => {
                let to = if name == "inet" { Base::Inet } else { Base::Cidr };
                return self.cast_to(arguments.remove(0), Type::of(to), Strictness::Explicit).map(Some);
            }
            ("macaddr" | "macaddr8", 1) if is_mac(first) || is_open => {
                let to = if name == "macaddr" { Base::Macaddr } else { Base::Macaddr8 };
                return self.cast_to(arguments.remove(0), Type::of(to), Strictness::Explicit).map(Some);
            }
            ("trunc", 1) if is_mac(first) => "mac_trunc".to_string(),
            ("macaddr8_set7bit", 1) => {
                let value = self.cast_to(arguments.remove(0), Type::of(Base::Macaddr8), Strictness::Explicit)?;
                return self.call("mac_with_bit", vec![value]).map(Some);
            }
            ("abbrev", 1) if first.base == Base::Cidr => "net_abbrev_cidr".to_string(),
            ("abbrev", 1) => "net_abbrev_inet".to_string(),
            ("set_masklen", 2) if first.base == Base::Cidr => "net_set_masklen_cidr".to_string(),
            ("set_masklen", 2) => "net_set_masklen_inet".to_string(),
            ("host" | "masklen" | "network" | "netmask" | "hostmask" | "broadcast" | "family", 1)
            | ("inet_same_family" | "inet_merge", 2) => format!("net_{name}"),
            _ => return Ok(None),
        };
        let wants_number = |at: usize| at == 1 && name == "set_masklen";
        let is_wrong = |(at, argument): (usize, &Bound)| match wants_number(at) {
            true => !argument.ty.is_integer() && argument.ty.base != Base::Unknown,
            false => !argument.ty.is_address() && argument.ty.base != Base::Unknown,
        };
        if arguments.iter().enumerate().any(is_wrong) || is_mac(first) != (name == "trunc") {
            let types: Vec<String> = arguments.iter().map(|argument| argument.ty.to_string()).collect();
            let what = format!("function {name}({}) does not exist", types.join(", "));
            return Err(Error::new(Condition::UndefinedFunction, what));
        }
        for (at, argument) in arguments.iter_mut().enumerate() {
            if argument.ty.base == Base::Unknown || wants_number(at) {
                let to = if wants_number(at) { Base::Int4 } else { Base::Inet };
                *argument = self.cast_to(argument.clone(), Type::of(to), Strictness::Explicit)?;
            }
        }
        self.call(&own, std::mem::take(arguments)).map(Some)
    }
}
