//! Doubts that bytes of a client of Tokyo Tyrant, in any of its three protocols, are cut into the same requests whatever follows them, that rows stay
//! readable whatever they ask for, and that the process lives.
//!
//! The input: what the client sends.

use crate::memcached::{check_rows, open};

/// One case.
pub fn run(input: &[u8]) {
    let database = open();
    let admin = database.admin_context();
    let answers = protocol::tyrant::serve_bytes(&database, &admin, "items", input);
    check_rows(&database, &admin, usize::MAX);
    assert!(answers.len() <= 1 << 24, "an answer is bounded by what is asked");
}
