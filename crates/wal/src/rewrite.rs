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
use runtime::{Condvar, FileSystem, JoinHandle, OpenMode, PAGE_BYTES, Pace, idle_priority, pause, spawn_thread};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Rows of one block before it is compressed. Damage costs all rows of a block.
const BLOCK_BYTES: usize = 32 << 10;
/// As for snapshots.
const COMPRESSION_LEVEL: i32 = 1;
const COMPRESS_FROM: usize = 2048;
/// Read and written before the disk gets it.
const STEP_BYTES: u64 = 256 << 10;
/// Bytes of a log that are read in a second, beside those who write.
const RATE: u64 = 32 << 20;
/// While other threads are busy, the rewriting thread works this part of the time (a quarter).
const SHARE: u32 = 4;
/// Longest time between its looks whether it has to stop.
const PAUSE_MAX_NS: u64 = 20_000_000;
/// A clean stop spends at most this long on the log that it has completed.
const STOP_MAX_NS: u64 = 1_000_000_000;

/// Whether a rewritten log may take the place of the old one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Naming {
    #[default]
    Free,
    /// The thread renames a file and syncs the directory.
    UnderWay,
    /// Files are being copied: nothing is renamed.
    Held,
}

/// What the journal and the thread share.
#[derive(Default)]
struct Shared {
    is_wanted: AtomicBool,
    /// Logs before the one with this signature are complete, or never will be.
    newest: AtomicI64,
    is_running: AtomicBool,
    is_stopped: AtomicBool,
    naming: Mutex<Naming>,
    /// Notified when `naming` leaves `UnderWay`.
    named: Condvar,
    /// Signatures of the logs in the directory that were looked at and stay as they are.
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
        if is_off || shared.is_held() {
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
            loop {
                while shared.is_wanted.swap(false, Ordering::AcqRel) {
                    shared.rewrite_all(&thread_config);
                }
                shared.is_running.store(false, Ordering::Release);
                // A `look` between the two found a running thread and began none.
                let is_missed = shared.is_wanted.load(Ordering::Acquire);
                if !is_missed || shared.is_running.swap(true, Ordering::AcqRel) {
                    return;
                }
            }
        };
        match spawn_thread("wal-rewrite", work) {
            Ok(worker) => self.worker = Some(worker),
            // Tried again with the next log.
            Err(_) => self.shared.is_running.store(false, Ordering::Release),
        }
    }

    /// Until `release` no log is replaced by its rewritten form. If one is being replaced, blocks until that is done.
    pub(crate) fn hold(&self) {
        let shared = &self.shared;
        let mut naming = shared.naming();
        while *naming == Naming::UnderWay {
            naming = shared.named.wait(&shared.naming, naming);
        }
        *naming = Naming::Held;
    }

    /// Ends `hold`.
    pub(crate) fn release(&self) {
        let mut naming = self.shared.naming();
        if *naming == Naming::Held {
            *naming = Naming::Free;
        }
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
        if config.rewrite_bytes == u64::MAX || self.shared.is_held() {
            return;
        }
        let began = config.clock.monotonic_ns();
        let goes_on = |_: u64| config.clock.monotonic_ns() - began < STOP_MAX_NS;
        report(path, rewrite(&*config.files, path, config.rewrite_bytes, goes_on, || true));
    }
}

impl Shared {
    fn naming(&self) -> MutexGuard<'_, Naming> {
        self.naming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> MutexGuard<'_, BTreeSet<i64>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_held(&self) -> bool {
        *self.naming() == Naming::Held
    }

    /// Claims the right to rename a file. False while files are held.
    fn begin_naming(&self) -> bool {
        let mut naming = self.naming();
        debug_assert!(*naming != Naming::UnderWay, "one thread renames");
        let is_free = *naming == Naming::Free;
        if is_free {
            *naming = Naming::UnderWay;
        }
        is_free
    }

    /// Gives the right back, if it was claimed, and wakes the thread that waits in `hold`.
    fn end_naming(&self) {
        let mut naming = self.naming();
        if *naming == Naming::UnderWay {
            *naming = Naming::Free;
            self.named.notify_one();
        }
    }

    fn rewrite_all(&self, config: &JournalConfig) {
        let newest = self.newest.load(Ordering::Acquire);
        let Ok(all) = logs(&*config.files, &config.dir) else { return };
        // Checkpoints remove logs: what was noted of those goes, so that the set is no larger than the directory.
        self.kept().retain(|begin| all.binary_search_by_key(begin, |(found, _)| *found).is_ok());
        for (begin, path) in all.iter().filter(|(begin, _)| *begin < newest) {
            if !self.goes_on() {
                return;
            }
            if self.kept().contains(begin) {
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
            let mut is_refused = false;
            let may_name = || {
                is_refused = !self.begin_naming();
                !is_refused
            };
            let done = rewrite(&*config.files, path, config.rewrite_bytes, goes_on, may_name);
            self.end_naming();
            report(path, done);
            // One that was refused its name is tried again after `release`.
            if !is_refused && self.goes_on() {
                self.kept().insert(*begin);
            }
        }
    }

    fn goes_on(&self) -> bool {
        !self.is_stopped.load(Ordering::Acquire) && !self.is_held()
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
    assert!(after <= after_max && after_max < before, "a rewritten log is shorter");
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::WalMode;
    use crate::xlog::file_name;
    use runtime::{ManualClock, SimulatedFiles};
    use std::path::PathBuf;

    #[test]
    fn rewrites_remember_only_logs_that_are_there() {
        let files = SimulatedFiles::default();
        let dir = PathBuf::from("/db");
        files.open(&dir.join(file_name(20, "xlog")), OpenMode::CREATE).expect("the simulated disk takes a file");
        let config = JournalConfig {
            files: Arc::new(files),
            clock: Arc::new(ManualClock::default()),
            dir,
            mode: WalMode::Fsync,
            wal_max_size: 1 << 20,
            instance_uuid: String::new(),
            replica_id: 1,
            in_flight_max: 1,
            queue_bytes_max: 1 << 20,
            prepare_bytes: 64 << 10,
            rewrite_bytes: 1,
        };
        let shared = Shared::default();
        shared.kept().extend([10, 20, 30]);
        shared.rewrite_all(&config);
        assert_eq!(*shared.kept(), BTreeSet::from([20]));
    }

    #[test]
    fn hold_waits_for_the_file_that_gets_its_name_and_refuses_the_next() {
        let rewrites = Rewrites::default();
        assert!(rewrites.shared.begin_naming());
        let shared = Arc::clone(&rewrites.shared);
        let worker = spawn_thread("wal-rewrite", move || shared.end_naming()).expect("a thread can be made");
        rewrites.hold();
        worker.join();
        assert!(rewrites.shared.is_held() && !rewrites.shared.begin_naming());
        rewrites.release();
        assert!(rewrites.shared.begin_naming());
    }
}
