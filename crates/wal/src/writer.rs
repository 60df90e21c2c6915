//! The threads that write groups: several synced writes in flight, results in any order.
//!
//! Why threads: one synced overwrite takes 110-270 us and the device does several at once; each thread has one in flight and sleeps
//! in the system call. With no threads (`in_flight_max` 0) a write happens on the caller, which is what simulations and the
//! unsynced modes use.

use crate::error::WalError;
use runtime::{AlignedBuffer, File, Notifier, spawn_thread};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// One group on its way to the disk.
pub(crate) struct Job {
    pub number: u64,
    pub file: Arc<dyn File>,
    pub offset: u64,
    pub buffer: AlignedBuffer,
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

/// A pool of writer threads, or none.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Writer {
    pub(crate) fn start(threads: usize, notifier: Arc<Notifier>) -> Result<Self, WalError> {
        let shared = Arc::new(Shared { queue: Mutex::default(), has_jobs: Condvar::new(), notifier });
        let threads = (0..threads)
            .map(|number| {
                let shared = Arc::clone(&shared);
                spawn_thread(&format!("wal-{number}"), move || work(&shared))
            })
            .collect::<io::Result<Vec<_>>>()
            .map_err(WalError::io("starting a log writer"))?;
        Ok(Writer { shared, threads })
    }

    /// Hands a group over. With no threads it is written before this returns.
    pub(crate) fn submit(&self, job: Job) {
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
        self.shared.notifier.clear();
        into.append(&mut self.shared.queue().done);
    }

    pub(crate) fn notifier(&self) -> &Notifier {
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
            queue = shared.has_jobs.wait(queue).unwrap_or_else(PoisonError::into_inner);
        };
        drop(queue);
        let done = write(job);
        shared.queue().done.push(done);
        shared.notifier.notify();
    }
}
