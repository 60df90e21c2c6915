//! What was asked of a simulated file system.

use std::fmt;
use std::path::PathBuf;

/// Kinds of operations on files and directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OperationKind {
    /// A file was made.
    Create,
    /// An existing file was emptied when it was opened.
    Truncate,
    /// Bytes were written.
    Write,
    /// Bytes were written to a file that was opened for synced writes.
    SyncedWrite,
    /// A file was cut or made longer.
    SetLen,
    /// A file was synced.
    Sync,
    /// Written bytes were sent to the disk ahead of a sync.
    WriteBehind,
    /// A file got another name.
    Rename,
    /// A file was removed.
    Remove,
    /// A directory was synced.
    SyncDir,
    /// An existing file was opened.
    Open,
    /// Bytes were read.
    Read,
    /// A length was asked for.
    Len,
    /// A directory was listed.
    List,
}

impl OperationKind {
    /// Those that change what a power loss leaves, or are meant to.
    pub const CHANGES: [OperationKind; 10] = [
        OperationKind::Create,
        OperationKind::Truncate,
        OperationKind::Write,
        OperationKind::SyncedWrite,
        OperationKind::SetLen,
        OperationKind::Sync,
        OperationKind::WriteBehind,
        OperationKind::Rename,
        OperationKind::Remove,
        OperationKind::SyncDir,
    ];

    /// In lower case, as reports print it.
    pub fn name(self) -> &'static str {
        match self {
            OperationKind::Create => "create",
            OperationKind::Truncate => "truncate",
            OperationKind::Write => "write",
            OperationKind::SyncedWrite => "synced_write",
            OperationKind::SetLen => "set_len",
            OperationKind::Sync => "sync",
            OperationKind::WriteBehind => "write_behind",
            OperationKind::Rename => "rename",
            OperationKind::Remove => "remove",
            OperationKind::SyncDir => "sync_dir",
            OperationKind::Open => "open",
            OperationKind::Read => "read",
            OperationKind::Len => "len",
            OperationKind::List => "list",
        }
    }

    pub(super) fn is_change(self) -> bool {
        self <= OperationKind::SyncDir
    }

    pub(super) fn is_write(self) -> bool {
        use OperationKind::{SetLen, SyncedWrite, Truncate, Write};
        matches!(self, Truncate | Write | SyncedWrite | SetLen)
    }

    pub(super) fn is_sync(self) -> bool {
        use OperationKind::{Sync, SyncDir, SyncedWrite, WriteBehind};
        matches!(self, Sync | SyncedWrite | SyncDir | WriteBehind)
    }
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOperation {
    /// What it was.
    pub kind: OperationKind,
    /// The file or directory, by the name it had.
    pub path: PathBuf,
    /// First byte of a write or read.
    pub offset: u64,
    /// Bytes of a write or read; the new length of a cut.
    pub length: u64,
    /// False if it was refused, or the power was off.
    pub succeeded: bool,
}

impl fmt::Display for FileOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.name(), self.path.display())?;
        if self.length > 0 || self.offset > 0 {
            write!(f, " {}+{}", self.offset, self.length)?;
        }
        if self.succeeded { Ok(()) } else { f.write_str(" FAILED") }
    }
}
