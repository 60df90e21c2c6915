//! `cjson` as Redis' scripts have it: JSON by the rules and in the error texts of lua-cjson 2.1.
//!
//! Source: its manual, and answers of Redis 7.0.

use crate::json::format_number;
use crate::state::{Raise, State, check_stopping, is_stack_low};
use mlua_sys as ffi;
use std::ffi::c_int;

type Outcome = Result<c_int, Raise>;

/// Values after which a look is taken whether the code is to end.
const CHECKED_EVERY: usize = 1024;

struct Encoder {
    digits: usize,
    depth_max: usize,
    /// NaN and infinities: refused, written, or written as null.
    writes_invalid: bool,
    nulls_invalid: bool,
    is_sparse_map: bool,
    sparse_ratio: usize,
    sparse_safe: usize,
    out: Vec<u8>,
    values: usize,
}

/// cjson_encode(value, options) -> text
pub(super) fn encode(state: State) -> Outcome {
    let number = |name: &str, default: usize| {
        state.get_field(2, name);
        let value = state.number(-1).map_or(default, |value| value as usize);
        state.pop(1);
        value
    };
    let flag = |name: &str| {
        state.get_field(2, name);
        let is_set = state.boolean(-1);
        let is_null = state.kind(-1) == ffi::LUA_TSTRING;
        state.pop(1);
        (is_set, is_null)
    };
    let (invalid, is_null) = flag("invalid");
    let mut encoder = Encoder {
        digits: number("precision", 14).clamp(1, 17),
        depth_max: number("depth", 1000).min(1000),
        writes_invalid: invalid,
        nulls_invalid: is_null,
        is_sparse_map: flag("convert").0,
        sparse_ratio: number("ratio", 2),
        sparse_safe: number("safe", 10),
        out: Vec::new(),
        values: 0,
    };
    encoder.write(state, 1, 0)?;
    state.check_room(encoder.out.len())?;
    state.push_bytes(&encoder.out);
    Ok(1)
}

impl Encoder {
    fn refuse<T>(&self, state: State, index: c_int, reason: &str) -> Result<T, Raise> {
        let kind = match state.kind(index) {
            ffi::LUA_TLIGHTUSERDATA | ffi::LUA_TUSERDATA => "userdata",
            _ => state.kind_name(index),
        };
        Err(format!("Cannot serialise {kind}: {reason}").into())
    }

    fn write(&mut self, state: State, index: c_int, depth: usize) -> Result<(), Raise> {
        self.values += 1;
        if self.values.is_multiple_of(CHECKED_EVERY) {
            check_stopping()?;
            state.check_room(self.out.len())?;
        }
        match state.kind(index) {
            ffi::LUA_TSTRING => write_text(&mut self.out, state.bytes(index).unwrap_or_default()),
            ffi::LUA_TNUMBER => self.write_number(state, index)?,
            ffi::LUA_TBOOLEAN => {
                let text: &[u8] = if state.boolean(index) { b"true" } else { b"false" };
                self.out.extend_from_slice(text);
            }
            ffi::LUA_TNIL => self.out.extend_from_slice(b"null"),
            ffi::LUA_TLIGHTUSERDATA if state.pointer(index).is_null() => self.out.extend_from_slice(b"null"),
            ffi::LUA_TTABLE => self.write_table(state, index, depth + 1)?,
            _ => return self.refuse(state, index, "type not supported"),
        }
        Ok(())
    }

    fn write_number(&mut self, state: State, index: c_int) -> Result<(), Raise> {
        let value = state.number(index).unwrap_or(0.0);
        if !value.is_finite() {
            if self.nulls_invalid {
                self.out.extend_from_slice(b"null");
                return Ok(());
            }
            if !self.writes_invalid {
                return self.refuse(state, index, "must not be NaN or Inf");
            }
            let text = match (value.is_nan(), value > 0.0) {
                (true, _) => "nan",
                (false, true) => "inf",
                (false, false) => "-inf",
            };
            self.out.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        self.out.extend_from_slice(format_number(value, self.digits).as_bytes());
        Ok(())
    }

    /// The length of a list. None: it is a map. Errors: too many of its places are empty.
    fn list_length(&self, state: State, index: c_int) -> Result<Option<usize>, Raise> {
        let top = state.top();
        let (mut largest, mut count) = (0usize, 0usize);
        state.push_nil();
        while state.next(index) {
            let key = if state.kind(top + 1) == ffi::LUA_TNUMBER { state.number(top + 1) } else { None };
            match key {
                Some(key) if key >= 1.0 && key == key.trunc() && key < 9e15 => {
                    largest = largest.max(key as usize);
                    count += 1;
                }
                _ => {
                    state.set_top(top);
                    return Ok(None);
                }
            }
            state.pop(1);
        }
        state.set_top(top);
        let ratio = self.sparse_ratio;
        if ratio > 0 && largest > count.saturating_mul(ratio) && largest > self.sparse_safe {
            return match self.is_sparse_map {
                true => Ok(None),
                false => self.refuse(state, index, "excessively sparse array"),
            };
        }
        Ok(Some(largest))
    }

    fn write_table(&mut self, state: State, index: c_int, depth: usize) -> Result<(), Raise> {
        if depth > self.depth_max || is_stack_low() || !state.reserve(10) {
            return Err(format!("Cannot serialise, excessive depth ({depth})").into());
        }
        let top = state.top();
        match self.list_length(state, index)? {
            Some(length) if length > 0 => {
                self.out.push(b'[');
                for at in 1..=length {
                    if at > 1 {
                        self.out.push(b',');
                    }
                    state.element(index, c_int::try_from(at).map_err(|_| "the list is too long")?);
                    self.write(state, top + 1, depth)?;
                    state.set_top(top);
                }
                self.out.push(b']');
            }
            _ => {
                self.out.push(b'{');
                let mut is_first = true;
                state.push_nil();
                while state.next(index) {
                    if !std::mem::take(&mut is_first) {
                        self.out.push(b',');
                    }
                    match state.kind(top + 1) {
                        ffi::LUA_TSTRING => write_text(&mut self.out, state.bytes(top + 1).unwrap_or_default()),
                        ffi::LUA_TNUMBER => {
                            self.out.push(b'"');
                            self.write_number(state, top + 1)?;
                            self.out.push(b'"');
                        }
                        _ => return self.refuse(state, top + 1, "table key must be a number or string"),
                    }
                    self.out.push(b':');
                    self.write(state, top + 2, depth)?;
                    state.set_top(top + 1);
                }
                self.out.push(b'}');
            }
        }
        Ok(())
    }
}

fn write_text(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for byte in text {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'/' => out.extend_from_slice(b"\\/"),
            8 => out.extend_from_slice(b"\\b"),
            9 => out.extend_from_slice(b"\\t"),
            10 => out.extend_from_slice(b"\\n"),
            12 => out.extend_from_slice(b"\\f"),
            13 => out.extend_from_slice(b"\\r"),
            0..32 | 127 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(*byte),
        }
    }
    out.push(b'"');
}

/// A piece of JSON text.
#[derive(Debug, PartialEq)]
enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    Text(Vec<u8>),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Broken(&'static str),
}

impl Token {
    /// As lua-cjson calls it.
    fn name(&self) -> &'static str {
        match self {
            Token::ObjectBegin => "T_OBJ_BEGIN",
            Token::ObjectEnd => "T_OBJ_END",
            Token::ArrayBegin => "T_ARR_BEGIN",
            Token::ArrayEnd => "T_ARR_END",
            Token::Text(_) => "T_STRING",
            Token::Number(_) => "T_NUMBER",
            Token::Boolean(_) => "T_BOOLEAN",
            Token::Null => "T_NULL",
            Token::Colon => "T_COLON",
            Token::Comma => "T_COMMA",
            Token::End => "T_END",
            Token::Broken(what) => what,
        }
    }
}

struct Decoder<'a> {
    text: &'a [u8],
    at: usize,
    /// Where the last token begins.
    begin: usize,
    depth_max: usize,
    takes_invalid: bool,
    values: usize,
}

/// cjson_decode(text, depth, takes invalid numbers) -> value
pub(super) fn decode(state: State) -> Outcome {
    let owned;
    let text = match state.bytes(1) {
        Some(text) => text,
        None => {
            let Some(value) = state.number(1) else {
                let kind = state.kind_name(1);
                return Err(format!("bad argument #1 to 'decode' (string expected, got {kind})").into());
            };
            owned = super::number_text(value);
            owned.as_bytes()
        }
    };
    if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
        return Err("JSON parser does not support UTF-16 or UTF-32".into());
    }
    let depth_max = state.number(2).map_or(1000, |depth| depth as usize).min(1000);
    let mut decoder = Decoder { text, at: 0, begin: 0, depth_max, takes_invalid: state.boolean(3), values: 0 };
    let token = decoder.next();
    decoder.push(state, token, 0)?;
    match decoder.next() {
        Token::End => Ok(1),
        other => Err(decoder.expected("the end", &other)),
    }
}

impl Decoder<'_> {
    fn expected(&self, what: &str, found: &Token) -> Raise {
        format!("Expected {what} but found {} at character {}", found.name(), self.begin + 1).into()
    }

    fn next(&mut self) -> Token {
        while self.text.get(self.at).is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        self.begin = self.at;
        let Some(first) = self.text.get(self.at) else { return Token::End };
        let simple = match first {
            b'{' => Some(Token::ObjectBegin),
            b'}' => Some(Token::ObjectEnd),
            b'[' => Some(Token::ArrayBegin),
            b']' => Some(Token::ArrayEnd),
            b':' => Some(Token::Colon),
            b',' => Some(Token::Comma),
            _ => None,
        };
        if let Some(token) = simple {
            self.at += 1;
            return token;
        }
        if *first == b'"' {
            return self.string();
        }
        if *first == b'-' || first.is_ascii_digit() {
            return self.number();
        }
        for (word, token) in [("true", Token::Boolean(true)), ("false", Token::Boolean(false)), ("null", Token::Null)] {
            if self.text[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return token;
            }
        }
        match first.to_ascii_lowercase() {
            b'i' | b'n' if self.takes_invalid => self.number(),
            _ => Token::Broken("invalid token"),
        }
    }

    /// A number as C's strtod takes it, as long as it goes.
    fn number(&mut self) -> Token {
        let rest = &self.text[self.at..];
        let sign = usize::from(rest.first() == Some(&b'-'));
        let negate = |value: f64| if sign == 1 { -value } else { value };
        let unsigned = &rest[sign..];
        let starts =
            |word: &str| unsigned.get(..word.len()).is_some_and(|text| text.eq_ignore_ascii_case(word.as_bytes()));
        for (word, value) in [("infinity", f64::INFINITY), ("inf", f64::INFINITY), ("nan", f64::NAN)] {
            if starts(word) {
                if !self.takes_invalid {
                    return Token::Broken("invalid number");
                }
                self.at += sign + word.len();
                return Token::Number(negate(value));
            }
        }
        if starts("0x") {
            let digits = unsigned[2..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
            if !self.takes_invalid || digits == 0 {
                return Token::Broken("invalid number");
            }
            let value = unsigned[2..2 + digits]
                .iter()
                .fold(0.0, |value, byte| value * 16.0 + f64::from(char::from(*byte).to_digit(16).unwrap_or(0)));
            self.at += sign + 2 + digits;
            return Token::Number(negate(value));
        }
        let digits = |from: usize| unsigned[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let whole = digits(0);
        let mut end = whole;
        let mut fraction = 0;
        if unsigned.get(end) == Some(&b'.') {
            fraction = digits(end + 1);
            end += 1 + fraction;
        }
        if whole + fraction == 0 || !self.takes_invalid && whole > 1 && unsigned[0] == b'0' {
            return Token::Broken("invalid number");
        }
        if matches!(unsigned.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(unsigned.get(end + 1), Some(b'-' | b'+')));
            let exponent = if end + 1 + sign <= unsigned.len() { digits(end + 1 + sign) } else { 0 };
            if exponent > 0 {
                end += 1 + sign + exponent;
            }
        }
        let text = std::str::from_utf8(&unsigned[..end]).unwrap_or_default();
        self.at += sign + end;
        Token::Number(negate(text.parse().unwrap_or(f64::NAN)))
    }

    fn string(&mut self) -> Token {
        let mut value = Vec::new();
        let mut at = self.at + 1;
        loop {
            match self.text.get(at) {
                None | Some(0) => {
                    self.begin = at;
                    return Token::Broken("unexpected end of string");
                }
                Some(b'"') => break,
                Some(b'\\') => {
                    let escaped = match self.text.get(at + 1) {
                        Some(byte @ (b'"' | b'\\' | b'/')) => *byte,
                        Some(b'b') => 8,
                        Some(b't') => 9,
                        Some(b'n') => 10,
                        Some(b'f') => 12,
                        Some(b'r') => 13,
                        Some(b'u') => match self.unicode(at) {
                            Some((character, length)) => {
                                let mut buffer = [0; 4];
                                value.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
                                at += length;
                                continue;
                            }
                            None => {
                                self.begin = at;
                                return Token::Broken("invalid unicode escape code");
                            }
                        },
                        _ => {
                            self.begin = at;
                            return Token::Broken("invalid escape code");
                        }
                    };
                    value.push(escaped);
                    at += 2;
                }
                Some(byte) => {
                    value.push(*byte);
                    at += 1;
                }
            }
        }
        self.at = at + 1;
        Token::Text(value)
    }

    /// The character of an escape and its length in the text.
    fn unicode(&self, at: usize) -> Option<(char, usize)> {
        let unit = |at: usize| {
            let digits = self.text.get(at + 2..at + 6).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
            u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
        };
        let high = unit(at)?;
        if let Some(character) = char::from_u32(high) {
            return Some((character, 6));
        }
        if high >= 0xdc00 || self.text.get(at + 6..at + 8) != Some(b"\\u") {
            return None;
        }
        let low = unit(at + 6).filter(|low| (0xdc00..0xe000).contains(low))?;
        Some((char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))?, 12))
    }

    fn descend(&self, state: State, depth: usize) -> Result<(), Raise> {
        if depth > self.depth_max || is_stack_low() || !state.reserve(10) {
            return Err(format!("Found too many nested data structures ({depth}) at character {}", self.at).into());
        }
        Ok(())
    }

    fn push(&mut self, state: State, token: Token, depth: usize) -> Result<(), Raise> {
        self.values += 1;
        if self.values.is_multiple_of(CHECKED_EVERY) {
            check_stopping()?;
            state.check_memory()?;
        }
        match token {
            Token::Text(text) => state.push_bytes(&text),
            Token::Number(value) => state.push_number(value),
            Token::Boolean(value) => state.push_bool(value),
            Token::Null => state.push_pointer(std::ptr::null_mut()),
            Token::ArrayBegin => self.push_array(state, depth + 1)?,
            Token::ObjectBegin => self.push_object(state, depth + 1)?,
            other => return Err(self.expected("value", &other)),
        }
        Ok(())
    }

    fn push_array(&mut self, state: State, depth: usize) -> Result<(), Raise> {
        self.descend(state, depth)?;
        state.new_table(0, 0);
        let table = state.top();
        let mut token = self.next();
        if token == Token::ArrayEnd {
            return Ok(());
        }
        for at in 1.. {
            self.push(state, token, depth)?;
            state.raw_set_index(table, at);
            match self.next() {
                Token::ArrayEnd => break,
                Token::Comma => token = self.next(),
                other => return Err(self.expected("comma or array end", &other)),
            }
        }
        Ok(())
    }

    fn push_object(&mut self, state: State, depth: usize) -> Result<(), Raise> {
        self.descend(state, depth)?;
        state.new_table(0, 0);
        let table = state.top();
        let mut token = self.next();
        if token == Token::ObjectEnd {
            return Ok(());
        }
        loop {
            match token {
                Token::Text(name) => state.push_bytes(&name),
                other => return Err(self.expected("object key string", &other)),
            }
            match self.next() {
                Token::Colon => {}
                other => return Err(self.expected("colon", &other)),
            }
            let value = self.next();
            self.push(state, value, depth)?;
            state.raw_set(table);
            match self.next() {
                Token::ObjectEnd => return Ok(()),
                Token::Comma => token = self.next(),
                other => return Err(self.expected("comma or object end", &other)),
            }
        }
    }
}
