//! Files and directories.

mod simulated;
mod slots;
mod system;

pub use simulated::{ChangePoint, Fault, FileOperation, Loss, OperationKind, ReadFault, SimulatedFiles, Tear};
pub use slots::{SlotFile, Slots};
pub use system::{SystemFiles, open_any};

use std::any::Any;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// What is known of a file without opening it.
#[derive(Clone, Copy, Debug)]
pub struct FileDescription {
    /// What it is.
    pub kind: FileKind,
    /// Type and permissions, as stat(2) has them.
    pub mode: u32,
    /// Names it has.
    pub links: u64,
    /// Size.
    pub bytes: u64,
    /// Seconds since 1970 of the last change.
    pub modified_at: f64,
}

/// A whole file of the machine. Errors: the system's.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    std::fs::read(path)
}

/// Writes a whole regular file of the machine, without syncing it. Errors: the system's.
pub fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    SystemFiles.open(path, OpenMode::CREATE)?.write_all_at(bytes, 0)
}

/// Makes a directory the one that relative paths begin at. Errors: the system's.
pub fn enter_directory(path: &Path) -> io::Result<()> {
    std::env::set_current_dir(path)
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A directory.
    Directory,
    /// A symbolic link that was not followed.
    Link,
    /// A file.
    Other,
}

/// Describes a file of the machine, or the link to it. Errors: the system's; there is no such file.
pub fn describe(path: &Path, follows_links: bool) -> io::Result<FileDescription> {
    use std::os::unix::fs::MetadataExt;
    let found = if follows_links { std::fs::metadata(path)? } else { std::fs::symlink_metadata(path)? };
    let kind = match found.file_type() {
        kind if kind.is_dir() => FileKind::Directory,
        kind if kind.is_symlink() => FileKind::Link,
        _ => FileKind::Other,
    };
    let modified = found.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Ok(FileDescription {
        kind,
        mode: found.mode(),
        links: found.nlink(),
        bytes: found.len(),
        modified_at: modified.as_secs_f64(),
    })
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenMode {
    /// Writes are allowed.
    pub write: bool,
    /// Made if it does not exist.
    pub create: bool,
    /// Emptied.
    pub truncate: bool,
    /// Every write is on stable storage when it returns.
    pub synced: bool,
    /// Past the page cache: offsets, lengths and buffers must be multiples of 4 KiB. Ignored where the file system refuses.
    pub direct: bool,
}

impl OpenMode {
    /// For reading.
    pub const READ: OpenMode = OpenMode { write: false, create: false, truncate: false, synced: false, direct: false };
    /// For writing a new file.
    pub const CREATE: OpenMode = OpenMode { write: true, create: true, truncate: true, ..Self::READ };
    /// For changing an existing file.
    pub const MODIFY: OpenMode = OpenMode { write: true, ..Self::READ };
}

/// An open file. All methods may be called from any thread.
pub trait File: Send + Sync {
    /// Reads at most `out.len()` bytes; 0 at the end.
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `bytes`.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Cuts or extends with zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Makes data and length durable.
    fn sync(&self) -> io::Result<()>;

    /// Has the `length` bytes at `offset`, which follow others, go to the disk, and waits until those are there that lie a mebibyte or more before
    /// them. Nothing is durable before `sync`, which then has little left to do and holds up nobody who syncs beside it.
    ///
    /// Errors: the disk refuses to write; whoever is told must not trust the file, since `sync` may not say so again.
    fn write_behind(&self, _offset: u64, _length: u64) -> io::Result<()> {
        Ok(())
    }

    /// Takes these bytes out of the page cache as far as they are on the disk: nobody will read them.
    fn forget_cached(&self, _offset: u64, _length: u64) {}

    /// Reads exactly `out.len()` bytes unless the file ends; returns how many.
    fn read_full_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut at = 0;
        while at < out.len() {
            match self.read_at(&mut out[at..], offset + at as u64)? {
                0 => break,
                got => at += got,
            }
        }
        Ok(at)
    }

    /// Reads what can be had without waiting for the disk: how many bytes, fewer than asked for if the rest is not in memory, 0 at the end of the
    /// file. `None`: nothing is in memory, or it cannot be told.
    fn read_cached_at(&self, _out: &mut [u8], _offset: u64) -> io::Result<Option<usize>> {
        Ok(None)
    }

    /// True if all of these bytes can be had without the disk. Unlike `read_cached_at` it does not begin to read what cannot. `None`: it cannot be told.
    fn is_cached_at(&self, _offset: u64, _length: usize) -> Option<bool> {
        None
    }

    /// The same file once more, for reads past the page cache: those of [`ReadQueue::submit_direct`](crate::ReadQueue::submit_direct). `None` where
    /// there is no such thing.
    fn open_direct(&self) -> Option<Arc<dyn File>> {
        None
    }

    /// True if the file has no name left: what is in it goes when it is closed.
    fn is_removed(&self) -> io::Result<bool> {
        Ok(false)
    }

    /// The descriptor, if it is a file of the machine.
    fn raw_fd(&self) -> Option<std::os::fd::RawFd> {
        None
    }

    /// True if the file holds nothing.
    fn is_empty(&self) -> io::Result<bool> {
        self.len().map(|len| len == 0)
    }
}

/// A file system.
pub trait FileSystem: Send + Sync {
    /// Opens a file. Never waits for anybody.
    ///
    /// Errors: what has the name is no regular file, besides the system's.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;
    /// Makes a directory and those above it, durably.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Names in a directory, sorted.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Gives a file another name, replacing what had it. Durable after `sync_dir`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file. Durable after `sync_dir`.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes creations, renames and removals in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// True if the file or directory exists.
    fn exists(&self, path: &Path) -> bool;
    /// Locks a file (made if needed) against other processes for as long as the result lives.
    ///
    /// Errors: `WouldBlock` if it is locked.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any>>;
}
