//! Memory for rows: slabs with size classes and a hard limit.
//!
//! The idea. Rows up to a quarter of a slab are cut from 1 MiB slabs, each serving one size class; a slab is aligned to its
//! size, so the address of a row leads to the slab's header and from there to the arena. Free blocks of a slab form a
//! list through the blocks themselves. A class cuts from one slab until that is full, and goes on with another one that has free blocks. A slab whose
//! last row has gone serves any class that comes next, or its memory goes back to the system. Larger rows get a block of their own, told apart by their size. Size classes go in
//! steps of 2 bytes up to 128, of 4 up to 256, of 8 up to 1 KiB and by an eighth above, so the waste is a few bytes a row, and there
//! are not too many classes with a slab begun. Refused: the global allocator
//! (16 bytes of overhead and rounding a row, and no limit).
//!
//! Slabs come from chunks that grow with the arena, up to 32 slabs. A large chunk lies in huge pages where the system has them: reads of
//! random rows then miss the processor's address cache less, which was a fifth of their cost. And a chunk is one
//! mapping, of which a process may have 65,530.
//!
//! Memory that nobody has touched yet costs the first one who does a trap into the system, or several. Where that would be felt, pages are touched
//! ahead by another thread: `take_untouched` says which. What was freed goes back by `return_idle`.
//!
//! Read views. While a view is open, rows that existed when it was opened may be read by another thread: they are kept
//! instead of freed and given back in slices by `collect` when no view is left. They form a list through the part of their headers that readers
//! of a view do not look at, so keeping them takes no memory beside their own.
#![expect(unsafe_code, reason = "an allocator hands out raw blocks")]

use crate::row::TupleHeader;
use std::alloc::{Layout, alloc, dealloc};
use std::cell::{Cell, RefCell};
use std::ptr::{self, NonNull};
use std::rc::Rc;

const SLAB_BYTES: usize = 1 << 20;
const SLAB_HEADER_BYTES: usize = 64;
/// A chunk has a quarter of the slabs that there are, and at most so many.
const CHUNK_SLABS_MAX: usize = 32;
/// From as many slabs on a chunk has that many at least and is aligned to huge pages.
const HUGE_CHUNK_SLABS_MIN: usize = 4;
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Classes up to these sizes go in these steps.
const STEPS: [(usize, usize); 3] = [(128, 2), (256, 4), (STEPPED_MAX, 8)];
const STEPPED_MAX: usize = 1024;
/// A free block holds an address.
const BLOCK_MIN: usize = 8;
/// Largest block that is cut from a slab.
const SMALL_MAX: usize = SLAB_BYTES / 4;
/// Slabs may take so much more than the limit: half of it, and this. Rows of many sizes that leave few of each slab would fill any memory.
const OVERHEAD_BYTES: usize = 64 << 20;
/// Memory that is touched ahead of the rows, once there is a certain amount.
const AHEAD_BYTES: usize = 8 << 20;
const AHEAD_FROM_BYTES: usize = 64 << 20;
/// Cache lines of a block that are fetched before it is given out.
const PREFETCHED_LINES: usize = 2;
/// Header of a block of its own: its arena, before the block.
const LARGE_HEADER_BYTES: usize = 16;

/// The memory limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{requested} bytes are over the limit of {limit}")]
pub struct OutOfMemory {
    /// Bytes asked for.
    pub requested: usize,
    /// Bytes allowed in all.
    pub limit: usize,
}

/// Header of a block of its own, and the beginning of a slab's.
#[repr(C)]
struct BlockHeader {
    arena: *const Inner,
}

/// At the beginning of a slab. Links are addresses of slabs, 0 for none.
#[repr(C)]
struct Slab {
    arena: *const Inner,
    /// First free block; each holds the address of the next.
    free: Cell<usize>,
    /// From here on no block was ever used.
    fresh: Cell<usize>,
    /// Blocks in use.
    live: Cell<u32>,
    is_listed: Cell<bool>,
    /// Neighbours among the slabs of the class that have free blocks.
    next: Cell<usize>,
    before: Cell<usize>,
}

const _: () = assert!(size_of::<Slab>() <= SLAB_HEADER_BYTES);

#[derive(Default)]
struct Class {
    /// The slab that blocks are cut from; 0 for none.
    current: Cell<usize>,
    /// The first of the other slabs that have free blocks.
    listed: Cell<usize>,
}

struct Inner {
    limit: Cell<usize>,
    /// Bytes in blocks in use.
    used: Cell<usize>,
    /// Bytes in slabs that a class has and in large blocks.
    reserved: Cell<usize>,
    /// Bytes of indexes that count against the limit.
    charged: Cell<usize>,
    classes: Vec<Class>,
    chunks: RefCell<Vec<(NonNull<u8>, Layout)>>,
    /// Slabs that no class has any more: those in memory, and those whose memory went back to the system.
    idle: RefCell<Vec<usize>>,
    returned: RefCell<Vec<usize>>,
    /// The part of the newest chunk that no class has: whole slabs.
    spare: Cell<usize>,
    spare_end: Cell<usize>,
    /// The part of it that was given to `take_untouched` ends here.
    touched_end: Cell<usize>,
    /// The chunk after it, made ahead: where it begins and ends, and where its touched part ends.
    next_chunk: Cell<Option<(usize, usize, usize)>>,
    views: Cell<u32>,
    generation: Cell<u16>,
    /// First of the rows that only open views hold.
    delayed: Cell<*mut TupleHeader>,
    /// First rows of lists that closed views held.
    released: RefCell<Vec<*mut TupleHeader>>,
    /// Bytes of both.
    delayed_bytes: Cell<usize>,
}

/// A shared handle to an arena; clones are the same arena. All of it belongs to one thread.
///
/// Rows keep no handle: the arena must outlive them. It frees its slabs when the last handle is dropped.
#[derive(Clone)]
pub struct Arena {
    inner: Rc<Inner>,
}

/// Sizes of classes in order.
fn class_sizes() -> Vec<usize> {
    let mut sizes = Vec::new();
    let mut size = 0;
    for (max, step) in STEPS {
        while size < max {
            size += step;
            sizes.push(size);
        }
    }
    while size < SMALL_MAX {
        size = (size + size / 8).next_multiple_of(64).min(SMALL_MAX);
        sizes.push(size);
    }
    sizes
}

thread_local! {
    static CLASS_SIZES: Vec<usize> = class_sizes();
}

#[inline]
fn class_of(size: usize) -> (usize, usize) {
    let size = size.max(BLOCK_MIN);
    let (mut first, mut below) = (0, 0);
    for (max, step) in STEPS {
        if size <= max {
            let steps = (size - below).div_ceil(step);
            return (first + steps - 1, below + steps * step);
        }
        first += (max - below) / step;
        below = max;
    }
    CLASS_SIZES.with(|sizes| {
        let at = sizes.partition_point(|&class| class < size);
        (at, sizes[at])
    })
}

/// Asks the processor for the lines of a block that was not used for long.
fn prefetch(block: usize, lines: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..lines {
        // SAFETY: a prefetch reads nothing and faults at no address.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>((block + line * 64) as *const i8);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (block, lines);
}

impl Arena {
    /// An arena that gives out at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        let classes = CLASS_SIZES.with(|sizes| sizes.iter().map(|_| Class::default()).collect());
        Arena {
            inner: Rc::new(Inner {
                limit: Cell::new(limit),
                used: Cell::new(0),
                reserved: Cell::new(0),
                charged: Cell::new(0),
                classes,
                chunks: RefCell::default(),
                idle: RefCell::default(),
                returned: RefCell::default(),
                spare: Cell::new(0),
                spare_end: Cell::new(0),
                touched_end: Cell::new(0),
                next_chunk: Cell::new(None),
                views: Cell::new(0),
                generation: Cell::new(1),
                delayed: Cell::new(ptr::null_mut()),
                released: RefCell::default(),
                delayed_bytes: Cell::new(0),
            }),
        }
    }

    /// Bytes of rows in use, rounded to their classes.
    pub fn used(&self) -> usize {
        self.inner.used.get()
    }

    /// Bytes of slabs that rows are in, and of rows that are too large for one.
    pub fn occupied(&self) -> usize {
        self.inner.reserved.get()
    }

    /// Bytes of memory that rows are in or were in.
    pub fn reserved(&self) -> usize {
        self.inner.reserved.get() + self.inner.idle.borrow().len() * SLAB_BYTES
    }

    /// Lets the system have a part of the memory that no row is in, by a function that takes its address and bytes: what is there may be lost. What
    /// is below the limit stays for the rows that come next. False if there is nothing more.
    pub fn return_idle(&self, give_back: unsafe fn(usize, usize)) -> bool {
        let inner = &*self.inner;
        let mut idle = inner.idle.borrow_mut();
        // Below the limit the next rows find it in memory: to touch it anew would cost them a trap a page.
        let held = inner.reserved.get() + inner.charged.get() + idle.len() * SLAB_BYTES;
        if idle.is_empty() || held <= inner.limit.get() {
            return false;
        }
        let slab = idle.swap_remove(0);
        // SAFETY: a slab of ours in whole pages; its header is written again before it is used.
        unsafe { give_back(slab, SLAB_BYTES) };
        inner.returned.borrow_mut().push(slab);
        true
    }

    /// Bytes that indexes hold.
    pub fn charged(&self) -> usize {
        self.inner.charged.get()
    }

    /// The limit for rows and indexes together.
    pub fn limit(&self) -> usize {
        self.inner.limit.get()
    }

    /// Moves the limit; what is in use stays.
    pub fn set_limit(&self, limit: usize) {
        self.inner.limit.set(limit);
    }

    /// Counts memory of indexes against the limit. Never fails: an index must be able to split while a row goes in; the
    /// next row is refused instead.
    pub fn charge_unchecked(&self, bytes: usize) {
        self.inner.charged.set(self.inner.charged.get() + bytes);
    }

    /// Takes a charge back.
    pub fn release(&self, bytes: usize) {
        self.inner.charged.set(self.inner.charged.get().saturating_sub(bytes));
    }

    /// The view counter that new rows carry. It stops at its largest value.
    pub(crate) fn generation(&self) -> u16 {
        self.inner.generation.get()
    }

    /// Memory that rows will come to soon and that nobody has touched: its address and bytes. To be made resident by any thread, without changing
    /// what is there; each part is given once.
    pub fn take_untouched(&self) -> Option<(usize, usize)> {
        let inner = &*self.inner;
        if inner.reserved.get() < AHEAD_FROM_BYTES {
            return None;
        }
        let (spare, end) = (inner.spare.get(), inner.spare_end.get());
        let touched = inner.touched_end.get().clamp(spare, end);
        let wanted = end.min(spare + AHEAD_BYTES);
        if wanted - touched >= AHEAD_BYTES / 2 || touched < wanted && wanted == end {
            inner.touched_end.set(wanted);
            return Some((touched, wanted - touched));
        }
        if end - spare >= AHEAD_BYTES {
            return None;
        }
        if inner.next_chunk.get().is_none() && inner.has_limit_for_more() {
            let (start, bytes) = inner.make_chunk()?;
            inner.next_chunk.set(Some((start, start + bytes, start)));
        }
        let (start, end, touched) = inner.next_chunk.get()?;
        let wanted = end.min(start + AHEAD_BYTES - (inner.spare_end.get() - spare));
        if wanted.saturating_sub(touched) < AHEAD_BYTES / 2 {
            return None;
        }
        inner.next_chunk.set(Some((start, end, wanted)));
        Some((touched, wanted - touched))
    }

    /// From now on rows that exist stay readable for other threads, until the view is closed.
    pub fn open_view(&self) {
        self.inner.views.set(self.inner.views.get() + 1);
        self.inner.generation.set(self.inner.generation.get().saturating_add(1));
    }

    /// Closes a view. Its rows are freed by `collect` once no view is open.
    pub fn close_view(&self) {
        self.inner.views.set(self.inner.views.get().checked_sub(1).expect("a view is closed once"));
        if self.inner.views.get() == 0 {
            // A view that is opened later does not see them.
            let first = self.inner.delayed.replace(ptr::null_mut());
            self.inner.released.borrow_mut().push(first);
        }
    }

    /// Frees up to `max` rows that only closed views held. Returns how many it freed.
    pub fn collect(&self, max: usize) -> usize {
        for freed in 0..max {
            if !self.inner.give_back_released() {
                return freed;
            }
        }
        max
    }

    /// Bytes of rows that nobody but views holds or held.
    pub fn delayed(&self) -> usize {
        self.inner.delayed_bytes.get()
    }

    pub(crate) fn allocate(&self, size: usize) -> Result<NonNull<u8>, OutOfMemory> {
        let inner = &*self.inner;
        let refused = OutOfMemory { requested: size, limit: inner.limit.get() };
        let taken = inner.used.get() + inner.charged.get();
        if taken + size > inner.limit.get() {
            return Err(refused);
        }
        if size > SMALL_MAX {
            return inner.allocate_large(size).ok_or(refused);
        }
        let (at, class_size) = class_of(size);
        let class = &inner.classes[at];
        let block = match class.current.get() {
            0 => None,
            current => {
                // SAFETY: a slab that a class has begins with its header, and its blocks are ours.
                unsafe { cut(slab_at(current), current, class_size) }
            }
        };
        let block = match block {
            Some(block) => block,
            None => inner.cut_from_another(class, class_size).ok_or(refused)?,
        };
        inner.used.set(inner.used.get() + class_size);
        Ok(block)
    }

    /// Brings what `free` of a small block touches nearer to the processor: the block itself and the head of its slab.
    pub(crate) fn foresee_free(block: NonNull<u8>) {
        let at = block.as_ptr() as usize;
        prefetch(at, 1);
        prefetch(at & !(SLAB_BYTES - 1), 1);
    }

    /// Gives a row's block back to the arena it came from.
    ///
    /// # Safety
    /// `block` comes from `allocate` with this `size`, its arena lives, and it is not used again.
    pub(crate) unsafe fn free(block: NonNull<u8>, size: usize, generation: u16) {
        // SAFETY: the arena outlives its rows.
        let inner = unsafe { &*Inner::of(block, size) };
        if inner.is_unseen(generation) {
            inner.give_back(block, size);
        } else {
            inner.delay(block, size);
        }
    }
}

/// The header of a slab.
///
/// # Safety
/// A slab that a class has begins at the address, and its arena lives.
unsafe fn slab_at<'a>(at: usize) -> &'a Slab {
    // SAFETY: `new_slab` has written it; rows are behind it, and all who change it share this thread.
    unsafe { &*(at as *const Slab) }
}

/// Takes a free block of a slab at `at`, if it has one.
///
/// # Safety
/// The slab is cut into blocks of this size.
#[inline]
unsafe fn cut(slab: &Slab, at: usize, class_size: usize) -> Option<NonNull<u8>> {
    let free = slab.free.get();
    let block = if free == 0 {
        let fresh = slab.fresh.get();
        if fresh + class_size > at + SLAB_BYTES {
            return None;
        }
        slab.fresh.set(fresh + class_size);
        fresh
    } else {
        // SAFETY: a block on the free list holds the address of the next one and is used by nobody.
        let next = unsafe { (free as *const usize).read_unaligned() };
        slab.free.set(next);
        prefetch(next, PREFETCHED_LINES);
        free
    };
    slab.live.set(slab.live.get() + 1);
    NonNull::new(block as *mut u8)
}

impl Inner {
    /// The arena of a block.
    unsafe fn of(block: NonNull<u8>, size: usize) -> *const Inner {
        let at = block.as_ptr() as usize;
        let header = if size > SMALL_MAX { at - LARGE_HEADER_BYTES } else { at & !(SLAB_BYTES - 1) };
        // SAFETY: both kinds of header begin with the address of the arena.
        unsafe { (*(header as *const BlockHeader)).arena }
    }

    /// Makes another slab the one that a class cuts from, the present one being full, and takes a block of it.
    fn cut_from_another(&self, class: &Class, class_size: usize) -> Option<NonNull<u8>> {
        let at = match class.listed.get() {
            0 => self.new_slab()?,
            listed => {
                // SAFETY: the class has it.
                let slab = unsafe { slab_at(listed) };
                self.unlist(class, slab);
                listed
            }
        };
        class.current.set(at);
        // SAFETY: the class has it.
        unsafe { cut(slab_at(at), at, class_size) }
    }

    /// Takes a slab out of the list of those that have free blocks.
    fn unlist(&self, class: &Class, slab: &Slab) {
        let (before, next) = (slab.before.replace(0), slab.next.replace(0));
        slab.is_listed.set(false);
        // SAFETY: the class has all slabs of its list.
        unsafe {
            match before {
                0 => class.listed.set(next),
                before => slab_at(before).next.set(next),
            }
            if next != 0 {
                slab_at(next).before.set(before);
            }
        }
    }

    fn list(&self, class: &Class, slab: &Slab, at: usize) {
        let first = class.listed.replace(at);
        slab.next.set(first);
        slab.is_listed.set(true);
        if first != 0 {
            // SAFETY: the class has all slabs of its list.
            unsafe { slab_at(first).before.set(at) };
        }
    }

    /// Rows made after the newest view opened are seen by no view.
    fn is_unseen(&self, generation: u16) -> bool {
        // The last generation has no end: some of its rows may be older than the view.
        self.views.get() == 0 || generation == self.generation.get() && generation != u16::MAX
    }

    /// Keeps a row until no view is open. Its header holds the address of the next one meanwhile.
    fn delay(&self, block: NonNull<u8>, size: usize) {
        let header = block.cast::<TupleHeader>();
        let next = self.delayed.replace(header.as_ptr());
        // SAFETY: the row has no references any more; views read its size and its bytes, which stay.
        unsafe { TupleHeader::link(header, next as usize) };
        self.delayed_bytes.set(self.delayed_bytes.get() + size);
    }

    /// Frees one of the rows that no open view holds any more. False if there is none.
    fn give_back_released(&self) -> bool {
        let mut lists = self.released.borrow_mut();
        while let Some(first) = lists.last_mut() {
            let Some(header) = NonNull::new(*first) else {
                lists.pop();
                continue;
            };
            // SAFETY: what `delay` put in the list is kept as it was.
            let (size, next) = unsafe { TupleHeader::linked(header) };
            *first = next as *mut TupleHeader;
            self.delayed_bytes.set(self.delayed_bytes.get() - size);
            self.give_back(header.cast(), size);
            return true;
        }
        false
    }

    fn large_layout(size: usize) -> Layout {
        Layout::from_size_align(size + LARGE_HEADER_BYTES, LARGE_HEADER_BYTES).expect("a row is far below the limit")
    }

    /// True if rows have left so much memory in parts that no more is taken.
    fn is_in_parts(&self, bytes: usize) -> bool {
        let bound = self.limit.get() + self.limit.get() / 2 + OVERHEAD_BYTES;
        self.reserved.get() + self.charged.get() + bytes > bound
    }

    fn new_slab(&self) -> Option<usize> {
        if self.is_in_parts(SLAB_BYTES) {
            return None;
        }
        let left = self.idle.borrow_mut().pop().or_else(|| self.returned.borrow_mut().pop());
        let at = match left {
            Some(at) => at,
            None => {
                if self.spare.get() == self.spare_end.get() {
                    self.new_chunk()?;
                }
                self.spare.replace(self.spare.get() + SLAB_BYTES)
            }
        };
        let header = Slab {
            arena: self,
            free: Cell::new(0),
            fresh: Cell::new(at + SLAB_HEADER_BYTES),
            live: Cell::new(0),
            is_listed: Cell::new(false),
            next: Cell::new(0),
            before: Cell::new(0),
        };
        // SAFETY: inside a chunk, large enough and aligned for the header; nobody uses it.
        unsafe { (at as *mut Slab).write(header) };
        self.reserved.set(self.reserved.get() + SLAB_BYTES);
        Some(at)
    }

    /// The limit lets rows come to more slabs than there are.
    fn has_limit_for_more(&self) -> bool {
        self.reserved.get() + self.charged.get() + AHEAD_BYTES < self.limit.get()
    }

    fn new_chunk(&self) -> Option<()> {
        let (start, end, touched) = match self.next_chunk.take() {
            Some(made) => made,
            None => self.make_chunk().map(|(start, bytes)| (start, start + bytes, start))?,
        };
        self.spare.set(start);
        self.spare_end.set(end);
        self.touched_end.set(touched);
        Some(())
    }

    /// Takes slabs from the system: more at once the more there are.
    fn make_chunk(&self) -> Option<(usize, usize)> {
        let (least, alignment) = match self.reserved.get() / SLAB_BYTES {
            ..HUGE_CHUNK_SLABS_MIN => (1, SLAB_BYTES),
            _ => (HUGE_CHUNK_SLABS_MIN, HUGE_PAGE_BYTES),
        };
        let slabs = (self.reserved.get() / SLAB_BYTES / 4).clamp(least, CHUNK_SLABS_MAX);
        let layout = Layout::from_size_align(slabs * SLAB_BYTES, alignment).ok()?;
        // SAFETY: the layout is not empty.
        let chunk = NonNull::new(unsafe { alloc(layout) })?;
        self.chunks.borrow_mut().push((chunk, layout));
        Some((chunk.as_ptr() as usize, layout.size()))
    }

    fn allocate_large(&self, size: usize) -> Option<NonNull<u8>> {
        if self.is_in_parts(size) {
            return None;
        }
        // SAFETY: the layout is not empty.
        let start = NonNull::new(unsafe { alloc(Self::large_layout(size)) })?;
        self.used.set(self.used.get() + size);
        self.reserved.set(self.reserved.get() + size);
        // SAFETY: the block has room for the header and the row.
        unsafe {
            start.cast::<BlockHeader>().write(BlockHeader { arena: self });
            Some(start.add(LARGE_HEADER_BYTES))
        }
    }

    fn give_back(&self, block: NonNull<u8>, size: usize) {
        if size > SMALL_MAX {
            self.used.set(self.used.get() - size);
            self.reserved.set(self.reserved.get() - size);
            // SAFETY: made by `allocate_large` with the same size.
            unsafe { dealloc(block.as_ptr().sub(LARGE_HEADER_BYTES), Self::large_layout(size)) };
            return;
        }
        let (at, class_size) = class_of(size);
        let class = &self.classes[at];
        self.used.set(self.used.get() - class_size);
        let at = block.as_ptr() as usize & !(SLAB_BYTES - 1);
        // SAFETY: the block was cut from the slab, and is ours again; classes are at least a word.
        let slab = unsafe {
            let slab = slab_at(at);
            block.cast::<usize>().write_unaligned(slab.free.get());
            slab
        };
        slab.free.set(block.as_ptr() as usize);
        slab.live.set(slab.live.get() - 1);
        if at == class.current.get() {
            return;
        }
        if slab.live.get() == 0 {
            if slab.is_listed.get() {
                self.unlist(class, slab);
            }
            self.reserved.set(self.reserved.get() - SLAB_BYTES);
            self.idle.borrow_mut().push(at);
        } else if !slab.is_listed.get() {
            self.list(class, slab, at);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let first = self.delayed.replace(ptr::null_mut());
        self.released.borrow_mut().push(first);
        while self.give_back_released() {}
        for (chunk, layout) in self.chunks.borrow().iter() {
            // SAFETY: made by `new_chunk` with this layout.
            unsafe { dealloc(chunk.as_ptr(), *layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Tuple;
    use proptest::prelude::*;

    fn row(length: usize, seed: u8) -> Vec<u8> {
        let mut out = vec![0x91];
        crate::msgpack::encode_bin(&mut out, &vec![seed; length]);
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn rows_keep_their_bytes_and_memory_comes_back(
            steps in proptest::collection::vec((0..5u8, 0..3000usize, any::<u8>()), 1..400)
        ) {
            let arena = Arena::new(64 << 20);
            let mut rows: Vec<(Tuple, Vec<u8>)> = Vec::new();
            let mut views = 0;
            for (kind, size, seed) in steps {
                match kind {
                    0..=2 => {
                        let length = if seed == 0 { size * 200 } else { size };
                        let bytes = row(length, seed);
                        rows.push((Tuple::new(&arena, 7, &bytes).expect("below the limit"), bytes));
                    }
                    3 if !rows.is_empty() => { let at = size % rows.len(); rows.swap_remove(at); }
                    4 if views > 0 && seed % 2 == 0 => { arena.close_view(); views -= 1; }
                    4 if views < 3 => { arena.open_view(); views += 1; }
                    _ => {}
                }
                if let Some((tuple, _)) = rows.last() { let copy = tuple.clone(); drop(copy); }
            }
            for (tuple, bytes) in &rows {
                prop_assert_eq!(tuple.data(), &bytes[..]);
                prop_assert_eq!(tuple.format_id(), 7);
            }
            rows.clear();
            for _ in 0..views { arena.close_view(); }
            while arena.collect(10) > 0 {}
            prop_assert_eq!(arena.used(), 0);
        }
    }

    #[test]
    fn every_size_has_the_smallest_class_that_holds_it() {
        let sizes = class_sizes();
        assert!(sizes.is_sorted());
        for size in 1..=SMALL_MAX {
            let (at, class_size) = class_of(size);
            assert_eq!(sizes[at], class_size);
            assert!(size <= class_size && (at == 0 || sizes[at - 1] < size.max(BLOCK_MIN)), "{size}");
        }
    }

    #[test]
    fn rows_are_kept_for_views_even_when_views_can_no_more_be_counted() {
        let arena = Arena::new(1 << 20);
        for _ in 0..70_000 {
            arena.open_view();
            arena.close_view();
        }
        let old = Tuple::new(&arena, 0, &[0x91, 7]).expect("below the limit");
        arena.open_view();
        drop(old);
        assert!(arena.used() > 0);
        arena.close_view();
        while arena.collect(10) > 0 {}
        assert_eq!(arena.used(), 0);
    }

    #[test]
    fn memory_of_rows_of_one_size_serves_rows_of_another() {
        const LIMIT: usize = 32 << 20;
        let arena = Arena::new(LIMIT);
        let mut given_back = 0;
        for length in [20, 50, 100, 200, 300, 500, 700, 1000, 3000, 10_000, 100_000, 250_000, 400_000] {
            let bytes = row(length, 1);
            let mut rows = Vec::new();
            while let Ok(tuple) = Tuple::new(&arena, 0, &bytes) {
                rows.push(tuple);
            }
            assert!(arena.used() > LIMIT * 3 / 4, "{length}");
            assert!(arena.reserved() <= 2 * LIMIT, "{length}: {} bytes", arena.reserved());
            // What is freed in any order is put together again.
            while !rows.is_empty() {
                rows.swap_remove(rows.len() * 2 / 3);
            }
            while arena.return_idle(|_, _| {}) {
                given_back += SLAB_BYTES;
            }
            assert!(arena.reserved() <= LIMIT, "{length}: {} bytes", arena.reserved());
        }
        assert!(given_back > 0);
    }

    #[test]
    fn rows_that_leave_few_of_each_slab_cannot_fill_the_memory() {
        const LIMIT: usize = 32 << 20;
        let arena = Arena::new(LIMIT);
        let mut kept = Vec::new();
        for length in (100..1000).step_by(20) {
            let bytes = row(length, 1);
            let mut rows = Vec::new();
            while let Ok(tuple) = Tuple::new(&arena, 0, &bytes) {
                rows.push(tuple);
            }
            kept.extend(rows.into_iter().step_by(500));
        }
        assert!(arena.reserved() <= LIMIT + LIMIT / 2 + OVERHEAD_BYTES, "{} bytes", arena.reserved());
        assert!(arena.used() < LIMIT);
        kept.clear();
        assert_eq!(arena.used(), 0);
        assert!(Tuple::new(&arena, 0, &row(100, 1)).is_ok());
    }

    #[test]
    fn memory_is_touched_ahead_of_the_rows_and_once() {
        let arena = Arena::new(200 << 20);
        let bytes = row(1000, 1);
        let mut rows = Vec::new();
        let mut given: Vec<(usize, usize)> = Vec::new();
        while let Ok(tuple) = Tuple::new(&arena, 0, &bytes) {
            rows.push(tuple);
            while let Some(part) = arena.take_untouched() {
                given.push(part);
            }
        }
        given.sort_unstable();
        assert!(given.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "a part is given twice");
        let used_later = &rows[rows.len() / 2..rows.len() * 9 / 10];
        let at = |tuple: &Tuple| tuple.as_raw() as usize;
        let is_given = |tuple: &Tuple| given.iter().any(|(from, bytes)| (*from..from + bytes).contains(&at(tuple)));
        assert!(used_later.iter().all(is_given), "rows came to memory that was not given");
    }

    #[test]
    fn the_limit_holds_and_frees_make_room() {
        let arena = Arena::new(1 << 20);
        let mut rows = Vec::new();
        let bytes = row(1000, 1);
        let refused = loop {
            match Tuple::new(&arena, 0, &bytes) {
                Ok(tuple) => rows.push(tuple),
                Err(error) => break error,
            }
        };
        assert_eq!(refused.limit, 1 << 20);
        assert!(rows.len() > 900 && arena.used() <= 1 << 20);
        rows.pop();
        rows.pop();
        assert!(Tuple::new(&arena, 0, &bytes).is_ok());
    }
}
