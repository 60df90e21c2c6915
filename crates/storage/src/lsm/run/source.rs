//! Reading a run from one key to another.

use super::{Run, read_exactly};
use crate::lsm::block::{Block, Place};
use crate::lsm::entry::Entry;
use crate::lsm::error::LsmError;
use crate::lsm::merge::Source;
use std::sync::Arc;

/// Bytes that are read at once.
const READ_AHEAD_BYTES: u64 = 256 << 10;

/// The entries of a run in a range of keys, in order. Blocks: for worker threads.
pub struct RunSource {
    run: Arc<Run>,
    /// Blocks that may have keys of the range and were not decoded yet.
    next: usize,
    /// The last of them is before this one.
    end: usize,
    to: Option<Vec<u8>>,
    /// Blocks as they are stored, from offset `buffer_at` of the file.
    buffer: Vec<u8>,
    buffer_at: u64,
    /// The block it stands in, and where in it.
    block: Option<(Block, Place)>,
    at: usize,
    /// The entries of the block that are in the range end here.
    block_end: usize,
}

impl RunSource {
    /// The entries with keys in `[from, to)`.
    ///
    /// Errors: `Corrupt`, `Unreadable`, `Io`: the first block.
    pub fn new(run: Arc<Run>, from: &[u8], to: Option<Vec<u8>>) -> Result<Self, LsmError> {
        let next = run.find_block(from).unwrap_or(0);
        let end = match &to {
            None => run.block_count(),
            Some(to) => {
                run.find_block(to).map_or(0, |last| if run.first_key(last) < to.as_slice() { last + 1 } else { last })
            }
        };
        let mut source =
            RunSource { run, next, end, to, buffer: Vec::new(), buffer_at: 0, block: None, at: 0, block_end: 0 };
        source.load(Some(from))?;
        Ok(source)
    }

    /// Goes to the next block that has entries of the range, in the first one to the first entry that is not below `from`.
    fn load(&mut self, mut from: Option<&[u8]>) -> Result<(), LsmError> {
        self.block = None;
        while self.next < self.end {
            let number = self.next;
            let (offset, length) = self.run.block_extent(number);
            if offset + length as u64 > self.buffer_at + self.buffer.len() as u64 {
                self.read_ahead()?;
            }
            let start = (offset - self.buffer_at) as usize;
            let block = self.run.decode_block(number, &self.buffer[start..start + length])?;
            self.next += 1;
            let is_last = self.next == self.end;
            self.at = from.take().map_or(0, |from| block.lower_bound(from));
            self.block_end = match &self.to {
                Some(to) if is_last => block.lower_bound(to),
                _ => block.len(),
            };
            if self.at < self.block_end {
                let place = block.place(self.at);
                self.block = Some((block, place));
                break;
            }
        }
        Ok(())
    }

    fn read_ahead(&mut self) -> Result<(), LsmError> {
        let (begin, _) = self.run.block_extent(self.next);
        let end_of = |block: usize| {
            let (offset, length) = self.run.block_extent(block);
            offset + length as u64
        };
        let mut end = end_of(self.next);
        for block in self.next + 1..self.end {
            let end_of_block = end_of(block);
            if end_of_block - begin > READ_AHEAD_BYTES {
                break;
            }
            end = end_of_block;
        }
        self.buffer_at = begin;
        self.buffer.resize((end - begin) as usize, 0);
        read_exactly(&*self.run.file()?, self.run.path(), &mut self.buffer, begin)
    }
}

impl Source for RunSource {
    #[inline]
    fn entry(&self) -> Option<Entry<'_>> {
        self.block.as_ref().map(|(block, place)| block.entry_at(*place))
    }

    #[inline]
    fn advance(&mut self) -> Result<(), LsmError> {
        let Some((block, place)) = &mut self.block else { return Ok(()) };
        self.at += 1;
        if self.at < self.block_end {
            *place = block.place(self.at);
            return Ok(());
        }
        self.load(None)
    }
}
