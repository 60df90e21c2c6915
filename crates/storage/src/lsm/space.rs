//! A space on disk: its trees and the statements that keep them alike.
//!
//! A statement first looks (`get`, `conflict`), as far as it needs to, and stops with [`Stop::Wait`] where something is not in memory. What it
//! then does to the memtables (`put`, `upsert`) cannot fail and is rolled back with what it returns.

use super::build::Building;
use super::engine::LsmEngine;
use super::entry::{Entry, EntryKind};
use super::error::LsmError;
use super::filter::key_hash;
use super::manifest::TreeState;
use super::memtable::MemtableChange;
use super::reads::Stop;
use super::scan::{Bounds, Scan};
use super::tree::{LsmTree, RowRef, TreeDef, TreeOptions};
use super::upsert::{RowUpserter, encode_operand};
use super::view::ViewOfTree;
use crate::engine::{IndexDef, Key as DiskKey};
use crate::entries::{Entries, KeySource};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use tuple::{Format, IndexId, Lsn, SpaceId, msgpack};

/// Statements whose operations one merge operand takes. The next one looks for its row.
const OPERAND_STATEMENTS_MAX: usize = 32;

/// A value of a space, where it was found.
pub struct DiskRow {
    pub(super) row: RowRef,
}

impl DiskRow {
    /// Hands the row's bytes to `read`.
    pub fn with<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        self.row.with(read)
    }
}

/// What a statement did to the memtables of a space, so that it can be rolled back and applied again.
#[derive(Clone, Default)]
pub struct DiskChange {
    changes: Vec<(Rc<LsmTree>, MemtableChange)>,
    blind_upsert: Option<BlindUpsert>,
}

/// An upsert that did not look for its row.
#[derive(Clone)]
struct BlindUpsert {
    row: Vec<u8>,
    operations: Vec<u8>,
    index_base: u32,
}

impl DiskChange {
    /// True if it did nothing.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    pub(crate) fn is_blind_upsert(&self) -> bool {
        self.blind_upsert.is_some()
    }

    /// Hands over the keys that were written: number of the index, whether it is unique, ordered bytes of the index's own parts, and of its
    /// whole order.
    pub fn for_each_key(&self, mut visit: impl FnMut(IndexId, bool, &[u8], &[u8])) {
        for (tree, change) in &self.changes {
            change.memtable.read(change.new, |entry, own| {
                visit(tree.index_id, tree.is_unique, &entry.key[..own], entry.key);
            });
        }
    }
}

/// The trees of one incarnation of a space's rows, taken out of use.
pub struct DetachedTrees {
    trees: Vec<Rc<LsmTree>>,
}

/// See the head of this file.
pub struct LsmSpace {
    pub(super) engine: Rc<LsmEngine>,
    id: SpaceId,
    /// By index id; the primary first.
    pub(super) indexes: RefCell<Vec<DiskIndex>>,
    format: RefCell<Arc<Format>>,
    /// New indexes that are being filled.
    building: RefCell<Option<Rc<Building>>>,
    /// Changes with every write.
    version: Cell<u64>,
    scratch: RefCell<Scratch>,
}

#[derive(Default)]
struct Scratch {
    key: Vec<u8>,
    old_key: Vec<u8>,
    value: Vec<u8>,
}

pub(crate) struct DiskIndex {
    pub(crate) def: IndexDef,
    pub(crate) tree: Rc<LsmTree>,
}

impl DiskIndex {
    /// Calls `visit` with the ordered bytes of each entry of a row; `scratch` holds those of an ordinary index.
    pub(crate) fn for_each_entry<E>(
        &self,
        row: &[u8],
        scratch: &mut Vec<u8>,
        mut visit: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        match &self.def.source {
            KeySource::Fields => {
                self.tree.key_of(row, scratch);
                visit(scratch)
            }
            KeySource::Entries(entries) => entries.ordered_of(row).iter().try_for_each(|key| visit(key)),
        }
    }
}

impl LsmSpace {
    /// Has all runs of an index that there are become one in each range, in the background. What is in memory stays there. Nothing happens without
    /// such an index.
    pub fn compact(&self, index_id: IndexId) {
        if let Some(tree) = self.trees().iter().find(|tree| tree.index_id == index_id) {
            tree.compact_below.set(self.engine.place.next_id());
            self.engine.has_news.set(true);
            (self.engine.environment.wake)();
        }
    }

    /// A space without indexes. Rows are of this format.
    pub fn new(engine: &Rc<LsmEngine>, id: SpaceId, format: Format) -> Rc<Self> {
        let space = Rc::new(LsmSpace {
            engine: Rc::clone(engine),
            id,
            indexes: RefCell::default(),
            format: RefCell::new(Arc::new(format)),
            building: RefCell::new(None),
            version: Cell::new(0),
            scratch: RefCell::default(),
        });
        engine.register(&space);
        space
    }

    /// Number of the space.
    pub fn id(&self) -> SpaceId {
        self.id
    }

    /// The engine it belongs to.
    pub fn engine(&self) -> &Rc<LsmEngine> {
        &self.engine
    }

    /// Changes with every write: what was read in one go is as it was while this stays.
    pub fn version(&self) -> u64 {
        self.version.get()
    }

    pub(crate) fn trees(&self) -> Vec<Rc<LsmTree>> {
        self.indexes.borrow().iter().map(|index| Rc::clone(&index.tree)).collect()
    }

    pub(crate) fn building(&self) -> Option<Rc<Building>> {
        self.building.borrow().clone()
    }

    pub(crate) fn set_building(&self, building: Option<Rc<Building>>) {
        *self.building.borrow_mut() = building;
    }

    /// True while new indexes are being filled, or rows looked at for a format.
    pub fn is_building(&self) -> bool {
        self.building.borrow().is_some()
    }

    /// Primary key of a row, an array.
    pub(crate) fn primary_key_of(&self, row: &[u8], out: &mut Vec<u8>) {
        if let Some(primary) = self.indexes.borrow().first() {
            primary.def.key_def.extract_key(row, out);
        }
    }

    /// Puts a tree in the place of an index, which may be new. Returns the one that had it.
    pub(crate) fn place_index(&self, def: &IndexDef, tree: &Rc<LsmTree>) -> Option<DetachedTrees> {
        let mut indexes = self.indexes.borrow_mut();
        assert!(tree.space_id == self.id && tree.index_id == def.id, "a tree has one place");
        let at = indexes.partition_point(|other| other.def.id < def.id);
        let new = DiskIndex { def: def.clone(), tree: Rc::clone(tree) };
        match indexes.get_mut(at) {
            Some(other) if other.def.id == def.id => {
                Some(DetachedTrees { trees: vec![std::mem::replace(other, new).tree] })
            }
            _ => {
                indexes.insert(at, new);
                None
            }
        }
    }

    /// Position up to which the primary index has everything in runs, if the manifest knows it.
    pub fn primary_dumped_lsn(&self) -> Option<Lsn> {
        self.primary().filter(|primary| primary.is_recorded.get()).map(|primary| primary.dumped_lsn.get())
    }

    /// Position up to which everything is in runs.
    pub fn dumped_lsn(&self) -> Lsn {
        self.indexes.borrow().iter().map(|index| index.tree.dumped_lsn.get()).min().unwrap_or(Lsn(i64::MAX))
    }

    /// Memory that a dump of the space would free.
    pub(crate) fn active_bytes(&self) -> usize {
        self.indexes.borrow().iter().map(|index| index.tree.active().charged()).sum()
    }

    /// Deletes in the primary's active memtable, if most of it is deletes.
    pub(crate) fn active_deletes(&self) -> u64 {
        let indexes = self.indexes.borrow();
        let Some(primary) = indexes.first() else { return 0 };
        let memtable = primary.tree.active();
        if memtable.deletes() > memtable.len() as u64 / 2 { memtable.deletes() } else { 0 }
    }

    // --- Definition ---

    /// Definitions of the indexes, by id.
    pub fn index_defs(&self) -> Vec<IndexDef> {
        self.indexes.borrow().iter().map(|index| index.def.clone()).collect()
    }

    /// True if nobody but the primary index has to know what is there.
    pub fn has_one_index(&self) -> bool {
        self.indexes.borrow().len() == 1 && !self.is_building()
    }

    /// True if the space has no rows for sure: it never had any in runs and has none in memtables.
    pub fn is_empty(&self) -> bool {
        self.indexes.borrow().first().is_none_or(|primary| {
            let is_bare = primary.tree.ranges().list.iter().all(|range| range.slices.is_empty());
            is_bare && primary.tree.memtables().iter().all(|memtable| memtable.is_empty())
        })
    }

    /// What new rows are like from now on.
    pub fn set_format(&self, format: Format) {
        *self.format.borrow_mut() = Arc::new(format);
        self.renew_upserters();
    }

    fn renew_upserters(&self) {
        let indexes = self.indexes.borrow();
        let Some(primary) = indexes.first() else { return };
        let upserter = Arc::new(RowUpserter::new(Arc::clone(&self.format.borrow()), &primary.def.key_def));
        *primary.tree.upserter.borrow_mut() = upserter;
    }

    /// Adds an index to a space that has no rows, or whose rows it gets from what the manifest knows. `state`: that.
    ///
    /// Errors: a run cannot be read.
    pub fn create_index(&self, def: IndexDef, options: TreeOptions, state: Option<TreeState>) -> Result<(), LsmError> {
        let tree = self.make_tree(&def, options, state)?;
        let mut indexes = self.indexes.borrow_mut();
        let at = indexes.partition_point(|other| other.def.id < def.id);
        indexes.insert(at, DiskIndex { def, tree });
        drop(indexes);
        self.renew_upserters();
        Ok(())
    }

    /// An index that `create_index` has made without its rows is one to be built anew. Until it is, it goes to no disk.
    pub fn set_incomplete(&self, index_id: IndexId) {
        if let Some(tree) = self.index(index_id) {
            tree.is_incomplete.set(true);
        }
    }

    pub(crate) fn make_tree(
        &self,
        def: &IndexDef,
        options: TreeOptions,
        state: Option<TreeState>,
    ) -> Result<Rc<LsmTree>, LsmError> {
        let order = def.order(self.indexes.borrow().first().map(|primary| &*primary.def.key_def));
        let primary = match self.indexes.borrow().first() {
            Some(primary) if def.id != 0 => Rc::clone(&primary.def.key_def),
            _ => Rc::clone(&def.key_def),
        };
        let upserter = Arc::new(RowUpserter::new(Arc::clone(&self.format.borrow()), &primary));
        let own_parts = def.key_def.part_count() as u32;
        let new = TreeDef {
            space_id: self.id,
            index_id: def.id,
            order,
            own_parts,
            is_unique: def.is_unique,
            options,
            upserter,
        };
        let Some(state) = state else {
            return Ok(LsmTree::new(self.engine.place.next_id(), new, self.engine.empty_ranges()));
        };
        let tree = LsmTree::new(state.tree_id, new, self.engine.open_ranges(&state)?);
        tree.created_lsn.set(state.created_lsn);
        tree.dumped_lsn.set(state.dumped_lsn);
        tree.is_recorded.set(true);
        Ok(tree)
    }

    /// Runs of an index are like this from now on.
    pub fn set_options(&self, index_id: IndexId, options: TreeOptions) {
        if let Some(tree) = self.index(index_id) {
            tree.options.set(options);
        }
    }

    /// The transaction that made an index, or all of them anew, is at this position.
    pub fn set_created(&self, index_id: Option<IndexId>, lsn: Lsn) {
        for index in self.indexes.borrow().iter() {
            if index_id.is_none_or(|id| id == index.def.id) && index.tree.created_lsn.get() == 0 {
                index.tree.created_lsn.set(lsn);
            }
        }
    }

    /// Position of the transaction that made an index.
    pub fn created_lsn(&self, index_id: IndexId) -> Lsn {
        self.index(index_id).map_or(Lsn(0), |tree| tree.created_lsn.get())
    }

    /// Indexes that the manifest does not know begin where the primary is: what that has in runs is not read from the log again, and what they
    /// lack of it they get from there.
    pub fn begin_with_primary(&self) {
        let Some(primary) = self.primary() else { return };
        for tree in self.trees().iter().filter(|tree| !tree.is_primary && !tree.is_recorded.get()) {
            tree.dumped_lsn.set(primary.dumped_lsn.get());
        }
    }

    /// Takes an index away. Its rows go with what is returned.
    pub fn drop_index(&self, index_id: IndexId) -> Option<(IndexDef, DetachedTrees)> {
        let mut indexes = self.indexes.borrow_mut();
        let at = indexes.iter().position(|index| index.def.id == index_id)?;
        let DiskIndex { def, tree } = indexes.remove(at);
        Some((def, DetachedTrees { trees: vec![tree] }))
    }

    /// Puts an index back that `drop_index` took, or exchanges those of a number. Returns what had its place.
    pub fn restore_index(&self, def: &IndexDef, detached: DetachedTrees) -> Option<DetachedTrees> {
        let replaced = detached.trees.iter().filter_map(|tree| self.place_index(def, tree)).next();
        self.touch();
        replaced
    }

    /// Removes all rows: the indexes get new trees, `state` tells which the manifest knows. The old ones are returned.
    ///
    /// Errors: a run cannot be read.
    pub fn truncate(&self, state: impl Fn(IndexId) -> Option<TreeState>) -> Result<DetachedTrees, LsmError> {
        let defs: Vec<_> =
            self.indexes.borrow().iter().map(|index| (index.def.clone(), index.tree.options.get())).collect();
        let mut new = Vec::new();
        for (def, options) in defs {
            new.push(self.make_tree(&def, options, state(def.id))?);
        }
        Ok(self.exchange(DetachedTrees { trees: new }))
    }

    /// Puts trees in the places of those of the same indexes, which are returned.
    pub fn exchange(&self, detached: DetachedTrees) -> DetachedTrees {
        let mut replaced = Vec::new();
        for tree in detached.trees {
            for index in self.indexes.borrow_mut().iter_mut().filter(|index| index.def.id == tree.index_id) {
                replaced.push(std::mem::replace(&mut index.tree, Rc::clone(&tree)));
            }
        }
        self.touch();
        DetachedTrees { trees: replaced }
    }

    /// Trees are out of use for good since `lsn`, which is durable.
    pub fn discard(&self, detached: DetachedTrees, lsn: Lsn) {
        self.engine.drop_trees(detached.trees, lsn);
    }

    // --- Looking ---

    pub(super) fn index(&self, index_id: IndexId) -> Option<Rc<LsmTree>> {
        let indexes = self.indexes.borrow();
        indexes.iter().find(|index| index.def.id == index_id).map(|index| Rc::clone(&index.tree))
    }

    pub(super) fn primary(&self) -> Option<Rc<LsmTree>> {
        self.indexes.borrow().first().map(|index| Rc::clone(&index.tree))
    }

    /// The row of a unique index with this key (all parts).
    ///
    /// Errors: `Wait` for what is not in memory; `Failed` if a block cannot be read or is damaged.
    pub fn get(&self, index_id: IndexId, key: DiskKey<'_>) -> Result<Option<DiskRow>, Stop> {
        let Some(tree) = self.index(index_id) else { return Ok(None) };
        let mut bytes = std::mem::take(&mut self.scratch.borrow_mut().key);
        bytes.clear();
        tree.order.ordered_of_key(key.parts, key.part_count, &mut bytes);
        let found = if tree.is_primary {
            tree.get(&self.engine.reader, &bytes).map(|row| row.map(|row| DiskRow { row }))
        } else {
            self.first_of_prefix(&tree, &bytes)
        };
        self.scratch.borrow_mut().key = bytes;
        found
    }

    /// A hint that rows are about to be looked for whose primary keys begin with these values, or, without `reads_rows`, written.
    pub fn prefetch(&self, values: &[u64], reads_rows: bool) {
        if let Some(primary) = self.indexes.borrow().first() {
            primary.tree.prefetch(&self.engine.reader, values, reads_rows);
        }
    }

    /// The row with the primary key of `row`.
    ///
    /// Errors: as `get`.
    pub fn get_same_key(&self, row: &[u8]) -> Result<Option<DiskRow>, Stop> {
        let Some(tree) = self.primary() else { return Ok(None) };
        let mut bytes = std::mem::take(&mut self.scratch.borrow_mut().key);
        tree.key_of(row, &mut bytes);
        let found = tree.get(&self.engine.reader, &bytes).map(|row| row.map(|row| DiskRow { row }));
        self.scratch.borrow_mut().key = bytes;
        found
    }

    /// The row with the primary key of `row`, if that takes no wait.
    pub fn known_same_key(&self, row: &[u8]) -> Option<Option<DiskRow>> {
        self.get_same_key(row).ok()
    }

    /// The first row whose key in a secondary index begins so. Of many deleted entries before it some are passed at a time, and others have a turn.
    fn first_of_prefix(&self, tree: &Rc<LsmTree>, prefix: &[u8]) -> Result<Option<DiskRow>, Stop> {
        if !self.may_hold(tree, prefix) {
            return Ok(None);
        }
        let bounds = Bounds { from: tree.first_place(prefix), to: Some([prefix, &[0xff]].concat()), is_reverse: false };
        let mut scan = Scan::new(tree, bounds);
        let first = scan.next(&self.engine.reader).inspect_err(|_| {
            if let Some(passed) = scan.passed_key() {
                tree.set_barren(prefix, Some(passed));
            }
        })?;
        let row = match first {
            Some(found) => self.row_of(tree, found, None)?,
            None => None,
        };
        tree.set_barren(prefix, None);
        Ok(row)
    }

    /// False if no row has these first parts of a key for sure, which spares the look into runs.
    fn may_hold(&self, tree: &Rc<LsmTree>, prefix: &[u8]) -> bool {
        let is_in_memtables = tree.memtables().iter().any(|memtable| {
            let found = memtable.seek_from(prefix, true).get();
            found.is_some_and(|found| memtable.read(found.item, |entry, _| entry.key.starts_with(prefix)))
        });
        let hash = key_hash(prefix);
        let ranges = tree.ranges();
        let end = [prefix, &[0xff]].concat();
        let (first, last) = (ranges.find(prefix), ranges.find(&end));
        is_in_memtables
            || ranges.list[first..=last].iter().any(|range| range.slices.iter().any(|run| run.may_contain(hash)))
    }

    /// The row that an entry of an index means.
    pub(super) fn row_of(
        &self,
        tree: &LsmTree,
        found: RowRef,
        held: Option<&ViewOfTree>,
    ) -> Result<Option<DiskRow>, Stop> {
        if tree.is_primary {
            return Ok(Some(DiskRow { row: found }));
        }
        let primary = match held {
            Some(held) => Rc::clone(&held.tree),
            None => match self.primary() {
                Some(primary) => primary,
                None => return Ok(None),
            },
        };
        let mut key = Vec::new();
        found.with(|value| {
            let mut reader = msgpack::Reader::new(value);
            let part_count = reader.read_array().unwrap_or(0);
            primary.order.ordered_of_key(reader.rest(), part_count, &mut key);
        });
        let row = match held {
            Some(held) => primary.get_held(&held.held, &self.engine.reader, &key)?,
            None => primary.get(&self.engine.reader, &key)?,
        };
        Ok(row.map(|row| DiskRow { row }))
    }

    /// A row that has the key of `new` in a unique secondary index and is not `old`, with the number of the index.
    ///
    /// Errors: as `get`.
    pub fn conflict(&self, new: &[u8], old: Option<&[u8]>) -> Result<Option<(IndexId, DiskRow)>, Stop> {
        let is_asked = |index: &&DiskIndex| index.def.is_unique && index.def.id != 0;
        let pair = |index: &DiskIndex| (index.def.clone(), Rc::clone(&index.tree));
        let mut indexes: Vec<_> = self.indexes.borrow().iter().filter(is_asked).map(pair).collect();
        if let Some(building) = self.building().filter(|building| building.is_complete.get()) {
            indexes.extend(building.indexes.iter().filter(is_asked).map(pair));
        }
        for (def, tree) in indexes {
            if let KeySource::Entries(entries) = &def.source {
                if let Some(found) = self.conflict_of_entries(&tree, entries, new, old)? {
                    return Ok(Some((def.id, found)));
                }
                continue;
            }
            let is_kept = old.is_some_and(|old| def.key_def.compare_rows(old, new).is_eq());
            // Keys with a nil may be had by many.
            if is_kept || def.key_def.has_null_in(new) {
                continue;
            }
            let mut prefix = Vec::new();
            def.key_def.ordered_of_row(new, &mut prefix);
            if let Some(found) = self.first_of_prefix(&tree, &prefix)? {
                return Ok(Some((def.id, found)));
            }
        }
        Ok(None)
    }

    /// As `conflict`, through any entry that `old` does not have.
    fn conflict_of_entries(
        &self,
        tree: &Rc<LsmTree>,
        entries: &Entries,
        new: &[u8],
        old: Option<&[u8]>,
    ) -> Result<Option<DiskRow>, Stop> {
        let kept = old.map_or_else(Vec::new, |old| entries.ordered_of(old));
        for key in entries.ordered_of(new).iter().filter(|key| !kept.contains(key)) {
            let own = &key[..tree.filter_prefix(key)];
            if tree.has_nil(own) {
                continue;
            }
            if let Some(found) = self.first_of_prefix(tree, own)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Number of rows, about: the entries of memtables and runs.
    pub fn len_estimate(&self) -> u64 {
        self.primary().map_or(0, |tree| tree.estimate())
    }

    /// Bytes of one index: keys and values in memtables, and runs.
    pub fn index_bytes(&self, index_id: IndexId) -> u64 {
        self.index(index_id).map_or(0, |tree| {
            tree.memtables().iter().map(|memtable| memtable.written_bytes()).sum::<u64>()
                + tree.runs().iter().map(|run| run.bytes()).sum::<u64>()
        })
    }

    // --- Writing ---

    fn touch(&self) {
        self.version.set(self.version.get() + 1);
    }

    /// Puts `new` in the place of `old`, in all indexes. With secondary indexes `old` is the row that is there; with the primary alone it need not
    /// be known. At least one of them is given.
    pub fn put(&self, old: Option<&[u8]>, new: Option<&[u8]>) -> DiskChange {
        let mut scratch = self.scratch.borrow_mut();
        let Scratch { key, old_key, value } = &mut *scratch;
        let indexes = self.indexes.borrow();
        let mut change = DiskChange { changes: Vec::with_capacity(indexes.len()), blind_upsert: None };
        let Some(primary) = indexes.first() else { return change };
        let Some(row) = new.or(old) else { return change };
        debug_assert!(
            old.zip(new).is_none_or(|(old, new)| primary.def.key_def.compare_rows(old, new).is_eq()),
            "a row is replaced by one with its primary key"
        );
        primary.tree.key_of(row, key);
        let entry = match new {
            Some(row) => Entry { key, kind: EntryKind::Put, value: row },
            None => Entry { key, kind: EntryKind::Delete, value: &[] },
        };
        self.enter(&primary.tree, entry, &mut change);
        let building = self.building.borrow();
        if let (Some(building), Some(new)) = (&*building, new) {
            building.check(new);
        }
        let new_indexes = building.as_ref().map_or(&[][..], |building| &building.indexes[..]);
        for index in indexes[1..].iter().chain(new_indexes) {
            if let KeySource::Entries(entries) = &index.def.source {
                value.clear();
                primary.def.key_def.extract_key(row, value);
                self.put_entries(&index.tree, entries, (old, new), value, &mut change);
                continue;
            }
            if let Some(old) = old {
                index.tree.key_of(old, old_key);
            }
            if let Some(new) = new {
                index.tree.key_of(new, key);
            }
            if old.is_some() && new.is_some() && key == old_key {
                continue;
            }
            if old.is_some() {
                let entry = Entry { key: old_key, kind: EntryKind::Delete, value: &[] };
                self.enter(&index.tree, entry, &mut change);
            }
            if let Some(new) = new {
                value.clear();
                primary.def.key_def.extract_key(new, value);
                let entry = Entry { key, kind: EntryKind::Put, value };
                self.enter(&index.tree, entry, &mut change);
            }
        }
        self.touch();
        change
    }

    /// Puts the entries of `new` in the place of those of `old`; both have this primary key. What both have stays.
    fn put_entries(
        &self,
        tree: &Rc<LsmTree>,
        entries: &Entries,
        (old, new): (Option<&[u8]>, Option<&[u8]>),
        primary_key: &[u8],
        change: &mut DiskChange,
    ) {
        let of = |row: Option<&[u8]>| row.map_or_else(Vec::new, |row| entries.ordered_of(row));
        let (old_keys, new_keys) = (of(old), of(new));
        for key in old_keys.iter().filter(|key| !new_keys.contains(key)) {
            self.enter(tree, Entry { key, kind: EntryKind::Delete, value: &[] }, change);
        }
        for key in new_keys.iter().filter(|key| !old_keys.contains(key)) {
            self.enter(tree, Entry { key, kind: EntryKind::Put, value: primary_key }, change);
        }
    }

    /// Hands over the keys of a row in all indexes, those too that a change of it has left as they were; as [`DiskChange::for_each_key`].
    pub fn for_each_key_of(&self, row: &[u8], mut visit: impl FnMut(IndexId, bool, &[u8], &[u8])) {
        let mut scratch = Vec::new();
        for index in self.indexes.borrow().iter() {
            let visited = index.for_each_entry(row, &mut scratch, |key| {
                let own = &key[..index.tree.filter_prefix(key)];
                visit(index.tree.index_id, index.tree.is_unique, own, key);
                Ok::<(), std::convert::Infallible>(())
            });
            let Ok(()) = visited;
        }
    }

    /// Deletes the row with a primary key, whether it is there or not: a blind write. For a space with one index.
    pub fn delete_blind(&self, key: DiskKey<'_>) -> DiskChange {
        let mut change = DiskChange::default();
        let Some(tree) = self.primary() else { return change };
        let mut bytes = Vec::new();
        tree.order.ordered_of_key(key.parts, key.part_count, &mut bytes);
        debug_assert!(self.indexes.borrow().len() == 1, "other indexes have to know the row that goes");
        self.enter(&tree, Entry { key: &bytes, kind: EntryKind::Delete, value: &[] }, &mut change);
        self.touch();
        change
    }

    /// True if an upsert of this row can be a blind write: the active memtable does not say what the row is, and not too many statements are in
    /// its merge operand already. For a space with one index.
    pub fn takes_blind_upsert(&self, row: &[u8]) -> bool {
        let Some(tree) = self.primary() else { return false };
        let mut key = Vec::new();
        tree.key_of(row, &mut key);
        let takes = tree.active().find(&key, |_, entry| {
            entry.kind == EntryKind::Upsert && statement_count(entry.value) < OPERAND_STATEMENTS_MAX
        });
        takes.unwrap_or(true)
    }

    /// Upserts a row without looking for it: its operations join the merge operand of its key. After `takes_blind_upsert`.
    pub fn upsert_blind(&self, row: &[u8], operations: &[u8], index_base: u32) -> DiskChange {
        debug_assert!(self.takes_blind_upsert(row), "the active memtable does not have the row");
        self.upsert(BlindUpsert { row: row.to_vec(), operations: operations.to_vec(), index_base })
    }

    /// As `upsert_blind`. A change that is applied again may find that the active memtable says by now what the row is, because somebody has deleted
    /// one that was not there: then the row is put that the upsert makes of it.
    fn upsert(&self, upsert: BlindUpsert) -> DiskChange {
        let mut change = DiskChange::default();
        let Some(tree) = self.primary() else { return change };
        debug_assert!(self.indexes.borrow().len() == 1, "other indexes have to know what the row becomes");
        let (mut key, mut value) = (Vec::new(), Vec::new());
        tree.key_of(&upsert.row, &mut key);
        let before = tree.active().find(&key, |_, entry| (entry.kind, entry.value.to_vec()));
        let kind = match before {
            Some((EntryKind::Upsert, operand)) => {
                value = operand;
                msgpack::encode_uint(&mut value, u64::from(upsert.index_base));
                value.extend_from_slice(&upsert.operations);
                EntryKind::Upsert
            }
            None => {
                encode_operand(&upsert.row, &upsert.operations, upsert.index_base, &mut value);
                EntryKind::Upsert
            }
            Some((kind, row)) => {
                let old = (kind == EntryKind::Put).then_some(&row[..]);
                let mut operand = Vec::new();
                encode_operand(&upsert.row, &upsert.operations, upsert.index_base, &mut operand);
                tree.upserter.borrow().apply(old, &operand, &mut value);
                EntryKind::Put
            }
        };
        self.enter(&tree, Entry { key: &key, kind, value: &value }, &mut change);
        change.blind_upsert = Some(upsert);
        self.touch();
        change
    }

    fn enter(&self, tree: &Rc<LsmTree>, entry: Entry<'_>, change: &mut DiskChange) {
        if tree.is_primary {
            self.engine.reader.cache.borrow_mut().remove_row(tree.id, key_hash(entry.key));
        }
        let bytes = (entry.key.len() + entry.value.len()) as u64;
        self.engine.entered_bytes.set(self.engine.entered_bytes.get() + bytes);
        if entry.kind == EntryKind::Delete {
            self.engine.entered_deletes.set(self.engine.entered_deletes.get() + 1);
        }
        let made = tree.put(entry);
        self.engine.memtable_bytes.set(self.engine.memtable_bytes.get() + made.memtable.growth());
        change.changes.push((Rc::clone(tree), made));
    }

    /// Rolls a change back, the newest one that is applied.
    pub fn undo(&self, change: &DiskChange) {
        for (tree, change) in change.changes.iter().rev() {
            tree.undo(change);
        }
        self.touch();
    }

    /// Applies a change again that was rolled back. The rows that it looked at, and the row of a blind upsert, must be as they were.
    pub fn redo(&self, change: &DiskChange) -> DiskChange {
        if let Some(upsert) = &change.blind_upsert {
            // Not its entry: that holds the operands before it, too, which may have been dumped since.
            return self.upsert(upsert.clone());
        }
        let mut again = DiskChange { changes: Vec::with_capacity(change.changes.len()), blind_upsert: None };
        // Trees of a build that was given up meanwhile are nobody's.
        for (tree, change) in change.changes.iter().filter(|(tree, _)| !tree.is_dropped.get()) {
            let (mut key, mut value) = (Vec::new(), Vec::new());
            let kind = change.memtable.read(change.new, |entry, _| {
                key.extend_from_slice(entry.key);
                value.extend_from_slice(entry.value);
                entry.kind
            });
            self.enter(tree, Entry { key: &key, kind, value: &value }, &mut again);
        }
        self.touch();
        again
    }
}

/// Number of statements whose operations are in a merge operand.
fn statement_count(value: &[u8]) -> usize {
    let mut reader = msgpack::Reader::new(value);
    let mut values = 0;
    while reader.read_value().is_ok() {
        values += 1;
    }
    values / 2
}
