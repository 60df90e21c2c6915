//! What every connection has: a socket, input not understood yet, answers that may leave and answers that wait.
//!
//! ```text
//! answers --> ready (may leave) ------------------------------> socket
//!        \--> parked, marked with a log position --(durable)--> ready
//! ```
//!
//! Parked answers leave in the order in which they were parked; ready ones pass them, as the protocol allows.

use crate::iproto;
use crate::sender::Outlet;
use database::{Context, Database, Error, Session};
use runtime::net::Token;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::rc::Rc;
use std::sync::Arc;
use wal::Position;

/// A parked answer.
struct Mark {
    position: Position,
    /// End of its bytes in `parked`, counted from the beginning of all time.
    end: u64,
    /// Identifier of its request, for an error in its place.
    sync: u64,
}

/// Bytes on their way to the client.
#[derive(Default)]
pub(crate) struct Output {
    ready: Vec<u8>,
    parked: Vec<u8>,
    /// Bytes of `parked` that were moved to `ready` before, in all.
    moved: u64,
    marks: VecDeque<Mark>,
}

impl Output {
    /// The buffer to encode an answer into, and where it begins.
    pub(crate) fn begin(&mut self, is_parked: bool) -> &mut Vec<u8> {
        if is_parked { &mut self.parked } else { &mut self.ready }
    }

    /// Marks the end of a parked answer.
    pub(crate) fn park(&mut self, position: Position, sync: u64) {
        let end = self.moved + self.parked.len() as u64;
        let position = self.marks.back().map_or(position, |last| last.position.max(position));
        self.marks.push_back(Mark { position, end, sync });
    }

    /// Lets answers leave that wait for nothing beyond `durable`.
    pub(crate) fn release(&mut self, durable: Position) {
        let mut end = self.moved;
        while let Some(mark) = self.marks.front()
            && mark.position <= durable
        {
            end = mark.end;
            self.marks.pop_front();
        }
        let count = (end - self.moved) as usize;
        if count == 0 {
            return;
        }
        if count == self.parked.len() && self.ready.is_empty() {
            std::mem::swap(&mut self.ready, &mut self.parked);
        } else {
            self.ready.extend_from_slice(&self.parked[..count]);
            self.parked.drain(..count);
        }
        self.moved = end;
    }

    /// The log failed: every parked answer becomes an error.
    pub(crate) fn fail(&mut self, error: &Error, schema_version: u64) {
        self.moved += self.parked.len() as u64;
        self.parked.clear();
        for mark in self.marks.drain(..) {
            iproto::encode_error(&mut self.ready, mark.sync, schema_version, error);
        }
    }

    /// Bytes of answers that are not with the socket yet.
    fn held(&self) -> usize {
        self.ready.len() + self.parked.len()
    }

    pub(crate) fn has_parked(&self) -> bool {
        !self.marks.is_empty()
    }
}

/// One client. Shared between the event loop and the fibers that serve its requests.
pub(crate) struct Connection {
    pub(crate) token: Token,
    pub(crate) outlet: Arc<Outlet>,
    pub(crate) session: Rc<Session>,
    /// Requests that cannot wait share this; others get their own.
    pub(crate) context: Rc<Context>,
    pub(crate) salt: [u8; 32],
    /// Failed logins of all connections.
    pub(crate) logins: Rc<iproto::Logins>,
    /// The beginning of a packet whose rest has not come.
    pub(crate) input: RefCell<Vec<u8>>,
    pub(crate) output: RefCell<Output>,
    /// Requests in fibers, and a login that waits.
    pub(crate) in_flight: Cell<usize>,
    /// A login waits behind failed ones.
    pub(crate) is_login_waiting: Cell<bool>,
    /// The socket may have more to read.
    pub(crate) is_readable: Cell<bool>,
    /// The other side sends no more.
    pub(crate) is_read_closed: Cell<bool>,
    /// `input` holds whole packets that wait for room for their answers, or for the next turn.
    pub(crate) is_stalled: Cell<bool>,
    /// The last requests took all the time that a connection has in one turn.
    pub(crate) is_slow: Cell<bool>,
    /// When the group of requests that is being served began, by the clock of the fibers.
    pub(crate) group_began: Cell<u64>,
    /// The server stops: a request under way that fails now fails for that reason.
    pub(crate) is_cut_short: Cell<bool>,
    /// In the list of connections to flush.
    pub(crate) is_dirty: Cell<bool>,
    /// No more requests are read; the socket is closed when the answers are out.
    pub(crate) is_closing: Cell<bool>,
}

impl Connection {
    /// Reads what is there, at most what `buffer` takes. Returns the number of bytes; 0 at the end of the stream.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match (&self.outlet.stream).read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Bytes that the client has not taken.
    pub(crate) fn unsent(&self) -> usize {
        self.output.borrow().held() + self.outlet.unsent()
    }

    /// Bytes of answers that are not with the outlet yet.
    pub(crate) fn held(&self) -> usize {
        self.output.borrow().held()
    }

    /// Hands what may leave to the outlet. True if the outlet has something to send.
    pub(crate) fn release(&self, database: &Database) -> bool {
        let mut output = self.output.borrow_mut();
        output.release(database.durable());
        if !output.ready.is_empty() {
            database::add(&database.statistics.sent_bytes, output.ready.len() as u64);
            self.outlet.push(&mut output.ready);
        }
        if output.parked.is_empty() && output.parked.capacity() > BUFFER_KEPT_MAX {
            output.parked = Vec::new();
        }
        self.outlet.unsent() > 0
    }
}

/// A buffer that has grown beyond this is given back when it is empty.
const BUFFER_KEPT_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parked_answers_leave_in_order_and_ready_ones_pass_them() {
        let mut output = Output::default();
        for (position, text) in [(5, &b"five"[..]), (7, b"seven"), (6, b"six")] {
            output.begin(true).extend_from_slice(text);
            output.park(Position(position), 0);
        }
        output.begin(false).extend_from_slice(b"read,");
        output.release(Position(4));
        assert_eq!(output.ready, b"read,");
        output.release(Position(6));
        assert_eq!(output.ready, b"read,five");
        output.release(Position(7));
        assert_eq!(output.ready, b"read,fivesevensix");
        assert!(!output.has_parked());
    }

    #[test]
    fn parked_answers_become_errors_when_the_log_fails() {
        let mut output = Output::default();
        output.begin(true).extend_from_slice(b"done");
        output.park(Position(5), 42);
        output.fail(&Error::system("disk"), 1);
        assert!(!output.ready.windows(4).any(|bytes| bytes == b"done"));
        assert!(!output.ready.is_empty() && !output.has_parked());
    }
}
