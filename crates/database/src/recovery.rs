//! Start and stop: the newest snapshot and the log behind it are read before anything is answered.

use crate::alter::{INDEX_ID, SEQUENCE_DATA_ID};
use crate::bootstrap;
use crate::catalog::Space;
use crate::checkpoint;
use crate::config::Config;
use crate::damage::{self, Names};
use crate::database::{Database, State};
use crate::error::{Error, ErrorCode, ErrorKind, Result};
use crate::fields::Fields;
use crate::session::{ADMIN, Context, GUEST};
use crate::statement::{Operation, row_kind};
use crate::vinyl::Incoming;
use std::path::Path;
use std::rc::Rc;
use storage::{PREFETCH_MAX, Prefetch};
use tuple::FieldType;
use tuple::msgpack::{self, Reader};
use wal::{Journal, JournalConfig, OnDamage, Refusal, Replay, Row, Vclock, WalError, XlogReader};
use wire::key;

/// Progress of a long start: a line for each so many rows.
const PROGRESS_ROWS: u64 = 1_000_000;

/// An error of reading files, as the start reports it.
pub(crate) fn start_error(error: WalError) -> Error {
    let code = match error {
        WalError::Gap { .. } => ErrorCode::XlogGap as u32,
        _ => ErrorCode::System as u32,
    };
    Error::raw(code, ErrorKind::Xlog, error.to_string())
}

/// What a body of a log row says.
pub(crate) struct Body<'a> {
    pub(crate) space_id: u32,
    index_id: u32,
    pub(crate) index_base: u32,
    pub(crate) key: &'a [u8],
    pub(crate) tuple: &'a [u8],
    pub(crate) ops: &'a [u8],
}

/// True if a unique index may be given two rows that only Tarantool tells apart: what [`Database::replay`] leaves out is found row by row.
fn has_numbers_of_kinds(space: &Space) -> bool {
    let defs = space.index_defs();
    let mut secondaries = defs.iter().filter(|def| def.id != 0 && def.is_unique);
    secondaries.any(|def| {
        let mut parts = def.key_def.parts().iter();
        parts.any(|part| matches!(part.field_type, FieldType::Number | FieldType::Scalar))
    })
}

/// The next value of bytes that were checked when they were read.
fn read_checked<'a>(reader: &mut Reader<'a>) -> &'a [u8] {
    let rest = reader.rest();
    reader.skip_checked();
    &rest[..rest.len() - reader.rest().len()]
}

/// Reads the body of a row, a checked map.
pub(crate) fn decode_body(body: &[u8]) -> std::result::Result<Body<'_>, msgpack::MsgpackError> {
    const EMPTY: &[u8] = &[0x90];
    let mut decoded = Body { space_id: 0, index_id: 0, index_base: 0, key: EMPTY, tuple: EMPTY, ops: EMPTY };
    let mut reader = Reader::new(body);
    for _ in 0..reader.read_map()? {
        match reader.read_uint()? {
            key::SPACE_ID => decoded.space_id = reader.read_uint()? as u32,
            key::INDEX_ID => decoded.index_id = reader.read_uint()? as u32,
            key::INDEX_BASE => decoded.index_base = reader.read_uint()? as u32,
            key::KEY => decoded.key = read_checked(&mut reader),
            key::TUPLE => decoded.tuple = read_checked(&mut reader),
            key::OPS => decoded.ops = read_checked(&mut reader),
            _ => reader.skip_checked(),
        }
    }
    Ok(decoded)
}

/// The database that is being filled from files.
///
/// Secondary indexes are filled when all rows are there. That a row may have what another one has in a unique index is found out only then;
/// logs without damage hold no such rows. Where a row may be missing, behind damage or by force, rows go into all indexes at once, so that
/// each that cannot is told.
struct Replaying<'a> {
    database: &'a Database,
    context: Context,
    names: Names,
    rows: u64,
    /// Rows come from logs and have positions of their own.
    is_log: bool,
    /// Behind the row that is read. Positions are its signature: rows of local spaces count in a component of their own.
    vclock: Vclock,
    /// Rows may go into secondary indexes later.
    may_defer: bool,
    /// Spaces whose secondary indexes are to be filled.
    deferring: Vec<Rc<Space>>,
    /// Rows of Tarantool's disk engine.
    incoming: Incoming,
    /// Why the start cannot go on, whatever the files are like.
    final_error: Option<Error>,
}

impl Replaying<'_> {
    fn error(&mut self, error: WalError) -> Error {
        self.final_error.take().unwrap_or_else(|| start_error(error))
    }

    /// Fills secondary indexes that are still empty.
    fn complete_indexes(&mut self) -> Result<()> {
        for space in std::mem::take(&mut self.deferring) {
            let started = self.database.environment.clock.monotonic_ns();
            let Some(rows) = space.rows.memory() else { continue };
            rows.borrow_mut().complete_indexes().map_err(|error| self.database.storage_error(error, &space))?;
            let elapsed_ms = (self.database.environment.clock.monotonic_ns() - started) / 1_000_000;
            let rows = space.rows.len();
            if rows >= PROGRESS_ROWS {
                tracing::info!("secondary indexes of {rows} rows of space '{}' in {elapsed_ms} ms", space.name());
            }
        }
        self.database.check_loaded_memory()
    }

    fn apply_row(&mut self, row: &Row<'_>) -> Result<()> {
        let kind = row.header.kind;
        let component = if row.header.group_id == 1 { 0 } else { row.header.replica_id };
        self.vclock.set(component, row.header.lsn);
        let position = self.vclock.signature();
        if !matches!(
            kind,
            row_kind::INSERT | row_kind::REPLACE | row_kind::UPDATE | row_kind::DELETE | row_kind::UPSERT
        ) {
            // NOP, and rows of synchronous replication: nothing to do to rows.
            return Ok(());
        }
        let body = decode_body(row.body).map_err(Error::illegal)?;
        self.names.learn_body(kind, &body);
        let space = self.database.space(body.space_id)?;
        if self.is_log && self.incoming.covers(body.space_id, position) {
            return Ok(());
        }
        if self.is_log {
            self.database.begin_replay(position, true);
        }
        let Body { index_id, index_base, key, tuple, ops, .. } = body;
        if space.is_system() && space.id != SEQUENCE_DATA_ID || index_id != 0 {
            // It may change what indexes there are, or ask one of them.
            self.complete_indexes()?;
        } else if let Some(rows) = space.rows.memory()
            && self.may_defer
            && rows.borrow().is_empty()
            && !has_numbers_of_kinds(&space)
        {
            let mut rows = rows.borrow_mut();
            let was_deferring = rows.is_deferring();
            rows.defer_secondary_indexes();
            if rows.is_deferring() && !was_deferring {
                self.deferring.push(Rc::clone(&space));
            }
        }
        let operation = match kind {
            row_kind::INSERT => Operation::Insert { tuple },
            row_kind::REPLACE => Operation::Replace { tuple },
            row_kind::UPDATE => Operation::Update { index_id, key, ops: tuple, index_base },
            row_kind::DELETE => Operation::Delete { index_id, key },
            _ => Operation::Upsert { tuple, ops, index_base },
        };
        self.database.replay(&self.context, &space, operation)?;
        if space.id == INDEX_ID && !self.is_log {
            let id = Fields::new(tuple)?.uint()?;
            if let Some(owner) = self.database.catalog.space(id) {
                self.incoming.read_space(self.database, &self.context, &owner)?;
            }
        }
        Ok(())
    }
}

impl Replay for Replaying<'_> {
    fn instance(&self) -> Option<String> {
        Some(self.database.instance_uuid())
    }

    fn foresee(&mut self, rows: &mut dyn Iterator<Item = Row<'_>>) {
        let mut values = [0; PREFETCH_MAX];
        let mut count = 0;
        let mut space_id = None;
        // Rows of one space, most often.
        for row in rows {
            let Ok(body) = decode_body(row.body) else { continue };
            if *space_id.get_or_insert(body.space_id) != body.space_id || count == PREFETCH_MAX {
                break;
            }
            let Ok(space) = self.database.space(body.space_id) else { return };
            let value = match row.header.kind {
                row_kind::INSERT | row_kind::REPLACE | row_kind::UPSERT => {
                    space.rows.memory().and_then(|rows| rows.borrow().hint_of(body.tuple))
                }
                _ => {
                    let mut key = Reader::new(body.key);
                    key.read_array().and_then(|_| key.read_uint()).ok()
                }
            };
            if let Some(value) = value {
                values[count] = value;
                count += 1;
            }
        }
        if let Some(space) = space_id.and_then(|id| self.database.space(id).ok()) {
            self.database.prefetch(&space, Prefetch { values: &values[..count], ..Prefetch::default() });
        }
    }

    fn apply(&mut self, row: &Row<'_>) -> std::result::Result<(), Refusal> {
        self.rows += 1;
        if self.rows.is_multiple_of(PROGRESS_ROWS) {
            tracing::info!("{} rows read", self.rows);
        }
        let failed_before = self.final_error.take();
        let was_final = failed_before.is_some();
        failed_before.map_or_else(|| self.apply_row(row), Err).map_err(|error| {
            let is_final = was_final || error.kind_name() == "OutOfMemory";
            let what = format!("a row cannot be applied: {error}");
            if is_final {
                self.final_error = Some(error);
            }
            Refusal { what, is_final }
        })
    }

    fn damaged(&mut self) {
        self.may_defer = false;
        if let Err(error) = self.complete_indexes() {
            self.final_error = Some(error);
        }
    }

    fn describe(&mut self, row: &Row<'_>) -> String {
        self.names.learn(row);
        self.names.describe(row)
    }
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
        self.begin_replay(signature, false);
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
            rows.borrow().scan(0, storage::IteratorKind::All, &[], 0, |row| {
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
