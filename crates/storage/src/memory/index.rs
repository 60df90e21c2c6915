//! One index of a memory space: a tree or a hash of row pointers.
#![expect(unsafe_code, reason = "row pointers in indexes are kept alive by the primary index")]

use super::view::MemoryView;
use crate::engine::{IndexDef, IndexKind, IteratorKind, Mode};
use index::{Cursor, Entry, Hash, HashCursor, PREFETCH_MAX, Place, Slot, Tree};
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use tuple::{KeyDef, Tuple};

pub(crate) enum Structure {
    Tree(Tree),
    Hash(Hash),
}

/// Of a row: what most rows have.
const PREFETCHED_ROW_BYTES: usize = 192;

/// What the last prefetch found, for the look-ups that follow it at once.
#[derive(Default)]
struct Recent {
    found: [Option<(u64, Place)>; PREFETCH_MAX],
    /// So many of them are in use.
    count: usize,
    /// Look-ups come in the order of the prefetch: this one is expected next.
    next: Cell<usize>,
}

impl Recent {
    /// The place of a hint.
    fn find(&self, hint: u64) -> Option<&Place> {
        let next = self.next.get();
        // The one just found is asked for again when its row is changed.
        let likely = [next, next.wrapping_sub(1)];
        let found = likely
            .into_iter()
            .chain(0..self.count)
            .find(|&at| at < self.count && self.found[at].is_some_and(|(known, _)| known == hint))?;
        self.next.set(found + 1);
        self.found[found].as_ref().map(|(_, place)| place)
    }
}

pub(crate) struct MemoryIndex {
    pub(crate) def: IndexDef,
    pub(crate) structure: Structure,
    recent: RefCell<Box<Recent>>,
}

/// The place of a row's whole key in a tree.
fn locate(tree: &Tree, def: &KeyDef, hint: u64, row: &[u8]) -> Slot {
    if def.is_hint_exact() {
        return tree.locate(hint, |_| Ordering::Equal);
    }
    tree.locate(hint, |other| def.compare_rows(row_of(other), row))
}

/// Bytes of the row behind an index item.
pub(crate) fn row_of<'a>(item: u64) -> &'a [u8] {
    // SAFETY: an item in an index is a row that the primary index holds a reference to; callers use the slice only while
    // the space is not changed.
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
        MemoryIndex { def, structure, recent: RefCell::default() }
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
        match &self.structure {
            Structure::Tree(tree) => tree.bytes(),
            Structure::Hash(hash) => hash.bytes(),
        }
    }

    /// The item whose whole key equals `row`'s, by the order of the index.
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

    /// The row that forbids `row` to be inserted here, `replaced` set aside.
    pub(crate) fn conflict(&self, row: &[u8], replaced: Option<u64>) -> Option<u64> {
        if !self.def.is_unique {
            return None;
        }
        let def = &self.def.key_def;
        let found = match &self.structure {
            Structure::Tree(tree) if def.is_nullable() => {
                if def.has_null_in(row) {
                    return None;
                }
                let compare = |item| def.compare_rows(row_of(item), row);
                let first = tree.lower_bound(def.hint(row), compare).get();
                first.map(|entry| entry.item).filter(|&item| compare(item).is_eq())
            }
            _ => self.find_row(row),
        };
        found.filter(|&item| Some(item) != replaced)
    }

    /// The item of a unique index with exactly this key.
    pub(crate) fn find_key(&self, key: &[u8], part_count: u32) -> Option<u64> {
        let def = &self.def.key_def;
        match &self.structure {
            Structure::Tree(tree) if part_count == 1 && self.def.compare_def.is_hint_exact() => {
                self.find_hint(tree, def.key_hint(key, part_count))
            }
            Structure::Tree(tree) if self.def.compare_def.part_count() == part_count as usize => {
                tree.get(def.key_hint(key, part_count), |item| def.compare_row_key(row_of(item), key, part_count))
            }
            Structure::Tree(tree) => {
                let compare = |item| def.compare_row_key(row_of(item), key, part_count);
                let first = tree.lower_bound(def.key_hint(key, part_count), compare).get();
                first.map(|entry| entry.item).filter(|&item| compare(item).is_eq())
            }
            Structure::Hash(hash) => {
                hash.get(def.hash_key(key), |item| def.compare_row_key(row_of(item), key, part_count).is_eq())
            }
        }
    }

    /// Brings the places of these rows (well-formed msgpack) nearer to the processor.
    pub(crate) fn prefetch_rows<'a>(&self, rows: impl Iterator<Item = &'a [u8]>) {
        if let Structure::Tree(tree) = &self.structure {
            let mut hints = [0; PREFETCH_MAX];
            let mut count = 0;
            for (hint, row) in hints.iter_mut().zip(rows) {
                *hint = self.def.compare_def.hint(row);
                count += 1;
            }
            tree.prefetch(&hints[..count], |_, _| {});
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

    /// Puts a row in that is not there. Err: the item that forbids it.
    pub(crate) fn add(&mut self, tuple: &Tuple) -> Result<(), u64> {
        if self.def.key_def.is_nullable()
            && let Some(existing) = self.conflict(tuple.data(), None)
        {
            return Err(existing);
        }
        self.put_or_find(tuple, Mode::Insert).map(|_| ())
    }

    /// One row out, another in. `is_in_place` says that their keys are known to be equal. False if the one to go was not found.
    pub(crate) fn swap(&mut self, old: Option<&Tuple>, new: Option<&Tuple>, is_in_place: bool) -> bool {
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

    /// Puts a row in. If its place is taken by `replaced`, that one goes.
    pub(crate) fn put(&mut self, tuple: &Tuple) {
        let row = tuple.data();
        let item = item_of(tuple);
        let def = &self.def.compare_def;
        match &mut self.structure {
            Structure::Tree(tree) => {
                let hint = def.hint(row);
                if let Some(place) = self.recent.get_mut().find(hint)
                    && tree.replace_item_at(place, item).is_some()
                {
                    return;
                }
                if tree.append(Entry { hint, item }, |last| def.compare_rows(row_of(last), row).is_lt()) {
                    return;
                }
                let slot = locate(tree, def, hint, row);
                match slot.found {
                    Some(_) => tree.replace_at(slot, Entry { hint, item }),
                    None => tree.insert_at(slot, Entry { hint, item }),
                }
            }
            Structure::Hash(hash) => {
                hash.replace(def.hash_row(row), item, |other| def.compare_rows(row_of(other), row).is_eq());
            }
        }
    }

    /// Puts a row in and gives the item that was in its place. Err: there is one and the mode is to insert; nothing was changed.
    pub(crate) fn put_or_find(&mut self, tuple: &Tuple, mode: Mode) -> Result<Option<u64>, u64> {
        let row = tuple.data();
        let item = item_of(tuple);
        let def = &self.def.compare_def;
        match &mut self.structure {
            Structure::Tree(tree) => {
                let hint = def.hint(row);
                if mode == Mode::Replace
                    && let Some(place) = self.recent.get_mut().find(hint)
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
        let row = tuple.data();
        let def = &self.def.compare_def;
        match &mut self.structure {
            Structure::Tree(tree) => {
                let hint = def.hint(row);
                let slot = locate(tree, def, hint, row);
                let is_found = slot.found == Some(item_of(tuple));
                if is_found {
                    tree.remove_at(slot);
                }
                is_found
            }
            Structure::Hash(hash) => hash.remove(def.hash_row(row), |other| other == item_of(tuple)).is_some(),
        }
    }

    /// Where a scan of a tree begins. `part_count` 0 means the whole index.
    pub(crate) fn seek(&self, tree: &Tree, kind: IteratorKind, key: &[u8], part_count: u32) -> Cursor {
        if part_count == 0 {
            return if kind.is_reverse() { tree.last() } else { tree.first() };
        }
        let def = &self.def.key_def;
        let hint = def.key_hint(key, part_count);
        let compare = |item| def.compare_row_key(row_of(item), key, part_count);
        match kind {
            IteratorKind::Req | IteratorKind::Le => tree.last_not_after(hint, compare),
            IteratorKind::Lt => tree.last_before(hint, compare),
            IteratorKind::Gt => tree.upper_bound(hint, compare),
            _ => tree.lower_bound(hint, compare),
        }
    }

    /// True if a row is still within an EQ or REQ scan.
    pub(crate) fn matches(&self, kind: IteratorKind, item: u64, key: &[u8], part_count: u32) -> bool {
        !matches!(kind, IteratorKind::Eq | IteratorKind::Req)
            || part_count == 0
            || self.def.key_def.compare_row_key(row_of(item), key, part_count).is_eq()
    }

    /// Calls `visit` with the items of a scan until it returns false.
    pub(crate) fn scan(&self, kind: IteratorKind, key: &[u8], part_count: u32, mut visit: impl FnMut(u64) -> bool) {
        if kind == IteratorKind::Eq && self.is_exact(part_count) {
            if let Some(item) = self.find_key(key, part_count) {
                visit(item);
            }
            return;
        }
        match &self.structure {
            Structure::Tree(tree) => {
                let mut cursor = self.seek(tree, kind, key, part_count);
                while let Some(entry) = cursor.get() {
                    if !self.matches(kind, entry.item, key, part_count) || !visit(entry.item) {
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
                while wanted && hash.next_batch(&mut cursor, |item| wanted = wanted && visit(item)) {}
            }
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
