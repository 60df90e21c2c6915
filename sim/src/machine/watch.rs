//! Looks over the server's shoulder: what it logs and what its files answer goes into the trace, and tells which branches it came to.
//!
//! The run of a seed enters a [`Watch`] on its thread; one thread runs one seed at a time.

use super::branch::Branch;
use runtime::{File, FileSystem, OpenMode, Simulation};
use std::any::Any;
use std::cell::RefCell;
use std::fmt::{self, Write};
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tracing::field::{Field, Visit};
use tracing::span;
use tracing::{Event, Level, Metadata, Subscriber};

thread_local! {
    static WATCHED: RefCell<Option<Rc<Simulation>>> = const { RefCell::new(None) };
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// How the line begins by which a fiber says that it panicked: its connection ends, and the server goes on.
const FIBER_PANICKED: &str = "a fiber panicked: ";

/// Runs `work` while the simulation is watched.
pub(super) fn enter<T>(simulation: &Rc<Simulation>, work: impl FnOnce() -> T) -> T {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            WATCHED.with(|watched| watched.borrow_mut().take());
        }
    }
    WATCHED.with(|watched| *watched.borrow_mut() = Some(Rc::clone(simulation)));
    take_panic();
    let _leave = Leave;
    tracing::subscriber::with_default(ServerLog, work)
}

fn with(look: impl FnOnce(&Simulation)) {
    let simulation = WATCHED.with(|watched| watched.borrow().clone());
    if let Some(simulation) = simulation {
        look(&simulation);
    }
}

/// A branch was reached.
pub(super) fn count(branch: Branch) {
    with(|simulation| simulation.count(branch.name()));
}

/// What a fiber of the server has said that panicked since the last look.
pub(super) fn take_panic() -> Option<String> {
    PANIC.with(|panic| panic.borrow_mut().take())
}

/// The trace of the seed that runs on this thread: for those who see it panic.
pub fn trace_so_far() -> Vec<String> {
    WATCHED.with(|watched| watched.borrow().as_ref().map(|simulation| simulation.trace()).unwrap_or_default())
}

/// What the server logs.
struct ServerLog;

/// The text of an event.
#[derive(Default)]
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            // A string takes everything.
            let _ = write!(self.0, "{value:?}");
        }
    }
}

impl Subscriber for ServerLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO || metadata.target().starts_with("storage::lsm")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        if text.0.starts_with(FIBER_PANICKED) {
            PANIC.with(|panic| *panic.borrow_mut() = Some(text.0.clone()));
        }
        branches_of(&text.0).into_iter().flatten().for_each(count);
        with(|simulation| simulation.note(5, || format!("server: {} {}", event.metadata().level(), text.0)));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// What a machine that is off says counts for nothing: nobody hears it.
fn is_of_power_loss(text: &str) -> bool {
    text.contains("simulated power loss")
}

/// What a line of the server's log tells. If its words change, the branch is never reached and named as a gap.
fn branches_of(line: &str) -> [Option<Branch>; 2] {
    let one = |branch| [Some(branch), None];
    if is_of_power_loss(line) {
        [None, None]
    } else if line.starts_with("the log failed:") {
        one(Branch::LogFailed)
    } else if line.starts_with("no space for the log:") {
        one(Branch::LogOutOfSpace)
    } else if line.ends_with(" is written on") {
        one(Branch::LogNotRotated)
    } else if line.starts_with("checkpoint /") {
        one(Branch::CheckpointMade)
    } else if line.starts_with("the checkpoint failed:") {
        one(Branch::CheckpointFailed)
    } else if line.contains(" rows were looked at for a change of space ") {
        one(Branch::RowsLookedAt)
    } else if line.starts_with("a change of space ") && line.contains(" is given up:") {
        one(Branch::LookGivenUp)
    } else if line.starts_with("freed a space in ") {
        one(Branch::FreedInSlices)
    } else if line.starts_with("a dump up to position ") {
        one(Branch::Dump)
    } else if line.starts_with("a dump failed:") {
        let is_full = line.contains(&io::Error::from(io::ErrorKind::StorageFull).to_string());
        [Some(Branch::DumpFailed), is_full.then_some(Branch::DumpDiskFull)]
    } else if line.starts_with("a record of the manifest failed:") {
        one(Branch::ManifestFailed)
    } else if line.starts_with("a compaction of ") && line.contains(" failed: ") {
        [Some(Branch::CompactionFailed), line.contains(": damaged at byte ").then_some(Branch::DamageMerged)]
    } else if line.starts_with("two ranges are joined") {
        one(Branch::RangesJoined)
    } else if let Some((_, rest)) = line.split_once(" runs into ")
        && let Some((made, _)) = rest.split_once(':')
    {
        let is_several = made.parse::<u64>().is_ok_and(|made| made > 1);
        [Some(Branch::Compaction), is_several.then_some(Branch::RangeSplit)]
    } else if line.starts_with("removed ") && line.contains("which no index on disk names") {
        one(Branch::OrphansRemoved)
    } else if line.starts_with("index '") && line.contains(" is built anew") {
        one(Branch::IndexRebuilt)
    } else if line.starts_with("removed ") && line.contains(".snap") {
        one(Branch::CheckpointInterrupted)
    } else if line.starts_with("removed ") && line.contains(".xlog") {
        one(Branch::RotationInterrupted)
    } else if let Some((_, rest)) = line.split_once(" rows from ")
        && let Some((files, rest)) = rest.split_once(" log files")
    {
        let is_several = files.parse::<u64>().is_ok_and(|count| count > 1);
        [is_several.then_some(Branch::SeveralLogs), rest.contains("torn end of ").then_some(Branch::TornTail)]
    } else if let Some((_, snapshot)) = line.split_once(" rows from ")
        && !snapshot.contains("00000000000000000000.snap")
    {
        one(Branch::SnapshotAndLogs)
    } else {
        [None, None]
    }
}

/// The files of one life of the server.
pub(super) struct WatchedFiles {
    files: Arc<dyn FileSystem>,
    /// Log files that got their names.
    logs: AtomicU64,
}

struct WatchedFile {
    file: Arc<dyn File>,
}

impl WatchedFiles {
    pub(super) fn new(files: Arc<dyn FileSystem>) -> Self {
        WatchedFiles { files, logs: AtomicU64::new(0) }
    }
}

/// Looks at an error on its way.
fn seen<T>(what: Option<Branch>, result: io::Result<T>) -> io::Result<T> {
    if let Err(error) = &result {
        let branch = if error.kind() == io::ErrorKind::StorageFull { Some(Branch::DiskFullMet) } else { what };
        match branch {
            Some(branch) if !is_of_power_loss(&error.to_string()) => count(branch),
            _ => {}
        }
        with(|simulation| simulation.note(6, || format!("file error: {error}")));
    }
    result
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    path.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known))
}

impl FileSystem for WatchedFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let file = seen(None, self.files.open(path, mode))?;
        Ok(Arc::new(WatchedFile { file }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.files.create_dir_all(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.files.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        seen(None, self.files.rename(from, to))?;
        if has_ending(to, &["xlog"]) && self.logs.fetch_add(1, Ordering::Relaxed) > 0 {
            count(Branch::LogRotated);
        }
        let name = to.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let manifest = name.strip_prefix("manifest-").and_then(|number| number.parse::<u64>().ok());
        if manifest.is_some_and(|number| number > 1) {
            count(Branch::ManifestSwitched);
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        seen(None, self.files.remove(path))?;
        if has_ending(path, &["snap", "xlog"]) {
            count(Branch::OldFilesRemoved);
        }
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        seen(Some(Branch::SyncErrorMet), self.files.sync_dir(dir))
    }

    fn exists(&self, path: &Path) -> bool {
        self.files.exists(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any>> {
        self.files.lock(path)
    }
}

impl File for WatchedFile {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(out, offset)
    }

    fn read_cached_at(&self, out: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        self.file.read_cached_at(out, offset)
    }

    fn is_cached_at(&self, offset: u64, length: usize) -> Option<bool> {
        self.file.is_cached_at(offset, length)
    }

    fn open_direct(&self) -> Option<Arc<dyn File>> {
        self.file.open_direct()
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let result = self.file.write_all_at(bytes, offset);
        // A synced write fails by its sync, too.
        let is_sync = result.as_ref().is_err_and(|error| error.to_string().contains("sync"));
        seen(Some(if is_sync { Branch::SyncErrorMet } else { Branch::WriteErrorMet }), result)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn is_removed(&self) -> io::Result<bool> {
        self.file.is_removed()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        seen(Some(Branch::WriteErrorMet), self.file.set_len(len))
    }

    fn sync(&self) -> io::Result<()> {
        seen(Some(Branch::SyncErrorMet), self.file.sync())
    }

    fn write_behind(&self, offset: u64, length: u64) -> io::Result<()> {
        count(Branch::WrittenBehind);
        seen(Some(Branch::WriteBehindErrorMet), self.file.write_behind(offset, length))
    }
}
