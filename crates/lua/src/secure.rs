//! The C functions under sockets with TLS: sealed bytes go in and out, the module `socket` carries them.

use crate::registry::registry;
use crate::state::{Function, Raise, State};
use hashbrown::HashMap;
use mlua_sys as ffi;
use runtime::net::Endpoint;
use runtime::tls::{Acceptor, Connector, Parameters, Pipe, Session};
use std::ffi::c_int;
use std::io::ErrorKind;

type Outcome = Result<c_int, Raise>;

/// Plain bytes that one call gives.
const READ_BYTES_MAX: usize = 1 << 20;

/// Who one is, on either side.
enum Settings {
    Server(Acceptor),
    Client(Connector),
}

/// What Lua holds, by numbers.
#[derive(Default)]
pub(crate) struct SecureSockets {
    next: u64,
    settings: HashMap<u64, Settings>,
    sessions: HashMap<u64, (Session, Pipe)>,
}

impl SecureSockets {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

fn key(state: State) -> Result<u64, Raise> {
    Ok(state.check_number(1, "number of a TLS object")? as u64)
}

/// Does something with a session and its bytes.
fn with_session<T>(state: State, work: impl FnOnce(&mut Session, &mut Pipe) -> T) -> Result<T, Raise> {
    let key = key(state)?;
    let mut sockets = registry().secure.borrow_mut();
    let (session, pipe) = sockets.sessions.get_mut(&key).ok_or("attempt to use closed socket")?;
    Ok(work(session, pipe))
}

/// What the parameters of an address say about TLS: text behind `?`, and a table of names and values.
fn parameters(state: State) -> Result<Option<Parameters>, Raise> {
    let query = state.string(2).unwrap_or_default();
    let wrong = |error: std::io::Error| Raise::Message(error.to_string());
    let mut given = Endpoint::parse(&format!("?{query}")).map_err(wrong)?.parameters;
    if state.kind(3) == ffi::LUA_TTABLE {
        state.push_nil();
        while state.next(3) {
            let (name, value) = (state.string(-2), state.string(-1));
            let (Some(name), Some(value)) = (name, value) else {
                return Err("parameters of an address should be strings by their names".into());
            };
            given.push((name, value));
            state.pop(1);
        }
    }
    Parameters::of(given.iter().map(|(name, value)| (name.as_str(), value.as_str()))).map_err(wrong)
}

/// secure_settings(is_server, query or nil, {name = value} or nil) -> number; nil if TLS is not asked for. Raises what is wrong with files.
fn secure_settings(state: State) -> Outcome {
    let Some(parameters) = parameters(state)? else {
        state.push_nil();
        return Ok(1);
    };
    let settings = match state.boolean(1) {
        true => parameters.acceptor().map(Settings::Server),
        false => parameters.connector().map(Settings::Client),
    };
    let settings = settings.map_err(|error| Raise::Message(error.to_string()))?;
    let mut sockets = registry().secure.borrow_mut();
    let key = sockets.number();
    sockets.settings.insert(key, settings);
    state.push_number(key as f64);
    Ok(1)
}

/// secure_web_settings(ca_file or nil, cert_file or nil, key_file or nil, verifies_host, verifies_peer) -> number. Raises what is wrong with files.
fn secure_web_settings(state: State) -> Outcome {
    let own = state.string(2).zip(state.string(3));
    let parameters = Parameters::for_web(state.string(1), own, state.boolean(4), state.boolean(5));
    let connector = parameters.connector().map_err(|error| Raise::Message(error.to_string()))?;
    let mut sockets = registry().secure.borrow_mut();
    let key = sockets.number();
    sockets.settings.insert(key, Settings::Client(connector));
    state.push_number(key as f64);
    Ok(1)
}

/// secure_forget(number): settings or a session that nobody uses any more
fn secure_forget(state: State) -> Outcome {
    let key = key(state)?;
    let mut sockets = registry().secure.borrow_mut();
    sockets.settings.remove(&key);
    sockets.sessions.remove(&key);
    Ok(0)
}

/// secure_open(settings, host) -> number of a session
fn secure_open(state: State) -> Outcome {
    let key = key(state)?;
    let host = state.string(2).unwrap_or_default();
    let mut sockets = registry().secure.borrow_mut();
    let session = match sockets.settings.get(&key) {
        Some(Settings::Server(acceptor)) => Session::accept(acceptor),
        Some(Settings::Client(connector)) => Session::connect(connector, &host),
        None => return Err("there are no such TLS settings".into()),
    };
    let session = session.map_err(|error| Raise::Message(error.to_string()))?;
    let key = sockets.number();
    sockets.sessions.insert(key, (session, Pipe::default()));
    state.push_number(key as f64);
    Ok(1)
}

/// secure_come(session, text): sealed bytes have come; an empty text is the end
fn secure_come(state: State) -> Outcome {
    let bytes = state.bytes(2).unwrap_or_default();
    with_session(state, |_, pipe| match bytes.is_empty() {
        true => pipe.is_ended = true,
        false => pipe.come.extend(bytes),
    })?;
    Ok(0)
}

/// Pushes nil and what is wrong, or nothing but nil if more must come.
fn refused(state: State, error: &std::io::Error) -> Outcome {
    state.push_nil();
    match error.kind() {
        ErrorKind::WouldBlock => return Ok(1),
        ErrorKind::UnexpectedEof => state.push_str("Peer closed"),
        _ => state.push_str(&error.to_string()),
    }
    Ok(2)
}

/// secure_shake(session) -> true when the handshake is done, false if more must come; nil and why it has failed
fn secure_shake(state: State) -> Outcome {
    match with_session(state, |session, pipe| session.shake_hands(pipe))? {
        Ok(is_done) => {
            state.push_bool(is_done);
            Ok(1)
        }
        Err(error) => refused(state, &error),
    }
}

/// secure_read(session, bytes) -> plain bytes, an empty text at the end; nil if more must come; nil and what is wrong
fn secure_read(state: State) -> Outcome {
    let size = state.number(2).unwrap_or(0.0).max(0.0) as usize;
    let mut buffer = vec![0; size.min(READ_BYTES_MAX)];
    match with_session(state, |session, pipe| session.read(pipe, &mut buffer))? {
        Ok(count) => {
            state.push_bytes(&buffer[..count]);
            Ok(1)
        }
        Err(error) => refused(state, &error),
    }
}

/// secure_write(session, text): seals plain bytes
fn secure_write(state: State) -> Outcome {
    let bytes = state.bytes(2).unwrap_or_default();
    match with_session(state, |session, pipe| session.write(pipe, bytes))? {
        Ok(written) if written.accepted == bytes.len() => Ok(0),
        Ok(_) => Err("the connection is over".into()),
        Err(error) => Err(Raise::Message(error.to_string())),
    }
}

/// secure_sealed(session) -> sealed bytes to be sent, or nil
fn secure_sealed(state: State) -> Outcome {
    let sealed = with_session(state, |_, pipe| std::mem::take(&mut pipe.to_send))?;
    match sealed.is_empty() {
        true => state.push_nil(),
        false => state.push_bytes(&sealed),
    }
    Ok(1)
}

/// secure_end(session): nothing more is written
fn secure_end(state: State) -> Outcome {
    with_session(state, |session, pipe| session.say_goodbye(pipe))?;
    Ok(0)
}

/// Functions of `box.internal` for sockets with TLS.
pub(crate) const FUNCTIONS: &[(&str, Function)] = &[
    ("secure_settings", secure_settings),
    ("secure_web_settings", secure_web_settings),
    ("secure_forget", secure_forget),
    ("secure_open", secure_open),
    ("secure_come", secure_come),
    ("secure_shake", secure_shake),
    ("secure_read", secure_read),
    ("secure_write", secure_write),
    ("secure_sealed", secure_sealed),
    ("secure_end", secure_end),
];
