//! Commands without a connection: for those who feed the parser with bytes of their own.

use super::BULK_BYTES_MAX;
use super::resp::{Parsed, parse};
use std::cell::Cell;

/// Cuts bytes into commands: their parts, in their order, and how many bytes they took. What follows is no whole command.
///
/// # Panics
///
/// If a command is not the same when it is looked at alone.
pub fn cut(input: &[u8], must_log_in: bool) -> (Vec<Vec<Vec<u8>>>, usize) {
    let must_log_in = Cell::new(must_log_in);
    let split = |bytes| parse(bytes, must_log_in.get(), BULK_BYTES_MAX);
    let (mut commands, mut at) = (Vec::new(), 0);
    while at < input.len() {
        match split(&input[at..]) {
            Parsed::Incomplete(_) => break,
            Parsed::Broken(text) => {
                assert!(!text.contains(['\r', '\n']), "an error is a line");
                break;
            }
            Parsed::Command(parts, length) => {
                assert!(length > 0 && length <= input.len() - at, "a command is somewhere");
                let alone = split(&input[at..at + length]);
                assert!(matches!(alone, Parsed::Command(again, whole) if again[..] == parts[..] && whole == length));
                if length > 1 {
                    let cut = split(&input[at..at + length - 1]);
                    assert!(!matches!(cut, Parsed::Command(_, whole) if whole == length), "it ends where it ends");
                }
                // Whoever logs in is let in: larger commands follow.
                if parts.first().is_some_and(|name| name.eq_ignore_ascii_case(b"auth")) {
                    must_log_in.set(false);
                }
                commands.push(parts.iter().map(|part| part.to_vec()).collect());
                at += length;
            }
        }
    }
    (commands, at)
}
