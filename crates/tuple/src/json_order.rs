//! The order of documents of JSON, as PostgreSQL's `jsonb` has it, in bytes that order as the documents do.
//!
//! ```text
//! null        01
//! text        02, its bytes with 00 as 00 ff, then 00 00
//! number      03, 01 for zero; 02, where its point is (8 bytes, most significant first), its digits, 00; 00 and the complement of such for one below zero
//! boolean     04, 00 or 01
//! array       10, how many elements (4 bytes), 01, each element
//! object      11, how many members (4 bytes), each name as text is without its 02, and its value
//! ```
//!
//! A document that is a plain value goes as an array of that value with 00 in place of 01: so an empty array comes before all plain values. Text that is no
//! document comes behind all documents, by its bytes. The order is in files of disk spaces: it stays as it is.

/// Arrays and objects within each other.
const DEPTH_MAX: usize = 128;

const NULL: u8 = 1;
const TEXT: u8 = 2;
const NUMBER: u8 = 3;
const BOOLEAN: u8 = 4;
const ARRAY: u8 = 0x10;
const OBJECT: u8 = 0x11;
const NO_DOCUMENT: u8 = 0xff;

/// Appends the bytes of a document.
pub(crate) fn write_key(text: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let mut parser = Parser { rest: text, out };
    parser.skip_space();
    if !matches!(parser.rest.first(), Some(b'[' | b'{')) {
        parser.out.extend_from_slice(&[ARRAY, 0, 0, 0, 1, 0]);
    }
    let is_whole = parser.value(0).is_some() && {
        parser.skip_space();
        parser.rest.is_empty()
    };
    if !is_whole {
        out.truncate(start);
        out.push(NO_DOCUMENT);
        out.extend_from_slice(text);
    }
}

struct Parser<'t, 'o> {
    rest: &'t [u8],
    out: &'o mut Vec<u8>,
}

impl<'t> Parser<'t, '_> {
    fn skip_space(&mut self) {
        while let [b' ' | b'\t' | b'\n' | b'\r', behind @ ..] = self.rest {
            self.rest = behind;
        }
    }

    fn take(&mut self, wanted: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(wanted)?;
        Some(())
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        self.skip_space();
        match self.rest.first()? {
            b'[' | b'{' if depth >= DEPTH_MAX => None,
            b'[' => {
                self.out.push(ARRAY);
                self.members(depth, b"[", b"]", false)
            }
            b'{' => {
                self.out.push(OBJECT);
                self.members(depth, b"{", b"}", true)
            }
            b'"' => {
                self.out.push(TEXT);
                self.text()
            }
            b't' => {
                self.out.extend_from_slice(&[BOOLEAN, 1]);
                self.take(b"true")
            }
            b'f' => {
                self.out.extend_from_slice(&[BOOLEAN, 0]);
                self.take(b"false")
            }
            b'n' => {
                self.out.push(NULL);
                self.take(b"null")
            }
            _ => {
                self.out.push(NUMBER);
                self.number()
            }
        }
    }

    fn members(&mut self, depth: usize, begin: &[u8], end: &[u8], are_named: bool) -> Option<()> {
        self.take(begin)?;
        let at = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        if !are_named {
            self.out.push(1);
        }
        let mut count: u32 = 0;
        self.skip_space();
        while self.take(end).is_none() {
            if count > 0 {
                self.take(b",")?;
                self.skip_space();
            }
            if are_named {
                self.text()?;
                self.skip_space();
                self.take(b":")?;
            }
            self.value(depth + 1)?;
            self.skip_space();
            count = count.checked_add(1)?;
        }
        self.out[at..at + 4].copy_from_slice(&count.to_be_bytes());
        Some(())
    }

    fn text(&mut self) -> Option<()> {
        self.take(b"\"")?;
        loop {
            let end = self.rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))?;
            self.out.extend_from_slice(&self.rest[..end]);
            self.rest = &self.rest[end..];
            if self.take(b"\"").is_some() {
                self.out.extend_from_slice(&[0, 0]);
                return Some(());
            }
            self.take(b"\\")?;
            let (&escaped, behind) = self.rest.split_first()?;
            self.rest = behind;
            match escaped {
                b'"' | b'\\' | b'/' => self.out.push(escaped),
                b'b' => self.out.push(8),
                b'f' => self.out.push(12),
                b'n' => self.out.push(b'\n'),
                b'r' => self.out.push(b'\r'),
                b't' => self.out.push(b'\t'),
                b'u' => {
                    let character = match self.unit()? {
                        high @ 0xd800..0xdc00 => {
                            self.take(b"\\u")?;
                            let low = self.unit()?.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
                            char::from_u32(0x10000 + ((high - 0xd800) << 10) + low)?
                        }
                        unit => char::from_u32(unit)?,
                    };
                    match character {
                        '\0' => self.out.extend_from_slice(&[0, 0xff]),
                        other => self.out.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
                    }
                }
                _ => return None,
            }
        }
    }

    fn unit(&mut self) -> Option<u32> {
        let (digits, behind) = self.rest.split_at_checked(4)?;
        self.rest = behind;
        let is_number = digits.iter().all(u8::is_ascii_hexdigit);
        u32::from_str_radix(std::str::from_utf8(digits).ok().filter(|_| is_number)?, 16).ok()
    }

    fn digits(&mut self) -> Option<&'t [u8]> {
        let count = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, behind) = self.rest.split_at(count);
        self.rest = behind;
        Some(digits).filter(|digits| !digits.is_empty())
    }

    fn number(&mut self) -> Option<()> {
        let is_below = self.take(b"-").is_some();
        let start = self.out.len();
        self.out.extend_from_slice(&[0; 9]);
        let mut point = 0_i64;
        let mut add = |out: &mut Vec<u8>, digits: &[u8], is_whole: bool| {
            for digit in digits {
                // The first digit is none that is zero: those before it move the point.
                let is_first = out.len() == start + 9;
                match is_first && *digit == b'0' {
                    true if is_whole => {}
                    true => point -= 1,
                    false => {
                        out.push(*digit);
                        point += i64::from(is_whole);
                    }
                }
            }
        };
        let whole = self.digits().filter(|whole| whole.len() == 1 || whole[0] != b'0')?;
        add(self.out, whole, true);
        if self.take(b".").is_some() {
            let part = self.digits()?;
            add(self.out, part, false);
        }
        if self.take(b"e").or_else(|| self.take(b"E")).is_some() {
            let is_small = self.take(b"-").is_some();
            if !is_small {
                let _ = self.take(b"+");
            }
            let exponent = self
                .digits()?
                .iter()
                .fold(0_i64, |sum, digit| sum.saturating_mul(10).saturating_add(i64::from(digit - b'0')));
            point = if is_small { point.saturating_sub(exponent) } else { point.saturating_add(exponent) };
        }
        while self.out.len() > start + 9 && self.out.last() == Some(&b'0') {
            self.out.pop();
        }
        if self.out.len() == start + 9 {
            self.out.truncate(start);
            self.out.push(1);
            return Some(());
        }
        self.out.push(0);
        self.out[start] = 2;
        // The least one is the first, as a number without a sign.
        self.out[start + 1..start + 9].copy_from_slice(&(point.cast_unsigned() ^ 1 << 63).to_be_bytes());
        if is_below {
            for byte in &mut self.out[start + 1..] {
                *byte = !*byte;
            }
            self.out[start] = 0;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::write_key;

    fn key(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        write_key(text.as_bytes(), &mut out);
        out
    }

    /// In PostgreSQL's order, as it has answered.
    #[test]
    fn documents_have_one_order() {
        let ordered = [
            "[]",
            "null",
            "\"\"",
            "\"A\"",
            "\"a\"",
            "\"ab\"",
            "\"b\"",
            "-1e400",
            "-10",
            "-2.5",
            "-2.25",
            "-2",
            "-0.5",
            "-0.05",
            "0",
            "0.004",
            "0.05",
            "0.5",
            "1",
            "1.5",
            "2",
            "9",
            "10",
            "12.5",
            "100",
            "1e3",
            "1e400",
            "false",
            "true",
            "[null]",
            "[1]",
            "[1.5]",
            "[false]",
            "[[]]",
            "[{}]",
            "[1, 1]",
            "[1, 2]",
            "{}",
            "{\"a\": 1}",
            "{\"a\": 2}",
            "{\"b\": 0}",
            "{\"a\": 0, \"b\": 0}",
        ];
        for pair in ordered.windows(2) {
            assert!(key(pair[0]) < key(pair[1]), "{} is before {}", pair[0], pair[1]);
        }
    }

    #[test]
    fn equal_documents_have_one_key() {
        let equal = [
            ("1", "1.00"),
            ("0", "-0.000"),
            ("0", "0e7"),
            ("100", "1e2"),
            ("100", "1E+2"),
            ("0.01", "1e-2"),
            ("-12.50", "-12.5"),
            ("[1, {\"a\": 2.0}]", "[1.0,{\"a\":2}]"),
            ("\"\\u0041\"", "\"A\""),
            ("\"\\ud83d\\ude00\"", "\"\u{1f600}\""),
            (" [ ] ", "[]"),
        ];
        for (a, b) in equal {
            assert_eq!(key(a), key(b), "{a} is {b}");
        }
    }

    #[test]
    fn text_that_is_no_document_is_behind_them() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        for text in [
            "",
            "x",
            "01",
            "1.",
            "-",
            "1e",
            "[1",
            "[1,]",
            "{\"a\"}",
            "{1: 2}",
            "\"a",
            "\"\\u12\"",
            "\"\\ud800\"",
            "tru",
            "1 2",
            "\u{1}",
            &deep,
        ] {
            assert_eq!(key(text)[0], 0xff, "{text}");
        }
        assert!(key("x") < key("y"));
        assert_eq!(key(&("[".repeat(128) + &"]".repeat(128)))[0], 0x10);
        assert_eq!(key("1e99999999999999999999999"), key("1e99999999999999999999998"), "beyond all points");
    }
}
