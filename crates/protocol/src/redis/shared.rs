//! What all connections of all listeners of this protocol share.

use super::call::{Head, Kind};
use super::failure::Outcome;
use crate::connection::Connection;
use database::{Database, Space};
use hashbrown::{HashMap, HashSet};
use runtime::fiber::{self, FiberId};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::{Rc, Weak};

/// Databases that `SELECT` may choose.
pub(super) const DATABASES: usize = 16;
/// A scratch buffer that has grown beyond this is given back.
const SCRATCH_KEPT_MAX: usize = 64 << 10;

/// Spaces of elements, by kind.
const ELEMENTS: [(Kind, &str); 5] = [
    (Kind::List, "redis_lists"),
    (Kind::Set, "redis_sets"),
    (Kind::SortedSet, "redis_sorted_sets"),
    (Kind::Hash, "redis_hashes"),
    (Kind::Stream, "redis_streams"),
];

/// What stands beside a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfGroups {
    Groups,
    Consumers,
    Pending,
}

/// Their spaces, and how many fields make the key.
const OF_GROUPS: [(OfGroups, &str, u32); 3] = [
    (OfGroups::Groups, "redis_stream_groups", 2),
    (OfGroups::Consumers, "redis_stream_consumers", 3),
    (OfGroups::Pending, "redis_stream_pending", 4),
];

/// The space of libraries of functions.
const FUNCTIONS: &str = "redis_functions";

/// The spaces of the door under one version of the schema.
pub(super) struct Spaces {
    version: u64,
    keys: [Option<Rc<Space>>; DATABASES],
    elements: [Option<Rc<Space>>; 5],
    functions: Option<Rc<Space>>,
    /// Of `ACL SETUSER`, see `allowed`.
    pub(super) rules: Option<Rc<Space>>,
    /// Groups, consumers and pending entries of streams.
    of_groups: [Option<Rc<Space>>; 3],
}

/// The name of the space of the keys of a database.
pub(super) fn keys_name(db: usize) -> String {
    if db == 0 { "redis".to_string() } else { format!("redis_{db}") }
}

impl Spaces {
    fn find(database: &Database) -> Self {
        let catalog = &database.catalog;
        Spaces {
            version: catalog.schema_version(),
            keys: std::array::from_fn(|db| catalog.space_by_name(&keys_name(db))),
            elements: ELEMENTS.map(|(_, name)| catalog.space_by_name(name)),
            functions: catalog.space_by_name(FUNCTIONS),
            rules: catalog.space_by_name(super::allowed::RULES),
            of_groups: OF_GROUPS.map(|(_, name, _)| catalog.space_by_name(name)),
        }
    }

    /// The space of the keys of a database. Errors: it is not there.
    pub(super) fn keys(&self, db: usize) -> Outcome<&Rc<Space>> {
        self.keys[db].as_ref().ok_or_else(|| {
            let name = keys_name(db);
            format!("ERR the space '{name}' of this database is gone: it is made when the server begins to listen, or by SELECT").into()
        })
    }

    /// The space of libraries. Errors: it is not there.
    pub(super) fn functions(&self) -> Outcome<&Rc<Space>> {
        let missing =
            || format!("ERR the space '{FUNCTIONS}' is gone: it is made when the server begins to listen").into();
        self.functions.as_ref().ok_or_else(missing)
    }

    /// A space of what stands beside streams. Errors: it is not there.
    pub(super) fn of_groups(&self, what: OfGroups) -> Outcome<&Rc<Space>> {
        self.of_groups[what as usize].as_ref().ok_or_else(|| {
            let name = OF_GROUPS[what as usize].1;
            format!("ERR the space '{name}' is gone: it is made when the server begins to listen").into()
        })
    }

    /// The spaces where something of a head may stand, by its number, each with the fields of its key.
    pub(super) fn all_of(&self, kind: Kind) -> Vec<(Rc<Space>, u32)> {
        let fields = if kind == Kind::Stream { 3 } else { 2 };
        let mut all: Vec<_> = self.elements(kind).ok().map(|space| (Rc::clone(space), fields)).into_iter().collect();
        if kind == Kind::Stream {
            let beside = self.of_groups.iter().zip(OF_GROUPS);
            all.extend(beside.filter_map(|(space, (_, _, fields))| Some((Rc::clone(space.as_ref()?), fields))));
        }
        all
    }

    /// All spaces that are there.
    pub(super) fn all(&self) -> impl Iterator<Item = &Rc<Space>> {
        self.keys.iter().chain(&self.elements).chain(&self.of_groups).flatten()
    }

    /// The database whose keys are in a space.
    pub(super) fn database_of(&self, space: &Space) -> Option<usize> {
        self.keys.iter().position(|keys| keys.as_ref().is_some_and(|keys| keys.id == space.id))
    }

    pub(super) fn has_keys(&self, db: usize) -> bool {
        self.keys[db].is_some()
    }

    /// The space of elements of a kind. Errors: it is not there.
    pub(super) fn elements(&self, kind: Kind) -> Outcome<&Rc<Space>> {
        let at = ELEMENTS.iter().position(|(known, _)| *known == kind).unwrap_or(0);
        self.elements[at].as_ref().ok_or_else(|| {
            let name = ELEMENTS[at].1;
            format!("ERR the space '{name}' is gone: it is made when the server begins to listen").into()
        })
    }
}

/// A key of a database.
pub(super) type Place = (usize, Vec<u8>);

/// Connections that listen, by their numbers.
pub(super) type Listening = BTreeMap<u64, Weak<Connection>>;

/// See the head of this file.
#[derive(Default)]
pub(super) struct Shared {
    spaces: RefCell<Option<Rc<Spaces>>>,
    /// The engine of spaces that are made.
    pub(super) engine: RefCell<String>,
    scratch: RefCell<Vec<u8>>,
    answers: RefCell<Vec<u8>>,
    /// Elements of keys that are gone.
    pub(super) leftovers: RefCell<VecDeque<Head>>,
    /// The fiber that removes them, while there are some.
    pub(super) is_clearing: Cell<bool>,
    /// It removes those of a key right now.
    pub(super) is_freeing: Cell<bool>,
    /// Keys whose many elements it has removed.
    pub(super) freed: Cell<u64>,
    /// The fiber that looks for elements without a key runs.
    pub(super) is_searching: Cell<bool>,
    /// Numbers of elements that are being put and have no key yet.
    pub(super) building: RefCell<HashSet<u64>>,
    /// Numbers of elements for which it has found no key the last time.
    pub(super) suspects: RefCell<HashSet<u64>>,
    /// The number of the youngest head.
    last_id: Cell<u64>,
    /// Transactions that are spoilt by a write to a key.
    watches: RefCell<HashMap<Place, Vec<Weak<Cell<bool>>>>>,
    /// Fibers that wait for a key to get something.
    waiting: RefCell<HashMap<Place, Vec<FiberId>>>,
    /// How many fibers those are.
    waiting_fibers: Cell<usize>,
    /// Keys that fibers under way have written to, and whose waiting fibers they have woken, perhaps too early.
    told: RefCell<Vec<(FiberId, Place)>>,
    /// Classes of events that are published, as letters of `notify-keyspace-events` are read.
    pub(super) notify: Cell<u32>,
    /// Clients that keep values.
    pub(super) tracking: RefCell<super::tracking::Tracking>,
    /// Keys of those that are remembered; 0 for no bound.
    pub(super) tracked_keys_max: Cell<usize>,
    /// A fiber has keys told of that are too many.
    pub(super) is_shrinking: Cell<bool>,
    /// `DEBUG SET-ACTIVE-EXPIRE 0`: what has expired goes when it is looked for.
    pub(super) expires_on_sight: Cell<bool>,
    /// `DEBUG SET-DISABLE-DENY-SCRIPTS`: scripts may run what they may not.
    pub(super) allows_denied: Cell<bool>,
    pub(super) stats: super::measure::Stats,
    /// When keys were used, if somebody wants to know.
    pub(super) uses: RefCell<Option<super::uses::Uses>>,
    pub(super) tracks_uses: Cell<bool>,
    /// Rules of users.
    pub(super) allowed: RefCell<super::allowed::Allowed>,
    /// What they have refused.
    pub(super) refusals: RefCell<super::refusals::Refusals>,
    /// Changes of keys since the last `SAVE`.
    pub(super) changes: Cell<u64>,
    /// All commands are measured.
    pub(super) measures: Cell<bool>,
    /// `CLIENT PAUSE`, while it lasts or nobody has seen its end.
    pub(super) pause: Cell<Option<super::attention::Pause>>,
    /// Clients that wait for its end.
    pub(super) paused: Cell<usize>,
    /// After how many milliseconds a script does.
    pub(super) busy_after_ms: Cell<u64>,
    /// The script that runs long.
    pub(super) busy: RefCell<Option<Rc<super::busy::Busy>>>,
    /// Something is looked at around every command: see `attention`.
    pub(super) is_attentive: Cell<bool>,
    /// Events are published, or clients keep values: what happens to keys is noted.
    pub(super) is_watchful: Cell<bool>,
    /// Somebody looks at writes.
    has_observers: Cell<bool>,
    last_connection: Cell<u64>,
    pub(super) connections: RefCell<BTreeMap<u64, Weak<Connection>>>,
    pub(super) channels: RefCell<HashMap<Vec<u8>, Listening>>,
    pub(super) patterns: RefCell<BTreeMap<Vec<u8>, Listening>>,
    pub(super) shard_channels: RefCell<HashMap<Vec<u8>, Listening>>,
    /// `CONFIG SET maxmemory`: beyond it nothing that needs memory is taken; 0 for no bound but the server's own.
    pub(super) maxmemory: Cell<u64>,
    pub(super) hits: Cell<u64>,
    pub(super) misses: Cell<u64>,
    /// Places where a scan goes on, by the number that its client was given.
    pub(super) cursors: RefCell<super::scan::Cursors>,
    /// Scripts of `EVAL`.
    pub(super) scripts: RefCell<super::scripts::Cache>,
    /// Libraries of `FUNCTION`.
    pub(super) libraries: RefCell<super::functions::Libraries>,
    /// What `CONFIG SET` has changed.
    pub(super) config: RefCell<BTreeMap<String, String>>,
}

impl Shared {
    /// The spaces as the schema has them now.
    #[inline]
    pub(super) fn spaces(&self, database: &Database) -> Rc<Spaces> {
        let version = database.catalog.schema_version();
        if let Some(spaces) = &*self.spaces.borrow()
            && spaces.version == version
        {
            return Rc::clone(spaces);
        }
        let spaces = Rc::new(Spaces::find(database));
        *self.spaces.borrow_mut() = Some(Rc::clone(&spaces));
        spaces
    }

    /// Lends an empty buffer.
    #[inline]
    pub(super) fn with_scratch<T>(&self, work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let mut buffer = self.scratch.take();
        buffer.clear();
        let result = work(&mut buffer);
        if buffer.capacity() <= SCRATCH_KEPT_MAX {
            self.scratch.replace(buffer);
        }
        result
    }

    /// Lends an empty buffer for an answer.
    #[inline]
    pub(super) fn with_answer<T>(&self, work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let mut buffer = self.answers.take();
        buffer.clear();
        let result = work(&mut buffer);
        if buffer.capacity() <= SCRATCH_KEPT_MAX {
            self.answers.replace(buffer);
        }
        result
    }

    /// A number for the elements of a new key: greater than those of all elements that are there. A small one: what numbers need of the hints of an index
    /// is not there for what stands behind them.
    pub(super) fn next_id(&self) -> u64 {
        let id = self.last_id.get() + 1;
        self.last_id.set(id);
        id
    }

    /// Numbers up to this one are taken.
    pub(super) fn note_id(&self, id: u64) {
        self.last_id.set(self.last_id.get().max(id));
    }

    /// The number of the youngest head.
    pub(super) fn last_id(&self) -> u64 {
        self.last_id.get()
    }

    pub(super) fn next_connection(&self) -> u64 {
        self.last_connection.set(self.last_connection.get() + 1);
        self.last_connection.get()
    }

    /// Tells those who look that a key was written to.
    #[inline]
    pub(super) fn touch(&self, db: usize, key: &[u8]) {
        if self.has_observers.get() {
            self.tell(db, key);
        }
    }

    #[cold]
    fn tell(&self, db: usize, key: &[u8]) {
        let place = (db, key.to_vec());
        if let Some(watches) = self.watches.borrow_mut().remove(&place) {
            watches.iter().filter_map(Weak::upgrade).for_each(|is_dirty| is_dirty.set(true));
        }
        let is_awaited = self.waiting.borrow().get(&place).is_some_and(|fibers| {
            fibers.iter().for_each(|waiting| fiber::wake(*waiting));
            !fibers.is_empty()
        });
        if let (true, Some(own)) = (is_awaited, fiber::current()) {
            self.told.borrow_mut().push((own, place));
        }
    }

    /// The fiber that runs has committed: those who wait look again at what it has written. They may have been woken before it was there to be seen.
    pub(super) fn tell_again(&self) {
        if self.told.borrow().is_empty() {
            return;
        }
        let Some(own) = fiber::current() else { return };
        let waiting = self.waiting.borrow();
        self.told.borrow_mut().retain(|(by, place)| {
            if *by == own {
                waiting.get(place).into_iter().flatten().for_each(|waiting| fiber::wake(*waiting));
            }
            *by != own
        });
    }

    /// All keys of a database, or of all, may have others' values: who waits for one looks again. Who watches one looks at its `EXEC`, which tells a
    /// key that was and is not there from one that has changed.
    pub(super) fn wake_all(&self, db: Option<usize>) {
        let waiting = self.waiting.borrow();
        let meant = waiting.iter().filter(|(place, _)| db.is_none_or(|db| place.0 == db));
        meant.flat_map(|(_, fibers)| fibers).for_each(|waiting| fiber::wake(*waiting));
    }

    /// True if nobody looks at what happens to keys, nor at commands: a group of them may be one.
    #[inline]
    pub(super) fn is_unobserved(&self) -> bool {
        let is_watched = self.has_observers.get() || self.is_watchful.get() || self.is_attentive.get();
        !is_watched
            && !self.tracks_uses.get()
            && !self.measures.get()
            && self.maxmemory.get() == 0
            && !self.expires_on_sight.get()
    }

    /// Has uses of keys noted from now on, or no longer.
    pub(super) fn note_uses(&self, notes: bool, now_ms: u64) {
        if self.tracks_uses.replace(notes) != notes {
            *self.uses.borrow_mut() = notes.then(|| super::uses::Uses::new(now_ms));
        }
    }

    fn observe(&self) {
        let any = !self.watches.borrow().is_empty() || !self.waiting.borrow().is_empty();
        self.has_observers.set(any);
    }

    /// Has a flag set by the next write to a key.
    pub(super) fn watch(&self, place: Place, is_dirty: &Rc<Cell<bool>>) {
        self.watches.borrow_mut().entry(place).or_default().push(Rc::downgrade(is_dirty));
        self.observe();
    }

    /// Ends the watch of a flag over a key.
    pub(super) fn unwatch(&self, place: &Place, is_dirty: &Rc<Cell<bool>>) {
        let mut watches = self.watches.borrow_mut();
        if let Some(of_key) = watches.get_mut(place) {
            of_key.retain(|other| other.upgrade().is_some_and(|other| !Rc::ptr_eq(&other, is_dirty)));
            if of_key.is_empty() {
                watches.remove(place);
            }
        }
        drop(watches);
        self.observe();
    }

    /// Has this fiber woken by writes to keys, until `stop_waiting`.
    pub(super) fn begin_waiting(&self, places: &[Place], who: FiberId) {
        self.waiting_fibers.set(self.waiting_fibers.get() + 1);
        let mut waiting = self.waiting.borrow_mut();
        for place in places {
            waiting.entry(place.clone()).or_default().push(who);
        }
        drop(waiting);
        self.observe();
    }

    pub(super) fn stop_waiting(&self, places: &[Place], who: FiberId) {
        self.waiting_fibers.set(self.waiting_fibers.get().saturating_sub(1));
        let mut waiting = self.waiting.borrow_mut();
        for place in places {
            if let Some(fibers) = waiting.get_mut(place) {
                if let Some(at) = fibers.iter().position(|other| *other == who) {
                    fibers.remove(at);
                }
                if fibers.is_empty() {
                    waiting.remove(place);
                }
            }
        }
        drop(waiting);
        self.observe();
    }

    /// Has all who wait for keys look around.
    pub(super) fn wake_waiting(&self) {
        let waiting: Vec<FiberId> = self.waiting.borrow().values().flatten().copied().collect();
        waiting.into_iter().for_each(fiber::wake);
    }

    /// Fibers that wait for keys.
    pub(super) fn waiting_count(&self) -> usize {
        self.waiting_fibers.get()
    }
}
