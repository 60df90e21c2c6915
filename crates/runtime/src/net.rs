//! Sockets and readiness.
//!
//! The real half is `mio`, edge triggered; the simulated half is used by whoever makes these objects inside a
//! [`Simulation`](crate::Simulation).

mod address;
mod datagrams;
mod dial;
mod endpoint;
mod sockets;
mod unix;

use crate::notify::Notifier;
use crate::simulation;
pub use address::Address;
pub use datagrams::{DATAGRAM_BYTES_MAX, Datagrams, Exchange};
pub use dial::{BlockingStream, connect};
pub use endpoint::Endpoint;
pub use sockets::{BACKLOG, Listener, SimulatedListener, SimulatedStream, SocketAddr, Stream};
use std::io;
use std::os::fd::RawFd;
use std::time::{Duration, Instant};
pub use unix::UnixListener;

/// Names a source of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token(pub usize);

/// Something happened at a source.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Which source.
    pub token: Token,
    /// It can be read.
    pub is_readable: bool,
    /// It can be written.
    pub is_writable: bool,
    /// The other side sends no more.
    pub is_read_closed: bool,
}

/// Waits for events of many sources.
pub enum Poll {
    /// The system's.
    System(mio::Poll, mio::Events),
    /// Simulated; its name.
    Simulated(u64),
}

/// Where sources are registered.
pub enum Registry {
    /// The system's.
    System(mio::Registry),
    /// Simulated; the name of its poll.
    Simulated(u64),
}

/// Events found in one go by the system, at most.
const EVENTS_MAX: usize = 1024;

impl Poll {
    /// A poll without sources. Errors: the system's.
    pub fn new() -> io::Result<Self> {
        match simulation::current() {
            Some(simulation) => Ok(Poll::Simulated(simulation.new_poll())),
            None => Ok(Poll::System(mio::Poll::new()?, mio::Events::with_capacity(EVENTS_MAX))),
        }
    }

    /// Where its sources are registered. Errors: the system's.
    pub fn registry(&self) -> io::Result<Registry> {
        match self {
            Poll::System(poll, _) => Ok(Registry::System(poll.registry().try_clone()?)),
            Poll::Simulated(poll) => Ok(Registry::Simulated(*poll)),
        }
    }

    /// Waits for events, at most so long, and adds them to `found`. An interruption finds none. Errors: the system's.
    pub fn poll(&mut self, timeout: Duration, found: &mut Vec<Event>) -> io::Result<()> {
        match self {
            Poll::System(poll, events) => {
                match poll.poll(events, Some(timeout)) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
                    other => other?,
                }
                found.extend(events.iter().map(|event| Event {
                    token: Token(event.token().0),
                    is_readable: event.is_readable(),
                    is_writable: event.is_writable(),
                    is_read_closed: event.is_read_closed(),
                }));
            }
            Poll::Simulated(poll) => {
                let simulation = simulation::current().ok_or_else(|| io::Error::other("the simulation is over"))?;
                let ready = simulation.poll(*poll, Some(timeout.as_nanos() as u64))?;
                found.extend(ready.into_iter().map(|(token, ready)| Event {
                    token: Token(token),
                    is_readable: ready.readable,
                    is_writable: ready.writable,
                    is_read_closed: ready.read_closed,
                }));
            }
        }
        Ok(())
    }

    /// The same for a caller who expects something so soon that its processor should not go to sleep: looks again and again for `spin`
    /// before it waits. Returns how long it took until something came or the time was over; nothing in a simulation, where looking takes no time.
    ///
    /// Errors: the system's.
    pub fn poll_eagerly(&mut self, spin: Duration, timeout: Duration, found: &mut Vec<Event>) -> io::Result<Duration> {
        if matches!(self, Poll::Simulated(_)) {
            return self.poll(timeout, found).map(|()| Duration::ZERO);
        }
        let start = Instant::now();
        while start.elapsed() < spin {
            self.poll(Duration::ZERO, found)?;
            if !found.is_empty() {
                return Ok(start.elapsed());
            }
            std::hint::spin_loop();
        }
        self.poll(timeout, found)?;
        Ok(start.elapsed())
    }
}

/// What is watched at a connection.
const BOTH: mio::Interest = mio::Interest::READABLE.add(mio::Interest::WRITABLE);

fn mixed() -> io::Error {
    io::Error::other("a real and a simulated object do not go together")
}

impl Registry {
    /// Watches for connections to accept. Errors: the system's.
    pub fn register_listener(&self, listener: &mut Listener, token: Token) -> io::Result<()> {
        match (self, listener) {
            (Registry::System(registry), Listener::Tcp(listener)) => {
                registry.register(listener, mio::Token(token.0), mio::Interest::READABLE)
            }
            (Registry::System(registry), Listener::Unix(listener)) => {
                registry.register(listener.socket_mut(), mio::Token(token.0), mio::Interest::READABLE)
            }
            (Registry::System(registry), Listener::Udp(socket)) => match std::sync::Arc::get_mut(socket) {
                Some(socket) => registry.register(socket.socket_mut(), mio::Token(token.0), mio::Interest::READABLE),
                None => Err(io::Error::other("a socket is registered before it is shared")),
            },
            (Registry::Simulated(poll), Listener::Simulated(listener)) => listener.register(Some((*poll, token.0))),
            _ => Err(mixed()),
        }
    }

    /// Watches a connection for reading and writing. Errors: the system's.
    pub fn register_stream(&self, stream: &mut Stream, token: Token) -> io::Result<()> {
        match (self, stream) {
            (Registry::System(registry), Stream::Tcp(stream)) => registry.register(stream, mio::Token(token.0), BOTH),
            (Registry::System(registry), Stream::Unix(stream)) => registry.register(stream, mio::Token(token.0), BOTH),
            (Registry::Simulated(poll), Stream::Simulated(stream)) => stream.register(Some((*poll, token.0))),
            // Nothing happens there that is not known.
            (_, Stream::Exchange(_)) => Ok(()),
            _ => Err(mixed()),
        }
    }

    /// Watches for notifications. Errors: the system's.
    pub fn register_notifier(&self, notifier: &Notifier, token: Token) -> io::Result<()> {
        match self {
            Registry::System(registry) => {
                let fd = notifier.raw_fd().ok_or_else(mixed)?;
                registry.register(&mut mio::unix::SourceFd(&fd), mio::Token(token.0), mio::Interest::READABLE)
            }
            Registry::Simulated(poll) => notifier.register(*poll, token.0),
        }
    }

    /// Watches a descriptor for reading and writing. Errors: it cannot be watched; inside a simulation, which has none.
    pub(crate) fn register_descriptor(&self, fd: RawFd, token: Token) -> io::Result<()> {
        match self {
            Registry::System(registry) => registry.register(&mut mio::unix::SourceFd(&fd), mio::Token(token.0), BOTH),
            Registry::Simulated(_) => Err(mixed()),
        }
    }

    /// Has the poll report anew what a watched descriptor is ready for. Errors: it is not watched.
    pub(crate) fn renew_descriptor(&self, fd: RawFd, token: Token) -> io::Result<()> {
        match self {
            Registry::System(registry) => registry.reregister(&mut mio::unix::SourceFd(&fd), mio::Token(token.0), BOTH),
            Registry::Simulated(_) => Err(mixed()),
        }
    }

    /// Watches a descriptor no longer.
    pub(crate) fn deregister_descriptor(&self, fd: RawFd) -> io::Result<()> {
        match self {
            Registry::System(registry) => registry.deregister(&mut mio::unix::SourceFd(&fd)),
            Registry::Simulated(_) => Err(mixed()),
        }
    }

    /// Watches a listener no longer. Errors: the system's.
    pub fn deregister_listener(&self, listener: &mut Listener) -> io::Result<()> {
        match (self, listener) {
            (Registry::System(registry), Listener::Tcp(listener)) => registry.deregister(listener),
            (Registry::System(registry), Listener::Unix(listener)) => registry.deregister(listener.socket_mut()),
            (Registry::System(registry), Listener::Udp(socket)) => {
                registry.deregister(&mut mio::unix::SourceFd(&socket.raw_fd()))
            }
            (_, Listener::Simulated(listener)) => listener.register(None),
            _ => Err(mixed()),
        }
    }

    /// Watches a connection no longer. Errors: the system's.
    pub fn deregister_stream(&self, stream: &Stream, token: Token) -> io::Result<()> {
        match (self, stream) {
            (_, Stream::Exchange(_)) => Ok(()),
            (Registry::System(registry), stream) => {
                let fd = stream.raw_fd().ok_or_else(mixed)?;
                registry.deregister(&mut mio::unix::SourceFd(&fd))
            }
            (Registry::Simulated(poll), Stream::Simulated(stream)) => {
                stream.register(None)?;
                if let Some(simulation) = simulation::current() {
                    simulation.forget_token(*poll, token.0);
                }
                Ok(())
            }
            _ => Err(mixed()),
        }
    }
}

/// Ends the sleep of a poll from any thread.
pub enum Waker {
    /// The system's.
    System(mio::Waker),
    /// Simulated; its poll and token.
    Simulated(u64, usize),
}

impl Waker {
    /// A waker of the registry's poll. Errors: the system's.
    pub fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        match registry {
            Registry::System(registry) => Ok(Waker::System(mio::Waker::new(registry, mio::Token(token.0))?)),
            Registry::Simulated(poll) => Ok(Waker::Simulated(*poll, token.0)),
        }
    }

    /// Ends the sleep. Errors: the system's.
    pub fn wake(&self) -> io::Result<()> {
        match self {
            Waker::System(waker) => waker.wake(),
            Waker::Simulated(poll, token) => {
                if let Some(simulation) = simulation::current() {
                    simulation.make_ready(Some((*poll, *token)), |ready| ready.readable = true);
                }
                Ok(())
            }
        }
    }
}
