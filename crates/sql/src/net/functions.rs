//! What the functions and operators of addresses compute. Calls are bound to these by the types of their arguments, in [`crate::bind`].

use super::{Network, abbreviated, macs, text};
use crate::error::{Condition, Error, Result};
use crate::functions::{Function, Returns};
use crate::types::Base;
use crate::value::Value;

const TEXT: Returns = Returns::Type(Base::Text);
const INET: Returns = Returns::Type(Base::Inet);
const CIDR: Returns = Returns::Type(Base::Cidr);
const INT: Returns = Returns::Type(Base::Int4);
const BOOL: Returns = Returns::Type(Base::Bool);
const FIRST: Returns = Returns::First;

/// The function of a name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}

fn refused(what: impl Into<String>) -> Error {
    Error::new(Condition::InvalidArgument, what)
}

fn out_of_range() -> Error {
    Error::new(Condition::NumericOutOfRange, "result is out of range")
}

fn net(value: &Value) -> Result<Network> {
    Network::of(value).ok_or_else(|| refused("the value of the column is no address of a network"))
}

fn mac(value: &Value) -> Result<&[u8]> {
    match value {
        Value::Bytes(bytes) => Ok(bytes),
        _ => Err(refused("the value of the column is no address of a device")),
    }
}

/// The value with another mask; -1: with all bits.
fn masked(value: &Value, bits: &Value) -> Result<Network> {
    let of = net(value)?;
    let bits = bits.as_integer().unwrap_or(-1);
    match u8::try_from(bits).ok().filter(|bits| *bits <= of.width()) {
        Some(bits) => Ok(Network { bits, ..of }),
        None if bits == -1 => Ok(of.alone()),
        None => Err(refused(format!("invalid mask length: {bits}"))),
    }
}

/// Two addresses of one family, and what is made of them bit by bit, under the longer mask.
fn combined(a: &Value, b: &Value, verb: &str, combine: fn(u128, u128) -> u128) -> Result<Value> {
    let (a, b) = (net(a)?, net(b)?);
    if a.is_v6 != b.is_v6 {
        return Err(refused(format!("cannot {verb} inet values of different sizes")));
    }
    Ok(Network { address: combine(a.address, b.address), bits: a.bits.max(b.bits), ..a }.value())
}

/// The address so many further on.
fn moved(value: &Value, by: i128) -> Result<Value> {
    let of = net(value)?;
    let address = match u128::try_from(by) {
        Ok(by) => of.address.checked_add(by),
        Err(_) => of.address.checked_sub(by.unsigned_abs()),
    };
    let address = address.filter(|address| *address <= of.last()).ok_or_else(out_of_range)?;
    Ok(Network { address, ..of }.value())
}

fn is_within(a: &Value, b: &Value, is_strict: bool) -> Result<Value> {
    let (a, b) = (net(a)?, net(b)?);
    let is_longer = if is_strict { a.bits > b.bits } else { a.bits >= b.bits };
    Ok(Value::Bool(is_longer && a.agrees(b, b.bits)))
}

fn macs_combined(a: &Value, b: &Value, combine: fn(u8, u8) -> u8) -> Result<Value> {
    let all: Vec<u8> = mac(a)?.iter().zip(mac(b)?).map(|(a, b)| combine(*a, *b)).collect();
    Ok(Value::Bytes(all.into()))
}

crate::functions::alike! {
    is_volatile: false;
    "net_text" (1, 1) TEXT, true => |_, a| Ok(Value::text(text::display(net(&a[0])?, true)));
    "net_host" (1, 1) TEXT, true => |_, a| Ok(Value::text(text::display(net(&a[0])?, false)));
    "net_abbrev_inet" (1, 1) TEXT, true => |_, a| {
        let of = net(&a[0])?;
        Ok(Value::text(text::display(of, of.bits != of.width())))
    };
    "net_abbrev_cidr" (1, 1) TEXT, true => |_, a| Ok(Value::text(abbreviated(net(&a[0])?)));
    "net_masklen" (1, 1) INT, true => |_, a| Ok(Value::Int(i64::from(net(&a[0])?.bits)));
    "net_family" (1, 1) INT, true => |_, a| Ok(Value::Int(if net(&a[0])?.is_v6 { 6 } else { 4 }));
    "net_network" (1, 1) CIDR, true => |_, a| Ok(net(&a[0])?.network().value());
    "net_inet" (1, 1) INET, true => |_, a| Ok(net(&a[0])?.value());
    "net_netmask" (1, 1) INET, true => |_, a| {
        let of = net(&a[0])?;
        Ok(Network { address: of.mask(), ..of }.alone().value())
    };
    "net_hostmask" (1, 1) INET, true => |_, a| {
        let of = net(&a[0])?;
        Ok(Network { address: of.host_mask(), ..of }.alone().value())
    };
    "net_broadcast" (1, 1) INET, true => |_, a| {
        let of = net(&a[0])?;
        Ok(Network { address: of.address | of.host_mask(), ..of }.value())
    };
    "net_set_masklen_inet" (2, 2) INET, true => |_, a| Ok(masked(&a[0], &a[1])?.value());
    "net_set_masklen_cidr" (2, 2) CIDR, true => |_, a| Ok(masked(&a[0], &a[1])?.network().value());
    "net_inet_same_family" (2, 2) BOOL, true => |_, a| Ok(Value::Bool(net(&a[0])?.is_v6 == net(&a[1])?.is_v6));
    "net_inet_merge" (2, 2) CIDR, true => |_, a| {
        let (a, b) = (net(&a[0])?, net(&a[1])?);
        if a.is_v6 != b.is_v6 {
            return Err(refused("cannot merge addresses from different families"));
        }
        let bits = (0..=a.bits.min(b.bits)).rev().find(|bits| a.agrees(b, *bits)).unwrap_or(0);
        Ok(Network { bits, ..a }.network().value())
    };
    "net_within" (2, 2) BOOL, true => |_, a| is_within(&a[0], &a[1], true);
    "net_within_or_equal" (2, 2) BOOL, true => |_, a| is_within(&a[0], &a[1], false);
    "net_overlaps" (2, 2) BOOL, true => |_, a| {
        let (a, b) = (net(&a[0])?, net(&a[1])?);
        Ok(Value::Bool(a.agrees(b, a.bits.min(b.bits))))
    };
    "net_and" (2, 2) INET, true => |_, a| combined(&a[0], &a[1], "AND", |a, b| a & b);
    "net_or" (2, 2) INET, true => |_, a| combined(&a[0], &a[1], "OR", |a, b| a | b);
    "net_not" (1, 1) INET, true => |_, a| {
        let of = net(&a[0])?;
        Ok(Network { address: of.address ^ of.last(), ..of }.value())
    };
    "net_moved" (3, 3) INET, true => |_, a| {
        let by = a[1].as_integer().unwrap_or(0);
        moved(&a[0], if a[2].as_integer() == Some(-1) { -by } else { by })
    };
    "net_between" (2, 2) Returns::Type(Base::Int8), true => |_, a| {
        let (a, b) = (net(&a[0])?, net(&a[1])?);
        if a.is_v6 != b.is_v6 {
            return Err(refused("cannot subtract inet values of different sizes"));
        }
        let between = i64::try_from(a.address.abs_diff(b.address)).map_err(|_| out_of_range())?;
        Ok(Value::Int(if a.address < b.address { -between } else { between }))
    };
    "mac_trunc" (1, 1) FIRST, true => |_, a| {
        let kept = mac(&a[0])?.iter().enumerate().map(|(at, byte)| if at < 3 { *byte } else { 0 });
        Ok(Value::Bytes(kept.collect::<Vec<u8>>().into()))
    };
    "mac_not" (1, 1) FIRST, true => |_, a| Ok(Value::Bytes(mac(&a[0])?.iter().map(|byte| !byte).collect()));
    "mac_and" (2, 2) FIRST, true => |_, a| macs_combined(&a[0], &a[1], |a, b| a & b);
    "mac_or" (2, 2) FIRST, true => |_, a| macs_combined(&a[0], &a[1], |a, b| a | b);
    "mac_widened" (1, 1) Returns::Type(Base::Macaddr8), true => |_, a| match mac(&a[0])? {
        six if six.len() == 6 => Ok(Value::Bytes(macs::widened(six).into())),
        _ => Ok(a[0].clone()),
    };
    "mac_narrowed" (1, 1) Returns::Type(Base::Macaddr), true => |_, a| match mac(&a[0])? {
        [a, b, c, 0xff, 0xfe, d, e, f] => Ok(Value::Bytes([*a, *b, *c, *d, *e, *f][..].into())),
        _ => Err(Error::new(Condition::NumericOutOfRange, "macaddr8 data out of range to convert to macaddr").hint(
            "Only addresses that have FF and FE as values in the 4th and 5th bytes from the left, \
             for example xx:xx:xx:ff:fe:xx:xx:xx, are eligible to be converted from macaddr8 to macaddr.",
        )),
    };
    "mac_with_bit" (1, 1) FIRST, true => |_, a| {
        let mut bytes = mac(&a[0])?.to_vec();
        if let Some(first) = bytes.first_mut() {
            *first |= 2;
        }
        Ok(Value::Bytes(bytes.into()))
    };
}
