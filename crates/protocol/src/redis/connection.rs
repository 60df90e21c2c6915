//! What is about the connection itself: logging in, the protocol's version, names, `CLIENT`.

use super::call::Call;
use super::dispatch::write_failure;
use super::failure::{Failure, Outcome, SYNTAX};
use super::keys::{database_number, make_database};
use super::refusals::Refusal;
use super::reply::Reply;
use super::resp::integer;
use super::shared::Shared;
use super::state::State;
use super::table::Spec;
use super::{allowed, attention, events, pubsub, tracking, transactions};
use crate::connection::Connection;
use database::{Error, ErrorCode, Result};
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
    tracking::forget(call.shared, state.id);
    attention::forget(call.shared, state.id);
    events::look_again(call.shared, call.database);
    state.db.set(0);
    state.resp3.set(false);
    state.name.borrow_mut().clear();
    state.is_silent.set(false);
    call.connection.log_out(&state.terms)?;
    state.is_stranger.set(state.terms.asks_login);
    allowed::attach(call.shared, call.connection, state);
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
pub(super) fn authenticate(shared: &Shared, connection: &Connection, state: &State, login: &[u8]) -> Result<()> {
    let mut reader = tuple::msgpack::Reader::new(login);
    let read = reader.read_array().and_then(|_| reader.read_str()).and_then(|_| reader.read_str());
    let user = user_of(login);
    let database = connection.database();
    database.authenticate_plainly(connection.session(), &user, read.unwrap_or_default()).map_err(|error| {
        let is_hello = state.last.get().is_some_and(|spec| spec.name == "hello");
        let command: &[u8] = if is_hello { b"HELLO" } else { b"AUTH" };
        let refusal = Refusal::new("auth", allowed::Place::Top.name(), command, &user);
        allowed::note(shared, connection, state, refusal);
        // Who may open no sessions is told no more than who does not know the password.
        match error.code() == ErrorCode::AccessDenied as u32 {
            true => Error::new(ErrorCode::CredsMismatch, &[]),
            false => error,
        }
    })?;
    if reader.read_bool() == Ok(true) {
        state.resp3.set(true);
    }
    if let Ok(name) = reader.read_str() {
        *state.name.borrow_mut() = name.to_vec();
    }
    state.is_stranger.set(false);
    allowed::attach(shared, connection, state);
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

/// Whom a login means. Clients call `default` whom they are not told a name of: that is the listener's user, unless there is one of that name.
fn meant<'a>(connection: &Connection, state: &'a State, user: &'a [u8]) -> &'a [u8] {
    match &state.terms.user {
        Some(own) if user == b"default" && connection.database().catalog.user_by_name("default").is_none() => {
            own.as_bytes()
        }
        _ => user,
    }
}

/// Serves `AUTH` and `HELLO`: their answers may come later, and the rest of the input waits for them.
pub(super) fn log_in(
    connection: &Rc<Connection>,
    shared: &Shared,
    state: &Rc<State>,
    spec: &'static Spec,
    args: &[&[u8]],
) -> Result<()> {
    let refuse = |failure: Failure| {
        shared.stats.fail(spec, args);
        connection.answer(Position::default(), 0, |out| {
            let start = out.len() + 1;
            write_failure(out, &failure);
            shared.stats.count_error(out.get(start..).unwrap_or_default());
            Ok(())
        })
    };
    if let Some(multi) = state.multi.borrow_mut().as_mut() {
        multi.is_broken = true;
        return refuse(format!("ERR Command not allowed inside a transaction: {}", spec.name).into());
    }
    if spec.name == "auth" {
        let (user, password): (&[u8], &[u8]) = match args {
            [_, password] => (state.terms.user.as_deref().unwrap_or_default().as_bytes(), password),
            [_, user, password] => (user, password),
            _ => return refuse(SYNTAX.into()),
        };
        if user.is_empty() {
            return refuse("ERR AUTH <password> called without any password configured for the default user. Give the name of a user, too: AUTH <username> <password>".into());
        }
        return connection.log_in(0, &encode_login(meant(connection, state, user), password, false, None));
    }
    let hello = match read_hello(args, state.resp3.get()) {
        Ok(hello) => hello,
        Err(failure) => return refuse(failure),
    };
    if let Some((user, password)) = hello.login {
        let tag = BY_HELLO | if hello.resp3 { IN_RESP3 } else { 0 } | state.id << 2;
        return connection
            .log_in(tag, &encode_login(meant(connection, state, user), password, hello.resp3, hello.name));
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
pub(super) fn describe(shared: &Shared, connection: &Connection, state: &State, now_ns: u64) -> String {
    let session = connection.session();
    let user = connection.database().catalog.user_name(session.user.get());
    let tracked = shared.tracking.borrow().of_client(state.id);
    let mut flags = String::new();
    let known = [
        (shared.stats.monitors.borrow().contains_key(&state.id), "O"),
        (state.subscriptions() + state.shard_channels.borrow().len() > 0, "P"),
        (state.multi.borrow().is_some(), "x"),
        (state.is_dirty.get(), "d"),
    ];
    known.iter().filter(|(is_set, _)| *is_set).for_each(|(_, letter)| flags.push_str(letter));
    flags.push_str(tracked.map_or("", |(letters, _)| letters));
    if flags.is_empty() {
        flags.push('N');
    }
    let redirect = tracked.map_or(-1, |(_, redirect)| redirect);
    let mut command = state.last.get().map_or("NULL", |spec| spec.name).to_string();
    if command == "client" {
        command.push_str(&format!("|{}", String::from_utf8_lossy(&state.last_word.borrow())));
    }
    let asked = state.last_bytes.get().max(connection.input.borrow().len());
    let multi_bytes = state.multi.borrow().as_ref().map_or(0, |multi| multi.bytes);
    let multi = state.multi.borrow().as_ref().map_or(-1, |multi| multi.queued.len() as i64);
    let seconds = now_ns.saturating_sub(state.begun_ns) / 1_000_000_000;
    format!(
        "id={} addr={} laddr=:0 fd=0 name={} age={seconds} idle=0 flags={flags} db={} sub={} psub={} ssub={} multi={multi} qbuf={asked} qbuf-free=0 argv-mem=0 multi-mem={multi_bytes} rbs=0 rbp=0 obl={} oll=0 omem=0 tot-mem=0 events=r cmd={} user={user} redir={redirect} resp={}",
        state.id,
        session.peer.as_deref().unwrap_or(""),
        String::from_utf8_lossy(&state.name.borrow()),
        state.db.get(),
        state.channels.borrow().len(),
        state.patterns.borrow().len(),
        state.shard_channels.borrow().len(),
        connection.unsent(),
        command,
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
pub(super) fn check_others(call: &Call<'_>) -> Outcome {
    call.database.check_execute_universe(call.context).map_err(|_| {
        "NOPERM this user may look at and end its own connections only: the right to execute the universe is missing".into()
    })
}

pub(super) fn client(call: &mut Call<'_>) -> Outcome {
    let now_ns = call.database.environment().clock.monotonic_ns();
    let own = call.connection.session().user.get();
    *call.state.last_word.borrow_mut() = call.args[1][..call.args[1].len().min(16)].to_ascii_lowercase();
    let parts = call.args.iter().map(|part| part.len() + part.len().to_string().len() + 5);
    call.state.last_bytes.set(parts.sum::<usize>() + call.args.len().to_string().len() + 3);
    let done = run_client(call, now_ns, own);
    call.state.last_bytes.set(0);
    done
}

fn run_client(call: &mut Call<'_>, now_ns: u64, own: database::UserId) -> Outcome {
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
        let text = describe(call.shared, call.connection, call.state, now_ns);
        call.reply().verbatim(&format!("{text}\n"));
    } else if call.is_word(1, "list") {
        list(call, now_ns)?;
    } else if call.is_word(1, "reply") && call.args.len() == 3 {
        if call.is_word(2, "on") {
            call.state.is_silent.set(false);
            call.state.skips_next.set(false);
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
    } else if call.is_word(1, "no-evict") && call.args.len() == 3 {
        if !call.is_word(2, "on") && !call.is_word(2, "off") {
            return Err(SYNTAX.into());
        }
        call.reply().ok();
    } else if call.is_word(1, "pause") && matches!(call.args.len(), 3 | 4)
        || call.is_word(1, "unpause") && call.args.len() == 2
    {
        attention::pause(call)?;
    } else if call.is_word(1, "help") && call.args.len() == 2 {
        super::scripts::help(call, HELP);
    } else if call.is_word(1, "tracking") && call.args.len() >= 3 {
        tracking::tracking(call)?;
    } else if call.is_word(1, "caching") && call.args.len() == 3 {
        tracking::caching(call)?;
    } else if call.is_word(1, "trackinginfo") && call.args.len() == 2 {
        tracking::info(call)?;
    } else if call.is_word(1, "getredir") && call.args.len() == 2 {
        tracking::getredir(call)?;
    } else {
        let known = [
            "id",
            "setname",
            "getname",
            "list",
            "info",
            "kill",
            "unblock",
            "reply",
            "no-evict",
            "tracking",
            "caching",
            "getredir",
            "pause",
            "unpause",
            "trackinginfo",
            "help",
        ];
        return Err(super::scripts::unknown_subcommand(call, "client", &known));
    }
    Ok(())
}

const HELP: &[&str] = &[
    "CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CACHING (YES|NO)",
    "    Says whether the next command's keys are tracked.",
    "GETNAME",
    "    Returns the name of the connection.",
    "GETREDIR",
    "    Returns who is told in the place of this connection.",
    "ID",
    "    Returns the number of the connection.",
    "INFO",
    "    Describes the connection.",
    "KILL <ip:port> | (ID <id>|TYPE <type>|USER <name>|ADDR <ip:port>|LADDR <ip:port>|SKIPME (YES|NO)) ...",
    "    Ends connections.",
    "LIST [TYPE <type>] [ID <id> ...]",
    "    Describes connections.",
    "NO-EVICT (ON|OFF)",
    "    Is taken and changes nothing: connections are bounded otherwise.",
    "PAUSE <milliseconds> [WRITE|ALL]",
    "    Has commands wait.",
    "REPLY (ON|OFF|SKIP)",
    "    Says whether answers are wanted.",
    "SETNAME <name>",
    "    Names the connection.",
    "TRACKING (ON|OFF) [REDIRECT <id>] [BCAST] [PREFIX <prefix> ...] [OPTIN] [OPTOUT] [NOLOOP]",
    "    Has changes of keys told.",
    "TRACKINGINFO",
    "    Tells how changes of keys are told.",
    "UNBLOCK <id> [TIMEOUT|ERROR]",
    "    Ends the waiting of another connection.",
    "UNPAUSE",
    "    Ends a pause.",
    "HELP",
    "    Prints this help.",
];

/// What a type of clients is called. Errors: there is none of this name.
fn check_type(name: &[u8]) -> Outcome<String> {
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    match name.as_str() {
        "normal" | "pubsub" | "master" | "replica" => Ok(name),
        "slave" => Ok("replica".to_string()),
        _ => Err(format!("ERR Unknown client type '{name}'").into()),
    }
}

fn is_of_type(state: &State, name: &str) -> bool {
    match name {
        "pubsub" => state.subscriptions() + state.shard_channels.borrow().len() > 0,
        "normal" => state.subscriptions() + state.shard_channels.borrow().len() == 0,
        _ => false,
    }
}

fn list(call: &mut Call<'_>, now_ns: u64) -> Outcome {
    let own = call.connection.session().user.get();
    let (mut wanted_type, mut ids) = (None, None);
    match call.args.len() {
        2 => {}
        4 if call.is_word(2, "type") => wanted_type = Some(check_type(call.args[3])?),
        4.. if call.is_word(2, "id") => {
            let read = |text: &&[u8]| integer(text).filter(|id| *id > 0).ok_or(Failure::from("ERR Invalid client ID"));
            ids = Some(call.args[3..].iter().map(read).collect::<Outcome<Vec<i64>>>()?);
        }
        _ => return Err(SYNTAX.into()),
    }
    let sees_all = check_others(call).is_ok();
    let mut text = String::new();
    for (connection, state) in all(call) {
        let is_meant = wanted_type.as_ref().is_none_or(|name| is_of_type(&state, name))
            && ids.as_ref().is_none_or(|ids| ids.contains(&(state.id as i64)));
        if is_meant && (sees_all || connection.session().user.get() == own) {
            text.push_str(&describe(call.shared, &connection, &state, now_ns));
            text.push('\n');
        }
    }
    call.reply().verbatim(&text);
    Ok(())
}

fn kill(call: &mut Call<'_>) -> Outcome {
    let own = call.connection.session().user.get();
    let (mut id, mut address, mut local, mut user, mut kind, mut skips_me) = (None, None, None, None, None, true);
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
            } else if call.is_word(at, "laddr") {
                local = Some(value);
            } else if call.is_word(at, "user") {
                let name = String::from_utf8_lossy(value).into_owned();
                let is_known = name == "default" || call.database.catalog.users().iter().any(|user| user.name == name);
                if !is_known {
                    return Err(format!("ERR No such user '{name}'").into());
                }
                user = Some(name);
            } else if call.is_word(at, "type") {
                kind = Some(check_type(value)?);
            } else if call.is_word(at, "skipme") && value.eq_ignore_ascii_case(b"yes") {
                skips_me = true;
            } else if call.is_word(at, "skipme") && value.eq_ignore_ascii_case(b"no") {
                skips_me = false;
            } else {
                return Err(SYNTAX.into());
            }
            at += 2;
        }
    }
    let mut meant = all(call);
    meant.retain(|(connection, state)| {
        let session = connection.session();
        // Where a connection has come in is not kept: nobody is at a local address.
        id.is_none_or(|id| state.id as i64 == id)
            && address.is_none_or(|address| session.peer.as_deref().is_some_and(|peer| peer.as_bytes() == address))
            && local.is_none()
            && user.as_ref().is_none_or(|user| call.database.catalog.user_name(session.user.get()) == *user)
            && kind.as_ref().is_none_or(|kind| is_of_type(state, kind))
            && !(skips_me && Rc::ptr_eq(connection, call.connection))
    });
    // All or none.
    if meant.iter().any(|(connection, _)| connection.session().user.get() != own) {
        check_others(call)?;
    }
    for (connection, state) in &meant {
        if Rc::ptr_eq(connection, call.connection) {
            connection.end();
            connection.service.mark(connection);
        } else {
            end(call.shared, connection, state);
        }
    }
    call.shared.wake_waiting();
    let count = meant.len() as i64;
    match (is_old, count) {
        (true, 0) => return Err("ERR No such client".into()),
        (true, _) => call.reply().ok(),
        (false, count) => call.reply().integer(count),
    }
    Ok(())
}

/// Ends another connection than the one that asks for it: behind its answers, and if it waits for a key or the end of a pause, at once. Who waits for keys
/// has to be woken.
pub(super) fn end(shared: &Shared, connection: &Rc<Connection>, state: &State) {
    connection.end();
    state.has_left.set(true);
    attention::wake(shared, state.id);
    connection.service.mark(connection);
}

/// The connection is gone: nothing of it stays.
pub(super) fn close(shared: &Shared, state: &State) {
    transactions::forget_all(shared, state);
    pubsub::forget_all(shared, state);
    tracking::forget(shared, state.id);
    attention::forget(shared, state.id);
    shared.connections.borrow_mut().remove(&state.id);
    state.multi.borrow_mut().take();
    // Who waits for a key looks whether its client is still there.
    shared.wake_waiting();
}
