//! PostgreSQL's protocol, version 3, over the statements of the crate `sql`.
//!
//! ```text
//! message.rs    bytes -> Message, and how messages are written
//! startup.rs    who it is: the first message, SCRAM-SHA-256, cancelling
//! serve.rs      messages of statements, in a fiber: the simple protocol, transactions around messages
//! extended.rs   the extended protocol
//! rows.rs       columns and rows of an answer
//! session.rs    statements about the session: transactions, settings, notifications
//! cursors.rs    DECLARE, FETCH, MOVE, CLOSE
//! copy.rs       COPY from the client and to it
//! formats.rs    values as text and in binary
//! ```
//!
//! Invariants:
//! * A connection has one transaction context, which outlives its messages; while no message is served, the transaction waits.
//! * What a client is told of a commit waits for the log; what it is told inside of a READ COMMITTED transaction does not.

mod copy;
mod cursors;
mod extended;
mod formats;
mod message;
mod parameters;
mod probe;
mod rows;
mod serve;
mod session;
mod startup;

pub use message::Message;
pub use probe::read_bytes;

use crate::connection::Connection;
use crate::door::{AnyDoor, Door, Opening, Protocol, Split};
use crate::listeners::TLS_PARAMETER;
use crate::setup::set_up;
use crate::terms::Terms;
use database::{Context, Database, Error, ErrorCode, Result, SessionKind};
use hashbrown::{HashMap, HashSet};
use message::{Found, Report, put, put_ready, put_u32};
use runtime::fiber::FiberId;
use sql::{Isolation, Prepared, Type};
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};

/// The user that clients act as who need not say who they are.
const OWN_NAME: &str = "postgres";
/// What a listener may say.
const PARAMETERS: &[&str] = &[TLS_PARAMETER];
/// Prepared statements of a connection.
pub(crate) const STATEMENTS_MAX: usize = 10_000;
/// Bytes of the texts of prepared statements of a connection, those that are longer than [`SHORT_TEXT_BYTES`].
pub(crate) const TEXT_BYTES_MAX: usize = 64 << 20;
/// Texts that are not counted: as many as there may be take little.
const SHORT_TEXT_BYTES: usize = 4096;
/// Portals of a connection.
pub(crate) const PORTALS_MAX: usize = 1000;
/// Channels that a connection listens to.
pub(crate) const CHANNELS_MAX: usize = 1000;

/// Marks in the tags of answers: a login; one that ends with `ReadyForQuery`.
const LOGIN_TAG: u64 = 1 << 63;
const READY_TAG: u64 = 1;

/// The door of a listener.
pub struct Postgres(Rc<Shared>);

/// What its connections share.
struct Shared {
    /// Whom connections act as that are not asked.
    user: Option<String>,
    /// By the number that a client cancels by.
    connections: RefCell<HashMap<u32, Weak<Connection>>>,
    next: Cell<u32>,
    /// What is said to those who claim to be nobody is made of it.
    secret: [u8; 32],
    /// Bytes of rows that are kept until their COPY ends.
    kept_bytes: Cell<usize>,
    /// Who listens to a channel.
    listeners: RefCell<HashMap<String, HashSet<u32>>>,
}

/// How far a connection is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Its first message has not come.
    Startup,
    /// A password is waited for.
    Login,
    /// Statements are served.
    Ready,
}

/// What is kept with each connection.
pub struct State {
    phase: Cell<Phase>,
    number: u32,
    secret: u32,
    login: RefCell<startup::Login>,
    session: RefCell<Rc<sql::Session>>,
    told: RefCell<session::Told>,
    context: OnceCell<Rc<Context>>,
    statements: RefCell<HashMap<String, Rc<Statement>>>,
    portals: RefCell<HashMap<String, Portal>>,
    cursors: RefCell<HashMap<String, cursors::Cursor>>,
    /// Messages are passed over up to the next Sync: one has failed.
    skips: Cell<bool>,
    /// Somebody has ended the session: nothing more is said.
    is_terminated: Cell<bool>,
    /// The transaction has failed; its end is waited for.
    has_failed: Cell<bool>,
    /// The transaction was opened for messages up to a Sync, which ends it.
    is_implicit: Cell<bool>,
    /// Savepoints were set in it.
    has_savepoints: Cell<bool>,
    /// It may not write.
    is_read_only: Cell<bool>,
    /// The open transaction has run a statement.
    is_used: Cell<bool>,
    isolation: Cell<Isolation>,
    copy: RefCell<Option<copy::CopyIn>>,
    /// Channels, as far as its transactions are committed.
    channels: RefCell<HashSet<String>>,
    /// What the open transaction sends when it is committed.
    notices: RefCell<Vec<(String, String)>>,
    /// When it was last left alone in a transaction, and whether a fiber looks how long that lasts.
    idle_since_ns: Cell<u64>,
    is_idleness_watched: Cell<bool>,
    /// Serves messages now.
    fiber: Cell<Option<FiberId>>,
    is_closed: Cell<bool>,
}

/// A prepared statement.
struct Statement {
    /// None: its text is empty.
    prepared: Option<Rc<Prepared>>,
    /// Types of parameters, as the client has given them; 0: it has not.
    oids: Vec<u32>,
    types: Vec<Type>,
}

/// A statement with parameters.
struct Portal {
    statement: Rc<Statement>,
    params: Vec<sql::Value>,
    /// Of each column, whether it is binary; one for all, or none.
    formats: Vec<bool>,
    /// Rows that were found and not asked for yet, as messages, and how many were handed out.
    rest: Option<extended::Rest>,
    is_done: bool,
}

/// The line of the table of doors.
pub(crate) fn protocol() -> Protocol {
    Protocol {
        name: Postgres::NAME,
        clients: "any client of PostgreSQL",
        has_logins: true,
        open: Box::new(|database, terms| Ok(Rc::new(Postgres::open(database, terms)?) as Rc<dyn AnyDoor>)),
    }
}

impl Postgres {
    fn open(database: &Rc<Database>, terms: &Terms) -> Result<Self> {
        terms.check(Postgres::NAME, PARAMETERS)?;
        set_up(database, include_str!("setup.lua"), &[OWN_NAME])?;
        let mut secret = [0; 32];
        database.environment().randomness.fill(&mut secret);
        Ok(Postgres(Rc::new(Shared {
            user: terms.user.clone(),
            connections: RefCell::default(),
            next: Cell::new(1),
            secret,
            kept_bytes: Cell::new(0),
            listeners: RefCell::default(),
        })))
    }
}

/// The state of a connection of this door.
fn state_of(connection: &Connection) -> Option<&State> {
    connection.state.downcast_ref()
}

impl Door for Postgres {
    type Request<'a> = Message<'a>;
    type State = State;
    const NAME: &'static str = "postgres";
    const IS_ORDERED: bool = true;
    const SESSION: SessionKind = SessionKind::Door("postgres");
    const OWN_USER: Option<&'static str> = Some(OWN_NAME);

    const ASKS_FOR_TLS: bool = true;
    /// `sslnegotiation=direct` wants it.
    const NAME_IN_TLS: Option<&'static str> = Some("postgresql");

    fn opening(first: &[u8]) -> Opening {
        startup::opening(first)
    }

    fn encode_unsealed(&self, out: &mut Vec<u8>) {
        let message = "connection requires encryption: this listener takes connections by TLS only";
        let hint = Some("Connect with sslmode=require.");
        Report { severity: "FATAL", state: "28000", message, detail: None, hint, names: &[] }.put(out, b'E');
    }

    fn greet(&self, database: &Database, _out: &mut Vec<u8>) -> State {
        let number = self.0.next.get();
        self.0.next.set(number.wrapping_add(1).max(1));
        let mut secret = [0; 4];
        database.environment().randomness.fill(&mut secret);
        State {
            phase: Cell::new(Phase::Startup),
            number,
            secret: u32::from_be_bytes(secret),
            login: RefCell::default(),
            session: RefCell::new(Rc::new(sql::Session::new("", "", number))),
            told: RefCell::default(),
            context: OnceCell::new(),
            statements: RefCell::default(),
            portals: RefCell::default(),
            cursors: RefCell::default(),
            skips: Cell::new(false),
            is_terminated: Cell::new(false),
            has_failed: Cell::new(false),
            is_implicit: Cell::new(false),
            has_savepoints: Cell::new(false),
            is_read_only: Cell::new(false),
            is_used: Cell::new(false),
            isolation: Cell::new(Isolation::ReadCommitted),
            copy: RefCell::default(),
            channels: RefCell::default(),
            notices: RefCell::default(),
            idle_since_ns: Cell::new(0),
            is_idleness_watched: Cell::new(false),
            fiber: Cell::new(None),
            is_closed: Cell::new(false),
        }
    }

    fn opened(&self, connection: &Rc<Connection>, state: &State) {
        self.0.connections.borrow_mut().insert(state.number, Rc::downgrade(connection));
    }

    #[inline]
    fn split<'a>(&self, state: &State, input: &'a [u8]) -> Split<Message<'a>> {
        let is_first = state.phase.get() == Phase::Startup;
        let longest = if state.phase.get() == Phase::Ready { message::MESSAGE_MAX } else { message::STARTUP_MAX };
        match message::split(input, is_first, longest) {
            // What follows the messages of a login is told when they are served.
            Found::Whole(message, length) if state.phase.get() != Phase::Ready => Split::Last(message, length),
            Found::Whole(message, length) => Split::Request(message, length),
            Found::Part(announced) => Split::Incomplete { announced },
            Found::Bad(why) => Split::Refused { error: Error::illegal(why), length: None },
        }
    }

    fn serve_together(&self, connection: &Rc<Connection>, state: &State, messages: &[Message<'_>]) -> usize {
        if state.phase.get() != Phase::Ready {
            return 0;
        }
        serve::serve(&self.0, connection, messages);
        messages.len()
    }

    fn serve(&self, connection: &Rc<Connection>, state: &State, message: &Message<'_>) -> Result<()> {
        startup::serve(&self.0, connection, state, message)
    }

    fn tag(_message: &Message<'_>) -> u64 {
        0
    }

    fn describe(message: &Message<'_>) -> String {
        let text: String = String::from_utf8_lossy(&message.body[..message.body.len().min(60)]).into_owned();
        let shown: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        format!("message {} '{}'", char::from(message.kind.max(b'0')), shown.trim())
    }

    fn encode_failure(&self, _database: &Database, out: &mut Vec<u8>, tag: u64, error: &Error) {
        let state = match () {
            () if error.is(ErrorCode::CredsMismatch) => "28P01",
            () if error.is(ErrorCode::AccessDenied) => "42501",
            () if error.is(ErrorCode::IllegalParams) => "08P01",
            () if error.is(ErrorCode::MemoryIssue) || error.is(ErrorCode::Unsupported) => "54000",
            () => "58030",
        };
        let severity = if tag == READY_TAG { "ERROR" } else { "FATAL" };
        Report { severity, state, message: error.message(), detail: None, hint: None, names: &[] }.put(out, b'E');
        if tag == READY_TAG {
            put_ready(out, b'I');
        }
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
        startup::authenticate(&self.0, connection, state, login)
    }

    fn user_of(login: &[u8]) -> String {
        startup::user_of(login)
    }

    fn encode_welcome(&self, database: &Database, out: &mut Vec<u8>, tag: u64) {
        let (number, secret) = ((tag & !LOGIN_TAG) >> 32, tag as u32);
        let session = sql::Sql::of(database).session_of_number(number as u32);
        let known = self.0.connections.borrow().get(&(number as u32)).and_then(std::rc::Weak::upgrade);
        let application =
            known.as_ref().and_then(|found| state_of(found)).map(startup::application_of).unwrap_or_default();
        startup::put_welcome(out, number as u32, secret, session.as_deref(), &application);
    }
}

/// `BackendKeyData`: what a client cancels by.
fn put_key(out: &mut Vec<u8>, number: u32, secret: u32) {
    put(out, b'K', |out| {
        put_u32(out, number);
        put_u32(out, secret);
    });
}
