//! `struct` as Redis' scripts have it: C structures as text.
//!
//! Source: the description of Roberto Ierusalimschy's struct library, and answers of Redis 7.0.

use crate::state::{Raise, State};
use std::ffi::c_int;

type Outcome = Result<c_int, Raise>;

/// Bytes of a whole number.
const INTEGER_BYTES_MAX: usize = 32;
/// Bytes that `!` without a number aligns to.
const NATIVE_ALIGNMENT: usize = 8;
/// Bytes of text that one format may make or skip.
const TEXT_BYTES_MAX: usize = 512 << 20;

/// A part of a format.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Item {
    Integer {
        size: usize,
        is_signed: bool,
    },
    Float {
        size: usize,
    },
    /// Text of so many bytes; 0: as many as the last number said, or all.
    Bytes(usize),
    /// Text that ends with a zero.
    Text,
    Padding,
}

/// Walks through a format.
struct Format<'a> {
    text: &'a [u8],
    at: usize,
    is_little: bool,
    alignment: usize,
}

impl<'a> Format<'a> {
    fn new(text: &'a [u8]) -> Self {
        Format { text, at: 0, is_little: true, alignment: 1 }
    }

    fn number(&mut self) -> Option<usize> {
        let digits = self.text[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let text = std::str::from_utf8(&self.text[self.at..self.at + digits]).ok()?;
        self.at += digits;
        if digits == 0 { None } else { Some(text.parse().unwrap_or(usize::MAX)) }
    }

    fn integer(&mut self, is_signed: bool) -> Result<Item, Raise> {
        let size = self.number().unwrap_or(4);
        if size > INTEGER_BYTES_MAX || size == 0 {
            return Err(format!("integral size {size} is larger than limit of {INTEGER_BYTES_MAX}").into());
        }
        Ok(Item::Integer { size, is_signed })
    }

    /// The next part. None: the end. Errors: something that no format has.
    fn next(&mut self) -> Result<Option<Item>, Raise> {
        let integer = |size, is_signed| Item::Integer { size, is_signed };
        loop {
            let Some(option) = self.text.get(self.at) else { return Ok(None) };
            self.at += 1;
            let item = match option {
                b' ' => continue,
                b'<' | b'=' => {
                    self.is_little = true;
                    continue;
                }
                b'>' => {
                    self.is_little = false;
                    continue;
                }
                b'!' => {
                    let alignment = self.number().unwrap_or(NATIVE_ALIGNMENT);
                    if !alignment.is_power_of_two() {
                        return Err("alignment is not a power of 2".into());
                    }
                    self.alignment = alignment;
                    continue;
                }
                b'b' => integer(1, true),
                b'B' => integer(1, false),
                b'h' => integer(2, true),
                b'H' => integer(2, false),
                b'l' => integer(8, true),
                b'L' | b'T' => integer(8, false),
                b'i' => self.integer(true)?,
                b'I' => self.integer(false)?,
                b'f' => Item::Float { size: 4 },
                b'd' | b'n' => Item::Float { size: 8 },
                b's' => Item::Text,
                b'c' => Item::Bytes(self.number().unwrap_or(1)),
                b'x' => Item::Padding,
                other => {
                    return Err(format!("invalid format option '{}'", char::from(*other).escape_default()).into());
                }
            };
            return Ok(Some(item));
        }
    }

    /// Bytes before a part that begins at `position` at the earliest.
    fn padding(&self, item: Item, position: usize) -> usize {
        let size = match item {
            Item::Integer { size, .. } | Item::Float { size } => size,
            Item::Padding => 1,
            Item::Bytes(_) | Item::Text => return 0,
        };
        let alignment = size.min(self.alignment);
        if alignment > 1 && alignment.is_power_of_two() { position.wrapping_neg() & (alignment - 1) } else { 0 }
    }
}

fn push_integer(out: &mut Vec<u8>, value: i64, size: usize, is_little: bool) {
    let begin = out.len();
    let bytes = value.to_le_bytes();
    let sign = if value < 0 { 0xff } else { 0 };
    out.extend((0..size).map(|at| bytes.get(at).copied().unwrap_or(sign)));
    if !is_little {
        out[begin..].reverse();
    }
}

/// A number as C makes a whole one of it.
fn whole(value: f64) -> i64 {
    if value < 0.0 { value as i64 } else { value as u64 as i64 }
}

/// struct.pack(format, values...) -> text
pub(super) fn pack(state: State) -> Outcome {
    let mut format = Format::new(state.check_string_bytes(1)?);
    let mut out = Vec::new();
    let mut index = 1;
    while let Some(item) = format.next()? {
        let padding = format.padding(item, out.len());
        out.resize(out.len() + padding, 0);
        if item == Item::Padding {
            out.push(0);
            continue;
        }
        index += 1;
        let number = || {
            let value =
                state.number(index).or_else(|| std::str::from_utf8(state.bytes(index)?).ok()?.trim().parse().ok());
            value.ok_or_else(|| {
                let kind = state.kind_name(index);
                Raise::from(format!("bad argument #{index} to 'pack' (number expected, got {kind})"))
            })
        };
        match item {
            Item::Integer { size, .. } => push_integer(&mut out, whole(number()?), size, format.is_little),
            Item::Float { size } => {
                let begin = out.len();
                match size {
                    4 => out.extend_from_slice(&(number()? as f32).to_le_bytes()),
                    _ => out.extend_from_slice(&number()?.to_le_bytes()),
                }
                if !format.is_little {
                    out[begin..].reverse();
                }
            }
            Item::Bytes(_) | Item::Text => {
                let text = state.check_string_bytes(index)?;
                let wanted = if let Item::Bytes(size @ 1..) = item { size } else { text.len() };
                let text =
                    text.get(..wanted).ok_or_else(|| format!("bad argument #{index} to 'pack' (string too short)"))?;
                out.extend_from_slice(text);
                if item == Item::Text {
                    out.push(0);
                }
            }
            Item::Padding => {}
        }
        state.check_room(out.len())?;
    }
    state.push_bytes(&out);
    Ok(1)
}

/// struct.size(format) -> bytes
pub(super) fn size(state: State) -> Outcome {
    let mut format = Format::new(state.check_string_bytes(1)?);
    let mut position = 0usize;
    while let Some(item) = format.next()? {
        position += format.padding(item, position);
        position += match item {
            Item::Integer { size, .. } | Item::Float { size } => size,
            Item::Bytes(size @ 1..=TEXT_BYTES_MAX) => size,
            Item::Padding => 1,
            Item::Bytes(0) => return Err("bad argument #1 to 'size' (variable-length format)".into()),
            Item::Text => return Err("bad argument #1 to 'size' (variable-size format in sizeof)".into()),
            Item::Bytes(_) => return Err("bad argument #1 to 'size' (the format is too large)".into()),
        };
    }
    state.push_number(position as f64);
    Ok(1)
}

/// struct.unpack(format, text, position) -> values..., next position
pub(super) fn unpack(state: State) -> Outcome {
    let mut format = Format::new(state.check_string_bytes(1)?);
    let data = state.check_string_bytes(2)?;
    let position = state.number(3).unwrap_or(1.0);
    if position < 1.0 {
        return Err("bad argument #3 to 'unpack' (offset must be 1 or greater)".into());
    }
    let mut at = (position - 1.0) as usize;
    let begin = state.top();
    let too_short = || Raise::from("bad argument #2 to 'unpack' (data string too short)");
    while let Some(item) = format.next()? {
        if !state.reserve(4) || state.top() - begin > 8000 {
            return Err("too many results to unpack".into());
        }
        at = at.saturating_add(format.padding(item, at));
        let mut take = |size: usize| {
            let end = at.checked_add(size)?;
            let bytes = data.get(at..end)?;
            at = end;
            Some(bytes)
        };
        match item {
            Item::Integer { size, is_signed } => {
                let bytes = take(size).ok_or_else(too_short)?;
                let mut bytes = bytes.to_vec();
                if !format.is_little {
                    bytes.reverse();
                }
                let is_negative = is_signed && bytes.last().is_some_and(|byte| byte & 0x80 != 0);
                let mut wide = [if is_negative { 0xff } else { 0 }; 8];
                let known = bytes.len().min(8);
                wide[..known].copy_from_slice(&bytes[..known]);
                state.push_number(match is_signed {
                    true => i64::from_le_bytes(wide) as f64,
                    false => u64::from_le_bytes(wide) as f64,
                });
            }
            Item::Float { size } => {
                let mut wide = [0; 8];
                let bytes = take(size).ok_or_else(too_short)?;
                wide[..size].copy_from_slice(bytes);
                if !format.is_little {
                    wide[..size].reverse();
                }
                state.push_number(match size {
                    4 => f64::from(f32::from_le_bytes([wide[0], wide[1], wide[2], wide[3]])),
                    _ => f64::from_le_bytes(wide),
                });
            }
            Item::Bytes(0) => {
                let length = if state.top() > begin { state.number(-1) } else { None };
                let length = length.ok_or("format 'c0' needs a previous size")?;
                let bytes = if length >= 0.0 { take(length as usize) } else { None };
                let bytes = bytes.ok_or_else(too_short)?;
                state.pop(1);
                state.push_bytes(bytes);
            }
            Item::Bytes(size) => {
                let bytes = take(size).ok_or_else(too_short)?;
                state.push_bytes(bytes);
            }
            Item::Text => {
                let rest = data.get(at..).ok_or_else(too_short)?;
                let length = rest.iter().position(|byte| *byte == 0).ok_or("unfinished string in data")?;
                state.push_bytes(&rest[..length]);
                at += length + 1;
            }
            Item::Padding => {
                take(1).ok_or_else(too_short)?;
            }
        }
    }
    state.push_number(at as f64 + 1.0);
    Ok(state.top() - begin)
}
