//! Backups: a set of files that hold everything that was durable at one moment, and stay as they are until they are copied.
//!
//! The set is the newest snapshot, the logs behind it up to the moment, at which the log begins a new file, and of the disk engine the runs that are in
//! force then with a manifest that names them. Nothing is written twice; until the end of the backup no file is removed.

use crate::database::{Database, State};
use crate::error::{Error, ErrorCode, Result};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use wal::WalMode;

impl Database {
    /// Begins a backup: the files to copy. Those of the disk engine, which are in a directory `lsm`, belong into a directory of that name. Blocks
    /// until the log has begun a new file.
    ///
    /// Errors: `BackupInProgress` if one is under way; `Unsupported` if nothing is logged.
    pub fn begin_backup(&self) -> Result<Vec<PathBuf>> {
        if self.state() != State::Running {
            return Err(Error::new(ErrorCode::Loading, &[]));
        }
        if self.config.borrow().wal_mode == WalMode::None {
            return Err(Error::new(ErrorCode::Unsupported, &[&"wal_mode 'none'", &"backups of a running server"]));
        }
        // What a checkpoint removes at its end is gone then, or stays.
        self.join_publishing();
        if self.checkpoint.borrow().keeps_files.swap(true, Ordering::AcqRel) {
            return Err(Error::new(ErrorCode::BackupInProgress, &[]));
        }
        let held = self.ledger.with_journal(|journal| {
            journal.hold_files();
            Ok(())
        });
        held.and_then(|()| self.list_backup()).inspect_err(|_| self.end_backup())
    }

    fn list_backup(&self) -> Result<Vec<PathBuf>> {
        let bytes_before = self.ledger.with_journal(|journal| Ok(journal.bytes_since_checkpoint()))?;
        self.ledger.with_journal(|journal| {
            journal.rotate()?;
            journal.wait(journal.appended())?;
            journal.wait_files()?;
            journal.count_bytes(bytes_before);
            Ok(())
        })?;
        let (memtx_dir, wal_dir) = {
            let config = self.config.borrow();
            (config.memtx_dir.clone(), config.wal_dir.clone())
        };
        let files = &*self.environment.files;
        let failed = |error: wal::WalError| Error::system(error.to_string());
        let (signature, snapshot) = wal::snapshots(files, &memtx_dir)
            .map_err(failed)?
            .pop()
            .ok_or_else(|| Error::new(ErrorCode::MissingSnapshot, &[]))?;
        let mut list = vec![snapshot];
        let logs = wal::logs(files, &wal_dir).map_err(failed)?;
        // The newest is being written.
        let needed = logs.windows(2).filter(|pair| pair[1].0 > signature).map(|pair| pair[0].1.clone());
        list.extend(needed);
        if let Some(engine) = self.disk_engine() {
            list.extend(engine.begin_backup().map_err(Error::system)?);
        }
        Ok(list)
    }

    /// Ends the backup that is under way, if there is one: files that are not needed may go again.
    pub fn end_backup(&self) {
        if let Some(engine) = self.disk_engine() {
            engine.end_backup();
        }
        // Without a log nothing is held.
        let _ = self.ledger.with_journal(|journal| {
            journal.release_files();
            Ok(())
        });
        self.checkpoint.borrow().keeps_files.store(false, Ordering::Release);
    }
}
