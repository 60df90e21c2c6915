//! Streams: `XADD`, `XRANGE`, `XREAD` and their kin. An entry is a row of `redis_streams`; the head has what is known of the whole.

use super::blocking::wait_for;
use super::call::{Call, Head, Kind, SLICE};
use super::config;
use super::failure::{Failure, Outcome, SYNTAX};
use super::reply::Reply;
use super::resp::integer;
use super::stream_groups;
use std::cell::Cell;
use storage::IteratorKind;
use tuple::IndexId;
use tuple::msgpack::{self, Reader};

/// The number of an entry: a moment in milliseconds, and a place within it.
pub(super) type Id = (u64, u64);

pub(super) const MIN: Id = (0, 0);
pub(super) const MAX: Id = (u64::MAX, u64::MAX);

const INVALID_ID: &str = "ERR Invalid stream ID specified as stream command argument";
pub(super) const TOP: &str = "ERR The ID specified in XADD is equal or smaller than the target stream top item";

/// An entry: its number, and its fields and values as they stand in the row.
pub(super) struct Entry {
    pub(super) id: Id,
    fields: Vec<u8>,
}

impl Entry {
    pub(super) fn write(&self, reply: &mut Reply<'_>) {
        reply.array(2);
        reply.text(&id_text(self.id));
        let mut reader = Reader::new(&self.fields);
        let count = reader.read_array().unwrap_or(0);
        reply.array(count as usize);
        (0..count).for_each(|_| reply.bulk(reader.read_str().unwrap_or_default()));
    }
}

pub(super) fn id_text((ms, seq): Id) -> String {
    format!("{ms}-{seq}")
}

fn number(text: &[u8]) -> Option<u64> {
    let is_good = !text.is_empty() && text.len() <= 20 && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| is_good)?.parse().ok()
}

/// A number of an entry; what is behind the moment may be missing.
pub(super) fn parse_id(text: &[u8], seq: u64) -> Outcome<Id> {
    let parsed = match text.iter().position(|byte| *byte == b'-') {
        Some(at) => number(&text[..at]).zip(number(&text[at + 1..])),
        None => number(text).map(|ms| (ms, seq)),
    };
    parsed.ok_or_else(|| INVALID_ID.into())
}

/// The next greater one.
pub(super) fn after(id: Id) -> Option<Id> {
    match id {
        (ms, seq) if seq < u64::MAX => Some((ms, seq + 1)),
        (ms, _) => Some((ms.checked_add(1)?, 0)),
    }
}

fn before(id: Id) -> Option<Id> {
    match id {
        (ms, seq) if seq > 0 => Some((ms, seq - 1)),
        (ms, _) => Some((ms.checked_sub(1)?, u64::MAX)),
    }
}

/// The bound of a range: `-`, `+`, a number, or one that is itself left out.
pub(super) fn parse_bound(text: &[u8], is_start: bool) -> Outcome<Id> {
    let seq = if is_start { 0 } else { u64::MAX };
    match text {
        b"-" => Ok(MIN),
        b"+" => Ok(MAX),
        [b'(', rest @ ..] => {
            let id = parse_id(rest, seq)?;
            match is_start {
                true => after(id).ok_or_else(|| "ERR invalid start ID for the interval".into()),
                false => before(id).ok_or_else(|| "ERR invalid end ID for the interval".into()),
            }
        }
        _ => parse_id(text, seq),
    }
}

fn write_key(out: &mut Vec<u8>, head: &Head, id: Id) {
    [head.id, id.0, id.1].into_iter().for_each(|number| msgpack::encode_uint(out, number));
}

fn read_entry(row: &[u8], with_fields: bool) -> Option<(u64, Entry)> {
    let mut reader = Reader::new(row);
    reader.read_array().ok()?;
    let head = reader.read_uint().ok()?;
    let id = (reader.read_uint().ok()?, reader.read_uint().ok()?);
    Some((head, Entry { id, fields: if with_fields { reader.rest().to_vec() } else { Vec::new() } }))
}

/// Entries from `from` to `to`, or backwards from `to` to `from`, at most `limit`.
pub(super) fn entries(
    call: &Call<'_>,
    head: &Head,
    (from, to): (Id, Id),
    limit: u64,
    is_reverse: bool,
    with_fields: bool,
) -> Outcome<Vec<Entry>> {
    let mut found = Vec::new();
    if limit == 0 || from > to {
        return Ok(found);
    }
    if limit.min(head.count) > SLICE {
        call.go_into_fiber()?;
    }
    let (mut place, mut iterator) = if is_reverse { (to, IteratorKind::Le) } else { (from, IteratorKind::Ge) };
    loop {
        let (mut seen, mut is_over) = (0, false);
        let wanted = (limit - found.len() as u64).min(SLICE);
        call.scan(
            Kind::Stream,
            (IndexId::PRIMARY, iterator, 3),
            (0, wanted),
            |out| write_key(out, head, place),
            |row| {
                seen += 1;
                match read_entry(row, with_fields) {
                    Some((id, entry)) if id == head.id && entry.id >= from && entry.id <= to => found.push(entry),
                    _ => is_over = true,
                }
                !is_over
            },
        )?;
        match found.last() {
            Some(last) if !is_over && seen == wanted && (found.len() as u64) < limit => place = last.id,
            _ => return Ok(found),
        }
        iterator = if is_reverse { IteratorKind::Lt } else { IteratorKind::Gt };
        // Within what its own transaction sees.
        if call.context.is_in_txn() {
            call.give_way();
        }
    }
}

/// An entry by its number.
pub(super) fn entry(call: &Call<'_>, head: &Head, id: Id) -> Outcome<Option<Entry>> {
    let row = call.get_element(Kind::Stream, 3, |out| write_key(out, head, id))?;
    Ok(row.and_then(|row| read_entry(row.data(), true)).map(|(_, entry)| entry))
}

/// The number of the first entry.
pub(super) fn first_id(call: &Call<'_>, head: &Head) -> Outcome<Option<Id>> {
    Ok(entries(call, head, (MIN, MAX), 1, false, false)?.first().map(|entry| entry.id))
}

fn remove_entry(call: &Call<'_>, head: &Head, id: Id) -> Outcome {
    call.remove_element(Kind::Stream, |out| {
        msgpack::encode_array(out, 3);
        write_key(out, head, id);
    })
}

/// What a stream is cut down to.
#[derive(Clone, Copy, PartialEq)]
enum Bound {
    Length(u64),
    Id(Id),
}

struct Trim {
    bound: Bound,
    is_rough: bool,
    /// Entries that are removed at most.
    limit: Option<u64>,
}

/// Removes the oldest entries. Returns how many.
fn cut(call: &mut Call<'_>, head: &mut Head, trim: &Trim) -> Outcome<u64> {
    let node = config::number(call, "stream-node-max-entries").max(1);
    let most = match (trim.is_rough, trim.limit) {
        (false, _) | (true, Some(0)) => u64::MAX,
        (true, Some(limit)) => limit,
        (true, None) => 100 * node,
    };
    let (mut to, mut wanted) = (MAX, u64::MAX);
    match trim.bound {
        Bound::Length(length) => wanted = head.count.saturating_sub(length),
        Bound::Id(MIN) => wanted = 0,
        Bound::Id(id) => to = before(id).unwrap_or(MIN),
    }
    let mut ids = entries(call, head, (MIN, to), wanted.min(most), false, false)?;
    if trim.is_rough {
        // As if entries were kept in nodes in the order in which they came: nodes go as a whole.
        let first = node - (head.added - head.count) % node;
        let whole = match (ids.len() as u64).checked_sub(first) {
            Some(more) => first + more / node * node,
            None => 0,
        };
        ids.truncate(usize::try_from(whole).unwrap_or(usize::MAX));
    }
    for (number, entry) in ids.iter().enumerate() {
        remove_entry(call, head, entry.id)?;
        if number as u64 % SLICE == SLICE - 1 {
            call.give_way();
        }
    }
    head.count -= ids.len() as u64;
    Ok(ids.len() as u64)
}

/// The options of a cut from an argument on, and where what follows begins.
fn trim_options(call: &Call<'_>, mut at: usize, is_add: bool) -> Outcome<(Option<Trim>, bool, usize)> {
    let mut trim: Option<Trim> = None;
    let (mut makes, mut limit) = (true, None);
    while at < call.args.len() {
        let (is_length, is_id) = (call.is_word(at, "maxlen"), call.is_word(at, "minid"));
        if (is_length || is_id) && at + 1 < call.args.len() {
            if trim.is_some() {
                return Err("ERR syntax error, MAXLEN and MINID options at the same time are not compatible".into());
            }
            let is_rough = call.args[at + 1] == b"~";
            at += usize::from(is_rough || call.args[at + 1] == b"=");
            let text = call.after(at)?;
            let bound = match is_length {
                true => Bound::Length(
                    u64::try_from(call.integer(at + 1)?).map_err(|_| "ERR The MAXLEN argument must be >= 0.")?,
                ),
                false => Bound::Id(parse_id(text, 0)?),
            };
            trim = Some(Trim { bound, is_rough, limit: None });
            at += 2;
        } else if call.is_word(at, "limit") && at + 1 < call.args.len() {
            limit = Some(u64::try_from(call.integer(at + 1)?).map_err(|_| "ERR The LIMIT argument must be >= 0.")?);
            at += 2;
        } else if is_add && call.is_word(at, "nomkstream") {
            makes = false;
            at += 1;
        } else if is_add {
            break;
        } else {
            return Err(SYNTAX.into());
        }
    }
    match &mut trim {
        Some(trim) if limit.is_some() && !trim.is_rough => {
            return Err("ERR syntax error, LIMIT cannot be used without the special ~ option".into());
        }
        Some(trim) => trim.limit = limit,
        None if limit.is_some() => {
            return Err("ERR syntax error, LIMIT cannot be used without the special ~ option".into());
        }
        None => {}
    }
    Ok((trim, makes, at))
}

/// The number of a new entry.
fn next_id(call: &Call<'_>, head: &Head, text: &[u8]) -> Outcome<Id> {
    let last = head.last;
    if text == b"*" {
        let now = (call.now_ms(), 0);
        return if now > last { Ok(now) } else { after(last).ok_or_else(|| exhausted().into()) };
    }
    let id = match text.strip_suffix(b"-*") {
        Some(ms) => {
            let ms = number(ms).ok_or(INVALID_ID)?;
            match ms.cmp(&last.0) {
                std::cmp::Ordering::Greater => (ms, u64::from(ms == 0)),
                std::cmp::Ordering::Equal if last.1 < u64::MAX => (ms, last.1 + 1),
                _ => return Err(TOP.into()),
            }
        }
        None => parse_id(text, 0)?,
    };
    if last == MAX {
        return Err(exhausted().into());
    }
    if id <= last {
        return Err(TOP.into());
    }
    Ok(id)
}

fn exhausted() -> &'static str {
    "ERR The stream has exhausted the last possible ID, unable to add more items"
}

pub(super) fn xadd(call: &mut Call<'_>) -> Outcome {
    let (key, args) = (call.args[1], call.args);
    let (trim, makes, at) = trim_options(call, 2, true)?;
    let Some(id) = args.get(at) else { return Err(super::dispatch::wrong_count("xadd").into()) };
    if *id != b"*" {
        // What cannot be a number is refused before anything is looked at.
        let parsed = parse_id(id.strip_suffix(b"-*").unwrap_or(id), 0)?;
        if parsed == MIN && !id.ends_with(b"-*") {
            return Err("ERR The ID specified in XADD must be greater than 0-0".into());
        }
    }
    let fields = &args[at + 1..];
    if fields.is_empty() || fields.len() % 2 == 1 {
        return Err(super::dispatch::wrong_count("xadd").into());
    }
    let found = call.find_head(key, Kind::Stream)?;
    if found.is_none() && !makes {
        call.reply().null();
        return Ok(());
    }
    let (mut head, expires) = found.unwrap_or_else(|| (call.new_head(Kind::Stream), None));
    let id = next_id(call, &head, id)?;
    call.atomically(|call| {
        call.put_element(Kind::Stream, |out| {
            msgpack::encode_array(out, 4);
            write_key(out, &head, id);
            msgpack::encode_array(out, fields.len() as u32);
            fields.iter().for_each(|field| msgpack::encode_str(out, field));
        })?;
        head.count += 1;
        head.added += 1;
        head.last = id;
        if let Some(trim) = &trim {
            cut(call, &mut head, trim)?;
        }
        call.put_head(key, &head, expires)
    })?;
    call.reply().text(&id_text(id));
    Ok(())
}

pub(super) fn xlen(call: &mut Call<'_>) -> Outcome {
    let count = call.find_head(call.args[1], Kind::Stream)?.map_or(0, |(head, _)| head.count);
    call.reply().integer(count as i64);
    Ok(())
}

fn range(call: &mut Call<'_>, is_reverse: bool) -> Outcome {
    let args = call.args;
    let (from, to) = if is_reverse { (args[3], args[2]) } else { (args[2], args[3]) };
    let bounds = (parse_bound(from, true)?, parse_bound(to, false)?);
    let limit = match args.len() {
        4 => None,
        6 if call.is_word(4, "count") => Some(call.integer(5)?),
        _ => return Err(SYNTAX.into()),
    };
    let found = call.find_head(args[1], Kind::Stream)?;
    if limit.is_some_and(|limit| limit <= 0) && found.is_some() {
        call.reply().null_array();
        return Ok(());
    }
    let list = match found {
        Some((head, _)) => {
            let limit = limit.map_or(u64::MAX, |limit| limit as u64);
            entries(call, &head, bounds, limit, is_reverse, true)?
        }
        None => Vec::new(),
    };
    let mut reply = call.reply();
    reply.array(list.len());
    list.iter().for_each(|entry| entry.write(&mut reply));
    Ok(())
}

pub(super) fn xrange(call: &mut Call<'_>) -> Outcome {
    range(call, false)
}

pub(super) fn xrevrange(call: &mut Call<'_>) -> Outcome {
    range(call, true)
}

pub(super) fn xdel(call: &mut Call<'_>) -> Outcome {
    let (key, args) = (call.args[1], call.args);
    let removed = match call.find_head(key, Kind::Stream)? {
        None => 0,
        Some((mut head, expires)) => call.atomically(|call| {
            let count = head.count;
            let ids: Vec<Id> = args[2..].iter().map(|text| parse_id(text, 0)).collect::<Outcome<_>>()?;
            for id in &ids {
                if entry(call, &head, *id)?.is_some() {
                    remove_entry(call, &head, *id)?;
                    head.count -= 1;
                    head.removed = head.removed.max(*id);
                }
            }
            if head.count < count {
                call.put_head(key, &head, expires)?;
            }
            Ok(count - head.count)
        })?,
    };
    call.reply().integer(removed as i64);
    Ok(())
}

pub(super) fn xtrim(call: &mut Call<'_>) -> Outcome {
    let key = call.args[1];
    let (trim, _, _) = trim_options(call, 2, false)?;
    let trim = trim.ok_or("ERR syntax error, XTRIM must be called with MAXLEN or MINID")?;
    let removed = match call.find_head(key, Kind::Stream)? {
        None => 0,
        Some((mut head, expires)) => call.atomically(|call| {
            let removed = cut(call, &mut head, &trim)?;
            if removed > 0 {
                call.put_head(key, &head, expires)?;
            }
            Ok(removed)
        })?,
    };
    call.reply().integer(removed as i64);
    Ok(())
}

pub(super) fn xsetid(call: &mut Call<'_>) -> Outcome {
    let (key, args) = (call.args[1], call.args);
    let id = parse_id(args[2], 0)?;
    let (mut added, mut removed, mut at) = (None, None, 3);
    while at < args.len() {
        let value = call.after(at)?;
        if call.is_word(at, "entriesadded") {
            let number = call.integer(at + 1)?;
            added = Some(u64::try_from(number).map_err(|_| "ERR entries_added must be positive")?);
        } else if call.is_word(at, "maxdeletedid") {
            let id_removed = parse_id(value, 0)?;
            if id < id_removed {
                return Err("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id".into());
            }
            removed = Some(id_removed);
        } else {
            return Err(SYNTAX.into());
        }
        at += 2;
    }
    let (mut head, expires) = call.find_head(key, Kind::Stream)?.ok_or("ERR no such key")?;
    if head.count > 0 {
        let top = entries(call, &head, (MIN, MAX), 1, true, false)?;
        if top.first().is_some_and(|top| id < top.id) {
            return Err("ERR The ID specified in XSETID is smaller than the target stream top item".into());
        }
        if added.is_some_and(|added| added < head.count) {
            return Err("ERR The entries_added specified in XSETID is smaller than the target stream length".into());
        }
    }
    if id < head.removed {
        return Err("ERR The ID specified in XSETID is smaller than current max_deleted_entry_id".into());
    }
    head.last = id;
    head.added = added.unwrap_or(head.added);
    head.removed = removed.filter(|removed| *removed != MIN).unwrap_or(head.removed);
    call.put_head(key, &head, expires)?;
    call.reply().ok();
    Ok(())
}

/// What `XREAD` and `XREADGROUP` ask for.
pub(super) struct Wanted<'a> {
    pub(super) keys: &'a [&'a [u8]],
    ids: &'a [&'a [u8]],
    pub(super) count: u64,
    /// Milliseconds; 0 for as long as it takes.
    block: Option<u64>,
    group: Option<(&'a [u8], &'a [u8])>,
    pub(super) is_acknowledged: bool,
    /// It has waited already.
    pub(super) has_waited: Cell<bool>,
}

fn wanted<'a>(call: &Call<'a>, is_group: bool) -> Outcome<Wanted<'a>> {
    let args = call.args;
    let name = if is_group { "xreadgroup" } else { "xread" };
    let mut wanted = Wanted {
        keys: &[],
        ids: &[],
        count: u64::MAX,
        block: None,
        group: None,
        is_acknowledged: false,
        has_waited: Cell::new(false),
    };
    let mut at = 1;
    while at < args.len() {
        let more = args.len() - at - 1;
        if call.is_word(at, "block") && more > 0 {
            let ms = call.integer(at + 1).map_err(|_| "ERR timeout is not an integer or out of range")?;
            wanted.block = Some(u64::try_from(ms).map_err(|_| "ERR timeout is negative")?);
            at += 2;
        } else if call.is_word(at, "count") && more > 0 {
            let count = call.integer(at + 1)?;
            wanted.count = if count <= 0 { u64::MAX } else { count as u64 };
            at += 2;
        } else if call.is_word(at, "streams") && more > 0 {
            if !more.is_multiple_of(2) {
                return Err(
                    "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.".into(),
                );
            }
            (wanted.keys, wanted.ids) = args[at + 1..].split_at(more / 2);
            break;
        } else if call.is_word(at, "group") && more >= 2 {
            if !is_group {
                return Err("ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.".into());
            }
            wanted.group = Some((args[at + 1], args[at + 2]));
            at += 3;
        } else if call.is_word(at, "noack") {
            if !is_group {
                return Err("ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.".into());
            }
            wanted.is_acknowledged = true;
            at += 1;
        } else {
            return Err(SYNTAX.into());
        }
    }
    if wanted.keys.is_empty() {
        return Err(SYNTAX.into());
    }
    if is_group && wanted.group.is_none() {
        return Err("ERR Missing GROUP option for XREADGROUP".into());
    }
    if wanted.block.is_some() && call.is_script {
        return Err(format!("ERR {name} command is not allowed with BLOCK option from scripts").into());
    }
    Ok(wanted)
}

/// Entries of one stream in an answer.
pub(super) type Found<'a> = (&'a [u8], Vec<u8>);

/// Answers with what was found; nothing was: with nothing.
fn answer(call: &mut Call<'_>, found: &[Found<'_>]) -> bool {
    if found.is_empty() {
        return false;
    }
    let resp3 = call.state.resp3.get();
    let mut reply = call.reply();
    if resp3 {
        reply.map(found.len())
    } else {
        reply.array(found.len())
    }
    for (key, entries) in found {
        if !resp3 {
            reply.array(2);
        }
        reply.bulk(key);
        reply.out.extend_from_slice(entries);
    }
    true
}

/// The answer of a list of entries.
pub(super) fn list_of(call: &Call<'_>, list: &[Entry]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut reply = Reply { out: &mut out, resp3: call.state.resp3.get() };
    reply.array(list.len());
    list.iter().for_each(|entry| entry.write(&mut reply));
    out
}

fn read(call: &mut Call<'_>, is_group: bool) -> Outcome {
    let wanted = wanted(call, is_group)?;
    // From where on, by the streams as they are now.
    let mut starts = Vec::new();
    for (key, id) in wanted.keys.iter().zip(wanted.ids) {
        let head = call.find_head(key, Kind::Stream)?.map(|(head, _)| head);
        if let Some((group, _)) = wanted.group {
            stream_groups::check(call, key, head.as_ref(), group)?;
        }
        starts.push(match (*id, is_group) {
            (b"$", false) => Some(head.map_or(MIN, |head| head.last)),
            (b"$", true) => return Err("ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.".into()),
            (b">", true) => None,
            (b">", false) => return Err("ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.".into()),
            (text, _) => Some(parse_id(text, 0)?),
        });
    }
    let has_history = is_group && starts.iter().any(Option::is_some);
    let attempt = |call: &mut Call<'_>, _: &[&[u8]]| -> Outcome<bool> {
        let mut found: Vec<Found<'_>> = Vec::new();
        for (key, start) in wanted.keys.iter().zip(&starts) {
            let head = match call.find_head(key, Kind::Stream) {
                // Whatever else it has become: it is no stream any more.
                Err(Failure::Text(_)) if wanted.has_waited.get() => None,
                found => found?,
            };
            let entries = match (wanted.group, head) {
                (Some(group), head) => stream_groups::read(call, key, head, group, *start, &wanted)?,
                (None, Some((head, _))) => {
                    let from = start.and_then(after);
                    match from {
                        Some(from) if from <= head.last => {
                            let list = entries(call, &head, (from, MAX), wanted.count, false, true)?;
                            (!list.is_empty()).then(|| list_of(call, &list))
                        }
                        _ => None,
                    }
                }
                (None, None) => None,
            };
            found.extend(entries.map(|entries| (*key, entries)));
        }
        wanted.has_waited.set(true);
        Ok(answer(call, &found))
    };
    let is_done = match wanted.block {
        Some(ms) if !has_history => wait_for(call, wanted.keys, ms, is_group, attempt)?,
        _ if is_group => call.atomically(|call| attempt(call, wanted.keys))?,
        _ => attempt(call, wanted.keys)?,
    };
    if !is_done {
        call.reply().null_array();
    }
    Ok(())
}

pub(super) fn xread(call: &mut Call<'_>) -> Outcome {
    read(call, false)
}

pub(super) fn xreadgroup(call: &mut Call<'_>) -> Outcome {
    read(call, true)
}

const HELP: &[&str] = &[
    "XINFO <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CONSUMERS <key> <groupname>",
    "    Shows the consumers of a group.",
    "GROUPS <key>",
    "    Shows the groups of a stream.",
    "STREAM <key> [FULL [COUNT <count>]]",
    "    Shows a stream.",
    "HELP",
    "    Prints this help.",
];

pub(super) fn xinfo(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let word = args[1].to_ascii_lowercase();
    if word == b"help" && args.len() == 2 {
        super::scripts::help(call, HELP);
        return Ok(());
    }
    let known: &[&str] = &["stream", "groups", "consumers", "help"];
    let is_good = match word.as_slice() {
        b"stream" => matches!(args.len(), 3 | 4 | 6),
        b"groups" => args.len() == 3,
        b"consumers" => args.len() == 4,
        _ => false,
    };
    if !is_good {
        return Err(super::scripts::unknown_subcommand(call, "xinfo", known));
    }
    let (head, _) = call.find_head(args[2], Kind::Stream)?.ok_or("ERR no such key")?;
    match word.as_slice() {
        b"groups" => stream_groups::describe_groups(call, &head),
        b"consumers" => stream_groups::describe_consumers(call, args[2], &head, args[3]),
        _ => describe(call, &head),
    }
}

fn describe(call: &mut Call<'_>, head: &Head) -> Outcome {
    let args = call.args;
    let full = match args.len() {
        3 => None,
        4 if call.is_word(3, "full") => Some(10),
        6 if call.is_word(3, "full") && call.is_word(4, "count") => {
            Some(integer(args[5]).ok_or(super::failure::NOT_INTEGER)?.max(0) as u64)
        }
        _ => return Err(SYNTAX.into()),
    };
    let node = config::number(call, "stream-node-max-entries").max(1);
    let nodes = head.count.div_ceil(node);
    let first = entries(call, head, (MIN, MAX), 1, false, true)?;
    let last = entries(call, head, (MIN, MAX), 1, true, true)?;
    let groups = stream_groups::all(call, head)?;
    let mut reply = call.reply();
    reply.map(if full.is_some() { 9 } else { 10 });
    reply.text("length");
    reply.integer(head.count as i64);
    reply.text("radix-tree-keys");
    reply.integer(nodes as i64);
    reply.text("radix-tree-nodes");
    reply.integer(nodes as i64 + 1);
    reply.text("last-generated-id");
    reply.text(&id_text(head.last));
    reply.text("max-deleted-entry-id");
    reply.text(&id_text(head.removed));
    reply.text("entries-added");
    reply.integer(head.added as i64);
    reply.text("recorded-first-entry-id");
    reply.text(&id_text(first.first().map_or(MIN, |entry| entry.id)));
    if let Some(count) = full {
        let list = entries(call, head, (MIN, MAX), if count == 0 { u64::MAX } else { count }, false, true)?;
        let mut reply = call.reply();
        reply.text("entries");
        let list = list_of(call, &list);
        call.out.extend_from_slice(&list);
        call.reply().text("groups");
        return stream_groups::describe_fully(call, head, &groups, count);
    }
    reply.text("groups");
    reply.count(groups.len());
    for (name, entry) in [("first-entry", first.first()), ("last-entry", last.first())] {
        reply.text(name);
        match entry {
            Some(entry) => entry.write(&mut reply),
            None => reply.null(),
        }
    }
    Ok(())
}

/// Copies what stands beside the entries of a stream to another head.
pub(super) fn copy_groups(call: &Call<'_>, from: &Head, to: &Head) -> Outcome {
    for (space, _) in call.spaces.all_of(Kind::Stream).into_iter().skip(1) {
        let mut rows: Vec<Vec<u8>> = Vec::new();
        stream_groups::rows_of(call, &space, from.id, |row| rows.push(row.to_vec()))?;
        for row in rows {
            let mut reader = Reader::new(&row);
            let count = reader.read_array().unwrap_or(0);
            reader.skip_checked();
            let mut copy = Vec::with_capacity(row.len() + 8);
            msgpack::encode_array(&mut copy, count);
            msgpack::encode_uint(&mut copy, to.id);
            copy.extend_from_slice(reader.rest());
            call.put_into(&space, &copy)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_entries_are_read_and_go_on() {
        assert_eq!(parse_id(b"5-3", 0).ok(), Some((5, 3)));
        assert_eq!(parse_id(b"5", 7).ok(), Some((5, 7)));
        for text in ["", "-", "5-", "-5", "a", "5-a", "5-3-2", "18446744073709551616", "+5"] {
            assert!(parse_id(text.as_bytes(), 0).is_err(), "{text}");
        }
        assert_eq!(after((5, u64::MAX)), Some((6, 0)));
        assert_eq!(after(MAX), None);
        assert_eq!(before((5, 0)), Some((4, u64::MAX)));
        assert_eq!(before(MIN), None);
        assert!(parse_bound(b"(18446744073709551615-18446744073709551615", true).is_err());
        assert_eq!(parse_bound(b"(5", true).ok(), Some((5, 1)));
    }
}
