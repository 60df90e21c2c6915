//! Answers in Redis' protocol. What differs between its second and third version is written as the client has asked for.

/// Writes answers. `resp3`: the client has said `HELLO 3`.
pub(super) struct Reply<'a> {
    pub(super) out: &'a mut Vec<u8>,
    pub(super) resp3: bool,
}

/// Writes a whole number as text.
#[inline]
pub(super) fn push_integer(out: &mut Vec<u8>, value: i64) {
    let mut buffer = itoa::Buffer::new();
    out.extend_from_slice(buffer.format(value).as_bytes());
}

/// A double as Redis 7.0 prints it: 17 digits that count, no zeros behind them.
pub(super) fn double_text(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_string();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_string();
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.to_string();
    }
    // As C's "%.17g".
    let scientific = format!("{value:.16e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..17).contains(&exponent) {
        let digits = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let decimals = usize::try_from(16 - exponent).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

impl Reply<'_> {
    #[inline]
    fn end(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn number(&mut self, kind: u8, value: i64) {
        self.out.push(kind);
        push_integer(self.out, value);
        self.end();
    }

    /// A status.
    #[inline]
    pub(super) fn simple(&mut self, text: &str) {
        self.out.push(b'+');
        self.out.extend_from_slice(text.as_bytes());
        self.end();
    }

    #[inline]
    pub(super) fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    /// An error: its first word is a code. Ends of lines in it become spaces.
    pub(super) fn error(&mut self, text: &str) {
        self.out.push(b'-');
        self.out.extend(text.bytes().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
        self.end();
    }

    #[inline]
    pub(super) fn integer(&mut self, value: i64) {
        self.number(b':', value);
    }

    /// A length or count.
    #[inline]
    pub(super) fn count(&mut self, value: usize) {
        self.number(b':', i64::try_from(value).unwrap_or(i64::MAX));
    }

    #[inline]
    pub(super) fn bulk(&mut self, value: &[u8]) {
        self.number(b'$', value.len() as i64);
        self.out.extend_from_slice(value);
        self.end();
    }

    pub(super) fn text(&mut self, value: &str) {
        self.bulk(value.as_bytes());
    }

    /// Nothing, where a value could be.
    #[inline]
    pub(super) fn null(&mut self) {
        self.out.extend_from_slice(if self.resp3 { b"_\r\n" } else { b"$-1\r\n" });
    }

    /// Nothing, where an array could be.
    pub(super) fn null_array(&mut self) {
        self.out.extend_from_slice(if self.resp3 { b"_\r\n" } else { b"*-1\r\n" });
    }

    /// The head of an array.
    #[inline]
    pub(super) fn array(&mut self, count: usize) {
        self.number(b'*', count as i64);
    }

    /// The head of a map of so many pairs.
    pub(super) fn map(&mut self, pairs: usize) {
        match self.resp3 {
            true => self.number(b'%', pairs as i64),
            false => self.number(b'*', pairs as i64 * 2),
        }
    }

    /// The head of a set.
    pub(super) fn set(&mut self, count: usize) {
        self.number(if self.resp3 { b'~' } else { b'*' }, count as i64);
    }

    /// The head of what comes unasked.
    pub(super) fn push(&mut self, count: usize) {
        self.number(if self.resp3 { b'>' } else { b'*' }, count as i64);
    }

    /// A double: a text in the second version.
    pub(super) fn double(&mut self, value: f64) {
        let text = double_text(value);
        match self.resp3 {
            true => {
                self.out.push(b',');
                self.out.extend_from_slice(text.as_bytes());
                self.end();
            }
            false => self.text(&text),
        }
    }

    /// Text for people.
    pub(super) fn verbatim(&mut self, text: &str) {
        match self.resp3 {
            true => {
                self.number(b'=', text.len() as i64 + 4);
                self.out.extend_from_slice(b"txt:");
                self.out.extend_from_slice(text.as_bytes());
                self.end();
            }
            false => self.text(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_have_seventeen_digits() {
        let cases = [
            (1.1, "1.1000000000000001"),
            (3.0, "3"),
            (-0.5, "-0.5"),
            (1e20, "1e+20"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (0.0001, "0.0001"),
            (0.00001, "1.0000000000000001e-05"),
            (123456789.123, "123456789.123"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (1.7976931348623157e308, "1.7976931348623157e+308"),
        ];
        for (value, text) in cases {
            assert_eq!(double_text(value), text);
        }
    }
}
