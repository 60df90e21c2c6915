//! A client over any stream of bytes: one request at a time, or many in flight.
//!
//! The stream decides how waits are done: one that blocks its thread, one whose fiber yields, one of a simulated machine. It decides how long they
//! last, too: its errors end the connection.

use crate::answer::{Answer, Malformed, next_answer};
use crate::framing::{begin_stream_packet, end_packet};
use crate::greeting::{GREETING_BYTES, read_salt};
use crate::scramble::{AUTH_METHOD, scramble};
use crate::{key, request_type};
use std::io::{self, ErrorKind, Read, Write};
use tuple::msgpack;

/// How much is asked of the stream at a time: most answers to single requests.
const READ_BYTES: usize = 1 << 14;
/// Buffers that have grown beyond this are given back when they are empty.
const BUFFER_KEPT_MAX: usize = 1 << 20;

/// Why a request has no answer.
#[derive(Debug)]
pub enum ClientError {
    /// The connection is gone, or the stream waits no longer: whether the request was carried out is not known.
    Broken(io::Error),
    /// The server refused.
    Refused {
        /// Number of the error.
        code: u32,
        /// Its words.
        text: String,
    },
    /// The server sent something else than was asked for.
    Absurd(String),
}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> Self {
        ClientError::Broken(error)
    }
}

impl From<Malformed> for ClientError {
    fn from(error: Malformed) -> Self {
        ClientError::Absurd(error.to_string())
    }
}

impl std::fmt::Display for ClientError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ClientError::Broken(error) => write!(f, "the connection broke: {error}"),
            ClientError::Refused { code, text } => write!(f, "the server refused: {text} (error {code})"),
            ClientError::Absurd(text) => write!(f, "the answer makes no sense: {text}"),
        }
    }
}

/// A connection.
pub struct Client<S> {
    stream: S,
    greeting: Box<[u8; GREETING_BYTES]>,
    /// Requests that are not sent yet.
    out: Vec<u8>,
    /// Bytes of answers; the first `used` are done with, those after `filled` are not there yet.
    input: Vec<u8>,
    used: usize,
    filled: usize,
    /// Of the last request.
    sync: u64,
    /// The stream that requests belong to; 0 for none.
    stream_id: u64,
}

impl<S: Read + Write> Client<S> {
    /// Reads the greeting. Errors: there is none.
    pub fn greet(mut stream: S) -> Result<Self, ClientError> {
        let mut greeting = Box::new([0; GREETING_BYTES]);
        stream.read_exact(&mut greeting[..])?;
        Ok(Client { stream, greeting, out: Vec::new(), input: Vec::new(), used: 0, filled: 0, sync: 0, stream_id: 0 })
    }

    /// What the server said first.
    pub fn greeting(&self) -> &[u8; GREETING_BYTES] {
        &self.greeting
    }

    /// The stream.
    pub fn stream(&self) -> &S {
        &self.stream
    }

    /// The same, to change how it waits.
    pub fn stream_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// The stream itself, on which nothing is under way.
    pub fn into_stream(self) -> S {
        self.stream
    }

    /// Logs in by chap-sha1. Errors: the server refuses; its greeting has no salt.
    pub fn log_in(&mut self, user: &str, password: &str) -> Result<(), ClientError> {
        let body = self.login(user, password).ok_or_else(|| ClientError::Absurd("the greeting has no salt".into()))?;
        self.request(request_type::AUTH, |out| out.extend_from_slice(&body)).map(|_| ())
    }

    /// The body of a login to this server. None: its greeting has no salt.
    pub fn login(&self, user: &str, password: &str) -> Option<Vec<u8>> {
        let proof = scramble(password.as_bytes(), &read_salt(&self.greeting)?);
        let mut body = Vec::new();
        msgpack::encode_map(&mut body, 2);
        msgpack::encode_uint(&mut body, key::USER_NAME);
        msgpack::encode_str(&mut body, user.as_bytes());
        msgpack::encode_uint(&mut body, key::TUPLE);
        msgpack::encode_array(&mut body, 2);
        msgpack::encode_str(&mut body, AUTH_METHOD.as_bytes());
        msgpack::encode_str(&mut body, &proof);
        Some(body)
    }

    /// The requests that follow belong to this stream; 0 for none.
    pub fn set_stream(&mut self, stream_id: u64) {
        self.stream_id = stream_id;
    }

    /// Makes a request that leaves with the next `send`; `body` appends a map. Returns the sync that its answer will have.
    pub fn put(&mut self, request_type: u64, body: impl FnOnce(&mut Vec<u8>)) -> u64 {
        self.sync += 1;
        let start = begin_stream_packet(&mut self.out, request_type, self.sync, self.stream_id);
        body(&mut self.out);
        end_packet(&mut self.out, start);
        self.sync
    }

    /// Sends the requests that were made. Errors: the stream's.
    pub fn send(&mut self) -> Result<(), ClientError> {
        self.stream.write_all(&self.out)?;
        self.out.clear();
        self.out.shrink_to(BUFFER_KEPT_MAX);
        Ok(self.stream.flush()?)
    }

    /// Sends any bytes. Errors: the stream's.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Waits for the next answer, whatever it says. Errors: the stream's; bytes that are no answer.
    pub fn receive(&mut self) -> Result<Answer<'_>, ClientError> {
        // The borrow checker does not let an answer out of the loop, so the loop only finds out that there is one.
        while next_answer(&self.input[self.used..self.filled])?.is_none() {
            self.make_room();
            match self.stream.read(&mut self.input[self.filled..]) {
                Ok(0) => return Err(io::Error::from(ErrorKind::UnexpectedEof).into()),
                Ok(got) => self.filled += got,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        let start = self.used;
        let (answer, length) = next_answer(&self.input[start..self.filled])?.ok_or(Malformed)?;
        self.used += length;
        Ok(answer)
    }

    /// Moves what is left to the front, so that more can be read behind it. Answers grow the buffer only as their bytes come.
    fn make_room(&mut self) {
        if self.used > 0 {
            self.input.copy_within(self.used..self.filled, 0);
            self.filled -= self.used;
            self.used = 0;
        }
        if self.filled == 0 && self.input.len() > BUFFER_KEPT_MAX {
            self.input = Vec::new();
        }
        if self.input.len() - self.filled < READ_BYTES / 2 {
            self.input.resize((self.input.len() * 2).max(READ_BYTES), 0);
        }
    }

    /// Asks, and waits for the answer, whatever it says. Nothing else may be under way. Errors: those of [`Client::receive`]; it is another
    /// request's.
    pub fn exchange(&mut self, request_type: u64, body: impl FnOnce(&mut Vec<u8>)) -> Result<Answer<'_>, ClientError> {
        let sync = self.put(request_type, body);
        self.send()?;
        let answer = self.receive()?;
        if answer.sync != sync {
            return Err(ClientError::Absurd(format!("the answer to request {} instead of {sync}", answer.sync)));
        }
        Ok(answer)
    }

    /// Asks, and waits for success. Errors: those of [`Client::exchange`]; the server refuses.
    pub fn request(&mut self, request_type: u64, body: impl FnOnce(&mut Vec<u8>)) -> Result<Answer<'_>, ClientError> {
        let answer = self.exchange(request_type, body)?;
        match answer.code {
            0 => Ok(answer),
            code => Err(ClientError::Refused { code, text: answer.error_text() }),
        }
    }

    /// Asks for a sign of life. Errors: as of [`Client::request`].
    pub fn ping(&mut self) -> Result<(), ClientError> {
        self.request(request_type::PING, |out| msgpack::encode_map(out, 0)).map(|_| ())
    }

    /// Calls a procedure; `arguments` appends an array. The encoded array of what it returns. Errors: as of [`Client::request`].
    pub fn call(&mut self, name: &str, arguments: impl FnOnce(&mut Vec<u8>)) -> Result<&[u8], ClientError> {
        self.run(request_type::CALL, key::FUNCTION_NAME, name, arguments)
    }

    /// Evaluates source text; otherwise as `call`. Errors: the connection is lost; what the server refuses, with its code.
    pub fn eval(&mut self, source: &str, arguments: impl FnOnce(&mut Vec<u8>)) -> Result<&[u8], ClientError> {
        self.run(request_type::EVAL, key::EXPRESSION, source, arguments)
    }

    fn run(
        &mut self,
        request_type: u64,
        name: u64,
        text: &str,
        arguments: impl FnOnce(&mut Vec<u8>),
    ) -> Result<&[u8], ClientError> {
        let answer = self.request(request_type, |out| {
            msgpack::encode_map(out, 2);
            msgpack::encode_uint(out, name);
            msgpack::encode_str(out, text.as_bytes());
            msgpack::encode_uint(out, key::TUPLE);
            arguments(out);
        })?;
        Ok(answer.data()?)
    }

    /// Rows of a space whose key begins so, by an iterator; `key` appends an array. The encoded array of rows. Errors: as of [`Client::request`].
    pub fn select(
        &mut self,
        space_id: u64,
        index_id: u64,
        iterator: u64,
        limit: u64,
        key: impl FnOnce(&mut Vec<u8>),
    ) -> Result<&[u8], ClientError> {
        let answer = self.request(request_type::SELECT, |out| {
            msgpack::encode_map(out, 5);
            for (name, value) in
                [(key::SPACE_ID, space_id), (key::INDEX_ID, index_id), (key::LIMIT, limit), (key::ITERATOR, iterator)]
            {
                msgpack::encode_uint(out, name);
                msgpack::encode_uint(out, value);
            }
            msgpack::encode_uint(out, key::KEY);
            key(out);
        })?;
        Ok(answer.data()?)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use crate::answer::{ErrorPart, encode_error};
    use crate::framing::{Header, Packet, begin_answer, next_packet};
    use crate::scramble::{is_proof, password_hash};
    use tuple::msgpack::Reader;

    /// A server in a stream: answers each request at once, a few bytes a read.
    #[derive(Default)]
    struct Echo {
        input: Vec<u8>,
        output: std::collections::VecDeque<u8>,
        /// Answers that were never sent.
        mute: bool,
    }

    fn echo() -> Client<Echo> {
        let mut stream = Echo::default();
        stream.output.extend(crate::greeting("uuid", &[7; 32]));
        Client::greet(stream).unwrap()
    }

    impl Read for Echo {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            if self.output.is_empty() {
                return if self.mute { Err(ErrorKind::TimedOut.into()) } else { Ok(0) };
            }
            let count = out.len().min(7).min(self.output.len());
            out.iter_mut().zip(self.output.drain(..count)).for_each(|(slot, byte)| *slot = byte);
            Ok(count)
        }
    }

    impl Write for Echo {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.input.extend_from_slice(bytes);
            while let Ok(Packet::Complete(packet, length)) = next_packet(&self.input) {
                let (header, body) = Header::decode(packet).unwrap();
                let mut out = Vec::new();
                match header.request_type {
                    request_type::EVAL => {
                        let error = ErrorPart { message: "no eval", code: 42, ..ErrorPart::default() };
                        encode_error(&mut out, header.sync, 1, &[error]);
                    }
                    kind => {
                        let start = begin_answer(&mut out, 0, header.sync + u64::from(kind == 99), 1);
                        msgpack::encode_map(&mut out, 1);
                        msgpack::encode_uint(&mut out, key::DATA);
                        msgpack::encode_array(&mut out, 1);
                        out.extend_from_slice(if body.is_empty() { &[0xc0] } else { body });
                        end_packet(&mut out, start);
                    }
                }
                if !self.mute {
                    self.output.extend(out);
                }
                self.input.drain(..length);
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_login_proves_the_password_and_requests_are_answered() {
        let mut client = echo();
        let body = client.login("alice", "secret").unwrap();
        let proof = body.last_chunk::<20>().unwrap();
        assert!(is_proof(proof, &password_hash(b"secret"), &[7; 20]));
        client.log_in("alice", "secret").unwrap();
        client.ping().unwrap();
        let data = client.call("f", |out| out.extend_from_slice(&[0x91, 5])).unwrap();
        let mut reader = Reader::new(data);
        assert_eq!((reader.read_array(), reader.read_map()), (Ok(1), Ok(2)));
        assert!(client.select(512, 0, 2, 10, |out| out.push(0x90)).unwrap().len() > 10);
        let refused = client.eval("return 1", |out| out.push(0x90)).unwrap_err();
        assert!(matches!(&refused, ClientError::Refused { code: 42, text } if text == "no eval"), "{refused}");
    }

    #[test]
    fn many_requests_are_in_flight_and_large_answers_are_read() {
        let mut client = echo();
        let large = vec![b'x'; 100_000];
        let syncs: Vec<u64> =
            (0..20).map(|_| client.put(request_type::CALL, |out| msgpack::encode_str(out, &large))).collect();
        client.send().unwrap();
        for sync in syncs {
            let answer = client.receive().unwrap();
            assert_eq!((answer.sync, answer.data_count()), (sync, Some(1)));
            assert!(answer.body.len() > large.len());
        }
        let end = client.receive().map(|_| ()).unwrap_err();
        assert!(matches!(end, ClientError::Broken(error) if error.kind() == ErrorKind::UnexpectedEof));
    }

    #[test]
    fn an_answer_to_another_request_and_a_wait_that_is_over_are_errors() {
        let mut client = echo();
        assert!(matches!(client.exchange(99, |out| out.push(0x80)), Err(ClientError::Absurd(_))));
        client.stream_mut().mute = true;
        let late = client.ping().unwrap_err();
        assert!(matches!(late, ClientError::Broken(error) if error.kind() == ErrorKind::TimedOut));
    }
}
