//! Clients that do harm by what they do rather than by what they say: who never reads, vanishes, sends too much at once, opens too many connections.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::seeded::{Seeded, array, numbers, others_are_served, seed, seeded};
use lycosa_tests::{Client, Server, packet, request};
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use wire::key::{KEY, LIMIT, SPACE_ID, TUPLE};
use wire::request_type::{PING, REPLACE, SELECT};

const MIB: usize = 1 << 20;

/// Writes `bytes` again and again until the server has stopped reading. Returns how many bytes it took, or that it never stopped.
fn flood(client: &Client, bytes: &[u8], total_max: usize) -> Option<usize> {
    let mut stream = client.stream();
    stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let mut total = 0;
    while total < total_max {
        let at = total % bytes.len();
        match stream.write(&bytes[at..]) {
            Ok(count) => total += count,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Some(total),
            Err(error) => panic!("the connection broke after {total} bytes: {error}"),
        }
    }
    None
}

#[test]
fn a_client_that_never_reads_is_not_read_from_and_gets_its_answers_later() {
    let mut seeded = seeded();
    let mut client = seeded.server.connect();
    let request = packet(PING, 1, &[]);
    let many = request.repeat(64 << 10);
    let total = flood(&client, &many, 512 * MIB).expect("the server stops reading");
    seeded.others_are_served();
    let memory = seeded.server.memory();
    assert!(memory < 400 * MIB as u64, "{} MiB for one client that does not read", memory / MIB as u64);
    // The rest of the packet that was cut, and everything is answered.
    client.stream().set_write_timeout(None).unwrap();
    let expected = total.div_ceil(request.len());
    let mut rest = client.stream().try_clone().unwrap();
    let tail = request[total % request.len()..].to_vec();
    let is_cut = !total.is_multiple_of(request.len());
    let sender = std::thread::spawn(move || if is_cut { rest.write_all(&tail) } else { Ok(()) });
    let mut stream = std::io::BufReader::new(client.stream().try_clone().unwrap());
    let mut answer = [0; 29];
    for at in 0..expected {
        stream.read_exact(&mut answer).unwrap_or_else(|error| panic!("answer {at} of {expected}: {error}"));
        assert_eq!(answer[..5], [0xce, 0, 0, 0, 24], "answer {at}");
    }
    sender.join().unwrap().unwrap();
    client.ping();
    seeded.others_are_served();
}

#[test]
fn clients_that_vanish_leave_nothing_behind() {
    let mut seeded = seeded();
    let before = seeded.server.sockets();
    let ping = packet(PING, 1, &[]);
    for round in 0..300 {
        let mut client = seeded.server.connect();
        match round % 3 {
            0 => {}
            1 => client.send(&ping[..round % ping.len()]),
            // Answers that nobody reads: the connection is reset.
            _ => client.send(&ping.repeat(100)),
        }
    }
    let Seeded { server, witness, .. } = &mut seeded;
    let is_back = server.wait(witness, Duration::from_secs(20), |server| server.sockets() <= before);
    assert!(is_back, "{} sockets, {before} before", server.sockets());
    seeded.others_are_served();
}

#[test]
fn a_client_that_vanishes_without_having_read_leaves_nothing_behind() {
    let Seeded { server, mut witness, .. } = seeded();
    let before = server.sockets();
    let client = server.connect();
    flood(&client, &packet(PING, 1, &[]).repeat(64 << 10), 512 * MIB).expect("the server stops reading");
    drop(client);
    let is_back = server.wait(&mut witness, Duration::from_secs(20), |server| server.sockets() <= before);
    assert!(is_back, "{} sockets, {before} before", server.sockets());
    others_are_served(&server, &mut witness);
}

#[test]
fn a_client_that_says_it_is_done_is_answered_and_let_go() {
    let mut seeded = seeded();
    let ping = packet(PING, 1, &[]);
    for round in 0..100 {
        let mut client = seeded.server.connect();
        // Whole requests, or the beginning of one, and the end of the stream right behind.
        let cut = if round % 2 == 0 { ping.len() } else { 1 + round % (ping.len() - 1) };
        client.send(&ping[..cut]);
        client.finish();
        if cut == ping.len() {
            assert_eq!(client.receive().sync, 1);
        }
        assert!(client.is_closed(), "round {round}: {cut} of {} bytes and the end", ping.len());
    }
    seeded.others_are_served();
}

#[test]
fn answers_to_pipelined_selects_that_nobody_reads_are_bounded() {
    let mut seeded = seeded();
    let mut client = seeded.server.connect();
    let id = numbers();
    for row in 0..1000 {
        let row = array(&[row.into(), 1.into(), "x".repeat(1000).as_str().into()]);
        assert_eq!(client.call(REPLACE, &request(&[(SPACE_ID, &id), (TUPLE, &row)])).error, None);
    }
    let all = packet(SELECT, 1, &request(&[(SPACE_ID, &id), (KEY, &[0x90]), (LIMIT, &[0xcd, 0xff, 0xff])]));
    let before = seeded.server.memory();
    // 400 answers of 1 MiB in one piece of input.
    client.send(&all.repeat(400));
    seeded.others_are_served();
    let grown = seeded.server.memory().saturating_sub(before);
    assert!(grown < 100 * MIB as u64, "answers that nobody reads take {} MiB", grown / MIB as u64);
    for _ in 0..400 {
        assert_eq!(client.receive().error, None);
    }
}

#[test]
fn a_huge_packet_stalls_nobody() {
    let mut seeded = seeded();
    let client = seeded.server.connect();
    let mut stream = client.stream().try_clone().unwrap();
    let size = 200 * MIB;
    let upload = std::thread::spawn(move || {
        stream.write_all(&[&[0xce][..], &(size as u32).to_be_bytes()].concat()).unwrap();
        let piece = vec![0xc0; MIB];
        (0..size / MIB).for_each(|_| stream.write_all(&piece).unwrap());
    });
    let begun = Instant::now();
    let mut worst = Duration::ZERO;
    while !upload.is_finished() {
        let asked = Instant::now();
        seeded.witness.ping();
        worst = worst.max(asked.elapsed());
    }
    upload.join().unwrap();
    println!("{size} bytes in {:?}; others waited at most {worst:?}", begun.elapsed());
    // Wide bounds, for machines that are busy: copying the packet anew with every piece took far longer than either.
    assert!(worst < Duration::from_secs(2), "others waited {worst:?}");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?} for {} MiB", begun.elapsed(), size / MIB);
}

/// The most descriptors this process may have.
fn descriptors_max() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap_or(usize::MAX)
}

#[test]
fn ten_thousand_idle_connections_cost_the_others_nothing() {
    runtime::signals::raise_open_files_limit();
    let mut seeded = seeded();
    let count = 10_000.min(descriptors_max().saturating_sub(300));
    assert!(count >= 500, "the limit of open files is too low for this test: {}", descriptors_max());
    println!("{count} connections");
    let before = seeded.server.memory();
    let mut idle: Vec<Client> = (0..count).map(|_| seeded.server.connect()).collect();
    seeded.others_are_served();
    let each = seeded.server.memory().saturating_sub(before) / count as u64;
    assert!(each < 16 << 10, "an idle connection costs {each} bytes");
    for client in idle.iter_mut().step_by(97) {
        client.ping();
    }
    // Each begins a packet and never ends it.
    for client in &mut idle {
        client.send(&[0xce, 0, 0, 0, 100, 0x82]);
    }
    seeded.others_are_served();
    drop(idle);
    seeded.others_are_served();
}

#[test]
fn a_request_that_ran_too_long_does_not_harm_the_next() {
    let dir = TempDir::new().unwrap();
    seed(dir.path());
    let server = Server::start_in(dir.path(), &["--lua-slice-max", "0.2"]);
    let mut client = server.connect();
    let endless = ["while true do end", "return setmetatable({}, {__serialize = function() while true do end end})"];
    for text in endless {
        let reply = client.eval(text);
        assert!(reply.error.as_ref().is_some_and(|(_, text)| text.contains("slice is exceeded")), "{reply:?}");
        assert_eq!(client.eval("return 1").error, None, "behind {text}");
    }
}
