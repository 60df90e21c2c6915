//! Several synced writes in flight without a thread for each: io_uring(7).
//!
//! The calling thread hands writes to the kernel and finds the finished ones in shared memory; an eventfd tells its event loop.
//! Where the kernel has no io_uring (old, or forbidden by a sandbox) `new` fails and the caller uses threads.
#![expect(unsafe_code, reason = "buffers are lent to the kernel")]

use crate::{AlignedBuffer, File, Notifier};
use io_uring::{IoUring, opcode, squeue, types};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// A write that the kernel has: everything it points to lives here until it is finished.
struct Lent {
    file: Arc<dyn File>,
    offset: u64,
    buffer: AlignedBuffer,
}

/// A ring for writes. Used by one thread.
pub struct WriteRing {
    ring: IoUring,
    lent: BTreeMap<u64, Lent>,
}

impl WriteRing {
    /// A ring for at most `entries` writes, which notifies at each end of one. Errors: the kernel has no io_uring for us.
    pub fn new(entries: u32, notifier: &Notifier) -> io::Result<Self> {
        let ring = IoUring::builder().setup_coop_taskrun().build(entries)?;
        let fd = notifier.raw_fd().ok_or_else(|| io::Error::other("a simulated notifier"))?;
        ring.submitter().register_eventfd(fd)?;
        Ok(WriteRing { ring, lent: BTreeMap::new() })
    }

    /// Begins a write. Gives the buffer back if the file or the ring cannot take it. Errors: the system's.
    ///
    /// By itself the calling thread goes as far as the device, and waits for its flush where that has written before the call is over. If the
    /// write `is_left_to_others`, a thread of the kernel's does that: it is woken first.
    pub fn submit(
        &mut self,
        number: u64,
        file: &Arc<dyn File>,
        offset: u64,
        buffer: AlignedBuffer,
        is_left_to_others: bool,
    ) -> Result<(), AlignedBuffer> {
        let Some(fd) = file.raw_fd() else { return Err(buffer) };
        let length = buffer.bytes().len();
        let Ok(length) = u32::try_from(length) else { return Err(buffer) };
        let write = opcode::Write::new(types::Fd(fd), buffer.bytes().as_ptr(), length).offset(offset).build();
        let write = if is_left_to_others { write.flags(squeue::Flags::ASYNC) } else { write };
        // SAFETY: the buffer's pages and the file stay in `lent` until the kernel has answered; moving the buffer does not move its
        // pages. `Drop` waits for what is in flight.
        if unsafe { self.ring.submission().push(&write.user_data(number)) }.is_err() {
            return Err(buffer);
        }
        self.lent.insert(number, Lent { file: Arc::clone(file), offset, buffer });
        // An interrupted or busy kernel takes it with the next call.
        let _ = self.ring.submit();
        Ok(())
    }

    /// Hands every finished write to `visit`: its number, what came of it, its buffer.
    pub fn complete(&mut self, mut visit: impl FnMut(u64, io::Result<()>, AlignedBuffer)) {
        if !self.ring.submission().is_empty() {
            let _ = self.ring.submit();
        }
        loop {
            let Some(entry) = self.ring.completion().next() else { break };
            let Some(lent) = self.lent.remove(&entry.user_data()) else { continue };
            let result = finish(&lent, entry.result());
            visit(entry.user_data(), result, lent.buffer);
        }
    }
}

/// What a write came to. The rest of a short one, and one that the kernel would not begin, is written here.
fn finish(lent: &Lent, result: i32) -> io::Result<()> {
    let bytes = lent.buffer.bytes();
    match result {
        count if count >= 0 && count as usize == bytes.len() => Ok(()),
        count if count >= 0 => {
            // Whole pages again, as direct writes want.
            let done = count as usize / crate::PAGE_BYTES * crate::PAGE_BYTES;
            lent.file.write_all_at(&bytes[done..], lent.offset + done as u64)
        }
        error => match io::Error::from_raw_os_error(-error) {
            error if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                lent.file.write_all_at(bytes, lent.offset)
            }
            error => Err(error),
        },
    }
}

impl Drop for WriteRing {
    fn drop(&mut self) {
        // The kernel may still read the buffers.
        while !self.lent.is_empty() {
            if self.ring.submit_and_wait(1).is_err_and(|error| error.kind() != io::ErrorKind::Interrupted) {
                // Better to lose the memory than to let the kernel read what is used for something else.
                std::mem::forget(std::mem::take(&mut self.lent));
                return;
            }
            self.complete(|_, _, _| {});
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]
    use super::*;
    use crate::{FileSystem, OpenMode, PAGE_BYTES, SystemFiles};
    use std::time::Duration;

    #[test]
    fn writes_in_flight_all_arrive() {
        let dir = tempfile::tempdir().unwrap();
        let notifier = Notifier::new().unwrap();
        let Ok(mut ring) = WriteRing::new(8, &notifier) else { return };
        let mode = OpenMode { create: true, synced: true, direct: true, ..OpenMode::MODIFY };
        let file = SystemFiles.open(&dir.path().join("f"), mode).unwrap();
        for number in 0..8u64 {
            let mut buffer = AlignedBuffer::default();
            buffer.resize(1);
            buffer.bytes_mut().fill(number as u8 + 1);
            assert!(ring.submit(number, &file, number * PAGE_BYTES as u64, buffer, number % 2 == 1).is_ok());
        }
        let mut seen = Vec::new();
        while seen.len() < 8 {
            assert!(notifier.wait(Duration::from_secs(10)));
            notifier.clear();
            ring.complete(|number, result, _| {
                result.unwrap();
                seen.push(number);
            });
        }
        let mut page = vec![0; PAGE_BYTES];
        let reader = SystemFiles.open(&dir.path().join("f"), OpenMode::READ).unwrap();
        for number in 0..8u64 {
            reader.read_full_at(&mut page, number * PAGE_BYTES as u64).unwrap();
            assert!(page.iter().all(|byte| *byte == number as u8 + 1));
        }
    }
}
