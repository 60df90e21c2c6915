//! `get` and its like.

use super::layout::Item;
use super::onlookers::Seen;
use super::store::Work;
use super::wait_for_room;
use crate::connection::Connection;
use database::{Error, Result};
use runtime::fiber;
use std::rc::Rc;
use wal::Position;

/// What is answered at once, without others between.
const ANSWER_BYTES_MAX: usize = 1 << 20;
const KEYS_AT_ONCE_MAX: usize = 128;

/// The keys of a line.
pub(super) fn keys_of(keys: &[u8]) -> impl Iterator<Item = &[u8]> {
    keys.split(|byte| *byte == b' ').filter(|key| !key.is_empty())
}

#[inline]
fn push_item(out: &mut Vec<u8>, key: &[u8], item: &Item<'_>, has_cas: bool) {
    // What stands between key and value, in one piece: three numbers at most.
    let mut middle = [0; 3 * 21 + 2];
    let mut at = middle.len() - 2;
    middle[at..].copy_from_slice(b"\r\n");
    if has_cas {
        at = prepend_number(&mut middle, at, item.cas);
    }
    at = prepend_number(&mut middle, at, item.value.len() as u64);
    at = prepend_number(&mut middle, at, u64::from(item.flags));
    out.reserve(key.len() + item.value.len() + 80);
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    out.extend_from_slice(&middle[at..]);
    out.extend_from_slice(item.value);
    out.extend_from_slice(b"\r\n");
}

/// Writes a space and a number so that they end before `at`. Returns where they begin.
#[inline]
fn prepend_number(bytes: &mut [u8], mut at: usize, mut number: u64) -> usize {
    loop {
        at -= 1;
        bytes[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    at -= 1;
    bytes[at] = b' ';
    at
}

/// Appends what is found under a key. Returns whether something is. `expires`: from now on it expires then.
fn append(work: &Work<'_>, out: &mut Vec<u8>, key: &[u8], has_cas: bool, expires: Option<u64>) -> Result<bool> {
    let start = out.len();
    let found = match expires {
        None => work.look(key, has_cas, |found| {
            Ok(found.map(|(item, _)| {
                push_item(out, key, item, has_cas);
                Seen::of(item)
            }))
        })?,
        Some(expires) => {
            // May be tried again.
            let made = work.touch(key, expires, |found| {
                let mut made = Vec::new();
                found.map(|item| {
                    push_item(&mut made, key, item, has_cas);
                    (made, Seen::of(item))
                })
            })?;
            made.map(|(made, seen)| {
                out.truncate(start);
                out.extend_from_slice(&made);
                seen
            })
        }
    };
    work.saw_get(key, found);
    let is_hit = found.is_some();
    if is_hit {
        work.door.recent.note(key, || work.now(), true);
    }
    Ok(is_hit)
}

/// Answers `get` of one key on the stack of the event loop. Errors: as [`Error::needs_fiber`] if it has to wait; nothing was answered.
#[inline]
pub(super) fn get_one(work: &Work<'_>, connection: &Connection, key: &[u8]) -> Result<()> {
    let (mut is_hit, hidden) = (false, work.database.hidden_reads());
    connection.answer(work.written(key), 0, |out| {
        is_hit = append(work, out, key, false, None)?;
        out.extend_from_slice(b"END\r\n");
        Ok(())
    })?;
    work.door.counters.count_gets(u64::from(is_hit), u64::from(!is_hit));
    if !is_hit {
        work.note_miss(key, hidden);
    }
    Ok(())
}

/// Answers `get` on the stack of the event loop. Errors: as [`Error::needs_fiber`] if it has to wait, or is about very much; nothing was answered.
pub(super) fn get(work: &Work<'_>, connection: &Connection, keys: &[u8], has_cas: bool) -> Result<()> {
    let mut seen = Position::default();
    if keys_of(keys).nth(1).is_some() {
        work.database.prefetch_texts(&work.bound.space, keys_of(keys).take(super::PREFETCHED_MAX));
    }
    for key in keys_of(keys) {
        seen = seen.max(work.written(key));
    }
    let (mut hits, mut count, mut expired) = (0, 0, 0);
    connection.answer(seen, 0, |out| {
        let start = out.len();
        for key in keys_of(keys) {
            count += 1;
            let hidden = work.database.hidden_reads();
            match append(work, out, key, has_cas, None)? {
                true => hits += 1,
                false => expired += u64::from(work.is_miss_of_expired(key, hidden)),
            }
            if count > KEYS_AT_ONCE_MAX || out.len() - start > ANSWER_BYTES_MAX && count > 1 {
                return Err(Error::needs_fiber());
            }
        }
        out.extend_from_slice(b"END\r\n");
        Ok(())
    })?;
    work.door.counters.count_gets(hits, count as u64 - hits);
    super::stats::add(&work.door.counters.get_expired, expired);
    Ok(())
}

/// Answers `get` or `gat` in a fiber, in parts. May wait.
pub(super) fn get_in_parts(
    work: &Work<'_>,
    connection: &Rc<Connection>,
    keys: &[u8],
    has_cas: bool,
    expires: Option<u64>,
) -> Result<()> {
    let mut part = Vec::new();
    let (mut hits, mut count) = (0, 0);
    let answer = |part: &[u8]| {
        connection.answer(work.context.seen.get(), 0, |out| {
            out.extend_from_slice(part);
            Ok(())
        })
    };
    for key in keys_of(keys) {
        let hidden = work.database.hidden_reads();
        match append(work, &mut part, key, has_cas, expires)? {
            true => hits += 1,
            false => work.note_miss(key, hidden),
        }
        count += 1;
        if part.len() > ANSWER_BYTES_MAX / 4 || count % KEYS_AT_ONCE_MAX as u64 == 0 {
            answer(&part)?;
            part.clear();
            connection.service.mark(connection);
            if fiber::yield_now() == fiber::Wake::Cancelled || !wait_for_room(connection) {
                connection.end();
                return Ok(());
            }
        }
    }
    part.extend_from_slice(b"END\r\n");
    answer(&part)?;
    match expires {
        None => work.door.counters.count_gets(hits, count - hits),
        Some(_) => work.door.counters.count_touches(hits, count - hits, true),
    }
    Ok(())
}
