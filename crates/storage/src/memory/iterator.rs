//! A scan that goes on between other work: it finds its place again when the index has changed meanwhile.

use super::index::{MemoryIndex, Structure, row_of, tuple_of};
use super::space::MemorySpace;
use crate::engine::IteratorKind;
use index::{Cursor, HashCursor};
use tuple::Tuple;

/// A suspended scan. It holds a reference to the last row it gave, so it may be kept for ever at the price of that row.
pub struct MemoryIterator {
    index_id: u32,
    kind: IteratorKind,
    key: Vec<u8>,
    part_count: u32,
    state: State,
}

enum State {
    Start,
    /// In a tree: the cursor is good while the version stays.
    Tree {
        cursor: Cursor,
        version: u64,
        last: Tuple,
    },
    Hash {
        cursor: HashCursor,
        batch: Vec<Tuple>,
    },
    Done,
}

impl MemoryIterator {
    /// A scan over `index_id`; nothing is read yet.
    pub fn new(index_id: u32, kind: IteratorKind, key: &[u8], part_count: u32) -> Self {
        MemoryIterator { index_id, kind, key: key.to_vec(), part_count, state: State::Start }
    }

    /// A scan that goes on behind `last`, which need not be in the space any more.
    pub fn after(index_id: u32, kind: IteratorKind, key: &[u8], part_count: u32, last: Tuple) -> Self {
        let mut iterator = Self::new(index_id, kind, key, part_count);
        iterator.state = State::Tree { cursor: index::Tree::new().first(), version: u64::MAX, last };
        iterator
    }

    /// The index that is scanned.
    pub fn index_id(&self) -> u32 {
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
        match &self.state {
            State::Tree { last, .. } => Some(last),
            _ => None,
        }
    }

    /// True if it has come to its end.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// The next row, `None` at the end.
    pub fn next(&mut self, space: &MemorySpace) -> Option<Tuple> {
        let found = space.index(self.index_id).and_then(|index| self.step(index));
        if found.is_none() {
            self.state = State::Done;
        }
        found
    }

    fn step(&mut self, index: &MemoryIndex) -> Option<Tuple> {
        match (&index.structure, &mut self.state) {
            (_, State::Done) => None,
            (Structure::Tree(tree), state) => {
                let cursor = match state {
                    State::Start => index.seek(tree, self.kind, &self.key, self.part_count),
                    State::Tree { cursor, version, .. } if *version == tree.version() => {
                        let mut cursor = *cursor;
                        if self.kind.is_reverse() {
                            cursor.prev();
                        } else {
                            cursor.next();
                        }
                        cursor
                    }
                    State::Tree { last, .. } => {
                        let def = &index.def.compare_def;
                        let row = last.data();
                        let compare = |item| def.compare_rows(row_of(item), row);
                        if self.kind.is_reverse() {
                            tree.last_before(def.hint(row), compare)
                        } else {
                            tree.upper_bound(def.hint(row), compare)
                        }
                    }
                    _ => return None,
                };
                let entry = cursor.get()?;
                if !index.matches(self.kind, entry.item, &self.key, self.part_count) {
                    return None;
                }
                let last = tuple_of(entry.item);
                self.state = State::Tree { cursor, version: tree.version(), last: last.clone() };
                Some(last)
            }
            (Structure::Hash(_), State::Start) if self.kind == IteratorKind::Eq && self.part_count > 0 => {
                let found = index.find_key(&self.key, self.part_count).map(tuple_of);
                self.state = State::Done;
                found
            }
            (Structure::Hash(hash), state) => {
                if let State::Start = state {
                    *state = State::Hash { cursor: HashCursor::default(), batch: Vec::new() };
                }
                let State::Hash { cursor, batch } = state else { return None };
                while batch.is_empty() {
                    if !hash.next_batch(cursor, |item| batch.push(tuple_of(item))) {
                        return None;
                    }
                }
                batch.pop()
            }
        }
    }
}
