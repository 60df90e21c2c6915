//! What was read from disk and may be wanted again: rows that were asked for, and blocks of which several were.
//!
//! Both share one budget. A row that was looked for by its key gets a place of its own: it takes a fortieth of its block and is found
//! without looking through the runs, while its neighbours are, most of the time, wanted by nobody. A block is kept if it was scanned, or if another
//! of its rows is asked for soon. The cache holds what the *runs* say of a key; what is in the memory levels is looked at before, and a
//! write takes the row of its key out.

use super::block::Block;
use quick_cache::{OptionsBuilder, Weighter, unsync};
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

/// Bytes that a cached thing costs beside its content.
const ENTRY_BYTES: u64 = 96;
/// What a cached thing is taken to weigh when the tables are made.
const USUAL_BYTES: u64 = 256;
/// A row that takes more than one part of so many of the budget is not kept.
const ROW_PART_MIN: usize = 64;
/// Bytes of a row that are asked for ahead.
const PREFETCHED_BYTES_MAX: usize = 256;

/// Names a block or a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct CacheKey {
    /// Run of a block; tree of a row, with the highest bit set.
    owner: u64,
    /// Number of a block; hash of a row's key.
    item: u64,
}

impl CacheKey {
    fn block(run_id: u64, block: usize) -> Self {
        CacheKey { owner: run_id, item: block as u64 }
    }

    fn row(tree_id: u64, hash: u64) -> Self {
        CacheKey { owner: tree_id | 1 << 63, item: hash }
    }
}

#[derive(Clone)]
enum Cached {
    Block(Rc<Block>),
    /// Key and row, one behind the other.
    Row(CachedRow),
}

/// A row with its key.
#[derive(Clone)]
pub(crate) struct CachedRow {
    bytes: Rc<[u8]>,
    key_length: usize,
}

impl CachedRow {
    pub(crate) fn row(&self) -> &[u8] {
        &self.bytes[self.key_length..]
    }
}

#[derive(Clone)]
struct Weight;

impl Weighter<CacheKey, Cached> for Weight {
    fn weight(&self, _key: &CacheKey, value: &Cached) -> u64 {
        ENTRY_BYTES
            + match value {
                Cached::Block(block) => block.size() as u64,
                Cached::Row(row) => row.bytes.len() as u64,
            }
    }
}

/// The same in every run, so that a simulated one can be repeated. Keys are numbers of ours and hashes.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, value: u64) {
        let mixed = u128::from(self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        self.0 = (mixed >> 64) as u64 ^ mixed as u64;
    }
}

/// See the head of this file.
pub(crate) struct Cache {
    entries: unsync::Cache<CacheKey, Cached, Weight, BuildHasherDefault<KeyHasher>>,
    bytes_max: usize,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) row_hits: u64,
    scratch: Vec<u8>,
}

impl Cache {
    /// At most so many bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Cache { entries: Self::make(bytes_max), bytes_max, hits: 0, misses: 0, row_hits: 0, scratch: Vec::new() }
    }

    fn make(bytes_max: usize) -> unsync::Cache<CacheKey, Cached, Weight, BuildHasherDefault<KeyHasher>> {
        let options = OptionsBuilder::new()
            .estimated_items_capacity((bytes_max as u64 / USUAL_BYTES).max(16) as usize)
            .weight_capacity(bytes_max as u64)
            .build()
            .expect("both capacities are given");
        unsync::Cache::with_options(options, Weight, BuildHasherDefault::default(), Default::default())
    }

    /// Changes the bound. What is in the cache is dropped: this is a rare act of an administrator.
    pub(crate) fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
        self.entries = Self::make(bytes_max);
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.weight() as usize
    }

    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    pub(crate) fn block(&mut self, run_id: u64, block: usize) -> Option<Rc<Block>> {
        match self.entries.get(&CacheKey::block(run_id, block)) {
            Some(Cached::Block(found)) => {
                self.hits += 1;
                Some(Rc::clone(found))
            }
            _ => {
                self.misses += 1;
                None
            }
        }
    }

    pub(crate) fn put_block(&mut self, run_id: u64, block: usize, content: &Rc<Block>) {
        if self.bytes_max > 0 {
            self.entries.insert(CacheKey::block(run_id, block), Cached::Block(Rc::clone(content)));
        }
    }

    /// The row that the runs of a tree have for a key whose hash is known.
    pub(crate) fn row(&mut self, tree_id: u64, hash: u64, key: &[u8]) -> Option<CachedRow> {
        match self.entries.get(&CacheKey::row(tree_id, hash)) {
            Some(Cached::Row(row)) if &row.bytes[..row.key_length] == key => {
                self.row_hits += 1;
                Some(row.clone())
            }
            _ => None,
        }
    }

    /// Brings a row nearer to the processor. False: it is not in the cache.
    pub(crate) fn prefetch_row(&self, tree_id: u64, hash: u64) -> bool {
        match self.entries.peek(&CacheKey::row(tree_id, hash)) {
            Some(Cached::Row(row)) => {
                index::prefetch_bytes(row.bytes.as_ptr(), row.bytes.len().min(PREFETCHED_BYTES_MAX));
                true
            }
            _ => false,
        }
    }

    pub(crate) fn put_row(&mut self, tree_id: u64, hash: u64, key: &[u8], row: &[u8]) {
        if row.len() <= self.bytes_max / ROW_PART_MIN {
            self.scratch.clear();
            self.scratch.extend_from_slice(key);
            self.scratch.extend_from_slice(row);
            let bytes = Rc::from(self.scratch.as_slice());
            let row = CachedRow { bytes, key_length: key.len() };
            self.entries.insert(CacheKey::row(tree_id, hash), Cached::Row(row));
        }
    }

    /// A row is written: what the runs say of it is not true any more.
    pub(crate) fn remove_row(&mut self, tree_id: u64, hash: u64) {
        self.entries.remove(&CacheKey::row(tree_id, hash));
    }
}
