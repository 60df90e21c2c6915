//! What the engine counts, for those who look.

use super::engine::LsmEngine;
use super::index_statistics::{Counts, IndexStatistics, Volume, ratio};
use std::cell::Cell;

/// Interval at which the rate of writing is measured.
const RATE_NS: u64 = 1_000_000_000;

/// Counters of the whole engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct LsmStatistics {
    /// What happened since the start or the last reset; of what was looked up and written, only in trees that are there now.
    pub counts: Counts,
    /// Bytes of memtables, and of what is collected for new indexes.
    pub memtable_bytes: u64,
    /// Their bound.
    pub memtable_bytes_max: u64,
    /// Bytes of memtables at which one is dumped.
    pub dump_watermark: u64,
    /// Bytes of cached blocks and rows.
    pub cache_bytes: u64,
    /// Their bound.
    pub cache_bytes_max: u64,
    /// Blocks found in the cache.
    pub cache_hits: u64,
    /// Blocks not found in it.
    pub cache_misses: u64,
    /// Rows found in the cache.
    pub row_hits: u64,
    /// Blocks that the page cache of the machine had.
    pub passing_reads: u64,
    /// Blocks that were waited for.
    pub waited_reads: u64,
    /// Blocks that are waited for now.
    pub reads_in_flight: u64,
    /// Bytes read of runs by statements.
    pub read_bytes: u64,
    /// Dumps and compactions that have ended well.
    pub jobs_completed: u64,
    /// Those that have failed, and were or will be tried again.
    pub jobs_failed: u64,
    /// Those that are under way.
    pub jobs_running: u64,
    /// All runs.
    pub runs: Volume,
    /// The oldest run of each range.
    pub oldest: Volume,
    /// What lies above them.
    pub debt: Volume,
    /// Number of runs.
    pub run_count: u64,
    /// Number of ranges.
    pub range_count: u64,
    /// Memory of fence keys.
    pub fence_bytes: u64,
    /// Memory of filters.
    pub filter_bytes: u64,
    /// Bytes a second that dumps reach; 0: none has ended yet.
    pub dump_bytes_per_s: u64,
    /// Bytes a second that statements write.
    pub write_bytes_per_s: u64,
    /// Bytes a second that writers are let write; 0: as many as they like.
    pub pace_bytes_per_s: u64,
}

impl LsmStatistics {
    /// See [`IndexStatistics::space_amplification`].
    pub fn space_amplification(&self) -> f64 {
        ratio(self.runs.packed_bytes, self.oldest.packed_bytes)
    }

    fn add(&mut self, index: &IndexStatistics) {
        let (all, of_index) = (&mut self.counts, &index.counts);
        all.put.rows += of_index.put.rows;
        all.put.bytes += of_index.put.bytes;
        all.lookups += of_index.lookups;
        all.run_lookups += of_index.run_lookups;
        all.looked_runs += of_index.looked_runs;
        all.filter_hits += of_index.filter_hits;
        all.filter_misses += of_index.filter_misses;
        all.read += of_index.read;
        self.runs += index.runs;
        self.oldest += index.oldest;
        self.debt += index.debt;
        self.run_count += index.run_count;
        self.range_count += index.runs_of_ranges.len() as u64;
        self.fence_bytes += index.fence_bytes;
        self.filter_bytes += index.filter_bytes;
    }
}

/// How much was written lately.
#[derive(Default)]
pub(super) struct WriteRate {
    at_ns: Cell<u64>,
    bytes: Cell<u64>,
    bytes_per_s: Cell<f64>,
}

impl WriteRate {
    /// Takes the number of bytes written up to now.
    pub(super) fn look(&self, now_ns: u64, bytes: u64) {
        let elapsed_ns = now_ns.saturating_sub(self.at_ns.get());
        if elapsed_ns >= RATE_NS {
            let more = bytes.saturating_sub(self.bytes.replace(bytes));
            self.bytes_per_s.set(more as f64 * 1e9 / elapsed_ns as f64);
            self.at_ns.set(now_ns);
        }
    }
}

impl LsmEngine {
    /// Everything there is to know, for those who look. Takes time for each run of each index.
    pub fn statistics(&self) -> LsmStatistics {
        let mut all = *self.totals.borrow();
        let cache = self.reader.cache.borrow();
        self.write_rate.look(self.now_ns(), self.written_bytes());
        all.memtable_bytes = (self.memtable_bytes.get() + self.build_bytes.get()) as u64;
        all.memtable_bytes_max = self.memory_bytes_max() as u64;
        all.dump_watermark = self.dump_watermark() as u64;
        all.cache_bytes = cache.bytes() as u64;
        all.cache_bytes_max = cache.bytes_max() as u64;
        all.cache_hits = cache.hits;
        all.cache_misses = cache.misses;
        all.row_hits = cache.row_hits;
        all.passing_reads = self.reader.passing_reads.get();
        all.waited_reads = self.reader.waited_reads.get();
        all.reads_in_flight = self.reader.in_flight() as u64;
        all.read_bytes = self.reader.read_bytes.get();
        all.jobs_running = self.jobs_running() as u64;
        all.dump_bytes_per_s = self.dump_rate.get() as u64;
        all.write_bytes_per_s = self.write_rate.bytes_per_s.get() as u64;
        all.pace_bytes_per_s = self.pace().unwrap_or(0.0) as u64;
        for space in self.spaces() {
            space.trees().iter().for_each(|tree| all.add(&tree.statistics()));
        }
        all
    }

    /// Starts all counts at zero again.
    pub fn reset_statistics(&self) {
        self.totals.take();
        self.reader.reset_counts();
        for space in self.spaces() {
            space.trees().iter().for_each(|tree| *tree.counts.borrow_mut() = Counts::default());
        }
    }
}
