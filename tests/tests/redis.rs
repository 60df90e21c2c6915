//! The door of Redis' protocol, from outside: recorded answers of the real one, and what it has no part in: rights, logins, durability, other doors.
#![allow(clippy::unwrap_used, reason = "a test")]

#[path = "redis/administration.rs"]
mod administration;
#[path = "redis/messages.rs"]
mod messages;
#[path = "redis/rules.rs"]
mod rules;
#[path = "redis/scripts.rs"]
mod scripts;

use lycosa_tests::{Client, Server};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// A client of Redis' protocol that gives answers as they come.
struct Redis(BufReader<UnixStream>);

impl Redis {
    fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Redis(BufReader::new(stream))
    }

    fn send(&mut self, parts: &[&[u8]]) {
        self.send_all(std::iter::once(parts.iter().map(|part| part.to_vec()).collect()));
    }

    /// Sends commands together.
    fn send_all(&mut self, commands: impl Iterator<Item = Vec<Vec<u8>>>) {
        let mut out = Vec::new();
        for parts in commands {
            out.extend_from_slice(format!("*{}\r\n", parts.len()).as_bytes());
            for part in parts {
                out.extend_from_slice(format!("${}\r\n", part.len()).as_bytes());
                out.extend_from_slice(&part);
                out.extend_from_slice(b"\r\n");
            }
        }
        self.0.get_mut().write_all(&out).unwrap();
    }

    /// One answer with its ends of lines. Empty if the connection has ended.
    fn answer(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        self.0.read_until(b'\n', &mut line).unwrap();
        let count: i64 = line.get(1..).and_then(|rest| String::from_utf8_lossy(rest).trim().parse().ok()).unwrap_or(0);
        match line.first() {
            Some(b'$') if count >= 0 => {
                let begin = line.len();
                line.resize(begin + count as usize + 2, 0);
                self.0.read_exact(&mut line[begin..]).unwrap();
            }
            Some(b'*' | b'~' | b'>') => (0..count).for_each(|_| line.extend(self.answer())),
            Some(b'%') => (0..count * 2).for_each(|_| line.extend(self.answer())),
            _ => {}
        }
        line
    }

    /// The answer to words, as text with bars for ends of lines.
    fn ask(&mut self, words: &str) -> String {
        let parts: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        self.send(&parts);
        String::from_utf8_lossy(&self.answer()).replace("\r\n", "|")
    }
}

/// A server with a socket of this protocol beside the binary one.
struct Rig {
    dir: TempDir,
    server: Server,
}

impl Rig {
    fn start(terms: &str) -> Self {
        Rig::start_for("", terms)
    }

    /// With a user that the listener names, and an `@`.
    fn start_for(user: &str, terms: &str) -> Self {
        let dir = TempDir::new().unwrap();
        let server = serve(dir.path(), user, terms);
        Rig { dir, server }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("redis.sock")
    }

    fn redis(&self) -> Redis {
        Redis::connect(&self.path())
    }

    /// Kills the server and starts it again.
    fn restart(&mut self, terms: &str) {
        self.server.kill();
        self.server = serve(self.dir.path(), "", terms);
    }
}

fn serve(dir: &Path, user: &str, terms: &str) -> Server {
    let script = dir.join("open.lua");
    let source = "box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true }) \
                  box.schema.user.passwd('admin', 'b') \
                  box.schema.user.create('boss', { password = 'b', if_not_exists = true }) \
                  box.schema.user.grant('boss', 'super', nil, nil, { if_not_exists = true }) \
                  box.schema.user.create('reader', { password = 'secret', if_not_exists = true }) \
                  box.schema.user.grant('reader', 'read', 'universe', nil, { if_not_exists = true })";
    fs::write(&script, source).unwrap();
    let listen = format!("redis://{user}unix/:{}{terms}", dir.join("redis.sock").display());
    let (data, script) = (dir.join("data"), script.display().to_string());
    Server::start_in(&data, &["--listen", &listen, "--script", &script])
}

fn unescaped(text: &str) -> Vec<u8> {
    if text == "%" {
        return Vec::new();
    }
    let (bytes, mut out, mut at) = (text.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        match bytes[at] {
            b'%' => {
                out.push(u8::from_str_radix(&text[at + 1..at + 3], 16).unwrap());
                at += 3;
            }
            b'|' => {
                out.extend_from_slice(b"\r\n");
                at += 1;
            }
            byte => {
                out.push(byte);
                at += 1;
            }
        }
    }
    out
}

/// Plays a recorded file.
fn play(name: &str, terms: &str) {
    play_ahead(name, terms, 1);
}

/// The same with so many commands sent before the first answer is read.
fn play_ahead(name: &str, terms: &str, ahead: usize) {
    let rig = Rig::start(terms);
    play_to(&rig, &mut rig.redis(), name, ahead);
}

/// The same to a client that is there.
fn play_to(rig: &Rig, redis: &mut Redis, name: &str, ahead: usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("redis/answers").join(name);
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let pairs: Vec<(&str, &str)> = lines.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
    for (played, (command, answer)) in pairs.iter().enumerate() {
        let (mark, words) = command.split_once(' ').unwrap();
        if played % ahead == 0 {
            let next = &pairs[played..pairs.len().min(played + ahead)];
            redis.send_all(next.iter().map(|(command, _)| {
                let words = command.split_once(' ').unwrap().1;
                words.split(' ').map(unescaped).collect::<Vec<_>>()
            }));
        }
        let pieces = |answer: &[u8]| {
            let mut pieces: Vec<Vec<u8>> = answer.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            // What has no order may be within a transaction.
            if mark == "~" || words == "exec" {
                pieces.sort();
            }
            pieces
        };
        let (expected, got) = (unescaped(&answer[2..]), redis.answer());
        assert!(
            pieces(&expected) == pieces(&got),
            "{name}, command {played}: {words}\n  Redis:  {:?}\n  Lycosa: {:?}\n{}",
            String::from_utf8_lossy(&expected),
            String::from_utf8_lossy(&got),
            rig.server.log()
        );
    }
    assert!(pairs.len() > 200, "{}", pairs.len());
}

#[test]
fn scripts_answer_as_those_of_redis() {
    play("scripts.txt", "");
    play("scripts.txt", "?engine=vinyl");
}

/// Streams: who waits gets what comes, groups outlive a kill, and nothing stays behind of a stream that is gone.
#[test]
fn streams_are_kept_and_waited_for() {
    let mut rig = Rig::start("");
    let (mut redis, mut waiting) = (rig.redis(), rig.redis());
    assert_eq!(redis.ask("xgroup create s g $ mkstream"), "+OK|");
    waiting.send(&[b"xreadgroup", b"group", b"g", b"c", b"block", b"0", b"streams", b"s", b">"]);
    while !redis.ask("info clients").contains("blocked_clients:1") {}
    assert_eq!(redis.ask("xadd s 1-1 f v"), "$3|1-1|");
    let entry = b"*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n";
    assert_eq!(String::from_utf8_lossy(&waiting.answer()), String::from_utf8_lossy(entry));
    rig.restart("");
    let mut redis = rig.redis();
    assert_eq!(redis.ask("xpending s g"), "*4|:1|$3|1-1|$3|1-1|*1|*2|$1|c|$1|1|");
    assert_eq!(redis.ask("copy s t"), ":1|");
    assert_eq!(redis.ask("xack t g 1-1"), ":1|", "a copy has groups of its own");
    assert_eq!(redis.ask("xack s g 1-1"), ":1|");
    assert_eq!(
        redis.ask("xadd s 1-1 f v"),
        "-ERR The ID specified in XADD is equal or smaller than the target stream top item|"
    );
    assert_eq!(redis.ask("del s t"), ":2|");
    let mut client = rig.server.connect();
    let wait = "local s = box.space while s.redis_streams:len() + s.redis_stream_groups:len() + s.redis_stream_consumers:len() + s.redis_stream_pending:len() > 0 do require('fiber').sleep(0.001) end return 'gone'";
    assert_eq!(value(&mut client, wait), "gone");
}

/// No transaction of the log would hold them: they are refused before they are made, and what was there stays.
#[test]
fn strings_that_are_too_long_are_not_made() {
    let rig = Rig::start("");
    let mut redis = rig.redis();
    let refused = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)|";
    for key in ["k", "there"] {
        for command in ["setrange K 268435456 x", "setbit K 4294967295 1", "bitfield K set u8 4294967280 1"] {
            redis.ask("set there 1");
            assert_eq!(redis.ask(&command.replace('K', key)), refused, "{command}");
            assert_eq!((redis.ask("exists k"), redis.ask("get there")), (":0|".to_string(), "$1|1|".to_string()));
        }
    }
}

/// What is dumped comes back, with the time that is said; what is damaged is refused and changes nothing.
#[test]
fn dumped_values_come_back() {
    let rig = Rig::start("");
    let mut redis = rig.redis();
    redis.ask("set text some");
    redis.ask("rpush list 1 two 3");
    redis.ask("sadd set 1 two 3");
    redis.ask("hset hash f v g w");
    redis.ask("zadd sorted 1.5 a -inf b");
    for (key, ask) in [
        ("text", "get"),
        ("list", "lrange 0 -1"),
        ("set", "smembers"),
        ("hash", "hgetall"),
        ("sorted", "zrange 0 -1 withscores"),
    ] {
        let (command, rest) = ask.split_once(' ').unwrap_or((ask, ""));
        let shown = |redis: &mut Redis, key: &str| redis.ask(format!("{command} {key} {rest}").trim_end());
        redis.send(&[b"dump", key.as_bytes()]);
        let answer = redis.answer();
        let begin = answer.iter().position(|byte| *byte == b'\n').expect("a bulk") + 1;
        let payload = &answer[begin..answer.len() - 2];
        redis.send(&[b"restore", b"copy", b"100000", payload]);
        assert_eq!(redis.answer(), b"+OK\r\n", "{key}");
        assert_eq!(shown(&mut redis, key), shown(&mut redis, "copy"));
        assert!(redis.ask("ttl copy").starts_with(":1"), "{key}");
        redis.send(&[b"restore", b"copy", b"0", payload]);
        assert_eq!(redis.answer(), b"-BUSYKEY Target key name already exists.\r\n");
        for at in 0..payload.len() {
            let mut damaged = payload.to_vec();
            damaged[at] ^= 0x10;
            redis.send(&[b"restore", b"copy", b"0", &damaged, b"replace"]);
            assert_eq!(redis.answer(), b"-ERR DUMP payload version or checksum are wrong\r\n", "{key} at {at}");
        }
        assert_eq!(shown(&mut redis, key), shown(&mut redis, "copy"));
        redis.ask("del copy");
    }
}

/// The payload of a key.
fn dump(redis: &mut Redis, key: &str) -> Vec<u8> {
    redis.send(&[b"dump", key.as_bytes()]);
    let answer = redis.answer();
    let begin = answer.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    answer[begin..answer.len() - 2].to_vec()
}

/// A stream comes back with its groups, their consumers and what they wait for; what is damaged inside is refused.
#[test]
fn dumped_streams_come_back_with_their_groups() {
    let rig = Rig::start("");
    let mut redis = rig.redis();
    for number in 1..=250 {
        redis.ask(&format!("xadd s {number}-1 f {number} g{} text{number}", number / 100));
    }
    redis.ask("xdel s 7-1 200-1");
    for command in [
        "xgroup create s early 0",
        "xgroup create s late $",
        "xreadgroup group early ann count 3 streams s >",
        "xreadgroup group early bob count 200 streams s >",
        "xack s early 2-1",
        "xgroup createconsumer s late nobody",
        "xadd empty 5-5 a b",
        "xdel empty 5-5",
    ] {
        assert!(!redis.ask(command).starts_with('-'), "{command}");
    }
    for key in ["s", "empty"] {
        let payload = dump(&mut redis, key);
        redis.send(&[b"restore", b"copy", b"0", &payload, b"replace"]);
        assert_eq!(redis.answer(), b"+OK\r\n", "{key}");
        for shown in ["xrange KEY - +", "xpending KEY early", "xinfo stream KEY full count 1000"] {
            let [was, is] = [key, "copy"].map(|name| redis.ask(&shown.replace("KEY", name)));
            assert_eq!(was.replace(key, "copy"), is.replace(key, "copy"), "{shown}");
        }
    }
    // What Redis 5 wrote does not say how many entries there ever were, nor how many a group was given.
    let old = b"\x0F\x01\x10\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\xC3\x40\x4A\x40\x57\x16\x57\x00\x00\x00\x23\x00\x02\x01\x04\x01\x01\x01\x84\x64\x61\x74\x61\x05\x00\x01\x03\x01\x00\x20\x01\x03\x81\x61\x02\x04\x20\x0A\x00\x01\x40\x0A\x00\x62\x60\x0A\x00\x02\x40\x0A\x00\x63\x60\x0A\x40\x22\x01\x81\x64\x20\x0A\x40\x39\x20\x0A\x00\x65\x60\x0A\x00\x05\x40\x0A\x00\x66\x20\x0A\x00\xFF\x02\x06\x00\x02\x02\x67\x31\x05\x00\x04\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x3E\xF7\x83\x43\x7A\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x3E\xF7\x83\x43\x7A\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x3E\xF7\x83\x43\x7A\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\x3E\xF7\x83\x43\x7A\x01\x00\x00\x01\x01\x03\x63\x31\x31\x3E\xF7\x83\x43\x7A\x01\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\x02\x67\x32\x00\x00\x00\x00\x09\x00\x3D\x52\xEF\x68\x67\x52\x1D\xFA";
    redis.send(&[b"restore", b"old", b"0", old]);
    assert_eq!(redis.answer(), b"+OK\r\n");
    assert_eq!(redis.ask("xrange old - +"), "*2|*2|$3|5-0|*2|$4|data|$1|e|*2|$3|6-0|*2|$4|data|$1|f|");
    let groups = redis.ask("xinfo groups old");
    assert!(
        groups.contains(
            "$2|g1|$9|consumers|:1|$7|pending|:4|$17|last-delivered-id|$3|5-0|$12|entries-read|:1|$3|lag|:1|"
        ),
        "{groups}"
    );
    assert!(
        groups.contains(
            "$2|g2|$9|consumers|:0|$7|pending|:0|$17|last-delivered-id|$3|0-0|$12|entries-read|:0|$3|lag|:2|"
        ),
        "{groups}"
    );
}

/// Scripts reach nothing but commands; what is ended by force has done nothing; libraries outlive a restart; one script at a time writes.
#[test]
fn scripts_stay_in_their_world() {
    let mut rig = Rig::start("");
    let mut redis = rig.redis();
    for name in
        ["box", "ffi", "require", "io", "os", "debug", "getfenv", "setfenv", "dofile", "jit", "package", "newproxy"]
    {
        let answer = redis.ask(&format!("eval {name}() 0"));
        assert!(answer.contains("nonexistent global variable"), "{name}: {answer}");
    }
    let eval = |redis: &mut Redis, script: &str| {
        redis.send(&[b"eval", script.as_bytes(), b"0"]);
        String::from_utf8_lossy(&redis.answer()).replace("\r\n", "|")
    };
    let refused = [
        "string.rep = nil",
        "getmetatable('').__index = nil",
        "rawset(_G, 'x', 1)",
        "table.insert(math, 1)",
        "setmetatable(string, {})",
        "return string.dump(loadstring('return 1')):len() > 0 and loadstring(string.dump(loadstring('return 1')))()",
        "local function f() return f() + 1 end return f()",
        "local t = {} t[1] = t return t",
        "return cjson.decode(('['):rep(5000))",
        "return ('x'):rep(2 ^ 31 - 1)",
    ];
    for script in refused {
        let answer = eval(&mut redis, script);
        assert!(answer.starts_with('-'), "{script}: {answer}");
    }
    let mut client = rig.server.connect();
    value(&mut client, "require('fiber').set_max_slice(0.3) return ''");
    let answer = eval(&mut redis, "redis.call('set', 'half', 'done') while true do end");
    assert!(answer.contains("ran too long"), "{answer}");
    assert_eq!(redis.ask("get half"), "$-1|", "what is ended by force has done nothing");
    let answer = eval(&mut redis, "redis.call('set', 'kept', 'yes') error('later')");
    assert!(answer.starts_with("-ERR user_script:1: later"), "{answer}");
    assert_eq!(redis.ask("get kept"), "$3|yes|", "what was done before an error stands, as in Redis");
    redis.send(&[
        b"function",
        b"load",
        b"#!lua name=lib\nredis.register_function('twice', function(k, a) return a[1] * 2 end)",
    ]);
    assert_eq!(redis.answer(), b"$3\r\nlib\r\n");
    assert_eq!(redis.ask("fcall twice 0 21"), ":42|");
    rig.restart("");
    let mut redis = rig.redis();
    assert_eq!(redis.ask("fcall twice 0 21"), ":42|");
    assert_eq!(redis.ask("get half"), "$-1|");
    let mut client = rig.server.connect();
    value(&mut client, "box.space.redis_functions:delete('lib') return ''");
    assert_eq!(redis.ask("fcall twice 0 21"), "-ERR Function not found|", "the space is what counts");
}

#[test]
fn answers_are_those_of_redis() {
    ["1.txt", "2.txt", "4.txt"].into_iter().for_each(|name| play(name, ""));
}

#[test]
fn answers_are_those_of_redis_on_disk() {
    play("3.txt", "?engine=vinyl");
    play("5.txt", "?engine=vinyl");
}

/// What is sent ahead is served in groups, which nobody can tell from one by one.
#[test]
fn commands_sent_ahead_are_answered_as_one_by_one() {
    for (name, ahead) in [("1.txt", 16), ("2.txt", 100), ("4.txt", 1000)] {
        play_ahead(name, "", ahead);
    }
}

/// Random short commands on few keys: in one database one by one, in another in groups. A group that fails in its middle leaves what was before it.
#[test]
fn groups_do_what_their_commands_do() {
    const COMMANDS: [&str; 42] = [
        "set K v",
        "set K 5",
        "get K",
        "incr K",
        "mset K 1 L x",
        "append K 7",
        "getset K 3",
        "strlen K",
        "setnx K 9",
        "setex K 1000 3",
        "hset K f 1",
        "hset K f 2 g 3",
        "hget K f",
        "hdel K f g",
        "hlen K",
        "hincrby K n 2",
        "hincrby K f 1",
        "hsetnx K h 1",
        "sadd K a b",
        "sadd K c",
        "srem K a b c",
        "scard K",
        "sismember K a",
        "zadd K 1 a",
        "zadd K 2 a 3 b",
        "zadd K ch 2 a 1 b 2 a",
        "zadd K ch gt 2 a 2 b",
        "zadd K xx incr 1 a",
        "zincrby K 2 b",
        "zrem K a b",
        "zscore K a",
        "zcard K",
        "lpush K 1 2",
        "rpush K 3",
        "lpop K",
        "rpop K 2",
        "llen K",
        "rpushx K 4",
        "del K",
        "rename K L",
        "lrange K 0 -1",
        "expire K 1000",
    ];
    let rig = Rig::start("");
    let (mut single, mut grouped) = (rig.redis(), rig.redis());
    assert_eq!(grouped.ask("select 1"), "+OK|");
    let mut seed = 42_u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for _ in 0..400 {
        // Most commands of a group are about one kind, or most would be refused.
        let (from, many) = (random(COMMANDS.len()), 2 + random(40));
        let commands: Vec<String> = (0..many)
            .map(|_| {
                let command = COMMANDS[(from + random(8)) % COMMANDS.len()];
                let keys = ["k1", "k2", "k3"];
                command.replace('K', keys[random(3)]).replace('L', keys[random(3)])
            })
            .collect();
        let parts = |command: &String| command.split(' ').map(|part| part.as_bytes().to_vec()).collect();
        grouped.send_all(commands.iter().map(parts));
        for command in &commands {
            let expected = single.ask(command);
            let got = String::from_utf8_lossy(&grouped.answer()).replace("\r\n", "|");
            assert_eq!(got, expected, "{command} of {commands:?}");
        }
    }
    // What heads say is what is there.
    let mut client = rig.server.connect();
    let check = "while true do
            local spaces = { 'redis_lists', 'redis_sets', 'redis_sorted_sets', [4] = 'redis_hashes' }
            local said, wrong, rows = 0, 0, 0
            for _, name in pairs { 'redis', 'redis_1' } do
                for _, row in box.space[name]:pairs() do
                    local head = type(row.value) == 'table' and row.value
                    if head then
                        said = said + head[3]
                        if box.space[spaces[head[1]]]:count(head[2]) ~= head[3] then wrong = wrong + 1 end
                    end
                end
            end
            for _, name in pairs(spaces) do rows = rows + box.space[name]:len() end
            if wrong > 0 then return 'wrong: ' .. wrong end
            -- What is left of keys that are gone is removed later.
            if rows == said then return 'all' end
            require('fiber').sleep(0.001)
        end";
    assert_eq!(value(&mut client, check), "all");
}

fn value(client: &mut Client, source: &str) -> String {
    let reply = client.eval(source);
    let mut reader = tuple::msgpack::Reader::new(&reply.data);
    reader.read_array().unwrap_or_else(|_| panic!("{source}: {reply:?}"));
    let text = reader.read_str().unwrap_or_else(|_| panic!("{source}: {reply:?}"));
    String::from_utf8_lossy(text).into_owned()
}

#[test]
fn rows_are_seen_through_every_door_and_survive_a_kill() {
    let mut rig = Rig::start("");
    let mut redis = rig.redis();
    assert_eq!(redis.ask("set a 1"), "+OK|");
    assert_eq!(redis.ask("hset h f v"), ":1|");
    let mut client = rig.server.connect();
    assert_eq!(value(&mut client, "return box.space.redis:get('a').value"), "1");
    assert_eq!(value(&mut client, "box.space.redis:replace({'b', 'from Lua'}) return box.session.type()"), "binary");
    assert_eq!(redis.ask("get b"), "$8|from Lua|");
    assert_eq!(redis.ask("rpush l 1 2 3"), ":3|");
    rig.restart("");
    let mut redis = rig.redis();
    assert_eq!(redis.ask("get a"), "$1|1|");
    assert_eq!(redis.ask("hgetall h"), "*2|$1|f|$1|v|");
    assert_eq!(redis.ask("lrange l 0 -1"), "*3|$1|1|$1|2|$1|3|");
    assert_eq!(redis.ask("sadd s x"), ":1|", "numbers of elements go on behind those that were there");
    assert_eq!(redis.ask("smembers s"), "*1|$1|x|");
}

#[test]
fn what_comes_by_each_protocol_is_counted() {
    let rig = Rig::start("");
    let mut client = rig.server.connect();
    let before = "box.stat.reset() return tostring(box.stat.doors().redis)";
    assert_eq!(value(&mut client, before), "nil", "nobody has come");
    let mut redis = rig.redis();
    assert_eq!(redis.ask("set a 1"), "+OK|");
    assert!(redis.ask("lpush a 1").starts_with("-WRONGTYPE"));
    assert!(redis.ask("nonsense").starts_with("-ERR unknown"));
    let counts = "local c = box.stat.doors()
        local r = c.redis
        return ('%d %d %d %d %s %s'):format(r.connections, r.connections_open, r.requests, r.errors, r.received_bytes > 20,
            r.sent_bytes > 20 and c.iproto.requests > 0)";
    assert_eq!(value(&mut client, counts), "1 1 3 2 true true");
    drop(redis);
    let gone = "while box.stat.doors().redis.connections_open > 0 do require('fiber').sleep(0.001) end return 'gone'";
    assert_eq!(value(&mut client, gone), "gone");
    assert_eq!(value(&mut client, "box.stat.reset() return tostring(box.stat.doors().redis.requests)"), "0");
}

#[test]
fn a_removed_key_leaves_no_elements_behind() {
    let rig = Rig::start("");
    let mut redis = rig.redis();
    for round in 0..5 {
        let members: Vec<String> = (0..1000).map(|number| format!("{round}-{number}")).collect();
        redis.ask(&format!("sadd s {}", members.join(" ")));
    }
    assert_eq!(redis.ask("scard s"), ":5000|");
    assert_eq!(redis.ask("set s over"), "+OK|");
    let mut client = rig.server.connect();
    let wait = "while box.space.redis_sets:len() > 0 do require('fiber').sleep(0.001) end return 'gone'";
    assert_eq!(value(&mut client, wait), "gone");
    assert_eq!(redis.ask("get s"), "$4|over|");
}

#[test]
fn what_a_user_may_do_is_what_was_granted() {
    let rig = Rig::start("?auth=required");
    let mut redis = rig.redis();
    assert_eq!(redis.ask("get a"), "-NOAUTH Authentication required.|");
    assert_eq!(redis.ask("nonsense"), "-NOAUTH Authentication required.|");
    assert_eq!(redis.ask("ping"), "-NOAUTH Authentication required.|");
    assert!(redis.ask("hello 3").starts_with("-NOAUTH HELLO must be called"));
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.|";
    assert_eq!(redis.ask("auth reader wrong"), wrong);
    assert_eq!(redis.ask("auth nobody secret"), wrong);
    assert_eq!(redis.ask("auth reader secret"), "+OK|");
    assert_eq!(redis.ask("get a"), "$-1|");
    let refused = redis.ask("set a 1");
    assert!(refused.starts_with("-NOPERM Write access to space 'redis' is denied for user 'reader'"), "{refused}");
    assert!(redis.ask("hset h f v").starts_with("-NOPERM"));
    assert!(redis.ask("config set timeout 1").starts_with("-NOPERM"));
    assert!(redis.ask("client list").contains("user=reader"));
    // Before a login a command is short, whatever it announces.
    let mut stranger = rig.redis();
    stranger.0.get_mut().write_all(b"*3\r\n$3\r\nset\r\n$1\r\na\r\n$100000000\r\n").unwrap();
    assert_eq!(String::from_utf8(stranger.answer()).unwrap(), "-ERR Protocol error: unauthenticated bulk length\r\n");
    assert!(stranger.answer().is_empty(), "the connection has ended");
}

#[test]
fn bytes_that_are_no_command_end_the_connection_and_harm_nobody() {
    let rig = Rig::start("");
    let mut other = rig.redis();
    other.ask("set a 1");
    let cases: [(&[u8], &str); 6] = [
        (b"*x\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
        (b"*1\r\n:1\r\n", "-ERR Protocol error: expected '$', got ':'\r\n"),
        (b"*1\r\n$-5\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
        (b"*1\r\n$99999999999999999999\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
        (b"get \"a\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"),
        (b"POST / HTTP/1.1\r\nHost: x\r\n\r\nset a 2\r\n", ""),
    ];
    for (bytes, expected) in cases {
        let mut redis = rig.redis();
        redis.0.get_mut().write_all(bytes).unwrap();
        redis.0.get_ref().shutdown(Shutdown::Write).unwrap();
        let mut got = Vec::new();
        redis.0.read_to_end(&mut got).unwrap();
        assert_eq!(String::from_utf8_lossy(&got), expected);
    }
    assert_eq!(other.ask("get a"), "$1|1|");
}

#[test]
fn scans_give_every_key_that_stays() {
    for terms in ["", "?engine=vinyl"] {
        let rig = Rig::start(terms);
        let mut redis = rig.redis();
        let pairs: Vec<String> = (0..5000).map(|number| format!("stays{number} v")).collect();
        pairs.chunks(500).for_each(|chunk| assert_eq!(redis.ask(&format!("mset {}", chunk.join(" "))), "+OK|"));
        let (mut cursor, mut seen) = ("0".to_string(), std::collections::BTreeSet::new());
        let mut round = 0;
        loop {
            // Others come and go meanwhile.
            redis.ask(&format!("set passing{round} v"));
            redis.ask(&format!("del passing{}", round - 3));
            round += 1;
            let answer = redis.ask(&format!("scan {cursor} count 100 match stays*"));
            let mut lines = answer.split('|').filter(|line| !line.starts_with(['*', '$']));
            cursor = lines.next().unwrap().to_string();
            seen.extend(lines.filter(|line| !line.is_empty()).map(ToString::to_string));
            if cursor == "0" {
                break;
            }
        }
        assert_eq!(seen.len(), 5000, "{terms}");
        assert!(round > 10, "{terms}: {round}");
    }
}

/// Commands are counted and shown, what is secret is not; who is paused waits and leaves nothing behind.
#[test]
fn commands_are_counted_shown_and_paused() {
    let rig = Rig::start("");
    let (mut redis, mut monitor) = (rig.redis(), rig.redis());
    assert_eq!(redis.ask("config resetstat"), "+OK|");
    redis.ask("set k v");
    redis.ask("lpush k v");
    redis.ask("set k");
    redis.ask("client id");
    let stats = redis.ask("info commandstats");
    assert!(stats.contains("cmdstat_set:calls=1,") && stats.contains("rejected_calls=1,failed_calls=0"), "{stats}");
    assert!(stats.contains("cmdstat_client|id:calls=1,"), "{stats}");
    let errors = redis.ask("info errorstats");
    assert!(errors.contains("errorstat_WRONGTYPE:count=1") && errors.contains("errorstat_ERR:count=1"), "{errors}");
    assert!(redis.ask("latency histogram set").contains("$5|calls|:1|$14|histogram_usec|"));
    assert_eq!(redis.ask("config set slowlog-log-slower-than 0 slowlog-max-len 2"), "+OK|");
    redis.ask("get k");
    redis.ask("auth somebody secret");
    assert_eq!(redis.ask("slowlog len"), ":2|");
    assert!(!redis.ask("slowlog get -1").contains("secret"));
    assert_eq!(redis.ask("slowlog get -2"), "-ERR count should be greater than or equal to -1|");
    assert_eq!(monitor.ask("monitor"), "+OK|");
    redis.ask("auth somebody secret");
    redis.send(&[b"set", b"k", b"\"\x00\n"]);
    redis.answer();
    let shown = |monitor: &mut Redis| String::from_utf8_lossy(&monitor.answer()).into_owned();
    assert!(shown(&mut monitor).ends_with("\"auth\" \"(redacted)\" \"(redacted)\"\r\n"));
    assert!(shown(&mut monitor).ends_with("\"set\" \"k\" \"\\\"\\x00\\n\"\r\n"));
    drop(monitor);
    // A pause: reads go on, writes wait.
    assert_eq!(redis.ask("client pause 100000 write"), "+OK|");
    let (mut writer, mut gone) = (rig.redis(), rig.redis());
    writer.send(&[b"set", b"k", b"w"]);
    gone.send(&[b"set", b"k", b"x"]);
    while !redis.ask("info clients").contains("blocked_clients:2") {}
    assert_eq!(redis.ask("get k").len(), "$3|...|".len());
    drop(gone);
    while !redis.ask("info clients").contains("blocked_clients:1") {}
    assert_eq!(redis.ask("client unpause"), "+OK|");
    assert_eq!(writer.answer(), b"+OK\r\n");
    assert_eq!(redis.ask("get k"), "$1|w|");
    // Parameters are set all or none.
    assert!(redis.ask("config set hz 20 timeout x").contains("couldn't be parsed into an integer"));
    assert_eq!(redis.ask("config get hz"), "*2|$2|hz|$2|10|");
    assert!(redis.ask("config set hz 1 hz 2").contains("duplicate parameter"));
}

/// `ACL` makes and changes users of the database, for who may do so and for nobody else.
#[test]
fn users_of_the_database_are_made_in_the_words_of_redis() {
    let rig = Rig::start("");
    let mut own = rig.redis();
    assert_eq!(own.ask("acl whoami"), "$5|redis|");
    for refused in ["acl setuser shop on >secret ~* +@all", "acl deluser reader", "acl list", "acl getuser reader"] {
        assert!(own.ask(refused).starts_with("-NOPERM"), "{refused}");
    }
    let mut admin = rig.redis();
    // Who may make users and grant nothing of another's makes none: all or nothing.
    assert_eq!(admin.ask("auth boss b"), "+OK|");
    assert!(admin.ask("acl setuser shop on >secret ~* +@all").starts_with("-NOPERM"));
    assert!(!admin.ask("acl users").contains("shop"));
    assert_eq!(admin.ask("auth admin b"), "+OK|");
    assert_eq!(admin.ask("acl setuser shop on >secret ~* &* +@all -@write"), "+OK|");
    assert!(admin.ask("acl list").contains("user shop on ~* &* +@all -@write"));
    assert_eq!(admin.ask("acl dryrun shop get a"), "+OK|");
    assert!(admin.ask("acl dryrun shop set a b").contains("no permissions to run the 'set' command"));
    let mut shop = rig.redis();
    assert!(shop.ask("auth shop wrong").starts_with("-WRONGPASS"));
    assert_eq!(shop.ask("auth shop secret"), "+OK|");
    assert_eq!(shop.ask("get a"), "$-1|");
    assert!(shop.ask("set a b").starts_with("-NOPERM"));
    assert_eq!(admin.ask("acl setuser shop +@all >other"), "+OK|");
    assert_eq!(shop.ask("set a b"), "+OK|");
    // It cannot give itself more.
    assert!(shop.ask("acl setuser shop on").starts_with("-NOPERM"));
    assert!(rig.redis().ask("auth shop secret").starts_with("-WRONGPASS"));
    assert_eq!(admin.ask("acl setuser shop off"), "+OK|");
    assert!(rig.redis().ask("auth shop other").starts_with('-'));
    assert_eq!(admin.ask("acl deluser shop nobody"), ":1|");
    assert!(shop.answer().is_empty(), "who was dropped is disconnected");
    assert_eq!(admin.ask("acl getuser shop"), "$-1|");
    assert_eq!(admin.ask("acl genpass 5").len(), "$2|xx|".len());
    assert!(admin.ask("acl cat scripting").contains("$11|script|kill|"));
    assert_eq!(admin.ask("acl cat nothing"), "-ERR Unknown category 'nothing'|");
}
