//! Commands that wait for a key to get something: `BLPOP` and its kin. Inside of transactions and scripts they do not wait.
//!
//! Who has waited longest is woken first, since fibers run in the order in which they are woken. What follows on the same connection waits with it.

use super::allowed;
use super::call::{Call, Kind};
use super::dispatch::{ATTEMPTS_MAX, is_conflict};
use super::failure::{Outcome, SYNTAX};
use super::lists::{End, move_value, pop_first, pop_request};
use super::shared::Place;
use super::sorted_sets;
use runtime::fiber::{self, Wake};
use std::cell::Cell;

/// Clients that may wait at once.
const WAITING_MAX: usize = 10_000;

/// When to stop waiting, by the clock of the fibers. None: never.
fn deadline(call: &Call<'_>, at: usize) -> Outcome<Option<u64>> {
    let seconds = call
        .args
        .get(at)
        .and_then(|text| super::call::double(text))
        .ok_or("ERR timeout is not a float or out of range")?;
    if seconds < 0.0 {
        return Err("ERR timeout is negative".into());
    }
    if seconds > 1e9 {
        return Err("ERR timeout is out of range".into());
    }
    Ok((seconds > 0.0).then(|| fiber::now_ns().saturating_add((seconds * 1e9) as u64)))
}

/// Tries until it comes to something, the time is over or the client is gone. False: it came to nothing; nothing was answered. While it waits, keys that
/// are of another kind than is said are as good as not there.
fn until(
    call: &mut Call<'_>,
    (keys, kind): (&[&[u8]], Option<Kind>),
    deadline: Option<u64>,
    mut attempt: impl FnMut(&mut Call<'_>, &[&[u8]]) -> Outcome<bool>,
) -> Outcome<bool> {
    let is_waiting = Cell::new(false);
    let mut attempt = |call: &mut Call<'_>| {
        let Some(kind) = kind.filter(|_| is_waiting.get()) else { return attempt(call, keys) };
        let mut ready = Vec::new();
        for key in keys {
            if call.find(key)?.is_some_and(|entry| entry.head.is_some_and(|head| head.kind == kind)) {
                ready.push(*key);
            }
        }
        if ready.is_empty() { Ok(false) } else { attempt(call, &ready) }
    };
    // In a fiber others have their turn between what it looks at and what it takes.
    let mut attempt = move |call: &mut Call<'_>| {
        if !call.may_wait {
            return attempt(call);
        }
        let (start, mut attempts) = (call.out.len(), 0);
        loop {
            let outcome = call.atomically(&mut attempt);
            attempts += 1;
            if !is_conflict(&outcome) || attempts == ATTEMPTS_MAX {
                return outcome;
            }
            call.out.truncate(start);
            fiber::yield_now();
        }
    };
    if attempt(call)? {
        return Ok(true);
    }
    if call.is_inside {
        return Ok(false);
    }
    call.go_into_fiber()?;
    let Some(who) = fiber::current() else { return Ok(false) };
    if call.shared.waiting_count() >= WAITING_MAX {
        return Err(format!("ERR {WAITING_MAX} clients wait for keys already").into());
    }
    let mut places: Vec<Place> = keys.iter().map(|key| (call.db, key.to_vec())).collect();
    places.sort();
    places.dedup();
    call.shared.begin_waiting(&places, who);
    is_waiting.set(true);
    let outcome = loop {
        call.context.seen.set(wal::Position::default());
        let woken = fiber::park_until(deadline);
        if woken == Wake::Cancelled || call.state.has_left.get() || !call.connection.session().is_alive.get() {
            break Ok(false);
        }
        if let Some(reason) = call.state.unblocked.take() {
            break match reason {
                true => Err("UNBLOCKED client unblocked via CLIENT UNBLOCK".into()),
                false => Ok(false),
            };
        }
        // It may be another user's turn to say what it may do, and the databases may have changed places.
        if let Err(failure) = allowed::check_again(call) {
            break Err(failure);
        }
        call.spaces = call.shared.spaces(call.database);
        let tried = attempt(call);
        call.shared.tell_again();
        match tried {
            Ok(false) => {}
            done => break done,
        }
        if deadline.is_some_and(|deadline| fiber::now_ns() >= deadline) {
            break Ok(false);
        }
    };
    call.shared.stop_waiting(&places, who);
    outcome
}

fn pop(call: &mut Call<'_>, end: End) -> Outcome {
    let args = call.args;
    let (keys, deadline) = (&args[1..args.len() - 1], deadline(call, args.len() - 1)?);
    let is_done = until(call, (keys, Some(Kind::List)), deadline, |call, keys| {
        for key in keys {
            if let Some(found) = call.find_head(key, Kind::List)? {
                let values = super::lists::pop_values(call, key, end, 1, found)?;
                let mut reply = call.reply();
                reply.array(2);
                reply.bulk(key);
                reply.bulk(values.first().map_or(&[], |value| value.as_slice()));
                return Ok(true);
            }
        }
        Ok(false)
    })?;
    if !is_done {
        call.reply().null_array();
    }
    Ok(())
}

pub(super) fn blpop(call: &mut Call<'_>) -> Outcome {
    pop(call, End::Left)
}

pub(super) fn brpop(call: &mut Call<'_>) -> Outcome {
    pop(call, End::Right)
}

fn move_between(call: &mut Call<'_>, ends: (End, End), timeout_at: usize) -> Outcome {
    let args = call.args;
    let deadline = deadline(call, timeout_at)?;
    let is_done = until(call, (&args[1..2], Some(Kind::List)), deadline, |call, _| {
        match move_value(call, (args[1], args[2]), ends)? {
            Some(value) => {
                call.reply().bulk(&value);
                Ok(true)
            }
            None => Ok(false),
        }
    })?;
    if !is_done {
        if call.is_inside { call.reply().null() } else { call.reply().null_array() }
    }
    Ok(())
}

pub(super) fn blmove(call: &mut Call<'_>) -> Outcome {
    let ends = (End::of(call.args[3])?, End::of(call.args[4])?);
    move_between(call, ends, 5)
}

pub(super) fn brpoplpush(call: &mut Call<'_>) -> Outcome {
    move_between(call, (End::Right, End::Left), 3)
}

pub(super) fn blmpop(call: &mut Call<'_>) -> Outcome {
    let deadline = deadline(call, 1)?;
    let (keys, end, count) = pop_request(call, 2)?;
    if !until(call, (keys, Some(Kind::List)), deadline, |call, keys| pop_first(call, keys, end, count))? {
        call.reply().null_array();
    }
    Ok(())
}

fn pop_member(call: &mut Call<'_>, is_max: bool) -> Outcome {
    let args = call.args;
    let (keys, deadline) = (&args[1..args.len() - 1], deadline(call, args.len() - 1)?);
    let is_done = until(call, (keys, Some(Kind::SortedSet)), deadline, |call, keys| {
        for key in keys {
            if let Some(found) = call.find_head(key, Kind::SortedSet)? {
                let members = sorted_sets::pop_members(call, key, is_max, 1, found)?;
                let mut reply = call.reply();
                reply.array(3);
                reply.bulk(key);
                for (member, score) in &members {
                    reply.bulk(member);
                    reply.double(*score);
                }
                return Ok(true);
            }
        }
        Ok(false)
    })?;
    if !is_done {
        call.reply().null_array();
    }
    Ok(())
}

pub(super) fn bzpopmin(call: &mut Call<'_>) -> Outcome {
    pop_member(call, false)
}

pub(super) fn bzpopmax(call: &mut Call<'_>) -> Outcome {
    pop_member(call, true)
}

pub(super) fn bzmpop(call: &mut Call<'_>) -> Outcome {
    let deadline = deadline(call, 1)?;
    let (keys, is_max, count) = sorted_sets::pop_request(call, 2)?;
    if !until(call, (keys, Some(Kind::SortedSet)), deadline, |call, keys| {
        sorted_sets::pop_first(call, keys, is_max, count)
    })? {
        call.reply().null_array();
    }
    Ok(())
}

/// Waits for streams to get entries that are wanted, at most so many milliseconds, or as long as it takes if those are 0.
pub(super) fn wait_for(
    call: &mut Call<'_>,
    keys: &[&[u8]],
    ms: u64,
    sees_all: bool,
    attempt: impl FnMut(&mut Call<'_>, &[&[u8]]) -> Outcome<bool>,
) -> Outcome<bool> {
    let deadline = (ms > 0).then(|| fiber::now_ns().saturating_add(ms.saturating_mul(1_000_000)));
    until(call, (keys, (!sees_all).then_some(Kind::Stream)), deadline, attempt)
}

/// `WAIT`: there are no replicas.
pub(super) fn wait(call: &mut Call<'_>) -> Outcome {
    call.integer(1)?;
    let timeout = call.integer(2)?;
    if timeout < 0 {
        return Err("ERR timeout is negative".into());
    }
    if call.args.len() != 3 {
        return Err(SYNTAX.into());
    }
    call.reply().integer(0);
    Ok(())
}
