//! Groups of consumers of a stream: `XGROUP`, `XREADGROUP`, `XACK`, `XPENDING`, `XCLAIM`, `XAUTOCLAIM`. Groups, consumers and entries that were delivered
//! and not acknowledged are rows of spaces of their own, found by the number of the stream's head.

mod claims;
pub(super) mod payload;

use super::call::{Call, Head, Kind};
use super::events::{self, Class};
use super::failure::{Failure, Outcome, SYNTAX};
use super::reply::Reply;
use super::shared::OfGroups;
use super::streams::{Id, MAX, MIN, Wanted, after, entries, entry, first_id, id_text, list_of, parse_bound, parse_id};
use database::{Key, Operation, ScanRequest, Space};
use std::rc::Rc;
use storage::IteratorKind;
use tuple::IndexId;
use tuple::msgpack::{self, Reader};

pub(super) use claims::{xautoclaim, xclaim};

/// The index of pending entries by their consumer.
const BY_CONSUMER: IndexId = IndexId(1);
/// Entries that `XPENDING`, `XCLAIM` and `XAUTOCLAIM` are about at most.
const COUNT_MAX: i64 = 1 << 20;

/// A group.
#[derive(Clone, Debug)]
pub(super) struct Group {
    name: Vec<u8>,
    last: Id,
    /// How many entries it was given, if that is known.
    read: Option<u64>,
}

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Debug)]
struct Pending {
    id: Id,
    consumer: Vec<u8>,
    delivered: u64,
    times: u64,
}

fn prefix(head: u64, texts: &[&[u8]]) -> Vec<u8> {
    let mut parts = Vec::new();
    msgpack::encode_uint(&mut parts, head);
    texts.iter().for_each(|text| msgpack::encode_str(&mut parts, text));
    parts
}

/// Hands the rows of a space that begin with a number to `visit`.
pub(super) fn rows_of(call: &Call<'_>, space: &Rc<Space>, head: u64, mut visit: impl FnMut(&[u8])) -> Outcome {
    let parts = prefix(head, &[]);
    let key = Key { parts: &parts, part_count: 1 };
    let request = ScanRequest::new(IndexId::PRIMARY, IteratorKind::Eq, key);
    call.database.select(call.context, space, &request, |row| {
        visit(row);
        true
    })?;
    Ok(())
}

fn read_group(row: &[u8]) -> Option<Group> {
    let mut reader = Reader::new(row);
    let length = reader.read_array().ok()?;
    reader.skip_checked();
    let name = reader.read_str().ok()?.to_vec();
    let last = (reader.read_uint().ok()?, reader.read_uint().ok()?);
    let read = if length > 4 { reader.read_uint().ok() } else { None };
    Some(Group { name, last, read })
}

fn read_pending(row: &[u8]) -> Option<Pending> {
    let mut reader = Reader::new(row);
    reader.read_array().ok()?;
    reader.skip_checked();
    reader.skip_checked();
    let id = (reader.read_uint().ok()?, reader.read_uint().ok()?);
    let consumer = reader.read_str().ok()?.to_vec();
    Some(Pending { id, consumer, delivered: reader.read_uint().ok()?, times: reader.read_uint().ok()? })
}

/// All groups of a stream.
pub(super) fn all(call: &Call<'_>, head: &Head) -> Outcome<Vec<Group>> {
    let mut groups = Vec::new();
    rows_of(call, call.spaces.of_groups(OfGroups::Groups)?, head.id, |row| groups.extend(read_group(row)))?;
    Ok(groups)
}

fn find(call: &Call<'_>, head: &Head, name: &[u8]) -> Outcome<Option<Group>> {
    let parts = prefix(head.id, &[name]);
    let space = call.spaces.of_groups(OfGroups::Groups)?;
    let key = Key { parts: &parts, part_count: 2 };
    let row = call.database.get(call.context, space, IndexId::PRIMARY, key)?;
    Ok(row.and_then(|row| read_group(row.data())))
}

fn put(call: &Call<'_>, head: &Head, group: &Group) -> Outcome {
    let mut row = Vec::new();
    msgpack::encode_array(&mut row, if group.read.is_some() { 5 } else { 4 });
    row.extend_from_slice(&prefix(head.id, &[&group.name]));
    msgpack::encode_uint(&mut row, group.last.0);
    msgpack::encode_uint(&mut row, group.last.1);
    if let Some(read) = group.read {
        msgpack::encode_uint(&mut row, read);
    }
    call.put_into(call.spaces.of_groups(OfGroups::Groups)?, &row)
}

fn remove(call: &Call<'_>, what: OfGroups, count: u32, parts: &[u8]) -> Outcome<bool> {
    let mut key = Vec::new();
    msgpack::encode_array(&mut key, count);
    key.extend_from_slice(parts);
    let operation = Operation::Delete { index_id: IndexId::PRIMARY, key: &key };
    Ok(call.database.execute(call.context, call.spaces.of_groups(what)?, operation)?.is_some())
}

/// The consumers of a group, and when each was seen last.
fn consumers(call: &Call<'_>, head: &Head, group: &[u8]) -> Outcome<Vec<(Vec<u8>, u64)>> {
    let parts = prefix(head.id, &[group]);
    let key = Key { parts: &parts, part_count: 2 };
    let request = ScanRequest::new(IndexId::PRIMARY, IteratorKind::Eq, key);
    let mut found = Vec::new();
    call.database.select(call.context, call.spaces.of_groups(OfGroups::Consumers)?, &request, |row| {
        let mut reader = Reader::new(row);
        let _ = reader.read_array();
        reader.skip_checked();
        reader.skip_checked();
        found.push((reader.read_str().unwrap_or_default().to_vec(), reader.read_uint().unwrap_or(0)));
        true
    })?;
    Ok(found)
}

fn has_consumer(call: &Call<'_>, head: &Head, group: &[u8], name: &[u8]) -> Outcome<bool> {
    let parts = prefix(head.id, &[group, name]);
    let key = Key { parts: &parts, part_count: 3 };
    let space = call.spaces.of_groups(OfGroups::Consumers)?;
    Ok(call.database.get(call.context, space, IndexId::PRIMARY, key)?.is_some())
}

/// Notes that a consumer was seen; it is made if it is not there.
fn see(call: &Call<'_>, head: &Head, group: &[u8], name: &[u8]) -> Outcome {
    let mut row = Vec::new();
    msgpack::encode_array(&mut row, 4);
    row.extend_from_slice(&prefix(head.id, &[group, name]));
    msgpack::encode_uint(&mut row, call.now_ms());
    call.put_into(call.spaces.of_groups(OfGroups::Consumers)?, &row)
}

/// The same by a command that is about something else: that the consumer is made is an event.
fn see_at(call: &Call<'_>, head: &Head, key: &[u8], (group, name): (&[u8], &[u8])) -> Outcome {
    if call.shared.is_watchful.get() && !has_consumer(call, head, group, name)? {
        events::say(call, Class::Stream, "xgroup-createconsumer", key);
    }
    see(call, head, group, name)
}

/// Pending entries of a group, or of one of its consumers, from one number to another.
fn pending(
    call: &Call<'_>,
    head: &Head,
    (group, consumer): (&[u8], Option<&[u8]>),
    (from, to): (Id, Id),
    limit: u64,
    mut is_wanted: impl FnMut(&Pending) -> bool,
) -> Outcome<Vec<Pending>> {
    let mut found = Vec::new();
    if limit == 0 {
        return Ok(found);
    }
    let (index_id, mut parts, texts) = match consumer {
        Some(consumer) => (BY_CONSUMER, prefix(head.id, &[group, consumer]), 3),
        None => (IndexId::PRIMARY, prefix(head.id, &[group]), 2),
    };
    msgpack::encode_uint(&mut parts, from.0);
    msgpack::encode_uint(&mut parts, from.1);
    let key = Key { parts: &parts, part_count: texts + 2 };
    let request = ScanRequest::new(index_id, IteratorKind::Ge, key);
    call.database.select(call.context, call.spaces.of_groups(OfGroups::Pending)?, &request, |row| {
        let mut reader = Reader::new(row);
        let _ = reader.read_array();
        let is_own = reader.read_uint() == Ok(head.id) && reader.read_str() == Ok(group);
        let Some(pending) = read_pending(row).filter(|pending| {
            is_own && pending.id <= to && consumer.is_none_or(|consumer| pending.consumer == consumer)
        }) else {
            return false;
        };
        if is_wanted(&pending) {
            found.push(pending);
        }
        (found.len() as u64) < limit
    })?;
    Ok(found)
}

fn find_pending(call: &Call<'_>, head: &Head, group: &[u8], id: Id) -> Outcome<Option<Pending>> {
    let mut parts = prefix(head.id, &[group]);
    msgpack::encode_uint(&mut parts, id.0);
    msgpack::encode_uint(&mut parts, id.1);
    let space = call.spaces.of_groups(OfGroups::Pending)?;
    let key = Key { parts: &parts, part_count: 4 };
    let row = call.database.get(call.context, space, IndexId::PRIMARY, key)?;
    Ok(row.and_then(|row| read_pending(row.data())))
}

fn put_pending(call: &Call<'_>, head: &Head, group: &[u8], pending: &Pending) -> Outcome {
    let mut row = Vec::new();
    msgpack::encode_array(&mut row, 7);
    row.extend_from_slice(&prefix(head.id, &[group]));
    msgpack::encode_uint(&mut row, pending.id.0);
    msgpack::encode_uint(&mut row, pending.id.1);
    msgpack::encode_str(&mut row, &pending.consumer);
    msgpack::encode_uint(&mut row, pending.delivered);
    msgpack::encode_uint(&mut row, pending.times);
    call.put_into(call.spaces.of_groups(OfGroups::Pending)?, &row)
}

fn acknowledge(call: &Call<'_>, head: &Head, group: &[u8], id: Id) -> Outcome<bool> {
    let mut parts = prefix(head.id, &[group]);
    msgpack::encode_uint(&mut parts, id.0);
    msgpack::encode_uint(&mut parts, id.1);
    remove(call, OfGroups::Pending, 4, &parts)
}

fn no_group(key: &[u8], group: &[u8], what: &str) -> Failure {
    let (key, group) = (String::from_utf8_lossy(key), String::from_utf8_lossy(group));
    format!("NOGROUP No such key '{key}' or consumer group '{group}'{what}").into()
}

/// Errors: the stream or its group is not there.
pub(super) fn check(call: &Call<'_>, key: &[u8], head: Option<&Head>, group: &[u8]) -> Outcome {
    let is_there = match head {
        Some(head) => find(call, head, group)?.is_some(),
        None => false,
    };
    if is_there { Ok(()) } else { Err(no_group(key, group, " in XREADGROUP with GROUP option")) }
}

/// True if an entry from a number on was removed by its own: how many a group has read cannot be counted over it.
fn has_holes(head: &Head, from: Id) -> bool {
    head.count > 0 && head.removed != MIN && from <= head.removed
}

/// How many entries were ever added up to this number, if that can be said.
fn distance(call: &Call<'_>, head: &Head, id: Id) -> Outcome<Option<u64>> {
    if head.added == 0 {
        return Ok(Some(0));
    }
    if head.count == 0 && id <= head.last || id == head.last {
        return Ok(Some(head.added));
    }
    if id > head.last {
        return Ok(None);
    }
    let first = first_id(call, head)?.unwrap_or(MIN);
    if head.removed == MIN || head.removed < first {
        if id < first {
            return Ok(Some(head.added - head.count));
        }
        if id == first {
            return Ok(Some(head.added - head.count + 1));
        }
    }
    Ok(None)
}

/// What a consumer gets of a stream: new entries, or with a number those that it was given before. None: nothing.
pub(super) fn read(
    call: &mut Call<'_>,
    key: &[u8],
    head: Option<(Head, Option<u64>)>,
    (name, consumer): (&[u8], &[u8]),
    start: Option<Id>,
    wanted: &Wanted<'_>,
) -> Outcome<Option<Vec<u8>>> {
    let has_waited = wanted.has_waited.get();
    let missing = |text: &'static str| match has_waited {
        true => Failure::from(text),
        false => no_group(key, name, " in XREADGROUP with GROUP option"),
    };
    let (head, _) = head.ok_or_else(|| missing("UNBLOCKED the stream key no longer exists"))?;
    let mut group = find(call, &head, name)?
        .ok_or_else(|| missing("NOGROUP the consumer group this client was blocked on no longer exists"))?;
    if let Some(start) = start {
        see_at(call, &head, key, (name, consumer))?;
        let from = after(start).unwrap_or(MAX);
        let given = pending(call, &head, (name, Some(consumer)), (from, MAX), wanted.count, |_| true)?;
        return Ok(Some(given_before(call, &head, &given)?));
    }
    let Some(from) = after(group.last).filter(|from| *from <= head.last) else { return Ok(None) };
    let list = entries(call, &head, (from, MAX), wanted.count, false, true)?;
    let Some(last) = list.last() else { return Ok(None) };
    let last = last.id;
    see_at(call, &head, key, (name, consumer))?;
    for entry in &list {
        group.read = match group.read {
            Some(read) if !has_holes(&head, entry.id) => Some(read + 1),
            _ => distance(call, &head, entry.id)?,
        };
    }
    group.last = last;
    put(call, &head, &group)?;
    if !wanted.is_acknowledged {
        let delivered = call.now_ms();
        for entry in &list {
            let pending = Pending { id: entry.id, consumer: consumer.to_vec(), delivered, times: 1 };
            put_pending(call, &head, name, &pending)?;
        }
    }
    Ok(Some(list_of(call, &list)))
}

/// The answer of entries that were delivered: those that are gone have no fields.
fn given_before(call: &Call<'_>, head: &Head, given: &[Pending]) -> Outcome<Vec<u8>> {
    let mut out = Vec::new();
    let resp3 = call.state.resp3.get();
    Reply { out: &mut out, resp3 }.array(given.len());
    for pending in given {
        let found = entry(call, head, pending.id)?;
        let mut reply = Reply { out: &mut out, resp3 };
        match found {
            Some(entry) => entry.write(&mut reply),
            None => {
                reply.array(2);
                reply.text(&id_text(pending.id));
                reply.null_array();
            }
        }
    }
    Ok(out)
}

const HELP: &[&str] = &[
    "XGROUP <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CREATE <key> <groupname> <id|$> [MKSTREAM] [ENTRIESREAD entries_read]",
    "    Makes a group.",
    "CREATECONSUMER <key> <groupname> <consumer>",
    "    Makes a consumer.",
    "DELCONSUMER <key> <groupname> <consumer>",
    "    Removes a consumer.",
    "DESTROY <key> <groupname>",
    "    Removes a group.",
    "SETID <key> <groupname> <id|$> [ENTRIESREAD entries_read]",
    "    Says from where on a group reads.",
    "HELP",
    "    Prints this help.",
];

pub(super) fn xgroup(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let word = args[1].to_ascii_lowercase();
    if word == b"help" && args.len() == 2 {
        super::scripts::help(call, HELP);
        return Ok(());
    }
    let is_good = match word.as_slice() {
        b"create" => (5..=8).contains(&args.len()),
        b"setid" => matches!(args.len(), 5 | 7),
        b"destroy" => args.len() == 4,
        b"createconsumer" | b"delconsumer" => args.len() == 5,
        _ => false,
    };
    if !is_good {
        let known = ["create", "setid", "destroy", "createconsumer", "delconsumer", "help"];
        return Err(super::scripts::unknown_subcommand(call, "xgroup", &known));
    }
    let (mut makes, mut read, mut at) = (false, None, 5);
    while matches!(word.as_slice(), b"create" | b"setid") && at < args.len() {
        if word == b"create" && call.is_word(at, "mkstream") {
            makes = true;
            at += 1;
        } else if call.is_word(at, "entriesread") && at + 1 < args.len() {
            read = match call.integer(at + 1)? {
                -1 => None,
                number => Some(u64::try_from(number).map_err(|_| "ERR value for ENTRIESREAD must be positive or -1")?),
            };
            at += 2;
        } else {
            return Err(SYNTAX.into());
        }
    }
    let (key, name) = (args[2], args[3]);
    let found = call.find_head(key, Kind::Stream)?;
    if found.is_none() && !makes {
        return Err("ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.".into());
    }
    let is_new = found.is_none();
    let (head, expires) = found.unwrap_or_else(|| (call.new_head(Kind::Stream), None));
    let group = find(call, &head, name)?;
    let missing = || -> Failure {
        let (key, name) = (String::from_utf8_lossy(key), String::from_utf8_lossy(name));
        format!("NOGROUP No such consumer group '{name}' for key name '{key}'").into()
    };
    match word.as_slice() {
        b"create" | b"setid" => {
            if group.is_none() && word == b"setid" {
                return Err(missing());
            }
            let last = match args[4] {
                b"$" => head.last,
                b"-" => MIN,
                b"+" => MAX,
                text => parse_id(text, 0)?,
            };
            if group.is_some() && word == b"create" {
                return Err("BUSYGROUP Consumer Group name already exists".into());
            }
            call.atomically(|call| {
                if is_new {
                    call.put_head(key, &head, expires)?;
                } else {
                    call.touch(key);
                }
                put(call, &head, &Group { name: name.to_vec(), last, read })
            })?;
            call.reply().ok();
        }
        b"destroy" => {
            let is_there = group.is_some();
            if is_there {
                call.atomically(|call| destroy(call, &head, name))?;
                call.touch(key);
            }
            call.reply().integer(i64::from(is_there));
        }
        b"createconsumer" => {
            group.ok_or_else(missing)?;
            let is_there = has_consumer(call, &head, name, args[4])?;
            if !is_there {
                see(call, &head, name, args[4])?;
                call.touch(key);
            }
            call.reply().integer(i64::from(!is_there));
        }
        _ => {
            group.ok_or_else(missing)?;
            let was_there = has_consumer(call, &head, name, args[4])?;
            let gone = call.atomically(|call| {
                let given = pending(call, &head, (name, Some(args[4])), (MIN, MAX), u64::MAX, |_| true)?;
                for pending in &given {
                    acknowledge(call, &head, name, pending.id)?;
                }
                remove(call, OfGroups::Consumers, 3, &prefix(head.id, &[name, args[4]]))?;
                Ok(given.len())
            })?;
            if was_there {
                call.touch(key);
            }
            call.reply().count(gone);
        }
    }
    Ok(())
}

fn destroy(call: &mut Call<'_>, head: &Head, name: &[u8]) -> Outcome {
    for pending in pending(call, head, (name, None), (MIN, MAX), u64::MAX, |_| true)? {
        acknowledge(call, head, name, pending.id)?;
    }
    for (consumer, _) in consumers(call, head, name)? {
        remove(call, OfGroups::Consumers, 3, &prefix(head.id, &[name, &consumer]))?;
    }
    remove(call, OfGroups::Groups, 2, &prefix(head.id, &[name]))?;
    Ok(())
}

pub(super) fn xack(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let mut count = 0;
    if let Some((head, _)) = call.find_head(args[1], Kind::Stream)?
        && find(call, &head, args[2])?.is_some()
    {
        let ids: Vec<Id> = args[3..].iter().map(|text| parse_id(text, 0)).collect::<Outcome<_>>()?;
        count = call.atomically(|call| {
            ids.iter().try_fold(0, |count, id| Ok(count + i64::from(acknowledge(call, &head, args[2], *id)?)))
        })?;
    }
    call.reply().integer(count);
    Ok(())
}

/// The stream and the group of a command.
fn both(call: &Call<'_>, key: &[u8], name: &[u8]) -> Outcome<(Head, Group)> {
    let missing = || no_group(key, name, "");
    let (head, _) = call.find_head(key, Kind::Stream)?.ok_or_else(missing)?;
    let group = find(call, &head, name)?.ok_or_else(missing)?;
    Ok((head, group))
}

pub(super) fn xpending(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let (key, name) = (args[1], args[2]);
    if args.len() == 3 {
        let (head, _) = both(call, key, name)?;
        let list = pending(call, &head, (name, None), (MIN, MAX), u64::MAX, |_| true)?;
        let mut by_consumer = std::collections::BTreeMap::<&[u8], u64>::new();
        list.iter().for_each(|pending| *by_consumer.entry(&pending.consumer).or_default() += 1);
        let mut reply = call.reply();
        reply.array(4);
        reply.count(list.len());
        match (list.first(), list.last()) {
            (Some(first), Some(last)) => {
                reply.text(&id_text(first.id));
                reply.text(&id_text(last.id));
                reply.array(by_consumer.len());
                for (consumer, count) in by_consumer {
                    reply.array(2);
                    reply.bulk(consumer);
                    reply.text(&count.to_string());
                }
            }
            _ => {
                reply.null();
                reply.null();
                reply.null_array();
            }
        }
        return Ok(());
    }
    let mut at = 3;
    let mut idle = 0;
    if call.is_word(3, "idle") && args.len() > 4 {
        idle = u64::try_from(call.integer(4)?).unwrap_or(0);
        at = 5;
        if args.len() < 8 {
            return Err(SYNTAX.into());
        }
    }
    if !matches!(args.len() - at, 3 | 4) {
        return Err(SYNTAX.into());
    }
    let count = call.integer(at + 2)?.clamp(0, COUNT_MAX);
    let bounds = (parse_bound(args[at], true)?, parse_bound(args[at + 1], false)?);
    let consumer = args.get(at + 3).copied();
    let (head, _) = both(call, key, name)?;
    let now = call.now_ms();
    let is_idle = |pending: &Pending| now.saturating_sub(pending.delivered) >= idle;
    let list = pending(call, &head, (name, consumer), bounds, count as u64, is_idle)?;
    let mut reply = call.reply();
    reply.array(list.len());
    for pending in &list {
        reply.array(4);
        reply.text(&id_text(pending.id));
        reply.bulk(&pending.consumer);
        reply.integer(now.saturating_sub(pending.delivered) as i64);
        reply.integer(pending.times as i64);
    }
    Ok(())
}

/// How many entries a group has still to read, if that can be said.
fn lag(call: &Call<'_>, head: &Head, group: &Group) -> Outcome<Option<u64>> {
    if head.added == 0 {
        return Ok(Some(0));
    }
    let read = match group.read {
        Some(read) if !has_holes(head, group.last) => Some(read),
        _ => distance(call, head, group.last)?,
    };
    Ok(read.map(|read| head.added.saturating_sub(read)))
}

fn write_number(reply: &mut Reply<'_>, number: Option<u64>) {
    match number {
        Some(number) => reply.integer(number as i64),
        None => reply.null(),
    }
}

pub(super) fn describe_groups(call: &mut Call<'_>, head: &Head) -> Outcome {
    let groups = all(call, head)?;
    call.reply().array(groups.len());
    for group in &groups {
        let consumers = consumers(call, head, &group.name)?.len();
        let pending = pending(call, head, (&group.name, None), (MIN, MAX), u64::MAX, |_| true)?.len();
        let lag = lag(call, head, group)?;
        let mut reply = call.reply();
        reply.map(6);
        reply.text("name");
        reply.bulk(&group.name);
        reply.text("consumers");
        reply.count(consumers);
        reply.text("pending");
        reply.count(pending);
        reply.text("last-delivered-id");
        reply.text(&id_text(group.last));
        reply.text("entries-read");
        write_number(&mut reply, group.read);
        reply.text("lag");
        write_number(&mut reply, lag);
    }
    Ok(())
}

pub(super) fn describe_consumers(call: &mut Call<'_>, key: &[u8], head: &Head, name: &[u8]) -> Outcome {
    if find(call, head, name)?.is_none() {
        let (key, name) = (String::from_utf8_lossy(key), String::from_utf8_lossy(name));
        return Err(format!("NOGROUP No such consumer group '{name}' for key name '{key}'").into());
    }
    let now = call.now_ms();
    let list = consumers(call, head, name)?;
    call.reply().array(list.len());
    for (consumer, seen) in &list {
        let count = pending(call, head, (name, Some(consumer)), (MIN, MAX), u64::MAX, |_| true)?.len();
        let mut reply = call.reply();
        reply.map(3);
        reply.text("name");
        reply.bulk(consumer);
        reply.text("pending");
        reply.count(count);
        reply.text("idle");
        reply.integer(now.saturating_sub(*seen) as i64);
    }
    Ok(())
}

/// The groups of `XINFO STREAM ... FULL`.
pub(super) fn describe_fully(call: &mut Call<'_>, head: &Head, groups: &[Group], count: u64) -> Outcome {
    let limit = if count == 0 { usize::MAX } else { count as usize };
    call.reply().array(groups.len());
    for group in groups {
        let given = pending(call, head, (&group.name, None), (MIN, MAX), u64::MAX, |_| true)?;
        let consumers = consumers(call, head, &group.name)?;
        let lag = lag(call, head, group)?;
        let mut reply = call.reply();
        reply.map(7);
        reply.text("name");
        reply.bulk(&group.name);
        reply.text("last-delivered-id");
        reply.text(&id_text(group.last));
        reply.text("entries-read");
        write_number(&mut reply, group.read);
        reply.text("lag");
        write_number(&mut reply, lag);
        reply.text("pel-count");
        reply.count(given.len());
        reply.text("pending");
        reply.array(given.len().min(limit));
        for pending in given.iter().take(limit) {
            reply.array(4);
            reply.text(&id_text(pending.id));
            reply.bulk(&pending.consumer);
            reply.integer(pending.delivered as i64);
            reply.integer(pending.times as i64);
        }
        reply.text("consumers");
        reply.array(consumers.len());
        for (consumer, seen) in &consumers {
            let own: Vec<&Pending> = given.iter().filter(|pending| pending.consumer == *consumer).collect();
            reply.map(4);
            reply.text("name");
            reply.bulk(consumer);
            reply.text("seen-time");
            reply.integer(*seen as i64);
            reply.text("pel-count");
            reply.count(own.len());
            reply.text("pending");
            reply.array(own.len().min(limit));
            for pending in own.iter().take(limit) {
                reply.array(3);
                reply.text(&id_text(pending.id));
                reply.integer(pending.delivered as i64);
                reply.integer(pending.times as i64);
            }
        }
    }
    Ok(())
}
