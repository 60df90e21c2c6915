//! Where a socket is: a host and a port, or a path.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What a text begins with that names the path of a unix socket.
const UNIX: &str = "unix/:";
/// Longest path of a unix socket: the kernel has 108 bytes for it, of which one ends it.
const PATH_BYTES_MAX: usize = 107;
/// What the other side of a unix socket is called: it has no path.
const UNNAMED: &str = "(socket)";

/// Where a socket is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A host and a port.
    Tcp(SocketAddr),
    /// The same, of datagrams.
    Udp(SocketAddr),
    /// A path in the file system.
    Unix(PathBuf),
}

/// What stands in front of an address of datagrams where it is shown.
const UDP: &str = "udp:";

impl Address {
    /// The path that a text names if it names one: `unix/:/path`, or `/path`.
    pub fn unix_path(text: &str) -> Option<&Path> {
        let path = match text.strip_prefix(UNIX) {
            Some(path) => path,
            None if text.starts_with('/') => text,
            None => return None,
        };
        Some(Path::new(path))
    }

    /// What stands before the address in `login@address`, and the address. A path may have `@` in it, and so may a login.
    pub fn split_login(text: &str) -> (Option<&str>, &str) {
        let is_path = |at: &usize| Self::unix_path(&text[at + 1..]).is_some();
        let mut all = text.match_indices('@').map(|(at, _)| at);
        match Self::unix_path(text).is_some() {
            true => (None, text),
            false => match all.clone().find(is_path).or_else(|| all.next_back()) {
                Some(at) => (Some(&text[..at]), &text[at + 1..]),
                None => (None, text),
            },
        }
    }

    /// Addresses that a text such as `127.0.0.1:3301`, `localhost:3301`, `3301` (all interfaces), `unix/:/path` or `/path` stands for. May block
    /// for as long as a name server takes. Errors: the text is no address, or nobody knows the name.
    pub fn resolve(text: &str) -> io::Result<Vec<Address>> {
        if let Some(path) = Self::unix_path(text) {
            return Self::unix(path).map(|address| vec![address]);
        }
        if let Ok(port) = text.parse::<u16>() {
            return Ok(vec![Address::Tcp(SocketAddr::from(([0, 0, 0, 0], port)))]);
        }
        Ok(text.to_socket_addrs()?.map(Address::Tcp).collect())
    }

    /// The address of a unix socket. Errors: the path is empty, too long or has a zero byte.
    pub fn unix(path: &Path) -> io::Result<Address> {
        let bytes = path.as_os_str().as_bytes();
        let wrong = |text: String| Err(io::Error::new(ErrorKind::InvalidInput, text));
        match bytes.len() {
            0 => wrong("the path of the socket is empty".to_string()),
            length if length > PATH_BYTES_MAX => {
                wrong(format!("the path of a socket has at most {PATH_BYTES_MAX} bytes, this one has {length}"))
            }
            _ if bytes.contains(&0) => wrong("the path of a socket has no zero byte".to_string()),
            _ => Ok(Address::Unix(path.to_path_buf())),
        }
    }

    /// What the other side of a connection over a unix socket is called.
    pub(crate) fn unnamed() -> Address {
        Address::Unix(PathBuf::from(UNNAMED))
    }

    /// True if only clients on this machine can reach it.
    pub fn is_local(&self) -> bool {
        match self {
            Address::Tcp(address) | Address::Udp(address) => address.ip().is_loopback(),
            Address::Unix(_) => true,
        }
    }

    /// The port, of an address that has one.
    pub fn port(&self) -> Option<u16> {
        match self {
            Address::Tcp(address) | Address::Udp(address) => Some(address.port()),
            Address::Unix(_) => None,
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Udp(address) => write!(f, "{UDP}{address}"),
            Address::Unix(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Address::Tcp(address)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    #[test]
    fn a_text_is_a_port_a_host_with_a_port_or_a_path() {
        let one = |text: &str| Address::resolve(text).unwrap().remove(0).to_string();
        assert_eq!(one("3301"), "0.0.0.0:3301");
        assert_eq!(one("127.0.0.1:1"), "127.0.0.1:1");
        assert_eq!(one("[::1]:1"), "[::1]:1");
        assert_eq!(one("unix/:/tmp/a:b.sock"), "unix/:/tmp/a:b.sock");
        assert_eq!(one("/tmp/a.sock"), "unix/:/tmp/a.sock");
        assert_eq!(one("unix/:./a.sock"), "unix/:./a.sock");
        for wrong in
            ["", "unix/:", "unix/:/a\0b", &format!("/{}", "x".repeat(PATH_BYTES_MAX)), "127.0.0.1", "1.2.3.4:99999"]
        {
            assert!(Address::resolve(wrong).is_err(), "{wrong}");
        }
        assert!(Address::resolve(&format!("/{}", "x".repeat(PATH_BYTES_MAX - 1))).is_ok());
        assert_eq!(Address::split_login("u:a@b@host:1"), (Some("u:a@b"), "host:1"));
        assert_eq!(Address::split_login("u:a@unix/:/x@y"), (Some("u:a"), "unix/:/x@y"));
        assert_eq!(Address::split_login("/x@y"), (None, "/x@y"));
        assert_eq!(Address::split_login("3301"), (None, "3301"));
    }
}
