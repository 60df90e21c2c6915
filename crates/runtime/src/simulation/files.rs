//! Files that take time, so that others can go on meanwhile and a power loss can meet an operation half done.

use super::{Simulation, current};
use crate::file::{File, FileSystem, OpenMode};
use std::any::Any;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Operations on the files behind take as long as the entered simulation says.
pub struct PacedFiles {
    /// The files.
    pub files: Arc<dyn FileSystem>,
    /// True when the machine has lost its power: the process of the main thread ends there and then.
    pub is_off: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// One read in `LATE_READ_ONE_IN` takes `LATE_READ_TIMES` times as long as others: whole merges end meanwhile.
const LATE_READ_ONE_IN: u64 = 6;
const LATE_READ_TIMES: u64 = 500;
/// One question to the page cache in this many has no answer.
const CANNOT_TELL_ONE_IN: u64 = 8;

struct PacedFile {
    file: Arc<dyn File>,
    is_off: Arc<dyn Fn() -> bool + Send + Sync>,
    /// It is read past the page cache.
    is_direct: bool,
}

/// Before and after an operation: it takes effect somewhere in between.
fn pace<T>(is_off: &dyn Fn() -> bool, what: u64, operation: impl FnOnce() -> T) -> T {
    let Some(simulation) = current() else { return operation() };
    let time = simulation.file_delay_ns();
    let before = simulation.random() % (time + 1);
    simulation.sleep(before);
    simulation.note(what, || format!("file operation {what}"));
    let result = operation();
    if is_off() && !simulation.is_killed() {
        simulation.kill();
    }
    simulation.sleep(time - before);
    result
}

impl Simulation {
    /// What one operation on a file takes.
    fn file_delay_ns(&self) -> u64 {
        let config = self.config();
        let time = self.between(config.file_delay_ns);
        if !self.one_in(config.slow_file_one_in) {
            return time;
        }
        self.count("slow file operation");
        time * 100
    }

    /// True if a look into the page cache finds nothing.
    fn is_uncached(&self) -> bool {
        self.random() % 100 < self.config().uncached_percent
    }

    /// Lets the calling thread wait as long as a read of a disk takes.
    pub(crate) fn wait_for_disk(&self) {
        self.sleep(self.file_delay_ns());
        if self.one_in(LATE_READ_ONE_IN) {
            self.sleep(self.between(self.config().file_delay_ns) * LATE_READ_TIMES);
        }
        self.note(18, || "file operation 18".to_string());
    }
}

impl FileSystem for PacedFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let file = pace(&*self.is_off, 11, || self.files.open(path, mode))?;
        Ok(Arc::new(PacedFile { file, is_off: Arc::clone(&self.is_off), is_direct: false }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.files.create_dir_all(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.files.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        pace(&*self.is_off, 12, || self.files.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        pace(&*self.is_off, 13, || self.files.remove(path))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        pace(&*self.is_off, 14, || self.files.sync_dir(dir))
    }

    fn exists(&self, path: &Path) -> bool {
        self.files.exists(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any>> {
        self.files.lock(path)
    }
}

impl File for PacedFile {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        // Reads that never wait: what is read at a start lies in the page cache more often than not.
        if self.is_direct
            && let Some(simulation) = current()
        {
            simulation.count("a block read past the page cache");
            if simulation.one_in(simulation.config().direct_read_fails_one_in) {
                simulation.count("a read past the page cache refused");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "simulated refusal of a direct read"));
            }
        }
        self.file.read_at(out, offset)
    }

    /// What is in memory is up to the seed.
    fn read_cached_at(&self, out: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        match current() {
            Some(simulation) if simulation.is_uncached() => Ok(None),
            _ => self.file.read_cached_at(out, offset),
        }
    }

    /// The next read may find it otherwise.
    fn is_cached_at(&self, offset: u64, length: usize) -> Option<bool> {
        match current() {
            Some(simulation) if simulation.one_in(CANNOT_TELL_ONE_IN) => {
                simulation.count("the page cache could not be asked");
                None
            }
            Some(simulation) if simulation.is_uncached() => Some(false),
            _ => self.file.is_cached_at(offset, length),
        }
    }

    fn open_direct(&self) -> Option<Arc<dyn File>> {
        if let Some(simulation) = current()
            && simulation.one_in(simulation.config().direct_refused_one_in)
        {
            simulation.count("a file not opened past the page cache");
            return None;
        }
        let file = self.file.open_direct()?;
        Some(Arc::new(PacedFile { file, is_off: Arc::clone(&self.is_off), is_direct: true }))
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        pace(&*self.is_off, 15, || self.file.write_all_at(bytes, offset))
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn is_removed(&self) -> io::Result<bool> {
        self.file.is_removed()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        pace(&*self.is_off, 16, || self.file.set_len(len))
    }

    fn sync(&self) -> io::Result<()> {
        pace(&*self.is_off, 17, || self.file.sync())
    }

    fn write_behind(&self, offset: u64, length: u64) -> io::Result<()> {
        pace(&*self.is_off, 19, || self.file.write_behind(offset, length))
    }
}
