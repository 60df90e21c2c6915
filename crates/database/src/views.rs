//! Readers that never abort: a transaction that has only read goes on in the state that it saw.
//!
//! The idea. As long as nothing that a suspended transaction has read is changed, the present state is one that it may go on in. The first
//! commit that changes something of it would doom it (`isolation.rs`). If it has written nothing, it gets a *view* instead: the state just
//! before that commit. It reads on there for as long as it likes, and commits nothing; a write that it tries is the conflict.
//!
//! ```text
//! read a | wait                        | read b           commit
//!        | others: a' b' commit        | b of before, not b'
//!        ^ from here on in a view of the state before that commit
//! ```
//!
//! Rows in memory: what commits change while there are views is passed on in a list, each row as it was. A view lays over each space the
//! rows that were there and hides those that came ([`Layer`]), which it brings up to date when it reads. So a commit pays for the list
//! alone, however many views there are. Rows on disk: memtables and runs of that moment are kept ([`DiskView`]).
//!
//! Transactions that the same commit has met share a view. What views hold in memory is bounded (`read_view_memory`), and so is their number:
//! at the bound the oldest one ends, and its readers get `ReadViewAborted`.

use crate::catalog::Space;
use crate::database::Database;
use crate::error::{Error, ErrorCode, Result};
use crate::forks::Aside;
use crate::private::Layer;
use crate::reads::Reads;
use crate::session::Context;
use crate::statistics::increment;
use crate::txn::Statement;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::{Rc, Weak};
use storage::lsm::DiskView;
use storage::{IteratorKind, Key, Rows, ScanRequest};
use tuple::{IndexId, SpaceId, Tuple};

/// Views of different moments. One more ends the oldest.
const VIEWS_MAX: usize = 128;
/// Rows that views may have to catch up with. Whoever commits more brings the view that is furthest behind nearer.
const PASSED_MAX: usize = 32_768;
/// So many of them at a time.
const CATCH_UP: usize = 256;
/// A random row of a view is one of the first so many.
const RANDOM_OF: u64 = 64;
/// What a row in the list, or one laid over a space, costs besides its bytes.
const ROW_BYTES: usize = 96;

/// The spaces on disk at a moment.
pub(crate) type Moment = BTreeMap<SpaceId, Rc<DiskView>>;

/// A row that was changed while there were views: as it was, or, if it came, the one that came.
struct Passed {
    space: Rc<Space>,
    row: Tuple,
    was_there: bool,
}

/// See the head of this file.
pub(crate) struct View {
    number: u64,
    views: Rc<Views>,
    disk: RefCell<Moment>,
    /// What lies over the spaces in memory; by number, for the order in which they go.
    layers: RefCell<BTreeMap<SpaceId, Rc<RefCell<Layer>>>>,
    /// So far of the list of changes is in the layers.
    seen: Cell<u64>,
    /// Spaces that have become others.
    broken: RefCell<BTreeSet<SpaceId>>,
    bytes: Cell<usize>,
    /// It has given back what it held, and shows nothing any more.
    is_over: Cell<bool>,
}

/// A view and its transactions.
struct Open {
    view: Weak<View>,
    readers: Vec<Weak<Reads>>,
}

/// All views.
#[derive(Default)]
pub(crate) struct Views {
    /// Oldest first.
    open: RefCell<BTreeMap<u64, Open>>,
    last_number: Cell<u64>,
    passed: RefCell<VecDeque<Passed>>,
    /// Number of the first in the list, counted from the start.
    first: Cell<u64>,
    passed_bytes: Cell<usize>,
    layer_bytes: Cell<usize>,
    /// Of memtables that only views have, when it was looked at last, and how many had been dumped then.
    disk_bytes: Cell<(usize, u64)>,
    ended: Cell<u64>,
}

/// What views hold, for those who watch it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ViewCounts {
    /// Views that are open.
    pub open: usize,
    /// Bytes that they hold.
    pub bytes: usize,
    /// Views that were ended at a bound since the start.
    pub ended: u64,
}

impl Views {
    pub(crate) fn are_none(&self) -> bool {
        self.open.borrow().is_empty()
    }

    fn bytes(&self) -> usize {
        self.passed_bytes.get() + self.layer_bytes.get() + self.disk_bytes.get().0
    }

    fn end_of_list(&self) -> u64 {
        self.first.get() + self.passed.borrow().len() as u64
    }

    /// Opens a view for transactions that have read what is about to change.
    fn open(self: &Rc<Self>, disk: Moment, readers: &[Rc<Reads>]) {
        let number = self.last_number.get() + 1;
        self.last_number.set(number);
        let view = Rc::new(View {
            number,
            views: Rc::clone(self),
            disk: RefCell::new(disk),
            layers: RefCell::default(),
            seen: Cell::new(self.end_of_list()),
            broken: RefCell::default(),
            bytes: Cell::new(0),
            is_over: Cell::new(false),
        });
        let open = Open { view: Rc::downgrade(&view), readers: readers.iter().map(Rc::downgrade).collect() };
        self.open.borrow_mut().insert(number, open);
        readers.iter().for_each(|reads| reads.set_view(Rc::clone(&view)));
    }

    /// Passes a change on. Of rows on disk views have their own.
    fn pass(&self, statement: &Statement) {
        let (Rows::Memory(_), change) = (&statement.space.rows, &statement.change) else { return };
        let Some(row) = change.old.as_ref().or(change.new.as_ref()) else { return };
        self.passed_bytes.set(self.passed_bytes.get() + row.data().len() + ROW_BYTES);
        self.passed.borrow_mut().push_back(Passed {
            space: Rc::clone(&statement.space),
            row: row.clone(),
            was_there: change.old.is_some(),
        });
    }

    /// Forgets of the list what no view needs.
    fn trim(&self) {
        let seen = |open: &Open| open.view.upgrade().map(|view| view.seen.get());
        let needed = self.open.borrow().values().filter_map(seen).min().unwrap_or(u64::MAX);
        let mut gone = Vec::new();
        let mut passed = self.passed.borrow_mut();
        while self.first.get() < needed
            && let Some(row) = passed.pop_front()
        {
            self.first.set(self.first.get() + 1);
            self.passed_bytes.set(self.passed_bytes.get() - row.row.data().len() - ROW_BYTES);
            gone.push(row);
        }
    }

    /// The view that is furthest behind.
    fn furthest_behind(&self) -> Option<Rc<View>> {
        let open = self.open.borrow();
        open.values().filter_map(|open| open.view.upgrade()).min_by_key(|view| view.seen.get())
    }

    /// Ends the oldest view. False if there is none.
    fn end_oldest(&self) -> bool {
        let Some((_, open)) = self.open.borrow_mut().pop_first() else { return false };
        open.readers.iter().filter_map(Weak::upgrade).for_each(|reads| reads.end_view());
        if let Some(view) = open.view.upgrade() {
            view.clear();
        }
        increment(&self.ended);
        self.trim();
        true
    }

    /// A space has become another one: views cannot show it any more.
    pub(crate) fn break_space(&self, space_id: SpaceId) {
        for view in self.open.borrow().values().filter_map(|open| open.view.upgrade()) {
            view.broken.borrow_mut().insert(space_id);
        }
    }

    /// Ends all views with a conflict.
    pub(crate) fn doom_all(&self) {
        let open = std::mem::take(&mut *self.open.borrow_mut());
        for open in open.values() {
            open.readers.iter().filter_map(Weak::upgrade).for_each(|reads| reads.doom());
            open.view.upgrade().iter().for_each(|view| view.clear());
        }
        self.trim();
    }
}

impl View {
    /// Gives back what it holds.
    fn clear(&self) {
        self.is_over.set(true);
        self.disk.take();
        self.layers.take();
        self.views.layer_bytes.set(self.views.layer_bytes.get() - self.bytes.take());
    }

    /// Takes in some of the list of changes.
    fn catch_up(&self, database: &Database, max: usize) {
        if self.is_over.get() {
            return;
        }
        let passed = self.views.passed.borrow();
        let from = (self.seen.get() - self.views.first.get()) as usize;
        for Passed { space, row, was_there } in passed.iter().skip(from).take(max) {
            self.seen.set(self.seen.get() + 1);
            let mut layers = self.layers.borrow_mut();
            let layer = layers.entry(space.id).or_insert_with(|| Rc::new(RefCell::new(Layer::new(database, space))));
            match layer.borrow_mut().keep_oldest(row, *was_there) {
                Ok(true) => {
                    let bytes = row.data().len() + ROW_BYTES;
                    self.bytes.set(self.bytes.get() + bytes);
                    self.views.layer_bytes.set(self.views.layer_bytes.get() + bytes);
                }
                Ok(false) => {}
                // No memory for it: the space cannot be shown.
                Err(_) => _ = self.broken.borrow_mut().insert(space.id),
            }
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.clear();
        self.views.open.borrow_mut().remove(&self.number);
        self.views.trim();
    }
}

impl Database {
    /// Statements are committed: the suspended transactions that depend on what they have changed go on in a view of the state before, or have
    /// no chance any more. Called before anybody else has a turn.
    #[inline]
    pub(crate) fn tell_readers(&self, statements: &mut [Statement]) {
        self.tell_readers_of_all(statements, None);
    }

    /// The same of a transaction whose rows may have been put in second states of their spaces.
    #[inline]
    pub(crate) fn tell_readers_of_all(&self, statements: &mut [Statement], aside: Option<&Aside>) {
        if self.suspended() > 0 {
            self.tell_readers_of(statements, aside);
        }
    }

    #[cold]
    fn tell_readers_of(&self, statements: &mut [Statement], aside: Option<&Aside>) {
        match aside {
            Some(aside) => self.doom_readers_of_many(statements, aside),
            None => statements.iter().for_each(|statement| self.doom_readers(&statement.space, &statement.change)),
        }
        self.follow_in_forks(statements);
        let readers = &self.isolation.readers;
        let hit = readers.take_hit();
        let views = &readers.views;
        if !hit.is_empty() {
            let changes_schema = statements.iter().any(|statement| statement.effect.is_some());
            #[cfg(feature = "planted-bugs")]
            if runtime::planted::is_planted(runtime::planted::Plant::ReaderGoesOn) {
                // A view of the moment after.
                return views.open(self.moment(&mut []), &hit);
            }
            match changes_schema {
                true => hit.iter().for_each(|reads| reads.doom()),
                false => views.open(self.moment(statements), &hit),
            }
        }
        if !views.are_none() {
            statements.iter().for_each(|statement| views.pass(statement));
            self.bound_views();
        }
    }

    /// The spaces on disk as they are without these statements, which are applied.
    fn moment(&self, statements: &mut [Statement]) -> Moment {
        for Statement { space, change, .. } in statements.iter().rev().filter(|one| one.space.rows.may_wait()) {
            space.rows.undo(change);
        }
        let spaces = self.catalog.spaces();
        let moment = spaces.iter().filter_map(|space| Some((space.id, space.disk()?.view()))).collect();
        for Statement { space, change, .. } in statements.iter_mut().filter(|one| one.space.rows.may_wait()) {
            space.rows.redo(change);
        }
        moment
    }

    /// Ends views until the rest keeps to the bounds.
    pub(crate) fn bound_views(&self) {
        let views = &self.isolation.readers.views;
        let max = self.config.borrow().read_view_memory as usize;
        // A view holds each row once, however often it was changed; the list does not.
        let is_long = |length: usize| length > PASSED_MAX || length > 0 && views.bytes() > max;
        while is_long(views.passed.borrow().len())
            && let Some(view) = views.furthest_behind()
        {
            view.catch_up(self, CATCH_UP);
            views.trim();
        }
        while views.open.borrow().len() > VIEWS_MAX || views.bytes() > max {
            if !views.end_oldest() {
                break;
            }
            self.note_disk_of_views(u64::MAX);
            let (count, bytes) = (views.open.borrow().len(), views.bytes());
            tracing::warn!(
                "the oldest read view is ended: views hold {bytes} bytes now (read_view_memory: {max}), and there are {count} of {VIEWS_MAX}"
            );
        }
    }

    /// Counts what views keep of memtables, if there are others than at the last look.
    fn note_disk_of_views(&self, discharged: u64) {
        let views = &self.isolation.readers.views;
        let open: Vec<_> = views.open.borrow().values().filter_map(|open| open.view.upgrade()).collect();
        let of_view = |view: &Rc<View>| view.disk.borrow().values().map(|disk| disk.held_bytes()).sum::<usize>();
        views.disk_bytes.set((open.iter().map(of_view).sum(), discharged));
    }

    /// Looks between transactions whether views keep more memtables than before.
    pub(crate) fn turn_views(&self) {
        let views = &self.isolation.readers.views;
        let has_none = views.are_none();
        if has_none && views.disk_bytes.get().0 == 0 {
            return;
        }
        let discharged = self.disk_engine().map_or(0, |engine| engine.discharged());
        if has_none || views.disk_bytes.get().1 != discharged {
            self.note_disk_of_views(discharged);
            self.bound_views();
        }
    }

    /// What views hold now.
    pub fn view_counts(&self) -> ViewCounts {
        let views = &self.isolation.readers.views;
        ViewCounts { open: views.open.borrow().len(), bytes: views.bytes(), ended: views.ended.get() }
    }

    /// True if the open transaction goes on in the state that it saw, and not in the present one.
    pub fn is_in_view(&self, context: &Context) -> bool {
        let txn = context.txn.borrow();
        txn.as_ref().and_then(|txn| txn.reads.as_ref()).is_some_and(|reads| reads.view().is_some())
    }

    /// The view that the open transaction reads in.
    #[inline]
    pub(crate) fn view(&self, context: &Context) -> Option<Rc<View>> {
        context.txn.borrow().as_ref()?.view.clone()
    }

    /// What a view shows of a space on disk.
    #[inline]
    pub(crate) fn disk_view(&self, context: &Context, space: &Space) -> Option<Rc<DiskView>> {
        self.view(context)?.disk.borrow().get(&space.id).cloned()
    }

    /// What a view lays over a space in memory.
    pub(crate) fn layer_of_view(&self, view: &View, space: &Space) -> Option<Rc<RefCell<Layer>>> {
        space.rows.memory()?;
        view.catch_up(self, usize::MAX);
        let mut layers = view.layers.borrow_mut();
        let layer = layers.entry(space.id).or_insert_with(|| Rc::new(RefCell::new(Layer::new(self, space))));
        Some(Rc::clone(layer))
    }

    /// A space is about to be read. Errors: the open transaction reads in a view that cannot show it, because the space has become another
    /// one; it is rolled back then.
    #[inline]
    pub(crate) fn check_shown(&self, context: &Context, space: &Space) -> Result<()> {
        match self.view(context) {
            Some(view) => self.check_shown_in(&view, context, space),
            None => Ok(()),
        }
    }

    #[cold]
    fn check_shown_in(&self, view: &View, context: &Context, space: &Space) -> Result<()> {
        if view.is_over.get() {
            self.abort_txn(context, ErrorCode::ReadViewAborted);
            return Err(Error::new(ErrorCode::ReadViewAborted, &[]));
        }
        if space.rows.memory().is_some() {
            view.catch_up(self, usize::MAX);
        }
        let is_missing = space.rows.may_wait() && !view.disk.borrow().contains_key(&space.id);
        if is_missing || view.broken.borrow().contains(&space.id) {
            return Err(self.refuse_in_view(context));
        }
        Ok(())
    }

    /// A row of an index in memory, chosen by `seed`; `None` if there is none. After a check of the right to read.
    ///
    /// Errors: as `select`.
    pub fn random(&self, context: &Context, space: &Rc<Space>, index_id: IndexId, seed: u64) -> Result<Option<Tuple>> {
        self.bring_in_place(context)?;
        self.check_shown(context, space)?;
        context.see(self.written(space));
        if self.view(context).is_some() {
            // Any of the first ones.
            let first = ScanRequest { limit: RANDOM_OF, ..ScanRequest::new(index_id, IteratorKind::All, Key::EMPTY) };
            let mut rows = self.select_tuples(context, space, &first)?;
            let at = seed.checked_rem(rows.len() as u64).map(|at| at as usize);
            return Ok(at.map(|at| rows.swap_remove(at)));
        }
        self.remember_all(context, space, index_id);
        Ok(self.some_row(context, space, index_id, seed))
    }

    /// The open transaction reads in a view and tries what needs the present state: it is rolled back.
    #[cold]
    pub(crate) fn refuse_in_view(&self, context: &Context) -> Error {
        increment(&self.statistics.conflicts);
        self.abort_txn(context, ErrorCode::TransactionConflict);
        Error::new(ErrorCode::TransactionConflict, &[])
    }

    /// Errors: the open transaction reads in a view, and something is to be done that needs the present state; it is rolled back then.
    #[inline]
    pub(crate) fn check_not_in_view(&self, context: &Context) -> Result<()> {
        match self.view(context) {
            Some(_) => Err(self.refuse_in_view(context)),
            None => Ok(()),
        }
    }
}
