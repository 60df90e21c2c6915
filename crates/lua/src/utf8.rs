//! The C functions under the module `utf8`: characters instead of bytes, also in text that is not quite UTF-8.

use crate::convert::push_u64;
use crate::registry::database;
use crate::state::{Function, Raise, State};
use std::ffi::c_int;

type Outcome = Result<c_int, Raise>;

/// The character at a place and its length in bytes; `None` with the length of what cannot be one.
fn next_char(text: &[u8], at: usize) -> (Option<char>, usize) {
    let end = text.len().min(at + 4);
    let piece = &text[at..end];
    let (valid, bad_length) = match std::str::from_utf8(piece) {
        Ok(valid) => (valid, 0),
        Err(error) => {
            let valid = std::str::from_utf8(&piece[..error.valid_up_to()]).unwrap_or_default();
            (valid, error.error_len().unwrap_or(piece.len() - error.valid_up_to()))
        }
    };
    match valid.chars().next() {
        Some(character) => (Some(character), character.len_utf8()),
        None => (None, bad_length.max(1)),
    }
}

/// utf8_len(text, first byte, last byte) -> number of characters; or nil and where it is wrong
fn utf8_len(state: State) -> Outcome {
    let text = state.bytes(1).ok_or("a string is expected")?;
    let length = text.len() as i64;
    let from_end = |place: i64| if place < 0 { (length + place + 1).max(0) } else { place };
    let first = from_end(state.number(2).unwrap_or(1.0) as i64);
    let last = from_end(state.number(3).unwrap_or(-1.0) as i64);
    if first < 1 || first > length + 1 || last > length {
        state.push_nil();
        state.push_str("position is out of string");
        return Ok(2);
    }
    let (mut at, mut count) = (first as usize - 1, 0u32);
    while (at as i64) < last {
        let (character, size) = next_char(text, at);
        at += size;
        if character.is_none() {
            state.push_nil();
            state.push_number(at as f64);
            return Ok(2);
        }
        count += 1;
    }
    state.push_number(f64::from(count));
    Ok(1)
}

/// utf8_next(text, byte) -> the byte behind the character there, its code; nothing if there is none
fn utf8_next(state: State) -> Outcome {
    let text = state.bytes(1).ok_or("a string is expected")?;
    let place = state.number(2).unwrap_or(1.0) as i64;
    let place = if place < 0 { text.len() as i64 + place + 1 } else { place }.max(1) as usize - 1;
    if place >= text.len() {
        return Ok(0);
    }
    let (Some(character), size) = next_char(text, place) else { return Ok(0) };
    state.push_number((place + size + 1) as f64);
    state.push_number(f64::from(u32::from(character)));
    Ok(2)
}

/// utf8_sub(text, first character, last character) -> text
fn utf8_sub(state: State) -> Outcome {
    let text = state.bytes(1).ok_or("a string is expected")?;
    let mut starts = Vec::with_capacity(text.len() + 1);
    let mut at = 0;
    while at < text.len() {
        starts.push(at);
        at += next_char(text, at).1;
    }
    let count = starts.len() as i64;
    starts.push(text.len());
    let from_end = |place: i64| if place < 0 { count + place + 1 } else { place };
    let first = from_end(state.number(2).unwrap_or(1.0) as i64).max(1);
    let last = from_end(state.number(3).unwrap_or(-1.0) as i64).min(count);
    let part = if first > last { &[][..] } else { &text[starts[first as usize - 1]..starts[last as usize]] };
    state.push_bytes(part);
    Ok(1)
}

/// utf8_char(code) -> bytes, also for what is no character
fn utf8_char(state: State) -> Outcome {
    let code = state.number(1).unwrap_or(0.0) as i64 as u32;
    let tail = |shift: u32| 0x80 | (code >> shift & 0x3f) as u8;
    match code {
        0..=0x7f => state.push_bytes(&[code as u8]),
        0x80..=0x7ff => state.push_bytes(&[0xc0 | (code >> 6) as u8, tail(0)]),
        0x800..=0xffff => state.push_bytes(&[0xe0 | (code >> 12) as u8, tail(6), tail(0)]),
        _ => state.push_bytes(&[0xf0 | (code >> 18) as u8, tail(12), tail(6), tail(0)]),
    }
    Ok(1)
}

/// utf8_case(text, is_upper): bytes that are no character stay
fn utf8_case(state: State) -> Outcome {
    let text = state.bytes(1).ok_or("a string is expected")?;
    let is_upper = state.boolean(2);
    let mut out = Vec::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        let valid = chunk.valid();
        let changed = if is_upper { valid.to_uppercase() } else { valid.to_lowercase() };
        out.extend_from_slice(changed.as_bytes());
        out.extend_from_slice(chunk.invalid());
    }
    state.push_bytes(&out);
    Ok(1)
}

/// The zeros of all writings of decimal digits; nine more digits follow each.
const ZEROS: &[u32] = &[
    0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0,
    0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620,
    0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10, 0x104a0, 0x10d30, 0x11066, 0x110f0, 0x11136, 0x111d0,
    0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0, 0x11730, 0x118e0, 0x11950, 0x11c50, 0x11d50, 0x11da0, 0x16a60,
    0x16ac0, 0x16b50, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e950, 0x1fbf0,
];

/// utf8_class(text of one character or its code, class) -> boolean
fn utf8_class(state: State) -> Outcome {
    let character = match state.bytes(1) {
        Some(text) => std::str::from_utf8(text).ok().and_then(|text| {
            let mut characters = text.chars();
            characters.next().filter(|_| characters.next().is_none())
        }),
        None => state
            .number(1)
            .filter(|code| (0.0..=f64::from(u32::from(char::MAX))).contains(code))
            .and_then(|code| char::from_u32(code as u32)),
    };
    let class = state.check_string(2, "class")?;
    state.push_bool(character.is_some_and(|character| match class.as_str() {
        "alpha" => character.is_alphabetic(),
        "lower" => character.is_lowercase(),
        "upper" => character.is_uppercase(),
        _ => {
            let code = u32::from(character);
            let at = ZEROS.partition_point(|zero| *zero <= code);
            at > 0 && code - ZEROS[at - 1] < 10
        }
    }));
    Ok(1)
}

/// utf8_compare(a, b, collation) -> -1, 0 or 1
fn utf8_compare(state: State) -> Outcome {
    let (Some(a), Some(b)) = (state.bytes(1), state.bytes(2)) else { return Err("a string is expected".into()) };
    let name = state.check_string(3, "collation")?;
    let collation = database().catalog.collation_by_name(&name).ok_or("there is no such collation")?;
    state.push_number(f64::from(collation.compare(a, b) as i32));
    Ok(1)
}

/// tonumber64(text, base; 0 to see it from the text) -> whole number or nil
fn tonumber64(state: State) -> Outcome {
    let text = state.bytes(1).ok_or("a string is expected")?;
    let base = state.number(2).unwrap_or(0.0) as u32;
    match parse_whole(text, base) {
        Some((magnitude, is_unsigned, is_negative)) => {
            // Small ones are plain numbers.
            const PLAIN_MAX: u64 = 99_999_999_999_999;
            if is_negative && is_unsigned {
                push_u64(state, magnitude.wrapping_neg());
            } else if magnitude <= PLAIN_MAX {
                state.push_number(if is_negative && magnitude > 0 { -(magnitude as f64) } else { magnitude as f64 });
            } else if is_negative {
                crate::convert::push_i64(state, (magnitude as i64).wrapping_neg());
            } else {
                push_u64(state, magnitude);
            }
        }
        None => state.push_nil(),
    }
    Ok(1)
}

/// Magnitude, whether it ends in ULL, whether it is negative.
fn parse_whole(text: &[u8], base: u32) -> Option<(u64, bool, bool)> {
    let text = std::str::from_utf8(text).ok()?.trim_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let (is_negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest.trim_start()),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = rest.to_ascii_lowercase();
    let (radix, digits) = match (base, lower.get(..2)) {
        (0 | 16, Some("0x")) => (16, &lower[2..]),
        (0 | 2, Some("0b")) => (2, &lower[2..]),
        (0, _) => (10, lower.as_str()),
        _ => (base, lower.as_str()),
    };
    let (digits, is_unsigned) = match base {
        0 | 16 => match digits.strip_suffix("ull").or_else(|| digits.strip_suffix("llu")) {
            Some(digits) => (digits, true),
            None => (digits.strip_suffix("ll").unwrap_or(digits), false),
        },
        _ => (digits, false),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    (!is_negative || is_unsigned || magnitude <= 1 << 63).then_some((magnitude, is_unsigned, is_negative))
}

/// Functions of `box.internal` for text and numbers as text.
pub(crate) const FUNCTIONS: &[(&str, Function)] = &[
    ("utf8_len", utf8_len),
    ("utf8_next", utf8_next),
    ("utf8_sub", utf8_sub),
    ("utf8_char", utf8_char),
    ("utf8_case", utf8_case),
    ("utf8_class", utf8_class),
    ("utf8_compare", utf8_compare),
    ("tonumber64", tonumber64),
];
