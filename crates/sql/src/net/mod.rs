//! Addresses of networks: PostgreSQL's `inet`, `cidr`, `macaddr` and `macaddr8`.
//!
//! A row keeps them as bytes whose order is PostgreSQL's order of the values, so that indexes, sorting, groups and the comparison of bytes that every engine
//! has agree without knowing of them:
//!
//! ```text
//! inet, cidr:  family (2: IPv4, 3: IPv6) | network, 4 or 16 bytes | bits of the mask | address, 4 or 16 bytes
//! macaddr:     6 bytes       macaddr8: 8 bytes
//! ```
//!
//! The network is the address without the bits behind the mask: of two networks the one that differs first decides, and of one within the other the wider
//! one comes first, as its missing bits are zeros and its mask is shorter. The address is left out where it is its network; the shorter bytes come first, as
//! the lowest address of a network does. What other doors write into such a column and what is no value of it is shown as the bytes that it is.
//!
//! Sources: PostgreSQL's documentation, chapters 8.9 and 9.12, and what PostgreSQL 15 answers.

pub(crate) mod functions;
mod macs;
mod text;

pub(crate) use macs::parse_mac;
pub(crate) use text::{abbreviated, parse};

use crate::types::{Base, Type};
use crate::value::Value;

/// The number of IPv4 in front of an address; that of IPv6 is one more.
const FAMILY_V4: u8 = 2;

/// An address and how many of its bits say which network it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    /// Whether it is an address of IPv6.
    pub(crate) is_v6: bool,
    /// The number that the address is.
    pub(crate) address: u128,
    /// Bits of the mask.
    pub(crate) bits: u8,
}

impl Network {
    /// Bits of an address of its family.
    pub(crate) fn width(self) -> u8 {
        if self.is_v6 { 128 } else { 32 }
    }

    /// The greatest address of its family.
    pub(crate) fn last(self) -> u128 {
        if self.is_v6 { u128::MAX } else { u128::from(u32::MAX) }
    }

    /// The bits behind the mask, all set.
    pub(crate) fn host_mask(self) -> u128 {
        self.last().checked_shr(u32::from(self.bits)).unwrap_or(0)
    }

    /// The bits of the mask, all set.
    pub(crate) fn mask(self) -> u128 {
        self.last() ^ self.host_mask()
    }

    /// The first address of the network.
    pub(crate) fn network(self) -> Network {
        Network { address: self.address & self.mask(), ..self }
    }

    /// The same address without a network.
    pub(crate) fn alone(self) -> Network {
        Network { bits: self.width(), ..self }
    }

    /// True if two addresses are the same as far as so many bits go.
    pub(crate) fn agrees(self, other: Network, bits: u8) -> bool {
        let mask = Network { bits, ..self }.mask();
        self.is_v6 == other.is_v6 && (self.address ^ other.address) & mask == 0
    }

    fn bytes_of(self, address: u128) -> Vec<u8> {
        address.to_be_bytes()[if self.is_v6 { 0 } else { 12 }..].to_vec()
    }

    /// The value that a row keeps.
    pub(crate) fn value(self) -> Value {
        let network = self.network();
        let mut out = vec![FAMILY_V4 + u8::from(self.is_v6)];
        out.extend(self.bytes_of(network.address));
        out.push(self.bits);
        if network.address != self.address {
            out.extend(self.bytes_of(self.address));
        }
        Value::Bytes(out.into())
    }

    /// The one that a row keeps as these bytes. None: it is none.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (family, rest) = bytes.split_first()?;
        let size = match family.checked_sub(FAMILY_V4)? {
            0 => 4,
            1 => 16,
            _ => return None,
        };
        let (network, rest) = rest.split_at_checked(size)?;
        let (bits, rest) = rest.split_first()?;
        let address = match rest.len() {
            0 => network,
            length if length == size => rest,
            _ => return None,
        };
        let number = |bytes: &[u8]| bytes.iter().fold(0u128, |number, byte| number << 8 | u128::from(*byte));
        let found = Network { is_v6: size == 16, address: number(address), bits: *bits };
        // Two forms of one value would be two keys of an index.
        let is_plain = *bits <= found.width()
            && found.network().address == number(network)
            && (rest.is_empty() || number(network) != found.address);
        is_plain.then_some(found)
    }

    /// The one of a value.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Bytes(bytes) => Network::of_bytes(bytes),
            _ => None,
        }
    }
}

impl Type {
    /// True for addresses, which are kept as bytes and shown as text.
    pub fn is_address(self) -> bool {
        matches!(self.base, Base::Inet | Base::Cidr | Base::Macaddr | Base::Macaddr8)
    }

    /// True for all types whose values are kept as bytes and shown as text.
    pub fn is_coded(self) -> bool {
        self.is_address() || self.is_range()
    }
}

/// True for `inet` and `cidr`.
pub(crate) fn is_network(ty: Type) -> bool {
    matches!(ty.base, Base::Inet | Base::Cidr)
}

/// True for `macaddr` and `macaddr8`.
pub(crate) fn is_mac(ty: Type) -> bool {
    matches!(ty.base, Base::Macaddr | Base::Macaddr8)
}

/// The value of a type as text. None: it is none.
pub(crate) fn display(bytes: &[u8], ty: Type) -> Option<String> {
    match ty.base {
        Base::Inet => Network::of_bytes(bytes).map(|found| text::display(found, found.bits != found.width())),
        Base::Cidr => Network::of_bytes(bytes).map(|found| text::display(found, true)),
        Base::Macaddr => (bytes.len() == 6).then(|| macs::display(bytes)),
        Base::Macaddr8 => (bytes.len() == 8).then(|| macs::display(bytes)),
        _ => None,
    }
}

/// The value on PostgreSQL's wire: the family, bits of the mask, whether it is a network, how many bytes follow, and these. None: it is none.
pub fn network_to_wire(value: &Value, ty: Type) -> Option<Vec<u8>> {
    if is_mac(ty) {
        return match value {
            Value::Bytes(bytes) if display(bytes, ty).is_some() => Some(bytes.to_vec()),
            _ => None,
        };
    }
    let found = Network::of(value)?;
    let address = found.bytes_of(found.address);
    let is_cidr = u8::from(ty.base == Base::Cidr);
    let mut out = vec![FAMILY_V4 + u8::from(found.is_v6), found.bits, is_cidr, address.len() as u8];
    out.extend(address);
    Some(out)
}

/// The value of such bytes. None: they are none.
pub fn network_of_wire(bytes: &[u8], ty: Type) -> Option<Value> {
    if is_mac(ty) {
        return display(bytes, ty).map(|_| Value::Bytes(bytes.into()));
    }
    let [family, bits, _, count, address @ ..] = bytes else { return None };
    let size = match family.checked_sub(FAMILY_V4)? {
        0 => 4,
        1 => 16,
        _ => return None,
    };
    if usize::from(*count) != size || address.len() != size {
        return None;
    }
    let address = address.iter().fold(0u128, |number, byte| number << 8 | u128::from(*byte));
    let found = Network { is_v6: size == 16, address, bits: *bits };
    let is_good = *bits <= found.width() && (ty.base != Base::Cidr || found.network() == found);
    is_good.then(|| found.value())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use proptest::prelude::*;
    use std::cmp::Ordering;

    fn any_network() -> impl Strategy<Value = Network> {
        (any::<bool>(), any::<u128>(), any::<u8>(), any::<u8>()).prop_map(|(is_v6, address, few, bits)| {
            let whole = Network { is_v6, address: 0, bits: 0 };
            // Of few bits, so that two often agree.
            let address = if few % 2 == 0 { address & 7 | (address >> 60 & 7) << 28 } else { address };
            Network { address: address & whole.last(), bits: bits % (whole.width() + 1), ..whole }
        })
    }

    /// PostgreSQL's words for it: IPv4 first, then the bits that both masks have, then the shorter mask, then all bits.
    fn order_in_words(a: Network, b: Network) -> Ordering {
        let shared = a.bits.min(b.bits);
        let cut = |of: Network| Network { bits: shared, ..of }.network().address;
        let by_network = a.is_v6.cmp(&b.is_v6).then(cut(a).cmp(&cut(b)));
        by_network.then(a.bits.cmp(&b.bits)).then(a.address.cmp(&b.address))
    }

    proptest! {
        #[test]
        fn bytes_are_in_the_order_of_the_values(a in any_network(), b in any_network()) {
            prop_assert_eq!(a.value().order(&b.value()), order_in_words(a, b));
        }

        #[test]
        fn a_value_is_read_as_it_is_kept_shown_and_sent(a in any_network(), is_cidr in any::<bool>()) {
            let ty = Type::of(if is_cidr { Base::Cidr } else { Base::Inet });
            let a = if is_cidr { a.network() } else { a };
            let value = a.value();
            prop_assert_eq!(Network::of(&value), Some(a));
            let Value::Bytes(bytes) = &value else { panic!("bytes") };
            prop_assert_eq!(parse(&display(bytes, ty).unwrap(), is_cidr).unwrap(), a);
            let sent = network_to_wire(&value, ty).unwrap();
            prop_assert_eq!(Network::of(&network_of_wire(&sent, ty).unwrap()), Some(a));
        }

        #[test]
        fn bytes_that_are_no_value_are_none(bytes in proptest::collection::vec(any::<u8>(), 0..40), head in 0u8..5) {
            for ty in [Base::Inet, Base::Cidr, Base::Macaddr, Base::Macaddr8].map(Type::of) {
                let mut bytes = bytes.clone();
                bytes.insert(0, head);
                let _ = (display(&bytes, ty), network_of_wire(&bytes, ty));
                if let Some(found) = Network::of_bytes(&bytes) {
                    prop_assert_eq!(found.value().order(&Value::Bytes(bytes.into())), Ordering::Equal);
                }
            }
        }
    }
}
