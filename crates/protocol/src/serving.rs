//! From bytes to served requests: groups, budgets, bounds. Compiled for each door, so that a request costs no call through a table.

use crate::connection::{Connection, log_slow};
use crate::door::{Door, Split};
use crate::packing::{Packed, Packing};
use crate::service::shutting_down;
use database::{Error, ErrorCode};
use runtime::fiber;
use std::rc::Rc;
use storage::PREFETCH_MAX;
use wal::Position;

/// Longest time for the requests of one connection in one turn; a request that has begun finishes.
const SERVE_NS_MAX: u64 = 5_000_000;
/// The same for a connection without slow requests so far, by a coarse clock that lags by some milliseconds.
const SLOW_NS_MAX: u64 = 10_000_000;

/// Serves the complete requests of what was read, until their answers have no more room or the connection has used its time of this turn: a few
/// bytes may ask for much work.
pub(crate) fn serve_input<D: Door>(door: &D, connection: &Rc<Connection>, state: &D::State, bytes: &[u8]) {
    if connection.packed.borrow().is_none() {
        match door.packing(state) {
            None => return serve_plain(door, connection, state, bytes),
            Some(packing) => {
                // What was said before it was agreed leaves as it is.
                let plain_left = connection.held();
                *connection.packed.borrow_mut() = Some(Packed { packing, plain_left });
            }
        }
    }
    serve_packed(door, connection, state, bytes);
}

/// What is done with what packs a connection's bytes.
type Work<'w> = &'w mut dyn FnMut(&mut dyn Packing) -> Result<Option<Vec<u8>>, Error>;

/// The same for bytes that are packed: frame by frame, so that no more is unpacked than is served.
fn serve_packed<D: Door>(door: &D, connection: &Rc<Connection>, state: &D::State, bytes: &[u8]) {
    let service = &connection.service;
    let with_packing = |work: Work<'_>| {
        let mut packed = connection.packed.borrow_mut();
        let Some(packed) = packed.as_mut() else { return Ok(None) };
        let unpacked = work(&mut *packed.packing);
        let before = connection.packed_bytes.replace(packed.packing.held());
        service.input_total.set(service.input_total.get() - before + connection.packed_bytes.get());
        unpacked
    };
    let _ = with_packing(&mut |packing| {
        packing.take(bytes);
        Ok(None)
    });
    if bytes.is_empty() {
        // Requests that were unpacked before and had to wait.
        serve_plain(door, connection, state, &[]);
    }
    while !connection.is_stalled.get() && !connection.is_closing.get() && !connection.has_no_room() {
        match with_packing(&mut |packing| packing.unpack()) {
            Ok(None) => break,
            Ok(Some(plain)) => serve_plain(door, connection, state, &plain),
            Err(error) => {
                connection.add_failure(Position::default(), 0, &error);
                connection.end();
                service.mark(connection);
            }
        }
    }
    let has_frame = connection.packed.borrow().as_ref().is_some_and(|packed| packed.packing.has_frame());
    if has_frame && !connection.is_closing.get() {
        connection.is_stalled.set(true);
    } else if service.input_total.get() > service.config.input_total_max && connection.packed_bytes.get() > 0 {
        let total = service.config.input_total_max;
        let what = format!("requests that come in parts (all together may have {total} bytes)");
        let bytes = connection.packed_bytes.get();
        connection.add_failure(
            Position::default(),
            0,
            &Error::new(ErrorCode::MemoryIssue, &[&bytes, &"input buffers", &what]),
        );
        connection.end();
        service.mark(connection);
    }
}

fn serve_plain<D: Door>(door: &D, connection: &Rc<Connection>, state: &D::State, bytes: &[u8]) {
    let service = &connection.service;
    connection.session.writes_disk.set(false);
    let mut kept = connection.input.take();
    service.input_total.set(service.input_total.get() - kept.len());
    let is_joined = !kept.is_empty();
    if is_joined {
        kept.extend_from_slice(bytes);
    }
    let input = if is_joined { &kept[..] } else { bytes };
    let Served { at, announced } = serve_requests(door, connection, state, input);
    assert!(at <= input.len(), "requests end in the input");
    service.made_bytes.set(service.made_bytes.get() + connection.held());
    service.mark(connection);
    if is_joined {
        // Nothing is copied while a large request comes in.
        if at > 0 {
            kept.drain(..at);
        }
    } else if at < bytes.len() {
        kept = bytes[at..].to_vec();
    }
    let may_grow = !connection.is_stalled.get() && !connection.is_closing.get() && !connection.is_busy();
    if may_grow && is_too_large(connection, announced, kept.len()) {
        kept = Vec::new();
    }
    service.input_total.set(service.input_total.get() + kept.len());
    *connection.input.borrow_mut() = kept;
}

/// How far the input was served.
struct Served {
    /// The first byte of what is left.
    at: usize,
    /// Bytes that the request there takes in all, as its beginning says; 0 if it does not.
    announced: u64,
}

fn serve_requests<D: Door>(door: &D, connection: &Rc<Connection>, state: &D::State, input: &[u8]) -> Served {
    let service = &*connection.service;
    let database = &*service.database;
    let began = fiber::now_ns();
    connection.group_began.set(began);
    let clock = &database.environment().clock;
    let coarse_began = clock.coarse_ns();
    let (mut at, mut announced) = (0, 0);
    let mut left = door.requests_max();
    let mut group = Vec::with_capacity(PREFETCH_MAX);
    let mut ends = [0; PREFETCH_MAX];
    while !connection.is_closing.get() {
        // Requests that are here already are split together, so that the rows they want are fetched together.
        let mut refused = None;
        let mut ahead = at;
        while group.len() < PREFETCH_MAX {
            match door.split(state, &input[ahead..]) {
                Split::Incomplete { announced: bytes } => {
                    announced = bytes;
                    break;
                }
                Split::Request(request, length) => {
                    ahead += length;
                    ends[group.len()] = ahead;
                    group.push(request);
                }
                Split::Last(request, length) => {
                    ends[group.len()] = ahead + length;
                    group.push(request);
                    break;
                }
                Split::Refused { error, length } => {
                    refused = Some((error, length));
                    break;
                }
            }
        }
        if group.is_empty() && refused.is_none() {
            break;
        }
        if group.len() > 1 {
            door.prefetch(database, &group);
        }
        let count = group.len();
        let mut number = 0;
        while let Some(request) = group.get(number) {
            if connection.has_no_room() {
                connection.is_stalled.set(true);
                break;
            }
            let is_draining = service.is_draining.get();
            let together = if is_draining { 0 } else { door.serve_together(connection, state, &group[number..]) };
            if is_draining {
                connection.answer_error(D::tag(request), &shutting_down());
            } else {
                let served = together.max(1) as u64;
                database::add(&database.statistics.requests, served);
                database::add(&connection.counts.requests, served);
                if together == 0
                    && let Err(error) = door.serve(connection, state, request)
                {
                    connection.answer_error(D::tag(request), &error);
                }
            }
            number += together.max(1);
            at = ends[number - 1];
            left = left.saturating_sub(together.max(1));
            if connection.is_closing.get() {
                // Nobody waits for an answer to what follows.
                return Served { at, announced: 0 };
            }
            // Reading the clock costs time, too: a connection with slow requests pays for it behind each of them, others read a coarse clock behind
            // some.
            let is_late = match connection.is_slow.get() {
                true => fiber::now_ns().saturating_sub(began) >= SERVE_NS_MAX,
                false => {
                    (number % 2 == 1 || together > 1)
                        && count > 1
                        && clock.coarse_ns().saturating_sub(coarse_began) >= SLOW_NS_MAX
                }
            };
            if is_late {
                connection.is_slow.set(true);
                connection.is_stalled.set(true);
            } else if left == 0 && at < input.len() {
                connection.is_stalled.set(true);
            } else {
                continue;
            }
            if at < input.len() {
                door.yielded();
            }
            break;
        }
        let now = fiber::now_ns();
        let total = now.saturating_sub(connection.group_began.replace(now));
        if total > database.limits.too_long_ns.get()
            && let Some(first) = group.first()
        {
            log_slow_group(&D::describe(first), count, total);
        }
        group.clear();
        if connection.is_stalled.get() {
            break;
        }
        if let Some((error, length)) = refused {
            if connection.has_no_room() {
                // Its turn comes behind the requests before it.
                connection.is_stalled.set(true);
                break;
            }
            if runtime::tls::is_hello(&input[at..]) {
                let peer = connection.session.peer.as_deref().unwrap_or("a client");
                tracing::warn!(
                    "{peer} speaks TLS at an address that is listened at without it: the connection is closed"
                );
                connection.end();
                break;
            }
            connection.add_failure(Position::default(), 0, &error);
            match length {
                Some(length) => at += length,
                None => connection.end(),
            }
        }
        if now.saturating_sub(began) >= SERVE_NS_MAX {
            if at < input.len() {
                door.yielded();
            }
            connection.is_slow.set(true);
            connection.is_stalled.set(true);
            break;
        }
        connection.is_slow.set(false);
    }
    Served { at, announced }
}

/// Logs that a group of requests, served together on the event loop's own stack, took long.
fn log_slow_group(first: &str, count: usize, total_ns: u64) {
    match count {
        1 => log_slow(first, total_ns, 0),
        count => log_slow(&format!("group of {count} requests that begins with {first}"), total_ns, 0),
    }
}

/// True if a request that has arrived in part is too large to wait for its rest. The client gets an error, and its connection ends.
fn is_too_large(connection: &Connection, announced: u64, come: usize) -> bool {
    let service = &connection.service;
    let bound = service.config.guest_request_max;
    let announced = announced.max(come as u64);
    if announced <= bound as u64 {
        return false;
    }
    let error = if connection.is_stranger() {
        let what = format_args!("a request of {announced} bytes before login (at most {bound} bytes)");
        Error::new(ErrorCode::Unsupported, &[&"Lycosa", &what])
    } else if service.input_total.get() + come > service.config.input_total_max {
        let total = service.config.input_total_max;
        let what = format!("a request of {announced} bytes (all that come in parts may have {total} bytes)");
        Error::new(ErrorCode::MemoryIssue, &[&announced, &"input buffers", &what])
    } else {
        return false;
    };
    connection.add_failure(Position::default(), 0, &error);
    connection.end();
    true
}
