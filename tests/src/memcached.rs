//! A server that memcached's clients talk to, and one that says lines to it.
#![allow(clippy::unwrap_used, reason = "what is wrong ends the test")]

use crate::Rig;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A script for the server's own administrator, so that guest may evaluate.
pub const OPEN: &str = "box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true })";
/// How long an answer is waited for.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A server with a listener of memcached on the terms of a query.
pub fn start(query: &str) -> Rig {
    Rig::start(OPEN, &["--listen", &listener(query)])
}

/// What `--listen` is given for a listener on such terms.
pub fn listener(query: &str) -> String {
    format!("memcached://127.0.0.1:0{query}")
}

/// Where a server listens for memcached clients.
pub fn address(rig: &mut Rig) -> String {
    const READY: &str = "ready: connect to ";
    let find = |log: &str| {
        let line = log.lines().find(|line| line.contains("with any memcached client"))?;
        Some(line.split_once(READY)?.1.split(' ').next()?.to_string())
    };
    assert!(rig.server.wait(&mut rig.client, PATIENCE, |server| find(&server.log()).is_some()), "{}", rig.server.log());
    find(&rig.server.log()).unwrap()
}

/// A connection that says lines.
pub struct Talk(pub BufReader<TcpStream>);

impl Talk {
    /// Connects to the listener.
    pub fn to(rig: &mut Rig) -> Self {
        let stream = TcpStream::connect(address(rig)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Talk(BufReader::new(stream))
    }

    /// Sends bytes.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.get_ref().write_all(bytes.as_ref()).unwrap();
    }

    /// What is answered up to where the answers to a command begin that says `MN`.
    pub fn ask(&mut self, bytes: impl AsRef<[u8]>) -> String {
        self.send([bytes.as_ref(), b"mn\r\n"].concat());
        let mut answer = Vec::new();
        while !answer.ends_with(b"MN\r\n") {
            assert!(
                self.0.read_until(b'\n', &mut answer).unwrap() > 0,
                "closed behind {}",
                String::from_utf8_lossy(&answer)
            );
        }
        answer.truncate(answer.len() - 4);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Everything up to the end of the stream.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        match self.0.read_to_end(&mut rest) {
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            result => _ = result.unwrap(),
        }
        rest
    }
}

/// A command that stores a value.
pub fn set(key: &str, value: &str) -> String {
    format!("set {key} 0 0 {}\r\n{value}\r\n", value.len())
}

/// A packet of the binary protocol.
pub fn packet(opcode: u8, key: &[u8], extras: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x80, opcode, 0, key.len() as u8, extras.len() as u8, 0, 0, 0];
    bytes.extend_from_slice(&((key.len() + extras.len() + value.len()) as u32).to_be_bytes());
    bytes.extend_from_slice(&[1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0]);
    [&bytes, extras, key, value].concat()
}

/// The next answer: status and body.
pub fn receive(stream: &mut impl Read) -> (u16, Vec<u8>) {
    let mut header = [0; 24];
    stream.read_exact(&mut header).unwrap();
    assert_eq!((header[0], &header[12..16]), (0x81, &[1, 2, 3, 4][..]));
    let mut body = vec![0; u32::from_be_bytes(header[8..12].try_into().unwrap()) as usize];
    stream.read_exact(&mut body).unwrap();
    (u16::from_be_bytes([header[6], header[7]]), body)
}
