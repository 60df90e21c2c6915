//! Events of keys: `notify-keyspace-events`. They are published when what they tell of has been committed, behind it in the log.
//!
//! What a command has done to a key is noted with the command (`Call::events`), so that one which is rolled back has told nothing. What happens to keys
//! without a command of this door (they expire, have to make room, other protocols write them) comes from the database, row by row.
//! While nobody wants to know, a command costs one look at a flag.

use super::call::Call;
use super::pubsub::publish_event;
use super::shared::{Place, Shared};
use super::table::{Flag, find};
use super::tracking;
use database::{Database, RowWatcher, Session, SessionKind, Space};
use std::rc::{Rc, Weak};
use tuple::msgpack::Reader;
use wal::Position;

/// Classes of events, and the two ways in which they are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Class {
    Generic = 1,
    String = 1 << 1,
    List = 1 << 2,
    Set = 1 << 3,
    Hash = 1 << 4,
    SortedSet = 1 << 5,
    Expired = 1 << 6,
    Evicted = 1 << 7,
    Stream = 1 << 8,
    Module = 1 << 9,
    New = 1 << 10,
    Miss = 1 << 11,
    Keyspace = 1 << 12,
    Keyevent = 1 << 13,
}

/// Their letters, in the order in which Redis shows them.
const LETTERS: [(u8, Class); 14] = [
    (b'g', Class::Generic),
    (b'$', Class::String),
    (b'l', Class::List),
    (b's', Class::Set),
    (b'h', Class::Hash),
    (b'z', Class::SortedSet),
    (b'x', Class::Expired),
    (b'e', Class::Evicted),
    (b't', Class::Stream),
    (b'd', Class::Module),
    (b'n', Class::New),
    (b'K', Class::Keyspace),
    (b'E', Class::Keyevent),
    (b'm', Class::Miss),
];

/// What `A` stands for.
const ALL: u32 = (Class::New as u32) - 1;

/// Reads letters of classes. None: one of them is not known.
pub(super) fn parse(text: &[u8]) -> Option<u32> {
    text.iter().try_fold(0, |flags, letter| match letter {
        b'A' => Some(flags | ALL),
        letter => LETTERS.iter().find(|(known, _)| known == letter).map(|(_, class)| flags | *class as u32),
    })
}

/// Classes as letters, as Redis shows them.
pub(super) fn text(flags: u32) -> String {
    let is_all = flags & ALL == ALL;
    let mut text = if is_all { "A".to_string() } else { String::new() };
    for (letter, class) in LETTERS {
        let is_in_all = class as u32 <= Class::New as u32;
        if flags & class as u32 != 0 && !(is_all && is_in_all) {
            text.push(letter as char);
        }
    }
    text
}

/// What has happened to a key.
pub(super) struct Event {
    place: Place,
    /// None: nobody is told but those who keep its value.
    what: Option<(Class, &'static str)>,
    reach: Reach,
}

/// What an event is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// The key may have another value.
    Changed,
    /// The same, but the client that has changed it has read it since, in the same transaction.
    Reread,
    /// So may all keys.
    All,
    /// The key was looked for and is not there.
    Missed,
}

/// The events of a command that has put the row of a key. Those of one key at a time that has two in its arguments are told apart by the key.
fn of_command(call: &Call<'_>, name: &str, key: &[u8]) -> Vec<(Class, &'static str)> {
    let has_word = |words: &[&str]| (1..call.args.len()).any(|at| words.iter().any(|word| call.is_word(at, word)));
    let is_first = call.args.get(1).is_some_and(|first| *first == key);
    let one = match name {
        "set" if has_word(&["ex", "px", "exat", "pxat"]) => {
            return vec![(Class::String, "set"), (Class::Generic, "expire")];
        }
        "setex" | "psetex" => return vec![(Class::String, "set"), (Class::Generic, "expire")],
        "set" | "setnx" | "getset" | "mset" | "msetnx" | "bitop" => (Class::String, "set"),
        "setrange" => (Class::String, "setrange"),
        "append" => (Class::String, "append"),
        "incr" | "decr" | "incrby" | "decrby" => (Class::String, "incrby"),
        "incrbyfloat" => (Class::String, "incrbyfloat"),
        "setbit" | "bitfield" => (Class::String, "setbit"),
        "pfadd" | "pfmerge" | "pfdebug" => (Class::String, "pfadd"),
        "getex" if has_word(&["persist"]) => (Class::Generic, "persist"),
        "getex" | "expire" | "pexpire" | "expireat" | "pexpireat" => (Class::Generic, "expire"),
        "persist" => (Class::Generic, "persist"),
        "rename" | "renamenx" => (Class::Generic, "rename_to"),
        "move" => (Class::Generic, "move_to"),
        "copy" => (Class::Generic, "copy_to"),
        "restore" | "restore-asking" => (Class::Generic, "restore"),
        "sort" => (Class::List, "sortstore"),
        "lpush" | "lpushx" => (Class::List, "lpush"),
        "rpush" | "rpushx" => (Class::List, "rpush"),
        "lpop" | "blpop" => (Class::List, "lpop"),
        "rpop" | "brpop" => (Class::List, "rpop"),
        "lmpop" | "blmpop" => (Class::List, if has_word(&["right"]) { "rpop" } else { "lpop" }),
        "rpoplpush" | "brpoplpush" => (Class::List, if is_first { "rpop" } else { "lpush" }),
        "lmove" | "blmove" => {
            let is_left = call.is_word(if is_first { 3 } else { 4 }, "left");
            let events = [["rpop", "lpop"], ["rpush", "lpush"]];
            (Class::List, events[usize::from(!is_first)][usize::from(is_left)])
        }
        "linsert" => (Class::List, "linsert"),
        "lset" => (Class::List, "lset"),
        "lrem" => (Class::List, "lrem"),
        "ltrim" => (Class::List, "ltrim"),
        "sadd" => (Class::Set, "sadd"),
        "srem" => (Class::Set, "srem"),
        "spop" => (Class::Set, "spop"),
        "smove" => (Class::Set, if is_first { "srem" } else { "sadd" }),
        "sinterstore" => (Class::Set, "sinterstore"),
        "sunionstore" => (Class::Set, "sunionstore"),
        "sdiffstore" => (Class::Set, "sdiffstore"),
        "zadd" if has_word(&["incr"]) => (Class::SortedSet, "zincr"),
        "zincrby" => (Class::SortedSet, "zincr"),
        "zadd" | "geoadd" => (Class::SortedSet, "zadd"),
        "zrem" => (Class::SortedSet, "zrem"),
        "zremrangebyrank" => (Class::SortedSet, "zremrangebyrank"),
        "zremrangebyscore" => (Class::SortedSet, "zremrangebyscore"),
        "zremrangebylex" => (Class::SortedSet, "zremrangebylex"),
        "zpopmin" | "bzpopmin" => (Class::SortedSet, "zpopmin"),
        "zpopmax" | "bzpopmax" => (Class::SortedSet, "zpopmax"),
        "zmpop" | "bzmpop" => (Class::SortedSet, if has_word(&["max"]) { "zpopmax" } else { "zpopmin" }),
        "zinterstore" => (Class::SortedSet, "zinterstore"),
        "zunionstore" => (Class::SortedSet, "zunionstore"),
        "zdiffstore" => (Class::SortedSet, "zdiffstore"),
        "zrangestore" => (Class::SortedSet, "zrangestore"),
        "georadius" | "georadiusbymember" => (Class::SortedSet, "georadiusstore"),
        "geosearchstore" => (Class::SortedSet, "geosearchstore"),
        "hset" | "hmset" | "hsetnx" => (Class::Hash, "hset"),
        "hincrby" => (Class::Hash, "hincrby"),
        "hincrbyfloat" => (Class::Hash, "hincrbyfloat"),
        "hdel" => (Class::Hash, "hdel"),
        "xadd" => (Class::Stream, "xadd"),
        "xdel" => (Class::Stream, "xdel"),
        "xtrim" => (Class::Stream, "xtrim"),
        "xsetid" => (Class::Stream, "xsetid"),
        "xgroup" => match call.args.get(1).map(|word| word.to_ascii_lowercase()).as_deref() {
            Some(b"create") => (Class::Stream, "xgroup-create"),
            Some(b"setid") => (Class::Stream, "xgroup-setid"),
            Some(b"destroy") => (Class::Stream, "xgroup-destroy"),
            Some(b"createconsumer") => (Class::Stream, "xgroup-createconsumer"),
            _ => (Class::Stream, "xgroup-delconsumer"),
        },
        _ => return Vec::new(),
    };
    vec![one]
}

/// The events of a command by which a key has gone.
fn of_removal(call: &Call<'_>, name: &str, key: &[u8]) -> Vec<(Class, &'static str)> {
    let deletion = (Class::Generic, "del");
    match name {
        "rename" | "renamenx" => vec![(Class::Generic, "rename_from")],
        "move" => vec![(Class::Generic, "move_from")],
        // What they have taken was the last.
        "lpop" | "blpop" | "rpop" | "brpop" | "lmpop" | "blmpop" | "rpoplpush" | "brpoplpush" | "lmove" | "blmove"
        | "lrem" | "ltrim" | "srem" | "spop" | "smove" | "zrem" | "zremrangebyrank" | "zremrangebyscore"
        | "zremrangebylex" | "zpopmin" | "bzpopmin" | "zpopmax" | "bzpopmax" | "zmpop" | "bzmpop" | "hdel" => {
            let mut events = of_command(call, name, key);
            events.push(deletion);
            events
        }
        _ => vec![deletion],
    }
}

/// Notes what a command has done to a key.
#[cold]
pub(super) fn note(call: &Call<'_>, key: &[u8], is_removed: bool) {
    let name = call.args.first().and_then(|name| find(name)).map_or("", |spec| spec.name);
    let wanted = match (call.shared.notify.get() != 0, is_removed) {
        (false, _) => Vec::new(),
        (true, true) => of_removal(call, name, key),
        (true, false) => of_command(call, name, key),
    };
    let place = (call.db, key.to_vec());
    let mut events = call.events.borrow_mut();
    if wanted.is_empty() {
        events.push(Event { place, what: None, reach: Reach::Changed });
        return;
    }
    events.extend(wanted.into_iter().map(|what| Event {
        place: place.clone(),
        what: Some(what),
        reach: Reach::Changed,
    }));
}

/// Notes an event that the name of the command does not tell.
pub(super) fn say(call: &Call<'_>, class: Class, event: &'static str, key: &[u8]) {
    if call.shared.is_watchful.get() {
        let place = (call.db, key.to_vec());
        call.events.borrow_mut().push(Event { place, what: Some((class, event)), reach: Reach::Changed });
    }
}

/// Notes that all keys may have other values.
pub(super) fn note_all(call: &Call<'_>) {
    if call.shared.is_watchful.get() {
        call.events.borrow_mut().push(Event { place: (call.db, Vec::new()), what: None, reach: Reach::All });
    }
}

/// A key that was looked for is not there. Commands that read say so; what has expired goes whoever has looked for it.
#[cold]
pub(super) fn miss(call: &Call<'_>, key: &[u8]) {
    let reads = || call.args.first().and_then(|name| find(name)).is_some_and(|spec| spec.is(Flag::Read));
    let is_wanted = call.shared.notify.get() & Class::Miss as u32 != 0 && reads();
    let what = is_wanted.then_some((Class::Miss, "keymiss"));
    call.events.borrow_mut().push(Event { place: (call.db, key.to_vec()), what, reach: Reach::Missed });
}

/// Publishes one event, if somebody wants its class.
fn publish(shared: &Shared, seen: Position, (db, key): (usize, &[u8]), (class, event): (Class, &str)) {
    let flags = shared.notify.get();
    if flags & class as u32 == 0 {
        return;
    }
    if flags & Class::Keyspace as u32 != 0 {
        let channel = [format!("__keyspace@{db}__:").as_bytes(), key].concat();
        publish_event(shared, seen, (db, key), &channel, event.as_bytes());
    }
    if flags & Class::Keyevent as u32 != 0 {
        publish_event(shared, seen, (db, key), format!("__keyevent@{db}__:{event}").as_bytes(), key);
    }
}

/// Publishes the events of a command that has been committed.
#[cold]
pub(super) fn publish_all(shared: &Shared, seen: Position, events: &[Event]) {
    for event in events {
        if let Some(what) = event.what {
            publish(shared, seen, (event.place.0, &event.place.1), what);
        }
    }
}

/// True if all keys may have other values.
fn are_all(events: &[Event]) -> bool {
    events.iter().any(|event| event.reach == Reach::All)
}

/// What was looked for and has expired goes now, as in Redis, and who wants to know hears of it: behind the answer, which did not show it any more.
pub(super) fn expire_missed(shared: &Shared, database: &Rc<Database>, events: &[Event]) {
    let mut missed = events.iter().filter(|event| event.reach == Reach::Missed).peekable();
    if missed.peek().is_none() {
        return;
    }
    // Whoever reads has it removed.
    let context = database.admin_context();
    let spaces = shared.spaces(database);
    for event in missed {
        let Ok(space) = spaces.keys(event.place.0) else { continue };
        let mut key = vec![0x91];
        tuple::msgpack::encode_str(&mut key, &event.place.1);
        // If it cannot be done here (on disk it may have to wait) it is done in its time.
        let _ = database.expire_row(&context, space, &key);
    }
}

fn keys_of(events: &[Event], reach: Reach) -> Vec<tracking::Changed<'_>> {
    let is_meant = |event: &&Event| event.reach == reach;
    let mut keys: Vec<tracking::Changed<'_>> =
        events.iter().filter(is_meant).map(|event| (event.place.0, event.place.1.as_slice())).collect();
    keys.dedup();
    keys
}

/// Tells those who keep values what was changed.
pub(super) fn invalidate(shared: &Shared, seen: Position, events: &[Event], origin: u64) {
    if are_all(events) {
        tracking::invalidate_all(shared, seen);
    }
    tracking::invalidate(shared, seen, &keys_of(events, Reach::Changed), origin);
    let reread = keys_of(events, Reach::Reread);
    if !reread.is_empty() {
        tracking::invalidate_for_others(shared, seen, &reread, origin);
    }
}

/// A command of a transaction is about to read keys: what the transaction has done to them before, its client knows then.
#[cold]
pub(super) fn note_reread(events: &mut [Event], db: usize, keys: &[&[u8]]) {
    let is_known = |event: &&mut Event| {
        event.reach == Reach::Changed && event.place.0 == db && keys.contains(&event.place.1.as_slice())
    };
    events.iter_mut().filter(is_known).for_each(|event| event.reach = Reach::Reread);
}

/// Notes whether anybody wants to know what happens to keys.
pub(super) fn look_again(shared: &Rc<Shared>, database: &Rc<Database>) {
    let is_watchful = shared.notify.get() != 0 || shared.tracking.borrow().is_used();
    if shared.is_watchful.replace(is_watchful) != is_watchful {
        let watcher = Watcher { shared: Rc::downgrade(shared), database: Rc::downgrade(database) };
        super::attention::look_again(shared);
        database.watch_rows(is_watchful.then(|| Rc::new(watcher) as Rc<dyn RowWatcher>));
    }
}

/// Told by the database of every row.
struct Watcher {
    shared: Weak<Shared>,
    database: Weak<Database>,
}

/// The key of a row, when it expires, and whether it has a string.
fn read_row(row: &[u8]) -> Option<(&[u8], Option<u64>, bool)> {
    let mut reader = Reader::new(row);
    let length = reader.read_array().ok()?;
    let key = reader.read_str().ok()?;
    let is_string = reader.kind() != Ok(tuple::msgpack::Kind::Array);
    reader.skip_checked();
    Some((key, if length > 2 { reader.read_uint().ok() } else { None }, is_string))
}

impl RowWatcher for Watcher {
    fn written(
        &self,
        session: &Session,
        space: &Space,
        (old, new): (Option<&[u8]>, Option<&[u8]>),
        seen: Position,
        was_evicted: bool,
    ) {
        let (Some(shared), Some(database)) = (self.shared.upgrade(), self.database.upgrade()) else { return };
        let spaces = shared.spaces(&database);
        let Some(db) = spaces.database_of(space) else { return };
        let (old, new) = (old.and_then(read_row), new.and_then(read_row));
        let Some(key) = new.or(old).map(|(key, ..)| key) else { return };
        let now_ms = database.now_ms();
        let has_expired = old.is_some_and(|(_, expires, _)| expires.is_some_and(|at| at <= now_ms));
        let is_own = session.kind == SessionKind::Door("redis");
        let tell = |class, event| publish(&shared, seen, (db, key), (class, event));
        if has_expired {
            tell(Class::Expired, "expired");
        } else if was_evicted && new.is_none() {
            tell(Class::Evicted, "evicted");
        } else if !is_own && new.is_none() {
            tell(Class::Generic, "del");
        }
        if let Some((_, _, is_string)) = new {
            if old.is_none() || has_expired {
                tell(Class::New, "new");
            }
            if !is_own && is_string {
                tell(Class::String, "set");
            }
        }
        if !is_own || has_expired || was_evicted {
            tracking::invalidate(&shared, seen, &[(db, key)], 0);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    #[test]
    fn letters_come_back_as_redis_shows_them() {
        for (given, shown) in
            [("KEA", "AKE"), ("AKEmn", "AKEm"), ("g$lshzxetdnKEm", "AKEm"), ("gKE", "gKE"), ("En", "nE"), ("", "")]
        {
            assert_eq!(text(parse(given.as_bytes()).unwrap()), shown, "{given}");
        }
        assert!(parse(b"KEq").is_none());
    }
}
