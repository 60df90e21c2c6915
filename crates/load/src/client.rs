//! A client that blocks, or whose stream lets others run meanwhile: one connection, requests one by one or several at once.

use crate::value::Value;
use runtime::net::{BlockingStream, Stream};
use runtime::tls::{Connector, Session};
use std::io::{ErrorKind, Read, Write};
use std::time::Duration;
use tuple::msgpack;
use wire::{ClientError, Malformed, key, request_type};

/// Longest wait for an answer or a connection.
const WAIT_MAX: Duration = Duration::from_secs(60);
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

/// A stream, perhaps sealed by TLS.
pub struct Link {
    stream: BlockingStream,
    session: Option<Session>,
}

impl Link {
    /// Connects; by TLS if there is a connector. Errors: the connection is lost or its time is up; the other side does not speak TLS.
    pub(crate) fn dial(address: &str, connector: Option<&Connector>) -> Result<Self, ClientError> {
        let stream = dial(address)?;
        let mut link = Link { stream, session: None };
        if let Some(connector) = connector {
            let mut session = Session::connect(connector, address)?;
            session.shake_hands(&mut link.stream)?;
            link.session = Some(session);
        }
        Ok(link)
    }

    /// The two parts, for a client that does not wait. Errors: the system's.
    pub(crate) fn into_nonblocking(self) -> std::io::Result<(Stream, Option<Session>)> {
        Ok((self.stream.into_nonblocking()?, self.session))
    }
}

impl Read for Link {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let Some(session) = &mut self.session else { return self.stream.read(out) };
        loop {
            match session.read(Once { stream: &mut self.stream, is_read: false }, out) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}

/// A stream that is read once: whoever blocks must not wait for more than there is.
struct Once<'a> {
    stream: &'a mut BlockingStream,
    is_read: bool,
}

impl Read for Once<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        match std::mem::replace(&mut self.is_read, true) {
            true => Err(ErrorKind::WouldBlock.into()),
            // Its time is up.
            false => self.stream.read(out).map_err(|error| match error.kind() {
                ErrorKind::WouldBlock => ErrorKind::TimedOut.into(),
                _ => error,
            }),
        }
    }
}

impl Write for Once<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush()
    }
}

impl Write for Link {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match &mut self.session {
            Some(session) => session.write(&mut self.stream, bytes).map(|written| written.accepted),
            None => self.stream.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.stream.flush()
    }
}

/// A connection.
pub struct Client<S = BlockingStream> {
    connection: wire::Client<S>,
}

/// The values of an encoded array.
fn values(data: &[u8]) -> Result<Vec<Value>, ClientError> {
    match Value::decode(data) {
        Some(Value::Array(values)) => Ok(values),
        _ => Err(Malformed.into()),
    }
}

/// The first value of an encoded array; nil of an empty one.
fn first_value(data: &[u8]) -> Result<Value, ClientError> {
    Ok(values(data)?.into_iter().next().unwrap_or(Value::Nil))
}

/// Appends an array of numbers.
fn put_numbers(out: &mut Vec<u8>, numbers: &[u64]) {
    msgpack::encode_array(out, numbers.len() as u32);
    numbers.iter().for_each(|number| msgpack::encode_uint(out, *number));
}

impl Client {
    /// Connects and reads the greeting; logs in if a user is given.
    ///
    /// Errors: the connection is lost or its time is up; what the server refuses, in its words.
    pub fn connect(address: &str, login: Option<(&str, &str)>) -> Result<Self, ClientError> {
        let mut connection = wire::Client::greet(dial(address)?)?;
        if let Some((user, password)) = login {
            connection.log_in(user, password)?;
        }
        Ok(Client { connection })
    }

    /// How long the next answers may take. Errors: the connection is lost or its time is up; what the server refuses, in its words.
    pub fn wait_at_most(&mut self, time: Duration) -> Result<(), ClientError> {
        Ok(self.connection.stream().set_read_timeout(Some(time))?)
    }
}

impl Client<Link> {
    /// Connects by TLS if there is a connector, and reads the greeting; logs in if a user is given. Errors: as [`Client::connect`].
    pub fn connect_by(
        address: &str,
        connector: Option<&Connector>,
        login: Option<(&str, &str)>,
    ) -> Result<Self, ClientError> {
        let mut connection = wire::Client::greet(Link::dial(address, connector)?)?;
        if let Some((user, password)) = login {
            connection.log_in(user, password)?;
        }
        Ok(Client { connection })
    }

    /// The connection itself, on which nothing is under way.
    pub(crate) fn into_link(self) -> Link {
        self.connection.into_stream()
    }
}

impl<S: Read + Write> Client<S> {
    /// A client on a fresh connection: reads the greeting. Errors: there is none.
    pub fn greet(stream: S) -> Result<Self, ClientError> {
        Ok(Client { connection: wire::Client::greet(stream)? })
    }

    /// Calls a procedure; the first value it returns. Errors: the connection is lost or its time is up; what the server refuses, in its words.
    pub fn call(&mut self, name: &str, arguments: &[u64]) -> Result<Value, ClientError> {
        first_value(self.connection.call(name, |out| put_numbers(out, arguments))?)
    }

    /// Runs Lua with unsigned arguments; the first value it returns.
    ///
    /// Errors: the connection is lost or its time is up; what the server refuses, in its words.
    pub fn eval(&mut self, expression: &str, arguments: &[u64]) -> Result<Value, ClientError> {
        first_value(self.connection.eval(expression, |out| put_numbers(out, arguments))?)
    }

    /// Calls a procedure once for each list of arguments, many calls in flight; what they return is not looked at.
    pub fn call_each<const N: usize>(
        &mut self,
        name: &str,
        calls: impl Iterator<Item = [u64; N]>,
    ) -> Result<(), ClientError> {
        let mut waiting = 0;
        for arguments in calls {
            self.connection.put(request_type::CALL, |out| {
                msgpack::encode_map(out, 2);
                msgpack::encode_uint(out, key::FUNCTION_NAME);
                msgpack::encode_str(out, name.as_bytes());
                msgpack::encode_uint(out, key::TUPLE);
                put_numbers(out, &arguments);
            });
            waiting += 1;
            if waiting == CALLS_IN_FLIGHT {
                self.take_successes(waiting)?;
                waiting = 0;
            }
        }
        self.take_successes(waiting)
    }

    /// Sends what was made, and waits for so many answers. Errors: one of them is an error.
    fn take_successes(&mut self, count: usize) -> Result<(), ClientError> {
        self.connection.send()?;
        for _ in 0..count {
            let answer = self.connection.receive()?;
            if answer.code != 0 {
                return Err(ClientError::Refused { code: answer.code, text: answer.error_text() });
            }
        }
        Ok(())
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
        values(self.connection.select(space, index, order as u64, u64::from(limit), put_key)?)
    }

    /// All rows of a space. Errors: the connection is lost or its time is up; what the server refuses, in its words.
    pub fn select_all(&mut self, space: u64) -> Result<Vec<Value>, ClientError> {
        self.select(space, 0, Order::All, u32::MAX, |out| msgpack::encode_array(out, 0))
    }

    /// The row with the largest key. Errors: the connection is lost or its time is up; what the server refuses, in its words.
    pub fn last_row(&mut self, space: u64) -> Result<Option<Value>, ClientError> {
        Ok(self.select(space, 0, Order::Less, 1, |out| msgpack::encode_array(out, 0))?.into_iter().next())
    }

    /// The number of a space. Errors: the connection is lost or its time is up; what the server refuses, in its words.
    pub fn space_id(&mut self, name: &str) -> Result<u64, ClientError> {
        let rows = self.select(VSPACE, VSPACE_BY_NAME, Order::Equal, 1, |out| {
            msgpack::encode_array(out, 1);
            msgpack::encode_str(out, name.as_bytes());
        })?;
        let id = rows.first().and_then(|row| row.array().first()?.unsigned());
        id.ok_or_else(|| ClientError::Absurd(format!("there is no space `{name}`")))
    }

    /// The requests that follow belong to this stream of the connection; 0 for none.
    pub fn set_stream(&mut self, stream_id: u64) {
        self.connection.set_stream(stream_id);
    }

    /// BEGIN, COMMIT or ROLLBACK. Errors: the connection is lost or its time is up; what the server refuses, in its words.
    pub fn control(&mut self, request_type: u64) -> Result<(), ClientError> {
        self.connection.request(request_type, |out| msgpack::encode_map(out, 0)).map(|_| ())
    }

    /// BEGIN with a level of isolation, by its number. Errors: as `control`.
    pub fn begin(&mut self, isolation: u64) -> Result<(), ClientError> {
        let body = |out: &mut Vec<u8>| {
            msgpack::encode_map(out, 1);
            msgpack::encode_uint(out, key::TXN_ISOLATION);
            msgpack::encode_uint(out, isolation);
        };
        self.connection.request(request_type::BEGIN, body).map(|_| ())
    }

    /// The row with an unsigned primary key. Errors: the connection is lost or its time is up; what the server refuses, in its words.
    pub fn get(&mut self, space: u64, id: u64) -> Result<Option<Value>, ClientError> {
        Ok(self.select(space, 0, Order::Equal, 1, |out| put_numbers(out, &[id]))?.into_iter().next())
    }

    /// Adds to the second field of the row with an unsigned primary key.
    ///
    /// Errors: the connection is lost or its time is up; what the server refuses, in its words.
    pub fn add(&mut self, space: u64, id: u64, amount: i64) -> Result<(), ClientError> {
        let body = |out: &mut Vec<u8>| {
            msgpack::encode_map(out, 3);
            msgpack::encode_uint(out, key::SPACE_ID);
            msgpack::encode_uint(out, space);
            msgpack::encode_uint(out, key::KEY);
            put_numbers(out, &[id]);
            msgpack::encode_uint(out, key::TUPLE);
            msgpack::encode_array(out, 1);
            msgpack::encode_array(out, 3);
            msgpack::encode_str(out, b"+");
            msgpack::encode_uint(out, 1);
            msgpack::encode_int(out, amount);
        };
        self.connection.request(request_type::UPDATE, body).map(|_| ())
    }

    /// Asks for a sign of life. Errors: the connection is lost or its time is up; what the server refuses, in its words.
    pub fn ping(&mut self) -> Result<(), ClientError> {
        self.connection.ping()
    }
}

/// Opens a connection, past whatever the server says first.
fn dial(address: &str) -> Result<BlockingStream, ClientError> {
    let stream = runtime::net::connect(address, WAIT_MAX)?;
    stream.set_read_timeout(Some(WAIT_MAX))?;
    stream.set_write_timeout(Some(WAIT_MAX))?;
    Ok(stream)
}
