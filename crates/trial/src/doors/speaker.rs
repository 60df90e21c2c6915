//! A connection to a door.

use super::{Ask, Door, Tongue, memcached, redis, sql, tyrant};
use crate::history::{Outcome, Refusal};
use crate::value::Value;
use std::io::{self, Read, Write};

/// The answer to a question is no longer than this.
const ANSWER_BYTES_MAX: usize = 64 << 20;
const READ_BYTES: usize = 16 << 10;
/// Numbers of errors, which the words of the protocols stand for.
const WAL_IO: u32 = 40;
const CONFLICT: u32 = 97;
const DUPLICATE: u32 = 3;
/// How texts of refusals begin that come from another transaction, in SQL: states of PostgreSQL, numbers of MySQL.
const SQL_CONFLICTS: [&str; 6] = ["40001 ", "40P01 ", "55P03 ", "1213 ", "1205 ", "3572 "];
const SQL_DUPLICATES: [&str; 2] = ["23505 ", "1062 "];

/// Why there is no answer to a question.
pub(super) enum Failure {
    /// The connection is dead, or the answer makes no sense.
    Broken,
    /// In the server's words.
    Refused(String),
}

impl From<io::Error> for Failure {
    fn from(_: io::Error) -> Self {
        Failure::Broken
    }
}

/// An answer, the elements of an array.
pub(super) type Answer = Result<Vec<Value>, Failure>;

/// See the head of this file.
pub struct Speaker<S> {
    pub(super) stream: S,
    pub(super) tongue: Tongue,
    /// Bytes that have come.
    input: Vec<u8>,
    /// So many of them are done with.
    used: usize,
}

impl<S: Read + Write> Speaker<S> {
    /// Begins to speak over a stream that is connected. None: the server does not want to.
    pub fn new(stream: S, tongue: Tongue) -> Option<Self> {
        let mut speaker = Speaker { stream, tongue, input: Vec::new(), used: 0 };
        let begun = match tongue.door {
            Door::Redis => redis::begin(&mut speaker),
            Door::Postgres | Door::Mysql => sql::begin(&mut speaker),
            Door::Memcached | Door::Tyrant => Ok(()),
        };
        begun.ok().map(|()| speaker)
    }

    /// How it speaks.
    pub fn tongue(&self) -> Tongue {
        self.tongue
    }

    /// Performs an operation and waits for its answer.
    pub fn perform(&mut self, ask: &Ask) -> Outcome {
        let answer = match self.tongue.door {
            Door::Redis => redis::perform(self, ask),
            Door::Memcached => memcached::perform(self, ask),
            Door::Tyrant => tyrant::perform(self, ask),
            Door::Postgres | Door::Mysql => sql::perform(self, ask),
        };
        match answer {
            Ok(values) => Outcome::Done(Value::Array(values)),
            Err(Failure::Broken) => Outcome::Unknown,
            Err(Failure::Refused(text)) => {
                let code = match () {
                    () if text.contains("write to disk") => WAL_IO,
                    () if text.contains("conflict") => CONFLICT,
                    () if SQL_CONFLICTS.iter().any(|begin| text.starts_with(begin)) => CONFLICT,
                    () if SQL_DUPLICATES.iter().any(|begin| text.starts_with(begin)) => DUPLICATE,
                    () => 0,
                };
                Outcome::Refused(Refusal { code, text })
            }
        }
    }

    /// Sends.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// Waits for more.
    fn fill(&mut self) -> io::Result<()> {
        if self.used > 0 {
            self.input.drain(..self.used);
            self.used = 0;
        }
        let held = self.input.len();
        if held > ANSWER_BYTES_MAX {
            return Err(io::Error::other("the answer has no end"));
        }
        self.input.resize(held + READ_BYTES, 0);
        let read = self.stream.read(&mut self.input[held..]);
        self.input.truncate(held + *read.as_ref().unwrap_or(&0));
        match read? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// So many bytes.
    pub(super) fn take(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.input.len() - self.used < count {
            self.fill()?;
        }
        let bytes = self.input[self.used..self.used + count].to_vec();
        self.used += count;
        Ok(bytes)
    }

    /// A line, without its end.
    pub(super) fn line(&mut self) -> io::Result<String> {
        loop {
            let rest = &self.input[self.used..];
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line = String::from_utf8_lossy(&rest[..end]).trim_end_matches('\r').to_string();
                self.used += end + 1;
                return Ok(line);
            }
            self.fill()?;
        }
    }

    /// A number, big endian.
    pub(super) fn u32(&mut self) -> io::Result<u32> {
        Ok(self.take(4)?.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
    }
}

/// What a protocol has no words for.
pub(super) fn unspeakable(ask: &Ask) -> Failure {
    Failure::Refused(format!("{ask:?} cannot be said through this door"))
}
