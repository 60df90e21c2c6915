//! Keys as bytes that `memcmp` orders as their key definition does.
//!
//! The disk engine compares nothing but such bytes. Each part is a class byte, which orders values of different kinds, and a body that
//! says itself where it ends. So the bytes of the first parts of a key are a prefix of the bytes of exactly those rows that they match,
//! and since no class is `0xff`, `prefix ++ [0xff]` is above all of them.
//!
//! ```text
//! nil, absent        01
//! false, true        02 | 03
//! numbers            08 NaN | 09 -infinity | 0a body inverted | 0b zero | 0c body | 0d infinity
//!   body             exponent u16, pairs of decimal digits as 1 + pair, 00
//! unsigned, integer  10 two's complement of 8 bytes if negative | 11 8 bytes
//! double             12 8 bytes
//! string             20 bytes, 00 as 00 ff, then 00 00; bytes of the sort key if there is a collation
//! varbinary          21 as a string
//! uuid               22 16 bytes
//! datetime           23 12 bytes
//! ```
//!
//! Parts declared unsigned, integer or double have forms of their own, since they never meet other numbers. In the others 1, 1.0 and
//! decimal 1.00 are one value and must be the same bytes: decimal digits without zeros at either end behind the power of ten of the first.
//! Doubles have the digits of the number that they [stand for](crate::number), as when they are compared.

use crate::decimal::DIGITS_MAX;
use crate::field::FieldType;
use crate::key::{KeyDef, KeyPart, RowCursor, class_of, is_nil, moment};
use crate::msgpack::Reader;
use crate::number::{Number, ordered_bits, stands_for};

/// What the ordered bytes of nil are.
pub const ORDERED_NIL: u8 = 0x01;
const NIL: u8 = ORDERED_NIL;
const FALSE: u8 = 0x02;
const TRUE: u8 = 0x03;
const NAN: u8 = 0x08;
const MINUS_INFINITY: u8 = 0x09;
const NEGATIVE: u8 = 0x0a;
const ZERO: u8 = 0x0b;
const POSITIVE: u8 = 0x0c;
const INFINITY: u8 = 0x0d;
const NEGATIVE_INTEGER: u8 = 0x10;
const INTEGER: u8 = 0x11;
const DOUBLE: u8 = 0x12;
const STRING: u8 = 0x20;
const VARBINARY: u8 = 0x21;
const UUID: u8 = 0x22;
const DATETIME: u8 = 0x23;

/// Added to exponents so that they are positive.
const EXPONENT_BIAS: i32 = 0x4000;

impl KeyDef {
    /// Whether keys have ordered bytes. Errors: the first part whose values have none: arrays, maps and fields of any type.
    pub fn supports_ordered(&self) -> Result<(), &KeyPart> {
        let has_none = |part: &&KeyPart| {
            matches!(part.field_type, FieldType::Any | FieldType::Interval | FieldType::Array | FieldType::Map)
        };
        self.parts().iter().find(has_none).map_or(Ok(()), Err)
    }

    /// Appends the ordered bytes of a row's key.
    #[inline]
    pub fn ordered_of_row(&self, row: &[u8], out: &mut Vec<u8>) {
        let mut cursor = RowCursor::new(row);
        for part in self.parts() {
            encode_part(part, cursor.field(part.field_no), out);
        }
    }

    /// Appends the ordered bytes of the first `part_count` parts of a key (encoded one after the other, checked).
    #[inline]
    pub fn ordered_of_key(&self, key: &[u8], part_count: u32, out: &mut Vec<u8>) {
        let mut reader = Reader::new(key);
        for part in self.parts().iter().take(part_count as usize) {
            encode_part(part, Some(reader.rest()), out);
            reader.skip_checked();
        }
    }
}

/// How many of these ordered bytes are the first `part_count` parts; `None` if they are fewer parts, or no ordered bytes.
pub fn ordered_prefix_length(bytes: &[u8], part_count: u32) -> Option<usize> {
    let mut length = 0;
    for _ in 0..part_count {
        length += part_length(&bytes[length..])?;
    }
    Some(length)
}

fn part_length(bytes: &[u8]) -> Option<usize> {
    // Digits end with a byte that is none.
    let digits = |end: u8| Some(4 + bytes.get(3..)?.iter().position(|&byte| byte == end)?);
    let length = match *bytes.first()? {
        NIL | FALSE | TRUE | NAN | MINUS_INFINITY | ZERO | INFINITY => 1,
        POSITIVE => digits(0)?,
        NEGATIVE => digits(0xff)?,
        NEGATIVE_INTEGER | INTEGER | DOUBLE => 9,
        STRING | VARBINARY => {
            let mut at = 1;
            loop {
                at += bytes.get(at..)?.iter().position(|&byte| byte == 0)? + 2;
                if *bytes.get(at - 1)? == 0 {
                    break at;
                }
            }
        }
        UUID => 17,
        DATETIME => 13,
        _ => return None,
    };
    (length <= bytes.len()).then_some(length)
}

#[inline(always)]
fn encode_part(part: &KeyPart, value: Option<&[u8]>, out: &mut Vec<u8>) {
    let Some(value) = value else {
        return out.push(NIL);
    };
    if part.field_type == FieldType::Unsigned
        && let Ok(unsigned) = Reader::new(value).read_uint()
    {
        return encode_fixed(INTEGER, unsigned, out);
    }
    encode_other(part, value, out);
}

#[inline]
fn encode_fixed(class: u8, body: u64, out: &mut Vec<u8>) {
    let mut bytes = [class; 9];
    bytes[1..].copy_from_slice(&body.to_be_bytes());
    out.extend_from_slice(&bytes);
}

fn encode_other(part: &KeyPart, value: &[u8], out: &mut Vec<u8>) {
    let mut reader = Reader::new(value);
    match part.field_type {
        _ if is_nil(Some(value)) => out.push(NIL),
        FieldType::Unsigned | FieldType::Integer => {
            let integer = reader.read_i128().unwrap_or(0);
            let class = if integer < 0 { NEGATIVE_INTEGER } else { INTEGER };
            encode_fixed(class, integer as u64, out);
        }
        FieldType::Double => encode_fixed(DOUBLE, ordered_bits(reader.read_double().unwrap_or(0.0)), out),
        FieldType::String => encode_text(part, reader.read_str().unwrap_or(b""), out),
        _ => match class_of(value) {
            1 => out.push(if reader.read_bool().unwrap_or(false) { TRUE } else { FALSE }),
            2 => encode_number(Number::read(value), out),
            3 => encode_text(part, reader.read_str().unwrap_or(b""), out),
            4 => encode_bytes(VARBINARY, reader.read_bin().unwrap_or(b""), out),
            5 => {
                out.push(UUID);
                out.extend_from_slice(reader.read_ext().map_or(b"", |(_, body)| body));
            }
            6 => {
                out.push(DATETIME);
                out.extend_from_slice(&moment(value));
            }
            _ => out.push(NIL),
        },
    }
}

fn encode_text(part: &KeyPart, text: &[u8], out: &mut Vec<u8>) {
    match part.text_collation() {
        Some(collation) => {
            let mut key = Vec::with_capacity(2 * text.len() + 8);
            collation.sort_key(text, &mut key);
            encode_bytes(STRING, &key, out);
        }
        None => encode_bytes(STRING, text, out),
    }
}

fn encode_bytes(class: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() + 3);
    out.push(class);
    let mut pieces = bytes.split(|&byte| byte == 0);
    out.extend_from_slice(pieces.next().unwrap_or_default());
    for piece in pieces {
        out.extend_from_slice(&[0, 0xff]);
        out.extend_from_slice(piece);
    }
    out.extend_from_slice(&[0, 0]);
}

fn encode_number(number: Option<Number>, out: &mut Vec<u8>) {
    match number {
        // What compares below all numbers.
        None => out.push(NAN),
        Some(Number::Integer(value)) => encode_digits(value < 0, value.unsigned_abs(), 0, out),
        Some(Number::Decimal(value)) => {
            let (coefficient, scale) = value.parts();
            encode_digits(coefficient < 0, coefficient.unsigned_abs(), scale, out);
        }
        Some(Number::Double(value)) => encode_double(value, out),
    }
}

fn encode_double(value: f64, out: &mut Vec<u8>) {
    if value.is_nan() {
        return out.push(NAN);
    }
    if value.is_infinite() {
        return out.push(if value < 0.0 { MINUS_INFINITY } else { INFINITY });
    }
    if let Some((coefficient, scale)) = stands_for(value) {
        encode_digits(value < 0.0, coefficient, scale, out);
    }
}

/// Appends `coefficient * 10^-scale`.
fn encode_digits(is_negative: bool, coefficient: u128, scale: i32, out: &mut Vec<u8>) {
    // Ten times a number of 37 digits fits 128 bits.
    const { assert!(DIGITS_MAX == 38) };
    let Some(log) = coefficient.checked_ilog10() else {
        return out.push(ZERO);
    };
    let count = log as i32 + 1;
    let exponent = (count - scale + EXPONENT_BIAS) as u16;
    // Digits in pairs from the first; an odd last one gets a zero.
    let mut rest = if count % 2 == 0 { coefficient } else { coefficient.saturating_mul(10) };
    let mut pairs = [0u8; DIGITS_MAX as usize / 2 + 1];
    let pair_count = (count as usize).div_ceil(2);
    let mut at = pair_count;
    while at > 0 {
        at -= 1;
        pairs[at] = match u64::try_from(rest) {
            // Division of 128 bits is slow.
            Ok(small) => {
                rest = u128::from(small / 100);
                (small % 100) as u8
            }
            Err(_) => {
                let pair = (rest % 100) as u8;
                rest /= 100;
                pair
            }
        };
    }
    let used = pairs[..pair_count].iter().rposition(|&pair| pair != 0).map_or(0, |last| last + 1);
    let start = out.len() + 1;
    out.push(if is_negative { NEGATIVE } else { POSITIVE });
    out.extend_from_slice(&exponent.to_be_bytes());
    out.extend(pairs[..used].iter().map(|pair| pair + 1));
    out.push(0);
    if is_negative {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collation::Collation;
    use crate::decimal::Decimal;
    use crate::msgpack;
    use proptest::prelude::*;
    use std::cmp::Ordering;
    use std::sync::Arc;

    fn encoded(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    fn decimal(coefficient: i128, scale: i32) -> Vec<u8> {
        let mut body = Vec::new();
        Decimal::new(coefficient, scale).expect("few digits").encode(&mut body);
        encoded(|out| msgpack::encode_ext(out, msgpack::EXT_DECIMAL, &body))
    }

    fn double(value: f64) -> Vec<u8> {
        encoded(|out| msgpack::encode_f64(out, value))
    }

    fn integer() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            any::<u64>().prop_map(|v| encoded(|o| msgpack::encode_uint(o, v))),
            any::<i64>().prop_map(|v| encoded(|o| msgpack::encode_int(o, v))),
            (-3..3i64).prop_map(|v| encoded(|o| msgpack::encode_int(o, v))),
            (0..3u64).prop_map(|v| encoded(|o| msgpack::encode_uint(o, u64::MAX - v))),
            (0..3i64).prop_map(|v| encoded(|o| msgpack::encode_int(o, i64::MIN + v))),
        ]
    }

    fn any_double() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            any::<f64>().prop_map(double),
            (-20..20i64).prop_map(|v| double(v as f64 / 4.0)),
            (-20..20i64).prop_map(|v| double(v as f64 / 10.0)),
            any::<i64>().prop_map(|v| double(v as f64)),
            any::<f32>().prop_map(|v| encoded(|o| {
                o.push(0xca);
                o.extend_from_slice(&v.to_be_bytes());
            })),
            proptest::sample::select(vec![
                0.0,
                -0.0,
                f64::NAN,
                f64::INFINITY,
                f64::NEG_INFINITY,
                f64::MAX,
                f64::MIN_POSITIVE,
                5e-324,
                18_446_744_073_709_551_616.0,
                -9_223_372_036_854_775_808.0,
            ])
            .prop_map(double),
        ]
    }

    fn any_decimal() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            (-20..20i64, 0..3i32).prop_map(|(v, scale)| decimal(i128::from(v), scale)),
            (any::<i64>(), 0..30i32).prop_map(|(v, scale)| decimal(i128::from(v), scale)),
            (any::<i128>(), 0..38i32).prop_map(|(v, scale)| decimal(v % 10i128.pow(38), scale)),
            (0..38u32, 0..38i32).prop_map(|(power, scale)| decimal(10i128.pow(power.min(37)), scale)),
        ]
    }

    fn text() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            proptest::collection::vec(0..3u8, 0..6),
            proptest::collection::vec(any::<u8>(), 0..6),
            "[aAbBäéеёЁß .-]{0,6}".prop_map(String::into_bytes),
        ]
    }

    fn scalar() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            any::<bool>().prop_map(|v| encoded(|o| msgpack::encode_bool(o, v))),
            integer(),
            any_double(),
            any_decimal(),
            text().prop_map(|v| encoded(|o| msgpack::encode_str(o, &v))),
            text().prop_map(|v| encoded(|o| msgpack::encode_bin(o, &v))),
            any::<[u8; 16]>().prop_map(|v| encoded(|o| msgpack::encode_ext(o, msgpack::EXT_UUID, &v))),
            (-3..3i64, 0..3i32, -1..2i16).prop_map(|(seconds, nanoseconds, offset)| {
                encoded(|o| crate::datetime::Datetime { seconds, nanoseconds, offset, zone: 0 }.encode(o))
            }),
        ]
    }

    fn value_of(field_type: FieldType) -> BoxedStrategy<Vec<u8>> {
        match field_type {
            FieldType::Integer => integer().boxed(),
            FieldType::Double => any_double().boxed(),
            FieldType::String => text().prop_map(|v| encoded(|o| msgpack::encode_str(o, &v))).boxed(),
            _ => scalar().prop_filter("of the type", move |value| field_type.accepts(value)).boxed(),
        }
    }

    fn row_of(values: &[&[u8]]) -> Vec<u8> {
        let mut row = Vec::new();
        msgpack::encode_array(&mut row, values.len() as u32);
        values.iter().for_each(|value| row.extend_from_slice(value));
        row
    }

    fn ordered_row(def: &KeyDef, row: &[u8]) -> Vec<u8> {
        encoded(|out| def.ordered_of_row(row, out))
    }

    fn ordered_key(def: &KeyDef, key: &[u8], part_count: u32) -> Vec<u8> {
        encoded(|out| def.ordered_of_key(key, part_count, out))
    }

    fn nullable(field_no: u32, field_type: FieldType) -> KeyPart {
        KeyPart { is_nullable: true, ..KeyPart::new(field_no, field_type) }
    }

    const TYPES: [FieldType; 11] = [
        FieldType::Unsigned,
        FieldType::Integer,
        FieldType::Double,
        FieldType::Number,
        FieldType::Decimal,
        FieldType::Boolean,
        FieldType::String,
        FieldType::Varbinary,
        FieldType::Uuid,
        FieldType::Datetime,
        FieldType::Scalar,
    ];

    /// Numbers of all lengths.
    fn magnitude() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0..64u32).prop_map(|(number, shift)| number >> shift)
    }

    /// Hints of two rows order as they do, and so does the hint of a row beside those of the first parts of the other's key.
    fn hints_fit(def: &KeyDef, row_a: &[u8], (row_b, key_b): (&[u8], &[Vec<u8>])) -> Result<(), TestCaseError> {
        let order = def.compare_rows(row_a, row_b);
        let hint = def.hint(row_a);
        prop_assert_eq!(hint.cmp(&def.hint(row_b)).then(order), order);
        for count in 1..=key_b.len() {
            let key = key_b[..count].concat();
            let (before, behind) = (def.key_hint(&key, count as u32), def.key_hint_above(&key, count as u32));
            prop_assert_eq!(def.hint_of_first(row_b, count), before);
            let fits = match def.compare_row_key(row_a, &key, count as u32) {
                Ordering::Less => hint <= before,
                Ordering::Equal => before <= hint && hint <= behind,
                Ordering::Greater => hint >= behind,
            };
            prop_assert!(fits, "{count}: {hint:x} {before:x} {behind:x}");
        }
        Ok(())
    }

    /// A whole number of any magnitude, or none.
    fn whole() -> impl Strategy<Value = Option<i128>> {
        let signed = (magnitude(), any::<bool>())
            .prop_map(|(number, is_negative)| if is_negative { -i128::from(number >> 1) } else { i128::from(number) });
        prop_oneof![8 => signed.prop_map(Some), 4 => (0..4i128).prop_map(Some), 1 => Just(None)]
    }

    /// A type, and two values of it, each of which may be nil or absent.
    fn pair() -> impl Strategy<Value = (FieldType, Option<Vec<u8>>, Option<Vec<u8>>)> {
        proptest::sample::select(TYPES.to_vec()).prop_flat_map(|field_type| {
            let value = move || {
                prop_oneof![
                    12 => value_of(field_type).prop_map(Some),
                    1 => Just(Some(vec![0xc0])),
                    1 => Just(None),
                ]
            };
            (Just(field_type), value(), value())
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(6000))]

        #[test]
        fn bytes_of_one_part_order_as_rows_do((field_type, a, b) in pair()) {
            let def = KeyDef::new(vec![nullable(0, field_type)]);
            let row = |value: &Option<Vec<u8>>| value.as_ref().map_or_else(|| row_of(&[]), |value| row_of(&[value]));
            let (row_a, row_b) = (row(&a), row(&b));
            let (nil_or_a, nil_or_b) = (a.unwrap_or(vec![0xc0]), b.unwrap_or(vec![0xc0]));
            let (bytes_a, bytes_b) = (ordered_row(&def, &row_a), ordered_row(&def, &row_b));
            prop_assert_eq!(bytes_a.cmp(&bytes_b), def.compare_rows(&row_a, &row_b));
            prop_assert_eq!(&bytes_a, &ordered_key(&def, &nil_or_a, 1));
            prop_assert_eq!(def.compare_row_key(&row_a, &nil_or_b, 1), bytes_a.cmp(&bytes_b));
            prop_assert!(bytes_a[0] < 0xff);
        }

        #[test]
        fn parts_of_a_key_are_a_prefix_of_what_they_match_and_of_nothing_else(
            a in (text(), scalar(), integer()), b in (text(), scalar(), integer()), shared in 0..3usize, count in 0..4u32,
        ) {
            let mut def = KeyDef::new(vec![
                nullable(1, FieldType::String), nullable(0, FieldType::Scalar), KeyPart::new(2, FieldType::Integer),
            ]);
            if count == 3 {
                def = KeyDef::merge(&def, &KeyDef::new(vec![KeyPart::new(3, FieldType::Unsigned)]));
            }
            let values = |of: &(Vec<u8>, Vec<u8>, Vec<u8>)| {
                [encoded(|o| msgpack::encode_str(o, &of.0)), of.1.clone(), of.2.clone(), vec![7]]
            };
            let (left, mut right) = (values(&a), values(&b));
            right[..shared].clone_from_slice(&left[..shared]);
            let row = |of: &[Vec<u8>; 4]| row_of(&[&of[1], &of[0], &of[2], &of[3]]);
            let (row_a, row_b) = (row(&left), row(&right));
            let (bytes_a, bytes_b) = (ordered_row(&def, &row_a), ordered_row(&def, &row_b));
            prop_assert_eq!(bytes_a.cmp(&bytes_b), def.compare_rows(&row_a, &row_b));
            let prefix = ordered_key(&def, &left.concat(), count);
            prop_assert_eq!(ordered_prefix_length(&bytes_a, count), Some(prefix.len()));
            prop_assert_eq!(ordered_prefix_length(&bytes_a[..bytes_a.len() - 1], def.part_count() as u32), None);
            prop_assert!(bytes_a.starts_with(&prefix));
            let order = def.compare_row_key(&row_b, &left.concat(), count);
            prop_assert_eq!(bytes_b.starts_with(&prefix), order.is_eq());
            if order.is_ne() {
                prop_assert_eq!(bytes_b.cmp(&prefix), order);
            }
            let above = [&prefix[..], &[0xff]].concat();
            prop_assert_eq!(bytes_b < above, order.is_le());
        }

        #[test]
        fn collated_strings_order_as_their_collation_does(a in text(), b in text(), strength in 0..5usize, shifted: bool) {
            let mut options = Vec::new();
            msgpack::encode_map(&mut options, 1 + u32::from(shifted));
            let names = ["primary", "secondary", "tertiary", "quaternary", "identical"];
            msgpack::encode_str(&mut options, b"strength");
            msgpack::encode_str(&mut options, names[strength].as_bytes());
            if shifted {
                msgpack::encode_str(&mut options, b"alternate_handling");
                msgpack::encode_str(&mut options, b"shifted");
            }
            let collation = Collation::from_row(1, "test", "ICU", "", &options).expect("a good row");
            let part = KeyPart { collation: Some(Arc::new(collation)), ..KeyPart::new(0, FieldType::String) };
            let def = KeyDef::new(vec![part]);
            let row = |text: &[u8]| row_of(&[&encoded(|o| msgpack::encode_str(o, text))]);
            let (a, b) = (row(&a), row(&b));
            prop_assert_eq!(ordered_row(&def, &a).cmp(&ordered_row(&def, &b)), def.compare_rows(&a, &b));
        }

        /// A hint is that of the first part and of what the second one has to say in the bits that are left.
        #[test]
        fn hints_of_several_parts_order_as_rows_do(
            ((part, second_a, second_b), is_hashed) in (pair(), any::<bool>()), first in (magnitude(), magnitude()), is_same: bool,
            third in (0..2u64, 0..2u64), is_swapped: bool,
        ) {
            let collation = Collation::from_row(1, "test", "HASH", "", &[0x80]).expect("a good row");
            let collation = (is_hashed && part == FieldType::String).then(|| Arc::new(collation));
            let places = if is_swapped { [1, 0, 2] } else { [0, 1, 2] };
            let def = KeyDef::new(vec![
                KeyPart::new(places[0], FieldType::Unsigned),
                KeyPart { collation, ..nullable(places[1], part) },
                KeyPart::new(places[2], FieldType::Unsigned),
            ]);
            let values = |first: u64, second: Option<Vec<u8>>, third: u64| {
                let uint = |number| encoded(|o| msgpack::encode_uint(o, number));
                [uint(first), second.unwrap_or(vec![0xc0]), uint(third)]
            };
            let a = values(first.0, second_a, third.0);
            let b = values(if is_same { first.0 } else { first.1 }, second_b, third.1);
            let row = |values: &[Vec<u8>; 3]| row_of(&places.map(|at| &values[at as usize][..]));
            let (row_a, row_b) = (row(&a), row(&b));
            let order = def.compare_rows(&row_a, &row_b);
            prop_assert_eq!(ordered_row(&def, &row_a).cmp(&ordered_row(&def, &row_b)), order);
            hints_fit(&def, &row_a, (&row_b, &b))?;
        }

        /// Whole numbers, signed or not, nil or not, share the bits of a hint; a last part of any type has what they leave.
        #[test]
        fn hints_of_whole_numbers_order_as_rows_do(
            forms in proptest::collection::vec((any::<bool>(), any::<bool>()), 1..5),
            numbers in proptest::collection::vec((whole(), whole()), 5), alike in 0..6usize, (last, last_a, last_b) in pair(),
        ) {
            let count = forms.len();
            let mut parts: Vec<KeyPart> = forms.iter().zip(0..).map(|((is_signed, is_nullable), field_no)| {
                let field_type = if *is_signed { FieldType::Integer } else { FieldType::Unsigned };
                KeyPart { is_nullable: *is_nullable, ..KeyPart::new(field_no, field_type) }
            }).collect();
            parts.push(nullable(count as u32, last));
            let def = KeyDef::new(parts);
            let value = |at: usize, number: Option<i128>| {
                let (is_signed, is_nullable) = forms[at];
                match number {
                    None if is_nullable => vec![0xc0],
                    Some(number) if is_signed && number < 0 => encoded(|o| msgpack::encode_int(o, number as i64)),
                    number => encoded(|o| msgpack::encode_uint(o, number.unwrap_or(0).unsigned_abs() as u64)),
                }
            };
            let a: Vec<Vec<u8>> = (0..count).map(|at| value(at, numbers[at].0)).chain(last_a).collect();
            let number_b = |at: usize| if at < alike { numbers[at].0 } else { numbers[at].1 };
            let b: Vec<Vec<u8>> = (0..count).map(|at| value(at, number_b(at))).chain(last_b).collect();
            let row = |values: &[Vec<u8>]| row_of(&values.iter().map(|value| &value[..]).collect::<Vec<_>>());
            let (row_a, row_b) = (row(&a), row(&b));
            hints_fit(&def, &row_a, (&row_b, &b))?;
        }

        /// Issue 14: of numbers near 2^60 of several kinds a third was not found by its own key.
        #[test]
        fn numbers_of_all_kinds_are_in_one_total_order(a in number(), b in number(), c in number()) {
            for field_type in [FieldType::Number, FieldType::Scalar] {
                let def = KeyDef::new(vec![KeyPart::new(0, field_type)]);
                let rows = [row_of(&[&a]), row_of(&[&b]), row_of(&[&c])];
                let order = |x: usize, y: usize| def.compare_rows(&rows[x], &rows[y]);
                for (x, y) in [(0, 1), (1, 2), (0, 2), (1, 0), (0, 0)] {
                    prop_assert_eq!(order(x, y), order(y, x).reverse());
                    prop_assert_eq!(ordered_row(&def, &rows[x]).cmp(&ordered_row(&def, &rows[y])), order(x, y));
                    let agrees = match order(x, y) {
                        Ordering::Less => def.hint(&rows[x]) <= def.hint(&rows[y]),
                        Ordering::Equal => {
                            def.hint(&rows[x]) == def.hint(&rows[y]) && def.hash_row(&rows[x]) == def.hash_row(&rows[y])
                        }
                        Ordering::Greater => true,
                    };
                    prop_assert!(agrees, "hints and hashes");
                }
                for [x, y, z] in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
                    if order(x, y).is_le() && order(y, z).is_le() {
                        prop_assert!(order(x, z).is_le());
                        prop_assert_eq!(order(x, z).is_eq(), order(x, y).is_eq() && order(y, z).is_eq());
                    }
                }
            }
        }
    }

    /// Numbers of all kinds beside a few places where the kinds meet.
    fn number() -> impl Strategy<Value = Vec<u8>> {
        let places = proptest::sample::select(vec![
            0i128,
            1,
            1 << 24,
            1 << 53,
            1 << 60,
            1 << 63,
            1 << 64,
            -(1 << 53),
            -(1 << 60),
            -(1 << 63),
            10i128.pow(15),
            10i128.pow(22),
            10i128.pow(23),
            10i128.pow(37),
            12_345_678_901_234_567,
        ]);
        let near = (places, -4..4i128, 0..6u8, 0..25i32).prop_map(|(place, offset, kind, scale)| {
            let value = place + offset;
            match kind {
                0 => match (u64::try_from(value), i64::try_from(value)) {
                    (Ok(value), _) => encoded(|o| msgpack::encode_uint(o, value)),
                    (_, Ok(value)) => encoded(|o| msgpack::encode_int(o, value)),
                    _ => double(value as f64),
                },
                1 => double(value as f64),
                2 => encoded(|o| msgpack::encode_f32(o, value as f32)),
                3 => decimal(value, 0),
                4 => decimal(value, scale),
                // The double next to a decimal.
                _ => double(Decimal::new(value, scale).expect("few digits").to_f64()),
            }
        });
        prop_oneof![4 => near, 1 => any_double(), 1 => any_decimal(), 1 => integer()]
    }

    #[test]
    fn equal_numbers_of_all_kinds_have_equal_bytes() {
        let def = KeyDef::new(vec![KeyPart::new(0, FieldType::Scalar)]);
        for value in [0, 1, -1, 10, 100, -12_300, 1 << 53, i64::MIN, i64::MAX] {
            let expected = ordered_key(&def, &encoded(|o| msgpack::encode_int(o, value)), 1);
            for scale in 0..10 {
                let value = decimal(i128::from(value) * 10i128.pow(scale as u32), scale);
                assert_eq!(ordered_key(&def, &value, 1), expected);
            }
            if value != i64::MAX {
                assert_eq!(ordered_key(&def, &double(value as f64), 1), expected);
            }
        }
        assert_eq!(ordered_key(&def, &double(-0.1), 1), ordered_key(&def, &decimal(-100, 3), 1));
        assert_eq!(ordered_key(&def, &double(1e30), 1), ordered_key(&def, &decimal(10i128.pow(30), 0), 1));
    }

    #[test]
    fn arrays_and_maps_are_refused() {
        let part = |field_no, field_type| KeyPart::new(field_no, field_type);
        for field_type in TYPES {
            assert!(KeyDef::new(vec![part(0, field_type)]).supports_ordered().is_ok());
        }
        for field_type in [FieldType::Any, FieldType::Array, FieldType::Map] {
            let def = KeyDef::new(vec![part(0, FieldType::Unsigned), part(3, field_type)]);
            assert_eq!(def.supports_ordered().map_err(|part| part.field_no), Err(3));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_prefix_or_none(bytes in proptest::collection::vec(0..0x24u8, 0..40), count in 0..6u32) {
            prop_assert!(ordered_prefix_length(&bytes, count).is_none_or(|length| length <= bytes.len()));
        }
    }

    #[test]
    fn an_unsigned_key_is_nine_bytes() {
        let def = KeyDef::new(vec![KeyPart::new(1, FieldType::Unsigned)]);
        assert_eq!(ordered_row(&def, &[0x92, 5, 0xcd, 1, 2]), [0x11, 0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(ordered_key(&def, &[3], 1).cmp(&ordered_key(&def, &[4], 1)), Ordering::Less);
    }
}
