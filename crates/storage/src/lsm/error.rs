//! What can go wrong with files of the disk engine, named by what the caller can do.

use std::io;
use std::path::{Path, PathBuf};

/// An error of the disk engine's files.
#[derive(Debug, thiserror::Error)]
pub enum LsmError {
    /// Bytes on disk are not what was written. Nothing was changed.
    #[error("{}: damaged at byte {offset}: {what}", file.display())]
    Corrupt {
        /// The file.
        file: PathBuf,
        /// Where the damage begins, or the part that it is in.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// The operating system does not give a part of a file.
    #[error("{}: cannot be read at byte {offset}: {source}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Where the part begins.
        offset: u64,
        /// The system's answer.
        source: io::Error,
    },
    /// The manifest is of another server than its snapshot and log. Nothing was changed.
    #[error(
        "{}: these are the rows on disk of another server, {owner}; the snapshot and the log are of {own}; force_recovery would not help: put \
         the directory and its .confirmed file of the server {own} in their place, or the snapshot and the logs of {owner} beside them",
        file.display()
    )]
    Foreign {
        /// The manifest.
        file: PathBuf,
        /// The instance UUID that it says.
        owner: String,
        /// The instance UUID of the snapshot.
        own: String,
    },
    /// The operating system refused.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// Its answer.
        source: io::Error,
    },
}

impl LsmError {
    /// The file and the place in it that cannot be read, if that is what is wrong.
    pub fn place(&self) -> Option<(&Path, u64)> {
        match self {
            LsmError::Corrupt { file, offset, .. } | LsmError::Unreadable { file, offset, .. } => Some((file, *offset)),
            LsmError::Foreign { .. } | LsmError::Io { .. } => None,
        }
    }

    /// Adds what was being done with a file.
    pub(crate) fn io<'a>(doing: &'a str, path: &'a Path) -> impl FnOnce(io::Error) -> LsmError + 'a {
        move |source| LsmError::Io { what: format!("{doing} {}", path.display()), source }
    }

    pub(crate) fn corrupt(file: &Path, offset: u64, what: impl Into<String>) -> LsmError {
        LsmError::Corrupt { file: file.to_path_buf(), offset, what: what.into() }
    }
}
