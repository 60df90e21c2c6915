//! Packets: where they end, what is in them, how they are written. Source: MySQL's documentation, "Client/Server Protocol".
//!
//! ```text
//! packet    length u24 | sequence u8 | body
//! ```
//!
//! Numbers are little-endian. A body of 2^24 - 1 bytes goes on in the packet behind it.

use sql::{Condition, Error};
use std::borrow::Cow;

/// Bytes of a packet before anybody has logged in.
pub(super) const LOGIN_MAX: usize = 16 << 10;
/// Bytes of a command: `max_allowed_packet`.
pub(super) const PACKET_MAX: usize = 64 << 20;
/// Bytes of the body of a packet that goes on in the next.
const FULL: usize = 0xff_ffff;
const HEAD_BYTES: usize = 4;

/// The packets of one command, as they came.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    /// The number of the first.
    pub(super) sequence: u8,
    bytes: &'a [u8],
}

impl<'a> Message<'a> {
    /// Packets with their heads.
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        Message { sequence: bytes.get(3).copied().unwrap_or(0), bytes }
    }

    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What they say.
    pub(super) fn body(&self) -> Cow<'a, [u8]> {
        if self.bytes.len() < HEAD_BYTES + FULL {
            return Cow::Borrowed(self.bytes.get(HEAD_BYTES..).unwrap_or(&[]));
        }
        let mut body = Vec::with_capacity(self.bytes.len());
        let mut rest = self.bytes;
        while let Some((length, _)) = head(rest) {
            let end = (HEAD_BYTES + length).min(rest.len());
            body.extend_from_slice(&rest[HEAD_BYTES..end]);
            rest = &rest[end..];
        }
        Cow::Owned(body)
    }

    /// The first byte of what they say: which command it is.
    pub(super) fn kind(&self) -> u8 {
        self.bytes.get(HEAD_BYTES).copied().unwrap_or(0)
    }
}

/// What the beginning of the input is.
pub(super) enum Found<'a> {
    /// A command, and the bytes that it takes.
    Whole(Message<'a>, usize),
    /// Its rest has not come: bytes that it takes in all, as far as that is known.
    Part(u64),
    /// Nothing that could be one.
    Bad(&'static str),
}

fn head(input: &[u8]) -> Option<(usize, u8)> {
    let [a, b, c, sequence] = *input.first_chunk::<HEAD_BYTES>()?;
    Some((usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16, sequence))
}

/// Finds the first command. `longest`: bytes that one may have.
pub(super) fn split(input: &[u8], longest: usize) -> Found<'_> {
    let Some((_, first)) = head(input) else { return Found::Part(0) };
    let (mut at, mut total, mut number) = (0, 0, first);
    loop {
        let Some((length, sequence)) = head(&input[at..]) else { return Found::Part((at + HEAD_BYTES) as u64) };
        if sequence != number {
            return Found::Bad("Got packets out of order");
        }
        total += length;
        if total > longest {
            return Found::Bad("Got a packet bigger than 'max_allowed_packet' bytes");
        }
        at += HEAD_BYTES + length;
        if at > input.len() {
            return Found::Part(at as u64);
        }
        if length < FULL {
            return Found::Whole(Message { sequence: first, bytes: &input[..at] }, at);
        }
        number = number.wrapping_add(1);
    }
}

/// Reads what is in a packet. Errors: `Protocol` if it ends too early.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

fn cut() -> Error {
    Error::new(Condition::Protocol, "Malformed communication packet.").mysql(1835)
}

impl<'a> Reader<'a> {
    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or_else(cut)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        self.bytes(N)?.try_into().map_err(|_| cut())
    }

    pub(super) fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.array::<1>()?[0])
    }

    pub(super) fn u16(&mut self) -> Result<u16, Error> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number in one to nine bytes.
    pub(super) fn number(&mut self) -> Result<u64, Error> {
        Ok(match self.u8()? {
            0xfc => u64::from(self.u16()?),
            0xfd => {
                let [a, b, c] = self.array()?;
                u64::from(a) | u64::from(b) << 8 | u64::from(c) << 16
            }
            0xfe => self.u64()?,
            0xfb | 0xff => return Err(cut()),
            small => u64::from(small),
        })
    }

    /// Bytes behind their number.
    pub(super) fn counted(&mut self) -> Result<&'a [u8], Error> {
        let count = usize::try_from(self.number()?).map_err(|_| cut())?;
        self.bytes(count)
    }

    /// Bytes up to a zero, or to the end.
    pub(super) fn until_zero(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == 0);
        let bytes = &self.0[..end.unwrap_or(self.0.len())];
        self.0 = self.0.get(bytes.len() + 1..).unwrap_or(&[]);
        bytes
    }
}

/// Appends a packet, with the next number.
pub(super) fn put(out: &mut Vec<u8>, sequence: &mut u8, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD_BYTES]);
    write(out);
    let length = out.len() - start - HEAD_BYTES;
    if length < FULL {
        let [a, b, c, ..] = (length as u32).to_le_bytes();
        out[start..start + HEAD_BYTES].copy_from_slice(&[a, b, c, *sequence]);
        *sequence = sequence.wrapping_add(1);
        return;
    }
    let body = out.split_off(start + HEAD_BYTES);
    out.truncate(start);
    let mut rest = &body[..];
    loop {
        let (part, more) = rest.split_at(rest.len().min(FULL));
        let [a, b, c, ..] = (part.len() as u32).to_le_bytes();
        out.extend_from_slice(&[a, b, c, *sequence]);
        out.extend_from_slice(part);
        *sequence = sequence.wrapping_add(1);
        rest = more;
        if part.len() < FULL {
            return;
        }
    }
}

/// Appends a number in as few bytes as it needs.
pub(super) fn put_number(out: &mut Vec<u8>, value: u64) {
    match value {
        0..=0xfa => out.push(value as u8),
        0xfb..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&(value as u16).to_le_bytes());
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&value.to_le_bytes()[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
}

/// Appends bytes behind their number.
pub(super) fn put_counted(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends an error.
pub(super) fn put_failure(out: &mut Vec<u8>, sequence: &mut u8, number: u16, state: &str, message: &str) {
    put(out, sequence, |out| {
        out.push(0xff);
        out.extend_from_slice(&number.to_le_bytes());
        out.push(b'#');
        out.extend_from_slice(state.as_bytes());
        // Clients have room for 512 bytes.
        let mut end = message.len().min(500);
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        out.extend_from_slice(&message.as_bytes()[..end]);
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_bodies_go_on_in_the_next_packet() {
        for length in [0, 1, FULL - 1, FULL, FULL + 1] {
            let (mut out, mut sequence) = (Vec::new(), 0);
            put(&mut out, &mut sequence, |out| out.resize(out.len() + length, 7));
            let Found::Whole(message, taken) = split(&out, PACKET_MAX) else { panic!("{length}") };
            assert_eq!((message.body().len(), taken, sequence), (length, out.len(), 1 + u8::from(length >= FULL)));
            for cut in [0, 3, 4, out.len().saturating_sub(1)] {
                assert!(cut >= out.len() || matches!(split(&out[..cut], PACKET_MAX), Found::Part(_)), "{length} {cut}");
            }
        }
    }

    #[test]
    fn packets_that_cannot_be_are_refused() {
        assert!(matches!(split(&[0xff, 0xff, 0xff, 0], LOGIN_MAX), Found::Bad(_)));
        let mut two = vec![0xff, 0xff, 0xff, 0];
        two.resize(HEAD_BYTES + FULL, 0);
        two.extend_from_slice(&[0, 0, 0, 7]);
        assert!(matches!(split(&two, PACKET_MAX), Found::Bad(_)));
    }

    proptest! {
        #[test]
        fn numbers_come_back(value: u64) {
            for value in [value, value >> 32, value >> 48, value >> 56] {
                let mut out = Vec::new();
                put_number(&mut out, value);
                prop_assert_eq!(Reader(&out).number().unwrap(), value);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Found::Whole(message, length) = split(&bytes, LOGIN_MAX) {
                prop_assert!(length <= bytes.len());
                let body = message.body();
                let mut reader = Reader(&body);
                while reader.counted().is_ok_and(|bytes| !bytes.is_empty()) {}
            }
        }
    }
}
