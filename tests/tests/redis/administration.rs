//! What is about the door as a whole: who may administer it, who is told of what, and where that is bounded.

use super::{Redis, Rig, value};
use lycosa_tests::Client;
use std::io::Read;
use wire::request_type;

/// A user who may read one space only changes nothing that others rely on, and ends nobody else.
#[test]
fn who_reads_one_space_administers_nothing() {
    let rig = Rig::start("");
    let mut client = admin(&rig);
    value(&mut client, NARROW);
    let (mut other, mut narrow) = (rig.redis(), rig.redis());
    assert_eq!(narrow.ask("auth narrow secret"), "+OK|");
    let id = other.ask("client id").trim_matches([':', '|']).to_string();
    let sha = other.ask("script load return(1)").split('|').nth(1).unwrap().to_string();
    let refused = [
        "config set hz 20",
        "config resetstat",
        "slowlog get",
        "slowlog reset",
        "latency reset",
        "client pause 1",
        "client unpause",
        &format!("client kill id {id}"),
        "client kill user redis",
        "client kill type normal",
        "client tracking on redirect ID",
        "debug sleep 0",
        "debug set-disable-deny-scripts 1",
        "debug populate 1",
        "save",
        "bgsave",
        "bgrewriteaof",
        "script flush",
        "function load #!lua\u{a0}name=x",
        "function flush",
        "acl setuser narrow +@all",
        "acl deluser reader",
        "acl list",
        "acl getuser reader",
        "acl log",
        "acl log reset",
        "flushall",
        "flushdb",
        "swapdb 0 1",
        "set a 1",
        "subscribe __keyspace@1__:a",
    ];
    other.ask("select 1");
    for command in refused {
        let answer = narrow.ask(&command.replace("ID", &id));
        let is_refused = answer.starts_with("-NOPERM") || command.starts_with("function") && answer.starts_with('-');
        assert!(is_refused, "{command}: {answer}");
    }
    assert_eq!(narrow.ask("config get masterauth"), "*0|");
    assert_eq!(other.ask(&format!("script exists {sha}")), "*1|:1|");
    assert!(!narrow.ask("client list").contains("user=redis"));
    assert_eq!(narrow.ask("get a"), "$-1|");
    // What others do is not shown.
    let mut monitor = rig.redis();
    monitor.ask("auth narrow secret");
    assert_eq!(monitor.ask("monitor"), "+OK|");
    other.ask("get secret");
    narrow.ask("get shown");
    assert!(String::from_utf8_lossy(&monitor.answer()).ends_with("\"get\" \"shown\"\r\n"));
}

/// A client of the binary protocol who may grant what is the administrator's.
fn admin(rig: &Rig) -> Client {
    let mut client = rig.server.connect();
    assert_eq!(client.call(request_type::AUTH, &client.login("admin", "b")).error, None);
    client
}

const NARROW: &str = "box.schema.user.create('narrow', { password = 'secret' }) \
                      box.schema.user.grant('narrow', 'read', 'space', 'redis') return 'done'";

/// Names of keys that were changed go to who may read them, whatever was granted when they began to listen.
#[test]
fn names_of_keys_are_told_to_who_may_read_them() {
    let rig = Rig::start("");
    let mut client = admin(&rig);
    value(&mut client, NARROW);
    let next = |redis: &mut Redis| String::from_utf8_lossy(&redis.answer()).replace("\r\n", "|");
    let mut writer = rig.redis();
    assert_eq!(writer.ask("config set notify-keyspace-events EA"), "+OK|");
    let (mut keeper, mut all, mut listener) = (rig.redis(), rig.redis(), rig.redis());
    for redis in [&mut keeper, &mut all, &mut listener] {
        assert!(redis.ask("hello 3 auth narrow secret").starts_with('%'));
    }
    listener.ask("psubscribe *");
    assert_eq!(all.ask("client tracking on bcast"), "+OK|");
    assert_eq!(keeper.ask("client tracking on"), "+OK|");
    assert_eq!(keeper.ask("get a"), "_|");
    // Of another database nothing is told.
    assert_eq!(writer.ask("select 1"), "+OK|");
    writer.ask("set hidden 1");
    writer.ask("select 0");
    writer.ask("set a 1");
    assert_eq!(next(&mut listener), ">4|$8|pmessage|$1|*|$18|__keyevent@0__:set|$1|a|");
    assert_eq!(next(&mut all), ">2|$10|invalidate|*1|$1|a|");
    assert_eq!(next(&mut keeper), ">2|$10|invalidate|*1|$1|a|");
    assert_eq!(keeper.ask("get a"), "$1|1|");
    value(&mut client, "box.schema.user.revoke('narrow', 'read', 'space', 'redis') return 'done'");
    writer.ask("set a 2");
    assert!(keeper.ask("get a").starts_with("-NOPERM"));
    assert!(keeper.ask("client tracking on").starts_with("-NOPERM"));
    assert_eq!(all.ask("ping"), "+PONG|");
    assert_eq!(listener.ask("ping"), "+PONG|");
    // It is told again when it may read again.
    value(&mut client, "box.schema.user.grant('narrow', 'read', 'space', 'redis') return 'done'");
    writer.ask("set b 3");
    assert_eq!(next(&mut all), ">2|$10|invalidate|*1|$1|b|");
    assert_eq!(next(&mut listener), ">4|$8|pmessage|$1|*|$18|__keyevent@0__:set|$1|b|");
}

/// What is refused switches nothing on; many prefixes, and keys of clients that are gone, are dealt with at once.
#[test]
fn tracking_is_bounded() {
    let rig = Rig::start("");
    let (mut keeper, mut writer) = (rig.redis(), rig.redis());
    let mut all: Vec<Vec<u8>> = (0..10_001).map(|number| format!("prefix-{number:05}:").into_bytes()).collect();
    let words = |all: &[Vec<u8>]| -> Vec<Vec<u8>> {
        let head = ["client", "tracking", "on", "bcast"].map(|word| word.as_bytes().to_vec());
        head.into_iter().chain(all.iter().flat_map(|prefix| [b"prefix".to_vec(), prefix.clone()])).collect()
    };
    let ask = |keeper: &mut Redis, all: &[Vec<u8>]| {
        keeper.send(&words(all).iter().map(Vec::as_slice).collect::<Vec<_>>());
        String::from_utf8_lossy(&keeper.answer()).into_owned()
    };
    keeper.ask("hello 3");
    assert_eq!(ask(&mut keeper, &all), "-ERR a client has at most 10000 prefixes\r\n");
    assert_eq!(ask(&mut keeper, &[vec![b'x'; 1025]]), "-ERR a prefix has at most 1024 bytes\r\n");
    assert!(keeper.ask("client trackinginfo").contains("$3|off|"), "what is refused switches nothing on");
    all.truncate(9_998);
    assert_eq!(ask(&mut keeper, &all), "+OK\r\n");
    assert!(
        keeper.ask("client tracking on bcast prefix z prefix prefix-00007:a").contains("overlaps with an existing")
    );
    writer.ask("mset prefix-00007:x 1 prefix-0000 1 prefix-00007 1");
    assert_eq!(keeper.answer(), b">2\r\n$10\r\ninvalidate\r\n*1\r\n$14\r\nprefix-00007:x\r\n");
    assert!(writer.ask("info stats").contains("tracking_total_prefixes:9998"));
    assert_eq!(keeper.ask("client tracking off"), "+OK|");
    assert_eq!(keeper.ask("client tracking on"), "+OK|");
    keeper.ask("mget a b c");
    assert!(writer.ask("info stats").contains("tracking_total_items:3"));
    // A lower bound holds at once, however many keys are too many.
    (0..250).for_each(|number| drop(keeper.ask(&format!("get many{number}"))));
    assert_eq!(writer.ask("config set tracking-table-max-keys 1"), "+OK|");
    while !writer.ask("info stats").contains("tracking_total_keys:1|") {}
    let told = (0..252).filter(|_| keeper.answer().starts_with(b">2\r\n$10\r\ninvalidate")).count();
    assert_eq!(told, 252);
    assert_eq!(writer.ask("config set tracking-table-max-keys 1000000"), "+OK|");
    assert_eq!(keeper.ask("client tracking off"), "+OK|");
    let stats = writer.ask("info stats");
    assert!(stats.contains("tracking_total_items:0") && stats.contains("tracking_total_prefixes:0"), "{stats}");
}

/// `CLIENT KILL` ends who waits, for a key or for the end of a pause, and answers who ends itself.
#[test]
fn who_is_killed_ends_at_once() {
    let rig = Rig::start("");
    let (mut redis, mut waiting, mut paused) = (rig.redis(), rig.redis(), rig.redis());
    let id = |redis: &mut Redis| redis.ask("client id").trim_matches([':', '|']).to_string();
    let (first, second) = (id(&mut waiting), id(&mut paused));
    waiting.send(&[b"blpop", b"l", b"0"]);
    while !redis.ask("info clients").contains("blocked_clients:1") {}
    assert_eq!(redis.ask("client pause 1000000 write"), "+OK|");
    paused.send(&[b"set", b"k", b"v"]);
    while !redis.ask("info clients").contains("blocked_clients:2") {}
    for (id, mut gone) in [(first, waiting), (second, paused)] {
        assert_eq!(redis.ask(&format!("client kill id {id}")), ":1|");
        let mut rest = Vec::new();
        gone.0.read_to_end(&mut rest).unwrap();
    }
    while !redis.ask("info clients").contains("blocked_clients:0") {}
    assert_eq!(redis.ask("client unpause"), "+OK|");
    let own = id(&mut redis);
    assert_eq!(redis.ask(&format!("client kill id {own} skipme no")), ":1|");
    assert!(redis.answer().is_empty());
}
