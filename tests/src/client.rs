//! A raw connection of the binary protocol: sends any bytes, also wrong ones, and reads answers with a bound on the wait.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;
use tuple::msgpack::{self, Reader};

/// An answer that takes longer is none. Far above what a served request takes, so that a busy machine fails no test.
const REPLY_MAX: Duration = Duration::from_secs(20);
const GREETING_BYTES: usize = 128;
const ERROR_FLAG: u64 = 0x8000;
const KEY_TYPE: u64 = 0;
const KEY_SYNC: u64 = 1;
const KEY_DATA: u64 = 0x30;
const KEY_ERROR: u64 = 0x31;
const EVAL: u64 = 8;
const PING: u64 = 64;
const KEY_TUPLE: u64 = 0x21;
const KEY_EXPRESSION: u64 = 0x27;

/// A packet of a type with a body as it is, well-formed or not; the header is as connectors send it.
pub fn packet(request_type: u64, sync: u64, body: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    msgpack::encode_map(&mut content, 2);
    for value in [KEY_TYPE, request_type, KEY_SYNC, sync] {
        msgpack::encode_uint(&mut content, value);
    }
    content.extend_from_slice(body);
    let mut out = vec![0xce];
    out.extend_from_slice(&(content.len() as u32).to_be_bytes());
    out.extend_from_slice(&content);
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
    fn decode(packet: &[u8]) -> Result<Self, msgpack::MsgpackError> {
        let mut reader = Reader::new(packet);
        let (mut code, mut sync) = (0, 0);
        for _ in 0..reader.read_map()? {
            match reader.read_uint()? {
                KEY_TYPE => code = reader.read_uint()?,
                KEY_SYNC => sync = reader.read_uint()?,
                _ => {
                    reader.read_value()?;
                }
            }
        }
        let mut reply = Reply { sync, error: None, data: Vec::new() };
        let mut text = String::new();
        for _ in 0..reader.read_map()? {
            match reader.read_uint()? {
                KEY_DATA => reply.data = reader.read_value()?.to_vec(),
                KEY_ERROR => text = String::from_utf8_lossy(reader.read_str()?).into_owned(),
                _ => {
                    reader.read_value()?;
                }
            }
        }
        if code & ERROR_FLAG != 0 {
            reply.error = Some((code & !ERROR_FLAG, text));
        }
        Ok(reply)
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

/// A connection.
pub struct Client {
    stream: TcpStream,
    greeting: [u8; GREETING_BYTES],
    sync: u64,
}

impl Client {
    /// Connects and reads the greeting.
    pub fn connect(address: &str) -> io::Result<Self> {
        Self::over(TcpStream::connect(address)?)
    }

    /// Reads the greeting of a connection that has been made.
    pub fn over(mut stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY_MAX))?;
        let mut greeting = [0; GREETING_BYTES];
        stream.read_exact(&mut greeting)?;
        Ok(Client { stream, greeting, sync: 0 })
    }

    /// What the server said first.
    pub fn greeting(&self) -> &[u8] {
        &self.greeting
    }

    /// The socket, for what only sockets can do.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Sends bytes. A server that has closed the connection is no reason to fail: the next `receive` tells.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Evaluates a script without arguments.
    pub fn eval(&mut self, source: &str) -> Reply {
        let mut expression = Vec::new();
        msgpack::encode_str(&mut expression, source.as_bytes());
        self.call(EVAL, &request(&[(KEY_EXPRESSION, &expression), (KEY_TUPLE, &[0x90])]))
    }

    /// Says that nothing more will be sent.
    pub fn finish(&self) {
        // A server that has closed the connection already is told nothing.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    /// The next answer. Errors: `UnexpectedEof` if the server closed the connection, `WouldBlock` if nothing came in time.
    pub fn try_receive(&mut self) -> io::Result<Reply> {
        let mut length = [0; 5];
        self.stream.read_exact(&mut length)?;
        let length = Reader::new(&length).read_uint().map_err(io::Error::other)?;
        let mut packet = vec![0; length as usize];
        self.stream.read_exact(&mut packet)?;
        Reply::decode(&packet).map_err(io::Error::other)
    }

    /// All answers of a byte stream.
    pub fn replies(mut bytes: &[u8]) -> Vec<Reply> {
        let mut replies = Vec::new();
        while let Some((length, rest)) = bytes.split_at_checked(5) {
            let length = Reader::new(length).read_uint().expect("a length") as usize;
            replies.push(Reply::decode(&rest[..length]).expect("an answer"));
            bytes = &rest[length..];
        }
        replies
    }

    /// The next answer, which must come.
    pub fn receive(&mut self) -> Reply {
        self.try_receive().unwrap_or_else(|error| panic!("no answer: {error}"))
    }

    /// True if the server has closed the connection, false if it sent something instead or nothing came in time.
    pub fn is_closed(&mut self) -> bool {
        match self.stream.read(&mut [0; 1]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    /// Sends a request and reads its answer, which must carry its sync.
    pub fn call(&mut self, request_type: u64, body: &[u8]) -> Reply {
        self.sync += 1;
        let sync = self.sync;
        self.send(&packet(request_type, sync, body));
        let reply = self.receive();
        assert_eq!(reply.sync, sync, "{reply:?}");
        reply
    }

    /// Asserts that the connection is served.
    pub fn ping(&mut self) {
        let reply = self.call(PING, &[]);
        assert_eq!(reply.error, None);
    }
}
