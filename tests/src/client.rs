//! A raw connection of the binary protocol: sends any bytes, also wrong ones, and reads answers with a bound on the wait.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::time::Duration;
use tuple::msgpack::{self, Reader};
use wire::{Answer, ClientError, key, request_type};

/// An answer that takes longer is none. Far above what a served request takes, so that a busy machine fails no test.
const REPLY_MAX: Duration = Duration::from_secs(20);
/// A packet of a type with a body as it is, well-formed or not; the header is as connectors send it.
pub fn packet(request_type: u64, sync: u64, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let start = wire::begin_packet(&mut out, request_type, sync);
    out.extend_from_slice(body);
    wire::end_packet(&mut out, start);
    out
}

/// A body: a map of keys to encoded values.
pub fn request(pairs: &[(u64, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    msgpack::encode_map(&mut out, pairs.len() as u32);
    for (key, value) in pairs {
        msgpack::encode_uint(&mut out, *key);
        out.extend_from_slice(value);
    }
    out
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Of the request that is answered.
    pub sync: u64,
    /// The client error, if it is one, and its text.
    pub error: Option<(u64, String)>,
    /// Encoded array of rows or values; empty if the answer has none.
    pub data: Vec<u8>,
}

impl Reply {
    fn of(answer: Answer<'_>) -> Self {
        Reply {
            sync: answer.sync,
            error: (answer.code != 0).then(|| (u64::from(answer.code), answer.error_text())),
            data: answer.data().expect("a body is a map").to_vec(),
        }
    }

    /// The number of the error; 0 for none.
    pub fn code(&self) -> u64 {
        self.error.as_ref().map_or(0, |(code, _)| *code)
    }

    /// Number of rows or values.
    pub fn count(&self) -> u32 {
        Reader::new(&self.data).read_array().unwrap_or(0)
    }
}

/// What ended a connection.
fn broken(error: ClientError) -> io::Error {
    match error {
        ClientError::Broken(error) => error,
        other => io::Error::other(other.to_string()),
    }
}

/// A connection.
pub struct Client {
    connection: wire::Client<TcpStream>,
}

impl Client {
    /// Connects and reads the greeting.
    pub fn connect(address: &str) -> io::Result<Self> {
        Self::over(TcpStream::connect(address)?)
    }

    /// Reads the greeting of a connection that has been made.
    pub fn over(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY_MAX))?;
        Ok(Client { connection: wire::Client::greet(stream).map_err(broken)? })
    }

    /// What the server said first.
    pub fn greeting(&self) -> &[u8] {
        self.connection.greeting()
    }

    /// The body of a login by chap-sha1 to this server.
    pub fn login(&self, user: &str, password: &str) -> Vec<u8> {
        self.connection.login(user, password).expect("a greeting has a salt")
    }

    /// The socket, for what only sockets can do.
    pub fn stream(&self) -> &TcpStream {
        self.connection.stream()
    }

    /// Sends bytes. A server that has closed the connection is no reason to fail: the next `receive` tells.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.connection.send_bytes(bytes);
    }

    /// Evaluates a script without arguments.
    pub fn eval(&mut self, source: &str) -> Reply {
        let mut expression = Vec::new();
        msgpack::encode_str(&mut expression, source.as_bytes());
        self.call(request_type::EVAL, &request(&[(key::EXPRESSION, &expression), (key::TUPLE, &[0x90])]))
    }

    /// Says that nothing more will be sent.
    pub fn finish(&self) {
        // A server that has closed the connection already is told nothing.
        let _ = self.stream().shutdown(Shutdown::Write);
    }

    /// The next answer. Errors: `UnexpectedEof` if the server closed the connection, `WouldBlock` if nothing came in time.
    pub fn try_receive(&mut self) -> io::Result<Reply> {
        self.connection.receive().map(Reply::of).map_err(broken)
    }

    /// All answers of a byte stream.
    pub fn replies(mut bytes: &[u8]) -> Vec<Reply> {
        let mut replies = Vec::new();
        while let Some((answer, length)) = wire::next_answer(bytes).expect("answers") {
            replies.push(Reply::of(answer));
            bytes = &bytes[length..];
        }
        replies
    }

    /// The next answer, which must come.
    pub fn receive(&mut self) -> Reply {
        self.try_receive().unwrap_or_else(|error| panic!("no answer: {error}"))
    }

    /// True if the server has closed the connection, false if it sent something instead or nothing came in time.
    pub fn is_closed(&mut self) -> bool {
        let ends = [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset];
        self.try_receive().is_err_and(|error| ends.contains(&error.kind()))
    }

    /// Sends a request and reads its answer, which must carry its sync.
    pub fn call(&mut self, request_type: u64, body: &[u8]) -> Reply {
        let sync = self.connection.put(request_type, |out| out.extend_from_slice(body));
        // A server that has closed the connection is no reason to fail here either.
        let _ = self.connection.send();
        let reply = self.receive();
        assert_eq!(reply.sync, sync, "{reply:?}");
        reply
    }

    /// Asserts that the connection is served.
    pub fn ping(&mut self) {
        let reply = self.call(request_type::PING, &[]);
        assert_eq!(reply.error, None);
    }
}
