//! `CLIENT TRACKING`: clients that keep values are told when those may be others.
//!
//! A client is remembered with the keys that it reads, until one of them changes, or names prefixes and is told of all keys that begin with one. Who writes
//! does not matter: rows that other protocols write, that expire or must make room come from the database (`events`). What is remembered is bounded by
//! `tracking-table-max-keys` and by bounds of this file: beyond them keys are told of as if they had changed.
//!
//! Names of keys are told only to who may read them. Rights change while a client is told, so they are looked at whenever it is.

use super::call::Call;
use super::connection::check_others;
use super::events::look_again;
use super::failure::{Outcome, SYNTAX};
use super::places::key_places;
use super::reply::Reply;
use super::resp::integer;
use super::shared::Shared;
use super::state::State;
use super::table::{Flag, Spec};
use crate::connection::Connection;
use database::Privileges;
use runtime::fiber;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::rc::{Rc, Weak};
use wal::Position;

/// The channel on which clients of the second version are told.
const CHANNEL: &[u8] = b"__redis__:invalidate";
/// Prefixes of one client.
const PREFIXES_MAX: usize = 10_000;
/// Prefixes of all clients.
const PREFIXES_TOTAL_MAX: usize = 100_000;
/// Bytes of a prefix: looking for those of a key takes at most so many steps.
const PREFIX_BYTES_MAX: usize = 1024;
/// Keys that are remembered until `tracking-table-max-keys` says something else.
pub(super) const TABLE_KEYS_MAX: usize = 1_000_000;
/// Pairs of a key that is remembered and a client that has read it.
const TABLE_PAIRS_MAX: usize = 4_000_000;
/// Bytes of the keys that are remembered.
const TABLE_BYTES_MAX: usize = 256 << 20;
/// Keys that have to go, and pairs of clients who are gone, that one command removes beside as many as it adds.
const SLICE: usize = 100;

/// How one client is told.
#[derive(Default)]
struct Client {
    /// It is told of all keys with its prefixes.
    is_broadcast: bool,
    opts_in: bool,
    opts_out: bool,
    /// It is not told of what it writes itself.
    skips_own: bool,
    /// Who is told in its place.
    redirect: Option<u64>,
    /// That one is gone, and it knows.
    is_broken: bool,
    prefixes: BTreeSet<Vec<u8>>,
    /// Keys that are remembered for it.
    pairs: usize,
    /// `CLIENT CACHING`: what it said, and whether a command has come since.
    caching: Option<(bool, bool)>,
}

/// A key and the number of its database.
pub(super) type Changed<'a> = (usize, &'a [u8]);

/// See the head of this file.
#[derive(Default)]
pub(super) struct Tracking {
    clients: BTreeMap<u64, Client>,
    /// Who has read a key, and in which database.
    keys: BTreeMap<Vec<u8>, BTreeMap<u64, usize>>,
    /// Members of the maps in `keys`, and bytes of its keys.
    items: usize,
    bytes: usize,
    /// Of `items`, those of clients that are gone.
    stale: usize,
    /// The key at which the last search for what has to go has ended.
    hand: Vec<u8>,
    /// Who wants to be told of keys with a prefix.
    prefixes: BTreeMap<Vec<u8>, BTreeSet<u64>>,
    /// Members of the sets in `prefixes`.
    prefix_count: usize,
}

impl Tracking {
    pub(super) fn is_used(&self) -> bool {
        !self.clients.is_empty()
    }

    /// Clients, keys, pairs of both, and prefixes.
    pub(super) fn counts(&self) -> [usize; 4] {
        [self.clients.len(), self.keys.len(), self.items, self.prefixes.len()]
    }

    /// Letters for `CLIENT LIST`, and who is told in its place.
    pub(super) fn of_client(&self, id: u64) -> Option<(&'static str, i64)> {
        let client = self.clients.get(&id)?;
        let letters = match (client.is_broadcast, client.is_broken) {
            (true, true) => "tBR",
            (true, false) => "tB",
            (false, true) => "tR",
            (false, false) => "t",
        };
        Some((letters, client.redirect.map_or(0, |id| id as i64)))
    }

    /// Forgets a key. Returns who has read it.
    fn take(&mut self, key: &[u8]) -> BTreeMap<u64, usize> {
        let Some(readers) = self.keys.remove(key) else { return BTreeMap::new() };
        self.items -= readers.len();
        self.bytes -= key.len();
        for id in readers.keys() {
            self.note_gone(*id);
        }
        readers
    }

    /// Forgets that a client has read a key. Returns in which database.
    fn take_pair(&mut self, id: u64, key: &[u8]) -> Option<usize> {
        let readers = self.keys.get_mut(key)?;
        let db = readers.remove(&id)?;
        let was_last = readers.is_empty();
        self.items -= 1;
        self.note_gone(id);
        if was_last {
            self.keys.remove(key);
            self.bytes -= key.len();
        }
        Some(db)
    }

    /// Counts a pair less.
    fn note_gone(&mut self, id: u64) {
        match self.clients.get_mut(&id).filter(|client| client.pairs > 0) {
            Some(client) => client.pairs -= 1,
            None => self.stale = self.stale.saturating_sub(1),
        }
    }

    fn add(&mut self, id: u64, db: usize, key: &[u8]) {
        if !self.keys.contains_key(key) {
            self.bytes += key.len();
        }
        if self.keys.entry(key.to_vec()).or_default().insert(id, db).is_none() {
            self.items += 1;
            if let Some(client) = self.clients.get_mut(&id) {
                client.pairs += 1;
            }
        }
    }

    /// The key behind the one that was looked at last, in a circle: each is as likely to have to go.
    fn next_key(&mut self) -> Option<Vec<u8>> {
        let behind = (Bound::Excluded(self.hand.as_slice()), Bound::Unbounded);
        let next = self.keys.range::<[u8], _>(behind).next().or_else(|| self.keys.iter().next());
        let key = next.map(|(key, _)| key.clone())?;
        self.hand.clone_from(&key);
        Some(key)
    }

    /// Forgets some of what is remembered for clients that are gone.
    fn sweep(&mut self) {
        for _ in 0..SLICE {
            if self.stale == 0 {
                return;
            }
            let Some(key) = self.next_key() else { return };
            let Some(readers) = self.keys.get_mut(&key) else { return };
            let before = readers.len();
            readers.retain(|id, _| self.clients.contains_key(id));
            let (left, gone) = (readers.len(), before - readers.len());
            self.items -= gone;
            self.stale = self.stale.saturating_sub(gone);
            if left == 0 {
                self.keys.remove(&key);
                self.bytes -= key.len();
            }
        }
    }

    /// True if so many more keys of a client are too many.
    fn is_full(&self, keys_max: usize, added: usize) -> bool {
        keys_max > 0 && self.keys.len() + added > keys_max
            || self.items + added > TABLE_PAIRS_MAX
            || self.bytes > TABLE_BYTES_MAX
    }

    /// Has a client told of keys with a prefix.
    fn add_prefix(&mut self, id: u64, prefix: &[u8]) {
        let is_new = self.clients.entry(id).or_default().prefixes.insert(prefix.to_vec());
        if is_new {
            self.prefixes.entry(prefix.to_vec()).or_default().insert(id);
            self.prefix_count += 1;
        }
    }

    /// The prefixes that a key begins with. The greatest text that is not behind the key either begins it or leaves it at some byte; what begins it, too,
    /// is no longer than that.
    fn prefixes_of<'a>(&'a self, key: &[u8]) -> Vec<(&'a [u8], &'a BTreeSet<u64>)> {
        let mut found = Vec::new();
        let mut rest = &key[..key.len().min(PREFIX_BYTES_MAX)];
        loop {
            let up_to = (Bound::Unbounded, Bound::Included(rest));
            let Some((prefix, ids)) = self.prefixes.range::<[u8], _>(up_to).next_back() else { return found };
            let common = prefix.iter().zip(rest).take_while(|(a, b)| a == b).count();
            if common < prefix.len() {
                rest = &rest[..common];
                continue;
            }
            found.push((prefix.as_slice(), ids));
            match common.checked_sub(1) {
                Some(shorter) => rest = &rest[..shorter],
                None => return found,
            }
        }
    }

    /// Forgets a client. Keys that it has read are swept later; while nobody is told of keys, none is remembered.
    fn forget(&mut self, id: u64) -> bool {
        let Some(client) = self.clients.remove(&id) else { return false };
        self.stale += client.pairs;
        self.prefix_count -= client.prefixes.len();
        for prefix in &client.prefixes {
            if let Some(ids) = self.prefixes.get_mut(prefix) {
                ids.remove(&id);
                if ids.is_empty() {
                    self.prefixes.remove(prefix);
                }
            }
        }
        if self.items > 0 && self.clients.values().all(|client| client.is_broadcast) {
            self.keys = BTreeMap::new();
            (self.items, self.bytes, self.stale) = (0, 0, 0);
        }
        self.sweep();
        true
    }
}

/// A connection by its number.
fn connection_of(shared: &Shared, id: u64) -> Option<(Rc<Connection>, Rc<State>)> {
    let connection = shared.connections.borrow().get(&id).and_then(Weak::upgrade)?;
    let is_alive = connection.session().is_alive.get();
    let state = Rc::clone(connection.state.downcast_ref::<Rc<State>>()?);
    is_alive.then_some((connection, state))
}

/// True if the user of a connection may read a key of a database now.
pub(super) fn may_read(shared: &Shared, connection: &Connection, db: usize, key: &[u8]) -> bool {
    let database = connection.database();
    let state = connection.state.downcast_ref::<Rc<State>>();
    if state.is_some_and(|state| state.rules.borrow().as_ref().is_some_and(|rules| !rules.may_read(key))) {
        return false;
    }
    let spaces = shared.spaces(database);
    spaces.keys(db).is_ok_and(|keys| database.check_space_access(connection.context(), keys, Privileges::READ).is_ok())
}

/// Tells a client that keys may have changed, those that it may read; none: all of them.
fn tell(shared: &Shared, seen: Position, id: u64, keys: Option<&[Changed<'_>]>) {
    let redirect = match shared.tracking.borrow().clients.get(&id) {
        Some(client) => client.redirect,
        None => return,
    };
    let Some((connection, state)) = connection_of(shared, redirect.unwrap_or(id)) else {
        tell_broken(shared, seen, id, redirect.unwrap_or(id));
        return;
    };
    let readable = keys.map(|keys| {
        let mut names: Vec<&[u8]> =
            keys.iter().filter(|(db, key)| may_read(shared, &connection, *db, key)).map(|(_, key)| *key).collect();
        names.dedup();
        names
    });
    if readable.as_ref().is_some_and(Vec::is_empty) {
        return;
    }
    let resp3 = state.resp3.get();
    if !resp3 && (redirect.is_none() || !state.channels.borrow().contains(CHANNEL)) {
        return;
    }
    let sent = connection.answer(seen, 0, |out| {
        let mut reply = Reply { out, resp3 };
        if resp3 {
            reply.push(2);
            reply.text("invalidate");
        } else {
            reply.push(3);
            reply.text("message");
            reply.bulk(CHANNEL);
        }
        match &readable {
            Some(keys) => {
                reply.array(keys.len());
                keys.iter().for_each(|key| reply.bulk(key));
            }
            None => reply.null_array(),
        }
        Ok(())
    });
    if sent.is_err() || connection.unsent() > connection.service.unread_max() {
        connection.end();
    }
    connection.service.mark(&connection);
}

/// Tells a client that nobody is told in its place any more, once.
fn tell_broken(shared: &Shared, seen: Position, id: u64, gone: u64) {
    let mut tracking = shared.tracking.borrow_mut();
    let was_broken = tracking.clients.get_mut(&id).is_none_or(|client| std::mem::replace(&mut client.is_broken, true));
    drop(tracking);
    if was_broken {
        return;
    }
    if let Some((connection, state)) = connection_of(shared, id)
        && state.resp3.get()
    {
        // It is no answer to anything: if it cannot be written, its client is gone.
        let _ = connection.answer(seen, 0, |out| {
            let mut reply = Reply { out, resp3: true };
            reply.push(2);
            reply.text("tracking-redir-broken");
            reply.integer(gone as i64);
            Ok(())
        });
        connection.service.mark(&connection);
    }
}

/// Keys have changed: who has read them, or wants to know of all like them, is told. `origin`: the client that has changed them, 0 if it is none.
pub(super) fn invalidate(shared: &Shared, seen: Position, keys: &[Changed<'_>], origin: u64) {
    if !shared.tracking.borrow().is_used() {
        return;
    }
    let mut told: BTreeMap<u64, Vec<Changed<'_>>> = BTreeMap::new();
    let mut broadcasts: BTreeMap<(u64, Vec<u8>), Vec<Changed<'_>>> = BTreeMap::new();
    let mut tracking = shared.tracking.borrow_mut();
    for (db, key) in keys {
        for id in tracking.take(key).into_keys() {
            let is_meant = |client: &Client| !(client.is_broadcast || client.skips_own && id == origin);
            if tracking.clients.get(&id).is_some_and(is_meant) {
                told.entry(id).or_default().push((*db, key));
            }
        }
        for (prefix, ids) in tracking.prefixes_of(key) {
            let skips = |id: &u64| *id == origin && tracking.clients.get(id).is_some_and(|client| client.skips_own);
            for id in ids.iter().filter(|id| !skips(id)) {
                broadcasts.entry((*id, prefix.to_vec())).or_default().push((*db, key));
            }
        }
    }
    drop(tracking);
    // Each key by itself, as Redis has it; those of a prefix together.
    for (id, keys) in told {
        keys.iter().for_each(|key| tell(shared, seen, id, Some(&[*key])));
    }
    for ((id, _), mut keys) in broadcasts {
        keys.sort_unstable_by_key(|(db, key)| (*key, *db));
        tell(shared, seen, id, Some(&keys));
    }
}

/// The same of keys that the client which has changed them has read since.
pub(super) fn invalidate_for_others(shared: &Shared, seen: Position, keys: &[Changed<'_>], origin: u64) {
    let own: Vec<Option<usize>> = {
        let mut tracking = shared.tracking.borrow_mut();
        keys.iter().map(|(_, key)| tracking.take_pair(origin, key)).collect()
    };
    invalidate(shared, seen, keys, origin);
    let mut tracking = shared.tracking.borrow_mut();
    for ((_, key), db) in keys.iter().zip(own) {
        if let Some(db) = db {
            tracking.add(origin, db, key);
        }
    }
}

/// Everything may have changed.
pub(super) fn invalidate_all(shared: &Shared, seen: Position) {
    let ids: Vec<u64> = {
        let mut tracking = shared.tracking.borrow_mut();
        tracking.keys = BTreeMap::new();
        (tracking.items, tracking.bytes, tracking.stale) = (0, 0, 0);
        tracking.clients.values_mut().for_each(|client| client.pairs = 0);
        tracking.clients.keys().copied().collect()
    };
    ids.into_iter().for_each(|id| tell(shared, seen, id, None));
}

/// A command of a client begins: what `CLIENT CACHING` has said before the last one is over.
#[cold]
pub(super) fn begin(shared: &Shared, id: u64, spec: &Spec) {
    let mut tracking = shared.tracking.borrow_mut();
    let Some(client) = tracking.clients.get_mut(&id).filter(|_| spec.name != "client") else { return };
    client.caching = match client.caching {
        Some((says, false)) => Some((says, spec.name != "multi")),
        _ => None,
    };
}

/// A command is about to read keys: they are remembered with its client. Returns them.
#[cold]
pub(super) fn remember<'a>(
    shared: &Shared,
    (connection, state): (&Connection, &State),
    spec: &Spec,
    args: &[&'a [u8]],
) -> Vec<&'a [u8]> {
    if !spec.is(Flag::Read) || spec.family == "scripting" {
        return Vec::new();
    }
    let keys: Vec<&[u8]> = key_places(spec, args).into_iter().map(|place| args[place]).collect();
    remember_keys(shared, (connection, state), &keys);
    keys
}

/// The same of the keys that a script has declared: it has read something.
#[cold]
pub(super) fn remember_keys(shared: &Shared, (connection, state): (&Connection, &State), keys: &[&[u8]]) {
    let tracking = shared.tracking.borrow();
    let Some(client) = tracking.clients.get(&state.id).filter(|client| !client.is_broadcast) else { return };
    let says = client.caching.map(|(says, _)| says);
    if client.opts_in && says != Some(true) || client.opts_out && says == Some(false) {
        return;
    }
    drop(tracking);
    let db = state.db.get();
    let keys: Vec<&[u8]> = keys.iter().copied().filter(|key| may_read(shared, connection, db, key)).collect();
    // Room is made before: who is told of a key before it gets the value would keep that forever.
    make_room(shared, keys.len());
    let mut tracking = shared.tracking.borrow_mut();
    keys.iter().for_each(|key| tracking.add(state.id, db, key));
}

/// Has some of the keys told of that are too many when so many are added.
pub(super) fn make_room(shared: &Shared, added: usize) {
    shared.tracking.borrow_mut().sweep();
    for _ in 0..added.saturating_add(SLICE) {
        let mut tracking = shared.tracking.borrow_mut();
        if !tracking.is_full(shared.tracked_keys_max.get(), added) {
            return;
        }
        let Some(key) = tracking.next_key() else { return };
        let mut readers = tracking.take(&key);
        readers.retain(|id, _| tracking.clients.get(id).is_some_and(|client| !client.is_broadcast));
        drop(tracking);
        for (id, db) in readers {
            tell(shared, Position::default(), id, Some(&[(db, &key)]));
        }
    }
}

/// The bound is another one: has those told of that are too many now, in slices.
pub(super) fn shrink(shared: &Rc<Shared>) {
    let is_full = |shared: &Shared| shared.tracking.borrow().is_full(shared.tracked_keys_max.get(), 0);
    make_room(shared, 0);
    if is_full(shared) && !shared.is_shrinking.replace(true) {
        let shared = Rc::clone(shared);
        fiber::spawn("redis tracking", move || {
            while is_full(&shared) && fiber::yield_now() != fiber::Wake::Cancelled {
                make_room(&shared, 0);
            }
            shared.is_shrinking.set(false);
        });
    }
}

/// The client is gone, or wants it no more.
pub(super) fn forget(shared: &Shared, id: u64) -> bool {
    shared.tracking.borrow_mut().forget(id)
}

/// What `CLIENT TRACKING` asks for.
#[derive(Default)]
struct Wish<'a> {
    is_broadcast: bool,
    opts_in: bool,
    opts_out: bool,
    skips_own: bool,
    redirect: Option<u64>,
    prefixes: Vec<&'a [u8]>,
}

fn read_wish<'a>(call: &Call<'a>) -> Outcome<Wish<'a>> {
    let mut wish = Wish::default();
    let mut at = 3;
    while at < call.args.len() {
        if call.is_word(at, "redirect") && at + 1 < call.args.len() {
            if wish.redirect.is_some() {
                return Err("ERR A client can only redirect to a single other client".into());
            }
            let id = integer(call.args[at + 1]).ok_or("ERR Invalid client ID")?;
            let id = u64::try_from(id).unwrap_or(0);
            let Some((target, _)) = connection_of(call.shared, id) else {
                return Err("ERR The client ID you want redirect to does not exist".into());
            };
            // Who is told has not asked for it.
            if target.session().user.get() != call.connection.session().user.get() {
                check_others(call)?;
            }
            wish.redirect = Some(id);
            at += 1;
        } else if call.is_word(at, "bcast") {
            wish.is_broadcast = true;
        } else if call.is_word(at, "optin") {
            wish.opts_in = true;
        } else if call.is_word(at, "optout") {
            wish.opts_out = true;
        } else if call.is_word(at, "noloop") {
            wish.skips_own = true;
        } else if call.is_word(at, "prefix") && at + 1 < call.args.len() {
            wish.prefixes.push(call.args[at + 1]);
            at += 1;
        } else {
            return Err(SYNTAX.into());
        }
        at += 1;
    }
    Ok(wish)
}

/// Errors: prefixes are too many or too long, or one of them begins another. In their order one that begins others stands before one of those.
fn check_prefixes(wish: &Wish<'_>, known: Option<&Client>, total: usize) -> Outcome {
    let old = known.map_or(0, |known| known.prefixes.len());
    if old + wish.prefixes.len() > PREFIXES_MAX {
        return Err(format!("ERR a client has at most {PREFIXES_MAX} prefixes").into());
    }
    if total + wish.prefixes.len() > PREFIXES_TOTAL_MAX {
        return Err(format!("ERR all clients together have at most {PREFIXES_TOTAL_MAX} prefixes").into());
    }
    if wish.prefixes.iter().any(|prefix| prefix.len() > PREFIX_BYTES_MAX) {
        return Err(format!("ERR a prefix has at most {PREFIX_BYTES_MAX} bytes").into());
    }
    // Those that are known stand behind: messages name a new one first.
    let new = wish.prefixes.iter().enumerate().map(|(at, prefix)| (*prefix, at));
    let known = known.into_iter().flat_map(|known| &known.prefixes).map(Vec::as_slice);
    let mut all: Vec<(&[u8], usize)> = new.chain(known.map(|prefix| (prefix, usize::MAX))).collect();
    all.sort_unstable();
    for pair in all.windows(2) {
        let [(shorter, at), (longer, other)] = pair else { continue };
        let is_same_again = shorter == longer && *other == usize::MAX;
        if longer.starts_with(shorter) && !is_same_again {
            let which = if *at.max(other) == usize::MAX { "an existing" } else { "another provided" };
            let (first, second) = if at <= other { (shorter, longer) } else { (longer, shorter) };
            let text = |prefix: &[u8]| String::from_utf8_lossy(prefix).into_owned();
            return Err(format!(
                "ERR Prefix '{}' overlaps with {which} prefix '{}'. Prefixes for a single client must not overlap.",
                text(first),
                text(second)
            )
            .into());
        }
    }
    Ok(())
}

fn check(wish: &Wish<'_>, known: Option<&Client>, total: usize) -> Outcome {
    if !wish.is_broadcast && !wish.prefixes.is_empty() {
        return Err("ERR PREFIX option requires BCAST mode to be enabled".into());
    }
    if known.is_some_and(|known| known.is_broadcast != wish.is_broadcast) {
        return Err("ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.".into());
    }
    if wish.is_broadcast && (wish.opts_in || wish.opts_out) {
        return Err("ERR OPTIN and OPTOUT are not compatible with BCAST".into());
    }
    if wish.opts_in && wish.opts_out {
        return Err("ERR You can't specify both OPTIN mode and OPTOUT mode".into());
    }
    if known.is_some_and(|known| wish.opts_in && known.opts_out || wish.opts_out && known.opts_in) {
        return Err("ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it with a different mode.".into());
    }
    check_prefixes(wish, known, total)
}

/// Does what was asked for and found right.
fn switch_on(tracking: &mut Tracking, id: u64, wish: &Wish<'_>) {
    let client = tracking.clients.entry(id).or_default();
    client.is_broadcast = wish.is_broadcast;
    client.opts_in = wish.opts_in;
    client.opts_out = wish.opts_out;
    client.skips_own = wish.skips_own;
    client.redirect = wish.redirect;
    client.is_broken = false;
    client.caching = None;
    let tells_all = wish.is_broadcast && client.prefixes.is_empty() && wish.prefixes.is_empty();
    wish.prefixes.iter().for_each(|prefix| tracking.add_prefix(id, prefix));
    if tells_all {
        tracking.add_prefix(id, b"");
    }
}

/// `CLIENT TRACKING`.
pub(super) fn tracking(call: &mut Call<'_>) -> Outcome {
    let id = call.state.id;
    let wish = read_wish(call)?;
    if call.is_word(2, "on") {
        call.database.check_space_access(call.context, call.keys()?, Privileges::READ)?;
        let mut tracking = call.shared.tracking.borrow_mut();
        check(&wish, tracking.clients.get(&id), tracking.prefix_count)?;
        switch_on(&mut tracking, id, &wish);
    } else if call.is_word(2, "off") {
        forget(call.shared, id);
    } else {
        return Err(SYNTAX.into());
    }
    look_again(call.shared, call.database);
    call.reply().ok();
    Ok(())
}

/// `CLIENT CACHING`.
pub(super) fn caching(call: &mut Call<'_>) -> Outcome {
    let mut tracking = call.shared.tracking.borrow_mut();
    let Some(client) = tracking.clients.get_mut(&call.state.id) else {
        return Err("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled".into());
    };
    let says = match (call.is_word(2, "yes"), call.is_word(2, "no")) {
        (true, _) if client.opts_in => true,
        (_, true) if client.opts_out => false,
        (true, _) => return Err("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.".into()),
        (_, true) => return Err("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.".into()),
        _ => return Err(SYNTAX.into()),
    };
    client.caching = Some((says, false));
    drop(tracking);
    call.reply().ok();
    Ok(())
}

/// `CLIENT GETREDIR`.
pub(super) fn getredir(call: &mut Call<'_>) -> Outcome {
    let redirect = call.shared.tracking.borrow().of_client(call.state.id).map_or(-1, |(_, redirect)| redirect);
    call.reply().integer(redirect);
    Ok(())
}

/// `CLIENT TRACKINGINFO`.
pub(super) fn info(call: &mut Call<'_>) -> Outcome {
    let shared = Rc::clone(call.shared);
    let tracking = shared.tracking.borrow();
    let client = tracking.clients.get(&call.state.id);
    let mut flags = vec![if client.is_some() { "on" } else { "off" }];
    if let Some(client) = client {
        let says = client.caching.map(|(says, _)| says);
        let known = [
            (client.is_broadcast, "bcast"),
            (client.opts_in, "optin"),
            (client.opts_in && says == Some(true), "caching-yes"),
            (client.opts_out, "optout"),
            (client.opts_out && says == Some(false), "caching-no"),
            (client.skips_own, "noloop"),
            (client.is_broken, "broken_redirect"),
        ];
        flags.extend(known.into_iter().filter(|(is_set, _)| *is_set).map(|(_, name)| name));
    }
    let mut reply = call.reply();
    reply.map(3);
    reply.text("flags");
    reply.set(flags.len());
    flags.iter().for_each(|flag| reply.text(flag));
    reply.text("redirect");
    reply.integer(client.map_or(-1, |client| client.redirect.map_or(0, |id| id as i64)));
    reply.text("prefixes");
    let prefixes: Vec<&Vec<u8>> =
        client.filter(|client| client.is_broadcast).map_or(Vec::new(), |client| client.prefixes.iter().collect());
    reply.array(prefixes.len());
    prefixes.iter().for_each(|prefix| reply.bulk(prefix));
    Ok(())
}
