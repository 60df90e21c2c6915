//! TLS over the sockets of this crate: who one is and whom one trusts (`settings`), and a connection's state between socket and bytes.
//!
//! ```text
//! socket --read--> sealed bytes --> Session --> plain bytes, alerts, the end
//! socket <--write- sealed bytes <-- Session <-- plain bytes
//! ```
//!
//! The protocol is `rustls`' with the algorithms of `ring`. A [`Session`] never waits: what a socket does not take stays in it. What is held of a
//! connection is bounded: unfinished handshakes by `rustls` (64 KiB of a message), bytes to be sent by [`SEALED_BYTES_MAX`].

mod settings;

pub use settings::{Acceptor, Connector, Parameters};

use rustls::Connection;
use rustls::pki_types::ServerName;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// Bytes that wait to be sent of one connection beyond what its socket has taken.
const SEALED_BYTES_MAX: usize = 64 << 10;
/// First bytes of a handshake: a record of that kind, and the version that all versions begin with.
const HANDSHAKE_RECORD: [u8; 2] = [0x16, 0x03];

/// True if these are the first bytes of a TLS client.
pub fn is_hello(bytes: &[u8]) -> bool {
    bytes.starts_with(&HANDSHAKE_RECORD)
}

/// One connection's TLS.
pub struct Session {
    connection: Connection,
    /// Plain bytes that were accepted and whose sealed form has not gone wholly.
    held: usize,
    /// Something has come from the other side.
    has_begun: bool,
    /// The other side has ended it.
    is_over: bool,
}

/// What was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes taken of those that were given.
    pub accepted: usize,
    /// Bytes, of these and earlier ones, that have gone to the socket.
    pub gone: usize,
}

impl Session {
    /// The side that was connected to. Errors: the library's.
    pub fn accept(acceptor: &Acceptor) -> io::Result<Self> {
        let connection = rustls::ServerConnection::new(Arc::clone(&acceptor.0)).map_err(io::Error::other)?;
        Ok(Self::new(connection.into()))
    }

    /// The same behind the first sealed bytes of the other side. Errors: the library's.
    pub fn accept_begun(acceptor: &Acceptor, mut first: &[u8]) -> io::Result<Self> {
        let mut session = Self::accept(acceptor)?;
        while !first.is_empty() {
            session.has_begun = true;
            if session.connection.read_tls(&mut first)? == 0 {
                break;
            }
        }
        Ok(session)
    }

    /// The side that connects. `host` is told to the other side if it is a name. Errors: the library's.
    pub fn connect(connector: &Connector, host: &str) -> io::Result<Self> {
        // A path is no name, and nothing is looked at for it.
        let unnamed = ServerName::from(IpAddr::from(Ipv4Addr::LOCALHOST));
        let name = ServerName::try_from(host.to_string()).unwrap_or(unnamed);
        let connection = rustls::ClientConnection::new(Arc::clone(&connector.0), name).map_err(io::Error::other)?;
        Ok(Self::new(connection.into()))
    }

    fn new(mut connection: Connection) -> Self {
        connection.set_buffer_limit(Some(SEALED_BYTES_MAX));
        Session { connection, held: 0, has_begun: false, is_over: false }
    }

    /// True until the handshake is done.
    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// True if sealed bytes wait for room in the socket.
    pub fn has_sealed(&self) -> bool {
        self.connection.wants_write()
    }

    /// True if the other side sends no more.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Goes on with the handshake as far as the socket allows. True when it is done. Errors: why it has failed; the other side is told.
    pub fn shake_hands(&mut self, mut socket: impl Read + Write) -> io::Result<bool> {
        loop {
            self.flush(&mut socket)?;
            if !self.connection.is_handshaking() {
                return Ok(true);
            }
            match self.take(&mut socket) {
                Ok(()) if self.is_over => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads plain bytes until `out` is full or the socket is empty; 0 at the end. Errors: `WouldBlock`; what is wrong with what came.
    pub fn read(&mut self, mut socket: impl Read + Write, out: &mut [u8]) -> io::Result<usize> {
        let mut count = 0;
        while count < out.len() {
            match self.connection.reader().read(&mut out[count..]) {
                Ok(0) => {
                    self.is_over = true;
                    break;
                }
                Ok(more) => {
                    count += more;
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // It has gone without saying so.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    self.is_over = true;
                    break;
                }
                Err(error) => return Err(error),
            }
            match self.take(&mut socket) {
                Ok(()) => {}
                Err(error) if count > 0 && error.kind() == ErrorKind::WouldBlock => break,
                // What has come whole is given first; the error comes again.
                Err(error) if count > 0 => {
                    tracing::debug!("TLS: {error}");
                    self.is_over = true;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }

    /// Takes sealed bytes of the socket once.
    fn take(&mut self, socket: &mut (impl Read + Write)) -> io::Result<()> {
        let mut first = First { socket: &mut *socket, bytes: [0; 2], count: 0, is_wanted: !self.has_begun };
        let taken = loop {
            match self.connection.read_tls(&mut first) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        let begins = first.bytes;
        if taken == 0 {
            self.is_over = true;
        }
        let is_first = !self.has_begun;
        self.has_begun |= taken > 0;
        let outcome = self.connection.process_new_packets();
        // Answers to the handshake, or why it ends.
        let flushed = self.flush(socket);
        match outcome {
            Ok(_) => flushed,
            // Records begin with their kind (20 to 24) and a version.
            Err(_) if is_first && taken >= 2 && !((20..=24).contains(&begins[0]) && begins[1] == 3) => {
                Err(io::Error::new(ErrorKind::InvalidData, "the other side does not speak TLS"))
            }
            Err(error) => Err(io::Error::new(ErrorKind::InvalidData, error)),
        }
    }

    /// Writes plain bytes as far as the socket takes them; nothing given writes what was left. Errors: the socket's.
    pub fn write(&mut self, mut socket: impl Write, bytes: &[u8]) -> io::Result<Written> {
        let mut written = Written::default();
        loop {
            self.flush(&mut socket)?;
            if self.has_sealed() {
                return Ok(written);
            }
            written.gone += std::mem::take(&mut self.held);
            if written.accepted == bytes.len() {
                return Ok(written);
            }
            self.held = self.connection.writer().write(&bytes[written.accepted..])?;
            if self.held == 0 {
                return Err(ErrorKind::WriteZero.into());
            }
            written.accepted += self.held;
        }
    }

    /// The version and the cipher that both sides have agreed on, by their names in OpenSSL: `TLSv1.3`, `TLS_AES_256_GCM_SHA384`.
    pub fn seal(&self) -> Option<(String, String)> {
        let version = match self.connection.protocol_version()? {
            rustls::ProtocolVersion::TLSv1_3 => "TLSv1.3",
            _ => "TLSv1.2",
        };
        let suite = format!("{:?}", self.connection.negotiated_cipher_suite()?.suite());
        let cipher = match suite.strip_prefix("TLS13_") {
            Some(rest) => format!("TLS_{rest}"),
            None => {
                let words = suite.trim_start_matches("TLS_").replace("WITH_", "").replace('_', "-");
                words.replace("AES-", "AES").replace("POLY1305-SHA256", "POLY1305")
            }
        };
        Some((version.to_string(), cipher))
    }

    /// Plain bytes that were accepted and have not gone.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Sends what is sealed, as far as the socket takes it. Errors: the socket's.
    pub fn flush(&mut self, socket: &mut impl Write) -> io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(socket) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Tells the other side that nothing more comes, if the socket takes it.
    pub fn say_goodbye(&mut self, mut socket: impl Write) {
        self.connection.send_close_notify();
        // One that is gone need not be told.
        let _ = self.flush(&mut socket);
    }
}

/// A socket whose first bytes are kept, to say what is wrong with them.
struct First<'a, S> {
    socket: &'a mut S,
    bytes: [u8; 2],
    count: usize,
    is_wanted: bool,
}

impl<S: Read> Read for First<'_, S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.socket.read(out)?;
        if self.is_wanted && self.count == 0 {
            self.count = count.min(2);
            self.bytes[..self.count].copy_from_slice(&out[..self.count]);
        }
        Ok(count)
    }
}

/// The two directions of bytes that somebody else carries: what has come is read, what is written is kept.
#[derive(Default)]
pub struct Pipe {
    /// Sealed bytes that have come.
    pub come: std::collections::VecDeque<u8>,
    /// No more will come.
    pub is_ended: bool,
    /// Sealed bytes to be sent.
    pub to_send: Vec<u8>,
}

impl Read for Pipe {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.come.read(out)? {
            0 if !out.is_empty() && !self.is_ended => Err(ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to_send.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
