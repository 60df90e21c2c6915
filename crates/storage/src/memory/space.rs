//! A space in memory: its indexes, the writes that keep them alike, and whether a unique index refuses one.

use super::build::Build;
use super::fork::SpaceFork;
use super::index::{MemoryIndex, item_of, row_of, tuple_of};
use super::view::MemoryView;
use crate::engine::{BuildError, Change, IndexDef, IteratorKind, Mode, StorageError};
use crate::entries::KeySource;
use std::rc::Rc;
use tuple::{Arena, Format, IndexId, Tuple};

/// Rows and indexes of one space. See the crate's page for the invariants.
pub struct MemorySpace {
    arena: Arena,
    /// By index id; the primary first.
    pub(super) indexes: Vec<MemoryIndex>,
    /// Secondary indexes that are filled when all rows are there; they hold nothing.
    pub(super) deferred: Vec<MemoryIndex>,
    /// New indexes that are being filled.
    build: Option<Box<Build>>,
    pub(super) row_bytes: usize,
    /// The index that lacked a row which was to go.
    damaged: Option<IndexId>,
    /// Index bytes that the arena was charged for.
    charged: usize,
    /// It has two states.
    pub(super) fork: Option<SpaceFork>,
}

/// What requests are about to look for in a space. Of each list at most `PREFETCH_MAX` are taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prefetch<'a> {
    /// Values of the first part of the primary key.
    pub values: &'a [u64],
    /// Rows to be put in: arrays of well-formed msgpack, nothing else is known of them.
    pub new_rows: &'a [&'a [u8]],
    /// The contents of the rows that are found are wanted.
    pub reads_rows: bool,
    /// Rows are put in, changed or taken away: in secondary indexes, too.
    pub changes_rows: bool,
}

impl MemorySpace {
    /// A space without indexes; it can hold no rows yet.
    pub fn new(arena: &Arena) -> Self {
        MemorySpace {
            arena: arena.clone(),
            indexes: Vec::new(),
            deferred: Vec::new(),
            build: None,
            row_bytes: 0,
            damaged: None,
            charged: 0,
            fork: None,
        }
    }

    /// The arena that rows for this space are made in.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.indexes.first().map_or(0, MemoryIndex::len)
    }

    /// True if there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of all rows.
    pub fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// Bytes of all rows with their headers, and of all index entries.
    pub fn used_bytes(&self) -> usize {
        self.row_bytes + self.len() * Tuple::HEADER_BYTES + self.charged
    }

    /// Definitions of the indexes, by id.
    pub fn index_defs(&self) -> impl Iterator<Item = &IndexDef> {
        self.indexes.iter().map(|index| &index.def)
    }

    /// Definition of one index.
    pub fn index_def(&self, index_id: IndexId) -> Option<&IndexDef> {
        self.index(index_id).map(|index| &index.def)
    }

    /// Bytes of one index.
    pub fn index_bytes(&self, index_id: IndexId) -> usize {
        self.index(index_id).map_or(0, MemoryIndex::bytes)
    }

    pub(crate) fn index(&self, index_id: IndexId) -> Option<&MemoryIndex> {
        match self.indexes.get(index_id.0 as usize) {
            Some(index) if index.def.id == index_id => Some(index),
            _ => self.indexes.iter().find(|index| index.def.id == index_id),
        }
    }

    /// Puts a row in, in every index or in none.
    ///
    /// Errors: `Duplicate`.
    pub fn replace(&mut self, new: Tuple, mode: Mode) -> Result<Change, StorageError> {
        let row = new.data();
        if let [only] = &mut self.indexes[..] {
            // One index: its place is looked for once.
            let old = match only.put_or_find(&new, mode) {
                Ok(old) => old.map(tuple_of),
                Err(existing) => {
                    return Err(StorageError::Duplicate { index_id: IndexId::PRIMARY, existing: tuple_of(existing) });
                }
            };
            self.follow(old.as_ref(), Some(&new));
            self.count_swap(old.as_ref(), Some(&new));
            return Ok(Change::new(old, Some(new)));
        }
        let Some((primary, secondaries)) = self.indexes.split_first_mut() else {
            return Ok(Change::new(None, Some(new)));
        };
        if secondaries.iter().all(|index| index.never_refuses) {
            // Nothing stands against what the primary index takes: its place is looked for once.
            let old = match primary.put_or_find(&new, mode) {
                Ok(old) => old.map(tuple_of),
                Err(existing) => {
                    return Err(StorageError::Duplicate { index_id: IndexId::PRIMARY, existing: tuple_of(existing) });
                }
            };
            self.swap_behind(1, old.as_ref(), Some(&new));
            return Ok(Change::new(old, Some(new)));
        }
        let old = primary.find_row(row);
        if let (Mode::Insert, Some(existing)) = (mode, old) {
            return Err(StorageError::Duplicate { index_id: IndexId::PRIMARY, existing: tuple_of(existing) });
        }
        self.put(new, old)
    }

    /// Puts `new` in place of `old`, which is in the space and may differ in any field but the primary key's.
    ///
    /// Errors: `Duplicate`, in a secondary index.
    pub fn update(&mut self, old: &Tuple, new: Tuple) -> Result<Change, StorageError> {
        self.put(new, Some(item_of(old)))
    }

    fn put(&mut self, new: Tuple, old: Option<u64>) -> Result<Change, StorageError> {
        for index in &self.indexes[1..] {
            if let Some(existing) = index.conflict_of_change(new.data(), old) {
                return Err(StorageError::Duplicate { index_id: index.def.id, existing: tuple_of(existing) });
            }
        }
        let old = old.map(tuple_of);
        self.swap(old.as_ref(), Some(&new));
        Ok(Change::new(old, Some(new)))
    }

    /// The index that did not have a row which was to go since this was asked last. Nothing but a fault of the server or of its memory makes
    /// one, and whoever finds it rolls the change back and reports it.
    pub fn take_damage(&mut self) -> Option<IndexId> {
        self.damaged.take()
    }

    /// Takes a row out that is in the space.
    pub fn delete(&mut self, old: Tuple) -> Change {
        self.swap(Some(&old), None);
        Change::new(Some(old), None)
    }

    /// Takes a change back. It must be the newest one that is neither dropped nor undone.
    pub fn undo(&mut self, change: &Change) {
        self.assert_present(change.new.as_ref());
        self.swap(change.new.as_ref(), change.old.as_ref());
        #[cfg(feature = "planted-bugs")]
        self.keep_secondary_entry(change);
    }

    /// Applies a change again that was undone. Everything must be as it was before the change was made.
    pub fn redo(&mut self, change: &Change) {
        self.assert_present(change.old.as_ref());
        self.swap(change.old.as_ref(), change.new.as_ref());
    }

    /// The planted bug. The row is never freed, so that what finds the entry reads a row and not what came in its place.
    #[cfg(feature = "planted-bugs")]
    fn keep_secondary_entry(&mut self, change: &Change) {
        if runtime::planted::is_planted(runtime::planted::Plant::KeepSecondaryEntry)
            && let (Some(new), None) = (&change.new, &change.old)
        {
            new.clone().into_raw();
            self.indexes.iter_mut().skip(1).for_each(|index| index.put(new));
        }
    }

    /// Brings what requests are about to touch nearer to the processor. Does nothing for a primary index that is not a tree of one unsigned part.
    pub fn prefetch(&self, wanted: Prefetch<'_>) {
        let Some((primary, secondaries)) = self.indexes.split_first() else { return };
        let follows = wanted.changes_rows && !secondaries.is_empty();
        primary.prefetch(wanted.values, wanted.reads_rows || follows);
        if follows {
            for index in secondaries {
                index.prefetch_rows(wanted.new_rows.iter().copied());
            }
            // Whoever changes a row looks for the old one in every index. What was asked for above has come meanwhile.
            let (old_rows, count) = primary.recent_rows();
            for index in secondaries {
                index.prefetch_rows(old_rows[..count].iter().copied());
            }
        }
    }

    /// Has the rows fetched that keys of one text name, if the primary index is a hash index whose only part is a string.
    pub fn prefetch_texts<'a>(&self, texts: impl Iterator<Item = &'a [u8]>) {
        if let Some(primary) = self.indexes.first() {
            primary.prefetch_texts(texts);
        }
    }

    /// Has what full keys of several parts will touch fetched, if the primary index is ordered. They are checked, or made by the server itself.
    /// `new_rows`: what will be put in for some of them, if rows are about to change.
    pub fn prefetch_full_keys<'a>(&self, keys: impl Iterator<Item = &'a [u8]>, new_rows: &[&[u8]]) {
        let Some((primary, secondaries)) = self.indexes.split_first() else { return };
        primary.prefetch_full_keys(keys);
        if !new_rows.is_empty() && !secondaries.is_empty() {
            let (old_rows, count) = primary.recent_rows();
            for index in secondaries {
                index.prefetch_rows(new_rows.iter().copied());
                index.prefetch_rows(old_rows[..count].iter().copied());
            }
        }
    }

    /// What `prefetch` takes of a row.
    pub fn hint_of(&self, row: &[u8]) -> Option<u64> {
        let def = &self.indexes.first()?.def.compare_def;
        def.is_hint_exact().then(|| def.hint(row))
    }

    /// One row out, another in, in every index. Cannot fail.
    fn swap(&mut self, old: Option<&Tuple>, new: Option<&Tuple>) {
        if !self.indexes.is_empty() {
            self.swap_behind(0, old, new);
        }
    }

    /// The same in the indexes from a place on, where it is done in those before.
    fn swap_behind(&mut self, from: usize, old: Option<&Tuple>, new: Option<&Tuple>) {
        for (position, index) in self.indexes.iter_mut().enumerate().skip(from) {
            if !index.swap(old, new, position == 0) {
                self.damaged = Some(index.def.id);
            }
        }
        if let (Some(_), Some(old)) = (self.damaged, old) {
            // It may still stand somewhere in the index, so it is never freed.
            old.clone().into_raw();
        }
        self.follow(old, new);
        self.count_swap(old, new);
        debug_assert!(self.damaged.is_some() || self.are_indexes_alike(), "every index holds the same rows");
    }

    /// True if all indexes whose entries are rows have the same number of them.
    pub(super) fn are_indexes_alike(&self) -> bool {
        let has_rows = |index: &&MemoryIndex| matches!(index.def.source, KeySource::Fields);
        self.indexes.iter().filter(has_rows).all(|index| index.len() == self.len())
    }

    /// Asserts, where assertions for debugging are on, that this very row is in the space.
    fn assert_present(&self, row: Option<&Tuple>) {
        if let (Some(row), Some(primary), None) = (row, self.indexes.first(), self.damaged) {
            debug_assert_eq!(primary.find_row(row.data()), Some(item_of(row)), "changes are undone from the newest on");
        }
    }

    /// Indexes that are being filled go along with a swap.
    fn follow(&mut self, old: Option<&Tuple>, new: Option<&Tuple>) {
        if let Some(build) = &mut self.build {
            build.follow(&self.indexes[0], old, new);
        }
    }

    /// The accounts of a swap: bytes, and the references that the primary index holds.
    fn count_swap(&mut self, old: Option<&Tuple>, new: Option<&Tuple>) {
        if let Some(new) = new {
            self.row_bytes += new.size();
            new.clone().into_raw();
        }
        if let Some(old) = old {
            self.row_bytes = self.row_bytes.saturating_sub(old.size());
            drop_index_reference(old);
        }
        self.charge();
    }

    /// Tells the arena how much the indexes hold.
    pub(super) fn charge(&mut self) {
        let bytes = self.indexes.iter().map(MemoryIndex::bytes).sum::<usize>()
            + self.build.as_ref().map_or(0, |build| build.bytes());
        if bytes > self.charged {
            self.arena.charge_unchecked(bytes - self.charged);
        } else if bytes < self.charged {
            self.arena.release(self.charged - bytes);
        }
        self.charged = bytes;
    }

    /// The row of a unique index with this key (all parts).
    pub fn get(&self, index_id: IndexId, key: &[u8], part_count: u32) -> Option<Tuple> {
        self.index(index_id)?.find_key(key, part_count).map(tuple_of)
    }

    /// As `get`, without taking a reference: the bytes are handed to `read`.
    pub fn get_row<R>(
        &self,
        index_id: IndexId,
        key: &[u8],
        part_count: u32,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Option<R> {
        self.index(index_id)?.find_key(key, part_count).map(|item| read(row_of(item)))
    }

    /// The row with the primary key of `row`.
    pub fn get_same_key(&self, row: &[u8]) -> Option<Tuple> {
        self.indexes.first()?.find_row(row).map(tuple_of)
    }

    /// Hands the rows of a scan to `visit` until it returns false.
    pub fn scan(
        &self,
        index_id: IndexId,
        kind: IteratorKind,
        key: &[u8],
        part_count: u32,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) {
        if let Some(index) = self.index(index_id) {
            index.scan(kind, key, part_count, |item| visit(row_of(item)));
        }
    }

    /// As `scan`, with references to the rows.
    pub fn scan_tuples(
        &self,
        index_id: IndexId,
        kind: IteratorKind,
        key: &[u8],
        part_count: u32,
        mut visit: impl FnMut(Tuple) -> bool,
    ) {
        if let Some(index) = self.index(index_id) {
            index.scan(kind, key, part_count, |item| visit(tuple_of(item)));
        }
    }

    /// Number of rows of a scan, each counted once for each of its entries.
    pub fn count(&self, index_id: IndexId, kind: IteratorKind, key: &[u8], part_count: u32) -> usize {
        if part_count == 0 {
            return self.index(index_id).map_or(0, MemoryIndex::len);
        }
        let mut count = 0;
        self.scan(index_id, kind, key, part_count, |_| {
            count += 1;
            true
        });
        count
    }

    /// Hands over `count` rows and more of a hash index, from a place of it on; returns the place behind them, 0 at its end. None: it is ordered.
    pub fn next_some(&self, index_id: IndexId, from: u64, count: usize, mut visit: impl FnMut(Tuple)) -> Option<u64> {
        self.index(index_id)?.next_some(from, count, |item| visit(tuple_of(item)))
    }

    /// Some row, chosen by `seed`.
    pub fn random(&self, index_id: IndexId, seed: u64) -> Option<Tuple> {
        self.index(index_id)?.random(seed)
    }

    /// Adds an index to a space without rows.
    pub fn create_index(&mut self, def: IndexDef) {
        assert!(self.is_empty(), "an index over rows is built");
        assert!(self.deferred.is_empty(), "a new index would come before those that are set aside");
        self.lose_fork();
        self.exchange_index(MemoryIndex::new(def));
    }

    /// Begins to fill new indexes with the rows, which must fit `format`. Those that have the numbers of existing ones will take their places.
    /// Without definitions the rows are only checked. Returns what tells this filling from others.
    pub fn begin_build(&mut self, format: Rc<Format>, defs: Vec<IndexDef>) -> u64 {
        assert!(self.build.is_none(), "one change of indexes at a time");
        self.lose_fork();
        let build = self.build.insert(Box::new(Build::new(format, defs)));
        build.id
    }

    /// The filling that is under way, between `begin_build` and what ends it.
    pub fn build_id(&self) -> Option<u64> {
        self.build.as_ref().map(|build| build.id)
    }

    /// Fills the new indexes with up to `max` rows more, a few thousand if the primary index is a hash. Returns true while there are any. Between
    /// calls the space may be changed in any way.
    ///
    /// Errors: a row that the new indexes cannot take. What is left to be done is `end_build`.
    pub fn build_some(&mut self, max: usize) -> Result<bool, BuildError> {
        let (Some(build), Some(primary)) = (&mut self.build, self.indexes.first()) else { return Ok(false) };
        let filled = build.fill_some(primary, max);
        self.charge();
        filled
    }

    /// Puts the new indexes, which are complete, in their places. Returns those whose places were taken.
    pub fn end_build(&mut self) -> Vec<DetachedIndex> {
        let Some(build) = self.build.take() else { return Vec::new() };
        assert!(build.is_done() || self.indexes.is_empty(), "new indexes hold every row");
        let replaced = self.exchange_indexes(build.indexes.into_iter().map(|index| DetachedIndex { index }).collect());
        debug_assert!(self.are_indexes_alike(), "every index holds the same rows");
        replaced
    }

    /// Leaves the space as it is without the new indexes, which are returned.
    pub fn abandon_build(&mut self) -> Vec<DetachedIndex> {
        let unused = self.build.take().map_or(Vec::new(), |build| build.indexes);
        self.charge();
        unused.into_iter().map(|index| DetachedIndex { index }).collect()
    }

    /// Puts indexes with the same rows in the places of those of the same numbers, which are returned. Their rows may be others if nobody looks at
    /// the space before these indexes are gone again.
    pub fn exchange_indexes(&mut self, indexes: Vec<DetachedIndex>) -> Vec<DetachedIndex> {
        self.lose_fork();
        let replaced = indexes.into_iter().filter_map(|detached| self.exchange_index(detached.index)).collect();
        self.charge();
        replaced
    }

    fn exchange_index(&mut self, index: MemoryIndex) -> Option<DetachedIndex> {
        let at = self.indexes.partition_point(|other| other.def.id < index.def.id);
        let replaced = match self.indexes.get_mut(at) {
            Some(other) if other.def.id == index.def.id => {
                Some(DetachedIndex { index: std::mem::replace(other, index) })
            }
            _ => {
                self.indexes.insert(at, index);
                None
            }
        };
        self.note_refusals();
        replaced
    }

    /// Says of each secondary index whether it may refuse a row that the primary index takes.
    pub(super) fn note_refusals(&mut self) {
        if let Some((primary, secondaries)) = self.indexes.split_first_mut() {
            let key = &primary.def.key_def;
            secondaries.iter_mut().for_each(|index| index.note_refusals(key));
        }
    }

    /// Takes a secondary index away, or the primary of an empty space. Its memory is freed with the returned value.
    pub fn drop_index(&mut self, index_id: IndexId) -> Option<DetachedIndex> {
        let at = self.indexes.iter().position(|index| index.def.id == index_id)?;
        assert!(at != 0 || self.indexes.len() == 1 && self.is_empty(), "rows need their primary index");
        self.lose_fork();
        let index = self.indexes.remove(at);
        self.charge();
        Some(DetachedIndex { index })
    }

    /// True if `view` was opened on this space's present primary index.
    pub fn owns_view(&self, view: &MemoryView) -> bool {
        self.indexes.first().is_some_and(|index| index.owns_view(view))
    }

    /// True while a view is open that has to be closed here.
    pub fn has_views(&self) -> bool {
        self.indexes.first().is_some_and(MemoryIndex::has_views)
    }

    /// Moves all rows and indexes out and leaves an empty space with the same index definitions. For truncate: the
    /// result is restored on rollback or dismantled in slices.
    pub fn take_all(&mut self) -> MemorySpace {
        self.lose_fork();
        let empty = self.empty_like_this();
        std::mem::replace(self, empty)
    }

    /// A space without rows that has the same index definitions.
    pub(super) fn empty_like_this(&self) -> MemorySpace {
        assert!(self.build.is_none(), "rows stay while indexes are filled with them");
        let mut empty = MemorySpace::new(&self.arena);
        empty.indexes = self.indexes.iter().map(|index| MemoryIndex::new(index.def.clone())).collect();
        empty.note_refusals();
        empty
    }

    /// Frees up to about `max` rows of a space that is out of use. Returns true while something is left.
    pub fn dismantle_some(&mut self, max: usize) -> bool {
        self.build = None;
        self.lose_fork();
        // Secondary indexes hold no references: only their memory is freed.
        let take = if self.indexes.len() > 1 { None } else { Some(drop_item as fn(u64)) };
        let Some(last) = self.indexes.last_mut() else { return false };
        if !last.release_some(max, take) {
            self.indexes.pop();
        }
        if self.indexes.is_empty() {
            self.row_bytes = 0;
        }
        self.charge();
        !self.indexes.is_empty()
    }

    /// Freezes the rows as they are, in primary key order. Close it with [`MemorySpace::close_view`].
    pub fn open_view(&mut self) -> Option<MemoryView> {
        Some(self.indexes.first_mut()?.open_view())
    }

    /// Gives a view back.
    pub fn close_view(&mut self, view: MemoryView) {
        if let Some(index) = self.indexes.first_mut() {
            index.close_view(view);
        }
    }

    /// Frees a slice of the index nodes that only closed views held, or a state that is no more. Returns true while there may be more.
    pub fn collect(&mut self, max: usize) -> bool {
        let has_more = self.indexes.iter_mut().any(|index| index.collect(max));
        self.charge();
        has_more
    }
}

impl Drop for MemorySpace {
    fn drop(&mut self) {
        while self.dismantle_some(usize::MAX) {}
        self.indexes.clear();
        self.charge();
    }
}

/// An index taken out of its space. It holds no references to rows.
pub struct DetachedIndex {
    index: MemoryIndex,
}

impl DetachedIndex {
    /// Frees a slice of it. Returns true while something is left.
    pub fn release_some(&mut self) -> bool {
        self.index.release_some(usize::MAX, None)
    }

    /// True if `view` was opened on it.
    pub fn owns_view(&self, view: &MemoryView) -> bool {
        self.index.owns_view(view)
    }

    /// True while a view is open that has to be closed here.
    pub fn has_views(&self) -> bool {
        self.index.has_views()
    }

    /// Gives a view back.
    pub fn close_view(&mut self, view: MemoryView) {
        self.index.close_view(view);
    }
}

/// Drops the reference that the primary index held.
fn drop_index_reference(tuple: &Tuple) {
    drop_item(item_of(tuple));
}

#[expect(unsafe_code, reason = "the reference that an index held is given up")]
pub(super) fn drop_item(item: u64) {
    // SAFETY: called once for each item that leaves the primary index, which held one reference to it.
    drop(unsafe { Tuple::from_raw(item) });
}
