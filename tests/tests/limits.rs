//! Limits that hold: memory, clients that do not read, guessed passwords, descriptors, and a log directory that goes away. What is
//! beyond a limit is refused in words, everything else goes on, and nothing that was acknowledged is lost.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Client, Field, Reply, Rig, Seed, Server, packet, request};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tuple::msgpack;

const SELECT: u64 = 1;
const INSERT: u64 = 2;
const AUTH: u64 = 7;

const SPACE_ID: u64 = 0x10;
const LIMIT: u64 = 0x12;
const KEY: u64 = 0x20;
const TUPLE: u64 = 0x21;

const OUT_OF_MEMORY: u64 = 2;
const CREDS_MISMATCH: u64 = 47;
const MIB: u64 = 1 << 20;
/// Somebody else's request is answered within this. Generous, because the machine may be busy.
const PROMPT: Duration = Duration::from_secs(2);
/// The space that `SCRIPT` makes.
const STOCK: u64 = 512;

/// Makes a space and a user once, and lets guest do everything.
const SCRIPT: &str = "box.once('limits', function()
    local stock = box.schema.space.create('stock', {id = 512})
    stock:create_index('primary', {parts = {1, 'unsigned'}})
    stock:create_index('second', {parts = {{2, 'unsigned'}}, unique = false})
    box.schema.user.create('alice', {password = 'secret'})
    box.schema.user.grant('guest', 'super')
end)";

fn start(options: &[&str]) -> Rig {
    Rig::start(SCRIPT, options)
}

fn others_are_served(rig: &mut Rig) {
    let begun = Instant::now();
    rig.client.ping();
    rig.server.connect().ping();
    assert!(begun.elapsed() < PROMPT, "others waited {:?}", begun.elapsed());
}

fn number(value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    msgpack::encode_uint(&mut out, value);
    out
}

fn insert(client: &mut Client, id: u64, text: &str) -> Reply {
    let row = Seed::row(&[id.into(), (id % 10).into(), Field::Str(text)]);
    client.call(INSERT, &request(&[(SPACE_ID, &number(STOCK)), (TUPLE, &row)]))
}

/// Inserts until memory is short, from a number on. Returns how many went in, and the refusal.
fn fill(rig: &mut Rig, from: u64, bytes: usize) -> (u64, (u64, String)) {
    let text = "x".repeat(bytes);
    let mut id = from;
    loop {
        // Many at a time, with one at the end whose refusal is seen as a client sees it.
        id += rig.number(&format!(
            "local text, count = ('x'):rep({bytes}), 0
             for id = {id}, {id} + 4999 do
                 if not pcall(box.space.stock.insert, box.space.stock, {{id, id % 10, text}}) then break end
                 count = count + 1
             end
             return count"
        ));
        match insert(&mut rig.client, id, &text).error {
            None => id += 1,
            Some(error) => return (id - from, error),
        }
    }
}

#[test]
fn at_the_memory_limit_inserts_are_refused_and_everything_else_goes_on() {
    const MEMORY: u64 = 24 * MIB;
    let options = ["--memtx-memory", "24MiB"];
    let mut rig = start(&options);
    let (count, (code, text)) = fill(&mut rig, 0, 100);
    assert_eq!(code, OUT_OF_MEMORY, "{text}");
    assert!(text.contains("'stock'") && text.contains(&MEMORY.to_string()), "{text}");
    assert!(count * 100 > MEMORY / 3, "{count} rows of 100 bytes in {MEMORY} bytes");

    // Several clients at once: what does not grow goes on, and inserts go in only where deletes have made room.
    let address = rig.server.address().to_string();
    let threads: Vec<_> = (0..4u64)
        .map(|thread| {
            let address = address.clone();
            std::thread::spawn(move || {
                let mut client = Client::connect(&address).unwrap();
                let (mut inserted, mut refused) = (0, 0);
                for round in 0..300u64 {
                    let id = thread + 4 * round;
                    let of = |work: &str| format!("box.space.stock:{work} return 1");
                    let update = client.eval(&of(&format!("update({id}, {{{{'=', 2, {}}}}})", round % 10)));
                    assert_eq!(update.error, None, "an update that does not grow");
                    let replace = client.eval(&of(&format!("replace{{{id}, 3, ('y'):rep(90)}}")));
                    assert_eq!(replace.error, None, "a row that is replaced by a smaller one");
                    let key = [vec![0x91], number(id)].concat();
                    let selected =
                        client.call(SELECT, &request(&[(SPACE_ID, &number(STOCK)), (KEY, &key), (LIMIT, &number(1))]));
                    assert_eq!((selected.code(), selected.count()), (0, 1));
                    if round % 3 == 0 {
                        let delete = client.eval(&of(&format!("delete({id})")));
                        assert_eq!(delete.error, None, "a delete");
                    }
                    match insert(&mut client, 10_000_000 + id, &"z".repeat(100)).code() {
                        0 => inserted += 1,
                        code => {
                            assert_eq!(code, OUT_OF_MEMORY);
                            refused += 1;
                        }
                    }
                }
                (inserted, refused)
            })
        })
        .collect();
    let (mut inserted, mut refused) = (0, 0);
    for thread in threads {
        let outcome = thread.join().unwrap();
        inserted += outcome.0;
        refused += outcome.1;
    }
    assert!(inserted > 0, "deletes make room");
    let larger = rig.eval("box.space.stock:update(5, {{'=', 3, ('x'):rep(200000)}})");
    assert_eq!(larger.code(), OUT_OF_MEMORY, "a row that grows much");
    println!(
        "{inserted} inserts went in behind deletes, {refused} were refused; a row that grows much: {}",
        larger.code()
    );

    let rows = rig.number("return box.space.stock:len()");
    assert_eq!(rig.eval("return box.snapshot()").error, None, "a checkpoint at the limit");
    fill(&mut rig, 20_000_000, 40);
    let full = rig.number("return box.space.stock:len()");
    assert!(full >= rows);
    rig.restart(&options);
    assert_eq!(rig.number("return box.space.stock:len()"), full, "a start at the limit");
    assert_eq!(rig.eval("box.space.stock:update(1, {{'=', 2, 7}}) return 1").error, None);

    // Room that is given back serves again, for rows of any size.
    for bytes in [100, 700, 30] {
        assert_eq!(rig.eval("box.space.stock:truncate() return 1").error, None, "truncate at the limit");
        assert_eq!(rig.eval("require('fiber').sleep(0) return box.space.stock:len()").error, None);
        let begun = Instant::now();
        let taken = loop {
            let (count, _) = fill(&mut rig, 0, bytes);
            // What was truncated is given back in slices.
            if count * bytes as u64 > MEMORY / 10 || begun.elapsed() > PROMPT {
                break count * bytes as u64;
            }
            rig.eval("box.space.stock:truncate() return 1");
        };
        println!(
            "{} of {} KiB in rows of {bytes} bytes, {} MiB resident",
            taken >> 10,
            MEMORY >> 10,
            rig.server.memory() / MIB
        );
        assert!(taken > MEMORY / 10, "{taken} bytes in rows of {bytes}");
    }
}

/// What an administrator does about a full memory, and what has nothing to do with the memory engine's rows. Returns what failed.
const ADMINISTRATION: &str = "
    local stock, disk, kept = box.space.stock, box.space.disk, {}
    local work = {
        {'rows of Lua', function() for i = 1, 20000 do kept[i] = box.tuple.new{i, ('z'):rep(1000)} end end},
        {'disk writes', function() for i = 1, 1000 do disk:replace{i, ('w'):rep(1000)} end end},
        {'disk reads', function() assert(disk:get(1) and #disk:select() == 1000) end},
        {'passwd', function() box.schema.user.passwd('alice', 'b') end},
        {'grant', function() box.session.su('admin', box.schema.user.grant, 'alice', 'read', 'space', 'stock') end},
        {'revoke', function() box.session.su('admin', box.schema.user.revoke, 'alice', 'read', 'space', 'stock') end},
        {'format', function() stock:format{{'id', 'unsigned'}} end},
        {'another format', function() stock:format{{'number', 'unsigned'}} end},
        {'no format', function() stock:format{} end},
        {'user', function() box.schema.user.create('eve') box.schema.user.drop('eve') end},
        {'space', function() local s = box.schema.space.create('new') s:create_index('pk') s:drop() end},
        {'rename', function() stock:rename('goods') stock:rename('stock') end},
        {'function', function() box.schema.func.create('f') box.schema.func.drop('f') end},
        {'views', function() assert(#box.space._vspace:select() > 0 and box.space._vuser.index.name:get('alice')) end},
        {'snapshot', box.snapshot},
    }
    local failed = {}
    for _, item in ipairs(work) do
        local ok, reason = pcall(item[2])
        if not ok then table.insert(failed, item[1] .. ': ' .. tostring(reason)) end
    end
    return #failed, table.concat(failed, '; ')";

#[test]
fn administration_and_rows_on_disk_go_on_when_memory_is_full() {
    let options = ["--memtx-memory", "24MiB", "--wal-mode", "write"];
    let mut rig = start(&options);
    let made = rig.eval("box.schema.space.create('disk', {engine = 'vinyl'}):create_index('pk') return 1");
    assert_eq!(made.error, None);
    for round in 0..2 {
        let (_, (code, text)) = fill(&mut rig, 20_000_000 * round, 1000);
        assert_eq!(code, OUT_OF_MEMORY, "{text}");
        let (_, (code, text)) = fill(&mut rig, 20_000_000 * round + 10_000_000, 40);
        assert_eq!(code, OUT_OF_MEMORY, "{text}");
        let (failed, reasons) = rig.answer(ADMINISTRATION);
        assert_eq!(failed, 0, "{reasons}");
        rig.restart(&options);
    }
    assert_eq!(rig.eval("box.space.stock:drop()").error, None);
}

#[test]
fn a_thousand_clients_that_never_read_do_not_fill_the_memory() {
    runtime::signals::raise_open_files_limit();
    let mut rig = start(&[]);
    rig.eval("for id = 1, 100 do box.space.stock:replace{id, 1, ('x'):rep(1000)} end return 1");
    let before = rig.server.memory();
    // 100 answers of 100 KiB each: 10 GiB in all.
    let all = request(&[(SPACE_ID, &number(STOCK)), (KEY, &[0x90]), (LIMIT, &number(1000))]);
    let many = packet(SELECT, 1, &all).repeat(100);
    let clients: Vec<Client> = (0..1000)
        .map(|_| {
            let mut client = rig.server.connect();
            client.send(&many);
            client
        })
        .collect();
    let mut worst = Duration::ZERO;
    for _ in 0..50 {
        let begun = Instant::now();
        others_are_served(&mut rig);
        worst = worst.max(begun.elapsed());
    }
    let grown = rig.server.memory().saturating_sub(before);
    println!("1000 clients that do not read: {} MiB, others waited {worst:?} at most", grown / MIB);
    // Without a bound it would be ten times this. What is unsent is bounded at a quarter of it; the rest is what the allocator keeps, which varies by 200 MiB.
    assert!(grown < 1024 * MIB, "{} MiB", grown / MIB);
    drop(clients);
    others_are_served(&mut rig);
}

/// A connection from an address of this machine.
fn connect_from(server: &Server, from: [u8; 4]) -> Client {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let local: std::net::SocketAddr = (from, 0).into();
    socket.bind(&local.into()).unwrap();
    let address: std::net::SocketAddr = server.address().parse().unwrap();
    socket.connect(&address.into()).unwrap();
    Client::over(socket.into()).unwrap()
}

#[test]
fn guessed_passwords_are_slowed_down_by_address_and_nobody_else_is() {
    let rig = start(&[]);
    let mut friend = rig.server.connect();
    assert_eq!(friend.call(AUTH, &friend.login("alice", "secret")).error, None);

    // One that guesses: three are free, then each answer comes later.
    let mut guesser = rig.server.connect();
    let mut waits = Vec::new();
    let mut said = String::new();
    for attempt in 0..6 {
        let begun = Instant::now();
        let (code, text) = guesser.call(AUTH, &guesser.login("alice", &format!("guess {attempt}"))).error.unwrap();
        assert_eq!(code, CREDS_MISMATCH, "{text}");
        waits.push(begun.elapsed().as_millis() as u64);
        said = text;
    }
    assert!(waits[4] >= 100 && waits[5] >= 200, "{waits:?} ms");
    assert!(said.contains("127.0.0.1") && said.contains("400 ms"), "{said}");

    // Many at once from the same address: one of each connection is looked at, when its time has come, and nobody else's waits for it.
    let mut flood: Vec<Client> = (0..30).map(|_| rig.server.connect()).collect();
    for client in &mut flood {
        let body = client.login("alice", "guess");
        client.send(&packet(AUTH, 1, &body).repeat(20));
    }
    let begun = Instant::now();
    friend.ping();
    // Who knows the password is let in beside them, after his own delay.
    let mut late = rig.server.connect();
    let late_body = late.login("alice", "secret");
    late.send(&packet(AUTH, 7, &late_body));
    // Another address: as if nothing was.
    let mut other = connect_from(&rig.server, [127, 0, 0, 2]);
    assert_eq!(other.call(AUTH, &other.login("alice", "guess")).code(), CREDS_MISMATCH);
    assert_eq!(other.call(AUTH, &other.login("alice", "secret")).error, None);
    assert!(begun.elapsed() < PROMPT, "others waited {:?}", begun.elapsed());
    assert_eq!(late.receive().error, None);
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_millis(400) && waited < PROMPT, "{waited:?}");
    let (mut looked_at, mut refused) = (0, 0);
    for client in &mut flood {
        for _ in 0..20 {
            match client.receive().error.unwrap().1.contains("not looked at") {
                true => refused += 1,
                false => looked_at += 1,
            }
        }
    }
    println!("waits of one that guesses: {waits:?} ms; who knew the password waited {waited:?}");
    assert_eq!((looked_at, refused), (30, 570));
}

#[test]
fn at_the_limit_of_open_files_nobody_is_dropped_and_nothing_is_lost() {
    const FILES: usize = 80;
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("ulimit -n {FILES}; exec \"$0\" \"$@\"")).arg(lycosa_tests::binary());
    let mut rig = Rig::start_as(command, TempDir::new().unwrap(), SCRIPT, &["--wal-max-size", "1MiB"]);
    let mut served: Vec<Client> = (0..10).map(|_| rig.server.connect()).collect();
    let waiting: Vec<TcpStream> = (0..FILES).map(|_| TcpStream::connect(rig.server.address()).unwrap()).collect();
    let Rig { server, client, .. } = &mut rig;
    assert!(server.wait(client, Duration::from_secs(20), |server| server.log().contains("cannot be accepted")));
    let begun = Instant::now();
    // Rotations fail meanwhile: the log is written on.
    let text = "x".repeat(50_000);
    for id in 0..100 {
        assert_eq!(insert(client, id, &text).error, None);
        served[id as usize % 10].ping();
    }
    let refused = client.eval("return box.snapshot()");
    let (_, words) = refused.error.expect("a checkpoint needs a file");
    assert!(words.contains("Too many open files") || words.contains("os error 24"), "{words}");
    while begun.elapsed() < Duration::from_secs(2) {
        client.ping();
    }
    let log = server.log();
    let warnings = log.matches("cannot be accepted").count() as u64;
    assert!(warnings <= 2 + begun.elapsed().as_secs(), "{warnings} warnings in {:?}:\n{log}", begun.elapsed());
    assert!(log.contains("is written on"), "{log}");

    // Descriptors come free: those who wait are greeted, and files are made again.
    drop(served);
    let mut late = waiting;
    for stream in late.drain(..).rev().take(8).collect::<Vec<_>>() {
        Client::over(stream).unwrap().ping();
    }
    drop(late);
    let Rig { server, client, .. } = &mut rig;
    let is_back = server.wait(client, Duration::from_secs(20), |server| server.descriptors() < 40);
    assert!(is_back, "{} descriptors", server.descriptors());
    assert_eq!(rig.eval("return box.snapshot()").error, None);
    assert_eq!(insert(&mut rig.client, 1000, &text).error, None);
    rig.restart(&[]);
    assert_eq!(rig.number("return box.space.stock:len()"), 101);
}

#[test]
fn a_log_directory_that_was_removed_is_noticed_before_anything_is_acknowledged() {
    for mode in ["fsync", "write"] {
        let mut rig = start(&["--wal-mode", mode]);
        assert_eq!(insert(&mut rig.client, 1, "before").error, None);
        std::fs::remove_dir_all(rig.data()).unwrap();
        let (_, words) = insert(&mut rig.client, 2, "behind").error.expect("it cannot be logged");
        assert!(words.contains("has been removed"), "{mode}: {words}");
        let (_, words) = insert(&mut rig.client, 3, "behind").error.expect("it cannot be logged");
        assert!(words.contains("has been removed"), "{mode}: {words}");
        assert_eq!(rig.number("return box.space.stock:len()"), 1, "reads go on, what was refused is not there");
        others_are_served(&mut rig);
        let Rig { server, client, .. } = &mut rig;
        let is_told = server.wait(client, PROMPT, |server| server.log().contains("has been removed"));
        assert!(is_told, "{}", server.log());
    }
}

#[test]
fn a_log_directory_that_takes_no_files_stops_checkpoints_but_no_writes() {
    let dir = TempDir::new().unwrap();
    let mut command = Command::new(lycosa_tests::binary());
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    // Permissions mean nothing to root: the server is somebody else then.
    const NOBODY: u32 = 65534;
    if std::os::unix::fs::chown(&data, Some(NOBODY), Some(NOBODY)).is_ok() {
        std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    let mut rig = Rig::start_as(command, dir, SCRIPT, &["--wal-max-size", "1MiB"]);
    let permit = |mode: u32| std::fs::set_permissions(&data, std::fs::Permissions::from_mode(mode)).unwrap();
    permit(0o555);
    let text = "x".repeat(50_000);
    for id in 0..60 {
        assert_eq!(insert(&mut rig.client, id, &text).error, None);
    }
    let (_, words) = rig.eval("return box.snapshot()").error.expect("a checkpoint needs a file");
    assert!(words.contains("Permission denied"), "{words}");
    let Rig { server, client, .. } = &mut rig;
    assert!(server.wait(client, PROMPT, |server| server.log().contains("is written on")), "{}", server.log());
    permit(0o755);
    assert_eq!(rig.eval("return box.snapshot()").error, None);
    assert_eq!(insert(&mut rig.client, 1000, "behind").error, None);
    rig.restart(&[]);
    assert_eq!(rig.number("return box.space.stock:len()"), 61);
}
