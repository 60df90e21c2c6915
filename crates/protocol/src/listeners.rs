//! Listeners, each behind a door, and the connections that they accept.

use crate::connection::{Connection, ToClient};
use crate::door::{AnyDoor, Doors};
use crate::event_loop::EventLoop;
use crate::handshakes::SocketOf;
use crate::sender::Outlet;
use database::SessionEvent;
use runtime::fiber;
use runtime::net::{Address, Endpoint, Listener, Registry, Stream, Token};
use runtime::tls::{Acceptor, Parameters, Session};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;

const FIRST_LISTENER: usize = 2;
/// Tokens from here on are connections.
pub(crate) const FIRST_CONNECTION: usize = 1024;
/// Interval between attempts of listeners that had no descriptor for a connection.
pub(crate) const ACCEPT_AGAIN_NS: u64 = 50_000_000;
/// Interval between warnings that connections cannot be accepted.
const ACCEPT_WARNING_NS: u64 = 1_000_000_000;

/// Where to listen, and how.
pub struct Place {
    /// The address; port 0 is any free one.
    pub address: Address,
    /// Connections are by TLS.
    pub acceptor: Option<Acceptor>,
}

impl Place {
    /// The place that a text stands for: `[login@]address[?name=value&...]`. Reads files of keys; may block for as long as a name server takes.
    /// Errors: it is none, or a file is not what it should be.
    pub fn of(text: &str) -> io::Result<Self> {
        let endpoint = Endpoint::parse(text)?;
        let given = endpoint.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let acceptor = Parameters::of(given)?.map(|parameters| parameters.acceptor()).transpose()?;
        Ok(Place { address: endpoint.resolve()?, acceptor })
    }
}

/// Two places where at most one can be listened at.
fn excludes(a: &Address, b: &Address) -> bool {
    match (a, b) {
        (Address::Tcp(a), Address::Tcp(b)) => a.port() == b.port() && a.port() != 0,
        (Address::Unix(_), Address::Unix(_)) => is_same(a, b),
        _ => false,
    }
}

/// True if what listens at one listens at the other.
fn is_same(a: &Address, b: &Address) -> bool {
    match (a, b) {
        (Address::Tcp(a), Address::Tcp(b)) => a == b && a.port() != 0,
        // By the way from the root, as the listener knows its own.
        (Address::Unix(a), Address::Unix(b)) => {
            let absolute = |path| std::path::absolute(path).ok();
            absolute(a).is_some_and(|a| Some(a) == absolute(b))
        }
        _ => false,
    }
}

struct Open {
    listener: Listener,
    door: Rc<dyn AnyDoor>,
    /// In which order the places of its door were named.
    rank: usize,
    /// Connections are by TLS.
    acceptor: Option<Acceptor>,
}

/// A connection, who it is from, the door it has come to, and by TLS as whom it is answered.
type Accepted = (Stream, Address, Rc<dyn AnyDoor>, Option<Acceptor>);

/// Where the loop listens: may be changed while it runs.
pub struct Listeners {
    pub(crate) registry: Registry,
    doors: Doors,
    open: RefCell<BTreeMap<usize, Open>>,
}

impl Listeners {
    pub(crate) fn new(registry: Registry, doors: Doors) -> Self {
        Listeners { registry, doors, open: RefCell::default() }
    }

    /// Begins to accept connections of a protocol, by the name of its door. Returns the address, with the port if it was 0. Errors: the
    /// system's; the loop has no such door, or listens at too many addresses.
    pub fn listen(&self, door: &str, address: &Address) -> io::Result<Address> {
        let Some(door) = self.doors.iter().find(|known| known.name() == door) else {
            return Err(io::Error::other(format!("no protocol is called '{door}'")));
        };
        let token = self.bind(door, &Place { address: address.clone(), acceptor: None }, 0)?;
        let local = self.local_address(token);
        local.ok_or_else(|| io::Error::other("the listener has no address"))
    }

    /// Binds and registers. Returns the token.
    fn bind(&self, door: &Rc<dyn AnyDoor>, place: &Place, rank: usize) -> io::Result<usize> {
        let mut open = self.open.borrow_mut();
        let free = (FIRST_LISTENER..FIRST_CONNECTION).find(|token| !open.contains_key(token));
        let token = free.ok_or_else(|| io::Error::other("listened at too many addresses"))?;
        let mut listener = Listener::bind(&place.address)?;
        self.registry.register_listener(&mut listener, Token(token))?;
        open.insert(token, Open { listener, door: Rc::clone(door), rank, acceptor: place.acceptor.clone() });
        Ok(token)
    }

    fn local_address(&self, token: usize) -> Option<Address> {
        self.open.borrow().get(&token)?.listener.local_address().ok()
    }

    /// Listens for a protocol at these places and nowhere else. What is listened at already goes on; new places are bound before old ones are left,
    /// unless one is in the way of the other. Errors: the number of the place that cannot be had, and why; everything is as before then.
    pub fn listen_only(&self, door: &str, places: &[Place]) -> Result<(), (usize, io::Error)> {
        let Some(door) = self.doors.iter().find(|known| known.name() == door) else {
            return Err((0, io::Error::other(format!("no protocol is called '{door}'"))));
        };
        let tokens = || -> Vec<(usize, Address)> {
            let open = self.open.borrow();
            let own = open.iter().filter(|(_, open)| open.door.name() == door.name());
            own.filter_map(|(token, open)| Some((*token, open.listener.local_address().ok()?))).collect()
        };
        let mut old = tokens();
        let mut kept = Vec::new();
        for (rank, place) in places.iter().enumerate() {
            if let Some(at) = old.iter().position(|(_, address)| is_same(address, &place.address)) {
                kept.push((rank, old.swap_remove(at).0));
            }
        }
        let (mut made, mut left) = (Vec::new(), Vec::new());
        for (rank, place) in places.iter().enumerate() {
            if kept.iter().any(|(kept_rank, _)| *kept_rank == rank) {
                continue;
            }
            let mut bound = self.bind(door, place, rank);
            let in_the_way = old.iter().position(|(_, address)| excludes(address, &place.address));
            if let (Err(error), Some(at)) = (&bound, in_the_way)
                && error.kind() == io::ErrorKind::AddrInUse
            {
                let (token, address) = old.swap_remove(at);
                let acceptor = self.close_token(token);
                left.push(Place { address, acceptor });
                bound = self.bind(door, place, rank);
            }
            match bound {
                Ok(token) => made.push(token),
                Err(error) => {
                    for token in made {
                        self.close_token(token);
                    }
                    for (old_rank, place) in left.iter().enumerate() {
                        if let Err(error) = self.bind(door, place, old_rank) {
                            tracing::error!("{} is no longer listened at: {error}", place.address);
                        }
                    }
                    return Err((rank, error));
                }
            }
        }
        for (token, _) in old {
            self.close_token(token);
        }
        let mut open = self.open.borrow_mut();
        for (rank, token) in kept {
            if let Some(open) = open.get_mut(&token) {
                open.rank = rank;
                // Its files may be others by now.
                open.acceptor = places[rank].acceptor.clone();
            }
        }
        Ok(())
    }

    /// Stops listening; how it was answered there.
    fn close_token(&self, token: usize) -> Option<Acceptor> {
        let mut open = self.open.borrow_mut().remove(&token)?;
        // It is closed anyway when it is dropped.
        let _ = self.registry.deregister_listener(&mut open.listener);
        open.acceptor
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

    /// Addresses listened at for a protocol, in the order in which they were named.
    pub fn addresses(&self, door: &str) -> Vec<Address> {
        let open = self.open.borrow();
        let mut listeners: Vec<&Open> = open.values().filter(|open| open.door.name() == door).collect();
        listeners.sort_by_key(|open| open.rank);
        listeners.into_iter().filter_map(|open| open.listener.local_address().ok()).collect()
    }

    /// The next connection of a listener. None: it listens no longer.
    fn accept(&self, token: usize) -> Option<io::Result<Accepted>> {
        let open = self.open.borrow();
        let Open { listener, door, acceptor, .. } = open.get(&token)?;
        Some(listener.accept().map(|(stream, peer)| (stream, peer, Rc::clone(door), acceptor.clone())))
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
                Ok((stream, peer, door, acceptor)) => self.welcome(stream, peer, door, acceptor),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    // Out of descriptors, most likely: the others go on.
                    self.refusing.note(token, &error, self.connections.len());
                    return;
                }
            }
        }
    }

    fn welcome(&mut self, stream: Stream, peer: Address, door: Rc<dyn AnyDoor>, acceptor: Option<Acceptor>) {
        let open = self.connections.len() + self.handshakes.len();
        if open >= self.service.config.connections_max {
            tracing::warn!("connection from {peer} is refused: there are {open} already");
            return;
        }
        let _ = stream.set_nodelay(true);
        match acceptor.map(|acceptor| Session::accept(&acceptor)) {
            Some(Ok(session)) => self.begin_handshake(stream, session, peer, door),
            Some(Err(error)) => tracing::warn!("connection from {peer} is refused: {error}"),
            None => {
                let token = self.next_token;
                self.next_token += 1;
                self.admit(token, stream, None, &peer, &door);
            }
        }
    }

    /// Makes a client of who has connected. By TLS it has been watched since its handshake began.
    pub(crate) fn admit(
        &mut self,
        token: usize,
        mut stream: Stream,
        mut tls: Option<Session>,
        peer: &Address,
        door: &Rc<dyn AnyDoor>,
    ) {
        let service = &self.service;
        let database = &service.database;
        let mut greeting = Vec::new();
        let state = door.open(database, &mut greeting);
        let token = Token(token);
        // A fresh socket takes a greeting at once.
        let greeted = match &mut tls {
            Some(session) => session.write(SocketOf(&stream), &greeting).map(|_| ()),
            None => (&stream)
                .write_all(&greeting)
                .and_then(|()| self.listeners.registry.register_stream(&mut stream, token)),
        };
        if greeted.is_err() {
            return;
        }
        let session = database.open_session(door.session_kind(), Some(peer.to_string()));
        database.announce(&session, SessionEvent::Connect);
        let is_watched = tls.is_some();
        let outlet = Outlet::new(stream, tls, Arc::clone(&service.unsent_total));
        let connection = Connection::new(token, outlet, service, Rc::clone(door), state, session);
        let connection = Rc::new(connection);
        *connection.session.channel.borrow_mut() = Some(Rc::new(ToClient(Rc::downgrade(&connection))));
        if is_watched {
            // Requests may have come right behind the handshake, and raise no event any more.
            connection.is_readable.set(true);
            self.readable.push(Rc::clone(&connection));
        }
        self.connections.insert(token.0, connection);
        database::increment(&database.statistics.connections);
        database.statistics.connections_open.set(self.connections.len() as u64);
    }
}
