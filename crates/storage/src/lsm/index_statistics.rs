//! What is known of one index on disk, for those who look: what happened to it since the start or the last reset, and what it is like now.

use super::run::Run;
use super::space::LsmSpace;
use super::tree::LsmTree;
use std::ops::AddAssign;
use tuple::IndexId;

/// Rows that statements deal with.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Amount {
    /// Number.
    pub rows: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
}

impl Amount {
    pub(crate) fn add(&mut self, bytes: usize) {
        self.rows += 1;
        self.bytes += bytes as u64;
    }
}

/// A part of runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Volume {
    /// Entries.
    pub rows: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
    /// Bytes on disk.
    pub packed_bytes: u64,
    /// Blocks.
    pub pages: u64,
}

impl AddAssign for Volume {
    fn add_assign(&mut self, more: Self) {
        self.rows += more.rows;
        self.bytes += more.bytes;
        self.packed_bytes += more.packed_bytes;
        self.pages += more.pages;
    }
}

impl Volume {
    /// A whole run.
    pub(crate) fn of(run: &Run) -> Self {
        let (rows, pages) = (run.entries(), run.block_count() as u64);
        Volume { rows, bytes: run.unpacked_bytes(), packed_bytes: run.bytes(), pages }
    }

    /// About what of a run lies in `[from, to)`.
    pub(crate) fn between(run: &Run, from: &[u8], to: Option<&[u8]>) -> Self {
        let (packed_bytes, rows) = run.estimate(from, to);
        let part = packed_bytes as f64 / run.bytes().max(1) as f64;
        let of = |whole: u64| (whole as f64 * part) as u64;
        Volume { rows, bytes: of(run.unpacked_bytes()), packed_bytes, pages: of(run.block_count() as u64).max(1) }
    }

    pub(crate) fn of_block(run: &Run, block: usize) -> Self {
        let packed_bytes = run.block_extent(block).1 as u64;
        let bytes = (packed_bytes as f64 * run.unpacked_bytes() as f64 / run.bytes().max(1) as f64) as u64;
        Volume { rows: u64::from(run.block_counts(block).0), bytes, packed_bytes, pages: 1 }
    }
}

/// What happened to a tree.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Entries that were written.
    pub put: Amount,
    /// Looks for a key, and scans.
    pub lookups: u64,
    /// Rows that these found.
    pub found: Amount,
    /// Those of them that memtables had.
    pub found_in_memtables: Amount,
    /// Look-ups of keys that no memtable had a put or delete of.
    pub run_lookups: u64,
    /// Runs that these looked into.
    pub looked_runs: u64,
    /// Rows that runs had.
    pub found_in_runs: Amount,
    /// Runs that the filter spared a look.
    pub filter_hits: u64,
    /// Runs whose filter sent a look for nothing.
    pub filter_misses: u64,
    /// Blocks that were not in the cache.
    pub read: Volume,
    /// Looks for a row in the cache.
    pub cache_lookups: u64,
    /// Rows that it had.
    pub found_in_cache: Amount,
    /// Rows that were put into it.
    pub cached: Amount,
    /// Dumps.
    pub dumps: u64,
    /// Nanoseconds that they took.
    pub dump_ns: u64,
    /// What was dumped, with what was written over before.
    pub dump_input: Amount,
    /// The runs that it made.
    pub dump_output: Volume,
    /// Compactions.
    pub compactions: u64,
    /// Nanoseconds that they took.
    pub compaction_ns: u64,
    /// What was merged.
    pub compaction_input: Volume,
    /// The runs that it made.
    pub compaction_output: Volume,
}

/// See the head of this file.
#[derive(Clone, Debug, Default)]
pub struct IndexStatistics {
    /// What happened.
    pub counts: Counts,
    /// Keys and memory of memtables.
    pub memtables: Amount,
    /// Memory of the trees over them.
    pub memtable_index_bytes: u64,
    /// All runs.
    pub runs: Volume,
    /// The oldest run of each range: most rows are there.
    pub oldest: Volume,
    /// What lies above these, and is to be merged with them in time.
    pub debt: Volume,
    /// Entries of runs that delete.
    pub deletes: u64,
    /// Entries of runs that upsert.
    pub upserts: u64,
    /// Number of runs.
    pub run_count: u64,
    /// Bytes that a range should have.
    pub range_bytes: u64,
    /// How many runs each range has.
    pub runs_of_ranges: Vec<usize>,
    /// Memory of fence keys.
    pub fence_bytes: u64,
    /// Memory of filters.
    pub filter_bytes: u64,
    /// Compactions that have failed since the start.
    pub merges_failed: u64,
    /// Runs that could not be read when they were merged last: they are left out until it is tried again.
    pub unreadable_runs: u64,
    /// Why the last compaction that has failed did; none once all are done.
    pub merge_error: Option<String>,
}

impl Counts {
    /// Bytes written to runs for a byte that was written by statements and has been dumped; 0 if none was.
    pub fn write_amplification(&self) -> f64 {
        ratio(self.dump_output.packed_bytes + self.compaction_output.packed_bytes, self.dump_input.bytes)
    }

    /// Runs that were looked into for a key that is not in memory; 0 if none was looked for.
    pub fn read_amplification(&self) -> f64 {
        ratio(self.looked_runs, self.run_lookups)
    }
}

impl IndexStatistics {
    /// Bytes of all files over those of the oldest runs of the ranges, also of what no range wants any more of a file; 0 without runs.
    pub fn space_amplification(&self) -> f64 {
        ratio(self.runs.packed_bytes, self.oldest.packed_bytes)
    }
}

/// A quotient that is 0 if there is nothing to divide by.
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

impl LsmTree {
    pub(crate) fn statistics(&self) -> IndexStatistics {
        let mut all = IndexStatistics { counts: *self.counts.borrow(), ..IndexStatistics::default() };
        for memtable in self.memtables() {
            all.memtables.rows += memtable.len() as u64;
            all.memtables.bytes += memtable.entry_bytes() as u64;
            all.memtable_index_bytes += (memtable.bytes() - memtable.entry_bytes()) as u64;
        }
        for run in self.runs() {
            all.runs += Volume::of(&run);
            all.deletes += run.deletes();
            all.upserts += run.upserts();
            all.run_count += 1;
            all.filter_bytes += run.filter_bytes() as u64;
            all.fence_bytes += (run.memory() - run.filter_bytes()) as u64;
        }
        all.range_bytes = self.range_bytes();
        all.merges_failed = self.merge_failures.count();
        all.unreadable_runs = self.merge_failures.runs();
        all.merge_error = self.merge_failures.last().map(|error| error.to_string());
        let ranges = self.ranges();
        for (at, range) in ranges.list.iter().enumerate() {
            let volume = |run: &Run| Volume::between(run, &range.begin, ranges.end(at));
            if let Some((oldest, younger)) = range.slices.split_last() {
                all.oldest += volume(oldest);
                younger.iter().for_each(|run| all.debt += volume(run));
            }
            all.runs_of_ranges.push(range.slices.len());
        }
        all
    }
}

impl LsmSpace {
    /// What is known of an index.
    pub fn statistics(&self, index_id: IndexId) -> Option<IndexStatistics> {
        self.trees().iter().find(|tree| tree.index_id == index_id).map(|tree| tree.statistics())
    }
}
