//! `macaddr` and `macaddr8` as text: pairs of hexadecimal digits, between which colons, hyphens or points may stand.

use crate::error::{Condition, Error, Result};
use crate::value::Value;

/// The value of a text: of 6 bytes, or of 8. Errors: it is none.
pub(crate) fn parse_mac(text: &str, size: usize) -> Result<Value> {
    let name = if size == 6 { "macaddr" } else { "macaddr8" };
    let found = if size == 6 { six_of(text.trim())? } else { eight_of(text.trim()) };
    let invalid = || Error::new(Condition::InvalidText, format!("invalid input syntax for type {name}: \"{text}\""));
    found.map(|bytes| Value::Bytes(bytes.into())).ok_or_else(invalid)
}

/// Six bytes with a separator between each two, or groups of three or two of them, or none. Err: one of them is too great.
fn six_of(text: &str) -> Result<Option<Vec<u8>>> {
    let separator = text.chars().find(|c| !c.is_ascii_hexdigit());
    let groups: Vec<&str> = match separator {
        None => vec![text],
        Some(c @ (':' | '-' | '.')) => text.split(c).collect(),
        Some(_) => return Ok(None),
    };
    let is_hex = |group: &&str| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !groups.iter().all(is_hex) {
        return Ok(None);
    }
    let width = match (groups.len(), separator) {
        (6, Some(':' | '-')) => {
            let octets = groups.iter().map(|group| u32::from_str_radix(group, 16).unwrap_or(u32::MAX));
            let octets: Option<Vec<u8>> = octets.map(|octet| u8::try_from(octet).ok()).collect();
            return octets.map(Some).ok_or_else(|| {
                let what = format!("invalid octet value in \"macaddr\" value: \"{text}\"");
                Error::new(Condition::NumericOutOfRange, what)
            });
        }
        (2, Some(':' | '-')) => 6,
        (3, Some('.' | '-')) => 4,
        (1, None) => 12,
        _ => return Ok(None),
    };
    let is_whole = groups.iter().all(|group| group.len() == width);
    Ok(crate::cast::from_hex(&groups.concat()).filter(|_| is_whole))
}

/// Six bytes or eight, one separator between any of them; six get two in their middle.
fn eight_of(text: &str) -> Option<Vec<u8>> {
    let separator = text.chars().find(|c| !c.is_ascii_hexdigit());
    if separator.is_some_and(|c| !matches!(c, ':' | '-' | '.')) {
        return None;
    }
    let mut bytes = Vec::new();
    for group in text.split(|c| Some(c) == separator) {
        let is_hex = group.bytes().all(|byte| byte.is_ascii_hexdigit());
        if group.is_empty() || group.len() % 2 != 0 || !is_hex {
            return None;
        }
        bytes.extend(crate::cast::from_hex(group)?);
    }
    match bytes.len() {
        6 => Some(widened(&bytes)),
        8 => Some(bytes),
        _ => None,
    }
}

/// The eight bytes that stand for six.
pub(super) fn widened(six: &[u8]) -> Vec<u8> {
    [&six[..3], &[0xff, 0xfe], &six[3..]].concat()
}

/// `08:00:2b:01:02:03`.
pub(super) fn display(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    #[test]
    fn addresses_are_read_in_every_form() {
        let wanted = [8, 0, 0x2b, 1, 2, 3];
        for text in [
            "08:00:2b:01:02:03",
            "08-00-2b-01-02-03",
            "8:0:2b:1:2:3",
            "08002b:010203",
            "08002b-010203",
            "0800.2b01.0203",
            "0800-2b01-0203",
            "08002B010203",
        ] {
            let found = parse_mac(text, 6).unwrap();
            assert_eq!(found.order(&Value::Bytes(wanted[..].into())), std::cmp::Ordering::Equal, "{text}");
        }
        for text in ["", "x", "08:00:2b:01:02", "08:00:2b:01:02:100", "08:00-2b:01:02:03", "08002b01020", "é8:00"] {
            assert!(parse_mac(text, 6).is_err() && parse_mac(text, 8).is_err(), "{text}");
        }
        let eight = Value::Bytes([8, 0, 0x2b, 0xff, 0xfe, 1, 2, 3][..].into());
        for text in ["08:00:2b:01:02:03", "08:00:2b:ff:fe:01:02:03", "08002b:fffe010203", "08002bfffe010203"] {
            assert_eq!(parse_mac(text, 8).unwrap().order(&eight), std::cmp::Ordering::Equal, "{text}");
        }
    }
}
