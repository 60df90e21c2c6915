//! Listeners, each behind a door, and the connections that they accept.

use crate::connection::{Connection, ToClient};
use crate::datagrams;
use crate::door::{AnyDoor, Doors, Protocol};
use crate::event_loop::EventLoop;
use crate::handshakes::SocketOf;
use crate::sender::Outlet;
use crate::terms::Terms;
use database::{Database, Error, SessionEvent};
use runtime::fiber;
use runtime::net::{Address, Endpoint, Listener, Registry, Stream, Token};
use runtime::tls::{Acceptor, Parameters, Session};
use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

const FIRST_LISTENER: usize = 2;
/// Tokens from here on are connections.
pub(crate) const FIRST_CONNECTION: usize = 1024;
/// Interval between attempts of listeners that had no descriptor for a connection.
pub(crate) const ACCEPT_AGAIN_NS: u64 = 50_000_000;
/// Interval between warnings that connections cannot be accepted.
const ACCEPT_WARNING_NS: u64 = 1_000_000_000;

/// The protocol of an address that names none.
const PROTOCOL: &str = "iproto";

/// Where to listen, and how.
pub struct Place {
    /// The protocol: the name of a door.
    pub door: String,
    /// What is said about the door.
    pub terms: Terms,
    /// The address; port 0 is any free one.
    pub address: Address,
    /// Connections are by TLS.
    pub acceptor: Option<Acceptor>,
    /// Who comes by TLS has to show a certificate.
    pub checks_certificates: bool,
    /// Who does not ask for TLS is served, too.
    pub takes_plain: bool,
}

fn wrong(words: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, words)
}

/// Takes `transport=udp` out of an address, if it is there.
fn take_udp(endpoint: &mut Endpoint) -> bool {
    let before = endpoint.parameters.len();
    endpoint.parameters.retain(|(name, value)| (name.as_str(), value.as_str()) != ("transport", "udp"));
    endpoint.parameters.len() < before
}

/// The parameter that says whether a listener with a certificate takes connections without TLS: of protocols that have a request for it.
pub(crate) const TLS_PARAMETER: &str = "ssl";

impl Place {
    /// The place that a text stands for: `[protocol://][login@]address[?name=value&...]`. Reads files of keys; may block for as long as a name server
    /// takes. Errors: it is none, or a file is not what it should be.
    pub fn of(text: &str) -> io::Result<Self> {
        let (door, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) => (scheme, rest),
            _ => (PROTOCOL, text),
        };
        let mut endpoint = Endpoint::parse(rest)?;
        let is_udp = take_udp(&mut endpoint);
        let given = endpoint.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let parameters = Parameters::of(given)?;
        let checks_certificates = parameters.as_ref().is_some_and(Parameters::has_authorities);
        let acceptor = parameters.map(|parameters| parameters.acceptor()).transpose()?;
        let address = match (endpoint.resolve()?, is_udp) {
            (address, false) => address,
            (Address::Tcp(address), true) if acceptor.is_none() => Address::Udp(address),
            _ => return Err(wrong("transport=udp is for a host and a port, without TLS".to_string())),
        };
        let terms = match door {
            // Tarantool passes over what it does not know there.
            PROTOCOL => Terms::default(),
            _ => Terms {
                has_tls: acceptor.is_some(),
                address: address.to_string(),
                ..Terms::of(endpoint.login.as_deref(), &endpoint.parameters, !address.is_local())?
            },
        };
        if is_udp && terms.asks_login && !terms.trusts_near {
            let words = "transport=udp has no logins: it is for an address that no other machine reaches, or with local_login=no";
            return Err(wrong(words.to_string()));
        }
        let takes_plain = match (terms.get(TLS_PARAMETER), &acceptor) {
            (None | Some("required"), Some(_)) => false,
            (Some("optional"), Some(_)) => true,
            (None, None) => true,
            (Some(other), Some(_)) => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!("{TLS_PARAMETER} '{other}' is neither required nor optional"),
                ));
            }
            (Some(_), None) => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    format!("{TLS_PARAMETER} is given without transport=ssl"),
                ));
            }
        };
        if takes_plain && checks_certificates {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{TLS_PARAMETER}=optional lets everybody pass ssl_ca_file by: leave one of them out"),
            ));
        }
        Ok(Place { door: door.to_string(), terms, address, acceptor, checks_certificates, takes_plain })
    }
}

/// Two places where at most one can be listened at.
fn excludes(a: &Address, b: &Address) -> bool {
    match (a, b) {
        (Address::Tcp(a), Address::Tcp(b)) | (Address::Udp(a), Address::Udp(b)) => {
            a.port() == b.port() && a.port() != 0
        }
        (Address::Unix(_), Address::Unix(_)) => is_same(a, b),
        _ => false,
    }
}

/// True if what listens at one listens at the other.
fn is_same(a: &Address, b: &Address) -> bool {
    match (a, b) {
        (Address::Tcp(a), Address::Tcp(b)) | (Address::Udp(a), Address::Udp(b)) => a == b && a.port() != 0,
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
    entrance: Rc<Entrance>,
    /// In which order the places were named.
    rank: usize,
}

/// What is behind a listener.
pub(crate) struct Entrance {
    pub(crate) door: Rc<dyn AnyDoor>,
    pub(crate) terms: Terms,
    /// Connections are by TLS, or may be.
    pub(crate) acceptor: Option<Acceptor>,
    /// They need not be.
    pub(crate) takes_plain: bool,
    /// Bytes of answers to datagrams that are not whole yet.
    pub(crate) answers_held: Arc<AtomicUsize>,
}

impl Entrance {
    fn new(terms: Terms, door: Rc<dyn AnyDoor>, acceptor: Option<Acceptor>, takes_plain: bool) -> Self {
        let acceptor = match (acceptor, door.name_in_tls()) {
            (Some(acceptor), Some(name)) => Some(acceptor.naming(name)),
            (acceptor, _) => acceptor,
        };
        Entrance { door, terms, acceptor, takes_plain, answers_held: Arc::default() }
    }
}

impl Entrance {
    /// Lets as many connections wait as the listener says, if it does. Errors: the system's.
    fn set_backlog(&self, listener: &Listener) -> io::Result<()> {
        match self.terms.backlog() {
            Ok(backlog) => listener.set_backlog(backlog.unwrap_or(runtime::net::BACKLOG)),
            // Whoever made the door has refused it.
            Err(_) => Ok(()),
        }
    }
}

/// What has happened with a client before it is one.
#[derive(Default)]
pub(crate) struct Begun {
    /// The loop watches its socket.
    pub(crate) is_watched: bool,
    /// What the door keeps with it, if it was greeted.
    pub(crate) state: Option<Box<dyn Any>>,
    /// Bytes of it that nobody has served.
    pub(crate) input: Vec<u8>,
}

/// A place and its door.
pub type Opened = (Place, Rc<dyn AnyDoor>);

/// A connection, who it is from, and where it has come in.
type Accepted = (Stream, Address, Rc<Entrance>);

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

    /// The line of the table for a protocol. Errors: there is none; the names that there are.
    pub fn protocol(&self, name: &str) -> io::Result<&Protocol> {
        self.doors.iter().find(|known| known.name == name).ok_or_else(|| {
            let names: Vec<_> = self.doors.iter().map(|door| door.name).collect();
            io::Error::other(format!("no protocol is called '{name}', only {}", names.join(", ")))
        })
    }

    /// Makes the door of a place. May wait. Errors: there is no such protocol, its terms are wrong, the database refuses.
    pub fn open_door(&self, database: &Rc<Database>, place: &Place) -> Result<Rc<dyn AnyDoor>, Error> {
        let protocol = self.protocol(&place.door).map_err(|error| Error::illegal(error.to_string()))?;
        let door = (protocol.open)(database, &place.terms)?;
        if matches!(place.address, Address::Udp(_)) && door.framing().is_none() {
            return Err(Error::illegal(format!("{}:// has no datagrams", place.door)));
        }
        let terms = &place.terms;
        if let Some(name) = door.own_user()
            && (!terms.asks_login || terms.trusts_near)
            && terms.user.as_deref().is_none_or(|user| user == name)
        {
            database.need_user(name);
        }
        Ok(door)
    }

    /// Begins to accept connections of a protocol, by the name of its door. Returns the address, with the port if it was 0. Errors: the
    /// system's; the loop has no such door, or listens at too many addresses.
    pub fn listen(&self, database: &Rc<Database>, door: &str, address: &Address) -> io::Result<Address> {
        let (terms, acceptor) = (Terms::default(), None);
        let place = Place {
            door: door.to_string(),
            terms,
            address: address.clone(),
            acceptor,
            checks_certificates: false,
            takes_plain: true,
        };
        let door = self.open_door(database, &place).map_err(|error| io::Error::other(error.to_string()))?;
        let token = self.bind(&place.address, Rc::new(Entrance::new(place.terms, door, None, true)), 0)?;
        let local = self.local_address(token);
        local.ok_or_else(|| io::Error::other("the listener has no address"))
    }

    /// Binds and registers. Returns the token.
    fn bind(&self, address: &Address, entrance: Rc<Entrance>, rank: usize) -> io::Result<usize> {
        let mut open = self.open.borrow_mut();
        let free = (FIRST_LISTENER..FIRST_CONNECTION).find(|token| !open.contains_key(token));
        let token = free.ok_or_else(|| io::Error::other("listened at too many addresses"))?;
        let mut listener = Listener::bind(address)?;
        entrance.set_backlog(&listener)?;
        self.registry.register_listener(&mut listener, Token(token))?;
        open.insert(token, Open { listener, entrance, rank });
        Ok(token)
    }

    fn local_address(&self, token: usize) -> Option<Address> {
        self.open.borrow().get(&token)?.listener.local_address().ok()
    }

    /// Listens at these places and nowhere else. What is listened at already goes on; new places are bound before old ones are left,
    /// unless one is in the way of the other. Errors: the number of the place that cannot be had, and why; everything is as before then.
    pub fn listen_only(&self, places: Vec<Opened>) -> Result<(), (usize, io::Error)> {
        let mut old: Vec<(usize, Address)> = {
            let open = self.open.borrow();
            open.iter().filter_map(|(token, open)| Some((*token, open.listener.local_address().ok()?))).collect()
        };
        let places: Vec<(Address, Rc<Entrance>)> = places
            .into_iter()
            .map(|(Place { terms, address, acceptor, takes_plain, .. }, door)| {
                (address, Rc::new(Entrance::new(terms, door, acceptor, takes_plain)))
            })
            .collect();
        let mut kept = Vec::new();
        for (rank, (address, _)) in places.iter().enumerate() {
            if let Some(at) = old.iter().position(|(_, listened)| is_same(listened, address)) {
                kept.push((rank, old.swap_remove(at).0));
            }
        }
        let (mut made, mut left) = (Vec::new(), Vec::new());
        for (rank, (address, entrance)) in places.iter().enumerate() {
            if kept.iter().any(|(kept_rank, _)| *kept_rank == rank) {
                continue;
            }
            let mut bound = self.bind(address, Rc::clone(entrance), rank);
            let in_the_way = old.iter().position(|(_, listened)| excludes(listened, address));
            if let (Err(error), Some(at)) = (&bound, in_the_way)
                && error.kind() == io::ErrorKind::AddrInUse
            {
                let (token, address_left) = old.swap_remove(at);
                if let Some(entrance) = self.close_token(token) {
                    left.push((address_left, entrance));
                }
                bound = self.bind(address, Rc::clone(entrance), rank);
            }
            match bound {
                Ok(token) => made.push(token),
                Err(error) => {
                    for token in made {
                        self.close_token(token);
                    }
                    for (old_rank, (address, entrance)) in left.into_iter().enumerate() {
                        if let Err(error) = self.bind(&address, entrance, old_rank) {
                            tracing::error!("{address} is no longer listened at: {error}");
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
                // Its files, and what is said about it, may be others by now.
                open.entrance = Rc::clone(&places[rank].1);
                if let Err(error) = open.entrance.set_backlog(&open.listener) {
                    tracing::warn!("the backlog of {} stays what it was: {error}", places[rank].0);
                }
            }
        }
        Ok(())
    }

    /// Stops listening; what was behind the listener.
    fn close_token(&self, token: usize) -> Option<Rc<Entrance>> {
        let mut open = self.open.borrow_mut().remove(&token)?;
        // It is closed anyway when it is dropped.
        let _ = self.registry.deregister_listener(&mut open.listener);
        Some(open.entrance)
    }

    /// Looks whether an address can be had, and leaves it. Errors: the system's.
    pub fn try_address(&self, address: &Address) -> io::Result<()> {
        Listener::bind(address).map(drop)
    }

    /// Stops listening for a protocol; open connections stay.
    pub fn close(&self, door: &str) {
        self.close_if(|open| open.entrance.door.name() == door);
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
        let all = self.all_addresses().into_iter();
        all.filter(|(name, _)| *name == door).map(|(_, address)| address).collect()
    }

    /// Protocols and addresses that are listened at, in the order in which they were named.
    pub fn all_addresses(&self) -> Vec<(&'static str, Address)> {
        let open = self.open.borrow();
        let mut listeners: Vec<&Open> = open.values().collect();
        listeners.sort_by_key(|open| open.rank);
        let address = |open: &Open| Some((open.entrance.door.name(), open.listener.local_address().ok()?));
        listeners.into_iter().filter_map(address).collect()
    }

    /// The next connection of a listener. `buffer` and `left`: for datagrams, those that may be looked at. None: it listens no longer.
    fn accept(&self, token: usize, buffer: &mut [u8], left: &mut usize) -> Option<io::Result<Accepted>> {
        let open = self.open.borrow();
        let Open { listener, entrance, .. } = open.get(&token)?;
        if let (Listener::Udp(socket), Some(framing)) = (listener, entrance.door.framing()) {
            return Some(datagrams::receive(socket, framing, entrance, (buffer, left)));
        }
        Some(listener.accept().map(|(stream, peer)| (stream, peer, Rc::clone(entrance))))
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
        for token in std::mem::take(&mut self.crowded) {
            self.accept(token);
        }
        let is_due = || fiber::now_ns().saturating_sub(self.refusing.refused_at_ns) >= ACCEPT_AGAIN_NS;
        if !self.refusing.is_empty() && is_due() {
            for token in std::mem::take(&mut self.refusing.tokens) {
                self.accept(token);
            }
        }
    }

    /// Accepts all connections that wait at a listener.
    pub(crate) fn accept(&mut self, token: usize) {
        let listeners = Rc::clone(&self.listeners);
        let mut left = datagrams::DATAGRAMS_IN_TURN_MAX;
        while let Some(accepted) = listeners.accept(token, &mut self.buffer, &mut left) {
            match accepted {
                Ok((stream, peer, entrance)) => self.welcome(stream, peer, entrance),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if left == 0 {
                        self.crowded.push(token);
                    }
                    return;
                }
                Err(error) => {
                    // Out of descriptors, most likely: the others go on.
                    self.refusing.note(token, &error, self.connections.len());
                    return;
                }
            }
        }
    }

    fn welcome(&mut self, stream: Stream, peer: Address, entrance: Rc<Entrance>) {
        let open = self.connections.len() + self.handshakes.len();
        if open >= self.service.config.connections_max {
            tracing::warn!("connection from {peer} is refused: there are {open} already");
            return;
        }
        let _ = stream.set_nodelay(true);
        if entrance.acceptor.is_some() {
            self.begin_handshake(stream, peer, entrance);
            return;
        }
        let token = self.next_token;
        self.next_token += 1;
        let begun = Begun { is_watched: stream.is_exchange(), ..Begun::default() };
        self.admit(token, stream, None, &peer, &entrance, begun);
    }

    /// Makes a client of who has connected.
    pub(crate) fn admit(
        &mut self,
        token: usize,
        mut stream: Stream,
        mut tls: Option<Session>,
        peer: &Address,
        entrance: &Entrance,
        begun: Begun,
    ) {
        let service = &self.service;
        let database = &service.database;
        let door = &entrance.door;
        let session = database.open_session(door.session_kind(), Some(peer.to_string()));
        if let Err(error) = entrance.terms.begin(database, &session, door.own_user()) {
            tracing::warn!("connection from {peer} is refused: {error}");
            database.close_session(&session);
            return;
        }
        let mut greeting = Vec::new();
        let state = begun.state.unwrap_or_else(|| door.open(database, &mut greeting));
        let token = Token(token);
        // A fresh socket takes a greeting at once.
        let mut greeted = match &mut tls {
            Some(session) => session.write(SocketOf(&stream), &greeting).map(|_| ()),
            None => (&stream).write_all(&greeting),
        };
        if !begun.is_watched {
            greeted = greeted.and_then(|()| self.listeners.registry.register_stream(&mut stream, token));
        }
        if greeted.is_err() {
            database.close_session(&session);
            return;
        }
        database.announce(&session, SessionEvent::Connect);
        let outlet = Outlet::new(stream, tls, Arc::clone(&service.unsent_total));
        let connection = Connection::new(token, outlet, service, Rc::clone(door), state, session);
        connection.must_log_in.set(entrance.terms.asks_login_of(connection.session.peer.as_deref()));
        let connection = Rc::new(connection);
        *connection.session.channel.borrow_mut() = Some(Rc::new(ToClient(Rc::downgrade(&connection))));
        door.enter(&connection);
        if begun.is_watched {
            // Requests may have come right behind the handshake, and raise no event any more.
            connection.is_readable.set(true);
            connection.is_stalled.set(!begun.input.is_empty());
            service.input_total.set(service.input_total.get() + begun.input.len());
            *connection.input.borrow_mut() = begun.input;
            self.readable.push(Rc::clone(&connection));
        }
        if !connection.is_datagram() {
            database::increment(&connection.counts.connections);
            database::increment(&database.statistics.connections);
        }
        database::increment(&connection.counts.connections_open);
        self.connections.insert(token.0, connection);
        database.statistics.connections_open.set(self.connections.len() as u64);
    }
}
