//! What `stats` tells, under the names that tools read.

use super::VERSION;
use super::store::Work;
use std::cell::Cell;

macro_rules! counters {
    ($($field:ident)*) => {
        /// What the listeners of this protocol have done. Each is named as `stats` shows it.
        #[derive(Default)]
        pub(super) struct Counters {
            $(pub(super) $field: Cell<u64>,)*
        }

        impl Counters {
            /// `stats reset`.
            pub(super) fn reset(&self) {
                $(self.$field.set(0);)*
            }
        }
    };
}

counters! {
    get_hits get_misses stored delete_hits delete_misses incr_hits incr_misses decr_hits decr_misses touch_hits touch_misses get_flushed flushes
    cas_hits cas_misses cas_badval auth_cmds auth_errors
}

fn add(counter: &Cell<u64>, amount: u64) {
    counter.set(counter.get() + amount);
}

impl Counters {
    #[inline]
    pub(super) fn count_gets(&self, hits: u64, misses: u64) {
        add(&self.get_hits, hits);
        add(&self.get_misses, misses);
    }

    /// `is_get`: the items were fetched, too.
    pub(super) fn count_touches(&self, hits: u64, misses: u64, is_get: bool) {
        add(&self.touch_hits, hits);
        add(&self.touch_misses, misses);
        if is_get {
            self.count_gets(hits, misses);
        }
    }

    pub(super) fn count_deletes(&self, is_hit: bool) {
        add(if is_hit { &self.delete_hits } else { &self.delete_misses }, 1);
    }

    pub(super) fn count_sums(&self, is_incr: bool, is_hit: bool) {
        let counter = match (is_incr, is_hit) {
            (true, true) => &self.incr_hits,
            (true, false) => &self.incr_misses,
            (false, true) => &self.decr_hits,
            (false, false) => &self.decr_misses,
        };
        add(counter, 1);
    }
}

/// Names and values. None: there is no such group.
pub(super) fn lines(work: &Work<'_>, words: &[u8]) -> Option<Vec<(String, String)>> {
    match words {
        b"" => Some(general(work)),
        b"settings" => Some(settings(work)),
        b"items" | b"slabs" | b"sizes" | b"conns" | b"cachedump" => Some(group(work, words)),
        _ => None,
    }
}

type Lines = Vec<(String, String)>;

fn put(lines: &mut Lines, name: &str, value: impl ToString) {
    lines.push((name.to_string(), value.to_string()));
}

fn general(work: &Work<'_>) -> Lines {
    let (database, space, counters) = (work.database, &work.bound.space, &work.door.counters);
    let statistics = &database.statistics;
    let mut lines = Lines::new();
    let lines_ref = &mut lines;
    put(lines_ref, "pid", std::process::id());
    put(lines_ref, "uptime", database.uptime_ns() / 1_000_000_000);
    put(lines_ref, "time", work.now());
    put(lines_ref, "version", VERSION);
    put(lines_ref, "libevent", "lycosa");
    put(lines_ref, "pointer_size", usize::BITS);
    put(lines_ref, "curr_connections", statistics.connections_open.get());
    put(lines_ref, "total_connections", statistics.connections.get());
    put(lines_ref, "rejected_connections", 0);
    put(lines_ref, "connection_structures", statistics.connections_open.get());
    put(lines_ref, "cmd_get", counters.get_hits.get() + counters.get_misses.get());
    put(lines_ref, "cmd_set", counters.stored.get());
    put(lines_ref, "cmd_flush", counters.flushes.get());
    put(lines_ref, "cmd_touch", counters.touch_hits.get() + counters.touch_misses.get());
    put(lines_ref, "cmd_meta", 0);
    put(lines_ref, "get_hits", counters.get_hits.get());
    put(lines_ref, "get_misses", counters.get_misses.get());
    put(lines_ref, "get_expired", 0);
    put(lines_ref, "get_flushed", counters.get_flushed.get());
    put(lines_ref, "delete_misses", counters.delete_misses.get());
    put(lines_ref, "delete_hits", counters.delete_hits.get());
    put(lines_ref, "incr_misses", counters.incr_misses.get());
    put(lines_ref, "incr_hits", counters.incr_hits.get());
    put(lines_ref, "decr_misses", counters.decr_misses.get());
    put(lines_ref, "decr_hits", counters.decr_hits.get());
    put(lines_ref, "cas_misses", counters.cas_misses.get());
    put(lines_ref, "cas_hits", counters.cas_hits.get());
    put(lines_ref, "cas_badval", counters.cas_badval.get());
    put(lines_ref, "touch_hits", counters.touch_hits.get());
    put(lines_ref, "touch_misses", counters.touch_misses.get());
    put(lines_ref, "auth_cmds", counters.auth_cmds.get());
    put(lines_ref, "auth_errors", counters.auth_errors.get());
    put(lines_ref, "bytes_read", statistics.received_bytes.get());
    put(lines_ref, "bytes_written", statistics.sent_bytes.get());
    put(lines_ref, "limit_maxbytes", database.config.borrow().memtx_memory);
    put(lines_ref, "accepting_conns", 1);
    put(lines_ref, "listen_disabled_num", 0);
    put(lines_ref, "time_in_listen_disabled_us", 0);
    put(lines_ref, "threads", 1);
    put(lines_ref, "hash_bytes", space.rows.index_bytes(tuple::IndexId::PRIMARY));
    put(lines_ref, "bytes", space.rows.row_bytes());
    put(lines_ref, "curr_items", space.rows.len());
    put(lines_ref, "total_items", counters.stored.get());
    put(lines_ref, "evictions", 0);
    put(lines_ref, "reclaimed", 0);
    lines
}

fn settings(work: &Work<'_>) -> Lines {
    let mut lines = Lines::new();
    let lines_ref = &mut lines;
    put(lines_ref, "maxbytes", work.database.config.borrow().memtx_memory);
    put(lines_ref, "maxconns", 0);
    put(lines_ref, "evictions", "on");
    put(lines_ref, "num_threads", 1);
    put(lines_ref, "verbosity", 0);
    put(lines_ref, "cas_enabled", "yes");
    put(lines_ref, "item_size_max", work.door.item_size_max);
    put(lines_ref, "auth_enabled_sasl", "yes");
    put(lines_ref, "auth_enabled_ascii", if work.door.asks_login { "yes" } else { "no" });
    put(lines_ref, "binding_protocol", "negotiating");
    put(lines_ref, "flush_enabled", "yes");
    put(lines_ref, "space", work.bound.space.name());
    put(lines_ref, "engine", work.bound.space.def().engine.clone());
    lines
}

/// There are no slabs: what tools read there is told of one that has all items.
fn group(work: &Work<'_>, name: &[u8]) -> Lines {
    let rows = &work.bound.space.rows;
    let mut lines = Lines::new();
    match name {
        b"items" if !rows.is_empty() => {
            put(&mut lines, "items:1:number", rows.len());
            put(&mut lines, "items:1:age", 0);
            put(&mut lines, "items:1:evicted", 0);
            put(&mut lines, "items:1:outofmemory", 0);
        }
        b"slabs" => {
            put(&mut lines, "active_slabs", u64::from(!rows.is_empty()));
            put(&mut lines, "total_malloced", rows.row_bytes());
        }
        b"sizes" => put(&mut lines, "sizes_status", "disabled"),
        _ => {}
    }
    lines
}
