//! Reads in flight without a thread for each: io_uring(7). The half of [`ReadQueue`](crate::ReadQueue) for files of the machine.
#![expect(unsafe_code, reason = "buffers are lent to the kernel")]

use crate::aligned::{AlignedBuffer, PAGE_BYTES};
use crate::read_queue::{ReadRequest, ended_early};
use crate::{File, Notifier};
use io_uring::{IoUring, opcode, types};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// Most that one call of the kernel is asked for; it takes no more than 2 GiB at once.
const READ_BYTES_MAX: usize = 1 << 30;

/// Buffers up to this length are used again.
const KEPT_PAGES_MAX: usize = 4;

/// A read that the kernel has: everything it points to lives here until it is finished.
struct Lent {
    file: Arc<dyn File>,
    /// Where the buffer begins in the file.
    offset: u64,
    /// Bytes of the buffer before what was asked for.
    skipped: usize,
    /// Where that ends.
    end: usize,
    /// How far the kernel is asked to go: to the end of a page if the file is read past the page cache.
    room: usize,
    filled: usize,
    is_direct: bool,
    buffer: AlignedBuffer,
}

impl Lent {
    /// The file has no more.
    fn ended(&self) -> io::Error {
        let found = self.filled.saturating_sub(self.skipped);
        ended_early(self.offset + self.skipped as u64, self.end - self.skipped, found)
    }
}

/// A ring for reads. Used by one thread.
pub(crate) struct ReadRing {
    ring: IoUring,
    lent: BTreeMap<u64, Lent>,
    /// Short ones, for the next reads.
    buffers: Vec<AlignedBuffer>,
    /// Begun and to be handed to the kernel once more: the rest of short ones.
    unfinished: Vec<u64>,
    has_unsubmitted: bool,
    notifier: Arc<Notifier>,
}

impl ReadRing {
    /// A ring for at most `entries` reads, which notifies at each end of one. Errors: the kernel has no io_uring for us.
    pub(crate) fn new(entries: usize, notifier: &Arc<Notifier>) -> io::Result<Self> {
        let fd = notifier.raw_fd().ok_or_else(|| io::Error::other("a simulated notifier"))?;
        let entries = u32::try_from(entries).map_err(io::Error::other)?;
        let ring = IoUring::builder().setup_coop_taskrun().build(entries.max(1))?;
        ring.submitter().register_eventfd(fd)?;
        let notifier = Arc::clone(notifier);
        Ok(ReadRing {
            ring,
            lent: BTreeMap::new(),
            buffers: Vec::new(),
            unfinished: Vec::new(),
            has_unsubmitted: false,
            notifier,
        })
    }

    /// Reads that the ring has taken and not finished.
    pub(crate) fn in_flight(&self) -> usize {
        self.lent.len()
    }

    /// Takes a read of a file that has a descriptor; the kernel hears of it with `flush`.
    pub(crate) fn take(&mut self, request: ReadRequest) {
        let ReadRequest { number, file, offset, length, is_direct } = request;
        let skipped = if is_direct { offset as usize % PAGE_BYTES } else { 0 };
        let end = skipped + length;
        let room = if is_direct { end.next_multiple_of(PAGE_BYTES) } else { end };
        let pages = room.div_ceil(PAGE_BYTES);
        let mut buffer = if pages <= KEPT_PAGES_MAX { self.buffers.pop() } else { None }.unwrap_or_default();
        if buffer.pages() < pages {
            buffer.resize(pages);
        }
        let offset = offset - skipped as u64;
        let lent = Lent { file, offset, skipped, end, room, filled: 0, is_direct, buffer };
        let replaced = self.lent.insert(number, lent);
        assert!(replaced.is_none(), "a number names one read in flight");
        self.unfinished.push(number);
    }

    /// Hands over what was taken: one call of the kernel.
    pub(crate) fn flush(&mut self) {
        while let Some(number) = self.unfinished.pop() {
            if !self.push(number) {
                // The ring is full: it goes with the next flush.
                self.unfinished.push(number);
                break;
            }
            self.has_unsubmitted = true;
        }
        if self.has_unsubmitted {
            self.has_unsubmitted = self.ring.submit().is_err() || !self.ring.submission().is_empty();
        }
        if self.has_unsubmitted || !self.unfinished.is_empty() {
            // An interrupted or busy kernel takes the rest with the next call, which must come even if no read ends.
            self.notifier.notify();
        }
    }

    /// Puts a read, or its rest, into the ring. False if there is no room.
    fn push(&mut self, number: u64) -> bool {
        let Some(lent) = self.lent.get_mut(&number) else { return true };
        let Some(fd) = lent.file.raw_fd() else { return true };
        let filled = lent.filled;
        let length = (lent.room - filled).min(READ_BYTES_MAX) as u32;
        let target = lent.buffer.bytes_mut()[filled..].as_mut_ptr();
        let read = opcode::Read::new(types::Fd(fd), target, length).offset(lent.offset + filled as u64).build();
        // SAFETY: the buffer has `room` bytes, of which `length` are left behind `target`. The buffer and the file stay in `lent` until
        // the kernel has answered, and nobody touches the buffer meanwhile. `Drop` waits for what is in flight.
        unsafe { self.ring.submission().push(&read.user_data(number)) }.is_ok()
    }

    /// Hands every finished read to `visit`.
    pub(crate) fn complete(&mut self, mut visit: impl FnMut(u64, io::Result<&[u8]>)) {
        loop {
            let Some(entry) = self.ring.completion().next() else { break };
            let number = entry.user_data();
            let Some(lent) = self.lent.get_mut(&number) else { continue };
            let outcome = match entry.result() {
                count if count > 0 => {
                    lent.filled += count as usize;
                    assert!(lent.filled <= lent.room, "no more is read than was asked for");
                    let is_whole = lent.filled >= lent.end;
                    if lent.is_direct && !is_whole {
                        if (count as usize) < PAGE_BYTES {
                            // Not even a page: the file ends here.
                            Err(lent.ended())
                        } else {
                            // The rest begins at a page again.
                            lent.filled -= lent.filled % PAGE_BYTES;
                            Ok(false)
                        }
                    } else {
                        Ok(is_whole)
                    }
                }
                0 if lent.filled >= lent.end => Ok(true),
                0 => Err(lent.ended()),
                error => match io::Error::from_raw_os_error(-error) {
                    error if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                        Ok(false)
                    }
                    error => Err(error),
                },
            };
            let result = match outcome {
                Ok(true) => Ok(()),
                Ok(false) => {
                    self.unfinished.push(number);
                    continue;
                }
                Err(error) => Err(error),
            };
            if let Some(lent) = self.lent.remove(&number) {
                visit(number, result.map(|()| &lent.buffer.bytes()[lent.skipped..lent.end]));
                if lent.buffer.pages() <= KEPT_PAGES_MAX {
                    self.buffers.push(lent.buffer);
                }
            }
        }
    }
}

impl Drop for ReadRing {
    fn drop(&mut self) {
        // What the kernel has not heard of is forgotten; what it has may still be written to.
        for number in std::mem::take(&mut self.unfinished) {
            self.lent.remove(&number);
        }
        while !self.lent.is_empty() {
            if self.ring.submit_and_wait(1).is_err_and(|error| error.kind() != io::ErrorKind::Interrupted) {
                // Better to lose the memory than to let the kernel write to what is used for something else.
                std::mem::forget(std::mem::take(&mut self.lent));
                return;
            }
            self.complete(|_, _| {});
            for number in std::mem::take(&mut self.unfinished) {
                self.lent.remove(&number);
            }
        }
    }
}
