//! What goes wrong on purpose.

use std::io;
use std::ops::Range;

/// What goes wrong from now on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fault {
    /// Bytes by which files may grow in all before the disk is full. What fits of a write is written.
    pub space_left: Option<u64>,
    /// This many more writes succeed, then one fails. What it wrote may be there all the same.
    pub writes_until_error: Option<u64>,
    /// This many more syncs, or writes behind, succeed, then one fails. What a failed one was to carry is taken for written from then on: later
    /// syncs succeed and do not carry it either.
    pub syncs_until_error: Option<u64>,
    /// The same of writes behind alone.
    pub writes_behind_until_error: Option<u64>,
    /// This many more reads succeed, then one fails.
    pub reads_until_error: Option<u64>,
    /// This many more operations of any kind succeed, then one fails.
    pub operations_until_error: Option<u64>,
    /// The kind of all these errors; `Other` by itself.
    pub error_kind: Option<io::ErrorKind>,
    /// This many more changes (see `OperationKind::CHANGES`) take place, then none does: the machine is off. The one that the power loss met
    /// may be there, lost or torn.
    pub changes_until_off: Option<u64>,
    /// The disk lies: syncs of files, and synced writes, say yes and carry nothing.
    pub syncs_lie: bool,
    /// Syncs of directories say yes and carry nothing.
    pub directory_syncs_lie: bool,
    /// Most bytes that one read returns, so that callers must ask again.
    pub read_bytes_max: Option<usize>,
    /// Nothing is in memory: whoever does not want to wait for a read gets nothing.
    pub is_cache_cold: bool,
}

/// What is wrong with a part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadFault {
    /// Reads that touch these bytes fail.
    Unreadable(Range<u64>),
    /// This bit is read wrong, although it lies right on the disk.
    Flipped(u64),
}

/// Counts down; true at the end, once.
pub(super) fn is_due(counter: &mut Option<u64>) -> bool {
    match counter {
        Some(0) => {
            *counter = None;
            true
        }
        Some(left) => {
            *left -= 1;
            false
        }
        None => false,
    }
}
