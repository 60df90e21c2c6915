//! Values as text and back: MessagePack, JSON, YAML. All three go through MessagePack.

use crate::convert::{self, Rules, push_bytes_value, push_next};
use crate::state::{Function, Raise, State};
use serde_json::Value;
use std::ffi::c_int;
use tuple::msgpack::{Kind, Reader};

type Outcome = Result<c_int, Raise>;

/// msgpack_encode(value, options or nil) -> text
fn msgpack_encode(state: State) -> Outcome {
    let mut out = Vec::new();
    convert::encode_by(state, 1, &mut out, &Rules::at(state, 2))?;
    state.push_bytes(&out);
    Ok(1)
}

/// msgpack_decode(text, from 1) -> value, position behind it
fn msgpack_decode(state: State) -> Outcome {
    let bytes = state.bytes(1).ok_or("msgpack.decode: a Lua string or 'char *' expected")?;
    let from = state.number(2).unwrap_or(1.0);
    if !(1.0..=bytes.len() as f64).contains(&from) {
        return Err("msgpack.decode: offset is out of bounds".into());
    }
    let from = from as usize - 1;
    let rest = &bytes[from..];
    let length = tuple::msgpack::check(rest).map_err(|_| "msgpack.decode: invalid MsgPack")?;
    push_next(state, &mut Reader::new(rest))?;
    state.push_number((from + length + 1) as f64);
    Ok(2)
}

/// msgpack_decode_pointer(char *, bytes) -> value, pointer behind it
fn msgpack_decode_pointer(state: State) -> Outcome {
    let size = state.number(2).unwrap_or(0.0).max(0.0) as usize;
    let bytes = convert::pointed_bytes(state, 1, size).ok_or("msgpack.decode: invalid MsgPack")?;
    let length = tuple::msgpack::check(bytes).map_err(|_| "msgpack.decode: invalid MsgPack")?;
    push_next(state, &mut Reader::new(&bytes[..length]))?;
    convert::push_pointer_behind(state, 1, length);
    Ok(2)
}

/// msgpack_header(char *, bytes, is_map) -> number of elements, pointer behind the header; or nil and what is wrong
fn msgpack_header(state: State) -> Outcome {
    let size = state.number(2).unwrap_or(0.0).max(0.0) as usize;
    let bytes = convert::pointed_bytes(state, 1, size).ok_or("unexpected end of buffer")?;
    let mut reader = Reader::new(bytes);
    let (wanted, is_map) = if state.boolean(3) { (Kind::Map, true) } else { (Kind::Array, false) };
    if reader.kind().map_err(|_| "unexpected end of buffer")? != wanted {
        return Err("unexpected msgpack type".into());
    }
    let count = if is_map { reader.read_map() } else { reader.read_array() };
    state.push_number(f64::from(count.map_err(|_| "unexpected end of buffer")?));
    convert::push_pointer_behind(state, 1, reader.position());
    Ok(2)
}

/// Appends JSON text of checked msgpack.
fn write_json(reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Raise> {
    let broken = |_| Raise::from("value cannot be shown as JSON");
    match reader.kind().map_err(broken)? {
        Kind::Nil => {
            reader.read_nil().map_err(broken)?;
            out.extend_from_slice(b"null");
        }
        Kind::Bool => {
            let text: &[u8] = if reader.read_bool().map_err(broken)? { b"true" } else { b"false" };
            out.extend_from_slice(text);
        }
        Kind::Uint | Kind::Int => {
            out.extend_from_slice(reader.read_i128().map_err(broken)?.to_string().as_bytes());
        }
        Kind::Float | Kind::Double => {
            out.extend_from_slice(tuple::format_double(reader.read_double().map_err(broken)?).as_bytes());
        }
        Kind::Str | Kind::Bin => write_json_string(reader.read_str_or_bin().map_err(broken)?, true, out),
        Kind::Array => {
            let count = reader.read_array().map_err(broken)?;
            out.push(b'[');
            for at in 0..count {
                if at > 0 {
                    out.push(b',');
                }
                write_json(reader, out)?;
            }
            out.push(b']');
        }
        Kind::Map => {
            let count = reader.read_map().map_err(broken)?;
            out.push(b'{');
            for at in 0..count {
                if at > 0 {
                    out.push(b',');
                }
                if matches!(reader.kind(), Ok(Kind::Str | Kind::Bin)) {
                    write_json(reader, out)?;
                } else {
                    let mut key = Vec::new();
                    write_json(reader, &mut key)?;
                    write_json_string(&key, true, out);
                }
                out.push(b':');
                write_json(reader, out)?;
            }
            out.push(b'}');
        }
        Kind::Ext => {
            let raw = reader.read_value().map_err(broken)?;
            let mut text = String::new();
            tuple::msgpack::format_value(raw, &mut text);
            write_json_string(text.as_bytes(), true, out);
        }
    }
    Ok(())
}

fn write_json_string(text: &[u8], is_json: bool, out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in text {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'/' if is_json => out.extend_from_slice(b"\\/"),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            0..=0x1f | 0x7f => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

/// json_encode(value, options or nil) -> text
fn json_encode(state: State) -> Outcome {
    let (mut bytes, mut out) = (Vec::new(), Vec::new());
    let rules = Rules { names_depth: false, ..Rules::at(state, 2) };
    convert::encode_by(state, 1, &mut bytes, &rules)?;
    write_json(&mut Reader::new(&bytes), &mut out)?;
    state.push_bytes(&out);
    Ok(1)
}

/// Appends msgpack of a JSON-like value.
fn write_msgpack(value: &Value, out: &mut Vec<u8>) {
    use tuple::msgpack::{encode_array, encode_bool, encode_f64, encode_int, encode_map, encode_nil, encode_str};
    match value {
        Value::Null => encode_nil(out),
        Value::Bool(value) => encode_bool(out, *value),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => encode_int(out, value),
            (None, Some(value)) => tuple::msgpack::encode_uint(out, value),
            _ => encode_f64(out, number.as_f64().unwrap_or(0.0)),
        },
        Value::String(text) => encode_str(out, text.as_bytes()),
        Value::Array(values) => {
            encode_array(out, values.len() as u32);
            values.iter().for_each(|value| write_msgpack(value, out));
        }
        Value::Object(pairs) => {
            encode_map(out, pairs.len() as u32);
            for (key, value) in pairs {
                encode_str(out, key.as_bytes());
                write_msgpack(value, out);
            }
        }
    }
}

fn push_json(state: State, value: &Value) -> Outcome {
    let mut bytes = Vec::new();
    write_msgpack(value, &mut bytes);
    push_bytes_value(state, &bytes)?;
    Ok(1)
}

fn json_decode(state: State) -> Outcome {
    let text = state.bytes(1).ok_or("bad argument #1 to 'decode' (string expected)")?;
    let value: Value = serde_json::from_slice(text).map_err(|error| Raise::Message(error.to_string()))?;
    push_json(state, &value)
}

fn yaml_decode(state: State) -> Outcome {
    let text = state.bytes(1).ok_or("bad argument #1 to 'decode' (string expected)")?;
    let value: Value = serde_yaml_ng::from_slice(text).map_err(|error| Raise::Message(error.to_string()))?;
    push_json(state, &value)
}

/// True if a string must be quoted in YAML to stay a string.
fn needs_quotes(text: &str) -> bool {
    let is_word = matches!(
        text.to_ascii_lowercase().as_str(),
        "" | "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "~" | "y" | "n"
    );
    let starts_badly = text.starts_with([
        ' ', '-', '?', ':', ',', '[', ']', '{', '}', '#', '&', '*', '!', '|', '>', '\'', '"', '%', '@', '`',
    ]) && !(text.starts_with(['-', '?', ':']) && text.len() > 1 && !text[1..].starts_with(' '));
    is_word
        || starts_badly
        || text.ends_with([' ', ':'])
        || text.contains(": ")
        || text.contains(" #")
        || text.parse::<f64>().is_ok()
        || text.starts_with("0x")
        || text.starts_with("---")
}

/// A string. Inside brackets strings are always quoted.
fn yaml_scalar(text: &[u8], is_in_line: bool, out: &mut String) {
    use std::fmt::Write;
    match std::str::from_utf8(text) {
        Err(_) => {
            use base64::Engine;
            let _ = write!(out, "!!binary {}", base64::engine::general_purpose::STANDARD.encode(text));
        }
        Ok(text) if text.chars().any(|c| c.is_control() && c != '\n') => {
            let mut quoted = Vec::new();
            write_json_string(text.as_bytes(), false, &mut quoted);
            out.push_str(&String::from_utf8_lossy(&quoted));
        }
        Ok(text) if text.contains('\n') => {
            let mut quoted = Vec::new();
            write_json_string(text.as_bytes(), false, &mut quoted);
            out.push_str(&String::from_utf8_lossy(&quoted));
        }
        Ok(text) if is_in_line || needs_quotes(text) => {
            let _ = write!(out, "'{}'", text.replace('\'', "''"));
        }
        Ok(text) => out.push_str(text),
    }
}

/// Appends YAML of checked msgpack: one item a line, but in one line what is marked so (and what is empty).
fn write_yaml(reader: &mut Reader<'_>, out: &mut String, indent: usize, is_in_line: bool) -> Result<(), Raise> {
    use std::fmt::Write;
    let broken = |_| Raise::from("value cannot be shown as YAML");
    match reader.kind().map_err(broken)? {
        Kind::Nil => {
            reader.read_nil().map_err(broken)?;
            out.push_str("null");
        }
        Kind::Bool => out.push_str(if reader.read_bool().map_err(broken)? { "true" } else { "false" }),
        Kind::Uint | Kind::Int => {
            let _ = write!(out, "{}", reader.read_i128().map_err(broken)?);
        }
        Kind::Float | Kind::Double => out.push_str(&tuple::format_double(reader.read_double().map_err(broken)?)),
        Kind::Str | Kind::Bin => yaml_scalar(reader.read_str_or_bin().map_err(broken)?, is_in_line, out),
        Kind::Ext => {
            let mut ahead = *reader;
            match ahead.read_ext().map_err(broken)? {
                (convert::EXT_IN_LINE, body) => {
                    *reader = ahead;
                    write_yaml(&mut Reader::new(body), out, indent, true)?;
                }
                _ => {
                    let raw = reader.read_value().map_err(broken)?;
                    tuple::msgpack::format_value(raw, out);
                }
            }
        }
        Kind::Array => {
            let count = reader.read_array().map_err(broken)?;
            if is_in_line || count == 0 {
                out.push('[');
                for at in 0..count {
                    out.push_str(if at > 0 { ", " } else { "" });
                    write_yaml(reader, out, indent + 2, true)?;
                }
                out.push(']');
                return Ok(());
            }
            for at in 0..count {
                if at > 0 {
                    let _ = write!(out, "\n{:indent$}", "");
                }
                out.push_str("- ");
                write_yaml(reader, out, indent + 2, false)?;
            }
        }
        Kind::Map => {
            let count = reader.read_map().map_err(broken)?;
            if is_in_line || count == 0 {
                out.push('{');
                for at in 0..count {
                    out.push_str(if at > 0 { ", " } else { "" });
                    write_yaml(reader, out, indent + 2, true)?;
                    out.push_str(": ");
                    write_yaml(reader, out, indent + 2, true)?;
                }
                out.push('}');
                return Ok(());
            }
            for at in 0..count {
                if at > 0 {
                    let _ = write!(out, "\n{:indent$}", "");
                }
                write_yaml(reader, out, indent + 2, false)?;
                out.push(':');
                let mut ahead = *reader;
                let is_map = matches!(reader.kind(), Ok(Kind::Map));
                let nests = match ahead.kind() {
                    Ok(Kind::Map) => ahead.read_map().unwrap_or(0) > 0,
                    Ok(Kind::Array) => ahead.read_array().unwrap_or(0) > 0,
                    _ => false,
                };
                if nests {
                    let inner = if is_map { indent + 2 } else { indent };
                    let _ = write!(out, "\n{:inner$}", "");
                    write_yaml(reader, out, inner, false)?;
                } else {
                    out.push(' ');
                    write_yaml(reader, out, indent + 2, false)?;
                }
            }
        }
    }
    Ok(())
}

/// As `yaml_encode`, with the outermost list always one item a line: answers of a console.
fn yaml_encode_list(state: State) -> Outcome {
    let mut bytes = Vec::new();
    convert::encode_by(state, 1, &mut bytes, &Rules { marks_shapes: true, ..Rules::at(state, 2) })?;
    let mut reader = Reader::new(&bytes);
    if let Ok((convert::EXT_IN_LINE, body)) = reader.clone().read_ext() {
        reader = Reader::new(body);
    }
    let count = reader.read_array().map_err(|_| "a list is expected")?;
    let mut out = String::from("---\n");
    for _ in 0..count {
        out.push_str("- ");
        write_yaml(&mut reader, &mut out, 2, false)?;
        out.push('\n');
    }
    out.push_str("...\n");
    state.push_str(&out);
    Ok(1)
}

fn yaml_encode(state: State) -> Outcome {
    let mut bytes = Vec::new();
    convert::encode_by(state, 1, &mut bytes, &Rules { marks_shapes: true, ..Rules::at(state, 2) })?;
    let mut reader = Reader::new(&bytes);
    let nests = match reader.kind() {
        Ok(Kind::Map) => bytes[0] != 0x80,
        Ok(Kind::Array) => bytes[0] != 0x90,
        _ => false,
    };
    let mut out = String::from(if nests { "---\n" } else { "--- " });
    write_yaml(&mut reader, &mut out, 0, false)?;
    out.push_str("\n...\n");
    state.push_str(&out);
    Ok(1)
}

/// Functions of `box.internal` for the three notations.
pub(crate) const FUNCTIONS: &[(&str, Function)] = &[
    ("msgpack_encode", msgpack_encode),
    ("msgpack_decode", msgpack_decode),
    ("msgpack_decode_pointer", msgpack_decode_pointer),
    ("msgpack_header", msgpack_header),
    ("json_encode", json_encode),
    ("json_decode", json_decode),
    ("yaml_encode", yaml_encode),
    ("yaml_decode", yaml_decode),
    ("yaml_encode_list", yaml_encode_list),
];
