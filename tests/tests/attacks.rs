//! What those try who have no rights, or few: to run code, to empty spaces, to use up memory and stacks, to keep others out. Each test is one
//! attack.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Client, Reply, Rig, Server, packet, request, root};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tuple::msgpack::{self, Reader};

const SELECT: u64 = 1;
const INSERT: u64 = 2;
const REPLACE: u64 = 3;
const AUTH: u64 = 7;
const CALL: u64 = 10;
const EVAL: u64 = 8;
const EXECUTE: u64 = 11;
const PREPARE: u64 = 13;
const PING: u64 = 64;

const SPACE_ID: u64 = 0x10;
const LIMIT: u64 = 0x12;
const OFFSET: u64 = 0x13;
const ITERATOR: u64 = 0x14;
const KEY: u64 = 0x20;
const TUPLE: u64 = 0x21;
const FUNCTION_NAME: u64 = 0x22;
const EXPRESSION: u64 = 0x27;
const SQL_TEXT: u64 = 0x40;

const ACCESS_DENIED: u64 = 42;
const NO_SUCH_PROC: u64 = 33;
const SHUTTING_DOWN: &str = "the server is shutting down";

fn string(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    msgpack::encode_str(&mut out, text.as_bytes());
    out
}

fn row(numbers: &[u64]) -> Vec<u8> {
    let mut out = Vec::new();
    msgpack::encode_array(&mut out, numbers.len() as u32);
    numbers.iter().for_each(|number| msgpack::encode_uint(&mut out, *number));
    out
}

/// The number that was returned.
fn returned(reply: &Reply) -> u64 {
    let mut reader = Reader::new(&reply.data);
    let first = reader.read_array().and_then(|_| reader.read_uint());
    first.unwrap_or_else(|_| panic!("{reply:?}"))
}

fn number(value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    msgpack::encode_uint(&mut out, value);
    out
}

fn call(client: &mut Client, name: &str, argument: &str) -> (u64, String) {
    let arguments = [vec![0x91], string(argument)].concat();
    client.call(CALL, &request(&[(FUNCTION_NAME, &string(name)), (TUPLE, &arguments)])).error.unwrap_or_default()
}

const FEW_RIGHTS: &str = "box.once('attacks', function()
    local kept = box.schema.space.create('kept', {id = 512})
    kept:create_index('primary')
    kept:insert{1}
    box.schema.user.create('caller', {password = 'c'})
    box.schema.user.grant('caller', 'execute', 'function')
    box.schema.func.create('offered')
    box.schema.user.create('boss', {password = 'b'})
    box.schema.user.grant('boss', 'super')
end)
function offered() return 1 end";

fn log_in(server: &Server, user: &str, password: &str) -> Client {
    let mut client = server.connect();
    let body = client.login(user, password);
    assert_eq!(client.call(AUTH, &body).error, None);
    client
}

#[test]
fn guest_runs_nothing_and_empties_nothing() {
    let rig = Rig::start(FEW_RIGHTS, &[]);
    let mut guest = rig.server.connect();
    assert_ne!(call(&mut guest, "LUA", "return io.popen('id'):read('*a')").0, 0);
    assert_eq!(call(&mut guest, "box.schema.user.info", "boss").0, 45, "guest may not know who there is");
    let truncate = request(&[(SPACE_ID, &number(330)), (TUPLE, &row(&[512, 1]))]);
    for kind in [INSERT, REPLACE] {
        assert_eq!(guest.call(kind, &truncate).code(), ACCESS_DENIED);
    }
    // A statement can keep the server busy without a row: by its text, and to be prepared, with and without a text.
    let select = request(&[(SQL_TEXT, b"\xa8SELECT 1")]);
    for kind in [EXECUTE, PREPARE] {
        for body in [&select[..], b"\x80", b""] {
            assert_eq!(guest.call(kind, body).code(), ACCESS_DENIED);
        }
    }
    let mut boss = log_in(&rig.server, "boss", "b");
    assert_eq!(returned(&boss.eval("return box.space.kept:len()")), 1);
    assert_eq!(boss.eval("box.session.su('admin', box.schema.user.grant, 'guest', 'read', 'space', 'kept')").code(), 0);
    assert_eq!(guest.call(EXECUTE, &select).code(), 0, "something was granted to it");
}

#[test]
fn a_directory_from_tarantool_brings_no_function_that_runs_everything() {
    let dir = TempDir::new().unwrap();
    for entry in std::fs::read_dir(root().join("tests/format/tarantool-2.6")).unwrap().flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().ends_with("snap") || name.to_string_lossy().ends_with("xlog") {
            std::fs::copy(entry.path(), dir.path().join(name)).unwrap();
        }
    }
    let server = Server::start_in(dir.path(), &[]);
    let mut guest = server.connect();
    let (code, text) = call(&mut guest, "LUA", "return box.session.euid()");
    assert_eq!(code, ACCESS_DENIED, "{text}");
    assert!(text.contains("Execute access to function 'LUA' is denied"), "{text}");
}

#[test]
fn the_right_to_all_functions_is_one_to_those_that_are_registered() {
    let rig = Rig::start(FEW_RIGHTS, &[]);
    let mut caller = log_in(&rig.server, "caller", "c");
    assert_eq!(call(&mut caller, "offered", "").0, 0);
    for name in ["os.execute", "box.session.su", "loadstring", "box.cfg", "no.such.thing"] {
        assert_eq!(call(&mut caller, name, "true").0, ACCESS_DENIED, "{name}");
    }
    let mut boss = log_in(&rig.server, "boss", "b");
    assert_eq!(call(&mut boss, "no.such.thing", "").0, NO_SUCH_PROC);
}

#[test]
fn half_a_request_before_login_is_not_kept() {
    let rig = Rig::start(FEW_RIGHTS, &[]);
    let before = rig.server.memory();
    let mut half: Vec<TcpStream> = Vec::new();
    // A map of 0x7f000000 bytes, of which some come.
    let announced = [&[0xce, 0x0f, 0, 0, 0][..], &vec![0; 60_000]].concat();
    for _ in 0..200 {
        let mut stream = TcpStream::connect(rig.server.address()).unwrap();
        stream.read_exact(&mut [0; 128]).unwrap();
        // The server may have ended the connection already.
        let _ = stream.write_all(&announced);
        half.push(stream);
    }
    let mut told = 0;
    for stream in &mut half {
        let mut answer = Vec::new();
        // What is on the way to a connection that ends may be taken back by the system.
        let _ = stream.read_to_end(&mut answer);
        told += usize::from(String::from_utf8_lossy(&answer).contains("before login"));
    }
    assert!(told > 0, "nobody was told why");
    let grown = rig.server.memory().saturating_sub(before);
    assert!(grown < 20 << 20, "{grown} bytes for requests that never came");
    // Who has logged in may send as much.
    let mut boss = log_in(&rig.server, "boss", "b");
    let long = format!("return #'{}'", "x".repeat(2 << 20));
    let body = request(&[(EXPRESSION, &string(&long)), (TUPLE, &[0x90])]);
    assert_eq!(returned(&boss.call(EVAL, &body)), 2 << 20);
}

#[test]
fn two_thousand_clients_at_once_are_greeted_at_once() {
    let rig = Rig::start(FEW_RIGHTS, &[]);
    let begun = Instant::now();
    let address: std::net::SocketAddr = rig.server.address().parse().unwrap();
    // All of them ask before the first one looks at the answer.
    let sockets: Vec<socket2::Socket> = (0..2000)
        .map(|_| {
            let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
            socket.set_nonblocking(true).unwrap();
            let _ = socket.connect(&address.into());
            socket
        })
        .collect();
    for socket in sockets {
        socket.set_nonblocking(false).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut stream: TcpStream = socket.into();
        stream.read_exact(&mut [0; 128]).unwrap();
    }
    // A connection that does not fit into the queue is tried again after a second, then three, seven ...
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}

#[test]
fn too_many_fibers_are_refused_to_who_asks_for_them() {
    let rig = Rig::start(FEW_RIGHTS, &["--fibers-max", "2000"]);
    let mut boss = log_in(&rig.server, "boss", "b");
    let reply = boss.eval(
        "local fiber = require('fiber')
         local made, reason = 0, nil
         for _ = 1, 5000 do
             local ok, answer = pcall(fiber.create, fiber.sleep, 1000)
             if not ok then reason = answer break end
             made = made + 1
         end
         return made, reason.code, tostring(reason)",
    );
    let mut reader = Reader::new(&reply.data);
    reader.read_array().unwrap();
    let (made, code) = (reader.read_uint().unwrap(), reader.read_uint().unwrap());
    let text = String::from_utf8_lossy(reader.read_str().unwrap()).into_owned();
    assert!((1900..2000).contains(&made) && code == 2, "{made} {code} {text}");
    assert!(text.contains("`fibers_max` is 2000"), "{text}");
    // The server's own fibers are beside them.
    boss.ping();
    assert_eq!(returned(&boss.eval("return 7")), 7);
}

#[test]
fn a_server_that_stops_ends_its_connections_behind_a_whole_answer() {
    let mut rig = Rig::start(FEW_RIGHTS, &[]);
    let mut boss = log_in(&rig.server, "boss", "b");
    assert_eq!(boss.eval("box.space.kept:truncate()").error, None);
    let address = rig.server.address().to_string();
    let clients: Vec<std::thread::JoinHandle<(Vec<u64>, Vec<String>)>> = (0..4)
        .map(|client: u64| client << 32)
        .map(|first| {
            let mut client = Client::connect(&address).unwrap();
            let body = client.login("boss", "b");
            assert_eq!(client.call(AUTH, &body).error, None);
            std::thread::spawn(move || {
                let (mut done, mut refused) = (Vec::new(), Vec::new());
                let mut id = first;
                'all: loop {
                    let packets: Vec<u8> = (id..id + 50)
                        .flat_map(|id| {
                            let tuple = row(&[id]);
                            packet(INSERT, id, &request(&[(SPACE_ID, &number(512)), (TUPLE, &tuple)]))
                        })
                        .collect();
                    client.send(&packets);
                    for _ in 0..50 {
                        match client.try_receive() {
                            Ok(reply) if reply.error.is_none() => done.push(reply.sync),
                            Ok(reply) => refused.push(reply.error.unwrap().1),
                            Err(error) => {
                                assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof, "{error}");
                                break 'all;
                            }
                        }
                    }
                    id += 50;
                }
                (done, refused)
            })
        })
        .collect();
    // Something is under way.
    while returned(&boss.eval("return box.space.kept:len()")) < 200 {}
    rig.server.terminate();
    let mut done = Vec::new();
    for client in clients {
        let (acknowledged, refused) = client.join().unwrap();
        done.extend(acknowledged);
        assert!(refused.iter().all(|text| text.contains(SHUTTING_DOWN)), "{refused:?}");
    }
    assert!(rig.server.ended().success());
    rig.restart(&[]);
    let mut boss = log_in(&rig.server, "boss", "b");
    let reply =
        boss.eval("local ids = {} for _, row in box.space.kept:pairs() do ids[#ids + 1] = row[1] end return ids");
    let mut reader = Reader::new(&reply.data);
    reader.read_array().unwrap();
    let count = reader.read_array().unwrap();
    let kept: std::collections::BTreeSet<u64> = (0..count).map(|_| reader.read_uint().unwrap()).collect();
    assert!(done.len() >= 200 && done.iter().all(|id| kept.contains(id)), "an acknowledged row is gone");
    boss.call(PING, &[]);
}

#[test]
fn a_session_whose_user_was_dropped_gets_no_rights_of_the_next_user_with_its_number() {
    let rig = Rig::start(FEW_RIGHTS, &[]);
    let mut boss = log_in(&rig.server, "boss", "b");
    let mut as_admin = |script: &str| {
        let reply = boss.eval(&format!("return box.session.su('admin', function() {script} end)"));
        assert_eq!(reply.error, None);
        returned(&reply)
    };
    let make = |name: &str, right: &str| {
        format!(
            "box.schema.user.create('{name}', {{password = 'p'}}) box.schema.user.grant('{name}', {right})
             return box.space._user.index.name:get('{name}').id"
        )
    };
    let number_before = as_admin(&make("left", "'read', 'space', 'kept'"));
    let mut left = log_in(&rig.server, "left", "p");
    let body = request(&[(SPACE_ID, &number(512)), (LIMIT, &number(9)), (KEY, &[0x90])]);
    assert_eq!(left.call(SELECT, &body).count(), 1);
    as_admin("box.schema.user.drop('left') return 0");
    assert_eq!(left.call(SELECT, &body).code(), ACCESS_DENIED);
    assert_eq!(as_admin(&make("heir", "'super'")), number_before, "the number is given again");
    assert_eq!(left.call(SELECT, &body).code(), ACCESS_DENIED);
    let insert = request(&[(SPACE_ID, &number(512)), (TUPLE, &row(&[2]))]);
    assert_eq!(left.call(INSERT, &insert).code(), ACCESS_DENIED);
    assert_eq!(left.eval("return 1").code(), ACCESS_DENIED);
    // Who logs in is the new user, and stays it when grants and passwords change.
    let mut heir = log_in(&rig.server, "heir", "p");
    as_admin("box.schema.user.passwd('heir', 'q') return 0");
    assert_eq!(heir.call(SELECT, &body).count(), 1);
    assert_eq!(returned(&heir.eval("return 1")), 1);
}

#[test]
fn a_fiber_whose_user_was_dropped_gets_no_rights_of_the_next_user_with_its_number() {
    let rig = Rig::start(FEW_RIGHTS, &[]);
    let mut boss = log_in(&rig.server, "boss", "b");
    let mut as_admin = |script: &str| {
        let reply = boss.eval(&format!("return box.session.su('admin', function() {script} end)"));
        assert_eq!(reply.error, None);
        returned(&reply)
    };
    let number_before = as_admin(
        "gate, done = require('fiber').channel(0), {}
         function wait() gate:get() return 1 end
         box.schema.func.create('wait', {setuid = true})
         box.schema.user.create('left', {password = 'p'})
         box.schema.user.grant('left', 'execute', 'universe')
         return box.space._user.index.name:get('left').id",
    );
    let mut left = log_in(&rig.server, "left", "p");
    // One waits as it is; the others with rights of somebody else, and come back to their own.
    let reply = left.eval(
        "local fiber = require('fiber')
         local function try(number) done[number] = tostring(select(2, pcall(box.space.kept.insert, box.space.kept, {number}))) end
         fiber.create(function() gate:get() try(11) end)
         fiber.create(function() box.func.wait:call() try(12) end)
         fiber.create(function()
             gate:get()
             local made = fiber.create(function() try(13) end)
         end)
         return 1",
    );
    assert_eq!(reply.error, None);
    as_admin("box.schema.user.drop('left') return 0");
    let make = "box.schema.user.create('heir', {password = 'p'}) box.schema.user.grant('heir', 'super')
                return box.space._user.index.name:get('heir').id";
    assert_eq!(as_admin(make), number_before, "the number is given again");
    let all = "for _ = 1, 3 do gate:put(true) end
               while not (done[11] and done[12] and done[13]) do require('fiber').sleep(0.001) end
               local denied = 0
               for _, text in pairs(done) do if text:find('denied') then denied = denied + 1 end end
               return denied * 10 + box.space.kept:len()";
    assert_eq!(as_admin(all), 31);
}

#[test]
fn the_slow_requests_of_one_group_do_not_hold_up_the_others_until_all_are_done() {
    const REQUESTS: u64 = 16;
    let rig = Rig::start(FEW_RIGHTS, &[]);
    let mut boss = log_in(&rig.server, "boss", "b");
    // Many enough for a group, and none of them waits.
    let source = "local began = os.clock() while os.clock() - began < 0.05 do end return 1";
    let body = request(&[(EXPRESSION, &string(source)), (TUPLE, &[0x90])]);
    let packets: Vec<u8> = (0..REQUESTS).flat_map(|sync| packet(EVAL, sync, &body)).collect();
    let mut other = rig.server.connect();
    other.ping();
    let begun = Instant::now();
    boss.send(&packets);
    let greedy = std::thread::spawn(move || {
        (0..REQUESTS).for_each(|_| assert_eq!(boss.try_receive().unwrap().error, None));
        begun.elapsed()
    });
    let mut longest = Duration::ZERO;
    while !greedy.is_finished() {
        let asked = Instant::now();
        other.ping();
        longest = longest.max(asked.elapsed());
    }
    let all = greedy.join().unwrap();
    assert!(longest < all / 3, "{longest:?} of {all:?}");
}

#[test]
fn who_asks_for_much_work_in_few_bytes_does_not_hold_up_the_others() {
    const REQUESTS: usize = 400;
    let rig = Rig::start(FEW_RIGHTS, &[]);
    let mut boss = log_in(&rig.server, "boss", "b");
    let fill = "box.begin() for i = 2, 200000 do box.space.kept:insert{i} end box.commit()";
    assert_eq!(boss.eval(fill).error, None);
    // Each of them goes over all rows to find none.
    let body = request(&[
        (SPACE_ID, &number(512)),
        (OFFSET, &number(1 << 60)),
        (LIMIT, &number(1)),
        (KEY, &[0x90]),
        (ITERATOR, &number(2)),
    ]);
    let packets: Vec<u8> = (0..REQUESTS as u64).flat_map(|sync| packet(SELECT, sync, &body)).collect();
    let begun = Instant::now();
    boss.send(&packets);
    let greedy = std::thread::spawn(move || {
        (0..REQUESTS).for_each(|_| assert_eq!(boss.try_receive().unwrap().error, None));
        begun.elapsed()
    });
    let mut other = rig.server.connect();
    let mut longest = Duration::ZERO;
    while !greedy.is_finished() {
        let asked = Instant::now();
        other.ping();
        longest = longest.max(asked.elapsed());
    }
    let all = greedy.join().unwrap();
    assert!(longest < all / 3, "{longest:?} of {all:?}");
}

#[test]
fn a_log_of_another_server_is_refused() {
    let log = |rig: &Rig| {
        let names = std::fs::read_dir(rig.data()).unwrap().map(|entry| entry.unwrap().path());
        names.filter(|path| path.extension().is_some_and(|extension| extension == "xlog")).max().unwrap()
    };
    let [mut own, mut other] = [0, 1].map(|_| Rig::start(FEW_RIGHTS, &[]));
    own.server.kill();
    other.server.kill();
    assert_eq!(log(&own).file_name(), log(&other).file_name());
    std::fs::copy(log(&other), log(&own)).unwrap();
    for options in [&[][..], &["--force-recovery"]] {
        let told = Server::refused_in(&own.data(), options);
        assert!(told.contains("this log is of server"), "{told}");
    }
}

#[test]
fn a_limit_of_file_sizes_is_an_error_in_words_and_not_the_end_by_a_signal() {
    let dir = TempDir::new().unwrap();
    let mut command = Command::new("sh");
    command.arg("-c").arg("ulimit -f 8; exec \"$0\" \"$@\"").arg(lycosa_tests::binary());
    command.args(["serve", "--listen", "127.0.0.1:0", "--work-dir"]).arg(dir.path());
    let told = Server::spawn(command).err().unwrap();
    assert!(told.contains("File too large"), "{told}");
}

#[test]
fn nobody_is_sent_to_an_older_snapshot_if_the_newest_is_whole() {
    let mut rig = Rig::start(FEW_RIGHTS, &[]);
    let mut boss = log_in(&rig.server, "boss", "b");
    let fill = "local s = box.schema.space.create('disk', {engine = 'vinyl'})
        s:create_index('primary')
        for i = 1, 2 do s:insert{i} box.snapshot() end";
    assert_eq!(boss.eval(fill).error, None);
    rig.server.kill();
    for entry in std::fs::read_dir(rig.data().join("lsm")).unwrap().flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "run") {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    let told = Server::refused_in(&rig.data(), &[]);
    assert!(told.contains(".run") && told.contains("itself is whole"), "{told}");
    assert!(!told.contains("hold every row"), "{told}");
}

#[test]
fn requests_that_wait_for_long_are_refused_in_words_when_the_server_stops() {
    let mut rig = Rig::start(FEW_RIGHTS, &[]);
    let mut boss = log_in(&rig.server, "boss", "b");
    let arguments = request(&[(EXPRESSION, &string("require('fiber').sleep(1000)")), (TUPLE, &[0x90])]);
    boss.send(&[packet(EVAL, 71, &arguments), packet(PING, 72, &[0x80])].concat());
    assert_eq!(boss.try_receive().unwrap().sync, 72);
    rig.server.terminate();
    let reply = boss.try_receive().unwrap();
    assert_eq!(reply.sync, 71);
    assert!(reply.error.clone().is_some_and(|(_, text)| text.contains(SHUTTING_DOWN)), "{reply:?}");
    assert!(rig.server.ended().success());
}

#[test]
fn fibers_that_loop_leave_others_their_turns_and_the_server_can_be_stopped() {
    let mut rig = Rig::start(FEW_RIGHTS, &["--lua-slice-max", "0.3"]);
    let mut boss = log_in(&rig.server, "boss", "b");
    let loops = "for i = 1, 30 do require('fiber').new(function() while true do end end) end return 7";
    assert_eq!(returned(&boss.eval(loops)), 7);
    let mut other = rig.server.connect();
    let begun = Instant::now();
    other.ping();
    // All of them together would take nine seconds.
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let many = "for i = 1, 100 do require('fiber').new(function() while true do pcall(function() while true do end end) end end) end return 7";
    assert_eq!(returned(&boss.eval(many)), 7);
    let begun = Instant::now();
    rig.server.terminate();
    rig.server.ended();
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn a_key_that_is_given_moves_only_a_sequence_that_one_may_write() {
    let rig = Rig::start(FEW_RIGHTS, &[]);
    let mut boss = log_in(&rig.server, "boss", "b");
    let script = "box.schema.sequence.create('named')
        local s = box.schema.space.create('numbered', {id = 600})
        s:create_index('primary', {sequence = 'named'})
        box.schema.user.create('writer', {password = 'w'})
        box.schema.user.grant('writer', 'read,write', 'space', 'numbered')
        box.schema.user.create('both', {password = 'w'})
        box.schema.user.grant('both', 'read,write', 'space', 'numbered')
        box.schema.user.grant('both', 'write', 'sequence', 'named')";
    let reply = boss.eval(&format!("box.session.su('admin', function() {script} end) return 7"));
    assert_eq!(returned(&reply), 7, "{reply:?}");
    let mut writer = log_in(&rig.server, "writer", "w");
    let mut both = log_in(&rig.server, "both", "w");
    for tuple in [vec![0x91, 0xc0], row(&[77])] {
        let body = request(&[(SPACE_ID, &number(600)), (TUPLE, &tuple)]);
        for kind in [INSERT, REPLACE] {
            assert_eq!(writer.call(kind, &body).code(), ACCESS_DENIED);
        }
        assert_eq!(both.call(INSERT, &body).error, None);
    }
    let body = request(&[(SPACE_ID, &number(600)), (TUPLE, &[0x91, 0xc0])]);
    assert_eq!(returned_row(&both.call(INSERT, &body)), 78);
}

/// The first field of the only row that was returned.
fn returned_row(reply: &Reply) -> u64 {
    let mut reader = Reader::new(&reply.data);
    let first = reader.read_array().and_then(|_| reader.read_array()).and_then(|_| reader.read_uint());
    first.unwrap_or_else(|_| panic!("{reply:?}"))
}

#[test]
fn a_cache_larger_than_the_machine_is_refused_at_the_start_and_later() {
    let rig = Rig::start(FEW_RIGHTS, &[]);
    let mut boss = log_in(&rig.server, "boss", "b");
    for size in ["1e30", "1/0", "2^63", "2^53 + 1", "1e15"] {
        let (_, text) = boss.eval(&format!("box.cfg{{vinyl_cache = {size}}}")).error.unwrap();
        assert!(text.contains("Incorrect value for option 'vinyl_cache'"), "{size}: {text}");
    }
    assert_eq!(returned(&boss.eval("box.cfg{vinyl_cache = 1000000} return box.cfg.vinyl_cache")), 1_000_000);
    let dir = TempDir::new().unwrap();
    let told = Server::refused_in(dir.path(), &["--vinyl-cache", "1000000GiB"]);
    assert!(told.contains("must be at most the machine's memory"), "{told}");
}

#[test]
fn characters_that_combine_without_end_hold_up_nobody() {
    let rig = Rig::start(FEW_RIGHTS, &[]);
    let mut boss = log_in(&rig.server, "boss", "b");
    let script = "local s = box.schema.space.create('collated', {id = 601})
        s:create_index('primary', {parts = {{1, 'string', collation = 'unicode_ci'}}})
        local marks = ('\\204\\129\\204\\167'):rep(60000)
        s:insert{'a' .. marks} s:insert{'a' .. marks .. 'b'}
        return s:len()";
    let begun = Instant::now();
    let reply = boss.eval(&format!("return box.session.su('admin', function() {script} end)"));
    assert_eq!(returned(&reply), 2);
    // By the square of the marks it took half a minute.
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn every_snapshot_that_is_asked_for_returns() {
    const CLIENTS: u64 = 4;
    const ROUNDS: u64 = 15;
    let rig = Rig::start(FEW_RIGHTS, &[]);
    let clients: Vec<std::thread::JoinHandle<u64>> = (0..CLIENTS)
        .map(|client| {
            let mut boss = log_in(&rig.server, "boss", "b");
            std::thread::spawn(move || {
                let mut made = 0;
                for round in 0..ROUNDS {
                    let body = request(&[(SPACE_ID, &number(512)), (TUPLE, &row(&[1000 * client + round]))]);
                    assert_eq!(boss.call(REPLACE, &body).error, None);
                    match boss.eval("return box.snapshot()").error {
                        None => made += 1,
                        // Somebody else's is being made.
                        Some((code, text)) => assert_eq!(code, 120, "{text}"),
                    }
                }
                made
            })
        })
        .collect();
    let made: u64 = clients.into_iter().map(|client| client.join().unwrap()).sum();
    assert!(made > 0, "each was refused");
}
