//! Sockets of datagrams, and connections that are made of bytes: of a request that has come whole, whose answer leaves whole.

use std::io;
use std::net::SocketAddr;

/// A socket of UDP; never blocks.
pub struct Datagrams(mio::net::UdpSocket);

/// The most bytes that a datagram may have.
pub const DATAGRAM_BYTES_MAX: usize = 65_507;

impl Datagrams {
    /// Takes datagrams at an address; port 0 is any free one. Errors: the system's.
    pub(super) fn bind(address: SocketAddr) -> io::Result<Self> {
        mio::net::UdpSocket::bind(address).map(Datagrams)
    }

    /// The next datagram: its bytes in `buffer`, as far as they fit, and who it is from. Errors: `WouldBlock`, the system's.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.recv_from(buffer)
    }

    /// Sends one. Errors: the system's; `WouldBlock` if there is no room.
    pub fn send(&self, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
        self.0.send_to(bytes, to).map(drop)
    }

    /// Where it is. Errors: the system's.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    pub(super) fn raw_fd(&self) -> std::os::fd::RawFd {
        std::os::fd::AsRawFd::as_raw_fd(&self.0)
    }

    pub(super) fn socket_mut(&mut self) -> &mut mio::net::UdpSocket {
        &mut self.0
    }
}

/// What stands behind a connection that has no socket of its own.
pub trait Exchange: Send + Sync {
    /// Reads what has come; 0 at its end. Errors: there are none that pass.
    fn read(&self, out: &mut [u8]) -> io::Result<usize>;

    /// Takes bytes of the answer. Errors: it takes no more.
    fn write(&self, bytes: &[u8]) -> io::Result<usize>;

    /// The answer is whole. May be called several times.
    fn close(&self);
}
