//! Packets without a connection: for those who feed the parser with bytes of their own.

use super::load::next_line;
use super::packed::Packed;
use super::packet::{Found, PACKET_MAX, Reader, split};
use super::values::read_param;
use crate::packing::Packing;
use sql::Lines;

/// Cuts bytes into commands, reads them as values of a type, and returns how many bytes were commands.
///
/// # Panics
///
/// If what is a command is none when it is looked at alone.
pub fn read_bytes(input: &[u8], kind: u8) -> usize {
    let mut packed = Packed::default();
    packed.take(input);
    while let Ok(Some(_)) = packed.unpack() {}
    let lines = Lines {
        between: vec![b','],
        quote: (kind % 2 == 1).then_some(b'"'),
        escape: (!kind.is_multiple_of(3)).then_some(b'\\'),
        start: Vec::new(),
        end: vec![b'\r', b'\n'],
        passed_over: 0,
    };
    let mut line = 0;
    while let Some((_, length)) = next_line(&lines, &input[line..], true) {
        assert!(length > 0 && length <= input.len() - line, "a line is somewhere");
        line += length;
    }
    let mut at = 0;
    while let Found::Whole(message, length) = split(&input[at..], PACKET_MAX) {
        assert!(length > 0 && length <= input.len() - at, "a command is somewhere");
        let again = split(&input[at..at + length], PACKET_MAX);
        assert!(matches!(again, Found::Whole(other, whole) if whole == length && other.body() == message.body()));
        let body = message.body();
        let mut reader = Reader(&body);
        while !reader.0.is_empty() && read_param(&mut reader, kind, at % 2 == 1).is_ok() && kind != 6 {}
        let _ = sql::mysql_texts(&body, at % 2 == 1);
        at += length;
    }
    at
}
