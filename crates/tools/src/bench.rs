//! `lycosa bench`: load on a server at any address, and how fast it answers.
//!
//! The crate `load` does the work; this page reads the command line, prepares the space, and prints.

use clap::{Args, ValueEnum};
use load::{
    Client, ClientError, Door, Drive, End, Flow, FlowOutcome, Keys, Latencies, OnSecond, Pace, Row, Second, Share,
    Template, drive, process,
};
use serde_json::json;
use std::io::IsTerminal;
use std::time::Duration;

/// Connections and window while rows are put in.
const FILL: (usize, u32) = (2, 512);
/// The exponent of `--keys zipf`: that of the benchmark YCSB.
const ZIPF_EXPONENT: f64 = 0.99;

const EXAMPLES: &str = "\
Examples:
  A million random reads of a space that is made and filled first, 4 connections, 256 requests in flight on each:
    lycosa bench --create --operation select --requests 1000000

  Pipelined load on a space on disk over one connection, a line for each second: ten million writes of distinct keys, then as many random reads,
  36,000 requests in flight; and the same in memory, with fewer rows:
    lycosa bench --preset pipeline
    lycosa bench --preset pipeline --engine memtx --rows 1000000

  Latency at a steady 20,000 requests a second, counted from when each was due:
    lycosa bench --operation mixed --rate 20000 --seconds 30

  The same on another server:
    lycosa bench --protocol redis --connect 127.0.0.1:6379 --fill --operation select";

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Operation {
    /// Read a row by its key
    Select,
    /// Insert a row or overwrite the one with its key
    Replace,
    /// Insert a row with a new key: keys beyond those of --rows, in no order
    Insert,
    /// Change a field of a row
    Update,
    /// Change a field of a row, or insert the row
    Upsert,
    /// Delete a row; with --keys sequential each row once
    Delete,
    /// Half selects, half replaces
    Mixed,
    /// Call --function with the key
    Call,
}

/// Which keys are asked for, out of those below --rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Distribution {
    /// From 0 upwards
    Sequential,
    /// Each equally often
    Uniform,
    /// A few very often: exponent 0.99
    Zipf,
    /// Only the key 0
    One,
}

/// Whole workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// On a space on disk, created if it does not exist: --rows writes of distinct keys in random order, then as many random reads
    Pipeline,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protocol {
    /// The binary protocol of Tarantool and Lycosa
    Iproto,
    /// Redis: `select` and `replace` mean GET and SET
    Redis,
    /// memcached's text protocol, likewise
    Memcached,
}

/// Options of `bench`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Address and port of the server
    #[arg(long, default_value = "127.0.0.1:3301")]
    connect: String,
    /// Protocol that it speaks
    #[arg(long, value_enum, default_value_t = Protocol::Iproto)]
    protocol: Protocol,
    /// user:password, where the protocol has them [default: no login]
    #[arg(long)]
    login: Option<String>,
    /// A whole workload; with `pipeline` the defaults are --space pipeline --engine vinyl --rows 10000000 --connections 1 --depth 36000
    #[arg(long, value_enum, conflicts_with_all = ["operation", "create", "fill", "rate", "requests", "seconds", "keys", "protocol"])]
    preset: Option<Preset>,
    /// Kind of request
    #[arg(long, value_enum, default_value_t = Operation::Select)]
    operation: Operation,
    /// Procedure of --operation call
    #[arg(long, default_value = "bench_call")]
    function: String,
    /// Name of the space
    #[arg(long, default_value = "bench", default_value_if("preset", "pipeline", "pipeline"))]
    space: String,
    /// Create the space if it does not exist, with an unsigned primary key, and fill it unless its last row is there
    #[arg(long)]
    create: bool,
    /// Engine of the space that --create creates
    #[arg(long, default_value = "memtx", default_value_if("preset", "pipeline", "vinyl"))]
    engine: String,
    /// Insert all rows first
    #[arg(long)]
    fill: bool,
    /// Connections
    #[arg(long, default_value_t = 4, default_value_if("preset", "pipeline", "1"), value_parser = clap::value_parser!(u32).range(1..=100_000))]
    connections: u32,
    /// Requests in flight on each connection
    #[arg(long, default_value_t = 256, default_value_if("preset", "pipeline", "36000"), value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    depth: u32,
    /// Requests a second in all, sent whether or not answers arrive [default: as fast as answers arrive]
    #[arg(long)]
    rate: Option<f64>,
    /// Requests in all [default: as many as --seconds allow]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Duration in seconds [default: 10, or until all --requests are answered]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: Option<u64>,
    /// Distribution of the keys
    #[arg(long, value_enum, default_value_t = Distribution::Uniform)]
    keys: Distribution,
    /// Number of keys: those below it
    #[arg(long, default_value_t = 1_000_000, default_value_if("preset", "pipeline", "10000000"), value_parser = clap::value_parser!(u32).range(1..))]
    rows: u32,
    /// Bytes of the string in a row, or of a value
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(11..=1_000_000))]
    row_bytes: u32,
    /// Numbers in a row between its key and its string; --create makes a secondary index on each
    #[arg(long, default_value_t = 0, conflicts_with = "preset", value_parser = clap::value_parser!(u32).range(0..=8))]
    secondaries: u32,
    /// Seed of the random keys
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of the server's process, if it is on this machine, to show its processor time, memory and writes
    #[arg(long)]
    pid: Option<u32>,
    /// Print one JSON object instead of lines
    #[arg(long)]
    json: bool,
}

impl Options {
    fn door(&self) -> Door {
        match self.protocol {
            Protocol::Iproto => Door::Iproto,
            Protocol::Redis => Door::Resp,
            Protocol::Memcached => Door::Memcached,
        }
    }

    fn login(&self) -> Option<(String, String)> {
        let login = self.login.as_ref()?;
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        Some((user.to_string(), password.to_string()))
    }

    fn client(&self) -> Result<Client, ClientError> {
        let login = self.login();
        Client::connect(&self.connect, login.as_ref().map(|(user, password)| (user.as_str(), password.as_str())))
    }

    /// What is asked, each kind with its weight.
    fn shares(&self, space: u64, operation: Operation) -> Result<Vec<Share>, String> {
        let share = |template| Share { weight: 1, template };
        let (door, bytes) = (self.door(), self.row_bytes as usize);
        if door != Door::Iproto {
            let (set, get) = (share(Template::set(door, bytes)), share(Template::get(door)));
            return match operation {
                Operation::Select => Ok(vec![get]),
                Operation::Replace => Ok(vec![set]),
                Operation::Mixed => Ok(vec![get, set]),
                _ => Err("over this protocol there are select, replace and mixed".to_string()),
            };
        }
        let row = Row { numbers: self.secondaries, ..Row::text(bytes) };
        Ok(match operation {
            Operation::Select => vec![share(Template::select(space))],
            Operation::Replace => vec![share(Template::replace(space, row))],
            Operation::Insert => vec![share(Template::insert(space, row))],
            Operation::Update => vec![share(Template::update(space, "=", 1, self.seed))],
            Operation::Upsert => vec![share(Template::upsert(space, row, "=", 1, self.seed))],
            Operation::Delete => vec![share(Template::delete(space))],
            Operation::Mixed => vec![share(Template::select(space)), share(Template::replace(space, row))],
            Operation::Call => vec![share(Template::call(&self.function))],
        })
    }

    fn keys(&self) -> Keys {
        if self.operation == Operation::Insert {
            return Keys::Sequential { next: self.rows, count: u32::MAX };
        }
        match self.keys {
            Distribution::Sequential => Keys::Sequential { next: 0, count: self.rows },
            Distribution::Uniform => Keys::uniform(self.rows, self.seed),
            Distribution::Zipf => Keys::zipf(self.rows, ZIPF_EXPONENT, self.seed),
            Distribution::One => Keys::One(0),
        }
    }

    fn flow(&self, space: u64) -> Result<Flow, String> {
        let pace = match self.rate {
            None => Pace::Closed { depth: self.depth },
            Some(rate) if rate > 0.0 && rate.is_finite() => Pace::Open { rate, depth_max: self.depth },
            Some(rate) => return Err(format!("--rate {rate}: a rate is above 0")),
        };
        let is_timed = self.seconds.is_some() || self.requests.is_none();
        let time = is_timed.then(|| Duration::from_secs(self.seconds.unwrap_or(10)));
        Ok(Flow {
            door: self.door(),
            address: self.connect.clone(),
            login: self.login(),
            connections: self.connections as usize,
            pace,
            shares: self.shares(space, self.operation)?,
            keys: self.keys(),
            end: End { requests: self.requests, time },
            may_break: false,
        })
    }

    /// The parts of a preset, each with its name.
    fn parts(&self, preset: Preset, space: u64) -> Result<Vec<(&'static str, Flow)>, String> {
        let Preset::Pipeline = preset;
        let end = End { requests: Some(u64::from(self.rows)), time: None };
        let flow = |template, keys| {
            Ok::<_, String>(Flow { shares: vec![Share { weight: 1, template }], keys, end, ..self.flow(space)? })
        };
        // Rows that an engine cannot compress to nothing; keys whose order is no help.
        let write = flow(Template::replace(space, Row::dense(self.row_bytes as usize)), Keys::scattered(0))?;
        let keys = Keys::Scattered(Box::new(Keys::uniform(self.rows, self.seed)));
        Ok(vec![("write", write), ("read", flow(Template::select(space), keys)?)])
    }

    /// True if the space seems to hold the rows that are wanted: a fill goes from key 0 up, so the largest key says whether it was finished.
    fn is_filled(&self, client: &mut Client, space: u64) -> Result<bool, ClientError> {
        let last = client.last_row(space)?;
        let key = last.as_ref().and_then(|row| row.array().first()?.unsigned());
        Ok(key.is_some_and(|key| key >= u64::from(load::FIRST_KEY) + u64::from(self.rows) - 1))
    }

    /// Puts in all rows.
    fn fill(&self, space: u64) -> Result<(), String> {
        let flow = Flow {
            connections: FILL.0,
            pace: Pace::Closed { depth: FILL.1 },
            shares: self.shares(space, Operation::Replace)?,
            keys: Keys::Sequential { next: 0, count: self.rows },
            end: End { requests: Some(u64::from(self.rows)), time: None },
            ..self.flow(space)?
        };
        let outcome = only(drive(&[flow], Drive::default()).map_err(|error| format!("filling: {error}"))?);
        if !self.json {
            println!("filled       {} rows in {:.1} s", outcome.responses, outcome.seconds);
        }
        Ok(())
    }

    /// Finds or makes the space; its number, 0 where there are none.
    fn prepare(&self) -> Result<u64, String> {
        if self.door() != Door::Iproto {
            if self.fill {
                self.fill(0)?;
            }
            return Ok(0);
        }
        if self.operation == Operation::Call && !self.create {
            return Ok(0);
        }
        let failed = |error: ClientError| format!("{}: {error}", self.connect);
        let mut client = self.client().map_err(failed)?;
        if self.create || self.preset.is_some() {
            if !self.engine.chars().chain(self.space.chars()).all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err("names of spaces and engines are letters, digits and _".to_string());
            }
            let script = format!(
                "local space = box.schema.space.create('{}', {{ engine = '{}', if_not_exists = true }})
                 space:create_index('primary', {{ parts = {{ {{ 1, 'unsigned' }} }}, if_not_exists = true }})
                 for field = 2, {} do
                     space:create_index('secondary_' .. field - 1, {{ parts = {{ {{ field, 'unsigned' }} }}, unique = false, if_not_exists = true }})
                 end",
                self.space,
                self.engine,
                1 + self.secondaries
            );
            client.eval(&script, &[]).map_err(failed)?;
        }
        let space = client.space_id(&self.space).map_err(failed)?;
        // Writes of all keys fill the space themselves.
        let fills_itself =
            self.preset.is_some() || self.operation == Operation::Replace && self.keys == Distribution::Sequential;
        if self.fill || self.create && !fills_itself && !self.is_filled(&mut client, space).map_err(failed)? {
            self.fill(space)?;
        }
        Ok(space)
    }
}

fn only(mut outcomes: Vec<FlowOutcome>) -> FlowOutcome {
    outcomes.pop().expect("one flow has one outcome")
}

/// What the kernel knows about a process.
struct Usage {
    cpu_seconds: f64,
    /// `None`: it is another user's process.
    written_bytes: Option<u64>,
}

impl Usage {
    fn of(pid: u32) -> Result<Self, String> {
        Ok(Usage { cpu_seconds: process::cpu_seconds(pid)?, written_bytes: process::written_bytes(pid).ok() })
    }
}

fn usage(pid: Option<u32>) -> Result<Option<Usage>, String> {
    pid.map(Usage::of).transpose()
}

/// Drives one flow and prints what came of it, or returns it for whoever prints JSON.
fn run_flow(options: &Options, flow: Flow) -> Result<serde_json::Value, String> {
    let (own_before, before) = (Usage::of(std::process::id())?, usage(options.pid)?);
    let mut show = |_: usize, second: &Second| println!("{second}");
    let on_second: Option<OnSecond<'_>> = if options.json { None } else { Some(&mut show) };
    let outcomes = drive(&[flow], Drive { on_second, ..Drive::default() });
    let outcome = only(outcomes.map_err(|error| format!("{}: {error}", options.connect))?);
    let after = usage(options.pid)?;
    let own_seconds = Usage::of(std::process::id())?.cpu_seconds - own_before.cpu_seconds;
    let server = before.zip(after).map(|(before, after)| Usage {
        cpu_seconds: after.cpu_seconds - before.cpu_seconds,
        written_bytes: after.written_bytes.zip(before.written_bytes).map(|(after, before)| after - before),
    });
    let resident_bytes = options.pid.map(process::resident_bytes).transpose()?;
    let each_us = |seconds: f64| seconds * 1e6 / outcome.responses.max(1) as f64;
    if options.json {
        let mut shown = outcome.json();
        shown["client_cpu_us"] = json!(each_us(own_seconds));
        shown["server_cpu_us"] = json!(server.as_ref().map(|server| each_us(server.cpu_seconds)));
        shown["server_written_bytes"] = json!(server.as_ref().and_then(|server| server.written_bytes));
        shown["server_resident_bytes"] = json!(resident_bytes);
        return Ok(shown);
    }
    if std::io::stdout().is_terminal() {
        println!();
    }
    println!("requests     {} in {:.1} s: {:.0} a second", outcome.responses, outcome.seconds, outcome.per_second());
    println!("latency      {}", Latencies::of(&outcome.latencies));
    println!("client       {:.2} us of processor time for each", each_us(own_seconds));
    if let Some(Usage { cpu_seconds, written_bytes }) = server {
        let megabytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        println!(
            "server       {:.2} us of processor time for each, {:.1} MiB resident{}",
            each_us(cpu_seconds),
            megabytes(resident_bytes.unwrap_or(0)),
            written_bytes.map_or(String::new(), |bytes| format!(", {:.1} MiB written", megabytes(bytes)))
        );
    }
    Ok(serde_json::Value::Null)
}

/// Puts load on a server. Returns the exit code. Errors: what went wrong, as text.
pub fn run(options: &Options) -> Result<i32, String> {
    runtime::signals::end_on_closed_output();
    let space = options.prepare()?;
    let Some(preset) = options.preset else {
        let shown = run_flow(options, options.flow(space)?)?;
        if options.json {
            println!("{shown}");
        }
        return Ok(0);
    };
    let mut all = json!({});
    for (name, flow) in options.parts(preset, space)? {
        if !options.json {
            println!("{name}");
        }
        all[name] = run_flow(options, flow)?;
    }
    if options.json {
        println!("{all}");
    }
    Ok(0)
}
