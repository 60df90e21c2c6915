//! The bytes of the binary protocol, as far as the workloads need them: requests into a buffer, answers out of one.
//!
//! The client shares two cores with the server it measures, so the usual answer is recognised by its fixed first bytes; anything else that is
//! well formed is decoded the long way. Layouts: the project's notes on compatibility, C1 and C2.

use std::fmt;

/// Longest packet that is believed: a length beyond it is a broken stream, not a reason to allocate.
const PACKET_BYTES_MAX: usize = 1 << 28;
/// Deepest nesting that is believed.
const DEPTH_MAX: usize = 64;
/// Bytes of the length in front of every packet that servers send.
const LENGTH_BYTES: usize = 5;

/// Where `put_packet` puts the sync, counted from the packet's first byte.
pub(crate) const SYNC_OFFSET: usize = 10;

/// Kinds of requests, by the protocol's names.
pub(crate) mod request {
    pub(crate) const SELECT: u8 = 1;
    pub(crate) const INSERT: u8 = 2;
    pub(crate) const REPLACE: u8 = 3;
    pub(crate) const UPDATE: u8 = 4;
    pub(crate) const DELETE: u8 = 5;
    pub(crate) const AUTH: u8 = 7;
    pub(crate) const EVAL: u8 = 8;
    pub(crate) const UPSERT: u8 = 9;
    pub(crate) const CALL: u8 = 10;
    pub(crate) const PING: u8 = 64;
}

/// Keys of bodies, by the protocol's names. All are one byte of msgpack.
pub(crate) mod key {
    pub(crate) const SPACE_ID: u8 = 0x10;
    pub(crate) const INDEX_ID: u8 = 0x11;
    pub(crate) const LIMIT: u8 = 0x12;
    pub(crate) const ITERATOR: u8 = 0x14;
    pub(crate) const KEY: u8 = 0x20;
    pub(crate) const TUPLE: u8 = 0x21;
    pub(crate) const FUNCTION_NAME: u8 = 0x22;
    pub(crate) const USER_NAME: u8 = 0x23;
    pub(crate) const EXPRESSION: u8 = 0x27;
    pub(crate) const OPERATIONS: u8 = 0x28;
    pub(crate) const DATA: u8 = 0x30;
    pub(crate) const ERROR: u8 = 0x31;
}

/// Bytes that are no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server sent bytes that are no answer")
    }
}

/// A decoded value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Nil,
    /// True or false.
    Bool(bool),
    /// Wide enough for all signed and unsigned numbers.
    Int(i128),
    /// A floating-point number.
    Double(f64),
    /// Text or binary; bytes that are no UTF-8 are replaced, for they are only shown.
    Str(String),
    /// Values in a row.
    Array(Vec<Value>),
    /// Names and values.
    Map(Vec<(Value, Value)>),
    /// A value of an extension, not looked into.
    Extension(i8, Vec<u8>),
}

impl Value {
    /// The number, if it is one from 0 up.
    pub fn unsigned(&self) -> Option<u64> {
        match self {
            Value::Int(value) => u64::try_from(*value).ok(),
            _ => None,
        }
    }

    /// The elements; none if this is no array.
    pub fn array(&self) -> &[Value] {
        match self {
            Value::Array(values) => values,
            _ => &[],
        }
    }

    /// The value of a numeric key, out of a map.
    pub fn field(self, key: u8) -> Option<Value> {
        match self {
            Value::Map(fields) => {
                fields.into_iter().find(|(name, _)| *name == Value::Int(i128::from(key))).map(|(_, value)| value)
            }
            _ => None,
        }
    }
}

pub(crate) fn put_uint(out: &mut Vec<u8>, value: u64) {
    match value {
        0..=0x7f => out.push(value as u8),
        0x80..=0xff => out.extend_from_slice(&[0xcc, value as u8]),
        0x100..=0xffff => {
            out.push(0xcd);
            out.extend_from_slice(&(value as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            out.push(0xce);
            out.extend_from_slice(&(value as u32).to_be_bytes());
        }
        _ => {
            out.push(0xcf);
            out.extend_from_slice(&value.to_be_bytes());
        }
    }
}

/// Appends a string, or bytes that a string may hold.
pub(crate) fn put_str(out: &mut Vec<u8>, text: &[u8]) {
    match text.len() {
        length @ 0..=31 => out.push(0xa0 | length as u8),
        length @ 32..=0xff => out.extend_from_slice(&[0xd9, length as u8]),
        length @ 0x100..=0xffff => {
            out.push(0xda);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            out.push(0xdb);
            out.extend_from_slice(&(length as u32).to_be_bytes());
        }
    }
    out.extend_from_slice(text);
}

/// Appends the head of an array of a few elements.
pub(crate) fn put_array(out: &mut Vec<u8>, count: usize) {
    assert!(count < 16, "requests of the workloads are short");
    out.push(0x90 | count as u8);
}

/// Appends a packet: the header with a sync, then what `body` appends.
pub(crate) fn put_packet(out: &mut Vec<u8>, kind: u8, sync: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0xce, 0, 0, 0, 0, 0x82, 0x00, kind, 0x01, 0xce]);
    debug_assert_eq!(out.len() - start, SYNC_OFFSET);
    out.extend_from_slice(&sync.to_be_bytes());
    body(out);
    let length = (out.len() - start - LENGTH_BYTES) as u32;
    out[start + 1..start + LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
}

/// Appends a call with unsigned arguments.
pub(crate) fn put_call(out: &mut Vec<u8>, sync: u32, name: &str, arguments: &[u64]) {
    put_packet(out, request::CALL, sync, |out| {
        out.extend_from_slice(&[0x82, key::FUNCTION_NAME]);
        put_str(out, name.as_bytes());
        out.push(key::TUPLE);
        put_array(out, arguments.len());
        arguments.iter().for_each(|argument| put_uint(out, *argument));
    });
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (head, tail) = bytes.split_at_checked(count)?;
    *bytes = tail;
    Some(head)
}

fn take_number(bytes: &mut &[u8], width: usize) -> Option<u64> {
    Some(take(bytes, width)?.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

fn take_str(bytes: &mut &[u8], length: usize) -> Option<Value> {
    Some(Value::Str(String::from_utf8_lossy(take(bytes, length)?).into_owned()))
}

fn take_array(bytes: &mut &[u8], count: usize, depth: usize) -> Option<Value> {
    // Collecting into an Option does not reserve for `count`, so a false count cannot exhaust memory.
    (0..count).map(|_| take_nested(bytes, depth)).collect::<Option<_>>().map(Value::Array)
}

fn take_map(bytes: &mut &[u8], count: usize, depth: usize) -> Option<Value> {
    let entry = |bytes: &mut &[u8]| Some((take_nested(bytes, depth)?, take_nested(bytes, depth)?));
    (0..count).map(|_| entry(bytes)).collect::<Option<_>>().map(Value::Map)
}

fn take_extension(bytes: &mut &[u8], length: usize) -> Option<Value> {
    let kind = take(bytes, 1)?[0] as i8;
    Some(Value::Extension(kind, take(bytes, length)?.to_vec()))
}

/// Reads one value. `None`: the bytes end too early, or are no msgpack.
pub(crate) fn take_value(bytes: &mut &[u8]) -> Option<Value> {
    take_nested(bytes, 0)
}

fn take_nested(bytes: &mut &[u8], depth: usize) -> Option<Value> {
    if depth > DEPTH_MAX {
        return None;
    }
    let depth = depth + 1;
    let first = take(bytes, 1)?[0];
    // Lengths of 1, 2 and 4 bytes stand in this order in each family.
    let length =
        |bytes: &mut &[u8], family: u8| take_number(bytes, 1 << (first - family)).map(|length| length as usize);
    Some(match first {
        0..=0x7f => Value::Int(i128::from(first)),
        0xe0..=0xff => Value::Int(i128::from(first as i8)),
        0x80..=0x8f => take_map(bytes, usize::from(first & 15), depth)?,
        0x90..=0x9f => take_array(bytes, usize::from(first & 15), depth)?,
        0xa0..=0xbf => take_str(bytes, usize::from(first & 31))?,
        0xc0 => Value::Nil,
        0xc1 => return None,
        0xc2 => Value::Bool(false),
        0xc3 => Value::Bool(true),
        0xc4..=0xc6 => {
            let length = length(bytes, 0xc4)?;
            take_str(bytes, length)?
        }
        0xc7..=0xc9 => {
            let length = length(bytes, 0xc7)?;
            take_extension(bytes, length)?
        }
        0xca => Value::Double(f64::from(f32::from_bits(take_number(bytes, 4)? as u32))),
        0xcb => Value::Double(f64::from_bits(take_number(bytes, 8)?)),
        0xcc..=0xcf => Value::Int(i128::from(take_number(bytes, 1 << (first - 0xcc))?)),
        0xd0 => Value::Int(i128::from(take_number(bytes, 1)? as i8)),
        0xd1 => Value::Int(i128::from(take_number(bytes, 2)? as i16)),
        0xd2 => Value::Int(i128::from(take_number(bytes, 4)? as i32)),
        0xd3 => Value::Int(i128::from(take_number(bytes, 8)? as i64)),
        0xd4..=0xd8 => take_extension(bytes, 1 << (first - 0xd4))?,
        0xd9..=0xdb => {
            let length = length(bytes, 0xd9)?;
            take_str(bytes, length)?
        }
        0xdc | 0xdd => {
            let count = take_number(bytes, if first == 0xdc { 2 } else { 4 })? as usize;
            take_array(bytes, count, depth)?
        }
        0xde | 0xdf => {
            let count = take_number(bytes, if first == 0xde { 2 } else { 4 })? as usize;
            take_map(bytes, count, depth)?
        }
    })
}

/// One answer, borrowed from the buffer it came in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer<'a> {
    /// The code of the error, 0 for success.
    pub(crate) code: u32,
    pub(crate) sync: u64,
    pub(crate) body: &'a [u8],
}

impl Answer<'_> {
    /// The text of an error.
    pub(crate) fn error_text(&self) -> String {
        match take_value(&mut &*self.body).and_then(|body| body.field(key::ERROR)) {
            Some(Value::Str(text)) => text,
            _ => "no text".to_string(),
        }
    }

    /// The list of rows or values.
    pub(crate) fn data(&self) -> Result<Vec<Value>, Malformed> {
        match take_value(&mut &*self.body).ok_or(Malformed)?.field(key::DATA) {
            Some(Value::Array(values)) => Ok(values),
            _ => Err(Malformed),
        }
    }

    /// How many rows or values there are, without decoding them.
    pub(crate) fn data_count(&self) -> Option<usize> {
        match *self.body.get(..7)? {
            [0x81, key::DATA, 0xdd, a, b, c, d] => Some(u32::from_be_bytes([a, b, c, d]) as usize),
            _ => self.data().ok().map(|values| values.len()),
        }
    }
}

/// The first answer of a buffer and the bytes it takes. `None`: it has not arrived whole yet.
pub(crate) fn next_answer(bytes: &[u8]) -> Result<Option<(Answer<'_>, usize)>, Malformed> {
    let Some(head) = bytes.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
    let [0xce, length @ ..] = *head else { return Err(Malformed) };
    let length = u32::from_be_bytes(length) as usize;
    if length > PACKET_BYTES_MAX {
        return Err(Malformed);
    }
    let Some(packet) = bytes.get(LENGTH_BYTES..LENGTH_BYTES + length) else { return Ok(None) };
    let answer = usual_answer(packet).or_else(|| any_answer(packet)).ok_or(Malformed)?;
    Ok(Some((answer, LENGTH_BYTES + length)))
}

/// An answer that begins as both servers begin theirs: `83 00 ce <code> 01 cf <sync> 05 ce|cf <schema version>`.
fn usual_answer(packet: &[u8]) -> Option<Answer<'_>> {
    let head = packet.first_chunk::<19>()?;
    let [0x83, 0x00, 0xce, c0, c1, c2, c3, 0x01, 0xcf, s0, s1, s2, s3, s4, s5, s6, s7, 0x05, width] = *head else {
        return None;
    };
    let body = match width {
        0xce => packet.get(23..)?,
        0xcf => packet.get(27..)?,
        _ => return None,
    };
    let code = u32::from_be_bytes([c0, c1, c2, c3]) & 0x7fff;
    Some(Answer { code, sync: u64::from_be_bytes([s0, s1, s2, s3, s4, s5, s6, s7]), body })
}

/// An answer with any well-formed header.
fn any_answer(packet: &[u8]) -> Option<Answer<'_>> {
    let mut body = packet;
    let header = take_value(&mut body)?;
    let code = header.clone().field(0)?.unsigned()? as u32 & 0x7fff;
    let sync = header.field(1).map_or(Some(0), |sync| sync.unsigned())?;
    Some(Answer { code, sync, body })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    /// An answer as a server sends it.
    fn answer(code: u32, sync: u64, body: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x83, 0x00, 0xce];
        packet.extend_from_slice(&code.to_be_bytes());
        packet.extend_from_slice(&[0x01, 0xcf]);
        packet.extend_from_slice(&sync.to_be_bytes());
        packet.extend_from_slice(&[0x05, 0xce, 0, 0, 0, 80]);
        packet.extend_from_slice(body);
        let mut out = vec![0xce];
        out.extend_from_slice(&(packet.len() as u32).to_be_bytes());
        out.extend_from_slice(&packet);
        out
    }

    #[test]
    fn numbers_and_strings_survive_the_wire_form() {
        let mut out = Vec::new();
        for value in [0u64, 127, 128, 255, 256, 65_535, 65_536, u64::from(u32::MAX), 1 << 40, u64::MAX] {
            out.clear();
            put_uint(&mut out, value);
            assert_eq!(take_value(&mut &out[..]), Some(Value::Int(i128::from(value))));
        }
        for length in [0, 31, 32, 255, 256, 65_535, 65_536] {
            out.clear();
            put_str(&mut out, &vec![b'x'; length]);
            assert_eq!(take_value(&mut &out[..]), Some(Value::Str("x".repeat(length))));
        }
    }

    #[test]
    fn values_of_every_family_are_read() {
        let check = |bytes: &[u8], value: Value| assert_eq!(take_value(&mut &*bytes), Some(value), "{bytes:x?}");
        check(&[0xff], Value::Int(-1));
        check(&[0xd1, 0xff, 0x00], Value::Int(-256));
        check(&[0xcb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0], Value::Double(1.5));
        check(&[0xc4, 1, b'a'], Value::Str("a".into()));
        check(&[0xdc, 0, 1, 0xc0], Value::Array(vec![Value::Nil]));
        check(&[0xde, 0, 1, 0x01, 0xc3], Value::Map(vec![(Value::Int(1), Value::Bool(true))]));
        check(&[0xd4, 0x05, 0x09], Value::Extension(5, vec![9]));
        check(&[0xc7, 2, 0xff, 1, 2], Value::Extension(-1, vec![1, 2]));
    }

    #[test]
    fn a_call_is_encoded_byte_by_byte() {
        let mut out = Vec::new();
        put_call(&mut out, 7, "f", &[1, 200]);
        let expected = [
            0xce, 0, 0, 0, 18, // length
            0x82, 0x00, 10, 0x01, 0xce, 0, 0, 0, 7, // header: CALL, sync 7
            0x82, 0x22, 0xa1, b'f', 0x21, 0x92, 0x01, 0xcc, 200, // body
        ];
        assert_eq!(out, expected);
    }

    #[test]
    fn an_answer_is_found_at_every_split() {
        let mut bytes = answer(0, 9, &[0x81, 0x30, 0xdd, 0, 0, 0, 1, 0x05]);
        let length = bytes.len();
        for end in 0..length {
            assert_eq!(next_answer(&bytes[..end]), Ok(None));
        }
        bytes.extend_from_slice(&[0xce, 0]);
        let (found, used) = next_answer(&bytes).unwrap().unwrap();
        assert_eq!((found.code, found.sync, used, found.data_count()), (0, 9, length, Some(1)));
        assert_eq!(found.data(), Ok(vec![Value::Int(5)]));
    }

    #[test]
    fn an_error_keeps_its_code_and_text() {
        let bytes = answer(0x8000 + 42, 1, &[0x81, 0x31, 0xa2, b'n', b'o']);
        let (found, _) = next_answer(&bytes).unwrap().unwrap();
        assert_eq!((found.code, found.error_text()), (42, "no".to_string()));
    }

    #[test]
    fn an_unusual_header_is_read_the_long_way() {
        // Sync first, small numbers, no schema version.
        let bytes = [0xce, 0, 0, 0, 6, 0x82, 0x01, 0x03, 0x00, 0x00, 0x80];
        let (found, used) = next_answer(&bytes).unwrap().unwrap();
        assert_eq!((found.code, found.sync, found.body, used), (0, 3, &[0x80][..], 11));
    }

    #[test]
    fn bytes_that_are_no_answer_are_refused() {
        assert_eq!(next_answer(b"HTTP/1.1 400"), Err(Malformed));
        assert_eq!(next_answer(&[0xce, 0xff, 0xff, 0xff, 0xff, 0]), Err(Malformed));
        assert_eq!(next_answer(&[0xce, 0, 0, 0, 1, 0xc1]), Err(Malformed));
        assert_eq!(take_value(&mut &[0xdd, 0xff, 0xff, 0xff, 0xff][..]), None);
        assert_eq!(take_value(&mut &[0x91; 10_000][..]), None);
    }
}
