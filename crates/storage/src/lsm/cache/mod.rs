//! The read cache: single rows, and whole blocks.
//!
//! Both share one budget. A row that was read by its key is cached alone: it takes a fortieth of its block and is found without a
//! search of the runs, and most of the time nobody wants its neighbours. A block is cached if it was scanned, or if a second row of it is read
//! soon. The cache holds what the *runs* say of a key: the memtables are searched before it, and a write removes the row of its
//! key.
//!
//! ```text
//! first time ──► young, 1/32 of the budget ──► thrown out, remembered as a ghost
//!                  │ used meanwhile                         │ asked for again
//!                  ▼                                        ▼
//!                kept ◄──────────────────────────────────────
//!                  └─► at its end: used since? once more from the beginning, otherwise thrown out
//! ```
//!
//! Both queues are segments of 64 KiB in which records lie one behind the other, so a row costs its bytes and a word of the [`index`], and nothing
//! is given back to the system piece by piece. The oldest segment goes as a whole; what stays is copied from it. A use only counts up in the word.
//! After S3-FIFO (SOSP 2023): most keys of skewed loads come once, and leave before they have cost others their places.

mod ghosts;
mod index;
mod record;

use super::block::Block;
use super::filter::key_hash;
use ghosts::Ghosts;
use index::{Index, Slot, Word};
use record::{HEAD_BYTES_MAX, Record};
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

/// What a row is taken to weigh when the tables are made.
const USUAL_BYTES: usize = 128;
/// A row larger than one part in this many of the budget is not cached.
const ROW_PART_MIN: usize = 64;
/// Nor is a block.
const BLOCK_PART_MIN: usize = 4;
/// One part in this many of the budget is for rows and blocks that were read once.
const YOUNG_PART: usize = 32;
/// Bytes of a record that are asked for ahead.
const PREFETCHED_BYTES: usize = 192;
/// When segments of so many bytes were looked through to make room at once, nothing stays of the next ones, however often it was used: it would
/// take milliseconds.
const LOOKED_THROUGH_BYTES_MAX: usize = 1 << 20;
/// A place is the number of a segment and an offset in it; a record that is longer than a segment has one of its own.
const OFFSET_BITS: u32 = 16;
const SEGMENT_BYTES_MAX: usize = 1 << OFFSET_BITS;
const SEGMENT_BYTES_MIN: usize = 512;
/// The budget of a small cache is so many of them.
const SEGMENTS: usize = 128;

/// A row with what keeps it in memory: its segment, which stays for as long, or a copy if that is still written.
#[derive(Clone)]
pub(crate) struct CachedRow {
    bytes: Rc<Vec<u8>>,
    begin: u32,
    end: u32,
}

impl CachedRow {
    pub(crate) fn row(&self) -> &[u8] {
        &self.bytes[self.begin as usize..self.end as usize]
    }
}

/// Records one behind the other.
#[derive(Default)]
struct Segment {
    bytes: Rc<Vec<u8>>,
    /// Of the blocks that its records stand for.
    block_bytes: usize,
}

impl Segment {
    fn weight(&self) -> usize {
        self.bytes.capacity() + self.block_bytes
    }
}

/// Segments by their numbers, the oldest first. The last one is written.
#[derive(Default)]
struct Queue {
    segments: VecDeque<u32>,
    bytes: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Age {
    Young,
    Kept,
}

/// What a record is of: a tree whose row it is, or a run whose block it is.
#[derive(Clone, Copy)]
struct Owner(u64);

impl Owner {
    fn tree(tree_id: u64) -> Self {
        Owner(tree_id << 1)
    }

    fn run(run_id: u64) -> Self {
        Owner(run_id << 1 | 1)
    }

    fn is_run(self) -> bool {
        self.0 & 1 == 1
    }

    /// The hash of a key of this owner.
    fn mix(self, hash: u64) -> u64 {
        let mixed = u128::from(hash ^ self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        (mixed >> 64) as u64 ^ mixed as u64
    }
}

fn place(segment: u32, offset: usize) -> u64 {
    u64::from(segment) << OFFSET_BITS | offset as u64
}

fn parts_of(place: u64) -> (usize, usize) {
    ((place >> OFFSET_BITS) as usize, place as usize & (SEGMENT_BYTES_MAX - 1))
}

/// See the head of this file.
pub(crate) struct Cache {
    index: Index,
    /// By number, from 1 on; those that are free are empty.
    segments: Vec<Segment>,
    free_segments: Vec<u32>,
    young: Queue,
    kept: Queue,
    ghosts: Ghosts,
    /// By the number that is the value of a block's record.
    blocks: Vec<Option<Rc<Block>>>,
    free_blocks: Vec<u32>,
    segment_bytes: usize,
    bytes_max: usize,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) row_hits: u64,
}

impl Cache {
    /// At most so many bytes, with all that it takes to find them.
    pub(crate) fn new(bytes_max: usize) -> Self {
        let usual = bytes_max / USUAL_BYTES;
        Cache {
            index: Index::new(usual),
            segments: vec![Segment::default()],
            free_segments: Vec::new(),
            young: Queue::default(),
            kept: Queue::default(),
            // More of them would let in what has not come for long.
            ghosts: Ghosts::new(usual / 2),
            blocks: Vec::new(),
            free_blocks: Vec::new(),
            segment_bytes: (bytes_max / SEGMENTS).clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX),
            bytes_max,
            hits: 0,
            misses: 0,
            row_hits: 0,
        }
    }

    /// Changes the bound. What is in the cache is dropped: this is a rare act of an administrator.
    pub(crate) fn set_bytes_max(&mut self, bytes_max: usize) {
        let (hits, misses, row_hits) = (self.hits, self.misses, self.row_hits);
        *self = Cache { hits, misses, row_hits, ..Cache::new(bytes_max) };
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        let lists = self.segments.capacity() * size_of::<Segment>() + self.blocks.capacity() * size_of::<Rc<Block>>();
        self.young.bytes + self.kept.bytes + self.index.bytes() + self.ghosts.bytes() + lists
    }

    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    pub(crate) fn block(&mut self, run_id: u64, block: usize) -> Option<Rc<Block>> {
        let key = (block as u64).to_le_bytes();
        let Some((slot, word, record)) = self.find(Owner::run(run_id), key_hash(&key), &key) else {
            self.misses += 1;
            return None;
        };
        self.hits += 1;
        self.index.touch(slot, word);
        let number = self.block_number(word, &record.value);
        self.blocks[number].clone()
    }

    pub(crate) fn put_block(&mut self, run_id: u64, block: usize, content: &Rc<Block>) {
        if content.size() > self.bytes_max / BLOCK_PART_MIN {
            return;
        }
        let number = self.free_blocks.pop().unwrap_or(self.blocks.len() as u32);
        if number as usize == self.blocks.len() {
            self.blocks.push(None);
        }
        self.blocks[number as usize] = Some(Rc::clone(content));
        let key = (block as u64).to_le_bytes();
        self.put(Owner::run(run_id), key_hash(&key), &key, &number.to_le_bytes(), content.size());
    }

    /// The row that the runs of a tree have for a key whose hash is known.
    pub(crate) fn row(&mut self, tree_id: u64, hash: u64, key: &[u8]) -> Option<CachedRow> {
        let (slot, word, record) = self.find(Owner::tree(tree_id), hash, key)?;
        self.index.touch(slot, word);
        self.row_hits += 1;
        let (segment, _) = parts_of(word.place());
        let is_written = [&self.young, &self.kept].iter().any(|queue| queue.segments.back() == Some(&(segment as u32)));
        let bytes = &self.segments[segment].bytes;
        if is_written {
            let copy = bytes[record.value].to_vec();
            return Some(CachedRow { begin: 0, end: copy.len() as u32, bytes: Rc::new(copy) });
        }
        Some(CachedRow { begin: record.value.start as u32, end: record.value.end as u32, bytes: Rc::clone(bytes) })
    }

    /// Brings nearer to the processor what tells where a row is.
    pub(crate) fn prefetch_place(&self, tree_id: u64, hash: u64) {
        self.index.prefetch(Owner::tree(tree_id).mix(hash));
    }

    /// Brings a row nearer to the processor. False: it is not in the cache.
    pub(crate) fn prefetch_row(&self, tree_id: u64, hash: u64) -> bool {
        let Some((_, word)) = self.index.find(Owner::tree(tree_id).mix(hash), |word| !word.is_block()) else {
            return false;
        };
        let (segment, offset) = parts_of(word.place());
        let bytes = &self.segments[segment].bytes[offset..];
        ::index::prefetch_bytes(bytes.as_ptr(), bytes.len().min(PREFETCHED_BYTES));
        true
    }

    pub(crate) fn put_row(&mut self, tree_id: u64, hash: u64, key: &[u8], row: &[u8]) {
        if row.len() <= self.bytes_max / ROW_PART_MIN {
            self.put(Owner::tree(tree_id), hash, key, row, 0);
        }
    }

    /// A row is written: what the runs say of it is not true any more.
    pub(crate) fn remove_row(&mut self, tree_id: u64, hash: u64) {
        // Another row of the same tag goes with it, which costs little.
        let hash = Owner::tree(tree_id).mix(hash);
        while let Some((slot, _)) = self.index.find(hash, |word| !word.is_block()) {
            self.index.remove(slot);
        }
    }

    fn find(&self, owner: Owner, hash: u64, key: &[u8]) -> Option<(Slot, Word, Record)> {
        let mut found = None;
        let (slot, word) = self.index.find(owner.mix(hash), |word| {
            let (segment, offset) = parts_of(word.place());
            let bytes = &self.segments[segment].bytes;
            let record = Record::read(bytes, offset);
            let is_it = record.owner == owner.0 && bytes[record.key.clone()] == *key;
            found = Some(record);
            is_it
        })?;
        found.map(|record| (slot, word, record))
    }

    fn put(&mut self, owner: Owner, hash: u64, key: &[u8], value: &[u8], block_bytes: usize) {
        let mixed = owner.mix(hash);
        let mut age = if self.ghosts.take(mixed) { Age::Kept } else { Age::Young };
        if let Some((slot, word, record)) = self.find(owner, hash, key) {
            // Its bytes go with their segment.
            if word.is_block() {
                self.free_block(self.block_number(word, &record.value));
            }
            self.index.remove(slot);
            age = Age::Kept;
        }
        let place = self.append(age, owner, key, value, block_bytes);
        self.index.insert(mixed, Word::new(place, owner.is_run(), 0));
        self.make_room();
    }

    /// Writes a record into the newest segment of a queue. Where it lies.
    fn append(&mut self, age: Age, owner: Owner, key: &[u8], value: &[u8], block_bytes: usize) -> u64 {
        let wanted = HEAD_BYTES_MAX + key.len() + value.len();
        let queue = match age {
            Age::Young => &mut self.young,
            Age::Kept => &mut self.kept,
        };
        let newest = queue.segments.back().copied().filter(|number| {
            let segment = &self.segments[*number as usize];
            let weight = segment.bytes.len() + segment.block_bytes;
            weight == 0 || weight + wanted + block_bytes <= self.segment_bytes
        });
        let number = newest.unwrap_or_else(|| {
            if let Some(full) = queue.segments.back() {
                let full = &mut self.segments[*full as usize];
                queue.bytes -= full.weight();
                written(&mut full.bytes).shrink_to_fit();
                queue.bytes += full.weight();
            }
            let number = self.free_segments.pop().unwrap_or(self.segments.len() as u32);
            if number as usize == self.segments.len() {
                self.segments.push(Segment::default());
            }
            queue.segments.push_back(number);
            number
        });
        let segment = &mut self.segments[number as usize];
        queue.bytes -= segment.weight();
        let bytes = written(&mut segment.bytes);
        let offset = bytes.len();
        if offset == 0 && block_bytes == 0 {
            bytes.reserve_exact(self.segment_bytes.max(wanted));
        }
        record::write(bytes, owner.0, key, value);
        segment.block_bytes += block_bytes;
        queue.bytes += segment.weight();
        place(number, offset)
    }

    /// Throws out until all is within the bound.
    fn make_room(&mut self) {
        // What stays of a segment is copied before the segment goes.
        let limit = self.bytes_max.saturating_sub(self.segment_bytes);
        let mut looked_through = 0;
        while self.bytes() > limit {
            let is_young_first = self.young.bytes > limit / YOUNG_PART || self.kept.segments.is_empty();
            let age = if is_young_first { Age::Young } else { Age::Kept };
            let queue = if is_young_first { &mut self.young } else { &mut self.kept };
            let Some(number) = queue.segments.pop_front() else { return };
            let segment = std::mem::take(&mut self.segments[number as usize]);
            queue.bytes -= segment.weight();
            self.empty(age, number, &segment.bytes, looked_through < LOOKED_THROUGH_BYTES_MAX);
            self.free_segments.push(number);
            looked_through += segment.weight();
        }
    }

    /// Copies what stays of a segment that goes.
    fn empty(&mut self, age: Age, number: u32, bytes: &[u8], may_stay: bool) {
        let mut offset = 0;
        while offset < bytes.len() {
            let Record { owner, key, value } = Record::read(bytes, offset);
            let (owner, key, at) = (Owner(owner), &bytes[key], place(number, offset));
            offset = value.end;
            let hash = owner.mix(key_hash(key));
            // Not there: it was written, or has another place by now.
            let Some((slot, word)) = self.index.find(hash, |word| word.place() == at) else { continue };
            if word.uses() == 0 || !may_stay {
                self.index.remove(slot);
                if owner.is_run() {
                    self.free_block(number_in(&bytes[value]));
                }
                if age == Age::Young {
                    self.ghosts.add(hash);
                }
                continue;
            }
            let block = if owner.is_run() { self.blocks[number_in(&bytes[value.clone()])].as_ref() } else { None };
            let block_bytes = block.map_or(0, |block| block.size());
            let place = self.append(Age::Kept, owner, key, &bytes[value], block_bytes);
            let uses = if age == Age::Young { 0 } else { word.uses() / 2 };
            self.index.set(slot, Word::new(place, owner.is_run(), uses));
        }
    }

    fn block_number(&self, word: Word, value: &Range<usize>) -> usize {
        number_in(&self.segments[parts_of(word.place()).0].bytes[value.clone()])
    }

    fn free_block(&mut self, number: usize) {
        self.blocks[number] = None;
        self.free_blocks.push(number as u32);
    }
}

fn written(bytes: &mut Rc<Vec<u8>>) -> &mut Vec<u8> {
    Rc::get_mut(bytes).expect("rows of a segment that is written are copied from it")
}

/// The number of a block, which is the value of its record.
fn number_in(value: &[u8]) -> usize {
    u32::from_le_bytes(value.try_into().expect("four bytes were written")) as usize
}

#[cfg(test)]
mod tests;
