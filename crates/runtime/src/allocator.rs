//! The allocator of the process.
#![expect(unsafe_code, reason = "an allocator hands out raw blocks")]

use mimalloc::MiMalloc;
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

// SAFETY: every call is passed on; advice changes no contents.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let block = unsafe { MiMalloc.alloc(layout) };
        if layout.size() >= HUGE_BLOCK_BYTES_MIN && !block.is_null() {
            advise_huge(block, layout.size());
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { MiMalloc.dealloc(block, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { MiMalloc.realloc(block, layout, size) }
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
