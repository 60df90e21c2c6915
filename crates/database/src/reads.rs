//! What transactions have seen, and who has seen a key that is changed.

use crate::interval_set::IntervalSet;
use crate::views::{View, Views};
use hashbrown::HashSet;
use std::cell::{Cell, RefCell};
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::rc::{Rc, Weak};
use tuple::{IndexId, SpaceId};

/// Keys of unique indexes that one transaction remembers one by one; more go into its intervals, which are bounded.
const POINTS_MAX: usize = 10_000;

/// A full key of a unique index, by its hash: two that share one are taken for the same, which dooms one transaction too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Point(u64);

impl Point {
    /// `key`: ordered bytes of the declared parts.
    pub(crate) fn new(space_id: SpaceId, index_id: IndexId, key: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        (space_id, index_id, key).hash(&mut hasher);
        Point(hasher.finish())
    }
}

/// What one transaction depends on.
pub(crate) struct Reads {
    txn_id: u64,
    readers: Rc<Readers>,
    points: RefCell<BTreeSet<Point>>,
    /// Of each space that it has read or changed: what it has seen in each index besides, as bytes of the index's whole order.
    spaces: RefCell<BTreeMap<SpaceId, BTreeMap<IndexId, IntervalSet>>>,
    is_suspended: Cell<bool>,
    /// It has written nothing, and is not about to.
    is_reader: Cell<bool>,
    fate: Cell<Fate>,
    /// The state that it goes on in, if that is not the present one.
    view: RefCell<Option<Rc<View>>>,
}

/// What has become of a transaction that was suspended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fate {
    #[default]
    Alive,
    /// A reader: something that it has seen is about to change.
    Hit,
    /// Something that it depends on was changed by another transaction.
    Doomed,
    /// Its view was ended at a bound.
    ViewEnded,
}

/// All transactions that have seen something, by what they have seen.
#[derive(Default)]
pub(crate) struct Readers {
    by_point: RefCell<BTreeMap<(Point, u64), Weak<Reads>>>,
    /// By space and number of the transaction.
    by_space: RefCell<BTreeMap<(SpaceId, u64), Weak<Reads>>>,
    /// The same of those that have intervals there.
    by_range: RefCell<BTreeMap<(SpaceId, u64), Weak<Reads>>>,
    suspended: Cell<usize>,
    /// Readers that the commit which is under way has met.
    hit: RefCell<Vec<Rc<Reads>>>,
    pub(crate) views: Rc<Views>,
}

impl Reads {
    pub(crate) fn new(txn_id: u64, readers: &Rc<Readers>) -> Rc<Self> {
        Rc::new(Reads {
            txn_id,
            readers: Rc::clone(readers),
            points: RefCell::default(),
            spaces: RefCell::default(),
            is_suspended: Cell::new(false),
            is_reader: Cell::new(false),
            fate: Cell::default(),
            view: RefCell::default(),
        })
    }

    /// Remembers that a space was touched at all.
    pub(crate) fn touch(self: &Rc<Self>, space_id: SpaceId) {
        if let std::collections::btree_map::Entry::Vacant(entry) = self.spaces.borrow_mut().entry(space_id) {
            entry.insert(BTreeMap::new());
            self.readers.by_space.borrow_mut().insert((space_id, self.txn_id), Rc::downgrade(self));
        }
    }

    /// Remembers a full key of a unique index: ordered bytes of its declared parts.
    pub(crate) fn add_key(self: &Rc<Self>, space_id: SpaceId, index_id: IndexId, key: Vec<u8>) {
        let point = Point::new(space_id, index_id, &key);
        let is_full = self.points.borrow().len() >= POINTS_MAX;
        if is_full && !self.points.borrow().contains(&point) {
            // Rows may have more in the index's order, behind the declared parts.
            let high = above(key.clone());
            return self.add_range(space_id, index_id, key, Some(high));
        }
        self.touch(space_id);
        if self.points.borrow_mut().insert(point) {
            self.readers.by_point.borrow_mut().insert((point, self.txn_id), Rc::downgrade(self));
        }
    }

    /// Remembers what lies between two keys of an index's whole order, both included; to the end if there is no `high`.
    pub(crate) fn add_range(
        self: &Rc<Self>,
        space_id: SpaceId,
        index_id: IndexId,
        low: Vec<u8>,
        high: Option<Vec<u8>>,
    ) {
        self.touch(space_id);
        let mut spaces = self.spaces.borrow_mut();
        let indexes = spaces.entry(space_id).or_default();
        if indexes.is_empty() {
            self.readers.by_range.borrow_mut().insert((space_id, self.txn_id), Rc::downgrade(self));
        }
        indexes.entry(index_id).or_default().insert(low, high);
    }

    /// From now on who changes what it has seen dooms it, or, if it is a reader, has it go on in a view.
    pub(crate) fn suspend(&self, is_reader: bool) {
        assert!(!self.is_suspended.replace(true), "a transaction is suspended once");
        self.is_reader.set(is_reader);
        self.readers.suspended.set(self.readers.suspended.get() + 1);
    }

    /// Ends that. What has become of it meanwhile.
    pub(crate) fn resume(&self) -> Fate {
        if self.is_suspended.replace(false) {
            let suspended = self.readers.suspended.get();
            assert!(suspended > 0, "whoever is resumed was counted");
            self.readers.suspended.set(suspended - 1);
        }
        self.fate.get()
    }

    /// What has become of it so far.
    pub(crate) fn fate(&self) -> Fate {
        self.fate.get()
    }

    /// Something that it has seen is changed by a commit.
    fn meet(self: &Rc<Self>) {
        if !self.is_suspended.get() || self.fate.get() != Fate::Alive || self.view.borrow().is_some() {
            return;
        }
        if self.is_reader.get() {
            self.fate.set(Fate::Hit);
            self.readers.hit.borrow_mut().push(Rc::clone(self));
        } else {
            self.fate.set(Fate::Doomed);
        }
    }

    /// It depends on what is no more.
    pub(crate) fn doom(&self) {
        if self.is_suspended.get() {
            self.fate.set(Fate::Doomed);
            self.view.take();
        }
    }

    /// It goes on in a view: what it has seen stays there.
    pub(crate) fn set_view(&self, view: Rc<View>) {
        self.forget();
        self.fate.set(Fate::Alive);
        *self.view.borrow_mut() = Some(view);
    }

    /// The view that it goes on in, if any.
    pub(crate) fn view(&self) -> Option<Rc<View>> {
        self.view.borrow().clone()
    }

    /// Its view is ended.
    pub(crate) fn end_view(&self) {
        self.fate.set(Fate::ViewEnded);
        self.view.take();
    }

    fn forget(&self) {
        let mut by_point = self.readers.by_point.borrow_mut();
        for point in self.points.take() {
            by_point.remove(&(point, self.txn_id));
        }
        let (mut by_space, mut by_range) = (self.readers.by_space.borrow_mut(), self.readers.by_range.borrow_mut());
        for (space_id, _) in self.spaces.take() {
            by_space.remove(&(space_id, self.txn_id));
            by_range.remove(&(space_id, self.txn_id));
        }
    }
}

impl Drop for Reads {
    fn drop(&mut self) {
        self.resume();
        self.forget();
    }
}

/// The last key that begins with these bytes: no value of a key begins with 0xff.
pub(crate) fn above(mut prefix: Vec<u8>) -> Vec<u8> {
    prefix.push(0xff);
    prefix
}

impl Readers {
    /// Transactions that are suspended.
    pub(crate) fn suspended(&self) -> usize {
        self.suspended.get()
    }

    /// Someone has seen more of a space than single keys.
    pub(crate) fn has_ranges(&self, space_id: SpaceId) -> bool {
        self.by_range.borrow().range((space_id, 0)..=(space_id, u64::MAX)).next().is_some()
    }

    /// The readers that were met since the last call.
    pub(crate) fn take_hit(&self) -> Vec<Rc<Reads>> {
        self.hit.take()
    }

    /// Meets those that depend on a full key of a unique index.
    pub(crate) fn meet_key(&self, point: Point) {
        for (_, reads) in self.by_point.borrow().range((point, 0)..=(point, u64::MAX)) {
            reads.upgrade().iter().for_each(|reads| reads.meet());
        }
    }

    /// Meets those that depend on one of many keys in a space.
    pub(crate) fn meet_keys(&self, space_id: SpaceId, points: &HashSet<Point>) {
        for (_, reads) in self.by_space.borrow().range((space_id, 0)..=(space_id, u64::MAX)) {
            let Some(reads) = reads.upgrade() else { continue };
            if reads.points.borrow().iter().any(|point| points.contains(point)) {
                reads.meet();
            }
        }
    }

    /// Meets those whose intervals of an index have a key, or that have any there if the key has no ordered bytes.
    pub(crate) fn meet_ranges(&self, space_id: SpaceId, index_id: IndexId, key: Option<&[u8]>) {
        for (_, reads) in self.by_range.borrow().range((space_id, 0)..=(space_id, u64::MAX)) {
            let Some(reads) = reads.upgrade() else { continue };
            let spaces = reads.spaces.borrow();
            let seen = spaces.get(&space_id).and_then(|indexes| indexes.get(&index_id));
            if seen.is_some_and(|seen| key.is_none_or(|key| seen.contains(key))) {
                reads.meet();
            }
        }
    }

    /// Dooms those that have touched a space.
    pub(crate) fn doom_space(&self, space_id: SpaceId) {
        for (_, reads) in self.by_space.borrow().range((space_id, 0)..=(space_id, u64::MAX)) {
            reads.upgrade().iter().for_each(|reads| reads.doom());
        }
        self.views.break_space(space_id);
    }

    /// Dooms all.
    pub(crate) fn doom_all(&self) {
        self.by_space.borrow().values().filter_map(Weak::upgrade).for_each(|reads| reads.doom());
        self.views.doom_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Vec<u8> {
        vec![1, (number >> 8) as u8, number as u8]
    }

    fn change(readers: &Readers, space_id: SpaceId, number: usize) {
        readers.meet_key(Point::new(space_id, IndexId::PRIMARY, &key(number)));
        if readers.has_ranges(space_id) {
            readers.meet_ranges(space_id, IndexId::PRIMARY, Some(&key(number)));
        }
    }

    #[test]
    fn a_transaction_that_has_seen_more_than_is_kept_one_by_one_misses_no_change() {
        let readers = Rc::<Readers>::default();
        let count = POINTS_MAX + 2_000;
        for number in [0, POINTS_MAX - 1, POINTS_MAX, count - 1] {
            let reads = Reads::new(1, &readers);
            (0..count).for_each(|number| reads.add_key(SpaceId(512), IndexId::PRIMARY, key(number)));
            assert_eq!(reads.points.borrow().len(), POINTS_MAX);
            reads.suspend(false);
            change(&readers, SpaceId(512), count + 1);
            change(&readers, SpaceId(513), number);
            assert_eq!(reads.fate.get(), Fate::Alive);
            change(&readers, SpaceId(512), number);
            assert_eq!(reads.resume(), Fate::Doomed, "key {number}");
        }
        assert_eq!(readers.suspended(), 0);
    }

    #[test]
    fn nothing_is_left_of_a_transaction_that_is_over() {
        let readers = Rc::<Readers>::default();
        let (one, other) = (Reads::new(1, &readers), Reads::new(2, &readers));
        for reads in [&one, &other] {
            reads.touch(SpaceId(600));
            reads.add_key(SpaceId(512), IndexId::PRIMARY, key(1));
            reads.add_range(SpaceId(512), IndexId(1), key(1), None);
            reads.suspend(false);
        }
        assert_eq!(readers.suspended(), 2);
        drop(one);
        assert_eq!(readers.suspended(), 1);
        readers.doom_space(SpaceId(600));
        assert_eq!(other.fate.get(), Fate::Doomed);
        drop(other);
        assert_eq!(readers.suspended(), 0);
        assert!(readers.by_point.borrow().is_empty() && readers.by_range.borrow().is_empty());
        assert!(readers.by_space.borrow().is_empty());
    }
}
