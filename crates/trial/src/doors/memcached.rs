//! memcached's protocols: the old words, the meta commands, the binary one.

use super::speaker::{Answer, Failure, Speaker, unspeakable};
use super::{Ask, Door, Place, Spot, counter_key, number_of, numbers_key, numbers_of, text_of, value_of};
use crate::value::Value;
use std::io::{Read, Write};

/// An append finds nothing, an add something: so often at most.
const ATTEMPTS_MAX: usize = 20;

/// How something is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Store {
    Set,
    Add,
    Replace,
    Append,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stored {
    Done,
    /// Something is there that must not be, or nothing that must be.
    Declined,
    /// Another cas.
    Exists,
    NotFound,
}

/// A value and its cas.
type Found = Option<(Vec<u8>, u64)>;

pub(super) fn perform<S: Read + Write>(speaker: &mut Speaker<S>, ask: &Ask) -> Answer {
    let flag = |is_so: bool| Ok(vec![Value::Bool(is_so)]);
    match ask {
        Ask::Get(Spot { place: Place::Text, number }) => {
            let found = get(speaker, &Spot::text(*number).key())?;
            Ok(found.into_iter().map(|(text, _)| padded(&text)).collect())
        }
        Ask::All(Place::Text, numbers) => get_all(speaker, numbers),
        Ask::Set(spot, value) if spot.place == Place::Text => {
            match store(speaker, Store::Set, &spot.key(), &text_of(*value), 0)? {
                Stored::Done => Ok(Vec::new()),
                _ => Err(Failure::Refused("a set was not stored".to_string())),
            }
        }
        Ask::Add(spot, value) if spot.place == Place::Text => {
            flag(store(speaker, Store::Add, &spot.key(), &text_of(*value), 0)? == Stored::Done)
        }
        Ask::Change(spot, value) if spot.place == Place::Text => {
            flag(store(speaker, Store::Replace, &spot.key(), &text_of(*value), 0)? == Stored::Done)
        }
        Ask::Remove(spot) if spot.place == Place::Text => flag(delete(speaker, &spot.key())?),
        Ask::Swap(number, old, new) if speaker.tongue.door == Door::Memcached => {
            let key = Spot::text(*number).key();
            let found = get(speaker, &key)?;
            let Some((_, cas)) = found.filter(|(text, _)| text == text_of(*old).as_bytes()) else { return flag(false) };
            match store(speaker, Store::Set, &key, &text_of(*new), cas)? {
                Stored::Done => flag(true),
                Stored::NotFound => flag(false),
                Stored::Exists | Stored::Declined => Ok(vec![Value::Nil]),
            }
        }
        Ask::Append(key, value) => {
            let (key, value) = (numbers_key(*key), format!("{value},"));
            for _ in 0..ATTEMPTS_MAX {
                for how in [Store::Append, Store::Add] {
                    if store(speaker, how, &key, &value, 0)? == Stored::Done {
                        return Ok(Vec::new());
                    }
                }
            }
            Err(Failure::Refused(format!("{key} is neither there nor not there")))
        }
        Ask::Numbers(key) => {
            let text = get(speaker, &numbers_key(*key))?.map(|(text, _)| text).unwrap_or_default();
            match numbers_of(&text) {
                Some(numbers) => Ok(vec![Value::numbers(&numbers)]),
                None => Err(Failure::Refused(format!("{} are no numbers", String::from_utf8_lossy(&text)))),
            }
        }
        Ask::Increment(key, by) => {
            let key = counter_key(*key);
            for _ in 0..ATTEMPTS_MAX {
                if let Some(number) = increment(speaker, &key, *by)? {
                    return Ok(vec![number.into()]);
                }
                if store(speaker, Store::Add, &key, &by.to_string(), 0)? == Stored::Done {
                    return Ok(vec![(*by).into()]);
                }
            }
            Err(Failure::Refused(format!("{key} is neither there nor not there")))
        }
        other => Err(unspeakable(other)),
    }
}

fn padded(text: &[u8]) -> Value {
    value_of(text).map_or_else(|| Value::text(text), Value::Uint)
}

/// True for the binary protocol.
fn is_binary<S>(speaker: &Speaker<S>) -> bool {
    speaker.tongue.door == Door::Memcached && speaker.tongue.dialect % 3 == 2
}

/// True for the meta commands.
fn is_meta<S>(speaker: &Speaker<S>) -> bool {
    speaker.tongue.door == Door::Memcached && speaker.tongue.dialect % 3 == 1
}

fn refused(line: &str) -> Failure {
    Failure::Refused(line.to_string())
}

/// Binary: the request.
fn packet(opcode: u8, key: &str, extras: &[u8], value: &[u8], cas: u64) -> Vec<u8> {
    let mut out = vec![0x80, opcode];
    out.extend_from_slice(&(key.len() as u16).to_be_bytes());
    out.extend_from_slice(&[extras.len() as u8, 0, 0, 0]);
    out.extend_from_slice(&((key.len() + extras.len() + value.len()) as u32).to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&cas.to_be_bytes());
    out.extend_from_slice(extras);
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(value);
    out
}

const NOT_FOUND: u16 = 1;
const EXISTS: u16 = 2;
const NOT_STORED: u16 = 5;

/// Binary: status, value and cas of the answer. Errors: any other status than those that say what was there.
fn answer<S: Read + Write>(speaker: &mut Speaker<S>) -> Result<(u16, Vec<u8>, u64), Failure> {
    let header = speaker.take(24)?;
    let number = |at: std::ops::Range<usize>| header[at].iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    let (status, length, extras, key) = (number(6..8) as u16, number(8..12), usize::from(header[4]), number(2..4));
    if header[0] != 0x81 {
        return Err(Failure::Broken);
    }
    let body = speaker.take(length as usize)?;
    let value = body.get(extras + key as usize..).ok_or(Failure::Broken)?.to_vec();
    match status {
        0 | NOT_FOUND | EXISTS | NOT_STORED => Ok((status, value, number(16..24))),
        _ => Err(refused(&format!("SERVER_ERROR {status}: {}", String::from_utf8_lossy(&value)))),
    }
}

fn get<S: Read + Write>(speaker: &mut Speaker<S>, key: &str) -> Result<Found, Failure> {
    if is_binary(speaker) {
        speaker.send(&packet(0x00, key, &[], &[], 0))?;
        let (status, value, cas) = answer(speaker)?;
        return Ok((status == 0).then_some((value, cas)));
    }
    if is_meta(speaker) {
        speaker.send(format!("mg {key} v c\r\n").as_bytes())?;
        let line = speaker.line()?;
        let words: Vec<&str> = line.split(' ').collect();
        return match words[..] {
            ["EN"] => Ok(None),
            ["VA", length, cas] => {
                let length: usize = length.parse().map_err(|_| Failure::Broken)?;
                let cas = cas.strip_prefix('c').and_then(|cas| cas.parse().ok()).ok_or(Failure::Broken)?;
                let mut value = speaker.take(length + 2)?;
                value.truncate(length);
                Ok(Some((value, cas)))
            }
            _ => Err(refused(&line)),
        };
    }
    let verb = if speaker.tongue.door == Door::Tyrant { "get" } else { "gets" };
    speaker.send(format!("{verb} {key}\r\n").as_bytes())?;
    Ok(values(speaker)?.pop().map(|(_, value, cas)| (value, cas)))
}

/// Text: what a get brings until its end: keys, values and cas.
fn values<S: Read + Write>(speaker: &mut Speaker<S>) -> Result<Vec<(String, Vec<u8>, u64)>, Failure> {
    let mut found = Vec::new();
    loop {
        let line = speaker.line()?;
        if line == "END" {
            return Ok(found);
        }
        let words: Vec<&str> = line.split(' ').collect();
        let ["VALUE", key, _, length, ref rest @ ..] = words[..] else { return Err(refused(&line)) };
        let length: usize = length.parse().map_err(|_| Failure::Broken)?;
        let cas = rest.first().and_then(|cas| cas.parse().ok()).unwrap_or(0);
        let mut value = speaker.take(length + 2)?;
        value.truncate(length);
        found.push((key.to_string(), value, cas));
    }
}

fn get_all<S: Read + Write>(speaker: &mut Speaker<S>, numbers: &[u64]) -> Answer {
    let keys: Vec<String> = numbers.iter().map(|number| Spot::text(*number).key()).collect();
    if is_binary(speaker) || is_meta(speaker) {
        return Err(refused("several keys take several requests here"));
    }
    speaker.send(format!("get {}\r\n", keys.join(" ")).as_bytes())?;
    let found = values(speaker)?;
    let pair = |(key, value, _): &(String, Vec<u8>, u64)| {
        let number = number_of(key.as_bytes()).map_or(Value::Nil, Value::Uint);
        Value::Array(vec![number, padded(value)])
    };
    Ok(found.iter().map(pair).collect())
}

fn store<S: Read + Write>(
    speaker: &mut Speaker<S>,
    how: Store,
    key: &str,
    value: &str,
    cas: u64,
) -> Result<Stored, Failure> {
    if is_binary(speaker) {
        let (opcode, extras): (u8, &[u8]) = match how {
            Store::Set => (0x01, &[0; 8]),
            Store::Add => (0x02, &[0; 8]),
            Store::Replace => (0x03, &[0; 8]),
            Store::Append => (0x0e, &[]),
        };
        speaker.send(&packet(opcode, key, extras, value.as_bytes(), cas))?;
        return Ok(match answer(speaker)?.0 {
            0 => Stored::Done,
            EXISTS if cas != 0 => Stored::Exists,
            NOT_FOUND if cas != 0 => Stored::NotFound,
            _ => Stored::Declined,
        });
    }
    let length = value.len();
    let line = if is_meta(speaker) {
        let mode = match how {
            Store::Set => "S",
            Store::Add => "E",
            Store::Replace => "R",
            Store::Append => "A",
        };
        let cas = if cas == 0 { String::new() } else { format!(" C{cas}") };
        format!("ms {key} {length} M{mode}{cas}\r\n{value}\r\n")
    } else if cas != 0 {
        format!("cas {key} 0 0 {length} {cas}\r\n{value}\r\n")
    } else {
        let verb = match how {
            Store::Set => "set",
            Store::Add => "add",
            Store::Replace => "replace",
            Store::Append => "append",
        };
        format!("{verb} {key} 0 0 {length}\r\n{value}\r\n")
    };
    speaker.send(line.as_bytes())?;
    match speaker.line()?.as_str() {
        "STORED" | "HD" => Ok(Stored::Done),
        "NOT_STORED" | "NS" => Ok(Stored::Declined),
        "EXISTS" | "EX" => Ok(Stored::Exists),
        "NOT_FOUND" | "NF" => Ok(Stored::NotFound),
        line => Err(refused(line)),
    }
}

fn delete<S: Read + Write>(speaker: &mut Speaker<S>, key: &str) -> Result<bool, Failure> {
    if is_binary(speaker) {
        speaker.send(&packet(0x04, key, &[], &[], 0))?;
        return Ok(answer(speaker)?.0 == 0);
    }
    let verb = if is_meta(speaker) { "md" } else { "delete" };
    speaker.send(format!("{verb} {key}\r\n").as_bytes())?;
    match speaker.line()?.as_str() {
        "DELETED" | "HD" => Ok(true),
        "NOT_FOUND" | "NF" => Ok(false),
        line => Err(refused(line)),
    }
}

/// The new number. None: there is none yet.
fn increment<S: Read + Write>(speaker: &mut Speaker<S>, key: &str, by: u64) -> Result<Option<u64>, Failure> {
    if is_binary(speaker) {
        let mut extras = by.to_be_bytes().to_vec();
        extras.extend_from_slice(&[0; 8]);
        // Nothing is made where nothing is.
        extras.extend_from_slice(&[0xff; 4]);
        speaker.send(&packet(0x05, key, &extras, &[], 0))?;
        let (status, value, _) = answer(speaker)?;
        let number = value.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        return Ok((status == 0).then_some(number));
    }
    if is_meta(speaker) {
        speaker.send(format!("ma {key} D{by} v\r\n").as_bytes())?;
        let line = speaker.line()?;
        return match line.strip_prefix("VA ") {
            Some(_) => Ok(Some(speaker.line()?.parse().map_err(|_| Failure::Broken)?)),
            None if line == "NF" => Ok(None),
            None => Err(refused(&line)),
        };
    }
    speaker.send(format!("incr {key} {by}\r\n").as_bytes())?;
    let line = speaker.line()?;
    match line.trim_end().parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) if line == "NOT_FOUND" => Ok(None),
        Err(_) => Err(refused(&line)),
    }
}
