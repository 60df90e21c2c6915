//! MessagePack: checking, reading and writing.
//!
//! Source of the format: the MessagePack specification; extension types 1 to 7 as Tarantool defines them.

use crate::datetime::{Datetime, Interval};
use crate::decimal::Decimal;

pub use crate::text::format_value;

/// How deep arrays and maps may nest.
pub const DEPTH_MAX: usize = 128;
/// Extension type of decimals.
pub const EXT_DECIMAL: i8 = 1;
/// Extension type of uuids.
pub const EXT_UUID: i8 = 2;
/// Extension type of error objects.
pub const EXT_ERROR: i8 = 3;
/// Extension type of moments.
pub const EXT_DATETIME: i8 = 4;
/// Extension type of differences of moments.
pub const EXT_INTERVAL: i8 = 6;

/// The kind of a value, by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the specification's words")]
pub enum Kind {
    Nil,
    Bool,
    /// An integer that is not negative.
    Uint,
    /// A negative integer.
    Int,
    Float,
    Double,
    Str,
    Bin,
    Array,
    Map,
    Ext,
}

/// What is wrong with some bytes, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {offset}")]
pub struct MsgpackError {
    /// Bytes from the start of what was read.
    pub offset: usize,
    /// In words.
    pub what: &'static str,
}

/// A value's header: its kind, the length of the header, and how much follows.
#[derive(Clone, Copy)]
struct Header {
    kind: Kind,
    /// Bytes before the payload, the ext type included.
    size: usize,
    /// Payload bytes, or elements of a container (pairs of a map counted twice).
    length: usize,
}

#[inline]
fn be(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let slice = bytes.get(at..at + width)?;
    let mut value = 0;
    for &byte in slice {
        value = value << 8 | u64::from(byte);
    }
    Some(value)
}

#[inline]
fn header(bytes: &[u8]) -> Option<Header> {
    let first = *bytes.first()?;
    let plain = |kind, length| Some(Header { kind, size: 1, length });
    let sized = |kind, width: usize, factor: usize| {
        let length = be(bytes, 1, width)? as usize;
        Some(Header { kind, size: 1 + width, length: length * factor })
    };
    match first {
        0x00..=0x7f => plain(Kind::Uint, 0),
        0x80..=0x8f => plain(Kind::Map, 2 * usize::from(first & 0x0f)),
        0x90..=0x9f => plain(Kind::Array, usize::from(first & 0x0f)),
        0xa0..=0xbf => plain(Kind::Str, usize::from(first & 0x1f)),
        0xc0 => plain(Kind::Nil, 0),
        0xc1 => None,
        0xc2 | 0xc3 => plain(Kind::Bool, 0),
        0xc4..=0xc6 => sized(Kind::Bin, 1 << (first - 0xc4), 1),
        0xc7..=0xc9 => {
            let width = 1 << (first - 0xc7);
            let length = be(bytes, 1, width)? as usize;
            Some(Header { kind: Kind::Ext, size: 2 + width, length })
        }
        0xca => plain(Kind::Float, 4),
        0xcb => plain(Kind::Double, 8),
        0xcc..=0xcf => plain(Kind::Uint, 1 << (first - 0xcc)),
        0xd0..=0xd3 => {
            let width = 1usize << (first - 0xd0);
            // Positive numbers may come in a signed form.
            let top = *bytes.get(1)?;
            plain(if top & 0x80 == 0 { Kind::Uint } else { Kind::Int }, width)
        }
        0xd4..=0xd8 => Some(Header { kind: Kind::Ext, size: 2, length: 1 << (first - 0xd4) }),
        0xd9..=0xdb => sized(Kind::Str, 1 << (first - 0xd9), 1),
        0xdc | 0xdd => sized(Kind::Array, 2 << (first - 0xdc), 1),
        0xde | 0xdf => sized(Kind::Map, 2 << (first - 0xde), 2),
        0xe0..=0xff => plain(Kind::Int, 0),
    }
}

/// Checks one value, nested ones and known extensions included, and returns its length in bytes. Trailing bytes are allowed.
///
/// Errors: the first thing that is wrong.
pub fn check(bytes: &[u8]) -> Result<usize, MsgpackError> {
    // Most values are scalars or short flat arrays.
    if let Some(length) = check_flat(bytes) {
        return Ok(length);
    }
    let mut at = 0;
    // Elements still to come on each level.
    let mut levels = [0u32; DEPTH_MAX];
    let mut depth = 0;
    loop {
        let start = at;
        let fail = |what| Err(MsgpackError { offset: start, what });
        let Some(header) = header(&bytes[at..]) else {
            return fail(if bytes.get(at) == Some(&0xc1) { "reserved byte 0xc1" } else { "truncated value" });
        };
        let left = bytes.len() - at;
        if header.size > left {
            return fail("truncated value");
        }
        match header.kind {
            Kind::Array | Kind::Map => {
                // Every element takes at least a byte: a length that lies is found before it costs anything.
                if header.length > left - header.size {
                    return fail("length is beyond the data");
                }
                at += header.size;
                if header.length > 0 {
                    if depth == DEPTH_MAX {
                        return fail("nesting is too deep");
                    }
                    levels[depth] = header.length as u32;
                    depth += 1;
                    continue;
                }
            }
            _ => {
                if header.length > left - header.size {
                    return fail("truncated value");
                }
                let end = at + header.size + header.length;
                if header.kind == Kind::Ext {
                    let body = &bytes[at + header.size..end];
                    match bytes[at + header.size - 1] as i8 {
                        EXT_DECIMAL if Decimal::decode(body).is_none() => return fail("malformed decimal"),
                        EXT_UUID if body.len() != 16 => return fail("malformed uuid"),
                        EXT_DATETIME if Datetime::decode(body).is_none() => return fail("malformed datetime"),
                        EXT_INTERVAL if Interval::decode(body).is_none() => return fail("malformed interval"),
                        _ => {}
                    }
                }
                at = end;
            }
        }
        loop {
            if depth == 0 {
                return Ok(at);
            }
            levels[depth - 1] -= 1;
            if levels[depth - 1] > 0 {
                break;
            }
            depth -= 1;
        }
    }
}

/// Lengths of the values that their first byte tells the length of; 0 for the others.
const PLAIN_BYTES: [u8; 256] = {
    let mut table = [0; 256];
    let mut first = 0;
    while first < 256 {
        table[first] = match first {
            0x00..=0x7f | 0xc0 | 0xc2 | 0xc3 | 0xe0..=0xff => 1,
            0xa0..=0xbf => 1 + (first & 0x1f) as u8,
            0xcc | 0xd0 => 2,
            0xcd | 0xd1 => 3,
            0xca | 0xce | 0xd2 => 5,
            0xcb | 0xcf | 0xd3 => 9,
            _ => 0,
        };
        first += 1;
    }
    table
};

/// The length of a value that is plain or a short array of plain values, if it is whole. Anything else is `None`, good or not.
fn check_flat(bytes: &[u8]) -> Option<usize> {
    let first = *bytes.first()?;
    let (mut at, count) = match first {
        0x90..=0x9f => (1, usize::from(first & 0x0f)),
        _ => (0, 1),
    };
    for _ in 0..count {
        let first = *bytes.get(at)?;
        at += match PLAIN_BYTES[usize::from(first)] {
            // Strings and binaries of up to 255 bytes.
            0 if matches!(first, 0xd9 | 0xc4) => 2 + usize::from(*bytes.get(at + 1)?),
            0 => return None,
            length => usize::from(length),
        }
    }
    (at <= bytes.len()).then_some(at)
}

/// Length in bytes of the first value of checked bytes. On malformed bytes the result is some length within them.
#[inline]
pub fn skip(bytes: &[u8]) -> usize {
    match bytes.first() {
        None => return 0,
        Some(&first) => match PLAIN_BYTES[usize::from(first)] {
            0 => {}
            length => return usize::from(length).min(bytes.len()),
        },
    }
    check_flat(bytes).unwrap_or_else(|| skip_nested(bytes))
}

fn skip_nested(bytes: &[u8]) -> usize {
    let mut at = 0;
    let mut left = 1usize;
    while left > 0 {
        let Some(header) = bytes.get(at..).and_then(header) else {
            return bytes.len();
        };
        left -= 1;
        at += header.size;
        match header.kind {
            Kind::Array | Kind::Map => left += header.length,
            _ => at += header.length,
        }
    }
    at.min(bytes.len())
}

/// Reads values one after the other. Works on any bytes: every method may fail and none panics.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

type Read<T> = Result<T, MsgpackError>;

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub fn position(&self) -> usize {
        self.at
    }

    /// What was not read yet.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// True at the end.
    pub fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    fn fail<T>(&self, what: &'static str) -> Read<T> {
        Err(MsgpackError { offset: self.at, what })
    }

    fn header(&self) -> Read<Header> {
        match header(self.rest()) {
            Some(header) if header.size <= self.rest().len() => Ok(header),
            _ => self.fail("truncated value"),
        }
    }

    /// Kind of the next value.
    pub fn kind(&self) -> Read<Kind> {
        self.header().map(|header| header.kind)
    }

    fn payload(&mut self, header: Header) -> Read<&'a [u8]> {
        let start = self.at + header.size;
        match self.bytes.get(start..start + header.length) {
            Some(payload) => {
                self.at = start + header.length;
                Ok(payload)
            }
            None => self.fail("truncated value"),
        }
    }

    fn expect(&mut self, kind: Kind, what: &'static str) -> Read<&'a [u8]> {
        let header = self.header()?;
        if header.kind != kind {
            return self.fail(what);
        }
        self.payload(header)
    }

    /// nil.
    pub fn read_nil(&mut self) -> Read<()> {
        self.expect(Kind::Nil, "nil is expected").map(|_| ())
    }

    /// A boolean.
    pub fn read_bool(&mut self) -> Read<bool> {
        let first = self.bytes.get(self.at).copied();
        self.expect(Kind::Bool, "a boolean is expected").map(|_| first == Some(0xc3))
    }

    /// An integer that is not negative.
    #[inline]
    pub fn read_uint(&mut self) -> Read<u64> {
        // The usual forms first.
        let rest = &self.bytes[self.at.min(self.bytes.len())..];
        match rest {
            [first @ 0..=0x7f, ..] => {
                self.at += 1;
                return Ok(u64::from(*first));
            }
            [0xcc, value, ..] => {
                self.at += 2;
                return Ok(u64::from(*value));
            }
            [0xcd, a, b, ..] => {
                self.at += 3;
                return Ok(u64::from(u16::from_be_bytes([*a, *b])));
            }
            [0xce, a, b, c, d, ..] => {
                self.at += 5;
                return Ok(u64::from(u32::from_be_bytes([*a, *b, *c, *d])));
            }
            [0xcf, bytes @ ..] => {
                if let Some(bytes) = bytes.first_chunk() {
                    self.at += 9;
                    return Ok(u64::from_be_bytes(*bytes));
                }
            }
            _ => {}
        }
        self.read_uint_slowly()
    }

    fn read_uint_slowly(&mut self) -> Read<u64> {
        let header = self.header()?;
        if header.kind != Kind::Uint {
            return self.fail("an unsigned integer is expected");
        }
        let first = self.bytes[self.at];
        let payload = self.payload(header)?;
        Ok(if payload.is_empty() { u64::from(first) } else { be(payload, 0, payload.len()).unwrap_or(0) })
    }

    /// Any integer.
    pub fn read_i128(&mut self) -> Read<i128> {
        let header = self.header()?;
        match header.kind {
            Kind::Uint => self.read_uint().map(i128::from),
            Kind::Int => {
                let first = self.bytes[self.at];
                let payload = self.payload(header)?;
                if payload.is_empty() {
                    return Ok(i128::from(first as i8));
                }
                let raw = be(payload, 0, payload.len()).unwrap_or(0);
                let shift = 64 - 8 * payload.len() as u32;
                Ok(i128::from((raw << shift) as i64 >> shift))
            }
            _ => self.fail("an integer is expected"),
        }
    }

    /// An integer that fits 64 signed bits.
    pub fn read_int(&mut self) -> Read<i64> {
        let before = *self;
        let value = self.read_i128()?;
        i64::try_from(value).or_else(|_| before.fail("the integer is too large"))
    }

    /// A float or a double.
    pub fn read_double(&mut self) -> Read<f64> {
        let header = self.header()?;
        match header.kind {
            Kind::Float => {
                let payload = self.payload(header)?;
                Ok(f64::from(f32::from_bits(be(payload, 0, 4).unwrap_or(0) as u32)))
            }
            Kind::Double => {
                let payload = self.payload(header)?;
                Ok(f64::from_bits(be(payload, 0, 8).unwrap_or(0)))
            }
            _ => self.fail("a floating point number is expected"),
        }
    }

    /// A string; the bytes need not be UTF-8.
    #[inline]
    pub fn read_str(&mut self) -> Read<&'a [u8]> {
        // The usual forms first.
        let (head, length) = match &self.bytes[self.at.min(self.bytes.len())..] {
            [first @ 0xa0..=0xbf, ..] => (1, usize::from(first & 0x1f)),
            [0xd9, length, ..] => (2, usize::from(*length)),
            _ => return self.read_long_str(),
        };
        let begin = self.at + head;
        match self.bytes.get(begin..begin + length) {
            Some(text) => {
                self.at = begin + length;
                Ok(text)
            }
            None => self.read_long_str(),
        }
    }

    fn read_long_str(&mut self) -> Read<&'a [u8]> {
        self.expect(Kind::Str, "a string is expected")
    }

    /// A binary string.
    pub fn read_bin(&mut self) -> Read<&'a [u8]> {
        self.expect(Kind::Bin, "a binary string is expected")
    }

    /// A string of either kind.
    pub fn read_str_or_bin(&mut self) -> Read<&'a [u8]> {
        match self.kind()? {
            Kind::Bin => self.read_bin(),
            _ => self.read_str(),
        }
    }

    /// Header of an array: the number of elements that follow.
    pub fn read_array(&mut self) -> Read<u32> {
        if let Some(first @ 0x90..=0x9f) = self.bytes.get(self.at) {
            self.at += 1;
            return Ok(u32::from(first & 0x0f));
        }
        let header = self.header()?;
        if header.kind != Kind::Array {
            return self.fail("an array is expected");
        }
        self.at += header.size;
        Ok(header.length as u32)
    }

    /// Header of a map: the number of pairs that follow.
    pub fn read_map(&mut self) -> Read<u32> {
        if let Some(first @ 0x80..=0x8f) = self.bytes.get(self.at) {
            self.at += 1;
            return Ok(u32::from(first & 0x0f));
        }
        let header = self.header()?;
        if header.kind != Kind::Map {
            return self.fail("a map is expected");
        }
        self.at += header.size;
        Ok((header.length / 2) as u32)
    }

    /// An extension: its type and body.
    pub fn read_ext(&mut self) -> Read<(i8, &'a [u8])> {
        let header = self.header()?;
        if header.kind != Kind::Ext {
            return self.fail("an extension is expected");
        }
        let kind = self.bytes[self.at + header.size - 1] as i8;
        self.payload(header).map(|body| (kind, body))
    }

    /// The raw bytes of the next value, checked.
    pub fn read_value(&mut self) -> Read<&'a [u8]> {
        let rest = self.rest();
        match check(rest) {
            Ok(length) => {
                self.at += length;
                Ok(&rest[..length])
            }
            Err(error) => Err(MsgpackError { offset: self.at + error.offset, ..error }),
        }
    }

    /// Passes over so many bytes; at most to the end.
    #[inline]
    pub(crate) fn pass(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.bytes.len());
    }

    /// Passes over the next value of bytes that were checked before.
    #[inline]
    pub fn skip_checked(&mut self) {
        self.at += skip(self.rest());
    }
}

/// Writes nil.
pub fn encode_nil(out: &mut Vec<u8>) {
    out.push(0xc0);
}

/// Writes a boolean.
pub fn encode_bool(out: &mut Vec<u8>, value: bool) {
    out.push(if value { 0xc3 } else { 0xc2 });
}

/// Writes an integer in the shortest form.
pub fn encode_uint(out: &mut Vec<u8>, value: u64) {
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

/// Writes an integer in the shortest form.
pub fn encode_int(out: &mut Vec<u8>, value: i64) {
    match value {
        0.. => encode_uint(out, value as u64),
        -0x20..=-1 => out.push(value as u8),
        -0x80..=-0x21 => out.extend_from_slice(&[0xd0, value as u8]),
        -0x8000..=-0x81 => {
            out.push(0xd1);
            out.extend_from_slice(&(value as i16).to_be_bytes());
        }
        -0x8000_0000..=-0x8001 => {
            out.push(0xd2);
            out.extend_from_slice(&(value as i32).to_be_bytes());
        }
        _ => {
            out.push(0xd3);
            out.extend_from_slice(&value.to_be_bytes());
        }
    }
}

/// Writes a double.
pub fn encode_f64(out: &mut Vec<u8>, value: f64) {
    out.push(0xcb);
    out.extend_from_slice(&value.to_bits().to_be_bytes());
}

/// Writes a float.
pub fn encode_f32(out: &mut Vec<u8>, value: f32) {
    out.push(0xca);
    out.extend_from_slice(&value.to_bits().to_be_bytes());
}

/// Writes a string.
pub fn encode_str(out: &mut Vec<u8>, value: &[u8]) {
    match value.len() {
        length @ 0..=31 => out.push(0xa0 | length as u8),
        length @ 32..=0xff => out.extend_from_slice(&[0xd9, length as u8]),
        length => encode_length(out, 0xda, length),
    }
    out.extend_from_slice(value);
}

/// Writes a binary string.
pub fn encode_bin(out: &mut Vec<u8>, value: &[u8]) {
    match value.len() {
        length @ 0..=0xff => out.extend_from_slice(&[0xc4, length as u8]),
        length => encode_length(out, 0xc5, length),
    }
    out.extend_from_slice(value);
}

/// A 16-bit length behind `first`, or a 32-bit one behind `first + 1`.
fn encode_length(out: &mut Vec<u8>, first: u8, length: usize) {
    match u16::try_from(length) {
        Ok(length) => {
            out.push(first);
            out.extend_from_slice(&length.to_be_bytes());
        }
        Err(_) => {
            out.push(first + 1);
            out.extend_from_slice(&(length as u32).to_be_bytes());
        }
    }
}

/// Writes the header of an array.
pub fn encode_array(out: &mut Vec<u8>, length: u32) {
    match length {
        0..=15 => out.push(0x90 | length as u8),
        _ => encode_length(out, 0xdc, length as usize),
    }
}

/// Writes the header of a map of `length` pairs.
pub fn encode_map(out: &mut Vec<u8>, length: u32) {
    match length {
        0..=15 => out.push(0x80 | length as u8),
        _ => encode_length(out, 0xde, length as usize),
    }
}

/// Writes an extension.
pub fn encode_ext(out: &mut Vec<u8>, kind: i8, body: &[u8]) {
    match body.len() {
        1 => out.push(0xd4),
        2 => out.push(0xd5),
        4 => out.push(0xd6),
        8 => out.push(0xd7),
        16 => out.push(0xd8),
        length @ 0..=0xff => out.extend_from_slice(&[0xc7, length as u8]),
        length => encode_length(out, 0xc8, length),
    }
    out.push(kind as u8);
    out.extend_from_slice(body);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(length) = check(&bytes) {
                prop_assert_eq!(skip(&bytes), length);
                let mut text = String::new();
                format_value(&bytes[..length], &mut text);
            }
            let mut reader = Reader::new(&bytes);
            let _ = reader.read_uint();
            let _ = reader.read_i128();
            let _ = reader.read_double();
            let _ = reader.read_str();
            let _ = reader.read_array();
            let _ = reader.read_map();
            let _ = reader.read_ext();
            let _ = reader.read_value();
            skip(&bytes);
        }

        #[test]
        fn integers_come_back(value in any::<i64>(), unsigned in any::<u64>()) {
            let mut out = Vec::new();
            encode_int(&mut out, value);
            encode_uint(&mut out, unsigned);
            prop_assert_eq!(check(&out).map(|n| n < out.len()), Ok(true));
            let mut reader = Reader::new(&out);
            prop_assert_eq!(reader.read_i128(), Ok(i128::from(value)));
            prop_assert_eq!(reader.read_uint(), Ok(unsigned));
            prop_assert!(reader.is_empty());
        }
    }

    #[test]
    fn a_length_that_lies_is_found() {
        assert!(check(&[0xdd, 0xff, 0xff, 0xff, 0xff, 1]).is_err());
        assert!(check(&[0xdb, 0xff, 0xff, 0xff, 0xff, 1]).is_err());
        let deep = vec![0x91; 1000];
        assert_eq!(check(&deep).map_err(|error| error.what), Err("nesting is too deep"));
    }
}
