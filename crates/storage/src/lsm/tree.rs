//! One index on disk: memtables above, key ranges with their runs below.
//!
//! ```text
//!   active memtable       what is written now
//!   sealed memtables      being dumped, newest first
//!   ranges  [..m) [m..)   each with slices of runs, newest first
//! ```
//!
//! The newest entry of a key says what the key is; an upsert says it together with what lies below it.
//!
//! Invariant: whatever a memtable or slice says of a key is newer than what those behind it say.

use super::entry::{Entry, EntryKind};
use super::filter::key_hash;
use super::index_statistics::Counts;
use super::memtable::{Memtable, MemtableChange, MemtableHold};
use super::merge::Upserter;
use super::reads::{BlockReader, Stop, Use};
use super::retry::MergeFailures;
use super::run::Run;
use super::{block::Block, cache::CachedRow};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use tuple::{FieldType, IndexId, KeyDef, Lsn, SpaceId, msgpack};

/// A stretch of keys and the runs that know something of them.
#[derive(Clone)]
pub(crate) struct Range {
    pub(crate) id: u64,
    /// The first key; the range ends where the next one begins.
    pub(crate) begin: Vec<u8>,
    /// Newest first.
    pub(crate) slices: Vec<Arc<Run>>,
}

/// All ranges of a tree, ascending. The first begins with the empty key.
pub(crate) struct Ranges {
    pub(crate) list: Vec<Rc<Range>>,
}

impl Ranges {
    /// Number of the range that a key lies in.
    pub(crate) fn find(&self, key: &[u8]) -> usize {
        self.list.partition_point(|range| range.begin.as_slice() <= key) - 1
    }

    /// Where a range ends.
    pub(crate) fn end(&self, at: usize) -> Option<&[u8]> {
        self.list.get(at + 1).map(|range| range.begin.as_slice())
    }
}

/// Options of an index, by Tarantool's names.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreeOptions {
    /// Bytes of a block before it is compressed.
    pub page_size: usize,
    /// Bytes of a range; 0 lets the engine choose.
    pub range_size: u64,
    /// Runs of about the same size before they are merged.
    pub run_count_per_level: usize,
    /// How much larger the next level of runs is.
    pub run_size_ratio: f64,
    /// False-positive rate of the Bloom filters.
    pub bloom_fpr: f64,
}

/// A row where it was found.
#[derive(Clone)]
pub(crate) enum RowRef {
    Memtable(Rc<Memtable>, u64),
    Block(Rc<Block>, usize),
    Cached(CachedRow),
    Made(Rc<[u8]>),
}

impl RowRef {
    /// Hands the value to `read`.
    pub(crate) fn with<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            RowRef::Memtable(memtable, place) => memtable.read(*place, |entry, _| read(entry.value)),
            RowRef::Block(block, at) => read(block.entry(*at).value),
            RowRef::Cached(row) => read(row.row()),
            RowRef::Made(bytes) => read(bytes),
        }
    }
}

/// The entry of a key that one memtable has.
pub(crate) enum Found {
    Put(RowRef),
    Delete,
    Upsert(Vec<u8>),
}

/// Merge operands of a key: the values of the upserts that lie above its row, newest first.
#[derive(Default)]
pub(crate) struct MergeOperands {
    operands: Vec<Vec<u8>>,
}

/// An entry of a memtable, for the time after the look at it.
fn found_in(memtable: &Rc<Memtable>, place: u64, entry: Entry<'_>) -> Found {
    match entry.kind {
        EntryKind::Put => Found::Put(RowRef::Memtable(Rc::clone(memtable), place)),
        EntryKind::Delete => Found::Delete,
        EntryKind::Upsert => Found::Upsert(entry.value.to_vec()),
    }
}

/// A tree as it was at a moment.
pub(crate) struct HeldTree {
    pub(crate) memtables: Vec<MemtableHold>,
    pub(crate) ranges: Rc<Ranges>,
}

impl HeldTree {
    /// Bytes of memtables that are no part of the tree any more.
    pub(crate) fn held_bytes(&self) -> usize {
        let gone = self.memtables.iter().map(MemtableHold::memtable).filter(|memtable| memtable.is_discharged());
        gone.map(|memtable| memtable.charged()).sum()
    }
}

impl MergeOperands {
    pub(crate) fn is_empty(&self) -> bool {
        self.operands.is_empty()
    }

    /// Takes in the entry of a memtable. Some: nothing that lies below matters.
    fn take(&mut self, found: Option<Found>) -> Option<Option<RowRef>> {
        match found? {
            Found::Put(row) => Some(Some(row)),
            Found::Delete => Some(None),
            Found::Upsert(operand) => {
                self.push(operand);
                None
            }
        }
    }

    pub(crate) fn push(&mut self, operand: Vec<u8>) {
        self.operands.push(operand);
    }

    /// Applies the operands to the row that lies below them, the oldest first.
    pub(crate) fn apply(self, mut row: Option<RowRef>, upserter: &dyn Upserter) -> Option<RowRef> {
        for operand in self.operands.into_iter().rev() {
            let mut made = Vec::new();
            match &row {
                Some(old) => old.with(|old| upserter.apply(Some(old), &operand, &mut made)),
                None => upserter.apply(None, &operand, &mut made),
            }
            row = Some(RowRef::Made(made.into()));
        }
        row
    }
}

/// A stretch of keys, both ends included, that has no rows: only entries that say so.
struct Barren {
    from: Vec<u8>,
    to: Vec<u8>,
}

/// So many stretches are remembered, the newest ones: one for each statement that is on its way through one.
const BARREN_MAX: usize = 256;

/// See the head of this file.
pub(crate) struct LsmTree {
    pub(crate) id: u64,
    pub(crate) space_id: SpaceId,
    pub(crate) index_id: IndexId,
    /// Position of the transaction that made it; 0 until it is known.
    pub(crate) created_lsn: Cell<Lsn>,
    /// Position up to which everything is in runs.
    pub(crate) dumped_lsn: Cell<Lsn>,
    /// The manifest knows it.
    pub(crate) is_recorded: Cell<bool>,
    /// It was dropped or its rows were truncated; nothing is dumped or merged any more.
    pub(crate) is_dropped: Cell<bool>,
    /// The parts by which entries are ordered: the index's own and those of the primary key that it lacks.
    pub(crate) order: Rc<KeyDef>,
    /// How many of them are the index's own.
    pub(crate) own_parts: u32,
    pub(crate) is_primary: bool,
    pub(crate) is_unique: bool,
    pub(crate) options: Cell<TreeOptions>,
    pub(crate) upserter: RefCell<Arc<dyn Upserter>>,
    active: RefCell<Rc<Memtable>>,
    /// Newest first.
    sealed: RefCell<Vec<Rc<Memtable>>>,
    ranges: RefCell<Rc<Ranges>>,
    /// Passed by statements that look for the first row of a prefix and are tried again behind what they have seen.
    barren: RefCell<Vec<Barren>>,
    hint_at: usize,
    /// A merge of one of its ranges is under way.
    pub(crate) is_compacting: Cell<bool>,
    pub(crate) merge_failures: MergeFailures,
    /// It lacks rows and gives its place to one that is being built: nothing of it may come to the manifest, where it would pass for whole.
    pub(crate) is_incomplete: Cell<bool>,
    /// The part of younger entries that were found to write over older ones or to delete them, a running mean.
    pub(crate) overwritten: Cell<f64>,
    /// Runs with numbers below this are to be merged into one in each range; 0 if that was not requested.
    pub(crate) compact_below: Cell<u64>,
    pub(crate) counts: RefCell<Counts>,
}

/// How many bytes of an ordered key its first parts are.
pub(crate) fn own_prefix(key: &[u8], parts: u32) -> usize {
    tuple::ordered_prefix_length(key, parts).unwrap_or(key.len())
}

/// What a new tree is like.
pub(crate) struct TreeDef {
    pub(crate) space_id: SpaceId,
    pub(crate) index_id: IndexId,
    pub(crate) order: Rc<KeyDef>,
    pub(crate) own_parts: u32,
    pub(crate) is_unique: bool,
    pub(crate) options: TreeOptions,
    pub(crate) upserter: Arc<dyn Upserter>,
}

impl LsmTree {
    pub(crate) fn new(id: u64, def: TreeDef, list: Vec<Rc<Range>>) -> Rc<Self> {
        let TreeDef { space_id, index_id, order, own_parts, is_unique, options, upserter } = def;
        assert!(
            0 < own_parts && own_parts as usize <= order.part_count(),
            "an index is ordered by its own parts first"
        );
        assert!(list.first().is_some_and(|first| first.begin.is_empty()), "the first range begins with the empty key");
        // Keys of one unsigned part all begin with the same byte.
        let first = &order.parts()[0];
        let hint_at = usize::from(first.field_type == FieldType::Unsigned && !first.is_nullable);
        Rc::new(LsmTree {
            id,
            space_id,
            index_id,
            created_lsn: Cell::new(Lsn(0)),
            dumped_lsn: Cell::new(Lsn(0)),
            is_recorded: Cell::new(false),
            is_dropped: Cell::new(false),
            order,
            own_parts,
            is_primary: index_id == 0,
            is_unique,
            options: Cell::new(options),
            upserter: RefCell::new(upserter),
            active: RefCell::new(Memtable::new(hint_at)),
            sealed: RefCell::default(),
            ranges: RefCell::new(Rc::new(Ranges { list })),
            barren: RefCell::default(),
            hint_at,
            is_compacting: Cell::new(false),
            merge_failures: MergeFailures::default(),
            is_incomplete: Cell::new(false),
            overwritten: Cell::new(0.0),
            compact_below: Cell::new(0),
            counts: RefCell::default(),
        })
    }

    /// Everything up to a position is in runs. The position only grows.
    pub(crate) fn set_dumped(&self, lsn: Lsn) {
        assert!(self.dumped_lsn.get() <= lsn, "what is in runs stays in runs");
        self.dumped_lsn.set(lsn);
    }

    /// False if nothing of it may come to the manifest any more, or yet.
    pub(crate) fn is_to_record(&self) -> bool {
        !self.is_dropped.get() && !self.is_incomplete.get()
    }

    pub(crate) fn active(&self) -> Rc<Memtable> {
        Rc::clone(&self.active.borrow())
    }

    pub(crate) fn ranges(&self) -> Rc<Ranges> {
        Rc::clone(&self.ranges.borrow())
    }

    pub(crate) fn set_ranges(&self, list: Vec<Rc<Range>>) {
        assert!(list.first().is_some_and(|first| first.begin.is_empty()), "the first range begins with the empty key");
        assert!(list.is_sorted_by(|a, b| a.begin < b.begin), "ranges lie behind one another");
        debug_assert!(
            list.iter().enumerate().all(|(at, range)| {
                let end = list.get(at + 1).map(|next| next.begin.as_slice());
                let is_here =
                    |run: &Run| run.max_key() >= range.begin.as_slice() && end.is_none_or(|end| run.min_key() < end);
                range.slices.iter().all(|run| is_here(run))
            }),
            "a range has only runs that reach into it"
        );
        self.barren.borrow_mut().clear();
        *self.ranges.borrow_mut() = Rc::new(Ranges { list });
    }

    /// A memtable for entries of this tree that is none of its own.
    pub(crate) fn new_memtable(&self) -> Rc<Memtable> {
        Memtable::new(self.hint_at)
    }

    /// All memtables, newest first.
    pub(crate) fn memtables(&self) -> Vec<Rc<Memtable>> {
        let mut memtables = vec![self.active()];
        memtables.extend(self.sealed.borrow().iter().cloned());
        memtables
    }

    pub(crate) fn sealed(&self) -> Vec<Rc<Memtable>> {
        self.sealed.borrow().clone()
    }

    /// Begins a new active memtable. Returns the one that was, unless nothing was ever put into it: changes that were rolled back take memory, too.
    pub(crate) fn seal(&self) -> Option<Rc<Memtable>> {
        if self.active.borrow().charged() == 0 {
            return None;
        }
        let memtable = self.active.replace(Memtable::new(self.hint_at));
        self.sealed.borrow_mut().insert(0, Rc::clone(&memtable));
        Some(memtable)
    }

    /// A sealed memtable is in a run, or not wanted any more.
    pub(crate) fn remove_sealed(&self, memtable: &Rc<Memtable>) {
        debug_assert!(
            self.sealed.borrow().last().is_some_and(|oldest| Rc::ptr_eq(oldest, memtable)),
            "memtables become runs in the order in which they were sealed"
        );
        self.sealed.borrow_mut().retain(|other| !Rc::ptr_eq(other, memtable));
    }

    /// How many bytes of a key the filters know: the index's own parts.
    pub(crate) fn filter_prefix(&self, key: &[u8]) -> usize {
        if self.is_primary { key.len() } else { own_prefix(key, self.own_parts) }
    }

    /// True if one of the index's own parts is nil: many rows may have such a key.
    pub(crate) fn has_nil(&self, own: &[u8]) -> bool {
        (0..self.own_parts).any(|part| own.get(own_prefix(own, part)) == Some(&tuple::ORDERED_NIL))
    }

    /// Key of a row, in `out`.
    pub(crate) fn key_of(&self, row: &[u8], out: &mut Vec<u8>) {
        out.clear();
        self.order.ordered_of_row(row, out);
    }

    /// Where to begin to look for the first row of a prefix: nothing before that has a row.
    pub(crate) fn first_place(&self, prefix: &[u8]) -> Vec<u8> {
        let barren = self.barren.borrow();
        match barren.iter().find(|barren| barren.from == prefix) {
            Some(barren) => [&barren.to[..], &[0]].concat(),
            None => prefix.to_vec(),
        }
    }

    /// No key from a prefix up to `to` has a row, as long as none is written there. None: nobody asks any more.
    pub(crate) fn set_barren(&self, prefix: &[u8], to: Option<&[u8]>) {
        let mut barren = self.barren.borrow_mut();
        barren.retain(|barren| barren.from != prefix);
        if let Some(to) = to {
            if barren.len() == BARREN_MAX {
                barren.remove(0);
            }
            barren.push(Barren { from: prefix.to_vec(), to: to.to_vec() });
        }
    }

    /// What a key says is about to change.
    fn touch(&self, key: &[u8]) {
        let mut barren = self.barren.borrow_mut();
        if !barren.is_empty() {
            barren.retain(|barren| key < barren.from.as_slice() || key > barren.to.as_slice());
        }
    }

    /// Rolls a change of a memtable back.
    pub(crate) fn undo(&self, change: &MemtableChange) {
        change.memtable.read(change.new, |entry, _| self.touch(entry.key));
        change.memtable.undo(change);
    }

    /// Writes an entry into the active memtable.
    pub(crate) fn put(&self, entry: Entry<'_>) -> MemtableChange {
        self.touch(entry.key);
        debug_assert!(!self.is_dropped.get(), "nobody writes to a tree that is out of use");
        debug_assert!(self.is_primary || entry.kind != EntryKind::Upsert, "secondary indexes have no upserts");
        let filter_prefix = self.filter_prefix(entry.key);
        debug_assert!(0 < filter_prefix && filter_prefix <= entry.key.len());
        self.counts.borrow_mut().put.add(entry.key.len() + entry.value.len());
        self.active.borrow().put(entry, filter_prefix)
    }

    /// The value of a key. Err: it is not in memory.
    pub(crate) fn get(&self, reader: &BlockReader, key: &[u8]) -> Result<Option<RowRef>, Stop> {
        let found = self.get_uncounted(reader, key)?;
        let mut counts = self.counts.borrow_mut();
        counts.lookups += 1;
        if let Some(row) = &found {
            let bytes = row.with(<[u8]>::len);
            counts.found.add(bytes);
            match row {
                RowRef::Memtable(..) => counts.found_in_memtables.add(bytes),
                RowRef::Block(..) => counts.found_in_runs.add(bytes),
                RowRef::Cached(_) => counts.found_in_cache.add(bytes),
                RowRef::Made(_) => {}
            }
        }
        Ok(found)
    }

    fn get_uncounted(&self, reader: &BlockReader, key: &[u8]) -> Result<Option<RowRef>, Stop> {
        let upserter = Arc::clone(&self.upserter.borrow());
        let mut operands = MergeOperands::default();
        let active = self.active.borrow();
        let sealed = self.sealed.borrow();
        for memtable in std::iter::once(&*active).chain(sealed.iter()) {
            let found = memtable.find(key, |place, entry| found_in(memtable, place, entry));
            if let Some(row) = operands.take(found) {
                return Ok(operands.apply(row, &*upserter));
            }
        }
        // What lies above the runs will be in one of them, and then they say something else.
        let is_cachable = self.is_primary && operands.is_empty();
        let row = self.get_from_runs(reader, key, &self.ranges.borrow(), is_cachable, &*upserter)?;
        Ok(operands.apply(row, &*upserter))
    }

    /// Keys whose first part has one of these values are about to be looked up, or written: what that touches in memory is brought nearer to the
    /// processor, for all of them at once.
    pub(crate) fn prefetch(&self, reader: &BlockReader, values: &[u64], reads_rows: bool) {
        // Other keys have other hints than their values.
        if self.hint_at != 1 {
            return;
        }
        self.active.borrow().prefetch(values);
        if !reads_rows {
            return;
        }
        self.sealed.borrow().iter().for_each(|memtable| memtable.prefetch(values));
        let ranges = self.ranges.borrow();
        if self.order.part_count() > 1 || ranges.list.iter().all(|range| range.slices.is_empty()) {
            return;
        }
        let cache = reader.cache.borrow();
        let (mut encoded, mut key) = (Vec::with_capacity(9), Vec::with_capacity(9));
        let mut encode = |value: u64, key: &mut Vec<u8>| {
            encoded.clear();
            key.clear();
            msgpack::encode_uint(&mut encoded, value);
            self.order.ordered_of_key(&encoded, 1, key);
            key_hash(key)
        };
        for &value in values {
            cache.prefetch_place(self.id, encode(value, &mut key));
        }
        for &value in values {
            let hash = encode(value, &mut key);
            if !cache.prefetch_row(self.id, hash) {
                ranges.list[ranges.find(&key)].slices.iter().for_each(|run| run.prefetch(hash));
            }
        }
    }

    /// Keeps the tree as it is now.
    pub(crate) fn hold(&self) -> HeldTree {
        let memtables = self.memtables();
        let memtables = memtables.iter().filter(|memtable| !memtable.is_empty()).map(Memtable::hold);
        HeldTree { memtables: memtables.collect(), ranges: self.ranges() }
    }

    /// The value that a key had. Err: it is not in memory.
    pub(crate) fn get_held(&self, held: &HeldTree, reader: &BlockReader, key: &[u8]) -> Result<Option<RowRef>, Stop> {
        let upserter = Arc::clone(&self.upserter.borrow());
        let mut operands = MergeOperands::default();
        for hold in &held.memtables {
            let found = hold.find(key, |place, entry| found_in(hold.memtable(), place, entry));
            if let Some(row) = operands.take(found) {
                return Ok(operands.apply(row, &*upserter));
            }
        }
        let row = self.get_from_runs(reader, key, &held.ranges, false, &*upserter)?;
        Ok(operands.apply(row, &*upserter))
    }

    /// `is_cachable`: these are the tree's ranges, and nothing above them says anything of the key.
    fn get_from_runs(
        &self,
        reader: &BlockReader,
        key: &[u8],
        ranges: &Ranges,
        is_cachable: bool,
        upserter: &dyn Upserter,
    ) -> Result<Option<RowRef>, Stop> {
        let range = &ranges.list[ranges.find(key)];
        if range.slices.is_empty() {
            return Ok(None);
        }
        let hash = key_hash(&key[..self.filter_prefix(key)]);
        let mut seen = Counts { run_lookups: 1, cache_lookups: u64::from(is_cachable), ..Counts::default() };
        let found = if is_cachable { reader.cache.borrow_mut().row(self.id, hash, key) } else { None };
        let row = match found {
            Some(row) => Some(RowRef::Cached(row)),
            None => self.look_into_runs(reader, (key, hash), range, is_cachable, upserter, &mut seen)?,
        };
        // A look that had to wait is taken again, and counts then.
        let mut counts = self.counts.borrow_mut();
        counts.run_lookups += seen.run_lookups;
        counts.cache_lookups += seen.cache_lookups;
        counts.looked_runs += seen.looked_runs;
        counts.filter_hits += seen.filter_hits;
        counts.filter_misses += seen.filter_misses;
        Ok(row)
    }

    fn look_into_runs(
        &self,
        reader: &BlockReader,
        (key, hash): (&[u8], u64),
        range: &Range,
        is_cachable: bool,
        upserter: &dyn Upserter,
        seen: &mut Counts,
    ) -> Result<Option<RowRef>, Stop> {
        let mut operands = MergeOperands::default();
        let purpose = if is_cachable { Use::Row } else { Use::Scan };
        for run in &range.slices {
            if !run.may_contain(hash) {
                seen.filter_hits += 1;
                continue;
            }
            let Some(at) = run.find_block(key) else { continue };
            let block = reader.block(run, at, purpose, &self.counts)?;
            seen.looked_runs += 1;
            let at = block.lower_bound(key);
            if at == block.len() || block.entry(at).key != key {
                seen.filter_misses += 1;
                continue;
            }
            let entry = block.entry(at);
            match entry.kind {
                EntryKind::Upsert => operands.push(entry.value.to_vec()),
                EntryKind::Delete => return Ok(operands.apply(None, upserter)),
                EntryKind::Put => {
                    if is_cachable && operands.is_empty() {
                        reader.cache.borrow_mut().put_row(self.id, hash, key, entry.value);
                        self.counts.borrow_mut().cached.add(entry.value.len());
                    }
                    return Ok(operands.apply(Some(RowRef::Block(block, at)), upserter));
                }
            }
        }
        Ok(operands.apply(None, upserter))
    }

    /// Entries of memtables and runs, which is what Tarantool takes for the number of rows.
    pub(crate) fn estimate(&self) -> u64 {
        let in_memtables: u64 = self.memtables().iter().map(|memtable| memtable.len() as u64).sum();
        in_memtables + self.runs().iter().map(|run| run.entries()).sum::<u64>()
    }

    /// Every run once.
    pub(crate) fn runs(&self) -> Vec<Arc<Run>> {
        let ranges = self.ranges.borrow();
        let mut runs: Vec<Arc<Run>> = ranges.list.iter().flat_map(|range| range.slices.iter().cloned()).collect();
        runs.sort_by_key(|run| run.id());
        runs.dedup_by_key(|run| run.id());
        runs
    }
}
