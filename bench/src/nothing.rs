//! A server of PostgreSQL's protocol that does nothing: it answers each message at once with what a statement that has changed one row answers.
//!
//! What `pgbench` gets from it, with a script of its own, is what the kernel and the client leave to any server of one thread, whatever it does for a
//! statement. (Messages: <https://www.postgresql.org/docs/current/protocol-message-formats.html>.)

use runtime::net::{Address, Listener, Poll, Stream, Token};
use std::io::{self, Read, Write};
use std::time::Duration;

const LISTENER: Token = Token(0);
/// Requests of a client to speak something else, which it is told to forget.
const TLS: i32 = 80_877_103;
const GSS: i32 = 80_877_104;
/// Bytes of a client that have not been understood yet.
const INPUT_MAX: usize = 1 << 20;

struct Client {
    stream: Stream,
    input: Vec<u8>,
    is_welcome: bool,
}

/// Serves at a port of 127.0.0.1 until it is killed. Errors: the port cannot be had.
pub(crate) fn serve(port: u16) -> io::Result<()> {
    let mut poll = Poll::new()?;
    let registry = poll.registry()?;
    let mut listener = Listener::bind(&Address::Tcp(([127, 0, 0, 1], port).into()))?;
    registry.register_listener(&mut listener, LISTENER)?;
    let mut clients: Vec<Option<Client>> = Vec::new();
    let (mut events, mut bytes) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        poll.poll(Duration::from_secs(1), &mut events)?;
        for event in events.drain(..) {
            if event.token == LISTENER {
                while let Ok((mut stream, _)) = listener.accept() {
                    stream.set_nodelay(true)?;
                    registry.register_stream(&mut stream, Token(1 + clients.len()))?;
                    clients.push(Some(Client { stream, input: Vec::new(), is_welcome: false }));
                }
                continue;
            }
            if let Some(slot) = clients.get_mut(event.token.0 - 1)
                && !slot.as_mut().is_none_or(|client| client.serve(&mut bytes))
            {
                *slot = None;
            }
        }
    }
}

impl Client {
    /// Answers what has come. False when it is gone, or what it says makes no sense.
    fn serve(&mut self, bytes: &mut [u8]) -> bool {
        let mut is_there = true;
        loop {
            match (&self.stream).read(bytes) {
                Ok(0) => {
                    is_there = false;
                    break;
                }
                Ok(got) => self.input.extend_from_slice(&bytes[..got]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return false,
            }
            if self.input.len() > INPUT_MAX {
                return false;
            }
        }
        let (mut out, mut taken) = (Vec::new(), 0);
        while let Some(length) = self.message(taken, &mut out) {
            taken += length;
        }
        self.input.drain(..taken);
        is_there && (out.is_empty() || (&self.stream).write_all(&out).is_ok())
    }

    /// Answers the message that begins there. Returns its length; none: it has not come as a whole.
    fn message(&mut self, start: usize, out: &mut Vec<u8>) -> Option<usize> {
        let input = self.input.get(start..)?;
        let number = |at: usize| Some(i32::from_be_bytes(input.get(at..at + 4)?.try_into().ok()?));
        if !self.is_welcome {
            let length = usize::try_from(number(0)?).ok().filter(|length| *length >= 8 && *length <= input.len())?;
            if matches!(number(4)?, TLS | GSS) {
                out.push(b'N');
                return Some(length);
            }
            self.is_welcome = true;
            put(out, b'R', &[0; 4]);
            for (name, value) in [("server_version", "15.0"), ("client_encoding", "UTF8")] {
                put(out, b'S', format!("{name}\0{value}\0").as_bytes());
            }
            put(out, b'K', &[0; 8]);
            put(out, b'Z', b"I");
            return Some(length);
        }
        let length = 1 + usize::try_from(number(1)?).ok().filter(|length| *length >= 4)?;
        input.get(..length)?;
        match input[0] {
            b'P' => put(out, b'1', b""),
            b'B' => put(out, b'2', b""),
            b'D' => put(out, b'n', b""),
            b'E' => put(out, b'C', b"UPDATE 1\0"),
            b'S' => put(out, b'Z', b"I"),
            b'Q' => {
                put(out, b'C', b"UPDATE 1\0");
                put(out, b'Z', b"I");
            }
            _ => {}
        }
        Some(length)
    }
}

fn put(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    out.push(kind);
    out.extend_from_slice(&(4 + body.len() as u32).to_be_bytes());
    out.extend_from_slice(body);
}
