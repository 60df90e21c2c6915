//! A small client of PostgreSQL's protocol over any stream: prepared statements with 64-bit numbers, one request in flight.

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::IsNull;
use postgres_protocol::message::{backend, frontend};
use std::io::{Read, Write};

const READ_BYTES: usize = 16 << 10;
/// The binary format.
const BINARY: i16 = 1;

/// Why something did not happen.
pub(crate) struct Failure {
    /// SQLSTATE; empty if the connection broke.
    pub(crate) code: String,
    pub(crate) text: String,
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure { code: String::new(), text: error.to_string() }
    }
}

impl From<Failure> for String {
    fn from(failure: Failure) -> String {
        format!("postgresql: {} {}", failure.code, failure.text)
    }
}

/// A connection.
pub(crate) struct PlainPostgres<S> {
    stream: S,
    out: BytesMut,
    input: BytesMut,
}

impl<S: Read + Write> PlainPostgres<S> {
    /// Logs in; the server has to trust. Errors: it does not, or the connection broke.
    pub(crate) fn connect(stream: S, user: &str, database: &str) -> Result<Self, Failure> {
        let mut client = PlainPostgres { stream, out: BytesMut::new(), input: BytesMut::new() };
        frontend::startup_message([("user", user), ("database", database)], &mut client.out)?;
        client.exchange()?;
        Ok(client)
    }

    /// Prepares a statement under a name. Errors: the server's.
    pub(crate) fn prepare(&mut self, name: &str, text: &str) -> Result<(), Failure> {
        frontend::parse(name, text, [], &mut self.out)?;
        frontend::sync(&mut self.out);
        self.exchange().map(|_| ())
    }

    /// Runs a text. Errors: the server's.
    pub(crate) fn simple(&mut self, text: &str) -> Result<(), Failure> {
        frontend::query(text, &mut self.out)?;
        self.exchange().map(|_| ())
    }

    /// Runs a prepared statement; how many rows it answered. Errors: the server's.
    pub(crate) fn run(&mut self, name: &str, values: &[i64]) -> Result<u64, Failure> {
        let put = |value: &i64, out: &mut BytesMut| {
            out.extend_from_slice(&value.to_be_bytes());
            Ok(IsNull::No)
        };
        frontend::bind("", name, [BINARY], values, put, [BINARY], &mut self.out)
            .map_err(|_| Failure { code: String::new(), text: "the values do not fit into a message".into() })?;
        frontend::execute("", 0, &mut self.out)?;
        frontend::sync(&mut self.out);
        self.exchange()
    }

    /// Sends what was made, and waits until the server is ready again.
    fn exchange(&mut self) -> Result<u64, Failure> {
        self.stream.write_all(&self.out)?;
        self.out.clear();
        let (mut rows, mut failure) = (0, None);
        loop {
            while let Some(message) = backend::Message::parse(&mut self.input)? {
                match message {
                    backend::Message::DataRow(_) => rows += 1,
                    backend::Message::ErrorResponse(body) => failure = Some(described(&body)?),
                    backend::Message::ReadyForQuery(_) => return failure.map_or(Ok(rows), Err),
                    _ => {}
                }
            }
            if let Some(failure) = failure {
                // Before the login is over nothing follows an error.
                if failure.code.starts_with("28") {
                    return Err(failure);
                }
                return self.until_ready(failure);
            }
            self.read()?;
        }
    }

    /// Reads past what follows an error.
    fn until_ready(&mut self, failure: Failure) -> Result<u64, Failure> {
        loop {
            while let Some(message) = backend::Message::parse(&mut self.input)? {
                if matches!(message, backend::Message::ReadyForQuery(_)) {
                    return Err(failure);
                }
            }
            self.read()?;
        }
    }

    fn read(&mut self) -> Result<(), Failure> {
        let mut bytes = [0; READ_BYTES];
        match self.stream.read(&mut bytes)? {
            0 => Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into()),
            count => {
                self.input.extend_from_slice(&bytes[..count]);
                Ok(())
            }
        }
    }
}

fn described(body: &backend::ErrorResponseBody) -> Result<Failure, std::io::Error> {
    let mut failure = Failure { code: String::new(), text: String::new() };
    let mut fields = body.fields();
    while let Some(field) = fields.next()? {
        let value = String::from_utf8_lossy(field.value_bytes()).into_owned();
        match field.type_() {
            b'C' => failure.code = value,
            b'M' => failure.text = value,
            _ => {}
        }
    }
    Ok(failure)
}
