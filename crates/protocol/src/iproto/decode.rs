//! Bytes to requests, borrowing the input.

use super::key;
use tuple::msgpack::{self, Kind, Reader};

/// Longest packet: a longer one closes its connection.
const PACKET_BYTES_MAX: u64 = 256 << 20;

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
}

/// Bytes that the first packet takes in all, as its beginning says, if that has come and is a length.
pub(crate) fn announced_bytes(input: &[u8]) -> Option<u64> {
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

/// Finds the first packet.
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

/// The header of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Request type.
    pub request_type: u64,
    /// Chosen by the client; echoed.
    pub sync: u64,
    /// The schema version that the client knows; 0 if it does not care.
    pub schema_version: u64,
    /// The stream of an interactive transaction; 0 for none.
    pub stream_id: u64,
}

impl Header {
    /// Reads the header of a packet; returns it and the body.
    pub fn decode(packet: &[u8]) -> Result<(Header, &[u8]), DecodeError> {
        let bad = |_| DecodeError::Header("packet header");
        let mut header = Header::default();
        let mut reader = Reader::new(packet);
        for _ in 0..reader.read_map().map_err(bad)? {
            // Keys are unsigned; others of a client's own are passed over.
            if reader.kind().map_err(bad)? != Kind::Uint {
                reader.read_value().map_err(bad)?;
                reader.read_value().map_err(bad)?;
                continue;
            }
            let field = match reader.read_uint().map_err(bad)? {
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

/// The body of a request: what was there, nothing checked beyond its kind.
#[derive(Clone, Copy, Debug, Default)]
#[expect(missing_docs, reason = "the protocol's words")]
pub struct Request<'a> {
    pub space_id: Option<u32>,
    pub space_name: Option<&'a [u8]>,
    pub index_id: Option<u32>,
    pub index_name: Option<&'a [u8]>,
    pub limit: Option<u64>,
    pub offset: u64,
    pub iterator: u64,
    pub index_base: u32,
    /// Encoded array.
    pub key: Option<&'a [u8]>,
    /// Encoded array.
    pub tuple: Option<&'a [u8]>,
    /// Encoded array.
    pub ops: Option<&'a [u8]>,
    pub function_name: Option<&'a [u8]>,
    pub user_name: Option<&'a [u8]>,
    pub expression: Option<&'a [u8]>,
}

impl<'a> Request<'a> {
    /// Reads a body (any bytes). No body at all is an empty one.
    pub fn decode(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut request = Request::default();
        if body.is_empty() {
            return Ok(request);
        }
        let bad = |_| DecodeError::Body("packet body");
        let mut reader = Reader::new(body);
        for _ in 0..reader.read_map().map_err(bad)? {
            if reader.kind().map_err(bad)? != Kind::Uint {
                reader.read_value().map_err(bad)?;
                reader.read_value().map_err(bad)?;
                continue;
            }
            let id = |reader: &mut Reader<'a>| {
                let value = reader.read_uint().map_err(bad)?;
                u32::try_from(value).map(Some).map_err(|_| DecodeError::Body("packet body"))
            };
            let array = |reader: &mut Reader<'a>| {
                let is_array = reader.kind().map_err(bad)? == Kind::Array;
                let raw = reader.read_value().map_err(bad)?;
                if is_array { Ok(Some(raw)) } else { Err(DecodeError::Body("packet body")) }
            };
            match reader.read_uint().map_err(bad)? {
                key::SPACE_ID => request.space_id = id(&mut reader)?,
                key::INDEX_ID => request.index_id = id(&mut reader)?,
                key::LIMIT => request.limit = Some(reader.read_uint().map_err(bad)?),
                key::OFFSET => request.offset = reader.read_uint().map_err(bad)?,
                key::ITERATOR => request.iterator = reader.read_uint().map_err(bad)?,
                key::INDEX_BASE => request.index_base = id(&mut reader)?.unwrap_or(0),
                key::KEY => request.key = array(&mut reader)?,
                key::TUPLE => request.tuple = array(&mut reader)?,
                key::OPS => request.ops = array(&mut reader)?,
                key::FUNCTION_NAME => request.function_name = Some(reader.read_str().map_err(bad)?),
                key::USER_NAME => request.user_name = Some(reader.read_str().map_err(bad)?),
                key::EXPRESSION => request.expression = Some(reader.read_str().map_err(bad)?),
                key::SPACE_NAME => request.space_name = Some(reader.read_str().map_err(bad)?),
                key::INDEX_NAME => request.index_name = Some(reader.read_str().map_err(bad)?),
                _ => {
                    reader.read_value().map_err(bad)?;
                }
            }
        }
        if !reader.is_empty() {
            return Err(DecodeError::Body("packet end"));
        }
        Ok(request)
    }
}

const _: () = assert!(PACKET_BYTES_MAX < 1 << 32);
const _: fn(&[u8]) -> Result<usize, msgpack::MsgpackError> = msgpack::check;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(Packet::Complete(packet, length)) = next_packet(&bytes) {
                prop_assert!(length <= bytes.len());
                if let Ok((_, body)) = Header::decode(packet) {
                    let _ = Request::decode(body);
                }
            }
            let _ = Header::decode(&bytes);
            let _ = Request::decode(&bytes);
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
}
