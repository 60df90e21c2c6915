//! A door: one protocol, as far as it is about that protocol's bytes.
//!
//! ```text
//! socket --> read --> split --> group of requests --> prefetch --> serve, one by one --> answers --> parked or sent
//!            loop     door      loop                  door         door                  connection  loop
//! ```
//!
//! Sockets, bounds, time slices, groups, parking, slow logins and the stop of the server are the same behind all doors and stand beside them, in
//! this crate. What a protocol adds is a folder with a [`Door`] and a line in the table that the event loop is given. Each listener has a door of its own,
//! made with what the listener's address says.
//!
//! The event loop calls a door once for everything that it has read from a socket, through [`AnyDoor`]; what happens for each request is compiled
//! for each door.

use crate::connection::Connection;
use crate::datagrams::Framing;
use crate::packing::Packing;
use crate::serving;
use crate::terms::Terms;
use database::{Database, Error, ErrorCode, Result, SessionKind};
use std::any::Any;
use std::rc::Rc;

/// What the beginning of the input is.
pub enum Split<R> {
    /// A request, and the bytes it takes.
    Request(R, usize),
    /// The same, and what follows can be told only when it was served: it changes what the bytes behind it are.
    Last(R, usize),
    /// The rest has not come. `announced` is what the request takes in all, as far as its beginning tells; 0 if it does not.
    Incomplete {
        /// Bytes, as the client says: nothing is sized by them before they are compared with a bound.
        announced: u64,
    },
    /// Bytes that are no request.
    Refused {
        /// Told to the client, with tag 0.
        error: Error,
        /// The bytes it takes; what follows is looked at. None: nothing behind it can be understood, and the connection ends.
        length: Option<usize>,
    },
}

/// What the first bytes of a client are, at a listener with a certificate whose protocol asks for TLS by a request of its own.
pub enum Opening {
    /// That can be told when so many bytes have come. Nothing behind them is read: it may be sealed.
    Unknown(usize),
    /// A request for TLS, and what it is answered with before the handshake.
    Tls(&'static [u8]),
    /// A handshake without a request.
    Hello,
    /// A request for something that is not there, what it is answered with, and the client goes on as if it had not asked.
    Declined(&'static [u8]),
    /// Something that goes without TLS wherever TLS is wanted.
    Exempt,
    /// The beginning of a login in clear.
    Plain,
}

/// What a protocol says about bytes. One value serves all connections of a listener; what is a connection's own is its `State`.
pub trait Door: 'static {
    /// A request that was understood, borrowing the input.
    type Request<'a>;
    /// What is kept with each connection.
    type State: 'static;
    /// Name of the protocol: of its listeners and of the fibers of its requests.
    const NAME: &'static str;
    /// Clients match answers to requests by their order. A request that waits holds back those behind it.
    const IS_ORDERED: bool;
    /// What the sessions of its connections are.
    const SESSION: SessionKind;
    /// Whom connections act as where the listener names nobody and asks for no login; guest otherwise. A user of the door's own, who has rights on its
    /// spaces and no password: what guest may do, anybody may who reaches any door.
    const OWN_USER: Option<&'static str> = None;
    /// The protocol has a request for TLS. Where it has none, a listener with a certificate begins with the handshake.
    const ASKS_FOR_TLS: bool = false;
    /// What the protocol is called in handshakes, if clients name it there.
    const NAME_IN_TLS: Option<&'static str> = None;

    /// How its requests stand in datagrams, if they do.
    fn framing(&self) -> Option<&'static dyn Framing> {
        None
    }

    /// Makes the state of a new connection, and what the server says first: at most 128 bytes, which every fresh socket takes.
    fn greet(&self, database: &Database, out: &mut Vec<u8>) -> Self::State;

    /// The connection is there: the door may note it.
    fn opened(&self, _connection: &Rc<Connection>, _state: &Self::State) {}

    /// What the first bytes of a client are, where it may ask for TLS.
    fn opening(_first: &[u8]) -> Opening {
        Opening::Plain
    }

    /// Writes why a client ends that has begun without TLS where it is wanted.
    fn encode_unsealed(&self, _out: &mut Vec<u8>) {}

    /// How bytes are packed from now on, if they are: asked before bytes are served, until it says so.
    #[inline]
    fn packing(&self, _state: &Self::State) -> Option<Box<dyn Packing>> {
        None
    }

    /// Requests of one connection that are served in one turn, at most: whoever has sent more waits while others have theirs.
    #[inline]
    fn requests_max(&self) -> usize {
        usize::MAX
    }

    /// A turn of a connection has ended before its requests have.
    fn yielded(&self) {}

    /// Finds the first request of the input. A request that can be told from its neighbours but not be served is a request: it is refused in its
    /// turn, by `serve`.
    fn split<'a>(&self, state: &Self::State, input: &'a [u8]) -> Split<Self::Request<'a>>;

    /// Has the rows of a group fetched that is about to be served.
    fn prefetch(&self, _database: &Database, _group: &[Self::Request<'_>]) {}

    /// Serves a request: it is answered now, or later from a fiber ([`Connection::in_fiber`]). Errors: nothing was answered; the client is told.
    fn serve(&self, connection: &Rc<Connection>, state: &Self::State, request: &Self::Request<'_>) -> Result<()>;

    /// Serves the first requests of what has come together as one, and says how many they were. 0: it is done one by one; nothing was answered.
    fn serve_together(
        &self,
        _connection: &Rc<Connection>,
        _state: &Self::State,
        _requests: &[Self::Request<'_>],
    ) -> usize {
        0
    }

    /// The client's name for a request, 0 if it has none: comes back in `encode_failure`.
    fn tag(request: &Self::Request<'_>) -> u64;

    /// What a request is, for a line of the log.
    fn describe(request: &Self::Request<'_>) -> String;

    /// Writes an error in the place of an answer. Where it writes nothing, because all that the protocol could say is another answer, the connection ends.
    fn encode_failure(&self, database: &Database, out: &mut Vec<u8>, tag: u64, error: &Error);

    /// Writes a value that goes to the client of a request before its answer. Errors: the protocol has nothing of the kind.
    fn encode_push(&self, _database: &Database, _out: &mut Vec<u8>, _tag: u64, _value: &[u8]) -> Result<()> {
        let what = format!("Session '{}'", Self::SESSION.name());
        Err(Error::new(ErrorCode::Unsupported, &[&what, &"push()"]))
    }

    /// No more requests will come: what the door keeps for them ends. Some may still be in fibers, and their answers be wanted. May be
    /// called twice.
    fn close(&self, _connection: &Rc<Connection>, _state: &Self::State) {}

    /// The client sends no more, while it has as many requests in fibers as it may: those that wait for something else than their own work may end.
    fn hung_up(&self, _connection: &Rc<Connection>, _state: &Self::State) {}

    /// Looks at a login that was handed to [`Connection::log_in`]: if it proves who somebody is, the session is theirs. Errors: it does not.
    fn authenticate(&self, _connection: &Connection, _state: &Self::State, _login: &[u8]) -> Result<()> {
        Err(Error::new(ErrorCode::Unsupported, &[&"Lycosa", &"logins of this protocol"]))
    }

    /// The name of the user of such a login.
    fn user_of(_login: &[u8]) -> String {
        String::new()
    }

    /// Writes the answer to a login that succeeded.
    fn encode_welcome(&self, _database: &Database, _out: &mut Vec<u8>, _tag: u64) {}
}

/// A door as the event loop sees it: the same for all protocols. Every [`Door`] is one.
pub trait AnyDoor {
    /// See [`Door::NAME`].
    fn name(&self) -> &'static str;
    /// See [`Door::IS_ORDERED`].
    fn is_ordered(&self) -> bool;
    /// See [`Door::SESSION`].
    fn session_kind(&self) -> SessionKind;
    /// See [`Door::OWN_USER`].
    fn own_user(&self) -> Option<&'static str>;
    /// See [`Door::ASKS_FOR_TLS`].
    fn asks_for_tls(&self) -> bool;
    /// See [`Door::NAME_IN_TLS`].
    fn name_in_tls(&self) -> Option<&'static str>;
    /// See [`Door::framing`].
    fn framing(&self) -> Option<&'static dyn Framing>;
    /// See [`Door::opening`].
    fn look(&self, first: &[u8]) -> Opening;
    /// See [`Door::encode_unsealed`].
    fn refuse_unsealed(&self, out: &mut Vec<u8>);
    /// See [`Door::greet`].
    fn open(&self, database: &Database, out: &mut Vec<u8>) -> Box<dyn Any>;
    /// See [`Door::opened`].
    fn enter(&self, connection: &Rc<Connection>);
    /// Serves what was read from a connection, and what was left before.
    fn serve_input(&self, connection: &Rc<Connection>, bytes: &[u8]);
    /// See [`Door::encode_failure`].
    fn fail(&self, database: &Database, out: &mut Vec<u8>, tag: u64, error: &Error);
    /// See [`Door::encode_push`].
    fn push(&self, database: &Database, out: &mut Vec<u8>, tag: u64, value: &[u8]) -> Result<()>;
    /// See [`Door::close`].
    fn leave(&self, connection: &Rc<Connection>);
    /// See [`Door::hung_up`].
    fn hang_up(&self, connection: &Rc<Connection>);
    /// See [`Door::authenticate`].
    fn check_login(&self, connection: &Connection, login: &[u8]) -> Result<()>;
    /// See [`Door::user_of`].
    fn login_user(&self, login: &[u8]) -> String;
    /// See [`Door::encode_welcome`].
    fn welcome(&self, database: &Database, out: &mut Vec<u8>, tag: u64);
}

/// Makes the door of a listener, and what it needs in the database. May wait; called in a fiber wherever a protocol needs one. Errors: the terms are
/// not those of this protocol; the database refuses.
pub type OpenDoor = dyn Fn(&Rc<Database>, &Terms) -> Result<Rc<dyn AnyDoor>>;

/// A line of the table of doors.
pub struct Protocol {
    /// The scheme of addresses, and [`Door::NAME`].
    pub name: &'static str,
    /// Who may connect, for a line of the log.
    pub clients: &'static str,
    /// Its clients can say who they are. Where they cannot, other machines may come only by TLS with certificates that are looked at.
    pub has_logins: bool,
    /// See [`OpenDoor`].
    pub open: Box<OpenDoor>,
}

/// The doors of an event loop.
pub type Doors = Vec<Protocol>;

/// The state that this door has made for a connection.
fn state<D: Door>(connection: &Connection) -> &D::State {
    connection.state.downcast_ref().expect("the door of a connection has made its state")
}

impl<D: Door> AnyDoor for D {
    fn name(&self) -> &'static str {
        D::NAME
    }

    fn is_ordered(&self) -> bool {
        D::IS_ORDERED
    }

    fn session_kind(&self) -> SessionKind {
        D::SESSION
    }

    fn own_user(&self) -> Option<&'static str> {
        D::OWN_USER
    }

    fn asks_for_tls(&self) -> bool {
        D::ASKS_FOR_TLS
    }

    fn name_in_tls(&self) -> Option<&'static str> {
        D::NAME_IN_TLS
    }

    fn framing(&self) -> Option<&'static dyn Framing> {
        Door::framing(self)
    }

    fn look(&self, first: &[u8]) -> Opening {
        D::opening(first)
    }

    fn refuse_unsealed(&self, out: &mut Vec<u8>) {
        self.encode_unsealed(out);
    }

    fn open(&self, database: &Database, out: &mut Vec<u8>) -> Box<dyn Any> {
        Box::new(self.greet(database, out))
    }

    fn enter(&self, connection: &Rc<Connection>) {
        self.opened(connection, state::<D>(connection));
    }

    fn serve_input(&self, connection: &Rc<Connection>, bytes: &[u8]) {
        serving::serve_input(self, connection, state::<D>(connection), bytes);
    }

    fn fail(&self, database: &Database, out: &mut Vec<u8>, tag: u64, error: &Error) {
        self.encode_failure(database, out, tag, error);
    }

    fn push(&self, database: &Database, out: &mut Vec<u8>, tag: u64, value: &[u8]) -> Result<()> {
        self.encode_push(database, out, tag, value)
    }

    fn leave(&self, connection: &Rc<Connection>) {
        self.close(connection, state::<D>(connection));
    }

    fn hang_up(&self, connection: &Rc<Connection>) {
        self.hung_up(connection, state::<D>(connection));
    }

    fn check_login(&self, connection: &Connection, login: &[u8]) -> Result<()> {
        self.authenticate(connection, state::<D>(connection), login)
    }

    fn login_user(&self, login: &[u8]) -> String {
        D::user_of(login)
    }

    fn welcome(&self, database: &Database, out: &mut Vec<u8>, tag: u64) {
        self.encode_welcome(database, out, tag);
    }
}
