//! The work of other threads: memtables become runs, runs become fewer runs.

use super::debt::Haste;
use super::entry::{Entry, EntryKind};
use super::error::LsmError;
use super::manifest::Manifest;
use super::memtable::SharedMemtable;
use super::merge::{Source, Upserter, merge};
use super::run::{OpenFiles, Run, RunOptions, RunSource, RunWriter};
use runtime::{FileSystem, JoinHandle, OpenMode, Pace, pause};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, TryLockError};

/// Entries between two looks whether to leave off.
const ENTRIES_BETWEEN_LOOKS: u64 = 256;
/// Leisurely compactions use one part of so many of it while others are busy.
const LEISURELY_SHARE: u32 = 2;
/// A run of a dump that is smaller goes on behind a cut: files are not worth being so small.
const CUT_BYTES_MIN: u64 = 2 << 20;
/// A file that is not needed any more is truncated in steps of this size before it is removed.
const REMOVAL_STEP_BYTES: u64 = 4 << 20;

/// Interval between attempts to lock the manifest while another thread writes to it.
pub(super) const LOCK_WAIT_NS: u64 = 100_000;

/// A memtable that is being written, and then the runs made of it.
pub(crate) type RunJob = Job<(MemtableDump, Result<Vec<Run>, LsmError>)>;

/// A result that a thread will send.
pub(crate) struct Job<T> {
    pub(crate) outcome: Receiver<T>,
    pub(crate) worker: Option<JoinHandle<()>>,
}

impl<T> Job<T> {
    pub(crate) fn poll(&mut self) -> Option<T> {
        self.outcome.try_recv().ok()
    }

    pub(crate) fn wait(mut self) -> Option<T> {
        self.worker.take().map(JoinHandle::join);
        self.outcome.recv().ok()
    }
}

/// What the threads share with the engine.
#[derive(Clone)]
pub(crate) struct Workplace {
    pub(crate) files: Arc<dyn FileSystem>,
    pub(crate) dir: PathBuf,
    /// Numbers of runs, ranges and trees.
    pub(crate) ids: Arc<AtomicU64>,
    /// Files of runs that are open.
    pub(crate) open_files: Arc<OpenFiles>,
    /// Set when the engine is closed: jobs leave off.
    pub(crate) is_stopped: Arc<AtomicBool>,
    /// Made before there are runs.
    pub(crate) manifest: Arc<Mutex<Manifest>>,
    pub(crate) has_manifest: Arc<AtomicBool>,
}

impl Workplace {
    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Begins a run. Blocks.
    fn create(&self, options: RunOptions) -> Result<RunWriter, LsmError> {
        // Whoever has the lock may be waiting for the disk, on another thread: asked for again and again, so that a simulation can go on.
        while !self.has_manifest.load(Ordering::Acquire) {
            match self.manifest.try_lock() {
                Ok(mut manifest) => manifest.begin()?,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().begin()?,
                Err(TryLockError::WouldBlock) => {
                    pause(LOCK_WAIT_NS);
                    continue;
                }
            }
            self.has_manifest.store(true, Ordering::Release);
        }
        RunWriter::create(self.files.clone(), &self.dir, self.next_id(), options)
    }

    /// A run that was written is whole.
    fn finish(&self, writer: RunWriter) -> Result<Option<Run>, LsmError> {
        let run = writer.finish()?;
        Ok(run.inspect(|run| run.share(&self.open_files)))
    }

    /// Opens a run. Blocks.
    pub(crate) fn open(&self, run_id: u64) -> Result<Run, LsmError> {
        let run = Run::open(&*self.files, &self.dir, run_id)?;
        run.share(&self.open_files);
        Ok(run)
    }

    /// Removes runs that were written in vain.
    fn remove<'a>(&self, runs: impl Iterator<Item = &'a Run>) {
        // What stays is an orphan that the next start removes.
        runs.for_each(|run| drop(self.files.remove(run.path())));
    }

    fn check_stopped(&self) -> Result<(), LsmError> {
        if self.is_stopped.load(Ordering::Relaxed) {
            let source = std::io::Error::from(std::io::ErrorKind::Interrupted);
            return Err(LsmError::Io { what: "the engine is being closed".to_string(), source });
        }
        Ok(())
    }
}

/// A memtable of one tree that is to become runs.
pub(crate) struct MemtableDump {
    pub(crate) tree_id: u64,
    pub(crate) memtable: SharedMemtable,
    pub(crate) options: RunOptions,
    /// Nothing lies below: deletes say nothing, and upserts are rows.
    pub(crate) is_bottom: bool,
    /// Keys at which one run gives way to the next, ascending.
    pub(crate) cuts: Vec<Vec<u8>>,
    pub(crate) upserter: Arc<dyn Upserter>,
}

/// Writes the runs of each memtable, in order. If one fails none is left: the next attempt writes them all.
pub(crate) fn dump(place: &Workplace, dumps: &[MemtableDump]) -> Result<Vec<Vec<Run>>, LsmError> {
    let mut runs = Vec::with_capacity(dumps.len());
    let result = dumps.iter().try_for_each(|dump| {
        runs.push(dump_memtable(place, dump)?);
        Ok(())
    });
    match result {
        Ok(()) => Ok(runs),
        Err(error) => {
            place.remove(runs.iter().flatten());
            Err(error)
        }
    }
}

/// Writes runs of a memtable, in order of their keys. If it fails none is left.
pub(crate) fn dump_memtable(place: &Workplace, dump: &MemtableDump) -> Result<Vec<Run>, LsmError> {
    let mut finished = Vec::new();
    match write_runs(place, dump, &mut finished) {
        Ok(()) => Ok(finished),
        Err(error) => {
            place.remove(finished.iter());
            Err(error)
        }
    }
}

fn write_runs(place: &Workplace, dump: &MemtableDump, finished: &mut Vec<Run>) -> Result<(), LsmError> {
    let begin = || {
        let mut writer = place.create(dump.options)?;
        writer.keep_pace(Pace::urgent());
        Ok::<_, LsmError>(writer)
    };
    let mut writer = begin()?;
    let mut cuts = dump.cuts.iter().peekable();
    let mut made = Vec::new();
    let (mut count, mut vanished) = (0u64, 0);
    dump.memtable.for_each(|entry, filter_prefix| {
        count += 1;
        if count.is_multiple_of(ENTRIES_BETWEEN_LOOKS) {
            place.check_stopped()?;
        }
        let mut is_behind_cut = false;
        while cuts.next_if(|cut| cut.as_slice() <= entry.key).is_some() {
            is_behind_cut = true;
        }
        if is_behind_cut && writer.bytes() >= CUT_BYTES_MIN {
            finished.extend(place.finish(std::mem::replace(&mut writer, begin()?))?);
        }
        match entry.kind {
            EntryKind::Delete if dump.is_bottom => {
                vanished += 1;
                Ok(())
            }
            EntryKind::Upsert if dump.is_bottom => {
                made.clear();
                dump.upserter.apply(None, entry.value, &mut made);
                writer.add(Entry { kind: EntryKind::Put, value: &made, ..entry }, filter_prefix)
            }
            _ => writer.add(entry, filter_prefix),
        }
    })?;
    finished.extend(place.finish(writer)?);
    let written: u64 = finished.iter().map(Run::entries).sum();
    assert_eq!(written + vanished, count, "every entry of a memtable is in one of its runs");
    Ok(())
}

/// Removes a file that nobody needs. A large one is cut shorter again and again first: whoever syncs beside it waits for what the file
/// system has to do for its removal, and a disk that is told of free space has to do it at once.
pub(crate) fn remove_slowly(files: &dyn FileSystem, path: &Path) {
    let mut pace = Pace::brisk();
    let mut cut = || {
        let file = files.open(path, OpenMode::MODIFY)?;
        let mut length = file.len()?;
        while length > REMOVAL_STEP_BYTES {
            length -= REMOVAL_STEP_BYTES;
            file.set_len(length)?;
            pace.rest();
        }
        std::io::Result::Ok(())
    };
    // One that cannot be cut may be removed all the same; what stays is an orphan that the next start removes.
    let _ = cut();
    let _ = files.remove(path);
}

/// Runs of a range that become one, or several that lie one behind the other.
pub(crate) struct Compaction {
    /// Newest first.
    pub(crate) runs: Vec<Arc<Run>>,
    pub(crate) from: Vec<u8>,
    pub(crate) to: Option<Vec<u8>>,
    /// Nothing older lies below them.
    pub(crate) is_bottom: bool,
    /// Size at which a run ends and the next one begins; none: never.
    pub(crate) split_bytes: Option<u64>,
    /// How many parts of a key the filter knows; none: the whole key.
    pub(crate) filter_parts: Option<u32>,
    pub(crate) options: RunOptions,
    pub(crate) upserter: Arc<dyn Upserter>,
    pub(crate) haste: Haste,
}

/// Merges. The new runs are in order of their keys. If it fails none is left.
pub(crate) fn compact(place: &Workplace, job: &Compaction) -> Result<Vec<Run>, LsmError> {
    let mut finished = Vec::new();
    match merge_runs(place, job, &mut finished) {
        Ok(()) => Ok(finished),
        Err(error) => {
            place.remove(finished.iter());
            Err(error)
        }
    }
}

fn merge_runs(place: &Workplace, job: &Compaction, finished: &mut Vec<Run>) -> Result<(), LsmError> {
    let mut sources: Vec<Box<dyn Source>> = Vec::new();
    for run in &job.runs {
        sources.push(Box::new(RunSource::new(Arc::clone(run), &job.from, job.to.clone())?));
    }
    let mut writer: Option<RunWriter> = None;
    let mut count = 0u64;
    merge(sources, job.is_bottom, &*job.upserter, &mut |entry| {
        count += 1;
        if count.is_multiple_of(ENTRIES_BETWEEN_LOOKS) {
            place.check_stopped()?;
        }
        let is_full = writer.as_ref().is_some_and(|writer| job.split_bytes.is_some_and(|max| writer.bytes() >= max));
        if is_full && let Some(full) = writer.take() {
            finished.extend(place.finish(full)?);
        }
        let filter_prefix = match job.filter_parts {
            Some(parts) => super::tree::own_prefix(entry.key, parts),
            None => entry.key.len(),
        };
        let writer = match &mut writer {
            Some(writer) => writer,
            None => {
                let mut new = place.create(job.options)?;
                new.keep_pace(match job.haste {
                    Haste::Leisurely => Pace::new(LEISURELY_SHARE),
                    Haste::Brisk => Pace::brisk(),
                    Haste::Urgent => Pace::urgent(),
                });
                writer.insert(new)
            }
        };
        writer.add(entry, filter_prefix)
    })?;
    if let Some(writer) = writer {
        finished.extend(place.finish(writer)?);
    }
    Ok(())
}
