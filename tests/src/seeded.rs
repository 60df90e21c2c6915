//! A server with rows of known spaces, and somebody else who has to be served whatever one client does.
#![allow(clippy::unwrap_used, reason = "what is wrong ends the test")]

use crate::{Client, Field, Seed, Server};
use runtime::SystemFiles;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tuple::msgpack;

/// The spaces that `seeded` makes.
const NUMBERS_ID: u32 = 600;
/// The space `words`.
const WORDS_ID: u32 = 601;
/// Collation `unicode_ci`.
const UNICODE_CI: u32 = 2;

/// A request that somebody else makes is answered within this, whatever happens. Generous, because the machine may be busy.
const PROMPT: Duration = Duration::from_secs(2);

/// A server with two spaces that everybody may use: 600 `numbers` ([unsigned, unsigned, any string]) and 601 `words` ([string] by
/// `unicode_ci`).
pub struct Seeded {
    /// The server.
    pub server: Server,
    /// Somebody else, who has been there all the time.
    pub witness: Client,
    _dir: TempDir,
}

impl Seeded {
    /// Somebody else, who has been there all the time, and a newcomer are served at once.
    pub fn others_are_served(&mut self) {
        others_are_served(&self.server, &mut self.witness);
    }
}

/// Fills a directory with the two spaces.
pub fn seed(dir: &Path) {
    let seed = Seed::open(Arc::new(SystemFiles), dir).unwrap();
    seed.create_space(NUMBERS_ID, "numbers").unwrap();
    let unsigned = "unsigned";
    seed.create_index(NUMBERS_ID, 0, "primary", "tree", &[(0, unsigned, None), (1, unsigned, None)]).unwrap();
    seed.create_index(NUMBERS_ID, 1, "second", "tree", &[(1, unsigned, None)]).unwrap();
    seed.create_space(WORDS_ID, "words").unwrap();
    seed.create_index(WORDS_ID, 0, "primary", "tree", &[(0, "string", Some(UNICODE_CI))]).unwrap();
    for id in 0..100 {
        seed.replace(NUMBERS_ID, &[id.into(), (id * 2).into(), Field::Str("some text")]).unwrap();
    }
    seed.open_to_guest().unwrap();
    seed.close().unwrap();
}

/// Starts a server on them.
pub fn seeded() -> Seeded {
    let dir = TempDir::new().unwrap();
    seed(dir.path());
    let server = Server::start_in(dir.path(), &[]);
    let witness = server.connect();
    Seeded { server, witness, _dir: dir }
}

/// Somebody who has been there all the time and a newcomer are served at once.
pub fn others_are_served(server: &Server, witness: &mut Client) {
    let begun = Instant::now();
    witness.ping();
    server.connect().ping();
    assert!(begun.elapsed() < PROMPT, "others waited {:?}", begun.elapsed());
}

/// A number as a value.
pub fn number(value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    msgpack::encode_uint(&mut out, value);
    out
}

/// The number of the space `numbers` as a value.
pub fn numbers() -> Vec<u8> {
    number(u64::from(NUMBERS_ID))
}

/// That of `words`.
pub fn words() -> Vec<u8> {
    number(u64::from(WORDS_ID))
}

/// Fields as a row.
pub fn array(fields: &[Field<'_>]) -> Vec<u8> {
    Seed::row(fields)
}
