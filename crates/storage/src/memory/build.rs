//! Indexes that are filled a slice at a time while the rows go on changing.
//!
//! The idea. New indexes take the rows in the order of the primary one. What changes behind the place that they have come to is changed in them at
//! once; what lies ahead is met as it will be then. So at the end they hold what the space holds, and nobody has waited for more than a slice.
//!
//! ```text
//! primary index   a b c d | e f g h        a change of b is a change of the new indexes, too;
//! new indexes     a b c d |                 one of f is found when f is reached
//! ```
//!
//! A row that the new indexes cannot take ends the building and not the statement that brings it: there is no such index yet.
//!
//! Invariant: until it fails, the new indexes hold exactly the rows of the space that [`MemoryIndex::has_passed`] says true of.
//!
//! Refused: a read view that a worker sorts, with the changes since then applied afterwards. It keeps every row that is replaced meanwhile.

use super::index::{MemoryIndex, Pass, item_of, row_of, tuple_of};
use crate::engine::{BuildError, IndexDef};
use index::PREFETCH_MAX;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use tuple::{Format, Tuple};

/// Rows whose way into the new indexes is fetched into the processor's caches together.
const GROUP: usize = PREFETCH_MAX;
/// Of a row ahead.
const PREFETCHED_ROW_BYTES: usize = 128;

/// New indexes of a space under way.
pub(super) struct Build {
    /// Tells it from every other one.
    pub(super) id: u64,
    /// What rows must be like to be in the new indexes.
    format: Rc<Format>,
    pub(super) indexes: Vec<MemoryIndex>,
    pass: Pass,
    /// Why it cannot come to an end.
    failure: Option<BuildError>,
}

impl Build {
    pub(super) fn new(format: Rc<Format>, defs: Vec<IndexDef>) -> Self {
        static NEXT_ID: AtomicU64 = AtomicU64::new(1);
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        let indexes = defs.into_iter().map(MemoryIndex::new).collect();
        Build { id, format, indexes, pass: Pass::Start, failure: None }
    }

    pub(super) fn is_done(&self) -> bool {
        matches!(self.pass, Pass::Done) && self.failure.is_none()
    }

    pub(super) fn bytes(&self) -> usize {
        self.indexes.iter().map(MemoryIndex::bytes).sum()
    }

    /// Goes along with a change of the space: both rows have the same primary key.
    pub(super) fn follow(&mut self, primary: &MemoryIndex, old: Option<&Tuple>, new: Option<&Tuple>) {
        let Some(any) = new.or(old) else { return };
        if self.failure.is_some() || !primary.has_passed(&self.pass, any.data()) {
            return;
        }
        if let Some(new) = new
            && let Err(failure) = self.check(new.data(), old.map(item_of))
        {
            self.failure = Some(failure);
            return;
        }
        for index in &mut self.indexes {
            if !index.swap(old, new, false)
                && let Some(old) = old
            {
                // It cannot be trusted to be what the rows are.
                self.failure = Some(BuildError::Duplicate { index_id: index.def.id, existing: old.clone() });
            }
        }
    }

    /// Says whether the new indexes can take a row, `replaced` set aside.
    fn check(&self, row: &[u8], replaced: Option<u64>) -> Result<(), BuildError> {
        self.format.check(row).map_err(BuildError::Format)?;
        for index in &self.indexes {
            if let Some(existing) = index.conflict(row, replaced) {
                return Err(BuildError::Duplicate { index_id: index.def.id, existing: tuple_of(existing) });
            }
        }
        Ok(())
    }

    /// Takes up to `max` rows more; of a hash index a table, which may be some thousand. True while there are any.
    ///
    /// Errors: a row that cannot be taken. The new indexes can only be thrown away then.
    pub(super) fn fill_some(&mut self, primary: &MemoryIndex, max: usize) -> Result<bool, BuildError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let (rows, pass) = primary.next_rows(&self.pass, max);
        let filled = rows.chunks(GROUP).try_for_each(|group| {
            group.iter().for_each(|row| index::prefetch_bytes(*row as *const u8, PREFETCHED_ROW_BYTES));
            self.add(group)
        });
        match filled {
            Ok(()) => self.pass = pass,
            Err(failure) => {
                self.failure = Some(failure.clone());
                return Err(failure);
            }
        }
        Ok(!self.is_done())
    }

    fn add(&mut self, items: &[u64]) -> Result<(), BuildError> {
        // Before a key of theirs is looked at.
        items.iter().try_for_each(|item| self.format.check(row_of(*item))).map_err(BuildError::Format)?;
        for index in &mut self.indexes {
            index.prefetch_rows(items.iter().map(|item| row_of(*item)));
            for item in items {
                index.add(&tuple_of(*item)).map_err(|existing| BuildError::Duplicate {
                    index_id: index.def.id,
                    existing: tuple_of(existing),
                })?;
            }
        }
        Ok(())
    }
}
