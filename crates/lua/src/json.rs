//! JSON text and back, by the rules of Tarantool's parser: what it takes beyond the standard, what it refuses, and its error texts.
//!
//! Beyond the standard: control characters and any bytes inside strings, `1.`, `nan` and `inf`, whole numbers of any length (they end
//! at the bounds of 64 bits), numbers too large for a double (infinite).

use crate::convert::{self, Rules, push_bytes_value};
use crate::state::{Function, Raise, State, is_stack_low};
use std::ffi::c_int;
use tuple::msgpack::{self, Kind, Reader};

type Outcome = Result<c_int, Raise>;

/// Digits of numbers that are not whole, unless `encode_number_precision` says otherwise.
const DIGITS: usize = 14;
/// How deep values may nest whatever `decode_max_depth` says.
const DEPTH_HARD_MAX: usize = 2000;

/// As C's `%.<digits>g`.
pub(crate) fn format_number(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() || digits == DIGITS {
        return tuple::format_double(value);
    }
    let scientific = format!("{:.*e}", digits - 1, value);
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text.to_string(),
    };
    if (-4..digits as i32).contains(&exponent) {
        return trim(&format!("{:.*}", (digits as i32 - 1 - exponent).max(0) as usize, value));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trim(mantissa), exponent.abs())
}

/// The number of digits that the options at an index ask for.
pub(crate) fn digits_at(state: State, index: c_int) -> usize {
    if convert::tuple_at(state, index).is_some() {
        // It has no options.
        return DIGITS;
    }
    state.get_field(index, "encode_number_precision");
    let digits = state.number(-1).unwrap_or(DIGITS as f64) as usize;
    state.pop(1);
    if (1..=DIGITS).contains(&digits) { digits } else { DIGITS }
}

fn broken(_: msgpack::MsgpackError) -> Raise {
    Raise::from("value cannot be shown as JSON")
}

/// Appends JSON text of checked msgpack.
fn write(reader: &mut Reader<'_>, digits: usize, out: &mut Vec<u8>) -> Result<(), Raise> {
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
            let value = reader.read_double().map_err(broken)?;
            let text = if value.is_nan() { "nan".to_string() } else { format_number(value, digits) };
            out.extend_from_slice(text.as_bytes());
        }
        Kind::Str | Kind::Bin => write_string(reader.read_str_or_bin().map_err(broken)?, out),
        Kind::Array => {
            let count = reader.read_array().map_err(broken)?;
            out.push(b'[');
            for at in 0..count {
                if at > 0 {
                    out.push(b',');
                }
                write(reader, digits, out)?;
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
                write_key(reader, out)?;
                out.push(b':');
                write(reader, digits, out)?;
            }
            out.push(b'}');
        }
        Kind::Ext => {
            let raw = reader.read_value().map_err(broken)?;
            let mut text = String::new();
            msgpack::format_value(raw, &mut text);
            write_string(text.as_bytes(), out);
        }
    }
    Ok(())
}

/// A key is a text or a whole number.
fn write_key(reader: &mut Reader<'_>, out: &mut Vec<u8>) -> Result<(), Raise> {
    match reader.kind().map_err(broken)? {
        Kind::Str | Kind::Bin => write_string(reader.read_str_or_bin().map_err(broken)?, out),
        Kind::Uint | Kind::Int => {
            write_string(reader.read_i128().map_err(broken)?.to_string().as_bytes(), out);
        }
        _ => return Err("table key must be a number or string".into()),
    }
    Ok(())
}

fn write_string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in text {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'/' => out.extend_from_slice(b"\\/"),
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
    let rules = Rules { names_depth: false, errors_as_text: true, ..Rules::at(state, 2) };
    convert::encode_by(state, 1, &mut bytes, &rules)?;
    write(&mut Reader::new(&bytes), digits_at(state, 2), &mut out)?;
    state.push_bytes(&out);
    Ok(1)
}

/// What the text consists of.
#[derive(Clone, Debug, PartialEq)]
enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    Text(Vec<u8>),
    Int(i64),
    Uint(u64),
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    /// Something that is none of these, in words.
    Wrong(&'static str),
}

impl Token {
    /// As error texts call it.
    fn name(&self) -> &'static str {
        match self {
            Token::ObjectBegin => "T_OBJ_BEGIN",
            Token::ObjectEnd => "T_OBJ_END",
            Token::ArrayBegin => "T_ARR_BEGIN",
            Token::ArrayEnd => "T_ARR_END",
            Token::Text(_) => "T_STRING",
            Token::Int(_) => "T_INT",
            Token::Uint(_) => "T_UINT",
            Token::Number(_) => "T_NUMBER",
            Token::Boolean(_) => "T_BOOLEAN",
            Token::Null => "T_NULL",
            Token::Colon => "T_COLON",
            Token::Comma => "T_COMMA",
            Token::End => "T_END",
            Token::Wrong(what) => what,
        }
    }
}

/// A text that is read, and where.
struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    /// Counted from 1.
    line: usize,
    /// Where the line begins.
    line_begin: usize,
    /// Where the last token began, or where it went wrong.
    token_at: usize,
    depth_max: usize,
    takes_invalid_numbers: bool,
}

impl Parser<'_> {
    fn byte(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(0)
    }

    fn wrong(&self, expected: &str, token: &Token) -> Raise {
        let column = self.token_at - self.line_begin.min(self.token_at) + 1;
        Raise::Message(format!(
            "Expected {expected} but found {} on line {} at character {column}",
            token.name(),
            self.line
        ))
    }

    /// The next token; a byte 0 ends the text.
    fn next(&mut self) -> Token {
        loop {
            match self.byte(self.at) {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\n' => {
                    self.at += 1;
                    self.line += 1;
                    self.line_begin = self.at;
                }
                _ => break,
            }
        }
        self.token_at = self.at;
        let single = |parser: &mut Self, token| {
            parser.at += 1;
            token
        };
        match self.byte(self.at) {
            0 => Token::End,
            b'{' => single(self, Token::ObjectBegin),
            b'}' => single(self, Token::ObjectEnd),
            b'[' => single(self, Token::ArrayBegin),
            b']' => single(self, Token::ArrayEnd),
            b':' => single(self, Token::Colon),
            b',' => single(self, Token::Comma),
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Token {
        let words: [(&[u8], Token); 5] = [
            (b"true", Token::Boolean(true)),
            (b"false", Token::Boolean(false)),
            (b"null", Token::Null),
            (b"nan", Token::Number(f64::NAN)),
            (b"inf", Token::Number(f64::INFINITY)),
        ];
        for (word, token) in words {
            if self.text[self.at.min(self.text.len())..].starts_with(word) {
                if matches!(token, Token::Number(_)) && !self.takes_invalid_numbers {
                    break;
                }
                self.at += word.len();
                return token;
            }
        }
        Token::Wrong("invalid token")
    }

    fn number(&mut self) -> Token {
        let begin = self.at;
        let is_negative = self.byte(begin) == b'-';
        let digits = begin + usize::from(is_negative);
        if is_negative && self.takes_invalid_numbers {
            let rest = &self.text[digits..];
            for (word, value) in [(b"nan", f64::NAN), (b"inf", f64::NEG_INFINITY)] {
                if rest.starts_with(word) {
                    self.at = digits + word.len();
                    return Token::Number(value);
                }
            }
        }
        let first = self.byte(digits);
        let is_led_by_zero = first == b'0' && matches!(self.byte(digits + 1), b'0'..=b'9' | b'x' | b'X');
        if !first.is_ascii_digit() || is_led_by_zero {
            return Token::Wrong("invalid token");
        }
        let skip_digits = |mut at: usize| {
            while self.byte(at).is_ascii_digit() {
                at += 1;
            }
            at
        };
        let mut end = skip_digits(digits);
        let mut is_whole = true;
        if self.byte(end) == b'.' {
            is_whole = false;
            end = skip_digits(end + 1);
        }
        if matches!(self.byte(end), b'e' | b'E') {
            is_whole = false;
            let signed = end + 1 + usize::from(matches!(self.byte(end + 1), b'+' | b'-'));
            if self.byte(signed).is_ascii_digit() {
                end = skip_digits(signed);
            }
        }
        self.at = end;
        let text = std::str::from_utf8(&self.text[begin..end]).unwrap_or("0");
        if !is_whole {
            return Token::Number(text.parse().unwrap_or(0.0));
        }
        match (text.parse::<i64>(), is_negative) {
            (Ok(value), _) if value != i64::MAX => Token::Int(value),
            (_, true) => Token::Int(i64::MIN),
            (_, false) => Token::Uint(text.parse().unwrap_or(u64::MAX)),
        }
    }

    fn string(&mut self) -> Token {
        let mut out = Vec::new();
        let mut at = self.at + 1;
        loop {
            match self.byte(at) {
                0 => {
                    self.token_at = at;
                    return Token::Wrong("unexpected end of string");
                }
                b'"' => {
                    self.at = at + 1;
                    return Token::Text(out);
                }
                b'\\' => {
                    let escaped = match self.byte(at + 1) {
                        byte @ (b'"' | b'\\' | b'/') => byte,
                        b'b' => 8,
                        b'f' => 12,
                        b'n' => b'\n',
                        b'r' => b'\r',
                        b't' => b'\t',
                        b'u' => {
                            let Some((character, length)) = self.unicode(at) else {
                                self.token_at = at;
                                return Token::Wrong("invalid unicode escape code");
                            };
                            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                            at += length;
                            continue;
                        }
                        _ => {
                            self.token_at = at;
                            return Token::Wrong("invalid escape code");
                        }
                    };
                    out.push(escaped);
                    at += 2;
                }
                byte => {
                    out.push(byte);
                    at += 1;
                }
            }
        }
    }

    /// The character of `\uXXXX`, or of a pair of them, and how many bytes they take.
    fn unicode(&self, at: usize) -> Option<(char, usize)> {
        let unit = |at: usize| {
            let digits = self.text.get(at + 2..at + 6)?;
            let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
            let text = std::str::from_utf8(digits).ok()?;
            (self.byte(at) == b'\\' && self.byte(at + 1) == b'u' && is_hex)
                .then(|| u32::from_str_radix(text, 16).ok())
                .flatten()
        };
        let first = unit(at)?;
        if !(0xd800..0xe000).contains(&first) {
            return Some((char::from_u32(first)?, 6));
        }
        let second = unit(at + 6).filter(|second| (0xdc00..0xe000).contains(second))?;
        let code = 0x1_0000 + (first.checked_sub(0xd800).filter(|high| *high < 0x400)? << 10) + (second - 0xdc00);
        Some((char::from_u32(code)?, 12))
    }

    fn descend(&self, depth: usize) -> Result<(), Raise> {
        if depth > self.depth_max || is_stack_low() {
            return Err(Raise::Message(format!(
                "Found too many nested data structures ({depth}) on line {} at character {}",
                self.line,
                self.at - self.line_begin.min(self.at)
            )));
        }
        Ok(())
    }

    /// Appends the value that begins with a token, as msgpack.
    fn value(&mut self, token: Token, depth: usize, out: &mut Vec<u8>) -> Result<(), Raise> {
        match token {
            Token::Text(text) => msgpack::encode_str(out, &text),
            Token::Int(value) => convert::encode_signed(out, value),
            Token::Uint(value) => msgpack::encode_uint(out, value),
            Token::Number(value) => msgpack::encode_f64(out, value),
            Token::Boolean(value) => msgpack::encode_bool(out, value),
            Token::Null => msgpack::encode_nil(out),
            Token::ArrayBegin => return self.array(depth + 1, out),
            Token::ObjectBegin => return self.object(depth + 1, out),
            other => return Err(self.wrong("value", &other)),
        }
        Ok(())
    }

    fn array(&mut self, depth: usize, out: &mut Vec<u8>) -> Result<(), Raise> {
        self.descend(depth)?;
        let header = begin_counted(out, 0xdd);
        let mut count = 0u32;
        let mut token = self.next();
        if token != Token::ArrayEnd {
            loop {
                self.value(token, depth, out)?;
                count += 1;
                match self.next() {
                    Token::ArrayEnd => break,
                    Token::Comma => token = self.next(),
                    other => return Err(self.wrong("comma or array end", &other)),
                }
            }
        }
        end_counted(out, header, count);
        Ok(())
    }

    fn object(&mut self, depth: usize, out: &mut Vec<u8>) -> Result<(), Raise> {
        self.descend(depth)?;
        let header = begin_counted(out, 0xdf);
        let mut count = 0u32;
        let mut token = self.next();
        if token != Token::ObjectEnd {
            loop {
                match token {
                    Token::Text(key) => msgpack::encode_str(out, &key),
                    other => return Err(self.wrong("object key string", &other)),
                }
                match self.next() {
                    Token::Colon => {}
                    other => return Err(self.wrong("colon", &other)),
                }
                let value = self.next();
                self.value(value, depth, out)?;
                count += 1;
                match self.next() {
                    Token::ObjectEnd => break,
                    Token::Comma => token = self.next(),
                    other => return Err(self.wrong("comma or object end", &other)),
                }
            }
        }
        end_counted(out, header, count);
        Ok(())
    }
}

/// A header with room for a count that is not known yet.
fn begin_counted(out: &mut Vec<u8>, marker: u8) -> usize {
    out.extend_from_slice(&[marker, 0, 0, 0, 0]);
    out.len() - 4
}

fn end_counted(out: &mut [u8], header: usize, count: u32) {
    out[header..header + 4].copy_from_slice(&count.to_be_bytes());
}

/// json_decode(text, options or nil) -> value
fn json_decode(state: State) -> Outcome {
    let text = state.bytes(1).ok_or("bad argument #1 to '?' (string expected)")?;
    if text.len() >= 2 && (text[0] == 0 || text[1] == 0) {
        return Err("JSON parser does not support UTF-16 or UTF-32".into());
    }
    let (mut depth_max, mut takes_invalid_numbers) = (128, true);
    if !state.is_nil(2) && convert::tuple_at(state, 2).is_none() {
        state.get_field(2, "decode_max_depth");
        depth_max = state.number(-1).unwrap_or(0.0).max(0.0) as usize;
        state.get_field(2, "decode_invalid_numbers");
        takes_invalid_numbers = state.boolean(-1);
        state.pop(2);
    }
    let depth_max = depth_max.min(DEPTH_HARD_MAX);
    let mut parser = Parser { text, at: 0, line: 1, line_begin: 0, token_at: 0, depth_max, takes_invalid_numbers };
    let mut out = Vec::with_capacity(text.len());
    let token = parser.next();
    parser.value(token, 0, &mut out)?;
    match parser.next() {
        Token::End => {}
        other => return Err(parser.wrong("the end", &other)),
    }
    push_bytes_value(state, &out)?;
    Ok(1)
}

/// Functions of `box.internal` for JSON.
pub(crate) const FUNCTIONS: &[(&str, Function)] = &[("json_encode", json_encode), ("json_decode", json_decode)];
