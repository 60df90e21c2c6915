//! Plain load: single-row requests on the space `bench`, many in flight on a few connections.
//!
//! One thread serves all connections, because the client shares two cores with the server and every switch between threads is taken from what is
//! measured. Requests are copies of one encoded request with the sync and the key put in; answers are recognised by their first bytes. Whatever
//! arrived is read at once, and requests leave in batches of at least a quarter of the window.
//!
//! A sync is the number of a slot in the connection's window. Servers may answer in any order; the slot says when its request was sent.

use crate::client::{self, Client, ClientError};
use crate::process;
use crate::random::Random;
use crate::report::{self, Latencies};
use crate::wire::{SYNC_OFFSET, Value, key, next_answer, put_packet, put_str, put_uint, request};
use hdrhistogram::Histogram;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use serde_json::json;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Longest time without any answer.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// How much is asked of a socket at a time, at least.
const READ_BYTES: usize = 1 << 18;
/// Connections and window of a fill.
const FILL: (usize, usize) = (2, 512);

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Replace rows of random keys
    Replace,
    /// Read rows by random keys
    Select,
    /// Half of each
    Mixed,
}

/// How.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) address: String,
    pub(crate) kind: Kind,
    pub(crate) connections: usize,
    /// Requests in flight on each connection.
    pub(crate) in_flight: usize,
    /// The space holds keys 0..rows.
    pub(crate) rows: u32,
    /// Bytes of the string in a row.
    pub(crate) row_bytes: usize,
    pub(crate) requests: u64,
    pub(crate) seed: u64,
    /// The server's process, if its processor time is wanted.
    pub(crate) pid: Option<u32>,
}

/// What came of it.
pub(crate) struct Outcome {
    pub(crate) requests: u64,
    pub(crate) seconds: f64,
    /// Microseconds from sending a request to reading its answer.
    pub(crate) latencies: Histogram<u64>,
    /// Processor time of the server for each request, in microseconds.
    pub(crate) server_us: Option<f64>,
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
            "latency_us": Latencies::of(&self.latencies).json(),
            "server_cpu_us": self.server_us,
        })
    }

    pub(crate) fn print(&self) {
        println!("requests     {} in {:.1} s: {:.0} a second", self.requests, self.seconds, self.per_second());
        println!("latency      {}", Latencies::of(&self.latencies));
        if let Some(server_us) = self.server_us {
            println!("server       {server_us:.2} us of processor time for each");
        }
    }
}

/// An encoded request and where its key stands.
struct Template {
    bytes: Vec<u8>,
    key_offset: usize,
}

impl Template {
    /// The key always takes four bytes, so that it can be put in without moving anything.
    fn put_key(out: &mut Vec<u8>) -> usize {
        out.extend_from_slice(&[0xce, 0, 0, 0, 0]);
        out.len() - 4
    }

    fn replace(space: u64, row_bytes: usize) -> Self {
        let (mut bytes, mut key_offset) = (Vec::new(), 0);
        put_packet(&mut bytes, request::REPLACE, 0, |out| {
            out.extend_from_slice(&[0x82, key::SPACE_ID]);
            put_uint(out, space);
            out.extend_from_slice(&[key::TUPLE, 0x92]);
            key_offset = Self::put_key(out);
            put_str(out, &vec![b'x'; row_bytes]);
        });
        Template { bytes, key_offset }
    }

    fn select(space: u64) -> Self {
        let (mut bytes, mut key_offset) = (Vec::new(), 0);
        put_packet(&mut bytes, request::SELECT, 0, |out| {
            out.extend_from_slice(&[0x84, key::SPACE_ID]);
            put_uint(out, space);
            out.extend_from_slice(&[key::INDEX_ID, 0, key::LIMIT, 1, key::KEY, 0x91]);
            key_offset = Self::put_key(out);
        });
        Template { bytes, key_offset }
    }

    fn put(&self, out: &mut Vec<u8>, sync: u32, key: u32) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let request = &mut out[start..];
        request[SYNC_OFFSET..SYNC_OFFSET + 4].copy_from_slice(&sync.to_be_bytes());
        request[self.key_offset..self.key_offset + 4].copy_from_slice(&key.to_be_bytes());
    }
}

/// Where keys come from.
enum Keys {
    /// 0, 1, 2...
    Ascending(u32),
    /// Any of 0..rows, by chance.
    Random(Random),
}

/// Makes the requests of a run.
struct Requests {
    kind: Kind,
    replace: Template,
    select: Template,
    keys: Keys,
    rows: u32,
    /// So many are not made yet.
    left: u64,
}

impl Requests {
    fn put(&mut self, out: &mut Vec<u8>, sync: u32) {
        let (key, is_select) = match &mut self.keys {
            Keys::Ascending(next) => {
                *next += 1;
                (*next - 1, self.kind == Kind::Select)
            }
            Keys::Random(random) => {
                let key = random.below(u64::from(self.rows)) as u32;
                (key, self.kind == Kind::Select || self.kind == Kind::Mixed && random.below(2) == 0)
            }
        };
        if is_select {
            self.select.put(out, sync, key)
        } else {
            self.replace.put(out, sync, key)
        }
        self.left -= 1;
    }
}

/// A connection and its window.
struct Lane {
    stream: TcpStream,
    out: Vec<u8>,
    /// The first so many bytes of `out` are sent.
    sent: usize,
    input: Vec<u8>,
    filled: usize,
    /// Slots without a request in flight.
    free: Vec<u32>,
    /// When the request of each slot was sent. `None`: the slot is free.
    sent_at: Vec<Option<Instant>>,
}

impl Lane {
    fn open(address: &str, in_flight: usize) -> Result<Self, ClientError> {
        let (stream, _) = client::open(address)?;
        stream.set_nonblocking(true)?;
        Ok(Lane {
            stream: TcpStream::from_std(stream),
            out: Vec::new(),
            sent: 0,
            input: vec![0; READ_BYTES],
            filled: 0,
            free: (0..in_flight as u32).collect(),
            sent_at: vec![None; in_flight],
        })
    }

    /// Fills the window if enough of it is free, and sends what the socket takes.
    fn fill(&mut self, requests: &mut Requests, now: Instant) -> io::Result<()> {
        if self.free.len() * 4 >= self.sent_at.len() {
            while requests.left > 0
                && let Some(slot) = self.free.pop()
            {
                requests.put(&mut self.out, slot);
                self.sent_at[slot as usize] = Some(now);
            }
        }
        while self.sent < self.out.len() {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(())
    }

    /// Reads what has arrived; how many answers were in it.
    fn read(&mut self, latencies: &mut Histogram<u64>) -> Result<u64, ClientError> {
        let mut count = 0;
        loop {
            if self.input.len() - self.filled < READ_BYTES / 2 {
                self.input.resize(self.input.len() * 2, 0);
            }
            let room = self.input.len() - self.filled;
            let got = match self.stream.read(&mut self.input[self.filled..]) {
                Ok(0) => return Err(io::Error::from(ErrorKind::UnexpectedEof).into()),
                Ok(got) => got,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(count),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            self.filled += got;
            count += self.take_answers(latencies)?;
            // The socket gave less than it might: it is empty, and says so when it is not any more.
            if got < room {
                return Ok(count);
            }
        }
    }

    fn take_answers(&mut self, latencies: &mut Histogram<u64>) -> Result<u64, ClientError> {
        let now = Instant::now();
        let (mut used, mut count) = (0, 0);
        while let Some((answer, length)) = next_answer(&self.input[used..self.filled])? {
            if answer.code != 0 {
                return Err(ClientError::Refused { code: answer.code, text: answer.error_text() });
            }
            // Both a replace and a select of a key that is there answer one row.
            if answer.data_count() != Some(1) {
                return Err(ClientError::Absurd(format!("{:?} rows instead of one", answer.data_count())));
            }
            let slot =
                usize::try_from(answer.sync).ok().and_then(|slot| self.sent_at.get_mut(slot)).and_then(Option::take);
            let Some(sent_at) = slot else {
                return Err(ClientError::Absurd(format!("an answer to sync {}, which nobody sent", answer.sync)));
            };
            latencies.saturating_record((now - sent_at).as_micros() as u64);
            self.free.push(answer.sync as u32);
            used += length;
            count += 1;
        }
        self.input.copy_within(used..self.filled, 0);
        self.filled -= used;
        Ok(count)
    }
}

/// Sends all requests and waits for all answers.
fn drive(
    address: &str,
    connections: usize,
    in_flight: usize,
    mut requests: Requests,
    done: &AtomicU64,
) -> Result<Outcome, ClientError> {
    let total = requests.left;
    let mut latencies = report::histogram();
    let mut lanes = (0..connections).map(|_| Lane::open(address, in_flight)).collect::<Result<Vec<_>, _>>()?;
    let mut poll = Poll::new()?;
    for (at, lane) in lanes.iter_mut().enumerate() {
        poll.registry().register(&mut lane.stream, Token(at), Interest::READABLE | Interest::WRITABLE)?;
    }
    let mut events = Events::with_capacity(connections.max(1));
    let begun = Instant::now();
    let (mut answered, mut heard) = (0, begun);
    for lane in &mut lanes {
        lane.fill(&mut requests, begun)?;
    }
    while answered < total {
        match poll.poll(&mut events, Some(SILENCE_MAX)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            result => result?,
        }
        let before = answered;
        for event in &events {
            let lane = &mut lanes[event.token().0];
            if event.is_readable() {
                answered += lane.read(&mut latencies)?;
            }
            lane.fill(&mut requests, Instant::now())?;
        }
        if answered > before {
            heard = Instant::now();
            done.store(answered, Ordering::Relaxed);
        } else if heard.elapsed() >= SILENCE_MAX {
            let text =
                format!("no answer for {SILENCE_MAX:?}, {} requests in flight", total - requests.left - answered);
            return Err(io::Error::new(ErrorKind::TimedOut, text).into());
        }
    }
    Ok(Outcome { requests: total, seconds: begun.elapsed().as_secs_f64(), latencies, server_us: None })
}

fn requests(settings: &Settings, space: u64, keys: Keys, count: u64) -> Requests {
    Requests {
        kind: settings.kind,
        replace: Template::replace(space, settings.row_bytes),
        select: Template::select(space),
        keys,
        rows: settings.rows,
        left: count,
    }
}

/// True if the space seems to hold the rows that are wanted: a fill goes from key 0 up, so the largest key says whether it was finished.
fn is_filled(last_row: Option<&Value>, settings: &Settings) -> bool {
    match last_row.map(Value::array) {
        Some([key, Value::Str(text)]) => {
            key.unsigned() == Some(u64::from(settings.rows) - 1) && text.len() == settings.row_bytes
        }
        _ => false,
    }
}

/// Sees to it that the space holds keys 0..rows: empties and fills it if it does not. True if it had to.
pub(crate) fn fill(settings: &Settings, is_quiet: bool) -> Result<bool, String> {
    let failed = |error: ClientError| format!("filling the space `bench`: {error}");
    let mut client = Client::connect(&settings.address, None).map_err(failed)?;
    let space = client.space_id("bench").map_err(failed)?;
    if is_filled(client.last_row(space).map_err(failed)?.as_ref(), settings) {
        return Ok(false);
    }
    client.call("bench_clear", &[]).map_err(failed)?;
    let count = u64::from(settings.rows);
    let settings = Settings { kind: Kind::Replace, ..settings.clone() };
    report::with_progress("filling", count, is_quiet, |done| {
        let requests = requests(&settings, space, Keys::Ascending(0), count);
        drive(&settings.address, FILL.0, FILL.1, requests, done).map(|_| true).map_err(failed)
    })
}

/// Runs a load over a filled space.
pub(crate) fn run(settings: &Settings, is_quiet: bool) -> Result<Outcome, String> {
    let failed = |error: ClientError| error.to_string();
    let space = Client::connect(&settings.address, None).and_then(|mut client| client.space_id("bench"));
    let keys = Keys::Random(Random::new(settings.seed));
    let requests = requests(settings, space.map_err(failed)?, keys, settings.requests);
    let cpu_seconds = || settings.pid.map(process::cpu_seconds).transpose();
    let before = cpu_seconds()?;
    let mut outcome = report::with_progress("requests", settings.requests, is_quiet, |done| {
        drive(&settings.address, settings.connections, settings.in_flight, requests, done).map_err(failed)
    })?;
    outcome.server_us =
        before.zip(cpu_seconds()?).map(|(before, after)| (after - before) * 1e6 / outcome.requests as f64);
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use crate::wire::take_value;

    #[test]
    fn a_template_takes_sync_and_key() {
        let template = Template::replace(512, 2);
        let mut out = vec![0xff];
        template.put(&mut out, 5, 70_000);
        let mut rest = &out[6..];
        assert_eq!(rest.len(), template.bytes.len() - 5);
        let header = take_value(&mut rest).unwrap();
        assert_eq!(header.clone().field(0), Some(Value::Int(3)));
        assert_eq!(header.field(1), Some(Value::Int(5)));
        let body = take_value(&mut rest).unwrap();
        assert_eq!(body.clone().field(key::SPACE_ID), Some(Value::Int(512)));
        let row = Value::Array(vec![Value::Int(70_000), Value::Str("xx".into())]);
        assert_eq!((body.field(key::TUPLE), rest.len()), (Some(row), 0));
    }

    #[test]
    fn a_select_asks_for_one_row_by_key() {
        let mut out = Vec::new();
        Template::select(512).put(&mut out, 0, 9);
        let mut rest = &out[5..];
        take_value(&mut rest).unwrap();
        let body = take_value(&mut rest).unwrap();
        assert_eq!(body.clone().field(key::KEY), Some(Value::Array(vec![Value::Int(9)])));
        assert_eq!((body.field(key::LIMIT), rest.len()), (Some(Value::Int(1)), 0));
    }

    #[test]
    fn half_a_fill_is_no_fill() {
        let settings = Settings {
            address: String::new(),
            kind: Kind::Select,
            connections: 1,
            in_flight: 1,
            rows: 10,
            row_bytes: 1,
            requests: 1,
            seed: 1,
            pid: None,
        };
        let row = |key, text: &str| Value::Array(vec![Value::Int(key), Value::Str(text.into())]);
        assert!(is_filled(Some(&row(9, "x")), &settings));
        assert!(!is_filled(Some(&row(8, "x")), &settings));
        assert!(!is_filled(Some(&row(9, "xx")), &settings));
        assert!(!is_filled(None, &settings));
    }
}
