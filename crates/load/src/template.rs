//! Requests, encoded once.
//!
//! The client shares its cores with the server it measures. So a request is encoded once, with holes of fixed width where the number of the
//! request and its key go; making one more is a copy and a few stores.

use crate::door::{Door, Expect};
use crate::keys::scatter;
use tuple::msgpack::{encode_array, encode_map, encode_str, encode_uint};
use wire::{SYNC_OFFSET, key, put_packet, request_type};

/// Digits of a key in the text protocols.
pub(crate) const DIGITS: usize = 10;
/// The key 0 over the binary protocol. Keys are written in five bytes wherever they stand, and for numbers from here on that is the only way to
/// write them. A smaller one written so is found by nobody who writes it shorter: Tarantool compares bytes.
pub const FIRST_KEY: u32 = 1 << 16;
/// What keys of the text protocols begin with.
const TEXT_PREFIX: u8 = b'k';

/// What a row is made of: the key, some numbers, a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Unsigned numbers behind the key, for secondary indexes: each different in every row, in no order.
    pub numbers: u32,
    /// Bytes of the string behind them; no string if `None`.
    pub text_bytes: Option<usize>,
    /// So many of these bytes are letters that differ from row to row, rounded down to a multiple of four; the others are all the same. An engine
    /// that compresses makes nothing of the same, which no user's rows are.
    pub letters: usize,
}

impl Row {
    /// A key and a string.
    pub fn text(bytes: usize) -> Self {
        Row { numbers: 0, text_bytes: Some(bytes), letters: 0 }
    }

    /// A key and a string that compresses to about a half.
    pub fn dense(bytes: usize) -> Self {
        Row { letters: bytes * 2 / 3, ..Row::text(bytes) }
    }

    fn fields(self) -> usize {
        1 + self.numbers as usize + usize::from(self.text_bytes.is_some())
    }
}

/// The number that stands in a row behind its key; `position` counts from 1.
fn number(key: u32, position: u32) -> u32 {
    // Other numbers at each position, still each once.
    scatter(key ^ position.wrapping_mul(0x9e37_79b9))
}

/// What is put in.
#[derive(Clone, Copy, Debug)]
enum What {
    Key,
    /// `number` of this position.
    Number(u32),
    /// Four letters: those of `number` of this position.
    Letters(u32),
}

#[derive(Clone, Copy, Debug)]
enum Form {
    /// Four bytes, the highest first.
    Binary,
    /// `DIGITS` digits.
    Decimal,
    /// Four letters and the like, six bits in each.
    Letters,
}

#[derive(Clone, Copy, Debug)]
struct Hole {
    offset: usize,
    form: Form,
    what: What,
}

/// An encoded request with holes.
#[derive(Clone, Debug)]
pub struct Template {
    bytes: Vec<u8>,
    holes: Vec<Hole>,
    /// Where the number of the request goes, in protocols that have one.
    sync_offset: Option<usize>,
    pub(crate) expect: Expect,
}

/// A kind of request and its part of all: one in `sum of the weights / weight`.
#[derive(Clone, Debug)]
pub struct Share {
    /// Its part.
    pub weight: u32,
    /// What is asked.
    pub template: Template,
}

fn put_hole(out: &mut Vec<u8>, holes: &mut Vec<Hole>, what: What) {
    out.push(0xce);
    holes.push(Hole { offset: out.len(), form: Form::Binary, what });
    out.extend_from_slice(&[0; 4]);
}

fn put_row(out: &mut Vec<u8>, holes: &mut Vec<Hole>, row: Row) {
    encode_array(out, row.fields() as u32);
    put_hole(out, holes, What::Key);
    (1..=row.numbers).for_each(|position| put_hole(out, holes, What::Number(position)));
    if let Some(bytes) = row.text_bytes {
        encode_str(out, &vec![b'x'; bytes]);
        let start = out.len() - bytes;
        let letters = (0..row.letters.min(bytes) / 4).map(|at| Hole {
            offset: start + 4 * at,
            form: Form::Letters,
            // Positions that the numbers do not have.
            what: What::Letters(u32::MAX - at as u32),
        });
        holes.extend(letters);
    }
}

/// `[[op, field, argument]]`.
fn put_operation(out: &mut Vec<u8>, operation: &str, field: u32, argument: u64) {
    encode_array(out, 1);
    encode_array(out, 3);
    encode_str(out, operation.as_bytes());
    encode_uint(out, u64::from(field));
    encode_uint(out, argument);
}

/// Requests of the binary protocol.
impl Template {
    fn binary(kind: u64, expect: Expect, body: impl FnOnce(&mut Vec<u8>, &mut Vec<Hole>)) -> Self {
        let (mut bytes, mut holes) = (Vec::new(), Vec::new());
        put_packet(&mut bytes, kind, 0, |out| body(out, &mut holes));
        Template { bytes, holes, sync_offset: Some(SYNC_OFFSET), expect }
    }

    fn with_row(kind: u64, space: u64, row: Row) -> Self {
        Self::binary(kind, Expect::Row, |out, holes| {
            encode_map(out, 2);
            encode_uint(out, key::SPACE_ID);
            encode_uint(out, space);
            encode_uint(out, key::TUPLE);
            put_row(out, holes, row);
        })
    }

    /// The row of a key put in place of whatever was there; answered by the row.
    pub fn replace(space: u64, row: Row) -> Self {
        Self::with_row(request_type::REPLACE, space, row)
    }

    /// A row of a key that is not there yet; answered by the row.
    pub fn insert(space: u64, row: Row) -> Self {
        Self::with_row(request_type::INSERT, space, row)
    }

    fn by_key(kind: u64, space: u64, expect: Expect) -> Self {
        Self::binary(kind, expect, |out, holes| {
            encode_map(out, 2);
            encode_uint(out, key::SPACE_ID);
            encode_uint(out, space);
            encode_uint(out, key::KEY);
            encode_array(out, 1);
            put_hole(out, holes, What::Key);
        })
    }

    /// The row of a key taken away; answered by the row.
    pub fn delete(space: u64) -> Self {
        Self::by_key(request_type::DELETE, space, Expect::Row)
    }

    fn select_what(space: u64, index: u8, what: What, expect: Expect) -> Self {
        Self::binary(request_type::SELECT, expect, |out, holes| {
            encode_map(out, 4);
            encode_uint(out, key::SPACE_ID);
            encode_uint(out, space);
            for value in [key::INDEX_ID, u64::from(index), key::LIMIT, 1, key::KEY] {
                encode_uint(out, value);
            }
            encode_array(out, 1);
            put_hole(out, holes, what);
        })
    }

    /// The row of a key.
    pub fn select(space: u64) -> Self {
        Self::select_what(space, 0, What::Key, Expect::Row)
    }

    /// A key that has no row; answered by nothing.
    pub fn select_missing(space: u64) -> Self {
        Self::select_what(space, 0, What::Key, Expect::Nothing)
    }

    /// The row of a key, found by the number at `position` and its index, which has the same number; a key without a row may be asked for.
    pub fn select_by_number(space: u64, position: u8) -> Self {
        Self::select_what(space, position, What::Number(u32::from(position)), Expect::Row)
    }

    /// `argument` added (`+`) to a field, taken away (`-`), or put there (`=`); fields count from 0. Answered by the row.
    pub fn update(space: u64, operation: &str, field: u32, argument: u64) -> Self {
        Self::binary(request_type::UPDATE, Expect::Row, |out, holes| {
            encode_map(out, 3);
            encode_uint(out, key::SPACE_ID);
            encode_uint(out, space);
            encode_uint(out, key::KEY);
            encode_array(out, 1);
            put_hole(out, holes, What::Key);
            encode_uint(out, key::TUPLE);
            put_operation(out, operation, field, argument);
        })
    }

    /// As `update` if there is a row, otherwise the row. Answered by nothing.
    pub fn upsert(space: u64, row: Row, operation: &str, field: u32, argument: u64) -> Self {
        Self::binary(request_type::UPSERT, Expect::Nothing, |out, holes| {
            encode_map(out, 3);
            encode_uint(out, key::SPACE_ID);
            encode_uint(out, space);
            encode_uint(out, key::TUPLE);
            put_row(out, holes, row);
            encode_uint(out, key::OPS);
            put_operation(out, operation, field, argument);
        })
    }

    /// A call with the key as its argument; answered by one value, whatever it is.
    pub fn call(function: &str) -> Self {
        Self::binary(request_type::CALL, Expect::Value, |out, holes| {
            encode_map(out, 2);
            encode_uint(out, key::FUNCTION_NAME);
            encode_str(out, function.as_bytes());
            encode_uint(out, key::TUPLE);
            encode_array(out, 1);
            put_hole(out, holes, What::Key);
        })
    }
}

/// Requests of the text protocols. Values begin with the key, so that an answer can be told from one to another request.
impl Template {
    fn text(expect: Expect, parts: &[Part<'_>]) -> Self {
        let (mut bytes, mut holes) = (Vec::new(), Vec::new());
        let mut put_key = |bytes: &mut Vec<u8>| {
            bytes.push(TEXT_PREFIX);
            holes.push(Hole { offset: bytes.len(), form: Form::Decimal, what: What::Key });
            bytes.extend_from_slice(&[b'0'; DIGITS]);
        };
        for part in parts {
            match part {
                Part::Text(text) => bytes.extend_from_slice(text.as_bytes()),
                Part::Key => put_key(&mut bytes),
                Part::Value(length) => {
                    let end = bytes.len() + length;
                    put_key(&mut bytes);
                    bytes.resize(end, b'x');
                }
            }
        }
        Template { bytes, holes, sync_offset: None, expect }
    }

    /// Puts a value of so many bytes under a key.
    ///
    /// # Panics
    /// With a length that has no room for the key, and with the binary protocol, which has no such request.
    pub fn set(door: Door, value_bytes: usize) -> Self {
        assert!(value_bytes > DIGITS, "a value begins with its key");
        let length = value_bytes.to_string();
        match door {
            Door::Resp => {
                let head = format!("*3\r\n$3\r\nSET\r\n${}\r\n", DIGITS + 1);
                let middle = format!("\r\n${length}\r\n");
                let parts =
                    [Part::Text(&head), Part::Key, Part::Text(&middle), Part::Value(value_bytes), Part::Text("\r\n")];
                Self::text(Expect::Nothing, &parts)
            }
            Door::Memcached => {
                let middle = format!(" 0 0 {length}\r\n");
                let parts =
                    [Part::Text("set "), Part::Key, Part::Text(&middle), Part::Value(value_bytes), Part::Text("\r\n")];
                Self::text(Expect::Nothing, &parts)
            }
            Door::Iproto => panic!("the binary protocol has rows: use `replace`"),
        }
    }

    /// The value of a key.
    ///
    /// # Panics
    /// With the binary protocol.
    pub fn get(door: Door) -> Self {
        match door {
            Door::Resp => {
                let head = format!("*2\r\n$3\r\nGET\r\n${}\r\n", DIGITS + 1);
                Self::text(Expect::Row, &[Part::Text(&head), Part::Key, Part::Text("\r\n")])
            }
            Door::Memcached => Self::text(Expect::Row, &[Part::Text("get "), Part::Key, Part::Text("\r\n")]),
            Door::Iproto => panic!("the binary protocol has rows: use `select`"),
        }
    }
}

/// A piece of a request of a text protocol.
enum Part<'a> {
    Text(&'a str),
    Key,
    /// The key and something up to this length.
    Value(usize),
}

/// Writes a number with leading zeros.
#[inline]
pub(crate) fn put_decimal(out: &mut [u8; DIGITS], mut number: u32) {
    for digit in out.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// True if the bytes begin as a value of the key does.
#[inline]
pub(crate) fn is_value_of(value: &[u8], key: u32) -> bool {
    let mut digits = [0; DIGITS];
    put_decimal(&mut digits, key);
    value.first() == Some(&TEXT_PREFIX) && value.get(1..=DIGITS) == Some(&digits)
}

impl Template {
    /// Appends the request for a key.
    #[inline]
    pub fn put(&self, out: &mut Vec<u8>, sync: u32, key: u32) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let request = &mut out[start..];
        if let Some(offset) = self.sync_offset {
            request[offset..offset + 4].copy_from_slice(&sync.to_be_bytes());
        }
        for hole in &self.holes {
            let value = match hole.what {
                What::Key if self.sync_offset.is_some() => key.wrapping_add(FIRST_KEY),
                What::Key => key,
                What::Number(position) | What::Letters(position) => number(key, position),
            };
            match hole.form {
                Form::Binary => request[hole.offset..hole.offset + 4].copy_from_slice(&value.to_be_bytes()),
                Form::Letters => {
                    let letters = (value & 0x3f3f_3f3f) + 0x3030_3030;
                    request[hole.offset..hole.offset + 4].copy_from_slice(&letters.to_be_bytes());
                }
                Form::Decimal => {
                    let digits =
                        request[hole.offset..].first_chunk_mut().expect("the template has room for the digits");
                    put_decimal(digits, value);
                }
            }
        }
    }

    /// Bytes of each request.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Never true: a request has a head.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use crate::value::Value;
    use tuple::msgpack;

    /// Kind, sync and body of a request.
    fn decoded(template: &Template, sync: u32, key: u32) -> (u64, u64, Value) {
        let mut out = vec![0xff];
        template.put(&mut out, sync, key);
        assert_eq!(out.len(), template.len() + 1);
        assert_eq!(out[1..6], [&[0xce][..], &(template.len() as u32 - 5).to_be_bytes()].concat());
        let (header, body) = out[6..].split_at(msgpack::check(&out[6..]).unwrap());
        let (header, body) = (Value::decode(header).unwrap(), Value::decode(body).unwrap());
        let number = |key| header.clone().field(key).unwrap().unsigned().unwrap();
        (number(0), number(1), body)
    }

    fn integers(values: &[u32]) -> Vec<Value> {
        values.iter().map(|value| Value::Int(i128::from(*value))).collect()
    }

    #[test]
    fn a_replace_takes_sync_and_key() {
        let (kind, sync, body) = decoded(&Template::replace(512, Row::text(2)), 5, 70_000);
        assert_eq!((kind, sync), (3, 5));
        assert_eq!(body.clone().field(key::SPACE_ID), Some(Value::Int(512)));
        assert_eq!(body.field(key::TUPLE), Some(Value::Array(vec![Value::Int(135_536), Value::Str("xx".into())])));
    }

    #[test]
    fn rows_have_a_number_for_each_secondary_index() {
        let row = Row { numbers: 2, text_bytes: None, letters: 0 };
        let (kind, _, body) = decoded(&Template::insert(1, row), 0, 9);
        let expected = integers(&[FIRST_KEY + 9, number(9, 1), number(9, 2)]);
        assert_eq!((kind, body.field(key::TUPLE)), (2, Some(Value::Array(expected))));
        let (_, _, body) = decoded(&Template::select_by_number(1, 2), 0, 9);
        assert_eq!(body.clone().field(key::KEY), Some(Value::Array(integers(&[number(9, 2)]))));
        assert_eq!(body.field(key::INDEX_ID), Some(Value::Int(2)));
    }

    #[test]
    fn letters_differ_from_row_to_row() {
        let text = |key| match decoded(&Template::replace(1, Row { letters: 10, ..Row::text(12) }), 0, key)
            .2
            .field(key::TUPLE)
        {
            Some(Value::Array(fields)) => fields[1].clone(),
            other => panic!("{other:?}"),
        };
        let texts = [text(1), text(2)].map(|text| match text {
            Value::Str(text) => text,
            other => panic!("{other:?}"),
        });
        assert!(
            texts[0] != texts[1] && texts.iter().all(|text| text.len() == 12 && text.ends_with("xxxx")),
            "{texts:?}"
        );
        assert!(texts.iter().all(|text| text.is_ascii() && !text[..8].contains("xxxx")), "{texts:?}");
    }

    #[test]
    fn requests_by_key_name_one_row() {
        let one = Some(Value::Array(integers(&[FIRST_KEY + 9])));
        let (kind, _, body) = decoded(&Template::select(512), 0, 9);
        assert_eq!((kind, body.clone().field(key::KEY), body.field(key::LIMIT)), (1, one.clone(), Some(Value::Int(1))));
        let (kind, _, body) = decoded(&Template::delete(512), 0, 9);
        assert_eq!((kind, body.field(key::KEY)), (5, one.clone()));
        let operation = Value::Array(vec![Value::Str("+".into()), Value::Int(1), Value::Int(300)]);
        let (kind, _, body) = decoded(&Template::update(512, "+", 1, 300), 0, 9);
        assert_eq!((kind, body.clone().field(key::KEY)), (4, one.clone()));
        assert_eq!(body.field(key::TUPLE), Some(Value::Array(vec![operation.clone()])));
        let row = Row { numbers: 0, text_bytes: None, letters: 0 };
        let (kind, _, body) = decoded(&Template::upsert(512, row, "+", 1, 300), 0, 9);
        assert_eq!((kind, body.clone().field(key::TUPLE)), (9, one.clone()));
        assert_eq!(body.field(key::OPS), Some(Value::Array(vec![operation])));
        let (kind, _, body) = decoded(&Template::call("f"), 0, 9);
        assert_eq!((kind, body.clone().field(key::TUPLE)), (10, one));
        assert_eq!(body.field(key::FUNCTION_NAME), Some(Value::Str("f".into())));
    }

    fn text(template: &Template, key: u32) -> String {
        let mut out = Vec::new();
        template.put(&mut out, 0, key);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn text_requests_are_as_their_protocols_want_them() {
        let value = "k0000000042x";
        assert_eq!(
            text(&Template::set(Door::Resp, 12), 42),
            format!("*3\r\n$3\r\nSET\r\n$11\r\nk0000000042\r\n$12\r\n{value}\r\n")
        );
        assert_eq!(text(&Template::get(Door::Resp), u32::MAX), "*2\r\n$3\r\nGET\r\n$11\r\nk4294967295\r\n");
        assert_eq!(text(&Template::set(Door::Memcached, 12), 42), format!("set k0000000042 0 0 12\r\n{value}\r\n"));
        assert_eq!(text(&Template::get(Door::Memcached), 7), "get k0000000007\r\n");
        assert!(is_value_of(value.as_bytes(), 42) && !is_value_of(value.as_bytes(), 43) && !is_value_of(b"k", 42));
    }
}
