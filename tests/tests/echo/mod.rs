//! A toy protocol: echoes lines. All that a protocol needs besides this folder is its line in the table of doors that the event loop is given.
//!
//! `put KEY VALUE` and `get KEY` are about rows, `sleep MS` waits, `quit` ends the connection; other lines come back. Answers are
//! lines, in the order of the requests.

use database::{Context, Database, Error, ErrorCode, Key, Operation, Result, ScanRequest, SessionKind};
use protocol::{Connection, Door, Split};
use runtime::fiber;
use std::rc::Rc;
use storage::IteratorKind;
use tuple::msgpack::{self, Reader};
use tuple::{IndexId, SpaceId};
use wal::Position;

/// Longest line, with its end.
pub(crate) const LINE_BYTES_MAX: usize = 1024;
/// The space of `put` and `get`: `[key, value]`.
pub(crate) const SPACE: u32 = 512;

pub(crate) struct Echo;

/// An answer: a line.
fn answer(connection: &Connection, seen: Position, text: &str) -> Result<()> {
    connection.answer(seen, 0, |out| {
        out.extend_from_slice(text.as_bytes());
        out.push(b'\n');
        Ok(())
    })
}

fn key_of(text: &str) -> Vec<u8> {
    let mut key = vec![0x91];
    msgpack::encode_str(&mut key, text.as_bytes());
    key
}

fn put(connection: &Connection, context: &Context, key: &str, value: &str) -> Result<()> {
    let database = connection.database();
    let mut row = vec![0x92];
    msgpack::encode_str(&mut row, key.as_bytes());
    msgpack::encode_str(&mut row, value.as_bytes());
    context.seen.set(Position::default());
    database.execute(context, &database.space(SpaceId(SPACE))?, Operation::Replace { tuple: &row })?;
    answer(connection, context.seen.get(), "stored")
}

fn get(connection: &Connection, context: &Context, key: &str) -> Result<()> {
    let database = connection.database();
    let space = database.space(SpaceId(SPACE))?;
    let (key, mut found) = (key_of(key), "nothing".to_string());
    let request = ScanRequest::new(IndexId::PRIMARY, IteratorKind::Eq, Key::decode(&key)?);
    database.select(context, &space, &request, |row| {
        let mut reader = Reader::new(row);
        let value = reader.read_array().and_then(|_| reader.read_str()).and_then(|_| reader.read_str());
        found = String::from_utf8_lossy(value.unwrap_or(b"?")).into_owned();
        true
    })?;
    answer(connection, database.written(&space), &found)
}

impl Door for Echo {
    type Request<'a> = &'a str;
    type State = ();
    const NAME: &'static str = "echo";
    const IS_ORDERED: bool = true;
    const SESSION: SessionKind = SessionKind::Binary;

    fn greet(&self, _database: &Database, _out: &mut Vec<u8>) {}

    fn split<'a>(&self, (): &(), input: &'a [u8]) -> Split<&'a str> {
        let end = input.iter().position(|byte| *byte == b'\n');
        if end.map_or(input.len(), |end| end + 1) > LINE_BYTES_MAX {
            let error = Error::new(ErrorCode::Unsupported, &[&"Echo", &"lines as long as this one"]);
            return Split::Refused { error, length: None };
        }
        let Some(end) = end else { return Split::Incomplete { announced: 0 } };
        match std::str::from_utf8(&input[..end]) {
            Ok(line) => Split::Request(line, end + 1),
            Err(_) => Split::Refused { error: Error::illegal("this is no text"), length: Some(end + 1) },
        }
    }

    fn serve(&self, connection: &Rc<Connection>, (): &(), line: &&str) -> Result<()> {
        let words: Vec<&str> = line.split(' ').collect();
        match *words {
            ["put", key, value] => put(connection, connection.context(), key, value),
            ["get", key] => get(connection, connection.context(), key),
            ["sleep", time] => {
                let time_ms: u64 = time.parse().map_err(|_| Error::illegal("no time"))?;
                connection.in_fiber(0, (time_ms, |_| "a sleep".to_string()), |connection, _, time_ms| {
                    fiber::sleep(time_ms * 1_000_000);
                    answer(connection, Position::default(), "awake")
                });
                Ok(())
            }
            ["quit"] => {
                connection.end();
                answer(connection, Position::default(), "bye")
            }
            _ => answer(connection, Position::default(), line),
        }
    }

    fn tag(_: &&str) -> u64 {
        0
    }

    fn describe(line: &&str) -> String {
        format!("line of {} bytes", line.len())
    }

    fn encode_failure(&self, _: &Database, out: &mut Vec<u8>, _: u64, error: &Error) {
        out.extend_from_slice(format!("error {}: {error}\n", error.code()).as_bytes());
    }
}
