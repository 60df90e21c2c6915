//! Start and stop: the newest snapshot and the log behind it are read before anything is answered.

use crate::bootstrap;
use crate::checkpoint;
use crate::config::Config;
use crate::damage::{self, Names};
use crate::database::{Database, State};
use crate::error::{Error, ErrorCode, ErrorKind, Result};
use crate::moving_in::Incoming;
use crate::replay::Replaying;
use crate::session::{ADMIN, GUEST};
use std::path::Path;
use tuple::msgpack::Reader;
use tuple::{IndexId, Lsn};
use wal::{Journal, JournalConfig, OnDamage, Vclock, WalError, XlogReader};

/// An error of reading files, as the start reports it.
pub(crate) fn start_error(error: WalError) -> Error {
    let code = match error {
        WalError::Gap { .. } => ErrorCode::XlogGap as u32,
        _ => ErrorCode::System as u32,
    };
    Error::raw(code, ErrorKind::Xlog, error.to_string())
}

impl Database {
    /// Reads the data directory, or makes a new database in an empty one, and begins to log. Blocks until it is over; until then
    /// every request is refused.
    ///
    /// Errors: the directory is locked by another process; damage (file, offset, what `force_recovery` would lose).
    pub fn open(&self) -> Result<()> {
        let config = self.config.borrow().clone();
        let files = self.environment.files.clone();
        for dir in [&config.wal_dir, &config.memtx_dir] {
            files.create_dir_all(dir).map_err(Error::system)?;
        }
        let lock = files.lock(&config.wal_dir.join("lycosa.lock")).map_err(|error| {
            if error.kind() != std::io::ErrorKind::WouldBlock && !error.to_string().contains("Resource temporarily") {
                return Error::system(error);
            }
            let mut error = Error::new(ErrorCode::AlreadyRunning, &[&config.wal_dir.display()]);
            error.push_text(": another server is running in this directory");
            error
        })?;
        *self.start.directory_lock.borrow_mut() = Some(lock);
        for dir in [&config.memtx_dir, &config.wal_dir] {
            for name in wal::remove_unfinished(&*files, dir).map_err(start_error)? {
                // Room that is prepared for the next log is there after every crash.
                if name != wal::PREPARED_LOG {
                    tracing::info!("removed {name}, which was being written when the server stopped");
                }
            }
        }
        let snapshots = wal::snapshots(&*files, &config.memtx_dir).map_err(start_error)?;
        let incoming = match snapshots.last() {
            Some((signature, path)) => Incoming::look(self, &config.vinyl_dir, path, *signature)?,
            None => Incoming::default(),
        };
        let instance = match snapshots.last() {
            // What is wrong with it otherwise is told when it is read.
            Some((_, path)) => XlogReader::open(&*files, path).ok().map(|reader| reader.meta.instance_uuid),
            None => Some(self.name_instance(&config)),
        };
        self.open_disk(instance)?;
        let (vclock, has_moved) = match snapshots.last() {
            Some((signature, path)) => self.read_directory(&config, *signature, path, incoming)?,
            None => (self.bootstrap(&config)?, false),
        };
        let journal = Journal::open(
            JournalConfig {
                files,
                clock: self.environment.clock.clone(),
                dir: config.wal_dir.clone(),
                mode: config.wal_mode,
                wal_max_size: config.wal_max_size,
                instance_uuid: self.instance_uuid(),
                replica_id: 1,
                in_flight_max: config.wal_writes_in_flight,
                queue_bytes_max: config.wal_queue_max_size as usize,
                prepare_bytes: config.wal_prepare_bytes,
                rewrite_bytes: config.wal_rewrite_bytes,
            },
            vclock,
        )
        .map_err(start_error)?;
        self.ledger.open(journal);
        self.serve_disk()?;
        self.set_state(State::Running);
        if has_moved {
            // From then on no start reads Tarantool's files again.
            self.begin_checkpoint()?;
        }
        Ok(())
    }

    fn bootstrap(&self, config: &Config) -> Result<Vclock> {
        if !wal::logs(&*self.environment.files, &config.wal_dir).map_err(start_error)?.is_empty() {
            return Err(Error::new(ErrorCode::MissingSnapshot, &[]).with("dir", config.memtx_dir.display()));
        }
        bootstrap::fill(self)?;
        checkpoint::write_first(self, &Vclock::default())?;
        tracing::info!("a new database in {}", config.memtx_dir.display());
        Ok(Vclock::default())
    }

    /// Gives a new instance its UUIDs. Returns its own.
    fn name_instance(&self, config: &Config) -> String {
        let uuid = |given: &Option<String>| match given {
            Some(uuid) => uuid.clone(),
            None => self.random_uuid(),
        };
        *self.identity.instance_uuid.borrow_mut() = uuid(&config.instance_uuid);
        *self.identity.replicaset_uuid.borrow_mut() = uuid(&config.replicaset_uuid);
        self.instance_uuid()
    }

    fn random_uuid(&self) -> String {
        let mut bytes = [0; 16];
        self.environment.randomness.fill(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }

    /// Where the log ends, and whether rows of Tarantool's disk engine were read.
    fn read_directory(
        &self,
        config: &Config,
        signature: i64,
        snapshot: &Path,
        incoming: Incoming,
    ) -> Result<(Vclock, bool)> {
        let files = &*self.environment.files;
        let started = self.environment.clock.monotonic_ns();
        let mut replay = Replaying {
            database: self,
            context: self.replay_context(),
            names: Names::default(),
            rows: 0,
            is_log: false,
            vclock: Vclock::default(),
            may_defer: !config.force_recovery,
            deferring: Vec::new(),
            incoming,
            final_error: None,
        };
        self.begin_replay(Lsn(signature), false);
        let found = wal::check_file(files, snapshot, &mut replay).map_err(|error| replay.error(error))?;
        let advised = |mut error: Error| {
            let advice = damage::advice(files, snapshot, &config.wal_dir);
            error.push_text(&format!("; {advice}"));
            error
        };
        if found.meta.bytes == 0 {
            let what = found.losses.first().map_or("the header cannot be read", |loss| &loss.what);
            let what = format!("{what}; force_recovery would not help: nobody knows where the log goes on behind it");
            let error = WalError::Corrupt { file: snapshot.to_path_buf(), offset: 0, what };
            return Err(advised(start_error(error)));
        }
        if let Some(first) = found.losses.first()
            && [ADMIN, GUEST].iter().any(|id| self.catalog.user(*id).is_none())
        {
            let lost = wal::announcement(&found.losses);
            let what = format!("{}; force_recovery would not help: the system's own rows are lost: {lost}", first.what);
            let error = WalError::Corrupt { file: snapshot.to_path_buf(), offset: first.offset, what };
            return Err(advised(start_error(error)));
        }
        *self.identity.instance_uuid.borrow_mut() = found.meta.instance_uuid.clone();
        let elapsed_ms = (self.environment.clock.monotonic_ns() - started) / 1_000_000;
        tracing::info!("{} rows from {} in {elapsed_ms} ms", found.rows, snapshot.display());
        self.find_replicaset();
        let on_damage = match (config.force_recovery, found.losses.is_empty()) {
            (true, _) => OnDamage::PassOver,
            (false, true) => OnDamage::Refuse,
            // What is lost with the snapshot may be missed by the log: both are told.
            (false, false) => OnDamage::Survey,
        };
        replay.is_log = true;
        replay.vclock = found.meta.vclock;
        let mut report = wal::recover_into(files, &config.wal_dir, &found.meta.vclock, on_damage, &mut replay)
            .map_err(|error| replay.error(error))?;
        match replay.final_error.take() {
            Some(error) => return Err(error),
            None => replay.complete_indexes()?,
        }
        replay.incoming.check_complete(self, config.force_recovery)?;
        report.losses.splice(0..0, found.losses);
        self.end_disk_replay(&replay.context, !report.losses.is_empty())?;
        match report.losses.first() {
            Some(first) if !config.force_recovery => {
                return Err(advised(start_error(wal::refusal(first, &report.losses))));
            }
            Some(_) => tracing::warn!("{report}; the damage stays in the files until a checkpoint has replaced them"),
            None if report.cut.is_some() => tracing::warn!("{report}"),
            None => tracing::info!("{report}"),
        }
        let end = report.vclock;
        *self.start.report.borrow_mut() = Some(report);
        Ok((end, replay.incoming.has_moved()))
    }

    fn find_replicaset(&self) {
        if let Some(schema) = self.catalog.space(crate::alter::SCHEMA_ID)
            && let Some(rows) = schema.rows.memory()
        {
            rows.borrow().scan(IndexId::PRIMARY, storage::IteratorKind::All, &[], 0, |row| {
                let mut reader = Reader::new(row);
                let key = reader.read_array().and_then(|_| reader.read_str());
                if let (Ok(b"cluster" | b"replicaset_uuid"), Ok(uuid)) = (key, reader.read_str()) {
                    *self.identity.replicaset_uuid.borrow_mut() = String::from_utf8_lossy(uuid).into_owned();
                }
                true
            });
        }
    }

    /// Completes the log and the files. No request may follow. Errors: the log cannot be completed; what is durable stays so.
    pub fn close(&self) -> Result<()> {
        self.set_state(State::Stopped);
        self.stop_checkpoint();
        if let Some(engine) = self.disk_engine() {
            engine.close();
        }
        self.finish_publishing();
        if let Some(journal) = self.ledger.take_journal() {
            journal.close().map_err(|error| Error::system(error.to_string()))?;
        }
        *self.start.directory_lock.borrow_mut() = None;
        Ok(())
    }
}
