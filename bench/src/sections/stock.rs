//! The inventory: captures and releases, on all servers.

use super::Section;
use super::disk::{ENGINE, by_turns_on_disk};
use crate::compare::{Settings, by_turns};
use crate::contender::{Contender, Running};
use crate::generator;
use crate::inventory;
use crate::results::{Recorder, Turn};
use crate::shops::{self, MariadbShop, MysqlStatements, PostgresShop, PostgresStatements, RedisShop, Shop};
use hdrhistogram::Histogram;
use load::{Client, Latencies};
use std::sync::atomic::AtomicU64;

pub(crate) const SECTION: Section = Section {
    name: "inventory",
    title: "Inventory: capture and release",
    about: "1,000 items in three warehouses; half of the operations take units of an item from wherever there are some, all or none, half give units \
            back. 16 clients, each with a connection and one operation in flight, one round trip for each: Lua procedures on Lycosa and \
            Tarantool, scripts over hashes and a set kept by hand on Redis and on Lycosa by Redis' protocol, procedures with SELECT ... FOR UPDATE on MariaDB and PostgreSQL. At the end the stock \
            must be exact.",
    run,
};

pub(crate) const DISK: Section = Section {
    name: "disk-inventory",
    title: "On disk: the inventory",
    about: "The same procedures and clients, with the stock in the disk engine.",
    run: run_on_disk,
};

pub(crate) const STATEMENTS: Section = Section {
    name: "sql-inventory",
    title: "Inventory by statements of SQL",
    about: "The same stock and clients with a round trip for each statement: a capture is BEGIN, SELECT ... FOR UPDATE, one or more UPDATE, COMMIT; a release is one \
            UPDATE. All statements are prepared, no procedures. The same two programs, one for MySQL's protocol and one for PostgreSQL's, on Lycosa and on the \
            servers that they were written for. A server that answers at once and does nothing shows what the machine and the clients leave to any server of one thread.",
    run: run_statements,
};

pub(crate) const CASE: &str = "capture and release";
const ITEMS: u64 = 1000;
const CLIENTS: u64 = 16;
/// memcached has no atomic operation over several keys.
const CONTENDERS: [Contender; 12] = [
    Contender::Lycosa,
    Contender::LycosaWrite,
    Contender::LycosaRedis,
    Contender::LycosaRedisWrite,
    Contender::Tarantool,
    Contender::TarantoolFsync,
    Contender::Redis,
    Contender::RedisAlways,
    Contender::Mariadb,
    Contender::MariadbDurable,
    Contender::Postgres,
    Contender::PostgresDurable,
];
/// Servers of SQL.
const SQL_CONTENDERS: [Contender; 10] = [
    Contender::LycosaMysql,
    Contender::LycosaMysqlWrite,
    Contender::LycosaPostgres,
    Contender::LycosaPostgresWrite,
    Contender::MariadbDurable,
    Contender::Mariadb,
    Contender::PostgresDurable,
    Contender::Postgres,
    Contender::NothingMysql,
    Contender::NothingPostgres,
];
/// The SQL servers do so much less in the same time.
const SQL_PART: u32 = 4;

fn shop(server: &Running) -> Result<Box<dyn Shop>, String> {
    Ok(match server.contender {
        other if other.is_redis() => Box::new(RedisShop::connect(&server.address)?),
        Contender::Mariadb | Contender::MariadbDurable => Box::new(MariadbShop::connect(&server.address)?),
        Contender::Postgres | Contender::PostgresDurable => Box::new(PostgresShop::connect(&server.address)?),
        other => return Err(format!("{} has no shop", other.label())),
    })
}

/// A client that sends statements.
fn statements(server: &Running) -> Result<Box<dyn Shop>, String> {
    Ok(match server.contender.speaks_mysql() {
        true => Box::new(MysqlStatements::connect(&server.address)?),
        false => Box::new(PostgresStatements::connect(&server.address)?),
    })
}

/// Seconds and latencies.
fn work(server: &Running, work: &generator::Work) -> Result<(f64, Histogram<u64>), String> {
    if server.contender.is_iproto() {
        let own = inventory::Settings { address: server.address.clone(), clients: CLIENTS, survive: false };
        let outcome = inventory::run(&own, work, &AtomicU64::new(0))?;
        if outcome.faults.count > 0 {
            return Err(format!("the final state is {}", outcome.faults));
        }
        return Ok((outcome.seconds, outcome.latencies));
    }
    let shops = (0..CLIENTS).map(|_| shop(server)).collect::<Result<Vec<_>, _>>()?;
    let outcome = shops::run(shops, work, true)?;
    Ok((outcome.seconds, outcome.latencies))
}

fn run_on_disk(settings: &Settings, recorder: &mut Recorder) -> Result<(), String> {
    let contenders = [Contender::Lycosa, Contender::LycosaWrite, Contender::Tarantool, Contender::TarantoolFsync];
    by_turns_on_disk(settings, recorder, &contenders, u64::MAX, &|server, round, found| {
        Client::connect(&server.address, None)
            .and_then(|mut client| client.eval(&format!("bench_inventory('{ENGINE}')"), &[]))
            .map_err(|error| format!("making the inventory: {error}"))?;
        turn(settings, server, round, found)
    })
}

fn turn(settings: &Settings, server: &mut Running, round: u64, turn: &mut Turn) -> Result<(), String> {
    let is_sql = !server.contender.is_iproto() && !server.contender.is_redis();
    let operations = settings.scale.operations / if is_sql { SQL_PART } else { 1 };
    measured(server, operations, round, turn, &work)
}

fn run_statements(settings: &Settings, recorder: &mut Recorder) -> Result<(), String> {
    by_turns(settings, recorder, &SQL_CONTENDERS, u64::MAX, &|server, round, found| {
        measured(server, settings.scale.operations / SQL_PART, round, found, &|server, work| {
            let shops = (0..CLIENTS).map(|_| statements(server)).collect::<Result<Vec<_>, _>>()?;
            let outcome = shops::run(shops, work, !server.contender.does_nothing())?;
            Ok((outcome.seconds, outcome.latencies))
        })
    })
}

/// Does the work on a server: seconds and latencies.
type Measured<'a> = dyn Fn(&Running, &generator::Work) -> Result<(f64, Histogram<u64>), String> + 'a;

/// Runs so many operations.
fn measured(server: &Running, operations: u32, round: u64, turn: &mut Turn, work: &Measured<'_>) -> Result<(), String> {
    let generated = generator::generate(ITEMS, operations as usize, round);
    let before = server.cpu_seconds()?;
    let (seconds, latencies) = work(server, &generated)?;
    let each_us = (server.cpu_seconds()? - before) * 1e6 / f64::from(operations);
    turn.higher(CASE, "operations", "1/s", f64::from(operations) / seconds);
    let found = Latencies::of(&latencies);
    turn.lower(CASE, "latency, median", "us", found.median as f64);
    turn.lower(CASE, "latency, 99 %", "us", found.p99 as f64);
    turn.lower(CASE, "server CPU", "us each", each_us);
    turn.latencies(CASE, latencies);
    Ok(())
}

fn run(settings: &Settings, recorder: &mut Recorder) -> Result<(), String> {
    by_turns(settings, recorder, &CONTENDERS, u64::MAX, &|server, round, found| turn(settings, server, round, found))
}
