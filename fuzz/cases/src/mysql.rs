//! Doubts that bytes of a client of MySQL are cut into the same commands whatever follows them, and that its parameters and texts are read or refused.
//!
//! The input: the number of a type (one byte), then what the client sends.

/// One case.
pub fn run(input: &[u8]) {
    let Some((kind, rest)) = input.split_first() else { return };
    let taken = protocol::mysql::read_bytes(rest, *kind);
    assert!(taken <= rest.len(), "commands are made of what has come");
    let texts = sql::mysql_texts(rest, false).unwrap_or_default();
    assert!(texts.iter().all(|text| !text.is_empty()), "a statement has words");
}
