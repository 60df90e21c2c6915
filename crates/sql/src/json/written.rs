//! Values of all types as JSON.

use super::quote;
use crate::array::elements;
use crate::cast::display;
use crate::dialect::Dialect;
use crate::text::{display_as, display_in};
use crate::types::{Base, Type};
use crate::value::Value;
use crate::zones::Zone;

/// Appends a value of a type as JSON, a moment of PostgreSQL's as it is in a zone.
pub(super) fn write_here(dialect: Dialect, value: &Value, ty: Type, zone: Option<&Zone>, out: &mut String) {
    match value {
        Value::Datetime(_) if dialect == Dialect::Postgres && ty.base == Base::TimestampTz && zone.is_some() => {
            write_moment(&display_in(dialect, value, ty, zone), ty, out);
        }
        Value::Bytes(_) if ty.is_range() => quote(&display_in(dialect, value, ty, zone), out),
        _ => write_value(dialect, value, ty, out),
    }
}

/// Appends a value of a type as JSON.
fn write_value(dialect: Dialect, value: &Value, ty: Type, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Int(_) | Value::Uint(_) | Value::Decimal(_) => out.push_str(&display_as(Dialect::Postgres, value, ty)),
        Value::Double(double) if double.is_finite() => {
            out.push_str(&display_as(dialect, value, Type { scale: 0, ..ty }));
        }
        Value::Text(text) if ty.base == Base::Json => out.push_str(text),
        Value::Document(_) if ty.base == Base::Array => {
            out.push('[');
            for (number, element) in elements(value).iter().enumerate() {
                out.push_str(if number > 0 { "," } else { "" });
                let ty = if matches!(element, Value::Document(_)) { ty } else { ty.element() };
                write_value(dialect, element, ty, out);
            }
            out.push(']');
        }
        Value::Document(bytes) => out.push_str(&super::from_msgpack(bytes)),
        Value::Datetime(_) if dialect == Dialect::Postgres => write_moment(&display_as(dialect, value, ty), ty, out),
        Value::Datetime(_) if ty.base == Base::Time => {
            let mut text = display_as(dialect, value, ty);
            if !text.contains('.') {
                text.push_str(".000000");
            }
            quote(&text, out);
        }
        Value::Datetime(_) if ty.base == Base::Date => quote(&display_as(dialect, value, ty), out),
        Value::Datetime(_) => {
            let mut text = display(dialect, value);
            if text.len() > 10 && !text.contains('.') {
                text.push_str(".000000");
            }
            quote(&text, out);
        }
        other => quote(&display_as(dialect, other, ty), out),
    }
}

/// A moment as documents of PostgreSQL's have it: with minutes in the distance of its zone.
fn write_moment(shown: &str, ty: Type, out: &mut String) {
    let mut text = shown.replacen(' ', "T", 1);
    let is_short =
        text.len() > 3 && text.as_bytes().get(text.len() - 3).is_some_and(|sign| matches!(sign, b'+' | b'-'));
    if ty.base == Base::TimestampTz && is_short {
        text.push_str(":00");
    }
    quote(&text, out);
}
