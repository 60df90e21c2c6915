//! The protocols, as far as answers go.

use crate::template::{FIRST_KEY, is_value_of};
use crate::value::Value;
use wire::{ClientError, key};

/// Longest line and value of a text protocol that are believed.
const TEXT_BYTES_MAX: usize = 1 << 28;

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// Tarantool's binary protocol. Answers name their request and come in any order.
    Iproto,
    /// That of Redis, version 2. Answers come in order, as in the next one.
    Resp,
    /// That of memcached, as text.
    Memcached,
}

/// What an answer must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// One row, the one of the key; in the text protocols the value of the key.
    Row,
    /// Success and no row.
    Nothing,
    /// One value, whatever it is.
    Value,
}

/// An answer, borrowed from the buffer it came in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer<'a> {
    Iproto(wire::Answer<'a>),
    /// Success without a value.
    Done,
    /// A value.
    Value(&'a [u8]),
    /// A number.
    Number,
    /// There is nothing under this key.
    Missing,
    /// The server refused; its words.
    Refused(&'a [u8]),
}

impl Door {
    /// True if answers come in the order of their requests.
    pub(crate) fn is_ordered(self) -> bool {
        self != Door::Iproto
    }

    /// True if the server speaks first.
    pub(crate) fn has_greeting(self) -> bool {
        self == Door::Iproto
    }

    /// The first answer of a buffer and its length. `None`: it has not arrived whole yet.
    #[inline]
    pub(crate) fn next_answer(self, bytes: &[u8]) -> Result<Option<(Answer<'_>, usize)>, ClientError> {
        match self {
            Door::Iproto => Ok(wire::next_answer(bytes)?.map(|(answer, length)| (Answer::Iproto(answer), length))),
            Door::Resp => next_resp(bytes),
            Door::Memcached => next_memcached(bytes),
        }
    }
}

fn absurd(bytes: &[u8]) -> ClientError {
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(64)]).into_owned();
    ClientError::Absurd(format!("`{}`", shown.escape_debug()))
}

/// The first line without its end, and the bytes with it.
#[inline]
fn line(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")?;
    Some((&bytes[..end], end + 2))
}

fn decimal(text: &[u8]) -> Option<usize> {
    let is_short = !text.is_empty() && text.len() <= 9;
    let digits = || text.iter().map(|byte| byte.checked_sub(b'0').filter(|digit| *digit < 10));
    is_short.then(|| digits().try_fold(0, |sum, digit| Some(sum * 10 + usize::from(digit?)))).flatten()
}

/// The value that begins at `start`, its end, and `end` behind it. `None`: more has to come.
fn value<'a>(
    bytes: &'a [u8],
    start: usize,
    length: usize,
    end: &[u8],
) -> Result<Option<(Answer<'a>, usize)>, ClientError> {
    if length > TEXT_BYTES_MAX {
        return Err(absurd(bytes));
    }
    match bytes.get(start..start + length + end.len()) {
        None => Ok(None),
        Some(found) if found.ends_with(end) => Ok(Some((Answer::Value(&found[..length]), start + length + end.len()))),
        Some(_) => Err(absurd(bytes)),
    }
}

fn next_resp(bytes: &[u8]) -> Result<Option<(Answer<'_>, usize)>, ClientError> {
    let Some((line, used)) = line(bytes) else {
        return if bytes.len() > TEXT_BYTES_MAX { Err(absurd(bytes)) } else { Ok(None) };
    };
    match line {
        [b'+', ..] => Ok(Some((Answer::Done, used))),
        [b'-', text @ ..] => Ok(Some((Answer::Refused(text), used))),
        [b':', ..] => Ok(Some((Answer::Number, used))),
        b"$-1" => Ok(Some((Answer::Missing, used))),
        [b'$', length @ ..] => value(bytes, used, decimal(length).ok_or_else(|| absurd(bytes))?, b"\r\n"),
        _ => Err(absurd(bytes)),
    }
}

fn next_memcached(bytes: &[u8]) -> Result<Option<(Answer<'_>, usize)>, ClientError> {
    let Some((line, used)) = line(bytes) else {
        return if bytes.len() > TEXT_BYTES_MAX { Err(absurd(bytes)) } else { Ok(None) };
    };
    match line {
        b"STORED" => Ok(Some((Answer::Done, used))),
        b"END" => Ok(Some((Answer::Missing, used))),
        _ if line.starts_with(b"VALUE ") => {
            let length = line.rsplit(|byte| *byte == b' ').next().and_then(decimal);
            value(bytes, used, length.ok_or_else(|| absurd(bytes))?, b"\r\nEND\r\n")
        }
        b"NOT_STORED" | b"ERROR" => Ok(Some((Answer::Refused(line), used))),
        _ if line.starts_with(b"SERVER_ERROR") || line.starts_with(b"CLIENT_ERROR") => {
            Ok(Some((Answer::Refused(line), used)))
        }
        _ => Err(absurd(bytes)),
    }
}

/// True if the body holds one row and its first field is the key.
#[inline]
fn is_row_of(answer: &wire::Answer<'_>, wanted: u32) -> bool {
    const DATA: u8 = key::DATA as u8;
    if let [0x81, DATA, 0xdd, 0, 0, 0, 1, head, 0xce, a, b, c, d, ..] = *answer.body
        && head & 0xf0 == 0x90
    {
        return u32::from_be_bytes([a, b, c, d]) == wanted;
    }
    // A server may write the same number in fewer bytes.
    match answer.data().ok().and_then(Value::decode).as_ref().map(Value::array) {
        Some([row]) => row.array().first().and_then(Value::unsigned) == Some(u64::from(wanted)),
        _ => false,
    }
}

/// Checks an answer to a request for a key.
#[inline]
pub(crate) fn check(answer: &Answer<'_>, expect: Expect, key: u32) -> Result<(), ClientError> {
    let is_right = match (answer, expect) {
        (Answer::Iproto(answer), _) if answer.code != 0 => {
            return Err(ClientError::Refused { code: answer.code, text: answer.error_text() });
        }
        (Answer::Refused(text), _) => {
            return Err(ClientError::Refused { code: 0, text: String::from_utf8_lossy(text).into_owned() });
        }
        (Answer::Iproto(answer), Expect::Row) => is_row_of(answer, key.wrapping_add(FIRST_KEY)),
        (Answer::Iproto(answer), Expect::Nothing) => answer.data_count() == Some(0),
        (Answer::Iproto(answer), Expect::Value) => answer.data_count() == Some(1),
        (Answer::Value(value), Expect::Row) => is_value_of(value, key),
        (Answer::Done, Expect::Nothing) | (Answer::Value(_) | Answer::Number, Expect::Value) => true,
        _ => false,
    };
    if is_right {
        return Ok(());
    }
    Err(ClientError::Absurd(format!("the request for key {key} wants {expect:?} and was answered by {answer:?}")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    /// What a buffer's first answer is, at every split the same.
    fn first(door: Door, bytes: &[u8]) -> Answer<'_> {
        for end in 0..bytes.len() {
            assert!(door.next_answer(&bytes[..end]).unwrap().is_none(), "{end} bytes are enough");
        }
        let (answer, length) = door.next_answer(bytes).unwrap().unwrap();
        assert_eq!(length, bytes.len());
        answer
    }

    #[test]
    fn answers_of_redis_are_told_apart() {
        assert_eq!(first(Door::Resp, b"+OK\r\n"), Answer::Done);
        assert_eq!(first(Door::Resp, b":12\r\n"), Answer::Number);
        assert_eq!(first(Door::Resp, b"$-1\r\n"), Answer::Missing);
        assert_eq!(first(Door::Resp, b"-ERR no\r\n"), Answer::Refused(b"ERR no"));
        assert_eq!(first(Door::Resp, b"$4\r\na\r\nb\r\n"), Answer::Value(b"a\r\nb"));
        assert!(Door::Resp.next_answer(b"$x\r\n").is_err() && Door::Resp.next_answer(b"HTTP/1.1\r\n").is_err());
        assert!(Door::Resp.next_answer(b"$1\r\nabc").is_err());
    }

    #[test]
    fn answers_of_memcached_are_told_apart() {
        assert_eq!(first(Door::Memcached, b"STORED\r\n"), Answer::Done);
        assert_eq!(first(Door::Memcached, b"END\r\n"), Answer::Missing);
        assert_eq!(first(Door::Memcached, b"VALUE k 0 3\r\nabc\r\nEND\r\n"), Answer::Value(b"abc"));
        assert_eq!(
            first(Door::Memcached, b"SERVER_ERROR out of memory\r\n"),
            Answer::Refused(b"SERVER_ERROR out of memory")
        );
        assert!(Door::Memcached.next_answer(b"VALUE k 0 x\r\n").is_err());
    }

    #[test]
    fn an_answer_to_another_request_is_refused() {
        let row = |key: u8| {
            let head =
                [0xce, 0, 0, 0, 18, 0x82, 0x00, 0x00, 0x01, 0x03, 0x81, 0x30, 0xdd, 0, 0, 0, 1, 0x91, 0xce, 0, 1, 0];
            [&head[..], &[key]].concat()
        };
        let bytes = row(5);
        let (answer, _) = Door::Iproto.next_answer(&bytes).unwrap().unwrap();
        assert!(check(&answer, Expect::Row, 5).is_ok());
        assert!(check(&answer, Expect::Row, 6).is_err());
        assert!(check(&answer, Expect::Nothing, 5).is_err());
        let value = b"k0000000005xx";
        assert!(check(&Answer::Value(value), Expect::Row, 5).is_ok());
        assert!(check(&Answer::Value(value), Expect::Row, 6).is_err());
        assert!(check(&Answer::Missing, Expect::Row, 5).is_err());
        assert!(check(&Answer::Refused(b"ERR"), Expect::Nothing, 5).is_err());
    }
}
