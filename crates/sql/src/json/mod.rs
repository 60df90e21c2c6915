//! JSON: whether text is one, documents of msgpack as one, and [`value::Json`], what it says.

pub(crate) mod functions;
pub(crate) mod path;
mod value;
mod within;
mod written;

pub(crate) use value::{Json, order_names};

use tuple::msgpack::{self, Kind, Reader};

/// Arrays and objects within each other.
const DEPTH_MAX: usize = 128;

/// True if the text is one JSON value.
pub(crate) fn check(text: &str) -> bool {
    let mut rest = text.as_bytes();
    check_value(&mut rest, 0).is_some() && skip_space(&mut rest).is_empty()
}

fn skip_space<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    while let [b' ' | b'\t' | b'\n' | b'\r', behind @ ..] = rest {
        *rest = behind;
    }
    rest
}

fn check_value(rest: &mut &[u8], depth: usize) -> Option<()> {
    let first = *skip_space(rest).first()?;
    match first {
        b'{' | b'[' if depth < DEPTH_MAX => {
            *rest = &rest[1..];
            let end = if first == b'{' { b'}' } else { b']' };
            if skip_space(rest).first() == Some(&end) {
                *rest = &rest[1..];
                return Some(());
            }
            loop {
                if first == b'{' {
                    skip_space(rest);
                    check_text(rest)?;
                    if skip_space(rest).first() != Some(&b':') {
                        return None;
                    }
                    *rest = &rest[1..];
                }
                check_value(rest, depth + 1)?;
                let next = *skip_space(rest).first()?;
                *rest = &rest[1..];
                match next {
                    b',' => {}
                    next if next == end => return Some(()),
                    _ => return None,
                }
            }
        }
        b'"' => check_text(rest),
        b't' | b'f' | b'n' => {
            let word: &[u8] = match first {
                b't' => b"true",
                b'f' => b"false",
                _ => b"null",
            };
            *rest = rest.strip_prefix(word)?;
            Some(())
        }
        _ => check_number(rest),
    }
}

fn check_text(rest: &mut &[u8]) -> Option<()> {
    *rest = rest.strip_prefix(b"\"")?;
    loop {
        let (&byte, behind) = rest.split_first()?;
        *rest = behind;
        match byte {
            b'"' => return Some(()),
            b'\\' => {
                let (&escaped, behind) = rest.split_first()?;
                *rest = behind;
                match escaped {
                    b'u' => {
                        let digits = rest.get(..4)?;
                        if !digits.iter().all(u8::is_ascii_hexdigit) {
                            return None;
                        }
                        *rest = &rest[4..];
                    }
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                    _ => return None,
                }
            }
            0..0x20 => return None,
            _ => {}
        }
    }
}

fn check_number(rest: &mut &[u8]) -> Option<()> {
    let digits = |rest: &mut &[u8]| {
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        *rest = &rest[count..];
        (count > 0).then_some(())
    };
    if rest.first() == Some(&b'-') {
        *rest = &rest[1..];
    }
    match rest.first()? {
        b'0' => *rest = &rest[1..],
        _ => digits(rest)?,
    }
    if rest.first() == Some(&b'.') {
        *rest = &rest[1..];
        digits(rest)?;
    }
    if matches!(rest.first(), Some(b'e' | b'E')) {
        *rest = &rest[1..];
        if matches!(rest.first(), Some(b'+' | b'-')) {
            *rest = &rest[1..];
        }
        digits(rest)?;
    }
    Some(())
}

/// A text as JSON writes it.
pub(crate) fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// A document of msgpack as JSON.
pub(crate) fn from_msgpack(bytes: &[u8]) -> String {
    let mut out = String::new();
    let mut reader = Reader::new(bytes);
    if next_of(&mut reader, &mut out, 0).is_none() {
        out.push_str("null");
    }
    out
}

fn next_of(reader: &mut Reader<'_>, out: &mut String, depth: usize) -> Option<()> {
    if depth > msgpack::DEPTH_MAX {
        return None;
    }
    match reader.kind().ok()? {
        Kind::Array => {
            out.push('[');
            for number in 0..reader.read_array().ok()? {
                out.push_str(if number > 0 { "," } else { "" });
                next_of(reader, out, depth + 1)?;
            }
            out.push(']');
        }
        Kind::Map => {
            out.push('{');
            for number in 0..reader.read_map().ok()? {
                out.push_str(if number > 0 { "," } else { "" });
                next_of(reader, out, depth + 1)?;
                out.push(':');
                next_of(reader, out, depth + 1)?;
            }
            out.push('}');
        }
        Kind::Str => quote(&String::from_utf8_lossy(reader.read_str().ok()?), out),
        Kind::Nil => {
            reader.read_nil().ok()?;
            out.push_str("null");
        }
        _ => msgpack::format_value(reader.read_value().ok()?, out),
    }
    Some(())
}
