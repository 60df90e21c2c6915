//! `SCAN`, `HSCAN`, `SSCAN`, `ZSCAN`, `KEYS`: going through keys and elements a few at a time.
//!
//! Keys in memory stand in a hash index, where a place is a number that survives every change: that is the cursor. Where rows are ordered (on disk, among
//! elements) the server keeps the last key under the number that it gives to the client; of very many the oldest are forgotten.

use super::call::{Call, Entry, Kind};
use super::failure::{Outcome, SYNTAX};
use super::glob::matches;
use super::reply::double_text;
use std::collections::{BTreeMap, VecDeque};
use storage::IteratorKind;
use tuple::IndexId;
use tuple::msgpack::{self, Reader};

/// Places that are remembered.
const CURSORS_MAX: usize = 100_000;
/// Keys or elements that one call looks at.
const COUNT_MAX: usize = 10_000;
/// Collections of so many elements are given at once.
const AT_ONCE: u64 = 128;
/// Cursors of ordered indexes begin here: no place of a hash index does.
const FIRST_CURSOR: u64 = 1 << 40;

/// Places in ordered indexes, by the numbers that clients have.
#[derive(Default)]
pub(super) struct Cursors {
    places: BTreeMap<u64, Vec<u8>>,
    order: VecDeque<u64>,
    last: u64,
}

impl Cursors {
    fn keep(&mut self, place: Vec<u8>) -> u64 {
        if self.order.len() >= CURSORS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.places.remove(&oldest);
        }
        self.last = self.last.max(FIRST_CURSOR) + 1;
        self.places.insert(self.last, place);
        self.order.push_back(self.last);
        self.last
    }

    fn find(&self, cursor: u64) -> Outcome<Vec<u8>> {
        self.places.get(&cursor).cloned().ok_or_else(|| {
            format!("ERR cursor {cursor} is forgotten: begin again with 0 (the last {CURSORS_MAX} are remembered)")
                .into()
        })
    }
}

#[derive(Default)]
struct Options<'a> {
    cursor: u64,
    pattern: Option<&'a [u8]>,
    count: usize,
    kind: Option<String>,
    no_values: bool,
}

impl Options<'_> {
    fn wants(&self, text: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| pattern == b"*" || matches(pattern, text))
    }
}

fn options<'a>(call: &Call<'a>, at: usize) -> Outcome<Options<'a>> {
    let text = std::str::from_utf8(call.args[at]).unwrap_or_default();
    let cursor = text.parse().map_err(|_| "ERR invalid cursor")?;
    let mut options = Options { cursor, count: 10, ..Options::default() };
    let mut at = at + 1;
    while at < call.args.len() {
        if call.is_word(at, "match") {
            options.pattern = Some(call.after(at)?);
        } else if call.is_word(at, "count") {
            call.after(at)?;
            let count = call.integer(at + 1)?;
            if count < 1 {
                return Err(SYNTAX.into());
            }
            options.count = usize::try_from(count).unwrap_or(COUNT_MAX).min(COUNT_MAX);
        } else if call.is_word(at, "type") {
            options.kind = Some(String::from_utf8_lossy(call.after(at)?).to_lowercase());
        } else if call.is_word(at, "novalues") {
            options.no_values = true;
            at += 1;
            continue;
        } else {
            return Err(SYNTAX.into());
        }
        at += 2;
    }
    Ok(options)
}

/// Hands some keys to `visit`, from a cursor on; returns the cursor behind them, 0 at the end.
pub(super) fn some_keys(call: &Call<'_>, cursor: u64, count: usize, mut visit: impl FnMut(&Entry)) -> Outcome<u64> {
    let (space, now) = (call.keys()?, call.now_ms());
    let mut take = |row| {
        if let Some(entry) = Entry::of(row).filter(|entry| entry.expires.is_none_or(|expires| expires > now)) {
            visit(&entry);
        }
    };
    if cursor < FIRST_CURSOR
        && let Some(next) = call.database.select_some(call.context, space, (cursor, count), &mut take)?
    {
        return Ok(next);
    }
    let place = if cursor == 0 { Vec::new() } else { call.shared.cursors.borrow().find(cursor)? };
    let (kind, part_count) = if cursor == 0 { (IteratorKind::Ge, 0) } else { (IteratorKind::Gt, 1) };
    let key = storage::Key { parts: &place, part_count };
    let request =
        database::ScanRequest { limit: count as u64, ..database::ScanRequest::new(IndexId::PRIMARY, kind, key) };
    let rows = call.database.select_tuples(call.context, space, &request)?;
    let last = rows.last().filter(|_| rows.len() >= count).and_then(|row| {
        let mut reader = Reader::new(row.data());
        let mut place = Vec::new();
        reader.read_array().ok()?;
        msgpack::encode_str(&mut place, reader.read_str().ok()?);
        Some(place)
    });
    rows.into_iter().for_each(take);
    Ok(last.map_or(0, |place| call.shared.cursors.borrow_mut().keep(place)))
}

/// Hands all keys to `visit`, in slices.
pub(super) fn all_keys(call: &Call<'_>, mut visit: impl FnMut(&Entry)) -> Outcome {
    const SLICE: usize = 2000;
    if call.keys()?.rows.len() > SLICE as u64 {
        call.go_into_fiber()?;
    }
    let mut cursor = 0;
    loop {
        cursor = some_keys(call, cursor, SLICE, &mut visit)?;
        if cursor == 0 {
            return Ok(());
        }
        call.give_way();
    }
}

fn answer(call: &mut Call<'_>, next: u64, found: &[Vec<u8>]) {
    let mut reply = call.reply();
    reply.array(2);
    reply.text(&next.to_string());
    reply.array(found.len());
    found.iter().for_each(|value| reply.bulk(value));
}

pub(super) fn scan(call: &mut Call<'_>) -> Outcome {
    let options = options(call, 1)?;
    let mut found = Vec::new();
    let next = some_keys(call, options.cursor, options.count, |entry| {
        let is_kind = options.kind.as_ref().is_none_or(|kind| kind == entry.kind_name());
        if is_kind && options.wants(entry.key()) {
            found.push(entry.key().to_vec());
        }
    })?;
    answer(call, next, &found);
    Ok(())
}

pub(super) fn keys(call: &mut Call<'_>) -> Outcome {
    let mut found = Vec::new();
    let pattern = call.args[1];
    all_keys(call, |entry| {
        if pattern == b"*" || matches(pattern, entry.key()) {
            found.push(entry.key().to_vec());
        }
    })?;
    let mut reply = call.reply();
    reply.array(found.len());
    found.iter().for_each(|key| reply.bulk(key));
    Ok(())
}

/// What a call gives of an element: its name, and what stands beside it.
fn scan_elements(call: &mut Call<'_>, kind: Kind) -> Outcome {
    let options = options(call, 2)?;
    let Some((head, _)) = call.find_head(call.args[1], kind)? else {
        answer(call, 0, &[]);
        return Ok(());
    };
    let mut found = Vec::new();
    let mut take = |reader: &mut Reader<'_>| {
        let name = reader.read_str().unwrap_or_default();
        if options.wants(name) {
            found.push(name.to_vec());
            match kind {
                Kind::Hash if !options.no_values => found.push(reader.read_str().unwrap_or_default().to_vec()),
                Kind::SortedSet => found.push(double_text(reader.read_double().unwrap_or_default()).into_bytes()),
                _ => {}
            }
        }
    };
    if head.count <= AT_ONCE.max(options.count as u64) && options.cursor == 0 {
        call.walk(&head, |reader| {
            take(reader);
            true
        })?;
        answer(call, 0, &found);
        return Ok(());
    }
    let mut parts = Vec::new();
    let (iterator, part_count) = if options.cursor == 0 { (IteratorKind::Ge, 1) } else { (IteratorKind::Gt, 2) };
    match options.cursor {
        0 => msgpack::encode_uint(&mut parts, head.id),
        cursor => parts = call.shared.cursors.borrow().find(cursor)?,
    }
    // A cursor is good for the key that it was given for.
    if Reader::new(&parts).read_uint() != Ok(head.id) {
        answer(call, 0, &[]);
        return Ok(());
    }
    let (mut seen, mut last) = (0, None);
    call.scan(
        kind,
        (IndexId::PRIMARY, iterator, part_count),
        (0, options.count as u64),
        |out| out.extend_from_slice(&parts),
        |row| {
            let mut reader = Reader::new(row);
            let is_of_head = reader.read_array().and_then(|_| reader.read_uint()) == Ok(head.id);
            seen += 1;
            if is_of_head {
                let begin = reader.position();
                if seen == options.count {
                    let mut after = Reader::new(&row[begin..]);
                    let mut place = Vec::new();
                    msgpack::encode_uint(&mut place, head.id);
                    msgpack::encode_str(&mut place, after.read_str().unwrap_or_default());
                    last = Some(place);
                }
                take(&mut Reader::new(&row[begin..]));
            }
            is_of_head
        },
    )?;
    let next = last.map_or(0, |place| call.shared.cursors.borrow_mut().keep(place));
    answer(call, next, &found);
    Ok(())
}

pub(super) fn hscan(call: &mut Call<'_>) -> Outcome {
    scan_elements(call, Kind::Hash)
}

pub(super) fn sscan(call: &mut Call<'_>) -> Outcome {
    scan_elements(call, Kind::Set)
}

pub(super) fn zscan(call: &mut Call<'_>) -> Outcome {
    scan_elements(call, Kind::SortedSet)
}
