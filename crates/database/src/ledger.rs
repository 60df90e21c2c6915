//! What is applied and not durable yet: the log, what undoes its newest transactions, and the fibers that wait for them.
//!
//! A transaction's statements come here with its position in the log. When the log says that the position is durable they are dropped, which
//! commits them; if the log fails, those behind the last durable position are rolled back, the newest first.
//!
//! Invariants:
//! * `durable` only grows, and is never behind `appended`.
//! * Pending statements are in the order of their positions, all behind `durable`.

use crate::catalog::Space;
use crate::database::{Database, State};
use crate::disposal::Garbage;
use crate::error::{Error, ErrorCode, ErrorKind, Result};
use crate::forks::Aside;
use crate::session::Context;
use crate::statement::Operation;
use crate::txn::{Statement, Turn};
use runtime::Notifier;
use runtime::fiber::{self, FiberId};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use storage::{IteratorKind, Key, ScanRequest};
use tuple::IndexId;
use wal::{Journal, Position, Vclock, WalError};

/// Number of statements by which the prefetch of an old row runs ahead of freeing it.
const FORESEEN_DROPS: usize = 8;
/// So many statements on their way to the disk are looked through for those that concern one row.
const LOOKED_THROUGH_MAX: usize = 64;

/// Statements that are applied and in the log, but not durable yet.
struct Pending {
    position: Position,
    work: Work,
}

/// What a position of the log stands for.
enum Work {
    One(Statement),
    /// Those of a long transaction.
    Many(Vec<Statement>, Option<Aside>),
}

impl Pending {
    /// The statement, if it is one.
    fn one(&self) -> Option<&Statement> {
        match &self.work {
            Work::One(statement) => Some(statement),
            Work::Many(..) => None,
        }
    }
}

/// See the head of this file.
#[derive(Default)]
pub(crate) struct Ledger {
    journal: RefCell<Option<Journal>>,
    pending: RefCell<VecDeque<Pending>>,
    /// Fibers that wait for a position, in no order.
    waiters: RefCell<Vec<(Position, FiberId)>>,
    /// Newest position known to be durable, and the first lost one.
    durable: Cell<Position>,
    lost_from: Cell<Option<Position>>,
    /// Of the last change of schema, users or rights.
    schema_written: Cell<Position>,
    /// The thread always has something to do.
    is_loaded: Cell<bool>,
}

impl Ledger {
    /// Begins to log, behind what is durable.
    pub(crate) fn open(&self, mut journal: Journal) {
        journal.note_load(self.is_loaded.get());
        self.durable.set(journal.durable());
        *self.journal.borrow_mut() = Some(journal);
    }

    /// Takes the log, whose end has come.
    pub(crate) fn take_journal(&self) -> Option<Journal> {
        self.journal.borrow_mut().take()
    }

    fn with<T>(&self, look: impl FnOnce(&Journal) -> T) -> Option<T> {
        self.journal.borrow().as_ref().map(look)
    }

    /// Works with the log. Errors: as the log's, in Tarantool's codes; `Loading` if there is none yet.
    #[inline]
    pub(crate) fn with_journal<T>(
        &self,
        work: impl FnOnce(&mut Journal) -> std::result::Result<T, WalError>,
    ) -> Result<T> {
        match self.journal.borrow_mut().as_mut() {
            Some(journal) => work(journal).map_err(|error| log_error(&error.to_string())),
            None => Err(Error::new(ErrorCode::Loading, &[])),
        }
    }

    /// Notes that a transaction at this position has written to a space.
    #[inline]
    pub(crate) fn note_write(&self, space: &Space, position: Position) {
        debug_assert!(position >= space.last_write.get(), "positions only grow");
        space.last_write.set(position);
        // Values of sequences are no schema.
        if space.is_system() && space.id != crate::alter::SEQUENCE_DATA_ID {
            self.schema_written.set(position);
        }
    }

    /// Keeps a statement whose position is not durable until it is.
    #[inline]
    fn push(&self, position: Position, statement: Statement) {
        self.push_work(position, Work::One(statement));
    }

    /// The same of the statements of a long transaction.
    pub(crate) fn push_many(&self, position: Position, statements: Vec<Statement>, aside: Option<Aside>) {
        self.push_work(position, Work::Many(statements, aside));
    }

    #[inline]
    fn push_work(&self, position: Position, work: Work) {
        let mut pending = self.pending.borrow_mut();
        debug_assert!(pending.back().is_none_or(|last| last.position <= position), "positions only grow");
        pending.push_back(Pending { position, work });
    }

    /// What comes next whose position is durable.
    #[inline]
    fn pop_durable(&self) -> Option<Work> {
        let mut pending = self.pending.borrow_mut();
        let later = pending.get(FORESEEN_DROPS).and_then(Pending::one);
        if let Some(old) = later.and_then(|later| later.change.old.as_ref()) {
            old.foresee_drop();
        }
        let durable = self.durable.get();
        pending.pop_front_if(|first| first.position <= durable).map(|first| first.work)
    }

    fn wake_waiters(&self) {
        let (durable, failed) = (self.durable.get(), self.lost_from.get().is_some());
        self.waiters.borrow_mut().retain(|&(position, fiber)| {
            let is_done = failed || position <= durable;
            if is_done {
                fiber::wake(fiber);
            }
            !is_done
        });
    }
}

impl Database {
    /// The vclock of everything applied.
    pub fn vclock(&self) -> Vclock {
        self.ledger.with(Journal::vclock).unwrap_or_default()
    }

    /// Position of the newest transaction in the log.
    pub fn appended(&self) -> Position {
        self.ledger.with(Journal::appended).unwrap_or_default()
    }

    /// Everything up to here survives a crash.
    #[inline]
    pub fn durable(&self) -> Position {
        self.ledger.durable.get()
    }

    /// The first position that the log lost, if it failed.
    pub fn lost_from(&self) -> Option<Position> {
        self.ledger.lost_from.get()
    }

    /// The position that an answer depends on if it tells of a space's rows: of the last write to them, or of the last change of schema and
    /// rights.
    #[inline]
    pub fn written(&self, space: &Space) -> Position {
        space.last_write.get().max(self.ledger.schema_written.get())
    }

    /// The same if it tells only of what a scan finds: by a full primary key, of the last write to that row, if not too many are on their way to
    /// the disk to look for it.
    #[inline]
    pub fn written_of(&self, space: &Space, request: &ScanRequest<'_>) -> Position {
        let written = self.written(space);
        if written <= self.durable() || request.index_id != 0 || request.kind != IteratorKind::Eq {
            return written;
        }
        self.written_key(space, request.key, written)
    }

    /// The position of the last write to a row that its primary key names; `written` if that cannot be said.
    fn written_key(&self, space: &Space, key: Key<'_>, written: Position) -> Position {
        let pending = self.ledger.pending.borrow();
        let Some(def) = space.index_def(IndexId::PRIMARY) else { return written };
        let is_whole = key.part_count as usize == def.key_def.part_count();
        if pending.len() > LOOKED_THROUGH_MAX || !is_whole {
            return written;
        }
        if def.key_def.validate_key(key.parts, key.part_count, false).is_err() {
            return written;
        }
        let durable = self.durable();
        let newest = pending.iter().rev().take_while(|pending| pending.position > durable).find(|pending| {
            // One of many is not looked for: any of them may be it.
            let Some(Statement { space: other, change, .. }) = pending.one() else { return true };
            // Of a blind write not even the key is known here.
            let row = change.old.as_ref().or(change.new.as_ref());
            other.id == space.id
                && row.is_none_or(|row| def.key_def.compare_row_key(row.data(), key.parts, key.part_count).is_eq())
        });
        newest.map_or(Position::default(), |pending| pending.position).max(self.ledger.schema_written.get())
    }

    /// The position that the answer to a statement depends on, besides what the statement itself does.
    #[inline]
    pub(crate) fn written_before(&self, context: &Context, space: &Space, operation: &Operation<'_>) -> Position {
        let written = self.written(space);
        // Without a transaction the answer waits for the statement itself, which comes behind all that was written before.
        if written <= self.durable() || !context.is_in_txn() || space.has_triggers() {
            return written;
        }
        self.written_before_in_txn(space, operation, written)
    }

    #[cold]
    fn written_before_in_txn(&self, space: &Space, operation: &Operation<'_>, written: Position) -> Position {
        match *operation {
            Operation::Update { index_id, key, .. } | Operation::Delete { index_id, key } if index_id == 0 => {
                Key::decode(key).map_or(written, |key| self.written_key(space, key, written))
            }
            // Says nothing of what was there, unless a unique key might be had by another row.
            Operation::Replace { .. } | Operation::Upsert { .. } if space.index_defs().len() == 1 => {
                self.ledger.schema_written.get()
            }
            Operation::Expire { key } => Key::decode(key).map_or(written, |key| self.written_key(space, key, written)),
            _ => written,
        }
    }

    /// The position of the last change of schema, users or rights. Whatever a request is answered depends on it.
    #[inline]
    pub fn schema_written(&self) -> Position {
        self.ledger.schema_written.get()
    }

    /// The fd that becomes readable when the log has news; the event loop watches it and calls `turn`.
    pub fn log_notifier(&self) -> Option<Arc<Notifier>> {
        self.ledger.with(|journal| Arc::clone(journal.notifier()))
    }

    /// Takes notice whether the thread always has something to do, or waits for a good part of its time: the log leaves more to others then.
    pub fn note_load(&self, is_loaded: bool) {
        if self.ledger.is_loaded.replace(is_loaded) != is_loaded
            && let Some(journal) = self.ledger.journal.borrow_mut().as_mut()
        {
            journal.note_load(is_loaded);
        }
    }

    /// Hands the open group to the log. Called at the end of every turn of the event loop.
    pub fn submit(&self) {
        if let Some(journal) = self.ledger.journal.borrow_mut().as_mut() {
            journal.submit();
        }
    }

    /// True if commits are ahead of the disk by more than the bound: connections should not be read on.
    pub fn is_log_congested(&self) -> bool {
        self.ledger.with(Journal::is_congested).unwrap_or(false)
    }

    /// Keeps a statement until its position is durable.
    #[inline]
    pub(crate) fn push_pending(&self, position: Position, statement: Statement) {
        if position <= self.durable() {
            self.finish(statement);
        } else {
            self.ledger.push(position, statement);
        }
    }

    /// Rolls a statement back.
    pub(crate) fn undo(&self, statement: Statement) {
        // The schema first: it may have moved the rows' indexes, which the change then finds as they were.
        let Statement { space, change, effect } = statement;
        let Some(mut effect) = effect else { return space.rows.undo(&change) };
        (effect.turn)(self, Turn::Back);
        space.rows.undo(&change);
        (effect.turn)(self, Turn::GiveUp);
    }

    /// What a suspended transaction has done, and so is undone, is not done again.
    pub(crate) fn give_up(&self, statement: Statement) {
        if let Some(mut effect) = statement.effect {
            (effect.turn)(self, Turn::GiveUp);
        }
    }

    /// A statement cannot be rolled back any more.
    #[inline]
    pub(crate) fn finish(&self, statement: Statement) {
        if let Some(finish) = statement.effect.and_then(|effect| effect.finish) {
            finish(self);
        }
    }

    #[inline]
    fn finish_work(&self, work: Work) {
        match work {
            Work::One(statement) => self.finish(statement),
            Work::Many(statements, aside) => self.finish_many(statements, aside),
        }
    }

    /// Statements of a transaction cannot be rolled back any more. What is left of them is freed in slices.
    pub(crate) fn finish_many(&self, mut statements: Vec<Statement>, aside: Option<Aside>) {
        let finished = statements.iter_mut().filter_map(|statement| statement.effect.take()?.finish);
        finished.for_each(|finish| finish(self));
        self.discard(Garbage::Statements(statements, aside));
    }

    /// Rolls a statement back that may have been put in a second state of its space, which is in place now.
    pub(crate) fn undo_beside(&self, statement: Statement, aside: &Aside) {
        let kept = Statement { space: Rc::clone(&statement.space), change: statement.change.clone(), effect: None };
        self.undo(statement);
        aside.settle(&kept);
    }

    /// Nothing can be rolled back any more: the process is about to forget it all.
    pub(crate) fn finish_all(&self) {
        for pending in self.ledger.pending.take() {
            self.finish_work(pending.work);
        }
    }

    /// Takes notice of what the log has come to.
    pub(crate) fn poll_log(&self) {
        let ledger = &self.ledger;
        let state = match ledger.journal.borrow_mut().as_mut() {
            Some(journal) => journal.poll(),
            None => return,
        };
        if let Some((lost_from, error)) = state.failed
            && ledger.lost_from.get().is_none()
        {
            self.fail_log(state.durable, lost_from, &error);
            return;
        }
        if state.durable == ledger.durable.get() {
            return;
        }
        assert!(state.durable > ledger.durable.get(), "what is durable stays durable");
        ledger.durable.set(state.durable);
        while let Some(work) = ledger.pop_durable() {
            self.finish_work(work);
        }
        ledger.wake_waiters();
    }

    /// The log lost everything from a position on: those transactions are rolled back and writing ends (promise 1).
    fn fail_log(&self, durable: Position, lost_from: Position, error: &WalError) {
        tracing::error!("the log failed: {error}; the server is read-only until it is restarted");
        let ledger = &self.ledger;
        self.set_state(State::LogFailed(error.to_string()));
        ledger.durable.set(durable);
        ledger.lost_from.set(Some(lost_from));
        self.doom_all();
        loop {
            let last = ledger.pending.borrow_mut().pop_back();
            let Some(Pending { position, work }) = last else { break };
            match work {
                work if position <= durable => self.finish_work(work),
                Work::One(statement) => self.undo(statement),
                Work::Many(statements, aside) => {
                    for statement in statements.into_iter().rev() {
                        match &aside {
                            Some(aside) => self.undo_beside(statement, aside),
                            None => self.undo(statement),
                        }
                    }
                }
            }
        }
        for space in self.catalog.spaces() {
            space.last_write.set(space.last_write.get().min(durable));
        }
        ledger.schema_written.set(ledger.schema_written.get().min(durable));
        ledger.wake_waiters();
    }

    /// Waits until a position is durable. Yields if called in a fiber; blocks the thread otherwise (only at start and stop).
    ///
    /// Errors: `WalIo` if the log lost the position.
    pub fn wait_durable(&self, position: Position) -> Result<()> {
        loop {
            if position <= self.durable() {
                return Ok(());
            }
            if self.config.borrow().wal_mode == wal::WalMode::None {
                self.poll_log();
                continue;
            }
            if let State::LogFailed(reason) = self.state() {
                return Err(log_error(&reason));
            }
            match fiber::current() {
                Some(id) => {
                    self.ledger.waiters.borrow_mut().push((position, id));
                    // A cancelled fiber still waits: its transaction is in the log already.
                    fiber::park();
                }
                None => {
                    self.ledger.with_journal(|journal| journal.wait(position))?;
                    self.poll_log();
                }
            }
        }
    }
}

/// `WalIo` with the reason: what a write is answered with that the log lost.
pub fn log_error(reason: &str) -> Error {
    let mut error = Error::new(ErrorCode::WalIo, &[]).with("reason", reason);
    error.body_mut().message = format!("Failed to write to disk: {reason}");
    error.body_mut().kind = ErrorKind::Client;
    error
}
