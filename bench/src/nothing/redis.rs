//! Redis' protocol of a server that does nothing. (Requests: <https://redis.io/docs/latest/develop/reference/protocol-spec/>.)

use super::Talk;

/// Bytes of a value, as redis-benchmark is told to put them in.
const VALUE_BYTES: usize = 100;

#[derive(Default)]
pub(super) struct Redis;

/// The number behind a sign, and the bytes that the line has. None: it has not come as a whole.
fn number(input: &[u8], sign: u8) -> Option<(usize, usize)> {
    let end = input.iter().position(|byte| *byte == b'\n')?;
    let digits = input[..end].strip_prefix(&[sign]).unwrap_or_default().trim_ascii_end();
    let number = digits.iter().fold(0usize, |number, digit| number * 10 + usize::from(digit.wrapping_sub(b'0')));
    Some((number, end + 1))
}

impl Talk for Redis {
    fn greet(&mut self, _: &mut Vec<u8>) {}

    fn message(&mut self, input: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let (count, mut at) = number(input, b'*')?;
        let mut name: &[u8] = b"";
        for part in 0..count {
            let (length, line) = number(&input[at..], b'$')?;
            at += line;
            let text = input.get(at..at + length)?;
            at += length + 2;
            if part == 0 {
                name = text;
            }
        }
        if at > input.len() {
            return None;
        }
        match name.to_ascii_uppercase().as_slice() {
            b"PING" => out.extend_from_slice(b"+PONG\r\n"),
            b"SET" | b"MSET" | b"FLUSHALL" => out.extend_from_slice(b"+OK\r\n"),
            b"GET" | b"LPOP" | b"RPOP" | b"SPOP" => {
                out.extend_from_slice(format!("${VALUE_BYTES}\r\n").as_bytes());
                out.resize(out.len() + VALUE_BYTES, b'x');
                out.extend_from_slice(b"\r\n");
            }
            // It asks for nothing that matters, and goes on without.
            b"CONFIG" => out.extend_from_slice(b"*0\r\n"),
            _ => out.extend_from_slice(b":1\r\n"),
        }
        Some(at)
    }
}
