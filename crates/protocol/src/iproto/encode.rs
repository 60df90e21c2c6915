//! Answers to bytes.

use database::Error;
use wire::{ErrorPart, begin_answer, end_packet, key};

/// Begins the list of rows or values; returns where its length goes.
pub(crate) fn begin_data(out: &mut Vec<u8>) -> usize {
    out.extend_from_slice(&[0x81, key::DATA as u8, 0xdd, 0, 0, 0, 0]);
    out.len() - 4
}

/// Puts the number of rows in place.
pub(crate) fn end_data(out: &mut [u8], at: usize, count: u32) {
    out[at..at + 4].copy_from_slice(&count.to_be_bytes());
}

/// An answer with an empty body.
pub(crate) fn encode_ok(out: &mut Vec<u8>, sync: u64, schema_version: u64) {
    let start = begin_answer(out, 0, sync, schema_version);
    out.push(0x80);
    end_packet(out, start);
}

fn part(error: &Error) -> ErrorPart<'_> {
    let body = error.body();
    let fields = body.fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    ErrorPart {
        kind: error.kind_name(),
        message: &body.message,
        code: body.code,
        file: body.place.file(),
        line: body.place.line(),
        fields,
    }
}

/// An error: its text and, for clients that know the extension, the stack of its causes.
pub fn encode_error(out: &mut Vec<u8>, sync: u64, schema_version: u64, error: &Error) {
    let stack = std::iter::successors(Some(error), |error| error.body().previous.as_ref());
    wire::encode_error(out, sync, schema_version, &stack.map(part).collect::<Vec<_>>());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_answer_tells_what_the_error_tells() {
        let mut out = Vec::new();
        let error = Error::system("outer").caused_by(Error::illegal("inner").with("space", "s"));
        encode_error(&mut out, 5, 1, &error);
        let Ok(Some((answer, length))) = wire::next_answer(&out) else { panic!("an answer") };
        assert_eq!((length, answer.sync, answer.code), (out.len(), 5, error.code()));
        let stack = answer.error_stack();
        assert_eq!((stack.len(), stack[0].message, stack[1].fields.as_slice()), (2, "outer", &[("space", "s")][..]));
        assert_eq!(answer.error_text(), "outer");
    }
}
