//! MySQL's protocol, 4.1 and later, over the statements of the crate `sql`.
//!
//! ```text
//! packet.rs    bytes -> commands, and how packets are written
//! startup.rs   who it is: the greeting, proofs of passwords, change of the user
//! serve.rs     commands, in a fiber: texts of statements and their rows
//! load.rs      LOAD DATA LOCAL
//! packed.rs    compression
//! prepared.rs  prepared statements, their parameters, cursors
//! session.rs   statements about the session: transactions, variables
//! values.rs    values as text and in binary
//! ```
//!
//! Invariants:
//! * A connection has one transaction context, which outlives its commands; while no command is served, the transaction waits.
//! * A statement that fails leaves the transaction open and nothing of its own behind.

mod load;
mod packed;
mod packet;
mod prepared;
mod probe;
mod serve;
mod session;
mod startup;
mod values;

pub use packet::Message;
pub use probe::read_bytes;

use crate::connection::Connection;
use crate::door::{AnyDoor, Door, Opening, Protocol, Split};
use crate::listeners::TLS_PARAMETER;
use crate::packing::Packing;
use crate::setup::set_up;
use crate::terms::Terms;
use database::{Context, Database, Error, ErrorCode, Result, SessionKind};
use hashbrown::HashMap;
use packet::{Found, put_failure};
use runtime::fiber::FiberId;
use sql::Modes;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};

/// The user that clients act as who need not say who they are.
const OWN_NAME: &str = "mysql";
/// What a listener may say.
const PARAMETERS: &[&str] = &[TLS_PARAMETER];

/// Marks in the tags of answers: a login; one whose proof by SHA-256 is confirmed first. Their last byte is the number of the packet.
const LOGIN_TAG: u64 = 1 << 63;
const SHA2_TAG: u64 = 1 << 62;

/// The door of a listener.
pub struct Mysql(Rc<Shared>);

/// What its connections share.
struct Shared {
    /// Whom connections act as that are not asked.
    user: Option<String>,
    /// Clients may ask for TLS.
    has_tls: bool,
    /// By the number that they are killed by.
    connections: RefCell<HashMap<u32, Weak<Connection>>>,
    next: Cell<u32>,
}

/// How far a connection is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The answer to the greeting has not come.
    Startup,
    /// The proof of a password is waited for.
    Proof,
    /// Commands are served.
    Ready,
}

/// What is kept with each connection.
pub struct State {
    phase: Cell<Phase>,
    number: u32,
    salt: [u8; wire::SCRAMBLE_BYTES],
    /// What the client can do.
    abilities: Cell<u32>,
    /// What follows the login is packed, in both directions.
    packs: Cell<bool>,
    /// Who it says it is.
    name: RefCell<String>,
    /// What it was asked to prove its password by.
    asked: Cell<startup::Proof>,
    /// Whom it acted as before it has said anything, and whether the listener asks for a login.
    first: Cell<(u32, bool)>,
    session: RefCell<Rc<sql::Session>>,
    context: OnceCell<Rc<Context>>,
    prepared: RefCell<prepared::Statements>,
    /// A file of the client's comes in.
    load: RefCell<Option<load::LoadIn>>,
    /// Each statement is a transaction of its own where none was opened.
    commits_alone: Cell<bool>,
    /// What the next transaction is to be.
    next_modes: Cell<Modes>,
    /// The open one may not write.
    is_read_only: Cell<bool>,
    /// Serves commands now.
    fiber: Cell<Option<FiberId>>,
    is_closed: Cell<bool>,
}

/// The line of the table of doors.
pub(crate) fn protocol() -> Protocol {
    Protocol {
        name: Mysql::NAME,
        clients: "any client of MySQL",
        has_logins: true,
        open: Box::new(|database, terms| Ok(Rc::new(Mysql::open(database, terms)?) as Rc<dyn AnyDoor>)),
    }
}

impl Mysql {
    fn open(database: &Rc<Database>, terms: &Terms) -> Result<Self> {
        terms.check(Mysql::NAME, PARAMETERS)?;
        set_up(database, include_str!("setup.lua"), &[OWN_NAME])?;
        Ok(Mysql(Rc::new(Shared {
            user: terms.user.clone(),
            has_tls: terms.has_tls,
            connections: RefCell::default(),
            next: Cell::new(1),
        })))
    }
}

/// The state of a connection of this door.
fn state_of(connection: &Connection) -> Option<&State> {
    connection.state.downcast_ref()
}

impl Door for Mysql {
    type Request<'a> = Message<'a>;
    type State = State;
    const NAME: &'static str = "mysql";
    const IS_ORDERED: bool = true;
    const SESSION: SessionKind = SessionKind::Door("mysql");
    const OWN_USER: Option<&'static str> = Some(OWN_NAME);

    const ASKS_FOR_TLS: bool = true;

    fn opening(first: &[u8]) -> Opening {
        startup::opening(first)
    }

    fn encode_unsealed(&self, out: &mut Vec<u8>) {
        let message = "Connections using insecure transport are prohibited while --require_secure_transport=ON.";
        put_failure(out, &mut 2, 3159, sql::mysql_state(3159), message);
    }

    fn greet(&self, database: &Database, out: &mut Vec<u8>) -> State {
        let number = self.0.next.get();
        self.0.next.set(number.wrapping_add(1).max(1));
        let mut salt = [0; wire::SCRAMBLE_BYTES];
        database.environment().randomness.fill(&mut salt);
        // Clients take it for text.
        salt.iter_mut().for_each(|byte| *byte = *byte % 86 + 40);
        startup::put_greeting(out, number, &salt, self.0.has_tls);
        State {
            phase: Cell::new(Phase::Startup),
            number,
            salt,
            abilities: Cell::new(0),
            packs: Cell::new(false),
            name: RefCell::default(),
            asked: Cell::default(),
            first: Cell::default(),
            session: RefCell::new(Rc::new(sql::Session::of_mysql("", "", number))),
            context: OnceCell::new(),
            prepared: RefCell::default(),
            load: RefCell::default(),
            commits_alone: Cell::new(true),
            next_modes: Cell::default(),
            is_read_only: Cell::new(false),
            fiber: Cell::new(None),
            is_closed: Cell::new(false),
        }
    }

    fn opened(&self, connection: &Rc<Connection>, state: &State) {
        self.0.connections.borrow_mut().insert(state.number, Rc::downgrade(connection));
    }

    #[inline]
    fn split<'a>(&self, state: &State, input: &'a [u8]) -> Split<Message<'a>> {
        let is_ready = state.phase.get() == Phase::Ready;
        match packet::split(input, if is_ready { packet::PACKET_MAX } else { packet::LOGIN_MAX }) {
            Found::Whole(message, _) if is_ready && message.sequence != 0 && state.load.borrow().is_none() => {
                Split::Refused { error: Error::illegal("Got packets out of order"), length: None }
            }
            // What follows the packets of a login is told when they are served.
            // Whether what follows is more of a file, too.
            Found::Whole(message, length) if state.load.borrow().is_some() => Split::Last(message, length),
            Found::Whole(message, length) if !is_ready || message.kind() == serve::commands::CHANGE_USER => {
                Split::Last(message, length)
            }
            Found::Whole(message, length) => Split::Request(message, length),
            Found::Part(announced) => Split::Incomplete { announced },
            Found::Bad(why) => Split::Refused { error: Error::illegal(why), length: None },
        }
    }

    fn packing(&self, state: &State) -> Option<Box<dyn Packing>> {
        state.packs.get().then(|| Box::new(packed::Packed::default()) as Box<dyn Packing>)
    }

    fn serve_together(&self, connection: &Rc<Connection>, state: &State, messages: &[Message<'_>]) -> usize {
        if state.phase.get() != Phase::Ready {
            return 0;
        }
        let is_change = |message: &Message<'_>| message.kind() == serve::commands::CHANGE_USER;
        let change = match state.load.borrow().is_some() {
            true => None,
            false => messages.iter().position(is_change),
        };
        let count = change.unwrap_or(messages.len());
        if count > 0 {
            serve::serve(&self.0, connection, &messages[..count]);
        }
        count
    }

    fn serve(&self, connection: &Rc<Connection>, state: &State, message: &Message<'_>) -> Result<()> {
        startup::serve(&self.0, connection, state, message)
    }

    fn tag(message: &Message<'_>) -> u64 {
        u64::from(message.sequence.wrapping_add(1))
    }

    fn describe(message: &Message<'_>) -> String {
        let body = message.body();
        let text: String = String::from_utf8_lossy(&body[1.min(body.len())..body.len().min(60)]).into_owned();
        let shown: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        format!("command {} '{}'", message.kind(), shown.trim())
    }

    fn encode_failure(&self, _database: &Database, out: &mut Vec<u8>, tag: u64, error: &Error) {
        let message = error.message();
        let number = match () {
            () if error.is(ErrorCode::CredsMismatch) => 1045,
            () if error.is(ErrorCode::AccessDenied) => 1142,
            () if message.starts_with("Got a packet bigger") => 1153,
            () if error.is(ErrorCode::IllegalParams) => 1156,
            () if error.is(ErrorCode::MemoryIssue) || error.is(ErrorCode::Unsupported) => 1040,
            () => 1105,
        };
        let mut sequence = if tag == 0 { 1 } else { tag as u8 };
        put_failure(out, &mut sequence, number, sql::mysql_state(number), message);
    }

    fn encode_push(&self, _database: &Database, out: &mut Vec<u8>, _tag: u64, value: &[u8]) -> Result<()> {
        out.extend_from_slice(value);
        Ok(())
    }

    fn close(&self, connection: &Rc<Connection>, state: &State) {
        serve::close(&self.0, connection, state);
    }

    fn hung_up(&self, _connection: &Rc<Connection>, state: &State) {
        // Nobody waits for what a statement that waits for others would say.
        if let Some(fiber) = state.fiber.get() {
            runtime::fiber::cancel(fiber);
        }
    }

    fn authenticate(&self, connection: &Connection, state: &State, login: &[u8]) -> Result<()> {
        startup::authenticate(connection, state, login)
    }

    fn user_of(login: &[u8]) -> String {
        startup::user_of(login)
    }

    fn encode_welcome(&self, _database: &Database, out: &mut Vec<u8>, tag: u64) {
        startup::put_welcome(out, tag);
    }
}
