//! Parts of statements as texts that are kept and read again: conditions, defaults, computed columns, keys of indexes, views, declared types.
//!
//! What the parser writes of its trees does not know how it will be read: backslashes stay as they are, and a quote is left alone behind a backslash or
//! another quote. So literals and names are written here, one way for each dialect, whatever they were spelled like and whatever modes the session had.
//! Reading such a text in its dialect, without any mode, gives the same values.

use crate::dialect::Dialect;
use sqlparser::ast::{self, DataType, EnumMember, Ident, Value, VisitMut, VisitorMut};
use sqlparser::tokenizer::{Location, Token, Tokenizer};
use std::borrow::Cow;
use std::fmt::Display;
use std::ops::{ControlFlow, Range};

/// A part of a statement as a text that is read as the same in its dialect.
pub(crate) fn written<T: Clone + Display + VisitMut>(dialect: Dialect, part: &T) -> String {
    let text = part.to_string();
    if is_plain(dialect, &text) {
        return text;
    }
    let write = || {
        let mut own = part.clone();
        let _ = VisitMut::visit(&mut own, &mut Spelling(dialect));
        own.to_string()
    };
    // A visitor takes more of the stack for a level than what writes the text does.
    runtime::on_large_stack(write).unwrap_or_else(|_| write())
}

/// True for a text of the parser's that cannot be read as anything else.
fn is_plain(dialect: Dialect, text: &str) -> bool {
    let has_doubtful = text.contains(['\\', '$']) || ["''", "\"\"", "``"].iter().any(|pair| text.contains(pair));
    !has_doubtful && (dialect != Dialect::Mysql || !text.contains('"'))
}

/// A text as a literal.
pub(crate) fn literal(dialect: Dialect, text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for c in text.chars() {
        match (c, dialect) {
            ('\'', _) => out.push_str("''"),
            ('\\', Dialect::Mysql) => out.push_str("\\\\"),
            ('\0', Dialect::Mysql) => out.push_str("\\0"),
            ('\n', Dialect::Mysql) => out.push_str("\\n"),
            ('\r', Dialect::Mysql) => out.push_str("\\r"),
            ('\u{1a}', Dialect::Mysql) => out.push_str("\\Z"),
            (c, _) => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// The text that a literal means which [`literal`] has written. None: it is something else.
pub(crate) fn meant(dialect: Dialect, text: &str) -> Option<String> {
    // An expression would have more tokens.
    let mut tokens = Tokenizer::new(dialect.parser(), text.strip_prefix('\'').map(|_| text)?).tokenize().ok()?;
    match (tokens.pop(), tokens.is_empty()) {
        (Some(Token::SingleQuotedString(text)), true) => Some(text),
        _ => None,
    }
}

/// A name in quotes.
pub(crate) fn name(dialect: Dialect, name: &str) -> String {
    match dialect {
        Dialect::Mysql => format!("`{}`", name.replace('`', "``")),
        _ => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// A type as it is declared.
pub(crate) fn written_type(dialect: Dialect, ty: &DataType) -> String {
    let list = |words: &mut dyn Iterator<Item = &String>| {
        let words: Vec<String> = words.map(|word| literal(dialect, word)).collect();
        words.join(", ")
    };
    let word_of = |member: &EnumMember| match member {
        EnumMember::Name(word) | EnumMember::NamedValue(word, _) => word.clone(),
    };
    match ty {
        DataType::Enum(members, None) => {
            let words: Vec<String> = members.iter().map(word_of).collect();
            format!("ENUM({})", list(&mut words.iter()))
        }
        DataType::Set(words) => format!("SET({})", list(&mut words.iter())),
        other => written(dialect, other),
    }
}

/// A token, as the tokenizer gives it where it takes literals apart.
pub(crate) fn token(dialect: Dialect, token: &Token) -> String {
    match token {
        Token::SingleQuotedString(text) => literal(dialect, text),
        Token::DoubleQuotedString(text) if dialect == Dialect::Mysql => literal(dialect, text),
        Token::EscapedStringLiteral(text) | Token::UnicodeStringLiteral(text) => literal(dialect, text),
        Token::NationalStringLiteral(text) => format!("N{}", literal(dialect, text)),
        Token::Word(word) => {
            let ident = Ident {
                value: word.value.clone(),
                quote_style: word.quote_style,
                span: sqlparser::tokenizer::Span::empty(),
            };
            written_name(dialect, &ident).unwrap_or_else(|| word.value.clone())
        }
        other => other.to_string(),
    }
}

/// A name as it is written. None: without quotes.
fn written_name(dialect: Dialect, ident: &Ident) -> Option<String> {
    match ident.quote_style? {
        '[' => Some(format!("[{}]", ident.value)),
        _ => Some(name(dialect, &ident.value)),
    }
}

/// Where a place of a text is, in bytes.
pub(crate) fn offset(text: &str, location: Location) -> usize {
    let before: usize = text.split_inclusive('\n').take(location.line.saturating_sub(1) as usize).map(str::len).sum();
    let line = &text[before..];
    let column = location.column.saturating_sub(1) as usize;
    before + line.char_indices().nth(column).map_or(line.len(), |(at, _)| at)
}

/// A text with other words in the places of some; all else stays as it is written. None: there are none of them.
pub(crate) fn with_words(dialect: Dialect, text: &str, other: impl Fn(&Ident) -> Option<String>) -> Option<String> {
    let mut tokens = Vec::new();
    Tokenizer::new(dialect.parser(), text).tokenize_with_location_into_buf(&mut tokens).ok()?;
    let changes: Vec<(Range<usize>, String)> = tokens
        .iter()
        .filter_map(|token| {
            let Token::Word(word) = &token.token else { return None };
            let ident = Ident { value: word.value.clone(), quote_style: word.quote_style, span: token.span };
            Some((offset(text, token.span.start)..offset(text, token.span.end), other(&ident)?))
        })
        .collect();
    let mut changed: Cow<'_, str> = text.into();
    for (place, word) in changes.into_iter().rev() {
        changed.to_mut().replace_range(place, &word);
    }
    match changed {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => Some(text),
    }
}

/// Puts what is written as it is into the places of literals and names.
struct Spelling(Dialect);

impl VisitorMut for Spelling {
    type Break = ();

    fn pre_visit_value(&mut self, value: &mut ast::ValueWithSpan) -> ControlFlow<()> {
        let text = match &value.value {
            Value::SingleQuotedString(text)
            | Value::DoubleQuotedString(text)
            | Value::EscapedStringLiteral(text)
            | Value::UnicodeStringLiteral(text)
            | Value::DollarQuotedString(ast::DollarQuotedString { value: text, .. }) => literal(self.0, text),
            Value::NationalStringLiteral(text) => format!("N{}", literal(self.0, text)),
            _ => return ControlFlow::Continue(()),
        };
        // What the parser writes of it is its text.
        value.value = Value::Placeholder(text);
        ControlFlow::Continue(())
    }

    fn pre_visit_ident(&mut self, ident: &mut Ident) -> ControlFlow<()> {
        if let Some(name) = written_name(self.0, ident) {
            (ident.value, ident.quote_style) = (name, None);
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use proptest::prelude::*;

    fn expression(dialect: Dialect, text: &str) -> ast::Expr {
        let statement = dialect.parse(&format!("SELECT {text}")).unwrap().remove(0);
        let ast::Statement::Query(query) = statement else { panic!("no query") };
        let ast::SetExpr::Select(mut select) = *query.body else { panic!("no select") };
        let ast::SelectItem::UnnamedExpr(expr) = select.projection.remove(0) else { panic!("no expression") };
        expr
    }

    fn check(dialect: Dialect, given: &str, wanted: &str) {
        let expr = expression(dialect, given);
        assert_eq!(written(dialect, &expr), wanted);
        assert_eq!(written(dialect, &expression(dialect, wanted)), wanted, "it is not written as it was read");
    }

    #[test]
    fn texts_of_mysql_are_read_as_they_were() {
        let check = |given, wanted| check(Dialect::Mysql, given, wanted);
        check(r"c <> 'a\\b'", r"c <> 'a\\b'");
        check(r"concat('it\'s', 'it''s', '''', '\'\'', '\\''')", r"concat('it''s', 'it''s', '''', '''''', '\\''')");
        check(r#"concat("q\"", "it's", '"', "")"#, r#"concat('q"', 'it''s', '"', '')"#);
        check(r"c LIKE '10\%' ESCAPE '\\'", r"c LIKE '10\\%' ESCAPE '\\'");
        check(r"concat('\n\0\r\Z\t', N'\\')", "concat('\\n\\0\\r\\Z\t', N'\\\\')");
        check(r"`a``b` = `a\` + `x`", r"`a``b` = `a\` + `x`");
        check(r"DATE '2026-01-01' < c", "DATE '2026-01-01' < c");
        check(r"(SELECT 'a\\' AS 'x\\y' FROM t)", r"(SELECT 'a\\' AS `x\y` FROM t)");
        check(r"CASE c WHEN '\\' THEN _utf8mb4'\\' END", r"CASE c WHEN '\\' THEN _utf8mb4 '\\' END");
    }

    #[test]
    fn texts_of_postgres_are_read_as_they_were() {
        let check = |given, wanted| check(Dialect::Postgres, given, wanted);
        check(r"c <> 'a\\b' || 'it''s' || '\''' || ''''''", r"c <> 'a\\b' || 'it''s' || '\''' || ''''''");
        check(r"E'a\\b\'c\n' || U&'\0041''' || $x$it's$x$", "'a\\b''c\n' || 'A''' || 'it''s'");
        check(r#""a""b" = "a\" || "c""#, r#""a""b" = "a\" || "c""#);
        check(r"e'\\'::text LIKE '\\%' ESCAPE E'\\'", r"'\'::TEXT LIKE '\\%' ESCAPE '\'");
    }

    #[test]
    fn words_are_replaced_and_nothing_else_is() {
        let rename = |dialect, text| {
            with_words(dialect, text, |word: &Ident| (word.value == "a").then(|| name(dialect, "b`\"")))
        };
        let wanted = "`b``\"` = 'a\\'a' and  `a``` > _latin1'a' -- a";
        assert_eq!(rename(Dialect::Mysql, "a = 'a\\'a' and  `a``` > _latin1'a' -- a").as_deref(), Some(wanted));
        let wanted = "\"b`\"\"\" || E'a\\'a' || $$a$$";
        assert_eq!(rename(Dialect::Postgres, "\"a\" || E'a\\'a' || $$a$$").as_deref(), Some(wanted));
        assert_eq!(rename(Dialect::Tarantool, "c = 'a'"), None);
    }

    #[test]
    fn types_that_list_words_are_read_as_they_were() {
        let words = ["a\\", "it's", "''", "\\'", "a,b"].map(String::from);
        let declared = written_type(Dialect::Mysql, &DataType::Set(words.to_vec()));
        assert_eq!(declared, r"SET('a\\', 'it''s', '''''', '\\''', 'a,b')");
        assert_eq!(crate::mysql::assign::Choices::of(&declared).unwrap().words(), words);
    }

    proptest! {
        #[test]
        fn any_text_is_read_as_it_was(text in "[ab'\"\\\\%_\\n\\r\0`$\u{1a}ä]{0,12}") {
            for dialect in [Dialect::Mysql, Dialect::Postgres, Dialect::Tarantool] {
                if dialect != Dialect::Mysql && text.contains('\0') {
                    continue;
                }
                let expr = ast::Expr::value(Value::SingleQuotedString(text.clone()));
                let kept = written(dialect, &expr);
                assert_eq!(expression(dialect, &kept), expr);
                assert_eq!(meant(dialect, &literal(dialect, &text)), Some(text.clone()));
                let ident = ast::Expr::Identifier(Ident::with_quote(if dialect == Dialect::Mysql { '`' } else { '"' }, &text));
                assert_eq!(expression(dialect, &written(dialect, &ident)), ident);
            }
        }
    }
}
