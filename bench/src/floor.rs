//! What the machine allows: a server that is no database, under the same clients.
//!
//! It receives, overwrites one page of a file durably for all requests that have come meanwhile (or does not), and answers each with the same
//! few bytes. What sixteen clients with one request in flight get from it is what the kernel and the disk leave to any server that answers after
//! it has synced; what a connection costs it is what the kernel takes.

use crate::server::free_port;
use crate::{connect, crowd};
use clap::Args;
use load::process;
use runtime::net::{Address, Listener, Poll, Stream, Token};
use runtime::{AlignedBuffer, File, FileSystem, Notifier, OpenMode, PAGE_BYTES, SystemFiles, WriteRing};
use serde_json::json;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Pages of the file, overwritten in a circle.
const PAGES: u64 = 16 << 10;
const LISTENER: Token = Token(0);
const WRITTEN: Token = Token(1);
const FIRST_CLIENT: usize = 2;
const CLIENTS: usize = 16;
/// Requests of an interactive transfer, as the section `transfers` makes them. What all that want one account do is done one after the other.
const TRANSFER_REQUESTS: f64 = 6.0;
/// Key and place of the request's number in its header: `ce <length> 82 00 <type> 01 cf <number>`.
const NUMBER: std::ops::Range<usize> = 10..18;

/// What the server is to do; the process that measures starts it.
#[derive(Args)]
pub(crate) struct ServerOptions {
    /// Port of 127.0.0.1
    #[arg(long)]
    port: u16,
    /// Synced writes in flight; 0 answers at once
    #[arg(long, default_value_t = 2)]
    writes: usize,
    /// The file that is overwritten
    #[arg(long)]
    file: PathBuf,
}

/// A request that is not answered.
struct Waiting {
    client: usize,
    /// As the client sent it.
    number: [u8; 8],
}

/// One client: what has come of a packet that is not whole.
struct Client {
    stream: Stream,
    input: Vec<u8>,
}

/// Serves until it is killed.
pub(crate) fn serve(options: &ServerOptions) -> io::Result<()> {
    let (mut poll, notifier) = (Poll::new()?, Notifier::new()?);
    let registry = poll.registry()?;
    let mut listener = Listener::bind(&Address::Tcp(([127, 0, 0, 1], options.port).into()))?;
    registry.register_listener(&mut listener, LISTENER)?;
    registry.register_notifier(&notifier, WRITTEN)?;
    let mode = OpenMode { direct: true, synced: true, ..OpenMode::MODIFY };
    let file: Arc<dyn File> = SystemFiles.open(&options.file, mode)?;
    let mut ring = WriteRing::new(64, &notifier)?;
    let mut clients: Vec<Option<Client>> = Vec::new();
    let (mut open, mut in_flight): (Vec<Waiting>, Vec<(u64, Vec<Waiting>)>) = Default::default();
    let (mut next, mut events, mut bytes) = (0u64, Vec::new(), vec![0; 1 << 16]);
    loop {
        poll.poll(Duration::from_secs(1), &mut events)?;
        for event in events.drain(..) {
            match event.token {
                LISTENER => {
                    while let Ok((mut stream, _)) = listener.accept() {
                        stream.set_nodelay(true)?;
                        (&stream).write_all(&greeting())?;
                        registry.register_stream(&mut stream, Token(FIRST_CLIENT + clients.len()))?;
                        clients.push(Some(Client { stream, input: Vec::new() }));
                    }
                }
                WRITTEN => notifier.clear(),
                Token(token) => {
                    let at = token - FIRST_CLIENT;
                    if !receive(&mut clients[at], at, &mut bytes, &mut open) {
                        clients[at] = None;
                    }
                }
            }
        }
        let mut finished = Vec::new();
        ring.complete(|number, result, _| finished.push((number, result)));
        for (number, result) in finished {
            result?;
            if let Some(at) = in_flight.iter().position(|(other, _)| *other == number) {
                answer(&clients, &in_flight.swap_remove(at).1);
            }
        }
        if options.writes == 0 {
            answer(&clients, &open);
            open.clear();
        } else if !open.is_empty() && in_flight.len() < options.writes {
            let mut page = AlignedBuffer::default();
            page.resize(1);
            in_flight.push((next, std::mem::take(&mut open)));
            let offset = next % PAGES * PAGE_BYTES as u64;
            ring.submit(next, &file, offset, page, false).map_err(|_| io::Error::other("the ring is full"))?;
            next += 1;
        }
    }
}

fn greeting() -> [u8; 128] {
    let mut text = [b' '; 128];
    let first = b"Tarantool 2.11.0 (Binary) 00000000-0000-4000-8000-000000000000";
    text[..first.len()].copy_from_slice(first);
    text[63] = b'\n';
    text[64..107].fill(b'A');
    text[107] = b'=';
    text[127] = b'\n';
    text
}

/// Reads what a client has sent. False when it is gone.
fn receive(client: &mut Option<Client>, at: usize, bytes: &mut [u8], open: &mut Vec<Waiting>) -> bool {
    let Some(client) = client else { return true };
    loop {
        match (&client.stream).read(bytes) {
            Ok(0) => return false,
            Ok(got) => client.input.extend_from_slice(&bytes[..got]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(_) => return false,
        }
    }
    let mut taken = 0;
    while let Some(head) = client.input.get(taken..taken + 5) {
        let length = 5 + u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let Some(packet) = client.input.get(taken..taken + length) else { break };
        let mut number = [0; 8];
        match packet.get(NUMBER.start - 1) {
            Some(0xcf) => number.copy_from_slice(packet.get(NUMBER).unwrap_or(&[0; 8])),
            // A small one is written in one byte.
            Some(small) => number[7] = *small,
            None => {}
        }
        open.push(Waiting { client: at, number });
        taken += length;
    }
    client.input.drain(..taken);
    true
}

/// `ce <length> 83 00 00 01 cf <number> 05 01 81 30 91 c3`: yes.
fn answer(clients: &[Option<Client>], waiting: &[Waiting]) {
    for one in waiting {
        let mut packet = vec![0xce, 0, 0, 0, 18, 0x83, 0x00, 0x00, 0x01, 0xcf];
        packet.extend_from_slice(&one.number);
        packet.extend_from_slice(&[0x05, 0x01, 0x81, 0x30, 0x91]);
        packet[4] = (packet.len() - 4) as u8;
        packet.push(0xc3);
        if let Some(client) = &clients[one.client] {
            // Who is gone wants no answer.
            let _ = (&client.stream).write_all(&packet);
        }
    }
}

/// The server as a process of its own, whose processor time can be told from the clients'.
struct Running {
    child: Child,
    address: String,
}

impl Running {
    fn start(file: &Path, writes: usize) -> io::Result<Running> {
        let port = free_port()?;
        let address = format!("127.0.0.1:{port}");
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["floor-server", "--port", &port.to_string(), "--writes", &writes.to_string(), "--file"]);
        let running = Running { child: command.arg(file).spawn()?, address };
        let begun = Instant::now();
        while std::net::TcpStream::connect(&running.address).is_err() {
            if begun.elapsed() > Duration::from_secs(10) {
                return Err(io::Error::other("the server does not start"));
            }
            std::thread::yield_now();
        }
        Ok(running)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run_client(address: &str, until: Instant) -> io::Result<u64> {
    let stream = std::net::TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    ask_over_and_over(stream, until)
}

/// Asks and waits until then. Returns how often.
fn ask_over_and_over(mut stream: impl Read + Write, until: Instant) -> io::Result<u64> {
    let mut bytes = [0; 128];
    stream.read_exact(&mut bytes)?;
    // A call of a procedure with five numbers, as the inventory's clients send.
    let mut packet = vec![0xce, 0, 0, 0, 0, 0x82, 0x00, 0x0a, 0x01, 0xcf, 0, 0, 0, 0, 0, 0, 0, 1, 0x82, 0x22, 0xb1];
    packet.extend_from_slice(b"inventory.release");
    packet.extend_from_slice(&[0x21, 0x95, 0xcd, 0x03, 0x20, 1, 2, 3, 1]);
    packet[4] = (packet.len() - 5) as u8;
    let mut count = 0;
    while Instant::now() < until {
        stream.write_all(&packet)?;
        let mut got = 0;
        while got < 24 {
            match stream.read(&mut bytes[got..])? {
                0 => return Err(io::Error::other("the server has gone away")),
                more => got += more,
            }
        }
        count += 1;
    }
    Ok(count)
}

/// Measures for `time` each: requests a second and processor time by writes in flight, then transfers as clients of the section `transfers` make them,
/// then what a connection costs.
pub(crate) fn run(dir: Option<&Path>, time: Duration, is_json: bool) -> Result<serde_json::Value, String> {
    let failed = |error: io::Error| error.to_string();
    let place = match dir {
        Some(dir) => tempfile::tempdir_in(dir),
        None => tempfile::tempdir(),
    };
    let place = place.map_err(failed)?;
    let file = place.path().join("pages");
    let full = std::fs::File::create(&file).map_err(failed)?;
    (0..PAGES).try_for_each(|_| (&full).write_all(&[0; PAGE_BYTES])).map_err(failed)?;
    full.sync_all().map_err(failed)?;
    let mut rows = Vec::new();
    for writes in [0, 1, 2, 3, 8] {
        let server = Running::start(&file, writes).map_err(failed)?;
        let before = process::cpu_seconds(server.child.id())?;
        let until = Instant::now() + time;
        let counts: Vec<io::Result<u64>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| run_client(&server.address, until))).collect();
            threads.into_iter().map(|thread| thread.join().expect("a client does not panic")).collect()
        });
        let count = counts.into_iter().sum::<io::Result<u64>>().map_err(failed)?;
        let server_us = (process::cpu_seconds(server.child.id())? - before) * 1e6 / count.max(1) as f64;
        let per_second = count as f64 / time.as_secs_f64();
        if !is_json {
            let what = match writes {
                0 => "answered at once".to_string(),
                1 => "1 synced write in flight".to_string(),
                more => format!("{more} synced writes in flight"),
            };
            println!(
                "{CLIENTS} clients, {what:<26} {per_second:>8.0} requests/s, {server_us:>5.1} us of processor time each"
            );
        }
        rows.push(json!({ "writes_in_flight": writes, "per_second": per_second, "server_cpu_us": server_us }));
    }
    let mut transfers = Vec::new();
    for clients in [CLIENTS as u64, 1] {
        let server = Running::start(&file, 0).map_err(failed)?;
        let address = server.address.clone();
        let (counts, seconds) = crowd::run(clients, move |_| {
            let stream = crowd::dial(&address).map_err(|error| error.to_string())?;
            let work = move || ask_over_and_over(stream, Instant::now() + time).map_err(|error| error.to_string());
            Ok(Box::new(work) as crowd::Work<u64>)
        })?;
        let per_second = counts.iter().sum::<u64>() as f64 / TRANSFER_REQUESTS / seconds;
        if !is_json {
            let who = if clients == 1 {
                "one after the other".to_string()
            } else {
                format!("{clients} clients in one thread")
            };
            println!("transfers of {TRANSFER_REQUESTS} requests, {who:<21} {per_second:>8.0} a second");
        }
        transfers.push(json!({ "clients": clients, "per_second": per_second }));
    }
    let server = Running::start(&file, 0).map_err(failed)?;
    let settings = connect::Settings {
        address: server.address.clone(),
        user: "bench".to_string(),
        password: "bench".to_string(),
        clients: CLIENTS,
        time,
        pid: Some(server.child.id()),
    };
    let outcome = connect::run(&settings, is_json)?;
    let connect_us = outcome.server_us.unwrap_or_default();
    if !is_json {
        println!(
            "{CLIENTS} clients that connect, ask and go       {:>8.0} a second,   {connect_us:>5.1} us of processor time each",
            outcome.per_second()
        );
    }
    Ok(
        json!({ "requests": rows, "transfers": transfers, "connect": { "per_second": outcome.per_second(), "server_cpu_us": connect_us } }),
    )
}
