//! Buffers for direct I/O.
#![expect(unsafe_code, reason = "pages seen as bytes")]

/// Size and alignment of a page.
pub const PAGE_BYTES: usize = 4096;

#[derive(Clone)]
#[repr(C, align(4096))]
struct Page([u8; PAGE_BYTES]);

/// Bytes that begin at a page boundary and fill whole pages.
#[derive(Clone, Default)]
pub struct AlignedBuffer {
    pages: Vec<Page>,
}

impl AlignedBuffer {
    /// Makes the buffer `pages` pages long; new pages are zero.
    pub fn resize(&mut self, pages: usize) {
        self.pages.resize(pages, Page([0; PAGE_BYTES]));
    }

    /// Length in pages.
    pub(crate) fn pages(&self) -> usize {
        self.pages.len()
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: pages are arrays of bytes without padding, one after the other.
        unsafe { std::slice::from_raw_parts(self.pages.as_ptr().cast(), self.pages.len() * PAGE_BYTES) }
    }

    /// The bytes, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as `bytes`; the borrow is unique.
        unsafe { std::slice::from_raw_parts_mut(self.pages.as_mut_ptr().cast(), self.pages.len() * PAGE_BYTES) }
    }
}
