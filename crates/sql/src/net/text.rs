//! `inet` and `cidr` as text. What is left out of an address differs: `cidr` takes `10`, which is `10.0.0.0/8`, `inet` wants the mask of what is no whole one.

use super::Network;
use crate::error::{Condition, Error, Result};
use std::fmt::Write;

/// The value of a text. Errors: it is none; a network has bits behind its mask.
pub(crate) fn parse(text: &str, is_cidr: bool) -> Result<Network> {
    let found = match (text.contains(':'), is_cidr) {
        (true, _) => parse_v6(text),
        (false, true) => parse_network_v4(text),
        (false, false) => parse_v4(text),
    };
    let Some(found) = found else {
        let name = if is_cidr { "cidr" } else { "inet" };
        return Err(Error::new(Condition::InvalidText, format!("invalid input syntax for type {name}: \"{text}\"")));
    };
    match is_cidr && found.network() != found {
        true => Err(Error::new(Condition::InvalidText, format!("invalid cidr value: \"{text}\""))
            .detail("Value has bits set to right of mask.")),
        false => Ok(found),
    }
}

/// A number of decimal digits, and what is behind it.
fn number(text: &str, most: u32) -> Option<(u32, &str)> {
    let count = text.bytes().take_while(u8::is_ascii_digit).count();
    // Zeros may stand before it.
    let digits = text[..count].trim_start_matches('0');
    let value = if digits.is_empty() && count > 0 { 0 } else { digits.get(..digits.len().min(4))?.parse().ok()? };
    (value <= most).then_some((value, &text[count..]))
}

/// Bytes between points, at most four, and what is behind them. A point may be the last of them.
fn octets(text: &str) -> Option<(Vec<u8>, &str)> {
    let (mut found, mut rest) = (Vec::new(), text);
    while rest.starts_with(|c: char| c.is_ascii_digit()) {
        let (octet, behind) = number(rest, 255)?;
        if found.len() == 4 {
            return None;
        }
        found.push(octet as u8);
        match behind.strip_prefix('.') {
            Some(behind) => rest = behind,
            None => return Some((found, behind)),
        }
    }
    Some((found, rest))
}

/// Bits behind a slash; None: what stands there is no mask.
fn mask_v4(rest: &str) -> Option<Option<u8>> {
    match rest.strip_prefix('/') {
        None => rest.is_empty().then_some(None),
        Some(digits) => match number(digits, 32)? {
            (bits, "") => Some(Some(bits as u8)),
            _ => None,
        },
    }
}

fn of_octets(octets: &[u8], bits: u8) -> Network {
    let address = (0..4).fold(0u128, |number, at| number << 8 | u128::from(octets.get(at).copied().unwrap_or(0)));
    Network { is_v6: false, address, bits }
}

fn parse_v4(text: &str) -> Option<Network> {
    let (octets, rest) = octets(text)?;
    let bits = match mask_v4(rest)? {
        Some(bits) => bits,
        None if octets.len() == 4 => 32,
        None => return None,
    };
    (!octets.is_empty() && usize::from(bits) / 8 <= octets.len()).then(|| of_octets(&octets, bits))
}

fn parse_network_v4(text: &str) -> Option<Network> {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (octets, rest) = match hex {
        Some(digits) if digits.starts_with(|c: char| c.is_ascii_hexdigit()) => {
            let count = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
            let nibbles: Vec<u8> =
                digits[..count].chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
            let octets = nibbles.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).copied().unwrap_or(0));
            (octets.collect::<Vec<u8>>(), &digits[count..])
        }
        Some(_) => return None,
        None => octets(text)?,
    };
    let first = *octets.first().filter(|_| octets.len() <= 4)?;
    let bits = match mask_v4(rest)? {
        Some(bits) => bits,
        // Classes of networks, widened to what is written.
        None => {
            let of_class = match first {
                240.. => 32,
                224.. => 8,
                192.. => 24,
                128.. => 16,
                _ => 8,
            };
            match of_class.max(octets.len() as u8 * 8) {
                8 if first == 224 => 4,
                bits => bits,
            }
        }
    };
    Some(of_octets(&octets, bits))
}

fn parse_v6(text: &str) -> Option<Network> {
    let (address, bits) = match text.split_once('/') {
        None => (text, 128),
        Some((address, digits)) => {
            let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit())
                && (1..=3).contains(&digits.len())
                && (digits.len() == 1 || !digits.starts_with('0'));
            (address, digits.parse::<u8>().ok().filter(|bits| is_plain && *bits <= 128)?)
        }
    };
    let address: core::net::Ipv6Addr = address.parse().ok()?;
    Some(Network { is_v6: true, address: u128::from_be_bytes(address.octets()), bits })
}

/// The address, and its mask if that is to be shown.
pub(super) fn display(of: Network, shows_mask: bool) -> String {
    let mut out = match of.is_v6 {
        false => display_v4(of.address as u32),
        true => display_v6(of.address),
    };
    if shows_mask {
        let _ = write!(out, "/{}", of.bits);
    }
    out
}

fn display_v4(address: u32) -> String {
    let [a, b, c, d] = address.to_be_bytes();
    format!("{a}.{b}.{c}.{d}")
}

/// The first of the longest runs of zeros, at least two groups, is left out; an address of IPv4 within one of IPv6 is written as such.
fn display_v6(address: u128) -> String {
    let groups: Vec<u16> = (0..8).rev().map(|at| (address >> (at * 16)) as u16).collect();
    let (gap, length) = longest_gap(&groups).filter(|(_, length)| *length > 1).unwrap_or((8, 0));
    let holds_v4 = holds_v4(&groups, gap, length);
    let shown = if holds_v4 { &groups[..6] } else { &groups[..] };
    let mut out = display_groups(shown, gap, length);
    if holds_v4 {
        let _ = write!(out, "{}{}", if out.ends_with(':') { "" } else { ":" }, display_v4(address as u32));
    }
    out
}

/// Where the first of the longest runs of zeros begins, and how many groups it has.
fn longest_gap(groups: &[u16]) -> Option<(usize, usize)> {
    let zeros_at = |at: usize| groups[at..].iter().take_while(|group| **group == 0).count();
    (0..groups.len())
        .rev()
        .map(|at| (at, zeros_at(at)))
        .max_by_key(|(_, length)| *length)
        .filter(|(_, length)| *length > 0)
}

fn holds_v4(groups: &[u16], gap: usize, length: usize) -> bool {
    gap == 0 && (length == 6 || length == 5 && groups.get(5) == Some(&0xffff))
}

/// Groups in hexadecimal digits, but a run of zeros.
fn display_groups(groups: &[u16], gap: usize, length: usize) -> String {
    let mut out = String::new();
    for (at, group) in groups.iter().enumerate() {
        if at == gap && length > 0 {
            out.push_str("::");
        }
        if (gap..gap + length).contains(&at) {
            continue;
        }
        let _ = write!(out, "{}{group:x}", if out.is_empty() || out.ends_with(':') { "" } else { ":" });
    }
    out
}

/// A network without the bytes that its mask does not reach: `10.1/16`.
pub(crate) fn abbreviated(of: Network) -> String {
    let count = usize::from(of.bits.div_ceil(8)).max(1);
    let mut out = match of.is_v6 {
        false => {
            let octets = (of.address as u32).to_be_bytes();
            octets[..count].iter().map(u8::to_string).collect::<Vec<_>>().join(".")
        }
        true => {
            let groups: Vec<u16> = (0..8).rev().map(|at| (of.address >> (at * 16)) as u16).collect();
            let groups = &groups[..count.div_ceil(2).max(2)];
            let (gap, length) = longest_gap(groups).unwrap_or((8, 0));
            if length < groups.len() && holds_v4(groups, gap, length) {
                let octets = &of.address.to_be_bytes()[12..count.max(14)];
                let octets: Vec<String> = octets.iter().map(u8::to_string).collect();
                let mut out = display_groups(&groups[..6.min(groups.len())], gap, length);
                if groups.len() > 6 {
                    let _ = write!(out, "{}{}", if out.ends_with(':') { "" } else { ":" }, octets.join("."));
                }
                out
            } else {
                display_groups(groups, gap, length)
            }
        }
    };
    let _ = write!(out, "/{}", of.bits);
    out
}
