//! A client of the binary protocol for the console and for `torture`: connects, logs in, asks. One request at a time.

use database::password_hash;
use runtime::net;
use serde_json::Value;
use sha1::{Digest, Sha1};
use std::io::{Read, Write};
use std::time::Duration;
use tuple::msgpack::{self, Kind, Reader};

/// Connecting and answers that take longer are given up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The connection below it; the one name of a socket that `redis` needs as well.
pub(crate) type Stream = std::net::TcpStream;

/// A connection.
pub(crate) struct Client {
    stream: Stream,
    address: String,
}

/// `user:password@host:port`, each part but host and port optional.
fn split(uri: &str) -> (Option<(&str, &str)>, String) {
    let (login, address) = match uri.rsplit_once('@') {
        Some((login, address)) => (Some(login.split_once(':').unwrap_or((login, ""))), address),
        None => (None, uri),
    };
    let address = if address.parse::<u16>().is_ok() { format!("127.0.0.1:{address}") } else { address.to_string() };
    (login, address)
}

/// The salt of a greeting, if it is one.
fn read_greeting(greeting: &[u8; 128]) -> Option<Vec<u8>> {
    let salt = String::from_utf8_lossy(&greeting[64..108]).trim().to_string();
    greeting.starts_with(b"Tarantool").then(|| decode_base64(&salt)).flatten()
}

impl Client {
    /// Connects and logs in. Errors: what went wrong, as text.
    pub(crate) fn connect(uri: &str) -> Result<Self, String> {
        let (login, address) = split(uri);
        let failed = |error: std::io::Error| format!("{address}: {error}");
        let stream = dial(&address).map_err(failed)?;
        let mut client = Client { stream, address: address.clone() };
        let mut greeting = [0; 128];
        client.stream.read_exact(&mut greeting).map_err(failed)?;
        let Some(salt) = read_greeting(&greeting) else {
            return Err(format!("{address}: this is no Tarantool or Lycosa"));
        };
        if let Some((user, password)) = login {
            client.log_in(user, password, &salt)?;
        }
        Ok(client)
    }

    /// Where it is connected to.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    fn log_in(&mut self, user: &str, password: &str, salt: &[u8]) -> Result<(), String> {
        let stored = password_hash(password.as_bytes());
        let mut mask = Sha1::new();
        mask.update(&salt[..20.min(salt.len())]);
        mask.update(stored);
        let mut scramble: [u8; 20] = Sha1::digest(password.as_bytes()).into();
        let mask: [u8; 20] = mask.finalize().into();
        scramble.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
        let mut body = vec![0x82, 0x23];
        msgpack::encode_str(&mut body, user.as_bytes());
        body.extend_from_slice(&[0x21, 0x92]);
        msgpack::encode_str(&mut body, b"chap-sha1");
        msgpack::encode_str(&mut body, &scramble);
        self.request(7, &body).map(|_| ())
    }

    /// Runs source text with one argument; the first result.
    pub(crate) fn eval(&mut self, source: &str, argument: &str) -> Result<Value, String> {
        let mut body = vec![0x82, 0x27];
        msgpack::encode_str(&mut body, source.as_bytes());
        body.extend_from_slice(&[0x21, 0x91]);
        msgpack::encode_str(&mut body, argument.as_bytes());
        let answer = self.request(8, &body)?;
        let values = answer.get("48").and_then(Value::as_array).cloned().unwrap_or_default();
        Ok(values.into_iter().next().unwrap_or(Value::Null))
    }

    /// Sends a request and waits for its answer: the body as a map by decimal keys.
    fn request(&mut self, kind: u8, body: &[u8]) -> Result<Value, String> {
        let (code, answer) = self.exchange(kind, body).map_err(|error| error.to_string())?;
        let body = to_json(&mut Reader::new(&answer)).unwrap_or(Value::Null);
        match code {
            0 => Ok(body),
            _ => Err(body.get("49").and_then(Value::as_str).unwrap_or("unknown error").to_string()),
        }
    }

    /// Sends a request and waits for its answer: the number of the error, 0 for none, and the body, well-formed msgpack. Errors: the connection
    /// is of no more use.
    pub(crate) fn exchange(&mut self, kind: u8, body: &[u8]) -> std::io::Result<(u32, Vec<u8>)> {
        let mut packet = vec![0xce];
        packet.extend_from_slice(&(body.len() as u32 + 5).to_be_bytes());
        packet.extend_from_slice(&[0x82, 0x00, kind, 0x01, 0x00]);
        packet.extend_from_slice(body);
        self.stream.write_all(&packet)?;
        let mut length = [0; 5];
        self.stream.read_exact(&mut length)?;
        let size = u32::from_be_bytes([length[1], length[2], length[3], length[4]]) as usize;
        let mut answer = vec![0; size];
        self.stream.read_exact(&mut answer)?;
        let malformed = || std::io::Error::other("the server answered something malformed");
        let header_bytes = msgpack::check(&answer).map_err(|_| malformed())?;
        let header = to_json(&mut Reader::new(&answer)).ok_or_else(malformed)?;
        let body = answer.split_off(header_bytes);
        if !body.is_empty() {
            msgpack::check(&body).map_err(|_| malformed())?;
        }
        let status = header.get("0").and_then(Value::as_u64).ok_or_else(malformed)?;
        // Bit 15 says that it is an error, the bits below which one.
        Ok((status as u32 & 0x7fff, body))
    }
}

/// A connection to whoever listens there.
pub(crate) fn dial(address: &str) -> std::io::Result<Stream> {
    let stream = net::connect(address, CONNECT_TIMEOUT)?;
    // A port that is asked for while nobody listens may be given to the very socket that asks: then it talks to itself.
    if stream.local_addr()? == stream.peer_addr()? {
        return Err(std::io::ErrorKind::ConnectionRefused.into());
    }
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.decode(text).ok()
}

/// A value of an answer as JSON: keys become text.
fn to_json(reader: &mut Reader<'_>) -> Option<Value> {
    Some(match reader.kind().ok()? {
        Kind::Nil => {
            reader.read_nil().ok()?;
            Value::Null
        }
        Kind::Bool => Value::Bool(reader.read_bool().ok()?),
        Kind::Uint => Value::from(reader.read_uint().ok()?),
        Kind::Int => Value::from(reader.read_int().ok()?),
        Kind::Float | Kind::Double => Value::from(reader.read_double().ok()?),
        Kind::Str | Kind::Bin => Value::from(String::from_utf8_lossy(reader.read_str_or_bin().ok()?).into_owned()),
        Kind::Array => {
            let count = reader.read_array().ok()?;
            Value::Array((0..count).map(|_| to_json(reader)).collect::<Option<_>>()?)
        }
        Kind::Map => {
            let count = reader.read_map().ok()?;
            let mut map = serde_json::Map::new();
            for _ in 0..count {
                let key = to_json(reader)?;
                let key = key.as_str().map_or_else(|| key.to_string(), ToString::to_string);
                map.insert(key, to_json(reader)?);
            }
            Value::Object(map)
        }
        Kind::Ext => {
            let mut text = String::new();
            msgpack::format_value(reader.read_value().ok()?, &mut text);
            Value::from(text)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::Randomness;

    #[test]
    fn any_greeting_uri_and_answer_is_understood_or_refused() {
        let random = runtime::SeededRandomness::new(3);
        let mut good = [b' '; 128];
        good[..9].copy_from_slice(b"Tarantool");
        good[64..108].copy_from_slice(b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
        assert_eq!(read_greeting(&good), Some(vec![0; 32]));
        for _ in 0..20_000 {
            let mut greeting = good;
            for _ in 0..1 + random.next_u64() % 4 {
                greeting[random.next_u64() as usize % 128] = random.next_u64() as u8;
            }
            assert!(read_greeting(&greeting).is_none_or(|salt| salt.len() <= 33));
            split(&String::from_utf8_lossy(&greeting[..random.next_u64() as usize % 128]));
            to_json(&mut Reader::new(&greeting));
        }
    }

    #[test]
    fn uris_have_optional_parts() {
        assert_eq!(split("3301"), (None, "127.0.0.1:3301".to_string()));
        assert_eq!(split("u:p@host:1"), (Some(("u", "p")), "host:1".to_string()));
        assert_eq!(split("u@host:1"), (Some(("u", "")), "host:1".to_string()));
    }
}
