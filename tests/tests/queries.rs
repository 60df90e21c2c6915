//! Queries in PostgreSQL's dialect through the real binary, answered as PostgreSQL 15 has answered them: `tests/sql/postgres`.
#![allow(clippy::unwrap_used, reason = "a test")]

use lycosa_tests::Rig;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

/// A client of the simple protocol.
struct Client(TcpStream);

impl Client {
    fn open(rig: &mut Rig) -> Self {
        let find = |log: &str| {
            let line = log.lines().find(|line| line.contains("with any client of PostgreSQL"))?;
            Some(line.split_once("ready: connect to ")?.1.split(' ').next()?.to_string())
        };
        assert!(rig.server.wait(&mut rig.client, PATIENCE, |server| find(&server.log()).is_some()));
        let stream = TcpStream::connect(find(&rig.server.log()).unwrap()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut client = Client(stream);
        let first = b"\0\x03\0\0user\0postgres\0database\0shop\0\0";
        let length = (first.len() as u32 + 4).to_be_bytes();
        client.0.write_all(&[&length[..], first].concat()).unwrap();
        client.answer();
        client
    }

    /// Rows, columns between bars; or the state of the error.
    fn answer(&mut self) -> String {
        let mut found = String::new();
        loop {
            let mut head = [0; 5];
            self.0.read_exact(&mut head).unwrap();
            let mut body = vec![0; u32::from_be_bytes(head[1..].try_into().unwrap()) as usize - 4];
            self.0.read_exact(&mut body).unwrap();
            match head[0] {
                b'D' => writeln!(found, "{}", row(&body)).unwrap(),
                b'E' => {
                    let state = body.split(|byte| *byte == 0).find_map(|part| part.strip_prefix(b"C")).unwrap();
                    writeln!(found, "error {}", String::from_utf8_lossy(state)).unwrap();
                }
                b'Z' => return found,
                _ => {}
            }
        }
    }

    fn ask(&mut self, sql: &str) -> String {
        let length = (sql.len() as u32 + 5).to_be_bytes();
        self.0.write_all(&[b"Q", &length[..], sql.as_bytes(), b"\0"].concat()).unwrap();
        self.answer()
    }
}

fn row(body: &[u8]) -> String {
    let (mut at, mut columns) = (2, Vec::new());
    while at < body.len() {
        let length = i32::from_be_bytes(body[at..at + 4].try_into().unwrap());
        at += 4;
        let end = at + usize::try_from(length).unwrap_or(0);
        columns.push(match length {
            -1 => "NULL".to_string(),
            _ => String::from_utf8_lossy(&body[at..end]).replace('\n', "\\n"),
        });
        at = end;
    }
    columns.join("|")
}

#[test]
fn queries_are_answered_as_by_postgres() {
    let mut rig = Rig::start(
        "box.schema.user.grant('guest', 'super', nil, nil, { if_not_exists = true })",
        &["--listen", "postgres://127.0.0.1:0"],
    );
    let mut client = Client::open(&mut rig);
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/postgres");
    let mut scripts: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.sort();
    let mut differ = String::new();
    let mut count = 0;
    for script in scripts {
        let text = std::fs::read_to_string(&script).unwrap();
        for part in text.strip_prefix("> ").unwrap().split("\n> ") {
            let (statement, wanted) = part.split_once('\n').unwrap();
            let found = client.ask(statement);
            count += 1;
            if found.trim_end() != wanted.trim_end() {
                writeln!(differ, "{}: {statement}\nwanted:\n{wanted}found:\n{found}", script.display()).unwrap();
            }
        }
    }
    assert!(differ.is_empty(), "{differ}");
    assert!(count > 100, "{count} statements");
}
