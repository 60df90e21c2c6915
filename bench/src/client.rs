//! A small client of the binary protocol, cheap enough to load a server from the same two cores.
//!
//! Requests are encoded by hand into one buffer; answers are only looked at as far as their code, and, where a caller wants the data, decoded
//! into [`Value`].

use base64::Engine;
use sha1::{Digest, Sha1};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// Longest wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A decoded value, as much of msgpack as the workloads see.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Nil,
    Bool(bool),
    Int(i64),
    Double(f64),
    Str(String),
    Array(Vec<Value>),
    Map(Vec<(Value, Value)>),
}

impl Value {
    pub(crate) fn int(&self) -> Option<i64> {
        match self {
            Value::Int(value) => Some(*value),
            _ => None,
        }
    }

    pub(crate) fn array(&self) -> &[Value] {
        match self {
            Value::Array(values) => values,
            _ => &[],
        }
    }
}

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum ClientError {
    /// The connection is gone: whether the request was carried out is not known.
    Broken(io::Error),
    /// The server refused.
    Refused(String),
}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> Self {
        ClientError::Broken(error)
    }
}

impl std::fmt::Display for ClientError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ClientError::Broken(error) => write!(f, "the connection broke: {error}"),
            ClientError::Refused(text) => write!(f, "the server refused: {text}"),
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

pub(crate) fn put_str(out: &mut Vec<u8>, text: &[u8]) {
    match text.len() {
        length @ 0..=31 => out.push(0xa0 | length as u8),
        length @ 32..=255 => out.extend_from_slice(&[0xd9, length as u8]),
        length => {
            out.push(0xda);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
    }
    out.extend_from_slice(text);
}

/// Appends a packet: the header with a sync, then what `body` appends.
pub(crate) fn put_packet(out: &mut Vec<u8>, kind: u8, sync: u32, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0xce, 0, 0, 0, 0, 0x82, 0x00, kind, 0x01, 0xce]);
    out.extend_from_slice(&sync.to_be_bytes());
    body(out);
    let length = (out.len() - start - 5) as u32;
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
}

/// Appends a call with unsigned arguments.
pub(crate) fn put_call(out: &mut Vec<u8>, sync: u32, name: &str, arguments: &[u64]) {
    put_packet(out, 10, sync, |out| {
        out.extend_from_slice(&[0x82, 0x22]);
        put_str(out, name.as_bytes());
        out.push(0x21);
        out.push(0x90 | arguments.len() as u8);
        arguments.iter().for_each(|argument| put_uint(out, *argument));
    });
}

/// Reads one value.
pub(crate) fn take_value(bytes: &mut &[u8]) -> Option<Value> {
    fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
        let (head, tail) = bytes.split_at_checked(count)?;
        *bytes = tail;
        Some(head)
    }
    fn number(bytes: &mut &[u8], count: usize) -> Option<u64> {
        Some(take(bytes, count)?.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }
    fn text(bytes: &mut &[u8], count: usize) -> Option<Value> {
        Some(Value::Str(String::from_utf8_lossy(take(bytes, count)?).into_owned()))
    }
    fn array(bytes: &mut &[u8], count: usize) -> Option<Value> {
        (0..count).map(|_| take_value(bytes)).collect::<Option<_>>().map(Value::Array)
    }
    fn map(bytes: &mut &[u8], count: usize) -> Option<Value> {
        (0..count).map(|_| Some((take_value(bytes)?, take_value(bytes)?))).collect::<Option<_>>().map(Value::Map)
    }
    let first = take(bytes, 1)?[0];
    Some(match first {
        0..=0x7f => Value::Int(i64::from(first)),
        0xe0..=0xff => Value::Int(i64::from(first as i8)),
        0x80..=0x8f => map(bytes, usize::from(first & 15))?,
        0x90..=0x9f => array(bytes, usize::from(first & 15))?,
        0xa0..=0xbf => text(bytes, usize::from(first & 31))?,
        0xc0 => Value::Nil,
        0xc2 => Value::Bool(false),
        0xc3 => Value::Bool(true),
        0xca => Value::Double(f64::from(f32::from_bits(number(bytes, 4)? as u32))),
        0xcb => Value::Double(f64::from_bits(number(bytes, 8)?)),
        0xcc => Value::Int(number(bytes, 1)? as i64),
        0xcd => Value::Int(number(bytes, 2)? as i64),
        0xce => Value::Int(number(bytes, 4)? as i64),
        0xcf => Value::Int(number(bytes, 8)? as i64),
        0xd0 => Value::Int(i64::from(number(bytes, 1)? as i8)),
        0xd1 => Value::Int(i64::from(number(bytes, 2)? as i16)),
        0xd2 => Value::Int(i64::from(number(bytes, 4)? as i32)),
        0xd3 => Value::Int(number(bytes, 8)? as i64),
        0xc4 | 0xd9 => {
            let count = number(bytes, 1)? as usize;
            text(bytes, count)?
        }
        0xc5 | 0xda => {
            let count = number(bytes, 2)? as usize;
            text(bytes, count)?
        }
        0xc6 | 0xdb => {
            let count = number(bytes, 4)? as usize;
            text(bytes, count)?
        }
        0xdc => {
            let count = number(bytes, 2)? as usize;
            array(bytes, count)?
        }
        0xdd => {
            let count = number(bytes, 4)? as usize;
            array(bytes, count)?
        }
        0xde => {
            let count = number(bytes, 2)? as usize;
            map(bytes, count)?
        }
        0xdf => {
            let count = number(bytes, 4)? as usize;
            map(bytes, count)?
        }
        _ => return None,
    })
}

/// The error code of a packet (without its length), 0 for success, its sync, and where the body begins.
pub(crate) fn answer_header(packet: &[u8]) -> Option<(u32, u32, &[u8])> {
    let mut rest = packet;
    let Value::Map(header) = take_value(&mut rest)? else { return None };
    let field = |key| header.iter().find(|(name, _)| *name == Value::Int(key)).and_then(|(_, value)| value.int());
    Some((field(0)? as u32, field(1).unwrap_or(0) as u32, rest))
}

/// A connection with one request in flight.
pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    out: Vec<u8>,
    answer: Vec<u8>,
}

impl Client {
    /// Connects and reads the greeting; logs in if a user is given.
    pub(crate) fn connect(address: &str, login: Option<(&str, &str)>) -> Result<Self, ClientError> {
        let address = address
            .to_socket_addrs()?
            .next()
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such address"))?;
        let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let mut client = Client { stream, out: Vec::new(), answer: Vec::new() };
        let mut greeting = [0; 128];
        client.stream.read_exact(&mut greeting)?;
        if let Some((user, password)) = login {
            let salt = base64::engine::general_purpose::STANDARD
                .decode(String::from_utf8_lossy(&greeting[64..108]).trim())
                .map_err(|_| io::Error::other("the greeting has no salt"))?;
            client.log_in(user, password, &salt)?;
        }
        Ok(client)
    }

    fn log_in(&mut self, user: &str, password: &str, salt: &[u8]) -> Result<(), ClientError> {
        let first: [u8; 20] = Sha1::digest(password.as_bytes()).into();
        let second = Sha1::digest(first);
        let mut hash = Sha1::new();
        hash.update(&salt[..20.min(salt.len())]);
        hash.update(second);
        let mask: [u8; 20] = hash.finalize().into();
        let scramble: Vec<u8> = first.iter().zip(mask).map(|(a, b)| a ^ b).collect();
        self.out.clear();
        put_packet(&mut self.out, 7, 0, |out| {
            out.extend_from_slice(&[0x82, 0x23]);
            put_str(out, user.as_bytes());
            out.extend_from_slice(&[0x21, 0x92]);
            put_str(out, b"chap-sha1");
            put_str(out, &scramble);
        });
        self.round_trip().map(|_| ())
    }

    /// Sends what is in `out` and waits for the answer: its body.
    fn round_trip(&mut self) -> Result<&[u8], ClientError> {
        self.stream.write_all(&self.out)?;
        let mut length = [0; 5];
        self.stream.read_exact(&mut length)?;
        let size = u32::from_be_bytes([length[1], length[2], length[3], length[4]]) as usize;
        self.answer.resize(size, 0);
        self.stream.read_exact(&mut self.answer)?;
        let malformed = || ClientError::Broken(io::Error::other("malformed answer"));
        let (code, _, mut body) = answer_header(&self.answer).ok_or_else(malformed)?;
        if code == 0 {
            return Ok(body);
        }
        let text = match take_value(&mut body) {
            Some(Value::Map(fields)) => match fields.into_iter().find(|(key, _)| *key == Value::Int(0x31)) {
                Some((_, Value::Str(text))) => text,
                _ => String::new(),
            },
            _ => String::new(),
        };
        Err(ClientError::Refused(format!("{text} (code {})", code & 0x7fff)))
    }

    /// The list of values that the answer's data has.
    fn data(body: &[u8]) -> Vec<Value> {
        let mut rest = body;
        match take_value(&mut rest) {
            Some(Value::Map(fields)) => match fields.into_iter().find(|(key, _)| *key == Value::Int(0x30)) {
                Some((_, Value::Array(values))) => values,
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// Calls a procedure; the first value it returns.
    pub(crate) fn call(&mut self, name: &str, arguments: &[u64]) -> Result<Value, ClientError> {
        self.out.clear();
        put_call(&mut self.out, 1, name, arguments);
        let body = self.round_trip()?;
        Ok(Self::data(body).into_iter().next().unwrap_or(Value::Nil))
    }

    /// Evaluates source text; the first value it returns.
    pub(crate) fn eval(&mut self, source: &str) -> Result<Value, ClientError> {
        self.out.clear();
        put_packet(&mut self.out, 8, 1, |out| {
            out.extend_from_slice(&[0x82, 0x27]);
            put_str(out, source.as_bytes());
            out.extend_from_slice(&[0x21, 0x90]);
        });
        let body = self.round_trip()?;
        Ok(Self::data(body).into_iter().next().unwrap_or(Value::Nil))
    }

    pub(crate) fn ping(&mut self) -> Result<(), ClientError> {
        self.out.clear();
        put_packet(&mut self.out, 64, 1, |out| out.push(0x80));
        self.round_trip().map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_the_wire_form() {
        let mut out = Vec::new();
        for value in [0u64, 127, 128, 255, 256, 65_535, 65_536, 1 << 40] {
            out.clear();
            put_uint(&mut out, value);
            assert_eq!(take_value(&mut &out[..]), Some(Value::Int(value as i64)));
        }
        out.clear();
        put_str(&mut out, &[b'x'; 300]);
        assert_eq!(take_value(&mut &out[..]), Some(Value::Str("x".repeat(300))));
        assert_eq!(take_value(&mut &[0x92, 0x01][..]), None);
    }

    #[test]
    fn a_packet_has_its_length_in_front() {
        let mut out = Vec::new();
        put_call(&mut out, 7, "f", &[1, 2]);
        assert_eq!(out.len(), 5 + u32::from_be_bytes([out[1], out[2], out[3], out[4]]) as usize);
        let (code, sync, _) = answer_header(&out[5..]).expect("a header");
        assert_eq!((code, sync), (10, 7));
    }
}
