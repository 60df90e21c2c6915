//! The database of one process: catalog, log, rows, and what is between applied and durable.
//!
//! Invariant: owned by the transaction thread. Everything takes `&self`; interior borrows never last across a call of a trigger,
//! a procedure or a wait.

use crate::alter::Ready;
use crate::bootstrap;
use crate::catalog::{Catalog, Space};
use crate::checkpoint::CheckpointState;
use crate::config::Config;
use crate::disk::DiskState;
use crate::disposal::Disposal;
use crate::error::{Error, ErrorCode, Result};
use crate::events::Events;
use crate::expiry::Expiry;
use crate::forks::Forks;
use crate::hooks::{Expressions, Leaving, LeavingWatcher, Procedures, RowWatcher, Scripts};
use crate::isolation::Isolation;
use crate::ledger::{Ledger, log_error};
use crate::locks::Locks;
use crate::private::IN_PLACE_MAX;
use crate::session::{Context, Sessions};
use crate::statistics::Statistics;
use crate::txn::Statement;
use runtime::{fiber, give_back, spawn_thread, touch};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use tuple::{Arena, SpaceId, Tuple};
use wal::Position;

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

/// Options that are asked for at every row or request.
#[derive(Default)]
pub struct Limits {
    /// `memtx_max_tuple_size`.
    pub(crate) tuple_bytes: Cell<usize>,
    /// `vinyl_max_tuple_size`.
    pub(crate) disk_tuple_bytes: Cell<usize>,
    /// What a door wants both to be where nobody has said otherwise.
    wanted_tuple_bytes: Cell<usize>,
    /// A request that takes longer is logged.
    pub too_long_ns: Cell<u64>,
    /// A transaction that waits for longer is ended; 0 for no bound.
    pub(crate) txn_timeout_ns: Cell<u64>,
    /// Who waits longer for a locked row is refused; 0 for no bound.
    pub(crate) lock_timeout_ns: Cell<u64>,
    /// A transaction with more statements than this keeps them to itself once it has waited.
    pub in_place_max: Cell<usize>,
}

impl Limits {
    fn follow(&self, config: &Config) {
        let (default, wanted) = (Config::default(), self.wanted_tuple_bytes.get());
        let either =
            |value: u64, default: u64| if value == default { (value as usize).max(wanted) } else { value as usize };
        self.tuple_bytes.set(either(config.memtx_max_tuple_size, default.memtx_max_tuple_size));
        self.disk_tuple_bytes.set(either(config.vinyl_max_tuple_size, default.vinyl_max_tuple_size));
        self.too_long_ns.set(config.too_long_threshold_ns);
        self.txn_timeout_ns.set(config.txn_timeout_ns);
        self.lock_timeout_ns.set(config.lock_timeout_ns);
    }
}

/// Who this instance is.
#[derive(Default)]
pub(crate) struct Identity {
    pub(crate) instance_uuid: RefCell<String>,
    pub(crate) replicaset_uuid: RefCell<String>,
}

/// How this life of the process began.
#[derive(Default)]
pub(crate) struct Start {
    at_ns: u64,
    /// What recovery read and cut.
    pub(crate) report: RefCell<Option<wal::RecoveryReport>>,
    /// Held for life: the lock on the data directory.
    pub(crate) directory_lock: RefCell<Option<Box<dyn std::any::Any>>>,
}

/// Bytes that rows outside of the memory engine may take, if `memtx_memory` is not more.
const LOOSE_ROWS_MAX: usize = 1 << 30;

/// See the head of this file.
pub struct Database {
    /// What exists.
    pub catalog: Catalog,
    /// The last number that an object of a session has got.
    pub(crate) last_session_id: Cell<u32>,
    /// What the crate above that speaks SQL keeps together with the database.
    pub kept_by_sql: std::cell::OnceCell<Rc<dyn std::any::Any>>,
    /// Names of users whom clients of a listener act as without saying who they are.
    pub(crate) door_users: RefCell<std::collections::BTreeSet<&'static str>>,
    /// Counters.
    pub statistics: Statistics,
    /// The options in force.
    pub config: RefCell<Config>,
    pub(crate) arena: Arena,
    /// Rows that no index of the memory engine has: those in the hands of Lua, from disk, or of views.
    pub(crate) loose_rows: Arena,
    /// Options that are asked for at every row or request.
    pub limits: Limits,
    pub(crate) environment: Environment,
    state: RefCell<State>,
    pub(crate) ledger: Ledger,
    pub(crate) disposal: Disposal,
    pub(crate) forks: Forks,
    pub(crate) ready: Ready,
    pub(crate) scratch: RefCell<Vec<u8>>,
    pub(crate) isolation: Isolation,
    pub(crate) locks: Rc<Locks>,
    /// Transactions that have changed the schema and wait.
    pub(crate) schema_waits: Cell<usize>,
    pub(crate) sessions: Sessions,
    pub(crate) events: Events,
    pub(crate) expiry: Expiry,
    pub(crate) identity: Identity,
    hooks: RefCell<Option<Rc<dyn Procedures>>>,
    scripts: RefCell<Option<Rc<dyn Scripts>>>,
    expressions: RefCell<Option<Rc<dyn Expressions>>>,
    /// Who is told of rows that are written.
    row_watcher: RefCell<Option<Rc<dyn RowWatcher>>>,
    pub(crate) has_row_watcher: Cell<bool>,
    /// By the names of those who have set them.
    leaving_watchers: RefCell<Vec<(String, Rc<dyn LeavingWatcher>)>>,
    /// The row that is being removed has to make room.
    pub(crate) is_evicting: Cell<bool>,
    pub(crate) checkpoint: RefCell<CheckpointState>,
    pub(crate) start: Start,
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
    /// A database with built-in system spaces and no rows; `open` reads the data directory. Errors: none but those of a
    /// broken build: the definitions of the system spaces are part of it.
    pub fn new(config: Config, environment: Environment) -> Result<Rc<Self>> {
        let arena = Arena::new(config.memtx_memory as usize);
        let loose_rows = Arena::new(LOOSE_ROWS_MAX.max(config.memtx_memory as usize));
        let limits = Limits::default();
        limits.follow(&config);
        limits.in_place_max.set(IN_PLACE_MAX);
        let start = Start { at_ns: environment.clock.monotonic_ns(), ..Start::default() };
        let database = Rc::new(Database {
            catalog: Catalog::new(),
            last_session_id: Cell::new(0),
            kept_by_sql: std::cell::OnceCell::new(),
            door_users: RefCell::default(),
            statistics: Statistics::default(),
            config: RefCell::new(config),
            arena,
            loose_rows,
            limits,
            environment,
            state: RefCell::new(State::Loading),
            ledger: Ledger::default(),
            disposal: Disposal::default(),
            forks: Forks::default(),
            ready: Ready::default(),
            scratch: RefCell::default(),
            isolation: Isolation::default(),
            locks: Rc::default(),
            schema_waits: Cell::default(),
            sessions: Sessions::default(),
            events: Events::default(),
            expiry: Expiry::default(),
            identity: Identity::default(),
            hooks: RefCell::default(),
            scripts: RefCell::default(),
            expressions: RefCell::default(),
            row_watcher: RefCell::default(),
            has_row_watcher: Cell::default(),
            leaving_watchers: RefCell::default(),
            is_evicting: Cell::default(),
            checkpoint: RefCell::default(),
            start,
            disk: DiskState::default(),
        });
        database.expiry.belongs_to(&database);
        bootstrap::create_system_spaces(&database)?;
        let waiter = Rc::downgrade(&database);
        fiber::on_yield(Rc::new(move || {
            if let (Some(database), Some(context)) = (waiter.upgrade(), fiber::local::<Context>()) {
                database.begin_wait(&context);
            }
        }));
        let waiter = Rc::downgrade(&database);
        fiber::after_yield(Rc::new(move || {
            if let (Some(database), Some(context)) = (waiter.upgrade(), fiber::local::<Context>()) {
                database.resume_schema(&context);
            }
        }));
        Ok(database)
    }

    /// Fills the hook through which stored procedures are reached.
    pub fn set_procedures(&self, procedures: Rc<dyn Procedures>) {
        *self.hooks.borrow_mut() = Some(procedures);
    }

    /// Takes rows of up to so many bytes from now on, where `memtx_max_tuple_size` and `vinyl_max_tuple_size` are what they are unless somebody sets
    /// them: a door that promises its clients larger values.
    pub fn take_rows_of(&self, bytes: usize) {
        let wanted = self.limits.wanted_tuple_bytes.get().max(bytes);
        self.limits.wanted_tuple_bytes.set(wanted);
        self.limits.follow(&self.config.borrow());
    }

    /// Has somebody told of all rows that are written from now on, or nobody.
    pub fn watch_rows(&self, watcher: Option<Rc<dyn RowWatcher>>) {
        self.has_row_watcher.set(watcher.is_some());
        *self.row_watcher.borrow_mut() = watcher;
    }

    /// Has somebody told of rows that leave by themselves. `owner`: has one watcher at most.
    pub fn watch_leaving(&self, owner: &str, watcher: Rc<dyn LeavingWatcher>) {
        let mut watchers = self.leaving_watchers.borrow_mut();
        watchers.retain(|(name, _)| name != owner);
        watchers.push((owner.to_string(), watcher));
    }

    pub(crate) fn tell_leaving(&self, context: &Context, space: &Space, row: &Tuple, why: Leaving) {
        let watcher = |at: usize| self.leaving_watchers.borrow().get(at).map(|(_, watcher)| Rc::clone(watcher));
        for watcher in (0..).map_while(watcher) {
            watcher.left(&context.session, space, row.data(), why);
        }
    }

    #[cold]
    pub(crate) fn tell_row_watcher(&self, context: &Context, statement: &Statement, seen: Position) {
        let Some(watcher) = self.row_watcher.borrow().clone() else { return };
        let (old, new) = (&statement.change.old, &statement.change.new);
        let rows = (old.as_ref().map(Tuple::data), new.as_ref().map(Tuple::data));
        watcher.written(&context.session, &statement.space, rows, seen, self.is_evicting.get());
    }

    /// Fills the hook through which scripts of other protocols are run.
    pub fn set_scripts(&self, scripts: Rc<dyn Scripts>) {
        *self.scripts.borrow_mut() = Some(scripts);
    }

    /// Who runs scripts of other protocols, if there is Lua.
    pub fn scripts(&self) -> Option<Rc<dyn Scripts>> {
        self.scripts.borrow().clone()
    }

    /// Fills the hook through which expressions of SQL are understood.
    pub fn set_expressions(&self, expressions: Rc<dyn Expressions>) {
        *self.expressions.borrow_mut() = Some(expressions);
    }

    pub(crate) fn expressions(&self) -> Option<Rc<dyn Expressions>> {
        self.expressions.borrow().clone()
    }

    pub(crate) fn procedures(&self) -> Option<Rc<dyn Procedures>> {
        self.hooks.borrow().clone()
    }

    /// Changes an option while running: `apply` edits the options, limits follow.
    pub fn reconfigure(&self, apply: impl FnOnce(&mut Config)) {
        let mut config = self.config.borrow_mut();
        apply(&mut config);
        self.limits.follow(&config);
        self.arena.set_limit(config.memtx_memory as usize);
        if let Some(engine) = self.disk_engine() {
            engine.reconfigure(config.vinyl_memory as usize, config.vinyl_cache as usize);
        }
    }

    /// True while files are read.
    #[inline]
    pub(crate) fn is_loading(&self) -> bool {
        *self.state.borrow() == State::Loading
    }

    /// Whether requests are served.
    pub fn state(&self) -> State {
        self.state.borrow().clone()
    }

    /// A number for each state, cheap to compare.
    pub(crate) fn state_number(&self) -> u8 {
        match *self.state.borrow() {
            State::Loading => 0,
            State::Running => 1,
            State::LogFailed(_) => 2,
            State::Stopped => 3,
        }
    }

    pub(crate) fn set_state(&self, state: State) {
        *self.state.borrow_mut() = state;
    }

    /// Nanoseconds since the process opened the database.
    pub fn uptime_ns(&self) -> u64 {
        self.environment.clock.monotonic_ns() - self.start.at_ns
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
        self.identity.instance_uuid.borrow().clone()
    }

    /// Identity of the replica set.
    pub fn replicaset_uuid(&self) -> String {
        self.identity.replicaset_uuid.borrow().clone()
    }

    /// What recovery read and cut, once it is over.
    pub fn recovery_report(&self) -> Option<wal::RecoveryReport> {
        self.start.report.borrow().clone()
    }

    /// Refuses writes that cannot be accepted now. Errors: `Loading` while loading, `Readonly` if read-only, `WalIo` after the log failed.
    pub(crate) fn check_writable(&self) -> Result<()> {
        match &*self.state.borrow() {
            State::Running if !self.config.borrow().read_only => Ok(()),
            State::Running => Err(Error::new(ErrorCode::Readonly, &[])),
            State::Loading => Err(Error::new(ErrorCode::Loading, &[])),
            State::LogFailed(reason) => Err(log_error(reason)),
            State::Stopped => Err(Error::system("the server is shutting down")),
        }
    }

    /// Takes notice of what became durable: drops undo, wakes waiters, frees a slice of garbage. Called in every turn of the
    /// event loop. Returns true if it wants to be called again soon.
    pub fn turn(&self) -> bool {
        self.poll_log();
        let disk_has_more = self.turn_disk();
        self.turn_views();
        self.poll_checkpoint();
        self.refresh_events();
        self.touch_memory();
        self.start_expiry();
        // A megabyte in a turn.
        let has_idle_memory = self.arena.return_idle(give_back);
        self.collect_slice() | disk_has_more | has_idle_memory
    }

    /// True if no turn has anything to do before somebody asks for something, or time passes.
    pub fn is_at_rest(&self) -> bool {
        !self.is_making_checkpoint() && self.disk_engine().is_none_or(|engine| engine.is_at_rest())
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

    /// Rows that long work on this thread handles before others have their turn.
    pub(crate) fn slice_rows(&self) -> usize {
        self.config.borrow().slice_rows.max(1)
    }

    /// How long a statement of SQL goes on before others have their turn, in nanoseconds; 0: they have it at each of its steps.
    pub fn statement_slice_ns(&self) -> u64 {
        self.config.borrow().statement_slice_ns
    }

    /// How long they have it then, at least.
    pub fn slice_pause_ns(&self) -> u64 {
        self.config.borrow().slice_pause_ns
    }

    /// A space by number. Errors: `NoSuchSpace`.
    pub fn space(&self, id: SpaceId) -> Result<Rc<Space>> {
        self.catalog.space(id).ok_or_else(|| crate::statement::no_such_space(id))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        self.expiry.forget_row();
        self.stop_checkpoint();
        self.join_publishing();
        // Rows that a truncation or a drop took out may still be read by a view: they are brought where the view is closed.
        self.finish_all();
        self.close_orphaned_views();
        self.disposal.forget_rows();
        // Other threads may still read levels.
        if let Some(engine) = self.disk_engine() {
            engine.close();
        }
    }
}
