//! Changes of the schema that have to look at every row of a space: a new or altered index, another format.
//!
//! The idea. The rows are looked at before the statement that makes the change, in slices between which everybody else has a turn; what changes
//! meanwhile is followed. The statement itself then takes no time: it finds the new indexes complete and puts them in their places. So until
//! then nothing of the change is in the catalog or the log, and a crash, a refusal or a cancelled fiber leave nothing behind.
//!
//! Invariant: while a space is looked at, nobody else changes its definition, and it is neither emptied nor dropped.

use super::disk::ReadyIndexes;
use super::{INDEX_ID, SPACE_ID, TRUNCATE_ID, index, space};
use crate::catalog::Space;
use crate::database::{Database, State};
use crate::error::{Error, ErrorCode, Result};
use crate::session::Context;
use crate::statement::Operation;
use crate::time_share::{TimeShare, give_turn};
use runtime::fiber;
use std::cell::RefCell;
use std::rc::Rc;
use storage::{BuildError, DetachedIndex, IndexDef, MemorySpace};
use tuple::msgpack::Reader;
use tuple::{Format, SpaceId, Tuple};

/// Rows between two looks at the clock.
const STEP_ROWS: usize = 32;
/// A space of more rows is not looked at in one go, except at start.
const ROWS_AT_ONCE_MAX: usize = 20_000;
/// The same in a transaction of several statements, of which an earlier one was about the space: nobody can be given a turn then.
pub(super) const ROWS_IN_TXN_MAX: usize = 200_000;

/// What is looked at, and for what.
pub(super) struct Work {
    pub(super) space: Rc<Space>,
    /// What rows must be like.
    pub(super) format: Rc<Format>,
    /// New indexes.
    pub(super) defs: Vec<IndexDef>,
    /// Name of the index that is made or altered.
    pub(super) name: String,
    /// What it is, in the words of a refusal.
    pub(super) what: &'static str,
}

/// Changes whose long part is done, for the statements that are about to make them.
#[derive(Default)]
pub(crate) struct Ready {
    /// The row of a system space whose indexes or format were looked at in memory, and the number of what was built for it.
    change: RefCell<Option<(u64, Tuple)>>,
    /// Indexes on disk.
    pub(super) indexes: RefCell<Option<ReadyIndexes>>,
    /// The row of `_space` whose format all rows of a space on disk were found to fit.
    pub(super) checked_format: RefCell<Option<Tuple>>,
    /// The row of `_space` whose new constraints all rows were found to satisfy.
    pub(super) checked_constraints: RefCell<Option<Tuple>>,
}

impl Ready {
    /// Forgets what no statement has taken.
    pub(crate) fn forget(&self) {
        drop(self.indexes.take());
        drop(self.checked_format.take());
        drop(self.checked_constraints.take());
    }
}

/// A change that is ready for its statement, which comes at once. When dropped, it removes what the statement has not taken.
pub(crate) struct ReadyChange<'a> {
    _build: Option<ReadyBuild<'a>>,
    _constraints: Option<super::constraints::Pending<'a>>,
}

/// What was built in memory.
struct ReadyBuild<'a> {
    database: &'a Database,
    space: Rc<Space>,
    build_id: u64,
}

impl Drop for ReadyBuild<'_> {
    fn drop(&mut self) {
        // The statement may have waited for the log, and another change of the space may be under way by now.
        self.database.ready.change.borrow_mut().take_if(|(id, _)| *id == self.build_id);
        let Some(rows) = self.space.rows.memory() else { return };
        let mut rows = rows.borrow_mut();
        if rows.build_id() == Some(self.build_id) {
            self.database.discard_indexes(rows.abandon_build());
        }
    }
}

/// Errors: `AlterSpace` if the rows are being looked at for another change.
pub(super) fn check_not_building(space: &Space) -> Result<()> {
    if space.is_being_changed() { Err(being_modified(space)) } else { Ok(()) }
}

pub(super) fn being_modified(space: &Space) -> Error {
    Error::new(ErrorCode::AlterSpace, &[&space.name(), &"the space is already being modified"])
}

impl Database {
    /// Does the long part of a statement on a system space, if it has one. Yields.
    ///
    /// Errors: as the statement's, which then need not be tried.
    pub(crate) fn make_ready(
        &self,
        context: &Context,
        system_space: &Rc<Space>,
        operation: Operation<'_>,
    ) -> Result<Option<ReadyChange<'_>>> {
        let may_be_long = matches!(system_space.id, INDEX_ID | SPACE_ID | TRUNCATE_ID)
            && self.state() == State::Running
            && context.trigger_depth.get() == 0
            && fiber::current().is_some();
        if !may_be_long {
            return Ok(None);
        }
        let is_first = context.may_wait();
        if is_first {
            self.wait_for_others(context, operation)?;
            if self.locks.are_any() && context.is_in_txn() {
                // Another transaction may have changed the schema meanwhile.
                drop(self.wait_for_schema(context, system_space, operation)?);
            }
        }
        if system_space.id == TRUNCATE_ID {
            return Ok(None);
        }
        // What the statement would refuse is left to it.
        let Ok(Some((old, new))) = self.rows_of(context, system_space, operation) else { return Ok(None) };
        let planned = match system_space.id {
            INDEX_ID => index::plan_work(self, context, old.as_ref(), &new),
            _ => space::plan_work(self, context, old.as_ref(), &new),
        };
        let Ok(Some(work)) = planned else { return Ok(None) };
        if !is_first && !self.may_look_apart(context, &work.space, system_space.id) {
            return Ok(None);
        }
        let constraints = match system_space.id {
            SPACE_ID if is_first => self.look_at_constraints(context, &work.space, &new)?,
            _ => None,
        };
        let build = self.build_ahead(context, work, new)?;
        Ok(Some(ReadyChange { _build: build, _constraints: constraints }))
    }

    /// True if a transaction that has done something before can be suspended while the rows of a space are looked at, which then are the ones that it sees.
    fn may_look_apart(&self, context: &Context, space: &Rc<Space>, system_space: SpaceId) -> bool {
        let txn = context.txn.borrow();
        let Some(txn) = txn.as_ref().filter(|txn| !txn.is_implicit()) else { return false };
        match txn.schema.is_own(space.id) {
            true => !space.rows.may_wait(),
            false => system_space == INDEX_ID && !txn.has_touched(space.id),
        }
    }

    /// Does what takes long while the open transaction is suspended. Errors: those of the work; the transaction has met another one.
    pub(super) fn apart<T>(&self, context: &Context, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.suspend(context);
        let txn = context.txn.borrow_mut().take();
        let must_resume = context.must_resume.replace(false);
        let done = work();
        *context.txn.borrow_mut() = txn;
        context.must_resume.set(must_resume);
        self.resume(context)?;
        done
    }

    fn build_ahead(&self, context: &Context, work: Work, new: Tuple) -> Result<Option<ReadyBuild<'_>>> {
        let Some(rows) = work.space.rows.memory() else {
            self.build_on_disk(context, work, new)?;
            return Ok(None);
        };
        if work.space.rows.is_building() || work.space.rows.is_empty() {
            return Ok(None);
        }
        // A look at the rows alone goes on when memory is full.
        let takes_memory = !work.defs.is_empty();
        let build_id = rows.borrow_mut().begin_build(work.format, work.defs);
        let ready = ReadyBuild { database: self, space: Rc::clone(&work.space), build_id };
        let looked_at =
            self.apart(context, || self.look_at_rows(context, (&work.space, rows), build_id, &work.name, takes_memory));
        looked_at
            .inspect_err(|error| tracing::info!("a change of space '{}' is given up: {error}", ready.space.name()))?;
        *self.ready.change.borrow_mut() = Some((build_id, new));
        Ok(Some(ready))
    }

    /// Waits while the rows of the space that a statement is about are looked at for another change. Yields.
    ///
    /// Errors: the fiber was cancelled; nothing can be written any more.
    fn wait_for_others(&self, context: &Context, operation: Operation<'_>) -> Result<()> {
        let list = match operation {
            Operation::Insert { tuple } | Operation::Replace { tuple } | Operation::Upsert { tuple, .. } => tuple,
            Operation::Update { key, .. } | Operation::Delete { key, .. } | Operation::Expire { key } => key,
        };
        // Rows of all these system spaces begin with the number of the space, and so do their primary keys.
        let mut reader = Reader::new(list);
        let named = reader.read_array().ok().filter(|count| *count > 0).and_then(|_| reader.read_uint().ok());
        match named.and_then(|id| u32::try_from(id).ok()) {
            Some(id) => self.wait_for_change(context, SpaceId(id)),
            None => Ok(()),
        }
    }

    /// Waits while the rows of a space are looked at for a change of its definition, if waiting can make nothing wrong. Yields.
    ///
    /// Errors: the fiber was cancelled; nothing can be written any more.
    pub fn wait_for_change(&self, context: &Context, id: SpaceId) -> Result<()> {
        if fiber::current().is_none() || !context.may_wait() {
            return Ok(());
        }
        while self.catalog.space(id).is_some_and(|space| check_not_building(&space).is_err()) {
            // The open transaction has done nothing yet that waiting could make wrong.
            let txn = context.txn.borrow_mut().take();
            // Not before the next turn of the loop, in which the other one goes on.
            let turn = give_turn(context, 1);
            *context.txn.borrow_mut() = txn;
            turn?;
            self.check_writable()?;
        }
        Ok(())
    }

    fn look_at_rows(
        &self,
        context: &Context,
        (space, rows): (&Space, &RefCell<MemorySpace>),
        build_id: u64,
        name: &str,
        takes_memory: bool,
    ) -> Result<()> {
        let clock = &*self.environment.clock;
        let step_rows = STEP_ROWS.min(self.slice_rows());
        let (share, mut slices) = (TimeShare::default(), 1);
        let began = clock.monotonic_ns();
        loop {
            let step = || {
                let filled = rows.borrow_mut().build_some(step_rows);
                filled.map_err(|error| self.build_error(error, space, name))
            };
            let has_more = share.run(clock, self.slice_rows() / step_rows, step)?;
            if takes_memory {
                self.check_room(space)?;
            }
            if !has_more {
                if slices > 1 {
                    let (rows, ms) = (rows.borrow().len(), (clock.monotonic_ns() - began) / 1_000_000);
                    tracing::info!("{rows} rows were looked at for a change of space '{}', in {ms} ms", space.name());
                }
                return Ok(());
            }
            slices += 1;
            // Not before the next turn of the loop.
            give_turn(context, 1)?;
            self.check_writable()?;
            // If the log fails, rows that are rolled back may take the place of those that are looked at.
            if rows.borrow().build_id() != Some(build_id) {
                return Err(being_modified(space));
            }
        }
    }

    /// Errors: `MemoryIssue` if the new indexes have taken what memory there was.
    fn check_room(&self, space: &Space) -> Result<()> {
        let (taken, limit) = (self.arena.used() + self.arena.charged(), self.arena.limit());
        if taken <= limit {
            return Ok(());
        }
        let what = format!("an index of space '{}' (the limit is {limit} bytes)", space.name());
        Err(Error::new(ErrorCode::MemoryIssue, &[&(taken - limit), &"memtx_memory", &what])
            .with("space", space.name())
            .with("limit", limit))
    }

    fn build_error(&self, error: BuildError, space: &Space, name: &str) -> Error {
        match error {
            BuildError::Duplicate { .. } => Error::new(ErrorCode::TupleFound, &[&name, &space.name()])
                .with("space", space.name())
                .with("index", name),
            BuildError::Format(error) => self.tuple_error(error, space),
        }
    }

    /// Puts new indexes over the rows of a space in their places, after looking at the rows now unless that was done ahead. Returns those whose
    /// places were taken. Yields never.
    ///
    /// Errors: a row that does not fit; `AlterSpace` if the rows are being looked at for another change; `MultistatementTransaction` if there are too many for one go, which is
    /// what a transaction needs that has done something before.
    pub(super) fn apply_build(&self, context: &Context, work: Work, row: &Tuple) -> Result<Vec<DetachedIndex>> {
        let Some(rows) = work.space.rows.memory() else { return Ok(Vec::new()) };
        let mut store = rows.borrow_mut();
        if let Some(build_id) = store.build_id() {
            let ready = self.ready.change.borrow();
            let is_mine = ready.as_ref().is_some_and(|(id, ready)| *id == build_id && ready.data() == row.data());
            if !is_mine {
                return Err(being_modified(&work.space));
            }
            return Ok(store.end_build());
        }
        let is_serving = self.state() == State::Running && fiber::current().is_some();
        let at_once_max = if context.looks_at_once.get() { ROWS_IN_TXN_MAX } else { ROWS_AT_ONCE_MAX };
        if is_serving && store.len() > at_once_max {
            return Err(Error::new(ErrorCode::MultistatementTransaction, &[&work.what]));
        }
        store.begin_build(work.format, work.defs);
        loop {
            match store.build_some(usize::MAX) {
                Ok(true) => {}
                Ok(false) => return Ok(store.end_build()),
                Err(error) => {
                    let unused = store.abandon_build();
                    self.discard_indexes(unused);
                    return Err(self.build_error(error, &work.space, &work.name));
                }
            }
        }
    }
}
