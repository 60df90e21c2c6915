//! Reading ahead: blocks of a file are read, checked and unpacked on another thread while their rows are applied.
//!
//! The idea. The reader's thread goes through the file from block to block and keeps a few of them ready, in order. Unpacking costs more
//! than anything else here and about as much as applying the rows, so it is shared: who waits for a block that nobody has
//! unpacked yet unpacks it himself, or one behind it. Both processors are busy until the end, whatever costs more.
//!
//! Only whole blocks come this way. At anything else (an end, damage) reading ahead ends without a word, and the one who reads the
//! file comes to the same place and looks closer.

use crate::block::{self, EOF_MAGIC, FIXHEADER_BYTES, Note, read_fixheader};
use crate::xlog::{BlockReader, Unpacked};
use runtime::{Condvar, File, JoinHandle, spawn_thread};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Blocks that are kept ready, read or unpacked.
const BLOCKS_MAX: usize = 16;
/// Content of blocks that are kept ready. One block may be larger.
const CONTENT_BYTES_MAX: usize = 32 << 20;
/// Files smaller than this are not worth a thread.
const FILE_BYTES_MIN: u64 = 256 << 10;

/// A block that was read and checked.
struct Packed {
    offset: u64,
    end: u64,
    is_compressed: bool,
    content: Vec<u8>,
}

/// A block of which everything is known.
pub(crate) struct Ready {
    pub(crate) offset: u64,
    pub(crate) end: u64,
    pub(crate) note: Option<Note>,
    pub(crate) unpacked: Unpacked,
}

enum Slot {
    Packed(Packed),
    /// A thread is unpacking it.
    Taken,
    Ready(Ready),
    /// Nothing more comes this way.
    Stop(Option<io::Error>),
}

#[derive(Default)]
struct Queue {
    slots: VecDeque<Slot>,
    /// Number of the first slot, counted from the first block of all.
    first: u64,
    content_bytes: usize,
    /// The thread has put in its last slot.
    is_over: bool,
    /// The reader wants no more blocks.
    is_closed: bool,
    /// Buffers to be used again.
    contents: Vec<Vec<u8>>,
    rows: Vec<Unpacked>,
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

/// A file that is being read ahead. Dropping it ends that.
pub(crate) struct ReadAhead {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl ReadAhead {
    /// Begins at a block. `None` if it would not pay, or no thread can be had.
    pub(crate) fn start(file: &Arc<dyn File>, offset: u64, len: u64) -> Option<Self> {
        if len.saturating_sub(offset) < FILE_BYTES_MIN {
            return None;
        }
        let shared = Arc::new(Shared { queue: Mutex::default(), changed: Condvar::new() });
        let (theirs, file) = (Arc::clone(&shared), Arc::clone(file));
        let work = move || theirs.fill(&BlockReader::new(file, len), offset);
        let thread = spawn_thread("read-ahead", work).ok()?;
        Some(ReadAhead { shared, thread: Some(thread) })
    }

    /// The next block. `Ok(None)`: the file has to be looked at from the end of the last block on. Blocks until it is there.
    pub(crate) fn next(&self) -> io::Result<Option<Ready>> {
        let mut queue = self.shared.lock();
        loop {
            match queue.slots.front() {
                Some(Slot::Ready(_) | Slot::Stop(_)) => {
                    let Some(slot) = queue.slots.pop_front() else { continue };
                    queue.first += 1;
                    drop(queue);
                    self.shared.changed.notify_all();
                    return match slot {
                        Slot::Ready(ready) => Ok(Some(ready)),
                        Slot::Stop(Some(error)) => Err(error),
                        _ => Ok(None),
                    };
                }
                _ if queue.is_over && queue.slots.is_empty() => return Ok(None),
                _ => {}
            }
            queue = match self.shared.unpack_one(queue) {
                Ok(queue) => queue,
                Err(queue) => self.shared.changed.wait(&self.shared.queue, queue),
            };
        }
    }

    /// Takes back what a block was given in.
    pub(crate) fn give_back(&self, unpacked: Unpacked) {
        let mut queue = self.shared.lock();
        if queue.rows.len() < BLOCKS_MAX {
            queue.rows.push(unpacked);
        }
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the thread does: reads while there is room, unpacks while there is none or enough is read.
    fn fill(&self, reader: &BlockReader, mut offset: u64) {
        let mut queue = self.lock();
        while !queue.is_closed {
            let is_full = queue.slots.len() >= BLOCKS_MAX || queue.content_bytes >= CONTENT_BYTES_MAX;
            let packed = queue.slots.iter().filter(|slot| matches!(slot, Slot::Packed(_))).count();
            if queue.is_over && packed == 0 {
                return;
            }
            if queue.is_over || packed > 1 || is_full {
                queue = match self.unpack_one(queue) {
                    Ok(queue) => queue,
                    Err(queue) => self.changed.wait(&self.queue, queue),
                };
                continue;
            }
            let content = queue.contents.pop().unwrap_or_default();
            drop(queue);
            let slot = match read_packed(reader, offset, content) {
                Ok(Some(packed)) => {
                    offset = packed.end;
                    Slot::Packed(packed)
                }
                Ok(None) => Slot::Stop(None),
                Err(error) => Slot::Stop(Some(error)),
            };
            queue = self.lock();
            queue.is_over = matches!(slot, Slot::Stop(_));
            if let Slot::Packed(packed) = &slot {
                queue.content_bytes += packed.content.len();
            }
            queue.slots.push_back(slot);
            self.changed.notify_all();
        }
    }

    /// Unpacks the first block that nobody has unpacked. Err: there is none.
    fn unpack_one<'a>(
        &'a self,
        mut queue: MutexGuard<'a, Queue>,
    ) -> Result<MutexGuard<'a, Queue>, MutexGuard<'a, Queue>> {
        let Some(at) = queue.slots.iter().position(|slot| matches!(slot, Slot::Packed(_))) else {
            return Err(queue);
        };
        let Slot::Packed(packed) = std::mem::replace(&mut queue.slots[at], Slot::Taken) else {
            return Err(queue);
        };
        let number = queue.first + at as u64;
        let mut unpacked = queue.rows.pop().unwrap_or_default();
        drop(queue);
        let Packed { offset, end, is_compressed, content } = packed;
        let slot = match unpacked.unpack(&content, is_compressed) {
            Ok(()) => {
                let note = if is_compressed { block::find_note(&content) } else { None };
                Slot::Ready(Ready { offset, end, note, unpacked })
            }
            // Whoever comes to it finds out what is wrong.
            Err(_) => Slot::Stop(None),
        };
        let mut queue = self.lock();
        queue.content_bytes -= content.len();
        let at = (number - queue.first) as usize;
        queue.slots[at] = slot;
        queue.contents.push(content);
        self.changed.notify_all();
        Ok(queue)
    }
}

/// Reads the block at `offset` and compares its checksum. `None` if there is no good one.
fn read_packed(reader: &BlockReader, offset: u64, mut content: Vec<u8>) -> io::Result<Option<Packed>> {
    let mut header = [0; FIXHEADER_BYTES];
    let got = reader.read(&mut header, offset)?;
    if header[..got].starts_with(&EOF_MAGIC) {
        return Ok(None);
    }
    let Ok(fixheader) = read_fixheader(&header[..got]) else { return Ok(None) };
    let start = offset + FIXHEADER_BYTES as u64;
    if fixheader.length > reader.len().saturating_sub(start) {
        return Ok(None);
    }
    content.resize(fixheader.length as usize, 0);
    let is_good = reader.read(&mut content, start)? == content.len() && fixheader.is_checksum_of(&content);
    let end = start + fixheader.length;
    Ok(is_good.then_some(Packed { offset, end, is_compressed: fixheader.is_compressed, content }))
}
