//! Texts of MySQL's clients: several statements in one, and bytes in literals that are no text.

use crate::error::{Condition, Error, Result};
use std::borrow::Cow;
use std::fmt::Write;

/// Takes a text apart at the semicolons that stand outside of quotes and comments. Literals that are no UTF-8 become `x'...'`; empty statements are left
/// out. Errors: `InvalidEncoding` outside of a literal.
pub fn statements(bytes: &[u8]) -> Result<Vec<Cow<'_, str>>> {
    let mut found = Vec::new();
    let (mut start, mut at, mut has_words) = (0, 0, false);
    // What was spelled in another way so far, and up to where.
    let mut spelled: Option<(String, usize)> = None;
    while at < bytes.len() {
        match bytes[at] {
            b';' => {
                add(&mut found, bytes, start..at, spelled.take(), has_words)?;
                (start, has_words) = (at + 1, false);
                at += 1;
            }
            quote @ (b'\'' | b'"' | b'`') => {
                let end = literal_end(bytes, at, quote);
                if quote != b'`' && std::str::from_utf8(&bytes[at..end]).is_err() {
                    let (mut text, from) = spelled.take().unwrap_or_else(|| (String::new(), start));
                    text.push_str(utf8(&bytes[from..at])?);
                    // A word before it says that they are bytes.
                    let introducer = text.trim_end();
                    if introducer.to_ascii_lowercase().ends_with("_binary") {
                        text.truncate(introducer.len() - "_binary".len());
                    }
                    text.push_str(" x'");
                    unescaped(&bytes[at + 1..end.saturating_sub(1).max(at + 1)], quote)
                        .iter()
                        .for_each(|byte| _ = write!(text, "{byte:02x}"));
                    text.push_str("' ");
                    spelled = Some((text, end));
                }
                has_words = true;
                at = end;
            }
            b'#' => at = line_end(bytes, at),
            b'-' if bytes[at..].starts_with(b"--") && bytes.get(at + 2).is_none_or(u8::is_ascii_whitespace) => {
                at = line_end(bytes, at);
            }
            b'/' if bytes[at..].starts_with(b"/*") => {
                has_words |= bytes.get(at + 2) == Some(&b'!');
                let end = bytes[at + 2..].windows(2).position(|pair| pair == b"*/");
                at = end.map_or(bytes.len(), |end| at + end + 4);
            }
            byte => {
                has_words |= !is_space(byte);
                at += 1;
            }
        }
    }
    add(&mut found, bytes, start..bytes.len(), spelled, has_words)?;
    Ok(found)
}

fn add<'a>(
    found: &mut Vec<Cow<'a, str>>,
    bytes: &'a [u8],
    place: std::ops::Range<usize>,
    spelled: Option<(String, usize)>,
    has_words: bool,
) -> Result<()> {
    if !has_words {
        return Ok(());
    }
    found.push(match spelled {
        None => Cow::Borrowed(utf8(&bytes[place])?.trim_matches(|c: char| u8::try_from(c).is_ok_and(is_space))),
        Some((mut text, from)) => {
            text.push_str(utf8(&bytes[from..place.end])?);
            Cow::Owned(text)
        }
    });
    Ok(())
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let shown: Vec<String> = bytes[at..].iter().take(4).map(|byte| format!("\\x{byte:02X}")).collect();
        Error::new(Condition::InvalidEncoding, format!("Invalid utf8mb4 character string: '{}'", shown.concat()))
    })
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| at + end + 1)
}

/// Behind the literal that begins at `at`.
fn literal_end(bytes: &[u8], at: usize, quote: u8) -> usize {
    let mut end = at + 1;
    while let Some(&byte) = bytes.get(end) {
        end += 1;
        match byte {
            b'\\' if quote != b'`' => end += 1,
            byte if byte == quote && bytes.get(end) == Some(&quote) => end += 1,
            byte if byte == quote => return end,
            _ => {}
        }
    }
    bytes.len()
}

/// A statement of a session with `ANSI_QUOTES`, where `"a"` is a name, as one that has the same meaning without: `` `a` ``.
pub(crate) fn with_quoted_names(text: &str) -> Cow<'_, str> {
    if !text.contains('"') {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    // Up to where it is in `out`.
    let (mut done, mut at) = (0, 0);
    while at < bytes.len() {
        at = match bytes[at] {
            b'"' => {
                out.push_str(&text[done..at]);
                let (name, end) = quoted_name(text, at);
                out.push('`');
                out.push_str(&name.replace('`', "``"));
                out.push('`');
                done = end;
                end
            }
            quote @ (b'\'' | b'`') => literal_end(bytes, at, quote),
            b'#' => line_end(bytes, at),
            b'-' if bytes[at..].starts_with(b"--") && bytes.get(at + 2).is_none_or(u8::is_ascii_whitespace) => {
                line_end(bytes, at)
            }
            // What stands in `/*! */` is a part of the statement.
            b'/' if bytes[at..].starts_with(b"/*") && bytes.get(at + 2) != Some(&b'!') => {
                let end = bytes[at + 2..].windows(2).position(|pair| pair == b"*/");
                end.map_or(bytes.len(), |end| at + end + 4)
            }
            _ => at + 1,
        };
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// The name between the quotes that begin at `at`, and where the text goes on.
fn quoted_name(text: &str, at: usize) -> (String, usize) {
    let mut name = String::new();
    let mut chars = text[at + 1..].char_indices().peekable();
    while let Some((place, c)) = chars.next() {
        match c {
            '"' if chars.next_if(|(_, next)| *next == '"').is_none() => return (name, at + place + 2),
            c => name.push(c),
        }
    }
    (name, text.len())
}

/// A text as a literal of one line: what SHOW CREATE TABLE has, whose lines clients take apart.
pub(crate) fn written(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for c in text.chars() {
        match c {
            '\0' => out.push_str("\\0"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("''"),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// A text that was kept, in whose literals a backslash is one, as a statement has it: with two in place of each.
pub(crate) fn with_escapes(kept: &str) -> Cow<'_, str> {
    if !kept.contains('\\') {
        return Cow::Borrowed(kept);
    }
    let mut out = String::with_capacity(kept.len() + 8);
    let mut quote = None;
    for c in kept.chars() {
        match (quote, c) {
            (None, '\'' | '"' | '`') => quote = Some(c),
            // A doubled one ends the literal and begins it anew.
            (Some(begun), c) if c == begun => quote = None,
            (Some('\'' | '"'), '\\') => out.push('\\'),
            _ => {}
        }
        out.push(c);
    }
    Cow::Owned(out)
}

/// The way back, for texts that [`with_escapes`] has made.
pub(crate) fn without_escapes(text: &str) -> String {
    text.replace("\\\\", "\\")
}

/// The bytes that a literal means.
fn unescaped(body: &[u8], quote: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body.iter().copied();
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' => out.push(match rest.next() {
                Some(b'0') => 0,
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b't') => b'\t',
                Some(b'b') => 8,
                Some(b'Z') => 26,
                Some(other) => other,
                None => b'\\',
            }),
            byte if byte == quote => {
                rest.next();
                out.push(byte);
            }
            byte => out.push(byte),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_are_cut_where_statements_end() {
        let cut = |text: &str| statements(text.as_bytes()).unwrap().iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(cut("select 1; select ';', \"a;\"\"b\", `;` ;;"), ["select 1", "select ';', \"a;\"\"b\", `;`"]);
        assert_eq!(cut("select '\\';' -- ; \n; # x;\n ; /* ; */ ;"), ["select '\\';' -- ;"]);
        assert_eq!(cut("/*!40101 SET NAMES utf8 */;"), ["/*!40101 SET NAMES utf8 */"]);
        assert!(cut("  ; -- nothing").is_empty());
    }

    #[test]
    fn bytes_in_literals_are_kept() {
        let cut = statements(b"insert into t values (1, _binary'\xff\\0\\'a'';', 'b')").unwrap();
        assert_eq!(cut[0], "insert into t values (1,  x'ff0027613b' , 'b')".replace("613b", "61273b"));
        assert!(statements(b"select \xff").is_err());
    }

    #[test]
    fn names_are_quoted_in_one_way() {
        for (text, wanted) in [
            ("select 1", "select 1"),
            ("select \"a\" from \"t\"", "select `a` from `t`"),
            ("select '\"', `\"`, \"a\"\"b`c\" # \"", "select '\"', `\"`, `a\"b``c` # \""),
            ("/* \" */ select /*! \"ä\" */ -- \"", "/* \" */ select /*! `ä` */ -- \""),
            ("select \"never ends", "select `never ends`"),
            ("select '\\'\"', \"\\\"", "select '\\'\"', `\\`"),
        ] {
            assert_eq!(with_quoted_names(text), wanted);
        }
    }

    #[test]
    fn backslashes_of_kept_texts_are_doubled_within_literals() {
        for (kept, wanted) in [
            ("a <> 'x'", "a <> 'x'"),
            (r"a <> 'x\y''\' AND `n\m` = ''", r"a <> 'x\\y''\\' AND `n\m` = ''"),
            (r#"a <> "it's \""#, r#"a <> "it's \\""#),
        ] {
            assert_eq!(with_escapes(kept), wanted);
            assert_eq!(without_escapes(&with_escapes(kept)), kept);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_in_one_line_means_the_same(text in "[a'\\\\\n\r\0\t\"ä]{0,20}") {
            let literal = written(&text);
            prop_assert!(!literal.contains(['\n', '\r', '\0']));
            prop_assert_eq!(unescaped(&literal.as_bytes()[1..literal.len() - 1], b'\''), text.as_bytes());
        }

        #[test]
        fn names_are_quoted_once(text in "[\"'`\\\\a/*#! äö-]{0,40}") {
            let once = with_quoted_names(&text);
            assert_eq!(with_quoted_names(&once), once);
        }

        #[test]
        fn any_bytes_are_cut_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = statements(&bytes);
        }
    }
}
