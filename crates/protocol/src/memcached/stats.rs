//! What `stats` tells, under the names that tools read.

use super::VERSION;
use super::store::{Outcome, Work};
use database::{Key, Result, ScanRequest};
use std::cell::Cell;
use storage::IteratorKind;

/// Items that `stats cachedump` shows at most.
const DUMPED_MAX: u64 = 200;

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
    get_hits get_misses stored delete_hits delete_misses incr_hits incr_misses decr_hits decr_misses touch_hits touch_misses flushes
    cas_hits cas_misses cas_badval auth_cmds auth_errors cmd_set cmd_meta store_too_large
}

pub(super) fn add(counter: &Cell<u64>, amount: u64) {
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

    /// `has_cas`: the item was to have one.
    #[inline]
    pub(super) fn count_store(&self, outcome: Outcome, has_cas: bool) {
        add(&self.cmd_set, 1);
        match outcome {
            Outcome::Stored(_) => {
                add(&self.stored, 1);
                add(&self.cas_hits, u64::from(has_cas));
            }
            Outcome::NotFound => add(&self.cas_misses, 1),
            Outcome::Exists => add(&self.cas_badval, 1),
            Outcome::NotStored => {}
        }
    }

    pub(super) fn count_login(&self, is_right: bool) {
        add(&self.auth_cmds, 1);
        add(&self.auth_errors, u64::from(!is_right));
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

/// All names of memcached 1.6.18, in its order. Those without a meaning here are 0.
const GENERAL: &str = "\
    pid uptime time version libevent pointer_size rusage_user rusage_system max_connections curr_connections total_connections \
    rejected_connections connection_structures response_obj_oom response_obj_count response_obj_bytes read_buf_count read_buf_bytes \
    read_buf_bytes_free read_buf_oom reserved_fds cmd_get cmd_set cmd_flush cmd_touch cmd_meta get_hits get_misses get_expired \
    get_flushed delete_misses delete_hits incr_misses incr_hits decr_misses decr_hits cas_misses cas_hits cas_badval touch_hits \
    touch_misses store_too_large store_no_memory auth_cmds auth_errors bytes_read bytes_written limit_maxbytes accepting_conns \
    listen_disabled_num time_in_listen_disabled_us threads conn_yields hash_power_level hash_bytes hash_is_expanding \
    slab_reassign_rescues slab_reassign_chunk_rescues slab_reassign_evictions_nomem slab_reassign_inline_reclaim \
    slab_reassign_busy_items slab_reassign_busy_deletes slab_reassign_running slabs_moved lru_crawler_running lru_crawler_starts \
    lru_maintainer_juggles malloc_fails log_worker_dropped log_worker_written log_watcher_skipped log_watcher_sent log_watchers \
    unexpected_napi_ids round_robin_fallback bytes curr_items total_items slab_global_page_pool expired_unfetched evicted_unfetched \
    evicted_active evictions reclaimed crawler_reclaimed crawler_items_checked lrutail_reflocked moves_to_cold moves_to_warm \
    moves_within_lru direct_reclaims lru_bumps_dropped";

fn general(work: &Work<'_>) -> Lines {
    let (database, space, counters) = (work.database, &work.bound.space, &work.door.counters);
    let cache = space.eviction_counts();
    let statistics = &database.statistics;
    let value = |name: &str| -> String {
        let number = match name {
            "version" => return VERSION.to_string(),
            "libevent" => return "lycosa".to_string(),
            "rusage_user" | "rusage_system" => return "0.000000".to_string(),
            "pid" => u64::from(std::process::id()),
            "uptime" => database.uptime_ns() / 1_000_000_000,
            "time" => work.now(),
            "pointer_size" => u64::from(usize::BITS),
            "curr_connections" | "connection_structures" => statistics.connections_open.get(),
            "total_connections" => statistics.connections.get(),
            "cmd_get" => counters.get_hits.get() + counters.get_misses.get(),
            "cmd_set" => counters.cmd_set.get(),
            "cmd_flush" => counters.flushes.get(),
            "cmd_touch" => counters.touch_hits.get() + counters.touch_misses.get(),
            "cmd_meta" => counters.cmd_meta.get(),
            "get_hits" => counters.get_hits.get(),
            "get_misses" => counters.get_misses.get(),
            "delete_misses" => counters.delete_misses.get(),
            "delete_hits" => counters.delete_hits.get(),
            "incr_misses" => counters.incr_misses.get(),
            "incr_hits" => counters.incr_hits.get(),
            "decr_misses" => counters.decr_misses.get(),
            "decr_hits" => counters.decr_hits.get(),
            "cas_misses" => counters.cas_misses.get(),
            "cas_hits" => counters.cas_hits.get(),
            "cas_badval" => counters.cas_badval.get(),
            "touch_hits" => counters.touch_hits.get(),
            "touch_misses" => counters.touch_misses.get(),
            "store_too_large" => counters.store_too_large.get(),
            "auth_cmds" => counters.auth_cmds.get(),
            "auth_errors" => counters.auth_errors.get(),
            "bytes_read" => statistics.received_bytes.get(),
            "bytes_written" => statistics.sent_bytes.get(),
            "limit_maxbytes" => limit(work),
            "evictions" => cache.map_or(0, |counts| counts.evicted),
            "store_no_memory" => cache.map_or(0, |counts| counts.refused),
            "accepting_conns" | "threads" => 1,
            "hash_bytes" => space.rows.index_bytes(tuple::IndexId::PRIMARY),
            "bytes" => space.rows.row_bytes(),
            "curr_items" => space.rows.len(),
            "total_items" => counters.stored.get(),
            _ => 0,
        };
        number.to_string()
    };
    GENERAL.split_whitespace().map(|name| (name.to_string(), value(name))).collect()
}

/// What `stats cachedump` shows: some items, with their bytes and when they expire. Errors: those of a read.
pub(super) fn cachedump(work: &Work<'_>, out: &mut Vec<u8>, max: u64) -> Result<()> {
    let request = ScanRequest {
        limit: if max == 0 { DUMPED_MAX } else { max.min(DUMPED_MAX) },
        ..ScanRequest::new(tuple::IndexId::PRIMARY, IteratorKind::All, Key::EMPTY)
    };
    let start = out.len();
    work.database
        .select(work.context, &work.bound.space, &request, |row| {
            let layout = &work.bound.layout;
            if let (Some(key), Ok(item)) = (layout.read_key(row), layout.read(row, false)) {
                out.extend_from_slice(b"ITEM ");
                out.extend_from_slice(key);
                out.extend_from_slice(format!(" [{} b; {} s]\r\n", item.value.len(), item.expires).as_bytes());
            }
            true
        })
        .inspect_err(|_| out.truncate(start))?;
    out.extend_from_slice(b"END\r\n");
    Ok(())
}

/// Bytes that items may take: those of the space if it has a limit, else those of the server.
fn limit(work: &Work<'_>) -> u64 {
    let own = work.bound.space.memory_limit().map(|limit| limit.bytes);
    own.unwrap_or_else(|| work.database.config.borrow().memtx_memory as u64)
}

fn settings(work: &Work<'_>) -> Lines {
    let mut lines = Lines::new();
    let lines_ref = &mut lines;
    put(lines_ref, "maxbytes", limit(work));
    put(lines_ref, "maxconns", 1024);
    put(lines_ref, "verbosity", 0);
    put(lines_ref, "oldest", 0);
    let evicts = work.bound.space.memory_limit().is_some_and(|limit| limit.evicts);
    put(lines_ref, "evictions", if evicts { "on" } else { "off" });
    put(lines_ref, "domain_socket", "NULL");
    put(lines_ref, "shutdown_command", "no");
    put(lines_ref, "num_threads", 1);
    put(lines_ref, "detail_enabled", "no");
    put(lines_ref, "cas_enabled", "yes");
    put(lines_ref, "binding_protocol", "auto-negotiate");
    put(lines_ref, "auth_enabled_sasl", if work.door.asks_login { "yes" } else { "no" });
    put(lines_ref, "auth_enabled_ascii", if work.door.asks_login { "yes" } else { "no" });
    put(lines_ref, "item_size_max", work.door.item_size_max);
    put(lines_ref, "flush_enabled", "yes");
    put(lines_ref, "dump_enabled", "yes");
    put(lines_ref, "hash_algorithm", "lycosa");
    put(lines_ref, "idle_timeout", 0);
    put(lines_ref, "ssl_enabled", "no");
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
