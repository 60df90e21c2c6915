//! Texts of MySQL's clients: several statements in one, and bytes in literals that are no text.

use crate::error::{Condition, Error, Result};
use std::borrow::Cow;
use std::fmt::Write;

/// Takes a text apart at the semicolons that stand outside of quotes and comments. Literals that are no UTF-8 become `x'...'`; empty statements are left
/// out. `keeps_backslashes`: `sql_mode` has NO_BACKSLASH_ESCAPES. Errors: `InvalidEncoding` outside of a literal.
pub fn statements(bytes: &[u8], keeps_backslashes: bool) -> Result<Vec<Cow<'_, str>>> {
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
                let end = literal_end(bytes, at, quote, keeps_backslashes);
                if quote != b'`' && std::str::from_utf8(&bytes[at..end]).is_err() {
                    let (mut text, from) = spelled.take().unwrap_or_else(|| (String::new(), start));
                    text.push_str(utf8(&bytes[from..at])?);
                    // A word before it says that they are bytes.
                    let introducer = text.trim_end();
                    if introducer.to_ascii_lowercase().ends_with("_binary") {
                        text.truncate(introducer.len() - "_binary".len());
                    }
                    text.push_str(" x'");
                    unescaped(&bytes[at + 1..end.saturating_sub(1).max(at + 1)], quote, keeps_backslashes)
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
fn literal_end(bytes: &[u8], at: usize, quote: u8, keeps_backslashes: bool) -> usize {
    let mut end = at + 1;
    while let Some(&byte) = bytes.get(end) {
        end += 1;
        match byte {
            b'\\' if quote != b'`' && !keeps_backslashes => end += 1,
            byte if byte == quote && bytes.get(end) == Some(&quote) => end += 1,
            byte if byte == quote => return end,
            _ => {}
        }
    }
    bytes.len()
}

/// What `sql_mode` says of quotes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Quotes {
    /// `ANSI_QUOTES`: `"a"` is a name.
    pub(crate) are_names: bool,
    /// `NO_BACKSLASH_ESCAPES`: a backslash in a literal is one.
    pub(crate) keep_backslashes: bool,
}

impl Quotes {
    pub(crate) fn of(modes: &str) -> Self {
        let has = |wanted: &str| modes.split(',').any(|mode| mode == wanted);
        Quotes { are_names: has("ANSI_QUOTES"), keep_backslashes: has("NO_BACKSLASH_ESCAPES") }
    }
}

/// A statement of a session with such modes as one that has the same meaning without: `` `a` `` for `"a"`, two
/// backslashes for one.
pub(crate) fn with_usual_quotes(text: &str, quotes: Quotes) -> Cow<'_, str> {
    let is_other = quotes.are_names && text.contains('"') || quotes.keep_backslashes && text.contains('\\');
    if !is_other {
        return Cow::Borrowed(text);
    }
    with_literals(text, quotes, |literal| match literal.as_bytes()[0] {
        b'"' if quotes.are_names => Some(format!("`{}`", quoted_name(literal).replace('`', "``"))),
        b'\'' | b'"' if quotes.keep_backslashes => Some(literal.replace('\\', "\\\\")),
        _ => None,
    })
}

/// The parser takes `\a` and `\f` for other characters; in MySQL's literals they are letters.
pub(crate) fn with_known_escapes(text: &str) -> Cow<'_, str> {
    if !text.contains("\\a") && !text.contains("\\f") {
        return Cow::Borrowed(text);
    }
    with_literals(text, Quotes::default(), |literal| {
        let mut out = String::with_capacity(literal.len());
        let mut chars = literal.chars().peekable();
        while let Some(c) = chars.next() {
            match (c, chars.peek()) {
                ('\\', Some('a' | 'f')) => {}
                ('\\', _) => out.extend([Some(c), chars.next()].into_iter().flatten()),
                _ => out.push(c),
            }
        }
        (!literal.starts_with('`')).then_some(out)
    })
}

/// A text with others in the places of some of its literals and names in quotes.
fn with_literals(text: &str, quotes: Quotes, other: impl Fn(&str) -> Option<String>) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    // Up to where it is in `out`.
    let (mut done, mut at) = (0, 0);
    while at < bytes.len() {
        at = match bytes[at] {
            quote @ (b'\'' | b'"' | b'`') => {
                let is_name = quote == b'"' && quotes.are_names;
                let end = literal_end(bytes, at, quote, is_name || quotes.keep_backslashes);
                if let Some(other) = other(&text[at..end]) {
                    out.push_str(&text[done..at]);
                    out.push_str(&other);
                    done = end;
                }
                end
            }
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
    match done {
        0 => Cow::Borrowed(text),
        done => {
            out.push_str(&text[done..]);
            Cow::Owned(out)
        }
    }
}

/// The name that stands in quotes.
fn quoted_name(literal: &str) -> String {
    let inner = &literal[1..];
    let ends = inner.chars().rev().take_while(|c| *c == '"').count() % 2 == 1;
    inner[..inner.len() - usize::from(ends)].replace("\"\"", "\"")
}

/// The bytes that a literal means.
fn unescaped(body: &[u8], quote: u8, keeps_backslashes: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body.iter().copied();
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' if !keeps_backslashes => out.push(match rest.next() {
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

    const NAMES: Quotes = Quotes { are_names: true, keep_backslashes: false };

    #[test]
    fn texts_are_cut_where_statements_end() {
        let cut = |text: &str| {
            statements(text.as_bytes(), false).unwrap().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(cut("select 1; select ';', \"a;\"\"b\", `;` ;;"), ["select 1", "select ';', \"a;\"\"b\", `;`"]);
        assert_eq!(cut("select '\\';' -- ; \n; # x;\n ; /* ; */ ;"), ["select '\\';' -- ;"]);
        assert_eq!(cut("/*!40101 SET NAMES utf8 */;"), ["/*!40101 SET NAMES utf8 */"]);
        assert!(cut("  ; -- nothing").is_empty());
    }

    #[test]
    fn bytes_in_literals_are_kept() {
        let cut = statements(b"insert into t values (1, _binary'\xff\\0\\'a'';', 'b')", false).unwrap();
        assert_eq!(cut[0], "insert into t values (1,  x'ff0027613b' , 'b')".replace("613b", "61273b"));
        assert!(statements(b"select \xff", false).is_err());
        assert_eq!(statements(b"select '\xff\\0\\'; select 1", true).unwrap(), ["select  x'ff5c305c' ", "select 1"]);
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
            assert_eq!(with_usual_quotes(text, NAMES), wanted);
        }
    }

    #[test]
    fn backslashes_are_escaped_where_they_are_none() {
        for (text, wanted) in [
            ("select 'a'", "select 'a'"),
            (r#"select '\', "\", `\`, '\''\' # \"#, r#"select '\\', "\\", `\`, '\\''\\' # \"#),
            (r"/* '\' */ select '\", r"/* '\' */ select '\\"),
        ] {
            assert_eq!(with_usual_quotes(text, Quotes { keep_backslashes: true, ..Quotes::default() }), wanted);
        }
        let both = Quotes { are_names: true, keep_backslashes: true };
        assert_eq!(with_usual_quotes(r#"select "a\", '\'"#, both), r"select `a\`, '\\'");
    }

    #[test]
    fn letters_behind_backslashes_are_letters() {
        let given = r"select '\a\\a\\\a\f', `\a`, 'a' # '\a'";
        assert_eq!(with_known_escapes(given), r"select 'a\\a\\af', `\a`, 'a' # '\a'");
    }

    proptest! {
        #[test]
        fn names_are_quoted_once(text in "[\"'`\\\\a/*#! äö-]{0,40}") {
            let once = with_usual_quotes(&text, NAMES);
            assert_eq!(with_usual_quotes(&once, NAMES), once);
        }

        #[test]
        fn any_bytes_are_cut_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = statements(&bytes, false);
            let _ = statements(&bytes, true);
        }
    }
}
