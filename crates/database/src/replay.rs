//! Rows of snapshots and logs are applied again: what each of them means, and what becomes of one that cannot be applied.

use crate::alter::{self, INDEX_ID, SEQUENCE_DATA_ID};
use crate::catalog::Space;
use crate::damage::Names;
use crate::database::Database;
use crate::error::{Error, ErrorCode, Result};
use crate::fields::Fields;
use crate::moving_in::Incoming;
use crate::prepare::{LOADING_RESERVE_PART, Prepared};
use crate::sequences::advance_sequence;
use crate::session::Context;
use crate::start::start_error;
use crate::statement::{Operation, row_kind};
use std::rc::Rc;
use storage::{Mode, PREFETCH_MAX, Prefetch};
use tuple::msgpack::{self, Reader};
use tuple::{FieldType, IndexId, Lsn, SpaceId};
use wal::{Refusal, Replay, Row, Vclock, WalError};
use wire::key;

/// Rows between two lines of progress of a long start.
const PROGRESS_ROWS: u64 = 1_000_000;

/// What a body of a log row says.
pub(crate) struct Body<'a> {
    pub(crate) space_id: SpaceId,
    index_id: IndexId,
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
    let mut decoded =
        Body { space_id: SpaceId(0), index_id: IndexId::PRIMARY, index_base: 0, key: EMPTY, tuple: EMPTY, ops: EMPTY };
    let mut reader = Reader::new(body);
    for _ in 0..reader.read_map()? {
        match reader.read_uint()? {
            key::SPACE_ID => decoded.space_id = SpaceId(reader.read_uint()? as u32),
            key::INDEX_ID => decoded.index_id = IndexId(reader.read_uint()? as u32),
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
pub(crate) struct Replaying<'a> {
    pub(crate) database: &'a Database,
    pub(crate) context: Context,
    pub(crate) names: Names,
    pub(crate) rows: u64,
    /// Rows come from logs and have positions of their own.
    pub(crate) is_log: bool,
    /// Behind the row that is read. Positions are its signature: rows of local spaces count in a component of their own.
    pub(crate) vclock: Vclock,
    /// Rows may go into secondary indexes later.
    pub(crate) may_defer: bool,
    /// Spaces whose secondary indexes are to be filled.
    pub(crate) deferring: Vec<Rc<Space>>,
    /// Rows of Tarantool's disk engine.
    pub(crate) incoming: Incoming,
    /// Why the start cannot go on, whatever the files are like.
    pub(crate) final_error: Option<Error>,
}

impl Replaying<'_> {
    pub(crate) fn error(&mut self, error: WalError) -> Error {
        self.final_error.take().unwrap_or_else(|| start_error(error))
    }

    /// Fills secondary indexes that are still empty.
    pub(crate) fn complete_indexes(&mut self) -> Result<()> {
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
        if self.is_log && self.incoming.covers(body.space_id, Lsn(position)) {
            return Ok(());
        }
        if self.is_log {
            self.database.begin_replay(Lsn(position), true);
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
            if let Some(owner) = self.database.catalog.space(SpaceId(id)) {
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
    /// Applies a row of a snapshot or log: no checks of access, no triggers, nothing is logged.
    pub(crate) fn replay(&self, context: &Context, space: &Rc<Space>, operation: Operation<'_>) -> Result<()> {
        if space.rows.may_wait() {
            self.replay_disk(context, space, operation)?;
            if let Operation::Insert { tuple } | Operation::Replace { tuple } = operation {
                advance_sequence(space, tuple);
            }
            return Ok(());
        }
        let prepared = match operation {
            Operation::Insert { tuple } => Some((tuple, Mode::Insert, row_kind::INSERT)),
            Operation::Replace { tuple } => Some((tuple, Mode::Replace, row_kind::REPLACE)),
            _ => None,
        };
        let prepared = match prepared {
            Some((tuple, mode, kind)) => {
                // Reading the file has checked that the row is well-formed.
                self.check_has_primary(space)?;
                let format = space.format();
                format.check_fields(tuple).map_err(|error| self.tuple_error(error, space))?;
                let new = self.make_row(space, &format, tuple, || 0)?;
                Prepared::new(None, Some(new), mode, kind)
            }
            None => match self.prepare(context, space, &operation).map_err(|halt| self.halt_error(halt))? {
                Some(prepared) => prepared,
                None => return Ok(()),
            },
        };
        let (change, _) = match self.apply(space, prepared) {
            Err(error) if error.code() == ErrorCode::TupleFound as u32 && self.is_twin(space, operation) => {
                // Tarantool keeps both in its order of numbers; nothing is damaged, so the start goes on.
                let mut text = String::new();
                if let Operation::Insert { tuple } | Operation::Replace { tuple } = operation {
                    msgpack::format_value(tuple, &mut text);
                }
                tracing::warn!(
                    "row {text} of space '{}' is left out: {error}, by a number that is equal",
                    space.name()
                );
                return Ok(());
            }
            applied => applied?,
        };
        if space.is_system()
            && let Some(effect) = alter::on_system_row(self, context, space, change.old.as_ref(), change.new.as_ref())?
            && let Some(finish) = effect.finish
        {
            finish(self);
        }
        if let Some(new) = &change.new {
            advance_sequence(space, new.data());
        }
        Ok(())
    }

    /// True if what a row to be put in collides with has keys of other bytes in every index that both are equal in: numbers of two kinds that
    /// Lycosa takes for one. A directory of Tarantool may hold both 1 and decimal 1 in a HASH index, and in any index a decimal beside a double
    /// that differs from it behind the 15th digit.
    fn is_twin(&self, space: &Space, operation: Operation<'_>) -> bool {
        let (Operation::Insert { tuple: row } | Operation::Replace { tuple: row }) = operation else { return false };
        let Some(rows) = space.rows.memory() else { return false };
        let rows = rows.borrow();
        let mut has_twin = false;
        for def in space.index_defs().iter().filter(|def| def.is_unique) {
            let (mut key, mut other_key) = (Vec::new(), Vec::new());
            def.key_def.extract_key(row, &mut key);
            let mut parts = msgpack::Reader::new(&key);
            if parts.read_array().is_err() || def.key_def.has_null_in(row) {
                continue;
            }
            let part_count = def.key_def.part_count() as u32;
            let found = rows.get_row(def.id, parts.rest(), part_count, |other| {
                def.key_def.extract_key(other, &mut other_key);
            });
            if found.is_some() {
                if key == other_key {
                    return false;
                }
                has_twin = true;
            }
        }
        has_twin
    }

    /// Refuses a start whose rows and indexes together have come to take more than they may. Errors: `MemoryIssue`.
    pub(crate) fn check_loaded_memory(&self) -> Result<()> {
        let (limit, used) = (self.arena.limit(), self.arena.used() + self.arena.charged());
        if used <= limit + limit / LOADING_RESERVE_PART {
            return Ok(());
        }
        let what = format!("the rows and indexes of all spaces (the limit is {limit} bytes)");
        Err(Error::new(ErrorCode::MemoryIssue, &[&used, &"memtx_memory", &what]).with("limit", limit))
    }
}
