//! Key definitions: which fields make a key, and how keys compare.
//!
//! A comparison that an index asks for is decided by 64-bit hints in most cases; what remains is done here. The common
//! shapes (one unsigned or string field at the front of the row) have their own paths, everything else goes part by part.

mod compare;
mod hash;
mod hint;

pub(crate) use compare::{class_of, moment};
pub(crate) use hash::hash_bytes;

use compare::{compare_alike, compare_part, usual_length, values_of};
use hint::Sharing;

use crate::collation::Collation;
use crate::error::KeyError;
use crate::field::FieldType;
use crate::msgpack::{self, Kind, Reader};
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

/// The parts of a key, in order.
#[derive(Debug)]
pub struct KeyDef {
    parts: Vec<KeyPart>,
    sharing: Sharing,
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
        KeyDef { sharing: Sharing::of(&parts), parts, shape, is_nullable, leading }
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

#[cfg(test)]
mod tests {
    use super::compare::compare_scalars;
    use super::*;
    use crate::datetime::Datetime;
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
