//! Arrays: as PostgreSQL writes them, and their elements.

mod assign;
pub(crate) mod each;
pub(crate) mod functions;

pub(crate) use assign::check_dimensions;

use crate::cast::{Strictness, cast};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::types::{Base, Type};
use crate::value::Value;
use tuple::msgpack;

/// Elements that an array from a client may have.
pub const ELEMENTS_MAX: usize = 1_000_000;

/// The values of an array.
pub fn elements(value: &Value) -> Vec<Value> {
    let Value::Document(bytes) = value else { return Vec::new() };
    let mut reader = msgpack::Reader::new(bytes);
    let count = reader.read_array().unwrap_or(0);
    let mut found = Vec::new();
    for _ in 0..count {
        let Ok(item) = reader.read_value() else { break };
        found.push(Value::decode(item));
    }
    found
}

/// Arrays within arrays.
const DEPTH_MAX: usize = 6;

/// An array from text: `{1,2,"a b",NULL}`, `{{1,2},{3,4}}`. Errors: it is none.
pub fn parse_array(text: &str, ty: Type) -> Result<Value> {
    let wrong = || Error::new(Condition::InvalidText, format!("malformed array literal: \"{text}\""));
    let mut chars = text.trim().chars().peekable();
    let mut out = Vec::new();
    let mut count = 0;
    parse_level(&mut chars, ty, &mut out, (0, &mut count))?.ok_or_else(wrong)?;
    match chars.next() {
        None => Ok(Value::Document(out.into())),
        Some(_) => Err(wrong()),
    }
}

/// One pair of braces. None: it is none.
fn parse_level(
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    ty: Type,
    out: &mut Vec<u8>,
    (depth, count): (usize, &mut usize),
) -> Result<Option<()>> {
    if depth >= DEPTH_MAX || chars.next_if_eq(&'{').is_none() {
        return Ok(None);
    }
    let mut items = Vec::new();
    let mut number = 0;
    let skip =
        |chars: &mut std::iter::Peekable<std::str::Chars<'_>>| while chars.next_if(|c| c.is_whitespace()).is_some() {};
    skip(chars);
    if chars.next_if_eq(&'}').is_some() {
        msgpack::encode_array(out, 0);
        return Ok(Some(()));
    }
    loop {
        skip(chars);
        if chars.peek() == Some(&'{') {
            if parse_level(chars, ty, &mut items, (depth + 1, count))?.is_none() {
                return Ok(None);
            }
            skip(chars);
        } else {
            let Some(item) = parse_item(chars) else { return Ok(None) };
            match item {
                None => msgpack::encode_nil(&mut items),
                Some(item) if matches!(ty.base, Base::Unknown | Base::Any) => {
                    msgpack::encode_str(&mut items, item.as_bytes());
                }
                Some(item) => {
                    cast(Dialect::Postgres, Value::text(item), ty, Strictness::Explicit)?.encode(&mut items);
                }
            }
        }
        number += 1;
        *count += 1;
        if *count > ELEMENTS_MAX {
            return Ok(None);
        }
        match chars.next() {
            Some(',') => {}
            Some('}') => break,
            _ => return Ok(None),
        }
    }
    msgpack::encode_array(out, number);
    out.extend_from_slice(&items);
    Ok(Some(()))
}

/// An element; none within for null. None: it is none.
fn parse_item(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<Option<String>> {
    let mut item = String::new();
    if chars.next_if_eq(&'"').is_some() {
        loop {
            match chars.next()? {
                '"' => break,
                '\\' => item.push(chars.next()?),
                other => item.push(other),
            }
        }
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        return Some(Some(item));
    }
    while let Some(next) = chars.next_if(|next| !matches!(next, ',' | '}')) {
        match next {
            '{' | '"' => return None,
            '\\' => item.push(chars.next()?),
            other => item.push(other),
        }
    }
    let trimmed = item.trim_end();
    if trimmed.is_empty() {
        return None;
    }
    Some((!trimmed.eq_ignore_ascii_case("null")).then(|| trimmed.to_string()))
}
