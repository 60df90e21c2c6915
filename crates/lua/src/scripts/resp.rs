//! Answers of commands (RESP) as Lua values, and Lua values as answers.
//!
//! Source: Redis' documentation of its Lua API, and answers of Redis 7.0.

use crate::state::{Raise, State, TYPE_CDATA, is_stack_low};
use mlua_sys as ffi;
use std::ffi::c_int;

/// How deep results may nest.
const DEPTH_MAX: usize = 1000;

/// Reads an answer that this process has written.
struct Reader<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// The kind of the next part and the line behind it.
    fn line(&mut self) -> Option<(u8, &'a [u8])> {
        let kind = *self.data.get(self.at)?;
        let rest = &self.data[self.at + 1..];
        let end = rest.iter().position(|byte| *byte == b'\r')?;
        self.at += end + 3;
        Some((kind, &rest[..end]))
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let value = self.data.get(self.at..self.at.checked_add(length)?)?;
        self.at += length + 2;
        Some(value)
    }
}

fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Pushes a table with one field whose value is on top of the stack.
fn wrap(state: State, field: &str) {
    state.new_table(0, 1);
    let value = state.top() - 1;
    state.push_value(value);
    state.set_field(value + 1, field);
    // The table goes in the place of the value.
    state.replace(value);
}

/// Pushes an answer. Returns true if it is an error.
pub(super) fn push_answer(state: State, data: &[u8]) -> Result<bool, Raise> {
    let mut reader = Reader { data, at: 0 };
    push(state, &mut reader, 0)?;
    Ok(data.first() == Some(&b'-'))
}

fn push(state: State, reader: &mut Reader<'_>, depth: usize) -> Result<(), Raise> {
    let broken = || Raise::from("the answer of a command cannot be read");
    if depth > DEPTH_MAX || !state.reserve(10) {
        return Err("reached lua stack limit".into());
    }
    let (kind, text) = reader.line().ok_or_else(broken)?;
    match kind {
        b'$' => match number(text).ok_or_else(broken)? {
            ..0 => state.push_bool(false),
            length => state.push_bytes(reader.bytes(length as usize).ok_or_else(broken)?),
        },
        b':' => state.push_number(number(text).ok_or_else(broken)? as f64),
        b'+' => {
            state.push_bytes(text);
            wrap(state, "ok");
        }
        b'-' => {
            state.new_table(0, 2);
            let table = state.top();
            state.push_bytes(text);
            state.set_field(table, "err");
            state.push_bool(true);
            state.set_field(table, "ignore_error_stats_update");
        }
        b'_' => state.push_nil(),
        b'#' => state.push_bool(text == b"t"),
        b',' => {
            let value = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN);
            state.push_number(value);
            wrap(state, "double");
        }
        b'(' => {
            state.push_bytes(text);
            wrap(state, "big_number");
        }
        b'=' => {
            let length = number(text).and_then(|length| usize::try_from(length).ok()).ok_or_else(broken)?;
            let value = reader.bytes(length).ok_or_else(broken)?;
            let (format, value) = value.split_at_checked(4).ok_or_else(broken)?;
            state.new_table(0, 2);
            let table = state.top();
            state.push_bytes(value);
            state.set_field(table, "string");
            state.push_bytes(&format[..3]);
            state.set_field(table, "format");
            wrap(state, "verbatim_string");
        }
        b'*' | b'>' => match number(text).ok_or_else(broken)? {
            ..0 => state.push_bool(false),
            count => {
                state.new_table(count as usize, 0);
                let table = state.top();
                for at in 0..count {
                    push(state, reader, depth + 1)?;
                    state.raw_set_index(table, at as c_int + 1);
                }
                state.check_memory()?;
            }
        },
        b'%' | b'~' => {
            let count = number(text).ok_or_else(broken)?;
            state.new_table(0, usize::try_from(count).unwrap_or(0));
            let table = state.top();
            for _ in 0..count {
                push(state, reader, depth + 1)?;
                match kind {
                    b'%' => push(state, reader, depth + 1)?,
                    _ => state.push_bool(true),
                }
                state.raw_set(table);
            }
            state.check_memory()?;
            wrap(state, if kind == b'%' { "map" } else { "set" });
        }
        // Attributes stand before the answer, and scripts do not see them.
        b'|' => {
            for _ in 0..number(text).ok_or_else(broken)?.saturating_mul(2) {
                push(state, reader, depth + 1)?;
                state.pop(1);
            }
            return push(state, reader, depth + 1);
        }
        _ => return Err(broken()),
    }
    Ok(())
}

/// How results are written.
#[derive(Clone, Copy)]
pub(super) struct Form {
    /// The script works in the third version of the protocol.
    pub(super) script_resp3: bool,
    /// Its client does.
    pub(super) resp3: bool,
}

fn line(out: &mut Vec<u8>, kind: u8, text: &[u8]) {
    out.push(kind);
    out.extend(text.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }));
    out.extend_from_slice(b"\r\n");
}

fn bulk(out: &mut Vec<u8>, text: &[u8]) {
    line(out, b'$', text.len().to_string().as_bytes());
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn null(out: &mut Vec<u8>, form: Form) {
    out.extend_from_slice(if form.resp3 { b"_\r\n" } else { b"$-1\r\n" });
}

/// A number as Redis converts it: what is behind the point is cut off, and what does not fit is the smallest one.
fn whole(value: f64) -> i64 {
    const END: f64 = -(i64::MIN as f64);
    if (-END..END).contains(&value) { value as i64 } else { i64::MIN }
}

/// Writes the value at an index as an answer. Errors: it nests too deep.
pub(super) fn write_result(state: State, index: c_int, out: &mut Vec<u8>, form: Form) -> Result<(), Raise> {
    write(state, index, out, form, 0)
}

fn write(state: State, index: c_int, out: &mut Vec<u8>, form: Form, depth: usize) -> Result<(), Raise> {
    if depth > DEPTH_MAX || is_stack_low() || !state.reserve(10) {
        return Err("ERR reached lua stack limit".into());
    }
    match state.kind(index) {
        ffi::LUA_TSTRING => bulk(out, state.bytes(index).unwrap_or_default()),
        ffi::LUA_TBOOLEAN => match (state.boolean(index), form.script_resp3, form.resp3) {
            (true, true, true) => out.extend_from_slice(b"#t\r\n"),
            (true, ..) => out.extend_from_slice(b":1\r\n"),
            (false, false, _) => null(out, form),
            (false, true, true) => out.extend_from_slice(b"#f\r\n"),
            (false, true, false) => out.extend_from_slice(b":0\r\n"),
        },
        ffi::LUA_TNUMBER => line(out, b':', whole(state.number(index).unwrap_or(0.0)).to_string().as_bytes()),
        TYPE_CDATA => line(out, b':', whole(state.number(index).unwrap_or(0.0)).to_string().as_bytes()),
        ffi::LUA_TTABLE => write_table(state, index, out, form, depth)?,
        _ => null(out, form),
    }
    Ok(())
}

fn write_table(state: State, index: c_int, out: &mut Vec<u8>, form: Form, depth: usize) -> Result<(), Raise> {
    let top = state.top();
    let field = top + 1;
    let is_there = |name: &str, kind: c_int| {
        state.set_top(top);
        state.get_field(index, name);
        state.kind(field) == kind
    };
    if is_there("err", ffi::LUA_TSTRING) {
        let text = state.bytes(field).unwrap_or_default();
        line(out, b'-', text.strip_prefix(b"-").unwrap_or(text));
    } else if is_there("ok", ffi::LUA_TSTRING) {
        line(out, b'+', state.bytes(field).unwrap_or_default());
    } else if is_there("double", ffi::LUA_TNUMBER) {
        let text = super::number_text(state.number(field).unwrap_or(0.0));
        if form.resp3 { line(out, b',', text.as_bytes()) } else { bulk(out, text.as_bytes()) }
    } else if is_there("map", ffi::LUA_TTABLE) || is_there("set", ffi::LUA_TTABLE) {
        state.set_top(top);
        state.get_field(index, "map");
        let is_map = state.kind(field) == ffi::LUA_TTABLE;
        if !is_map {
            state.set_top(top);
            state.get_field(index, "set");
        }
        let mut count = 0;
        state.push_nil();
        while state.next(field) {
            count += 1;
            state.pop(1);
        }
        let kind = match (is_map, form.resp3) {
            (true, true) => b'%',
            (false, true) => b'~',
            (true, false) => {
                count *= 2;
                b'*'
            }
            (false, false) => b'*',
        };
        line(out, kind, count.to_string().as_bytes());
        state.push_nil();
        while state.next(field) {
            write(state, field + 1, out, form, depth + 1)?;
            if is_map {
                write(state, field + 2, out, form, depth + 1)?;
            }
            state.set_top(field + 1);
        }
    } else if is_there("big_number", ffi::LUA_TSTRING) {
        // It is a line: an end of one in it must not end it.
        let clean = |byte: &u8| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte };
        let text: Vec<u8> = state.bytes(field).unwrap_or_default().iter().map(clean).collect();
        if form.resp3 { line(out, b'(', &text) } else { bulk(out, &text) }
    } else if is_there("verbatim_string", ffi::LUA_TTABLE) {
        state.get_field(field, "string");
        state.get_field(field, "format");
        match (state.bytes(field + 1), state.bytes(field + 2)) {
            (Some(text), Some(format)) if form.resp3 => {
                let mut format = format.to_vec();
                format.resize(3, b' ');
                line(out, b'=', (text.len() + 4).to_string().as_bytes());
                out.extend_from_slice(&format);
                out.push(b':');
                out.extend_from_slice(text);
                out.extend_from_slice(b"\r\n");
            }
            (Some(text), Some(_)) => bulk(out, text),
            _ => line(out, b'*', b"0"),
        }
    } else {
        state.set_top(top);
        write_list(state, index, out, form, depth)?;
    }
    state.set_top(top);
    Ok(())
}

/// A list ends before its first nil.
fn write_list(state: State, index: c_int, out: &mut Vec<u8>, form: Form, depth: usize) -> Result<(), Raise> {
    let top = state.top();
    let mut count = 0;
    loop {
        state.element(index, count + 1);
        let is_over = state.is_nil(-1);
        state.set_top(top);
        if is_over || count == c_int::MAX - 1 {
            break;
        }
        count += 1;
    }
    line(out, b'*', count.to_string().as_bytes());
    for at in 1..=count {
        state.element(index, at);
        write(state, top + 1, out, form, depth + 1)?;
        state.set_top(top);
        crate::state::check_stopping()?;
    }
    Ok(())
}
