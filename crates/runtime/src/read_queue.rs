//! Reads of files that do not block the thread that wants them.
//!
//! One random read takes the device some 80 us, and it does dozens at once. So reads are handed over together, and a [`Notifier`] tells the
//! event loop when some have ended. The kernel keeps them in flight (io_uring) where it may; otherwise each of some threads
//! has one. What lies in the page cache is better tried first: [`File::read_cached_at`] answers at once.

use crate::read_ring::ReadRing;
use crate::read_threads::ReadThreads;
use crate::{File, Notifier, simulation};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// A read to be done.
pub(crate) struct ReadRequest {
    pub(crate) number: u64,
    pub(crate) file: Arc<dyn File>,
    pub(crate) offset: u64,
    pub(crate) length: usize,
    /// The file is read past the page cache: whole pages at a time.
    pub(crate) is_direct: bool,
}

/// The file has fewer bytes than were asked for.
pub(crate) fn ended_early(offset: u64, length: usize, count: usize) -> io::Error {
    let text = format!("the file ends {count} bytes behind offset {offset}, {length} were expected");
    io::Error::new(io::ErrorKind::UnexpectedEof, text)
}

/// Reads that are wanted and under way. Used by one thread; all that it holds is waited for or given up when it is dropped.
pub struct ReadQueue {
    depth_max: usize,
    /// Beyond `depth_max`, or not handed over yet.
    waiting: VecDeque<ReadRequest>,
    ring: Option<ReadRing>,
    /// For files that are none of the machine's, and for all if there is no ring.
    threads: ReadThreads,
}

impl ReadQueue {
    /// A queue of which at most `depth_max` reads are under way at once. `notifier` is notified when reads end. Errors: the system's.
    pub fn new(depth_max: usize, notifier: Arc<Notifier>) -> io::Result<Self> {
        let depth_max = depth_max.max(1);
        // Old kernels have no ring, sandboxes refuse it.
        let ring = ReadRing::new(depth_max, &notifier).ok();
        Ok(ReadQueue { depth_max, waiting: VecDeque::new(), ring, threads: ReadThreads::new(depth_max, notifier) })
    }

    /// A queue that leaves io_uring alone.
    #[cfg(test)]
    fn with_threads(depth_max: usize, notifier: Arc<Notifier>) -> Self {
        let threads = ReadThreads::new(depth_max, notifier);
        ReadQueue { depth_max, waiting: VecDeque::new(), ring: None, threads }
    }

    /// Wants `length` bytes of a file. `number` names the read until it has ended. Nothing happens before `flush`. More than `depth_max`
    /// wait for those before them; how many there are is bounded by the caller.
    pub fn submit(&mut self, number: u64, file: Arc<dyn File>, offset: u64, length: usize) {
        self.waiting.push_back(ReadRequest { number, file, offset, length, is_direct: false });
    }

    /// The same of a file that [`File::open_direct`] has given.
    pub fn submit_direct(&mut self, number: u64, file: Arc<dyn File>, offset: u64, length: usize) {
        self.waiting.push_back(ReadRequest { number, file, offset, length, is_direct: true });
    }

    /// True if reads are kept in flight by the kernel. That of a simulated machine does it, too.
    pub fn has_ring(&self) -> bool {
        self.ring.is_some() || simulation::current().is_some()
    }

    /// Hands over what was wanted since the last call, as far as `depth_max` goes: one system call for all of it.
    pub fn flush(&mut self) {
        while self.under_way() < self.depth_max
            && let Some(request) = self.waiting.pop_front()
        {
            match &mut self.ring {
                Some(ring) if request.file.raw_fd().is_some() => ring.take(request),
                _ => self.threads.take(request),
            }
        }
        if let Some(ring) = &mut self.ring {
            ring.flush();
        }
    }

    /// Hands every read that has ended to `visit`, with all its bytes or why there are none: the device's error, or `UnexpectedEof` if the
    /// file is too short. Then hands over what has waited. To be called after the notifier was cleared.
    pub fn complete(&mut self, mut visit: impl FnMut(u64, io::Result<&[u8]>)) {
        if let Some(ring) = &mut self.ring {
            ring.complete(&mut visit);
        }
        self.threads.complete(&mut visit);
        self.flush();
    }

    fn under_way(&self) -> usize {
        self.ring.as_ref().map_or(0, ReadRing::in_flight) + self.threads.in_flight()
    }

    /// Reads that were wanted and have not been handed back.
    pub fn in_flight(&self) -> usize {
        self.waiting.len() + self.under_way()
    }
}

#[cfg(test)]
mod tests;
