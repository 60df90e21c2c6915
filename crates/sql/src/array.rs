//! Arrays as PostgreSQL writes them.

use crate::cast::{Strictness, cast};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::types::{Base, Type};
use crate::value::Value;
use tuple::msgpack;

/// Elements that an array from a client may have.
pub const ELEMENTS_MAX: usize = 1_000_000;

/// An array from text: `{1,2,"a b",NULL}`. Errors: it is none.
pub fn parse_array(text: &str, ty: Type) -> Result<Value> {
    let wrong = || Error::new(Condition::InvalidText, format!("malformed array literal: \"{text}\""));
    let inner = text.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).ok_or_else(wrong)?;
    let mut items: Vec<Option<String>> = Vec::new();
    let mut chars = inner.chars().peekable();
    while chars.peek().is_some() {
        let (mut item, mut is_quoted) = (String::new(), false);
        if chars.next_if_eq(&'"').is_some() {
            is_quoted = true;
            loop {
                match chars.next().ok_or_else(wrong)? {
                    '"' => break,
                    '\\' => item.push(chars.next().ok_or_else(wrong)?),
                    other => item.push(other),
                }
            }
        } else {
            while let Some(next) = chars.next_if(|next| *next != ',') {
                match next {
                    '{' | '}' | '"' => return Err(wrong()),
                    '\\' => item.push(chars.next().ok_or_else(wrong)?),
                    other => item.push(other),
                }
            }
        }
        let trimmed = if is_quoted { item } else { item.trim().to_string() };
        items.push((is_quoted || !trimmed.eq_ignore_ascii_case("null")).then_some(trimmed));
        match chars.next() {
            None => break,
            Some(',') if chars.peek().is_some() => {}
            Some(_) => return Err(wrong()),
        }
        if items.len() > ELEMENTS_MAX {
            return Err(wrong());
        }
    }
    let mut out = Vec::new();
    msgpack::encode_array(&mut out, items.len() as u32);
    for item in items {
        match item {
            None => msgpack::encode_nil(&mut out),
            Some(item) if ty.base == Base::Unknown => msgpack::encode_str(&mut out, item.as_bytes()),
            Some(item) => {
                cast(Dialect::Postgres, Value::text(item.as_str()), ty, Strictness::Explicit)?.encode(&mut out)
            }
        }
    }
    Ok(Value::Document(out.into()))
}
