//! The parts of `DEBUG` that programs and tests of clients use.

use super::call::{Call, Entry, Kind};
use super::failure::{NO_KEY, Outcome, SYNTAX};
use super::glob::matches;
use super::keys::{encoding_of, read_text};
use super::shared::DATABASES;
use database::{Key, ScanRequest};
use runtime::fiber;
use sha1::{Digest, Sha1};
use std::rc::Rc;
use storage::IteratorKind;
use tuple::IndexId;
use tuple::msgpack::Reader;

/// Keys that `POPULATE` makes at most.
const POPULATED_MAX: i64 = 10_000_000;
/// Keys that it makes, or bytes that a digest goes through, before others have their turn.
const SLICE: i64 = 1000;

type Sum = [u8; 20];

fn add(sum: &mut Sum, parts: &[&[u8]]) {
    let mut hash = Sha1::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    sum.iter_mut().zip(hash.finalize()).for_each(|(sum, byte)| *sum ^= byte);
}

fn text(sum: &Sum) -> String {
    sum.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A number of what a key has: the same wherever that is the same, whatever the key's name.
fn digest_of(call: &Call<'_>, entry: &Entry) -> Outcome<Sum> {
    let mut sum = Sum::default();
    match entry.head {
        None => add(&mut sum, &[b"string", entry.string()?]),
        Some(head) => {
            let mut place = 0u64;
            call.walk(&head, |reader| {
                let rest = reader.rest();
                // Of a list the order counts, and not the positions.
                if head.kind == Kind::List {
                    reader.skip_checked();
                    place += 1;
                    add(&mut sum, &[b"list", &place.to_le_bytes(), read_text(reader)]);
                } else {
                    add(&mut sum, &[head.kind.name().as_bytes(), rest]);
                }
                true
            })?;
        }
    }
    if entry.expires.is_some() {
        add(&mut sum, &[b"expires"]);
    }
    Ok(sum)
}

/// A number of everything that there is.
fn digest(call: &mut Call<'_>) -> Outcome<Sum> {
    call.go_into_fiber()?;
    let mut sum = Sum::default();
    for db in 0..DATABASES {
        if !call.spaces.has_keys(db) {
            continue;
        }
        let mut rows = Vec::new();
        let request = ScanRequest::new(IndexId::PRIMARY, IteratorKind::All, Key { parts: &[], part_count: 0 });
        call.database.select(call.context, call.spaces.keys(db)?, &request, |row| {
            let mut reader = Reader::new(row);
            if reader.read_array().is_ok() {
                rows.push(reader.read_str().unwrap_or_default().to_vec());
            }
            true
        })?;
        let outer = std::mem::replace(&mut call.db, db);
        for key in rows {
            if let Some(entry) = call.find(&key)? {
                let value = digest_of(call, &entry)?;
                add(&mut sum, &[&[db as u8], &key, &value]);
            }
        }
        call.db = outer;
    }
    Ok(sum)
}

/// `DEBUG PROTOCOL`: an answer of every kind.
fn protocol(call: &mut Call<'_>) -> Outcome {
    let name = call.args[2].to_ascii_lowercase();
    let resp3 = call.state.resp3.get();
    let mut reply = call.reply();
    match name.as_slice() {
        b"string" => reply.text("Hello World"),
        b"integer" => reply.integer(12345),
        b"double" => reply.double("3.141".parse().unwrap_or(0.0)),
        b"null" => reply.null(),
        b"array" => {
            reply.array(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"set" => {
            reply.set(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"map" => {
            reply.map(3);
            for number in 0..3 {
                reply.integer(number);
                if resp3 {
                    reply.out.extend_from_slice(if number == 1 { b"#t\r\n" } else { b"#f\r\n" });
                } else {
                    reply.integer(i64::from(number == 1));
                }
            }
        }
        b"attrib" => {
            if resp3 {
                reply.out.extend_from_slice(b"|1\r\n");
                reply.text("key-popularity");
                reply.array(2);
                reply.text("key:123");
                reply.integer(90);
            }
            reply.text("Some real reply following the attribute");
        }
        b"push" => {
            if !resp3 {
                return Err("ERR RESP2 is not supported by this command".into());
            }
            reply.push(2);
            reply.text("server-cpu-usage");
            reply.integer(42);
        }
        b"verbatim" => reply.verbatim("This is a verbatim\nstring"),
        b"true" | b"false" => match resp3 {
            true => reply.out.extend_from_slice(if name == b"true" { b"#t\r\n" } else { b"#f\r\n" }),
            false => reply.integer(i64::from(name == b"true")),
        },
        b"bignum" => match resp3 {
            true => reply.out.extend_from_slice(b"(1234567999999999999999999999999999999\r\n"),
            false => reply.text("1234567999999999999999999999999999999"),
        },
        _ => {
            return Err("ERR Wrong protocol type name. Please use one of the following: string|integer|double|null|array|set|map|attrib|push|verbatim|true|false".into());
        }
    }
    Ok(())
}

/// Makes keys `prefix:number`.
fn populate(call: &mut Call<'_>) -> Outcome {
    call.go_into_fiber()?;
    let args = call.args;
    let count = call.integer(2)?;
    if !(0..=POPULATED_MAX).contains(&count) {
        return Err("ERR value is out of range".into());
    }
    let prefix = String::from_utf8_lossy(args.get(3).copied().unwrap_or(b"key")).into_owned();
    let size = if args.len() > 4 { Some(call.integer(4)?) } else { None };
    for number in 0..count {
        let key = format!("{prefix}:{number}");
        if call.find(key.as_bytes())?.is_none() {
            let mut value = format!("value:{number}").into_bytes();
            if let Some(size) = size {
                value.resize(usize::try_from(size).map_or(0, |size| size.min(1 << 20)), 0);
            }
            call.put_string(key.as_bytes(), &value, None, None)?;
        }
        if number % SLICE == SLICE - 1 {
            call.give_way();
        }
    }
    call.reply().ok();
    Ok(())
}

pub(super) fn debug(call: &mut Call<'_>) -> Outcome {
    call.check_writer()?;
    let args = call.args;
    match (args[1].to_ascii_lowercase().as_slice(), args.len()) {
        (b"sleep", 3) => {
            call.go_into_fiber()?;
            let seconds = call.double(2)?.clamp(0.0, 60.0);
            fiber::sleep((seconds * 1e9) as u64);
            call.reply().ok();
        }
        (b"object", 3..) => {
            let entry = call.find(args[2])?.ok_or(NO_KEY)?;
            let text = format!(
                "Value at:0x0 refcount:1 encoding:{} serializedlength:{} lru:0 lru_seconds_idle:0",
                encoding_of(call, &entry)?,
                entry.row_bytes()
            );
            call.reply().simple(&text);
        }
        // Every acknowledged write is in the log, and what has expired is never seen: there is nothing to do for these.
        (b"reload" | b"loadaof" | b"jmap" | b"change-repl-id" | b"log" | b"pause-cron", _)
        | (b"quicklist-packed-threshold" | b"replybuffer", 3..) => {
            call.reply().ok();
        }
        (b"set-active-expire", 3) => {
            let is_paused = call.is_word(2, "0");
            let spaces = Rc::clone(&call.spaces);
            let databases = (0..DATABASES).filter_map(|db| spaces.keys(db).ok());
            databases.for_each(|space| call.database.pause_expiry(space, is_paused));
            call.shared.expires_on_sight.set(is_paused);
            call.reply().ok();
        }
        // What a script does by it is checked at each command.
        (b"set-disable-deny-scripts", 3) => {
            let allows = call.is_word(2, "1");
            call.shared.allows_denied.set(allows);
            call.reply().ok();
        }
        (b"digest", 2) => {
            let sum = digest(call)?;
            call.reply().simple(&text(&sum));
        }
        (b"digest-value", 3..) => {
            let sums: Vec<Sum> = args[2..]
                .iter()
                .map(|key| call.find(key)?.map_or(Ok(Sum::default()), |entry| digest_of(call, &entry)))
                .collect::<Outcome<_>>()?;
            let mut reply = call.reply();
            reply.array(sums.len());
            sums.iter().for_each(|sum| reply.simple(&text(sum)));
        }
        (b"protocol", 3) => protocol(call)?,
        (b"populate", 3..=5) => populate(call)?,
        (b"htstats-key", 3) => {
            let entry = call.find(args[2])?.ok_or(NO_KEY)?;
            let text = format!("no hash table: rows of an ordered index, {} bytes of them", entry.row_bytes());
            call.reply().text(&text);
        }
        (b"stringmatch-len", 4) => {
            let length = usize::try_from(call.integer(2)?).map_err(|_| SYNTAX)?.min(1 << 20);
            let text = vec![b'a'; length];
            let is_match = matches(args[3], &text);
            call.reply().integer(i64::from(is_match));
        }
        _ => {
            let name = String::from_utf8_lossy(args[1]).into_owned();
            return Err(format!("ERR DEBUG subcommand '{name}' is not here: it is about the inside of Redis").into());
        }
    }
    Ok(())
}
