//! Interactive transactions: transfers between accounts, each statement a round trip of its own.

use super::Section;
use crate::compare::{Settings, by_turns};
use crate::contender::{Contender, Running};
use crate::crowd;
use crate::plain_postgres::{Failure, PlainPostgres};
use crate::results::{Recorder, Turn};
use crate::shops::connect_postgres;
use hdrhistogram::Histogram;
use load::{Client, Latencies, Value};
use runtime::reactor::Socket;
use std::time::Instant;
use wire::{ClientError, request_type};

pub(crate) const SECTION: Section = Section {
    name: "transfers",
    title: "Interactive transfers",
    about: "16 clients in one thread, each with a connection: begin, read two accounts, change both, commit, each a round trip, by TCP and by a unix socket. Between random accounts of 10,000, and \
            from one account that all want to random ones. PostgreSQL reads with FOR UPDATE; Lycosa reads random accounts plainly and tries again on a \
            conflict, the wanted one with a lock and at level read-committed (its commit waits for what it has read). At the end no money may be lost or made.",
    run,
};

const CLIENTS: u64 = 16;
const ACCOUNTS: u64 = 10_000;
const BALANCE: i64 = 1_000_000;
const CONTENDERS: [Contender; 4] =
    [Contender::Lycosa, Contender::LycosaWrite, Contender::Postgres, Contender::PostgresDurable];
/// Transfers of all clients together, for each operation of the scale.
const PART: u32 = 8;
/// Another transaction was first.
const CONFLICT: u32 = 97;
const STREAM: u64 = 1;
/// Answers inside of the transaction leave before what they show is durable; that to the commit waits for all of it.
const READ_COMMITTED: u64 = 1;

/// One who moves money.
trait Teller {
    /// Moves money. False: somebody else was faster, and nothing has happened.
    fn transfer(&mut self, from: u64, to: u64, locks: bool) -> Result<bool, String>;
}

struct LycosaTeller {
    client: Client<Socket>,
    space: u64,
}

impl LycosaTeller {
    fn steps(&mut self, from: u64, to: u64, locks: bool) -> Result<(), ClientError> {
        if locks {
            self.client.begin(READ_COMMITTED)?;
            self.client.call("bench_lock", &[from])?;
        } else {
            self.client.control(request_type::BEGIN)?;
            self.client.get(self.space, from)?;
        }
        self.client.get(self.space, to)?;
        self.client.add(self.space, from, -1)?;
        self.client.add(self.space, to, 1)?;
        self.client.control(request_type::COMMIT)
    }
}

impl Teller for LycosaTeller {
    fn transfer(&mut self, from: u64, to: u64, locks: bool) -> Result<bool, String> {
        match self.steps(from, to, locks) {
            Ok(()) => Ok(true),
            Err(ClientError::Refused { code, .. }) if code & 0x7fff == CONFLICT => {
                self.client.control(request_type::ROLLBACK).map_err(|error| error.to_string())?;
                Ok(false)
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

struct PostgresTeller {
    client: PlainPostgres<Socket>,
}

impl PostgresTeller {
    fn steps(&mut self, from: u64, to: u64) -> Result<(), Failure> {
        let [from, to] = [from, to].map(|id| id as i64);
        self.client.simple("BEGIN")?;
        // In one order, so that nobody waits in a circle.
        for id in [from.min(to), from.max(to)] {
            self.client.run("read", &[id])?;
        }
        for (id, amount) in [(from, -1), (to, 1)] {
            self.client.run("change", &[amount, id])?;
        }
        self.client.simple("COMMIT")
    }
}

impl Teller for PostgresTeller {
    fn transfer(&mut self, from: u64, to: u64, _locks: bool) -> Result<bool, String> {
        self.steps(from, to)?;
        Ok(true)
    }
}

fn failed(error: postgres::Error) -> String {
    format!("postgresql: {error}")
}

/// The sum of all accounts.
fn sum(server: &Running) -> Result<i64, String> {
    if !server.contender.is_iproto() {
        let row = connect_postgres(&server.address)?.query_one("SELECT sum(balance)::bigint FROM accounts", &[]);
        return Ok(row.map_err(failed)?.get(0));
    }
    let refused = |error: ClientError| error.to_string();
    let mut client = Client::connect(&server.address, None).map_err(refused)?;
    let space = client.space_id("accounts").map_err(refused)?;
    let rows = client.select_all(space).map_err(refused)?;
    let balance = |row: &Value| row.array().get(1).and_then(Value::unsigned).map(|sum| sum as i64);
    rows.iter().map(balance).sum::<Option<i64>>().ok_or_else(|| "an account has no balance".to_string())
}

/// Makes the accounts.
fn prepare(server: &Running) -> Result<(), String> {
    if !server.contender.is_iproto() {
        let schema = format!(
            "DROP TABLE IF EXISTS accounts; CREATE TABLE accounts (id bigint PRIMARY KEY, balance bigint NOT NULL);
             INSERT INTO accounts SELECT id, {BALANCE} FROM generate_series(1, {ACCOUNTS}) AS id"
        );
        return connect_postgres(&server.address)?.batch_execute(&schema).map_err(failed);
    }
    let script = format!(
        "local accounts = box.schema.space.create('accounts', {{ if_not_exists = true }})
         accounts:create_index('primary', {{ if_not_exists = true }})
         box.begin() for id = 1, {ACCOUNTS} do accounts:replace{{ id, {BALANCE} }} end box.commit()
         function bench_lock(id) return box.space.accounts:get(id, {{ for_update = true }}) end"
    );
    let mut client = Client::connect(&server.address, None).map_err(|error| error.to_string())?;
    client.eval(&script, &[]).map(|_| ()).map_err(|error| error.to_string())
}

/// The server's unix socket, which is made if there is none yet.
fn unix_socket(server: &Running) -> Result<String, String> {
    if !server.contender.is_iproto() {
        let mut client = connect_postgres(&server.address)?;
        let dir: String = client.query_one("SHOW unix_socket_directories", &[]).map_err(failed)?.get(0);
        let port: String = client.query_one("SHOW port", &[]).map_err(failed)?.get(0);
        return Ok(format!("{dir}/.s.PGSQL.{port}"));
    }
    let script = "local path = require('fio').cwd() .. '/transfers.socket'
                  box.cfg{ listen = { os.getenv('LISTEN'), 'unix/:' .. path } }
                  return path";
    let mut client = Client::connect(&server.address, None).map_err(|error| error.to_string())?;
    match client.eval(script, &[]).map_err(|error| error.to_string())? {
        Value::Str(path) => Ok(path),
        other => Err(format!("no path of a socket: {other:?}")),
    }
}

/// Connects in the calling fiber.
fn teller(address: &str, is_iproto: bool) -> Result<Box<dyn Teller>, String> {
    let stream = crowd::dial(address).map_err(|error| error.to_string())?;
    if is_iproto {
        let refused = |error: ClientError| error.to_string();
        let mut client = Client::greet(stream).map_err(refused)?;
        let space = client.space_id("accounts").map_err(refused)?;
        client.set_stream(STREAM);
        return Ok(Box::new(LycosaTeller { client, space }));
    }
    let mut client = PlainPostgres::connect(stream, "bench", "postgres")?;
    client.prepare("read", "SELECT balance FROM accounts WHERE id = $1 FOR UPDATE")?;
    client.prepare("change", "UPDATE accounts SET balance = balance + $1 WHERE id = $2")?;
    Ok(Box::new(PostgresTeller { client }))
}

/// The next account, from a number of its own for each client.
fn next_account(state: &mut u64) -> u64 {
    // xorshift64
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    2 + *state % (ACCOUNTS - 1)
}

fn run_client(teller: &mut dyn Teller, id: u64, transfers: u32, is_hot: bool) -> Result<(Histogram<u64>, u64), String> {
    let (mut latencies, mut again) = (load::histogram(), 0);
    let mut state = 0x9e37_79b9_7f4a_7c15 ^ (id + 1);
    for _ in 0..transfers {
        let begun = Instant::now();
        let from = if is_hot { 1 } else { next_account(&mut state) };
        let mut to = next_account(&mut state);
        while to == from {
            to = next_account(&mut state);
        }
        while !teller.transfer(from, to, is_hot)? {
            again += 1;
        }
        latencies.saturating_record(begun.elapsed().as_micros() as u64);
    }
    Ok((latencies, again))
}

fn turn(settings: &Settings, server: &mut Running, turn: &mut Turn) -> Result<(), String> {
    prepare(server)?;
    let socket = unix_socket(server)?;
    let cases = [
        ("random accounts", &server.address, false),
        ("one hot account", &server.address, true),
        ("random accounts, unix socket", &socket, false),
        ("one hot account, unix socket", &socket, true),
    ];
    for (case, address, is_hot) in cases {
        let transfers = (settings.scale.operations / PART / CLIENTS as u32).max(20);
        let before = server.cpu_seconds()?;
        let (address, is_iproto) = (address.clone(), server.contender.is_iproto());
        let (results, seconds) = crowd::run(CLIENTS, move |id| {
            let mut teller = teller(&address, is_iproto)?;
            Ok(Box::new(move || run_client(&mut *teller, id, transfers, is_hot)))
        })?;
        let cpu_seconds = server.cpu_seconds()? - before;
        let total = f64::from(transfers) * CLIENTS as f64;
        let (mut latencies, mut again) = (load::histogram(), 0);
        for (more, tried_again) in results {
            latencies.add(more).expect("both histograms have the same bounds");
            again += tried_again;
        }
        let sum = sum(server)?;
        if sum != BALANCE * ACCOUNTS as i64 {
            return Err(format!("all accounts together have {sum}"));
        }
        let found = Latencies::of(&latencies);
        turn.higher(case, "transfers", "1/s", total / seconds);
        turn.lower(case, "latency, median", "us", found.median as f64);
        turn.lower(case, "latency, 99 %", "us", found.p99 as f64);
        turn.lower(case, "longest", "us", latencies.max() as f64);
        turn.lower(case, "tried again", "of 100", again as f64 * 100.0 / total);
        turn.lower(case, "server CPU", "us each", cpu_seconds * 1e6 / total);
        turn.latencies(case, latencies);
    }
    Ok(())
}

fn run(settings: &Settings, recorder: &mut Recorder) -> Result<(), String> {
    by_turns(settings, recorder, &CONTENDERS, u64::MAX, &|server, _, found| turn(settings, server, found))
}
