//! LOAD DATA LOCAL: what is said of the file, and the INSERT that its lines are put in by.

use super::statements::{Said, quoted};
use super::words::Words;
use crate::control::{Control, Field, Lines, Load};
use crate::error::{Condition, Error, Result};
use sqlparser::tokenizer::Token;

/// Reads it behind its first word. Errors: `Syntax`; a file of the server.
pub(super) fn parse(words: &mut Words) -> Result<Said> {
    words.expect("data")?;
    let _ = words.skip("low_priority") || words.skip("concurrent");
    let is_local = words.skip("local");
    words.expect("infile")?;
    let file = text(words)?;
    if !is_local {
        let what = "LOAD DATA reads no files of the server";
        return Err(Error::new(Condition::AccessDenied, what)
            .mysql(1290)
            .hint("LOAD DATA LOCAL reads those of the client."));
    }
    let verb = match () {
        () if words.skip("replace") => "REPLACE INTO",
        // Nobody can stop a client that sends a file: rows that are there already stay, as with IGNORE.
        () => {
            words.skip("ignore");
            "INSERT IGNORE INTO"
        }
    };
    words.expect("into")?;
    words.expect("table")?;
    let table = quoted(&words.name()?);
    if words.skip("character") {
        words.expect("set")?;
        words.name()?;
    }
    let mut lines = Lines {
        between: b"\t".to_vec(),
        quote: None,
        escape: Some(b'\\'),
        start: Vec::new(),
        end: b"\n".to_vec(),
        passed_over: 0,
    };
    if words.skip("fields") || words.skip("columns") {
        loop {
            match () {
                () if words.skip("terminated") => lines.between = by(words)?.into_bytes(),
                () if words.skip("optionally") || words.word_at(0) == "enclosed" => {
                    words.expect("enclosed")?;
                    lines.quote = one(words)?;
                }
                () if words.skip("escaped") => lines.escape = one(words)?,
                () => break,
            }
        }
    }
    if words.skip("lines") {
        loop {
            match () {
                () if words.skip("starting") => lines.start = by(words)?.into_bytes(),
                () if words.skip("terminated") => lines.end = by(words)?.into_bytes(),
                () => break,
            }
        }
    }
    if lines.between.is_empty() || lines.end.is_empty() {
        return Err(Error::unsupported("LOAD DATA with fields of a fixed length"));
    }
    if words.skip("ignore") {
        lines.passed_over = match words.token(0) {
            Some(Token::Number(digits, _)) => digits.parse().map_err(|_| words.refused())?,
            _ => return Err(words.refused()),
        };
        words.at += 1;
        if !words.skip("lines") {
            words.expect("rows")?;
        }
    }
    let mut fields = Vec::new();
    if matches!(words.token(0), Some(Token::LParen)) {
        words.at += 1;
        loop {
            fields.push(match variable(words) {
                Some(name) => Field::Variable(name),
                None => Field::Column(words.name()?),
            });
            let next = words.token(0).cloned();
            words.at += 1;
            match next {
                Some(Token::Comma) => {}
                Some(Token::RParen) => break,
                _ => return Err(words.refused()),
            }
        }
    }
    let mut sets = Vec::new();
    if words.skip("set") {
        loop {
            let column = words.name()?;
            if !matches!(words.token(0), Some(Token::Eq)) {
                return Err(words.refused());
            }
            words.at += 1;
            let (mut depth, mut parts, mut variables) = (0i32, Vec::new(), Vec::new());
            while let Some(token) = words.token(0).cloned() {
                match token {
                    Token::Comma if depth == 0 => break,
                    Token::LParen => depth += 1,
                    Token::RParen => depth -= 1,
                    _ => {}
                }
                match variable(words) {
                    Some(name) => {
                        variables.push(name);
                        parts.push("?".to_string());
                    }
                    None => {
                        parts.push(crate::dialect::without_numbers(&spelled(&token)));
                        words.at += 1;
                    }
                }
            }
            sets.push((column, parts.join(" "), variables));
            if words.token(0).is_none() {
                break;
            }
            words.at += 1;
        }
    }
    if words.token(0).is_some() {
        return Err(words.refused());
    }
    Ok(Said::Control(Control::Load(Box::new(Load { file, lines, fields, table, verb, sets }))))
}

/// A token as it is said again: a text gets back what the tokenizer has taken out of it.
fn spelled(token: &Token) -> String {
    match token {
        Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => super::statements::literal(text),
        other => other.to_string(),
    }
}

/// The name of a variable, if one stands here: it is passed.
fn variable(words: &mut Words) -> Option<String> {
    let name = match (words.token(0)?, words.token(1)) {
        (Token::AtSign, Some(Token::Word(word))) => {
            let name = word.value.to_lowercase();
            words.at += 1;
            name
        }
        (Token::Placeholder(name), _) if name.starts_with('@') => {
            crate::dialect::without_numbers(name).trim_start_matches('@').to_lowercase()
        }
        (Token::Word(word), _) if word.value.starts_with('@') => word.value[1..].to_lowercase(),
        _ => return None,
    };
    words.at += 1;
    Some(name)
}

fn text(words: &mut Words) -> Result<String> {
    let found = match words.token(0) {
        Some(Token::SingleQuotedString(text) | Token::DoubleQuotedString(text)) => text.clone(),
        Some(Token::HexStringLiteral(digits)) => {
            let bytes = (0..digits.len() / 2).map(|at| u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok());
            let bytes: Option<Vec<u8>> = bytes.collect();
            bytes.and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(|| words.refused())?
        }
        _ => return Err(words.refused()),
    };
    words.at += 1;
    Ok(found)
}

fn by(words: &mut Words) -> Result<String> {
    words.expect("by")?;
    text(words)
}

/// A text of one byte; none for an empty one.
fn one(words: &mut Words) -> Result<Option<u8>> {
    let found = by(words)?;
    match found.as_bytes() {
        [] => Ok(None),
        [byte] => Ok(Some(*byte)),
        _ => Err(Error::new(Condition::Syntax, "Field separator argument is not what is expected; check the manual")
            .mysql(1083)),
    }
}

impl Load {
    /// The INSERT for lines of so many fields, and the number of the field that each of its parameters gets. `columns` are those of the table.
    pub fn insert(&self, columns: &[String], count: usize) -> (String, Vec<usize>) {
        let (mut names, mut values, mut places) = (Vec::new(), Vec::new(), Vec::new());
        let listed: Vec<Field> = match self.fields.is_empty() {
            true => columns.iter().map(|name| Field::Column(name.clone())).collect(),
            false => self.fields.clone(),
        };
        for (number, field) in listed.iter().enumerate().take(count) {
            if let Field::Column(name) = field
                && !self.sets.iter().any(|(set, ..)| set.eq_ignore_ascii_case(name))
            {
                names.push(quoted(name));
                values.push("?".to_string());
                places.push(number);
            }
        }
        for (name, expression, variables) in &self.sets {
            names.push(quoted(name));
            values.push(format!("({expression})"));
            for variable in variables {
                let is_it = |field: &Field| matches!(field, Field::Variable(known) if known == variable);
                // One that no field gives is null: no line has so many fields.
                places.push(listed.iter().position(is_it).unwrap_or(usize::MAX));
            }
        }
        (format!("{} {} ({}) VALUES ({})", self.verb, self.table, names.join(", "), values.join(", ")), places)
    }

    /// How many fields a line has that are for something, where the table has so many columns.
    pub fn width(&self, columns: usize) -> usize {
        if self.fields.is_empty() { columns } else { self.fields.len() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use crate::dialect::Dialect;

    fn load(text: &str) -> std::result::Result<Load, String> {
        match Dialect::Mysql.statements(text).map(|mut all| all.remove(0)) {
            Ok(Said::Control(Control::Load(load))) => Ok(*load),
            Ok(_) => Err("another statement".to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn what_is_said_of_a_file_is_read() {
        let plain = load("LOAD DATA LOCAL INFILE '/a/b' INTO TABLE shop.t").unwrap();
        assert_eq!((plain.file.as_str(), plain.table.as_str(), plain.lines.passed_over), ("/a/b", "`t`", 0));
        let columns = ["a".to_string(), "b".to_string()];
        assert_eq!(
            plain.insert(&columns, 2),
            ("INSERT IGNORE INTO `t` (`a`, `b`) VALUES (?, ?)".to_string(), vec![0, 1])
        );
        assert_eq!(plain.insert(&columns, 1).1, [0]);
        let full = load(
            "load data local infile 'x' replace into table t character set utf8mb4 fields terminated by ',' optionally enclosed by '\"' escaped by '' \
             lines starting by '>' terminated by '\\r\\n' ignore 1 lines (a, @v, c) set b = upper(@v), d = concat(@V, ', it''s')",
        )
        .unwrap();
        assert_eq!(full.lines.between, b",");
        assert_eq!((full.lines.quote, full.lines.escape, full.lines.passed_over), (Some(b'"'), None, 1));
        assert_eq!((full.lines.start.as_slice(), full.lines.end.as_slice()), (&b">"[..], &b"\r\n"[..]));
        let (insert, places) = full.insert(&[], 3);
        assert!(insert.starts_with("REPLACE INTO `t` (`a`, `c`, `b`, `d`) VALUES (?, ?, (upper"), "{insert}");
        assert_eq!((places, full.width(9)), (vec![0, 2, 1, 1], 3), "{insert}");
        for text in [
            "load data local infile x into table t",
            "load data local infile 'x' into t",
            "load data local infile 'x' into table t ignore x lines",
            "load data local infile 'x' into table t (a",
            "load data local infile 'x' into table t (a) set",
            "load data local infile 'x' into table t (a) set b",
            "load data local infile 'x' into table t (a) more",
            "load data local infile 'x' into table t fields enclosed by 'ab'",
            "load data",
        ] {
            assert!(load(text).is_err(), "{text}");
        }
        assert!(load("load data infile '/etc/passwd' into table t").unwrap_err().contains("no files of the server"));
    }
}
