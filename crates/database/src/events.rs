//! Values that are announced by name, and who watches them: `box.broadcast` and `box.watch`, WATCH and EVENT of the binary protocol.
//!
//! A key has the newest value only: a watcher that is slow misses those between, never the last one. Keys of the server itself tell who the instance is
//! (`box.id`), whether it can be written to (`box.status`), who leads (`box.election`), what the version of the schema is (`box.schema`), and that
//! it is about to stop (`box.shutdown`). They are compared with what is so in every turn of the event loop, not announced from everywhere.
//!
//! Invariant: watchers are notified with nothing borrowed; they may announce, watch and unwatch.

use crate::database::{Database, State};
use crate::error::{Error, ErrorCode, Result};
use hashbrown::HashMap;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use tuple::msgpack;
use wal::Position;

/// Bytes of a key.
const EVENT_KEY_BYTES_MAX: usize = 1024;
/// Keys that have a value.
const EVENT_KEYS_MAX: usize = 100_000;
/// Bytes of a value.
const EVENT_BYTES_MAX: usize = 1 << 20;
/// Bytes of all keys and values.
const EVENT_BYTES_TOTAL_MAX: usize = 64 << 20;
/// Watchers of all keys.
const WATCHERS_MAX: usize = 1_000_000;
/// Bytes of the keys that they watch, each counted for each watcher.
const WATCHED_BYTES_MAX: usize = 64 << 20;

/// The key that announces that the server is about to stop.
pub const SHUTDOWN_KEY: &[u8] = b"box.shutdown";

/// Somebody who watches a key.
pub trait Watcher {
    /// The key has a new value, see [`Database::event`]. Must not wait.
    fn notify(&self);

    /// True if it goes away by itself when the server announces that it stops.
    fn leaves_on_shutdown(&self) -> bool {
        false
    }
}

/// What a key has.
#[derive(Clone, Default)]
pub struct Event {
    /// An encoded value; none if nothing was ever announced.
    pub value: Option<Rc<[u8]>>,
    /// Grows with each value; 0 for none.
    pub version: u64,
    /// What may have been seen of the log when it was announced.
    pub seen: Position,
}

#[derive(Default)]
struct Entry {
    event: Event,
    watchers: BTreeMap<u64, Weak<dyn Watcher>>,
}

/// See the head of this file.
#[derive(Default)]
pub(crate) struct Events {
    entries: RefCell<HashMap<Rc<[u8]>, Entry>>,
    /// Versions and numbers of watchers.
    last_number: Cell<u64>,
    /// Keys that have a value.
    keys: Cell<usize>,
    bytes: Cell<usize>,
    watchers: Cell<usize>,
    watched_bytes: Cell<usize>,
    /// What the keys of the server were made of last: version of the schema, state, `read_only`.
    made_of: Cell<Option<(u64, u8, bool)>>,
}

impl Events {
    fn next_number(&self) -> u64 {
        self.last_number.set(self.last_number.get() + 1);
        self.last_number.get()
    }
}

fn unsupported(what: String) -> Error {
    Error::new(ErrorCode::Unsupported, &[&"Lycosa", &what])
}

fn check_key(key: &[u8]) -> Result<()> {
    match key.len() {
        ..=EVENT_KEY_BYTES_MAX => Ok(()),
        length => Err(unsupported(format!("keys of events with {length} bytes (at most {EVENT_KEY_BYTES_MAX})"))),
    }
}

impl Database {
    /// Announces a value of a key, which must be encoded; none is no value. Errors: a bound is met.
    pub fn broadcast(&self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        check_key(key)?;
        let events = &self.events;
        let mut entries = events.entries.borrow_mut();
        let before = entries.get(key).and_then(|entry| entry.event.value.as_ref());
        let (had_value, freed) = before.map_or((false, 0), |value| (true, key.len() + value.len()));
        let taken = value.map_or(0, |value| key.len() + value.len());
        let keys = events.keys.get() + usize::from(value.is_some()) - usize::from(had_value);
        let bytes = events.bytes.get() + taken - freed;
        if let Some(value) = value.filter(|value| value.len() > EVENT_BYTES_MAX) {
            return Err(unsupported(format!("events of {} bytes (at most {EVENT_BYTES_MAX})", value.len())));
        }
        if taken > freed && bytes > EVENT_BYTES_TOTAL_MAX {
            return Err(unsupported(format!("more than {EVENT_BYTES_TOTAL_MAX} bytes of events")));
        }
        if keys > EVENT_KEYS_MAX {
            return Err(unsupported(format!("more than {EVENT_KEYS_MAX} keys of events")));
        }
        if value.is_none() && !entries.contains_key(key) {
            return Ok(());
        }
        events.keys.set(keys);
        events.bytes.set(bytes);
        let entry = entries.entry(Rc::from(key)).or_default();
        entry.event = Event { value: value.map(Rc::from), version: events.next_number(), seen: self.appended() };
        let watchers: Vec<_> = entry.watchers.values().filter_map(Weak::upgrade).collect();
        if value.is_none() && entry.watchers.is_empty() {
            entries.remove(key);
        }
        drop(entries);
        watchers.iter().for_each(|watcher| watcher.notify());
        Ok(())
    }

    /// What a key has now.
    pub fn event(&self, key: &[u8]) -> Event {
        self.refresh_events();
        self.events.entries.borrow().get(key).map(|entry| entry.event.clone()).unwrap_or_default()
    }

    /// Has a watcher notified of new values of a key, for as long as it is there. Returns the number to end that by. Errors: a bound is met.
    pub fn watch(&self, key: &[u8], watcher: Weak<dyn Watcher>) -> Result<u64> {
        check_key(key)?;
        let events = &self.events;
        if events.watchers.get() >= WATCHERS_MAX {
            return Err(unsupported(format!("more than {WATCHERS_MAX} watchers")));
        }
        if events.watched_bytes.get() + key.len() > WATCHED_BYTES_MAX {
            return Err(unsupported(format!("more than {WATCHED_BYTES_MAX} bytes of watched keys")));
        }
        events.watched_bytes.set(events.watched_bytes.get() + key.len());
        events.watchers.set(events.watchers.get() + 1);
        let number = events.next_number();
        events.entries.borrow_mut().entry(Rc::from(key)).or_default().watchers.insert(number, watcher);
        Ok(number)
    }

    /// Ends a watch.
    pub fn unwatch(&self, key: &[u8], number: u64) {
        let events = &self.events;
        let mut entries = events.entries.borrow_mut();
        let Some(entry) = entries.get_mut(key) else { return };
        if entry.watchers.remove(&number).is_some() {
            events.watchers.set(events.watchers.get() - 1);
            events.watched_bytes.set(events.watched_bytes.get() - key.len());
        }
        if entry.watchers.is_empty() && entry.event.value.is_none() {
            entries.remove(key);
        }
    }

    /// Number of watchers of all keys.
    pub fn watchers(&self) -> usize {
        self.events.watchers.get()
    }

    /// Number of those that go away when the server announces that it stops.
    pub fn awaited_on_shutdown(&self) -> usize {
        let entries = self.events.entries.borrow();
        let watchers = entries.get(SHUTDOWN_KEY).map(|entry| entry.watchers.values().filter_map(Weak::upgrade));
        watchers.map_or(0, |watchers| watchers.filter(|watcher| watcher.leaves_on_shutdown()).count())
    }

    /// Announces what has changed of the server itself.
    #[inline]
    pub(crate) fn refresh_events(&self) {
        let now = Some((self.catalog.schema_version(), self.state_number(), self.config.borrow().read_only));
        if self.events.made_of.get() != now {
            self.events.made_of.set(now);
            self.announce_changes();
        }
    }

    #[cold]
    fn announce_changes(&self) {
        let is_running = self.state() == State::Running;
        let (is_ro_cfg, version) = (self.config.borrow().read_only, self.catalog.schema_version());
        let is_ro = is_ro_cfg || !is_running;
        let text = |value: &str| encoded(|out| msgpack::encode_str(out, value.as_bytes()));
        let number = |value: u64| encoded(|out| msgpack::encode_uint(out, value));
        let flag = |value: bool| vec![if value { 0xc3 } else { 0xc2 }];
        let status = match self.state() {
            State::Loading => "loading",
            State::Running | State::LogFailed(_) => "running",
            State::Stopped => "stopped",
        };
        let instance_uuid = self.instance_uuid();
        let id = match instance_uuid.is_empty() {
            true => encode_map(&[]),
            false => encode_map(&[
                ("id", number(1)),
                ("instance_uuid", text(&instance_uuid)),
                ("replicaset_uuid", text(&self.replicaset_uuid())),
            ]),
        };
        let values: [(&[u8], Vec<u8>); 5] = [
            (b"box.id", id),
            (
                b"box.status",
                encode_map(&[
                    ("is_ro", flag(is_ro)),
                    ("is_ro_cfg", flag(is_ro_cfg)),
                    ("status", text(status)),
                    ("dd_version", text(DD_VERSION)),
                ]),
            ),
            (
                b"box.election",
                encode_map(&[
                    ("term", number(1)),
                    ("role", text("follower")),
                    ("is_ro", flag(is_ro)),
                    ("leader", number(0)),
                ]),
            ),
            (b"box.schema", encode_map(&[("version", number(version))])),
            (SHUTDOWN_KEY, flag(false)),
        ];
        for (key, value) in values {
            let entries = self.events.entries.borrow();
            let is_news = entries.get(key).and_then(|entry| entry.event.value.as_deref()) != Some(&value[..]);
            // Whoever is told that the server stops is not told otherwise.
            let is_known = key == SHUTDOWN_KEY && entries.get(key).is_some_and(|entry| entry.event.value.is_some());
            drop(entries);
            if is_news
                && !is_known
                && let Err(error) = self.broadcast(key, Some(&value))
            {
                tracing::warn!("{} is not announced: {error}", String::from_utf8_lossy(key));
            }
        }
    }
}

/// The version of the system spaces' layout.
const DD_VERSION: &str = "2.11.0";

fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out);
    out
}

fn encode_map(pairs: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    msgpack::encode_map(&mut out, pairs.len() as u32);
    for (name, value) in pairs {
        msgpack::encode_str(&mut out, name.as_bytes());
        out.extend_from_slice(value);
    }
    out
}
