//! Interactive transactions: transfers between accounts, each statement a round trip of its own.

use super::Section;
use crate::compare::{Settings, by_turns};
use crate::contender::{Contender, Running};
use crate::results::{Recorder, Turn};
use crate::shops::connect_postgres;
use hdrhistogram::Histogram;
use load::{Client, Latencies};
use postgres::Statement;
use std::time::Instant;
use wire::{ClientError, request_type};

pub(crate) const SECTION: Section = Section {
    name: "transfers",
    title: "Interactive transfers",
    about: "16 clients, each with a connection: begin, read two accounts, change both, commit, each a round trip. Between random accounts of 10,000, and \
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
trait Teller: Send {
    /// Moves money. False: somebody else was faster, and nothing has happened.
    fn transfer(&mut self, from: u64, to: u64, locks: bool) -> Result<bool, String>;
    /// The sum of all accounts.
    fn sum(&mut self) -> Result<i64, String>;
}

struct LycosaTeller {
    client: Client,
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

    fn sum(&mut self) -> Result<i64, String> {
        let rows = self.client.select_all(self.space).map_err(|error| error.to_string())?;
        let balance = |row: &load::Value| row.array().get(1).and_then(load::Value::unsigned).map(|sum| sum as i64);
        rows.iter().map(balance).sum::<Option<i64>>().ok_or_else(|| "an account has no balance".to_string())
    }
}

struct PostgresTeller {
    client: postgres::Client,
    read: Statement,
    change: Statement,
}

fn failed(error: postgres::Error) -> String {
    format!("postgresql: {error}")
}

impl Teller for PostgresTeller {
    fn transfer(&mut self, from: u64, to: u64, _locks: bool) -> Result<bool, String> {
        let [from, to] = [from, to].map(|id| id as i64);
        let mut transaction = self.client.transaction().map_err(failed)?;
        // In one order, so that nobody waits in a circle.
        for id in [from.min(to), from.max(to)] {
            transaction.query_one(&self.read, &[&id]).map_err(failed)?;
        }
        for (id, amount) in [(from, -1i64), (to, 1)] {
            transaction.execute(&self.change, &[&amount, &id]).map_err(failed)?;
        }
        transaction.commit().map_err(failed)?;
        Ok(true)
    }

    fn sum(&mut self) -> Result<i64, String> {
        let row = self.client.query_one("SELECT sum(balance)::bigint FROM accounts", &[]).map_err(failed)?;
        Ok(row.get(0))
    }
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

fn teller(server: &Running) -> Result<Box<dyn Teller>, String> {
    if server.contender.is_iproto() {
        let mut client = Client::connect(&server.address, None).map_err(|error| error.to_string())?;
        let space = client.space_id("accounts").map_err(|error| error.to_string())?;
        client.set_stream(STREAM);
        return Ok(Box::new(LycosaTeller { client, space }));
    }
    let mut client = connect_postgres(&server.address)?;
    let read = client.prepare("SELECT balance FROM accounts WHERE id = $1 FOR UPDATE").map_err(failed)?;
    let change = client.prepare("UPDATE accounts SET balance = balance + $1 WHERE id = $2").map_err(failed)?;
    Ok(Box::new(PostgresTeller { client, read, change }))
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
    for (case, is_hot) in [("random accounts", false), ("one hot account", true)] {
        let mut tellers = (0..CLIENTS).map(|_| teller(server)).collect::<Result<Vec<_>, _>>()?;
        let transfers = (settings.scale.operations / PART / CLIENTS as u32).max(20);
        let before = server.cpu_seconds()?;
        let begun = Instant::now();
        let results: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..CLIENTS)
                .zip(&mut tellers)
                .map(|(id, teller)| scope.spawn(move || run_client(&mut **teller, id, transfers, is_hot)))
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("a client does not panic")).collect()
        });
        let seconds = begun.elapsed().as_secs_f64();
        let total = f64::from(transfers) * CLIENTS as f64;
        let (mut latencies, mut again) = (load::histogram(), 0);
        for result in results {
            let (more, tried_again) = result?;
            latencies.add(more).expect("both histograms have the same bounds");
            again += tried_again;
        }
        let sum = tellers[0].sum()?;
        if sum != BALANCE * ACCOUNTS as i64 {
            return Err(format!("all accounts together have {sum}"));
        }
        let found = Latencies::of(&latencies);
        turn.higher(case, "transfers", "1/s", total / seconds);
        turn.lower(case, "latency, median", "us", found.median as f64);
        turn.lower(case, "latency, 99 %", "us", found.p99 as f64);
        turn.lower(case, "longest", "us", latencies.max() as f64);
        turn.lower(case, "tried again", "of 100", again as f64 * 100.0 / total);
        turn.lower(case, "server CPU", "us each", (server.cpu_seconds()? - before) * 1e6 / total);
        turn.latencies(case, latencies);
    }
    Ok(())
}

fn run(settings: &Settings, recorder: &mut Recorder) -> Result<(), String> {
    by_turns(settings, recorder, &CONTENDERS, u64::MAX, &|server, _, found| turn(settings, server, found))
}
