//! A client of MySQL's protocol, packet by packet.
#![allow(clippy::unwrap_used, reason = "what is wrong ends the test")]

use crate::Rig;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A script for the server's own administrator, so that guest may evaluate.
const OPEN: &str = "box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true })";
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(20);
/// What the client can do: as usual, with several statements in one text.
pub const ABILITIES: u32 = 1 | 1 << 2 | 1 << 3 | 1 << 9 | 1 << 13 | 1 << 15 | 1 << 16 | 1 << 17 | 1 << 19;
/// It counts rows that were found, not those that were changed.
pub const FOUND_ROWS: u32 = 1 << 1;

/// It sends files.
pub const LOCAL_FILES: u32 = 1 << 7;
/// Packets are compressed.
pub const COMPRESSION: u32 = 1 << 5;

/// A server with a listener of MySQL.
pub fn start() -> Rig {
    Rig::start(OPEN, &["--listen", "mysql://127.0.0.1:0"])
}

/// Where a server listens for clients of MySQL.
pub fn address(rig: &mut Rig) -> String {
    let find = |log: &str| {
        let line = log.lines().find(|line| line.contains("with any client of MySQL"))?;
        Some(line.split_once("ready: connect to ")?.1.split(' ').next()?.to_string())
    };
    assert!(rig.server.wait(&mut rig.client, PATIENCE, |server| find(&server.log()).is_some()), "{}", rig.server.log());
    find(&rig.server.log()).unwrap()
}

/// A client of MySQL's packets.
pub struct Mysql {
    /// Its connection.
    pub stream: TcpStream,
    /// What proofs of a password are made with.
    pub salt: [u8; 20],
}

/// A number in one to nine bytes.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let (first, rest) = bytes.split_first().unwrap();
    let count = match first {
        0xfb => {
            *bytes = rest;
            return None;
        }
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        small => {
            *bytes = rest;
            return Some(u64::from(*small));
        }
    };
    let mut value = [0; 8];
    value[..count].copy_from_slice(&rest[..count]);
    *bytes = &rest[count..];
    Some(u64::from_le_bytes(value))
}

/// A text behind its length; none: null.
pub fn counted(bytes: &mut &[u8]) -> Option<String> {
    let count = number(bytes)? as usize;
    let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
    *bytes = &bytes[count..];
    Some(text)
}

/// The code, the state and the message of an error.
pub fn failure(body: &[u8]) -> String {
    let code = u16::from_le_bytes([body[1], body[2]]);
    format!("{code} {}: {}", String::from_utf8_lossy(&body[4..9]), String::from_utf8_lossy(&body[9..]))
}

impl Mysql {
    /// Connects to the listener.
    pub fn open(rig: &mut Rig) -> Self {
        Self::at(&address(rig))
    }

    /// Connects to an address, and reads the greeting.
    pub fn at(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut client = Mysql { stream, salt: [0; 20] };
        let (sequence, greeting) = client.packet().unwrap();
        assert_eq!((sequence, greeting[0]), (0, 10));
        let end = greeting.iter().position(|byte| *byte == 0).unwrap();
        assert!(greeting[1..end].starts_with(b"8.0.36-lycosa"));
        client.salt[..8].copy_from_slice(&greeting[end + 5..end + 13]);
        client.salt[8..].copy_from_slice(&greeting[end + 32..end + 44]);
        client
    }

    /// None: the connection has ended.
    pub fn packet(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head).ok()?;
        let mut body = vec![0; u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize];
        self.stream.read_exact(&mut body).ok()?;
        Some((head[3], body))
    }

    /// Sends bytes of its own. Who was told already that it is over is not told again.
    pub fn send(&mut self, sequence: u8, body: &[u8]) {
        let [a, b, c, _] = (body.len() as u32).to_le_bytes();
        let _ = self.stream.write_all(&[&[a, b, c, sequence][..], body].concat());
    }

    /// Says that no more will come, and reads up to the end: the server ends the connection, whatever it was told.
    pub fn finish(mut self) {
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
        let ended = self.stream.read_to_end(&mut Vec::new());
        let is_late = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
        assert!(!ended.as_ref().is_err_and(is_late), "the connection hangs");
    }

    /// Says who it is. Returns the answer.
    pub fn enter(&mut self, user: &str, proof: &[u8], method: &str, abilities: u32) -> Option<(u8, Vec<u8>)> {
        let mut body = abilities.to_le_bytes().to_vec();
        body.extend_from_slice(&[0, 0, 0, 1, 255]);
        body.extend_from_slice(&[0; 23]);
        body.extend_from_slice(format!("{user}\0").as_bytes());
        body.push(proof.len() as u8);
        body.extend_from_slice(proof);
        body.extend_from_slice(format!("shop\0{method}\0").as_bytes());
        self.send(1, &body);
        self.packet()
    }

    /// A session with more abilities than usual.
    pub fn with(rig: &mut Rig, more: u32) -> Self {
        Self::open(rig).entered(more)
    }

    /// The same of a connection.
    pub fn entered(self, more: u32) -> Self {
        let mut client = self;
        let (sequence, answer) = client.enter("root", b"", "mysql_native_password", ABILITIES | more).unwrap();
        assert_eq!((sequence, answer[0]), (2, 0), "{answer:?}");
        client
    }

    /// A session.
    pub fn to(rig: &mut Rig) -> Self {
        Self::with(rig, 0)
    }

    /// The answers to one command: rows, columns between commas; `ok` with the numbers of rows and of the last id; or an error. Results are between bars.
    pub fn answer(&mut self) -> String {
        let mut results = Vec::new();
        loop {
            let (mut at, first) = self.packet().unwrap();
            let mut next = |client: &mut Self| {
                let (sequence, body) = client.packet().unwrap();
                at = at.wrapping_add(1);
                assert_eq!(sequence, at, "packets are in order");
                body
            };
            let status = match first[0] {
                0xff => {
                    results.push(failure(&first));
                    return results.join(" | ");
                }
                0 => {
                    let mut rest = &first[1..];
                    let (rows, id) = (number(&mut rest).unwrap(), number(&mut rest).unwrap());
                    results.push(format!("ok {rows} {id}"));
                    u16::from_le_bytes([rest[0], rest[1]])
                }
                _ => {
                    let count = number(&mut &first[..]).unwrap();
                    for _ in 0..count {
                        assert_eq!(next(self)[..4], *b"\x03def");
                    }
                    assert_eq!(next(self)[0], 0xfe);
                    let mut rows = Vec::new();
                    let end = loop {
                        let body = next(self);
                        match body[0] {
                            0xff => {
                                results.push(failure(&body));
                                return results.join(" | ");
                            }
                            0xfe if body.len() < 9 => break body,
                            _ => {}
                        }
                        let mut rest = &body[..];
                        let columns = (0..count).map(|_| counted(&mut rest).unwrap_or_else(|| "null".to_string()));
                        rows.push(columns.collect::<Vec<_>>().join(","));
                    };
                    results.push(rows.join("; "));
                    u16::from_le_bytes([end[3], end[4]])
                }
            };
            if status & 8 == 0 {
                return results.join(" | ");
            }
        }
    }

    /// The answers to a text.
    pub fn ask(&mut self, sql: &str) -> String {
        self.send(0, &[b"\x03", sql.as_bytes()].concat());
        self.answer()
    }

    /// Prepares a statement. Returns its number and those of its columns and parameters.
    pub fn prepare(&mut self, sql: &str) -> Result<(u32, u16, u16), String> {
        self.send(0, &[b"\x16", sql.as_bytes()].concat());
        let (_, body) = self.packet().unwrap();
        if body[0] == 0xff {
            return Err(failure(&body));
        }
        let id = u32::from_le_bytes(body[1..5].try_into().unwrap());
        let (columns, params) = (u16::from_le_bytes([body[5], body[6]]), u16::from_le_bytes([body[7], body[8]]));
        for count in [params, columns] {
            for _ in 0..if count == 0 { 0 } else { count + 1 } {
                self.packet().unwrap();
            }
        }
        Ok((id, columns, params))
    }

    /// Runs a prepared statement with whole numbers. Returns the bodies of its rows or of the one answer.
    pub fn execute(&mut self, id: u32, flags: u8, params: &[i64]) -> Vec<Vec<u8>> {
        let mut body = vec![0x17];
        body.extend_from_slice(&id.to_le_bytes());
        body.extend_from_slice(&[flags, 1, 0, 0, 0]);
        if !params.is_empty() {
            body.extend(std::iter::repeat_n(0, params.len().div_ceil(8)));
            body.push(1);
            params.iter().for_each(|_| body.extend_from_slice(&[8, 0]));
            params.iter().for_each(|param| body.extend_from_slice(&param.to_le_bytes()));
        }
        self.send(0, &body);
        let (_, first) = self.packet().unwrap();
        if matches!(first[0], 0 | 0xff) {
            return vec![first];
        }
        for _ in 0..first[0] + 1 {
            self.packet().unwrap();
        }
        if flags == 1 { Vec::new() } else { self.rows().0 }
    }

    /// Rows up to their end, and its status.
    pub fn rows(&mut self) -> (Vec<Vec<u8>>, u16) {
        let mut rows = Vec::new();
        loop {
            let (_, body) = self.packet().unwrap();
            match body[0] {
                0xfe if body.len() < 9 => return (rows, u16::from_le_bytes([body[3], body[4]])),
                0xff => panic!("{}", failure(&body)),
                _ => rows.push(body),
            }
        }
    }

    /// Rows of a cursor, as [`Mysql::rows`].
    pub fn fetch(&mut self, id: u32, count: u32) -> (Vec<Vec<u8>>, u16) {
        self.send(0, &[&[0x1c][..], &id.to_le_bytes(), &count.to_le_bytes()].concat());
        self.rows()
    }
}
