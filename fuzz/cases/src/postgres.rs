//! Doubts that bytes of a client of PostgreSQL are cut into the same messages whatever follows them, and that their values are read or refused.
//!
//! The input: the number of a type (two bytes), then what the client sends.

/// One case.
pub fn run(input: &[u8]) {
    let Some((oid, rest)) = input.split_first_chunk::<2>() else { return };
    let taken = protocol::postgres::read_bytes(rest, u32::from(u16::from_be_bytes(*oid)));
    assert!(taken <= rest.len(), "messages are made of what has come");
}
