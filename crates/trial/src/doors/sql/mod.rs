//! SQL through the doors of PostgreSQL and MySQL: texts are rows of one table, and what is more than a statement is a transaction of several that
//! locks what it reads with `FOR UPDATE`.

mod transact;
mod wire;

pub(super) use wire::begin;

use super::speaker::{Answer, Failure, Speaker, unspeakable};
use super::{Ask, Door, Place, Spot, counter_key, number_of, numbers_key, numbers_of, text_of, value_of};
use crate::value::Value;
use std::io::{Read, Write};
use wire::{Given, Row, run};

pub(super) fn perform<S: Read + Write>(speaker: &mut Speaker<S>, ask: &Ask) -> Answer {
    match ask {
        Ask::Append(key, _) | Ask::Numbers(key) => {
            ensure(speaker, &numbers_key(*key), "")?;
            one(speaker, ask, "")
        }
        Ask::Transact(level, statements) => transact::perform(speaker, *level, statements),
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
                let text = text_at(speaker, &key, " FOR UPDATE")?.unwrap_or_default();
                let number: u64 = String::from_utf8_lossy(&text).parse().map_err(|_| Failure::Broken)?;
                let sum = number + by;
                change(speaker, &key, &sum.to_string())?;
                Ok(vec![sum.into()])
            })
        }
        Ask::Swap(at, old, new) => {
            let key = Spot::text(*at).key();
            in_transaction(speaker, |speaker| {
                let Some(text) = text_at(speaker, &key, " FOR UPDATE")? else { return Ok(vec![Value::Nil]) };
                let is_old = text == text_of(*old).as_bytes();
                if is_old {
                    change(speaker, &key, &text_of(*new))?;
                }
                Ok(vec![Value::Bool(is_old)])
            })
        }
        ask => one(speaker, ask, ""),
    }
}

/// The table, and its columns of keys and of values, as the dialect has them.
fn names<S>(speaker: &Speaker<S>) -> (&'static str, &'static str, &'static str) {
    let space = speaker.tongue.space;
    match speaker.tongue.door {
        Door::Postgres => (space, "\"key\"", "\"value\""),
        _ => (space, "`key`", "`value`"),
    }
}

/// What an UPDATE sets besides: the number that memcached's clients compare changes with the value.
fn beside<S>(speaker: &Speaker<S>) -> &'static str {
    if speaker.tongue.space == Door::Memcached.name() { ", cas = NULL" } else { "" }
}

/// A request that is one statement. `lock`: what is behind a statement that reads.
fn one<S: Read + Write>(speaker: &mut Speaker<S>, ask: &Ask, lock: &str) -> Answer {
    let is_postgres = speaker.tongue.door == Door::Postgres;
    let (table, name, body) = names(speaker);
    let flag = |given: Given| Ok(vec![Value::Bool(given.changed > 0)]);
    match ask {
        Ask::Get(spot) if spot.place == Place::Text => {
            Ok(text_at(speaker, &spot.key(), lock)?.iter().map(|text| padded(text)).collect())
        }
        Ask::All(Place::Text, numbers) => {
            let keys: Vec<String> = numbers.iter().map(|number| format!("'{}'", Spot::text(*number).key())).collect();
            let keys = keys.join(", ");
            let given = run(speaker, &format!("SELECT {name}, {body} FROM {table} WHERE {name} IN ({keys}){lock}"))?;
            let pair = |row: &Row| match &row[..] {
                [name, body] => Value::Array(vec![number_of(name).map_or(Value::Nil, Value::Uint), padded(body)]),
                _ => Value::Nil,
            };
            Ok(given.rows.iter().map(pair).collect())
        }
        Ask::Set(spot, value) if spot.place == Place::Text => put(speaker, &[(spot.number, *value)]),
        Ask::SetAll(pairs) => put(speaker, pairs),
        Ask::Add(spot, value) if spot.place == Place::Text => flag(add(speaker, &spot.key(), &text_of(*value))?),
        Ask::Change(spot, value) if spot.place == Place::Text => flag(change(speaker, &spot.key(), &text_of(*value))?),
        Ask::Remove(spot) if spot.place == Place::Text => {
            flag(run(speaker, &format!("DELETE FROM {table} WHERE {name} = '{}'", spot.key()))?)
        }
        Ask::Append(key, value) => {
            let longer =
                if is_postgres { format!("{body} || '{value},'") } else { format!("CONCAT({body}, '{value},')") };
            let (key, beside) = (numbers_key(*key), beside(speaker));
            let given = run(speaker, &format!("UPDATE {table} SET {body} = {longer}{beside} WHERE {name} = '{key}'"))?;
            match given.changed {
                1 => Ok(Vec::new()),
                changed => Err(Failure::Refused(format!("{changed} rows are called {key}"))),
            }
        }
        Ask::Numbers(key) => {
            let text = text_at(speaker, &numbers_key(*key), lock)?.unwrap_or_default();
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

/// The text of a key. `lock`: what is behind the statement.
fn text_at<S: Read + Write>(speaker: &mut Speaker<S>, key: &str, lock: &str) -> Result<Option<Vec<u8>>, Failure> {
    let (table, name, body) = names(speaker);
    let given = run(speaker, &format!("SELECT {body} FROM {table} WHERE {name} = '{key}'{lock}"))?;
    Ok(given.rows.into_iter().next().and_then(|row| row.into_iter().next()))
}

/// Puts a text where one is.
fn change<S: Read + Write>(speaker: &mut Speaker<S>, key: &str, text: &str) -> Result<Given, Failure> {
    let (table, name, body) = names(speaker);
    run(speaker, &format!("UPDATE {table} SET {body} = '{text}'{} WHERE {name} = '{key}'", beside(speaker)))
}

/// Puts texts, whether they are there or not, by one statement.
fn put<S: Read + Write>(speaker: &mut Speaker<S>, pairs: &[(u64, u64)]) -> Answer {
    let row = |(number, value): &(u64, u64)| format!("('{}', '{}')", Spot::text(*number).key(), text_of(*value));
    let rows: Vec<String> = pairs.iter().map(row).collect();
    let ((table, name, body), beside) = (names(speaker), beside(speaker));
    let otherwise = match speaker.tongue.door {
        Door::Postgres => format!("ON CONFLICT ({name}) DO UPDATE SET {body} = excluded.{body}{beside}"),
        _ => format!("ON DUPLICATE KEY UPDATE {body} = VALUES({body}){beside}"),
    };
    run(speaker, &format!("INSERT INTO {table} ({name}, {body}) VALUES {} {otherwise}", rows.join(", ")))?;
    Ok(Vec::new())
}

/// Puts a text where none is.
fn add<S: Read + Write>(speaker: &mut Speaker<S>, key: &str, text: &str) -> Result<Given, Failure> {
    let (ignore, otherwise) = match speaker.tongue.door {
        Door::Postgres => ("", " ON CONFLICT DO NOTHING"),
        _ => ("IGNORE ", ""),
    };
    let (table, name, body) = names(speaker);
    run(speaker, &format!("INSERT {ignore}INTO {table} ({name}, {body}) VALUES ('{key}', '{text}'){otherwise}"))
}

/// Makes the row that transactions lock: what is not there cannot be locked.
fn ensure<S: Read + Write>(speaker: &mut Speaker<S>, key: &str, text: &str) -> Result<(), Failure> {
    match text_at(speaker, key, "")? {
        Some(_) => Ok(()),
        None => add(speaker, key, text).map(|_| ()),
    }
}

fn in_transaction<S: Read + Write>(speaker: &mut Speaker<S>, work: impl FnOnce(&mut Speaker<S>) -> Answer) -> Answer {
    run(speaker, "BEGIN")?;
    let answer = work(speaker);
    end(speaker, answer)
}

/// Commits, or rolls back what was refused.
fn end<S: Read + Write>(speaker: &mut Speaker<S>, answer: Answer) -> Answer {
    let answer = answer.and_then(|answer| run(speaker, "COMMIT").map(|_| answer));
    if let Err(Failure::Refused(_)) = &answer {
        // Nothing was committed. A connection that does not go back is of no use.
        run(speaker, "ROLLBACK")?;
    }
    answer
}
