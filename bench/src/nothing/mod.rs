//! Servers that do nothing: they answer each message at once with what a statement or command of that form answers, made from its text alone.
//!
//! What a program gets from one of them is what the kernel and the client leave to any server of one thread, whatever it does for a statement.

mod mysql;
mod postgres;
mod redis;
mod statement;

use runtime::net::{Address, Listener, Poll, Stream, Token};
use std::io::{self, Read, Write};
use std::time::Duration;

const LISTENER: Token = Token(0);
/// Bytes of a client that have not been understood yet.
const INPUT_MAX: usize = 1 << 20;

/// What is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Protocol {
    Postgres,
    Mysql,
    Redis,
}

/// One side of a conversation.
trait Talk {
    /// What a client hears before it has said anything.
    fn greet(&mut self, out: &mut Vec<u8>);
    /// Answers the message at the beginning of `input`. Returns its length; none: it has not come as a whole.
    fn message(&mut self, input: &[u8], out: &mut Vec<u8>) -> Option<usize>;
}

struct Client {
    stream: Stream,
    input: Vec<u8>,
    talk: Box<dyn Talk>,
}

/// Serves at a port of 127.0.0.1 until it is killed. Errors: the port cannot be had.
pub(crate) fn serve(port: u16, protocol: Protocol) -> io::Result<()> {
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
                    let mut talk: Box<dyn Talk> = match protocol {
                        Protocol::Postgres => Box::new(postgres::Postgres::default()),
                        Protocol::Mysql => Box::new(mysql::Mysql::default()),
                        Protocol::Redis => Box::new(redis::Redis),
                    };
                    let mut greeting = Vec::new();
                    talk.greet(&mut greeting);
                    // Who is gone already is found out with the first reading.
                    let _ = (&stream).write_all(&greeting);
                    clients.push(Some(Client { stream, input: Vec::new(), talk }));
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
        while let Some(length) = self.talk.message(&self.input[taken..], &mut out) {
            taken += length;
        }
        self.input.drain(..taken);
        is_there && (out.is_empty() || (&self.stream).write_all(&out).is_ok())
    }
}
