//! The allocator of the process.
#![expect(unsafe_code, reason = "an allocator hands out raw blocks")]

use libmimalloc_sys as mimalloc;
use std::alloc::{GlobalAlloc, Layout};

/// Blocks of at least this size lie in huge pages.
const HUGE_BLOCK_BYTES_MIN: usize = 4 << 20;
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// For `#[global_allocator]`: steady latency, little overhead a block, and huge pages for large blocks where the system gives
/// them on request.
///
/// Random reads of a large memory miss the processor's address cache less in huge pages. Small blocks are kept out of them: a page
/// that is touched once would hold 2 MiB.
pub struct Allocator;

/// True if mimalloc's plain functions align well enough: they are faster than those that are told how to align.
#[inline]
fn is_plain(layout: Layout) -> bool {
    layout.align() <= 8 || layout.align() <= 16 && layout.size() >= 16
}

// SAFETY: every call is passed on, with an alignment that is at least the wanted one; advice changes no contents.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: any size and any power of two are allowed.
        let block = unsafe {
            if is_plain(layout) { mimalloc::mi_malloc(size) } else { mimalloc::mi_malloc_aligned(size, align) }
        };
        if size >= HUGE_BLOCK_BYTES_MIN && !block.is_null() {
            advise_huge(block.cast(), size);
        }
        block.cast()
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _layout: Layout) {
        // SAFETY: the block came from here.
        unsafe { mimalloc::mi_free(block.cast()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size and any power of two are allowed.
        unsafe { mimalloc::mi_zalloc_aligned(layout.size(), layout.align()).cast() }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let is_plain = layout.align() <= 8 || layout.align() <= 16 && size >= 16;
        // SAFETY: the block came from here; size and alignment are as for `alloc`.
        unsafe {
            if is_plain {
                mimalloc::mi_realloc(block.cast(), size).cast()
            } else {
                mimalloc::mi_realloc_aligned(block.cast(), size, layout.align()).cast()
            }
        }
    }
}

/// Asks for huge pages wholly inside a block.
fn advise_huge(block: *mut u8, size: usize) {
    let start = (block as usize).next_multiple_of(HUGE_PAGE_BYTES);
    let end = (block as usize + size) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    if start < end {
        // SAFETY: the pages are inside a block of ours; a system without huge pages refuses, which changes nothing.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
    }
}

/// Makes memory of this process resident without changing it. Where it is not memory, or the system does not know how, nothing happens.
pub fn touch(address: usize, bytes: usize) {
    // SAFETY: the advice changes no contents, whatever the range is.
    unsafe { libc::madvise(address as *mut libc::c_void, bytes, libc::MADV_POPULATE_WRITE) };
}

/// Lets the system have memory of this process. What it held is lost: it reads as zeros, or as it was.
///
/// # Safety
/// The range is whole pages of private memory of this process, and nobody needs what it holds.
pub unsafe fn give_back(address: usize, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { libc::madvise(address as *mut libc::c_void, bytes, libc::MADV_DONTNEED) };
}
