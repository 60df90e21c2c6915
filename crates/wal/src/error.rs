//! What can go wrong with logs and snapshots, named by what the caller can do.

use crate::vclock::Vclock;
use std::io;
use std::path::PathBuf;

/// An error of the log.
#[derive(Debug, thiserror::Error)]
pub enum WalError {
    /// The operating system refused.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// Its answer.
        source: io::Error,
    },
    /// Bytes on disk are not what was written. Nothing was changed.
    #[error("{}: damaged at byte {offset}: {what}", file.display())]
    Corrupt {
        /// The file.
        file: PathBuf,
        /// Where the damage begins.
        offset: u64,
        /// What is wrong, and what `force_recovery` would lose.
        what: String,
    },
    /// There is no space for another transaction now; none was taken.
    #[error("no space left on device for the log in {}; reads go on, writing resumes when there is space", dir.display())]
    DiskFull {
        /// The log's directory.
        dir: PathBuf,
    },
    /// The log's file was removed under the running server. What was logged to it is gone at the next start.
    #[error("{} has been removed: what was written to it will be gone after a restart; reads go on", file.display())]
    Removed {
        /// The file.
        file: PathBuf,
    },
    /// A log file is missing between two that are there.
    #[error("Missing .xlog file between LSN {} {from} and {} {to}", from.signature(), to.signature())]
    Gap {
        /// Where the last file ends.
        from: Box<Vclock>,
        /// Where the next begins.
        to: Box<Vclock>,
    },
    /// The log failed before and is not trusted any more.
    #[error("the log failed before: {0}")]
    Failed(String),
    /// More is waiting for the disk than is allowed.
    #[error("a transaction of {bytes} bytes is larger than the log takes ({max})")]
    TooLarge {
        /// Bytes of the transaction.
        bytes: usize,
        /// Most bytes.
        max: usize,
    },
    /// A row could not be applied by the caller.
    #[error("{}: row at byte {offset}: {what}", file.display())]
    Refused {
        /// The file.
        file: PathBuf,
        /// Offset of the row's block.
        offset: u64,
        /// The caller's words.
        what: String,
    },
}

impl WalError {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> WalError {
        let what = what.into();
        move |source| WalError::Io { what, source }
    }
}
