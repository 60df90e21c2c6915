//! A thread that sends, so that the transaction thread need not.
//!
//! Sending to a local client costs ten times what serving it costs: the kernel delivers the bytes and wakes the receiver inside the
//! system call. When answers for several connections leave in one turn, the transaction thread hands them over and
//! goes on with requests; a single answer it sends itself, since waking another thread takes as long.
//!
//! Invariant: the bytes of one connection leave in order. Everything goes through its [`Outlet`], and one thread at a time writes.

use crate::handshakes::SocketOf;
use runtime::net::{Stream, Waker};
use runtime::tls::Session;
use runtime::{Condvar, spawn_thread};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A buffer that has grown beyond this is given back when it is empty.
const BUFFER_KEPT_MAX: usize = 64 << 10;

/// The way out of a connection, shared with the sender.
pub(crate) struct Outlet {
    pub(crate) stream: Stream,
    tls: Option<Box<Secure>>,
    pending: Mutex<Pending>,
    /// Bytes that the socket has not taken.
    unsent: AtomicUsize,
    /// The same of all connections.
    unsent_total: Arc<AtomicUsize>,
    has_failed: AtomicBool,
    /// In the sender's queue.
    is_queued: AtomicBool,
    /// The event loop waits for the bytes to be gone.
    is_awaited: AtomicBool,
}

/// The TLS of a connection that has it.
struct Secure {
    /// Held by one thread at a time, for as long as its bytes go to or come from the socket.
    session: Mutex<Session>,
    /// Bytes that were accepted wait in the session for room in the socket.
    has_sealed: AtomicBool,
}

impl Secure {
    fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
struct Pending {
    /// What follows the bytes that are being written.
    bytes: Vec<u8>,
    /// A thread is writing and will go on with what is added meanwhile.
    is_writing: bool,
}

impl Outlet {
    /// True if nobody on the way can read what is sent.
    pub(crate) fn is_sealed(&self) -> bool {
        self.tls.is_some()
    }

    /// The version of TLS and the cipher, by their names in OpenSSL.
    pub(crate) fn seal(&self) -> Option<(String, String)> {
        self.tls.as_ref().and_then(|secure| secure.session().seal())
    }

    /// `session`: the connection is by TLS; its handshake is done.
    pub(crate) fn new(stream: Stream, session: Option<Session>, unsent_total: Arc<AtomicUsize>) -> Arc<Self> {
        let held = session.as_ref().map_or(0, Session::held);
        unsent_total.fetch_add(held, Ordering::AcqRel);
        let secure = |session| Box::new(Secure { session: Mutex::new(session), has_sealed: AtomicBool::new(held > 0) });
        Arc::new(Outlet {
            stream,
            tls: session.map(secure),
            pending: Mutex::default(),
            unsent: AtomicUsize::new(held),
            unsent_total,
            has_failed: AtomicBool::new(false),
            is_queued: AtomicBool::new(false),
            is_awaited: AtomicBool::new(false),
        })
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds bytes to what is to be sent; `bytes` is left empty.
    pub(crate) fn push(&self, bytes: &mut Vec<u8>) {
        self.unsent.fetch_add(bytes.len(), Ordering::AcqRel);
        self.unsent_total.fetch_add(bytes.len(), Ordering::AcqRel);
        let mut pending = self.pending();
        if pending.bytes.is_empty() {
            std::mem::swap(&mut pending.bytes, bytes);
        } else {
            pending.bytes.extend_from_slice(bytes);
            bytes.clear();
        }
    }

    /// Bytes that the socket has not taken.
    pub(crate) fn unsent(&self) -> usize {
        self.unsent.load(Ordering::Acquire)
    }

    /// Asks the sender to wake the event loop when it has sent something.
    pub(crate) fn await_sent(&self) {
        self.is_awaited.store(true, Ordering::Release);
    }

    /// True if a write failed: the connection is gone.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// Writes as much as the socket takes. What it does not take stays until it is writable. Returns at once if another thread is
    /// writing: that one goes on with everything.
    pub(crate) fn send(&self) {
        let mut writing = Vec::new();
        let mut pending = self.pending();
        if pending.is_writing {
            return;
        }
        pending.is_writing = true;
        while !pending.bytes.is_empty() || self.has_sealed() {
            std::mem::swap(&mut pending.bytes, &mut writing);
            drop(pending);
            let taken = self.write(&writing);
            pending = self.pending();
            if taken < writing.len() || self.has_sealed() {
                writing.drain(..taken);
                writing.append(&mut pending.bytes);
                std::mem::swap(&mut pending.bytes, &mut writing);
                break;
            }
            writing.clear();
        }
        if pending.bytes.capacity() == 0 && writing.capacity() <= BUFFER_KEPT_MAX {
            // The buffer serves again.
            pending.bytes = writing;
        }
        pending.is_writing = false;
    }

    /// True if bytes that were taken wait for room in the socket.
    #[inline]
    fn has_sealed(&self) -> bool {
        self.tls.as_ref().is_some_and(|secure| secure.has_sealed.load(Ordering::Acquire))
    }

    /// Reads what is there, at most what `buffer` takes; 0 at the end. The second value: the other side has said that it sends no more, so the
    /// socket will not tell. Errors: the socket's, `WouldBlock` among them; what is wrong with what came.
    #[inline]
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<(usize, bool)> {
        match &self.tls {
            None => (&self.stream).read(buffer).map(|count| (count, self.stream.is_exchange())),
            Some(secure) => {
                let mut session = secure.session();
                let count = session.read(SocketOf(&self.stream), buffer)?;
                Ok((count, session.is_over()))
            }
        }
    }

    /// Says that nothing more will be sent. Errors: the socket's.
    pub(crate) fn close_write(&self) -> io::Result<()> {
        self.say_goodbye();
        self.stream.close_write()
    }

    /// Ends the connection. Errors: the socket's.
    pub(crate) fn close(&self) -> io::Result<()> {
        self.say_goodbye();
        self.stream.close()
    }

    fn say_goodbye(&self) {
        if let Some(secure) = &self.tls {
            secure.session().say_goodbye(SocketOf(&self.stream));
        }
    }

    /// Writes until the socket takes no more. Returns how many bytes it took; of a connection that is gone it takes all.
    fn write(&self, bytes: &[u8]) -> usize {
        match &self.tls {
            None => self.write_plain(bytes),
            Some(secure) => self.write_sealed(secure, bytes),
        }
    }

    /// The same by TLS. What is sealed and has not gone counts as unsent.
    fn write_sealed(&self, secure: &Secure, bytes: &[u8]) -> usize {
        let mut session = secure.session();
        let held = session.held();
        let (accepted, gone) = match session.write(SocketOf(&self.stream), bytes) {
            Ok(written) => (written.accepted, written.gone),
            Err(_) => {
                self.has_failed.store(true, Ordering::Release);
                (bytes.len(), held + bytes.len())
            }
        };
        let is_waiting = session.has_sealed() && !self.has_failed();
        secure.has_sealed.store(is_waiting, Ordering::Release);
        self.unsent.fetch_sub(gone, Ordering::AcqRel);
        self.unsent_total.fetch_sub(gone, Ordering::AcqRel);
        accepted
    }

    fn write_plain(&self, bytes: &[u8]) -> usize {
        let mut sent = 0;
        while sent < bytes.len() {
            match (&self.stream).write(&bytes[sent..]) {
                Ok(count) if count > 0 => sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => {
                    self.has_failed.store(true, Ordering::Release);
                    sent = bytes.len();
                }
            }
        }
        self.unsent.fetch_sub(sent, Ordering::AcqRel);
        self.unsent_total.fetch_sub(sent, Ordering::AcqRel);
        sent
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        self.unsent_total.fetch_sub(self.unsent(), Ordering::AcqRel);
    }
}

#[derive(Default)]
struct Queue {
    outlets: VecDeque<Arc<Outlet>>,
    is_idle: bool,
    is_closed: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    has_work: Condvar,
}

/// The thread.
pub(crate) struct Sender {
    shared: Arc<Shared>,
}

impl Sender {
    pub(crate) fn start(waker: Arc<Waker>) -> io::Result<Self> {
        let shared = Arc::new(Shared { queue: Mutex::default(), has_work: Condvar::new() });
        let for_thread = Arc::clone(&shared);
        spawn_thread("sender", move || work(&for_thread, &waker))?;
        Ok(Sender { shared })
    }

    /// Has the outlets' bytes sent soon.
    pub(crate) fn send(&self, outlets: &mut Vec<Arc<Outlet>>) {
        let mut queue = self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        for outlet in outlets.drain(..) {
            if !outlet.is_queued.swap(true, Ordering::AcqRel) {
                queue.outlets.push_back(outlet);
            }
        }
        let wakes = queue.is_idle;
        drop(queue);
        if wakes {
            self.shared.has_work.notify_one();
        }
    }

    /// Sends one of what the thread has not come to yet, on the calling thread. False if there is none.
    pub(crate) fn help(&self) -> bool {
        let mut queue = self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(outlet) = queue.outlets.pop_back() else { return false };
        drop(queue);
        outlet.is_queued.store(false, Ordering::Release);
        outlet.send();
        true
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner).is_closed = true;
        self.shared.has_work.notify_one();
    }
}

fn work(shared: &Shared, waker: &Waker) {
    loop {
        let mut queue = shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let outlet = loop {
            if let Some(outlet) = queue.outlets.pop_front() {
                break outlet;
            }
            if queue.is_closed {
                return;
            }
            queue.is_idle = true;
            queue = shared.has_work.wait(&shared.queue, queue);
            queue.is_idle = false;
        };
        drop(queue);
        // Cleared first: bytes that are added from now on queue it again.
        outlet.is_queued.store(false, Ordering::Release);
        outlet.send();
        if outlet.is_awaited.swap(false, Ordering::AcqRel) {
            // An event loop that cannot be woken has ended.
            let _ = waker.wake();
        }
    }
}
