//! Requests that come as datagrams: each is a connection that has said one thing and no more.
//!
//! ```text
//! datagram --> framing --> request --> a connection that ends behind it --> answer --> framing --> datagrams
//! ```
//!
//! So sessions, rights, waiting for the log, fibers and bounds are those of all connections. The sender of a datagram can be forged, and an answer may be a
//! thousand times as long as what it was asked with: nobody is answered who is not on this machine.
//!
//! What finds no room is dropped, as datagrams are.

use crate::listeners::Entrance;
use crate::logins;
use runtime::net::{Address, DATAGRAM_BYTES_MAX, Datagrams, Exchange, SocketAddr, Stream};
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Datagrams of one listener that are looked at in one turn.
pub(crate) const DATAGRAMS_IN_TURN_MAX: usize = 64;
/// Datagrams of one listener that are not answered yet; more are dropped.
const DATAGRAMS_OPEN_MAX: usize = 1024;
/// Bytes of an answer; a longer one is not sent.
const DATAGRAM_ANSWER_BYTES_MAX: usize = 4 << 20;
/// Bytes of all answers of a listener that are not whole yet; what would be more is not sent.
const DATAGRAM_ANSWERS_BYTES_MAX: usize = 64 << 20;

/// How requests and answers of a protocol stand in datagrams.
pub trait Framing: Sync {
    /// The request in a datagram, and what the client calls it. None: it is none that is answered.
    fn open<'a>(&self, datagram: &'a [u8]) -> Option<(u16, &'a [u8])>;

    /// Hands the datagrams of an answer to `send`, in their order, until that says false.
    fn seal(&self, request: u16, answer: &[u8], send: &mut dyn FnMut(&[u8]) -> bool);
}

/// A datagram and its answer.
struct Datagram {
    socket: Arc<Datagrams>,
    from: SocketAddr,
    framing: &'static dyn Framing,
    /// What the client calls the request.
    number: u16,
    bytes: Mutex<Bytes>,
    /// See [`DATAGRAM_ANSWERS_BYTES_MAX`].
    held: Arc<AtomicUsize>,
}

struct Bytes {
    request: Vec<u8>,
    answer: Vec<u8>,
    is_too_long: bool,
}

impl Datagram {
    fn bytes(&self) -> MutexGuard<'_, Bytes> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Exchange for Datagram {
    fn read(&self, out: &mut [u8]) -> io::Result<usize> {
        let request = &mut self.bytes().request;
        let count = request.len().min(out.len());
        out[..count].copy_from_slice(&request[..count]);
        request.drain(..count);
        Ok(count)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut own = self.bytes();
        let held = self.held.fetch_add(bytes.len(), Ordering::AcqRel) + bytes.len();
        own.answer.extend_from_slice(bytes);
        own.is_too_long |= own.answer.len() > DATAGRAM_ANSWER_BYTES_MAX || held > DATAGRAM_ANSWERS_BYTES_MAX;
        if own.is_too_long {
            self.held.fetch_sub(std::mem::take(&mut own.answer).len(), Ordering::AcqRel);
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes.len())
    }

    fn close(&self) {
        let answer = std::mem::take(&mut self.bytes().answer);
        self.held.fetch_sub(answer.len(), Ordering::AcqRel);
        if !answer.is_empty() {
            self.framing.seal(self.number, &answer, &mut |datagram| self.socket.send(datagram, self.from).is_ok());
        }
    }
}

impl Drop for Datagram {
    fn drop(&mut self) {
        let left = self.bytes().answer.len();
        self.held.fetch_sub(left, Ordering::AcqRel);
    }
}

/// The next request of a socket, and who it is from. `buffer`: room for one. `left`: datagrams that may be looked at, one less for each. Errors: `WouldBlock` if there is none, or no
/// more may be looked at.
pub(crate) fn receive(
    socket: &Arc<Datagrams>,
    framing: &'static dyn Framing,
    entrance: &Rc<Entrance>,
    (buffer, left): (&mut [u8], &mut usize),
) -> io::Result<(Stream, Address, Rc<Entrance>)> {
    let buffer = &mut buffer[..DATAGRAM_BYTES_MAX];
    let own_port = socket.local_address()?.port();
    while *left > 0 {
        let (count, from) = match socket.receive(buffer) {
            // An answer that somebody did not wait for.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => (0, SocketAddr::from(([0; 4], 0))),
            received => received?,
        };
        *left -= 1;
        // What seems to come from here would be answered for ever.
        let is_meant = logins::is_near(Some(&from.to_string())) && from.port() != own_port;
        if !is_meant || Arc::strong_count(socket) > DATAGRAMS_OPEN_MAX {
            continue;
        }
        if let Some((number, request)) = framing.open(&buffer[..count]) {
            let bytes = Bytes { request: request.to_vec(), answer: Vec::new(), is_too_long: false };
            let held = Arc::clone(&entrance.answers_held);
            let bytes = Mutex::new(bytes);
            let datagram = Datagram { socket: Arc::clone(socket), from, framing, number, bytes, held };
            return Ok((Stream::Exchange(Arc::new(datagram)), Address::Tcp(from), Rc::clone(entrance)));
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}
