//! Hints: 64 bits of a key that sort as it does, ties excepted.

use super::compare::{class_of, moment, small_integer, values_of};
use super::hash::hash_bytes;
use super::{KeyDef, KeyPart, RowCursor, Shape, is_nil};
use crate::field::FieldType;
use crate::msgpack::Reader;
use crate::number::{Number, ordered_bits};
use crate::row::field_from;

/// So many first parts share the bits of a hint at most. A small whole number takes about ten of them.
const SHARING_PARTS: usize = 4;

/// What a part puts into the bits that those before it have left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Unsigned,
    Integer,
    /// Takes all bits that are left, as do those below.
    Double,
    /// A string that compares as bytes.
    Bytes,
    /// A string that compares by its hash.
    Hashed,
}

/// How the first parts share a hint: whole numbers take as few bits as they need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sharing {
    /// Forms of parts, and whether they may be nil.
    forms: [(Form, bool); SHARING_PARTS],
    /// How many there are; 0: the hint is the first part's alone.
    count: u8,
}

impl Sharing {
    pub(super) fn of(parts: &[KeyPart]) -> Self {
        let mut sharing = Sharing { forms: [(Form::Unsigned, false); SHARING_PARTS], count: 0 };
        for (part, form) in parts.iter().zip(&mut sharing.forms) {
            let found = match part.field_type {
                FieldType::Unsigned => Form::Unsigned,
                FieldType::Integer => Form::Integer,
                FieldType::Double => Form::Double,
                FieldType::String if part.is_hashed() => Form::Hashed,
                FieldType::String if part.text_collation().is_none() => Form::Bytes,
                _ => break,
            };
            *form = (found, part.is_nullable);
            sharing.count += 1;
            if !matches!(found, Form::Unsigned | Form::Integer) {
                break;
            }
        }
        if sharing.count < 2 {
            sharing.count = 0;
        }
        sharing
    }

    #[inline]
    pub(super) fn is_absent(&self) -> bool {
        self.count == 0
    }

    /// The hint of the values of the first `count` parts; all that may follow them is at least, or at most, `beyond`.
    #[inline]
    fn hint<'a>(&self, count: usize, beyond: u64, mut next: impl FnMut(usize) -> Option<&'a [u8]>) -> u64 {
        let (mut hint, mut used) = (0, 0);
        for (at, form) in self.forms[..usize::from(self.count)].iter().enumerate() {
            if at == count {
                return hint | beyond >> used;
            }
            let (bits, length) = bits_of(*form, next(at));
            hint |= bits >> used;
            used += length;
            if used >= u64::BITS {
                break;
            }
        }
        hint
    }
}

/// Leading bits that sort as values of a part do, none of which are the beginning of another's unless they are all 64 and more; and how many these are.
#[inline]
fn bits_of((form, is_nullable): (Form, bool), value: Option<&[u8]>) -> (u64, u32) {
    let Some(value) = value.filter(|value| !is_nullable || !is_nil(Some(value))) else {
        // Below everything: what is there begins with a bit that is set.
        return (0, if is_nullable { 1 } else { u64::BITS });
    };
    let (bits, length) = match form {
        Form::Unsigned => by_magnitude(Reader::new(value).read_uint().unwrap_or(0)),
        Form::Integer => integer_bits(value),
        Form::Double => {
            let number = match value {
                [0xcb, rest @ ..] => rest.first_chunk().map_or(0, |bytes| ordered_bits(f64::from_be_bytes(*bytes))),
                _ => Number::read(value).map_or(0, |number| ordered_bits(number.to_f64())),
            };
            (number, u64::BITS)
        }
        Form::Bytes => (prefix(Reader::new(value).read_str().unwrap_or(b"")), u64::BITS),
        Form::Hashed => (hash_bytes(Reader::new(value).read_str().unwrap_or(b"")), u64::BITS),
    };
    if is_nullable { (1 << 63 | bits >> 1, length + 1) } else { (bits, length) }
}

/// The same of a number with a sign: a bit for that, then its magnitude, inverted if it is negative.
#[inline]
fn integer_bits(value: &[u8]) -> (u64, u32) {
    let number = match small_integer(value) {
        Some((number, _)) if number < 0 => {
            let (bits, length) = by_magnitude(!number as u64);
            let kept = u64::MAX.checked_shl(u64::BITS.saturating_sub(length)).unwrap_or(0);
            return ((!bits & kept) >> 1, length + 1);
        }
        Some((number, _)) => number as u64,
        // Beyond what has a sign.
        None => Reader::new(value).read_uint().unwrap_or(0),
    };
    let (bits, length) = by_magnitude(number);
    (1 << 63 | bits >> 1, length + 1)
}

/// A number in as few leading bits as it needs, in an order that stays: how many bits it has, then these without the first. And how many bits that are.
#[inline]
fn by_magnitude(number: u64) -> (u64, u32) {
    let number = number.saturating_add(1);
    let zeros = number.leading_zeros();
    let bits = 64 - zeros;
    (u64::from(bits - 1) << 58 | (number << zeros << 1) >> 6, bits + 5)
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
        if self.sharing.is_absent() {
            let part = &self.parts[0];
            return hint_of(part, field_from(row, part.field_no));
        }
        let count = part_count.min(SHARING_PARTS);
        match values_of(row, count) {
            Some(values) if self.leading >= count => self.hint_of_values(values, count, 0),
            _ => {
                let mut cursor = RowCursor::new(row);
                self.sharing.hint(count, 0, |at| cursor.field(self.parts[at].field_no))
            }
        }
    }

    /// The hint of values that stand one after the other.
    #[inline]
    fn hint_of_values(&self, values: &[u8], count: usize, beyond: u64) -> u64 {
        let mut reader = Reader::new(values);
        self.sharing.hint(count, beyond, |at| {
            if at > 0 {
                reader.skip_checked();
            }
            Some(reader.rest())
        })
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
    fn key_hint_or(&self, key: &[u8], part_count: u32, beyond: u64) -> u64 {
        if self.sharing.is_absent() {
            return hint_of(&self.parts[0], Some(key));
        }
        self.hint_of_values(key, part_count as usize, beyond)
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
