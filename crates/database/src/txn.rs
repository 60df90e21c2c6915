//! Transactions: statements applied in place with what undoes them, and the rows that the log will hold.
//!
//! A transaction that does not wait needs no isolation: nothing else runs between its statements. One that waits is suspended meanwhile, see
//! `isolation.rs`, and `schema_changes.rs` for one that has changed the schema.
//!
//! The life of a statement: applied -> recorded here -> appended to the log with the whole transaction -> pending until its
//! position is durable -> its undo dropped. If the log fails, pending statements are undone in reverse order.

mod ends;
mod savepoints;

pub use savepoints::Savepoint;

use crate::catalog::Space;
use crate::database::Database;
use crate::disposal::Garbage;
use crate::error::{Error, ErrorCode, Result};
use crate::forks::Aside;
use crate::isolation::Seen;
use crate::locks::{Held, RowKey};
use crate::notes::Notes;
use crate::private::Private;
use crate::reads::Reads;
use crate::schema_changes::SchemaChanges;
use crate::session::Context;
use crate::views::View;
use std::rc::Rc;
use storage::Change;
use tuple::{IndexId, SpaceId, Tuple};

/// How deep triggers may cause statements.
pub(crate) const TRIGGER_DEPTH_MAX: u32 = 4;

/// Work on the database that is done later, once.
type Later = Box<dyn FnOnce(&Database)>;

/// Told of a position in the log, once.
pub(crate) type Placed = Box<dyn FnOnce(&Database, i64)>;

/// What is to become of a change of the catalog that was made with its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It is taken back, for now: what it has put in is kept.
    Back,
    /// It is made again, after it was taken back. Everything must be as it was before it.
    Forth,
    /// It was taken back for good: what was kept of it is freed.
    GiveUp,
}

/// Takes a change of the catalog back and makes it again.
type Turns = Box<dyn FnMut(&Database, Turn)>;

/// What a change of the schema needs besides the change of its row.
pub(crate) struct Effect {
    /// Takes the change of the catalog back, makes it again, and so on.
    pub turn: Turns,
    /// Runs when the change is durable: frees what is not needed any more.
    pub finish: Option<Later>,
    /// Runs when the change has its place in the log, whose position it is told.
    pub placed: Option<Placed>,
    /// Number of log rows of the transaction up to this one.
    pub rows: usize,
}

impl Effect {
    /// `turn` takes the change of the catalog back and makes it again.
    pub(crate) fn new(turn: impl FnMut(&Database, Turn) + 'static) -> Self {
        Effect { turn: Box::new(turn), finish: None, placed: None, rows: 0 }
    }

    /// One that keeps nothing while it is taken back: `back` takes it back, `forth` makes it again.
    pub(crate) fn of(mut back: impl FnMut(&Database) + 'static, mut forth: impl FnMut(&Database) + 'static) -> Self {
        Effect::new(move |database, turn| match turn {
            Turn::Back => back(database),
            Turn::Forth => forth(database),
            Turn::GiveUp => {}
        })
    }

    /// `finish` runs when the change is durable.
    pub(crate) fn and_finish(self, finish: impl FnOnce(&Database) + 'static) -> Self {
        Effect { finish: Some(Box::new(finish)), ..self }
    }

    /// `placed` is told the position of the change in the log.
    pub(crate) fn and_placed(self, placed: Option<Placed>) -> Self {
        Effect { placed, ..self }
    }
}

/// A statement that was applied.
pub(crate) struct Statement {
    pub space: Rc<Space>,
    pub change: Change,
    pub effect: Option<Box<Effect>>,
}

/// One row for the log.
struct LoggedRow {
    kind: u16,
    group_id: u32,
    end: usize,
}

/// Called once when its transaction ends.
pub type TxnCallback = Box<dyn FnOnce(&Context, &[ChangedRow])>;

/// What one statement of a transaction changed, for its callbacks.
#[derive(Clone)]
pub struct ChangedRow {
    /// In which space.
    pub space_id: SpaceId,
    /// The row that was there.
    pub old: Option<Tuple>,
    /// The row that came in its place.
    pub new: Option<Tuple>,
}

/// What a transaction may see, by Tarantool's names. All are serializable; they differ in when an answer inside of the transaction leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TxnIsolation {
    /// As the configuration says.
    #[default]
    Default,
    /// What is committed, durable or not: answers leave at once, and the commit waits for all that they have shown.
    ReadCommitted,
    /// What is committed and durable: an answer waits for what it shows.
    ReadConfirmed,
    /// The same.
    BestEffort,
    /// What is committed anywhere.
    Linearizable,
}

impl TxnIsolation {
    /// The names and numbers of the protocol.
    pub const NAMES: [(&str, TxnIsolation); 5] = [
        ("default", TxnIsolation::Default),
        ("read-committed", TxnIsolation::ReadCommitted),
        ("read-confirmed", TxnIsolation::ReadConfirmed),
        ("best-effort", TxnIsolation::BestEffort),
        ("linearizable", TxnIsolation::Linearizable),
    ];

    /// By number, as IPROTO has it.
    pub fn from_code(code: u64) -> Option<Self> {
        Self::NAMES.get(usize::try_from(code).ok()?).map(|(_, level)| *level)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, level)| *level == self).map_or("default", |(name, _)| name)
    }

    /// By name, in small or capital letters, with `-` or `_`.
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase().replace('_', "-");
        Self::NAMES.iter().find(|(other, _)| *other == name).map(|(_, level)| *level)
    }
}

/// How a transaction is begun.
#[derive(Clone, Copy, Debug, Default)]
pub struct TxnOptions {
    /// Nanoseconds after which it is ended if it waits then; without, as the configuration says.
    pub timeout_ns: Option<u64>,
    /// What it may see.
    pub isolation: TxnIsolation,
    /// What it has read may change before it ends: READ COMMITTED of SQL. Its writer locks what it changes.
    pub forgets_reads: bool,
}

/// An open transaction.
#[derive(Default)]
pub struct Txn {
    statements: Vec<Statement>,
    /// How many of them are about system spaces: only they have effects.
    system_statements: usize,
    /// What it has done to the schema.
    pub(crate) schema: SchemaChanges,
    rows: Vec<LoggedRow>,
    /// Bodies of the rows, one after the other.
    bodies: Vec<u8>,
    savepoints: Vec<(String, usize, usize)>,
    /// What its end has to look at, if there was any.
    pub(crate) deferred: Option<Box<crate::deferred_keys::Deferred>>,
    /// A row was read or a read was tried: what was seen may not be true after a yield.
    has_read: bool,
    /// Rows of clients were read, not only of the schema.
    has_read_rows: bool,
    on_commit: Vec<TxnCallback>,
    on_rollback: Vec<TxnCallback>,
    aborted: Option<ErrorCode>,
    is_implicit: bool,
    id: u64,
    options: TxnOptions,
    /// When it is ended, by the monotonic clock.
    deadline_ns: Option<u64>,
    /// Its deadline is watched.
    is_watched: bool,
    /// What it depends on, if that is remembered.
    pub(crate) reads: Option<Rc<Reads>>,
    /// The same of what is being tried.
    pub(crate) tried: Option<Vec<(SpaceId, IndexId, Seen)>>,
    /// The same of rows in memory, as notes.
    pub(crate) notes: Notes,
    /// Of so many statements `reads` has the keys.
    remembered: usize,
    /// It has read or written rows on disk.
    touches_disk: bool,
    /// It waits: its statements are rolled back until it is resumed, or private.
    pub(crate) is_suspended: bool,
    /// It was suspended since it began, or since what foreign keys ask of it was looked at last.
    pub(crate) has_waited: bool,
    /// It was suspended since it began: rows that it had written were free for others to lock.
    pub(crate) was_suspended: bool,
    /// What it has written, if it keeps that to itself.
    pub(crate) private: Option<Box<Private>>,
    /// Its rows were put in second states of spaces, which are in place now.
    pub(crate) aside: Option<Aside>,
    /// The rows that it has locked; free when it ends.
    locks: Option<Held>,
    /// The state that it reads, if that is not the present one.
    pub(crate) view: Option<Rc<View>>,
    /// A statement that may write is under way.
    is_writing: bool,
    /// The moment by which rows have expired for it, in milliseconds, once it was asked for.
    moment_ms: Option<u64>,
}

impl Txn {
    pub(crate) fn record(&mut self, statement: Statement) {
        let is_system = statement.space.is_system();
        self.system_statements += usize::from(is_system);
        if is_system || self.system_statements > 0 {
            self.schema.note(&statement, self.statements.len());
        }
        self.statements.push(statement);
    }

    /// Adds a row for the log; `encode` writes its body.
    #[inline]
    pub(crate) fn log(&mut self, kind: u16, group_id: u32, encode: impl FnOnce(&mut Vec<u8>)) {
        encode(&mut self.bodies);
        self.rows.push(LoggedRow { kind, group_id, end: self.bodies.len() });
    }

    pub(crate) fn may_wait(&self) -> bool {
        self.statements.is_empty() && !self.has_read_rows && self.aborted.is_none()
    }

    /// Bytes that it will take in the log.
    pub(crate) fn logged_bytes(&self) -> usize {
        self.bodies.len()
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn statements(&self) -> &[Statement] {
        &self.statements
    }

    /// True if a statement of it was about a space: its rows or its definition.
    pub(crate) fn has_touched(&self, space_id: SpaceId) -> bool {
        let is_about = |statement: &Statement| statement.space.id == space_id;
        self.statements.iter().any(is_about) || self.schema.has_defined(space_id, &self.statements)
    }

    /// Applies its statements again, which are rolled back or private.
    pub(crate) fn apply_again(&mut self) {
        #[cfg(feature = "planted-bugs")]
        if runtime::planted::is_planted(runtime::planted::Plant::LosePrivateWrite) && self.statements.len() > 1 {
            let popped = self.statements.pop();
            self.system_statements -= popped.map_or(0, |statement| usize::from(statement.space.is_system()));
            self.remembered = self.remembered.min(self.statements.len());
        }
        self.apply_again_but(|_| false);
    }

    /// The same without those to some spaces.
    pub(crate) fn apply_again_but(&mut self, is_there: impl Fn(&Rc<Space>) -> bool) {
        for Statement { space, change, .. } in
            self.statements.iter_mut().filter(|statement| !is_there(&statement.space))
        {
            debug_assert!(space.rows.has_rolled_back(change), "nobody has touched what is applied again");
            space.rows.redo(change);
        }
    }

    /// Takes its statements and their rows for the log: it has done nothing.
    pub(crate) fn take_all_statements(&mut self) -> Vec<Statement> {
        self.remembered = 0;
        self.rows.clear();
        self.bodies.clear();
        std::mem::take(&mut self.statements)
    }

    pub(crate) fn statements_mut(&mut self) -> &mut [Statement] {
        &mut self.statements
    }

    /// Its number of statements about system spaces.
    pub(crate) fn system_statements(&self) -> usize {
        self.system_statements
    }

    /// The statements whose keys `reads` does not have yet; from now on it does.
    pub(crate) fn take_unremembered(&mut self) -> (&[Statement], &SchemaChanges) {
        let from = std::mem::replace(&mut self.remembered, self.statements.len());
        (&self.statements[from..], &self.schema)
    }

    /// Keeps locks until its end.
    pub(crate) fn hold(&mut self, locks: Held) {
        match &mut self.locks {
            Some(held) => held.join(locks),
            None => self.locks = Some(locks),
        }
    }

    /// Gives up one of its locks.
    pub(crate) fn let_go(&mut self, key: &RowKey) {
        if let Some(held) = &mut self.locks {
            held.let_go(key);
        }
    }

    /// True if it has only read so far, and is not about to write.
    pub(crate) fn is_reader(&self) -> bool {
        self.statements.is_empty() && self.locks.is_none() && !self.is_writing
    }

    /// The moment by which rows have expired for it: the same from the first look to its end.
    pub(crate) fn moment_ms(&mut self, now_ms: impl FnOnce() -> u64) -> u64 {
        *self.moment_ms.get_or_insert_with(now_ms)
    }

    pub(crate) fn forgets_reads(&self) -> bool {
        self.options.forgets_reads
    }

    pub(crate) fn is_implicit(&self) -> bool {
        self.is_implicit
    }

    pub(crate) fn is_aborted(&self) -> bool {
        self.aborted.is_some()
    }

    /// Why it was aborted, if it was.
    pub(crate) fn aborted(&self) -> Option<ErrorCode> {
        self.aborted
    }

    /// Its deadline and number, if it is to be watched and is not yet.
    pub(crate) fn watch(&mut self) -> Option<(u64, u64)> {
        let deadline = self.deadline_ns.filter(|_| !self.is_watched && self.aborted.is_none())?;
        self.is_watched = true;
        Some((deadline, self.id))
    }

    pub(crate) fn has_changed_schema(&self) -> bool {
        self.system_statements > 0
    }

    /// What the statements changed, if a callback wants to know.
    fn changed_rows(&self) -> Vec<ChangedRow> {
        if self.on_commit.is_empty() && self.on_rollback.is_empty() {
            return Vec::new();
        }
        let row_of = |statement: &Statement| ChangedRow {
            space_id: statement.space.id,
            old: statement.change.old.clone(),
            new: statement.change.new.clone(),
        };
        self.statements.iter().map(row_of).collect()
    }

    fn undo_to(&mut self, database: &Database, statement_count: usize, row_count: usize) {
        assert!(statement_count <= self.statements.len() && row_count <= self.rows.len(), "a mark lies in the past");
        if statement_count == 0 && self.private.is_some() && database.are_many(self.statements.len()) {
            self.undo_private(database);
        }
        self.remembered = self.remembered.min(statement_count);
        if let Some(deferred) = &mut self.deferred {
            deferred.undo_to(statement_count);
        }
        while self.statements.len() > statement_count {
            let statement = self.statements.pop().expect("longer than the count");
            self.system_statements -= usize::from(statement.space.is_system());
            self.schema.forget(&statement, self.statements.len());
            // What a suspended transaction has done is undone already.
            match &mut self.private {
                Some(private) => private.undo(&statement),
                None if self.is_suspended => database.give_up(statement),
                None => match &self.aside {
                    Some(aside) => database.undo_beside(statement, aside),
                    None => database.undo(statement),
                },
            }
        }
        if self.statements.is_empty() {
            database.end_schema_wait(self);
        }
        if self.system_statements == 0 {
            let mut schema = std::mem::take(&mut self.schema);
            database.disposal.discard(schema.take_copies());
            if let Some(version) = schema.version_before().filter(|_| !self.is_suspended) {
                database.catalog.return_to_version(version);
            }
        }
        self.rows.truncate(row_count);
        let end = self.rows.last().map_or(0, |row| row.end);
        self.bodies.truncate(end);
    }
}

impl Txn {
    /// Rolls back what a transaction of many statements has kept to itself, all of it: nobody else has seen it, so that it is freed in slices.
    #[cold]
    fn undo_private(&mut self, database: &Database) {
        debug_assert!(!self.has_changed_schema(), "whoever has changed the schema keeps nothing to himself");
        database.dispose_of_private(self.private.take());
        database.discard(Garbage::Statements(std::mem::take(&mut self.statements), None));
    }
}

impl Database {
    /// Opens a transaction. Errors: `ActiveTransaction` if one is open.
    pub fn begin(&self, context: &Context) -> Result<()> {
        self.begin_with(context, TxnOptions::default())
    }

    /// The same with options. Errors: `ActiveTransaction` if one is open.
    pub fn begin_with(&self, context: &Context, options: TxnOptions) -> Result<()> {
        if context.is_in_txn() {
            return Err(Error::new(ErrorCode::ActiveTransaction, &[]));
        }
        let id = self.isolation.next_txn_id();
        let timeout_ns = options.timeout_ns.or(Some(self.limits.txn_timeout_ns.get()).filter(|&ns| ns > 0));
        let deadline_ns = timeout_ns.map(|ns| self.environment.clock.monotonic_ns().saturating_add(ns));
        let configured = || self.config.borrow().txn_isolation;
        let isolation = if options.isolation == TxnIsolation::Default { configured() } else { options.isolation };
        context.defers.set(isolation == TxnIsolation::ReadCommitted);
        *context.txn.borrow_mut() = Some(Box::new(Txn { id, options, deadline_ns, ..Txn::default() }));
        Ok(())
    }

    /// What the open transaction may see.
    pub fn txn_isolation(&self, context: &Context) -> Option<TxnIsolation> {
        context.txn.borrow().as_ref().map(|txn| txn.options.isolation)
    }

    /// True if an open transaction may find what it has read changed ([`TxnOptions::forgets_reads`]).
    pub fn forgets_reads(&self, context: &Context) -> bool {
        context.txn.borrow().as_ref().is_some_and(|txn| txn.forgets_reads())
    }

    /// Runs a statement that only reads so that it sees one moment, however often it waits, in a transaction whose next statement may see another one
    /// ([`TxnOptions::forgets_reads`]): what it reads is remembered until it ends. Where the transaction has written or locked rows, what others commit
    /// while the statement waits shows in the rows that it reads later. May wait, as `work` does.
    pub fn at_one_moment<T>(&self, context: &Context, work: impl FnOnce() -> T) -> T {
        let is_fresh = |txn: &Txn| {
            txn.forgets_reads() && txn.is_reader() && txn.reads.is_none() && !txn.is_suspended && txn.aborted.is_none()
        };
        let is_begun = {
            let mut txn = context.txn.borrow_mut();
            let txn = txn.as_mut().filter(|txn| is_fresh(txn));
            txn.map(|txn| txn.options.forgets_reads = false).is_some()
        };
        if !is_begun {
            return work();
        }
        let done = work();
        if let Some(txn) = context.txn.borrow_mut().as_mut() {
            txn.options.forgets_reads = true;
            // One that has done nothing but read has nothing that would have to be applied again.
            if txn.is_reader() && txn.aborted.is_none() {
                (txn.reads, txn.view, txn.notes, txn.tried) = (None, None, Notes::default(), None);
                txn.is_suspended = false;
                context.must_resume.set(false);
            }
        }
        done
    }

    /// Notes that the open transaction has read a space.
    pub(crate) fn note_read(&self, context: &Context, space: &Space) {
        if let Some(txn) = context.txn.borrow_mut().as_mut() {
            txn.has_read = true;
            txn.has_read_rows |= !space.is_system();
        }
    }

    /// Number of the open transaction.
    pub fn txn_id(&self, context: &Context) -> Option<u64> {
        context.txn.borrow().as_ref().map(|txn| txn.id)
    }

    /// Number of the open transaction, or of one that is nobody's.
    pub fn txn_id_or_fresh(&self, context: &Context) -> u64 {
        self.txn_id(context).unwrap_or_else(|| self.isolation.next_txn_id())
    }

    /// The open transaction reads or writes rows on disk.
    pub(crate) fn note_disk(&self, context: &Context) {
        if let Some(txn) = context.txn.borrow_mut().as_mut() {
            txn.touches_disk = true;
        }
    }

    /// Rolls the open transaction back; every statement tried in it gets `code` from now on.
    pub(crate) fn abort_txn(&self, context: &Context, code: ErrorCode) {
        let taken = context.txn.borrow_mut().take();
        if let Some(mut txn) = taken {
            // A transaction that has done nothing has nothing to lose, but its time.
            let has_seen = txn.has_read || txn.reads.is_some() || txn.locks.is_some();
            let has_something = !txn.statements.is_empty() || has_seen || txn.is_suspended;
            if txn.aborted.is_none() && (has_something || code == ErrorCode::TransactionTimeout) {
                txn.undo_to(self, 0, 0);
                txn.is_suspended = false;
                txn.reads = None;
                txn.notes = Notes::default();
                self.dispose_of_private(txn.private.take());
                self.free_locks(&mut txn);
                txn.view = None;
                txn.aborted = Some(code);
                // Whatever is tried next is told.
                context.must_resume.set(true);
            }
            *context.txn.borrow_mut() = Some(txn);
        }
    }

    /// Runs `callback` after the open transaction is durable. Errors: `NoTransaction` without a transaction.
    pub fn on_commit(&self, context: &Context, callback: TxnCallback) -> Result<()> {
        match context.txn.borrow_mut().as_mut() {
            Some(txn) => {
                txn.on_commit.push(callback);
                Ok(())
            }
            None => Err(Error::new(ErrorCode::NoTransaction, &[])),
        }
    }

    /// Runs `callback` after the open transaction is rolled back. Errors: `NoTransaction` without a transaction.
    pub fn on_rollback(&self, context: &Context, callback: TxnCallback) -> Result<()> {
        match context.txn.borrow_mut().as_mut() {
            Some(txn) => {
                txn.on_rollback.push(callback);
                Ok(())
            }
            None => Err(Error::new(ErrorCode::NoTransaction, &[])),
        }
    }

    /// True if the end of the open transaction calls back: procedures, which may wait; or if it has to look at foreign keys again.
    pub fn has_txn_callbacks(&self, context: &Context) -> bool {
        let txn = context.txn.borrow();
        txn.as_ref().is_some_and(|txn| {
            let looks_again = || txn.has_waited && txn.statements.iter().any(|one| one.space.has_constraints());
            !txn.on_commit.is_empty() || !txn.on_rollback.is_empty() || looks_again() || self.commits_in_slices(txn)
        })
    }

    fn run_callbacks(&self, context: &Context, callbacks: Vec<TxnCallback>, rows: &[ChangedRow]) {
        for callback in callbacks {
            callback(context, rows);
        }
    }

    /// Runs one statement's work inside the open transaction, or inside one of its own that is committed at the end. If the
    /// work fails, everything it did is rolled back and an outer transaction goes on.
    pub(crate) fn in_statement<T>(&self, context: &Context, work: impl FnOnce() -> Result<T>) -> Result<T> {
        if context.trigger_depth.get() >= TRIGGER_DEPTH_MAX {
            return Err(Error::new(ErrorCode::SubStmtMax, &[]));
        }
        self.enter(context)?;
        let opened = !context.is_in_txn();
        if opened {
            let id = self.isolation.next_txn_id();
            *context.txn.borrow_mut() = Some(Box::new(Txn { id, is_implicit: true, ..Txn::default() }));
        }
        let mark = context.txn.borrow().as_ref().map(|txn| (txn.statements.len(), txn.rows.len()));
        let Some((statement_count, row_count)) = mark else {
            return Err(Error::new(ErrorCode::NoTransaction, &[]));
        };
        self.check_goes_on(context)?;
        self.check_not_in_view(context)?;
        let was_writing = self.set_writing(context, true);
        let result = work();
        self.set_writing(context, was_writing);
        if result.is_err() {
            let taken = context.txn.borrow_mut().take();
            if let Some(mut txn) = taken {
                if txn.aborted.is_none() {
                    if !opened && txn.statements.len() > statement_count {
                        self.remember_undone(&mut txn);
                    }
                    txn.undo_to(self, statement_count, row_count);
                }
                *context.txn.borrow_mut() = Some(txn);
            }
            if opened {
                self.take_txn(context);
            }
            return result;
        }
        if opened {
            self.commit_open(context)?;
        }
        result
    }

    /// Notes whether a statement that may write is under way in the open transaction. Returns what was so before.
    fn set_writing(&self, context: &Context, is_writing: bool) -> bool {
        let mut txn = context.txn.borrow_mut();
        txn.as_mut().is_some_and(|txn| std::mem::replace(&mut txn.is_writing, is_writing))
    }

    /// Refuses to go on in a transaction that was aborted. Errors: `TransactionYield`, `TransactionConflict`.
    pub(crate) fn check_goes_on(&self, context: &Context) -> Result<()> {
        self.enter(context)?;
        let aborted = context.txn.borrow().as_ref().and_then(|txn| txn.aborted);
        aborted.map_or(Ok(()), |code| Err(Error::new(code, &[])))
    }

    /// Runs one statement on a space in a transaction of its own, which is committed and not waited for, while another one is open: what
    /// sequences hand out is never rolled back, and transactions that wait need not conflict about it. Without an open
    /// transaction, or if it has changed the space itself, as part of it.
    pub(crate) fn beside_txn<T>(
        &self,
        context: &Context,
        space_id: SpaceId,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        debug_assert!(space_id.0 < 512, "a system space");
        let is_part = |txn: &Txn| txn.system_statements > 0 && txn.schema.has_written(space_id, &txn.statements);
        if context.txn.borrow().as_ref().is_none_or(|txn| is_part(txn)) {
            return work();
        }
        let id = self.isolation.next_txn_id();
        let own = Some(Box::new(Txn { id, is_implicit: true, ..Txn::default() }));
        let open = std::mem::replace(&mut *context.txn.borrow_mut(), own);
        let must_resume = context.must_resume.replace(false);
        let result = work();
        let own = std::mem::replace(&mut *context.txn.borrow_mut(), open);
        context.must_resume.set(must_resume);
        let Some(mut own) = own else { return result };
        let result = result.and_then(|value| self.append(context, &mut own).map(|position| (value, position)));
        match result {
            Ok((value, position)) => {
                context.see(position);
                Ok(value)
            }
            Err(error) => {
                own.undo_to(self, 0, 0);
                Err(error)
            }
        }
    }

    /// Adds an applied statement and its log row to the open transaction.
    pub(crate) fn record(
        &self,
        context: &Context,
        statement: Statement,
        log: Option<(u16, u32)>,
        encode: impl FnOnce(&mut Vec<u8>, &Change),
    ) {
        let mut txn = context.txn.borrow_mut();
        let txn = txn.as_mut().expect("statements run inside a transaction");
        if let Some((kind, group_id)) = log {
            txn.log(kind, group_id, |out| encode(out, &statement.change));
        }
        if statement.space.is_system() {
            txn.schema.begin(self.catalog.schema_version());
        }
        txn.record(statement);
    }

    /// Gives the newest statement of the open transaction what its change of the schema needs.
    pub(crate) fn attach_effect(&self, context: &Context, effect: Effect) {
        if let Some(txn) = context.txn.borrow_mut().as_mut()
            && let Some(statement) = txn.statements.last_mut()
        {
            let rows = txn.rows.len();
            statement.effect = Some(Box::new(Effect { rows, ..effect }));
        }
    }

    /// True if the open transaction was begun by hand.
    pub fn is_in_explicit_txn(&self, context: &Context) -> bool {
        context.txn.borrow().as_ref().is_some_and(|txn| !txn.is_implicit)
    }
}
