//! A client of the binary protocol for the console and for `torture`: connects, logs in, asks. One request at a time.

use database::password_hash;
use runtime::net::Address;
use runtime::{Clock, SystemClock, net};
use serde_json::Value;
use sha1::{Digest, Sha1};
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tuple::msgpack::{self, Kind, Reader};

/// Connecting and answers that take longer are given up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How often somebody who waits for an answer looks whether it is still wanted.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Where a server listens if the address names no port.
const PORT_DEFAULT: u16 = 3301;
/// The variable with the password of a user who is named without one.
pub(crate) const PASSWORD_VARIABLE: &str = "LYCOSA_PASSWORD";

/// The connection below it; the one name of a socket that `redis` needs as well.
pub(crate) type Stream = net::BlockingStream;

/// A connection.
pub(crate) struct Client {
    stream: Stream,
    address: String,
    patience: Patience,
}

/// How long answers are waited for.
#[derive(Clone, Default)]
pub(crate) struct Patience {
    /// Longest time to connect, and for each answer; none: 10 s to connect, and answers take what they take.
    pub(crate) timeout: Option<Duration>,
    /// Set when the answer is not wanted any more.
    pub(crate) interrupted: Option<Arc<AtomicBool>>,
}

/// Where to connect and as whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    /// Nobody: guest.
    pub(crate) user: Option<String>,
    /// Not given: see [`Target::with_password`].
    pub(crate) password: Option<String>,
    /// Host and port, or the path of a unix socket.
    pub(crate) address: String,
}

/// `%40` is `@`. What is no such escape stays as it is.
fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = (bytes[at] == b'%').then(|| bytes.get(at + 1..at + 3)).flatten();
        let value = digits
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(value.unwrap_or(bytes[at]));
        at += if value.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// User and password out of `user:password`, each if it is there.
fn credentials(login: Option<&str>) -> (Option<String>, Option<String>) {
    match login.map(|login| login.split_once(':').ok_or(login)) {
        None => (None, None),
        Some(Ok((user, password))) => (Some(unescape(user)), Some(unescape(password))),
        Some(Err(user)) => (Some(unescape(user)), None),
    }
}

impl Target {
    /// `scheme://user:password@host:port`, each part but the host or the port optional; `%` escapes in user and password. Errors: a scheme
    /// that is not ours. In place of host and port: the path of a unix socket, as `unix/:/path` or `/path`.
    pub(crate) fn parse(uri: &str) -> Result<Self, String> {
        let rest = match uri.split_once("://") {
            None => uri,
            Some(("tcp" | "iproto" | "tarantool" | "lycosa", rest)) => rest,
            Some((other, _)) => return Err(format!("unknown scheme '{other}://': tcp:// and tarantool:// are known")),
        };
        let (login, address) = match rest.rsplit_once('@') {
            Some((login, address)) => (Some(login), address),
            None => (None, rest),
        };
        if let Some(path) = Address::unix_path(address) {
            let address = Address::unix(path).map_err(|error| format!("'{uri}': {error}"))?.to_string();
            let (user, password) = credentials(login);
            return Ok(Target { user, password, address });
        }
        let address = address.split(['/', '?']).next().unwrap_or(address);
        let has_port = address.rsplit_once(':').is_some_and(|(host, port)| {
            // The colons of an address of version 6 are inside brackets.
            port.parse::<u16>().is_ok() && (!host.contains(':') || host.ends_with(']'))
        });
        let address = match address.parse::<u16>() {
            Ok(port) => format!("127.0.0.1:{port}"),
            Err(_) if address.is_empty() => return Err(format!("'{uri}' names no host and no port")),
            Err(_) if has_port => address.to_string(),
            Err(_) => format!("{address}:{PORT_DEFAULT}"),
        };
        let (user, password) = credentials(login);
        Ok(Target { user, password, address })
    }

    /// With the password of the environment if a user is named without one, or what `ask` gets to know.
    pub(crate) fn with_password(mut self, ask: impl FnOnce(&str) -> Option<String>) -> Self {
        if let (Some(user), None) = (&self.user, &self.password) {
            self.password = std::env::var(PASSWORD_VARIABLE).ok().or_else(|| ask(user));
        }
        self
    }
}

/// The salt of a greeting, if it is one.
fn read_greeting(greeting: &[u8; 128]) -> Option<Vec<u8>> {
    let salt = String::from_utf8_lossy(&greeting[64..108]).trim().to_string();
    greeting.starts_with(b"Tarantool").then(|| decode_base64(&salt)).flatten()
}

impl Client {
    /// Connects and logs in. Errors: what went wrong, as text.
    pub(crate) fn connect(uri: &str) -> Result<Self, String> {
        Self::open(&Target::parse(uri)?.with_password(|_| None), Patience::default())
    }

    /// The same to a target that is known.
    pub(crate) fn open(target: &Target, patience: Patience) -> Result<Self, String> {
        let address = &target.address;
        let failed = |error: std::io::Error| format!("{address}: {error}");
        let stream = net::connect(address, patience.timeout.unwrap_or(CONNECT_TIMEOUT)).map_err(failed)?;
        stream.set_read_timeout(Some(LOOK_INTERVAL)).map_err(failed)?;
        // Whoever accepts a connection and then says nothing is not waited for either.
        let first = Patience { timeout: Some(patience.timeout.unwrap_or(CONNECT_TIMEOUT)), ..Patience::default() };
        let mut client = Client { stream, address: address.clone(), patience: first };
        let mut greeting = [0; 128];
        client.read_exact(&mut greeting).map_err(failed)?;
        let Some(salt) = read_greeting(&greeting) else {
            return Err(format!("{address}: this is no Tarantool or Lycosa"));
        };
        if let Some(user) = &target.user {
            client.log_in(user, target.password.as_deref().unwrap_or_default(), &salt).map_err(|error| {
                match target.password {
                    Some(_) => error,
                    None => format!("{error}; no password was given: put it into the address (user:password@host:port) or into {PASSWORD_VARIABLE}"),
                }
            })?;
        }
        client.patience = patience;
        Ok(client)
    }

    /// True if the other side has not gone.
    pub(crate) fn is_alive(&self) -> bool {
        self.stream.is_idle()
    }

    /// Fills a buffer from the socket. Errors: the other side has gone or is too slow; the answer is not wanted any more.
    fn read_exact(&mut self, buffer: &mut [u8]) -> std::io::Result<()> {
        let clock = SystemClock::default();
        let begun = clock.monotonic_ns();
        let mut at = 0;
        while at < buffer.len() {
            match self.stream.read(&mut buffer[at..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => at += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if self.patience.interrupted.as_ref().is_some_and(|flag| flag.load(Ordering::Acquire)) {
                        return Err(std::io::Error::other("interrupted"));
                    }
                    let waited = Duration::from_nanos(clock.monotonic_ns().saturating_sub(begun));
                    if let Some(timeout) = self.patience.timeout
                        && waited >= timeout
                    {
                        let text = format!("no answer within {} s", timeout.as_secs_f64());
                        return Err(std::io::Error::new(ErrorKind::TimedOut, text));
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
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
        self.request(7, &body).map_err(|error| format!("{}: {error}", self.address))?.map(|_| ())
    }

    /// Runs source text with one argument; the first result.
    pub(crate) fn eval(&mut self, source: &str, argument: &str) -> Result<Value, String> {
        let values = self.eval_all(source, &[argument]).map_err(|error| error.to_string())??;
        Ok(values.into_iter().next().unwrap_or(Value::Null))
    }

    /// Runs source text with arguments; the results, or the server's error. Errors: the connection is of no more use.
    pub(crate) fn eval_all(&mut self, source: &str, arguments: &[&str]) -> std::io::Result<Result<Vec<Value>, String>> {
        let mut body = vec![0x82, 0x27];
        msgpack::encode_str(&mut body, source.as_bytes());
        body.push(0x21);
        msgpack::encode_array(&mut body, arguments.len() as u32);
        arguments.iter().for_each(|argument| msgpack::encode_str(&mut body, argument.as_bytes()));
        let answer = self.request(8, &body)?;
        Ok(answer.map(|answer| answer.get("48").and_then(Value::as_array).cloned().unwrap_or_default()))
    }

    /// Sends a request and waits for its answer: the body as a map by decimal keys, or the server's error.
    fn request(&mut self, kind: u8, body: &[u8]) -> std::io::Result<Result<Value, String>> {
        let (code, answer) = self.exchange(kind, body)?;
        let body = to_json(&mut Reader::new(&answer)).unwrap_or(Value::Null);
        Ok(match code {
            0 => Ok(body),
            _ => {
                let text = body.get("49").and_then(Value::as_str).unwrap_or("unknown error");
                let is_nobody = text.ends_with("is denied for user 'guest'");
                Err(format!("{text}{}", if is_nobody { "; name a user: user@host:port" } else { "" }))
            }
        })
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
        self.read_exact(&mut length)?;
        let size = u32::from_be_bytes([length[1], length[2], length[3], length[4]]) as usize;
        let mut answer = vec![0; size];
        self.read_exact(&mut answer)?;
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
    net::connect(address, CONNECT_TIMEOUT)
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
            let _ = Target::parse(&String::from_utf8_lossy(&greeting[..random.next_u64() as usize % 128]));
            to_json(&mut Reader::new(&greeting));
        }
    }

    #[test]
    fn uris_have_optional_parts() {
        let target = |user: Option<&str>, password: Option<&str>, address: &str| Target {
            user: user.map(ToString::to_string),
            password: password.map(ToString::to_string),
            address: address.to_string(),
        };
        for (uri, expected) in [
            ("3301", target(None, None, "127.0.0.1:3301")),
            ("u:p@host:1", target(Some("u"), Some("p"), "host:1")),
            ("u@host:1", target(Some("u"), None, "host:1")),
            ("tcp://u:a%20b%40%zz@host:1/", target(Some("u"), Some("a b@%zz"), "host:1")),
            ("tarantool://host", target(None, None, "host:3301")),
            ("u:a:b@c@[::1]:5?x=1", target(Some("u"), Some("a:b@c"), "[::1]:5")),
            ("[::1]", target(None, None, "[::1]:3301")),
        ] {
            assert_eq!(Target::parse(uri), Ok(expected), "{uri}");
        }
        assert!(Target::parse("http://host:1").is_err());
        assert!(Target::parse("u:p@").is_err());
    }
}
