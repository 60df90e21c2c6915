//! What a listener of memcached's is told and tells: its terms and its memory, statistics, watchers.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::memcached::{PATIENCE, Talk, address, listener, packet, receive, set, start};
use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::net::TcpStream;

#[test]
fn stats_have_the_names_that_tools_read() {
    let mut rig = start("");
    let mut talk = Talk::to(&mut rig);
    talk.ask([set("a", "1"), set("b", "2"), "get a none\r\nincr a 1\r\ndelete none\r\n".to_string()].concat());
    let answer = talk.ask("stats\r\n");
    let stats: BTreeMap<&str, &str> =
        answer.lines().filter_map(|line| line.strip_prefix("STAT ")?.split_once(' ')).collect();
    for (name, value) in [
        ("curr_items", "2"),
        ("get_hits", "1"),
        ("get_misses", "1"),
        ("cmd_get", "2"),
        ("incr_hits", "1"),
        ("delete_misses", "1"),
        ("version", "1.6.18"),
        ("threads", "1"),
    ] {
        assert_eq!(stats.get(name), Some(&value), "{name} in {answer}");
    }
    for name in "pid uptime time curr_connections total_connections cmd_set bytes total_items evictions limit_maxbytes"
        .split(' ')
    {
        assert!(stats[name].parse::<u64>().is_ok(), "{name}");
    }
    assert!(talk.ask("stats settings\r\n").contains("STAT item_size_max 1048576\r\n"));
    assert!(talk.ask("stats items\r\n").ends_with("END\r\n"));
    assert_eq!(talk.ask("stats reset\r\n"), "RESET\r\n");
    assert!(talk.ask("stats\r\n").contains("STAT get_hits 0\r\n"));
}

#[test]
fn a_listener_with_memory_is_a_cache_of_that_size() {
    let mut rig = start("?memory=2m");
    let mut talk = Talk::to(&mut rig);
    let value = "v".repeat(10_000);
    for number in 0..1000 {
        assert_eq!(talk.ask(set(&format!("key{number}"), &value)), "STORED\r\n");
    }
    let stats = talk.ask("stats\r\n");
    assert_eq!(stat(&stats, "limit_maxbytes"), 2 << 20);
    assert!(stat(&stats, "bytes") <= 2 << 20 && stat(&stats, "curr_items") > 150, "{stats}");
    assert_eq!(stat(&stats, "evictions"), 1000 - stat(&stats, "curr_items"));
    assert!(talk.ask("stats settings\r\n").contains("STAT evictions on\r\n"));
    // The next start says another size, and that nothing leaves.
    rig.restart(&["--listen", &listener("?memory=3m&eviction=none")]);
    let mut talk = Talk::to(&mut rig);
    let refused = (0..400).map(|number| talk.ask(set(&format!("new{number}"), &value)));
    assert_eq!(refused.last().unwrap(), "SERVER_ERROR out of memory storing object\r\n");
    let stats = talk.ask("stats\r\n");
    assert_eq!((stat(&stats, "limit_maxbytes"), stat(&stats, "evictions")), (3 << 20, 0));
    assert!(talk.ask("stats settings\r\n").contains("STAT evictions off\r\n"));
}

/// A number that `stats` has told.
fn stat(stats: &str, name: &str) -> u64 {
    let line = stats.lines().find(|line| line.starts_with(&format!("STAT {name} "))).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Asks until it is so.
fn await_that(mut is_so: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE);
    }
}

/// A line that comes by itself.
fn line(talk: &mut Talk) -> String {
    let mut line = String::new();
    talk.0.read_line(&mut line).unwrap();
    line
}

#[test]
fn the_limit_is_changed_by_a_client() {
    let mut rig = start("?memory=8m");
    let mut talk = Talk::to(&mut rig);
    assert_eq!(talk.ask("cache_memlimit 5\r\n"), "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n");
    assert_eq!(
        talk.ask("cache_memlimit 8000000000\r\n"),
        "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes\r\n"
    );
    assert_eq!(talk.ask("cache_memlimit 900000\r\n"), "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n");
    assert_eq!(talk.ask("cache_memlimit 16\r\ncache_memlimit 17 noreply\r\n"), "OK\r\n");
    assert_eq!(stat(&talk.ask("stats settings\r\n"), "maxbytes"), 17 << 20);
    // Where the listener has said none, it is not for clients.
    rig.restart(&["--listen", &listener("")]);
    let mut talk = Talk::to(&mut rig);
    assert_eq!(talk.ask("cache_memlimit 16\r\n"), "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n");
}

#[test]
fn details_and_watchers_tell_what_is_done() {
    let mut rig = start("");
    let mut talk = Talk::to(&mut rig);
    assert_eq!(talk.ask("stats detail dump\r\nstats detail on\r\n"), "END\r\nOK\r\n");
    talk.ask(set("foo:1", "abc") + "get foo:1\r\nget foo:2\r\ndelete foo:3\r\nget plain\r\n");
    assert_eq!(talk.ask("stats detail dump\r\n"), "PREFIX foo get 2 hit 1 set 1 del 1\r\nEND\r\n");
    assert_eq!(talk.ask("stats reset\r\nstats detail dump\r\nstats detail off\r\n"), "RESET\r\nEND\r\nOK\r\n");
    let mut watcher = Talk::to(&mut rig);
    assert_eq!(watcher.ask("watch nothing\r\n"), "ERROR\r\n");
    assert_eq!(watcher.ask("watch fetchers mutations deletions connevents\r\n"), "OK\r\n");
    assert_eq!(stat(&talk.ask("stats\r\n"), "log_watchers"), 1);
    talk.ask(set("a b", "") + &set("key#", "value") + "get key#\r\ndelete key#\r\n");
    let expected = [
        " type=item_get key=key%23 status=not_found ",
        " type=item_store key=key%23 status=stored cmd=set ttl=0 ",
        " type=item_get key=key%23 status=found ",
        " type=deleted key=key%23 ",
    ];
    for words in expected {
        let told = line(&mut watcher);
        assert!(told.starts_with("ts=") && told.contains(words), "{told} is not{words}");
    }
    // Who watches may go on with other things, and is not told of them.
    watcher.ask(set("own", "value") + "get own none\r\nmg own v\r\ndelete own\r\n");
    drop(Talk::to(&mut rig));
    assert!(line(&mut watcher).contains(" type=conn_new rip=127.0.0.1 "));
    assert!(line(&mut watcher).contains(" type=conn_close rip=127.0.0.1 "));
    // A watcher that does not read misses lines, and nobody waits for it; gone, it costs nothing more.
    let key = "k".repeat(200);
    for _ in 0..200 {
        talk.ask(format!("get {key}\r\n").repeat(500));
    }
    assert!(stat(&talk.ask("stats\r\n"), "log_watcher_skipped") > 0);
    drop(watcher);
    await_that(|| stat(&talk.ask("stats\r\n"), "log_watchers") == 0);
}

#[test]
fn what_tools_read_is_there() {
    let mut rig = start("");
    let mut talk = Talk::to(&mut rig);
    assert_eq!(talk.ask("lru_crawler metadump all\r\n"), "END\r\n");
    for number in 0..2500 {
        talk.send(format!("set key:{number} 0 1000 2 noreply\r\nab\r\n"));
    }
    let dump = talk.ask("lru_crawler metadump all\r\n");
    assert_eq!((dump.lines().count(), dump.lines().last().unwrap()), (2501, "END"));
    assert!(dump.starts_with("key=key%3A") && dump.contains(" cls=1 size="), "{}", &dump[..100]);
    assert_eq!(talk.ask("lru_crawler metadump 2\r\n"), "END\r\n");
    assert_eq!(talk.ask("lru_crawler metadump x\r\n"), "BADCLASS invalid class id\r\n");
    let piped = talk.ask("mg nobody v\r\nlru_crawler metadump all\r\n");
    assert_eq!(piped, "EN\r\nERROR cannot pipeline other commands before metadump\r\n");
    for (said, shown) in [("enable", "yes"), ("disable", "no")] {
        assert_eq!(talk.ask(format!("lru_crawler {said}\r\n")), "OK\r\n");
        assert!(talk.ask("stats settings\r\n").contains(&format!("STAT lru_crawler {shown}\r\n")));
    }
    let slabs = talk.ask("stats slabs\r\n");
    assert_eq!((stat(&slabs, "1:used_chunks"), stat(&slabs, "active_slabs")), (2500, 1));
    assert_eq!(stat(&talk.ask("stats items\r\n"), "items:1:number"), 2500);
    let conns = talk.ask("stats conns\r\n");
    assert!(conns.contains(":state conn_listening\r\n") && conns.contains(":state conn_parse_cmd\r\n"), "{conns}");
    let tuning =
        "slabs automove 1\r\nlru mode flat\r\nlru_crawler enable\r\nslabs reassign a b\r\nlru\r\nverbosity 1\r\n";
    assert_eq!(talk.ask(tuning), "OK\r\nOK\r\nOK\r\nCLIENT_ERROR bad command line format\r\nERROR\r\nOK\r\n");
    // The binary protocol has the same.
    let stream = TcpStream::connect(address(&mut rig)).unwrap();
    (&stream).write_all(&packet(0x10, b"detail on", &[], &[])).unwrap();
    assert_eq!(receive(&mut &stream), (0, Vec::new()));
}

#[test]
fn a_listener_allows_and_forbids() {
    let mut rig = start("?flush=no&dump=no&watch=no&idle_timeout=1");
    let mut talk = Talk::to(&mut rig);
    let answers = talk.ask("flush_all\r\nlru_crawler metadump all\r\nwatch\r\nshutdown\r\n");
    assert_eq!(
        answers,
        "CLIENT_ERROR flush_all not allowed\r\nERROR metadump not allowed\r\n\
         CLIENT_ERROR watch commands not allowed\r\nERROR: shutdown not enabled\r\n"
    );
    // Who says nothing for so long is gone; who does stays.
    let mut silent = Talk::to(&mut rig);
    await_that(|| stat(&talk.ask("stats\r\n"), "idle_kicks") == 1);
    assert_eq!(silent.rest(), b"");
    rig.restart(&["--listen", &listener("?shutdown=yes")]);
    let mut talk = Talk::to(&mut rig);
    assert_eq!(talk.ask("shutdown now\r\n"), "CLIENT_ERROR invalid shutdown mode\r\n");
    talk.send("shutdown graceful\r\n");
    assert_eq!(talk.rest(), b"");
    assert!(rig.server.ended().success());
}

#[test]
fn clients_are_counted() {
    let mut rig = start("?connections=2");
    let (mut first, mut second) = (Talk::to(&mut rig), Talk::to(&mut rig));
    assert_eq!((first.ask(""), second.ask("")), (String::new(), String::new()));
    assert_eq!(Talk::to(&mut rig).rest(), b"ERROR Too many open connections\r\n");
    drop(second);
    await_that(|| {
        let mut talk = Talk::to(&mut rig);
        talk.send("version\r\n");
        line(&mut talk).starts_with("VERSION")
    });
    assert!(stat(&first.ask("stats\r\n"), "rejected_connections") >= 1);
}

#[test]
fn it_is_counted_why_a_get_finds_nothing() {
    for (engine, expected) in [("memtx", 6), ("vinyl", 0)] {
        let mut rig = start(&format!("?engine={engine}"));
        let mut talk = Talk::to(&mut rig);
        // What has expired stays where it is for a while.
        let slow = "box.space.memcached:alter({ttl = {field = 'expires', walk_rows_per_second = 1}})";
        assert_eq!(rig.eval(slow).code(), 0);
        let ask = |talk: &mut Talk, words: &str| stat(&talk.ask("stats\r\n"), words);
        let many: String = (0..200).map(|number| format!(" none{number}")).collect();
        talk.ask(set("stays", "x") + &set("other", "y") + "set over 0 -1 1\r\nx\r\n");
        talk.ask(format!("get over none\r\nget over\r\nmg over v\r\ngat 5 over\r\nget over{many}\r\nget over\r\n"));
        let expired = ask(&mut talk, "get_expired");
        // Once for each read, unless somebody has removed it by then.
        let was_removed = ask(&mut talk, "reclaimed") > 0;
        assert!(expired == expected || expired < expected && was_removed, "{expired} with {engine}");
        assert_eq!(ask(&mut talk, "get_flushed"), 0);
        // Two are there, and one that nobody has removed, perhaps.
        let items = ask(&mut talk, "curr_items");
        assert_eq!(talk.ask("flush_all\r\n"), "OK\r\n");
        assert!(ask(&mut talk, "reclaimed") >= items, "what was flushed is reclaimed");
        talk.ask(set("other", "y") + "delete other\r\nget other\r\nget stays\r\nget stays\r\nget none\r\n");
        assert_eq!(ask(&mut talk, "get_flushed"), 1, "once, and not what was there again");
        talk.ask("stats reset\r\n");
        assert_eq!((ask(&mut talk, "get_flushed"), ask(&mut talk, "reclaimed")), (0, 0));
    }
}

#[test]
fn what_leaves_for_others_is_told_to_who_watches() {
    let mut rig = start("?memory=1m");
    let (mut talk, mut watcher) = (Talk::to(&mut rig), Talk::to(&mut rig));
    assert_eq!(watcher.ask("watch evictions\r\n"), "OK\r\n");
    let value = "v".repeat(10_000);
    for number in 0..150 {
        let command = ["set", "add"][number % 2];
        talk.ask(format!("{command} key#{number} 0 {} 10000\r\n{value}\r\n", number % 2 * 100));
    }
    let evicted = stat(&talk.ask("stats\r\n"), "evictions");
    assert!(evicted > 20, "{evicted}");
    for _ in 0..evicted {
        let told = line(&mut watcher);
        assert!(told.contains(" type=eviction key=key%23") && told.contains(" fetch=no ttl="), "{told}");
        assert!(told.ends_with(" clsid=22 size=10000\n"), "{told}");
    }
    // Nobody else is told, and nobody is once the watcher is gone.
    drop(watcher);
    await_that(|| stat(&talk.ask("stats\r\n"), "log_watchers") == 0);
    let sent = stat(&talk.ask("stats\r\n"), "log_watcher_sent");
    assert_eq!(sent, evicted);
    (0..50).for_each(|number| _ = talk.ask(set(&format!("more{number}"), &value)));
    let stats = talk.ask("stats\r\n");
    assert!(stat(&stats, "evictions") > evicted && stat(&stats, "log_watcher_sent") == sent, "{stats}");
}

#[test]
fn a_turn_has_as_many_requests_as_the_listener_says() {
    let mut rig = start("?requests_per_turn=1");
    let mut talk = Talk::to(&mut rig);
    let sets: String = (0..6).map(|number| set("a", &number.to_string())).collect();
    assert_eq!(talk.ask(sets + "get a\r\n"), "STORED\r\n".repeat(6) + "VALUE a 0 1\r\n5\r\nEND\r\n");
    let yields = stat(&talk.ask("stats\r\n"), "conn_yields");
    assert!((6..=10).contains(&yields), "{yields}");
    assert_eq!(stat(&talk.ask("stats settings\r\n"), "reqs_per_event"), 1);
    // A long line of requests of one client keeps nobody else waiting, and all are answered in their order.
    let (mut other, count) = (Talk::to(&mut rig), 20_000);
    talk.send((0..count).map(|_| "incr none 1\r\n").collect::<String>());
    assert_eq!(other.ask("get none\r\n"), "END\r\n");
    assert_eq!(talk.ask(""), "NOT_FOUND\r\n".repeat(count));
}

#[test]
fn a_listener_says_what_is_wrong_with_it() {
    let mut rig = start("?backlog=77");
    assert_eq!(stat(&Talk::to(&mut rig).ask("stats settings\r\n"), "tcp_backlog"), 77);
    for (query, words) in [
        ("backlog=0", "backlog '0' is no number between"),
        ("backlog=65536", "no number between"),
        ("backlog=-1", "no number between"),
        ("backlog=99999999999999999999", "no number between"),
        ("requests_per_turn=0", "requests_per_turn '0' is no number"),
        ("requests_per_turn=4294967296", "is no number"),
        ("connections=0", "connections '0' is no number of clients"),
        ("cas_enabled=perhaps", "cas_enabled 'perhaps' is neither yes nor no"),
    ] {
        let reply = rig.eval(&format!("box.cfg{{listen = {{'memcached://127.0.0.1:0?{query}'}}}}"));
        let text = reply.error.map(|(_, text)| text).unwrap_or_default();
        assert!(text.contains(words), "{query}: {text}");
    }
}

#[test]
fn items_are_told_by_the_classes_of_their_sizes() {
    let mut rig = start("?memory=16m");
    let mut talk = Talk::to(&mut rig);
    assert_eq!(talk.ask("stats items\r\n"), "END\r\n");
    assert!(talk.ask("stats slabs\r\n").starts_with("STAT active_slabs 0\r\nSTAT total_malloced "));
    // More than one slice of a walk, over two classes, beside one item of the largest.
    for number in 0..3000 {
        talk.send(format!("set small{number} 0 0 10 noreply\r\n0123456789\r\n"));
    }
    let value = "v".repeat(66_560);
    for number in 0..13 {
        talk.ask(format!("set k{number:02} 7 {} 66560\r\n{value}\r\n", if number == 12 { 1 } else { 0 }));
    }
    talk.ask(set("huge", &"h".repeat(900_000)));
    await_that(|| talk.ask("get k12\r\n") == "END\r\n");
    await_that(|| stat(&talk.ask("stats items\r\n"), "items:31:crawler_reclaimed") == 1);
    let items = talk.ask("stats items\r\n");
    // 48 bytes and 8 of a cas, the key and its end, 4 of flags, the value and its end.
    let bytes = |key: u64, flags: u64, length: u64| 57 + key + flags + length + 2;
    for (name, value) in [
        ("items:1:number", 3000),
        (
            "items:1:mem_requested",
            10 * bytes(6, 0, 10) + 90 * bytes(7, 0, 10) + 900 * bytes(8, 0, 10) + 2000 * bytes(9, 0, 10),
        ),
        ("items:1:reclaimed", 0),
        ("items:31:number", 12),
        ("items:31:mem_requested", 12 * bytes(3, 4, 66_560)),
        ("items:31:reclaimed", 1),
        ("items:31:evicted", 0),
        ("items:39:number", 1),
    ] {
        assert_eq!(stat(&items, name), value, "{name} in {items}");
    }
    let slabs = talk.ask("stats slabs\r\n");
    for (name, value) in [
        ("1:chunk_size", 96),
        ("1:chunks_per_page", 10_922),
        ("1:used_chunks", 3000),
        ("1:total_pages", 1),
        ("1:free_chunks", 7922),
        ("31:total_chunks", 12),
        ("31:free_chunks", 0),
        ("39:used_chunks", 2),
        ("active_slabs", 3),
    ] {
        assert_eq!(stat(&slabs, name), value, "{name} in {slabs}");
    }
    assert!(stat(&slabs, "total_malloced") >= 2 << 20, "{slabs}");
    let count = |dump: String| dump.lines().filter(|line| line.starts_with("key=")).count();
    for (classes, number) in [("1", 3000), ("31,39", 13), ("2", 0), ("63", 0), ("1,31", 3012), ("all", 3013)] {
        let dump = talk.ask(format!("lru_crawler metadump {classes}\r\n"));
        assert_eq!(count(dump), number, "{classes}");
    }
    for wrong in ["0", "64", "1,", "x", "-1", "1,99999999999"] {
        assert_eq!(talk.ask(format!("lru_crawler metadump {wrong}\r\n")), "BADCLASS invalid class id\r\n");
    }
    assert!(talk.ask("me huge\r\n").contains(" cls=39 size=900063\r\n"));
    // What leaves for others is told by classes, too; and what finds no room.
    (0..400).for_each(|number| _ = talk.ask(format!("set more{number:03} 0 900 66560\r\n{value}\r\n")));
    let (items, stats) = (talk.ask("stats items\r\n"), talk.ask("stats\r\n"));
    let evicted = |class: u64| {
        let name = format!("items:{class}:evicted");
        if items.contains(&format!("STAT {name} ")) { stat(&items, &name) } else { 0 }
    };
    assert!(evicted(31) > 0 && evicted(1) + evicted(31) <= stat(&stats, "evictions"), "{items}");
    assert!((1..=evicted(31)).contains(&stat(&items, "items:31:evicted_nonzero")), "{items}");
    assert_eq!(talk.ask("stats reset\r\n"), "RESET\r\n");
    assert_eq!(stat(&talk.ask("stats items\r\n"), "items:31:evicted"), 0);
    rig.restart(&["--listen", &listener("?memory=3m&eviction=none")]);
    let mut talk = Talk::to(&mut rig);
    let refused = (0..60).filter(|number| talk.ask(set(&format!("new{number}"), &value)) != "STORED\r\n").count();
    assert!(refused > 0);
    assert_eq!(stat(&talk.ask("stats items\r\n"), "items:31:outofmemory"), refused as u64);
    // The binary protocol asks for the same.
    let mut stream = TcpStream::connect(address(&mut rig)).unwrap();
    stream.write_all(&packet(0x10, b"slabs", &[], &[])).unwrap();
    let mut names = Vec::new();
    while let (0, body) = receive(&mut stream)
        && !body.is_empty()
    {
        names.push(String::from_utf8(body).unwrap());
    }
    assert!(names.iter().any(|name| name == "31:chunk_size82792"), "{names:?}");
}

#[test]
fn classes_on_disk_are_one() {
    let mut rig = start("?engine=vinyl");
    let mut talk = Talk::to(&mut rig);
    talk.ask(set("a", "x") + &set("b", &"y".repeat(5000)));
    assert_eq!(stat(&talk.ask("stats items\r\n"), "items:1:number"), 2);
    assert_eq!(stat(&talk.ask("stats slabs\r\n"), "1:used_chunks"), 2);
}
