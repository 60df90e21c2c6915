//! FETCH and MOVE of PostgreSQL's dialect, of which the parser knows a part; and which cursors a session has, for `pg_cursors`.

use crate::control::{Control, Step};
use crate::dialect::Dialect;
use crate::error::{Condition, Error, Result};
use crate::session::Session;
use crate::value::Value;
use sqlparser::tokenizer::{Token, TokenWithSpan};
use std::rc::Rc;
use tuple::datetime::Datetime;

/// What is told of a cursor.
#[derive(Clone, Debug)]
pub struct CursorShown {
    /// Its query.
    pub statement: String,
    /// It outlives its transaction.
    pub is_held: bool,
    /// Its rows come in binary.
    pub is_binary: bool,
    /// One goes back in it.
    pub is_scrollable: bool,
    /// When it was declared: nanoseconds since 1970.
    pub made_ns: i128,
}

/// Has a cursor stand in `pg_cursors` of its session while this is kept.
pub struct CursorEntry {
    session: Rc<Session>,
    name: String,
}

impl CursorEntry {
    /// Of a cursor that is made.
    pub fn new(session: &Rc<Session>, name: &str, shown: CursorShown) -> Self {
        session.cursors.borrow_mut().insert(name.to_string(), shown);
        CursorEntry { session: Rc::clone(session), name: name.to_string() }
    }
}

impl Drop for CursorEntry {
    fn drop(&mut self) {
        self.session.cursors.borrow_mut().remove(&self.name);
    }
}

/// The rows of `pg_cursors`.
pub(crate) fn rows_of(session: &Session) -> Vec<Vec<Value>> {
    let row = |(name, shown): (&String, &CursorShown)| {
        let moment = Datetime {
            seconds: shown.made_ns.div_euclid(1_000_000_000) as i64,
            nanoseconds: shown.made_ns.rem_euclid(1_000_000_000) as i32,
            ..Datetime::default()
        };
        let flags = [shown.is_held, shown.is_binary, shown.is_scrollable].map(Value::Bool);
        let mut row = vec![Value::text(name.as_str()), Value::text(shown.statement.as_str())];
        row.extend(flags);
        row.push(Value::Datetime(Rc::new(moment)));
        row
    };
    session.cursors.borrow().iter().map(row).collect()
}

/// A word, as it is compared.
fn word_of(token: &Token) -> String {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_lowercase(),
        _ => String::new(),
    }
}

/// True if a statement is one of these.
pub(crate) fn is_own(statement: &[TokenWithSpan]) -> bool {
    let first = statement.iter().find(|token| !matches!(token.token, Token::Whitespace(_)));
    first.is_some_and(|first| matches!(word_of(&first.token).as_str(), "fetch" | "move"))
}

/// Reads one of them. Errors: `Syntax`.
pub(crate) fn parse(statement: &[TokenWithSpan]) -> Result<Control> {
    let tokens: Vec<&Token> =
        statement.iter().map(|token| &token.token).filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    let mut words = Words { tokens: &tokens, at: 0 };
    let is_move = words.next_word() == "move";
    let step = words.step()?;
    if !words.take("from") {
        words.take("in");
    }
    let name = match words.tokens.get(words.at) {
        Some(Token::Word(word)) => Dialect::Postgres.fold(&sqlparser::ast::Ident {
            value: word.value.clone(),
            quote_style: word.quote_style,
            span: sqlparser::tokenizer::Span::empty(),
        }),
        _ => return Err(words.wrong()),
    };
    words.at += 1;
    if words.at < tokens.len() {
        return Err(words.wrong());
    }
    Ok(Control::Fetch { name, step, is_move })
}

struct Words<'a> {
    tokens: &'a [&'a Token],
    at: usize,
}

impl Words<'_> {
    fn wrong(&self) -> Error {
        let near = self.tokens.get(self.at).map_or_else(|| "end of input".to_string(), |token| format!("\"{token}\""));
        Error::new(Condition::Syntax, format!("syntax error at or near {near}"))
    }

    fn peek(&self) -> String {
        self.tokens.get(self.at).map_or_else(String::new, |token| word_of(token))
    }

    fn next_word(&mut self) -> String {
        let word = self.peek();
        self.at += 1;
        word
    }

    fn take(&mut self, word: &str) -> bool {
        let is_there = self.peek() == word;
        self.at += usize::from(is_there);
        is_there
    }

    /// A number with its sign, if there is one.
    fn count(&mut self) -> Result<Option<i64>> {
        let sign = match self.tokens.get(self.at) {
            Some(Token::Minus) => Some(-1),
            Some(Token::Plus) => Some(1),
            _ => None,
        };
        let at = self.at + usize::from(sign.is_some());
        match self.tokens.get(at) {
            Some(Token::Number(digits, _)) => {
                let number: i64 = digits.parse().map_err(|_| self.wrong())?;
                self.at = at + 1;
                Ok(Some(number * sign.unwrap_or(1)))
            }
            _ if sign.is_none() => Ok(None),
            _ => Err(self.wrong()),
        }
    }

    fn needed(&mut self) -> Result<i64> {
        self.count()?.ok_or_else(|| self.wrong())
    }

    fn step(&mut self) -> Result<Step> {
        // A cursor may be called as a direction is: `FETCH next` asks for the next row of `next`.
        if self.at + 1 == self.tokens.len() {
            return Ok(Step::Forward(1));
        }
        if let Some(count) = self.count()? {
            return Ok(Step::Forward(count));
        }
        let at = self.at;
        Ok(match self.next_word().as_str() {
            "next" => Step::Forward(1),
            "prior" => Step::Forward(-1),
            "first" => Step::Absolute(1),
            "last" => Step::Absolute(-1),
            "absolute" => Step::Absolute(self.needed()?),
            "relative" => Step::Relative(self.needed()?),
            "all" => Step::Forward(i64::MAX),
            "forward" if self.take("all") => Step::Forward(i64::MAX),
            "forward" => Step::Forward(self.count()?.unwrap_or(1)),
            "backward" if self.take("all") => Step::Forward(-i64::MAX),
            "backward" => Step::Forward(-self.count()?.unwrap_or(1)),
            _ => {
                self.at = at;
                Step::Forward(1)
            }
        })
    }
}

/// The text of such a statement.
pub(crate) fn text_of(name: &str, step: Step, is_move: bool) -> String {
    let verb = if is_move { "MOVE" } else { "FETCH" };
    let direction = match step {
        Step::Forward(i64::MAX) => "FORWARD ALL".to_string(),
        Step::Forward(count) if count == -i64::MAX => "BACKWARD ALL".to_string(),
        Step::Forward(count) => format!("FORWARD {count}"),
        Step::Absolute(place) => format!("ABSOLUTE {place}"),
        Step::Relative(count) => format!("RELATIVE {count}"),
    };
    format!("{verb} {direction} FROM \"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use crate::control::{Control, Step};
    use crate::dialect::Dialect;
    use crate::mysql::Said;

    #[test]
    fn all_forms_of_fetch_are_read() {
        let fetch = |text: &str| match Dialect::Postgres.statements(text).map(|mut all| all.remove(0)) {
            Ok(Said::Control(Control::Fetch { name, step, is_move })) => Ok((name, step, is_move)),
            Ok(_) => Err("another statement".to_string()),
            Err(error) => Err(error.to_string()),
        };
        for (text, name, step) in [
            ("FETCH c", "c", Step::Forward(1)),
            ("fetch from C", "c", Step::Forward(1)),
            ("FETCH 5 FROM \"C d\"", "C d", Step::Forward(5)),
            ("FETCH -5 IN c", "c", Step::Forward(-5)),
            ("FETCH NEXT c", "c", Step::Forward(1)),
            ("FETCH next", "next", Step::Forward(1)),
            ("FETCH FORWARD FROM c", "c", Step::Forward(1)),
            ("FETCH FORWARD ALL IN c", "c", Step::Forward(i64::MAX)),
            ("FETCH ALL c", "c", Step::Forward(i64::MAX)),
            ("FETCH BACKWARD 3 c", "c", Step::Forward(-3)),
            ("FETCH BACKWARD ALL c", "c", Step::Forward(-i64::MAX)),
            ("FETCH PRIOR c", "c", Step::Forward(-1)),
            ("FETCH LAST c", "c", Step::Absolute(-1)),
            ("FETCH ABSOLUTE -2 c", "c", Step::Absolute(-2)),
            ("FETCH RELATIVE 0 c", "c", Step::Relative(0)),
        ] {
            assert_eq!(fetch(text), Ok((name.to_string(), step, false)), "{text}");
            let again = super::text_of(name, step, true);
            assert_eq!(fetch(&again), Ok((name.to_string(), step, true)), "{again}");
        }
        for text in [
            "FETCH",
            "FETCH 1 FROM",
            "FETCH 1 FROM c d",
            "FETCH ABSOLUTE c",
            "FETCH - c",
            "FETCH 99999999999999999999 c",
        ] {
            assert!(fetch(text).unwrap_err().contains("syntax error"), "{text}");
        }
        assert_eq!(Dialect::Postgres.statements("fetch 1 c; select 1; move all c").unwrap().len(), 3);
    }
}
