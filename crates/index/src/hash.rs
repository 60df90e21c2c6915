//! A hash index that never rehashes as a whole: extendible hashing over small swiss tables.
//!
//! The idea. 32 bits of the hash are read as a fraction in `[0, 1)`; a directory divides that line into ranges, each with
//! a table of at most a few thousand items. A full table is split into two halves of its range, so the longest pause of an
//! insert is the moving of one small table, whatever the total (a plain table of 10 million items stops for hundreds of
//! milliseconds when it doubles).
//!
//! Iteration goes along the line. A split only refines ranges, so an iterator that remembers how far along the line
//! it is neither misses nor repeats an item that was there all the time.
//!
//! Read views clone the directory; a table that a view shares is copied when it is next changed.
//!
//! Source: R. Fagin et al., "Extendible hashing" (1979).

use hashbrown::HashTable;
use std::sync::Arc;

/// Items in one table before it is split: 7/8 of 4096 buckets.
const TABLE_ITEMS_MAX: usize = 3584;
/// Directory size limit: 2^22 tables hold more items than memory.
const DEPTH_MAX: u32 = 22;
/// Tags that a look-up compares in one step.
const TAGS_AT_ONCE: usize = 16;

#[derive(Clone, Copy)]
struct Record {
    hash: u64,
    item: u64,
}

struct Table {
    /// This table owns the range of the line whose first `depth` bits are `prefix`.
    depth: u32,
    prefix: u32,
    records: HashTable<Record>,
    /// Where the tags of the records begin, as `hashbrown` lays a table out: a byte for each bucket, behind the records, which stand in reverse. It is prefetched
    /// and nothing else, so that a wrong one costs a look-up its haste. 0 while there is no record.
    tags: usize,
}

impl Table {
    /// Where tags begin if a record is in a bucket of this number.
    fn tags_by(record: &Record, bucket: usize) -> usize {
        std::ptr::from_ref(record) as usize + (bucket + 1) * size_of::<Record>()
    }

    fn find_tags(&mut self) {
        let bucket = self.records.iter_buckets().next();
        let place = bucket.and_then(|bucket| Some((self.records.get_bucket(bucket)?, bucket)));
        self.tags = place.map_or(0, |(record, bucket)| Self::tags_by(record, bucket));
    }
}

impl Clone for Table {
    fn clone(&self) -> Self {
        let mut table = Table { depth: self.depth, prefix: self.prefix, records: self.records.clone(), tags: 0 };
        table.find_tags();
        table
    }
}

/// Where a hash lies on the line. Bits 16..48, apart from those that the swiss table uses for buckets and tags.
fn place(hash: u64) -> u32 {
    (hash >> 16) as u32
}

/// The hash index. See the head of this file.
pub struct Hash {
    tables: Vec<Arc<Table>>,
    /// For each range of the finest division the number of its table; several ranges may share one.
    slots: Arc<Vec<u32>>,
    depth: u32,
    len: usize,
}

/// A frozen picture of a [`Hash`]; may be read by another thread and simply dropped.
pub struct HashView {
    tables: Vec<Arc<Table>>,
    slots: Arc<Vec<u32>>,
    depth: u32,
    len: usize,
}

/// How far an iteration has come along the line; survives changes of the index between steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HashCursor {
    /// 2^32 means the end.
    next: u64,
}

impl HashCursor {
    /// True if an item of this hash, if there is one, was handed over before the cursor came here.
    pub fn has_passed(&self, hash: u64) -> bool {
        u64::from(place(hash)) < self.next
    }
}

fn slot_of(depth: u32, place: u32) -> usize {
    if depth == 0 { 0 } else { (place >> (32 - depth)) as usize }
}

/// Gives the items of the table at the cursor and moves behind it; false at the end.
fn next_batch(
    tables: &[Arc<Table>],
    slots: &[u32],
    depth: u32,
    cursor: &mut HashCursor,
    mut take: impl FnMut(u64),
) -> bool {
    if cursor.next >> 32 != 0 {
        return false;
    }
    let from = cursor.next as u32;
    let table = &tables[slots[slot_of(depth, from)] as usize];
    for record in table.records.iter() {
        // After a split before the cursor's position was used, a table may begin before the cursor: skip what was seen.
        if place(record.hash) >= from {
            take(record.item);
        }
    }
    cursor.next = if table.depth == 0 { 1 << 32 } else { (u64::from(table.prefix) + 1) << (32 - table.depth) };
    true
}

impl HashView {
    /// Number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there is no item.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Hands over the next few thousand items, in no particular order; false at the end.
    pub fn next_batch(&self, cursor: &mut HashCursor, take: impl FnMut(u64)) -> bool {
        next_batch(&self.tables, &self.slots, self.depth, cursor, take)
    }
}

impl Default for Hash {
    fn default() -> Self {
        Self::new()
    }
}

impl Hash {
    /// An empty index.
    pub fn new() -> Self {
        let table = Arc::new(Table { depth: 0, prefix: 0, records: HashTable::new(), tags: 0 });
        Hash { tables: vec![table], slots: Arc::new(vec![0]), depth: 0, len: 0 }
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if there is no item.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes held, about.
    pub fn bytes(&self) -> usize {
        // A split leaves tables half full, so the mean load is about 0.7.
        self.tables.len() * size_of::<Table>() + self.slots.len() * 4 + self.len * (size_of::<Record>() + 1) * 10 / 7
    }

    /// Finds an item by its hash and an equality test.
    pub fn get(&self, hash: u64, mut is_equal: impl FnMut(u64) -> bool) -> Option<u64> {
        let table = &self.tables[self.table_of(hash)];
        table.records.find(hash, |record| record.hash == hash && is_equal(record.item)).map(|record| record.item)
    }

    /// Asks the processor for what a look-up of a hash reads first.
    #[inline]
    pub fn prefetch_tags(&self, hash: u64) {
        let table = &self.tables[self.table_of(hash)];
        let bucket = hash as usize & (table.records.num_buckets().wrapping_sub(1));
        let first = table.tags.wrapping_add(bucket);
        crate::prefetch_bytes(first as *const u8, 1);
        crate::prefetch_bytes(first.wrapping_add(TAGS_AT_ONCE - 1) as *const u8, 1);
    }

    /// Asks it for what comes then, besides the item: to be called a while after `prefetch_tags`, which it waits for.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        let table = &self.tables[self.table_of(hash)];
        for record in table.records.iter_hash(hash) {
            crate::prefetch_bytes(std::ptr::from_ref(record).cast(), 1);
        }
    }

    /// Inserts an item, or puts it in place of the equal one, which is returned.
    pub fn replace(&mut self, hash: u64, item: u64, mut is_equal: impl FnMut(u64) -> bool) -> Option<u64> {
        loop {
            let number = self.table_of(hash);
            let table = Arc::make_mut(&mut self.tables[number]);
            let full = table.records.len() >= TABLE_ITEMS_MAX && table.depth < DEPTH_MAX;
            if let Some(record) = table.records.find_mut(hash, |record| record.hash == hash && is_equal(record.item)) {
                return Some(std::mem::replace(&mut record.item, item));
            }
            if full {
                self.split(number);
                continue;
            }
            let entry = table.records.insert_unique(hash, Record { hash, item }, |record| record.hash);
            table.tags = Table::tags_by(entry.get(), entry.bucket_index());
            self.len += 1;
            return None;
        }
    }

    /// Removes an item.
    pub fn remove(&mut self, hash: u64, mut is_equal: impl FnMut(u64) -> bool) -> Option<u64> {
        let number = self.table_of(hash);
        self.tables[number].records.find(hash, |record| record.hash == hash && is_equal(record.item))?;
        let table = Arc::make_mut(&mut self.tables[number]);
        let entry = table.records.find_entry(hash, |record| record.hash == hash && is_equal(record.item)).ok()?;
        let (record, _) = entry.remove();
        self.len -= 1;
        Some(record.item)
    }

    /// Hands over the next few thousand items, in no particular order; false at the end.
    pub fn next_batch(&self, cursor: &mut HashCursor, take: impl FnMut(u64)) -> bool {
        next_batch(&self.tables, &self.slots, self.depth, cursor, take)
    }

    /// Hands over `count` items and more, from a place on the line on, in its order. Returns the place behind the last one, 0 at its end. What stays in the
    /// index while somebody goes along the line so is handed over once, whatever comes and goes meanwhile.
    pub fn next_some(&self, from: u64, count: usize, mut take: impl FnMut(u64)) -> u64 {
        let Ok(from) = u32::try_from(from) else { return 0 };
        let table = &self.tables[self.slots[slot_of(self.depth, from)] as usize];
        let mut found: Vec<(u32, u64)> = Vec::new();
        for record in table.records.iter() {
            let place = place(record.hash);
            if place >= from {
                found.push((place, record.item));
            }
        }
        let count = count.max(1);
        let mut end = if table.depth == 0 { 1 << 32 } else { (u64::from(table.prefix) + 1) << (32 - table.depth) };
        if found.len() > count {
            let last = found.select_nth_unstable(count - 1).1.0;
            // Those at one place go together.
            found.retain(|(place, _)| *place <= last);
            end = u64::from(last) + 1;
        }
        found.into_iter().for_each(|(_, item)| take(item));
        if end >> 32 != 0 { 0 } else { end }
    }

    /// A pseudo-random item chosen by `seed`.
    pub fn random(&self, seed: u64) -> Option<u64> {
        if self.len == 0 {
            return None;
        }
        let mut start = (seed as usize) % self.tables.len();
        loop {
            let records = &self.tables[start].records;
            if !records.is_empty() {
                let skip = (seed >> 24) as usize % records.len();
                return records.iter().nth(skip).map(|record| record.item);
            }
            start = (start + 1) % self.tables.len();
        }
    }

    /// Freezes the present state at the price of one pointer per table.
    pub fn open_view(&self) -> HashView {
        HashView { tables: self.tables.clone(), slots: Arc::clone(&self.slots), depth: self.depth, len: self.len }
    }

    /// Empties one table and hands its items over; false when the index is empty. For dropping in slices: after the first
    /// call the index must only be drained.
    pub fn drain_some(&mut self, mut take: impl FnMut(u64)) -> bool {
        let Some(last) = self.tables.pop() else {
            *self = Hash::new();
            return false;
        };
        self.len -= last.records.len();
        for record in last.records.iter() {
            take(record.item);
        }
        true
    }

    fn table_of(&self, hash: u64) -> usize {
        self.slots[slot_of(self.depth, place(hash))] as usize
    }

    fn split(&mut self, number: usize) {
        let old = Arc::clone(&self.tables[number]);
        let slots = Arc::make_mut(&mut self.slots);
        if old.depth == self.depth {
            *slots = slots.iter().flat_map(|&table| [table, table]).collect();
            self.depth += 1;
        }
        let depth = old.depth + 1;
        let mut halves = [0, 1].map(|bit| Table {
            depth,
            prefix: old.prefix << 1 | bit,
            records: HashTable::with_capacity(TABLE_ITEMS_MAX / 2),
            tags: 0,
        });
        for record in old.records.iter() {
            let bit = place(record.hash) >> (32 - depth) & 1;
            halves[bit as usize].records.insert_unique(record.hash, *record, |record| record.hash);
        }
        halves.iter_mut().for_each(Table::find_tags);
        let [left, right] = halves;
        let span = 1usize << (self.depth - depth);
        let first = (right.prefix as usize) << (self.depth - depth);
        slots[first..first + span].fill(self.tables.len() as u32);
        self.tables[number] = Arc::new(left);
        self.tables.push(Arc::new(right));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn mix(key: u64) -> u64 {
        let mut x = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// The address that is asked for ahead is that of the first byte that a look-up reads: a record found by its bucket says where.
    #[test]
    fn tags_are_where_they_are_looked_for() {
        let mut hash = Hash::new();
        for key in 0..20_000 {
            hash.replace(mix(key), key, |item| item == key);
            let _view = (key % 1000 == 0).then(|| hash.open_view());
            if key % 500 == 0 {
                hash.replace(mix(key), key, |item| item == key);
            }
        }
        let view = hash.open_view();
        hash.replace(mix(7), 7, |item| item == 7);
        drop(view);
        let mut near = 0;
        for table in &hash.tables {
            let buckets: Vec<usize> = table.records.iter_buckets().collect();
            assert!(!buckets.is_empty());
            for bucket in buckets {
                let record = table.records.get_bucket(bucket).expect("it was named");
                assert_eq!(Table::tags_by(record, bucket), table.tags);
                let mask = table.records.num_buckets() - 1;
                near += usize::from(bucket.wrapping_sub(record.hash as usize) & mask < TAGS_AT_ONCE);
            }
        }
        assert!(near > hash.len() * 9 / 10, "{near} of {} are where a look-up looks first", hash.len());
    }

    fn all(view: &HashView) -> Vec<u64> {
        let mut items = Vec::new();
        let mut cursor = HashCursor::default();
        while view.next_batch(&mut cursor, |item| items.push(item)) {}
        items.sort_unstable();
        items
    }

    #[test]
    fn hash_and_its_views_agree_with_a_map() {
        let mut hash = Hash::new();
        let mut model = BTreeMap::new();
        let mut views = Vec::new();
        let mut state = 1u64;
        for step in 0..200_000u64 {
            state = mix(state);
            let key = state % 60_000;
            if !state.is_multiple_of(3) {
                assert_eq!(hash.replace(mix(key), key, |item| item == key), model.insert(key, key));
            } else {
                assert_eq!(hash.remove(mix(key), |item| item == key), model.remove(&key));
            }
            if step % 40_000 == 0 {
                views.push((hash.open_view(), model.keys().copied().collect::<Vec<_>>()));
            }
            assert_eq!(hash.len(), model.len());
        }
        for key in 0..60_000 {
            assert_eq!(hash.get(mix(key), |item| item == key), model.get(&key).copied());
        }
        for (view, keys) in views {
            assert_eq!(all(&view), keys);
        }
        while hash.drain_some(|item| assert!(model.remove(&item).is_some())) {}
        assert!(model.is_empty() && hash.is_empty());
        hash.replace(mix(1), 1, |item| item == 1);
        assert_eq!(hash.get(mix(1), |item| item == 1), Some(1));
    }

    #[test]
    fn an_iteration_meets_every_old_item_once_although_the_index_grows() {
        let mut hash = Hash::new();
        for key in 0..10_000u64 {
            hash.replace(mix(key), key, |item| item == key);
        }
        let mut seen = Vec::new();
        let mut cursor = HashCursor::default();
        let mut next = 10_000u64;
        while hash.next_batch(&mut cursor, |item| seen.push(item)) {
            assert!((0..10_000).all(|key| cursor.has_passed(mix(key)) == seen.contains(&key)) || next > 10_000);
            for _ in 0..5_000 {
                hash.replace(mix(next), next, |item| item == next);
                next += 1;
            }
        }
        seen.retain(|&item| item < 10_000);
        seen.sort_unstable();
        assert_eq!(seen, (0..10_000).collect::<Vec<_>>());
    }
}
