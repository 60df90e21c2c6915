//! The memtable of a tree: what was written since the last dump.
//!
//! Entries lie one behind the other in chunks that are freed together; an ordered tree holds their places. An entry that is replaced stays
//! in its chunk: whoever rolls the change back puts its place into the tree again.
//!
//! ```text
//! entry:  key length u32 | value length u32 | filter prefix u32 | kind u8 | key | value
//! place:  chunk number << 32 | offset
//! ```
//!
//! Invariant: a sealed memtable gets no more entries. Only undo changes its tree, and a dump reads a view of it.

use super::entry::{Entry, EntryKind};
use index::{Cursor, Tree, TreeView};
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::Arc;

use super::error::LsmError;

/// Bytes of the first chunk: many memtables hold next to nothing. Each next one is twice as large.
const CHUNK_BYTES_MIN: usize = 4 << 10;
/// Up to this. A larger entry gets a chunk of its own.
const CHUNK_BYTES_MAX: usize = 256 << 10;
const _: () = assert!(CHUNK_BYTES_MIN << CHUNK_DOUBLINGS == CHUNK_BYTES_MAX);
const CHUNK_DOUBLINGS: usize = 6;
const HEADER_BYTES: usize = 13;
/// Bytes of an entry that are asked for ahead: of a short one all.
const PREFETCHED_BYTES: usize = 128;

/// The bytes of a memtable.
#[derive(Default)]
pub(crate) struct Chunks {
    chunks: Vec<Vec<u8>>,
}

fn number(bytes: &[u8]) -> usize {
    u32::from_le_bytes(bytes.try_into().expect("four bytes")) as usize
}

impl Chunks {
    fn push(&mut self, entry: Entry<'_>, filter_prefix: usize) -> (u64, usize) {
        let size = HEADER_BYTES + entry.key.len() + entry.value.len();
        let has_room = self.chunks.last().is_some_and(|chunk| chunk.capacity() - chunk.len() >= size);
        let mut taken = 0;
        if !has_room {
            taken = size.max(CHUNK_BYTES_MIN << self.chunks.len().min(CHUNK_DOUBLINGS));
            self.chunks.push(Vec::with_capacity(taken));
        }
        let at = self.chunks.len() - 1;
        let chunk = &mut self.chunks[at];
        let place = (at as u64) << 32 | chunk.len() as u64;
        chunk.extend_from_slice(&(entry.key.len() as u32).to_le_bytes());
        chunk.extend_from_slice(&(entry.value.len() as u32).to_le_bytes());
        chunk.extend_from_slice(&(filter_prefix as u32).to_le_bytes());
        chunk.push(entry.kind as u8);
        chunk.extend_from_slice(entry.key);
        chunk.extend_from_slice(entry.value);
        (place, taken)
    }

    #[inline]
    fn key(&self, place: u64) -> &[u8] {
        let bytes = &self.chunks[(place >> 32) as usize][place as u32 as usize..];
        &bytes[HEADER_BYTES..HEADER_BYTES + number(&bytes[..4])]
    }

    /// The entry at a place, and how many bytes of its key the filter of a run is to know.
    pub(crate) fn entry(&self, place: u64) -> (Entry<'_>, usize) {
        let bytes = &self.chunks[(place >> 32) as usize][place as u32 as usize..];
        let (key_end, filter_prefix) = (HEADER_BYTES + number(&bytes[..4]), number(&bytes[8..12]));
        let kind = match bytes[12] {
            0 => EntryKind::Put,
            1 => EntryKind::Delete,
            _ => EntryKind::Upsert,
        };
        let value = &bytes[key_end..key_end + number(&bytes[4..8])];
        (Entry { key: &bytes[HEADER_BYTES..key_end], kind, value }, filter_prefix)
    }
}

/// An order-preserving part of a key. See `index::Entry::hint`.
fn hint_of(key: &[u8], hint_at: usize) -> u64 {
    let mut bytes = [0; 8];
    let rest = key.get(hint_at..).unwrap_or(&[]);
    let length = rest.len().min(8);
    bytes[..length].copy_from_slice(&rest[..length]);
    u64::from_be_bytes(bytes)
}

/// What undoes a change of a memtable: what came in, and in whose place.
#[derive(Clone)]
pub(crate) struct MemtableChange {
    pub(crate) memtable: Rc<Memtable>,
    pub(crate) new: u64,
    old: Option<u64>,
}

/// See the head of this file.
pub(crate) struct Memtable {
    tree: RefCell<Tree>,
    chunks: RefCell<Arc<Chunks>>,
    /// Where in a key its hint begins: behind the byte that all keys have alike.
    hint_at: usize,
    chunk_bytes: Cell<usize>,
    deletes: Cell<u64>,
    /// Bytes of keys and values that were written, for the accounts of amplification.
    written_bytes: Cell<u64>,
    /// Bytes that the engine counts for it.
    charged: Cell<usize>,
    /// The engine counts it no more: its entries are in runs.
    is_discharged: Cell<bool>,
}

impl Memtable {
    pub(crate) fn new(hint_at: usize) -> Rc<Self> {
        Rc::new(Memtable {
            tree: RefCell::new(Tree::new()),
            chunks: RefCell::default(),
            hint_at,
            chunk_bytes: Cell::new(0),
            deletes: Cell::new(0),
            written_bytes: Cell::new(0),
            charged: Cell::new(0),
            is_discharged: Cell::new(false),
        })
    }

    /// Memory that goes with the memtable.
    pub(crate) fn bytes(&self) -> usize {
        self.chunk_bytes.get() + self.tree.borrow().bytes()
    }

    /// Memory of its entries, replaced ones included; the rest is the tree over them.
    pub(crate) fn entry_bytes(&self) -> usize {
        self.chunk_bytes.get()
    }

    /// Bytes by which the memtable has grown since the last call.
    pub(crate) fn growth(&self) -> usize {
        let bytes = self.bytes();
        let growth = bytes.saturating_sub(self.charged.get());
        self.charged.set(self.charged.get() + growth);
        growth
    }

    /// Sum of all that `growth` has returned.
    pub(crate) fn charged(&self) -> usize {
        self.charged.get()
    }

    /// The engine counts it no more.
    pub(crate) fn set_discharged(&self) {
        self.is_discharged.set(true);
    }

    pub(crate) fn is_discharged(&self) -> bool {
        self.is_discharged.get()
    }

    /// Number of keys.
    pub(crate) fn len(&self) -> usize {
        self.tree.borrow().len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tree.borrow().is_empty()
    }

    /// Entries that say that a key is gone, counted as they were written.
    pub(crate) fn deletes(&self) -> u64 {
        self.deletes.get()
    }

    pub(crate) fn written_bytes(&self) -> u64 {
        self.written_bytes.get()
    }

    /// Puts an entry in the place of the one with the same key, if any.
    pub(crate) fn put(self: &Rc<Self>, entry: Entry<'_>, filter_prefix: usize) -> MemtableChange {
        let new = {
            let mut chunks = self.chunks.borrow_mut();
            let chunks =
                Arc::get_mut(&mut chunks).expect("only sealed memtables are shared, and nothing is put into those");
            let (new, taken) = chunks.push(entry, filter_prefix);
            self.chunk_bytes.set(self.chunk_bytes.get() + taken);
            new
        };
        if entry.kind == EntryKind::Delete {
            self.deletes.set(self.deletes.get() + 1);
        }
        debug_assert!(entry.kind != EntryKind::Delete || entry.value.is_empty(), "a delete has no value");
        let written = entry.key.len() + entry.value.len();
        self.written_bytes.set(self.written_bytes.get() + written as u64);
        let old = self.set(entry.key, Some(new));
        MemtableChange { memtable: Rc::clone(self), new, old }
    }

    /// Makes a place the one of its key, or none. Returns the one that was.
    fn set(&self, key: &[u8], place: Option<u64>) -> Option<u64> {
        let chunks = self.chunks.borrow();
        let mut tree = self.tree.borrow_mut();
        let hint = hint_of(key, self.hint_at);
        if let Some(item) = place
            && tree.append(index::Entry { hint, item }, |last| chunks.key(last) < key)
        {
            return None;
        }
        let slot = tree.locate(hint, |item| chunks.key(item).cmp(key));
        let old = slot.found;
        match (old, place) {
            (Some(_), Some(item)) => tree.replace_at(slot, index::Entry { hint, item }),
            (None, Some(item)) => tree.insert_at(slot, index::Entry { hint, item }),
            (Some(_), None) => tree.remove_at(slot),
            (None, None) => {}
        }
        old
    }

    /// Rolls a change back, the newest one that is applied.
    pub(crate) fn undo(&self, change: &MemtableChange) {
        let key = self.chunks.borrow().key(change.new).to_vec();
        let undone = self.set(&key, change.old);
        debug_assert_eq!(undone, Some(change.new), "changes are undone from the newest to the oldest");
    }

    /// Hands the entry of a key to `read`.
    pub(crate) fn find<R>(&self, key: &[u8], read: impl FnOnce(u64, Entry<'_>) -> R) -> Option<R> {
        let tree = self.tree.borrow();
        if tree.is_empty() {
            return None;
        }
        let chunks = self.chunks.borrow();
        let place = tree.get(hint_of(key, self.hint_at), |item| chunks.key(item).cmp(key))?;
        Some(read(place, chunks.entry(place).0))
    }

    /// Brings what `find` will look at nearer to the processor, for keys that have these hints.
    pub(crate) fn prefetch(&self, hints: &[u64]) {
        let tree = self.tree.borrow();
        if tree.is_empty() {
            return;
        }
        let chunks = self.chunks.borrow();
        tree.prefetch(hints, |entry, _| {
            let chunk = &chunks.chunks[(entry.item >> 32) as usize];
            index::prefetch_bytes(chunk[entry.item as u32 as usize..].as_ptr(), PREFETCHED_BYTES);
        });
    }

    /// As `find`, in what a hold keeps.
    fn find_in<R>(&self, view: &TreeView, key: &[u8], read: impl FnOnce(u64, Entry<'_>) -> R) -> Option<R> {
        let chunks = self.chunks.borrow();
        let found = view.lower_bound(hint_of(key, self.hint_at), |item| chunks.key(item).cmp(key)).get()?;
        let (entry, _) = chunks.entry(found.item);
        (entry.key == key).then(|| read(found.item, entry))
    }

    /// Hands the entry at a place to `read`.
    pub(crate) fn read<R>(&self, place: u64, read: impl FnOnce(Entry<'_>, usize) -> R) -> R {
        let chunks = self.chunks.borrow();
        let (entry, filter_prefix) = chunks.entry(place);
        read(entry, filter_prefix)
    }

    /// The first entry whose key is not less than `key`, or greater than it.
    pub(crate) fn seek_from(&self, key: &[u8], is_included: bool) -> Cursor {
        let (tree, chunks) = (self.tree.borrow(), self.chunks.borrow());
        let compare = |item| -> Ordering { chunks.key(item).cmp(key) };
        let hint = hint_of(key, self.hint_at);
        if is_included { tree.lower_bound(hint, compare) } else { tree.upper_bound(hint, compare) }
    }

    /// The last entry whose key is less than `key`.
    pub(crate) fn seek_before(&self, key: Option<&[u8]>) -> Cursor {
        let (tree, chunks) = (self.tree.borrow(), self.chunks.borrow());
        match key {
            Some(key) => tree.last_before(hint_of(key, self.hint_at), |item| chunks.key(item).cmp(key)),
            None => tree.last(),
        }
    }

    /// Keeps what the tree's cursors point at as it is, until the result is dropped.
    pub(crate) fn hold(self: &Rc<Self>) -> MemtableHold {
        MemtableHold { view: Some(self.tree.borrow_mut().open_view()), memtable: Rc::clone(self) }
    }

    /// A sealed memtable, to be read by another thread.
    pub(crate) fn share(&self) -> SharedMemtable {
        SharedMemtable { view: self.tree.borrow_mut().open_view(), chunks: Arc::clone(&self.chunks.borrow()) }
    }

    /// Takes back what `share` gave.
    pub(crate) fn unshare(&self, shared: SharedMemtable) {
        self.tree.borrow_mut().close_view(shared.view);
    }

    /// The bytes of a memtable that is out of use, to be freed elsewhere: giving back so much memory takes milliseconds.
    pub(crate) fn take_chunks(&self) -> Option<Arc<Chunks>> {
        let is_taken = self.chunks.borrow().chunks.is_empty();
        (!is_taken).then(|| self.chunks.replace(Arc::default()))
    }

    /// Frees a slice of the tree of a memtable that is out of use. Returns true while something is left.
    pub(crate) fn release_some(&self) -> bool {
        let mut tree = self.tree.borrow_mut();
        !tree.has_views() && tree.release_some()
    }
}

/// See [`Memtable::hold`].
pub(crate) struct MemtableHold {
    memtable: Rc<Memtable>,
    view: Option<TreeView>,
}

impl MemtableHold {
    pub(crate) fn memtable(&self) -> &Rc<Memtable> {
        &self.memtable
    }

    /// Hands the entry that a key had to `read`.
    pub(crate) fn find<R>(&self, key: &[u8], read: impl FnOnce(u64, Entry<'_>) -> R) -> Option<R> {
        self.memtable.find_in(self.view.as_ref()?, key, read)
    }

    /// The first entry that there was whose key is not less than `key`.
    pub(crate) fn seek_from(&self, key: &[u8]) -> Option<Cursor> {
        let (view, chunks) = (self.view.as_ref()?, self.memtable.chunks.borrow());
        Some(view.lower_bound(hint_of(key, self.memtable.hint_at), |item| chunks.key(item).cmp(key)))
    }

    /// The last entry that there was whose key is less than `key`.
    pub(crate) fn seek_before(&self, key: Option<&[u8]>) -> Option<Cursor> {
        let (view, chunks) = (self.view.as_ref()?, self.memtable.chunks.borrow());
        Some(match key {
            Some(key) => view.last_before(hint_of(key, self.memtable.hint_at), |item| chunks.key(item).cmp(key)),
            None => view.last(),
        })
    }
}

impl Drop for MemtableHold {
    fn drop(&mut self) {
        let mut tree = self.memtable.tree.borrow_mut();
        if let Some(view) = self.view.take() {
            tree.close_view(view);
        }
        tree.collect(usize::MAX);
    }
}

/// A sealed memtable as a worker thread reads it.
pub(crate) struct SharedMemtable {
    view: TreeView,
    chunks: Arc<Chunks>,
}

impl SharedMemtable {
    /// Hands over all entries in order, with the bytes of the key that a filter is to know.
    pub(crate) fn for_each(
        &self,
        mut visit: impl FnMut(Entry<'_>, usize) -> Result<(), LsmError>,
    ) -> Result<(), LsmError> {
        let mut cursor = self.view.first();
        let mut last: Option<&[u8]> = None;
        while let Some(found) = cursor.get() {
            let (entry, filter_prefix) = self.chunks.entry(found.item);
            debug_assert!(last.is_none_or(|last| last < entry.key), "a memtable has each key once, in order");
            last = Some(entry.key);
            visit(entry, filter_prefix)?;
            cursor.next();
        }
        Ok(())
    }
}
