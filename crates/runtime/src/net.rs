//! Sockets and readiness.
//!
//! The real half is `mio`, edge triggered; the simulated half is used by whoever makes these objects inside a
//! [`Simulation`](crate::Simulation).

use crate::notify::Notifier;
use crate::simulation::{self, Listener, Stream};
use std::io;
use std::net::Shutdown;
pub use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

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

/// Connections that may wait to be accepted; the system may have a lower bound of its own (`net.core.somaxconn`).
const BACKLOG: i32 = 4096;
/// Events found in one go by the system, at most.
const EVENTS_MAX: usize = 1024;

impl Poll {
    /// A poll without sources.
    pub fn new() -> io::Result<Self> {
        match simulation::current() {
            Some(simulation) => Ok(Poll::Simulated(simulation.new_poll())),
            None => Ok(Poll::System(mio::Poll::new()?, mio::Events::with_capacity(EVENTS_MAX))),
        }
    }

    /// Where its sources are registered.
    pub fn registry(&self) -> io::Result<Registry> {
        match self {
            Poll::System(poll, _) => Ok(Registry::System(poll.registry().try_clone()?)),
            Poll::Simulated(poll) => Ok(Registry::Simulated(*poll)),
        }
    }

    /// Waits for events, at most so long, and adds them to `found`. An interruption finds none.
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

fn mixed() -> io::Error {
    io::Error::other("a real and a simulated object do not go together")
}

impl Registry {
    /// Watches for connections to accept.
    pub fn register_listener(&self, listener: &mut TcpListener, token: Token) -> io::Result<()> {
        match (self, listener) {
            (Registry::System(registry), TcpListener::System(listener)) => {
                registry.register(listener, mio::Token(token.0), mio::Interest::READABLE)
            }
            (Registry::Simulated(poll), TcpListener::Simulated(listener)) => listener.register(Some((*poll, token.0))),
            _ => Err(mixed()),
        }
    }

    /// Watches a connection for reading and writing.
    pub fn register_stream(&self, stream: &mut TcpStream, token: Token) -> io::Result<()> {
        match (self, stream) {
            (Registry::System(registry), TcpStream::System(stream)) => {
                let interest = mio::Interest::READABLE | mio::Interest::WRITABLE;
                registry.register(stream, mio::Token(token.0), interest)
            }
            (Registry::Simulated(poll), TcpStream::Simulated(stream)) => stream.register(Some((*poll, token.0))),
            _ => Err(mixed()),
        }
    }

    /// Watches for notifications.
    pub fn register_notifier(&self, notifier: &Notifier, token: Token) -> io::Result<()> {
        match self {
            Registry::System(registry) => {
                let fd = notifier.raw_fd().ok_or_else(mixed)?;
                registry.register(&mut mio::unix::SourceFd(&fd), mio::Token(token.0), mio::Interest::READABLE)
            }
            Registry::Simulated(poll) => notifier.register(*poll, token.0),
        }
    }

    /// Watches a listener no longer.
    pub fn deregister_listener(&self, listener: &mut TcpListener) -> io::Result<()> {
        match (self, listener) {
            (Registry::System(registry), TcpListener::System(listener)) => registry.deregister(listener),
            (_, TcpListener::Simulated(listener)) => listener.register(None),
            _ => Err(mixed()),
        }
    }

    /// Watches a connection no longer.
    pub fn deregister_stream(&self, stream: &TcpStream, token: Token) -> io::Result<()> {
        match (self, stream) {
            (Registry::System(registry), TcpStream::System(stream)) => {
                registry.deregister(&mut mio::unix::SourceFd(&stream.as_raw_fd()))
            }
            (Registry::Simulated(poll), TcpStream::Simulated(stream)) => {
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
    /// A waker of the registry's poll.
    pub fn new(registry: &Registry, token: Token) -> io::Result<Self> {
        match registry {
            Registry::System(registry) => Ok(Waker::System(mio::Waker::new(registry, mio::Token(token.0))?)),
            Registry::Simulated(poll) => Ok(Waker::Simulated(*poll, token.0)),
        }
    }

    /// Ends the sleep.
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

/// Accepts connections; never blocks.
pub enum TcpListener {
    /// The system's.
    System(mio::net::TcpListener),
    /// Simulated.
    Simulated(SimulatedListener),
}

/// A connection; never blocks.
pub enum TcpStream {
    /// The system's.
    System(mio::net::TcpStream),
    /// Simulated.
    Simulated(SimulatedStream),
}

/// The simulated half of a listener.
pub struct SimulatedListener(Listener);

/// The simulated half of a connection.
pub struct SimulatedStream(Stream);

impl SimulatedListener {
    fn register(&self, registration: Option<(u64, usize)>) -> io::Result<()> {
        self.0.register(registration)
    }
}

impl SimulatedStream {
    /// Connects to a simulated listener. Errors: `ConnectionRefused`.
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        Stream::connect(address).map(SimulatedStream)
    }

    fn register(&self, registration: Option<(u64, usize)>) -> io::Result<()> {
        self.0.register(registration)
    }

    /// Reads what is there; waits for it at most so long. 0 at the end. Errors: `TimedOut`, `ConnectionReset`.
    pub fn read(&self, out: &mut [u8], timeout: Duration) -> io::Result<usize> {
        loop {
            match self.0.read(out) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.0.wait(timeout.as_nanos() as u64)?,
                other => return other,
            }
        }
    }

    /// Writes everything; waits for room each time at most so long. Errors: `TimedOut`, `ConnectionReset`.
    pub fn write_all(&self, bytes: &[u8], timeout: Duration) -> io::Result<()> {
        let mut at = 0;
        while at < bytes.len() {
            match self.0.write(&bytes[at..]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.0.wait(timeout.as_nanos() as u64)?,
                other => at += other?,
            }
        }
        Ok(())
    }
}

impl TcpListener {
    /// Listens at an address; port 0 is any free one.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        match simulation::current() {
            Some(_) => Ok(TcpListener::Simulated(SimulatedListener(Listener::bind(address)?))),
            None => {
                let listener = mio::net::TcpListener::bind(address)?;
                listen_again(listener.as_raw_fd())?;
                Ok(TcpListener::System(listener))
            }
        }
    }

    /// The next connection and who it is from. Errors: `WouldBlock`.
    pub fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match self {
            TcpListener::System(listener) => listener.accept().map(|(stream, peer)| (TcpStream::System(stream), peer)),
            TcpListener::Simulated(listener) => {
                listener.0.accept().map(|(stream, peer)| (TcpStream::Simulated(SimulatedStream(stream)), peer))
            }
        }
    }

    /// Where it listens.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            TcpListener::System(listener) => listener.local_addr(),
            TcpListener::Simulated(listener) => Ok(listener.0.local_addr()),
        }
    }
}

impl TcpStream {
    /// A connection of [`connect`], which blocks no longer.
    pub fn of_blocking(stream: std::net::TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(TcpStream::System(mio::net::TcpStream::from_std(stream)))
    }

    /// Small packets leave at once.
    pub fn set_nodelay(&self, is_on: bool) -> io::Result<()> {
        match self {
            TcpStream::System(stream) => stream.set_nodelay(is_on),
            TcpStream::Simulated(_) => Ok(()),
        }
    }

    /// The address of the other side.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self {
            TcpStream::System(stream) => stream.peer_addr(),
            TcpStream::Simulated(stream) => stream.0.peer_addr(),
        }
    }

    /// Ends the direction to the other side, behind what was written.
    pub fn close_write(&self) -> io::Result<()> {
        match self {
            TcpStream::System(stream) => stream.shutdown(Shutdown::Write),
            TcpStream::Simulated(_) => self.close(),
        }
    }

    /// Ends both directions.
    pub fn close(&self) -> io::Result<()> {
        match self {
            TcpStream::System(stream) => stream.shutdown(Shutdown::Both),
            TcpStream::Simulated(stream) => {
                stream.0.close();
                Ok(())
            }
        }
    }
}

impl io::Read for &TcpStream {
    #[inline]
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            TcpStream::System(stream) => (&*stream).read(out),
            TcpStream::Simulated(stream) => stream.0.read(out),
        }
    }
}

impl io::Write for &TcpStream {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            TcpStream::System(stream) => (&*stream).write(bytes),
            TcpStream::Simulated(stream) => stream.0.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Gives a socket that listens already a longer queue than the library's.
#[expect(unsafe_code, reason = "listen(2)")]
fn listen_again(fd: std::os::fd::RawFd) -> io::Result<()> {
    // SAFETY: no pointers are involved; the caller's listener keeps the descriptor open.
    if unsafe { libc::listen(fd, BACKLOG) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Addresses that a text such as `127.0.0.1:3301`, `localhost:3301` or `3301` (all interfaces) stands for.
pub fn resolve(text: &str) -> std::io::Result<Vec<std::net::SocketAddr>> {
    use std::net::ToSocketAddrs;
    if let Ok(port) = text.parse::<u16>() {
        return Ok(vec![std::net::SocketAddr::from(([0, 0, 0, 0], port))]);
    }
    Ok(text.to_socket_addrs()?.collect())
}

/// A blocking connection, for tools that have a thread to themselves.
pub fn connect(address: &str, timeout: std::time::Duration) -> std::io::Result<std::net::TcpStream> {
    let mut last = std::io::Error::other("no such address");
    for address in resolve(address)? {
        match std::net::TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}
