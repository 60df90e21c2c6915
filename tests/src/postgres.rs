//! A client of PostgreSQL's protocol, message by message.
#![allow(clippy::unwrap_used, reason = "what is wrong ends the test")]

use crate::Rig;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

/// A server with a listener of PostgreSQL, where guest may evaluate.
pub fn start_postgres() -> Rig {
    let open = "box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true })";
    Rig::start(open, &["--listen", "postgres://127.0.0.1:0"])
}

/// Where a server listens for clients of PostgreSQL, by the number of the listener among those.
pub fn postgres_address(rig: &mut Rig, at: usize) -> String {
    let find = |log: &str| {
        let line = log.lines().filter(|line| line.contains("with any client of PostgreSQL")).nth(at)?;
        Some(line.split_once("ready: connect to ")?.1.split(' ').next()?.to_string())
    };
    assert!(rig.server.wait(&mut rig.client, PATIENCE, |server| find(&server.log()).is_some()), "{}", rig.server.log());
    find(&rig.server.log()).unwrap()
}

/// A message of the server: its type, and what is in it.
pub type Message = (u8, Vec<u8>);

/// A client of PostgreSQL's messages.
pub struct Postgres(pub TcpStream);

/// Texts as messages have them.
pub fn text(parts: &[&str]) -> Vec<u8> {
    parts.iter().flat_map(|part| part.bytes().chain([0])).collect()
}

/// The fields of an error.
pub fn field(body: &[u8], wanted: u8) -> String {
    let mut parts = body.split(|byte| *byte == 0);
    let found = parts.find(|part| part.first() == Some(&wanted));
    found.map_or_else(String::new, |part| String::from_utf8_lossy(&part[1..]).into_owned())
}

impl Postgres {
    /// Connects to the first listener.
    pub fn open(rig: &mut Rig) -> Self {
        Self::open_at(rig, 0)
    }

    /// Connects to a listener.
    pub fn open_at(rig: &mut Rig, at: usize) -> Self {
        let stream = TcpStream::connect(postgres_address(rig, at)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Postgres(stream)
    }

    /// Sends the first message, without a type.
    pub fn first(&mut self, code: u32, body: &[u8]) {
        let length = (8 + body.len()) as u32;
        self.0.write_all(&[&length.to_be_bytes()[..], &code.to_be_bytes(), body].concat()).unwrap();
    }

    /// Enters as a user.
    pub fn to(rig: &mut Rig, user: &str) -> Self {
        Self::open(rig).enter(user)
    }

    /// Enters by a listener as its user.
    pub fn at(rig: &mut Rig, at: usize) -> Self {
        Self::open_at(rig, at).enter("somebody")
    }

    fn enter(self, user: &str) -> Self {
        let mut client = self;
        client.first(3 << 16, &[text(&["user", user, "database", "shop"]), vec![0]].concat());
        let welcome = client.until_ready();
        assert_eq!(welcome[0], (b'R', 0u32.to_be_bytes().to_vec()), "{welcome:?}");
        client
    }

    /// Sends a message.
    pub fn send(&mut self, kind: u8, body: &[u8]) {
        let length = (4 + body.len()) as u32;
        self.0.write_all(&[&[kind][..], &length.to_be_bytes(), body].concat()).unwrap();
    }

    /// None: the connection has ended.
    pub fn message(&mut self) -> Option<Message> {
        let mut head = [0; 5];
        self.0.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes(head[1..].try_into().unwrap()) as usize;
        let mut body = vec![0; length - 4];
        self.0.read_exact(&mut body).ok()?;
        Some((head[0], body))
    }

    /// The messages up to the one that says that the next statement may come.
    pub fn until_ready(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        while let Some(message) = self.message() {
            let is_last = message.0 == b'Z';
            messages.push(message);
            if is_last {
                return messages;
            }
        }
        panic!("the connection ended behind {messages:?}");
    }

    /// What a text is answered with.
    pub fn query(&mut self, sql: &str) -> Vec<Message> {
        self.send(b'Q', &text(&[sql]));
        self.until_ready()
    }

    /// Rows, columns between commas, and what completed them; or the state and the words of the error.
    pub fn ask(&mut self, sql: &str) -> String {
        let mut found = Vec::new();
        for (kind, body) in self.query(sql) {
            match kind {
                b'D' => found.push(row(&body)),
                b'C' => found.push(String::from_utf8_lossy(&body[..body.len() - 1]).into_owned()),
                b'E' => found.push(format!("{}: {}", field(&body, b'C'), field(&body, b'M'))),
                b'Z' => assert!(matches!(body[0], b'I' | b'T' | b'E')),
                _ => {}
            }
        }
        found.join("; ")
    }

    /// Whether a transaction is open, and fails.
    pub fn status(&mut self) -> u8 {
        self.send(b'S', &[]);
        self.until_ready().last().unwrap().1[0]
    }
}

/// A row of texts.
pub fn row(body: &[u8]) -> String {
    let (mut at, mut columns) = (2, Vec::new());
    while at < body.len() {
        let length = i32::from_be_bytes(body[at..at + 4].try_into().unwrap());
        at += 4;
        if length < 0 {
            columns.push("null".to_string());
            continue;
        }
        columns.push(String::from_utf8_lossy(&body[at..at + length as usize]).into_owned());
        at += length as usize;
    }
    columns.join(",")
}
