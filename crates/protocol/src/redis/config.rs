//! `CONFIG`: what clients ask for. What has a meaning here is this server's own; what has none is remembered, so that programs that set it go on.

use super::call::Call;
use super::failure::Outcome;
use super::glob::matches;
use std::collections::BTreeMap;

/// Parameters and what they are until somebody sets them.
const DEFAULTS: &[(&str, &str)] = &[
    ("activerehashing", "yes"),
    ("aof-use-rdb-preamble", "yes"),
    ("appendfsync", "always"),
    ("appendonly", "yes"),
    ("bind", ""),
    ("client-output-buffer-limit", "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"),
    ("databases", "16"),
    ("dir", ""),
    ("hash-max-listpack-entries", "128"),
    ("hash-max-listpack-value", "64"),
    ("hash-max-ziplist-entries", "128"),
    ("hash-max-ziplist-value", "64"),
    ("hll-sparse-max-bytes", "3000"),
    ("hz", "10"),
    ("latency-monitor-threshold", "0"),
    ("lfu-decay-time", "1"),
    ("lfu-log-factor", "10"),
    ("list-compress-depth", "0"),
    ("list-max-listpack-size", "-2"),
    ("list-max-ziplist-size", "-2"),
    ("lua-time-limit", "5000"),
    ("maxclients", "100000"),
    ("maxmemory", "0"),
    ("maxmemory-policy", "noeviction"),
    ("maxmemory-samples", "5"),
    ("min-replicas-to-write", "0"),
    ("notify-keyspace-events", ""),
    ("port", "0"),
    ("proto-max-bulk-len", "536870912"),
    ("requirepass", ""),
    ("save", ""),
    ("set-max-intset-entries", "512"),
    ("slowlog-log-slower-than", "10000"),
    ("slowlog-max-len", "128"),
    ("stream-node-max-bytes", "4096"),
    ("stream-node-max-entries", "100"),
    ("tcp-keepalive", "300"),
    ("timeout", "0"),
    ("zset-max-listpack-entries", "128"),
    ("zset-max-listpack-value", "64"),
    ("zset-max-ziplist-entries", "128"),
    ("zset-max-ziplist-value", "64"),
];
/// Parameters that belong to this server's own options.
const OWN: &[(&str, &str)] = &[
    ("appendfsync", "wal_mode"),
    ("appendonly", "wal_mode"),
    ("bind", "listen"),
    ("dir", "work_dir"),
    ("maxclients", "the bound of connections"),
    ("port", "listen"),
    ("requirepass", "users and their passwords"),
];

fn values(call: &Call<'_>) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> =
        DEFAULTS.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let config = call.database.config.borrow();
    all.insert("dir".to_string(), config.wal_dir.display().to_string());
    let bound = Some(call.shared.maxmemory.get()).filter(|bytes| *bytes > 0).unwrap_or(config.memtx_memory);
    all.insert("maxmemory".to_string(), bound.to_string());
    drop(config);
    all.extend(call.shared.config.borrow().clone());
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

/// A parameter that is a number; one that is none counts as 0.
pub(super) fn number(call: &Call<'_>, name: &str) -> u64 {
    if let Some(value) = call.shared.config.borrow().get(name) {
        return value.parse().unwrap_or(0);
    }
    DEFAULTS.iter().find(|(known, _)| *known == name).map_or(0, |(_, value)| value.parse().unwrap_or(0))
}

pub(super) fn config(call: &mut Call<'_>) -> Outcome {
    if call.is_word(1, "get") && call.args.len() >= 3 {
        let all = values(call);
        let wanted =
            |name: &str| call.args[2..].iter().any(|pattern| matches(&pattern.to_ascii_lowercase(), name.as_bytes()));
        let found: Vec<_> = all.iter().filter(|(name, _)| wanted(name)).collect();
        let mut reply = call.reply();
        reply.map(found.len());
        for (name, value) in found {
            reply.text(name);
            reply.text(value);
        }
    } else if call.is_word(1, "set") && call.args.len() >= 4 && call.args.len().is_multiple_of(2) {
        call.check_writer()?;
        let mut changes = Vec::new();
        for pair in call.args[2..].chunks_exact(2) {
            let name = String::from_utf8_lossy(pair[0]).to_lowercase();
            let value = String::from_utf8_lossy(pair[1]).into_owned();
            if name == "maxmemory" {
                call.shared.maxmemory.set(bytes(&value).ok_or(
                    "ERR CONFIG SET failed (possibly related to argument 'maxmemory') - argument must be a memory value",
                )?);
                continue;
            }
            if name == "maxmemory-policy" && value != "noeviction" {
                return Err("ERR CONFIG SET failed (possibly related to argument 'maxmemory-policy') - here spaces evict: box.space.redis:alter{memory_limit = bytes, eviction = 'clock'}".into());
            }
            if name == "appendonly" && value == "yes" || name == "appendfsync" && value == "always" {
                continue;
            }
            if let Some((_, own)) = OWN.iter().find(|(known, _)| *known == name) {
                return Err(format!("ERR CONFIG SET failed (possibly related to argument '{name}') - here that is {own}: set it where the server is configured").into());
            }
            if !DEFAULTS.iter().any(|(known, _)| *known == name) {
                return Err(format!("ERR Unknown option or number of arguments for CONFIG SET - '{name}'").into());
            }
            changes.push((name, value));
        }
        call.shared.config.borrow_mut().extend(changes);
        call.reply().ok();
    } else if call.is_word(1, "resetstat") && call.args.len() == 2 {
        call.check_writer()?;
        [&call.shared.commands, &call.shared.hits, &call.shared.misses].iter().for_each(|counter| counter.set(0));
        call.reply().ok();
    } else if call.is_word(1, "rewrite") && call.args.len() == 2 {
        return Err("ERR The server is running without a config file".into());
    } else {
        let name = String::from_utf8_lossy(call.args[1]).into_owned();
        return Err(
            format!("ERR unknown subcommand or wrong number of arguments for '{name}'. Try CONFIG HELP.").into()
        );
    }
    Ok(())
}
