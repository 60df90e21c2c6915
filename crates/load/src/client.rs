//! A blocking client: one connection, requests one by one or several at once.

use crate::wire::{
    Answer, Malformed, Value, key, next_answer, put_array, put_call, put_packet, put_str, put_uint, request,
};
use base64::Engine;
use sha1::{Digest, Sha1};
use std::io::{self, Read, Write};
use std::time::Duration;

/// The connection below it.
pub(crate) type Stream = runtime::net::BlockingStream;

/// Longest wait for an answer or a connection.
const WAIT_MAX: Duration = Duration::from_secs(60);
const GREETING_BYTES: usize = 128;
/// How much is asked of the socket at a time: all answers that the workloads ask for one by one, and most of the long ones.
const READ_BYTES: usize = 1 << 16;
/// Calls in flight while rows are loaded through procedures.
const CALLS_IN_FLIGHT: usize = 128;
/// The view of all spaces that a user may see, and its index by name.
const VSPACE: u64 = 281;
const VSPACE_BY_NAME: u64 = 2;

/// Order of a select; the numbers are the protocol's.
#[derive(Clone, Copy)]
pub enum Order {
    /// Rows of this key.
    Equal = 0,
    /// All, from the smallest key up.
    All = 2,
    /// From the largest key down.
    Less = 3,
}

/// Why a request has no answer.
#[derive(Debug)]
pub enum ClientError {
    /// The connection is gone: whether the request was carried out is not known.
    Broken(io::Error),
    /// The server refused.
    Refused {
        /// Tarantool's number of the error.
        code: u32,
        /// Its words.
        text: String,
    },
    /// The server answered something else than was asked for.
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
pub struct Client {
    stream: Stream,
    /// Requests that are not sent yet.
    out: Vec<u8>,
    /// Bytes of answers; the first `used` are done with, those after `filled` are not there yet.
    input: Vec<u8>,
    used: usize,
    filled: usize,
}

impl Client {
    /// Connects and reads the greeting; logs in if a user is given.
    pub fn connect(address: &str, login: Option<(&str, &str)>) -> Result<Self, ClientError> {
        let mut stream = dial(address)?;
        let mut greeting = [0; GREETING_BYTES];
        stream.read_exact(&mut greeting)?;
        let mut client = Client { stream, out: Vec::new(), input: vec![0; READ_BYTES], used: 0, filled: 0 };
        if let Some((user, password)) = login {
            let salt = salt_of(&greeting).ok_or_else(|| ClientError::Absurd("the greeting has no salt".into()))?;
            client.log_in(user, password, &salt)?;
        }
        Ok(client)
    }

    /// A connection of another protocol, on which nothing has been said.
    pub(crate) fn connect_raw(address: &str) -> Result<Stream, ClientError> {
        dial(address)
    }

    /// How long the next answers may take.
    pub fn wait_at_most(&mut self, time: Duration) -> Result<(), ClientError> {
        Ok(self.stream.set_read_timeout(Some(time))?)
    }

    /// The connection itself, on which nothing is under way.
    pub(crate) fn into_stream(self) -> Stream {
        self.stream
    }

    fn log_in(&mut self, user: &str, password: &str, salt: &[u8; 20]) -> Result<(), ClientError> {
        put_packet(&mut self.out, request::AUTH, 0, |out| {
            out.extend_from_slice(&[0x82, key::USER_NAME]);
            put_str(out, user.as_bytes());
            out.push(key::TUPLE);
            put_array(out, 2);
            put_str(out, b"chap-sha1");
            put_str(out, &scramble(password, salt));
        });
        self.round_trip().map(|_| ())
    }

    /// Sends what waits in `out` and waits for one answer.
    fn round_trip(&mut self) -> Result<Answer<'_>, ClientError> {
        self.send()?;
        self.receive()
    }

    fn send(&mut self) -> Result<(), ClientError> {
        self.stream.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    /// Waits for the next answer. Errors: it is an error.
    fn receive(&mut self) -> Result<Answer<'_>, ClientError> {
        // The borrow checker does not let an answer out of the loop, so the loop only finds out that there is one.
        while next_answer(&self.input[self.used..self.filled])?.is_none() {
            if self.used > 0 {
                self.input.copy_within(self.used..self.filled, 0);
                self.filled -= self.used;
                self.used = 0;
            }
            if self.input.len() - self.filled < READ_BYTES / 2 {
                self.input.resize(self.input.len() * 2, 0);
            }
            match self.stream.read(&mut self.input[self.filled..])? {
                0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                got => self.filled += got,
            }
        }
        let start = self.used;
        let (answer, length) = next_answer(&self.input[start..self.filled])?.ok_or(Malformed)?;
        self.used += length;
        match answer.code {
            0 => Ok(answer),
            code => Err(ClientError::Refused { code, text: answer.error_text() }),
        }
    }

    /// Calls a procedure; the first value it returns.
    pub fn call(&mut self, name: &str, arguments: &[u64]) -> Result<Value, ClientError> {
        put_call(&mut self.out, 1, name, arguments);
        Ok(self.round_trip()?.data()?.into_iter().next().unwrap_or(Value::Nil))
    }

    /// Runs Lua with unsigned arguments; the first value it returns.
    pub fn eval(&mut self, expression: &str, arguments: &[u64]) -> Result<Value, ClientError> {
        put_packet(&mut self.out, request::EVAL, 1, |out| {
            out.extend_from_slice(&[0x82, key::EXPRESSION]);
            put_str(out, expression.as_bytes());
            out.push(key::TUPLE);
            put_array(out, arguments.len());
            arguments.iter().for_each(|argument| put_uint(out, *argument));
        });
        Ok(self.round_trip()?.data()?.into_iter().next().unwrap_or(Value::Nil))
    }

    /// Calls a procedure once for each list of arguments, many calls in flight; what they return is not looked at.
    pub fn call_each<const N: usize>(
        &mut self,
        name: &str,
        calls: impl Iterator<Item = [u64; N]>,
    ) -> Result<(), ClientError> {
        let mut waiting = 0;
        for arguments in calls {
            put_call(&mut self.out, 1, name, &arguments);
            waiting += 1;
            if waiting == CALLS_IN_FLIGHT {
                self.send()?;
                while waiting > 0 {
                    self.receive()?;
                    waiting -= 1;
                }
            }
        }
        self.send()?;
        (0..waiting).try_for_each(|_| self.receive().map(|_| ()))
    }

    /// Rows of a space. The key has at most one part, which is written by `put_key`.
    fn select(
        &mut self,
        space: u64,
        index: u64,
        order: Order,
        limit: u32,
        put_key: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Vec<Value>, ClientError> {
        put_packet(&mut self.out, request::SELECT, 1, |out| {
            out.push(0x85);
            for (name, value) in [
                (key::SPACE_ID, space),
                (key::INDEX_ID, index),
                (key::LIMIT, u64::from(limit)),
                (key::ITERATOR, order as u64),
            ] {
                out.push(name);
                put_uint(out, value);
            }
            out.push(key::KEY);
            put_key(out);
        });
        Ok(self.round_trip()?.data()?)
    }

    /// All rows of a space.
    pub fn select_all(&mut self, space: u64) -> Result<Vec<Value>, ClientError> {
        self.select(space, 0, Order::All, u32::MAX, |out| put_array(out, 0))
    }

    /// The row with the largest key.
    pub fn last_row(&mut self, space: u64) -> Result<Option<Value>, ClientError> {
        Ok(self.select(space, 0, Order::Less, 1, |out| put_array(out, 0))?.into_iter().next())
    }

    /// The number of a space.
    pub fn space_id(&mut self, name: &str) -> Result<u64, ClientError> {
        let rows = self.select(VSPACE, VSPACE_BY_NAME, Order::Equal, 1, |out| {
            put_array(out, 1);
            put_str(out, name.as_bytes());
        })?;
        let id = rows.first().and_then(|row| row.array().first()?.unsigned());
        id.ok_or_else(|| ClientError::Absurd(format!("there is no space `{name}`")))
    }

    /// Asks for a sign of life.
    pub fn ping(&mut self) -> Result<(), ClientError> {
        put_packet(&mut self.out, request::PING, 1, |out| out.push(0x80));
        self.round_trip().map(|_| ())
    }
}

/// Opens a connection, past whatever the server says first.
fn dial(address: &str) -> Result<Stream, ClientError> {
    let stream = runtime::net::connect(address, WAIT_MAX)?;
    stream.set_read_timeout(Some(WAIT_MAX))?;
    stream.set_write_timeout(Some(WAIT_MAX))?;
    Ok(stream)
}

/// The first 20 bytes of the salt in the greeting's second line; logging in needs no more.
fn salt_of(greeting: &[u8; GREETING_BYTES]) -> Option<[u8; 20]> {
    let salt = base64::engine::general_purpose::STANDARD.decode(greeting[64..108].trim_ascii()).ok()?;
    salt.first_chunk().copied()
}

/// chap-sha1: what proves that the password is known without sending it.
fn scramble(password: &str, salt: &[u8; 20]) -> [u8; 20] {
    let once: [u8; 20] = Sha1::digest(password.as_bytes()).into();
    let mut mask = Sha1::new();
    mask.update(salt);
    mask.update(Sha1::digest(once));
    let mask: [u8; 20] = mask.finalize().into();
    std::array::from_fn(|at| once[at] ^ mask[at])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    #[test]
    fn the_salt_is_taken_from_the_second_line() {
        let mut greeting = [b' '; GREETING_BYTES];
        greeting[..31].copy_from_slice(b"Tarantool 2.6.0 (Binary) 1234-5");
        let salt: Vec<u8> = (0..32).collect();
        let text = base64::engine::general_purpose::STANDARD.encode(&salt);
        greeting[64..108].copy_from_slice(text.as_bytes());
        assert_eq!(salt_of(&greeting).unwrap(), salt[..20]);
        greeting[64..108].fill(b' ');
        assert_eq!(salt_of(&greeting), None);
    }

    #[test]
    fn a_scramble_proves_the_password_to_who_knows_its_double_hash() {
        let salt = [7; 20];
        let stored = Sha1::digest(Sha1::digest(b"secret"));
        let mut mask = Sha1::new();
        mask.update(salt);
        mask.update(stored);
        let mask: [u8; 20] = mask.finalize().into();
        let once: Vec<u8> = scramble("secret", &salt).iter().zip(mask).map(|(a, b)| a ^ b).collect();
        assert_eq!(Sha1::digest(once), stored);
    }
}
