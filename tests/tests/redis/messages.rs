//! What clients are told that they have not asked for at that moment: messages, events of keys, values that have changed, elements that they wait for.

use super::{Redis, Rig, value};
use std::time::Duration;

#[test]
fn who_waits_is_served_in_order_and_leaves_nothing_behind() {
    let rig = Rig::start("");
    let mut waiting: Vec<Redis> = (0..3).map(|_| rig.redis()).collect();
    let mut redis = rig.redis();
    for (number, client) in waiting.iter_mut().enumerate() {
        client.send(&[b"blpop", b"queue", b"0"]);
        while redis.ask("info clients").split("blocked_clients:").nth(1).unwrap().split('|').next().unwrap()
            != (number + 1).to_string()
        {}
    }
    // One of them leaves before it gets anything.
    drop(waiting.remove(1));
    while !redis.ask("info clients").contains("blocked_clients:2") {}
    assert_eq!(redis.ask("rpush queue x y z"), ":3|");
    let got: Vec<String> =
        waiting.iter_mut().map(|client| String::from_utf8(client.answer()).unwrap().replace("\r\n", "|")).collect();
    assert_eq!(got, ["*2|$5|queue|$1|x|", "*2|$5|queue|$1|y|"]);
    assert_eq!(redis.ask("lrange queue 0 -1"), "*1|$1|z|");
    assert!(redis.ask("info clients").contains("blocked_clients:0"));
}

#[test]
fn a_watched_key_that_changes_spoils_the_transaction_whoever_changes_it() {
    let rig = Rig::start("");
    let (mut redis, mut other) = (rig.redis(), rig.redis());
    let mut client = rig.server.connect();
    redis.ask("set a 1");
    assert_eq!(redis.ask("watch a"), "+OK|");
    assert_eq!(redis.ask("multi"), "+OK|");
    assert_eq!(redis.ask("set b 1"), "+QUEUED|");
    assert_eq!(redis.ask("exec"), "*1|+OK|");
    for change in 0..2 {
        assert_eq!(redis.ask("watch a"), "+OK|");
        match change {
            // The same value is a change, too.
            0 => assert_eq!(other.ask("set a 1"), "+OK|"),
            _ => assert_eq!(value(&mut client, "box.space.redis:replace({'a', 'x'}) return 'done'"), "done"),
        }
        redis.ask("multi");
        redis.ask("set b 2");
        assert_eq!(redis.ask("exec"), "*-1|", "{change}");
    }
    assert_eq!(redis.ask("get b"), "$1|1|");
}

#[test]
fn messages_go_to_those_who_listen() {
    let rig = Rig::start("");
    let (mut listener, mut redis) = (rig.redis(), rig.redis());
    assert_eq!(listener.ask("subscribe news"), "*3|$9|subscribe|$4|news|:1|");
    assert_eq!(listener.ask("psubscribe n*"), "*3|$10|psubscribe|$2|n*|:2|");
    assert!(listener.ask("get a").starts_with("-ERR Can't execute 'get'"));
    assert_eq!(redis.ask("publish news hello"), ":2|");
    let text = |client: &mut Redis| String::from_utf8(client.answer()).unwrap().replace("\r\n", "|");
    assert_eq!(text(&mut listener), "*3|$7|message|$4|news|$5|hello|");
    assert_eq!(text(&mut listener), "*4|$8|pmessage|$2|n*|$4|news|$5|hello|");
    drop(listener);
    while redis.ask("publish news again") != ":0|" {}
    assert_eq!(redis.ask("pubsub channels"), "*0|");
}

/// What happens to keys is told when it has been committed, by whomever it was done; what is rolled back is not.
#[test]
fn events_of_keys_are_told_whoever_has_done_it() {
    let rig = Rig::start("");
    let (mut redis, mut listener) = (rig.redis(), rig.redis());
    assert_eq!(redis.ask("config set notify-keyspace-events KEAnm"), "+OK|");
    assert_eq!(redis.ask("config get notify-keyspace-events"), "*2|$22|notify-keyspace-events|$4|AKEm|");
    assert!(redis.ask("config set notify-keyspace-events q").contains("Invalid event class"));
    assert_eq!(listener.ask("psubscribe __keyevent@0__:*"), "*3|$10|psubscribe|$16|__keyevent@0__:*|:1|");
    let told = |listener: &mut Redis| {
        let text = String::from_utf8_lossy(&listener.answer()).replace("\r\n", "|");
        let words: Vec<&str> = text.split('|').collect();
        format!("{} {}", words[6].rsplit(':').next().unwrap(), words[8])
    };
    let mut expect = |redis: &mut Redis, command: &str, events: &[&str]| {
        redis.ask(command);
        for event in events {
            assert_eq!(told(&mut listener), *event, "{command}");
        }
    };
    expect(&mut redis, "set a 1", &["new a", "set a"]);
    expect(&mut redis, "set a 1 ex 100", &["set a", "expire a"]);
    expect(&mut redis, "get missing", &["keymiss missing"]);
    expect(&mut redis, "incr a", &["incrby a"]);
    expect(&mut redis, "rename a b", &["new b", "rename_from a", "rename_to b"]);
    expect(&mut redis, "lpush l x", &["new l", "lpush l"]);
    expect(&mut redis, "lmove l m left right", &["new m", "lpop l", "del l", "rpush m"]);
    expect(&mut redis, "hset h f v", &["new h", "hset h"]);
    expect(&mut redis, "hset h f w", &["hset h"]);
    expect(&mut redis, "hdel h f", &["hdel h", "del h"]);
    expect(&mut redis, "zadd z 1 a", &["new z", "zadd z"]);
    expect(&mut redis, "zpopmin z", &["zpopmin z", "del z"]);
    expect(&mut redis, "xadd s 1-1 f v", &["new s", "xadd s"]);
    expect(&mut redis, "xgroup create s g 0", &["xgroup-create s"]);
    expect(&mut redis, "xreadgroup group g c streams s >", &["xgroup-createconsumer s"]);
    expect(&mut redis, "eval redis.call('set','k','v')return(1) 0", &["new k", "set k"]);
    // What fails, and what is given up, tells nothing.
    redis.ask("lpush b x");
    redis.ask("multi");
    redis.ask("set gone 1");
    redis.ask("discard");
    expect(&mut redis, "pexpire b 1", &["expire b", "expired b"]);
    let mut client = rig.server.connect();
    value(&mut client, "box.space.redis:replace{'other', 'door'} return 'done'");
    value(&mut client, "box.space.redis:delete{'other'} return 'done'");
    expect(&mut redis, "echo 1", &["new other", "set other", "del other"]);
    // Nobody who has gone is told.
    redis.ask("config set notify-keyspace-events El");
    redis.ask("set a 1");
    expect(&mut redis, "rpush m 1", &["rpush m"]);
}

/// Clients that keep values are told of changes by any door, and nothing stays of those who are gone.
#[test]
fn clients_that_keep_values_are_told_of_changes() {
    let rig = Rig::start("");
    let (mut keeper, mut writer) = (rig.redis(), rig.redis());
    let next = |redis: &mut Redis| String::from_utf8_lossy(&redis.answer()).replace("\r\n", "|");
    keeper.ask("hello 3");
    writer.ask("set k 1");
    assert_eq!(keeper.ask("client tracking on"), "+OK|");
    keeper.ask("get k");
    writer.ask("set k 2");
    assert_eq!(next(&mut keeper), ">2|$10|invalidate|*1|$1|k|");
    // Once until it is read again; by another door, and by expiry, too.
    writer.ask("set k 3");
    assert_eq!(keeper.ask("get k"), "$1|3|");
    let mut client = rig.server.connect();
    value(&mut client, "box.space.redis:replace{'k', '4'} return 'done'");
    assert_eq!(next(&mut keeper), ">2|$10|invalidate|*1|$1|k|");
    writer.ask("set k 5 px 1");
    keeper.ask("hget h f");
    writer.ask("hset h f 1");
    assert_eq!(next(&mut keeper), ">2|$10|invalidate|*1|$1|h|");
    keeper.ask("hget h f");
    writer.ask("hset h f 2");
    assert_eq!(next(&mut keeper), ">2|$10|invalidate|*1|$1|h|");
    writer.ask("flushall");
    assert_eq!(next(&mut keeper), ">2|$10|invalidate|_|");
    // Prefixes, and nothing of what one does oneself.
    assert!(keeper.ask("client tracking on bcast").contains("can't switch BCAST mode"));
    assert_eq!(keeper.ask("client tracking off"), "+OK|");
    assert!(keeper.ask("client tracking on bcast prefix a prefix ab").contains("overlaps"));
    assert!(keeper.ask("client tracking on prefix a").contains("requires BCAST"));
    assert_eq!(keeper.ask("client tracking on bcast prefix a prefix b noloop"), "+OK|");
    assert_eq!(keeper.ask("mset a1 1 b1 1"), "+OK|");
    writer.ask("mset a1 1 a2 1 b1 1 c1 1");
    assert_eq!(next(&mut keeper), ">2|$10|invalidate|*2|$2|a1|$2|a2|");
    assert_eq!(next(&mut keeper), ">2|$10|invalidate|*1|$2|b1|");
    assert!(writer.ask("info clients").contains("tracking_clients:1"));
    drop(keeper);
    while !writer.ask("info clients").contains("tracking_clients:0") {}
    // The table is bounded: what is forgotten is told of.
    let mut keeper = rig.redis();
    keeper.ask("hello 3");
    writer.ask("config set tracking-table-max-keys 2");
    keeper.ask("client tracking on");
    keeper.ask("mget a b");
    keeper.send(&[b"get", b"c"]);
    assert!(next(&mut keeper).starts_with(">2|$10|invalidate|*1|$1|"));
    assert_eq!(next(&mut keeper), "_|");
    assert!(writer.ask("info stats").contains("tracking_total_keys:2"));
    // Nobody is told through somebody who is not there.
    assert!(writer.ask("client tracking on redirect 999").contains("does not exist"));
}

/// Whoever keeps values hears behind the answer, and what has expired goes when it is looked for; RESET is as a new connection.
#[test]
fn what_is_told_comes_behind_the_answer() {
    let rig = Rig::start("");
    let (mut redis, mut other) = (rig.redis(), rig.redis());
    redis.ask("hello 3");
    redis.ask("client tracking on");
    let flushed = ">2|$10|invalidate|_|";
    let next = |redis: &mut Redis| String::from_utf8(redis.answer()).unwrap().replace("\r\n", "|");
    for commands in [&["flushdb"][..], &["multi", "flushall", "exec"], &["swapdb 0 1"]] {
        redis.ask("get k");
        let answers: Vec<String> = commands.iter().map(|command| redis.ask(command)).collect();
        assert!(answers.iter().all(|answer| !answer.contains("invalidate")), "{answers:?}");
        assert_eq!(next(&mut redis), flushed);
    }
    // What a transaction has read behind its own change is not told of.
    for command in ["multi", "set own 1", "get own", "exec", "multi", "get own", "set own 2", "exec"] {
        redis.ask(command);
    }
    assert_eq!(next(&mut redis), ">2|$10|invalidate|*1|$3|own|");
    // A row that nobody has removed yet.
    assert_eq!(other.ask("debug set-active-expire 0"), "+OK|");
    redis.ask("mset k2 v k3 v");
    assert_eq!(redis.ask("pexpire k2 300"), ":1|");
    assert_eq!(redis.ask("get k2"), "$1|v|");
    let begun = std::time::Instant::now();
    while begun.elapsed() < Duration::from_millis(400) {
        other.ask("ping");
    }
    assert_eq!(redis.ask("mget k3 k2"), "*2|$1|v|_|");
    assert_eq!(next(&mut redis), ">2|$10|invalidate|*1|$2|k2|");
    other.ask("set k2 v px 1");
    while other.ask("del k2") != ":0|" {}
    assert_eq!(other.ask("dbsize"), ":2|", "k3 and own");
    assert_eq!(other.ask("debug set-active-expire 1"), "+OK|");
    // Time stands still within a script.
    other.ask("debug set-disable-deny-scripts 1");
    other.send(&[
        b"eval",
        b"redis.call('set', 'x', '1', 'px', '1') redis.call('debug', 'sleep', '0.01') return redis.call('exists', 'x')",
        b"0",
    ]);
    assert_eq!(other.answer(), b":1\r\n");
    assert_eq!(other.ask("exists x"), ":0|");
    // Who logs out has no rights any more.
    assert_eq!(other.ask("auth boss b"), "+OK|");
    assert_eq!(other.ask("acl whoami"), "$4|boss|");
    assert_eq!(other.ask("reset"), "+RESET|");
    assert_eq!(other.ask("acl whoami"), "$5|redis|");
    // Elements of a large key that is gone are counted.
    other.ask("config resetstat");
    for number in 0..100 {
        other.ask(&format!("sadd large {number}"));
    }
    other.ask("sadd small 1");
    other.ask("unlink large small");
    while !other.ask("info memory").contains("lazyfree_pending_objects:0") {}
    assert!(other.ask("info memory").contains("lazyfreed_objects:1|"));
    // What changes nothing is no change.
    other.ask("setbit bits 7 1");
    other.ask("bitfield bits set u8 0 1");
    other.ask("save");
    other.ask("setbit bits 7 1");
    other.ask("bitfield bits set u8 0 1");
    assert!(other.ask("info persistence").contains("rdb_changes_since_last_save:0|"));
}
