//! Tokyo Tyrant's protocols through the real binary: a client of its binary protocol, memcached's and HTTP on the same port.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::Rig;
use runtime::{Randomness, SeededRandomness};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A script for the server's own administrator, so that guest may evaluate.
const OPEN: &str = "box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true })";
const PATIENCE: Duration = Duration::from_secs(20);

fn listener(query: &str) -> String {
    format!("tyrant://127.0.0.1:0{query}")
}

fn start(query: &str) -> Rig {
    Rig::start(OPEN, &["--listen", &listener(query)])
}

/// Where a server listens for clients of Tokyo Tyrant.
fn address(rig: &mut Rig) -> String {
    const READY: &str = "ready: connect to ";
    let find = |log: &str| {
        let line = log.lines().find(|line| line.contains("with any client of Tokyo Tyrant"))?;
        Some(line.split_once(READY)?.1.split(' ').next()?.to_string())
    };
    assert!(rig.server.wait(&mut rig.client, PATIENCE, |server| find(&server.log()).is_some()), "{}", rig.server.log());
    find(&rig.server.log()).unwrap()
}

/// A client of the binary protocol.
struct Tyrant(TcpStream);

fn be(number: usize) -> [u8; 4] {
    (number as u32).to_be_bytes()
}

impl Tyrant {
    fn to(rig: &mut Rig) -> Self {
        let stream = TcpStream::connect(address(rig)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Tyrant(stream)
    }

    fn send(&mut self, parts: &[&[u8]]) {
        self.0.write_all(&parts.concat()).unwrap();
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }

    fn number(&mut self) -> usize {
        u32::from_be_bytes(self.bytes(4).try_into().unwrap()) as usize
    }

    fn is_done(&mut self) -> bool {
        self.bytes(1)[0] == 0
    }

    fn part(&mut self) -> String {
        let length = self.number();
        String::from_utf8_lossy(&self.bytes(length)).into_owned()
    }

    fn put(&mut self, command: u8, key: &str, value: &str) -> bool {
        self.send(&[&[0xc8, command], &be(key.len()), &be(value.len()), key.as_bytes(), value.as_bytes()]);
        command == 0x18 || self.is_done()
    }

    fn put_shift(&mut self, key: &str, value: &str, width: usize) -> bool {
        let lengths = [be(key.len()), be(value.len()), be(width)].concat();
        self.send(&[&[0xc8, 0x13], &lengths, key.as_bytes(), value.as_bytes()]);
        self.is_done()
    }

    fn of_key(&mut self, command: u8, key: &str) -> bool {
        self.send(&[&[0xc8, command], &be(key.len()), key.as_bytes()]);
        self.is_done()
    }

    fn get(&mut self, key: &str) -> Option<String> {
        self.of_key(0x30, key).then(|| self.part())
    }

    fn get_many(&mut self, keys: &[&str]) -> Vec<(String, String)> {
        self.send(&[&[0xc8, 0x31], &be(keys.len())]);
        for key in keys {
            self.send(&[&be(key.len()), key.as_bytes()]);
        }
        assert!(self.is_done());
        let count = self.number();
        let pair = |tyrant: &mut Self| {
            let (key, value) = (tyrant.number(), tyrant.number());
            let bytes = tyrant.bytes(key + value);
            let text = String::from_utf8(bytes).unwrap();
            (text[..key].to_string(), text[key..].to_string())
        };
        (0..count).map(|_| pair(self)).collect()
    }

    fn prefix(&mut self, prefix: &str, max: i32) -> Vec<String> {
        self.send(&[&[0xc8, 0x58], &be(prefix.len()), &max.to_be_bytes(), prefix.as_bytes()]);
        assert!(self.is_done());
        (0..self.number()).map(|_| self.part()).collect()
    }

    fn all_keys(&mut self) -> Vec<String> {
        self.send(&[&[0xc8, 0x50]]);
        assert!(self.is_done());
        std::iter::from_fn(|| {
            self.send(&[&[0xc8, 0x51]]);
            self.is_done().then(|| self.part())
        })
        .collect()
    }

    fn add_int(&mut self, key: &str, number: i32) -> Option<i32> {
        self.send(&[&[0xc8, 0x60], &be(key.len()), &number.to_be_bytes(), key.as_bytes()]);
        self.is_done().then(|| self.number() as i32)
    }

    fn misc(&mut self, name: &str, arguments: &[&str]) -> Option<Vec<String>> {
        self.send(&[&[0xc8, 0x90], &be(name.len()), &be(0), &be(arguments.len()), name.as_bytes()]);
        for argument in arguments {
            self.send(&[&be(argument.len()), argument.as_bytes()]);
        }
        let is_done = self.is_done();
        let elements: Vec<String> = (0..self.number()).map(|_| self.part()).collect();
        is_done.then_some(elements)
    }

    fn call(&mut self, name: &str, key: &str, value: &str) -> Option<String> {
        let lengths = [be(name.len()), be(0), be(key.len()), be(value.len())].concat();
        self.send(&[&[0xc8, 0x68], &lengths, name.as_bytes(), key.as_bytes(), value.as_bytes()]);
        self.is_done().then(|| self.part())
    }

    fn u64(&mut self, command: u8) -> u64 {
        self.send(&[&[0xc8, command]]);
        assert!(self.is_done());
        u64::from_be_bytes(self.bytes(8).try_into().unwrap())
    }

    /// What a request of another protocol on the port is answered, up to the end of the stream.
    fn say(mut self, bytes: impl AsRef<[u8]>) -> String {
        // It may be closed before it has taken all.
        let _ = self.0.write_all(bytes.as_ref());
        let _ = self.0.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        match self.0.read_to_end(&mut answer) {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            result => _ = result.unwrap(),
        }
        String::from_utf8_lossy(&answer).into_owned()
    }
}

#[test]
fn records_are_put_and_got_in_every_kind_of_database() {
    for query in [
        "",
        "?type=casket.tch%23bnum=1000",
        "?type=%2B",
        "?type=casket.tcb",
        "?engine=vinyl",
        "?type=*&engine=vinyl&space=other",
    ] {
        let mut rig = start(query);
        let mut tyrant = Tyrant::to(&mut rig);
        assert!(tyrant.put(0x10, "a", "1") && tyrant.put(0x10, "a", "2"), "{query}");
        assert!(!tyrant.put(0x11, "a", "3") && tyrant.put(0x11, "b", "3"));
        assert!(tyrant.put(0x12, "a", "xyz") && tyrant.put(0x12, "c", "new"));
        assert!(tyrant.put_shift("a", "12", 3));
        assert_eq!([tyrant.get("a"), tyrant.get("none")], [Some("z12".to_string()), None]);
        tyrant.put(0x18, "quiet", "q");
        assert_eq!(tyrant.get("quiet").as_deref(), Some("q"));
        assert!(tyrant.of_key(0x38, "a"));
        assert_eq!(tyrant.number(), 3);
        assert!(tyrant.of_key(0x20, "quiet") && !tyrant.of_key(0x20, "quiet") && !tyrant.of_key(0x38, "quiet"));
        assert_eq!(
            [tyrant.add_int("n", 5), tyrant.add_int("n", -7), tyrant.add_int("a", 1)],
            [Some(5), Some(-2), None]
        );
        let fraction = 500_000_000_000i64.to_be_bytes();
        tyrant.send(&[&[0xc8, 0x61], &be(1), &2i64.to_be_bytes(), &fraction, b"d"]);
        assert!(tyrant.is_done());
        assert_eq!(tyrant.bytes(16), [2i64.to_be_bytes(), fraction].concat());
        let pairs = [("a".to_string(), "z12".to_string()), ("c".to_string(), "new".to_string())];
        assert_eq!(tyrant.get_many(&["a", "none", "c"]), pairs);
        (0..1000).for_each(|number| _ = tyrant.put(0x10, &format!("many{number:04}"), "x"));
        let mut keys = tyrant.prefix("many", -1);
        keys.sort();
        assert_eq!(keys, (0..1000).map(|number| format!("many{number:04}")).collect::<Vec<_>>());
        assert_eq!(tyrant.prefix("many", 7).len(), 7);
        let mut keys = tyrant.all_keys();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 1005);
        // On disk it is an estimate.
        let is_about = |number: u64| (1005..=1010).contains(&number) && (number == 1005 || query.contains("vinyl"));
        assert!(is_about(tyrant.u64(0x80)));
        assert!(tyrant.u64(0x81) > 5000);
        tyrant.send(&[&[0xc8, 0x88]]);
        assert!(tyrant.is_done());
        let stat = tyrant.part();
        assert!(stat.contains("\nrnum\t10") && stat.starts_with("version\t"), "{stat}");
        for request in [&[0xc8, 0x70][..], &[0xc8, 0x71, 0, 0, 0, 0]] {
            tyrant.send(&[request]);
            assert!(tyrant.is_done());
        }
        let copy = [&[0xc8, 0x73][..], &be(4), b"@cmd"].concat();
        let setmst = [&[0xc8, 0x78][..], &be(1), &[0; 16], b"h"].concat();
        let restore = [&[0xc8, 0x74][..], &be(1), &[0; 12], b"p"].concat();
        for request in [copy, setmst, restore] {
            tyrant.send(&[&request]);
            assert!(!tyrant.is_done());
        }
        rig.restart(&["--listen", &listener(query)]);
        let mut tyrant = Tyrant::to(&mut rig);
        assert_eq!(tyrant.get("a").as_deref(), Some("z12"));
        tyrant.send(&[&[0xc8, 0x72]]);
        assert!(tyrant.is_done());
        assert_eq!((tyrant.u64(0x80), tyrant.get("a")), (0, None));
    }
}

#[test]
fn misc_calls_go_by_their_names() {
    let mut rig = start("?type=casket.tcb");
    let mut tyrant = Tyrant::to(&mut rig);
    let some = |elements: &[&str]| Some(elements.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(tyrant.misc("put", &["a", "1"]), some(&[]));
    assert_eq!(tyrant.misc("putkeep", &["a", "2"]), None);
    assert_eq!(tyrant.misc("putcat", &["a", "2"]), some(&[]));
    assert_eq!(tyrant.misc("get", &["a"]), some(&["12"]));
    assert_eq!(tyrant.misc("getpart", &["a", "1", "5"]), some(&["2"]));
    assert_eq!(tyrant.misc("putlist", &["b", "2", "c", "3", "d", "4"]), some(&[]));
    assert_eq!(tyrant.misc("getlist", &["a", "none", "c"]), some(&["a", "12", "c", "3"]));
    assert_eq!(tyrant.misc("range", &["b", "-1", "d"]), some(&["b", "2", "c", "3"]));
    assert_eq!(tyrant.misc("range", &["b", "1"]), some(&["b", "2"]));
    assert_eq!(tyrant.misc("outlist", &["b"]), some(&[]));
    assert_eq!(tyrant.misc("iterinit", &["c"]), some(&[]));
    assert_eq!(tyrant.misc("iternext", &[]), some(&["c", "3"]));
    assert_eq!(tyrant.misc("iternext", &[]), some(&["d", "4"]));
    assert_eq!(tyrant.misc("iternext", &[]), None);
    for (name, arguments) in [("nonsense", &["x"][..]), ("get", &[]), ("put", &["a"]), ("search", &["get"])] {
        assert_eq!(tyrant.misc(name, arguments), None, "{name}");
    }
    assert_eq!(tyrant.misc("vanish", &[]), some(&[]));
    assert_eq!(tyrant.get("a"), None);
}

#[test]
fn numbers_are_the_keys_of_a_database_of_fixed_length() {
    let mut rig = start("?type=casket.tcf");
    let mut tyrant = Tyrant::to(&mut rig);
    assert!(tyrant.put(0x10, "next", "first") && tyrant.put(0x10, "next", "second") && tyrant.put(0x10, "10", "tenth"));
    assert!(!tyrant.put(0x10, "prev", "none") && !tyrant.put(0x10, "0", "x") && !tyrant.put(0x10, "word", "x"));
    assert_eq!(tyrant.all_keys(), ["1", "2", "10"]);
    assert_eq!([tyrant.get("max"), tyrant.get("min")], [Some("tenth".to_string()), Some("first".to_string())]);
    assert!(tyrant.put(0x10, "3", &"x".repeat(1000)));
    assert_eq!(tyrant.get("3").unwrap().len(), 255);
    assert_eq!(tyrant.misc("range", &["2", "-1", "10"]).unwrap()[0], "2");
    assert_eq!(rig.answer("return 1, box.space.tyrant_fixed:get(2).value"), (1, "second".to_string()));
}

#[test]
fn a_table_is_searched_by_conditions_and_ordered() {
    let mut rig = start("?type=casket.tct");
    let mut tyrant = Tyrant::to(&mut rig);
    let people = [("1", "Anna", "31"), ("2", "Boris", "7"), ("3", "Carla", "100"), ("4", "Dana", "31")];
    for (key, name, age) in people {
        assert!(tyrant.misc("put", &[key, "name", name, "age", age]).is_some());
    }
    assert_eq!(tyrant.get("1").as_deref(), Some("name\0Anna\0age\x0031"));
    assert_eq!(tyrant.misc("get", &["2"]).unwrap(), ["name", "Boris", "age", "7"]);
    assert!(tyrant.misc("putcat", &["1", "town", "Lodz", "age", "99"]).is_some());
    assert_eq!(tyrant.misc("get", &["1"]).unwrap(), ["name", "Anna", "age", "31", "town", "Lodz"]);
    assert!(tyrant.put(0x10, "5", "name\0Egon\0age\x005"));
    let mut search = |arguments: &[&str]| tyrant.misc("search", arguments).unwrap();
    assert_eq!(search(&["addcond\0age\0NUMGE\x0031", "setorder\0age\x003"]), ["3", "4", "1"].map(ToString::to_string));
    assert_eq!(search(&["setorder\0name\x001", "setlimit\x002\x001"]), ["4", "3"]);
    assert_eq!(search(&["addcond\0name\x002\0B", "get"]), ["\x002\0name\0Boris\0age\x007"]);
    assert_eq!(search(&["addcond\0name\x002\0B", "get\0age"]), ["\x002\0age\x007"]);
    assert_eq!(search(&["addcond\0town\x0016777216\0Lodz", "count"]), ["4"]);
    assert_eq!(search(&["addcond\0\x000\x003"]), ["3"]);
    assert_eq!(search(&["addcond\0name\0STRRX\0^[AB]or", "get\0age"]), ["\x002\0age\x007"]);
    assert_eq!(search(&["addcond\0name\x007\0*^bor", "count"]), ["1"]);
    assert_eq!(search(&["addcond\0age\x0011\x006", "out"]), Vec::<String>::new());
    assert_eq!(tyrant.u64(0x80), 4);
    let two = ["addcond\0age\08\x0031", "next", "addcond\0town\x000\0Lodz"];
    let mut meta = |kind: &str| tyrant.misc("metasearch", &[&two[..], &[kind]].concat()).unwrap();
    assert_eq!([meta("mstype\x000"), meta("mstype\x001"), meta("mstype\x002")], [vec!["1", "4"], vec!["1"], vec!["4"]]);
    let ids = [tyrant.misc("genuid", &[]).unwrap(), tyrant.misc("genuid", &[]).unwrap()];
    assert_ne!(ids[0], ids[1]);
    assert!(tyrant.misc("setindex", &["age", "1"]).is_some());
    assert_eq!(tyrant.misc("search", &["addcond\0age\x007\0(.*"]), None);
    assert_eq!(rig.answer("return 1, box.space.tyrant_table:get('2').columns.name"), (1, "Boris".to_string()));
}

#[test]
fn functions_of_lua_are_called_with_the_rights_of_the_listener() {
    let mut rig = start("");
    let script = "rawset(_G, 'join', function(key, value) if key == 'none' then return nil end return key .. value end) \
        rawset(_G, 'secret', function() return 'x' end) rawset(_G, 'fails', function() error('on purpose') end) \
        return box.session.su('admin', function() \
        box.schema.func.create('join') box.schema.func.create('fails') \
        box.schema.user.grant('tyrant', 'execute', 'function', 'join') \
        box.schema.user.grant('tyrant', 'execute', 'function', 'fails') end)";
    assert_eq!(rig.eval(script).code(), 0);
    let mut tyrant = Tyrant::to(&mut rig);
    assert_eq!(tyrant.call("join", "a", "b").as_deref(), Some("ab"));
    for name in ["secret", "fails", "absent"] {
        assert_eq!(tyrant.call(name, "a", "b"), None, "{name}");
    }
    assert_eq!(tyrant.call("join", "none", ""), None);
    let answer = tyrant.say("POST /key HTTP/1.0\r\nX-TT-XNAME: join\r\nContent-Length: 5\r\n\r\nvalue");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nkeyvalue"), "{answer}");
}

#[test]
fn memcacheds_lines_and_http_are_answered_on_the_same_port() {
    let mut rig = start("");
    let mut binary = Tyrant::to(&mut rig);
    binary.put(0x10, "k", "v");
    let lines = "get k none\r\nset a 5 0 1\r\n1\r\nincr a 5\r\nadd a 0 0 1\r\n2\r\nappend a 0 0 1\r\n!\r\nget a\r\ndelete a\r\ndelete a\r\nversion\r\nfoo\r\nquit\r\n";
    let answer = Tyrant::to(&mut rig).say(lines);
    let expected = "VALUE k 0 1\r\nv\r\nEND\r\nSTORED\r\n6\r\nNOT_STORED\r\nSTORED\r\nVALUE a 0 2\r\n6!\r\nEND\r\nDELETED\r\nNOT_FOUND\r\nVERSION 1.1.41\r\nERROR\r\n";
    assert_eq!(answer, expected);
    let mut ask = |request: &str| Tyrant::to(&mut rig).say(request);
    let answer =
        ask("GET /k HTTP/1.1\r\nHost: x\r\n\r\nGET /none HTTP/1.1\r\nConnection: close\r\n\r\nGET /k HTTP/1.1\r\n\r\n");
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 1, "{answer}");
    assert!(answer.contains("\r\n\r\nvHTTP/1.1 404 Not Found\r\n"), "{answer}");
    let put = ask("PUT /a%20b HTTP/1.0\r\nContent-Length: 2\r\n\r\nxyPUT");
    assert!(put.starts_with("HTTP/1.1 201 Created"), "{put}");
    assert!(ask("PUT /a%20b HTTP/1.0\r\nX-TT-PDMODE: 1\r\nContent-Length: 2\r\n\r\nxy").starts_with("HTTP/1.1 409"));
    assert!(ask("PUT /a%20b HTTP/1.0\r\nX-TT-PDMODE: 2\r\nContent-Length: 2\r\n\r\nzz").starts_with("HTTP/1.1 201"));
    assert!(ask("GET /a%20b HTTP/1.0\r\n\r\n").ends_with("\r\n\r\nxyzz"));
    let head = ask("HEAD /a%20b HTTP/1.0\r\n\r\n");
    assert!(head.contains("Content-Length: 4\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    let misc = ask("POST / HTTP/1.0\r\nX-TT-MNAME: getlist\r\nContent-Length: 3\r\n\r\na=k");
    assert!(misc.ends_with("\r\n\r\nk\nv\n"), "{misc}");
    assert!(ask("DELETE /k HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200"));
    assert!(ask("DELETE /k HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(ask("OPTIONS / HTTP/1.0\r\n\r\n").contains("\nrnum\t1\n"));
    assert!(ask("POST / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 400"));
}

#[test]
fn bad_input_ends_its_own_connection_at_most() {
    let mut rig = start("");
    let sockets = rig.server.sockets();
    let inputs: Vec<Vec<u8>> = vec![
        vec![0xc8],
        vec![0xc8; 1000],
        vec![0xc8, 0x99],
        vec![0xc8, 0xa0, 0, 0, 0, 0],
        [&[0xc8, 0x10][..], &[0xff; 8]].concat(),
        [&[0xc8, 0x31][..], &[0xff; 8]].concat(),
        [&[0xc8, 0x90][..], &be(1), &be(0), &[0xff; 4], b"x"].concat(),
        [&[0xc8, 0x10][..], &be(5), &be(1 << 20), b"half"].concat(),
        b"PUT /x HTTP/1.1\r\nContent-Length: 18446744073709551615\r\n\r\n".to_vec(),
        b"PUT /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec(),
        [b"GET /".to_vec(), vec![b'x'; 1 << 20]].concat(),
        [b"GET / HTTP/1.1\r\n".to_vec(), vec![b'x'; 1 << 20]].concat(),
        vec![0; 1 << 20],
        b"set a 0 0 99999999\r\nx".to_vec(),
    ];
    for input in &inputs {
        let answer = Tyrant::to(&mut rig).say(input);
        assert!(answer.len() < 200, "{answer}");
    }
    let mut tyrant = Tyrant::to(&mut rig);
    assert_eq!(tyrant.u64(0x80), 0);
    // A value that no row can have is refused, and nothing else.
    assert!(!tyrant.put(0x10, "large", &"x".repeat(2 << 20)) && tyrant.put(0x10, "a", "1"));
    drop(tyrant);
    let is_gone = rig.server.wait(&mut rig.client, PATIENCE, |server| server.sockets() <= sockets);
    assert!(is_gone, "{} sockets, {sockets} before", rig.server.sockets());
}

#[test]
fn two_clients_follow_a_model_and_a_kill_takes_nothing() {
    let mut rig = start("?type=casket.tcb");
    let mut clients = [Tyrant::to(&mut rig), Tyrant::to(&mut rig)];
    let random = SeededRandomness::new(7);
    let below = |bound: u64| random.next_u64() % bound;
    let mut model: BTreeMap<String, String> = BTreeMap::new();
    for step in 0..2000 {
        let tyrant = &mut clients[below(2) as usize];
        let (key, value) = (format!("k{}", below(20)), below(1000).to_string());
        let old = model.get(&key).cloned();
        match below(8) {
            0 | 1 => {
                assert!(tyrant.put(0x10, &key, &value), "{step}");
                model.insert(key, value);
            }
            2 => {
                assert_eq!(tyrant.put(0x11, &key, &value), old.is_none(), "{step}");
                model.entry(key).or_insert(value);
            }
            3 => {
                assert!(tyrant.put(0x12, &key, &value), "{step}");
                *model.entry(key).or_default() += &value;
            }
            4 => {
                assert!(tyrant.put_shift(&key, &value, 5), "{step}");
                let joined = old.map_or(value.clone(), |old| old.clone() + &value);
                let from = if model.contains_key(&key) { joined.len().saturating_sub(5) } else { 0 };
                model.insert(key, joined[from..].to_string());
            }
            5 => assert_eq!(tyrant.of_key(0x20, &key), model.remove(&key).is_some(), "{step}"),
            6 => assert_eq!(
                tyrant.prefix("k1", -1),
                model.keys().filter(|key| key.starts_with("k1")).cloned().collect::<Vec<_>>()
            ),
            _ => assert_eq!(tyrant.get(&key), old, "{step}"),
        }
    }
    rig.restart(&["--listen", &listener("?type=casket.tcb")]);
    let mut tyrant = Tyrant::to(&mut rig);
    assert_eq!(tyrant.all_keys(), model.keys().cloned().collect::<Vec<_>>());
    for (key, value) in &model {
        assert_eq!(tyrant.get(key).as_ref(), Some(value));
    }
}

#[test]
fn what_a_listener_says_wrong_is_named() {
    let mut rig = Rig::start(OPEN, &[]);
    let keep = rig.server.address().to_string();
    for (terms, words) in [
        ("type=casket.xyz", "none of *, +"),
        ("engine=paper", "neither memtx nor vinyl"),
        ("speed=1", "no parameter 'speed'"),
        ("auth=required", "logins, which clients of tyrant cannot give"),
        ("type=casket.tcf&space=_schema", "cannot be a fixed database"),
    ] {
        let script = format!("box.cfg{{ listen = {{ '{keep}', 'tyrant://127.0.0.1:0?{terms}' }} }}");
        let text = rig.eval(&script).error.map(|(_, text)| text).unwrap_or_default();
        assert!(text.contains(words), "{terms}: {text}");
    }
}

#[test]
fn functions_of_lua_find_those_that_tokyo_tyrant_gives_them() {
    let mut rig = start("?functions=yes&type=%2B");
    let script = r#"
        rawset(_G, 'count', function(key) return _addint(key, 3) + _addint(key, 4) end)
        rawset(_G, 'all', function(key, value)
            _put('a1', '1') _put('a2', '2') _putcat('a2', 'x')
            local said = {}
            local function say(value) table.insert(said, tostring(value)) end
            say(_putkeep('a1', 'z')) say(_get('a1')) say(_get('none')) say(_vsiz('a2')) say(_rnum())
            say(table.concat(_fwmkeys('a'), '+')) say(_out('a1')) say(_out('a1'))
            _iterinit() say(_iternext()) say(_iternext()) say(_iternext())
            _stashput('s', 1) say(_stashget('s')) say(_stashout('s')) say(_stashget('s'))
            say(_lock('l')) say(_unlock('l')) say(_unlock('l')) say(#_split('a,b;c', ',;')) say(_adddouble('d', 1.5))
            _foreach(function(key) say(key) return true end)
            _vanish() say(_rnum())
            return table.concat(said, ' ')
        end)
        return box.session.su('admin', function()
            for _, name in ipairs({'count', 'all'}) do
                box.schema.func.create(name)
                box.schema.user.grant('tyrant', 'execute', 'function', name)
            end
        end)"#;
    assert_eq!(rig.eval(script).code(), 0);
    let mut tyrant = Tyrant::to(&mut rig);
    assert_eq!(tyrant.call("count", "n", "").as_deref(), Some("10"));
    let said = "false 1 nil 2 3 a1+a2 true false a2 n nil 1 true nil true true false 3 1.5 a2 d n 0";
    assert_eq!(tyrant.call("all", "", "").as_deref(), Some(said));
}
