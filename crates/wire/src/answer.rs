//! What a server says to a request: a status, and rows or the stack of an error's causes.
//!
//! A client that loads a server may share its processors, so the usual answer is recognised by its fixed first bytes; anything else that is well
//! formed is decoded the long way.

use crate::framing::{ERROR_FLAG, Header, LENGTH_BYTES, Packet, begin_answer, end_packet, next_packet};
use crate::key;
use tuple::msgpack::{self, Reader};

/// Bytes that are no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the server sent bytes that are no answer")
    }
}

/// One answer, borrowed from the buffer it came in. Of the body nothing is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The number of the error, 0 for success.
    pub code: u32,
    /// Of the request that is answered.
    pub sync: u64,
    /// What the server says: a map.
    pub body: &'a [u8],
}

/// An error, or one of its causes, as the extension of the protocol tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorPart<'a> {
    /// `ClientError` and the like.
    pub kind: &'a str,
    /// In words.
    pub message: &'a str,
    /// Its number.
    pub code: u32,
    /// The file of the program, or of a script, that made it.
    pub file: &'a str,
    /// The line in it.
    pub line: u32,
    /// Named details.
    pub fields: Vec<(&'a str, &'a str)>,
}

/// Keys of an error in the extension.
mod error_key {
    pub(super) const STACK: u64 = 0;
    pub(super) const KIND: u64 = 0;
    pub(super) const FILE: u64 = 1;
    pub(super) const LINE: u64 = 2;
    pub(super) const MESSAGE: u64 = 3;
    pub(super) const ERRNO: u64 = 4;
    pub(super) const CODE: u64 = 5;
    pub(super) const FIELDS: u64 = 6;
}

/// Appends an answer that is an error: its text and, for clients that know the extension, the stack of its causes, the error itself first.
pub fn encode_error(out: &mut Vec<u8>, sync: u64, schema_version: u64, stack: &[ErrorPart<'_>]) {
    let (code, message) = stack.first().map_or((0, ""), |error| (error.code, error.message));
    let start = begin_answer(out, ERROR_FLAG | code, sync, schema_version);
    msgpack::encode_map(out, 2);
    msgpack::encode_uint(out, key::ERROR_24);
    msgpack::encode_str(out, message.as_bytes());
    msgpack::encode_uint(out, key::ERROR);
    msgpack::encode_map(out, 1);
    msgpack::encode_uint(out, error_key::STACK);
    msgpack::encode_array(out, stack.len() as u32);
    for error in stack {
        msgpack::encode_map(out, 6 + u32::from(!error.fields.is_empty()));
        msgpack::encode_uint(out, error_key::KIND);
        msgpack::encode_str(out, error.kind.as_bytes());
        msgpack::encode_uint(out, error_key::FILE);
        msgpack::encode_str(out, error.file.as_bytes());
        msgpack::encode_uint(out, error_key::LINE);
        msgpack::encode_uint(out, u64::from(error.line));
        msgpack::encode_uint(out, error_key::MESSAGE);
        msgpack::encode_str(out, error.message.as_bytes());
        msgpack::encode_uint(out, error_key::ERRNO);
        msgpack::encode_uint(out, 0);
        msgpack::encode_uint(out, error_key::CODE);
        msgpack::encode_uint(out, u64::from(error.code));
        if !error.fields.is_empty() {
            msgpack::encode_uint(out, error_key::FIELDS);
            msgpack::encode_map(out, error.fields.len() as u32);
            for (name, value) in &error.fields {
                msgpack::encode_str(out, name.as_bytes());
                msgpack::encode_str(out, value.as_bytes());
            }
        }
    }
    end_packet(out, start);
}

/// The value of a numeric key in an encoded map.
fn field(map: &[u8], name: u64) -> Result<Option<&[u8]>, msgpack::MsgpackError> {
    let mut reader = Reader::new(map);
    for _ in 0..reader.read_map()? {
        let is_wanted = Reader::new(reader.read_value()?).read_uint() == Ok(name);
        let value = reader.read_value()?;
        if is_wanted {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

impl<'a> Answer<'a> {
    /// Takes a packet apart. Errors: it has no header of an answer.
    pub fn decode(packet: &'a [u8]) -> Result<Self, Malformed> {
        let (header, body) = Header::decode(packet).map_err(|_| Malformed)?;
        // Bit 15 says that it is an error, the bits below which one.
        Ok(Answer { code: header.request_type as u32 & (ERROR_FLAG - 1), sync: header.sync, body })
    }

    /// The encoded array of rows or values; empty if there is none. Errors: the body is no map.
    pub fn data(&self) -> Result<&'a [u8], Malformed> {
        if self.body.is_empty() {
            return Ok(&[]);
        }
        Ok(field(self.body, key::DATA).map_err(|_| Malformed)?.unwrap_or(&[]))
    }

    /// How many rows or values there are, without a look at them. None: there is no list of them.
    #[inline]
    pub fn data_count(&self) -> Option<usize> {
        const DATA: u8 = key::DATA as u8;
        match *self.body.get(..7)? {
            [0x81, DATA, 0xdd, a, b, c, d] => Some(u32::from_be_bytes([a, b, c, d]) as usize),
            _ => Reader::new(self.data().ok()?).read_array().ok().map(|count| count as usize),
        }
    }

    /// The text of an error.
    pub fn error_text(&self) -> String {
        let text = field(self.body, key::ERROR_24).ok().flatten().and_then(|text| Reader::new(text).read_str().ok());
        text.map_or_else(|| "no text".to_string(), |text| String::from_utf8_lossy(text).into_owned())
    }

    /// The stack of an error's causes, the error itself first; none if the server does not tell it, or what it tells is no stack.
    pub fn error_stack(&self) -> Vec<ErrorPart<'a>> {
        read_stack(self.body).unwrap_or_default()
    }
}

fn read_stack(body: &[u8]) -> Option<Vec<ErrorPart<'_>>> {
    let text = |bytes| std::str::from_utf8(bytes).ok();
    let mut reader = Reader::new(field(field(body, key::ERROR).ok()??, error_key::STACK).ok()??);
    // Collecting into an Option does not reserve for the count, so a false one cannot exhaust memory.
    let count = reader.read_array().ok()?;
    let mut part = || {
        let mut part = ErrorPart::default();
        for _ in 0..reader.read_map().ok()? {
            match reader.read_uint().ok()? {
                error_key::KIND => part.kind = text(reader.read_str().ok()?)?,
                error_key::MESSAGE => part.message = text(reader.read_str().ok()?)?,
                error_key::FILE => part.file = text(reader.read_str().ok()?)?,
                error_key::LINE => part.line = u32::try_from(reader.read_uint().ok()?).ok()?,
                error_key::CODE => part.code = u32::try_from(reader.read_uint().ok()?).ok()?,
                error_key::FIELDS => {
                    for _ in 0..reader.read_map().ok()? {
                        let name = text(reader.read_str().ok()?)?;
                        let value = reader.read_value().ok()?;
                        let value = Reader::new(value).read_str().ok().and_then(text).unwrap_or("");
                        part.fields.push((name, value));
                    }
                }
                _ => _ = reader.read_value().ok()?,
            }
        }
        Some(part)
    };
    (0..count).map(|_| part()).collect()
}

/// The first answer of a buffer and the bytes it takes. `None`: it has not arrived whole yet. Errors: it is no answer, or too large to be one.
#[inline]
pub fn next_answer(bytes: &[u8]) -> Result<Option<(Answer<'_>, usize)>, Malformed> {
    // Servers write every length in five bytes.
    if bytes.first().is_some_and(|first| *first != 0xce) {
        return Err(Malformed);
    }
    match next_packet(bytes).map_err(|_| Malformed)? {
        Packet::Incomplete => Ok(None),
        Packet::Complete(packet, length) => {
            debug_assert_eq!(length, LENGTH_BYTES + packet.len());
            let answer = match usual_answer(packet) {
                Some(answer) => answer,
                None => Answer::decode(packet)?,
            };
            Ok(Some((answer, length)))
        }
    }
}

/// An answer that begins as servers begin theirs: `83 00 ce <code> 01 cf <sync> 05 ce|cf <schema version>`.
#[inline]
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
    let code = u32::from_be_bytes([c0, c1, c2, c3]) & (ERROR_FLAG - 1);
    Some(Answer { code, sync: u64::from_be_bytes([s0, s1, s2, s3, s4, s5, s6, s7]), body })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use proptest::prelude::*;

    fn answer(code: u32, sync: u64, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let start = begin_answer(&mut out, code, sync, 80);
        out.extend_from_slice(body);
        end_packet(&mut out, start);
        out
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
        assert_eq!(found.data(), Ok(&[0xdd, 0, 0, 0, 1, 0x05][..]));
    }

    #[test]
    fn an_error_keeps_its_number_its_text_and_its_causes() {
        let outer =
            ErrorPart { kind: "SystemError", message: "outer", code: 115, file: "f", line: 9, fields: Vec::new() };
        let inner = ErrorPart {
            kind: "ClientError",
            message: "inner",
            code: 1,
            fields: vec![("space", "s")],
            ..ErrorPart::default()
        };
        let stack = [outer, inner];
        let mut bytes = Vec::new();
        encode_error(&mut bytes, 5, 1, &stack);
        let (found, used) = next_answer(&bytes).unwrap().unwrap();
        assert_eq!((found.code, found.sync, used), (115, 5, bytes.len()));
        assert_eq!((found.error_text(), found.error_stack()), ("outer".to_string(), stack.to_vec()));
        let bytes = answer(0x8000 + 42, 1, &[0x81, 0x31, 0xa2, b'n', b'o']);
        let (found, _) = next_answer(&bytes).unwrap().unwrap();
        assert_eq!((found.code, found.error_text(), found.error_stack().len()), (42, "no".to_string(), 0));
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
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_answer_or_refused(body in proptest::collection::vec(any::<u8>(), 0..100), code in any::<u32>()) {
            let bytes = answer(code, 1, &body);
            if let Ok(Some((answer, _))) = next_answer(&bytes) {
                let _ = (answer.data(), answer.data_count(), answer.error_text(), answer.error_stack());
            }
            let _ = next_answer(&body);
        }
    }
}
