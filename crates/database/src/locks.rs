//! Locks of rows, for transactions that would rather wait than conflict.
//!
//! A transaction locks a row by reading it for update. Until it ends, whoever else wants to lock or to write that row waits, in the order of
//! arrival; who only reads does not. Without locks nothing here costs anything but the look whether there are any.
//!
//! ```text
//! one:    begin  get 1 for update        put 1  commit
//! other:         begin  get 1 for update | waits ..... | sees what one has put
//! third:                put 1            | waits ................................... | until other has ended
//! ```
//!
//! A transaction that has written a row and then waits has not locked it: others may. Who has the lock may rely on the row, so the other one gets
//! a conflict when it commits before the lock is free ([`Database::yield_to_locks`]), also where it has written blindly, on disk, and only its key is
//! known.
//!
//! A row is locked by its primary key, whether it is there or not. Who waits in a circle would wait for ever: the one whose wait would close
//! the circle is aborted instead, and the error names everybody in it.

use crate::access::Privileges;
use crate::blind_write::BlindWrite;
use crate::catalog::Space;
use crate::database::Database;
use crate::error::{Error, ErrorCode, Result};
use crate::prepare::Prepared;
use crate::session::{Context, Session};
use crate::statement::Operation;
use crate::txn::Txn;
use hashbrown::HashMap;
use runtime::fiber::{self, FiberId, Wake};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt::{self, Write};
use std::rc::Rc;
use storage::{Change, Key, ordered_key};
use tuple::{IndexId, SpaceId, Tuple, msgpack};

/// Rows that may be locked at the same time.
const LOCKS_MAX: usize = 1_000_000;
/// How the error of a deadlock begins.
const DEADLOCK: &str = "Transaction has been aborted by conflict: a deadlock.";
/// Requests that wait for rows, each in a fiber of its own.
const WAITING_MAX: usize = 10_000;
/// Transactions of a circle that its error names.
const NAMED_MAX: usize = 8;

/// A row: its space, and its primary key as ordered bytes.
pub(crate) type RowKey = (SpaceId, Rc<[u8]>);

/// What a lock is on, for errors: put into words when there is one.
#[derive(Clone)]
pub(crate) enum Shown {
    /// A row, by its key in MessagePack.
    Key(Rc<[u8]>),
    /// The definition of a space.
    Definition(SpaceId),
    /// The whole schema.
    Schema,
}

impl fmt::Display for Shown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shown::Key(key) => {
                let mut shown = String::new();
                msgpack::format_value(key, &mut shown);
                out.write_str(&shown)
            }
            Shown::Definition(id) => write!(out, "[{id}]"),
            Shown::Schema => out.write_str("of everything"),
        }
    }
}

/// Who waits for a row.
struct Waiter {
    owner: u64,
    fiber: FiberId,
    /// It only waits until nobody has the row.
    is_passing: bool,
}

struct Lock {
    /// Number of the transaction that has the row, or of the statement of none.
    owner: u64,
    /// What is locked, for errors.
    shown: Shown,
    waiters: VecDeque<Waiter>,
}

/// All locks.
#[derive(Default)]
pub(crate) struct Locks {
    rows: RefCell<HashMap<RowKey, Lock>>,
    /// What each owner that waits is waiting for.
    waits: RefCell<HashMap<u64, RowKey>>,
    count: Cell<usize>,
    /// How many of them are definitions of spaces, or the schema (`schema_changes.rs`).
    pub(crate) definitions: Cell<usize>,
    /// Requests of clients among those who wait.
    waiting_requests: Cell<usize>,
    /// How often one has begun or ended to wait.
    waiting_changes: Cell<u64>,
}

/// A request that waits for a row, until this is dropped.
struct WaitingRequest<'a> {
    locks: &'a Locks,
    session: &'a Session,
}

impl<'a> WaitingRequest<'a> {
    /// Errors: `MemoryIssue` if very many wait already.
    fn begin(locks: &'a Locks, context: &'a Context) -> Result<Option<Self>> {
        if !context.answers_wait {
            return Ok(None);
        }
        let count = locks.waiting_requests.get();
        if count >= WAITING_MAX {
            let what = "requests that wait for locked rows";
            return Err(Error::new(ErrorCode::MemoryIssue, &[&WAITING_MAX, &what, &"another one"]));
        }
        let session = &*context.session;
        locks.waiting_requests.set(count + 1);
        locks.waiting_changes.set(locks.waiting_changes.get() + 1);
        session.waiting_requests.set(session.waiting_requests.get() + 1);
        Ok(Some(WaitingRequest { locks, session }))
    }
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        self.locks.waiting_requests.set(self.locks.waiting_requests.get() - 1);
        self.locks.waiting_changes.set(self.locks.waiting_changes.get() + 1);
        self.session.waiting_requests.set(self.session.waiting_requests.get() - 1);
    }
}

/// The rows that one transaction, or a statement of none, has locked. They are free when this is dropped.
pub(crate) struct Held {
    locks: Rc<Locks>,
    owner: u64,
    rows: Vec<RowKey>,
}

impl Drop for Held {
    fn drop(&mut self) {
        for row in self.rows.drain(..) {
            self.locks.release(&row);
        }
    }
}

impl Locks {
    /// True if a row of any space is locked.
    #[inline]
    pub(crate) fn are_any(&self) -> bool {
        self.count.get() > 0
    }

    /// Number of rows that are locked, and of those who wait.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.count.get(), self.waits.borrow().len())
    }

    pub(crate) fn owner_of(&self, row: &RowKey) -> Option<u64> {
        self.rows.borrow().get(row).map(|lock| lock.owner)
    }

    /// True if a row is locked.
    pub(crate) fn has(&self, row: &RowKey) -> bool {
        self.owner_of(row).is_some()
    }

    /// Gives a row to whoever has waited for it longest.
    fn release(&self, row: &RowKey) {
        let mut rows = self.rows.borrow_mut();
        let Some(lock) = rows.get_mut(row) else { return };
        while let Some(next) = lock.waiters.pop_front() {
            self.waits.borrow_mut().remove(&next.owner);
            fiber::wake(next.fiber);
            if !next.is_passing {
                lock.owner = next.owner;
                return;
            }
        }
        rows.remove(row);
        self.count.set(rows.len());
        if is_definition(row) {
            self.definitions.set(self.definitions.get() - 1);
        }
    }

    /// Somebody waits no longer, without having got the row.
    fn give_up(&self, row: &RowKey, owner: u64) {
        self.waits.borrow_mut().remove(&owner);
        if let Some(lock) = self.rows.borrow_mut().get_mut(row) {
            lock.waiters.retain(|waiter| waiter.owner != owner);
        }
    }

    /// Has an owner that waits look whether it still may.
    pub(crate) fn wake(&self, owner: u64) {
        let waits = self.waits.borrow();
        let rows = self.rows.borrow();
        let lock = waits.get(&owner).and_then(|row| rows.get(row));
        lock.and_then(|lock| lock.waiters.iter().find(|waiter| waiter.owner == owner))
            .iter()
            .for_each(|waiter| fiber::wake(waiter.fiber));
    }

    /// The circle that `owner` would close by waiting for a row: each one in it and what it waits for, `owner` first.
    fn circle(&self, owner: u64, row: &RowKey) -> Option<Vec<(u64, RowKey)>> {
        let (waits, mut circle) = (self.waits.borrow(), vec![(owner, row.clone())]);
        loop {
            let (_, wanted) = circle.last()?;
            let holder = self.owner_of(wanted)?;
            if holder == owner {
                return Some(circle);
            }
            circle.push((holder, waits.get(&holder)?.clone()));
        }
    }
}

/// True for the error of the one whose wait would have closed a circle.
pub fn is_deadlock(error: &Error) -> bool {
    error.is(ErrorCode::TransactionConflict) && error.message().starts_with(DEADLOCK)
}

/// True for the error of a fiber that was cancelled while it waited.
pub fn is_cancelled(error: &Error) -> bool {
    error.is(ErrorCode::ProcLua) && error.message() == "fiber is cancelled"
}

impl Database {
    /// The row that a full key of a unique index names, which nobody else locks or changes until the open transaction ends. If somebody else has
    /// locked it, waits for at most `timeout_ns`, or as long as it takes. Checks the right to write, or to change or remove rows.
    ///
    /// Errors: `NoTransaction` without a transaction; as `get`; `Timeout`; `TransactionConflict` if whoever has the row waits for this
    /// transaction, which is rolled back then; there is no fiber that could wait.
    pub fn get_for_update(
        &self,
        context: &Context,
        space: &Rc<Space>,
        index_id: IndexId,
        key: Key<'_>,
        timeout_ns: Option<u64>,
    ) -> Result<Option<Tuple>> {
        self.enter(context)?;
        self.check_may_lock(context, space, index_id, key, &[Privileges::UPDATE, Privileges::DELETE])?;
        loop {
            self.check_not_in_view(context)?;
            let Some((row, shown)) = self.row_key(context, space, index_id, key)? else {
                // No row is there that could be locked; that it is absent counts.
                return self.get(context, space, index_id, key);
            };
            self.lock(context, space, row.clone(), &shown, timeout_ns)?;
            let found = self.get(context, space, index_id, key)?;
            // Behind another index there may be another row by now.
            let is_same = found.as_ref().is_none_or(|found| {
                index_id == 0 || row_key_of(space, found.data()).is_some_and(|(key, _)| key == row)
            });
            if is_same {
                return Ok(found);
            }
        }
    }

    /// Keeps others from a place, for who is about to put a row there, with the right to do so alone. Errors: as `get_for_update`.
    pub fn lock_for_insert(
        &self,
        context: &Context,
        space: &Rc<Space>,
        key: Key<'_>,
        timeout_ns: Option<u64>,
    ) -> Result<()> {
        if self.check_space_access(context, space, Privileges::READ | Privileges::WRITE).is_ok() {
            return self.get_for_update(context, space, IndexId::PRIMARY, key, timeout_ns).map(drop);
        }
        self.enter(context)?;
        self.check_may_lock(context, space, IndexId::PRIMARY, key, &[Privileges::INSERT])?;
        self.check_not_in_view(context)?;
        match self.row_key(context, space, IndexId::PRIMARY, key)? {
            Some((row, shown)) => self.lock(context, space, row, &shown, timeout_ns),
            None => Ok(()),
        }
    }

    /// `finer`: rights that suffice where the one to write is missing.
    fn check_may_lock(
        &self,
        context: &Context,
        space: &Space,
        index_id: IndexId,
        key: Key<'_>,
        finer: &[u32],
    ) -> Result<()> {
        if !self.is_in_explicit_txn(context) {
            return Err(Error::new(ErrorCode::NoTransaction, &[]));
        }
        if let Err(error) = self.check_space_access(context, space, Privileges::WRITE)
            && !finer.iter().any(|right| self.check_space_access(context, space, *right).is_ok())
        {
            return Err(error);
        }
        self.check_exact_key(space, index_id, key)?;
        self.check_lockable(space)?;
        self.check_goes_on(context)
    }

    fn check_lockable(&self, space: &Space) -> Result<()> {
        let primary = space
            .index_def(IndexId::PRIMARY)
            .ok_or_else(|| Error::new(ErrorCode::NoSuchIndexId, &[&0, &space.name()]))?;
        if space.is_system() || primary.key_def.supports_ordered().is_err() {
            return Err(Error::new(ErrorCode::Unsupported, &[&space.name(), &"locks of rows"]));
        }
        Ok(())
    }

    /// The row that a key names, and the key as it is shown; none if there is no such row. What is looked at does not count: it may change before the
    /// row is locked.
    fn row_key(
        &self,
        context: &Context,
        space: &Rc<Space>,
        index_id: IndexId,
        key: Key<'_>,
    ) -> Result<Option<(RowKey, Shown)>> {
        if index_id == 0 {
            return Ok(row_key_of_key(space, key));
        }
        let found = self.until_ready(context, || self.row_of_key(context, space, index_id, key))?;
        Ok(found.and_then(|row| row_key_of(space, row.data())))
    }

    /// Locks a row for the open transaction. Errors: as `get_for_update`.
    fn lock(
        &self,
        context: &Context,
        space: &Rc<Space>,
        row: RowKey,
        shown: &Shown,
        timeout_ns: Option<u64>,
    ) -> Result<()> {
        if self.has_alone(context, space) {
            return Ok(());
        }
        loop {
            self.wait_for_definition(context, space, timeout_ns)?;
            self.lock_key(context, space, row.clone(), shown, timeout_ns)?;
            if !self.is_definition_taken(context, space) {
                return Ok(());
            }
        }
    }

    /// Locks what a key stands for, for the open transaction. Errors: as `get_for_update`.
    pub(crate) fn lock_key(
        &self,
        context: &Context,
        space: &Rc<Space>,
        row: RowKey,
        shown: &Shown,
        timeout_ns: Option<u64>,
    ) -> Result<()> {
        let Some(owner) = self.txn_id(context) else { return Err(Error::new(ErrorCode::NoTransaction, &[])) };
        if self.locks.owner_of(&row) == Some(owner) {
            return Ok(());
        }
        #[cfg(feature = "planted-bugs")]
        if self.locks.owner_of(&row).is_some() && runtime::planted::is_planted(runtime::planted::Plant::GrantLockTwice)
        {
            return Ok(());
        }
        let held = self.acquire(context, space, owner, row, shown, timeout_ns)?;
        if let Some(txn) = context.txn.borrow_mut().as_mut() {
            txn.hold(held);
        }
        self.enter(context)?;
        self.check_not_in_view(context)
    }

    /// Locks what nobody has locked. Errors: there are too many locks.
    pub(crate) fn take_free(&self, owner: u64, row: RowKey, shown: &Shown) -> Result<Held> {
        let locks = &self.locks;
        debug_assert!(!locks.has(&row), "who takes what is free looks before");
        if locks.count.get() >= LOCKS_MAX {
            return Err(Error::new(ErrorCode::MemoryIssue, &[&LOCKS_MAX, &"rows that are locked", &"another lock"]));
        }
        let lock = Lock { owner, shown: shown.clone(), waiters: VecDeque::new() };
        locks.rows.borrow_mut().insert(row.clone(), lock);
        locks.count.set(locks.count.get() + 1);
        if is_definition(&row) {
            locks.definitions.set(locks.definitions.get() + 1);
        }
        Ok(Held { locks: Rc::clone(locks), owner, rows: vec![row] })
    }

    /// Gets a row, or waits for it.
    fn acquire(
        &self,
        context: &Context,
        space: &Rc<Space>,
        owner: u64,
        row: RowKey,
        shown: &Shown,
        timeout_ns: Option<u64>,
    ) -> Result<Held> {
        if self.locks.owner_of(&row).is_none() {
            return self.take_free(owner, row, shown);
        }
        self.queue_up(context, space, (owner, false), &row, shown, timeout_ns)?;
        Ok(Held { locks: Rc::clone(&self.locks), owner, rows: vec![row] })
    }

    /// Waits until a row is free, and leaves it so. Errors: as `get_for_update`.
    pub(crate) fn pass(
        &self,
        context: &Context,
        space: &Rc<Space>,
        owner: u64,
        row: &RowKey,
        shown: &Shown,
        timeout_ns: Option<u64>,
    ) -> Result<()> {
        match self.locks.has(row) {
            true => self.queue_up(context, space, (owner, true), row, shown, timeout_ns),
            false => Ok(()),
        }
    }

    /// Waits for a row that somebody has locked, until it is the owner's, or, if that is all that is wanted, until it is free.
    fn queue_up(
        &self,
        context: &Context,
        space: &Rc<Space>,
        (owner, is_passing): (u64, bool),
        row: &RowKey,
        shown: &Shown,
        timeout_ns: Option<u64>,
    ) -> Result<()> {
        let locks = &self.locks;
        if let Some(circle) = locks.circle(owner, row) {
            let error = self.deadlock(&circle);
            self.abort_txn(context, ErrorCode::TransactionConflict);
            return Err(error);
        }
        let Some(fiber) = fiber::current() else { return Err(Error::needs_fiber()) };
        let configured = || Some(self.limits.lock_timeout_ns.get()).filter(|&ns| ns > 0);
        let timeout_ns = timeout_ns.or(context.lock_timeout_ns.get()).or_else(configured);
        let deadline = timeout_ns.map(|ns| fiber::now_ns().saturating_add(ns));
        let _waiting = WaitingRequest::begin(locks, context)?;
        if let Some(lock) = locks.rows.borrow_mut().get_mut(row) {
            lock.waiters.push_back(Waiter { owner, fiber, is_passing });
        }
        locks.waits.borrow_mut().insert(owner, row.clone());
        loop {
            let woken = fiber::park_until(deadline);
            if !locks.waits.borrow().contains_key(&owner) {
                return Ok(());
            }
            let aborted = context.txn.borrow().as_ref().and_then(|txn| txn.aborted());
            let error = match woken {
                Wake::Cancelled => Error::new(ErrorCode::ProcLua, &[&"fiber is cancelled"]),
                _ if let Some(code) = aborted => Error::new(code, &[]),
                _ if deadline.is_some_and(|deadline| fiber::now_ns() >= deadline) => {
                    Error::new(ErrorCode::Timeout, &[]).with("space", space.name()).with("locked_key", shown)
                }
                _ => continue,
            };
            locks.give_up(row, owner);
            return Err(error);
        }
    }

    /// What is said to the one whose wait would close a circle.
    fn deadlock(&self, circle: &[(u64, RowKey)]) -> Error {
        let rows = self.locks.rows.borrow();
        let mut text = String::from(DEADLOCK);
        for (at, (owner, row)) in circle.iter().take(NAMED_MAX).enumerate() {
            let space = self.catalog.space(row.0).map_or_else(|| row.0.to_string(), |space| space.name());
            let Some(lock) = rows.get(row) else { continue };
            let verb = if at == 0 { "would wait" } else { "waits" };
            let _ = write!(
                text,
                " Transaction {owner} {verb} for row {} of space '{space}', which transaction {} has locked{}",
                lock.shown,
                lock.owner,
                if at + 1 == circle.len() { "." } else { ";" }
            );
        }
        if circle.len() > NAMED_MAX {
            let _ = write!(text, " and {} more.", circle.len() - NAMED_MAX);
        }
        let mut error = Error::new(ErrorCode::TransactionConflict, &[]);
        error.body_mut().message = text;
        error
    }

    /// A statement is about to write a row: if another transaction has locked it, waits until it is free. What is returned keeps it for the
    /// statement; a transaction keeps it until its end.
    ///
    /// Errors: as `get_for_update`. What the statement would be refused for is left to it.
    #[cold]
    pub(crate) fn wait_for_lock(
        &self,
        context: &Context,
        space: &Rc<Space>,
        operation: Operation<'_>,
    ) -> Result<Option<Held>> {
        self.enter(context)?;
        if space.is_system() {
            return self.wait_for_schema(context, space, operation);
        }
        loop {
            self.wait_for_definition(context, space, None)?;
            let held = self.wait_for_row(context, space, operation)?;
            if !self.is_definition_taken(context, space) {
                return Ok(held);
            }
        }
    }

    fn wait_for_row(&self, context: &Context, space: &Rc<Space>, operation: Operation<'_>) -> Result<Option<Held>> {
        let named = match operation {
            Operation::Insert { tuple } | Operation::Replace { tuple } | Operation::Upsert { tuple, .. } => {
                let fits = space.format().check(tuple).is_ok();
                fits.then(|| row_key_of(space, tuple)).flatten()
            }
            Operation::Expire { key } => {
                let Ok(key) = Key::decode(key) else { return Ok(None) };
                self.row_key(context, space, tuple::IndexId::PRIMARY, key)?
            }
            Operation::Update { index_id, key, .. } | Operation::Delete { index_id, key } => {
                let Ok(key) = Key::decode(key) else { return Ok(None) };
                match self.check_exact_key(space, index_id, key).and_then(|()| self.check_lockable(space)) {
                    Ok(()) => self.row_key(context, space, index_id, key)?,
                    Err(_) => None,
                }
            }
        };
        let Some((row, shown)) = named else { return Ok(None) };
        self.wait_for_key(context, space, row, &shown)
    }

    /// If another transaction has locked what a key stands for, waits until it is free. Returns what keeps it for a statement that is alone; a transaction keeps it
    /// until its end. Errors: as `get_for_update`.
    pub(crate) fn wait_for_key(
        &self,
        context: &Context,
        space: &Rc<Space>,
        row: RowKey,
        shown: &Shown,
    ) -> Result<Option<Held>> {
        match (self.locks.owner_of(&row), self.txn_id(context)) {
            (None, _) => Ok(None),
            (Some(owner), Some(own)) if owner == own => Ok(None),
            (Some(_), Some(_)) if self.is_in_explicit_txn(context) => {
                self.lock_key(context, space, row, shown, None)?;
                Ok(None)
            }
            (Some(_), _) => {
                let ticket = self.isolation.next_txn_id();
                self.acquire(context, space, ticket, row, shown, None).map(Some)
            }
        }
    }

    /// The open transaction is about to commit: none of the rows that it has written is one that another transaction has locked while this one
    /// waited. If there is such a row it is aborted with a conflict, which the commit is refused with.
    pub(crate) fn yield_to_locks(&self, context: &Context) {
        if !self.locks.are_any() {
            return;
        }
        let is_taken = context.txn.borrow().as_ref().is_some_and(|txn| {
            // One that was put in place in slices has been looked at there.
            let may_be = txn.was_suspended && !txn.is_aborted() && txn.aside.is_none();
            may_be && self.are_taken(txn)
        });
        if is_taken {
            self.abort_txn(context, ErrorCode::TransactionConflict);
        }
    }

    /// True if a row that a transaction has changed is locked by another one.
    pub(crate) fn are_taken(&self, txn: &Txn) -> bool {
        self.locks.are_any() && txn.statements().iter().any(|one| self.is_taken(&one.space, &one.change, txn.id()))
    }

    /// True if the row of a change is locked by somebody else than `own`.
    fn is_taken(&self, space: &Space, change: &Change, own: u64) -> bool {
        if self.locks.definitions.get() > 0 && !space.is_system() && self.is_definition_of_other(space, own) {
            return true;
        }
        let own_row = change.new.as_ref().or(change.old.as_ref()).filter(|_| !space.is_system());
        let is_of_other = |owner: Option<u64>| owner.is_some_and(|owner| owner != own);
        if let Some(row) = own_row {
            return is_of_other(self.owner_of_row(space, row));
        }
        // What has been written on disk without a look at what is there knows its keys only.
        let mut is_taken = false;
        if space.rows.may_wait() {
            space.rows.for_each_key(&space.index_defs(), change, |def, key, _| {
                let key = key.filter(|_| def.id == IndexId::PRIMARY);
                is_taken |= key.is_some_and(|key| is_of_other(self.locks.owner_of(&(space.id, key.into()))));
            });
        }
        is_taken
    }

    /// The row of a statement that was made ready, if somebody else than the open transaction has locked it by now: what it waited for took a while.
    pub(crate) fn taken_meanwhile(
        &self,
        context: &Context,
        space: &Space,
        prepared: Option<&Prepared>,
    ) -> Option<(RowKey, Shown)> {
        if !space.rows.may_wait() || !self.locks.are_any() || space.is_system() {
            return None;
        }
        let (row, shown) = row_of_prepared(space, prepared?)?;
        let owner = self.locks.owner_of(&row)?;
        (self.txn_id(context) != Some(owner)).then_some((row, shown))
    }

    /// True if somebody has locked a row.
    pub(crate) fn is_locked(&self, space: &Space, row: &Tuple) -> bool {
        self.is_definition_locked(space) || self.owner_of_row(space, row).is_some()
    }

    fn owner_of_row(&self, space: &Space, row: &Tuple) -> Option<u64> {
        let primary = space.index_def(IndexId::PRIMARY)?;
        let key = ordered_key(&primary.key_def, row.data())?;
        self.locks.owner_of(&(space.id, key.into()))
    }

    /// True if a row of any space is locked, so that a write may have to wait.
    pub fn has_locks(&self) -> bool {
        self.locks.are_any()
    }

    /// Number of requests that wait for a row that somebody has locked, and how often that has changed.
    #[inline]
    pub fn requests_behind_locks(&self) -> (usize, u64) {
        (self.locks.waiting_requests.get(), self.locks.waiting_changes.get())
    }

    /// Number of rows that are locked, and of those who wait for one.
    pub fn lock_counts(&self) -> (usize, usize) {
        self.locks.counts()
    }
}

impl Held {
    /// How many rows they are.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Gives up to `max` rows to whoever waits for them. Returns true while there are more.
    pub(crate) fn free_some(&mut self, max: usize) -> bool {
        for row in self.rows.split_off(self.rows.len().saturating_sub(max)) {
            self.locks.release(&row);
        }
        !self.rows.is_empty()
    }

    /// Gives one of the rows to whoever waits for it.
    pub(crate) fn let_go(&mut self, row: &RowKey) {
        if let Some(at) = self.rows.iter().position(|held| held == row) {
            let row = self.rows.swap_remove(at);
            self.locks.release(&row);
        }
    }

    /// Takes over what another one of the same owner holds.
    pub(crate) fn join(&mut self, mut other: Held) {
        debug_assert_eq!(self.owner, other.owner, "locks stay with their owner");
        self.rows.append(&mut other.rows);
    }
}

/// True for a key that stands for a definition, or for the schema: rows of system spaces are not locked.
fn is_definition(row: &RowKey) -> bool {
    row.0.0 < 512
}

pub(crate) fn row_key_of(space: &Space, row: &[u8]) -> Option<(RowKey, Shown)> {
    let primary = space.index_def(IndexId::PRIMARY)?;
    let bytes = ordered_key(&primary.key_def, row)?;
    let mut key = Vec::new();
    primary.key_def.extract_key(row, &mut key);
    Some(((space.id, bytes.into()), Shown::Key(key.into())))
}

/// The row that a full primary key names.
fn row_key_of_key(space: &Space, key: Key<'_>) -> Option<(RowKey, Shown)> {
    let primary = space.index_def(IndexId::PRIMARY)?;
    let mut bytes = Vec::new();
    primary.key_def.ordered_of_key(key.parts, key.part_count, &mut bytes);
    Some(((space.id, bytes.into()), show(key)))
}

/// The row that a statement is about to change, whether it has looked at it or not.
fn row_of_prepared(space: &Space, prepared: &Prepared) -> Option<(RowKey, Shown)> {
    let row = match prepared.blind.as_deref() {
        None => prepared.new.as_ref().or(prepared.old.as_ref())?,
        Some(BlindWrite::Upsert { row, .. }) => row,
        Some(BlindWrite::Delete { key }) => return row_key_of_key(space, Key::decode(key).ok()?),
    };
    row_key_of(space, row.data())
}

fn show(key: Key<'_>) -> Shown {
    let mut array = Vec::with_capacity(key.parts.len() + 5);
    msgpack::encode_array(&mut array, key.part_count);
    array.extend_from_slice(key.parts);
    Shown::Key(array.into())
}
