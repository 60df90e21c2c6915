//! The database of one process: catalog, log, rows, and what is between applied and durable.
//!
//! Invariant: owned by the transaction thread. Everything takes `&self`; interior borrows never last across a call of a trigger,
//! a procedure or a wait.

use crate::bootstrap;
use crate::catalog::{Catalog, Space};
use crate::config::Config;
use crate::disk::DiskState;
use crate::error::{Error, ErrorCode, ErrorKind, Result};
use crate::hooks::Procedures;
use crate::reads::Readers;
use crate::session::{ADMIN, Context, Session, SessionKind};
use crate::statistics::Statistics;
use crate::time_share::TimeShare;
use crate::txn::Statement;
use hashbrown::HashMap;
use runtime::fiber::{self, FiberId};
use runtime::{give_back, spawn_thread, touch};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use storage::MemorySpace;
use tuple::{Arena, Tuple};
use wal::{Journal, Position, Vclock, WalError};

/// Rows that are freed between two looks at the clock.
const GARBAGE_STEP_ROWS: usize = 128;

/// Whether requests are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Reading snapshot and logs: no request is answered.
    Loading,
    /// Everything works.
    Running,
    /// The log failed: reads go on, writes are refused until a restart.
    LogFailed(String),
    /// Shutting down.
    Stopped,
}

/// A statement that is in force and in the log, but not durable yet.
/// So many statements before an old row is freed its memory is asked for.
const FORESEEN_DROPS: usize = 8;

struct Pending {
    position: Position,
    statement: Statement,
}

pub(crate) enum Garbage {
    Space(MemorySpace),
    Index(Box<storage::DetachedIndex>),
    /// Index nodes of a space in use that only closed views held.
    NodesOf(Rc<Space>),
}

impl Garbage {
    fn owns_view(&self, view: &storage::MemoryView) -> bool {
        match self {
            Garbage::Space(space) => space.owns_view(view),
            Garbage::Index(index) => index.owns_view(view),
            Garbage::NodesOf(_) => false,
        }
    }

    /// True while a view reads it.
    fn is_held(&self) -> bool {
        match self {
            Garbage::Space(space) => space.has_views(),
            Garbage::Index(index) => index.has_views(),
            Garbage::NodesOf(_) => false,
        }
    }

    /// Frees up to about `max` rows or a stretch of nodes. Returns true while something is left.
    fn free_some(&mut self, max: usize) -> bool {
        match self {
            Garbage::Space(space) => space.dismantle_some(max),
            Garbage::Index(index) => index.release_some(),
            Garbage::NodesOf(space) => space.rows.memory().is_some_and(|rows| rows.borrow_mut().collect(max)),
        }
    }
}

/// Bytes that rows outside of the memory engine may take, if `memtx_memory` is not more.
const LOOSE_ROWS_MAX: usize = 1 << 30;

/// See the head of this file.
pub struct Database {
    /// What exists.
    pub catalog: Catalog,
    /// Counters.
    pub statistics: Statistics,
    /// The options in force.
    pub config: RefCell<Config>,
    pub(crate) arena: Arena,
    /// Rows that no index of the memory engine has: those in the hands of Lua, from disk, or of views.
    pub(crate) loose_rows: Arena,
    /// `memtx_max_tuple_size`, where every row is checked against it.
    pub(crate) max_tuple_size: Cell<usize>,
    /// `vinyl_max_tuple_size`.
    pub(crate) max_disk_tuple_size: Cell<usize>,
    /// A request that takes longer is logged.
    pub too_long_ns: Cell<u64>,
    pub(crate) environment: Environment,
    journal: RefCell<Option<Journal>>,
    state: RefCell<State>,
    pending: RefCell<VecDeque<Pending>>,
    /// Fibers that wait for a position, in no order.
    waiters: RefCell<Vec<(Position, FiberId)>>,
    /// Newest position known to be durable, and the first lost one.
    durable: Cell<Position>,
    lost_from: Cell<Option<Position>>,
    /// Of the last change of schema, users or rights.
    schema_written: Cell<Position>,
    garbage: RefCell<VecDeque<Garbage>>,
    /// That the first of it has taken.
    garbage_steps: Cell<u64>,
    collecting: TimeShare,
    /// The row of a system space whose effect was made ready while others had their turns, with the number of what was built for it. It is put in
    /// force now.
    pub(crate) ready_change: RefCell<Option<(u64, Tuple)>>,
    /// Views whose rows were taken out of their space while they were read.
    orphaned_views: RefCell<Vec<storage::MemoryView>>,
    pub(crate) scratch: RefCell<Vec<u8>>,
    /// Transactions remember what they read: there are spaces whose reads may wait.
    pub(crate) remembers_reads: Cell<bool>,
    pub(crate) readers: Rc<Readers>,
    txn_ids: Cell<u64>,
    session_ids: Cell<u64>,
    sessions: RefCell<HashMap<u64, Weak<Session>>>,
    pub(crate) instance_uuid: RefCell<String>,
    pub(crate) replicaset_uuid: RefCell<String>,
    hooks: RefCell<Option<Rc<dyn Procedures>>>,
    pub(crate) checkpoint: RefCell<crate::checkpoint::CheckpointState>,
    /// Nothing of what old files hold is removed: a backup copies it.
    pub(crate) keeps_files: Arc<AtomicBool>,
    /// Held for life: the lock on the data directory.
    pub(crate) directory_lock: RefCell<Option<Box<dyn std::any::Any>>>,
    started_at_ns: u64,
    pub(crate) recovery_report: RefCell<Option<wal::RecoveryReport>>,
    /// The disk engine and what is between it and the schema.
    pub(crate) disk: DiskState,
}

/// What the database needs of the machine, real or simulated.
#[derive(Clone)]
pub struct Environment {
    /// Files.
    pub files: Arc<dyn runtime::FileSystem>,
    /// Time.
    pub clock: Arc<dyn runtime::Clock>,
    /// Random numbers.
    pub randomness: Arc<dyn runtime::Randomness>,
    /// Makes the event loop run a turn; callable from any thread.
    pub wake: Arc<dyn Fn() + Send + Sync>,
}

impl Database {
    /// A database with built-in system spaces and no rows; `open` reads the data directory.
    pub fn new(config: Config, environment: Environment) -> Result<Rc<Self>> {
        let arena = Arena::new(config.memtx_memory as usize);
        let loose_rows = Arena::new(LOOSE_ROWS_MAX.max(config.memtx_memory as usize));
        let max_tuple_size = Cell::new(config.memtx_max_tuple_size as usize);
        let max_disk_tuple_size = Cell::new(config.vinyl_max_tuple_size as usize);
        let too_long_ns = Cell::new(config.too_long_threshold_ns);
        let started_at_ns = environment.clock.monotonic_ns();
        let database = Rc::new(Database {
            catalog: Catalog::new(),
            statistics: Statistics::default(),
            config: RefCell::new(config),
            arena,
            loose_rows,
            max_tuple_size,
            max_disk_tuple_size,
            too_long_ns,
            environment,
            journal: RefCell::new(None),
            state: RefCell::new(State::Loading),
            pending: RefCell::default(),
            waiters: RefCell::default(),
            durable: Cell::default(),
            lost_from: Cell::new(None),
            schema_written: Cell::default(),
            garbage: RefCell::default(),
            garbage_steps: Cell::new(0),
            collecting: TimeShare::default(),
            ready_change: RefCell::default(),
            orphaned_views: RefCell::default(),
            scratch: RefCell::default(),
            remembers_reads: Cell::new(false),
            readers: Rc::default(),
            txn_ids: Cell::new(0),
            session_ids: Cell::new(0),
            sessions: RefCell::default(),
            instance_uuid: RefCell::default(),
            replicaset_uuid: RefCell::default(),
            hooks: RefCell::default(),
            checkpoint: RefCell::default(),
            keeps_files: Arc::default(),
            directory_lock: RefCell::default(),
            started_at_ns,
            recovery_report: RefCell::default(),
            disk: DiskState::default(),
        });
        bootstrap::create_system_spaces(&database)?;
        Ok(database)
    }

    /// Fills the hook through which stored procedures are reached.
    pub fn set_procedures(&self, procedures: Rc<dyn Procedures>) {
        *self.hooks.borrow_mut() = Some(procedures);
    }

    pub(crate) fn procedures(&self) -> Option<Rc<dyn Procedures>> {
        self.hooks.borrow().clone()
    }

    /// A new session.
    pub fn open_session(&self, kind: SessionKind, peer: Option<String>) -> Rc<Session> {
        let id = self.session_ids.get() + 1;
        self.session_ids.set(id);
        let user = if kind == SessionKind::Binary { crate::session::GUEST } else { ADMIN };
        let session = Rc::new(Session {
            id,
            kind,
            peer,
            user: Cell::new(user),
            birth: Cell::default(),
            sync: Cell::new(0),
            is_alive: Cell::new(true),
            writes_disk: Cell::new(false),
            settings: RefCell::new(crate::settings::defaults()),
        });
        self.sessions.borrow_mut().insert(id, Rc::downgrade(&session));
        session
    }

    /// A living session.
    pub fn session(&self, id: u64) -> Option<Rc<Session>> {
        let found = self.sessions.borrow().get(&id)?.upgrade().filter(|session| session.is_alive.get());
        if found.is_none() {
            self.sessions.borrow_mut().remove(&id);
        }
        found
    }

    /// Forgets a session whose connection is gone.
    pub fn close_session(&self, session: &Session) {
        session.is_alive.set(false);
        self.sessions.borrow_mut().remove(&session.id);
    }

    pub(crate) fn next_txn_id(&self) -> u64 {
        self.txn_ids.set(self.txn_ids.get() + 1);
        self.txn_ids.get()
    }

    /// Changes an option while running: `apply` edits the options, limits follow.
    pub fn reconfigure(&self, apply: impl FnOnce(&mut Config)) {
        let mut config = self.config.borrow_mut();
        apply(&mut config);
        self.too_long_ns.set(config.too_long_threshold_ns);
        self.max_tuple_size.set(config.memtx_max_tuple_size as usize);
        self.max_disk_tuple_size.set(config.vinyl_max_tuple_size as usize);
        self.arena.set_limit(config.memtx_memory as usize);
        if let Some(engine) = self.disk_engine() {
            engine.reconfigure(config.vinyl_memory as usize, config.vinyl_cache as usize);
        }
    }

    /// Whether requests are served.
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    pub(crate) fn set_state(&self, state: State) {
        *self.state.borrow_mut() = state;
    }

    /// Nanoseconds since the process opened the database.
    pub fn uptime_ns(&self) -> u64 {
        self.environment.clock.monotonic_ns() - self.started_at_ns
    }

    /// The clock and files the database works with.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The arena of rows that are not in the memory engine: what they take does not count against `memtx_memory`.
    pub fn loose_rows(&self) -> &Arena {
        &self.loose_rows
    }

    /// The arena of the rows of the memory engine.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Identity of this instance.
    pub fn instance_uuid(&self) -> String {
        self.instance_uuid.borrow().clone()
    }

    /// Identity of the replica set.
    pub fn replicaset_uuid(&self) -> String {
        self.replicaset_uuid.borrow().clone()
    }

    /// What recovery read and cut, once it is over.
    pub fn recovery_report(&self) -> Option<wal::RecoveryReport> {
        self.recovery_report.borrow().clone()
    }

    /// Refuses writes that cannot be accepted now. Errors: 116 while loading, 7 if read-only, 40 after the log failed.
    pub(crate) fn check_writable(&self) -> Result<()> {
        match &*self.state.borrow() {
            State::Running if !self.config.borrow().read_only => Ok(()),
            State::Running => Err(Error::new(ErrorCode::Readonly, &[])),
            State::Loading => Err(Error::new(ErrorCode::Loading, &[])),
            State::LogFailed(reason) => Err(log_error(reason)),
            State::Stopped => Err(Error::system("the server is shutting down")),
        }
    }

    pub(crate) fn set_journal(&self, journal: Option<Journal>) {
        *self.journal.borrow_mut() = journal;
    }

    pub(crate) fn take_journal(&self) -> Option<Journal> {
        self.journal.borrow_mut().take()
    }

    /// Works with the log. Errors: as the log's, in Tarantool's codes; 116 if there is none yet.
    pub(crate) fn with_journal<T>(
        &self,
        work: impl FnOnce(&mut Journal) -> std::result::Result<T, WalError>,
    ) -> Result<T> {
        match self.journal.borrow_mut().as_mut() {
            Some(journal) => work(journal).map_err(|error| log_error(&error.to_string())),
            None => Err(Error::new(ErrorCode::Loading, &[])),
        }
    }

    /// The vclock of everything applied.
    pub fn vclock(&self) -> Vclock {
        self.journal.borrow().as_ref().map_or_else(Vclock::default, Journal::vclock)
    }

    /// Position of the newest transaction in the log.
    pub fn appended(&self) -> Position {
        self.journal.borrow().as_ref().map_or_else(Position::default, Journal::appended)
    }

    /// Everything up to here survives a crash.
    pub fn durable(&self) -> Position {
        self.durable.get()
    }

    /// The first position that the log lost, if it failed.
    pub fn lost_from(&self) -> Option<Position> {
        self.lost_from.get()
    }

    /// The position that an answer depends on if it tells of a space's rows: of the last write to them, or of the last change of schema and
    /// rights.
    pub fn written(&self, space: &Space) -> Position {
        space.last_write.get().max(self.schema_written.get())
    }

    /// The position of the last change of schema, users or rights. Whatever a request is answered depends on it.
    pub fn schema_written(&self) -> Position {
        self.schema_written.get()
    }

    pub(crate) fn note_write(&self, space: &Space, position: Position) {
        space.last_write.set(position);
        // Values of sequences are no schema.
        if space.is_system() && space.id != crate::alter::SEQUENCE_DATA_ID {
            self.schema_written.set(position);
        }
    }

    pub(crate) fn push_pending(&self, position: Position, statement: Statement) {
        if position <= self.durable.get() {
            self.finish(statement);
        } else {
            self.pending.borrow_mut().push_back(Pending { position, statement });
        }
    }

    /// Takes a statement back.
    pub(crate) fn undo(&self, statement: Statement) {
        // The schema first: it may have moved the rows' indexes, which the change then finds as they were.
        if let Some(effect) = statement.effect {
            (effect.undo)(self);
        }
        statement.space.rows.undo(&statement.change);
    }

    /// A statement cannot be taken back any more.
    pub(crate) fn finish(&self, statement: Statement) {
        if let Some(finish) = statement.effect.and_then(|effect| effect.finish) {
            finish(self);
        }
    }

    pub(crate) fn discard(&self, garbage: Garbage) {
        self.garbage.borrow_mut().push_back(garbage);
    }

    pub(crate) fn discard_all(&self, garbage: impl IntoIterator<Item = Garbage>) {
        self.garbage.borrow_mut().extend(garbage);
    }

    pub(crate) fn discard_indexes(&self, indexes: impl IntoIterator<Item = storage::DetachedIndex>) {
        self.garbage.borrow_mut().extend(indexes.into_iter().map(|index| Garbage::Index(Box::new(index))));
    }

    pub(crate) fn set_durable(&self, durable: Position) {
        self.durable.set(durable);
    }

    /// A view whose space holds other rows by now: it is closed where its rows turn up.
    pub(crate) fn close_orphaned_view(&self, view: storage::MemoryView) {
        self.orphaned_views.borrow_mut().push(view);
    }

    fn close_orphaned_views(&self) {
        let views = self.orphaned_views.take();
        for view in views {
            let mut garbage = self.garbage.borrow_mut();
            match garbage.iter_mut().find(|garbage| garbage.owns_view(&view)) {
                Some(Garbage::Space(space)) => {
                    space.close_view(view);
                    continue;
                }
                Some(Garbage::Index(index)) => {
                    index.close_view(view);
                    continue;
                }
                _ => {}
            }
            let spaces = self.catalog.spaces();
            let mut all = spaces.iter().filter_map(|space| space.rows.memory());
            match all.find(|rows| rows.borrow().owns_view(&view)) {
                Some(rows) => rows.borrow_mut().close_view(view),
                None => self.orphaned_views.borrow_mut().push(view),
            }
        }
    }

    /// The fd that becomes readable when the log has news; the event loop watches it and calls `turn`.
    pub fn log_notifier(&self) -> Option<Arc<runtime::Notifier>> {
        self.journal.borrow().as_ref().map(|journal| Arc::clone(journal.notifier()))
    }

    /// Hands the open group to the log. Called at the end of every turn of the event loop.
    pub fn submit(&self) {
        if let Some(journal) = self.journal.borrow_mut().as_mut() {
            journal.submit();
        }
    }

    /// True if commits are ahead of the disk by more than the bound: connections should not be read on.
    pub fn is_log_congested(&self) -> bool {
        self.journal.borrow().as_ref().is_some_and(Journal::is_congested)
    }

    /// True while commits wait for the log.
    pub fn is_log_behind(&self) -> bool {
        self.journal.borrow().as_ref().is_some_and(|journal| journal.appended() > journal.durable())
    }

    /// Takes notice of what became durable: drops undo, wakes waiters, frees a slice of garbage. Called in every turn of the
    /// event loop. Returns true if it wants to be called again soon.
    pub fn turn(&self) -> bool {
        self.poll_log();
        let disk_has_more = self.turn_disk();
        self.poll_checkpoint();
        self.touch_memory();
        // A megabyte in a turn.
        let has_idle_memory = self.arena.return_idle(give_back);
        self.collect_slice() | disk_has_more | has_idle_memory
    }

    /// True if no turn has anything to do before somebody asks for something, or time passes.
    pub fn is_at_rest(&self) -> bool {
        !self.is_making_checkpoint() && self.disk_engine().is_none_or(|engine| engine.is_at_rest())
    }

    /// Frees for a part of the time. Returns true while there is more to free.
    fn collect_slice(&self) -> bool {
        if !self.orphaned_views.borrow().is_empty() {
            self.close_orphaned_views();
        }
        let step_rows = GARBAGE_STEP_ROWS.min(self.slice_rows());
        let step = || Ok::<bool, std::convert::Infallible>(self.collect_garbage(step_rows));
        let Ok(has_more) = self.collecting.run(&*self.environment.clock, self.slice_rows() / step_rows, step);
        has_more
    }

    /// Has memory made resident that rows will come to: while a checkpoint keeps those that are replaced, it is a hundred megabytes a second.
    fn touch_memory(&self) {
        if self.config.borrow().wal_writes_in_flight > 0
            && let Some((address, bytes)) = self.arena.take_untouched()
        {
            // Without the thread pages are made resident when they are used.
            let _ = spawn_thread("memory", move || touch(address, bytes));
        }
    }

    fn poll_log(&self) {
        let state = match self.journal.borrow_mut().as_mut() {
            Some(journal) => journal.poll(),
            None => return,
        };
        if let Some((lost_from, error)) = state.failed
            && self.lost_from.get().is_none()
        {
            self.fail_log(state.durable, lost_from, &error);
            return;
        }
        if state.durable == self.durable.get() {
            return;
        }
        self.durable.set(state.durable);
        loop {
            let mut pending = self.pending.borrow_mut();
            if let Some(old) = pending.get(FORESEEN_DROPS).and_then(|later| later.statement.change.old.as_ref()) {
                old.foresee_drop();
            }
            let statement = match pending.front() {
                Some(first) if first.position <= state.durable => pending.pop_front().map(|first| first.statement),
                _ => None,
            };
            drop(pending);
            match statement {
                Some(statement) => self.finish(statement),
                None => break,
            }
        }
        self.wake_waiters();
    }

    /// The log lost everything from a position on: those transactions are taken back and writing ends (promise 1).
    fn fail_log(&self, durable: Position, lost_from: Position, error: &WalError) {
        tracing::error!("the log failed: {error}; the server is read-only until it is restarted");
        self.set_state(State::LogFailed(error.to_string()));
        self.durable.set(durable);
        self.lost_from.set(Some(lost_from));
        self.doom_all();
        loop {
            let last = self.pending.borrow_mut().pop_back();
            match last {
                Some(pending) if pending.position > durable => self.undo(pending.statement),
                Some(pending) => self.finish(pending.statement),
                None => break,
            }
        }
        for space in self.catalog.spaces() {
            space.last_write.set(space.last_write.get().min(durable));
        }
        self.schema_written.set(self.schema_written.get().min(durable));
        self.wake_waiters();
    }

    fn wake_waiters(&self) {
        let durable = self.durable.get();
        let failed = self.lost_from.get().is_some();
        self.waiters.borrow_mut().retain(|&(position, fiber)| {
            let done = failed || position <= durable;
            if done {
                fiber::wake(fiber);
            }
            !done
        });
    }

    /// Waits until a position is durable. Yields if called in a fiber; blocks the thread otherwise (only at start and stop).
    ///
    /// Errors: 40 if the log lost the position.
    pub fn wait_durable(&self, position: Position) -> Result<()> {
        loop {
            if position <= self.durable.get() {
                return Ok(());
            }
            if self.config.borrow().wal_mode == wal::WalMode::None {
                self.poll_log();
                continue;
            }
            if let State::LogFailed(reason) = &*self.state.borrow() {
                return Err(log_error(reason));
            }
            match fiber::current() {
                Some(id) => {
                    self.waiters.borrow_mut().push((position, id));
                    // A cancelled fiber still waits: its transaction is in the log already.
                    fiber::park();
                }
                None => {
                    self.with_journal(|journal| journal.wait(position))?;
                    self.poll_log();
                }
            }
        }
    }

    /// Frees about so many rows, or a stretch of nodes. Returns true if there may be more.
    fn collect_garbage(&self, max: usize) -> bool {
        let found = self.garbage.borrow().iter().position(|garbage| !garbage.is_held());
        let Some(mut garbage) = found.and_then(|at| self.garbage.borrow_mut().remove(at)) else {
            return self.arena.collect(max) > 0;
        };
        let steps = self.garbage_steps.get() + 1;
        if garbage.free_some(max) {
            self.garbage.borrow_mut().push_front(garbage);
            self.garbage_steps.set(steps);
        } else {
            if steps > 1 && matches!(garbage, Garbage::Space(_)) {
                tracing::info!("freed a space in {steps} steps");
            }
            self.garbage_steps.set(0);
        }
        true
    }

    /// Frees rows and nodes that are waiting for it until there is room for so many bytes. True if there is.
    pub(crate) fn make_room(&self, bytes: usize) -> bool {
        let has_room = || self.arena.used() + self.arena.charged() + bytes <= self.arena.limit();
        // Each time more is freed than most rows take.
        while !has_room() && self.collect_garbage(self.slice_rows()) {}
        has_room()
    }

    /// Rows that long work on this thread handles before others have their turn.
    pub(crate) fn slice_rows(&self) -> usize {
        self.config.borrow().slice_rows.max(1)
    }

    /// The context of the running fiber, or a fresh one for administrative work.
    pub fn admin_context(&self) -> Context {
        Context::for_background(self.open_session(SessionKind::Background, None))
    }

    /// A space by number. Errors: 36.
    pub fn space(&self, id: u32) -> Result<Rc<Space>> {
        self.catalog.space(id).ok_or_else(|| crate::statement::no_such_space(id))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.stop_checkpoint();
        self.join_publishing();
        // Rows that a truncation or a drop took out may still be read by a view: they are brought where the view is closed.
        for pending in self.pending.take() {
            self.finish(pending.statement);
        }
        self.close_orphaned_views();
        // Other threads may still read levels.
        if let Some(engine) = self.disk_engine() {
            engine.close();
        }
    }
}

/// Error 40 with the reason: what a write is answered with that the log lost.
pub fn log_error(reason: &str) -> Error {
    let mut error = Error::new(ErrorCode::WalIo, &[]).with("reason", reason);
    error.body_mut().message = format!("Failed to write to disk: {reason}");
    error.body_mut().kind = ErrorKind::Client;
    error
}
