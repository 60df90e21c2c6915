//! Where in the cache a key is: words of eight bytes in many small tables.
//!
//! ```text
//! tag, 21 bits of the hash | uses, 2 | is a block, 1 | where its record lies, 40
//! ```
//!
//! The words of a table stand in the order of their tags, each at the place that its tag has if all are spread evenly, or behind it. So a search, which
//! nearly always ends within a line of the processor's cache, ends at the first larger tag, and nothing but the words is needed to make a table
//! larger, an eighth at a time. One large table would have to be made anew at once, which takes milliseconds.

/// Bits of a tag.
const TAG_BITS: u32 = 21;
const TAG_SHIFT: u32 = 64 - TAG_BITS;
const USES_SHIFT: u32 = 41;
/// More uses are not told from these.
pub(super) const USES_MAX: u64 = 3;
const IS_BLOCK: u64 = 1 << 40;
const PLACE_MASK: u64 = IS_BLOCK - 1;
/// Words of one table, about.
const TABLE_WORDS: usize = 512;
/// A table grows by an eighth when more than `FULL` of this many places are taken, and shrinks when fewer than `SPARSE` are.
const PARTS: usize = 8;
const FULL: usize = 7;
const SPARSE: usize = 3;
/// Places behind the last one that a tag has, for those that are pushed on.
const TAIL: usize = 8;

/// What is known of a record without a look at it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Word(u64);

impl Word {
    /// Invariant: no place is 0, so no word is.
    pub(super) fn new(place: u64, is_block: bool, uses: u64) -> Self {
        debug_assert!(place != 0 && place <= PLACE_MASK && uses <= USES_MAX);
        Word(uses << USES_SHIFT | u64::from(is_block) << 40 | place)
    }

    pub(super) fn place(self) -> u64 {
        self.0 & PLACE_MASK
    }

    pub(super) fn is_block(self) -> bool {
        self.0 & IS_BLOCK != 0
    }

    pub(super) fn uses(self) -> u64 {
        self.0 >> USES_SHIFT & USES_MAX
    }

    fn tag(self) -> u64 {
        self.0 >> TAG_SHIFT
    }
}

/// Where a word stands, until the index is changed.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    table: usize,
    at: usize,
}

/// Words in the order of their tags; 0 is an empty place. The last place is always empty.
#[derive(Clone, Default)]
struct Table {
    words: Vec<u64>,
    /// Places that a tag may have.
    places: usize,
    len: usize,
}

impl Table {
    fn home(&self, tag: u64) -> usize {
        (tag as usize * self.places) >> TAG_BITS
    }

    /// The first word with this tag or a larger one, or the empty place where it would be.
    fn first(&self, tag: u64) -> usize {
        let mut at = self.home(tag);
        while self.words[at] != 0 && Word(self.words[at]).tag() < tag {
            at += 1;
        }
        at
    }

    fn resize(&mut self, places: usize) {
        let old = std::mem::replace(&mut self.words, vec![0; places + TAIL]);
        self.places = places;
        let mut next = 0;
        for word in old.into_iter().filter(|word| *word != 0) {
            let at = self.home(Word(word).tag()).max(next);
            if at + 1 == self.words.len() {
                self.words.reserve_exact(1);
                self.words.push(0);
            }
            self.words[at] = word;
            next = at + 1;
        }
    }

    fn insert(&mut self, word: u64) {
        if (self.len + 1) * PARTS > self.places * FULL {
            self.resize((self.places + self.places / 8).max(8));
        }
        let at = self.first(Word(word).tag());
        let free = at + self.words[at..].iter().position(|word| *word == 0).expect("the last place is empty");
        if free + 1 == self.words.len() {
            self.words.reserve_exact(1);
            self.words.push(0);
        }
        self.words.copy_within(at..free, at + 1);
        self.words[at] = word;
        self.len += 1;
    }

    fn remove(&mut self, mut at: usize) {
        while self.words[at + 1] != 0 && self.home(Word(self.words[at + 1]).tag()) <= at {
            self.words[at] = self.words[at + 1];
            at += 1;
        }
        self.words[at] = 0;
        self.len -= 1;
        if self.len * PARTS < self.places * SPARSE {
            self.resize(self.places / 2);
        }
    }

    fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }
}

/// See the head of this file.
pub(super) struct Index {
    tables: Vec<Table>,
    /// Of all tables.
    bytes: usize,
}

impl Index {
    /// For so many words, about.
    pub(super) fn new(words: usize) -> Self {
        let tables = vec![Table::default(); words.div_ceil(TABLE_WORDS).max(1)];
        let bytes = tables.len() * size_of::<Table>();
        Index { tables, bytes }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    fn table(&self, hash: u64) -> usize {
        ((hash >> 32) as usize * self.tables.len()) >> 32
    }

    fn tag(hash: u64) -> u64 {
        hash & ((1 << TAG_BITS) - 1)
    }

    /// The first word with the tag of a hash that `is_it` says yes to.
    pub(super) fn find(&self, hash: u64, mut is_it: impl FnMut(Word) -> bool) -> Option<(Slot, Word)> {
        let (table, tag) = (self.table(hash), Self::tag(hash));
        let Table { words, places, .. } = &self.tables[table];
        if *places == 0 {
            return None;
        }
        let first = self.tables[table].first(tag);
        let same = words[first..].iter().map(|word| Word(*word)).take_while(|word| word.0 != 0 && word.tag() == tag);
        same.enumerate().find(|(_, word)| is_it(*word)).map(|(at, word)| (Slot { table, at: first + at }, word))
    }

    /// Has the place of a hash brought nearer to the processor.
    pub(super) fn prefetch(&self, hash: u64) {
        let table = &self.tables[self.table(hash)];
        if let Some(first) = table.words.get(table.home(Self::tag(hash))) {
            index::prefetch_bytes(std::ptr::from_ref(first).cast(), size_of::<u64>());
        }
    }

    pub(super) fn insert(&mut self, hash: u64, word: Word) {
        let table = self.table(hash);
        self.change(table, |table| table.insert(Self::tag(hash) << TAG_SHIFT | word.0));
    }

    /// Puts another word in the place of one.
    pub(super) fn set(&mut self, slot: Slot, word: Word) {
        let place = &mut self.tables[slot.table].words[slot.at];
        *place = *place >> TAG_SHIFT << TAG_SHIFT | (word.0 & ((1 << TAG_SHIFT) - 1));
    }

    /// Counts a use.
    pub(super) fn touch(&mut self, slot: Slot, word: Word) {
        if word.uses() < USES_MAX {
            self.tables[slot.table].words[slot.at] += 1 << USES_SHIFT;
        }
    }

    pub(super) fn remove(&mut self, slot: Slot) {
        self.change(slot.table, |table| table.remove(slot.at));
    }

    fn change(&mut self, table: usize, change: impl FnOnce(&mut Table)) {
        let table = &mut self.tables[table];
        let before = table.bytes();
        change(table);
        self.bytes = self.bytes - before + table.bytes();
    }
}

const _: () = assert!(TABLE_WORDS * 64 < 1 << TAG_BITS, "tags tell the words of a table from each other");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn words_are_found_until_they_are_removed(steps in prop::collection::vec((0u64..300, 0u8..3), 1..2000)) {
            let mut index = Index::new(1);
            let mut model: BTreeMap<u64, u64> = BTreeMap::new();
            for (at, (key, step)) in steps.into_iter().enumerate() {
                // Few tags, at both ends of what there is.
                let hash = if key % 2 == 0 { key / 8 } else { (1 << TAG_BITS) - 1 - key / 8 };
                let place = at as u64 + 1;
                let known = model.get(&key).copied();
                let found = index.find(hash, |word| Some(word.place()) == known);
                prop_assert_eq!(found.map(|(_, word)| word.place()), known);
                match (found, step) {
                    (Some((slot, _)), 0) => {
                        index.remove(slot);
                        model.remove(&key);
                    }
                    (Some((slot, word)), _) => {
                        index.set(slot, Word::new(place, word.is_block(), word.uses()));
                        index.touch(slot, word);
                        model.insert(key, place);
                    }
                    (None, _) => {
                        index.insert(hash, Word::new(place, step == 1, 0));
                        model.insert(key, place);
                    }
                }
            }
            let bytes: usize = index.tables.iter().map(Table::bytes).sum();
            prop_assert_eq!(index.bytes(), bytes + size_of::<Table>());
            prop_assert_eq!(index.tables[0].len, model.len());
        }
    }
}
