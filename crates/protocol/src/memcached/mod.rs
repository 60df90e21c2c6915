//! memcached's protocols: text, meta commands, and the binary one. Source: protocol.txt of memcached 1.6, and the answers of 1.6.18.
//!
//! ```text
//! text.rs, binary.rs    bytes -> Request
//! serve.rs              on the loop's stack, or in a fiber if it has to wait
//! retrieve.rs, meta.rs, packets.rs, stats.rs    what each kind of request is answered
//! store.rs              what a command does to an item
//! layout.rs             an item as a row
//! admin.rs, onlookers.rs    commands of those who look after a server; `watch` and counts by prefix
//! ```
//!
//! Items are rows of a space: the door's own, or any with a string as its primary key. A row without a time of expiry, or with one that has not
//! come, is an item.

mod admin;
pub(crate) mod binary;
mod classes;
mod flushed;
mod frames;
mod layout;
mod meta;
pub(crate) mod numbers;
mod onlookers;
mod packets;
mod probe;
mod recent;
mod retrieve;
mod serve;
mod stats;
pub(crate) mod store;
mod survey;
pub(crate) mod text;

pub use probe::serve_bytes;

use crate::connection::Connection;
use crate::datagrams::Framing;
use crate::door::{AnyDoor, Door, Protocol, Split};
use crate::setup::set_up;
use crate::terms::Terms;
use database::{Database, Error, ErrorCode, Result, SessionKind, Space};
use flushed::Flushed;
use layout::{Layout, Names};
use onlookers::Onlookers;
use recent::Recent;
use runtime::fiber;
use stats::Counters;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use survey::{Survey, Watcher};
use text::{Decoded, Found};
use wal::Position;

/// The version that clients are told: the one whose answers these are.
const VERSION: &str = "1.6.18";
const VERSION_LINE: &str = "VERSION 1.6.18";
/// The name of the space, and of the user that has rights on it.
const OWN_NAME: &str = "memcached";
/// Largest item with its key and 59 bytes or more that the real server adds.
const ITEM_BYTES: usize = 1 << 20;
const ITEM_BYTES_MAX: usize = 1 << 30;
/// What a listener may say.
const PARAMETERS: &[&str] = &[
    "space",
    "engine",
    "key",
    "value",
    "flags",
    "cas",
    "expires",
    "state",
    "item_size_max",
    "memory",
    "eviction",
    "idle_timeout",
    "connections",
    "backlog",
    "local_login",
    "cas_enabled",
    "requests_per_turn",
    "shutdown",
    "flush",
    "dump",
    "watch",
    "protocol",
];
/// Interval between looks at connections that say nothing.
const IDLE_LOOK_NS: u64 = 500_000_000;
/// The least that a listener's space may be limited to, in bytes.
const MEMORY_BYTES_MIN: usize = 1 << 20;
/// Its rows leave for others, or writes are refused.
const EVICTIONS: &[&str] = &["clock", "none"];
/// Keys whose rows are fetched together.
const PREFETCHED_MAX: usize = 128;
/// Buffers up to this size are kept.
const BUFFER_BYTES: usize = 64 << 10;
/// So many seconds, 30 days, are the longest time that is told from now on; what is more is a moment.
const RELATIVE_SECONDS_MAX: i64 = 60 * 60 * 24 * 30;

/// The door of a listener.
pub struct Memcached(Rc<Cache>);

/// What a listener serves.
struct Cache {
    space: String,
    names: Names,
    asks_login: bool,
    item_size_max: usize,
    bound: RefCell<Option<Rc<Bound>>>,
    /// The last cas that was given, of all listeners.
    last_cas: Rc<Cell<u64>>,
    counters: Rc<Counters>,
    recent: Recent,
    flushed: Flushed,
    /// Rows are made here, and answers: what one request needs.
    scratch: RefCell<Vec<u8>>,
    answers: RefCell<Vec<u8>>,
    /// When a `flush_all` to come is to be done, in seconds since 1970; 0: there is none.
    flush_at: Cell<u64>,
    /// A fiber waits for that.
    has_flusher: Cell<bool>,
    allows: Allows,
    /// What its clients speak.
    tongue: Tongue,
    /// What `lru_crawler` has said last.
    is_crawling: Cell<bool>,
    /// The space has a limit that the listener has said.
    has_limit: bool,
    /// Address of the listener, as it was said.
    address: String,
    onlookers: Onlookers,
    survey: Survey,
    /// Connections by the numbers of their sessions.
    clients: RefCell<BTreeMap<u64, Weak<Connection>>>,
    /// Connections that say nothing for so long end; 0: they do not.
    idle_ns: u64,
    idle_kicks: Cell<u64>,
    /// Items have a cas.
    has_cas: bool,
    /// Connections that may wait to be accepted, if the listener says it.
    backlog: Option<u32>,
    /// Requests of one connection in one turn.
    requests_max: usize,
    /// The listeners of the protocol.
    doors: Rc<RefCell<Vec<Weak<Cache>>>>,
    /// Clients at once, and those that were too many.
    connections_max: usize,
    rejected: Cell<u64>,
    /// A fiber looks for those.
    has_idle_fiber: Cell<bool>,
}

/// Commands that a listener lets its clients say.
#[derive(Clone, Copy)]
struct Allows {
    shutdown: bool,
    flush: bool,
    dump: bool,
    watch: bool,
}

/// The space as it is under a version of the schema.
struct Bound {
    schema_version: u64,
    space: Rc<Space>,
    layout: Layout,
}

/// Which protocol a connection speaks: its first byte says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tongue {
    Unknown,
    Text,
    Binary,
}

/// What is kept with each connection.
pub struct State {
    tongue: Cell<Tongue>,
    /// Bytes of a refused value that are passed over.
    skipped: Cell<u64>,
    /// Nobody has logged in, and somebody has to.
    must_log_in: Cell<bool>,
    /// Why it ends, for those who watch.
    reason: Cell<&'static str>,
}

/// The line of the table of doors.
pub(crate) fn protocol() -> Protocol {
    let last_cas = Rc::new(Cell::new(0));
    let counters: Rc<Counters> = Rc::default();
    let doors: Rc<RefCell<Vec<Weak<Cache>>>> = Rc::default();
    Protocol {
        name: Memcached::NAME,
        clients: "any memcached client",
        has_logins: true,
        open: Box::new(move |database, terms| {
            let mut door = Cache::open(database, terms, Rc::clone(&last_cas), Rc::clone(&counters))?;
            door.doors = Rc::clone(&doors);
            let door = Rc::new(door);
            doors.borrow_mut().retain(|door| door.strong_count() > 0);
            doors.borrow_mut().push(Rc::downgrade(&door));
            let watcher = Watcher { doors: Rc::clone(&doors), database: Rc::downgrade(database) };
            database.watch_leaving(Memcached::NAME, Rc::new(watcher));
            Ok(Rc::new(Memcached(door)) as Rc<dyn AnyDoor>)
        }),
    }
}

/// Bytes, with k, m or g behind them for their multiples.
fn read_bytes(text: &str) -> Option<usize> {
    let text = text.to_ascii_lowercase();
    let (digits, shift) = match text.chars().last()? {
        'k' => (&text[..text.len() - 1], 10),
        'm' => (&text[..text.len() - 1], 20),
        'g' => (&text[..text.len() - 1], 30),
        _ => (&text[..], 0),
    };
    digits.parse::<usize>().ok()?.checked_mul(1 << shift)
}

impl Cache {
    fn new(space: String, names: Names, asks_login: bool, item_size_max: usize) -> Self {
        Cache {
            space,
            names,
            asks_login,
            item_size_max,
            bound: RefCell::default(),
            last_cas: Rc::default(),
            counters: Rc::default(),
            recent: Recent::default(),
            flushed: Flushed::default(),
            scratch: RefCell::default(),
            answers: RefCell::default(),
            flush_at: Cell::default(),
            has_flusher: Cell::default(),
            allows: Allows { shutdown: false, flush: true, dump: true, watch: true },
            tongue: Tongue::Unknown,
            is_crawling: Cell::default(),
            has_limit: false,
            address: String::new(),
            onlookers: Onlookers::default(),
            survey: Survey::default(),
            has_cas: true,
            backlog: None,
            requests_max: usize::MAX,
            doors: Rc::default(),
            clients: RefCell::default(),
            idle_ns: 0,
            idle_kicks: Cell::default(),
            connections_max: usize::MAX,
            rejected: Cell::default(),
            has_idle_fiber: Cell::default(),
        }
    }

    /// Makes the door of a listener, and its space. Must be called in a fiber unless the space is there. Errors: the terms are wrong, or the space is.
    fn open(database: &Rc<Database>, terms: &Terms, last_cas: Rc<Cell<u64>>, counters: Rc<Counters>) -> Result<Self> {
        terms.check(Memcached::NAME, PARAMETERS)?;
        let space = terms.get("space").unwrap_or(OWN_NAME).to_string();
        let engine = terms.get("engine").unwrap_or("");
        if !["", "memtx", "vinyl"].contains(&engine) {
            return Err(Error::illegal(format_args!("engine '{engine}' is neither memtx nor vinyl")));
        }
        let item_size_max = match terms.get("item_size_max") {
            None => ITEM_BYTES,
            Some(text) => read_bytes(text)
                .filter(|bytes| (1024..=ITEM_BYTES_MAX).contains(bytes))
                .ok_or_else(|| Error::illegal(format_args!("item_size_max '{text}' is no size between 1k and 1g")))?,
        };
        let memory = match terms.get("memory") {
            None => None,
            Some(text) => {
                let bytes = read_bytes(text).filter(|bytes| *bytes >= MEMORY_BYTES_MIN);
                let wrong = || Error::illegal(format_args!("memory '{text}' is no size of 1m or more"));
                Some(bytes.ok_or_else(wrong)?)
            }
        };
        let eviction = terms.get("eviction").unwrap_or("");
        if !eviction.is_empty() && !EVICTIONS.contains(&eviction) {
            return Err(Error::illegal(format_args!("eviction '{eviction}' is neither clock nor none")));
        }
        let is_foreign =
            ["key", "value", "flags", "cas", "expires", "state"].iter().any(|name| terms.get(name).is_some());
        let own = |name: &str| if is_foreign { None } else { Some(name.to_string()) };
        let named = |name: &str| terms.get(name).map(ToString::to_string).or_else(|| own(name));
        let names = Names {
            key: terms.get("key").unwrap_or("key").to_string(),
            value: terms.get("value").unwrap_or("value").to_string(),
            flags: named("flags"),
            cas: named("cas"),
            expires: named("expires"),
            state: named("state"),
        };
        if is_foreign && (memory.is_some() || !eviction.is_empty()) {
            return Err(Error::illegal("memory and eviction are said of a space of your own when it is made"));
        }
        if !eviction.is_empty() && memory.is_none() {
            return Err(Error::illegal("eviction is nothing without memory"));
        }
        if !is_foreign {
            let memory = memory.map_or_else(String::new, |bytes| bytes.to_string());
            set_up(database, include_str!("setup.lua"), &[&space, engine, OWN_NAME, &memory, eviction])?;
        }
        let switch = |name: &str, otherwise| admin::read_switch(name, terms.get(name), otherwise);
        let allows = Allows {
            shutdown: switch("shutdown", false)?,
            flush: switch("flush", true)?,
            dump: switch("dump", true)?,
            watch: switch("watch", true)?,
        };
        let tongue = match terms.get("protocol") {
            None | Some("auto") => Tongue::Unknown,
            Some("text") => Tongue::Text,
            Some("binary") => Tongue::Binary,
            Some(text) => {
                return Err(Error::illegal(format_args!("protocol '{text}' is neither auto nor text nor binary")));
            }
        };
        let idle_ns = match terms.get("idle_timeout") {
            None => 0,
            Some(text) => text
                .parse::<u32>()
                .map(|seconds| u64::from(seconds) * 1_000_000_000)
                .map_err(|_| Error::illegal(format_args!("idle_timeout '{text}' is no number of seconds")))?,
        };
        let number = |name: &str, what: &str| match terms.get(name) {
            None => Ok(usize::MAX),
            Some(text) => {
                let number = text.parse::<u32>().ok().filter(|number| *number > 0);
                let wrong = || Error::illegal(format_args!("{name} '{text}' is no number of {what}"));
                number.map(|number| number as usize).ok_or_else(wrong)
            }
        };
        let door = Cache {
            connections_max: number("connections", "clients")?,
            requests_max: number("requests_per_turn", "requests")?,
            backlog: terms.backlog()?,
            has_cas: switch("cas_enabled", true)?,
            last_cas,
            counters,
            allows,
            tongue,
            idle_ns,
            has_limit: memory.is_some(),
            address: terms.address.clone(),
            ..Cache::new(space, names, terms.asks_login, item_size_max)
        };
        door.bound(database)?;
        Ok(door)
    }

    /// The space, and where its fields are. Errors: it is not there, or its fields are not.
    #[inline]
    fn bound(&self, database: &Database) -> Result<Rc<Bound>> {
        let schema_version = database.catalog.schema_version();
        if let Some(bound) = &*self.bound.borrow()
            && bound.schema_version == schema_version
        {
            return Ok(Rc::clone(bound));
        }
        let space = database.catalog.space_by_name(&self.space);
        let space = space.ok_or_else(|| Error::new(ErrorCode::NoSuchSpace, &[&self.space]))?;
        let layout = Layout::of(&space, &self.names)?;
        let bound = Rc::new(Bound { schema_version, space, layout });
        *self.bound.borrow_mut() = Some(Rc::clone(&bound));
        Ok(bound)
    }

    /// Its connections.
    fn connections(&self) -> Vec<Rc<Connection>> {
        self.clients.borrow().values().filter_map(Weak::upgrade).collect()
    }

    /// Looks for connections that say nothing, until there are none.
    fn look_for_idle(self: &Rc<Self>) {
        if self.idle_ns == 0 || self.has_idle_fiber.replace(true) {
            return;
        }
        let door = Rc::clone(self);
        fiber::spawn("memcached", move || {
            while !door.clients.borrow().is_empty() && fiber::sleep(IDLE_LOOK_NS) != fiber::Wake::Cancelled {
                admin::end_idle(&door);
            }
            door.has_idle_fiber.set(false);
        });
    }

    /// All items are about to be forgotten: counts them. Errors: those of a read.
    fn note_flush(&self, database: &Database, bound: &Bound) -> Result<()> {
        stats::add(&self.counters.flushed, bound.space.rows.len());
        self.flushed.note_all(database, &bound.space, &bound.layout)
    }

    /// Seconds since 1970.
    fn now(&self, database: &Database) -> u64 {
        database.now_ms() / 1000
    }

    /// When an item expires that a client gives this time: 0 never.
    fn moment(&self, database: &Database, exptime: i32) -> u64 {
        match i64::from(exptime) {
            0 => 0,
            // It has expired already.
            ..0 => 1,
            1..=RELATIVE_SECONDS_MAX => self.now(database) + exptime as u64,
            moment => moment as u64,
        }
    }

    /// A number that no item of this server has. Larger than those of earlier starts, as it begins with the time; 53 bits, which every client can hold.
    #[inline]
    fn next_cas(&self, database: &Database) -> u64 {
        let last = self.last_cas.get();
        let next = if last == 0 { database.environment().clock.wall_ns() >> 8 } else { last + 1 };
        self.last_cas.set(next);
        next
    }
}

/// A buffer is kept for the next request unless it has grown large.
fn give_back(place: &RefCell<Vec<u8>>, buffer: Vec<u8>) {
    if buffer.capacity() <= BUFFER_BYTES {
        place.replace(buffer);
    }
}

/// Marks tags of packets, and of logins by text.
const BINARY_TAG: u64 = 1 << 63;
const LOGIN_TAG: u64 = 1 << 62;

fn binary_tag(opcode: u8, opaque: u32) -> u64 {
    BINARY_TAG | u64::from(opcode) << 32 | u64::from(opaque)
}

impl Door for Memcached {
    type Request<'a> = Decoded<'a>;
    type State = State;
    const NAME: &'static str = "memcached";
    const IS_ORDERED: bool = true;
    const SESSION: SessionKind = SessionKind::Door("memcached");
    const OWN_USER: Option<&'static str> = Some(OWN_NAME);

    fn framing(&self) -> Option<&'static dyn Framing> {
        Some(&frames::Frames)
    }

    fn greet(&self, _database: &Database, _out: &mut Vec<u8>) -> State {
        State {
            tongue: Cell::new(self.0.tongue),
            skipped: Cell::new(0),
            must_log_in: Cell::new(self.0.asks_login),
            reason: Cell::new("normal"),
        }
    }

    fn opened(&self, connection: &Rc<Connection>, state: &State) {
        state.must_log_in.set(connection.must_log_in());
        connection.group_began.set(fiber::now_ns());
        if self.0.clients.borrow().len() >= self.0.connections_max {
            stats::add(&self.0.rejected, 1);
            let refusal = |out: &mut Vec<u8>| {
                out.extend_from_slice(b"ERROR Too many open connections\r\n");
                Ok(())
            };
            if let Err(error) = connection.answer(Position::default(), 0, refusal) {
                tracing::warn!("a client was not told that there are too many: {error}");
            }
            connection.end();
            connection.service.mark(connection);
            return;
        }
        self.0.clients.borrow_mut().insert(connection.session().id, Rc::downgrade(connection));
        self.0.look_for_idle();
        if self.0.onlookers.is_any() && !connection.is_datagram() {
            self.0.onlookers.connected(connection, None);
        }
    }

    fn close(&self, connection: &Rc<Connection>, state: &State) {
        if self.0.clients.borrow_mut().remove(&connection.session().id).is_some() && self.0.onlookers.is_any() {
            self.0.onlookers.leave(connection);
            if !connection.is_datagram() {
                self.0.onlookers.connected(connection, Some(state.reason.get()));
            }
        }
    }

    #[inline]
    fn split<'a>(&self, state: &State, input: &'a [u8]) -> Split<Decoded<'a>> {
        let Some(first) = input.first() else { return Split::Incomplete { announced: 0 } };
        let skipped = state.skipped.get();
        if skipped > 0 {
            let length = (input.len() as u64).min(skipped);
            let request = text::Request::Skip(length);
            return Split::Last(Decoded { raw: &[], request }, length as usize);
        }
        let is_binary = match state.tongue.get() {
            Tongue::Unknown => *first == binary::REQUEST_MAGIC,
            tongue => tongue == Tongue::Binary,
        };
        let found = if is_binary {
            binary::split(input, self.0.item_size_max)
        } else if state.must_log_in.get() {
            text::split_login(input)
        } else {
            text::split(input, self.0.item_size_max)
        };
        let decoded = |request, length| Decoded { raw: &input[..length], request };
        match found {
            Found::Part(announced) => Split::Incomplete { announced },
            Found::Whole(request, length) if state.tongue.get() != Tongue::Unknown => {
                Split::Request(decoded(request, length), length)
            }
            Found::Whole(request, length) | Found::Last(request, length) => {
                Split::Last(decoded(request, length), length)
            }
        }
    }

    fn prefetch(&self, database: &Database, group: &[Decoded<'_>]) {
        if let Ok(bound) = self.0.bound(database) {
            let keys = group.iter().flat_map(|decoded| retrieve::keys_of(decoded.request.keys()));
            database.prefetch_texts(&bound.space, keys.take(PREFETCHED_MAX));
        }
    }

    #[inline]
    fn requests_max(&self) -> usize {
        self.0.requests_max
    }

    fn yielded(&self) {
        stats::add(&self.0.counters.yields, 1);
    }

    #[inline]
    fn serve(&self, connection: &Rc<Connection>, state: &State, request: &Decoded<'_>) -> Result<()> {
        serve::serve(&self.0, connection, state, request)
    }

    fn tag(request: &Decoded<'_>) -> u64 {
        match &request.request {
            text::Request::Packet(packet) => binary_tag(packet.opcode, packet.opaque),
            text::Request::Oversized { is_binary: Some((opcode, opaque)), .. } => binary_tag(*opcode, *opaque),
            text::Request::Login(_) => LOGIN_TAG,
            _ => 0,
        }
    }

    fn describe(request: &Decoded<'_>) -> String {
        serve::describe(request.raw)
    }

    fn encode_failure(&self, _database: &Database, out: &mut Vec<u8>, tag: u64, error: &Error) {
        serve::encode_failure(out, tag, error);
    }

    fn authenticate(&self, connection: &Connection, state: &State, login: &[u8]) -> Result<()> {
        let mismatch = || Error::new(ErrorCode::CredsMismatch, &[]);
        let (user, password) = serve::read_login(login).ok_or_else(mismatch)?;
        let user = std::str::from_utf8(user).map_err(|_| mismatch())?;
        let done = connection.database().authenticate_plainly(connection.session(), user, password);
        self.0.counters.count_login(done.is_ok());
        done?;
        state.must_log_in.set(false);
        Ok(())
    }

    fn user_of(login: &[u8]) -> String {
        let user = serve::read_login(login).map_or(&[][..], |(user, _)| user);
        String::from_utf8_lossy(user).into_owned()
    }

    fn encode_welcome(&self, _database: &Database, out: &mut Vec<u8>, tag: u64) {
        match tag & BINARY_TAG {
            0 => out.extend_from_slice(b"STORED\r\n"),
            _ => binary::answer(out, serve::of_tag(tag), binary::Status::Ok, 0, (&[], &[], b"Authenticated")),
        }
    }
}

/// Waits until a client has taken enough of what it was sent. Must be called in a fiber. False: it is gone.
fn wait_for_room(connection: &Connection) -> bool {
    if connection.outlet.has_failed() {
        return false;
    }
    while connection.unsent() > connection.service.unread_max() {
        connection.outlet.await_sent();
        if fiber::sleep(crate::connection::LOOK_AGAIN_NS) == fiber::Wake::Cancelled
            || !connection.session.is_alive.get()
        {
            return false;
        }
    }
    true
}
