//! One connection of a flow: its window, what is to be sent, what has arrived in part.

use crate::door::{self, Door, Expect};
use crate::window::{Slot, Window};
use hdrhistogram::Histogram;
use runtime::net::Stream;
use runtime::tls::Session;
use std::io::{self, ErrorKind, Read, Write};
use wire::ClientError;

/// How much is asked of a socket at a time, at least.
const READ_BYTES: usize = 1 << 18;

/// A buffer that all connections of a thread read into: it stays in the cache, where one for each would not.
pub(crate) struct Input {
    bytes: Vec<u8>,
}

impl Input {
    pub(crate) fn new() -> Self {
        Input { bytes: vec![0; 2 * READ_BYTES] }
    }
}

/// A connection.
pub(crate) struct Lane {
    stream: Stream,
    /// Of a connection by TLS.
    session: Option<Session>,
    door: Door,
    pub(crate) window: Window,
    /// Requests that are not sent yet, but for the first `sent` bytes.
    pub(crate) out: Vec<u8>,
    sent: usize,
    /// The beginning of an answer whose rest has not arrived.
    rest: Vec<u8>,
    /// Answers so far.
    pub(crate) answered: u64,
}

impl Lane {
    pub(crate) fn new((stream, session): (Stream, Option<Session>), door: Door, depth: u32) -> Self {
        Lane {
            stream,
            session,
            door,
            window: Window::new(depth, door.is_ordered()),
            out: Vec::new(),
            sent: 0,
            rest: Vec::new(),
            answered: 0,
        }
    }

    pub(crate) fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }

    /// Sends what the socket takes.
    pub(crate) fn send(&mut self) -> io::Result<()> {
        while self.sent < self.out.len() {
            let written = match &mut self.session {
                Some(session) => match session.write(&self.stream, &self.out[self.sent..])? {
                    // What is sealed and has not gone goes first.
                    written if written.accepted == 0 => return Ok(()),
                    written => Ok(written.accepted),
                },
                None => (&self.stream).write(&self.out[self.sent..]),
            };
            match written {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.sent = 0;
        match &mut self.session {
            Some(session) => session.flush(&mut &self.stream),
            None => Ok(()),
        }
    }

    /// True if nothing waits for room in the socket.
    pub(crate) fn is_sent(&self) -> bool {
        self.out.is_empty() && !self.session.as_ref().is_some_and(Session::has_sealed)
    }

    /// Reads and checks what has arrived; how many answers were in it.
    pub(crate) fn read(
        &mut self,
        input: &mut Input,
        expects: &[Expect],
        now_ns: impl Fn() -> u64,
        latencies: &mut Histogram<u64>,
    ) -> Result<u64, ClientError> {
        let before = self.answered;
        loop {
            let start = self.rest.len();
            if input.bytes.len() < start + READ_BYTES {
                input.bytes.resize(2 * (start + READ_BYTES), 0);
            }
            input.bytes[..start].copy_from_slice(&self.rest);
            let room = input.bytes.len() - start;
            let read = match &mut self.session {
                Some(session) => session.read(&self.stream, &mut input.bytes[start..]),
                None => (&self.stream).read(&mut input.bytes[start..]),
            };
            let got = match read {
                Ok(0) => return Err(io::Error::from(ErrorKind::UnexpectedEof).into()),
                Ok(got) => got,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            self.take_answers(&input.bytes[..start + got], expects, now_ns(), latencies)?;
            // The socket gave less than it might: it is empty, and says so when it is not any more.
            if got < room {
                break;
            }
        }
        Ok(self.answered - before)
    }

    fn take_answers(
        &mut self,
        bytes: &[u8],
        expects: &[Expect],
        now_ns: u64,
        latencies: &mut Histogram<u64>,
    ) -> Result<(), ClientError> {
        let mut used = 0;
        while let Some((answer, length)) = self.door.next_answer(&bytes[used..])? {
            let sync = match &answer {
                door::Answer::Iproto(answer) => Some(answer.sync),
                _ => None,
            };
            let Some(Slot { begun_ns, key, share }) = self.window.end(sync) else {
                return Err(ClientError::Absurd(format!("an answer that nobody asked for: {answer:?}")));
            };
            door::check(&answer, expects[share as usize], key)?;
            latencies.saturating_record(now_ns.saturating_sub(begun_ns) / 1000);
            self.answered += 1;
            used += length;
        }
        self.rest.clear();
        self.rest.extend_from_slice(&bytes[used..]);
        Ok(())
    }
}
