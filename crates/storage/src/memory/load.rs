//! Loading a space from files: rows first, secondary indexes at the end.
//!
//! The idea. A row that goes into a large ordered index costs some cache misses for each of its indexes. While files are read nobody asks
//! secondary indexes anything, so they are set aside. When all rows are there, the entries of each are gathered in one pass, sorted,
//! and put into full nodes one behind the other. Sorting looks at hints alone, so another thread can do it, and rows are compared only
//! where hints tie.

use super::index::{MemoryIndex, row_of, tuple_of};
use super::space::MemorySpace;
use crate::engine::{IndexKind, Mode, StorageError};
use index::Entry;
use runtime::{JoinHandle, spawn_thread};
use std::collections::VecDeque;

/// Entries below this number are sorted where they are.
const SORT_ELSEWHERE_MIN: usize = 50_000;
/// Rows that are fetched into the cache before they are looked at.
const FETCHED_ROWS: usize = 16;
/// Of a row: its header, and keys as most rows have them.
const FETCHED_BYTES: usize = 64;

/// Entries of an index that are sorted by their hints, here or by another thread.
enum Sorting {
    Here(Vec<Entry>),
    Elsewhere(JoinHandle<Vec<Entry>>),
}

impl Sorting {
    fn begin(mut entries: Vec<Entry>, is_last: bool) -> Self {
        // The last one is sorted here: this thread has nothing else to do.
        if entries.len() < SORT_ELSEWHERE_MIN || is_last {
            return Sorting::Here(sorted(entries));
        }
        let shared = std::sync::Arc::new(std::sync::Mutex::new(std::mem::take(&mut entries)));
        let theirs = std::sync::Arc::clone(&shared);
        let take = |entries: &std::sync::Mutex<Vec<Entry>>| {
            std::mem::take(&mut *entries.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
        };
        match spawn_thread("index-sort", move || sorted(take(&theirs))) {
            Ok(thread) => Sorting::Elsewhere(thread),
            Err(_) => Sorting::Here(sorted(take(&shared))),
        }
    }

    fn end(self) -> Vec<Entry> {
        match self {
            Sorting::Here(entries) => entries,
            Sorting::Elsewhere(thread) => thread.join().expect("sorting numbers does not panic"),
        }
    }
}

fn sorted(mut entries: Vec<Entry>) -> Vec<Entry> {
    // Stable: entries come in the order of the primary key, which is the order of many that tie.
    entries.sort_by_key(|entry| entry.hint);
    entries
}

impl MemorySpace {
    /// A space with the same rows, and indexes of its own. Takes time proportional to their number. No index may be being filled.
    pub fn copied(&self) -> MemorySpace {
        let mut copy = self.empty_like_this();
        copy.defer_secondary_indexes();
        if let Some(primary) = self.indexes.first() {
            primary.scan_fetched(|item| {
                let taken = copy.replace(tuple_of(item), Mode::Insert);
                debug_assert!(taken.is_ok(), "rows of one space have different keys");
            });
        }
        let completed = copy.complete_indexes();
        debug_assert!(completed.is_ok(), "indexes of the same rows take them again");
        copy
    }

    /// From now on only the primary index is kept, until [`MemorySpace::complete_indexes`]. The space must be empty. Until then secondary
    /// indexes are not there.
    pub fn defer_secondary_indexes(&mut self) {
        assert!(self.is_empty(), "what is set aside lacks no row");
        if self.indexes.len() > 1 && self.deferred.is_empty() {
            self.deferred = self.indexes.split_off(1);
        }
    }

    /// True if there are indexes to complete.
    pub fn is_deferring(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Fills the indexes that were set aside. Takes time proportional to the number of rows, and while it lasts 16 bytes for each row and
    /// ordered index.
    ///
    /// Errors: two rows with the same key of a unique index. Then the indexes stay aside.
    pub fn complete_indexes(&mut self) -> Result<(), StorageError> {
        let mut deferred = std::mem::take(&mut self.deferred);
        let filled = self.fill(&mut deferred);
        match &filled {
            Ok(()) => {
                self.indexes.append(&mut deferred);
                self.note_refusals();
                assert!(self.are_indexes_alike(), "every index holds the same rows");
            }
            Err(_) => self.deferred = deferred.iter().map(|index| MemoryIndex::new(index.def.clone())).collect(),
        }
        self.charge();
        filled
    }

    fn fill(&self, indexes: &mut [MemoryIndex]) -> Result<(), StorageError> {
        let Some(primary) = self.indexes.first() else { return Ok(()) };
        let mut gathered: Vec<Vec<Entry>> = indexes
            .iter()
            .map(|index| match index.def.kind {
                IndexKind::Tree => Vec::with_capacity(primary.len()),
                IndexKind::Hash => Vec::new(),
            })
            .collect();
        let mut conflict = None;
        primary.scan_fetched(|item| {
            for (index, entries) in indexes.iter_mut().zip(&mut gathered) {
                match index.def.kind {
                    IndexKind::Tree => index.gather(item, entries),
                    IndexKind::Hash => match index.conflict(row_of(item), None) {
                        None => index.put(&tuple_of(item)),
                        Some(existing) => conflict = conflict.or(Some((index.def.id, existing))),
                    },
                }
            }
        });
        let trees = gathered.iter().filter(|entries| !entries.is_empty()).count();
        let mut begun = 0;
        let sorting: Vec<Sorting> = gathered
            .into_iter()
            .map(|entries| {
                begun += usize::from(!entries.is_empty());
                Sorting::begin(entries, begun == trees)
            })
            .collect();
        for (index, sorting) in indexes.iter_mut().zip(sorting) {
            let mut entries = sorting.end();
            if conflict.is_some() || index.def.kind != IndexKind::Tree {
                continue;
            }
            index.order_ties(&mut entries);
            conflict = index.first_conflict(&entries).map(|existing| (index.def.id, existing));
            index.set_sorted(entries);
        }
        match conflict {
            None => Ok(()),
            Some((index_id, existing)) => Err(StorageError::Duplicate { index_id, existing: tuple_of(existing) }),
        }
    }
}

impl MemoryIndex {
    /// Calls `visit` with all items in their order, each after its row was fetched into the cache.
    fn scan_fetched(&self, mut visit: impl FnMut(u64)) {
        let mut fetched = VecDeque::with_capacity(FETCHED_ROWS);
        self.scan(crate::engine::IteratorKind::All, &[], 0, |item| {
            if fetched.len() == FETCHED_ROWS
                && let Some(item) = fetched.pop_front()
            {
                visit(item);
            }
            index::prefetch_bytes(item as *const u8, FETCHED_BYTES);
            fetched.push_back(item);
            true
        });
        fetched.into_iter().for_each(visit);
    }

    /// Brings entries that are sorted by their hints into the order of the index.
    fn order_ties(&self, entries: &mut [Entry]) {
        let def = &self.def.compare_def;
        if def.is_hint_exact() {
            return;
        }
        for tied in entries.chunk_by_mut(|a, b| a.hint == b.hint).filter(|tied| tied.len() > 1) {
            tied.sort_by(|a, b| def.compare_rows(row_of(a.item), row_of(b.item)));
        }
    }

    /// The first row whose neighbour in order has the same unique key.
    fn first_conflict(&self, entries: &[Entry]) -> Option<u64> {
        let def = &self.def.key_def;
        if !self.def.is_unique {
            return None;
        }
        // Where others are ordered by more than the key, their hints may say more.
        let says_more = self.def.compare_def.part_count() > def.part_count();
        let is_conflict = |pair: &&[Entry]| {
            (says_more || pair[0].hint == pair[1].hint)
                && def.compare_rows(row_of(pair[0].item), row_of(pair[1].item)).is_eq()
                && !def.has_null_in(row_of(pair[0].item))
        };
        entries.windows(2).find(is_conflict).map(|pair| self.owner(pair[0].item))
    }
}
