//! Rows that a step keeps, and numbers of keys.
//!
//! Whatever grows with the rows of a statement grows in pieces, and is taken down in pieces: to double one large block, or to free a million values at
//! once, would take milliseconds, in which nobody else has a turn.

use crate::error::Result;
use crate::expr::Slot;
use crate::run::Run;
use crate::value::{HashedValue, Value};
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::{BuildHasher, Hash, Hasher};

/// Rows of one piece.
const PIECE_ROWS: usize = 512;
/// Keys that one table may have before there are many tables, and how many there are then.
const SMALL_MAX: usize = 4096;
const PARTS: usize = 256;

/// Rows of the same number of values, by their numbers.
pub(crate) struct Rows {
    width: usize,
    count: usize,
    bytes: usize,
    pieces: Vec<Vec<Value>>,
}

impl Rows {
    /// None yet, of so many values each.
    pub(crate) fn new(width: usize) -> Self {
        Rows { width, count: 0, bytes: 0, pieces: Vec::new() }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// How many bytes they have all in all.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// One of them.
    pub(crate) fn row(&self, number: usize) -> &[Value] {
        let at = number % PIECE_ROWS * self.width;
        match self.width {
            0 => &[],
            _ => &self.pieces[number / PIECE_ROWS][at..at + self.width],
        }
    }

    /// Keeps copies of places of the frame. Errors: `LimitExceeded`.
    pub(crate) fn push(&mut self, run: &mut Run<'_>, slots: &[Slot]) -> Result<()> {
        self.grow();
        let mut weight = self.width * size_of::<Value>() + 8;
        if let Some(piece) = self.pieces.last_mut().filter(|_| self.width > 0) {
            for slot in slots {
                weight += run.frame[*slot].weight();
                piece.push(run.frame[*slot].clone());
            }
        }
        self.count += 1;
        self.bytes += weight;
        run.take(weight)
    }

    /// Keeps a row, which is empty afterwards. Errors: `LimitExceeded`.
    pub(crate) fn push_values(&mut self, run: &mut Run<'_>, values: impl Iterator<Item = Value>) -> Result<()> {
        self.grow();
        let mut weight = self.width * size_of::<Value>() + 8;
        if let Some(piece) = self.pieces.last_mut().filter(|_| self.width > 0) {
            for value in values.take(self.width) {
                weight += value.weight();
                piece.push(value);
            }
        }
        self.count += 1;
        self.bytes += weight;
        run.take(weight)
    }

    fn grow(&mut self) {
        if self.count.is_multiple_of(PIECE_ROWS) && self.width > 0 {
            // The first piece grows by and by: most statements keep a few rows.
            let room = if self.count == 0 { 4 } else { PIECE_ROWS };
            self.pieces.push(Vec::with_capacity(room * self.width));
        }
    }

    /// Frees them by and by. Errors: as [`Run::tick`].
    pub(crate) fn free(mut self, run: &mut Run<'_>) -> Result<()> {
        while self.pieces.pop().is_some() {
            run.tick_many(PIECE_ROWS as u32 / 8)?;
        }
        Ok(())
    }
}

/// A list in pieces.
pub(crate) struct Pieces<T> {
    pieces: Vec<Vec<T>>,
    count: usize,
}

impl<T> Default for Pieces<T> {
    fn default() -> Self {
        Pieces { pieces: Vec::new(), count: 0 }
    }
}

impl<T> Pieces<T> {
    /// Of one element.
    pub(crate) fn of(element: T) -> Self {
        Pieces { pieces: vec![vec![element]], count: 1 }
    }

    /// How many elements there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Puts one more in behind the others.
    pub(crate) fn push(&mut self, element: T) {
        match self.pieces.last_mut() {
            // The first piece grows by and by: most statements keep a few rows.
            Some(piece) if piece.len() < PIECE_ROWS => piece.push(element),
            last => {
                let room = if last.is_none() { 4 } else { PIECE_ROWS };
                let mut piece = Vec::with_capacity(room);
                piece.push(element);
                self.pieces.push(piece);
            }
        }
        self.count += 1;
    }

    /// All in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.pieces.iter().flatten()
    }

    /// Frees them by and by. Errors: as [`Run::tick`].
    pub(crate) fn free(mut self, run: &mut Run<'_>) -> Result<()> {
        while let Some(piece) = self.pieces.pop() {
            let count = piece.len();
            drop(piece);
            run.tick_many(count as u32 / 8)?;
        }
        Ok(())
    }
}

impl<T> IntoIterator for Pieces<T> {
    type Item = T;
    type IntoIter = std::iter::Flatten<std::vec::IntoIter<Vec<T>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.pieces.into_iter().flatten()
    }
}

/// Numbers of keys: 0 for the first one, 1 for the next that is not equal to it, and so on.
pub(crate) struct Keys {
    keys: Rows,
    hasher: DefaultHashBuilder,
    /// Hashes and numbers. One table, or `PARTS` of them by the hash's last bits: a small one grows at once.
    tables: Vec<HashTable<(u64, u32)>>,
}

impl Keys {
    /// None yet, of so many values each.
    pub(crate) fn new(width: usize) -> Self {
        Keys { keys: Rows::new(width), hasher: DefaultHashBuilder::default(), tables: vec![HashTable::new()] }
    }

    /// One of them.
    pub(crate) fn key(&self, number: usize) -> &[Value] {
        self.keys.row(number)
    }

    fn hash(&self, key: &[HashedValue]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        key.iter().for_each(|value| value.hash(&mut hasher));
        hasher.finish()
    }

    fn part(&self, hash: u64) -> usize {
        hash as usize % self.tables.len()
    }

    fn find_hashed(&self, hash: u64, key: &[HashedValue]) -> Option<usize> {
        let is_it = |(other, number): &(u64, u32)| {
            let known = self.keys.row(*number as usize);
            *other == hash && known.iter().zip(key).all(|(a, b)| a.order(&b.0) == std::cmp::Ordering::Equal)
        };
        // Bits that have chosen the table say nothing within it.
        self.tables[self.part(hash)].find(hash.rotate_right(8), is_it).map(|(_, number)| *number as usize)
    }

    /// The number of a key that is there.
    pub(crate) fn find(&self, key: &[HashedValue]) -> Option<usize> {
        self.find_hashed(self.hash(key), key)
    }

    /// The number of a key, and whether it is a new one, which is taken out of `key`. Errors: `LimitExceeded`.
    pub(crate) fn number(&mut self, run: &mut Run<'_>, key: &mut Vec<HashedValue>) -> Result<(usize, bool)> {
        let hash = self.hash(key);
        if let Some(number) = self.find_hashed(hash, key) {
            return Ok((number, false));
        }
        let number = self.keys.len();
        run.take(24)?;
        self.keys.push_values(run, key.drain(..).map(|value| value.0))?;
        if number == SMALL_MAX {
            self.spread();
        }
        let part = self.part(hash);
        self.tables[part].insert_unique(hash.rotate_right(8), (hash, number as u32), |(hash, _)| hash.rotate_right(8));
        Ok((number, true))
    }

    fn spread(&mut self) {
        let small = std::mem::take(&mut self.tables);
        self.tables = (0..PARTS).map(|_| HashTable::new()).collect();
        for entry in small.into_iter().flatten() {
            let part = self.part(entry.0);
            self.tables[part].insert_unique(entry.0.rotate_right(8), entry, |(hash, _)| hash.rotate_right(8));
        }
    }

    /// Frees them by and by. Errors: as [`Run::tick`].
    pub(crate) fn free(self, run: &mut Run<'_>) -> Result<()> {
        self.keys.free(run)
    }
}
