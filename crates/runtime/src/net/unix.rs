//! Listening at a path: what becomes of the file there.
//!
//! The file of a unix socket outlives a process that is killed, so whoever starts again finds one that nobody listens at, and replaces it. A
//! socket that somebody listens at is left alone, and so is every file that is no socket, unless it is empty: programs reserve a path by an
//! empty file. The file is removed when listening ends, unless somebody else has put another one there.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Listens at a path. The file is removed on drop.
pub struct UnixListener {
    socket: mio::net::UnixListener,
    /// From the root, so that it is found again wherever the process works by then.
    path: PathBuf,
    /// Device and number of the file that was made.
    identity: Option<(u64, u64)>,
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Removes a socket that nobody listens at, or an empty file. Errors: somebody does, or it is neither.
fn remove_abandoned(path: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    if metadata.file_type().is_file() && metadata.len() == 0 {
        return fs::remove_file(path);
    }
    if !metadata.file_type().is_socket() {
        return Err(io::Error::new(ErrorKind::AlreadyExists, "there is a file that is no socket; it is left alone"));
    }
    // A connection that does not block: one that waits to be accepted is refused for now, which is an answer, too.
    match mio::net::UnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
        _ => Err(io::Error::new(ErrorKind::AddrInUse, "somebody listens there already")),
    }
}

impl UnixListener {
    pub(super) fn bind(path: &Path) -> io::Result<Self> {
        remove_abandoned(path)?;
        let path = std::path::absolute(path)?;
        let socket = mio::net::UnixListener::bind(&path)?;
        let identity = identity(&path);
        Ok(UnixListener { socket, path, identity })
    }

    pub(super) fn accept(&self) -> io::Result<mio::net::UnixStream> {
        self.socket.accept().map(|(stream, _)| stream)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn socket(&self) -> &mio::net::UnixListener {
        &self.socket
    }

    pub(super) fn socket_mut(&mut self) -> &mut mio::net::UnixListener {
        &mut self.socket
    }
}

impl Drop for UnixListener {
    fn drop(&mut self) {
        if self.identity.is_some() && identity(&self.path) == self.identity {
            // A file that stays is replaced by whoever listens next.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    #[test]
    fn an_abandoned_socket_or_an_empty_file_is_replaced_and_what_else_is_there_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.sock");
        // The standard library's listener leaves its file.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        // A program that another test starts at this moment has it until it is one.
        while std::os::unix::net::UnixStream::connect(&path).is_ok() {
            std::thread::yield_now();
        }
        assert!(path.exists());
        let listener = UnixListener::bind(&path).unwrap();
        let second = UnixListener::bind(&path).map(|_| ()).unwrap_err();
        assert_eq!(second.kind(), ErrorKind::AddrInUse);
        drop(listener);
        assert!(!path.exists(), "removed with the listener");
        fs::write(&path, "").unwrap();
        drop(UnixListener::bind(&path).unwrap());
        fs::write(&path, "precious").unwrap();
        let refused = UnixListener::bind(&path).map(|_| ()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"precious");
        assert!(UnixListener::bind(dir.path()).is_err() && dir.path().exists());
        assert!(UnixListener::bind(&dir.path().join("no/such")).is_err());
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(UnixListener::bind(&link).is_err() && path.exists());
    }

    #[test]
    fn a_file_that_somebody_else_has_put_there_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.sock");
        let listener = UnixListener::bind(&path).unwrap();
        fs::rename(&path, dir.path().join("b.sock")).unwrap();
        fs::write(&path, "another").unwrap();
        drop(listener);
        assert_eq!(fs::read(&path).unwrap(), b"another");
    }
}
