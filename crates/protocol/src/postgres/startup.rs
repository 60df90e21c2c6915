//! Who a client is: its first message, and what it says of its password.

use super::message::{
    CANCEL, GSS, Message, PROTOCOL_3, Reader, Report, TLS, put, put_parameter, put_ready, put_text, put_u32,
};
use super::{LOGIN_TAG, Phase, Shared, State, put_key, state_of};
use crate::connection::Connection;
use crate::door::Opening;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use database::{ADMIN, Database, Error, ErrorCode, GUEST, Result, User};
use runtime::fiber;
use std::rc::Rc;
use storage::Key;
use tuple::{IndexId, msgpack};
use wal::Position;
use wire::Verifier;

/// The space of verifiers: number of the user, hash of the password, verifier.
const VERIFIERS: &str = "_scram";
/// Bytes of the server's part of a nonce.
const NONCE_BYTES: usize = 18;

/// A login that is under way.
#[derive(Default)]
pub(super) struct Login {
    user: String,
    /// The client's first message without its header, and the answer to it.
    first: String,
    challenge: String,
    /// The password itself is waited for.
    is_plain: bool,
}

/// What a session has that was not said otherwise, as clients are told it.
const PARAMETERS: &[(&str, &str)] = &[
    ("server_version", "15.8"),
    ("server_encoding", "UTF8"),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, MDY"),
    ("TimeZone", "UTC"),
    ("IntervalStyle", "postgres"),
    ("integer_datetimes", "on"),
    ("standard_conforming_strings", "on"),
    ("is_superuser", "off"),
    ("default_transaction_read_only", "off"),
    ("in_hot_standby", "off"),
];

/// Serves a message of a connection that has not come to statements.
pub(super) fn serve(
    shared: &Rc<Shared>,
    connection: &Rc<Connection>,
    state: &State,
    message: &Message<'_>,
) -> Result<()> {
    match (state.phase.get(), message.kind) {
        (Phase::Startup, _) => begin(shared, connection, state, message.body),
        (Phase::Login, b'p') => answer_password(shared, connection, state, message.body),
        (Phase::Login, b'X') => {
            connection.end();
            Ok(())
        }
        _ => refuse(connection, "08P01", "expected password response"),
    }
}

/// Tells the client why its connection ends.
fn refuse(connection: &Connection, state: &str, message: &str) -> Result<()> {
    connection.answer(Position::default(), 0, |out| {
        Report { severity: "FATAL", state, message, detail: None, hint: None, names: &[] }.put(out, b'E');
        Ok(())
    })?;
    connection.end();
    Ok(())
}

/// What a client begins with, at a listener with a certificate.
pub(super) fn opening(first: &[u8]) -> Opening {
    if !first.is_empty() && runtime::tls::is_hello(&[first[0], 3]) {
        return if first.len() < 2 { Opening::Unknown(2) } else { Opening::Hello };
    }
    let mut reader = Reader(first);
    match (reader.u32(), reader.u32()) {
        (Ok(8), Ok(TLS)) => Opening::Tls(b"S"),
        (Ok(8), Ok(GSS)) => Opening::Declined(b"N"),
        // Clients cancel in clear: it proves itself by its secret, and is of no use to whoever has read it.
        (Ok(16), Ok(CANCEL)) => Opening::Exempt,
        (Ok(_), Ok(_)) => Opening::Plain,
        _ => Opening::Unknown(8),
    }
}

fn begin(shared: &Rc<Shared>, connection: &Rc<Connection>, state: &State, body: &[u8]) -> Result<()> {
    let mut reader = Reader(body);
    let code = reader.u32().unwrap_or_default();
    match code {
        // At a listener with a certificate it is asked for before, and not twice.
        TLS | GSS => connection.answer(Position::default(), 0, |out| {
            out.push(b'N');
            Ok(())
        }),
        CANCEL => {
            if let (Ok(number), Ok(secret)) = (reader.u32(), reader.u32()) {
                cancel(shared, number, secret);
            }
            connection.end();
            Ok(())
        }
        code if code >> 16 == PROTOCOL_3 >> 16 => {
            let (mut user, mut name, mut settings, mut unknown) = (String::new(), None, Vec::new(), Vec::new());
            loop {
                let Ok(key) = reader.text() else {
                    return refuse(
                        connection,
                        "08P01",
                        "invalid startup packet layout: expected terminator as last byte",
                    );
                };
                if key.is_empty() {
                    break;
                }
                let Ok(value) = reader.text() else {
                    return refuse(
                        connection,
                        "08P01",
                        "invalid startup packet layout: expected terminator as last byte",
                    );
                };
                match key {
                    "user" => user = value.to_string(),
                    "database" => name = Some(value.to_string()),
                    "options" => settings.extend(options_of(value)),
                    "replication" if !matches!(value, "0" | "false" | "off" | "no") => {
                        return refuse(connection, "0A000", "replication is not supported");
                    }
                    "replication" => {}
                    key if key.starts_with("_pq_.") => unknown.push(key.to_string()),
                    key => settings.push((key.to_string(), value.to_string())),
                }
            }
            if user.is_empty() {
                return refuse(connection, "28000", "no PostgreSQL user name specified in startup packet");
            }
            if code & 0xffff > 0 || !unknown.is_empty() {
                connection.answer(Position::default(), 0, |out| {
                    put(out, b'v', |out| {
                        put_u32(out, PROTOCOL_3);
                        put_u32(out, unknown.len() as u32);
                        unknown.iter().for_each(|name| put_text(out, name));
                    });
                    Ok(())
                })?;
            }
            let session = sql::Session::new(&user, name.as_deref().unwrap_or(&user), state.number);
            for (name, value) in settings {
                if let Err(error) = session.set(&name, Some(&value), false) {
                    return refuse(connection, error.condition().sqlstate(), &error.to_string());
                }
            }
            *state.session.borrow_mut() = Rc::new(session);
            ask(shared, connection, state, user)
        }
        _ => {
            let (major, minor) = (code >> 16, code & 0xffff);
            let what = format!("unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.0");
            refuse(connection, "0A000", &what)
        }
    }
}

/// Settings of the `options` of a connection: `-c name=value` and `--name=value`.
fn options_of(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        let setting = match (word.strip_prefix("-c"), word.strip_prefix("--")) {
            (Some(""), _) => words.next().unwrap_or_default(),
            (Some(rest), _) => rest,
            (None, Some(rest)) => rest,
            _ => continue,
        };
        if let Some((name, value)) = setting.split_once('=') {
            found.push((name.replace('-', "_"), value.replace('\\', "")));
        }
    }
    found
}

fn cancel(shared: &Shared, number: u32, secret: u32) {
    let connection = shared.connections.borrow().get(&number).and_then(std::rc::Weak::upgrade);
    let Some(connection) = connection else { return };
    let Some(state) = state_of(&connection).filter(|state| state.secret == secret) else { return };
    if let Some(fiber) = state.fiber.get() {
        fiber::cancel(fiber);
    }
}

/// The user of a name who has a password.
fn with_password(database: &Database, name: &str) -> Option<Rc<User>> {
    let user = database.catalog.user_by_name(name)?;
    (user.password_hash.is_some() && user.id != GUEST && user.kind == database::UserKind::User).then_some(user)
}

/// Asks for a password, if one is needed.
fn ask(shared: &Rc<Shared>, connection: &Rc<Connection>, state: &State, name: String) -> Result<()> {
    let database = connection.database();
    let user = with_password(database, &name);
    let is_trusted = !connection.must_log_in() && (user.is_none() || shared.user.is_some());
    if is_trusted {
        let number = (u64::from(state.number) << 32) | u64::from(state.secret);
        enter(shared, connection, state)?;
        return connection.answer(Position::default(), 0, |out| {
            put_welcome(
                out,
                (number >> 32) as u32,
                state.secret,
                Some(&state.session.borrow()),
                &application_of(state),
            );
            Ok(())
        });
    }
    let is_plain = user.is_some_and(|user| kept_verifier(database, &user).is_none());
    if is_plain && !connection.is_private() {
        let what = format!(
            "user \"{name}\" has no SCRAM verifier: set the password again, or connect by TLS or from the same machine"
        );
        return refuse(connection, "28000", &what);
    }
    *state.login.borrow_mut() = Login { user: name, is_plain, ..Login::default() };
    state.phase.set(Phase::Login);
    connection.answer(Position::default(), 0, |out| {
        put(out, b'R', |out| match is_plain {
            true => put_u32(out, 3),
            false => {
                put_u32(out, 10);
                put_text(out, "SCRAM-SHA-256");
                out.push(0);
            }
        });
        Ok(())
    })
}

/// Ends what a session does, or the session itself: `pg_cancel_backend`, `pg_terminate_backend`.
fn stop(connection: &Rc<Connection>, ends: bool) {
    if let Some(fiber) = state_of(connection).and_then(|state| state.fiber.get()) {
        fiber::cancel(fiber);
    }
    if ends {
        let _ = refuse(connection, "57P01", "terminating connection due to administrator command");
        connection.service.mark(connection);
    }
}

/// Statements may come.
fn enter(shared: &Shared, connection: &Connection, state: &State) -> Result<()> {
    let database = connection.database();
    state.phase.set(Phase::Ready);
    let session = Rc::clone(&state.session.borrow());
    *session.user.borrow_mut() = database.catalog.user_name(connection.session().user.get());
    state.isolation.set(session.isolation());
    *state.told.borrow_mut() = super::session::Told::of(&session);
    let known = shared.connections.borrow().get(&state.number).cloned();
    *session.stop.borrow_mut() = Some(Box::new(move |ends| {
        if let Some(connection) = known.as_ref().and_then(std::rc::Weak::upgrade) {
            stop(&connection, ends);
        }
    }));
    sql::Sql::of(database).open_session(connection.session().id, session);
    Ok(())
}

fn answer_password(shared: &Rc<Shared>, connection: &Rc<Connection>, state: &State, body: &[u8]) -> Result<()> {
    let bad = |what: &str| refuse(connection, "08P01", what);
    let mut login = state.login.borrow_mut();
    let tag = LOGIN_TAG | (u64::from(state.number) << 32) | u64::from(state.secret);
    if login.is_plain {
        let Ok(password) = Reader(body).text() else { return bad("invalid password message") };
        let encoded = encode_login(&[&login.user, password]);
        drop(login);
        return connection.log_in(tag, &encoded);
    }
    if login.challenge.is_empty() {
        let mut reader = Reader(body);
        let (Ok(mechanism), Ok(_length)) = (reader.text(), reader.u32()) else {
            return bad("invalid SASL response");
        };
        if mechanism != "SCRAM-SHA-256" {
            return bad("client selected an invalid SASL authentication mechanism");
        }
        let Ok(text) = std::str::from_utf8(reader.0) else { return bad("malformed SCRAM message") };
        let first = text.strip_prefix("n,,").or_else(|| text.strip_prefix("y,,"));
        let nonce = first.and_then(|first| first.split(',').find_map(|part| part.strip_prefix("r=")));
        let (Some(first), Some(nonce)) = (first, nonce.filter(|nonce| !nonce.is_empty())) else {
            return bad("malformed SCRAM message");
        };
        let mut more = [0; NONCE_BYTES];
        connection.database().environment().randomness.fill(&mut more);
        let verifier = verifier_of(shared, connection.database(), &login.user);
        login.challenge = verifier.challenge(nonce, &STANDARD.encode(more));
        login.first = first.to_string();
        return connection.answer(Position::default(), 0, |out| {
            put(out, b'R', |out| {
                put_u32(out, 11);
                out.extend_from_slice(login.challenge.as_bytes());
            });
            Ok(())
        });
    }
    let Ok(last) = std::str::from_utf8(body) else { return bad("malformed SCRAM message") };
    let encoded = encode_login(&[&login.user, &login.first, &login.challenge, last]);
    drop(login);
    connection.log_in(tag, &encoded)
}

/// The verifier of a user's password. None: there is none, or it is that of a password from before.
fn kept_verifier(database: &Database, user: &User) -> Option<Verifier> {
    let space = database.catalog.space_by_name(VERIFIERS).filter(|space| space.owner() == ADMIN)?;
    let mut parts = Vec::new();
    msgpack::encode_uint(&mut parts, u64::from(user.id));
    let key = Key { parts: &parts, part_count: 1 };
    let row = database.get(&database.admin_context(), &space, IndexId::PRIMARY, key).ok()??;
    let text = |field: u32| {
        let bytes = msgpack::Reader::new(row.field(field)?).read_str().ok()?.to_vec();
        String::from_utf8(bytes).ok()
    };
    let hash = STANDARD.encode(user.password_hash?);
    (text(1)? == hash).then(|| Verifier::parse(&text(2)?)).flatten()
}

fn verifier_of(shared: &Shared, database: &Database, name: &str) -> Verifier {
    let user = with_password(database, name);
    match user.and_then(|user| kept_verifier(database, &user)) {
        Some(verifier) => verifier,
        None => Verifier::of_nobody(name, &shared.secret),
    }
}

/// A login as the event loop keeps it while it waits.
fn encode_login(parts: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    msgpack::encode_array(&mut out, parts.len() as u32);
    parts.iter().for_each(|part| msgpack::encode_str(&mut out, part.as_bytes()));
    out
}

fn decode_login(login: &[u8]) -> Option<Vec<String>> {
    let mut reader = msgpack::Reader::new(login);
    let count = reader.read_array().ok()?;
    let part = |reader: &mut msgpack::Reader<'_>| String::from_utf8(reader.read_str().ok()?.to_vec()).ok();
    (0..count).map(|_| part(&mut reader)).collect()
}

pub(super) fn user_of(login: &[u8]) -> String {
    decode_login(login).and_then(|parts| parts.into_iter().next()).unwrap_or_default()
}

/// See [`Door::authenticate`](crate::Door::authenticate).
pub(super) fn authenticate(shared: &Rc<Shared>, connection: &Connection, state: &State, login: &[u8]) -> Result<()> {
    let database = connection.database();
    let checked = check(shared, connection, database, login);
    match checked {
        Ok(()) => enter(shared, connection, state),
        Err(error) => {
            connection.end();
            let name = user_of(login);
            Err(match error.is(ErrorCode::CredsMismatch) {
                true => {
                    let mut error = Error::new(ErrorCode::CredsMismatch, &[]);
                    error.body_mut().message = format!("password authentication failed for user \"{name}\"");
                    error
                }
                false => error,
            })
        }
    }
}

fn check(shared: &Rc<Shared>, connection: &Connection, database: &Rc<Database>, login: &[u8]) -> Result<()> {
    let mismatch = || Error::new(ErrorCode::CredsMismatch, &[]);
    let parts = decode_login(login).ok_or_else(mismatch)?;
    let [user, first, challenge, last] = parts.as_slice() else {
        let [user, password] = parts.as_slice() else { return Err(mismatch()) };
        return database.authenticate_plainly(connection.session(), user, password.as_bytes());
    };
    database::increment(&database.statistics.auths);
    let proof = verifier_of(shared, database, user).check(first, challenge, last);
    let (Some(proof), Some(found)) = (proof, with_password(database, user)) else { return Err(mismatch()) };
    database.log_in(connection.session(), found.id)?;
    connection.answer(Position::default(), 0, |out| {
        put(out, b'R', |out| {
            put_u32(out, 12);
            out.extend_from_slice(proof.as_bytes());
        });
        Ok(())
    })
}

/// What a client calls itself.
pub(super) fn application_of(state: &State) -> String {
    state.session.borrow().get("application_name").unwrap_or_default()
}

/// Lets a client in: what it should know, and that statements may come.
pub(super) fn put_welcome(
    out: &mut Vec<u8>,
    number: u32,
    secret: u32,
    session: Option<&sql::Session>,
    application: &str,
) {
    put(out, b'R', |out| put_u32(out, 0));
    for (name, value) in PARAMETERS {
        // What the client has chosen.
        let zone = session.filter(|_| *name == "TimeZone").and_then(|session| session.get(name));
        put_parameter(out, name, zone.as_deref().unwrap_or(value));
    }
    put_parameter(out, "application_name", application);
    put_key(out, number, secret);
    put_ready(out, b'I');
}
