//! Bytes to requests, borrowing the input.

use super::{key, request_type};
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
    /// The body lacks what the request needs: it is refused.
    Missing(&'static str),
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

/// The kind of value that a key of a header has; `None` for keys that no header has.
fn header_kind(name: u64) -> Option<Kind> {
    match name {
        key::TIMESTAMP => Some(Kind::Float),
        0..0x10 => Some(Kind::Uint),
        _ => None,
    }
}

impl Header {
    /// Reads the header of a packet; returns it and the body.
    pub fn decode(packet: &[u8]) -> Result<(Header, &[u8]), DecodeError> {
        let bad = |_| DecodeError::Header("packet header");
        let mut header = Header::default();
        let mut reader = Reader::new(packet);
        for _ in 0..reader.read_map().map_err(bad)? {
            let name = reader.read_uint().map_err(bad)?;
            // Keys that this server does not need must still be of their kind, as Tarantool has it.
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

/// What a request needs, in the order in which the first one missing is named.
fn wanted(request_type: u64) -> &'static [u64] {
    match request_type {
        request_type::SELECT => &[key::SPACE_ID, key::LIMIT, key::KEY],
        request_type::INSERT | request_type::REPLACE => &[key::SPACE_ID, key::TUPLE],
        request_type::UPDATE => &[key::SPACE_ID, key::KEY, key::TUPLE],
        request_type::DELETE => &[key::SPACE_ID, key::KEY],
        request_type::UPSERT => &[key::SPACE_ID, key::TUPLE, key::OPS],
        request_type::CALL | request_type::CALL_16 => &[key::FUNCTION_NAME],
        request_type::EVAL => &[key::EXPRESSION],
        request_type::AUTH => &[key::USER_NAME, key::TUPLE],
        _ => &[],
    }
}

/// Whether a request looks at a key of its body. Others are passed over, whatever they hold.
fn is_read(request_type: u64, name: u64) -> bool {
    match request_type {
        request_type::CALL | request_type::CALL_16 | request_type::EVAL => {
            matches!(name, key::FUNCTION_NAME | key::EXPRESSION | key::TUPLE)
        }
        request_type::AUTH => matches!(name, key::USER_NAME | key::TUPLE),
        request_type::SELECT
        | request_type::INSERT
        | request_type::REPLACE
        | request_type::UPDATE
        | request_type::DELETE
        | request_type::UPSERT => !matches!(name, key::FUNCTION_NAME | key::USER_NAME | key::EXPRESSION),
        _ => false,
    }
}

impl<'a> Request<'a> {
    /// Reads the body of a request (any bytes). No body at all is an empty one.
    pub fn decode(request_type: u64, body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut request = Request::default();
        let bad = |_| DecodeError::Body("packet body");
        let mut reader = Reader::new(body);
        let is_call = matches!(
            request_type,
            request_type::CALL | request_type::CALL_16 | request_type::EVAL | request_type::AUTH
        );
        if is_call && body.is_empty() {
            return Err(DecodeError::Body("missing request body"));
        }
        if request_type == request_type::NOP && !body.is_empty() {
            return Err(DecodeError::Body("packet body"));
        }
        if wanted(request_type).is_empty() && !body.is_empty() {
            reader.read_value().map_err(bad)?;
        } else if !body.is_empty() {
            for _ in 0..reader.read_map().map_err(bad)? {
                request.read_pair(request_type, &mut reader)?;
            }
        }
        if !reader.is_empty() {
            return Err(DecodeError::Body("packet end"));
        }
        for name in wanted(request_type) {
            if let Some(word) = request.missing(*name) {
                return Err(DecodeError::Missing(word));
            }
        }
        Ok(request)
    }

    /// Reads a key and its value.
    #[inline]
    fn read_pair(&mut self, request_type: u64, reader: &mut Reader<'a>) -> Result<(), DecodeError> {
        let bad = |_| DecodeError::Body("packet body");
        let name = match reader.kind().map_err(bad)? {
            Kind::Uint => reader.read_uint().map_err(bad)?,
            _ => {
                reader.read_value().map_err(bad)?;
                u64::MAX
            }
        };
        if !is_read(request_type, name) {
            reader.read_value().map_err(bad)?;
            return Ok(());
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
        match name {
            key::SPACE_ID => self.space_id = id(reader)?,
            key::INDEX_ID => self.index_id = id(reader)?,
            key::LIMIT => self.limit = Some(reader.read_uint().map_err(bad)?),
            key::OFFSET => self.offset = reader.read_uint().map_err(bad)?,
            key::ITERATOR => self.iterator = reader.read_uint().map_err(bad)?,
            key::INDEX_BASE => self.index_base = id(reader)?.unwrap_or(0),
            key::KEY => self.key = array(reader)?,
            key::TUPLE => self.tuple = array(reader)?,
            key::OPS => self.ops = array(reader)?,
            key::FUNCTION_NAME => self.function_name = Some(reader.read_str().map_err(bad)?),
            key::USER_NAME => self.user_name = Some(reader.read_str().map_err(bad)?),
            key::EXPRESSION => self.expression = Some(reader.read_str().map_err(bad)?),
            key::SPACE_NAME => self.space_name = Some(reader.read_str().map_err(bad)?),
            key::INDEX_NAME => self.index_name = Some(reader.read_str().map_err(bad)?),
            _ => {
                reader.read_value().map_err(bad)?;
            }
        }
        Ok(())
    }

    /// The word for a key if the body did not have it.
    #[inline]
    fn missing(&self, name: u64) -> Option<&'static str> {
        let (is_missing, word) = match name {
            key::SPACE_ID => (self.space_id.is_none() && self.space_name.is_none(), "space id"),
            key::LIMIT => (self.limit.is_none(), "limit"),
            key::KEY => (self.key.is_none(), "key"),
            key::TUPLE => (self.tuple.is_none(), "tuple"),
            key::OPS => (self.ops.is_none(), "operations"),
            key::FUNCTION_NAME => (self.function_name.is_none(), "function name"),
            key::USER_NAME => (self.user_name.is_none(), "user name"),
            _ => (self.expression.is_none(), "expression"),
        };
        is_missing.then_some(word)
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
                if let Ok((header, body)) = Header::decode(packet) {
                    let _ = Request::decode(header.request_type, body);
                }
            }
            let _ = Header::decode(&bytes);
            for request_type in 0..16 {
                let _ = Request::decode(request_type, &bytes);
            }
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

    #[test]
    fn the_first_missing_field_is_named_and_a_call_reads_only_its_own_keys() {
        let missing = |request_type, body: &[u8]| Request::decode(request_type, body).map(|_| ());
        assert_eq!(missing(request_type::UPDATE, &[0x81, 0x10, 5]), Err(DecodeError::Missing("key")));
        assert_eq!(missing(request_type::SELECT, &[0x80]), Err(DecodeError::Missing("space id")));
        assert_eq!(missing(request_type::EVAL, &[]), Err(DecodeError::Body("missing request body")));
        assert_eq!(missing(request_type::NOP, &[0x80]), Err(DecodeError::Body("packet body")));
        assert_eq!(missing(request_type::CALL, &[0x82, 0x22, 0xa0, 0x10, 0xa1, 0x61]), Ok(()));
        assert_eq!(missing(request_type::SELECT, &[0x81, 0x10, 0xa0]), Err(DecodeError::Body("packet body")));
    }
}
