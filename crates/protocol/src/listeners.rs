//! Listeners, each behind a door, and the connections that they accept.

use crate::connection::{Connection, ToClient};
use crate::door::{AnyDoor, Doors};
use crate::event_loop::EventLoop;
use database::SessionEvent;
use runtime::fiber;
use runtime::net::{Address, Listener, Registry, Stream, Token};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::rc::Rc;

const FIRST_LISTENER: usize = 2;
/// Tokens from here on are connections.
pub(crate) const FIRST_CONNECTION: usize = 1024;
/// Interval between attempts of listeners that had no descriptor for a connection.
pub(crate) const ACCEPT_AGAIN_NS: u64 = 50_000_000;
/// Interval between warnings that connections cannot be accepted.
const ACCEPT_WARNING_NS: u64 = 1_000_000_000;

struct Open {
    listener: Listener,
    door: Rc<dyn AnyDoor>,
}

/// A connection, who it is from, and the door it has come to.
type Accepted = (Stream, Address, Rc<dyn AnyDoor>);

/// Where the loop listens: may be changed while it runs.
pub struct Listeners {
    pub(crate) registry: Registry,
    doors: Doors,
    open: RefCell<BTreeMap<usize, Open>>,
    next_token: Cell<usize>,
}

impl Listeners {
    pub(crate) fn new(registry: Registry, doors: Doors) -> Self {
        Listeners { registry, doors, open: RefCell::default(), next_token: Cell::new(FIRST_LISTENER) }
    }

    /// Begins to accept connections of a protocol, by the name of its door. Returns the address, with the port if it was 0. Errors: the
    /// system's; the loop has no such door, or listens at too many addresses.
    pub fn listen(&self, door: &str, address: &Address) -> io::Result<Address> {
        let Some(door) = self.doors.iter().find(|known| known.name() == door) else {
            return Err(io::Error::other(format!("no protocol is called '{door}'")));
        };
        let mut listener = Listener::bind(address)?;
        let token = self.next_token.get();
        if token >= FIRST_CONNECTION {
            return Err(io::Error::other("listened at too many addresses"));
        }
        self.next_token.set(token + 1);
        self.registry.register_listener(&mut listener, Token(token))?;
        let local = listener.local_address()?;
        self.open.borrow_mut().insert(token, Open { listener, door: Rc::clone(door) });
        Ok(local)
    }

    /// Looks whether an address can be had, and leaves it. Errors: the system's.
    pub fn try_address(&self, address: &Address) -> io::Result<()> {
        Listener::bind(address).map(drop)
    }

    /// Stops listening for a protocol; open connections stay.
    pub fn close(&self, door: &str) {
        self.close_if(|open| open.door.name() == door);
    }

    /// Stops listening everywhere.
    pub fn close_all(&self) {
        self.close_if(|_| true);
    }

    fn close_if(&self, is_meant: impl Fn(&Open) -> bool) {
        self.open.borrow_mut().retain(|_, open| {
            let is_meant = is_meant(open);
            if is_meant {
                // It is closed anyway when it is dropped.
                let _ = self.registry.deregister_listener(&mut open.listener);
            }
            !is_meant
        });
    }

    /// Addresses listened at for a protocol.
    pub fn addresses(&self, door: &str) -> Vec<Address> {
        let open = self.open.borrow();
        let listeners = open.values().filter(|open| open.door.name() == door);
        listeners.filter_map(|open| open.listener.local_address().ok()).collect()
    }

    /// The next connection of a listener. None: it listens no longer.
    fn accept(&self, token: usize) -> Option<io::Result<Accepted>> {
        let open = self.open.borrow();
        let Open { listener, door } = open.get(&token)?;
        Some(listener.accept().map(|(stream, peer)| (stream, peer, Rc::clone(door))))
    }
}

/// Listeners whose last connection could not be accepted: nothing announces that it can be now.
#[derive(Default)]
pub(crate) struct Refusing {
    tokens: Vec<usize>,
    refused_at_ns: u64,
    /// When that was last logged.
    warned_at_ns: Option<u64>,
}

impl Refusing {
    pub(crate) fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    fn note(&mut self, token: usize, error: &io::Error, connections: usize) {
        let now = fiber::now_ns();
        self.refused_at_ns = now;
        if !self.tokens.contains(&token) {
            self.tokens.push(token);
        }
        if self.warned_at_ns.is_none_or(|warned| now.saturating_sub(warned) >= ACCEPT_WARNING_NS) {
            self.warned_at_ns = Some(now);
            tracing::warn!(
                "a connection cannot be accepted, with {connections} open: {error}; tried again when some are closed"
            );
        }
    }
}

impl EventLoop {
    /// Asks listeners again that had no descriptor for a connection.
    pub(crate) fn accept_again(&mut self) {
        let is_due = || fiber::now_ns().saturating_sub(self.refusing.refused_at_ns) >= ACCEPT_AGAIN_NS;
        if !self.refusing.is_empty() && is_due() {
            for token in std::mem::take(&mut self.refusing.tokens) {
                self.accept(token);
            }
        }
    }

    /// Accepts all connections that wait at a listener.
    pub(crate) fn accept(&mut self, token: usize) {
        while let Some(accepted) = self.listeners.accept(token) {
            match accepted {
                Ok((stream, peer, door)) => self.welcome(stream, &peer, door),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    // Out of descriptors, most likely: the others go on.
                    self.refusing.note(token, &error, self.connections.len());
                    return;
                }
            }
        }
    }

    fn welcome(&mut self, mut stream: Stream, peer: &Address, door: Rc<dyn AnyDoor>) {
        let service = &self.service;
        let database = &service.database;
        if self.connections.len() >= service.config.connections_max {
            tracing::warn!("connection from {peer} is refused: there are {} already", self.connections.len());
            return;
        }
        let _ = stream.set_nodelay(true);
        let mut greeting = Vec::new();
        let state = door.open(database, &mut greeting);
        let token = Token(self.next_token);
        self.next_token += 1;
        // A fresh socket takes a greeting at once.
        let greeted = (&stream).write_all(&greeting);
        if greeted.and_then(|()| self.listeners.registry.register_stream(&mut stream, token)).is_err() {
            return;
        }
        let session = database.open_session(door.session_kind(), Some(peer.to_string()));
        database.announce(&session, SessionEvent::Connect);
        let connection = Connection::new(token, stream, service, door, state, session);
        let connection = Rc::new(connection);
        *connection.session.channel.borrow_mut() = Some(Rc::new(ToClient(Rc::downgrade(&connection))));
        self.connections.insert(token.0, connection);
        database::increment(&database.statistics.connections);
        database.statistics.connections_open.set(self.connections.len() as u64);
    }
}
