//! `CLIENT TRACKING`: clients that keep values are told when those may be others.
//!
//! A client is remembered with the keys that it reads, until one of them changes, or names prefixes and is told of all keys that begin with one. Who writes
//! does not matter: rows that other protocols write, that expire or must make room come from the database (`events`). What is remembered is bounded by
//! `tracking-table-max-keys`: beyond it keys are told of as if they had changed.

use super::call::Call;
use super::commands::key_places;
use super::events::look_again;
use super::failure::{Failure, Outcome, SYNTAX};
use super::reply::Reply;
use super::resp::integer;
use super::shared::Shared;
use super::state::State;
use super::table::{Flag, Spec};
use crate::connection::Connection;
use hashbrown::HashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};
use wal::Position;

/// The channel on which clients of the second version are told.
const CHANNEL: &[u8] = b"__redis__:invalidate";
/// Prefixes of one client.
const PREFIXES_MAX: usize = 10_000;
/// Keys that are remembered until `tracking-table-max-keys` says something else.
pub(super) const TABLE_KEYS_MAX: usize = 1_000_000;

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
    /// `CLIENT CACHING`: what it said, and whether a command has come since.
    caching: Option<(bool, bool)>,
}

/// See the head of this file.
#[derive(Default)]
pub(super) struct Tracking {
    clients: BTreeMap<u64, Client>,
    /// Who has read a key.
    keys: HashMap<Vec<u8>, BTreeSet<u64>>,
    /// Members of the sets in `keys`.
    items: usize,
}

impl Tracking {
    pub(super) fn is_used(&self) -> bool {
        !self.clients.is_empty()
    }

    /// Clients, keys, pairs of both, and prefixes.
    pub(super) fn counts(&self) -> [usize; 4] {
        let prefixes = self.clients.values().map(|client| client.prefixes.len()).sum();
        [self.clients.len(), self.keys.len(), self.items, prefixes]
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

    fn take(&mut self, key: &[u8]) -> BTreeSet<u64> {
        let readers = self.keys.remove(key).unwrap_or_default();
        self.items -= readers.len();
        readers
    }
}

/// A connection by its number.
fn connection_of(shared: &Shared, id: u64) -> Option<(Rc<Connection>, Rc<State>)> {
    let connection = shared.connections.borrow().get(&id).and_then(Weak::upgrade)?;
    let is_alive = connection.session().is_alive.get();
    let state = Rc::clone(connection.state.downcast_ref::<Rc<State>>()?);
    is_alive.then_some((connection, state))
}

/// Tells a client that keys may have changed; none: all of them.
fn tell(shared: &Shared, seen: Position, id: u64, keys: Option<&[&[u8]]>) {
    let redirect = match shared.tracking.borrow().clients.get(&id) {
        Some(client) => client.redirect,
        None => return,
    };
    let Some((connection, state)) = connection_of(shared, redirect.unwrap_or(id)) else {
        tell_broken(shared, seen, id, redirect.unwrap_or(id));
        return;
    };
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
        match keys {
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
    if let Some(client) = shared.tracking.borrow_mut().clients.get_mut(&id)
        && client.is_broken
    {
        return;
    }
    if let Some(client) = shared.tracking.borrow_mut().clients.get_mut(&id) {
        client.is_broken = true;
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
pub(super) fn invalidate(shared: &Shared, seen: Position, keys: &[&[u8]], origin: u64) {
    if !shared.tracking.borrow().is_used() {
        return;
    }
    let mut told: BTreeMap<u64, Vec<&[u8]>> = BTreeMap::new();
    let mut tracking = shared.tracking.borrow_mut();
    for key in keys {
        let readers = tracking.take(key);
        for id in readers {
            let is_meant = |client: &Client| !(client.is_broadcast || client.skips_own && id == origin);
            if tracking.clients.get(&id).is_some_and(is_meant) {
                told.entry(id).or_default().push(key);
            }
        }
    }
    let mut broadcasts: Vec<(u64, Vec<&[u8]>)> = Vec::new();
    for (id, client) in tracking.clients.iter().filter(|(_, client)| client.is_broadcast) {
        if client.skips_own && *id == origin {
            continue;
        }
        for prefix in &client.prefixes {
            let mut fitting: Vec<&[u8]> = keys.iter().copied().filter(|key| key.starts_with(prefix)).collect();
            fitting.sort_unstable();
            fitting.dedup();
            if !fitting.is_empty() {
                broadcasts.push((*id, fitting));
            }
        }
    }
    drop(tracking);
    // Each key by itself, as Redis has it; those of a prefix together.
    for (id, keys) in told {
        keys.iter().for_each(|key| tell(shared, seen, id, Some(&[key])));
    }
    broadcasts.into_iter().for_each(|(id, keys)| tell(shared, seen, id, Some(&keys)));
}

/// Everything may have changed.
pub(super) fn invalidate_all(shared: &Shared, seen: Position) {
    let ids: Vec<u64> = {
        let mut tracking = shared.tracking.borrow_mut();
        tracking.keys.clear();
        tracking.items = 0;
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

/// A command is about to read keys: they are remembered with its client.
#[cold]
pub(super) fn remember(shared: &Shared, id: u64, spec: &Spec, args: &[&[u8]]) {
    if !spec.is(Flag::Read) || spec.family == "scripting" {
        return;
    }
    let keys: Vec<&[u8]> = key_places(spec, args).into_iter().map(|place| args[place]).collect();
    remember_keys(shared, id, &keys);
}

/// The same of the keys that a script has declared: it has read something.
#[cold]
pub(super) fn remember_keys(shared: &Shared, id: u64, keys: &[&[u8]]) {
    let mut tracking = shared.tracking.borrow_mut();
    let Some(client) = tracking.clients.get(&id).filter(|client| !client.is_broadcast) else { return };
    let says = client.caching.map(|(says, _)| says);
    if client.opts_in && says != Some(true) || client.opts_out && says == Some(false) {
        return;
    }
    let mut added = 0;
    for key in keys {
        added += usize::from(tracking.keys.entry(key.to_vec()).or_default().insert(id));
    }
    tracking.items += added;
    drop(tracking);
    bound(shared);
}

/// Has as many keys told of as are too many.
pub(super) fn bound(shared: &Shared) {
    let most = shared.tracked_keys_max.get();
    if most == 0 {
        return;
    }
    loop {
        let tracking = shared.tracking.borrow();
        if tracking.keys.len() <= most {
            return;
        }
        let Some(key) = tracking.keys.keys().next().cloned() else { return };
        drop(tracking);
        invalidate_one(shared, &key);
    }
}

fn invalidate_one(shared: &Shared, key: &[u8]) {
    let readers = shared.tracking.borrow_mut().take(key);
    for id in readers {
        let is_meant = shared.tracking.borrow().clients.get(&id).is_some_and(|client| !client.is_broadcast);
        if is_meant {
            tell(shared, Position::default(), id, Some(&[key]));
        }
    }
}

/// The client is gone, or wants it no more. Keys that it has read are forgotten when they change.
pub(super) fn forget(shared: &Shared, id: u64) -> bool {
    shared.tracking.borrow_mut().clients.remove(&id).is_some()
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
            if connection_of(call.shared, id).is_none() {
                return Err("ERR The client ID you want redirect to does not exist".into());
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

fn overlap(a: &[u8], b: &[u8], which: &str) -> Option<Failure> {
    let text = |prefix: &[u8]| String::from_utf8_lossy(prefix).into_owned();
    (a.starts_with(b) || b.starts_with(a)).then(|| {
        format!(
            "ERR Prefix '{}' overlaps with {which} prefix '{}'. Prefixes for a single client must not overlap.",
            text(a),
            text(b)
        )
        .into()
    })
}

fn check(wish: &Wish<'_>, known: Option<&Client>) -> Outcome {
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
    for (at, prefix) in wish.prefixes.iter().enumerate() {
        let old = known.into_iter().flat_map(|known| &known.prefixes).filter(|old| old.as_slice() != *prefix);
        if let Some(failure) = old.into_iter().find_map(|old| overlap(prefix, old, "an existing")) {
            return Err(failure);
        }
        if let Some(failure) =
            wish.prefixes[at + 1..].iter().find_map(|other| overlap(prefix, other, "another provided"))
        {
            return Err(failure);
        }
    }
    Ok(())
}

/// `CLIENT TRACKING`.
pub(super) fn tracking(call: &mut Call<'_>) -> Outcome {
    let id = call.state.id;
    let wish = read_wish(call)?;
    if call.is_word(2, "on") {
        let mut tracking = call.shared.tracking.borrow_mut();
        check(&wish, tracking.clients.get(&id))?;
        let client = tracking.clients.entry(id).or_default();
        if client.prefixes.len() + wish.prefixes.len() > PREFIXES_MAX {
            return Err(format!("ERR a client has at most {PREFIXES_MAX} prefixes").into());
        }
        client.is_broadcast = wish.is_broadcast;
        client.opts_in = wish.opts_in;
        client.opts_out = wish.opts_out;
        client.skips_own = wish.skips_own;
        client.redirect = wish.redirect;
        client.is_broken = false;
        client.caching = None;
        client.prefixes.extend(wish.prefixes.iter().map(|prefix| prefix.to_vec()));
        if wish.is_broadcast && client.prefixes.is_empty() {
            client.prefixes.insert(Vec::new());
        }
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
