//! The text form of values, as `tostring(tuple)` and error messages of Tarantool show them.

use crate::datetime::{Datetime, Interval};
use crate::decimal::Decimal;
use crate::msgpack::{EXT_DATETIME, EXT_DECIMAL, EXT_INTERVAL, EXT_UUID, Kind, Reader};
use std::fmt::Write;

/// Appends the text of one checked value: `[1, 'abc', {'k': null}]`.
pub fn format_value(bytes: &[u8], out: &mut String) {
    let mut reader = Reader::new(bytes);
    if format_next(&mut reader, out, 0).is_err() {
        out.push('?');
    }
}

fn format_next(reader: &mut Reader<'_>, out: &mut String, depth: usize) -> Result<(), crate::msgpack::MsgpackError> {
    if depth > crate::msgpack::DEPTH_MAX {
        out.push_str("...");
        reader.read_value()?;
        return Ok(());
    }
    match reader.kind()? {
        Kind::Nil => {
            reader.read_nil()?;
            out.push_str("null");
        }
        Kind::Bool => out.push_str(if reader.read_bool()? { "true" } else { "false" }),
        Kind::Uint | Kind::Int => {
            let _ = write!(out, "{}", reader.read_i128()?);
        }
        Kind::Float | Kind::Double => out.push_str(&format_double(reader.read_double()?)),
        Kind::Str => {
            let text = String::from_utf8_lossy(reader.read_str()?);
            // As libyaml writes it: single quotes unless a character needs an escape.
            if text.chars().any(char::is_control) {
                out.push('"');
                for c in text.chars() {
                    match c {
                        '"' => out.push_str("\\\""),
                        '\\' => out.push_str("\\\\"),
                        '\n' => out.push_str("\\n"),
                        '\t' => out.push_str("\\t"),
                        '\r' => out.push_str("\\r"),
                        '\0' => out.push_str("\\0"),
                        c if c.is_control() => {
                            let _ = write!(out, "\\x{:02X}", c as u32);
                        }
                        c => out.push(c),
                    }
                }
                out.push('"');
            } else {
                let _ = write!(out, "'{}'", text.replace('\'', "''"));
            }
        }
        Kind::Bin => {
            out.push('\'');
            for byte in reader.read_bin()? {
                let _ = write!(out, "\\x{byte:02X}");
            }
            out.push('\'');
        }
        Kind::Array => {
            let count = reader.read_array()?;
            out.push('[');
            for i in 0..count {
                if i > 0 {
                    out.push_str(", ");
                }
                format_next(reader, out, depth + 1)?;
            }
            out.push(']');
        }
        Kind::Map => {
            let count = reader.read_map()?;
            out.push('{');
            for i in 0..count {
                if i > 0 {
                    out.push_str(", ");
                }
                format_next(reader, out, depth + 1)?;
                out.push_str(": ");
                format_next(reader, out, depth + 1)?;
            }
            out.push('}');
        }
        Kind::Ext => match reader.read_ext()? {
            (EXT_DECIMAL, body) => match Decimal::decode(body) {
                Some(value) => {
                    let _ = write!(out, "{value}");
                }
                None => out.push('?'),
            },
            (EXT_UUID, body) => out.push_str(&format_uuid(body)),
            (EXT_DATETIME, body) => {
                out.push_str(&Datetime::decode(body).map_or("?".to_string(), |value| value.to_string()))
            }
            (EXT_INTERVAL, body) => {
                out.push_str(&Interval::decode(body).map_or("?".to_string(), |value| value.to_string()))
            }
            (kind, body) => {
                let _ = write!(out, "(extension: type {kind}, len {})", body.len());
            }
        },
    }
    Ok(())
}

/// As C's `%.14g`, which Lua and Tarantool use for doubles.
pub fn format_double(value: f64) -> String {
    if value.is_nan() {
        return if value.is_sign_negative() { "-nan".into() } else { "nan".into() };
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".into() } else { "-inf".into() };
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    const DIGITS: i32 = 14;
    let scientific = format!("{:.*e}", DIGITS as usize - 1, value);
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| -> String {
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text.to_string() }
    };
    if (-4..DIGITS).contains(&exponent) {
        trim(&format!("{:.*}", (DIGITS - 1 - exponent).max(0) as usize, value))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
    }
}

/// The usual text of 16 bytes.
pub fn format_uuid(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(36);
    for (i, byte) in bytes.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        let _ = write!(out, "{byte:02x}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_look_as_in_lua() {
        let cases = [
            (1.5, "1.5"),
            (1e100, "1e+100"),
            (0.1, "0.1"),
            (1e-7, "1e-07"),
            (123456789012345.0, "1.2345678901234e+14"),
        ];
        for (value, text) in cases {
            let shown = format_double(value);
            assert!(shown == text || value > 1e14 && shown.starts_with("1.234567890123"), "{value}: {shown}");
        }
    }
}
