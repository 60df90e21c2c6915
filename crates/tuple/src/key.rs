//! Key definitions: which fields make a key, and how keys compare.
//!
//! A comparison that an index asks for is decided by 64-bit hints in most cases; what remains is done here. The common
//! shapes (one unsigned or string field at the front of the row) have their own paths, everything else goes part by part.

use crate::collation::Collation;
use crate::datetime::Datetime;
use crate::error::KeyError;
use crate::field::FieldType;
use crate::msgpack::{self, EXT_DATETIME, EXT_UUID, Kind, Reader};
use crate::number::{Number, ordered_bits};
use crate::row::field_from;
use std::cmp::Ordering;
use std::sync::Arc;

/// One part of a key.
#[derive(Clone, Debug)]
pub struct KeyPart {
    /// Field, from 0.
    pub field_no: u32,
    /// Type.
    pub field_type: FieldType,
    /// nil and absence are allowed; they compare below everything.
    pub is_nullable: bool,
    /// How strings compare; bytes if none.
    pub collation: Option<Arc<Collation>>,
}

impl KeyPart {
    /// A part without collation that must not be nil.
    pub fn new(field_no: u32, field_type: FieldType) -> Self {
        KeyPart { field_no, field_type, is_nullable: false, collation: None }
    }

    pub(crate) fn text_collation(&self) -> Option<&Collation> {
        self.collation.as_deref().filter(|collation| !collation.is_binary())
    }

    /// True if strings compare by their hashes first.
    fn is_hashed(&self) -> bool {
        self.collation.as_deref().is_some_and(Collation::is_hash)
    }
}

/// Which path comparisons take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// One unsigned part.
    Unsigned,
    /// One string part that compares as bytes.
    Bytes,
    /// Several unsigned parts.
    Unsigneds,
    /// Anything else.
    General,
}

/// How the second part shares the hint with a first part that is unsigned and never nil.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Second {
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
    fn of(parts: &[KeyPart]) -> Self {
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

/// The parts of a key, in order.
#[derive(Debug)]
pub struct KeyDef {
    parts: Vec<KeyPart>,
    second: Second,
    shape: Shape,
    is_nullable: bool,
    /// How many of the first parts are the first fields, in order.
    leading: usize,
}

impl KeyDef {
    /// A definition; there must be at least one part.
    pub fn new(parts: Vec<KeyPart>) -> Self {
        let shape = match &parts[..] {
            [part] if part.is_nullable => Shape::General,
            [part] if part.field_type == FieldType::Unsigned => Shape::Unsigned,
            [part] if part.field_type == FieldType::String && part.text_collation().is_none() => Shape::Bytes,
            all if all.iter().all(|part| part.field_type == FieldType::Unsigned && !part.is_nullable) => {
                Shape::Unsigneds
            }
            _ => Shape::General,
        };
        let is_nullable = parts.iter().any(|part| part.is_nullable);
        let leading = parts.iter().zip(0..).take_while(|(part, field_no)| part.field_no == *field_no).count();
        KeyDef { second: Second::of(&parts), parts, shape, is_nullable, leading }
    }

    /// The parts of `first` and those of `second` that it lacks: what a non-unique index is ordered by.
    pub fn merge(first: &KeyDef, second: &KeyDef) -> Self {
        let mut parts = first.parts.clone();
        for part in &second.parts {
            let has_it = parts.iter().any(|other| {
                other.field_no == part.field_no
                    && other.collation.as_ref().map(|c| c.id()) == part.collation.as_ref().map(|c| c.id())
            });
            if !has_it {
                parts.push(part.clone());
            }
        }
        Self::new(parts)
    }

    /// True if keys of both are made and ordered alike.
    pub fn has_parts_of(&self, other: &KeyDef) -> bool {
        let of = |part: &KeyPart| {
            let collation = part.collation.as_ref().map(|collation| collation.id());
            (part.field_no, part.field_type, part.is_nullable, collation)
        };
        self.parts.iter().map(of).eq(other.parts.iter().map(of))
    }

    /// True if rows of one key here have one key of `other`, too: its fields are all among these, and are equal here only if they are there.
    pub fn has_fields_of(&self, other: &KeyDef) -> bool {
        other.parts.iter().all(|wanted| {
            self.parts.iter().any(|part| {
                let is_exact = part.text_collation().is_none() || part.is_hashed();
                let is_alike = part.collation.as_ref().map(|c| c.id()) == wanted.collation.as_ref().map(|c| c.id());
                part.field_no == wanted.field_no && (is_exact || is_alike)
            })
        })
    }

    /// The parts.
    pub fn parts(&self) -> &[KeyPart] {
        &self.parts
    }

    /// Number of parts.
    pub fn part_count(&self) -> usize {
        self.parts.len()
    }

    /// True if a part may be nil.
    pub fn is_nullable(&self) -> bool {
        self.is_nullable
    }

    /// True if a part of this row's key is nil.
    pub fn has_null_in(&self, row: &[u8]) -> bool {
        self.is_nullable && self.parts.iter().any(|part| is_nil(field_from(row, part.field_no)))
    }

    /// Order of two rows.
    #[inline]
    pub fn compare_rows(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self.shape {
            Shape::Unsigned => {
                let field_no = self.parts[0].field_no;
                unsigned_field(a, field_no).cmp(&unsigned_field(b, field_no))
            }
            Shape::Bytes => {
                let field_no = self.parts[0].field_no;
                text_field(a, field_no).cmp(text_field(b, field_no))
            }
            _ if let Some(order) = self.compare_leading_rows(a, b) => order,
            Shape::Unsigneds => {
                let (mut left, mut right) = (RowCursor::new(a), RowCursor::new(b));
                for part in &self.parts {
                    let order = left.unsigned(part.field_no).cmp(&right.unsigned(part.field_no));
                    if order.is_ne() {
                        return order;
                    }
                }
                Ordering::Equal
            }
            Shape::General => {
                let (mut left, mut right) = (RowCursor::new(a), RowCursor::new(b));
                for part in &self.parts {
                    let order = compare_part(part, left.field(part.field_no), right.field(part.field_no));
                    if order.is_ne() {
                        return order;
                    }
                }
                Ordering::Equal
            }
        }
    }

    /// Order of a row against the first `part_count` parts of a key (encoded one after the other, checked).
    #[inline]
    pub fn compare_row_key(&self, row: &[u8], key: &[u8], part_count: u32) -> Ordering {
        if part_count == 0 {
            return Ordering::Equal;
        }
        match self.shape {
            Shape::Unsigned => {
                unsigned_field(row, self.parts[0].field_no).cmp(&Reader::new(key).read_uint().unwrap_or(0))
            }
            Shape::Bytes => text_field(row, self.parts[0].field_no).cmp(Reader::new(key).read_str().unwrap_or(b"")),
            _ if let Some(order) = self.compare_leading_key(row, key, part_count as usize) => order,
            Shape::Unsigneds => {
                let mut row = RowCursor::new(row);
                let mut key = Reader::new(key);
                for part in self.parts.iter().take(part_count as usize) {
                    let order = row.unsigned(part.field_no).cmp(&key.read_uint().unwrap_or(0));
                    if order.is_ne() {
                        return order;
                    }
                }
                Ordering::Equal
            }
            Shape::General => {
                let mut row = RowCursor::new(row);
                let mut key = Reader::new(key);
                for part in self.parts.iter().take(part_count as usize) {
                    let order = compare_part(part, row.field(part.field_no), Some(key.rest()));
                    if order.is_ne() {
                        return order;
                    }
                    key.skip_checked();
                }
                Ordering::Equal
            }
        }
    }

    /// Order of the values of `count` first parts that stand one after the other. None: some are in no usual form, or not in the same.
    #[inline]
    fn compare_leading(&self, mut a: &[u8], mut b: &[u8], count: usize) -> Option<Ordering> {
        for part in self.parts.get(..count)? {
            let (order, a_length, b_length) = compare_alike(part, a, b)?;
            if order.is_ne() {
                return Some(order);
            }
            (a, b) = (a.get(a_length..)?, b.get(b_length..)?);
        }
        Some(Ordering::Equal)
    }

    #[inline]
    fn compare_leading_rows(&self, a: &[u8], b: &[u8]) -> Option<Ordering> {
        let count = self.parts.len();
        if self.leading < count {
            return None;
        }
        self.compare_leading(values_of(a, count)?, values_of(b, count)?, count)
    }

    #[inline]
    fn compare_leading_key(&self, row: &[u8], key: &[u8], count: usize) -> Option<Ordering> {
        if self.leading < count {
            return None;
        }
        self.compare_leading(values_of(row, count)?, key, count)
    }

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

    /// Checks the types of `part_count` encoded parts (any bytes).
    ///
    /// Errors: a wrong number of parts (`is_partial_allowed`: too many), a wrong type, not msgpack.
    pub fn validate_key(&self, key: &[u8], part_count: u32, is_partial_allowed: bool) -> Result<(), KeyError> {
        let expected = self.parts.len() as u32;
        if part_count > expected || !is_partial_allowed && part_count != expected {
            return Err(KeyError::PartCount { got: part_count, expected });
        }
        let mut reader = Reader::new(key);
        for (at, part) in self.parts.iter().enumerate().take(part_count as usize) {
            if let Some(length) = usual_length(part, reader.rest()) {
                reader.pass(length);
                continue;
            }
            let value = reader.read_value().map_err(KeyError::Msgpack)?;
            let is_good = part.field_type.accepts(value) || part.is_nullable && is_nil(Some(value));
            if !is_good {
                return Err(KeyError::PartType { part: at as u32, expected: part.field_type });
            }
        }
        Ok(())
    }

    /// The first part of a checked key that is nil, and the type it should have.
    pub fn first_nil_of(&self, key: &[u8]) -> Option<(u32, FieldType)> {
        if !self.is_nullable {
            return None;
        }
        let mut reader = Reader::new(key);
        for (at, part) in self.parts.iter().enumerate() {
            if reader.is_empty() {
                return None;
            }
            if reader.kind() == Ok(Kind::Nil) {
                return Some((at as u32, part.field_type));
            }
            reader.skip_checked();
        }
        None
    }

    /// Appends the key of a row as an array.
    pub fn extract_key(&self, row: &[u8], out: &mut Vec<u8>) {
        msgpack::encode_array(out, self.parts.len() as u32);
        let mut cursor = RowCursor::new(row);
        for part in &self.parts {
            match cursor.field(part.field_no) {
                Some(value) => out.extend_from_slice(&value[..msgpack::skip(value)]),
                None => msgpack::encode_nil(out),
            }
        }
    }

    /// A hash of a row's key; equal keys have equal hashes.
    pub fn hash_row(&self, row: &[u8]) -> u64 {
        if let ([part], Some(values)) = (&self.parts[..], values_of(row, 1).filter(|_| self.leading == 1)) {
            return mix(0, hash_part(part, Some(values)));
        }
        let mut cursor = RowCursor::new(row);
        self.parts.iter().fold(0, |hash, part| mix(hash, hash_part(part, cursor.field(part.field_no))))
    }

    /// As `hash_row`, for a key of one part that is this text.
    #[inline]
    pub fn hash_text(&self, text: &[u8]) -> u64 {
        let collation = self.parts.first().and_then(KeyPart::text_collation);
        mix(0, collation.map_or_else(|| hash_bytes(text), |collation| collation.hash(text)))
    }

    /// As `hash_row`, for all parts of a key.
    pub fn hash_key(&self, key: &[u8]) -> u64 {
        let mut reader = Reader::new(key);
        self.parts.iter().fold(0, |hash, part| {
            let value = reader.rest();
            reader.skip_checked();
            mix(hash, hash_part(part, Some(value)))
        })
    }
}

/// Finds fields of a row; going forward costs each field once.
pub(crate) struct RowCursor<'a> {
    row: &'a [u8],
    reader: Reader<'a>,
    next: u32,
    count: u32,
}

impl<'a> RowCursor<'a> {
    pub(crate) fn new(row: &'a [u8]) -> Self {
        let mut reader = Reader::new(row);
        let count = reader.read_array().unwrap_or(0);
        RowCursor { row, reader, next: 0, count }
    }

    #[inline]
    fn unsigned(&mut self, field_no: u32) -> u64 {
        self.field(field_no).and_then(|value| Reader::new(value).read_uint().ok()).unwrap_or(0)
    }

    #[inline(always)]
    pub(crate) fn field(&mut self, field_no: u32) -> Option<&'a [u8]> {
        if field_no >= self.count {
            return None;
        }
        if field_no < self.next {
            *self = RowCursor::new(self.row);
        }
        while self.next < field_no {
            self.reader.skip_checked();
            self.next += 1;
        }
        Some(self.reader.rest())
    }
}

#[inline]
fn unsigned_field(row: &[u8], field_no: u32) -> u64 {
    field_from(row, field_no).and_then(|value| Reader::new(value).read_uint().ok()).unwrap_or(0)
}

#[inline]
fn text_field(row: &[u8], field_no: u32) -> &[u8] {
    field_from(row, field_no).and_then(|value| Reader::new(value).read_str().ok()).unwrap_or(b"")
}

pub(crate) fn is_nil(value: Option<&[u8]>) -> bool {
    value.is_none_or(|value| Reader::new(value).kind() == Ok(Kind::Nil))
}

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
fn values_of(row: &[u8], count: usize) -> Option<&[u8]> {
    match row {
        [head @ 0x90..=0x9f, values @ ..] if usize::from(head & 0x0f) >= count => Some(values),
        _ => None,
    }
}

/// The order of two values that come in the same of the usual forms: whole numbers, doubles, short strings that compare as bytes; and the bytes of
/// each. None: they do not.
#[inline(always)]
fn compare_alike(part: &KeyPart, a: &[u8], b: &[u8]) -> Option<(Ordering, usize, usize)> {
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
fn small_integer(value: &[u8]) -> Option<(i64, usize)> {
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
fn usual_length(part: &KeyPart, value: &[u8]) -> Option<usize> {
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

fn compare_part(part: &KeyPart, a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
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

fn compare_scalars(part: &KeyPart, a: &[u8], b: &[u8]) -> Ordering {
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

#[inline]
fn prefix(bytes: &[u8]) -> u64 {
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

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes a value into a hash: a folded 128-bit product, as wyhash does.
#[inline]
fn mix(hash: u64, value: u64) -> u64 {
    let product = u128::from(hash ^ value ^ 0xa076_1d64_78bd_642f) * u128::from(MULTIPLIER | 1);
    (product as u64 ^ (product >> 64) as u64).rotate_left(23) ^ value.wrapping_mul(MULTIPLIER)
}

/// A hash of bytes. It is an order of collations and as such in files: it stays as it is.
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        hash = mix(hash, prefix(chunk));
    }
    mix(hash, 0x5bd1_e995)
}

fn hash_part(part: &KeyPart, value: Option<&[u8]>) -> u64 {
    let Some(value) = value else {
        return 0;
    };
    let mut reader = Reader::new(value);
    // The usual form first.
    if let [0xa0..=0xbf | 0xd9, ..] = value
        && part.collation.is_none()
    {
        return hash_bytes(reader.read_str().unwrap_or(b""));
    }
    match class_of(value) {
        1 => 1 + u64::from(reader.read_bool().unwrap_or(false)),
        2 => match Number::read(value) {
            Some(number) => match number.to_integer() {
                Some(integer) => mix(integer as u64, (integer >> 64) as u64),
                None => mix(ordered_bits(number.to_f64()), 7),
            },
            None => 0,
        },
        3 => {
            let text = reader.read_str().unwrap_or(b"");
            part.text_collation().map_or_else(|| hash_bytes(text), |collation| collation.hash(text))
        }
        4 => hash_bytes(reader.read_bin().unwrap_or(b"")),
        5 => hash_bytes(reader.read_ext().map_or(b"", |(_, body)| body)),
        6 => hash_bytes(&moment(value)),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decimal::Decimal;
    use proptest::prelude::*;

    /// A scalar value, encoded.
    fn scalar() -> impl Strategy<Value = Vec<u8>> {
        let encode = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            write(&mut out);
            out
        };
        prop_oneof![
            any::<bool>().prop_map(move |v| encode(&|o| msgpack::encode_bool(o, v))),
            any::<u64>().prop_map(move |v| encode(&|o| msgpack::encode_uint(o, v))),
            (-300..300i64).prop_map(move |v| encode(&|o| msgpack::encode_int(o, v))),
            any::<i64>().prop_map(move |v| encode(&|o| msgpack::encode_int(o, v))),
            (-1200..1200i64).prop_map(move |v| encode(&|o| msgpack::encode_f64(o, v as f64 / 4.0))),
            any::<f64>().prop_map(move |v| encode(&|o| msgpack::encode_f64(o, v))),
            (-1200..1200i64).prop_map(move |v| encode(&|o| {
                let mut body = Vec::new();
                Decimal::new(i128::from(v), 2).expect("few digits").encode(&mut body);
                msgpack::encode_ext(o, 1, &body);
            })),
            "[ab]{0,10}".prop_map(move |v| encode(&|o| msgpack::encode_str(o, v.as_bytes()))),
            proptest::collection::vec(any::<u8>(), 0..10).prop_map(move |v| encode(&|o| msgpack::encode_bin(o, &v))),
            any::<[u8; 16]>().prop_map(move |v| encode(&|o| msgpack::encode_ext(o, 2, &v))),
            (-3..3i64, 0..3i32, -1..2i16).prop_map(move |(seconds, nanoseconds, offset)| encode(&|o| {
                Datetime { seconds, nanoseconds, offset, zone: 0 }.encode(o);
            })),
        ]
    }

    /// One of few values, so that equal ones meet, strings also in forms that are longer than they need be.
    fn leading_value() -> impl Strategy<Value = Vec<u8>> {
        let text = ("[ab]{0,2}", 0..3usize).prop_map(|(text, form)| {
            let length = text.len() as u8;
            let head = match form {
                0 => vec![0xa0 | length],
                1 => vec![0xd9, length],
                _ => vec![0xda, 0, length],
            };
            [head, text.into_bytes()].concat()
        });
        prop_oneof![text, scalar()]
    }

    fn row_of(value: &[u8]) -> Vec<u8> {
        let mut row = vec![0x92, 0x01];
        row.extend_from_slice(value);
        row
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3000))]
        #[test]
        fn scalars_are_totally_ordered_and_hints_and_hashes_agree(a in scalar(), b in scalar(), c in scalar()) {
            let def = KeyDef::new(vec![KeyPart::new(1, FieldType::Scalar)]);
            let (ra, rb, rc) = (row_of(&a), row_of(&b), row_of(&c));
            let ab = def.compare_rows(&ra, &rb);
            prop_assert_eq!(def.compare_rows(&rb, &ra), ab.reverse());
            prop_assert_eq!(def.compare_row_key(&ra, &b, 1), ab);
            if ab.is_le() && def.compare_rows(&rb, &rc).is_le() {
                prop_assert!(def.compare_rows(&ra, &rc).is_le());
            }
            match ab {
                Ordering::Less => prop_assert!(def.hint(&ra) <= def.hint(&rb)),
                Ordering::Greater => prop_assert!(def.hint(&ra) >= def.hint(&rb)),
                Ordering::Equal => {
                    prop_assert_eq!(def.hint(&ra), def.hint(&rb));
                    prop_assert_eq!(def.hash_row(&ra), def.hash_key(&b));
                }
            }
            prop_assert_eq!(def.hint(&ra), def.key_hint(&a, 1));
        }

        #[test]
        fn values_in_one_form_compare_as_any(a in scalar(), b in scalar()) {
            let part = KeyPart::new(0, FieldType::Scalar);
            if let Some((order, a_length, b_length)) = compare_alike(&part, &a, &b) {
                prop_assert_eq!(order, compare_scalars(&part, &a, &b));
                prop_assert_eq!((a_length, b_length), (a.len(), b.len()));
            }
        }

        #[test]
        fn several_leading_parts_compare_one_after_the_other(
            (a, b) in (proptest::collection::vec(leading_value(), 3), proptest::collection::vec(leading_value(), 3)),
            count in 1..=3usize,
        ) {
            let def = KeyDef::new((0..3).map(|field_no| KeyPart::new(field_no, FieldType::Scalar)).collect());
            let row = |values: &[Vec<u8>]| [vec![0x93], values.concat()].concat();
            let order = |count: usize| {
                let orders = (0..count).map(|at| compare_scalars(&def.parts[at], &a[at], &b[at]));
                orders.fold(Ordering::Equal, Ordering::then)
            };
            prop_assert_eq!(def.compare_rows(&row(&a), &row(&b)), order(3));
            prop_assert_eq!(def.compare_row_key(&row(&a), &b[..count].concat(), count as u32), order(count));
        }

        #[test]
        fn any_bytes_as_a_key_are_refused_or_good(bytes in proptest::collection::vec(any::<u8>(), 0..40), n in 0..4u32) {
            let def = KeyDef::new(vec![
                KeyPart::new(0, FieldType::Unsigned), KeyPart::new(1, FieldType::String), KeyPart::new(2, FieldType::Scalar),
            ]);
            if def.validate_key(&bytes, n, true).is_ok() && n > 0 {
                def.key_hint(&bytes, n);
                def.compare_row_key(&[0x93, 1, 0xa1, b'x', 3], &bytes, n);
            }
        }
    }

    #[test]
    fn nil_and_absence_are_equal_and_lowest() {
        let mut part = KeyPart::new(1, FieldType::Integer);
        part.is_nullable = true;
        let def = KeyDef::new(vec![part]);
        let (absent, nil, least) = ([0x91, 1], [0x92, 1, 0xc0], [0x92, 1, 0xff]);
        assert!(def.compare_rows(&absent, &nil).is_eq());
        assert!(def.compare_rows(&nil, &least).is_lt());
        assert!(def.has_null_in(&absent) && !def.has_null_in(&least));
    }
}
