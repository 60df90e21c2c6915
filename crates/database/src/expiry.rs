//! Rows that expire: who sees them no more, and how they are removed.
//!
//! A space with the option `ttl` has a field that says when a row is over. From that moment on nobody sees the row: reads pass over it, and a write that
//! finds it in its way removes it first, by a logged delete, or takes its place. In a transaction the moment is that of its first look, so that
//! no row vanishes in the middle of it.
//!
//! What nobody meets is removed by the [`Sweeper`], in slices: through an index that begins with the field, or else by a slow walk from end to end. A removal is a
//! delete like any other: logged, seen by triggers, and a conflict for a transaction that still sees the row.
//!
//! Refused: dropping expired rows where they lie, in compactions or at recovery. Rows would then vanish without a row of the log, and what the clock
//! says while files are read would decide what is in them.

use crate::catalog::{Space, Ttl};
use crate::database::{Database, State};
use crate::error::{Error, ErrorCode, Result};
use crate::hooks::Leaving;
use crate::session::{Context, SessionKind};
use crate::statement::Operation;
use crate::statistics::increment;
use crate::time_share::TimeShare;
use runtime::{Clock, fiber};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};
use storage::{IndexKind, IteratorKind, Key, KeySource, ScanRequest, StorageError};
use tuple::{Arena, IndexId, SpaceId, Tuple};

/// Rows that are looked at between two looks at the clock.
const STEP_ROWS: usize = 16;
/// How long a sweeper that has found nothing sleeps.
const IDLE_NS: u64 = 100_000_000;
/// Tries to find a random row that has not expired.
const RANDOM_TRIES: u64 = 16;

/// Counts of what was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpiryCounts {
    /// Spaces whose rows expire.
    pub spaces: u64,
    /// Rows removed because they had expired.
    pub removed: u64,
    /// How long ago the row had expired that was removed last, in milliseconds.
    pub late_ms: u64,
    /// True while a sweep has found more than one slice of rows to remove.
    pub is_behind: bool,
}

/// Rows of one space that were removed because they had expired, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpiredRows {
    /// All of them.
    pub removed: u64,
    /// Those of them that the sweeper has found; the others were in the way of a write.
    pub swept: u64,
}

/// What the database keeps of rows that expire.
#[derive(Default)]
pub(crate) struct Expiry {
    database: RefCell<Weak<Database>>,
    /// The newest moment that was given out, by the wall clock.
    newest_ns: Cell<u64>,
    /// Since when the wall clock is behind it: that moment, and the monotonic clock then.
    behind: Cell<Option<(u64, u64)>>,
    /// Spaces with the option; some may be gone.
    spaces: RefCell<BTreeMap<SpaceId, Weak<Space>>>,
    /// The row that a statement was refused for.
    in_the_way: RefCell<Option<(SpaceId, Tuple)>>,
    /// Reads by key in memory that have found a row which had expired.
    hidden: Cell<u64>,
    is_swept: Cell<bool>,
    removed: Cell<u64>,
    removed_by_space: RefCell<BTreeMap<SpaceId, ExpiredRows>>,
    late_ms: Cell<u64>,
    is_behind: Cell<bool>,
    /// Spaces whose rows stay, unseen, until somebody says otherwise.
    paused: RefCell<BTreeSet<SpaceId>>,
}

impl Expiry {
    pub(crate) fn belongs_to(&self, database: &Rc<Database>) {
        *self.database.borrow_mut() = Rc::downgrade(database);
    }

    /// Gives up the row that it holds.
    pub(crate) fn forget_row(&self) {
        self.in_the_way.take();
    }

    /// A read by key has found a row that has expired. False: it is not shown.
    #[cold]
    pub(crate) fn note_hidden(&self) -> bool {
        increment(&self.hidden);
        false
    }

    /// Notes the row that a statement is refused for.
    pub(crate) fn is_in_the_way(&self, space_id: SpaceId, row: &Tuple) {
        *self.in_the_way.borrow_mut() = Some((space_id, row.clone()));
    }

    /// The wall clock, but never an earlier moment than before: what has expired does not come back. While the clock is behind, time goes on at half its
    /// pace until they meet.
    fn now_ns(&self, clock: &dyn Clock) -> u64 {
        let wall_ns = clock.wall_ns();
        let newest_ns = self.newest_ns.get();
        let now_ns = if wall_ns >= newest_ns {
            if self.behind.get().is_some() {
                self.behind.set(None);
            }
            wall_ns
        } else {
            let monotonic_ns = clock.monotonic_ns();
            let (from_ns, since_ns) = self.behind.get().unwrap_or((newest_ns, monotonic_ns));
            self.behind.set(Some((from_ns, since_ns)));
            newest_ns.max(from_ns.saturating_add(monotonic_ns.saturating_sub(since_ns) / 2))
        };
        self.newest_ns.set(now_ns);
        now_ns
    }
}

/// What has expired by one moment.
#[derive(Clone, Copy)]
pub(crate) struct Past {
    ttl: Ttl,
    now_ms: u64,
}

impl Past {
    /// True if a row has expired.
    #[inline]
    pub(crate) fn has(&self, row: &[u8]) -> bool {
        self.ttl.is_over(row, self.now_ms)
    }
}

impl Database {
    /// The moment by which rows expire, in milliseconds since 1970; never an earlier one than before.
    pub fn now_ms(&self) -> u64 {
        self.expiry.now_ns(&*self.environment().clock) / 1_000_000
    }

    /// The moment of a statement, or of its transaction.
    pub fn moment_ms(&self, context: &Context) -> u64 {
        match context.txn.borrow_mut().as_mut() {
            Some(txn) => txn.moment_ms(|| self.now_ms()),
            None => self.now_ms(),
        }
    }

    /// Counts of what has expired.
    pub fn expiry_counts(&self) -> ExpiryCounts {
        let expiry = &self.expiry;
        let spaces = self.expiring_spaces().len() as u64;
        let (removed, late_ms, is_behind) = (expiry.removed.get(), expiry.late_ms.get(), expiry.is_behind.get());
        ExpiryCounts { spaces, removed, late_ms, is_behind }
    }

    /// How often a read by a full key has met a row in memory that had expired and was still there, in all spaces: who asks before and behind such a read knows
    /// why it has found nothing.
    pub fn hidden_reads(&self) -> u64 {
        self.expiry.hidden.get()
    }

    /// The same was found out by who reads.
    #[cold]
    pub fn note_hidden_read(&self) {
        increment(&self.expiry.hidden);
    }

    /// What has expired of one space.
    pub fn expired_rows(&self, space: &Space) -> ExpiredRows {
        self.expiry.removed_by_space.borrow().get(&space.id).copied().unwrap_or_default()
    }

    /// What has expired in a space for who looks now. None: nothing ever does, or who looks sees all.
    #[inline]
    pub(crate) fn past_of(&self, context: &Context, space: &Space) -> Option<Past> {
        let ttl = space.ttl()?;
        context.sees_present().then(|| Past { ttl, now_ms: self.moment_ms(context) })
    }

    /// True if a row of a space has not expired for who looks now.
    #[inline]
    pub(crate) fn shows(&self, context: &Context, space: &Space, row: &[u8]) -> bool {
        space.ttl().is_none() || !self.past_of(context, space).is_some_and(|past| past.has(row))
    }

    /// Refuses to do anything to a row that has expired, before it is removed.
    ///
    /// Errors: `TupleFound`, which no client sees: `clear_the_way` removes the row.
    pub(crate) fn check_expired(&self, context: &Context, space: &Space, row: Option<&Tuple>) -> Result<()> {
        match row.filter(|row| !self.shows(context, space, row.data())) {
            Some(row) => {
                let existing = row.clone();
                Err(self.storage_error(StorageError::Duplicate { index_id: IndexId::PRIMARY, existing }, space))
            }
            None => Ok(()),
        }
    }

    /// A row of a space in memory, chosen by `seed`, that has not expired.
    pub(crate) fn some_row(&self, context: &Context, space: &Space, index_id: IndexId, seed: u64) -> Option<Tuple> {
        let rows = space.rows.memory()?.borrow();
        let Some(past) = self.past_of(context, space) else { return rows.random(index_id, seed) };
        // Numbers that have nothing to do with each other.
        let seeds = (0..RANDOM_TRIES).map(|at| seed.wrapping_add(at.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        seeds.map_while(|seed| rows.random(index_id, seed)).find(|row| !past.has(row.data()))
    }

    /// A statement was refused: removes the rows in its way that have expired, and tries again.
    ///
    /// Errors: those of the statement.
    #[cold]
    pub(crate) fn clear_the_way(
        &self,
        context: &Context,
        space: &Rc<Space>,
        operation: Operation<'_>,
        mut error: Error,
    ) -> Result<Option<Tuple>> {
        loop {
            let in_the_way = self.expiry.in_the_way.take();
            let Some((space_id, row)) = in_the_way.filter(|_| error.code() == ErrorCode::TupleFound as u32) else {
                return Err(error);
            };
            // Each round removes a row, or is the last one.
            if space_id != space.id
                || self.shows(context, space, row.data())
                || !self.remove_expired(context, space, &row, Leaving::Expired)?
            {
                return Err(error);
            }
            match self.execute_as_it_is(context, space, operation) {
                Err(next) => error = next,
                done => return done,
            }
        }
    }

    /// Removes the row with the primary key of `row` if it has expired. True if it has.
    ///
    /// Errors: those of a delete.
    fn remove_expired(&self, context: &Context, space: &Rc<Space>, row: &Tuple, why: Leaving) -> Result<bool> {
        let mut key = Vec::new();
        match space.index_def(IndexId::PRIMARY) {
            Some(primary) => primary.key_def.extract_key(row.data(), &mut key),
            None => return Ok(false),
        }
        self.expire(context, space, &key, why)
    }

    /// Removes the row with a primary key if it has expired and is still there. True if it was.
    ///
    /// Errors: those of a delete.
    pub fn expire_row(&self, context: &Context, space: &Rc<Space>, key: &[u8]) -> Result<bool> {
        self.expire(context, space, key, Leaving::Expired)
    }

    fn expire(&self, context: &Context, space: &Rc<Space>, key: &[u8], why: Leaving) -> Result<bool> {
        let removed = self.execute_as_it_is(context, space, Operation::Expire { key })?;
        if let Some((removed, ttl)) = removed.as_ref().zip(space.ttl()) {
            increment(&self.expiry.removed);
            let mut by_space = self.expiry.removed_by_space.borrow_mut();
            let counts = by_space.entry(space.id).or_default();
            counts.removed += 1;
            counts.swept += u64::from(why == Leaving::Swept);
            drop(by_space);
            self.tell_leaving(context, space, removed, why);
            let late_ms =
                ttl.expires_at_ms(removed.data()).map_or(0, |at_ms| self.now_ms().saturating_sub(at_ms.max(0) as u64));
            self.expiry.late_ms.set(late_ms);
        }
        Ok(removed.is_some())
    }

    /// Says whether rows of a space that have expired stay until they are in somebody's way, for tests of what shows of them. A start forgets it.
    pub fn pause_expiry(&self, space: &Space, is_paused: bool) {
        let mut paused = self.expiry.paused.borrow_mut();
        if is_paused {
            paused.insert(space.id);
        } else {
            paused.remove(&space.id);
        }
    }

    /// A space was made or altered.
    pub(crate) fn watch_expiry(&self, space: &Rc<Space>) {
        if space.ttl().is_some() {
            self.expiry.spaces.borrow_mut().insert(space.id, Rc::downgrade(space));
        }
    }

    /// The spaces whose rows expire.
    fn expiring_spaces(&self) -> Vec<Rc<Space>> {
        let mut spaces = self.expiry.spaces.borrow_mut();
        let is_there = |space: &Rc<Space>| space.ttl().is_some() && !space.is_dropped.get();
        spaces.retain(|_, space| space.upgrade().as_ref().is_some_and(is_there));
        let mut removed = self.expiry.removed_by_space.borrow_mut();
        if removed.len() > spaces.len() {
            removed.retain(|id, _| spaces.contains_key(id));
        }
        let paused = self.expiry.paused.borrow();
        spaces.values().filter_map(Weak::upgrade).filter(|space| !paused.contains(&space.id)).collect()
    }

    /// Has a fiber sweep, if there is anything that may expire. Called in every turn.
    #[inline]
    pub(crate) fn start_expiry(&self) {
        if !self.expiry.is_swept.get() && !self.expiry.spaces.borrow().is_empty() && !self.is_loading() {
            self.spawn_sweeper();
        }
    }

    #[cold]
    fn spawn_sweeper(&self) {
        let weak = self.expiry.database.borrow().clone();
        self.expiry.is_swept.set(true);
        let sweep = move || {
            let Some(mut sweeper) = weak.upgrade().map(|database| Sweeper::new(&database)) else { return };
            fiber::set_local(Rc::clone(&sweeper.remover) as Rc<dyn std::any::Any>);
            while let Some(database) = weak.upgrade() {
                let is_over = matches!(database.state(), State::Stopped) || database.expiry.spaces.borrow().is_empty();
                if is_over {
                    database.expiry.is_swept.set(false);
                    return;
                }
                let has_more = sweeper.sweep(&database);
                // One slice at a time is on its way to the log.
                let is_good = database.wait_durable(sweeper.remover.seen.get()).is_ok();
                drop(database);
                match has_more && is_good {
                    true => _ = fiber::yield_now(),
                    false => _ = fiber::sleep(IDLE_NS),
                }
                if fiber::is_cancelled() {
                    break;
                }
            }
            if let Some(database) = weak.upgrade() {
                database.expiry.is_swept.set(false);
            }
        };
        if fiber::try_spawn("expiry", sweep).is_err() {
            // The next turn tries again.
            self.expiry.is_swept.set(false);
        }
    }
}

/// Removes rows that have expired, in slices.
pub struct Sweeper {
    /// Sees all rows.
    reader: Context,
    /// Deletes them.
    remover: Rc<Context>,
    sweeps: BTreeMap<SpaceId, Sweep>,
    share: TimeShare,
    /// What the rows in the hands of the sweeps are in: a fiber may end later than the database. Dropped last.
    _arenas: [Arena; 2],
}

/// Where the sweep of one space is.
#[derive(Default)]
struct Sweep {
    cursor: Option<crate::cursor::Cursor>,
    /// The index that it goes through, and whether that begins with the field.
    index: (IndexId, bool),
    /// When it goes on, by the monotonic clock.
    next_ns: u64,
}

impl Sweeper {
    /// One that begins everywhere.
    pub fn new(database: &Database) -> Self {
        let session = database.open_session(SessionKind::Background, None);
        Sweeper {
            reader: Context::for_expiry(Rc::clone(&session)),
            remover: Rc::new(Context::for_request(session)),
            sweeps: BTreeMap::new(),
            share: TimeShare::default(),
            _arenas: [database.arena().clone(), database.loose_rows().clone()],
        }
    }

    /// Removes for one slice of time. True if there is more to remove now. May wait if rows are on disk, or if triggers do.
    pub fn sweep(&mut self, database: &Database) -> bool {
        if database.check_writable().is_err() {
            return false;
        }
        let spaces = database.expiring_spaces();
        self.sweeps.retain(|id, _| spaces.iter().any(|space| space.id == *id));
        let clock = std::sync::Arc::clone(&database.environment().clock);
        let (reader, remover, sweeps) = (&self.reader, &self.remover, &mut self.sweeps);
        let steps_max = database.slice_rows() / STEP_ROWS;
        let step = || {
            let mut has_more = false;
            for space in &spaces {
                has_more |= sweeps.entry(space.id).or_default().step(database, (reader, remover), space);
            }
            Ok::<bool, std::convert::Infallible>(has_more)
        };
        let Ok(has_more) = self.share.run(&*clock, steps_max, step);
        database.expiry.is_behind.set(has_more);
        has_more
    }
}

impl Sweep {
    /// Looks at some rows and removes those that have expired. True if more may have.
    fn step(&mut self, database: &Database, (reader, remover): (&Context, &Context), space: &Rc<Space>) -> bool {
        let (Some(ttl), now_ns) = (space.ttl(), database.environment().clock.monotonic_ns()) else { return false };
        if now_ns < self.next_ns || space.rows.is_building() {
            return false;
        }
        match self.remove_some(database, (reader, remover), space, ttl) {
            // A walk takes its time.
            Ok(true) if !self.index.1 => {
                let step_ns = STEP_ROWS as u64 * 1_000_000_000 / u64::from(ttl.walk_rows);
                self.next_ns = self.next_ns.max(now_ns.saturating_sub(IDLE_NS)) + step_ns;
                self.next_ns <= now_ns
            }
            Ok(true) => true,
            Ok(false) => {
                self.cursor = None;
                self.next_ns = now_ns + IDLE_NS;
                false
            }
            Err(error) => {
                if !error.is_needs_fiber() {
                    tracing::warn!("expired rows of space '{}' are not removed yet: {error}", space.name());
                }
                self.cursor = None;
                self.next_ns = now_ns + 10 * IDLE_NS;
                false
            }
        }
    }

    /// True if there may be more.
    fn remove_some(
        &mut self,
        database: &Database,
        (reader, remover): (&Context, &Context),
        space: &Rc<Space>,
        ttl: Ttl,
    ) -> Result<bool> {
        let Some(index) = find_index(space, ttl) else { return Ok(false) };
        if self.index != (index.id, index.is_by_field) {
            self.cursor = None;
            self.index = (index.id, index.is_by_field);
        }
        let mut cursor = match self.cursor.take() {
            Some(cursor) => cursor,
            None => {
                // Rows that never expire come first there.
                let key = Key { parts: &[0xc0], part_count: 1 };
                let request = match index.skips_nil {
                    true => ScanRequest::new(index.id, IteratorKind::Gt, key),
                    false => ScanRequest::new(index.id, IteratorKind::All, Key::EMPTY),
                };
                database.cursor(reader, space, &request)?
            }
        };
        let now_ms = database.now_ms();
        for _ in 0..STEP_ROWS {
            let Some(row) = cursor.next(database, reader)? else { return Ok(false) };
            match ttl.expires_at_ms(row.data()) {
                Some(at_ms) if i128::from(at_ms) <= i128::from(now_ms) => {
                    // Who has it locked may wait for long.
                    let is_locked = database.locks.are_any() && database.is_locked(space, &row);
                    if !is_locked {
                        database.remove_expired(remover, space, &row, Leaving::Swept)?;
                    }
                }
                Some(_) if index.is_by_field => return Ok(false),
                _ => {}
            }
        }
        self.cursor = Some(cursor);
        Ok(true)
    }
}

/// The index by which expired rows are found.
struct Found {
    id: IndexId,
    is_by_field: bool,
    skips_nil: bool,
}

fn find_index(space: &Space, ttl: Ttl) -> Option<Found> {
    let defs = space.index_defs();
    let by_field = defs.iter().find(|def| {
        def.kind == IndexKind::Tree
            && matches!(def.source, KeySource::Fields)
            && def.key_def.parts().first().is_some_and(|part| part.field_no == ttl.field_no)
    });
    match by_field {
        Some(def) => {
            let skips_nil = def.key_def.parts().first().is_some_and(|part| part.is_nullable);
            Some(Found { id: def.id, is_by_field: true, skips_nil })
        }
        None => defs.first().map(|def| Found { id: def.id, is_by_field: false, skips_nil: false }),
    }
}
