//! Plain load: pipelined single-row requests, connections in a loop, memory of many rows.

use crate::client::{Client, ClientError, put_packet, put_str, put_uint};
use crate::inventory::Random;
use crate::report::{self, Latencies};
use hdrhistogram::Histogram;
use serde_json::json;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Replace rows of random keys.
    Replace,
    /// Read rows by random keys.
    Select,
}

/// How.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) address: String,
    pub(crate) kind: Kind,
    pub(crate) connections: usize,
    pub(crate) in_flight: usize,
    pub(crate) rows: u64,
    pub(crate) row_bytes: usize,
    pub(crate) requests: usize,
}

/// What came of it.
pub(crate) struct Outcome {
    pub(crate) requests: usize,
    pub(crate) seconds: f64,
    pub(crate) latencies: Histogram<u64>,
}

impl Outcome {
    pub(crate) fn per_second(&self) -> f64 {
        self.requests as f64 / self.seconds
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        json!({
            "requests": self.requests,
            "seconds": self.seconds,
            "per_second": self.per_second(),
            "batch_latency_us": Latencies::of(&self.latencies).json(),
        })
    }

    pub(crate) fn print(&self) {
        println!("requests     {} in {:.1} s: {:.0} a second", self.requests, self.seconds, self.per_second());
        println!("batch        {}", Latencies::of(&self.latencies));
    }
}

fn put_request(out: &mut Vec<u8>, kind: Kind, space: u64, key: u64, filler: &[u8], sync: u32) {
    match kind {
        Kind::Replace => put_packet(out, 3, sync, |out| {
            out.extend_from_slice(&[0x82, 0x10]);
            put_uint(out, space);
            out.extend_from_slice(&[0x21, 0x92]);
            put_uint(out, key);
            put_str(out, filler);
        }),
        Kind::Select => put_packet(out, 1, sync, |out| {
            out.extend_from_slice(&[0x84, 0x10]);
            put_uint(out, space);
            out.extend_from_slice(&[0x11, 0x00, 0x12, 0x01, 0x20, 0x91]);
            put_uint(out, key);
        }),
    }
}

/// Counts the answers in a stream of bytes and finds errors, without decoding them.
struct Answers {
    buffer: Vec<u8>,
    filled: usize,
}

impl Answers {
    fn new() -> Self {
        Answers { buffer: vec![0; 1 << 18], filled: 0 }
    }

    /// Reads once; how many whole answers there were. Errors: an answer that is an error.
    fn read(&mut self, stream: &mut impl Read) -> Result<usize, ClientError> {
        if self.filled == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let got = stream.read(&mut self.buffer[self.filled..])?;
        if got == 0 {
            return Err(ClientError::Broken(std::io::ErrorKind::UnexpectedEof.into()));
        }
        self.filled += got;
        let (mut at, mut count) = (0, 0);
        while self.filled - at >= 5 {
            let length = &self.buffer[at + 1..at + 5];
            let end = at + 5 + u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize;
            if end > self.filled {
                break;
            }
            // 83 00 ce <u32 code>: an error has its high bits set.
            let packet = &self.buffer[at + 5..end];
            let code = packet.get(3..7).map_or(u32::MAX, |code| u32::from_be_bytes([code[0], code[1], code[2], code[3]]));
            if code != 0 {
                let text = String::from_utf8_lossy(packet).into_owned();
                return Err(ClientError::Refused(format!("code {}: {text}", code & 0x7fff)));
            }
            at = end;
            count += 1;
        }
        self.buffer.copy_within(at..self.filled, 0);
        self.filled -= at;
        Ok(count)
    }
}

fn run_connection(settings: &Settings, space: u64, seed: u64, requests: usize, done: &AtomicUsize) -> Result<Histogram<u64>, ClientError> {
    let mut client = Client::connect(&settings.address, None)?;
    let filler = vec![b'x'; settings.row_bytes];
    let mut random = Random::new(seed);
    let mut latencies = report::histogram();
    let mut answers = Answers::new();
    let (mut sent, mut received) = (0, 0);
    let mut out = Vec::new();
    // Half of the window is sent at a time: the other half keeps the server busy meanwhile.
    let batch = (settings.in_flight / 2).max(1);
    let mut begun = Instant::now();
    while received < requests {
        if sent < requests && sent - received <= settings.in_flight - batch {
            out.clear();
            let count = batch.min(requests - sent);
            for _ in 0..count {
                put_request(&mut out, settings.kind, space, random.next() % settings.rows, &filler, sent as u32);
                sent += 1;
            }
            client.stream.write_all(&out)?;
            if sent - received <= settings.in_flight - batch && sent < requests {
                continue;
            }
        }
        let before = received / batch;
        let count = answers.read(&mut client.stream)?;
        received += count;
        done.fetch_add(count, Ordering::Relaxed);
        if received / batch != before {
            latencies.saturating_record(begun.elapsed().as_micros() as u64);
            begun = Instant::now();
        }
    }
    Ok(latencies)
}

fn space_id(address: &str) -> Result<u64, String> {
    let failed = |error: ClientError| format!("finding the space `bench`: {error}");
    let mut client = Client::connect(address, None).map_err(failed)?;
    let id = client.eval("return box.space.bench.id").map_err(failed)?;
    id.int().map(|id| id as u64).ok_or_else(|| "the server has no space `bench`".to_string())
}

/// Empties the space and fills it with rows 0..rows.
pub(crate) fn fill(address: &str, rows: u64, row_bytes: usize) -> Result<(), String> {
    let failed = |error: ClientError| format!("filling the space `bench`: {error}");
    let mut client = Client::connect(address, None).map_err(failed)?;
    client.eval("bench_clear()").map_err(failed)?;
    let space = space_id(address)?;
    let filler = vec![b'x'; row_bytes];
    let mut answers = Answers::new();
    let (mut sent, mut received, mut out) = (0u64, 0u64, Vec::new());
    while received < rows {
        while sent < rows && sent - received < 2048 {
            out.clear();
            for _ in 0..256.min(rows - sent) {
                put_request(&mut out, Kind::Replace, space, sent, &filler, 0);
                sent += 1;
            }
            client.stream.write_all(&out).map_err(|error| error.to_string())?;
        }
        received += answers.read(&mut client.stream).map_err(failed)? as u64;
    }
    Ok(())
}

/// Runs a load over a filled space.
pub(crate) fn run(settings: &Settings, done: &AtomicUsize) -> Result<Outcome, String> {
    let space = space_id(&settings.address)?;
    let latencies = Mutex::new(report::histogram());
    let failures: Mutex<Vec<String>> = Mutex::default();
    let each = settings.requests / settings.connections;
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for at in 0..settings.connections {
            let (latencies, failures) = (&latencies, &failures);
            scope.spawn(move || match run_connection(settings, space, at as u64 + 1, each, done) {
                Ok(own) => {
                    // Both histograms have the same bounds.
                    let _ = latencies.lock().unwrap_or_else(PoisonError::into_inner).add(&own);
                }
                Err(error) => failures.lock().unwrap_or_else(PoisonError::into_inner).push(error.to_string()),
            });
        }
    });
    let seconds = begun.elapsed().as_secs_f64();
    if let Some(first) = failures.into_inner().unwrap_or_else(PoisonError::into_inner).first() {
        return Err(first.clone());
    }
    let latencies = latencies.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Outcome { requests: each * settings.connections, seconds, latencies })
}

/// Connections, one after the other.
pub(crate) struct Connects {
    pub(crate) count: usize,
    pub(crate) seconds: f64,
    /// Processor time of the server for each, in microseconds.
    pub(crate) server_us: f64,
}

impl Connects {
    pub(crate) fn json(&self) -> serde_json::Value {
        json!({
            "connections": self.count,
            "seconds": self.seconds,
            "per_second": self.count as f64 / self.seconds,
            "server_cpu_us": self.server_us,
        })
    }

    pub(crate) fn print(&self) {
        println!("connections  {} in {:.1} s: {:.0} a second", self.count, self.seconds, self.count as f64 / self.seconds);
        println!("server       {:.1} us of processor time for each", self.server_us);
    }
}

/// Clients that connect, log in, ask once and go, for a time.
pub(crate) fn connects(address: &str, login: (&str, &str), clients: usize, time: Duration, pid: u32) -> Result<Connects, String> {
    let count = AtomicUsize::new(0);
    let failure: Mutex<Option<String>> = Mutex::default();
    let before = cpu_seconds(pid)?;
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                while begun.elapsed() < time {
                    let outcome = Client::connect(address, Some(login)).and_then(|mut client| client.ping());
                    match outcome {
                        Ok(()) => count.fetch_add(1, Ordering::Relaxed),
                        Err(error) => {
                            *failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
                            return;
                        }
                    };
                }
            });
        }
    });
    let seconds = begun.elapsed().as_secs_f64();
    if let Some(failure) = failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(failure);
    }
    let count = count.into_inner();
    let server_us = (cpu_seconds(pid)? - before) * 1e6 / count.max(1) as f64;
    Ok(Connects { count, seconds, server_us })
}

/// Processor time of a process so far, in seconds: all its threads, user and system.
pub(crate) fn cpu_seconds(pid: u32) -> Result<f64, String> {
    let read = |error: std::io::Error| format!("/proc/{pid}/stat: {error}");
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).map_err(read)?;
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    // utime and stime are fields 14 and 15, counted from the process number, in hundredths.
    Ok((ticks(11) + ticks(12)) / 100.0)
}

/// Resident memory of a process in bytes.
pub(crate) fn resident_bytes(pid: u32) -> Result<u64, String> {
    let read = |error: std::io::Error| format!("/proc/{pid}/status: {error}");
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).map_err(read)?;
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
    let kilobytes: u64 = line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).ok_or("no number in VmRSS")?;
    Ok(kilobytes * 1024)
}
