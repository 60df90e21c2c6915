//! Tokyo Tyrant's protocols: its binary one, a part of memcached's, HTTP.

use super::speaker::{Answer, Failure, Speaker, unspeakable};
use super::{Ask, Place, Spot, counter_key, memcached, number_of, numbers_key, numbers_of, text_of, value_of};
use crate::value::Value;
use std::io::{Read, Write};

pub(super) fn perform<S: Read + Write>(speaker: &mut Speaker<S>, ask: &Ask) -> Answer {
    match (speaker.tongue.dialect % 3, ask) {
        // Its numbers are no text, and it does not say how many there were.
        (
            1,
            Ask::Get(_)
            | Ask::All(..)
            | Ask::Set(..)
            | Ask::Add(..)
            | Ask::Remove(_)
            | Ask::Append(..)
            | Ask::Numbers(_),
        ) => memcached::perform(speaker, ask),
        (2, Ask::Get(_) | Ask::Set(..) | Ask::Add(..) | Ask::Remove(_) | Ask::Append(..) | Ask::Numbers(_)) => {
            by_http(speaker, ask)
        }
        _ => by_bytes(speaker, ask),
    }
}

/// A request of the binary protocol: lengths, then parts.
fn request(command: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut out = vec![0xc8, command];
    parts.iter().for_each(|part| out.extend_from_slice(&(part.len() as u32).to_be_bytes()));
    parts.iter().for_each(|part| out.extend_from_slice(part));
    out
}

/// Sends it. True: it was done.
fn is_done<S: Read + Write>(speaker: &mut Speaker<S>, request: &[u8]) -> Result<bool, Failure> {
    speaker.send(request)?;
    Ok(speaker.take(1)?[0] == 0)
}

fn get<S: Read + Write>(speaker: &mut Speaker<S>, key: &str) -> Result<Option<Vec<u8>>, Failure> {
    if !is_done(speaker, &request(0x30, &[key.as_bytes()]))? {
        return Ok(None);
    }
    let length = speaker.u32()?;
    Ok(Some(speaker.take(length as usize)?))
}

fn padded(text: &[u8]) -> Value {
    value_of(text).map_or_else(|| Value::text(text), Value::Uint)
}

fn numbers(text: Option<Vec<u8>>) -> Answer {
    let text = text.unwrap_or_default();
    match numbers_of(&text) {
        Some(numbers) => Ok(vec![Value::numbers(&numbers)]),
        None => Err(Failure::Refused(format!("{} are no numbers", String::from_utf8_lossy(&text)))),
    }
}

fn by_bytes<S: Read + Write>(speaker: &mut Speaker<S>, ask: &Ask) -> Answer {
    let flag = |is_so: bool| Ok(vec![Value::Bool(is_so)]);
    let done = |is_so: bool| match is_so {
        true => Ok(Vec::new()),
        false => Err(Failure::Refused("code 1".to_string())),
    };
    match ask {
        Ask::Get(spot) if spot.place == Place::Text => {
            Ok(get(speaker, &spot.key())?.into_iter().map(|text| padded(&text)).collect())
        }
        Ask::All(Place::Text, numbers) => {
            let mut out = vec![0xc8, 0x31];
            out.extend_from_slice(&(numbers.len() as u32).to_be_bytes());
            for number in numbers {
                let key = Spot::text(*number).key();
                out.extend_from_slice(&(key.len() as u32).to_be_bytes());
                out.extend_from_slice(key.as_bytes());
            }
            if !is_done(speaker, &out)? {
                return done(false);
            }
            let mut found = Vec::new();
            for _ in 0..speaker.u32()? {
                let (key, value) = (speaker.u32()?, speaker.u32()?);
                let key = speaker.take(key as usize)?;
                let value = speaker.take(value as usize)?;
                found.push(Value::Array(vec![number_of(&key).map_or(Value::Nil, Value::Uint), padded(&value)]));
            }
            Ok(found)
        }
        Ask::Set(spot, value) if spot.place == Place::Text => {
            done(is_done(speaker, &request(0x10, &[spot.key().as_bytes(), text_of(*value).as_bytes()]))?)
        }
        Ask::Add(spot, value) if spot.place == Place::Text => {
            flag(is_done(speaker, &request(0x11, &[spot.key().as_bytes(), text_of(*value).as_bytes()]))?)
        }
        Ask::Remove(spot) if spot.place == Place::Text => {
            flag(is_done(speaker, &request(0x20, &[spot.key().as_bytes()]))?)
        }
        Ask::Append(key, value) => {
            let value = format!("{value},");
            done(is_done(speaker, &request(0x12, &[numbers_key(*key).as_bytes(), value.as_bytes()]))?)
        }
        Ask::Numbers(key) => numbers(get(speaker, &numbers_key(*key))?),
        Ask::Increment(key, by) => {
            let key = counter_key(*key);
            let mut out = vec![0xc8, 0x60];
            out.extend_from_slice(&(key.len() as u32).to_be_bytes());
            out.extend_from_slice(&(*by as u32).to_be_bytes());
            out.extend_from_slice(key.as_bytes());
            match is_done(speaker, &out)? {
                true => Ok(vec![u64::from(speaker.u32()?).into()]),
                false => done(false),
            }
        }
        other => Err(unspeakable(other)),
    }
}

/// Sends a request of HTTP. Status and body of the answer.
fn http<S: Read + Write>(
    speaker: &mut Speaker<S>,
    method: &str,
    key: &str,
    mode: Option<u8>,
    body: &str,
) -> Result<(u16, Vec<u8>), Failure> {
    let mode = mode.map_or(String::new(), |mode| format!("X-TT-PDMODE: {mode}\r\n"));
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    speaker.send(format!("{method} /{key} HTTP/1.1\r\nHost: localhost\r\n{mode}{length}\r\n{body}").as_bytes())?;
    let status = speaker.line()?.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or(Failure::Broken)?;
    let mut length = 0;
    loop {
        let line = speaker.line()?.to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(text) = line.strip_prefix("content-length:") {
            length = text.trim().parse().map_err(|_| Failure::Broken)?;
        }
    }
    Ok((status, speaker.take(length)?))
}

fn by_http<S: Read + Write>(speaker: &mut Speaker<S>, ask: &Ask) -> Answer {
    let get = |speaker: &mut Speaker<S>, key: &str| match http(speaker, "GET", key, None, "")? {
        (200, body) => Ok(Some(body)),
        (404, _) => Ok(None),
        (status, body) => Err(Failure::Refused(format!("{status} {}", String::from_utf8_lossy(&body)))),
    };
    let put = |speaker: &mut Speaker<S>, key: &str, mode: u8, value: &str| match http(
        speaker,
        "PUT",
        key,
        Some(mode),
        value,
    )? {
        (201, _) => Ok(true),
        (409, _) => Ok(false),
        (status, body) => Err(Failure::Refused(format!("{status} {}", String::from_utf8_lossy(&body)))),
    };
    match ask {
        Ask::Get(spot) => Ok(get(speaker, &spot.key())?.into_iter().map(|text| padded(&text)).collect()),
        Ask::Numbers(key) => numbers(get(speaker, &numbers_key(*key))?),
        Ask::Set(spot, value) => put(speaker, &spot.key(), 0, &text_of(*value)).map(|_| Vec::new()),
        Ask::Add(spot, value) => Ok(vec![Value::Bool(put(speaker, &spot.key(), 1, &text_of(*value))?)]),
        Ask::Append(key, value) => put(speaker, &numbers_key(*key), 2, &format!("{value},")).map(|_| Vec::new()),
        Ask::Remove(spot) => match http(speaker, "DELETE", &spot.key(), None, "")? {
            (200, _) => Ok(vec![Value::Bool(true)]),
            (404, _) => Ok(vec![Value::Bool(false)]),
            (status, body) => Err(Failure::Refused(format!("{status} {}", String::from_utf8_lossy(&body)))),
        },
        other => Err(unspeakable(other)),
    }
}
