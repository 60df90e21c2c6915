//! memcached's datagrams through the real binary, and who needs no login: right ones, cut ones, wrong ones, and those of somebody else.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::Rig;
use runtime::{Randomness, SeededRandomness};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

/// A user with a password, without whom no address is open to other machines.
const SCRIPT: &str = "box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true }) \
    box.schema.user.create('web', { password = 'secret', if_not_exists = true }) \
    box.schema.user.grant('web', 'read,write', 'universe', nil, { if_not_exists = true })";
const PATIENCE: Duration = Duration::from_secs(20);

/// Addresses of memcached's clients in the log: of TCP, and of datagrams.
fn addresses(rig: &mut Rig) -> (SocketAddr, SocketAddr) {
    let find = |log: &str| {
        let lines = log.lines().filter(|line| line.contains("with any memcached client"));
        let mut texts: Vec<&str> =
            lines.filter_map(|line| line.split("connect to ").nth(1)?.split(' ').next()).collect();
        let at = texts.iter().position(|text| text.starts_with("udp:"))?;
        let udp = texts.remove(at).strip_prefix("udp:")?;
        Some((texts.first()?.parse().unwrap(), udp.parse().unwrap()))
    };
    assert!(rig.server.wait(&mut rig.client, PATIENCE, |server| find(&server.log()).is_some()), "{}", rig.server.log());
    find(&rig.server.log()).unwrap()
}

/// A server that listens at a host for both.
fn start(host: &str, terms: &str) -> (Rig, SocketAddr, Udp) {
    let uri = |more: &str| format!("memcached://{host}:0?{}", [terms, more].join("&"));
    let mut rig = Rig::start(SCRIPT, &["--listen", &uri(""), "--listen", &uri("transport=udp")]);
    let (tcp, udp) = addresses(&mut rig);
    let near = |address: SocketAddr| SocketAddr::from(([127, 0, 0, 1], address.port()));
    (rig, near(tcp), Udp::to(near(udp)))
}

/// A client of datagrams.
struct Udp(UdpSocket);

impl Udp {
    fn to(address: SocketAddr) -> Self {
        Self::from(IpAddr::from([127, 0, 0, 1]), address)
    }

    fn from(own: IpAddr, address: SocketAddr) -> Self {
        let socket = UdpSocket::bind((own, 0)).unwrap();
        socket.connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Udp(socket)
    }

    fn send(&self, number: u16, request: &[u8]) {
        let head = [number, 0, 1, 0].map(u16::to_be_bytes).concat();
        self.0.send(&[&head, request].concat()).unwrap();
    }

    /// The next answer: its number, and its bytes.
    fn receive(&self) -> (u16, Vec<u8>) {
        let (mut answer, mut count) = (Vec::new(), 0);
        loop {
            let mut datagram = [0; 2000];
            let length = self.0.recv(&mut datagram).unwrap();
            let head: Vec<u16> =
                datagram[..8].chunks(2).map(|bytes| u16::from_be_bytes(bytes.try_into().unwrap())).collect();
            assert_eq!((head[1], head[3]), (count, 0), "in their order");
            assert!(length <= 1400);
            answer.extend_from_slice(&datagram[8..length]);
            count += 1;
            if count == head[2] {
                return (head[0], answer);
            }
        }
    }

    fn ask(&self, number: u16, request: impl AsRef<[u8]>) -> String {
        self.send(number, request.as_ref());
        let (answered, answer) = self.receive();
        assert_eq!(answered, number);
        String::from_utf8_lossy(&answer).into_owned()
    }
}

/// Says lines by TCP, and what is answered up to the end.
fn say(address: SocketAddr, lines: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(format!("{lines}quit\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    match stream.read_to_string(&mut answer) {
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        result => _ = result.unwrap(),
    }
    answer
}

#[test]
fn datagrams_are_requests_like_others() {
    let (mut rig, tcp, udp) = start("127.0.0.1", "item_size_max=8m");
    assert_eq!(say(tcp, "set foo 0 0 6\r\nfooval\r\n"), "STORED\r\n");
    for number in [1, 1, 2, u16::MAX] {
        assert_eq!(udp.ask(number, "get foo\r\n"), "VALUE foo 0 6\r\nfooval\r\nEND\r\n");
    }
    for (said, answer) in [
        ("set n 0 0 1\r\n1\r\n", "STORED\r\n"),
        ("incr n 9\r\n", "10\r\n"),
        ("get none\r\n", "END\r\n"),
        ("delete n\r\n", "DELETED\r\n"),
        ("mg foo v\r\n", "VA 6\r\nfooval\r\n"),
        ("nonsense\r\n", "ERROR\r\n"),
        ("set a 0 0 1\r\nx\r\nget a\r\n", "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n"),
        ("get foo\nget a\nquit\nget a\n", "VALUE foo 0 6\r\nfooval\r\nEND\r\nVALUE a 0 1\r\nx\r\nEND\r\n"),
        ("watch evictions\r\n", "OK\r\n"),
    ] {
        assert_eq!(udp.ask(7, said), answer, "{said}");
    }
    // Of two requests that say nothing and one that does, one is answered.
    udp.send(8, b"set quiet 0 0 1 noreply\r\nx\r\n");
    udp.send(9, b"set quiet 0 0 1\r\ny\r\n");
    assert_eq!(udp.receive(), (9, b"STORED\r\n".to_vec()));
    // A long value is several datagrams.
    let value: String = (0..100_000).map(|at| char::from(b'a' + (at % 26) as u8)).collect();
    assert_eq!(say(tcp, &format!("set long 0 0 100000\r\n{value}\r\n")), "STORED\r\n");
    assert_eq!(udp.ask(3, "get long\r\n"), format!("VALUE long 0 100000\r\n{value}\r\nEND\r\n"));
    // The binary protocol: GETK of foo.
    let mut packet = vec![0x80, 0x0c, 0, 3, 0, 0, 0, 0, 0, 0, 0, 3];
    packet.extend_from_slice(&[0; 12]);
    packet.extend_from_slice(b"foo");
    udp.send(4, &packet);
    let (number, answer) = udp.receive();
    assert_eq!((number, answer[0], &answer[24..]), (4, 0x81, &b"\0\0\0\0foofooval"[..]));
    // They are no connections, and whoever looks finds where they come in.
    let stats = say(tcp, "stats\r\nstats conns\r\nstats settings\r\n");
    assert!(
        stats.contains("STAT total_connections 4\r\n") || stats.contains("STAT total_connections 5\r\n"),
        "{stats}"
    );
    assert!(stats.contains(":addr udp:127.0.0.1:0\r\n") && stats.contains("STAT udpport 0\r\n"), "{stats}");
    assert_eq!(rig.number("return box.space.memcached:count()"), 4);
}

#[test]
fn what_is_no_request_is_passed_over() {
    let (rig, tcp, udp) = start("127.0.0.1", "item_size_max=3m");
    let before = rig.server.memory();
    let set = b"set a 0 0 1\r\nx\r\n";
    for length in 0..8 {
        udp.0.send(&[0, 1, 0, 0, 0, 1, 0, 0][..length]).unwrap();
    }
    for head in [
        [0, 1, 0, 0, 0, 1, 0, 0],
        [0, 1, 0, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 2, 0, 0],
        [0, 1, 0, 1, 1, 1, 0, 0],
        [255; 8],
    ] {
        let is_whole = head[4..6] == [0, 1];
        udp.0.send(&[&head[..], if is_whole { &b""[..] } else { &set[..] }].concat()).unwrap();
    }
    // Requests without their ends, of both protocols; lines and values that are too long.
    for part in ["get a", "set a 0 0 5\r\nabc", "set a 0 0 2000000000\r\nabc", "\u{0}", "set a 0 0 -1", " "] {
        udp.send(2, part.as_bytes());
    }
    let packet = |body: u32| [&[0x80, 1, 0, 1, 8, 0, 0, 0][..], &body.to_be_bytes(), &[0; 12], &[0; 9]].concat();
    for body in [10, 1 << 20, u32::MAX] {
        udp.send(3, &packet(body));
    }
    udp.send(4, &[0x80]);
    udp.send(5, &vec![b'x'; 65_507 - 8]);
    // Any bytes.
    let random = SeededRandomness::new(7);
    for _ in 0..3000 {
        let length = random.next_u64() as usize % 60;
        let bytes: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
        udp.0.send(&bytes).unwrap();
    }
    // An answer that would be much too long is not sent: a thousand times half a megabyte.
    let value = "v".repeat(1 << 19);
    assert_eq!(say(tcp, &format!("set long 0 0 {}\r\n{value}\r\n", value.len())), "STORED\r\n");
    udp.send(6, format!("get{}\r\n", " long".repeat(1000)).as_bytes());
    // Behind all this, and after the answers to what was understood, one is served.
    let other = Udp::to(udp.0.peer_addr().unwrap());
    assert_eq!(other.ask(9, "get a\r\n"), "END\r\n", "nothing was set");
    assert_eq!(say(tcp, "get a\r\n"), "END\r\n");
    assert!(rig.server.memory() < before + (96 << 20), "what is passed over is not kept");
    // More at once than are served: some are dropped, and it goes on.
    for _ in 0..5000 {
        other.send(1, b"get a\r\n");
    }
    let last = Udp::to(udp.0.peer_addr().unwrap());
    let answered = (0..100).any(|_| {
        last.0.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        last.send(2, b"get a\r\n");
        last.0.recv(&mut [0; 2000]).is_ok()
    });
    assert!(answered);
}

#[test]
fn datagrams_are_for_addresses_without_logins() {
    let mut rig = Rig::start(SCRIPT, &[]);
    for (uri, words) in [
        ("memcached://0.0.0.0:0?transport=udp", "no logins"),
        ("memcached://127.0.0.1:0?transport=udp&auth=required", "no logins"),
        ("memcached://0.0.0.0:0?transport=udp&local_login=perhaps", "neither yes nor no"),
        ("memcached://unix/:/nowhere/a?transport=udp", "a host and a port"),
        ("memcached://127.0.0.1:0?transport=pigeon", "neither plain nor ssl"),
        ("redis://127.0.0.1:0?transport=udp", "no datagrams"),
        ("redis://127.0.0.1:0?local_login=no", "no parameter 'local_login'"),
        ("127.0.0.1:0?transport=udp", "no datagrams"),
    ] {
        let reply = rig.eval(&format!("box.cfg{{listen = {{'{uri}'}}}}"));
        let text = reply.error.map(|(_, text)| text).unwrap_or_default();
        assert!(text.contains(words), "{uri}: {text}");
    }
}

/// An address of this machine that others may have a way to.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // Nothing is sent: it is looked which way it would go.
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|own| !own.is_loopback() && !own.is_unspecified())
}

#[test]
fn who_comes_from_this_machine_needs_no_login_if_the_listener_says_so() {
    let (mut rig, tcp, udp) = start("0.0.0.0", "local_login=no");
    assert_eq!(say(tcp, "set a 0 0 1\r\nx\r\nget a\r\n"), "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n");
    assert_eq!(udp.ask(1, "get a\r\n"), "VALUE a 0 1\r\nx\r\nEND\r\n");
    let Some(own) = own_address() else { return println!("SKIPPED: there is no way to other machines") };
    // The same machine by another address is somebody else.
    let far = SocketAddr::new(own, tcp.port());
    assert_eq!(say(far, "get a\r\n"), "CLIENT_ERROR unauthenticated\r\n");
    let login = "set x 0 0 10\r\nweb secret\r\nget a\r\n";
    assert_eq!(say(far, login), "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n");
    let stranger = Udp::from(own, SocketAddr::new(own, udp.0.peer_addr().unwrap().port()));
    stranger.send(1, b"set a 0 0 1\r\ny\r\n");
    stranger.0.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    assert!(stranger.0.recv(&mut [0; 2000]).is_err(), "nobody is answered who is not of this machine");
    assert_eq!(udp.ask(2, "get a\r\n"), "VALUE a 0 1\r\nx\r\nEND\r\n");
    // Without the word all have to.
    let (_, tcp) = (
        rig.restart(&["--listen", "memcached://0.0.0.0:0", "--listen", "memcached://127.0.0.1:0?transport=udp"]),
        addresses(&mut rig).0,
    );
    assert_eq!(say(SocketAddr::from(([127, 0, 0, 1], tcp.port())), "get a\r\n"), "CLIENT_ERROR unauthenticated\r\n");
}
