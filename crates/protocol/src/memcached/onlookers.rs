//! Who looks on: `stats detail` counts by the prefixes of keys, and clients that have said `watch` are sent a line about what others do.
//!
//! While nobody asks for either, a request pays for one look at a flag.

use super::classes::class_of;
use super::layout::Item;
use super::numbers::push_u64;
use super::store::{Outcome, Verb};
use super::text::item_size;
use crate::connection::Connection;
use database::Database;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use wal::Position;

/// Prefixes that are counted; keys with others are passed over then.
const PREFIXES_MAX: usize = 10_000;
/// Clients that watch at once.
const WATCHERS_MAX: usize = 20;
/// Bytes that wait for a watcher. What would be more is skipped and counted.
const WATCH_BYTES_MAX: usize = 256 << 10;

/// What there is to watch: bits.
pub(super) const FETCHERS: u8 = 1;
pub(super) const MUTATIONS: u8 = 2;
pub(super) const CONNECTIONS: u8 = 4;
pub(super) const DELETIONS: u8 = 8;
pub(super) const EVICTIONS: u8 = 16;

/// What an item is to those who look on.
#[derive(Clone, Copy)]
pub(super) struct Seen {
    pub(super) length: usize,
    pub(super) flags: u32,
}

impl Seen {
    pub(super) fn of(item: &Item<'_>) -> Self {
        Seen { length: item.value.len(), flags: item.flags }
    }

    fn class(self, key: &[u8]) -> usize {
        class_of(item_size(key, self.flags, self.length))
    }
}

#[derive(Default)]
struct Counts {
    gets: u64,
    hits: u64,
    sets: u64,
    deletes: u64,
}

struct Watcher {
    connection: Weak<Connection>,
    wants: u8,
    skipped: u64,
}

/// See the head of this file.
#[derive(Default)]
pub(super) struct Onlookers {
    is_any: Cell<bool>,
    counts_prefixes: Cell<bool>,
    prefixes: RefCell<BTreeMap<Vec<u8>, Counts>>,
    watchers: RefCell<Vec<Watcher>>,
    last_line: Cell<u64>,
    /// Lines that were sent, and those that were not.
    pub(super) sent: Cell<u64>,
    pub(super) skipped: Cell<u64>,
}

/// The part of a key before its first colon. None: it has none.
fn prefix_of(key: &[u8]) -> Option<&[u8]> {
    key.iter().position(|byte| *byte == b':').map(|end| &key[..end])
}

/// A key as the real server shows it in lines: everything but a few signs as `%XX`.
pub(super) fn push_escaped(out: &mut Vec<u8>, key: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in key {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(*byte),
            _ => out.extend_from_slice(&[b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]),
        }
    }
}

impl Onlookers {
    /// True if somebody wants to know what is done.
    #[inline]
    pub(super) fn is_any(&self) -> bool {
        self.is_any.get()
    }

    fn look_again(&self) {
        self.watchers.borrow_mut().retain(|watcher| watcher.connection.strong_count() > 0);
        self.is_any.set(self.counts_prefixes.get() || !self.watchers.borrow().is_empty());
    }

    pub(super) fn counts_prefixes(&self) -> bool {
        self.counts_prefixes.get()
    }

    pub(super) fn count_prefixes(&self, is_on: bool) {
        self.counts_prefixes.set(is_on);
        self.look_again();
    }

    pub(super) fn forget_prefixes(&self) {
        self.prefixes.borrow_mut().clear();
    }

    /// Appends what `stats detail dump` shows.
    pub(super) fn dump(&self, out: &mut Vec<u8>) {
        for (prefix, counts) in &*self.prefixes.borrow() {
            out.extend_from_slice(b"PREFIX ");
            out.extend(prefix.iter().map(|byte| if *byte <= b' ' { b'?' } else { *byte }));
            for (name, count) in
                [(" get ", counts.gets), (" hit ", counts.hits), (" set ", counts.sets), (" del ", counts.deletes)]
            {
                out.extend_from_slice(name.as_bytes());
                push_u64(out, count);
            }
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"END\r\n");
    }

    fn count(&self, key: &[u8], add: impl FnOnce(&mut Counts)) {
        let Some(prefix) = prefix_of(key).filter(|_| self.counts_prefixes.get()) else { return };
        let mut prefixes = self.prefixes.borrow_mut();
        if let Some(counts) = prefixes.get_mut(prefix) {
            return add(counts);
        }
        if prefixes.len() < PREFIXES_MAX {
            add(prefixes.entry(prefix.to_vec()).or_default());
        }
    }

    /// Clients that watch.
    pub(super) fn watchers(&self) -> u64 {
        self.look_again();
        self.watchers.borrow().len() as u64
    }

    /// A client watches from now on. False: there are too many.
    pub(super) fn watch(&self, connection: &Rc<Connection>, wants: u8) -> bool {
        self.leave(connection);
        if self.watchers.borrow().len() >= WATCHERS_MAX {
            return false;
        }
        self.watchers.borrow_mut().push(Watcher { connection: Rc::downgrade(connection), wants, skipped: 0 });
        self.is_any.set(true);
        true
    }

    /// A client is gone.
    pub(super) fn leave(&self, connection: &Rc<Connection>) {
        let is_own = |watcher: &Watcher| std::ptr::eq(watcher.connection.as_ptr(), Rc::as_ptr(connection));
        self.watchers.borrow_mut().retain(|watcher| !is_own(watcher));
        self.look_again();
    }

    pub(super) fn is_watching(&self, connection: &Rc<Connection>) -> bool {
        self.watchers.borrow().iter().any(|watcher| std::ptr::eq(watcher.connection.as_ptr(), Rc::as_ptr(connection)))
    }

    /// Sends a line to those who want lines of this kind. `words`: what stands behind its type. `client` is the number of the session that it is about:
    /// nobody is told of himself, as the answer to his command may be under way.
    fn tell(
        &self,
        database: &Database,
        client: u64,
        kind: u8,
        name: &str,
        key: Option<&[u8]>,
        words: std::fmt::Arguments<'_>,
    ) {
        if !self.watchers.borrow().iter().any(|watcher| watcher.wants & kind != 0) {
            return;
        }
        let number = self.last_line.get() + 1;
        self.last_line.set(number);
        let micros = database.environment().clock.wall_ns() / 1000;
        let mut line =
            format!("ts={}.{:06} gid={number} type={name}", micros / 1_000_000, micros % 1_000_000).into_bytes();
        if let Some(key) = key {
            line.extend_from_slice(b" key=");
            push_escaped(&mut line, key);
        }
        line.extend_from_slice(format!(" {words}\n").as_bytes());
        // What a crash could take back is shown to nobody.
        let seen = if kind & (FETCHERS | CONNECTIONS) == 0 { database.appended() } else { Position::default() };
        for watcher in &mut *self.watchers.borrow_mut() {
            let Some(connection) = watcher.connection.upgrade().filter(|_| watcher.wants & kind != 0) else { continue };
            if connection.session().id == client {
                continue;
            }
            if connection.unsent() > WATCH_BYTES_MAX {
                watcher.skipped += 1;
                self.skipped.set(self.skipped.get() + 1);
                continue;
            }
            let skipped = std::mem::take(&mut watcher.skipped);
            let sent = connection.answer(seen, 0, |out| {
                if skipped > 0 {
                    out.extend_from_slice(format!("skipped={skipped}\n").as_bytes());
                }
                out.extend_from_slice(&line);
                Ok(())
            });
            self.sent.set(self.sent.get() + u64::from(sent.is_ok()));
            connection.service.mark(&connection);
        }
    }

    /// An item was asked for: `found` are its bytes. `client`: the number of its session.
    #[cold]
    pub(super) fn fetched(&self, database: &Database, client: u64, key: &[u8], found: Option<Seen>) {
        self.count(key, |counts| {
            counts.gets += 1;
            counts.hits += u64::from(found.is_some());
        });
        self.looked(database, client, key, found);
    }

    #[cold]
    pub(super) fn looked(&self, database: &Database, client: u64, key: &[u8], found: Option<Seen>) {
        let status = if found.is_some() { "found" } else { "not_found" };
        let class = found.map_or(0, |seen| seen.class(key));
        let size = found.map_or(0, |seen| seen.length);
        let words = format_args!("status={status} clsid={class} cfd={client} size={size}");
        self.tell(database, client, FETCHERS, "item_get", Some(key), words);
    }

    /// An item was to be stored.
    #[cold]
    pub(super) fn stored(
        &self,
        database: &Database,
        client: u64,
        key: &[u8],
        verb: Verb,
        ttl: u64,
        (outcome, seen): (Outcome, Seen),
    ) {
        self.count(key, |counts| counts.sets += 1);
        let status = match outcome {
            Outcome::Stored(_) => "stored",
            Outcome::NotStored => "not_stored",
            Outcome::Exists => "exists",
            Outcome::NotFound => "not_found",
        };
        let name = match verb {
            Verb::Set => "set",
            Verb::Add => "add",
            Verb::Replace => "replace",
            Verb::Append => "append",
            Verb::Prepend => "prepend",
            Verb::Cas => "cas",
        };
        let (class, size) = (seen.class(key), seen.length);
        let words = format_args!("status={status} cmd={name} ttl={ttl} clsid={class} cfd={client} size={size}");
        self.tell(database, client, MUTATIONS, "item_store", Some(key), words);
    }

    /// An item was to be deleted.
    #[cold]
    pub(super) fn deleted(&self, database: &Database, client: u64, key: &[u8], found: Option<Seen>) {
        self.count(key, |counts| counts.deletes += 1);
        if let Some(seen) = found {
            self.tell(
                database,
                client,
                DELETIONS,
                "deleted",
                Some(key),
                format_args!("cmd=delete clsid={} cfd={client}", seen.class(key)),
            );
        }
    }

    /// An item has left for another one. `words`: what stands behind its key.
    pub(super) fn evicted(&self, database: &Database, client: u64, key: &[u8], words: std::fmt::Arguments<'_>) {
        self.tell(database, client, EVICTIONS, "eviction", Some(key), words);
    }

    /// A client has come, or is gone for a reason.
    pub(super) fn connected(&self, connection: &Connection, reason: Option<&str>) {
        let (session, database) = (connection.session(), connection.database());
        let peer = session.peer.as_deref().unwrap_or("");
        let (host, port, transport) = match peer.rsplit_once(':') {
            Some((host, port)) if !peer.starts_with("unix/:") => (host, port, "tcp"),
            _ => ("unix", "0", "local"),
        };
        let name = if reason.is_some() { "conn_close" } else { "conn_new" };
        let reason = reason.map(|reason| format!(" reason={reason}")).unwrap_or_default();
        let words = format_args!("rip={host} rport={port} transport={transport}{reason} cfd={}", session.id);
        self.tell(database, session.id, CONNECTIONS, name, None, words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_bounded_and_keys_are_shown_on_one_line() {
        let onlookers = Onlookers::default();
        onlookers.count_prefixes(true);
        (0..PREFIXES_MAX + 5).for_each(|at| onlookers.count(format!("{at}:x").as_bytes(), |counts| counts.sets += 1));
        onlookers.count(b"nothing", |counts| counts.sets += 1);
        assert_eq!(onlookers.prefixes.borrow().len(), PREFIXES_MAX);
        let mut out = Vec::new();
        push_escaped(&mut out, b"a b\n\xff~");
        assert_eq!(out, b"a%20b%0A%FF~");
    }
}
