//! A scan that goes on between other work: it finds its place again when the index has changed meanwhile.

use super::index::{Progress, Sought};
use super::space::MemorySpace;
use crate::engine::IteratorKind;
use tuple::{IndexId, Tuple};

/// A suspended scan. It holds a reference to the last row it gave, so it may be kept for ever at the price of that row.
pub struct MemoryIterator {
    index_id: IndexId,
    kind: IteratorKind,
    key: Vec<u8>,
    part_count: u32,
    progress: Progress,
}

impl MemoryIterator {
    /// A scan over `index_id`; nothing is read yet.
    pub fn new(index_id: IndexId, kind: IteratorKind, key: &[u8], part_count: u32) -> Self {
        MemoryIterator { index_id, kind, key: key.to_vec(), part_count, progress: Progress::Start }
    }

    /// The index that is scanned.
    pub fn index_id(&self) -> IndexId {
        self.index_id
    }

    /// Direction and bound.
    pub fn kind(&self) -> IteratorKind {
        self.kind
    }

    /// The parts of the key, encoded one after the other, and their number.
    pub fn key(&self) -> (&[u8], u32) {
        (&self.key, self.part_count)
    }

    /// The last row that it gave, if it goes on behind it.
    pub fn last(&self) -> Option<&Tuple> {
        match &self.progress {
            Progress::Tree { last, .. } | Progress::Behind(last) => Some(last),
            _ => None,
        }
    }

    /// The same scan at the same place, of another space with the same indexes.
    pub fn over_again(&self) -> Self {
        let mut other = MemoryIterator::new(self.index_id, self.kind, &self.key, self.part_count);
        match self.last() {
            Some(last) => other.go_behind(last),
            None if self.is_done() => other.end(),
            None => {}
        }
        other
    }

    /// A scan of another space with the same hash index, from the place on to which this one has come.
    pub fn beside(&self) -> Self {
        let mut other = MemoryIterator::new(self.index_id, self.kind, &self.key, self.part_count);
        match &self.progress {
            Progress::Hash { cursor, .. } => {
                other.progress = Progress::Hash { cursor: *cursor, batch: Vec::new() };
            }
            Progress::Done => other.end(),
            _ => {}
        }
        other
    }

    /// The rows that it has come to and not given yet: those of a hash come many at a time.
    pub fn take_batch(&mut self) -> Vec<Tuple> {
        match &mut self.progress {
            Progress::Hash { batch, .. } => std::mem::take(batch),
            _ => Vec::new(),
        }
    }

    /// Goes on behind a row, which need not be in the space. For an ordinary ordered index.
    pub fn go_behind(&mut self, row: &Tuple) {
        self.progress = Progress::Behind(row.clone());
    }

    /// Nothing comes any more.
    pub fn end(&mut self) {
        self.progress = Progress::Done;
    }

    /// True if it has ended.
    pub fn is_done(&self) -> bool {
        matches!(self.progress, Progress::Done)
    }

    /// The next row, `None` at the end. A row comes once for each of its entries.
    pub fn next(&mut self, space: &MemorySpace) -> Option<Tuple> {
        let sought = Sought { kind: self.kind, key: &self.key, part_count: self.part_count };
        let found = space.index(self.index_id).and_then(|index| index.step(sought, &mut self.progress));
        if found.is_none() {
            self.progress = Progress::Done;
        }
        found
    }

    /// Appends the next rows, up to `max`, or fewer; none only at the end. The place is behind the last of them.
    pub fn next_some(&mut self, space: &MemorySpace, max: usize, rows: &mut Vec<Tuple>) {
        let sought = Sought { kind: self.kind, key: &self.key, part_count: self.part_count };
        let index = space.index(self.index_id);
        if !index.is_some_and(|index| index.step_some(sought, &mut self.progress, max, rows)) {
            self.progress = Progress::Done;
        }
    }
}
