//! The door of Redis' protocol. Commands are native, straight on the spaces; one file a family.
//!
//! Source: the protocol's specification and answers of Redis 7.0, which golden files keep.

mod acl;
mod allowed;
mod attention;
mod bits;
mod blocking;
mod busy;
mod call;
mod commands;
mod config;
mod connection;
mod debug;
mod dispatch;
mod dump;
mod events;
mod failure;
mod functions;
mod geo;
mod geohash;
mod glob;
mod group;
mod hashes;
mod hyperloglog;
mod keys;
mod leftovers;
mod lists;
mod measure;
mod places;
mod probe;
mod pubsub;
mod refusals;
mod reply;
mod resp;
mod rules;
mod scan;
mod scripts;
mod server;
mod sets;
mod shared;
mod sort;
mod sorted_sets;
mod sorted_sets_combined;
mod state;
mod stream_groups;
mod streams;
mod strings;
mod table;
mod tracking;
mod transactions;
mod uses;

use crate::connection::Connection;
use crate::door::{AnyDoor, Door, Split};
use crate::setup::set_up;
use crate::terms::Terms;
use database::{Database, Error, Result, SessionKind};
pub use probe::cut;
pub use resp::Parts;
use resp::{Parsed, parse};
use shared::Shared;
pub use state::State;
use std::rc::Rc;

/// Longest part of a command.
const BULK_BYTES_MAX: usize = 512 << 20;

/// The spaces of the door, made once. Arguments: engine, and the number of the database whose keys are wanted.
const SPACES: &str = include_str!("spaces.lua");

/// See the head of this file.
pub struct Redis {
    shared: Rc<Shared>,
    terms: Rc<Terms>,
}

/// Makes the doors of listeners, which share what all clients share.
pub(crate) fn opener() -> Box<crate::door::OpenDoor> {
    let shared: Rc<Shared> = Rc::default();
    shared.tracked_keys_max.set(tracking::TABLE_KEYS_MAX);
    shared.busy_after_ms.set(busy::THRESHOLD_MS);
    Box::new(move |database, terms| open(&shared, database, terms))
}

fn open(shared: &Rc<Shared>, database: &Rc<Database>, terms: &Terms) -> Result<Rc<dyn AnyDoor>> {
    terms.check(Redis::NAME, &["engine"])?;
    let engine = terms.get("engine").unwrap_or("memtx");
    if !matches!(engine, "memtx" | "vinyl") {
        return Err(Error::illegal(format!("redis:// has engine=memtx or engine=vinyl, not '{engine}'")));
    }
    set_up(database, SPACES, &[engine, "0"])?;
    shared.engine.replace(engine.to_string());
    leftovers::begin(shared, database)?;
    // Room for the key beside the value.
    database.take_rows_of(BULK_BYTES_MAX + (1 << 20));
    Ok(Rc::new(Redis { shared: Rc::clone(shared), terms: Rc::new(terms.clone()) }))
}

impl Door for Redis {
    type Request<'a> = Parts<'a>;
    type State = Rc<State>;
    const NAME: &'static str = "redis";
    const IS_ORDERED: bool = true;
    const SESSION: SessionKind = SessionKind::Door("redis");
    const OWN_USER: Option<&'static str> = Some("redis");

    fn greet(&self, database: &Database, _out: &mut Vec<u8>) -> Rc<State> {
        let begun_ns = database.environment().clock.monotonic_ns();
        let state =
            State { id: self.shared.next_connection(), begun_ns, terms: Rc::clone(&self.terms), ..State::default() };
        state.is_special.set(self.terms.asks_login);
        state.is_stranger.set(self.terms.asks_login);
        Rc::new(state)
    }

    #[inline]
    fn split<'a>(&self, state: &Rc<State>, input: &'a [u8]) -> Split<Parts<'a>> {
        match parse(input, state.is_stranger.get(), BULK_BYTES_MAX) {
            Parsed::Command(parts, length) => Split::Request(parts, length),
            Parsed::Incomplete(least) => Split::Incomplete { announced: least as u64 },
            Parsed::Broken(text) => {
                Split::Refused { error: Error::system(format!("Protocol error: {text}")), length: None }
            }
        }
    }

    fn prefetch(&self, database: &Database, group: &[Parts<'_>]) {
        // Of the first database, where nearly all keys are: a hint may be wrong.
        let spaces = self.shared.spaces(database);
        if let Ok(space) = spaces.keys(0) {
            database.prefetch_texts(space, group.iter().filter_map(|parts| parts.get(1).copied()));
            group::prefetch_members(database, &spaces, space, group);
        }
    }

    fn opened(&self, connection: &Rc<Connection>, state: &Rc<State>) {
        self.shared.connections.borrow_mut().insert(state.id, Rc::downgrade(connection));
        allowed::attach(&self.shared, connection, state);
    }

    #[inline]
    fn serve(&self, connection: &Rc<Connection>, state: &Rc<State>, request: &Parts<'_>) -> Result<()> {
        dispatch::serve(connection, &self.shared, state, request)
    }

    #[inline]
    fn serve_together(&self, connection: &Rc<Connection>, state: &Rc<State>, requests: &[Parts<'_>]) -> usize {
        group::serve(connection, &self.shared, state, requests)
    }

    fn tag(_request: &Parts<'_>) -> u64 {
        0
    }

    fn describe(request: &Parts<'_>) -> String {
        dispatch::describe(request.first().copied().unwrap_or_default())
    }

    fn encode_failure(&self, _database: &Database, out: &mut Vec<u8>, _tag: u64, error: &Error) {
        reply::Reply { out, resp3: false }.error(&failure::text_of(error));
    }

    fn close(&self, _connection: &Rc<Connection>, state: &Rc<State>) {
        connection::close(&self.shared, state);
    }

    fn hung_up(&self, _connection: &Rc<Connection>, state: &Rc<State>) {
        state.has_left.set(true);
        self.shared.wake_waiting();
        attention::wake(&self.shared, state.id);
    }

    fn authenticate(&self, connection: &Connection, state: &Rc<State>, login: &[u8]) -> Result<()> {
        connection::authenticate(&self.shared, connection, state, login)
    }

    fn user_of(login: &[u8]) -> String {
        connection::user_of(login)
    }

    fn encode_welcome(&self, _database: &Database, out: &mut Vec<u8>, tag: u64) {
        connection::welcome(out, tag);
    }
}
