//! Scripts of sqllogictest's form (`tests/sql/slt`) through the doors of PostgreSQL and MySQL, with the answers of the real servers: `tests/sql/record.py` writes them.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::{Rig, root};
use sqllogictest::{DB, DBOutput, DefaultColumnType, Runner};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const OPEN: &str = "box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true })";
const PATIENCE: Duration = Duration::from_secs(20);

/// An error with its code before its words.
#[derive(Debug)]
struct Refused(String);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

type Answer = Result<DBOutput<DefaultColumnType>, Refused>;

/// Rows as the runner wants them. None: nulls.
fn shown(rows: Vec<Vec<Option<String>>>, columns: usize) -> DBOutput<DefaultColumnType> {
    let show = |value: Option<String>| match value {
        None => "NULL".to_string(),
        Some(text) if text.is_empty() => "(empty)".to_string(),
        Some(text) => text,
    };
    let rows = rows.into_iter().map(|row| row.into_iter().map(show).collect()).collect();
    DBOutput::Rows { types: vec![DefaultColumnType::Text; columns], rows }
}

/// Where a server listens for clients of somebody.
fn connect(rig: &mut Rig, whose: &str) -> TcpStream {
    let find = |log: &str| {
        let line = log.lines().find(|line| line.contains(&format!("with any client of {whose}")))?;
        Some(line.split_once("ready: connect to ")?.1.split(' ').next()?.to_string())
    };
    assert!(rig.server.wait(&mut rig.client, PATIENCE, |server| find(&server.log()).is_some()), "{}", rig.server.log());
    let stream = TcpStream::connect(find(&rig.server.log()).unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn exactly(stream: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

/// A client of PostgreSQL's simple queries.
struct Postgres(TcpStream);

impl Postgres {
    fn enter(mut stream: TcpStream) -> Self {
        let body = b"\0\x03\0\0user\0postgres\0database\0logic\0\0";
        stream.write_all(&[&(body.len() as u32 + 4).to_be_bytes()[..], body].concat()).unwrap();
        let mut client = Postgres(stream);
        while client.message().0 != b'Z' {}
        client
    }

    fn message(&mut self) -> (u8, Vec<u8>) {
        let head = exactly(&mut self.0, 5);
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        (head[0], exactly(&mut self.0, length - 4))
    }
}

impl DB for Postgres {
    type Error = Refused;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Answer {
        let length = (sql.len() as u32 + 5).to_be_bytes();
        self.0.write_all(&[b"Q", &length[..], sql.as_bytes(), b"\0"].concat()).unwrap();
        let mut answer = Ok(DBOutput::StatementComplete(0));
        let (mut rows, mut columns) = (Vec::new(), None);
        loop {
            let (kind, body) = self.message();
            match kind {
                b'Z' => break,
                b'E' => {
                    let parts = || body.split(|byte| *byte == 0);
                    let field = |wanted| parts().find(|part| part.first() == Some(&wanted)).unwrap_or_default();
                    let text = |wanted| String::from_utf8_lossy(&field(wanted)[1..]).into_owned();
                    answer = Err(Refused(format!("{}: {}", text(b'C'), text(b'M'))));
                }
                b'T' => columns = Some(usize::from(u16::from_be_bytes([body[0], body[1]]))),
                b'D' => {
                    let mut rest = &body[2..];
                    let mut row = Vec::new();
                    while let Some((length, more)) = rest.split_first_chunk::<4>() {
                        let (value, more) = match i32::from_be_bytes(*length) {
                            -1 => (None, more),
                            length => {
                                let (value, more) = more.split_at(length as usize);
                                (Some(String::from_utf8_lossy(value).into_owned()), more)
                            }
                        };
                        row.push(value);
                        rest = more;
                    }
                    rows.push(row);
                }
                _ => {}
            }
        }
        match columns {
            Some(columns) if answer.is_ok() => Ok(shown(rows, columns)),
            _ => answer,
        }
    }
}

/// A client of MySQL's texts.
struct Mysql(TcpStream);

impl Mysql {
    fn enter(stream: TcpStream) -> Self {
        let mut client = Mysql(stream);
        client.packet();
        // 4.1, a database, authentication by a plugin.
        let abilities: u32 = 1 | 1 << 3 | 1 << 9 | 1 << 13 | 1 << 15 | 1 << 19;
        let rest = b"root\0\0logic\0mysql_native_password\0";
        let body = [&abilities.to_le_bytes()[..], &[0, 0, 0, 1, 255], &[0; 23], rest].concat();
        client.send(1, &body);
        assert_eq!(client.packet()[0], 0);
        client
    }

    fn packet(&mut self) -> Vec<u8> {
        let head = exactly(&mut self.0, 4);
        exactly(&mut self.0, u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize)
    }

    fn send(&mut self, sequence: u8, body: &[u8]) {
        let [a, b, c, _] = (body.len() as u32).to_le_bytes();
        self.0.write_all(&[&[a, b, c, sequence][..], body].concat()).unwrap();
    }
}

fn refused(body: &[u8]) -> Refused {
    Refused(format!("{}: {}", u16::from_le_bytes([body[1], body[2]]), String::from_utf8_lossy(&body[9..])))
}

impl DB for Mysql {
    type Error = Refused;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Answer {
        self.send(0, &[b"\x03", sql.as_bytes()].concat());
        let first = self.packet();
        let columns = match first[0] {
            0xff => return Err(refused(&first)),
            0 => return Ok(DBOutput::StatementComplete(0)),
            count => usize::from(count),
        };
        // Columns, and the end of them.
        for _ in 0..=columns {
            self.packet();
        }
        let mut rows = Vec::new();
        loop {
            let body = self.packet();
            match body[0] {
                0xff => return Err(refused(&body)),
                0xfe if body.len() < 9 => return Ok(shown(rows, columns)),
                _ => {}
            }
            let (mut row, mut rest) = (Vec::new(), &body[..]);
            while let Some((&length, more)) = rest.split_first() {
                assert!(length <= 0xfb, "values are short here");
                let (value, more) = if length == 0xfb {
                    (None, more)
                } else {
                    more.split_at_checked(usize::from(length)).map(|(value, more)| (Some(value), more)).unwrap()
                };
                row.push(value.map(|value| String::from_utf8_lossy(value).into_owned()));
                rest = more;
            }
            rows.push(row);
        }
    }
}

/// Runs all scripts of a folder, each on a server of its own: what one leaves behind concerns no other, as when their answers were recorded.
fn run<D>(folder: &str, door: &str, client: &str, enter: impl Fn(TcpStream) -> D)
where
    D: DB<ColumnType = DefaultColumnType> + Send + 'static,
{
    let mut names: Vec<_> = std::fs::read_dir(root().join("tests/sql/slt").join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    names.sort();
    assert!(names.len() > 8, "{names:?}");
    let mut failures = Vec::new();
    for name in names {
        let mut rig = Rig::start(OPEN, &["--listen", &format!("{door}://127.0.0.1:0")]);
        let mut entered = Some(enter(connect(&mut rig, client)));
        let mut runner = Runner::new(|| std::future::ready(Ok(entered.take().expect("a script has one connection"))));
        for record in sqllogictest::parse_file::<DefaultColumnType>(name).unwrap() {
            failures.extend(runner.run(record).err().map(|error| error.to_string()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn scripts_are_answered_as_by_postgresql() {
    run("postgres", "postgres", "PostgreSQL", Postgres::enter);
}

#[test]
fn scripts_are_answered_as_by_mariadb() {
    run("mysql", "mysql", "MySQL", Mysql::enter);
}
