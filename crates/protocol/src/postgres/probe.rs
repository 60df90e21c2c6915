//! Messages without a connection: for those who feed the parser with bytes of their own.

use super::message::{Found, MESSAGE_MAX, Reader, split};
use super::parameters::read_value;

/// Cuts bytes into messages, reads them as values of a type, and returns how many bytes were messages.
///
/// # Panics
///
/// If what is a message is none when it is looked at alone.
pub fn read_bytes(input: &[u8], oid: u32) -> usize {
    let (mut at, mut is_first) = (0, true);
    while let Found::Whole(message, length) = split(&input[at..], is_first, MESSAGE_MAX) {
        assert!(length > 0 && length <= input.len() - at, "a message is somewhere");
        let again = split(&input[at..at + length], is_first, MESSAGE_MAX);
        assert!(matches!(again, Found::Whole(other, whole) if whole == length && other.body == message.body));
        let mut reader = Reader(message.body);
        while reader.text().is_ok() {}
        for is_binary in [false, true] {
            let _ = read_value(message.body, oid, sql::Type::UNKNOWN, is_binary);
        }
        at += length;
        is_first = false;
    }
    at
}
