//! Who a client is: the greeting, its answer, and how it proves its password.

use super::packet::{Message, Reader, put, put_failure};
use super::serve::{Done, put_ok};
use super::{LOGIN_TAG, Phase, SHA2_TAG, Shared, State};
use crate::connection::Connection;
use crate::door::Opening;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use database::{ADMIN, Database, Error, ErrorCode, GUEST, Result, User};
use runtime::fiber;
use std::any::Any;
use std::rc::Rc;
use storage::Key;
use tuple::{IndexId, msgpack};
use wal::Position;

/// The ways in which passwords are proved: by what every user's row has, and by what is kept beside it.
const METHOD: &str = "mysql_native_password";
const SHA2_METHOD: &str = "caching_sha2_password";
/// The same in clear, to a server that the client trusts with it.
const CLEAR: &str = "mysql_clear_password";
/// The space of what SHA2_METHOD compares with: number of the user, hash of the password, digest.
const DIGESTS: &str = "_sha2";
/// What SHA2_METHOD says behind a proof that it has confirmed, and to ask for the password itself.
const CONFIRMED: [u8; 2] = [1, 3];
const ASKS_PASSWORD: [u8; 2] = [1, 4];
const CHARSET: u8 = 255;

/// What a client and the server can do.
pub(super) mod abilities {
    pub(crate) const FOUND_ROWS: u32 = 1 << 1;
    pub(crate) const CONNECT_WITH_DB: u32 = 1 << 3;
    pub(crate) const COMPRESSION: u32 = 1 << 5;
    pub(crate) const LOCAL_FILES: u32 = 1 << 7;
    pub(crate) const PROTOCOL_41: u32 = 1 << 9;
    /// The client asks for TLS: where the listener has a certificate.
    pub(crate) const TLS: u32 = 1 << 11;
    pub(crate) const SECURE_CONNECTION: u32 = 1 << 15;
    pub(crate) const MULTI_STATEMENTS: u32 = 1 << 16;
    pub(crate) const PLUGIN_AUTH: u32 = 1 << 19;
    pub(crate) const COUNTED_PROOF: u32 = 1 << 21;
    pub(crate) const DEPRECATE_EOF: u32 = 1 << 24;
    /// Long passwords and flags, spaces behind names of functions, transactions, several results, attributes.
    const OTHERS: u32 = 1 | 1 << 2 | 1 << 8 | 1 << 10 | 1 << 12 | 1 << 13 | 1 << 17 | 1 << 18 | 1 << 20;
    pub(crate) const ALL: u32 = FOUND_ROWS
        | CONNECT_WITH_DB
        | COMPRESSION
        | LOCAL_FILES
        | PROTOCOL_41
        | SECURE_CONNECTION
        | MULTI_STATEMENTS
        | PLUGIN_AUTH
        | COUNTED_PROOF
        | DEPRECATE_EOF
        | OTHERS;
}

/// What the server says first.
pub(super) fn put_greeting(out: &mut Vec<u8>, number: u32, salt: &[u8; wire::SCRAMBLE_BYTES], has_tls: bool) {
    put(out, &mut 0, |out| {
        out.push(10);
        out.extend_from_slice(concat!("8.0.36-lycosa-", env!("CARGO_PKG_VERSION"), "\0").as_bytes());
        out.extend_from_slice(&number.to_le_bytes());
        out.extend_from_slice(&salt[..8]);
        out.push(0);
        let [a, b, c, d] = (abilities::ALL | if has_tls { abilities::TLS } else { 0 }).to_le_bytes();
        out.extend_from_slice(&[a, b, CHARSET, 2, 0, c, d, wire::SCRAMBLE_BYTES as u8 + 1]);
        out.extend_from_slice(&[0; 10]);
        out.extend_from_slice(&salt[8..]);
        out.push(0);
        // Clients that do not know it say so, and are asked to switch.
        out.extend_from_slice(SHA2_METHOD.as_bytes());
        out.push(0);
    });
}

/// What a client answers the greeting with, at a listener with a certificate: the beginning of its answer alone asks for TLS.
pub(super) fn opening(first: &[u8]) -> Opening {
    const HEAD_BYTES: usize = 4;
    const REQUEST_BYTES: usize = 4 + 4 + 1 + 23;
    let Some(&[length, 0, 0, 1, a, b, c, d]) = first.first_chunk::<8>() else {
        return if first.len() < 8 { Opening::Unknown(8) } else { Opening::Plain };
    };
    let known = u32::from_le_bytes([a, b, c, d]);
    if usize::from(length) != REQUEST_BYTES || known & abilities::TLS == 0 {
        return Opening::Plain;
    }
    if first.len() < HEAD_BYTES + REQUEST_BYTES {
        Opening::Unknown(HEAD_BYTES + REQUEST_BYTES)
    } else {
        Opening::Tls(b"")
    }
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
    /// It comes on a connection that had a user: a proof that comes with it is asked for again.
    is_change: bool,
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
    // One zero stands for no password.
    let proof = if method == SHA2_METHOD && proof == [0] { Vec::new() } else { proof };
    Some(Answer { abilities: known, name, proof, database, method, is_change: false })
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
        // Who knows none of the ways (MariaDB's clients say `dummy_fallback_auth`) waits to be asked, and would take a welcome for that.
        if !["", METHOD, SHA2_METHOD, CLEAR].contains(&answer.method.as_str()) {
            return ask(connection, state, Proof::Nothing, sequence);
        }
        enter(connection, state);
        let confirms = answer.method == SHA2_METHOD && answer.proof.len() == wire::SHA2_BYTES;
        let tag = LOGIN_TAG | u64::from(sequence) | if confirms { SHA2_TAG } else { 0 };
        return connection.answer(Position::default(), 0, |out| {
            put_welcome(out, tag);
            Ok(())
        });
    }
    match answer.method.as_str() {
        METHOD => log_in(connection, Proof::Native, &answer.name, &answer.proof, sequence),
        SHA2_METHOD if answer.proof.is_empty() && !answer.is_change => {
            log_in(connection, Proof::Sha2, &answer.name, &[], sequence)
        }
        SHA2_METHOD => {
            let database = connection.database();
            match user.as_ref().map(|user| kept_digest(database, user)) {
                // Of nobody, too: who there is is told to no one.
                Some(Some(_)) | None if answer.is_change => ask(connection, state, Proof::Sha2, sequence),
                Some(Some(_)) | None => log_in(connection, Proof::Sha2, &answer.name, &answer.proof, sequence),
                // A password from before: over a wire that nobody reads, it may come itself.
                Some(None) if is_veiled(connection) && !answer.is_change => {
                    state.asked.set(Proof::Password);
                    state.phase.set(Phase::Proof);
                    connection.answer(Position::default(), 0, |out| {
                        put(out, &mut sequence, |out| out.extend_from_slice(&ASKS_PASSWORD));
                        Ok(())
                    })
                }
                Some(None) => ask(connection, state, Proof::Native, sequence),
            }
        }
        method if answer.proof.is_empty() && method != CLEAR && !answer.is_change => {
            log_in(connection, Proof::Native, &answer.name, &[], sequence)
        }
        _ => ask(connection, state, Proof::Native, sequence),
    }
}

/// What shows that somebody knows a password.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Proof {
    #[default]
    Native,
    Sha2,
    /// The password itself.
    Password,
    /// Anything: nobody has to log in.
    Nothing,
}

/// True if clients send a password as it is: by TLS, or through a socket of this machine. Over TCP they do not, wherever the server is.
fn is_veiled(connection: &Connection) -> bool {
    let peer = connection.session().peer.as_deref();
    connection.outlet.is_sealed() || peer.is_some_and(|peer| peer.starts_with("unix/:"))
}

/// What SHA2_METHOD compares with. None: there is none, or it is that of a password from before.
fn kept_digest(database: &Database, user: &User) -> Option<[u8; wire::SHA2_BYTES]> {
    let space = database.catalog.space_by_name(DIGESTS).filter(|space| space.owner() == ADMIN)?;
    let mut parts = Vec::new();
    msgpack::encode_uint(&mut parts, u64::from(user.id));
    let key = Key { parts: &parts, part_count: 1 };
    let row = database.get(&database.admin_context(), &space, IndexId::PRIMARY, key).ok()??;
    let bytes = |field: u32| STANDARD.decode(msgpack::Reader::new(row.field(field)?).read_str().ok()?).ok();
    (bytes(1)? == user.password_hash?).then(|| bytes(2)?.try_into().ok()).flatten()
}

/// Asks for the proof of a password in one of the ways that are known here.
fn ask(connection: &Connection, state: &State, proof: Proof, mut sequence: u8) -> Result<()> {
    state.asked.set(proof);
    state.phase.set(Phase::Proof);
    let method = if proof == Proof::Sha2 { SHA2_METHOD } else { METHOD };
    connection.answer(Position::default(), 0, |out| {
        put(out, &mut sequence, |out| {
            out.push(0xfe);
            out.extend_from_slice(method.as_bytes());
            out.push(0);
            out.extend_from_slice(&state.salt);
            out.push(0);
        });
        Ok(())
    })
}

fn prove(connection: &Rc<Connection>, state: &State, body: &[u8], sequence: u8) -> Result<()> {
    let name = state.name.borrow().clone();
    let asked = state.asked.get();
    if asked == Proof::Nothing {
        enter(connection, state);
        return connection.answer(Position::default(), 0, |out| {
            put_welcome(out, LOGIN_TAG | u64::from(sequence));
            Ok(())
        });
    }
    if asked == Proof::Password {
        // The zero behind it is not part of it.
        let password = body.strip_suffix(&[0]).unwrap_or(body);
        return log_in(connection, asked, &name, password, sequence);
    }
    log_in(connection, asked, &name, body, sequence)
}

fn log_in(connection: &Rc<Connection>, proof: Proof, name: &str, bytes: &[u8], sequence: u8) -> Result<()> {
    let mut login = Vec::new();
    msgpack::encode_array(&mut login, 3);
    msgpack::encode_str(&mut login, name.as_bytes());
    msgpack::encode_uint(&mut login, proof as u64);
    msgpack::encode_bin(&mut login, bytes);
    let confirms = if proof == Proof::Sha2 { SHA2_TAG } else { 0 };
    connection.log_in(LOGIN_TAG | confirms | u64::from(sequence), &login).inspect_err(|_| connection.end())
}

fn decode_login(login: &[u8]) -> Option<(String, Proof, Vec<u8>)> {
    let mut reader = msgpack::Reader::new(login);
    reader.read_array().ok()?;
    let name = String::from_utf8(reader.read_str().ok()?.to_vec()).ok()?;
    let proof = match reader.read_uint().ok()? {
        1 => Proof::Sha2,
        2 => Proof::Password,
        _ => Proof::Native,
    };
    Some((name, proof, reader.read_bin().ok()?.to_vec()))
}

/// Lets a client in.
pub(super) fn put_welcome(out: &mut Vec<u8>, tag: u64) {
    let mut sequence = tag as u8;
    if tag & SHA2_TAG != 0 {
        put(out, &mut sequence, |out| out.extend_from_slice(&CONFIRMED));
    }
    put_ok(out, &mut sequence, &Done::default());
}

/// Looks at a proof; if it is right the session is that of the user.
fn check(connection: &Connection, state: &State, name: &str, proof: Proof, bytes: &[u8]) -> Result<()> {
    let database = connection.database();
    match proof {
        Proof::Native | Proof::Nothing => database.authenticate(connection.session(), name, bytes, &state.salt),
        Proof::Password => database.authenticate_plainly(connection.session(), name, bytes),
        Proof::Sha2 => {
            database::increment(&database.statistics.auths);
            let user = with_password(database, name);
            // As much is done for nobody.
            let digest = user.as_ref().and_then(|user| kept_digest(database, user));
            let is_known = digest.is_some();
            let digest = digest.unwrap_or_default();
            let is_right = bytes.try_into().is_ok_and(|proof| wire::is_sha2_proof(proof, &digest, &state.salt));
            match user {
                Some(user) if is_known && is_right => database.log_in(connection.session(), user.id),
                _ => Err(Error::new(ErrorCode::CredsMismatch, &[])),
            }
        }
    }
}

pub(super) fn user_of(login: &[u8]) -> String {
    decode_login(login).map(|login| login.0).unwrap_or_default()
}

/// See [`Door::authenticate`](crate::Door::authenticate).
pub(super) fn authenticate(connection: &Connection, state: &State, login: &[u8]) -> Result<()> {
    let (name, proof, bytes) = decode_login(login).unwrap_or_default();
    match check(connection, state, &name, proof, &bytes) {
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
            let using = if bytes.is_empty() { "NO" } else { "YES" };
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
    state.packs.set(state.abilities.get() & abilities::COMPRESSION != 0);
    let session = Rc::clone(&state.session.borrow());
    *session.seal.borrow_mut() = connection.seal();
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
        // The character set, then the way of the proof.
        let _ = reader.u16();
        let method = String::from_utf8_lossy(reader.until_zero()).into_owned();
        let proof = if method == SHA2_METHOD && proof == [0] { Vec::new() } else { proof };
        Some((name, proof, database, method))
    };
    let Some((name, proof, database, method)) = read() else {
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
    let known = state.abilities.get();
    // The proof that comes with it may be made in any way, or be left out: it is asked for again.
    let method = if method == SHA2_METHOD { method } else { String::new() };
    let answer = Answer { abilities: known, name, proof, database, method, is_change: true };
    enter_as(shared, connection, state, &answer, sequence)
}
