//! Listeners and connections that never block: TCP, unix sockets, and simulated ones.

use super::Address;
use super::datagrams::{Datagrams, Exchange};
use super::unix::UnixListener;
use crate::simulation::{self, Listener as ListenerEnd, Stream as StreamEnd};
use std::io;
use std::net::Shutdown;
pub use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

/// Connections that may wait to be accepted; the system may have a lower bound of its own (`net.core.somaxconn`).
pub const BACKLOG: u32 = 4096;

/// Accepts connections; never blocks.
pub enum Listener {
    /// The system's, of TCP.
    Tcp(mio::net::TcpListener),
    /// The system's, at a path.
    Unix(UnixListener),
    /// The system's, of UDP: datagrams come, no connections.
    Udp(Arc<Datagrams>),
    /// Simulated.
    Simulated(SimulatedListener),
}

/// A connection; never blocks.
pub enum Stream {
    /// The system's, of TCP.
    Tcp(mio::net::TcpStream),
    /// The system's, over a unix socket.
    Unix(mio::net::UnixStream),
    /// Without a socket of its own.
    Exchange(Arc<dyn Exchange>),
    /// Simulated.
    Simulated(SimulatedStream),
}

/// The simulated half of a listener.
pub struct SimulatedListener(ListenerEnd);

/// The simulated half of a connection.
pub struct SimulatedStream(StreamEnd);

impl SimulatedListener {
    pub(super) fn register(&self, registration: Option<(u64, usize)>) -> io::Result<()> {
        self.0.register(registration)
    }
}

impl SimulatedStream {
    /// Connects to a simulated listener. Errors: `ConnectionRefused`.
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        StreamEnd::connect(address).map(SimulatedStream)
    }

    pub(super) fn register(&self, registration: Option<(u64, usize)>) -> io::Result<()> {
        self.0.register(registration)
    }

    /// Reads what is there; waits at most `timeout` for it. Returns 0 at the end. Errors: `TimedOut`, `ConnectionReset`.
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

impl Listener {
    /// Listens at an address; port 0 is any free one. A socket file that nobody listens at is replaced.
    ///
    /// Errors: the system's; `AddrInUse` if somebody listens there, `AlreadyExists` if another kind of file is there.
    pub fn bind(address: &Address) -> io::Result<Self> {
        let listener = match (simulation::current(), address) {
            (Some(_), Address::Tcp(address)) => {
                return Ok(Listener::Simulated(SimulatedListener(ListenerEnd::bind(*address)?)));
            }
            (Some(_), _) => return Err(io::Error::other("only TCP is simulated")),
            (None, Address::Udp(address)) => return Ok(Listener::Udp(Arc::new(Datagrams::bind(*address)?))),
            (None, Address::Tcp(address)) => Listener::Tcp(mio::net::TcpListener::bind(*address)?),
            (None, Address::Unix(path)) => Listener::Unix(UnixListener::bind(path)?),
        };
        listener.set_backlog(BACKLOG)?;
        Ok(listener)
    }

    /// Lets so many connections wait to be accepted, as far as the system does. Errors: the system's.
    pub fn set_backlog(&self, backlog: u32) -> io::Result<()> {
        self.raw_fd().map_or(Ok(()), |fd| listen_again(fd, backlog))
    }

    /// The next connection and who it is from. Errors: `WouldBlock`.
    pub fn accept(&self) -> io::Result<(Stream, Address)> {
        match self {
            Listener::Tcp(listener) => {
                listener.accept().map(|(stream, peer)| (Stream::Tcp(stream), Address::Tcp(peer)))
            }
            Listener::Unix(listener) => listener.accept().map(|stream| (Stream::Unix(stream), Address::unnamed())),
            // There is nobody to accept: who listens asks the socket itself.
            Listener::Udp(_) => Err(io::ErrorKind::WouldBlock.into()),
            Listener::Simulated(listener) => listener
                .0
                .accept()
                .map(|(stream, peer)| (Stream::Simulated(SimulatedStream(stream)), Address::Tcp(peer))),
        }
    }

    /// Where it listens. Errors: the system's.
    pub fn local_address(&self) -> io::Result<Address> {
        match self {
            Listener::Tcp(listener) => listener.local_addr().map(Address::Tcp),
            Listener::Unix(listener) => Ok(Address::Unix(listener.path().to_path_buf())),
            Listener::Udp(socket) => socket.local_address().map(Address::Udp),
            Listener::Simulated(listener) => Ok(Address::Tcp(listener.0.local_addr())),
        }
    }

    fn raw_fd(&self) -> Option<RawFd> {
        match self {
            Listener::Tcp(listener) => Some(listener.as_raw_fd()),
            Listener::Unix(listener) => Some(listener.socket().as_raw_fd()),
            Listener::Udp(_) | Listener::Simulated(_) => None,
        }
    }
}

/// The standard library listens with room for 128 connections; more of them that come at once would be refused.
#[expect(unsafe_code, reason = "listen(2)")]
fn listen_again(fd: RawFd, backlog: u32) -> io::Result<()> {
    let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
    // SAFETY: no pointers are involved; the caller's listener keeps the descriptor open.
    if unsafe { libc::listen(fd, backlog) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

impl Stream {
    /// True if all that will come has come with it.
    pub fn is_exchange(&self) -> bool {
        matches!(self, Stream::Exchange(_))
    }

    /// Begins to connect; [`Stream::finish_connect`] tells when it has. Errors: the system's.
    pub fn connect(address: &Address) -> io::Result<Self> {
        match (simulation::current(), address) {
            (Some(_), Address::Tcp(address)) => SimulatedStream::connect(*address).map(Stream::Simulated),
            (Some(_), _) => Err(io::Error::other("only TCP is simulated")),
            (None, Address::Udp(_)) => Err(io::Error::other("datagrams have no connections")),
            (None, Address::Tcp(address)) => mio::net::TcpStream::connect(*address).map(Stream::Tcp),
            (None, Address::Unix(path)) => mio::net::UnixStream::connect(path).map(Stream::Unix),
        }
    }

    /// True once a connection is made, false while it is under way. Errors: it cannot be made.
    pub fn finish_connect(&self) -> io::Result<bool> {
        let Stream::Tcp(stream) = self else { return Ok(true) };
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        match stream.peer_addr() {
            // A port that is asked for while nobody listens may be given to the very socket that asks: then it talks to itself.
            Ok(peer) if stream.local_addr()? == peer => Err(io::ErrorKind::ConnectionRefused.into()),
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Small packets leave at once. Errors: the system's.
    pub fn set_nodelay(&self, is_on: bool) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.set_nodelay(is_on),
            Stream::Unix(_) | Stream::Exchange(_) | Stream::Simulated(_) => Ok(()),
        }
    }

    /// The address of the other side. Errors: the system's.
    pub fn peer_address(&self) -> io::Result<Address> {
        match self {
            Stream::Tcp(stream) => stream.peer_addr().map(Address::Tcp),
            Stream::Unix(_) | Stream::Exchange(_) => Ok(Address::unnamed()),
            Stream::Simulated(stream) => stream.0.peer_addr().map(Address::Tcp),
        }
    }

    /// Ends the direction to the other side, behind what was written. Errors: the system's.
    pub fn close_write(&self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
            // It ends as a whole.
            Stream::Exchange(_) => Ok(()),
            Stream::Simulated(_) => self.close(),
        }
    }

    /// Ends both directions. Errors: the system's.
    pub fn close(&self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
            Stream::Exchange(exchange) => {
                exchange.close();
                Ok(())
            }
            Stream::Simulated(stream) => {
                stream.0.close();
                Ok(())
            }
        }
    }

    pub(super) fn raw_fd(&self) -> Option<RawFd> {
        match self {
            Stream::Tcp(stream) => Some(stream.as_raw_fd()),
            Stream::Unix(stream) => Some(stream.as_raw_fd()),
            Stream::Exchange(_) | Stream::Simulated(_) => None,
        }
    }
}

impl io::Read for &Stream {
    #[inline]
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => (&*stream).read(out),
            Stream::Unix(stream) => (&*stream).read(out),
            Stream::Exchange(exchange) => exchange.read(out),
            Stream::Simulated(stream) => stream.0.read(out),
        }
    }
}

impl io::Write for &Stream {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => (&*stream).write(bytes),
            Stream::Unix(stream) => (&*stream).write(bytes),
            Stream::Exchange(exchange) => exchange.write(bytes),
            Stream::Simulated(stream) => stream.0.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
