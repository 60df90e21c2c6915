//! How values compare: first in the usual forms, byte by byte, then as what they are.

use super::{KeyPart, is_nil};
use crate::datetime::Datetime;
use crate::field::FieldType;
use crate::msgpack::{EXT_DATETIME, EXT_UUID, Kind, Reader};
use crate::number::Number;
use std::cmp::Ordering;

/// Values of different kinds in a scalar field: nil < boolean < number < string < varbinary < uuid < datetime.
pub(crate) fn class_of(value: &[u8]) -> u8 {
    let reader = Reader::new(value);
    match reader.kind() {
        Ok(Kind::Nil) | Err(_) => 0,
        Ok(Kind::Bool) => 1,
        Ok(Kind::Uint | Kind::Int | Kind::Float | Kind::Double) => 2,
        Ok(Kind::Str) => 3,
        Ok(Kind::Bin) => 4,
        Ok(Kind::Ext) => match reader.clone().read_ext() {
            Ok((EXT_UUID, _)) => 5,
            Ok((EXT_DATETIME, _)) => 6,
            _ => 2,
        },
        Ok(Kind::Array) => 7,
        Ok(Kind::Map) => 8,
    }
}

/// The values of a row that has at least so many, and not many.
#[inline]
pub(super) fn values_of(row: &[u8], count: usize) -> Option<&[u8]> {
    match row {
        [head @ 0x90..=0x9f, values @ ..] if usize::from(head & 0x0f) >= count => Some(values),
        _ => None,
    }
}

/// The order of two values that come in the same of the usual forms: whole numbers, doubles, short strings that compare as bytes; and the bytes of
/// each. None: they do not.
#[inline(always)]
pub(super) fn compare_alike(part: &KeyPart, a: &[u8], b: &[u8]) -> Option<(Ordering, usize, usize)> {
    match (a, b) {
        ([0xcf, a @ ..], [0xcf, b @ ..]) => {
            Some((u64::from_be_bytes(*a.first_chunk()?).cmp(&u64::from_be_bytes(*b.first_chunk()?)), 9, 9))
        }
        ([0xa0..=0xbf | 0xd9, ..], [0xa0..=0xbf | 0xd9, ..]) if part.text_collation().is_none() || part.is_hashed() => {
            let ((a_head, a), (b_head, b)) = (short_text(a)?, short_text(b)?);
            let order = part.text_collation().map_or_else(|| a.cmp(b), |by_hash| by_hash.compare(a, b));
            Some((order, a_head + a.len(), b_head + b.len()))
        }
        ([0xce, a @ ..], [0xce, b @ ..]) => {
            Some((u32::from_be_bytes(*a.first_chunk()?).cmp(&u32::from_be_bytes(*b.first_chunk()?)), 5, 5))
        }
        ([0xcd, a @ ..], [0xcd, b @ ..]) => Some((a.first_chunk::<2>()?.cmp(b.first_chunk::<2>()?), 3, 3)),
        ([0xcc, a, ..], [0xcc, b, ..]) => Some((a.cmp(b), 2, 2)),
        ([a @ 0..=0x7f, ..], [b @ 0..=0x7f, ..]) => Some((a.cmp(b), 1, 1)),
        ([0xcb, a @ ..], [0xcb, b @ ..]) => {
            let order = f64::from_be_bytes(*a.first_chunk()?).partial_cmp(&f64::from_be_bytes(*b.first_chunk()?))?;
            Some((order, 9, 9))
        }
        _ => {
            let ((a, a_length), (b, b_length)) = (small_integer(a)?, small_integer(b)?);
            Some((a.cmp(&b), a_length, b_length))
        }
    }
}

/// A whole number that fits 64 signed bits, and its bytes.
#[inline(always)]
pub(super) fn small_integer(value: &[u8]) -> Option<(i64, usize)> {
    Some(match value {
        [first @ (0..=0x7f | 0xe0..=0xff), ..] => (i64::from(*first as i8), 1),
        [0xd0, byte, ..] => (i64::from(*byte as i8), 2),
        [0xcc, byte, ..] => (i64::from(*byte), 2),
        [0xd1, rest @ ..] => (i64::from(i16::from_be_bytes(*rest.first_chunk()?)), 3),
        [0xcd, rest @ ..] => (i64::from(u16::from_be_bytes(*rest.first_chunk()?)), 3),
        [0xd2, rest @ ..] => (i64::from(i32::from_be_bytes(*rest.first_chunk()?)), 5),
        [0xce, rest @ ..] => (i64::from(u32::from_be_bytes(*rest.first_chunk()?)), 5),
        [0xd3, rest @ ..] => (i64::from_be_bytes(*rest.first_chunk()?), 9),
        [0xcf, rest @ ..] => (i64::try_from(u64::from_be_bytes(*rest.first_chunk()?)).ok()?, 9),
        _ => return None,
    })
}

/// Bytes of a value that is of a part's type, in one of the usual forms of whole numbers that are not negative, of doubles, and of short strings.
#[inline]
pub(super) fn usual_length(part: &KeyPart, value: &[u8]) -> Option<usize> {
    let length = match (part.field_type, value) {
        (FieldType::Unsigned | FieldType::Integer, [0..=0x7f, ..]) => 1,
        (FieldType::Unsigned | FieldType::Integer, [0xcc, ..]) => 2,
        (FieldType::Unsigned | FieldType::Integer, [0xcd, ..]) => 3,
        (FieldType::Unsigned | FieldType::Integer, [0xce, ..]) => 5,
        (FieldType::Unsigned | FieldType::Integer, [0xcf, ..]) | (FieldType::Double, [0xcb, ..]) => 9,
        (FieldType::String, [head @ 0xa0..=0xbf, ..]) => 1 + usize::from(head & 0x1f),
        (FieldType::String, [0xd9, length, ..]) => 2 + usize::from(*length),
        _ => return None,
    };
    (length <= value.len()).then_some(length)
}

/// The bytes of the head of a string of up to 255, and the string.
#[inline(always)]
fn short_text(value: &[u8]) -> Option<(usize, &[u8])> {
    match value {
        [head @ 0xa0..=0xbf, rest @ ..] => Some((1, rest.get(..usize::from(head & 0x1f))?)),
        [0xd9, length, rest @ ..] => Some((2, rest.get(..usize::from(*length))?)),
        _ => None,
    }
}

pub(super) fn compare_part(part: &KeyPart, a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
    let (Some(a), Some(b)) = (a, b) else {
        return is_nil(b).cmp(&is_nil(a));
    };
    if let Some((order, ..)) = compare_alike(part, a, b) {
        return order;
    }
    if part.is_nullable {
        match (is_nil(Some(a)), is_nil(Some(b))) {
            (false, false) => {}
            (a, b) => return b.cmp(&a),
        }
    }
    match part.field_type {
        FieldType::Unsigned => Reader::new(a).read_uint().unwrap_or(0).cmp(&Reader::new(b).read_uint().unwrap_or(0)),
        FieldType::Integer => Reader::new(a).read_i128().unwrap_or(0).cmp(&Reader::new(b).read_i128().unwrap_or(0)),
        FieldType::String => compare_text(part, a, b),
        _ => compare_scalars(part, a, b),
    }
}

fn compare_text(part: &KeyPart, a: &[u8], b: &[u8]) -> Ordering {
    let a = Reader::new(a).read_str().unwrap_or(b"");
    let b = Reader::new(b).read_str().unwrap_or(b"");
    match part.text_collation() {
        Some(collation) => collation.compare(a, b),
        None => a.cmp(b),
    }
}

/// The ordered bytes of a moment.
pub(crate) fn moment(value: &[u8]) -> [u8; 12] {
    let body = Reader::new(value).read_ext().map_or(&b""[..], |(_, body)| body);
    Datetime::decode(body).unwrap_or_default().ordered()
}

pub(super) fn compare_scalars(part: &KeyPart, a: &[u8], b: &[u8]) -> Ordering {
    let class = class_of(a);
    let by_class = class.cmp(&class_of(b));
    if by_class.is_ne() {
        return by_class;
    }
    match class {
        1 => Reader::new(a).read_bool().ok().cmp(&Reader::new(b).read_bool().ok()),
        2 => match (Number::read(a), Number::read(b)) {
            (Some(a), Some(b)) => a.compare(b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        },
        3 => compare_text(part, a, b),
        4 => Reader::new(a).read_bin().unwrap_or(b"").cmp(Reader::new(b).read_bin().unwrap_or(b"")),
        5 => {
            let body = |value| Reader::new(value).read_ext().map_or(&b""[..], |(_, body)| body);
            body(a).cmp(body(b))
        }
        6 => moment(a).cmp(&moment(b)),
        _ => Ordering::Equal,
    }
}
