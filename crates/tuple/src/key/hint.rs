//! Hints: 64 bits of a key that sort as it does, ties excepted.

use super::compare::{class_of, moment, small_integer, values_of};
use super::hash::hash_bytes;
use super::{KeyDef, KeyPart, Shape, is_nil, unsigned_field};
use crate::field::FieldType;
use crate::msgpack::Reader;
use crate::number::{Number, ordered_bits};
use crate::row::field_from;

/// How the second part shares the hint with a first part that is unsigned and never nil.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Second {
    /// The hint is the first part's alone.
    Absent,
    Unsigned,
    Integer,
    Double,
    /// A string that compares as bytes.
    Bytes,
    /// A string that compares by its hash.
    Hashed,
}

impl Second {
    pub(super) fn of(parts: &[KeyPart]) -> Self {
        match parts {
            [first, second, ..] if first.field_type == FieldType::Unsigned && !first.is_nullable => {
                match second.field_type {
                    FieldType::Unsigned => Second::Unsigned,
                    FieldType::Integer => Second::Integer,
                    FieldType::Double => Second::Double,
                    FieldType::String if second.is_hashed() => Second::Hashed,
                    FieldType::String if second.text_collation().is_none() => Second::Bytes,
                    _ => Second::Absent,
                }
            }
            _ => Second::Absent,
        }
    }

    /// A number that sorts as values of the part do, ties excepted; nil is the least.
    #[inline]
    fn number(self, value: &[u8]) -> u64 {
        if is_nil(Some(value)) {
            return 0;
        }
        let mut reader = Reader::new(value);
        match self {
            Second::Absent => 0,
            Second::Unsigned => reader.read_uint().map_or(0, |number| by_magnitude(number).0),
            Second::Integer => match small_integer(value) {
                Some((number, _)) if number >= 0 => 1 << 63 | by_magnitude(number as u64).0 >> 1,
                Some((number, _)) => !(1 << 63 | by_magnitude(!number as u64).0 >> 1),
                // Beyond what has a sign.
                None => reader.read_uint().map_or(0, |number| 1 << 63 | by_magnitude(number).0 >> 1),
            },
            Second::Double => match value {
                [0xcb, rest @ ..] => rest.first_chunk().map_or(0, |bytes| ordered_bits(f64::from_be_bytes(*bytes))),
                _ => Number::read(value).map_or(0, |number| ordered_bits(number.to_f64())),
            },
            Second::Bytes => prefix(reader.read_str().unwrap_or(b"")),
            Second::Hashed => hash_bytes(reader.read_str().unwrap_or(b"")),
        }
    }
}

/// A number in as few leading bits as it needs, in an order that stays: how many bits it has, then these without the first. And how many bits that are.
#[inline]
fn by_magnitude(number: u64) -> (u64, u32) {
    let number = number.saturating_add(1);
    let zeros = number.leading_zeros();
    let bits = 64 - zeros;
    (u64::from(bits - 1) << 58 | (number << zeros << 1) >> 6, bits + 5)
}

/// The hint of a first part and what a second part has to say in the bits that are left.
#[inline]
fn share_hint(first: u64, second: u64) -> u64 {
    let (first, bits) = by_magnitude(first);
    first | second.checked_shr(bits).unwrap_or(0)
}

impl KeyDef {
    /// True if equal hints mean equal keys: rows need not be compared.
    pub fn is_hint_exact(&self) -> bool {
        matches!(self.shape, Shape::Unsigned)
    }

    /// A number that sorts as the key of a row does, ties excepted.
    #[inline]
    pub fn hint(&self, row: &[u8]) -> u64 {
        self.hint_of_first(row, self.parts.len())
    }

    /// A number that is not greater than the hint of any row that agrees with this one in the first parts.
    #[inline]
    pub fn hint_of_first(&self, row: &[u8], part_count: usize) -> u64 {
        let part = &self.parts[0];
        if self.second == Second::Absent {
            return hint_of(part, field_from(row, part.field_no));
        }
        let (first, second) = match values_of(row, 2) {
            Some(values) if self.leading >= 2 => {
                let mut reader = Reader::new(values);
                (reader.read_uint().unwrap_or(0), Some(reader.rest()))
            }
            _ => (unsigned_field(row, part.field_no), field_from(row, self.parts[1].field_no)),
        };
        let second = second.filter(|_| part_count > 1);
        share_hint(first, second.map_or(0, |value| self.second.number(value)))
    }

    /// As `hint`, for a key with at least one part: not greater than the hint of any row that has the key.
    #[inline]
    pub fn key_hint(&self, key: &[u8], part_count: u32) -> u64 {
        self.key_hint_or(key, part_count, 0)
    }

    /// As `key_hint`, but not less than the hint of any row that has the key.
    #[inline]
    pub fn key_hint_above(&self, key: &[u8], part_count: u32) -> u64 {
        self.key_hint_or(key, part_count, u64::MAX)
    }

    #[inline]
    fn key_hint_or(&self, key: &[u8], part_count: u32, no_second: u64) -> u64 {
        if self.second == Second::Absent {
            return hint_of(&self.parts[0], Some(key));
        }
        let mut reader = Reader::new(key);
        let first = reader.read_uint().unwrap_or(0);
        share_hint(first, if part_count > 1 { self.second.number(reader.rest()) } else { no_second })
    }
}

#[inline]
pub(super) fn prefix(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => {
            let mut buffer = [0; 8];
            buffer[..bytes.len()].copy_from_slice(bytes);
            u64::from_be_bytes(buffer)
        }
    }
}

#[inline]
fn hint_of(part: &KeyPart, value: Option<&[u8]>) -> u64 {
    let Some(value) = value else {
        return 0;
    };
    if part.is_nullable && is_nil(Some(value)) {
        return 0;
    }
    match part.field_type {
        FieldType::Unsigned => Reader::new(value).read_uint().unwrap_or(0),
        FieldType::Integer => integer_hint(Reader::new(value).read_i128().unwrap_or(0)),
        FieldType::String if part.text_collation().is_none() => prefix(Reader::new(value).read_str().unwrap_or(b"")),
        FieldType::String => 0,
        _ => {
            let class = class_of(value);
            let within = match class {
                1 => u64::from(Reader::new(value).read_bool().unwrap_or(false)) << 32,
                2 => Number::read(value).map_or(0, |number| ordered_bits(number.to_f64())),
                3 if part.text_collation().is_none() => prefix(Reader::new(value).read_str().unwrap_or(b"")),
                4 => prefix(Reader::new(value).read_bin().unwrap_or(b"")),
                5 => prefix(Reader::new(value).read_ext().map_or(b"", |(_, body)| body)),
                6 => prefix(&moment(value)),
                _ => 0,
            };
            u64::from(class) << 60 | within >> 4
        }
    }
}

fn integer_hint(value: i128) -> u64 {
    ((value - i128::from(i64::MIN)) >> 1) as u64
}
