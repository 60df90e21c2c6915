//! Redis' protocol, as it comes from clients: arrays of bulk strings, or lines of words.
//!
//! Source: the protocol's specification (RESP2, RESP3) and answers of Redis 7.0.

use std::ops::Deref;

/// Longest line of words, or line that announces something.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Parts that one command may have.
const PARTS_MAX: i64 = 1024 * 1024;
/// Parts of a command of who has not logged in, and their bytes.
const STRANGER_PARTS_MAX: i64 = 10;
const STRANGER_BYTES_MAX: i64 = 16 << 10;
/// Parts kept without an allocation.
const INLINE: usize = 8;

/// The parts of a command: its name and what stands behind it, borrowing the input. Few are kept in place.
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    few: [&'a [u8]; INLINE],
    count: usize,
    many: Vec<&'a [u8]>,
}

impl<'a> Parts<'a> {
    fn with_capacity(count: usize) -> Self {
        let many = if count > INLINE { Vec::with_capacity(count.min(1024)) } else { Vec::new() };
        Parts { few: [&[]; INLINE], count: 0, many }
    }

    #[inline]
    fn push(&mut self, part: &'a [u8]) {
        if self.many.is_empty() && self.count < INLINE {
            self.few[self.count] = part;
            self.count += 1;
            return;
        }
        if self.many.is_empty() {
            self.many.extend_from_slice(&self.few[..self.count]);
        }
        self.many.push(part);
    }
}

impl<'a> Deref for Parts<'a> {
    type Target = [&'a [u8]];

    #[inline]
    fn deref(&self) -> &[&'a [u8]] {
        if self.many.is_empty() { &self.few[..self.count] } else { &self.many }
    }
}

/// What the input begins with.
pub(super) enum Parsed<'a> {
    /// A command, of no parts if it is an empty line, and the bytes it takes.
    Command(Parts<'a>, usize),
    /// The rest has not come; bytes that it takes at least.
    Incomplete(usize),
    /// Nothing behind it can be understood: the text of the error.
    Broken(String),
}

/// A line and where the next one begins. None: its end has not come.
#[inline]
fn line(input: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = &input[at..];
    // Lines that announce something are short.
    let end = rest.iter().take(32).position(|byte| *byte == b'\n');
    let end = end.or_else(|| rest.iter().position(|byte| *byte == b'\n'))?;
    let text = &rest[..end];
    Some((text.strip_suffix(b"\r").unwrap_or(text), at + end + 1))
}

/// A whole number of few digits and where the line behind it begins: what nearly all parts are announced by. None: it has to be looked at closer.
#[inline]
fn few_digits(input: &[u8], at: usize) -> Option<(i64, usize)> {
    let digit = |byte: u8| i64::from(byte - b'0');
    match *input.get(at..)? {
        [a @ b'0'..=b'9', b'\r', b'\n', ..] => Some((digit(a), at + 3)),
        [a @ b'1'..=b'9', b @ b'0'..=b'9', b'\r', b'\n', ..] => Some((digit(a) * 10 + digit(b), at + 4)),
        [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', b'\r', b'\n', ..] => {
            Some((digit(a) * 100 + digit(b) * 10 + digit(c), at + 5))
        }
        _ => None,
    }
}

/// A whole number as Redis takes it: no sign but a minus, no zeros before it, nothing else.
#[inline]
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [] => return None,
        [b'0'] => return (!is_negative).then_some(0),
        [b'0', ..] => return None,
        _ if digits.len() > 19 => return None,
        _ => {}
    }
    let mut value: u64 = 0;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    match is_negative {
        true => 0_i64.checked_sub_unsigned(value),
        false => i64::try_from(value).ok(),
    }
}

/// Finds the first command of the input. `is_stranger`: nobody has logged in where it is asked for. `bulk_max`: longest part.
pub(super) fn parse(input: &[u8], is_stranger: bool, bulk_max: usize) -> Parsed<'_> {
    match input.first() {
        None => Parsed::Incomplete(0),
        Some(b'*') => parse_array(input, is_stranger, bulk_max),
        Some(_) => parse_line(input),
    }
}

fn parse_line(input: &[u8]) -> Parsed<'_> {
    match line(input, 0) {
        Some((text, _)) if text.len() > LINE_BYTES_MAX => Parsed::Broken("too big inline request".to_string()),
        Some((text, next)) => match words(text) {
            Some(parts) => Parsed::Command(parts, next),
            None => Parsed::Broken("unbalanced quotes in request".to_string()),
        },
        None if input.len() > LINE_BYTES_MAX => Parsed::Broken("too big inline request".to_string()),
        None => Parsed::Incomplete(0),
    }
}

fn parse_array(input: &[u8], is_stranger: bool, bulk_max: usize) -> Parsed<'_> {
    let (count, mut at) = match few_digits(input, 1) {
        Some(found) => found,
        None => {
            let Some((text, at)) = line(input, 1) else {
                return match input.len() > LINE_BYTES_MAX {
                    true => Parsed::Broken("too big mbulk count string".to_string()),
                    false => Parsed::Incomplete(0),
                };
            };
            match integer(text) {
                Some(count) if count <= PARTS_MAX => (count, at),
                _ => return Parsed::Broken("invalid multibulk length".to_string()),
            }
        }
    };
    if is_stranger && count > STRANGER_PARTS_MAX {
        return Parsed::Broken("unauthenticated multibulk length".to_string());
    }
    let count = usize::try_from(count).unwrap_or(0);
    let mut parts = Parts::with_capacity(count);
    for number in 0..count {
        // A part takes six bytes at least: `$0` and two ends of lines.
        let least = |at: usize| at + (count - number) * 6;
        match input.get(at) {
            None => return Parsed::Incomplete(least(at)),
            Some(b'$') => {}
            Some(other) => {
                return Parsed::Broken(format!("expected '$', got '{}'", char::from(*other).escape_default()));
            }
        }
        let (length, begin) = match few_digits(input, at + 1) {
            Some(found) => found,
            None => {
                let Some((text, begin)) = line(input, at + 1) else {
                    return match input.len() - at > LINE_BYTES_MAX {
                        true => Parsed::Broken("too big bulk count string".to_string()),
                        false => Parsed::Incomplete(least(at)),
                    };
                };
                (integer(text).unwrap_or(-1), begin)
            }
        };
        if length < 0 || length as u64 > bulk_max as u64 {
            return Parsed::Broken("invalid bulk length".to_string());
        }
        if is_stranger && length > STRANGER_BYTES_MAX {
            return Parsed::Broken("unauthenticated bulk length".to_string());
        }
        let end = begin + length as usize;
        at = end + 2;
        if at > input.len() {
            return Parsed::Incomplete(at + (count - number - 1) * 6);
        }
        parts.push(&input[begin..end]);
    }
    Parsed::Command(parts, at)
}

/// The words of a line; those in quotes end at the next quote, and a backslash in them stands for itself. None: quotes do not match.
fn words(text: &[u8]) -> Option<Parts<'_>> {
    let mut parts = Parts::with_capacity(0);
    let mut at = 0;
    loop {
        while text.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        let Some(first) = text.get(at) else { return Some(parts) };
        if let quote @ (b'"' | b'\'') = *first {
            let begin = at + 1;
            let length = text[begin..].iter().position(|byte| *byte == quote)?;
            let end = begin + length;
            if text.get(end + 1).is_some_and(|byte| !byte.is_ascii_whitespace()) {
                return None;
            }
            parts.push(&text[begin..end]);
            at = end + 1;
        } else {
            let length = text[at..].iter().position(u8::is_ascii_whitespace).unwrap_or(text.len() - at);
            parts.push(&text[at..at + length]);
            at += length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(input: &[u8]) -> String {
        match parse(input, false, 100) {
            Parsed::Command(parts, length) => {
                let parts: Vec<_> = parts.iter().map(|part| String::from_utf8_lossy(part).into_owned()).collect();
                format!("{length} {}", parts.join("|"))
            }
            Parsed::Incomplete(least) => format!("more {least}"),
            Parsed::Broken(text) => text,
        }
    }

    #[test]
    fn commands_are_arrays_or_lines() {
        assert_eq!(parsed(b"*2\r\n$3\r\nGET\r\n$1\r\na\r\nrest"), "20 GET|a");
        assert_eq!(parsed(b"  set a  'b c' \"\"\r\n"), "19 set|a|b c|");
        assert_eq!(parsed(b"\r\n"), "2 ");
        assert_eq!(parsed(b"*0\r\n"), "4 ");
        assert_eq!(parsed(b"*-1\r\nPING\r\n"), "5 ");
        let many: Vec<u8> = (0..20).fold(b"*20\r\n".to_vec(), |mut all, n| {
            all.extend(format!("${}\r\n{n}\r\n", n.to_string().len()).bytes());
            all
        });
        assert!(parsed(&many).ends_with("0|1|2|3|4|5|6|7|8|9|10|11|12|13|14|15|16|17|18|19"));
    }

    #[test]
    fn what_has_not_come_says_how_much_is_missing_at_least() {
        let whole = b"*2\r\n$3\r\nGET\r\n$5\r\nabcde\r\n";
        for end in 0..whole.len() {
            let text = parsed(&whole[..end]);
            let least: usize = text.strip_prefix("more ").and_then(|n| n.parse().ok()).unwrap_or(usize::MAX);
            assert!(least <= whole.len(), "{end}: {text}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        assert_eq!(parsed(b"*x\r\n"), "invalid multibulk length");
        assert_eq!(parsed(b"*1048577\r\n"), "invalid multibulk length");
        assert_eq!(parsed(b"*1\r\n:1\r\n"), "expected '$', got ':'");
        assert_eq!(parsed(b"*1\r\n$-1\r\n"), "invalid bulk length");
        assert_eq!(parsed(b"*1\r\n$101\r\n"), "invalid bulk length");
        assert_eq!(parsed(b"get 'a\r\n"), "unbalanced quotes in request");
        assert!(matches!(parse(b"*11\r\n", true, 100), Parsed::Broken(_)));
    }

    #[test]
    fn integers_are_canonical() {
        let read = |text: &str| integer(text.as_bytes());
        assert_eq!((read("0"), read("-1"), read("9223372036854775807")), (Some(0), Some(-1), Some(i64::MAX)));
        assert_eq!(read("-9223372036854775808"), Some(i64::MIN));
        for text in ["", "-", "-0", "01", "+1", " 1", "1 ", "9223372036854775808", "1e3", "99999999999999999999"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
