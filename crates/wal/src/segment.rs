//! One file of the log while it is written: space that is prepared ahead, its completion, and the change to the next one.
//!
//! In `fsync` mode groups overwrite pages that a thread has filled with empty blocks; in `write` mode they are appended.

use crate::block::{EOF_MAGIC, encode_filler};
use crate::error::WalError;
use crate::journal::JournalConfig;
use crate::newest::{Newest, NewestNote};
use crate::snapshot::unfinished_name;
use runtime::{AlignedBuffer, Condvar, File, FileSystem, JoinHandle, OpenMode, PAGE_BYTES, spawn_thread, yield_thread};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Chunks of space kept ready ahead of the writer, besides as much as is written already. Synced writes to a growing file wait for the file
/// system to record its growth, so the file should reach its full size soon, and the next one before its turn comes.
const CHUNKS_AHEAD: u64 = 16;
/// Interval between attempts to get space on a full disk.
const RETRY_NS: u64 = 100_000_000;
/// Unused prepared space is cut off in steps of this size: the file system completes a step without letting others in.
const CUT_STEP_BYTES: u64 = 4 << 20;
/// In `write` mode a file is synced once all but this part of it (an eighth) is written.
const FLUSH_AHEAD_PART: u64 = 8;

/// The file being written.
pub(crate) struct Segment {
    pub(crate) path: PathBuf,
    /// Groups are written through this.
    pub(crate) file: Arc<dyn File>,
    /// The same file through the page cache: it is completed without another descriptor, of which there may be none.
    pub(crate) cached: Arc<dyn File>,
    /// Where the next group goes.
    pub(crate) offset: u64,
    /// Everything before this is durable.
    pub(crate) durable_offset: u64,
    pub(crate) groups: u64,
    /// Written beyond `wal_max_size` up to here, because the next file could not be made.
    pub(crate) grows_to: u64,
    /// It is followed by another about here.
    max: u64,
    prepared: Arc<Prepared>,
    preparer: Option<JoinHandle<()>>,
    /// In `write` mode: what was written is being synced, once, so that little is left to be synced at the end.
    flushing: Option<Receiver<io::Result<()>>>,
}

/// Shared with the thread that prepares space.
struct Prepared {
    /// Space is ready up to here.
    end: AtomicU64,
    /// Space is wanted up to here.
    wanted: Mutex<u64>,
    changed: Condvar,
    /// Prepared at once.
    chunk: u64,
    is_closed: AtomicBool,
    is_full: AtomicBool,
}

impl Prepared {
    fn upto(end: u64, chunk: u64) -> Self {
        Prepared {
            end: AtomicU64::new(end),
            wanted: Mutex::new(end),
            changed: Condvar::new(),
            chunk,
            is_closed: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
        }
    }
}

/// What a thread does between two files: what the groups of the new one wait for, then the rest.
///
/// In `fsync` mode nobody waits for the old file. All its groups are on the disk, and recovery takes what is behind the rows that the next file
/// begins with for what it is, prepared space. In `write` mode its groups have to be synced first: they may not be there when later ones are.
pub(crate) struct Change {
    pub(crate) old: Segment,
    pub(crate) files: Arc<dyn FileSystem>,
    /// The new file, its header, and the names it has and gets.
    pub(crate) file: Arc<dyn File>,
    pub(crate) head: Vec<u8>,
    pub(crate) unfinished: PathBuf,
    pub(crate) path: PathBuf,
    /// True in `fsync` mode.
    pub(crate) is_synced: bool,
    /// The signature that the new file begins with, and where that is noted.
    pub(crate) begin: i64,
    pub(crate) note: Arc<NewestNote>,
}

impl Change {
    /// After this the groups of the new file count. Blocks for as long as the disk takes.
    pub(crate) fn name(&mut self) -> Result<(), WalError> {
        // If the system cannot say, the file counts as there: its writes will tell.
        if self.old.file.is_removed().unwrap_or(false) {
            return Err(WalError::Removed { file: self.old.path.clone() });
        }
        if !self.is_synced {
            self.old.complete()?;
        }
        let named = self.write_head().and_then(|()| publish(&*self.files, &self.unfinished, &self.path));
        named.map_err(WalError::io(format!("naming {}", self.path.display())))?;
        self.note.write(&*self.files, Newest { begin: self.begin, end: None });
        Ok(())
    }

    fn write_head(&self) -> io::Result<()> {
        if !self.is_synced {
            return self.file.write_all_at(&self.head, 0).and_then(|()| self.file.sync());
        }
        // As a group is: space is being prepared through the page cache, and a sync there that fails takes with it what others wrote.
        let mut page = AlignedBuffer::default();
        page.resize(self.head.len() / PAGE_BYTES);
        page.bytes_mut().copy_from_slice(&self.head);
        self.file.write_all_at(page.bytes(), 0)
    }

    /// Completes the old file, if that is not done yet. Blocks for as long as the disk takes.
    pub(crate) fn complete(mut self) -> Result<(), WalError> {
        if self.is_synced { self.old.complete() } else { Ok(()) }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        self.stop_preparing();
    }
}

impl Segment {
    /// Makes a file that is ready to be written, under the name of an unfinished one.
    pub(crate) fn create(
        files: &Arc<dyn FileSystem>,
        path: &Path,
        head: Vec<u8>,
        is_direct: bool,
        prepare_chunk: u64,
        max: u64,
        threads: usize,
    ) -> io::Result<Self> {
        let unfinished = unfinished_name(path);
        let cached = files.open(&unfinished, OpenMode::CREATE)?;
        let offset = head.len() as u64;
        let made = (|| {
            cached.write_all_at(&head, 0)?;
            if !is_direct {
                cached.sync()?;
                return Ok((Arc::clone(&cached), Arc::new(Prepared::upto(offset, prepare_chunk)), None));
            }
            let prepared_end = offset + prepare_chunk.min(max.next_multiple_of(PAGE_BYTES as u64));
            prepare(&*cached, offset, prepared_end, prepare_chunk)?;
            cached.sync()?;
            let direct = files.open(&unfinished, OpenMode { synced: true, direct: true, ..OpenMode::MODIFY })?;
            let prepared = Arc::new(Prepared::upto(prepared_end, prepare_chunk));
            let (file, shared) = (Arc::clone(&cached), Arc::clone(&prepared));
            let preparer = match threads {
                0 => None,
                _ => Some(spawn_thread("wal-prepare", move || keep_prepared(&*file, &shared))?),
            };
            Ok((direct, prepared, preparer))
        })();
        let (file, prepared, preparer) = made.inspect_err(|_: &io::Error| {
            // If it stays all the same, the next start removes it.
            let _ = files.remove(&unfinished);
        })?;
        let path = path.to_path_buf();
        let (durable_offset, groups, grows_to, flushing) = (offset, 0, 0, None);
        Ok(Segment { path, file, cached, offset, durable_offset, groups, grows_to, max, prepared, preparer, flushing })
    }

    /// Has a thread sync what is written once the file is nearly full. The result is checked when the file is completed.
    pub(crate) fn flush_ahead(&mut self, config: &JournalConfig) {
        let is_due = self.offset > config.wal_max_size - config.wal_max_size / FLUSH_AHEAD_PART;
        if !is_due || self.flushing.is_some() || config.in_flight_max == 0 {
            return;
        }
        let (sender, flushed) = channel();
        let file = Arc::clone(&self.cached);
        let work = move || {
            // Nobody listens if the process ends.
            let _ = sender.send(file.sync());
        };
        if spawn_thread("wal-files", work).is_ok() {
            self.flushing = Some(flushed);
        }
    }

    /// Gives the file its name.
    pub(crate) fn publish(&self, files: &dyn FileSystem) -> io::Result<()> {
        publish(files, &unfinished_name(&self.path), &self.path)
    }

    /// Cuts what is prepared behind the last group and marks the file as complete.
    pub(crate) fn complete(&mut self) -> Result<(), WalError> {
        self.stop_preparing();
        assert!(self.durable_offset <= self.offset, "nothing behind the last group is durable");
        if let Some(flushed) = self.flushing.take() {
            // The system reports an error to one sync only: the next one may not see it.
            let what = format!("syncing {}", self.path.display());
            flushed.recv().unwrap_or(Ok(())).map_err(WalError::io(what))?;
        }
        let cut = || {
            let mut length = self.prepared.end.load(Ordering::Acquire);
            while length > self.offset + CUT_STEP_BYTES {
                length -= CUT_STEP_BYTES;
                self.cached.set_len(length)?;
            }
            // The marker first, over prepared space: a full disk takes it.
            self.cached.write_all_at(&EOF_MAGIC, self.offset)?;
            self.cached.set_len(self.offset + EOF_MAGIC.len() as u64)?;
            self.cached.sync()
        };
        cut().map_err(WalError::io(format!("closing {}", self.path.display())))
    }

    /// Cuts what is prepared behind the last group. From now on space is prepared by the writer itself.
    pub(crate) fn give_back_prepared(&mut self) -> io::Result<()> {
        self.stop_preparing();
        self.prepared = Arc::new(Prepared::upto(self.offset, self.prepared.chunk));
        self.cached.set_len(self.offset)
    }

    /// True if space is ready up to `end`; asks for more ahead.
    pub(crate) fn ensure(&self, end: u64) -> bool {
        let ready = self.prepared.end.load(Ordering::Acquire);
        let chunk = self.prepared.chunk;
        let ahead = (CHUNKS_AHEAD * chunk).max(self.offset);
        // No more than the file should have: what is cut off at its end is work for the file system while everybody waits for the next file.
        let wanted = if end <= self.max { self.max.min(end + ahead) } else { end + CHUNKS_AHEAD * chunk };
        if ready < wanted && ready < end + ahead / 2 {
            self.want(wanted);
        }
        if end <= ready {
            return true;
        }
        if self.preparer.is_none() {
            // Without threads space is prepared here.
            let upto = end.next_multiple_of(chunk);
            if prepare(&*self.cached, ready, upto, chunk).and_then(|()| self.cached.sync()).is_err() {
                return false;
            }
            self.prepared.end.store(upto, Ordering::Release);
            return true;
        }
        // The writer has overtaken the preparation: wait for it as long as it makes progress.
        while !self.prepared.is_full.load(Ordering::Acquire) {
            if self.prepared.end.load(Ordering::Acquire) >= end {
                return true;
            }
            yield_thread();
        }
        self.prepared.end.load(Ordering::Acquire) >= end
    }

    /// True if space is ready up to `end`.
    pub(crate) fn is_prepared_upto(&self, end: u64) -> bool {
        self.prepared.end.load(Ordering::Acquire) >= end
    }

    /// Has as much space prepared as the file before this one has used.
    pub(crate) fn prepare_alongside(&self, offset: u64) {
        if self.prepared.end.load(Ordering::Acquire) < offset.min(self.max) {
            self.want(self.max.min(offset + CHUNKS_AHEAD * self.prepared.chunk));
        }
    }

    /// Has the first stretch of a new file prepared: otherwise its writer would catch up with the preparation.
    pub(crate) fn prepare_ahead(&self) {
        self.want(self.offset + CHUNKS_AHEAD * self.prepared.chunk);
    }

    fn want(&self, end: u64) {
        let mut wanted = self.prepared.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if *wanted < end {
            *wanted = end;
        }
        self.prepared.changed.notify_one();
    }

    /// Asks for no more space. The chunk under way is finished.
    pub(crate) fn close_preparing(&self) {
        self.prepared.is_closed.store(true, Ordering::Release);
        drop(self.prepared.wanted.lock());
        self.prepared.changed.notify_one();
    }

    /// Blocks until nothing is prepared any more.
    pub(crate) fn stop_preparing(&mut self) {
        self.close_preparing();
        if let Some(preparer) = self.preparer.take() {
            let _ = preparer.join();
        }
    }
}

/// Gives a file its name, durably: what has the name of a log has a whole header.
fn publish(files: &dyn FileSystem, unfinished: &Path, path: &Path) -> io::Result<()> {
    files.rename(unfinished, path)?;
    path.parent().map_or(Ok(()), |dir| files.sync_dir(dir))
}

/// Fills a stretch of a file with empty blocks of a page each.
fn prepare(file: &dyn File, from: u64, to: u64, chunk: u64) -> io::Result<()> {
    let mut page = vec![0; PAGE_BYTES];
    encode_filler(&mut page);
    let mut at = from;
    while at < to {
        let pages = (to - at).min(chunk) / PAGE_BYTES as u64;
        let chunk = page.repeat(pages as usize);
        file.write_all_at(&chunk, at)?;
        at += chunk.len() as u64;
    }
    Ok(())
}

/// The thread that prepares space ahead. On a full disk it tries again now and then.
fn keep_prepared(file: &dyn File, shared: &Prepared) {
    loop {
        let mut wanted = shared.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        while !shared.is_closed.load(Ordering::Acquire) && *wanted <= shared.end.load(Ordering::Relaxed) {
            wanted = shared.changed.wait(&shared.wanted, wanted);
        }
        let target = *wanted;
        drop(wanted);
        if shared.is_closed.load(Ordering::Acquire) {
            return;
        }
        let from = shared.end.load(Ordering::Relaxed);
        let to = target.min(from + shared.chunk).next_multiple_of(PAGE_BYTES as u64);
        assert!(from < to && from.is_multiple_of(PAGE_BYTES as u64), "whole pages behind those that are ready");
        match prepare(file, from, to, shared.chunk).and_then(|()| file.sync()) {
            Ok(()) => {
                // Groups go past the page cache, and each would have to take its pages out of it first.
                file.forget_cached(from, to - from);
                shared.end.store(to, Ordering::Release);
                shared.is_full.store(false, Ordering::Release);
            }
            Err(error) => {
                if !shared.is_full.swap(true, Ordering::AcqRel) {
                    tracing::warn!("no space for the log: {error}; writes are refused until there is");
                }
                let wanted = shared.wanted.lock().unwrap_or_else(PoisonError::into_inner);
                drop(shared.changed.wait_for(&shared.wanted, wanted, RETRY_NS));
            }
        }
    }
}
