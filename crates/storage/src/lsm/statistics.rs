//! What the engine counts, for those who look.

use super::compactions::debt;
use super::engine::LsmEngine;

/// Counters of the whole engine, for statistics.
#[derive(Clone, Copy, Debug, Default)]
pub struct LsmStatistics {
    /// Bytes of memory levels, and their bound.
    pub level_bytes: u64,
    /// See `level_bytes`.
    pub level_bytes_max: u64,
    /// Bytes of cached blocks and rows, and their bound.
    pub cache_bytes: u64,
    /// See `cache_bytes`.
    pub cache_bytes_max: u64,
    /// Bytes of fence keys and filters.
    pub metadata_bytes: u64,
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
    /// Bytes of keys and values written by statements.
    pub written_bytes: u64,
    /// Dumps that have ended.
    pub dumps: u64,
    /// Bytes of the runs they made.
    pub dumped_bytes: u64,
    /// Nanoseconds they took.
    pub dump_ns: u64,
    /// Compactions that have ended.
    pub compactions: u64,
    /// Bytes they read.
    pub compaction_read_bytes: u64,
    /// Bytes they wrote.
    pub compaction_written_bytes: u64,
    /// Nanoseconds they took.
    pub compaction_ns: u64,
    /// Bytes of runs that wait to be merged.
    pub debt_bytes: u64,
    /// Bytes of all runs.
    pub disk_bytes: u64,
    /// Number of runs.
    pub runs: u64,
    /// Number of ranges.
    pub ranges: u64,
    /// Bytes a second that writers are let write; 0: as many as they like.
    pub pace_bytes_per_s: u64,
}

impl LsmEngine {
    /// Everything there is to know, for those who look.
    pub fn statistics(&self) -> LsmStatistics {
        let mut all = *self.totals.borrow();
        let cache = self.reader.cache.borrow();
        all.level_bytes = self.level_bytes.get() as u64;
        all.level_bytes_max = self.memory_bytes_max() as u64;
        all.cache_bytes = cache.bytes() as u64;
        all.cache_bytes_max = cache.bytes_max() as u64;
        all.cache_hits = cache.hits;
        all.cache_misses = cache.misses;
        all.row_hits = cache.row_hits;
        all.passing_reads = self.reader.passing_reads.get();
        all.waited_reads = self.reader.waited_reads.get();
        all.reads_in_flight = self.reader.in_flight() as u64;
        all.read_bytes = self.reader.read_bytes.get();
        all.pace_bytes_per_s = self.pace().unwrap_or(0.0) as u64;
        for space in self.spaces() {
            for tree in space.trees() {
                all.written_bytes += tree.counters.written_bytes.get() + tree.active().written_bytes();
                for run in tree.runs() {
                    all.disk_bytes += run.bytes();
                    all.metadata_bytes += run.memory() as u64;
                    all.runs += 1;
                }
                all.ranges += tree.ranges().list.len() as u64;
                all.debt_bytes += debt(&tree);
            }
        }
        all
    }
}
