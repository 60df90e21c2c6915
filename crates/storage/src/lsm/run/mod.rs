//! Runs: sorted entries in a file that never changes.
//!
//! ```text
//! blocks ...  fences  filter  footer
//! ```
//!
//! A run is written by a dump or a compaction under a name that ends in `.inprogress`, synced, and then given its name: one that has its
//! name is whole. Opening it reads what lies behind the blocks; blocks are read when they are needed, each with a checksum of its own.
//! Layout: docs/formats/lsm.md.

mod check;
mod fences;
mod footer;
mod handle;
mod source;
mod writer;

pub(crate) use handle::OpenFiles;
pub use source::RunSource;
pub use writer::RunWriter;

use super::block::Block;
use super::error::LsmError;
use super::filter::Filter;
use fences::Fences;
use footer::{FOOTER_BYTES, Footer};
use handle::Handle;
use runtime::{File, FileSystem, OpenMode};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How the name of a run's file ends.
pub(crate) const RUN_SUFFIX: &str = ".run";
/// How the name of a file ends that is being written.
pub(crate) const UNFINISHED: &str = ".inprogress";

/// The name of a run's file.
pub(crate) fn run_name(run_id: u64) -> String {
    format!("{run_id:020}{RUN_SUFFIX}")
}

/// The number of a run, by the name of its file.
pub(crate) fn run_of_name(name: &str) -> Option<u64> {
    name.strip_suffix(RUN_SUFFIX)?.parse().ok().filter(|&run_id| run_name(run_id) == name)
}

/// How runs are written.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions {
    /// Bytes of a block on disk. One with a single long entry is longer.
    pub page_size: usize,
    /// Share of absent keys that the filter does not know to be absent; 1 for no filter.
    pub bloom_fpr: f64,
}

impl Default for RunOptions {
    /// A block is a page of the disk, and the filter takes 10 bits a key.
    fn default() -> Self {
        RunOptions { page_size: 4096, bloom_fpr: 0.01 }
    }
}

/// A run that is open for reading.
pub struct Run {
    handle: Arc<Handle>,
    footer: Footer,
    fences: Fences,
    filter: Option<Filter>,
}

impl Run {
    /// As `open`, by the file; `None` if that has no name of a run.
    ///
    /// Errors: as `open`.
    pub fn open_file(files: &dyn FileSystem, path: &Path) -> Result<Option<Run>, LsmError> {
        let run_id = path.file_name().and_then(|name| run_of_name(&name.to_string_lossy()));
        run_id.map(|run_id| Run::open(files, path.parent().unwrap_or(Path::new("")), run_id)).transpose()
    }

    /// Reads and checks what lies behind the blocks. Blocks.
    ///
    /// Errors: `Corrupt`, `Unreadable`, `Io`.
    pub fn open(files: &dyn FileSystem, dir: &Path, run_id: u64) -> Result<Run, LsmError> {
        let path = dir.join(run_name(run_id));
        let file = files.open(&path, OpenMode::READ).map_err(LsmError::io("opening", &path))?;
        let length = file.len().map_err(LsmError::io("reading", &path))?;
        let Some(footer_at) = length.checked_sub(FOOTER_BYTES as u64) else {
            return Err(LsmError::corrupt(&path, 0, format!("{length} bytes are too few for a run")));
        };
        let mut bytes = [0; FOOTER_BYTES];
        read_exactly(&*file, &path, &mut bytes, footer_at)?;
        let footer = Footer::decode(&bytes, length).map_err(|what| LsmError::corrupt(&path, footer_at, what))?;
        if footer.run_id != run_id {
            return Err(LsmError::corrupt(&path, footer_at, format!("this is run {}", footer.run_id)));
        }
        let at = footer.fences_at;
        let mut tail = vec![0; (footer_at - at) as usize];
        read_exactly(&*file, &path, &mut tail, at)?;
        let (expected, found) = (footer.tail_checksum, crc32c::crc32c(&tail));
        if expected != found {
            let what = format!("the checksum of fences and filter is {found:08x}, expected {expected:08x}");
            return Err(LsmError::corrupt(&path, at, what));
        }
        let (fences, filter) = tail.split_at(footer.fences_length as usize);
        let fences = Fences::decode(fences, footer.blocks, at).map_err(|what| LsmError::corrupt(&path, at, what))?;
        let filter_at = at + footer.fences_length;
        let filter = match filter {
            [] => None,
            bytes => Some(
                Filter::decode(bytes, footer.probes)
                    .ok_or_else(|| LsmError::corrupt(&path, filter_at, "no filter has this length"))?,
            ),
        };
        let count = |of: &dyn Fn(usize) -> u32| (0..fences.len()).map(|block| u64::from(of(block))).sum::<u64>();
        let entries = count(&|block| fences.fence(block).entries);
        let deletes = count(&|block| fences.fence(block).deletes);
        if (entries, deletes) != (footer.entries, footer.deletes) {
            return Err(LsmError::corrupt(&path, at, "counts of the fences are not those of the footer"));
        }
        Ok(Run::new(path, file, footer, fences, filter))
    }

    fn new(path: PathBuf, file: Arc<dyn File>, footer: Footer, fences: Fences, filter: Option<Filter>) -> Run {
        Run { handle: Handle::new(path, file), footer, fences, filter }
    }

    /// Its number.
    pub fn id(&self) -> u64 {
        self.footer.run_id
    }

    /// Its file is closed when it was not read for some time and there are too many.
    pub(crate) fn share(&self, open: &Arc<OpenFiles>) {
        self.handle.share(open);
    }

    /// The open file. Errors: it was closed and cannot be opened.
    pub fn file(&self) -> Result<Arc<dyn File>, LsmError> {
        self.handle.file().map_err(|source| LsmError::Unreadable { file: self.path().to_path_buf(), offset: 0, source })
    }

    /// The file for reads past the page cache, where there is such a thing.
    pub(crate) fn direct_file(&self) -> Option<Arc<dyn File>> {
        self.handle.direct_file()
    }

    /// The file's name.
    pub fn path(&self) -> &Path {
        self.handle.path()
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.footer.fences_at + self.footer.fences_length + self.footer.filter_length + FOOTER_BYTES as u64
    }

    /// Bytes of its blocks in the file.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.footer.fences_at
    }

    /// Bytes of all blocks before packing.
    pub fn unpacked_bytes(&self) -> u64 {
        self.footer.unpacked_bytes
    }

    /// Bytes of memory that fences and filter take.
    pub fn memory(&self) -> usize {
        size_of::<Run>() + self.fences.memory() + self.filter_bytes()
    }

    /// Bytes of memory that the filter takes.
    pub fn filter_bytes(&self) -> usize {
        self.filter.as_ref().map_or(0, Filter::memory)
    }

    /// Entries of all kinds.
    pub fn entries(&self) -> u64 {
        self.footer.entries
    }

    /// Entries that delete.
    pub fn deletes(&self) -> u64 {
        self.footer.deletes
    }

    /// Entries that upsert.
    pub fn upserts(&self) -> u64 {
        self.footer.upserts
    }

    /// The least key.
    pub fn min_key(&self) -> &[u8] {
        self.fences.first_key(0)
    }

    /// The greatest key.
    pub fn max_key(&self) -> &[u8] {
        self.fences.max_key()
    }

    /// False if no key has this [`key_hash`](super::key_hash).
    #[inline]
    pub fn may_contain(&self, hash: u64) -> bool {
        #[cfg(feature = "planted-bugs")]
        if runtime::planted::is_planted(runtime::planted::Plant::FilterDenies) && hash.is_multiple_of(16) {
            return false;
        }
        self.filter.as_ref().is_none_or(|filter| filter.may_contain(hash))
    }

    /// Brings what `may_contain` looks at nearer to the processor.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        if let Some(filter) = &self.filter {
            filter.prefetch(hash);
        }
    }

    /// Blocks; at least one.
    pub fn block_count(&self) -> usize {
        self.fences.len()
    }

    /// Offset and length of a block in the file.
    pub fn block_extent(&self, block: usize) -> (u64, usize) {
        let fence = self.fences.fence(block);
        (fence.offset, fence.length as usize)
    }

    /// The first key of a block.
    pub fn first_key(&self, block: usize) -> &[u8] {
        self.fences.first_key(block)
    }

    /// Entries of a block, and how many of them delete.
    pub fn block_counts(&self, block: usize) -> (u32, u32) {
        let fence = self.fences.fence(block);
        (fence.entries, fence.deletes)
    }

    /// The last block whose first key is not above `key`: the one that has the key if any does.
    #[inline]
    pub fn find_block(&self, key: &[u8]) -> Option<usize> {
        self.fences.find(key)
    }

    /// Checks and unpacks a block that was read.
    ///
    /// Errors: `Corrupt`.
    pub fn decode_block(&self, block: usize, stored: &[u8]) -> Result<Block, LsmError> {
        let corrupt = |what: String| LsmError::corrupt(self.path(), self.fences.fence(block).offset, what);
        let decoded = Block::decode(stored).map_err(corrupt)?;
        // A good block at the wrong place is as bad as a bad one.
        if decoded.len() != self.fences.fence(block).entries as usize || decoded.entry(0).key != self.first_key(block) {
            return Err(corrupt("this block belongs elsewhere".to_string()));
        }
        Ok(decoded)
    }

    /// Reads, checks and unpacks a block. Blocks: for worker threads and the start.
    ///
    /// Errors: `Corrupt`, `Unreadable`, `Io`.
    pub fn read_block(&self, block: usize) -> Result<Block, LsmError> {
        let (offset, length) = self.block_extent(block);
        let mut stored = vec![0; length];
        read_exactly(&*self.file()?, self.path(), &mut stored, offset)?;
        self.decode_block(block, &stored)
    }

    /// About how many bytes and entries lie in `[from, to)`. Blocks that are in it partly count half.
    pub fn estimate(&self, from: &[u8], to: Option<&[u8]>) -> (u64, u64) {
        if to.is_some_and(|to| to <= self.min_key() || to <= from) || from > self.max_key() {
            return (0, 0);
        }
        let first = self.find_block(from);
        let last = to.map_or(Some(self.block_count() - 1), |to| self.find_block(to)).unwrap_or(0);
        let begin = self.fences.fence(first.unwrap_or(0)).offset;
        let last_fence = self.fences.fence(last);
        let half = |block: usize| u64::from(self.fences.fence(block).length) / 2;
        let is_cut_at_begin = first.is_some_and(|first| self.first_key(first) < from);
        let is_cut_at_end = to.is_some_and(|to| to <= self.max_key());
        let all = (last_fence.offset + u64::from(last_fence.length)).saturating_sub(begin);
        let cut =
            if is_cut_at_begin { half(first.unwrap_or(0)) } else { 0 } + if is_cut_at_end { half(last) } else { 0 };
        let bytes = all.saturating_sub(cut);
        let entries = u128::from(bytes) * u128::from(self.entries()) / u128::from(self.footer.fences_at.max(1));
        (bytes, entries as u64)
    }
}

/// Fills `out`. Errors: the file ends before.
fn read_exactly(file: &dyn File, path: &Path, out: &mut [u8], offset: u64) -> Result<(), LsmError> {
    let found = file.read_full_at(out, offset).map_err(|source| LsmError::Unreadable {
        file: path.to_path_buf(),
        offset,
        source,
    })?;
    if found < out.len() {
        let what = format!("the file ends {} bytes too early", out.len() - found);
        return Err(LsmError::corrupt(path, offset + found as u64, what));
    }
    Ok(())
}
