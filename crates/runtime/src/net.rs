//! Sockets and readiness.
//!
//! The real half is `mio`; its types are used by the crates above under these names, so that there is one place to put a
//! simulated half behind.

pub use mio::event::Source;
pub use mio::net::{TcpListener, TcpStream};
pub use mio::unix::SourceFd;
pub use mio::{Events, Interest, Poll, Registry, Token, Waker};

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
