//! What `stats` tells, under the names that tools read.

use super::classes::{CLASSES, PAGE_BYTES, chunk_bytes};
use super::store::{Outcome, Work};
use super::survey::{self, Class};
use super::{Cache, Tongue, VERSION};
use database::{Key, Privileges, Result, ScanRequest};
use runtime::fiber;
use std::cell::Cell;
use std::rc::{Rc, Weak};
use storage::IteratorKind;

/// Shown as the number of connections where the listener says none.
const MANY: usize = 1024;
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
            fn reset(&self) {
                $(self.$field.set(0);)*
            }
        }
    };
}

counters! {
    get_hits get_misses stored delete_hits delete_misses incr_hits incr_misses decr_hits decr_misses touch_hits touch_misses flushes
    cas_hits cas_misses cas_badval auth_cmds auth_errors cmd_set cmd_meta store_too_large get_expired get_flushed flushed yields
    evicted_before refused_before reclaimed_before swept_before
}

/// Rows that have left for want of room, and writes that were refused.
fn left_out(work: &Work<'_>) -> (u64, u64) {
    work.bound.space.eviction_counts().map_or((0, 0), |counts| (counts.evicted, counts.refused))
}

/// Rows that were removed because they have expired or were flushed, and those of them that the sweeper has found.
fn reclaimed(work: &Work<'_>) -> (u64, u64) {
    let (expired, counters) = (work.database.expired_rows(&work.bound.space), &work.door.counters);
    let removed = expired.removed.saturating_sub(counters.reclaimed_before.get());
    (removed + counters.flushed.get(), expired.swept.saturating_sub(counters.swept_before.get()))
}

/// `stats reset`.
pub(super) fn reset(work: &Work<'_>) {
    let counters = &work.door.counters;
    counters.reset();
    // These are counted elsewhere, for all.
    let (evicted, refused) = left_out(work);
    counters.evicted_before.set(evicted);
    counters.refused_before.set(refused);
    let expired = work.database.expired_rows(&work.bound.space);
    counters.reclaimed_before.set(expired.removed);
    counters.swept_before.set(expired.swept);
    work.door.onlookers.forget_prefixes();
    work.door.survey.reset();
}

/// `stats detail` with a word: appends its answer. Errors: the user may not read the space.
pub(super) fn detail(work: &Work<'_>, word: &[u8], out: &mut Vec<u8>) -> Result<()> {
    work.database.check_space_access(work.context, &work.bound.space, Privileges::READ)?;
    let onlookers = &work.door.onlookers;
    match word {
        b"on" | b"off" => {
            onlookers.count_prefixes(word == b"on");
            out.extend_from_slice(b"OK\r\n");
        }
        b"dump" => onlookers.dump(out),
        _ => out.extend_from_slice(b"CLIENT_ERROR usage: stats detail on|off|dump\r\n"),
    }
    Ok(())
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

/// Names and values. None: there is no such group. Errors: as [`survey::look`].
pub(super) fn lines(work: &Work<'_>, words: &[u8]) -> Result<Option<Lines>> {
    Ok(match words {
        b"" => Some(general(work)),
        b"settings" => Some(settings(work)),
        b"items" | b"slabs" | b"sizes" | b"sizes_enable" | b"sizes_disable" | b"cachedump" => Some(group(work, words)?),
        b"conns" => Some(connections(work)),
        _ => None,
    })
}

type Lines = Vec<(String, String)>;

fn put(lines: &mut Lines, name: &str, value: impl ToString) {
    lines.push((name.to_string(), value.to_string()));
}

/// All names of memcached 1.6.18 that works without its crawler and its maintainer of queues, in its order. Those without a meaning here are 0.
const GENERAL: &str = "\
    pid uptime time version libevent pointer_size rusage_user rusage_system max_connections curr_connections total_connections \
    rejected_connections connection_structures response_obj_oom response_obj_count response_obj_bytes read_buf_count read_buf_bytes \
    read_buf_bytes_free read_buf_oom reserved_fds cmd_get cmd_set cmd_flush cmd_touch cmd_meta get_hits get_misses get_expired \
    get_flushed delete_misses delete_hits incr_misses incr_hits decr_misses decr_hits cas_misses cas_hits cas_badval touch_hits \
    touch_misses store_too_large store_no_memory auth_cmds auth_errors bytes_read bytes_written limit_maxbytes accepting_conns \
    listen_disabled_num time_in_listen_disabled_us threads conn_yields hash_power_level hash_bytes hash_is_expanding \
    slab_reassign_rescues slab_reassign_chunk_rescues slab_reassign_evictions_nomem slab_reassign_inline_reclaim \
    slab_reassign_busy_items slab_reassign_busy_deletes slab_reassign_running slabs_moved malloc_fails log_worker_dropped log_worker_written log_watcher_skipped log_watcher_sent log_watchers \
    unexpected_napi_ids round_robin_fallback bytes curr_items total_items slab_global_page_pool expired_unfetched evicted_unfetched \
    evictions reclaimed crawler_reclaimed crawler_items_checked lrutail_reflocked";

fn general(work: &Work<'_>) -> Lines {
    let (database, space, counters) = (work.database, &work.bound.space, &work.door.counters);
    let (evicted, refused) = left_out(work);
    let statistics = &database.statistics;
    let value = |name: &str| -> String {
        let number = match name {
            "version" => return VERSION.to_string(),
            "libevent" => return "lycosa".to_string(),
            "rusage_user" | "rusage_system" => {
                let used = database.environment().clock.processor_time();
                let us = if name == "rusage_user" { used.user_us } else { used.system_us };
                return format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
            }
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
            "evictions" => evicted.saturating_sub(counters.evicted_before.get()),
            "store_no_memory" => refused.saturating_sub(counters.refused_before.get()),
            "accepting_conns" | "threads" => 1,
            "hash_bytes" => space.rows.index_bytes(tuple::IndexId::PRIMARY),
            "bytes" => space.rows.row_bytes(),
            "curr_items" => space.rows.len(),
            "total_items" => counters.stored.get(),
            "rejected_connections" => work.door.rejected.get(),
            "hash_power_level" => hash_power(space.rows.len()),
            "log_watchers" => work.door.onlookers.watchers(),
            "log_watcher_sent" => work.door.onlookers.sent.get(),
            "log_watcher_skipped" => work.door.onlookers.skipped.get(),
            "reclaimed" => reclaimed(work).0,
            "crawler_reclaimed" => reclaimed(work).1,
            "conn_yields" => counters.yields.get(),
            "get_expired" => counters.get_expired.get(),
            "get_flushed" => counters.get_flushed.get(),
            "max_connections" => work.door.connections_max.min(MANY) as u64,
            _ => 0,
        };
        number.to_string()
    };
    let mut lines: Lines = GENERAL.split_whitespace().map(|name| (name.to_string(), value(name))).collect();
    if work.door.idle_ns != 0 {
        put(&mut lines, "idle_kicks", work.door.idle_kicks.get());
    }
    lines
}

/// The power of two that the real server's table of so many items would have.
fn hash_power(items: u64) -> u64 {
    let mut power = 16;
    while items > 3 << (power - 1) {
        power += 1;
    }
    power
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
    own.unwrap_or_else(|| work.database.config.borrow().memtx_memory)
}

/// Host, port and path of the listener.
fn listener<'a>(work: &'a Work<'_>) -> (&'a str, &'a str, Option<&'a str>) {
    let address = work.door.address.trim_start_matches(UDP);
    match (address.strip_prefix("unix/:"), address.rsplit_once(':')) {
        (Some(path), _) => ("NULL", "0", Some(path)),
        (None, Some((host, port))) => (host, port, None),
        (None, None) => ("NULL", address, None),
    }
}

/// Where clients of datagrams of the same space come in, if they do.
fn udp_listeners(work: &Work<'_>) -> Vec<String> {
    let doors: Vec<_> = work.door.doors.borrow().iter().filter_map(Weak::upgrade).collect();
    let is_meant = |door: &Rc<Cache>| door.space == work.door.space && door.address.starts_with(UDP);
    doors.into_iter().filter(is_meant).map(|door| door.address.clone()).collect()
}

/// What an address of datagrams begins with.
const UDP: &str = "udp:";

/// An address as `stats conns` shows it.
fn shown(address: &str) -> String {
    match address.strip_prefix("unix/:") {
        Some(path) => format!("unix:{path}"),
        None if address.starts_with(UDP) => match address.strip_prefix("udp:[") {
            Some(rest) => format!("udp6:[{rest}"),
            None => address.to_string(),
        },
        None if address.starts_with('[') => format!("tcp6:{address}"),
        None => format!("tcp:{address}"),
    }
}

/// Who is connected, behind the listener itself. Only what those may know who may read the items.
fn connections(work: &Work<'_>) -> Lines {
    let mut lines = Lines::new();
    let now = fiber::now_ns();
    let listening = shown(&work.door.address);
    put(&mut lines, "0:addr", &listening);
    let is_udp = work.door.address.starts_with(UDP);
    put(&mut lines, "0:state", if is_udp { "conn_read" } else { "conn_listening" });
    put(&mut lines, "0:secs_since_last_cmd", work.database.uptime_ns() / 1_000_000_000);
    // Each has a number of its own: sessions have theirs.
    let connections = work.door.connections();
    let last = connections.iter().map(|connection| connection.session().id).max().unwrap_or(0);
    for (at, address) in (last + 1..).zip(udp_listeners(work)).filter(|_| !is_udp) {
        put(&mut lines, &format!("{at}:addr"), shown(&address));
        put(&mut lines, &format!("{at}:state"), "conn_read");
        put(&mut lines, &format!("{at}:secs_since_last_cmd"), work.database.uptime_ns() / 1_000_000_000);
    }
    for connection in connections.into_iter().filter(|connection| !connection.is_datagram()) {
        let session = connection.session();
        let id = session.id;
        let state = match () {
            () if id == work.context.session.id => "conn_parse_cmd",
            () if !connection.input.borrow().is_empty() => "conn_nread",
            () if work.door.onlookers.is_watching(&connection) => "conn_watch",
            () => "conn_read",
        };
        put(&mut lines, &format!("{id}:addr"), session.peer.as_deref().map_or_else(|| "unix".to_string(), shown));
        put(&mut lines, &format!("{id}:listen_addr"), &listening);
        put(&mut lines, &format!("{id}:state"), state);
        let seconds = now.saturating_sub(connection.group_began.get()) / 1_000_000_000;
        put(&mut lines, &format!("{id}:secs_since_last_cmd"), seconds);
    }
    lines
}

fn settings(work: &Work<'_>) -> Lines {
    let yes = |is_on: bool| if is_on { "yes" } else { "no" };
    let door = work.door;
    let (host, port, path) = listener(work);
    let evicts = work.bound.space.memory_limit().is_some_and(|limit| limit.evicts);
    let mut lines = Lines::new();
    let mut put = |name: &str, value: &dyn std::fmt::Display| lines.push((name.to_string(), value.to_string()));
    put("maxbytes", &limit(work));
    put("maxconns", &door.connections_max.min(MANY));
    put("tcpport", &port);
    let udp_port = udp_listeners(work).first().and_then(|address| address.rsplit(':').next()?.parse::<u16>().ok());
    put("udpport", &udp_port.unwrap_or(0));
    put("inter", &host);
    put("verbosity", &0);
    put("oldest", &0);
    put("evictions", &if evicts { "on" } else { "off" });
    put("domain_socket", &path.unwrap_or("NULL"));
    put("umask", &700);
    put("shutdown_command", &yes(door.allows.shutdown));
    put("growth_factor", &"1.25");
    put("chunk_size", &48);
    put("num_threads", &1);
    put("num_threads_per_udp", &0);
    put("stat_key_prefix", &":");
    put("detail_enabled", &yes(door.onlookers.counts_prefixes()));
    // 0: as many as there is time for.
    put("reqs_per_event", &if door.requests_max == usize::MAX { 0 } else { door.requests_max });
    put("cas_enabled", &yes(door.has_cas));
    put("tcp_backlog", &door.backlog.unwrap_or(runtime::net::BACKLOG));
    let binding = match door.tongue {
        Tongue::Unknown => "auto-negotiate",
        Tongue::Text => "ascii",
        Tongue::Binary => "binary",
    };
    put("binding_protocol", &binding);
    put("auth_enabled_sasl", &yes(door.asks_login));
    put("auth_enabled_ascii", &yes(door.asks_login));
    put("item_size_max", &door.item_size_max);
    put("maxconns_fast", &"yes");
    put("hashpower_init", &0);
    put("slab_reassign", &"no");
    put("slab_automove", &0);
    put("slab_chunk_max", &door.item_size_max);
    put("lru_crawler", &yes(door.is_crawling.get()));
    put("flush_enabled", &yes(door.allows.flush));
    put("dump_enabled", &yes(door.allows.dump));
    put("hash_algorithm", &"lycosa");
    put("lru_maintainer_thread", &"no");
    put("lru_segmented", &"no");
    put("temp_lru", &"no");
    put("idle_timeout", &(door.idle_ns / 1_000_000_000));
    put("track_sizes", &"no");
    put("inline_ascii_response", &"no");
    put("ssl_enabled", &"no");
    put("space", &work.bound.space.name());
    put("engine", &work.bound.space.def().engine);
    lines
}

/// There are no slabs: what tools read there is told of the classes in which the real server would keep the items.
fn group(work: &Work<'_>, name: &[u8]) -> Result<Lines> {
    let mut lines = Lines::new();
    if name.starts_with(b"sizes") {
        put(&mut lines, "sizes_status", "disabled");
        return Ok(lines);
    }
    let mut classes = survey::look(work)?.to_vec();
    if classes.is_empty() {
        // On disk: how many they are is all that is known.
        let items = work.bound.space.rows.len();
        classes = vec![Class { items, bytes: 0, chunks: items }];
        classes.resize(CLASSES, Class::default());
    }
    match name {
        b"items" => classes.iter().enumerate().for_each(|(at, class)| put_items(work, &mut lines, at + 1, class)),
        b"slabs" => {
            let mut active = 0;
            for (at, class) in classes.iter().enumerate() {
                active += u64::from(put_slab(work, &mut lines, at + 1, class));
            }
            put(&mut lines, "active_slabs", active);
            put(&mut lines, "total_malloced", work.database.arena().occupied());
        }
        _ => {}
    }
    Ok(lines)
}

fn put_items(work: &Work<'_>, lines: &mut Lines, number: usize, class: &Class) {
    if class.items == 0 {
        return;
    }
    let left = work.door.survey.left(number);
    for (name, value) in [
        ("number", class.items),
        ("number_hot", 0),
        ("number_warm", 0),
        ("number_cold", class.items),
        ("age_hot", 0),
        ("age_warm", 0),
        ("age", 0),
        ("mem_requested", class.bytes),
        ("evicted", left.evicted),
        ("evicted_nonzero", left.evicted_timed),
        ("evicted_time", 0),
        ("outofmemory", left.refused),
        ("tailrepairs", 0),
        ("reclaimed", left.expired),
        ("expired_unfetched", 0),
        ("evicted_unfetched", 0),
        ("evicted_active", 0),
        ("crawler_reclaimed", left.swept),
    ] {
        put(lines, &format!("items:{number}:{name}"), value);
    }
}

/// True if there is, or was, something in a class.
fn put_slab(work: &Work<'_>, lines: &mut Lines, number: usize, class: &Class) -> bool {
    let left = work.door.survey.left(number);
    if class.items == 0 && left.expired + left.evicted == 0 {
        return false;
    }
    let chunk = chunk_bytes(number);
    let per_page = PAGE_BYTES / chunk;
    let pages = class.chunks.div_ceil(per_page);
    for (name, value) in [
        ("chunk_size", chunk),
        ("chunks_per_page", per_page),
        ("total_pages", pages),
        ("total_chunks", pages * per_page),
        ("used_chunks", class.chunks),
        ("free_chunks", pages * per_page - class.chunks),
        ("free_chunks_end", 0),
    ] {
        put(lines, &format!("{number}:{name}"), value);
    }
    true
}
