//! Files of the operating system.
#![expect(
    unsafe_code,
    reason = "flock(2), fcntl(2), statx(2), preadv2(2), sync_file_range(2), posix_fadvise(2) and cachestat(2)"
)]

use super::{File, FileSystem, OpenMode};
use crate::aligned::PAGE_BYTES;
use std::any::Any;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

/// Number of cachestat(2), which came with Linux 6.5: new system calls have the same number on all machines.
const CACHESTAT: libc::c_long = 451;

/// Bytes that `write_behind` leaves on their way to the disk.
const BEHIND_BYTES: u64 = 1 << 20;

/// A stretch of a file. See cachestat(2).
#[repr(C)]
struct CacheStatRange {
    offset: u64,
    length: u64,
}

/// Pages of it. See cachestat(2).
#[repr(C)]
#[derive(Default)]
struct CacheStat {
    cached: u64,
    dirty: u64,
    written_back: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// The real file system.
#[derive(Default)]
pub struct SystemFiles;

/// Adds the path to an error.
fn at<T>(path: &Path, result: io::Result<T>) -> io::Result<T> {
    result.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// Opens a file as `mode` says. Blocks on a pipe until somebody has its other end, unless the flags keep it from that.
fn open_with(path: &Path, mode: OpenMode, flags: libc::c_int) -> io::Result<fs::File> {
    let mut options = fs::OpenOptions::new();
    options.read(true).write(mode.write).create(mode.create).truncate(mode.truncate);
    let flags = if mode.synced { flags | libc::O_DSYNC } else { flags };
    if mode.direct
        && let Ok(file) = options.custom_flags(libc::O_DIRECT | flags).open(path)
    {
        return Ok(file);
    }
    options.custom_flags(flags).open(path)
}

/// What else than a regular file has a name.
fn kind_of_special(kind: fs::FileType) -> Option<&'static str> {
    Some(match kind {
        kind if kind.is_file() => return None,
        kind if kind.is_dir() => "a directory",
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        kind if kind.is_char_device() || kind.is_block_device() => "a device",
        _ => "something else",
    })
}

fn refuse_special(what: &str) -> io::Error {
    io::Error::other(format!("this is {what}, and has to be a regular file"))
}

/// Opens a regular file, and nothing else. Never waits for whoever might have the other end of a pipe, and sets no device going.
fn open_regular(path: &Path, mode: OpenMode) -> io::Result<fs::File> {
    let file = match open_with(path, mode, libc::O_NONBLOCK | libc::O_NOCTTY) {
        Ok(file) => file,
        Err(error) => {
            // A directory that is to be written, or a socket: the system's own words would not say what is wrong.
            let special = fs::metadata(path).ok().and_then(|found| kind_of_special(found.file_type()));
            return Err(special.map_or(error, refuse_special));
        }
    };
    if let Some(what) = kind_of_special(file.metadata()?.file_type()) {
        return Err(refuse_special(what));
    }
    // Of a file it means nothing to a system call, but io_uring would end a read that has to wait.
    // SAFETY: system calls without pointers, for a descriptor that is open.
    let is_set = unsafe {
        let flags = libc::fcntl(file.as_raw_fd(), libc::F_GETFL);
        flags >= 0 && libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK) == 0
    };
    if is_set { Ok(file) } else { Err(io::Error::last_os_error()) }
}

/// Opens whatever has this name: a pipe or a device too. For what is no data file. May block. Errors: the system's.
pub fn open_any(path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
    Ok(Arc::new(at(path, open_with(path, mode, 0))?))
}

impl FileSystem for SystemFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(at(path, open_regular(path, mode))?))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let missing: Vec<&Path> =
            path.ancestors().take_while(|dir| !dir.as_os_str().is_empty() && !dir.exists()).collect();
        at(path, fs::create_dir_all(path))?;
        // A new directory is lost with everything in it unless the one above it is synced.
        missing.iter().rev().filter_map(|dir| dir.parent()).try_for_each(|above| {
            let is_here = above.as_os_str().is_empty();
            self.sync_dir(if is_here { Path::new(".") } else { above })
        })
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in at(dir, fs::read_dir(dir))? {
            names.push(at(dir, entry)?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        at(from, fs::rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        at(path, fs::remove_file(path))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let opened = fs::OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(dir);
        at(dir, opened.and_then(|dir| dir.sync_all()))
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Any>> {
        let file = at(path, open_regular(path, OpenMode { create: true, ..OpenMode::MODIFY }))?;
        // SAFETY: the descriptor is open.
        if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            return at(path, Err(io::Error::last_os_error()));
        }
        Ok(Box::new(file))
    }
}

impl File for fs::File {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, out, offset)
    }

    fn read_cached_at(&self, out: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
        let target = libc::iovec { iov_base: out.as_mut_ptr().cast(), iov_len: out.len() };
        let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
        // SAFETY: one vector is described by `target`, whose bytes are `out`'s.
        let count = unsafe { libc::preadv2(self.as_raw_fd(), &raw const target, 1, offset, libc::RWF_NOWAIT) };
        if count >= 0 {
            return Ok(Some(count as usize));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            // Not in memory; or the file system cannot tell, or the kernel is too old to be asked.
            Some(libc::EAGAIN | libc::EINTR | libc::EOPNOTSUPP | libc::ENOSYS) => Ok(None),
            _ => Err(error),
        }
    }

    fn is_cached_at(&self, offset: u64, length: usize) -> Option<bool> {
        let range = CacheStatRange { offset, length: length as u64 };
        let mut found = CacheStat::default();
        // SAFETY: both structures are as the kernel has them, and outlive the call.
        let result = unsafe { libc::syscall(CACHESTAT, self.as_raw_fd(), &raw const range, &raw mut found, 0) };
        let page = PAGE_BYTES as u64;
        let pages = (offset + length as u64).div_ceil(page) - offset / page;
        (result == 0).then_some(found.cached >= pages)
    }

    fn open_direct(&self) -> Option<Arc<dyn File>> {
        // By its descriptor: the file may have got another name, or none, since it was opened.
        let path = format!("/proc/self/fd/{}", self.as_raw_fd());
        let file = fs::OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path).ok()?;
        Some(Arc::new(file))
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(self, bytes, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.metadata().map(|metadata| metadata.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        fs::File::set_len(self, len)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn write_behind(&self, offset: u64, length: u64) -> io::Result<()> {
        flush_range(self, offset, length, libc::SYNC_FILE_RANGE_WRITE)?;
        // What lies before has been waited for already.
        let end = offset.saturating_sub(BEHIND_BYTES);
        let begin = end.saturating_sub(length.max(BEHIND_BYTES));
        flush_range(self, begin, end - begin, libc::SYNC_FILE_RANGE_WAIT_BEFORE)
    }

    fn forget_cached(&self, offset: u64, length: u64) {
        let (Ok(offset), Ok(length)) = (offset.try_into(), length.try_into()) else { return };
        // SAFETY: a system call without pointers, for a descriptor that is open. It is advice: where it is not taken nothing is wrong.
        unsafe { libc::posix_fadvise(self.as_raw_fd(), offset, length, libc::POSIX_FADV_DONTNEED) };
    }

    /// Asks for the number of names alone. Whoever asks for times makes the next write note a new one, and a synced write then writes
    /// the inode too: twice the time and work.
    fn is_removed(&self) -> io::Result<bool> {
        let mut found = std::mem::MaybeUninit::<libc::statx>::zeroed();
        // SAFETY: an empty path with this flag means the descriptor, which lives as long as the file; the result fits.
        let found = unsafe {
            let flags = libc::AT_EMPTY_PATH | libc::AT_STATX_DONT_SYNC;
            if libc::statx(self.as_raw_fd(), c"".as_ptr(), flags, libc::STATX_NLINK, found.as_mut_ptr()) != 0 {
                return Err(io::Error::last_os_error());
            }
            found.assume_init()
        };
        Ok(found.stx_mask & libc::STATX_NLINK != 0 && found.stx_nlink == 0)
    }

    fn raw_fd(&self) -> Option<std::os::fd::RawFd> {
        Some(self.as_raw_fd())
    }
}

fn flush_range(file: &fs::File, offset: u64, length: u64, flags: libc::c_uint) -> io::Result<()> {
    // To the call no bytes are all that follow.
    if length == 0 {
        return Ok(());
    }
    let [offset, length] = [offset, length].map(libc::off64_t::try_from);
    let (offset, length) = (offset.map_err(io::Error::other)?, length.map_err(io::Error::other)?);
    // SAFETY: a system call without pointers, for a descriptor that is open.
    if unsafe { libc::sync_file_range(file.as_raw_fd(), offset, length, flags) } == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        // Nothing that could be asked so: the sync at the end does it all.
        Some(libc::EINVAL | libc::ESPIPE | libc::ENOSYS | libc::EOPNOTSUPP | libc::EPERM) => Ok(()),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_made_with_those_above_them() {
        let dir = tempfile::tempdir().expect("a directory");
        let deep = dir.path().join("a/b/c");
        SystemFiles.create_dir_all(&deep).expect("makes them");
        SystemFiles.create_dir_all(&deep).expect("they are there");
        assert!(deep.is_dir());
    }

    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        let dir = tempfile::tempdir().expect("a directory");
        let [fifo, socket, nested, link] = ["fifo", "socket", "nested", "link"].map(|name| dir.path().join(name));
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo");
        assert!(made.success());
        let _bound = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
        fs::create_dir(&nested).expect("a directory");
        std::os::unix::fs::symlink(&fifo, &link).expect("a link");
        let null = Path::new("/dev/null").to_path_buf();
        let specials = [
            (&fifo, "a pipe"),
            (&socket, "a socket"),
            (&nested, "a directory"),
            (&link, "a pipe"),
            (&null, "a device"),
        ];
        let synced = OpenMode { synced: true, direct: true, ..OpenMode::MODIFY };
        for (path, what) in specials {
            for mode in [OpenMode::READ, OpenMode::MODIFY, OpenMode::CREATE, synced] {
                let error = SystemFiles.open(path, mode).err().expect("refuses").to_string();
                assert!(error.contains(&format!("{}: this is {what}", path.display())), "{error}");
            }
            assert!(SystemFiles.lock(path).is_err());
            assert_eq!(SystemFiles.sync_dir(path).is_ok(), path == &nested);
        }
    }

    #[test]
    fn a_file_that_is_opened_may_make_a_read_wait() {
        let dir = tempfile::tempdir().expect("a directory");
        for mode in [OpenMode::CREATE, OpenMode { synced: true, direct: true, ..OpenMode::MODIFY }, OpenMode::READ] {
            let file = SystemFiles.open(&dir.path().join("f"), mode).expect("opens");
            let descriptor = file.raw_fd().expect("it is a file of the machine");
            // SAFETY: a system call without pointers, for a descriptor that is open.
            let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
            assert!(flags >= 0 && flags & libc::O_NONBLOCK == 0);
            assert_eq!(flags & libc::O_DSYNC != 0, mode.synced);
        }
    }
}
