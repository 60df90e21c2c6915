//! Where the keys and channels of a command are among its parts, and what is done to them.
//!
//! Rules of users (`rules`) trust this: a key that is not found here is reached by everybody. So options are gone through as the commands themselves do
//! it, where a value may look like an option: the key of `SORT a STORE b BY store` is `b`.

use super::resp::integer;
use super::table::{Flag, Spec};
use std::ops::Range;

/// What is done to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) writes: bool,
    pub(super) reads: bool,
}

/// Options of commands that name keys, each with how many values stand behind it.
type Options = &'static [(&'static str, usize)];
const OF_SORT: Options = &[("by", 1), ("get", 1), ("limit", 2), ("store", 1)];
const OF_GEORADIUS: Options = &[("count", 1), ("store", 1), ("storedist", 1)];
const OF_XREAD: Options = &[("block", 1), ("count", 1), ("group", 2), ("noack", 0), ("streams", 0)];
const OF_MIGRATE: Options = &[("auth", 1), ("auth2", 2), ("copy", 0), ("keys", 0), ("replace", 0)];

/// Where a command says how many keys it has.
fn numkeys_at(name: &str) -> Option<usize> {
    match name {
        "zunion" | "zinter" | "zdiff" | "sintercard" | "zintercard" | "lmpop" | "zmpop" => Some(1),
        "zunionstore" | "zinterstore" | "zdiffstore" => Some(2),
        "eval" | "evalsha" | "eval_ro" | "evalsha_ro" | "fcall" | "fcall_ro" | "blmpop" | "bzmpop" => Some(2),
        _ => None,
    }
}

/// Commands whose keys are not at places that one can tell without their other parts.
pub(super) fn has_movable_keys(spec: &Spec) -> bool {
    let is_counted = ["zunionstore", "zinterstore", "zdiffstore", "sort", "sort_ro", "migrate", "georadius"];
    is_counted.contains(&spec.name)
        || spec.name == "georadiusbymember"
        || spec.keys.0 == 0 && (numkeys_at(spec.name).is_some() || matches!(spec.name, "xread" | "xreadgroup"))
}

/// The places of options among the parts of a command from one on, with their names. A part that is no option is passed over.
fn options<'a>(args: &'a [&[u8]], from: usize, known: Options) -> impl Iterator<Item = (usize, &'static str)> + 'a {
    let mut at = from;
    std::iter::from_fn(move || {
        while at < args.len() {
            let place = at;
            let option = known.iter().find(|(name, _)| args[place].eq_ignore_ascii_case(name.as_bytes()));
            at += 1 + option.map_or(0, |(_, values)| *values);
            if let Some((name, _)) = option {
                return Some((place, *name));
            }
        }
        None
    })
}

/// The places of keys among the parts of a command.
pub(super) fn key_places(spec: &Spec, args: &[&[u8]]) -> Vec<usize> {
    let (first, last, step) = spec.keys;
    let stored = |from: usize, known: Options| {
        let mut found: Vec<_> = options(args, from, known).filter(|(_, name)| name.starts_with("store")).collect();
        // In the order in which Redis looks at them: STORE first.
        found.sort_by_key(|(_, name)| name.len());
        found.into_iter().map(|(at, _)| at + 1).filter(|at| *at < args.len())
    };
    match spec.name {
        // Of several the last one counts.
        "sort" => return std::iter::once(1).chain(stored(2, OF_SORT).next_back()).collect(),
        // So it is here, but Redis looks at others, too.
        "georadius" => return std::iter::once(1).chain(stored(6, OF_GEORADIUS)).collect(),
        "georadiusbymember" => return std::iter::once(1).chain(stored(5, OF_GEORADIUS)).collect(),
        "xread" | "xreadgroup" => {
            let streams = options(args, 1, OF_XREAD).find(|(_, name)| *name == "streams");
            return streams.map_or(Vec::new(), |(at, _)| (at + 1..at + 1 + (args.len() - at - 1) / 2).collect());
        }
        "migrate" => {
            let keys = options(args, 6, OF_MIGRATE).find(|(_, name)| *name == "keys");
            return keys.map_or(vec![3], |(at, _)| (at + 1..args.len()).collect());
        }
        _ => {}
    }
    if let Some(at) = numkeys_at(spec.name) {
        let count = args.get(at).and_then(|text| integer(text)).unwrap_or(0);
        let count = usize::try_from(count).unwrap_or(0).min(args.len());
        let target = (spec.keys.0 > 0).then_some(1);
        return target.into_iter().chain(at + 1..at + 1 + count).filter(|place| *place < args.len()).collect();
    }
    if first == 0 {
        return Vec::new();
    }
    let end = if last < 0 { args.len() as i32 + last } else { last };
    (first..=end)
        .step_by(step.max(1) as usize)
        .map(|place| place as usize)
        .filter(|place| *place < args.len())
        .collect()
}

/// The places of channels among the parts of a command, and whether they are patterns.
pub(super) fn channel_places(spec: &Spec, count: usize) -> (Range<usize>, bool) {
    match spec.name {
        "publish" | "spublish" => (1..2, false),
        "subscribe" | "ssubscribe" => (1..count, false),
        "psubscribe" => (1..count, true),
        _ => (0..0, false),
    }
}

/// True if a command writes to one of its keys, and whether it reads it; `number` counts its keys from 0.
fn key_access(spec: &Spec, number: usize) -> (bool, bool) {
    let is_first = number == 0;
    match spec.name {
        "set" | "setex" | "psetex" | "mset" | "msetnx" | "setnx" | "restore" | "del" | "unlink" => (true, false),
        "copy" => (!is_first, is_first),
        "sort" | "georadius" | "georadiusbymember" => (!is_first, is_first),
        "bitop" | "geosearchstore" | "zrangestore" | "pfmerge" => (is_first, !is_first),
        name if name.ends_with("store") => (is_first, !is_first),
        // What a command adds to need not be known to who adds.
        "rename" | "renamenx" | "rpoplpush" | "brpoplpush" | "lmove" | "blmove" | "smove" => (true, is_first),
        "append" | "lpush" | "rpush" | "lpushx" | "rpushx" | "linsert" | "lset" | "lrem" | "ltrim" | "sadd"
        | "srem" | "zadd" | "zrem" | "hset" | "hmset" | "hsetnx" | "hdel" | "xadd" | "xdel" | "xtrim" | "expire"
        | "pexpire" | "expireat" | "pexpireat" | "persist" | "setrange" | "geoadd" | "pfadd" | "zremrangebyrank"
        | "zremrangebyscore" | "zremrangebylex" | "xgroup" | "xack" | "xsetid" => (true, false),
        _ if spec.is(Flag::Write) => (true, true),
        _ => (false, true),
    }
}

/// The same as `COMMAND GETKEYSANDFLAGS` has it.
pub(super) fn key_flags(spec: &Spec, number: usize) -> Vec<&'static str> {
    match spec.name {
        "set" | "setex" | "psetex" | "mset" | "restore" => return vec!["OW", "update"],
        "msetnx" | "setnx" => return vec!["OW", "insert"],
        "del" | "unlink" => return vec!["RM", "delete"],
        "lmove" | "blmove" | "rpoplpush" | "brpoplpush" | "smove" if number == 0 => {
            return vec!["RW", "access", "delete"];
        }
        "lmove" | "blmove" | "rpoplpush" | "brpoplpush" | "smove" => return vec!["RW", "insert"],
        _ => {}
    }
    match key_access(spec, number) {
        (true, true) => vec!["RW", "access", "update"],
        (true, false) if spec.name.ends_with("store") || matches!(spec.name, "sort" | "bitop" | "copy") => {
            vec!["OW", "update"]
        }
        (true, false) => vec!["RW", "update"],
        _ => vec!["RO", "access"],
    }
}

/// What a command does to one of its keys: as much as it takes to be allowed, which is less than [`key_access`] where it only counts or looks whether
/// something is there.
pub(super) fn access_of(spec: &Spec, number: usize, args: &[&[u8]]) -> Access {
    let has_word = |from: usize, words: &[&str]| {
        args.iter().skip(from).any(|arg| words.iter().any(|word| arg.eq_ignore_ascii_case(word.as_bytes())))
    };
    let (writes, reads) = match spec.name {
        "exists" | "hexists" | "hlen" | "hstrlen" | "llen" | "memory" | "object" | "scard" | "sismember" | "strlen"
        | "touch" | "type" | "watch" | "xlen" | "zcard" => (false, false),
        "set" => (true, has_word(3, &["get"])),
        "bitfield" => (!is_read_only_bitfield(args), true),
        "pfmerge" => (number == 0, true),
        "xreadgroup" => (false, true),
        "xclaim" | "xautoclaim" | "restore-asking" => (true, false),
        "eval" | "evalsha" | "fcall" => (true, true),
        _ => key_access(spec, number),
    };
    Access { writes, reads }
}

/// True if all that `BITFIELD` says is `GET`, and `OVERFLOW` for what does not come.
fn is_read_only_bitfield(args: &[&[u8]]) -> bool {
    let mut rest = args.get(2..).unwrap_or_default();
    loop {
        rest = match rest {
            [] => return true,
            [word, _, _, behind @ ..] if word.eq_ignore_ascii_case(b"get") => behind,
            [word, _, behind @ ..] if word.eq_ignore_ascii_case(b"overflow") => behind,
            _ => return false,
        };
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::super::table::find;
    use super::*;

    /// The keys of a command.
    fn keys(command: &str) -> Vec<&str> {
        let words: Vec<&str> = command.split(' ').collect();
        let args: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        key_places(find(args[0]).unwrap(), &args).into_iter().map(|place| words[place]).collect()
    }

    #[test]
    fn what_looks_like_an_option_may_be_a_value() {
        for (command, wanted) in [
            ("sort a store b by store asc", vec!["a", "b"]),
            ("sort a store store asc", vec!["a", "store"]),
            ("sort a by store get store limit 0 store", vec!["a"]),
            ("sort a store b STORE c", vec!["a", "c"]),
            ("sort a by", vec!["a"]),
            ("sort a store", vec!["a"]),
            ("georadius a 1 1 1 km store b storedist c", vec!["a", "b", "c"]),
            ("georadius a 1 1 1 km storedist c store b asc", vec!["a", "b", "c"]),
            ("georadius a 1 1 1 km count store store b", vec!["a", "b"]),
            ("georadiusbymember a store 1 km storedist store", vec!["a", "store"]),
            ("georadius a 1 1 1 km storedist c store b store d", vec!["a", "b", "d", "c"]),
            ("xread count 1 streams streams b 0 0", vec!["streams", "b"]),
            ("xreadgroup group streams streams streams a >", vec!["a"]),
            ("xreadgroup noack group streams c count 1 streams a b > >", vec!["a", "b"]),
            ("xreadgroup group g streams block 0", vec![]),
            ("migrate h 1 a 0 1 auth keys", vec!["a"]),
            ("migrate h 1 \"\" 0 1 auth2 keys keys keys b c", vec!["b", "c"]),
            ("zunionstore a 2 b c weights 1 2", vec!["a", "b", "c"]),
            ("eval x 9 a", vec!["a"]),
        ] {
            assert_eq!(keys(command), wanted, "{command}");
        }
    }

    #[test]
    fn what_only_reads_bits_is_no_write() {
        for (command, wanted) in [
            ("bitfield a", true),
            ("bitfield a get u8 0 GET u8 8", true),
            ("bitfield a overflow wrap get u8 0", true),
            ("bitfield a get u8", false),
            ("bitfield a get u8 0 set u8 0 1", false),
            ("bitfield a get get set", true),
            ("bitfield a set get get 0", false),
        ] {
            let args: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
            assert_eq!(is_read_only_bitfield(&args), wanted, "{command}");
        }
    }
}
