//! Bytes to requests, borrowing the input.

use database::After;
use tuple::msgpack::{Kind, Reader};
use wire::{DecodeError, key, request_type};

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
    /// Only a page of the rows is wanted, or its end: see `read_page`.
    pub has_page: bool,
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
    ///
    /// Errors: what is not as the protocol has it: the bytes, the kind of a value, a field that is missing.
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
            key::FETCH_POSITION | key::AFTER_POSITION | key::AFTER_TUPLE => {
                self.has_page = true;
                reader.read_value().map_err(bad)?;
            }
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

/// Which page of its rows a SELECT wants.
#[derive(Clone, Copy, Debug, Default)]
pub struct Page<'a> {
    /// The position of its last row is wanted.
    pub fetches_position: bool,
    /// Where it begins.
    pub after: Option<After<'a>>,
}

/// Reads what the body of a SELECT says of pages; of a row behind which one begins nothing is checked but that it is an array.
pub fn read_page(body: &[u8]) -> Result<Page<'_>, DecodeError> {
    let mut page = Page::default();
    for_each_pair(body, PACKET, |name, reader| {
        let bad = |_| PACKET;
        match name {
            key::FETCH_POSITION => page.fetches_position = reader.read_bool().map_err(bad)?,
            key::AFTER_POSITION => page.after = Some(After::Position(reader.read_str().map_err(bad)?)),
            key::AFTER_TUPLE if reader.kind() != Ok(Kind::Array) => return Err(PACKET),
            key::AFTER_TUPLE => page.after = Some(After::Row(reader.read_value().map_err(bad)?)),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(page)
}

const PACKET: DecodeError = DecodeError::Body("packet body");
const REQUEST: DecodeError = DecodeError::Body("request body");

/// Goes through the pairs of a body, which may be absent. `take` reads the value of a key that it knows, or says false. Errors: those of `take`;
/// `malformed` for what is no map.
fn for_each_pair<'a>(
    body: &'a [u8],
    malformed: DecodeError,
    mut take: impl FnMut(u64, &mut Reader<'a>) -> Result<bool, DecodeError>,
) -> Result<(), DecodeError> {
    if body.is_empty() {
        return Ok(());
    }
    let bad = |_| malformed;
    let mut reader = Reader::new(body);
    for _ in 0..reader.read_map().map_err(bad)? {
        let is_known = match reader.kind().map_err(bad)? {
            Kind::Uint => {
                let name = reader.read_uint().map_err(bad)?;
                take(name, &mut reader)?
            }
            _ => {
                reader.read_value().map_err(bad)?;
                false
            }
        };
        if !is_known {
            reader.read_value().map_err(bad)?;
        }
    }
    Ok(())
}

/// How a transaction is to be begun.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Begin {
    /// Seconds.
    pub timeout: Option<f64>,
    /// Number of the level.
    pub isolation: u64,
}

/// Reads the body of BEGIN (any bytes). No body at all is an empty one.
pub fn read_begin(body: &[u8]) -> Result<Begin, DecodeError> {
    let mut begin = Begin::default();
    for_each_pair(body, REQUEST, |name, reader| {
        let bad = |_| REQUEST;
        match name {
            key::TIMEOUT if reader.kind() == Ok(Kind::Uint) => {
                begin.timeout = Some(reader.read_uint().map_err(bad)? as f64);
            }
            key::TIMEOUT => begin.timeout = Some(reader.read_double().map_err(bad)?),
            key::TXN_ISOLATION => begin.isolation = reader.read_uint().map_err(bad)?,
            key::IS_SYNC if reader.kind() != Ok(Kind::Bool) => return Err(REQUEST),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(begin)
}

/// The key in the body of WATCH and its like (any bytes).
pub fn read_event_key(body: &[u8]) -> Result<Option<&[u8]>, DecodeError> {
    let mut found = None;
    for_each_pair(body, PACKET, |name, reader| {
        if name == key::EVENT_KEY {
            found = Some(reader.read_str().map_err(|_| PACKET)?);
        }
        Ok(name == key::EVENT_KEY)
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wire::{Header, Packet, next_packet};

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
            let _ = (read_begin(&bytes), read_page(&bytes), read_event_key(&bytes));
            for request_type in 0..16 {
                let _ = Request::decode(request_type, &bytes);
            }
        }
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
