//! Scans of rows: SELECT, iterators of Lua, and whoever else goes through an index.
//!
//! [`Database::select`] runs to its end and hands over bytes; [`Cursor`] gives one row at a time, other work in between, and finds its
//! place again when rows have changed meanwhile. Both begin with `begin_scan`, which checks and notes what is seen, and remember for the
//! open transaction what they have passed: no caller can forget that.
//!
//! A row of a disk may have to be waited for. A scan outside of a transaction then holds the state it began in; one in a transaction is
//! suspended with it and goes on in what is there by then, of which the transaction is sure that it is the same.

use crate::access::Privileges;
use crate::catalog::{Space, SpaceKind};
use crate::database::Database;
use crate::error::{Error, Result};
use crate::isolation::seen_by;
use crate::notes::NotePlace;
use crate::private::{OwnRows, next_through};
use crate::session::Context;
use crate::statistics::increment;
use std::cmp::Ordering;
use std::rc::Rc;
use storage::lsm::{DiskRow, DiskScan, Fetched, LsmSpace, Stop};
use storage::{IndexKind, IteratorKind, Key, MemoryIterator, Rows, ScanRequest};
use tuple::{IndexId, KeyDef, OutOfMemory, Tuple};

/// More blocks than a look at one place of an index needs.
const FETCHED_MAX: usize = 128;

/// Keeps what a scan was waited for. One that seeks again begins behind its last key, and needs a block of each run for that, and perhaps of another index,
/// all at one time: there may be no cache that has them. One that goes on where it is needs the last alone.
fn keep(fetched: &mut Vec<Fetched>, seeks_again: bool, block: Fetched) {
    if !seeks_again {
        fetched.clear();
    } else if fetched.len() >= FETCHED_MAX {
        fetched.remove(0);
    }
    fetched.push(block);
}

impl Database {
    /// What every scan begins with: access and key are checked, what is seen is noted.
    ///
    /// Errors: `AccessDenied` and those of `check_scan`; `TransactionConflict`.
    #[inline]
    fn begin_scan(&self, context: &Context, space: &Space, request: &ScanRequest<'_>) -> Result<()> {
        self.enter(context)?;
        self.check_space_access(context, space, Privileges::READ)?;
        self.check_scan(space, request)?;
        increment(&self.statistics.selects);
        if request.limit == 0 {
            return Ok(());
        }
        self.check_shown(context, space)?;
        context.see(self.written_of(space, request));
        match space.rows.may_wait() {
            true => self.note_disk(context),
            false => self.note_read(context, space),
        }
        Ok(())
    }

    /// Hands the rows of a scan to `visit` until it returns false. May wait if rows are on disk.
    ///
    /// Errors: as `begin_scan`; a part of a file cannot be read.
    pub fn select(
        &self,
        context: &Context,
        space: &Rc<Space>,
        request: &ScanRequest<'_>,
        visit: impl FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        self.begin_scan(context, space, request)?;
        if request.limit == 0 {
            return Ok(());
        }
        if space.memory_limit().is_some() && request.kind == IteratorKind::Eq {
            return self.select_with_use(context, space, request, visit);
        }
        match self.past_of(context, space) {
            None => self.scan(context, space, request, |_| false, visit),
            Some(past) => self.scan(context, space, request, |row| past.has(row), visit),
        }
    }

    /// A scan of a space with a limit: one by a full key of a unique index is a use of the row.
    #[cold]
    fn select_with_use(
        &self,
        context: &Context,
        space: &Rc<Space>,
        request: &ScanRequest<'_>,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        let past = self.past_of(context, space);
        let is_hidden = |row: &[u8]| past.as_ref().is_some_and(|past| past.has(row));
        let mut found = None;
        self.scan(context, space, request, is_hidden, |row| {
            found.get_or_insert_with(|| row.to_vec());
            visit(row)
        })?;
        self.note_use(space, request, found.as_deref());
        Ok(())
    }

    /// The rows of a scan that has begun, but those that `is_hidden` names.
    #[inline]
    fn scan(
        &self,
        context: &Context,
        space: &Rc<Space>,
        request: &ScanRequest<'_>,
        is_hidden: impl Fn(&[u8]) -> bool,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        let (mut skip, mut left) = (request.offset, request.limit);
        let mut take = |row: &[u8]| {
            if is_hidden(row) {
                return true;
            }
            if skip > 0 {
                skip -= 1;
                return true;
            }
            left -= 1;
            visit(row) && left > 0
        };
        match &space.rows {
            Rows::Memory(rows) => {
                let (index_id, kind, key) = (request.index_id, request.kind, request.key);
                if self.layer(context, space).is_some() {
                    self.scan_through(context, space, request, |row| take(row.data()))?;
                } else if self.remembers(context, space) {
                    self.scan_remembered(context, space, request, take);
                } else {
                    rows.borrow().scan(index_id, kind, key.parts, key.part_count, take);
                }
                Ok(())
            }
            Rows::Disk(disk, _) => self.scan_disk(context, space, disk, request, take),
            Rows::Nowhere => self.scan_elsewhere(context, space, request, take),
        }
    }

    /// The rows of a scan as tuples: of memory the very ones, copies otherwise. Errors: as `select`; `MemoryIssue`.
    pub fn select_tuples(&self, context: &Context, space: &Rc<Space>, request: &ScanRequest<'_>) -> Result<Vec<Tuple>> {
        let mut found = Vec::new();
        if let (Rows::Memory(rows), true) = (&space.rows, request.limit > 0) {
            self.begin_scan(context, space, request)?;
            let ScanRequest { index_id, kind, key, offset: mut skip, limit: mut left } = *request;
            let past = self.past_of(context, space);
            let take = |row: Tuple| {
                if past.as_ref().is_some_and(|past| past.has(row.data())) {
                    return true;
                }
                if skip > 0 {
                    skip -= 1;
                    return true;
                }
                found.push(row);
                left -= 1;
                left > 0
            };
            if self.layer(context, space).is_some() {
                self.scan_through(context, space, request, take)?;
                return Ok(found);
            }
            rows.borrow().scan_tuples(index_id, kind, key.parts, key.part_count, take);
            if space.memory_limit().is_some() {
                self.note_use(space, request, found.first().map(Tuple::data));
            }
            let last = found.last().filter(|_| left == 0);
            self.note_scan(context, space, index_id, kind, key, last);
            return Ok(found);
        }
        let mut failed = None;
        let format_id = space.format().id();
        self.select(context, space, request, |row| {
            match Tuple::new(&self.loose_rows, format_id, row) {
                Ok(row) => found.push(row),
                Err(error) => failed = Some(error),
            }
            failed.is_none()
        })?;
        match failed {
            Some(error) => Err(self.storage_error(error.into(), space)),
            None => Ok(found),
        }
    }

    /// A scan that gives one row at a time. Errors: as `begin_scan`.
    pub fn cursor(&self, context: &Context, space: &Rc<Space>, request: &ScanRequest<'_>) -> Result<Cursor> {
        let ScanRequest { index_id, kind, key, .. } = *request;
        let place = match &space.rows {
            Rows::Memory(_) => {
                self.begin_scan(context, space, request)?;
                let iterator = MemoryIterator::new(index_id, kind, key.parts, key.part_count);
                Place::Memory(Box::new((iterator, NotePlace::default())))
            }
            Rows::Disk(..) => {
                self.begin_scan(context, space, request)?;
                Place::Disk(Box::new(DiskPlace::new(request)))
            }
            Rows::Nowhere => Place::Copied(self.select_tuples(context, space, request)?.into_iter()),
        };
        Ok(Cursor { space: Rc::clone(space), place })
    }

    /// A scan of rows in memory whose transaction remembers what it has passed.
    #[cold]
    fn scan_remembered(
        &self,
        context: &Context,
        space: &Space,
        request: &ScanRequest<'_>,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) {
        let (Some(def), Some(rows)) = (space.index_def(request.index_id), space.rows.memory()) else { return };
        let (kind, key) = (request.kind, request.key);
        let mut last = None;
        rows.borrow().scan(request.index_id, kind, key.parts, key.part_count, |row| {
            let goes_on = visit(row);
            if !goes_on {
                last = Some(row.to_vec());
            }
            goes_on
        });
        self.remember(context, space.id, def.id, seen_by(&def, kind, key, last.as_deref()));
    }

    /// A scan of rows in memory by a transaction that keeps its writes to itself.
    #[cold]
    fn scan_through(
        &self,
        context: &Context,
        space: &Rc<Space>,
        request: &ScanRequest<'_>,
        mut visit: impl FnMut(Tuple) -> bool,
    ) -> Result<()> {
        let (index_id, kind, key) = (request.index_id, request.kind, request.key);
        let is_ordered = space.index_def(index_id).is_some_and(|def| def.kind == IndexKind::Tree);
        if !is_ordered {
            self.bring_in_place(context)?;
        }
        let Some(rows) = space.rows.memory() else { return Ok(()) };
        let layer = self.layer(context, space);
        let mut iterator = MemoryIterator::new(index_id, kind, key.parts, key.part_count);
        if let Some(layer) = layer.as_ref().filter(|_| !is_ordered) {
            let rest = layer.borrow().rest_of_hash(space, &rows.borrow(), &mut iterator);
            let _ = rest.into_iter().try_for_each(|row| visit(row).then_some(()));
            return Ok(());
        }
        let mut last = None;
        loop {
            let next = match &layer {
                Some(layer) => next_through(&rows.borrow(), space, &layer.borrow(), &mut iterator),
                None => iterator.next(&rows.borrow()),
            };
            let Some(row) = next else { break };
            if !visit(row.clone()) {
                last = Some(row);
                break;
            }
        }
        self.note_scan(context, space, index_id, kind, key, last.as_ref());
        Ok(())
    }

    /// The own rows of a scan, if the open transaction keeps them to itself: those behind `last`, or all.
    fn own_rows(
        &self,
        context: &Context,
        space: &Rc<Space>,
        request: &ScanRequest<'_>,
        last: Option<&Tuple>,
    ) -> Option<OwnRows> {
        let layer = self.layer(context, space)?;
        let mut iterator =
            MemoryIterator::new(request.index_id, request.kind, request.key.parts, request.key.part_count);
        if let Some(last) = last {
            iterator.go_behind(last);
        }
        OwnRows::new(space, layer, iterator)
    }

    /// Hands over the rows of a space that has none of its own.
    pub(crate) fn scan_elsewhere(
        &self,
        context: &Context,
        space: &Rc<Space>,
        request: &ScanRequest<'_>,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        let (index_id, kind, key) = (request.index_id, request.kind, request.key);
        match space.kind {
            SpaceKind::View { base } => {
                let base = self.space(base)?;
                context.see(self.written(&base));
                self.remember_all(context, &base, index_id);
                let rights = context.rights(&self.catalog);
                let user = context.user(&self.catalog);
                let Some(rows) = base.rows.memory() else { return Ok(()) };
                rows.borrow().scan(index_id, kind, key.parts, key.part_count, |row| {
                    !self.is_visible(&rights, user, space.id, row) || visit(row)
                });
            }
            SpaceKind::Service => self.scan_settings(&context.session, kind, key, visit),
            SpaceKind::Memory | SpaceKind::Disk | SpaceKind::Blackhole => {}
        }
        Ok(())
    }

    fn scan_disk(
        &self,
        context: &Context,
        space: &Rc<Space>,
        disk: &Rc<LsmSpace>,
        request: &ScanRequest<'_>,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        let (index_id, kind, key) = (request.index_id, request.kind, request.key);
        let is_point = index_id == 0
            && kind == IteratorKind::Eq
            && space.index_def(IndexId::PRIMARY).is_some_and(|def| def.key_def.part_count() as u32 == key.part_count);
        if is_point {
            return self.until_ready(context, || {
                self.remember_key(context, space, index_id, key);
                context.see(self.written_of(space, request));
                // A wait may have made the writes of the transaction private, or have it read in a view.
                if self.is_private(context) {
                    let row = self.row_of_key(context, space, index_id, key)?;
                    row.iter().for_each(|row| _ = visit(row.data()));
                } else if let Some(row) = disk.get(index_id, key)? {
                    row.with(|row| visit(row));
                }
                Ok(())
            });
        }
        let mut scan = match self.disk_view(context, space) {
            Some(view) => disk.scan_view(&view, index_id, kind, key),
            None => disk.scan(index_id, kind, key),
        };
        let mut own = self.own_rows(context, space, request, None);
        let mut fetched = Vec::new();
        let (notes_last, mut last) = (context.is_in_txn(), Vec::new());
        loop {
            match scan.next_row() {
                Ok(Some(row)) => {
                    fetched.clear();
                    let goes_on = match &mut own {
                        None => row.with(|row| {
                            if notes_last {
                                last.clear();
                                last.extend_from_slice(row);
                            }
                            visit(row)
                        }),
                        Some(own) => row.with(|row| {
                            while let Some(row) = own.take_before(Some(row)) {
                                if !visit(row.data()) {
                                    return false;
                                }
                            }
                            own.hides(row) || visit(row)
                        }),
                    };
                    if !goes_on {
                        break;
                    }
                }
                Ok(None) => {
                    while let Some(row) = own.as_mut().and_then(|own| own.take_before(None)) {
                        if !visit(row.data()) {
                            break;
                        }
                    }
                    break;
                }
                Err(Stop::Failed(error)) => return Err(self.read_error(&error)),
                Err(Stop::Wait(need)) => {
                    let is_in_txn = context.is_in_txn();
                    if is_in_txn {
                        self.remember_passed(context, space, index_id, &scan);
                    } else {
                        scan.hold();
                    }
                    // The row of a secondary key is looked for from the newest run on each time.
                    keep(&mut fetched, is_in_txn || index_id != 0, self.wait_for(context, need)?);
                    if is_in_txn {
                        self.check_shown(context, space)?;
                        match self.disk_view(context, space) {
                            Some(view) => scan.seek_in_view(&view),
                            None => scan.seek_again(),
                        }
                        if own.is_none() {
                            // The wait may have made the writes of the transaction private.
                            let last = (!last.is_empty()).then(|| self.make_row(space, &space.format(), &last, || 0));
                            own = self.own_rows(context, space, request, last.transpose()?.as_ref());
                        }
                    }
                }
            }
        }
        self.remember_passed(context, space, index_id, &scan);
        Ok(())
    }

    /// The open transaction depends on what a scan has passed.
    fn remember_passed(&self, context: &Context, space: &Space, index_id: IndexId, scan: &DiskScan) {
        if self.remembers(context, space)
            && let Some(seen) = scan.seen()
        {
            self.remember_range(context, space, index_id, seen);
        }
    }
}

/// A scan that goes on between other work: behind the last row that it gave, in what is there by then.
pub struct Cursor {
    space: Rc<Space>,
    place: Place,
}

enum Place {
    Memory(Box<(MemoryIterator, NotePlace)>),
    Disk(Box<DiskPlace>),
    /// Rows that were computed when the scan began.
    Copied(std::vec::IntoIter<Tuple>),
}

impl Cursor {
    /// The next row, `None` at the end. May wait if rows are on disk.
    ///
    /// Errors: a part of a file cannot be read; `TransactionConflict`; `AccessDenied` if the user has lost the right to read.
    pub fn next(&mut self, database: &Database, context: &Context) -> Result<Option<Tuple>> {
        loop {
            let next = self.next_of_all(database, context)?;
            if next.as_ref().is_none_or(|row| database.shows(context, &self.space, row.data())) {
                return Ok(next);
            }
        }
    }

    /// Appends the next rows, up to `max` of those in memory and else one; none at the end. May wait if rows are on disk. Whoever takes more than it needs
    /// depends on more.
    ///
    /// Errors: as [`Cursor::next`].
    pub fn next_some(
        &mut self,
        database: &Database,
        context: &Context,
        max: usize,
        rows: &mut Vec<Tuple>,
    ) -> Result<()> {
        let first = rows.len();
        loop {
            let has_more = match &mut self.place {
                Place::Memory(place) if max > 1 => some_in_memory(database, context, &self.space, place, max, rows)?,
                _ => None,
            };
            match has_more {
                Some(false) => {}
                Some(true) | None if rows.len() > first => {}
                _ => {
                    rows.extend(self.next(database, context)?);
                    return Ok(());
                }
            }
            if self.space.ttl().is_some() {
                let mut at = first;
                while at < rows.len() {
                    match database.shows(context, &self.space, rows[at].data()) {
                        true => at += 1,
                        false => drop(rows.remove(at)),
                    }
                }
            }
            if rows.len() > first || has_more == Some(false) {
                return Ok(());
            }
        }
    }

    /// The same, expired or not.
    #[inline]
    fn next_of_all(&mut self, database: &Database, context: &Context) -> Result<Option<Tuple>> {
        if self.is_hash_in_view(database, context)? {
            self.copy_rest(database, context);
        }
        match &mut self.place {
            Place::Memory(place) => next_in_memory(database, context, &self.space, place),
            Place::Disk(place) => place.next(database, context, &self.space),
            Place::Copied(rows) => Ok(rows.next()),
        }
    }

    /// True if it goes through a hash in memory, and its transaction reads in a view: there is no place there to go on behind.
    fn is_hash_in_view(&self, database: &Database, context: &Context) -> Result<bool> {
        let Place::Memory(place) = &self.place else { return Ok(false) };
        if !context.is_in_txn() {
            return Ok(false);
        }
        database.enter(context)?;
        if database.view(context).is_none() {
            return Ok(false);
        }
        database.check_shown(context, &self.space)?;
        Ok(self.space.index_def(place.0.index_id()).is_some_and(|def| def.kind == IndexKind::Hash))
    }

    /// Copies what is left.
    fn copy_rest(&mut self, database: &Database, context: &Context) {
        let (Place::Memory(place), Some(rows)) = (&mut self.place, self.space.rows.memory()) else { return };
        let Some(layer) = database.layer(context, &self.space) else { return };
        let rest = layer.borrow().rest_of_hash(&self.space, &rows.borrow(), &mut place.0);
        self.place = Place::Copied(rest.into_iter());
    }

    /// Goes on behind a row, which need not be there. Nothing was taken yet.
    pub(crate) fn go_behind(&mut self, row: &Tuple, order: &KeyDef, is_reverse: bool) {
        match &mut self.place {
            Place::Memory(place) => place.0.go_behind(row),
            Place::Disk(place) => place.last = Some(row.clone()),
            Place::Copied(rows) => {
                let wanted = if is_reverse { Ordering::Less } else { Ordering::Greater };
                let behind = rows.filter(|other| order.compare_rows(other.data(), row.data()) == wanted);
                *rows = behind.collect::<Vec<_>>().into_iter();
            }
        }
    }

    /// True if `next` may wait.
    pub fn may_wait(&self) -> bool {
        self.space.rows.may_wait()
    }
}

/// Several rows, and whether there may be more. None: this has to be done row by row.
fn some_in_memory(
    database: &Database,
    context: &Context,
    space: &Rc<Space>,
    (iterator, place): &mut (MemoryIterator, NotePlace),
    max: usize,
    found: &mut Vec<Tuple>,
) -> Result<Option<bool>> {
    database.enter(context)?;
    database.check_shown(context, space)?;
    context.see(database.written(space));
    let Some(rows) = space.rows.memory() else { return Ok(Some(false)) };
    let rows = rows.borrow();
    if !context.is_in_txn() || iterator.is_done() {
        iterator.next_some(&rows, max, found);
        return Ok(Some(!iterator.is_done()));
    }
    let is_tree = rows.index_def(iterator.index_id()).is_some_and(|def| def.kind == IndexKind::Tree);
    if !is_tree || database.layer(context, space).is_some() {
        return Ok(None);
    }
    database.note_read(context, space);
    let after = iterator.last().cloned();
    iterator.next_some(&rows, max, found);
    let last = if iterator.is_done() { None } else { found.last() };
    database.note_step(context, space, iterator, place, (after.as_ref(), last));
    Ok(Some(!iterator.is_done()))
}

fn next_in_memory(
    database: &Database,
    context: &Context,
    space: &Rc<Space>,
    (iterator, place): &mut (MemoryIterator, NotePlace),
) -> Result<Option<Tuple>> {
    database.enter(context)?;
    database.check_shown(context, space)?;
    context.see(database.written(space));
    let Some(rows) = space.rows.memory() else { return Ok(None) };
    let rows = rows.borrow();
    if !context.is_in_txn() || iterator.is_done() {
        return Ok(iterator.next(&rows));
    }
    database.note_read(context, space);
    let after = iterator.last().cloned();
    let found = match database.layer(context, space) {
        None => iterator.next(&rows),
        Some(layer) if rows.index_def(iterator.index_id()).is_some_and(|def| def.kind == IndexKind::Tree) => {
            next_through(&rows, space, &layer.borrow(), iterator)
        }
        Some(_) => {
            drop(rows);
            database.bring_in_place(context)?;
            let Some(rows) = space.rows.memory() else { return Ok(None) };
            iterator.next(&rows.borrow())
        }
    };
    database.note_step(context, space, iterator, place, (after.as_ref(), found.as_ref()));
    Ok(found)
}

/// Where a cursor is in an index on disk.
struct DiskPlace {
    index_id: IndexId,
    kind: IteratorKind,
    key: Vec<u8>,
    part_count: u32,
    last: Option<Tuple>,
    /// Rows that were read ahead, the next one last. Good while the space is not written to, for the transaction that remembers them.
    ahead: Vec<Tuple>,
    /// Of the space, and of what the transaction lays over it.
    version: (u64, u64),
    txn_id: Option<u64>,
    /// How many are read at once next time.
    batch: usize,
    is_done: bool,
}

impl DiskPlace {
    /// Rows that are read ahead at most.
    const BATCH_MAX: usize = 64;

    fn new(request: &ScanRequest<'_>) -> Self {
        let ScanRequest { index_id, kind, key, .. } = *request;
        let (part_count, key) = (key.part_count, key.parts.to_vec());
        let (last, ahead, version, txn_id, batch, is_done) = (None, Vec::new(), (0, 0), None, 1, false);
        DiskPlace { index_id, kind, key, part_count, last, ahead, version, txn_id, batch, is_done }
    }

    fn next(&mut self, database: &Database, context: &Context, space: &Rc<Space>) -> Result<Option<Tuple>> {
        let Some(disk) = space.disk() else { return Ok(None) };
        // A transaction may have been rolled back meanwhile, with what it had written.
        database.enter(context)?;
        if self.is_done {
            return Ok(None);
        }
        database.check_shown(context, space)?;
        let txn_id = database.txn_id(context);
        let version_now =
            || (disk.version(), database.layer(context, space).map_or(0, |layer| layer.borrow().version()));
        if version_now() != self.version || txn_id != self.txn_id {
            self.ahead.clear();
        }
        if self.ahead.is_empty() {
            self.ahead = self.read_ahead(database, context, space, disk)?;
            self.ahead.reverse();
            debug_assert!(self.ahead.len() <= self.batch, "no more is read ahead than was asked for");
            (self.version, self.txn_id) = (version_now(), txn_id);
            self.batch = (self.batch * 2).min(Self::BATCH_MAX);
        }
        context.see(database.written(space));
        self.last = self.ahead.pop();
        self.is_done = self.last.is_none();
        Ok(self.last.clone())
    }

    /// The next rows behind the last one. May wait.
    fn read_ahead(
        &self,
        database: &Database,
        context: &Context,
        space: &Rc<Space>,
        disk: &Rc<LsmSpace>,
    ) -> Result<Vec<Tuple>> {
        database.check_space_access(context, space, Privileges::READ)?;
        database.note_disk(context);
        let key = Key { parts: &self.key, part_count: self.part_count };
        let mut scan = match (&self.last, database.disk_view(context, space)) {
            (Some(last), view) => disk.scan_after(view.as_ref(), self.index_id, self.kind, key, last.data()),
            (None, Some(view)) => disk.scan_view(&view, self.index_id, self.kind, key),
            (None, None) => disk.scan(self.index_id, self.kind, key),
        };
        context.see(database.written(space));
        let format_id = space.format().id();
        let tuple_of = |row: &DiskRow| {
            let made = row.with(|row| Tuple::new(&database.loose_rows, format_id, row));
            made.map_err(|error: OutOfMemory| -> Error { database.storage_error(error.into(), space) })
        };
        let mut rows = Vec::new();
        let mut fetched = Vec::new();
        let request = ScanRequest::new(self.index_id, self.kind, key);
        let mut own = database.own_rows(context, space, &request, self.last.as_ref());
        let take_own = |rows: &mut Vec<Tuple>, own: &mut OwnRows, row: Option<&[u8]>| {
            while rows.len() < self.batch
                && let Some(row) = own.take_before(row)
            {
                rows.push(row);
            }
        };
        while rows.len() < self.batch {
            match scan.next_row() {
                Ok(Some(row)) => {
                    let mut is_hidden = false;
                    if let Some(own) = &mut own {
                        row.with(|row| {
                            take_own(&mut rows, own, Some(row));
                            is_hidden = own.hides(row);
                        });
                    }
                    if !is_hidden && rows.len() < self.batch {
                        rows.push(tuple_of(&row)?);
                    }
                }
                Ok(None) => {
                    if let Some(own) = &mut own {
                        take_own(&mut rows, own, None);
                    }
                    break;
                }
                Err(Stop::Failed(error)) => return Err(database.read_error(&error)),
                // What there is will do.
                Err(Stop::Wait(_)) if !rows.is_empty() => break,
                Err(Stop::Wait(need)) => {
                    database.remember_passed(context, space, self.index_id, &scan);
                    keep(&mut fetched, true, database.wait_for(context, need)?);
                    context.see(database.written(space));
                    database.check_shown(context, space)?;
                    match database.disk_view(context, space) {
                        Some(view) => scan.seek_in_view(&view),
                        None => scan.seek_again(),
                    }
                    // The wait may have made the writes of the transaction private.
                    own = own.or_else(|| database.own_rows(context, space, &request, self.last.as_ref()));
                }
            }
        }
        database.remember_passed(context, space, self.index_id, &scan);
        Ok(rows)
    }
}
