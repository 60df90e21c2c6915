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
    /// Adds what was being done with a file.
    pub(crate) fn io<'a>(doing: &'a str, path: &'a Path) -> impl FnOnce(io::Error) -> LsmError + 'a {
        move |source| LsmError::Io { what: format!("{doing} {}", path.display()), source }
    }

    pub(crate) fn corrupt(file: &Path, offset: u64, what: impl Into<String>) -> LsmError {
        LsmError::Corrupt { file: file.to_path_buf(), offset, what: what.into() }
    }
}
