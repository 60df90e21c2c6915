//! What was fetched for look-ups that are about to come.

use index::{PREFETCH_MAX, Place};
use std::cell::Cell;

/// Of a row: what most rows have.
pub(super) const PREFETCHED_ROW_BYTES: usize = 192;

/// Of a row that another is compared with: the fields of most keys.
pub(super) const COMPARED_ROW_BYTES: usize = 64;

/// What the last prefetch found, for the look-ups that follow it at once.
#[derive(Default)]
pub(super) struct Recent {
    pub(super) found: [Option<(u64, Place)>; PREFETCH_MAX],
    /// So many of them are in use.
    pub(super) count: usize,
    /// Look-ups come in the order of the prefetch: this one is expected next.
    next: Cell<usize>,
}

impl Recent {
    /// The place of a hint.
    #[inline]
    pub(super) fn find(&self, hint: u64) -> Option<&Place> {
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
