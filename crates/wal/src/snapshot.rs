//! Snapshots: all rows at a vclock, in one file that is complete or not there.

use crate::block::{EOF_MAGIC, encode_compressed, encode_plain};
use crate::error::WalError;
use crate::row::{self, RowHeader};
use crate::vclock::Vclock;
use crate::xlog::{FileMeta, file_name, numbered};
use runtime::{Clock, File, FileSystem, OpenMode, pause};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tuple::Lsn;

/// Rows of one block before it is compressed.
const BLOCK_BYTES: usize = 128 << 10;
/// Higher levels take twice the processor's time, which a checkpoint takes from those who write, for a tenth fewer bytes.
const COMPRESSION_LEVEL: i32 = 1;
/// Blocks smaller than this are not compressed.
const COMPRESS_FROM: usize = 2048;
const UNFINISHED: &str = ".inprogress";

/// The name of a file until it is complete.
pub(crate) fn unfinished_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(UNFINISHED);
    PathBuf::from(name)
}

/// Snapshot files of a directory by signature, complete ones.
///
/// Errors: `Io`.
pub fn snapshots(files: &dyn FileSystem, dir: &Path) -> Result<Vec<(i64, PathBuf)>, WalError> {
    numbered(files, dir, ".snap")
}

/// Removes files that were being written when a process ended. Returns their names.
///
/// Errors: `Io`; some may be removed.
pub fn remove_unfinished(files: &dyn FileSystem, dir: &Path) -> Result<Vec<String>, WalError> {
    let names = files.list(dir).map_err(WalError::io(format!("listing {}", dir.display())))?;
    let unfinished: Vec<String> = names.into_iter().filter(|name| name.ends_with(UNFINISHED)).collect();
    for name in &unfinished {
        files.remove(&dir.join(name)).map_err(WalError::io(format!("removing {name}")))?;
    }
    Ok(unfinished)
}

/// What is sent to the disk at once.
const STEP_BYTES: u64 = 256 << 10;

/// Writes a snapshot. Runs on any thread; may take long. Not finishing leaves an `.inprogress` file that nobody reads.
pub struct SnapshotWriter {
    files: Arc<dyn FileSystem>,
    clock: Arc<dyn Clock>,
    dir: PathBuf,
    name: String,
    file: Arc<dyn File>,
    offset: u64,
    /// The part that is on its way to the disk ends here.
    sent_to_disk: u64,
    rows: Vec<u8>,
    block: Vec<u8>,
    row_count: i64,
    compressor: zstd::bulk::Compressor<'static>,
    /// Time of day that the rows of a block carry, in seconds.
    timestamp: f64,
    /// Bytes a second; 0 for no limit.
    rate: u64,
    started_ns: u64,
}

impl SnapshotWriter {
    /// Begins the snapshot of `vclock`.
    ///
    /// Errors: `Io`.
    pub fn create(
        files: Arc<dyn FileSystem>,
        clock: Arc<dyn Clock>,
        dir: &Path,
        vclock: &Vclock,
        instance_uuid: &str,
        rate: u64,
    ) -> Result<Self, WalError> {
        let name = file_name(vclock.signature(), "snap");
        let path = unfinished_name(&dir.join(&name));
        let what = || format!("making {}", path.display());
        let file = files.open(&path, OpenMode::CREATE).map_err(WalError::io(what()))?;
        let meta = FileMeta::encode("SNAP", instance_uuid, vclock, None);
        file.write_all_at(meta.as_bytes(), 0).map_err(WalError::io(what()))?;
        let compressor = zstd::bulk::Compressor::new(COMPRESSION_LEVEL).map_err(WalError::io("starting zstd"))?;
        let started_ns = clock.monotonic_ns();
        Ok(SnapshotWriter {
            files,
            clock,
            dir: dir.to_path_buf(),
            name,
            file,
            offset: meta.len() as u64,
            sent_to_disk: 0,
            rows: Vec::with_capacity(BLOCK_BYTES + 4096),
            block: Vec::new(),
            row_count: 0,
            compressor,
            timestamp: 0.0,
            rate,
            started_ns,
        })
    }

    /// Adds a row.
    ///
    /// Errors: `Io`.
    pub fn row(&mut self, kind: u16, group_id: u32, body: &[u8]) -> Result<(), WalError> {
        if self.rows.is_empty() {
            self.timestamp = self.clock.wall_ns() as f64 / 1e9;
        }
        let (lsn, timestamp) = (self.row_count, self.timestamp);
        let header =
            RowHeader { kind, replica_id: 0, group_id, lsn: Lsn(lsn), timestamp, tsn: Lsn(lsn), is_commit: true };
        row::encode(&mut self.rows, &header, true, body);
        self.row_count += 1;
        if self.rows.len() >= BLOCK_BYTES {
            self.write_block()?;
        }
        Ok(())
    }

    fn write_block(&mut self) -> Result<(), WalError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        self.block.clear();
        let what = || format!("writing {}", self.name);
        if self.rows.len() >= COMPRESS_FROM {
            encode_compressed(&self.rows, &mut self.compressor, &mut self.block).map_err(WalError::io(what()))?;
        } else {
            encode_plain(&self.rows, &mut self.block);
        }
        self.file.write_all_at(&self.block, self.offset).map_err(WalError::io(what()))?;
        self.offset += self.block.len() as u64;
        self.rows.clear();
        let step = self.offset - self.sent_to_disk;
        if step >= STEP_BYTES {
            // All at once at the end would hold up the log, whose every write waits for what the disk has been given.
            self.file.write_behind(self.sent_to_disk, step).map_err(WalError::io(what()))?;
            self.sent_to_disk = self.offset;
        }
        if self.rate > 0 {
            let due_ns = (u128::from(self.offset) * 1_000_000_000 / u128::from(self.rate)) as u64;
            let elapsed = self.clock.monotonic_ns() - self.started_ns;
            pause(due_ns.saturating_sub(elapsed).min(1_000_000_000));
        }
        Ok(())
    }

    /// Completes the file except for its name: everything is synced.
    ///
    /// Errors: `Io`.
    pub fn finish(mut self) -> Result<FinishedSnapshot, WalError> {
        self.write_block()?;
        let what = || format!("finishing {}", self.name);
        self.file.write_all_at(&EOF_MAGIC, self.offset).map_err(WalError::io(what()))?;
        self.file.sync().map_err(WalError::io(what()))?;
        let SnapshotWriter { files, dir, name, offset, row_count, .. } = self;
        Ok(FinishedSnapshot { files, dir, name, bytes: offset + 4, rows: row_count as u64 })
    }
}

/// A snapshot that lacks only its name. It may be published once everything it covers is durable in the log.
pub struct FinishedSnapshot {
    files: Arc<dyn FileSystem>,
    dir: PathBuf,
    name: String,
    /// Size of the file.
    pub bytes: u64,
    /// Rows in it.
    pub rows: u64,
}

impl FinishedSnapshot {
    /// Gives the file its name, durably.
    ///
    /// Errors: `Io`; whether the name will be there after a crash is unknown.
    pub fn publish(self) -> Result<PathBuf, WalError> {
        let path = self.dir.join(&self.name);
        let unfinished = unfinished_name(&path);
        self.files
            .rename(&unfinished, &path)
            .and_then(|()| self.files.sync_dir(&self.dir))
            .map_err(WalError::io(format!("publishing {}", path.display())))?;
        Ok(path)
    }
}
