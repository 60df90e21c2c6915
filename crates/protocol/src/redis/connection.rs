//! What is about the connection itself: logging in, the protocol's version, names, `CLIENT`.

use super::call::Call;
use super::dispatch::write_failure;
use super::failure::{Failure, Outcome, SYNTAX};
use super::keys::{database_number, make_database};
use super::reply::Reply;
use super::resp::integer;
use super::shared::Shared;
use super::state::State;
use super::table::Spec;
use super::{pubsub, transactions};
use crate::connection::Connection;
use database::Result;
use std::rc::{Rc, Weak};
use wal::Position;

/// The version whose answers this door gives.
pub(super) const REDIS_VERSION: &str = "7.0.15";
/// Longest name of a client.
const NAME_BYTES_MAX: usize = 4096;
/// Marks in the tags of logins: `HELLO` is answered with more than `OK`, and in which version.
const BY_HELLO: u64 = 1;
const IN_RESP3: u64 = 2;

pub(super) fn ping(call: &mut Call<'_>) -> Outcome {
    if call.args.len() > 2 {
        return Err("ERR wrong number of arguments for 'ping' command".into());
    }
    let text = call.args.get(1).copied();
    if call.state.subscriptions() > 0 && !call.state.resp3.get() {
        let mut reply = call.reply();
        reply.array(2);
        reply.bulk(b"pong");
        reply.bulk(text.unwrap_or_default());
        return Ok(());
    }
    match text {
        Some(text) => call.reply().bulk(text),
        None => call.reply().simple("PONG"),
    }
    Ok(())
}

pub(super) fn echo(call: &mut Call<'_>) -> Outcome {
    let text = call.args[1];
    call.reply().bulk(text);
    Ok(())
}

pub(super) fn quit(call: &mut Call<'_>) -> Outcome {
    call.reply().ok();
    call.connection.end();
    Ok(())
}

pub(super) fn select(call: &mut Call<'_>) -> Outcome {
    let db = database_number(call, 1).map_err(|failure| match integer(call.args[1]) {
        Some(_) => failure,
        None => "ERR value is not an integer or out of range".into(),
    })?;
    make_database(call, db)?;
    call.state.db.set(db);
    call.reply().ok();
    Ok(())
}

pub(super) fn reset(call: &mut Call<'_>) -> Outcome {
    let state = call.state;
    state.multi.borrow_mut().take();
    transactions::forget_all(call.shared, state);
    pubsub::forget_all(call.shared, state);
    state.db.set(0);
    state.resp3.set(false);
    state.name.borrow_mut().clear();
    state.is_silent.set(false);
    state.note_special(call.connection.must_log_in());
    call.reply().simple("RESET");
    Ok(())
}

/// A login as the event loop keeps it while it waits: name, then password, each behind its length.
fn encode_login(user: &[u8], password: &[u8], resp3: bool, name: Option<&[u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    tuple::msgpack::encode_array(&mut out, 4);
    tuple::msgpack::encode_str(&mut out, user);
    tuple::msgpack::encode_str(&mut out, password);
    tuple::msgpack::encode_bool(&mut out, resp3);
    match name {
        Some(name) => tuple::msgpack::encode_str(&mut out, name),
        None => tuple::msgpack::encode_nil(&mut out),
    }
    out
}

pub(super) fn user_of(login: &[u8]) -> String {
    let mut reader = tuple::msgpack::Reader::new(login);
    let user = reader.read_array().and_then(|_| reader.read_str()).unwrap_or_default();
    String::from_utf8_lossy(user).into_owned()
}

/// See [`Door::authenticate`](crate::Door::authenticate).
pub(super) fn authenticate(connection: &Connection, state: &State, login: &[u8]) -> Result<()> {
    let mut reader = tuple::msgpack::Reader::new(login);
    let read = reader.read_array().and_then(|_| reader.read_str()).and_then(|_| reader.read_str());
    connection.database().authenticate_plainly(connection.session(), &user_of(login), read.unwrap_or_default())?;
    if reader.read_bool() == Ok(true) {
        state.resp3.set(true);
    }
    if let Ok(name) = reader.read_str() {
        *state.name.borrow_mut() = name.to_vec();
    }
    state.is_stranger.set(false);
    state.note_special(false);
    Ok(())
}

fn write_hello(reply: &mut Reply<'_>, id: u64) {
    reply.map(7);
    reply.text("server");
    reply.text("redis");
    reply.text("version");
    reply.text(REDIS_VERSION);
    reply.text("proto");
    reply.integer(if reply.resp3 { 3 } else { 2 });
    reply.text("id");
    reply.integer(id as i64);
    reply.text("mode");
    reply.text("standalone");
    reply.text("role");
    reply.text("master");
    reply.text("modules");
    reply.array(0);
}

/// Answers a login that has succeeded.
pub(super) fn welcome(out: &mut Vec<u8>, tag: u64) {
    let mut reply = Reply { out, resp3: tag & IN_RESP3 != 0 };
    if tag & BY_HELLO == 0 {
        reply.ok();
    } else {
        write_hello(&mut reply, tag >> 2);
    }
}

struct Hello<'a> {
    resp3: bool,
    login: Option<(&'a [u8], &'a [u8])>,
    name: Option<&'a [u8]>,
}

fn read_hello<'a>(args: &[&'a [u8]], resp3: bool) -> Outcome<Hello<'a>> {
    let mut hello = Hello { resp3, login: None, name: None };
    let Some(version) = args.get(1) else { return Ok(hello) };
    hello.resp3 = match integer(version) {
        Some(2) => false,
        Some(3) => true,
        Some(_) => return Err("NOPROTO unsupported protocol version".into()),
        None => return Err("ERR Protocol version is not an integer or out of range".into()),
    };
    let mut at = 2;
    while at < args.len() {
        if args[at].eq_ignore_ascii_case(b"auth") && at + 2 < args.len() {
            hello.login = Some((args[at + 1], args[at + 2]));
            at += 3;
        } else if args[at].eq_ignore_ascii_case(b"setname") && at + 1 < args.len() {
            check_name(args[at + 1])?;
            hello.name = Some(args[at + 1]);
            at += 2;
        } else {
            let word = String::from_utf8_lossy(args[at]).into_owned();
            return Err(format!("ERR Syntax error in HELLO option '{word}'").into());
        }
    }
    Ok(hello)
}

/// Serves `AUTH` and `HELLO`: their answers may come later, and the rest of the input waits for them.
pub(super) fn log_in(connection: &Rc<Connection>, state: &Rc<State>, spec: &Spec, args: &[&[u8]]) -> Result<()> {
    let refuse = |failure: Failure| {
        connection.answer(Position::default(), 0, |out| {
            write_failure(out, &failure);
            Ok(())
        })
    };
    if state.multi.borrow().is_some() {
        return refuse(format!("ERR Command not allowed inside a transaction: {}", spec.name).into());
    }
    if spec.name == "auth" {
        let (user, password): (&[u8], &[u8]) = match args {
            [_, password] => (&state.default_user, password),
            [_, user, password] => (user, password),
            _ => return refuse(SYNTAX.into()),
        };
        if user.is_empty() {
            return refuse("ERR AUTH <password> called without any password configured for the default user. Give the name of a user, too: AUTH <username> <password>".into());
        }
        return connection.log_in(0, &encode_login(user, password, false, None));
    }
    let hello = match read_hello(args, state.resp3.get()) {
        Ok(hello) => hello,
        Err(failure) => return refuse(failure),
    };
    if let Some((user, password)) = hello.login {
        let tag = BY_HELLO | if hello.resp3 { IN_RESP3 } else { 0 } | state.id << 2;
        return connection.log_in(tag, &encode_login(user, password, hello.resp3, hello.name));
    }
    if connection.must_log_in() {
        return refuse("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time".into());
    }
    state.resp3.set(hello.resp3);
    if let Some(name) = hello.name {
        *state.name.borrow_mut() = name.to_vec();
    }
    state.note_special(false);
    connection.answer(Position::default(), 0, |out| {
        write_hello(&mut Reply { out, resp3: hello.resp3 }, state.id);
        Ok(())
    })
}

/// Never run: these are served before a call is made of them.
pub(super) fn login(call: &mut Call<'_>) -> Outcome {
    let name = String::from_utf8_lossy(call.args[0]).into_owned();
    Err(format!("ERR {name} is not allowed in a transaction or a script").into())
}

fn check_name(name: &[u8]) -> Outcome {
    if name.len() > NAME_BYTES_MAX || !name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Err("ERR Client names cannot contain spaces, newlines or special characters.".into());
    }
    Ok(())
}

/// A line about a connection, as `CLIENT LIST` has it.
fn describe(connection: &Connection, state: &State, now_ns: u64) -> String {
    let session = connection.session();
    let user = connection.database().catalog.user_name(session.user.get());
    let flags = if state.subscriptions() > 0 {
        "P"
    } else if state.multi.borrow().is_some() {
        "x"
    } else {
        "N"
    };
    let multi = state.multi.borrow().as_ref().map_or(-1, |multi| multi.queued.len() as i64);
    let seconds = now_ns.saturating_sub(state.begun_ns) / 1_000_000_000;
    format!(
        "id={} addr={} laddr= fd=0 name={} age={seconds} idle=0 flags={flags} db={} sub={} psub={} ssub={} multi={multi} qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl={} oll=0 omem=0 tot-mem=0 events=r cmd={} user={user} redir=-1 resp={}",
        state.id,
        session.peer.as_deref().unwrap_or(""),
        String::from_utf8_lossy(&state.name.borrow()),
        state.db.get(),
        state.channels.borrow().len(),
        state.patterns.borrow().len(),
        state.shard_channels.borrow().len(),
        connection.unsent(),
        state.last.get().map_or("NULL", |spec| spec.name),
        if state.resp3.get() { 3 } else { 2 },
    )
}

/// All connections that are open, in the order in which they came.
fn all(call: &Call<'_>) -> Vec<(Rc<Connection>, Rc<State>)> {
    let connections = call.shared.connections.borrow();
    let open = connections.values().filter_map(Weak::upgrade).filter(|connection| connection.session().is_alive.get());
    open.filter_map(|connection| {
        let state = Rc::clone(connection.state.downcast_ref::<Rc<State>>()?);
        Some((connection, state))
    })
    .collect()
}

/// Errors: the connection is not an administrator's, who alone sees and ends those of others.
fn check_others(call: &Call<'_>) -> Outcome {
    call.database.check_execute_universe(call.context).map_err(|_| {
        "NOPERM this user may look at and end its own connections only: the right to execute the universe is missing".into()
    })
}

pub(super) fn client(call: &mut Call<'_>) -> Outcome {
    let now_ns = call.database.environment().clock.monotonic_ns();
    let own = call.connection.session().user.get();
    if call.is_word(1, "id") && call.args.len() == 2 {
        let id = call.state.id as i64;
        call.reply().integer(id);
    } else if call.is_word(1, "setname") && call.args.len() == 3 {
        check_name(call.args[2])?;
        *call.state.name.borrow_mut() = call.args[2].to_vec();
        call.reply().ok();
    } else if call.is_word(1, "getname") && call.args.len() == 2 {
        let name = call.state.name.borrow().clone();
        if name.is_empty() { call.reply().null() } else { call.reply().bulk(&name) }
    } else if call.is_word(1, "info") && call.args.len() == 2 {
        let text = describe(call.connection, call.state, now_ns);
        call.reply().verbatim(&format!("{text}\n"));
    } else if call.is_word(1, "list") {
        let mut text = String::new();
        let sees_all = check_others(call).is_ok();
        for (connection, state) in all(call) {
            if sees_all || connection.session().user.get() == own {
                text.push_str(&describe(&connection, &state, now_ns));
                text.push('\n');
            }
        }
        call.reply().verbatim(&text);
    } else if call.is_word(1, "reply") && call.args.len() == 3 {
        if call.is_word(2, "on") {
            call.state.is_silent.set(false);
            call.reply().ok();
        } else if call.is_word(2, "off") {
            call.state.is_silent.set(true);
        } else if call.is_word(2, "skip") {
            call.state.skips_after.set(true);
        } else {
            return Err(SYNTAX.into());
        }
    } else if call.is_word(1, "kill") && call.args.len() >= 3 {
        kill(call)?;
    } else if call.is_word(1, "unblock") && matches!(call.args.len(), 3 | 4) {
        let id = call.integer(2)?;
        let is_error = call.is_word(3, "error");
        let found = all(call).into_iter().find(|(_, state)| state.id as i64 == id);
        let is_waiting = match found {
            Some((connection, state))
                if connection.in_flight.get() > 0 && !Rc::ptr_eq(&connection, call.connection) =>
            {
                if connection.session().user.get() != own {
                    check_others(call)?;
                }
                state.unblocked.set(Some(is_error));
                call.shared.wake_waiting();
                true
            }
            _ => false,
        };
        call.reply().integer(i64::from(is_waiting));
    } else if call.is_word(1, "no-evict") || call.is_word(1, "no-touch") || call.is_word(1, "setinfo") {
        call.reply().ok();
    } else if call.is_word(1, "pause") || call.is_word(1, "unpause") {
        return Err("ERR CLIENT PAUSE is not there: a checkpoint or a backup needs no pause here".into());
    } else if call.is_word(1, "getredir") {
        call.reply().integer(-1);
    } else {
        let known = [
            "id", "setname", "getname", "list", "info", "kill", "unblock", "reply", "no-evict", "tracking", "caching", "getredir",
            "pause", "unpause", "setinfo",
        ];
        return Err(super::scripts::unknown_subcommand(call, "client", &known));
    }
    Ok(())
}

fn kill(call: &mut Call<'_>) -> Outcome {
    let own = call.connection.session().user.get();
    let (mut id, mut address, mut user, mut skips_me) = (None, None, None, true);
    let is_old = call.args.len() == 3;
    if is_old {
        address = Some(call.args[2]);
        skips_me = false;
    } else {
        let mut at = 2;
        while at < call.args.len() {
            let value = call.after(at)?;
            if call.is_word(at, "id") {
                id = Some(integer(value).filter(|id| *id > 0).ok_or("ERR client-id should be greater than 0")?);
            } else if call.is_word(at, "addr") {
                address = Some(value);
            } else if call.is_word(at, "user") {
                user = Some(value);
            } else if call.is_word(at, "skipme") {
                skips_me = value.eq_ignore_ascii_case(b"yes");
            } else if !(call.is_word(at, "type") || call.is_word(at, "laddr")) {
                return Err(SYNTAX.into());
            }
            at += 2;
        }
    }
    let mut count = 0;
    for (connection, state) in all(call) {
        let is_own = Rc::ptr_eq(&connection, call.connection);
        let session = connection.session();
        let name = call.database.catalog.user_name(session.user.get());
        let is_meant = id.is_none_or(|id| state.id as i64 == id)
            && address.is_none_or(|address| session.peer.as_deref().is_some_and(|peer| peer.as_bytes() == address))
            && user.is_none_or(|user| name.as_bytes() == user)
            && !(is_own && skips_me);
        if is_meant {
            if session.user.get() != own {
                check_others(call)?;
            }
            connection.end();
            connection.service.mark(&connection);
            count += 1;
        }
    }
    match (is_old, count) {
        (true, 0) => return Err("ERR No such client".into()),
        (true, _) => call.reply().ok(),
        (false, count) => call.reply().integer(count),
    }
    Ok(())
}

/// The connection is gone: nothing of it stays.
pub(super) fn close(shared: &Shared, state: &State) {
    transactions::forget_all(shared, state);
    pubsub::forget_all(shared, state);
    shared.connections.borrow_mut().remove(&state.id);
    state.multi.borrow_mut().take();
    // Who waits for a key looks whether its client is still there.
    shared.wake_waiting();
}
