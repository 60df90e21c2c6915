//! SQL through the doors of PostgreSQL and MySQL: texts are rows of one table, and what is more than a statement is a transaction of several that
//! locks what it reads with `FOR UPDATE`.

use super::speaker::{Answer, Failure, Speaker, unspeakable};
use super::{Ask, Door, Place, SQL_TABLE, Spot, counter_key, number_of, numbers_key, numbers_of, text_of, value_of};
use crate::value::Value;
use std::io::{Read, Write};

/// A row's values, nulls as nothing.
type Row = Vec<Vec<u8>>;

/// What a statement gave: its rows, and how many it changed.
#[derive(Default)]
struct Given {
    rows: Vec<Row>,
    changed: u64,
}

/// Logs in: the listener says as whom.
pub(super) fn begin<S: Read + Write>(speaker: &mut Speaker<S>) -> Result<(), Failure> {
    if speaker.tongue.door == Door::Postgres {
        let body = b"\0\x03\0\0user\0trial\0database\0lycosa\0\0";
        speaker.send(&[&(body.len() as u32 + 4).to_be_bytes()[..], body].concat())?;
        loop {
            match message(speaker)? {
                (b'Z', _) => return Ok(()),
                (b'E', _) => return Err(Failure::Broken),
                _ => {}
            }
        }
    }
    packet(speaker)?;
    // Long passwords, rows that were found count as changed, a database, 4.1, secure, authentication by a plugin.
    let abilities: u32 = 1 | 1 << 1 | 1 << 3 | 1 << 9 | 1 << 13 | 1 << 15 | 1 << 19;
    let rest = b"trial\0\0lycosa\0mysql_native_password\0";
    let body = [&abilities.to_le_bytes()[..], &[0, 0, 0, 1, 45], &[0; 23], rest].concat();
    send_packet(speaker, 1, &body)?;
    match packet(speaker)?.first() {
        Some(0) => Ok(()),
        _ => Err(Failure::Broken),
    }
}

pub(super) fn perform<S: Read + Write>(speaker: &mut Speaker<S>, ask: &Ask) -> Answer {
    match ask {
        Ask::Append(key, _) | Ask::Numbers(key) => {
            ensure(speaker, &numbers_key(*key), "")?;
            one(speaker, ask, "")
        }
        Ask::Together(asks) => {
            for ask in asks {
                if let Ask::Append(key, _) | Ask::Numbers(key) = ask {
                    ensure(speaker, &numbers_key(*key), "")?;
                }
            }
            in_transaction(speaker, |speaker| {
                asks.iter().map(|ask| Ok(Value::Array(one(speaker, ask, " FOR UPDATE")?))).collect()
            })
        }
        Ask::Increment(key, by) => {
            let key = counter_key(*key);
            ensure(speaker, &key, "0")?;
            in_transaction(speaker, |speaker| {
                let text = body(speaker, &key, " FOR UPDATE")?.unwrap_or_default();
                let number: u64 = String::from_utf8_lossy(&text).parse().map_err(|_| Failure::Broken)?;
                let sum = number + by;
                run(speaker, &format!("UPDATE {SQL_TABLE} SET body = '{sum}' WHERE name = '{key}'"))?;
                Ok(vec![sum.into()])
            })
        }
        Ask::Swap(at, old, new) => {
            let key = Spot::text(*at).key();
            in_transaction(speaker, |speaker| {
                let Some(text) = body(speaker, &key, " FOR UPDATE")? else { return Ok(vec![Value::Nil]) };
                let is_old = text == text_of(*old).as_bytes();
                if is_old {
                    let new = text_of(*new);
                    run(speaker, &format!("UPDATE {SQL_TABLE} SET body = '{new}' WHERE name = '{key}'"))?;
                }
                Ok(vec![Value::Bool(is_old)])
            })
        }
        ask => one(speaker, ask, ""),
    }
}

/// A request that is one statement. `lock`: what is behind a statement that reads.
fn one<S: Read + Write>(speaker: &mut Speaker<S>, ask: &Ask, lock: &str) -> Answer {
    let is_postgres = speaker.tongue.door == Door::Postgres;
    let flag = |given: Given| Ok(vec![Value::Bool(given.changed > 0)]);
    match ask {
        Ask::Get(spot) if spot.place == Place::Text => {
            Ok(body(speaker, &spot.key(), lock)?.iter().map(|text| padded(text)).collect())
        }
        Ask::All(Place::Text, numbers) => {
            let keys: Vec<String> = numbers.iter().map(|number| format!("'{}'", Spot::text(*number).key())).collect();
            let keys = keys.join(", ");
            let given = run(speaker, &format!("SELECT name, body FROM {SQL_TABLE} WHERE name IN ({keys}){lock}"))?;
            let pair = |row: &Row| match &row[..] {
                [name, body] => Value::Array(vec![number_of(name).map_or(Value::Nil, Value::Uint), padded(body)]),
                _ => Value::Nil,
            };
            Ok(given.rows.iter().map(pair).collect())
        }
        Ask::Set(spot, value) if spot.place == Place::Text => put(speaker, &[(spot.number, *value)]),
        Ask::SetAll(pairs) => put(speaker, pairs),
        Ask::Add(spot, value) if spot.place == Place::Text => flag(add(speaker, &spot.key(), &text_of(*value))?),
        Ask::Change(spot, value) if spot.place == Place::Text => {
            let (key, text) = (spot.key(), text_of(*value));
            flag(run(speaker, &format!("UPDATE {SQL_TABLE} SET body = '{text}' WHERE name = '{key}'"))?)
        }
        Ask::Remove(spot) if spot.place == Place::Text => {
            flag(run(speaker, &format!("DELETE FROM {SQL_TABLE} WHERE name = '{}'", spot.key()))?)
        }
        Ask::Append(key, value) => {
            let longer = if is_postgres { format!("body || '{value},'") } else { format!("CONCAT(body, '{value},')") };
            let key = numbers_key(*key);
            let given = run(speaker, &format!("UPDATE {SQL_TABLE} SET body = {longer} WHERE name = '{key}'"))?;
            match given.changed {
                1 => Ok(Vec::new()),
                changed => Err(Failure::Refused(format!("{changed} rows are called {key}"))),
            }
        }
        Ask::Numbers(key) => {
            let text = body(speaker, &numbers_key(*key), lock)?.unwrap_or_default();
            match numbers_of(&text) {
                Some(numbers) => Ok(vec![Value::numbers(&numbers)]),
                None => Err(Failure::Refused(format!("{} are no numbers", String::from_utf8_lossy(&text)))),
            }
        }
        other => Err(unspeakable(other)),
    }
}

fn padded(text: &[u8]) -> Value {
    value_of(text).map_or_else(|| Value::text(text), Value::Uint)
}

fn body<S: Read + Write>(speaker: &mut Speaker<S>, key: &str, lock: &str) -> Result<Option<Vec<u8>>, Failure> {
    let given = run(speaker, &format!("SELECT body FROM {SQL_TABLE} WHERE name = '{key}'{lock}"))?;
    Ok(given.rows.into_iter().next().and_then(|row| row.into_iter().next()))
}

/// Puts texts, whether they are there or not, by one statement.
fn put<S: Read + Write>(speaker: &mut Speaker<S>, pairs: &[(u64, u64)]) -> Answer {
    let row = |(number, value): &(u64, u64)| format!("('{}', '{}')", Spot::text(*number).key(), text_of(*value));
    let rows: Vec<String> = pairs.iter().map(row).collect();
    let otherwise = match speaker.tongue.door {
        Door::Postgres => "ON CONFLICT (name) DO UPDATE SET body = excluded.body",
        _ => "ON DUPLICATE KEY UPDATE body = VALUES(body)",
    };
    run(speaker, &format!("INSERT INTO {SQL_TABLE} (name, body) VALUES {} {otherwise}", rows.join(", ")))?;
    Ok(Vec::new())
}

/// Puts a text where none is.
fn add<S: Read + Write>(speaker: &mut Speaker<S>, key: &str, text: &str) -> Result<Given, Failure> {
    let (ignore, otherwise) = match speaker.tongue.door {
        Door::Postgres => ("", " ON CONFLICT DO NOTHING"),
        _ => ("IGNORE ", ""),
    };
    run(speaker, &format!("INSERT {ignore}INTO {SQL_TABLE} (name, body) VALUES ('{key}', '{text}'){otherwise}"))
}

/// Makes the row that transactions lock: what is not there cannot be locked.
fn ensure<S: Read + Write>(speaker: &mut Speaker<S>, key: &str, text: &str) -> Result<(), Failure> {
    match body(speaker, key, "")? {
        Some(_) => Ok(()),
        None => add(speaker, key, text).map(|_| ()),
    }
}

fn in_transaction<S: Read + Write>(speaker: &mut Speaker<S>, work: impl FnOnce(&mut Speaker<S>) -> Answer) -> Answer {
    run(speaker, "BEGIN")?;
    let answer = work(speaker).and_then(|answer| run(speaker, "COMMIT").map(|_| answer));
    if let Err(Failure::Refused(_)) = &answer {
        // Nothing was committed. A connection that does not go back is of no use.
        run(speaker, "ROLLBACK")?;
    }
    answer
}

/// Runs a statement.
fn run<S: Read + Write>(speaker: &mut Speaker<S>, sql: &str) -> Result<Given, Failure> {
    match speaker.tongue.door {
        Door::Postgres => run_postgres(speaker, sql),
        _ => run_mysql(speaker, sql),
    }
}

/// A message of PostgreSQL's protocol.
fn message<S: Read + Write>(speaker: &mut Speaker<S>) -> Result<(u8, Vec<u8>), Failure> {
    let kind = speaker.take(1)?[0];
    let length = speaker.u32()?.checked_sub(4).ok_or(Failure::Broken)?;
    Ok((kind, speaker.take(length as usize)?))
}

/// One dialect is simple queries, the other one the extended protocol.
fn run_postgres<S: Read + Write>(speaker: &mut Speaker<S>, sql: &str) -> Result<Given, Failure> {
    let framed = |kind: u8, body: &[u8]| [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat();
    let text = [sql.as_bytes(), b"\0"].concat();
    let asked = match speaker.tongue.dialect % 2 {
        0 => framed(b'Q', &text),
        _ => [
            framed(b'P', &[b"\0", &text[..], b"\0\0"].concat()),
            framed(b'B', &[0; 8]),
            framed(b'E', &[0; 5]),
            framed(b'S', &[]),
        ]
        .concat(),
    };
    speaker.send(&asked)?;
    let (mut given, mut refused) = (Given::default(), None);
    loop {
        let (kind, body) = message(speaker)?;
        match kind {
            b'Z' => break,
            b'E' => {
                let parts = body.split(|byte| *byte == 0).filter(|part| matches!(part.first(), Some(b'C' | b'M')));
                let words: Vec<_> = parts.map(|part| String::from_utf8_lossy(&part[1..]).into_owned()).collect();
                refused = Some(words.join(" "));
            }
            b'C' => {
                let tag = String::from_utf8_lossy(&body);
                let count = tag.trim_end_matches('\0').rsplit(' ').next().and_then(|word| word.parse().ok());
                given.changed = count.unwrap_or(0);
            }
            b'D' => {
                let mut rest = body.get(2..).ok_or(Failure::Broken)?;
                let mut row = Vec::new();
                while let Some((length, more)) = rest.split_first_chunk::<4>() {
                    // Null is -1.
                    let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
                    let (value, more) = more.split_at_checked(length).ok_or(Failure::Broken)?;
                    row.push(value.to_vec());
                    rest = more;
                }
                given.rows.push(row);
            }
            _ => {}
        }
    }
    refused.map_or(Ok(given), |text| Err(Failure::Refused(text)))
}

/// A packet of MySQL's protocol.
fn packet<S: Read + Write>(speaker: &mut Speaker<S>) -> Result<Vec<u8>, Failure> {
    let head = speaker.take(4)?;
    Ok(speaker.take(usize::from(head[0]) | usize::from(head[1]) << 8 | usize::from(head[2]) << 16)?)
}

fn send_packet<S: Read + Write>(speaker: &mut Speaker<S>, sequence: u8, body: &[u8]) -> Result<(), Failure> {
    let [a, b, c, _] = (body.len() as u32).to_le_bytes();
    Ok(speaker.send(&[&[a, b, c, sequence][..], body].concat())?)
}

/// A number as MySQL writes lengths; null is 0. None: it is cut.
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let width = match first {
        0xfb => return Some((0, rest)),
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        short => return Some((usize::from(*short), rest)),
    };
    let (number, rest) = rest.split_at_checked(width)?;
    Some((number.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest))
}

fn run_mysql<S: Read + Write>(speaker: &mut Speaker<S>, sql: &str) -> Result<Given, Failure> {
    send_packet(speaker, 0, &[b"\x03", sql.as_bytes()].concat())?;
    let refused = |body: &[u8]| {
        let code = body.get(1..3).map_or(0, |code| u16::from_le_bytes([code[0], code[1]]));
        Failure::Refused(format!("{code} {}", String::from_utf8_lossy(body.get(9..).unwrap_or_default())))
    };
    let first = packet(speaker)?;
    let mut given = Given::default();
    let columns = match first.first() {
        None => return Err(Failure::Broken),
        Some(0xff) => return Err(refused(&first)),
        Some(0) => {
            given.changed = length(&first[1..]).ok_or(Failure::Broken)?.0 as u64;
            return Ok(given);
        }
        Some(count) => *count,
    };
    // Columns, and the end of them.
    for _ in 0..=columns {
        packet(speaker)?;
    }
    loop {
        let body = packet(speaker)?;
        match body.first() {
            Some(0xff) => return Err(refused(&body)),
            Some(0xfe) if body.len() < 9 => return Ok(given),
            _ => {}
        }
        let (mut row, mut rest) = (Vec::new(), &body[..]);
        while !rest.is_empty() {
            let (size, more) = length(rest).ok_or(Failure::Broken)?;
            let (value, more) = more.split_at_checked(size).ok_or(Failure::Broken)?;
            row.push(value.to_vec());
            rest = more;
        }
        given.rows.push(row);
    }
}
