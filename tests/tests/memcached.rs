//! memcached's protocols through the real binary: the answers of the real memcached, a model, bad input, logins, what stays behind a kill; listeners are in `memcached_listeners.rs`.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::memcached::{OPEN, PATIENCE, Talk, address, listener, packet, receive, set, start};
use lycosa_tests::{Rig, root};
use runtime::{Randomness, SeededRandomness};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Command;
use tuple::msgpack::Reader;

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
