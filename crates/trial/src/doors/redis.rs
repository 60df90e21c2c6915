//! Redis' protocol, in its second form and its third.

use super::speaker::{Answer, Failure, Speaker, unspeakable};
use super::{Ask, Place, Spot, counter_key, list_key, number_of, numbers_key, numbers_of, set_key, text_of, value_of};
use crate::value::Value;
use std::io::{self, Read, Write};

/// How long a client waits for an element of a list, in seconds.
const WAIT: &str = "0.02";
/// Answers within answers.
const DEPTH_MAX: usize = 8;

/// What the server says.
#[derive(Debug)]
enum Reply {
    Nothing,
    Number(i64),
    Bytes(Vec<u8>),
    Several(Vec<Reply>),
    Error(String),
}

/// Every other client speaks the third form.
pub(super) fn begin<S: Read + Write>(speaker: &mut Speaker<S>) -> Result<(), Failure> {
    if speaker.tongue.dialect.is_multiple_of(2) {
        return Ok(());
    }
    match command(speaker, &["HELLO", "3"])? {
        Reply::Error(text) => Err(Failure::Refused(text)),
        _ => Ok(()),
    }
}

pub(super) fn perform<S: Read + Write>(speaker: &mut Speaker<S>, ask: &Ask) -> Answer {
    match ask {
        Ask::Swap(number, old, new) => return swap(speaker, *number, *old, *new),
        Ask::Together(asks) => return together(speaker, asks),
        _ => {}
    }
    let words = words_of(ask).ok_or_else(|| unspeakable(ask))?;
    let parts: Vec<&str> = words.iter().map(String::as_str).collect();
    let reply = command(speaker, &parts)?;
    shape(ask, reply)
}

/// The command of an operation. None: it takes several.
fn words_of(ask: &Ask) -> Option<Vec<String>> {
    let number = |number: &u64| number.to_string();
    let words: Vec<String> = match ask {
        Ask::Get(spot) => match spot.place {
            Place::Text => vec!["GET".into(), spot.key()],
            Place::Hash => vec!["HGET".into(), spot.key(), spot.element()],
            Place::SortedSet => vec!["ZSCORE".into(), spot.key(), spot.element()],
        },
        Ask::All(Place::Text, numbers) => {
            let keys = numbers.iter().map(|number| Spot::text(*number).key());
            std::iter::once("MGET".to_string()).chain(keys).collect()
        }
        Ask::All(Place::Hash, _) => vec!["HGETALL".into(), Place::Hash.key().into()],
        Ask::All(Place::SortedSet, _) => {
            ["ZRANGE", Place::SortedSet.key(), "0", "-1", "WITHSCORES"].map(String::from).into()
        }
        Ask::Set(spot, value) => match spot.place {
            Place::Text => vec!["SET".into(), spot.key(), text_of(*value)],
            Place::Hash => vec!["HSET".into(), spot.key(), spot.element(), text_of(*value)],
            Place::SortedSet => vec!["ZADD".into(), spot.key(), number(value), spot.element()],
        },
        Ask::SetAll(pairs) => {
            let pairs = pairs.iter().flat_map(|(number, value)| [Spot::text(*number).key(), text_of(*value)]);
            std::iter::once("MSET".to_string()).chain(pairs).collect()
        }
        Ask::Add(spot, value) => match spot.place {
            Place::Text => vec!["SET".into(), spot.key(), text_of(*value), "NX".into()],
            Place::Hash => vec!["HSETNX".into(), spot.key(), spot.element(), text_of(*value)],
            Place::SortedSet => vec!["ZADD".into(), spot.key(), "NX".into(), number(value), spot.element()],
        },
        Ask::Change(spot, value) => match spot.place {
            Place::Text => vec!["SET".into(), spot.key(), text_of(*value), "XX".into()],
            // Hashes have nothing of the kind.
            Place::Hash => return None,
            Place::SortedSet => {
                vec!["ZADD".into(), spot.key(), "XX".into(), "CH".into(), number(value), spot.element()]
            }
        },
        Ask::Remove(spot) => match spot.place {
            Place::Text => vec!["DEL".into(), spot.key()],
            Place::Hash => vec!["HDEL".into(), spot.key(), spot.element()],
            Place::SortedSet => vec!["ZREM".into(), spot.key(), spot.element()],
        },
        Ask::RemoveAll(place) => vec!["UNLINK".into(), place.key().into()],
        Ask::Append(key, value) => vec!["APPEND".into(), numbers_key(*key), format!("{value},")],
        Ask::Numbers(key) => vec!["GET".into(), numbers_key(*key)],
        Ask::Push(key, value) => vec!["RPUSH".into(), list_key(*key), number(value)],
        Ask::List(key) => vec!["LRANGE".into(), list_key(*key), "0".into(), "-1".into()],
        Ask::Take(key) => vec!["LPOP".into(), list_key(*key)],
        Ask::TakeOrWait(key) => vec!["BLPOP".into(), list_key(*key), WAIT.into()],
        Ask::Move(from, to) => vec!["LMOVE".into(), list_key(*from), list_key(*to), "LEFT".into(), "RIGHT".into()],
        Ask::Put(key, value) => vec!["SADD".into(), set_key(*key), number(value)],
        Ask::Pick(key) => vec!["SPOP".into(), set_key(*key)],
        Ask::Increment(key, by) => vec!["INCRBY".into(), counter_key(*key), number(by)],
        Ask::Swap(..) | Ask::Together(_) | Ask::Transact(..) => return None,
    };
    Some(words)
}

/// The answer as that of every door.
fn shape(ask: &Ask, reply: Reply) -> Answer {
    let absurd = |reply: &Reply| Failure::Refused(format!("{ask:?} was answered by {reply:?}"));
    let flag = |is_so: bool| Ok(vec![Value::Bool(is_so)]);
    Ok(match (ask, reply) {
        (_, Reply::Error(text)) => return Err(Failure::Refused(text)),
        // Nobody has asked for a transaction.
        (_, Reply::Bytes(text)) if text == b"QUEUED" => return Err(absurd(&Reply::Bytes(text))),
        (Ask::Get(_) | Ask::Take(_) | Ask::Move(..) | Ask::Pick(_), Reply::Nothing) => Vec::new(),
        (
            Ask::Get(Spot { place: Place::SortedSet, .. }) | Ask::Take(_) | Ask::Move(..) | Ask::Pick(_),
            Reply::Bytes(text),
        ) => {
            vec![plain(&text)]
        }
        (Ask::Get(_), Reply::Bytes(text)) => vec![padded(&text)],
        (Ask::All(Place::Text, numbers), Reply::Several(replies)) if replies.len() == numbers.len() => {
            let pairs = numbers.iter().zip(&replies).filter_map(|(number, reply)| match reply {
                Reply::Bytes(text) => Some(Value::Array(vec![(*number).into(), padded(text)])),
                _ => None,
            });
            pairs.collect()
        }
        (Ask::All(place, _), Reply::Several(replies)) => {
            pairs(*place, &replies).ok_or_else(|| absurd(&Reply::Several(replies)))?
        }
        (Ask::Add(spot, _) | Ask::Change(spot, _), reply) if spot.place == Place::Text => {
            return flag(!matches!(reply, Reply::Nothing));
        }
        (Ask::Add(..) | Ask::Change(..) | Ask::Remove(_), Reply::Number(count)) => return flag(count > 0),
        (Ask::Numbers(_), Reply::Nothing) => vec![Value::Array(Vec::new())],
        (Ask::Numbers(_), Reply::Bytes(text)) => {
            let numbers = numbers_of(&text).ok_or_else(|| absurd(&Reply::Bytes(text)))?;
            vec![Value::numbers(&numbers)]
        }
        (Ask::List(_), Reply::Several(replies)) => {
            let numbers = replies.iter().map(|reply| match reply {
                Reply::Bytes(text) => plain(text),
                _ => Value::Nil,
            });
            vec![Value::Array(numbers.collect())]
        }
        (Ask::TakeOrWait(_), Reply::Nothing) => Vec::new(),
        (Ask::TakeOrWait(_), Reply::Several(replies)) => match &replies[..] {
            [_, Reply::Bytes(text)] => vec![plain(text)],
            _ => return Err(absurd(&Reply::Several(replies))),
        },
        (Ask::Increment(..), Reply::Number(number)) => vec![Value::Uint(number as u64)],
        (Ask::Set(..) | Ask::SetAll(_) | Ask::RemoveAll(_) | Ask::Append(..) | Ask::Push(..) | Ask::Put(..), _) => {
            Vec::new()
        }
        (_, reply) => return Err(absurd(&reply)),
    })
}

fn plain(text: &[u8]) -> Value {
    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    number.map_or_else(|| Value::text(text), Value::Uint)
}

fn padded(text: &[u8]) -> Value {
    value_of(text).map_or_else(|| Value::text(text), Value::Uint)
}

/// Elements with their values, one after the other or in pairs.
fn pairs(place: Place, replies: &[Reply]) -> Option<Vec<Value>> {
    let mut flat = Vec::new();
    for reply in replies {
        match reply {
            Reply::Several(pair) => flat.extend(pair),
            reply => flat.push(reply),
        }
    }
    let pair = |pair: &[&Reply]| match pair {
        [Reply::Bytes(name), Reply::Bytes(value)] => {
            let value = if place == Place::Hash { padded(value) } else { plain(value) };
            Some(Value::Array(vec![number_of(name)?.into(), value]))
        }
        _ => None,
    };
    flat.chunks(2).map(pair).collect()
}

/// Compares under the eyes of WATCH.
fn swap<S: Read + Write>(speaker: &mut Speaker<S>, number: u64, old: u64, new: u64) -> Answer {
    let key = Spot::text(number).key();
    let refused = |reply: Reply| match reply {
        Reply::Error(text) => Err(Failure::Refused(text)),
        reply => Ok(reply),
    };
    refused(command(speaker, &["WATCH", &key])?)?;
    let is_old = match refused(command(speaker, &["GET", &key])?)? {
        Reply::Bytes(text) => text == text_of(old).as_bytes(),
        _ => false,
    };
    if !is_old {
        refused(command(speaker, &["UNWATCH"])?)?;
        return Ok(vec![Value::Bool(false)]);
    }
    let mut out = Vec::new();
    put(&mut out, &["MULTI"]);
    put(&mut out, &["SET", &key, &text_of(new)]);
    put(&mut out, &["EXEC"]);
    speaker.send(&out)?;
    read(speaker, 0)?;
    read(speaker, 0)?;
    match refused(read(speaker, 0)?)? {
        Reply::Nothing => Ok(vec![Value::Nil]),
        Reply::Several(mut replies) => match replies.pop() {
            Some(Reply::Error(text)) => Err(Failure::Refused(text)),
            _ => Ok(vec![Value::Bool(true)]),
        },
        _ => Err(Failure::Broken),
    }
}

/// MULTI and EXEC.
fn together<S: Read + Write>(speaker: &mut Speaker<S>, asks: &[Ask]) -> Answer {
    let mut out = Vec::new();
    put(&mut out, &["MULTI"]);
    for ask in asks {
        let words = words_of(ask).ok_or_else(|| unspeakable(ask))?;
        let parts: Vec<&str> = words.iter().map(String::as_str).collect();
        put(&mut out, &parts);
    }
    put(&mut out, &["EXEC"]);
    speaker.send(&out)?;
    for _ in 0..=asks.len() {
        read(speaker, 0)?;
    }
    match read(speaker, 0)? {
        Reply::Several(replies) if replies.len() == asks.len() => {
            let shaped = asks.iter().zip(replies).map(|(ask, reply)| match shape(ask, reply) {
                // Those beside it were carried out, as it is with this protocol.
                Err(Failure::Refused(_)) => Ok(Value::Nil),
                shaped => shaped.map(Value::Array),
            });
            shaped.collect()
        }
        Reply::Error(text) => Err(Failure::Refused(text)),
        _ => Err(Failure::Broken),
    }
}

fn put(out: &mut Vec<u8>, parts: &[&str]) {
    out.extend_from_slice(format!("*{}\r\n", parts.len()).as_bytes());
    for part in parts {
        out.extend_from_slice(format!("${}\r\n{part}\r\n", part.len()).as_bytes());
    }
}

fn command<S: Read + Write>(speaker: &mut Speaker<S>, parts: &[&str]) -> io::Result<Reply> {
    let mut out = Vec::new();
    put(&mut out, parts);
    speaker.send(&out)?;
    read(speaker, 0)
}

fn read<S: Read + Write>(speaker: &mut Speaker<S>, depth: usize) -> io::Result<Reply> {
    let malformed = || io::Error::other("malformed answer");
    let line = speaker.line()?;
    let (kind, rest) = line.split_at_checked(1).ok_or_else(malformed)?;
    let number = || rest.parse::<i64>().map_err(|_| malformed());
    Ok(match kind {
        "+" | "," => Reply::Bytes(rest.as_bytes().to_vec()),
        "-" => Reply::Error(rest.to_string()),
        ":" => Reply::Number(number()?),
        "#" => Reply::Number(i64::from(rest == "t")),
        "_" => Reply::Nothing,
        "$" | "=" => match number()? {
            length @ 0.. => {
                let mut bytes = speaker.take(length as usize + 2)?;
                bytes.truncate(length as usize);
                Reply::Bytes(bytes)
            }
            _ => Reply::Nothing,
        },
        "*" | "~" | ">" | "%" if depth < DEPTH_MAX => match number()? {
            count @ 0.. => {
                let count = if kind == "%" { count * 2 } else { count };
                Reply::Several((0..count).map(|_| read(speaker, depth + 1)).collect::<io::Result<_>>()?)
            }
            _ => Reply::Nothing,
        },
        _ => return Err(malformed()),
    })
}
