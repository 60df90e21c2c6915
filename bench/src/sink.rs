//! How fast the client is: the same load on a thread that answers at once and keeps nothing, so that nobody measures the client for the server.

use crate::server::free_port;
use load::{ClientError, Door, Drive, End, Flow, FlowOutcome, Keys, Pace, Row, Share, Template, drive};
use serde_json::json;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// What is asked of a socket at a time.
const READ_BYTES: usize = 1 << 18;
const CONNECTIONS: usize = 4;
const DEPTH: u32 = 256;
const VALUE_BYTES: usize = 100;

/// A kind of request and the answer to it.
struct Exchange {
    name: &'static str,
    door: Door,
    template: Template,
    /// The answer, the same each time but for what is copied from the request.
    answer: Vec<u8>,
    /// What is copied: from where in the request, to where in the answer, how many bytes.
    copies: Vec<(usize, usize, usize)>,
}

/// The usual answer to a request for a row: `83 00 ce <0> 01 cf <sync> 05 ce <schema> 81 30 dd <1> 92 ce <key> d9 64 <text>`.
fn row_answer() -> Vec<u8> {
    let mut packet = vec![0x83, 0x00, 0xce, 0, 0, 0, 0, 0x01, 0xcf, 0, 0, 0, 0, 0, 0, 0, 0, 0x05, 0xce, 0, 0, 0, 80];
    packet.extend_from_slice(&[0x81, 0x30, 0xdd, 0, 0, 0, 1, 0x92, 0xce, 0, 0, 0, 0, 0xd9, VALUE_BYTES as u8]);
    packet.extend_from_slice(&[b'x'; VALUE_BYTES]);
    let mut answer = vec![0xce];
    answer.extend_from_slice(&(packet.len() as u32).to_be_bytes());
    answer.extend_from_slice(&packet);
    answer
}

fn exchanges() -> Vec<Exchange> {
    let (select, replace) = (Template::select(512), Template::replace(512, Row::text(VALUE_BYTES)));
    // The sync stands in the last four of its eight bytes; the key behind the head of the row, in the requests at its end or before the string.
    let (sync, key) = ((10, 18, 4), 37);
    let get_answer = format!("$100\r\nk0000000000{}\r\n", "x".repeat(VALUE_BYTES - 11)).into_bytes();
    let key_at = |template: &Template| template.len() - 4;
    vec![
        Exchange {
            name: "iproto, select",
            door: Door::Iproto,
            copies: vec![sync, (key_at(&select), key, 4)],
            template: select,
            answer: row_answer(),
        },
        Exchange {
            name: "iproto, replace",
            door: Door::Iproto,
            copies: vec![sync, (replace.len() - VALUE_BYTES - 6, key, 4)],
            template: replace,
            answer: row_answer(),
        },
        Exchange {
            name: "redis, set",
            door: Door::Resp,
            template: Template::set(Door::Resp, VALUE_BYTES),
            answer: b"+OK\r\n".to_vec(),
            copies: Vec::new(),
        },
        Exchange {
            name: "redis, get",
            door: Door::Resp,
            template: Template::get(Door::Resp),
            copies: vec![(Template::get(Door::Resp).len() - 12, 7, 10)],
            answer: get_answer,
        },
        Exchange {
            name: "memcached, set",
            door: Door::Memcached,
            template: Template::set(Door::Memcached, VALUE_BYTES),
            answer: b"STORED\r\n".to_vec(),
            copies: Vec::new(),
        },
    ]
}

/// Answers whatever has arrived on all connections, one after the other, until all are closed.
fn serve(mut streams: Vec<TcpStream>, exchange: &Exchange) -> std::io::Result<()> {
    let length = exchange.template.len();
    let mut inputs = vec![Vec::new(); streams.len()];
    let mut bytes = vec![0; READ_BYTES];
    let mut out = Vec::new();
    let mut is_open = vec![true; streams.len()];
    while is_open.contains(&true) {
        for (at, stream) in streams.iter_mut().enumerate() {
            if !is_open[at] {
                continue;
            }
            match stream.read(&mut bytes) {
                Ok(0) => is_open[at] = false,
                Ok(got) => inputs[at].extend_from_slice(&bytes[..got]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    std::thread::yield_now();
                    continue;
                }
                Err(_) => is_open[at] = false,
            }
            out.clear();
            let whole = inputs[at].len() / length * length;
            for request in inputs[at][..whole].chunks_exact(length) {
                let start = out.len();
                out.extend_from_slice(&exchange.answer);
                for (from, to, count) in &exchange.copies {
                    out[start + to..start + to + count].copy_from_slice(&request[*from..from + count]);
                }
            }
            inputs[at].drain(..whole);
            stream.set_nonblocking(false)?;
            // Who closed the connection does not want the rest.
            is_open[at] &= stream.write_all(&out).is_ok();
            stream.set_nonblocking(true)?;
        }
    }
    Ok(())
}

/// Puts load on the sink for a time.
fn measure(exchange: &Exchange, time: Duration) -> Result<(FlowOutcome, f64), String> {
    let address = format!("127.0.0.1:{}", free_port().map_err(|error| error.to_string())?);
    let listener = TcpListener::bind(&address).map_err(|error| error.to_string())?;
    let flow = Flow {
        door: exchange.door,
        address,
        login: None,
        connections: CONNECTIONS,
        pace: Pace::Closed { depth: DEPTH },
        shares: vec![Share { weight: 1, template: exchange.template.clone() }],
        keys: Keys::uniform(1_000_000, 1),
        end: End { requests: None, time: Some(time) },
        may_break: false,
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let streams = (0..CONNECTIONS).map(|_| {
                let (mut stream, _) = listener.accept()?;
                if exchange.door == Door::Iproto {
                    stream.write_all(&[b' '; 128])?;
                }
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                Ok(stream)
            });
            let streams: std::io::Result<Vec<TcpStream>> = streams.collect();
            // The client tells what went wrong.
            let _ = streams.and_then(|streams| serve(streams, exchange));
        });
        let before = thread_seconds();
        let mut outcomes =
            drive(&[flow], Drive::default()).map_err(|error: ClientError| format!("{}: {error}", exchange.name))?;
        let spent = thread_seconds() - before;
        Ok((outcomes.remove(0), spent))
    })
}

/// Processor time of the calling thread so far, in seconds.
fn thread_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|first| first.parse::<f64>().ok()).map_or(f64::NAN, |ns| ns / 1e9)
}

/// Measures all protocols and prints.
pub(crate) fn run(time: Duration, is_json: bool) -> Result<(), String> {
    let mut shown = Vec::new();
    for exchange in exchanges() {
        let (outcome, spent) = measure(&exchange, time)?;
        let of_core = outcome.responses as f64 / spent;
        if !is_json {
            println!(
                "{:16} {:>9.0} requests/s, {:>9.0} for each second of the client's processor time",
                exchange.name,
                outcome.per_second(),
                of_core
            );
        }
        shown.push(json!({"name": exchange.name, "per_second": outcome.per_second(), "per_cpu_second": of_core}));
    }
    if is_json {
        println!("{}", serde_json::Value::Array(shown));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    #[test]
    fn the_sink_gives_the_answers_that_the_client_wants() {
        for exchange in exchanges() {
            let (outcome, _) = measure(&exchange, Duration::from_millis(20)).unwrap();
            assert!(outcome.responses > 0, "{}", exchange.name);
        }
    }
}
