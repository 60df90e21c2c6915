//! Bytes of a file in pages that copies share.

use std::sync::{Arc, LazyLock};

const PAGE_BYTES: usize = 4096;

type Page = [u8; PAGE_BYTES];

static ZEROS: LazyLock<Arc<Page>> = LazyLock::new(|| Arc::new([0; PAGE_BYTES]));

/// Bytes whose copies cost nothing until one of them is changed, and then the pages that differ.
///
/// Invariant: what the last page has behind `len` is zero, so that a longer file shows zeros there.
#[derive(Clone, Default)]
pub(super) struct Bytes {
    pages: Arc<Vec<Arc<Page>>>,
    len: usize,
}

impl Bytes {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Copies what there is from `offset` on; returns how many bytes.
    pub(super) fn read(&self, out: &mut [u8], offset: u64) -> usize {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.len);
        let count = out.len().min(self.len - start);
        let mut done = 0;
        while done < count {
            let (page, within) = ((start + done) / PAGE_BYTES, (start + done) % PAGE_BYTES);
            let part = (PAGE_BYTES - within).min(count - done);
            out[done..done + part].copy_from_slice(&self.pages[page][within..within + part]);
            done += part;
        }
        count
    }

    /// Puts bytes in place; a file that ends before them is filled with zeros.
    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) {
        let start = offset as usize;
        if start + bytes.len() > self.len {
            self.set_len(start + bytes.len());
        }
        let pages = Arc::make_mut(&mut self.pages);
        let mut done = 0;
        while done < bytes.len() {
            let (page, within) = ((start + done) / PAGE_BYTES, (start + done) % PAGE_BYTES);
            let part = (PAGE_BYTES - within).min(bytes.len() - done);
            Arc::make_mut(&mut pages[page])[within..within + part].copy_from_slice(&bytes[done..done + part]);
            done += part;
        }
    }

    /// Cuts, or fills up with zeros.
    pub(super) fn set_len(&mut self, len: usize) {
        let pages = Arc::make_mut(&mut self.pages);
        pages.resize(len.div_ceil(PAGE_BYTES), ZEROS.clone());
        if len < self.len && !len.is_multiple_of(PAGE_BYTES) {
            Arc::make_mut(&mut pages[len / PAGE_BYTES])[len % PAGE_BYTES..].fill(0);
        }
        self.len = len;
    }

    /// Flips one bit; a bit behind the end is none.
    pub(super) fn flip(&mut self, bit: u64) {
        let at = (bit / 8) as usize;
        if at < self.len {
            let page = &mut Arc::make_mut(&mut self.pages)[at / PAGE_BYTES];
            Arc::make_mut(page)[at % PAGE_BYTES] ^= 1 << (bit % 8);
        }
    }

    /// Mixes length and bytes into two lanes of a hash.
    pub(super) fn hash(&self, lanes: &mut [u64; 2]) {
        mix(lanes, self.len as u64);
        for page in &*self.pages {
            if Arc::ptr_eq(page, &ZEROS) {
                mix(lanes, PAGE_BYTES as u64);
                continue;
            }
            for word in page.as_chunks::<8>().0 {
                mix(lanes, u64::from_le_bytes(*word));
            }
        }
    }
}

/// One word into two lanes that multiply and turn differently.
pub(super) fn mix(lanes: &mut [u64; 2], word: u64) {
    lanes[0] = (lanes[0] ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    lanes[1] = (lanes[1].rotate_left(17) ^ word).wrapping_mul(0xd6e8_feb8_6659_fd93);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_apart_and_growth_shows_zeros() {
        let mut bytes = Bytes::default();
        bytes.write(&[7; 10_000], 3000);
        let copy = bytes.clone();
        bytes.set_len(5000);
        bytes.set_len(9000);
        let mut out = vec![1; 13_000];
        assert_eq!(bytes.read(&mut out, 0), 9000);
        assert!(out[..3000].iter().chain(&out[5000..9000]).all(|&byte| byte == 0));
        assert!(out[3000..5000].iter().all(|&byte| byte == 7));
        assert_eq!(copy.read(&mut out, 12_990), 10);
        assert!(out[..10].iter().all(|&byte| byte == 7));
        assert_eq!(copy.read(&mut out, 13_000), 0);
    }
}
