//! Who a client is: the greeting, its answer, and how it proves its password.

use super::packet::{Message, Reader, put, put_failure};
use super::serve::{Done, put_ok};
use super::{LOGIN_TAG, Phase, Shared, State};
use crate::connection::Connection;
use database::{Database, Error, ErrorCode, GUEST, Result, User};
use runtime::fiber;
use std::any::Any;
use std::rc::Rc;
use tuple::msgpack;
use wal::Position;

/// The one way in which passwords are proved: what is kept of them is what it compares with.
const METHOD: &str = "mysql_native_password";
/// The same in clear, to a server that the client trusts with it.
const CLEAR: &str = "mysql_clear_password";
const CHARSET: u8 = 255;

/// What a client and the server can do.
pub(super) mod abilities {
    pub(crate) const FOUND_ROWS: u32 = 1 << 1;
    pub(crate) const CONNECT_WITH_DB: u32 = 1 << 3;
    pub(crate) const PROTOCOL_41: u32 = 1 << 9;
    pub(crate) const SECURE_CONNECTION: u32 = 1 << 15;
    pub(crate) const MULTI_STATEMENTS: u32 = 1 << 16;
    pub(crate) const PLUGIN_AUTH: u32 = 1 << 19;
    pub(crate) const COUNTED_PROOF: u32 = 1 << 21;
    pub(crate) const DEPRECATE_EOF: u32 = 1 << 24;
    /// Long passwords and flags, spaces behind names of functions, transactions, several results, attributes.
    const OTHERS: u32 = 1 | 1 << 2 | 1 << 8 | 1 << 10 | 1 << 12 | 1 << 13 | 1 << 17 | 1 << 18 | 1 << 20;
    pub(crate) const ALL: u32 = FOUND_ROWS
        | CONNECT_WITH_DB
        | PROTOCOL_41
        | SECURE_CONNECTION
        | MULTI_STATEMENTS
        | PLUGIN_AUTH
        | COUNTED_PROOF
        | DEPRECATE_EOF
        | OTHERS;
}

/// What the server says first.
pub(super) fn put_greeting(out: &mut Vec<u8>, number: u32, salt: &[u8; wire::SCRAMBLE_BYTES]) {
    put(out, &mut 0, |out| {
        out.push(10);
        out.extend_from_slice(concat!("8.0.36-lycosa-", env!("CARGO_PKG_VERSION"), "\0").as_bytes());
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&salt[..8]);
        out.push(0);
        let [a, b, c, d] = abilities::ALL.to_le_bytes();
        out.extend_from_slice(&[a, b, CHARSET, 2, 0, c, d, wire::SCRAMBLE_BYTES as u8 + 1]);
        out.extend_from_slice(&[0; 10]);
        out.extend_from_slice(&salt[8..]);
        out.push(0);
        out.extend_from_slice(METHOD.as_bytes());
        out.push(0);
    });
}

/// Serves a packet of a connection that has not come to commands, and the change of its user.
pub(super) fn serve(
    shared: &Rc<Shared>,
    connection: &Rc<Connection>,
    state: &State,
    message: &Message<'_>,
) -> Result<()> {
    let sequence = message.sequence.wrapping_add(1);
    let body = message.body();
    match state.phase.get() {
        Phase::Startup => begin(shared, connection, state, &body, sequence),
        Phase::Proof => prove(connection, state, &body, sequence),
        Phase::Ready => change_user(shared, connection, state, &body, sequence),
    }
}

/// Tells the client why its connection ends.
fn refuse(connection: &Connection, mut sequence: u8, number: u16, message: &str) -> Result<()> {
    connection.answer(Position::default(), 0, |out| {
        put_failure(out, &mut sequence, number, sql::mysql_state(number), message);
        Ok(())
    })?;
    connection.end();
    Ok(())
}

fn begin(shared: &Rc<Shared>, connection: &Rc<Connection>, state: &State, body: &[u8], sequence: u8) -> Result<()> {
    match read_answer(body) {
        Some(answer) if answer.abilities & abilities::PROTOCOL_41 != 0 => {
            state.abilities.set(answer.abilities);
            state.first.set((connection.session().user.get(), connection.must_log_in()));
            enter_as(shared, connection, state, &answer, sequence)
        }
        _ => refuse(connection, sequence, 1043, "Bad handshake"),
    }
}

/// What a client says of itself.
struct Answer {
    abilities: u32,
    name: String,
    proof: Vec<u8>,
    database: String,
    method: String,
}

fn read_answer(body: &[u8]) -> Option<Answer> {
    let mut reader = Reader(body);
    let known = reader.u32().ok()?;
    reader.bytes(4 + 1 + 23).ok()?;
    let name = std::str::from_utf8(reader.until_zero()).ok()?.to_string();
    let proof = match () {
        () if known & abilities::COUNTED_PROOF != 0 => reader.counted().ok()?.to_vec(),
        () if known & abilities::SECURE_CONNECTION != 0 => {
            let length = reader.u8().ok()?;
            reader.bytes(usize::from(length)).ok()?.to_vec()
        }
        () => reader.until_zero().to_vec(),
    };
    let database = match known & abilities::CONNECT_WITH_DB != 0 {
        true => std::str::from_utf8(reader.until_zero()).ok()?.to_string(),
        false => String::new(),
    };
    let method = match known & abilities::PLUGIN_AUTH != 0 {
        true => String::from_utf8_lossy(reader.until_zero()).into_owned(),
        false => METHOD.to_string(),
    };
    Some(Answer { abilities: known, name, proof, database, method })
}

/// The user of a name who has a password.
fn with_password(database: &Database, name: &str) -> Option<Rc<User>> {
    let user = database.catalog.user_by_name(name)?;
    (user.password_hash.is_some() && user.id != GUEST && user.kind == database::UserKind::User).then_some(user)
}

/// Lets a client in, or asks for its password.
fn enter_as(
    shared: &Rc<Shared>,
    connection: &Rc<Connection>,
    state: &State,
    answer: &Answer,
    mut sequence: u8,
) -> Result<()> {
    if !super::serve::is_name(&answer.database) {
        return refuse(connection, sequence, 1049, "Unknown database: its name is too long, or has control characters");
    }
    *state.session.borrow_mut() = Rc::new(sql::Session::of_mysql(&answer.name, &answer.database, state.number));
    state.name.borrow_mut().clone_from(&answer.name);
    let user = with_password(connection.database(), &answer.name);
    let (first, must_log_in) = state.first.get();
    if !must_log_in && (user.is_none() || shared.user.is_some()) {
        if connection.session().user.get() != first {
            connection.database().set_session_user(connection.session(), first);
        }
        enter(connection, state);
        return connection.answer(Position::default(), 0, |out| {
            put_ok(out, &mut sequence, &Done::default());
            Ok(())
        });
    }
    if answer.method == METHOD || answer.proof.is_empty() && answer.method != CLEAR {
        return log_in(connection, &answer.name, &answer.proof, sequence);
    }
    ask(connection, state, sequence)
}

/// Asks for the proof of a password in the way that is known here.
fn ask(connection: &Connection, state: &State, mut sequence: u8) -> Result<()> {
    state.phase.set(Phase::Proof);
    connection.answer(Position::default(), 0, |out| {
        put(out, &mut sequence, |out| {
            out.push(0xfe);
            out.extend_from_slice(METHOD.as_bytes());
            out.push(0);
            out.extend_from_slice(&state.salt);
            out.push(0);
        });
        Ok(())
    })
}

fn prove(connection: &Rc<Connection>, state: &State, body: &[u8], sequence: u8) -> Result<()> {
    let name = state.name.borrow().clone();
    log_in(connection, &name, body, sequence)
}

fn log_in(connection: &Rc<Connection>, name: &str, proof: &[u8], sequence: u8) -> Result<()> {
    let mut login = Vec::new();
    msgpack::encode_array(&mut login, 2);
    msgpack::encode_str(&mut login, name.as_bytes());
    msgpack::encode_bin(&mut login, proof);
    connection.log_in(LOGIN_TAG | u64::from(sequence), &login).inspect_err(|_| connection.end())
}

fn decode_login(login: &[u8]) -> Option<(String, Vec<u8>)> {
    let mut reader = msgpack::Reader::new(login);
    reader.read_array().ok()?;
    let name = String::from_utf8(reader.read_str().ok()?.to_vec()).ok()?;
    Some((name, reader.read_bin().ok()?.to_vec()))
}

pub(super) fn user_of(login: &[u8]) -> String {
    decode_login(login).map(|login| login.0).unwrap_or_default()
}

/// See [`Door::authenticate`](crate::Door::authenticate).
pub(super) fn authenticate(connection: &Connection, state: &State, login: &[u8]) -> Result<()> {
    let database = connection.database();
    let (name, proof) = decode_login(login).unwrap_or_default();
    match database.authenticate(connection.session(), &name, &proof, &state.salt) {
        Ok(()) => {
            enter(connection, state);
            Ok(())
        }
        Err(error) => {
            connection.end();
            if !error.is(ErrorCode::CredsMismatch) {
                return Err(error);
            }
            let from = connection
                .session()
                .peer
                .as_deref()
                .map_or("localhost", |peer| peer.rsplit_once(':').map_or(peer, |(host, _)| host));
            let using = if proof.is_empty() { "NO" } else { "YES" };
            let mut error = Error::new(ErrorCode::CredsMismatch, &[]);
            error.body_mut().message = format!("Access denied for user '{name}'@'{from}' (using password: {using})");
            Err(error)
        }
    }
}

/// Commands may come.
fn enter(connection: &Connection, state: &State) {
    let database = connection.database();
    state.phase.set(Phase::Ready);
    let session = Rc::clone(&state.session.borrow());
    *session.user.borrow_mut() = database.catalog.user_name(connection.session().user.get());
    sql::Sql::of(database).open_session(connection.session().id, session);
}

/// COM_CHANGE_USER: everything of the session ends, and somebody else may go on.
fn change_user(
    shared: &Rc<Shared>,
    connection: &Rc<Connection>,
    state: &State,
    body: &[u8],
    sequence: u8,
) -> Result<()> {
    let read = || {
        let mut reader = Reader(body.get(1..)?);
        let name = std::str::from_utf8(reader.until_zero()).ok()?.to_string();
        let length = reader.u8().ok()?;
        let proof = reader.bytes(usize::from(length)).ok()?.to_vec();
        let database = std::str::from_utf8(reader.until_zero()).ok()?.to_string();
        Some((name, proof, database))
    };
    let Some((name, proof, database)) = read() else {
        return refuse(connection, sequence, 1047, "Unknown command");
    };
    if let Some(context) = state.context.get()
        && context.is_in_txn()
    {
        let (connection, context) = (Rc::clone(connection), Rc::clone(context));
        // What a transaction calls back may wait.
        fiber::run_now(<super::Mysql as crate::door::Door>::NAME, move || {
            fiber::set_local(Rc::clone(&context) as Rc<dyn Any>);
            connection.database().abandon(&context);
        });
    }
    super::serve::forget(state);
    state.phase.set(Phase::Startup);
    // The proof that comes with it may be made in any way: it is asked for again.
    let method = if proof.is_empty() { METHOD } else { "" };
    let answer = Answer { abilities: state.abilities.get(), name, proof, database, method: method.to_string() };
    enter_as(shared, connection, state, &answer, sequence)
}
