//! Nobody may need a file that was removed. A machine lets those go on who have it open, but not after its next start, so that what is
//! removed too early would hide until then. Here it is an error, and is remembered.

use runtime::{File, FileSystem, OpenMode};
use std::any::Any;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Runs that were read, or opened, after they were removed: the first one.
#[derive(Clone, Default)]
pub struct Misread(Arc<Mutex<Option<String>>>);

impl Misread {
    /// What was misread since the last call.
    pub fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn note(&self, name: &str) {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| format!("{name} is read and was removed"));
    }
}

/// See the head of this file.
pub struct RemovedFiles {
    files: Arc<dyn FileSystem>,
    misread: Misread,
}

impl RemovedFiles {
    /// Looks after the runs among these files.
    pub fn new(files: Arc<dyn FileSystem>, misread: Misread) -> Self {
        RemovedFiles { files, misread }
    }
}

impl FileSystem for RemovedFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        if path.extension().is_none_or(|ending| ending != "run") {
            return self.files.open(path, mode);
        }
        let name = path.display().to_string();
        match self.files.open(path, mode) {
            Ok(file) => Ok(Arc::new(Run { file, name, misread: self.misread.clone() })),
            Err(error) => {
                if error.kind() == io::ErrorKind::NotFound {
                    self.misread.note(&name);
                }
                Err(error)
            }
        }
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.files.create_dir_all(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.files.list(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.files.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files.remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.files.sync_dir(dir)
    }

    fn exists(&self, path: &Path) -> bool {
        self.files.exists(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any>> {
        self.files.lock(path)
    }
}

struct Run {
    file: Arc<dyn File>,
    name: String,
    misread: Misread,
}

impl Run {
    fn check_there(&self) -> io::Result<()> {
        if !self.file.is_removed()? {
            return Ok(());
        }
        self.misread.note(&self.name);
        Err(io::Error::other("a run is read that was removed"))
    }
}

impl File for Run {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        self.check_there()?;
        self.file.read_at(out, offset)
    }

    fn read_cached_at(&self, out: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        self.check_there()?;
        self.file.read_cached_at(out, offset)
    }

    fn is_cached_at(&self, offset: u64, length: usize) -> Option<bool> {
        self.file.is_cached_at(offset, length)
    }

    fn open_direct(&self) -> Option<Arc<dyn File>> {
        let file = self.file.open_direct()?;
        Some(Arc::new(Run { file, name: self.name.clone(), misread: self.misread.clone() }))
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn is_removed(&self) -> io::Result<bool> {
        self.file.is_removed()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    fn write_behind(&self, offset: u64, length: u64) -> io::Result<()> {
        self.file.write_behind(offset, length)
    }
}
