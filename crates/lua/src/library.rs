//! The C functions under the built-in modules: fibers, text formats, clocks, digests, files.

use crate::convert::{self, decimal_at, encode, push_bytes_value, push_decimal, push_next};
use crate::registry::{Thread, context, database, registry};
use crate::state::{Function, Raise, State, is_stack_low};
use dashu_float::DBig;
use database::Context;
use mlua_sys as ffi;
use runtime::fiber::{self, FiberId, Wake};
use runtime::{FileSystem, OpenMode, SystemFiles};
use serde_json::Value;
use std::any::Any;
use std::ffi::c_int;
use std::path::Path;
use std::rc::Rc;
use tuple::decimal::Decimal;
use tuple::msgpack::{Kind, Reader};

type Outcome = Result<c_int, Raise>;

fn fiber_at(state: State, index: c_int) -> Result<FiberId, Raise> {
    Ok(FiberId(state.check_number(index, "fiber id")? as u64))
}

/// fiber_spawn(is_new, function, arguments...) -> id
fn fiber_spawn(state: State) -> Outcome {
    let thread = Thread::take();
    let count = state.top() - 1;
    if !thread.state.reserve(count + 4) {
        return Err("stack overflow".into());
    }
    let is_new = state.boolean(1);
    for index in 2..=count + 1 {
        state.push_value(index);
    }
    state.move_to(thread.state, count);
    let creator = context();
    let new_context = Rc::new(Context::for_background(Rc::clone(&creator.session)));
    new_context.user.set(creator.user.get());
    let id = fiber::spawn("lua", move || {
        // The whole of it, so that the thread goes back when the fiber ends and not before.
        let thread: Thread = thread;
        fiber::set_local("context", Rc::clone(&new_context) as Rc<dyn Any>);
        let outcome = thread.state.call_root(count - 1, ffi::LUA_MULTRET);
        if new_context.is_in_txn() {
            database().abandon(&new_context);
        }
        // What the fiber returned goes to who joins it.
        thread.state.get_global("box");
        let box_table = thread.state.top();
        thread.state.get_field(box_table, "internal");
        let internal = thread.state.top();
        thread.state.get_field(internal, "fiber_ended");
        let arguments = box_table - 1;
        thread.state.push_number(fiber::current().map_or(0.0, |id| id.0 as f64));
        thread.state.push_bool(outcome.is_ok());
        for index in 1..=arguments {
            thread.state.push_value(index);
        }
        if thread.state.pcall(arguments + 2, 0).is_err() {
            let error = crate::error::take_error(thread.state);
            tracing::error!("fiber: {error}");
        }
    });
    state.push_number(id.0 as f64);
    if !is_new && fiber::current().is_some() {
        state.check_may_wait()?;
        // `fiber.create` runs the new fiber first.
        fiber::switch_to(id);
        crate::lua::sync_schema(state);
    }
    Ok(1)
}

fn outcome_of(wake: Wake) -> Result<(), Raise> {
    if wake == Wake::Cancelled { Err(Raise::Cancelled) } else { Ok(()) }
}

/// fiber_sleep(seconds)
fn fiber_sleep(state: State) -> Outcome {
    state.check_may_wait()?;
    let seconds = state.number(1).unwrap_or(0.0).clamp(0.0, 1e9);
    let wake = fiber::sleep((seconds * 1e9) as u64);
    crate::lua::sync_schema(state);
    outcome_of(wake)?;
    Ok(0)
}

/// fiber_park(seconds or nil) -> true if woken, false on timeout
fn fiber_park(state: State) -> Outcome {
    state.check_may_wait()?;
    let deadline = state
        .number(1)
        .filter(|seconds| *seconds < 1e9)
        .map(|seconds| fiber::now_ns().saturating_add((seconds.max(0.0) * 1e9) as u64));
    let wake = fiber::park_until(deadline);
    crate::lua::sync_schema(state);
    outcome_of(wake)?;
    state.push_bool(wake == Wake::Woken);
    Ok(1)
}

fn fiber_self(state: State) -> Outcome {
    state.push_number(fiber::current().map_or(1.0, |id| id.0 as f64));
    Ok(1)
}

fn fiber_wake(state: State) -> Outcome {
    fiber::wake(fiber_at(state, 1)?);
    Ok(0)
}

fn fiber_cancel(state: State) -> Outcome {
    fiber::cancel(fiber_at(state, 1)?);
    Ok(0)
}

fn fiber_is_cancelled(state: State) -> Outcome {
    state.push_bool(fiber::is_cancelled());
    Ok(1)
}

/// fiber_status(id) -> text
fn fiber_status(state: State) -> Outcome {
    state.push_str(match fiber::status(fiber_at(state, 1)?) {
        fiber::Status::Running => "running",
        fiber::Status::Suspended => "suspended",
        fiber::Status::Dead => "dead",
    });
    Ok(1)
}

/// fiber_name(id, new name or nil) -> name
fn fiber_name(state: State) -> Outcome {
    let id = fiber_at(state, 1)?;
    if let Some(name) = state.string(2) {
        fiber::set_name(id, &name);
    }
    match fiber::name(id) {
        Some(name) => state.push_str(&name),
        None => state.push_nil(),
    }
    Ok(1)
}

/// fiber_list() -> {{id, name, switches}}
fn fiber_list(state: State) -> Outcome {
    let fibers = fiber::list();
    state.new_table(fibers.len(), 0);
    let list = state.top();
    for (at, (id, name, switches)) in fibers.iter().enumerate() {
        state.new_table(3, 0);
        let table = state.top();
        state.push_number(id.0 as f64);
        state.raw_set_index(table, 1);
        state.push_str(name);
        state.raw_set_index(table, 2);
        state.push_number(*switches as f64);
        state.raw_set_index(table, 3);
        state.raw_set_index(list, at as c_int + 1);
    }
    Ok(1)
}

fn clock_monotonic(state: State) -> Outcome {
    state.push_number(database().environment().clock.monotonic_ns() as f64 / 1e9);
    Ok(1)
}

fn clock_wall(state: State) -> Outcome {
    state.push_number(database().environment().clock.wall_ns() as f64 / 1e9);
    Ok(1)
}

/// clock_ns(is_wall) -> uint64 nanoseconds
fn clock_ns(state: State) -> Outcome {
    let environment_database = database();
    let clock = &environment_database.environment().clock;
    convert::push_u64(state, if state.boolean(1) { clock.wall_ns() } else { clock.monotonic_ns() });
    Ok(1)
}

/// random_bytes(count)
fn random_bytes(state: State) -> Outcome {
    let count = state.check_number(1, "count")?.clamp(0.0, 1e7) as usize;
    let mut bytes = vec![0; count];
    database().environment().randomness.fill(&mut bytes);
    state.push_bytes(&bytes);
    Ok(1)
}

fn msgpack_encode(state: State) -> Outcome {
    let mut out = Vec::new();
    encode(state, 1, &mut out)?;
    state.push_bytes(&out);
    Ok(1)
}

/// msgpack_decode(text, from 1) -> value, position behind it
fn msgpack_decode(state: State) -> Outcome {
    let bytes = state.bytes(1).ok_or("msgpack.decode: a Lua string or 'char *' expected")?;
    let from = state.number(2).unwrap_or(1.0).max(1.0) as usize - 1;
    let rest = bytes.get(from..).unwrap_or(&[]);
    if rest.is_empty() {
        return Err("msgpack.decode: offset is out of bounds".into());
    }
    let length = tuple::msgpack::check(rest).map_err(|_| "msgpack.decode: invalid MsgPack")?;
    push_next(state, &mut Reader::new(rest))?;
    state.push_number((from + length + 1) as f64);
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

fn json_encode(state: State) -> Outcome {
    let (mut bytes, mut out) = (Vec::new(), Vec::new());
    encode(state, 1, &mut bytes)?;
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
    convert::encode_marked(state, 1, &mut bytes)?;
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
    convert::encode_marked(state, 1, &mut bytes)?;
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

/// digest(name, text) -> binary
fn digest(state: State) -> Outcome {
    use sha1::Digest;
    let name = state.check_string(1, "name")?;
    let text = state.bytes(2).ok_or("a string is expected")?;
    let hash = match name.as_str() {
        "sha1" => sha1::Sha1::digest(text).to_vec(),
        "sha224" => sha2::Sha224::digest(text).to_vec(),
        "sha256" => sha2::Sha256::digest(text).to_vec(),
        "sha384" => sha2::Sha384::digest(text).to_vec(),
        "sha512" => sha2::Sha512::digest(text).to_vec(),
        "md5" => md5::Md5::digest(text).to_vec(),
        other => return Err(format!("unknown digest {other}").into()),
    };
    state.push_bytes(&hash);
    Ok(1)
}

fn base64_encode(state: State) -> Outcome {
    use base64::Engine;
    let text = state.bytes(1).ok_or("a string is expected")?;
    let is_urlsafe = state.boolean(2);
    let encoded = if is_urlsafe {
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text)
    } else {
        base64::engine::general_purpose::STANDARD.encode(text)
    };
    state.push_str(&encoded);
    Ok(1)
}

fn base64_decode(state: State) -> Outcome {
    use base64::Engine;
    let text = state.string(1).ok_or("a string is expected")?;
    let clean: String = text.chars().filter(|c| !c.is_whitespace() && *c != '=').collect();
    let clean = clean.replace('-', "+").replace('_', "/");
    let decoded = base64::engine::general_purpose::STANDARD_NO_PAD.decode(clean).unwrap_or_default();
    state.push_bytes(&decoded);
    Ok(1)
}

/// log(level, text)
fn log(state: State) -> Outcome {
    let level = state.check_string(1, "level")?;
    let text = state.check_string(2, "text")?;
    match level.as_str() {
        "error" | "crit" | "fatal" => tracing::error!("{text}"),
        "warn" => tracing::warn!("{text}"),
        "info" => tracing::info!("{text}"),
        "verbose" | "debug" => tracing::debug!("{text}"),
        _ => {}
    }
    Ok(0)
}

/// print(text): standard output through Rust, so that lines keep their order
fn write_out(state: State) -> Outcome {
    use std::io::Write;
    let text = state.bytes(1).unwrap_or(b"");
    let mut out = std::io::stdout().lock();
    // A closed output is no reason to fail.
    let _ = out.write_all(text).and_then(|()| out.flush());
    Ok(0)
}

fn decimal_new(state: State) -> Outcome {
    match decimal_at(state, 1) {
        Some(decimal) => push_decimal(state, &decimal),
        None => return Err("incorrect value to convert to decimal as 1 argument".into()),
    }
    Ok(1)
}

fn decimal_text(state: State) -> Outcome {
    let decimal = decimal_at(state, 1).ok_or("a decimal is expected")?;
    state.push_str(&decimal.to_string());
    Ok(1)
}

/// Digits of results that are not exact.
const DECIMAL_DIGITS: usize = 38;

fn wide(decimal: &Decimal) -> Result<DBig, Raise> {
    let value: DBig = decimal.to_string().parse().map_err(|_| Raise::from("a decimal is expected"))?;
    Ok(value.with_precision(2 * DECIMAL_DIGITS).value())
}

/// A result of at most 38 digits. Errors: it is larger.
fn narrow(value: DBig) -> Result<Decimal, Raise> {
    let (mut significand, mut exponent) = value.with_precision(DECIMAL_DIGITS).value().into_repr().into_parts();
    let ten = dashu_int::IBig::from(10);
    // Not more than 38 digits behind the point.
    while exponent < -(DECIMAL_DIGITS as isize) {
        significand /= &ten;
        exponent += 1;
    }
    let mut coefficient = i128::try_from(significand).map_err(|_| Raise::from("decimal operation failed"))?;
    while exponent > 0 {
        coefficient = coefficient.checked_mul(10).ok_or("decimal operation failed")?;
        exponent -= 1;
    }
    Decimal::new(coefficient, -exponent as i32)
        .map(Decimal::normalized)
        .ok_or_else(|| "decimal operation failed".into())
}

/// decimal_combine(operation, a, b)
fn decimal_combine(state: State) -> Outcome {
    let operation = state.check_string(1, "operation")?;
    let (Some(a), Some(b)) = (decimal_at(state, 2), decimal_at(state, 3)) else {
        return Err("incorrect value to convert to decimal".into());
    };
    let zero = Decimal::from(0i64);
    let result = match operation.as_str() {
        "compare" => {
            state.push_number(f64::from(a.cmp(&b) as i32));
            return Ok(1);
        }
        "+" => a.checked_add(b).ok_or("decimal operation failed")?,
        "-" => a.checked_sub(b).ok_or("decimal operation failed")?,
        "*" => narrow(wide(&a)? * wide(&b)?)?,
        "/" | "%" if b == zero => return Err("decimal operation failed".into()),
        "/" => narrow(wide(&a)? / wide(&b)?)?,
        "%" => {
            let (x, y) = (wide(&a)?, wide(&b)?);
            let whole = (x.clone() / y.clone()).trunc();
            narrow(x - whole * y)?
        }
        "^" => match b.to_integer() {
            Some(exponent) if exponent.unsigned_abs() < 10_000 => narrow(wide(&a)?.powi((exponent as i64).into()))?,
            _ if a <= zero => return Err("decimal operation failed".into()),
            _ => narrow(wide(&a)?.powf(&wide(&b)?))?,
        },
        "sqrt" if a >= zero => narrow(wide(&a)?.sqrt())?,
        "exp" if a.to_f64() < 90.0 => narrow(wide(&a)?.exp())?,
        "ln" if a > zero => narrow(wide(&a)?.ln())?,
        "log10" if a > zero => {
            let ten = wide(&Decimal::from(10i64))?;
            narrow(wide(&a)?.ln() / ten.ln())?
        }
        _ => return Err("decimal operation failed".into()),
    };
    push_decimal(state, &result);
    Ok(1)
}

/// decimal_parts(decimal) -> digits, scale
fn decimal_parts(state: State) -> Outcome {
    let decimal = decimal_at(state, 1).ok_or("a decimal is expected")?;
    let (coefficient, scale) = decimal.parts();
    let digits = coefficient.unsigned_abs().to_string().len();
    state.push_number(digits.max(scale.max(0) as usize) as f64);
    state.push_number(f64::from(scale.max(0)));
    Ok(2)
}

/// decimal_round(decimal, digits behind the point, true to drop zeros or "rescale" to add them)
fn decimal_round(state: State) -> Outcome {
    let decimal = decimal_at(state, 1).ok_or("a decimal is expected")?;
    let wanted = state.check_number(2, "scale")? as i32;
    let (mut coefficient, mut scale) = decimal.parts();
    if state.boolean(3) && state.string(3).is_none() {
        push_decimal(state, &decimal.normalized());
        return Ok(1);
    }
    if wanted < scale && (0..=38).contains(&wanted) {
        // Half away from zero, in one step.
        let factor = 10i128.checked_pow((scale - wanted) as u32).ok_or("decimal operation failed")?;
        let rest = coefficient % factor;
        coefficient /= factor;
        if rest.unsigned_abs() * 2 >= factor.unsigned_abs() {
            coefficient += rest.signum();
        }
        scale = wanted;
    } else if state.string(3).is_some() && wanted > scale && wanted <= 38 {
        let factor = 10i128.checked_pow((wanted - scale) as u32).ok_or("decimal operation failed")?;
        coefficient = coefficient.checked_mul(factor).ok_or("decimal operation failed")?;
        scale = wanted;
    }
    let result = Decimal::new(coefficient, scale).ok_or("decimal operation failed")?;
    push_decimal(state, &result);
    Ok(1)
}

/// crc32(start, text): CRC-32C without inversions
fn crc32(state: State) -> Outcome {
    let start = state.check_number(1, "crc")? as u32;
    let text = state.bytes(2).ok_or("a string is expected")?;
    state.push_number(f64::from(!crc32c::crc32c_append(!start, text)));
    Ok(1)
}

/// pbkdf2(password, salt, iterations, bytes): with HMAC-SHA256
fn pbkdf2(state: State) -> Outcome {
    use sha2::Digest;
    let (password, salt) = match (state.bytes(1), state.bytes(2)) {
        (Some(password), Some(salt)) => (password, salt),
        _ => return Err("strings are expected".into()),
    };
    let iterations = state.check_number(3, "iterations")?.clamp(1.0, 1e7) as u32;
    let length = state.check_number(4, "digest length")?.clamp(1.0, 1024.0) as usize;
    let mut block_key = [0u8; 64];
    if password.len() > 64 {
        block_key[..32].copy_from_slice(&sha2::Sha256::digest(password));
    } else {
        block_key[..password.len()].copy_from_slice(password);
    }
    let keyed = |byte: u8| block_key.map(|key| key ^ byte);
    let (inner, outer) = (keyed(0x36), keyed(0x5c));
    let hmac = |parts: &[&[u8]]| -> [u8; 32] {
        let mut hash = sha2::Sha256::new_with_prefix(inner);
        parts.iter().for_each(|part| hash.update(part));
        sha2::Sha256::new_with_prefix(outer).chain_update(hash.finalize()).finalize().into()
    };
    let mut out = Vec::new();
    for number in 1u32.. {
        let mut last = hmac(&[salt, &number.to_be_bytes()]);
        let mut block = last;
        for _ in 1..iterations {
            last = hmac(&[&last]);
            block.iter_mut().zip(last).for_each(|(byte, other)| *byte ^= other);
        }
        out.extend_from_slice(&block);
        if out.len() >= length {
            break;
        }
    }
    out.truncate(length);
    state.push_bytes(&out);
    Ok(1)
}

/// utf8_case(text, is_upper)
fn utf8_case(state: State) -> Outcome {
    let text = state.check_string(1, "text")?;
    state.push_str(&if state.boolean(2) { text.to_uppercase() } else { text.to_lowercase() });
    Ok(1)
}

/// utf8_compare(a, b, collation) -> -1, 0 or 1
fn utf8_compare(state: State) -> Outcome {
    let (a, b) = (state.check_string(1, "text")?, state.check_string(2, "text")?);
    let name = state.check_string(3, "collation")?;
    let collation = database().catalog.collation_by_name(&name).ok_or("there is no such collation")?;
    state.push_number(f64::from(collation.compare(a.as_bytes(), b.as_bytes()) as i32));
    Ok(1)
}

/// version() -> this server's version
fn version(state: State) -> Outcome {
    state.push_str(env!("CARGO_PKG_VERSION"));
    Ok(1)
}

/// set_max_slice(seconds): how long code may run without waiting
fn set_max_slice(state: State) -> Outcome {
    let seconds = state.check_number(1, "slice")?.clamp(0.0, 1e6);
    crate::watchdog::set_slice_max_ms((seconds * 1000.0) as u64);
    Ok(0)
}

/// file_kind(path, follows links) -> "file", "directory" or "link", bytes, time of change, mode, links; or nil
fn file_kind(state: State) -> Outcome {
    let path = state.check_string(1, "path")?;
    match runtime::describe(Path::new(&path), state.boolean(2)) {
        Ok(found) => {
            state.push_str(match found.kind {
                runtime::FileKind::Directory => "directory",
                runtime::FileKind::Link => "link",
                runtime::FileKind::Other => "file",
            });
            state.push_number(found.bytes as f64);
            state.push_number(found.modified_at);
            state.push_number(f64::from(found.mode));
            state.push_number(found.links as f64);
            Ok(5)
        }
        Err(_) => {
            state.push_nil();
            Ok(1)
        }
    }
}

/// check_stack(): raises when the C stack of the fiber is nearly used up
fn check_stack(_state: State) -> Outcome {
    if is_stack_low() { Err("C stack overflow".into()) } else { Ok(0) }
}

/// file_read(path) -> text, or nil and a message
fn file_read(state: State) -> Outcome {
    let path = state.check_string(1, "path")?;
    let read = || {
        let file = SystemFiles.open(Path::new(&path), OpenMode::READ)?;
        let mut bytes = vec![0; file.len()? as usize];
        let got = file.read_full_at(&mut bytes, 0)?;
        bytes.truncate(got);
        Ok::<_, std::io::Error>(bytes)
    };
    match read() {
        Ok(bytes) => {
            state.push_bytes(&bytes);
            Ok(1)
        }
        Err(error) => {
            state.push_nil();
            state.push_str(&error.to_string());
            Ok(2)
        }
    }
}

/// file_operation(name, path, other) -> true or a list, or nil and a message
fn file_operation(state: State) -> Outcome {
    let name = state.check_string(1, "operation")?;
    let path = state.check_string(2, "path")?;
    let path = Path::new(&path);
    let files = SystemFiles;
    let result = match name.as_str() {
        "exists" => {
            state.push_bool(files.exists(path));
            return Ok(1);
        }
        "list" => match files.list(path) {
            Ok(names) => {
                state.new_table(names.len(), 0);
                let table = state.top();
                for (at, name) in names.iter().enumerate() {
                    state.push_str(name);
                    state.raw_set_index(table, at as c_int + 1);
                }
                return Ok(1);
            }
            Err(error) => Err(error),
        },
        "mktree" => files.create_dir_all(path),
        "unlink" => files.remove(path),
        "rename" => files.rename(path, Path::new(&state.check_string(3, "new path")?)),
        "write" => {
            let text = state.bytes(3).ok_or("a string is expected")?;
            files.open(path, OpenMode::CREATE).and_then(|file| file.write_all_at(text, 0))
        }
        other => return Err(format!("unknown file operation {other}").into()),
    };
    match result {
        Ok(()) => {
            state.push_bool(true);
            Ok(1)
        }
        Err(error) => {
            state.push_nil();
            state.push_str(&strip_errno(&error));
            Ok(2)
        }
    }
}

/// The reason of an error alone: without the path and the number.
fn strip_errno(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.rsplit(": ").next().unwrap_or(&text);
    text.split(" (os error").next().unwrap_or(text).to_string()
}

fn release_tuple(state: State) -> Outcome {
    convert::release_tuple(state)
}

/// setup(types, values): called once by the prelude with numbers of C types and Lua functions
fn setup(state: State) -> Outcome {
    let registry = registry();
    let id = |name: &str| {
        state.get_field(1, name);
        let id = state.cdata(state.top()).map(|(payload, _)| read_type_id(payload));
        state.pop(1);
        id.ok_or_else(|| Raise::Message(format!("the prelude gave no C type {name}")))
    };
    registry.ids.set(crate::registry::CtypeIds {
        int64: id("int64")?,
        uint64: id("uint64")?,
        null: id("null")?,
        float: id("float")?,
        double: id("double")?,
        tuple: id("tuple")?,
        uuid: id("uuid")?,
        decimal: id("decimal")?,
        error: id("error")?,
    });
    for (name, slot) in [
        ("null", &registry.null),
        ("array_metatable", &registry.array_metatable),
        ("map_metatable", &registry.map_metatable),
        ("to_plain", &registry.to_plain),
        ("make_error", &registry.make_error),
        ("error_parts", &registry.error_parts),
        ("call", &registry.call),
        ("call_persistent", &registry.call_persistent),
        ("refresh", &registry.refresh),
        ("console", &registry.console),
        ("opened", &registry.opened),
        ("shutdown", &registry.shutdown),
        ("session_event", &registry.session_event),
    ] {
        state.get_field(2, name);
        slot.set(state.make_ref());
    }
    state.push_function(release_tuple);
    registry.tuple_finalizer.set(state.make_ref());
    Ok(0)
}

#[expect(unsafe_code, reason = "the payload of a ctype is its number")]
fn read_type_id(payload: *mut std::ffi::c_void) -> u32 {
    // SAFETY: `ffi.typeof` gives a cdata whose payload is a 32-bit type id.
    unsafe { payload.cast::<u32>().read_unaligned() }
}

/// Functions of `box.internal` for the modules.
pub(crate) const FUNCTIONS: &[(&str, Function)] = &[
    ("setup", setup),
    ("fiber_spawn", fiber_spawn),
    ("fiber_sleep", fiber_sleep),
    ("fiber_park", fiber_park),
    ("fiber_self", fiber_self),
    ("fiber_wake", fiber_wake),
    ("fiber_cancel", fiber_cancel),
    ("fiber_is_cancelled", fiber_is_cancelled),
    ("fiber_status", fiber_status),
    ("fiber_name", fiber_name),
    ("fiber_list", fiber_list),
    ("clock_monotonic", clock_monotonic),
    ("clock_wall", clock_wall),
    ("clock_ns", clock_ns),
    ("random_bytes", random_bytes),
    ("msgpack_encode", msgpack_encode),
    ("msgpack_decode", msgpack_decode),
    ("json_encode", json_encode),
    ("json_decode", json_decode),
    ("yaml_encode", yaml_encode),
    ("yaml_decode", yaml_decode),
    ("digest", digest),
    ("base64_encode", base64_encode),
    ("base64_decode", base64_decode),
    ("log", log),
    ("write_out", write_out),
    ("decimal_new", decimal_new),
    ("decimal_text", decimal_text),
    ("decimal_combine", decimal_combine),
    ("decimal_parts", decimal_parts),
    ("decimal_round", decimal_round),
    ("yaml_encode_list", yaml_encode_list),
    ("crc32", crc32),
    ("pbkdf2", pbkdf2),
    ("utf8_case", utf8_case),
    ("utf8_compare", utf8_compare),
    ("version", version),
    ("set_max_slice", set_max_slice),
    ("file_kind", file_kind),
    ("check_stack", check_stack),
    ("file_read", file_read),
    ("file_operation", file_operation),
];
