//! Answers to bytes.

use super::{GREETING_VERSION, key};
use base64::Engine;
use database::Error;
use tuple::msgpack;

/// Bytes of an answer before its body: length, type, sync, schema version.
const HEADER_BYTES: usize = 28;
const ERROR_FLAG: u32 = 0x8000;

/// The 128 bytes that a connection begins with.
pub fn greeting(instance_uuid: &str, salt: &[u8; 32]) -> [u8; 128] {
    let mut out = [b' '; 128];
    let first = format!("Tarantool {GREETING_VERSION} (Binary) {instance_uuid}");
    let first = &first.as_bytes()[..first.len().min(63)];
    out[..first.len()].copy_from_slice(first);
    out[63] = b'\n';
    let salt = base64::engine::general_purpose::STANDARD.encode(salt);
    out[64..64 + salt.len()].copy_from_slice(salt.as_bytes());
    out[127] = b'\n';
    out
}

/// Begins an answer; `end_answer` with the result completes it.
pub(crate) fn begin_answer(out: &mut Vec<u8>, code: u32, sync: u64, schema_version: u64) -> usize {
    let start = out.len();
    let mut header = [0; HEADER_BYTES];
    header[0] = 0xce;
    header[5] = 0x83;
    header[6] = key::REQUEST_TYPE as u8;
    header[7] = 0xce;
    header[8..12].copy_from_slice(&code.to_be_bytes());
    header[12] = key::SYNC as u8;
    header[13] = 0xcf;
    header[14..22].copy_from_slice(&sync.to_be_bytes());
    header[22] = key::SCHEMA_VERSION as u8;
    header[23] = 0xce;
    header[24..28].copy_from_slice(&(schema_version as u32).to_be_bytes());
    out.extend_from_slice(&header);
    start
}

/// Puts the length in front.
pub(crate) fn end_answer(out: &mut [u8], start: usize) {
    let length = (out.len() - start - 5) as u32;
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
}

/// Begins the list of rows or values; returns where its length goes.
pub(crate) fn begin_data(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[0x81, key::DATA as u8, 0xdd, 0, 0, 0, 0]);
    out.len() - 4
}

/// Puts the number of rows in place.
pub(crate) fn end_data(out: &mut [u8], at: usize, count: u32) {
    out[at..at + 4].copy_from_slice(&count.to_be_bytes());
}

/// An answer with an empty body.
pub(crate) fn encode_ok(out: &mut Vec<u8>, sync: u64, schema_version: u64) {
    let start = begin_answer(out, 0, sync, schema_version);
    out.push(0x80);
    end_answer(out, start);
}

/// An error: its text and, for clients that know the extension, the stack of its causes.
pub fn encode_error(out: &mut Vec<u8>, sync: u64, schema_version: u64, error: &Error) {
    let start = begin_answer(out, ERROR_FLAG | error.code(), sync, schema_version);
    msgpack::encode_map(out, 2);
    msgpack::encode_uint(out, key::ERROR_24);
    msgpack::encode_str(out, error.message().as_bytes());
    msgpack::encode_uint(out, key::ERROR);
    msgpack::encode_map(out, 1);
    msgpack::encode_uint(out, 0);
    let mut stack = vec![error];
    while let Some(previous) = stack[stack.len() - 1].body().previous.as_ref() {
        stack.push(previous);
    }
    msgpack::encode_array(out, stack.len() as u32);
    for error in stack {
        let body = error.body();
        msgpack::encode_map(out, 6 + u32::from(!body.fields.is_empty()));
        msgpack::encode_uint(out, 0);
        msgpack::encode_str(out, error.kind_name().as_bytes());
        msgpack::encode_uint(out, 1);
        msgpack::encode_str(out, b"lycosa");
        msgpack::encode_uint(out, 2);
        msgpack::encode_uint(out, 0);
        msgpack::encode_uint(out, 3);
        msgpack::encode_str(out, body.message.as_bytes());
        msgpack::encode_uint(out, 4);
        msgpack::encode_uint(out, 0);
        msgpack::encode_uint(out, 5);
        msgpack::encode_uint(out, u64::from(body.code));
        if !body.fields.is_empty() {
            msgpack::encode_uint(out, 6);
            msgpack::encode_map(out, body.fields.len() as u32);
            for (name, value) in &body.fields {
                msgpack::encode_str(out, name.as_bytes());
                msgpack::encode_str(out, value.as_bytes());
            }
        }
    }
    end_answer(out, start);
}

#[cfg(test)]
mod tests {
    use super::*;
    use tuple::msgpack::Reader;

    #[test]
    fn a_greeting_is_two_lines_of_64_bytes() {
        let text = greeting("c6ad95d7-aa48-48de-81b2-7d621374567a", &[7; 32]);
        assert!(text.starts_with(b"Tarantool 3.0.0 (Binary) c6ad95d7-"));
        assert_eq!((text[63], text[127]), (b'\n', b'\n'));
    }

    #[test]
    fn an_error_answer_is_well_formed() {
        let mut out = Vec::new();
        let error = Error::system("outer").caused_by(Error::illegal("inner").with("space", "s"));
        encode_error(&mut out, 5, 1, &error);
        let mut reader = Reader::new(&out);
        assert_eq!(reader.read_uint().map(|length| length as usize), Ok(out.len() - 5));
        reader.read_value().expect("a header");
        reader.read_value().expect("a body");
        assert!(reader.is_empty());
    }
}
