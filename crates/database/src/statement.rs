//! Writes of rows: insert, replace, update, upsert, delete, truncate.
//!
//! A statement that is alone (no triggers, no constraints, no sequence, not a system space, no open transaction) takes the short way: prepared, applied,
//! appended to the log, pending ([`Database::execute_alone`]). Everything else runs inside a transaction of its own or the open one.

use crate::access::{self, ObjectType, Privileges};
use crate::alter;
use crate::blind_write::BlindWrite;
use crate::catalog::{Granted, IndexInfo, Space, SpaceKind};
use crate::database::Database;
use crate::error::{Error, ErrorCode, Result};
use crate::prepare::Prepared;
use crate::session::Context;
use crate::statistics::increment;
use crate::triggers::Becomes;
use crate::txn::Statement;
use std::rc::Rc;
use storage::{Change, Mode};
use tuple::{IndexId, SpaceId, Tuple, msgpack};
use wal::Position;
use wire::key;

/// Kinds of log rows, which are the request types of the protocol.
pub mod row_kind {
    use wire::request_type;

    /// INSERT.
    pub const INSERT: u16 = request_type::INSERT as u16;
    /// REPLACE.
    pub const REPLACE: u16 = request_type::REPLACE as u16;
    /// UPDATE.
    pub const UPDATE: u16 = request_type::UPDATE as u16;
    /// DELETE.
    pub const DELETE: u16 = request_type::DELETE as u16;
    /// UPSERT.
    pub const UPSERT: u16 = request_type::UPSERT as u16;
    /// NOP.
    pub const NOP: u16 = request_type::NOP as u16;
}

/// What a client wants done to rows of a space.
#[derive(Clone, Copy, Debug)]
pub enum Operation<'a> {
    /// The row's key must be absent.
    Insert {
        /// The row.
        tuple: &'a [u8],
    },
    /// The row with the same key, if any, is replaced.
    Replace {
        /// The row.
        tuple: &'a [u8],
    },
    /// The row found by a unique key is changed.
    Update {
        /// Number of the index.
        index_id: IndexId,
        /// The key, an array.
        key: &'a [u8],
        /// The operations, an array of arrays.
        ops: &'a [u8],
        /// Number of the first field in operations: 0 or 1.
        index_base: u32,
    },
    /// The row found by a unique key is removed.
    Delete {
        /// Number of the index.
        index_id: IndexId,
        /// The key, an array.
        key: &'a [u8],
    },
    /// The row is inserted, or the one with its key is changed.
    Upsert {
        /// The row.
        tuple: &'a [u8],
        /// The operations, an array of arrays.
        ops: &'a [u8],
        /// Number of the first field in operations: 0 or 1.
        index_base: u32,
    },
    /// The row with a primary key is removed if it has expired.
    Expire {
        /// The key, an array.
        key: &'a [u8],
    },
}

impl Operation<'_> {
    pub(crate) fn trigger_name(&self) -> &'static str {
        match self {
            Operation::Insert { .. } => "INSERT",
            Operation::Replace { .. } => "REPLACE",
            Operation::Update { .. } => "UPDATE",
            Operation::Delete { .. } | Operation::Expire { .. } => "DELETE",
            Operation::Upsert { .. } => "UPSERT",
        }
    }
}

/// Rights on a space that do not come from one on all spaces, nor on everything but for an administrator: none to read the hashes of passwords, none at all
/// to what passwords are proved by, since who changes that enters as somebody else.
fn rights_by_name_only(space: &Space, rights: &crate::access::Rights) -> u32 {
    let is_admins = rights.universe & ALL_RIGHTS == ALL_RIGHTS;
    match space.owner() == crate::session::ADMIN && matches!(space.name().as_str(), "_scram" | "_sha2") {
        _ if is_admins => 0,
        true => u32::MAX,
        false if space.id == alter::USER_ID && rights.universe & Privileges::READ == 0 => Privileges::READ,
        false => 0,
    }
}

/// All that can be granted on everything: what the role `super` has.
const ALL_RIGHTS: u32 = 0x1fff;

/// What came of the short way.
enum Alone {
    /// It was done, with what there is to show.
    Done(Option<Tuple>),
    /// Somebody else has locked the row meanwhile: nothing was done.
    Locked,
}

impl Database {
    /// Checks that the context's user may do `wanted` to a space. Errors: `AccessDenied`.
    #[inline]
    pub fn check_space_access(&self, context: &Context, space: &Space, wanted: u32) -> Result<()> {
        let Granted { version, user, privileges } = space.granted.get();
        if privileges & wanted == wanted
            && version == self.catalog.access_version()
            && user == context.user(&self.catalog)
        {
            return Ok(());
        }
        self.look_at_rights(context, space, wanted)
    }

    /// Checks that the context's user may do a write: by the right to write, or by those to put in, change or remove rows. Errors: `AccessDenied`.
    #[inline]
    pub(crate) fn check_write(&self, context: &Context, space: &Space, operation: Operation<'_>) -> Result<()> {
        match self.check_space_access(context, space, Privileges::WRITE) {
            Ok(()) => Ok(()),
            Err(error) => self.check_finer_rights(context, space, operation).map_err(|_| error),
        }
    }

    #[cold]
    fn check_finer_rights(&self, context: &Context, space: &Space, operation: Operation<'_>) -> Result<()> {
        let wanted = match operation {
            Operation::Insert { .. } => Privileges::INSERT,
            Operation::Update { .. } => Privileges::UPDATE,
            Operation::Delete { .. } | Operation::Expire { .. } => Privileges::DELETE,
            Operation::Replace { .. } => Privileges::INSERT | Privileges::DELETE,
            Operation::Upsert { .. } => Privileges::INSERT | Privileges::UPDATE,
        };
        self.check_space_access(context, space, wanted)
    }

    fn look_at_rights(&self, context: &Context, space: &Space, wanted: u32) -> Result<()> {
        let rights = context.rights(&self.catalog);
        let mut privileges = rights.on(ObjectType::Space, space.id.0);
        let by_name_only = rights_by_name_only(space, &rights);
        privileges &= !by_name_only | rights.on_object(ObjectType::Space, space.id.0);
        if rights.universe & Privileges::USAGE != 0 {
            let (version, user) = (self.catalog.access_version(), context.user(&self.catalog));
            space.granted.set(Granted { version, user, privileges });
        }
        let user = context.user(&self.catalog);
        let missing = wanted & by_name_only & !privileges;
        if missing != 0 && user != crate::session::ADMIN && user != space.owner() {
            return Err(access::denied(missing, ObjectType::Space, &space.name(), &self.catalog.user_name(user)));
        }
        if rights.universe & (wanted | Privileges::USAGE) == wanted | Privileges::USAGE {
            return Ok(());
        }
        access::check(
            &rights,
            user,
            || self.catalog.user_name(user),
            wanted,
            ObjectType::Space,
            space.id.0,
            space.owner(),
            &space.name(),
        )
    }

    /// Executes a write after checking access. Returns the row that a client is shown: the new one, or the removed one of
    /// a delete; none for an upsert.
    ///
    /// Errors: `AccessDenied`, `Readonly`, `WalIo`, `TupleFound`, those of formats and updates. A refused statement has changed nothing.
    pub fn execute(&self, context: &Context, space: &Rc<Space>, operation: Operation<'_>) -> Result<Option<Tuple>> {
        self.check_write(context, space, operation)?;
        if space.id == alter::SEQUENCE_DATA_ID {
            self.check_sequence_row(context, operation)?;
        }
        if space.kind == SpaceKind::Service {
            return self.change_setting(&context.session, space, operation);
        }
        self.execute_unchecked(context, space, operation)
    }

    /// Who moves a sequence by a row of `_sequence_data` needs the right to write that sequence. Errors: `AccessDenied`.
    #[cold]
    fn check_sequence_row(&self, context: &Context, operation: Operation<'_>) -> Result<()> {
        let list = match operation {
            Operation::Insert { tuple } | Operation::Replace { tuple } | Operation::Upsert { tuple, .. } => tuple,
            Operation::Update { key, .. } | Operation::Delete { key, .. } | Operation::Expire { key } => key,
        };
        let mut reader = msgpack::Reader::new(list);
        let named = reader.read_array().ok().filter(|count| *count > 0).and_then(|_| reader.read_uint().ok());
        match named.and_then(|id| u32::try_from(id).ok()).and_then(|id| self.catalog.sequence(id)) {
            Some(sequence) => self.check_sequence(context, &sequence, Privileges::WRITE),
            // Refused as a row or a key.
            None => Ok(()),
        }
    }

    /// `execute` without the check of access.
    pub(crate) fn execute_unchecked(
        &self,
        context: &Context,
        space: &Rc<Space>,
        operation: Operation<'_>,
    ) -> Result<Option<Tuple>> {
        if let Some(limit) = space.memory_limit() {
            self.keep_limit(context, space, limit, &operation)?;
        }
        match self.execute_as_it_is(context, space, operation) {
            Err(error) if space.ttl().is_some() => self.clear_the_way(context, space, operation, error),
            result => result,
        }
    }

    /// The same, if no row that has expired is in the way.
    #[inline]
    pub(crate) fn execute_as_it_is(
        &self,
        context: &Context,
        space: &Rc<Space>,
        operation: Operation<'_>,
    ) -> Result<Option<Tuple>> {
        // What comes of it tells of the rows that are there, even if it is an error or nothing is changed.
        context.see(self.written_before(context, space, &operation));
        self.check_writable()?;
        self.statistics.count(&operation);
        if let SpaceKind::View { .. } = space.kind {
            return Err(Error::new(ErrorCode::ViewIsRo, &[&space.name()]));
        }
        // Kept until the statement is applied or refused.
        let mut lock = match self.locks.are_any() {
            true => self.wait_for_lock(context, space, operation)?,
            false => None,
        };
        let is_alone = space.id >= 512
            && context.answers_wait
            && space.has_rows()
            && !context.is_in_txn()
            && !space.has_triggers()
            && !space.has_constraints()
            && space.sequence.borrow().is_none();
        if is_alone {
            loop {
                match self.execute_alone(context, space, operation, lock.is_some())? {
                    Alone::Done(row) => return Ok(row),
                    Alone::Locked => lock = self.wait_for_lock(context, space, operation)?,
                }
            }
        }
        match space.is_system() {
            // A change of the schema looks at rows by itself.
            true => self.bring_in_place(context)?,
            false => self.enter(context)?,
        }
        // Kept until the statement is applied or refused, as the lock is.
        let _ready = self.make_ready(context, space, operation)?;
        let result = self.in_statement(context, || self.execute_in_txn(context, space, operation, lock.is_some()));
        // What a refused statement has left.
        self.ready.forget();
        result
    }

    /// The row that a statement would put in, and the one in whose place it would come. `None`: it puts in none.
    pub(crate) fn rows_of(
        &self,
        context: &Context,
        space: &Rc<Space>,
        operation: Operation<'_>,
    ) -> Result<Option<(Option<Tuple>, Tuple)>> {
        let prepared = self.prepare(context, space, &operation).map_err(|halt| self.halt_error(halt))?;
        let Some(Prepared { old, new: Some(new), mode, .. }) = prepared else {
            return Ok(None);
        };
        let old = old.or_else(|| space.rows.same_key_in_memory(new.data()));
        Ok(if mode == Mode::Insert && old.is_some() { None } else { Some((old, new)) })
    }

    /// The short way: one statement, one log row, no transaction object. `has_lock`: nobody else can lock its row.
    fn execute_alone(
        &self,
        context: &Context,
        space: &Rc<Space>,
        operation: Operation<'_>,
        has_lock: bool,
    ) -> Result<Alone> {
        let prepared = match space.rows.may_wait() {
            true => self.prepare_on_disk(context, space, &operation)?,
            false => self.prepare(context, space, &operation).map_err(|halt| self.halt_error(halt))?,
        };
        let Some(prepared) = prepared else { return Ok(Alone::Done(None)) };
        let is_taken = || {
            space.rows.may_wait() && self.is_definition_locked(space)
                || self.taken_meanwhile(context, space, Some(&prepared)).is_some()
        };
        if !has_lock && self.locks.are_any() && is_taken() {
            return Ok(Alone::Locked);
        }
        let kind = logged_kind(space, prepared.kind);
        let (change, blind) = self.apply(space, prepared)?;
        let mut statement = Statement { space: Rc::clone(space), change, effect: None };
        self.tell_readers(std::slice::from_mut(&mut statement));
        let answer = shown(&operation, space, &statement.change);
        if space.def().is_temporary {
            return Ok(Alone::Done(answer));
        }
        let change = &statement.change;
        let position = self
            .append_alone(context, space, kind, |out| encode_write(out, space, change, blind.as_deref()))
            .inspect_err(|_| self.take_back_told(space, change))?;
        if space.rows.may_wait() {
            increment(&self.statistics.disk_commits);
        }
        if self.has_row_watcher.get() {
            self.tell_row_watcher(context, &statement, position);
        }
        self.push_pending(position, statement);
        Ok(Alone::Done(answer))
    }

    /// Appends a transaction of one statement, which is applied, to the log.
    ///
    /// Errors: `WalIo`; the caller then rolls the statement back.
    pub(crate) fn append_alone(
        &self,
        context: &Context,
        space: &Space,
        kind: u16,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Position> {
        let group_id = space.def().group_id;
        let position = self.ledger.with_journal(|journal| {
            journal.begin();
            journal.row(kind, group_id, encode);
            journal.commit()
        })?;
        debug_assert!(position > self.durable(), "what is appended becomes durable later");
        self.ledger.note_write(space, position);
        context.see(position);
        Ok(position)
    }

    /// The long way: triggers, sequences, schema changes. `has_lock`: nobody else can lock its row.
    pub(crate) fn execute_in_txn(
        &self,
        context: &Context,
        space: &Rc<Space>,
        operation: Operation<'_>,
        has_lock: bool,
    ) -> Result<Option<Tuple>> {
        let filled;
        let operation = match operation {
            Operation::Insert { tuple } => {
                filled = self.fill_sequence(context, space, tuple)?;
                Operation::Insert { tuple: filled.as_deref().unwrap_or(tuple) }
            }
            Operation::Replace { tuple } => {
                filled = self.fill_sequence(context, space, tuple)?;
                Operation::Replace { tuple: filled.as_deref().unwrap_or(tuple) }
            }
            other => other,
        };
        let prepared = self.prepare_in_txn(context, space, &operation, has_lock);
        if let (Err(error), Operation::Insert { tuple } | Operation::Replace { tuple }) = (&prepared, &operation)
            && error.code() == ErrorCode::TupleFound as u32
        {
            self.check_before_keys(context, space, tuple)?;
        }
        let Some((prepared, becomes)) = prepared? else { return Ok(None) };
        if space.rows.may_wait() && !context.answers_wait {
            // The triggers may have taken long.
            self.check_writable()?;
        }
        if space.has_constraints() && !context.origin.is_replay() {
            self.check_constraints(context, space, prepared.new.as_ref())?;
        }
        let kind = logged_kind(space, prepared.kind);
        let wanted = prepared.new.clone();
        let applied = match self.is_private(context) {
            true => self.apply_privately(context, space, prepared),
            false => self.apply(space, prepared),
        };
        // Who is refused has seen why.
        let (change, blind) = applied.inspect_err(|_| self.remember_rows(context, space, None, wanted.as_ref()))?;
        let (old, new) = (change.old.clone(), change.new.clone());
        let def = space.def();
        let answer = match becomes {
            Some(Becomes::Deletion) if space.rows.may_wait() => None,
            Some(_) => new.clone().or_else(|| old.clone()),
            None => shown(&operation, space, &change),
        };
        let is_logged =
            !(def.is_temporary || space.is_system() && self.is_about_session(space, old.as_ref(), new.as_ref()));
        let log = is_logged.then_some((kind, def.group_id));
        self.record(context, Statement { space: Rc::clone(space), change, effect: None }, log, |out, change| {
            encode_write(out, space, change, blind.as_deref());
        });
        if space.is_system()
            && let Some(effect) = alter::on_system_row(self, context, space, old.as_ref(), new.as_ref())?
        {
            self.attach_effect(context, effect);
            self.hold_schema(context, space, new.as_ref().or(old.as_ref()))?;
        }
        if space.has_constraints() && !context.origin.is_replay() {
            self.keep_foreign_keys(context, space, old.as_ref(), new.as_ref())?;
        }
        let on_replace = if space.runs_triggers.get() { space.on_replace.borrow().clone() } else { Vec::new() };
        for trigger in on_replace {
            self.run_trigger(context, || {
                let kind = becomes.map_or(operation.trigger_name(), Becomes::trigger_name);
                trigger.run(context, old.as_ref(), new.as_ref(), space, kind)
            })?;
        }
        Ok(answer)
    }

    /// What a check says of a row comes before what stands in the way of its keys. Errors: as of [`Database::check_constraints`].
    fn check_before_keys(&self, context: &Context, space: &Rc<Space>, row: &[u8]) -> Result<()> {
        if !space.has_constraints() || context.origin.is_replay() {
            return Ok(());
        }
        let filled = self.with_generated(context, space, row)?;
        let row = Tuple::new(&self.loose_rows, space.format().id(), filled.as_deref().unwrap_or(row));
        let row = row.map_err(|error| self.storage_error(error.into(), space))?;
        self.check_constraints(context, space, Some(&row))
    }

    /// Removes all rows. Logged as a change of `_truncate`, as Tarantool does.
    ///
    /// Errors: `AccessDenied`, `TruncateSystemSpace`; those of a write.
    pub fn truncate(&self, context: &Context, space: &Rc<Space>) -> Result<()> {
        self.check_space_access(context, space, Privileges::WRITE)?;
        if space.is_system() {
            return Err(Error::new(ErrorCode::TruncateSystemSpace, &[&space.name()]));
        }
        let truncations = self.space(crate::alter::TRUNCATE_ID)?;
        let (mut tuple, mut ops) = (Vec::new(), Vec::new());
        msgpack::encode_array(&mut tuple, 2);
        msgpack::encode_uint(&mut tuple, u64::from(space.id));
        msgpack::encode_uint(&mut tuple, 1);
        msgpack::encode_array(&mut ops, 1);
        msgpack::encode_array(&mut ops, 3);
        msgpack::encode_str(&mut ops, b"+");
        msgpack::encode_uint(&mut ops, 1);
        msgpack::encode_uint(&mut ops, 1);
        let operation = Operation::Upsert { tuple: &tuple, ops: &ops, index_base: 0 };
        self.execute_unchecked(context, &truncations, operation)?;
        Ok(())
    }
}

/// The error for a space that does not exist.
pub(crate) fn no_such_space(id: SpaceId) -> Error {
    Error::new(ErrorCode::NoSuchSpace, &[&id]).with("space_id", id)
}

/// The error for an index that does not exist.
pub fn no_such_index(space: &Space, index_id: IndexId) -> Error {
    Error::new(ErrorCode::NoSuchIndexId, &[&index_id, &space.name()]).with("space", space.name())
}

/// An index by name. Errors: `NoSuchIndexName`.
pub fn index_by_name(space: &Space, name: &str) -> Result<Rc<IndexInfo>> {
    space.index_by_name(name).ok_or_else(|| Error::new(ErrorCode::NoSuchIndexName, &[&name, &space.name()]))
}

/// As what a change stands in the log. Tarantool takes an INSERT into `_truncate` for a row of a snapshot and truncates nothing.
fn logged_kind(space: &Space, kind: u16) -> u16 {
    if space.id == crate::alter::TRUNCATE_ID && kind == row_kind::INSERT { row_kind::REPLACE } else { kind }
}

/// The row that a client is shown. As Tarantool's disk engine, which may not know what it deletes, a delete there shows nothing.
#[inline]
fn shown(operation: &Operation<'_>, space: &Space, change: &Change) -> Option<Tuple> {
    match operation {
        Operation::Delete { .. } if space.rows.may_wait() => None,
        Operation::Delete { .. } | Operation::Expire { .. } => change.old.clone(),
        Operation::Upsert { .. } => None,
        _ => change.new.clone(),
    }
}

/// The body of the log row of a write.
#[inline]
fn encode_write(out: &mut Vec<u8>, space: &Space, change: &Change, blind: Option<&BlindWrite>) {
    match blind {
        None => encode_body(out, space, change),
        Some(write) => write.encode_body(out, space),
    }
}

/// The body of a log row that says what is there now, so that replaying it needs no operations.
pub(crate) fn encode_body(out: &mut Vec<u8>, space: &Space, change: &Change) {
    msgpack::encode_map(out, 2);
    msgpack::encode_uint(out, key::SPACE_ID);
    msgpack::encode_uint(out, u64::from(space.id));
    match (&change.new, &change.old) {
        (Some(new), _) => {
            msgpack::encode_uint(out, key::TUPLE);
            out.extend_from_slice(new.data());
        }
        (None, Some(old)) => {
            msgpack::encode_uint(out, key::KEY);
            match space.index_def(IndexId::PRIMARY) {
                Some(primary) => primary.key_def.extract_key(old.data(), out),
                None => msgpack::encode_array(out, 0),
            }
        }
        (None, None) => {
            msgpack::encode_uint(out, key::KEY);
            msgpack::encode_array(out, 0);
        }
    }
}
