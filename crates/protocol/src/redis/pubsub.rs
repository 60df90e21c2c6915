//! Channels: `PUBLISH`, `SUBSCRIBE` and their kin, sharded ones among them. Nothing of it is kept: who does not listen has missed it.

use super::call::Call;
use super::failure::Outcome;
use super::glob::matches;
use super::reply::Reply;
use super::resp::integer;
use super::shared::{DATABASES, Listening, Shared};
use super::state::State;
use super::tracking::may_read;
use crate::connection::Connection;
use database::Privileges;
use std::rc::{Rc, Weak};
use wal::Position;

/// Channels and patterns of one connection.
const SUBSCRIPTIONS_MAX: usize = 100_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Channel,
    Pattern,
    Shard,
}

impl Way {
    fn word(self, is_leaving: bool) -> &'static str {
        match (self, is_leaving) {
            (Way::Channel, false) => "subscribe",
            (Way::Channel, true) => "unsubscribe",
            (Way::Pattern, false) => "psubscribe",
            (Way::Pattern, true) => "punsubscribe",
            (Way::Shard, false) => "ssubscribe",
            (Way::Shard, true) => "sunsubscribe",
        }
    }

    fn own(self, state: &State) -> &std::cell::RefCell<std::collections::BTreeSet<Vec<u8>>> {
        match self {
            Way::Channel => &state.channels,
            Way::Pattern => &state.patterns,
            Way::Shard => &state.shard_channels,
        }
    }

    fn count(self, state: &State) -> usize {
        if self == Way::Shard { state.shard_channels.borrow().len() } else { state.subscriptions() }
    }
}

fn add(shared: &Shared, way: Way, name: &[u8], id: u64, connection: &Rc<Connection>) {
    let weak = Rc::downgrade(connection);
    match way {
        Way::Channel => shared.channels.borrow_mut().entry(name.to_vec()).or_default().insert(id, weak),
        Way::Pattern => shared.patterns.borrow_mut().entry(name.to_vec()).or_default().insert(id, weak),
        Way::Shard => shared.shard_channels.borrow_mut().entry(name.to_vec()).or_default().insert(id, weak),
    };
}

fn remove(shared: &Shared, way: Way, name: &[u8], id: u64) {
    let leave = |listeners: &mut Listening| {
        listeners.remove(&id);
        listeners.is_empty()
    };
    match way {
        Way::Pattern => {
            let mut all = shared.patterns.borrow_mut();
            if all.get_mut(name).is_some_and(leave) {
                all.remove(name);
            }
        }
        Way::Channel | Way::Shard => {
            let all = if way == Way::Channel { &shared.channels } else { &shared.shard_channels };
            let mut all = all.borrow_mut();
            if all.get_mut(name).is_some_and(leave) {
                all.remove(name);
            }
        }
    }
}

/// Errors: a channel is one of events of keys, and who wants to listen to it may not read those. What a pattern stands for is seen when it is published.
fn check_event_channel(call: &Call<'_>, name: &[u8]) -> Outcome {
    let rest = name.strip_prefix(b"__keyspace@").or_else(|| name.strip_prefix(b"__keyevent@"));
    let end = rest.and_then(|rest| rest.iter().position(|byte| *byte == b'_'));
    let number = rest.zip(end).and_then(|(rest, end)| integer(&rest[..end]));
    let db = number.and_then(|number| usize::try_from(number).ok()).filter(|db| *db < DATABASES);
    match db {
        Some(db) if call.spaces.has_keys(db) => {
            Ok(call.database.check_space_access(call.context, call.spaces.keys(db)?, Privileges::READ)?)
        }
        _ => Ok(()),
    }
}

fn join(call: &mut Call<'_>, way: Way) -> Outcome {
    if call.is_inside && !call.state.resp3.get() {
        return Err("ERR Command not allowed inside a transaction or script".into());
    }
    if way == Way::Channel {
        call.args[1..].iter().try_for_each(|name| check_event_channel(call, name))?;
    }
    call.state.answers_anyway.set(call.state.is_silent.get() || call.state.skips_next.get());
    for name in &call.args[1..] {
        let own = way.own(call.state);
        if own.borrow().len() >= SUBSCRIPTIONS_MAX {
            return Err(format!("ERR a connection listens to at most {SUBSCRIPTIONS_MAX} channels").into());
        }
        if own.borrow_mut().insert(name.to_vec()) {
            add(call.shared, way, name, call.state.id, call.connection);
        }
        let count = way.count(call.state);
        let mut reply = call.reply();
        reply.push(3);
        reply.text(way.word(false));
        reply.bulk(name);
        reply.count(count);
    }
    call.state.note_special(call.connection.must_log_in());
    Ok(())
}

fn leave(call: &mut Call<'_>, way: Way) -> Outcome {
    let names: Vec<Vec<u8>> = match call.args.len() {
        1 => way.own(call.state).borrow().iter().cloned().collect(),
        _ => call.args[1..].iter().map(|name| name.to_vec()).collect(),
    };
    call.state.answers_anyway.set(call.state.is_silent.get() || call.state.skips_next.get());
    for name in &names {
        if way.own(call.state).borrow_mut().remove(name) {
            remove(call.shared, way, name, call.state.id);
        }
        let count = way.count(call.state);
        let mut reply = call.reply();
        reply.push(3);
        reply.text(way.word(true));
        reply.bulk(name);
        reply.count(count);
    }
    if names.is_empty() {
        let count = way.count(call.state);
        let mut reply = call.reply();
        reply.push(3);
        reply.text(way.word(true));
        reply.null();
        reply.count(count);
    }
    call.state.note_special(call.connection.must_log_in());
    Ok(())
}

pub(super) fn subscribe(call: &mut Call<'_>) -> Outcome {
    join(call, Way::Channel)
}

pub(super) fn psubscribe(call: &mut Call<'_>) -> Outcome {
    join(call, Way::Pattern)
}

pub(super) fn ssubscribe(call: &mut Call<'_>) -> Outcome {
    join(call, Way::Shard)
}

pub(super) fn unsubscribe(call: &mut Call<'_>) -> Outcome {
    leave(call, Way::Channel)
}

pub(super) fn punsubscribe(call: &mut Call<'_>) -> Outcome {
    leave(call, Way::Pattern)
}

pub(super) fn sunsubscribe(call: &mut Call<'_>) -> Outcome {
    leave(call, Way::Shard)
}

/// Ends all that a connection listens to.
pub(super) fn forget_all(shared: &Shared, state: &State) {
    for way in [Way::Channel, Way::Pattern, Way::Shard] {
        for name in way.own(state).take() {
            remove(shared, way, &name, state.id);
        }
    }
}

/// Sends a message to those who listen. False: one of them does not read what it is sent, and is closed.
fn send(connection: &Rc<Connection>, seen: Position, parts: &[&[u8]]) -> bool {
    if connection.unsent() > connection.service.unread_max() {
        let peer = connection.session().peer.as_deref().unwrap_or("a client");
        tracing::warn!("{peer} does not read the messages of its channels: the connection is closed");
        connection.end();
        connection.service.mark(connection);
        return false;
    }
    let resp3 = connection.state.downcast_ref::<Rc<State>>().is_some_and(|state| state.resp3.get());
    let sent = connection.answer(seen, 0, |out| {
        let mut reply = Reply { out, resp3 };
        reply.push(parts.len());
        parts.iter().for_each(|part| reply.bulk(part));
        Ok(())
    });
    connection.service.mark(connection);
    sent.is_ok()
}

/// Sends a message to a channel. Returns how many got it.
fn publish_to(shared: &Shared, seen: Position, channel: &[u8], message: &[u8], is_shard: bool) -> usize {
    publish_where(shared, seen, (channel, message), is_shard, &|_| true)
}

/// Sends what has happened to a key of a database to those who listen and may read its keys. Rights may have changed since they began to listen.
pub(super) fn publish_event(
    shared: &Shared,
    seen: Position,
    (db, key): (usize, &[u8]),
    channel: &[u8],
    message: &[u8],
) {
    publish_where(shared, seen, (channel, message), false, &|connection| may_read(shared, connection, db, key));
}

fn publish_where(
    shared: &Shared,
    seen: Position,
    (channel, message): (&[u8], &[u8]),
    is_shard: bool,
    is_meant: &dyn Fn(&Connection) -> bool,
) -> usize {
    let listeners = |all: &Listening| -> Vec<Rc<Connection>> {
        all.values().filter_map(Weak::upgrade).filter(|connection| is_meant(connection)).collect()
    };
    let mut count = 0;
    let (channels, word): (_, &[u8]) =
        if is_shard { (&shared.shard_channels, b"smessage") } else { (&shared.channels, b"message") };
    let direct = channels.borrow().get(channel).map(listeners).unwrap_or_default();
    for connection in direct {
        count += usize::from(send(&connection, seen, &[word, channel, message]));
    }
    if !is_shard {
        let fitting: Vec<_> = {
            let patterns = shared.patterns.borrow();
            let fit = patterns.iter().filter(|(pattern, _)| matches(pattern, channel));
            fit.flat_map(|(pattern, all)| listeners(all).into_iter().map(move |who| (pattern.clone(), who))).collect()
        };
        for (pattern, connection) in fitting {
            count += usize::from(send(&connection, seen, &[b"pmessage", &pattern, channel, message]));
        }
    }
    count
}

pub(super) fn publish(call: &mut Call<'_>) -> Outcome {
    let count = publish_to(call.shared, call.context.seen.get(), call.args[1], call.args[2], false);
    call.reply().count(count);
    Ok(())
}

pub(super) fn spublish(call: &mut Call<'_>) -> Outcome {
    let count = publish_to(call.shared, call.context.seen.get(), call.args[1], call.args[2], true);
    call.reply().count(count);
    Ok(())
}

pub(super) fn pubsub(call: &mut Call<'_>) -> Outcome {
    let is_shard = call.is_word(1, "shardchannels") || call.is_word(1, "shardnumsub");
    let shared = Rc::clone(call.shared);
    let channels = if is_shard { &shared.shard_channels } else { &shared.channels };
    if call.is_word(1, "channels") || call.is_word(1, "shardchannels") {
        let pattern = call.args.get(2).copied().unwrap_or(b"*");
        let mut names: Vec<Vec<u8>> = channels.borrow().keys().filter(|name| matches(pattern, name)).cloned().collect();
        names.sort();
        let mut reply = call.reply();
        reply.array(names.len());
        names.iter().for_each(|name| reply.bulk(name));
    } else if call.is_word(1, "numsub") || call.is_word(1, "shardnumsub") {
        let names = &call.args[2..];
        let mut reply = call.reply();
        reply.array(names.len() * 2);
        for name in names {
            reply.bulk(name);
            reply.count(channels.borrow().get(*name).map_or(0, Listening::len));
        }
    } else if call.is_word(1, "numpat") {
        let count = shared.patterns.borrow().len();
        call.reply().count(count);
    } else {
        let name = String::from_utf8_lossy(call.args[1]).into_owned();
        return Err(
            format!("ERR unknown subcommand or wrong number of arguments for '{name}'. Try PUBSUB HELP.").into()
        );
    }
    Ok(())
}
