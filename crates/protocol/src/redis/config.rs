//! `CONFIG`: what clients ask for. What has a meaning here is this server's own; what has none is remembered, so that programs that set it go on.

use super::call::Call;
use super::failure::{Failure, Outcome};
use super::glob::matches;
use super::{attention, events, measure, tracking, uses};
use std::collections::BTreeMap;
use wal::WalMode;

/// What a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    YesNo,
    Number,
    /// Bytes, perhaps with a unit.
    Bytes,
    /// The same, or a share of the memory.
    Share,
    Choice(&'static [&'static str]),
    /// It cannot be set.
    Fixed,
    /// It is shown only to those who name it.
    Hidden,
}

/// Parameters and what they are until somebody sets them.
const DEFAULTS: &[(&str, &str, Kind)] = &[
    ("appendfsync", "always", Kind::Text),
    ("appendonly", "yes", Kind::YesNo),
    ("bind", "", Kind::Text),
    ("dir", "", Kind::Text),
    ("maxclients", "100000", Kind::Number),
    ("maxmemory", "0", Kind::Bytes),
    ("notify-keyspace-events", "", Kind::Text),
    ("port", "0", Kind::Number),
    ("requirepass", "", Kind::Text),
    ("acl-pubsub-default", "resetchannels", Kind::Choice(&["allchannels", "resetchannels"])),
    ("aclfile", "", Kind::Fixed),
    ("acllog-max-len", "128", Kind::Number),
    ("active-defrag-cycle-max", "25", Kind::Number),
    ("active-defrag-cycle-min", "1", Kind::Number),
    ("active-defrag-ignore-bytes", "104857600", Kind::Bytes),
    ("active-defrag-max-scan-fields", "1000", Kind::Number),
    ("active-defrag-threshold-lower", "10", Kind::Number),
    ("active-defrag-threshold-upper", "100", Kind::Number),
    ("active-expire-effort", "1", Kind::Number),
    ("activedefrag", "no", Kind::YesNo),
    ("activerehashing", "yes", Kind::YesNo),
    ("always-show-logo", "no", Kind::Fixed),
    ("aof-disable-auto-gc", "no", Kind::YesNo),
    ("aof-load-truncated", "yes", Kind::YesNo),
    ("aof-rewrite-incremental-fsync", "yes", Kind::YesNo),
    ("aof-timestamp-enabled", "no", Kind::YesNo),
    ("aof-use-rdb-preamble", "yes", Kind::YesNo),
    ("aof_rewrite_cpulist", "", Kind::Fixed),
    ("appenddirname", "appendonlydir", Kind::Fixed),
    ("appendfilename", "appendonly.aof", Kind::Fixed),
    ("auto-aof-rewrite-min-size", "67108864", Kind::Bytes),
    ("auto-aof-rewrite-percentage", "100", Kind::Number),
    ("bgsave_cpulist", "", Kind::Fixed),
    ("bind-source-addr", "", Kind::Text),
    ("bio_cpulist", "", Kind::Fixed),
    ("busy-reply-threshold", "5000", Kind::Number),
    ("client-output-buffer-limit", "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60", Kind::Text),
    ("client-query-buffer-limit", "1073741824", Kind::Bytes),
    ("cluster-enabled", "no", Kind::Fixed),
    ("crash-log-enabled", "yes", Kind::YesNo),
    ("crash-memcheck-enabled", "yes", Kind::YesNo),
    ("daemonize", "no", Kind::Fixed),
    ("databases", "16", Kind::Fixed),
    ("dbfilename", "dump.rdb", Kind::Text),
    ("disable-thp", "yes", Kind::Fixed),
    ("dynamic-hz", "yes", Kind::YesNo),
    ("enable-debug-command", "no", Kind::Fixed),
    ("enable-module-command", "no", Kind::Fixed),
    ("enable-protected-configs", "no", Kind::Fixed),
    ("hash-max-listpack-entries", "512", Kind::Number),
    ("hash-max-listpack-value", "64", Kind::Number),
    ("hll-sparse-max-bytes", "3000", Kind::Number),
    ("hz", "10", Kind::Number),
    ("io-threads", "1", Kind::Fixed),
    ("io-threads-do-reads", "no", Kind::Fixed),
    ("jemalloc-bg-thread", "yes", Kind::YesNo),
    ("key-load-delay", "0", Kind::Hidden),
    ("latency-monitor-threshold", "0", Kind::Number),
    ("latency-tracking", "yes", Kind::YesNo),
    ("latency-tracking-info-percentiles", "50 99 99.9", Kind::Text),
    ("lazyfree-lazy-eviction", "no", Kind::YesNo),
    ("lazyfree-lazy-expire", "no", Kind::YesNo),
    ("lazyfree-lazy-server-del", "no", Kind::YesNo),
    ("lazyfree-lazy-user-del", "no", Kind::YesNo),
    ("lazyfree-lazy-user-flush", "no", Kind::YesNo),
    ("lfu-decay-time", "1", Kind::Number),
    ("lfu-log-factor", "10", Kind::Number),
    ("list-compress-depth", "0", Kind::Number),
    ("list-max-listpack-size", "-2", Kind::Number),
    ("loading-process-events-interval-bytes", "2097152", Kind::Hidden),
    ("loglevel", "notice", Kind::Choice(&["debug", "verbose", "notice", "warning"])),
    ("masterauth", "", Kind::Text),
    ("masteruser", "", Kind::Text),
    ("maxmemory-clients", "0", Kind::Share),
    ("maxmemory-eviction-tenacity", "10", Kind::Number),
    (
        "maxmemory-policy",
        "noeviction",
        Kind::Choice(&[
            "volatile-lru",
            "volatile-lfu",
            "volatile-random",
            "volatile-ttl",
            "allkeys-lru",
            "allkeys-lfu",
            "allkeys-random",
            "noeviction",
        ]),
    ),
    ("maxmemory-samples", "5", Kind::Number),
    ("min-replicas-max-lag", "10", Kind::Number),
    ("min-replicas-to-write", "0", Kind::Number),
    ("no-appendfsync-on-rewrite", "no", Kind::YesNo),
    ("oom-score-adj", "no", Kind::Choice(&["no", "yes", "relative", "absolute"])),
    ("oom-score-adj-values", "0 200 800", Kind::Text),
    ("proc-title-template", "{title} {listen-addr} {server-mode}", Kind::Text),
    ("propagation-error-behavior", "ignore", Kind::Choice(&["ignore", "panic", "panic-on-replicas"])),
    ("protected-mode", "yes", Kind::YesNo),
    ("proto-max-bulk-len", "536870912", Kind::Bytes),
    ("rdb-del-sync-files", "no", Kind::YesNo),
    ("rdb-key-save-delay", "0", Kind::Hidden),
    ("rdb-save-incremental-fsync", "yes", Kind::YesNo),
    ("rdbchecksum", "yes", Kind::Fixed),
    ("rdbcompression", "yes", Kind::YesNo),
    ("repl-backlog-size", "1048576", Kind::Bytes),
    ("repl-backlog-ttl", "3600", Kind::Number),
    ("repl-disable-tcp-nodelay", "no", Kind::YesNo),
    ("repl-diskless-load", "disabled", Kind::Choice(&["disabled", "on-empty-db", "swapdb"])),
    ("repl-diskless-sync", "yes", Kind::YesNo),
    ("repl-diskless-sync-delay", "5", Kind::Number),
    ("repl-diskless-sync-max-replicas", "0", Kind::Number),
    ("repl-ping-replica-period", "10", Kind::Number),
    ("repl-timeout", "60", Kind::Number),
    ("replica-announce-ip", "", Kind::Text),
    ("replica-announce-port", "0", Kind::Number),
    ("replica-announced", "yes", Kind::YesNo),
    ("replica-ignore-disk-write-errors", "no", Kind::YesNo),
    ("replica-ignore-maxmemory", "yes", Kind::YesNo),
    ("replica-lazy-flush", "no", Kind::YesNo),
    ("replica-priority", "100", Kind::Number),
    ("replica-read-only", "yes", Kind::YesNo),
    ("replica-serve-stale-data", "yes", Kind::YesNo),
    ("replicaof", "", Kind::Fixed),
    ("sanitize-dump-payload", "no", Kind::Choice(&["no", "yes", "clients"])),
    ("save", "", Kind::Text),
    ("server_cpulist", "", Kind::Fixed),
    ("set-max-intset-entries", "512", Kind::Number),
    ("set-proc-title", "yes", Kind::Fixed),
    ("shutdown-on-sigint", "default", Kind::Text),
    ("shutdown-on-sigterm", "default", Kind::Text),
    ("shutdown-timeout", "10", Kind::Number),
    ("slowlog-log-slower-than", "10000", Kind::Number),
    ("slowlog-max-len", "128", Kind::Number),
    ("socket-mark-id", "0", Kind::Fixed),
    ("stop-writes-on-bgsave-error", "yes", Kind::YesNo),
    ("stream-node-max-bytes", "4096", Kind::Bytes),
    ("stream-node-max-entries", "100", Kind::Number),
    ("supervised", "no", Kind::Fixed),
    ("syslog-enabled", "no", Kind::Fixed),
    ("syslog-facility", "local0", Kind::Fixed),
    ("syslog-ident", "redis", Kind::Fixed),
    ("tcp-backlog", "511", Kind::Fixed),
    ("tcp-keepalive", "300", Kind::Number),
    ("timeout", "0", Kind::Number),
    ("tracking-table-max-keys", "1000000", Kind::Number),
    ("unixsocket", "", Kind::Fixed),
    ("unixsocketperm", "0", Kind::Fixed),
    ("use-exit-on-panic", "no", Kind::Hidden),
    ("zset-max-listpack-entries", "128", Kind::Number),
    ("zset-max-listpack-value", "64", Kind::Number),
];

/// Older names of the same.
const ALIASES: &[(&str, &str)] = &[
    ("hash-max-ziplist-entries", "hash-max-listpack-entries"),
    ("hash-max-ziplist-value", "hash-max-listpack-value"),
    ("list-max-ziplist-size", "list-max-listpack-size"),
    ("lua-time-limit", "busy-reply-threshold"),
    ("min-slaves-max-lag", "min-replicas-max-lag"),
    ("min-slaves-to-write", "min-replicas-to-write"),
    ("repl-ping-slave-period", "repl-ping-replica-period"),
    ("slave-announce-ip", "replica-announce-ip"),
    ("slave-announce-port", "replica-announce-port"),
    ("slave-ignore-maxmemory", "replica-ignore-maxmemory"),
    ("slave-lazy-flush", "replica-lazy-flush"),
    ("slave-priority", "replica-priority"),
    ("slave-read-only", "replica-read-only"),
    ("slave-serve-stale-data", "replica-serve-stale-data"),
    ("slaveof", "replicaof"),
    ("zset-max-ziplist-entries", "zset-max-listpack-entries"),
    ("zset-max-ziplist-value", "zset-max-listpack-value"),
];

/// Parameters that belong to this server's own options.
const OWN: &[(&str, &str)] = &[
    ("appendfsync", "here that is wal_mode: set it where the server is configured"),
    ("appendonly", "here that is wal_mode: set it where the server is configured"),
    ("bind", "here that is listen: set it where the server is configured"),
    ("dir", "here that is work_dir: set it where the server is configured"),
    ("maxclients", "here that is the bound of connections: set it where the server is configured"),
    ("port", "Unable to listen on this port: here that is listen, set where the server is configured"),
    ("requirepass", "here passwords are those of users: box.schema.user.passwd"),
];

fn values(call: &Call<'_>) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> =
        DEFAULTS.iter().map(|(name, value, _)| (name.to_string(), value.to_string())).collect();
    let config = call.database.config.borrow();
    all.insert("dir".to_string(), config.wal_dir.display().to_string());
    let bound = Some(call.shared.maxmemory.get()).filter(|bytes| *bytes > 0).unwrap_or(config.memtx_memory);
    all.insert("maxmemory".to_string(), bound.to_string());
    drop(config);
    all.extend(call.shared.config.borrow().clone());
    for (alias, name) in ALIASES {
        let value = all.get(*name).cloned().unwrap_or_default();
        all.insert(alias.to_string(), value);
    }
    all
}

/// A number of bytes, perhaps with a unit.
fn bytes(text: &str) -> Option<u64> {
    let text = text.to_ascii_lowercase();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let factor: u64 = match &text[digits.len()..] {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

fn canonical(name: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name)
}

/// A parameter that is a number; one that is none counts as 0.
pub(super) fn number(call: &Call<'_>, name: &str) -> u64 {
    let name = canonical(name);
    if let Some(value) = call.shared.config.borrow().get(name) {
        return value.parse().unwrap_or(0);
    }
    DEFAULTS.iter().find(|(known, ..)| *known == name).map_or(0, |(_, value, _)| value.parse().unwrap_or(0))
}

fn failed(name: &str, why: &str) -> Failure {
    format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}").into()
}

/// A value as it is kept. Errors: the parameter takes no such.
fn checked(kind: Kind, name: &str, value: &str) -> Outcome<String> {
    let lower = value.to_ascii_lowercase();
    Ok(match kind {
        Kind::Text | Kind::Hidden => value.to_string(),
        Kind::Fixed => return Err(failed(name, "can't set immutable config")),
        Kind::YesNo if lower == "yes" || lower == "no" => lower,
        Kind::YesNo => return Err(failed(name, "argument must be 'yes' or 'no'")),
        Kind::Number => {
            let number: i64 = value.parse().map_err(|_| failed(name, "argument couldn't be parsed into an integer"))?;
            if number < 0 && !matches!(canonical(name), "slowlog-log-slower-than" | "list-max-listpack-size") {
                return Err(failed(name, "argument must be between 0 and 9223372036854775807 inclusive"));
            }
            number.to_string()
        }
        Kind::Share if value.ends_with('%') => {
            let share = value.trim_end_matches('%').parse::<u64>();
            match share {
                Ok(0..=100) => value.to_string(),
                Ok(_) => return Err(failed(name, "percentage argument must be less or equal to 100")),
                Err(_) => return Err(failed(name, "argument must be a memory or percent value")),
            }
        }
        Kind::Share => {
            bytes(value).ok_or_else(|| failed(name, "argument must be a memory or percent value"))?.to_string()
        }
        Kind::Bytes => bytes(value).ok_or_else(|| failed(name, "argument must be a memory value"))?.to_string(),
        Kind::Choice(words) if words.contains(&lower.as_str()) => lower,
        Kind::Choice(words) => {
            return Err(failed(name, &format!("argument(s) must be one of the following: {}", words.join(", "))));
        }
    })
}

/// Percentiles in words. None: one of them is none.
fn percentiles(text: &str) -> Option<Vec<f64>> {
    let read = |word: &str| word.parse::<f64>().ok().filter(|number| (0.0..=100.0).contains(number));
    text.split_ascii_whitespace().take(100).map(read).collect()
}

/// True if what is acknowledged is on the disk.
fn is_synced(call: &Call<'_>) -> bool {
    call.database.config.borrow().wal_mode == WalMode::Fsync
}

/// Rows make room for others by what their space says. Errors: a policy is wanted together with a bound that would need it.
fn check_eviction(call: &Call<'_>, changes: &[(String, String)]) -> Outcome {
    let changed = |name: &str| changes.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let kept = || call.shared.config.borrow().get("maxmemory-policy").cloned();
    let policy = changed("maxmemory-policy").or_else(kept).unwrap_or_else(|| "noeviction".to_string());
    let bound = changed("maxmemory").and_then(|value| value.parse().ok()).unwrap_or(call.shared.maxmemory.get());
    match policy == "noeviction" || bound == 0 {
        true => Ok(()),
        false => Err(failed(
            "maxmemory-policy",
            "here spaces evict: box.space.redis:alter{memory_limit = bytes, eviction = 'clock'}",
        )),
    }
}

/// Looks at one parameter. Returns how it is kept.
fn look_at(call: &Call<'_>, name: &str, value: &str) -> Outcome<String> {
    let Some((known, _, kind)) = DEFAULTS.iter().find(|(known, ..)| *known == canonical(name)) else {
        return Err(format!("ERR Unknown option or number of arguments for CONFIG SET - '{name}'").into());
    };
    if let Some((_, why)) = OWN.iter().find(|(own, _)| own == known) {
        let is_same = values(call).get(*known).is_some_and(|now| now == value);
        // Who asks for less than the log keeps anyway gets more than was asked for.
        let is_less = match *known {
            "appendonly" => checked(Kind::YesNo, name, value).is_ok(),
            "appendfsync" => matches!(value, "everysec" | "no") || value == "always" && is_synced(call),
            _ => false,
        };
        return if is_same || is_less { Ok(value.to_string()) } else { Err(failed(name, why)) };
    }
    let kept = checked(*kind, name, value)?;
    match *known {
        "notify-keyspace-events" => events::parse(value.as_bytes())
            .map(events::text)
            .ok_or_else(|| failed(name, "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")),
        "latency-tracking-info-percentiles" => match percentiles(value) {
            Some(list) => Ok(list.iter().map(f64::to_string).collect::<Vec<String>>().join(" ")),
            None => Err(failed(name, "latency-tracking-info-percentiles should contain values between 0.0 and 100.0")),
        },
        _ => Ok(kept),
    }
}

/// Has a parameter do what it does here.
fn apply(call: &Call<'_>, name: &str, value: &str) {
    let (shared, number) = (call.shared, value.parse::<i64>().unwrap_or(0));
    let unsigned = u64::try_from(number).unwrap_or(0);
    match canonical(name) {
        "maxmemory" => shared.maxmemory.set(unsigned),
        "busy-reply-threshold" => shared.busy_after_ms.set(unsigned.max(1)),
        "tracking-table-max-keys" => {
            shared.tracked_keys_max.set(usize::try_from(unsigned).unwrap_or(usize::MAX));
            tracking::shrink(shared);
        }
        "maxmemory-policy" => shared.note_uses(uses::is_wanted_by(value), call.database.now_ms()),
        "acllog-max-len" => shared.refusals.borrow_mut().keep(unsigned),
        "slowlog-log-slower-than" => {
            shared.stats.slow_us.set(number);
            attention::measure(shared);
        }
        "slowlog-max-len" => shared.stats.slow_entries.set(measure::slow_entries_of(unsigned)),
        "latency-monitor-threshold" => {
            shared.stats.event_ms.set(unsigned);
            attention::measure(shared);
        }
        "latency-tracking" => {
            shared.stats.keeps_durations.set(value == "yes");
            attention::measure(shared);
        }
        "latency-tracking-info-percentiles" => {
            *shared.stats.percentiles.borrow_mut() = percentiles(value).unwrap_or_default();
        }
        _ => {}
    }
}

const HELP: &[&str] = &[
    "CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GET <pattern> ...",
    "    Returns parameters whose names fit.",
    "SET <directive> <value> ...",
    "    Sets parameters, all or none.",
    "RESETSTAT",
    "    Sets counters to zero.",
    "REWRITE",
    "    Is refused: this server's options are where it is configured.",
    "HELP",
    "    Prints this help.",
];

pub(super) fn config(call: &mut Call<'_>) -> Outcome {
    if call.is_word(1, "get") && call.args.len() >= 3 {
        let all = values(call);
        let asked: Vec<Vec<u8>> = call.args[2..].iter().map(|pattern| pattern.to_ascii_lowercase()).collect();
        let is_hidden = |name: &str| DEFAULTS.iter().any(|(known, _, kind)| *known == name && *kind == Kind::Hidden);
        let wanted = |name: &str| match is_hidden(name) {
            true => asked.iter().any(|asked| asked == name.as_bytes()),
            false => asked.iter().any(|pattern| matches(pattern, name.as_bytes())),
        };
        // What may be secret is for those who may set it.
        let may_set = call.check_writer().is_ok();
        let is_shown = |name: &str| may_set || !matches!(name, "masterauth" | "masteruser" | "requirepass");
        let found: Vec<_> = all.iter().filter(|(name, _)| wanted(name) && is_shown(name)).collect();
        let mut reply = call.reply();
        reply.map(found.len());
        for (name, value) in found {
            reply.text(name);
            reply.text(value);
        }
    } else if call.is_word(1, "set") && call.args.len() >= 4 && call.args.len().is_multiple_of(2) {
        call.check_writer()?;
        let mut notify = None;
        let mut changes: Vec<(String, String)> = Vec::new();
        for pair in call.args[2..].chunks_exact(2) {
            let name = String::from_utf8_lossy(pair[0]).to_lowercase();
            let value = String::from_utf8_lossy(pair[1]).into_owned();
            if changes.iter().any(|(known, _)| canonical(known) == canonical(&name)) {
                return Err(failed(&name, "duplicate parameter"));
            }
            let kept = look_at(call, &name, &value)?;
            // Classes of events are shown as fewer letters than were given.
            if name == "notify-keyspace-events" {
                notify = events::parse(value.as_bytes());
            }
            changes.push((name, kept));
        }
        check_eviction(call, &changes)?;
        for (name, value) in changes {
            apply(call, &name, &value);
            if !OWN.iter().any(|(own, _)| *own == name) && name != "maxmemory" {
                call.shared.config.borrow_mut().insert(canonical(&name).to_string(), value);
            }
        }
        if let Some(classes) = notify {
            call.shared.notify.set(classes);
            events::look_again(call.shared, call.database);
        }
        call.reply().ok();
    } else if call.is_word(1, "resetstat") && call.args.len() == 2 {
        call.check_writer()?;
        [&call.shared.hits, &call.shared.misses, &call.shared.freed].iter().for_each(|counter| counter.set(0));
        call.shared.stats.reset();
        attention::measure(call.shared);
        call.reply().ok();
    } else if call.is_word(1, "rewrite") && call.args.len() == 2 {
        return Err("ERR The server is running without a config file".into());
    } else if call.is_word(1, "help") && call.args.len() == 2 {
        super::scripts::help(call, HELP);
    } else {
        return Err(super::scripts::unknown_subcommand(
            call,
            "config",
            &["get", "set", "resetstat", "rewrite", "help"],
        ));
    }
    Ok(())
}
