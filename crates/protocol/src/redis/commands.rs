//! What commands are, for who asks (`COMMAND`) and for who allows them (`ACL`): categories, keys and flags.

use super::call::Call;
use super::dispatch::is_freeing;
use super::failure::{Outcome, SYNTAX};
use super::glob::matches;
use super::places::{has_movable_keys, key_flags, key_places};
use super::reply::Reply;
use super::scripts::{help, unknown_subcommand};
use super::table::{COMMANDS, Flag, Spec, find};

/// Commands and subcommands with their categories, as Redis 7.0 has them; in the order of names. A command that is nothing but its subcommands has few.
const CATEGORIES: &[(&str, &str)] = &[
    ("acl", "slow"),
    ("acl|cat", "slow"),
    ("acl|deluser", "admin dangerous slow"),
    ("acl|dryrun", "admin dangerous slow"),
    ("acl|genpass", "slow"),
    ("acl|getuser", "admin dangerous slow"),
    ("acl|help", "slow"),
    ("acl|list", "admin dangerous slow"),
    ("acl|load", "admin dangerous slow"),
    ("acl|log", "admin dangerous slow"),
    ("acl|save", "admin dangerous slow"),
    ("acl|setuser", "admin dangerous slow"),
    ("acl|users", "admin dangerous slow"),
    ("acl|whoami", "slow"),
    ("append", "fast string write"),
    ("asking", "connection fast"),
    ("auth", "connection fast"),
    ("bgrewriteaof", "admin dangerous slow"),
    ("bgsave", "admin dangerous slow"),
    ("bitcount", "bitmap read slow"),
    ("bitfield", "bitmap slow write"),
    ("bitfield_ro", "bitmap fast read"),
    ("bitop", "bitmap slow write"),
    ("bitpos", "bitmap read slow"),
    ("blmove", "blocking list slow write"),
    ("blmpop", "blocking list slow write"),
    ("blpop", "blocking list slow write"),
    ("brpop", "blocking list slow write"),
    ("brpoplpush", "blocking list slow write"),
    ("bzmpop", "blocking slow sortedset write"),
    ("bzpopmax", "blocking fast sortedset write"),
    ("bzpopmin", "blocking fast sortedset write"),
    ("client", "slow"),
    ("client|caching", "connection slow"),
    ("client|getname", "connection slow"),
    ("client|getredir", "connection slow"),
    ("client|help", "connection slow"),
    ("client|id", "connection slow"),
    ("client|info", "connection slow"),
    ("client|kill", "admin connection dangerous slow"),
    ("client|list", "admin connection dangerous slow"),
    ("client|no-evict", "admin connection dangerous slow"),
    ("client|pause", "admin connection dangerous slow"),
    ("client|reply", "connection slow"),
    ("client|setname", "connection slow"),
    ("client|tracking", "connection slow"),
    ("client|trackinginfo", "connection slow"),
    ("client|unblock", "admin connection dangerous slow"),
    ("client|unpause", "admin connection dangerous slow"),
    ("cluster", "slow"),
    ("cluster|addslots", "admin dangerous slow"),
    ("cluster|addslotsrange", "admin dangerous slow"),
    ("cluster|bumpepoch", "admin dangerous slow"),
    ("cluster|count-failure-reports", "admin dangerous slow"),
    ("cluster|countkeysinslot", "slow"),
    ("cluster|delslots", "admin dangerous slow"),
    ("cluster|delslotsrange", "admin dangerous slow"),
    ("cluster|failover", "admin dangerous slow"),
    ("cluster|flushslots", "admin dangerous slow"),
    ("cluster|forget", "admin dangerous slow"),
    ("cluster|getkeysinslot", "slow"),
    ("cluster|help", "slow"),
    ("cluster|info", "slow"),
    ("cluster|keyslot", "slow"),
    ("cluster|links", "slow"),
    ("cluster|meet", "admin dangerous slow"),
    ("cluster|myid", "slow"),
    ("cluster|nodes", "slow"),
    ("cluster|replicas", "admin dangerous slow"),
    ("cluster|replicate", "admin dangerous slow"),
    ("cluster|reset", "admin dangerous slow"),
    ("cluster|saveconfig", "admin dangerous slow"),
    ("cluster|set-config-epoch", "admin dangerous slow"),
    ("cluster|setslot", "admin dangerous slow"),
    ("cluster|shards", "slow"),
    ("cluster|slaves", "admin dangerous slow"),
    ("cluster|slots", "slow"),
    ("command", "connection slow"),
    ("command|count", "connection slow"),
    ("command|docs", "connection slow"),
    ("command|getkeys", "connection slow"),
    ("command|getkeysandflags", "connection slow"),
    ("command|help", "connection slow"),
    ("command|info", "connection slow"),
    ("command|list", "connection slow"),
    ("config", "slow"),
    ("config|get", "admin dangerous slow"),
    ("config|help", "slow"),
    ("config|resetstat", "admin dangerous slow"),
    ("config|rewrite", "admin dangerous slow"),
    ("config|set", "admin dangerous slow"),
    ("copy", "keyspace slow write"),
    ("dbsize", "fast keyspace read"),
    ("debug", "admin dangerous slow"),
    ("decr", "fast string write"),
    ("decrby", "fast string write"),
    ("del", "keyspace slow write"),
    ("discard", "fast transaction"),
    ("dump", "keyspace read slow"),
    ("echo", "connection fast"),
    ("eval", "scripting slow"),
    ("eval_ro", "scripting slow"),
    ("evalsha", "scripting slow"),
    ("evalsha_ro", "scripting slow"),
    ("exec", "slow transaction"),
    ("exists", "fast keyspace read"),
    ("expire", "fast keyspace write"),
    ("expireat", "fast keyspace write"),
    ("expiretime", "fast keyspace read"),
    ("failover", "admin dangerous slow"),
    ("fcall", "scripting slow"),
    ("fcall_ro", "scripting slow"),
    ("flushall", "dangerous keyspace slow write"),
    ("flushdb", "dangerous keyspace slow write"),
    ("function", "slow"),
    ("function|delete", "scripting slow write"),
    ("function|dump", "scripting slow"),
    ("function|flush", "scripting slow write"),
    ("function|help", "scripting slow"),
    ("function|kill", "scripting slow"),
    ("function|list", "scripting slow"),
    ("function|load", "scripting slow write"),
    ("function|restore", "scripting slow write"),
    ("function|stats", "scripting slow"),
    ("geoadd", "geo slow write"),
    ("geodist", "geo read slow"),
    ("geohash", "geo read slow"),
    ("geopos", "geo read slow"),
    ("georadius", "geo slow write"),
    ("georadius_ro", "geo read slow"),
    ("georadiusbymember", "geo slow write"),
    ("georadiusbymember_ro", "geo read slow"),
    ("geosearch", "geo read slow"),
    ("geosearchstore", "geo slow write"),
    ("get", "fast read string"),
    ("getbit", "bitmap fast read"),
    ("getdel", "fast string write"),
    ("getex", "fast string write"),
    ("getrange", "read slow string"),
    ("getset", "fast string write"),
    ("hdel", "fast hash write"),
    ("hello", "connection fast"),
    ("hexists", "fast hash read"),
    ("hget", "fast hash read"),
    ("hgetall", "hash read slow"),
    ("hincrby", "fast hash write"),
    ("hincrbyfloat", "fast hash write"),
    ("hkeys", "hash read slow"),
    ("hlen", "fast hash read"),
    ("hmget", "fast hash read"),
    ("hmset", "fast hash write"),
    ("hrandfield", "hash read slow"),
    ("hscan", "hash read slow"),
    ("hset", "fast hash write"),
    ("hsetnx", "fast hash write"),
    ("hstrlen", "fast hash read"),
    ("hvals", "hash read slow"),
    ("incr", "fast string write"),
    ("incrby", "fast string write"),
    ("incrbyfloat", "fast string write"),
    ("info", "dangerous slow"),
    ("keys", "dangerous keyspace read slow"),
    ("lastsave", "admin dangerous fast"),
    ("latency", "slow"),
    ("latency|doctor", "admin dangerous slow"),
    ("latency|graph", "admin dangerous slow"),
    ("latency|help", "slow"),
    ("latency|histogram", "admin dangerous slow"),
    ("latency|history", "admin dangerous slow"),
    ("latency|latest", "admin dangerous slow"),
    ("latency|reset", "admin dangerous slow"),
    ("lcs", "read slow string"),
    ("lindex", "list read slow"),
    ("linsert", "list slow write"),
    ("llen", "fast list read"),
    ("lmove", "list slow write"),
    ("lmpop", "list slow write"),
    ("lolwut", "fast read"),
    ("lpop", "fast list write"),
    ("lpos", "list read slow"),
    ("lpush", "fast list write"),
    ("lpushx", "fast list write"),
    ("lrange", "list read slow"),
    ("lrem", "list slow write"),
    ("lset", "list slow write"),
    ("ltrim", "list slow write"),
    ("memory", "slow"),
    ("memory|doctor", "slow"),
    ("memory|help", "slow"),
    ("memory|malloc-stats", "slow"),
    ("memory|purge", "slow"),
    ("memory|stats", "slow"),
    ("memory|usage", "read slow"),
    ("mget", "fast read string"),
    ("migrate", "dangerous keyspace slow write"),
    ("module", "slow"),
    ("module|help", "slow"),
    ("module|list", "admin dangerous slow"),
    ("module|load", "admin dangerous slow"),
    ("module|loadex", "admin dangerous slow"),
    ("module|unload", "admin dangerous slow"),
    ("monitor", "admin dangerous slow"),
    ("move", "fast keyspace write"),
    ("mset", "slow string write"),
    ("msetnx", "slow string write"),
    ("multi", "fast transaction"),
    ("object", "slow"),
    ("object|encoding", "keyspace read slow"),
    ("object|freq", "keyspace read slow"),
    ("object|help", "keyspace slow"),
    ("object|idletime", "keyspace read slow"),
    ("object|refcount", "keyspace read slow"),
    ("persist", "fast keyspace write"),
    ("pexpire", "fast keyspace write"),
    ("pexpireat", "fast keyspace write"),
    ("pexpiretime", "fast keyspace read"),
    ("pfadd", "fast hyperloglog write"),
    ("pfcount", "hyperloglog read slow"),
    ("pfdebug", "admin dangerous hyperloglog slow write"),
    ("pfmerge", "hyperloglog slow write"),
    ("pfselftest", "admin dangerous hyperloglog slow"),
    ("ping", "connection fast"),
    ("psetex", "slow string write"),
    ("psubscribe", "pubsub slow"),
    ("psync", "admin dangerous slow"),
    ("pttl", "fast keyspace read"),
    ("publish", "fast pubsub"),
    ("pubsub", "slow"),
    ("pubsub|channels", "pubsub slow"),
    ("pubsub|help", "slow"),
    ("pubsub|numpat", "pubsub slow"),
    ("pubsub|numsub", "pubsub slow"),
    ("pubsub|shardchannels", "pubsub slow"),
    ("pubsub|shardnumsub", "pubsub slow"),
    ("punsubscribe", "pubsub slow"),
    ("quit", "connection fast"),
    ("randomkey", "keyspace read slow"),
    ("readonly", "connection fast"),
    ("readwrite", "connection fast"),
    ("rename", "keyspace slow write"),
    ("renamenx", "fast keyspace write"),
    ("replconf", "admin dangerous slow"),
    ("replicaof", "admin dangerous slow"),
    ("reset", "connection fast"),
    ("restore", "dangerous keyspace slow write"),
    ("restore-asking", "dangerous keyspace slow write"),
    ("role", "admin dangerous fast"),
    ("rpop", "fast list write"),
    ("rpoplpush", "list slow write"),
    ("rpush", "fast list write"),
    ("rpushx", "fast list write"),
    ("sadd", "fast set write"),
    ("save", "admin dangerous slow"),
    ("scan", "keyspace read slow"),
    ("scard", "fast read set"),
    ("script", "slow"),
    ("script|debug", "scripting slow"),
    ("script|exists", "scripting slow"),
    ("script|flush", "scripting slow"),
    ("script|help", "scripting slow"),
    ("script|kill", "scripting slow"),
    ("script|load", "scripting slow"),
    ("sdiff", "read set slow"),
    ("sdiffstore", "set slow write"),
    ("select", "connection fast"),
    ("set", "slow string write"),
    ("setbit", "bitmap slow write"),
    ("setex", "slow string write"),
    ("setnx", "fast string write"),
    ("setrange", "slow string write"),
    ("shutdown", "admin dangerous slow"),
    ("sinter", "read set slow"),
    ("sintercard", "read set slow"),
    ("sinterstore", "set slow write"),
    ("sismember", "fast read set"),
    ("slaveof", "admin dangerous slow"),
    ("slowlog", "slow"),
    ("slowlog|get", "admin dangerous slow"),
    ("slowlog|help", "slow"),
    ("slowlog|len", "admin dangerous slow"),
    ("slowlog|reset", "admin dangerous slow"),
    ("smembers", "read set slow"),
    ("smismember", "fast read set"),
    ("smove", "fast set write"),
    ("sort", "dangerous list set slow sortedset write"),
    ("sort_ro", "dangerous list read set slow sortedset"),
    ("spop", "fast set write"),
    ("spublish", "fast pubsub"),
    ("srandmember", "read set slow"),
    ("srem", "fast set write"),
    ("sscan", "read set slow"),
    ("ssubscribe", "pubsub slow"),
    ("strlen", "fast read string"),
    ("subscribe", "pubsub slow"),
    ("substr", "read slow string"),
    ("sunion", "read set slow"),
    ("sunionstore", "set slow write"),
    ("sunsubscribe", "pubsub slow"),
    ("swapdb", "dangerous fast keyspace write"),
    ("sync", "admin dangerous slow"),
    ("time", "fast"),
    ("touch", "fast keyspace read"),
    ("ttl", "fast keyspace read"),
    ("type", "fast keyspace read"),
    ("unlink", "fast keyspace write"),
    ("unsubscribe", "pubsub slow"),
    ("unwatch", "fast transaction"),
    ("wait", "connection slow"),
    ("watch", "fast transaction"),
    ("xack", "fast stream write"),
    ("xadd", "fast stream write"),
    ("xautoclaim", "fast stream write"),
    ("xclaim", "fast stream write"),
    ("xdel", "fast stream write"),
    ("xgroup", "slow"),
    ("xgroup|create", "slow stream write"),
    ("xgroup|createconsumer", "slow stream write"),
    ("xgroup|delconsumer", "slow stream write"),
    ("xgroup|destroy", "slow stream write"),
    ("xgroup|help", "slow stream"),
    ("xgroup|setid", "slow stream write"),
    ("xinfo", "slow"),
    ("xinfo|consumers", "read slow stream"),
    ("xinfo|groups", "read slow stream"),
    ("xinfo|help", "slow stream"),
    ("xinfo|stream", "read slow stream"),
    ("xlen", "fast read stream"),
    ("xpending", "read slow stream"),
    ("xrange", "read slow stream"),
    ("xread", "blocking read slow stream"),
    ("xreadgroup", "blocking slow stream write"),
    ("xrevrange", "read slow stream"),
    ("xsetid", "fast stream write"),
    ("xtrim", "slow stream write"),
    ("zadd", "fast sortedset write"),
    ("zcard", "fast read sortedset"),
    ("zcount", "fast read sortedset"),
    ("zdiff", "read slow sortedset"),
    ("zdiffstore", "slow sortedset write"),
    ("zincrby", "fast sortedset write"),
    ("zinter", "read slow sortedset"),
    ("zintercard", "read slow sortedset"),
    ("zinterstore", "slow sortedset write"),
    ("zlexcount", "fast read sortedset"),
    ("zmpop", "slow sortedset write"),
    ("zmscore", "fast read sortedset"),
    ("zpopmax", "fast sortedset write"),
    ("zpopmin", "fast sortedset write"),
    ("zrandmember", "read slow sortedset"),
    ("zrange", "read slow sortedset"),
    ("zrangebylex", "read slow sortedset"),
    ("zrangebyscore", "read slow sortedset"),
    ("zrangestore", "slow sortedset write"),
    ("zrank", "fast read sortedset"),
    ("zrem", "fast sortedset write"),
    ("zremrangebylex", "slow sortedset write"),
    ("zremrangebyrank", "slow sortedset write"),
    ("zremrangebyscore", "slow sortedset write"),
    ("zrevrange", "read slow sortedset"),
    ("zrevrangebylex", "read slow sortedset"),
    ("zrevrangebyscore", "read slow sortedset"),
    ("zrevrank", "fast read sortedset"),
    ("zscan", "read slow sortedset"),
    ("zscore", "fast read sortedset"),
    ("zunion", "read slow sortedset"),
    ("zunionstore", "slow sortedset write"),
];

/// The categories of a command or subcommand (`client|list`).
pub(super) fn categories_of(name: &str) -> impl Iterator<Item = &'static str> {
    let at = CATEGORIES.binary_search_by_key(&name, |(known, _)| known);
    at.map_or("", |at| CATEGORIES[at].1).split_ascii_whitespace()
}

/// All categories.
pub(super) fn all_categories() -> Vec<&'static str> {
    vec![
        "keyspace",
        "read",
        "write",
        "set",
        "sortedset",
        "list",
        "hash",
        "string",
        "bitmap",
        "hyperloglog",
        "geo",
        "stream",
        "pubsub",
        "admin",
        "fast",
        "slow",
        "blocking",
        "dangerous",
        "connection",
        "transaction",
        "scripting",
    ]
}

/// The subcommands of a command, with its name before them.
pub(super) fn subcommands_of(name: &str) -> impl Iterator<Item = &'static str> {
    CATEGORIES
        .iter()
        .map(|(known, _)| *known)
        .filter(move |known| known.split_once('|').is_some_and(|(command, _)| command == name))
}

/// Names of commands and subcommands.
pub(super) fn all_names() -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().flat_map(|spec| std::iter::once(spec.name).chain(subcommands_of(spec.name)))
}

/// The names of flags, as `COMMAND` gives them.
const FLAG_NAMES: [(Flag, &str); 7] = [
    (Flag::Write, "write"),
    (Flag::Read, "readonly"),
    (Flag::Fast, "fast"),
    (Flag::Blocking, "blocking"),
    (Flag::Admin, "admin"),
    (Flag::NotInScript, "noscript"),
    (Flag::NoLogin, "no_auth"),
];

fn write_command(reply: &mut Reply<'_>, spec: &Spec, name: &str) {
    reply.array(10);
    reply.text(name);
    reply.integer(i64::from(spec.arity));
    let mut flags: Vec<&str> = FLAG_NAMES.iter().filter(|(flag, _)| spec.is(*flag)).map(|(_, name)| *name).collect();
    if spec.is(Flag::Write) && !is_freeing(spec.name) {
        flags.push("denyoom");
    }
    if has_movable_keys(spec) {
        flags.push("movablekeys");
    }
    reply.set(flags.len());
    flags.iter().for_each(|name| reply.simple(name));
    let (first, last, step) = spec.keys;
    for number in [first, last, step] {
        reply.integer(i64::from(number));
    }
    let categories: Vec<&str> = categories_of(name).collect();
    reply.set(categories.len());
    categories.iter().for_each(|name| reply.simple(&format!("@{name}")));
    for _ in 0..3 {
        reply.array(0);
    }
}

/// The command of a name, which may be that of a subcommand.
fn named(name: &[u8]) -> Option<(&'static Spec, &'static str)> {
    if let Some(spec) = find(name) {
        return Some((spec, spec.name));
    }
    let lower = String::from_utf8_lossy(name).to_ascii_lowercase();
    let known = CATEGORIES.binary_search_by_key(&lower.as_str(), |(known, _)| known).ok().map(|at| CATEGORIES[at].0)?;
    let spec = find(known.split_once('|')?.0.as_bytes())?;
    Some((spec, known))
}

const HELP: &[&str] = &[
    "COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "(no subcommand)",
    "    Describes all commands.",
    "COUNT",
    "    Returns how many there are.",
    "LIST [FILTERBY (MODULE <name>|ACLCAT <category>|PATTERN <pattern>)]",
    "    Returns names.",
    "INFO [<name> ...]",
    "    Describes commands.",
    "DOCS [<name> ...]",
    "    Tells what commands do.",
    "GETKEYS <command>",
    "    Returns the keys of a command.",
    "GETKEYSANDFLAGS <command>",
    "    Returns them with what is done to them.",
    "HELP",
    "    Prints this help.",
];

fn list(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let is_shown: Box<dyn Fn(&str) -> bool> = match args.len() {
        2 => Box::new(|_| true),
        5 if call.is_word(2, "filterby") => {
            let text = args[4].to_ascii_lowercase();
            match args[3].to_ascii_lowercase().as_slice() {
                b"module" => Box::new(|_| false),
                b"aclcat" => Box::new(move |name| categories_of(name).any(|known| known.as_bytes() == text)),
                b"pattern" => Box::new(move |name| matches(&text, name.as_bytes())),
                _ => return Err(SYNTAX.into()),
            }
        }
        _ => return Err(SYNTAX.into()),
    };
    let names: Vec<&str> = all_names().filter(|name| is_shown(name)).collect();
    let mut reply = call.reply();
    reply.set(names.len());
    names.iter().for_each(|name| reply.text(name));
    Ok(())
}

pub(super) fn command(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let mut reply = call.reply();
    match args.get(1).map(|word| word.to_ascii_lowercase()).as_deref() {
        None => {
            reply.array(COMMANDS.len());
            COMMANDS.iter().for_each(|spec| write_command(&mut reply, spec, spec.name));
        }
        Some(b"count") if args.len() == 2 => reply.count(COMMANDS.len()),
        Some(b"list") => return list(call),
        Some(b"info") => {
            let names: Vec<&[u8]> = args[2..].to_vec();
            reply.array(if names.is_empty() { COMMANDS.len() } else { names.len() });
            if names.is_empty() {
                COMMANDS.iter().for_each(|spec| write_command(&mut reply, spec, spec.name));
            }
            for name in names {
                match named(name) {
                    Some((spec, name)) => write_command(&mut reply, spec, name),
                    None => reply.null_array(),
                }
            }
        }
        Some(b"docs") => {
            let specs: Vec<&Spec> = match args.len() {
                2 => COMMANDS.iter().collect(),
                _ => args[2..].iter().filter_map(|name| find(name)).collect(),
            };
            reply.map(specs.len());
            for spec in specs {
                reply.text(spec.name);
                reply.map(2);
                reply.text("summary");
                reply.text(spec.summary);
                reply.text("group");
                reply.text(spec.family);
            }
        }
        Some(b"getkeys" | b"getkeysandflags") if args.len() > 2 => {
            let with_flags = args[1].len() > "getkeys".len();
            let Some(spec) = find(args[2]) else { return Err("ERR Invalid command specified".into()) };
            if !spec.takes(args.len() - 2) {
                return Err("ERR Invalid number of arguments specified for command".into());
            }
            let places = key_places(spec, &args[2..]);
            if places.is_empty() && spec.family != "scripting" {
                return Err("ERR The command has no key arguments".into());
            }
            reply.array(places.len());
            for (number, place) in places.iter().enumerate() {
                if with_flags {
                    reply.array(2);
                    reply.bulk(args[2 + place]);
                    let flags = key_flags(spec, number);
                    reply.set(flags.len());
                    flags.iter().for_each(|flag| reply.simple(flag));
                } else {
                    reply.bulk(args[2 + place]);
                }
            }
        }
        Some(b"help") if args.len() == 2 => help(call, HELP),
        _ => {
            let known = ["count", "list", "info", "docs", "getkeys", "getkeysandflags", "help"];
            return Err(unknown_subcommand(call, "command", &known));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_its_categories() {
        assert!(CATEGORIES.is_sorted_by_key(|(name, _)| *name));
        let without: Vec<&str> = all_names().filter(|name| categories_of(name).next().is_none()).collect();
        assert!(without.is_empty(), "{without:?}");
        let all = all_categories();
        assert!(CATEGORIES.iter().all(|(_, words)| words.split(' ').all(|word| all.contains(&word))));
    }
}
