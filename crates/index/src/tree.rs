//! An ordered index: a B+tree of `(hint, item)` entries with copy-on-write read views.
//!
//! The idea. Leaves hold entries in order, inner nodes hold, for every child but the first, a copy of the smallest
//! entry below that child. Hints and items live in separate arrays, so a binary search walks one dense array of
//! integers and asks the caller's comparison only where hints tie.
//!
//! ```text
//! inner   epoch len | hint0 hint1 ... | item0 item1 ... | child0 child1 ...      41 children, 1 KiB
//! leaf    epoch len | hint0 hint1 ... | item0 item1 ...                          62 entries,  1 KiB
//! ```
//!
//! Read views. Every node carries the epoch in which it was made. Opening a view notes the current epoch and starts the
//! next one; from then on a node of an older epoch is copied before it is changed, and the old one is put on a garbage
//! list until no view can reach it. Refused: reference counts in nodes (an atomic per child whenever a node is copied, and
//! a cache miss on nodes that are merely passed by).
//!
//! Forks (`fork.rs`). A tree may have two states for a while, both of which change: one that is in place, and one that will take its place or never.
//!
//! Invariant: the entry kept in an inner node for a child equals the smallest entry below it, including its item, so
//! an item may be freed as soon as it is removed from the tree.
//!
//! Source of the structure: R. Bayer, E. McCreight, "Organization and Maintenance of Large Ordered Indexes" (1972);
//! copy-on-write epochs as in most persistent B-trees.
#![expect(
    unsafe_code,
    reason = "nodes are shared between the writer and read views; ownership is by epoch, not by type"
)]

mod fork;

use crate::nodes::Nodes;
pub use fork::Kept;
use fork::{Abandoned, Fork, State};
use std::cmp::Ordering;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const LEAF_CAPACITY: usize = 62;
const INNER_CAPACITY: usize = 41;
const HEIGHT_MAX: usize = 12;
/// Size of one tree node in bytes, for memory accounting.
pub const NODE_BYTES: usize = 1024;

/// Look-ups that [`Tree::prefetch`] overlaps.
pub const PREFETCH_MAX: usize = 16;
/// Of a node: what a search of its hints may touch.
const PREFETCHED_BYTES: usize = 512;

/// How many of the sorted hints come first by `is_before`. Without branches that depend on the data.
#[inline]
fn count_before(hints: &[u64], is_before: impl Fn(u64) -> bool) -> usize {
    let (mut base, mut size) = (0, hints.len());
    while size > 1 {
        let half = size / 2;
        base = std::hint::select_unpredictable(is_before(hints[base + half - 1]), base + half, base);
        size -= half;
    }
    base + usize::from(size == 1 && is_before(hints[base]))
}

/// Asks the processor for cache lines. Any address may be asked for.
#[inline]
pub fn prefetch_bytes(start: *const u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    for offset in (0..bytes).step_by(64) {
        // SAFETY: a prefetch reads nothing and faults at no address.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(start.wrapping_add(offset).cast())
        };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, bytes);
}

const _: () = assert!(size_of::<Leaf>() <= NODE_BYTES && size_of::<Inner>() <= NODE_BYTES);

/// What the tree stores: an order-preserving prefix of the key and the caller's item (a row pointer).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// `a < b` implies `hint(a) <= hint(b)`; equal keys have equal hints.
    pub hint: u64,
    /// Opaque to the tree.
    pub item: u64,
}

#[repr(C)]
struct Leaf {
    epoch: u64,
    len: usize,
    hints: [u64; LEAF_CAPACITY],
    items: [u64; LEAF_CAPACITY],
}

#[repr(C)]
struct Inner {
    epoch: u64,
    /// Number of children.
    len: usize,
    /// Smallest entry below child i; slot 0 is unused.
    hints: [u64; INNER_CAPACITY],
    items: [u64; INNER_CAPACITY],
    children: [*mut u8; INNER_CAPACITY],
}

/// A root with its height; height 0 means that the root is a leaf. Null means an empty tree.
#[derive(Clone, Copy)]
struct Root {
    node: *mut u8,
    height: usize,
}

/// A place in the tree: the leaf, the position in it, and the way down to it.
#[derive(Clone, Copy)]
pub struct Cursor {
    path: [(*mut Inner, usize); HEIGHT_MAX],
    leaf: *mut Leaf,
    position: usize,
    height: usize,
}

/// What [`Tree::locate`] found: the place for a key, and the item there if the key is present.
pub struct Slot {
    cursor: Cursor,
    /// The item whose key equals the one looked for.
    pub found: Option<u64>,
    version: u64,
}

/// An entry that [`Tree::prefetch`] found. Of use while its tree's version stays.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    tree_id: u64,
    version: u64,
    leaf: *mut Leaf,
    position: usize,
}

struct Garbage {
    /// Epoch in which the node left the tree: views opened before it may still read it.
    retired: u64,
    node: *mut u8,
    /// Which state of a forked tree it has left: the other one may still have it.
    state: State,
}

/// The ordered index. See the head of this file.
pub struct Tree {
    /// Tells this tree from all others, so that a view finds back to it.
    id: u64,
    root: Root,
    len: usize,
    nodes: Nodes,
    epoch: u64,
    /// Changes with every modification that moves entries; a [`Cursor`] is good while it stays.
    version: u64,
    /// Epochs of views that are open, and of forks.
    views: Vec<u64>,
    garbage: Vec<Garbage>,
    fork: Option<Fork>,
    /// States that were given up, whose nodes are not freed yet.
    abandoned: Vec<Abandoned>,
    /// The last leaf, if the last entry was the one put in last and nothing has moved since: `tail_version` is `version` then.
    tail: *mut Leaf,
    tail_version: u64,
}

/// A frozen picture of a [`Tree`]. May be read by another thread; must be given back to [`Tree::close_view`].
pub struct TreeView {
    tree_id: u64,
    root: Root,
    len: usize,
    epoch: u64,
}

// SAFETY: a view only reads nodes whose epoch is not newer than its own, and the owner neither changes nor frees such
// nodes while the view is open (`writable`, `collect`).
unsafe impl Send for TreeView {}
// SAFETY: as above: reads of memory that nobody writes.
unsafe impl Sync for TreeView {}

impl Cursor {
    const END: Cursor =
        Cursor { path: [(ptr::null_mut(), 0); HEIGHT_MAX], leaf: ptr::null_mut(), position: 0, height: 0 };

    /// The entry at the cursor, or `None` past either end.
    ///
    /// The cursor must come from this tree (or view), unmodified since.
    pub fn get(&self) -> Option<Entry> {
        if self.leaf.is_null() {
            return None;
        }
        // SAFETY: a non-null leaf belongs to the live tree or view the cursor was made from.
        let leaf = unsafe { &*self.leaf };
        (self.position < leaf.len).then(|| Entry { hint: leaf.hints[self.position], item: leaf.items[self.position] })
    }

    /// Moves to the following entry.
    pub fn next(&mut self) {
        if self.leaf.is_null() {
            return;
        }
        self.position += 1;
        // SAFETY: see `get`.
        if self.position >= unsafe { (*self.leaf).len } {
            self.step_leaf(true);
        }
    }

    /// Moves to the preceding entry; past the first one the cursor is at the end.
    pub fn prev(&mut self) {
        if self.leaf.is_null() {
            return;
        }
        if self.position == 0 {
            self.step_leaf(false);
        } else {
            self.position -= 1;
        }
    }

    /// Goes to the first entry of the next leaf, or to the last entry of the previous one.
    fn step_leaf(&mut self, forward: bool) {
        for level in (0..self.height).rev() {
            let (node, at) = self.path[level];
            // SAFETY: nodes on the path belong to the tree the cursor was made from.
            let len = unsafe { (*node).len };
            let to = if forward { at + 1 } else { at.wrapping_sub(1) };
            if to >= len {
                continue;
            }
            self.path[level].1 = to;
            // SAFETY: `to < len`, children below `len` are valid.
            let mut child = unsafe { (*node).children[to] };
            for below in level + 1..self.height {
                let inner = child.cast::<Inner>();
                // SAFETY: nodes above height 0 are inner nodes with at least one child.
                let at = if forward { 0 } else { unsafe { (*inner).len - 1 } };
                self.path[below] = (inner, at);
                // SAFETY: `at < len`.
                child = unsafe { (*inner).children[at] };
            }
            self.leaf = child.cast();
            // SAFETY: a leaf in the tree holds at least one entry.
            self.position = if forward { 0 } else { unsafe { (*self.leaf).len - 1 } };
            return;
        }
        self.leaf = ptr::null_mut();
    }
}

impl Root {
    const EMPTY: Root = Root { node: ptr::null_mut(), height: 0 };

    /// The first entry that is not before the bound: entries of smaller hints are, and of equal hints those that `is_before` says so of, a
    /// prefix of them.
    #[inline]
    fn partition(&self, hint: u64, mut is_before: impl FnMut(u64) -> bool) -> Cursor {
        let mut cursor = Cursor::END;
        if self.node.is_null() {
            return cursor;
        }
        // Most often there is at most one entry of equal hint, which the search by hints alone leads to.
        let mut search = |hints: &[u64], items: &[u64]| {
            let mut low = count_before(hints, |other| other < hint);
            if hints.get(low) != Some(&hint) {
                return low;
            }
            let mut high = low + count_before(&hints[low..], |other| other == hint);
            while low < high {
                let middle = (low + high) / 2;
                if is_before(items[middle]) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            low
        };
        let mut node = self.node;
        for level in 0..self.height {
            let inner = node.cast::<Inner>();
            // SAFETY: nodes above the leaves are inner nodes; the tree is not modified meanwhile.
            let inner_ref = unsafe { &*inner };
            let at = search(&inner_ref.hints[1..inner_ref.len], &inner_ref.items[1..inner_ref.len]);
            cursor.path[level] = (inner, at);
            node = inner_ref.children[at];
        }
        let leaf = node.cast::<Leaf>();
        // SAFETY: level 0 nodes are leaves.
        let leaf_ref = unsafe { &*leaf };
        cursor.height = self.height;
        cursor.leaf = leaf;
        cursor.position = search(&leaf_ref.hints[..leaf_ref.len], &leaf_ref.items[..leaf_ref.len]);
        cursor
    }

    fn edge(&self, first: bool) -> Cursor {
        let mut cursor = Cursor::END;
        if self.node.is_null() {
            return cursor;
        }
        cursor.height = self.height;
        let mut node = self.node;
        for level in 0..self.height {
            let inner = node.cast::<Inner>();
            // SAFETY: see `partition`.
            let len = unsafe { (*inner).len };
            let at = if first { 0 } else { len - 1 };
            cursor.path[level] = (inner, at);
            // SAFETY: `at < len`.
            node = unsafe { (*inner).children[at] };
        }
        cursor.leaf = node.cast();
        // SAFETY: a leaf in the tree holds at least one entry.
        cursor.position = if first { 0 } else { unsafe { (*cursor.leaf).len - 1 } };
        cursor
    }

    fn lower_bound(&self, hint: u64, mut compare: impl FnMut(u64) -> Ordering) -> Cursor {
        let mut cursor = self.partition(hint, |item| compare(item) == Ordering::Less);
        cursor.settle();
        cursor
    }

    fn upper_bound(&self, hint: u64, mut compare: impl FnMut(u64) -> Ordering) -> Cursor {
        let mut cursor = self.partition(hint, |item| compare(item) != Ordering::Greater);
        cursor.settle();
        cursor
    }

    /// The last entry that is before the bound given by `cursor` (a result of `lower_bound` or `upper_bound`).
    fn before(&self, cursor: Cursor) -> Cursor {
        if cursor.leaf.is_null() {
            return self.edge(false);
        }
        let mut cursor = cursor;
        cursor.prev();
        cursor
    }
}

/// Where full nodes are split.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Split {
    Half,
    /// The entry comes behind all others.
    Append,
    /// The entry comes before all others.
    Prepend,
}

impl Split {
    /// How many entries stay in a node of a capacity, at least so many.
    fn middle(self, capacity: usize, least: usize) -> usize {
        match self {
            Split::Half => capacity / 2,
            Split::Append => capacity - least,
            Split::Prepend => least,
        }
    }
}

impl Cursor {
    /// True if no leaf follows.
    fn is_in_last_leaf(&self) -> bool {
        self.path[..self.height].iter().all(|&(node, at)| {
            // SAFETY: see `step_leaf`.
            at + 1 == unsafe { (*node).len }
        })
    }

    /// True if no leaf is before it.
    fn is_in_first_leaf(&self) -> bool {
        self.path[..self.height].iter().all(|&(_, at)| at == 0)
    }

    /// A position behind the last entry of a leaf becomes the first entry of the next.
    fn settle(&mut self) {
        // SAFETY: see `get`.
        if !self.leaf.is_null() && self.position >= unsafe { (*self.leaf).len } {
            self.step_leaf(true);
        }
    }
}

macro_rules! reads {
    () => {
        /// Number of entries.
        pub fn len(&self) -> usize {
            self.len
        }

        /// True if there is no entry.
        pub fn is_empty(&self) -> bool {
            self.len == 0
        }

        /// The smallest entry.
        pub fn first(&self) -> Cursor {
            self.root.edge(true)
        }

        /// The largest entry.
        pub fn last(&self) -> Cursor {
            self.root.edge(false)
        }

        /// The first entry not less than the probe. `compare(item)` orders the item against the probe and is asked
        /// only where hints tie.
        pub fn lower_bound(&self, hint: u64, compare: impl FnMut(u64) -> Ordering) -> Cursor {
            self.root.lower_bound(hint, compare)
        }

        /// The first entry greater than the probe.
        pub fn upper_bound(&self, hint: u64, compare: impl FnMut(u64) -> Ordering) -> Cursor {
            self.root.upper_bound(hint, compare)
        }

        /// The last entry less than the probe.
        pub fn last_before(&self, hint: u64, compare: impl FnMut(u64) -> Ordering) -> Cursor {
            self.root.before(self.root.lower_bound(hint, compare))
        }

        /// The last entry not greater than the probe.
        pub fn last_not_after(&self, hint: u64, compare: impl FnMut(u64) -> Ordering) -> Cursor {
            self.root.before(self.root.upper_bound(hint, compare))
        }
    };
}

impl TreeView {
    reads!();
}

impl Default for Tree {
    fn default() -> Self {
        Self::new()
    }
}

impl Tree {
    /// An empty tree. Allocates nothing.
    pub fn new() -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(0);
        let id = NEXT_ID.fetch_add(1, Relaxed);
        Tree {
            id,
            root: Root::EMPTY,
            len: 0,
            nodes: Nodes::new(),
            epoch: 1,
            version: 0,
            views: Vec::new(),
            garbage: Vec::new(),
            fork: None,
            abandoned: Vec::new(),
            tail: ptr::null_mut(),
            tail_version: u64::MAX,
        }
    }

    /// A tree of entries that come in order, each key once. Its nodes are full.
    pub fn from_sorted(entries: impl IntoIterator<Item = Entry>) -> Self {
        let mut tree = Self::new();
        for entry in entries {
            tree.push(entry);
        }
        tree
    }

    reads!();

    /// Bytes held in nodes, garbage included.
    pub fn bytes(&self) -> usize {
        self.nodes.used() * NODE_BYTES
    }

    /// Changes with every modification that moves entries: a cursor kept across other work is good only while this stays the same.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Finds an entry by equality. Cheaper than `lower_bound` when only the item is wanted.
    #[inline]
    pub fn get(&self, hint: u64, mut compare: impl FnMut(u64) -> Ordering) -> Option<u64> {
        if self.root.node.is_null() {
            return None;
        }
        let mut node = self.root.node;
        for _ in 0..self.root.height {
            // SAFETY: nodes above the leaves are inner nodes of the live tree, which is not modified meanwhile.
            let inner = unsafe { &*node.cast::<Inner>() };
            // The last child whose smallest entry is not greater than the probe.
            let mut at = count_before(&inner.hints[1..inner.len], |other| other < hint);
            while at + 1 < inner.len && inner.hints[at + 1] == hint && compare(inner.items[at + 1]) != Ordering::Greater
            {
                at += 1;
            }
            node = inner.children[at];
        }
        // SAFETY: level 0 nodes are leaves.
        let leaf = unsafe { &*node.cast::<Leaf>() };
        let first = count_before(&leaf.hints[..leaf.len], |other| other < hint);
        // Entries of equal hints stand in order; most often there is one.
        let equal = leaf.hints[first..leaf.len].iter().take_while(|other| **other == hint).count();
        leaf.items[first..first + equal].binary_search_by(|item| compare(*item)).ok().map(|at| leaf.items[first + at])
    }

    /// Brings what look-ups of these hints will touch into the processor's caches, and hands each entry that was found to `visit`, which may
    /// do the same for what its item points to. The misses of all look-ups overlap: one after the other they cost most of a read.
    ///
    /// At most [`PREFETCH_MAX`] hints are taken.
    pub fn prefetch(&self, hints: &[u64], mut visit: impl FnMut(Entry, Place)) {
        let hints = &hints[..hints.len().min(PREFETCH_MAX)];
        if self.root.node.is_null() {
            return;
        }
        let mut nodes = [self.root.node; PREFETCH_MAX];
        for _ in 0..self.root.height {
            for (node, hint) in nodes.iter_mut().zip(hints) {
                // SAFETY: nodes above the leaves are inner nodes of the live tree, which is not modified meanwhile.
                let inner = unsafe { &*node.cast::<Inner>() };
                let at = count_before(&inner.hints[1..inner.len], |other| other <= *hint);
                *node = inner.children[at];
                prefetch_bytes(node.cast_const(), PREFETCHED_BYTES);
            }
        }
        let mut places = [0; PREFETCH_MAX];
        for ((node, hint), place) in nodes.iter().zip(hints).zip(&mut places) {
            // SAFETY: level 0 nodes are leaves of the live tree.
            let leaf = unsafe { &*node.cast::<Leaf>() };
            *place = count_before(&leaf.hints[..leaf.len], |other| other < *hint);
            if *place < leaf.len {
                prefetch_bytes((&raw const leaf.items[*place]).cast(), 8);
            }
        }
        for ((node, hint), place) in nodes.iter().zip(hints).zip(places) {
            // SAFETY: as above.
            let leaf = unsafe { &*node.cast::<Leaf>() };
            if place < leaf.len && leaf.hints[place] == *hint {
                let found =
                    Place { tree_id: self.id, version: self.version, leaf: node.cast::<Leaf>(), position: place };
                visit(Entry { hint: *hint, item: leaf.items[place] }, found);
            }
        }
    }

    fn is_current(&self, place: &Place) -> bool {
        place.tree_id == self.id && place.version == self.version
    }

    /// The item at a place. `None` if entries have moved since.
    pub fn item_at(&self, place: &Place) -> Option<u64> {
        // SAFETY: nodes of this tree are where they were while its version is the same.
        self.is_current(place).then(|| unsafe { (&(*place.leaf).items)[place.position] })
    }

    /// Puts another item of the same hint in a place; returns the one that was there. `None` if the place is not good for that: entries have
    /// moved, a view reads the leaf, or inner nodes hold the entry, too.
    pub fn replace_item_at(&mut self, place: &Place, item: u64) -> Option<u64> {
        // SAFETY: as in `item_at`. What was made in this epoch no view reads.
        if !self.is_current(place) || place.position == 0 || self.is_shared(unsafe { (*place.leaf).epoch }) {
            return None;
        }
        // SAFETY: as above.
        let leaf = unsafe { &mut *place.leaf };
        Some(std::mem::replace(&mut leaf.items[place.position], item))
    }

    /// Finds the place of a key for a following `insert_at`, `replace_at` or `remove_at`.
    #[inline]
    pub fn locate(&self, hint: u64, mut compare: impl FnMut(u64) -> Ordering) -> Slot {
        let mut equal = None;
        let cursor = self.root.partition(hint, |item| {
            let order = compare(item);
            if order == Ordering::Equal {
                // Equal keys are unique here: an equal entry in an inner node is the first of its child.
                equal = Some(item);
            }
            order == Ordering::Less
        });
        let mut slot = Slot { cursor, found: equal, version: self.version };
        if slot.found.is_some() {
            slot.cursor.settle();
        }
        slot
    }

    /// Puts an entry in behind all others, provided that this is where the last one went and where this one belongs; `is_before` is asked
    /// whether an item of the same hint comes before it. Spares the way down, which is most of what rows cost that come in order of their
    /// keys. False: nothing was changed.
    #[inline]
    pub fn append(&mut self, entry: Entry, is_before: impl FnOnce(u64) -> bool) -> bool {
        if self.tail_version != self.version || !self.views.is_empty() {
            return false;
        }
        // SAFETY: the tree is as it was when this was its last leaf, which has an entry.
        let last = unsafe {
            let leaf = &*self.tail;
            Entry { hint: leaf.hints[leaf.len - 1], item: leaf.items[leaf.len - 1] }
        };
        let belongs_there = match last.hint.cmp(&entry.hint) {
            Ordering::Less => true,
            Ordering::Equal => is_before(last.item),
            Ordering::Greater => false,
        };
        if belongs_there {
            self.push(entry);
        }
        belongs_there
    }

    /// Puts an entry in behind all others, where it must belong.
    fn push(&mut self, entry: Entry) {
        if self.tail_version != self.version {
            self.note_tail();
        }
        // SAFETY: as in `append`.
        let has_room = !self.tail.is_null() && unsafe { (*self.tail).len } < LEAF_CAPACITY;
        if has_room && self.views.is_empty() {
            // No separator changes: the first entry of the leaf stays.
            let leaf = unsafe_mut(self.tail);
            leaf.hints[leaf.len] = entry.hint;
            leaf.items[leaf.len] = entry.item;
            leaf.len += 1;
            self.len += 1;
            self.version += 1;
            self.tail_version = self.version;
            return;
        }
        let mut cursor = self.root.edge(false);
        cursor.position += usize::from(!cursor.leaf.is_null());
        self.insert_at(Slot { cursor, found: None, version: self.version }, entry);
    }

    /// Inserts an entry at the place found for its key, which must be absent.
    pub fn insert_at(&mut self, slot: Slot, entry: Entry) {
        assert!(slot.found.is_none() && slot.version == self.version, "slot is stale or taken");
        self.version += 1;
        self.len += 1;
        if self.root.node.is_null() {
            let leaf = self.new_leaf();
            // SAFETY: just made.
            unsafe {
                (*leaf).len = 1;
                (*leaf).hints[0] = entry.hint;
                (*leaf).items[0] = entry.item;
            }
            self.root = Root { node: leaf.cast(), height: 0 };
            self.note_tail();
            return;
        }
        let mut cursor = slot.cursor;
        self.make_writable(&mut cursor);
        let leaf = cursor.leaf;
        // SAFETY: `make_writable` returned nodes owned by the current epoch, reachable from nowhere else.
        let leaf_ref = unsafe { &mut *leaf };
        let at = cursor.position;
        debug_assert!(
            (at == 0 || leaf_ref.hints[at - 1] <= entry.hint)
                && (at == leaf_ref.len || entry.hint <= leaf_ref.hints[at]),
            "entries stand in the order of their hints"
        );
        let is_append = at == leaf_ref.len && cursor.is_in_last_leaf();
        if leaf_ref.len < LEAF_CAPACITY {
            leaf_ref.insert(at, entry);
            if at == 0 {
                self.fix_separator(&cursor);
            }
            if is_append {
                self.tail = cursor.leaf;
                self.tail_version = self.version;
            }
            return;
        }
        // Split. An append to the last leaf, or an entry before the first one, leaves the old leaf full: loads in either order fill nodes completely.
        let split = match at {
            _ if is_append => Split::Append,
            0 if cursor.is_in_first_leaf() => Split::Prepend,
            _ => Split::Half,
        };
        let middle = split.middle(LEAF_CAPACITY, 0);
        let right = self.new_leaf();
        // SAFETY: just made, distinct from `leaf`.
        let right_ref = unsafe { &mut *right };
        let leaf_ref = unsafe_mut(leaf);
        leaf_ref.split_into(middle, right_ref);
        if at <= middle && !is_append {
            leaf_ref.insert(at, entry);
            if at == 0 {
                self.fix_separator(&cursor);
            }
        } else {
            right_ref.insert(at - middle, entry);
        }
        let separator = Entry { hint: right_ref.hints[0], item: right_ref.items[0] };
        self.insert_child(&cursor, separator, right.cast(), split);
        if is_append {
            self.note_tail();
        }
    }

    /// The entry put in last is behind all others.
    fn note_tail(&mut self) {
        self.tail = self.root.edge(false).leaf;
        self.tail_version = self.version;
    }

    /// Puts a new entry in place of the one found; keys are equal.
    pub fn replace_at(&mut self, slot: Slot, entry: Entry) {
        assert!(slot.found.is_some() && slot.version == self.version, "slot is stale or empty");
        let mut cursor = slot.cursor;
        if self.make_writable(&mut cursor) {
            self.version += 1;
        }
        let leaf = unsafe_mut(cursor.leaf);
        leaf.hints[cursor.position] = entry.hint;
        leaf.items[cursor.position] = entry.item;
        if cursor.position == 0 {
            self.fix_separator(&cursor);
        }
    }

    /// Removes the entry found.
    pub fn remove_at(&mut self, slot: Slot) {
        assert!(slot.found.is_some() && slot.version == self.version, "slot is stale or empty");
        self.version += 1;
        self.len -= 1;
        let mut cursor = slot.cursor;
        self.make_writable(&mut cursor);
        let leaf = unsafe_mut(cursor.leaf);
        leaf.remove(cursor.position);
        if leaf.len == 0 {
            self.retire(cursor.leaf.cast());
            self.remove_child(&cursor, cursor.height);
            return;
        }
        if cursor.position == 0 {
            self.fix_separator(&cursor);
        }
        if leaf.len < LEAF_CAPACITY / 4 {
            self.merge_leaf(&cursor);
        }
    }

    /// Removes up to about `max` entries from the end of the tree and hands their items over. For dropping a large
    /// tree in slices. Returns true while something is left.
    pub fn drain_some(&mut self, max: usize, mut take: impl FnMut(u64)) -> bool {
        self.forget_forks();
        let mut taken = 0;
        while taken < max && !self.root.node.is_null() {
            self.version += 1;
            let mut cursor = self.root.edge(false);
            self.make_writable(&mut cursor);
            let leaf = unsafe_mut(cursor.leaf);
            for &item in &leaf.items[..leaf.len] {
                // Most often the address of something that `take` frees.
                prefetch_bytes(item as *const u8, 1);
            }
            for &item in &leaf.items[..leaf.len] {
                take(item);
            }
            taken += leaf.len;
            self.len -= leaf.len;
            self.retire(cursor.leaf.cast());
            self.remove_child(&cursor, cursor.height);
        }
        !self.root.node.is_null()
    }

    /// Forgets all entries and gives a slice of the memory back to the system. Returns true while something is left. For dropping in slices a
    /// tree that no view is open of.
    pub fn release_some(&mut self) -> bool {
        self.forget_forks();
        assert!(
            self.views.is_empty() || std::thread::panicking(),
            "read views are closed before their tree is released"
        );
        if !self.views.is_empty() {
            return false;
        }
        self.version += 1;
        self.root = Root::EMPTY;
        self.len = 0;
        self.garbage = Vec::new();
        self.nodes.release_chunk()
    }

    /// A pseudo-random entry chosen by `seed`.
    pub fn random(&self, seed: u64) -> Option<Entry> {
        if self.root.node.is_null() {
            return None;
        }
        let mut state = seed;
        let mut pick = |len: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((state >> 33) % len as u64) as usize
        };
        let mut node = self.root.node;
        for _ in 0..self.root.height {
            // SAFETY: nodes above the leaves are inner nodes.
            let inner = unsafe { &*node.cast::<Inner>() };
            node = inner.children[pick(inner.len)];
        }
        // SAFETY: level 0 nodes are leaves with at least one entry.
        let leaf = unsafe { &*node.cast::<Leaf>() };
        let at = pick(leaf.len);
        Some(Entry { hint: leaf.hints[at], item: leaf.items[at] })
    }

    /// Freezes the present state. Costs nothing now; later changes copy the nodes they touch first.
    pub fn open_view(&mut self) -> TreeView {
        let epoch = self.epoch;
        self.views.push(epoch);
        self.epoch += 1;
        TreeView { tree_id: self.id, root: self.root, len: self.len, epoch }
    }

    /// True if the view was opened on this tree.
    pub fn owns(&self, view: &TreeView) -> bool {
        view.tree_id == self.id
    }

    /// True while a view is open.
    pub fn has_views(&self) -> bool {
        self.views.len() > self.own_views()
    }

    /// Gives a view back. Nodes that only it held are freed by [`Tree::collect`].
    pub fn close_view(&mut self, view: TreeView) {
        let at = self.views.iter().position(|&epoch| epoch == view.epoch).expect("a view is closed once, by its tree");
        self.views.swap_remove(at);
    }

    /// Frees up to `max` nodes that no view can reach. Returns true while more can be freed.
    pub fn collect(&mut self, max: usize) -> bool {
        let mut freed = self.free_abandoned(max);
        let oldest = self.views.iter().copied().min().unwrap_or(u64::MAX);
        let mut at = 0;
        while at < self.garbage.len() && freed < max {
            if self.garbage[at].retired > oldest {
                at += 1;
                continue;
            }
            let garbage = self.garbage.swap_remove(at);
            self.free(garbage.node);
            freed += 1;
        }
        freed == max
    }

    fn new_leaf(&mut self) -> *mut Leaf {
        let leaf = self.nodes.allocate().cast::<Leaf>();
        let empty = Leaf { epoch: self.epoch, len: 0, hints: [0; LEAF_CAPACITY], items: [0; LEAF_CAPACITY] };
        // SAFETY: a fresh node is large enough and aligned.
        unsafe { leaf.write(empty) };
        leaf
    }

    fn new_inner(&mut self) -> *mut Inner {
        let inner = self.nodes.allocate().cast::<Inner>();
        let (hints, items) = ([0; INNER_CAPACITY], [0; INNER_CAPACITY]);
        let empty = Inner { epoch: self.epoch, len: 0, hints, items, children: [ptr::null_mut(); INNER_CAPACITY] };
        // SAFETY: a fresh node is large enough and aligned.
        unsafe { inner.write(empty) };
        inner
    }

    fn free(&mut self, node: *mut u8) {
        // SAFETY: the node was made by `new_leaf` or `new_inner` and left both the tree and every open view.
        unsafe { self.nodes.free(node) };
    }

    /// A node leaves the tree: freed now, or later if a view may read it.
    fn retire(&mut self, node: *mut u8) {
        // SAFETY: both kinds of node start with their epoch.
        let epoch = unsafe { *node.cast::<u64>() };
        if self.is_shared(epoch) {
            self.throw_away(node);
        } else {
            self.free(node);
        }
    }

    /// A node that a view may read leaves the tree, or one of its states.
    fn throw_away(&mut self, node: *mut u8) {
        let state = self.state_in_place();
        self.garbage.push(Garbage { retired: self.epoch, node, state });
    }

    /// True if an open view, or both states of a fork, can reach a node of this epoch.
    fn is_shared(&self, epoch: u64) -> bool {
        epoch < self.epoch && self.views.iter().any(|&view| view >= epoch)
    }

    /// Replaces the nodes on the way to the cursor that views share by copies of the current epoch. True if there were any.
    fn make_writable(&mut self, cursor: &mut Cursor) -> bool {
        // Who has changed a leaf in this epoch has made the whole way to it writable.
        // SAFETY: the cursor comes from this tree, unmodified since.
        if self.views.is_empty() || !self.is_shared(unsafe { (*cursor.leaf).epoch }) {
            return false;
        }
        for level in 0..=cursor.height {
            let is_leaf = level == cursor.height;
            let node: *mut u8 = if is_leaf { cursor.leaf.cast() } else { cursor.path[level].0.cast() };
            // SAFETY: both kinds of node start with their epoch.
            if !self.is_shared(unsafe { *node.cast::<u64>() }) {
                continue;
            }
            let copy: *mut u8 = if is_leaf {
                let copy = self.new_leaf();
                // SAFETY: source and target are distinct, valid leaves.
                unsafe {
                    ptr::copy_nonoverlapping(cursor.leaf, copy, 1);
                    (*copy).epoch = self.epoch;
                }
                cursor.leaf = copy;
                copy.cast()
            } else {
                let copy = self.new_inner();
                // SAFETY: source and target are distinct, valid inner nodes.
                unsafe {
                    ptr::copy_nonoverlapping(cursor.path[level].0, copy, 1);
                    (*copy).epoch = self.epoch;
                }
                cursor.path[level].0 = copy;
                copy.cast()
            };
            self.throw_away(node);
            if level == 0 {
                self.root.node = copy;
            } else {
                let (parent, at) = cursor.path[level - 1];
                unsafe_mut(parent).children[at] = copy;
            }
        }
        true
    }

    /// After the first entry of the cursor's leaf changed: the copy of it in the nearest ancestor follows.
    fn fix_separator(&mut self, cursor: &Cursor) {
        let leaf = unsafe_mut(cursor.leaf);
        for level in (0..cursor.height).rev() {
            let (node, at) = cursor.path[level];
            if at > 0 {
                let inner = unsafe_mut(node);
                inner.hints[at] = leaf.hints[0];
                inner.items[at] = leaf.items[0];
                return;
            }
        }
    }

    /// Adds `child` behind the cursor's child at the lowest inner level, splitting upwards.
    fn insert_child(&mut self, cursor: &Cursor, separator: Entry, child: *mut u8, split: Split) {
        let mut separator = separator;
        let mut child = child;
        for level in (0..cursor.height).rev() {
            let (node, at) = cursor.path[level];
            let inner = unsafe_mut(node);
            if inner.len < INNER_CAPACITY {
                inner.insert(at + 1, separator, child);
                return;
            }
            let middle = split.middle(INNER_CAPACITY, 1);
            let right = self.new_inner();
            let right_ref = unsafe_mut(right);
            let inner = unsafe_mut(node);
            inner.split_into(middle, right_ref);
            // The smallest entry of the right half was a separator and moves up.
            let up = Entry { hint: right_ref.hints[0], item: right_ref.items[0] };
            if at < middle {
                inner.insert(at + 1, separator, child);
            } else {
                right_ref.insert(at + 1 - middle, separator, child);
            }
            separator = up;
            child = right.cast();
        }
        assert!(self.root.height + 1 < HEIGHT_MAX, "tree height is bounded by its capacity");
        let root = self.new_inner();
        let root_ref = unsafe_mut(root);
        root_ref.children[0] = self.root.node;
        root_ref.len = 1;
        root_ref.insert(1, separator, child);
        self.root = Root { node: root.cast(), height: self.root.height + 1 };
    }

    /// Removes the child at the cursor's position of level `level - 1`; the child itself is already retired.
    fn remove_child(&mut self, cursor: &Cursor, level: usize) {
        if level == 0 {
            self.root = Root::EMPTY;
            return;
        }
        let (node, at) = cursor.path[level - 1];
        let inner = unsafe_mut(node);
        if inner.len == 1 {
            self.retire(node.cast());
            self.remove_child(cursor, level - 1);
            return;
        }
        let next_first = Entry { hint: inner.hints[1], item: inner.items[1] };
        inner.remove(at);
        if at == 0 {
            // The subtree now starts with what was its second child: ancestors keep a copy of that entry.
            for above in (0..level - 1).rev() {
                let (node, at) = cursor.path[above];
                if at > 0 {
                    let ancestor = unsafe_mut(node);
                    ancestor.hints[at] = next_first.hint;
                    ancestor.items[at] = next_first.item;
                    break;
                }
            }
        }
        self.shrink_root();
    }

    fn shrink_root(&mut self) {
        while self.root.height > 0 {
            let inner = self.root.node.cast::<Inner>();
            // SAFETY: height above 0 means an inner node.
            let inner_ref = unsafe { &*inner };
            if inner_ref.len != 1 {
                return;
            }
            let child = inner_ref.children[0];
            self.retire(inner.cast());
            self.root = Root { node: child, height: self.root.height - 1 };
        }
    }

    /// Merges a thin leaf with a neighbour under the same parent if both fit one node with room to spare.
    fn merge_leaf(&mut self, cursor: &Cursor) {
        if cursor.height == 0 {
            return;
        }
        let level = cursor.height - 1;
        let (parent, at) = cursor.path[level];
        let parent_ref = unsafe_mut(parent);
        let (left, right) = if at + 1 < parent_ref.len {
            (at, at + 1)
        } else if at > 0 {
            (at - 1, at)
        } else {
            return;
        };
        let left_node = parent_ref.children[left].cast::<Leaf>();
        let right_node = parent_ref.children[right].cast::<Leaf>();
        // SAFETY: children of the lowest inner level are leaves.
        let (left_len, right_len) = unsafe { ((*left_node).len, (*right_node).len) };
        if left_len + right_len > LEAF_CAPACITY * 3 / 4 {
            return;
        }
        let mut beside = *cursor;
        beside.path[level].1 = left;
        beside.leaf = left_node;
        self.make_writable(&mut beside);
        let left_ref = unsafe_mut(beside.leaf);
        // SAFETY: distinct from the left leaf; only read.
        let right_ref = unsafe { &*right_node };
        left_ref.hints[left_len..left_len + right_len].copy_from_slice(&right_ref.hints[..right_len]);
        left_ref.items[left_len..left_len + right_len].copy_from_slice(&right_ref.items[..right_len]);
        left_ref.len = left_len + right_len;
        self.retire(right_node.cast());
        let (parent, _) = beside.path[level];
        unsafe_mut(parent).remove(right);
        if unsafe_mut(parent).len == 1 && level == 0 {
            self.shrink_root();
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        self.forget_forks();
        assert!(
            self.views.is_empty() || std::thread::panicking(),
            "read views are closed before their tree is dropped"
        );
        if !self.views.is_empty() {
            self.nodes.leak();
        }
    }
}

/// A unique reference to a node of the current epoch.
fn unsafe_mut<'a, T>(node: *mut T) -> &'a mut T {
    // SAFETY: called only with nodes that `make_writable` or a constructor has just returned: they are reachable from this
    // tree alone, which is borrowed mutably, and no two references to one node are alive at once.
    unsafe { &mut *node }
}

impl Leaf {
    fn insert(&mut self, at: usize, entry: Entry) {
        self.hints.copy_within(at..self.len, at + 1);
        self.items.copy_within(at..self.len, at + 1);
        self.hints[at] = entry.hint;
        self.items[at] = entry.item;
        self.len += 1;
    }

    fn remove(&mut self, at: usize) {
        self.hints.copy_within(at + 1..self.len, at);
        self.items.copy_within(at + 1..self.len, at);
        self.len -= 1;
    }

    fn split_into(&mut self, middle: usize, right: &mut Leaf) {
        let moved = self.len - middle;
        right.hints[..moved].copy_from_slice(&self.hints[middle..self.len]);
        right.items[..moved].copy_from_slice(&self.items[middle..self.len]);
        right.len = moved;
        self.len = middle;
    }
}

impl Inner {
    fn insert(&mut self, at: usize, separator: Entry, child: *mut u8) {
        self.hints.copy_within(at..self.len, at + 1);
        self.items.copy_within(at..self.len, at + 1);
        self.children.copy_within(at..self.len, at + 1);
        self.hints[at] = separator.hint;
        self.items[at] = separator.item;
        self.children[at] = child;
        self.len += 1;
    }

    fn remove(&mut self, at: usize) {
        self.hints.copy_within(at + 1..self.len, at);
        self.items.copy_within(at + 1..self.len, at);
        self.children.copy_within(at + 1..self.len, at);
        self.len -= 1;
    }

    fn split_into(&mut self, middle: usize, right: &mut Inner) {
        let moved = self.len - middle;
        right.hints[..moved].copy_from_slice(&self.hints[middle..self.len]);
        right.items[..moved].copy_from_slice(&self.items[middle..self.len]);
        right.children[..moved].copy_from_slice(&self.children[middle..self.len]);
        right.len = moved;
        self.len = middle;
    }
}

#[cfg(test)]
mod tests;
