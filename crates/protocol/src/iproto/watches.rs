//! Keys that a connection watches: WATCH, UNWATCH, WATCH_ONCE, EVENT.
//!
//! A watch has one event under way at most: the next one is sent when the client has acknowledged the last by another WATCH, with the newest value
//! then. So a client that does not read costs the values of its keys once; and while it has as many unread answers as it may have, it is
//! sent no events either.

use super::State;
use super::decode::read_event_key;
use super::encode::{begin_data, end_data};
use super::request::{decode_error, missing};
use crate::connection::{Connection, LOOK_AGAIN_NS};
use database::{Error, ErrorCode, Event, Result, Watcher};
use hashbrown::HashMap;
use runtime::fiber;
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use tuple::msgpack;
use wire::{begin_answer, end_packet, key, request_type};

/// Keys that one connection watches.
const WATCHES_MAX: usize = 10_000;
/// The same of a connection that has not logged in, while guest may do nothing; and how many watchers there may be of all for it to get one more.
const STRANGER_WATCHES_MAX: usize = 16;
const STRANGER_WATCHERS_MAX: usize = 10_000;

/// The keys that a connection watches.
#[derive(Default)]
pub(super) struct Watches {
    by_key: RefCell<HashMap<Rc<[u8]>, Rc<Watch>>>,
    /// A fiber waits until the client has read.
    is_held_back: Cell<bool>,
}

struct Watch {
    connection: Weak<Connection>,
    key: Rc<[u8]>,
    /// By which the database knows it.
    number: Cell<u64>,
    /// Of the last WATCH.
    sync: Cell<u64>,
    /// The version of the last value that was sent.
    sent: Cell<Option<u64>>,
    /// The client has acknowledged the last event.
    is_acknowledged: Cell<bool>,
}

impl Watcher for Watch {
    fn notify(&self) {
        if let Some(connection) = self.connection.upgrade() {
            self.send_news(&connection);
        }
    }

    fn leaves_on_shutdown(&self) -> bool {
        true
    }
}

impl Watch {
    /// Sends the newest value if the client waits for it.
    fn send_news(&self, connection: &Rc<Connection>) {
        if !self.is_acknowledged.get() || !connection.session().is_alive.get() {
            return;
        }
        let event = connection.database().event(&self.key);
        if self.sent.get() == Some(event.version) {
            return;
        }
        if connection.unsent() > connection.service.unread_max() {
            return hold_back(connection);
        }
        self.is_acknowledged.set(false);
        self.sent.set(Some(event.version));
        let sync = self.sync.get();
        let schema_version = connection.database().catalog.schema_version();
        let encode = |out: &mut Vec<u8>| {
            let start = begin_answer(out, request_type::EVENT as u32, sync, schema_version);
            msgpack::encode_map(out, 1 + u32::from(event.value.is_some()));
            msgpack::encode_uint(out, key::EVENT_KEY);
            msgpack::encode_str(out, &self.key);
            if let Some(value) = &event.value {
                msgpack::encode_uint(out, key::EVENT_DATA);
                out.extend_from_slice(value);
            }
            end_packet(out, start);
            Ok(())
        };
        connection.answer(event.seen, sync, encode).expect("the encoding of an event does not fail");
        connection.service.mark(connection);
    }
}

/// Has events sent when the client has read: nothing else announces that.
fn hold_back(connection: &Rc<Connection>) {
    let watches = watches_of(connection);
    if watches.is_held_back.replace(true) {
        return;
    }
    let waiting = Rc::downgrade(connection);
    let made = fiber::try_spawn("events", move || {
        while let Some(connection) = waiting.upgrade().filter(|connection| connection.session().is_alive.get()) {
            if connection.unsent() <= connection.service.unread_max() {
                let watches = watches_of(&connection);
                watches.is_held_back.set(false);
                let all: Vec<_> = watches.by_key.borrow().values().cloned().collect();
                all.iter().for_each(|watch| watch.send_news(&connection));
                return;
            }
            drop(connection);
            fiber::sleep(LOOK_AGAIN_NS);
        }
    });
    if made.is_err() {
        // Without a fiber the events would be lost.
        connection.end();
        connection.service.mark(connection);
    }
}

fn watches_of(connection: &Connection) -> &Watches {
    &connection.state.downcast_ref::<State>().expect("the door of a connection has made its state").watches
}

/// Serves WATCH, UNWATCH and WATCH_ONCE. Errors: nothing was done; the client is told even where success is not answered.
pub(super) fn serve(connection: &Rc<Connection>, request_type: u64, sync: u64, body: &[u8]) -> Result<()> {
    let watches = watches_of(connection);
    let key = read_event_key(body).map_err(decode_error)?.ok_or_else(|| missing("event key"))?;
    match request_type {
        request_type::WATCH => watch(connection, watches, key, sync),
        request_type::UNWATCH => {
            let watch = watches.by_key.borrow_mut().remove(key);
            if let Some(watch) = watch {
                connection.database().unwatch(key, watch.number.get());
            }
            Ok(())
        }
        _ => answer_once(connection, connection.database().event(key), sync),
    }
}

fn watch(connection: &Rc<Connection>, watches: &Watches, key: &[u8], sync: u64) -> Result<()> {
    let known = watches.by_key.borrow().get(key).cloned();
    let watch = match known {
        Some(watch) => watch,
        None => {
            let is_stranger = connection.is_stranger();
            let max = if is_stranger { STRANGER_WATCHES_MAX } else { WATCHES_MAX };
            let are_too_many = is_stranger && connection.database().watchers() >= STRANGER_WATCHERS_MAX;
            if watches.by_key.borrow().len() >= max || are_too_many {
                let what = format!("more than {max} watched keys of one connection, or so many watchers of others");
                return Err(Error::new(ErrorCode::Unsupported, &[&"Lycosa", &what]));
            }
            let watch = Rc::new(Watch {
                connection: Rc::downgrade(connection),
                key: Rc::from(key),
                number: Cell::new(0),
                sync: Cell::new(sync),
                sent: Cell::new(None),
                is_acknowledged: Cell::new(true),
            });
            let weak = Rc::downgrade(&watch);
            watch.number.set(connection.database().watch(key, weak)?);
            watches.by_key.borrow_mut().insert(Rc::clone(&watch.key), Rc::clone(&watch));
            watch
        }
    };
    watch.sync.set(sync);
    watch.is_acknowledged.set(true);
    watch.send_news(connection);
    Ok(())
}

fn answer_once(connection: &Connection, event: Event, sync: u64) -> Result<()> {
    let schema_version = connection.database().catalog.schema_version();
    connection.answer(event.seen, sync, |out| {
        let start = begin_answer(out, 0, sync, schema_version);
        let at = begin_data(out);
        if let Some(value) = &event.value {
            out.extend_from_slice(value);
        }
        end_data(out, at, u32::from(event.value.is_some()));
        end_packet(out, start);
        Ok(())
    })
}

/// No more requests will come, and no acknowledgements.
pub(super) fn close(connection: &Connection, watches: &Watches) {
    for (key, watch) in watches.by_key.take() {
        connection.database().unwatch(&key, watch.number.get());
    }
}
