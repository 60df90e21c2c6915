//! A thread that sends, so that the transaction thread need not.
//!
//! Sending to a local client costs ten times what serving it costs: the kernel delivers the bytes and wakes the receiver inside the
//! system call. When answers for several connections leave in one turn, the transaction thread hands them over and
//! goes on with requests; a single answer it sends itself, since waking another thread takes as long.
//!
//! Invariant: the bytes of one connection leave in order. Everything goes through its [`Outlet`], and one thread at a time writes.

use runtime::net::{Stream, Waker};
use runtime::{Condvar, spawn_thread};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A buffer that has grown beyond this is given back when it is empty.
const BUFFER_KEPT_MAX: usize = 64 << 10;

/// The way out of a connection, shared with the sender.
pub(crate) struct Outlet {
    pub(crate) stream: Stream,
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

#[derive(Default)]
struct Pending {
    /// What follows the bytes that are being written.
    bytes: Vec<u8>,
    /// A thread is writing and will go on with what is added meanwhile.
    is_writing: bool,
}

impl Outlet {
    pub(crate) fn new(stream: Stream, unsent_total: Arc<AtomicUsize>) -> Arc<Self> {
        Arc::new(Outlet {
            stream,
            pending: Mutex::default(),
            unsent: AtomicUsize::new(0),
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
        while !pending.bytes.is_empty() {
            std::mem::swap(&mut pending.bytes, &mut writing);
            drop(pending);
            let taken = self.write(&writing);
            pending = self.pending();
            if taken < writing.len() {
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

    /// Writes until the socket takes no more. Returns how many bytes it took; of a connection that is gone it takes all.
    fn write(&self, bytes: &[u8]) -> usize {
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
