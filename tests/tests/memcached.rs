//! memcached's protocols through the real binary: the answers of the real memcached, a model, bad input, logins, what stays behind a kill.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Rig, root};
use runtime::{Randomness, SeededRandomness};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;
use tuple::msgpack::Reader;

/// A script for the server's own administrator, so that guest may evaluate.
const OPEN: &str = "box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true })";
const PATIENCE: Duration = Duration::from_secs(20);

/// A server with a listener of memcached on the terms of a query.
fn start(query: &str) -> Rig {
    Rig::start(OPEN, &["--listen", &listener(query)])
}

fn listener(query: &str) -> String {
    format!("memcached://127.0.0.1:0{query}")
}

/// Where a server listens for memcached clients.
fn address(rig: &mut Rig) -> String {
    const READY: &str = "ready: connect to ";
    let find = |log: &str| {
        let line = log.lines().find(|line| line.contains("with any memcached client"))?;
        Some(line.split_once(READY)?.1.split(' ').next()?.to_string())
    };
    assert!(rig.server.wait(&mut rig.client, PATIENCE, |server| find(&server.log()).is_some()), "{}", rig.server.log());
    find(&rig.server.log()).unwrap()
}

/// A connection that says lines.
struct Talk(BufReader<TcpStream>);

impl Talk {
    fn to(rig: &mut Rig) -> Self {
        let stream = TcpStream::connect(address(rig)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Talk(BufReader::new(stream))
    }

    fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.get_ref().write_all(bytes.as_ref()).unwrap();
    }

    /// What is answered up to where the answers to a command begin that says `MN`.
    fn ask(&mut self, bytes: impl AsRef<[u8]>) -> String {
        self.send([bytes.as_ref(), b"mn\r\n"].concat());
        let mut answer = Vec::new();
        while !answer.ends_with(b"MN\r\n") {
            assert!(
                self.0.read_until(b'\n', &mut answer).unwrap() > 0,
                "closed behind {}",
                String::from_utf8_lossy(&answer)
            );
        }
        answer.truncate(answer.len() - 4);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Everything up to the end of the stream.
    fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest) {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            result => _ = result.unwrap(),
        }
        rest
    }
}

fn set(key: &str, value: &str) -> String {
    format!("set {key} 0 0 {}\r\n{value}\r\n", value.len())
}

/// A packet of the binary protocol.
fn packet(opcode: u8, key: &[u8], extras: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x80, opcode, 0, key.len() as u8, extras.len() as u8, 0, 0, 0];
    bytes.extend_from_slice(&((key.len() + extras.len() + value.len()) as u32).to_be_bytes());
    bytes.extend_from_slice(&[1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0]);
    [&bytes, extras, key, value].concat()
}

/// The next answer: status and body.
fn receive(stream: &mut impl Read) -> (u16, Vec<u8>) {
    let mut header = [0; 24];
    stream.read_exact(&mut header).unwrap();
    assert_eq!((header[0], &header[12..16]), (0x81, &[1, 2, 3, 4][..]));
    let mut body = vec![0; u32::from_be_bytes(header[8..12].try_into().unwrap()) as usize];
    stream.read_exact(&mut body).unwrap();
    (u16::from_be_bytes([header[6], header[7]]), body)
}

/// The cases that the real memcached has answered, answered by this server.
fn compare(query: &str) {
    let mut rig = start(query);
    let port = address(&mut rig).rsplit(':').next().unwrap().to_string();
    let mut command = Command::new("python3");
    command.arg(root().join("tests/memcached/record.py")).args([&port, "--compare"]);
    match command.output() {
        Err(error) => println!("SKIPPED: python3 cannot be started: {error}"),
        Ok(done) => assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout)),
    }
}

/// Runs the programs of real clients.
fn run_clients(rig: &mut Rig, login: &[&str]) {
    let port = address(rig).rsplit(':').next().unwrap().to_string();
    let mut command = Command::new("python3");
    command.arg(root().join("tests/memcached/clients.py")).arg(port).args(login);
    if std::env::var_os("LYCOSA_CLIENTS_DIR").is_none() {
        // Beside this test, so that the packages stay from run to run.
        let test = std::env::current_exe().unwrap();
        command.env("LYCOSA_CLIENTS_DIR", test.ancestors().nth(3).unwrap().join("clients"));
    }
    match command.output() {
        Err(error) => println!("SKIPPED: python3 cannot be started: {error}"),
        Ok(done) => assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr)),
    }
}

#[test]
fn real_clients_work() {
    let mut rig = start("");
    run_clients(&mut rig, &[]);
    let script = "return box.session.su('admin', function() box.schema.user.create('web', { password = 'secret' }) \
        box.schema.user.grant('web', 'read,write', 'space', 'memcached') end)";
    assert_eq!(rig.eval(script).code(), 0);
    rig.restart(&["--listen", &listener("?auth=required")]);
    run_clients(&mut rig, &["--login", "web", "secret"]);
}

#[test]
fn answers_are_those_of_memcached() {
    compare("");
}

#[test]
fn answers_are_those_of_memcached_on_disk() {
    compare("?engine=vinyl");
}

/// Two connections do what comes to a seed; a map knows what they must be answered.
fn follow_a_model(query: &str, seed: u64, steps: usize) {
    let mut rig = start(query);
    let mut talks = [Talk::to(&mut rig), Talk::to(&mut rig)];
    let random = SeededRandomness::new(seed);
    let below = |bound: u64| random.next_u64() % bound;
    // Value, flags, and how often it was written.
    let mut model: BTreeMap<String, (String, u64)> = BTreeMap::new();
    for step in 0..steps {
        // A few commands at once, so that groups are served.
        let (mut commands, mut expected) = (String::new(), String::new());
        for _ in 0..1 + below(20) {
            let key = format!("k{}", below(6));
            let value = if below(3) == 0 { "text".repeat(below(4) as usize) } else { below(200).to_string() };
            let flags = below(3);
            let old = model.get(&key).cloned();
            let is_quiet = below(5) == 0;
            let verb = ["set", "add", "replace", "append", "prepend", "incr", "decr", "delete", "get", "touch"]
                [below(10) as usize];
            let answer = match (verb, old) {
                ("get", old) => {
                    commands += &format!("get {key} none\r\n");
                    if let Some((value, flags)) = old {
                        expected += &format!("VALUE {key} {flags} {}\r\n{value}\r\n", value.len());
                    }
                    expected += "END\r\n";
                    continue;
                }
                ("delete", old) => {
                    commands += &format!("delete {key}");
                    model.remove(&key);
                    if old.is_some() { "DELETED".to_string() } else { "NOT_FOUND".to_string() }
                }
                ("touch", old) => {
                    commands += &format!("touch {key} {}", below(2) * 1000);
                    if old.is_some() { "TOUCHED".to_string() } else { "NOT_FOUND".to_string() }
                }
                ("incr" | "decr", old) => {
                    let delta = below(300);
                    commands += &format!("{verb} {key} {delta}");
                    match old {
                        None => "NOT_FOUND".to_string(),
                        Some((text, flags)) => match text.split(' ').next().unwrap_or_default().parse::<u64>() {
                            Err(_) => "CLIENT_ERROR cannot increment or decrement non-numeric value".to_string(),
                            Ok(number) => {
                                let made = if verb == "incr" { number + delta } else { number.saturating_sub(delta) };
                                model.insert(key, (format!("{made:<0$}", text.len()), flags));
                                made.to_string()
                            }
                        },
                    }
                }
                (verb, old) => {
                    let quiet = if is_quiet { " noreply" } else { "" };
                    commands += &format!("{verb} {key} {flags} 0 {}{quiet}\r\n{value}", value.len());
                    let made = match (verb, old) {
                        ("add", None) | ("set", _) | ("replace", Some(_)) => Some((value, flags)),
                        ("append", Some((old, flags))) => Some((old + &value, flags)),
                        ("prepend", Some((old, flags))) => Some((value + &old, flags)),
                        _ => None,
                    };
                    let answer = if made.is_some() { "STORED" } else { "NOT_STORED" };
                    made.map(|made| model.insert(key, made));
                    commands += "\r\n";
                    if !is_quiet {
                        expected += &format!("{answer}\r\n");
                    }
                    continue;
                }
            };
            if is_quiet {
                commands += " noreply";
            } else {
                expected += &format!("{answer}\r\n");
            }
            commands += "\r\n";
        }
        assert_eq!(talks[below(2) as usize].ask(&commands), expected, "seed {seed}, step {step}: {commands}");
    }
    // What is there now is there behind a kill.
    rig.restart(&["--listen", &listener(query)]);
    let mut talk = Talk::to(&mut rig);
    for (key, (value, flags)) in &model {
        let expected = format!("VALUE {key} {flags} {}\r\n{value}\r\nEND\r\n", value.len());
        assert_eq!(talk.ask(format!("get {key}\r\n")), expected);
    }
    assert_eq!(rig.number("return box.space.memcached:count()"), model.len() as u64);
}

#[test]
fn two_connections_follow_a_model_and_a_kill_takes_nothing() {
    follow_a_model("", 1, 300);
}

#[test]
fn two_connections_follow_a_model_on_disk() {
    follow_a_model("?engine=vinyl", 2, 100);
}

#[test]
fn rows_are_items_and_items_are_rows() {
    let mut rig = start("");
    let mut talk = Talk::to(&mut rig);
    assert_eq!(talk.ask(set("a", "1")), "STORED\r\n");
    let row = rig.eval("local row = box.space.memcached:get('a') return row.value, row.flags, row.expires, #row");
    let mut reader = Reader::new(&row.data);
    reader.read_array().unwrap();
    assert_eq!((reader.read_str().unwrap(), reader.read_uint().unwrap()), (&b"1"[..], 0));
    reader.read_nil().unwrap();
    assert_eq!(reader.read_uint().unwrap(), 4);
    rig.eval("box.space.memcached:replace{'b', 'of lua'} box.space.memcached:replace{'old', 'x', 0, 1, 5}");
    assert_eq!(talk.ask("get b old\r\n"), "VALUE b 0 6\r\nof lua\r\nEND\r\n");
    // A row without a cas has one all the same, and it changes with the row.
    let cas = |answer: String| answer.lines().next().unwrap().rsplit(' ').next().unwrap().to_string();
    let before = cas(talk.ask("gets b\r\n"));
    assert_eq!(talk.ask(format!("cas b 0 0 1 {before}\r\nx\r\n")), "STORED\r\n");
    assert_eq!(talk.ask(format!("cas b 0 0 1 {before}\r\nx\r\n")), "EXISTS\r\n");
    // What fails says why, and says nothing to who does not listen.
    rig.eval("box.space.memcached:before_replace(function(old, new) if new and new.key == 'no' then error('not this one') end return new end)");
    assert_eq!(talk.ask(set("no", "x")), "SERVER_ERROR eval:1: not this one\r\n");
    assert_eq!(
        talk.ask("set no 0 0 1 noreply\r\nx\r\nset yes 0 0 1\r\ny\r\nget no yes\r\n"),
        "STORED\r\nVALUE yes 0 1\r\ny\r\nEND\r\n"
    );
    rig.eval("box.space.memcached:drop()");
    assert_eq!(talk.ask("get a\r\n"), "SERVER_ERROR Space 'memcached' does not exist\r\n");
}

#[test]
fn a_space_of_the_users_own_keeps_its_other_fields() {
    const SCRIPT: &str = "box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true }) \
        local s = box.schema.space.create('cache', { if_not_exists = true, format = { {'owner', 'string', is_nullable = true}, \
        {'id', 'string'}, {'body', 'string'}, {'until', 'unsigned', is_nullable = true} } }) \
        s:create_index('pk', { parts = {2, 'string'}, if_not_exists = true }) \
        box.schema.user.create('web', { if_not_exists = true }) \
        box.schema.user.grant('web', 'read,write', 'space', 'cache', nil, { if_not_exists = true })";
    let mut rig = Rig::start(SCRIPT, &[]);
    let listen = |rig: &mut Rig, text: &str| {
        rig.eval(&format!("box.cfg{{ listen = {{ '{}', '{text}' }} }}", rig.server.address()))
    };
    for (terms, words) in [
        ("space=none&key=id", "Space 'none' does not exist"),
        ("space=cache&key=id", "no field 'value'"),
        ("space=cache&key=body&value=id", "primary key"),
        ("space=cache&key=id&value=until", "not of type string"),
        ("space=cache&key=id&value=body&flags=owner", "not of type unsigned"),
        ("space=cache&key=id&value=body&cas=until&expires=until", "named twice"),
        ("speed=9", "no parameter 'speed'"),
        ("engine=paper", "neither memtx nor vinyl"),
        ("item_size_max=1", "no size between"),
    ] {
        let reply = listen(&mut rig, &format!("memcached://127.0.0.1:0?{terms}"));
        let text = reply.error.map(|(_, text)| text).unwrap_or_default();
        assert!(text.contains(words), "{terms}: {text}");
    }
    let reply = listen(&mut rig, "memcached://web@127.0.0.1:0?space=cache&key=id&value=body&expires=until");
    assert_eq!(reply.code(), 0, "{reply:?}");
    rig.eval("box.space.cache:replace{'me', 'a', '5', box.NULL}");
    let mut talk = Talk::to(&mut rig);
    assert_eq!(talk.ask("incr a 3\r\nget a\r\n"), "8\r\nVALUE a 0 1\r\n8\r\nEND\r\n");
    assert_eq!(talk.ask("set a 7 100 2\r\nxy\r\nget a\r\n"), "STORED\r\nVALUE a 0 2\r\nxy\r\nEND\r\n");
    assert_eq!(
        rig.answer(
            "local row = box.space.cache:get('a') return row[4] - math.floor(os.time()) - 99 <= 1 and 1 or 0, row.owner"
        ),
        (1, "me".to_string())
    );
}

#[test]
fn large_values_come_in_parts_and_what_is_too_large_is_passed_over() {
    let mut rig = start("?item_size_max=2m");
    let mut talk = Talk::to(&mut rig);
    rig.eval("box.cfg{ memtx_max_tuple_size = 4 * 1024 * 1024 }");
    let value = "v".repeat(2_000_000);
    assert_eq!(talk.ask(set("a", &value)), "STORED\r\n");
    assert!(talk.ask("get a\r\n") == format!("VALUE a 0 2000000\r\n{value}\r\nEND\r\n"));
    // Many at once are sent as they are read.
    let keys = " a".repeat(40);
    assert_eq!(talk.ask(format!("get{keys}\r\n")).len(), 40 * (2_000_000 + "VALUE a 0 2000000\r\n\r\n".len()) + 5);
    let before = rig.server.memory();
    let huge = "v".repeat(64 << 20);
    assert_eq!(talk.ask(set("a", &huge)), "SERVER_ERROR object too large for cache\r\n");
    assert!(rig.server.memory() < before + (32 << 20), "what is refused is not kept");
    assert_eq!(talk.ask("get a\r\n"), "END\r\n");
}

#[test]
fn bad_packets_and_lines_end_their_own_connection_at_most() {
    let mut rig = start("");
    let sockets = rig.server.sockets();
    let header = |key: u16, extras: u8, body: u32| {
        let mut bytes = vec![0x80, 1];
        bytes.extend_from_slice(&key.to_be_bytes());
        bytes.extend_from_slice(&[extras, 0, 0, 0]);
        bytes.extend_from_slice(&body.to_be_bytes());
        bytes.extend_from_slice(&[0; 12]);
        bytes
    };
    let inputs: Vec<Vec<u8>> = vec![
        header(u16::MAX, u8::MAX, u32::MAX),
        header(10, 8, 4),
        header(1, 8, u32::MAX),
        header(250, 8, 300),
        vec![0x80],
        vec![0x80; 100],
        vec![0xff; 100],
        vec![b'x'; 1 << 20],
        [b"get ".to_vec(), vec![b'k'; 2 << 20]].concat(),
        b"set a 0 0 4294967297\r\n".to_vec(),
        b"set a 0 0 100\r\nhalf".to_vec(),
        b"ms a 99999999\r\nx".to_vec(),
        b"mg \r\nmg a O\r\nms a 0\r\n\r\nma a N0 J D\r\n".to_vec(),
        b"POST /a HTTP/1.1\r\nHost: me\r\n\r\nset a 0 0 1\r\nx\r\n".to_vec(),
    ];
    for input in &inputs {
        let mut talk = Talk::to(&mut rig);
        // It may be closed already.
        let _ = talk.0.get_ref().write_all(input);
        let _ = talk.0.get_ref().shutdown(std::net::Shutdown::Write);
        let answer = talk.rest();
        assert!(answer.len() < 1000, "{:?}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(rig.number("return box.space.memcached:count()"), 1, "only `ms a 0` was whole");
    let is_gone = rig.server.wait(&mut rig.client, PATIENCE, |server| server.sockets() <= sockets);
    assert!(is_gone, "{} sockets, {sockets} before", rig.server.sockets());
}

#[test]
fn logins_by_text_and_by_sasl_come_before_everything_else() {
    let mut rig = start("?auth=required");
    rig.eval(
        "return box.session.su('admin', function() box.schema.user.create('web', { password = 'secret' }) \
         box.schema.user.grant('web', 'read,write', 'space', 'memcached') \
         box.schema.user.create('nobody', { password = 'x' }) end)",
    );
    let mut talk = Talk::to(&mut rig);
    let mut say = |line: &str| {
        talk.send(line);
        let mut answer = String::new();
        talk.0.read_line(&mut answer).unwrap();
        answer
    };
    assert_eq!(say("get a\r\n"), "CLIENT_ERROR unauthenticated\r\n");
    assert_eq!(say("mg a\r\n"), "CLIENT_ERROR unauthenticated\r\n");
    assert_eq!(say(&set("a", "secret")), "CLIENT_ERROR bad authentication token format\r\n");
    assert_eq!(say(&set("a", "web wrong")), "CLIENT_ERROR authentication failure\r\n");
    assert_eq!(say(&set("a", "memcached ")), "CLIENT_ERROR bad authentication token format\r\n");
    assert_eq!(say(&set("a", "web secret")), "STORED\r\n");
    assert_eq!(say(&set("a", "web secret")), "STORED\r\n");
    assert_eq!(say("mg a s\r\n"), "HD s10\r\n");
    let mut talk = Talk::to(&mut rig);
    talk.send(set("x", "nobody x"));
    talk.send(set("a", "x"));
    talk.send("quit\r\n");
    let rest = String::from_utf8(talk.rest()).unwrap();
    assert_eq!(rest, "STORED\r\nSERVER_ERROR Write access to space 'memcached' is denied for user 'nobody'\r\n");
    let mut stream = TcpStream::connect(address(&mut rig)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&packet(0x20, b"", b"", b"")).unwrap();
    assert_eq!(receive(&mut stream), (0, b"PLAIN".to_vec()));
    stream.write_all(&packet(0x21, b"PLAIN", b"", b"\0web\0wrong")).unwrap();
    assert_eq!(receive(&mut stream), (0x20, b"Auth failure.".to_vec()));
    stream.write_all(&packet(0x21, b"PLAIN", b"", b"\0web\0secret")).unwrap();
    assert_eq!(receive(&mut stream).0, 0);
    stream.write_all(&packet(0x00, b"a", b"", b"")).unwrap();
    assert_eq!(receive(&mut stream), (0, b"\0\0\0\0web secret".to_vec()));
    let mut stranger = TcpStream::connect(address(&mut rig)).unwrap();
    stranger.set_read_timeout(Some(PATIENCE)).unwrap();
    stranger.write_all(&[packet(0x00, b"a", b"", b""), packet(0x00, b"a", b"", b"")].concat()).unwrap();
    assert_eq!(receive(&mut stranger), (0x20, b"Auth failure.".to_vec()));
    assert_eq!(stranger.read(&mut [0; 10]).unwrap_or(0), 0, "the connection is closed");
}

#[test]
fn clients_come_through_a_path() {
    let dir = tempfile::TempDir::new().unwrap();
    let path = dir.path().join("m.sock");
    let listen = format!("memcached://unix/:{}", path.display());
    let _rig = Rig::start(OPEN, &["--listen", &listen]);
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"set a 0 0 1\r\nx\r\nget a\r\nquit\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n");
}

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
fn a_flush_to_come_is_done_when_its_time_has_come() {
    let mut rig = start("");
    let mut talk = Talk::to(&mut rig);
    assert_eq!(
        talk.ask([set("a", "1"), "flush_all 1000\r\nflush_all 1\r\nget a\r\n".to_string()].concat()),
        "STORED\r\nOK\r\nOK\r\nVALUE a 0 1\r\n1\r\nEND\r\n"
    );
    let is_empty = |rig: &mut Rig| rig.number("require('fiber').sleep(0.05) return box.space.memcached:count()") == 0;
    assert!((0..200).any(|_| is_empty(&mut rig)));
    assert_eq!(talk.ask([set("b", "1"), "flush_all\r\nget b\r\n".to_string()].concat()), "STORED\r\nOK\r\nEND\r\n");
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
fn requests_come_by_tls() {
    let files = tempfile::TempDir::new().unwrap();
    let make = "req -x509 -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 9 -subj /CN=cache -keyout key -out crt";
    let made = Command::new("openssl").args(make.split(' ')).current_dir(files.path()).output();
    assert!(made.is_ok_and(|made| made.status.success()), "openssl(1) is needed");
    let path = |name: &str| files.path().join(name).display().to_string();
    let mut rig = start(&format!("?transport=ssl&ssl_cert_file={}&ssl_key_file={}", path("crt"), path("key")));
    let mut client = Command::new("openssl")
        .args(["s_client", "-quiet", "-connect", &address(&mut rig)])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let value = "v".repeat(200_000);
    let mut input = client.stdin.take().unwrap();
    input.write_all((set("a", &value) + "get a\r\nmn\r\n").as_bytes()).unwrap();
    let mut answer = Vec::new();
    let mut output = BufReader::new(client.stdout.take().unwrap());
    while !answer.ends_with(b"MN\r\n") {
        assert!(output.read_until(b'\n', &mut answer).unwrap() > 0);
    }
    assert_eq!(String::from_utf8_lossy(&answer), format!("STORED\r\nVALUE a 0 200000\r\n{value}\r\nEND\r\nMN\r\n"));
    // In the clear nothing is answered.
    let mut plain = TcpStream::connect(address(&mut rig)).unwrap();
    plain.set_read_timeout(Some(PATIENCE)).unwrap();
    plain.write_all(b"version\r\n").unwrap();
    let mut rest = Vec::new();
    _ = plain.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains("VERSION"));
    client.kill().unwrap();
    client.wait().unwrap();
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

/// The answers are those of memcached 1.6.18 with `-C`.
#[test]
fn items_may_have_no_cas() {
    let mut rig = start("?cas_enabled=no");
    let mut talk = Talk::to(&mut rig);
    for (said, answer) in [
        ("set a 0 0 1\r\nx\r\n", "STORED\r\n"),
        ("gets a\r\n", "VALUE a 0 1 0\r\nx\r\nEND\r\n"),
        ("cas a 0 0 1 0\r\ny\r\n", "EXISTS\r\n"),
        ("cas a 0 0 1 5\r\ny\r\n", "EXISTS\r\n"),
        ("cas b 0 0 1 5\r\ny\r\n", "NOT_FOUND\r\n"),
        ("mg a v c\r\n", "VA 1 c0\r\nx\r\n"),
        ("ms a 1 C0\r\nz\r\n", "EX\r\n"),
        ("ms a 1 C5\r\nz\r\n", "EX\r\n"),
        ("md a C5\r\n", "EX\r\n"),
        ("md a C0\r\n", "HD\r\n"),
        ("set n 0 0 1\r\n1\r\n", "STORED\r\n"),
        ("ma n C5\r\n", "EX\r\n"),
        ("incr n 4\r\n", "5\r\n"),
        ("touch n 0\r\nmg n c v\r\n", "TOUCHED\r\nVA 1 c0\r\n5\r\n"),
        ("ms n 1 c I C3\r\nx\r\n", "EX c0\r\n"),
        ("mg new N0 c v\r\n", "VA 0 c0 W\r\n\r\n"),
    ] {
        assert_eq!(talk.ask(said), answer, "{said}");
    }
    assert!(talk.ask("stats settings\r\n").contains("STAT cas_enabled no\r\n"));
    let stream = TcpStream::connect(address(&mut rig)).unwrap();
    (&stream).write_all(&packet(1, b"b", &[0; 8], b"x")).unwrap();
    assert_eq!(receive(&mut &stream), (0, Vec::new()));
    // Rows of such a listener have a cas for others, which is computed.
    rig.restart(&["--listen", &listener("")]);
    let answer = Talk::to(&mut rig).ask("gets n\r\n");
    assert!(answer.starts_with("VALUE n 0 1 ") && !answer.starts_with("VALUE n 0 1 0\r"), "{answer}");
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
