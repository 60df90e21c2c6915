//! What people give a tool to reach a server by, and the client that it is reached with: addresses with a user and a password, waits that a person
//! can end, answers as JSON. The console of `server` uses it, too.

use database::ErrorCode;
use runtime::net::{Address, BlockingStream};
use runtime::tls::{Parameters, Session};
use runtime::{Clock, SystemClock, net};
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tuple::msgpack::{self, Kind, Reader};
use wire::ClientError;

/// Connecting and answers that take longer are given up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How often somebody who waits for an answer looks whether it is still wanted.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Where a server listens if the address names no port.
const PORT_DEFAULT: u16 = 3301;
/// The variable with the password of a user who is named without one.
pub const PASSWORD_VARIABLE: &str = "LYCOSA_PASSWORD";

/// A connection.
pub struct Client {
    connection: wire::Client<PatientStream>,
    /// Nobody has logged in.
    is_guest: bool,
}

/// How long answers are waited for.
#[derive(Clone, Default)]
pub struct Patience {
    /// Longest time to connect, and for each answer; none: 10 s to connect, and answers take what they take.
    pub timeout: Option<Duration>,
    /// Set when the answer is not wanted any more.
    pub interrupted: Option<Arc<AtomicBool>>,
}

/// Where to connect and as whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Nobody: guest.
    pub user: Option<String>,
    /// Not given: see [`Target::with_password`].
    pub password: Option<String>,
    /// Host and port, or the path of a unix socket.
    pub address: String,
    /// Over TLS, with these parameters.
    pub tls: Option<Parameters>,
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
    /// `scheme://user:password@host:port?transport=ssl&ssl_ca_file=...`, each part but the host or the port optional; `%` escapes in user, password and
    /// parameters, which are those of [`Parameters`]. In place of host and port: the path of a unix socket, as `unix/:/path` or `/path`.
    ///
    /// Errors: a scheme that is not ours; a parameter of TLS that there is not.
    pub fn parse(uri: &str) -> Result<Self, String> {
        let rest = match uri.split_once("://") {
            None => uri,
            Some(("tcp" | "iproto" | "tarantool" | "lycosa", rest)) => rest,
            Some((other, _)) => return Err(format!("unknown scheme '{other}://': tcp:// and tarantool:// are known")),
        };
        let (login, address) = Address::split_login(rest);
        // Only what has parameters of TLS has parameters: a path may have question marks.
        let (address, tls) = match address.split_once('?') {
            Some((address, query))
                if query.split('&').any(|pair| pair.starts_with("transport=") || pair.starts_with("ssl_")) =>
            {
                let pairs: Vec<(String, String)> = query
                    .split('&')
                    .filter_map(|pair| pair.split_once('='))
                    .map(|(name, value)| (unescape(name), unescape(value)))
                    .collect();
                let pairs = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
                (address, Parameters::of(pairs).map_err(|error| format!("'{uri}': {error}"))?)
            }
            _ => (address, None),
        };
        if let Some(path) = Address::unix_path(address) {
            let address = Address::unix(path).map_err(|error| format!("'{uri}': {error}"))?.to_string();
            let (user, password) = credentials(login);
            return Ok(Target { user, password, address, tls });
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
        Ok(Target { user, password, address, tls })
    }

    /// With the password of the environment if a user is named without one, or what `ask` gets to know.
    pub fn with_password(mut self, ask: impl FnOnce(&str) -> Option<String>) -> Self {
        if let (Some(user), None) = (&self.user, &self.password) {
            self.password = std::env::var(PASSWORD_VARIABLE).ok().or_else(|| ask(user));
        }
        self
    }
}

/// A stream whose waits end when the answer is too late or not wanted any more.
struct PatientStream {
    stream: BlockingStream,
    tls: Option<Box<Session>>,
    patience: Patience,
    clock: SystemClock,
    /// When the request that is waited for was sent.
    begun_ns: u64,
}

impl PatientStream {
    /// Goes on after a wait of the socket that has brought nothing. Errors: nobody wants to wait any longer.
    fn wait_on(&self) -> std::io::Result<()> {
        if self.patience.interrupted.as_ref().is_some_and(|flag| flag.load(Ordering::Acquire)) {
            return Err(std::io::Error::other("interrupted"));
        }
        let waited = Duration::from_nanos(self.clock.monotonic_ns().saturating_sub(self.begun_ns));
        match self.patience.timeout {
            Some(timeout) if waited >= timeout => {
                let text = format!("no answer within {} s", timeout.as_secs_f64());
                Err(std::io::Error::new(ErrorKind::TimedOut, text))
            }
            _ => Ok(()),
        }
    }

    /// Makes the connection one over TLS. Errors: why the other side does not want that, or is not trusted.
    fn seal(&mut self, parameters: &Parameters, host: &str) -> std::io::Result<()> {
        let mut session = Session::connect(&parameters.connector()?, host)?;
        while !session.shake_hands(&mut self.stream)? {
            self.wait_on()?;
        }
        self.tls = Some(Box::new(session));
        Ok(())
    }
}

impl Read for PatientStream {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let read = match &mut self.tls {
                Some(session) => session.read(&mut self.stream, out),
                None => self.stream.read(out),
            };
            match read {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => self.wait_on()?,
                other => return other,
            }
        }
    }
}

impl Write for PatientStream {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.begun_ns = self.clock.monotonic_ns();
        match &mut self.tls {
            Some(session) => Ok(session.write(&mut self.stream, bytes)?.accepted),
            None => self.stream.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        if let Some(session) = &mut self.tls {
            session.flush(&mut self.stream)?;
        }
        self.stream.flush()
    }
}

impl Client {
    /// Connects and logs in. Errors: what went wrong, as text.
    pub fn connect(uri: &str) -> Result<Self, String> {
        Self::open(&Target::parse(uri)?.with_password(|_| None), Patience::default())
    }

    /// The same to a target that is known. Errors: the server cannot be reached, or refuses the login; in words.
    pub fn open(target: &Target, patience: Patience) -> Result<Self, String> {
        let address = &target.address;
        let failed = |error: std::io::Error| format!("{address}: {error}");
        let timeout = patience.timeout.unwrap_or(CONNECT_TIMEOUT);
        let stream = net::connect(address, timeout).map_err(failed)?;
        stream.set_read_timeout(Some(LOOK_INTERVAL)).map_err(failed)?;
        let clock = SystemClock::default();
        let begun_ns = clock.monotonic_ns();
        // Whoever accepts a connection and then says nothing is not waited for either.
        let first = Patience { timeout: Some(timeout), ..Patience::default() };
        let mut stream = PatientStream { stream, tls: None, patience: first, clock, begun_ns };
        if let Some(parameters) = &target.tls {
            let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
            stream.seal(parameters, host).map_err(|error| format!("{address}: TLS: {error}"))?;
        }
        let connection = wire::Client::greet(stream).map_err(|error| match error {
            ClientError::Broken(error) => failed(error),
            other => format!("{address}: {other}"),
        })?;
        if wire::read_salt(connection.greeting()).is_none() {
            return Err(format!("{address}: this is no Tarantool or Lycosa"));
        }
        let mut client = Client { connection, is_guest: target.user.is_none() };
        if let Some(user) = &target.user {
            let password = target.password.as_deref().unwrap_or_default();
            let welcomed = refusal(false, client.connection.log_in(user, password));
            welcomed.map_err(|error| format!("{address}: {error}"))?.map_err(|error| {
                match target.password {
                    Some(_) => error,
                    None => format!("{error}; no password was given: put it into the address (user:password@host:port) or into {PASSWORD_VARIABLE}"),
                }
            })?;
        }
        client.connection.stream_mut().patience = patience;
        Ok(client)
    }

    /// True if the other side has not gone.
    pub fn is_alive(&self) -> bool {
        self.connection.stream().stream.is_idle()
    }

    /// Runs source text with one argument; the first result. Errors: the connection is lost; what the text raises.
    pub fn eval(&mut self, source: &str, argument: &str) -> Result<Value, String> {
        let values = self.eval_all(source, &[argument]).map_err(|error| error.to_string())??;
        Ok(values.into_iter().next().unwrap_or(Value::Null))
    }

    /// Runs source text with arguments; the results, or the server's error. Errors: the connection is of no more use.
    pub fn eval_all(&mut self, source: &str, arguments: &[&str]) -> std::io::Result<Result<Vec<Value>, String>> {
        let is_guest = self.is_guest;
        let answer = refusal(
            is_guest,
            self.connection.eval(source, |out| {
                msgpack::encode_array(out, arguments.len() as u32);
                arguments.iter().for_each(|argument| msgpack::encode_str(out, argument.as_bytes()));
            }),
        )?;
        let values = |data: &[u8]| match checked_json(data) {
            Some(Value::Array(values)) => Ok(values),
            _ => Err(malformed()),
        };
        match answer {
            Ok(data) => values(data).map(Ok),
            Err(text) => Ok(Err(text)),
        }
    }

    /// The requests that follow belong to this stream of the connection; 0 for none.
    pub fn set_stream(&mut self, stream_id: u64) {
        self.connection.set_stream(stream_id);
    }

    /// Sends a request and waits for its answer: the number of the error, 0 for none, and the body. Errors: the connection is of no more use.
    pub fn exchange(&mut self, request_type: u64, body: &[u8]) -> std::io::Result<(u32, Vec<u8>)> {
        match self.connection.exchange(request_type, |out| out.extend_from_slice(body)) {
            Ok(answer) => Ok((answer.code, answer.body.to_vec())),
            Err(ClientError::Broken(error)) => Err(error),
            Err(_) => Err(malformed()),
        }
    }
}

fn malformed() -> std::io::Error {
    std::io::Error::other("the server answered something malformed")
}

/// What the server refused, in words, apart from what ends the connection.
fn refusal<T>(is_guest: bool, result: Result<T, ClientError>) -> std::io::Result<Result<T, String>> {
    match result {
        Ok(value) => Ok(Ok(value)),
        Err(ClientError::Refused { code, text }) => {
            let needs_user = is_guest && code == ErrorCode::AccessDenied as u32;
            Ok(Err(format!("{text}{}", if needs_user { "; name a user: user@host:port" } else { "" })))
        }
        Err(ClientError::Broken(error)) => Err(error),
        Err(ClientError::Absurd(_)) => Err(malformed()),
    }
}

/// An encoded value as JSON. None: it is none.
fn checked_json(bytes: &[u8]) -> Option<Value> {
    msgpack::check(bytes).ok()?;
    to_json(&mut Reader::new(bytes))
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
    fn any_uri_and_value_is_understood_or_refused() {
        let random = runtime::SeededRandomness::new(3);
        let good = *b"tarantool://user:pass@unix/:/tmp/a.sock?x=1 [::1]:3301 u@host:1";
        for _ in 0..20_000 {
            let mut bytes = good;
            for _ in 0..1 + random.next_u64() % 4 {
                bytes[random.next_u64() as usize % good.len()] = random.next_u64() as u8;
            }
            let start = random.next_u64() as usize % good.len();
            let _ = Target::parse(&String::from_utf8_lossy(&bytes[start..]));
            let _ = (to_json(&mut Reader::new(&bytes)), checked_json(&bytes[start..]));
        }
    }

    #[test]
    fn uris_have_optional_parts() {
        let target = |user: Option<&str>, password: Option<&str>, address: &str| Target {
            user: user.map(ToString::to_string),
            password: password.map(ToString::to_string),
            address: address.to_string(),
            tls: None,
        };
        for (uri, expected) in [
            ("3301", target(None, None, "127.0.0.1:3301")),
            ("u:p@host:1", target(Some("u"), Some("p"), "host:1")),
            ("u@host:1", target(Some("u"), None, "host:1")),
            ("tcp://u:a%20b%40%zz@host:1/", target(Some("u"), Some("a b@%zz"), "host:1")),
            ("tarantool://host", target(None, None, "host:3301")),
            ("u:a:b@c@[::1]:5?x=1", target(Some("u"), Some("a:b@c"), "[::1]:5")),
            ("[::1]", target(None, None, "[::1]:3301")),
            ("unix/:/tmp/a.sock", target(None, None, "unix/:/tmp/a.sock")),
            ("/tmp/a@b?.sock", target(None, None, "unix/:/tmp/a@b?.sock")),
            ("u:p@q@unix/:/tmp/a@b", target(Some("u"), Some("p@q"), "unix/:/tmp/a@b")),
            ("tcp://u@/tmp/a", target(Some("u"), None, "unix/:/tmp/a")),
        ] {
            assert_eq!(Target::parse(uri), Ok(expected), "{uri}");
        }
        assert!(Target::parse("http://host:1").is_err());
        let sealed = |uri: &str| Target::parse(uri).map(|target| (target.address, target.tls.is_some()));
        assert_eq!(sealed("u@host:1?transport=ssl&ssl_ca_file=/a%20b"), Ok(("host:1".to_string(), true)));
        assert_eq!(sealed("/tmp/a?transport=ssl"), Ok(("unix/:/tmp/a".to_string(), true)));
        assert_eq!(sealed("host:1?transport=plain"), Ok(("host:1".to_string(), false)));
        assert!(sealed("host:1?ssl_ca_file=/a").is_err() && sealed("host:1?transport=ssl&ssl_x=1").is_err());
        assert!(Target::parse("u:p@").is_err() && Target::parse("u@unix/:").is_err());
    }
}
