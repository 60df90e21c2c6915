//! Completed logs without padding.
//!
//! A group of the synced log takes whole pages, however few rows are in it: that is what makes it fast to write. Once a log is complete nobody writes
//! to it again, so a thread writes its rows once more, blocks behind each other and packed, under the name of an unfinished file:
//!
//! ```text
//! NAME.xlog --read, rows counted and summed--> NAME.xlog.inprogress --synced, read back, compared--> renamed over NAME.xlog, directory synced
//! ```
//!
//! A crash leaves the one or the other under the name, either of them whole and durable; what is unfinished is removed by the next start. Name,
//! header, rows and their order stay, so whatever notes say of the log stays true. A log that is not whole to the last bit is left as it is: what is
//! wrong with it must stay to be seen. Refused: groups beside each other in a page while the log is written. A page would be written twice, and a torn
//! one would take what was acknowledged with it.

use crate::block::{EOF_MAGIC, FIXHEADER_BYTES, encode_compressed, encode_plain};
use crate::error::WalError;
use crate::journal::JournalConfig;
use crate::snapshot::unfinished_name;
use crate::xlog::{Block, XlogReader, logs};
use runtime::{FileSystem, JoinHandle, OpenMode, PAGE_BYTES, Pace, idle_priority, pause, spawn_thread, yield_thread};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Rows of one block before it is compressed. Damage costs all rows of a block.
const BLOCK_BYTES: usize = 32 << 10;
/// As for snapshots.
const COMPRESSION_LEVEL: i32 = 1;
const COMPRESS_FROM: usize = 2048;
/// Read and written before the disk gets it.
const STEP_BYTES: u64 = 256 << 10;
/// Bytes of a log that are read in a second, beside those who write.
const RATE: u64 = 32 << 20;
/// The thread that does it works one part of so many while others are busy.
const SHARE: u32 = 4;
/// It looks so often whether it is to stop.
const PAUSE_MAX_NS: u64 = 20_000_000;
/// A clean stop waits so long for the log that it has completed.
const STOP_MAX_NS: u64 = 1_000_000_000;

/// Whether a file may get its name.
mod naming {
    pub(super) const FREE: u8 = 0;
    pub(super) const UNDER_WAY: u8 = 1;
    /// Somebody copies files.
    pub(super) const HELD: u8 = 2;
}

/// What the journal and the thread share.
#[derive(Default)]
struct Shared {
    is_wanted: AtomicBool,
    /// Logs before the one with this signature are complete, or never will be.
    newest: AtomicI64,
    is_running: AtomicBool,
    is_stopped: AtomicBool,
    naming: AtomicU8,
    /// Logs that were looked at and stay as they are, by their signature.
    kept: Mutex<BTreeSet<i64>>,
}

/// Rewrites the completed logs of a directory, one at a time, on a thread that ends when there are no more.
#[derive(Default)]
pub(crate) struct Rewrites {
    shared: Arc<Shared>,
    worker: Option<JoinHandle<()>>,
}

impl Rewrites {
    /// Logs before the one with this signature are complete, or never will be. Does not block.
    pub(crate) fn look(&mut self, config: &JournalConfig, newest: i64) {
        let shared = &self.shared;
        shared.newest.store(newest, Ordering::Release);
        shared.is_wanted.store(true, Ordering::Release);
        let is_off = config.rewrite_bytes == u64::MAX || config.in_flight_max == 0;
        if is_off || shared.naming.load(Ordering::Acquire) == naming::HELD {
            return;
        }
        if shared.is_running.swap(true, Ordering::AcqRel) {
            return;
        }
        // It has ended, or will at once.
        if let Some(worker) = self.worker.take() {
            worker.join();
        }
        let (thread_config, shared) = (config.clone(), Arc::clone(shared));
        let work = move || {
            idle_priority();
            while shared.is_wanted.swap(false, Ordering::AcqRel) {
                shared.rewrite_all(&thread_config);
            }
            shared.is_running.store(false, Ordering::Release);
        };
        match spawn_thread("wal-rewrite", work) {
            Ok(worker) => self.worker = Some(worker),
            // Tried again with the next log.
            Err(_) => self.shared.is_running.store(false, Ordering::Release),
        }
    }

    /// No file gives way to another until `release`. Blocks while one does.
    pub(crate) fn hold(&self) {
        let naming = &self.shared.naming;
        while let Err(now) = naming.compare_exchange(naming::FREE, naming::HELD, Ordering::AcqRel, Ordering::Acquire)
            && now != naming::HELD
        {
            yield_thread();
        }
    }

    /// Ends `hold`.
    pub(crate) fn release(&self) {
        let _ = self.shared.naming.compare_exchange(naming::HELD, naming::FREE, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Ends the thread; what it has not finished is removed. Blocks shortly.
    pub(crate) fn stop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Release);
        if let Some(worker) = self.worker.take() {
            worker.join();
        }
    }

    /// Rewrites the log that a clean stop has completed, if that does not take long. Blocks.
    pub(crate) fn rewrite_last(&self, config: &JournalConfig, path: &Path) {
        if config.rewrite_bytes == u64::MAX || self.shared.naming.load(Ordering::Acquire) == naming::HELD {
            return;
        }
        let began = config.clock.monotonic_ns();
        let goes_on = |_: u64| config.clock.monotonic_ns() - began < STOP_MAX_NS;
        report(path, rewrite(&*config.files, path, config.rewrite_bytes, goes_on, || true));
    }
}

impl Shared {
    fn rewrite_all(&self, config: &JournalConfig) {
        let newest = self.newest.load(Ordering::Acquire);
        let Ok(all) = logs(&*config.files, &config.dir) else { return };
        for (begin, path) in all.iter().filter(|(begin, _)| *begin < newest) {
            if !self.goes_on() {
                return;
            }
            if self.kept.lock().unwrap_or_else(PoisonError::into_inner).contains(begin) {
                continue;
            }
            let (clock, began) = (&config.clock, config.clock.monotonic_ns());
            let mut pace = Pace::new(SHARE);
            let goes_on = |read: u64| {
                pace.rest();
                let due_ns = (u128::from(read) * 1_000_000_000 / u128::from(RATE)) as u64;
                let mut rest_ns = due_ns.saturating_sub(clock.monotonic_ns() - began);
                while rest_ns > 0 && self.goes_on() {
                    pause(rest_ns.min(PAUSE_MAX_NS));
                    rest_ns = rest_ns.saturating_sub(PAUSE_MAX_NS);
                }
                self.goes_on()
            };
            let may_name = || {
                let begun =
                    self.naming.compare_exchange(naming::FREE, naming::UNDER_WAY, Ordering::AcqRel, Ordering::Acquire);
                begun.is_ok()
            };
            let done = rewrite(&*config.files, path, config.rewrite_bytes, goes_on, may_name);
            let _ = self.naming.compare_exchange(naming::UNDER_WAY, naming::FREE, Ordering::AcqRel, Ordering::Acquire);
            report(path, done);
            if self.goes_on() {
                self.kept.lock().unwrap_or_else(PoisonError::into_inner).insert(*begin);
            }
        }
    }

    fn goes_on(&self) -> bool {
        !self.is_stopped.load(Ordering::Acquire) && self.naming.load(Ordering::Acquire) != naming::HELD
    }
}

/// Nothing depends on it: what could not be rewritten is as good as it was.
fn report(path: &Path, done: Result<Option<Rewritten>, WalError>) {
    match done {
        Ok(Some(Rewritten { before, after })) => {
            tracing::info!("{} takes {after} bytes instead of {before}", path.display());
        }
        Ok(None) => {}
        Err(error) => tracing::info!("{} keeps its padding: {error}", path.display()),
    }
}

/// What a log took, and what it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// Bytes before.
    pub before: u64,
    /// Bytes now.
    pub after: u64,
}

/// What both files must agree in.
#[derive(Default, PartialEq, Eq)]
struct Content {
    rows: u64,
    bytes: u64,
    checksum: u32,
}

impl Content {
    fn add(&mut self, reader: &XlogReader) {
        self.rows += reader.unpacked().len() as u64;
        self.bytes += reader.rows().len() as u64;
        self.checksum = crc32c::crc32c_append(self.checksum, reader.rows());
    }
}

/// Writes a completed log of padded groups once more without padding. `None` if it stays as it is: it has no padding, is not complete, is damaged, or
/// would not lose `bytes_min` bytes and a quarter of them. `goes_on` is asked now and then, with the bytes read so far, whether to go on;
/// `may_name` before the file takes the place of the old one. Blocks.
///
/// Errors: `Io`; the log is what it was, or is rewritten.
pub fn rewrite(
    files: &dyn FileSystem,
    path: &Path,
    bytes_min: u64,
    mut goes_on: impl FnMut(u64) -> bool,
    may_name: impl FnOnce() -> bool,
) -> Result<Option<Rewritten>, WalError> {
    let unfinished = unfinished_name(path);
    let done = write(files, path, &unfinished, bytes_min, &mut goes_on).and_then(|written| {
        let Some((rewritten, content)) = written else { return Ok(None) };
        // A checkpoint may have removed it meanwhile.
        let is_same = is_same(files, path, &unfinished, &content, &mut goes_on)?;
        if !is_same || !files.exists(path) || !may_name() {
            return Ok(None);
        }
        let named = files.rename(&unfinished, path);
        named.map_err(WalError::io(format!("naming {}", path.display())))?;
        let synced = path.parent().map_or(Ok(()), |dir| files.sync_dir(dir));
        // Either of the two files may be there behind a crash, and either will do.
        synced.map_err(WalError::io(format!("naming {}", path.display())))?;
        Ok(Some(rewritten))
    });
    if !matches!(done, Ok(Some(_))) && files.exists(&unfinished) {
        // If it stays all the same, the next start removes it.
        let _ = files.remove(&unfinished);
    }
    done
}

/// Writes the unfinished file and syncs it.
fn write(
    files: &dyn FileSystem,
    path: &Path,
    unfinished: &Path,
    bytes_min: u64,
    goes_on: &mut impl FnMut(u64) -> bool,
) -> Result<Option<(Rewritten, Content)>, WalError> {
    let (mut reader, damage) = XlogReader::open_damaged(files, path)?;
    let before = reader.len();
    if damage.is_some() || before < bytes_min {
        return Ok(None);
    }
    let after_max = (before - bytes_min).min(before / 4 * 3);
    let mut head = vec![0; reader.meta.bytes as usize];
    if reader.read(&mut head, 0)? < head.len() {
        return Ok(None);
    }
    // In front of padded groups an empty block fills the page of the header.
    if !matches!(reader.next_block()?, Block::Rows { .. })
        || !reader.rows().is_empty()
        || reader.offset() != PAGE_BYTES as u64
    {
        return Ok(None);
    }
    let what = || format!("writing {}", unfinished.display());
    let source = files.open(path, OpenMode::READ).map_err(WalError::io(what()))?;
    let file = files.open(unfinished, OpenMode::CREATE).map_err(WalError::io(what()))?;
    let mut compressor = zstd::bulk::Compressor::new(COMPRESSION_LEVEL).map_err(WalError::io("starting zstd"))?;
    file.write_all_at(&head, 0).map_err(WalError::io(what()))?;
    let (mut offset, mut sent, mut forgotten) = (head.len() as u64, 0, 0);
    let (mut rows, mut block) = (Vec::new(), Vec::new());
    let mut content = Content::default();
    let mut last_group = 0;
    loop {
        let is_over = match reader.next_block()? {
            Block::Rows { note, .. } => {
                // One that is missing was never acknowledged, or is lost: whoever reads the log has to see that.
                if note.is_some_and(|note| note.number != last_group + 1) {
                    return Ok(None);
                }
                last_group = note.map_or(last_group, |note| note.number);
                content.add(&reader);
                rows.extend_from_slice(reader.rows());
                false
            }
            Block::Eof => true,
            Block::End | Block::Damaged(_) => return Ok(None),
        };
        // A transaction is never cut: it is in one group, and a group in one block.
        if rows.len() >= BLOCK_BYTES || is_over && !rows.is_empty() {
            block.clear();
            match rows.len() >= COMPRESS_FROM {
                true => encode_compressed(&rows, &mut compressor, &mut block).map_err(WalError::io(what()))?,
                false => encode_plain(&rows, &mut block),
            }
            if offset + block.len() as u64 + (EOF_MAGIC.len() as u64) > after_max {
                return Ok(None);
            }
            file.write_all_at(&block, offset).map_err(WalError::io(what()))?;
            offset += block.len() as u64;
            rows.clear();
            if offset - sent >= STEP_BYTES {
                file.write_behind(sent, offset - sent).map_err(WalError::io(what()))?;
                sent = offset;
            }
        }
        if is_over {
            break;
        }
        if reader.offset() - forgotten >= STEP_BYTES {
            source.forget_cached(forgotten, reader.offset() - forgotten);
            forgotten = reader.offset();
            if !goes_on(forgotten) {
                return Ok(None);
            }
        }
    }
    file.write_all_at(&EOF_MAGIC, offset).map_err(WalError::io(what()))?;
    let after = offset + EOF_MAGIC.len() as u64;
    file.sync().map_err(WalError::io(what()))?;
    source.forget_cached(0, before);
    // What is compared comes from the disk.
    file.forget_cached(0, after);
    Ok(Some((Rewritten { before, after }, content)))
}

/// True if the unfinished file says what the old one said.
fn is_same(
    files: &dyn FileSystem,
    path: &Path,
    unfinished: &Path,
    wanted: &Content,
    goes_on: &mut impl FnMut(u64) -> bool,
) -> Result<bool, WalError> {
    let header = |path: &Path| {
        let (reader, damage) = XlogReader::open_damaged(files, path)?;
        let mut bytes = vec![0; reader.meta.bytes as usize];
        reader.read(&mut bytes, 0)?;
        Ok::<_, WalError>((damage.is_none(), bytes))
    };
    if header(path)? != header(unfinished)? {
        return Ok(false);
    }
    let (mut reader, _) = XlogReader::open_damaged(files, unfinished)?;
    let mut found = Content::default();
    let mut looked_at = 0;
    loop {
        match reader.next_block()? {
            Block::Rows { .. } => found.add(&reader),
            Block::Eof => return Ok(found == *wanted),
            Block::End | Block::Damaged(_) => return Ok(false),
        }
        if reader.offset() - looked_at >= STEP_BYTES {
            looked_at = reader.offset();
            if !goes_on(looked_at) {
                return Ok(false);
            }
        }
    }
}

const _: () = assert!(FIXHEADER_BYTES < COMPRESS_FROM && COMPRESS_FROM < BLOCK_BYTES);
