//! Writing groups: several synced writes in flight, results in any order.
//!
//! One synced overwrite takes 110-270 us and the device does several at once. The kernel keeps them in flight for us (io_uring) where it
//! may; otherwise each of some threads has one in flight and sleeps in the system call. With `in_flight_max` 0 a write
//! happens on the caller, which is what simulations and the unsynced modes use.

use crate::error::WalError;
use runtime::{AlignedBuffer, Condvar, File, JoinHandle, Notifier, WriteRing, spawn_thread};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One group on its way to the disk.
pub(crate) struct Job {
    pub number: u64,
    pub file: Arc<dyn File>,
    pub offset: u64,
    pub buffer: AlignedBuffer,
    /// A thread of the system's is to begin the write, if there is a ring.
    pub is_left_to_others: bool,
}

/// A group that was written, or not. The buffer comes back for reuse.
pub(crate) struct Done {
    pub number: u64,
    pub result: io::Result<()>,
    pub buffer: AlignedBuffer,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    done: Vec<Done>,
    is_closed: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    has_jobs: Condvar,
    notifier: Arc<Notifier>,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A ring, a pool of threads, or neither.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    ring: Option<RefCell<WriteRing>>,
    threads: Vec<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(in_flight_max: usize, notifier: Arc<Notifier>) -> Result<Self, WalError> {
        let ring = match in_flight_max {
            0 => None,
            // One entry more than is ever used.
            count => WriteRing::new(count as u32 + 1, &notifier).ok().map(RefCell::new),
        };
        let threads = if ring.is_some() { 0 } else { in_flight_max };
        let shared = Arc::new(Shared { queue: Mutex::default(), has_jobs: Condvar::new(), notifier });
        let threads = (0..threads)
            .map(|number| {
                let shared = Arc::clone(&shared);
                spawn_thread(&format!("wal-{number}"), move || work(&shared))
            })
            .collect::<io::Result<Vec<_>>>()
            .map_err(WalError::io("starting a log writer"))?;
        Ok(Writer { shared, ring, threads })
    }

    /// Hands a group over. With neither ring nor threads it is written before this returns.
    pub(crate) fn submit(&self, mut job: Job) {
        if let Some(ring) = &self.ring {
            let buffer = std::mem::take(&mut job.buffer);
            match ring.borrow_mut().submit(job.number, &job.file, job.offset, buffer, job.is_left_to_others) {
                Ok(()) => return,
                // A file that is none of the machine's is written here.
                Err(buffer) => job.buffer = buffer,
            }
        }
        if self.threads.is_empty() {
            let done = write(job);
            self.shared.queue().done.push(done);
            return;
        }
        self.shared.queue().jobs.push_back(job);
        self.shared.has_jobs.notify_one();
    }

    /// What was finished since the last call.
    pub(crate) fn take_done(&self, into: &mut Vec<Done>) {
        if let Some(ring) = &self.ring {
            ring.borrow_mut().complete(|number, result, buffer| into.push(Done { number, result, buffer }));
        }
        into.append(&mut self.shared.queue().done);
    }

    pub(crate) fn notifier(&self) -> &Arc<Notifier> {
        &self.shared.notifier
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.queue().is_closed = true;
        self.shared.has_jobs.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn write(job: Job) -> Done {
    let result = job.file.write_all_at(job.buffer.bytes(), job.offset);
    Done { number: job.number, result, buffer: job.buffer }
}

fn work(shared: &Shared) {
    loop {
        let mut queue = shared.queue();
        let job = loop {
            if let Some(job) = queue.jobs.pop_front() {
                break job;
            }
            if queue.is_closed {
                return;
            }
            queue = shared.has_jobs.wait(&shared.queue, queue);
        };
        drop(queue);
        let done = write(job);
        shared.queue().done.push(done);
        shared.notifier.notify();
    }
}
