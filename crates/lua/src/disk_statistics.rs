//! What `index:stat()` and `box.stat.vinyl()` tell, by Tarantool's names. Lycosa's own figures stand beside them.

use crate::api::{Outcome, id_at, space_at};
use crate::registry::database;
use crate::state::State;
use std::fmt::Write;
use storage::lsm::{Amount, Counts, IndexStatistics, Volume};
use tuple::IndexId;

/// Figures by dotted names: `memory.iterator.lookup`. Lua makes tables of them.
struct Figures {
    state: State,
    table: std::ffi::c_int,
}

impl Figures {
    fn new(state: State) -> Self {
        state.new_table(0, 64);
        Figures { state, table: state.top() }
    }

    fn put(&self, name: &str, value: f64) {
        self.state.push_number(value);
        self.state.set_field(self.table, name);
    }

    fn text(&self, name: &str, value: &str) {
        self.state.push_str(value);
        self.state.set_field(self.table, name);
    }

    fn count(&self, name: &str, value: u64) {
        self.put(name, value as f64);
    }

    /// Figures that Tarantool has and Lycosa has not: 0.
    fn absent(&self, names: &[&str]) {
        names.iter().for_each(|name| self.put(name, 0.0));
    }

    fn amount(&self, name: &str, amount: Amount) {
        self.count(&format!("{name}.rows"), amount.rows);
        self.count(&format!("{name}.bytes"), amount.bytes);
    }

    fn volume(&self, name: &str, volume: Volume) {
        self.count(&format!("{name}.rows"), volume.rows);
        self.count(&format!("{name}.bytes"), volume.bytes);
        self.count(&format!("{name}.bytes_compressed"), volume.packed_bytes);
        self.count(&format!("{name}.pages"), volume.pages);
    }

    /// Dumps and compactions of an index.
    fn jobs(&self, counts: &Counts) {
        self.count("disk.dump.count", counts.dumps);
        self.put("disk.dump.time", seconds(counts.dump_ns));
        self.amount("disk.dump.input", counts.dump_input);
        self.volume("disk.dump.output", counts.dump_output);
        self.count("disk.compaction.count", counts.compactions);
        self.put("disk.compaction.time", seconds(counts.compaction_ns));
        self.volume("disk.compaction.input", counts.compaction_input);
        self.volume("disk.compaction.output", counts.compaction_output);
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// How many ranges have how many runs: `[1]:12 [2]:3`.
fn histogram(runs_of_ranges: &[usize]) -> String {
    let mut sorted = runs_of_ranges.to_vec();
    sorted.sort_unstable();
    let mut text = String::new();
    for same in sorted.chunk_by(|a, b| a == b) {
        let gap = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{gap}[{}]:{}", same[0], same.len());
    }
    text
}

/// index_statistics(space_id, index_id) -> figures by dotted names; nil for an index in memory
pub(crate) fn index_statistics(state: State) -> Outcome {
    let (space, index_id) = (space_at(state, 1)?, id_at(state, 2)?);
    let Some(all) = space.disk().and_then(|disk| disk.statistics(IndexId(index_id))) else {
        state.push_nil();
        return Ok(1);
    };
    let figures = Figures::new(state);
    push_shape(&figures, &all);
    push_counts(&figures, &all);
    let range_count = all.runs_of_ranges.len() as u64;
    figures.put("write_amplification", all.counts.write_amplification());
    figures.put("space_amplification", all.space_amplification());
    figures.put("read_amplification", all.counts.read_amplification());
    figures.count("debt", all.debt.packed_bytes);
    figures.count("ranges", range_count);
    figures.put("pace", database().disk_engine().and_then(|engine| engine.pace()).unwrap_or(0.0));
    Ok(1)
}

/// What an index is like now.
fn push_shape(figures: &Figures, all: &IndexStatistics) {
    figures.count("rows", all.memtables.rows + all.runs.rows);
    figures.count("bytes", all.memtables.bytes + all.runs.bytes);
    figures.amount("memory", all.memtables);
    figures.count("memory.index_size", all.memtable_index_bytes);
    figures.volume("disk", all.runs);
    figures.count("disk.index_size", all.fence_bytes);
    figures.count("disk.bloom_size", all.filter_bytes);
    figures.volume("disk.last_level", all.oldest);
    figures.volume("disk.compaction.queue", all.debt);
    figures.count("disk.statement.replaces", all.runs.rows - all.deletes - all.upserts);
    figures.count("disk.compaction.failed", all.merges_failed);
    figures.count("disk.compaction.unreadable_runs", all.unreadable_runs);
    if let Some(error) = &all.merge_error {
        figures.text("disk.compaction.error", error);
    }
    figures.count("disk.statement.deletes", all.deletes);
    figures.count("disk.statement.upserts", all.upserts);
    figures.absent(&["disk.statement.inserts"]);
    let range_count = all.runs_of_ranges.len() as u64;
    let in_ranges: usize = all.runs_of_ranges.iter().sum();
    figures.count("run_count", all.run_count);
    figures.put("run_avg", in_ranges as f64 / range_count.max(1) as f64);
    figures.count("range_count", range_count);
    figures.count("range_size", all.range_bytes);
    figures.text("run_histogram", &histogram(&all.runs_of_ranges));
    let counts = &all.counts;
    figures.put("dumps_per_compaction", counts.dumps as f64 / counts.compactions.max(1) as f64);
}

/// What happened to an index.
fn push_counts(figures: &Figures, all: &IndexStatistics) {
    let counts = &all.counts;
    figures.count("lookup", counts.lookups);
    figures.amount("get", counts.found);
    figures.amount("put", counts.put);
    figures.count("memory.iterator.lookup", counts.lookups);
    figures.amount("memory.iterator.get", counts.found_in_memtables);
    figures.count("disk.iterator.lookup", counts.run_lookups);
    figures.amount("disk.iterator.get", counts.found_in_runs);
    figures.volume("disk.iterator.read", counts.read);
    figures.count("disk.iterator.bloom.hit", counts.filter_hits);
    figures.count("disk.iterator.bloom.miss", counts.filter_misses);
    figures.jobs(counts);
    figures.count("cache.lookup", counts.cache_lookups);
    figures.amount("cache.get", counts.found_in_cache);
    figures.amount("cache.put", counts.cached);
    // One cache serves all indexes, so that what is in it belongs to none; and it has no order.
    let of_cache = ["cache.rows", "cache.bytes", "cache.index_size", "cache.invalidate.rows", "cache.invalidate.bytes"];
    figures.absent(&of_cache);
    figures.absent(&["cache.evict.rows", "cache.evict.bytes", "skip.rows", "skip.bytes"]);
    // What a transaction has written is in the memtables.
    figures.absent(&[
        "txw.rows",
        "txw.bytes",
        "txw.iterator.lookup",
        "txw.iterator.get.rows",
        "txw.iterator.get.bytes",
    ]);
    figures.absent(&["upsert.squashed", "upsert.applied"]);
    figures.absent(&["latency.p50", "latency.p75", "latency.p90", "latency.p95", "latency.p99"]);
}

/// disk_statistics() -> figures by dotted names
pub(crate) fn disk_statistics(state: State) -> Outcome {
    let database = database();
    let figures = Figures::new(state);
    let all = database.disk_engine().map(|engine| engine.statistics()).unwrap_or_default();
    let counts = &all.counts;
    figures.count("regulator.dump_bandwidth", all.dump_bytes_per_s);
    figures.count("regulator.dump_watermark", all.dump_watermark);
    figures.count("regulator.rate_limit", all.pace_bytes_per_s);
    figures.count("regulator.write_rate", all.write_bytes_per_s);
    figures.count("scheduler.tasks_inprogress", all.jobs_running);
    figures.count("scheduler.tasks_completed", all.jobs_completed);
    figures.count("scheduler.tasks_failed", all.jobs_failed);
    if let Some(error) = database.disk_engine().and_then(|engine| engine.failure()) {
        figures.text("scheduler.dump_error", &error.to_string());
    }
    figures.count("scheduler.dump_count", counts.dumps);
    figures.put("scheduler.dump_time", seconds(counts.dump_ns));
    figures.count("scheduler.dump_input", counts.dump_input.bytes);
    figures.count("scheduler.dump_output", counts.dump_output.packed_bytes);
    figures.put("scheduler.compaction_time", seconds(counts.compaction_ns));
    figures.count("scheduler.compaction_input", counts.compaction_input.packed_bytes);
    figures.count("scheduler.compaction_output", counts.compaction_output.packed_bytes);
    figures.count("scheduler.compaction_queue", all.debt.packed_bytes);
    figures.count("disk.data", all.runs.packed_bytes);
    figures.count("disk.data_compacted", all.oldest.packed_bytes);
    figures.count("disk.index", all.fence_bytes + all.filter_bytes);
    figures.count("memory.level0", all.memtable_bytes);
    figures.count("memory.tuple_cache", all.cache_bytes);
    figures.count("memory.page_index", all.fence_bytes);
    figures.count("memory.bloom_filter", all.filter_bytes);
    let statistics = &database.statistics;
    figures.count("tx.commit", statistics.disk_commits.get());
    figures.count("tx.rollback", statistics.disk_rollbacks.get());
    figures.count("tx.conflict", statistics.conflicts.get());
    figures.count("tx.transactions", database.suspended() as u64);
    // What a transaction has written is in the memtables; it reads what is there, and remembers what it has read.
    figures.absent(&["memory.tx", "tx.statements", "tx.gap_locks"]);
    let views = database.view_counts();
    figures.count("tx.read_views", views.open as u64);
    figures.count("tx.read_view_bytes", views.bytes as u64);
    figures.count("tx.read_views_ended", views.ended);
    figures.put("amplification.write", counts.write_amplification());
    figures.put("amplification.space", all.space_amplification());
    figures.put("amplification.read", counts.read_amplification());
    figures.count("debt", all.debt.packed_bytes);
    figures.count("pace", all.pace_bytes_per_s);
    figures.count("ranges", all.range_count);
    figures.count("runs", all.run_count);
    figures.count("memory.level0_max", all.memtable_bytes_max);
    figures.count("memory.tuple_cache_max", all.cache_bytes_max);
    figures.count("cache.block_hits", all.cache_hits);
    figures.count("cache.block_misses", all.cache_misses);
    figures.count("cache.row_hits", all.row_hits);
    figures.count("reads.passing", all.passing_reads);
    figures.count("reads.waited", all.waited_reads);
    figures.count("reads.in_flight", all.reads_in_flight);
    figures.count("reads.bytes", all.read_bytes);
    Ok(1)
}
