//! When items were last asked for, as the flags `h` and `l` of meta commands tell.
//!
//! A table of a fixed size in which a later key takes the place of an earlier one: what it does not know counts as not asked for. Nothing is noted
//! before the first client asks with one of these flags, so that others pay nothing.

use std::cell::{Cell, RefCell};

const SLOTS: usize = 1 << 14;

/// See the head of this file.
#[derive(Default)]
pub(super) struct Recent {
    is_used: Cell<bool>,
    /// Hash of the key, seconds, whether it was read.
    slots: RefCell<Vec<(u64, u32, bool)>>,
}

/// FNV-1a of a key.
pub(super) fn hash(key: &[u8]) -> u64 {
    key.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

impl Recent {
    /// Begins to take notes.
    pub(super) fn begin(&self) {
        if !self.is_used.replace(true) {
            *self.slots.borrow_mut() = vec![(0, 0, false); SLOTS];
        }
    }

    /// Notes that an item was read or written.
    #[inline]
    pub(super) fn note(&self, key: &[u8], now: impl FnOnce() -> u64, is_read: bool) {
        if self.is_used.get() {
            let hash = hash(key);
            self.slots.borrow_mut()[hash as usize % SLOTS] = (hash, now() as u32, is_read);
        }
    }

    /// Seconds when an item was last read or written, and whether it was read.
    pub(super) fn look(&self, key: &[u8]) -> Option<(u64, bool)> {
        let hash = hash(key);
        let slots = self.slots.borrow();
        let (known, seconds, is_read) = *slots.get(hash as usize % SLOTS)?;
        (known == hash && seconds != 0).then_some((u64::from(seconds), is_read))
    }
}
