//! The server as Redis' clients see it: `INFO`, `TIME`, `MEMORY` and the like.

use super::call::{Call, Kind};
use super::connection::REDIS_VERSION;
use super::failure::Outcome;
use super::keys::fields_of;
use super::scripts::{help, unknown_subcommand};
use super::shared::DATABASES;

/// A section of `INFO`.
type Section = (&'static str, fn(&Call<'_>) -> Vec<(String, String)>);

fn pairs(list: &[(&str, String)]) -> Vec<(String, String)> {
    list.iter().map(|(name, value)| (name.to_string(), value.clone())).collect()
}

fn human(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes}B"),
        1024..1_048_576 => format!("{:.2}K", bytes as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.2}M", bytes as f64 / 1_048_576.0),
        _ => format!("{:.2}G", bytes as f64 / 1_073_741_824.0),
    }
}

fn server_section(call: &Call<'_>) -> Vec<(String, String)> {
    let database = call.database;
    let seconds = database.uptime_ns() / 1_000_000_000;
    let now_us = database.environment().clock.wall_ns() / 1000;
    pairs(&[
        ("redis_version", REDIS_VERSION.to_string()),
        // As of a release, which no commit of Redis' is behind.
        ("redis_git_sha1", "00000000".to_string()),
        ("redis_git_dirty", "0".to_string()),
        ("lycosa_version", env!("CARGO_PKG_VERSION").to_string()),
        ("redis_mode", "standalone".to_string()),
        ("os", std::env::consts::OS.to_string()),
        ("arch_bits", usize::BITS.to_string()),
        ("process_id", std::process::id().to_string()),
        ("run_id", database.instance_uuid().replace('-', "")),
        ("server_time_usec", now_us.to_string()),
        ("uptime_in_seconds", seconds.to_string()),
        ("uptime_in_days", (seconds / 86400).to_string()),
    ])
}

fn clients_section(call: &Call<'_>) -> Vec<(String, String)> {
    pairs(&[
        ("connected_clients", call.shared.connections.borrow().len().to_string()),
        ("maxclients", call.connection.service.config.connections_max.to_string()),
        ("blocked_clients", (call.shared.waiting_count() + call.shared.paused.get()).to_string()),
        ("tracking_clients", call.shared.tracking.borrow().counts()[0].to_string()),
        ("pubsub_clients", call.shared.channels.borrow().len().to_string()),
    ])
}

fn memory_section(call: &Call<'_>) -> Vec<(String, String)> {
    let (used, limit) = (call.database.arena().used() as u64, call.database.arena().limit() as u64);
    let waiting = call.shared.leftovers.borrow().len() + usize::from(call.shared.is_freeing.get());
    pairs(&[
        ("used_memory", used.to_string()),
        ("used_memory_human", human(used)),
        ("maxmemory", limit.to_string()),
        ("maxmemory_human", human(limit)),
        ("maxmemory_policy", "noeviction".to_string()),
        ("mem_allocator", "lycosa".to_string()),
        ("lazyfree_pending_objects", waiting.to_string()),
        ("lazyfreed_objects", call.shared.freed.get().to_string()),
        ("number_of_cached_scripts", call.shared.scripts.borrow().count().to_string()),
    ])
}

fn persistence_section(call: &Call<'_>) -> Vec<(String, String)> {
    let mode = format!("{:?}", call.database.config.borrow().wal_mode).to_lowercase();
    pairs(&[
        ("loading", "0".to_string()),
        ("aof_enabled", "1".to_string()),
        ("wal_mode", mode),
        ("rdb_changes_since_last_save", call.shared.changes.get().to_string()),
        ("rdb_bgsave_in_progress", "0".to_string()),
        ("rdb_last_bgsave_status", "ok".to_string()),
        ("aof_last_write_status", "ok".to_string()),
    ])
}

/// Keys that had to make room.
fn evicted(call: &Call<'_>) -> u64 {
    let of =
        |db| call.spaces.keys(db).ok().and_then(|space| space.eviction_counts()).map_or(0, |counts| counts.evicted);
    (0..DATABASES).map(of).sum()
}

fn stats_section(call: &Call<'_>) -> Vec<(String, String)> {
    let statistics = &call.database.statistics;
    let tracked = call.shared.tracking.borrow().counts();
    pairs(&[
        ("total_connections_received", statistics.connections.get().to_string()),
        ("total_commands_processed", call.shared.stats.calls_total().to_string()),
        ("total_error_replies", call.shared.stats.errors_total.get().to_string()),
        ("total_net_input_bytes", statistics.received_bytes.get().to_string()),
        ("total_net_output_bytes", statistics.sent_bytes.get().to_string()),
        ("expired_keys", call.database.expiry_counts().removed.to_string()),
        ("evicted_keys", evicted(call).to_string()),
        ("keyspace_hits", call.shared.hits.get().to_string()),
        ("keyspace_misses", call.shared.misses.get().to_string()),
        ("pubsub_channels", call.shared.channels.borrow().len().to_string()),
        ("pubsub_patterns", call.shared.patterns.borrow().len().to_string()),
        ("pubsubshard_channels", call.shared.shard_channels.borrow().len().to_string()),
        ("tracking_total_keys", tracked[1].to_string()),
        ("tracking_total_items", tracked[2].to_string()),
        ("tracking_total_prefixes", tracked[3].to_string()),
    ])
}

fn replication_section(_call: &Call<'_>) -> Vec<(String, String)> {
    pairs(&[
        ("role", "master".to_string()),
        ("connected_slaves", "0".to_string()),
        ("master_replid", "0".repeat(40)),
        ("master_repl_offset", "0".to_string()),
    ])
}

fn cpu_section(call: &Call<'_>) -> Vec<(String, String)> {
    let used = call.database.environment().clock.processor_time();
    let seconds = |us: u64| format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    pairs(&[("used_cpu_sys", seconds(used.system_us)), ("used_cpu_user", seconds(used.user_us))])
}

fn cluster_section(_call: &Call<'_>) -> Vec<(String, String)> {
    pairs(&[("cluster_enabled", "0".to_string())])
}

fn keyspace_section(call: &Call<'_>) -> Vec<(String, String)> {
    let count = |db| call.spaces.keys(db).ok().filter(|_| call.spaces.has_keys(db)).map_or(0, |space| space.rows.len());
    let used = (0..DATABASES).map(|db| (db, count(db))).filter(|(_, count)| *count > 0);
    used.map(|(db, count)| (format!("db{db}"), format!("keys={count},expires=0,avg_ttl=0"))).collect()
}

fn modules_section(_call: &Call<'_>) -> Vec<(String, String)> {
    Vec::new()
}

fn commands_section(call: &Call<'_>) -> Vec<(String, String)> {
    call.shared.stats.command_lines()
}

fn errors_section(call: &Call<'_>) -> Vec<(String, String)> {
    call.shared.stats.error_lines()
}

fn latencies_section(call: &Call<'_>) -> Vec<(String, String)> {
    call.shared.stats.latency_lines()
}

/// Sections that `INFO` without words has, and others.
const SECTIONS: [(Section, bool); 13] = [
    (("Server", server_section), true),
    (("Clients", clients_section), true),
    (("Memory", memory_section), true),
    (("Persistence", persistence_section), true),
    (("Stats", stats_section), true),
    (("Replication", replication_section), true),
    (("CPU", cpu_section), true),
    (("Modules", modules_section), true),
    (("Commandstats", commands_section), false),
    (("Errorstats", errors_section), true),
    (("Latencystats", latencies_section), false),
    (("Cluster", cluster_section), true),
    (("Keyspace", keyspace_section), true),
];

pub(super) fn info(call: &mut Call<'_>) -> Outcome {
    let is_wanted = |name: &str, is_default: bool| {
        let asked = &call.args[1..];
        let is = |word: &&[u8], name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        asked.is_empty() && is_default
            || asked.iter().any(|word| {
                is(word, name) || is(word, "all") || is(word, "everything") || is_default && is(word, "default")
            })
    };
    let mut text = String::new();
    for ((name, section), is_default) in SECTIONS {
        if is_wanted(name, is_default) {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            text.push_str(&format!("# {name}\r\n"));
            for (name, value) in section(call) {
                text.push_str(&format!("{name}:{value}\r\n"));
            }
        }
    }
    call.reply().verbatim(&text);
    Ok(())
}

pub(super) fn time(call: &mut Call<'_>) -> Outcome {
    let us = call.database.environment().clock.wall_ns() / 1000;
    let mut reply = call.reply();
    reply.array(2);
    reply.text(&(us / 1_000_000).to_string());
    reply.text(&(us % 1_000_000).to_string());
    Ok(())
}

pub(super) fn lolwut(call: &mut Call<'_>) -> Outcome {
    call.reply()
        .verbatim(&format!("Lycosa {}: a wolf spider carries its young on its back.\n", env!("CARGO_PKG_VERSION")));
    Ok(())
}

/// Snapshots: `SAVE` and `BGSAVE` make a checkpoint.
pub(super) fn save(call: &mut Call<'_>) -> Outcome {
    call.check_writer()?;
    call.go_into_fiber()?;
    call.database.make_checkpoint()?;
    call.shared.changes.set(0);
    let text = match call.args[0].to_ascii_lowercase().as_slice() {
        b"bgsave" => "Background saving started",
        b"bgrewriteaof" => "Background append only file rewriting started",
        _ => "OK",
    };
    call.reply().simple(text);
    Ok(())
}

pub(super) fn lastsave(call: &mut Call<'_>) -> Outcome {
    let seconds = call.database.environment().clock.wall_ns() / 1_000_000_000;
    let begun = seconds.saturating_sub(call.database.uptime_ns() / 1_000_000_000);
    call.reply().integer(begun as i64);
    Ok(())
}

const MODULE_HELP: &[&str] = &[
    "MODULE <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "LIST",
    "    Returns modules, of which there are none.",
    "LOAD <path> [<arg> ...]",
    "LOADEX <path> [[CONFIG NAME VALUE]...] [ARGS ...]",
    "UNLOAD <name>",
    "    Are refused: there are no modules here.",
    "HELP",
    "    Prints this help.",
];

/// `MODULE`: there are none.
pub(super) fn module(call: &mut Call<'_>) -> Outcome {
    match (call.args[1].to_ascii_lowercase().as_slice(), call.args.len()) {
        (b"list", 2) => call.reply().array(0),
        (b"help", 2) => help(call, MODULE_HELP),
        (b"load" | b"loadex", 3..) => {
            return Err("ERR MODULE LOAD is not there: commands are those of this server".into());
        }
        (b"unload", 3) => {
            return Err("ERR Error unloading module: no such module with that name".into());
        }
        _ => return Err(unknown_subcommand(call, "module", &["list", "load", "loadex", "unload", "help"])),
    }
    Ok(())
}

/// What is about several machines, or would stop this one.
pub(super) fn refused(call: &mut Call<'_>) -> Outcome {
    let name = String::from_utf8_lossy(call.args[0]).to_uppercase();
    Err(match name.as_str() {
        "CLUSTER" | "ASKING" | "READONLY" | "READWRITE" => "ERR This instance has cluster support disabled".to_string(),
        "SHUTDOWN" => "ERR SHUTDOWN is not for clients: stop the server where it was started".to_string(),
        _ => format!("ERR {name} is not there: this server replicates in no way that Redis knows"),
    }
    .into())
}

pub(super) fn role(call: &mut Call<'_>) -> Outcome {
    let mut reply = call.reply();
    reply.array(3);
    reply.text("master");
    reply.integer(0);
    reply.array(0);
    Ok(())
}

/// Bytes of a key with what it has: its row, and those of its elements as far as a sample tells.
pub(super) fn memory(call: &mut Call<'_>) -> Outcome {
    /// Elements that are looked at.
    const SAMPLE: u64 = 100;
    /// Header of a row and its entry in an index.
    const ROW_OVERHEAD: u64 = 26;
    if call.is_word(1, "usage") && call.args.len() >= 3 {
        let Some(entry) = call.find(call.args[2])? else {
            call.reply().null();
            return Ok(());
        };
        let mut bytes = entry.row_bytes() as u64 + ROW_OVERHEAD;
        if let Some(head) = entry.head.filter(|head| head.count > 0) {
            let (mut seen, mut sampled) = (0, 0);
            let small = super::call::Head { count: 0, ..head };
            call.walk(&small, |reader| {
                seen += 1;
                sampled += reader.rest().len() as u64 + ROW_OVERHEAD + 10;
                seen < SAMPLE
            })?;
            let _ = fields_of(head.kind);
            bytes += (sampled / seen.max(1)) * head.count;
            if head.kind == Kind::SortedSet {
                bytes += head.count * 16;
            }
        }
        call.reply().integer(bytes as i64);
    } else if call.is_word(1, "doctor") {
        call.reply().verbatim("Rows are in an arena with a limit (memtx_memory); see box.slab.info().\n");
    } else if call.is_word(1, "stats") {
        let used = call.database.arena().used();
        let mut reply = call.reply();
        reply.map(1);
        reply.text("total.allocated");
        reply.count(used);
    } else if call.is_word(1, "purge") {
        call.reply().ok();
    } else {
        let name = String::from_utf8_lossy(call.args[1]).into_owned();
        return Err(
            format!("ERR unknown subcommand or wrong number of arguments for '{name}'. Try MEMORY HELP.").into()
        );
    }
    Ok(())
}
