//! TLS as clients meet it: `openssl s_client` is the other side, certificates are made here.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Client, Rig, Server, packet, request};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tuple::msgpack::{self, Reader};

/// A script for the server's own administrator, so that guest may evaluate.
const OPEN: &str = "box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true })";

/// Makes a key and a certificate. False: openssl(1) is not there or has failed.
fn make_certificate(dir: &Path, arguments: &[&str]) -> bool {
    let request = "req -x509 -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650";
    let made = Command::new("openssl").args(request.split(' ')).args(arguments).current_dir(dir).output();
    made.is_ok_and(|made| made.status.success())
}

/// Makes an authority, members of it and of another one. False: openssl(1) is not there or has failed.
fn make_files(dir: &Path) -> bool {
    let openssl = |arguments: &[&str]| make_certificate(dir, arguments);
    [("ca", ["server", "client"]), ("other_ca", ["stranger", "another"])].iter().all(|(authority, members)| {
        let (key, certificate) = (format!("{authority}.key"), format!("{authority}.crt"));
        let subject = format!("/CN={authority}");
        openssl(&["-subj", &subject, "-keyout", &key, "-out", &certificate])
            && members.iter().all(|name| {
                let (own_key, own) = (format!("{name}.key"), format!("{name}.crt"));
                openssl(&[
                    "-subj",
                    &format!("/CN={name}"),
                    "-CA",
                    &certificate,
                    "-CAkey",
                    &key,
                    "-keyout",
                    &own_key,
                    "-out",
                    &own,
                    "-addext",
                    "basicConstraints=critical,CA:FALSE",
                ])
            })
    })
}

/// A server that listens without TLS at first, and files for it.
struct Setting {
    rig: Rig,
    files: TempDir,
}

impl Setting {
    fn new() -> Self {
        let files = TempDir::new().unwrap();
        assert!(make_files(files.path()), "openssl(1) is needed");
        Setting { rig: Rig::start(OPEN, &[]), files }
    }

    fn path(&self, name: &str) -> String {
        self.files.path().join(name).display().to_string()
    }

    /// What the error of a script says, or an empty text.
    fn said(&mut self, source: &str) -> String {
        let reply = self
            .rig
            .eval(&format!("local fine, why = pcall(function() {source} end) return fine and '' or tostring(why)"));
        let mut reader = Reader::new(&reply.data);
        reader.read_array().unwrap();
        String::from_utf8_lossy(reader.read_str().unwrap()).into_owned()
    }

    /// Lua that stands for an address by TLS: that of the server, and more parameters.
    fn address(&self, more: &str) -> String {
        let (certificate, key) = (self.path("server.crt"), self.path("server.key"));
        format!(
            "{{ uri = '127.0.0.1:0', params = {{ transport = 'ssl', ssl_cert_file = '{certificate}', ssl_key_file = '{key}', {more} }} }}"
        )
    }

    /// Listens without TLS and with it; the port by TLS.
    fn listen(&mut self, more: &str) -> String {
        let source = format!(
            "box.cfg{{ listen = {{ '{}', {} }} }} return 1, box.info.listen[2]",
            self.rig.server.address(),
            self.address(more)
        );
        self.rig.answer(&source).1
    }

    fn awaits_line(&mut self, words: &str, time_max: Duration) -> bool {
        let server = &self.rig.server;
        server.wait(&mut self.rig.client, time_max, |server| server.log().contains(words))
    }
}

/// `openssl s_client`: what is written to it goes to the server.
struct Tunnel {
    child: Child,
}

impl Tunnel {
    fn open(address: &str, options: &[&str]) -> Self {
        let child = Command::new("openssl")
            .args(["s_client", "-quiet", "-connect", address])
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Tunnel { child }
    }

    /// So many bytes of the server; fewer if it ends before.
    fn read(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.child.stdout.as_mut().unwrap().take(count as u64).read_to_end(&mut bytes).unwrap();
        bytes
    }

    fn is_greeted(&mut self) -> bool {
        self.read(128).starts_with(b"Tarantool")
    }

    fn write(&mut self, bytes: &[u8]) {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(bytes).unwrap();
        stdin.flush().unwrap();
    }

    /// The body of the answer to a script.
    fn eval(&mut self, source: &str) -> Vec<u8> {
        let mut expression = Vec::new();
        msgpack::encode_str(&mut expression, source.as_bytes());
        self.write(&packet(8, 1, &request(&[(0x27, &expression), (0x21, &[0x90])])));
        self.answer()
    }

    /// The next packet, without its length.
    fn answer(&mut self) -> Vec<u8> {
        let head = self.read(5);
        assert_eq!(head.first(), Some(&0xce), "{head:?}");
        self.read(u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize)
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn clients_are_served_by_tls_beside_others() {
    let mut setting = Setting::new();
    let address = setting.listen("");
    for options in [&[][..], &["-tls1_2"], &["-tls1_3"], &["-CAfile", &setting.path("ca.crt"), "-verify_return_error"]]
    {
        let mut tunnel = Tunnel::open(&address, options);
        assert!(tunnel.is_greeted(), "{options:?}");
        // Many requests in a row, answers in all sizes, a request larger than all buffers.
        for size in [0, 1, 100, 16_000, 70_000, 5_000_000] {
            let answer = tunnel.eval(&format!("return ('x'):rep({size})"));
            assert!(answer.len() >= size && answer[answer.len() - size..].iter().all(|byte| *byte == b'x'), "{size}");
        }
        let long = format!("return #[[{}]]", "y".repeat(3_000_000));
        assert!(tunnel.eval(&long).ends_with(&[0xce, 0, 0x2d, 0xc6, 0xc0]));
        let mut ping = Vec::new();
        (0..2000).for_each(|_| ping.extend(packet(64, 1, &[0x80])));
        tunnel.write(&ping);
        (0..2000).for_each(|_| assert!(!tunnel.answer().is_empty()));
    }
    assert!(!Tunnel::open(&address, &["-CAfile", &setting.path("other_ca.crt"), "-verify_return_error"]).is_greeted());
    assert!(!Tunnel::open(&address, &["-tls1_1"]).is_greeted());
    assert_eq!(setting.rig.number("return 5"), 5);
}

#[test]
fn a_server_that_names_authorities_serves_only_who_belongs_to_them() {
    let mut setting = Setting::new();
    let more = format!("ssl_ca_file = '{}'", setting.path("ca.crt"));
    let address = setting.listen(&more);
    let own = |name: &str| {
        [
            "-cert".to_string(),
            setting.path(&format!("{name}.crt")),
            "-key".to_string(),
            setting.path(&format!("{name}.key")),
        ]
    };
    let (member, stranger) = (own("client"), own("stranger"));
    assert!(Tunnel::open(&address, &member.each_ref().map(String::as_str)).is_greeted());
    assert!(!Tunnel::open(&address, &stranger.each_ref().map(String::as_str)).is_greeted());
    assert!(!Tunnel::open(&address, &[]).is_greeted());
    assert!(
        setting.awaits_line("TLS handshake with 127.0.0.1:", Duration::from_secs(10)),
        "{}",
        setting.rig.server.log()
    );
}

#[test]
fn wrong_files_are_named_by_box_cfg_and_nothing_changes() {
    let mut setting = Setting::new();
    let before = setting.rig.answer("return 1, box.info.listen").1;
    fs::write(setting.files.path().join("cut.crt"), &fs::read(setting.path("server.crt")).unwrap()[..200]).unwrap();
    for (certificate, key, words) in [
        ("none.crt", "server.key", "none.crt: No such file"),
        ("cut.crt", "server.key", "cut.crt: has"),
        ("server.crt", "client.key", "client.key: is not the key of the certificate"),
        ("server.crt", "none.key", "none.key: No such file"),
        ("server.key", "server.key", "server.key: has no certificate"),
    ] {
        let source = format!(
            "box.cfg{{ listen = '127.0.0.1:0?transport=ssl&ssl_cert_file={}&ssl_key_file={}' }}",
            setting.path(certificate),
            setting.path(key)
        );
        let said = setting.said(&source);
        assert!(said.contains(words) && said.contains("cannot listen"), "{said}");
    }
    let said = setting.said("box.cfg{ listen = '127.0.0.1:0?transport=ssl' }");
    assert!(said.contains("ssl_cert_file is missing"), "{said}");
    assert_eq!(setting.rig.answer("return 1, box.info.listen").1, before);
    // From the command line, too, before anything is made.
    let dir = TempDir::new().unwrap();
    let mut command = Command::new(lycosa_tests::binary());
    command.args(["serve", "--listen", "127.0.0.1:0?transport=ssl&ssl_cert_file=/no/such/file&ssl_key_file=x"]);
    command.arg("--work-dir").arg(dir.path().join("data"));
    let said = Server::spawn(command).map(|_| ()).unwrap_err();
    assert!(said.contains("/no/such/file: No such file") && !dir.path().join("data").exists(), "{said}");
}

#[test]
fn a_new_certificate_is_shown_to_who_comes_after_the_change() {
    let mut setting = Setting::new();
    let address = setting.listen("");
    let authority = |name: &str| ["-CAfile".to_string(), setting.path(name), "-verify_return_error".to_string()];
    let (first, second) = (authority("ca.crt"), authority("other_ca.crt"));
    let mut early = Tunnel::open(&address, &first.each_ref().map(String::as_str));
    assert!(early.is_greeted());
    for kind in ["crt", "key"] {
        fs::copy(setting.path(&format!("stranger.{kind}")), setting.path(&format!("server.{kind}"))).unwrap();
    }
    let source = format!(
        "local all = box.cfg.listen all[2].uri = '{address}' box.cfg{{ listen = all }} return 1, box.info.listen[2]"
    );
    assert_eq!(setting.rig.answer(&source).1, address);
    assert!(Tunnel::open(&address, &second.each_ref().map(String::as_str)).is_greeted());
    assert!(!Tunnel::open(&address, &first.each_ref().map(String::as_str)).is_greeted());
    assert!(early.eval("return 42").ends_with(&[42]), "who is connected stays");
}

#[test]
fn who_speaks_the_wrong_language_is_ended_with_a_line_in_the_log() {
    let mut setting = Setting::new();
    let address = setting.listen("");
    let mut plain = TcpStream::connect(&address).unwrap();
    plain.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    plain.write_all(&packet(64, 1, &[0x80])).unwrap();
    let mut rest = Vec::new();
    // The server may close with unread bytes of ours.
    let _ = plain.read_to_end(&mut rest);
    assert!(!rest.starts_with(b"Tarantool"));
    assert!(setting.awaits_line("the other side does not speak TLS", Duration::from_secs(10)));
    let without = setting.rig.server.address().to_string();
    assert!(!Tunnel::open(&without, &[]).read(4).starts_with(&[0xce]));
    assert!(setting.awaits_line("speaks TLS at an address that is listened at without it", Duration::from_secs(10)));
    // One that waits for a greeting is not waited for.
    let begun = Instant::now();
    let mut silent = TcpStream::connect(&address).unwrap();
    silent.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    assert_eq!(silent.read(&mut [0; 1]).unwrap_or(0), 0);
    assert!((5..25).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    assert!(setting.awaits_line("was not done within 10 s", Duration::from_secs(10)));
}

#[test]
fn handshakes_without_end_hold_nobody_up_and_leave_nothing() {
    let mut setting = Setting::new();
    let address = setting.listen("");
    assert!(Tunnel::open(&address, &[]).is_greeted());
    let before = setting.rig.server.sockets();
    let garbage: Vec<u8> = (0..2000_u32).map(|at| ((at * 7919) >> 3) as u8).collect();
    let mut held = Vec::new();
    // More than there may be at once: the oldest are ended.
    for at in 0..1300 {
        let mut stream = TcpStream::connect(&address).unwrap();
        // Some begin well, some with anything.
        let _ = match at % 4 {
            0 => Ok(()),
            1 => stream.write_all(&[0x16, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]),
            2 => stream.write_all(&[0x16, 3, 1, 0x40, 0]),
            _ => stream.write_all(&garbage[at..]),
        };
        held.push(stream);
    }
    let begun = Instant::now();
    assert!(Tunnel::open(&address, &[]).is_greeted(), "an honest client");
    assert_eq!(setting.rig.number("return 5"), 5);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(setting.rig.server.sockets() <= before + 1010);
    drop(held);
    let gone =
        setting.rig.server.wait(&mut setting.rig.client, Duration::from_secs(20), |server| server.sockets() <= before);
    assert!(gone, "{} sockets, {before} before", setting.rig.server.sockets());
    // Clients that vanish after the handshake leave nothing, either.
    let mut tunnels: Vec<Tunnel> = (0..20).map(|_| Tunnel::open(&address, &[])).collect();
    assert!(tunnels.iter_mut().all(Tunnel::is_greeted));
    drop(tunnels);
    let gone =
        setting.rig.server.wait(&mut setting.rig.client, Duration::from_secs(20), |server| server.sockets() <= before);
    assert!(gone, "{} sockets, {before} before", setting.rig.server.sockets());
    let _: &Client = &setting.rig.client;
}

#[test]
fn a_client_that_does_not_read_gets_everything_later() {
    let mut setting = Setting::new();
    let address = setting.listen("");
    let mut tunnel = Tunnel::open(&address, &[]);
    assert!(tunnel.is_greeted());
    let mut expression = Vec::new();
    msgpack::encode_str(&mut expression, b"return ('z'):rep(300000)");
    let one = packet(8, 1, &request(&[(0x27, &expression), (0x21, &[0x90])]));
    for _ in 0..60 {
        tunnel.write(&one);
    }
    // Others are served meanwhile, and the memory for what waits has its bound.
    for _ in 0..200 {
        assert_eq!(setting.rig.number("return 1"), 1);
    }
    for _ in 0..60 {
        let answer = tunnel.answer();
        assert!(answer.len() > 300_000 && answer[answer.len() - 300_000..].iter().all(|byte| *byte == b'z'));
    }
    // The stop of the server ends it behind what was asked.
    tunnel.write(&packet(64, 1, &[0x80]));
    assert!(!tunnel.answer().is_empty());
    setting.rig.server.terminate();
    assert!(tunnel.read(1).is_empty());
    assert!(setting.rig.server.ended().success());
}

/// Lua that connects with `net.box`, and what comes of it.
fn remote(setting: &mut Setting, address: &str, parameters: &str, source: &str) -> String {
    let whole = format!(
        "local c = require('net.box').connect({{ uri = '{address}', params = {{ {parameters} }} }}, {{ connect_timeout = 8 }}) \
         local fine, value = pcall(function() if not c:is_connected() then error(c.error) end {source} end) c:close() \
         return 1, fine and tostring(value) or 'failed: ' .. tostring(value)"
    );
    setting.rig.answer(&whole).1
}

#[test]
fn net_box_speaks_tls() {
    let mut setting = Setting::new();
    let more = format!("ssl_ca_file = '{}'", setting.path("ca.crt"));
    setting.listen("");
    let source = format!(
        "local all = box.cfg.listen all[2].uri = box.info.listen[2] all[3] = {} box.cfg{{ listen = all }} return 1, box.info.listen[3]",
        setting.address(&more)
    );
    let asking = setting.rig.answer(&source).1;
    let open = setting.rig.answer("return 1, box.info.listen[2]").1;
    let (authority, other) = (setting.path("ca.crt"), setting.path("other_ca.crt"));
    let own =
        format!("ssl_cert_file = '{}', ssl_key_file = '{}'", setting.path("client.crt"), setting.path("client.key"));
    let foreign = format!(
        "ssl_cert_file = '{}', ssl_key_file = '{}'",
        setting.path("stranger.crt"),
        setting.path("stranger.key")
    );
    let sizes = "local total = 0 for _, size in ipairs{ 0, 1, 20000, 70000, 3000000 } do \
                 total = total + #c:eval('return ...', { ('x'):rep(size) }) end return total";
    assert_eq!(remote(&mut setting, &open, "transport = 'ssl'", sizes), "3090001");
    let with_authority = format!("transport = 'ssl', ssl_ca_file = '{authority}'");
    assert_eq!(remote(&mut setting, &open, &with_authority, "return c:ping()"), "true");
    let with_other = format!("transport = 'ssl', ssl_ca_file = '{other}'");
    assert!(remote(&mut setting, &open, &with_other, "return 1").contains("invalid peer certificate"));
    assert_eq!(remote(&mut setting, &asking, &format!("{with_authority}, {own}"), "return c:ping()"), "true");
    for wrong in [with_authority.clone(), format!("{with_authority}, {foreign}")] {
        assert!(remote(&mut setting, &asking, &wrong, "return c:ping()").starts_with("failed"), "{wrong}");
    }
    // As a text; many at once; what is no TLS; files that are not there.
    let source = format!(
        "local c = require('net.box').connect('{open}?transport=ssl&ssl_ca_file={authority}') local all = {{}} \
         for at = 1, 500 do all[at] = c:eval('require(\"fiber\").sleep(0.001) return ...', {{ at }}, {{ is_async = true }}) end \
         local sum = 0 for at = 1, 500 do sum = sum + all[at]:wait_result(10)[1] end c:close() return sum"
    );
    assert_eq!(setting.rig.number(&source), 125_250);
    let plain = setting.rig.server.address().to_string();
    let said = remote(&mut setting, &plain, "transport = 'ssl'", "return 1");
    assert!(said.contains("the other side does not speak TLS"), "{said}");
    let said = setting.said(&format!("require('net.box').connect('{open}?transport=ssl&ssl_ca_file=/no/such')"));
    assert!(said.contains("/no/such: No such file"), "{said}");
    let said =
        setting.said(&format!("require('net.box').connect({{ uri = '{open}', params = {{ transport = 'pigeon' }} }})"));
    assert!(said.contains("neither plain nor ssl"), "{said}");
    // The server ends it, and it comes back by itself.
    let source = format!(
        "local c = require('net.box').connect('{open}?transport=ssl', {{ reconnect_after = 0.01 }}) \
         pcall(c.eval, c, 'require(\"socket\") box.session.on_disconnect(function() end) local ffi = require(\"ffi\") \
         ffi.cdef[[int shutdown(int fd, int how);]] ffi.C.shutdown(box.session.fd(), 2)') \
         local fiber = require('fiber') for _ = 1, 500 do if pcall(c.ping, c) and c:ping() then break end fiber.sleep(0.01) end \
         local alive = c:eval('return 7') c:close() return alive"
    );
    assert_eq!(setting.rig.number(&source), 7);
}

#[test]
fn the_console_speaks_tls() {
    let mut setting = Setting::new();
    let source = format!(
        "local address = {} local server = require('console').listen(address) return 1, '127.0.0.1:' .. server:name().port",
        setting.address("")
    );
    let address = setting.rig.answer(&source).1;
    let mut tunnel = Tunnel::open(&address, &[]);
    let greeting = tunnel.read(128);
    assert!(String::from_utf8_lossy(&greeting).contains("(Lua console)"), "{greeting:?}");
    let mut ask = |text: &str, expected: &str| {
        tunnel.write(text.as_bytes());
        let answer = tunnel.read(expected.len());
        assert_eq!(String::from_utf8_lossy(&answer), expected, "{text}");
    };
    ask("1 + 1\n", "---\n- 2\n...\n");
    ask("#('x'):rep(100000)\n", "---\n- 100000\n...\n");
    // From this console to itself, by TLS.
    ask(&format!("require('console').connect('{address}?transport=ssl')\n"), "---\n- true\n...\n");
    ask("6 * 7\n", "---\n- 42\n...\n");
    let mut plain = TcpStream::connect(&address).unwrap();
    plain.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    plain.write_all(b"1 + 1\nwhat is more\n").unwrap();
    let mut rest = Vec::new();
    let _ = plain.read_to_end(&mut rest);
    assert!(setting.awaits_line("TLS handshake of a console with", Duration::from_secs(15)));
    let said = setting.said("require('console').listen('127.0.0.1:0?transport=ssl')");
    assert!(said.contains("ssl_cert_file is missing"), "{said}");
}

#[test]
fn the_tools_reach_a_server_by_tls() {
    let mut setting = Setting::new();
    let address = setting.listen(&format!("ssl_ca_file = '{}'", setting.path("ca.crt")));
    let (certificate, key) = (setting.path("client.crt"), setting.path("client.key"));
    let run = |more: &str, arguments: &[&str]| {
        let uri = format!("{address}?transport=ssl&ssl_cert_file={certificate}&ssl_key_file={key}{more}");
        let arguments = arguments.iter().map(|argument| if *argument == "URI" { uri.as_str() } else { argument });
        let done = Command::new(lycosa_tests::binary()).args(arguments).stdin(Stdio::null()).output().unwrap();
        (done.status.success(), String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned())
    };
    let trusted = format!("&ssl_ca_file={}", setting.path("ca.crt"));
    let console = ["console", "URI", "--json", "-e", "return #('x'):rep(200000), ('y'):rep(100000)"];
    let (is_fine, said) = run(&trusted, &console);
    assert!(is_fine && said.contains("200000") && said.len() > 100_000, "{said}");
    let copy = setting.path("copy");
    let (is_fine, said) = run(&trusted, &["backup", "--uri", "URI", &copy]);
    assert!(is_fine && std::fs::read_dir(&copy).unwrap().count() > 0, "{said}");
    for (more, why) in [
        (format!("&ssl_ca_file={}", setting.path("other_ca.crt")), "UnknownIssuer"),
        ("&ssl_ca_file=/nowhere".to_string(), "/nowhere"),
        ("&ssl_key=x".to_string(), "there is no parameter ssl_key"),
    ] {
        let (is_fine, said) = run(&more, &console);
        assert!(!is_fine && said.contains(why), "{more}: {said}");
    }
    // Who speaks no TLS hears that soon, and so does who should not.
    let plain = setting.rig.server.address().to_string();
    let done = Command::new(lycosa_tests::binary())
        .args(["console", &format!("{plain}?transport=ssl"), "-e", "return 1"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(!done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}

#[test]
fn http_client_asks_for_the_certificate_of_the_host() {
    let mut setting = Setting::new();
    let arguments = "-subj /CN=localhost -CA ca.crt -CAkey ca.key -keyout web.key -out web.crt \
                     -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE";
    let arguments: Vec<_> = arguments.split(' ').collect();
    assert!(make_certificate(setting.files.path(), &arguments));
    let (certificate, key) = (setting.path("web.crt"), setting.path("web.key"));
    let (authority, other) = (setting.path("ca.crt"), setting.path("other_ca.crt"));
    // A server of sockets with TLS, made of what consoles are made of.
    let source = format!(
        "local internal = box.internal \
         local settings = internal.secure_of(true, nil, {{ transport = 'ssl', ssl_cert_file = '{certificate}', ssl_key_file = '{key}' }}) \
         web = require('socket').tcp_server('127.0.0.1', 0, function(client) \
             if not internal.secure_socket(client, settings, '', 5) then return end \
             client:read('\\r\\n\\r\\n', 5) \
             client:write('HTTP/1.1 200 OK\\r\\nContent-Length: 200000\\r\\n\\r\\n' .. ('w'):rep(200000)) end) \
         return web:name().port"
    );
    let port = setting.rig.number(&source);
    let mut asked = |host: &str, options: &str| {
        let source = format!(
            "local fine, r = pcall(require('http.client').get, 'https://{host}:{port}/', {{ timeout = 5, {options} }}) \
             return fine and r.status or 1, fine and tostring(r.body and #r.body) or tostring(r)"
        );
        setting.rig.answer(&source)
    };
    assert_eq!(asked("localhost", &format!("ca_file = '{authority}'")), (200, "200000".to_string()));
    assert_eq!(asked("127.0.0.1", &format!("ca_file = '{authority}'")).0, 495, "another name");
    assert_eq!(asked("127.0.0.1", &format!("ca_file = '{authority}', verify_host = false")).0, 200);
    assert_eq!(asked("localhost", &format!("ca_file = '{other}'")).0, 495);
    assert_eq!(asked("localhost", &format!("ca_file = '{other}', verify_peer = false")).0, 200);
    let (status, said) = asked("localhost", "ca_file = '/no/such'");
    assert!(status == 1 && said.contains("/no/such: No such file"), "{said}");
}

/// An address of another protocol with the server's certificate, listened at beside the first one.
fn listen_for(setting: &mut Setting, scheme: &str, more: &str) -> String {
    let (certificate, key) = (setting.path("server.crt"), setting.path("server.key"));
    let address = format!("{scheme}://127.0.0.1:0?transport=ssl&ssl_cert_file={certificate}&ssl_key_file={key}{more}");
    let before = setting.rig.server.log().matches(scheme_client(scheme)).count();
    let source = format!("box.cfg{{ listen = {{ '{}', '{address}' }} }} return 1", setting.rig.server.address());
    assert_eq!(setting.rig.number(&source), 1);
    let find = |log: &str| {
        let line = log.lines().filter(|line| line.contains(scheme_client(scheme))).nth(before)?;
        Some(line.split_once("ready: connect to ")?.1.split(' ').next()?.to_string())
    };
    let server = &setting.rig.server;
    assert!(
        server.wait(&mut setting.rig.client, Duration::from_secs(10), |server| find(&server.log()).is_some()),
        "{}",
        server.log()
    );
    find(&setting.rig.server.log()).unwrap()
}

fn scheme_client(scheme: &str) -> &'static str {
    if scheme == "mysql" { "with any client of MySQL" } else { "with any client of PostgreSQL" }
}

/// What a client of PostgreSQL says first.
fn startup() -> Vec<u8> {
    let body = b"\0\x03\0\0user\0ann\0\0";
    [&(body.len() as u32 + 4).to_be_bytes()[..], body].concat()
}

/// Everything that comes of a server up to the end.
fn all_of(address: &str, said: &[&[u8]]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    for bytes in said {
        let _ = stream.write_all(bytes);
    }
    let mut come = Vec::new();
    let ended = stream.read_to_end(&mut come);
    let is_late = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
    assert!(!ended.as_ref().is_err_and(is_late), "the connection hangs");
    come
}

const TLS_REQUEST: &[u8] = &[0, 0, 0, 8, 4, 210, 22, 47];
const GSS_REQUEST: &[u8] = &[0, 0, 0, 8, 4, 210, 22, 48];

#[test]
fn clients_of_postgresql_ask_for_tls_inside_of_their_protocol() {
    let mut setting = Setting::new();
    let address = listen_for(&mut setting, "postgres", "");
    for options in
        [&["-starttls", "postgres"][..], &[], &["-alpn", "postgresql"], &["-starttls", "postgres", "-tls1_2"]]
    {
        let mut tunnel = Tunnel::open(&address, options);
        tunnel.write(&startup());
        assert_eq!(tunnel.read(9), [b'R', 0, 0, 0, 8, 0, 0, 0, 0], "{options:?}");
    }
    // Who does not ask is told, and served where the listener says so.
    let refused = String::from_utf8_lossy(&all_of(&address, &[&startup()])).into_owned();
    assert!(refused.starts_with('E') && refused.contains("28000") && refused.contains("by TLS only"), "{refused}");
    let refused = String::from_utf8_lossy(&all_of(&address, &[GSS_REQUEST, &startup()])).into_owned();
    assert!(refused.starts_with("NE"), "{refused}");
    let optional = listen_for(&mut setting, "postgres", "&ssl=optional");
    let mut plain = TcpStream::connect(&optional).unwrap();
    plain.write_all(&startup()).unwrap();
    let mut head = [0; 9];
    plain.read_exact(&mut head).unwrap();
    assert_eq!(head, [b'R', 0, 0, 0, 8, 0, 0, 0, 0]);
    let mut tunnel = Tunnel::open(&optional, &["-starttls", "postgres"]);
    tunnel.write(&startup());
    assert_eq!(tunnel.read(1), b"R");
}

#[test]
fn what_came_in_clear_is_never_taken_for_what_came_by_tls() {
    let mut setting = Setting::new();
    for more in ["", "&ssl=optional"] {
        let address = listen_for(&mut setting, "postgres", more);
        // The answer to the request, perhaps an alert, and nothing of the protocol.
        let come = all_of(&address, &[&[TLS_REQUEST, &startup()].concat()]);
        assert!(come.starts_with(b"S") && !come[1..].contains(&b'R'), "{come:?}");
        let mut late = TcpStream::connect(&address).unwrap();
        late.write_all(&TLS_REQUEST[..5]).unwrap();
        late.write_all(&TLS_REQUEST[5..]).unwrap();
        let mut answer = [0];
        late.read_exact(&mut answer).unwrap();
        assert_eq!(answer, *b"S");
    }
    let address = listen_for(&mut setting, "mysql", "");
    let mut request = vec![32, 0, 0, 1];
    request.extend_from_slice(&(1u32 << 9 | 1 << 11 | 1 << 15 | 1 << 19).to_le_bytes());
    request.resize(36, 0);
    let mut login = vec![40, 0, 0, 2];
    login.extend_from_slice(&(1u32 << 9 | 1 << 15 | 1 << 19).to_le_bytes());
    login.resize(44, 0);
    let come = all_of(&address, &[&[request, login.clone()].concat()]);
    // The greeting, and at most an alert: no packet with the number that an answer would have.
    let length = 4 + usize::from(come[0]);
    assert!(come.len() < length + 16 && !come[length..].starts_with(&[7, 0, 0]), "{come:?}");
    login[3] = 1;
    let refused = all_of(&address, &[&login]);
    assert!(String::from_utf8_lossy(&refused).contains("insecure transport are prohibited"), "{refused:?}");
}

#[test]
fn clients_of_mysql_ask_for_tls_inside_of_their_protocol() {
    let mut setting = Setting::new();
    for more in ["", "&ssl=optional"] {
        let address = listen_for(&mut setting, "mysql", more);
        for version in ["-tls1_2", "-tls1_3"] {
            let mut tunnel = Tunnel::open(&address, &["-starttls", "mysql", version]);
            let mut login = (1u32 | 1 << 9 | 1 << 11 | 1 << 15 | 1 << 19).to_le_bytes().to_vec();
            login.extend_from_slice(&[0, 0, 0, 1, 255]);
            login.resize(32, 0);
            login.extend_from_slice(b"root\0\0mysql_native_password\0");
            tunnel.write(&[&[login.len() as u8, 0, 0, 2][..], &login].concat());
            let answer = tunnel.read(5);
            assert_eq!((&answer[1..3], answer[3], answer[4]), (&[0, 0][..], 3, 0), "{version}: {answer:?}");
        }
    }
}

#[test]
fn a_parameter_for_tls_inside_of_a_protocol_is_looked_at() {
    let mut setting = Setting::new();
    let files = format!("ssl_cert_file={}&ssl_key_file={}", setting.path("server.crt"), setting.path("server.key"));
    for (address, words) in [
        (format!("postgres://127.0.0.1:0?transport=ssl&{files}&ssl=perhaps"), "neither required nor optional"),
        ("mysql://127.0.0.1:0?ssl=optional".to_string(), "without transport=ssl"),
        (
            format!("mysql://127.0.0.1:0?transport=ssl&{files}&ssl_ca_file={}&ssl=optional", setting.path("ca.crt")),
            "leave one of them out",
        ),
        (format!("redis://127.0.0.1:0?transport=ssl&{files}&ssl=optional"), "no parameter 'ssl'"),
    ] {
        let said = setting.said(&format!("box.cfg{{ listen = '{address}' }}"));
        assert!(said.contains(words), "{address}: {said}");
    }
}

#[test]
fn clients_that_say_nothing_give_way_to_those_that_come() {
    let mut setting = Setting::new();
    let address = listen_for(&mut setting, "mysql", "&ssl=optional");
    let silent: Vec<TcpStream> = (0..1100).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let mut first = &silent[0];
    first.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut come = Vec::new();
    let _ = first.read_to_end(&mut come);
    assert!(!come.is_empty(), "it was greeted, and has ended");
    let mut tunnel = Tunnel::open(&address, &["-starttls", "mysql"]);
    tunnel.write(&[0, 0, 0, 2]);
    assert!(!tunnel.read(4).is_empty());
}
