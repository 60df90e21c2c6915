//! Connections that block, for tools that have a thread to themselves.

use super::{Address, Stream};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// How often a unix socket with a full queue is asked again.
const AGAIN: Duration = Duration::from_millis(10);

/// A connection that blocks.
#[derive(Debug)]
pub enum BlockingStream {
    /// Of TCP.
    Tcp(std::net::TcpStream),
    /// Over a unix socket.
    Unix(std::os::unix::net::UnixStream),
}

/// Connects to the first of the addresses that a text stands for where somebody listens. Errors: the last address's.
pub fn connect(text: &str, timeout: Duration) -> io::Result<BlockingStream> {
    let mut last = io::Error::other("no such address");
    for address in Address::resolve(text)? {
        match connect_to(&address, timeout) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn connect_to(address: &Address, timeout: Duration) -> io::Result<BlockingStream> {
    match address {
        Address::Tcp(address) => {
            let stream = std::net::TcpStream::connect_timeout(address, timeout)?;
            // A port that is asked for while nobody listens may be given to the very socket that asks: then it talks to itself.
            if stream.local_addr()? == stream.peer_addr()? {
                return Err(ErrorKind::ConnectionRefused.into());
            }
            stream.set_nodelay(true)?;
            Ok(BlockingStream::Tcp(stream))
        }
        Address::Udp(_) => Err(io::Error::other("datagrams have no connections")),
        Address::Unix(path) => {
            let begun = Instant::now();
            loop {
                match mio::net::UnixStream::connect(path) {
                    // Its queue is full: the kernel has no wait with a bound for that.
                    Err(error) if error.kind() == ErrorKind::WouldBlock && begun.elapsed() < timeout => {
                        std::thread::sleep(AGAIN);
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
                    other => {
                        let stream = std::os::unix::net::UnixStream::from(OwnedFd::from(other?));
                        stream.set_nonblocking(false)?;
                        return Ok(BlockingStream::Unix(stream));
                    }
                }
            }
        }
    }
}

impl BlockingStream {
    /// Bounds each wait for bytes; none: no bound. Errors: the system's, and a bound of zero.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            BlockingStream::Tcp(stream) => stream.set_read_timeout(timeout),
            BlockingStream::Unix(stream) => stream.set_read_timeout(timeout),
        }
    }

    /// The same for room to write. Errors: the system's.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            BlockingStream::Tcp(stream) => stream.set_write_timeout(timeout),
            BlockingStream::Unix(stream) => stream.set_write_timeout(timeout),
        }
    }

    /// Says that nothing more will be sent. Errors: the system's.
    pub fn close_write(&self) -> io::Result<()> {
        match self {
            BlockingStream::Tcp(stream) => stream.shutdown(std::net::Shutdown::Write),
            BlockingStream::Unix(stream) => stream.shutdown(std::net::Shutdown::Write),
        }
    }

    /// True if the other side has not gone and has sent nothing that was not read.
    #[expect(unsafe_code, reason = "recv(2) that takes nothing: the standard library has it for TCP only")]
    pub fn is_idle(&self) -> bool {
        let fd = match self {
            BlockingStream::Tcp(stream) => stream.as_raw_fd(),
            BlockingStream::Unix(stream) => stream.as_raw_fd(),
        };
        let mut byte = 0u8;
        // SAFETY: one byte is written at most, to `byte`; the stream keeps the descriptor open.
        let got = unsafe { libc::recv(fd, (&raw mut byte).cast(), 1, libc::MSG_PEEK | libc::MSG_DONTWAIT) };
        got < 0 && io::Error::last_os_error().kind() == ErrorKind::WouldBlock
    }

    /// The same connection, which blocks no longer. Errors: the system's.
    pub fn into_nonblocking(self) -> io::Result<Stream> {
        Ok(match self {
            BlockingStream::Tcp(stream) => {
                stream.set_nonblocking(true)?;
                Stream::Tcp(mio::net::TcpStream::from_std(stream))
            }
            BlockingStream::Unix(stream) => {
                stream.set_nonblocking(true)?;
                Stream::Unix(mio::net::UnixStream::from_std(stream))
            }
        })
    }
}

impl Read for BlockingStream {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            BlockingStream::Tcp(stream) => stream.read(out),
            BlockingStream::Unix(stream) => stream.read(out),
        }
    }
}

impl Write for BlockingStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            BlockingStream::Tcp(stream) => stream.write(bytes),
            BlockingStream::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
