//! Writing a run.

use super::fences::Fences;
use super::footer::{FOOTER_BYTES, Footer, UNKNOWN_PARTS, WHOLE_KEYS};
use super::{Run, RunOptions, UNFINISHED, run_name};
use crate::lsm::block::BlockBuilder;
use crate::lsm::entry::{Entry, EntryKind};
use crate::lsm::error::LsmError;
use crate::lsm::filter::{Filter, key_hash};
use runtime::{File, FileSystem, OpenMode, PAGE_BYTES, Pace};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tuple::ordered_prefix_length;

/// Bytes of one write.
const STEP_BYTES: usize = 256 << 10;
/// Most zeros put before a block so that it does not lie on two pages of the disk.
const PADDING_MAX: usize = 512;
/// A packed block is meant to take this part of its room: one that turns out to be longer than the room lies on two pages.
const ROOM_SHARE: f64 = 0.97;
/// What each block counts for in the mean of how much packing saves.
const PACKING_STEP: f64 = 0.125;

const _: () = assert!(PADDING_MAX < PAGE_BYTES && STEP_BYTES.is_multiple_of(PAGE_BYTES));

/// Called with the bytes of every step.
type OnStep = Box<dyn FnMut(u64) + Send>;

/// Writes a run, in ascending order of keys. Blocks: for worker threads. One that is dropped leaves nothing.
pub struct RunWriter {
    files: Arc<dyn FileSystem>,
    dir: PathBuf,
    path: PathBuf,
    file: Arc<dyn File>,
    options: RunOptions,
    on_step: Option<OnStep>,
    pace: Option<Pace>,
    block: BlockBuilder,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    block_entries: u32,
    block_deletes: u32,
    /// Bytes that the present block should have before packing.
    block_bytes: usize,
    /// Bytes of blocks before packing for one behind it, a running mean.
    packing: f64,
    fences: Fences,
    /// One for each distinct prefix that the filter is to know.
    hashes: Vec<u64>,
    /// What was not written yet.
    buffer: Vec<u8>,
    /// Bytes of the file, without the buffer.
    written: u64,
    /// Counts of what was added; the rest is filled in at the end.
    footer: Footer,
    is_finished: bool,
}

impl RunWriter {
    /// Makes the file, with a name that says that it is not finished.
    ///
    /// Errors: `Io`.
    pub fn create(files: Arc<dyn FileSystem>, dir: &Path, run_id: u64, options: RunOptions) -> Result<Self, LsmError> {
        let path = dir.join(run_name(run_id) + UNFINISHED);
        let file = files.open(&path, OpenMode::CREATE).map_err(LsmError::io("making", &path))?;
        let footer = Footer {
            probes: 0,
            filter_parts: WHOLE_KEYS,
            run_id,
            blocks: 0,
            entries: 0,
            deletes: 0,
            upserts: 0,
            unpacked_bytes: 0,
            fences_at: 0,
            fences_length: 0,
            filter_length: 0,
            tail_checksum: 0,
        };
        Ok(RunWriter {
            files,
            dir: dir.to_path_buf(),
            path,
            file,
            options,
            on_step: None,
            pace: None,
            block: BlockBuilder::new(),
            first_key: Vec::new(),
            last_key: Vec::new(),
            block_entries: 0,
            block_deletes: 0,
            block_bytes: 0,
            packing: 1.0,
            fences: Fences::new(),
            hashes: Vec::new(),
            buffer: Vec::with_capacity(STEP_BYTES + STEP_BYTES / 4),
            written: 0,
            footer,
            is_finished: false,
        })
    }

    /// Calls `on_step` with the number of bytes after every step of about 256 KiB: it may pause, to set the pace.
    pub fn on_step(&mut self, on_step: OnStep) {
        self.on_step = Some(on_step);
    }

    /// Has the calling thread, which does all the rest, let others work in between.
    pub(crate) fn keep_pace(&mut self, pace: Pace) {
        self.pace = Some(pace);
    }

    /// Adds an entry. Keys ascend. The filter knows the first `filter_prefix` bytes of the key.
    ///
    /// Errors: `Io`, also for keys that do not ascend and entries that are too long.
    pub fn add(&mut self, entry: Entry<'_>, filter_prefix: usize) -> Result<(), LsmError> {
        if self.footer.entries > 0 && self.last_key.as_slice() >= entry.key {
            return Err(self.refuse("keys do not ascend"));
        }
        if self.footer.entries == 0 {
            self.footer.filter_parts = parts_of_prefix(entry.key, filter_prefix);
        }
        if !self.block.is_empty() && self.block.bytes_with(&entry) > self.block_bytes {
            self.end_block()?;
        }
        if self.block.is_empty() {
            self.block_bytes = self.bytes_of_next();
            self.first_key.clear();
            self.first_key.extend_from_slice(entry.key);
        }
        if self.block.add(&entry).is_err() {
            return Err(self.refuse("an entry is too long for a block"));
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(entry.key);
        self.block_entries += 1;
        self.footer.entries += 1;
        match entry.kind {
            EntryKind::Put => {}
            EntryKind::Delete => {
                self.block_deletes += 1;
                self.footer.deletes += 1;
            }
            EntryKind::Upsert => self.footer.upserts += 1,
        }
        if self.options.bloom_fpr < 1.0 {
            let hash = key_hash(entry.key.get(..filter_prefix).unwrap_or(entry.key));
            // Entries with the same prefix follow each other.
            if self.hashes.last() != Some(&hash) {
                self.hashes.push(hash);
            }
        }
        Ok(())
    }

    /// Bytes written so far, and about to be.
    pub fn bytes(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Bytes of memory that it takes, mostly for the filter to be.
    pub fn memory(&self) -> usize {
        self.buffer.capacity() + self.fences.memory() + 8 * self.hashes.capacity()
    }

    /// Writes the rest, syncs, and gives the file its name: it is there from now on, whatever happens. `None` if nothing was added.
    ///
    /// Errors: `Io`; the file may be there all the same, as an orphan.
    pub fn finish(mut self) -> Result<Option<Run>, LsmError> {
        if self.footer.entries == 0 {
            return Ok(None);
        }
        self.end_block()?;
        let fences = std::mem::replace(&mut self.fences, Fences::new()).complete(&self.last_key);
        let pace = &mut self.pace;
        let rest = || pace.iter_mut().for_each(Pace::rest);
        let filter = Filter::build(&std::mem::take(&mut self.hashes), self.options.bloom_fpr, rest);
        self.footer.blocks = fences.len() as u64;
        self.footer.fences_at = self.bytes();
        let mut tail = Vec::new();
        fences.encode(&mut tail);
        self.footer.fences_length = tail.len() as u64;
        if let Some(filter) = &filter {
            filter.encode(&mut tail);
            self.footer.probes = filter.probes();
        }
        self.footer.filter_length = tail.len() as u64 - self.footer.fences_length;
        self.footer.tail_checksum = crc32c::crc32c(&tail);
        let footer = self.footer;
        assert!(footer.deletes + footer.upserts <= footer.entries && footer.blocks <= footer.entries);
        assert!(footer.fences_at == self.bytes(), "fences follow the last block");
        tail.reserve(FOOTER_BYTES);
        footer.encode(&mut tail);
        self.write_step()?;
        for part in tail.chunks(STEP_BYTES) {
            self.buffer.extend_from_slice(part);
            self.write_step()?;
        }
        self.sync()?;
        let path = self.dir.join(run_name(footer.run_id));
        self.files.rename(&self.path, &path).map_err(LsmError::io("naming", &path))?;
        self.path.clone_from(&path);
        self.files.sync_dir(&self.dir).map_err(LsmError::io("syncing", &self.dir))?;
        self.is_finished = true;
        Ok(Some(Run::new(path, Arc::clone(&self.file), footer, fences, filter)))
    }

    fn refuse(&self, what: &str) -> LsmError {
        let source = io::Error::new(io::ErrorKind::InvalidInput, what.to_string());
        LsmError::Io { what: format!("adding to {}", self.path.display()), source }
    }

    /// Bytes that are left of the page of the disk that the next block begins on.
    fn room(&self) -> usize {
        PAGE_BYTES - (self.bytes() as usize & (PAGE_BYTES - 1))
    }

    /// How long the next block should be before packing. Packed blocks are made to fill pages of the disk together, all of about the same length: a
    /// read from the device takes one page then, and none is taken for what lies on the next.
    fn bytes_of_next(&self) -> usize {
        let page_size = self.options.page_size;
        if page_size > PAGE_BYTES {
            return page_size;
        }
        let per_page = (self.packing * PAGE_BYTES as f64 / page_size as f64 - 0.05).ceil().max(1.0);
        if per_page < 2.0 {
            return page_size;
        }
        let room = if self.room() <= PADDING_MAX { PAGE_BYTES } else { self.room() } as f64;
        let blocks = (room * per_page / PAGE_BYTES as f64).round().max(1.0);
        ((room / blocks * ROOM_SHARE * self.packing) as usize).min(page_size)
    }

    fn end_block(&mut self) -> Result<(), LsmError> {
        let start = self.buffer.len();
        let room = self.room();
        let unpacked = self.block.finish(&mut self.buffer);
        self.footer.unpacked_bytes += unpacked as u64;
        let length = self.buffer.len() - start;
        self.packing += (unpacked as f64 / length as f64 - self.packing) * PACKING_STEP;
        let mut padding = 0;
        if length > room && length <= PAGE_BYTES && room <= PADDING_MAX {
            padding = room;
            self.buffer.splice(start..start, std::iter::repeat_n(0, padding));
        }
        let offset = self.written + (start + padding) as u64;
        let (entries, deletes) = (std::mem::take(&mut self.block_entries), std::mem::take(&mut self.block_deletes));
        let length = u32::try_from(length).map_err(|_| self.refuse("a block is too long"))?;
        if !self.fences.push(&self.first_key, offset, length, entries, deletes) {
            return Err(self.refuse("the first keys of all blocks are too long together"));
        }
        if self.buffer.len() >= STEP_BYTES {
            self.write_step()?;
        }
        if let Some(pace) = &mut self.pace {
            pace.rest();
        }
        Ok(())
    }

    fn write_step(&mut self) -> Result<(), LsmError> {
        let bytes = self.buffer.len() as u64;
        self.file.write_all_at(&self.buffer, self.written).map_err(LsmError::io("writing", &self.path))?;
        self.buffer.clear();
        self.file.write_behind(self.written, bytes).map_err(LsmError::io("writing", &self.path))?;
        self.written += bytes;
        if let Some(on_step) = &mut self.on_step {
            on_step(bytes);
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), LsmError> {
        #[cfg(feature = "planted-bugs")]
        if runtime::planted::is_planted(runtime::planted::Plant::RecordBeforeSync) {
            return Ok(());
        }
        self.file.sync().map_err(LsmError::io("syncing", &self.path))
    }
}

/// How many parts of a key a prefix is.
fn parts_of_prefix(key: &[u8], filter_prefix: usize) -> u16 {
    if filter_prefix >= key.len() {
        return WHOLE_KEYS;
    }
    (1..UNKNOWN_PARTS)
        .map_while(|parts| Some((parts, ordered_prefix_length(key, u32::from(parts))?)))
        .find(|(_, length)| *length >= filter_prefix)
        .map_or(UNKNOWN_PARTS, |(parts, length)| if length == filter_prefix { parts } else { UNKNOWN_PARTS })
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        if !self.is_finished {
            // What is left of it otherwise is removed at the next start.
            let _ = self.files.remove(&self.path);
        }
    }
}
