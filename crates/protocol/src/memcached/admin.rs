//! Commands of those who look after a server: limits, dumps, its end, watching. Where they are about what is not here they are answered as the real
//! server answers them, and change nothing.

use super::classes::{CLASSES, class_of};
use super::layout::Item;
use super::numbers::{read_i32, read_u32};
use super::onlookers::{CONNECTIONS, DELETIONS, EVICTIONS, FETCHERS, MUTATIONS, push_escaped};
use super::store::Work;
use super::text::{BAD_FORMAT, Words, item_size};
use super::{Cache, State, survey, wait_for_room};
use crate::connection::Connection;
use crate::setup::set_up;
use database::{Database, Error, Key, Privileges, Result, ScanRequest};
use runtime::fiber;
use std::rc::Rc;
use storage::IteratorKind;
use tuple::msgpack;
use tuple::{IndexId, Tuple};
use wal::Position;

/// Rows that a dump looks at before others have their turn.
const SLICE_ROWS: usize = 1000;
/// Megabytes that `cache_memlimit` takes at least, and what it takes for bytes.
const MEGABYTES_MIN: u64 = 8;
const MEGABYTES_MAX: u64 = 1_000_000_000;
/// Sets the limit of a space that has one.
const SET_LIMIT: &str = "local name, limit = ... box.space[name]:alter({memory_limit = tonumber(limit)})";

fn say(connection: &Connection, text: &str) -> Result<()> {
    connection.answer(Position::default(), 0, |out| {
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(b"\r\n");
        Ok(())
    })
}

/// Serves the line of such a command. Errors: nothing was answered.
pub(super) fn serve(door: &Rc<Cache>, connection: &Rc<Connection>, state: &State, line: &[u8]) -> Result<()> {
    let words = Words::of(line);
    let text = match words.get(0) {
        b"slabs" => slabs(&words),
        b"lru" => lru(&words),
        b"lru_crawler" => match (words.get(1), words.count) {
            (b"metadump", 3) if !door.allows.dump => "ERROR metadump not allowed",
            (b"metadump", 3) if connection.held() > 0 => "ERROR cannot pipeline other commands before metadump",
            (b"metadump", 3) => return dump(door, connection, words.get(2)),
            (said @ (b"enable" | b"disable"), 2) => {
                door.is_crawling.set(said == b"enable");
                crawler(&words)
            }
            _ => crawler(&words),
        },
        b"cache_memlimit" => return limit(door, connection, &words),
        b"watch" => return watch(door, connection, &words),
        b"shutdown" => return shut_down(door, connection, state, &words),
        _ => "ERROR",
    };
    say(connection, text)
}

fn slabs(words: &Words<'_>) -> &'static str {
    match (words.get(1), words.count) {
        (b"reassign", 4) => match (read_i32(words.get(2)), read_i32(words.get(3))) {
            (Some(_), Some(_)) => "NOSPARE source class has no spare pages",
            _ => BAD_FORMAT,
        },
        (b"automove", 3) => match read_u32(words.get(2)) {
            Some(0..=2) => "OK",
            Some(_) => "ERROR",
            None => BAD_FORMAT,
        },
        (b"automove", 4) if words.get(2) == b"freeratio" => "OK",
        _ => "ERROR",
    }
}

fn lru(words: &Words<'_>) -> &'static str {
    match (words.get(1), words.count) {
        (b"mode", 3) if matches!(words.get(2), b"flat" | b"segmented") => "OK",
        (b"tune", 6) => "OK",
        (b"temp_ttl", 3) => match read_i32(words.get(2)) {
            Some(_) => "OK",
            None => BAD_FORMAT,
        },
        _ => "ERROR",
    }
}

fn crawler(words: &Words<'_>) -> &'static str {
    match (words.get(1), words.count) {
        (b"enable" | b"disable", 2) | (b"crawl", 3) => "OK",
        (b"sleep" | b"tocrawl", 3) => match read_u32(words.get(2)) {
            Some(_) => "OK",
            None => BAD_FORMAT,
        },
        _ => "ERROR",
    }
}

/// `cache_memlimit`: another size for the space of a listener that has one. Who may forget all items may do that.
fn limit(door: &Rc<Cache>, connection: &Rc<Connection>, words: &Words<'_>) -> Result<()> {
    let is_quiet = words.count == 3 && words.get(2) == b"noreply";
    let say = move |connection: &Connection, text: &str| if is_quiet { Ok(()) } else { say(connection, text) };
    let (2 | 3, Some(megabytes)) = (words.count, super::numbers::read_u64(words.get(1))) else {
        return say(connection, "ERROR");
    };
    if megabytes < MEGABYTES_MIN {
        return say(connection, "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m");
    }
    if megabytes > MEGABYTES_MAX {
        return say(connection, "MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes");
    }
    let database = connection.database();
    let bound = door.bound(database)?;
    database.check_space_access(connection.context(), &bound.space, Privileges::WRITE)?;
    let bytes = megabytes << 20;
    if !door.has_limit || bytes > database.config.borrow().memtx_memory {
        return say(connection, "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust");
    }
    let subject = ((), (|(): &()| "memcached command cache_memlimit".to_string()) as fn(&()) -> String);
    let name = bound.space.name();
    connection.in_fiber(0, subject, move |connection, _, ()| {
        set_up(connection.database(), SET_LIMIT, &[&name, &bytes.to_string()])?;
        let seen = connection.database().schema_written();
        match is_quiet {
            true => Ok(()),
            false => connection.answer(seen, 0, |out| {
                out.extend_from_slice(b"OK\r\n");
                Ok(())
            }),
        }
    });
    Ok(())
}

fn watch(door: &Rc<Cache>, connection: &Rc<Connection>, words: &Words<'_>) -> Result<()> {
    if !door.allows.watch {
        return say(connection, "CLIENT_ERROR watch commands not allowed");
    }
    if connection.held() > 0 {
        return say(connection, "ERROR cannot pipeline other commands before watch");
    }
    let database = connection.database();
    let bound = door.bound(database)?;
    database.check_space_access(connection.context(), &bound.space, Privileges::READ)?;
    let mut wants = if words.count == 1 { FETCHERS } else { 0 };
    for word in &words.all()[1..] {
        wants |= match *word {
            b"fetchers" => FETCHERS,
            b"mutations" => MUTATIONS,
            b"connevents" => CONNECTIONS,
            b"deletions" => DELETIONS,
            b"evictions" => EVICTIONS,
            // Nothing is heard of these.
            b"sysevents" => 0,
            _ => return say(connection, "ERROR"),
        };
    }
    match door.onlookers.watch(connection, wants) {
        true => say(connection, "OK"),
        false => say(connection, "WATCHER_TOO_MANY log watcher limit reached"),
    }
}

fn shut_down(door: &Rc<Cache>, connection: &Rc<Connection>, state: &State, words: &Words<'_>) -> Result<()> {
    if !door.allows.shutdown {
        return say(connection, "ERROR: shutdown not enabled");
    }
    if words.count > 2 || words.count == 2 && words.get(1) != b"graceful" {
        return say(connection, "CLIENT_ERROR invalid shutdown mode");
    }
    let peer = connection.session().peer.as_deref().unwrap_or("a client");
    tracing::info!("{peer} has said shutdown at an address of memcached");
    state.reason.set("normal");
    connection.end();
    let database = Rc::clone(connection.database());
    fiber::spawn("memcached", move || {
        if let Err(error) = set_up(&database, "os.exit(0)", &[]) {
            tracing::error!("shutdown failed: {error}");
        }
    });
    Ok(())
}

/// Where a walk over the items goes on.
pub(super) enum Place {
    Hash(u64),
    Behind(Vec<u8>),
}

/// Some rows from a place on, and the place behind them.
pub(super) fn some_rows(work: &Work<'_>, place: &Place) -> Result<(Vec<Tuple>, Option<Place>)> {
    let (database, context, space) = (work.database, work.context, &work.bound.space);
    let mut rows = Vec::new();
    if let Place::Hash(from) = place
        && let Some(next) = database.select_some(context, space, (*from, SLICE_ROWS), |row| rows.push(row))?
    {
        return Ok((rows, (next != 0).then_some(Place::Hash(next))));
    }
    let (kind, key) = match place {
        Place::Hash(_) => (IteratorKind::Ge, Key::EMPTY),
        Place::Behind(parts) => (IteratorKind::Gt, Key { parts, part_count: 1 }),
    };
    let request = ScanRequest { limit: SLICE_ROWS as u64, ..ScanRequest::new(IndexId::PRIMARY, kind, key) };
    let rows = database.select_tuples(context, space, &request)?;
    let last = rows.last().filter(|_| rows.len() >= SLICE_ROWS).and_then(|row| {
        let mut parts = Vec::new();
        msgpack::encode_str(&mut parts, work.bound.layout.read_key(row.data())?);
        Some(Place::Behind(parts))
    });
    Ok((rows, last))
}

fn push_meta(out: &mut Vec<u8>, work: &Work<'_>, key: &[u8], item: &Item<'_>) {
    out.extend_from_slice(b"key=");
    push_escaped(out, key);
    let expires = if item.expires == 0 { -1 } else { item.expires as i64 };
    let size = item_size(key, item.flags, item.value.len());
    let (asked, is_read) = work.door.recent.look(key).unwrap_or((work.now(), false));
    let fetch = if is_read { "yes" } else { "no" };
    let words =
        format!(" exp={expires} la={asked} cas={} fetch={fetch} cls={} size={size}\n", item.cas, class_of(size));
    out.extend_from_slice(words.as_bytes());
}

/// `lru_crawler metadump`: a line for each item.
fn dump(door: &Rc<Cache>, connection: &Rc<Connection>, classes: &[u8]) -> Result<()> {
    let mut wanted = [true; CLASSES + 1];
    if !matches!(classes, b"all" | b"hash") {
        wanted.fill(false);
        for number in classes.split(|byte| *byte == b',').map(read_u32) {
            match number.filter(|number| (1..64).contains(number)) {
                Some(number) => wanted.get_mut(number as usize).into_iter().for_each(|wanted| *wanted = true),
                None => return say(connection, "BADCLASS invalid class id"),
            }
        }
    }
    let bound = door.bound(connection.database())?;
    let (cache, shared) = (Rc::clone(door), Rc::clone(connection));
    let subject = ((), (|(): &()| "memcached command lru_crawler metadump".to_string()) as fn(&()) -> String);
    connection.in_fiber(0, subject, move |connection, context, ()| {
        let database: &Database = connection.database();
        let work = Work { door: &cache, database, context, bound: &bound, is_in_fiber: true };
        let mut place = wanted.contains(&true).then_some(Place::Hash(0));
        while let Some(from) = place {
            let (rows, next) = some_rows(&work, &from)?;
            let mut part = Vec::new();
            for row in &rows {
                let layout = &bound.layout;
                if let (Some(key), Ok(item)) = (layout.read_key(row.data()), layout.read(row.data(), true))
                    && wanted[survey::class(key, &item)]
                {
                    push_meta(&mut part, &work, key, &item);
                }
            }
            connection.answer(context.seen.get(), 0, |out| {
                out.extend_from_slice(&part);
                Ok(())
            })?;
            connection.service.mark(&shared);
            place = next;
            if fiber::yield_now() == fiber::Wake::Cancelled || !wait_for_room(connection) {
                connection.end();
                return Ok(());
            }
        }
        say(connection, "END")
    });
    Ok(())
}

/// Nobody has said these for a while: their connections end, if the listener wants that.
pub(super) fn end_idle(door: &Cache) {
    let now = fiber::now_ns();
    for connection in door.connections() {
        let is_idle = now.saturating_sub(connection.group_began.get()) > door.idle_ns;
        if is_idle && !connection.is_busy() && !door.onlookers.is_watching(&connection) {
            door.idle_kicks.set(door.idle_kicks.get() + 1);
            connection.end();
            connection.service.mark(&connection);
        }
    }
}

/// Errors: `text` is no yes and no no.
pub(super) fn read_switch(name: &str, text: Option<&str>, otherwise: bool) -> Result<bool> {
    match text {
        None => Ok(otherwise),
        Some("yes") => Ok(true),
        Some("no") => Ok(false),
        Some(text) => Err(Error::illegal(format_args!("{name} '{text}' is neither yes nor no"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_here_is_answered_as_the_real_one_does() {
        let of = |line: &'static str| Words::of(line.as_bytes());
        assert_eq!(slabs(&of("slabs reassign 1 2")), "NOSPARE source class has no spare pages");
        assert_eq!(slabs(&of("slabs reassign invalid1 invalid2")), BAD_FORMAT);
        assert_eq!(
            [slabs(&of("slabs automove 1")), slabs(&of("slabs automove 5")), slabs(&of("slabs"))],
            ["OK", "ERROR", "ERROR"]
        );
        assert_eq!(
            [lru(&of("lru mode flat")), lru(&of("lru mode x")), lru(&of("lru temp_ttl 9"))],
            ["OK", "ERROR", "OK"]
        );
        assert_eq!([crawler(&of("lru_crawler enable")), crawler(&of("lru_crawler sleep x"))], ["OK", BAD_FORMAT]);
    }
}
