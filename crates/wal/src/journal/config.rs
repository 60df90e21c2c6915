//! Options of a journal.

use runtime::{Clock, FileSystem, PAGE_BYTES};
use std::path::PathBuf;
use std::sync::Arc;

/// When a transaction counts as durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalMode {
    /// When it is on stable storage.
    Fsync,
    /// When the operating system has it.
    Write,
    /// At once; nothing is logged.
    None,
}

/// Options and surroundings of a journal.
#[derive(Clone)]
pub struct JournalConfig {
    /// Files.
    pub files: Arc<dyn FileSystem>,
    /// Clock for timestamps of rows.
    pub clock: Arc<dyn Clock>,
    /// Directory of the log.
    pub dir: PathBuf,
    /// When a transaction counts as durable.
    pub mode: WalMode,
    /// A file larger than this is followed by another.
    pub wal_max_size: u64,
    /// Identity for file headers.
    pub instance_uuid: String,
    /// Number of this instance in its replica set.
    pub replica_id: u32,
    /// Synced writes in flight; 0 writes on the calling thread.
    pub in_flight_max: usize,
    /// Bytes of transactions that may wait for the disk before `is_congested`.
    pub queue_bytes_max: usize,
    /// Space that is prepared at once, in bytes: when a file is made, and ahead of the writer.
    pub prepare_bytes: u64,
    /// A completed log is rewritten without padding if that saves this many bytes and a quarter of the file. `u64::MAX`: never.
    pub rewrite_bytes: u64,
}

impl JournalConfig {
    /// Whole pages, at least one.
    pub(super) fn prepare_chunk(&self) -> u64 {
        self.prepare_bytes.max(1).next_multiple_of(PAGE_BYTES as u64)
    }
}
