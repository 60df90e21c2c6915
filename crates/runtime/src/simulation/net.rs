//! Simulated sockets: two byte streams for each connection, delivered late, in pieces, and sometimes cut.

use super::{Event, Simulation, current};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

/// One direction's bytes arrive, or its end.
pub(super) struct Delivery {
    to: u64,
    what: What,
}

enum What {
    Bytes(Vec<u8>),
    /// The other side sends no more.
    End,
    /// The connection is gone.
    Reset,
}

#[derive(Default)]
pub(super) struct Net {
    listeners: BTreeMap<SocketAddr, Backlog>,
    endpoints: BTreeMap<u64, Endpoint>,
    next_port: u16,
}

struct Backlog {
    id: u64,
    waiting: VecDeque<u64>,
    registration: Option<(u64, usize)>,
}

struct Endpoint {
    peer: u64,
    local: SocketAddr,
    remote: SocketAddr,
    inbox: VecDeque<u8>,
    /// Sent by the peer and not delivered.
    on_the_way: usize,
    has_ended: bool,
    is_reset: bool,
    is_closed: bool,
    /// Deliveries keep their order.
    last_delivery_ns: u64,
    registration: Option<(u64, usize)>,
    /// Woken when something can be read or written.
    key: u64,
    /// It belongs to the process of the main thread.
    is_main: bool,
    /// Its writer was told to wait.
    is_full: bool,
    /// Something that was sent to it is lost: nothing that was sent behind that comes any more.
    is_cut: bool,
}

impl Net {
    /// All sockets of the main thread's process are gone.
    pub(super) fn end_process(&mut self, simulation: &Simulation, drop_silently: bool) {
        self.listeners.clear();
        let mine: Vec<u64> =
            self.endpoints.iter().filter(|(_, endpoint)| endpoint.is_main).map(|(id, _)| *id).collect();
        for id in mine {
            let Some(endpoint) = self.endpoints.remove(&id) else { continue };
            if !drop_silently {
                let delay = simulation.between(simulation.config().net_delay_ns);
                simulation.at(delay, Event::Net(Delivery { to: endpoint.peer, what: What::Reset }));
            }
        }
    }
}

fn send(simulation: &Simulation, net: &mut Net, to: u64, what: What) {
    let Some(endpoint) = net.endpoints.get_mut(&to) else { return };
    let delay = simulation.between(simulation.config().net_delay_ns);
    let time = (simulation.now_ns() + delay).max(endpoint.last_delivery_ns);
    endpoint.last_delivery_ns = time;
    simulation.at_time(time, Event::Net(Delivery { to, what }));
}

pub(super) fn deliver(simulation: &Simulation, delivery: Delivery) {
    let Delivery { to, what } = delivery;
    let mut net = simulation.net.borrow_mut();
    let Some(endpoint) = net.endpoints.get_mut(&to) else { return };
    let mut cut = None;
    match what {
        What::Bytes(mut bytes) => {
            endpoint.on_the_way -= bytes.len().min(endpoint.on_the_way);
            if endpoint.is_cut {
                bytes.clear();
            } else if simulation.one_in(simulation.config().cut_one_in) {
                bytes.truncate(simulation.random() as usize % bytes.len());
                cut = Some(endpoint.peer);
                endpoint.is_cut = true;
                simulation.count("connection cut");
            }
            let sum = bytes.iter().fold(0u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(*byte)));
            simulation.note(sum, || format!("{} bytes for {}", bytes.len(), endpoint.local));
            endpoint.inbox.extend(bytes);
        }
        // The end would stand for bytes that were lost.
        What::End => endpoint.has_ended |= !endpoint.is_cut,
        What::Reset => endpoint.is_reset = true,
    }
    let is_over = endpoint.has_ended || endpoint.is_reset;
    let is_reset = endpoint.is_reset;
    let (registration, key) = (endpoint.registration, endpoint.key);
    if let Some(peer) = cut {
        for side in [to, peer] {
            send(simulation, &mut net, side, What::Reset);
        }
    }
    drop(net);
    simulation.make_ready(registration, |ready| {
        ready.readable = true;
        ready.read_closed |= is_over;
        ready.writable |= is_reset;
    });
    simulation.wake(key, true);
}

fn simulation() -> io::Result<std::rc::Rc<Simulation>> {
    current().ok_or_else(|| io::Error::other("the simulation is over"))
}

fn reset() -> io::Error {
    io::Error::from(io::ErrorKind::ConnectionReset)
}

/// A simulated listener.
pub(crate) struct Listener {
    address: SocketAddr,
    id: u64,
}

impl Listener {
    pub(crate) fn bind(mut address: SocketAddr) -> io::Result<Self> {
        let simulation = simulation()?;
        let mut net = simulation.net.borrow_mut();
        while address.port() == 0 || net.listeners.contains_key(&address) {
            if address.port() != 0 {
                return Err(io::Error::from(io::ErrorKind::AddrInUse));
            }
            net.next_port += 1;
            address.set_port(10_000 + net.next_port);
        }
        let id = simulation.new_id();
        net.listeners.insert(address, Backlog { id, waiting: VecDeque::new(), registration: None });
        Ok(Listener { address, id })
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn accept(&self) -> io::Result<(Stream, SocketAddr)> {
        let simulation = simulation()?;
        let mut net = simulation.net.borrow_mut();
        let backlog = net.listeners.get_mut(&self.address).filter(|backlog| backlog.id == self.id);
        let id = backlog.and_then(|backlog| backlog.waiting.pop_front()).ok_or(io::ErrorKind::WouldBlock)?;
        let remote = net.endpoints.get(&id).map(|endpoint| endpoint.remote).ok_or(io::ErrorKind::WouldBlock)?;
        Ok((Stream { id }, remote))
    }

    pub(crate) fn register(&self, registration: Option<(u64, usize)>) -> io::Result<()> {
        let simulation = simulation()?;
        let mut is_waiting = false;
        if let Some(backlog) = simulation.net.borrow_mut().listeners.get_mut(&self.address) {
            backlog.registration = registration;
            is_waiting = !backlog.waiting.is_empty();
        }
        if is_waiting {
            simulation.make_ready(registration, |ready| ready.readable = true);
        }
        Ok(())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let Some(simulation) = current() else { return };
        let mut net = simulation.net.borrow_mut();
        if net.listeners.get(&self.address).is_some_and(|backlog| backlog.id == self.id) {
            net.listeners.remove(&self.address);
        }
    }
}

/// One side of a simulated connection.
pub(crate) struct Stream {
    id: u64,
}

impl Stream {
    /// Connects to a listener of the main thread's process. Errors: nobody listens.
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Self> {
        let simulation = simulation()?;
        let mut net = simulation.net.borrow_mut();
        if !net.listeners.contains_key(&address) || simulation.is_killed() {
            return Err(io::Error::from(io::ErrorKind::ConnectionRefused));
        }
        net.next_port = net.next_port.wrapping_add(1);
        let own = SocketAddr::from((Ipv4Addr::LOCALHOST, 20_000u16.wrapping_add(net.next_port)));
        let (near, far) = (simulation.new_id(), simulation.new_id());
        let endpoint = |peer: u64, local: SocketAddr, remote: SocketAddr, is_main: bool| Endpoint {
            peer,
            local,
            remote,
            inbox: VecDeque::new(),
            on_the_way: 0,
            has_ended: false,
            is_reset: false,
            is_closed: false,
            last_delivery_ns: 0,
            registration: None,
            key: simulation.new_id(),
            is_main,
            is_full: false,
            is_cut: false,
        };
        // The main thread may be a client, too.
        let is_main = simulation.current.borrow().is_none();
        let (here, there) = (endpoint(far, own, address, is_main), endpoint(near, address, own, true));
        net.endpoints.insert(near, here);
        net.endpoints.insert(far, there);
        let backlog = net.listeners.get_mut(&address).expect("looked at above");
        backlog.waiting.push_back(far);
        let registration = backlog.registration;
        drop(net);
        simulation.make_ready(registration, |ready| ready.readable = true);
        Ok(Stream { id: near })
    }

    pub(crate) fn read(&self, out: &mut [u8]) -> io::Result<usize> {
        let simulation = simulation()?;
        let mut net = simulation.net.borrow_mut();
        let endpoint = net.endpoints.get_mut(&self.id).ok_or_else(reset)?;
        if endpoint.inbox.is_empty() || endpoint.is_reset {
            return match (endpoint.is_reset, endpoint.has_ended) {
                (true, _) => Err(reset()),
                (_, true) => Ok(0),
                _ => Err(io::Error::from(io::ErrorKind::WouldBlock)),
            };
        }
        let count = out.len().min(endpoint.inbox.len());
        for (slot, byte) in out.iter_mut().zip(endpoint.inbox.drain(..count)) {
            *slot = byte;
        }
        let peer = endpoint.peer;
        let Some(peer) = net.endpoints.get_mut(&peer).filter(|peer| peer.is_full) else { return Ok(count) };
        peer.is_full = false;
        let (registration, key) = (peer.registration, peer.key);
        drop(net);
        simulation.make_ready(registration, |ready| ready.writable = true);
        simulation.wake(key, true);
        Ok(count)
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let simulation = simulation()?;
        let mut net = simulation.net.borrow_mut();
        let endpoint = net.endpoints.get_mut(&self.id).ok_or_else(reset)?;
        if endpoint.is_reset || endpoint.is_closed {
            return Err(reset());
        }
        if endpoint.is_main && simulation.is_killed() {
            // Nobody is there who could send.
            return Ok(bytes.len());
        }
        if bytes.is_empty() {
            return Ok(0);
        }
        let peer_id = endpoint.peer;
        let Some(peer) = net.endpoints.get_mut(&peer_id) else {
            // The other machine knows nothing of this connection and says so, later.
            send(&simulation, &mut net, self.id, What::Reset);
            return Ok(bytes.len());
        };
        let taken = peer.inbox.len() + peer.on_the_way;
        let room = simulation.config().socket_bytes_max.saturating_sub(taken).min(bytes.len());
        if room == 0 {
            simulation.count("a socket was full");
            if let Some(endpoint) = net.endpoints.get_mut(&self.id) {
                endpoint.is_full = true;
            }
            return Err(io::Error::from(io::ErrorKind::WouldBlock));
        }
        // Now and then only a part is taken, or it travels in two pieces.
        let count = if simulation.one_in(20) { 1 + simulation.random() as usize % room } else { room };
        peer.on_the_way += count;
        if count < bytes.len() {
            simulation.count("a part of a write taken by a socket");
        }
        let split = if simulation.one_in(10) { simulation.random() as usize % count } else { 0 };
        for piece in [&bytes[..split], &bytes[split..count]] {
            if !piece.is_empty() {
                send(&simulation, &mut net, peer_id, What::Bytes(piece.to_vec()));
            }
        }
        Ok(count)
    }

    /// Ends both directions.
    pub(crate) fn close(&self) {
        let Some(simulation) = current() else { return };
        let mut net = simulation.net.borrow_mut();
        let Some(endpoint) = net.endpoints.get_mut(&self.id) else { return };
        if std::mem::replace(&mut endpoint.is_closed, true) {
            return;
        }
        let is_mute = endpoint.is_main && simulation.is_killed();
        let peer = endpoint.peer;
        if !is_mute {
            send(&simulation, &mut net, peer, What::End);
        }
    }

    pub(crate) fn peer_addr(&self) -> io::Result<SocketAddr> {
        let simulation = simulation()?;
        let net = simulation.net.borrow();
        net.endpoints.get(&self.id).map(|endpoint| endpoint.remote).ok_or_else(reset)
    }

    pub(crate) fn register(&self, registration: Option<(u64, usize)>) -> io::Result<()> {
        let simulation = simulation()?;
        let mut net = simulation.net.borrow_mut();
        let endpoint = net.endpoints.get_mut(&self.id).ok_or_else(reset)?;
        endpoint.registration = registration;
        let readable = !endpoint.inbox.is_empty() || endpoint.has_ended || endpoint.is_reset;
        let read_closed = endpoint.has_ended || endpoint.is_reset;
        drop(net);
        simulation.make_ready(registration, |ready| {
            ready.writable = true;
            ready.readable |= readable;
            ready.read_closed |= read_closed;
        });
        Ok(())
    }

    /// Waits until something can be read or written, at most so long. For threads that have a connection to themselves.
    pub(crate) fn wait(&self, timeout_ns: u64) -> io::Result<()> {
        let simulation = simulation()?;
        let key = simulation.net.borrow().endpoints.get(&self.id).map(|endpoint| endpoint.key).ok_or_else(reset)?;
        let until = simulation.now_ns() + timeout_ns;
        if simulation.wait(key, Some(until)) { Ok(()) } else { Err(io::Error::from(io::ErrorKind::TimedOut)) }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.close();
        if let Some(simulation) = current()
            && let Ok(mut net) = simulation.net.try_borrow_mut()
        {
            net.endpoints.remove(&self.id);
        }
    }
}
