//! Reads in flight with a thread for each. The half of [`ReadQueue`](crate::ReadQueue) for simulated files, and for machines without io_uring.

use crate::aligned::PAGE_BYTES;
use crate::read_queue::{ReadRequest, ended_early};
use crate::{Condvar, JoinHandle, Notifier, simulation, spawn_thread};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// As many reads as a disk without a ring is given at once.
const THREADS_MAX: usize = 16;
/// Enough for reads to end in another order than they began.
const SIMULATED_THREADS_MAX: usize = 2;

#[derive(Default)]
struct Queue {
    requests: VecDeque<ReadRequest>,
    done: Vec<(u64, io::Result<Vec<u8>>)>,
    is_closed: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    has_requests: Condvar,
    notifier: Arc<Notifier>,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Threads that read. Started when there is the first read for each.
pub(crate) struct ReadThreads {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    threads_max: usize,
    in_flight: usize,
}

impl ReadThreads {
    pub(crate) fn new(depth_max: usize, notifier: Arc<Notifier>) -> Self {
        let threads_max = if simulation::current().is_some() { SIMULATED_THREADS_MAX } else { THREADS_MAX };
        ReadThreads {
            shared: Arc::new(Shared { queue: Mutex::default(), has_requests: Condvar::new(), notifier }),
            threads: Vec::new(),
            threads_max: threads_max.min(depth_max.max(1)),
            in_flight: 0,
        }
    }

    /// Reads taken and not finished.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Takes a read. Where the machine gives no thread at all it blocks and is done when this returns.
    pub(crate) fn take(&mut self, request: ReadRequest) {
        self.in_flight += 1;
        if self.threads.len() < self.threads_max.min(self.in_flight) {
            let shared = Arc::clone(&self.shared);
            let name = format!("read-{}", self.threads.len());
            match spawn_thread(&name, move || work(&shared)) {
                Ok(thread) => self.threads.push(thread),
                Err(_) if !self.threads.is_empty() => {}
                Err(_) => {
                    let done = (request.number, read(&request));
                    self.shared.queue().done.push(done);
                    self.shared.notifier.notify();
                    return;
                }
            }
        }
        self.shared.queue().requests.push_back(request);
        self.shared.has_requests.notify_one();
    }

    /// Hands every finished read to `visit`.
    pub(crate) fn complete(&mut self, mut visit: impl FnMut(u64, io::Result<&[u8]>)) {
        let done = std::mem::take(&mut self.shared.queue().done);
        self.in_flight -= done.len();
        for (number, result) in done {
            match result {
                Ok(bytes) => visit(number, Ok(&bytes)),
                Err(error) => visit(number, Err(error)),
            }
        }
    }
}

impl Drop for ReadThreads {
    fn drop(&mut self) {
        let mut queue = self.shared.queue();
        queue.is_closed = true;
        queue.requests.clear();
        drop(queue);
        self.shared.has_requests.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn read(request: &ReadRequest) -> io::Result<Vec<u8>> {
    if request.is_direct {
        return read_direct(request);
    }
    let mut bytes = vec![0; request.length];
    let count = request.file.read_full_at(&mut bytes, request.offset)?;
    if count < request.length { Err(ended_early(request.offset, request.length, count)) } else { Ok(bytes) }
}

/// Whole pages, as the ring reads them. Only simulated files come here: the memory is not laid out for others.
fn read_direct(request: &ReadRequest) -> io::Result<Vec<u8>> {
    let skipped = request.offset as usize % PAGE_BYTES;
    let end = skipped + request.length;
    let mut bytes = vec![0; end.next_multiple_of(PAGE_BYTES)];
    let found = request.file.read_at(&mut bytes, request.offset - skipped as u64)?;
    if found < end {
        return Err(ended_early(request.offset, request.length, found.saturating_sub(skipped)));
    }
    Ok(bytes[skipped..end].to_vec())
}

fn work(shared: &Shared) {
    loop {
        let mut queue = shared.queue();
        let request = loop {
            if let Some(request) = queue.requests.pop_front() {
                break request;
            }
            if queue.is_closed {
                return;
            }
            queue = shared.has_requests.wait(&shared.queue, queue);
        };
        drop(queue);
        if let Some(simulation) = simulation::current() {
            simulation.wait_for_disk();
        }
        let done = (request.number, read(&request));
        // The file is given up before its reader can hear that it is not needed any more.
        drop(request);
        shared.queue().done.push(done);
        shared.notifier.notify();
    }
}
