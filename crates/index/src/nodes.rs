//! Memory for the nodes of one tree.
//!
//! The idea. All nodes have one size and are cut from chunks that grow with the tree. Freed nodes form a list and serve again; chunks go
//! back to the system together with the tree, so that dropping a large one takes no walk through its nodes. A large chunk
//! lies in huge pages where the process's allocator has them, which spares most misses of the processor's address cache.
//! Refused: a block of the global allocator for each node (a walk to free them, and pages shared with everything else).
#![expect(unsafe_code, reason = "an allocator hands out raw blocks")]

use crate::tree::NODE_BYTES;
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr;

/// Nodes begin at a cache line.
const NODE_ALIGNMENT: usize = 64;
/// Nodes of the first chunk; the next ones have a quarter of what there is.
const CHUNK_NODES_MIN: usize = 4;
/// 8 MiB.
const CHUNK_NODES_MAX: usize = 8 << 10;
/// From 2 MiB on chunks are of 4 MiB at least, and aligned to huge pages.
const HUGE_FROM_NODES: usize = 2 << 10;
const HUGE_CHUNK_NODES_MIN: usize = 4 << 10;
const HUGE_PAGE_BYTES: usize = 2 << 20;

const _: () = assert!(NODE_BYTES.is_multiple_of(NODE_ALIGNMENT) && HUGE_PAGE_BYTES.is_multiple_of(NODE_BYTES));

/// The nodes of a tree, those in use and those to be used again.
pub(crate) struct Nodes {
    chunks: Vec<(*mut u8, Layout)>,
    /// Nodes in all chunks.
    capacity: usize,
    used: usize,
    /// First free node; each begins with the address of the next.
    free: *mut u8,
    /// The part of the newest chunk that was never used.
    fresh: *mut u8,
    fresh_count: usize,
}

impl Nodes {
    pub(crate) const fn new() -> Self {
        Nodes {
            chunks: Vec::new(),
            capacity: 0,
            used: 0,
            free: ptr::null_mut(),
            fresh: ptr::null_mut(),
            fresh_count: 0,
        }
    }

    /// Nodes in use.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// A node of `NODE_BYTES` that holds anything.
    pub(crate) fn allocate(&mut self) -> *mut u8 {
        self.used += 1;
        if !self.free.is_null() {
            let node = self.free;
            // SAFETY: a free node begins with the address of the next one and is used by nobody.
            self.free = unsafe { *node.cast::<*mut u8>() };
            return node;
        }
        if self.fresh_count == 0 {
            self.grow();
        }
        let node = self.fresh;
        self.fresh_count -= 1;
        // SAFETY: the chunk has `fresh_count` nodes more, so this is inside or one past its end.
        self.fresh = unsafe { node.add(NODE_BYTES) };
        node
    }

    fn grow(&mut self) {
        let (least, alignment) = match self.capacity {
            ..HUGE_FROM_NODES => (CHUNK_NODES_MIN, NODE_ALIGNMENT),
            _ => (HUGE_CHUNK_NODES_MIN, HUGE_PAGE_BYTES),
        };
        let count = (self.capacity / 4).clamp(least, CHUNK_NODES_MAX);
        let layout = Layout::from_size_align(count * NODE_BYTES, alignment).expect("a chunk is small");
        // SAFETY: the layout is not empty.
        let chunk = unsafe { alloc(layout) };
        if chunk.is_null() {
            handle_alloc_error(layout);
        }
        self.chunks.push((chunk, layout));
        self.capacity += count;
        self.fresh = chunk;
        self.fresh_count = count;
    }

    /// Takes a node back.
    ///
    /// # Safety
    /// It was given by `allocate` of this object and nobody uses it any more.
    pub(crate) unsafe fn free(&mut self, node: *mut u8) {
        self.used -= 1;
        // SAFETY: the node is ours again, aligned and larger than an address.
        unsafe { node.cast::<*mut u8>().write(self.free) };
        self.free = node;
    }

    /// Gives one chunk back to the system, whatever is in its nodes. False if there is none left. From the first call on no node may be
    /// used and none can be had.
    pub(crate) fn release_chunk(&mut self) -> bool {
        (self.free, self.fresh, self.fresh_count) = (ptr::null_mut(), ptr::null_mut(), 0);
        let Some((chunk, layout)) = self.chunks.pop() else {
            (self.capacity, self.used) = (0, 0);
            return false;
        };
        self.capacity -= layout.size() / NODE_BYTES;
        self.used = self.used.min(self.capacity);
        // SAFETY: made by `grow` with this layout; by the caller's promise nobody uses its nodes.
        unsafe { dealloc(chunk, layout) };
        true
    }

    /// Leaves all memory to whoever still reads it.
    pub(crate) fn leak(&mut self) {
        self.chunks.clear();
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for (chunk, layout) in self.chunks.drain(..) {
            // SAFETY: made by `grow` with this layout; the tree is gone.
            unsafe { dealloc(chunk, layout) };
        }
    }
}
