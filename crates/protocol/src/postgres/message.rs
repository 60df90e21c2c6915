//! Messages of the protocol, version 3: where they end, what is in them, how they are written. Source: PostgreSQL's documentation, chapter 55.
//!
//! ```text
//! the first     length u32 | code u32 | ...
//! all others    type u8 | length u32 | ...          length counts itself and what follows
//! ```

use database::SESSION_PREFIX;
use sql::{Condition, Error};
use std::borrow::Cow;

/// Bytes of a message before anybody has logged in.
pub(super) const STARTUP_MAX: usize = 10_000;
/// Bytes of a message.
pub(super) const MESSAGE_MAX: usize = 256 << 20;

/// What the first message asks for.
pub(super) const PROTOCOL_3: u32 = 3 << 16;
pub(super) const CANCEL: u32 = 80_877_102;
pub(super) const TLS: u32 = 80_877_103;
pub(super) const GSS: u32 = 80_877_104;

/// A message without its head. The first one of a connection has the type 0.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    pub(super) kind: u8,
    pub(super) body: &'a [u8],
}

/// What the beginning of the input is.
pub(super) enum Found<'a> {
    /// A message, and the bytes that it takes.
    Whole(Message<'a>, usize),
    /// Its rest has not come: bytes that it takes in all, 0 if that is not known yet.
    Part(u64),
    /// Nothing that could be one.
    Bad(&'static str),
}

/// Finds the first message. `is_first`: of its connection; `longest`: bytes that one may have.
pub(super) fn split(input: &[u8], is_first: bool, longest: usize) -> Found<'_> {
    let (kind, head) = match (is_first, input) {
        (_, []) => return Found::Part(0),
        (true, _) => (0, 0),
        (false, [kind, ..]) => (*kind, 1),
    };
    if !is_first && !kind.is_ascii_alphabetic() {
        return Found::Bad("invalid frontend message type");
    }
    let Some(length) = input[head..].first_chunk::<4>() else { return Found::Part(0) };
    let length = u32::from_be_bytes(*length) as usize;
    let is_possible = if is_first { (8..=STARTUP_MAX).contains(&length) } else { (4..=longest).contains(&length) };
    if !is_possible {
        return Found::Bad(if is_first { "invalid length of startup packet" } else { "invalid message length" });
    }
    let total = head + length;
    match input.get(head + 4..total) {
        Some(body) => Found::Whole(Message { kind, body }, total),
        None => Found::Part(total as u64),
    }
}

/// Reads what is in a message. Errors: `Protocol` if it ends too early.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

fn cut() -> Error {
    Error::new(Condition::Protocol, "insufficient data left in message")
}

impl<'a> Reader<'a> {
    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or_else(cut)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Error> {
        Ok(self.bytes(1)?[0])
    }

    pub(super) fn u16(&mut self) -> Result<u16, Error> {
        let bytes = self.bytes(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    pub(super) fn u32(&mut self) -> Result<u32, Error> {
        let bytes = self.bytes(4)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// Text up to a zero. Errors: `Protocol`, `InvalidEncoding`.
    pub(super) fn text(&mut self) -> Result<&'a str, Error> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or_else(cut)?;
        let bytes = self.bytes(end + 1)?;
        utf8(&bytes[..end])
    }
}

/// Errors: `InvalidEncoding`.
pub(super) fn utf8(bytes: &[u8]) -> Result<&str, Error> {
    let wrong = |at: usize| {
        // As many as its first byte says that the character has.
        let length = match bytes[at] {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            _ => 1,
        };
        let wrong: Vec<String> = bytes[at..].iter().take(length).map(|byte| format!("0x{byte:02x}")).collect();
        let what = format!("invalid byte sequence for encoding \"UTF8\": {}", wrong.join(" "));
        Error::new(Condition::InvalidEncoding, what)
    };
    let text = std::str::from_utf8(bytes).map_err(|error| wrong(error.valid_up_to()))?;
    match bytes.contains(&0) {
        true => Err(wrong(text.find('\0').unwrap_or(0))),
        false => Ok(text),
    }
}

/// Appends a message.
pub(super) fn put(out: &mut Vec<u8>, kind: u8, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().filter(|byte| *byte != 0));
    out.push(0);
}

pub(super) fn put_u16(out: &mut Vec<u8>, value: usize) {
    out.extend_from_slice(&(value as u16).to_be_bytes());
}

pub(super) fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// `CommandComplete`.
pub(super) fn put_complete(out: &mut Vec<u8>, tag: &str) {
    put(out, b'C', |out| put_text(out, tag));
}

/// `ReadyForQuery`: idle, in a transaction, in one that has failed.
pub(super) fn put_ready(out: &mut Vec<u8>, status: u8) {
    put(out, b'Z', |out| out.push(status));
}

/// `ParameterStatus`.
pub(super) fn put_parameter(out: &mut Vec<u8>, name: &str, value: &str) {
    put(out, b'S', |out| {
        put_text(out, name);
        put_text(out, value);
    });
}

/// The fields of an error or a notice.
pub(super) struct Report<'a> {
    pub(super) severity: &'a str,
    pub(super) state: &'a str,
    pub(super) message: &'a str,
    pub(super) detail: Option<&'a str>,
    pub(super) hint: Option<&'a str>,
    /// Names of what it is about: `s`, `t`, `c`, `n` and so on.
    pub(super) names: &'a [(u8, &'a str)],
}

impl Report<'_> {
    /// Appends it: `ErrorResponse` (`E`) or `NoticeResponse` (`N`).
    pub(super) fn put(&self, out: &mut Vec<u8>, kind: u8) {
        put(out, kind, |out| {
            let fields = [
                (b'S', Some(self.severity)),
                (b'V', Some(self.severity)),
                (b'C', Some(self.state)),
                (b'M', Some(self.message)),
                (b'D', self.detail),
                (b'H', self.hint),
            ];
            let names = self.names.iter().map(|(field, name)| (*field, Some(*name)));
            for (field, text) in fields.into_iter().chain(names) {
                if let Some(text) = text {
                    out.push(field);
                    put_text(out, text);
                }
            }
            out.push(0);
        });
    }
}

/// A text with temporary tables by the names that their session calls them by, and the schema of the first of them.
fn with_short_names(text: &str) -> (Cow<'_, str>, Option<&str>) {
    let (mut out, mut rest, mut schema) = (String::new(), text, None);
    while let Some(at) = rest.find(SESSION_PREFIX) {
        let digits = &rest[at + SESSION_PREFIX.len()..];
        let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
        let whole = at + SESSION_PREFIX.len() + end;
        if end == 0 || !rest[whole..].starts_with('_') {
            out.push_str(&rest[..whole]);
            rest = &rest[whole..];
            continue;
        }
        schema.get_or_insert(&rest[at..whole]);
        out.push_str(&rest[..at]);
        rest = &rest[whole + 1..];
    }
    match schema {
        None => (Cow::Borrowed(text), None),
        Some(schema) => (Cow::Owned(out + rest), Some(schema)),
    }
}

/// Appends an error of a statement.
pub(super) fn put_error(out: &mut Vec<u8>, error: &Error) {
    let body = error.body();
    let mut names: Vec<(u8, &str)> = Vec::new();
    let (message, _) = with_short_names(&body.message);
    let (table, schema) = body.table.as_deref().map_or((None, None), |table| {
        let (short, schema) = with_short_names(table);
        (Some(short), schema)
    });
    let (column, constraint) = (body.column.as_deref(), body.constraint.as_deref());
    for (field, name) in [(b't', table.as_deref()), (b'c', column), (b'n', constraint)] {
        if let Some(name) = name {
            names.push((field, name));
        }
    }
    if !names.is_empty() {
        names.push((b's', body.schema.as_deref().or(schema).unwrap_or("public")));
    }
    if body.condition == Condition::Unsupported && *message == *super::extended::STALE {
        // By which drivers know that they have to prepare the statement again.
        names.push((b'R', "RevalidateCachedQuery"));
    }
    let position = body.position.map(|position| position.to_string());
    if let Some(position) = &position {
        names.push((b'P', position));
    }
    Report {
        severity: if body.condition == Condition::Terminated { "FATAL" } else { "ERROR" },
        state: body.condition.sqlstate(),
        message: &message,
        detail: body.detail.as_deref(),
        hint: body.hint.as_deref(),
        names: &names,
    }
    .put(out, b'E');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn temporary_tables_have_the_names_of_their_session() {
        let shown = |text: &'static str| {
            let (text, schema) = with_short_names(text);
            (text.into_owned(), schema)
        };
        let said = "insert on \"pg_temp_790_t\" breaks a key of \"pg_temp_790_u_v\"";
        assert_eq!(shown(said), ("insert on \"t\" breaks a key of \"u_v\"".to_string(), Some("pg_temp_790")));
        assert_eq!(shown("pg_temp_1_"), (String::new(), Some("pg_temp_1")));
        for other in ["", "pg_temp_", "pg_temp_x_y", "pg_temp_12", "a pg_temp_ b"] {
            assert_eq!(shown(other), (other.to_string(), None));
        }
    }

    proptest! {
        #[test]
        fn messages_are_cut_the_same_whatever_follows(
            kind in prop_oneof![4 => prop::sample::select(b"QPBDESCHXdcf".to_vec()), 1 => any::<u8>()],
            length in prop_oneof![8 => 0u32..40, 1 => any::<u32>()],
            body in proptest::collection::vec(any::<u8>(), 0..40),
            tail in any::<Vec<u8>>(),
            is_first in any::<bool>(),
        ) {
            let head: &[u8] = if is_first { &[] } else { &[kind] };
            let input = [head, &length.to_be_bytes(), &body].concat();
            if let Found::Whole(message, taken) = split(&input, is_first, MESSAGE_MAX) {
                prop_assert!(taken > 0 && taken <= input.len());
                let longer = [&input[..taken], &tail].concat();
                let again = split(&longer, is_first, MESSAGE_MAX);
                // The same, cut where it ends.
                let Found::Whole(other, length) = again else { return Err(TestCaseError::fail("not found again")) };
                prop_assert_eq!((other.kind, length), (message.kind, taken));
                let is_cut = matches!(split(&input[..taken - 1], is_first, MESSAGE_MAX), Found::Part(_));
                prop_assert!(is_cut);
            }
        }
    }
}
