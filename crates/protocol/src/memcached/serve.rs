//! Serving one request: here and now where it cannot wait, else in a fiber of its own.

use super::binary::{self, Status};
use super::store::{Outcome, Sum, Wanted, Work};
use super::text::{Decoded, Found, Request, Words};
use super::{
    BINARY_TAG, Cache, LOGIN_TAG, Memcached, State, Tongue, admin, binary_tag, meta, numbers, packets, retrieve, stats,
    text,
};
use crate::connection::Connection;
use crate::door::Door;
use database::{Database, Error, ErrorCode, Privileges, Result};
use runtime::fiber;
use std::rc::Rc;
use wal::Position;

/// First byte of a login as it is kept while it waits: how it was said.
const LOGIN_TEXT: u8 = b't';
const LOGIN_SASL: u8 = b's';
/// Interval between looks whether it is time for a `flush_all` to come.
const FLUSH_LOOK_NS: u64 = 250_000_000;

/// Opcode and opaque of the packet that a tag was made of.
pub(super) fn of_tag(tag: u64) -> (u8, u32) {
    ((tag >> 32) as u8, tag as u32)
}

/// Writes an error in the place of an answer.
pub(super) fn encode_failure(out: &mut Vec<u8>, tag: u64, error: &Error) {
    let code = error.code();
    let is = |wanted: ErrorCode| code == wanted as u32;
    if tag & BINARY_TAG != 0 {
        let status = match () {
            () if is(ErrorCode::CredsMismatch) || is(ErrorCode::AccessDenied) => Status::Auth,
            () if is(ErrorCode::MemoryIssue) => Status::NoMemory,
            () => Status::Internal,
        };
        let text = if is(ErrorCode::CredsMismatch) { status.text() } else { error.message() };
        return binary::refuse(out, of_tag(tag), status, text);
    }
    if tag == LOGIN_TAG && is(ErrorCode::CredsMismatch) {
        return out.extend_from_slice(b"CLIENT_ERROR authentication failure\r\n");
    }
    out.extend_from_slice(b"SERVER_ERROR ");
    match is(ErrorCode::MemoryIssue) {
        true => out.extend_from_slice(b"out of memory storing object"),
        false => out.extend(error.message().bytes().map(|byte| if byte < b' ' { b' ' } else { byte })),
    }
    out.extend_from_slice(b"\r\n");
}

/// User and password of a login as it is kept.
pub(super) fn read_login(login: &[u8]) -> Option<(&[u8], &[u8])> {
    let (kind, login) = login.split_first()?;
    if *kind == LOGIN_TEXT {
        let words = Words::of(login);
        return Some((words.get(0), words.get(1)));
    }
    // PLAIN: who it is for, user, password.
    let mut parts = login.split(|byte| *byte == 0);
    let (_, user, password) = (parts.next()?, parts.next()?, parts.next()?);
    parts.next().is_none().then_some((user, password))
}

/// What a request is, for a line of the log.
pub(super) fn describe(raw: &[u8]) -> String {
    match raw {
        [binary::REQUEST_MAGIC, opcode, ..] => format!("memcached command {opcode:#04x}"),
        _ => {
            let word = raw.split(|byte| byte.is_ascii_whitespace()).next().unwrap_or(&[]);
            let shown = word.iter().take(16).map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '?' });
            format!("memcached command {}", shown.collect::<String>())
        }
    }
}

/// True if nobody listens to how a request ends.
fn is_silent(request: &Request<'_>) -> bool {
    match request {
        Request::Store(store) => store.is_quiet,
        Request::Delete { is_quiet, .. }
        | Request::Arithmetic { is_quiet, .. }
        | Request::Touch { is_quiet, .. }
        | Request::FlushAll { is_quiet, .. } => *is_quiet,
        _ => false,
    }
}

/// True if a request writes rows, or may.
fn may_write(request: &Request<'_>) -> bool {
    match request {
        Request::Get { exptime, .. } => exptime.is_some(),
        Request::Meta { .. }
        | Request::Store(_)
        | Request::Delete { .. }
        | Request::Arithmetic { .. }
        | Request::Touch { .. }
        | Request::Oversized { .. } => true,
        Request::Packet(packet) => !matches!(packet.command, binary::opcode::GET | binary::opcode::GETK),
        _ => false,
    }
}

fn say(connection: &Connection, text: &str) -> Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    connection.answer(Position::default(), 0, |out| {
        push_line(out, text);
        Ok(())
    })
}

fn push_line(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Serves a request. Errors: nothing was answered.
#[inline]
pub(super) fn serve(door: &Rc<Cache>, connection: &Rc<Connection>, state: &State, decoded: &Decoded<'_>) -> Result<()> {
    if state.tongue.get() == Tongue::Unknown {
        let is_binary = decoded.raw.first() == Some(&binary::REQUEST_MAGIC);
        state.tongue.set(if is_binary { Tongue::Binary } else { Tongue::Text });
    }
    match &decoded.request {
        Request::GetOne(_) | Request::Get { exptime: None, .. } => {
            let database = &**connection.database();
            let bound = door.bound(database)?;
            let context = connection.context();
            context.seen.set(Position::default());
            let work = Work { door, database, context, bound: &bound, is_in_fiber: false };
            let done = match &decoded.request {
                Request::GetOne(key) => retrieve::get_one(&work, connection, key),
                Request::Get { keys, has_cas, .. } => retrieve::get(&work, connection, keys, *has_cas),
                _ => Ok(()),
            };
            match done {
                Err(error) if error.is_needs_fiber() => {
                    in_fiber(door, connection, decoded);
                    Ok(())
                }
                result => result,
            }
        }
        Request::Get { .. } => {
            in_fiber(door, connection, decoded);
            Ok(())
        }
        Request::Say(text) => say(connection, text),
        Request::Skip(count) => {
            state.skipped.set(state.skipped.get().saturating_sub(*count));
            Ok(())
        }
        Request::Quit => {
            connection.end();
            Ok(())
        }
        Request::Admin { line } => admin::serve(door, connection, state, line),
        Request::Leave(why) => {
            state.reason.set("error");
            let peer = connection.session().peer.as_deref().unwrap_or("a client");
            tracing::warn!("{peer} {why} at an address of memcached: the connection is closed");
            connection.end();
            Ok(())
        }
        Request::Login(value) => {
            let login = [&[LOGIN_TEXT], *value].concat();
            connection.log_in(LOGIN_TAG, &login)
        }
        Request::Packet(packet) => serve_packet(door, connection, state, packet, decoded),
        Request::Oversized { skipped, .. } => {
            state.skipped.set(*skipped);
            if state.must_log_in.get() {
                connection.end();
            }
            run_here(door, connection, decoded)
        }
        Request::FlushAll { .. } if !door.allows.flush => say(connection, "CLIENT_ERROR flush_all not allowed"),
        Request::FlushAll { exptime, is_quiet } => {
            let answer = (!*is_quiet).then(|| b"OK\r\n".to_vec());
            flush(door, connection, *exptime, 0, answer)
        }
        _ => run_here(door, connection, decoded),
    }
}

fn serve_packet(
    door: &Rc<Cache>,
    connection: &Rc<Connection>,
    state: &State,
    packet: &binary::Packet<'_>,
    decoded: &Decoded<'_>,
) -> Result<()> {
    use binary::opcode;
    let to = (packet.opcode, packet.opaque);
    let refuse = |status: Status| {
        connection.answer(Position::default(), 0, |out| {
            binary::refuse(out, to, status, status.text());
            Ok(())
        })
    };
    let is_login = matches!(packet.command, opcode::SASL_LIST | opcode::SASL_AUTH | opcode::SASL_STEP);
    if state.must_log_in.get() && !is_login && packet.command != opcode::VERSION {
        connection.end();
        return refuse(Status::Auth);
    }
    if let Some(status) = packet.refused {
        if packet.is_last {
            connection.end();
        }
        return refuse(status);
    }
    match packet.command {
        opcode::QUIT => {
            connection.end();
            if packet.is_quiet { Ok(()) } else { refuse(Status::Ok) }
        }
        opcode::FLUSH if !door.allows.flush => refuse(Status::Auth),
        opcode::FLUSH => {
            let exptime = if packet.extras.is_empty() { 0 } else { binary::be_u32(packet.extras) as i32 };
            let mut answer = Vec::new();
            binary::answer(&mut answer, to, Status::Ok, 0, (&[], &[], &[]));
            flush(door, connection, exptime, binary_tag(to.0, to.1), (!packet.is_quiet).then_some(answer))
        }
        opcode::SASL_AUTH if packet.key == b"PLAIN" => {
            let login = [&[LOGIN_SASL], packet.value].concat();
            connection.log_in(binary_tag(to.0, to.1), &login)
        }
        opcode::SASL_AUTH | opcode::SASL_STEP => refuse(Status::Auth),
        _ => run_here(door, connection, decoded),
    }
}

/// Serves a request on the stack of the event loop, unless it has to wait.
fn run_here(door: &Rc<Cache>, connection: &Rc<Connection>, decoded: &Decoded<'_>) -> Result<()> {
    let database = &**connection.database();
    let bound = door.bound(database)?;
    let writes = may_write(&decoded.request);
    if writes && (bound.space.may_wait() || bound.space.rows.may_wait()) {
        in_fiber(door, connection, decoded);
        return Ok(());
    }
    let context = connection.context();
    context.seen.set(Position::default());
    let work = Work { door, database, context, bound: &bound, is_in_fiber: false };
    let mut out = door.answers.take();
    out.clear();
    let result = run(&work, &decoded.request, &mut out);
    let result = match result {
        Err(error) if error.is_needs_fiber() => {
            in_fiber(door, connection, decoded);
            Ok(())
        }
        Err(_) if is_silent(&decoded.request) => {
            database::increment(&database.statistics.errors);
            Ok(())
        }
        Ok(()) if !out.is_empty() => {
            let seen = context.seen.get().max(database.schema_written());
            connection.answer(seen, Memcached::tag(decoded), |to| {
                to.extend_from_slice(&out);
                Ok(())
            })
        }
        result => result,
    };
    super::give_back(&door.answers, out);
    result
}

/// Serves a request in a fiber.
fn in_fiber(door: &Rc<Cache>, connection: &Rc<Connection>, decoded: &Decoded<'_>) {
    let Ok(bound) = door.bound(connection.database()) else { return };
    let tag = Memcached::tag(decoded);
    let raw = decoded.raw.to_vec();
    let (shared, cache) = (Rc::clone(connection), Rc::clone(door));
    let describe_raw = describe_owned as fn(&Vec<u8>) -> String;
    connection.in_fiber(tag, (raw, describe_raw), move |connection, context, raw| {
        let door = &cache;
        let database = &**connection.database();
        let request = again(raw, door.item_size_max);
        let work = Work { door, database, context, bound: &bound, is_in_fiber: true };
        context.seen.set(Position::default());
        if let Request::GetOne(key) = &request {
            return retrieve::get_in_parts(&work, &shared, key, false, None);
        }
        if let Request::Get { keys, has_cas, exptime } = &request {
            let expires = exptime.map(|exptime| door.moment(database, exptime));
            return retrieve::get_in_parts(&work, &shared, keys, *has_cas, expires);
        }
        let mut out = Vec::new();
        match run(&work, &request, &mut out) {
            Err(_) if is_silent(&request) => {
                database::increment(&database.statistics.errors);
                Ok(())
            }
            Ok(()) if !out.is_empty() => {
                let seen = context.seen.get().max(database.schema_written());
                connection.answer(seen, tag, |to| {
                    to.extend_from_slice(&out);
                    Ok(())
                })
            }
            result => result,
        }
    });
}

#[expect(clippy::ptr_arg, reason = "the subject of a fiber is a Vec")]
fn describe_owned(raw: &Vec<u8>) -> String {
    describe(raw)
}

/// The request that these bytes are, which were understood before.
fn again(raw: &[u8], item_size_max: usize) -> Request<'_> {
    let found = match raw.first() {
        Some(&binary::REQUEST_MAGIC) => binary::split(raw, item_size_max),
        _ => text::split(raw, item_size_max),
    };
    match found {
        Found::Whole(request, _) | Found::Last(request, _) => request,
        Found::Part(_) => Request::Say("SERVER_ERROR a request has lost its end"),
    }
}

/// Does what a request asks for and appends its answer, or nothing. Errors: as [`Error::needs_fiber`] if it has to wait; nothing was done.
pub(super) fn run(work: &Work<'_>, request: &Request<'_>, out: &mut Vec<u8>) -> Result<()> {
    let (door, database) = (work.door, work.database);
    let counters = &door.counters;
    let mut tell = |text: &str, is_quiet: bool| {
        if !is_quiet {
            push_line(out, text);
        }
    };
    match request {
        Request::Store(store) => {
            let wanted = Wanted {
                verb: store.verb,
                key: store.key,
                value: store.value,
                flags: store.flags,
                expires: door.moment(database, store.exptime),
                cas: store.cas,
                given_cas: 0,
                is_binary: false,
                takes_stale: false,
                begins: None,
            };
            let text = match work.store(&wanted)? {
                Outcome::Stored(_) => {
                    door.recent.note(store.key, || work.now(), false);
                    "STORED"
                }
                Outcome::NotStored => "NOT_STORED",
                Outcome::Exists => "EXISTS",
                Outcome::NotFound => "NOT_FOUND",
            };
            tell(text, store.is_quiet);
        }
        Request::Delete { key, is_quiet } => {
            let is_hit = matches!(work.delete(key, 0)?, Outcome::Stored(_));
            counters.count_deletes(is_hit);
            tell(if is_hit { "DELETED" } else { "NOT_FOUND" }, *is_quiet);
        }
        Request::Arithmetic { key, delta, is_incr, is_quiet } => {
            let sum = work.add(key, *delta, *is_incr, 0)?;
            counters.count_sums(*is_incr, matches!(sum, Sum::Done { .. }));
            match sum {
                Sum::Done { value, .. } if !*is_quiet => {
                    numbers::push_u64(out, value);
                    out.extend_from_slice(b"\r\n");
                }
                Sum::Done { .. } => {}
                Sum::NoNumber => tell("CLIENT_ERROR cannot increment or decrement non-numeric value", *is_quiet),
                _ => tell("NOT_FOUND", *is_quiet),
            }
        }
        Request::Touch { key, exptime, is_quiet } => {
            let is_hit = work.touch(key, door.moment(database, *exptime), |found| found.is_some())?;
            counters.count_touches(u64::from(is_hit), u64::from(!is_hit), false);
            tell(if is_hit { "TOUCHED" } else { "NOT_FOUND" }, *is_quiet);
        }
        Request::Meta { line, value } => {
            stats::add(&counters.cmd_meta, 1);
            meta::serve(work, line, value, out)?;
        }
        Request::Packet(packet) => packets::serve(work, packet, out)?,
        Request::Oversized { key, answer, is_binary, .. } => {
            stats::add(&counters.store_too_large, 1);
            if !key.is_empty() {
                work.delete(key, 0)?;
            }
            match is_binary {
                Some(to) => binary::refuse(out, *to, Status::TooLarge, Status::TooLarge.text()),
                None => tell(answer, answer.is_empty()),
            }
        }
        Request::Stats { words } => match words.strip_suffix(b" ").unwrap_or(words) {
            words if Words::of(words).get(0) == b"reset" => {
                stats::reset(work);
                tell("RESET", false);
            }
            words if words.starts_with(b"cachedump") => {
                let words = Words::of(words);
                match (words.count, numbers::read_u32(words.get(1)), numbers::read_u32(words.get(2))) {
                    (3, Some(_), Some(max)) => stats::cachedump(work, out, u64::from(max))?,
                    (3, ..) => tell(text::BAD_FORMAT, false),
                    _ => tell("CLIENT_ERROR bad command line", false),
                }
            }
            words if words.starts_with(b"detail") => stats::detail(work, Words::of(words).get(1), out)?,
            words => match stats::lines(work, words)? {
                None => tell("ERROR", false),
                Some(lines) => {
                    for (name, value) in lines {
                        tell(&format!("STAT {name} {value}"), false);
                    }
                    tell("END", false);
                }
            },
        },
        Request::Say(text) => tell(text, text.is_empty()),
        _ => {}
    }
    Ok(())
}

/// Forgets all items, now or later, and answers. Errors: the user has no right to.
fn flush(door: &Rc<Cache>, connection: &Rc<Connection>, exptime: i32, tag: u64, answer: Option<Vec<u8>>) -> Result<()> {
    let database = connection.database();
    let bound = door.bound(database)?;
    database.check_space_access(connection.context(), &bound.space, Privileges::WRITE)?;
    door.counters.flushes.set(door.counters.flushes.get() + 1);
    let say = move |connection: &Connection, seen: Position, answer: &Option<Vec<u8>>| match answer {
        None => Ok(()),
        Some(bytes) => connection.answer(seen, tag, |out| {
            out.extend_from_slice(bytes);
            Ok(())
        }),
    };
    // The newest one counts.
    door.flush_at.set(0);
    if exptime > 0 {
        door.flush_at.set(door.moment(database, exptime));
        if !door.has_flusher.replace(true) {
            let (door, database) = (Rc::clone(door), Rc::clone(database));
            fiber::spawn("memcached", move || flush_later(&door, &database));
        }
        return say(connection, Position::default(), &answer);
    }
    let subject = ((), |(): &()| "memcached command flush_all".to_string());
    let cache = Rc::clone(door);
    connection.in_fiber(tag, (subject.0, subject.1 as fn(&()) -> String), move |connection, context, ()| {
        let database = connection.database();
        cache.note_flush(database, &bound)?;
        database.truncate(context, &bound.space)?;
        say(connection, context.seen.get(), &answer)
    });
    Ok(())
}

/// Forgets all items when it is time to. Who asked for it had the right to.
fn flush_later(door: &Cache, database: &Rc<Database>) {
    while door.flush_at.get() > 0 {
        if door.now(database) >= door.flush_at.get() {
            door.flush_at.set(0);
            let done = door.bound(database).and_then(|bound| {
                door.note_flush(database, &bound)?;
                database.truncate(&database.admin_context(), &bound.space)
            });
            if let Err(error) = done {
                tracing::error!("flush_all of space '{}' failed: {error}", door.space);
            }
        } else if fiber::sleep(FLUSH_LOOK_NS) == fiber::Wake::Cancelled {
            break;
        }
    }
    door.has_flusher.set(false);
}
