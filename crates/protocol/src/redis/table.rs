//! The table of commands: names, how many parts they have, where their keys are, and what runs them.

use super::call::Call;
use super::failure::Outcome;
use super::{
    acl, attention, bits, blocking, commands, config, connection, debug, dump, functions, geo, hashes, hyperloglog,
    keys, lists, measure, pubsub, scan, scripts, server, sets, sort, sorted_sets, sorted_sets_combined, stream_groups,
    streams, strings, transactions,
};
use hashbrown::HashMap;
use std::sync::LazyLock;

/// What there is to know of a command before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Flag {
    Write = 1,
    Read = 1 << 1,
    Fast = 1 << 2,
    /// It may wait for others.
    Blocking = 1 << 3,
    Admin = 1 << 4,
    NotInScript = 1 << 5,
    /// It may run before a login.
    NoLogin = 1 << 6,
    /// It may run while the connection listens to channels.
    WhileListening = 1 << 7,
    /// It runs at once between `MULTI` and `EXEC`.
    InMulti = 1 << 8,
    /// It is refused there.
    NotInMulti = 1 << 9,
    /// It logs in: its answer may come later.
    Login = 1 << 10,
    /// It always runs in a fiber.
    Waits = 1 << 11,
    /// It is nothing but its subcommands.
    Container = 1 << 12,
    /// It may be one of a group, see `group`: it is short and touches keys and elements by the ways of `Call` only.
    Grouped = 1 << 13,
}

/// A command.
pub(super) struct Spec {
    /// In small letters.
    pub(super) name: &'static str,
    /// Parts with the name; negative: at least so many.
    pub(super) arity: i32,
    flags: u32,
    /// First and last part that is a key, and the step between them; the last may be counted from the end. Zeros: none, or the command says.
    pub(super) keys: (i32, i32, i32),
    pub(super) family: &'static str,
    pub(super) summary: &'static str,
    pub(super) run: fn(&mut Call<'_>) -> Outcome,
}

impl Spec {
    #[inline]
    pub(super) fn is(&self, flag: Flag) -> bool {
        self.flags & flag as u32 != 0
    }

    /// True if it may have so many parts.
    #[inline]
    pub(super) fn takes(&self, count: usize) -> bool {
        if self.arity < 0 { count >= self.arity.unsigned_abs() as usize } else { count == self.arity as usize }
    }

    /// True if it writes and is one transaction from its first look on where it runs in a fiber. Others wait for clients, begin their own transaction, make
    /// spaces, or put together in many transactions what nobody sees yet.
    pub(super) fn is_one_transaction(&self) -> bool {
        let is_several = ["copy", "move", "sort", "flushall", "flushdb", "swapdb"].contains(&self.name)
            || self.name.ends_with("store");
        self.is(Flag::Write) && !self.is(Flag::Blocking) && !is_several
    }

    /// True if it needs a fiber.
    pub(super) fn waits(&self) -> bool {
        self.is(Flag::Waits)
    }
}

/// Longest name of a command.
const NAME_BYTES_MAX: usize = 24;

static BY_NAME: LazyLock<HashMap<&'static [u8], &'static Spec>> =
    LazyLock::new(|| COMMANDS.iter().map(|spec| (spec.name.as_bytes(), spec)).collect());

/// A command by its name in whatever case.
#[inline]
pub(super) fn find(name: &[u8]) -> Option<&'static Spec> {
    let mut lower = [0; NAME_BYTES_MAX];
    let lower = lower.get_mut(..name.len())?;
    for (to, from) in lower.iter_mut().zip(name) {
        *to = from.to_ascii_lowercase();
    }
    BY_NAME.get(&*lower).copied()
}

const W: u32 = Flag::Write as u32;
const R: u32 = Flag::Read as u32;
const F: u32 = Flag::Fast as u32;
const B: u32 = Flag::Blocking as u32;
const A: u32 = Flag::Admin as u32;
const S: u32 = Flag::NotInScript as u32;
const N: u32 = Flag::NoLogin as u32;
const L: u32 = Flag::WhileListening as u32;
const M: u32 = Flag::InMulti as u32;
const X: u32 = Flag::NotInMulti as u32;
const LOGIN: u32 = Flag::Login as u32;
const C: u32 = Flag::Container as u32;
const WAITS: u32 = Flag::Waits as u32;
const G: u32 = Flag::Grouped as u32;
const NONE: (i32, i32, i32) = (0, 0, 0);
const ONE: (i32, i32, i32) = (1, 1, 1);
const TWO: (i32, i32, i32) = (1, 2, 1);
const ALL: (i32, i32, i32) = (1, -1, 1);

const fn spec(
    name: &'static str,
    arity: i32,
    flags: u32,
    keys: (i32, i32, i32),
    run: fn(&mut Call<'_>) -> Outcome,
    family: &'static str,
    summary: &'static str,
) -> Spec {
    Spec { name, arity, flags, keys, family, summary, run }
}

/// All commands.
pub(super) static COMMANDS: &[Spec] = &[
    spec("append", 3, W | F | G, ONE, strings::append, "string", "Appends to a string."),
    spec("decr", 2, W | F | G, ONE, strings::decr, "string", "Takes one from a whole number."),
    spec("decrby", 3, W | F | G, ONE, strings::decrby, "string", "Takes a number from a whole number."),
    spec("get", 2, R | F | G, ONE, strings::get, "string", "Returns a string."),
    spec("getdel", 2, W | F, ONE, strings::getdel, "string", "Returns a string and removes its key."),
    spec("getex", -2, W | F, ONE, strings::getex, "string", "Returns a string and sets when its key expires."),
    spec("getrange", 4, R | G, ONE, strings::getrange, "string", "Returns a part of a string."),
    spec("getset", 3, W | F | G, ONE, strings::getset, "string", "Replaces a string and returns the old one."),
    spec("incr", 2, W | F | G, ONE, strings::incr, "string", "Adds one to a whole number."),
    spec("incrby", 3, W | F | G, ONE, strings::incrby, "string", "Adds a number to a whole number."),
    spec("incrbyfloat", 3, W | F | G, ONE, strings::incrbyfloat, "string", "Adds a fraction to a number."),
    spec("lcs", -3, R, TWO, strings::lcs, "string", "Finds the longest common subsequence of two strings."),
    spec("mget", -2, R | F | G, ALL, strings::mget, "string", "Returns the strings of several keys."),
    spec("mset", -3, W | G, (1, -1, 2), strings::mset, "string", "Sets several strings at once."),
    spec(
        "msetnx",
        -3,
        W,
        (1, -1, 2),
        strings::msetnx,
        "string",
        "Sets several strings if none of their keys is there.",
    ),
    spec("psetex", 4, W | G, ONE, strings::psetex, "string", "Sets a string that expires after milliseconds."),
    spec("set", -3, W | G, ONE, strings::set, "string", "Sets a string."),
    spec("setex", 4, W | G, ONE, strings::setex, "string", "Sets a string that expires after seconds."),
    spec("setnx", 3, W | F | G, ONE, strings::setnx, "string", "Sets a string if its key is not there."),
    spec("setrange", 4, W, ONE, strings::setrange, "string", "Overwrites a part of a string."),
    spec("strlen", 2, R | F | G, ONE, strings::strlen, "string", "Returns the length of a string."),
    spec("substr", 4, R, ONE, strings::getrange, "string", "Returns a part of a string."),
    spec("bitcount", -2, R, ONE, bits::bitcount, "bitmap", "Counts the bits that are set."),
    spec("bitfield", -2, W, ONE, bits::bitfield, "bitmap", "Reads and changes whole numbers within a string."),
    spec("bitfield_ro", -2, R | F, ONE, bits::bitfield_ro, "bitmap", "Reads whole numbers within a string."),
    spec("bitop", -4, W, (2, -1, 1), bits::bitop, "bitmap", "Combines strings bit by bit."),
    spec("bitpos", -3, R, ONE, bits::bitpos, "bitmap", "Finds the first bit that is set or not."),
    spec("getbit", 3, R | F, ONE, bits::getbit, "bitmap", "Returns a bit."),
    spec("setbit", 4, W, ONE, bits::setbit, "bitmap", "Sets a bit."),
    spec("copy", -3, W, TWO, keys::copy, "generic", "Copies a key."),
    spec("del", -2, W, ALL, keys::del, "generic", "Removes keys."),
    spec("exists", -2, R | F, ALL, keys::exists, "generic", "Counts the keys that are there."),
    spec("expire", -3, W | F, ONE, keys::expire, "generic", "Has a key expire after seconds."),
    spec("expireat", -3, W | F, ONE, keys::expireat, "generic", "Has a key expire at a time."),
    spec("expiretime", 2, R | F, ONE, keys::expiretime, "generic", "Returns when a key expires, in seconds."),
    spec("keys", 2, R, NONE, scan::keys, "generic", "Returns the keys of a pattern."),
    spec("move", 3, W | F, ONE, keys::move_key, "generic", "Moves a key to another database."),
    spec("object", -2, R | C, (2, 2, 1), keys::object, "generic", "Tells how a key is kept."),
    spec("migrate", -6, W, NONE, keys::migrate, "generic", "Moves keys to another server: refused."),
    spec("persist", 2, W | F, ONE, keys::persist, "generic", "Has a key not expire."),
    spec("pexpire", -3, W | F, ONE, keys::pexpire, "generic", "Has a key expire after milliseconds."),
    spec("pexpireat", -3, W | F, ONE, keys::pexpireat, "generic", "Has a key expire at a time in milliseconds."),
    spec("pexpiretime", 2, R | F, ONE, keys::pexpiretime, "generic", "Returns when a key expires, in milliseconds."),
    spec("pttl", 2, R | F, ONE, keys::pttl, "generic", "Returns the milliseconds that a key has left."),
    spec("randomkey", 1, R, NONE, keys::randomkey, "generic", "Returns some key."),
    spec("rename", 3, W, TWO, keys::rename, "generic", "Gives a key another name."),
    spec("renamenx", 3, W | F, TWO, keys::renamenx, "generic", "Gives a key another name if that is free."),
    spec("scan", -2, R, NONE, scan::scan, "generic", "Goes through the keys."),
    spec("sort", -2, W, ONE, sort::sort, "generic", "Sorts elements, and may keep the result."),
    spec("sort_ro", -2, R, ONE, sort::sort_ro, "generic", "Sorts elements."),
    spec("touch", -2, R | F, ALL, keys::touch, "generic", "Counts the keys that are there."),
    spec("ttl", 2, R | F, ONE, keys::ttl, "generic", "Returns the seconds that a key has left."),
    spec("type", 2, R | F, ONE, keys::kind, "generic", "Returns what a key has."),
    spec("unlink", -2, W | F, ALL, keys::del, "generic", "Removes keys."),
    spec("wait", 3, B | S, NONE, blocking::wait, "generic", "Waits for replicas, of which there are none."),
    spec("hdel", -3, W | F | G, ONE, hashes::hdel, "hash", "Removes fields."),
    spec("hexists", 3, R | F | G, ONE, hashes::hexists, "hash", "Tells whether a field is there."),
    spec("hget", 3, R | F | G, ONE, hashes::hget, "hash", "Returns the value of a field."),
    spec("hgetall", 2, R, ONE, hashes::hgetall, "hash", "Returns all fields and values."),
    spec("hincrby", 4, W | F | G, ONE, hashes::hincrby, "hash", "Adds to a whole number."),
    spec("hincrbyfloat", 4, W | F | G, ONE, hashes::hincrbyfloat, "hash", "Adds a fraction to a number."),
    spec("hkeys", 2, R, ONE, hashes::hkeys, "hash", "Returns all fields."),
    spec("hlen", 2, R | F | G, ONE, hashes::hlen, "hash", "Counts the fields."),
    spec("hmget", -3, R | F | G, ONE, hashes::hmget, "hash", "Returns the values of several fields."),
    spec("hmset", -4, W | F | G, ONE, hashes::hmset, "hash", "Sets several fields."),
    spec("hrandfield", -2, R, ONE, hashes::hrandfield, "hash", "Returns fields chosen at random."),
    spec("hscan", -3, R, ONE, scan::hscan, "hash", "Goes through the fields."),
    spec("hset", -4, W | F | G, ONE, hashes::hset, "hash", "Sets fields."),
    spec("hsetnx", 4, W | F | G, ONE, hashes::hsetnx, "hash", "Sets a field if it is not there."),
    spec("hstrlen", 3, R | F | G, ONE, hashes::hstrlen, "hash", "Returns the length of a value."),
    spec("hvals", 2, R, ONE, hashes::hvals, "hash", "Returns all values."),
    spec("blmove", 6, W | B | S, TWO, blocking::blmove, "list", "Moves an element to another list, or waits for one."),
    spec(
        "blmpop",
        -5,
        W | B,
        NONE,
        blocking::blmpop,
        "list",
        "Takes elements from the first list that has some, or waits.",
    ),
    spec("blpop", -3, W | B | S, (1, -2, 1), blocking::blpop, "list", "Takes the first element, or waits for one."),
    spec("brpop", -3, W | B | S, (1, -2, 1), blocking::brpop, "list", "Takes the last element, or waits for one."),
    spec(
        "brpoplpush",
        4,
        W | B | S,
        TWO,
        blocking::brpoplpush,
        "list",
        "Moves the last element to another list, or waits for one.",
    ),
    spec("lindex", 3, R, ONE, lists::lindex, "list", "Returns an element by its number."),
    spec("linsert", 5, W, ONE, lists::linsert, "list", "Puts an element before or behind another."),
    spec("llen", 2, R | F | G, ONE, lists::llen, "list", "Counts the elements."),
    spec("lmove", 5, W, TWO, lists::lmove, "list", "Moves an element to another list."),
    spec("lmpop", -4, W, NONE, lists::lmpop, "list", "Takes elements from the first list that has some."),
    spec("lpop", -2, W | F | G, ONE, lists::lpop, "list", "Takes the first elements."),
    spec("lpos", -3, R, ONE, lists::lpos, "list", "Finds elements."),
    spec("lpush", -3, W | F | G, ONE, lists::lpush, "list", "Puts elements at the beginning."),
    spec(
        "lpushx",
        -3,
        W | F | G,
        ONE,
        lists::lpushx,
        "list",
        "Puts elements at the beginning of a list that is there.",
    ),
    spec("lrange", 4, R, ONE, lists::lrange, "list", "Returns a part of a list."),
    spec("lrem", 4, W, ONE, lists::lrem, "list", "Removes equal elements."),
    spec("lset", 4, W, ONE, lists::lset, "list", "Replaces an element."),
    spec("ltrim", 4, W, ONE, lists::ltrim, "list", "Removes all but a part."),
    spec("rpop", -2, W | F | G, ONE, lists::rpop, "list", "Takes the last elements."),
    spec("rpoplpush", 3, W, TWO, lists::rpoplpush, "list", "Moves the last element to another list."),
    spec("rpush", -3, W | F | G, ONE, lists::rpush, "list", "Puts elements at the end."),
    spec("rpushx", -3, W | F | G, ONE, lists::rpushx, "list", "Puts elements at the end of a list that is there."),
    spec("sadd", -3, W | F | G, ONE, sets::sadd, "set", "Adds members."),
    spec("scard", 2, R | F | G, ONE, sets::scard, "set", "Counts the members."),
    spec("sdiff", -2, R, ALL, sets::sdiff, "set", "Returns what only the first set has."),
    spec("sdiffstore", -3, W, ALL, sets::sdiffstore, "set", "Keeps what only the first set has."),
    spec("sinter", -2, R, ALL, sets::sinter, "set", "Returns what all sets have."),
    spec("sintercard", -3, R, NONE, sets::sintercard, "set", "Counts what all sets have."),
    spec("sinterstore", -3, W, ALL, sets::sinterstore, "set", "Keeps what all sets have."),
    spec("sismember", 3, R | F | G, ONE, sets::sismember, "set", "Tells whether a member is there."),
    spec("smembers", 2, R, ONE, sets::smembers, "set", "Returns all members."),
    spec("smismember", -3, R | F | G, ONE, sets::smismember, "set", "Tells of several members whether they are there."),
    spec("smove", 4, W | F, TWO, sets::smove, "set", "Moves a member to another set."),
    spec("spop", -2, W | F, ONE, sets::spop, "set", "Takes members chosen at random."),
    spec("srandmember", -2, R, ONE, sets::srandmember, "set", "Returns members chosen at random."),
    spec("srem", -3, W | F | G, ONE, sets::srem, "set", "Removes members."),
    spec("sscan", -3, R, ONE, scan::sscan, "set", "Goes through the members."),
    spec("sunion", -2, R, ALL, sets::sunion, "set", "Returns what any of the sets has."),
    spec("sunionstore", -3, W, ALL, sets::sunionstore, "set", "Keeps what any of the sets has."),
    spec(
        "bzmpop",
        -5,
        W | B,
        NONE,
        blocking::bzmpop,
        "sorted-set",
        "Takes members from the first set that has some, or waits.",
    ),
    spec(
        "bzpopmax",
        -3,
        W | B | S | F,
        (1, -2, 1),
        blocking::bzpopmax,
        "sorted-set",
        "Takes the greatest member, or waits for one.",
    ),
    spec(
        "bzpopmin",
        -3,
        W | B | S | F,
        (1, -2, 1),
        blocking::bzpopmin,
        "sorted-set",
        "Takes the smallest member, or waits for one.",
    ),
    spec("zadd", -4, W | F | G, ONE, sorted_sets::zadd, "sorted-set", "Adds members with scores."),
    spec("zcard", 2, R | F | G, ONE, sorted_sets::zcard, "sorted-set", "Counts the members."),
    spec("zcount", 4, R | F, ONE, sorted_sets::zcount, "sorted-set", "Counts the members between two scores."),
    spec("zdiff", -3, R, NONE, sorted_sets_combined::zdiff, "sorted-set", "Returns what only the first set has."),
    spec(
        "zdiffstore",
        -4,
        W,
        ONE,
        sorted_sets_combined::zdiffstore,
        "sorted-set",
        "Keeps what only the first set has.",
    ),
    spec("zincrby", 4, W | F | G, ONE, sorted_sets::zincrby, "sorted-set", "Adds to a score."),
    spec("zinter", -3, R, NONE, sorted_sets_combined::zinter, "sorted-set", "Returns what all sets have."),
    spec("zintercard", -3, R, NONE, sorted_sets_combined::zintercard, "sorted-set", "Counts what all sets have."),
    spec("zinterstore", -4, W, ONE, sorted_sets_combined::zinterstore, "sorted-set", "Keeps what all sets have."),
    spec("zlexcount", 4, R | F, ONE, sorted_sets::zlexcount, "sorted-set", "Counts the members between two texts."),
    spec("zmpop", -4, W, NONE, sorted_sets::zmpop, "sorted-set", "Takes members from the first set that has some."),
    spec("zmscore", -3, R | F | G, ONE, sorted_sets::zmscore, "sorted-set", "Returns several scores."),
    spec("zpopmax", -2, W | F, ONE, sorted_sets::zpopmax, "sorted-set", "Takes the greatest members."),
    spec("zpopmin", -2, W | F, ONE, sorted_sets::zpopmin, "sorted-set", "Takes the smallest members."),
    spec("zrandmember", -2, R, ONE, sorted_sets::zrandmember, "sorted-set", "Returns members chosen at random."),
    spec("zrange", -4, R, ONE, sorted_sets::zrange, "sorted-set", "Returns a part of a sorted set."),
    spec("zrangebylex", -4, R, ONE, sorted_sets::zrangebylex, "sorted-set", "Returns the members between two texts."),
    spec(
        "zrangebyscore",
        -4,
        R,
        ONE,
        sorted_sets::zrangebyscore,
        "sorted-set",
        "Returns the members between two scores.",
    ),
    spec("zrangestore", -5, W, TWO, sorted_sets::zrangestore, "sorted-set", "Keeps a part of a sorted set."),
    spec("zrank", 3, R | F, ONE, sorted_sets::zrank, "sorted-set", "Returns the place of a member."),
    spec("zrem", -3, W | F | G, ONE, sorted_sets::zrem, "sorted-set", "Removes members."),
    spec(
        "zremrangebylex",
        4,
        W,
        ONE,
        sorted_sets::zremrangebylex,
        "sorted-set",
        "Removes the members between two texts.",
    ),
    spec(
        "zremrangebyrank",
        4,
        W,
        ONE,
        sorted_sets::zremrangebyrank,
        "sorted-set",
        "Removes the members between two places.",
    ),
    spec(
        "zremrangebyscore",
        4,
        W,
        ONE,
        sorted_sets::zremrangebyscore,
        "sorted-set",
        "Removes the members between two scores.",
    ),
    spec("zrevrange", -4, R, ONE, sorted_sets::zrevrange, "sorted-set", "Returns a part of a sorted set, backwards."),
    spec(
        "zrevrangebylex",
        -4,
        R,
        ONE,
        sorted_sets::zrevrangebylex,
        "sorted-set",
        "Returns the members between two texts, backwards.",
    ),
    spec(
        "zrevrangebyscore",
        -4,
        R,
        ONE,
        sorted_sets::zrevrangebyscore,
        "sorted-set",
        "Returns the members between two scores, backwards.",
    ),
    spec("zrevrank", 3, R | F, ONE, sorted_sets::zrevrank, "sorted-set", "Returns the place of a member from the end."),
    spec("zscan", -3, R, ONE, scan::zscan, "sorted-set", "Goes through the members."),
    spec("zscore", 3, R | F | G, ONE, sorted_sets::zscore, "sorted-set", "Returns a score."),
    spec("zunion", -3, R, NONE, sorted_sets_combined::zunion, "sorted-set", "Returns what any of the sets has."),
    spec("zunionstore", -4, W, ONE, sorted_sets_combined::zunionstore, "sorted-set", "Keeps what any of the sets has."),
    spec(
        "discard",
        1,
        F | S | M,
        NONE,
        transactions::discard,
        "transactions",
        "Forgets the commands of a transaction.",
    ),
    spec("exec", 1, S | M, NONE, transactions::exec, "transactions", "Runs the commands of a transaction."),
    spec("multi", 1, F | S | M, NONE, transactions::multi, "transactions", "Begins a transaction."),
    spec("unwatch", 1, F | S, NONE, transactions::unwatch, "transactions", "Forgets the keys that are watched."),
    spec(
        "watch",
        -2,
        F | S | M,
        ALL,
        transactions::watch,
        "transactions",
        "Has the next transaction run only if keys stay as they are.",
    ),
    spec("psubscribe", -2, S | L | X, NONE, pubsub::psubscribe, "pubsub", "Listens to the channels of patterns."),
    spec("publish", 3, F, NONE, pubsub::publish, "pubsub", "Sends a message to a channel."),
    spec("pubsub", -2, R | C, NONE, pubsub::pubsub, "pubsub", "Tells who listens to what."),
    spec(
        "punsubscribe",
        -1,
        S | L | X,
        NONE,
        pubsub::punsubscribe,
        "pubsub",
        "Listens to the channels of patterns no longer.",
    ),
    spec("spublish", 3, F, ONE, pubsub::spublish, "pubsub", "Sends a message to a sharded channel."),
    spec("ssubscribe", -2, S | L | X, ALL, pubsub::ssubscribe, "pubsub", "Listens to sharded channels."),
    spec("subscribe", -2, S | L | X, NONE, pubsub::subscribe, "pubsub", "Listens to channels."),
    spec("sunsubscribe", -1, S | L | X, ALL, pubsub::sunsubscribe, "pubsub", "Listens to sharded channels no longer."),
    spec("unsubscribe", -1, S | L | X, NONE, pubsub::unsubscribe, "pubsub", "Listens to channels no longer."),
    spec("auth", -2, F | S | N | LOGIN, NONE, connection::login, "connection", "Logs in."),
    spec("client", -2, S | C, NONE, connection::client, "connection", "Looks at connections, names and ends them."),
    spec("echo", 2, F, NONE, connection::echo, "connection", "Returns a text."),
    spec(
        "hello",
        -1,
        F | S | N | LOGIN,
        NONE,
        connection::login,
        "connection",
        "Chooses the version of the protocol, and logs in.",
    ),
    spec("ping", -1, F | L, NONE, connection::ping, "connection", "Answers."),
    spec("quit", -1, F | S | N | L | M, NONE, connection::quit, "connection", "Ends the connection."),
    spec(
        "reset",
        1,
        F | S | N | L | M,
        NONE,
        connection::reset,
        "connection",
        "Makes the connection as it was when it was new.",
    ),
    spec("select", 2, F, NONE, connection::select, "connection", "Chooses a database."),
    spec("acl", -2, S | C, NONE, acl::acl, "server", "Tells who somebody is and what there is to be allowed."),
    spec("bgrewriteaof", 1, A | S | X, NONE, server::save, "server", "Makes a checkpoint."),
    spec("bgsave", -1, A | S | X, NONE, server::save, "server", "Makes a checkpoint."),
    spec("command", -1, R, NONE, commands::command, "server", "Describes commands."),
    spec("config", -2, A | S | C, NONE, config::config, "server", "Reads and sets parameters."),
    spec("dbsize", 1, R | F, NONE, keys::dbsize, "server", "Counts the keys."),
    spec("debug", -2, A | S, NONE, debug::debug, "server", "Sleeps."),
    spec("flushall", -1, W | WAITS, NONE, keys::flushall, "server", "Removes all keys of all databases."),
    spec("flushdb", -1, W | WAITS, NONE, keys::flushdb, "server", "Removes all keys of a database."),
    spec("info", -1, R, NONE, server::info, "server", "Tells how the server does."),
    spec("lastsave", 1, F, NONE, server::lastsave, "server", "Returns when the last checkpoint was made."),
    spec("latency", -2, A | S | C, NONE, measure::latency, "server", "Tells what took long."),
    spec("lolwut", -1, R | F, NONE, server::lolwut, "server", "Returns the version of the server."),
    spec("memory", -2, R | C, (2, 2, 1), server::memory, "server", "Tells what a key takes."),
    spec("module", -2, S | C, NONE, server::module, "server", "Tells that no modules are loaded."),
    spec("monitor", 1, A | S, NONE, attention::monitor, "server", "Shows all commands as they come."),
    spec("role", 1, F | S, NONE, server::role, "server", "Returns that this is the only server."),
    spec("save", 1, A | S | X, NONE, server::save, "server", "Makes a checkpoint."),
    spec("slowlog", -2, A | S | C, NONE, measure::slowlog, "server", "Tells what took long."),
    spec("swapdb", 3, W | F | WAITS, NONE, keys::swapdb, "server", "Swaps two databases."),
    spec("time", 1, F, NONE, server::time, "server", "Returns the time."),
    spec("asking", 1, F | S, NONE, server::refused, "cluster", "Is about clusters: refused."),
    spec("cluster", -2, A | S | C, NONE, server::refused, "cluster", "Is about clusters: refused."),
    spec("failover", -1, A | S, NONE, server::refused, "cluster", "Is about replicas: refused."),
    spec("psync", -3, A | S, NONE, server::refused, "cluster", "Is about replicas: refused."),
    spec("readonly", 1, F | S, NONE, server::refused, "cluster", "Is about clusters: refused."),
    spec("readwrite", 1, F | S, NONE, server::refused, "cluster", "Is about clusters: refused."),
    spec("replconf", -1, A | S, NONE, server::refused, "cluster", "Is about replicas: refused."),
    spec("replicaof", 3, A | S, NONE, server::refused, "cluster", "Is about replicas: refused."),
    spec("shutdown", -1, A | S | X, NONE, server::refused, "cluster", "Stops the server: refused."),
    spec("slaveof", 3, A | S, NONE, server::refused, "cluster", "Is about replicas: refused."),
    spec("sync", 1, A | S, NONE, server::refused, "cluster", "Is about replicas: refused."),
    spec("geoadd", -5, W, ONE, geo::geoadd, "geo", "Adds places."),
    spec("geodist", -4, R, ONE, geo::geodist, "geo", "Returns the distance of two places."),
    spec("geohash", -2, R, ONE, geo::geohash, "geo", "Returns places as geohashes."),
    spec("geopos", -2, R, ONE, geo::geopos, "geo", "Returns the coordinates of places."),
    spec("georadius", -6, W, ONE, geo::georadius, "geo", "Returns places around a point."),
    spec("georadius_ro", -6, R, ONE, geo::georadius_ro, "geo", "Returns places around a point."),
    spec("georadiusbymember", -5, W, ONE, geo::georadiusbymember, "geo", "Returns places around another."),
    spec("georadiusbymember_ro", -5, R, ONE, geo::georadiusbymember_ro, "geo", "Returns places around another."),
    spec("geosearch", -7, R, ONE, geo::geosearch, "geo", "Returns places within a circle or a box."),
    spec("geosearchstore", -8, W, TWO, geo::geosearchstore, "geo", "Keeps places within a circle or a box."),
    spec("pfadd", -2, W | F, ONE, hyperloglog::pfadd, "hyperloglog", "Notes elements."),
    spec("pfcount", -2, R, ALL, hyperloglog::pfcount, "hyperloglog", "Counts different elements, about."),
    spec("pfdebug", 3, A | W, (2, 2, 1), hyperloglog::pfdebug, "hyperloglog", "Shows the inside."),
    spec("pfselftest", 1, A, NONE, hyperloglog::pfselftest, "hyperloglog", "Has nothing to test here."),
    spec("pfmerge", -2, W, ALL, hyperloglog::pfmerge, "hyperloglog", "Puts several into one."),
    spec("dump", 2, R, ONE, dump::dump, "generic", "Returns a value as Redis' files have it."),
    spec("restore", -4, W, ONE, dump::restore, "generic", "Makes a key of a value of Redis' files."),
    spec("restore-asking", -4, W, ONE, dump::restore, "generic", "Makes a key of a value of Redis' files."),
    spec("xack", -4, W | F, ONE, stream_groups::xack, "stream", "Acknowledges entries."),
    spec("xadd", -5, W | F, ONE, streams::xadd, "stream", "Adds an entry."),
    spec(
        "xautoclaim",
        -6,
        W | F,
        ONE,
        stream_groups::xautoclaim,
        "stream",
        "Gives entries that wait too long to a consumer.",
    ),
    spec("xclaim", -6, W | F, ONE, stream_groups::xclaim, "stream", "Gives entries to a consumer."),
    spec("xdel", -3, W | F, ONE, streams::xdel, "stream", "Removes entries."),
    spec("xgroup", -2, W | C, (2, 2, 1), stream_groups::xgroup, "stream", "Makes and changes groups of consumers."),
    spec("xinfo", -2, R | C, (2, 2, 1), streams::xinfo, "stream", "Shows streams, groups and consumers."),
    spec("xlen", 2, R | F, ONE, streams::xlen, "stream", "Counts entries."),
    spec("xpending", -3, R, ONE, stream_groups::xpending, "stream", "Shows entries that are not acknowledged."),
    spec("xrange", -4, R, ONE, streams::xrange, "stream", "Returns entries of a range."),
    spec("xread", -4, B | R, NONE, streams::xread, "stream", "Returns entries behind a number, of several streams."),
    spec("xreadgroup", -7, B | W, NONE, streams::xreadgroup, "stream", "Returns entries to a consumer of a group."),
    spec("xrevrange", -4, R, ONE, streams::xrevrange, "stream", "Returns entries of a range, the last one first."),
    spec("xsetid", -3, W | F, ONE, streams::xsetid, "stream", "Sets the number of the last entry."),
    spec("xtrim", -4, W, ONE, streams::xtrim, "stream", "Removes the oldest entries."),
    spec("eval", -3, S | WAITS, NONE, scripts::eval, "scripting", "Runs a script."),
    spec("eval_ro", -3, R | S | WAITS, NONE, scripts::eval_ro, "scripting", "Runs a script that may not write."),
    spec("evalsha", -3, S | WAITS, NONE, scripts::evalsha, "scripting", "Runs a script of the cache."),
    spec(
        "evalsha_ro",
        -3,
        R | S | WAITS,
        NONE,
        scripts::evalsha_ro,
        "scripting",
        "Runs a script of the cache that may not write.",
    ),
    spec("fcall", -3, S | WAITS, NONE, functions::fcall, "scripting", "Calls a function of a library."),
    spec("fcall_ro", -3, R | S | WAITS, NONE, functions::fcall_ro, "scripting", "Calls a function that may not write."),
    spec(
        "function",
        -2,
        S | WAITS | C,
        NONE,
        functions::function,
        "scripting",
        "Makes, removes and shows libraries of functions.",
    ),
    spec("script", -2, S | C, NONE, scripts::script, "scripting", "Loads scripts and looks after the cache."),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case() {
        assert!(
            COMMANDS
                .iter()
                .all(|spec| find(spec.name.to_uppercase().as_bytes()).is_some_and(|found| found.name == spec.name))
        );
        assert_eq!(BY_NAME.len(), COMMANDS.len(), "a name twice");
        assert!(find(b"no such command").is_none() && find(&[b'a'; 1000]).is_none() && find(b"").is_none());
    }

    #[test]
    fn commands_read_or_write_and_say_what_they_are_for() {
        for spec in COMMANDS {
            assert!(!(spec.is(Flag::Write) && spec.is(Flag::Read)), "{}", spec.name);
            assert!(spec.summary.ends_with('.') && spec.arity != 0, "{}", spec.name);
        }
    }
}
