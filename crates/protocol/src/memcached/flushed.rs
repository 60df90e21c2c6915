//! Keys that `flush_all` has removed, so that `stats` can tell why a `get` of one finds nothing.
//!
//! The real server leaves such items where they are until somebody asks for them, and counts that as `get_flushed`. Here they are gone at once; what stays is
//! the hashes of some of their keys. Whoever flushes nothing pays for one look at a flag.

use super::layout::Layout;
use super::recent::hash;
use database::{Database, Key, Result, ScanRequest, Space};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use storage::IteratorKind;
use tuple::IndexId;

/// Keys of one `flush_all` that are remembered; of more rows not all misses are counted.
const FLUSHED_MAX: usize = 4096;

/// See the head of this file.
#[derive(Default)]
pub(super) struct Flushed {
    is_any: Cell<bool>,
    hashes: RefCell<BTreeSet<u64>>,
}

impl Flushed {
    /// Notes the keys of a space that is about to be emptied. Errors: those of a read.
    pub(super) fn note_all(&self, database: &Database, space: &Rc<Space>, layout: &Layout) -> Result<()> {
        let mut hashes = BTreeSet::new();
        let request = ScanRequest {
            limit: FLUSHED_MAX as u64,
            ..ScanRequest::new(IndexId::PRIMARY, IteratorKind::All, Key::EMPTY)
        };
        // What was decided by whoever may empty the space is done as the server itself.
        database.select(&database.admin_context(), space, &request, |row| {
            hashes.extend(layout.read_key(row).map(hash));
            true
        })?;
        self.is_any.set(!hashes.is_empty());
        *self.hashes.borrow_mut() = hashes;
        Ok(())
    }

    /// An item is there again.
    #[inline]
    pub(super) fn forget(&self, key: &[u8]) {
        if self.is_any.get() {
            self.take(key);
        }
    }

    /// True if a key was removed so and nobody has asked for it since.
    pub(super) fn take(&self, key: &[u8]) -> bool {
        if !self.is_any.get() {
            return false;
        }
        let mut hashes = self.hashes.borrow_mut();
        let was_there = hashes.remove(&hash(key));
        self.is_any.set(!hashes.is_empty());
        was_there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_told_once() {
        let flushed = Flushed::default();
        assert!(!flushed.take(b"a"));
        flushed.hashes.borrow_mut().extend([hash(b"a"), hash(b"b")]);
        flushed.is_any.set(true);
        flushed.forget(b"b");
        assert_eq!([flushed.take(b"b"), flushed.take(b"a"), flushed.take(b"a")], [false, true, false]);
        assert!(!flushed.is_any.get());
    }
}
