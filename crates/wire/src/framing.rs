//! Packets: a length, a header, a body. Finding them in bytes, and making them.

use crate::key;
use tuple::msgpack::{self, Kind, Reader};

/// Longest packet: a longer one closes its connection.
pub const PACKET_BYTES_MAX: u64 = 256 << 20;
/// Set in the type of an answer that is an error; the bits below are the error's number.
pub const ERROR_FLAG: u32 = 0x8000;
/// Bytes of a packet's length as this crate writes it.
pub(crate) const LENGTH_BYTES: usize = 5;
/// Bytes of an answer before its body: length, type, sync, schema version.
pub const HEADER_BYTES: usize = 28;
/// Where `put_packet` puts the sync, counted from the packet's first byte: four bytes, the highest first.
pub const SYNC_OFFSET: usize = 10;

/// What is found at the beginning of the input.
#[derive(Debug)]
pub enum Packet<'a> {
    /// A whole packet, and the bytes it takes in all.
    Complete(&'a [u8], usize),
    /// The rest has not come.
    Incomplete,
}

/// Bytes that are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The length is no length or too large: the connection cannot be understood any more.
    Length(&'static str),
    /// The header cannot be read: the request is refused, and has no identifier.
    Header(&'static str),
    /// The body cannot be read: the request is refused.
    Body(&'static str),
    /// The body lacks what the request needs: it is refused.
    Missing(&'static str),
}

/// Bytes that the first packet takes in all, as its beginning says, if that has come and is a length.
pub fn announced_bytes(input: &[u8]) -> Option<u64> {
    let size = length_bytes(*input.first()?)?;
    let mut reader = Reader::new(input.get(..size)?);
    reader.read_uint().ok()?.checked_add(size as u64)
}

/// Bytes of a packet's length by the first of them.
fn length_bytes(first: u8) -> Option<usize> {
    Some(match first {
        0..=0x7f => 1,
        0xcc => 2,
        0xcd => 3,
        0xce => 5,
        0xcf => 9,
        _ => return None,
    })
}

/// Finds the first packet. Errors: the length is none, or beyond [`PACKET_BYTES_MAX`].
#[inline]
pub fn next_packet(input: &[u8]) -> Result<Packet<'_>, DecodeError> {
    let Some(&first) = input.first() else {
        return Ok(Packet::Incomplete);
    };
    let size = length_bytes(first).ok_or(DecodeError::Length("packet length"))?;
    if input.len() < size {
        return Ok(Packet::Incomplete);
    }
    let length = Reader::new(input).read_uint().map_err(|_| DecodeError::Length("packet length"))?;
    if length > PACKET_BYTES_MAX {
        return Err(DecodeError::Length("too big packet size in the header"));
    }
    let end = size + length as usize;
    Ok(match input.get(size..end) {
        Some(packet) => Packet::Complete(packet, end),
        None => Packet::Incomplete,
    })
}

/// The header of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Request type; of an answer its status.
    pub request_type: u64,
    /// Chosen by the client; echoed.
    pub sync: u64,
    /// The schema version that the client knows; 0 if it does not care.
    pub schema_version: u64,
    /// The stream of an interactive transaction; 0 for none.
    pub stream_id: u64,
}

/// The kind of value that a key of a header has; `None` for keys that no header has.
fn header_kind(name: u64) -> Option<Kind> {
    match name {
        key::TIMESTAMP => Some(Kind::Float),
        0..0x10 => Some(Kind::Uint),
        _ => None,
    }
}

impl Header {
    /// Reads the header of a packet; returns it and the body. Errors: it is no map, or has a key or a value that no header has.
    #[inline]
    pub fn decode(packet: &[u8]) -> Result<(Header, &[u8]), DecodeError> {
        let bad = |_| DecodeError::Header("packet header");
        let mut header = Header::default();
        let mut reader = Reader::new(packet);
        for _ in 0..reader.read_map().map_err(bad)? {
            let name = reader.read_uint().map_err(bad)?;
            // Keys that nobody here needs must still be of their kind, as Tarantool has it.
            if reader.kind().map_err(bad)? != header_kind(name).ok_or(DecodeError::Header("packet header"))? {
                return Err(DecodeError::Header("packet header"));
            }
            let field = match name {
                key::REQUEST_TYPE => &mut header.request_type,
                key::SYNC => &mut header.sync,
                key::SCHEMA_VERSION => &mut header.schema_version,
                key::STREAM_ID => &mut header.stream_id,
                _ => {
                    reader.read_value().map_err(bad)?;
                    continue;
                }
            };
            *field = reader.read_uint().map_err(bad)?;
        }
        Ok((header, reader.rest()))
    }
}

/// Begins a packet with the header of a request; the body follows, and [`end_packet`] with the result completes it.
pub fn begin_packet(out: &mut Vec<u8>, request_type: u64, sync: u64) -> usize {
    begin_stream_packet(out, request_type, sync, 0)
}

/// The same for a request of a stream; 0 is none.
pub fn begin_stream_packet(out: &mut Vec<u8>, request_type: u64, sync: u64, stream_id: u64) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0xce, 0, 0, 0, 0]);
    let stream = (stream_id != 0).then_some([key::STREAM_ID, stream_id]);
    msgpack::encode_map(out, 2 + u32::from(stream.is_some()));
    let values = [key::REQUEST_TYPE, request_type, key::SYNC, sync];
    for value in values.into_iter().chain(stream.into_iter().flatten()) {
        msgpack::encode_uint(out, value);
    }
    start
}

/// Puts the length in front of a packet.
#[inline]
pub fn end_packet(out: &mut [u8], start: usize) {
    let length = (out.len() - start - LENGTH_BYTES) as u32;
    out[start + 1..start + LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
}

/// Appends a request whose sync stands at [`SYNC_OFFSET`], to be sent many times: `body` appends what follows the header.
pub fn put_packet(out: &mut Vec<u8>, request_type: u64, sync: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    let kind = u8::try_from(request_type).ok().filter(|kind| *kind < 0x80).expect("types of requests are short");
    out.extend_from_slice(&[0xce, 0, 0, 0, 0, 0x82, 0x00, kind, 0x01, 0xce]);
    debug_assert_eq!(out.len() - start, SYNC_OFFSET);
    out.extend_from_slice(&sync.to_be_bytes());
    body(out);
    end_packet(out, start);
}

/// Begins an answer; the body follows, and [`end_packet`] with the result completes it.
#[inline]
pub fn begin_answer(out: &mut Vec<u8>, code: u32, sync: u64, schema_version: u64) -> usize {
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

const _: () = assert!(PACKET_BYTES_MAX < 1 << 32);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_a_packet_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(Packet::Complete(packet, length)) = next_packet(&bytes) {
                prop_assert!(length <= bytes.len());
                let _ = Header::decode(packet);
            }
            let _ = (Header::decode(&bytes), announced_bytes(&bytes));
        }

        #[test]
        fn what_is_made_is_found(request_type in 0u64..0x80, sync in any::<u64>(), body in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut out = vec![0xc0];
            let start = begin_packet(&mut out, request_type, sync);
            out.extend_from_slice(&body);
            end_packet(&mut out, start);
            let Ok(Packet::Complete(packet, length)) = next_packet(&out[1..]) else { panic!("complete") };
            prop_assert_eq!((length, announced_bytes(&out[1..])), (out.len() - 1, Some(length as u64)));
            let (header, rest) = Header::decode(packet).expect("a header");
            prop_assert_eq!((header.request_type, header.sync, rest), (request_type, sync, &body[..]));
        }
    }

    #[test]
    fn packets_come_in_pieces() {
        let packet = [0xce, 0, 0, 0, 5, 0x82, 0, 64, 1, 7, 99];
        for end in 0..10 {
            assert!(matches!(next_packet(&packet[..end]), Ok(Packet::Incomplete)), "{end}");
        }
        let Ok(Packet::Complete(body, 10)) = next_packet(&packet) else { panic!("complete") };
        let (header, rest) = Header::decode(body).expect("a header");
        assert_eq!((header.request_type, header.sync, rest.len()), (64, 7, 0));
        assert!(next_packet(&[0xc0]).is_err());
        assert!(next_packet(&[0xce, 0xff, 0xff, 0xff, 0xff]).is_err());
    }

    #[test]
    fn a_header_has_keys_of_headers_and_values_of_their_kind() {
        for header in
            [&[0x81, 7, 0xff][..], &[0x81, 5, 0xa1, 0x61], &[0x81, 0x32, 0x80], &[0x81, 0xa1, 0x61, 1], &[0x81, 4, 1]]
        {
            assert_eq!(Header::decode(header), Err(DecodeError::Header("packet header")), "{header:x?}");
        }
        assert!(Header::decode(&[0x81, 7, 1]).is_ok());
    }
}
