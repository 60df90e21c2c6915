//! One index of a memory space: a tree or a hash of items. Nobody else knows which of them it is.
//!
//! An item is the address of an entry. In an ordinary index that is a row, which the primary index keeps alive. In an index over an
//! [`EntrySource`](crate::EntrySource) it is an array that this index has made and owns; it ends with the address of its row.
#![expect(unsafe_code, reason = "an index holds addresses of rows that the primary index keeps alive")]

use super::made::MadeEntries;
use super::prefetch::{COMPARED_ROW_BYTES, PREFETCHED_ROW_BYTES, Recent};
use super::view::MemoryView;
use crate::engine::{IndexDef, IndexKind, IteratorKind, Mode};
use crate::entries::{KeySource, address_in};
use index::{Cursor, Entry, Hash, HashCursor, Kept, PREFETCH_MAX, Slot, Tree};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::rc::Rc;
use tuple::{KeyDef, Tuple};

/// Rows that one step of a scan gives at most.
pub(super) const STEP_MAX: usize = 64;

enum Structure {
    Tree(Tree),
    Hash(Hash),
}

/// See the head of this file.
pub(crate) struct MemoryIndex {
    pub(crate) def: IndexDef,
    structure: Structure,
    recent: RefCell<Box<Recent>>,
    /// What the primary index takes is taken here, too: the key is not unique, or has all of the primary key in it.
    pub(super) never_refuses: bool,
    /// Entries that are no rows. None in an ordinary index.
    made: Option<Box<MadeEntries>>,
}

/// Direction, bound and key of a scan; without parts it is over the whole index.
#[derive(Clone, Copy)]
pub(super) struct Sought<'a> {
    pub(super) kind: IteratorKind,
    pub(super) key: &'a [u8],
    pub(super) part_count: u32,
}

/// The position of a scan between whose steps the index may change.
#[expect(clippy::large_enum_variant, reason = "there is one of them for a scan, and most are in a tree")]
pub(super) enum Progress {
    Start,
    /// In a tree. The cursor is good while the version stays; after that the place is found by the last entry.
    Tree {
        cursor: Cursor,
        version: u64,
        last: Tuple,
        /// The bytes of the last entry, if it is not the row `last`.
        made: Option<Box<[u8]>>,
    },
    /// In a tree, behind a row.
    Behind(Tuple),
    Hash {
        cursor: HashCursor,
        batch: Vec<Tuple>,
    },
    Done,
}

/// How far a pass over all rows of an ordinary index has come.
pub(super) enum Pass {
    Start,
    /// This row of a tree was given, and all before it.
    Behind(Tuple),
    Hash(HashCursor),
    Done,
}

/// The place of an entry's whole key in a tree.
fn locate(tree: &Tree, def: &KeyDef, hint: u64, entry: &[u8]) -> Slot {
    if def.is_hint_exact() {
        return tree.locate(hint, |_| Ordering::Equal);
    }
    tree.locate(hint, |other| def.compare_rows(row_of(other), entry))
}

/// Bytes behind an index item: the row, or the entry that was made of it.
pub(crate) fn row_of<'a>(item: u64) -> &'a [u8] {
    // SAFETY: an item in an index is a row that the primary index holds a reference to, or an entry that the index itself holds one to; callers
    // use the slice only while the space is not changed.
    unsafe { Tuple::data_of_raw(item) }
}

/// A new reference to the row behind an index item.
pub(crate) fn tuple_of(item: u64) -> Tuple {
    // SAFETY: the primary index holds a reference, so the row is alive; `from_raw` takes over a reference, which is left to
    // the index by forgetting, and the clone is ours.
    let held = unsafe { Tuple::from_raw(item) };
    let tuple = held.clone();
    std::mem::forget(held);
    tuple
}

pub(crate) fn item_of(tuple: &Tuple) -> u64 {
    tuple.as_raw()
}

impl MemoryIndex {
    pub(crate) fn new(def: IndexDef) -> Self {
        let structure = match def.kind {
            IndexKind::Tree => Structure::Tree(Tree::new()),
            IndexKind::Hash => Structure::Hash(Hash::new()),
        };
        let made = match &def.source {
            KeySource::Fields => None,
            KeySource::Entries(entries) => Some(Box::new(MadeEntries::new(entries))),
        };
        assert!(made.is_none() || def.id != 0, "the primary index holds rows");
        MemoryIndex { def, structure, recent: RefCell::default(), never_refuses: false, made }
    }

    /// Notes whether this index, a secondary one beside a primary one of this key, may refuse a row that the other takes.
    pub(super) fn note_refusals(&mut self, primary: &KeyDef) {
        self.never_refuses = !self.def.is_unique || self.made.is_none() && self.def.key_def.has_fields_of(primary);
    }

    /// The row that an item belongs to.
    #[inline]
    pub(super) fn owner(&self, item: u64) -> u64 {
        if self.made.is_none() { item } else { address_in(row_of(item)) }
    }

    /// Brings what look-ups by these values of the only key part will touch nearer to the processor. Does nothing for an index that is not a
    /// tree of one unsigned part.
    pub(crate) fn prefetch(&self, values: &[u64], reads_rows: bool) {
        let Structure::Tree(tree) = &self.structure else { return };
        if !self.def.compare_def.is_hint_exact() {
            return;
        }
        let mut recent = self.recent.borrow_mut();
        **recent = Recent::default();
        tree.prefetch(values, |entry, place| {
            // An item is the address of the row's header; what follows it is the row.
            index::prefetch_bytes(entry.item as *const u8, if reads_rows { PREFETCHED_ROW_BYTES } else { 1 });
            let at = recent.count;
            recent.found[at] = Some((entry.hint, place));
            recent.count = at + 1;
        });
    }

    pub(crate) fn len(&self) -> usize {
        match &self.structure {
            Structure::Tree(tree) => tree.len(),
            Structure::Hash(hash) => hash.len(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let bytes = match &self.structure {
            Structure::Tree(tree) => tree.bytes(),
            Structure::Hash(hash) => hash.bytes(),
        };
        bytes + self.made.as_ref().map_or(0, |made| made.bytes())
    }

    /// The item whose whole key equals that of `row`, an entry of this index, by the order of the index.
    pub(crate) fn find_row(&self, row: &[u8]) -> Option<u64> {
        let def = &self.def.compare_def;
        match &self.structure {
            Structure::Tree(tree) if def.is_hint_exact() => self.find_hint(tree, def.hint(row)),
            Structure::Tree(tree) => tree.get(def.hint(row), |item| def.compare_rows(row_of(item), row)),
            Structure::Hash(hash) => hash.get(def.hash_row(row), |item| def.compare_rows(row_of(item), row).is_eq()),
        }
    }

    /// The item with this hint, where hints say everything.
    fn find_hint(&self, tree: &Tree, hint: u64) -> Option<u64> {
        let known = self.recent.borrow().find(hint).and_then(|place| tree.item_at(place));
        known.or_else(|| tree.get(hint, |_| Ordering::Equal))
    }

    /// The row that forbids `new`, a row of the space, to be put in the place of `old`.
    pub(crate) fn conflict(&self, new: &[u8], old: Option<u64>) -> Option<u64> {
        if !self.def.is_unique {
            return None;
        }
        let Some(made) = &self.made else {
            return self.taken(new).filter(|&item| Some(item) != old);
        };
        let taken = |entry: Vec<u8>| self.taken(&entry).map(|item| self.owner(item)).filter(|&row| Some(row) != old);
        // What these are compared with has an address; they need none.
        made.of(new, 0).into_iter().find_map(taken)
    }

    /// As `conflict`, for an `old` that is in the index: if its key stays, it has been free of conflicts before.
    pub(crate) fn conflict_of_change(&self, new: &[u8], old: Option<u64>) -> Option<u64> {
        if let Some(old) = old
            && self.made.is_none()
            && self.def.is_unique
            && self.def.compare_def.compare_rows(row_of(old), new).is_eq()
        {
            return None;
        }
        self.conflict(new, old)
    }

    /// The item of a unique index that has the key of an entry. Keys with a nil are had by many.
    fn taken(&self, entry: &[u8]) -> Option<u64> {
        let def = &self.def.key_def;
        match &self.structure {
            Structure::Tree(tree) if def.is_nullable() => {
                if def.has_null_in(entry) {
                    return None;
                }
                let compare = |item| def.compare_rows(row_of(item), entry);
                let hint = self.def.compare_def.hint_of_first(entry, def.part_count());
                let first = tree.lower_bound(hint, compare).get();
                first.map(|first| first.item).filter(|&item| compare(item).is_eq())
            }
            _ => self.find_row(entry),
        }
    }

    /// The row of a unique index with exactly this key.
    pub(crate) fn find_key(&self, key: &[u8], part_count: u32) -> Option<u64> {
        self.find_item(key, part_count).map(|item| self.owner(item))
    }

    /// The item of a unique index with exactly this key.
    fn find_item(&self, key: &[u8], part_count: u32) -> Option<u64> {
        let def = &self.def.key_def;
        // Hints are those of the whole order.
        let hint = || self.def.compare_def.key_hint(key, part_count);
        match &self.structure {
            Structure::Tree(tree) if part_count == 1 && self.def.compare_def.is_hint_exact() => {
                self.find_hint(tree, hint())
            }
            Structure::Tree(tree) if self.def.compare_def.part_count() == part_count as usize => {
                let hint = hint();
                let compare = |item| def.compare_row_key(row_of(item), key, part_count);
                let known = self.recent.borrow().find(hint).and_then(|place| tree.item_at(place));
                known.filter(|item| compare(*item).is_eq()).or_else(|| tree.get(hint, compare))
            }
            Structure::Tree(tree) => {
                let compare = |item| def.compare_row_key(row_of(item), key, part_count);
                let first = tree.lower_bound(hint(), compare).get();
                first.map(|entry| entry.item).filter(|&item| compare(item).is_eq())
            }
            Structure::Hash(hash) => {
                hash.get(def.hash_key(key), |item| def.compare_row_key(row_of(item), key, part_count).is_eq())
            }
        }
    }

    /// Brings what look-ups by these full keys (checked, or made by the server itself) will touch nearer to the processor. Does nothing for a hash.
    pub(crate) fn prefetch_full_keys<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) {
        let (Structure::Tree(tree), None) = (&self.structure, &self.made) else { return };
        let def = &self.def.compare_def;
        let (mut hints, mut count) = ([0; PREFETCH_MAX], 0);
        for (hint, key) in hints.iter_mut().zip(keys) {
            *hint = def.key_hint(key, def.part_count() as u32);
            count += 1;
        }
        let mut recent = self.recent.borrow_mut();
        **recent = Recent::default();
        tree.prefetch(&hints[..count], |entry, place| {
            index::prefetch_bytes(entry.item as *const u8, PREFETCHED_ROW_BYTES);
            let at = recent.count;
            recent.found[at] = Some((entry.hint, place));
            recent.count = at + 1;
        });
    }

    /// Brings the places of these rows (well-formed msgpack) nearer to the processor, and rows they may have to be compared with.
    pub(crate) fn prefetch_rows<'a>(&self, rows: impl Iterator<Item = &'a [u8]>) {
        // Of entries nothing is known before they are made.
        if let (Structure::Tree(tree), None) = (&self.structure, &self.made) {
            let mut hints = [0; PREFETCH_MAX];
            let mut count = 0;
            for (hint, row) in hints.iter_mut().zip(rows) {
                *hint = self.def.compare_def.hint(row);
                count += 1;
            }
            let is_compared = !self.def.compare_def.is_hint_exact();
            tree.prefetch(&hints[..count], |entry, _| {
                if is_compared {
                    index::prefetch_bytes(entry.item as *const u8, COMPARED_ROW_BYTES);
                }
            });
        }
    }

    /// The rows that the last prefetch has found and their number.
    pub(crate) fn recent_rows(&self) -> ([&[u8]; PREFETCH_MAX], usize) {
        let (mut rows, mut count): ([&[u8]; PREFETCH_MAX], _) = ([&[]; PREFETCH_MAX], 0);
        let recent = self.recent.borrow();
        if let Structure::Tree(tree) = &self.structure {
            for (_, place) in recent.found[..recent.count].iter().flatten() {
                // None if entries have moved since.
                if let Some(item) = tree.item_at(place) {
                    rows[count] = row_of(item);
                    count += 1;
                }
            }
        }
        (rows, count)
    }

    /// Puts a row in that is not there. Err: the row that forbids it.
    pub(crate) fn add(&mut self, tuple: &Tuple) -> Result<(), u64> {
        if (self.def.key_def.is_nullable() || self.made.is_some())
            && let Some(existing) = self.conflict(tuple.data(), None)
        {
            return Err(existing);
        }
        if self.made.is_some() {
            self.swap_made(None, Some(tuple));
            return Ok(());
        }
        self.put_or_find(tuple, Mode::Insert).map(|_| ())
    }

    /// One row out, another in. `is_in_place` says that their keys are known to be equal. False if the one to go was not found.
    pub(crate) fn swap(&mut self, old: Option<&Tuple>, new: Option<&Tuple>, is_in_place: bool) -> bool {
        if self.made.is_some() {
            return self.swap_made(old, new);
        }
        let is_in_place = match (old, new) {
            (Some(old), Some(new)) => is_in_place || self.def.compare_def.compare_rows(old.data(), new.data()).is_eq(),
            _ => false,
        };
        let is_found = match (old, is_in_place) {
            (Some(old), false) => self.take(old),
            _ => true,
        };
        if let Some(new) = new {
            self.put(new);
        }
        is_found
    }

    /// As `swap`, for made entries: those that both rows have go over to the new one.
    #[cold]
    fn swap_made(&mut self, old: Option<&Tuple>, new: Option<&Tuple>) -> bool {
        let Some(made) = self.made.take() else { return true };
        let of = |tuple: Option<&Tuple>| tuple.map_or_else(Vec::new, |tuple| made.of(tuple.data(), tuple.as_raw()));
        let (old_entries, new_entries) = (of(old), of(new));
        let is_of_old = |item: u64| Some(address_in(row_of(item))) == old.map(Tuple::as_raw);
        let mut is_found = true;
        for entry in &new_entries {
            let item = made.make(entry);
            if let Some(replaced) = self.put_entry(row_of(item), item) {
                is_found &= is_of_old(replaced);
                made.free(replaced);
            }
        }
        let def = Rc::clone(&self.def.compare_def);
        let is_kept = |entry: &[u8]| new_entries.iter().any(|new| def.compare_rows(new, entry).is_eq());
        for entry in old_entries.iter().filter(|entry| !is_kept(entry)) {
            let is_meant = |item| is_of_old(item) && def.compare_rows(row_of(item), entry).is_eq();
            match self.take_entry(entry, is_meant) {
                Some(item) => made.free(item),
                None => is_found = false,
            }
        }
        self.made = Some(made);
        is_found
    }

    /// Frees up to about `max` entries of an index that is out of use; `take` gets their items if they are wanted. Returns true while something
    /// is left.
    pub(crate) fn release_some(&mut self, max: usize, take: Option<fn(u64)>) -> bool {
        match (&mut self.structure, take) {
            (Structure::Tree(tree), None) => tree.release_some(),
            (Structure::Tree(tree), Some(take)) => {
                let has_more = tree.drain_some(max, take);
                tree.collect(max);
                has_more || tree.release_some()
            }
            (Structure::Hash(hash), take) => hash.drain_some(|item| take.iter().for_each(|take| take(item))),
        }
    }

    /// Puts a row in. If its place is taken, the one that has it goes.
    pub(crate) fn put(&mut self, tuple: &Tuple) {
        if self.made.is_some() {
            self.swap_made(None, Some(tuple));
        } else {
            self.put_entry(tuple.data(), item_of(tuple));
        }
    }

    /// Puts an entry in and gives the item that was in its place.
    fn put_entry(&mut self, entry: &[u8], item: u64) -> Option<u64> {
        self.put_or_find_entry(entry, item, Mode::Replace).unwrap_or_else(Some)
    }

    /// Puts a row in and gives the item that was in its place. Err: there is one and the mode is to insert; nothing was changed.
    /// Rows only.
    #[inline]
    pub(crate) fn put_or_find(&mut self, tuple: &Tuple, mode: Mode) -> Result<Option<u64>, u64> {
        debug_assert!(self.made.is_none(), "a row is no entry of this index");
        self.put_or_find_entry(tuple.data(), item_of(tuple), mode)
    }

    #[inline]
    fn put_or_find_entry(&mut self, row: &[u8], item: u64, mode: Mode) -> Result<Option<u64>, u64> {
        let def = &self.def.compare_def;
        match &mut self.structure {
            Structure::Tree(tree) => {
                let hint = def.hint(row);
                let is_exact = def.is_hint_exact();
                if mode == Mode::Replace
                    && let Some(place) = self.recent.get_mut().find(hint)
                    && let Some(item_there) = tree.item_at(place)
                    && (is_exact || def.compare_rows(row_of(item_there), row).is_eq())
                    && let Some(existing) = tree.replace_item_at(place, item)
                {
                    return Ok(Some(existing));
                }
                if tree.append(Entry { hint, item }, |last| def.compare_rows(row_of(last), row).is_lt()) {
                    return Ok(None);
                }
                let slot = locate(tree, def, hint, row);
                match (slot.found, mode) {
                    (Some(existing), Mode::Insert) => Err(existing),
                    (Some(existing), Mode::Replace) => {
                        tree.replace_at(slot, Entry { hint, item });
                        Ok(Some(existing))
                    }
                    (None, _) => {
                        tree.insert_at(slot, Entry { hint, item });
                        Ok(None)
                    }
                }
            }
            Structure::Hash(hash) => {
                let key = def.hash_row(row);
                let is_same = |other| def.compare_rows(row_of(other), row).is_eq();
                if mode == Mode::Insert
                    && let Some(existing) = hash.get(key, is_same)
                {
                    return Err(existing);
                }
                Ok(hash.replace(key, item, is_same))
            }
        }
    }

    /// Takes a row out. False if it is not where its key belongs.
    #[must_use]
    pub(crate) fn take(&mut self, tuple: &Tuple) -> bool {
        let item = item_of(tuple);
        self.take_entry(tuple.data(), |found| found == item).is_some()
    }

    /// Takes the item out that has the key of an entry, if it is the one that is meant.
    #[inline]
    fn take_entry(&mut self, entry: &[u8], is_meant: impl Fn(u64) -> bool) -> Option<u64> {
        let def = &self.def.compare_def;
        match &mut self.structure {
            Structure::Tree(tree) => {
                let slot = locate(tree, def, def.hint(entry), entry);
                let found = slot.found.filter(|&found| is_meant(found))?;
                tree.remove_at(slot);
                Some(found)
            }
            Structure::Hash(hash) => hash.remove(def.hash_row(entry), is_meant),
        }
    }

    /// Where a scan of a tree begins. `part_count` 0 means the whole index.
    fn seek(&self, tree: &Tree, Sought { kind, key, part_count }: Sought<'_>) -> Cursor {
        if part_count == 0 {
            return if kind.is_reverse() { tree.last() } else { tree.first() };
        }
        let def = &self.def.key_def;
        let compare = |item| def.compare_row_key(row_of(item), key, part_count);
        let before = || self.def.compare_def.key_hint(key, part_count);
        let behind = || self.def.compare_def.key_hint_above(key, part_count);
        match kind {
            IteratorKind::Req | IteratorKind::Le => tree.last_not_after(behind(), compare),
            IteratorKind::Lt => tree.last_before(before(), compare),
            IteratorKind::Gt => tree.upper_bound(behind(), compare),
            _ => tree.lower_bound(before(), compare),
        }
    }

    /// True if an item is still within an EQ or REQ scan.
    #[inline]
    fn matches(&self, Sought { kind, key, part_count }: Sought<'_>, item: u64) -> bool {
        !matches!(kind, IteratorKind::Eq | IteratorKind::Req)
            || part_count == 0
            || self.def.key_def.compare_row_key(row_of(item), key, part_count).is_eq()
    }

    /// Calls `visit` with the rows of a scan until it returns false, with each row once for each of its entries.
    pub(crate) fn scan(&self, kind: IteratorKind, key: &[u8], part_count: u32, mut visit: impl FnMut(u64) -> bool) {
        if kind == IteratorKind::Eq && self.is_exact(part_count) {
            if let Some(item) = self.find_key(key, part_count) {
                visit(item);
            }
            return;
        }
        match &self.structure {
            Structure::Tree(tree) => {
                let sought = Sought { kind, key, part_count };
                let mut cursor = self.seek(tree, sought);
                while let Some(entry) = cursor.get() {
                    if !self.matches(sought, entry.item) || !visit(self.owner(entry.item)) {
                        return;
                    }
                    if kind.is_reverse() {
                        cursor.prev();
                    } else {
                        cursor.next();
                    }
                }
            }
            Structure::Hash(hash) => {
                let mut cursor = HashCursor::default();
                let mut wanted = true;
                while wanted && hash.next_batch(&mut cursor, |item| wanted = wanted && visit(self.owner(item))) {}
            }
        }
    }

    /// The next row of a scan between whose steps the index may change.
    pub(super) fn step(&self, sought: Sought<'_>, progress: &mut Progress) -> Option<Tuple> {
        match (&self.structure, progress) {
            (_, Progress::Done) => None,
            (Structure::Tree(tree), progress) => {
                let cursor = match progress {
                    Progress::Start => self.seek(tree, sought),
                    Progress::Tree { cursor, version, .. } if *version == tree.version() => {
                        let mut cursor = *cursor;
                        if sought.kind.is_reverse() {
                            cursor.prev();
                        } else {
                            cursor.next();
                        }
                        cursor
                    }
                    Progress::Tree { last, made, .. } => {
                        self.seek_behind(tree, sought.kind, made.as_deref().unwrap_or_else(|| last.data()))
                    }
                    Progress::Behind(last) => self.seek_behind(tree, sought.kind, last.data()),
                    _ => return None,
                };
                let entry = cursor.get()?;
                if !self.matches(sought, entry.item) {
                    return None;
                }
                let last = tuple_of(self.owner(entry.item));
                // The index may free the entry before the scan goes on.
                let made = self.made.is_some().then(|| row_of(entry.item).into());
                *progress = Progress::Tree { cursor, version: tree.version(), last: last.clone(), made };
                Some(last)
            }
            (Structure::Hash(_), progress @ Progress::Start)
                if sought.kind == IteratorKind::Eq && sought.part_count > 0 =>
            {
                *progress = Progress::Done;
                self.find_key(sought.key, sought.part_count).map(tuple_of)
            }
            (Structure::Hash(hash), progress) => {
                if let Progress::Start = progress {
                    *progress = Progress::Hash { cursor: HashCursor::default(), batch: Vec::new() };
                }
                let Progress::Hash { cursor, batch } = progress else { return None };
                while batch.is_empty() {
                    if !hash.next_batch(cursor, |item| batch.push(tuple_of(self.owner(item)))) {
                        return None;
                    }
                }
                batch.pop()
            }
        }
    }

    /// The next rows of such a scan, up to `max`. False: it has ended with them.
    pub(super) fn step_some(
        &self,
        sought: Sought<'_>,
        progress: &mut Progress,
        max: usize,
        rows: &mut Vec<Tuple>,
    ) -> bool {
        let first = rows.len();
        let Some(row) = self.step(sought, progress) else { return false };
        rows.push(row);
        let (Structure::Tree(_), Progress::Tree { cursor, last, .. }, None) =
            (&self.structure, &mut *progress, &self.made)
        else {
            return true;
        };
        let mut items = [0; STEP_MAX];
        let mut count = 0;
        let mut at = *cursor;
        let mut has_ended = false;
        while count + 1 < max.min(STEP_MAX) {
            if sought.kind.is_reverse() {
                at.prev();
            } else {
                at.next();
            }
            match at.get() {
                Some(entry) if self.matches(sought, entry.item) => {
                    // Rows of a secondary index lie anywhere.
                    index::prefetch_bytes(entry.item as *const u8, PREFETCHED_ROW_BYTES);
                    items[count] = entry.item;
                    count += 1;
                    *cursor = at;
                }
                _ => {
                    has_ended = true;
                    break;
                }
            }
        }
        rows.extend(items[..count].iter().map(|item| tuple_of(*item)));
        if count > 0
            && let Some(row) = rows[first..].last()
        {
            *last = row.clone();
        }
        if has_ended {
            *progress = Progress::Done;
        }
        !has_ended
    }

    /// The place behind an entry, whether the tree has it or not.
    fn seek_behind(&self, tree: &Tree, kind: IteratorKind, last: &[u8]) -> Cursor {
        let def = &self.def.compare_def;
        let compare = |item| def.compare_rows(row_of(item), last);
        if kind.is_reverse() {
            tree.last_before(def.hint(last), compare)
        } else {
            tree.upper_bound(def.hint(last), compare)
        }
    }

    /// The next rows of a pass, up to `max` or a table of a hash, and how far the pass has come with them. For an ordinary index.
    pub(super) fn next_rows(&self, pass: &Pass, max: usize) -> (Vec<u64>, Pass) {
        assert!(self.made.is_none(), "a pass gives each row once");
        let mut rows = Vec::new();
        match (&self.structure, pass) {
            (_, Pass::Done) => (rows, Pass::Done),
            (Structure::Tree(tree), pass) => {
                let def = &self.def.compare_def;
                let mut cursor = match pass {
                    Pass::Behind(last) => {
                        let last = last.data();
                        tree.upper_bound(def.hint(last), |item| def.compare_rows(row_of(item), last))
                    }
                    _ => tree.first(),
                };
                while rows.len() < max
                    && let Some(entry) = cursor.get()
                {
                    rows.push(entry.item);
                    cursor.next();
                }
                let next = match (cursor.get(), rows.last()) {
                    (Some(_), Some(&last)) => Pass::Behind(tuple_of(last)),
                    _ => Pass::Done,
                };
                (rows, next)
            }
            (Structure::Hash(hash), pass) => {
                let mut cursor = if let Pass::Hash(cursor) = pass { *cursor } else { HashCursor::default() };
                let has_more = hash.next_batch(&mut cursor, |item| rows.push(item));
                (rows, if has_more { Pass::Hash(cursor) } else { Pass::Done })
            }
        }
    }

    /// True if a pass has given the row with this row's key, if there is one.
    pub(super) fn has_passed(&self, pass: &Pass, row: &[u8]) -> bool {
        let def = &self.def.compare_def;
        match pass {
            Pass::Start => false,
            Pass::Behind(last) => def.compare_rows(row, last.data()).is_le(),
            Pass::Hash(cursor) => cursor.has_passed(def.hash_row(row)),
            Pass::Done => true,
        }
    }

    /// Has the rows fetched that keys of one text name, if this is a hash index of such.
    pub(super) fn prefetch_texts<'a>(&self, mut texts: impl Iterator<Item = &'a [u8]>) {
        let Structure::Hash(hash) = &self.structure else { return };
        let mut hashes = [0; PREFETCH_MAX];
        loop {
            let mut count = 0;
            for (wanted, text) in hashes.iter_mut().zip(&mut texts) {
                *wanted = self.def.compare_def.hash_text(text);
                hash.prefetch_tags(*wanted);
                count += 1;
            }
            hashes[..count].iter().for_each(|wanted| hash.prefetch(*wanted));
            for wanted in &hashes[..count] {
                hash.get(*wanted, |item| {
                    index::prefetch_bytes(item as *const u8, PREFETCHED_ROW_BYTES);
                    // None is taken: what has the same tag is hardly ever another row.
                    false
                });
            }
            if count < PREFETCH_MAX {
                return;
            }
        }
    }

    /// See [`Hash::next_some`](index::Hash::next_some); none if it is ordered.
    pub(super) fn next_some(&self, from: u64, count: usize, mut visit: impl FnMut(u64)) -> Option<u64> {
        match &self.structure {
            Structure::Tree(_) => None,
            Structure::Hash(hash) => Some(hash.next_some(from, count, |item| visit(self.owner(item)))),
        }
    }

    /// Some row, chosen by `seed`.
    pub(super) fn random(&self, seed: u64) -> Option<Tuple> {
        let item = match &self.structure {
            Structure::Tree(tree) => tree.random(seed)?.item,
            Structure::Hash(hash) => hash.random(seed)?,
        };
        Some(tuple_of(self.owner(item)))
    }

    /// Appends what an ordered index has of a row to entries that are to be sorted, for `set_sorted`.
    pub(super) fn gather(&self, row: u64, entries: &mut Vec<Entry>) {
        let def = &self.def.compare_def;
        match &self.made {
            None => entries.push(Entry { hint: def.hint(row_of(row)), item: row }),
            Some(made) => entries.extend(made.of(row_of(row), row).iter().map(|entry| {
                let item = made.make(entry);
                Entry { hint: def.hint(entry), item }
            })),
        }
    }

    /// Becomes an index of these entries, in their order.
    pub(super) fn set_sorted(&mut self, entries: Vec<Entry>) {
        debug_assert!(entries.is_sorted_by(|a, b| {
            (a.hint, self.def.compare_def.compare_rows(row_of(a.item), row_of(b.item))) <= (b.hint, Ordering::Equal)
        }));
        self.structure = Structure::Tree(Tree::from_sorted(entries));
    }

    /// Freezes the rows as they are. For a primary index.
    pub(super) fn open_view(&mut self) -> MemoryView {
        assert!(self.made.is_none(), "a view reads rows");
        match &mut self.structure {
            Structure::Tree(tree) => MemoryView::tree(tree.open_view()),
            Structure::Hash(hash) => MemoryView::hash(hash.open_view()),
        }
    }

    /// Frees a slice of what only closed views held. Returns true while there may be more.
    pub(super) fn collect(&mut self, max: usize) -> bool {
        match &mut self.structure {
            Structure::Tree(tree) => tree.collect(max),
            Structure::Hash(_) => false,
        }
    }

    /// True if it can have two states: only trees can, and an entry that is no row is freed when it leaves.
    pub(super) fn can_fork(&self) -> bool {
        matches!(&self.structure, Structure::Tree(tree) if !tree.is_forked()) && self.made.is_none()
    }

    /// From now on it has two states, see `fork.rs`.
    pub(super) fn fork(&mut self) {
        if let Structure::Tree(tree) = &mut self.structure {
            tree.fork();
        }
    }

    /// Says which state is in place.
    pub(super) fn show_base(&mut self, is_base: bool) {
        if let Structure::Tree(tree) = &mut self.structure {
            tree.show_base(is_base);
        }
    }

    /// One of the states stays.
    pub(super) fn end_fork(&mut self, kept: Kept) {
        if let Structure::Tree(tree) = &mut self.structure {
            tree.end_fork(kept);
        }
    }

    /// True if `view` was opened on this index.
    pub(crate) fn owns_view(&self, view: &MemoryView) -> bool {
        match (view.as_tree(), &self.structure) {
            (Some(view), Structure::Tree(tree)) => tree.owns(view),
            _ => false,
        }
    }

    /// True while a view is open that has to be closed here.
    pub(crate) fn has_views(&self) -> bool {
        matches!(&self.structure, Structure::Tree(tree) if tree.has_views())
    }

    /// Gives a view back.
    pub(crate) fn close_view(&mut self, view: MemoryView) {
        if let (Some(view), Structure::Tree(tree)) = (view.into_tree(), &mut self.structure) {
            tree.close_view(view);
        }
    }

    /// True if a key of so many parts names at most one row.
    pub(crate) fn is_exact(&self, part_count: u32) -> bool {
        self.def.is_unique
            && part_count as usize == self.def.key_def.part_count()
            && (!self.def.key_def.is_nullable() || self.def.kind == IndexKind::Hash)
    }
}
